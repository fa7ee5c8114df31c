"""Numbers of one result that stand beside each other do not contradict each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import Matern

import truvar as tv
from truvar.inference.certificate_text import format_share
from truvar.inference.statements import Estimate
from truvar.report.formatting import format_estimate

SQUARE = tv.Domain.grid(x_km=np.linspace(0.0, 10.0, 14), y_km=np.linspace(0.0, 10.0, 14))
MAX_SDS = 5.0  # distance of a 95 % bound from the mean, in standard deviations


def oxygen(point: dict[str, float]) -> float:
    return float(6 + 2 * np.sin(0.8 * point["x_km"]) * np.cos(0.6 * point["y_km"]))


def surveyed(goal: Any, steps: int = 18, **settings: Any) -> tv.Study:
    study = tv.Study(SQUARE, goal, seed=1, **settings)
    rng = np.random.default_rng(0)
    for index in rng.permutation(len(SQUARE))[:steps]:
        point = SQUARE.point(int(index))
        study.tell(point, oxygen(point) + 0.2 * float(rng.standard_normal()))
    return study


@pytest.mark.filterwarnings("ignore::truvar.exceptions.OutlierWarning")
def test_a_value_with_given_noise_far_from_the_threshold_is_not_undecided() -> None:
    """A hole that no other station sees: 1.1 +- 0.2 is below 4, whatever the others predict."""
    study = surveyed(tv.LevelSet(4.0), noise=0.04)
    unmeasured = next(i for i in range(90, 120) if i not in study.result().measured)
    study.tell(SQUARE.point(unmeasured), 1.1)
    result = study.result()
    frame = result.to_frame().iloc[unmeasured]
    assert frame["class"] == "below"
    assert frame["upper"] < 4.0
    assert frame["upper"] - frame["mean"] <= MAX_SDS * frame["sd"]


@pytest.mark.parametrize(
    "settings",
    [
        {"noise": 0.04},
        {},
        {"kernel": Matern([3.0, 3.0], nu=2.5), "mean": 6.0, "noise": 0.04, "exact_model": True},
        {"kernel": tv.Learned(transform="log")},
    ],
    ids=["noise given", "learned", "known", "logarithms"],
)
@pytest.mark.filterwarnings("ignore::truvar.exceptions.OutlierWarning")
def test_the_interval_of_a_point_contains_its_mean_and_agrees_with_its_sd(
    settings: dict[str, Any],
) -> None:
    frame = surveyed(tv.LevelSet(6.5), **settings).result().to_frame()
    assert (frame["lower"] <= frame["mean"]).all()
    assert (frame["mean"] <= frame["upper"]).all()
    assert (frame["upper"] - frame["mean"] <= MAX_SDS * frame["sd"] + 1e-9).all()
    assert (frame["mean"] - frame["lower"] <= MAX_SDS * frame["sd"] + 1e-9).all()
    decided = frame[frame["class"] != "undecided"]
    assert (decided["lower"][decided["class"] == "above"] >= 6.5 - 1e-9).all()
    assert (decided["upper"][decided["class"] == "below"] <= 6.5 + 1e-9).all()


def test_an_estimate_contains_its_mean_also_as_text() -> None:
    """Three draws of a thousand are far off: the mean lies outside of the central 95 %."""
    draws = np.ones(1000)
    draws[:3] = 0.7
    estimate = Estimate.of(draws)
    assert estimate.low <= estimate.mean <= estimate.high
    mean, low, high = (
        float(part)
        for part in format_estimate(estimate, format_share)
        .strip(")")
        .replace(" (", " to ")
        .split(" to ")
    )
    assert low <= mean <= high


@pytest.mark.parametrize(
    "goal", [tv.LevelSet(6.5), tv.LevelSet(fraction_of_max=0.8), tv.Maximize()], ids=str
)
@pytest.mark.filterwarnings("ignore::truvar.exceptions.OutlierWarning")
def test_classes_stay_while_nothing_new_is_measured(goal: Any) -> None:
    study = surveyed(goal, steps=12)
    before = study.result()
    labels = before.classes.labels
    suggestion = study.ask()
    others = study.ask(2)
    np.testing.assert_array_equal(study.result().classes.labels, labels)
    study.withdraw(others[0])  # and is not suggested again
    changed = study.result().classes.labels != labels
    # An optimum is looked for among the points that are left, with the same draws: others change
    # that together were no more probable than the one that is gone.
    withdrawn = others[0].index
    if not study.goal.has_thresholds:
        changed[withdrawn] = False
        assert before.probability[changed].sum() <= before.probability[withdrawn]
    else:
        assert not changed.any()
        study.exclude({"x_km": 0.0, "y_km": 0.0})
        study.fail(suggestion)
        np.testing.assert_array_equal(study.result().classes.labels, labels)


@pytest.mark.filterwarnings("ignore::truvar.exceptions.OutlierWarning")
def test_bounds_on_the_number_wrong_agree_with_the_share_and_the_score() -> None:
    result = surveyed(tv.LevelSet(6.5)).result()
    wrong = result.classes.wrong
    assert wrong is not None
    assert wrong.mean <= result.expected_misclassified + 1.0
    share = result.share_above
    surely_above = int(result.classes.above.sum())
    surely_below = int(result.classes.below.sum())
    n = len(SQUARE)
    # At most `high` of the points shown can change sides within the bound.
    assert n * share.mean >= surely_above - wrong.high - 1
    assert n * share.mean <= n - surely_below + wrong.high + 1
