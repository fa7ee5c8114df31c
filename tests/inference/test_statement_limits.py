"""Limits that are statements about the answer: necessary conditions, and the value of the next
measurement."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm
from sklearn.gaussian_process.kernels import RBF

import truvar as tv
from truvar.exceptions import UnsupportedGoalError
from truvar.inference.limits import expected_improvement, may_reach_f1, may_reach_regret
from truvar.models.transforms import OutputTransform

AXIS = np.linspace(0, 1, 40)
LINE = tv.Domain.grid(x=AXIS)
MODEL: dict[str, Any] = {"kernel": RBF(0.15), "mean": 0.0, "noise": 1e-4}
GOALS = {
    "level set": tv.LevelSet(0.3),
    "share of the maximum": tv.LevelSet(fraction_of_max=0.6),
    "maximum": tv.Maximize(),
    "minimum": tv.Minimize(),
}


def wave(point: dict[str, float]) -> float:
    return float(np.sin(9 * point["x"]) + 0.4 * np.cos(21 * point["x"]))


@pytest.mark.parametrize("goal", GOALS.values(), ids=list(GOALS))
@pytest.mark.parametrize("model", [MODEL, {}], ids=["known", "learned"])
def test_the_quick_condition_never_misses_a_limit_that_is_reached(
    goal: Any, model: dict[str, Any]
) -> None:
    study = tv.Study(LINE, goal, **model, seed=3)
    n_reached = 0
    n_excluded = 0
    for _ in range(16):
        suggestion = study.ask()
        study.tell(suggestion, wave(suggestion.point))
        inputs = study._state.conclusions.statement_inputs()
        if not inputs.fitted:
            continue
        for limit in (0.5, 0.8, 0.95, 0.99) if goal.has_thresholds else (1.0, 0.3, 0.05, 0.002):
            if goal.has_thresholds:
                reached = study.result().expected_f1.low >= limit
                may = may_reach_f1(inputs, limit)
            else:
                reached = study.result().expected_regret.high <= limit
                may = may_reach_regret(inputs, limit)
            assert may or not reached
            n_reached += reached
            n_excluded += not may
        if study.finished:
            break
    assert n_reached > 0
    assert n_excluded > 0


def test_no_point_above_is_a_classification_that_can_be_certain() -> None:
    # A learned model, which would share the claims, is not certain.
    study = tv.Study(LINE, tv.LevelSet(50.0), exact_model=True, **MODEL)
    for x in AXIS[:5]:
        assert study.check_stop(f1=0.95).reason is None  # too few to contradict the model
        study.tell({"x": x}, 0.0)
    assert may_reach_f1(study._state.conclusions.statement_inputs(), 0.95)
    assert study.check_stop(f1=0.95).reason == "expected F1 1 (1 to 1) reached 0.95"


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_a_point_as_uncertain_as_the_best_one_is_ruled_out_without_a_warning() -> None:
    best = SimpleNamespace(
        predict=lambda _: (np.array([[9.0]]), np.array([[1.0]])), shares=np.array([1.0])
    )
    inputs: Any = SimpleNamespace(
        goal=tv.Maximize(),
        posterior=best,
        best=np.zeros(1),
        transform=OutputTransform(),
        means=np.array([[0.0, 9.0]]),
        variances=np.ones((1, 2)),
        excluded=None,
    )
    assert may_reach_regret(inputs, 0.1)


# -- expected improvement
# ----------------------------------------------------------------------------------------------

TRANSFORMS = {
    "none": OutputTransform(),
    "log": OutputTransform(log=True),
    "power": OutputTransform(shift=1.0, scale=0.7, power=0.3),
}


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=list(TRANSFORMS))
def test_expected_improvement_is_the_integral(sign: int, transform: OutputTransform) -> None:
    means = np.array([[0.1, 0.6, 1.4], [-0.3, 0.9, 0.2]])
    variances = np.array([[0.04, 0.3, 0.01], [0.5, 0.02, 0.2]])
    incumbent = 1.7
    got = expected_improvement(means, variances, incumbent, sign, transform)
    for index in np.ndindex(means.shape):
        mean = means[index]
        sd = np.sqrt(variances[index])

        def gain(u: float, mean: float = mean, sd: float = sd) -> float:
            value = float(transform.inverse(np.array(mean + sd * u)))
            return max(sign * (value - incumbent), 0.0) * float(norm.pdf(u))

        expected = quad(gain, -9, 9, limit=400)[0]
        assert got[index] == pytest.approx(expected, rel=0.02, abs=1e-7)


def test_known_values_improve_by_their_lead() -> None:
    got = expected_improvement(np.array([[1.0, 3.0]]), np.zeros((1, 2)), 2.0, 1, OutputTransform())
    np.testing.assert_array_equal(got, [[0.0, 1.0]])


def test_improvement_per_cost_by_hand() -> None:
    cost = 1.0 + AXIS
    study = tv.Study(LINE, tv.Minimize(), **MODEL, cost=cost)
    assert study.improvement_per_cost() == np.inf
    for x in AXIS[[3, 17, 30]]:
        study.tell({"x": x}, wave({"x": x}))
    mean, sd = study.predict(AXIS[:, None])
    lead = mean[[3, 17, 30]].min() - mean
    improvement = lead * norm.cdf(lead / sd) + sd * norm.pdf(lead / sd)
    assert study.improvement_per_cost() == pytest.approx((improvement / cost).max(), rel=1e-9)


def test_the_cheapest_noise_level_and_the_way_count() -> None:
    levels = tv.NoiseLevels(variance=[1e-6, 1e-2], cost=[10.0, 2.0])
    study = tv.Study(LINE, tv.Maximize(), kernel=RBF(0.15), mean=0.0, noise=levels)
    study.tell({"x": AXIS[5]}, 0.5, level=0)
    mean, sd = study.predict(AXIS[:, None])
    lead = mean - mean[5]
    with np.errstate(divide="ignore"):
        improvement = lead * norm.cdf(lead / sd) + sd * norm.pdf(lead / sd)
    assert study.improvement_per_cost() == pytest.approx(improvement.max() / 2.0, rel=1e-6)
    travelling = tv.Study(LINE, tv.Maximize(), **MODEL, cost=tv.Cost(base=1.0, travel={"x": 100.0}))
    travelling.tell({"x": AXIS[5]}, 0.5)
    mean, sd = travelling.predict(AXIS[:, None])
    lead = mean - mean[5]
    improvement = lead * norm.cdf(lead / sd) + sd * norm.pdf(lead / sd)
    expected = (improvement / (1.0 + 100.0 * np.abs(AXIS - AXIS[5]))).max()
    assert travelling.improvement_per_cost() == pytest.approx(expected, rel=1e-6)


def test_a_box_is_searched_between_its_representers() -> None:
    box = tv.Domain.box(x=(0, 1), representers=8)
    study = tv.Study(box, tv.Maximize(), **MODEL)
    for x in (0.0, 0.45, 1.0):
        study.tell({"x": x}, wave({"x": x}))
    fine = np.linspace(0, 1, 2001)[:, None]
    mean, sd = study.predict(fine)
    best = study.predict([[0.0], [0.45], [1.0]])[0].max()
    lead = mean - best
    improvement = lead * norm.cdf(lead / sd) + sd * norm.pdf(lead / sd)
    coarse = np.interp(study.domain.points[:, 0], fine[:, 0], improvement).max()
    assert study.improvement_per_cost() == pytest.approx(improvement.max(), rel=1e-3)
    assert study.improvement_per_cost() > 1.001 * coarse


def test_a_learned_model_is_averaged_over_its_hyperparameters() -> None:
    study = tv.Study(LINE, tv.Maximize(), transform="none", seed=1)
    for x in AXIS[::4]:
        study.tell({"x": x}, wave({"x": x}))
    inputs = study._state.conclusions.statement_inputs()
    assert len(inputs.means) > 1
    incumbent = study.predict(AXIS[::4, None])[0].max()
    members = []
    for mean, variance in zip(inputs.means, inputs.variances, strict=True):
        sd = np.sqrt(variance)
        lead = mean - incumbent
        members.append(lead * norm.cdf(lead / sd) + sd * norm.pdf(lead / sd))
    assert study.improvement_per_cost() == pytest.approx(
        (inputs.posterior.shares @ members).max(), rel=1e-9
    )


def test_a_level_set_has_no_improvement() -> None:
    with pytest.raises(
        UnsupportedGoalError, match=r"needs an optimum, got the goal LevelSet.*expected_f1"
    ):
        tv.Study(LINE, tv.LevelSet(0.3)).improvement_per_cost()
