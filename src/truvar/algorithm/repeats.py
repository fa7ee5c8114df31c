"""Repeated measurements: places that are closed to further ones, and repeats within a batch.

Per unit cost, a second measurement where one is pending nearly always wins over a journey, so that
a batch of five would be one place five times. A batch has a given number of measurements, however,
and the journey to another place serves the later ones too. A repeat is therefore chosen only if it
is worth more than the best other place where neither of them costs a journey.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from truvar._typing import Index
from truvar.acquisition.base import PolicyContext
from truvar.algorithm import loop
from truvar.domain.candidates import Candidates
from truvar.domain.repeats import ClosedPlaces, max_measurements

if TYPE_CHECKING:
    from truvar.algorithm.learner import ActiveLearner

_Selection = tuple[Candidates, loop.Choice | None]


def closed_places(learner: ActiveLearner, before: ClosedPlaces | None) -> ClosedPlaces | None:
    """Return the places that were measured, or are pending, as often as they may be.

    Args:
        learner: The learner.
        before: The places that were closed before, which are returned if they still are.

    Returns:
        The places; None if there is no limit.
    """
    limit = max_measurements(learner.repeats)
    if limit is None:
        return None
    actions = [*learner.observations.actions, *learner.pending]
    if before is not None and before.ids == tuple(action.id for action in actions):
        return before
    return ClosedPlaces.of(learner.domain, limit, actions)


def closed_reason(learner: ActiveLearner, rows: Index | None = None) -> str | None:
    """Return why nothing can be suggested if every place that is not excluded is closed; or None.

    Args:
        learner: The learner.
        rows: Rows of the domain that are looked at; None: all.
    """
    closed = learner.actions.closed
    if closed is None or not closed.ids:
        return None
    left = ~closed.on_grid(learner.posterior.sites).reshape(-1, len(learner.domain))  # by task
    excluded = learner.excluded
    allowed = np.ones(len(learner.domain), bool) if excluded is None else ~excluded
    if rows is not None:
        left = left[:, rows]
        allowed = allowed[rows]
    if not allowed.any() or (left & allowed).any():
        return None
    times = "once" if closed.limit == 1 else f"{closed.limit} times"
    remedy = "; give the box more representers" if learner.domain.continuous else ""
    return (
        f"every place was measured or suggested {times}, and this study allows no further "
        f"repeats{remedy}"
    )


def prefer_other_place(
    learner: ActiveLearner,
    selection: _Selection,
    context: Callable[[], PolicyContext],
    choose_among: Callable[[Candidates], _Selection],
) -> _Selection:
    """Return the choice, or another place if it repeats a pending measurement and gains less.

    Args:
        learner: The learner. With `repeats=True` it repeats whatever pays per unit cost.
        selection: The candidate table and the choice from it.
        context: Returns the view of the policy.
        choose_among: Makes the choice again, from a table without the places that have as many
            pending measurements.
    """
    table, choice = selection
    if learner.repeats is True or choice is None or table.sites is None:
        return selection
    if not (learner.actions.travels and getattr(learner.policy, "spreads_batches", False)):
        return selection  # the costs of two measurements do not depend on their order
    pending = np.array([each.site for each in learner.pending if each.site is not None], dtype=int)
    times = np.bincount(pending, minlength=len(learner.posterior.sites))[table.sites]
    if times[choice.row] == 0:
        return selection
    feasibility = np.ones(len(table.points)) if table.feasibility is None else table.feasibility
    others = np.where(times >= times[choice.row], 0.0, feasibility)
    other_table, other = choose_among(replace(table, feasibility=others))
    if other is None or other_table.sites is None:
        return selection
    values = [_value_in_place(learner, context(), table, each) for each in (choice, other)]
    return selection if values[0] > values[1] else (table, other)


def _value_in_place(
    learner: ActiveLearner, context: PolicyContext, table: Candidates, choice: loop.Choice
) -> float:
    """Return the gain of a measurement per unit of its cost without travel."""
    sites = np.arange(len(table.points)) if table.sites is None else table.sites
    # A single row, as a policy could plan a tour through several.
    here = learner.actions.candidates(None).take(sites[[choice.row]])
    noise = learner.surrogate.modelled_variances(here.noise, here.points)
    policy = learner.scoring(learner.policy)
    gains = policy.score(context, replace(here, noise=noise))
    return float(gains[0, choice.level] / here.cost[0, choice.level])
