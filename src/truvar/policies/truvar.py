"""TruVaR's decision rule, eq. (3): truncated variance reduction over M, per unit cost; and its anticipating variants.

| paper | here | shape |
|---|---|---|
| M_{t-1} | `scene.targets` | (n,) |
| beta_(i), eta_(i) | `scene.epoch` | |
| sigma^2_{t-1|x}(xbar) | `s2 - C^2 / d` | (a, c) |
| M_{t-1|x} | the rows that `stay` | (a, c) |
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import ndtr

from truvar.actions import Candidates, Index
from truvar.confidence import Confidence, LogBeta, Schedule
from truvar.cover import truncated_reduction
from truvar.domain import Array
from truvar.errors import TruvarError
from truvar.policies.seam import Scene, Top
from truvar.regions import LevelSet

TILE = 256  # places anticipated at a time
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(8)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


@dataclass(frozen=True)
class TruVaR:
    """Truncated variance reduction (Bogunovic, Scarlett, Krause, Cevher, NIPS 2016).

    beta        schedule of the confidence parameter; None: `LogBeta()`, the paper's own
    eta, r      first target confidence, in prior standard deviations, and its shrinkage; eta=0: pure variance reduction
    slack       delta-bar: an epoch ends when every confidence in M is within (1 + slack) eta
    among       choose among all points (None), those of M ("potential"), or a few of promise (`Top(50, by="ei")`)
    anticipate  None: sum over M as it is; "mean" or "average": as it would be after the measurement, whose value is
                taken to be the posterior mean, or averaged over
    """

    beta: Schedule | None = None
    eta: float = 1.0
    r: float = 0.1
    slack: float = 0.0
    among: Literal["potential"] | Top | None = None
    anticipate: Literal["mean", "average"] | None = None
    per_cost = True
    signed = False

    def __post_init__(self) -> None:
        if not (self.among in (None, "potential") or isinstance(self.among, Top)):
            raise TruvarError(f"among must be None, 'potential' or Top(k, by=...), but it was {self.among!r}")
        if self.anticipate not in (None, "mean", "average"):
            raise TruvarError(f"anticipate must be None, 'mean' or 'average', but it was {self.anticipate!r}")
        _ = self.confidence  # checks beta, eta, r and slack

    @property
    def confidence(self) -> Confidence:
        return Confidence(self.beta or LogBeta(), self.eta, self.r, self.slack)

    def places(self, scene: Scene, candidates: Candidates) -> Index | None:
        if self.among is None or candidates.where is None:
            return None
        allowed = scene.targets if self.among == "potential" else self.among.points(scene)
        return np.flatnonzero(allowed[candidates.where % len(allowed)])

    def score(self, scene: Scene, candidates: Candidates) -> Array:
        """The numerator of eq. (3), on the scale k(x, x) = 1. (c, K)"""
        if self.anticipate is not None:
            return self._anticipating(scene, candidates)
        variance = scene.posterior.scale**2
        tau = scene.epoch.tau * variance
        reduction = truncated_reduction(scene.engine, scene.targets, tau, candidates, scene.only_best)
        return scene.epoch.beta / variance * reduction

    def _anticipating(self, scene: Scene, candidates: Candidates) -> Array:
        """Eq. (3) with M_{t-1|x} in its second sum: points that leave M take their whole term with them. (c, K)"""
        posterior, epoch = scene.posterior, scene.epoch
        rows = np.flatnonzero(scene.targets)
        share = epoch.beta / posterior.scale**2
        before = np.maximum(share * posterior.pending_variance[rows], epoch.eta**2).sum()
        gains = np.empty_like(candidates.noise)
        for start in range(0, len(gains), TILE):
            tile = candidates.take(np.arange(start, min(start + TILE, len(gains))))
            covariance = posterior.covariance(rows, tile)
            own = posterior.candidate_variance(tile)
            for level in range(tile.levels):
                step = _standardised(covariance, own + tile.noise[:, level])
                s2 = np.maximum(posterior.pending_variance[rows, None] - step**2, 0.0)
                terms = np.maximum(share * s2, epoch.eta**2)
                stays = self._stay(scene, rows, step, np.sqrt(epoch.beta * s2))
                gains[start : start + TILE, level] = before - (stays * terms).sum(axis=0)
        return np.maximum(gains, 0.0)

    def _stay(self, scene: Scene, rows: Index, step: Array, width: Array) -> Array:
        """The probability (a, c) that each row is still in M after a measurement that moves the mean by `step` per
        standard deviation of its surprise and leaves the confidence `width`."""
        goal, mean = scene.goal, scene.posterior.mean[rows, None]
        potential = scene.regions.potential[rows]
        if self.anticipate == "mean":
            return goal.stay(potential, mean - width, mean + width).astype(float)
        if isinstance(goal, LevelSet) and goal.threshold is not None:  # closed form
            return _inside(mean, np.abs(step), goal.threshold - width, goal.threshold + width)
        stays = np.zeros_like(step)
        for node, weight in zip(NODES, WEIGHTS, strict=True):
            moved = mean + node * step
            stays += weight * goal.stay(potential, moved - width, moved + width)
        return stays


def _standardised(covariance: Array, predictive: Array) -> Array:
    """C / sqrt(d): how far one standard deviation of surprise moves each mean; 0 where nothing is left to learn."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(predictive > 0, covariance / np.sqrt(predictive), 0.0)


def _inside(mean: Array, sd: Array, low: Array, high: Array) -> Array:
    """P(low <= z <= high) for z ~ N(mean, sd^2), sd = 0 included."""
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = ndtr((high - mean) / sd) - ndtr((low - mean) / sd)
    return np.where(sd > 0, spread, (mean >= low) & (mean <= high))
