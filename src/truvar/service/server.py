"""The server process. This module is cheap to import."""

from __future__ import annotations

import socket
from collections.abc import Callable

from truvar.exceptions import ServiceError, import_optional
from truvar.messages import for_interface
from truvar.service.auth import Tokens, check_address
from truvar.service.limits import ServiceLimits

DEFAULT_PORT = 8765
SHUTDOWN_SECONDS = 3  # then streams of live changes, which never end by themselves, are cut
KEEP_ALIVE_SECONDS = 30  # that an idle connection stays open
BACKLOG = 2048  # connections that wait to be accepted


def serve(
    store: str,
    host: str = "127.0.0.1",
    port: int = DEFAULT_PORT,
    tokens: Tokens | None = None,
    limits: ServiceLimits | None = None,
    log_level: str = "warning",
    ready: Callable[[], object] = lambda: None,
) -> None:
    """Serve the studies of a store until the process is stopped.

    Args:
        store: URL of the store; it is created if it does not exist.
        host: Address to serve at. One that other machines can reach needs a token.
        port: Port to serve at.
        tokens: Tokens to accept; None: requests of this machine alone.
        limits: Largest requests to accept; None: the defaults.
        log_level: Level of the server's log, such as "info".
        ready: Called as soon as the address is bound; connections are accepted from then on.

    Raises:
        InvalidArgumentError: If the address needs a token.
        ServiceError: If the address cannot be bound.
        MissingDependencyError: If FastAPI or Uvicorn is not installed.
    """
    tokens = tokens or Tokens()
    check_address(host, tokens)
    uvicorn = import_optional("uvicorn", "the server", "service")
    import_optional("fastapi", "the server", "service")
    from truvar.service.app import create_app

    app = create_app(store, tokens, limits)
    listener = _bind(host, port)
    ready()
    config = uvicorn.Config(
        app,
        log_level=log_level,
        server_header=False,
        proxy_headers=False,  # the address of a client is that of its connection, whatever headers say
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
    )
    uvicorn.Server(config).run(sockets=[listener])


def _bind(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        other = for_interface("another host or port", cli="another --host or --port")
        raise ServiceError(
            f"cannot serve at {host} port {port} ({error.strerror or error}); stop the program that uses it, or give "
            f"{other}"
        ) from None
