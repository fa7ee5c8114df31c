"""Greedy upper bounds on covering costs and information gains, for theoretical schedules.

| paper | here |
|---|---|
| C*(xi, M), the least cost of bringing sigma to xi on M | `cover_cost`: an upper bound by greedy covering |
| gamma_T, the most information of T measurements | `information_bound`: an upper bound by greedy choice |
"""

from __future__ import annotations

import numpy as np

from truvar._typing import Array, Index, Mask
from truvar.domain.candidates import Candidates
from truvar.exceptions import InvalidModelError
from truvar.models.posterior import EXACT_VARIANCE_SHARE, Posterior

_MAX_COVER_STEPS = 256  # measurements of a greedy cover


def cover_cost(posterior: Posterior, targets: Mask, xi: float, candidates: Candidates) -> float:
    """Return an upper bound on the cost of bringing sigma to `xi` on all targets from now.

    The cost of any set of measurements that achieves it bounds C*. The minimum of two kinds is
    returned: measuring, for m = 1, 2, 4, ..., the best row for the widest target m times, greedily
    (m repeats are one measurement with an m-th of the noise), and measuring each target.

    Args:
        posterior: The present posterior.
        targets: Points to cover. Shape (n,).
        xi: Standard deviation to reach, in the units of f.
        candidates: Table of possible measurements at all sites, without travel.
    """
    sites = np.flatnonzero(targets)
    wide = sites[posterior.variance[sites] > xi * xi]
    if len(wide) == 0:
        return 0.0
    # The level that buys most precision.
    level = np.argmin(candidates.noise * candidates.cost, axis=1)
    rows = np.arange(len(level))
    noise = candidates.noise[rows, level]
    cost = candidates.cost[rows, level]
    best = float((cost[wide] * np.maximum(1.0, np.ceil(noise[wide] / (xi * xi)))).sum())
    repeats = 1.0
    while cost.min() * repeats < best and noise.max() / repeats > xi * xi / 16:
        best = min(best, _greedy_cost(posterior, sites, xi, noise / repeats, cost * repeats, best))
        repeats *= 2
    return min(best, _greedy_cost(posterior, sites, xi, noise / repeats, cost * repeats, best))


def _greedy_cost(
    posterior: Posterior, sites: Index, xi: float, noise: Array, cost: Array, limit: float
) -> float:
    """Return the cost of covering the sites greedily; infinity from `limit` on."""
    variance = posterior.variance.copy()
    t = posterior.n_observed
    v = np.empty((t + _MAX_COVER_STEPS, len(variance)))
    v[:t] = posterior.factor.v[:t]
    spent = 0.0
    for row in range(t, t + _MAX_COVER_STEPS):
        widest = sites[np.argmax(variance[sites])]
        if variance[widest] <= xi * xi:
            return spent
        covariance = posterior.prior_covariance(widest) - v[:row, widest] @ v[:row]
        d = variance + noise
        # Elsewhere the value is known exactly.
        informative = d > EXACT_VARIANCE_SHARE * posterior.scale**2
        reduction = np.divide(covariance**2, d, out=np.zeros_like(d), where=informative)
        x = int(np.argmax(np.minimum(reduction, variance[widest]) / cost))
        spent += float(cost[x])
        if spent >= limit:
            break
        covariance = posterior.prior_covariance(x) - v[:row, x] @ v[:row]
        v[row] = covariance / np.sqrt(variance[x] + noise[x])
        variance = np.maximum(variance - v[row] ** 2, 0.0)
    return np.inf


def information_bound(posterior: Posterior, steps: int, candidates: Candidates) -> float:
    """Return an upper bound on gamma_T, the most information of T measurements: greedy / (1 - 1/e).

    Args:
        posterior: Gives kernel and sites; observations are not used.
        steps: T.
        candidates: Table of possible measurements at all sites.

    Raises:
        InvalidModelError: If a measurement has no noise.
    """
    noise = candidates.noise.min(axis=1)
    if (noise <= 0).any():
        raise InvalidModelError(
            "gamma_T is infinite without noise; give every measurement a noise variance > 0"
        )
    variance = np.asarray(posterior.kernel.diag(posterior.sites), dtype=float).copy()
    v = np.empty((steps, len(variance)))
    information = 0.0
    for row in range(steps):
        x = int(np.argmax(variance / noise))
        information += 0.5 * float(np.log1p(variance[x] / noise[x]))
        covariance = posterior.prior_covariance(x) - v[:row, x] @ v[:row]
        v[row] = covariance / np.sqrt(variance[x] + noise[x])
        variance = np.maximum(variance - v[row] ** 2, 0.0)
    return float(information / (1 - np.exp(-1)))
