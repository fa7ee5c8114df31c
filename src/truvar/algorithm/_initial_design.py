"""The initial design: which measurements are made before there is a fitted model to choose by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from truvar._typing import Index
from truvar.acquisition.confidence import MIN_VARIANCE_SHARE
from truvar.domain.action import Action
from truvar.domain.vehicles import Origin
from truvar.models.frozen import spread_points
from truvar.models.kernels import covariance_function

if TYPE_CHECKING:
    from truvar.algorithm.learner import ActiveLearner

MAX_DESIGN_CANDIDATES = 400  # points of the domain that an initial design is chosen among


def design_of_tasks(
    learner: ActiveLearner, last: Origin, pending: Sequence[Action]
) -> Index | None:
    """Return the rows to continue the initial design of learned tasks with; None if complete.

    The target is measured first. If the covariance is learned, each cheaper task that the policy
    may choose is then measured at points where the target was, which shows how they are related
    however rough the functions are.

    Args:
        learner: The learner.
        last: The last position, from which travel is paid.
        pending: The pending actions.
    """
    surrogate = learner.surrogate
    tasks = learner.actions.tasks
    if tasks is None or not surrogate.learns_tasks:
        return None
    actions = [*(action for action, _ in learner.observations), *pending]
    n = len(learner.domain)
    if sum(action.task == 0 for action in actions) < surrogate.n_initial:
        return np.arange(n)
    if not tasks.learned or not getattr(learner.policy, "chooses_noise_level", True):
        return None
    costs = learner.actions.candidates(last).cost.min(axis=1).reshape(-1, n).mean(axis=1)
    anchors = {action.site for action in actions if action.task == 0 and action.site is not None}
    for task in range(1, len(costs)):
        own = [action.site for action in actions if action.task == task]
        if len(own) >= surrogate.n_initial or costs[task] >= costs[0]:
            continue
        rows = sorted({site + task * n for site in anchors} - set(own))
        return np.array(rows) if rows else np.arange(task * n, (task + 1) * n)
    return None


def space_filling_design(
    learner: ActiveLearner, pending: Sequence[Action], min_feasibility: float
) -> Index | None:
    """Return the rows that complete the initial design; None if all measurements cost the same.

    They are chosen one after the other so that the total variance left on the domain is least,
    whatever they cost. Travel is saved by their order: which of them is measured next depends on
    its cost. A design that went where it is cheap would not see most of the domain.

    Args:
        learner: The learner.
        pending: The pending actions.
        min_feasibility: Probability of a success below which no row is chosen.
    """
    surrogate = learner.surrogate
    done = [action.point for action, _ in learner.observations] + [
        action.point for action in pending
    ]
    n_left = surrogate.n_initial - len(done)
    if learner.actions.tasks is not None or not learner.actions.travels or n_left < 1:
        return None
    points = learner.domain.points
    rows = np.arange(len(points))
    if len(points) > MAX_DESIGN_CANDIDATES:
        rows = spread_points(points / learner.domain.extent, MAX_DESIGN_CANDIDATES)
    if learner.availability is not None:
        feasibility = learner.availability.feasibility[rows]
        rows = rows[(feasibility > 0) & (feasibility >= min_feasibility)]
    closed = learner.actions.closed
    if closed is not None:
        rows = rows[~closed.on_grid(points)[rows]]
    if len(rows) == 0:
        return None
    everything = np.vstack([points[rows], *(point[None, :] for point in done)])
    covariance = covariance_function(surrogate.kernel)(everything, everything)
    noise = surrogate.likelihood.minimum_noise(
        surrogate.posterior.scale
    ) + MIN_VARIANCE_SHARE * float(covariance[0, 0])
    chosen: list[int] = []
    for step in range(len(done) + min(n_left, len(rows))):
        variance = np.maximum(covariance.diagonal(), 0.0) + noise
        best = len(rows) + step  # condition on what is done or pending first
        if step >= len(done):
            removed = (covariance[: len(rows), : len(rows)] ** 2).sum(axis=0) / variance[
                : len(rows)
            ]
            best = int(np.argmax(removed))
            chosen.append(int(rows[best]))
        column = covariance[best].copy()
        covariance -= np.outer(column, column) / variance[best]
    return np.array(sorted(set(chosen)))
