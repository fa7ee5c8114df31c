"""The probability of lying above a threshold is the same whichever library computes the normal distribution."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr
from sklearn.gaussian_process.kernels import RBF

import truvar as tv
from truvar.algorithm import learner


def test_few_and_many_values_have_the_same_distribution_function() -> None:
    u = np.concatenate([np.linspace(-8, 8, 1001), [-np.inf, 0.0, np.inf]])
    np.testing.assert_allclose(learner._normal_distribution(u), ndtr(u), rtol=1e-13)
    many = np.linspace(-8, 8, learner.FEW_VALUES + 1)
    np.testing.assert_array_equal(learner._normal_distribution(many), ndtr(many))


def test_the_probability_does_not_depend_on_the_number_of_points(monkeypatch: pytest.MonkeyPatch) -> None:
    domain = tv.Domain.grid(x=np.linspace(0, 1, 50))
    study = tv.Study(domain, tv.LevelSet(0.2), kernel=RBF(0.2), mean=0.0, noise=0.01)
    for index in (3, 20, 44):
        study.tell(domain.point(index), 0.1 * index)
    few = study.result().probability
    monkeypatch.setattr(learner, "FEW_VALUES", 0)
    np.testing.assert_allclose(study.result().probability, few, rtol=1e-13)
