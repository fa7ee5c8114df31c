"""The posterior covariance of targets and sites as a matrix, kept up to date by rank-one updates.

| paper | here | shape |
|---|---|---|
| Cov_{t-1}(M, x) | `_entries`, the rows of the targets in use | (n, m) |
| e_j = sigma_j^2 - eta^2 / beta | `excess` | (a,) |
| w_j, 1 in eq. (3) | `row_weights` | (a,) |
| d_x = sigma_x^2 + noise | `predictive` | (m,) |

A measurement changes Cov by -u u^T, one *step*. The update and the sums of w_j min(C_jx^2, e_j d_x)
are made in one pass over memory, over the active rows alone: rows outside M or below the truncation
contribute exactly zero. A row that was not updated for some steps is brought up to date by one
matrix product when it is needed again.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.blas import dgemm

from truvar._numba import truncated_sums
from truvar._numba.threads import run_tiles, tiles
from truvar._typing import Array, Index
from truvar.models.posterior import Posterior

TILE = 2500  # columns processed at a time: their sums, u and d stay in the second-level cache
BLOCK = 512  # rows brought up to date at a time
UNBUILT = -1  # number of steps of a row that has no entries yet
HALF_ULP = 2.0**-24  # largest relative rounding error in single precision
TINY = float(np.finfo(np.float32).tiny)
# relative error of a sum of ROWS terms in single precision, made by eights
SINGLE_SUM = 64 * HALF_ULP


class Matrix:
    """Cov(targets, sites) given the observations and the pending actions; follows a posterior.

    Args:
        posterior: Posterior to follow.
        single: Whether to keep the entries in single precision, which takes half the memory and
            half the time.
        most_rows: How many different targets will be used at most; None: all of them.
    """

    def __init__(self, posterior: Posterior, single: bool, most_rows: int | None = None) -> None:
        self.posterior = posterior
        self._type = np.float32 if single else np.float64
        # No covariance exceeds it.
        self._max_variance = float(np.max(posterior.kernel.diag(posterior.sites)))
        shape = posterior.n_targets if most_rows is None else most_rows, len(posterior.sites)
        self._entries = np.empty(shape, self._type)  # the system provides memory as rows are built
        # Row of each target, in the order they were built.
        self._line = np.zeros(posterior.n_targets, np.intp)
        self._n_built = 0
        # Number of steps that each row includes.
        self._applied = np.full(posterior.n_targets, UNBUILT)
        self._row_ids: list[int] = []  # of the steps that some row may include
        self._pending: dict[int, Array] = {}  # u of those that were pending, to undo them
        # How often an entry may have been rounded to the precision of the matrix.
        self._roundings = 0

    def has_room(self, rows: Index) -> bool:
        """Return whether these rows fit beside those that were used before."""
        return self._n_built + int((self._applied[rows] == UNBUILT).sum()) <= len(self._entries)

    def sums(
        self, rows: Index, excess: Array, predictive: Array, row_weights: Array | None = None
    ) -> Array:
        """Return sum_j w_j min(C_jx^2, e_j d_x) of every site, with d (m,), in one pass: (m,)."""
        self._follow()
        steps = len(self._row_ids)
        self._bring_up_to_date(rows, max(steps - 1, 0))
        lines = self._line[rows]
        out = np.zeros(self._entries.shape[1])
        u = self._row(steps - 1) if steps else np.zeros(len(out), self._type)
        step = np.where(self._applied[rows] < steps, u[rows], self._type(0))
        # d may become infinite, and then e must not be zero
        with np.errstate(over="ignore", under="ignore"):
            e = np.maximum(excess, TINY).astype(self._type, copy=False)
            d = predictive.astype(self._type, copy=False)
            w = self._typed_weights(len(rows), row_weights)

        def work(tile: slice) -> None:
            truncated_sums.fused_update_sums(
                self._entries, lines, step, u, e, w, d, tile.start, tile.stop, out
            )

        run_tiles(work, tiles(len(u), TILE), len(rows) * len(u))
        self._applied[rows] = steps
        self._roundings += 1
        return out

    def _typed_weights(self, n_rows: int, row_weights: Array | None) -> Array:
        """Return the weights of the rows in the precision of the matrix."""
        if row_weights is None:
            return np.ones(n_rows, self._type)
        return row_weights.astype(self._type, copy=False)

    def upper_bounds(self, sums: Array, total_weight: float) -> Array:
        """Return upper bounds on the exact sums, given sums of rows in single precision.

        Each time an entry is stored, it is rounded by half an ulp of the largest. The steps use a
        rounded u, and |u_j u_x| adds up to at most the largest entry over all of them: three times
        as much. One more covers numbers too small for single precision. The root of a sum is the
        norm of the vector w^1/2 min(|C|, (e d)^1/2), which changes by no more than w^1/2 C does.
        """
        entry_error = (self._roundings + 5) * HALF_ULP * (1 + 1e-6) * self._max_variance
        return np.asarray(
            (np.sqrt(sums * (1 + SINGLE_SUM)) + np.sqrt(total_weight) * entry_error) ** 2
        )

    def column_sums(
        self,
        rows: Index,
        columns: Index,
        excess: Array,
        predictive: Array,
        row_weights: Array | None = None,
    ) -> Array:
        """Return the sums of a few sites, with d per column; the rows must be up to date."""
        out = np.zeros(len(columns))
        weight = np.ones(len(rows)) if row_weights is None else row_weights
        truncated_sums.column_sums(
            self._entries, self._line[rows], columns, excess, weight, predictive, out
        )
        return out

    def block(self, rows: Index, sites: slice) -> Array:
        """Return Cov(rows, sites) for a slice of the sites: (a, c)."""
        self._follow()
        self._bring_up_to_date(rows, len(self._row_ids))
        return np.ascontiguousarray(self._entries[self._line[rows], sites])

    # -- following the posterior
    # ---------------------------------------------------------------------------------------

    def _row(self, step: int) -> Array:
        """Return u of a step."""
        return self.posterior.factor.row(step).astype(self._type, copy=False)

    def _bring_up_to_date(self, rows: Index, steps: int) -> None:
        """Make every row include at least the first `steps` steps."""
        applied = self._applied[rows]
        if applied.min(initial=steps) >= steps:
            return
        if steps > 0:
            self._apply_step(rows[applied == steps - 1], steps - 1)
        for late in (rows[applied == UNBUILT], rows[(applied != UNBUILT) & (applied < steps - 1)]):
            for block in tiles(len(late), BLOCK):
                self._catch_up(late[block], steps)
        self._roundings += 1

    def _apply_step(self, rows: Index, step: int) -> None:
        """Apply one step to rows that include all steps before it, in one pass over memory."""
        if len(rows) == 0:
            return
        u = self._row(step)
        lines = self._line[rows]
        # The sums of the compiled function are not wanted here.
        no_excess = np.zeros(len(rows), self._type)
        no_variance = np.zeros(len(u), self._type)
        no_sums = np.zeros(len(u))
        for tile in tiles(len(u), TILE):
            truncated_sums.fused_update_sums(
                self._entries,
                lines,
                u[rows],
                u,
                no_excess,
                no_excess,
                no_variance,
                tile.start,
                tile.stop,
                no_sums,
            )
        self._applied[rows] = step + 1

    def _catch_up(self, rows: Index, steps: int) -> None:
        """Apply all the steps that some rows lack, possibly different ones, as one product."""
        posterior = self.posterior
        applied = np.maximum(self._applied[rows], 0)
        if self._applied[rows[0]] == UNBUILT:
            self._line[rows] = np.arange(self._n_built, self._n_built + len(rows))
            self._n_built += len(rows)
            block = posterior.k(posterior.sites[rows], posterior.sites)
        else:
            block = self._entries[self._line[rows]].astype(float)
        first = int(applied.min())
        if steps > first:
            missed = posterior.factor.v[first:steps]
            shares = np.where(np.arange(first, steps)[:, None] >= applied, missed[:, rows], 0.0)
            # block -= shares.T @ missed, in place: BLAS sees the transposes, which are in its order
            dgemm(-1.0, missed.T, shares.T, beta=1.0, c=block.T, trans_b=1, overwrite_c=1)
        self._entries[self._line[rows]] = block
        self._applied[rows] = steps

    def _follow(self) -> None:
        """Undo the steps that the posterior has dropped, and note the new ones."""
        posterior = self.posterior
        now = posterior.row_ids
        if now[: len(self._row_ids)] != self._row_ids:
            self._undo(common_prefix_length(self._row_ids, now))
        self._row_ids = list(now)
        self._pending = {
            row_id: self._pending[row_id]
            if row_id in self._pending
            else posterior.factor.v[i].copy()
            for i, row_id in enumerate(now[posterior.n_observed :], start=posterior.n_observed)
        }

    def _undo(self, kept: int) -> None:
        """Make every row include no more than the first `kept` steps."""
        dropped = self._row_ids[kept:]
        for applied in np.unique(self._applied[self._applied > kept]):
            rows = np.flatnonzero(self._applied == applied)
            undone = np.stack([self._pending[row_id] for row_id in dropped[: applied - kept]])
            self._entries[self._line[rows]] += undone[:, rows].T @ undone
            self._applied[rows] = kept
        # One for the store, the others because steps with a rounded u are not undone exactly.
        self._roundings += 4


def common_prefix_length(some: list[int], others: list[int]) -> int:
    """Return how many elements two lists have in common at their start."""
    for i, (a, b) in enumerate(zip(some, others, strict=False)):
        if a != b:
            return i
    return min(len(some), len(others))
