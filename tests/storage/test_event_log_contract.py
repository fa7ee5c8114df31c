"""Every journal keeps the laws of `truvar.testing`, and one that breaks a law is found out."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.helpers.problems import KINDS

import truvar as tv
from truvar.storage.base import Event, Transaction
from truvar.storage.memory import InMemoryEventLog
from truvar.storage.rdb import RDBEventLog, RDBStorage
from truvar.testing import check_event_log
from truvar.testing.event_log import check_failure, check_news, check_study, check_turns, check_writers


def test_a_stored_journal_keeps_the_laws(url: str) -> None:
    KINDS["at random"].study(store=url, name="the first")  # makes the tables

    def open_(name: str) -> RDBEventLog:
        database = RDBStorage(url)
        return database.find_event_log(name) or database.create_study(name)

    check_event_log(open_)


@pytest.mark.parametrize("check", [check_turns, check_failure, check_news, check_study])
def test_the_journal_in_memory_keeps_the_laws_of_one_writer(check) -> None:
    kept: dict[str, InMemoryEventLog] = {}
    check(lambda name: kept.setdefault(name, InMemoryEventLog()))


class Shared:
    """A journal of one's own, without a lock; with faults to be found."""

    events: dict[str, list[Event]]

    def __init__(self, name: str, everything: dict[str, list[Event]], fault: str) -> None:
        self.events, self.fault = everything.setdefault(name, []), fault

    def since(self, number: int) -> list[Event]:
        return self.events[number + (self.fault == "skips") :]

    @contextmanager
    def transaction(self, number: int) -> Iterator[Transaction]:
        transaction = Transaction([] if self.fault == "no news" else self.events[number:])
        try:
            yield transaction
        except Exception:
            if self.fault == "swallows":
                return
            if self.fault == "keeps":
                self.events += transaction.appended
            raise
        self.events += transaction.appended[:1] if self.fault == "forgets" else transaction.appended


@pytest.mark.parametrize(
    ("fault", "check", "law"),
    [
        ("skips", check_turns, "read as it was"),
        ("forgets", check_turns, "read as it was"),
        ("no news", check_news, "what others wrote since"),
        ("keeps", check_failure, "has written nothing"),
        ("swallows", check_failure, "is not hidden"),
    ],
)
def test_a_journal_that_breaks_a_law_is_found_out(fault, check, law) -> None:
    everything: dict[str, list[Event]] = {}
    with pytest.raises(AssertionError, match=law):
        check(lambda name: Shared(name, everything, fault))


def test_writers_who_do_not_wait_are_found_out() -> None:
    from time import sleep

    everything: dict[str, list[Event]] = {}

    class Slow(Shared):
        @contextmanager
        def transaction(self, number: int) -> Iterator[Transaction]:
            transaction = Transaction(self.events[number:])
            yield transaction
            sleep(0.01)
            self.events += transaction.appended

    with pytest.raises(AssertionError, match="several writers"):
        check_writers(lambda name: Slow(name, everything, ""))


def test_a_new_study_refuses_a_journal_that_has_events() -> None:
    event_log = InMemoryEventLog()
    study = KINDS["at random"].study(store=event_log, name="mine")
    suggestion = study.ask()
    assert tv.Study.from_event_log(event_log, "mine").pending == [suggestion]
    with pytest.raises(tv.TruvarError, match="needs an empty journal"):
        KINDS["at random"].study(store=event_log)
    again = tv.Study.from_json(study.to_json(), store=(copy := InMemoryEventLog()))
    assert again.pending == [suggestion]
    assert len(copy.since(0)) == len(event_log.since(0)) == 2
