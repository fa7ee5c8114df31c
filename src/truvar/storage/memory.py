"""Event log in memory."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from truvar.storage.base import Event, Transaction
from truvar.storage.forks import Lock, locked_objects


class InMemoryEventLog:
    """Event log that lasts as long as the object.

    A transaction of another thread waits until one has ended.

    Args:
        events: Events to begin with.
    """

    def __init__(self, events: Sequence[Event] = ()) -> None:
        self._events = list(events)
        self._lock = threading.RLock()
        locked_objects.add(self)

    def __reduce__(self) -> Any:
        return InMemoryEventLog, (self._events,)  # a copy has its own lock

    @property
    def fork_lock(self) -> Lock:
        """The lock of transactions."""
        return self._lock

    def unlock_in_child(self) -> None:
        """Replace the lock after a fork.

        The events of a transaction are appended at its end, all or none.
        """
        self._lock = threading.RLock()

    def since(self, number: int) -> Sequence[Event]:
        """Return the events after that number."""
        return self._events[number:]

    @contextmanager
    def transaction(self, number: int) -> Iterator[Transaction]:
        """Append the events of a transaction when it ends without an exception."""
        with self._lock:
            transaction = Transaction(self._events[number:])
            yield transaction
            self._events += transaction.appended
