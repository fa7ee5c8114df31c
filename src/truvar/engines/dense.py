"""The dense engine: the posterior covariance between targets and sites, kept up to date by rank-one steps.

| paper | here | shape |
|---|---|---|
| Cov_{t-1}(M, x) | `_matrix`, the rows of the targets in use | (n, m) |
| e_j = sigma_j^2 - eta^2 / beta | `excess` | (a,) |
| d_x = sigma_x^2 + noise | `predictive` | (m,) |

A measurement changes Cov by -u u^T. The update and the sums of min(C_jx^2, e_j d_x) are made in one pass over memory,
over the active rows alone: rows outside M or below the truncation contribute exactly zero. A row that was left behind
is brought up to date by one matrix product when it is needed again.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.blas import dgemm

from truvar._engine import compiled
from truvar._engine.threads import run_tiles
from truvar.actions import Index
from truvar.domain import Array
from truvar.engines.rounding import TIE
from truvar.posterior import Posterior

TILE = 2500  # columns at a time: their sums, u and d stay in the second-level cache
BLOCK = 512  # rows brought up to date at a time
UNBUILT = -1
RESCORE = 64  # candidates scored exactly at a time, most promising first
ROUNDING = 1e-11  # covers that of a sum of n positive terms, n eps, to n = 40000


class Dense:
    """Cov(targets, sites) given what was told and is pending. Owns its matrix; follows the posterior it is made for."""

    def __init__(self, posterior: Posterior, single: bool = False) -> None:
        """`single`: the matrix in single precision, half the memory; whatever could win is scored again in double."""
        self.posterior = posterior
        self.name = "dense32" if single else "dense"
        self._single = single
        self._largest = float(posterior.variance.max())  # no covariance exceeds the largest prior variance
        shape = posterior.targets, len(posterior.sites)
        self._matrix = np.empty(shape, np.float32 if single else np.float64)  # pages are touched where a row is built
        self._applied = np.full(posterior.targets, UNBUILT)  # how many steps each row has seen
        self._serials: list[int] = []  # of the steps that some row may have seen
        self._pending: dict[int, Array] = {}  # u of those that were pending then, to take them back
        self._stores = 0  # how often an entry may have been rounded to the matrix's precision
        self._level = 0  # the noise level that is scored in full: the one that won last

    def sums(self, rows: Index, excess: Array, predictive: Array) -> Array:
        return np.stack([self._pass(rows, excess, d) for d in np.ascontiguousarray(predictive.T)], axis=1)

    def sums_at(self, rows: Index, excess: Array, sites: Index, predictive: Array) -> Array:
        return self.posterior.factor.sums(over_targets(self.posterior, rows, excess), sites, predictive)

    def best_sums(self, rows: Index, excess: Array, predictive: Array, worth: Array) -> Array:
        """One level in full, the others only where they could win.

        S(d) = sum of min(C^2, e d) grows with d, and S(d) / d falls, so one level bounds every other:
        S(d_k) <= S(d_0) max(1, d_k / d_0).
        """
        d_0 = np.ascontiguousarray(predictive[:, self._level])
        own = self._pass(rows, excess, d_0)
        if predictive.shape[1] == 1 and not self._single:
            return own[:, None]
        ratio = np.divide(predictive, d_0[:, None], out=np.ones_like(predictive), where=d_0[:, None] > 0)
        most = (np.sqrt(own) + np.sqrt(len(rows)) * self._lost) ** 2 * (1 + ROUNDING)
        sums = most[:, None] * np.maximum(1.0, ratio)
        exact = np.zeros(sums.shape, bool)
        if not self._single:
            sums[:, self._level], exact[:, self._level] = own, True
        scores = sums * worth
        while True:  # the most promising first, until no bound reaches the best that is certain
            best = scores[exact].max(initial=0.0)
            rest = np.where(exact, -np.inf, scores)
            count = RESCORE if exact.any() else 1
            first = np.argpartition(-rest, min(count, rest.size - 1), axis=None)[:count]
            x, k = np.unravel_index(first, rest.shape)
            contends = rest[x, k] >= best * (1 - TIE)
            if not contends.any() or not rest[x, k].max() > 0:
                self._level = int(scores.max(axis=0).argmax())
                return np.asarray(sums)
            x, k = x[contends], k[contends]
            sums[x, k] = self._column_sums(rows, x, excess, predictive[x, k])
            scores[x, k], exact[x, k] = sums[x, k] * worth[x, k], True

    def covariance(self, rows: Index, sites: slice) -> Array:
        self._follow()
        self._bring(rows, len(self._serials))
        return np.ascontiguousarray(self._matrix[rows, sites], dtype=float)

    def _pass(self, rows: Index, excess: Array, predictive: Array) -> Array:
        """Per site x: the sum over the rows j of min(C_jx^2, e_j d_x), with d (m,). One pass over the rows. (m,)"""
        u, step = self._ready(rows)
        out = np.zeros(len(u))

        def work(tile: slice) -> None:
            compiled.fused_scores(self._matrix, rows, step, u, excess, predictive, tile.start, tile.stop, out)

        tiles = (slice(start, min(start + TILE, len(u))) for start in range(0, len(u), TILE))
        run_tiles(work, tiles, len(rows) * len(u))
        self._applied[rows] = len(self._serials)
        self._stores += 1
        return out

    @property
    def _lost(self) -> float:
        """By how much an entry can be off: a rounding per store. min(|C|, cap) moves by no more than |C|, the norm of
        a entries by no more than sqrt(a) times an entry."""
        return self._stores * 2.0**-24 * self._largest if self._single else 0.0

    def _column_sums(self, rows: Index, columns: Index, excess: Array, predictive: Array) -> Array:
        """The same for a few sites, with d per column, in double precision; the rows are up to date."""
        out = np.zeros(len(columns))
        if self._single:
            v, sites = self.posterior.v, self.posterior.sites
            covariance = self.posterior.k(sites[rows], sites[columns]) - v[:, rows].T @ v[:, columns]
            compiled.truncated_sums(covariance, excess, predictive[:, None], out[:, None])
        else:
            compiled.column_sums(self._matrix, rows, columns, excess, predictive, out)
        return out

    def _ready(self, rows: Index) -> tuple[Array, Array]:
        """Brings the rows to within one step of the posterior: that step's u, and at each row what is left to make."""
        self._follow()
        steps = len(self._serials)
        self._bring(rows, max(steps - 1, 0))
        if steps == 0:
            return np.zeros(self._matrix.shape[1]), np.zeros(len(rows))
        u = self.posterior.v[steps - 1]
        return u, np.where(self._applied[rows] < steps, u[rows], 0.0)

    def _bring(self, rows: Index, goal: int) -> None:
        """Every row has seen at least the first `goal` steps."""
        applied = self._applied[rows]
        if goal > 0:
            self._step(rows[applied == goal - 1], goal - 1)
        for late in (rows[applied == UNBUILT], rows[(applied != UNBUILT) & (applied < goal - 1)]):
            for start in range(0, len(late), BLOCK):
                self._catch_up(late[start : start + BLOCK], goal)
        self._stores += 1

    def _step(self, rows: Index, step: int) -> None:
        """One step of rows that have seen all before it, in one pass over memory."""
        u, nothing = self.posterior.v[step], np.zeros(self._matrix.shape[1])
        for start in range(0, len(u) if len(rows) else 0, TILE):
            stop = min(start + TILE, len(u))
            unused = np.zeros(len(rows))
            compiled.fused_scores(self._matrix, rows, u[rows], u, unused, nothing, start, stop, nothing)
        self._applied[rows] = step + 1

    def _catch_up(self, rows: Index, goal: int) -> None:
        """All the steps that some rows have missed, be they different ones, as one product."""
        posterior, applied = self.posterior, np.maximum(self._applied[rows], 0)
        if self._applied[rows[0]] == UNBUILT:
            block = posterior.k(posterior.sites[rows], posterior.sites)
        else:
            block = self._matrix[rows].astype(float)
        first = int(applied.min())
        if goal > first:
            missed = posterior.v[first:goal]
            shares = np.where(np.arange(first, goal)[:, None] >= applied, missed[:, rows], 0.0)
            # block -= shares.T @ missed, in place: BLAS sees the transposes, which are in its order
            dgemm(-1.0, missed.T, shares.T, beta=1.0, c=block.T, trans_b=1, overwrite_c=1)
        self._matrix[rows] = block
        self._applied[rows] = goal

    def _follow(self) -> None:
        """Takes back the steps that the posterior has dropped, and notes the new ones."""
        posterior, now = self.posterior, self.posterior.serials
        kept = len(self._serials)
        if now[:kept] != self._serials:
            pairs = enumerate(zip(self._serials, now, strict=False))
            kept = next((i for i, (old, new) in pairs if old != new), min(kept, len(now)))
        dropped = self._serials[kept:]
        for applied in np.unique(self._applied[self._applied > kept]):
            rows = np.flatnonzero(self._applied == applied)
            undone = np.stack([self._pending[serial] for serial in dropped[: applied - kept]])
            self._matrix[rows] += undone[:, rows].T @ undone
            self._applied[rows] = kept
            self._stores += 1
        self._serials = list(now)
        self._pending = {
            serial: self._pending[serial] if serial in self._pending else posterior.v[i].copy()
            for i, serial in enumerate(now[posterior.told :], start=posterior.told)
        }


def over_targets(posterior: Posterior, rows: Index, excess: Array) -> Array:
    """The excess of some rows as that of all targets, zero elsewhere. (n,)"""
    e = np.zeros(posterior.targets)
    e[rows] = excess
    return e
