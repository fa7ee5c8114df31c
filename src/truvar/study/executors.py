"""Adapter for concurrent.futures, loky, Dask and MPI executors, without importing them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from contextlib import suppress
from heapq import heappop, heappush
from queue import Empty, SimpleQueue
from typing import Any

from truvar.exceptions import ExecutorError, InvalidArgumentError
from truvar.study._pools import as_executor
from truvar.validation import check_integer

_HEARTBEAT = 1.0  # seconds after which a wait wakes up, so that Ctrl-C takes effect on every system


class _InlineExecutor(Executor):
    """Executor that measures immediately, in the calling thread."""

    _max_workers = 1

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Call the function; return a finished future."""
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except BaseException as error:  # raised again by `Future.result`
            future.set_exception(error)
        return future


class SimulatedPool:
    """Vehicles that work side by side in simulated time; the first to finish is told first.

    It has the methods of a `WorkerPool`. A cost is taken as the time that a measurement takes.

    Args:
        workers: Number of vehicles.
    """

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._due: list[tuple[float, int, Future[Any], Callable[[], Any]]] = []  # a heap
        self._count = 0

    def submit_until(self, due: float, f: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Schedule a measurement that is finished at a time, and return its future."""
        future: Future[Any] = Future()
        self._count += 1
        heappush(self._due, (due, self._count, future, lambda: f(*arguments)))
        return future

    def wait(self) -> list[Any]:
        """Measure what is finished next; return its future."""
        _, _, future, measure = heappop(self._due)
        try:
            future.set_result(measure())
        except BaseException as error:  # raised again by `Future.result`
            future.set_exception(error)
        return [future]

    def renew(self, error: BrokenExecutor) -> None:
        """Raise the error: there is no pool that could break."""
        raise error

    def close(self) -> None:
        """Do nothing."""


class WorkerPool:
    """The workers of an executor of any kind.

    Args:
        executor: Anything with `submit`, whose futures have `add_done_callback`, `result`, `done`
            and `cancel`; a `multiprocessing.Pool` or `joblib.Parallel`; None measures in the
            calling thread.
        workers: Number of simultaneous measurements; default: the number of workers that the
            executor reports.

    Raises:
        InvalidArgumentError: If the executor has no `submit`, does not report its number of workers
            and none is given, or workers are given without an executor.
    """

    def __init__(self, executor: Any, workers: int | None) -> None:
        executor, own = as_executor(executor)
        if executor is not None and not hasattr(executor, "submit"):
            raise InvalidArgumentError(
                "executor must have a method submit, or be a multiprocessing.Pool or a "
                "joblib.Parallel, got "
                f"{executor!r}; give one such as ThreadPoolExecutor(4)"
            )
        if workers is not None:
            check_integer(workers, "workers", minimum=1)
            if executor is None:
                raise InvalidArgumentError(
                    f"workers={workers} needs an executor, got none; give executor=..."
                )
        self._executor: Any = _InlineExecutor() if executor is None else executor
        self._workers = workers
        self._own: Executor | None = (
            own  # a pool made here, for a `joblib.Parallel` or to replace a broken one
        )
        self._done: SimpleQueue[Any] = SimpleQueue()
        _ = (
            self.workers
        )  # an executor that does not report its workers is refused before the run begins

    @property
    def workers(self) -> int:
        """Number of simultaneous measurements; it changes as workers join and leave a cluster."""
        if self._workers is not None:
            return self._workers
        client = getattr(self._executor, "_client", self._executor)
        if callable(getattr(client, "nthreads", None)):
            return max(1, int(sum(client.nthreads().values())))
        for name in ("_max_workers", "max_workers", "num_workers"):
            count = getattr(self._executor, name, None)
            if isinstance(count, int) and count > 0:
                return count
        raise InvalidArgumentError(
            f"the executor {self._executor!r} does not report its number of workers; give it, for "
            "example workers=8"
        )

    def submit(self, f: Callable[..., Any], *arguments: Any) -> Any:
        """Submit a call and return its future.

        Raises:
            ExecutorError: If the executor accepts no more work.
            BrokenExecutor: If it broke since the last call.
        """
        # Dask returns the same future for two calls with equal arguments, but a measurement may be
        # repeated.
        options = {"pure": False} if hasattr(self._executor, "nthreads") else {}
        try:
            future = self._executor.submit(f, *arguments, **options)
        except BrokenExecutor:
            raise
        except RuntimeError as error:
            raise ExecutorError(
                f"the executor takes no more work ({error}); give one that is open"
            ) from error
        future.add_done_callback(self._done.put)
        return future

    def wait(self) -> list[Any]:
        """Wait for at least one future; return all that finished since the last call."""
        done: list[Any] = []
        while not done or not self._done.empty():
            with suppress(Empty):
                done.append(self._done.get(timeout=_HEARTBEAT))
        return done

    def renew(self, error: BrokenExecutor) -> None:
        """Replace a broken pool by a new one with the same options.

        Raises:
            ExecutorError: If an executor of this kind cannot be made again here.
        """
        old = self._executor
        module: Any = sys.modules.get(type(old).__module__)
        if type(old) is ProcessPoolExecutor:
            self.close()
            options = ("max_workers", "mp_context", "initializer", "initargs")
            self._own = ProcessPoolExecutor(**{name: getattr(old, f"_{name}") for name in options})
            self._executor = self._own
        elif hasattr(
            module, "get_reusable_executor"
        ):  # loky's executor is shared, so that it is not closed here
            self._executor = module.get_reusable_executor(max_workers=old._max_workers)
        else:
            raise ExecutorError(
                f"the executor {old!r} broke ({error}); earlier measurements are kept: run again "
                "with a new one"
            ) from error

    def close(self) -> None:
        """Shut down the pool that was made here, if any."""
        if self._own is not None:
            self._own.shutdown(wait=False, cancel_futures=True)
