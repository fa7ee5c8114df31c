"""Members with more uncertainty, and noise that is taken for a fine structure of f."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, DotProduct, Matern

import truvar as tv
from truvar.models.ensemble import Ensemble, EnsembleModel
from truvar.models.frozen import BLUR_SHARE, FrozenMember, Inflation
from truvar.models.transforms import OutputTransform

LENGTHSCALE = 0.4
NOISE = 0.09
DOMAIN = tv.Domain.grid(x=np.linspace(0, 1, 21))


def fine_structure(t: int) -> Inflation:
    """Return the inflation of doubled standard deviations where the noise of all of t
    observations is learned."""
    return Inflation(sd_factor=2.0, learned_noise=np.ones(t, dtype=bool))


def member(rows: list[int], values: list[float]) -> FrozenMember:
    study = tv.Study(DOMAIN, tv.Maximize(), kernel=RBF(LENGTHSCALE), mean=0.0, noise=NOISE)
    for row, value in zip(rows, values, strict=True):
        study.tell(DOMAIN.point(row), value)
    return study._learner.surrogate.freeze().members[0]


def naive_moments(rows: list[int], values: list[float], own: float = 0.0) -> tuple[Any, Any]:
    """Mean and variance with standard deviations twice as large, plus `own`, by `inv`."""
    x = DOMAIN.points[:, 0]
    kernel = np.exp(-0.5 * ((x[:, None] - x) / LENGTHSCALE) ** 2)
    inverse = np.linalg.inv(kernel[np.ix_(rows, rows)] + NOISE * np.eye(len(rows)))
    mean = kernel[:, rows] @ inverse @ np.array(values)
    variance = np.diag(kernel - kernel[:, rows] @ inverse @ kernel[rows])
    return mean, 4.0 * (variance + own)


@pytest.mark.parametrize("is_learned", [False, True])
def test_a_cautious_member_has_the_same_mean_and_larger_standard_deviations(
    is_learned: bool,
) -> None:
    rows = [2, 9, 15]
    values = [0.3, -1.0, 0.7]
    inflation = fine_structure(3) if is_learned else Inflation(sd_factor=2.0)
    mean, variance = member(rows, values).cautious(inflation).predict(DOMAIN.points)
    expected_mean, expected_variance = naive_moments(rows, values, own=NOISE if is_learned else 0.0)
    np.testing.assert_allclose(mean, expected_mean, atol=1e-9)
    np.testing.assert_allclose(variance, expected_variance, atol=1e-9)


def test_a_cautious_member_with_shorter_length_scales_is_the_posterior_with_them() -> None:
    rows = [2, 9, 15]
    values = [0.3, -1.0, 0.7]
    mean, variance = (
        member(rows, values).cautious(Inflation(lengthscale_factor=0.5)).predict(DOMAIN.points)
    )
    x = DOMAIN.points[:, 0]
    kernel = np.exp(-0.5 * ((x[:, None] - x) / (LENGTHSCALE / 2)) ** 2)
    inverse = np.linalg.inv(kernel[np.ix_(rows, rows)] + NOISE * np.eye(3))
    np.testing.assert_allclose(mean, kernel[:, rows] @ inverse @ np.array(values), atol=1e-9)
    np.testing.assert_allclose(
        variance, np.diag(kernel - kernel[:, rows] @ inverse @ kernel[rows]), atol=1e-9
    )


def test_the_uncertainty_of_an_estimated_mean_is_larger_too() -> None:
    study = tv.Study(DOMAIN, tv.Maximize(), kernel=RBF(LENGTHSCALE), noise=NOISE)
    for row, value in ((2, 0.3), (9, -1.0), (15, 0.7)):
        study.tell(DOMAIN.point(row), value)
    own = study._learner.surrogate.freeze().members[0]
    assert own.whitened_ones is not None
    mean, variance = own.cautious(Inflation(sd_factor=3.0)).predict(DOMAIN.points)
    np.testing.assert_allclose(mean, own.predict(DOMAIN.points)[0], atol=1e-12)
    np.testing.assert_allclose(variance, 9.0 * own.predict(DOMAIN.points)[1], atol=1e-9)


def test_an_estimated_mean_is_that_of_the_observations_that_are_kept() -> None:
    study = tv.Study(DOMAIN, tv.Maximize(), kernel=RBF(LENGTHSCALE), noise=NOISE)
    without = tv.Study(DOMAIN, tv.Maximize(), kernel=RBF(LENGTHSCALE), noise=NOISE)
    for row, x in enumerate(DOMAIN.points[:, 0]):
        study.tell(DOMAIN.point(row), float(np.sin(3 * x)) + (20.0 if row == 8 else 0.0))
        if row != 8:
            without.tell(DOMAIN.point(row), float(np.sin(3 * x)))
    cautious = study._learner.surrogate.freeze().members[0].cautious(Inflation(sd_factor=2.0))
    mean, variance = without._learner.surrogate.freeze().members[0].predict(DOMAIN.points)
    np.testing.assert_allclose(cautious.predict(DOMAIN.points)[0], mean, atol=1e-9)
    np.testing.assert_allclose(cautious.predict(DOMAIN.points)[1], 4.0 * variance, atol=1e-9)


def test_only_learned_noise_can_be_a_fine_structure() -> None:
    own = member([2, 9, 15], [0.3, -1.0, 0.7])
    assert own.cautious(Inflation(learned_noise=np.zeros(3, dtype=bool))).own_variance == 0.0
    assert own.cautious(
        Inflation(learned_noise=np.array([False, True, False]))
    ).own_variance == pytest.approx(NOISE)


def test_repeats_whose_noise_is_given_say_nothing_about_learned_noise() -> None:
    study = tv.Study(DOMAIN, tv.Maximize(), kernel=RBF(LENGTHSCALE), mean=0.0, noise=NOISE)
    for row, value in ((2, 0.3), (9, -1.0), (15, 0.7)):
        study.tell(DOMAIN.point(row), value)
    for value in (0.1, 0.102):
        study.tell(DOMAIN.point(5), value, noise=1e-6)
    learned = np.array([True, True, True, False, False])
    own = study._learner.surrogate.freeze().members[0]
    assert own.cautious(Inflation(learned_noise=learned)).own_variance == pytest.approx(NOISE)


def test_shorter_length_scales_of_a_kernel_that_is_not_stationary_leave_its_variances_consistent() -> (
    None
):
    study = tv.Study(DOMAIN, tv.Maximize(), kernel=DotProduct(1.0), mean=0.0, noise=NOISE)
    study.tell(DOMAIN.point(2), 0.3)
    shorter = (
        study._learner.surrogate.freeze().members[0].cautious(Inflation(lengthscale_factor=0.5))
    )
    kernel = shorter.covariance(DOMAIN.points, DOMAIN.points)
    np.testing.assert_allclose(shorter.prior_variance(DOMAIN.points), np.diag(kernel), atol=1e-12)


def test_what_the_others_contradict_is_left_out() -> None:
    rows = list(range(21))
    values = [float(np.sin(3 * x)) for x in DOMAIN.points[:, 0]]
    false = [*values[:8], values[8] + 6.0, *values[9:15], values[15] - 4.0, *values[16:]]
    kept = [row for row in rows if row not in (8, 15)]
    mean, variance = member(rows, false).cautious(Inflation(sd_factor=2.0)).predict(DOMAIN.points)
    expected_mean, expected_variance = naive_moments(kept, [values[row] for row in kept])
    np.testing.assert_allclose(mean, expected_mean, atol=1e-9)
    np.testing.assert_allclose(variance, expected_variance, atol=1e-9)


def test_observations_given_as_exact_are_not_left_out() -> None:
    rows = list(range(21))
    values = [float(np.sin(3 * x)) for x in DOMAIN.points[:, 0]]
    false = [*values[:8], values[8] + 6.0, *values[9:15], values[15] - 4.0, *values[16:]]
    exact = np.arange(21) == 8
    cautious = member(rows, false).cautious(Inflation(sd_factor=2.0, exact=exact))
    assert DOMAIN.points[8, 0] in cautious.points[:, 0]
    assert DOMAIN.points[15, 0] not in cautious.points[:, 0]
    everything = member(rows, false).cautious(
        Inflation(sd_factor=2.0, exact=np.ones(21, dtype=bool))
    )
    assert len(everything.points) == 21


def test_at_most_a_tenth_of_the_observations_is_left_out() -> None:
    rows = list(range(21))
    values = [6.0 * (-1) ** row for row in rows]
    own = member(rows, values)
    assert len(own.points) == 21
    assert len(own.cautious(Inflation(sd_factor=2.0)).points) == 19


@pytest.mark.parametrize(("gap", "is_noise"), [(0.6, True), (0.0, False)])
def test_repeated_measurements_tell_noise_from_a_fine_structure(gap: float, is_noise: bool) -> None:
    rows = [2, 2, 9, 9, 15, 15]
    values = [0.3, 0.3 + gap, -1.0, -1.0 - gap, 0.7, 0.7 + gap]
    fine = member(rows, values).cautious(fine_structure(6))
    assert fine.own_variance == pytest.approx(0.0 if is_noise else 4.0 * NOISE)


def test_joint_draws_have_the_moments_of_a_member_with_a_fine_structure() -> None:
    fine = member([2, 9, 15], [0.3, -1.0, 0.7]).cautious(fine_structure(3))
    draws = fine.draw(DOMAIN.points, np.arange(0, 21, 2), 20_000, np.random.default_rng(0))
    mean, variance = fine.predict(DOMAIN.points)
    # Twenty-one points, 20,000 draws: six standard errors are exceeded in one of ten million runs.
    np.testing.assert_allclose(draws.mean(axis=1), mean, atol=6 * np.sqrt(variance.max() / 20_000))
    np.testing.assert_allclose(
        draws.var(axis=1), variance, atol=6 * variance.max() * np.sqrt(2 / 20_000)
    )


def test_a_point_that_is_drawn_twice_has_the_same_value_twice() -> None:
    fine = member([2, 9], [0.3, -1.0]).cautious(fine_structure(2))
    points = DOMAIN.points[[4, 11, 4]]
    draws = fine.draw(points, np.arange(3), 50, np.random.default_rng(1))
    np.testing.assert_allclose(draws[0], draws[2], atol=1e-3)
    assert np.abs(draws[0] - draws[1]).mean() > 0.1


@pytest.mark.parametrize("own_variance", [0.0, 0.05])
def test_regression_on_given_points_is_that_of_the_joint_covariance(own_variance: float) -> None:
    """The naive formula on the covariance of all points, the given ones with the blur on their
    variances."""
    rows = [2, 9, 15]
    given = [4, 5, 18]
    x = DOMAIN.points[:, 0]
    kernel = np.exp(-0.5 * ((x[:, None] - x) / LENGTHSCALE) ** 2)
    inverse = np.linalg.inv(kernel[np.ix_(rows, rows)] + NOISE * np.eye(3))
    covariance = kernel - kernel[:, rows] @ inverse @ kernel[rows] + own_variance * np.eye(21)
    inner = covariance[np.ix_(given, given)] + BLUR_SHARE * np.diag(np.diag(covariance)[given])
    expected = np.linalg.inv(inner) @ covariance[given]
    rest = np.diag(covariance - covariance[:, given] @ expected)
    smooth = replace(member(rows, [0.3, -1.0, 0.7]), own_variance=own_variance)
    weights, variance = smooth.regression(DOMAIN.points, DOMAIN.points[given])
    np.testing.assert_allclose(weights, expected, atol=1e-6)
    np.testing.assert_allclose(variance, rest, atol=1e-9)


def test_values_that_are_known_have_no_weight_in_a_regression() -> None:
    study = tv.Study(DOMAIN, tv.Maximize(), kernel=RBF(LENGTHSCALE), mean=0.0, noise=0.0)
    study.tell(DOMAIN.point(3), 1.0)
    exact = study._learner.surrogate.freeze().members[0]
    weights, variance = exact.regression(DOMAIN.points, DOMAIN.points[[3]])
    np.testing.assert_array_equal(weights, 0.0)
    np.testing.assert_allclose(variance, exact.predict(DOMAIN.points)[1], atol=1e-12)


# -- the same on every processor
# ---------------------------------------------------------------------------------------


def learned_posterior(lengthscales: list[float]) -> Ensemble:
    """Return a learned model of two members on 24 x 24 points, more than are drawn from exactly."""
    axis = np.linspace(0, 1, 24)
    sites = tv.Domain.grid(x=axis, y=axis).points
    scales = np.array([[0.3, 0.3], lengthscales, [0.5, 0.45]])
    model = EnsembleModel("matern52", scales, np.ones(3), np.full(3, 1e-3), OutputTransform())
    posterior = Ensemble(model, sites, None, 8)
    rows = np.array([30, 250, 333, 512])
    posterior.condition(sites[rows], np.array([0.3, -1.0, 0.7, 0.1]), np.zeros(4), np.ones(4, bool))
    return posterior


def test_the_last_digits_of_the_lengthscales_hardly_change_the_draws() -> None:
    """Points of a grid are equally far from each other but for rounding, which must not choose
    the pivots."""
    ensemble = learned_posterior([0.27, 0.31])
    nearly = learned_posterior([0.27 * (1 + 1e-9), 0.31 * (1 - 1e-9)])
    draws = ensemble.freeze().draw(ensemble.sites, 64, (0, 1))
    others = nearly.freeze().draw(ensemble.sites, 64, (0, 1))
    np.testing.assert_allclose(others, draws, atol=1e-5)


def test_a_point_that_counts_as_certain_leaves_the_draws_at_the_others_alone(
    monkeypatch: Any,
) -> None:
    study = tv.Study(
        DOMAIN, tv.Maximize(), kernel=Matern(LENGTHSCALE, nu=1.5), mean=0.0, noise=1e-6
    )
    study.tell(DOMAIN.point(4), 0.3)
    posterior = study._learner.surrogate.freeze()
    draws = posterior.draw(DOMAIN.points, 64, (0, 1))
    monkeypatch.setattr(
        "truvar.models.frozen.JITTER_SHARE", 1e-5
    )  # above the variance at the point that was measured
    others = posterior.draw(DOMAIN.points, 64, (0, 1))
    np.testing.assert_allclose(others, draws, atol=0.02)
