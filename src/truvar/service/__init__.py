"""Studies over HTTP: an API, a page, and a client with the methods of a `Study`.

The server needs FastAPI and Uvicorn (`pip install "truvar[service,store]"`), the client httpx; they are imported only
where they are used.
"""

from __future__ import annotations

from truvar.service.auth import Tokens
from truvar.service.client import RemoteStudy, Server, connect
from truvar.service.limits import ServiceLimits
from truvar.service.server import serve

__all__ = ["RemoteStudy", "Server", "ServiceLimits", "Tokens", "connect", "serve"]
