"""Adapters for `multiprocessing.Pool`, `ThreadPool` and `joblib.Parallel` as executors.

They are recognised by what they have, so that nothing here imports the libraries they come from.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import (
    Executor,
    Future,
    InvalidStateError,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
)
from contextlib import suppress
from importlib import import_module
from typing import Any

from truvar.exceptions import ExecutorError, InvalidArgumentError


def as_executor(given: Any) -> tuple[Any, Executor | None]:
    """Return an executor: a pool is adapted, everything else is returned unchanged.

    Returns:
        The executor, and the same again if it was made here, so that it is to be shut down;
        otherwise None.

    Raises:
        InvalidArgumentError: If it is a `joblib.Parallel` whose backend has no executor.
    """
    if given is None or hasattr(given, "submit"):
        return given, None
    if hasattr(given, "apply_async"):
        return PoolExecutor(given), None
    if type(given).__name__ == "Parallel" and type(given).__module__.partition(".")[0] in (
        "joblib",
        "sklearn",
    ):
        return _joblib_executor(given)
    return given, None


class PoolExecutor(Executor):
    """A `multiprocessing.Pool` or `ThreadPool` as an executor, which a run leaves open.

    Such a pool does not notice when one of its processes dies, so that its measurement never ends;
    where that can happen, use a `ProcessPoolExecutor`.

    Args:
        pool: Anything with `apply_async` that takes callbacks.
    """

    def __init__(self, pool: Any) -> None:
        self._pool = pool
        self._max_workers = getattr(
            pool, "_processes", None
        )  # of all pools of the standard library

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Give a call to the pool and return its future.

        Raises:
            ExecutorError: If the pool was closed.
        """
        future: Future[Any] = Future()

        def succeed(value: Any) -> None:
            with suppress(InvalidStateError):  # cancelled meanwhile: nobody waits for the value
                future.set_result(value)

        def fail(error: BaseException) -> None:
            with suppress(InvalidStateError):
                future.set_exception(error)

        try:
            self._pool.apply_async(fn, args, kwargs, callback=succeed, error_callback=fail)
        except ValueError as error:  # "Pool not running"
            raise ExecutorError(
                f"the pool takes no more work ({error}); give one that is open"
            ) from error
        return future


def _joblib_executor(parallel: Any) -> tuple[Any, Executor | None]:
    """Return an executor like the workers that a `joblib.Parallel` would use."""
    backend = parallel._backend
    kind = type(backend).__name__
    count = int(parallel._effective_n_jobs())
    if kind == "LokyBackend":
        return import_module("joblib.externals.loky").get_reusable_executor(max_workers=count), None
    if kind in ("MultiprocessingBackend", "ThreadingBackend", "SequentialBackend"):
        own = (
            ProcessPoolExecutor(count)
            if kind == "MultiprocessingBackend"
            else ThreadPoolExecutor(count)
        )
        return own, own
    client = getattr(backend, "client", None)  # of the backend "dask"
    if hasattr(client, "submit"):
        return client, None
    raise InvalidArgumentError(
        f"a joblib.Parallel must use loky, threading, multiprocessing or dask, got {kind}; give an "
        "executor of that "
        "library instead"
    )
