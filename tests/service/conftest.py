"""Applications of the service inside the test process, and pages in a browser."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from tests.helpers.page import TIMEOUT
from tests.helpers.server import browser

TOKEN = "t" * 20


@pytest.fixture
def application() -> Iterator[Any]:
    """A function that starts an application on a store and returns a client of it."""
    pytest.importorskip("fastapi", reason="needs truvar[service]")
    from starlette.testclient import TestClient

    from truvar.service import ServiceLimits, Tokens
    from truvar.service._app import create_app

    with ExitStack() as stack:

        def start(url: str, **limits: int) -> TestClient:
            app = create_app(url, Tokens(write=(TOKEN,)), ServiceLimits(**limits))
            headers = {"Authorization": f"Bearer {TOKEN}"}
            return stack.enter_context(TestClient(app, headers=headers))

        yield start


@pytest.fixture(scope="module")
def chromium():
    with browser() as instance:
        yield instance


@pytest.fixture
def page_on(chromium, served):
    """Open a page on a device; script errors, dialogs and requests to other servers fail the test.

    `tolerate` is the beginning of messages on the console that the test expects: browsers log every
    refused request.
    """
    api, _ = served
    contexts = []
    problems = []

    def open_page(device, address="#/", tolerate=None, **options):
        def report(message):
            if message.type == "error" and not (tolerate and message.text.startswith(tolerate)):
                problems.append(message.text)

        # A service worker answers requests that a test may want to see; its own test allows it.
        context = chromium.new_context(**{"service_workers": "block", **device, **options})
        context.set_default_timeout(TIMEOUT)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("dialog", lambda dialog: problems.append(f"dialog: {dialog.message}"))
        page.on("console", report)
        page.on(
            "request",
            lambda request: (
                problems.append(request.url) if not _is_own(request.url, api.url) else None
            ),
        )
        page.goto(f"{api.url}/{address}")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert problems == []


def _is_own(url: str, base: str) -> bool:
    return url.startswith((f"{base}/", "blob:"))
