"""Connections that send nothing, or slowly: the server ends them, and they lock nobody out."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="needs truvar[service]")
resource = pytest.importorskip("resource", reason="needs limits of open files")

DESCRIPTORS = 256  # that the server may have open
SILENT = 400  # connections, more than the descriptors
TRICKLED = 60  # connections whose second request never ends
HEADER_SECONDS = 3.0  # of the server under test
LOST_SECONDS = (
    HEADER_SECONDS + 20
)  # until a connection must have ended, on a machine with other work
SCRIPT = (
    "import sys\n"
    "from importlib import import_module\n"
    "from truvar.cli import main\n"
    f"import_module('truvar.service.server').HEADER_SECONDS = {HEADER_SECONDS}\n"
    "sys.exit(main(sys.argv[1:]))\n"
)


@pytest.fixture(scope="module")
def limited_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, Path]]:
    """The port of a server that may open few files, and the file of its log."""
    folder = tmp_path_factory.mktemp("server")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = folder / "log"
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    command = [
        sys.executable,
        "-c",
        SCRIPT,
        "serve",
        "--store",
        f"sqlite:///{folder}/s.db",
        "--port",
        str(port),
    ]
    with open(log, "w") as file:
        resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, hard))  # the server inherits it
        try:
            process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=file, text=True, env=dict(os.environ)
            )
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        assert process.stdout is not None
        try:
            assert "http" in process.stdout.readline()
            assert answer_seconds(port) < 60
            yield port, log
        finally:
            process.kill()
            process.wait()
            process.stdout.close()


def answer_seconds(port: int) -> float:
    """Return how long it takes until a new connection gets an answer; a minute at most."""
    began = time.monotonic()
    while time.monotonic() < began + 60:
        with (
            suppress(OSError),
            socket.create_connection(("127.0.0.1", port), timeout=60) as connection,
        ):
            connection.sendall(b"GET /api HTTP/1.1\r\nHost: localhost\r\n\r\n")
            if connection.recv(12) == b"HTTP/1.1 200":
                break
        time.sleep(0.05)
    return time.monotonic() - began


def count_ended(connections: list[socket.socket], seconds: float) -> int:
    """Return how many connections the server has ended within some seconds."""
    end = time.monotonic() + seconds
    ended = 0
    for connection in connections:
        connection.settimeout(max(0.01, end - time.monotonic()))
        try:
            while connection.recv(4096):
                pass
            ended += 1
        except ConnectionError:
            ended += 1
        except TimeoutError:
            pass
    return ended


def test_silent_connections_do_not_lock_others_out(limited_server: tuple[int, Path]) -> None:
    port, log = limited_server
    with ExitStack() as stack:
        silent = [
            stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            for _ in range(SILENT)
        ]
        longest = max(answer_seconds(port) for _ in range(5))
        ended = count_ended(silent, LOST_SECONDS)
        records = len(log.read_text().splitlines())
        print(
            f"{SILENT} silent connections: answer after {longest:.2f} s, {ended} ended, {records} "
            "lines of log"
        )
        assert longest < 5
        assert ended == SILENT
        assert records < 100


@pytest.mark.parametrize(
    "second",
    [
        b"GET /api HTTP/1.1\r\nX: ",
        b"GET /api HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9000\r\n\r\n",
    ],
    ids=["header", "body nobody reads"],
)
def test_a_second_request_that_never_ends_is_ended(
    limited_server: tuple[int, Path], second: bytes
) -> None:
    port, _ = limited_server
    with ExitStack() as stack:
        kept = [
            stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            for _ in range(TRICKLED)
        ]
        for connection in kept:
            connection.sendall(b"GET /api HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert connection.recv(4096).startswith(b"HTTP/1.1 200")
            connection.sendall(second)
        end = time.monotonic() + HEADER_SECONDS + 2
        while time.monotonic() < end:
            for connection in kept:
                with suppress(OSError):
                    connection.sendall(b"x")
            time.sleep(0.5)
        ended = count_ended(kept, 3.0)
        print(f"{TRICKLED} trickled requests: {ended} ended")
        assert ended == TRICKLED
