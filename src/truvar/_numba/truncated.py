"""The inner loops, compiled. Each has a twin of the same name in `twin.py`, and they agree to rounding.

Column tiles keep a tile's sums, u and d in the nearer caches, eight rows at a time make the most of each. One pass
reads and writes the matrix once, which is all that memory allows.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[np.float64]
Index = NDArray[np.intp]

REORDERED = {"reassoc", "contract", "nnan", "nsz"}  # sums in any order, so that they vectorise
ROWS = 128  # summed in the precision of the matrix
CHUNK = 1024  # kernel values at a time: they and their squares stay in the nearest cache


@njit(cache=True, nogil=True, error_model="numpy")
def fused_scores(matrix, rows, step, u, excess, predictive, start, stop, out):  # type: ignore[no-untyped-def]
    """C_jx -= step_j u_x for the rows and columns start..stop, and out_x += sum over rows of min(C_jx^2, e_j d_x). In
    the precision of the matrix, sums over more than ROWS in double."""
    width = stop - start
    us, ds, sums = u[start:stop], predictive[start:stop], out[start:stop]  # slices: indices known to be in range
    part = np.zeros(width, matrix.dtype)
    for first in range(0, len(rows), ROWS):
        last = min(first + ROWS, len(rows))
        j = first
        while j + 8 <= last:
            a, b = matrix[rows[j], start:stop], matrix[rows[j + 1], start:stop]
            c, d = matrix[rows[j + 2], start:stop], matrix[rows[j + 3], start:stop]
            e, f = matrix[rows[j + 4], start:stop], matrix[rows[j + 5], start:stop]
            g, h = matrix[rows[j + 6], start:stop], matrix[rows[j + 7], start:stop]
            ua, ub, uc, ud = step[j], step[j + 1], step[j + 2], step[j + 3]
            ue, uf, ug, uh = step[j + 4], step[j + 5], step[j + 6], step[j + 7]
            xa, xb, xc, xd = excess[j], excess[j + 1], excess[j + 2], excess[j + 3]
            xe, xf, xg, xh = excess[j + 4], excess[j + 5], excess[j + 6], excess[j + 7]
            for x in range(width):
                ux, dx = us[x], ds[x]
                va, vb, vc, vd = a[x] - ua * ux, b[x] - ub * ux, c[x] - uc * ux, d[x] - ud * ux
                ve, vf, vg, vh = e[x] - ue * ux, f[x] - uf * ux, g[x] - ug * ux, h[x] - uh * ux
                a[x], b[x], c[x], d[x], e[x], f[x], g[x], h[x] = va, vb, vc, vd, ve, vf, vg, vh
                ab, cd = min(va * va, xa * dx) + min(vb * vb, xb * dx), min(vc * vc, xc * dx) + min(vd * vd, xd * dx)
                ef, gh = min(ve * ve, xe * dx) + min(vf * vf, xf * dx), min(vg * vg, xg * dx) + min(vh * vh, xh * dx)
                part[x] += (ab + cd) + (ef + gh)
            j += 8
        while j < last:
            a, ua, ea = matrix[rows[j], start:stop], step[j], excess[j]
            for x in range(width):
                va = a[x] - ua * us[x]
                a[x] = va
                part[x] += min(va * va, ea * ds[x])
            j += 1
        for x in range(width):
            sums[x] += part[x]
            part[x] = 0


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


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def exponentials(z, work):  # type: ignore[no-untyped-def]
    """z <- exp(z) for z <= 0, to an ulp or two; below -700 it stays at exp(-700). No branch and no call, so that the
    loops vectorise: exp(z) = 2^k exp(r) with |r| <= log(2) / 2, the power by adding k to the exponent's bits."""
    shift = 6755399441055744.0  # 1.5 x 2^52: adding it rounds to an integer, which stays in the low bits
    for i in range(len(z)):
        x = max(z[i], -700.0)
        moved = x * 1.4426950408889634 + shift
        work[i] = moved
        k = moved - shift
        r = (x - k * 6.93147180369123816490e-01) - k * 1.90821492927058770002e-10  # log(2) in two parts
        p = 1.0 / 6227020800.0
        p = p * r + 1.0 / 479001600.0
        p = p * r + 1.0 / 39916800.0
        p = p * r + 1.0 / 3628800.0
        p = p * r + 1.0 / 362880.0
        p = p * r + 1.0 / 40320.0
        p = p * r + 1.0 / 5040.0
        p = p * r + 1.0 / 720.0
        p = p * r + 1.0 / 120.0
        p = p * r + 1.0 / 24.0
        p = p * r + 1.0 / 6.0
        p = p * r + 0.5
        p = p * r + 1.0
        z[i] = p * r + 1.0
    power, value = work.view(np.int64), z.view(np.int64)
    for i in range(len(z)):
        value[i] += power[i] << 52


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def stationary(points, others, scales, smoothness, variance, out):  # type: ignore[no-untyped-def]
    """k(points, others) of a stationary kernel with these length-scales. Smoothness: 0 is RBF, 1, 3 and 5 are twice the
    nu of a Matern kernel. Fastest where the others are many."""
    columns = np.empty((others.shape[1], len(others)))
    for k in range(others.shape[1]):
        for j in range(len(others)):
            columns[k, j] = others[j, k] / scales[k]
    square, work = np.empty(CHUNK), np.empty(CHUNK)
    for i in range(len(points)):
        for start in range(0, len(others), CHUNK):
            stop = min(start + CHUNK, len(others))
            r, value = square[: stop - start], out[i, start:stop]
            r[:] = 0.0
            for k in range(points.shape[1]):
                x, y = points[i, k] / scales[k], columns[k, start:stop]
                for j in range(len(r)):
                    r[j] += (x - y[j]) * (x - y[j])
            if smoothness == 0:
                for j in range(len(r)):
                    value[j] = -0.5 * r[j]
            else:
                for j in range(len(r)):
                    r[j] = np.sqrt(smoothness * r[j])
                    value[j] = -r[j]
            exponentials(value, work[: stop - start])
            if smoothness == 3:
                for j in range(len(r)):
                    value[j] *= 1.0 + r[j]
            elif smoothness == 5:
                for j in range(len(r)):
                    value[j] *= 1.0 + r[j] + r[j] * r[j] * (1.0 / 3.0)
            for j in range(len(r)):
                value[j] *= variance


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


@njit(cache=True, nogil=True, error_model="numpy", fastmath=REORDERED)
def candidate_sums(prior, explained, excess, predictive, out):  # type: ignore[no-untyped-def]
    """out_xk += sum over j of min(C_xj^2, e_j d_xk) with C = prior - explained (c, a): a row per candidate."""
    for x in range(len(prior)):
        k_row, v_row = prior[x], explained[x]
        for k in range(predictive.shape[1]):
            d, total = predictive[x, k], 0.0
            for j in range(len(excess)):
                value = k_row[j] - v_row[j]
                total += min(value * value, excess[j] * d)
            out[x, k] += total


@njit(cache=True, nogil=True, error_model="numpy", fastmath=REORDERED)
def candidate_losses(prior, explained, excess, sign, predictive, out, squares):  # type: ignore[no-untyped-def]
    """What a bound gives away that takes C^2 for the rows of sign 1 and e d for those of sign -1:
    out_xk = sum over j of (sign_j (C_xj^2 - e_j d_xk))+, and squares_x = sum of C_xj^2. A row per candidate."""
    for x in range(len(prior)):
        k_row, v_row = prior[x], explained[x]
        for k in range(predictive.shape[1]):
            d, total, norm = predictive[x, k], 0.0, 0.0
            for j in range(len(excess)):
                value = k_row[j] - v_row[j]
                total += max(sign[j] * (value * value - excess[j] * d), 0.0)
                norm += value * value
            out[x, k], squares[x] = total, norm


@njit(cache=True, nogil=True, error_model="numpy")
def spread(values, corner, slow, middle, fast, grid):  # type: ignore[no-untyped-def]
    """grid += W^T values: every value goes to the nodes of a 3-d grid around its point, whose first is `corner` (n, 3)
    and whose weights are the products of `slow`, `middle` and `fast` (n, taps)."""
    for i in range(len(values)):
        if values[i] != 0.0:
            a, b, c = corner[i]
            for p in range(slow.shape[1]):
                for q in range(middle.shape[1]):
                    nodes, weight = grid[a + p, b + q, c : c + fast.shape[1]], values[i] * slow[i, p] * middle[i, q]
                    for r in range(len(nodes)):
                        nodes[r] += weight * fast[i, r]


@njit(cache=True, nogil=True, error_model="numpy", fastmath=REORDERED)
def gather(grid, corner, slow, middle, fast, out):  # type: ignore[no-untyped-def]
    """out = W grid: the grid interpolated at every point; the transpose of `spread`."""
    for i in range(len(out)):
        a, b, c = corner[i]
        total = 0.0
        for p in range(slow.shape[1]):
            for q in range(middle.shape[1]):
                nodes, inner = grid[a + p, b + q, c : c + fast.shape[1]], 0.0
                for r in range(len(nodes)):
                    inner += fast[i, r] * nodes[r]
                total += slow[i, p] * middle[i, q] * inner
        out[i] = total
