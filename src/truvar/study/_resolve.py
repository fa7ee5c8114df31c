"""Resolve a suggestion, id or point to an `Action`, and check measured values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from truvar.domain.action import Action
from truvar.domain.candidates import Candidates
from truvar.exceptions import (
    ConflictingMeasurementError,
    InvalidMeasurementError,
    UnknownSuggestionError,
)
from truvar.messages import for_interface, format_point
from truvar.study._inputs import PointLike, as_point
from truvar.study._quantities import format_values
from truvar.study._state import StudyState
from truvar.study.commands import Correct, Tell
from truvar.study.suggestion import Suggestion, suggestion_of
from truvar.study.vehicles import departure


def resolve_action(
    state: StudyState,
    what: Suggestion | int | PointLike,
    level: int | None = None,
    task: str | None = None,
    *,
    vehicle: str | None = None,
    include_observed: bool = False,
    include_expired: bool = False,
) -> Action:
    """Resolve a suggestion, id or point to an action.

    Args:
        state: The state of the study.
        what: A suggestion or its id, which must be pending; or a point by column.
        level: Noise level, of a point only.
        task: Name of the task, of a point only.
        vehicle: Vehicle that measured, of a point only.
        include_observed: Accept measurements too.
        include_expired: Accept suggestions whose leases have run out too.

    Raises:
        InvalidMeasurementError: If level or task do not go with `what`.
        UnknownSuggestionError: If it matches no action of the study.
        InvalidDomainError: If a point cannot be used.
    """
    if not isinstance(what, (Suggestion, int)):
        what = as_point(state.config.domain, what)
        if isinstance(what, Mapping):
            return _action_at_point(state, what, level, task, vehicle)
    if level is not None or task is not None:
        given = f"task {task!r}" if level is None else f"level {level!r}"
        raise InvalidMeasurementError(
            f"a suggestion has its own level and task, got also {given}; leave it out, or tell the "
            "point if it was "
            "measured differently"
        )
    id_ = _check_id(state, what)
    found = state.pending.get(id_)
    if found is None and include_expired:
        found = state.expired.get(id_)
    if found is None and include_observed:
        observation = state.observation(id_)
        found = None if observation is None else observation[0]
    if found is None:
        raise UnknownSuggestionError(_not_found(state, id_, include_observed, include_expired))
    own = suggestion_of(state, found)
    if isinstance(what, Suggestion) and (what.point, what.level, what.task) != (
        own.point,
        own.level,
        own.task,
    ):
        raise UnknownSuggestionError(
            f"suggestion {id_} of this study is at {format_point(own.point)}, got one at "
            f"{format_point(what.point)} "
            "that belongs to another study; tell it there"
        )
    return found


def resolve_observed(state: StudyState, what: Suggestion | int) -> Action:
    """Resolve an id to the action of a measurement.

    Raises:
        UnknownSuggestionError: If nothing was measured under that id.
    """
    id_ = _check_id(state, what)
    observation = state.observation(id_)
    if observation is None:
        ids = ", ".join(str(action.id) for action, _ in state.learner.observations) or "none"
        raise UnknownSuggestionError(
            f"only a measurement can be corrected, and {id_} is not one; measured so far: {ids}"
        )
    return observation[0]


def is_corrected(state: StudyState, corrected: Action, value: float, was: float) -> bool:
    """Return whether a measurement has the value of a correction already.

    Args:
        state: The state of the study.
        corrected: The measurement with the noise and cost of the correction.
        value: The right value.
        was: The value that is to be replaced.

    Raises:
        ConflictingMeasurementError: If the measurement has neither value.
    """
    observation = state.observation(corrected.id)
    if observation is None:
        raise AssertionError("a measurement that can be corrected has a value")
    action, known = observation
    if (known, actual_parts(action)) == (value, actual_parts(corrected)):
        return True
    if known != was:
        raise ConflictingMeasurementError(
            f"measurement {corrected.id} was to be corrected from {format_values(was)} to "
            f"{format_values(value)}, but is {format_values(known)} by "
            "now; look at it, and correct it again if that is wrong"
        )
    return False


def recorded_failure(
    state: StudyState, what: Any, reason: str | None, cost: float | None
) -> int | None:
    """Return the id if that failure is recorded with that reason and cost; None otherwise."""
    id_ = what.id if isinstance(what, Suggestion) else what
    for failure in state.learner.failures:
        same_cost = cost is None or cost == failure.action.cost
        if failure.action.id == id_ and failure.reason == reason and same_cost:
            return int(failure.action.id)
    return None


def action_at(
    state: StudyState,
    table: Candidates,
    row: int,
    column: int,
    *,
    site: int | None,
    level: int | None,
    gain: float = float("nan"),
    vehicle: str | None = None,
) -> Action:
    """Return an entry of the candidate table as the next action of the study.

    Args:
        state: The state of the study, which gives the id.
        table: The candidates.
        row: Row of the table.
        column: Column of its noise and cost.
        site: Row of the model's grid, if the point is one.
        level: Noise level that the caller sees; None without levels.
        gain: The policy's score; NaN if the point was not suggested.
        vehicle: The vehicle that measures.
    """
    point = np.array(table.points[row])
    cost = float(table.cost[row, column])
    return Action(
        id=state.next_id,
        point=point,
        site=site,
        level=level,
        task=0 if state.config.prior.tasks is None else int(point[-1]),
        noise=float(table.noise[row, column]),
        cost=cost,
        gain=gain,
        vehicle=vehicle,
        expected_cost=state.learner.costs.expected(point, cost),
    )


def repeated_action(state: StudyState, action: Action) -> Action:
    """Return a further measurement at the place of another, which pays no travel."""
    d = len(state.config.domain.columns)
    here = state.learner.actions.candidates_at(action.point[None, :d], action.point[:d])
    column = 0 if action.level is None else action.level
    if action.site is not None:
        here = state.learner.actions.candidates(action.point[:d]).take(np.array([action.site]))
    row = 0 if action.site is not None else action.task
    again = action_at(
        state, here, row, column, site=action.site, level=action.level, vehicle=action.vehicle
    )
    return replace(again, repeats=action.id, exposure=action.exposure)


def check_vehicle_of(action: Action, vehicle: str | None) -> None:
    """Check that a measurement is one of the vehicle that the caller names, if any.

    Raises:
        InvalidMeasurementError: If it is another one's.
    """
    if vehicle is not None and action.vehicle != vehicle:
        raise InvalidMeasurementError(
            f"suggestion {action.id} is for {action.vehicle}, got vehicle={vehicle!r}; leave it "
            "out, or tell the point"
        )


def with_actual(state: StudyState, action: Action, command: Tell | Correct) -> Action:
    """Return the action with its actual noise, cost and exposure; None keeps the expected one.

    Raises:
        InvalidMeasurementError: If the values of the study have no such noise or exposure, or
            costs are learned and this one is 0.
    """
    if command.noise is None and command.cost is None and command.exposure is None:
        return action
    outcome = state.config.prior.outcome
    noise = command.noise
    if noise == 0 and outcome is not None:
        noise = None  # as tables of such measurements have it
    if noise is not None and outcome is not None:
        raise InvalidMeasurementError(
            f"with outcome {outcome.name!r} a measurement has no noise variance, got "
            f"{noise:g}; leave it out"
        )
    if command.exposure is not None and not (outcome is not None and outcome.takes_exposure):
        raise InvalidMeasurementError(
            f'only measurements of a study with outcome "count" have an exposure, got '
            f"{command.exposure:g}; leave it out"
        )
    actual = {"cost": command.cost, "exposure": command.exposure}
    changed: dict[str, Any] = {name: part for name, part in actual.items() if part is not None}
    if command.cost is not None and action.expected_cost is not None:
        _check_learned_cost(command.cost)
        changed["cost_given"] = True
    if noise is not None:
        changed |= {"noise": noise, "noise_given": True}
    return replace(action, **changed) if changed else action


def _check_learned_cost(cost: float) -> None:
    if cost == 0:
        raise InvalidMeasurementError(
            "costs are learned on the logarithmic scale and must be above 0, got 0; give the "
            "measured cost, or leave it out, and the expected one counts"
        )


def actual_parts(action: Action) -> tuple[float, float, float | None]:
    """Return what a measurement is told with beside its value: noise, cost and exposure."""
    return action.noise, action.cost, action.exposure


def _action_at_point(
    state: StudyState,
    point: Mapping[str, Any],
    level: int | None,
    task: str | None,
    vehicle: str | None,
) -> Action:
    """Return the measurement of a point that was not suggested."""
    domain = state.config.domain
    actions = state.learner.actions
    index, x = domain.locate(point)
    task_index = actions.task_index(task)
    column = _check_level(level, actions.noise_levels)
    # A measurement beyond the budget was paid for anyway.
    last = replace(departure(state, vehicle), left=np.inf)
    if index is None:
        table = actions.candidates_at(x[None, :], last)
        return action_at(state, table, task_index, column, site=None, level=level, vehicle=vehicle)
    site = task_index * len(domain) + index
    return action_at(
        state, actions.candidates(last), site, column, site=site, level=level, vehicle=vehicle
    )


def _check_level(level: Any, noise_levels: Any) -> int:
    """Return the column of the candidate table for a noise level."""
    if noise_levels is None:
        if level is not None:
            raise InvalidMeasurementError(
                f"this study has no noise levels, got level {level!r}; leave it out"
            )
        return 0
    count = len(noise_levels.variance)
    if isinstance(level, (int, np.integer)) and not isinstance(level, bool) and 0 <= level < count:
        return int(level)
    given = "none" if level is None else repr(level)
    remedy = for_interface("level=...", cli="--level N", http="level")
    raise InvalidMeasurementError(
        f"a point must be told with the noise level that was used, 0 to {count - 1}, got {given}; "
        f"give {remedy}"
    )


def _not_found(state: StudyState, id_: int, include_observed: bool, include_expired: bool) -> str:
    pending = ", ".join(map(str, state.pending)) or "none"
    remedy = "give one that is pending"
    if include_expired:
        remedy += ", or tell the point"
    elif include_observed:
        remedy += ", or a measurement"
    return f"suggestion {id_} is not pending (pending: {pending}); {remedy}"


def _check_id(state: StudyState, what: Any) -> int:
    id_: Any = what.id if isinstance(what, Suggestion) else what
    if not isinstance(id_, (int, np.integer)) or isinstance(id_, bool):
        example = format_point(state.config.domain.point(0))
        raise UnknownSuggestionError(
            f"expected a suggestion, its id or a point such as {example}, got {what!r}"
        )
    return int(id_)
