"""The best candidate of a weighted sum on a large domain, from a sample of rows and candidates.

| symbol | here | shape |
|---|---|---|
| a_j = w_j sigma_j^2, how undecided row j is | `ambiguity` | (n,) |
| pi_j = min(1, m a_j / A), probability that row j is in a sample of about m, A the sum of a | `_sample` | (n,) |
| u_j, a number in [0, 1) for each point | `_spread_numbers` | (n,) |
| S_x, the sum over the sampled rows of (w_j / pi_j) C_jx^2 | `_scores` | (c, K) |

Row j is in the sample if u_j < pi_j. The u are multiples of the golden ratio along a curve through
the domain, plus a number drawn for each choice. Neighbours on the curve have numbers that are far
apart, so that every region has its share of the sample; and as u does not depend on the model, a
slightly different model has nearly the same sample. Candidates are looked for in three rounds, each on what
the one before left: a sample of all on few rows, the neighbours of the best of them on the same
rows, and the best of these on many rows. `tests/acquisition/test_sampled.py` measures the loss.
"""

from __future__ import annotations

import numpy as np

from truvar._numba.threads import blas_in_one_thread
from truvar._typing import Array, Index, Mask
from truvar.acquisition.base import PolicyContext
from truvar.acquisition.confidence import MIN_VARIANCE_SHARE
from truvar.domain.candidates import Candidates
from truvar.models.kernels import stationary_form

MAX_EXACT_POINTS = 2500  # points of a domain up to which all rows and candidates are scored
MANY_ROWS = 2048  # rows that the last round sums over
FEW_ROWS = 512  # rows of the first two rounds
FIRST_CANDIDATES = 1536  # candidates of the first round
LEADERS = 12  # candidates whose neighbours are scored in the second round
NEIGHBOURS = 48  # of each leader
FINALISTS = 32  # candidates of the last round
GOLDEN_RATIO = (np.sqrt(5.0) - 1) / 2
TIE_DIGITS = 9  # digits of a share of the best score: equal ones count as ties, as in `ties`


def can_sample(context: PolicyContext, candidates: Candidates) -> bool:
    """Return whether a choice may be made from a sample: a learned model, many points, no tasks."""
    return (
        context.learned
        and context.only_best
        and candidates.sites is not None
        and not context.domain.continuous
        and len(context.domain) > MAX_EXACT_POINTS
        and len(context.posterior.sites) == len(context.domain)
    )


def sampled_reduction(
    context: PolicyContext, rows: Index, weight: Array, candidates: Candidates
) -> Array:
    """Return the weighted reduction of variance by the best candidates of a sample, 0 elsewhere.

    Args:
        context: The context of the choice.
        rows: Targets to sum over. Shape (a,).
        weight: w of the rows. Shape (a,).
        candidates: Table of candidates, which are sites.

    Returns:
        The reduction by every row and noise level. Shape (c, K).
    """
    search = _SampledSearch(context, rows, weight, candidates)
    with blas_in_one_thread():
        return search.run()


class _SampledSearch:
    """One choice from a sample, see `sampled_reduction`."""

    def __init__(
        self, context: PolicyContext, rows: Index, weight: Array, candidates: Candidates
    ) -> None:
        posterior = context.posterior
        n = len(context.domain)
        self.posterior = posterior
        self.candidates = candidates
        self.sites = np.arange(0) if candidates.sites is None else candidates.sites
        self.weight = np.zeros(n)
        self.weight[rows] = weight
        self.variance = posterior.pending_variance
        self.ambiguity = self.weight * self.variance
        self.d = posterior.candidate_variance(candidates)[:, None] + candidates.noise
        known = self.d <= MIN_VARIANCE_SHARE * posterior.scale**2
        self.per_sum = np.divide(1.0, self.d, out=np.zeros_like(self.d), where=~known)
        self.per_cost = self.per_sum / candidates.effective_cost
        self.rank = context.domain.curve_rank
        self.offsets = context.rng.random(2)
        self.gains = np.zeros_like(self.d)
        form = stationary_form(posterior.kernel)
        scales = context.domain.extent if form is None else form.lengthscales
        self.scaled = np.ascontiguousarray((candidates.points / scales).T)  # (d, c)

    def run(self) -> Array:
        """Return the gains of the candidates of the last round, 0 for all others: (c, K)."""
        numbers = _spread_numbers(self.rank, self.offsets[0])
        few, few_shares = _sample(self.ambiguity, FEW_ROWS, numbers)
        if len(few) == 0:
            few, few_shares = _sample(self.ambiguity, len(self.ambiguity), numbers)
        first = np.flatnonzero(self._first_candidates())
        scores = self._scores(first, few, few_shares)[0]
        leaders = first[_highest(scores, LEADERS)]
        near = np.setdiff1d(self._neighbours(leaders), first)
        tried = np.concatenate([first, near])
        scores = np.concatenate([scores, self._scores(near, few, few_shares)[0]])
        finalists = np.sort(tried[_highest(scores, FINALISTS)])
        many, many_shares = _sample(self.ambiguity, MANY_ROWS, numbers)
        self.gains[finalists] = self._scores(finalists, many, many_shares)[1]
        return self.gains

    def _first_candidates(self) -> Mask:
        """Return the candidates of the first round: (c,).

        Half of the sample is drawn by how undecided a point is, half by its variance, both per cost.
        """
        cheapest = self.candidates.effective_cost.min(axis=1)
        promise = np.zeros(len(cheapest))
        for part in (self.ambiguity[self.sites], self.variance[self.sites]):
            per_cost = np.divide(part, cheapest, out=np.zeros(len(part)), where=cheapest > 0)
            total = float(per_cost.sum())
            if total > 0:
                promise += per_cost / total
        promise[cheapest == 0] = promise.max(initial=0.0)
        numbers = _spread_numbers(self.rank[self.sites], self.offsets[1])
        if not promise.any():
            promise += 1.0
        return np.asarray(numbers < FIRST_CANDIDATES * promise / promise.sum())

    def _scores(self, these: Index, rows: Index, shares: Array) -> tuple[Array, Array]:
        """Return the scores (q,) and gains (q, K) of some candidates over sampled rows."""
        if len(these) == 0 or len(rows) == 0:
            return np.zeros(len(these)), np.zeros((len(these), self.d.shape[1]))
        w = np.zeros(len(self.weight))
        w[rows] = self.weight[rows] / shares
        sums = self.posterior.factor.sums(self.variance, w, self.sites[these], self.d[these], rows)
        return (sums * self.per_cost[these]).max(axis=1), sums * self.per_sum[these]

    def _neighbours(self, leaders: Index) -> Index:
        """Return the candidates nearest to the leaders, in length-scales."""
        count = min(NEIGHBOURS, len(self.sites))
        found = []
        for leader in leaders:
            distance = np.zeros(len(self.sites))
            for column in self.scaled:
                distance += (column - column[leader]) ** 2
            found.append(np.argpartition(distance, count - 1)[:count])
        return np.unique(np.concatenate(found)) if found else np.arange(0)


def _spread_numbers(rank: Index, offset: float) -> Array:
    """Return a number in [0, 1) for each rank, far apart for neighbouring ranks."""
    return np.asarray((rank * GOLDEN_RATIO + offset) % 1.0)


def _sample(ambiguity: Array, count: int, numbers: Array) -> tuple[Index, Array]:
    """Return about `count` rows, drawn by ambiguity, and their probabilities."""
    total = float(ambiguity.sum())
    if not total > 0:
        return np.arange(0), np.zeros(0)
    share = np.minimum(ambiguity * (count / total), 1.0)
    rows = np.flatnonzero(numbers < share)
    return rows, share[rows]


def _highest(scores: Array, count: int) -> Index:
    """Return the positions of the highest scores; among ties the first, whatever rounding did."""
    best = float(scores.max(initial=0.0))
    if not best > 0:
        return np.arange(min(count, len(scores)))
    return np.argsort(-np.round(scores / best, TIE_DIGITS), kind="stable")[:count]
