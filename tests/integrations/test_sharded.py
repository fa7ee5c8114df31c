"""A factor whose columns lie in several places: the choices are those of the engine that has them all, and what is lost
with a worker is made again. In this process for every kind of study, and on real Dask workers."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import RBF, Kernel, Matern, RationalQuadratic
from tests.helpers.dask_cluster import cluster_of

import truvar as tv
from truvar._typing import Array
from truvar.engines.lazy import Lazy
from truvar.integrations.sharded import Sharded
from truvar.models.cholesky import Columns, Factor, History, Job

GRID = tv.Domain.grid(x=np.linspace(0, 1, 23), y=np.linspace(2, 3, 19))
SCATTER = tv.Domain.table(pd.DataFrame(np.random.default_rng(3).uniform(size=(400, 2)), columns=["x", "y"]))

SETTINGS: dict[str, tuple[tv.Domain, Any, dict[str, Any]]] = {
    "maximum": (SCATTER, tv.Maximize(), {"kernel": Matern(0.2, nu=2.5), "noise": 1e-4}),
    "level set": (GRID, tv.LevelSet(0.5), {"kernel": RBF(0.2), "noise": 1e-3}),
    "travel": (
        GRID,
        tv.LevelSet(0.2),
        {"kernel": 2.0 * Matern([0.2, 0.4], nu=1.5), "noise": 1e-2, "cost": tv.Cost(1, {"x": 9.0})},
    ),
    "noise levels": (
        SCATTER,
        tv.LevelSet(0.2),
        {"kernel": RBF(0.2), "noise": tv.NoiseLevels([1e-6, 1e-3, 0.05], [15, 10, 2])},
    ),
}
MORE: dict[str, tuple[tv.Domain, Any, dict[str, Any]]] = {
    "tasks": (
        GRID,
        tv.Maximize(),
        {
            "kernel": RBF(0.2),
            "noise": 1e-3,
            "tasks": tv.Tasks([[1, 0.8], [0.8, 1]], ["yield", "proxy"], noise=[1e-3, 1e-2], cost=[5, 1]),
        },
    ),
    "no compiled form": (SCATTER, tv.Maximize(), {"kernel": RationalQuadratic(0.3, 1.0), "noise": 1e-3}),
    "no noise": (GRID, tv.Maximize(), {"kernel": Matern(0.4, nu=2.5), "noise": 0.0}),
    "learned": (SCATTER, tv.Maximize(), {"kernel": "matern52", "noise": 1e-3}),
    "another rule": (GRID, tv.LevelSet(0.5), {"kernel": RBF(0.2), "noise": 1e-3, "policy": "straddle"}),
    "theorem": (
        tv.Domain.grid(x=np.linspace(0, 1, 40)),
        tv.LevelSet(0.2),
        {"kernel": RBF(0.2), "noise": 1e-2, "policy": tv.TruVaR(beta=tv.TheoremBeta(0.1), slack=0.1)},
    ),
    "anticipating": (
        GRID,
        tv.LevelSet(0.2),
        {"kernel": RBF(0.3), "noise": 1e-3, "policy": tv.TruVaR(anticipate="mean")},
    ),
}


pytestmark = pytest.mark.usefixtures("small_cells")


def value(point: dict[str, float], *_: Any) -> float:
    return float(sum(np.sin(5 * x + k) for k, x in enumerate(point.values())))


def choices(name: str, engine: Any, steps: int, batch: int = 1) -> list[Any]:
    """What is asked for, batches told last first; gains included."""
    domain, goal, settings = (SETTINGS | MORE)[name]
    study = tv.Study(domain, goal, mean=0.0, engine=engine, **settings)
    found: list[Any] = []
    while study.steps < steps:
        try:
            suggestions = study.ask(batch)
        except tv.Finished:
            break
        found += [(s.index, s.level, s.task, pytest.approx(s.gain, rel=1e-6, abs=1e-9)) for s in suggestions]
        for suggestion in reversed(suggestions):
            study.tell(suggestion, value(suggestion.point))
    return found


def plain(found: list[Any]) -> list[Any]:
    """The same with the gains as numbers, to be held against."""
    return [(index, level, task, gain.expected) for index, level, task, gain in found]


# -- in this process ---------------------------------------------------------------------------------------------------


class Several:
    """A study's engine whose factor lies in several `Columns`; if `lossy`, they are lost now and then, in turn."""

    def __init__(self, shards: int = 4, lossy: bool = False) -> None:
        self.shards, self.lossy = shards, lossy
        self.lost = 0
        self.calls: list[str] = []

    def __call__(self, posterior: Any, domain: tv.Domain) -> Lazy:
        return Lazy(posterior, domain)

    def factor(self, kernel: Kernel, sites: Array, targets: int) -> Factor:
        edges = np.linspace(0, len(sites), self.shards + 1).astype(int)
        slices = [slice(*pair) for pair in pairwise(edges.tolist())]

        def make(number: int) -> Columns:
            part = slices[number]
            return Columns(kernel, sites[part], max(0, min(part.stop, targets) - part.start))

        columns = [make(number) for number in range(self.shards)]

        class Shards:
            def __init__(self) -> None:
                self.slices: Sequence[slice] = slices

            def call(shards, method: str, jobs: Sequence[Job], history: History) -> list[Any]:
                self.calls.append(method)
                if self.lossy and len(self.calls) % 13 == 0:
                    self.lost += 1
                    number = self.lost % len(columns)
                    columns[number] = make(number)
                    for asked, given in history(number):
                        getattr(columns[number], asked)(*given)
                return [getattr(columns[number], method)(*given) for number, given in jobs]

        return Factor(sites, Shards())


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("name", SETTINGS | MORE)
def test_the_choices_are_those_of_one_machine(name: str, batch: int) -> None:
    steps = 6 if name == "theorem" else 24
    expected = plain(choices(name, "lazy", steps, batch))
    assert len(expected) >= 6
    several = Several()
    assert expected == choices(name, several, steps, batch)
    if name in SETTINGS:
        assert {"append", "at", "inner", "combine", "sums", "bound_gaps"} <= set(several.calls)


@pytest.mark.parametrize("name", SETTINGS)
def test_the_choices_are_those_of_the_covariance_matrix(name: str) -> None:
    assert plain(choices(name, "dense", 20)) == choices(name, Several(3), 20)


@pytest.mark.parametrize("name", SETTINGS)
def test_what_is_lost_is_made_again(name: str) -> None:
    several = Several(lossy=True)
    assert plain(choices(name, "lazy", 24, 2)) == choices(name, several, 24, 2)
    assert several.lost >= 4


def test_all_sites_can_be_scored_too() -> None:
    studies = [
        tv.Study(GRID, tv.LevelSet(0.5), kernel=RBF(0.2), mean=0.0, noise=1e-3, engine=engine)
        for engine in ("lazy", Several(5))
    ]
    for study in studies:
        study.run(value, steps=8)
    np.testing.assert_allclose(studies[0].gains(), studies[1].gains(), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(studies[0].result().upper, studies[1].result().upper, rtol=1e-12)


# -- on a Dask cluster -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with cluster_of(4) as client:
        yield client


@pytest.mark.parametrize("name", SETTINGS)
def test_four_workers_choose_as_one_machine_does(cluster: Any, name: str) -> None:
    found = choices(name, Sharded(cluster), 10, 2)
    assert plain(choices(name, "lazy", 10, 2)) == found
    assert plain(choices(name, "dense", 10, 2)) == found


def test_no_process_has_more_than_its_share_of_the_factor(cluster: Any) -> None:
    study = tv.Study(GRID, tv.Maximize(), kernel=RBF(0.2), mean=0.0, noise=1e-3, engine=Sharded(cluster, shards=8))
    study.run(value, steps=5)
    assert study.engine == "sharded"
    shards = study.policy_context().posterior.factor._shards
    sizes = [part.stop - part.start for part in shards.slices]
    assert (len(sizes), sum(sizes)) == (8, len(GRID))
    assert max(sizes) - min(sizes) <= 1
    assert sorted(map(shards._homes.count, cluster.nthreads())) == [2, 2, 2, 2]  # type: ignore[attr-defined]


def test_a_study_goes_on_as_if_nothing_had_happened_when_a_worker_is_killed(cluster: Any) -> None:
    domain, goal, settings = SETTINGS["noise levels"]
    alone = tv.Study(domain, goal, mean=0.0, engine="lazy", **settings)
    alone.run(value, steps=14)
    study = tv.Study(domain, goal, mean=0.0, engine=Sharded(cluster), **settings)
    victim = next(iter(cluster.run(os.getpid).values()))

    def kill(study: tv.Study) -> None:
        if study.steps == 6:
            os.kill(victim, signal.SIGKILL)

    study.run(value, steps=14, progress=kill)
    assert len(cluster.nthreads()) == 3
    pd.testing.assert_frame_equal(study.measurements, alone.measurements)
    np.testing.assert_allclose(study.result().mean, alone.result().mean, rtol=1e-12, atol=1e-12)


def test_without_any_worker_left_the_message_says_what_to_do(cluster: Any) -> None:
    study = tv.Study(GRID, tv.Maximize(), kernel=RBF(0.2), mean=0.0, noise=1e-3, engine=Sharded(cluster, patience=0.5))
    study.run(value, steps=3)
    for pid in cluster.run(os.getpid).values():
        os.kill(pid, signal.SIGKILL)
    with pytest.raises(tv.TruvarError, match=r"no worker for 0.5 s; start some with `dask worker"):
        study.run(value, steps=6)
    assert study.steps == 3


def test_what_is_no_client_is_refused() -> None:
    with pytest.raises(tv.TruvarError, match=r"Sharded needs a dask.distributed.Client, got 'tcp:"):
        Sharded("tcp://127.0.0.1:8786")
