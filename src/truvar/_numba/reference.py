"""The inner loops in NumPy: what the compiled kernels compute, said plainly."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

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


def stationary(points: Array, others: Array, scales: Array, smoothness: int, variance: float, out: Array) -> None:
    """k(points, others) of a stationary kernel with these length-scales. Smoothness: 0 is RBF, 1, 3 and 5 are twice the
    nu of a Matern kernel."""
    square = ((points[:, None, :] / scales - others[None, :, :] / scales) ** 2).sum(axis=2)
    r = np.sqrt(max(smoothness, 1) * square)
    shape = {0: np.exp(-0.5 * square), 1: np.exp(-r), 3: (1 + r) * np.exp(-r), 5: (1 + r + r**2 / 3) * np.exp(-r)}
    out[:] = variance * shape[smoothness]


def truncated_sums(covariance: Array, excess: Array, predictive: Array, out: Array) -> None:
    """out_xk += sum over rows of min(C_jx^2, e_j d_xk): covariance (a, c), predictive and out (c, K)."""
    for k, d in enumerate(predictive.T):
        out[:, k] += np.minimum(covariance**2, np.outer(excess, d)).sum(axis=0)


def anticipated_bounds(
    covariance: Array,
    scale: Array,
    variance: Array,
    mean: Array,
    root_beta: float,
    share: float,
    floor: float,
    nodes: Array,
    weights: Array,
    rule: tuple[float, NDArray[np.bool_]],
    out: Array,
) -> None:
    """out_x = sum over rows of P(the row stays in M) max(share s2, floor), once x has been measured; M by the highest
    lower bound, and with a fraction > 0 by the implicit threshold too."""
    fraction, member = rule
    step = covariance * scale
    s2 = np.maximum(variance[:, None] - step**2, 0.0)
    half = root_beta * np.sqrt(s2)
    for z, weight in zip(nodes, weights, strict=True):
        lower, upper = mean[:, None] + z * step - half, mean[:, None] + z * step + half
        stays = upper >= lower.max(axis=0)
        if fraction > 0:
            open_ = (upper >= fraction * lower.max(axis=0)) & (lower <= fraction * upper.max(axis=0))
            stays |= member[:, None] & open_
        out += weight * (stays * np.maximum(share * s2, floor)).sum(axis=0)


def anticipated_level(
    covariance: Array,
    scale: Array,
    variance: Array,
    mean: Array,
    root_beta: float,
    share: float,
    floor: float,
    threshold: float,
    average: bool,
    out: Array,
) -> None:
    """The same for an explicit threshold: a row stays while its bounds straddle it."""
    step = np.abs(covariance * scale)
    s2 = np.maximum(variance[:, None] - step**2, 0.0)
    half, gap = root_beta * np.sqrt(s2), threshold - mean[:, None]
    stays = ((gap - half <= 0) & (gap + half >= 0)).astype(float)
    if average:
        moving = step > 0
        with np.errstate(divide="ignore", invalid="ignore"):
            spread = ndtr((gap + half) / step) - ndtr((gap - half) / step)
        stays = np.where(moving, spread, stays)
    out += (stays * np.maximum(share * s2, floor)).sum(axis=0)


def exponentials(z: Array, work: Array) -> None:
    """z <- exp(z) for z <= 0; below -700 it stays at exp(-700)."""
    np.exp(np.maximum(z, -700.0), out=z)


def candidate_sums(prior: Array, explained: Array, excess: Array, predictive: Array, out: Array) -> None:
    """out_xk += sum over j of min(C_xj^2, e_j d_xk) with C = prior - explained (c, a): a row per candidate."""
    squares = (prior - explained) ** 2
    for k, d in enumerate(predictive.T):
        out[:, k] += np.minimum(squares, np.outer(d, excess)).sum(axis=1)


def candidate_losses(
    prior: Array, explained: Array, excess: Array, sign: Array, predictive: Array, out: Array, squares: Array
) -> None:
    """What a bound gives away that takes C^2 for the rows of sign 1 and e d for those of sign -1:
    out_xk = sum over j of (sign_j (C_xj^2 - e_j d_xk))+, and squares_x = sum of C_xj^2. A row per candidate."""
    square = (prior - explained) ** 2
    squares[:] = square.sum(axis=1)
    for k, d in enumerate(predictive.T):
        out[:, k] = np.maximum(sign * (square - np.outer(d, excess)), 0.0).sum(axis=1)


def spread(values: Array, corner: Index, slow: Array, middle: Array, fast: Array, grid: Array) -> None:
    """grid += W^T values: every value goes to the nodes of a 3-d grid around its point, whose first is `corner` (n, 3)
    and whose weights are the products of `slow`, `middle` and `fast` (n, taps)."""
    grid += (_interpolation(corner, slow, middle, fast, grid).T @ values).reshape(grid.shape)


def gather(grid: Array, corner: Index, slow: Array, middle: Array, fast: Array, out: Array) -> None:
    """out = W grid: the grid interpolated at every point; the transpose of `spread`."""
    out[:] = _interpolation(corner, slow, middle, fast, grid) @ grid.ravel()


def _interpolation(corner: Index, slow: Array, middle: Array, fast: Array, grid: Array) -> Array:
    """W: a row per point, a column per node of the grid."""
    w = np.zeros((len(corner), *grid.shape))
    for i, (a, b, c) in enumerate(corner):
        block = slow[i][:, None, None] * middle[i][:, None] * fast[i]
        w[i, a : a + len(slow[i]), b : b + len(middle[i]), c : c + len(fast[i])] = block
    return w.reshape(len(corner), -1)
