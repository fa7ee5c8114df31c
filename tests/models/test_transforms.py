"""Output transforms are those of SciPy, strictly increasing, and inverted exactly."""

import numpy as np
import pytest
from scipy.stats import yeojohnson

from truvar.models.transforms import OutputTransform, power_slope, yeo_johnson

VALUES = np.array([-30.0, -2.5, -1e-9, 0.0, 1e-9, 0.7, 4.0, 300.0])
POWERS = [-1.2, 0.0, 1e-7, 0.4, 1.0, 1.7, 2.0, 2.0 - 1e-7, 3.1]


@pytest.mark.parametrize("power", POWERS)
def test_the_power_transform_is_that_of_scipy(power: float) -> None:
    np.testing.assert_allclose(yeo_johnson(VALUES, power), yeojohnson(VALUES, power), rtol=1e-5, atol=1e-12)


@pytest.mark.parametrize("power", POWERS)
def test_the_inverse_gives_the_value_back(power: float) -> None:
    transform = OutputTransform(shift=2.0, scale=3.0, power=power)
    values = np.linspace(-20.0, 25.0, 46)
    np.testing.assert_allclose(transform.inverse(transform.forward(values)), values, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("power", POWERS)
def test_it_is_strictly_increasing_with_slope_one_at_the_shift(power: float) -> None:
    transform = OutputTransform(shift=-1.0, scale=0.5, power=power)
    assert (np.diff(transform.forward(np.linspace(-4.0, 4.0, 41))) > 0).all()
    assert transform.forward(-1.0) == -1.0
    step = 1e-6
    slope = (transform.forward(-1.0 + step) - transform.forward(-1.0 - step)) / (2 * step)
    assert slope == pytest.approx(1.0, rel=1e-5)


def test_a_power_of_one_is_the_identity_and_the_logarithm_comes_first() -> None:
    values = np.array([0.5, 2.0, 70.0])
    assert (OutputTransform(shift=3.0, scale=2.0).forward(values) == values).all()
    np.testing.assert_allclose(OutputTransform(log=True).forward(values), np.log(values))
    np.testing.assert_allclose(OutputTransform(1.0, 2.0, 0.4, log=True).inverse([1.0]), [np.e])
    assert OutputTransform(log=True).forward(0.0) == -np.inf


def test_moments_in_the_units_of_the_user_are_those_of_the_lognormal_distribution() -> None:
    mean, sd = OutputTransform(log=True).inverse_moments(np.array([0.3, 1.0]), np.array([0.5, 0.0]))
    np.testing.assert_allclose(mean, [np.exp(0.3 + 0.125), np.e], rtol=1e-6)
    np.testing.assert_allclose(sd, [np.exp(0.425) * np.sqrt(np.exp(0.25) - 1), 0.0], rtol=1e-4, atol=1e-12)


def test_beyond_the_range_of_the_transform_the_inverse_is_infinite() -> None:
    assert OutputTransform(power=-1.0).inverse(1.5) == np.inf  # it never exceeds 1
    assert OutputTransform(power=3.0).inverse(-1.5) == -np.inf


@pytest.mark.parametrize("power", POWERS)
def test_the_slope_in_the_power_is_that_of_differences(power: float) -> None:
    step = 1e-5
    values = VALUES[np.abs(VALUES) < 10]
    differences = (yeo_johnson(values, power + step) - yeo_johnson(values, power - step)) / (2 * step)
    np.testing.assert_allclose(power_slope(values, power), differences, rtol=1e-5, atol=1e-8)
