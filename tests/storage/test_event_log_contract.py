"""Every journal keeps the laws of `truvar.testing`, and one that breaks a law is found out."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.helpers.problems import KINDS

import truvar as tv
from truvar.storage.base import Event, Memory, Turn
from truvar.storage.rdb import Database, StoredJournal
from truvar.testing import check_journal
from truvar.testing.event_log import check_failure, check_news, check_study, check_turns, check_writers


def test_a_stored_journal_keeps_the_laws(url: str) -> None:
    KINDS["at random"].study(store=url, name="the first")  # makes the tables

    def open_(name: str) -> StoredJournal:
        database = Database(url)
        return database.journal(name) or database.create(name)

    check_journal(open_)


@pytest.mark.parametrize("check", [check_turns, check_failure, check_news, check_study])
def test_the_journal_in_memory_keeps_the_laws_of_one_writer(check) -> None:
    kept: dict[str, Memory] = {}
    check(lambda name: kept.setdefault(name, Memory()))


class Shared:
    """A journal of one's own, without a lock; with faults to be found."""

    events: dict[str, list[Event]]

    def __init__(self, name: str, everything: dict[str, list[Event]], fault: str) -> None:
        self.events, self.fault = everything.setdefault(name, []), fault

    def since(self, number: int) -> list[Event]:
        return self.events[number + (self.fault == "skips") :]

    @contextmanager
    def turn(self, number: int) -> Iterator[Turn]:
        turn = Turn([] if self.fault == "no news" else self.events[number:])
        try:
            yield turn
        except Exception:
            if self.fault == "swallows":
                return
            if self.fault == "keeps":
                self.events += turn.written
            raise
        self.events += turn.written[:1] if self.fault == "forgets" else turn.written


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
        def turn(self, number: int) -> Iterator[Turn]:
            turn = Turn(self.events[number:])
            yield turn
            sleep(0.01)
            self.events += turn.written

    with pytest.raises(AssertionError, match="several writers"):
        check_writers(lambda name: Slow(name, everything, ""))


def test_a_new_study_refuses_a_journal_that_has_events() -> None:
    journal = Memory()
    study = KINDS["at random"].study(store=journal, name="mine")
    suggestion = study.ask()
    assert tv.Study.resumed(journal, "mine").pending == [suggestion]
    with pytest.raises(tv.TruvarError, match="needs an empty journal"):
        KINDS["at random"].study(store=journal)
    again = tv.Study.from_json(study.to_json(), store=(copy := Memory()))
    assert again.pending == [suggestion]
    assert len(copy.since(0)) == len(journal.since(0)) == 2
