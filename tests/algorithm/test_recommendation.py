"""The recommended point: by expected value, and never an extrapolation whose lead is not probable."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import truvar as tv
from truvar.algorithm.recommendation import MAX_KNOWN_SD, MIN_SUPERIORITY, best_point
from truvar.models.transforms import OutputTransform


def skewed_study(goal: tv.Maximize | tv.Minimize, seed: int) -> tv.Study:
    """Return a study that was told a table of skewed values without any structure."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"a": rng.random(60), "b": rng.random(60)})
    study = tv.Study(tv.Domain.table(frame), goal, seed=seed)
    told = frame.iloc[:20].assign(value=goal.sign * np.exp(1.5 * rng.standard_normal(20)))
    study.tell_frame(told, "value")
    return study


@pytest.mark.parametrize(("goal", "seed"), [(tv.Maximize(), 0), (tv.Minimize(), 1)])
def test_no_eligible_point_has_a_better_expected_value(
    goal: tv.Maximize | tv.Minimize, seed: int
) -> None:
    study = skewed_study(goal, seed)
    learner = study._learner
    surrogate = learner.surrogate
    row, _, mean, sd = best_point(learner)
    assert row is not None
    # By draws: what is expected of each point, and how often it beats the best measured one.
    frozen = surrogate.freeze_average()
    draws = frozen.draw(surrogate.target_sites, 20_000, (seed,))
    values = goal.sign * surrogate.transform.inverse(draws)
    expected = values.mean(axis=1)
    error = 4.0 * values.std(axis=1) / np.sqrt(values.shape[1])
    measured = np.arange(60) < 20
    incumbent = int(np.argmax(np.where(measured, expected, -np.inf)))
    superiority = (values > values[incumbent]).mean(axis=1)
    known_sd = MAX_KNOWN_SD * learner.posterior.scale
    known_well = (draws - draws[incumbent]).std(axis=1) <= known_sd
    eligible = measured | known_well | (superiority >= MIN_SUPERIORITY + 0.02)
    assert (expected - error)[eligible].max() <= expected[row] + error[row]
    assert measured[row] or known_well[row] or superiority[row] >= MIN_SUPERIORITY - 0.02
    assert goal.sign * mean == pytest.approx(expected[row], abs=error[row])
    # By integration, as tails that few draws reach make most of the standard deviation.
    means, variances = frozen.predict(surrogate.target_sites[[row]])
    z = np.linspace(-12.0, 12.0, 24_001)
    weights = np.exp(-(z**2) / 2) * (z[1] - z[0]) / np.sqrt(2 * np.pi)
    outcomes = surrogate.transform.inverse(means + np.sqrt(variances) * z)  # member x z
    first = frozen.shares @ (outcomes @ weights)
    second = frozen.shares @ (outcomes**2 @ weights)
    assert mean == pytest.approx(first, rel=1e-6)
    assert sd == pytest.approx(np.sqrt(second - first**2), rel=1e-4, abs=1e-3)


def test_with_a_learned_model_a_point_between_measurements_is_recommended_where_it_is_surely_better():
    domain = tv.Domain.box(x=(0.0, 1.0))
    study = tv.Study(domain, tv.Maximize())
    x = np.linspace(0.0, 1.0, 9)
    study.tell_frame(pd.DataFrame({"x": x, "value": np.sin(4 * x)}), "value")
    found = study.result().best.point["x"]
    assert 1.0 - np.sin(4 * found) < 0.3 * (1.0 - np.sin(4 * x).max())


def test_in_a_box_the_recommended_point_is_not_in_a_region_that_fails() -> None:
    domain = tv.Domain.box(x=(0.0, 1.0), representers=64)
    study = tv.Study(domain, tv.Maximize(), kernel="rbf", noise=1e-4)
    for x in (0.05, 0.15, 0.25, 0.35, 0.45, 0.55):
        study.tell({"x": x}, float(3 * x))
    for x in (0.75, 0.82, 0.88, 0.94, 0.99):
        study.fail({"x": x})
    result = study.result()
    availability = study._learner.availability
    assert availability is not None
    point = np.array([[result.best.point["x"]]])
    assert availability.feasibility_at(point)[0] >= 0.5


@pytest.mark.parametrize("power", [0.3, 1.0, 1.6])
def test_moments_in_the_units_of_the_user_are_those_of_a_fine_sum(power: float) -> None:
    transform = OutputTransform(shift=1.0, scale=2.0, power=power)
    means = np.array([[0.5, 2.0], [1.0, -1.0]])
    variances = np.array([[0.2, 0.5], [1.0, 0.1]])
    found_mean, found_sd = transform.inverse_each(means, variances)
    u = np.linspace(-9.0, 9.0, 20_001)
    weights = np.exp(-0.5 * u**2) / np.exp(-0.5 * u**2).sum()
    values = transform.inverse(means[..., None] + np.sqrt(variances)[..., None] * u)
    expected = values @ weights
    assert found_mean == pytest.approx(expected, rel=1e-4, abs=1e-4)
    spread = ((values - expected[..., None]) ** 2) @ weights
    assert found_sd == pytest.approx(np.sqrt(spread), rel=1e-3)


@pytest.mark.parametrize("goal", [tv.Maximize(), tv.Minimize()])
def test_before_the_first_fit_the_best_measurement_is_recommended(goal: tv.Goal) -> None:
    for domain in (
        tv.Domain.grid(x=np.linspace(0, 1, 9), y=np.linspace(0, 1, 9)),
        tv.Domain.box(x=(0, 1), y=(0, 1), representers=64),
    ):
        study = tv.Study(domain, goal, seed=0)
        values = {(0.0, 0.0): -1.7, (0.5, 0.25): -0.8, (1.0, 0.5): -1.3}
        for (x, y), value in values.items():
            study.tell({"x": x, "y": y}, value)
        best = max(values.values()) if isinstance(goal, tv.Maximize) else min(values.values())
        recommended = study.result().best
        place = (recommended.point["x"], recommended.point["y"])
        assert values[place] == best
        assert (recommended.index is None) == domain.continuous
