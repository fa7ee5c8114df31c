"""Connections that send nothing: the server ends them, and one address cannot take all of them."""

from __future__ import annotations

import socket
import time
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="needs truvar[service]")


def test_silent_connections_do_not_lock_others_out(tmp_path: Path) -> None:
    import httpx
    from benchmarks.service import server

    with server(f"sqlite:///{tmp_path}/s.db") as url:
        port = int(url.rpartition(":")[2])
        silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(600)]
        try:
            end = time.monotonic() + 60
            status = 0
            while status != 200 and time.monotonic() < end:
                try:
                    status = httpx.get(f"{url}/api", timeout=30).status_code
                except httpx.HTTPError:  # as long as the address has too many connections
                    time.sleep(0.5)
            assert status == 200
            for connection in silent:
                connection.settimeout(30)
                try:
                    assert connection.recv(1) == b""
                except ConnectionResetError:
                    continue
        finally:
            for connection in silent:
                connection.close()
