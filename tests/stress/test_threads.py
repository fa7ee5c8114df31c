"""One `Study` object shared by threads: every value that `tell` took is there once, and no
suggestion is made twice."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

import truvar as tv

THREADS = 8
VALUES = 200  # told by each thread
DOMAIN = tv.Domain.grid(x=np.linspace(0, 1, 30))


def check_shared(store: str | None) -> None:
    study = tv.Study(
        DOMAIN,
        tv.LevelSet(0.0),
        kernel=RBF(0.2),
        mean=0.0,
        noise=1.0,
        policy="random",
        store=store,
        name=None if store is None else "shared",
    )

    def work(thread: int) -> list[tuple[int, float]]:
        told = []
        for step in range(VALUES):
            value = 1e-3 * thread + 1e-6 * step
            what = study.ask().id if step % 4 == 0 else DOMAIN.point((thread + step) % len(DOMAIN))
            told.append((study.tell(what, value), value))
            if step % 50 == 0:
                assert study.result().steps > 0
        return told

    with ThreadPoolExecutor(THREADS) as pool:
        told = [pair for pairs in pool.map(work, range(THREADS)) for pair in pairs]
    ids = [id_ for id_, _ in told]
    assert sorted(ids) == list(
        range(1, THREADS * VALUES + 1)
    )  # none is missing, none was given twice
    for each in [study] if store is None else [study, tv.load(store, "shared")]:
        frame = each.measurements
        assert dict(zip(frame["id"], frame["value"], strict=True)) == dict(told)
        assert each.pending == []


def test_eight_threads_on_a_study_in_memory_lose_nothing() -> None:
    check_shared(None)


@pytest.mark.usefixtures("url")
def test_eight_threads_on_a_stored_study_lose_nothing(url: str) -> None:
    check_shared(url)
