"""The covering problem behind TruVaR: excess variance, its reduction, and what an epoch can cost at most.

| paper | here | shape |
|---|---|---|
| tau = eta^2 / beta (x prior variance) | `tau` | |
| g_{t,max}, excess variance | `excess` summed | (n,) |
| g_t({x}) | `truncated_reduction` | (c, K) |
| C*(xi, M) | `cover_cost`: an upper bound by greedy covering | |
| gamma_T | `information_bound`: an upper bound by greedy choice | |

With e_j = max(0, sigma_j^2 - tau), max{s, tau} - max{s - D, tau} = min(D, e_j): truncated rows vanish exactly.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from truvar._numba import truncated
from truvar._typing import Array, Index, Mask
from truvar.domain.candidates import Candidates
from truvar.engines import Engine
from truvar.exceptions import TruvarError
from truvar.models.posterior import EXACT, Posterior

TILE, ENTRIES = 512, 1 << 25  # places looked at at a time, and numbers of a tile, at most


def excess(variance: Array, tau: float) -> Array:
    """By how much each variance exceeds the truncation (the summands of g_{t,max})."""
    return np.maximum(variance - tau, 0.0)


def truncated_reduction(
    engine: Engine, targets: Mask, tau: float, candidates: Candidates, only_best: bool = False
) -> Array:
    """g_t({x}) of every candidate: how much truncated variance over the targets observing it would remove. (c, K)

    `only_best`: just the candidate with the highest g_t / cost is wanted; the others may be given as anything between
    their own g_t and what keeps them below it.
    """
    posterior = engine.posterior
    e = excess(posterior.pending_variance[: len(targets)], tau)
    active = np.flatnonzero(targets & (e > 0))
    e = e[active]
    d = posterior.candidate_variance(candidates)[:, None] + candidates.noise
    if len(active) == 0:
        return np.zeros_like(d)
    if candidates.sites is not None and len(d) < len(posterior.sites):
        sums = engine.sums_at(active, e, candidates.sites, d)
    elif candidates.sites is None:
        sums = np.zeros_like(d)
        for tile, covariance in covariance_tiles(engine, active, candidates):
            truncated.truncated_sums(covariance, e, d[tile], sums[tile])
    elif only_best:
        sums = engine.best_sums(active, e, d, _over(1.0, d) / candidates.cost)
    else:
        sums = engine.sums(active, e, d)
    return _over(sums, d)


def _over(value: Array | float, d: Array) -> Array:
    """value / d; zero where d is: nothing is left to learn there."""
    if d.min() > 0:
        return np.asarray(value / d)
    return np.divide(value, d, out=np.zeros_like(d), where=d > 0)


def covariance_tiles(engine: Engine, rows: Index, candidates: Candidates) -> Iterator[tuple[slice, Array]]:
    """Cov(rows, candidates' places), a tile of places at a time, whatever the candidates are."""
    count = len(candidates.points)
    everywhere = candidates.sites is not None and count == len(engine.posterior.sites)
    size = min(TILE, max(1, ENTRIES // max(len(rows), 1)))
    for start in range(0, count, size):
        tile = slice(start, min(start + size, count))
        if everywhere:
            yield tile, engine.covariance(rows, tile)
        else:
            part = candidates if count <= size else candidates.take(np.arange(tile.start, tile.stop))
            yield tile, engine.posterior.covariance(rows, part)


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
