"""Threads that cannot hurt: tiles are taken from one queue by whoever is free, and small work stays in one thread.

No tile is ever split between threads, so a thread that the machine holds up delays its own tile and nothing else.
`TRUVAR_THREADS` sets their number; default: the processors this process may use.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any

SMALL = 10_000_000  # matrix entries; a pass over fewer takes under 5 ms


def thread_count() -> int:
    """How many threads may be used."""
    given = os.environ.get("TRUVAR_THREADS", "")
    if given.isdigit() and int(given) > 0:
        return int(given)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_tiles(work: Callable[[slice], object], tiles: Iterable[slice], entries: int) -> None:
    """Does the work for every tile; `entries` is how many matrix entries it is in all."""
    threads = thread_count()
    if threads == 1 or entries < SMALL:
        for tile in tiles:
            work(tile)
        return
    for _ in _pool(threads).map(work, tiles):
        pass


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="truvar")


@contextmanager
def blas_in_one_thread() -> Iterator[None]:
    """Keeps the matrix products inside tiles from starting threads of their own."""
    with _libraries().limit(limits=1, user_api="blas"):
        yield


@cache
def _libraries() -> Any:
    from threadpoolctl import ThreadpoolController  # comes with scikit-learn

    return ThreadpoolController()
