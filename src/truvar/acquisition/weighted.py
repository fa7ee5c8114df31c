"""The policy `WeightedTruVaR`: variance reduction over points weighted by how undecided they are.

It is TruVaR's sum, eq. (3), with a weight for every row in place of membership of M:

    score(x) = sum_j w_j min(C_jx^2 / d_x, e_j) / c(x),    e_j = sigma_j^2,    w_j = (share) p_j (1
    - p_j) / sigma_j^2.

| symbol | level set | optimum |
|---|---|---|
| rows j | f at all undecided points | f_j - f_L at the points that win a draw of f; L, the leader, wins most of them |
| p_j | P(f_j > h) | P(f_j > f_L) |
| share | 1 | P(j is the maximiser), the share of the draws that j wins |
| C_jx, sigma_j^2 | covariance of the row with f_x, its variance | the same, of the difference |

w_j C_jx^2 / d_x is p_j (1 - p_j), which is how undecided the row is, times the share of its
variance that the measurement explains. For the threshold of a learned model, P is that of a
Student-t distribution, as the scale of f is not certain either. With several thresholds the weights
of a row add up. All draws are shared by the candidates; where the model is marginalised they are of
the mixture.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import scipy  # scipy.special is imported on first use, as it imports slowly

from truvar._numba.threads import blas_in_one_thread
from truvar._typing import Array, Index, SingleArray
from truvar.acquisition._map import map_ambiguity
from truvar.acquisition._representers import (
    improvement_in_box,
    leading_point,
    pivoted_cholesky,
    representer_sites,
)
from truvar.acquisition._sampled import can_sample, sampled_reduction
from truvar.acquisition._tours import TourRows, can_tour, prefer_first_stop, tour_rows
from truvar.acquisition.base import ANY_GOAL, SEVERAL, BasePolicy, PolicyContext
from truvar.acquisition.confidence import MIN_VARIANCE_SHARE, Schedule
from truvar.acquisition.entropy import expected_improvement_table
from truvar.acquisition.truncation import contrast_reduction, contrast_variance, weighted_reduction
from truvar.acquisition.utils import thresholds
from truvar.domain.candidates import Candidates
from truvar.domain.goals import LevelSet, Map
from truvar.validation import check_at_least, check_boolean

__all__ = ["WeightedTruVaR"]

# share of the largest variance of a representer: what is below it is left out of the draws
_MIN_DRAWN_VARIANCE_SHARE = 1e-9
# share of all ambiguity: rows that hold no more than this together are left out
_NEGLIGIBLE_AMBIGUITY_SHARE = 1e-9


@dataclass(frozen=True)
class WeightedTruVaR(BasePolicy):
    """Variance reduction per unit cost over what is undecided, weighted by how undecided it is.

    For a level set every point counts with p (1 - p), p the probability of lying above the
    threshold, times the share of its variance that a measurement explains. For an optimum it is the
    differences between points that can be the maximiser and the leader, the likeliest of them,
    which count in the same way, p being the probability of being better than the leader. With
    travel costs the policy chooses the first stop of a short tour.

    Attributes:
        stops: Stops of a tour, at most; 1 to look one measurement ahead.
        representers: Points that can be the maximiser: all, or this many of highest promise.
        draws: Draws of f on them; rounded up to a power of two.
        refine: Whether every second measurement of an optimum in a box goes where it promises to
            improve on the best measured point most. Otherwise few are made at the optimum itself.
        beta: See `BasePolicy`.
    """

    stops: int = 8
    representers: int = 100
    draws: int = 1024
    refine: bool = True
    beta: Schedule | None = None
    per_cost = True
    spreads_batches = True  # see `algorithm.repeats`
    chooses_noise_level = True
    supports_bands = True
    supported_goals = ANY_GOAL | SEVERAL
    # the probabilities of a threshold far from the mean are 0 in floating point, its bounds are not
    explores = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least(self.stops, 1, "stops")
        check_at_least(self.representers, 2, "representers")
        check_at_least(self.draws, 2, "draws")
        check_boolean(self.refine, "refine")

    def starts(self, context: PolicyContext) -> Array | None:
        """Return the point of highest posterior mean, near which the score in a box may be high."""
        if not self.refine or not context.goal.seeks_optimum or not context.has_bounds:
            return None
        return leading_point(context)[None, :]

    def score(self, context: PolicyContext, candidates: Candidates) -> Array:
        """Return the weighted variance reduction. Shape (c, K)."""
        if not context.goal.seeks_optimum:
            rows = context.cached("undecided rows", lambda: undecided_rows(context))
            if can_sample(context, candidates) and not can_tour(context, candidates):
                return sampled_reduction(context, rows.sites, rows.weight, candidates)
            gains = weighted_reduction(
                context.engine, rows.sites, rows.weight, candidates, context.only_best
            )
        else:
            improvement = improvement_in_box(context, candidates) if self.refine else None
            if improvement is not None:
                return improvement
            key = ("possible maximisers", self.representers, self.draws)
            with blas_in_one_thread():
                rows = context.cached(
                    key, lambda: possible_maximisers(context, self.representers, self.draws)
                )
                if not rows.weight.any():
                    return expected_improvement_table(context, candidates)
                gains = contrast_reduction(
                    context.posterior,
                    rows.sites,
                    rows.weight,
                    rows.leader,
                    candidates,
                    context.only_best,
                )
        if self.stops > 1 and can_tour(context, candidates):
            prefer_first_stop(context, candidates, rows.for_tour(context), self.stops, gains)
        return gains


@dataclass(frozen=True)
class WeightedRows:
    """Rows of the sum with their weights.

    Attributes:
        sites: Sites of the rows. Shape (a,).
        weight: w_j. Shape (a,).
        leader: Position in `sites` of the point that the others are compared with; None: the rows
            are f itself.
    """

    sites: Index
    weight: Array
    leader: int | None = None

    def for_tour(self, context: PolicyContext) -> TourRows:
        """Return the rows as the planning of a tour needs them."""
        return tour_rows(context, self.sites, self.weight, self.leader)


def undecided_rows(context: PolicyContext) -> WeightedRows:
    """Return the undecided rows, inside M or not, as points can return to M.

    Probabilities are those of the mixture where the hyperparameters are averaged over, and sigma^2
    is that of the model that the covariances belong to: w_j C_jx^2 / d_x is then p (1 - p) times a
    share of variance.
    """
    mean, sd = context.moments
    variance = context.posterior.pending_variance[: len(sd)]
    uncertain = variance > MIN_VARIANCE_SHARE * context.posterior.scale**2
    ambiguity = np.zeros(len(sd))
    ambiguity[uncertain] = _AMBIGUITIES[context.goal.kind](context, mean, sd)[uncertain]
    if context.importance is not None:
        ambiguity *= context.importance
    relevant = np.flatnonzero(
        ambiguity * len(ambiguity) > _NEGLIGIBLE_AMBIGUITY_SHARE * ambiguity.sum()
    )
    return WeightedRows(relevant, ambiguity[relevant] / variance[relevant])


_STUDENT_COEFFICIENTS = (
    np.array([1647360.0, 732160.0, 494208.0, 374400.0, 300300.0, 249480.0, 212355.0, 184041.0])
    / 2.0**24
)


def _threshold_ambiguity(context: PolicyContext, mean: Array, sd: Array) -> Array:
    """Return p (1 - p) at each point; that of several thresholds adds up."""
    of_distance = _student_ambiguity if context.learned else _normal_ambiguity
    ambiguity = np.zeros(len(sd))
    for level in thresholds(context):
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            ambiguity += of_distance((mean - level) / sd)
    return ambiguity


def _normal_ambiguity(u: Array) -> Array:
    """Return p (1 - p), p the probability that a normal variable lies below u. (n,)."""
    return np.asarray(scipy.special.ndtr(u) * scipy.special.ndtr(-u))


def _student_ambiguity(u: Array) -> Array:
    """Return p (1 - p), p the probability that a Student-t variable lies below u. (n,).

    The normal tails of a learned model rule out an island that the values so far do not show, and
    the few points at the threshold are then measured again and again. With sixteen degrees of
    freedom p (1 - p) is c^8 times a polynomial of c = 16 / (16 + u^2).
    """
    c = 16.0 / (16.0 + u**2)
    return np.asarray(c**8 * np.polynomial.polynomial.polyval(c, _STUDENT_COEFFICIENTS))


# Kind of goal -> ambiguity of each point, given its mean and standard deviation: (n,).
_AMBIGUITIES: dict[str, Callable[[PolicyContext, Array, Array], Array]] = {
    LevelSet.kind: _threshold_ambiguity,
    Map.kind: map_ambiguity,
}


def possible_maximisers(context: PolicyContext, representers: int, draws: int) -> WeightedRows:
    """Return the points that win a draw of f, weighted; all 0 if nothing is left to tell apart.

    Args:
        context: The context of the choice.
        representers: Number of points that can win, at most.
        draws: Number of draws; rounded up to a power of two.
    """
    sites = representer_sites(context, representers)
    f, _ = joint_draws(context, sites, representers, draws)
    share = np.bincount(f.argmax(axis=1), minlength=len(sites)) / len(f)
    return contrast_weights(context, sites, share, f)


def joint_draws(
    context: PolicyContext, sites: Index, representers: int, draws: int
) -> tuple[SingleArray, float]:
    """Return draws of f at some sites up to a constant, high values good, and the constant.

    Args:
        context: The context of the choice.
        sites: R sites.
        representers: Number of sites, at most.
        draws: Number of draws; rounded up to a power of two.

    Returns:
        The draws, (S, R), and the number that is to be added to them.
    """
    root, pivots = pivoted_cholesky(context, sites)
    diagonal = np.diag(root) ** 2
    rank = int(np.count_nonzero(diagonal > _MIN_DRAWN_VARIANCE_SHARE * diagonal.max(initial=0.0)))
    base = _normal_draws(int(np.ceil(np.log2(draws))), representers)
    # The draws are shared by all choices of a process; the order and the signs of the dimensions
    # differ, so that an accident of one choice is not repeated in the next one.
    order = context.rng.permutation(representers)[:rank]
    signs = 2.0 * context.rng.integers(0, 2, size=rank) - 1.0
    in_order = np.empty((rank, len(sites)), np.float32)
    in_order[:, pivots] = (root[:, :rank] * signs).T
    f = base[:, order] @ in_order  # (S, R)
    mean, scale, offset = _mixture(context, sites, len(base))
    if scale is not None:
        f *= scale
    f += mean
    return f, offset


def contrast_weights(
    context: PolicyContext, sites: Index, share: Array, f: SingleArray
) -> WeightedRows:
    """Return the points that win a draw with their weights.

    Args:
        context: The context of the choice.
        sites: R sites.
        share: Share of the draws that each of them wins. (R,)
        f: The draws. (S, R)
    """
    winners = np.flatnonzero(share)
    leader = int(np.argmax(share[winners]))
    variance = contrast_variance(context.posterior, sites[winners], leader)
    told_apart = variance > MIN_VARIANCE_SHARE * context.posterior.scale**2
    if context.ensemble is None:
        means = context.goal.sign * context.posterior.mean[sites[winners]]
        lead = means - means[leader]
        better = scipy.special.ndtr(
            np.divide(lead, np.sqrt(variance), out=np.zeros(len(lead)), where=told_apart)
        )
    else:
        better = (f[:, winners] > f[:, winners[leader], None]).mean(axis=0)
    undecided = share[winners] * better * (1 - better)
    weight = np.divide(undecided, variance, out=np.zeros(len(winners)), where=told_apart)
    return WeightedRows(sites[winners], weight, leader)


def _mixture(
    context: PolicyContext, sites: Index, draws: int
) -> tuple[SingleArray, SingleArray | None, float]:
    """Return the mean at some sites for every draw, up to a constant, the factor of the sd, and the constant.

    Each member of a mixture gets an equal share of the draws; what is correlated is as in the most
    probable model.

    Returns:
        Means and factors, of shape (S, R) if the model is a mixture; otherwise means of shape (1,
        R), and None for 1; and what was subtracted from the means.
    """
    ensemble = context.ensemble
    if ensemble is None:
        mean = context.goal.sign * context.posterior.mean[None, sites]
        # Near 0, where single precision is fine.
        return (mean - mean.max()).astype(np.float32), None, float(mean.max())
    # Blocks of a Sobol sequence are spread evenly themselves.
    member = np.arange(draws) * len(ensemble.means) // draws
    # Pending measurements leave the same share of each member's variance.
    own = context.posterior.variance[sites]
    ratio = np.divide(
        ensemble.variances[:, sites],
        own,
        out=np.ones((len(ensemble.means), len(sites))),
        where=own > 0,
    )
    means = context.goal.sign * ensemble.means[:, sites]
    offset = float(means.max())
    means -= offset
    factor = np.sqrt(ratio).astype(np.float32)[member]
    return means.astype(np.float32)[member], factor, offset


@cache
def _normal_draws(log2_count: int, dims: int) -> SingleArray:
    """Return 2^log2_count quasi-random standard normal points: (count, dims)."""
    from scipy.stats import qmc  # imports slowly

    sobol = qmc.Sobol(dims, scramble=False).random_base2(log2_count)
    uniform = (sobol + np.random.default_rng(0).random(dims)) % 1.0  # shifted
    normal = scipy.special.ndtri(np.clip(uniform, 1e-9, 1 - 1e-9)).astype(np.float32)
    normal.setflags(write=False)
    return np.asarray(normal)
