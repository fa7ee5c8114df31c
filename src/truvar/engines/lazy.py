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

The candidate with the highest bound is looked at first: on rows near it, on more of them, then in full, until no bound
reaches the best that is certain. What rounding can do to a bound is part of it (docs/performance.md, "Rounding").
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from truvar._engine.threads import blas_in_one_thread, run_tiles
from truvar.actions import Index
from truvar.domain import Array, Domain
from truvar.engines.norms import Cells, Norms, common_start
from truvar.engines.products import Product, gamma, product_for
from truvar.engines.scoring import SUM_ROUNDING, entry_error, losses_of, sums_everywhere, sums_of
from truvar.errors import TruvarError
from truvar.kernels import Coregionalized, stationary_form
from truvar.posterior import Posterior

EXACT_UP_TO = 131_072  # sites; beyond, `TOLERANCE` is accepted where exactness would take more than the budget
TOLERANCE = 0.02
BUDGET = 24  # work for a choice, in candidates scored in full, before a tolerance is made use of
LEAST = 5e3  # ... and at least so many operations per site
LAST_RESORT = 2  # budgets, after which the best of those looked at is taken, whatever the certificate
EQUAL = 1e-9  # gains this close, relatively, are one
TIE = 2e-9  # below the best by more than this, relatively, is no contender
TIES = 64  # candidates scored in full to find the first of equals, once none can be better
FIRST, MOST = 16, 64  # candidates scored in full at a time
NEAR = (512, 4096, 32768)  # rows near a candidate, look by look
DONE = len(NEAR) + 1  # the stage of candidates that are scored in full
DIRECT = 1.0  # all candidates are scored in full if norms take more than this share of it
OUTSIDE = 0.02  # share of the excess that may lie outside a norm's targets
FEWER, HALF = 0.8, 0.5  # shares of a norm's targets below which a new norm over the active ones may pay
# In the time of how many floating-point operations of a matrix product one gets a kernel value; reads a number, in
# order or not; finds a near row; sifts a contender; makes a few calls.
KERNEL, READ, GATHER, FETCH, SIFT, CALL = 80.0, 24.0, 60.0, 300.0, 500.0, 5e6
PAYS = 0.3  # a look pays if it costs no more than this share of scoring in full
ROUND = 2e9  # operations after which the best is looked at again


class Lazy:
    """Sums given what was told and is pending. Follows the posterior it is made for.

    tolerance    accepted gap between the choice and the best, as a share of the choice's gain per cost. None: 0 up to
                 131,072 sites, 0.02 beyond; made use of only once the budget is spent
    budget       work for one choice before that, in candidates scored in full; with a tolerance, the search ends at 2
                 budgets: the best of those it has looked at closest is taken, whatever the certificate says of it
    certificate  of the last choice: no candidate is better by more than this share of it
    rescored     candidates that were scored in full for the last choice
    """

    name = "lazy"

    def __init__(
        self, posterior: Posterior, domain: Domain, tolerance: float | None = None, budget: int = BUDGET
    ) -> None:
        if tolerance is not None and not 0 <= tolerance < 1:
            raise TruvarError(f"tolerance must be a share between 0 and 1, but it was {tolerance!r}; give e.g. 0.02")
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
            return sums_everywhere(self.posterior, rows, excess, predictive)

    def sums_at(self, rows: Index, excess: Array, sites: Index, predictive: Array) -> Array:
        with blas_in_one_thread():
            return sums_of(self.posterior, rows, excess, sites, predictive)

    def best_sums(self, rows: Index, excess: Array, predictive: Array, worth: Array) -> Array:
        e = np.zeros(self.posterior.targets)
        e[rows] = excess
        with blas_in_one_thread():
            self._follow(e, predictive)
            norms = self._norms_for(len(rows), e)
            self._narrow(norms, e, predictive)
            return _Search(self, norms, rows, e, predictive, worth).run()

    def covariance(self, rows: Index, sites: slice) -> Array:
        v, where = self.posterior.v, self.posterior.sites
        return np.asarray(self.posterior.k(where[rows], where[sites]) - v[:, rows].T @ v[:, sites])

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
        posterior, n = self.posterior, len(e)
        now, kept = posterior.serials, common_start(self._serials, posterior.serials)
        if self._held is None or self._held[1].shape != predictive.shape:
            self.roots, self.seen = np.full(predictive.shape, np.inf), np.zeros(predictive.shape)
        else:
            old_e, old_d = self._held
            moves = [self._pending[serial] for serial in self._serials[kept:]] + list(posterior.v[kept:])
            for u in moves:
                reach = float(np.linalg.norm(np.where(old_e > 0, u[:n], 0.0))) * (1 + SUM_ROUNDING)
                self.roots += (reach * np.abs(u))[:, None]
            grown = float(np.maximum(e - old_e, 0.0).sum()) * (1 + SUM_ROUNDING)
            if grown > 0 or (predictive > old_d).any():
                with np.errstate(divide="ignore", invalid="ignore"):
                    ratio = np.where(predictive > old_d, predictive / old_d, 1.0)
                    squares = np.where(np.isfinite(ratio), self.roots**2 * ratio, np.inf)
                self.roots = np.sqrt(squares + np.maximum(predictive, old_d) * grown) * (1 + gamma(8))
        self._held = e, predictive
        self._serials = list(now)
        self._pending = {
            serial: self._pending[serial] if serial in self._pending else posterior.v[i].copy()
            for i, serial in enumerate(now)
            if i >= posterior.told
        }

    def _norms_for(self, active: int, e: Array) -> Norms | None:
        """Norms over the active targets and not many more; None where scoring every candidate in full is cheaper."""
        t, m = self.posterior.rows, len(self.posterior.sites)
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
            if self.posterior.rows == 0:  # C is K itself: min(k^2, e d) can be summed like k^2
                for k in range(predictive.shape[1]):
                    cap = float(e.max() * predictive[:, k].max())
                    np.minimum(upper[:, k], self.product.squares(e > 0, cap), out=upper[:, k])
        np.minimum(self.roots, np.sqrt(upper) * (1 + gamma(8)), out=self.roots)


def excess_outside(norms: Norms, e: Array) -> float:
    """The sum of e outside the norms' targets."""
    return float(e[~norms.chosen].sum()) * (1 + SUM_ROUNDING)


def norm_bound(norms: Norms, outside: float, predictive: Array, sites: Index | slice = slice(None)) -> Array:
    """q_x + d_x (sum of e outside B), at some sites with d (c, K). (c, K)"""
    return np.asarray((norms.upper[sites][:, None] + outside * predictive) * (1 + gamma(4)))


class _Search:
    """One choice: bounds are sharpened, the highest first, until none reaches the best that is certain."""

    def __init__(
        self, engine: Lazy, norms: Norms | None, rows: Index, e: Array, predictive: Array, worth: Array
    ) -> None:
        self.engine, self.posterior = engine, engine.posterior
        self.rows, self.e, self.predictive, self.worth = rows, e, predictive, worth
        self.norms = norms
        self.surroundings = None if norms is None else _Surroundings(engine.cells, norms, e)
        self.sums = engine.roots**2 * (1 + gamma(4))  # upper bounds, exact where `stage` is DONE
        self.scores = (self.sums * worth).max(axis=1)  # (m,)
        self.stage = np.zeros(len(worth), np.int8)  # how many looks were taken
        self.per_row = 2 * self.posterior.rows + KERNEL  # what a row of a candidate costs
        self.looks = [] if norms is None else [count for count in NEAR if count <= PAYS * len(rows)]
        self.best, self.rescored, self.reach, self.batch = 0.0, 0, FIRST, FIRST
        self.begun = self.scored = engine.work

    def run(self) -> Array:
        engine, ties, last = self.engine, 0, False
        guesses = (engine.seen * self.worth).max(axis=1)
        first = _highest(guesses, FIRST // 2)
        self._score(first[guesses[first] > 0])
        live = self._contenders()
        while True:
            engine.work += SIFT * len(live)
            live = live[(self.stage[live] < DONE) & (self.scores[live] >= self.best * (1 - TIE))]
            gap = max(float(self.scores[live].max(initial=0.0)) / self.best - 1, 0.0) if self.best > 0 else np.inf
            if len(live) == 0:
                break
            if self._good_enough(gap, ties):
                if gap <= engine.tolerance or last:
                    break
                if self._renew(HALF):
                    live = self._contenders()
                else:
                    last = True
                    self._score_seen(live, 0.0)
            elif gap <= EQUAL:
                ties += self._score(live[: self.batch])
            else:
                self._sharpen(live)
                if self.norms is not None and engine.work > self.norms.rebuilding and self._renew(FEWER):
                    live = self._contenders()
        engine.certificate, engine.rescored = gap if len(live) else 0.0, self.rescored
        if len(live):  # what could at most be as good, or better within the tolerance, must not be taken unseen
            below = np.divide(self.best * (1 - TIE), self.worth[live], where=self.worth[live] > 0, out=self.sums[live])
            self.sums[live] = np.minimum(self.sums[live], below)
        return self.sums

    def _good_enough(self, gap: float, ties: int) -> bool:
        engine = self.engine
        if gap <= EQUAL:
            return ties >= TIES
        budget = max(engine.budget * len(self.rows) * self.per_row, LEAST * len(self.stage))
        work = engine.work - self.begun
        if gap <= engine.tolerance:
            return work >= budget
        return engine.tolerance > 0 and work >= LAST_RESORT * budget and np.isfinite(gap)

    def _contenders(self) -> Index:
        least = self.best * (1 - TIE)
        return np.flatnonzero((self.scores >= least) & (self.scores > 0) & (self.stage < DONE))

    def _sharpen(self, live: Index) -> None:
        """The leaders: on more of the rows near them or, when they have been looked at on all that pays, in full."""
        if self.norms is None and len(live) > len(self.stage) // 8:
            self._score_all()
            return
        lead = live[_highest(self.scores[live], self.batch)]
        stage = int(self.stage[lead].min())
        if stage < len(self.looks):
            lead = live[_highest(self.scores[live], self.reach)]
            self._look(live, lead[self.stage[lead] == stage], stage)
            self.reach = min(2 * self.reach, 4096)
            self._score_seen(live, FIRST * len(self.rows) * self.per_row)
        else:
            self._score(lead)
            self.batch = min(2 * self.batch, max(MOST, int(ROUND / (len(self.rows) * self.per_row))))

    def _score_seen(self, live: Index, least: float) -> None:
        """The best of those looked at, in full, if more work than that was done since: a better best saves looks."""
        if self.engine.work - self.scored > least:
            seen = live[self.stage[live] > 0]
            self._score(seen[_highest(self.scores[seen], FIRST)])

    def _look(self, live: Index, lead: Index, stage: int) -> None:
        """Locality: contenders in the cells of the leaders, on the rows nearest to each cell."""
        around, n = self.surroundings, len(self.e)
        if around is None:
            return
        of = around.cells.of
        leading = np.zeros(len(around.sizes), bool)
        leading[of[lead % n]] = True
        these = live[leading[of[live % n]] & (self.stage[live] == stage)]
        these = these[np.argsort(of[these % n], kind="stable")]
        count, t = self.looks[stage], self.posterior.rows
        fetching = CALL / count + FETCH + t * GATHER  # per row, for however many candidates
        most = int(fetching / self.per_row) + 1
        groups, work = [], 0.0
        for members in np.split(these, np.flatnonzero(np.diff(of[these % n])) + 1):
            sites = members[_highest(self.scores[members], most)]
            cost = count * (fetching + len(sites) * self.per_row)
            if cost <= PAYS * len(self.rows) * len(sites) * self.per_row:
                groups.append(sites)
                work += cost
            else:
                sites = members
            self.stage[sites] = stage + 1

        def look(part: slice) -> None:
            for sites in groups[part]:
                near = around.near(int(of[sites[0] % n]), count)
                self._note(sites, self._bound_nearby(around, near, sites))

        run_tiles(look, [slice(i, i + 4) for i in range(0, len(groups), 4)], int(work / 64))
        self.engine.work += work

    def _bound_nearby(self, around: _Surroundings, near: Index, sites: Index) -> Array:
        """The norm's bound less what it gives away on some rows."""
        d = self.predictive[sites]
        loss, squares = losses_of(self.posterior, near, self.e, around.sign, sites, d)
        off = sqrt(len(near)) * entry_error(self.posterior, self.engine.top)
        slack = (2 * np.sqrt(squares) * off + off * off)[:, None]
        slack = slack + gamma(len(near) + 8) * (squares[:, None] + around.outside * d)
        return np.maximum(norm_bound(around.norms, around.outside, d, sites) - loss + slack, 0.0)

    def _score(self, sites: Index) -> int:
        """In full; how many."""
        if len(sites):
            sums = sums_of(self.posterior, self.rows, self.e[self.rows], sites, self.predictive[sites])
            self._settle(sites, sums, SUM_ROUNDING)
            self.engine.work += len(self.rows) * (self.posterior.rows * READ + len(sites) * self.per_row)
            self.scored = self.engine.work
        return len(sites)

    def _score_all(self) -> None:
        sums = sums_everywhere(self.posterior, self.rows, self.e[self.rows], self.predictive)
        self._settle(np.arange(len(sums)), sums, gamma(len(self.rows) + 8))

    def _settle(self, sites: Index, sums: Array, rounding: float) -> None:
        engine = self.engine
        self.sums[sites], self.stage[sites], engine.seen[sites] = sums, DONE, sums
        self.scores[sites] = (sums * self.worth[sites]).max(axis=1)
        self.best = max(self.best, float(self.scores[sites].max()))
        self.rescored += len(sites)
        off = sqrt(len(self.rows)) * entry_error(self.posterior, engine.top)
        engine.roots[sites] = np.sqrt(sums) * (1 + rounding) + off

    def _note(self, sites: Index, bound: Array) -> None:
        """A bound that may be less than what was known."""
        engine = self.engine
        sums = np.minimum(self.sums[sites], bound)
        self.sums[sites], engine.seen[sites] = sums, sums
        self.scores[sites] = (sums * self.worth[sites]).max(axis=1)
        engine.roots[sites] = np.minimum(engine.roots[sites], np.sqrt(sums) * (1 + gamma(4)))

    def _renew(self, fewer: float) -> bool:
        """New norms over the active targets alone, if they are that much fewer: once looking at candidates has taken as
        long as that does, or where nothing else brings the certificate down."""
        engine, norms = self.engine, self.norms
        if norms is None or len(self.rows) > fewer * norms.count:
            return False
        self.norms = engine.make_norms(self.e)
        self.surroundings = _Surroundings(engine.cells, self.norms, self.e)
        self.begun = self.scored = engine.work
        rest = np.flatnonzero(self.stage < DONE)
        self.stage[rest] = 0
        self._note(rest, norm_bound(self.norms, self.surroundings.outside, self.predictive[rest], rest))
        return True


class _Surroundings:
    """The rows that a look at what is near a candidate can be taken on."""

    def __init__(self, cells: Cells, norms: Norms, e: Array) -> None:
        self.cells, self.norms = cells, norms
        self.outside = excess_outside(norms, e)
        self.sign = np.where(norms.chosen, 1.0, -1.0)  # C^2 or e d is what the norm's bound takes for a row
        self._wanted = norms.chosen | (e > 0)
        self.sizes = cells.sizes(self._wanted)

    def near(self, cell: int, count: int) -> Index:
        return self.cells.near(cell, count, self._wanted, self.sizes)


def _highest(values: Array, count: int) -> Index:
    """Where the highest values are, in no order."""
    if len(values) <= count:
        return np.arange(len(values))
    return np.argpartition(values, len(values) - count)[len(values) - count :]
