"""Vehicles or crews that work on one study, each with its position, speed and budget."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from truvar._typing import Array
from truvar.domain.travel import Location
from truvar.exceptions import InvalidArgumentError
from truvar.validation import check_positive


@dataclass(frozen=True)
class Vehicle:
    """A vehicle or crew that measures.

    Attributes:
        start: Position before its first measurement, as that of `Cost`; default: that of the cost.
        speed: Travel costs are divided by it.
        budget: Total cost of its measurements that is not exceeded; default: none of its own.

    Raises:
        InvalidArgumentError: If speed or budget is not a number > 0.

    Example:
        >>> boats = {"boat-1": Vehicle(), "boat-2": Vehicle(speed=2, budget=300)}
        >>> Study(domain, goal, cost=cost, vehicles=boats)
    """

    start: Location | None = None
    speed: float = 1.0
    budget: float | None = None

    def __post_init__(self) -> None:
        check_positive(self.speed, "the speed of a vehicle", example="1.0")
        if self.budget is not None:
            check_positive(self.budget, "the budget of a vehicle", example="100")
        if self.start is not None and not isinstance(self.start, (Mapping, str)):
            raise InvalidArgumentError(
                f"the start of a vehicle must be a point such as {{'x': 0}} or the name of a "
                "place, got "
                f"{self.start!r}; give one of them"
            )


@dataclass(frozen=True)
class Departure:
    """Position of a vehicle before its next measurement, and what it can do from there.

    Attributes:
        position: Coordinates (d,) of the last position, or the name of a place; None: travel costs
            nothing.
        speed: Travel costs are divided by it.
        home: Where it must be able to return to; None: it need not.
        left: Cost that may still be spent, the return leg included; infinite without a limit.
    """

    position: Array | str | None = None
    speed: float = 1.0
    home: Array | str | None = None
    left: float = np.inf


Origin = Departure | Array | None
"""Origin of the next leg; an array is the position of a vehicle with speed 1 and no limits."""


def as_departure(origin: Origin) -> Departure:
    """Return an origin as a departure."""
    return origin if isinstance(origin, Departure) else Departure(origin)


def check_vehicles(vehicles: Any) -> dict[str, Vehicle]:
    """Return the vehicles of a study by name.

    Args:
        vehicles: Vehicles by name; a list of names, which stand for `Vehicle()`; or None for a
            single crew.

    Raises:
        InvalidArgumentError: If a name is empty or duplicated, or something is not a `Vehicle`.
    """
    if vehicles is None:
        return {}
    if isinstance(vehicles, (list, tuple)):
        if len(set(vehicles)) != len(vehicles):
            raise InvalidArgumentError(
                f"the names of vehicles must differ, got {vehicles!r}; rename one"
            )
        vehicles = {name: Vehicle() for name in vehicles}
    if not isinstance(vehicles, Mapping):
        raise InvalidArgumentError(
            "vehicles must be a dict of Vehicle(...) by name, or a list of names, got "
            f"{vehicles!r}; give one of them"
        )
    for name, vehicle in vehicles.items():
        if not isinstance(name, str) or not name.strip():
            raise InvalidArgumentError(
                f"a vehicle needs a name, got {name!r}; give a text such as 'boat-1'"
            )
        if not isinstance(vehicle, Vehicle):
            raise InvalidArgumentError(
                f"vehicle {name!r} must be a Vehicle(...), got {vehicle!r}; give one"
            )
    return dict(vehicles)
