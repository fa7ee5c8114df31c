"""The recommended point of an optimum, and the measurements that can be the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtr

from truvar._numba.threads import blas_in_one_thread
from truvar._typing import Array, Index, Mask
from truvar.acquisition.mixed_search import climb
from truvar.algorithm._contextual import climb_in_slice
from truvar.algorithm._exploration import MAX_MIN_FEASIBILITY
from truvar.domain.action import Action
from truvar.domain.given_context import ContextSlice
from truvar.models.frozen import FrozenPosterior

if TYPE_CHECKING:
    from truvar.algorithm.availability import Availability
    from truvar.algorithm.learner import ActiveLearner

_MIN_SUCCESS_PROBABILITY = 0.5  # of a recommended point
# probability with which an unmeasured point is better than the best measured one, at least
MIN_SUPERIORITY = 0.6
# prior standard deviations: a difference of two values with less uncertainty is known well
MAX_KNOWN_SD = 0.1
_MAX_COMPARED = 64  # points that are compared for their estimates, and as many for their values
TINY = float(np.finfo(float).tiny)  # variance of a difference, at least


def best_point(learner: ActiveLearner) -> tuple[int | None, Array, float, float]:
    """Return the point to recommend: row (None in a box), coordinates (d,), mean and sd.

    With a known model it is the point of best posterior mean. With a learned one it is the measured
    point of best expected value, in the user's units and averaged over all that is unknown of the
    model. An unmeasured point takes its place if more is expected of it, and if the difference is
    known well or positive with the probability `MIN_SUPERIORITY`: an extrapolation is not evidence.
    Before the first fit it is the best measurement.
    """
    domain = learner.domain
    if not learner.surrogate.fitted and learner.recommendable is None:
        observed = best_observed(learner)
        if observed is not None and (domain.continuous or observed[0].site is not None):
            return _moments_of(learner, observed[0])
    is_known = learner.surrogate.ensemble is None
    if domain.continuous:
        points, n_measured = _points_of_box(learner)
        if is_known or n_measured == 0:
            means, variances = learner.surrogate.predict(points[-1:])
            return None, points[-1], float(means[0]), float(np.sqrt(variances[0]))
        chosen, mean, sd = _best_expected(learner, points, n_measured)
        return None, points[chosen], mean, sd
    rows, n_measured = _rows_of_table(learner)
    if is_known or n_measured == 0:
        index = int(rows[-1])
        means, sds = learner.moments
        return index, domain.points[index], float(means[index]), float(sds[index])
    chosen, mean, sd = _best_expected(learner, domain.points[rows], n_measured)
    index = int(rows[chosen])
    return index, domain.points[index], mean, sd


def _moments_of(learner: ActiveLearner, action: Action) -> tuple[int | None, Array, float, float]:
    """Return what `best_point` returns, for the place of a measurement."""
    point = action.point[: len(learner.domain.columns)]
    means, variances = learner.surrogate.predict(point[None, :])
    row = None if learner.domain.continuous else action.site
    return row, point, float(means[0]), float(np.sqrt(variances[0]))


def best_in_context(learner: ActiveLearner, given: ContextSlice) -> Array:
    """Return the point of a box with the best posterior mean in a context, not excluded: (d,)."""
    points = given.place(learner.domain.points)

    def mean(q: Array) -> Array:
        values = learner.goal.sign * learner.surrogate.predict(q)[0]
        return np.where(learner.actions.allows(q), values, -np.inf)

    return climb_in_slice(mean, given, points[int(np.argmax(mean(points)))])


def best_observed(learner: ActiveLearner) -> tuple[Action, float] | None:
    """Return the best measurement among `eligible_observations`; None without any.

    A single label or count says little, so that those are compared by what is expected there.
    """
    eligible = eligible_observations(learner)
    if not eligible:
        return None
    values = np.array([y for _, y in eligible])
    if learner.surrogate.outcome is not None:
        points = np.stack([action.point for action, _ in eligible])
        values = learner.surrogate.predict_modelled(points)[0]
    return eligible[int(np.argmax(learner.goal.sign * values))]


def eligible_observations(learner: ActiveLearner) -> list[tuple[Action, float]]:
    """Return the measurements of the target that can be the answer, in order.

    Outliers that the model leaves out cannot be it, nor can an optimum lie at an excluded place.
    """
    kept = [
        (action, y)
        for position, (action, y) in enumerate(learner.observations)
        if action.task == 0 and learner.can_be_answer(position)
    ]
    if not kept or not learner.goal.seeks_optimum or learner.availability is None:
        return kept
    points = np.stack([action.point[: len(learner.domain.columns)] for action, _ in kept])
    # Whether the constraints are satisfied was checked, with their tolerance, when the value was
    # told.
    allowed = learner.availability.allows(points)
    return [each for each, is_allowed in zip(kept, allowed, strict=True) if is_allowed]


def _best_expected(
    learner: ActiveLearner, points: Array, n_measured: int
) -> tuple[int, float, float]:
    """Return the position of the point to recommend, and mean and standard deviation of f there.

    Args:
        learner: The learner.
        points: The points that are compared, measured ones first. (q, d)
        n_measured: Number of those that were measured, at least 1.
    """
    surrogate = learner.surrogate
    posterior = surrogate.freeze_average()
    shares = posterior.shares
    sites = surrogate.target_points(points)
    means, variances = posterior.predict(sites)
    member_means, member_sds = surrogate.transform.inverse_each(means, variances)
    expected = shares @ member_means
    signed = learner.goal.sign * expected
    best_measured = int(np.argmax(signed[:n_measured]))
    superiority, lead_sd = _superiority(posterior, sites, best_measured, learner.goal.sign)
    known_well = lead_sd <= MAX_KNOWN_SD * learner.posterior.scale
    eligible = known_well | (superiority >= MIN_SUPERIORITY)
    eligible[:n_measured] = True
    best = int(np.argmax(np.where(eligible, signed, -np.inf)))
    spread = member_sds[:, best] ** 2 + (member_means[:, best] - expected[best]) ** 2
    return best, float(expected[best]), float(np.sqrt(shares @ spread))


def _superiority(
    posterior: FrozenPosterior, sites: Array, reference: int, sign: int
) -> tuple[Array, Array]:
    """Compare f at some sites with f at one of them.

    Args:
        posterior: The posterior.
        sites: The sites. (q, d')
        reference: Position of the site that the others are compared with.
        sign: 1 if high values are good, -1 if low ones are.

    Returns:
        The probability that f is better than there, and the standard deviation of the difference,
        in the units of the model: (q,) each.
    """
    leads: list[Array] = []
    variances: list[Array] = []
    for member in posterior.members:
        mean, variance = member.predict(sites)
        covariance = member.posterior_covariance(sites, sites[[reference]])[:, 0]
        leads.append(sign * (mean - mean[reference]))
        variances.append(np.maximum(variance + variance[reference] - 2.0 * covariance, TINY))
    lead = np.stack(leads)
    within = np.stack(variances)
    shares = posterior.shares
    between = (lead - shares @ lead) ** 2
    return shares @ ndtr(lead / np.sqrt(within)), np.sqrt(shares @ (within + between))


def _rows_of_table(learner: ActiveLearner) -> tuple[Index, int]:
    """Return the rows to compare, and how many of them, the first ones, were measured.

    The last one has the best posterior mean of all that may be recommended.
    """
    sign = learner.goal.sign
    may_be_recommended = _measurable(learner)
    estimates = np.where(may_be_recommended, sign * learner.moments[0], -np.inf)
    promising = np.argsort(-estimates, kind="stable")[:_MAX_COMPARED]
    promising = promising[may_be_recommended[promising]]
    values = {
        action.site: sign * y
        for action, y in sorted(eligible_observations(learner), key=lambda each: sign * each[1])
        if action.site is not None and may_be_recommended[action.site]
    }
    rows = np.array(sorted(values), dtype=np.intp)
    kept = _leading(np.array([values[row] for row in rows.tolist()]), estimates[rows])
    measured = rows[kept]
    others = promising[::-1]
    if learner.surrogate.ensemble is not None:
        others = others[~np.isin(others, measured)]
    return np.concatenate([measured, others]), len(measured)


def _points_of_box(learner: ActiveLearner) -> tuple[Array, int]:
    """Return the points to compare, (q, d), and how many of them, the first ones, were measured.

    The last one has the best posterior mean.
    """
    domain = learner.domain
    surrogate = learner.surrogate
    sign = learner.goal.sign
    observed = eligible_observations(learner)
    measured = np.array([action.point[: len(domain.columns)] for action, _ in observed])
    measured = measured.reshape(-1, len(domain.columns))
    on_domain = np.where(_measurable(learner), sign * surrogate.moments[0], -np.inf)
    starts = np.vstack([domain.points[int(np.argmax(on_domain))], measured])
    limited = bool(domain.constraints) or learner.availability is not None
    limited |= learner.recommendable is not None

    def signed_mean(points: Array) -> Array:
        signed = sign * surrogate.predict_modelled(points)[0]
        return (
            np.where(_may_be_recommended(learner, points), signed, -np.inf) if limited else signed
        )

    with blas_in_one_thread():
        at_starts = signed_mean(starts)
        best: Array = starts[int(np.argmax(at_starts))]
        if np.isfinite(at_starts.max()):
            best = climb(signed_mean, domain, best)
    values = np.array([sign * y for _, y in observed])
    kept = _leading(values, at_starts[1:])
    return np.vstack([measured[kept], best]), len(kept)


def _leading(values: Array, estimates: Array) -> Index:
    """Return the positions of the measured points that are compared: best by value or by estimate."""
    by_value = np.argsort(-values, kind="stable")[:_MAX_COMPARED]
    by_estimate = np.argsort(-estimates, kind="stable")[:_MAX_COMPARED]
    return np.union1d(by_value, by_estimate)


def _may_be_recommended(learner: ActiveLearner, points: Array) -> Mask:
    """Return which points (q, d) of a box are allowed, and probably not in a region that fails: (q,)."""
    allowed = learner.actions.allows(points) & learner.recommendable_at(points)
    availability = learner.availability
    if availability is None:
        return allowed
    return allowed & (availability.feasibility_at(points) >= _min_success(availability))


def _measurable(learner: ActiveLearner) -> Mask:
    """Return which points of the domain can be recommended: neither excluded nor likely to fail.

    If there are none, all of them are.
    """
    if learner.recommendable is not None:
        return learner.recommendable
    everywhere = np.ones(len(learner.domain), bool)
    availability = learner.availability
    if availability is None:
        return everywhere
    measurable = availability.feasibility >= _min_success(availability)
    rows = [
        action.site
        for action, _ in learner.observations
        if action.task == 0 and action.site is not None
    ]
    measurable[rows] = True  # it was possible there
    measurable &= ~availability.excluded
    if not measurable.any():
        measurable = ~availability.excluded
    return measurable if measurable.any() else everywhere


def _min_success(availability: Availability) -> float:
    """Return the probability of success that a recommended point has at least."""
    # A place that is too risky to be tried must not be recommended.
    highest_limit = MAX_MIN_FEASIBILITY * availability.regional * availability.feasibility.max()
    return float(max(_MIN_SUCCESS_PROBABILITY, highest_limit))
