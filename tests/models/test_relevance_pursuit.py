"""Values that close neighbours contradict are left out; peaks, fronts and confirmed values are
not."""

import numpy as np
import pytest

from truvar.models._learned import FitData, fit_ensemble
from truvar.models._relevance_pursuit import _is_inside

NOISE = 0.05
LINE = np.linspace(0.0, 1.0, 24)[:, None]


def left_out(points: np.ndarray, values: np.ndarray, **more: object) -> tuple[int, ...]:
    """Return the positions of the observations that a fit leaves out."""
    d = points.shape[1]
    data = FitData(points, values, None, np.ones(d), np.full(d, 0.01), **more)
    return fit_ensemble("matern52", data, None, 0).outliers


def wave(points: np.ndarray, seed: int = 0) -> np.ndarray:
    """Return noisy values of a smooth function with a standard deviation of about 0.7."""
    noise = NOISE * np.random.default_rng(seed).standard_normal(len(points))
    return np.sin(6 * points[:, 0]) * np.cos(3 * points[:, -1] * (points.shape[1] > 1)) + noise


@pytest.mark.parametrize("error", [-2.0, 1.5, 3.0])
@pytest.mark.parametrize("position", [6, 13])
def test_a_value_that_its_neighbours_contradict_is_left_out(error: float, position: int) -> None:
    values = wave(LINE)
    values[position] += error
    assert left_out(LINE, values) == (position,)


def test_it_is_found_in_the_plane_too() -> None:
    points = np.random.default_rng(1).random((60, 2))
    points[10] = 0.5
    points[11:15] = 0.5 + 0.05 * np.array([[1, 0], [-1, 0.2], [0, 1], [0.1, -1]])
    values = wave(points)
    assert left_out(points, values) == ()
    values[10] += 2.0
    assert left_out(points, values) == (10,)


def test_without_it_the_model_is_as_if_it_had_not_been_measured() -> None:
    values = wave(LINE)
    values[13] += 2.0
    kept = np.delete(np.arange(len(values)), 13)
    extent = np.ones(1)
    spacing = np.full(1, 0.01)
    with_error = fit_ensemble("matern52", FitData(LINE, values, None, extent, spacing), None, 0)
    without = fit_ensemble(
        "matern52", FitData(LINE[kept], values[kept], None, extent, spacing), None, 0
    )
    np.testing.assert_allclose(with_error.signal, without.signal)
    np.testing.assert_allclose(with_error.lengthscales, without.lengthscales)
    assert with_error.noise is not None
    assert with_error.noise[0] < 4 * NOISE**2


def test_two_errors_are_left_out_and_never_more_than_a_tenth() -> None:
    values = wave(LINE)
    values[[6, 16]] += [2.0, -2.0]
    assert left_out(LINE, values) == (6, 16)
    values[[3, 9, 12, 19]] += [-2.0, 2.0, -2.0, 2.0]
    assert len(left_out(LINE, values)) <= 2


def test_a_value_at_the_border_or_without_neighbours_is_kept() -> None:
    values = wave(LINE)
    values[-1] += 2.0
    assert left_out(LINE, values) == ()
    gap = np.concatenate([np.linspace(0.0, 0.35, 10), [0.5], np.linspace(0.65, 1.0, 10)])[:, None]
    values = wave(gap)
    values[10] += 2.0
    assert left_out(gap, values) == ()


def test_a_second_measurement_confirms_a_value() -> None:
    values = wave(LINE)
    values[13] += 2.0
    again = np.append(values, values[13] + NOISE)
    for distance in (0.0, 0.005):
        assert left_out(np.vstack([LINE, LINE[13] + distance]), again) == ()


def test_a_second_measurement_refutes_a_value_wherever_it_is() -> None:
    values = wave(LINE)
    right = values[-1]
    values[-1] += 2.0
    points = np.vstack([LINE, LINE[-1:], LINE[-1:]])
    assert left_out(points, np.append(values, [right, right + NOISE])) == (23,)


def test_of_two_measurements_of_a_lonely_point_that_contradict_each_other_none_is_left_out() -> (
    None
):
    points = np.vstack([np.linspace(0.0, 0.5, 20)[:, None], [[0.95]], [[0.95]]])
    values = wave(points)
    values[-1] = values[-2] + 2.0
    assert left_out(points, values) == ()


def test_values_that_are_exact_are_never_left_out() -> None:
    values = np.sin(6 * LINE[:, 0])
    values[13] += 2.0
    extent = np.ones(1)
    data = FitData(LINE, values, np.zeros(len(LINE)), extent, np.full(1, 0.01))
    assert fit_ensemble("matern52", data, None, 0).outliers == ()


def test_logarithms_are_judged_as_logarithms() -> None:
    values = np.exp(2 * wave(LINE))
    assert left_out(LINE, values, log=True) == ()
    values[13] *= np.exp(3.0)
    assert left_out(LINE, values, log=True) == (13,)


@pytest.mark.parametrize("seed", range(10))
def test_a_sharp_front_and_a_sparse_peak_are_no_errors(seed: int) -> None:
    rng = np.random.default_rng(seed)
    points = rng.random((40, 2))
    noise = 0.01 * rng.standard_normal(40)
    front = np.tanh((points[:, 0] - 0.5 - 0.1 * np.sin(5 * points[:, 1])) / 0.02)
    assert left_out(points, front + noise) == ()
    peak = np.exp(-0.5 * ((points - points[0]) ** 2).sum(axis=1) / 0.06**2)
    assert left_out(points, peak + noise, direction=1) == ()
    assert left_out(points, rng.lognormal(size=40)) == ()


def test_enclosed_means_inside_the_convex_hull() -> None:
    square = np.array([[1.0, 1.0], [-1.0, 1.0], [1.0, -1.0], [-1.0, -1.0]])
    assert _is_inside(square)
    assert not _is_inside(square + 1.5)
    assert not _is_inside(square[:1])
    assert _is_inside(square[1:3])  # on the line between them
    assert _is_inside(np.zeros((1, 2)))  # a second measurement of the same point
    assert not _is_inside(np.zeros((0, 2)))
    assert not _is_inside(
        np.array([[-0.43478260869565233], [-0.2898550724637685], [-0.14492753623188426]])
    )
