"""A factor that is divided into shards gives the same choices as one that is not, also after shards
were lost.

The shards are in this process here; tests/stress/test_sharded_cluster.py has them in other
processes and kills these.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, Kernel
from tests.helpers.sharded_studies import GRID, MORE, SETTINGS, choices, measure, plain

import truvar as tv
from truvar._typing import Array
from truvar.engines.lazy import Lazy
from truvar.exceptions import InvalidArgumentError
from truvar.integrations.sharded import History, Job, Shard, Sharded, ShardedFactor

pytestmark = pytest.mark.usefixtures("small_cells")


# -- in this process
# --------------------------------------------------------------------------------------------------


class LocalShards:
    """An engine whose factor is divided into shards in this process.

    Args:
        shards: Number of shards.
        lossy: Whether one shard after the other is lost and rebuilt, at every 13th call.
    """

    def __init__(self, shards: int = 4, lossy: bool = False) -> None:
        self.shards = shards
        self.lossy = lossy
        self.lost = 0
        self.calls: list[str] = []

    def __call__(self, posterior: Any, domain: tv.Domain) -> Lazy:
        return Lazy(posterior, domain)

    def factor(self, kernel: Kernel, sites: Array) -> ShardedFactor:
        edges = np.linspace(0, len(sites), self.shards + 1).astype(int)
        slices = [slice(*pair) for pair in pairwise(edges.tolist())]

        def make(number: int) -> Shard:
            shard = Shard()
            shard.initialize(kernel, sites[slices[number]])
            return shard

        made = [make(number) for number in range(self.shards)]

        class Shards:
            def __init__(self) -> None:
                self.slices: Sequence[slice] = slices

            def call(shards, method: str, jobs: Sequence[Job], history: History) -> list[Any]:
                self.calls.append(method)
                if self.lossy and len(self.calls) % 13 == 0:
                    self.lost += 1
                    number = self.lost % len(made)
                    made[number] = make(number)
                    for missed, arguments in history(number):
                        made[number].call(missed, arguments)
                return [made[number].call(method, arguments) for number, arguments in jobs]

        return ShardedFactor(sites, Shards())


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("name", SETTINGS | MORE)
def test_shards_choose_as_the_lazy_engine_does(name: str, batch: int) -> None:
    steps = 6 if name == "theorem" else 24
    expected = plain(choices(name, "lazy", steps, batch))
    assert len(expected) >= 6
    engine = LocalShards()
    assert expected == choices(name, engine, steps, batch)
    if name in SETTINGS:
        assert {"append", "at", "inner", "combine", "sums_of", "bound_gaps_of"} <= set(engine.calls)


@pytest.mark.parametrize("name", SETTINGS)
def test_shards_choose_as_the_dense_engine_does(name: str) -> None:
    assert plain(choices(name, "dense", 20)) == choices(name, LocalShards(3), 20)


@pytest.mark.parametrize("name", SETTINGS)
def test_lost_shards_are_rebuilt(name: str) -> None:
    engine = LocalShards(lossy=True)
    assert plain(choices(name, "lazy", 24, 2)) == choices(name, engine, 24, 2)
    assert engine.lost >= 4


@pytest.mark.parametrize("policy", ["auto", "truvar"])
def test_all_sites_can_be_scored(policy: str) -> None:
    studies = [
        tv.Study(
            GRID,
            tv.LevelSet(0.5),
            kernel=RBF(0.2),
            mean=0.0,
            noise=1e-3,
            policy=policy,
            engine=engine,
        )
        for engine in ("lazy", LocalShards(5))
    ]
    for study in studies:
        study.run(measure, steps=8)
    np.testing.assert_allclose(studies[0].gains(), studies[1].gains(), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(studies[0].result().upper, studies[1].result().upper, rtol=1e-12)


# -- on a Dask cluster
# -------------------------------------------------------------------------------------------------


def test_two_dask_workers_choose_as_one_machine_does() -> None:
    distributed = pytest.importorskip("distributed")
    expected = plain(choices("level set", "lazy", 6, 2))
    options = {
        "n_workers": 2,
        "threads_per_worker": 1,
        "processes": False,
        "dashboard_address": None,
    }
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        assert expected == choices("level set", Sharded(client), 6, 2)


def test_sharded_needs_a_dask_client() -> None:
    with pytest.raises(
        InvalidArgumentError, match=r"Sharded needs a dask.distributed.Client, got 'tcp:"
    ):
        Sharded("tcp://127.0.0.1:8786")
