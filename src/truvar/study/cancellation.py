"""Cancel a change of a study that nobody waits for any longer.

A change is cancelled between two of its events and before it is stored, so that a cancelled one
leaves no trace.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from truvar.exceptions import ChangeCancelledError

_cancelled: ContextVar[threading.Event | None] = ContextVar("cancelled", default=None)


@contextmanager
def cancellable() -> Iterator[threading.Event]:
    """Yield an event; once it is set, changes of studies that are made in this context raise `ChangeCancelledError`."""
    event = threading.Event()
    token = _cancelled.set(event)
    try:
        yield event
    finally:
        _cancelled.reset(token)


def check_cancelled() -> None:
    """Check whether the change under way is still wanted.

    Raises:
        ChangeCancelledError: If it was cancelled.
    """
    event = _cancelled.get()
    if event is not None and event.is_set():
        raise ChangeCancelledError(
            "the change was cancelled before it was stored; nothing was changed"
        )
