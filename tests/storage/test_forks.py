"""A process that is forked while its threads use a study: neither the child nor the parent waits
for ever."""

from __future__ import annotations

import os
import signal
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.helpers.problems import KINDS

import truvar as tv
from truvar.storage import forks
from truvar.storage.memory import InMemoryEventLog

FORKS = 6
MAX_SECONDS = 20.0  # that a child may take
pytestmark = pytest.mark.filterwarnings(
    "ignore:.*fork:DeprecationWarning"
)  # of Python 3.12, for threads


def lake(url: str | None) -> tv.Study:
    options = {} if url is None else {"store": url, "name": "lake"}
    study = KINDS["level set with travel"].study(**options)
    study.tell(study.domain.point(0), 0.25)  # what is compiled at the first use is compiled now
    return study


def exit_code_in_child(work: Callable[[], object]) -> int:
    """Run a function in a forked process, and return its exit code; it is killed if it takes too
    long."""
    child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException as error:
            os.write(2, f"in the child: {error!r}\n".encode())
            os._exit(1)
        os._exit(0)
    deadline = time.monotonic() + MAX_SECONDS
    while time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@contextmanager
def thread_that_tells(study: tv.Study) -> Iterator[list[int]]:
    """A thread that tells values all the time; yields the ids that it was given."""
    ids: list[int] = []
    is_over = threading.Event()

    def work() -> None:
        while not is_over.is_set():
            ids.append(study.tell(study.domain.point(len(ids) % 40), 0.25))

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield ids
    finally:
        is_over.set()
        thread.join(MAX_SECONDS)
        assert not thread.is_alive()


def tell_in_child(study: tv.Study) -> None:
    before = study.steps
    study.tell(study.domain.point(41), 0.5)
    assert study.steps > before


def check_forks(study: tv.Study) -> int:
    """Fork while a thread tells, and return the number of values that it told."""
    with thread_that_tells(study) as ids:
        for repetition in range(FORKS):
            time.sleep(0.02 + 0.007 * repetition)
            assert exit_code_in_child(lambda: tell_in_child(study)) == 0
    return len(ids)


def test_a_study_in_memory_can_be_used_after_a_fork() -> None:
    study = lake(None)
    assert study.steps == 1
    told = check_forks(study)
    assert study.steps == 1 + told


def test_a_stored_study_can_be_used_after_a_fork(url: str) -> None:
    study = lake(url)
    told = check_forks(study)
    assert tv.load(url, "lake").steps == 1 + told + FORKS


@pytest.mark.parametrize("is_stored", [False, True])
def test_what_a_slow_thread_had_not_stored_is_undone_in_the_child(
    is_stored: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forks, "_MAX_FORK_WAIT", 0.1)
    study = lake(f"sqlite:///{tmp_path / 'lake.db'}" if is_stored else None)
    is_told = threading.Event()
    is_over = threading.Event()

    def work() -> None:
        with study.transaction():
            study.tell(study.domain.point(1), 0.25)
            is_told.set()
            is_over.wait(MAX_SECONDS)

    def check() -> None:
        assert study.steps == 1

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    assert is_told.wait(MAX_SECONDS)
    assert exit_code_in_child(check) == 0
    is_over.set()
    thread.join(MAX_SECONDS)
    assert study.steps == 2


def test_a_fork_takes_place_while_another_thread_makes_studies(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class GrowingSet(weakref.WeakSet[forks._LockedObject]):
        """A set that another thread adds to while it is iterated over the first time."""

        is_grown = False

        def __iter__(self) -> Iterator[forks._LockedObject]:
            for shared in super().__iter__():
                if not self.is_grown:
                    self.is_grown = True
                    self.add(added)
                yield shared

    added = InMemoryEventLog()
    shared = [InMemoryEventLog(), InMemoryEventLog()]
    monkeypatch.setattr(forks, "locked_objects", GrowingSet(shared))
    assert exit_code_in_child(lambda: None) == 0
    assert not forks._one_at_a_time.locked()


class Unusable:
    """An object whose lock cannot be taken and whose connections cannot be closed."""

    @property
    def fork_lock(self) -> forks.Lock:
        raise RuntimeError("no lock")

    def unlock_in_child(self) -> None:
        pass

    def close_before_fork(self) -> None:
        raise RuntimeError("not closed")

    def forget_in_child(self) -> None:
        pass


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("part", ["locked_objects", "connected_objects"])
def test_a_fork_that_cannot_be_prepared_leaves_no_lock_taken(
    part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    unusable = Unusable()
    other = InMemoryEventLog()
    monkeypatch.setattr(forks, "locked_objects", weakref.WeakSet([other]))
    monkeypatch.setattr(forks, part, weakref.WeakSet([unusable]))
    assert exit_code_in_child(lambda: None) == 0
    assert not forks._one_at_a_time.locked()
    assert not forks._uses_lock.locked()
    assert forks._is_over.is_set()
    assert other.fork_lock.acquire(blocking=False)
    other.fork_lock.release()
    assert exit_code_in_child(lambda: None) == 0
