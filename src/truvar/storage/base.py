"""Event logs: the protocol, the events, and the names of stored studies.

The state of a study is rebuilt from its event log.

| kind of event | recorded when |
|---|---|
| created | the study began; the details hold the whole problem |
| fitted | the model was fitted to another data set |
| asked | a suggestion was made: point, noise level, cost, and the end of its lease |
| told | a value was measured |
| corrected | the value of an earlier measurement is replaced |
| withdrawn | a suggestion will not be measured, or a measurement is removed |
| expired | the lease of a suggestion ran out |
| exhausted | no candidate had anything left to gain |
| noted | somebody left a remark |
"""

from __future__ import annotations

import getpass
import socket
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Protocol

from truvar._representation import has_control_characters
from truvar.exceptions import InvalidArgumentError
from truvar.messages import for_interface

MAX_NAME_LENGTH = 100  # characters in the name of a new study
MAX_AUTHOR_LENGTH = 200  # characters of the author of an event
# Characters in the name of a stored study; release 0.1.0 created names of this length.
MAX_STORED_NAME_LENGTH = 200


@dataclass(frozen=True)
class Event:
    """A change of a study.

    Attributes:
        number: Position in the event log, counted from 1 without gaps.
        time: Time of the change, in UTC.
        who: Who made it.
        kind: One of the kinds listed at the top of this module.
        details: Python values, including objects: those of "created" hold the domain.
    """

    number: int
    time: datetime
    who: str
    kind: str
    details: dict[str, Any]


@dataclass(frozen=True)
class StudySummary:
    """Counters that are stored with a study, so that a list of studies need not read their events.

    Attributes:
        steps: Number of measurements.
        spent: Total cost of the measurements.
        pending: Number of suggestions that are neither measured nor withdrawn.
    """

    steps: int = 0
    spent: float = 0.0
    pending: int = 0


@dataclass
class Transaction:
    """An exclusive write transaction on an event log.

    Attributes:
        new_events: Events that others appended since the number given to `EventLog.transaction`.
        appended: Events to append. They are stored when the transaction ends, either all of them or
            none.
        summary: Counters of the study after the appended events.
    """

    new_events: Sequence[Event]
    appended: list[Event] = field(default_factory=list)
    summary: StudySummary = StudySummary()


class EventLog(Protocol):
    """Storage of the events of one study.

    `truvar.testing.check_event_log` tests an implementation.
    """

    def since(self, number: int) -> Sequence[Event]:
        """Return the events after that number; 0 gives all of them."""
        ...

    def transaction(self, number: int) -> AbstractContextManager[Transaction]:
        """Return a context manager for an exclusive write transaction.

        Nobody else can write until it ends. If its body raises, nothing is stored and the exception
        propagates.

        Args:
            number: Number of the last event that the caller knows; later ones are the
                `Transaction.new_events`.
        """
        ...


def check_study_name(name: Any) -> str:
    """Return the name of a new study.

    Only new names are checked. A stored study keeps its name, whatever the rules were when it was
    created.

    Raises:
        InvalidArgumentError: If it is not text of 1 to `MAX_NAME_LENGTH` characters, begins or ends
            with a space, contains a line break or another control character, or is "." or "..",
            which a URL cannot contain.
    """
    if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME_LENGTH or name != name.strip():
        remedy = for_interface("give name=...", cli="give --name NAME", http="give another name")
        raise InvalidArgumentError(
            f"a stored study needs a name of 1 to {MAX_NAME_LENGTH} characters without spaces at "
            "its ends, "
            f"got {name!r}; {remedy}"
        )
    if name in (".", "..") or has_control_characters(name):
        raise InvalidArgumentError(
            "the name of a study must not be '.' or '..' and must not contain control characters, "
            f"got {name!a}; "
            "give another name"
        )
    return name


def now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)


def whoami() -> str:
    """Return "user@machine", the default for `Event.who`."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError):  # the user id has no name, as in some containers
        user = "somebody"
    return f"{user}@{socket.gethostname()}"
