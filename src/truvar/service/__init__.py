"""Studies over HTTP: an API, a web page, and a client with the methods of a `Study`.

The server needs FastAPI and Uvicorn (`pip install "truvar[service,store]"`), the client needs
httpx. Names are imported on first use, so that `truvar.service.server` stays cheap to import.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from truvar._names import lazy_getattr

if TYPE_CHECKING:
    from truvar.remote.client import Server, connect
    from truvar.remote.study import RemoteStudy
    from truvar.service._auth import Tokens
    from truvar.service._limits import ServiceLimits
    from truvar.service.server import serve

__all__ = ["RemoteStudy", "Server", "ServiceLimits", "Tokens", "connect", "serve"]

_MODULES = {
    "RemoteStudy": "truvar.remote.study",
    "Server": "truvar.remote.client",
    "ServiceLimits": "truvar.service._limits",
    "Tokens": "truvar.service._auth",
    "connect": "truvar.remote.client",
    "serve": "truvar.service.server",
}

__getattr__ = lazy_getattr(__name__, _MODULES)
