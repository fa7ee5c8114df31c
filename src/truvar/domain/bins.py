"""Bins: the point of a domain that each position of a track belongs to.

A column that is crossed with the others, such as the depths of stations or an axis of a grid, is
divided halfway between its levels. The other columns, such as longitude and latitude of scattered
stations, are taken together: a position belongs to the nearest place, if it is near enough.

| symbol | here | shape |
|---|---|---|
| levels of a crossed column | `_Levels.values` | (L,) |
| different places in the other columns, scaled | `_Places.points` | (p, g) |
| row of the domain of every combination | `Bins._rows` | (p x L x ...,) |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Protocol

import numpy as np

from truvar._typing import Array, Index, Mask
from truvar.domain.domain import Domain
from truvar.domain.geographic import geographic_columns
from truvar.exceptions import InvalidArgumentError
from truvar.messages import unknown_name
from truvar.validation import check_nonnegative

# Share of the combinations with the other columns that must be points, for a column to be crossed.
_MIN_CROSSED_SHARE = 0.5
_SAMPLES_PER_GAP = 2  # positions of a leg within the distance of two neighbouring points
_MAX_SAMPLES = 96  # positions of a leg, at most
_ROUNDING = 1e-9  # relative excess of a distance that counts as rounding error


class _Part(Protocol):
    """Columns that are divided into bins together."""

    @property
    def columns(self) -> list[int]:
        """Their positions."""
        ...

    @property
    def count(self) -> int:
        """Number of bins."""
        ...

    def assign(self, positions: Array) -> Index:
        """Return the bin of each position (q, g); -1 if it is in none."""
        ...


@dataclass(frozen=True)
class _Levels:
    """A column that is crossed with the others.

    Attributes:
        columns: Its position.
        values: Its different values, ascending. (L,)
        within: Largest distance to a level; None: half the gap to the next one.
    """

    columns: list[int]
    values: Array
    within: float | None

    @property
    def count(self) -> int:
        """Number of levels."""
        return len(self.values)

    def assign(self, positions: Array) -> Index:
        """Return the nearest level of each position (q, 1); -1 outside."""
        x = positions[:, 0]
        levels = self.values
        if len(levels) == 1:
            nearest = np.zeros(len(x), dtype=np.intp)
        else:
            nearest = np.searchsorted((levels[1:] + levels[:-1]) / 2, x)
        if self.within is not None:
            inside = np.abs(x - levels[nearest]) <= self.within * (1 + _ROUNDING)
        elif len(levels) == 1:
            inside = np.ones(len(x), bool)
        else:
            gaps = np.diff(levels)
            slack = 1 + _ROUNDING
            low = levels[0] - slack * gaps[0] / 2
            high = levels[-1] + slack * gaps[-1] / 2
            inside = (x >= low) & (x <= high)
        return np.where(inside, nearest, -1)


@dataclass(frozen=True)
class _Places:
    """Columns whose values belong together, such as longitude and latitude of stations.

    Attributes:
        columns: Their positions.
        scale: Divisor of each column. (g,)
        points: The different places, scaled. (p, g)
        reach: Largest distance, scaled; None: `within` counts.
        within: Largest difference of each column. (g,)
    """

    columns: list[int]
    scale: Array
    points: Array
    reach: float | None
    within: Array

    @property
    def count(self) -> int:
        """Number of places."""
        return len(self.points)

    def assign(self, positions: Array) -> Index:
        """Return the nearest place of each position (q, g); -1 if it is too far away."""
        from scipy.spatial import cKDTree  # imports slowly

        scaled = positions / self.scale
        distance, nearest = cKDTree(self.points).query(scaled)
        if self.reach is not None:
            inside = distance <= self.reach * (1 + _ROUNDING)
        else:
            difference = np.abs(scaled - self.points[nearest]) * self.scale
            inside = np.all(difference <= self.within * (1 + _ROUNDING), axis=1)
        return np.where(inside, nearest, -1)


class Bins:
    """Bins of a domain with finitely many points.

    Args:
        domain: The domain.
        within: Largest distance of a position from its point, by column; default: half the
            distance of neighbouring points.

    Raises:
        InvalidArgumentError: If the domain is a box or has a column without numbers, or `within`
            has an unknown column or a distance that is not a number >= 0.
    """

    def __init__(self, domain: Domain, within: Mapping[str, float] | None = None) -> None:
        if domain.continuous:
            raise InvalidArgumentError(
                "a track needs a domain with finitely many points, got a box; give a grid or a "
                "table, or tell some of the values with tell_frame"
            )
        if domain.categorical:
            name = domain.columns[domain.categorical[0]]
            raise InvalidArgumentError(
                f"a track needs columns of numbers, but {name!r} has none; tell the values with "
                "tell_frame"
            )
        reach = dict(within or {})
        for name, distance in reach.items():
            if name not in domain.columns:
                raise InvalidArgumentError(unknown_name("column", name, domain.columns))
            check_nonnegative(distance, f"within of {name!r}")
        self._domain = domain
        self._parts = _parts(domain, reach)
        self._shape = [part.count for part in self._parts]
        codes = self._codes([_own_bins(domain, part) for part in self._parts])
        self._rows = np.full(prod(self._shape), -1, dtype=np.intp)
        self._rows[codes[::-1]] = np.arange(len(domain))[::-1]  # the first of equal points

    def __len__(self) -> int:
        """Return the number of points of the domain."""
        return len(self._domain)

    def assign(self, positions: Array) -> Index:
        """Return the row of the domain that each position (q, d) belongs to; -1: to none."""
        bins = [part.assign(positions[:, part.columns]) for part in self._parts]
        inside = np.all([each >= 0 for each in bins], axis=0)
        codes = self._codes([np.maximum(each, 0) for each in bins])
        return np.where(inside, self._rows[codes], -1)

    def passed(self, origin: Array, destinations: Array) -> Index:
        """Return the rows that straight lines pass, in order, -1 where there is none.

        Args:
            origin: Position at which they begin: one, (d,), or one each, (q, d).
            destinations: Where they end. (q, d)

        Returns:
            Rows at equal steps, the origin excluded and the destination included. (q, samples)
        """
        origins = np.broadcast_to(origin, destinations.shape)
        steps = (np.abs(destinations - origins) / self.gaps).max(initial=0.0)
        samples = int(np.clip(np.ceil(_SAMPLES_PER_GAP * steps), 1, _MAX_SAMPLES))
        shares = np.arange(1, samples + 1) / samples
        legs = (destinations - origins)[:, None, :]
        positions = origins[:, None, :] + shares[None, :, None] * legs
        rows = self.assign(positions.reshape(-1, destinations.shape[1]))
        return rows.reshape(len(destinations), samples)

    @cached_property
    def gaps(self) -> Array:
        """Distance of neighbouring points along each column: (d,)."""
        return np.array([self._gap(k) for k in range(len(self._domain.columns))])

    def _codes(self, bins: list[Index]) -> Index:
        return np.asarray(np.ravel_multi_index(bins, self._shape))

    def _gap(self, k: int) -> float:
        """Return the distance of neighbouring points along a column."""
        part = next(part for part in self._parts if k in part.columns)
        if isinstance(part, _Places):
            reach = part.within if part.reach is None else 2 * part.reach * part.scale
            gap = float(np.broadcast_to(reach, len(part.columns))[part.columns.index(k)])
            return gap if 0 < gap < np.inf else float(self._domain.extent[k])
        levels = self._domain.points[:, k]
        gaps = np.diff(np.unique(levels))
        return float(np.median(gaps)) if len(gaps) else float(self._domain.extent[k])


def _parts(domain: Domain, within: Mapping[str, float]) -> list[_Part]:
    """Return the crossed columns, each separately, and the others together."""
    points = domain.points
    n_points = len(np.unique(points, axis=0))
    parts: list[_Part] = []
    others: list[int] = []
    for k, name in enumerate(domain.columns):
        levels = np.unique(points[:, k])
        n_others = len(np.unique(np.delete(points, k, axis=1), axis=0))
        if n_points >= _MIN_CROSSED_SHARE * len(levels) * n_others:
            parts.append(_Levels([k], levels, within.get(name)))
        else:
            others.append(k)
    if others:
        parts.append(_places(domain, others, within))
    return parts


def _places(domain: Domain, columns: list[int], within: Mapping[str, float]) -> _Places:
    from scipy.spatial import cKDTree  # imports slowly

    names = [domain.columns[k] for k in columns]
    given = np.array([within.get(name, np.inf) for name in names])
    places = np.unique(domain.points[:, columns], axis=0)
    scale = _scale(domain, columns)
    scaled = places / scale
    distance, _ = cKDTree(scaled).query(scaled, k=2)
    reach = float(np.median(distance[:, 1])) / 2
    if not np.isfinite(given).any():
        return _Places(columns, scale, scaled, reach, given)
    given = np.where(np.isfinite(given), given, reach * scale)
    scale = np.where(given > 0, given, scale)
    return _Places(columns, scale, places / scale, None, given)


def _scale(domain: Domain, columns: list[int]) -> Array:
    """Return what columns are divided by: degrees by kilometres, others by their extents."""
    scale = domain.extent[columns].copy()
    geographic = geographic_columns(domain)
    if geographic is None or geographic.crs is not None:
        return scale
    pair = [domain.columns.index(geographic.longitude), domain.columns.index(geographic.latitude)]
    if not set(pair) <= set(columns):
        return scale
    east, north = (columns.index(k) for k in pair)
    middle = np.radians(domain.points[:, pair[1]].mean())
    # One unit is as long in both directions.
    unit = max(scale[north], scale[east] * np.cos(middle))
    scale[north] = unit
    scale[east] = unit / max(np.cos(middle), 1e-6)
    return scale


def _own_bins(domain: Domain, part: _Part) -> Index:
    """Return the bin of every point of the domain, whatever the largest distance."""
    own = domain.points[:, part.columns]
    if isinstance(part, _Levels):
        return np.searchsorted(part.values, own[:, 0])
    _, inverse = np.unique(own, axis=0, return_inverse=True)
    return np.asarray(inverse).reshape(-1)


def first_of_each(rows: Index) -> Mask:
    """Return which entries of each row of (q, s) are not there already further left."""
    order = np.argsort(rows, axis=1, kind="stable")
    ordered = np.take_along_axis(rows, order, axis=1)
    is_first = np.ones(rows.shape, bool)
    is_first[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    found = np.empty(rows.shape, bool)
    np.put_along_axis(found, order, is_first, axis=1)
    return found
