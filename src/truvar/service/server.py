"""The server process. This module is cheap to import."""

from __future__ import annotations

import os
import socket
import sys
from collections import Counter
from collections.abc import Callable
from importlib import import_module
from typing import Any

from truvar.exceptions import ServiceError, import_optional
from truvar.messages import for_interface
from truvar.service.auth import Tokens, check_address
from truvar.service.limits import ServiceLimits

DEFAULT_PORT = 8765
SHUTDOWN_SECONDS = 3  # then streams of live changes, which never end by themselves, are cut
KEEP_ALIVE_SECONDS = 30  # that an idle connection stays open
HEADER_SECONDS = 20.0  # from the connection to the end of the first request's headers
INTERRUPTED = 130  # exit code of a process that Ctrl-C stopped
BACKLOG = 2048  # connections that wait to be accepted


def serve(
    store: str,
    host: str = "127.0.0.1",
    port: int = DEFAULT_PORT,
    tokens: Tokens | None = None,
    limits: ServiceLimits | None = None,
    log_level: str = "warning",
    ready: Callable[[], object] = lambda: None,
    root_path: str = "",
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
        root_path: Path below which a reverse proxy serves this server, such as "/truvar".

    Raises:
        InvalidArgumentError: If the address needs a token.
        ServiceError: If the address cannot be bound.
        MissingDependencyError: If FastAPI or Uvicorn is not installed.
    """
    tokens = tokens or Tokens()
    uvicorn = import_optional("uvicorn", "the server", "service")
    import_optional("fastapi", "the server", "service")
    from truvar.service.app import create_app
    from truvar.service.preloading import preload

    limits = limits or ServiceLimits()
    app = create_app(store, tokens, limits)
    check_address(host, bool(tokens) or bool(app.state.sessions.tokens))
    listener = _bind(host, port)
    preload()
    ready()
    config = uvicorn.Config(
        app,
        log_level=log_level,
        server_header=False,
        proxy_headers=False,  # the address of a client is that of its connection, whatever headers say
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        http=_limited_protocol(limits.connections),
        root_path=root_path.rstrip("/"),
    )
    try:
        uvicorn.Server(config).run(sockets=[listener])
    except KeyboardInterrupt:
        if app.state.sessions.is_working:  # the interpreter would wait for the threads before it ends
            sys.stderr.flush()
            os._exit(INTERRUPTED)
        raise


def _limited_protocol(connections: int) -> type[Any]:
    """Return Uvicorn's protocol with a limit on the connections of one address and on the time that headers take.

    Args:
        connections: Connections of one address.
    """
    base: Any = import_module("uvicorn.protocols.http.auto").AutoHTTPProtocol
    counts: Counter[str] = Counter()

    class LimitedProtocol(base):
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._address = str((transport.get_extra_info("peername") or ("",))[0])
            counts[self._address] += 1
            self._timer = self.loop.call_later(HEADER_SECONDS, self._end_if_silent)
            if counts[self._address] > connections:
                transport.abort()

        def connection_lost(self, exc: Exception | None) -> None:
            self._timer.cancel()
            counts[self._address] -= 1
            if counts[self._address] <= 0:
                del counts[self._address]
            super().connection_lost(exc)

        def _end_if_silent(self) -> None:
            if self.cycle is None:  # no request has been complete so far, not even its headers
                self.transport.abort()

    return LimitedProtocol


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
