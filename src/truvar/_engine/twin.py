"""The inner loops in NumPy: what the compiled kernels compute, said plainly."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def truncated_sums(covariance: Array, excess: Array, predictive: Array) -> Array:
    """sum over j of min(C_jx^2 / d_xk, e_j): covariance (a, c), excess (a,), predictive d (c, K) -> (c, K)."""
    squares = covariance * covariance
    sums = np.zeros_like(predictive)
    for k in range(predictive.shape[1]):
        d = predictive[:, k]
        known = d > 0  # where nothing is left to learn, nothing is gained
        capped = np.minimum(squares[:, known], excess[:, None] * d[known])
        sums[known, k] = capped.sum(axis=0) / d[known]
    return sums
