"""TruVaR's acquisition function, eq. (3), and its look-ahead variants.

| paper | here | shape |
|---|---|---|
| M_{t-1} | `context.targets` | (n,) |
| beta_(i), eta_(i) | `context.epoch` | |
| sigma^2_{t-1|x}(xbar) | `s2 - C^2 / d` | (a, c) |
| M_{t-1|x} | the rows that stay in M | (a, c) |
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from truvar._numba import anticipation
from truvar._typing import Array, Index, Mask
from truvar.acquisition._map import map_reduction
from truvar.acquisition._representers import RefinedPoints, refined_points
from truvar.acquisition.base import BasePolicy, PolicyContext
from truvar.acquisition.confidence import Confidence, LogBeta, Schedule
from truvar.acquisition.truncation import (
    covariance_tiles,
    truncated_reduction,
    truncated_reduction_at,
)
from truvar.acquisition.utils import best_observed, expected_improvement
from truvar.domain.candidates import Candidates
from truvar.domain.goals import Bands, Goal, LevelSet
from truvar.engines.ties import near_best
from truvar.exceptions import InvalidArgumentError, UnsupportedGoalError
from truvar.messages import for_interface
from truvar.validation import check_boolean, check_integer

if TYPE_CHECKING:
    from truvar.acquisition.plus import Plus

__all__ = ["TopK", "TruVaR"]


@dataclass(frozen=True)
class TopK:
    """Restriction of the choice to the k points of highest promise, for `TruVaR(among=...)`.

    Attributes:
        k: Number of points, at least 1.
        by: Measure of promise: upper confidence bound ("ucb") or expected improvement ("ei").
    """

    k: int
    by: Literal["ucb", "ei"] = "ucb"

    def __post_init__(self) -> None:
        if type(self.k) is not int or self.k < 1 or self.by not in ("ucb", "ei"):
            given = for_interface(
                f"TopK(k={self.k!r}, by={self.by!r})",
                problem=f"among = {{top = {self.k}, by = '{self.by}'}}",
            )
            raise InvalidArgumentError(
                f"expected the k >= 1 best points by 'ucb' or 'ei', got {given}"
            )

    def points(self, context: PolicyContext) -> Mask:
        """Return the k best points of the domain as a mask; ties go to the lower index."""
        mean, sd = context.moments
        if self.by == "ucb":
            promise = mean + np.sqrt(context.epoch.beta) * sd
        else:
            promise = expected_improvement(mean, sd, best_observed(context))
        chosen = np.zeros(len(promise), bool)
        chosen[np.argsort(-promise, kind="stable")[: self.k]] = True
        return chosen


@dataclass(frozen=True)
class TruVaR(BasePolicy):
    """Truncated variance reduction (Bogunovic, Scarlett, Krause, Cevher, NIPS 2016).

    Attributes:
        beta: Schedule of the confidence parameter; None for `LogBeta()`, the paper's own.
        eta: First target confidence eta_(1), in prior standard deviations; 0 for pure variance
            reduction.
        r: Factor by which eta shrinks from epoch to epoch.
        slack: delta-bar: an epoch ends when every confidence width in M is within (1 + slack) eta.
        among: Points to choose among: None for all, "potential" for M and what else must be known,
            or the points of highest promise, such as `TopK(50, by="ei")`.
        anticipate: None sums over the present M. "mean" and "average" sum over M after the
            measurement, whose value is taken to be the posterior mean, or averaged over.
        nodes: Nodes of a Gauss-Hermite quadrature for `anticipate="average"`, as release 0.1.0 used
            it (8) where no threshold is given; None for the exact average.
        refine: Whether an optimum in a box gets further points around the most promising ones to
            sum over, as soon as few representers are undecided. Otherwise it is found no more
            precisely than the representers lie.
    """

    beta: Schedule | None = None
    eta: float = 1.0
    r: float = 0.1
    slack: float = 0.0
    among: Literal["potential"] | TopK | None = None
    anticipate: Literal["mean", "average"] | None = None
    nodes: int | None = None
    refine: bool = True
    per_cost = True
    chooses_noise_level = True
    follows_sets = True
    supports_bands = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (self.among in (None, "potential") or isinstance(self.among, TopK)):
            raise InvalidArgumentError(
                f"among must be None, 'potential' or TopK(k, by=...), got {self.among!r}"
            )
        if self.anticipate not in (None, "mean", "average"):
            raise InvalidArgumentError(
                f"anticipate must be None, 'mean' or 'average', got {self.anticipate!r}"
            )
        if self.nodes is not None:
            check_integer(self.nodes, "nodes", minimum=1)
        check_boolean(self.refine, "refine")
        _ = self.confidence  # checks beta, eta, r and slack

    def check_supported(self, goal: Goal, n_levels: int) -> None:
        """Check goal and noise levels against what is anticipated.

        Raises:
            UnsupportedGoalError: If `anticipate` does not go with the goal.
        """
        super().check_supported(goal, n_levels)
        is_other = isinstance(goal, LevelSet) and (
            goal.fraction_of_min is not None or goal.margin is not None
        )
        if self.anticipate is not None and is_other:
            raise UnsupportedGoalError(
                f"anticipate={self.anticipate!r} is for an optimum, thresholds or fraction_of_max, "
                f"but the goal is {goal}; leave out anticipate"
            )

    @staticmethod
    def plus() -> Plus:
        """Return `Plus()`, which reduces the ambiguity of the answer instead of the variance."""
        from truvar.acquisition.plus import Plus

        return Plus()

    @cached_property
    def confidence(self) -> Confidence:
        """Schedules of beta and eta, which drive the epochs of Algorithm 1."""
        beta = LogBeta() if self.beta is None else self.beta
        return Confidence(beta, self.eta, self.r, self.slack, monotone=True)

    def candidate_rows(self, context: PolicyContext, candidates: Candidates) -> Index | None:
        """Return the rows that `among` allows; between the points of a box, all."""
        if self.among is None or candidates.sites is None:
            return None
        allowed = context.targets if self.among == "potential" else self.among.points(context)
        return np.flatnonzero(allowed[candidates.sites % len(allowed)])

    def starts(self, context: PolicyContext) -> Array | None:
        """Return points of a box near which the score may be high; None if there are none."""
        refined = self._refined(context)
        return None if refined is None else refined.centres

    def score(self, context: PolicyContext, candidates: Candidates) -> Array:
        """Return the numerator of eq. (3), on the scale k(x, x) = 1. Shape (c, K)."""
        if not context.goal.truncates:  # M stays D, so that there is nothing to anticipate
            return map_reduction(context, candidates)
        refined = self._refined(context)
        if self.anticipate is None and refined is None:
            variance = context.posterior.scale**2
            tau = context.epoch.tau * variance
            reduction = truncated_reduction(
                context.engine, context.targets, tau, candidates, context.only_best
            )
            return context.epoch.beta / variance * reduction
        gains = self._gains(context, candidates, refined)
        if (
            context.only_best
            and candidates.sites is not None
            and len(gains) == len(context.posterior.sites)
        ):
            # Near-ties are scored again one by one, so that the choice does not depend on rounding.
            for row in near_best((gains / candidates.effective_cost).max(axis=1)):
                gains[row] = self._gains(context, candidates.take(np.array([row])), refined)
        return gains

    def _refined(self, context: PolicyContext) -> RefinedPoints | None:
        return refined_points(context) if self.refine else None

    def _gains(
        self, context: PolicyContext, candidates: Candidates, refined: RefinedPoints | None
    ) -> Array:
        """Return the numerator of eq. (3) or of its variant, refined points included: (c, K)."""
        if self.anticipate is not None:
            return self._anticipated_gains(context, candidates, refined)
        variance = context.posterior.scale**2
        tau = context.epoch.tau * variance
        reduction = truncated_reduction(context.engine, context.targets, tau, candidates)
        if refined is not None:
            d = context.posterior.candidate_variance(candidates)[:, None] + candidates.noise
            covariance = refined.covariance(context, candidates)
            reduction += truncated_reduction_at(covariance, refined.variance, tau, d)
        return np.asarray(context.epoch.beta / variance * reduction)

    def _anticipated_gains(
        self, context: PolicyContext, candidates: Candidates, refined: RefinedPoints | None
    ) -> Array:
        """Return eq. (3) with M_{t-1|x} in its second sum: (c, K).

        A point that leaves M takes its whole term.
        """
        posterior = context.posterior
        rows = np.flatnonzero(context.targets)
        variance = posterior.pending_variance[rows]
        mean = context.goal.sign * posterior.mean[rows]
        member = context.regions.potential[rows]
        if refined is not None:
            variance = np.append(variance, refined.variance)
            mean = np.append(mean, context.goal.sign * refined.mean)
            member = np.append(member, np.ones(len(refined.points), bool))
        share = context.epoch.beta / posterior.scale**2
        floor = context.epoch.eta**2
        before = np.maximum(share * variance, floor).sum()
        shared = variance, mean, float(np.sqrt(context.epoch.beta)), share, floor
        d = posterior.candidate_variance(candidates)[:, None] + candidates.noise
        # 0: nothing is left to learn there
        scale = np.divide(1.0, np.sqrt(d), out=np.zeros_like(d), where=d > 0)
        after = np.zeros((d.shape[1], len(d)))
        sums, for_goal = self._staying_sums(context.goal, member)
        for tile, covariance in covariance_tiles(context.engine, rows, candidates):
            if refined is not None:
                part = (
                    candidates
                    if len(covariance.T) == len(d)
                    else candidates.take(np.arange(tile.start, tile.stop))
                )
                covariance = np.vstack([covariance, refined.covariance(context, part)])
            for level, out in enumerate(after):
                moves = covariance, np.ascontiguousarray(scale[tile, level])
                sums(*moves, *shared, *for_goal, out[tile])
        return np.asarray(np.maximum(before - after.T, 0.0))

    def _staying_sums(self, goal: Goal, member: Mask) -> tuple[Any, tuple[Any, ...]]:
        """Return the compiled function for the targets that stay in M, and its arguments.

        Args:
            goal: Says which targets stay.
            member: Whether each target is in M. Shape (a,).
        """
        average = self.anticipate == "average"
        fraction = 0.0
        if isinstance(goal, Bands):
            return anticipation.anticipated_levels, (np.array(goal.thresholds), average)
        if isinstance(goal, LevelSet):
            if goal.threshold is not None:
                return anticipation.anticipated_level, (goal.sign * goal.threshold, average)
            fraction = float(goal.fraction_of_max or 0.0)
        if average and self.nodes is None:
            return anticipation.expected_bounds, (fraction, member)
        nodes = np.zeros(1)
        weights = np.ones(1)
        if average and self.nodes is not None:
            nodes, weights = np.polynomial.hermite_e.hermegauss(self.nodes)
            weights = weights / weights.sum()
        return anticipation.anticipated_bounds, (nodes, weights, fraction, member)
