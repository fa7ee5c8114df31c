"""Weighted sums over targets j of w_j min(C_jx^2, e_j d_x), compiled.

| symbol | argument | shape |
|---|---|---|
| C_jx, posterior covariance of target j and site x | `matrix` (rows by index), `covariance` | (n, m), (a, c) |
| C_xj = k(x, j) - v_x . v_j, formed on the fly | `prior - explained` | (c, a) |
| e_j, variance of target j above the truncation | `excess` | (a,) |
| w_j, weight of target j; 1 in eq. (3) | `weight` | (a,) |
| d_x or d_xk, predictive variance at noise level k | `predictive` | (c,) or (c, K) |
| u, the row that a measurement adds to the factor | `u`; `step` holds u_j of the rows | (m,); (a,) |

Columns are processed in tiles, so that the sums, u and d of a tile stay in the nearer caches, and
rows eight at a time, so that each is used as often as possible. One pass reads and writes the
matrix once, which is all that memory bandwidth allows.
"""

from __future__ import annotations

import numpy as np
from numba import njit

# sums in any order, so that the compiler can vectorise them
REASSOCIATED = {"reassoc", "contract", "nnan", "nsz"}
# rows summed in the precision of the matrix before the sum is added to one in double precision
ROWS_PER_SUM = 128


@njit(cache=True, nogil=True, error_model="numpy")
def fused_update_sums(matrix, rows, step, u, excess, weight, predictive, start, stop, out):  # type: ignore[no-untyped-def]
    """Update columns start..stop by C_jx -= step_j u_x and add the sums of the new C to `out`.

    Both use the precision of the matrix; sums over more than `ROWS_PER_SUM` rows are completed in
    double precision.

    Args:
        matrix: Covariance, overwritten. (n, m)
        rows: Rows of the matrix that are updated and summed over. (a,)
        step: u_j of those rows; 0 where a row needs no update. (a,)
        u: Row of the factor that belongs to the measurement. (m,)
        excess: e_j of the rows. (a,)
        weight: w_j of the rows. (a,)
        predictive: d_x. (m,)
        start: First column.
        stop: Column behind the last one.
        out: out_x += sum over rows of w_j min(C_jx^2, e_j d_x) for the columns. (m,)
    """
    width = stop - start
    # Slices tell the compiler that all indices are in range.
    us = u[start:stop]
    ds = predictive[start:stop]
    sums = out[start:stop]
    partial = np.zeros(width, matrix.dtype)
    for first in range(0, len(rows), ROWS_PER_SUM):
        last = min(first + ROWS_PER_SUM, len(rows))
        j = first
        while j + 8 <= last:
            c0 = matrix[rows[j], start:stop]
            c1 = matrix[rows[j + 1], start:stop]
            c2 = matrix[rows[j + 2], start:stop]
            c3 = matrix[rows[j + 3], start:stop]
            c4 = matrix[rows[j + 4], start:stop]
            c5 = matrix[rows[j + 5], start:stop]
            c6 = matrix[rows[j + 6], start:stop]
            c7 = matrix[rows[j + 7], start:stop]
            u0 = step[j]
            u1 = step[j + 1]
            u2 = step[j + 2]
            u3 = step[j + 3]
            u4 = step[j + 4]
            u5 = step[j + 5]
            u6 = step[j + 6]
            u7 = step[j + 7]
            e0 = excess[j]
            e1 = excess[j + 1]
            e2 = excess[j + 2]
            e3 = excess[j + 3]
            e4 = excess[j + 4]
            e5 = excess[j + 5]
            e6 = excess[j + 6]
            e7 = excess[j + 7]
            w0 = weight[j]
            w1 = weight[j + 1]
            w2 = weight[j + 2]
            w3 = weight[j + 3]
            w4 = weight[j + 4]
            w5 = weight[j + 5]
            w6 = weight[j + 6]
            w7 = weight[j + 7]
            for x in range(width):
                ux = us[x]
                dx = ds[x]
                v0 = c0[x] - u0 * ux
                v1 = c1[x] - u1 * ux
                v2 = c2[x] - u2 * ux
                v3 = c3[x] - u3 * ux
                v4 = c4[x] - u4 * ux
                v5 = c5[x] - u5 * ux
                v6 = c6[x] - u6 * ux
                v7 = c7[x] - u7 * ux
                c0[x] = v0
                c1[x] = v1
                c2[x] = v2
                c3[x] = v3
                c4[x] = v4
                c5[x] = v5
                c6[x] = v6
                c7[x] = v7
                pair01 = w0 * min(v0 * v0, e0 * dx) + w1 * min(v1 * v1, e1 * dx)
                pair23 = w2 * min(v2 * v2, e2 * dx) + w3 * min(v3 * v3, e3 * dx)
                pair45 = w4 * min(v4 * v4, e4 * dx) + w5 * min(v5 * v5, e5 * dx)
                pair67 = w6 * min(v6 * v6, e6 * dx) + w7 * min(v7 * v7, e7 * dx)
                partial[x] += (pair01 + pair23) + (pair45 + pair67)
            j += 8
        while j < last:
            c0 = matrix[rows[j], start:stop]
            u0 = step[j]
            e0 = excess[j]
            w0 = weight[j]
            for x in range(width):
                v0 = c0[x] - u0 * us[x]
                c0[x] = v0
                partial[x] += w0 * min(v0 * v0, e0 * ds[x])
            j += 1
        for x in range(width):
            sums[x] += partial[x]
            partial[x] = 0


@njit(cache=True, nogil=True, error_model="numpy")
def column_sums(matrix, rows, columns, excess, weight, predictive, out):  # type: ignore[no-untyped-def]
    """Set out_i to the sum over rows of w_j min(C_jx^2, e_j d_i), x being the i-th of `columns`."""
    out[:] = 0.0
    for j in range(len(rows)):
        row = matrix[rows[j]]
        e = excess[j]
        w = weight[j]
        for i in range(len(columns)):
            value = row[columns[i]]
            out[i] += w * min(value * value, e * predictive[i])


@njit(cache=True, nogil=True, error_model="numpy")
def truncated_sums(covariance, excess, weight, predictive, out):  # type: ignore[no-untyped-def]
    """Add to out_xk the sum over rows of w_j min(C_jx^2, e_j d_xk).

    The covariance is (a, c), `predictive` and `out` are (c, K).
    """
    for j in range(len(excess)):
        row = covariance[j]
        e = excess[j]
        w = weight[j]
        for x in range(len(row)):
            square = row[x] * row[x]
            for k in range(predictive.shape[1]):
                out[x, k] += w * min(square, e * predictive[x, k])


@njit(cache=True, nogil=True, error_model="numpy", fastmath=REASSOCIATED)
def candidate_sums(prior, explained, excess, weight, predictive, out):  # type: ignore[no-untyped-def]
    """Add to out_xk the sum over targets of w_j min(C_xj^2, e_j d_xk), C = prior - explained.

    The matrices have a row per candidate.

    Args:
        prior: k(x, j). (c, a)
        explained: v_x . v_j. (c, a)
        excess: e_j. (a,)
        weight: w_j. (a,)
        predictive: d_xk. (c, K)
        out: The sums. (c, K)
    """
    for x in range(len(prior)):
        k_row = prior[x]
        v_row = explained[x]
        for k in range(predictive.shape[1]):
            d = predictive[x, k]
            total = 0.0
            for j in range(len(excess)):
                value = k_row[j] - v_row[j]
                total += weight[j] * min(value * value, excess[j] * d)
            out[x, k] += total


@njit(cache=True, nogil=True, error_model="numpy", fastmath=REASSOCIATED)
def candidate_bound_gaps(prior, explained, excess, weight, base, predictive, out, squares):  # type: ignore[no-untyped-def]
    """Compute by how much a simple bound on the truncated sums exceeds them, a row per candidate.

    The bound has b_j C_xj^2 + max(w_j - b_j, 0) e_j d_xk for target j, which is never below w_j
    min(C_xj^2, e_j d_xk).

    Args:
        prior: k(x, j). (c, a)
        explained: v_x . v_j. (c, a)
        excess: e_j. (a,)
        weight: w_j. (a,)
        base: b_j. (a,)
        predictive: d_xk. (c, K)
        out: Set to the sum over j of the excess of the bound over the summand. (c, K)
        squares: Set to the sum over j of max(b_j, w_j) C_xj^2. (c,)
    """
    for x in range(len(prior)):
        k_row = prior[x]
        v_row = explained[x]
        for k in range(predictive.shape[1]):
            d = predictive[x, k]
            total = 0.0
            norm = 0.0
            for j in range(len(excess)):
                value = k_row[j] - v_row[j]
                square = value * value
                cap = excess[j] * d
                gap = (
                    base[j] * square
                    + max(weight[j] - base[j], 0.0) * cap
                    - weight[j] * min(square, cap)
                )
                total += max(gap, 0.0)
                norm += max(weight[j], base[j]) * square
            out[x, k] = total
            squares[x] = norm


@njit(cache=True, nogil=True, error_model="numpy", fastmath=REASSOCIATED)
def contrast_sums(covariance, weight, leader, out):  # type: ignore[no-untyped-def]
    """Set out_x to the sum over rows of w_j (C_jx - C_Lx)^2, L being the row `leader`.

    Without C_Lx if `leader` is negative.

    Args:
        covariance: C_jx. (a, c)
        weight: w_j. (a,)
        leader: Row of the leader, or -1.
        out: The sums. (c,)
    """
    out[:] = 0.0
    other = np.zeros(len(out)) if leader < 0 else covariance[leader]
    for j in range(len(weight)):
        row = covariance[j]
        for x in range(len(out)):
            gap = row[x] - other[x]
            out[x] += weight[j] * gap * gap
