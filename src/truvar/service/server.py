"""The server process. This module is cheap to import."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from typing import Any

from truvar.exceptions import ServiceError, import_optional
from truvar.messages import for_interface
from truvar.service._auth import Tokens, check_address
from truvar.service._limits import ServiceLimits

DEFAULT_PORT = 8765
_SHUTDOWN_SECONDS = 3  # then streams of live changes, which never end on their own, are cut
_KEEP_ALIVE_SECONDS = 30  # that an idle connection stays open
HEADER_SECONDS = (
    20.0  # from the connection, or the first byte of a further request, to the end of the headers
)
INTERRUPTED = 130  # exit code of a process that Ctrl-C stopped
_BACKLOG = 2048  # connections that wait to be accepted
_ACCEPTED_TOGETHER = 32  # connections that asyncio accepts before it looks at their number
_MAX_CONNECTIONS = 10_000  # of all addresses, where the process may open that many files
_MIN_CONNECTIONS = 16  # however few files the process may open
_RESERVED_DESCRIPTORS = (
    128  # for the store, other processes, files of the page, and connections accepted together
)


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
    from truvar.service._app import create_app
    from truvar.service._preloading import preload

    limits, total = _within_descriptors(limits or ServiceLimits())
    app = create_app(store, tokens, limits)
    check_address(host, bool(tokens) or bool(app.state.sessions.tokens))
    listener = _bind(host, port)
    preload()
    ready()
    config = uvicorn.Config(
        app,
        log_level=log_level,
        server_header=False,
        # the address of a client is that of its connection, whatever headers say
        proxy_headers=False,
        timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        http=_limited_protocol(limits.connections, total),
        ws="none",  # a connection that changes its protocol would not be limited
        backlog=_ACCEPTED_TOGETHER,
        root_path=root_path.rstrip("/"),
    )

    base: Any = uvicorn.Server

    class Server(base):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            listener.listen(
                _BACKLOG
            )  # asyncio has made the queue of the system as short as its own

    try:
        Server(config).run(sockets=[listener])
    except KeyboardInterrupt:
        if (
            app.state.sessions.is_working
        ):  # the interpreter would wait for the threads before it ends
            sys.stderr.flush()
            os._exit(INTERRUPTED)
        raise


def _within_descriptors(limits: ServiceLimits) -> tuple[ServiceLimits, int]:
    """Return the limits, lowered to the open files allowed, and the number of connections.

    A process without free descriptors accepts nobody, cannot open its store and starts no other
    process.
    """
    try:
        from resource import RLIM_INFINITY, RLIMIT_NOFILE, getrlimit
    except ImportError:  # Windows has no such limit
        return limits, _MAX_CONNECTIONS
    descriptors = getrlimit(RLIMIT_NOFILE)[0]
    total = _MAX_CONNECTIONS
    if descriptors != RLIM_INFINITY:
        total = max(_MIN_CONNECTIONS, min(_MAX_CONNECTIONS, descriptors - _RESERVED_DESCRIPTORS))
    connections = min(limits.connections, 3 * total // 4)  # so that no address takes all of them
    streams = min(limits.streams, total // 2)  # so that requests for changes find a connection
    return replace(limits, connections=connections, streams=streams), total


def _limited_protocol(per_address: int, total: int) -> type[Any]:
    """Return Uvicorn's protocol with limits on connections and on the time of a request.

    A connection without a request under way is waiting. If there are too many connections, the
    one that has waited longest is ended and the new one is served: silent connections lock nobody
    out.

    Args:
        per_address: Connections of one address.
        total: Connections of all addresses.
    """
    base: Any = import_module("uvicorn.protocols.http.auto").AutoHTTPProtocol
    counts: Counter[str] = Counter()
    waiting: dict[Any, None] = {}  # ordered: the connection that has waited longest is the first

    class LimitedProtocol(base):
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._address = str((transport.get_extra_info("peername") or ("",))[0])
            self._timer: asyncio.TimerHandle | None = None
            self._is_counted = True
            counts[self._address] += 1
            waiting[self] = None
            self._start_timer()
            if counts[self._address] > per_address:
                self._end_longest_waiting(self._address)
            elif counts.total() > total:
                self._end_longest_waiting()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._update()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            self._update(idle=True)

        def connection_lost(self, exc: Exception | None) -> None:
            self._leave()
            super().connection_lost(exc)

        def _update(self, idle: bool = False) -> None:
            """Time the bytes outside a request under way: headers, or a body that nobody reads."""
            if self.cycle is not None and not self.cycle.response_complete:
                waiting.pop(self, None)
                self._stop_timer()
                return
            waiting[self] = None
            if not idle:  # Uvicorn itself ends an idle connection, but none that has begun to send
                self._start_timer()

        def _start_timer(self) -> None:
            if self._timer is None:  # further bytes give no more time
                self._timer = self.loop.call_later(HEADER_SECONDS, self.transport.abort)

        def _stop_timer(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

        def _end_longest_waiting(self, address: str | None = None) -> None:
            """End the connection that has waited longest; if none waits, this one."""
            found = next((each for each in waiting if address in (None, each._address)), self)
            found.transport.abort()
            found._leave()

        def _leave(self) -> None:
            """Stop counting the connection, once; it may end before its transport closes."""
            waiting.pop(self, None)
            self._stop_timer()
            if self._is_counted:
                self._is_counted = False
                counts[self._address] -= 1
                if counts[self._address] == 0:
                    del counts[self._address]

    return LimitedProtocol


def _bind(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        other = for_interface("another host or port", cli="another --host or --port")
        raise ServiceError(
            f"cannot serve at {host} port {port} ({error.strerror or error}); stop the program "
            "that uses it, or give "
            f"{other}"
        ) from None
