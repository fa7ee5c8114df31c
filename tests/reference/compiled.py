"""NumPy references of the compiled functions in `truvar._numba`: the same results, written as
plainly as possible.

Each is called `<function>_reference` and takes the arguments of the compiled function.
"""

from __future__ import annotations

import numpy as np
from scipy.special import log_ndtr, ndtr

from truvar._numba.ambiguity import DEGREE
from truvar._numba.entropy import MIN_VARIANCE, TABLE_HIGH, TABLE_LOW
from truvar._typing import Array, Index, Mask, SingleArray


def fused_update_sums_reference(
    matrix: Array,
    rows: Index,
    step: Array,
    u: Array,
    excess: Array,
    weight: Array,
    predictive: Array,
    start: int,
    stop: int,
    out: Array,
) -> None:
    """Update C_jx -= step_j u_x for rows and columns start..stop; add the sums of w_j
    min(C_jx^2, e_j d_x) to out_x."""
    columns = slice(start, stop)
    matrix[rows, columns] -= np.outer(step, u[columns])
    capped = np.minimum(matrix[rows, columns] ** 2, np.outer(excess, predictive[columns]))
    out[columns] += weight @ capped


def column_sums_reference(
    matrix: Array,
    rows: Index,
    columns: Index,
    excess: Array,
    weight: Array,
    predictive: Array,
    out: Array,
) -> None:
    """Set out_i to the sum over rows of w_j min(C_jx^2, e_j d_i), x being the i-th of `columns`."""
    out[:] = weight @ np.minimum(matrix[np.ix_(rows, columns)] ** 2, np.outer(excess, predictive))


def stationary_reference(
    points: Array,
    others: Array,
    lengthscales: Array,
    categorical: Array,
    smoothness: int,
    variance: float,
    out: Array,
) -> None:
    """Compute k(points, others) of a stationary kernel: RBF for smoothness 0, else Matern with
    nu = smoothness / 2."""
    distance = points[:, None, :] - others[None, :, :]
    distance[:, :, categorical] = distance[:, :, categorical] != 0
    square = ((distance / lengthscales) ** 2).sum(axis=2)
    r = np.sqrt(max(smoothness, 1) * square)
    shape = {
        0: np.exp(-0.5 * square),
        1: np.exp(-r),
        3: (1 + r) * np.exp(-r),
        5: (1 + r + r**2 / 3) * np.exp(-r),
    }
    out[:] = variance * shape[smoothness]


def truncated_sums_reference(
    covariance: Array, excess: Array, weight: Array, predictive: Array, out: Array
) -> None:
    """Add to out_xk the sum over rows of w_j min(C_jx^2, e_j d_xk): covariance (a, c),
    predictive and out (c, K)."""
    for k, d in enumerate(predictive.T):
        out[:, k] += weight @ np.minimum(covariance**2, np.outer(excess, d))


def contrast_sums_reference(covariance: Array, weight: Array, leader: int, out: Array) -> None:
    """Set out_x to the sum over rows of w_j (C_jx - C_Lx)^2, without C_Lx where leader < 0."""
    other = covariance[leader] if leader >= 0 else 0.0
    out[:] = weight @ (covariance - other) ** 2


def anticipated_bounds_reference(
    covariance: Array,
    scale: Array,
    variance: Array,
    mean: Array,
    root_beta: float,
    share: float,
    floor: float,
    nodes: Array,
    weights: Array,
    fraction: float,
    member: Mask,
    out: Array,
) -> None:
    """Add the expected truncated variance of the targets that stay in M to out_x.

    The goal is an optimum or, with a fraction > 0, an implicit threshold.
    """
    step = covariance * scale
    s2 = np.maximum(variance[:, None] - step**2, 0.0)
    half = root_beta * np.sqrt(s2)
    for z, weight in zip(nodes, weights, strict=True):
        lower = mean[:, None] + z * step - half
        upper = mean[:, None] + z * step + half
        stays = upper >= lower.max(axis=0)
        if fraction > 0:
            undecided = (upper >= fraction * lower.max(axis=0)) & (
                lower <= fraction * upper.max(axis=0)
            )
            stays |= member[:, None] & undecided
        out += weight * (stays * np.maximum(share * s2, floor)).sum(axis=0)


def expected_bounds_reference(
    covariance: Array,
    scale: Array,
    variance: Array,
    mean: Array,
    root_beta: float,
    share: float,
    floor: float,
    fraction: float,
    member: Mask,
    out: Array,
) -> None:
    """Add the truncated variance of the targets that stay in M to out_x, averaged over a standard
    normal z exactly.

    Which targets stay changes only where two of the bounds that are compared cross. Between two
    such z that follow one another it is as in the middle.
    """
    step = covariance * scale
    s2 = np.maximum(variance[:, None] - step**2, 0.0)
    half = root_beta * np.sqrt(s2)
    for x in range(covariance.shape[1]):
        lower = mean - half[:, x]
        upper = mean + half[:, x]
        slope = step[:, x]
        compared = [(upper, lower, 1.0), (upper, lower, fraction), (lower, upper, fraction)]
        crossings = [np.zeros(1)]
        for own, other, factor in compared if fraction > 0 else compared[:1]:
            with np.errstate(divide="ignore", invalid="ignore"):
                z = (factor * other - own[:, None]) / (slope[:, None] - factor * slope)
            crossings.append(z[np.abs(z) < 30])
        z = np.unique(np.concatenate(crossings))
        middle = np.concatenate([[z[0] - 1], (z[1:] + z[:-1]) / 2, [z[-1] + 1]])
        probability = np.diff(ndtr(np.concatenate([[-np.inf], z, [np.inf]])))
        low = lower[:, None] + slope[:, None] * middle
        high = upper[:, None] + slope[:, None] * middle
        stays = high >= low.max(axis=0)
        if fraction > 0:
            undecided = (high >= fraction * low.max(axis=0)) & (low <= fraction * high.max(axis=0))
            stays |= member[:, None] & undecided
        out[x] += ((stays @ probability) * np.maximum(share * s2[:, x], floor)).sum()


def anticipated_level_reference(
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
    """Add the expected truncated variance of the targets whose bounds still straddle an explicit
    threshold to out_x."""
    step = np.abs(covariance * scale)
    s2 = np.maximum(variance[:, None] - step**2, 0.0)
    half = root_beta * np.sqrt(s2)
    gap = threshold - mean[:, None]
    stays = ((gap - half <= 0) & (gap + half >= 0)).astype(float)
    if average:
        moving = step > 0
        with np.errstate(divide="ignore", invalid="ignore"):
            probability = ndtr((gap + half) / step) - ndtr((gap - half) / step)
        stays = np.where(moving, probability, stays)
    out += (stays * np.maximum(share * s2, floor)).sum(axis=0)


def anticipated_levels_reference(
    covariance: Array,
    scale: Array,
    variance: Array,
    mean: Array,
    root_beta: float,
    share: float,
    floor: float,
    thresholds: Array,
    average: bool,
    out: Array,
) -> None:
    """Add the expected truncated variance of the targets whose bounds still straddle some threshold
    to out_x.

    The standard normal axis is cut where a bound reaches a threshold; a target stays on a piece if
    it does in its middle.
    """
    for j in range(len(mean)):
        for x in range(len(scale)):
            step = abs(covariance[j, x] * scale[x])
            s2 = max(variance[j] - step**2, 0.0)
            half = root_beta * np.sqrt(s2)

            def stays(
                z: float, step: float = step, half: float = half, centre: float = mean[j]
            ) -> bool:
                return bool((np.abs(thresholds - centre - z * step) <= half).any())

            probability = float(stays(0.0))
            if average and step > 0:
                cuts = np.sort(
                    np.concatenate([(thresholds - mean[j] - half), (thresholds - mean[j] + half)])
                    / step
                )
                middle = (cuts[1:] + cuts[:-1]) / 2
                mass = np.diff(ndtr(cuts))
                probability = sum(p for p, z in zip(mass, middle, strict=True) if stays(z))
            out[x] += probability * max(share * s2, floor)


def exponentials_reference(z: Array, work: Array) -> None:
    """Replace z <= 0 by exp(z); below -700 the result stays at exp(-700)."""
    np.exp(np.maximum(z, -700.0), out=z)


def candidate_sums_reference(
    prior: Array, explained: Array, excess: Array, weight: Array, predictive: Array, out: Array
) -> None:
    """Add to out_xk the sum over j of w_j min(C_xj^2, e_j d_xk) with C = prior - explained (c,
    a)."""
    squares = (prior - explained) ** 2
    for k, d in enumerate(predictive.T):
        out[:, k] += np.minimum(squares, np.outer(d, excess)) @ weight


def candidate_bound_gaps_reference(
    prior: Array,
    explained: Array,
    excess: Array,
    weight: Array,
    base: Array,
    predictive: Array,
    out: Array,
    squares: Array,
) -> None:
    """Compute by how much the sum of b_j C^2 + max(w_j - b_j, 0) e_j d exceeds that of w_j
    min(C^2, e_j d)."""
    square = (prior - explained) ** 2
    squares[:] = square @ np.maximum(weight, base)
    for k, d in enumerate(predictive.T):
        cap = np.outer(d, excess)
        bound = square @ base + cap @ np.maximum(weight - base, 0.0)
        out[:, k] = bound - np.minimum(square, cap) @ weight


def spread_reference(
    values: Array, corner: Index, slow: Array, middle: Array, fast: Array, grid: Array
) -> None:
    """Add W^T values to the grid, W being the matrix of interpolation weights."""
    grid += (_interpolation(corner, slow, middle, fast, grid).T @ values).reshape(grid.shape)


def gather_reference(
    grid: Array, corner: Index, slow: Array, middle: Array, fast: Array, out: Array
) -> None:
    """Set out to W grid, the grid interpolated at every point."""
    out[:] = _interpolation(corner, slow, middle, fast, grid) @ grid.ravel()


def _interpolation(corner: Index, slow: Array, middle: Array, fast: Array, grid: Array) -> Array:
    """Return W: a row per point, a column per node of the grid."""
    w = np.zeros((len(corner), *grid.shape))
    for i, (a, b, c) in enumerate(corner):
        block = slow[i][:, None, None] * middle[i][:, None] * fast[i]
        w[i, a : a + len(slow[i]), b : b + len(middle[i]), c : c + len(fast[i])] = block
    return w.reshape(len(corner), -1)


def ambiguity_reductions_reference(
    covariance: Array, inverse: Array, variance: Array, curves: Array, out: Array
) -> None:
    """Add to out_kx the sum over rows of the polynomials at v = 1 - (1 - rho)^(1/2), rho =
    C_jx^2 / (sigma_j^2 d)."""
    for level, sums in zip(inverse, out, strict=True):
        rho = np.minimum(covariance**2 * level / variance[:, None], 1.0)
        powers = (1.0 - np.sqrt(1.0 - rho))[:, :, None] ** np.arange(1, DEGREE + 1)
        sums += np.maximum((curves[:, None] * powers).sum(axis=2), 0.0).sum(axis=0)


def ambiguity_reductions_by_quadrature_reference(
    step: Array,
    square: Array,
    variance: Array,
    weight: Array,
    nodes: Array,
    weights: Array,
    out: Array,
) -> None:
    """Set out_x to the expected reduction of the ambiguity, without the short cut for small
    shares."""
    end = np.arcsin(np.minimum(step**2 / variance[:, None], 1.0))
    total = np.exp(-square[:, None, None] / (1 + np.sin(end[:, :, None] * nodes))) @ weights
    out[:] = weight @ (end * total) / (2 * np.pi)


def cell_information_reference(
    weights: SingleArray,
    rest: SingleArray,
    normal: SingleArray,
    spare: SingleArray,
    labels: Index,
    edges: SingleArray,
    out: Array,
) -> None:
    """Set out_x to H(label) + H(cell) - H(label, cell)."""

    def entropy(keys: Index) -> float:
        share = np.bincount(keys) / len(keys)
        return -float((share[share > 0] * np.log(share[share > 0])).sum())

    for x, z in enumerate(weights @ normal + np.outer(rest, spare)):
        cell = np.searchsorted(edges, z, side="left")  # number of edges below
        out[x] = max(
            entropy(labels) + entropy(cell) - entropy(labels * (len(edges) + 1) + cell), 0.0
        )


def log_variance_reference(
    weights: SingleArray,
    rest: Array,
    unseen: Array,
    mean: Array,
    scale: Array,
    normal: SingleArray,
    best: Array,
    starts: Index,
    out: Array,
) -> None:
    """Set out_x to E log Var(z_x | group), group by group."""
    z = weights @ normal  # (m, S)
    above = (best - mean[:, None]) / scale[:, None]
    out[:] = 0.0
    for members in np.split(np.arange(len(best)), starts[1:]):
        several = len(members) > 1
        left = z[:, members].var(axis=1, ddof=1) + rest if several else np.ones(len(out))
        lead = (above - z)[:, members]
        width = unseen + (lead.var(axis=1, ddof=1) if several else 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            alpha = np.clip(lead.mean(axis=1) / np.sqrt(width), TABLE_LOW, TABLE_HIGH)
            hazard = np.exp(-0.5 * alpha**2 - log_ndtr(alpha)) / np.sqrt(2 * np.pi)
            cut = np.where(unseen > 0, unseen**2 * hazard * (hazard + alpha) / width, 0.0)
        out += len(members) / len(best) * np.log(np.maximum(left - cut, MIN_VARIANCE))


def forward_substitution_reference(lower: Array, columns: Array) -> None:
    """Replace columns b by the solutions of L x = b."""
    columns[:] = np.linalg.solve(np.tril(lower), columns)


def mixture_moments_reference(
    observed: Array,
    points: Array,
    lengthscales: Array,
    categorical: Array,
    smoothness: int,
    variances: Array,
    constants: Array,
    factors: Array,
    whitened: Array,
    means: Array,
    left: Array,
) -> None:
    """Subtract from prior moments (M, q) what the observations explain, for every member of a
    mixture."""
    for m, factor in enumerate(factors):
        covariance = np.empty((len(observed), len(points)))
        stationary_reference(
            observed, points, lengthscales[m], categorical, smoothness, variances[m], covariance
        )
        solved = np.linalg.solve(np.tril(factor), covariance + constants[m])
        means[m] += whitened[m] @ solved
        left[m] = np.maximum(left[m] - (solved**2).sum(axis=0), 0.0)


def likelihood_gradient_reference(
    points: Array,
    lengthscales: Array,
    categorical: Array,
    smoothness: int,
    variance: float,
    constant: float,
    alpha: Array,
    inverse: Array,
    out: Array,
) -> None:
    """Set out to tr((alpha alpha^T - K^-1) dK) / 2 for each log length-scale and the log signal
    standard deviation.

    dK / d log l is taken from differences of the kernel.
    """
    symmetric = np.triu(inverse) + np.triu(inverse, 1).T
    inner = np.outer(alpha, alpha) - symmetric
    between = np.empty((len(points), len(points)))
    stationary_reference(points, points, lengthscales, categorical, smoothness, variance, between)
    out[-1] = (inner * (between + constant * variance)).sum()
    step = 1e-5
    for k in range(len(out) - 1):
        ahead = np.empty_like(between)
        behind = np.empty_like(between)
        factor = np.where(np.arange(len(lengthscales)) == k, np.exp(step), 1.0)
        stationary_reference(
            points, points, lengthscales * factor, categorical, smoothness, variance, ahead
        )
        stationary_reference(
            points, points, lengthscales / factor, categorical, smoothness, variance, behind
        )
        out[k] = 0.5 * (inner * (ahead - behind)).sum() / (2 * step)
