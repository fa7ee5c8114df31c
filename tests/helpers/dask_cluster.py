"""A Dask cluster on loopback: a scheduler, and worker processes as `dask worker` starts them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from benchmarks.cluster import a_cluster


@contextmanager
def cluster_of(workers: int, threads: int = 1) -> Iterator[Any]:
    """A client of the cluster. A task that kills its worker is not given to another."""
    pytest.importorskip("distributed")
    dask = pytest.importorskip("dask")
    settings = {"distributed.scheduler.allowed-failures": 0, "distributed.comm.timeouts.connect": "20s"}
    with dask.config.set(settings), a_cluster(workers, threads, direct=False) as client:
        yield client
