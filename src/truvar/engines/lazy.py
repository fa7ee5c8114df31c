"""The matrix-free engine: the best candidate by bounds from V, for up to a million points.

| symbol | here | shape |
|---|---|---|
| C_jx = k(j, x) - v_j . v_x | formed for a few candidates at a time | (c, a) |
| S_x = sum over A of w_j min(C_jx^2, e_j d_x) | wanted where S_x weight_x is highest | (m, K) |
| A, the active targets; e | `rows`; `excess`, or `e`, which is zero outside A | (a,); (a,), (n,) |
| w, 1 in eq. (3) | `row_weights`, or `w` | (a,), (n,) |
| square root of an upper bound on S_x | `Lazy.roots` | (m, K) |
| q_x = sum over j of b_j C_jx^2, for some weights b | `ColumnNorms.upper` | (m,) |
| u, the row that a measurement adds to the factor | `factor.row(i)` | (m,) |

There are five bounds, each good where the others are not; the roots keep the least of them. Where
they leave many candidates and few targets are active, the rows of Cov of these are kept as a matrix
instead (`_sums_by_matrix`).

  norm       S_x <= q_x + d_x sum over j of max(w_j - b_j, 0) e_j
  cap        S_x <= d_x (sum of w e)
  locality   S_x <= the norm bound minus its gap on rows near x: truncation is local, so that this
  comes close Lipschitz  a measurement changes S_x^(1/2) by at most |u_x| |w^(1/2) u_A|, so that a
  bound once found stays useful nodes      weighted sums without truncation, interpolated from a few
  thousand nodes: see `nodes.py` for a squared
             exponential kernel, `lattice.py` for Matern 5/2 on a regular grid

`search.py` finds the best candidate with them. Every bound includes what rounding can do to it
(`engines._rounding`).
"""

from __future__ import annotations

import numpy as np

from truvar._numba.threads import blas_in_one_thread
from truvar._typing import Array, Index
from truvar.domain.domain import Domain
from truvar.engines._dense import weighted_targets
from truvar.engines._lattice import LatticeBounds, lattice_bounds
from truvar.engines._matrix import Matrix, common_prefix_length
from truvar.engines._nodes import NodeBounds, node_bounds
from truvar.engines._norms import Cells, ColumnNorms
from truvar.engines._products import PriorProduct, prior_product
from truvar.engines._rounding import SUM_ROUNDING, gamma
from truvar.engines.search import BUDGET, KERNEL_COST, READ_COST, Search, excess_outside, norm_bound
from truvar.engines.ties import rescore_near_best
from truvar.exceptions import InvalidArgumentError
from truvar.models.kernels import Coregionalized, stationary_form
from truvar.models.posterior import Posterior

# sites; beyond, TOLERANCE is accepted where exactness would take more than the budget
MAX_EXACT_SITES = 131_072
TOLERANCE = 0.02  # share of the chosen score by which the best may exceed it
# norms that take more than this share of scoring every candidate in full are not computed
MAX_NORMS_COST_SHARE = 1.0
# operations that norms with the weights of one choice may take in a search within a tolerance
_MAX_RENEWAL_COST = 3e10
_MAX_LEFT = 512  # candidates that bounds from nodes may leave to be scored in full
_TYPICAL_LEFT = 32  # how many they leave mostly
# share of the tolerance by which upper bounds may exceed the best estimate
_BOUND_TOLERANCE_SHARE = 0.8
_MAX_ERROR = 0.25  # relative error up to which an estimate counts for the best
# candidates scored in full for one choice from which on a matrix of the active rows is kept
MIN_SCORED_FOR_MATRIX = 1024
MAX_ENTRIES = 1 << 25  # of that matrix: 256 MB
_MAX_EXCESS_SHARE_OUTSIDE = (
    0.02  # share of the excess that may lie outside the targets of the norms
)


class Lazy:
    """Engine that finds the best candidate by bounds and follows a posterior.

    Args:
        posterior: Posterior to follow.
        domain: Domain of the study.
        tolerance: Accepted gap between the choice and the best, as a share of the score of the
            choice. None: 0 up to 131,072 sites, 0.02 beyond. It is used only once the budget is
            spent.
        budget: Work for one choice before the tolerance is used, in candidates scored in full. With
            a tolerance the search ends soon after: the best of the candidates examined most closely
            is taken, whatever the gap.

    Attributes:
        optimality_gap: No candidate is better than the last choice by more than this share of its
            score.
        rescored: Number of candidates scored in full for the last choice.
        max_variance: Largest prior variance.
        roots: Square roots of upper bounds on the sums. (m, K)
        last_sums: Last known sums or bounds, a guess where the best candidate will be. (m, K)
        work: Operations spent on single candidates since the norms were last computed.
    """

    name = "lazy"

    def __init__(
        self,
        posterior: Posterior,
        domain: Domain,
        tolerance: float | None = None,
        budget: int = BUDGET,
    ) -> None:
        if tolerance is not None and not 0 <= tolerance < 1:
            raise InvalidArgumentError(
                f"tolerance must be a share between 0 and 1, got {tolerance!r}; give one such as "
                "0.02"
            )
        if tolerance is None:
            tolerance = TOLERANCE if len(posterior.sites) > MAX_EXACT_SITES else 0.0
        self.posterior = posterior
        self.domain = domain
        self.tolerance = tolerance
        self.budget = budget
        self.optimality_gap = 0.0
        self.rescored = 0
        self.max_variance = float(np.asarray(posterior.kernel.diag(posterior.sites)).max())
        self.roots = np.empty((0, 0))
        self.last_sums = np.empty((0, 0))
        self.work = 0.0
        # e, w and d for which the roots are bounds
        self._valid_for: tuple[Array, Array, Array] | None = None
        self._row_ids: list[int] = []  # of the steps that the roots include
        self._pending: dict[int, Array] = {}  # u of those that were pending
        # Norms over the targets that were active first, and over fewer, where that has paid.
        self._norms: list[ColumnNorms] = []
        self._structure_cache: tuple[PriorProduct, Cells] | None = None
        self._nodes_cache: tuple[NodeBounds | LatticeBounds | None] | None = None
        self._active_rows: Matrix | None = None  # Cov(active targets, sites), where they are few

    # -- protocol of engines
    # -------------------------------------------------------------------------------------------

    def sums(
        self, rows: Index, excess: Array, predictive: Array, row_weights: Array | None = None
    ) -> Array:
        """Return the sums of every site, see `Engine.sums`; slow, for inspection."""
        e, w = weighted_targets(self.posterior, rows, excess, row_weights)
        with blas_in_one_thread():
            return self.posterior.factor.sums_everywhere(e, w, predictive)

    def sums_at(
        self,
        rows: Index,
        excess: Array,
        sites: Index,
        predictive: Array,
        row_weights: Array | None = None,
    ) -> Array:
        """Return the sums of some sites, see `Engine.sums_at`."""
        e, w = weighted_targets(self.posterior, rows, excess, row_weights)
        with blas_in_one_thread():
            return self.posterior.factor.sums(e, w, sites, predictive)

    def best_sums(
        self,
        rows: Index,
        excess: Array,
        predictive: Array,
        weight: Array,
        row_weights: Array | None = None,
    ) -> Array:
        """Return sums of which only the best is wanted, see `Engine.best_sums`."""
        e, w = weighted_targets(self.posterior, rows, excess, row_weights)
        with blas_in_one_thread():
            matrix = self._rows_as_matrix(rows)
            if matrix is not None:
                sums = self._sums_by_matrix(matrix, rows, e, w, predictive)
            else:
                sums = self._search(rows, e, w, predictive, weight, row_weights is not None)
            # Otherwise the choice depends on the candidates examined before anyhow.
            if self.tolerance == 0:
                rescore_near_best(
                    sums,
                    weight,
                    lambda sites: self.posterior.factor.sums(e, w, sites, predictive[sites]),
                )
            return sums

    def _search(
        self, rows: Index, e: Array, w: Array, predictive: Array, weight: Array, weighted: bool
    ) -> Array:
        """Return the sums of the choice that a search by bounds finds, see `Engine.best_sums`."""
        self._follow(e, w, predictive)
        decided = weighted and self._tighten_by_nodes(rows, e, w, predictive, weight)
        norms = None if decided else self._norms_for(len(rows), e, w, weighted)
        self._tighten(norms, e, w, predictive)
        return Search(self, norms, rows, e, w, predictive, weight, decided).run()

    def covariance(self, rows: Index, sites: slice) -> Array:
        """Return Cov(rows, sites), see `Engine.covariance`."""
        factor = self.posterior.factor
        points = self.posterior.sites
        return np.asarray(
            self.posterior.k(points[rows], points[sites]) - factor.at(rows).T @ factor.at(sites)
        )

    def _rows_as_matrix(self, rows: Index) -> Matrix | None:
        """Return Cov of the active rows as a matrix, if they are few and bounds have not helped."""
        posterior = self.posterior
        matrix = self._active_rows
        if len(rows) * len(posterior.sites) > MAX_ENTRIES or not posterior.factor.local:
            matrix = None
        elif (
            (self.rescored >= MIN_SCORED_FOR_MATRIX)
            if matrix is None
            else not matrix.has_room(rows)
        ):
            matrix = Matrix(posterior, single=False, most_rows=MAX_ENTRIES // len(posterior.sites))
        self._active_rows = matrix
        return matrix

    def _sums_by_matrix(
        self, matrix: Matrix, rows: Index, e: Array, w: Array, predictive: Array
    ) -> Array:
        """Return the sums of every candidate by a matrix of the active rows: (m, K)."""
        levels = [
            matrix.sums(rows, e[rows], predictive[:, k], w[rows])
            for k in range(predictive.shape[1])
        ]
        self.rescored = len(predictive)
        self.optimality_gap = 0.0
        self._valid_for = None  # a later search finds its bounds from nothing
        return np.stack(levels, axis=1)

    # -- bounds
    # ----------------------------------------------------------------------------------------------

    @property
    def product(self) -> PriorProduct:
        """Products with the prior covariance."""
        return self._structure[0]

    @property
    def cells(self) -> Cells:
        """Cells of nearby targets."""
        return self._structure[1]

    @property
    def _structure(self) -> tuple[PriorProduct, Cells]:
        """Products and cells, created when they are first needed."""
        if self._structure_cache is None:
            kernel = self.posterior.kernel
            form = stationary_form(kernel.kernel if isinstance(kernel, Coregionalized) else kernel)
            scales = self.domain.extent if form is None else form.lengthscales
            self._structure_cache = (
                prior_product(self.posterior, self.domain),
                Cells(self.domain.points / scales),
            )
        return self._structure_cache

    def _follow(self, e: Array, w: Array, predictive: Array) -> None:
        """Carry the roots over to the present steps, e, w and d (the Lipschitz bound).

        With w^(1/2) min(|C|, (e d)^(1/2)) for every row as a vector f of norm S^(1/2): a step
        changes each |C_jx| by at most |u_j u_x|, hence |f| by |w^(1/2) u_A| |u_x|; S grows by at
        most d (w' - w) e' per row where w has grown and d w (e' - e) where e has, and at most in
        proportion to d where d has.
        """
        posterior = self.posterior
        now = posterior.row_ids
        kept = common_prefix_length(self._row_ids, now)
        if self._valid_for is None or self._valid_for[2].shape != predictive.shape:
            self.roots = np.full(predictive.shape, np.inf)
            self.last_sums = np.zeros(predictive.shape)
        else:
            old_e, old_w, old_d = self._valid_for
            for i in range(kept, len(self._row_ids)):
                self._add_step(self._pending[self._row_ids[i]], old_e, old_w)
            for i in range(kept, posterior.n_rows):
                self._add_step(posterior.factor.row(i), old_e, old_w)
            growth = float(np.maximum(w - old_w, 0.0) @ e + old_w @ np.maximum(e - old_e, 0.0)) * (
                1 + SUM_ROUNDING
            )
            if growth > 0 or (predictive > old_d).any():
                with np.errstate(divide="ignore", invalid="ignore"):
                    ratio = np.where(predictive > old_d, predictive / old_d, 1.0)
                    squares = np.where(np.isfinite(ratio), self.roots**2 * ratio, np.inf)
                self.roots = np.sqrt(squares + np.maximum(predictive, old_d) * growth) * (
                    1 + gamma(8)
                )
        self._valid_for = e, w, predictive
        self._row_ids = list(now)
        self._pending = {
            row_id: self._pending[row_id]
            if row_id in self._pending
            else posterior.factor.row(i).copy()
            for i, row_id in enumerate(now)
            if i >= posterior.n_observed
        }

    def _add_step(self, u: Array, e: Array, w: Array) -> None:
        """Increase the roots by what one step, made or undone, can change."""
        norm = float(np.sqrt(w[e > 0] @ u[: len(e)][e > 0] ** 2)) * (1 + SUM_ROUNDING)
        self.roots += (norm * np.abs(u))[:, None]

    def _tighten_by_nodes(
        self, rows: Index, e: Array, w: Array, predictive: Array, weight: Array
    ) -> bool:
        """Reduce the roots of a weighted sum to its bound from nodes, where that is possible.

        Returns:
            Whether few candidates are left, or none that is better than the best by more than the
            tolerance.
        """
        posterior = self.posterior
        if (e[rows] < posterior.pending_variance[rows]).any():
            return False  # the sum is truncated
        if self._nodes_cache is None:
            self._nodes_cache = (
                node_bounds(posterior, self.domain) or lattice_bounds(posterior, self.domain),
            )
        nodes = self._nodes_cache[0]
        t = posterior.n_rows
        exact = len(posterior.sites) <= MAX_EXACT_SITES
        if nodes is None or (exact and isinstance(nodes, LatticeBounds)):
            return False
        if (exact or isinstance(nodes, LatticeBounds)) and self._prefers_norms(nodes, len(rows), t):
            return False
        estimate, error = nodes.bounds(w, posterior.pending_variance)
        if isinstance(nodes, LatticeBounds):
            self._refine(nodes, estimate, error, weight)
        upper = np.maximum(estimate + error, 0.0)
        np.minimum(self.roots, (np.sqrt(upper) * (1 + gamma(8)))[:, None], out=self.roots)
        self.last_sums = np.repeat(np.maximum(estimate, 0.0)[:, None], predictive.shape[1], axis=1)
        per_sum = weight.max(axis=1)
        best = _best_score(estimate, error, per_sum, self.tolerance)
        return best > 0 and int((upper * per_sum > best).sum()) <= _MAX_LEFT

    def _refine(self, nodes: LatticeBounds, estimate: Array, error: Array, weight: Array) -> None:
        """Improve estimates and errors in place where candidates may still be the best."""
        per_sum = weight.max(axis=1)
        level = 0
        while True:
            best = _best_score(estimate, error, per_sum, self.tolerance)
            left = np.flatnonzero((estimate + error) * per_sum > best)
            level += 1
            found = (
                nodes.refine(left, level, self.posterior.pending_variance) if len(left) else None
            )
            if found is None:
                return
            estimate[left], error[left] = found

    def _prefers_norms(self, nodes: NodeBounds | LatticeBounds, n_active: int, t: int) -> bool:
        """Return whether norms cost less than nodes and scoring the candidates that these leave."""
        node_cost = READ_COST * nodes.count**2 + _TYPICAL_LEFT * n_active * (2 * t + KERNEL_COST)
        return (t + 1) * self.product.cost < node_cost

    def _norms_for(self, n_active: int, e: Array, w: Array, weighted: bool) -> ColumnNorms | None:
        """Return norms over the active targets and few others; None if scoring all is cheaper.

        Weights differ from choice to choice. Norms with the weights of this one are the sums
        themselves, as long as nothing is truncated; they are computed again unless that takes too
        long for a search within a tolerance.
        """
        t = self.posterior.n_rows
        m = len(self.posterior.sites)
        pass_cost = 2 * t * m * READ_COST
        scoring_cost = n_active * m * (2 * t + KERNEL_COST)
        total = float(w @ e)
        new_cost = (t + 1) * self.product.cost
        renew = weighted and (self.tolerance == 0 or new_cost <= _MAX_RENEWAL_COST)
        for norms in reversed(self._norms) if not renew else ():
            if float(np.maximum(w - norms.base, 0.0) @ e) <= _MAX_EXCESS_SHARE_OUTSIDE * total:
                if (
                    norms.n_missing * (self.product.cost + pass_cost)
                    > MAX_NORMS_COST_SHARE * scoring_cost
                ):
                    return None
                norms.update()
                return norms
            if norms is not self._norms[0]:
                self._norms.remove(norms)  # a new epoch has made more targets active
        if new_cost > MAX_NORMS_COST_SHARE * scoring_cost:
            return None
        return self.new_norms(e, w)

    def new_norms(self, e: Array, w: Array) -> ColumnNorms:
        """Compute norms over the active targets; keep the first if they cover these and more."""
        new = ColumnNorms(self.posterior, self.product, np.where(e > 0, w, 0.0))
        new.update()
        first = [norms for norms in self._norms[:1] if not (new.base > norms.base).any()]
        self._norms = [*first, new]
        self.work = 0.0
        return new

    def _tighten(self, norms: ColumnNorms | None, e: Array, w: Array, predictive: Array) -> None:
        """Reduce the roots to the norm bound and the cap."""
        upper = predictive * (float(w @ e) * (1 + SUM_ROUNDING))
        if norms is not None:
            np.minimum(upper, norm_bound(norms, excess_outside(norms, e, w), predictive), out=upper)
            # C is K itself, and min(k^2, e d) can be summed like k^2
            if self.posterior.n_rows == 0:
                for k in range(predictive.shape[1]):
                    cap = float(e.max() * predictive[:, k].max())
                    np.minimum(
                        upper[:, k],
                        self.product.squared_sums(np.where(e > 0, w, 0.0), cap),
                        out=upper[:, k],
                    )
        np.minimum(self.roots, np.sqrt(upper) * (1 + gamma(8)), out=self.roots)


def _best_score(estimate: Array, error: Array, per_sum: Array, tolerance: float) -> float:
    """Return the score that a candidate must be able to exceed to be looked at more closely.

    With a tolerance it is a guess, and the gap that the search reports tells whether it was right.

    Args:
        estimate: Estimates of the sums. (m,)
        error: Bounds on their errors. (m,)
        per_sum: Factor that turns a sum into a score. (m,)
        tolerance: Share of its score by which the choice may miss the best.
    """
    if tolerance == 0:
        return float(((estimate - error) * per_sum).max())
    good = error <= _MAX_ERROR * estimate
    return (1 + _BOUND_TOLERANCE_SHARE * tolerance) * float(
        (estimate * per_sum).max(where=good, initial=0.0)
    )
