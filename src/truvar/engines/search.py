"""One choice of the matrix-free engine: upper bounds are sharpened, the highest first, until none reaches the best that
is certain.

The candidate with the highest bound is looked at first: on rows near it, on more of them, then in full. Where exactness
would take too long, the search ends within a tolerance, or says how far from the best its choice can be. What rounding
can do to a bound is part of it (docs/performance.md, "Rounding").
"""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING

import numpy as np

from truvar._numba.threads import run_tiles
from truvar._typing import Array, Index
from truvar.engines.norms import Cells, Norms
from truvar.engines.rounding import SUM_ROUNDING, entry_error, gamma
from truvar.engines.ties import NEAR_TIE, TIE_TOLERANCE

if TYPE_CHECKING:
    from truvar.engines.lazy import Lazy

BUDGET = 24  # work for a choice, in candidates scored in full, before a tolerance is made use of
LEAST = 5e3  # ... and at least so many operations per site
LAST_RESORT = 1.2  # budgets, after which the best of those looked at is taken, whatever the certificate
TIES = 64  # candidates scored in full to find the first of equals, once none can be better
FIRST, MOST = 16, 64  # candidates scored in full at a time
NEAR = (512, 4096, 32768)  # rows near a candidate, look by look
DONE = len(NEAR) + 1  # the stage of candidates that are scored in full
FEWER, HALF = 0.8, 0.5  # shares of a norm's targets below which a new norm over the active ones may pay
SAMPLE = 2048  # candidates, and rows, of a guess by sampling
# In the time of how many floating-point operations of a matrix product one gets a kernel value; reads a number, in
# order or not; finds a near row; sifts a contender; makes a few calls.
KERNEL, READ, GATHER, FETCH, SIFT, CALL = 80.0, 24.0, 60.0, 300.0, 500.0, 5e6
LOOKED = 1 << 21  # rows near candidates that are looked at at a time
PAYS = 0.3  # a look pays if it costs no more than this share of scoring in full
ROUND = 2e9  # operations after which the best is looked at again


def excess_outside(norms: Norms, e: Array) -> float:
    """The sum of e outside the norms' targets."""
    return float(e[~norms.chosen].sum()) * (1 + SUM_ROUNDING)


def norm_bound(norms: Norms, outside: float, predictive: Array, sites: Index | slice = slice(None)) -> Array:
    """q_x + d_x (sum of e outside B), at some sites with d (c, K). (c, K)"""
    return np.asarray((norms.upper[sites][:, None] + outside * predictive) * (1 + gamma(4)))


class Search:
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
        self.per_row = 2 * self.posterior.n_rows + KERNEL  # what a row of a candidate costs
        self.looks = [] if norms is None else [count for count in NEAR if count <= PAYS * len(rows)]
        self.best, self.rescored, self.reach, self.batch = 0.0, 0, FIRST, FIRST
        self.begun = self.scored = engine.work

    def run(self) -> Array:
        engine, ties, last = self.engine, 0, False
        guesses = (engine.seen * self.worth).max(axis=1)
        first = _highest(guesses, FIRST // 2)
        self._score(first[guesses[first] > 0])
        live = self._contenders()
        if engine.certificate > engine.tolerance > 0:  # the bounds are loose: good candidates must be found otherwise
            self._score(self._promising(live))
        while True:
            engine.work += SIFT * len(live)
            live = live[(self.stage[live] < DONE) & (self.scores[live] >= self.best * (1 - NEAR_TIE))]
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
            elif gap <= TIE_TOLERANCE:
                ties += self._score(live[: self.batch])
            else:
                self._sharpen(live)
                if self.norms is not None and engine.work > self.norms.rebuilding and self._renew(FEWER):
                    live = self._contenders()
        engine.certificate, engine.rescored = gap if len(live) else 0.0, self.rescored
        if len(live):  # what could at most be as good, or better within the tolerance, must not be taken unseen
            below = np.divide(
                self.best * (1 - NEAR_TIE), self.worth[live], where=self.worth[live] > 0, out=self.sums[live]
            )
            self.sums[live] = np.minimum(self.sums[live], below)
        return self.sums

    def _promising(self, live: Index) -> Index:
        """A guess where the best are: candidates spread over the domain, then those around the best of them, by their
        sums over a sample of the rows."""
        cells, n = self.engine.cells, len(self.e)
        rows = _spread(cells.order[self.e[cells.order] > 0], SAMPLE)

        def best_of(sites: Index) -> Index:
            sums = self.posterior.factor.sums(self.e, sites, self.predictive[sites], rows)
            self.engine.work += len(rows) * len(sites) * self.per_row
            return sites[_highest((sums * self.worth[sites]).max(axis=1), FIRST)]

        leaders = best_of(_spread(live[np.argsort(cells.rank[live % n])], SAMPLE))
        return best_of(_spread(live[np.isin(cells.of[live % n], cells.of[leaders % n])], 2 * SAMPLE))

    def _good_enough(self, gap: float, ties: int) -> bool:
        engine = self.engine
        if gap <= TIE_TOLERANCE:
            return ties >= TIES
        budget = max(engine.budget * len(self.rows) * self.per_row, LEAST * len(self.stage))
        work = engine.work - self.begun
        if gap <= engine.tolerance:
            return work >= budget
        return engine.tolerance > 0 and work >= LAST_RESORT * budget and np.isfinite(gap)

    def _contenders(self) -> Index:
        least = self.best * (1 - NEAR_TIE)
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
        count, t = self.looks[stage], self.posterior.n_rows
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

        most = max(1, LOOKED // count)
        for start in range(0, len(groups), most):
            self._bound_nearby(around, groups[start : start + most], count)
        self.engine.work += work

    def _bound_nearby(self, around: _Surroundings, groups: list[Index], count: int) -> None:
        """The norm's bound less what it gives away on some rows near each group of sites, which share a cell."""
        looks = [(np.empty(0, np.intp), sites, self.predictive[sites]) for sites in groups]

        def find(part: slice) -> None:
            for i in range(*part.indices(len(groups))):
                cell = int(around.cells.of[groups[i][0] % len(self.e)])
                looks[i] = (around.near(cell, count), *looks[i][1:])

        run_tiles(find, [slice(i, i + 4) for i in range(0, len(groups), 4)], len(groups) * len(around.sizes))
        found = self.posterior.factor.bound_gaps(looks, self.e, around.sign)
        entry = entry_error(self.posterior, self.engine.top)
        for (near, sites, d), (loss, squares) in zip(looks, found, strict=True):
            off = sqrt(len(near)) * entry
            slack = (2 * np.sqrt(squares) * off + off * off)[:, None]
            slack = slack + gamma(len(near) + 8) * (squares[:, None] + around.outside * d)
            bound = norm_bound(around.norms, around.outside, d, sites) - loss + slack
            self._note(sites, np.maximum(bound, 0.0))

    def _score(self, sites: Index) -> int:
        """In full; how many."""
        if len(sites):
            sums = self.posterior.factor.sums(self.e, sites, self.predictive[sites])
            self._settle(sites, sums, SUM_ROUNDING)
            self.engine.work += len(self.rows) * (self.posterior.n_rows * READ + len(sites) * self.per_row)
            self.scored = self.engine.work
        return len(sites)

    def _score_all(self) -> None:
        sums = self.posterior.factor.sums_everywhere(self.e, self.predictive)
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


def _spread(some: Index, count: int) -> Index:
    """Some of them, at equal steps."""
    return some[:: -(-len(some) // count) or 1]


def _highest(values: Array, count: int) -> Index:
    """Where the highest values are, in no order."""
    if len(values) <= count:
        return np.arange(len(values))
    return np.argpartition(values, len(values) - count)[len(values) - count :]
