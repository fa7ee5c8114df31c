"""The event logs of truvar meet the contract, and the contract tests detect an event log that
does not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from threading import Lock
from time import sleep
from typing import Any, ClassVar

import pytest
from tests.helpers.problems import KINDS

import truvar as tv
from truvar.storage.base import Event, Transaction, now
from truvar.storage.memory import InMemoryEventLog
from truvar.storage.rdb import RDBEventLog, RDBStorage
from truvar.testing import check_event_log
from truvar.testing._event_log import check_append, check_new_events, check_rollback, check_study


def test_the_event_log_in_a_database_meets_the_contract(url: str) -> None:
    KINDS["at random"].study(store=url, name="the first")  # creates the tables

    def open_log(name: str) -> RDBEventLog:
        storage = RDBStorage(url)
        return storage.find_event_log(name) or storage.create_study(name)

    check_event_log(open_log)


@pytest.mark.parametrize("check", [check_append, check_rollback, check_new_events, check_study])
def test_the_event_log_in_memory_meets_the_contract_for_one_writer(
    check: Callable[..., None],
) -> None:
    logs: dict[str, InMemoryEventLog] = {}
    check(lambda name: logs.setdefault(name, InMemoryEventLog()))


# -- event logs that break one requirement each
# ------------------------------------------------------------------------


class SharedEventLog:
    """An event log in memory that meets the contract. Its subclasses do not."""

    def __init__(self, events: list[Event], lock: Lock) -> None:
        self.events = events
        self.lock = lock

    def since(self, number: int) -> Sequence[Event]:
        return self.events[number:]

    @contextmanager
    def transaction(self, number: int) -> Iterator[Transaction]:
        with self.lock:
            transaction = Transaction(self.since(number))
            yield transaction
            self.store(transaction)

    def store(self, transaction: Transaction) -> None:
        self.events += transaction.appended


class WithEventsOfItsOwn(SharedEventLog):
    def since(self, number: int) -> Sequence[Event]:
        return self.events[number:] or [Event(1, now(), "somebody", "noted", {})]


class WithNewEventsInTheFirstTransaction(SharedEventLog):
    @contextmanager
    def transaction(self, number: int) -> Iterator[Transaction]:
        with super().transaction(number) as transaction:
            transaction.new_events = transaction.new_events or [Event(1, now(), "", "noted", {})]
            yield transaction


class StoringOnlyTheFirstEvent(SharedEventLog):
    def store(self, transaction: Transaction) -> None:
        self.events += transaction.appended[:1]


class ChangingNumbers(SharedEventLog):
    """Stores floats with six digits."""

    def store(self, transaction: Transaction) -> None:
        self.events += [
            replace(event, details=rounded(event.details)) for event in transaction.appended
        ]


class CountingFromZero(SharedEventLog):
    def since(self, number: int) -> Sequence[Event]:
        return self.events[max(0, number - 1) :]


class RepeatingTheLastEvent(SharedEventLog):
    def since(self, number: int) -> Sequence[Event]:
        return self.events[number:] or self.events[-1:]


class HidingExceptions(SharedEventLog):
    @contextmanager
    def transaction(self, number: int) -> Iterator[Transaction]:
        try:
            with super().transaction(number) as transaction:
                yield transaction
        except ZeroDivisionError:
            pass


class StoringFailedTransactions(SharedEventLog):
    @contextmanager
    def transaction(self, number: int) -> Iterator[Transaction]:
        transaction = Transaction(self.since(number))
        try:
            yield transaction
        finally:
            self.store(transaction)


class UnusableAfterAFailure(SharedEventLog):
    failed = False

    @contextmanager
    def transaction(self, number: int) -> Iterator[Transaction]:
        transaction = Transaction(self.since(number))
        try:
            yield transaction
        except ZeroDivisionError:
            self.failed = True
            raise
        if not self.failed:
            self.store(transaction)


class WithoutNewEvents(SharedEventLog):
    @contextmanager
    def transaction(self, number: int) -> Iterator[Transaction]:
        with super().transaction(number) as transaction:
            transaction.new_events = []
            yield transaction


class CachingEvents(SharedEventLog):
    """Reads the events once and then knows only its own."""

    def __init__(self, events: list[Event], lock: Lock) -> None:
        super().__init__(events, lock)
        self.known = list(events)

    def since(self, number: int) -> Sequence[Event]:
        return self.known[number:]

    @contextmanager
    def transaction(self, number: int) -> Iterator[Transaction]:
        with self.lock:
            transaction = Transaction(self.events[number:])
            yield transaction
            self.store(transaction)
            self.known = list(self.events)


class WithoutALock(SharedEventLog):
    @contextmanager
    def transaction(self, number: int) -> Iterator[Transaction]:
        transaction = Transaction(self.since(number))
        yield transaction
        sleep(0.01)  # another thread reads the same events in the meantime
        self.store(transaction)


class WithAnotherGoal(SharedEventLog):
    def since(self, number: int) -> Sequence[Event]:
        return (
            changed_problem(self.events, goal=tv.Maximize())[number:]
            if self.is_study
            else self.events[number:]
        )

    @property
    def is_study(self) -> bool:
        return any(event.kind == "told" for event in self.events)


class LosingCorrections(SharedEventLog):
    def since(self, number: int) -> Sequence[Event]:
        return [
            event if event.kind != "corrected" else as_note(event) for event in self.events[number:]
        ]


class ChangingTheProblemAfterANote(SharedEventLog):
    change: ClassVar[dict[str, Any]]

    def since(self, number: int) -> Sequence[Event]:
        finished = any(
            event.details.get("text") == "the probe was cleaned" for event in self.events
        )
        return (
            changed_problem(self.events, **self.change)[number:]
            if finished
            else self.events[number:]
        )


class WithAnotherPolicyAfterANote(ChangingTheProblemAfterANote):
    change: ClassVar = {"policy": tv.TruVaR(beta=tv.ConstantBeta(9.0))}


class WithAnotherCostAfterANote(ChangingTheProblemAfterANote):
    change: ClassVar = {"cost": tv.Cost(base=2.0)}


def rounded(details: Any) -> Any:
    if isinstance(details, dict):
        return {key: rounded(item) for key, item in details.items()}
    return float(f"{details:.6g}") if isinstance(details, float) else details


def changed_problem(events: Sequence[Event], **change: Any) -> list[Event]:
    return [replace(events[0], details=events[0].details | change), *events[1:]]


def as_note(event: Event) -> Event:
    return replace(event, kind="noted", details={"text": ""})


def opener(log_class: type[SharedEventLog]) -> Callable[[str], SharedEventLog]:
    """Return the function that `check_event_log` takes, for event logs of this class."""
    logs: dict[str, tuple[list[Event], Lock]] = {}
    return lambda name: log_class(*logs.setdefault(name, ([], Lock())))


def test_the_event_log_that_the_broken_ones_are_made_of_meets_the_contract() -> None:
    check_event_log(opener(SharedEventLog))


@pytest.mark.parametrize(
    ("broken", "requirement"),
    [
        (WithEventsOfItsOwn, "a new event log is empty"),
        (WithNewEventsInTheFirstTransaction, "the first transaction has no new events"),
        (StoringOnlyTheFirstEvent, "stored events are read back unchanged"),
        (ChangingNumbers, "stored events are read back unchanged"),
        (CountingFromZero, r"since\(n\) returns the events after number n"),
        (RepeatingTheLastEvent, r"since\(the last number\) returns nothing"),
        (HidingExceptions, "an exception in a transaction propagates"),
        (StoringFailedTransactions, "a failed transaction stores nothing"),
        (UnusableAfterAFailure, "a transaction after a failed one is stored"),
        (WithoutNewEvents, "new_events are the events that others appended since"),
        (CachingEvents, "events are visible to everybody"),
        (WithoutALock, "concurrent writers store every number once"),
        (WithAnotherGoal, "a stored study makes the suggestions of one in memory"),
        (LosingCorrections, "a reopened study has the same measurements"),
        (WithAnotherPolicyAfterANote, "a reopened study has the same history"),
        (WithAnotherCostAfterANote, "a reopened study continues with the same suggestion"),
    ],
)
def test_a_broken_event_log_is_detected(broken: type[SharedEventLog], requirement: str) -> None:
    with pytest.raises(AssertionError, match=requirement):
        check_event_log(opener(broken))


# -- studies on an event log of the caller
# -----------------------------------------------------------------------------


def test_a_new_study_needs_an_empty_event_log() -> None:
    event_log = InMemoryEventLog()
    study = KINDS["at random"].study(store=event_log, name="mine")
    suggestion = study.ask()
    assert tv.Study.from_event_log(event_log, "mine").pending == [suggestion]
    with pytest.raises(tv.TruvarError, match="a new study needs an empty"):
        KINDS["at random"].study(store=event_log)
    copy = InMemoryEventLog()
    again = tv.Study.from_json(study.to_json(), store=copy)
    assert again.pending == [suggestion]
    assert len(copy.since(0)) == len(event_log.since(0)) == 2
