"""Fits, choices, statements and predictions read the noise through the observation model alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import RBF

import truvar as tv
from truvar.algorithm.learner import ActiveLearner
from truvar.algorithm.recommendation import best_point
from truvar.domain.action import Action
from truvar.domain.costs import NoiseLevels
from truvar.exceptions import InvalidModelError
from truvar.inference.inputs import predict_measurement
from truvar.inference.joint import StatementSource
from truvar.models.likelihoods import LIKELIHOODS, Gaussian
from truvar.models.priors import Learned, Prior
from truvar.study._events import StudyConfig

DOMAIN = tv.Domain.grid(x=np.linspace(0, 1, 9), y=np.linspace(0, 2, 5))
TASKS = tv.Tasks(names=["yield", "colour"])
NOISE = 0.005


@dataclass(frozen=True, eq=False)
class Doubled(Gaussian):
    """Values have twice the variance that the user gives."""

    def variance(self, noise: Any) -> Any:
        return 2.0 * noise

    def noise(self, variance: Any) -> Any:
        return 0.5 * variance


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LIKELIHOODS, "doubled", Doubled)


KERNELS: dict[str, dict[str, Any]] = {
    "known": {"kernel": RBF([0.3, 0.5]), "mean": 0.0},
    "known, exact": {"kernel": RBF([0.3, 0.5]), "mean": 0.0, "exact_model": True},
    "point estimate": {"kernel": Learned(marginalise=False), "mean": None},
    "average": {"kernel": Learned(), "mean": None},
    "tasks": {"kernel": Learned(), "mean": None, "tasks": TASKS},
}


def told_learner(likelihood: str, kernel: str, noise: Any, own: float) -> ActiveLearner:
    """Return a learner with a dozen values, every third of which comes with a noise of its own."""
    prior = Prior(noise=noise, likelihood=likelihood, **KERNELS[kernel])
    learner = ActiveLearner(DOMAIN, tv.LevelSet(0.3), tv.WeightedTruVaR(), prior, seed=1)
    table = learner.actions.candidates(None)
    level = None if learner.actions.noise_levels is None else 0
    for id_, row in enumerate(range(0, 44, 3)):
        x, y = DOMAIN.points[row]
        is_given = id_ % 3 == 0
        expected = float(learner.actions.candidates(None).noise[row, 0])
        action = Action(
            id=id_,
            point=table.points[row],
            site=row,
            level=level,
            task=0,
            noise=own if is_given else expected,
            cost=1.0,
            noise_given=is_given,
        )
        learner.observe(action, float(np.sin(5 * x) * np.cos(2 * y)), [])
    return learner


def answers(learner: ActiveLearner, noise: float) -> dict[str, Any]:
    """Return everything that depends on the noise, given that of a measurement to come."""
    surrogate = learner.surrogate
    row = 7
    point = learner.actions.candidates(None).points[row]
    action = Action(99, point, row, None, 0, noise, 1.0, noise_given=True)
    _, choice = learner.choose(None, [], 3)
    assert choice is not None
    source = StatementSource.of(learner, best_point(learner)[1])
    return {
        "kernel": np.asarray(surrogate.kernel(DOMAIN.points[:3])).tolist(),
        "mean": surrogate.posterior.mean.tolist(),
        "variance": surrogate.posterior.variance.tolist(),
        "claims": [
            part.tolist() for part in surrogate.freeze_average().predict(surrogate.target_sites)
        ],
        "choice": (choice.row, choice.level, choice.gain),
        "classes": source.joint.probability.tolist(),
        "f1": source.joint.expected_f1,
        "measurement": predict_measurement(learner, action),
        "measurement of the model": surrogate.predict_measurement(action),
        "modelled": surrogate.modelled_noise(action),
    }


@pytest.mark.parametrize("kernel", KERNELS)
def test_all_answers_are_those_of_the_variance_that_the_observation_model_says(kernel: str) -> None:
    doubled = answers(told_learner("doubled", kernel, NOISE, 0.02), 0.01)
    plain = answers(told_learner("gaussian", kernel, 2 * NOISE, 0.04), 0.02)
    assert doubled == plain
    other = answers(told_learner("gaussian", kernel, NOISE, 0.02), 0.01)
    unchanged = {"choice", "kernel"} if kernel.startswith("known") else {"choice"}
    for name in other.keys() - unchanged:
        assert doubled[name] != other[name], name


@pytest.mark.parametrize("kernel", ["known", "point estimate", "average", "tasks"])
def test_learned_noise_is_that_which_gives_the_variance_learned(kernel: str) -> None:
    doubled = told_learner("doubled", kernel, None, 0.02)
    plain = told_learner("gaussian", kernel, None, 0.04)
    assert answers(doubled, 0.01) == answers(plain, 0.02)
    table = doubled.actions.candidates(None)
    assert (2 * table.noise).tolist() == plain.actions.candidates(None).noise.tolist()


def test_noise_levels_are_chosen_by_their_variances() -> None:
    doubled = told_learner("doubled", "known", NoiseLevels([1e-3, 0.1], [3.0, 1.0]), 0.02)
    plain = told_learner("gaussian", "known", NoiseLevels([2e-3, 0.2], [3.0, 1.0]), 0.04)
    assert answers(doubled, 0.01) == answers(plain, 0.02)


def test_a_fit_to_a_table_takes_the_variance() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.random((20, 2)), columns=["x", "y"])
    frame["value"] = np.sin(5 * frame["x"]) + 0.1 * rng.standard_normal(20)

    def theta(likelihood: str, noise: float) -> list[float]:
        prior = Prior(Learned(), None, noise, likelihood=likelihood)
        learner = ActiveLearner(DOMAIN, tv.LevelSet(0.3), tv.WeightedTruVaR(), prior)
        found: list[float] = learner.surrogate.fit_table(frame, "value").kernel.theta.tolist()
        return found

    assert theta("doubled", 0.01) == theta("gaussian", 0.02) != theta("gaussian", 0.01)


def test_an_observation_model_is_stored_unless_it_is_the_default() -> None:
    def config(likelihood: str) -> StudyConfig:
        prior = Prior(RBF(0.3), 0.0, 0.01, likelihood=likelihood)
        return StudyConfig(DOMAIN, tv.LevelSet(0.3), tv.TruVaR(), prior, None, None, 0, None)

    assert "likelihood" not in config("gaussian").to_details()
    assert config("doubled").round_trip().prior.likelihood == "doubled"


def test_an_unknown_observation_model_is_named() -> None:
    prior = Prior(RBF(0.3), 0.0, 0.01, likelihood="gausian")
    with pytest.raises(InvalidModelError, match="unknown likelihood 'gausian'; did you mean 'gau"):
        ActiveLearner(DOMAIN, tv.LevelSet(0.3), tv.TruVaR(), prior)
