"""Studies over HTTP: an API, a web page, and a client with the methods of a `Study`.

The server needs FastAPI and Uvicorn (`pip install "truvar[service,store]"`), the client needs
httpx. Names are imported on first use, so that `truvar.service.server` stays cheap to import.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from truvar._names import offer

if TYPE_CHECKING:
    from truvar.remote.client import Server as Server
    from truvar.remote.client import connect as connect
    from truvar.remote.study import RemoteStudy as RemoteStudy
    from truvar.service._auth import Tokens as Tokens
    from truvar.service._limits import ServiceLimits as ServiceLimits
    from truvar.service.server import serve as serve

__all__, __getattr__, __dir__ = offer(
    __name__,
    {
        "_auth": ("Tokens",),
        "_limits": ("ServiceLimits",),
        "serializers": ("encode", "posterior_slice", "view"),
        "server": ("DEFAULT_PORT", "serve"),
    },
    elsewhere={
        "RemoteStudy": "truvar.remote.study",
        "Server": "truvar.remote.client",
        "connect": "truvar.remote.client",
    },
)
