"""The inner loops, compiled. Each has a twin of the same name in `twin.py`, and they agree to rounding.

Column tiles keep a tile's sums, u and d in the nearer caches, four rows at a time make the most of each. One pass reads
and writes the matrix once, which is all that memory allows.
"""

from __future__ import annotations

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
