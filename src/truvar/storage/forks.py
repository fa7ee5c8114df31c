"""Forks of a process whose threads use studies and databases.

A fork copies the locks of all threads, but only the thread that forks. A lock that another thread
holds at that moment, of Python or within the libraries of SQLite and PostgreSQL, is never released
in the child. A fork therefore waits until no other thread uses a study or a database, for some
seconds. If a thread takes longer, its effects are undone in the child, as after an interrupt.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Protocol, TypeVar

T = TypeVar("T")

_MAX_FORK_WAIT = 5.0  # seconds that a fork waits for other threads


class Lock(Protocol):
    """The part of a lock that a fork needs."""

    def acquire(self, blocking: bool = ..., timeout: float = ...) -> bool:
        """Take the lock, and return whether that succeeded."""
        ...

    def release(self) -> None:
        """Release the lock."""
        ...


class _LockedObject(Protocol):
    """An object that threads share by a lock."""

    @property
    def fork_lock(self) -> Lock:
        """The lock, which a thread can take several times."""
        ...

    def unlock_in_child(self) -> None:
        """Replace the lock that a thread of the parent process holds, and undo its changes."""
        ...


class _ConnectedObject(Protocol):
    """An object that has connections to a database."""

    def close_before_fork(self) -> None:
        """Close connections that the child must not have."""
        ...

    def forget_in_child(self) -> None:
        """Forget the connections of the parent."""
        ...


locked_objects: weakref.WeakSet[_LockedObject] = weakref.WeakSet()
connected_objects: weakref.WeakSet[_ConnectedObject] = weakref.WeakSet()

# Taken itself: an interrupt within Condition.__enter__ would leave it taken.
_uses_lock = threading.Lock()
_uses_changed = threading.Condition(_uses_lock)
_uses: Counter[int] = Counter()  # databases in use, by thread
_is_over = threading.Event()  # set unless a thread is about to fork
_is_over.set()
_one_at_a_time = threading.Lock()  # held by the thread that forks
_held: list[_LockedObject] = []  # whose locks the thread that forks has taken
_undo: list[Callable[[], None]] = []  # how the thread that forks undoes its steps, the last first


@contextmanager
def database_use() -> Iterator[None]:
    """Keep other threads from forking while this one uses a database."""
    thread = threading.get_ident()
    with _uses_lock:
        _uses[thread] += 1
    try:
        yield
    finally:
        with _uses_lock:
            _uses[thread] -= 1
            if not _uses[thread]:
                del _uses[thread]
                _uses_changed.notify_all()


def let_fork() -> None:
    """Let a thread that waits to fork take a lock first.

    A lock that is taken again and again is hardly ever free.
    """
    if not _is_over.is_set():
        _is_over.wait(_MAX_FORK_WAIT)


def members(objects: weakref.WeakSet[T]) -> list[T]:
    """Return the members of a set to which other threads may add some meanwhile."""
    while True:
        with suppress(RuntimeError):  # of a set that changed during the iteration
            return list(objects)


def _before_fork() -> None:
    # The interpreter forks also if this raises, so that every step is undone separately afterwards.
    _one_at_a_time.acquire()
    _undo.append(_one_at_a_time.release)
    _is_over.clear()
    _undo.append(_is_over.set)
    try:
        _take_locks(time.monotonic() + _MAX_FORK_WAIT)
    finally:
        _close_connections()


def _take_locks(deadline: float) -> None:
    """Wait until no other thread uses a study or a database, until the deadline at the latest."""
    # The locks of studies come before databases, as in every thread that uses a stored study.
    for shared in members(locked_objects):
        if shared.fork_lock.acquire(timeout=max(0.0, deadline - time.monotonic())):
            _held.append(shared)
            _undo.append(_release_held)
    thread = threading.get_ident()
    _uses_changed.acquire()
    _undo.append(_uses_changed.release)
    _uses_changed.wait_for(lambda: _uses.keys() <= {thread}, max(0.0, deadline - time.monotonic()))


def _close_connections() -> None:
    """Close all connections, also those after one that cannot be closed."""
    with ExitStack() as stack:
        for connected in members(connected_objects):
            stack.callback(connected.close_before_fork)


def _release_held() -> None:
    """Release the lock that was taken last."""
    _held.pop().fork_lock.release()


def _after_in_parent() -> None:
    while _undo:
        _undo.pop()()


def _after_in_child() -> None:
    global _is_over, _one_at_a_time, _uses_changed, _uses_lock
    _undo.clear()
    _one_at_a_time = threading.Lock()
    _is_over = threading.Event()
    _is_over.set()
    _uses_lock = threading.Lock()
    _uses_changed = threading.Condition(_uses_lock)
    for thread in _uses.keys() - {threading.get_ident()}:
        del _uses[thread]
    for connected in members(connected_objects):
        connected.forget_in_child()
    held = {id(shared) for shared in _held}
    for shared in members(locked_objects):
        if id(shared) not in held:
            shared.unlock_in_child()
    while _held:
        _release_held()


os.register_at_fork(
    before=_before_fork, after_in_parent=_after_in_parent, after_in_child=_after_in_child
)
