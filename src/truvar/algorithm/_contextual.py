"""Choices in a given context: an optimum is sought in it, and a box searched with it fixed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from truvar._typing import Array
from truvar.acquisition.base import PolicyContext
from truvar.acquisition.mixed_search import best_in_domain, climb
from truvar.algorithm.availability import AmongAllowed
from truvar.domain.action import Action
from truvar.domain.domain import Domain
from truvar.domain.given_context import ContextSlice
from truvar.domain.goals import Regions

Score = Callable[[Array], Array]  # (q, d) -> (q,)


def within_context(
    policy_context: PolicyContext, given: ContextSlice, measured: Sequence[tuple[Action, float]]
) -> PolicyContext:
    """Return the view of a policy if an optimum is sought in a given context only.

    Otherwise a context whose values are low throughout would have nothing to gain, as its best
    point is not the best of all. A level set is the same in every context.

    Args:
        policy_context: Its view of the whole domain.
        given: The part of the domain that belongs to the context.
        measured: Measurements of the target with their values in the units of the model.
    """
    goal = policy_context.goal
    context = given.context if given.is_setting else given
    if context is None or not goal.seeks_optimum:
        return policy_context
    given = context
    outside = np.ones(len(policy_context.targets), bool)
    outside[given.rows] = False
    if policy_context.excluded is not None:
        outside |= policy_context.excluded
    if outside.all():
        return policy_context
    inside = AmongAllowed(goal, outside)
    regions = inside.update(
        Regions.unknown(len(outside)), policy_context.lower, policy_context.upper
    )
    targets = inside.targets(regions, policy_context.lower, policy_context.upper)
    best_y = _best_value(policy_context, given, measured)
    return replace(
        policy_context, regions=regions, targets=targets, excluded=outside, best_y=best_y, cache={}
    )


def _best_value(
    policy_context: PolicyContext, given: ContextSlice, measured: Sequence[tuple[Action, float]]
) -> float | None:
    """Return the best value measured in the context; the best posterior mean without any."""
    if policy_context.best_y is None:
        return None
    sign = policy_context.goal.sign
    points = np.array([action.point[: len(given.domain.columns)] for action, _ in measured])
    values = np.array([value for _, value in measured])
    if len(values):
        values = values[given.contains(points)]
    if len(values) == 0:
        values = policy_context.posterior.mean[given.rows]
    return float(sign * np.max(sign * values))


def search_slice(score: Score, given: ContextSlice, start: Array) -> Array:
    """Return the best point of a box in the given context that a search finds: (d,).

    Args:
        score: Maps points (q, d) of the box to scores (q,).
        given: The part of the box that belongs to the context.
        start: Points of it to start from. Shape (s, d).
    """
    return _whole(
        given, best_in_domain(_in_slice(score, given), _chosen_columns(given), start[:, given.free])
    )


def climb_in_slice(score: Score, given: ContextSlice, start: Array) -> Array:
    """Return a local maximum of the score in the given context, near `start` (d,): (d,)."""
    return _whole(given, climb(_in_slice(score, given), _chosen_columns(given), start[given.free]))


def _in_slice(score: Score, given: ContextSlice) -> Score:
    """Return the score as a function of the chosen columns."""

    def score_chosen(points: Array) -> Array:
        whole = np.empty((len(points), len(given.domain.columns)))
        whole[:, given.free] = points
        for k, x in given.given.items():
            whole[:, k] = x
        return score(whole)

    return score_chosen


def _whole(given: ContextSlice, chosen: Array) -> Array:
    """Return a point of the box from its chosen columns."""
    point = np.empty(len(given.domain.columns))
    point[given.free] = chosen
    for k, x in given.given.items():
        point[k] = x
    return point


def _chosen_columns(given: ContextSlice) -> Domain:
    """Return the box of the chosen columns."""
    domain = given.domain
    return Domain(
        tuple(domain.columns[k] for k in given.free),
        domain.points[:, given.free],
        domain.bounds[given.free],
        continuous=True,
        parameters=tuple(domain.parameters[k] for k in given.free),
    )
