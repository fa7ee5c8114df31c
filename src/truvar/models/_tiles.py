"""Triangular systems with many right sides, tile by tile, so that a tile stays in the processor's cache."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from scipy.linalg.blas import dtrsm

from truvar._typing import Array

# sites up to which a posterior is conditioned in one piece or row by row, as in release 0.1.0
FEW_SITES = 2500
TILE = 2048  # sites at a time


def solve_lower(lower: Array, right: Array) -> Array:
    """Return L^-1 B, faster than SciPy's function for many columns.

    Args:
        lower: L. (t, t)
        right: B, which may be overwritten. (t, q)
    """
    if right.size == 0:
        return right
    # X L^T = B^T, in place: transposes are as LAPACK stores matrices.
    upper = np.ascontiguousarray(lower).T
    transposed = np.ascontiguousarray(right).T
    return np.asarray(dtrsm(1.0, upper, transposed, side=1, overwrite_b=1).T)


def solved_tiles(
    lower: Array, covariance: Callable[[slice], Array], n: int
) -> Iterator[tuple[slice, Array]]:
    """Yield slices of n sites with L^-1 K(X_t, sites) there: (t, q).

    Args:
        lower: L. (t, t)
        covariance: Returns K(X_t, sites) of a slice of the sites, an array that may be changed.
        n: Number of sites.
    """
    lower = np.ascontiguousarray(lower)
    for start in range(0, n, TILE):
        tile = slice(start, min(start + TILE, n))
        yield tile, solve_lower(lower, covariance(tile))
