"""A server whose PostgreSQL is frozen (SIGSTOP) answers every request in time, and ends when it
is told to."""

from __future__ import annotations

import signal
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from benchmarks.service import server_process
from tests.helpers import postgres as own_postgres
from tests.helpers.server import CURVE, Api

REQUESTS = 24  # at a time: more than the server has threads
MAX_PAGE_SECONDS = 2.0
MAX_ANSWER_SECONDS = 30.0
MAX_END_SECONDS = 10.0


@pytest.mark.slow
def test_a_server_with_a_frozen_database_answers_and_ends() -> None:
    with own_postgres.server() as address:
        url = f"{address}/postgres"
        with server_process(url) as (server, process):
            api = Api(server)
            for name in ("curve", "other"):
                api.create(name, CURVE)
            time.sleep(1.5)  # the tokens are read again by the next request
            with own_postgres.frozen(url):
                with ThreadPoolExecutor(REQUESTS) as threads:
                    waiting = [threads.submit(tell, server, index) for index in range(REQUESTS)]
                    time.sleep(0.5)
                    page_seconds = max(
                        seconds_of(server, path) for path in ("/", "/api", "/", "/api")
                    )
                    answers = [request.result() for request in waiting]
                assert {status for status, _ in answers} == {503}
                slowest = max(seconds for _, seconds in answers)
                print(f"page {page_seconds:.2f} s, slowest answer {slowest:.1f} s")
                assert page_seconds < MAX_PAGE_SECONDS
                assert slowest < MAX_ANSWER_SECONDS
            time.sleep(6)
            assert tell(server, 0)[0] == 200
            with own_postgres.frozen(url), ThreadPoolExecutor(1) as thread:
                request = thread.submit(tell, server, 1)
                time.sleep(0.5)
                began = time.monotonic()
                process.send_signal(signal.SIGTERM)
                process.wait(60)
                ended = time.monotonic() - began
                print(f"ended after {ended:.1f} s")
                assert ended < MAX_END_SECONDS
                assert request.exception() is not None or request.result()[0] >= 500  # cancelled


def tell(server: str, index: int) -> tuple[int, float]:
    """Return the status of the answer, and the seconds that it took."""
    body: dict[str, Any] = {"point": {"x": 0.0}, "y": 1.0, "key": f"sample-number-{index:04}"}
    began = time.monotonic()
    answer = httpx.post(
        f"{server}/api/studies/{('curve', 'other')[index % 2]}/tell", json=body, timeout=120
    )
    return answer.status_code, time.monotonic() - began


def seconds_of(server: str, path: str) -> float:
    began = time.monotonic()
    assert httpx.get(f"{server}{path}", timeout=60).status_code == 200
    return time.monotonic() - began
