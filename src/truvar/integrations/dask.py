"""Dask clusters: how to reach one."""

from __future__ import annotations

from typing import Any

from truvar.exceptions import TruvarError, import_optional


def connect(address: str, timeout: float = 10.0, direct: bool = False) -> Any:
    """A `dask.distributed.Client` of the scheduler at an address such as "tcp://10.0.0.1:8786", or what is wrong.

    `direct`: what is sent to the workers takes no detour over the scheduler; they must be reachable from here.
    """
    distributed = import_optional("distributed", "a Dask cluster", "dask")
    try:
        return distributed.Client(address, timeout=timeout, direct_to_workers=direct)
    except (OSError, TimeoutError, ValueError) as error:
        raise TruvarError(
            f"no Dask scheduler answers at {address!r} ({type(error).__name__}: {error}); start one with "
            "`dask scheduler`, and give the address that it prints"
        ) from None
