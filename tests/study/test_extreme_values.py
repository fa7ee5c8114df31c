"""Values and leases of absurd sizes: a clear error or a right answer, never a study that calls
itself finished."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

import truvar as tv
from truvar.exceptions import InvalidArgumentError, InvalidMeasurementError, OutlierWarning
from truvar.report.html_report import render_html_report

X = np.linspace(0, 1, 30)


@pytest.fixture(autouse=True)
def no_warnings() -> Iterator[None]:
    """Silence the warnings of outliers, which are right."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def field(x: float) -> float:
    return float(np.sin(6 * x) + x)


def known(goal: Any) -> tv.Study:
    return tv.Study(
        tv.Domain.grid(x=X), goal, kernel=ConstantKernel(1.0) * RBF(0.2), mean=0.0, noise=1e-4
    )


@pytest.mark.parametrize("goal", [tv.Maximize(), tv.LevelSet(0.0)])
@pytest.mark.parametrize("kernel", [None, "known"])
@pytest.mark.parametrize("y", [1e155, -1e155, 1e308])
def test_values_whose_squares_overflow_are_refused(goal: Any, kernel: str | None, y: float) -> None:
    study = known(goal) if kernel else tv.Study(tv.Domain.grid(x=X), goal)
    suggestion = study.ask()
    with pytest.raises(InvalidMeasurementError, match="units"):
        study.tell(suggestion, y)
    assert study.steps == 0
    assert study.finished is None


@pytest.mark.parametrize("goal", [tv.Maximize(), tv.LevelSet(0.0)])
@pytest.mark.parametrize("y", [10.0, 100.0, 1e4, 1e50, 1e99])
def test_one_value_that_contradicts_the_model_does_not_finish_a_study(goal: Any, y: float) -> None:
    study = known(goal)
    study.tell(study.ask(), y)
    assert study.finished is None
    assert study.result().best.index >= 0


def test_a_value_that_the_model_allows_still_finishes_a_study() -> None:
    study = known(tv.LevelSet(-5.0))
    study.run(lambda at: field(at["x"]), steps=20)
    assert study.finished is not None


@pytest.mark.parametrize("scale", [1e-20, 1e-40, 1e40])
def test_the_best_point_does_not_depend_on_the_units(scale: float) -> None:
    study = tv.Study(tv.Domain.grid(x=X), tv.Maximize())
    study.run(lambda at: scale * field(at["x"]), steps=14)
    assert study.result().best.index == int(np.argmax([field(x) for x in X]))


@pytest.mark.parametrize("lease", [1e12, np.inf, np.nan, 0, -1])
def test_a_lease_beyond_the_calendar_is_refused(lease: float) -> None:
    study = known(tv.Maximize())
    with pytest.raises(InvalidArgumentError, match="lease"):
        study.ask(lease=lease)
    assert study.pending == []
    assert study.finished is None


@pytest.mark.parametrize("goal", [tv.Maximize(), tv.LevelSet(0.0)])
def test_tiny_values_with_one_that_is_not_are_no_mistake(goal: Any) -> None:
    study = tv.Study(tv.Domain.grid(x=X), goal)
    for x in X[:6]:
        study.tell({"x": x}, 1e-80 * (2 + field(x)))  # the tail of a peak
    assert not study.result().model_check.ok
    study.tell({"x": X[20]}, 1.0)
    assert study.result().model_check.failure != "indistinct"


def test_values_that_a_learned_model_cannot_tell_apart_are_named() -> None:
    study = tv.Study(tv.Domain.grid(x=X), tv.Maximize())
    with pytest.warns(OutlierWarning, match='all 2 values are below 1e-50.*transform="log"'):
        study.run(lambda at: 1e-80 * (2 + field(at["x"])), steps=12)
    assert study.finished is None
    result = study.result()
    assert not result.model_check.ok
    assert "give the values in other units" in result.model_check.message
    assert "All 12 values are below 1e-50" in result.model_check.message
    assert "values are below 1e-50" in str(result.certificate)
    logarithms = tv.Study(tv.Domain.grid(x=X), tv.Maximize(), transform="log")
    logarithms.run(lambda at: 1e-80 * (2 + field(at["x"])), steps=14)
    assert logarithms.result().best.index == int(np.argmax([field(x) for x in X]))


@pytest.mark.parametrize("cost", [1.7e308, 2e300])
def test_a_cost_whose_sums_overflow_is_refused(cost: float) -> None:
    study = known(tv.Maximize())
    suggestion = study.ask()
    for refused in (
        lambda: study.tell(suggestion, 0.5, cost=cost),
        lambda: study.fail(suggestion, "no signal", cost=cost),
        lambda: study.tell_frame(
            pd.DataFrame({"x": X[:2], "value": [0.1, 0.2], "cost": [1.0, cost]})
        ),
    ):
        with pytest.raises(InvalidMeasurementError, match=r"cost must be at most 1e.300"):
            refused()
    assert study.spent == 0
    domain = tv.Domain.grid(x=X)
    for options in (
        {"cost": cost},
        {"cost": tv.Cost(base=cost)},
        {"cost": lambda points, last: np.full(len(points), cost)},
    ):
        with pytest.raises(InvalidArgumentError, match=r"at most 1e.300"):
            tv.Study(domain, tv.Maximize(), kernel=RBF(0.2), **options)
    with pytest.raises(InvalidArgumentError, match=r"at most 1e.300"):
        tv.NoiseLevels([0.1], [cost])
    with pytest.raises(InvalidArgumentError, match=r"at most 1e.300"):
        tv.Tasks(names=["a", "b"], cost=[1, cost])


def test_the_largest_costs_are_added_up_and_drawn() -> None:
    pytest.importorskip("matplotlib", reason="needs truvar[plot]")
    study = known(tv.Maximize())
    for x in X[:4]:
        study.tell({"x": x}, field(x), cost=1e300)
    assert study.spent == pytest.approx(4e300)
    assert "4e+300" in render_html_report(study)
