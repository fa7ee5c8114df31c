"""Turns of the threads of one process at the write lock of an SQLite file.

SQLite has no queue for its write lock: everybody tries again and again. The threads of one process
take turns before they try, so that one of them at a time does, in the order in which they came.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

TURN_SECONDS = 30.0  # that a thread waits for its turn; then it tries without one


class Turns:
    """A lock that is given to waiting threads in the order in which they came."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._owner: int | None = None
        self._waiting: deque[tuple[int, threading.Event]] = deque()

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait for the turn of this thread, and have it until the context ends.

        A thread that has the turn already, or that waits for very long, goes on without: SQLite
        decides then.
        """
        thread = threading.get_ident()
        try:
            self._wait(thread)
            yield
        finally:
            self._end(thread)

    def _wait(self, thread: int) -> None:
        with self._guard:
            if self._owner is None or self._owner == thread:
                self._owner = thread
                return
            called = threading.Event()
            self._waiting.append((thread, called))
        called.wait(TURN_SECONDS)

    def _end(self, thread: int) -> None:
        with self._guard:
            self._waiting = deque(each for each in self._waiting if each[0] != thread)
            if self._owner != thread:
                return
            self._owner = None
            if self._waiting:
                self._owner, called = self._waiting.popleft()
                called.set()


_by_path: dict[Path, Turns] = {}
os.register_at_fork(after_in_child=_by_path.clear)  # the threads of the parent are not in the child


def turns_at(path: Path) -> Turns:
    """Return the turns of this process at a file."""
    return _by_path.setdefault(path.absolute(), Turns())
