"""Prior means that depend on the point: a column, values on the domain, or a function.

| symbol | here | shape |
|---|---|---|
| m(x) | `MeanFunction(points)`; `MeanFunction.values` on the domain | (q,), (n,) |
| y - m(x) | what kernel and constant describe | (t,) |
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from truvar._typing import Array, Index
from truvar.domain.domain import Domain
from truvar.domain.grid import SAME_POINT
from truvar.exceptions import InvalidDomainError, InvalidModelError, PointNotInDomainError
from truvar.messages import for_interface, format_point
from truvar.validation import check_array, check_callable, check_finite_array

MeanLike: TypeAlias = "float | str | ArrayLike | Callable[[Array], ArrayLike]"


def is_mean_function(mean: MeanLike | None) -> bool:
    """Return whether a prior mean depends on the point, instead of being a constant or unknown."""
    given: Any = mean
    return callable(given) or isinstance(given, (str, list, tuple)) or np.ndim(given) > 0


class MeanFunction:
    """The part of the prior mean that depends on the point.

    A column of the table and an array have values at the points of the domain only; a coordinate
    and a function have them everywhere.

    Args:
        domain: The domain.
        mean: Name of a column, one value per point of the domain, or a function of points (q, d)
            that returns (q,).

    Attributes:
        values: m at the points of the domain. (n,)

    Raises:
        InvalidModelError: If there is no such column, the number of values is not that of the
            points, or they are for a box, in which any point may be measured.
        InvalidArgumentError: If a value is not a finite number.
    """

    def __init__(self, domain: Domain, mean: MeanLike) -> None:
        check_callable(mean, "mean", "points")
        self._domain = domain
        self._function = _as_function(domain, mean)
        given: Any = mean
        self._source = f"column {mean!r}" if isinstance(mean, str) else "an array"
        if self._function is not None:
            given = self._function(domain.values(domain.points))
        elif domain.continuous and not isinstance(mean, str):
            raise InvalidModelError(
                "in a box any point may be measured, so its mean must be known everywhere, got an "
                "array; give a function of the points"
            )
        elif isinstance(mean, str):
            given = _column(domain, mean)
        elif check_array(mean, "mean").shape != (len(domain),):
            raise InvalidModelError(
                "mean as an array must have one value per point of the domain, shape "
                f"({len(domain)},), got shape {np.shape(given)}; give as many values as there are "
                "points"
            )
        self.values = check_finite_array(given, "mean", count=len(domain))

    def __call__(self, points: Array) -> Array:
        """Return m at points (q, d): (q,).

        Raises:
            PointNotInDomainError: If m is known on the domain only and a point is not one of its
                points.
        """
        if points is self._domain.points:
            return self.values
        if self._function is None:
            return self.values[self._rows(points)]
        return check_finite_array(
            self._function(self._domain.values(points)), "mean", count=len(points)
        )

    def _rows(self, points: Array) -> Index:
        """Return the row of the domain of each point."""
        return np.array([self._row(np.ascontiguousarray(x)) for x in points], dtype=int)

    def _row(self, x: Array) -> int:
        found = self._row_of.get(x.tobytes())
        if found is not None:
            return found
        nearest = self._domain.nearest(x)
        if (np.abs(self._domain.points[nearest] - x) <= SAME_POINT * self._domain.extent).all():
            return nearest
        remedy = for_interface(
            "give mean=... as a function of the points", problem="leave out [model] mean"
        )
        raise PointNotInDomainError(
            f"the mean is {self._source} with values at the points of the domain only, got "
            f"{format_point(self._domain.named(x))}; give a point of the domain, the nearest is "
            f"{format_point(self._domain.point(nearest))}, or {remedy}"
        )

    @cached_property
    def _row_of(self) -> dict[bytes, int]:
        """Rows of the domain by the bytes of their coordinates."""
        return {x.tobytes(): row for row, x in enumerate(np.ascontiguousarray(self._domain.points))}


def _column(domain: Domain, name: str) -> Array:
    """Return a column of the domain.

    Raises:
        InvalidModelError: If there is no such column, or it is not numeric.
    """
    try:
        return domain.column(name)
    except InvalidDomainError as error:
        raise InvalidModelError(
            f"mean must be a number or a column of numbers, got {name!r}: {error}"
        ) from None


def _as_function(domain: Domain, mean: Any) -> Callable[[Array], Any] | None:
    """Return a mean known everywhere as a function of the points; None for values on the domain."""
    if callable(mean):
        function: Callable[[Array], Any] = mean
        return function
    if isinstance(mean, str) and mean in domain.columns:
        domain.column(mean)  # raises if it has no numbers
        column = domain.columns.index(mean)
        return lambda points: np.asarray(points[:, column], dtype=float)
    return None
