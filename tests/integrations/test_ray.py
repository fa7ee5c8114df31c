"""Measurements on Ray. Ray is large and no part of the test set-up: these tests run where it is
installed."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

import truvar as tv
from truvar.exceptions import ExecutorError

pytest.importorskip("ray", reason="needs truvar[ray]")

import ray

from truvar.integrations.ray import RayExecutor


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    ray.init(
        num_cpus=2, include_dashboard=False, object_store_memory=80_000_000, log_to_driver=False
    )
    yield
    ray.shutdown()


def a_study() -> tv.Study:
    axis = np.linspace(0, 1, 8)
    return tv.Study(
        tv.Domain.grid(x=axis, y=axis), tv.Maximize(), kernel=RBF(0.3), mean=0.0, noise=0.01
    )


def test_without_a_connection_the_message_says_how_to_make_one() -> None:
    with pytest.raises(ExecutorError, match=r"call ray.init\(\) first"):
        RayExecutor()


@pytest.mark.usefixtures("cluster")
def test_measurements_run_in_the_processes_of_the_cluster() -> None:
    here = os.getpid()

    def measure(point: dict[str, float]) -> float:
        import os

        return math.sin(5 * point["x"]) + math.cos(3 * point["y"]) + 10 * (os.getpid() == here)

    executor = RayExecutor()
    assert executor.max_workers == 2
    assert RayExecutor(num_cpus=2).max_workers == 1
    result = a_study().run(measure, steps=6, executor=executor)
    assert result.steps == 6
    assert result.best_observed is not None
    assert result.best_observed.value < 5  # none was measured in this process


@pytest.mark.usefixtures("cluster")
@pytest.mark.filterwarnings("ignore:the measurement at")
def test_failures_and_dead_processes_are_recorded() -> None:
    def measure(point: dict[str, float]) -> float:
        import os

        if point["x"] < 0.1:
            os._exit(1)
        if point["y"] < 0.1:
            raise RuntimeError("no signal")
        return point["x"]

    study = a_study()
    study.run(measure, steps=4, executor=RayExecutor(max_retries=0), retries=0, max_failures=30)
    assert study.steps == 4
    assert not study.pending
    assert all(failure.reason for failure in study.failures)
