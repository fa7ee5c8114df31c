"""Handlers of the commands: functions of the state of a study that write its events.

A handler decides and writes; every event takes effect as it is written, and a handler may be called
again if others wrote in the meantime (`_session.StudySession.change`). A new command is a class of
`commands` with an entry of `INTERFACES`, a handler here with a line of `HANDLERS`, and a method of
`_command_methods.CommandMethods`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import numpy as np

from truvar._representation import visible
from truvar.algorithm import loop
from truvar.algorithm.availability import place_of
from truvar.algorithm.repeats import closed_reason
from truvar.algorithm.selection import in_model_units, policy_context
from truvar.domain.action import Action
from truvar.domain.candidates import Candidates
from truvar.domain.exclusions import Place
from truvar.domain.given_context import ContextSlice, shared_columns, slice_in_context
from truvar.domain.vehicles import Departure
from truvar.exceptions import (
    BudgetSpent,
    ConflictingMeasurementError,
    Finished,
    InvalidArgumentError,
    StudyStartedError,
    TruvarError,
)
from truvar.messages import for_interface, format_point
from truvar.storage.base import now
from truvar.study._extension import study_extension
from truvar.study._inputs import located
from truvar.study._places import is_recorded_exclusion, resolve_place
from truvar.study._plausibility import correction, implausible, too_small
from truvar.study._quantities import (
    check_noise_told,
    check_values,
    format_values,
    level_told,
    with_known_values,
)
from truvar.study._resolve import (
    action_at,
    actual_parts,
    check_vehicle_of,
    is_corrected,
    recorded_failure,
    repeated_action,
    resolve_action,
    resolve_observed,
    with_actual,
)
from truvar.study._same_setting import plan_batch
from truvar.study._session import EventWriter
from truvar.study._state import StudyState
from truvar.study.commands import (
    Allow,
    Ask,
    Command,
    Correct,
    Exclude,
    Extend,
    Fail,
    Fit,
    Note,
    Receipt,
    Tell,
    TellAll,
    TellRepeats,
    Withdraw,
)
from truvar.study.outliers import outlier_ids
from truvar.study.suggestion import Suggestion, suggestion_of
from truvar.study.vehicles import departure, resolve_vehicle

# -- asking
# --------------------------------------------------------------------------------------------------


def handle_ask(state: StudyState, command: Ask, write: EventWriter) -> Receipt:
    """Choose suggestions one after the other; each takes the earlier ones into account."""
    vehicle = resolve_vehicle(state.config, command.vehicle, write.author, required=True)
    given = slice_in_context(state.config.domain, command.context)
    batch: list[Action] = []
    end: Finished | None = None
    for id_ in state.expired_leases(now()):
        write("expired", id=id_)
    until = (
        None if command.lease is None else (now() + timedelta(seconds=command.lease)).isoformat()
    )
    details: dict[str, Any] = {} if command.context is None else {"context": dict(command.context)}

    def choose_in(part: ContextSlice | None) -> Action:
        return _choose_action(state, vehicle, command.budget, part)

    planned: list[Action] = []
    if command.same is not None:
        columns = shared_columns(state.config.domain, command.same)
        origin = departure(state, vehicle, command.budget)
        given, planned = plan_batch(state, columns, command.n, given, choose_in, origin)
        details["same"] = list(command.same)
    while len(batch) < command.n and end is None:
        try:
            action = planned.pop(0) if planned else choose_in(given)
        except BudgetSpent as spent:
            end = spent
        except Finished as finished:
            end = finished
            conclusions = state.conclusions
            is_known = conclusions.finished is not None or conclusions.exhausted is not None
            if given is None and not is_known and not state.pending:
                write("exhausted")
                end = Finished(str(conclusions.exhausted))
        else:
            write("asked", action, until=until, **details)
            batch.append(action)
    ids = tuple(action.id for action in batch)
    suggestions = tuple(suggestion_of(state, action) for action in batch)
    return Receipt(ids, state.version, suggestions=suggestions, end=end)


def _choose_action(
    state: StudyState, vehicle: str | None, budget: float | None, given: ContextSlice | None
) -> Action:
    learner = state.learner
    reason = state.conclusions.finished or state.conclusions.exhausted
    if reason is not None:
        raise Finished(reason)
    origin = departure(state, vehicle, budget)
    table, choice = choose(state, origin, given)
    if choice is None:
        raise _nothing_chosen(state, table, origin, vehicle, given)
    site = None if table.sites is None else int(table.sites[choice.row])
    level = None if learner.actions.noise_levels is None else choice.level
    return action_at(
        state,
        table,
        choice.row,
        choice.level,
        site=site,
        level=level,
        gain=choice.gain,
        vehicle=vehicle,
    )


def _nothing_chosen(
    state: StudyState,
    table: Candidates,
    origin: Departure,
    vehicle: str | None,
    given: ContextSlice | None,
) -> Finished:
    """Return why nothing is chosen from a table."""
    learner = state.learner
    closed = closed_reason(learner)
    if closed is not None:
        return Finished(closed)
    affordable = table.affordable
    if given is not None and given.fixed is None:
        affordable = affordable.reshape(-1, len(state.config.domain))[:, given.rows]  # of all tasks
    if not affordable.all():  # with a larger budget there may be something to gain
        return BudgetSpent(_nothing_affordable(origin, vehicle, useful=bool(affordable.any())))
    if given is None:
        return Finished("nothing is left to gain before the pending measurements are told")
    part = "setting" if given.is_setting else "context"
    excluded = learner.excluded
    if excluded is not None and excluded[given.rows].all():
        return Finished(
            f"every place of this {part} is excluded or failed; allow some of them to continue"
        )
    closed = closed_reason(learner, given.rows) if given.fixed is None else None
    if closed is not None:
        return Finished(f"in this {part} {closed}")
    return Finished(f"nothing is left to gain in this {part}")


def choose(
    state: StudyState, origin: Departure, given: ContextSlice | None
) -> tuple[Candidates, loop.Choice | None]:
    """Return the candidates and the policy's choice; None if nothing is to be gained.

    Args:
        state: The state of the study.
        origin: The position and the budget of the vehicle that measures.
        given: The context, if it is given; None: the whole domain.
    """
    learner = state.learner
    policy = state.config.policy
    if given is not None:
        return learner.choose(origin, list(state.pending.values()), state.next_id, given)
    start = state.config.start
    table = None if start is None or state.positions else learner.actions.candidates(origin)
    excluded = learner.excluded
    is_excluded = start is not None and excluded is not None and bool(excluded[start])
    if start is None or table is None or is_excluded or not table.affordable[start]:
        return learner.choose(origin, list(state.pending.values()), state.next_id)
    first = table.take(np.array([start]))
    modelled = in_model_units(learner.surrogate, first)
    gains = learner.scoring(policy).score(policy_context(learner, 0), modelled)[0]
    scores = gains / first.cost[0] if policy.per_cost else gains
    level = int(
        np.argmax(np.where(np.isfinite(scores), scores, -np.inf))
    )  # the policy chooses the noise level
    return table, loop.Choice(start, level, float(gains[level]))


def _nothing_affordable(origin: Departure, vehicle: str | None, *, useful: bool) -> str:
    """Return why nothing is suggested; `useful`: only measurements without gain are affordable."""
    owner = "" if vehicle is None else f" of {vehicle}"
    back = "" if origin.home is None else " and the return leg"
    measurement = "useful measurement" if useful else "measurement"
    left = f"the {max(origin.left, 0.0):.6g} left of the budget{owner}"
    return f"{left} do not pay for another {measurement}{back}"


# -- telling
# --------------------------------------------------------------------------------------------------


def handle_tell(state: StudyState, command: Tell, write: EventWriter) -> Receipt:
    """Write a measured value, unless it is known already."""
    value = check_values(state.config, command.y)
    repeated = None if command.key is None else state.id_with_key(command.key)
    if repeated is not None:
        return Receipt((repeated,), state.version)
    vehicle = resolve_vehicle(state.config, command.vehicle, write.author, required=False)
    action = resolve_action(
        state,
        command.what,
        level_told(state, command, value) if state.config.goal.parts else command.level,
        command.task,
        vehicle=vehicle,
        include_observed=True,
        include_expired=True,
    )
    if command.vehicle is not None:
        check_vehicle_of(action, command.vehicle)
    observation = None if action.id in state.pending else state.observation(action.id)
    if observation is not None:
        _check_repeated(state, observation, value, command)
        _check_same_reference(state, action.id, command.reference)
        return Receipt((action.id,), state.version)
    if command.noise is not None:
        check_noise_told(state.config.goal, command.noise)
    action = with_actual(state, action, command)
    finding = implausible(state, action, value) if command.typed else None
    options: dict[str, Any] = {} if command.key is None else {"key": str(command.key)}
    if command.reference is not None:
        options["reference"] = command.reference
    if command.passing:
        options["passing"] = True
    write("told", action, y=value, **options)
    messages = []
    if finding is not None and action.id not in outlier_ids(state):
        messages.append(f"{finding}; {correction(action.id)}")
    small = None if state.defers_values else too_small(state)
    if small is not None:
        messages.append(small)
    warnings = {action.id: "; ".join(messages)} if messages else {}
    return Receipt((action.id,), state.version, warnings)


def _check_same_reference(state: StudyState, id_: int, reference: str | None) -> None:
    """Refuse another reference for a value that is recorded, which would be lost."""
    known = state.told_texts("reference").get(id_)
    if reference not in (None, known):
        raise ConflictingMeasurementError(
            f"measurement {id_} has the reference {known!r}, got {reference!r}; withdraw it and "
            "tell it again, or write a note"
        )


def handle_tell_all(state: StudyState, command: TellAll, write: EventWriter) -> Receipt:
    """Write measured values in order."""
    receipts = []
    n_before = len(state.learner.observations)
    with write.together():
        for tell, source in zip(command.tells, command.sources, strict=True):
            try:
                receipts.append(handle_tell(state, tell.check(), write))
            except TruvarError as error:
                raise located(error, source) from None
    receipt = Receipt.merged(receipts)
    warnings = {
        id_: message for id_, message in receipt.warnings.items() if id_ not in outlier_ids(state)
    }
    small = too_small(state, len(state.learner.observations) - n_before)
    if small is not None:
        last = receipt.ids[-1]
        warnings[last] = f"{warnings[last]}; {small}" if last in warnings else small
    return replace(receipt, version=state.version, warnings=warnings)


def _check_repeated(
    state: StudyState, observation: tuple[Action, Any], value: Any, command: Tell
) -> None:
    """Refuse a measurement that differs from the one recorded under the same id."""
    action, known = observation
    again = with_actual(state, action, command)
    if (known, actual_parts(action)) == (value, actual_parts(again)):
        return
    id_ = action.id
    correct = for_interface(
        f"correct({id_}, {format_values(value, python=True)})",
        cli=f"truvar correct {id_} {format_values(value, cli=True)}",
        http=f"id {id_}, y {format_values(value, http=True)}",
    )
    raise ConflictingMeasurementError(
        f"suggestion {id_} already has the value {format_values(known)}, got "
        f"{format_values(value)}; if the first was "
        "wrong, correct "
        f"it: {correct}; a second measurement of that point is told by its coordinates: "
        f"{format_point(suggestion_of(state, action).point)}"
    )


def handle_tell_repeats(state: StudyState, command: TellRepeats, write: EventWriter) -> Receipt:
    """Write several values of one place; only the first pays for the travel."""
    keys = command.keys
    known = state.ids_with_keys(keys)
    if known:
        return Receipt(tuple(known), state.version)
    measured = (
        None if isinstance(command.what, Mapping) else state.observation(_id_of(command.what))
    )
    ids: list[int] = []
    warnings: Mapping[int, str] = {}
    if measured is None:
        first = Tell(
            command.what,
            command.values[0],
            level=command.level,
            task=command.task,
            key=keys[0],
            vehicle=command.vehicle,
        )
        told = handle_tell(state, first, write)
        ids.extend(told.ids)
        warnings = told.warnings
        measured = state.observation(ids[0])
    if measured is None:
        raise AssertionError("a told measurement is missing")
    for position in range(len(ids), len(command.values)):
        action = repeated_action(state, measured[0])
        options = {} if keys[position] is None else {"key": keys[position]}
        value = check_values(state.config, command.values[position])
        write("told", action, y=value, **options)
        ids.append(action.id)
    return Receipt(tuple(ids), state.version, warnings)


def handle_correct(state: StudyState, command: Correct, write: EventWriter) -> Receipt:
    """Write the right value of a measurement, unless it has it already."""
    action = resolve_observed(state, command.what)
    check_noise_told(state.config.goal, command.noise)
    value = check_values(state.config, with_known_values(state, action.id, command.y))
    corrected = with_actual(state, action, command)
    if command.was is None or not is_corrected(state, corrected, value, command.was):
        write("corrected", corrected, y=value)
    return Receipt((action.id,), state.version)


def handle_withdraw(state: StudyState, command: Withdraw, write: EventWriter) -> Receipt:
    """Withdraw a suggestion, and exclude its place unless `again`; or remove a measurement."""
    action = resolve_action(state, command.what, include_observed=True)
    was_pending = action.id in state.pending
    details: dict[str, Any] = {"id": action.id}
    if command.reason is not None:
        details["reason"] = str(command.reason)
    write("withdrawn", None, **details)
    if was_pending and not command.again:
        place = place_of(action, state.config.domain)
        write(
            "excluded",
            of=action.id,
            reason=str(command.reason or "withdrawn"),
            **place.to_details(),
        )
    return Receipt((action.id,), state.version)


def handle_fail(state: StudyState, command: Fail, write: EventWriter) -> Receipt:
    """Write that a measurement failed, unless that is known already."""
    what = command.what
    recorded = recorded_failure(state, what, _text(command.reason), command.cost)
    if recorded is not None:
        return Receipt((recorded,), state.version)
    level = (
        0 if isinstance(what, Mapping) and state.learner.actions.noise_levels is not None else None
    )
    vehicle = resolve_vehicle(state.config, command.vehicle, write.author, required=False)
    action = resolve_action(state, what, level, vehicle=vehicle, include_expired=True)
    check_vehicle_of(action, command.vehicle)
    if command.cost is not None:
        action = replace(action, cost=command.cost)
    write("failed", action, reason=_text(command.reason))
    return Receipt((action.id,), state.version)


# -- places, notes, models
# ---------------------------------------------------------------------------------------------


def handle_exclude(state: StudyState, command: Exclude, write: EventWriter) -> Receipt:
    """Withdraw pending suggestions at a place, and exclude it unless that is recorded."""
    domain = state.config.domain
    place, id_ = resolve_place(state, command.what)
    for action in list(state.pending.values()):
        if place.contains(domain, action.point[None, : len(domain.columns)])[0]:
            write("withdrawn", id=action.id)
    reason = _text(command.reason)
    if not is_recorded_exclusion(state, place, reason):
        write("excluded", of=id_, reason=reason, **place.to_details())
    return Receipt(() if id_ is None else (id_,), state.version)


def handle_allow(state: StudyState, command: Allow, write: EventWriter) -> Receipt:
    """Allow a place again."""
    place, id_ = (Place(), None) if command.what is None else resolve_place(state, command.what)
    write("allowed", of=id_, **place.to_details())
    return Receipt(() if id_ is None else (id_,), state.version)


def handle_extend(state: StudyState, command: Extend, write: EventWriter) -> Receipt:
    """Write the further points of the domain."""
    extension = study_extension(state.config, command.what)
    details = extension.to_details()
    if command.reason is not None:
        details["reason"] = _text(command.reason)
    write("extended", None, **details)
    return Receipt(version=state.version)


def handle_note(state: StudyState, command: Note, write: EventWriter) -> Receipt:
    """Write a remark."""
    write("noted", text=command.text)
    return Receipt(version=state.version)


def handle_fit(state: StudyState, command: Fit, write: EventWriter) -> Receipt:
    """Fit the model to another data set, before the first suggestion."""
    if state.positions:
        raise StudyStartedError(
            "fit must come before the first suggestion, but this study has some; create a new study"
        )
    if state.config.goal.parts:
        raise InvalidArgumentError(
            "a table of one quantity cannot be fitted in a study of several; tell its values with "
            "tell_frame"
        )
    model = state.learner.surrogate.fit_table(command.frame, command.value)
    write("fitted", model=model)
    return Receipt(version=state.version, model=model)


def _id_of(what: Any) -> int:
    """Return the id of a suggestion or measurement; -1 if it is none, which `tell` then refuses."""
    id_ = what.id if isinstance(what, Suggestion) else what
    return int(id_) if isinstance(id_, (int, np.integer)) and not isinstance(id_, bool) else -1


def _text(reason: str | None) -> str | None:
    """Return a reason as text, as events hold it."""
    return None if reason is None else visible(str(reason))


# what executes a checked command; if it raises, the events that it wrote must be undone
HANDLERS: dict[type[Command], Callable[[StudyState, Any, EventWriter], Receipt]] = {
    Allow: handle_allow,
    Ask: handle_ask,
    Correct: handle_correct,
    Exclude: handle_exclude,
    Extend: handle_extend,
    Fail: handle_fail,
    Fit: handle_fit,
    Note: handle_note,
    Tell: handle_tell,
    TellAll: handle_tell_all,
    TellRepeats: handle_tell_repeats,
    Withdraw: handle_withdraw,
}
