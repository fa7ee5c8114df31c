"""Warped coordinates agree with direct formulas, and matter only where the values ask for them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from sklearn.gaussian_process.kernels import RBF, Matern

import truvar as tv
from truvar.models import model_average
from truvar.models._conditions import Conditions
from truvar.models._learned import FitData, family_posterior, unfitted_ensemble
from truvar.models._warping import (
    MAX_COLUMNS,
    MAX_OBSERVATIONS,
    Warp,
    WarpedLikelihood,
    kumaraswamy,
    warped_columns,
    with_warping,
)
from truvar.models.ensemble import CONSTANT, EnsembleModel
from truvar.models.hyperposterior import HyperPrior, MarginalLikelihood
from truvar.models.model_average import freeze_member
from truvar.models.transforms import OutputTransform

POWERS = np.array([[0.4, -0.7], [-0.3, 0.5]])  # log a and log b of two columns
POINTS = np.random.default_rng(2).random((9, 2))
VALUES = np.sin(5 * POINTS[:, 0]) + POINTS[:, 1]
SHAPES: dict[int, Any] = {0: RBF, 1: Matern, 3: Matern, 5: Matern}


def naive_warp(points: Any) -> Any:
    """Return w(x), point by point."""
    warped = np.empty_like(points)
    for i, point in enumerate(points):
        for k, x in enumerate(point):
            a, b = np.exp(POWERS[:, k])
            warped[i, k] = 1 - (1 - x**a) ** b
    return warped


def correlation(smoothness: int, scales: Any) -> Any:
    shape = SHAPES[smoothness]
    return shape(scales) if smoothness == 0 else shape(scales, nu=smoothness / 2)


# -- the warp
# -------------------------------------------------------------------------------------------------


def test_a_warp_is_the_distribution_function_of_kumaraswamy() -> None:
    a, b = np.exp(POWERS[:, 0])
    for x in (0.1, 0.5, 0.9):
        expected, _ = quad(lambda s: a * b * s ** (a - 1) * (1 - s**a) ** (b - 1), 0, x)
        found, *_ = kumaraswamy(np.array([[x, x]]), POWERS)
        assert found[0, 0] == pytest.approx(expected, abs=1e-7)


def test_a_warp_keeps_units_ends_and_other_columns() -> None:
    warp = Warp(np.array([2.0, 0.0]), np.array([4.0, 1.0]), (0,), np.array([[1.0], [-0.5]]))
    points = np.array([[2.0, 0.3], [3.0, 7.0], [6.0, 0.1]])
    warped = warp(points)
    np.testing.assert_array_equal(warped[:, 1], points[:, 1])
    np.testing.assert_allclose(warped[[0, 2], 0], [2.0, 6.0], atol=1e-12)
    a, b = np.exp([1.0, -0.5])
    assert warped[1, 0] == pytest.approx(2.0 + 4.0 * (1 - (1 - 0.25**a) ** b))


def test_powers_of_one_leave_coordinates_as_they_are() -> None:
    x = np.linspace(0, 1, 11)[:, None]
    np.testing.assert_allclose(kumaraswamy(x, np.zeros((2, 1)))[0], x, atol=1e-15)


def test_derivatives_are_finite_at_the_ends_and_those_of_differences_elsewhere() -> None:
    x = np.array([[0.0, 1.0], [0.2, 0.7], [1.0, 0.0]])
    _, *found = kumaraswamy(x, POWERS)
    for row, by_power in enumerate(found):
        step = np.zeros((2, 2))
        step[row] = 1e-6
        ahead = kumaraswamy(x, POWERS + step)[0]
        behind = kumaraswamy(x, POWERS - step)[0]
        np.testing.assert_allclose(by_power, (ahead - behind) / 2e-6, atol=1e-8)


# -- the likelihood
# -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("smoothness", [0, 1, 3, 5])
def test_the_likelihood_is_that_of_the_naive_formulas(smoothness: int) -> None:
    likelihood = WarpedLikelihood(
        MarginalLikelihood(POINTS, VALUES, smoothness), np.zeros(2), (0, 1)
    )
    theta = np.array([np.log(0.3), np.log(0.5), np.log(1.3), np.log(0.02), *POWERS.ravel()])
    shape = correlation(smoothness, [0.3, 0.5])
    covariance = 1.69 * (shape(naive_warp(POINTS)) + CONSTANT) + 0.02 * np.eye(9)
    expected = -0.5 * VALUES @ np.linalg.solve(covariance, VALUES)
    expected -= 0.5 * np.linalg.slogdet(covariance)[1]
    value, gradient = likelihood.value_and_gradient(theta)
    assert value == pytest.approx(expected, abs=1e-5)
    assert likelihood.value(theta) == pytest.approx(value, abs=1e-9)
    for k, step in enumerate(1e-5 * np.eye(len(theta))):
        difference = likelihood.value(theta + step) - likelihood.value(theta - step)
        assert gradient[k] == pytest.approx(difference / 2e-5, rel=1e-4, abs=1e-4)


def test_a_warped_likelihood_keeps_noise_that_depends_on_the_point() -> None:
    relative = np.linspace(0.5, 2.0, 9)
    plain = MarginalLikelihood(POINTS, VALUES, 5).with_relative_noise(relative)
    theta = np.array([-1.0, -1.0, 0.0, -3.0])
    warped = WarpedLikelihood(plain, np.zeros(2), (0, 1))
    unwarped = np.append(theta, np.zeros(4))
    assert warped.value(unwarped) == pytest.approx(plain.value(theta), abs=1e-9)


def test_the_prior_of_the_powers_is_added_to_that_of_theta() -> None:
    plain = HyperPrior.default(2, True, False)
    prior = with_warping(plain, 2)
    theta = np.append(plain.mean, [0.5, 0.0, 0.0, -1.0])
    assert prior.log_density(theta) == pytest.approx(plain.log_density(plain.mean) - 2.5)
    assert prior.log_density(np.append(plain.mean, [2.1, 0.0, 0.0, 0.0])) == -np.inf


@pytest.mark.parametrize(
    ("spacing", "categorical", "count", "expected"),
    [
        ([0.01, 0.0], (), 60, (0, 1)),
        ([0.01, 0.5, 1.0], (), 60, (0, 1)),
        ([0.01, 0.1], (1,), 60, (0,)),
        ([0.01] * (MAX_COLUMNS + 1), (), 60, ()),
        ([0.01], (), MAX_OBSERVATIONS + 1, ()),
    ],
)
def test_columns_with_an_order_and_levels_are_warped(
    spacing: list[float], categorical: tuple[int, ...], count: int, expected: tuple[int, ...]
) -> None:
    assert warped_columns(np.array(spacing), categorical, count) == expected


# -- members and studies
# -------------------------------------------------------------------------------------------------


def test_a_warped_member_is_the_posterior_of_the_direct_formulas() -> None:
    noise = np.array([0.02])
    model = EnsembleModel(
        "matern52", np.array([[0.3, 0.5]]), np.array([1.7]), noise, OutputTransform()
    )
    given = Conditions(POINTS, VALUES, np.zeros(9), np.ones(9, dtype=bool), 0.0, None)
    query = np.random.default_rng(5).random((6, 2))
    warp = Warp(np.zeros(2), np.ones(2), (0, 1), POWERS)
    mean, variance = freeze_member(model, given, warp).predict(query)

    def kernel(points: Any, others: Any) -> Any:
        return 1.7 * Matern([0.3, 0.5], nu=2.5)(naive_warp(points), naive_warp(others))

    inverse = np.linalg.inv(kernel(POINTS, POINTS) + 0.02 * np.eye(9))
    across = kernel(query, POINTS)
    np.testing.assert_allclose(mean, across @ inverse @ VALUES, atol=1e-9)
    expected = 1.7 - np.einsum("ij,jk,ik->i", across, inverse, across)
    np.testing.assert_allclose(variance, expected, atol=1e-9)


def chirp(x: Any) -> Any:
    return np.sin(3 + 40 * x**3)


def fit_data(function: Any, t: int) -> FitData:
    points = np.linspace(0, 1, t)[:, None]
    return FitData(
        points, function(points[:, 0]), None, np.ones(1), np.full(1, 0.005), low=np.zeros(1)
    )


def test_a_wave_whose_frequency_grows_is_warped_and_a_steady_one_is_not() -> None:
    gains = []
    for function in (chirp, lambda x: np.sin(20 * x)):
        data = fit_data(function, 40)
        start = unfitted_ensemble("matern52", data)
        plain = family_posterior("matern52", data, start, 8, seed=0)
        warped = family_posterior("matern52", data, start, 8, seed=0, warped=(0,))
        assert len(warped.warps) == len(warped.model.signal)
        gains.append(warped.log_evidence - plain.log_evidence)
    assert gains[0] > 5.0
    assert gains[1] < 2.0


def test_an_average_has_warped_members_only_where_the_lower_end_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[int, ...]] = []
    original = model_average.family_posterior

    def watched(*arguments: Any, **options: Any) -> Any:
        asked.append(tuple(options.get("warped", ())))
        return original(*arguments, **options)

    monkeypatch.setattr(model_average, "family_posterior", watched)
    study = tv.Study(tv.Domain.grid(x=np.linspace(-3, 5, 41)), tv.LevelSet(0.2), seed=0)
    for x in np.linspace(-3, 5, 21):
        study.tell({"x": x}, float(chirp((x + 3) / 8)))
    result = study.result()
    assert set(asked) == {(), (0,)}
    assert np.isfinite(result.probability).all()


def test_a_warp_of_the_domain_has_no_unit() -> None:
    found = []
    for low, extent in ((0.0, 1.0), (-40.0, 80.0)):
        axis = low + extent * np.linspace(0, 1, 33)
        study = tv.Study(tv.Domain.grid(x=axis), tv.LevelSet(0.2), seed=0)
        for x in np.linspace(0, 1, 17):
            study.tell({"x": low + extent * x}, float(chirp(x)))
        found.append(study.result().probability)
    np.testing.assert_allclose(found[0], found[1], atol=1e-4)
