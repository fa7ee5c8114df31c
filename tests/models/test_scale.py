"""The scale of f follows the one-step-ahead errors."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm, t

from truvar.models._scale import _FREEDOMS, _SCALES, _posterior, scale_factors

NORMAL = norm.ppf((np.arange(60) + 0.5) / 60)  # errors of a model that is right
FEW_LARGE = np.append(np.full(57, 0.1), [4.0, -4.0, 4.0])  # of one that is flat but for a corner


def test_the_posterior_is_that_of_student_t_errors() -> None:
    found = _posterior(FEW_LARGE)
    densities = np.array(
        [[t.logpdf(FEW_LARGE, nu, scale=s).sum() for s in _SCALES] for nu in _FREEDOMS]
    )
    densities = 0.25 * densities + norm.logpdf(np.log(_SCALES), 0.0, 0.25)
    expected = np.exp(densities - densities.max())
    np.testing.assert_allclose(found, expected / expected.sum(), atol=1e-6)


def test_before_the_first_value_every_freedom_is_equally_probable() -> None:
    np.testing.assert_allclose(_posterior(np.array([])).sum(axis=1), 1.0 / len(_FREEDOMS))


def test_a_few_large_errors_make_heavy_tails() -> None:
    wide = scale_factors(512, FEW_LARGE)
    narrow = scale_factors(512, NORMAL)
    assert np.median(wide) < np.median(narrow)  # most errors are small
    assert np.quantile(wide, 0.97) > 1.3 * np.quantile(narrow, 0.97)


def test_factors_tend_to_one_with_errors_that_are_as_expected() -> None:
    spreads = []
    for n in (20, 100, 1000, 100_000):
        factors = scale_factors(64, norm.ppf((np.arange(n) + 0.5) / n))
        assert np.median(factors) == pytest.approx(1.0, abs=0.05)
        spreads.append(float(np.quantile(factors, 0.95) - np.quantile(factors, 0.05)))
    assert spreads == sorted(spreads, reverse=True)
    assert spreads[-1] < 0.05


@pytest.mark.parametrize("count", [4, 7, 32])
def test_any_few_factors_are_spread(count: int) -> None:
    factors = scale_factors(count, NORMAL[::3])
    assert np.median(factors) == pytest.approx(1.0, abs=0.2)
    assert np.ptp(factors) > 0.3
    continued = np.concatenate([scale_factors(2, NORMAL), scale_factors(count - 2, NORMAL, 2)])
    np.testing.assert_allclose(continued, scale_factors(count, NORMAL))


def test_errors_smaller_than_the_given_noise_do_not_make_f_smaller() -> None:
    small = 0.3 * NORMAL
    assert np.median(scale_factors(64, small)) < 0.8
    assert np.median(scale_factors(64, small, is_noise_given=True)) == pytest.approx(1.0, abs=0.1)
