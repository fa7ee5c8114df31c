"""Policies that choose by a random draw.

| papers | here | shape |
|---|---|---|
| representer points | `Draw.sites`, R of the sites | (R,) |
| f_t, the draw from the posterior | `Draw.values`, signed so that high is good | (R,) |
| f_t off the representers | `Draw.at`: E[f(x) given f(sites) = values] | (c,) |

The options `level`, `per_cost` and `beta` are those of `BasePolicy`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from truvar._numba.threads import blas_in_one_thread, tiles
from truvar._typing import Array, Index
from truvar.acquisition._representers import pivoted_cholesky, representer_sites
from truvar.acquisition.base import ANY_GOAL, OPTIMUM, SEVERAL, BasePolicy, PolicyContext
from truvar.acquisition.confidence import Schedule
from truvar.acquisition.utils import moments
from truvar.domain.candidates import Candidates
from truvar.validation import check_at_least

__all__ = ["Random", "Thompson"]

TILE = 8192  # candidate rows scored at a time


@dataclass(frozen=True)
class Random(BasePolicy):
    """A point of the domain chosen uniformly at random; in a box, one of its representers.

    Attributes:
        level: See `BasePolicy`.
        per_cost: See `BasePolicy`.
        beta: See `BasePolicy`.
    """

    level: int | None = None
    per_cost: bool = False
    beta: Schedule | None = None
    supports_bands = True
    supported_goals = ANY_GOAL | SEVERAL

    def candidate_rows(self, context: PolicyContext, candidates: Candidates) -> Index | None:
        """Return all rows: a random score cannot be maximised between the points of a box."""
        return np.arange(len(candidates.points))

    def score(self, context: PolicyContext, candidates: Candidates) -> Array:
        """Return a uniform random number per point of the domain, and 0 elsewhere. Shape (c, K)."""
        uniform = context.cached("uniform scores", lambda: context.rng.random(len(context.domain)))
        if candidates.sites is None:
            scores = np.zeros(len(candidates.points))
        else:
            scores = uniform[candidates.sites % len(uniform)]
        return self.score_table(context, candidates, scores)


@dataclass(frozen=True)
class Thompson(BasePolicy):
    """Thompson sampling: the maximiser of one draw of f (Thompson 1933; Russo and Van Roy 2014).

    A point is chosen with the probability that it is the best one. On a domain of at most
    `representers` points the draw is joint over all of them, and exact. On a larger domain it is
    joint over that many points of high promise, which are sampled again for every choice, and only
    they can be chosen. In a box the draw is joint over representers of the box, and extended by the
    mean of f given the draw, which is then maximised over the box.

    Every suggestion of a batch has its own draw, seeded by the study's seed and the number of
    suggestions before. Pending points count as measured with the posterior mean as their value.

    Attributes:
        representers: Points in the joint draw, at most.
        level: See `BasePolicy`.
        per_cost: Must be False, since scores can be negative.
        beta: See `BasePolicy`.
    """

    representers: int = 1000
    level: int | None = None
    per_cost: bool = False
    beta: Schedule | None = None
    supported_goals = OPTIMUM
    signed = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least(self.representers, 2, "representers")

    def candidate_rows(self, context: PolicyContext, candidates: Candidates) -> Index | None:
        """Return the representers of a large finite domain; None otherwise."""
        if (
            context.domain.continuous
            or candidates.sites is None
            or len(context.domain) <= self.representers
        ):
            return None
        return np.flatnonzero(np.isin(candidates.sites, self._draw(context).sites))

    @blas_in_one_thread()
    def score(self, context: PolicyContext, candidates: Candidates) -> Array:
        """Return the draw of f, signed so that high is good. Shape (c, K)."""
        return self.score_table(context, candidates, self._draw(context).at(context, candidates))

    def _draw(self, context: PolicyContext) -> Draw:
        return context.cached(
            ("thompson", self.representers), lambda: _draw(context, self.representers)
        )


@dataclass(frozen=True)
class Draw:
    """A draw of f from the posterior, given pending points.

    Attributes:
        sites: Sites of the representer points. Shape (R,).
        values: The draw there, signed so that high is good. Shape (R,).
        pivots: Sites that determine the draw, k of the representers. Shape (k,).
        weights: Weights of their covariances in the conditional mean of f. Shape (k,).
    """

    sites: Index
    values: Array
    pivots: Index
    weights: Array

    def at(self, context: PolicyContext, candidates: Candidates) -> Array:
        """Return the draw at the candidates; elsewhere the mean given the draw: (c,)."""
        values = np.full(len(candidates.points), np.nan)
        if candidates.sites is not None:
            by_site = np.full(len(context.posterior.sites), np.nan)
            by_site[self.sites] = self.values
            values = by_site[candidates.sites]
        others = np.flatnonzero(np.isnan(values))
        for tile in tiles(len(others), TILE):
            rows = others[tile]
            part = candidates.take(rows)
            covariance = context.posterior.covariance(self.pivots, part)
            values[rows] = moments(context, part)[0] + self.weights @ covariance
        return values


def _draw(context: PolicyContext, representers: int) -> Draw:
    sites = representer_sites(context, representers)
    factor, pivots = pivoted_cholesky(context, sites)
    rank = factor.shape[1]
    normal = context.rng.standard_normal(len(sites))[:rank]
    deviation = np.empty(len(sites))
    deviation[pivots] = factor @ normal  # f - mu ~ N(0, L L^T)
    weights = np.zeros(0)
    if rank > 0:  # Cov(pivots)^-1 (f - mu)(pivots) = L^-T normal
        weights = solve_triangular(factor[:rank], normal, lower=True, trans="T")
    values = context.goal.sign * context.posterior.mean[sites] + deviation
    return Draw(sites, values, sites[pivots[:rank]], weights)
