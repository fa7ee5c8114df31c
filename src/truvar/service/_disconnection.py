"""Give up the work for a client that has left."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from fastapi import HTTPException, Request

T = TypeVar("T")
CLIENT_CLOSED_REQUEST = 499  # status in the log; the client does not see it


async def while_connected(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Return the result of `work`, which is cancelled if the client closes the connection.

    Args:
        request: The request, whose body has been read.
        work: The work.

    Raises:
        HTTPException: If the client has left.
    """
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(_closed(request))
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        raise HTTPException(
            CLIENT_CLOSED_REQUEST, "the client closed the connection; nothing was changed"
        )
    finally:
        working.cancel()
        leaving.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)


async def _closed(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
