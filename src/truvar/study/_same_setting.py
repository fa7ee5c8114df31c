"""Batches whose suggestions share one setting, such as the temperature of an oven.

The setting is chosen jointly with the batch: at most `_MAX_SETTINGS` of them are tried, the one
of the policy's free choice first and then those of the best single measurements; for each the first
`_MAX_COMPARED` measurements of its batch are chosen, and the highest total gain wins, per unit of
cost if the policy divides by it. Before there is a fitted model, the setting is that of the free
choice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from truvar._typing import Array, Index
from truvar.algorithm import loop
from truvar.algorithm.selection import in_model_units, policy_context
from truvar.domain.action import Action
from truvar.domain.candidates import Candidates
from truvar.domain.given_context import ContextSlice, slice_with_setting
from truvar.domain.vehicles import Departure
from truvar.exceptions import Finished
from truvar.study._state import StudyState
from truvar.study.operations import Asked

_MAX_SETTINGS = 8  # settings that are compared
_MAX_COMPARED = 8  # measurements of the batch that they are compared by
_MAX_ROUTE_PASSES = 5  # passes over all reversals of a part of a route
_SETTING_RESOLUTION = 0.02  # of a column's extent: settings of a box that are told apart
_SHORTER = 1e-9  # relative: a route must be shorter by more than this

_Choose = Callable[[ContextSlice | None], Action]
"""Makes the next choice within a slice of the domain; raises `Finished` if there is none."""


def plan_batch(
    state: StudyState,
    columns: Sequence[int],
    n: int,
    context: ContextSlice | None,
    choose: _Choose,
    origin: Departure,
) -> tuple[ContextSlice | None, list[Action]]:
    """Return the part of the domain that has the best setting, and a batch ordered by its route.

    Args:
        state: The state of the study, which is as before afterwards.
        columns: Positions of the columns that all suggestions share.
        n: Number of suggestions.
        context: The given context, if the domain has one.
        choose: Chooses the next measurement.
        origin: The position and the budget of the vehicle that measures.

    Returns:
        The part, which is the context itself if nothing can be chosen, and the batch; empty if its
        order does not matter, so that it can be chosen one after the other.
    """
    setting = _best_setting(state, columns, n, context, choose, origin)
    if setting is None or not state.learner.actions.travels:
        return context if setting is None else setting, []
    return setting, _short_route(state, _trial_batch(state, n, setting, choose), origin)


def _best_setting(
    state: StudyState,
    columns: Sequence[int],
    n: int,
    context: ContextSlice | None,
    choose: _Choose,
    origin: Departure,
) -> ContextSlice | None:
    """Return the part of the domain whose setting gives the best batch; None if there is nothing.

    Args:
        state: The state of the study, which is as before afterwards.
        columns: Positions of the columns that all suggestions share.
        n: Number of suggestions.
        context: The given context, if the domain has one.
        choose: Chooses the next measurement.
        origin: The position and the budget of the vehicle that measures.
    """
    domain = state.config.domain
    try:
        free = choose(context)
    except Finished:
        return None
    points = [free.point[: len(domain.columns)]]
    if state.learner.surrogate.fitted:
        points += list(_by_score(state, context, origin))
    slices: dict[tuple[float, ...], ContextSlice] = {}
    for point in points:
        if len(slices) < _MAX_SETTINGS:
            key = tuple(np.round(point[columns] / _distinct(state)[columns]).tolist())
            if key not in slices:
                setting = {k: float(point[k]) for k in columns}
                slices[key] = slice_with_setting(domain, setting, context)
    found = list(slices.values())
    if len(found) == 1:
        return found[0]
    totals = []
    for each in found:
        batch = _trial_batch(state, min(n, _MAX_COMPARED), each, choose)
        gain = sum(action.gain for action in batch)
        cost = sum(action.cost for action in batch) or 1.0
        totals.append((len(batch), gain / cost if state.config.policy.per_cost else gain))
    return found[max(range(len(found)), key=lambda k: totals[k])]


def _trial_batch(
    state: StudyState, n: int, given: ContextSlice | None, choose: _Choose
) -> list[Action]:
    """Return the batch that would be chosen; the state is as before afterwards."""
    batch: list[Action] = []
    with _undone(state):
        while len(batch) < n:
            try:
                action = choose(given)
            except Finished:
                break
            Asked(action).apply(state)
            state.next_id += 1
            batch.append(action)
    return batch


def _short_route(state: StudyState, batch: Sequence[Action], origin: Departure) -> list[Action]:
    """Return a batch in the order of a short route, with the costs of that order.

    Travel and set-up are both part of the costs. A batch keeps its order where these do not depend
    on it, in a box and with tasks.

    Args:
        state: The state before the batch.
        batch: The batch in the order of its choice.
        origin: The position before it.
    """
    actions = state.learner.actions
    sites = np.array([-1 if action.site is None else action.site for action in batch])
    if not actions.travels or actions.tasks is not None or (sites < 0).any() or len(batch) < 2:
        return list(batch)
    levels = np.array([action.level or 0 for action in batch])
    many = np.arange(len(batch))
    between = actions.pairwise_costs(sites, origin.speed)[:, many, levels]
    first = actions.candidates(replace(origin, left=np.inf)).cost[sites, levels]
    order = _shorter(many, first, between)
    costs = [float(first[order[0]]), *(float(c) for c in between[order[:-1], order[1:]])]
    ids = [action.id for action in batch]
    return [
        replace(batch[k], id=id_, cost=cost) for k, id_, cost in zip(order, ids, costs, strict=True)
    ]


def _shorter(order: Index, first: Array, between: Array) -> Index:
    """Return an order that no reversal of a part makes cheaper, from the nearest neighbours on."""

    def length(path: Index) -> float:
        return float(first[path[0]] + between[path[:-1], path[1:]].sum())

    nearest = [int(np.argmin(first))]
    while len(nearest) < len(order):
        left = np.setdiff1d(order, nearest)
        nearest.append(int(left[np.argmin(between[nearest[-1], left])]))
    best = min((order, np.array(nearest)), key=length)
    for _ in range(_MAX_ROUTE_PASSES):
        before = length(best)
        for i in range(len(order)):
            for j in range(i + 2, len(order) + 1):
                changed = np.concatenate([best[:i], best[i:j][::-1], best[j:]])
                if length(changed) < length(best) * (1 - _SHORTER):
                    best = changed
        if not length(best) < before:
            break
    return best


@contextmanager
def _undone(state: StudyState) -> Iterator[None]:
    """Undo the suggestions that are applied within."""
    pending = dict(state.pending)
    positions = list(state.positions)
    next_id = state.next_id
    try:
        yield
    finally:
        state.pending = pending
        state.positions = positions
        state.next_id = next_id
        state.learner.set_pending(pending.values())


def _by_score(
    state: StudyState, context: ContextSlice | None, origin: Departure
) -> Iterator[Array]:
    """Yield points of the domain in the order of the policy's score, the best first."""
    learner = state.learner
    table: Candidates = in_model_units(learner.surrogate, learner.actions.candidates(origin))
    seen = policy_context(learner, state.next_id, origin.speed)
    policy = learner.scoring(learner.policy)
    gains = policy.score(seen, table)
    scores = loop.comparable_scores(seen, policy, table, gains)
    scores = np.where(np.isfinite(table.cost), scores, -np.inf).max(axis=1)
    best = scores.reshape(-1, len(learner.domain)).max(axis=0)  # over tasks
    rows = np.argsort(-best, kind="stable")
    if context is not None:
        rows = rows[np.isin(rows, context.rows)]
    for row in rows:
        if np.isfinite(best[row]):
            yield learner.domain.points[row]


def _distinct(state: StudyState) -> Array:
    """Return the difference by column below which settings are not told apart, (d,)."""
    domain = state.config.domain
    return np.asarray(_SETTING_RESOLUTION * domain.extent if domain.continuous else domain.slack)
