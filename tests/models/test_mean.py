"""A mean function is the same as subtracting it from the values and adding it to the
predictions."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

import truvar as tv
from truvar.exceptions import (
    InvalidModelError,
    OutlierWarning,
    PointNotInDomainError,
    SerializationError,
)
from truvar.models.diagnostics import check_model

KERNEL = ConstantKernel(2.0) * Matern([0.3, 0.5], nu=2.5)
GRID = tv.Domain.grid(x=np.linspace(0, 1, 7), y=np.linspace(0, 2, 6))
BOX = tv.Domain.box(x=(0, 1), y=(0, 2), representers=36)


def dyadic(x: np.ndarray) -> np.ndarray:
    """Round to 20 binary places, so that sums and differences with such numbers are exact."""
    return np.round(x * 2.0**20) / 2.0**20


def slope(points: np.ndarray) -> np.ndarray:
    return dyadic(30.0 + 20.0 * points[:, 0] - 7.0 * points[:, 1] ** 2)


def gentle(points: np.ndarray) -> np.ndarray:
    """A mean that leaves the maximum open."""
    return slope(points) / 20.0


def scattered() -> tv.Domain:
    rng = np.random.default_rng(3)
    points = rng.random((40, 2)) * [1, 2]
    return tv.Domain.table(
        pd.DataFrame({"x": points[:, 0], "y": points[:, 1], "depth": slope(points)}), ["x", "y"]
    )


TABLE = scattered()
CASES: dict[str, tuple[tv.Domain, Any]] = {
    "function on a grid": (GRID, slope),
    "array on a grid": (GRID, slope(GRID.points)),
    "list on a grid": (GRID, slope(GRID.points).tolist()),
    "column of a table": (TABLE, "depth"),
    "function on a table": (TABLE, slope),
    "function in a box": (BOX, slope),
}
MODELS: dict[str, dict[str, Any]] = {
    "known": {"kernel": KERNEL, "noise": 0.01},
    "learned": {"kernel": tv.Learned(transform="none")},
    "learned, noise known": {"kernel": tv.Learned(transform="none"), "noise": 0.01},
    "single best": {"kernel": tv.Learned("rbf", marginalise=False, restarts=2)},
}


def residual(x: np.ndarray) -> float:
    return float(dyadic(np.sin(5 * x[0]) + np.cos(3 * x[1])))


def rows_to_measure(domain: tv.Domain, count: int = 14) -> np.ndarray:
    return np.random.default_rng(1).permutation(len(domain))[:count]


def told(
    domain: tv.Domain, mean: Any, values: Callable[[np.ndarray], float], goal: Any, **options: Any
) -> tv.Study:
    study = tv.Study(domain, goal, mean=mean, **options)
    for row in rows_to_measure(domain):
        study.tell(domain.point(row), values(domain.points[row]))
    return study


@pytest.mark.parametrize(
    ("case", "model"),
    [
        *((case, "known") for case in CASES),
        *(
            (case, "learned")
            for case in ("function on a grid", "column of a table", "function in a box")
        ),
        ("column of a table", "learned, noise known"),
        ("column of a table", "single best"),
    ],
)
def test_a_mean_function_is_subtracted_and_added_again(case: str, model: str) -> None:
    domain, mean = CASES[case]
    options = MODELS[model]

    def values(x: np.ndarray) -> float:
        return residual(x) + float(slope(x[None, :])[0])

    own = told(domain, mean, values, tv.Maximize(), **options)
    by_hand = told(domain, 0.0 if model == "known" else None, residual, tv.Maximize(), **options)
    result = own.result()
    expected = by_hand.result()
    offset = slope(domain.points)
    np.testing.assert_allclose(result.mean, expected.mean + offset, rtol=0, atol=1e-9)
    np.testing.assert_allclose(result.sd, expected.sd, rtol=0, atol=1e-9)
    means, sds = own.predict(domain.points[3:9])
    np.testing.assert_allclose(means, result.mean[3:9], rtol=0, atol=1e-9)
    np.testing.assert_allclose(sds, result.sd[3:9], rtol=0, atol=1e-9)
    mean_of_value, sd_of_value = own.predict_measurement(domain.point(4))
    expected_value = by_hand.predict_measurement(domain.point(4))
    assert mean_of_value == pytest.approx(expected_value[0] + offset[4], abs=1e-9)
    assert sd_of_value == pytest.approx(expected_value[1], abs=1e-9)


@pytest.mark.parametrize("model", MODELS)
def test_a_function_predicts_between_the_points_of_the_domain(model: str) -> None:
    between = np.array([[0.123, 0.456], [0.777, 1.9]])

    def values(x: np.ndarray) -> float:
        return residual(x) + float(slope(x[None, :])[0])

    own = told(GRID, slope, values, tv.Maximize(), **MODELS[model])
    by_hand = told(
        GRID, 0.0 if model == "known" else None, residual, tv.Maximize(), **MODELS[model]
    )
    own.tell({"x": 0.51, "y": 0.33}, values(np.array([0.51, 0.33])))
    by_hand.tell({"x": 0.51, "y": 0.33}, residual(np.array([0.51, 0.33])))
    means, sds = own.predict(between)
    expected, expected_sds = by_hand.predict(between)
    np.testing.assert_allclose(means, expected + slope(between), rtol=0, atol=1e-9)
    np.testing.assert_allclose(sds, expected_sds, rtol=0, atol=1e-9)


def test_leave_one_out_scores_do_not_depend_on_the_mean_function() -> None:
    own = told(
        TABLE,
        "depth",
        lambda x: residual(x) + float(slope(x[None, :])[0]),
        tv.Maximize(),
        **MODELS["known"],
    )
    by_hand = told(TABLE, 0.0, residual, tv.Maximize(), **MODELS["known"])
    checks = [check_model(study._learner.posterior, range(14)) for study in (own, by_hand)]
    np.testing.assert_allclose(checks[0].z_scores, checks[1].z_scores, rtol=0, atol=1e-9)
    offset = slope(TABLE.points[rows_to_measure(TABLE)])
    np.testing.assert_allclose(checks[0].means, checks[1].means + offset, rtol=0, atol=1e-9)


def test_tasks_share_the_mean_function() -> None:
    tasks = tv.Tasks([[1.0, 0.8], [0.8, 1.0]], ["algae", "turbidity"])
    options = {"kernel": KERNEL, "noise": 0.01, "tasks": tasks}
    own = tv.Study(TABLE, tv.Maximize(), mean="depth", **options)
    by_hand = tv.Study(TABLE, tv.Maximize(), mean=0.0, **options)
    for row, task in ((3, "algae"), (8, "turbidity"), (20, "algae"), (31, "turbidity")):
        x = TABLE.points[row]
        own.tell(TABLE.point(row), residual(x) + float(slope(x[None, :])[0]), task=task)
        by_hand.tell(TABLE.point(row), residual(x), task=task)
    np.testing.assert_allclose(
        own.result().mean, by_hand.result().mean + slope(TABLE.points), rtol=0, atol=1e-9
    )
    assert own.ask().task in tasks.names


@pytest.mark.parametrize("model", ["known", "learned"])
def test_a_threshold_stays_in_the_units_of_the_values(model: str) -> None:
    def values(x: np.ndarray) -> float:
        return residual(x) + float(slope(x[None, :])[0])

    policy = tv.TruVaR(beta=tv.ConstantBeta(4.0))
    own = told(
        TABLE, "depth", values, tv.LevelSet(35.0, monotone=False), policy=policy, **MODELS[model]
    )
    result = own.result()
    assert result.above.any()
    assert result.below.any()
    np.testing.assert_array_equal(result.above, result.lower > 35.0)
    np.testing.assert_array_equal(result.below, result.upper < 35.0)
    truth = np.array([values(x) for x in TABLE.points])
    assert (truth[result.above] > 35.0).all()
    assert (truth[result.below] < 35.0).all()
    if model == "known":
        by_hand = told(
            TABLE, 0.0, residual, tv.LevelSet(0.3, monotone=False), policy=policy, **MODELS[model]
        ).result()
        np.testing.assert_allclose(
            result.lower, by_hand.lower + slope(TABLE.points), rtol=0, atol=1e-9
        )


def test_flat_deviations_far_from_the_threshold_stay_uncertain() -> None:
    study = tv.Study(TABLE, tv.LevelSet(60.0), mean="depth")
    for row in rows_to_measure(TABLE, 8):
        study.tell(TABLE.point(row), float(slope(TABLE.points[row][None, :])[0]) + 1e-3)
    nearest = float(np.abs(60.0 - slope(TABLE.points)).min())
    assert study.result().sd.max() > 0.1 * nearest


@pytest.mark.parametrize("value", [1e4, -1e4])
def test_a_gross_error_is_found_among_the_deviations(value: float) -> None:
    study = told(TABLE, "depth", lambda x: residual(x) + float(slope(x[None, :])[0]), tv.Maximize())
    before = study.result().mean
    with pytest.warns(OutlierWarning, match=f"{value:g}"):
        study.tell(TABLE.point(39), value)
    assert [y for _, y in study._learner.surrogate.outliers] == [value]
    assert np.abs(study.result().mean - before).max() < 3.0


def test_the_first_choice_of_expected_improvement_is_the_best_prior_mean() -> None:
    study = tv.Study(GRID, tv.Maximize(), kernel=RBF(0.3), mean=slope, noise=0.01, policy="ei")
    assert study.ask().index == int(np.argmax(slope(GRID.points)))


def test_a_coordinate_is_a_mean_everywhere() -> None:
    study = tv.Study(BOX, tv.Maximize(), kernel=RBF(0.3), mean="y", noise=0.01)
    np.testing.assert_allclose(study.predict([[0.2, 1.234]])[0], [1.234])
    study.tell({"x": 0.111, "y": 0.222}, 0.222)
    np.testing.assert_allclose(study.result().mean, BOX.points[:, 1], rtol=0, atol=1e-12)


def test_a_model_fitted_to_another_table_describes_the_deviations() -> None:
    frame = TABLE.to_frame()
    frame["algae"] = [residual(x) for x in TABLE.points]
    by_hand = tv.Study(TABLE, tv.Maximize()).fit(frame)
    frame["algae"] += slope(TABLE.points)
    study = tv.Study(TABLE, tv.Maximize(), mean="depth")
    fitted = study.fit(frame)
    assert fitted.mean == pytest.approx(by_hand.mean, abs=1e-6)
    np.testing.assert_allclose(study.result().mean, slope(TABLE.points) + fitted.mean)


@pytest.mark.parametrize("mean", [slope(TABLE.points), "depth"])
@pytest.mark.parametrize("model", ["known", "learned"])
def test_values_on_the_domain_serve_only_its_points(mean: Any, model: str) -> None:
    study = told(TABLE, mean, lambda x: float(slope(x[None, :])[0]), tv.Maximize(), **MODELS[model])
    with pytest.raises(
        PointNotInDomainError, match=r"points of the domain only, got .* function of the points"
    ):
        study.predict([[0.5, 0.5]])


@pytest.mark.parametrize("model", ["known", "learned"])
def test_a_value_between_the_points_needs_a_function(model: str) -> None:
    study = tv.Study(GRID, tv.Maximize(), mean=gentle(GRID.points), **MODELS[model])
    suggestion = study.ask()
    study.tell(suggestion, 3.0)
    pending = study.ask()
    before = study.result().mean
    with pytest.raises(
        PointNotInDomainError, match="an array with values at the points of the domain only"
    ):
        study.tell({"x": 0.51, "y": 0.33}, 1.0)
    assert study.steps == 1
    assert study.pending == [pending]
    np.testing.assert_array_equal(study.result().mean, before)
    study.tell(pending, 2.0)
    assert study.steps == 2


@pytest.mark.parametrize("model", ["known", "learned"])
def test_a_function_on_a_finite_domain_is_stored_as_its_values(model: str, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'mean.db'}"
    options = {"policy": "ei", "seed": 4, **MODELS[model]}
    memory = tv.Study(GRID, tv.Maximize(), mean=gentle, **options)
    tv.Study(GRID, tv.Maximize(), mean=gentle, store=url, name="sea", **options)
    for _ in range(12):
        stored = tv.load(url, "sea")
        suggestion = stored.ask()
        assert suggestion == memory.ask()
        x = GRID.array(suggestion.point)
        value = residual(x) + float(gentle(x[None, :])[0])
        stored.tell(suggestion, value)
        memory.tell(suggestion, value)
    again = tv.load(url, "sea").result()
    np.testing.assert_array_equal(again.mean, memory.result().mean)
    np.testing.assert_array_equal(again.sd, memory.result().sd)


def test_a_function_in_a_box_cannot_be_stored(tmp_path: Path) -> None:
    with pytest.raises(SerializationError, match="mean cannot be stored"):
        tv.Study(
            BOX, tv.Maximize(), mean=slope, store=f"sqlite:///{tmp_path / 'mean.db'}", name="sea"
        )


def test_the_power_of_the_values_is_not_learned() -> None:
    plain = told(TABLE, None, lambda x: float(np.exp(residual(x))), tv.Maximize())
    assert not plain._learner.surrogate.transform.is_identity
    study = told(
        TABLE, "depth", lambda x: float(np.exp(residual(x)) + slope(x[None, :])[0]), tv.Maximize()
    )
    assert study._learner.surrogate.transform.is_identity


def test_an_array_for_a_box_is_refused() -> None:
    with pytest.raises(InvalidModelError, match="function of the points"):
        tv.Study(BOX, tv.Maximize(), kernel=RBF(0.3), mean=slope(BOX.points), noise=0.01)
