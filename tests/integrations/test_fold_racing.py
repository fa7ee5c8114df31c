"""Races over folds choose what a naive transcription of their formulas chooses, within the
budget, and quickly."""

import itertools

import numpy as np
import pytest
from scipy.stats import loguniform, multivariate_normal, norm, randint

import truvar as tv
from truvar.integrations import _cross_validation as cross_validation
from truvar.integrations import _fold_racing as fold_racing
from truvar.integrations._configurations import ConfigurationSpace
from truvar.integrations._cross_validation import FoldSearch
from truvar.integrations._fold_racing import (
    CONSTANT_VARIANCE,
    MAX_MODELLED,
    NUGGET_PRIOR,
    ScoreModel,
    ScorePosterior,
    choose_folds,
    fit_score_model,
    modelled_rows,
    n_first_folds,
    score_posterior,
)
from truvar.models.hyperposterior import HyperPrior

CHEAP = 0.001
EXPENSIVE = 1.0


def pool(n=30):
    rng = np.random.default_rng(0)
    points = rng.random((n, 3))
    points[:, 2] = rng.integers(0, 3, n)
    return points


def matern52(points, lengthscales):
    """Return the correlations, with the Hamming distance in the last column."""
    found = np.empty((len(points), len(points)))
    for i, a in enumerate(points):
        for j, b in enumerate(points):
            difference = np.append(a[:2] - b[:2], float(a[2] != b[2])) / lengthscales
            r = np.sqrt(5 * (difference**2).sum())
            found[i, j] = (1 + r + r * r / 3) * np.exp(-r)
    return found


def searched(score, *, budget, folds=5, n=60, seconds=CHEAP, seed=0, policy=None):
    """Return a finished search of a listed line of configurations, and the numbers of fits of
    its batches."""
    space = ConfigurationSpace({"x": [float(each) for each in np.linspace(0, 1, n)]})
    search = FoldSearch(
        space,
        folds=folds,
        budget=budget,
        policy=policy or tv.WeightedTruVaR(),
        timed=False,
        seed=seed,
    )
    batches = []
    while pairs := search.ask():
        assert len(set(pairs)) == len(pairs)
        assert not any(search.tried[pair] for pair in pairs)
        for row, fold in pairs:
            search.tell(row, fold, score(search.configurations[row]["x"], fold), seconds)
        batches.append(len(pairs))
    return search, batches


def bump(x, fold):
    return float(np.exp(-(((x - 0.7) / 0.1) ** 2)) + 0.1 * fold)


# -- model
# --------------------------------------------------------------------------------------------------


def test_the_posterior_is_that_of_the_joint_normal_distribution():
    points = pool()
    rng = np.random.default_rng(1)
    rows = np.array([3, 8, 9, 17, 25])
    values = rng.normal(0.8, 0.1, 5)
    noise = np.array([0.004, 0.0, 0.002, 0.0, 0.003])  # two of them were evaluated on all folds
    model = ScoreModel(np.zeros(5), np.array([0.3, 0.6, 1.1]), 0.02, 0.001, 0.75, 5)
    smooth = 0.02 * (matern52(points, model.lengthscales) + CONSTANT_VARIANCE)
    joint = smooth + 0.001 * np.eye(len(points))
    inverse = np.linalg.inv(joint[np.ix_(rows, rows)] + np.diag(noise))
    mean = 0.75 + joint[:, rows] @ inverse @ (values - 0.75)
    variance = np.diag(joint - joint[:, rows] @ inverse @ joint[rows])
    found = score_posterior(model, points, rows, values, noise, (2,))
    np.testing.assert_allclose(found.mean, mean, atol=1e-8)
    np.testing.assert_allclose(found.variance, variance, atol=1e-9)
    np.testing.assert_allclose(found.mean[[8, 17]], values[[1, 3]], atol=1e-8)
    covariance = smooth[4] - smooth[4][rows] @ inverse @ smooth[rows]
    np.testing.assert_allclose(found.covariance_of(4), covariance, atol=1e-9)


def test_the_fitted_hyperparameters_have_the_highest_posterior_density():
    points = pool(24)
    rng = np.random.default_rng(2)
    values = np.sin(5 * points[:, 0]) + 0.3 * (points[:, 2] == 1) + rng.normal(0, 0.1, 24)
    noise = np.where(np.arange(24) % 2, 0.01, 0.0)
    z = (values - values.mean()) / values.std()
    smooth = HyperPrior.default(3, False, False, categorical=(2,))

    def log_density(theta):
        variance = np.exp(2 * theta[3])
        total = variance * (matern52(points, np.exp(theta[:3])) + CONSTANT_VARIANCE)
        total += np.diag(np.exp(theta[4]) + noise / values.var() + 1e-8)
        prior = norm(smooth.mean, smooth.sd).logpdf(theta[:4]).sum() + norm(*NUGGET_PRIOR).logpdf(
            theta[4]
        )
        return multivariate_normal(cov=total).logpdf(z) + prior

    model = fit_score_model(points, values, noise, (2,), None)
    best = log_density(model.theta)
    others = [log_density(model.theta + 0.05 * rng.standard_normal(5)) for _ in range(40)]
    assert max(others) < best + 1e-3
    np.testing.assert_allclose(model.lengthscales, np.exp(model.theta[:3]))
    assert model.variance == pytest.approx(np.exp(2 * model.theta[3]) * values.var())
    assert model.nugget == pytest.approx(np.exp(model.theta[4]) * values.var())
    again = fit_score_model(points, values, noise, (2,), model)
    assert log_density(again.theta) >= best - 1e-6


def test_equal_scores_can_be_modelled():
    points = pool(6)
    model = fit_score_model(points, np.full(6, 0.5), np.zeros(6), (2,), None)
    found = score_posterior(model, points, np.arange(3), np.full(3, 0.5), np.zeros(3), (2,))
    np.testing.assert_allclose(found.mean, 0.5)


def test_the_model_is_conditioned_on_the_best_and_some_of_the_others():
    rows = np.arange(1000) + 7
    values = np.random.default_rng(0).random(1000)
    kept = modelled_rows(rows, values)
    assert len(kept) == len(set(kept.tolist())) == MAX_MODELLED
    best = np.argsort(-values)[: MAX_MODELLED // 2]
    assert set(best.tolist()) <= set(kept.tolist())
    assert values[kept].min() < 0.01
    np.testing.assert_array_equal(modelled_rows(rows[:9], values[:9]), np.arange(9))


# -- choice
# --------------------------------------------------------------------------------------------------

POSTERIOR = ScorePosterior(
    np.array([0.5, 0.8, 0.7, 0.9]),
    np.full(4, 0.01),
    lambda row: np.where(np.arange(4) == row, 0.01, 0.0),
)


def choice(**options):
    usual = {
        "n_tried": np.array([0, 0, 2, 5]),
        "excluded": np.zeros(4, bool),
        "n_folds": 5,
        "costs": np.ones(4),
        "error_variance": 0.01,
        "nugget": 0.0,
        "batch": 4,
        "left": 50,
    }
    given = usual | options
    return choose_folds(POSTERIOR, 0.9, given.pop("n_tried"), given.pop("excluded"), **given)


def test_new_configurations_get_one_fold_and_others_two_in_the_order_of_improvement_per_cost():
    expected = norm.pdf((POSTERIOR.mean - 0.9) / 0.1) * 0.1
    expected += (POSTERIOR.mean - 0.9) * norm.cdf((POSTERIOR.mean - 0.9) / 0.1)
    per_cost = expected[:3] / np.array([5, 5, 3])
    assert choice() == [(row, 2 if row == 2 else 1) for row in np.argsort(-per_cost)]
    assert choice(costs=np.array([1.0, 1e6, 1.0, 1.0]))[0][0] == 2
    assert choice(batch=1) == [(1, 1)]


def test_with_many_folds_a_configuration_gets_a_tenth_then_as_many_again():
    folds = dict(choice(n_folds=100, n_tried=np.array([0, 20, 1, 100]), left=500, batch=99))
    assert folds == {0: 10, 1: 20, 2: 2}
    assert [n_first_folds(count) for count in (2, 5, 10, 11, 30)] == [1, 1, 1, 2, 3]


def test_only_configurations_that_can_be_completed_are_chosen():
    assert choice(left=4) == [(2, 3)]
    assert choice(left=2) == []
    assert choice(excluded=np.array([False, True, True, False])) == [(0, 1)]
    assert choice(n_tried=np.full(4, 5)) == []


def test_a_configuration_that_resembles_a_chosen_one_comes_later():
    """Two equal configurations and a worse one: after one of the equal ones the other has little
    to offer."""
    mean = np.array([0.8, 0.8, 0.79])
    prior = np.array([[0.01, 0.01, 0.0], [0.01, 0.01, 0.0], [0.0, 0.0, 0.01]])
    posterior = ScorePosterior(mean, np.full(3, 0.01), lambda row: prior[row])
    chosen = choose_folds(
        posterior,
        0.9,
        np.zeros(3, int),
        np.zeros(3, bool),
        n_folds=5,
        costs=np.ones(3),
        error_variance=0.001,
        nugget=0.0,
        batch=3,
        left=50,
    )
    assert [row for row, _ in chosen] == [0, 2, 1]


# -- search
# --------------------------------------------------------------------------------------------------


def test_a_race_over_many_folds_completes_configurations():
    search, _ = searched(lambda x, fold: bump(x, 0.01 * fold), budget=200, folds=30)
    assert search.complete.sum() > 1
    assert 170 < search.tried.sum() <= 200


@pytest.mark.parametrize("budget", [5, 7, 11, 23, 60, 150])
def test_a_race_keeps_to_its_budget_and_completes_the_best(budget):
    search, _ = searched(bump, budget=budget)
    assert budget - 5 < search.tried.sum() <= budget
    assert search.complete.any()
    if budget >= 60:
        means = search.scores[search.complete].mean(axis=1)
        assert means.max() > 1.15  # the highest mean score is 1.2
        assert len(set(search.tried.sum(axis=1).tolist()) - {0}) > 1


def test_a_race_decides_in_few_steps_and_fits_its_model_a_few_times(monkeypatch):
    fits = []
    real = fold_racing.fit_score_model

    def counted(points, *rest):
        fits.append(len(points))
        return real(points, *rest)

    monkeypatch.setattr(cross_validation, "fit_score_model", counted)
    search, batches = searched(bump, budget=400, n=300)
    assert search.tried.sum() > 395
    assert max(fits) <= MAX_MODELLED
    assert all(later >= 1.3 * earlier for earlier, later in itertools.pairwise(fits))
    assert len(batches) < 40


def test_failing_configurations_do_not_stop_a_race():
    search, _ = searched(lambda x, fold: np.nan if x > 0.5 else bump(1 - x, fold), budget=80)
    assert search.tried.sum() > 75
    assert (search.tried[search.failed].sum(axis=1) <= 5).all()
    assert search.scores[search.complete].mean(axis=1).max() > 1.1
    search, _ = searched(lambda x, fold: np.nan, budget=30)
    assert search.failed.sum() == search.tried.any(axis=1).sum()


def test_expensive_fits_are_left_to_the_policy(monkeypatch):
    monkeypatch.setattr(cross_validation, "choose_folds", None)
    search, _ = searched(bump, budget=20, n=12, seconds=EXPENSIVE)
    assert search.complete.any()
    with pytest.raises(TypeError):
        searched(bump, budget=40, n=12)
    assert searched(bump, budget=20, n=12, policy=tv.TruVaR())[
        0
    ].complete.any()  # another policy is never replaced


def test_processor_time_tells_whether_fits_are_cheap_unless_they_wait_long():
    for seconds, processor_seconds, is_cheap in (
        (0.3, 0.01, True),
        (0.3, 0.2, False),
        (5.0, 0.01, False),
    ):
        space = ConfigurationSpace({"x": [float(each) for each in range(20)]})
        search = FoldSearch(
            space, folds=3, budget=30, policy=tv.WeightedTruVaR(), timed=False, seed=0
        )
        for row, fold in search.ask():
            search.tell(row, fold, 0.5, seconds, processor_seconds)
        pairs = search.ask()
        assert (len({row for row, _ in pairs}) == len(pairs) == 7) == is_cheap


@pytest.mark.parametrize("is_cheap", [True, False])
def test_the_time_of_fits_that_fail_does_not_tell_whether_fits_are_cheap(monkeypatch, is_cheap):
    races = []
    real = cross_validation.choose_folds

    def counted(*args, **options):
        races.append(args)
        return real(*args, **options)

    monkeypatch.setattr(cross_validation, "choose_folds", counted)
    space = ConfigurationSpace({"x": [float(each) for each in np.linspace(0, 1, 30)]})
    search = FoldSearch(space, folds=3, budget=40, policy=tv.WeightedTruVaR(), timed=False, seed=0)
    seconds = (CHEAP, EXPENSIVE) if is_cheap else (EXPENSIVE, CHEAP)
    while pairs := search.ask():
        for row, fold in pairs:
            x = search.configurations[row]["x"]
            fails = 0.4 < x < 0.6  # the first configuration is in the middle
            search.tell(row, fold, np.nan if fails else x, seconds[int(fails)])
    assert search.failed.any()
    assert search.complete.any()
    assert bool(races) == is_cheap


def test_a_budget_for_everything_needs_no_decisions():
    search, batches = searched(bump, budget=300)
    assert batches == [300]
    assert search.reason == "all configurations were evaluated on all folds"


def test_a_race_sees_through_effects_of_folds():
    """Folds differ by more than configurations do, and every configuration is evaluated on
    others first."""
    search, _ = searched(lambda x, fold: -((x - 0.3) ** 2) + 10.0 * fold, budget=60)
    best = int(np.argmax(np.where(search.complete, search.scores.mean(axis=1), -np.inf)))
    assert abs(search.configurations[best]["x"] - 0.3) < 0.05


def test_configurations_that_diverge_do_not_hide_the_others_from_the_policy():
    """They diverge by another amount on every fold, by far more than the others differ."""

    def score(x, fold):
        return -1e3 * (1 + x) * (1 + fold**2) if x > 0.5 else -((x - 0.3) ** 2) + 0.01 * fold

    search, _ = searched(score, budget=50, seconds=EXPENSIVE)
    effects, error_variance = search._fold_effects()
    assert np.abs(effects).max() < 0.1
    assert error_variance < 1e-3
    best = int(np.argmax(np.where(search.complete, search.scores.mean(axis=1), -np.inf)))
    assert abs(search.configurations[best]["x"] - 0.3) < 0.03


# -- configurations
# --------------------------------------------------------------------------------------------------


class Coin:
    """A distribution with `rvs` only, as scikit-learn asks for, which gets a `RandomState`."""

    def rvs(self, random_state=None):
        return ["heads", "tails"][random_state.randint(2)]


def test_draws_and_neighbours_keep_types_and_ranges():
    grids = [
        {"C": loguniform(1e-3, 1e3), "side": Coin()},
        {"depth": randint(2, 9), "kind": ["a", None], "n": [1, 2, 4]},
    ]
    space = ConfigurationSpace(grids)
    rng = np.random.default_rng(0)
    drawn = space.draw(200, rng)
    assert 60 < sum("C" in each for each in drawn) < 140
    found = [*drawn, *space.neighbours(drawn[0], 40, rng)]
    found += space.neighbours(next(each for each in drawn if "depth" in each), 40, rng)
    for each in found:
        if "C" in each:
            assert each.keys() == {"C", "side"}
            assert isinstance(each["C"], float)
            assert 1e-3 <= each["C"] <= 1e3
            assert each["side"] in ("heads", "tails")
        else:
            assert type(each["depth"]) is int
            assert 2 <= each["depth"] <= 8
            assert each["kind"] in ("a", None)
            assert each["n"] in (1, 2, 4)
    logs = np.log10([each["C"] for each in drawn if "C" in each])
    assert abs(logs.mean()) < 1.0  # five standard errors and more


class Own:
    """A distribution without quantiles."""

    def __init__(self, low):
        self.low = low

    def rvs(self, random_state=None):
        return self.low + random_state.uniform()


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (loguniform(1.0, 2.0), loguniform(3.0, 4.0)),
        (Own(1.0), Own(3.0)),
        (np.linspace(1, 2, 800).tolist(), np.linspace(3, 4, 800).tolist()),
    ],
)
def test_neighbours_are_of_the_grid_of_the_configuration_if_several_have_the_same_parameters(
    first, second
):
    space = ConfigurationSpace(
        [{"kernel": ["a"], "C": first}, {"kernel": ["b"], "C": second}, {"C": first}]
    )
    rng = np.random.default_rng(0)
    drawn = space.draw(60, rng)
    assert len(drawn) > 50
    found = [near for each in drawn for near in space.neighbours(each, 5, rng)]
    again = [near for each in found[:50] for near in space.neighbours(each, 5, rng)]
    assert {each.get("kernel") for each in found} == {"a", "b", None}
    for each in [*drawn, *found, *again]:
        low = 3.0 if each.get("kernel") == "b" else 1.0
        assert low <= each["C"] <= low + 1


def test_all_configurations_of_a_small_grid_are_drawn_and_have_neighbours():
    space = ConfigurationSpace([{"C": [1, 2, 3]}, {"C": [5, 6]}])
    rng = np.random.default_rng(0)
    drawn = space.draw(10, rng)
    assert drawn == space.listed()
    assert {near["C"] for near in space.neighbours(drawn[-1], 20, rng)} == {5, 6}
