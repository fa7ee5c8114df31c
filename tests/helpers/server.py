"""Problems, a checked HTTP client and a browser for the tests of the service."""

from __future__ import annotations

import shutil
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


def store_url(path: Path) -> str:
    return f"sqlite:///{path}"
