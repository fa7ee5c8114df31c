"""Several thresholds: bands, their probabilities, joint statements, scores, and what refuses
them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import RBF
from tests.helpers.small import LINE, a_study, hill, on

import truvar as tv
from truvar.domain.goals import Bands, Regions
from truvar.exceptions import InvalidArgumentError, UnsupportedGoalError
from truvar.inference._mixtures import band_probabilities, certainty_of, reported_bands
from truvar.models._learned import nearest_reference
from truvar.models._outliers import find_outliers
from truvar.problem import problem_from_dict

LEVELS = [-0.2, 0.3, 0.8]


def banded(goal: Any = None, **settings: Any) -> tv.Study:
    return a_study(goal=goal or tv.LevelSet(LEVELS), **settings)


def test_a_list_of_thresholds_or_a_pair_makes_bands() -> None:
    assert tv.LevelSet([5, 7, 10]) == Bands((5.0, 7.0, 10.0))
    assert tv.LevelSet(np.array([5, 7])).names == ("below 5", "5 to 7", "above 7")
    assert tv.LevelSet(between=(5, 7)) == Bands((5.0, 7.0), inside=True)
    assert str(tv.LevelSet([5, 7])) == "LevelSet([5, 7])"
    assert isinstance(tv.LevelSet(5), tv.LevelSet)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"threshold": [7, 5]}, "different and ascending"),
        ({"threshold": [5, 5]}, "different and ascending"),
        ({"threshold": []}, "different and ascending"),
        ({"threshold": [5, float("nan")]}, "must be a finite number"),
        ({"between": (7, 5)}, "low < high"),
        ({"between": (5, 6, 7)}, "two numbers"),
        ({"between": 5}, "two numbers .* got 5"),
        ({"between": "5-7"}, "two numbers .* got '5-7'"),
        ({"between": (5, 7), "fraction_of_max": 0.5}, "got several of them"),
        ({"threshold": 3.0, "between": (5, 7)}, "got several of them"),
        (
            {"fraction_of_max": 1.2},
            "no point exceeds that multiple of the maximum; .* fraction_of_min=1.2",
        ),
        ({"fraction_of_min": 1.0}, "must differ from 1"),
        ({"fraction_of_min": -1.0}, "fraction_of_min must be > 0"),
        ({"fraction_of_min": 1.2, "fraction_of_max": 0.5}, "needs either"),
    ],
)
def test_thresholds_that_make_no_sense_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        tv.LevelSet(**arguments)


def naive_update(goal: Bands, regions: Regions, lower: np.ndarray, upper: np.ndarray) -> list[str]:
    """Decide every point by itself, from the definition."""
    found = []
    for i in range(len(lower)):
        if goal.monotone and not regions.potential[i]:
            found.append("above" if regions.above[i] else "below")
            continue
        if all(lower[i] > h or upper[i] < h for h in goal.thresholds):
            band = sum(lower[i] > h for h in goal.thresholds)
            wanted = band == 1 if goal.inside else band >= 1
            found.append("above" if wanted else "below")
        else:
            found.append("potential")
    return found


@pytest.mark.parametrize(
    "goal", [Bands((-0.5, 0.0, 0.7), monotone=True), Bands((0.0, 0.4), True, False)]
)
def test_regions_agree_with_the_definition(goal: Bands) -> None:
    rng = np.random.default_rng(1)
    regions = Regions.unknown(200)
    for _ in range(3):
        lower = rng.normal(0, 0.7, 200)
        upper = lower + rng.exponential(0.4, 200)
        expected = naive_update(goal, regions, lower, upper)
        regions = goal.update(regions, lower, upper)
        for name in ("above", "below", "potential"):
            assert getattr(regions, name).tolist() == [each == name for each in expected]


def test_one_band_threshold_has_the_epsilon_of_a_level_set() -> None:
    rng = np.random.default_rng(2)
    lower = rng.normal(0, 0.5, 100)
    upper = lower + rng.exponential(0.5, 100)
    single = tv.LevelSet(0.1)
    several = Bands((0.1,))
    regions = single.update(Regions.unknown(100), lower, upper)
    assert (
        several.update(Regions.unknown(100), lower, upper).potential.tolist()
        == regions.potential.tolist()
    )
    assert several.epsilon(regions, lower, upper) == pytest.approx(
        single.epsilon(regions, lower, upper)
    )


def test_band_probabilities_add_up_and_the_reported_band_is_the_median() -> None:
    exceeds = np.array([[0.9, 0.6, 0.2], [0.7, 0.3, 0.1], [0.4, 0.1, 0.0]])
    np.testing.assert_allclose(band_probabilities(exceeds).sum(axis=0), 1.0)
    assert reported_bands(exceeds).tolist() == [2, 1, 0]
    np.testing.assert_allclose(certainty_of(exceeds), [0.3, 0.3, 0.8])


def test_statements_agree_with_draws_counted_one_by_one() -> None:
    study = banded(noise=0.05)
    for x in (0.0, 0.4, 0.9):
        study.tell({"x": x}, hill({"x": x}))
    result = study.result()
    inputs = study._state.conclusions.statement_inputs()
    draws = inputs.posterior.draw(inputs.sites, 20_000, (5, 5))
    share = np.array([[np.mean([v > h for v in row]) for row in draws[:, :4000]] for h in LEVELS])
    exceeds = 1 - np.cumsum(result.statements.bands.probability, axis=0)[:-1]
    np.testing.assert_allclose(exceeds, share, atol=0.04)  # 5 standard errors of 4,000 draws
    # F1 of each threshold and their mean, draw by draw.
    scores = []
    for draw in draws[:, :3000].T:
        f1 = []
        for k, h in enumerate(LEVELS):
            true = {i for i, v in enumerate(draw) if v >= h}
            chosen = {i for i, band in enumerate(result.bands) if band > k}
            both = len(true) + len(chosen)
            f1.append(1.0 if both == 0 else 2 * len(true & chosen) / both)
        scores.append(np.mean(f1))
    assert result.expected_f1.mean == pytest.approx(np.mean(scores), abs=0.02)
    # What is decided at 80 % holds for all of those points at once.
    classes = result.classify(0.8)
    decided = np.flatnonzero(classes.band >= 0)
    right = (
        np.searchsorted(LEVELS, draws[decided], side="right") == classes.band[decided, None]
    ).all(axis=0)
    assert right.mean() >= 0.8 - 0.015


def test_a_band_too_narrow_to_be_certain_leaves_points_far_from_it_decided() -> None:
    """The mean of one point lies in a band of probability 1e-4: that point is undecided, and not
    all of them."""
    study = banded(noise=0.001, exact_model=True)
    for x in np.linspace(0, 1, 11):
        study.tell({"x": x}, hill({"x": x}))
    mean = float(study.result().mean[7])
    sd = float(study.result().sd[7])
    goal = tv.LevelSet([mean - 1e-4 * sd, mean + 1e-4 * sd])
    narrow = banded(goal, noise=0.001, exact_model=True)
    for x in np.linspace(0, 1, 11):
        narrow.tell({"x": x}, hill({"x": x}))
    result = narrow.result()
    assert result.bands[7] == 1
    classes = result.classify()
    far = np.abs(result.mean - mean) > 6 * result.sd
    assert far.sum() >= 4
    assert not classes.undecided[far].any()
    assert classes.undecided[7]


def test_a_run_finds_the_bands_and_says_so() -> None:
    study = banded()
    result = study.run(lambda point: hill(point), steps=14)
    truth = on(LINE, hill)
    assert result.f1(truth) == 1.0
    assert result.bands.tolist() == np.searchsorted(LEVELS, truth, side="right").tolist()
    frame = result.to_frame()
    assert set(frame["class"]) <= {
        "below -0.2",
        "-0.2 to 0.3",
        "0.3 to 0.8",
        "above 0.8",
        "undecided",
    }
    counts = result.to_dict()["classified"]["bands"]
    assert counts["above 0.8"] == (frame["class"] == "above 0.8").sum()
    assert "1 below -0.2, 1 between -0.2 and 0.3" in str(result.certificate)
    assert "several thresholds" in " ".join(result.certificate.cost_void)
    assert result.thresholds == tuple(LEVELS)
    assert result.threshold is None


def test_points_between_two_thresholds_are_found() -> None:
    study = banded(tv.LevelSet(between=(0.3, 0.8)))
    result = study.run(lambda point: hill(point), f1=0.9, steps=25)
    truth = on(LINE, hill)
    inside = (truth >= 0.3) & (truth < 0.8)
    assert result.classification.tolist() == inside.tolist()
    assert result.f1(truth) == 1.0
    assert "between 0.3 and 0.8" in study.goal.question


def test_a_learned_model_has_bands_too() -> None:
    study = tv.Study(LINE, tv.LevelSet([0.2, 0.7]))
    study.run(lambda point: hill(point), steps=8)
    copy = tv.Study.from_json(study.to_json())
    assert copy.goal == study.goal
    assert copy.ask().point == study.ask().point
    result = study.run(lambda point: hill(point), steps=11, resume=True)
    assert result.f1(on(LINE, hill)) >= 0.8


@pytest.mark.filterwarnings("ignore::truvar.exceptions.OutlierWarning")
@pytest.mark.parametrize(
    "tasks", [None, tv.Tasks(names=["target", "other"])], ids=["one task", "two tasks"]
)
def test_a_far_threshold_does_not_blur_the_near_one(tasks: tv.Tasks | None) -> None:
    """34 exact values of 101 points: a threshold that no value comes near to says nothing about
    the others."""
    domain = tv.Domain.grid(x=np.linspace(0.0, 1.0, 101))
    f = np.sin(6 * domain.points[:, 0])
    study = tv.Study(domain, tv.LevelSet([0.5, 1000.0]), tasks=tasks)
    study.tell_frame(pd.DataFrame({"x": domain.points[::3, 0], "value": f[::3], "noise": 0.0}))
    result = study.result()
    assert result.classify().undecided.sum() <= 5
    assert result.f1(f) == 1.0


@pytest.mark.filterwarnings("ignore::truvar.exceptions.OutlierWarning")
def test_a_value_near_a_far_threshold_is_no_error() -> None:
    values = np.append(np.linspace(0.0, 1.0, 20), 1100.0)
    assert find_outliers(values, [0.5]) == (20,)
    assert find_outliers(values, [0.5, 1000.0]) == ()
    assert nearest_reference(values, [0.5, 1000.0], None) == 0.5
    assert nearest_reference(values, [0.5, 1000.0], 900.0) == 1000.0
    assert nearest_reference(values[:0], [0.5, 2.0, 1000.0], None) == 2.0
    assert nearest_reference(values, [], None) is None


@pytest.mark.parametrize("levels", [[0.5, 1000.0], [0.1, 0.5]], ids=str)
def test_the_threshold_nearest_to_a_mean_function_counts(levels: list[float]) -> None:
    domain = tv.Domain.grid(x=np.linspace(0.0, 1.0, 30))
    study = tv.Study(domain, tv.LevelSet(levels), mean=lambda x: 0.5 + 2 * x[:, 0])
    for row in range(0, 30, 3):
        study.tell(
            domain.point(row),
            float(0.5 + 2 * domain.points[row, 0] + 0.1 * np.sin(9 * domain.points[row, 0])),
        )
    data = study._learner.surrogate.hyperparameters.fit_data(study._learner.observations)
    residuals = data.values
    naive = []
    for level in levels:
        differences = level - (0.5 + 2 * domain.points[:, 0])
        naive.append(min(differences, key=lambda each: abs(each - np.median(residuals))))
    np.testing.assert_allclose(data.references, naive)
    np.testing.assert_allclose(data.thresholds, 0.5 - (0.5 + 2 * data.points[:, 0]))


FOR_BANDS = ["auto", "truvar", "plus", "sur", "straddle", "gchk", "variance", "random"]


@pytest.mark.parametrize(
    "policy", [*FOR_BANDS, tv.TruVaR(anticipate="mean"), tv.TruVaR(anticipate="average")], ids=str
)
@pytest.mark.parametrize("goal", [tv.LevelSet(LEVELS), tv.LevelSet(between=(0.3, 0.8))], ids=str)
def test_policies_for_several_thresholds(goal: Any, policy: Any) -> None:
    study = banded(goal, policy=policy)
    study.run(lambda point: hill(point), steps=6)
    assert study.steps == 6 or study.finished or study.exhausted
    assert study.result().f1(on(LINE, hill)) > 0.5


@pytest.mark.parametrize(
    "policy", ["sur", "straddle", "gchk", tv.TruVaR(anticipate="average")], ids=str
)
def test_bands_with_one_threshold_score_as_a_level_set(policy: Any) -> None:
    one = banded(tv.LevelSet(0.3), policy=policy)
    band = banded(Bands((0.3,)), policy=policy)
    for study in (one, band):
        study.tell({"x": 0.4}, 0.5)
    np.testing.assert_allclose(band.gains(), one.gains(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("policy", ["straddle", "gchk"])
def test_the_nearest_or_most_ambiguous_threshold_counts(policy: str) -> None:
    """The score of bands is the highest among those of the single thresholds."""
    scores = []
    for goal in (*map(tv.LevelSet, LEVELS), tv.LevelSet(LEVELS)):
        study = banded(goal, policy=policy)
        study.tell({"x": 0.4}, 0.5)
        scores.append(study.gains())
    np.testing.assert_allclose(scores[-1], np.max(scores[:-1], axis=0), rtol=1e-12, atol=1e-12)


def test_what_anticipates_a_minimum_is_refused() -> None:
    with pytest.raises(UnsupportedGoalError, match="leave out anticipate"):
        banded(tv.LevelSet(fraction_of_min=1.2), policy=tv.TruVaR(anticipate="mean"))


@pytest.mark.parametrize("policy", ["plus", "sur"])
def test_the_gain_is_the_sum_over_the_thresholds(policy: str) -> None:
    """With all points in the sum, gains of bands are those of the single thresholds added."""
    total = np.zeros(len(LINE))
    for goal in (*map(tv.LevelSet, LEVELS), tv.LevelSet(LEVELS)):
        study = banded(goal, policy=policy)
        study.tell({"x": 0.4}, 0.5)
        if isinstance(goal, Bands):
            np.testing.assert_allclose(study.gains(), total, rtol=1e-9)
        else:
            total += study.gains()


def test_bands_in_a_problem_file() -> None:
    problem = problem_from_dict(
        {"domain": {"grid": {"x": [0, 1, 5]}}, "goal": {"level_set": [0.2, 0.7]}}
    )
    assert problem.study().goal.thresholds == (0.2, 0.7)
    between = problem_from_dict(
        {"domain": {"grid": {"x": [0, 1, 5]}}, "goal": {"between": [0.2, 0.7]}}
    )
    assert between.study().goal.inside
    with pytest.raises(tv.TruvarError, match="different and ascending"):
        problem_from_dict({"domain": {"grid": {"x": [0, 1, 5]}}, "goal": {"level_set": [0.7, 0.2]}})
    with pytest.raises(tv.TruvarError, match="no point exceeds"):
        problem_from_dict({"domain": {"grid": {"x": [0, 1, 5]}}, "goal": {"fraction_of_max": 1.5}})


@pytest.mark.parametrize("columns", [1, 2, 3])
def test_figures_and_texts_show_the_bands(columns: int) -> None:
    pytest.importorskip("matplotlib")
    from truvar.report._text_map import text_map
    from truvar.report.html_report import render_html_report
    from truvar.report.status import status_data
    from truvar.report.terminal import TerminalStyle

    axes = {name: np.linspace(0, 1, 5) for name in ("x", "y", "z")[:columns]}
    study = tv.Study(
        tv.Domain.grid(**axes), tv.LevelSet(LEVELS), kernel=RBF(0.4), mean=0.0, noise=1e-4
    )
    study.run(lambda point: hill(point), steps=8)
    assert study.plot().axes
    assert "0.3 to 0.8" in render_html_report(study)
    assert text_map(study, TerminalStyle(80, False, True))
    assert status_data(study)["result"]["thresholds"] == LEVELS


def test_a_multiple_of_the_minimum_is_the_counterpart_of_a_fraction_of_the_maximum() -> None:
    """With values of the other sign, points above c min f are those below c max(-f), in every
    statement."""
    up = a_study(goal=tv.LevelSet(fraction_of_max=0.7), noise=0.01)
    down = a_study(goal=tv.LevelSet(fraction_of_min=0.7), noise=0.01)
    for x in (0.0, 0.3, 0.6, 0.9):
        up.tell({"x": x}, hill({"x": x}))
        down.tell({"x": x}, -hill({"x": x}))
    above = up.result()
    below = down.result()
    np.testing.assert_allclose(below.probability, 1 - above.probability, atol=0.06)
    assert (below.classification == ~above.classification).all()
    assert below.above.tolist() == above.below.tolist()
    assert below.threshold == pytest.approx(-above.threshold)
    assert below.f1(-on(LINE, hill)) > 0.8
    assert "70 % of the minimum" in str(below.certificate)
