"""Naive transcription of the score of `WeightedTruVaR`: loops, `inv`, and the sum as the
documentation has it."""

from __future__ import annotations

from collections.abc import Sequence
from math import erf, sqrt

import numpy as np


def conditioned(covariance: np.ndarray, where: Sequence[int], noise: Sequence[float]) -> np.ndarray:
    """Return the covariance after measuring there: Sigma - Sigma_w (Sigma_ww + noise)^-1
    Sigma_w^T."""
    inside = covariance[np.ix_(where, where)] + np.diag(noise)
    return covariance - covariance[:, where] @ np.linalg.inv(inside) @ covariance[where]


def level_set_weights(mean: np.ndarray, covariance: np.ndarray, threshold: float) -> list[float]:
    """Return p_j (1 - p_j) / sigma_j^2, p_j the probability of lying above the threshold."""
    weights = []
    for j in range(len(mean)):
        sd = sqrt(covariance[j, j])
        p = 0.5 * (1 + erf((mean[j] - threshold) / (sd * sqrt(2))))
        weights.append(p * (1 - p) / sd**2)
    return weights


def weighted_reduction(
    covariance: np.ndarray, weights: Sequence[float], noises: Sequence[float]
) -> np.ndarray:
    """Return the sum over j of w_j min(C_jx^2 / d_x, sigma_j^2): candidates by noise levels."""
    n = len(covariance)
    out = np.zeros((n, len(noises)))
    for x in range(n):
        for k, noise in enumerate(noises):
            d = covariance[x, x] + noise
            for j, weight in enumerate(weights):
                out[x, k] += weight * min(covariance[j, x] ** 2 / d, covariance[j, j])
    return out


def contrast_reduction(
    covariance: np.ndarray, rows: Sequence[int], weights: Sequence[float], leader: int, noise: float
) -> np.ndarray:
    """Return the weighted fall of Var(f_j - f_L) over the rows by measuring each point."""
    n = len(covariance)
    out = np.zeros(n)
    for x in range(n):
        after = conditioned(covariance, [x], [noise])
        for j, weight in zip(rows, weights, strict=True):
            difference = np.zeros(n)
            difference[j] += 1
            difference[leader] -= 1
            out[x] += weight * (
                difference @ covariance @ difference - difference @ after @ difference
            )
    return out
