"""Runs that are interrupted, and runs on a real Dask cluster of worker processes, some of which
are killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.helpers.dask_cluster import cluster_of
from tests.study.test_executors import a_study, hill, measuring

import truvar as tv

INTERRUPTED = """
import signal, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever started the tests may have had it ignored
from concurrent.futures import ThreadPoolExecutor
import numpy as np, truvar as tv
from sklearn.gaussian_process.kernels import RBF

def measure(point):
    time.sleep(0.01 if study.steps < 4 else 1.0)
    return point["x"]

study = tv.Study(tv.Domain.grid(x=np.linspace(0, 1, 50)), tv.Maximize(), kernel=RBF(0.1), mean=0.0, noise=0.1)
pool = ThreadPoolExecutor(2)
try:
    study.run(measure, steps=40, executor=pool, progress=lambda s: print(s.steps, flush=True))
except KeyboardInterrupt:
    print("interrupted", study.steps, len(study.pending), flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent otherwise there")
def test_ctrl_c_ends_a_run_at_once_and_keeps_what_was_told() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    for line in process.stdout:
        if line.strip() == "4":
            break
    process.send_signal(signal.SIGINT)
    rest = process.stdout.read()
    process.wait(timeout=30)
    word, steps, pending = rest.split()[-3:]
    assert (word, pending) == ("interrupted", "0")
    assert int(steps) >= 4


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Four worker processes of two threads each."""
    with cluster_of(4, threads=2) as client:
        yield client


@pytest.mark.alone
def test_eight_workers_are_kept_busy(cluster: Any) -> None:
    """A run takes little longer than Dask does for as many measurements that are all known
    beforehand.

    Both bear what else the machine is doing; Dask is timed before and after the run, as that
    changes. With one of the eight workers idle a run takes 10 s and not 8 s, with half of them idle
    16 s.
    """
    a_study().run(hill, steps=10)  # whatever is compiled is compiled
    before = seconds_on_dask_alone(cluster, 64)
    study = a_study()
    begin = time.perf_counter()
    result = study.run(measuring(1.0), steps=64, executor=cluster)
    seconds = time.perf_counter() - begin
    after = seconds_on_dask_alone(cluster, 64)
    assert result.steps == 64
    assert seconds <= 1.3 * max(before, after)


def seconds_on_dask_alone(cluster: Any, steps: int) -> float:
    """Return the time of so many measurements of one second, without a study."""
    points = [{"x": float(step), "y": 0.0} for step in range(steps)]
    begin = time.perf_counter()
    cluster.gather(cluster.map(measuring(1.0), points, pure=False))
    return time.perf_counter() - begin


def test_a_point_is_measured_again_when_it_is_asked_for_again(cluster: Any) -> None:
    def draw(point: dict[str, float]) -> float:
        import random

        return random.gauss(0.0, 1.0)

    study = a_study(domain=tv.Domain.grid(x=[0.0, 1.0]), noise=1.0)
    study.run(draw, steps=12, executor=cluster)
    assert study.measurements["index"].nunique() < study.steps
    assert study.measurements["value"].nunique() == study.steps


def test_an_error_on_a_worker_is_told_of_by_its_own_message(cluster: Any) -> None:
    def broken(point: dict[str, float]) -> float:
        raise ZeroDivisionError("the probe broke")

    study = a_study()
    with pytest.warns(RuntimeWarning, match="continues elsewhere"):  # noqa: SIM117
        with pytest.raises(
            tv.TruvarError,
            match=r"8 measurements in a row failed.*ZeroDivisionError: the probe broke",
        ):
            study.run(broken, steps=50, executor=cluster)
    assert (study.steps, study.pending) == (0, [])


def test_every_measurement_is_accounted_for_when_a_worker_is_killed(cluster: Any) -> None:
    victim = next(iter(cluster.run(os.getpid).values()))
    study = a_study()

    def kill(study: tv.Study) -> None:
        if study.steps == 12:
            os.kill(victim, signal.SIGKILL)

    result = study.run(measuring(0.25), steps=40, executor=cluster, progress=kill)
    assert result.steps == 40
    assert sorted(study.measurements["id"]) == list(range(1, 41))  # each asked for once, told once
    assert study.pending == []
    assert sum(cluster.nthreads().values()) == 6


def test_a_measurement_that_kills_its_worker_is_set_aside(cluster: Any) -> None:
    def deadly(point: dict[str, float]) -> float:
        import os
        import signal

        if point["x"] == point["y"] == 0.0:
            os.kill(os.getpid(), signal.SIGKILL)
        return point["x"]

    study = a_study(start={"x": 0.0, "y": 0.0})
    with pytest.warns(RuntimeWarning, match="KilledWorker"):
        result = study.run(deadly, steps=9, executor=cluster, retries=0)
    assert result.steps == 9
    assert study.pending == []
