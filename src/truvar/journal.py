"""A study's journal: the events that it is the fold of, in memory or (`store.py`) in a database.

| kind | what happened |
|---|---|
| created | the study began; in a database, with the whole problem |
| fitted | the model was learned from another data set |
| asked | a suggestion was made: where, how, at what price, and until when it is reserved |
| told | a value was measured |
| corrected | a value told before was wrong |
| withdrawn | a suggestion will not be measured, or a measurement is taken back |
| expired | the lease of a suggestion ran out |
| exhausted | nothing was left to ask for |
| noted | a remark |
"""

from __future__ import annotations

import getpass
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Protocol

from truvar.spelling import read, spell


@dataclass(frozen=True)
class Event:
    """What happened, when, and who said so. Numbers count from 1 and leave no gap. Details are Python values, objects
    among them: those of "created" hold the domain."""

    number: int
    time: datetime
    who: str
    kind: str
    details: dict[str, Any]

    def spelled(self) -> dict[str, Any]:
        """As JSON values."""
        details = spell(self.details, f"event {self.number} ({self.kind})")
        parts = {"number": self.number, "time": self.time.isoformat(), "who": self.who, "kind": self.kind}
        return {**parts, "details": details}

    @staticmethod
    def read(spelled: Mapping[str, Any]) -> Event:
        """The event that was written down."""
        time = datetime.fromisoformat(spelled["time"])
        return Event(int(spelled["number"]), time, spelled["who"], spelled["kind"], read(spelled["details"]))


@dataclass
class Turn:
    """A turn at the journal, during which nobody else writes."""

    news: Sequence[Event]  # what others have written since
    written: list[Event] = field(default_factory=list)  # stored when the turn ends, all of it or nothing


class Journal(Protocol):
    """Where events are kept."""

    def since(self, number: int) -> Sequence[Event]:
        """The events after that number."""
        ...

    def turn(self, number: int) -> AbstractContextManager[Turn]:
        """A turn to write, for whoever knows the events up to that number."""
        ...


class Memory:
    """A journal that lasts as long as its study."""

    def __init__(self, events: Sequence[Event] = ()) -> None:
        self._events = list(events)

    def since(self, number: int) -> Sequence[Event]:
        return self._events[number:]

    @contextmanager
    def turn(self, number: int) -> Iterator[Turn]:
        turn = Turn(self._events[number:])
        yield turn
        self._events += turn.written


def now() -> datetime:
    """The time that events carry."""
    return datetime.now(UTC)


def whoami() -> str:
    """The user and the machine."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError):  # a user without a name, as in some containers
        user = "somebody"
    return f"{user}@{socket.gethostname()}"
