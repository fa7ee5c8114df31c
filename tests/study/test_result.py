"""Results of a study: masks, bounds, scores, tables."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF
from tests.helpers.small import LEVELS, LINE, a_study, hill, on

import truvar as tv


def test_a_level_set_is_reported_by_the_posterior_mean_and_judged_by_f1() -> None:
    truth = on(LINE, hill)
    result = a_study().run(hill, steps=100)
    np.testing.assert_array_equal(result.classification, result.mean >= 0.2)
    assert result.f1(truth) == 1.0
    classes = result.classify(0.997)
    assert (classes.above == (truth > 0.2)).all()
    assert (classes.below == (truth < 0.2)).all()


def test_f1_is_the_harmonic_mean_of_precision_and_recall() -> None:
    study = a_study(tv.Domain.grid(x=[0.0, 1.0, 2.0, 3.0]), kernel=RBF(0.1))
    for x, y in ((0.0, 1.0), (1.0, 1.0), (2.0, 1.0), (3.0, 0.0)):
        study.tell({"x": x}, y)  # says above, above, above, below
    precision = 1 / 3
    recall = 1 / 2
    assert study.result().f1([1, 0, 0, 1]) == pytest.approx(
        2 * precision * recall / (precision + recall)
    )
    assert study.result().f1([0, 0, 0, 0]) == 0.0


@pytest.mark.parametrize("goal", [tv.Maximize(), tv.Minimize()])
def test_the_best_point_is_that_of_the_best_mean_and_regret_is_how_far_it_falls_short(
    goal: Any,
) -> None:
    study = a_study(goal=goal)
    result = study.run(hill, steps=4)
    values = goal.sign * result.mean
    assert result.best.index == int(np.argmax(values))
    assert result.best.point == LINE.point(result.best.index)
    assert result.best.mean == pytest.approx(result.mean[result.best.index])
    truth = np.arange(11.0)
    short = result.best.index if goal.sign < 0 else 10 - result.best.index
    assert result.regret(truth) == pytest.approx(short)
    assert result.regret(lambda point: 7.0, optimum=9.0) == pytest.approx(2.0 * goal.sign)


def test_bounds_are_the_mean_and_root_beta_standard_deviations() -> None:
    study = a_study(policy=tv.TruVaR(beta=tv.ConstantBeta(9.0)))
    result = study.run(hill, steps=3)
    np.testing.assert_allclose(result.upper - result.mean, 3 * result.sd)
    np.testing.assert_allclose(result.mean - result.lower, 3 * result.sd)


def test_the_frame_has_a_row_per_point_with_its_class() -> None:
    study = a_study()
    result = study.run(hill, steps=3)
    frame = result.to_frame()
    assert list(frame.columns) == ["x", "mean", "sd", "lower", "upper", "probability", "class"]
    assert len(frame) == 11
    classes = result.classify(0.95)
    for name in ("above", "below", "undecided"):
        np.testing.assert_array_equal(frame["class"] == name, getattr(classes, name))


@pytest.mark.parametrize(
    "goal", [tv.Maximize(), tv.LevelSet(0.2), tv.LevelSet(fraction_of_max=0.5)], ids=str
)
@pytest.mark.parametrize("steps", [0, 1, 6])
def test_the_summary_is_strict_json(goal: Any, steps: int) -> None:
    for settings in ({}, {"kernel": None, "mean": None}):
        study = a_study(goal=goal, **settings)
        said = study.run(hill, steps=steps).to_dict()
        assert json.loads(json.dumps(said, allow_nan=False)) == said
        assert said["steps"] == study.steps
        assert said["potential"] + said["above"] + said["below"] == 11


def test_a_suggestion_is_strict_json() -> None:
    suggestion = a_study(noise=LEVELS).ask()
    assert (
        json.loads(json.dumps(suggestion.to_dict(), allow_nan=False))["point"] == suggestion.point
    )
    assert suggestion.score == suggestion.gain / suggestion.cost


def test_measurements_are_a_row_per_value_told() -> None:
    study = a_study(cost=2.0)
    assert list(study.measurements.columns) == [
        "id",
        "index",
        "x",
        "level",
        "task",
        "noise",
        "cost",
        "spent",
        "value",
    ]
    assert len(study.measurements) == 0
    first = study.ask()
    study.tell(first, 0.25)
    study.tell({"x": 0.05}, 0.5)
    measurements = study.measurements
    assert measurements["id"].tolist() == [1, 2]
    assert measurements["x"].tolist() == [first.point["x"], 0.05]
    assert measurements["value"].tolist() == [0.25, 0.5]
    assert measurements["spent"].tolist() == [2.0, 4.0]


def test_history_is_a_row_per_value_told_and_ends_where_the_result_stands() -> None:
    study = a_study(goal=tv.Maximize())
    result = study.run(hill, steps=5)
    history = study.history
    assert history["step"].tolist() == [1, 2, 3, 4, 5][: result.steps]
    last = history.iloc[-1]
    assert last["spent"] == result.spent
    assert last["epsilon"] == result.epsilon
    assert (last["n_potential"], last["n_above"], last["n_below"]) == (
        result.potential.sum(),
        result.above.sum(),
        result.below.sum(),
    )
    assert (last["epoch"], last["eta"], last["beta"]) == (
        study.epoch.index,
        study.epoch.eta,
        study.epoch.beta,
    )
    assert (last["best_index"], last["best_mean"]) == (result.best.index, result.best.mean)
    assert history["epoch"].is_monotonic_increasing
    assert history["n_potential"].is_monotonic_decreasing


def test_a_result_does_not_change_when_the_study_goes_on() -> None:
    study = a_study()
    result = study.run(hill, steps=2)
    kept = result.mean.copy(), result.sd.copy(), result.potential.copy()
    study.run(hill, steps=6)
    for before, now in zip(kept, (result.mean, result.sd, result.potential), strict=True):
        np.testing.assert_array_equal(before, now)
