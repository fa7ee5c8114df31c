"""Short tours for level sets with travel costs: the next measurement is the first stop of a good tour.

A tour is built by greedy insertion (`_numba.ambiguity.tour`) from the candidates that pay most, either from the present
position or once one is nearby.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from truvar._numba import ambiguity
from truvar._typing import Array
from truvar.acquisition.base import PolicyContext
from truvar.acquisition.representers import systematic_sample
from truvar.domain.candidates import Candidates

if TYPE_CHECKING:
    from truvar.acquisition.auto import UndecidedRows

MAX_STOPS_CONSIDERED = 120  # candidate rows that can be stops of a tour
MIN_RATE_SHARE = 0.5  # a tour ends when its next stop pays less than this share of what the first one pays
PREFERENCE = 1 + 1e-6  # factor by which the first stop of a tour is preferred to the best single measurement


def can_tour(context: PolicyContext, candidates: Candidates) -> bool:
    """Return whether the cost depends on the position and the table is that of a finite domain without tasks.

    It must be the table of the whole domain, or of what a budget still pays for.
    """
    if candidates.sites is None or context.domain.continuous or not context.actions.travels:
        return False
    is_whole = context.limited or len(candidates.sites) == len(context.domain)
    return is_whole and len(context.domain) == len(context.posterior.sites)


def prefer_first_stop(
    context: PolicyContext, candidates: Candidates, undecided: UndecidedRows, max_stops: int, gains: Array
) -> None:
    """Raise the gain of a tour's first stop above that of the best single measurement.

    Args:
        context: The context of the choice.
        candidates: The table of the whole domain, or of what a budget still pays for.
        undecided: The rows whose ambiguity is to be reduced.
        max_stops: Stops of the tour, at most.
        gains: Gain of each single measurement, changed in place. Shape (c, K).
    """
    rates = gains / candidates.cost
    if not rates.max() > 0:
        return
    sites = np.arange(len(rates)) if candidates.sites is None else candidates.sites
    level = rates.argmax(axis=1)
    rows = np.arange(len(level))
    rate = rates[rows, level]
    stops = rows
    if len(rows) > MAX_STOPS_CONSIDERED:
        rate_nearby = gains[rows, level] / context.actions.candidates(None).cost[sites, level]
        half = MAX_STOPS_CONSIDERED // 2
        pay_from_here = systematic_sample(rate, half, 0.5)
        pay_nearby = systematic_sample(rate_nearby, half, 0.5)
        stops = np.unique(np.concatenate([pay_from_here, pay_nearby, [int(rate.argmax())]]))
    level = level[stops]
    pairwise_costs = context.actions.pairwise_costs(sites[stops], context.speed)[:, np.arange(len(stops)), level]
    first_costs = candidates.cost[stops, level]
    stop_candidates = candidates.take(stops)
    across = context.posterior.covariance(undecided.sites, stop_candidates)
    among = context.posterior.covariance(sites[stops], stop_candidates)
    path = np.zeros(max_stops, np.intp)
    ambiguity.tour(
        across,
        among,
        candidates.noise[stops, level],
        undecided.variance,
        undecided.curves,
        pairwise_costs,
        first_costs,
        MIN_RATE_SHARE,
        path,
    )
    first = path[0]
    gains[stops[first], level[first]] = PREFERENCE * rates.max() * first_costs[first]
