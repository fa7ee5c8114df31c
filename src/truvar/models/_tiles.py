"""L^-1 K(X_t, sites) for many sites, tile by tile, so that a tile stays in the processor's cache."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from scipy.linalg.blas import dtrsm

from truvar._typing import Array

# sites up to which a posterior is conditioned in one piece or row by row, as in release 0.1.0
FEW_SITES = 2500
TILE = 2048  # sites at a time


def solved_tiles(
    lower: Array, covariance: Callable[[slice], Array], n: int
) -> Iterator[tuple[slice, Array]]:
    """Yield slices of n sites with L^-1 K(X_t, sites) there: (t, q).

    Args:
        lower: L. (t, t)
        covariance: Returns K(X_t, sites) of a slice of the sites, an array that may be changed.
        n: Number of sites.
    """
    factor = np.asfortranarray(lower)
    for start in range(0, n, TILE):
        tile = slice(start, min(start + TILE, n))
        across = np.ascontiguousarray(covariance(tile))
        # X L^T = K^T, in place: the transpose is as LAPACK stores matrices.
        solved = dtrsm(1.0, factor, across.T, side=1, lower=1, trans_a=1, overwrite_b=1)
        yield tile, solved.T
