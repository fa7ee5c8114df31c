"""Layout of the points of a domain on a grid, also where they were given as a table.

| symbol | here | shape |
|---|---|---|
| coordinates along each axis | `GridLayout.axes` | (n_k,) each |
| cell of each point, the first axis slowest | `GridLayout.cells` | (n,) |
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from truvar._typing import Array, Index

# share of its extent by which a coordinate of a table may be off an evenly spaced axis
_TABLE_TOLERANCE = 1e-12
_CURVE_BITS = 60  # of a place on a curve through a domain
_MIN_FILLED_SHARE = 0.5  # share of the cells that must have a point for a table to count as a grid


@dataclass(frozen=True, eq=False)
class GridLayout:
    """Points on a grid, in any order; some cells may be empty.

    Attributes:
        axes: Coordinates along every axis.
        cells: Cell of each point; None: the points are the cells, in order. (n,)
    """

    axes: tuple[Array, ...]
    cells: Index | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of cells along every axis."""
        return tuple(len(axis) for axis in self.axes)

    def spread(self, values: Array) -> Array:
        """Return values of the points (n,) by cell, 0 in empty cells: (cells,)."""
        if self.cells is None:
            return values
        by_cell = np.zeros(prod(self.shape))
        by_cell[self.cells] = values
        return by_cell

    def gather(self, values: Array) -> Array:
        """Return values by cell (cells,) for every point: (n,)."""
        return values if self.cells is None else values[self.cells]

    def indices(self, points: Index) -> tuple[Index, ...]:
        """Return where some points, given by their rows, lie along every axis."""
        cells = points if self.cells is None else self.cells[points]
        return tuple(np.unravel_index(cells, self.shape))


def grid_layout(points: Array) -> GridLayout | None:
    """Return how points (n, d) lie on an evenly spaced grid; None if they do not.

    At least half of the cells must have a point, so that work on the grid pays.
    """
    axes: list[Array] = []
    places: list[Index] = []
    for column in points.T:
        found = _even_axis(column, int(len(points) / _MIN_FILLED_SHARE))
        if found is None:
            return None
        axes.append(found[0])
        places.append(found[1])
    shape = tuple(len(axis) for axis in axes)
    if prod(shape) * _MIN_FILLED_SHARE > len(points):
        return None
    cells = np.ravel_multi_index(tuple(places), shape)
    if len(np.unique(cells)) < len(cells):
        return None
    return GridLayout(tuple(axes), cells)


def _even_axis(column: Array, most: int) -> tuple[Array, Index] | None:
    """Return the evenly spaced axis that a column lies on, and where; None if there is none.

    Args:
        column: Coordinates. (n,)
        most: Length of the axis, at most.
    """
    values, place = np.unique(column, return_inverse=True)
    if len(values) == 1:
        return values, place
    extent = float(values[-1] - values[0])
    steps = round(extent / float(np.diff(values).min()))
    if steps >= most:
        return None
    axis = values[0] + extent * np.arange(steps + 1) / steps
    where = np.rint((values - values[0]) * (steps / extent)).astype(np.intp)
    if np.abs(axis[where] - values).max() > _TABLE_TOLERANCE * extent:
        return None
    if len(np.unique(where)) < len(values):
        return None
    axis[where] = values
    return axis, where[place]


def curve_rank(points: Array) -> Index:
    """Return the rank of points (n, d) along a Z-order curve, whose neighbours are mostly near: (n,)."""
    low = points.min(axis=0)
    width = points.max(axis=0) - low
    bits = max(1, min(16, _CURVE_BITS // points.shape[1]))
    scaled = (points - low) / np.where(width > 0, width, 1.0)
    place = np.minimum((scaled * (1 << bits)).astype(np.uint64), np.uint64((1 << bits) - 1))
    key = np.zeros(len(points), np.uint64)
    for bit in range(bits):
        for k in range(min(points.shape[1], _CURVE_BITS)):
            shift = np.uint64(bit * min(points.shape[1], _CURVE_BITS) + k)
            key |= ((place[:, k] >> np.uint64(bit)) & np.uint64(1)) << shift
    rank = np.empty(len(points), np.intp)
    rank[np.argsort(key, kind="stable")] = np.arange(len(points))
    return rank
