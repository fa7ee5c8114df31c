"""The server as a process."""

from __future__ import annotations

import socket
from collections.abc import Callable

from truvar.exceptions import TruvarError, import_optional
from truvar.messages import for_interface
from truvar.service.auth import Tokens, check_address
from truvar.service.limits import ServiceLimits

PORT = 8765


def serve(
    store: str,
    host: str = "127.0.0.1",
    port: int = PORT,
    tokens: Tokens | None = None,
    limits: ServiceLimits | None = None,
    log_level: str = "warning",
    ready: Callable[[], object] = lambda: None,
) -> None:
    """Serves a store until it is told to stop. An address that others can reach needs a token. `ready` is called once
    the address is ours; whoever comes before all is loaded waits."""
    tokens = tokens or Tokens()
    check_address(host, tokens)
    uvicorn = import_optional("uvicorn", "the server", "service")
    import_optional("fastapi", "the server", "service")
    from truvar.service.app import create_app

    app = create_app(store, tokens, limits)
    listening = _listening(host, port)
    ready()
    settings = uvicorn.Config(
        app,
        log_level=log_level,
        server_header=False,
        proxy_headers=False,  # whom a request comes from is what the connection says
        timeout_graceful_shutdown=3,  # streams of live changes never end by themselves
        timeout_keep_alive=30,
    )
    uvicorn.Server(settings).run(sockets=[listening])


def _listening(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        other = for_interface("another host or port", cli="another --host or --port")
        raise TruvarError(
            f"{host} port {port} cannot be served at ({error.strerror or error}); end what is there, or give {other}"
        ) from None
