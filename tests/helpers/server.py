"""Problems, a checked HTTP client and a browser for the tests of the service."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

GRID = """
[domain]
grid = {x = [0, 1, 12], y = [0, 1, 10]}
[goal]
level_set = 0.2
[model]
kernel = "rbf"
lengthscales = [0.3, 0.3]
variance = 1.0
mean = 0.0
[noise]
variance = 1e-3
"""

CURVE = """
[domain]
grid = {x = [0, 1, 30]}
[goal]
maximize = true
[model]
kernel = "rbf"
lengthscales = [0.2]
variance = 1.0
mean = 0.0
[noise]
variance = 1e-3
"""


class Api:
    """HTTP client of a server that checks the status of every answer."""

    def __init__(self, url: str, token: str | None = None) -> None:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self.url = url
        self.http = httpx.Client(base_url=f"{url}/api", headers=headers, timeout=60)
        weakref.finalize(self, self.http.close)

    def get(self, path: str, status: int = 200) -> Any:
        return self._checked(self.http.get(f"{self.url}/api{path}"), status)

    def post(self, path: str, body: Any, status: int = 200) -> Any:
        return self._checked(self.http.post(f"{self.url}/api{path}", json=body), status)

    def create(self, name: str, problem: str = GRID, **more: Any) -> Any:
        return self.post("/studies", {"name": name, "problem": problem, **more}, 201)

    def _checked(self, answer: httpx.Response, status: int) -> Any:
        assert answer.status_code == status, answer.text
        return answer.json()


@contextmanager
def browser() -> Iterator[Any]:
    """Yield a headless Chromium, or skip the test."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("needs Chromium: apt install chromium")
    quiet = ["background-networking", "component-update", "sync", "quic", "gpu"]
    arguments = ["--no-sandbox", "--no-first-run", *(f"--disable-{name}" for name in quiet)]
    with playwright.sync_playwright() as tool:
        chromium = tool.chromium.launch(executable_path=path, args=arguments)
        try:
            yield chromium
        finally:
            chromium.close()


class RestartableServer:
    """A server process on one port that can be stopped and started again.

    Args:
        store: URL of its store.
        environment: Further environment variables.
    """

    def __init__(self, store: str, environment: dict[str, str] | None = None) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        self.url = f"http://127.0.0.1:{self.port}"
        self._store = store
        self._environment = {**os.environ, **(environment or {})}
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        options = ["--store", self._store, "--port", str(self.port)]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "truvar", "serve", *options],
            env=self._environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + 60
        while True:
            assert self._process.poll() is None, "the server ended"
            assert time.monotonic() < deadline, "the server did not start"
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                time.sleep(0.05)

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


@contextmanager
def restartable_server(
    store: str, environment: dict[str, str] | None = None
) -> Iterator[RestartableServer]:
    """Yield a running server that can be stopped and started again."""
    pytest.importorskip("fastapi", reason="needs truvar[service]")
    server = RestartableServer(store, environment)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def store_url(path: Path) -> str:
    return f"sqlite:///{path}"
