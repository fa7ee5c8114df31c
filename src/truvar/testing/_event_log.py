"""Contract tests for implementations of `truvar.storage.base.EventLog`.

`check_event_log(open_log)` checks transactions that succeed and transactions that fail, readers
that know only some of the events, concurrent writers, and whole studies. It raises `AssertionError`
with the requirement that is not met.

`open_log(name)` must open the event log of that name and create it if it does not exist. Two calls
with the same name must open the same event log.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Matern

from truvar.domain.costs import Cost
from truvar.domain.domain import Domain
from truvar.domain.goals import LevelSet
from truvar.storage.base import Event, EventLog, StudySummary
from truvar.storage.serialization import event_to_dict
from truvar.study.study import Study
from truvar.study.suggestion import Suggestion

OpenLog = Callable[[str], EventLog]

EVENT_TIME = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
WRITERS = 4  # threads that write at the same time
TRANSACTIONS_PER_WRITER = 3


def check_event_log(open_log: OpenLog) -> None:
    """Run all checks on an event log.

    Args:
        open_log: Opens the event log of a name, and creates it if it does not exist.

    Raises:
        AssertionError: If a requirement is not met.
    """
    for check in (
        check_append,
        check_rollback,
        check_new_events,
        check_concurrent_writers,
        check_study,
    ):
        check(open_log)


def check_append(open_log: OpenLog) -> None:
    """Check that the events of a transaction are stored in order and unchanged."""
    event_log = open_log("append")
    _require(list(event_log.since(0)) == [], "a new event log is empty")
    details = {"text": "ümlauts", "third": 1 / 3, "never": float("inf"), "none": None}
    events = [_created_event(), _note_event(2, details)]
    with event_log.transaction(0) as transaction:
        _require(list(transaction.new_events) == [], "the first transaction has no new events")
        transaction.appended += events
        transaction.summary = StudySummary(0, 0.0, 0)
    for each in (event_log, open_log("append")):
        _require(_equal(each.since(0), events), "stored events are read back unchanged")
        _require(_equal(each.since(1), events[1:]), "since(n) returns the events after number n")
        _require(list(each.since(2)) == [], "since(the last number) returns nothing")


def check_rollback(open_log: OpenLog) -> None:
    """Check that a transaction that fails stores nothing."""
    event_log = open_log("rollback")
    _append(event_log, 0, [_created_event()])
    try:
        with event_log.transaction(1) as transaction:
            transaction.appended.append(_note_event(2))
            raise ZeroDivisionError
    except ZeroDivisionError:
        propagated = True
    else:
        propagated = False
    _require(propagated, "an exception in a transaction propagates")
    _require(len(event_log.since(0)) == 1, "a failed transaction stores nothing")
    _append(event_log, 1, [_note_event(2)])
    _require(len(event_log.since(0)) == 2, "a transaction after a failed one is stored")


def check_new_events(open_log: OpenLog) -> None:
    """Check that a transaction begins with the events that others have appended."""
    one = open_log("new events")
    _append(one, 0, [_created_event()])
    other = open_log("new events")
    _append(one, 1, [_note_event(2), _note_event(3)])
    with other.transaction(1) as transaction:
        numbers = [event.number for event in transaction.new_events]
        _require(numbers == [2, 3], "new_events are the events that others appended since")
        transaction.appended.append(_note_event(4))
    _require(
        [event.number for event in one.since(3)] == [4],
        "events are visible to everybody who opened the log",
    )


def check_concurrent_writers(open_log: OpenLog) -> None:
    """Check that transactions of several threads exclude each other."""
    _append(open_log("writers"), 0, [_created_event()])

    def write(_: int) -> None:
        event_log = open_log("writers")
        for _ in range(TRANSACTIONS_PER_WRITER):
            with event_log.transaction(0) as transaction:
                transaction.appended.append(_note_event(transaction.new_events[-1].number + 1))

    with ThreadPoolExecutor(WRITERS) as executor:
        list(executor.map(write, range(WRITERS)))
    numbers = [event.number for event in open_log("writers").since(0)]
    expected = list(range(1, WRITERS * TRANSACTIONS_PER_WRITER + 2))
    _require(numbers == expected, "concurrent writers store every number once, without gaps")


def check_study(open_log: OpenLog) -> None:
    """Check that a study on the event log continues as in memory, however often reopened."""
    memory = _study()
    stored = _study(store=open_log("study"), name="study")
    for _ in range(3):
        batch = memory.ask(2)
        _require(stored.ask(2) == batch, "a stored study makes the suggestions of one in memory")
        for suggestion in reversed(batch):
            memory.tell(suggestion, _measure(suggestion))
            stored.tell(suggestion, _measure(suggestion))
        stored = Study.from_event_log(open_log("study"), "study")
    for study in (memory, stored):
        study.correct(2, 0.4)
        study.withdraw(3)
        study.note("the probe was cleaned")
    stored = Study.from_event_log(open_log("study"), "study")
    _require(
        stored.measurements.equals(memory.measurements),
        "a reopened study has the same measurements",
    )
    _require(stored.history.equals(memory.history), "a reopened study has the same history")
    _require(stored.ask() == memory.ask(), "a reopened study continues with the same suggestion")


# -- helpers
# --------------------------------------------------------------------------------------------------


def _study(**options: Any) -> Study:
    domain = Domain.grid(x=np.linspace(0, 1, 7), y=np.linspace(0, 2, 5))
    cost = Cost(base=1.0, travel={"x": 0.5})
    return Study(
        domain,
        LevelSet(0.3),
        kernel=Matern(0.4, nu=2.5),
        mean=0.0,
        noise=0.01,
        cost=cost,
        **options,
    )


def _measure(suggestion: Suggestion) -> float:
    return float(np.sin(5 * suggestion.point["x"]) + suggestion.point["y"] / 3)


def _created_event() -> Event:
    return Event(1, EVENT_TIME, "somebody", "created", _study()._state.config.to_details())


def _note_event(number: int, details: dict[str, Any] | None = None) -> Event:
    return Event(number, EVENT_TIME, "somebody", "noted", details or {"text": f"event {number}"})


def _append(event_log: EventLog, number: int, events: Sequence[Event]) -> None:
    with event_log.transaction(number) as transaction:
        transaction.appended += events


def _equal(found: Sequence[Event], expected: Sequence[Event]) -> bool:
    """Return whether two lists of events are serialized alike.

    Arrays have no `==` that gives one Boolean.
    """
    return [event_to_dict(event) for event in found] == [event_to_dict(event) for event in expected]


def _require(met: bool, requirement: str) -> None:
    if not met:
        raise AssertionError(f"the event log does not meet a requirement: {requirement}")
