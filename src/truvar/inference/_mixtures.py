"""Quantiles and probabilities of mixtures of normal distributions, and of the bands between several thresholds.

| symbol | here | shape |
|---|---|---|
| P(f(x) > h) | `probability_above` | (n,) |
| P_k(x) = P(f(x) > h_k) | `exceeds` | (m, n) |
| b_j(x) = P_{j-1}(x) - P_j(x) with P_{-1} = 1 and P_m = 0 | `band_probabilities` | (m + 1, n) |
| the band reported, the number of thresholds with P_k >= 1/2 | `reported_bands` | (n,) |
"""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
from scipy.special import ndtr

from truvar._typing import Array, Index

N_BISECTIONS = 45  # halvings of an interval that contains a quantile


def probability_above(
    means: Array, variances: Array, threshold: Array | float, weights: Array | None = None
) -> Array:
    """Return P(f > threshold) of a mixture, (n,), given means and variances of its members, (members, n) each.

    A value that is known exactly counts as above if it is at least the threshold. Weights,
    (members,), are those of the members; None: all count the same.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        u = (means - threshold) / np.sqrt(variances)
    u = np.where(variances > 0, u, np.where(means >= threshold, np.inf, -np.inf))
    return np.asarray(np.average(normal_distribution(u), axis=0, weights=weights))


def normal_distribution(u: Array) -> Array:
    """Return the standard normal distribution function at u."""
    return np.asarray(ndtr(u))


def mixture_quantile(
    means: Array, variances: Array, level: float, weights: Array | None = None
) -> Array:
    """Return the quantile of a mixture of normals, (n,), by bisection.

    Args:
        means: Means of the members. (members, n)
        variances: Variances of the members. (members, n)
        level: Probability below the quantile.
        weights: Weights of the members, (members,); None: all count the same.
    """
    sd = np.sqrt(variances)
    normal_quantile = NormalDist().inv_cdf(level)
    if len(means) == 1:
        return np.asarray(means[0] + normal_quantile * sd[0])
    reach = abs(normal_quantile) + 1e-9
    low = (means - reach * sd).min(axis=0)
    high = (means + reach * sd).max(axis=0)
    for _ in range(N_BISECTIONS):
        middle = (low + high) / 2
        too_low = 1.0 - probability_above(means, variances, middle, weights) < level
        low = np.where(too_low, middle, low)
        high = np.where(too_low, high, middle)
    return np.asarray((low + high) / 2)


def band_probabilities(exceeds: Array) -> Array:
    """Return b_j from P_k: (m + 1, n)."""
    n = exceeds.shape[1]
    padded = np.vstack([np.ones(n), exceeds, np.zeros(n)])
    return np.asarray(np.maximum(padded[:-1] - padded[1:], 0.0))


def reported_bands(exceeds: Array) -> Index:
    """Return the band to report at every point: the number of thresholds that are exceeded with P_k >= 1/2."""
    return np.asarray((exceeds >= 0.5).sum(axis=0))


def certainty_of(exceeds: Array) -> Array:
    """Return the probability of the reported band: (n,)."""
    reported = reported_bands(exceeds)[None, :]
    return np.asarray(np.take_along_axis(band_probabilities(exceeds), reported, axis=0)[0])
