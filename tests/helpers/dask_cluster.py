"""A Dask cluster on this machine: a scheduler and worker processes as `dask worker` starts them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest


@contextmanager
def cluster_of(workers: int, threads: int = 1) -> Iterator[Any]:
    """Yield a client of a new cluster. A task that kills its worker is not given to another one.

    Args:
        workers: Number of worker processes.
        threads: Threads per worker.
    """
    pytest.importorskip("distributed")
    dask = pytest.importorskip("dask")
    from benchmarks.cluster import a_cluster

    settings = {
        "distributed.scheduler.allowed-failures": 0,
        "distributed.comm.timeouts.connect": "20s",
    }
    with dask.config.set(settings), a_cluster(workers, threads, direct=False) as client:
        yield client
