"""The dense engine: the posterior covariance between targets and sites as a matrix (`matrix.py`), for domains of up to
some ten thousand points.

For a choice the matrix is kept in single precision, which takes half the memory and half the time of a pass; whatever
could be best within its rounding is scored again in double, from the factor. Where many are, as on a grid that is large
against the length-scale, a matrix in double is made instead.
"""

from __future__ import annotations

from contextlib import nullcontext
from functools import cached_property

import numpy as np

from truvar._engine.threads import blas_in_one_thread
from truvar.actions import Index
from truvar.domain import Array
from truvar.engines.matrix import Matrix
from truvar.engines.rounding import TIE, settle
from truvar.posterior import Posterior

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
        """One level in full, the others only where they could win.

        S(d) = sum of min(C^2, e d) grows with d, and S(d) / d falls, so one level bounds every other:
        S(d_k) <= S(d_0) max(1, d_k / d_0).
        """
        d_0 = np.ascontiguousarray(predictive[:, self._level])
        single = self._single and len(rows) > FEW
        matrix = self._single_matrix if single else self._matrix
        own = matrix.sums(rows, excess, d_0)
        most = own * (1 + ROUNDING)
        if single:
            most = matrix.at_most(own, len(rows))
            self._lost -= SAVED * len(rows) * len(own)
        sums = most[:, None]
        if predictive.shape[1] > 1:
            ratio = np.divide(predictive, d_0[:, None], out=np.ones_like(predictive), where=d_0[:, None] > 0)
            sums = sums * np.maximum(1.0, ratio)
        if not single:
            sums[:, self._level] = own
        bounds, best, count = sums * worth, 0.0, 1
        if not single:
            best, count = bounds[:, self._level].max(), RESCORE
            bounds[:, self._level] = CERTAIN
        e, alone = over_targets(self.posterior, rows, excess), single
        while len(first := _contenders(bounds, best, count)):  # until no bound reaches the best that is certain
            x, k = np.divmod(first, bounds.shape[1])
            if not single:
                sums[x, k] = matrix.column_sums(rows, x, excess, predictive[x, k])
            elif self._pays(len(rows) * len(x)):
                sums[x, k] = self._sums(e, x, predictive[x, k][:, None])[:, 0]
                alone = count == 1
            else:
                del matrix  # before there is another
                return self.best_sums(rows, excess, predictive, worth)
            scores, bounds[x, k], count = sums[x, k] * worth[x, k], CERTAIN, RESCORE
            if scores.max() > best:
                best, self._level = scores.max(), int(k[scores.argmax()])
        if not alone:  # else the best was scored by itself
            settle(sums, worth, lambda sites: self._sums(e, sites, predictive[sites]))
        return sums

    def covariance(self, rows: Index, sites: slice) -> Array:
        return self._matrix.block(rows, sites)

    def _sums(self, e: Array, sites: Index, predictive: Array) -> Array:
        """From the factor, with e of all targets (n,)."""
        with blas_in_one_thread() if len(sites) > 1 else nullcontext():
            return self.posterior.factor.sums(e, sites, predictive)

    def _pays(self, entries: int) -> bool:
        """Whether to form so many entries again, or to go on in double."""
        self._lost += entries
        if self._forced or self._lost <= PATIENCE * self.posterior.targets * len(self.posterior.sites):
            return True
        self._single = False
        del self._single_matrix
        return False


def _contenders(bounds: Array, best: float, count: int) -> Index:
    """Which bounds reach the best, flat; the highest of them if they are more than can be looked at at once."""
    flat = bounds.ravel()
    if count == 1:
        first = flat.argmax()
        return np.array([first] if flat[first] > 0 else [], np.intp)
    reach = np.flatnonzero(flat >= max(best * (1 - TIE), LEAST))
    return reach if len(reach) <= count else reach[np.argpartition(-flat[reach], count)[:count]]


def over_targets(posterior: Posterior, rows: Index, excess: Array) -> Array:
    """The excess of some rows as that of all targets, zero elsewhere. (n,)"""
    e = np.zeros(posterior.targets)
    e[rows] = excess
    return e
