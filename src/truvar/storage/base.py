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
import json
import socket
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Protocol

from truvar.exceptions import InvalidArgumentError, TruvarError
from truvar.messages import for_interface
from truvar.storage.serialization import deserialize, serialize, to_text

FORMAT = "truvar study 1"  # of a study as text
MAX_NAME_LENGTH = 100  # characters in the name of a new study
MAX_STORED_NAME_LENGTH = 200  # characters in the name of a stored study: release 0.1.0 created names of this length


def check_study_name(name: Any) -> str:
    """Return the name of a new study.

    Only new names are checked. A stored study keeps its name, whatever the rules were when it was created.

    Raises:
        InvalidArgumentError: If it is not text of 1 to `MAX_NAME_LENGTH` characters, begins or ends with a space,
            contains a line break or another control character, or is "." or "..", which a URL cannot contain.
    """
    if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME_LENGTH or name != name.strip():
        remedy = for_interface("give name=...", cli="give --name NAME", http="give another name")
        raise InvalidArgumentError(
            f"a stored study needs a name of 1 to {MAX_NAME_LENGTH} characters without spaces at its ends, "
            f"got {name!r}; {remedy}"
        )
    if name in (".", "..") or any(unicodedata.category(character) in ("Cc", "Cs") for character in name):
        raise InvalidArgumentError(
            f"the name of a study must not be '.' or '..' and must not contain control characters, got {name!r}; "
            "give another name"
        )
    return name


@dataclass(frozen=True)
class Event:
    """What happened, when, and who said so. Numbers count from 1 and leave no gap. Details are Python values, objects
    among them: those of "created" hold the domain."""

    number: int
    time: datetime
    who: str
    kind: str
    details: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        details = serialize(self.details, f"event {self.number} ({self.kind})")
        parts = {"number": self.number, "time": self.time.isoformat(), "who": self.who, "kind": self.kind}
        return {**parts, "details": details}

    @staticmethod
    def from_dict(serialized: Mapping[str, Any]) -> Event:
        """The event that was written down."""
        time = datetime.fromisoformat(serialized["time"])
        return Event(
            int(serialized["number"]), time, serialized["who"], serialized["kind"], deserialize(serialized["details"])
        )


@dataclass(frozen=True)
class StudySummary:
    """Where a study stands, in short: values told, their cost, suggestions pending."""

    steps: int = 0
    spent: float = 0.0
    pending: int = 0


@dataclass
class Transaction:
    """A turn at the journal, during which nobody else writes."""

    new_events: Sequence[Event]  # what others have written since
    written: list[Event] = field(default_factory=list)  # stored when the turn ends, all of it or nothing
    summary: StudySummary = StudySummary()  # after what was written


class EventLog(Protocol):
    """Where events are kept."""

    def since(self, number: int) -> Sequence[Event]:
        """The events after that number."""
        ...

    def transaction(self, number: int) -> AbstractContextManager[Transaction]:
        """A turn to write, for whoever knows the events up to that number."""
        ...


class InMemoryEventLog:
    """A journal that lasts as long as its study."""

    def __init__(self, events: Sequence[Event] = ()) -> None:
        self._events = list(events)

    def since(self, number: int) -> Sequence[Event]:
        return self._events[number:]

    @contextmanager
    def transaction(self, number: int) -> Iterator[Transaction]:
        transaction = Transaction(self._events[number:])
        yield transaction
        self._events += transaction.written


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


# -- a whole journal as text ----------------------------------------------------------------------------------------


def to_json(name: str | None, events: Sequence[Event]) -> str:
    """A study's name and events."""
    return to_text({"format": FORMAT, "name": name, "events": [event.to_dict() for event in events]})


def from_json(text: str) -> tuple[str | None, list[Event]]:
    """The name and the events that `to_json` wrote."""
    try:
        whole = json.loads(text)
        form, name, events = whole["format"], whole["name"], whole["events"]
    except (ValueError, KeyError, TypeError):
        wrote = for_interface("Study.to_json", cli="truvar export --json", http="the export")
        raise TruvarError(
            f"a study as text must be what {wrote} wrote, got {_short(text)}; check what you read"
        ) from None
    if form != FORMAT:
        raise TruvarError(f"the study's format must be {FORMAT!r}, got {form!r}; update truvar")
    try:
        return name, _checked([Event.from_dict(event) for event in events])
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise TruvarError(f"an event of the study {name!r} is damaged: {error!r}; take another copy of it") from None


def _checked(events: list[Event]) -> list[Event]:
    """The events, if none is missing."""
    numbers = [event.number for event in events]
    if not events or events[0].kind != "created" or numbers != list(range(1, len(events) + 1)):
        raise ValueError(f"they must be numbered from 1, the first 'created', but they are {_short(str(numbers))}")
    return events


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:60]}...")
