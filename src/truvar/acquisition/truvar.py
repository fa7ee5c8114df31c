"""TruVaR's decision rule, eq. (3): truncated variance reduction over M, per unit cost; and its anticipating variants.

| paper | here | shape |
|---|---|---|
| M_{t-1} | `context.targets` | (n,) |
| beta_(i), eta_(i) | `context.epoch` | |
| sigma^2_{t-1|x}(xbar) | `s2 - C^2 / d` | (a, c) |
| M_{t-1|x} | the rows that `stay` | (a, c) |
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from truvar._numba import anticipation
from truvar._typing import Array, Index
from truvar.acquisition.auto import Plus
from truvar.acquisition.base import PolicyContext, TopK
from truvar.acquisition.confidence import Confidence, LogBeta, Schedule
from truvar.acquisition.truncation import covariance_tiles, truncated_reduction
from truvar.domain.candidates import Candidates
from truvar.domain.goals import LevelSet
from truvar.engines.ties import near_best
from truvar.exceptions import TruvarError

__all__ = ["TruVaR"]

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(8)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


@dataclass(frozen=True)
class TruVaR:
    """Truncated variance reduction (Bogunovic, Scarlett, Krause, Cevher, NIPS 2016).

    beta        schedule of the confidence parameter; None: `LogBeta()`, the paper's own
    eta, r      first target confidence, in prior standard deviations, and its shrinkage; eta=0: pure variance reduction
    slack       delta-bar: an epoch ends when every confidence in M is within (1 + slack) eta
    among       choose among all points (None), those of M and what else must be known ("potential"), or a few of
                promise (`TopK(50, by="ei")`)
    anticipate  None: sum over M as it is; "mean" or "average": as it would be after the measurement, whose value is
                taken to be the posterior mean, or averaged over
    """

    beta: Schedule | None = None
    eta: float = 1.0
    r: float = 0.1
    slack: float = 0.0
    among: Literal["potential"] | TopK | None = None
    anticipate: Literal["mean", "average"] | None = None
    per_cost = True
    signed = False

    def __post_init__(self) -> None:
        if not (self.among in (None, "potential") or isinstance(self.among, TopK)):
            raise TruvarError(f"among must be None, 'potential' or TopK(k, by=...), got {self.among!r}")
        if self.anticipate not in (None, "mean", "average"):
            raise TruvarError(f"anticipate must be None, 'mean' or 'average', got {self.anticipate!r}")
        _ = self.confidence  # checks beta, eta, r and slack

    @staticmethod
    def plus() -> Plus:
        """The rule that weighs what is open by how undecided it is: `Plus()`."""
        return Plus()

    @cached_property
    def confidence(self) -> Confidence:
        return Confidence(LogBeta() if self.beta is None else self.beta, self.eta, self.r, self.slack)

    def places(self, context: PolicyContext, candidates: Candidates) -> Index | None:
        if self.among is None or candidates.sites is None:
            return None
        allowed = context.targets if self.among == "potential" else self.among.points(context)
        return np.flatnonzero(allowed[candidates.sites % len(allowed)])

    def score(self, context: PolicyContext, candidates: Candidates) -> Array:
        """The numerator of eq. (3), on the scale k(x, x) = 1. (c, K)"""
        if self.anticipate is None:
            variance = context.posterior.scale**2
            tau = context.epoch.tau * variance
            reduction = truncated_reduction(context.engine, context.targets, tau, candidates, context.only_best)
            return context.epoch.beta / variance * reduction
        gains = self._anticipating(context, candidates)
        if context.only_best and candidates.sites is not None and len(gains) == len(context.posterior.sites):
            for place in near_best((gains / candidates.cost).max(axis=1)):
                gains[place] = self._anticipating(context, candidates.take(np.array([place])))
        return gains

    def _anticipating(self, context: PolicyContext, candidates: Candidates) -> Array:
        """Eq. (3) with M_{t-1|x} in its second sum: points that leave M take their whole term with them. (c, K)"""
        posterior, epoch, goal = context.posterior, context.epoch, context.goal
        rows = np.flatnonzero(context.targets)
        share, floor = epoch.beta / posterior.scale**2, epoch.eta**2
        variance, mean = posterior.pending_variance[rows], goal.sign * posterior.mean[rows]
        before = np.maximum(share * variance, floor).sum()
        shared = variance, mean, float(np.sqrt(epoch.beta)), share, floor
        nodes, weights = (NODES, WEIGHTS) if self.anticipate == "average" else (np.zeros(1), np.ones(1))
        threshold = goal.threshold if isinstance(goal, LevelSet) else None
        fraction = float(goal.fraction_of_max or 0.0) if isinstance(goal, LevelSet) else 0.0
        d = posterior.candidate_variance(candidates)[:, None] + candidates.noise
        scale = np.divide(1.0, np.sqrt(d), out=np.zeros_like(d), where=d > 0)  # 0: nothing is left to learn there
        after = np.zeros((d.shape[1], len(d)))
        for tile, covariance in covariance_tiles(context.engine, rows, candidates):
            for level, out in enumerate(after):
                moves = covariance, np.ascontiguousarray(scale[tile, level])
                if threshold is not None:
                    average = self.anticipate == "average"
                    anticipation.anticipated_level(*moves, *shared, threshold, average, out[tile])
                else:
                    member = context.regions.potential[rows]
                    anticipation.anticipated_bounds(*moves, *shared, nodes, weights, fraction, member, out[tile])
        return np.asarray(np.maximum(before - after.T, 0.0))
