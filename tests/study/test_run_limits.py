"""A run ends when its answer is good enough, or when the next measurement is not worth its cost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF
from tests.helpers.warning_checks import no_warnings

import truvar as tv
from truvar.exceptions import InvalidArgumentError, UnsupportedGoalError
from truvar.inference import joint
from truvar.report.formatting import describe_score
from truvar.report.status import status_data

AXIS = np.linspace(0, 1, 40)
LINE = tv.Domain.grid(x=AXIS)
FINE = tv.Domain.grid(
    x=np.linspace(0, 1, 300)
)  # neighbours are almost equal: no point is soon known to be the best
MODEL: dict[str, Any] = {"kernel": 2.0 * RBF(0.12), "mean": 0.0, "noise": 1e-4}


def wave(point: dict[str, float]) -> float:
    return float(np.sin(9 * point["x"]) + 0.4 * np.cos(21 * point["x"]))


def jagged(point: dict[str, float]) -> float:
    """Return a function far rougher than the kernel of `too_smooth` allows."""
    return float(np.sin(9 * point["x"]) + 1.5 * np.sin(170 * point["x"]))


def level_set(**options: Any) -> tv.Study:
    return tv.Study(LINE, tv.LevelSet(0.3), **{**MODEL, **options})


def optimum(**options: Any) -> tv.Study:
    return tv.Study(FINE, tv.Maximize(), **{**MODEL, **options})


def too_smooth(goal: Any) -> tv.Study:
    return tv.Study(LINE, goal, kernel=RBF(0.5), mean=0.0, noise=1e-3, exact_model=True)


def test_a_run_ends_when_f1_is_reached_and_not_before() -> None:
    study = level_set()
    lows: list[float] = []
    result = study.run(
        wave, f1=0.9, progress=lambda running: lows.append(running.result().expected_f1.low)
    )
    assert result.reason == f"expected F1 {result.expected_f1} reached 0.9"
    assert lows[-1] >= 0.9
    assert max(lows[:-1]) < 0.9
    assert result.f1([wave({"x": x}) for x in AXIS]) >= 0.9


@pytest.mark.parametrize("goal", [tv.Maximize(), tv.Minimize()])
def test_a_run_ends_when_the_regret_is_reached_and_not_before(goal: Any) -> None:
    study = tv.Study(FINE, goal, **MODEL)
    highs: list[float] = []
    result = study.run(
        wave,
        regret=0.05,
        progress=lambda running: highs.append(running.result().expected_regret.high),
    )
    assert result.reason == f"expected regret {result.expected_regret} reached 0.05"
    assert highs[-1] <= 0.05
    assert min(highs[:-1]) > 0.05
    assert result.regret([wave({"x": x}) for x in FINE.points[:, 0]]) <= 0.05


def test_a_run_ends_when_no_measurement_is_worth_its_cost() -> None:
    study = optimum(cost=20.0)
    rates: list[float] = []
    result = study.run(
        wave,
        improvement_per_cost=0.01,
        progress=lambda running: rates.append(running.improvement_per_cost()),
    )
    assert result.reason == (
        "no measurement is worth its cost: the largest expected improvement per unit cost is "
        f"{rates[-1]:.3g}, less "
        "than 0.01"
    )
    assert rates[-1] < 0.01
    assert min(rates[:-1]) >= 0.01


def test_a_higher_cost_ends_a_run_earlier() -> None:
    cheap = optimum(cost=5.0).run(wave, improvement_per_cost=0.01)
    expensive = optimum(cost=100.0).run(wave, improvement_per_cost=0.01)
    assert expensive.steps < cheap.steps


def test_the_first_of_several_limits_ends_the_run() -> None:
    alone = level_set().run(wave, f1=0.9).steps
    assert (
        level_set().run(wave, f1=0.9, steps=alone - 1).reason == f"step limit ({alone - 1}) reached"
    )
    assert level_set().run(wave, f1=0.9, budget=2.0).reason == "budget (2) spent"
    assert level_set().run(wave, f1=0.9, epsilon=100.0).reason == "epsilon (100) reached"
    every = level_set().run(wave, f1=0.9, steps=alone + 5, budget=100.0, epsilon=1e-9)
    assert (every.steps, str(every.reason)[:11]) == (alone, "expected F1")
    both = optimum().run(wave, regret=0.001, improvement_per_cost=0.5)
    assert str(both.reason).startswith("no measurement is worth its cost")
    other = optimum().run(wave, regret=0.5, improvement_per_cost=1e-9)
    assert str(other.reason).startswith("expected regret")


def test_a_loop_of_ones_own_stops_where_run_does() -> None:
    study = level_set()
    while study.check_stop(f1=0.9).reason is None:
        suggestion = study.ask()
        study.tell(suggestion, wave(suggestion.point))
    expected = level_set().run(wave, f1=0.9)
    assert study.steps == expected.steps
    assert study.check_stop(f1=0.9).reason == expected.reason


def test_limits_must_suit_the_goal() -> None:
    with pytest.raises(
        UnsupportedGoalError, match=r"f1 needs a level set, got the goal Maximize.*regret or impr"
    ):
        optimum().run(wave, f1=0.9)
    for name in ("regret", "improvement_per_cost"):
        with pytest.raises(
            UnsupportedGoalError, match=f"{name} needs an optimum, got the goal LevelSet.*; give f1"
        ):
            level_set().run(wave, **{name: 0.1})
        with pytest.raises(UnsupportedGoalError, match=f"{name} needs an optimum"):
            level_set(limits={name: 0.1})
    with pytest.raises(UnsupportedGoalError, match="f1 needs a level set"):
        optimum(limits={"f1": 0.9})
    with pytest.raises(UnsupportedGoalError, match="f1 needs a level set"):
        optimum().check_stop(f1=0.9)


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"f1": 1.5}, "f1 must be at most 1, got 1.5"),
        ({"f1": 0.0}, "f1 must be > 0, got 0"),
        ({"f1": "high"}, "f1"),
        ({"f1": float("nan")}, "f1"),
    ],
)
def test_f1_is_a_share(limits: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        level_set().run(wave, **limits)
    with pytest.raises(InvalidArgumentError, match=message):
        level_set(limits=limits)
    with pytest.raises(InvalidArgumentError, match="regret must be >= 0, got -1"):
        optimum().run(wave, regret=-1)


# -- what the measurements contradict
# ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("goal", "limits"),
    [
        (tv.LevelSet(0.3), {"f1": 0.6}),
        (tv.Maximize(), {"regret": 0.5}),
        (tv.Maximize(), {"improvement_per_cost": 100.0}),
    ],
)
def test_a_model_that_the_measurements_contradict_does_not_end_a_run(
    goal: Any, limits: dict[str, float]
) -> None:
    study = too_smooth(goal)
    for x in AXIS[::5]:
        study.tell({"x": x}, jagged({"x": x}))
    assert study.result().model_check.failure == "overconfident"
    result = study.result()
    claimed = (
        result.expected_f1.low >= 0.6 if goal.has_thresholds else result.expected_regret.high <= 0.5
    )
    assert claimed, "the wrong model must claim it for this test to say anything"
    check = study.check_stop(**limits)
    assert check.reason is None
    assert check.obstacle == result.model_check.message
    with pytest.warns(
        RuntimeWarning, match="measurements contradict the model, so that the run continues"
    ) as caught:
        ended = study.run(jagged, steps=study.steps + 4, **limits)
    assert str(ended.reason).startswith("step limit")
    assert len(caught) == 1


def test_a_right_model_ends_a_run_without_a_warning() -> None:
    with no_warnings():
        level_set().run(wave, f1=0.9)


def test_a_cautious_model_may_end_a_run() -> None:
    study = tv.Study(LINE, tv.LevelSet(0.3), kernel=100 * RBF(0.15), mean=0.0, noise=1e-4)
    result = study.run(wave, f1=0.9, steps=60)
    assert result.model_check.failure == "cautious"
    assert str(result.reason).startswith("expected F1")


def test_a_run_does_not_end_before_the_measurements_could_contradict_the_model() -> None:
    study = too_smooth(tv.LevelSet(0.3))
    for x in AXIS[[0, 13, 26, 39]]:
        study.tell({"x": x}, jagged({"x": x}))
    assert study.result().expected_f1.low >= 0.6
    assert study.check_stop(f1=0.6).reason is None
    tiny = tv.Study(tv.Domain.grid(x=[0.0, 0.5, 1.0]), tv.LevelSet(0.3), **MODEL)
    for x in (0.0, 0.5, 1.0):
        tiny.tell({"x": x}, 1.0)
    assert str(tiny.check_stop(f1=0.9).reason).startswith("expected F1")


def test_nothing_ends_a_run_before_there_is_a_model() -> None:
    study = tv.Study(LINE, tv.LevelSet(1e6), seed=2)  # a flat beginning looks decided at once
    assert study.check_stop(f1=0.5).reason is None
    for _ in range(9):
        suggestion = study.ask()
        study.tell(suggestion, 0.1 * wave(suggestion.point))
        assert study.check_stop(f1=0.5).reason is None
    known = level_set()
    assert known.check_stop(f1=0.01).reason is None  # nothing is measured


# -- cost
# --------------------------------------------------------------------------------------------------


def count_joint(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    calls: list[int] = []
    computed: Callable[..., Any] = joint.joint_statements

    def counted(inputs: Any) -> Any:
        calls.append(1)
        return computed(inputs)

    monkeypatch.setattr(joint, "joint_statements", counted)
    return calls


def test_joint_draws_are_made_only_near_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = count_joint(monkeypatch)
    result = level_set(kernel=RBF(0.08)).run(wave, f1=0.95)
    assert result.steps >= 8
    assert len(calls) < result.steps / 2


def test_joint_statements_are_computed_once_for_all_who_ask(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    study = level_set()
    study.run(wave, steps=6)
    calls = count_joint(monkeypatch)
    first = study.result().expected_f1
    study.ask()  # a pending suggestion changes no statement
    study.note("nor does a remark")
    assert study.result().expected_f1 is first
    study.check_stop(f1=0.01)
    assert len(calls) == 1
    study.tell({"x": AXIS[20]}, wave({"x": AXIS[20]}))
    assert study.result().expected_f1 is not first
    before = study.result().expected_f1
    study.withdraw(1)
    assert study.result().expected_f1 is not before
    assert len(calls) == 3


def test_a_change_that_fails_leaves_the_statements() -> None:
    study = level_set()
    study.run(wave, steps=5)
    before = study.result().expected_f1
    seen: list[Any] = []

    def interrupted() -> None:
        with study.transaction():
            study.tell({"x": AXIS[20]}, wave({"x": AXIS[20]}))
            seen.append(study.result().expected_f1)
            raise RuntimeError("power cut")

    with pytest.raises(RuntimeError, match="power cut"):
        interrupted()
    during = seen[0]
    assert during != before
    assert study.result().expected_f1 == before
    study.tell({"x": AXIS[35]}, wave({"x": AXIS[35]}))
    assert study.result().expected_f1 != during


# -- defaults
# --------------------------------------------------------------------------------------------------


def test_without_a_limit_a_level_set_ends_at_an_f1_of_095() -> None:
    result = level_set().run(wave)
    expected = level_set().run(wave, f1=0.95)
    assert result.steps == expected.steps
    assert result.reason == f"{expected.reason} (the default, as no limit was given)"


def test_without_a_limit_an_optimum_ends_at_a_share_of_the_range() -> None:
    study = optimum()
    result = study.run(wave)
    goal = 0.01 * float(np.ptp(result.mean))
    assert result.reason == (
        f"expected regret {result.expected_regret} reached 1 % of the range of the estimates, "
        f"{goal:.3g} (the "
        "default, as no limit was given)"
    )
    assert result.expected_regret.high <= goal


def test_without_a_limit_the_limits_of_the_study_hold() -> None:
    assert level_set(limits={"steps": 3}).run(wave).reason == "step limit (3) reached"
    assert level_set(limits={"budget": 2, "f1": 0.99}).run(wave).reason == "budget (2) spent"
    assert level_set(limits={"steps": 3}).run(wave, steps=4).reason == "step limit (4) reached"


# -- limits in a store, and progress
# -----------------------------------------------------------------------------------


def test_limits_are_stored_with_the_study(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/line.db"
    limits = {"regret": 0.05, "improvement_per_cost": 0.001, "steps": 30}
    optimum(limits=limits, store=url, name="line")
    reopened = tv.load(url, "line")
    assert reopened.limits == limits
    assert reopened.run(wave).reason == optimum(limits=limits).run(wave).reason
    assert tv.Study.from_json(reopened.to_json()).limits == limits


def test_the_status_has_the_progress_towards_every_limit() -> None:
    study = level_set(limits={"f1": 0.9, "budget": 20, "steps": 30, "epsilon": 0.1})
    empty = status_data(study)["progress"]
    assert (empty["steps"]["value"], empty["f1"]["reached"]) == (0, False)
    study.run(wave, steps=3)
    estimate = study.result().expected_f1
    progress = status_data(study)["progress"]
    text = f"{describe_score(study.result())[0]}, goal 0.9"
    assert progress["f1"] == {**estimate.to_dict(), "goal": 0.9, "reached": False, "text": text}
    assert progress["budget"] == {
        "value": 3.0,
        "goal": 20,
        "reached": False,
        "text": "cost 3, goal 20",
    }
    study.run(wave, f1=0.9)
    assert status_data(study)["progress"]["f1"]["reached"] is True


def test_the_status_of_an_optimum_has_regret_and_improvement() -> None:
    study = optimum(limits={"regret": 0.05, "improvement_per_cost": 0.001})
    before = status_data(study)["progress"]
    assert before["improvement_per_cost"]["value"] is None
    study.run(wave, steps=8)
    progress = status_data(study)["progress"]
    assert progress["regret"]["high"] == study.result().expected_regret.high
    assert progress["improvement_per_cost"]["value"] == study.improvement_per_cost()
    assert "goal 0.05" in progress["regret"]["text"]
