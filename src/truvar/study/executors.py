"""Executors of any kind behind one face: how many workers there are, handing out, waiting, and a new one for one that
broke. Nothing here imports the libraries they come from."""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any

from truvar.exceptions import TruvarError
from truvar.validation import check_integer

HEARTBEAT = 1.0  # seconds after which a wait looks up, so that Ctrl-C is heard on every system


class Inline(Executor):
    """Measures at once, in this thread."""

    _max_workers = 1

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except BaseException as error:  # raised again by whoever asks for the result
            future.set_exception(error)
        return future


class WorkerPool:
    """An executor of any kind. Its futures need `add_done_callback`, `result`, `done` and `cancel`, as Dask's have."""

    def __init__(self, executor: Any, workers: int | None) -> None:
        if executor is not None and not hasattr(executor, "submit"):
            raise TruvarError(f"executor must have a method submit, got {executor!r}; give a ThreadPoolExecutor, say")
        if workers is not None:
            check_integer(workers, "workers", minimum=1)
            if executor is None:
                raise TruvarError(f"workers={workers} needs an executor to work in, but none was given; give one")
        self._executor: Any = Inline() if executor is None else executor
        self._workers = workers
        self._own: Executor | None = None  # made to replace one that broke
        self._done: SimpleQueue[Any] = SimpleQueue()
        _ = self.workers  # refused now, or never

    @property
    def workers(self) -> int:
        """How many measurements can run at once, now: workers of a Dask cluster come and go."""
        if self._workers is not None:
            return self._workers
        client = getattr(self._executor, "_client", self._executor)
        if callable(getattr(client, "nthreads", None)):
            return max(1, int(sum(client.nthreads().values())))
        for name in ("_max_workers", "max_workers", "num_workers"):
            count = getattr(self._executor, name, None)
            if isinstance(count, int) and count > 0:
                return count
        raise TruvarError(
            f"the executor {self._executor!r} does not say how many workers it has; give their number, for example "
            "workers=8"
        )

    def submit(self, f: Callable[..., Any], *arguments: Any) -> Any:
        # Dask takes two calls with the same arguments for one, but a measurement can be repeated
        options = {"pure": False} if hasattr(self._executor, "nthreads") else {}
        try:
            future = self._executor.submit(f, *arguments, **options)
        except BrokenExecutor:
            raise
        except RuntimeError as error:
            raise TruvarError(f"the executor takes no more work ({error}); give one that is open") from error
        future.add_done_callback(self._done.put)
        return future

    def wait(self) -> list[Any]:
        """All that is done and was not yet given; at least one."""
        done: list[Any] = []
        while not done or not self._done.empty():
            with suppress(Empty):
                done.append(self._done.get(timeout=HEARTBEAT))
        return done

    def renew(self, error: BrokenExecutor) -> None:
        """A new pool like the one that broke."""
        old = self._executor
        maker: Any = sys.modules.get(type(old).__module__)
        if type(old) is ProcessPoolExecutor:
            self.close()
            names = ("max_workers", "mp_context", "initializer", "initargs")
            self._executor = self._own = ProcessPoolExecutor(**{name: getattr(old, f"_{name}") for name in names})
        elif hasattr(maker, "get_reusable_executor"):  # loky's, which is shared: not ours to close
            self._executor = maker.get_reusable_executor(max_workers=old._max_workers)
        else:
            raise TruvarError(
                f"the executor {old!r} broke ({error}); what was told is kept: run again with a new one"
            ) from error

    def close(self) -> None:
        if self._own is not None:
            self._own.shutdown(wait=False, cancel_futures=True)
