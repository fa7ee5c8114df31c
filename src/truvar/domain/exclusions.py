"""Places that cannot be measured: excluded by the user, or where a measurement failed.

A place is a point, a region or some rows of the domain. Exclusions and permissions are applied in
the order in which they were made: the last one that a point lies in decides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from truvar._typing import Array, Mask
from truvar.domain.constraints import Constraint, describe_constraint
from truvar.domain.domain import Domain
from truvar.messages import format_coordinates

# Half-width of what is excluded around a point of a box, in extents: the point alone would exclude
# nothing, as its neighbour is as good.
_NEIGHBOURHOOD_EXTENTS = 0.01


@dataclass(frozen=True)
class Place:
    """Some points of a domain. Exactly one attribute is given; none: the whole domain.

    Attributes:
        point: Coordinates by column name. In a box the points around it belong to it.
        rows: Rows of a finite domain.
        region: Condition that the points satisfy.
    """

    point: Mapping[str, Any] | None = None
    rows: tuple[int, ...] | None = None
    region: Constraint | None = None

    def contains(self, domain: Domain, points: Array) -> Mask:
        """Return which points (q, d) belong to the place."""
        if self.point is not None:
            reach = _NEIGHBOURHOOD_EXTENTS * domain.extent if domain.continuous else domain.slack
            return np.asarray((np.abs(points - domain.array(self.point)) <= reach).all(axis=1))
        if self.region is not None:
            return domain.satisfies([self.region], points)
        if self.rows is None:
            return np.ones(len(points), bool)
        result = np.zeros(len(points), bool)
        for row in self.rows:
            result |= (np.abs(points - domain.points[row]) <= domain.slack).all(axis=1)
        return result

    def on_domain(self, domain: Domain) -> Mask:
        """Return which points of the domain belong to the place, (n,)."""
        if self.rows is None:
            return self.contains(domain, domain.points)
        result = np.zeros(len(domain), bool)
        result[list(self.rows)] = True
        return result

    def describe(self) -> str:
        """Return the place in words."""
        if self.point is not None:
            return format_coordinates(self.point)
        if self.region is not None:
            return describe_constraint(self.region)
        if self.rows is None:
            return "everywhere"
        return f"{len(self.rows)} {'point' if len(self.rows) == 1 else 'points'}"

    def to_details(self) -> dict[str, Any]:
        """Return the attribute that is given, as an event holds it."""
        if self.rows is not None:
            return {"rows": list(self.rows)}
        if self.point is not None:
            return {"point": dict(self.point)}
        return {} if self.region is None else {"region": self.region}

    @staticmethod
    def from_details(details: Mapping[str, Any]) -> Place:
        """Return the place that an event holds."""
        rows = details.get("rows")
        return Place(
            details.get("point"), None if rows is None else tuple(rows), details.get("region")
        )


@dataclass(frozen=True)
class Exclusion:
    """An exclusion of a place, or the permission to measure there again.

    Attributes:
        place: The place.
        allowed: Whether it is a permission.
        reason: Why, in the user's words.
    """

    place: Place
    allowed: bool = False
    reason: str | None = None


def excluded_points(
    exclusions: Sequence[Exclusion], domain: Domain, points: Array | None = None
) -> Mask:
    """Return which points are excluded.

    Args:
        exclusions: Exclusions and permissions, in order.
        domain: The domain.
        points: Coordinates (q, d); None: the points of the domain.
    """
    result = np.zeros(len(domain) if points is None else len(points), bool)
    for exclusion in exclusions:
        place = exclusion.place
        inside = place.on_domain(domain) if points is None else place.contains(domain, points)
        result[inside] = not exclusion.allowed
    return result
