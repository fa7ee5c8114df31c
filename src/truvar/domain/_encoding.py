"""Conversion between the user's values and the coordinates of the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from truvar._typing import Array
from truvar.domain.parameters import Parameter, is_plain_range
from truvar.exceptions import InvalidArgumentError, InvalidDomainError
from truvar.messages import format_point, unknown_name


class Encoding:
    """Named columns whose types encode the user's values as coordinates.

    Attributes:
        columns: Names of the columns.
        bounds: Smallest and largest coordinate of each column, shape (d, 2).
        parameters: Type of each column.
    """

    columns: tuple[str, ...]
    bounds: Array
    parameters: tuple[Parameter, ...]

    @cached_property
    def is_plain(self) -> bool:
        """Whether all columns are plain numbers, so that coordinates are the user's values."""
        return all(is_plain_range(parameter) for parameter in self.parameters)

    @cached_property
    def categorical(self) -> tuple[int, ...]:
        """Positions of the columns whose values are only equal or different."""
        return tuple(k for k, parameter in enumerate(self.parameters) if parameter.categorical)

    @cached_property
    def discrete(self) -> tuple[int, ...]:
        """Positions of the columns of a box that have finitely many values."""
        return tuple(
            k for k, parameter in enumerate(self.parameters) if parameter.n_levels is not None
        )

    def snap(self, points: Array) -> Array:
        """Return the nearest points (q, d) inside a box, with values that its parameters have."""
        return np.column_stack(
            [parameter.snap(points[:, k]) for k, parameter in enumerate(self.parameters)]
        )

    def values(self, points: Array) -> Any:
        """Return points (q, d) as the user's values: floats, or objects with text or dates."""
        decoded = [
            parameter.decode_column(points[:, k]) for k, parameter in enumerate(self.parameters)
        ]
        if all(parameter.numeric for parameter in self.parameters):
            return np.column_stack([np.asarray(column, dtype=float) for column in decoded])
        return np.column_stack([np.asarray(column, dtype=object) for column in decoded])

    def numbers(self, points: Array) -> Array:
        """Return points (q, d) as the user's numbers, and coordinates for text and dates."""
        numbers = np.array(points, dtype=float)
        for k, parameter in enumerate(self.parameters):
            if parameter.numeric:
                numbers[:, k] = parameter.decode_column(points[:, k])
        return numbers

    def named(self, x: ArrayLike) -> dict[str, Any]:
        """Return coordinates of shape (d,) as {column: value}."""
        coordinates = np.asarray(x, dtype=float).tolist()
        decoded = [
            each.decode(value) for each, value in zip(self.parameters, coordinates, strict=True)
        ]
        return dict(zip(self.columns, decoded, strict=True))

    def encode(self, points: Any) -> Array:
        """Return points as coordinates (q, d).

        Args:
            points: An array of the user's values (q, d) or one point (d,), a list of points by
                column, or a DataFrame with the columns.

        Raises:
            InvalidArgumentError: If the shape is wrong or a value has the wrong type.
            PointNotInDomainError: If a value is not one of its parameter.
        """
        d = len(self.columns)
        if hasattr(points, "to_dict") and hasattr(points, "columns"):
            points = points.to_dict("records")
        if isinstance(points, Mapping):
            points = [points]
        if (
            isinstance(points, Sequence)
            and points
            and all(isinstance(point, Mapping) for point in points)
        ):
            return np.stack(
                [
                    self.array({name: point[name] for name in self.columns if name in point})
                    for point in points
                ]
            )
        array = np.atleast_2d(np.asarray(points, dtype=float if self.is_plain else object))
        if array.ndim != 2 or array.shape[1] != d:
            raise InvalidArgumentError(
                f"points must have shape (q, {d}), got {array.shape}; give one row per point"
            )
        if self.is_plain:
            return array
        return np.stack([self.array(dict(zip(self.columns, row, strict=True))) for row in array])

    def parse(self, name: str, text: str) -> Any:
        """Parse a value of a column from a text of a file, a form or the command line."""
        return self.parameters[self.columns.index(name)].parse(text, name)

    def array(self, point: Mapping[str, Any]) -> Array:
        """Return a point, given as {column: value}, as coordinates of shape (d,).

        Raises:
            InvalidArgumentError: If a column is unknown or missing, or a coordinate is not a finite
                number.
        """
        for name in point:
            if name not in self.columns:
                raise InvalidArgumentError(
                    f"the point {format_point(point)} has an "
                    f"{unknown_name('column', name, self.columns)}"
                )
        x = np.empty(len(self.columns))
        for k, name in enumerate(self.columns):
            if name not in point:
                raise InvalidArgumentError(
                    f"a point needs the columns {', '.join(self.columns)}, but {name!r} is missing "
                    "in "
                    f"{format_point(point)}; give it"
                )
            x[k] = self.parameters[k].encode(point[name], name)
        return x


def check_columns(columns: tuple[str, ...]) -> None:
    """Check the names of the columns of a domain.

    Raises:
        InvalidDomainError: If there are none, or one is duplicated.
    """
    if len(columns) == 0:
        raise InvalidDomainError(
            "a domain needs at least one column of coordinates, got none; name some"
        )
    for name in columns:
        if columns.count(name) > 1:
            raise InvalidDomainError(
                f"columns must have different names, but {name!r} is duplicated; drop or rename one"
            )
