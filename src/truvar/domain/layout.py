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
TABLE_TOLERANCE = 1e-12
MIN_FILLED_SHARE = 0.5  # share of the cells that must have a point for a table to count as a grid


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
        found = _even_axis(column, int(len(points) / MIN_FILLED_SHARE))
        if found is None:
            return None
        axes.append(found[0])
        places.append(found[1])
    shape = tuple(len(axis) for axis in axes)
    if prod(shape) * MIN_FILLED_SHARE > len(points):
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
    if np.abs(axis[where] - values).max() > TABLE_TOLERANCE * extent:
        return None
    if len(np.unique(where)) < len(values):
        return None
    axis[where] = values
    return axis, where[place]
