"""The posterior covariance between targets and sites as a matrix, kept up to date by rank-one steps.

| paper | here | shape |
|---|---|---|
| Cov_{t-1}(M, x) | `_entries`, the rows of the targets in use | (n, m) |
| e_j = sigma_j^2 - eta^2 / beta | `excess` | (a,) |
| d_x = sigma_x^2 + noise | `predictive` | (m,) |

A measurement changes Cov by -u u^T. The update and the sums of min(C_jx^2, e_j d_x) are made in one pass over memory,
over the active rows alone: rows outside M or below the truncation contribute exactly zero. A row that was left behind
is brought up to date by one matrix product when it is needed again.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.blas import dgemm

from truvar._numba import truncated_sums
from truvar._numba.threads import run_tiles
from truvar._typing import Array, Index
from truvar.engines.norms import common_start
from truvar.models.posterior import Posterior

TILE = 2500  # columns at a time: their sums, u and d stay in the second-level cache
BLOCK = 512  # rows brought up to date at a time
UNBUILT = -1
HALF_ULP = 2.0**-24  # what rounding to single precision takes from 1 at most
TINY = float(np.finfo(np.float32).tiny)
SINGLE_SUM = 64 * HALF_ULP  # relative error of a sum in single: of ROWS terms by eights, at most 7 alone, of each


class Matrix:
    """Cov(targets, sites) given what was told and is pending. Follows the posterior it is made for."""

    def __init__(self, posterior: Posterior, single: bool) -> None:
        """`single`: in single precision, half the memory and half the time."""
        self.posterior = posterior
        self._type = np.float32 if single else np.float64
        self._largest = float(np.max(posterior.kernel.diag(posterior.sites)))  # no covariance exceeds it
        shape = posterior.n_targets, len(posterior.sites)
        self._entries = np.empty(shape, self._type)  # pages are touched where a row is built
        self._line = np.zeros(posterior.n_targets, np.intp)  # where a target's row is: in the order they were built
        self._built = 0
        self._applied = np.full(posterior.n_targets, UNBUILT)  # how many steps each row has seen
        self._serials: list[int] = []  # of the steps that some row may have seen
        self._pending: dict[int, Array] = {}  # u of those that were pending then, to take them back
        self._stores = 0  # how often an entry may have been rounded to the matrix's precision

    def sums(self, rows: Index, excess: Array, predictive: Array) -> Array:
        """Per site x: the sum over the rows j of min(C_jx^2, e_j d_x), with d (m,). One pass over the rows. (m,)"""
        self._follow()
        steps = len(self._serials)
        self._bring(rows, max(steps - 1, 0))
        lines, out = self._line[rows], np.zeros(self._entries.shape[1])
        u = self._row(steps - 1) if steps else np.zeros(len(out), self._type)
        step = np.where(self._applied[rows] < steps, u[rows], self._type(0))
        with np.errstate(over="ignore", under="ignore"):  # d may be infinite, then e must not be zero
            e = np.maximum(excess, TINY).astype(self._type, copy=False)
            d = predictive.astype(self._type, copy=False)

        def work(tile: slice) -> None:
            truncated_sums.fused_update_sums(self._entries, lines, step, u, e, d, tile.start, tile.stop, out)

        tiles = (slice(start, min(start + TILE, len(u))) for start in range(0, len(u), TILE))
        run_tiles(work, tiles, len(rows) * len(u))
        self._applied[rows] = steps
        self._stores += 1
        return out

    def at_most(self, sums: Array, rows: int) -> Array:
        """What sums in single precision over so many rows can be in truth if they came out so.

        Each store rounds an entry by half an ulp of the largest. The steps are made with rounded u, and |u_j u_x| adds
        up to at most the largest over all of them: three times as much. One more stands for what is too small for
        single precision. The root of a sum is the norm of the vector min(|C|, (e d)^1/2), which moves by no more than
        C does.
        """
        entry = (self._stores + 5) * HALF_ULP * (1 + 1e-6) * self._largest
        return np.asarray((np.sqrt(sums * (1 + SINGLE_SUM)) + np.sqrt(rows) * entry) ** 2)

    def column_sums(self, rows: Index, columns: Index, excess: Array, predictive: Array) -> Array:
        """The same sums for a few sites, with d per column; the rows are up to date."""
        out = np.zeros(len(columns))
        truncated_sums.column_sums(self._entries, self._line[rows], columns, excess, predictive, out)
        return out

    def block(self, rows: Index, sites: slice) -> Array:
        """Cov(rows, sites) for a run of sites. (a, c)"""
        self._follow()
        self._bring(rows, len(self._serials))
        return np.ascontiguousarray(self._entries[self._line[rows], sites])

    # -- keeping up with the posterior ---------------------------------------------------------------------------------

    def _row(self, step: int) -> Array:
        """u of a step."""
        return self.posterior.factor.row(step).astype(self._type, copy=False)

    def _bring(self, rows: Index, goal: int) -> None:
        """Every row has seen at least the first `goal` steps."""
        applied = self._applied[rows]
        if applied.min(initial=goal) >= goal:
            return
        if goal > 0:
            self._step(rows[applied == goal - 1], goal - 1)
        for late in (rows[applied == UNBUILT], rows[(applied != UNBUILT) & (applied < goal - 1)]):
            for start in range(0, len(late), BLOCK):
                self._catch_up(late[start : start + BLOCK], goal)
        self._stores += 1

    def _step(self, rows: Index, step: int) -> None:
        """One step of rows that have seen all before it, in one pass over memory."""
        if len(rows) == 0:
            return
        u, lines = self._row(step), self._line[rows]
        unused, nothing, nowhere = np.zeros(len(rows), self._type), np.zeros(len(u), self._type), np.zeros(len(u))
        for start in range(0, len(u), TILE):
            stop = min(start + TILE, len(u))
            truncated_sums.fused_update_sums(self._entries, lines, u[rows], u, unused, nothing, start, stop, nowhere)
        self._applied[rows] = step + 1

    def _catch_up(self, rows: Index, goal: int) -> None:
        """All the steps that some rows have missed, be they different ones, as one product."""
        posterior, applied = self.posterior, np.maximum(self._applied[rows], 0)
        if self._applied[rows[0]] == UNBUILT:
            self._line[rows] = np.arange(self._built, self._built + len(rows))
            self._built += len(rows)
            block = posterior.k(posterior.sites[rows], posterior.sites)
        else:
            block = self._entries[self._line[rows]].astype(float)
        first = int(applied.min())
        if goal > first:
            missed = posterior.v[first:goal]
            shares = np.where(np.arange(first, goal)[:, None] >= applied, missed[:, rows], 0.0)
            # block -= shares.T @ missed, in place: BLAS sees the transposes, which are in its order
            dgemm(-1.0, missed.T, shares.T, beta=1.0, c=block.T, trans_b=1, overwrite_c=1)
        self._entries[self._line[rows]] = block
        self._applied[rows] = goal

    def _follow(self) -> None:
        """Takes back the steps that the posterior has dropped, and notes the new ones."""
        posterior, now = self.posterior, self.posterior.row_ids
        if now[: len(self._serials)] != self._serials:
            self._take_back(common_start(self._serials, now))
        self._serials = list(now)
        self._pending = {
            serial: self._pending[serial] if serial in self._pending else posterior.v[i].copy()
            for i, serial in enumerate(now[posterior.n_observed :], start=posterior.n_observed)
        }

    def _take_back(self, kept: int) -> None:
        """No row has seen more than the first `kept` steps."""
        dropped = self._serials[kept:]
        for applied in np.unique(self._applied[self._applied > kept]):
            rows = np.flatnonzero(self._applied == applied)
            undone = np.stack([self._pending[serial] for serial in dropped[: applied - kept]])
            self._entries[self._line[rows]] += undone[:, rows].T @ undone
            self._applied[rows] = kept
        self._stores += 4  # once for the store, and what was made with rounded u is not quite taken back
