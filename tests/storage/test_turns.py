"""Threads of one process take turns at the write lock of an SQLite file, in the order in which
they come."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from truvar.storage import _turns as turns
from truvar.storage._turns import Turns, turns_at


def test_threads_get_their_turns_in_the_order_in_which_they_came() -> None:
    queue = Turns()
    order: list[int] = []

    def work(k: int) -> None:
        with queue.turn():
            order.append(k)
            time.sleep(0.01)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    with queue.turn():
        for thread in threads:
            thread.start()
            time.sleep(0.02)
        assert order == []
    for thread in threads:
        thread.join(10)
    assert order == list(range(6))


def test_a_thread_that_has_the_turn_does_not_wait_for_itself() -> None:
    queue = Turns()
    began = time.monotonic()
    with queue.turn(), queue.turn():
        pass
    with queue.turn():
        pass
    assert time.monotonic() - began < 5


def test_a_turn_that_is_never_ended_delays_the_others_and_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(turns, "TURN_SECONDS", 0.2)
    queue = Turns()
    queue._wait(-1)  # a thread that was interrupted at the one moment that leaves its turn behind
    began = time.monotonic()
    with queue.turn():
        assert 0.1 < time.monotonic() - began < 5


def test_a_file_has_one_queue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert turns_at(Path("a.db")) is turns_at(tmp_path / "a.db")
    assert turns_at(Path("a.db")) is not turns_at(Path("b.db"))
