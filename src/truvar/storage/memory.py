"""Event log in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from truvar.storage.base import Event, Transaction


class InMemoryEventLog:
    """Event log that lasts as long as the object. It has no lock, so it is for one thread at a time.

    Args:
        events: Events to begin with.
    """

    def __init__(self, events: Sequence[Event] = ()) -> None:
        self._events = list(events)

    def since(self, number: int) -> Sequence[Event]:
        """Return the events after that number."""
        return self._events[number:]

    @contextmanager
    def transaction(self, number: int) -> Iterator[Transaction]:
        """Append the events of a transaction when it ends without an exception."""
        transaction = Transaction(self._events[number:])
        yield transaction
        self._events += transaction.appended
