"""The dense engine: the covariance of targets and sites as a matrix, up to about 10,000 points.

| symbol | here | shape |
|---|---|---|
| C_jx, posterior covariance of target j and site x | `Matrix` | (n, m) |
| e_j, d_xk | `excess` or `e`, `predictive` | (a,) or (n,), (m, K) |
| w_j, 1 in eq. (3) | `row_weights` or `w` | (a,) or (n,) |
| S_xk = sum over j of w_j min(C_jx^2, e_j d_xk) | `sums` | (m, K) |

For a choice the matrix is kept in single precision, which takes half the memory and half the time
of a pass. Candidates that could be best within its rounding are scored again in double precision,
from the factor. If there are many, as on a grid that is large against the length-scale, a matrix
in double precision is used instead.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import cached_property

import numpy as np

from truvar._numba.threads import blas_in_one_thread
from truvar._typing import Array, Index
from truvar.engines._matrix import Matrix
from truvar.engines.ties import NEAR_TIE, rescore_near_best
from truvar.models.posterior import Posterior

EXACT_BATCH = 64  # candidates scored exactly at a time, most promising first
# rows for which double precision costs little; their sums are often small against rounding
FEW_ROWS = 64
# prior variances up to this factor from 1 have squares within single precision
VARIANCE_RANGE = 1e8
# share of the work of forming entries in double precision that a pass in single precision saves
SINGLE_PASS_SAVING = 1 / 16
# matrices' worth of entries that may be formed again; the first steps on a grid have many ties
MAX_MATRICES_LOST = 3
SCORED = -np.inf  # replaces the bound of a candidate that has been scored exactly
SMALLEST_SCORE = np.nextafter(0.0, 1.0)
SUM_ERROR = 1e-11  # relative rounding error of a sum of n positive terms, n eps, up to n = 40,000


class Dense:
    """Engine that keeps the covariance matrix and follows a posterior.

    Args:
        posterior: Posterior to follow.
        single: Whether choices use a matrix in single precision; None: yes, until the candidates
            that had to be scored again have cost a few matrices in double precision more than
            single precision has saved.
    """

    def __init__(self, posterior: Posterior, single: bool | None = None) -> None:
        self.posterior = posterior
        self.name = {None: "dense", True: "dense32", False: "dense64"}[single]
        max_variance = float(np.max(posterior.kernel.diag(posterior.sites)))
        self._single = single is not False and 1 / VARIANCE_RANGE < max_variance < VARIANCE_RANGE
        self._forced = single is not None
        # entries formed again in double precision, minus those that single precision has saved
        self._loss = 0.0
        self._level = 0  # noise level that is scored in full: the one that won last

    @cached_property
    def _single_matrix(self) -> Matrix:
        return Matrix(self.posterior, single=True)

    @cached_property
    def _matrix(self) -> Matrix:
        return Matrix(self.posterior, single=False)

    def sums(
        self, rows: Index, excess: Array, predictive: Array, row_weights: Array | None = None
    ) -> Array:
        """Return the sums of every site and noise level, see `Engine.sums`."""
        levels = np.ascontiguousarray(predictive.T)
        return np.stack([self._matrix.sums(rows, excess, d, row_weights) for d in levels], axis=1)

    def sums_at(
        self,
        rows: Index,
        excess: Array,
        sites: Index,
        predictive: Array,
        row_weights: Array | None = None,
    ) -> Array:
        """Return the sums of some sites, see `Engine.sums_at`."""
        return self._exact_sums(
            weighted_targets(self.posterior, rows, excess, row_weights), sites, predictive
        )

    def best_sums(
        self,
        rows: Index,
        excess: Array,
        predictive: Array,
        weight: Array,
        row_weights: Array | None = None,
    ) -> Array:
        """Return sums of which only the best is wanted, see `Engine.best_sums`."""
        if self._single and len(rows) > FEW_ROWS:
            sums = self._best_in_single(rows, excess, predictive, weight, row_weights)
            if sums is not None:
                return sums
            self._single = False
            del self._single_matrix
        return self._best_in_double(rows, excess, predictive, weight, row_weights)

    def covariance(self, rows: Index, sites: slice) -> Array:
        """Return Cov(rows, sites), see `Engine.covariance`."""
        return self._matrix.block(rows, sites)

    def _exact_sums(self, targets: tuple[Array, Array], sites: Index, predictive: Array) -> Array:
        """Return the sums of some sites from the factor, with e and w of all targets, (n,) each."""
        with blas_in_one_thread() if len(sites) > 1 else nullcontext():
            return self.posterior.factor.sums(*targets, sites, predictive)

    def _best_in_double(
        self,
        rows: Index,
        excess: Array,
        predictive: Array,
        weight: Array,
        row_weights: Array | None,
    ) -> Array:
        """Score one noise level in full, and the others only where they could win."""
        matrix = self._matrix
        level = self._level
        own = matrix.sums(rows, excess, np.ascontiguousarray(predictive[:, level]), row_weights)
        sums = _bounds_of_levels(own * (1 + SUM_ERROR), predictive, level)
        sums[:, level] = own
        bounds = sums * weight
        best = float(bounds[:, level].max())
        bounds[:, level] = SCORED

        def score(x: Index, k: Index) -> Array:
            return matrix.column_sums(rows, x, excess, predictive[x, k], row_weights)

        self._score_best(sums, weight, bounds, best, score)
        targets = weighted_targets(self.posterior, rows, excess, row_weights)
        rescore_near_best(
            sums, weight, lambda sites: self._exact_sums(targets, sites, predictive[sites])
        )
        return sums

    def _best_in_single(
        self,
        rows: Index,
        excess: Array,
        predictive: Array,
        weight: Array,
        row_weights: Array | None,
    ) -> Array | None:
        """Score from bounds in single precision, and exactly where a candidate could win.

        Returns:
            The sums, or None if scoring candidates again takes more than single precision saves.
        """
        matrix = self._single_matrix
        level = self._level
        own = matrix.sums(rows, excess, np.ascontiguousarray(predictive[:, level]), row_weights)
        total_weight = float(len(rows)) if row_weights is None else float(row_weights.sum())
        sums = _bounds_of_levels(matrix.upper_bounds(own, total_weight), predictive, level)
        self._loss -= SINGLE_PASS_SAVING * len(rows) * len(own)
        limit = (MAX_MATRICES_LOST * self.posterior.n_targets * len(own) - self._loss) / len(rows)
        targets = weighted_targets(self.posterior, rows, excess, row_weights)

        def score(x: Index, k: Index) -> Array:
            return self._exact_sums(targets, x, predictive[x, k][:, None])[:, 0]

        count = self._score_best(
            sums, weight, sums * weight, 0.0, score, np.inf if self._forced else limit
        )
        self._loss += count * len(rows)
        if not self._forced and count > limit:
            return None
        if count > 1:  # a single candidate was scored alone already
            rescore_near_best(
                sums, weight, lambda sites: self._exact_sums(targets, sites, predictive[sites])
            )
        return sums

    def _score_best(
        self,
        sums: Array,
        weight: Array,
        bounds: Array,
        best: float,
        score: Callable[[Index, Index], Array],
        limit: float = np.inf,
    ) -> int:
        """Score candidates exactly, best bounds first, until no bound reaches the best exact score.

        Args:
            sums: Upper bounds on the sums, overwritten by the exact sums. (m, K)
            weight: Factor that turns a sum into a score. (m, K)
            bounds: Upper bounds on the scores, overwritten by `SCORED`. (m, K)
            best: The best exact score so far.
            score: Function that returns the exact sums of some sites at some noise levels.
            limit: Number of candidates after which to stop.

        Returns:
            How many were scored.
        """
        count = EXACT_BATCH if best > 0 else 1
        scored = 0
        while scored <= limit and len(first := _highest_bounds(bounds, best, count)):
            x, k = np.divmod(first, bounds.shape[1])
            sums[x, k] = score(x, k)
            scores = sums[x, k] * weight[x, k]
            bounds[x, k] = SCORED
            if scores.max() > best:
                best = float(scores.max())
                self._level = int(k[scores.argmax()])
            count = EXACT_BATCH
            scored += len(x)
        return scored


def _bounds_of_levels(sums: Array, predictive: Array, level: int) -> Array:
    """Return bounds on the sums of all noise levels from those of one: (m, K).

    S(d) = sum of min(C^2, e d) grows with d, and S(d) / d falls: S(d_k) <= S(d_0) max(1, d_k /
    d_0).
    """
    if predictive.shape[1] == 1:
        return sums[:, None]
    d_0 = predictive[:, level, None]
    ratio = np.divide(predictive, d_0, out=np.ones_like(predictive), where=d_0 > 0)
    return np.asarray(sums[:, None] * np.maximum(1.0, ratio))


def _highest_bounds(bounds: Array, best: float, count: int) -> Index:
    """Return the flat indices of bounds that reach the best score, at most the `count` highest."""
    flat = bounds.ravel()
    if count == 1:
        first = flat.argmax()
        return np.array([first] if flat[first] > 0 else [], np.intp)
    reaching = np.flatnonzero(flat >= max(best * (1 - NEAR_TIE), SMALLEST_SCORE))
    return (
        reaching
        if len(reaching) <= count
        else reaching[np.argpartition(-flat[reaching], count)[:count]]
    )


def over_targets(posterior: Posterior, rows: Index, values: Array) -> Array:
    """Return values of some rows as those of all targets, zero elsewhere: (n,)."""
    everywhere = np.zeros(posterior.n_targets)
    everywhere[rows] = values
    return everywhere


def weighted_targets(
    posterior: Posterior, rows: Index, excess: Array, row_weights: Array | None
) -> tuple[Array, Array]:
    """Return excess and weight, by default 1, of some rows as those of all targets: (n,) each."""
    e = over_targets(posterior, rows, excess)
    w = np.ones_like(e) if row_weights is None else over_targets(posterior, rows, row_weights)
    return e, w
