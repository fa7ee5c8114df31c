"""Threads for independent tiles of work.

Tiles are taken from one queue by whichever thread is free, and small work stays in the calling
thread. No tile is split between threads, so a thread that the system suspends delays its own tile
and nothing else. The environment variable `TRUVAR_THREADS` sets the number of threads; the default
is the number of processors this process may use.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any

# matrix entries; a pass over fewer takes under 5 ms and is not worth a thread
MIN_ENTRIES = 10_000_000


def thread_count() -> int:
    """Return how many threads may be used."""
    given = os.environ.get("TRUVAR_THREADS", "")
    if given.isdigit() and int(given) > 0:
        return int(given)
    return available_processors()


def available_processors() -> int:
    """Return the number of processors that this process may use."""
    # Linux only: a process may be restricted to some of the processors
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def tiles(count: int, size: int) -> list[slice]:
    """Return slices of at most `size` that cover the numbers from 0 to `count`."""
    return [slice(start, min(start + size, count)) for start in range(0, count, size)]


def run_tiles(work: Callable[[slice], object], parts: Iterable[slice], entries: int) -> None:
    """Call `work` with every tile, in threads if there is enough to do.

    Args:
        work: Function of one tile. It must release the GIL to gain from threads.
        parts: Slices of the whole, see `tiles`.
        entries: Number of matrix entries in all tiles together.
    """
    threads = thread_count()
    if threads == 1 or entries < MIN_ENTRIES:
        for part in parts:
            work(part)
        return
    for _ in _pool(threads).map(work, parts):
        pass


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="truvar")


@contextmanager
def blas_in_one_thread() -> Iterator[None]:
    """Limit BLAS to one thread, so that products inside tiles start no further threads."""
    with _libraries().limit(limits=1, user_api="blas"):
        yield


@cache
def _libraries() -> Any:
    from threadpoolctl import ThreadpoolController  # comes with scikit-learn

    return ThreadpoolController()
