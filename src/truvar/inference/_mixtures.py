"""Quantiles and probabilities of mixtures of normal distributions, and of the bands between several thresholds.

| symbol | here | shape |
|---|---|---|
| P(f(x) > h) | `probability_above` | (n,) |
| P_k(x) = P(f(x) > h_k) | `exceeds` | (m, n) |
| b_j(x) = P_{j-1}(x) - P_j(x) with P_{-1} = 1 and P_m = 0 | `band_probabilities` | (m + 1, n) |
| the band reported, the number of thresholds with P_k >= 1/2 | `reported_bands` | (n,) |
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from scipy.special import ndtr

from truvar._typing import Array, Index

MAX_STEPS = 100  # of the search for a quantile
_N_INTERVALS = 32  # of the trapezoidal rule for moments
# standard deviation of a standard normal variable whose values beyond its 5 and 95 % quantiles
# count as those
_BOUNDED_NORMAL_SD = 0.91174
QUANTILE_TOLERANCE = 1e-13  # share of the interval that a quantile is searched in


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
    average = np.average(normal_distribution(u), axis=0, weights=weights)
    return np.clip(average, 0.0, 1.0)  # rounding of the weights


def normal_distribution(u: Array) -> Array:
    """Return the standard normal distribution function at u."""
    return np.asarray(ndtr(u))


def mixture_quantile(
    means: Array, variances: Array, level: float, weights: Array | None = None
) -> Array:
    """Return the quantile of a mixture of normals, (n,).

    Newton's method; where it leaves the interval that holds the quantile, or does not halve its
    steps, the interval is halved.

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
    if weights is None:
        weights = np.full(len(means), 1.0 / len(means))
    reach = abs(normal_quantile) + 1e-9
    low = (means - reach * sd).min(axis=0)
    high = (means + reach * sd).max(axis=0)
    tolerance = QUANTILE_TOLERANCE * (high - low)
    # The first guess is the quantile of the normal distribution with the moments of the mixture.
    centre = weights @ means
    spread = np.sqrt(weights @ (variances + (means - centre) ** 2))
    quantile = np.clip(centre + normal_quantile * spread, low, high)
    step = high - low
    left = np.flatnonzero(step > 0)
    members = _MemberRows(np.ascontiguousarray(means.T), np.ascontiguousarray(sd.T), weights)
    for _ in range(MAX_STEPS):
        if not len(left):
            break
        here = quantile[left]
        below, density = members.at(left, here)
        excess = below - level
        low[left] = np.where(excess < 0, here, low[left])
        high[left] = np.where(excess < 0, high[left], here)
        with np.errstate(divide="ignore", invalid="ignore"):
            following = here - excess / density
        is_quick = (following >= low[left]) & (following <= high[left])
        is_quick &= np.abs(following - here) < step[left] / 2
        quantile[left] = np.where(is_quick, following, (low[left] + high[left]) / 2)
        step[left] = np.abs(quantile[left] - here)
        left = left[step[left] > tolerance[left]]
    return np.asarray(quantile)


@dataclass(frozen=True)
class _MemberRows:
    """Members of mixtures with a row for each point, which are taken quickly.

    Attributes:
        means: Means of the members. (n, members)
        sds: Standard deviations of the members. (n, members)
        weights: Weights of the members. (members,)
    """

    means: Array
    sds: Array
    weights: Array

    def at(self, rows: Index, x: Array) -> tuple[Array, Array]:
        """Return P(f < x) and the density at x of the mixtures of some rows, (rows,) each.

        A value that is known exactly has no density, and is not below itself.
        """
        means = self.means[rows]
        sds = self.sds[rows]
        is_exact = sds == 0
        with np.errstate(divide="ignore", invalid="ignore"):
            u = (x[:, None] - means) / sds
        if is_exact.any():
            u[is_exact] = np.where(x[:, None] > means, np.inf, -np.inf)[is_exact]
            sds[is_exact] = np.inf
        below = normal_distribution(u) @ self.weights
        np.square(u, out=u)
        u *= -0.5
        np.exp(u, out=u)
        u /= sds
        return below, u @ self.weights / np.sqrt(2 * np.pi)


def bounded_moments(
    means: Array,
    variances: Array,
    weights: Array,
    bounds: tuple[Array, Array],
    inverse: Callable[[Array], Array],
) -> tuple[Array, Array]:
    """Return mean and sd of a transformed mixture whose values beyond two bounds count as those: (n,) each.

    The mean of y that is at least a and at most b is a + the integral of P(y > u) from a to b. The
    standard deviation is divided by that of a normal variable so bounded, which thus keeps its own.

    Args:
        means: Means of the members. (members, n)
        variances: Variances of the members. (members, n)
        weights: Weights of the members. (members,)
        bounds: The 5 and 95 % quantiles of the mixture. (n,) each
        inverse: From values of the model to those of the user, increasing.
    """
    low, high = bounds
    steps = np.linspace(0.0, 1.0, _N_INTERVALS + 1)
    nodes = low + steps[:, None] * (high - low)
    values = inverse(nodes)  # (nodes, n)
    exceeds = np.stack([probability_above(means, variances, node, weights) for node in nodes])
    between = (exceeds[:-1] + exceeds[1:]) / 2
    rise = values - values[0]
    mean_rise = (np.diff(rise, axis=0) * between).sum(axis=0)
    variance = mean_rise**2 + (np.diff((rise - mean_rise) ** 2, axis=0) * between).sum(axis=0)
    mean = np.clip(values[0] + mean_rise, values[0], values[-1])
    return mean, np.sqrt(np.maximum(variance, 0.0)) / _BOUNDED_NORMAL_SD


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
