"""Sums of min(C_jx^2, e_j d_x) for some candidates, straight from the factor: C_jx = k(j, x) - v_j . v_x.

A tile of rows at a time, so that nothing of the size of the matrix is ever held; tiles are shared between threads.
"""

from __future__ import annotations

import numpy as np

from truvar._engine import compiled
from truvar._engine.threads import run_tiles
from truvar.actions import Index
from truvar.domain import Array
from truvar.engines.products import KERNEL_ROUNDING, gamma
from truvar.posterior import Posterior

TILE = 2048  # rows at a time
COLUMNS = 4096  # sites at a time, where all of them are scored
ENTRIES = 1 << 24  # numbers held at a time
SUM_ROUNDING = gamma(2 * TILE)  # relative error of a sum by tiles, to four million rows


def sums_of(posterior: Posterior, rows: Index, excess: Array, sites: Index, predictive: Array) -> Array:
    """Over the rows with their excess (a,), for candidates at some sites (c,) with d (c, K). (c, K)"""
    most = ENTRIES // min(max(len(rows), 1), TILE)
    if len(sites) > most:
        parts = [slice(start, start + most) for start in range(0, len(sites), most)]
        return np.concatenate([sums_of(posterior, rows, excess, sites[part], predictive[part]) for part in parts])
    v, where = posterior.v, posterior.sites
    points, factor = where[sites], np.ascontiguousarray(v[:, sites].T)
    dense = 2 * len(rows) > posterior.targets  # it is quicker to sum over all: where e is zero there is nothing to add
    count, e = len(rows), excess
    if dense:
        count, e = posterior.targets, np.zeros(posterior.targets)
        e[rows] = excess
    tiles = [slice(start, min(start + TILE, count)) for start in range(0, count, TILE)]
    sums = np.zeros((len(tiles), *predictive.shape))

    def work(tile: slice) -> None:
        these: slice | Index = tile if dense else rows[tile]
        prior = np.ascontiguousarray(posterior.k(points, where[these]))
        explained = factor @ v[:, these]
        compiled.candidate_sums(prior, explained, e[tile], predictive, sums[tile.start // TILE])

    run_tiles(work, tiles, count * len(sites) * (1 + len(v) // 8))
    return np.asarray(sums.sum(axis=0))


def sums_everywhere(posterior: Posterior, rows: Index, excess: Array, predictive: Array) -> Array:
    """Over the rows with their excess (a,), at every site, with d (m, K). (m, K)"""
    v, where = posterior.v, posterior.sites
    out = np.zeros_like(predictive)
    for start in range(0, len(rows), TILE):
        these, e = rows[start : start + TILE], excess[start : start + TILE]
        points, factor = where[these], np.ascontiguousarray(v[:, these].T)

        def work(tile: slice, points: Array = points, factor: Array = factor, e: Array = e) -> None:
            covariance = np.ascontiguousarray(posterior.k(points, where[tile]))
            covariance -= factor @ v[:, tile]
            compiled.truncated_sums(covariance, e, predictive[tile], out[tile])

        tiles = [slice(begin, min(begin + COLUMNS, len(out))) for begin in range(0, len(out), COLUMNS)]
        run_tiles(work, tiles, len(these) * len(out) * (1 + len(v) // 8))
    return out


def losses_of(
    posterior: Posterior, near: Index, e: Array, sign: Array, sites: Index, predictive: Array
) -> tuple[Array, Array]:
    """What a bound gives away on some rows (`compiled.candidate_losses`), from below: e and sign over the targets (n,),
    candidates at some sites (c,) with d (c, K). (c, K), and the sums of squares (c,)"""
    v, where = posterior.v, posterior.sites
    prior = np.ascontiguousarray(posterior.k(where[sites], where[near]))
    explained = v[:, sites].T @ v[:, near]
    out, squares = np.empty_like(predictive), np.empty(len(sites))
    compiled.candidate_losses(prior, explained, e[near], sign[near], predictive, out, squares)
    return out, squares


def entry_error(posterior: Posterior, top: float) -> float:
    """How far a computed C_jx is from the exact one at most; `top` is the largest prior variance, |v_x|^2 below it."""
    return (gamma(posterior.rows + 8) + KERNEL_ROUNDING) * top
