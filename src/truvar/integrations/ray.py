"""`RayExecutor`: measurements on a Ray cluster, for `study.run(f, executor=...)`."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

from truvar.exceptions import ExecutorError, import_optional


class RayExecutor(Executor):
    """Executor whose calls are Ray tasks. The connection to Ray stays open when a run has ended.

    A task whose process or machine dies is made again by Ray (`max_retries`); after that it counts
    as a failed measurement, which `study.run` makes again or records.

    Args:
        workers: Number of concurrent measurements; default: as many as the processors of the
            cluster allow, counted again as machines come and go.
        **options: Options of the tasks, such as `num_cpus=2`, `num_gpus=1`, `resources={...}` or
            `max_retries=0`.

    Raises:
        ExecutorError: If Ray is not connected.
        MissingDependencyError: If Ray is not installed.

    Example:
        ```python
        import ray

        ray.init()
        study.run(measure, steps=100, executor=RayExecutor(num_cpus=1))
        ```
    """

    def __init__(self, workers: int | None = None, **options: Any) -> None:
        self._ray = import_optional("ray", "RayExecutor", "ray")
        if not self._ray.is_initialized():
            raise ExecutorError(
                "RayExecutor needs a connection to Ray, got none; call ray.init() first"
            )
        self._workers = workers
        self._options = {"num_cpus": 1, **options}
        self._references: dict[Future[Any], Any] = {}

    @property
    def max_workers(self) -> int:
        """Number of measurements that can run concurrently."""
        if self._workers is not None:
            return self._workers
        cpus = float(self._ray.cluster_resources().get("CPU", 1.0))
        return max(1, int(cpus // max(float(self._options["num_cpus"]), 1e-9)))

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Start a task and return its future; cancelling the future cancels the task."""
        task = self._ray.remote(_call).options(**self._options)
        reference = task.remote(fn, args, kwargs)
        future: Future[Any] = reference.future()
        self._references[future] = reference
        future.add_done_callback(self._forget)
        return future

    def _forget(self, future: Future[Any]) -> None:
        reference = self._references.pop(future, None)
        if reference is not None and future.cancelled():
            self._ray.cancel(reference)


def _call(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return fn(*args, **kwargs)
