"""The recommended point of an optimum, and the measurements that can be the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from truvar._numba.threads import blas_in_one_thread
from truvar._typing import Array, Mask
from truvar.acquisition.mixed_search import climb
from truvar.algorithm._contextual import climb_in_slice
from truvar.algorithm._exploration import MAX_MIN_FEASIBILITY
from truvar.domain.action import Action
from truvar.domain.given_context import ContextSlice

if TYPE_CHECKING:
    from truvar.algorithm.learner import ActiveLearner

MIN_SUCCESS_PROBABILITY = 0.5  # of a recommended point
# standard deviations, the normal quantile of 3/4: leads with odds of three to one
MIN_LEAD_SD = 0.6745
# prior standard deviations: an unmeasured point with less uncertainty is not an extrapolation
MAX_KNOWN_SD = 0.1


def best_point(learner: ActiveLearner) -> tuple[int | None, Array, float, float]:
    """Return the point to recommend: row (None in a box), coordinates (d,), mean and sd.

    It is the point of best posterior mean. With a learned model a point that was not measured must
    also be known well, or be better than the best measured one with odds of three to one: an
    extrapolation is not evidence.
    """
    domain = learner.domain
    mean, sd = learner.moments
    if not domain.continuous:
        recommendable = _recommendable(learner, *learner.surrogate.moments)
        index = int(np.argmax(np.where(recommendable, learner.goal.sign * mean, -np.inf)))
        return index, domain.points[index], float(mean[index]), float(sd[index])
    point = _best_in_box(learner)
    means, variances = learner.surrogate.predict(point[None, :])
    return None, point, float(means[0]), float(np.sqrt(variances[0]))


def best_in_context(learner: ActiveLearner, given: ContextSlice) -> Array:
    """Return the point of a box with the best posterior mean in a context, not excluded: (d,)."""
    points = given.place(learner.domain.points)

    def mean(q: Array) -> Array:
        values = learner.goal.sign * learner.surrogate.predict(q)[0]
        return np.where(learner.actions.allows(q), values, -np.inf)

    return climb_in_slice(mean, given, points[int(np.argmax(mean(points)))])


def best_observed(learner: ActiveLearner) -> tuple[Action, float] | None:
    """Return the best measurement among `eligible_observations`; None without any."""
    return max(
        eligible_observations(learner), key=lambda each: learner.goal.sign * each[1], default=None
    )


def eligible_observations(learner: ActiveLearner) -> list[tuple[Action, float]]:
    """Return the measurements of the target that can be the answer, in order.

    Outliers that the model leaves out cannot be it, nor can an optimum lie at an excluded place.
    """
    model = learner.surrogate.model
    outliers = () if model is None else model.outliers
    observed = [
        each for position, each in enumerate(learner.observations) if position not in outliers
    ]
    kept = [(action, y) for action, y in observed if action.task == 0]
    if not kept or learner.goal.level_set or learner.availability is None:
        return kept
    points = np.stack([action.point[: len(learner.domain.columns)] for action, _ in kept])
    # Whether the constraints are satisfied was checked, with their tolerance, when the value was
    # told.
    allowed = learner.availability.allows(points)
    return [each for each, is_allowed in zip(kept, allowed, strict=True) if is_allowed]


def _best_in_box(learner: ActiveLearner) -> Array:
    """Return the point of a box to recommend, (d,)."""
    domain = learner.domain
    surrogate = learner.surrogate
    sign = learner.goal.sign
    measured = [action.point[: len(domain.columns)] for action, _ in eligible_observations(learner)]
    on_domain = np.where(_measurable(learner), sign * surrogate.moments[0], -np.inf)
    starts = np.stack([domain.points[int(np.argmax(on_domain))], *measured])
    limited = bool(domain.constraints) or learner.availability is not None

    def signed_mean(points: Array) -> Array:
        signed = sign * surrogate.predict_modelled(points)[0]
        return np.where(learner.actions.allows(points), signed, -np.inf) if limited else signed

    with blas_in_one_thread():
        start = starts[int(np.argmax(signed_mean(starts)))]
        point: Array = climb(signed_mean, domain, start)
        if surrogate.ensemble is None or not measured:
            return point
        among = np.stack([point, *measured])
        mean, variance = surrogate.predict_modelled(among)
    best_measured = 1 + int(np.argmax(sign * mean[1:]))
    if _is_supported(learner, sign * (mean[:1] - mean[best_measured]), variance[:1])[0]:
        return point
    return np.asarray(among[best_measured])


def _recommendable(learner: ActiveLearner, mean: Array, variance: Array) -> Mask:
    """Return which points of the domain may be recommended, given the model's moments."""
    measurable = _measurable(learner)
    rows = [action.site for action, _ in eligible_observations(learner) if action.site is not None]
    rows = [row for row in rows if measurable[row]]
    if learner.surrogate.ensemble is None or not rows:
        return measurable
    signed = learner.goal.sign * mean
    allowed = _is_supported(learner, signed - signed[rows].max(), variance)
    allowed[rows] = True
    return allowed & measurable


def _measurable(learner: ActiveLearner) -> Mask:
    """Return which points of the domain can be recommended: neither excluded nor likely to fail.

    If there are none, all of them are.
    """
    everywhere = np.ones(len(learner.domain), bool)
    availability = learner.availability
    if availability is None:
        return everywhere
    feasibility = availability.feasibility
    # A place that is too risky to be tried must not be recommended.
    highest_limit = MAX_MIN_FEASIBILITY * availability.regional * feasibility.max()
    measurable = feasibility >= max(MIN_SUCCESS_PROBABILITY, highest_limit)
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


def _is_supported(learner: ActiveLearner, lead: Array, variance: Array) -> Mask:
    """Return where a lead in posterior mean over the best measured point is no extrapolation."""
    known_well = (lead > 0) & (variance <= (MAX_KNOWN_SD * learner.posterior.scale) ** 2)
    return np.asarray(known_well | (lead >= MIN_LEAD_SD * np.sqrt(variance)))
