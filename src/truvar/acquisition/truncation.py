"""Excess variance and its reduction by a measurement: the sums behind eq. (3).

| paper | here | shape |
|---|---|---|
| tau = eta^2 / beta (x prior variance) | `tau` | |
| g_{t,max}, excess variance | `excess`, summed | (n,) |
| g_t({x}) | `truncated_reduction` | (c, K) |

With e_j = max(0, sigma_j^2 - tau), max{s, tau} - max{s - D, tau} = min(D, e_j): truncated rows
vanish exactly.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from truvar._numba import truncated_sums
from truvar._numba.threads import run_tiles, tiles
from truvar._typing import Array, Index, Mask
from truvar.acquisition.confidence import MIN_VARIANCE_SHARE
from truvar.domain.candidates import Candidates
from truvar.engines import Engine
from truvar.engines.ties import near_best
from truvar.models.posterior import Posterior

_TILE_ROWS = 512  # candidate rows looked at at a time, at most
_TILE_SITES = 2048  # candidates at a time where the rows are few
_TILE_ENTRIES = 1 << 25  # entries of a tile of the covariance matrix, at most


def excess(variance: Array, tau: float) -> Array:
    """Return by how much each variance exceeds the truncation, the summands of g_{t,max}."""
    return np.maximum(variance - tau, 0.0)


def truncated_reduction(
    engine: Engine, targets: Mask, tau: float, candidates: Candidates, only_best: bool = False
) -> Array:
    """Return g_t({x}): the reduction of truncated variance by measuring each candidate.

    Args:
        engine: Computes the sums.
        targets: Rows to sum over. Shape (n,).
        tau: Truncation of the variance.
        candidates: Table of candidates.
        only_best: Whether only the candidate with the highest g_t / effective cost matters; the
            others may then have any value between their own g_t and one that keeps them below it.

    Returns:
        g_t of every row and noise level. Shape (c, K).
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
            truncated_sums.truncated_sums(covariance, e, np.ones(len(e)), d[tile], sums[tile])
    elif only_best:
        sums = engine.best_sums(active, e, d, _divide(1.0, d) / candidates.effective_cost)
    else:
        sums = engine.sums(active, e, d)
    return _divide(sums, d)


def truncated_reduction_at(covariance: Array, variance: Array, tau: float, d: Array) -> Array:
    """Return g_t({x}) over targets that are not sites.

    Args:
        covariance: Covariance of the targets and the candidates. Shape (q, c).
        variance: Variance of the targets, given pending points. Shape (q,).
        tau: Truncation of the variance.
        d: Variance of a measurement of each candidate row and noise level. Shape (c, K).

    Returns:
        The reduction. Shape (c, K).
    """
    sums = np.zeros_like(d)
    truncated_sums.truncated_sums(
        covariance, excess(variance, tau), np.ones(len(variance)), d, sums
    )
    return _divide(sums, d)


def weighted_reduction(
    engine: Engine, rows: Index, weight: Array, candidates: Candidates, only_best: bool = False
) -> Array:
    """Return the weighted reduction of variance by each candidate, sum_j w_j C_jx^2 / d_x.

    C_jx^2 <= sigma_j^2 sigma_x^2 <= sigma_j^2 d_x, so that min(C_jx^2 / d_x, sigma_j^2) truncates
    nothing.

    Args:
        engine: Computes the sums.
        rows: Targets to sum over, with sigma^2 > 0. Shape (a,).
        weight: w of the rows. Shape (a,).
        candidates: Table of candidates.
        only_best: As in `truncated_reduction`.

    Returns:
        The reduction by every row and noise level; 0 where nothing is left to learn. Shape (c, K).
    """
    posterior = engine.posterior
    variance = posterior.pending_variance[rows]
    d = posterior.candidate_variance(candidates)[:, None] + candidates.noise
    inverse = _inverse_where_learnable(posterior, d)
    if len(rows) == 0:
        return np.zeros_like(d)
    if candidates.sites is not None and len(d) < len(posterior.sites):
        sums = engine.sums_at(rows, variance, candidates.sites, d, weight)
    elif candidates.sites is None:
        sums = np.zeros_like(d)
        for tile, covariance in covariance_tiles(engine, rows, candidates):
            truncated_sums.truncated_sums(covariance, variance, weight, d[tile], sums[tile])
    elif only_best:
        sums = engine.best_sums(rows, variance, d, inverse / candidates.effective_cost, weight)
    else:
        sums = engine.sums(rows, variance, d, weight)
    return np.asarray(sums * inverse)


def contrast_reduction(
    posterior: Posterior,
    rows: Index,
    weight: Array,
    leader: int | None,
    candidates: Candidates,
    only_best: bool = False,
) -> Array:
    """Return the weighted reduction of the variance of f_j - f_L, sum_j w_j (C_jx - C_Lx)^2 / d_x.

    Args:
        posterior: Gives the covariances. Rows are few, so that keeping them in an engine would not
            pay.
        rows: Targets to sum over. Shape (a,).
        weight: w of the rows. Shape (a,).
        leader: Position of L in the rows; None: without C_Lx.
        candidates: Table of candidates.
        only_best: Whether only the best candidate matters: its near-ties are scored again one by
            one, so that the choice does not depend on rounding.

    Returns:
        The reduction by every row and noise level; 0 where nothing is left to learn. Shape (c, K).
    """
    d = posterior.candidate_variance(candidates)[:, None] + candidates.noise
    inverse = _inverse_where_learnable(posterior, d)
    sums = np.empty(len(d))
    other = -1 if leader is None else leader
    is_whole_grid = candidates.sites is not None and len(sums) == len(posterior.sites)
    if is_whole_grid:
        points = posterior.sites[rows]
        columns = np.ascontiguousarray(posterior.factor.at(rows).T)

        def work(tile: slice) -> None:
            covariance = np.ascontiguousarray(posterior.k(points, posterior.sites[tile]))
            covariance -= columns @ posterior.factor.at(tile)
            truncated_sums.contrast_sums(covariance, weight, other, sums[tile])

        run_tiles(work, tiles(len(sums), _TILE_SITES), len(rows) * len(sums))
    else:
        for tile in tiles(len(sums), _TILE_SITES):
            part = candidates.take(np.arange(tile.start, tile.stop))
            across = posterior.covariance(rows, part)
            truncated_sums.contrast_sums(across, weight, other, sums[tile])
    gains = sums[:, None] * inverse
    if only_best and is_whole_grid:
        for row in near_best((gains / candidates.effective_cost).max(axis=1)):
            alone = posterior.covariance(rows, candidates.take(np.array([row])))
            truncated_sums.contrast_sums(alone, weight, other, sums[row : row + 1])
            gains[row] = sums[row] * inverse[row]
    return np.asarray(gains)


def contrast_variance(posterior: Posterior, rows: Index, leader: int) -> Array:
    """Return the variance of f_j - f_L over the rows, given pending points: (a,).

    L is the row at position `leader`.
    """
    column = np.zeros((1, 1))
    here = Candidates(
        posterior.sites[rows[leader]][None, :], column, column + 1.0, rows[leader : leader + 1]
    )
    with_leader = posterior.covariance(rows, here)[:, 0]
    variance = posterior.pending_variance[rows] - 2 * with_leader + with_leader[leader]
    variance[leader] = 0.0
    return np.asarray(np.maximum(variance, 0.0))


def _inverse_where_learnable(posterior: Posterior, d: Array) -> Array:
    """Return 1 / d, and 0 where a measurement is certain up to the noise of the arithmetic."""
    return np.divide(
        1.0, d, out=np.zeros_like(d), where=d > MIN_VARIANCE_SHARE * posterior.scale**2
    )


def _divide(value: Array | float, d: Array) -> Array:
    """Return value / d, and 0 where d is 0: nothing is left to learn there."""
    if d.min() > 0:
        return np.asarray(value / d)
    return np.divide(value, d, out=np.zeros_like(d), where=d > 0)


def covariance_tiles(
    engine: Engine, rows: Index, candidates: Candidates
) -> Iterator[tuple[slice, Array]]:
    """Yield slices of candidate rows with Cov(rows, those candidates), sites or not."""
    count = len(candidates.points)
    is_whole_grid = candidates.sites is not None and count == len(engine.posterior.sites)
    size = min(_TILE_ROWS, max(1, _TILE_ENTRIES // max(len(rows), 1)))
    for tile in tiles(count, size):
        if is_whole_grid:
            yield tile, engine.covariance(rows, tile)
        else:
            part = (
                candidates if count <= size else candidates.take(np.arange(tile.start, tile.stop))
            )
            yield tile, engine.posterior.covariance(rows, part)
