"""`Sharded` on four Dask workers: the same choices as in one process, also when workers are
killed."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import RBF
from tests.helpers.dask_cluster import cluster_of
from tests.helpers.sharded_studies import GRID, SETTINGS, choices, measure, plain

import truvar as tv
from truvar.exceptions import ExecutorError
from truvar.integrations.sharded import Sharded

pytestmark = pytest.mark.usefixtures("small_cells")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A cluster of four workers. The last two tests of this module kill workers, so their order
    matters."""
    with cluster_of(4) as client:
        yield client


@pytest.mark.parametrize("name", SETTINGS)
def test_four_workers_choose_as_one_machine_does(cluster: Any, name: str) -> None:
    found = choices(name, Sharded(cluster), 10, 2)
    assert plain(choices(name, "lazy", 10, 2)) == found
    assert plain(choices(name, "dense", 10, 2)) == found


def test_shards_are_of_equal_size_and_spread_evenly_over_the_workers(cluster: Any) -> None:
    study = tv.Study(
        GRID,
        tv.Maximize(),
        kernel=RBF(0.2),
        mean=0.0,
        noise=1e-3,
        engine=Sharded(cluster, shards=8),
    )
    study.run(measure, steps=5)
    assert study.engine == "sharded"
    shards: Any = study.policy_context().posterior.factor._shards
    sizes = [part.stop - part.start for part in shards.slices]
    assert (len(sizes), sum(sizes)) == (8, len(GRID))
    assert max(sizes) - min(sizes) <= 1
    assert sorted(map(shards._addresses.count, cluster.nthreads())) == [2, 2, 2, 2]


def test_a_study_continues_unchanged_when_a_worker_is_killed(cluster: Any) -> None:
    domain, goal, settings = SETTINGS["noise levels"]
    alone = tv.Study(domain, goal, mean=0.0, engine="lazy", **settings)
    alone.run(measure, steps=14)
    study = tv.Study(domain, goal, mean=0.0, engine=Sharded(cluster), **settings)
    victim = next(iter(cluster.run(os.getpid).values()))

    def kill(study: tv.Study) -> None:
        if study.steps == 6:
            os.kill(victim, signal.SIGKILL)

    study.run(measure, steps=14, progress=kill)
    assert len(cluster.nthreads()) == 3
    pd.testing.assert_frame_equal(study.measurements, alone.measurements)
    np.testing.assert_allclose(study.result().mean, alone.result().mean, rtol=1e-12, atol=1e-12)


def test_the_loss_of_all_workers_is_reported_and_keeps_the_measurements(cluster: Any) -> None:
    study = tv.Study(
        GRID,
        tv.Maximize(),
        kernel=RBF(0.2),
        mean=0.0,
        noise=1e-3,
        engine=Sharded(cluster, patience=0.5),
    )
    study.run(measure, steps=3)
    for process in cluster.run(os.getpid).values():
        os.kill(process, signal.SIGKILL)
    with pytest.raises(ExecutorError, match=r"no worker for 0\.5 s; start some with `dask worker"):
        study.run(measure, steps=6)
    assert study.steps == 3
