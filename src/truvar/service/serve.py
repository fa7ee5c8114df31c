"""The server as a process."""

from __future__ import annotations

from truvar.errors import optional
from truvar.service.access import Tokens, check_address
from truvar.service.limits import Limits

PORT = 8765


def serve(
    store: str,
    host: str = "127.0.0.1",
    port: int = PORT,
    tokens: Tokens | None = None,
    limits: Limits | None = None,
    log_level: str = "warning",
) -> None:
    """Serves a store until it is told to stop. An address that others can reach needs a token."""
    tokens = tokens or Tokens()
    check_address(host, tokens)
    uvicorn = optional("uvicorn", "the server", "service")
    optional("fastapi", "the server", "service")
    from truvar.service.app import create_app

    app = create_app(store, tokens, limits)
    uvicorn.run(
        app,
        host=host,
        port=port,
        log_level=log_level,
        server_header=False,
        proxy_headers=False,  # whom a request comes from is what the connection says
        timeout_graceful_shutdown=3,  # streams of live changes never end by themselves
        timeout_keep_alive=30,
    )
