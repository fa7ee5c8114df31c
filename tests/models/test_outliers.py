"""Outliers are found, and what a study looks for is not mistaken for one."""

import numpy as np
import pytest

from truvar.models._outliers import find_outliers

SMOOTH = np.sin(np.linspace(0.0, 3.0, 20))


@pytest.mark.parametrize("error", [-100.0, 100.0])
@pytest.mark.parametrize("position", [0, 7, 20])
def test_one_value_a_hundred_standard_deviations_off_is_found(error: float, position: int) -> None:
    values = np.insert(SMOOTH, position, error * SMOOTH.std())
    assert find_outliers(values) == (position,)


def test_two_errors_among_twenty_values_are_found() -> None:
    values = np.append(SMOOTH, [80.0, 95.0])
    assert find_outliers(values) == (20, 21)


def test_few_values_and_ordinary_ones_are_never_errors() -> None:
    assert find_outliers(np.array([0.0, 0.1, 0.2, 90.0])) == ()
    for seed in range(200):
        rng = np.random.default_rng(seed)
        assert find_outliers(rng.standard_normal(40)) == ()
        assert find_outliers(rng.lognormal(0.0, 1.0, 40)) == ()


def test_values_over_five_decades_are_rarely_taken_for_errors() -> None:
    found = [
        find_outliers(np.random.default_rng(seed).lognormal(0.0, 2.0, 40)) for seed in range(500)
    ]
    assert sum(bool(each) for each in found) <= 10  # 1 % in 2,000 draws


def test_a_peak_in_a_flat_field_is_not_an_error() -> None:
    distances = np.linspace(0.05, 3.0, 30)
    assert find_outliers(np.exp(-((distances / 0.1) ** 2))) == ()


def test_a_value_as_far_off_as_the_threshold_is_not_an_error() -> None:
    values = np.append(0.01 * SMOOTH, 3.0)
    assert find_outliers(values) == (20,)
    assert find_outliers(values, references=[2.5]) == ()


def test_a_value_given_as_exact_is_no_outlier_and_makes_others_like_it_plausible() -> None:
    values = np.append(np.linspace(0.0, 1.0, 20), [90.0, 95.0])
    exact = np.zeros(22, dtype=bool)
    assert find_outliers(values, exact=exact) == (20, 21)
    exact[20] = True
    assert find_outliers(values, exact=exact) == ()
    exact[:] = False
    exact[:5] = True  # exact values among the others change nothing
    assert find_outliers(values, exact=exact) == (20, 21)
