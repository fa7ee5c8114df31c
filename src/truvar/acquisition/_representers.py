"""Representer points: small sets of points that stand for a domain in draws and in sums.

The representers of a box are spread over all of it. If few of them are still undecided,
`refined_points` adds points around the most promising ones, for one choice at a time: nothing of
them is stored.

| name | meaning | shape |
|---|---|---|
| leader | point of the box with the highest posterior mean | (d,) |
| peak | point near the best representer with the highest upper bound | (d,) |
| refined points | undecided points around both, at several scales | (q, d') |
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dpstrf

from truvar._typing import Array, Index
from truvar.acquisition.base import PolicyContext
from truvar.acquisition.confidence import MIN_VARIANCE_SHARE
from truvar.acquisition.mixed_search import climb
from truvar.acquisition.utils import expected_improvement, incumbent, moments
from truvar.domain.candidates import Candidates

RANK_TOLERANCE = 1e-10  # share of the largest variance: pivots below it are left out of a factor
TIE_TOLERANCE = 1e-11  # share of the largest variance that the first site is ahead of the last
# undecided points of a box that a sum over them has, at least, if it is refined
REFINED_TARGETS = 128
# distances of refined points, in distances of the representers
REFINEMENT_SCALES = 4.0 ** -np.arange(6)
# probability that a refined point has another category than its centre
CATEGORY_CHANGE_PROBABILITY = 0.2
# refined points that are looked at around each centre, of which the undecided ones count
PROPOSALS_PER_SCALE = 64


def representer_sites(context: PolicyContext, count: int) -> Index:
    """Return the sites that can be the maximiser: of a large domain, the `count` most promising.

    The best mean is always among them. The others are a systematic sample in proportion to the root
    of the expected improvement, which spreads over the domain, completed by a weighted sample
    without replacement.
    """
    mean, sd = context.moments
    possible = np.arange(len(mean))
    if context.excluded is not None and not context.excluded.all():
        possible = np.flatnonzero(~context.excluded)
    if len(possible) <= count:
        return possible
    mean = mean[possible]
    sd = sd[possible]
    weight = np.sqrt(expected_improvement(mean, sd, incumbent(context))) + np.finfo(float).tiny
    priority = np.log(weight) + context.rng.gumbel(size=len(mean))
    priority[systematic_sample(weight, count - 1, context.rng.random())] = np.inf
    priority[np.argmax(mean)] = np.inf
    return np.sort(possible[np.argpartition(-priority, count)[:count]])


def pivoted_cholesky(context: PolicyContext, sites: Index) -> tuple[Array, Index]:
    """Factorise the posterior covariance of f at some sites, given pending points.

    Args:
        context: The context of the choice.
        sites: R sites.

    Returns:
        The factor L, lower trapezoidal, of shape (R, k) and the pivots, a permutation of 0 to R -
        1, with Cov(sites[pivots]) = L L^T up to rounding. k is the numerical rank; the largest
        variance comes first, and of equal ones that of the earliest site on every processor.
    """
    posterior = context.posterior
    column = np.zeros((len(sites), 1))
    here = Candidates(posterior.sites[sites], column, column + 1.0, sites)
    covariance = posterior.covariance(sites, here)
    largest = float(np.diag(covariance).max())
    smallest = max(RANK_TOLERANCE * largest, MIN_VARIANCE_SHARE * posterior.scale**2)
    # Rounding must not choose between the equal variances of symmetric sites.
    ahead = TIE_TOLERANCE * largest * np.linspace(1.0, 0.0, len(sites))
    covariance[np.diag_indices_from(covariance)] += ahead
    factor, pivots, rank, _ = dpstrf(covariance, tol=smallest, lower=1)
    return np.tril(factor)[:, :rank], np.asarray(pivots - 1, dtype=np.intp)


def systematic_sample(weight: Array, count: int, offset: float) -> Index:
    """Return `count` rows in proportion to their weights; heavy rows several times.

    Args:
        weight: Weights of the rows, at least 0.
        count: Number of rows to return.
        offset: Position of the first row within its interval, from 0 to 1.
    """
    share = np.cumsum(weight) / weight.sum()
    return np.minimum(np.searchsorted(share, (np.arange(count) + offset) / count), len(weight) - 1)


def sample_rows(weight: Array, count: int) -> tuple[Index, Array]:
    """Sample at most `count` rows for a sum over all rows.

    Args:
        weight: Approximate size of each summand, at least 0.
        count: Number of rows, at most.

    Returns:
        The rows, and the number of rows that each of them stands for. All rows of positive weight
        or, if they are too many, a systematic sample in proportion to the weights.
    """
    positive = np.flatnonzero(weight > 0)
    if len(positive) <= count:
        return positive, np.ones(len(positive))
    rows, times = np.unique(systematic_sample(weight, count, 0.5), return_counts=True)
    return rows, times * weight.sum() / (count * weight[rows])


# -- boxes
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RefinedPoints:
    """Undecided points of a box around its most promising ones, in addition to the representers.

    Attributes:
        centres: The leader and the peak. Shape (2, d).
        points: Coordinates as the model has them. Shape (q, d').
        mean: Posterior mean there. Shape (q,).
        variance: Posterior variance there, given pending points. Shape (q,).
        whitened: `Posterior.whitened(points)`. Shape (t, q).
    """

    centres: Array
    points: Array
    mean: Array
    variance: Array
    whitened: Array

    def covariance(self, context: PolicyContext, candidates: Candidates) -> Array:
        """Return Cov(points, candidates) given observations and pending points. Shape (q, c)."""
        return context.posterior.covariance_between(self.points, self.whitened, candidates)


def refined_points(context: PolicyContext) -> RefinedPoints | None:
    """Return the refined points of this choice, the same for every table of candidates.

    They make the undecided points of a sum up to `REFINED_TARGETS`. A point counts as undecided if
    its upper bound reaches the highest lower bound at the representers and the refined points.

    Returns:
        The points; None for a level set, on a finite domain, before there is a model, and while
        enough representers are undecided.
    """
    is_continuous = context.domain.continuous
    if not (context.goal.seeks_optimum and is_continuous and context.has_bounds):
        return None
    if context.regions.potential.sum() >= REFINED_TARGETS:
        return None
    return context.cached("refined points", lambda: _refine(context))


def _refine(context: PolicyContext) -> RefinedPoints:
    posterior = context.posterior
    domain = context.domain
    sign = context.goal.sign
    root_beta = float(np.sqrt(context.epoch.beta))

    def upper_bound(points: Array) -> Array:
        mean, variance = _predict(context, points)
        return _where_allowed(context, points, sign * mean + root_beta * np.sqrt(variance))

    d = len(domain.columns)
    lower, upper = context.signed_bounds
    leader = leading_point(context)
    if context.excluded is not None:
        upper = np.where(context.excluded, -np.inf, upper)
        lower = np.where(context.excluded, -np.inf, lower)
    peak = climb(upper_bound, domain, domain.points[int(np.argmax(upper))])
    centres = np.stack([leader, peak])
    proposed = np.vstack([leader[None, :], _clouds(context, centres)])
    proposed = proposed[np.isfinite(_where_allowed(context, proposed, np.zeros(len(proposed))))]
    mean, variance = _predict(context, proposed)
    half = root_beta * np.sqrt(variance)
    highest = max(float(lower.max()), float((sign * mean - half).max()))
    missing = REFINED_TARGETS - int(context.regions.potential.sum())
    points = proposed[np.flatnonzero(sign * mean + half >= highest)[:missing]]
    if posterior.sites.shape[1] > d:  # the index of the target task
        points = np.column_stack([points, np.zeros(len(points))])
    whitened = posterior.whitened(points)
    left = np.maximum(posterior.kernel.diag(points) - (whitened * whitened).sum(axis=0), 0.0)
    return RefinedPoints(centres, points, posterior.predict(points)[0], left, whitened)


def leading_point(context: PolicyContext) -> Array:
    """Return the point of a box with the highest posterior mean that a search finds: (d,)."""
    return context.cached("leading point", lambda: _lead(context))


def _lead(context: PolicyContext) -> Array:
    sign = context.goal.sign
    domain = context.domain

    def signed_mean(points: Array) -> Array:
        return _where_allowed(context, points, sign * _predict(context, points)[0])

    middle = sign * (context.lower + context.upper)  # of the interval: highest where the mean is
    if context.excluded is not None:
        middle = np.where(context.excluded, -np.inf, middle)
    starts = np.vstack([domain.points[int(np.argmax(middle))], _measured(context)])
    return climb(signed_mean, domain, starts[int(np.argmax(signed_mean(starts)))])


def _where_allowed(context: PolicyContext, points: Array, values: Array) -> Array:
    """Return values at points (q, d) of a box, minus infinity where none can be chosen: (q,)."""
    if context.excluded is None and not context.domain.constraints:
        return values
    return np.where(context.actions.allows(points), values, -np.inf)


def improvement_in_box(context: PolicyContext, candidates: Candidates) -> Array | None:
    """Return the expected improvement, for every second choice of an optimum in a box.

    A policy that asks where the optimum lies need not measure there, and representers tell it no
    more precisely than they lie.

    Returns:
        The expected improvement of every candidate. Shape (c, K). None for another choice, where no
        representer promises any, and where measurements differ in more than the point: improvement
        knows nothing of noise levels and tasks.
    """
    posterior = context.posterior
    if not context.goal.seeks_optimum or not context.domain.continuous:
        return None
    if context.seed[1] % 2 == 1:
        return None
    if candidates.n_levels > 1 or len(posterior.sites) > len(context.domain):
        return None
    best = incumbent(context)
    if not context.cached(
        "improves", lambda: bool((expected_improvement(*context.moments, best) > 0).any())
    ):
        return None
    return expected_improvement(*moments(context, candidates), best)[:, None]


def _measured(context: PolicyContext) -> Array:
    """Return the measured points of the target task. Shape (t, d)."""
    queried = context.queried_points[: context.posterior.n_observed]
    return queried[context.is_target(queried), : len(context.domain.columns)]


def _clouds(context: PolicyContext, centres: Array) -> Array:
    """Return points around the centres at all scales, one scale after the other: (q, d)."""
    domain = context.domain
    d = len(domain.columns)
    spacing = domain.extent * len(domain) ** (-1 / d)
    offsets = context.rng.standard_normal(
        (PROPOSALS_PER_SCALE, len(REFINEMENT_SCALES), len(centres), d)
    )
    points = (centres + offsets * REFINEMENT_SCALES[:, None, None] * spacing).reshape(-1, d)
    for k in domain.categorical:
        own = np.tile(centres[:, k], PROPOSALS_PER_SCALE * len(REFINEMENT_SCALES))
        drawn = domain.parameters[k].from_unit(context.rng.random(len(points)))
        points[:, k] = np.where(
            context.rng.random(len(points)) < CATEGORY_CHANGE_PROBABILITY, drawn, own
        )
    return domain.snap(points)


def _predict(context: PolicyContext, points: Array) -> tuple[Array, Array]:
    """Return mean and variance of the target task at points (q, d), given the observations."""
    if context.posterior.sites.shape[1] > points.shape[1]:
        points = np.column_stack([points, np.zeros(len(points))])
    return (
        context.posterior.predict(points)
        if context.ensemble is None
        else context.ensemble.predict(points)
    )
