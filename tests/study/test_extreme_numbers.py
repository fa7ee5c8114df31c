"""Numbers at the edge of what floats hold give a clear error or a right answer, never a study
that is finished."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from tests.helpers.small import LINE, a_study

import truvar as tv
from truvar.exceptions import InvalidArgumentError, InvalidMeasurementError, InvalidModelError


@pytest.mark.parametrize("lease", [1e12, 1e15, 1e308])
def test_a_lease_beyond_the_calendar_is_refused(lease: float) -> None:
    study = a_study()
    with pytest.raises(InvalidArgumentError, match="leave it out for no end"):
        study.ask(lease=lease)
    assert study.pending == []


@pytest.mark.parametrize("y", [1e155, 1e308, -1e308])
@pytest.mark.parametrize("goal", [tv.LevelSet(0.5), tv.Maximize()])
def test_a_value_whose_square_overflows_is_refused(y: float, goal: tv.Goal) -> None:
    study = a_study(goal=goal)
    study.tell(LINE.point(2), 0.3)
    with pytest.raises(InvalidMeasurementError, match="use other units"):
        study.tell(LINE.point(3), y)
    assert study.steps == 1
    assert study.finished is None


@pytest.mark.parametrize("scale", [1e-80, 1e80])
def test_a_model_in_unusual_units_gives_the_right_answer(scale: float) -> None:
    variance = scale**2
    study = a_study(
        goal=tv.Maximize(), kernel=ConstantKernel(variance) * RBF(0.2), noise=1e-6 * variance
    )
    for k in range(len(LINE)):
        study.tell(LINE.point(k), scale * np.sin(0.6 * k))
    result = study.result()
    assert result.best.index == 3  # sin(1.8) is the largest
    assert result.best.mean == pytest.approx(scale * np.sin(1.8), rel=1e-3)
    assert 0 < result.epsilon < 0.1 * scale


@pytest.mark.parametrize("scale", [1e-160, 1e-120, 1e153])
def test_a_prior_that_arithmetic_cannot_hold_is_refused(scale: float) -> None:
    with pytest.raises(InvalidModelError, match=r"use other units|positive variance"):
        a_study(kernel=ConstantKernel(scale**2) * RBF(0.2), noise=1e-6)
