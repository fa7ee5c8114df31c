"""A study that is rebuilt from its events continues as if it had never been closed."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF
from tests.helpers.problems import GRID, KINDS, KNOWN, answer, assert_same, truth

import truvar as tv
from truvar.storage.memory import InMemoryEventLog


def reread(study: tv.Study) -> tv.Study:
    return tv.Study.from_json(study.to_json())


def exported_events(study: tv.Study) -> list[dict[str, Any]]:
    """Return all events as they are stored, without their times."""
    events: list[dict[str, Any]] = json.loads(study.to_json())["events"]
    for event in events:
        del event["time"]
    return events


def both_ask(one: tv.Study, other: tv.Study, n: int | None = None) -> list[tv.Suggestion]:
    try:
        asked = one.ask(n) if n else [one.ask()]
    except tv.Finished as end:
        with pytest.raises(tv.Finished, match=end.reason.replace("(", r"\(").replace(")", r"\)")):
            other.ask(n)
        return []
    assert (other.ask(n) if n else [other.ask()]) == asked
    return asked


SLOW = [
    pytest.param(kind, marks=pytest.mark.slow)
    for kind in KINDS
    if kind == "box in three dimensions"
]


@pytest.mark.parametrize(
    "kind", [*(kind for kind in KINDS if kind != "box in three dimensions"), *SLOW]
)
def test_a_study_reopened_before_every_step_goes_as_one_that_was_never_closed(kind: str) -> None:
    whole = KINDS[kind].study()
    broken = KINDS[kind].study()
    level = 0 if kind.endswith("with noise levels") else None

    def each(do) -> None:
        nonlocal broken
        broken = reread(broken)
        do(whole)
        do(broken)

    def tell(suggestion: tv.Suggestion, wrong: float = 0.0) -> None:
        each(lambda study: study.tell(suggestion.id, answer(suggestion) + wrong))

    def ask(n: int | None = None) -> list[tv.Suggestion]:
        nonlocal broken
        broken = reread(broken)
        return both_ask(whole, broken, n)

    few = kind.startswith("box")  # where asking takes its time
    for _ in range(1 if few else 3):
        for suggestion in ask():
            tell(suggestion)
    batch = ask(2 if few else 4)
    for suggestion in batch[-2::-2]:  # out of order
        tell(suggestion)
    here = whole.domain.point(11)
    each(lambda study: study.tell(here, truth(here), level=level))  # unasked
    each(lambda study: study.withdraw(batch[-1]))
    for suggestion in ask(1 if few else 2):
        tell(suggestion, wrong=0.5)
        each(lambda study, measured=suggestion: study.correct(measured, answer(measured)))
    each(lambda study: study.withdraw(batch[0].id))  # a measurement, which is removed
    each(lambda study: study.note("the boat was slow"))
    ask()
    assert_same(whole, reread(broken))
    assert exported_events(broken) == exported_events(whole)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if not kind.startswith("box")])
def test_a_study_opened_from_another_object_shares_nothing_that_changes(kind: str) -> None:
    study = KINDS[kind].study()
    study.tell(study.ask().id, 0.3)
    pending = study.ask()
    event_log = InMemoryEventLog(study._session.event_log.since(0))
    other = tv.Study.from_event_log(event_log, None, source=study)
    assert_same(study, other)
    before = reread(study)
    other.tell(pending.id, answer(pending))
    assert_same(study, before)
    study.tell(pending.id, answer(pending))
    assert both_ask(study, other)
    assert_same(study, other)


def test_events_of_another_study_are_replayed_from_the_first() -> None:
    study = KINDS["at random"].study()
    study.tell(study.ask(), 0.3)
    another = KINDS["at random"].study()
    another.tell(another.ask(), 0.7)
    event_log = InMemoryEventLog(another._session.event_log.since(0))
    assert_same(tv.Study.from_event_log(event_log, None, source=study), another)


OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(
            [
                "ask",
                "ask",
                "tell",
                "tell",
                "tell",
                "point",
                "withdraw",
                "remove",
                "correct",
                "refused",
            ]
        ),
        st.integers(0, 50),
        st.floats(-2, 2),
        st.booleans(),
    ),
    max_size=14,
)


@given(
    OPERATIONS,
    st.sampled_from(["level set with travel", "optimum with noise levels", "tasks", "look-ahead"]),
)
@settings(max_examples=25)
def test_whatever_is_done_the_events_lead_to_where_the_study_stands(operations, kind) -> None:
    study = KINDS[kind].study()
    other = KINDS[kind].study()
    level = 1 if kind == "optimum with noise levels" else None
    for what, choice, y, read_again in operations:
        if read_again:
            other = reread(other)
        ids = study.measurements["id"].tolist()
        pending = [suggestion.id for suggestion in study.pending]
        if what == "ask":
            both_ask(study, other, choice % 3 or None)
        elif what == "point":
            point = study.domain.point(choice)
            assert study.tell(point, y, level=level) == other.tell(point, y, level=level)
        for each in (study, other):
            if what in ("tell", "withdraw") and pending:
                id_ = pending[choice % len(pending)]
                each.tell(id_, y) if what == "tell" else each.withdraw(id_)
            elif what in ("remove", "correct") and ids:
                id_ = ids[choice % len(ids)]
                each.correct(id_, y, cost=1.5) if what == "correct" else each.withdraw(id_)
            elif what == "refused":
                with pytest.raises(tv.TruvarError):
                    each.tell(999, y)
    assert_same(study, reread(other))
    both_ask(study, reread(other))


def test_a_corrected_value_counts_as_if_it_had_been_told_so() -> None:
    right = KINDS["level set with travel"].study()
    wrong = KINDS["level set with travel"].study()
    for k in range(5):
        suggestion = right.ask()
        right.tell(suggestion, answer(suggestion), noise=0.02 if k == 2 else None)
        wrong.tell(
            suggestion.point, answer(suggestion) + (7.0 if k == 2 else 0.0), cost=suggestion.cost
        )
    assert not np.array_equal(right.result().above, wrong.result().above)
    wrong.correct(3, right.measurements["value"][2], noise=0.02)
    for name in ("above", "below", "mean", "upper"):
        assert np.array_equal(getattr(right.result(), name), getattr(wrong.result(), name))


def test_a_withdrawn_measurement_was_never_made() -> None:
    study = KINDS["level set with travel"].study()
    without = KINDS["level set with travel"].study()
    points = [GRID.point(k) for k in (3, 20, 41)]
    for k, point in enumerate(points):
        study.tell(point, truth(point), cost=1.0)
        if k != 1:
            without.tell(point, truth(point), cost=1.0)
    study.withdraw(2)
    assert study.measurements["id"].tolist() == [1, 3]
    assert np.array_equal(study.result().mean, without.result().mean)
    assert study.spent == 2.0
    assert study.ask().id == 4  # ids are never used twice
    with pytest.raises(tv.TruvarError, match="suggestion 2 is not pending"):
        study.tell(2, 1.0)


def test_the_same_value_told_again_changes_nothing_and_another_is_refused() -> None:
    study = KINDS["level set with travel"].study()
    suggestion = study.ask()
    for _ in range(3):
        assert study.tell(suggestion, 0.5) == suggestion.id
        assert study.tell(suggestion.id, 0.5, cost=suggestion.cost) == suggestion.id
    assert len(study.measurements) == 1
    assert study.events["kind"].tolist() == ["created", "asked", "told"]
    with pytest.raises(
        tv.TruvarError, match=r"already has the value 0.5, got 0.6; .* correct\(1, 0.6\)"
    ):
        study.tell(suggestion, 0.6)
    study.correct(suggestion, 0.6)
    study.tell(suggestion, 0.6)
    assert study.measurements["value"].tolist() == [0.6]


def test_events_say_who_did_what_and_when() -> None:
    study = KINDS["level set with travel"].study(author="Ada")
    suggestion = study.ask()
    study.author = "Grace"
    study.tell(suggestion, 0.5)
    study.note("rain")
    events = study.events
    assert events.columns.tolist() == ["number", "time", "who", "kind", "details"]
    assert events["number"].tolist() == [1, 2, 3, 4]
    assert events["who"].tolist() == ["Ada", "Ada", "Grace", "Grace"]
    assert events["kind"].tolist() == ["created", "asked", "told", "noted"]
    assert events["details"][3] == {"text": "rain"}
    assert (abs(events["time"] - datetime.now(UTC)) < timedelta(hours=1)).all()
    assert "@" in KINDS["tasks"].study().author


# -- leases
# --------------------------------------------------------------------------------------------------


@pytest.fixture
def clock(monkeypatch):
    """Seconds that pass when one says so."""

    class Clock:
        time = datetime(2026, 5, 1, tzinfo=UTC)

        def sleep(self, seconds: float) -> None:
            self.time += timedelta(seconds=seconds)

    clock = Clock()
    monkeypatch.setattr("truvar.study._handlers.now", lambda: clock.time)
    return clock


def test_a_suggestion_is_free_again_when_its_lease_has_run_out(clock) -> None:
    study = tv.Study(GRID, tv.LevelSet(0.6), **KNOWN)
    leased = study.ask(lease=60)
    clock.sleep(59)
    assert study.ask(lease=10).point != leased.point
    assert [suggestion.id for suggestion in study.pending] == [1, 2]
    clock.sleep(11)
    assert study.ask().point == leased.point
    assert [suggestion.id for suggestion in study.pending] == [3]
    assert study.events["kind"].tolist() == [
        "created",
        "asked",
        "asked",
        "expired",
        "expired",
        "asked",
    ]
    assert_same(study, reread(study))


def test_a_value_that_comes_after_the_lease_is_not_lost(clock) -> None:
    study = tv.Study(GRID, tv.LevelSet(0.6), **KNOWN)
    late = study.ask(lease=1)
    clock.sleep(2)
    study.ask()
    with pytest.raises(tv.TruvarError, match="suggestion 1 is not pending"):
        study.withdraw(late)
    study.tell(late, 0.3)
    study.tell(late, 0.3)
    assert study.measurements["id"].tolist() == [1]
    assert_same(study, reread(study))


def test_a_value_in_time_ends_the_lease(clock) -> None:
    study = tv.Study(GRID, tv.LevelSet(0.6), **KNOWN)
    study.tell(study.ask(lease=1), 0.3)
    clock.sleep(2)
    study.ask()
    assert "expired" not in study.events["kind"].tolist()


# -- as text
# --------------------------------------------------------------------------------------------------


def test_the_end_of_a_study_is_part_of_its_events() -> None:
    policy = tv.TruVaR(beta=tv.ConstantBeta(4.0))
    expensive = {
        "kernel": RBF(0.01),
        "mean": 0.0,
        "noise": 1e30,
        "cost": 1e300,
    }  # no gain per cost that is not zero
    study = tv.Study(
        tv.Domain.grid(x=[0.0, 1.0, 2.0]), tv.LevelSet(1.0), **expensive, policy=policy
    )
    study.tell({"x": 1.0}, 5.0, noise=1e-4)
    for _ in range(2):
        with pytest.raises(tv.Finished, match="the policy sees nothing more to gain"):
            study.ask()
    assert study.events["kind"].tolist() == ["created", "told", "exhausted"]
    assert reread(study).exhausted == "the policy sees nothing more to gain"
    study.tell({"x": 0.0}, 5.0, noise=1e-4)
    assert reread(study).exhausted is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must be what Study.to_json wrote"),
        ("{}", "must be what Study.to_json wrote"),
        ("[1, 2]", "must be what Study.to_json wrote"),
        (
            '{"format": "truvar study 9", "name": "lake", "events": []}',
            "format must be 'truvar study 1'",
        ),
        ('{"format": "truvar study 1", "name": "lake", "events": []}', "damaged"),
        ('{"format": "truvar study 1", "name": "lake", "events": [{"number": 1}]}', "damaged"),
    ],
)
def test_text_that_is_no_study_is_refused(text: str, message: str) -> None:
    with pytest.raises(tv.TruvarError, match=message):
        tv.Study.from_json(text)


def test_a_study_as_text_that_lacks_an_event_is_refused() -> None:
    study = KINDS["level set with travel"].study()
    study.tell(study.ask(), 0.2)
    text = study.to_json()
    with pytest.raises(tv.TruvarError, match="damaged"):
        tv.Study.from_json(text.replace('"number":2', '"number":3'))
    with pytest.raises(tv.TruvarError, match="damaged"):
        tv.Study.from_json(text.replace('"kind":"asked"', '"kind":"withdrawn"'))
    with pytest.raises(tv.TruvarError, match="unknown kind of event 'shouted'"):
        tv.Study.from_json(text.replace('"kind":"asked"', '"kind":"shouted"'))


def test_a_point_told_again_with_the_same_key_counts_once() -> None:
    study = tv.Study(
        tv.Domain.grid(x=[0.0, 0.5, 1.0]), tv.Maximize(), kernel=RBF(0.3), mean=0.0, noise=0.01
    )
    first = study.tell({"x": 0.5}, 1.0, key="boat-1")
    assert study.tell({"x": 0.5}, 1.0, key="boat-1") == first
    study.correct(first, 2.0)
    assert study.tell({"x": 0.5}, 1.0, key="boat-1") == first
    again = tv.Study.from_json(study.to_json())
    assert again.tell({"x": 0.5}, 1.0, key="boat-1") == first
    assert again.measurements["value"].tolist() == [2.0]
    second = again.tell({"x": 0.5}, 1.0, key="boat-2")
    assert again.tell({"x": 0.5}, 1.0) != second
    assert again.steps == 3
