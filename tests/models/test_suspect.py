"""A value that the others contradict is suspect, unless its noise was given."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import cauchy, norm

from truvar.models._conditions import Conditions
from truvar.models._suspect import find_suspect, leave_out
from truvar.models.ensemble import EnsembleModel
from truvar.models.model_average import freeze_member
from truvar.models.transforms import OutputTransform

X = np.linspace(0.0, 1.0, 12)[:, None]
MODEL = EnsembleModel(
    "matern52",
    np.array([[0.4]]),
    np.array([2.0]),
    np.array([0.01]),
    OutputTransform(shift=0.5, scale=2.0, power=0.6),
)


def conditions(error: float, learned: bool = True) -> Conditions:
    values = np.sin(4 * X[:, 0])
    values[7] += error
    z = MODEL.transform.forward(values)
    return Conditions(X, z, np.full(12, 0.01), np.full(12, learned), None, None)


def test_a_value_far_from_what_the_others_predict_is_suspect() -> None:
    given = conditions(3.0)
    found = find_suspect(freeze_member(MODEL, given), given, MODEL.transform)
    assert found is not None
    assert found.position == 7
    u = (np.sin(4 * X[7, 0]) + 3.0 - 0.5) / 2.0
    expected = np.log(0.01) + cauchy.logpdf(u, scale=10.0)
    assert found.log_density == pytest.approx(expected)


@pytest.mark.parametrize("error", np.linspace(0.0, 3.0, 13))
def test_it_is_suspect_if_it_is_more_probable_as_an_outlier(error: float) -> None:
    given = conditions(error)
    found = find_suspect(freeze_member(MODEL, given), given, MODEL.transform)
    # The direct density of the value given the others, in the units of the transform.
    others = np.delete(np.arange(12), 7)
    rest = replace(given, points=X[others], z=given.z[others], noise=given.noise[others])
    member = freeze_member(MODEL, replace(rest, learned=given.learned[others]))
    mean, variance = member.predict(X[7:8])
    u = (MODEL.transform.inverse(given.z[7]) - 0.5) / 2.0
    slope = 2.0 * (1.0 + np.abs(u)) ** (-0.4 * np.sign(u))
    density = norm.logpdf(given.z[7], mean[0], np.sqrt(variance[0] + 0.01)) + np.log(slope)
    is_suspect = density < np.log(0.01) + cauchy.logpdf(u, scale=10.0)
    assert (found is not None and found.position == 7) == is_suspect


def test_a_value_whose_noise_was_given_is_not_suspected() -> None:
    given = conditions(3.0, learned=False)
    assert find_suspect(freeze_member(MODEL, given), given, MODEL.transform) is None


def test_a_value_that_is_left_out_says_nothing() -> None:
    given = conditions(3.0)
    right = freeze_member(MODEL, leave_out(conditions(0.0), 7, 0.5)).predict(X)
    wrong = freeze_member(MODEL, leave_out(given, 7, 0.5)).predict(X)
    np.testing.assert_allclose(wrong, right, atol=1e-4)
    assert not given.learned.sum() < 12  # the observations themselves do not change
