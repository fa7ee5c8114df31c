"""TruVaR's frame with what is undecided about the answer in place of the variance.

| docs/policies.md | here | shape |
|---|---|---|
| the rows that are not yet decided | `Doubt.where` | (rows,) |
| rho, the share of a row's variance that a measurement explains | `C^2 / (sigma^2 d)` | (rows, c) |
| G(rho, u^2), the fall of p (1 - p), u = (mu - h) / sigma | `Doubt.curves` | (rows, degree) |

For an optimum, what is open is the place of the maximiser: the fall of its entropy, which `PES` has, per unit cost.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from truvar._numba import ambiguity
from truvar._numba.threads import blas_in_one_thread
from truvar._typing import Array, Index
from truvar.acquisition.base import PolicyContext
from truvar.acquisition.confidence import RESOLUTION, Confidence, Schedule
from truvar.acquisition.entropy import PES, draw, improvement, sampled, systematic
from truvar.acquisition.truncation import covariance_tiles
from truvar.acquisition.utils import bookkeeping, threshold
from truvar.domain.candidates import Candidates
from truvar.engines.ties import near_best
from truvar.validation import check_at_least

__all__ = ["Plus"]

NEGLIGIBLE = 1e-9  # of all the doubt: rows that have no more together are left out
NEARBY = 120  # places that can be stops of a tour
WORTHWHILE = 0.5  # a tour goes on while a stop pays at least this share of what the first one does
FIRST = 1 + 1e-6  # by how much the first stop of a tour is preferred to the best single measurement


@dataclass(frozen=True)
class Plus:
    """By how much a measurement is expected to lower what is undecided about the answer, per unit cost: of a level set,
    the sum over all points of p (1 - p), p the probability of lying above the threshold; of an optimum, the entropy of
    the maximiser. With travel costs and a level set, the first stop of a short tour.

    stops         of a tour, at most; 1: one measurement ahead
    rows          the sum over more undecided points than this is estimated from so many of them, most of them doubtful
    representers  points that can be the maximiser: all, or so many of promise
    draws         of f on them; rounded up to a power of two
    """

    stops: int = 8
    rows: int = 2500
    representers: int = 50
    draws: int = 1024
    beta: Schedule | None = None
    per_cost = True
    signed = False

    def __post_init__(self) -> None:
        check_at_least(self.stops, 1, "stops")
        check_at_least(self.rows, 2, "rows")
        _ = self._optimum  # checks representers and draws

    @property
    def confidence(self) -> Confidence:
        return bookkeeping(self.beta)

    @property
    def _optimum(self) -> PES:
        return PES(self.representers, self.draws)

    def places(self, context: PolicyContext, candidates: Candidates) -> Index | None:
        return None

    @blas_in_one_thread()
    def score(self, context: PolicyContext, candidates: Candidates) -> Array:
        if not context.goal.level_set:
            agreed = len(draw(context, self.representers, self.draws).starts) == 1
            return improvement(context, candidates) if agreed else self._optimum.score(context, candidates)
        undecided = context.cached(("undecided", self.rows), lambda: _doubt(context, self.rows))
        gains = undecided.falls(context, candidates)
        if context.only_best and candidates.sites is not None and len(gains) == len(context.posterior.sites):
            for place in near_best((gains / candidates.cost).max(axis=1)):  # so that rounding does not choose
                gains[place] = undecided.falls(context, candidates.take(np.array([place])))
        if self.stops > 1 and _can_tour(context, candidates):
            self._prefer_tour(context, candidates, undecided, gains)
        return gains

    def _prefer_tour(self, context: PolicyContext, candidates: Candidates, undecided: Doubt, gains: Array) -> None:
        """The first stop of the tour gets the rate of the best single measurement, and a little more."""
        rates = gains / candidates.cost
        if not rates.max() > 0:
            return
        level = rates.argmax(axis=1)
        places = np.arange(len(level))
        rate, own = rates[places, level], gains[places, level]
        at_rest = context.actions.candidates(None).cost[places, level]
        stops = places
        if len(places) > NEARBY:  # what pays from here, and what would pay from nearby
            likely = [systematic(weight, NEARBY // 2, 0.5) for weight in (rate, own / at_rest)]
            stops = np.unique(np.concatenate([*likely, [int(rate.argmax())]]))
        level = level[stops]
        legs = context.actions.pairwise_costs(stops)[:, np.arange(len(stops)), level]
        here = candidates.take(stops)
        across = context.posterior.covariance(undecided.where, here)
        among = context.posterior.covariance(stops, here)
        noise, first = candidates.noise[stops, level], candidates.cost[stops, level]
        path = np.zeros(self.stops, np.intp)
        ambiguity.tour(across, among, noise, undecided.variance, undecided.curves, legs, first, WORTHWHILE, path)
        gains[stops[path[0]], level[path[0]]] = FIRST * rates.max() * first[path[0]]


@dataclass(frozen=True)
class Doubt:
    """The rows of a level set that are not yet decided, and how undecided each of them is."""

    where: Index  # (rows,)
    variance: Array
    curves: Array  # (rows, degree)

    def falls(self, context: PolicyContext, candidates: Candidates) -> Array:
        """By how much each candidate lowers the sum of p (1 - p), on average over its value. (c, K)"""
        d = context.posterior.candidate_variance(candidates) + candidates.noise.T  # (K, c)
        least = RESOLUTION * context.posterior.scale**2  # below: nothing is left to learn there
        inverse = np.divide(1.0, d, out=np.zeros_like(d), where=d > least)
        falls = np.zeros_like(d)
        for tile, covariance in covariance_tiles(context.engine, self.where, candidates):
            ambiguity.ambiguity_reductions(covariance, inverse[:, tile], self.variance, self.curves, falls[:, tile])
        return np.ascontiguousarray(falls.T)


def _doubt(context: PolicyContext, count: int) -> Doubt:
    mean, sd = context.moments
    with np.errstate(divide="ignore", invalid="ignore"):
        u = (mean - threshold(context)) / sd
    some = sd**2 > RESOLUTION * context.posterior.scale**2  # in M or not: what M lost can come back
    weight = np.where(some, ndtr(u) * ndtr(-u), 0.0)
    where, worth = sampled(np.where(weight * len(weight) > NEGLIGIBLE * weight.sum(), weight, 0.0), count)
    return Doubt(where, sd[where] ** 2, ambiguity.ambiguity_curves(u[where] ** 2, worth))


def _can_tour(context: PolicyContext, candidates: Candidates) -> bool:
    """Whether the cost depends on where one is, and the table is that of the whole domain, one task."""
    whole = candidates.sites is not None and len(candidates.sites) == len(context.domain) == len(
        context.posterior.sites
    )
    return context.actions.travels and whole and not context.domain.continuous
