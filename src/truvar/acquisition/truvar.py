"""TruVaR's acquisition function, eq. (3): truncated variance reduction over M per unit cost, and look-ahead variants.

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
from typing import TYPE_CHECKING, Literal

import numpy as np

from truvar._numba import anticipation
from truvar._typing import Array, Index, Mask
from truvar.acquisition.base import BasePolicy, PolicyContext
from truvar.acquisition.confidence import Confidence, LogBeta, Schedule
from truvar.acquisition.truncation import covariance_tiles, truncated_reduction
from truvar.acquisition.utils import best_observed, expected_improvement
from truvar.domain.candidates import Candidates
from truvar.domain.goals import LevelSet
from truvar.engines.ties import near_best
from truvar.exceptions import InvalidArgumentError
from truvar.messages import for_interface

if TYPE_CHECKING:
    from truvar.acquisition.auto import Plus

__all__ = ["TopK", "TruVaR"]

# Gauss-Hermite quadrature over the standard normal surprise of a measurement.
NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(8)
WEIGHTS = _WEIGHTS / _WEIGHTS.sum()


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
                f"TopK(k={self.k!r}, by={self.by!r})", problem=f"among = {{top = {self.k}, by = '{self.by}'}}"
            )
            raise InvalidArgumentError(f"expected the k >= 1 best points by 'ucb' or 'ei', got {given}")

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
        eta: First target confidence eta_(1), in prior standard deviations; 0 for pure variance reduction.
        r: Factor by which eta shrinks from epoch to epoch.
        slack: delta-bar: an epoch ends when every confidence width in M is within (1 + slack) eta.
        among: Points to choose among: None for all, "potential" for M and what else must be known, or the points of
            highest promise, such as `TopK(50, by="ei")`.
        anticipate: None sums over M as it is. "mean" and "average" sum over M as it would be after the measurement,
            whose value is taken to be the posterior mean, or averaged over.
    """

    beta: Schedule | None = None
    eta: float = 1.0
    r: float = 0.1
    slack: float = 0.0
    among: Literal["potential"] | TopK | None = None
    anticipate: Literal["mean", "average"] | None = None
    per_cost = True
    chooses_noise_level = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (self.among in (None, "potential") or isinstance(self.among, TopK)):
            raise InvalidArgumentError(f"among must be None, 'potential' or TopK(k, by=...), got {self.among!r}")
        if self.anticipate not in (None, "mean", "average"):
            raise InvalidArgumentError(f"anticipate must be None, 'mean' or 'average', got {self.anticipate!r}")
        _ = self.confidence  # checks beta, eta, r and slack

    @staticmethod
    def plus() -> Plus:
        """Return `Plus()`, the policy that reduces the ambiguity of the answer instead of the variance."""
        from truvar.acquisition.auto import Plus

        return Plus()

    @cached_property
    def confidence(self) -> Confidence:
        """Schedules of beta and eta, which drive the epochs of Algorithm 1."""
        return Confidence(LogBeta() if self.beta is None else self.beta, self.eta, self.r, self.slack)

    def candidate_rows(self, context: PolicyContext, candidates: Candidates) -> Index | None:
        """Return the rows that `among` allows; between the points of a box, all."""
        if self.among is None or candidates.sites is None:
            return None
        allowed = context.targets if self.among == "potential" else self.among.points(context)
        return np.flatnonzero(allowed[candidates.sites % len(allowed)])

    def score(self, context: PolicyContext, candidates: Candidates) -> Array:
        """Return the numerator of eq. (3), on the scale k(x, x) = 1. Shape (c, K)."""
        if self.anticipate is None:
            variance = context.posterior.scale**2
            tau = context.epoch.tau * variance
            reduction = truncated_reduction(context.engine, context.targets, tau, candidates, context.only_best)
            return context.epoch.beta / variance * reduction
        gains = self._anticipated_gains(context, candidates)
        if context.only_best and candidates.sites is not None and len(gains) == len(context.posterior.sites):
            # Near-ties are scored again one by one, so that the choice does not depend on rounding.
            for row in near_best((gains / candidates.cost).max(axis=1)):
                gains[row] = self._anticipated_gains(context, candidates.take(np.array([row])))
        return gains

    def _anticipated_gains(self, context: PolicyContext, candidates: Candidates) -> Array:
        """Return eq. (3) with M_{t-1|x} in its second sum: a point that leaves M takes its whole term. Shape (c, K)."""
        posterior = context.posterior
        epoch = context.epoch
        goal = context.goal
        rows = np.flatnonzero(context.targets)
        share = epoch.beta / posterior.scale**2
        floor = epoch.eta**2
        variance = posterior.pending_variance[rows]
        mean = goal.sign * posterior.mean[rows]
        before = np.maximum(share * variance, floor).sum()
        shared = variance, mean, float(np.sqrt(epoch.beta)), share, floor
        average = self.anticipate == "average"
        nodes, weights = (NODES, WEIGHTS) if average else (np.zeros(1), np.ones(1))
        threshold = None
        fraction = 0.0
        if isinstance(goal, LevelSet):
            threshold = goal.threshold
            fraction = float(goal.fraction_of_max or 0.0)
        d = posterior.candidate_variance(candidates)[:, None] + candidates.noise
        scale = np.divide(1.0, np.sqrt(d), out=np.zeros_like(d), where=d > 0)  # 0: nothing is left to learn there
        after = np.zeros((d.shape[1], len(d)))
        for tile, covariance in covariance_tiles(context.engine, rows, candidates):
            for level, out in enumerate(after):
                moves = covariance, np.ascontiguousarray(scale[tile, level])
                if threshold is not None:
                    anticipation.anticipated_level(*moves, *shared, threshold, average, out[tile])
                else:
                    member = context.regions.potential[rows]
                    anticipation.anticipated_bounds(*moves, *shared, nodes, weights, fraction, member, out[tile])
        return np.asarray(np.maximum(before - after.T, 0.0))
