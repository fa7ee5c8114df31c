"""The initial design of learned tasks: what is measured before there is a fitted model to choose by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from truvar._typing import Index
from truvar.domain.action import Action
from truvar.domain.vehicles import Origin

if TYPE_CHECKING:
    from truvar.algorithm.learner import ActiveLearner


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
