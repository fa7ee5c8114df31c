"""Members with shorter length-scales, and noise that is taken for a fine structure of f."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

import truvar as tv
from truvar.models.frozen import FrozenMember

LENGTHSCALE = 0.4
NOISE = 0.09
DOMAIN = tv.Domain.grid(x=np.linspace(0, 1, 21))


def member(rows: list[int], values: list[float]) -> FrozenMember:
    study = tv.Study(DOMAIN, tv.Maximize(), kernel=RBF(LENGTHSCALE), mean=0.0, noise=NOISE)
    for row, value in zip(rows, values, strict=True):
        study.tell(DOMAIN.point(row), value)
    return study._learner.surrogate.freeze().members[0]


def naive_moments(rows: list[int], values: list[float], own: float, noise: float) -> tuple[Any, Any]:
    """Mean and variance for a kernel of half the length-scale, plus `own` on the diagonal, by `inv`."""
    x = DOMAIN.points[:, 0]
    kernel = np.exp(-0.5 * ((x[:, None] - x) / (LENGTHSCALE / 2)) ** 2) + own * np.eye(len(x))
    inverse = np.linalg.inv(kernel[np.ix_(rows, rows)] + noise * np.eye(len(rows)))
    mean = kernel[:, rows] @ inverse @ np.array(values)
    variance = np.diag(kernel - kernel[:, rows] @ inverse @ kernel[rows])
    return mean, variance


def test_a_rougher_member_is_the_posterior_with_half_the_length_scale() -> None:
    rows = [2, 9, 15]
    values = [0.3, -1.0, 0.7]
    mean, variance = member(rows, values).rougher(2.0, 1).predict(DOMAIN.points)
    expected_mean, expected_variance = naive_moments(rows, values, own=0.0, noise=NOISE)
    np.testing.assert_allclose(mean, expected_mean, atol=1e-9)
    np.testing.assert_allclose(variance, expected_variance, atol=1e-9)


def test_with_a_fine_structure_measured_points_are_known_and_others_are_not() -> None:
    rows = [2, 9, 15]
    values = [0.3, -1.0, 0.7]
    mean, variance = member(rows, values).rougher(2.0, 1, fine_structure=True).predict(DOMAIN.points)
    expected_mean, expected_variance = naive_moments(rows, values, own=NOISE, noise=0.0)
    np.testing.assert_allclose(mean, expected_mean, atol=1e-9)
    np.testing.assert_allclose(variance, expected_variance, atol=1e-9)
    np.testing.assert_allclose(mean[rows], values, atol=1e-9)
    assert variance[rows].max() < 1e-9
    assert np.delete(variance, rows).min() > 0.9 * NOISE


@pytest.mark.parametrize(("gap", "is_noise"), [(0.6, True), (0.0, False)])
def test_repeated_measurements_tell_noise_from_a_fine_structure(gap: float, is_noise: bool) -> None:
    rows = [2, 2, 9, 9, 15, 15]
    values = [0.3, 0.3 + gap, -1.0, -1.0 - gap, 0.7, 0.7 + gap]
    smooth = member(rows, values).rougher(2.0, 1)
    fine = member(rows, values).rougher(2.0, 1, fine_structure=True)
    difference = fine.predict(DOMAIN.points)[1] - smooth.predict(DOMAIN.points)[1]
    assert (np.abs(difference).max() < 1e-12) == is_noise


def test_joint_draws_have_the_moments_of_a_member_with_a_fine_structure() -> None:
    fine = member([2, 9, 15], [0.3, -1.0, 0.7]).rougher(2.0, 1, fine_structure=True)
    draws = fine.draw(DOMAIN.points, np.arange(0, 21, 2), 20_000, np.random.default_rng(0))
    mean, variance = fine.predict(DOMAIN.points)
    # Twenty-one points, 20,000 draws: six standard errors are exceeded in one of ten million runs.
    np.testing.assert_allclose(draws.mean(axis=1), mean, atol=6 / np.sqrt(20_000))
    np.testing.assert_allclose(draws.var(axis=1), variance, atol=6 * np.sqrt(2 / 20_000))
