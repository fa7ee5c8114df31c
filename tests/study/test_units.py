"""No model depends on the unit of the values: all results scale with it, by powers of two that
round nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, RationalQuadratic

import truvar as tv
from truvar.domain.action import Action

LINE = tv.Domain.grid(x=np.linspace(0, 1, 33))
ROWS = (0, 8, 16, 24, 32, 4, 12, 20, 28, 14, 18)
EXPONENTS = {"level": -40, "maximum": 30}  # of 2, by goal
NAMES = ["yield", "assay"]
ASSAY = tv.Tasks(names=NAMES, cost=[10.0, 1.0])
COVARIANCE = [[1.0, 0.8], [0.8, 1.0]]


def field(x: float) -> float:
    return float(np.sin(6 * x) + 0.3 * np.cos(23 * x))


def known_kernel(unit: float) -> Any:
    return ConstantKernel(0.75 * unit**2) * Matern(0.3, nu=2.5)


def composed_kernel(unit: float) -> Any:
    """Return a kernel that has no compiled form."""
    return ConstantKernel(0.75 * unit**2) * RationalQuadratic(0.3)


def skewed(x: float) -> float:
    """Return a positive value with a sharp peak, which calls for a transform."""
    return float(np.exp(2 * field(x)))


def learned(**options: Any) -> dict[str, Any]:
    return {"kernel": tv.Learned(**options)}


def known_covariance(**options: Any) -> tv.Tasks:
    return tv.Tasks(covariance=COVARIANCE, names=NAMES, cost=[10.0, 1.0], **options)


# Kind of model -> options of a study whose values are in the given unit.
MODELS: dict[str, Any] = {
    "known": lambda unit: {
        "kernel": known_kernel(unit),
        "mean": 0.25 * unit,
        "noise": 1e-3 * unit**2,
    },
    "known, exact": lambda unit: {"kernel": known_kernel(unit), "mean": 0.25 * unit, "noise": 0.0},
    "known, composed": lambda unit: {
        "kernel": composed_kernel(unit),
        "mean": 0.25 * unit,
        "noise": 1e-3 * unit**2,
    },
    "estimated mean": lambda unit: {"kernel": known_kernel(unit), "noise": 1e-3 * unit**2},
    "learned noise": lambda unit: {"kernel": known_kernel(unit), "mean": 0.25 * unit},
    "point estimate": lambda unit: learned(marginalise=False),
    "point estimate, given noise": lambda unit: {
        **learned(marginalise=False),
        "noise": 1e-3 * unit**2,
    },
    "averaged": lambda unit: {},
    "averaged, given noise and mean": lambda unit: {"mean": 0.25 * unit, "noise": 1e-3 * unit**2},
    "averaged, mean function": lambda unit: {"mean": unit * LINE.points[:, 0]},
    "known tasks": lambda unit: {
        "kernel": known_kernel(unit),
        "mean": 0.25 * unit,
        "noise": 1e-3 * unit**2,
        "tasks": known_covariance(mean=[0.25 * unit, 0.5 * unit]),
    },
    "known tasks, learned noise": lambda unit: {
        "kernel": known_kernel(unit),
        "tasks": known_covariance(),
    },
    "known tasks, learned kernel": lambda unit: {"tasks": known_covariance()},
    "learned tasks, known kernel": lambda unit: {"kernel": known_kernel(unit), "tasks": ASSAY},
    "learned tasks, known kernel, given noise": lambda unit: {
        "kernel": known_kernel(unit),
        "noise": 1e-3 * unit**2,
        "mean": 0.25 * unit,
        "tasks": ASSAY,
    },
    "learned tasks, composed kernel": lambda unit: {
        "kernel": composed_kernel(unit),
        "tasks": ASSAY,
    },
    "learned tasks, point estimate": lambda unit: {**learned(marginalise=False), "tasks": ASSAY},
    "learned tasks": lambda unit: {"tasks": ASSAY},
}


def scaled_study(kind: str, goal: str, unit: float, truth: Any = field, **options: Any) -> tv.Study:
    """Return a study with values and model in the given unit.

    Most values are observed together, as a fit after each of them takes long; the last three are
    observed one by one.
    """
    goals: dict[str, tv.Goal] = {"level": tv.LevelSet(0.4 * unit), "maximum": tv.Maximize()}
    study = tv.Study(LINE, goals[goal], **MODELS[kind](unit), **options)
    learner = study._learner
    values = [
        truth(LINE.points[row, 0]) + 0.02 * (-1) ** position for position, row in enumerate(ROWS)
    ]
    measured = list(zip(ROWS, values, strict=True))
    if study.tasks is not None:
        assay = [(row + len(LINE), 0.7 * y + 0.05 * np.cos(40 * row)) for row, y in measured[::2]]
        measured = [*measured[:-1], *assay, measured[-1]]

    def observation(position: int) -> tuple[Action, float]:
        site, y = measured[position]
        table = learner.actions.candidates(None)
        task = site // len(LINE)
        action = Action(
            1 + position, table.points[site], site, None, task, float(table.noise[site, 0]), 1.0
        )
        return action, unit * y

    first = len(measured) - 3
    learner.observe_all([observation(position) for position in range(first)])
    for position in range(first, len(measured)):
        learner.observe(*observation(position), [])
    return study


def assert_scaled(study: tv.Study, plain: tv.Study, unit: float, rtol: float = 1e-7) -> None:
    """Assert that everything that a study says is that of another one, in another unit."""
    result = study.result()
    other = plain.result()
    size = float(np.abs(other.mean).max())
    for name in ("mean", "sd", "lower", "upper"):
        own = getattr(result, name) / unit
        np.testing.assert_allclose(
            own, getattr(other, name), rtol=rtol, atol=rtol * size, err_msg=name
        )
    for name in ("probability", "above", "below", "potential"):
        np.testing.assert_allclose(
            getattr(result, name), getattr(other, name), atol=10 * rtol, err_msg=name
        )
    assert result.best.index == other.best.index
    assert result.outliers == other.outliers
    assert result.model_check.failure == other.model_check.failure
    score = "expected_f1" if other.goal.has_thresholds else "expected_regret"
    own_score = getattr(result, score).mean / (1.0 if other.goal.has_thresholds else unit)
    assert own_score == pytest.approx(getattr(other, score).mean, rel=10 * rtol, abs=10 * rtol)
    assert study.finished == plain.finished
    if plain.finished is not None:
        return
    (expected,) = plain.pending
    suggestion = study.ask()
    assert (suggestion.index, suggestion.task) == (expected.index, expected.task)
    moments = np.array(study.predict_measurement(suggestion)) / unit
    np.testing.assert_allclose(moments, plain.predict_measurement(expected), rtol=100 * rtol)


@pytest.mark.parametrize("goal", ["level", "maximum"])
@pytest.mark.parametrize("kind", MODELS)
def test_results_scale_with_the_values(kind: str, goal: str) -> None:
    plain = scaled_study(kind, goal, 1.0)
    if plain.finished is None:
        plain.ask()
    unit = 2.0 ** EXPONENTS[goal]
    assert_scaled(scaled_study(kind, goal, unit), plain, unit)


def test_a_power_of_the_values_scales_with_them() -> None:
    plain = scaled_study("averaged", "maximum", 1.0, truth=skewed)
    assert plain.transform.power != 1.0
    plain.ask()
    for exponent in (-10, 10):
        scaled = scaled_study("averaged", "maximum", 2.0**exponent, truth=skewed)
        assert scaled.transform.power == pytest.approx(plain.transform.power, rel=1e-9)
        assert_scaled(scaled, plain, 2.0**exponent)


def test_logarithms_are_shifted_by_the_unit() -> None:
    plain = scaled_study("averaged", "level", 1.0, truth=skewed, transform="log")
    plain.ask()
    for exponent in (-10, 10):
        scaled = scaled_study("averaged", "level", 2.0**exponent, truth=skewed, transform="log")
        assert_scaled(
            scaled, plain, 2.0**exponent, rtol=1e-4
        )  # the sum of two logarithms is rounded


@pytest.mark.parametrize(
    "kernel", [known_kernel(1.0), tv.Learned("matern32")], ids=["own", "learned"]
)
def test_a_fit_to_a_table_scales_with_its_values(kernel: Any) -> None:
    x = np.linspace(0, 1, 25)

    def fitted_study(unit: float) -> tv.Study:
        study = tv.Study(LINE, tv.LevelSet(0.4 * unit), kernel=kernel)
        study.fit(
            pd.DataFrame(
                {"x": x, "value": [unit * (field(each) + 0.05 * np.cos(70 * each)) for each in x]}
            )
        )
        for row in ROWS:
            study.tell(LINE.point(row), unit * field(LINE.points[row, 0]))
        return study

    plain = fitted_study(1.0)
    plain.ask()
    for exponent in EXPONENTS.values():
        assert_scaled(fitted_study(2.0**exponent), plain, 2.0**exponent, rtol=1e-3)
