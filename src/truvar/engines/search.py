"""One choice of the matrix-free engine: tighten the highest bounds until none reaches the best.

The candidate with the highest bound is examined first: on rows near it, on more of them, then on
all rows ("in full"). If exactness would take too long, the search ends within a tolerance, or
reports how far its choice can be from the best. Every bound includes what rounding can do to it
(`engines._rounding`).
"""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING

import numpy as np

from truvar._numba.threads import run_tiles, tiles
from truvar._typing import Array, Index
from truvar.engines._norms import Cells, ColumnNorms
from truvar.engines._rounding import SUM_ROUNDING, entry_error, gamma
from truvar.engines.ties import NEAR_TIE, TIE_TOLERANCE

if TYPE_CHECKING:
    from truvar.engines.lazy import Lazy

BUDGET = 24  # work for a choice before a tolerance is used, in candidates scored in full
MIN_BUDGET = 5e3  # the same in operations per site, at least
# budgets after which the best candidate examined is taken, whatever the gap
_LAST_RESORT_BUDGETS = 1.2
_MAX_TIES = 64  # candidates scored in full to find the first of tied ones, once none can be better
_FIRST_BATCH = 16  # candidates scored in full at a time, at first
# candidates scored in full at a time, at most, unless that takes less than ROUND_COST
_MAX_BATCH = 64
_MAX_EXAMINED = 4096  # leading candidates whose cells are examined at a time, at most
NEAR_COUNTS = (512, 4096, 32768)  # rows near a candidate that it is examined on, stage by stage
SCORED = len(NEAR_COUNTS) + 1  # stage of candidates that are scored in full
# share of the targets of the norms below which new norms over the active ones may pay
_RENEWAL_SHARE = 0.8
_RENEWAL_SHARE_AT_BUDGET = 0.5  # the same where the budget is spent
SAMPLE_SIZE = 2048  # candidates, and rows, of a guess by sampling
# Costs in floating-point operations of a matrix product that take as long.
KERNEL_COST = 80.0  # a kernel value
READ_COST = 24.0  # reading a number in order
_GATHER_COST = 60.0  # reading a number out of order
_FIND_COST = 300.0  # finding a nearby row
_SIFT_COST = 500.0  # comparing a candidate with the best
_CALL_COST = 5e6  # a few function calls
_MAX_NEAR_ROWS = 1 << 21  # rows near candidates that are examined at a time
MAX_EXAMINE_SHARE = 0.3  # examining pays if it costs no more than this share of scoring in full
_ROUND_COST = 2e9  # operations after which the best is compared again


def excess_outside(norms: ColumnNorms, e: Array, w: Array) -> float:
    """Return the sum of max(w_j - b_j, 0) e_j: what the norms with weights b do not cover."""
    return float(np.maximum(w - norms.base, 0.0) @ e) * (1 + SUM_ROUNDING)


def norm_bound(
    norms: ColumnNorms, outside: float, predictive: Array, sites: Index | slice = slice(None)
) -> Array:
    """Return q_x + d_x (what the norms do not cover) at some sites, with d (c, K): (c, K)."""
    return np.asarray((norms.upper[sites][:, None] + outside * predictive) * (1 + gamma(4)))


class Search:
    """One choice: bounds are tightened, the highest first, until none reaches the best exact score.

    Args:
        engine: The engine, whose roots and last sums are kept up to date.
        norms: Column norms; None: candidates are scored in full without them.
        rows: Active targets. (a,)
        e: Excess of every target. (n,)
        w: Weight of every target. (n,)
        predictive: d. (m, K)
        weight: Factor that turns a sum into a score. (m, K)
        decided: Whether the bounds are so close already that the search ends as soon as the
            tolerance allows.

    Attributes:
        sums: Upper bounds, exact where `stage` is SCORED. (m, K)
        scores: Upper bounds on the best score over the noise levels. (m,)
        stage: How often each candidate was examined. (m,)
        best: Best exact score so far.
    """

    def __init__(
        self,
        engine: Lazy,
        norms: ColumnNorms | None,
        rows: Index,
        e: Array,
        w: Array,
        predictive: Array,
        weight: Array,
        decided: bool = False,
    ) -> None:
        self.engine = engine
        self.posterior = engine.posterior
        self.rows = rows
        self.e = e
        self.w = w
        self.total_weight = float(w[rows].sum()) * (1 + SUM_ROUNDING)
        self.predictive = predictive
        self.weight = weight
        self.decided = decided
        self.norms = norms
        self.neighbours = None if norms is None else _Neighbours(engine.cells, norms, e, w)
        self.sums = engine.roots**2 * (1 + gamma(4))
        self.scores = (self.sums * weight).max(axis=1)
        self.stage = np.zeros(len(weight), np.int8)
        # Operations for one row of a candidate.
        self.row_cost = 2 * self.posterior.n_rows + KERNEL_COST
        self.near_counts: list[int] = []
        if norms is not None:
            self.near_counts = [
                count for count in NEAR_COUNTS if count <= MAX_EXAMINE_SHARE * len(rows)
            ]
        self.best = 0.0
        self.rescored = 0
        self.n_examined = _FIRST_BATCH  # candidates examined at a time
        self.batch = _FIRST_BATCH  # candidates scored in full at a time
        self.work_at_start = engine.work
        self.work_at_scoring = engine.work  # when candidates were last scored in full

    def run(self) -> Array:
        """Return the sums of the choice, see `Engine.best_sums`."""
        engine = self.engine
        n_ties = 0
        last = False
        guesses = (engine.last_sums * self.weight).max(axis=1)
        first = _highest(guesses, _FIRST_BATCH // 2)
        self._score(first[guesses[first] > 0])
        remaining = self._remaining()
        # The bounds are loose: find good candidates by sampling.
        if engine.optimality_gap > engine.tolerance > 0 and not self.decided:
            self._score(self._sample_promising(remaining))
        while True:
            engine.work += _SIFT_COST * len(remaining)
            reach = self.scores[remaining] >= self.best * (1 - NEAR_TIE)
            remaining = remaining[(self.stage[remaining] < SCORED) & reach]
            gap = np.inf
            if self.best > 0:
                gap = max(float(self.scores[remaining].max(initial=0.0)) / self.best - 1, 0.0)
            if len(remaining) == 0:
                break
            if self._good_enough(gap, n_ties):
                if gap <= engine.tolerance or last:
                    break
                if self._renew_norms(_RENEWAL_SHARE_AT_BUDGET):
                    remaining = self._remaining()
                else:
                    last = True
                    self._score_examined(remaining, 0.0)
            elif gap <= TIE_TOLERANCE:
                n_ties += self._score(remaining[: self.batch])
            else:
                self._tighten(remaining)
                norms = self.norms
                if (
                    norms is not None
                    and engine.work > norms.build_cost
                    and self._renew_norms(_RENEWAL_SHARE)
                ):
                    remaining = self._remaining()
        engine.optimality_gap = gap if len(remaining) else 0.0
        engine.rescored = self.rescored
        # Candidates that are at most tied, or better within the tolerance, must not be chosen.
        if len(remaining):
            weight = self.weight[remaining]
            below = np.divide(
                self.best * (1 - NEAR_TIE), weight, where=weight > 0, out=self.sums[remaining]
            )
            self.sums[remaining] = np.minimum(self.sums[remaining], below)
        return self.sums

    def _sample_promising(self, remaining: Index) -> Index:
        """Guess where the best candidates are.

        Candidates spread over the domain are compared by their sums over a sample of the rows, then
        those around the best of them.
        """
        cells = self.engine.cells
        n = len(self.e)
        rows = _evenly_spread(cells.order[self.e[cells.order] > 0], SAMPLE_SIZE)

        def best_of(sites: Index) -> Index:
            sums = self.posterior.factor.sums(self.e, self.w, sites, self.predictive[sites], rows)
            self.engine.work += len(rows) * len(sites) * self.row_cost
            return sites[_highest((sums * self.weight[sites]).max(axis=1), _FIRST_BATCH)]

        leaders = best_of(
            _evenly_spread(remaining[np.argsort(cells.rank[remaining % n])], SAMPLE_SIZE)
        )
        around = np.isin(cells.of[remaining % n], cells.of[leaders % n])
        return best_of(_evenly_spread(remaining[around], 2 * SAMPLE_SIZE))

    def _good_enough(self, gap: float, n_ties: int) -> bool:
        """Return whether the search may end with this gap between highest bound and best score."""
        engine = self.engine
        if gap <= TIE_TOLERANCE:
            return n_ties >= _MAX_TIES
        budget = max(engine.budget * len(self.rows) * self.row_cost, MIN_BUDGET * len(self.stage))
        work = engine.work - self.work_at_start
        if gap <= engine.tolerance:
            return work >= budget or self.decided
        return engine.tolerance > 0 and work >= _LAST_RESORT_BUDGETS * budget and np.isfinite(gap)

    def _remaining(self) -> Index:
        """Return the candidates not scored in full whose bound reaches the best score."""
        limit = self.best * (1 - NEAR_TIE)
        return np.flatnonzero((self.scores >= limit) & (self.scores > 0) & (self.stage < SCORED))

    def _tighten(self, remaining: Index) -> None:
        """Examine the leading candidates on more rows near them or, if that pays less, in full."""
        if self.norms is None and not self.decided and len(remaining) > len(self.stage) // 8:
            self._score_all()
            return
        leaders = remaining[_highest(self.scores[remaining], self.batch)]
        stage = int(self.stage[leaders].min())
        if stage < len(self.near_counts):
            leaders = remaining[_highest(self.scores[remaining], self.n_examined)]
            self._examine(remaining, leaders[self.stage[leaders] == stage], stage)
            self.n_examined = min(2 * self.n_examined, _MAX_EXAMINED)
            self._score_examined(remaining, _FIRST_BATCH * len(self.rows) * self.row_cost)
        else:
            self._score(leaders)
            self.batch = min(
                2 * self.batch, max(_MAX_BATCH, int(_ROUND_COST / (len(self.rows) * self.row_cost)))
            )

    def _score_examined(self, remaining: Index, least_work: float) -> None:
        """Score the best examined candidates in full, if enough work was done since the last time.

        A higher best score means that fewer candidates must be examined.
        """
        if self.engine.work - self.work_at_scoring > least_work:
            examined = remaining[self.stage[remaining] > 0]
            self._score(examined[_highest(self.scores[examined], _FIRST_BATCH)])

    def _examine(self, remaining: Index, leaders: Index, stage: int) -> None:
        """Tighten the bounds of candidates in the leaders' cells, on rows nearest to each cell."""
        neighbours = self.neighbours
        if neighbours is None:
            return
        n = len(self.e)
        cell_of = neighbours.cells.of
        leading = np.zeros(len(neighbours.sizes), bool)
        leading[cell_of[leaders % n]] = True
        these = remaining[leading[cell_of[remaining % n]] & (self.stage[remaining] == stage)]
        these = these[np.argsort(cell_of[these % n], kind="stable")]
        count = self.near_counts[stage]
        # Per row of a cell.
        fetch_cost = _CALL_COST / count + _FIND_COST + self.posterior.n_rows * _GATHER_COST
        max_sites = int(fetch_cost / self.row_cost) + 1
        groups = []
        work = 0.0
        for members in np.split(these, np.flatnonzero(np.diff(cell_of[these % n])) + 1):
            sites = members[_highest(self.scores[members], max_sites)]
            cost = count * (fetch_cost + len(sites) * self.row_cost)
            if cost <= MAX_EXAMINE_SHARE * len(self.rows) * len(sites) * self.row_cost:
                groups.append(sites)
                work += cost
            else:
                sites = members
            self.stage[sites] = stage + 1

        for part in tiles(len(groups), max(1, _MAX_NEAR_ROWS // count)):
            self._bound_locally(neighbours, groups[part], count)
        self.engine.work += work

    def _bound_locally(self, neighbours: _Neighbours, groups: list[Index], count: int) -> None:
        """Bound groups of sites, each in one cell: the norm bound minus its gap on rows near it."""
        near: list[Index] = [np.empty(0, np.intp)] * len(groups)

        def find(part: slice) -> None:
            for i in range(part.start, part.stop):
                cell = int(neighbours.cells.of[groups[i][0] % len(self.e)])
                near[i] = neighbours.near(cell, count)

        run_tiles(find, tiles(len(groups), 4), len(groups) * len(neighbours.sizes))
        neighbourhoods = [
            (rows, sites, self.predictive[sites]) for rows, sites in zip(near, groups, strict=True)
        ]
        found = self.posterior.factor.bound_gaps(
            neighbourhoods, self.e, self.w, neighbours.norms.base
        )
        entry = entry_error(self.posterior, self.engine.max_variance)
        for (rows, sites, d), (gaps, squares) in zip(neighbourhoods, found, strict=True):
            off = (
                sqrt(float(np.maximum(self.w[rows], neighbours.norms.base[rows]).sum()))
                * (1 + SUM_ROUNDING)
                * entry
            )
            slack = (2 * np.sqrt(squares) * off + off * off)[:, None]
            slack = slack + gamma(2 * len(rows) + 16) * (squares[:, None] + neighbours.outside * d)
            bound = norm_bound(neighbours.norms, neighbours.outside, d, sites) - gaps + slack
            self._apply_bound(sites, np.maximum(bound, 0.0))

    def _score(self, sites: Index) -> int:
        """Score some candidates in full and return how many."""
        if len(sites):
            sums = self.posterior.factor.sums(self.e, self.w, sites, self.predictive[sites])
            self._set_scored(sites, sums, SUM_ROUNDING)
            self.engine.work += len(self.rows) * (
                self.posterior.n_rows * READ_COST + len(sites) * self.row_cost
            )
            self.work_at_scoring = self.engine.work
        return len(sites)

    def _score_all(self) -> None:
        """Score every candidate in full."""
        sums = self.posterior.factor.sums_everywhere(self.e, self.w, self.predictive)
        self._set_scored(np.arange(len(sums)), sums, gamma(len(self.rows) + 8))

    def _set_scored(self, sites: Index, sums: Array, rounding: float) -> None:
        """Record exact sums, whose relative rounding error is given."""
        engine = self.engine
        self.sums[sites] = sums
        self.stage[sites] = SCORED
        engine.last_sums[sites] = sums
        self.scores[sites] = (sums * self.weight[sites]).max(axis=1)
        self.best = max(self.best, float(self.scores[sites].max()))
        self.rescored += len(sites)
        off = sqrt(self.total_weight) * entry_error(self.posterior, engine.max_variance)
        engine.roots[sites] = np.sqrt(sums) * (1 + rounding) + off

    def _apply_bound(self, sites: Index, bound: Array) -> None:
        """Record a bound where it is lower than the present one."""
        engine = self.engine
        sums = np.minimum(self.sums[sites], bound)
        self.sums[sites] = sums
        engine.last_sums[sites] = sums
        self.scores[sites] = (sums * self.weight[sites]).max(axis=1)
        engine.roots[sites] = np.minimum(engine.roots[sites], np.sqrt(sums) * (1 + gamma(4)))

    def _renew_norms(self, fewer: float) -> bool:
        """Compute norms over the active targets, if these are few enough of the present ones.

        This is done once examining candidates has taken as long as it does, or where nothing else
        reduces the gap.

        Returns:
            Whether new norms were computed.
        """
        engine = self.engine
        if self.norms is None or len(self.rows) > fewer * self.norms.count:
            return False
        self.norms = engine.new_norms(self.e, self.w)
        self.neighbours = _Neighbours(engine.cells, self.norms, self.e, self.w)
        self.work_at_start = engine.work
        self.work_at_scoring = engine.work
        rest = np.flatnonzero(self.stage < SCORED)
        self.stage[rest] = 0
        self._apply_bound(
            rest, norm_bound(self.norms, self.neighbours.outside, self.predictive[rest], rest)
        )
        return True


class _Neighbours:
    """The rows on which a candidate can be examined: those that the norm bound has terms for.

    Attributes:
        outside: The excess that the norms do not cover, see `excess_outside`.
        sizes: How many of these rows each cell has.
    """

    def __init__(self, cells: Cells, norms: ColumnNorms, e: Array, w: Array) -> None:
        self.cells = cells
        self.norms = norms
        self.outside = excess_outside(norms, e, w)
        self._wanted = (norms.base > 0) | (w * e > 0)
        self.sizes = cells.sizes(self._wanted)

    def near(self, cell: int, count: int) -> Index:
        """Return about `count` of these rows near a cell."""
        return self.cells.near(cell, count, self._wanted, self.sizes)


def _evenly_spread(some: Index, count: int) -> Index:
    """Return about `count` of them, at equal steps."""
    return some[:: -(-len(some) // count) or 1]


def _highest(values: Array, count: int) -> Index:
    """Return the indices of the highest values, in no order."""
    if len(values) <= count:
        return np.arange(len(values))
    return np.argpartition(values, len(values) - count)[len(values) - count :]
