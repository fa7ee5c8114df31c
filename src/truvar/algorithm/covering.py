"""Greedy upper bounds on covering costs and information gains, which the theoretical schedules of beta need.

| paper | here |
|---|---|
| C*(xi, M), the least cost of bringing sigma to xi on M | `cover_cost`: an upper bound by greedy covering |
| gamma_T, the most information of T measurements | `information_bound`: an upper bound by greedy choice |
"""

from __future__ import annotations

import numpy as np

from truvar._typing import Array, Index, Mask
from truvar.domain.candidates import Candidates
from truvar.exceptions import TruvarError
from truvar.models.posterior import EXACT, Posterior


def cover_cost(posterior: Posterior, targets: Mask, xi: float, candidates: Candidates, most: int = 256) -> float:
    """An upper bound on the cost of bringing sigma to `xi` on all targets, from what is known now.

    Any set of measurements that does it bounds C*. Tried: measuring, for m = 1, 2, 4, ..., the best place for the
    widest target m times over, greedily (m repeats are one measurement with an m-th of the noise), and measuring every
    target by itself. The cheapest wins.
    """
    sites = np.flatnonzero(targets)
    wide = sites[posterior.variance[sites] > xi * xi]
    if len(wide) == 0:
        return 0.0
    level = np.argmin(candidates.noise * candidates.cost, axis=1)  # the level that buys most precision
    rows = np.arange(len(level))
    noise, cost = candidates.noise[rows, level], candidates.cost[rows, level]
    best = float((cost[wide] * np.maximum(1.0, np.ceil(noise[wide] / (xi * xi)))).sum())
    repeats = 1.0
    while cost.min() * repeats < best and noise.max() / repeats > xi * xi / 16:
        best = min(best, _greedy(posterior, sites, xi, noise / repeats, cost * repeats, best, most))
        repeats *= 2
    return min(best, _greedy(posterior, sites, xi, noise / repeats, cost * repeats, best, most))


def _greedy(posterior: Posterior, sites: Index, xi: float, noise: Array, cost: Array, limit: float, most: int) -> float:
    """The cost of covering the sites greedily; infinite once it passes `limit` or takes more than `most` steps."""
    variance = posterior.variance.copy()
    t, m = posterior.n_observed, len(variance)
    v = np.empty((t + most, m))
    v[:t] = posterior.v[:t]
    spent = 0.0
    for row in range(t, t + most):
        widest = sites[np.argmax(variance[sites])]
        if variance[widest] <= xi * xi:
            return spent
        across = posterior.prior_covariance(widest) - v[:row, widest] @ v[:row]
        d = variance + noise
        known = d <= EXACT * posterior.scale**2  # without noise: nothing is left to learn there
        pays = np.minimum(np.divide(across**2, d, out=np.zeros_like(d), where=~known), variance[widest]) / cost
        x = int(np.argmax(pays))
        spent += float(cost[x])
        if spent >= limit:
            break
        across = posterior.prior_covariance(x) - v[:row, x] @ v[:row]
        v[row] = across / np.sqrt(variance[x] + noise[x])
        variance = np.maximum(variance - v[row] ** 2, 0.0)
    return np.inf


def information_bound(posterior: Posterior, steps: int, candidates: Candidates) -> float:
    """An upper bound on gamma_T, the most that `steps` measurements can tell about f: greedy / (1 - 1/e)."""
    noise = candidates.noise.min(axis=1)
    if (noise <= 0).any():
        raise TruvarError("gamma_T is infinite without noise; give every measurement a noise variance > 0")
    variance = np.asarray(posterior.kernel.diag(posterior.sites), dtype=float).copy()
    v = np.empty((steps, len(variance)))
    information = 0.0
    for row in range(steps):
        x = int(np.argmax(variance / noise))
        information += 0.5 * float(np.log1p(variance[x] / noise[x]))
        across = posterior.prior_covariance(x) - v[:row, x] @ v[:row]
        v[row] = across / np.sqrt(variance[x] + noise[x])
        variance = np.maximum(variance - v[row] ** 2, 0.0)
    return float(information / (1 - np.exp(-1)))
