"""A learner on a domain that was extended: it begins with all that is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from truvar.algorithm.learner import ActiveLearner
from truvar.domain.action import Action
from truvar.domain.extension import Relocation


def continue_learner(
    learner: ActiveLearner,
    previous: ActiveLearner,
    relocation: Relocation,
    observations: Sequence[tuple[Action, Any]],
    pending: Sequence[Action],
) -> None:
    """Have a new learner take the measurements, exclusions and failures of an earlier one.

    The model takes the values together, so that it is the one of a study of the new domain that was
    told all of them together. M, H, L and the epochs begin again.

    Args:
        learner: The learner of the extended domain, before its first measurement.
        previous: The learner of the domain before.
        relocation: Where the points of that domain are now.
        observations: The measurements with their values, in order.
        pending: The pending suggestions, in the order they were made.
    """
    learner.exclusions = [
        replace(each, place=relocation.place(each.place)) for each in previous.exclusions
    ]
    learner.failures = [
        replace(each, action=relocation.action(each.action)) for each in previous.failures
    ]
    learner.failure_positions = list(previous.failure_positions)
    if observations:
        learner.observe_all(observations)
    learner.set_pending(pending)
