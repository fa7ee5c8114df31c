"""Excess variance and its reduction by a measurement, the sums behind eq. (3).

| paper | here | shape |
|---|---|---|
| tau = eta^2 / beta (x prior variance) | `tau` | |
| g_{t,max}, excess variance | `excess` summed | (n,) |
| g_t({x}) | `truncated_reduction` | (c, K) |

With e_j = max(0, sigma_j^2 - tau), max{s, tau} - max{s - D, tau} = min(D, e_j): truncated rows vanish exactly.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from truvar._numba import truncated_sums
from truvar._typing import Array, Index, Mask
from truvar.domain.candidates import Candidates
from truvar.engines import Engine

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
            truncated_sums.truncated_sums(covariance, e, d[tile], sums[tile])
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
