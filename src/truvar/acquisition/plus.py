"""The policy `Plus`: expected reduction of the ambiguity of the answer per unit cost.

It has the form of TruVaR, with the ambiguity in place of the truncated variance.

| docs/policies.md | here | shape |
|---|---|---|
| the undecided rows | `UndecidedRows.sites` | (rows,) |
| rho, the share of a row's variance that a measurement explains | `C^2 / (sigma^2 d)` | (rows, c) |
| G(rho, u^2), the reduction of p (1 - p), u = (mu - h) / sigma | `UndecidedRows.curves` | (rows, degree) |

For an optimum the ambiguity is the entropy of the maximiser, whose reduction `PES` computes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy  # scipy.special is imported on first use, as it imports slowly

from truvar._numba import ambiguity
from truvar._numba.threads import blas_in_one_thread
from truvar._typing import Array, Index
from truvar.acquisition._representers import improvement_in_box, leading_point, sample_rows
from truvar.acquisition._tours import TourRows, can_tour, prefer_first_stop
from truvar.acquisition.base import LEVEL_SET, OPTIMUM, BasePolicy, PolicyContext
from truvar.acquisition.confidence import MIN_VARIANCE_SHARE, Schedule
from truvar.acquisition.entropy import PES, expected_improvement_table, posterior_draws
from truvar.acquisition.truncation import covariance_tiles
from truvar.acquisition.utils import thresholds
from truvar.domain.candidates import Candidates
from truvar.engines.ties import near_best
from truvar.validation import check_at_least, check_boolean

__all__ = ["Plus"]

# share of all ambiguity: rows that hold no more than this together are left out
_NEGLIGIBLE_AMBIGUITY_SHARE = 1e-9


@dataclass(frozen=True)
class Plus(BasePolicy):
    """Expected reduction of the ambiguity of the answer, per unit cost.

    For a level set the ambiguity is the sum over all points of p (1 - p), p the probability of
    lying above the threshold; for an optimum, the entropy of the maximiser. With travel costs and a
    level set, the policy chooses the first stop of a short tour.

    Attributes:
        stops: Stops of a tour, at most; 1 to look one measurement ahead.
        rows: Undecided points in the sum; if there are more, it is estimated from a weighted sample
            of this size.
        representers: Points that can be the maximiser: all, or this many of highest promise.
        draws: Draws of f on them; rounded up to a power of two.
        refine: Whether every second measurement of an optimum in a box goes where it promises to
            improve on the best measured point most. Otherwise few are made at the optimum itself.
        beta: See `BasePolicy`.
    """

    stops: int = 8
    rows: int = 2500
    representers: int = 50
    draws: int = 1024
    beta: Schedule | None = None
    refine: bool = True
    per_cost = True
    chooses_noise_level = True
    supports_bands = True
    supported_goals = OPTIMUM | LEVEL_SET
    # the probabilities of a threshold far from the mean are 0 in floating point, its bounds are not
    explores = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least(self.stops, 1, "stops")
        check_at_least(self.rows, 2, "rows")
        _ = self._entropy_search  # checks representers and draws
        check_boolean(self.refine, "refine")

    @property
    def _entropy_search(self) -> PES:
        return PES(self.representers, self.draws)

    def starts(self, context: PolicyContext) -> Array | None:
        """Return the point of highest posterior mean, near which the score in a box may be high."""
        if not self.refine or not context.goal.seeks_optimum or not context.has_bounds:
            return None
        return leading_point(context)[None, :]

    @blas_in_one_thread()
    def score(self, context: PolicyContext, candidates: Candidates) -> Array:
        """Return the expected reduction of the ambiguity. Shape (c, K)."""
        if context.goal.seeks_optimum:
            improvement = improvement_in_box(context, candidates) if self.refine else None
            if improvement is not None:
                return improvement
            draws = posterior_draws(context, self.representers, self.draws)
            if draws.n_maximisers == 1:
                return expected_improvement_table(context, candidates)
            return self._entropy_search.score(context, candidates)
        undecided = context.cached(
            ("undecided", self.rows), lambda: _undecided_rows(context, self.rows)
        )
        gains = undecided.reductions(context, candidates)
        if (
            context.only_best
            and candidates.sites is not None
            and len(gains) == len(context.posterior.sites)
        ):
            # Near-ties are scored again one by one, so that the choice does not depend on rounding.
            for row in near_best((gains / candidates.effective_cost).max(axis=1)):
                gains[row] = undecided.reductions(context, candidates.take(np.array([row])))
        if self.stops > 1 and can_tour(context, candidates):
            rows = TourRows(undecided.sites, undecided.variance, undecided.curves)
            prefer_first_stop(context, candidates, rows, self.stops, gains)
        return gains


@dataclass(frozen=True)
class _UndecidedRows:
    """Rows of a level set that are not decided, and how undecided each of them is.

    Attributes:
        sites: Sites of the rows. Shape (rows,).
        variance: sigma^2 there, given pending points. Shape (rows,).
        curves: Coefficients of G(., u^2) times the weight of the row. Shape (rows, degree).
    """

    sites: Index
    variance: Array
    curves: Array

    def reductions(self, context: PolicyContext, candidates: Candidates) -> Array:
        """Return the expected reduction of the sum of p (1 - p) by each candidate. Shape (c, K)."""
        d = context.posterior.candidate_variance(candidates) + candidates.noise.T  # (K, c)
        # below: nothing is left to learn there
        smallest = MIN_VARIANCE_SHARE * context.posterior.scale**2
        inverse = np.divide(1.0, d, out=np.zeros_like(d), where=d > smallest)
        reductions = np.zeros_like(d)
        for tile, covariance in covariance_tiles(context.engine, self.sites, candidates):
            ambiguity.ambiguity_reductions(
                covariance, inverse[:, tile], self.variance, self.curves, reductions[:, tile]
            )
        return np.ascontiguousarray(reductions.T)


def _undecided_rows(context: PolicyContext, count: int) -> _UndecidedRows:
    """Return at most `count` undecided rows, inside M or not, as points can return to M."""
    mean, sd = context.moments
    distances = []
    for level in thresholds(context):
        with np.errstate(divide="ignore", invalid="ignore"):
            distances.append((mean - level) / sd)
    # Of the model that the covariances belong to.
    variance = context.posterior.pending_variance[: len(sd)]
    uncertain = variance > MIN_VARIANCE_SHARE * context.posterior.scale**2
    ambiguities = [scipy.special.ndtr(u) * scipy.special.ndtr(-u) for u in distances]
    weight = np.where(uncertain, sum(ambiguities[1:], start=ambiguities[0]), 0.0)
    relevant = np.where(
        weight * len(weight) > _NEGLIGIBLE_AMBIGUITY_SHARE * weight.sum(), weight, 0.0
    )
    sites, multiplicity = sample_rows(relevant, count)
    # The ambiguities of several thresholds add up, and so do their curves.
    curves = [ambiguity.ambiguity_curves(u[sites] ** 2, multiplicity) for u in distances]
    return _UndecidedRows(sites, variance[sites], sum(curves[1:], start=curves[0]))
