"""Applications of the service inside the test process."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

TOKEN = "t" * 20


@pytest.fixture
def application() -> Iterator[Any]:
    """A function that starts an application on a store and returns a client of it."""
    pytest.importorskip("fastapi", reason="needs truvar[service]")
    from starlette.testclient import TestClient

    from truvar.service import ServiceLimits, Tokens
    from truvar.service.app import create_app

    with ExitStack() as stack:

        def start(url: str, **limits: int) -> TestClient:
            app = create_app(url, Tokens(write=(TOKEN,)), ServiceLimits(**limits))
            headers = {"Authorization": f"Bearer {TOKEN}"}
            return stack.enter_context(TestClient(app, headers=headers))

        yield start
