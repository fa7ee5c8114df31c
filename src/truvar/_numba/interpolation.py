"""Interpolation on a regular 3-d grid and its transpose, compiled.

W has a row per point and a column per node: the weights of a point are the products of its weights
along the three axes, `slow`, `middle` and `fast` (n, taps), at the nodes that begin at its `corner`
(n, 3).
"""

from __future__ import annotations

from numba import njit

from truvar._numba.truncated_sums import REASSOCIATED


@njit(cache=True, nogil=True, error_model="numpy")
def spread(values, corner, slow, middle, fast, grid):  # type: ignore[no-untyped-def]
    """Add W^T values to the grid: every value (n,) is distributed to the nodes around its point."""
    for i in range(len(values)):
        if values[i] != 0.0:
            a, b, c = corner[i]
            for p in range(slow.shape[1]):
                for q in range(middle.shape[1]):
                    nodes = grid[a + p, b + q, c : c + fast.shape[1]]
                    weight = values[i] * slow[i, p] * middle[i, q]
                    for r in range(len(nodes)):
                        nodes[r] += weight * fast[i, r]


@njit(cache=True, nogil=True, error_model="numpy", fastmath=REASSOCIATED)
def gather(grid, corner, slow, middle, fast, out):  # type: ignore[no-untyped-def]
    """Set out (n,) to W grid: the grid interpolated at every point."""
    for i in range(len(out)):
        a, b, c = corner[i]
        total = 0.0
        for p in range(slow.shape[1]):
            for q in range(middle.shape[1]):
                nodes = grid[a + p, b + q, c : c + fast.shape[1]]
                inner = 0.0
                for r in range(len(nodes)):
                    inner += fast[i, r] * nodes[r]
                total += slow[i, p] * middle[i, q] * inner
        out[i] = total
