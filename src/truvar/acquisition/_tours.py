"""Short tours where travel costs: the next measurement is the first stop of a good tour.

A tour is built by greedy insertion (`_numba.ambiguity.tour`) from the candidates that pay most,
either from the present position or once one is nearby.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from truvar._numba import ambiguity
from truvar._typing import Array, Index
from truvar.acquisition._representers import sample_rows, systematic_sample
from truvar.acquisition.base import PolicyContext
from truvar.acquisition.confidence import MIN_VARIANCE_SHARE
from truvar.acquisition.truncation import contrast_variance
from truvar.domain.candidates import Candidates

NEAR_TIE = 1e-6  # relative difference of rates that count as equal when stops are preselected
MAX_STOPS_CONSIDERED = 120  # candidate rows that can be stops of a tour
# a tour ends when its next stop pays less than this share of what the first one pays
MIN_RATE_SHARE = 0.5
# factor by which the first stop of a tour is preferred to the best single measurement
FIRST_STOP_PREFERENCE = 1 + 1e-6
MAX_ROWS = 2500  # rows of a sum that a tour is planned with, at most


@dataclass(frozen=True)
class TourRows:
    """Rows at which the stops of a tour reduce something.

    The reduction of each is a function of the share of variance explained.

    Attributes:
        sites: Sites of the rows. Shape (rows,).
        variance: sigma^2 of the rows, given pending points. Shape (rows,).
        curves: The functions, as `_numba.ambiguity.ambiguity_curves` has them. Shape (rows,
            degree).
        leader: Position in `sites` of the point that the rows stand for their differences to; None:
            for themselves.
    """

    sites: Index
    variance: Array
    curves: Array
    leader: int | None = None

    def covariance(self, context: PolicyContext, candidates: Candidates) -> Array:
        """Return the covariance of the rows and some candidates. Shape (rows, c)."""
        across = context.posterior.covariance(self.sites, candidates)
        return across if self.leader is None else np.asarray(across - across[self.leader])


def tour_rows(context: PolicyContext, sites: Index, weight: Array, leader: int | None) -> TourRows:
    """Return rows whose variance is to be reduced, weighted.

    Args:
        context: The context of the choice.
        sites: Sites of the rows; if there are more than `MAX_ROWS`, a weighted sample of them is
            taken. Shape (a,).
        weight: Weights of the rows. Shape (a,).
        leader: Position of the point that the rows stand for their differences to; None: for
            themselves.
    """
    posterior = context.posterior
    variance = posterior.pending_variance[sites]
    if leader is not None:
        variance = contrast_variance(posterior, sites, leader)
    elif len(sites) > MAX_ROWS:
        kept, multiplicity = sample_rows(weight * variance, MAX_ROWS)
        sites = sites[kept]
        variance = variance[kept]
        weight = weight[kept] * multiplicity
    known = variance <= MIN_VARIANCE_SHARE * posterior.scale**2
    total = np.where(known, 0.0, weight * variance)
    return TourRows(sites, np.where(known, 1.0, variance), ambiguity.linear_curves(total), leader)


def can_tour(context: PolicyContext, candidates: Candidates) -> bool:
    """Return whether the cost depends on the position, in a finite domain without tasks.

    It must be the table of the whole domain, or of what a budget still pays for.
    """
    if candidates.sites is None or context.domain.continuous or not context.actions.travels:
        return False
    is_whole = context.limited or len(candidates.sites) == len(context.domain)
    return is_whole and len(context.domain) == len(context.posterior.sites)


def prefer_first_stop(
    context: PolicyContext, candidates: Candidates, rows: TourRows, max_stops: int, gains: Array
) -> None:
    """Raise the gain of a tour's first stop above that of the best single measurement.

    Args:
        context: The context of the choice.
        candidates: The table of the whole domain, or of what a budget still pays for.
        rows: The rows that the stops are to reduce something at.
        max_stops: Stops of the tour, at most.
        gains: Gain of each single measurement, changed in place. Shape (c, K).
    """
    rates = gains / candidates.effective_cost
    if not rates.max() > 0:
        return
    sites = np.arange(len(rates)) if candidates.sites is None else candidates.sites
    level = rates.argmax(axis=1)
    everyone = np.arange(len(level))
    rate = rates[everyone, level]
    stops = everyone
    if len(everyone) > MAX_STOPS_CONSIDERED:
        rate_nearby = (
            gains[everyone, level] / context.actions.candidates(None).effective_cost[sites, level]
        )
        half = MAX_STOPS_CONSIDERED // 2
        pay_from_here = systematic_sample(rate, half, 0.5)
        pay_nearby = systematic_sample(rate_nearby, half, 0.5)
        best = int(np.argmax(rate >= (1.0 - NEAR_TIE) * rate.max()))  # engines differ by rounding
        stops = np.unique(np.concatenate([pay_from_here, pay_nearby, [best]]))
    if candidates.feasibility is not None:
        stops = stops[candidates.feasibility[stops] > 0]
    level = level[stops]
    pairwise_costs = context.actions.pairwise_costs(sites[stops], context.speed)[
        :, np.arange(len(stops)), level
    ]
    first_costs = candidates.effective_cost[stops, level]
    stop_candidates = candidates.take(stops)
    across = rows.covariance(context, stop_candidates)
    among = context.posterior.covariance(sites[stops], stop_candidates)
    path = np.zeros(max_stops, np.intp)
    ambiguity.tour(
        across,
        among,
        candidates.noise[stops, level],
        rows.variance,
        rows.curves,
        pairwise_costs,
        first_costs,
        MIN_RATE_SHARE,
        path,
    )
    first = path[0]
    gains[stops[first], level[first]] = FIRST_STOP_PREFERENCE * rates.max() * first_costs[first]
