"""A study that threads, asyncio tasks and signal handlers disturb stays whole."""

from __future__ import annotations

import asyncio
import random
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.problems import KINDS, assert_same
from tests.helpers.small import LINE, a_study

import truvar as tv
from truvar.exceptions import StudyBusyError
from truvar.study import _handlers as handlers
from truvar.study import _session as session


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    return (
        {}
        if request.param == "memory"
        else {"store": f"sqlite:///{tmp_path / 'line.db'}", "name": "line"}
    )


def test_threads_that_tell_a_batch_lose_no_value(store: dict[str, Any]) -> None:
    study = a_study(noise=0.1, policy="random", **store)
    batch = study.ask(40)
    with ThreadPoolExecutor(4) as pool:
        ids = list(pool.map(lambda suggestion: study.tell(suggestion, 0.1 * suggestion.id), batch))
    assert sorted(ids) == sorted(study.measurements["id"]) == list(range(1, 41))
    assert study.pending == []


def test_threads_that_ask_get_different_suggestions(store: dict[str, Any]) -> None:
    study = a_study(noise=0.1, policy="random", **store)
    with ThreadPoolExecutor(8) as pool:
        ids = list(pool.map(lambda _: study.ask().id, range(24)))
    assert sorted(ids) == list(range(1, 25))


def test_a_transaction_keeps_other_threads_out(store: dict[str, Any]) -> None:
    study = a_study(noise=0.1, **store)
    inside = threading.Event()

    def other() -> int:
        inside.wait(10)
        return study.tell(LINE.point(3), 0.3)

    with ThreadPoolExecutor(1) as pool:
        later = pool.submit(other)
        with study.transaction():
            study.tell(LINE.point(0), 0.1)
            inside.set()
            time.sleep(0.1)
            study.tell(LINE.point(1), 0.2)
        later.result(10)
    assert study.measurements["value"].tolist() == [0.1, 0.2, 0.3]


def test_a_transaction_that_fails_does_not_take_the_values_of_other_threads_with_it() -> None:
    study = a_study(noise=0.1)
    inside = threading.Event()

    def other() -> int:
        inside.wait(10)
        return study.tell(LINE.point(3), 0.3)

    def fail() -> None:
        with study.transaction():
            study.tell(LINE.point(0), 0.1)
            inside.set()
            time.sleep(0.1)
            raise ZeroDivisionError

    with ThreadPoolExecutor(1) as pool:
        later = pool.submit(other)
        with pytest.raises(ZeroDivisionError):
            fail()
        later.result(10)
    assert study.measurements["value"].tolist() == [0.3]


def test_another_task_cannot_slip_into_a_transaction() -> None:
    study = a_study(noise=0.1)

    async def change() -> None:
        with study.transaction():
            study.tell(LINE.point(0), 0.1)
            await asyncio.sleep(0.05)
            raise ZeroDivisionError

    async def intrude() -> None:
        await asyncio.sleep(0.01)
        study.tell(LINE.point(1), 0.2)

    async def both() -> list[Any]:
        return await asyncio.gather(change(), intrude(), return_exceptions=True)

    first, second = asyncio.run(both())
    assert isinstance(first, ZeroDivisionError)
    assert isinstance(second, StudyBusyError)
    assert "do not await within a transaction" in str(second)
    assert study.steps == 0
    study.tell(LINE.point(1), 0.2)
    assert study.steps == 1


def test_tasks_that_do_not_await_within_transactions_share_a_study() -> None:
    study = a_study(noise=0.1, policy="random")

    async def work(task: int) -> None:
        for step in range(10):
            suggestion = study.ask()
            await asyncio.sleep(0)
            await asyncio.to_thread(study.tell, suggestion, 0.01 * task + 1e-3 * step)

    async def together() -> None:
        await asyncio.gather(*(work(task) for task in range(5)))

    asyncio.run(together())
    assert study.steps == 50
    assert study.measurements["value"].nunique() == 50


def test_a_thread_that_a_transaction_waits_for_is_refused_instead_of_blocked() -> None:
    study = a_study(noise=0.1)

    async def change() -> None:
        with study.transaction():
            study.tell(LINE.point(0), 0.1)
            await asyncio.to_thread(study.tell, LINE.point(1), 0.2)

    with pytest.raises(StudyBusyError, match="end the transaction first"):
        asyncio.run(change())
    assert study.steps == 0


def test_a_copy_of_a_study_has_a_lock_of_its_own() -> None:
    study = a_study(noise=0.1)
    other = deepcopy(study)
    with study.transaction(), ThreadPoolExecutor(1) as pool:
        assert pool.submit(other.tell, LINE.point(1), 0.2).result(10) == 1
    assert (study.steps, other.steps) == (0, 1)


def test_a_choice_is_made_without_the_write_lock_of_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path / 'line.db'}"
    slow = a_study(noise=0.1, store=url, name="slow")
    quick = a_study(noise=0.1, store=url, name="quick")
    choose = handlers.choose
    seconds = []

    def choose_slowly(*arguments: Any) -> Any:
        began = time.monotonic()
        quick.tell(LINE.point(0), 0.1)
        seconds.append(time.monotonic() - began)
        return choose(*arguments)

    monkeypatch.setattr(handlers, "choose", choose_slowly)
    slow.ask()
    assert seconds[0] < 5
    assert tv.load(url, "quick").steps == 1
    assert len(tv.load(url, "slow").pending) == 1


@pytest.mark.parametrize("change", ["correct", "withdraw"])
def test_earlier_values_are_changed_without_the_write_lock_of_the_store(
    change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path / 'line.db'}"
    slow = a_study(noise=0.1, store=url, name="slow")
    quick = a_study(noise=0.1, store=url, name="quick")
    for study in (
        slow,
        slow,
        slow,
        quick,
    ):  # quick changes: the next one is expected to be quick too
        study.tell(LINE.point(study.steps), 0.2)
    apply = slow._state.apply
    seconds = []

    def apply_slowly(*arguments: Any) -> Any:
        began = time.monotonic()
        quick.tell(LINE.point(0), 0.1)
        seconds.append(time.monotonic() - began)
        return apply(*arguments)

    monkeypatch.setattr(slow._state, "apply", apply_slowly)
    slow.correct(1, 0.5) if change == "correct" else slow.withdraw(1)
    assert seconds[0] < 5
    assert tv.load(url, "quick").steps == 2
    assert tv.load(url, "slow").steps == (3 if change == "correct" else 2)


def test_a_choice_is_made_again_when_others_wrote_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path / 'line.db'}"
    study = KINDS["level set with travel"].study(store=url, name="lake")
    memory = KINDS["level set with travel"].study()
    other = tv.load(url, "lake")
    choose = handlers.choose
    choices = []

    def choose_late(*arguments: Any) -> Any:
        if arguments[0] is not study._state:
            return choose(*arguments)
        if not choices:
            other.tell(study.domain.point(5), 0.4)
        choices.append(study.version)
        return choose(*arguments)

    monkeypatch.setattr(handlers, "choose", choose_late)
    memory.tell(study.domain.point(5), 0.4)
    assert study.ask() == memory.ask()
    assert choices == [1, 2]  # number of the last event that each choice was made with
    assert_same(study, memory)
    assert_same(tv.load(url, "lake"), memory)


def test_a_choice_that_others_always_overtake_is_made_with_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "MAX_QUICK_CPU_SECONDS", -1.0)
    url = f"sqlite:///{tmp_path / 'line.db'}"
    study = a_study(noise=0.1, policy="random", store=url, name="line")
    other = tv.load(url, "line")
    choose = handlers.choose
    overtaken = []

    def choose_late(*arguments: Any) -> Any:
        if len(overtaken) < session.MAX_UNLOCKED_ATTEMPTS:
            overtaken.append(other.tell(LINE.point(len(overtaken)), 0.1))
        return choose(*arguments)

    monkeypatch.setattr(handlers, "choose", choose_late)
    suggestion = study.ask()
    assert suggestion.id == session.MAX_UNLOCKED_ATTEMPTS + 1
    assert_same(study, tv.load(url, "line"))


def interrupted_after(seconds: float, work: Any) -> bool:
    """Run `work` and interrupt it as Ctrl-C does; return whether that came before its end."""
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        work()
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        return True
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    return False


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers that send signals")
def test_an_interrupt_at_any_moment_leaves_a_study_whole(store: dict[str, Any]) -> None:
    """Told values are there or not; none is half there, and what comes after the interrupt
    works."""
    rng = random.Random(7)
    study = a_study(noise=0.1, **store)
    study.tell(study.ask(), 0.3)
    interrupts = 0
    for step in range(60):
        value = 0.01 * step

        def work(value: float = value) -> None:
            suggestion = study.ask()
            study.tell(suggestion, value)
            study.tell(LINE.point(2), value)

        interrupts += interrupted_after(10 ** rng.uniform(-4, -2), work)
        for suggestion in study.pending:
            study.withdraw(suggestion)
        study.refresh()  # the interrupt may have come after the values were stored
        known = study.steps
        study.tell(LINE.point(4), value)
        assert study.steps == known + 1
        again = tv.Study.from_json(study.to_json())
        assert_same(study, again)
        if study.steps > 40:
            for id_ in study.measurements["id"][10:]:
                study.withdraw(int(id_))
    assert interrupts >= 20
