"""Members of a frozen posterior: moments, joint draws and regressions."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import RBF, Matern

import truvar as tv
from truvar.models.ensemble import Ensemble, EnsembleModel
from truvar.models.frozen import BLUR_SHARE, FrozenMember
from truvar.models.transforms import OutputTransform

LENGTHSCALE = 0.4
NOISE = 0.09
DOMAIN = tv.Domain.grid(x=np.linspace(0, 1, 21))


def member(rows: list[int], values: list[float]) -> FrozenMember:
    study = tv.Study(DOMAIN, tv.Maximize(), kernel=RBF(LENGTHSCALE), mean=0.0, noise=NOISE)
    for row, value in zip(rows, values, strict=True):
        study.tell(DOMAIN.point(row), value)
    return study._learner.surrogate.freeze().members[0]


def test_larger_standard_deviations_leave_the_mean_as_it_is() -> None:
    rows = [2, 9, 15]
    values = [0.3, -1.0, 0.7]
    mean, variance = member(rows, values).scale_sds(2.0).predict(DOMAIN.points)
    x = DOMAIN.points[:, 0]
    kernel = np.exp(-0.5 * ((x[:, None] - x) / LENGTHSCALE) ** 2)
    inverse = np.linalg.inv(kernel[np.ix_(rows, rows)] + NOISE * np.eye(len(rows)))
    expected = np.diag(kernel - kernel[:, rows] @ inverse @ kernel[rows])
    np.testing.assert_allclose(mean, kernel[:, rows] @ inverse @ np.array(values), atol=1e-9)
    np.testing.assert_allclose(variance, 4.0 * expected, atol=1e-9)


def test_the_uncertainty_of_an_estimated_mean_is_larger_too() -> None:
    study = tv.Study(DOMAIN, tv.Maximize(), kernel=RBF(LENGTHSCALE), noise=NOISE)
    for row, value in ((2, 0.3), (9, -1.0), (15, 0.7)):
        study.tell(DOMAIN.point(row), value)
    own = study._learner.surrogate.freeze().members[0]
    assert own.whitened_ones is not None
    mean, variance = own.scale_sds(3.0).predict(DOMAIN.points)
    np.testing.assert_allclose(mean, own.predict(DOMAIN.points)[0], atol=1e-12)
    np.testing.assert_allclose(variance, 9.0 * own.predict(DOMAIN.points)[1], atol=1e-9)


def test_joint_draws_have_the_moments_of_a_member() -> None:
    own = member([2, 9, 15], [0.3, -1.0, 0.7]).scale_sds(2.0)
    draws = own.draw(DOMAIN.points, np.arange(0, 21, 2), 20_000, np.random.default_rng(0))
    mean, variance = own.predict(DOMAIN.points)
    # Twenty-one points, 20,000 draws: six standard errors are exceeded in one of ten million runs.
    np.testing.assert_allclose(draws.mean(axis=1), mean, atol=6 * np.sqrt(variance.max() / 20_000))
    np.testing.assert_allclose(
        draws.var(axis=1), variance, atol=6 * variance.max() * np.sqrt(2 / 20_000)
    )


def test_a_point_that_is_drawn_twice_has_the_same_value_twice() -> None:
    own = member([2, 9], [0.3, -1.0])
    points = DOMAIN.points[[4, 11, 4]]
    draws = own.draw(points, np.arange(3), 50, np.random.default_rng(1))
    np.testing.assert_allclose(draws[0], draws[2], atol=1e-3)
    assert np.abs(draws[0] - draws[1]).mean() > 0.1


def test_regression_on_given_points_is_that_of_the_joint_covariance() -> None:
    """The naive formula on the covariance of all points, the given ones with the blur on their
    variances."""
    rows = [2, 9, 15]
    given = [4, 5, 18]
    x = DOMAIN.points[:, 0]
    kernel = np.exp(-0.5 * ((x[:, None] - x) / LENGTHSCALE) ** 2)
    inverse = np.linalg.inv(kernel[np.ix_(rows, rows)] + NOISE * np.eye(3))
    covariance = kernel - kernel[:, rows] @ inverse @ kernel[rows]
    inner = covariance[np.ix_(given, given)] + BLUR_SHARE * np.diag(np.diag(covariance)[given])
    expected = np.linalg.inv(inner) @ covariance[given]
    rest = np.diag(covariance - covariance[:, given] @ expected)
    weights, variance = member(rows, [0.3, -1.0, 0.7]).regression(
        DOMAIN.points, DOMAIN.points[given]
    )
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
