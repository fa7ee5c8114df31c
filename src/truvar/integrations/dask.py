"""Connections to Dask clusters."""

from __future__ import annotations

from typing import Any

from truvar.exceptions import ExecutorError, import_optional


def connect(address: str, timeout: float = 10.0, direct: bool = False) -> Any:
    """Connect to a Dask scheduler.

    Args:
        address: Address of the scheduler, such as "tcp://10.0.0.1:8786".
        timeout: Seconds to wait for an answer.
        direct: Whether data are sent to the workers directly and not through the scheduler. The
            workers must be reachable from this machine then.

    Returns:
        A `dask.distributed.Client`.

    Raises:
        ExecutorError: If no scheduler answers.
        MissingDependencyError: If Dask is not installed.

    Example:
        ```python
        with connect("tcp://10.0.0.1:8786") as client:
            study.run(measure, steps=100, executor=client)
        ```
    """
    distributed = import_optional("distributed", "a Dask cluster", "dask")
    try:
        return distributed.Client(address, timeout=timeout, direct_to_workers=direct)
    except (OSError, TimeoutError, ValueError) as error:
        raise ExecutorError(
            f"no Dask scheduler answers at {address!r} ({type(error).__name__}: {error}); start "
            "one with `dask scheduler` and give the address that it prints"
        ) from None
