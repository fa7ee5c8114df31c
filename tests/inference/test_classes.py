"""Classes of single points, with a tolerance and up to a margin, against naive transcriptions."""

from __future__ import annotations

import pickle
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import Matern

import truvar as tv
from truvar.exceptions import InvalidArgumentError, UnsupportedGoalError
from truvar.inference import _level_set
from truvar.inference.errors import ClassErrors
from truvar.inference.statements import Estimate

LINE = tv.Domain.grid(x=np.linspace(0.0, 1.0, 60))
GOALS = [
    tv.LevelSet(0.3),
    tv.LevelSet(fraction_of_max=0.6),
    tv.LevelSet([-0.4, 0.5]),
    tv.LevelSet(between=(-0.4, 0.5)),
]


def measured(goal: Any, steps: int = 7, domain: tv.Domain = LINE) -> tv.Study:
    study = tv.Study(domain, goal, kernel=Matern(0.3, nu=2.5), mean=0.0, noise=0.01)
    for index in np.linspace(0, len(domain) - 1, steps).astype(int):
        point = domain.point(int(index))
        study.tell(point, float(np.sin(7 * point["x"])))
    return study


@pytest.fixture(scope="module", params=GOALS, ids=str)
def result(request: pytest.FixtureRequest) -> tv.Result:
    return measured(request.param).result()


def random_errors(seed: int, n: int = 40, n_draws: int = 300) -> tuple[ClassErrors, np.ndarray]:
    """Return errors of correlated classes, all of them drawn, and whether each is wrong."""
    rng = np.random.default_rng(seed)
    certainty = np.round(rng.uniform(0.5, 1.0, n), 2)  # with ties
    common = rng.uniform(size=n_draws)
    wrong = np.where(rng.uniform(size=n_draws) < 0.5, common, rng.uniform(size=(n, n_draws)))
    wrong = wrong > certainty[:, None]
    rows = np.arange(n)
    return ClassErrors.of(certainty, 1.0 - certainty, rows, rows, wrong), wrong


# -- naive transcriptions
# --------------------------------------------------------------------------------------------------


def naive_tolerance(
    certainty: np.ndarray, wrong: np.ndarray, confidence: float, tolerance: float
) -> set[int]:
    """Return the largest set of the most probable points of which too many are wrong seldom enough."""
    best: set[int] = set()
    n_draws = wrong.shape[1]
    for lowest in sorted(set(certainty.tolist()), reverse=True):
        shown = [i for i in range(len(certainty)) if certainty[i] >= lowest]
        n_failing = 0
        for s in range(n_draws):
            if sum(bool(wrong[i, s]) for i in shown) > tolerance * len(shown):
                n_failing += 1
        if 1 - (n_failing + 1) / (n_draws + 1) >= confidence:
            best = set(shown)
    return best


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("confidence", "tolerance"), [(0.9, 0.1), (0.8, 0.25), (0.95, 0.03)])
def test_the_tolerated_set_is_that_of_a_naive_search(
    seed: int, confidence: float, tolerance: float
) -> None:
    errors, wrong = random_errors(seed)
    shown = errors.shown_with_tolerance(confidence, tolerance)
    naive = naive_tolerance(errors.certainty, wrong, confidence, tolerance)
    assert set(np.flatnonzero(shown).tolist()) == naive


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("pointwise", [0.55, 0.8, 0.97])
def test_the_number_wrong_is_counted_in_the_draws(seed: int, pointwise: float) -> None:
    errors, wrong = random_errors(seed)
    counts = wrong[errors.certainty >= pointwise].sum(axis=0)
    np.testing.assert_array_equal(errors.counts(pointwise), counts)
    mean, low, high = errors.bounds(pointwise, 0.9)
    assert mean == pytest.approx(counts.mean())
    assert low <= mean <= high
    assert ((counts > high).sum() + 1) / (len(counts) + 1) <= 0.1
    if high > mean:  # the smallest such number, unless the mean is larger
        assert ((counts > high - 1).sum() + 1) / (len(counts) + 1) > 0.1
    assert (counts < low).mean() <= 0.1


def test_the_bound_contains_the_mean_where_errors_come_together() -> None:
    """All points are wrong in one draw of fifty: seldom enough to be left out of a 95 % bound."""
    wrong = np.zeros((30, 400), bool)
    wrong[:, ::50] = True
    rows = np.arange(30)
    errors = ClassErrors.of(np.full(30, 0.98), np.full(30, 0.02), rows, rows, wrong)
    mean, low, high = errors.bounds(0.95, 0.95)
    assert mean == pytest.approx(0.6)
    assert (low, high) == (0.0, mean)


@given(
    seed=st.integers(0, 50),
    levels=st.tuples(st.floats(0.5, 0.99), st.floats(0.5, 0.99)).map(sorted),
    shares=st.tuples(st.floats(0.0, 0.5), st.floats(0.0, 0.5)).map(sorted),
)
@settings(max_examples=40, deadline=None)
def test_tolerated_sets_are_nested(seed: int, levels: list[float], shares: list[float]) -> None:
    errors, _ = random_errors(seed, n_draws=120)
    small = errors.shown_with_tolerance(levels[1], shares[0])
    assert not (small & ~errors.shown_with_tolerance(levels[0], shares[0])).any()
    assert not (small & ~errors.shown_with_tolerance(levels[1], shares[1])).any()
    share_wrong = errors.counts(errors.certainty[small].min(initial=1.1)) / max(small.sum(), 1)
    assert (share_wrong > shares[0] + 1e-12).mean() <= 1 - levels[1]


def test_errors_are_the_same_after_json() -> None:
    errors, _ = random_errors(1)
    again = ClassErrors.from_dict(errors.to_dict(), errors.certainty)
    assert again.bounds(0.7, 0.9) == errors.bounds(0.7, 0.9)
    shown = errors.shown_with_tolerance(0.8, 0.1)
    np.testing.assert_array_equal(again.shown_with_tolerance(0.8, 0.1), shown)


def test_drawn_points_stand_for_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = measured(tv.LevelSet(0.3), steps=3).result()
    assert exact.statements.n_drawn > 30
    monkeypatch.setattr(_level_set, "MAX_DRAWN_POINTS", 30)
    sampled = measured(tv.LevelSet(0.3), steps=3).result()
    assert sampled.statements.n_drawn == 30
    all_wrong = exact.classify(pointwise=0.6).wrong
    some_wrong = sampled.classify(pointwise=0.6).wrong
    assert all_wrong is not None
    assert some_wrong is not None
    assert some_wrong.mean == pytest.approx(all_wrong.mean, rel=0.4)
    few = exact.classify(tolerance=0.05).n_shown
    assert sampled.classify(tolerance=0.05).n_shown == pytest.approx(few, abs=8)


# -- classes of a result
# --------------------------------------------------------------------------------------------------


def test_pointwise_classes_are_those_of_single_probabilities(result: tv.Result) -> None:
    statements = result.statements
    certainty = np.maximum(result.probability, 1 - result.probability)
    if statements.bands is not None:
        certainty = statements.bands.probability.max(axis=0)
    for level in (0.6, 0.8, 0.95):
        classes = result.classify(pointwise=level)
        np.testing.assert_array_equal(~classes.undecided, certainty >= level)
        np.testing.assert_array_equal(classes.above | classes.below, certainty >= level)
        assert not (classes.above & classes.below).any()
        assert classes.wrong is not None
        assert classes.wrong.low <= classes.wrong.mean <= classes.wrong.high <= classes.n_shown
        expected = float((1 - certainty)[~classes.undecided].sum())
        assert classes.wrong.mean == pytest.approx(expected, abs=0.1 + 0.2 * expected)


def test_the_default_classes_are_pointwise(result: tv.Result) -> None:
    np.testing.assert_array_equal(result.classes.labels, result.classify(pointwise=0.95).labels)
    np.testing.assert_array_equal(result.to_frame()["class"], result.classes.labels)


def test_no_tolerance_and_no_margin_is_the_strict_statement(result: tv.Result) -> None:
    strict = result.classify(0.9)
    for other in (result.classify(0.9, tolerance=0.0), result.classify(0.9, margin=0.0)):
        np.testing.assert_array_equal(strict.labels, other.labels)
    assert strict.max_wrong == 0


def test_more_is_shown_with_less_confidence_more_tolerance_and_a_wider_margin(
    result: tv.Result,
) -> None:
    ladders: list[list[dict[str, float]]] = [
        [{"confidence": c} for c in (0.99, 0.9, 0.7)],
        [{"pointwise": p} for p in (0.99, 0.9, 0.7)],
        [{"confidence": c, "tolerance": 0.05} for c in (0.99, 0.9, 0.7)],
        [{"tolerance": t} for t in (0.0, 0.01, 0.05, 0.2)],
        [{"confidence": c, "margin": 0.2} for c in (0.99, 0.9, 0.7)],
        [{"margin": m} for m in (0.0, 0.1, 0.3, 1.0, 100.0)],
    ]
    for ladder in ladders:
        shown = [~result.classify(**arguments).undecided for arguments in ladder]
        for fewer, more in pairwise(shown):
            assert not (fewer & ~more).any(), ladder
    assert not result.classify(margin=100.0).undecided.any()


def test_no_statement_contradicts_the_side_of_another(result: tv.Result) -> None:
    everything = result.classify(pointwise=1e-9)
    assert not everything.undecided.any()
    for arguments in ({"tolerance": 0.1}, {"margin": 0.4}, {"pointwise": 0.9}, {}):
        classes = result.classify(**arguments)
        shown = ~classes.undecided
        np.testing.assert_array_equal(classes.labels[shown], everything.labels[shown])


@pytest.mark.parametrize("goal", GOALS[:3], ids=str)
def test_a_margin_holds_in_as_many_naive_draws_as_it_says(goal: Any) -> None:
    study = measured(goal)
    result = study.result()
    source = result.source
    assert not isinstance(source, type(result.statements))
    draws = source.posterior.draw(source.sites, 4000, (7, 7))
    classes = result.classify(0.9, margin=0.25)
    assert classes.n_shown > result.classify(0.9).n_shown
    levels = np.tile([list(result.thresholds)], (draws.shape[1], 1)).T  # (m, S)
    if getattr(goal, "fraction_of_max", None):
        levels = 0.6 * draws.max(axis=0, keepdims=True)
    band = classes.above.astype(int) if classes.band is None else classes.band
    right = np.ones(draws.shape[1], bool)
    for i in np.flatnonzero(~classes.undecided):
        if band[i] > 0:
            right &= draws[i] >= levels[band[i] - 1] - 0.25
        if band[i] < len(levels):
            right &= draws[i] <= levels[band[i]] + 0.25
    assert right.mean() >= 0.9 - 0.02


def test_a_margin_is_in_the_units_of_the_values() -> None:
    """A margin of a factor e on each side of 1 in a model of logarithms."""
    study = tv.Study(LINE, tv.LevelSet(1.0), kernel=tv.Learned(transform="log"), seed=0)
    for index in np.linspace(0, 59, 12).astype(int):
        point = LINE.point(int(index))
        study.tell(point, float(np.exp(np.sin(7 * point["x"]))))
    result = study.result()
    assert result.classify(margin=0.9).n_shown >= result.classify().n_shown
    # h - margin is negative: every value exceeds it, so that what is shown as above is sure.
    wide = result.classify(margin=2.0)
    assert wide.above[result.probability >= 0.5].all()


def test_the_share_above_agrees_with_the_probabilities(result: tv.Result) -> None:
    share = result.share_above
    assert share.low <= share.mean <= share.high
    assert share.mean == pytest.approx(float(result.probability.mean()), abs=0.02)


def test_the_share_above_of_a_right_model_is_covered() -> None:
    """A central 95 % interval; that fewer than 33 of 40 are covered has probability 1e-3."""
    rng = np.random.default_rng(3)
    points = LINE.points
    covariance = Matern(0.3, nu=2.5)(points) + 1e-9 * np.eye(len(points))
    root = np.linalg.cholesky(covariance)
    n_covered = 0
    n_bounded = 0
    for _ in range(40):
        truth = root @ rng.standard_normal(len(points))
        study = tv.Study(LINE, tv.LevelSet(0.3), kernel=Matern(0.3, nu=2.5), mean=0.0, noise=0.01)
        for index in (3, 22, 40, 55):
            study.tell(LINE.point(index), truth[index] + 0.1 * rng.standard_normal())
        result = study.result()
        share = float((truth >= 0.3).mean())
        n_covered += result.share_above.low <= share <= result.share_above.high
        classes = result.classify(pointwise=0.8)
        n_wrong = (classes.above & (truth < 0.3)).sum() + (classes.below & (truth >= 0.3)).sum()
        n_bounded += n_wrong <= classes.max_wrong
    assert n_covered >= 33
    assert n_bounded >= 33


def test_nothing_is_shown_before_there_is_a_model() -> None:
    result = tv.Study(LINE, tv.LevelSet(0.3)).result()
    for arguments in ({"pointwise": 0.95}, {"tolerance": 0.1}, {"margin": 0.3}):
        assert result.classify(**arguments).undecided.all()
    assert result.classes.wrong == Estimate(0.0, 0.0, 0.0)
    assert (result.share_above.low, result.share_above.high) == (0.0, 1.0)


# -- messages
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"tolerance": 0.1, "margin": 0.1},
            "one of pointwise, tolerance and margin, got tolerance",
        ),
        ({"pointwise": 0.9, "tolerance": 0.1}, "got pointwise and tolerance"),
        ({"pointwise": 1.0}, "pointwise must lie between 0 and 1, got 1.0"),
        ({"confidence": 0.0}, "confidence must lie between 0 and 1"),
        ({"tolerance": 1.0}, "tolerance must be at least 0 and less than 1, got 1.0"),
        ({"tolerance": -0.1}, "tolerance must be at least 0"),
        ({"tolerance": "x"}, "tolerance must be"),
        ({"margin": -1}, "margin must be >= 0, got -1"),
        ({"margin": float("nan")}, "margin must be"),
    ],
)
def test_bad_arguments_have_one_clear_message(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        measured(tv.LevelSet(0.3), steps=3).result().classify(**arguments)


@pytest.mark.parametrize("name", ["pointwise", "tolerance", "margin"])
def test_statements_about_sides_need_a_level_set(name: str) -> None:
    result = measured(tv.Maximize()).result()
    with pytest.raises(UnsupportedGoalError, match=rf"classify\({name}=...\) needs a level set"):
        result.classify(**{name: 0.3})
    with pytest.raises(UnsupportedGoalError, match="share_above needs a level set"):
        _ = result.share_above
    np.testing.assert_array_equal(result.classes.undecided, result.classify().undecided)


def test_a_pickled_result_keeps_its_classes_and_says_that_a_margin_needs_the_model() -> None:
    result = measured(tv.LevelSet(0.3)).result()
    again = pickle.loads(pickle.dumps(result))
    for arguments in ({"pointwise": 0.7}, {"tolerance": 0.05}):
        first = result.classify(**arguments)
        second = again.classify(**arguments)
        np.testing.assert_array_equal(first.labels, second.labels)
        assert first.wrong == second.wrong
    with pytest.raises(InvalidArgumentError, match="needs the model"):
        again.classify(margin=0.3)
