"""The matrix-free engine: the best candidate by bounds, from the factor V alone, for domains up to a million points.

| symbol | here | shape |
|---|---|---|
| C_jx = k(j, x) - v_j . v_x | formed for a few candidates at a time | (c, a) |
| S_x = sum over A of min(C_jx^2, e_j d_x) | wanted where S_x worth_x is highest | (m, K) |
| A, the active targets; e | `rows`; `excess`, zero outside A | (a,); (n,) |
| square root of an upper bound of S_x | `Lazy._roots` | (m, K) |
| q_x = sum over B of C_jx^2, for some B | `Norms.upper` | (m,) |

Four bounds, each good where the others are not; the roots keep the least of them.

  norm       S_x <= q_x + d_x (sum of e over A outside B)
  cap        S_x <= d_x (sum of e)
  locality   S_x <= the norm's bound less what it gives away on rows near x: truncation is local, so this comes close
  Lipschitz  a measurement moves sqrt(S_x) by at most |u_x| |u_A|, so that a bound once found stays useful

`search.py` finds the best candidate with them. What rounding can do to a bound is part of it (docs/performance.md,
"Rounding").
"""

from __future__ import annotations

import numpy as np

from truvar._numba.threads import blas_in_one_thread
from truvar._typing import Array, Index
from truvar.domain.domain import Domain
from truvar.engines.dense import over_targets
from truvar.engines.norms import Cells, Norms, common_start
from truvar.engines.products import Product, product_for
from truvar.engines.rounding import SUM_ROUNDING, gamma
from truvar.engines.search import BUDGET, KERNEL, READ, Search, excess_outside, norm_bound
from truvar.engines.ties import rescore_near_best
from truvar.exceptions import TruvarError
from truvar.models.kernels import Coregionalized, stationary_form
from truvar.models.posterior import Posterior

EXACT_UP_TO = 131_072  # sites; beyond, `TOLERANCE` is accepted where exactness would take more than the budget
TOLERANCE = 0.02
DIRECT = 1.0  # all candidates are scored in full if norms take more than this share of it
OUTSIDE = 0.02  # share of the excess that may lie outside a norm's targets


class Lazy:
    """Sums given what was told and is pending. Follows the posterior it is made for.

    tolerance    accepted gap between the choice and the best, as a share of the choice's gain per cost. None: 0 up to
                 131,072 sites, 0.02 beyond; made use of only once the budget is spent
    budget       work for one choice before that, in candidates scored in full; with a tolerance, the search ends
                 soon after: the best of those it has looked at closest is taken, whatever the certificate says of it
    certificate  of the last choice: no candidate is better by more than this share of it
    rescored     candidates that were scored in full for the last choice
    """

    name = "lazy"

    def __init__(
        self, posterior: Posterior, domain: Domain, tolerance: float | None = None, budget: int = BUDGET
    ) -> None:
        if tolerance is not None and not 0 <= tolerance < 1:
            raise TruvarError(f"tolerance must be a share between 0 and 1, got {tolerance!r}; give e.g. 0.02")
        large = len(posterior.sites) > EXACT_UP_TO
        self.posterior, self.domain = posterior, domain
        self.tolerance = (TOLERANCE if large else 0.0) if tolerance is None else tolerance
        self.budget = budget
        self.certificate, self.rescored = 0.0, 0
        self.top = float(np.asarray(posterior.kernel.diag(posterior.sites)).max())
        self.roots = np.empty((0, 0))
        self.seen = np.empty((0, 0))  # sums as last seen: a guess where the best will be
        self.work = 0.0  # spent on single candidates since the norms were last chosen
        self._held: tuple[Array, Array] | None = None  # e and d that the roots hold for
        self._serials: list[int] = []  # of the steps that the roots have seen
        self._pending: dict[int, Array] = {}  # u of those that were pending then
        self._norms: list[Norms] = []  # over the targets that were active first; and over fewer, where that has paid
        self._parts: tuple[Product, Cells] | None = None

    # -- what is asked of an engine ------------------------------------------------------------------------------------

    def sums(self, rows: Index, excess: Array, predictive: Array) -> Array:
        """Every candidate in full; for inspection, as it takes its time."""
        with blas_in_one_thread():
            return self.posterior.factor.sums_everywhere(over_targets(self.posterior, rows, excess), predictive)

    def sums_at(self, rows: Index, excess: Array, sites: Index, predictive: Array) -> Array:
        with blas_in_one_thread():
            return self.posterior.factor.sums(over_targets(self.posterior, rows, excess), sites, predictive)

    def best_sums(self, rows: Index, excess: Array, predictive: Array, worth: Array) -> Array:
        e = over_targets(self.posterior, rows, excess)
        with blas_in_one_thread():
            self._follow(e, predictive)
            norms = self._norms_for(len(rows), e)
            self._narrow(norms, e, predictive)
            sums = Search(self, norms, rows, e, predictive, worth).run()
            if self.tolerance == 0:  # else what it has looked at depends on the way anyhow
                rescore_near_best(sums, worth, lambda sites: self.posterior.factor.sums(e, sites, predictive[sites]))
            return sums

    def covariance(self, rows: Index, sites: slice) -> Array:
        factor, where = self.posterior.factor, self.posterior.sites
        return np.asarray(self.posterior.k(where[rows], where[sites]) - factor.at(rows).T @ factor.at(sites))

    # -- bounds --------------------------------------------------------------------------------------------------------

    @property
    def product(self) -> Product:
        return self._structure[0]

    @property
    def cells(self) -> Cells:
        return self._structure[1]

    @property
    def _structure(self) -> tuple[Product, Cells]:
        """Made when it is first needed."""
        if self._parts is None:
            kernel = self.posterior.kernel
            form = stationary_form(kernel.kernel if isinstance(kernel, Coregionalized) else kernel)
            scales = self.domain.extent if form is None else form.lengthscales
            self._parts = product_for(self.posterior, self.domain), Cells(self.domain.points / scales)
        return self._parts

    def _follow(self, e: Array, predictive: Array) -> None:
        """The Lipschitz bound: carries the roots over to the steps, e and d of now.

        With min(|C|, sqrt(e d)) for every row as a vector f of norm sqrt(S): a step changes each |C_jx| by at most
        |u_j u_x|, hence |f| by |u_A| |u_x|; S grows by at most d (e' - e) per row where e has grown, and at most in
        proportion to d where d has.
        """
        posterior = self.posterior
        now, kept = posterior.row_ids, common_start(self._serials, posterior.row_ids)
        if self._held is None or self._held[1].shape != predictive.shape:
            self.roots, self.seen = np.full(predictive.shape, np.inf), np.zeros(predictive.shape)
        else:
            old_e, old_d = self._held
            for i in range(kept, len(self._serials)):
                self._move(self._pending[self._serials[i]], old_e)
            for i in range(kept, posterior.n_rows):
                self._move(posterior.factor.row(i), old_e)
            grown = float(np.maximum(e - old_e, 0.0).sum()) * (1 + SUM_ROUNDING)
            if grown > 0 or (predictive > old_d).any():
                with np.errstate(divide="ignore", invalid="ignore"):
                    ratio = np.where(predictive > old_d, predictive / old_d, 1.0)
                    squares = np.where(np.isfinite(ratio), self.roots**2 * ratio, np.inf)
                self.roots = np.sqrt(squares + np.maximum(predictive, old_d) * grown) * (1 + gamma(8))
        self._held = e, predictive
        self._serials = list(now)
        self._pending = {
            serial: self._pending[serial] if serial in self._pending else posterior.factor.row(i).copy()
            for i, serial in enumerate(now)
            if i >= posterior.n_observed
        }

    def _move(self, u: Array, e: Array) -> None:
        """One step, made or taken back."""
        reach = float(np.linalg.norm(np.where(e > 0, u[: len(e)], 0.0))) * (1 + SUM_ROUNDING)
        self.roots += (reach * np.abs(u))[:, None]

    def _norms_for(self, active: int, e: Array) -> Norms | None:
        """Norms over the active targets and not many more; None where scoring every candidate in full is cheaper."""
        t, m = self.posterior.n_rows, len(self.posterior.sites)
        pass_cost = 2 * t * m * READ
        limit, total = active * m * (2 * t + KERNEL), e.sum()
        for norms in reversed(self._norms):
            if e[~norms.chosen].sum() <= OUTSIDE * total:
                if norms.behind * (self.product.cost + pass_cost) > DIRECT * limit:
                    return None
                norms.follow()
                return norms
            if norms is not self._norms[0]:
                self._norms.remove(norms)  # an epoch has begun
        return None if (t + 1) * self.product.cost > DIRECT * limit else self.make_norms(e)

    def make_norms(self, e: Array) -> Norms:
        """New norms over the active targets, beside those made first if these cover more."""
        new = Norms(self.posterior, self.product, e > 0)
        new.follow()
        self._norms = [*[norms for norms in self._norms[:1] if not (new.chosen & ~norms.chosen).any()], new]
        self.work = 0.0
        return new

    def _narrow(self, norms: Norms | None, e: Array, predictive: Array) -> None:
        """The norm's and the cap's bounds."""
        upper = predictive * (float(e.sum()) * (1 + SUM_ROUNDING))
        if norms is not None:
            np.minimum(upper, norm_bound(norms, excess_outside(norms, e), predictive), out=upper)
            if self.posterior.n_rows == 0:  # C is K itself: min(k^2, e d) can be summed like k^2
                for k in range(predictive.shape[1]):
                    cap = float(e.max() * predictive[:, k].max())
                    np.minimum(upper[:, k], self.product.squares(e > 0, cap), out=upper[:, k])
        np.minimum(self.roots, np.sqrt(upper) * (1 + gamma(8)), out=self.roots)
