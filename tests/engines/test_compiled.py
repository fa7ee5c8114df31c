"""Compiled functions compute what their NumPy references do."""

from __future__ import annotations

import inspect
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtri
from sklearn.gaussian_process.kernels import RBF, Matern
from tests.reference import compiled as references

from truvar._numba import ambiguity, anticipation, entropy, interpolation, kernels, truncated_sums

# rows, columns, noise levels
A = 13
C = 37
K = 3
MODULES = [ambiguity, anticipation, entropy, interpolation, kernels, truncated_sums]


def compiled_functions(module: ModuleType) -> dict[str, Any]:
    return {
        name: function
        for name, function in vars(module).items()
        if hasattr(function, "py_func") and name[0] != "_"
    }


FUNCTIONS = {
    name: function for module in MODULES for name, function in compiled_functions(module).items()
}
del FUNCTIONS["tour"]  # compared with a transcription in tests/acquisition/test_plus.py


def inputs(name: str, rng: np.random.Generator) -> tuple[Any, ...]:
    """Arguments of a function, the array it writes last."""
    covariance = rng.normal(size=(A, C))
    excess = rng.uniform(0, 0.5, A)
    rows = rng.permutation(A)[:9]
    d = rng.uniform(0.1, 1.0, C)
    variance = rng.uniform(0.5, 3, A)
    mean = rng.normal(size=A)
    scale = rng.uniform(0, 0.5, C)
    match name:
        case "fused_update_sums":
            step = rng.normal(size=9)
            return (
                covariance,
                rows,
                step,
                rng.normal(size=C),
                excess[:9],
                variance[:9],
                d,
                3,
                30,
                np.zeros(C),
            )
        case "column_sums":
            return (
                covariance,
                rows,
                np.array([3, 3, 0, 36]),
                excess[:9],
                variance[:9],
                d[:4],
                np.zeros(4),
            )
        case "truncated_sums":
            return covariance, excess, variance, rng.uniform(0.1, 1.0, (C, K)), np.zeros((C, K))
        case "contrast_sums":
            return covariance, variance, int(rng.integers(-1, A)), np.zeros(C)
        case "anticipated_level":
            return covariance, scale, variance, mean, 1.5, 0.7, 0.2, 0.3, True, np.zeros(C)
        case "anticipated_levels":
            levels = np.array([-0.4, 0.3, 0.5])
            return (
                covariance,
                scale,
                variance,
                mean,
                0.5,
                0.7,
                0.2,
                levels,
                bool(rng.integers(2)),
                np.zeros(C),
            )
        case "anticipated_bounds":
            nodes = np.array([-1.0, 0.3, 1.2])
            weights = np.array([0.3, 0.4, 0.3])
            member = rng.random(A) < 0.7
            return (
                covariance,
                scale,
                variance,
                mean,
                1.5,
                0.7,
                0.2,
                nodes,
                weights,
                0.6,
                member,
                np.zeros(C),
            )
        case "expected_bounds":
            member = rng.random(A) < 0.7
            fraction = float(rng.choice([0.0, 0.6]))
            return covariance, scale, variance, mean, 1.5, 0.7, 0.2, fraction, member, np.zeros(C)
        case _:
            raise AssertionError(f"give inputs for {name}")


@pytest.mark.parametrize(
    "name",
    [
        "fused_update_sums",
        "column_sums",
        "truncated_sums",
        "contrast_sums",
        "anticipated_level",
        "anticipated_levels",
        "anticipated_bounds",
        "expected_bounds",
    ],
)
def test_a_compiled_function_computes_what_its_reference_does(name: str) -> None:
    rng = np.random.default_rng(7)
    for _ in range(5):
        arguments = inputs(name, rng)
        copies = [np.copy(value) if isinstance(value, np.ndarray) else value for value in arguments]
        FUNCTIONS[name](*arguments)
        getattr(references, f"{name}_reference")(*copies)
        for fast, plain in zip(arguments, copies, strict=True):
            if isinstance(fast, np.ndarray):
                np.testing.assert_allclose(fast, plain, rtol=1e-12, atol=1e-12)


def staying_arguments(
    rng: np.random.Generator, rows: int, spread: float, lengthscale: float
) -> tuple[Any, ...]:
    """Common arguments of the anticipated sums on a line: targets of the posterior after a few
    measurements."""
    points = np.sort(rng.random(rows + 9))
    prior = np.exp(-0.5 * ((points[:, None] - points) / lengthscale) ** 2)
    measured = rng.permutation(len(points))[:6]
    weights = np.linalg.solve(prior[np.ix_(measured, measured)] + 0.01 * np.eye(6), prior[measured])
    covariance = prior - prior[:, measured] @ weights
    variance = np.diag(covariance).copy()
    mean = spread * weights.T @ rng.normal(size=6)
    scale = 1 / np.sqrt(variance[rows:] + 0.01)
    targets = np.ascontiguousarray(covariance[:rows, rows:])
    return targets, scale, variance[:rows], mean[:rows], 1.5, 1.5**2, 0.01


@pytest.mark.parametrize("fraction", [0.0, 0.6])
@pytest.mark.parametrize(("spread", "lengthscale"), [(0.01, 0.05), (1.0, 0.3), (5.0, 2.0)])
def test_the_average_over_a_measurement_is_exact(
    fraction: float, spread: float, lengthscale: float
) -> None:
    """Against the mean over 2^22 equally likely values, each in the middle of its interval.

    A target stays for values in at most three intervals, whose six ends are missed by half a value
    each: the error of the mean is at most 3 / 2^22 = 7.2e-7 of the sum of all targets.
    """
    rng = np.random.default_rng(5)
    arguments = staying_arguments(rng, 12, spread, lengthscale)
    member = rng.random(12) < 0.8
    exact = np.zeros(9)
    anticipation.expected_bounds(*arguments, fraction, member, exact)
    largest = np.maximum(arguments[5] * arguments[2], arguments[6]).sum()
    reference = np.zeros(9)
    references.expected_bounds_reference(*arguments, fraction, member, reference)
    np.testing.assert_allclose(exact, reference, rtol=0, atol=1e-12 * largest)
    few = slice(0, 3)
    dense = np.zeros(3)
    count = 1 << 22
    weights = np.full(1 << 16, 1 / count)
    covariance, scale, *others = arguments
    moves = np.ascontiguousarray(covariance[:, few]), scale[few]
    for start in range(0, count, len(weights)):
        nodes = ndtri((start + np.arange(len(weights)) + 0.5) / count)
        anticipation.anticipated_bounds(*moves, *others, nodes, weights, fraction, member, dense)
    np.testing.assert_allclose(exact[few], dense, rtol=0, atol=7.2e-7 * largest)


def test_the_average_counts_targets_that_are_known_exactly_where_they_are_the_best() -> None:
    """Their bounds coincide, so that they touch the highest lower bound over an interval and
    nowhere exceed it."""
    covariance = np.array([[0.0, 0.0], [0.3, 0.0], [-0.2, 0.0]])
    scale = np.array([1.0, 0.0])
    variance = np.array([0.0, 0.1, 0.1])
    mean = np.array([1.0, 0.9, 0.95])
    found = np.zeros(2)
    expected = np.zeros(2)
    arguments = (covariance, scale, variance, mean, 1.0, 1.0, 0.5, 0.0, np.ones(3, bool))
    anticipation.expected_bounds(*arguments, found)
    references.expected_bounds_reference(*arguments, expected)
    np.testing.assert_allclose(found, expected, rtol=1e-13)
    assert found[1] == 1.5  # nothing moves: all three stay


def test_every_compiled_function_has_a_reference_with_the_same_arguments() -> None:
    assert len(FUNCTIONS) >= 13
    for name, function in FUNCTIONS.items():
        reference = getattr(references, f"{name}_reference")
        assert list(inspect.signature(function.py_func).parameters) == list(
            inspect.signature(reference).parameters
        )


def test_the_fused_pass_is_the_sum_of_the_paper_written_as_a_loop() -> None:
    matrix, rows, step, u, excess, weight, d, start, stop, out = inputs(
        "fused_update_sums", np.random.default_rng(1)
    )
    before = matrix.copy()
    truncated_sums.fused_update_sums(matrix, rows, step, u, excess, weight, d, start, stop, out)
    for x in range(C):
        total = 0.0
        for j, row in enumerate(rows):
            moved = before[row, x] - step[j] * u[x] * (start <= x < stop)
            assert matrix[row, x] == pytest.approx(moved, abs=1e-15)
            total += weight[j] * min(moved**2, excess[j] * d[x]) if start <= x < stop else 0.0
        assert out[x] == pytest.approx(total, rel=1e-12, abs=1e-15)


def test_the_fused_pass_in_single_precision_equals_that_in_double_up_to_rounding() -> None:
    """Over more rows than are summed in single precision at once."""
    rng = np.random.default_rng(3)
    matrix = rng.normal(size=(300, C))
    u = rng.normal(size=C)
    d = rng.uniform(0.1, 1.0, C)
    rows = rng.permutation(300)[:283]
    step = rng.normal(size=283)
    excess = rng.uniform(0, 0.5, 283)
    weight = rng.uniform(0.5, 2.0, 283)
    out = np.zeros(C)
    single = matrix.astype(np.float32)
    sums = np.zeros(C)
    truncated_sums.fused_update_sums(matrix, rows, step, u, excess, weight, d, 3, 30, out)
    vectors = (vector.astype(np.float32) for vector in (step, u, excess, weight, d))
    truncated_sums.fused_update_sums(single, rows, *vectors, 3, 30, sums)
    np.testing.assert_allclose(single, matrix, atol=1e-5)
    np.testing.assert_allclose(sums, out, rtol=1e-5)
    assert (sums[[0, 1, 2, *range(30, C)]] == 0).all()


def test_sums_and_bound_gaps_of_candidates_agree_with_their_references() -> None:
    rng = np.random.default_rng(0)
    prior = rng.normal(size=(5, 33))
    explained = rng.normal(size=(5, 33))
    excess = rng.random(33)
    weight = rng.random(33)
    base = rng.random(33) * rng.choice([0.0, 1.0, 2.0], 33)
    d = rng.random((5, 3))
    fast_sums = rng.normal(size=(5, 3))
    plain_sums = fast_sums.copy()
    truncated_sums.candidate_sums(prior, explained, excess, weight, d, fast_sums)
    references.candidate_sums_reference(prior, explained, excess, weight, d, plain_sums)
    np.testing.assert_allclose(fast_sums, plain_sums, rtol=1e-13, atol=1e-13)
    fast_gaps, plain_gaps = np.empty((2, 5, 3))
    fast_squares, plain_squares = np.empty((2, 5))
    truncated_sums.candidate_bound_gaps(
        prior, explained, excess, weight, base, d, fast_gaps, fast_squares
    )
    references.candidate_bound_gaps_reference(
        prior, explained, excess, weight, base, d, plain_gaps, plain_squares
    )
    np.testing.assert_allclose(fast_gaps, plain_gaps, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(fast_squares, plain_squares, rtol=1e-13, atol=1e-13)
    for x in range(5):
        for k in range(3):
            c = prior[x] - explained[x]
            gap = 0.0
            for j in range(33):
                cap = excess[j] * d[x, k]
                bound = base[j] * c[j] ** 2 + max(weight[j] - base[j], 0.0) * cap
                assert bound >= weight[j] * min(c[j] ** 2, cap) * (1 - 1e-15)
                gap += bound - weight[j] * min(c[j] ** 2, cap)
            assert fast_gaps[x, k] == pytest.approx(gap, rel=1e-12)


LENGTHSCALES = np.array([0.5, 1.0, 3.0])


@pytest.mark.parametrize(
    ("smoothness", "kernel"),
    [
        (0, RBF(LENGTHSCALES)),
        (1, Matern(LENGTHSCALES, nu=0.5)),
        (3, Matern(LENGTHSCALES, nu=1.5)),
        (5, Matern(LENGTHSCALES, nu=2.5)),
    ],
)
def test_stationary_kernels_are_scikit_learns(smoothness: int, kernel: Any) -> None:
    rng = np.random.default_rng(20161205)
    points = rng.normal(size=(40, 3))
    others = rng.normal(size=(23, 3))
    for stationary in (kernels.stationary, references.stationary_reference):
        out = np.empty((40, 23))
        stationary(points, others, LENGTHSCALES, np.zeros(3, bool), smoothness, 2.5, out)
        np.testing.assert_allclose(out, 2.5 * kernel(points, others), rtol=1e-13, atol=1e-15)


def triangles(rng: np.random.Generator, count: int, t: int) -> np.ndarray:
    lower = np.tril(rng.normal(size=(count, t, t)))
    lower[:, np.arange(t), np.arange(t)] = rng.uniform(2.0, 4.0, (count, t))
    return lower


@pytest.mark.parametrize("t", [1, 4, 7, 30])
def test_forward_substitution_solves_triangular_systems(t: int) -> None:
    rng = np.random.default_rng(3)
    lower = triangles(rng, 1, t)[0]
    fast = rng.normal(size=(t, 5))
    plain = fast.copy()
    kernels.forward_substitution(lower, fast)
    references.forward_substitution_reference(lower, plain)
    np.testing.assert_allclose(fast, plain, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("smoothness", [0, 1, 3, 5])
@pytest.mark.parametrize("q", [1, 12, 300])
def test_moments_of_a_mixture_are_those_of_its_members(smoothness: int, q: int) -> None:
    rng = np.random.default_rng(4)
    lengthscales = rng.uniform(0.5, 2.0, (3, 2))
    variances = rng.uniform(0.5, 2.0, 3)
    observed = np.column_stack([rng.random(12), rng.integers(0, 3, 12)])
    points = np.column_stack([rng.random(q), rng.integers(0, 3, q)])
    arguments = (
        observed,
        points,
        lengthscales,
        np.array([False, True]),
        smoothness,
        variances,
        rng.random(3),
    )
    arguments = (*arguments, triangles(rng, 3, 12), rng.normal(size=(3, 12)))
    found = [rng.normal(size=(3, q)), np.full((3, q), 4.0)]
    expected = [each.copy() for each in found]
    kernels.mixture_moments(*arguments, *found)
    references.mixture_moments_reference(*arguments, *expected)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("smoothness", [0, 1, 3, 5])
def test_gradients_of_the_likelihood_are_those_of_differences_of_the_kernel(
    smoothness: int,
) -> None:
    rng = np.random.default_rng(5)
    points = np.column_stack([rng.random((9, 2)), rng.integers(0, 3, 9)]).astype(float)
    form = (np.array([0.4, 0.9, 1.4]), np.array([False, False, True]), smoothness, 1.7, 9.0)
    arguments = (points, *form, rng.normal(size=9), rng.normal(size=(9, 9)))
    found = np.empty(4)
    expected = np.empty(4)
    kernels.likelihood_gradient(*arguments, found)
    references.likelihood_gradient_reference(*arguments, expected)
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-7)


def test_exponentials_are_numpys_to_two_ulps() -> None:
    z = -np.concatenate(
        [np.random.default_rng(0).uniform(0, 700, 5000), np.geomspace(1e-300, 1, 500), [0.0, 1e4]]
    )
    fast = z.copy()
    plain = z.copy()
    work = np.empty_like(z)
    kernels.exponentials(fast, work)
    references.exponentials_reference(plain, work)
    np.testing.assert_array_max_ulp(fast, plain, maxulp=2)


def test_spread_and_gather_agree_with_their_references_and_are_transposes() -> None:
    rng = np.random.default_rng(0)
    corner = np.column_stack(
        [rng.integers(0, 2, 10), rng.integers(0, 3, 10), rng.integers(0, 4, 10)]
    )
    taps = [rng.normal(size=(10, count)) for count in (2, 6, 6)]
    values = rng.normal(size=10)
    grid = rng.normal(size=(3, 8, 9))
    fast_grid, plain_grid = np.zeros((2, *grid.shape))
    interpolation.spread(values, corner, *taps, fast_grid)
    references.spread_reference(values, corner, *taps, plain_grid)
    np.testing.assert_allclose(fast_grid, plain_grid, atol=1e-12)
    fast_values, plain_values = np.empty((2, 10))
    interpolation.gather(grid, corner, *taps, fast_values)
    references.gather_reference(grid, corner, *taps, plain_values)
    np.testing.assert_allclose(fast_values, plain_values, atol=1e-12)
    assert np.sum(fast_grid * grid) == pytest.approx(values @ fast_values)
