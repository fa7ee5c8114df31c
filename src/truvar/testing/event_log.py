"""The laws that every journal keeps.

`check_event_log(open_)` runs a journal through turns that end well and turns that fail, readers who know a part of it,
several writers, and whole studies. `open_(name)` opens the journal of that name, made if there is none: twice the same
name are two ways to the same journal. A law that is broken raises `AssertionError` and says which.
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

Open = Callable[[str], EventLog]
WHEN = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
WRITERS, TURNS = 4, 3


def check_event_log(open_: Open) -> None:
    """All laws, one after the other."""
    for check in (check_turns, check_failure, check_news, check_writers, check_study):
        check(open_)


def check_turns(open_: Open) -> None:
    """What a turn wrote is there once it has ended, in order and to the last bit."""
    event_log = open_("turns")
    _law(list(event_log.since(0)) == [], "a new journal is empty")
    events = [_created(), _noted(2, {"text": "ümlauts", "third": 1 / 3, "never": float("inf"), "none": None})]
    with event_log.transaction(0) as transaction:
        _law(list(transaction.new_events) == [], "a new journal has no news")
        transaction.appended += events
        transaction.summary = StudySummary(0, 0.0, 0)
    for each in (event_log, open_("turns")):
        _law(_same(each.since(0), events), "what was written is read as it was")
        _law(_same(each.since(1), events[1:]), "since(n) has the events after number n")
        _law(list(each.since(2)) == [], "since the last number there is nothing")


def check_failure(open_: Open) -> None:
    """Of a turn that fails nothing is written."""
    event_log = open_("failure")
    _write(event_log, 0, [_created()])
    try:
        with event_log.transaction(1) as transaction:
            transaction.appended.append(_noted(2))
            raise ZeroDivisionError
    except ZeroDivisionError:
        pass
    else:
        raise AssertionError("a journal breaks a law: what fails within a turn is not hidden")
    _law(len(event_log.since(0)) == 1, "a turn that failed has written nothing")
    _write(event_log, 1, [_noted(2)])
    _law(len(event_log.since(0)) == 2, "the next turn is not hindered by one that failed")


def check_news(open_: Open) -> None:
    """A turn begins with what others wrote since."""
    one = open_("news")
    _write(one, 0, [_created()])
    other = open_("news")
    _write(one, 1, [_noted(2), _noted(3)])
    with other.transaction(1) as transaction:
        _law([event.number for event in transaction.new_events] == [2, 3], "a turn begins with what others wrote since")
        transaction.appended.append(_noted(4))
    _law([event.number for event in one.since(3)] == [4], "what others wrote is seen by all")


def check_writers(open_: Open) -> None:
    """Turns are taken one after the other: no number is written twice or left out."""
    _write(open_("writers"), 0, [_created()])

    def write(_: int) -> None:
        event_log = open_("writers")
        for _ in range(TURNS):
            with event_log.transaction(0) as transaction:
                transaction.appended.append(_noted(transaction.new_events[-1].number + 1))

    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(write, range(WRITERS)))
    numbers = [event.number for event in open_("writers").since(0)]
    _law(numbers == list(range(1, WRITERS * TURNS + 2)), "several writers leave no gap and write nothing twice")


def check_study(open_: Open) -> None:
    """A study on it goes as one in memory, and goes on as if it had never been left."""
    memory, kept = _study(), _study(store=open_("study"), name="study")
    for _ in range(3):
        batch = memory.ask(2)
        _law(kept.ask(2) == batch, "a study suggests what one in memory does")
        for suggestion in reversed(batch):
            memory.tell(suggestion, _value(suggestion))
            kept.tell(suggestion, _value(suggestion))
        kept = Study.from_event_log(open_("study"), "study")
    for study in (memory, kept):
        study.correct(2, 0.4)
        study.withdraw(3)
        study.note("the probe was cleaned")
    kept = Study.from_event_log(open_("study"), "study")
    _law(kept.measurements.equals(memory.measurements), "a resumed study has the same measurements")
    _law(kept.history.equals(memory.history), "a resumed study has the same history")
    _law(kept.ask() == memory.ask(), "a resumed study goes on as if it had never been left")


# -- what they are tried on --------------------------------------------------------------------------------------------


def _study(**options: Any) -> Study:
    domain = Domain.grid(x=np.linspace(0, 1, 7), y=np.linspace(0, 2, 5))
    cost = Cost(base=1.0, travel={"x": 0.5})
    return Study(domain, LevelSet(0.3), kernel=Matern(0.4, nu=2.5), mean=0.0, noise=0.01, cost=cost, **options)


def _value(suggestion: Suggestion) -> float:
    return float(np.sin(5 * suggestion.point["x"]) + suggestion.point["y"] / 3)


def _created() -> Event:
    return Event(1, WHEN, "somebody", "created", _study()._state.config.parts())


def _noted(number: int, details: dict[str, Any] | None = None) -> Event:
    return Event(number, WHEN, "somebody", "noted", {"text": f"event {number}"} if details is None else details)


def _write(event_log: EventLog, number: int, events: Sequence[Event]) -> None:
    with event_log.transaction(number) as transaction:
        transaction.appended += events


def _same(found: Sequence[Event], wanted: Sequence[Event]) -> bool:
    """Whether both are written down alike."""
    return [event_to_dict(event) for event in found] == [event_to_dict(event) for event in wanted]


def _law(kept: bool, law: str) -> None:
    if not kept:
        raise AssertionError(f"a journal breaks a law: {law}")
