"""The dense engine: the posterior covariance between targets and sites as a matrix (`matrix.py`), for domains of up to
some ten thousand points.

For a choice the matrix is kept in single precision, which takes half the memory and half the time of a pass; whatever
could be best within its rounding is scored again in double, from the factor. Where many are, as on a grid that is large
against the length-scale, a matrix in double is made instead.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import cached_property

import numpy as np

from truvar._numba.threads import blas_in_one_thread
from truvar._typing import Array, Index
from truvar.engines.matrix import Matrix
from truvar.engines.ties import NEAR_TIE, rescore_near_best
from truvar.models.posterior import Posterior

RESCORE = 64  # candidates scored exactly at a time, most promising first
FEW = 64  # rows that are kept in double anyhow: they cost little, and their sums are often small against rounding
RANGE = 1e8  # of prior variances: their squares are within single precision
SAVED = 1 / 16  # by a pass in single, as a share of what it takes to form as many entries in double
PATIENCE = 3  # matrices' worth of entries that may be formed again: the first steps on a grid have many ties
CERTAIN, LEAST = -np.inf, np.nextafter(0.0, 1.0)  # the bound of what is certain; the least score that is any
ROUNDING = 1e-11  # covers that of a sum of n positive terms, n eps, to n = 40000


class Dense:
    """Sums given what was told and is pending. Follows the posterior it is made for."""

    def __init__(self, posterior: Posterior, single: bool | None = None) -> None:
        """`single`: choices by a matrix in single precision, or by one in double; None: in single as long as that pays:
        until what had to be scored again has cost more than it has saved, by a few matrices in double."""
        self.posterior = posterior
        self.name = "dense" if single is None else "dense32" if single else "dense64"
        largest = float(np.max(posterior.kernel.diag(posterior.sites)))
        self._single = single is not False and 1 / RANGE < largest < RANGE
        self._forced = single is not None
        self._lost = 0.0  # by single precision, in entries formed again in double, less what it has saved
        self._level = 0  # the noise level that is scored in full: the one that won last

    @cached_property
    def _single_matrix(self) -> Matrix:
        return Matrix(self.posterior, single=True)

    @cached_property
    def _matrix(self) -> Matrix:
        return Matrix(self.posterior, single=False)

    def sums(self, rows: Index, excess: Array, predictive: Array) -> Array:
        return np.stack([self._matrix.sums(rows, excess, d) for d in np.ascontiguousarray(predictive.T)], axis=1)

    def sums_at(self, rows: Index, excess: Array, sites: Index, predictive: Array) -> Array:
        return self._sums(over_targets(self.posterior, rows, excess), sites, predictive)

    def best_sums(self, rows: Index, excess: Array, predictive: Array, worth: Array) -> Array:
        if self._single and len(rows) > FEW:
            sums = self._best_in_single(rows, excess, predictive, worth)
            if sums is not None:
                return sums
            self._single = False
            del self._single_matrix
        return self._best_in_double(rows, excess, predictive, worth)

    def covariance(self, rows: Index, sites: slice) -> Array:
        return self._matrix.block(rows, sites)

    def _sums(self, e: Array, sites: Index, predictive: Array) -> Array:
        """From the factor, with e of all targets (n,)."""
        with blas_in_one_thread() if len(sites) > 1 else nullcontext():
            return self.posterior.factor.sums(e, sites, predictive)

    def _best_in_double(self, rows: Index, excess: Array, predictive: Array, worth: Array) -> Array:
        """One level in full, the others only where they could win."""
        matrix, level = self._matrix, self._level
        own = matrix.sums(rows, excess, np.ascontiguousarray(predictive[:, level]))
        sums = _over_levels(own * (1 + ROUNDING), predictive, level)
        sums[:, level] = own
        bounds = sums * worth
        best = float(bounds[:, level].max())
        bounds[:, level] = CERTAIN
        self._look(sums, worth, bounds, best, lambda x, k: matrix.column_sums(rows, x, excess, predictive[x, k]))
        e = over_targets(self.posterior, rows, excess)
        rescore_near_best(sums, worth, lambda sites: self._sums(e, sites, predictive[sites]))
        return sums

    def _best_in_single(self, rows: Index, excess: Array, predictive: Array, worth: Array) -> Array | None:
        """The same from bounds alone, whatever could win scored in double; None: that takes more than it saves."""
        matrix, level = self._single_matrix, self._level
        own = matrix.sums(rows, excess, np.ascontiguousarray(predictive[:, level]))
        sums = _over_levels(matrix.at_most(own, len(rows)), predictive, level)
        self._lost -= SAVED * len(rows) * len(own)
        most = (PATIENCE * self.posterior.n_targets * len(own) - self._lost) / len(rows)
        e = over_targets(self.posterior, rows, excess)
        seen = self._look(
            sums,
            worth,
            sums * worth,
            0.0,
            lambda x, k: self._sums(e, x, predictive[x, k][:, None])[:, 0],
            np.inf if self._forced else most,
        )
        self._lost += seen * len(rows)
        if not self._forced and seen > most:
            return None
        if seen > 1:  # else the best was scored by itself
            rescore_near_best(sums, worth, lambda sites: self._sums(e, sites, predictive[sites]))
        return sums

    def _look(
        self,
        sums: Array,
        worth: Array,
        bounds: Array,
        best: float,
        again: Callable[[Index, Index], Array],
        most: float = np.inf,
    ) -> int:
        """Scores `again` sites at levels, the most promising first, until no bound reaches the best that is certain, or
        more than `most` were. How many."""
        count, seen = RESCORE if best > 0 else 1, 0
        while seen <= most and len(first := _contenders(bounds, best, count)):
            x, k = np.divmod(first, bounds.shape[1])
            sums[x, k] = again(x, k)
            scores, bounds[x, k] = sums[x, k] * worth[x, k], CERTAIN
            if scores.max() > best:
                best, self._level = float(scores.max()), int(k[scores.argmax()])
            count, seen = RESCORE, seen + len(x)
        return seen


def _over_levels(sums: Array, predictive: Array, level: int) -> Array:
    """Bounds of all levels from those of one. (m, K)

    S(d) = sum of min(C^2, e d) grows with d, and S(d) / d falls: S(d_k) <= S(d_0) max(1, d_k / d_0).
    """
    if predictive.shape[1] == 1:
        return sums[:, None]
    d_0 = predictive[:, level, None]
    ratio = np.divide(predictive, d_0, out=np.ones_like(predictive), where=d_0 > 0)
    return np.asarray(sums[:, None] * np.maximum(1.0, ratio))


def _contenders(bounds: Array, best: float, count: int) -> Index:
    """Which bounds reach the best, flat; the highest of them if they are more than can be looked at at once."""
    flat = bounds.ravel()
    if count == 1:
        first = flat.argmax()
        return np.array([first] if flat[first] > 0 else [], np.intp)
    reach = np.flatnonzero(flat >= max(best * (1 - NEAR_TIE), LEAST))
    return reach if len(reach) <= count else reach[np.argpartition(-flat[reach], count)[:count]]


def over_targets(posterior: Posterior, rows: Index, excess: Array) -> Array:
    """The excess of some rows as that of all targets, zero elsewhere. (n,)"""
    e = np.zeros(posterior.n_targets)
    e[rows] = excess
    return e
