"""Joint statements: draws, sets that hold at once, expected F1 and regret, against brute force
and the truth."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, multivariate_normal, norm
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

import truvar as tv
from truvar.exceptions import InvalidArgumentError, UnsupportedGoalError
from truvar.inference import _mixtures
from truvar.inference._mixtures import mixture_quantile, probability_above
from truvar.inference._optimum import N_DRAWS, POTENTIAL_REACH, ruled_out_confidence
from truvar.inference.joint import StatementSource, joint_statements
from truvar.inference.statements import Estimate
from truvar.models import ensemble, model_average
from truvar.models.frozen import FrozenPosterior, spread_points

LINE = tv.Domain.grid(x=np.linspace(0.0, 1.0, 30))
SQUARE = tv.Domain.grid(x=np.linspace(0.0, 1.0, 12), y=np.linspace(0.0, 1.0, 12))


def wave(point: dict[str, float]) -> float:
    return float(np.sin(7 * point["x"]) + 0.5 * point.get("y", 0.0))


def measured(goal: Any, steps: int = 8, domain: tv.Domain = LINE, **settings: Any) -> tv.Study:
    given = {"kernel": Matern(0.3, nu=2.5), "mean": 0.0, "noise": 0.01, **settings}
    study = tv.Study(domain, goal, **given)
    for index in np.linspace(0, len(domain) - 1, steps).astype(int):
        study.tell(domain.point(int(index)), wave(domain.point(int(index))))
    return study


def frozen(study: tv.Study) -> tuple[FrozenPosterior, np.ndarray]:
    surrogate = study._learner.surrogate
    return surrogate.freeze(), surrogate.target_sites


# -- the frozen posterior
# ----------------------------------------------------------------------------------------------


def test_the_frozen_posterior_is_that_of_scikit_learn() -> None:
    study = measured(tv.LevelSet(0.3))
    posterior, sites = frozen(study)
    rows = study.measurements
    model = GaussianProcessRegressor(Matern(0.3, nu=2.5), alpha=0.01, optimizer=None)
    model.fit(rows[["x"]].to_numpy(), rows["value"].to_numpy())
    mean, covariance = model.predict(sites, return_cov=True)
    own_mean, own_variance = posterior.predict(sites)
    np.testing.assert_allclose(own_mean[0], mean, atol=1e-9)
    np.testing.assert_allclose(own_variance[0], np.diag(covariance), atol=1e-9)
    draws = posterior.draw(sites, 200_000, (0, 0))
    np.testing.assert_allclose(np.cov(draws), covariance, atol=0.012)


def test_an_estimated_mean_adds_its_own_uncertainty() -> None:
    """Universal kriging: equal to a prior mean with a very large variance."""
    study = measured(tv.LevelSet(0.3), mean=None)
    posterior, sites = frozen(study)
    rows = study.measurements
    wide = GaussianProcessRegressor(
        Matern(0.3, nu=2.5) + ConstantKernel(1e6), alpha=0.01, optimizer=None
    )
    wide.fit(rows[["x"]].to_numpy(), rows["value"].to_numpy())
    mean, sd = wide.predict(sites, return_std=True)
    own_mean, own_variance = posterior.predict(sites)
    np.testing.assert_allclose(own_mean[0], mean, atol=1e-4)
    np.testing.assert_allclose(own_variance[0], sd**2, atol=1e-4)
    draws = posterior.draw(sites, 50_000, (0, 0))
    np.testing.assert_allclose(draws.var(axis=1), sd**2, rtol=0.05)


def test_a_frozen_posterior_does_not_change_with_further_observations() -> None:
    for settings in ({}, {"kernel": None, "mean": None, "noise": None}):
        study = measured(tv.LevelSet(0.3), **settings)
        posterior, sites = frozen(study)
        before = posterior.predict(sites)
        draws = posterior.draw(sites, 16, (0, 1))
        study.tell({"x": 0.5}, 3.0)
        np.testing.assert_array_equal(posterior.predict(sites), before)
        np.testing.assert_array_equal(posterior.draw(sites, 16, (0, 1)), draws)


def test_draws_of_a_learned_model_have_the_moments_of_the_mixture() -> None:
    study = measured(tv.LevelSet(0.3), kernel=None, mean=None, noise=None)
    posterior, sites = frozen(study)
    assert len(posterior.members) == 16
    mean, variance = study._learner.surrogate.moments
    draws = posterior.draw(sites, 64_000, (0, 0))
    np.testing.assert_allclose(draws.mean(axis=1), mean, atol=0.03 * np.sqrt(variance.max()))
    np.testing.assert_allclose(draws.std(axis=1), np.sqrt(variance), rtol=0.05)


def test_draws_at_many_points_have_exact_moments_and_nearly_exact_correlations(monkeypatch) -> None:
    monkeypatch.setattr("truvar.models.frozen.MAX_PIVOTS", 40)
    study = measured(tv.LevelSet(0.3), domain=SQUARE, kernel=RBF(0.4))
    posterior, sites = frozen(study)
    member = posterior.members[0]
    solved = member.solve(sites)
    covariance = member.covariance(sites, sites) - solved.T @ solved
    draws = posterior.draw(sites, 100_000, (0, 0))
    sd = np.sqrt(np.diag(covariance))
    np.testing.assert_allclose(draws.std(axis=1), sd, rtol=0.02)
    np.testing.assert_allclose(np.corrcoef(draws), covariance / np.outer(sd, sd), atol=0.03)


def test_spread_points_cover_the_others() -> None:
    rng = np.random.default_rng(0)
    points = rng.random((500, 2))
    chosen = spread_points(points, 60)
    assert len(set(chosen.tolist())) == 60
    distance = np.sqrt(((points[:, None, :] - points[None, chosen, :]) ** 2).sum(axis=2)).min(
        axis=1
    )
    random = rng.choice(500, 60, replace=False)
    others = np.sqrt(((points[:, None, :] - points[None, random, :]) ** 2).sum(axis=2)).min(axis=1)
    assert distance.max() < 0.8 * others.max()


# -- level sets
# --------------------------------------------------------------------------------------------------


def brute_force(
    study: tv.Study, threshold: float, count: int = 20_000
) -> tuple[np.ndarray, np.ndarray]:
    """Joint confidence of every point and the F1 scores, from draws with the full covariance and
    loops."""
    posterior, sites = frozen(study)
    member = posterior.members[0]
    solved = member.solve(sites)
    covariance = member.covariance(sites, sites) - solved.T @ solved
    mean = member.predict(sites)[0]
    draws = multivariate_normal(mean, covariance, allow_singular=True).rvs(count, random_state=1)
    p = norm.sf((threshold - mean) / np.sqrt(np.diag(covariance)))
    order = sorted(range(len(p)), key=lambda i: -max(p[i], 1 - p[i]))
    confidence = np.empty(len(p))
    alive = np.ones(count, bool)
    for i in order:
        alive &= (draws[:, i] >= threshold) == (p[i] >= 0.5)
        confidence[i] = alive.mean()
    scores = []
    reported = p >= 0.5
    for draw in draws[:4000]:
        true = draw >= threshold
        both = reported.sum() + true.sum()
        scores.append(1.0 if both == 0 else 2 * (reported & true).sum() / both)
    return confidence, np.array(scores)


def test_joint_confidence_and_expected_f1_agree_with_brute_force() -> None:
    # Brute force knows the given kernel alone, so that it must not share claims with learned ones.
    study = measured(tv.LevelSet(0.4), exact_model=True)
    statements = study.result().statements
    confidence, scores = brute_force(study, 0.4)
    np.testing.assert_allclose(statements.decided_confidence, confidence, atol=0.03)
    assert statements.expected_f1 is not None
    assert statements.expected_f1.mean == pytest.approx(scores.mean(), abs=0.01)
    assert statements.expected_f1.low == pytest.approx(np.quantile(scores, 0.025), abs=0.04)
    assert statements.expected_f1.high == pytest.approx(np.quantile(scores, 0.975), abs=0.02)


@pytest.mark.parametrize(
    "settings", [{}, {"kernel": None, "mean": None, "noise": None}], ids=["known", "learned"]
)
def test_classes_are_nested_in_the_confidence_and_agree_with_the_frame(
    settings: dict[str, None],
) -> None:
    result = measured(tv.LevelSet(0.4), 15, **settings).result()
    strict = result.classify(0.99)
    loose = result.classify(0.8)
    assert (strict.above <= loose.above).all()
    assert (strict.below <= loose.below).all()
    assert loose.undecided.sum() <= strict.undecided.sum()
    frame = result.to_frame()
    assert (frame["lower"][frame["class"] == "above"] >= 0.4).all()
    assert (frame["upper"][frame["class"] == "below"] <= 0.4).all()
    assert (frame["lower"] <= frame["mean"]).mean() > 0.9
    assert {"above", "below"} <= set(frame["class"])
    assert repr(strict).endswith("undecided, confidence=0.99)")


def test_the_expected_number_of_misclassified_points_is_the_sum_of_their_probabilities() -> None:
    result = measured(tv.LevelSet(0.4)).result()
    p = result.probability
    assert result.expected_misclassified == pytest.approx(np.minimum(p, 1 - p).sum())
    np.testing.assert_array_equal(result.classification, p >= 0.5)


def test_a_large_domain_is_represented_by_some_of_its_points(monkeypatch) -> None:
    whole = measured(tv.LevelSet(0.4), domain=SQUARE, steps=12).result()
    monkeypatch.setattr("truvar.inference._level_set.MAX_DRAWN_POINTS", 60)
    part = measured(tv.LevelSet(0.4), domain=SQUARE, steps=12).result()
    assert part.statements.n_drawn == 60 < part.statements.n_relevant
    assert abs(part.expected_f1.mean - whole.expected_f1.mean) < 0.05
    assert any("estimated at 60 of the" in caveat for caveat in part.certificate.caveats)
    assert abs(int(part.classify().undecided.sum()) - int(whole.classify().undecided.sum())) < 30


def test_the_threshold_of_a_share_of_the_maximum_is_drawn_too() -> None:
    study = measured(tv.LevelSet(fraction_of_max=0.5), 12)
    posterior, sites = frozen(study)
    draws = posterior.draw(sites, 20_000, (9, 9))
    expected = (draws >= 0.5 * draws.max(axis=0)).mean(axis=1)
    np.testing.assert_allclose(study.result().probability, expected, atol=0.04)


@pytest.mark.parametrize(
    "goal", [tv.LevelSet(fraction_of_max=0.95), tv.LevelSet(fraction_of_min=0.7)], ids=str
)
def test_shares_of_the_optimum_have_the_probabilities_of_naive_draws(goal: tv.LevelSet) -> None:
    """Draws with the full covariance: p, the joint confidence in its order, and F1, counted draw
    by draw."""
    study = measured(goal, 7)
    posterior, sites = frozen(study)
    member = posterior.members[0]
    solved = member.solve(sites)
    covariance = member.covariance(sites, sites) - solved.T @ solved
    mean = member.predict(sites)[0]
    draws = multivariate_normal(mean, covariance, allow_singular=True).rvs(20_000, random_state=3)
    true = np.empty(draws.shape, bool)
    for s, draw in enumerate(draws):
        threshold = (
            goal.fraction_of_max * draw.max()
            if goal.fraction_of_max
            else goal.fraction_of_min * draw.min()
        )
        true[s] = draw >= threshold
    result = study.result()
    np.testing.assert_allclose(result.probability, true.mean(axis=0), atol=0.03)
    alive = np.ones(len(draws), bool)
    certainty = np.maximum(result.probability, 1 - result.probability)
    for i in np.argsort(-certainty, kind="stable"):
        alive &= true[:, i] == (result.probability[i] >= 0.5)
        assert result.statements.decided_confidence[i] == pytest.approx(
            min(alive.mean(), certainty[i]), abs=0.03
        )
    reported = result.classification
    scores = [2 * (reported & each).sum() / (reported.sum() + each.sum()) for each in true[:4000]]
    assert result.expected_f1.mean == pytest.approx(np.mean(scores), abs=0.02)


@pytest.mark.filterwarnings("ignore::truvar.exceptions.OutlierWarning")
def test_a_measured_maximum_narrower_than_the_sample_of_points_is_above_its_share() -> None:
    """One of 6,000 points is above 80 % of the maximum, and measured with its neighbours."""
    x = np.linspace(0.0, 1.0, 6000)
    transect = tv.Domain.grid(x=x)
    study = tv.Study(
        transect,
        tv.LevelSet(fraction_of_max=0.8),
        kernel=Matern(0.004, nu=0.5),
        mean=1.0,
        noise=1e-4,
        exact_model=True,  # a learned kernel expects such peaks between the measurements, too
    )
    top = 2593
    for row in [*range(0, 6000, 100), *range(top - 3, top + 4)]:
        study.tell(transect.point(row), 50.0 if row == top else 1.0)
    result = study.result()
    classes = result.classify()
    assert classes.above.tolist() == [row == top for row in range(6000)]
    assert result.probability[top] > 0.99
    assert result.expected_f1.low > 0.99


def test_every_point_of_a_large_domain_has_its_own_class(monkeypatch: pytest.MonkeyPatch) -> None:
    """Points that are not drawn have their own p: f has steep slopes between those that are."""
    monkeypatch.setattr("truvar.inference._level_set.MAX_DRAWN_POINTS", 20)
    monkeypatch.setattr("truvar.inference._level_set.MAX_POTENTIAL_OPTIMA", 20)
    domain = tv.Domain.grid(x=np.linspace(0.0, 1.0, 200))
    f = np.sin(30 * domain.points[:, 0]) + domain.points[:, 0]
    study = tv.Study(
        domain, tv.LevelSet(fraction_of_max=0.8), kernel=Matern(0.1, nu=2.5), mean=0.0, noise=1e-4
    )
    for row in range(0, 200, 4):
        study.tell(domain.point(row), float(f[row]))
    result = study.result()
    classes = result.classify()
    truth = f >= 0.8 * f.max()
    assert not (classes.above & ~truth).any()
    assert not (classes.below & truth).any()
    assert classes.undecided.sum() < 20
    assert np.abs(result.probability - truth).max() < 0.9


def test_a_point_that_is_reported_but_certainly_below_is_no_hit() -> None:
    """The only point measured has the largest mean of 400, and some of the others are higher
    nearly always."""
    domain = tv.Domain.grid(x=np.linspace(0.0, 1.0, 400))
    study = tv.Study(
        domain, tv.LevelSet(fraction_of_max=0.9), kernel=RBF(1e-4), mean=0.0, noise=1e-6
    )
    study.tell(domain.point(0), 0.5)
    result = study.result()
    assert result.classification.tolist() == [True] + [False] * 399
    assert result.expected_f1.high == 0.0


def test_values_known_exactly_are_decided() -> None:
    domain = tv.Domain.grid(x=[0.0, 0.5, 1.0])
    study = tv.Study(domain, tv.LevelSet(0.2), kernel=RBF(0.01), mean=0.0, noise=0.0)
    for x, y in ((0.0, 0.2), (0.5, 1.0), (1.0, -1.0)):
        study.tell({"x": x}, y)
    classes = study.result().classify(0.99)
    assert classes.above.tolist() == [True, True, False]
    assert classes.below.tolist() == [False, False, True]


# -- optima
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("goal", [tv.Maximize(), tv.Minimize()])
def test_regret_and_probability_of_the_optimum_agree_with_brute_force(goal: Any) -> None:
    study = measured(goal)
    result = study.result()
    posterior, sites = frozen(study)
    draws = goal.sign * posterior.draw(sites, 40_000, (5, 5))
    winners = np.bincount(draws.argmax(axis=0), minlength=len(sites)) / draws.shape[1]
    np.testing.assert_allclose(result.probability, winners, atol=0.03)
    regret = draws.max(axis=0) - draws[result.best.index]
    assert result.expected_regret.mean == pytest.approx(regret.mean(), abs=0.02)
    assert result.expected_regret.high == pytest.approx(np.quantile(regret, 0.975), abs=0.06)
    assert result.statements.optimal_probability == pytest.approx(
        winners[result.best.index], abs=0.03
    )
    ruled_out = result.classify(0.9)
    assert result.probability[ruled_out.undecided].sum() >= 0.9 - 1e-9
    assert (
        ruled_out.above if goal.sign < 0 else ruled_out.below
    ).sum() + ruled_out.undecided.sum() == len(LINE)


def test_regret_is_in_the_units_of_the_user() -> None:
    study = tv.Study(LINE, tv.Maximize(), transform="log")
    for index in (0, 4, 8, 12, 16, 20, 24, 29):
        study.tell(LINE.point(index), float(np.exp(5 + wave(LINE.point(index)))))
    regret = study.result().expected_regret
    assert 0 <= regret.low <= regret.mean <= regret.high
    assert 1.0 < regret.high < 5000.0


def test_a_box_is_refined_around_the_recommended_point() -> None:
    box = tv.Domain.box(x=(0.0, 1.0), representers=20)
    study = tv.Study(box, tv.Maximize(), kernel=RBF(0.2), mean=0.0, noise=1e-4)
    for x in np.linspace(0, 1, 9):
        study.tell({"x": x}, wave({"x": x}))
    result = study.result()
    truth = 1.0 - wave(result.best.point)
    assert result.expected_regret.high >= truth
    assert result.expected_regret.high < 0.05
    assert "representer point" in str(result.certificate)


# -- sentences and errors
# ----------------------------------------------------------------------------------------------


def test_the_certificate_leads_with_the_classes_that_are_shown() -> None:
    result = measured(tv.LevelSet(0.4), 12).result()
    classes = result.classify(pointwise=0.95)
    n_above, n_below, n_undecided = (
        int(mask.sum()) for mask in (classes.above, classes.below, classes.undecided)
    )
    assert n_undecided > 0
    assert str(result.certificate).startswith(
        f"{n_above + n_below} of 30 points are shown, each with a probability of at least 95 %, "
        f"given the model: {n_above} above 0.4 and {n_below} below. With 95 % probability at most "
        f"{classes.max_wrong} of them "
    )
    share, tolerated, strict = result.certificate.further
    assert share.startswith(f"With 95 % probability between {100 * result.share_above.low:.3g} and")
    assert (
        f"at most 1 % of the {result.classify(tolerance=0.01).n_shown} most probable" in tolerated
    )
    assert f"none of the {result.classify().n_shown} most probable points" in strict
    optimum = measured(tv.Maximize(), 15).result()
    assert "With 95 % probability, given the model, the maximum is at" in str(optimum.certificate)
    assert f"expected to be {optimum.expected_regret.mean:.3g} (" in str(optimum.certificate)
    bound = optimum.statements.regret_bound
    assert f"within {bound:.3g} of it with 95 % probability" in str(optimum.certificate)
    assert optimum.expected_regret.mean <= bound <= optimum.expected_regret.high


@pytest.mark.parametrize("goal", [tv.LevelSet(0.4), tv.Maximize()], ids=str)
def test_nothing_is_claimed_before_there_is_a_model(goal: Any) -> None:
    for settings in ({"mean": None}, {"kernel": None, "mean": None, "noise": None}):
        result = measured(goal, 0, **settings).result()
        assert str(result.certificate).startswith("Nothing is claimed yet")
        assert result.classify().undecided.all()
    known = measured(goal, 0).result().certificate  # all of the prior is known
    assert "Nothing is claimed yet" not in str(known)
    assert "given the model" in str(known)


def test_scores_of_the_other_goal_are_refused() -> None:
    with pytest.raises(UnsupportedGoalError, match="use expected_regret"):
        _ = measured(tv.Maximize()).result().expected_f1
    with pytest.raises(UnsupportedGoalError, match="use expected_regret"):
        _ = measured(tv.Maximize()).result().expected_misclassified
    with pytest.raises(UnsupportedGoalError, match="use expected_f1"):
        _ = measured(tv.LevelSet(0.4)).result().expected_regret
    with pytest.raises(
        InvalidArgumentError, match=r"confidence must lie between 0 and 1, got 1\.5"
    ):
        measured(tv.LevelSet(0.4)).result().classify(1.5)


def test_statements_are_a_function_of_the_measurements() -> None:
    first = measured(tv.LevelSet(0.4), kernel=None, mean=None, noise=None).result().statements
    second = measured(tv.LevelSet(0.4), kernel=None, mean=None, noise=None).result().statements
    np.testing.assert_array_equal(first.decided_confidence, second.decided_confidence)
    assert first.expected_f1 == second.expected_f1


def test_quantiles_of_a_mixture() -> None:
    means = np.array([[0.0, 1.0], [2.0, 1.0]])
    variances = np.array([[1.0, 4.0], [0.25, 4.0]])
    for level in (0.05, 0.5, 0.95):
        quantile = mixture_quantile(means, variances, level)
        np.testing.assert_allclose(
            1 - probability_above(means, variances, quantile), level, atol=1e-9
        )
    assert mixture_quantile(means, variances, 0.95)[1] == pytest.approx(1.0 + 2 * norm.ppf(0.95))
    copied = mixture_quantile(
        np.vstack([means[:1], means]), np.vstack([variances[:1], variances]), 0.9
    )
    weighted = mixture_quantile(means, variances, 0.9, np.array([2.0, 1.0]) / 3)
    np.testing.assert_allclose(weighted, copied, atol=1e-9)
    assert str(Estimate(0.5, 0.25, 0.75)) == "0.5 (0.25 to 0.75)"
    assert POTENTIAL_REACH > 3


# -- calibration
# --------------------------------------------------------------------------------------------------


def test_joint_statements_of_a_right_model_are_true_as_often_as_they_say() -> None:
    """150 functions from the prior; at 90 % a right implementation has fewer than 122 with
    probability below 0.1 %."""
    rng = np.random.default_rng(8)
    root = np.linalg.cholesky(Matern(0.3, nu=2.5)(LINE.points) + 1e-9 * np.eye(len(LINE)))
    n_true = 0
    n_f1 = 0
    n_regret = 0
    n = 150
    for seed in range(n):
        f = root @ rng.standard_normal(len(LINE))
        study = tv.Study(
            LINE, tv.LevelSet(0.3), kernel=Matern(0.3, nu=2.5), mean=0.0, noise=0.01, seed=seed
        )
        rows = rng.choice(len(LINE), 6, replace=False)
        for row in rows:
            study.tell(LINE.point(int(row)), float(f[row] + 0.1 * rng.standard_normal()))
        result = study.result()
        classes = result.classify(0.9)
        n_true += bool((f[classes.above] >= 0.3).all() and (f[classes.below] < 0.3).all())
        score = result.f1(f)
        n_f1 += result.expected_f1.low <= score <= result.expected_f1.high
        inputs = StatementSource.of(study._learner, study._learner.domain.points[result.best.index])
        as_optimum = joint_statements(_with_goal(inputs, tv.Maximize()))
        assert as_optimum.expected_regret is not None
        regret = f.max() - f[result.best.index]
        n_regret += (
            as_optimum.expected_regret.low - 1e-9
            <= regret
            <= as_optimum.expected_regret.high + 1e-9
        )
    assert n_true >= binom.ppf(0.001, n, 0.9)
    assert n_f1 >= binom.ppf(0.001, n, 0.95)
    assert n_regret >= binom.ppf(0.001, n, 0.95)


@pytest.mark.filterwarnings("ignore::truvar.exceptions.OutlierWarning")
@pytest.mark.parametrize("seed", [2, 3, 5])
def test_nothing_is_decided_by_a_single_measurement_that_the_others_contradict(seed: int) -> None:
    axis = np.linspace(0, 1, 20)
    square = tv.Domain.grid(x=axis, y=axis)
    truth = np.sin(3 * square.points[:, 0]) + square.points[:, 1] ** 2
    rng = np.random.default_rng(seed)
    rows = rng.choice(len(square), 40, replace=False)
    mistaken = next(row for row in rows if truth[row] < 0.6)
    study = tv.Study(square, tv.LevelSet(1.0), seed=seed)
    for row in rows:
        error = 4.0 if row == mistaken else 0.02 * rng.standard_normal()
        study.tell(square.point(int(row)), float(truth[row] + error))
    classes = study.result().classify()
    assert classes.above.any()
    assert classes.below.any()
    assert (truth[classes.above] >= 1.0).all()
    assert (truth[classes.below] < 1.0).all()


@pytest.mark.parametrize("goal", [tv.LevelSet(0.3), tv.Maximize()], ids=["level set", "optimum"])
def test_a_domain_too_large_to_choose_with_many_members_is_averaged_for_claims(
    goal: tv.LevelSet | tv.Maximize, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ensemble, "MEMORY", 1.0)
    monkeypatch.setattr(model_average, "MAX_OPERATIONS", 1.0)
    study = tv.Study(LINE, goal, seed=0)
    for row in range(0, len(LINE), 3):
        study.tell(LINE.point(row), float(np.sin(6 * LINE.points[row, 0])))
    assert study._learner.surrogate.ensemble is None
    best = LINE.points[study.result().best.index]
    inputs = StatementSource.of(study._learner, best)
    n_members = len(inputs.posterior.members)
    # One at least for each family that the data do not rule out.
    assert 2 <= n_members <= model_average.MIN_MEMBERS + len(model_average.FAMILIES)
    assert inputs.means.shape == inputs.variances.shape == (n_members, len(LINE))
    assert inputs.posterior.shares.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(
        inputs.posterior.predict(inputs.sites)[1], inputs.variances, rtol=1e-6, atol=1e-12
    )


@pytest.mark.parametrize("shares", [(0.2, 0.8), (0.005, 0.395, 0.6), (0.25,) * 4], ids=str)
def test_each_member_has_its_share_of_the_draws(shares: tuple[float, ...]) -> None:
    """Members whose standard deviations are a hundred times as large are told by their draws."""
    posterior, sites = frozen(measured(tv.LevelSet(0.3)))
    wide = posterior.members[0].scale_sds(100.0)
    mixture = FrozenPosterior((wide, *posterior.members * (len(shares) - 1)), shares)
    counts = mixture.draw_counts(N_DRAWS)
    np.testing.assert_allclose(np.array(counts) / sum(counts), shares, atol=0.002)
    draws = mixture.draw(sites, N_DRAWS, (0, 0))
    assert draws.shape[1] == sum(counts) < 1.01 * N_DRAWS
    mean, variance = posterior.predict(sites)
    is_far = np.abs(draws - mean[0, :, None]).max(axis=0) > 10 * np.sqrt(variance.max())
    assert is_far.mean() == pytest.approx(shares[0], abs=0.002)


def test_points_that_are_seldom_the_optimum_are_not_ruled_out_together() -> None:
    """Of 5,000 equally probable points 2,048 draws leave most undrawn; they hold the optimum
    nearly always."""
    rng = np.random.default_rng(0)
    winner = rng.integers(5000, size=2048)
    confidence = ruled_out_confidence(winner, rng.standard_normal(5000))
    ruled_out = confidence >= 0.95
    # 51 of 1,024 draws may fall on them: 0.05 of the points, with a standard error of 0.007.
    assert 0.02 < ruled_out.mean() < 0.09
    assert (confidence[np.argsort(-confidence)[:10]] > 0.99).all()


def _with_goal(inputs: StatementSource, goal: Any) -> StatementSource:
    values = dict(vars(inputs))
    return StatementSource(**{**values, "goal": goal, "threshold": None})


def test_a_roughly_right_kernel_decides_nothing_wrongly() -> None:
    domain = tv.Domain.grid(distance_m=np.linspace(0, 1478, 50), depth_m=np.linspace(-18, 0, 50))
    cost = tv.Cost(base=4, travel={"distance_m": 0.25}, magnitude={"depth_m": 4})
    kernel = ConstantKernel(4.48) * Matern([245, 2.72], nu=2.5)
    study = tv.Study(domain, tv.LevelSet(7.0), kernel=kernel, mean=2.4, noise=0.136, cost=cost)
    distance, depth = domain.points.T
    truth = 9 * np.exp(-((depth + 8) ** 2) / 8) * np.sin(distance / 235) ** 2
    scores = []
    for steps in (20, 40, 60, 160):
        while study.steps < steps:
            suggestion = study.ask()
            study.tell(suggestion, float(truth[suggestion.index]))
        result = study.result()
        classes = result.classify(0.95)
        assert not (classes.above & (truth < 7.0)).any()
        assert not (classes.below & (truth >= 7.0)).any()
        scores.append(result.f1(truth))
    assert scores[2] > 0.95
    assert scores[3] == 1.0


# -- the same in every process
# -----------------------------------------------------------------------------------------


def test_probabilities_do_not_depend_on_what_was_imported_before(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'study.db'}"
    study = measured(tv.LevelSet(0.3), domain=SQUARE, store=store, name="square")
    code = f"import truvar; print(truvar.load({store!r}, 'square').result().probability.tobytes().hex())"
    for before in ("", "import scipy.special, sklearn.gaussian_process\n"):
        done = subprocess.run(
            [sys.executable, "-c", before + code], capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == study.result().probability.tobytes().hex()


def test_quantiles_of_mixtures_take_few_steps(monkeypatch):
    """Newton's method must not stall where a step ends on a bound of the interval."""
    rng = np.random.default_rng(0)
    means = 5.0 + rng.normal(size=2000) + 0.3 * rng.normal(size=(8, 2000))
    variances = rng.gamma(1.0, size=(8, 2000))
    weights = rng.dirichlet(np.ones(8))
    distribution = _mixtures.normal_distribution
    n_steps = []

    def counting(u):
        n_steps.append(len(u))
        return distribution(u)

    monkeypatch.setattr(_mixtures, "normal_distribution", counting)
    quantile = mixture_quantile(means, variances, 0.05, weights)
    assert len(n_steps) <= 20  # 49 where it stalls
    monkeypatch.undo()
    above = probability_above(means, variances, quantile, weights)
    np.testing.assert_allclose(above, 0.95, atol=1e-9)
