"""A proxy on loopback that cuts the connection to PostgreSQL at a COMMIT."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Literal
from urllib.parse import urlsplit

Cut = Literal["before", "after"]


class CommitProxy:
    """Forwards connections to a server.

    Args:
        host: Host of the server.
        port: Its port.

    Attributes:
        port: Port of the proxy.
        cut: Whether the next COMMIT of an event cuts its connection before it is forwarded, or
            after the server has answered it; None: neither.
    """

    def __init__(self, host: str, port: int) -> None:
        self._server = (host, port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.cut: Cut | None = None
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._server)
                muted = threading.Event()
                threading.Thread(
                    target=self._to_server, args=(client, server, muted), daemon=True
                ).start()
                threading.Thread(
                    target=self._to_client, args=(client, server, muted), daemon=True
                ).start()

    def _to_server(
        self, client: socket.socket, server: socket.socket, muted: threading.Event
    ) -> None:
        with suppress(OSError), client, server:
            has_written = False
            while data := client.recv(65_536):
                has_written |= b"INSERT INTO truvar_events" in data
                if self.cut is not None and has_written and b"COMMIT" in data:
                    cut = self.cut
                    self.cut = None
                    if cut == "after":
                        muted.set()
                        server.sendall(data)
                        while muted.is_set():  # until the server has answered
                            threading.Event().wait(0.01)
                    server.shutdown(socket.SHUT_RDWR)
                    client.shutdown(socket.SHUT_RDWR)
                    return
                has_written &= b"COMMIT" not in data
                server.sendall(data)

    def _to_client(
        self, client: socket.socket, server: socket.socket, muted: threading.Event
    ) -> None:
        with suppress(OSError):
            while data := server.recv(65_536):
                if muted.is_set():
                    muted.clear()
                    return
                client.sendall(data)
            client.shutdown(socket.SHUT_RDWR)


@contextmanager
def commit_proxy(url: str) -> Iterator[tuple[CommitProxy, str]]:
    """A proxy to the server of a URL, and the URL through it."""
    parts = urlsplit(url)
    proxy = CommitProxy(parts.hostname or "127.0.0.1", parts.port or 5432)
    try:
        yield proxy, parts._replace(netloc=f"{parts.username}@127.0.0.1:{proxy.port}").geturl()
    finally:
        proxy.close()
