"""Grids: all combinations of the values of some axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from truvar._typing import Array
from truvar.domain._recognition import grid_parameter
from truvar.domain.parameters import complete_parameters
from truvar.exceptions import InvalidDomainError
from truvar.messages import for_interface
from truvar.validation import check_names

# Two points are equal if no coordinate differs by more than this fraction of its extent.
SAME_POINT = 1e-9


def grid_fields(axes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of the `Domain` of a grid.

    Args:
        axes: Values or parameter of each axis, by the name of its column.

    Raises:
        InvalidDomainError: If there are no axes, or one is empty or has values that are not finite
            or occur twice.
    """
    if not axes:
        example = for_interface(
            "Domain.grid(x=np.linspace(0, 1, 50))", problem="grid = {x = [0, 1, 50]}"
        )
        raise InvalidDomainError(f"a grid needs at least one axis, got none; give one: {example}")
    check_names(axes, "column")
    given = {name: grid_parameter(name, axis) for name, axis in axes.items()}
    values = tuple(
        _check_axis(name, axis) if parameter is None else parameter.grid_levels(name)
        for (name, parameter), axis in zip(given.items(), axes.values(), strict=True)
    )
    bounds = np.array([(axis.min(), axis.max()) for axis in values])
    parameters = complete_parameters(list(given.values()), bounds)
    return {
        "columns": tuple(axes),
        "points": mesh(values),
        "bounds": bounds,
        "axes": values,
        "parameters": parameters,
    }


def mesh(axes: Sequence[Array]) -> Array:
    """Return all combinations of the values of the axes, shape (n, d), the first axis slowest.

    Raises:
        InvalidDomainError: If there are too many of them for the memory.
    """
    try:
        return np.stack([m.ravel() for m in np.meshgrid(*axes, indexing="ij")], axis=1)
    except (MemoryError, ValueError) as error:  # ValueError: too many for an array of any size
        box = for_interface("Domain.box(x=(0, 1))", problem="box = {x = [0, 1]}")
        raise InvalidDomainError(
            f"a grid must fit into memory, got {prod(map(len, axes)):,} points; give fewer values "
            f"per axis, or a box: {box}"
        ) from error


def _check_axis(name: str, axis: Any) -> Array:
    """Return the values of an axis of a grid, or raise."""
    try:
        values = np.atleast_1d(np.asarray(axis, dtype=float))
    except (TypeError, ValueError):
        raise InvalidDomainError(
            f"axis {name!r} must be a list of numbers, got {axis!r}; give one such as "
            "np.linspace(0, 1, 50)"
        ) from None
    if values.ndim != 1 or len(values) == 0:
        raise InvalidDomainError(
            f"axis {name!r} must be a list of at least one number, got shape {values.shape}; "
            "give one such as np.linspace(0, 1, 50)"
        )
    if not np.isfinite(values).all():
        bad = values[~np.isfinite(values)][0]
        raise InvalidDomainError(
            f"the values of axis {name!r} must be finite numbers, got {bad}; leave it out"
        )
    ordered = np.sort(values)
    # The scale is the smaller of range and magnitude: on an axis such as 1e-12, 1e-11, ..., 1 all
    # values differ.
    magnitude = np.maximum(np.abs(ordered[1:]), np.abs(ordered[:-1]))
    scale = np.minimum(ordered[-1] - ordered[0], magnitude)
    same = np.diff(ordered) <= SAME_POINT * scale
    if same.any():
        duplicate = ordered[1:][same][0]
        raise InvalidDomainError(
            f"the values of axis {name!r} must differ, but {duplicate} is duplicated; drop one"
        )
    return values
