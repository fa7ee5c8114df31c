"""The inner loops, compiled. Each has a twin of the same name in `twin.py`, and they agree to rounding.

Column tiles keep a tile's sums, u and d in the nearer caches, four rows at a time make the most of each. One pass reads
and writes the matrix once, which is all that memory allows.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[np.float64]
Index = NDArray[np.intp]


@njit(cache=True, nogil=True, error_model="numpy")
def fused_scores(matrix, rows, step, u, excess, predictive, start, stop, out):  # type: ignore[no-untyped-def]
    """C_jx -= step_j u_x for the rows and columns start..stop, and out_x += sum over rows of min(C_jx^2, e_j d_x)."""
    count, width = len(rows), stop - start
    us, ds, sums = u[start:stop], predictive[start:stop], out[start:stop]  # slices: indices known to be in range
    j = 0
    while j + 4 <= count:
        a, b = matrix[rows[j], start:stop], matrix[rows[j + 1], start:stop]
        c, d = matrix[rows[j + 2], start:stop], matrix[rows[j + 3], start:stop]
        ua, ub, uc, ud = step[j], step[j + 1], step[j + 2], step[j + 3]
        ea, eb, ec, ed = excess[j], excess[j + 1], excess[j + 2], excess[j + 3]
        for x in range(width):
            ux, dx = us[x], ds[x]
            va, vb, vc, vd = a[x] - ua * ux, b[x] - ub * ux, c[x] - uc * ux, d[x] - ud * ux
            a[x], b[x], c[x], d[x] = va, vb, vc, vd
            sums[x] += min(va * va, ea * dx) + min(vb * vb, eb * dx) + min(vc * vc, ec * dx) + min(vd * vd, ed * dx)
        j += 4
    while j < count:
        a, ua, ea = matrix[rows[j], start:stop], step[j], excess[j]
        for x in range(width):
            va = a[x] - ua * us[x]
            a[x] = va
            sums[x] += min(va * va, ea * ds[x])
        j += 1


@njit(cache=True, nogil=True, error_model="numpy")
def column_sums(matrix, rows, columns, excess, predictive, out):  # type: ignore[no-untyped-def]
    """out_i = sum over rows of min(C_jx^2, e_j d_i) for the i-th of some columns x."""
    out[:] = 0.0
    for j in range(len(rows)):
        row, e = matrix[rows[j]], excess[j]
        for i in range(len(columns)):
            value = row[columns[i]]
            out[i] += min(value * value, e * predictive[i])


@njit(cache=True, nogil=True, error_model="numpy")
def truncated_sums(covariance, excess, predictive, out):  # type: ignore[no-untyped-def]
    """out_xk += sum over rows of min(C_jx^2, e_j d_xk): covariance (a, c), predictive and out (c, K)."""
    for j in range(len(excess)):
        row, e = covariance[j], excess[j]
        for x in range(len(row)):
            square = row[x] * row[x]
            for k in range(predictive.shape[1]):
                out[x, k] += min(square, e * predictive[x, k])


@njit(cache=True, nogil=True, error_model="numpy")
def stationary(points, others, smoothness, variance, out):  # type: ignore[no-untyped-def]
    """k(points, others) of a stationary kernel, the points divided by the length-scales. Smoothness: 0 is RBF, 1, 3 and
    5 are twice the nu of a Matern kernel."""
    root3, root5 = np.sqrt(3.0), np.sqrt(5.0)
    for i in range(len(points)):
        for j in range(len(others)):
            square = 0.0
            for k in range(points.shape[1]):
                gap = points[i, k] - others[j, k]
                square += gap * gap
            if smoothness == 0:
                out[i, j] = variance * np.exp(-0.5 * square)
            elif smoothness == 1:
                out[i, j] = variance * np.exp(-np.sqrt(square))
            elif smoothness == 3:
                r = root3 * np.sqrt(square)
                out[i, j] = variance * (1.0 + r) * np.exp(-r)
            else:
                r = root5 * np.sqrt(square)
                out[i, j] = variance * (1.0 + r + r * r / 3.0) * np.exp(-r)


@njit(cache=True, nogil=True, error_model="numpy")
def anticipated_bounds(covariance, scale, variance, mean, root_beta, share, floor, nodes, weights, rule, out):  # type: ignore[no-untyped-def]
    """out_x = sum over rows of P(the row stays in M) max(share s2, floor), once x has been measured.

    The measurement moves the mean of row j by z C_jx scale_x, z running over the nodes, and leaves it s2 = variance_j -
    (C_jx scale_x)^2. `rule` is (fraction, member of M...): fraction 0 is an optimum, a row stays while its upper bound
    reaches the highest lower bound; otherwise the implicit threshold at that fraction of the maximum.
    """
    fraction, member = rule
    rows, width = covariance.shape
    step, half, s2 = np.empty(width), np.empty(width), np.empty(width)
    lowest = np.full((len(nodes), width), -np.inf)  # the highest lower bound, per node
    highest = np.full((len(nodes), width), -np.inf)  # the highest upper bound
    for sweep in range(2):
        for j in range(rows):
            row, own, centre = covariance[j], variance[j], mean[j]
            for x in range(width):
                move = row[x] * scale[x]
                rest = max(own - move * move, 0.0)
                step[x], s2[x], half[x] = move, rest, root_beta * np.sqrt(rest)
            for q in range(len(nodes)):
                z, weight, low, high = nodes[q], weights[q], lowest[q], highest[q]
                if sweep == 0:
                    for x in range(width):
                        low[x] = max(low[x], centre + z * step[x] - half[x])
                        high[x] = max(high[x], centre + z * step[x] + half[x])
                else:
                    inside = member[j]
                    for x in range(width):
                        at = centre + z * step[x]
                        stays = at + half[x] >= low[x]
                        if inside and fraction > 0.0:
                            stays |= (at + half[x] >= fraction * low[x]) & (at - half[x] <= fraction * high[x])
                        out[x] += weight * max(share * s2[x], floor) if stays else 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def anticipated_level(covariance, scale, variance, mean, root_beta, share, floor, threshold, average, out):  # type: ignore[no-untyped-def]
    """The same for an explicit threshold: a row stays while its bounds straddle it; averaged over the measurement in
    closed form, or at its mean."""
    rows, width = covariance.shape
    root2 = np.sqrt(2.0)
    for j in range(rows):
        row, own, gap = covariance[j], variance[j], threshold - mean[j]
        for x in range(width):
            move = abs(row[x] * scale[x])
            rest = max(own - move * move, 0.0)
            half = root_beta * np.sqrt(rest)
            low, high = gap - half, gap + half
            if average and move > 0.0 and min(abs(low), abs(high)) < 10.0 * move:  # beyond, the cdf is 0 or 1
                stays = 0.5 * (math.erfc(low / (root2 * move)) - math.erfc(high / (root2 * move)))
            else:
                stays = 1.0 if low <= 0.0 <= high else 0.0
            out[x] += stays * max(share * rest, floor)
