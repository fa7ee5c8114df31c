"""Runs on pools that are no executors: of multiprocessing and of joblib."""

from __future__ import annotations

import math
import multiprocessing
import time
from multiprocessing.pool import ThreadPool
from typing import Any

import joblib
import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

import truvar as tv
from truvar.exceptions import ExecutorError, InvalidArgumentError
from truvar.study.executors import WorkerPool


def a_study() -> tv.Study:
    axis = np.linspace(0, 1, 8)
    return tv.Study(
        tv.Domain.grid(x=axis, y=axis), tv.Maximize(), kernel=RBF(0.3), mean=0.0, noise=0.01
    )


def hill(point: dict[str, float]) -> float:
    return math.sin(5 * point["x"]) + math.cos(3 * point["y"])


def fails_on_the_left(point: dict[str, float]) -> float:
    if point["x"] < 0.2:
        raise RuntimeError("no signal")
    return hill(point)


def test_a_pool_of_threads_measures_side_by_side_and_stays_open() -> None:
    running = []

    def measure(point: dict[str, float]) -> float:
        running.append(1)
        time.sleep(0.05)
        at_once.append(len(running))
        running.pop()
        return hill(point)

    at_once: list[int] = []
    study = a_study()
    with ThreadPool(3) as pool:
        result = study.run(measure, steps=9, executor=pool)
        assert result.steps == 9
        assert max(at_once) > 1
        assert pool.apply(len, ([1, 2],)) == 2


@pytest.mark.filterwarnings("ignore:the measurement at")
def test_a_pool_of_processes_measures_and_its_failures_are_recorded() -> None:
    study = a_study()
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        study.run(fails_on_the_left, steps=4, executor=pool, retries=0, max_failures=20)
    assert study.steps == 4
    assert all("no signal" in str(failure.reason) for failure in study.failures)
    assert not study.pending


def test_a_closed_pool_is_refused_and_nothing_stays_pending() -> None:
    study = a_study()
    pool = ThreadPool(2)
    pool.terminate()
    with pytest.raises(ExecutorError, match="takes no more work"):
        study.run(hill, steps=3, executor=pool)
    assert not study.pending


@pytest.mark.parametrize(
    "options", [{"backend": "threading", "n_jobs": 3}, {"backend": "loky", "n_jobs": 2}]
)
def test_a_joblib_parallel_measures_with_its_own_kind_of_workers(options: dict[str, Any]) -> None:
    parallel = joblib.Parallel(**options)
    pool = WorkerPool(parallel, None)
    assert pool.workers == options["n_jobs"]
    pool.close()
    assert a_study().run(hill, steps=5, executor=parallel).steps == 5


def test_a_sequential_parallel_is_one_worker_and_other_backends_are_refused() -> None:
    assert WorkerPool(joblib.Parallel(n_jobs=1), None).workers == 1
    parallel = joblib.Parallel(n_jobs=2, backend="threading")
    parallel._backend = type("OtherBackend", (type(parallel._backend),), {})()
    with pytest.raises(
        InvalidArgumentError, match="must use loky, threading, multiprocessing or dask, got Other"
    ):
        WorkerPool(parallel, None)


def test_what_is_no_pool_is_refused() -> None:
    with pytest.raises(
        InvalidArgumentError, match=r"or be a multiprocessing.Pool or a joblib.Parallel, got 4"
    ):
        a_study().run(hill, steps=1, executor=4)
