"""The inner loops in NumPy: what the compiled kernels compute, said plainly."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Index = NDArray[np.intp]


def fused_scores(
    matrix: Array,
    rows: Index,
    step: Array,
    u: Array,
    excess: Array,
    predictive: Array,
    start: int,
    stop: int,
    out: Array,
) -> None:
    """C_jx -= step_j u_x for the rows and columns start..stop, and out_x += sum over rows of min(C_jx^2, e_j d_x)."""
    columns = slice(start, stop)
    matrix[rows, columns] -= np.outer(step, u[columns])
    capped = np.minimum(matrix[rows, columns] ** 2, np.outer(excess, predictive[columns]))
    out[columns] += capped.sum(axis=0)


def column_sums(matrix: Array, rows: Index, columns: Index, excess: Array, predictive: Array, out: Array) -> None:
    """out_i = sum over rows of min(C_jx^2, e_j d_i) for the i-th of some columns x."""
    out[:] = np.minimum(matrix[np.ix_(rows, columns)] ** 2, np.outer(excess, predictive)).sum(axis=0)


def stationary(points: Array, others: Array, smoothness: int, variance: float, out: Array) -> None:
    """k(points, others) of a stationary kernel, the points divided by the length-scales. Smoothness: 0 is RBF, 1, 3 and
    5 are twice the nu of a Matern kernel."""
    square = ((points[:, None, :] - others[None, :, :]) ** 2).sum(axis=2)
    r = np.sqrt(max(smoothness, 1) * square)
    shape = {0: np.exp(-0.5 * square), 1: np.exp(-r), 3: (1 + r) * np.exp(-r), 5: (1 + r + r**2 / 3) * np.exp(-r)}
    out[:] = variance * shape[smoothness]


def truncated_sums(covariance: Array, excess: Array, predictive: Array) -> Array:
    """sum over j of min(C_jx^2, e_j d_xk): covariance (a, c), excess (a,), predictive d (c, K) -> (c, K)."""
    squares = covariance * covariance
    return np.stack([np.minimum(squares, np.outer(excess, d)).sum(axis=0) for d in predictive.T], axis=1)
