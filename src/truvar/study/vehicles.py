"""Positions, costs and budgets of the vehicles or crews that work on a study."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from truvar._deprecation import deprecated_attribute
from truvar._typing import Array
from truvar.domain.costs import Cost
from truvar.domain.vehicles import Departure, Vehicle
from truvar.exceptions import Finished, InvalidArgumentError
from truvar.messages import for_interface, unknown_name

if TYPE_CHECKING:
    from truvar.domain.domain import Domain
    from truvar.study._events import StudyConfig
    from truvar.study._state import StudyState
    from truvar.study.base import BaseStudy
    from truvar.study.suggestion import Suggestion


@dataclass(frozen=True)
class VehicleStatus:
    """Position, costs and budget of a vehicle.

    Attributes:
        name: Its name; None for the single crew of a study without vehicles.
        position: Where it is or is heading: coordinates by column, the name of a place, or None
            before it has any.
        steps: Number of its measurements.
        spent: Their total cost, that of failed ones included.
        pending: Ids of its pending suggestions.
        pending_cost: Their expected cost.
        return_cost: Cost of the leg from the position to the start; 0 if it need not return.
        budget: Its own budget; None if it has none.
        left: What is left of it after measurements, pending suggestions and the return leg; None
            without a budget.
        start: Where it is before its first measurement: coordinates by column, the name of a
            place, or None if it pays no travel to its first measurement.
    """

    name: str | None
    position: dict[str, float] | str | None
    steps: int
    spent: float
    pending: tuple[int, ...]
    pending_cost: float
    return_cost: float
    budget: float | None
    left: float | None
    start: dict[str, float] | str | None = None

    way_back = deprecated_attribute("return_cost", removed_in="0.5.0")

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a dictionary of JSON values."""
        former = {"way_back": self.return_cost}  # the name until 0.5.0
        return {**asdict(self), "pending": list(self.pending), **former}


def resolve_vehicle(
    config: StudyConfig, vehicle: str | None, author: str, *, required: bool
) -> str | None:
    """Return the vehicle that a caller means.

    Args:
        config: The settings of the study.
        vehicle: The name that the caller gives, if any.
        author: Author of the events, which counts as the vehicle of that name.
        required: Whether one of several vehicles must be meant.

    Raises:
        InvalidArgumentError: If there is no such vehicle, or it is not clear which one is meant.
    """
    names = list(config.vehicles)
    if vehicle is not None:
        if not names:
            remedy = for_interface(
                "Study(vehicles=[...])", problem="[vehicles] in the problem file"
            )
            raise InvalidArgumentError(
                f"this study has no vehicles, got vehicle={vehicle!r}; leave it out, or create a "
                f"study with {remedy}"
            )
        if vehicle not in names:
            raise InvalidArgumentError(unknown_name("vehicle", vehicle, names))
        return vehicle
    if author in names:
        return author
    if len(names) == 1:
        return names[0]
    if names and required:
        option = for_interface(
            f"vehicle={names[0]!r}", cli=f"--vehicle {names[0]}", http=f"vehicle {names[0]}"
        )
        raise InvalidArgumentError(
            f"this study has the vehicles {', '.join(names)}, and a suggestion is for one of them; "
            "say for which, such "
            f"as {option}"
        )
    return None


def _start_position(state: StudyState, vehicle: str | None) -> Array | str | None:
    """Return where a vehicle starts: its own start, or that of the cost."""
    config = state.config
    start = config.cost.start if isinstance(config.cost, Cost) else None
    if vehicle is not None and config.vehicles[vehicle].start is not None:
        start = config.vehicles[vehicle].start
    return state.learner.actions.position(start)


def _last_position(state: StudyState, vehicle: str | None = None) -> Array | str | None:
    """Return the position that travel of a vehicle starts from.

    That is its latest suggestion or unsuggested measurement, or else its start.

    Args:
        state: The state of the study.
        vehicle: The vehicle; None for the single crew of a study without vehicles.
    """
    d = len(state.config.domain.columns)
    for visit in reversed(state.positions):
        if not state.config.vehicles or (vehicle is not None and visit.vehicle == vehicle):
            return visit.point[:d]
    if vehicle is None and state.config.vehicles:
        return None
    return _start_position(state, vehicle)


def departure(state: StudyState, vehicle: str | None, budget: float | None = None) -> Departure:
    """Return where a vehicle is, how fast it is, and what it may still spend.

    Args:
        state: The state of the study.
        vehicle: The vehicle; None for the single crew.
        budget: Total cost that all measurements, and the return legs if compulsory, must
            stay within; None: the budget among the limits of the study if the return leg is
            compulsory, otherwise only that of the vehicle.
    """
    config = state.config
    actions = state.learner.actions
    own = config.vehicles.get(vehicle, Vehicle()) if vehicle is not None else Vehicle()
    home = _start_position(state, vehicle) if actions.must_return else None
    position = _last_position(state, vehicle)
    if budget is None and actions.must_return:
        budget = config.limits.get("budget")
    left = np.inf
    if budget is not None:
        left = budget - state.learner.spent - sum(action.cost for action in state.pending.values())
        others = [name for name in config.vehicles if name != vehicle]
        left -= sum(_return_cost(state, name) for name in others)
    if own.budget is not None:
        left = min(left, own.budget - _committed(state, vehicle))
    return Departure(position, own.speed, home, left)


def check_starts(state: StudyState) -> None:
    """Check the starts of all vehicles, and that vehicles which must return have one.

    Raises:
        InvalidArgumentError: If a start is not a position, a vehicle that must return has none, or
            a speed has no effect.
    """
    config = state.config
    names: list[str | None] = [*config.vehicles] or [None]
    for name in names:
        start = _start_position(state, name)
        if state.learner.actions.must_return and start is None:
            owner = "the cost" if name is None else f"vehicle {name!r}"
            raise InvalidArgumentError(
                f"must_return needs a start to return to, got none for {owner}; give start={{...}}"
            )
        if (
            name is not None
            and config.vehicles[name].speed != 1
            and not isinstance(config.cost, Cost)
        ):
            raise InvalidArgumentError(
                f"the speed of vehicle {name!r} needs a cost of travel to divide, got cost "
                f"{config.cost!r}; give "
                "Cost(travel=...)"
            )


def vehicle_statuses(state: StudyState) -> list[VehicleStatus]:
    """Return the status of every vehicle; of the single crew if there are none."""
    names: list[str | None] = [*state.config.vehicles] or [None]
    return [_status(state, name) for name in names]


def ask_next(study: BaseStudy, budget: float | None = None) -> Suggestion:
    """Return a suggestion for the vehicle that has spent least and can still measure.

    Args:
        study: The study, with or without vehicles.
        budget: Total cost that the study must stay within; it counts if the return leg is
            compulsory.

    Raises:
        Finished: If there is nothing to suggest for any of them.
    """
    budget = budget if study.must_return else None
    if not study.vehicles:
        return study.ask(budget=budget)
    order = sorted(study.vehicle_statuses, key=lambda status: status.spent)
    for status in order[:-1]:
        with suppress(Finished):
            return study.ask(vehicle=status.name, budget=budget)
    return study.ask(vehicle=order[-1].name, budget=budget)


def _status(state: StudyState, vehicle: str | None) -> VehicleStatus:
    position = _last_position(state, vehicle)
    pending = [action for action in state.pending.values() if action.vehicle == vehicle]
    budget = None if vehicle is None else state.config.vehicles[vehicle].budget
    back = _return_cost(state, vehicle)
    left = None if budget is None else budget - _committed(state, vehicle) - back
    return VehicleStatus(
        name=vehicle,
        position=_named_position(state.config.domain, position),
        steps=sum(action.vehicle == vehicle for action, _ in state.learner.observations),
        spent=_spent_by(state, vehicle),
        pending=tuple(action.id for action in pending),
        pending_cost=float(sum(action.cost for action in pending)),
        return_cost=back,
        budget=budget,
        left=left,
        start=_named_position(state.config.domain, _start_position(state, vehicle)),
    )


def _named_position(domain: Domain, position: Array | str | None) -> dict[str, Any] | str | None:
    """Return a position by column, without coordinates that are not known."""
    if position is None or isinstance(position, str):
        return position
    known = np.isfinite(position)
    named = domain.named(np.where(known, position, domain.points[0]))
    return {
        name: named[name] for name, is_known in zip(domain.columns, known, strict=True) if is_known
    }


def _return_cost(state: StudyState, vehicle: str | None) -> float:
    """Return the cost of the return leg of a vehicle; 0 if it need not return."""
    actions = state.learner.actions
    if not actions.must_return:
        return 0.0
    speed = 1.0 if vehicle is None else state.config.vehicles[vehicle].speed
    return actions.return_cost(
        Departure(speed=speed, home=_start_position(state, vehicle)), _last_position(state, vehicle)
    )


def _spent_by(state: StudyState, vehicle: str | None) -> float:
    """Return the cost of the measurements of a vehicle, those that failed included."""
    made = [action for action, _ in state.learner.observations]
    failed = [attempt.action for attempt in state.learner.failures]
    return float(sum(action.cost for action in [*made, *failed] if action.vehicle == vehicle))


def _committed(state: StudyState, vehicle: str | None) -> float:
    """Return the cost of all measurements and pending suggestions of a vehicle."""
    pending = sum(action.cost for action in state.pending.values() if action.vehicle == vehicle)
    return _spent_by(state, vehicle) + float(pending)
