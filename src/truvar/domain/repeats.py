"""Limits of the measurements of a place, and the places that have reached them.

Such a place is *closed*: it is not chosen again, but it stays in the domain, and statements are
made about it. An excluded place, in contrast, is no longer what a study is about.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from truvar._typing import Array, Index, Mask
from truvar.domain.action import Action
from truvar.domain.domain import Domain
from truvar.exceptions import InvalidArgumentError
from truvar.messages import for_interface

Repeats = bool | int | None
"""Whether places may be measured again: a Boolean, or the number of measurements of a place."""

_BOX_RESOLUTION = 1e-3  # share of a column's extent within which points of a box are one place


def check_repeats(repeats: object) -> Repeats:
    """Return `repeats` as a study keeps it: None, a Boolean, or a maximum of at least 2.

    Raises:
        InvalidArgumentError: If it is anything else.
    """
    if repeats is None or isinstance(repeats, (bool, np.bool_)):
        return None if repeats is None else bool(repeats)
    if not isinstance(repeats, (int, np.integer)) or repeats < 1:
        expected = for_interface("True, False", problem="true, false")
        raise InvalidArgumentError(
            f"repeats must be {expected} or a number of measurements >= 1, got {repeats!r}; give "
            f"{for_interface('False', problem='false')} to measure every place once, or a maximum "
            "such as 3"
        )
    return False if repeats == 1 else int(repeats)


def max_measurements(repeats: Repeats) -> int | None:
    """Return how often a place may be measured; None: without a limit."""
    if repeats is None or repeats is True:
        return None
    return 1 if repeats is False else repeats


@dataclass(frozen=True, eq=False)
class ClosedPlaces:
    """The places that were measured, or are pending, as often as a study allows.

    A place of a finite domain is a row of it. In a box two points are one place if no column
    differs by more than `_BOX_RESOLUTION` of its extent. Tasks are counted separately: another
    quantity may still be measured there.

    Attributes:
        domain: The domain.
        limit: How often a place may be measured.
        sites: Rows of the model's grid that were measured or are pending, one for each time.
        points: Coordinates of the measurements, with the task's index if there are tasks. (q, d')
        ids: Ids of the measurements.
    """

    domain: Domain
    limit: int
    sites: Index
    points: Array
    ids: tuple[int, ...]

    @staticmethod
    def of(domain: Domain, limit: int, actions: Sequence[Action]) -> ClosedPlaces:
        """Return the places that these measurements close."""
        sites = [action.site for action in actions if action.site is not None]
        points = [action.point for action in actions]
        ids = tuple(action.id for action in actions)
        return ClosedPlaces(domain, limit, np.array(sites, dtype=int), np.array(points), ids)

    def on_grid(self, grid: Array) -> Mask:
        """Return which rows of the model's grid (m, d') are closed: (m,)."""
        if self.domain.continuous:
            return self.at(grid)
        return np.bincount(self.sites, minlength=len(grid)) >= self.limit

    def at(self, points: Array) -> Mask:
        """Return which points (q, d') are closed: (q,)."""
        tolerance = self._tolerance(points.shape[1])
        counts = np.zeros(len(points), dtype=int)
        for measured in self.points:
            counts += (np.abs(points - measured) <= tolerance).all(axis=1)
        return counts >= self.limit

    def _tolerance(self, dimension: int) -> Array:
        """Return the largest difference by column between points of one place: (d',)."""
        tolerance = np.zeros(dimension)  # indices of tasks are equal or not
        tolerance[: len(self.domain.columns)] = self.domain.slack
        if self.domain.continuous:
            for k, parameter in enumerate(self.domain.parameters):
                if parameter.n_levels is None:
                    tolerance[k] = _BOX_RESOLUTION * self.domain.extent[k]
        return tolerance
