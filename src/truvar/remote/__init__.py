"""Studies on a server, with the methods of a `Study`."""

from __future__ import annotations

from truvar._names import offer

__all__, __getattr__, __dir__ = offer(
    __name__,
    {
        "client": ("Server", "connect"),
        "study": ("RemoteStudy",),
    },
)
