"""Legs that are sampled en route: the gain of a destination counts what is passed.

The gain of a leg is that of its destination, g_1, and of the points that it passes, each reduced to
what the others leave of it:

    g_1 + sum_i g_i d_i|1..i-1 / d_i,    d_i = sigma_i^2 + noise, d_i|1..i-1 given those before it.

It is exact where the points are independent (the sum) and where they are the same without noise
(one of them). The points are taken from the destination backwards. The score of a destination is the
gain per cost of the leg to it alone, or together with the best leg that can follow.

| symbol | here | shape |
|---|---|---|
| g_i, gain of one measurement | `gains` | (c,) |
| points of each leg, the destination first | `legs` | (q, m) |
| d_i given those before | squared diagonal of a Cholesky factor | (q, m) |
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from truvar._typing import Array, Index, Mask
from truvar.acquisition.base import PolicyContext
from truvar.domain.bins import Bins, first_of_each
from truvar.domain.candidates import Candidates

_MAX_PASSED = 16  # points of a leg that count, evenly spaced if it passes more
_MAX_LEGS = 400  # destinations whose legs are compared, those that promise most
_MAX_TURNS = 48  # destinations from which the best leg after it counts too, and where it may lead
_JITTER = 1e-10  # share of the prior variance that is added to the noise of measurements


@dataclass(frozen=True)
class AlongPolicy:
    """A policy whose gains include what is measured en route.

    Attributes:
        policy: The policy, whose gains add up and are divided by the cost.
        bins: Bins of the domain.
        origin: Where the leg begins; NaN in a column without a position there. (d,)
    """

    policy: Any
    bins: Bins
    origin: Array

    def __getattr__(self, name: str) -> Any:
        """Return everything else from the policy."""
        return getattr(object.__getattribute__(self, "policy"), name)

    def score(self, context: PolicyContext, candidates: Candidates) -> Array:
        """Return the gain of the leg to every candidate. (c, K)."""
        one_stop = self.policy
        if hasattr(one_stop, "stops"):
            one_stop = replace(one_stop, stops=1)  # a leg is planned instead of a tour
        gains = one_stop.score(replace(context, only_best=False), candidates)
        if candidates.sites is None or len(candidates.sites) == 0 or not (gains > 0).any():
            return np.asarray(gains)
        legs = _Legs(context, candidates, np.asarray(gains), self.bins)
        own = legs.first(self.origin)
        chosen = np.argsort(-own / legs.cost, kind="stable")[:_MAX_TURNS]
        rate = own / legs.cost
        rate[chosen] = np.maximum(rate[chosen], legs.with_next(self.origin, chosen))
        total = np.array(gains, dtype=float)
        total[np.arange(len(total)), legs.level] = rate * legs.cost
        return total


class _Legs:
    """Legs between candidates.

    Args:
        context: The context of the choice.
        candidates: The table.
        gains: Gain of every single measurement. (c, K)
        bins: Bins of the domain.

    Attributes:
        level: Noise level of every candidate that is looked at, the best one. (c,)
        cost: Cost of the measurement there from the present position. (c,)
    """

    def __init__(
        self, context: PolicyContext, candidates: Candidates, gains: Array, bins: Bins
    ) -> None:
        everyone = np.arange(len(gains))
        self._context = context
        self._candidates = candidates
        self._bins = bins
        self._sites = everyone if candidates.sites is None else candidates.sites
        effective = candidates.effective_cost
        with np.errstate(invalid="ignore"):
            self.level = np.argmax(gains / effective, axis=1)
        self.cost = effective[everyone, self.level]
        self._gains = np.maximum(gains[everyone, self.level], 0.0)
        self._noise = candidates.noise[everyone, self.level]
        row_of_site = np.full(max(len(bins), int(self._sites.max()) + 1), -1, dtype=np.intp)
        row_of_site[self._sites] = everyone
        self._row_of_site = row_of_site

    def first(self, origin: Array) -> Array:
        """Return the gain of the leg from a position to every candidate: (c,).

        Of many, only the legs that promise most are looked at; the others keep the gain of the
        stop.
        """
        everyone = np.arange(len(self.cost))
        passed = self._passed(origin, everyone)
        bound = np.where(passed >= 0, self._gains[passed], 0.0).sum(axis=1)
        legs = everyone
        if len(everyone) > _MAX_LEGS:
            half = _MAX_LEGS // 2
            by_leg = np.argsort(-(self._gains + bound) / self.cost, kind="stable")[:half]
            by_stop = np.argsort(-self._gains / self.cost, kind="stable")[:half]
            legs = np.union1d(by_leg, by_stop)
        total = self._gains.copy()
        total[legs] = self._joint(np.hstack([legs[:, None], passed[legs]]))
        return np.asarray(total)

    def with_next(self, origin: Array, stops: Index) -> Array:
        """Return the gain per cost of the leg to each of some candidates and the best leg after it.

        Args:
            origin: The present position. (d,)
            stops: Rows of the table. (q,)
        """
        q = len(stops)
        first = np.hstack([stops[:, None], self._passed(origin, stops)])
        destinations = np.tile(stops, q)
        origins = np.repeat(stops, q)
        d = len(origin)
        second = self._passed(self._candidates.points[origins, :d], destinations)
        paths = np.hstack([np.repeat(first, q, axis=0), destinations[:, None], second])
        paths = np.where(first_of_each(paths), paths, -1)
        gain = self._joint(paths).reshape(q, q)
        after = self._context.actions.pairwise_costs(self._sites[stops], self._context.speed)
        cost = self.cost[stops][:, None] + after[:, np.arange(q), self.level[stops]]
        return np.asarray((gain / cost).max(axis=1))

    def _joint(self, paths: Index) -> Array:
        """Return the gain of measuring all points of each path, -1 for none: (q, m) -> (q,)."""
        gains = np.where(paths >= 0, self._gains[paths], 0.0)
        shares = _remaining_shares(self._context, self._candidates, paths, self._noise)
        return np.asarray((gains * shares).sum(axis=1))

    def _passed(self, origin: Array, destinations: Index) -> Index:
        """Return the candidates that legs pass, the last ones first, -1 for none: (q, m).

        Args:
            origin: Where they begin: (d,), or (q, d); NaN in a column without a position there.
            destinations: Rows of the table. (q,)
        """
        ends = self._candidates.points[destinations, : self._context.domain.points.shape[1]]
        begins = np.where(np.isnan(origin), ends, origin)
        rows = self._bins.passed(begins, ends)
        passed = np.where(rows >= 0, self._row_of_site[rows], -1)[:, ::-1]
        is_new = first_of_each(passed) & (passed >= 0) & (passed != destinations[:, None])
        kept = _evenly(is_new, _MAX_PASSED)
        order = np.argsort(~kept, axis=1, kind="stable")[:, :_MAX_PASSED]
        ordered = np.take_along_axis(passed, order, axis=1)
        return np.where(np.take_along_axis(kept, order, axis=1), ordered, -1)


def _evenly(chosen: Mask, limit: int) -> Mask:
    """Return at most `limit` entries of each row of a mask (q, s), evenly spaced among them."""
    rank = np.cumsum(chosen, axis=1) - 1
    count = np.maximum(chosen.sum(axis=1, keepdims=True), 1)
    parts = np.minimum(count, limit)
    begins = (rank * parts) // count != ((rank - 1) * parts) // count
    return np.asarray(chosen & begins)


def _remaining_shares(
    context: PolicyContext, candidates: Candidates, legs: Index, noise: Array
) -> Array:
    """Return d_i given the points before it, as a share of d_i.

    Args:
        context: The context of the choice.
        candidates: The table.
        legs: Rows of the table, -1 for none. (q, m)
        noise: Noise variance of every row of the table. (c,)

    Returns:
        Shares, 1 for the first point of each leg. (q, m)
    """
    sites = np.arange(len(candidates.points)) if candidates.sites is None else candidates.sites
    used = np.unique(legs[legs >= 0])
    place = np.full(len(sites), 0, dtype=np.intp)
    place[used] = np.arange(len(used))
    covariance = context.posterior.covariance(sites[used], candidates.take(used))
    at = np.where(legs >= 0, place[np.maximum(legs, 0)], 0)
    # A point that is missing is independent of the others and changes nothing.
    present = legs >= 0
    among = covariance[at[:, :, None], at[:, None, :]] * (present[:, :, None] & present[:, None, :])
    m = legs.shape[1]
    diagonal = np.arange(m)
    jitter = _JITTER * context.posterior.scale**2
    own_noise = np.where(present, noise[np.maximum(legs, 0)], 1.0)
    among[:, diagonal, diagonal] = (
        np.maximum(among[:, diagonal, diagonal], 0.0) + own_noise + jitter
    )
    total = among[:, diagonal, diagonal]
    factor = np.linalg.cholesky(among)
    return np.asarray(factor[:, diagonal, diagonal] ** 2 / total)
