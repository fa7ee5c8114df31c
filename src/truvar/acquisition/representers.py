"""Representer points: small sets of sites that stand for a domain in draws of the posterior and in sums."""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dpstrf

from truvar._typing import Array, Index
from truvar.acquisition.base import PolicyContext
from truvar.acquisition.confidence import RESOLUTION
from truvar.acquisition.utils import expected_improvement, incumbent
from truvar.domain.candidates import Candidates

RANK_TOLERANCE = 1e-10  # share of the largest variance: pivots below it are left out of a factor


def representer_sites(context: PolicyContext, count: int) -> Index:
    """Return the sites that can be the maximiser: all of a small domain, otherwise `count` of high promise.

    The best mean is always among them. The others are a systematic sample in proportion to the root of the expected
    improvement, which spreads over the domain, completed by a weighted sample without replacement.
    """
    mean, sd = context.moments
    if len(mean) <= count:
        return np.arange(len(mean))
    weight = np.sqrt(expected_improvement(mean, sd, incumbent(context))) + np.finfo(float).tiny
    priority = np.log(weight) + context.rng.gumbel(size=len(mean))
    priority[systematic_sample(weight, count - 1, context.rng.random())] = np.inf
    priority[np.argmax(mean)] = np.inf
    return np.sort(np.argpartition(-priority, count)[:count])


def pivoted_cholesky(context: PolicyContext, sites: Index) -> tuple[Array, Index]:
    """Factorise the posterior covariance of f at some sites, given pending points.

    Args:
        context: The context of the choice.
        sites: R sites.

    Returns:
        The factor L, lower trapezoidal, of shape (R, k) and the pivots, a permutation of 0 to R - 1, with
        Cov(sites[pivots]) = L L^T up to rounding. k is the numerical rank; the largest variance comes first.
    """
    posterior = context.posterior
    column = np.zeros((len(sites), 1))
    here = Candidates(posterior.sites[sites], column, column + 1.0, sites)
    covariance = posterior.covariance(sites, here)
    smallest = max(RANK_TOLERANCE * float(np.diag(covariance).max()), RESOLUTION * posterior.scale**2)
    factor, pivots, rank, _ = dpstrf(covariance, tol=smallest, lower=1)
    return np.tril(factor)[:, :rank], np.asarray(pivots - 1, dtype=np.intp)


def systematic_sample(weight: Array, count: int, offset: float) -> Index:
    """Return `count` rows in proportion to their weights, evenly along the rows; heavy rows several times.

    Args:
        weight: Weights of the rows, at least 0.
        count: Number of rows to return.
        offset: Position of the first row within its interval, from 0 to 1.
    """
    share = np.cumsum(weight) / weight.sum()
    return np.minimum(np.searchsorted(share, (np.arange(count) + offset) / count), len(weight) - 1)


def sample_rows(weight: Array, count: int) -> tuple[Index, Array]:
    """Sample at most `count` rows for a sum over all rows.

    Args:
        weight: Approximate size of each summand, at least 0.
        count: Number of rows, at most.

    Returns:
        The rows, and the number of rows that each of them stands for. All rows of positive weight or, if they are too
        many, a systematic sample in proportion to the weights.
    """
    positive = np.flatnonzero(weight > 0)
    if len(positive) <= count:
        return positive, np.ones(len(positive))
    rows, times = np.unique(systematic_sample(weight, count, 0.5), return_counts=True)
    return rows, times * weight.sum() / (count * weight[rows])
