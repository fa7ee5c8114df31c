"""Exploration: the measurement that removes most variance, at a limited risk of failure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from truvar._typing import Mask
from truvar.acquisition.base import PolicyContext
from truvar.acquisition.truvar import TruVaR
from truvar.algorithm import loop
from truvar.domain.candidates import Candidates

if TYPE_CHECKING:
    from truvar.algorithm.learner import ActiveLearner

# increase of the least relative P(success) with the share of attempts that failed
MIN_FEASIBILITY_SLOPE = 6.0
# the largest relative P(success) that is required; the border of a region stays in reach
MAX_MIN_FEASIBILITY = 0.75


def remove_variance(
    learner: ActiveLearner, context: PolicyContext, targets: Mask, table: Candidates
) -> loop.Choice | None:
    """Choose the row that removes most variance per unit cost from targets likely to succeed.

    Rows and targets that are likely to fail count only if nothing else is left to gain.

    Args:
        learner: The learner.
        context: The view of a policy.
        targets: Points whose variance counts. (n,)
        table: The candidates, with the noise in the units of the model.
    """
    counted = targets
    if learner.availability is not None:
        counted = targets & (learner.availability.feasibility >= context.min_feasibility)
    if not counted.any():
        counted = targets
    variance = replace(context, targets=counted, epoch=replace(context.epoch, eta=0.0), cache={})
    policy = learner.scoring(TruVaR(eta=0.0, refine=False), exploring=True)
    choice = loop.choose(variance, policy, table)
    if choice is None and context.min_feasibility > 0:
        return remove_variance(learner, replace(context, min_feasibility=0.0), targets, table)
    return choice


def min_feasibility(learner: ActiveLearner, table: Candidates) -> float:
    """Return the probability of a success below which no row of a table is chosen.

    The gain of what is unknown is so much larger than that of what is known that the expected gain
    alone leads to places that failed again and again. Therefore the risk is limited, relative to
    the likeliest row: the more of the attempts failed, beyond the share that would have failed even
    there, the smaller it may be, and the more so the more certain it is that failures depend on the
    place. Only attempts since the first failure count.
    """
    availability = learner.availability
    if availability is None or len(availability.failed) == 0:
        return 0.0
    n_failed = len(availability.failed)
    n_succeeded = max(len(learner.observations) - learner.failures[0].n_before, 0)
    avoidable = (n_failed - 1) / max(n_failed - 1 + n_succeeded, 1) - (1.0 - table.max_feasibility)
    relative = min(max(avoidable, 0.0) * MIN_FEASIBILITY_SLOPE, MAX_MIN_FEASIBILITY)
    return relative * availability.regional * table.max_feasibility
