"""Slow choices of a server: killed, left by their client, and under way when the server is told
to end."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.choices import BATCH, CORNER, SLOW, children, running_server, wait_until

import truvar as tv

httpx = pytest.importorskip("httpx", reason="needs truvar[service]")
pytestmark = pytest.mark.alone


def test_a_process_that_is_killed_costs_one_answer(tmp_path: Path) -> None:
    with running_server(f"sqlite:///{tmp_path}/s.db") as (url, process):
        httpx.post(url, json={"name": "s", "problem": SLOW}, timeout=60).raise_for_status()
        refused: list[Any] = []
        asking = threading.Thread(
            target=lambda: refused.append(httpx.post(f"{url}/s/ask", json={"n": BATCH}, timeout=60))
        )
        asking.start()
        assert wait_until(lambda: bool(children(process.pid)))
        time.sleep(0.5)
        os.kill(children(process.pid)[0], signal.SIGKILL)
        asking.join(30)
        assert refused[0].status_code == 503
        assert refused[0].json()["exception"] == "ChoiceFailedError"
        answer = httpx.post(f"{url}/s/ask", json={}, timeout=60)
        assert answer.status_code == 200
        assert [each["id"] for each in answer.json()["suggestions"]] == [1]


def test_a_choice_is_given_up_when_its_client_leaves(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/s.db"
    with running_server(store) as (url, process):
        httpx.post(url, json={"name": "s", "problem": SLOW}, timeout=60).raise_for_status()
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(f"{url}/s/ask", json={"n": BATCH}, timeout=httpx.Timeout(30, read=4))
        assert wait_until(lambda: children(process.pid) == [], 10)
        told = httpx.post(f"{url}/s/tell", json={"point": CORNER, "y": 0.5}, timeout=20)
        assert told.json()["steps"] == 1
        assert httpx.get(f"{url}/s/status", timeout=60).json()["pending"] == []


def test_sigterm_ends_a_slow_choice_within_ten_seconds_and_loses_nothing(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/s.db"
    with running_server(store) as (url, process):
        httpx.post(url, json={"name": "s", "problem": SLOW}, timeout=60).raise_for_status()
        asked: list[Any] = []

        def ask() -> None:
            try:
                asked.append(httpx.post(f"{url}/s/ask", json={"n": BATCH}, timeout=120).status_code)
            except httpx.HTTPError as error:
                asked.append(error)

        asking = threading.Thread(target=ask)
        asking.start()
        assert wait_until(lambda: bool(children(process.pid)))
        (worker,) = children(process.pid)
        told = [0.25 * k for k in range(8)]
        for value in told:  # a slow choice keeps nobody from telling
            body = {"point": {"x": 0.0, "y": 0.0}, "y": value}
            httpx.post(f"{url}/s/tell", json=body, timeout=20).raise_for_status()
        assert asked == []
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=30)
        assert time.monotonic() - began < 10
        assert wait_until(lambda: not Path(f"/proc/{worker}").exists(), 5)
        asking.join(30)
        assert asked != [200]
    study = tv.load(store, "s")
    assert study.measurements["value"].tolist() == told
    assert study.pending == []
