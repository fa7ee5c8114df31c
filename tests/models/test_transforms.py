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
def test_it_is_strictly_increasing_with_the_stated_derivative(power: float) -> None:
    transform = OutputTransform(shift=-1.0, scale=0.5, power=power)
    values = np.linspace(-4.0, 4.0, 41)
    assert (np.diff(transform.forward(values)) > 0).all()
    step = 1e-6
    slope = (transform.forward(values + step) - transform.forward(values - step)) / (2 * step)
    np.testing.assert_allclose(transform.derivative(values), slope, rtol=1e-6)


def test_beyond_the_range_of_the_transform_the_inverse_is_infinite() -> None:
    assert OutputTransform(power=-1.0).inverse(1.5) == np.inf  # it never exceeds 1
    assert OutputTransform(power=3.0).inverse(-1.5) == -np.inf


@pytest.mark.parametrize("power", POWERS)
def test_the_slope_in_the_power_is_that_of_differences(power: float) -> None:
    step = 1e-5
    values = VALUES[np.abs(VALUES) < 10]
    differences = (yeo_johnson(values, power + step) - yeo_johnson(values, power - step)) / (2 * step)
    np.testing.assert_allclose(power_slope(values, power), differences, rtol=1e-5, atol=1e-8)
