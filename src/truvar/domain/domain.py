"""The domain D: named columns, finitely many points, and how a point given by name is found among them.

| paper | here | shape |
|---|---|---|
| D | `Domain.points` | (n, d), in the user's units |
| compact domain | `Domain.box`: `points` are its representers, any point inside may be chosen | (n, d) |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from truvar._typing import Array
from truvar.domain.geo import from_geopandas, from_xarray, is_geographic_table
from truvar.exceptions import TruvarError
from truvar.messages import for_interface, format_point
from truvar.validation import check_finite, check_integer

if TYPE_CHECKING:
    import pandas as pd

SAME_POINT = 1e-9  # two points are one if no coordinate differs by more than this share of its extent


@dataclass(frozen=True, eq=False)
class Domain:
    """A finite set of candidate points, or a box with representer points. Use `grid`, `table` or `box`."""

    columns: tuple[str, ...]
    points: Array  # (n, d)
    bounds: Array  # (d, 2): the hull of the points, or the box
    axes: tuple[Array, ...] | None = None  # of a grid, first axis slowest in `points`
    frame: pd.DataFrame | None = None  # of a table: every column, also those that are no coordinates
    continuous: bool = False

    def __post_init__(self) -> None:
        _check_columns(self.columns)
        if len(self.points) == 0:
            raise TruvarError("a domain needs at least one point, but this one is empty; give it some points")
        bad = ~np.isfinite(self.points)
        if bad.any():
            row, column = np.argwhere(bad)[0]
            raise TruvarError(
                f"every coordinate must be a finite number, but row {row}, column {self.columns[column]!r} is "
                f"{self.points[row, column]}; drop or mend that row"
            )
        self.points.setflags(write=False)

    # -- ways to make one ------------------------------------------------------------------------------------------

    @classmethod
    def grid(cls, /, **axes: ArrayLike) -> Domain:
        """Every combination of the values of the named axes: `Domain.grid(x=np.linspace(0, 1, 50), y=[1, 2, 3])`."""
        if not axes:
            example = for_interface("Domain.grid(x=np.linspace(0, 1, 50))", problem="grid = {x = [0, 1, 50]}")
            raise TruvarError(f"a grid needs at least one axis, but there was none; give one: {example}")
        values = tuple(_axis(name, axis) for name, axis in axes.items())
        return cls(tuple(axes), mesh(values), _hull(values), axes=values)

    @classmethod
    def table(cls, frame: pd.DataFrame | str | Path, columns: Sequence[str] | None = None) -> Domain:
        """The rows of a table (a DataFrame or the path of a CSV file); `columns` are its coordinates (default: all).

        Of a GeoDataFrame of points the default is where they are: x and y, or lon and lat if they are in degrees.
        """
        where: tuple[str, ...] | None = None
        if is_geographic_table(frame):
            frame, where = from_geopandas(frame)
        frame = as_table(frame)
        if isinstance(columns, str):
            raise TruvarError(f"columns must be a list of names, got {columns!r}; give [{columns!r}]")
        names = (where or tuple(frame.columns)) if columns is None else tuple(columns)
        points = np.empty((len(frame), len(names)))
        for k, name in enumerate(names):
            points[:, k] = number_column(frame, name)
        if len(points) == 0:
            raise TruvarError("the table has no rows, so there is nothing to measure; give it at least one")
        domain = cls(names, points, _bounds(points), frame=frame.reset_index(drop=True))
        duplicate = _first_duplicate(points)
        if duplicate is not None:
            first, second = duplicate
            raise TruvarError(
                f"every row must be a different point, but rows {first} and {second} are both "
                f"{format_point(domain.point(first))}; drop one of them (repeated measurements are told one by one, "
                "the point stands here once)"
            )
        return domain

    @classmethod
    def from_xarray(cls, data: Any) -> Domain:
        """The grid of an xarray DataArray or Dataset, whose values become columns to take noise, cost or truth from.
        Points without a value, such as land in a map of the sea, are left out."""
        axes, frame = from_xarray(data)
        known = frame.notna().all(axis=1)
        if not known.all():
            return cls.table(frame[known], columns=list(axes))
        domain = cls.grid(**axes)
        return domain if frame.empty else replace(domain, frame=frame)

    @classmethod
    def box(cls, /, *, representers: int = 2500, seed: int = 0, **intervals: tuple[float, float]) -> Domain:
        """A continuous box: `Domain.box(x=(0, 1), y=(0, 1))`. Sums over it run over `representers` points:
        a grid in one and two dimensions, scrambled Sobol points above."""
        if not intervals:
            example = for_interface("Domain.box(x=(0, 1))", problem="box = {x = [0, 1]}")
            raise TruvarError(f"a box needs at least one interval, but there was none; give one: {example}")
        representers = check_integer(representers, "the number of representers of a box", minimum=2)
        bounds = np.array([_interval(name, interval) for name, interval in intervals.items()])
        d = len(bounds)
        if d > 2:
            from scipy.stats import qmc

            sobol = qmc.Sobol(d, scramble=True, rng=np.random.default_rng(seed))
            unit = sobol.random_base2(int(np.ceil(np.log2(representers))))[:representers]
            points = bounds[:, 0] + unit * (bounds[:, 1] - bounds[:, 0])
            return cls(tuple(intervals), points, bounds, continuous=True)
        side = max(2, round(representers ** (1 / d)))
        axes = tuple(np.linspace(low, high, side) for low, high in bounds)
        return cls(tuple(intervals), mesh(axes), bounds, axes=axes, continuous=True)

    # -- points by name --------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.points)

    @property
    def shape(self) -> tuple[int, ...] | None:
        """The lengths of the axes of a grid."""
        return None if self.axes is None else tuple(len(axis) for axis in self.axes)

    @cached_property
    def extent(self) -> Array:
        """The width of the domain along each column; 1 where it has none."""
        width = self.bounds[:, 1] - self.bounds[:, 0]
        return np.where(width > 0, width, 1.0)

    def point(self, index: int) -> dict[str, float]:
        """The point with that index, as {column: value}."""
        return self.named(self.points[index])

    def named(self, x: ArrayLike) -> dict[str, float]:
        """The coordinates (d,) as {column: value}."""
        return dict(zip(self.columns, np.asarray(x, dtype=float).tolist(), strict=True))

    def array(self, point: Mapping[str, float]) -> Array:
        """{column: value} as coordinates (d,)."""
        unknown = [name for name in point if name not in self.columns]
        missing = [name for name in self.columns if name not in point]
        if unknown or missing:
            wrong = f"{unknown[0]!r} is none of them" if unknown else f"{missing[0]!r} is missing"
            raise TruvarError(
                f"a point must have the columns {', '.join(self.columns)}, but {wrong} in {format_point(point)}; "
                "give every column by its name and nothing else"
            )
        x = np.empty(len(self.columns))
        for k, name in enumerate(self.columns):
            x[k] = check_finite(point[name], f"column {name!r} of the point")
        return x

    def nearest(self, x: Array) -> int:
        """The index of the point nearest to x, each column measured in its extent."""
        return int(np.argmin((((self.points - x) / self.extent) ** 2).sum(axis=1)))

    def locate(self, point: Mapping[str, float]) -> tuple[int | None, Array]:
        """Where a told point lies: its index (None between the points of a grid or box) and its coordinates.

        A grid and a box take any point inside their bounds, since the model can be told of it; a table only its rows.
        """
        x = self.array(point)
        index = self.nearest(x)
        if (np.abs(self.points[index] - x) <= SAME_POINT * self.extent).all():
            return index, self.points[index]
        slack = SAME_POINT * self.extent
        inside = bool(((x >= self.bounds[:, 0] - slack) & (x <= self.bounds[:, 1] + slack)).all())
        if inside and (self.axes is not None or self.continuous):
            return None, x
        raise TruvarError(
            f"{format_point(point)} is not in the domain; the nearest point of it is {format_point(self.point(index))} "
            f"(index {index}): give that one if it is the one you mean"
        )

    def column(self, name: str) -> Array:
        """A column of numbers by name: a coordinate, or any other column of the table."""
        if name in self.columns:
            return self.points[:, self.columns.index(name)]
        if self.frame is None:
            raise TruvarError(f"the domain has no column {name!r}; it has {', '.join(self.columns)}")
        return number_column(self.frame, name)

    def to_frame(self) -> pd.DataFrame:
        """The coordinates as a DataFrame."""
        import pandas as pd

        return pd.DataFrame(self.points, columns=list(self.columns))


# -- checks of what users give ---------------------------------------------------------------------------------------


def number_column(frame: pd.DataFrame, name: str) -> Array:
    """The column of a table as floats, or a message that names the column and the row."""
    if name not in frame.columns:
        raise TruvarError(f"the table has no column {name!r}; it has {', '.join(map(str, frame.columns))}")
    if list(frame.columns).count(name) > 1:
        raise TruvarError(f"every column of the table must have its own name, but {name!r} stands twice; rename one")
    try:
        return np.ascontiguousarray(frame[name].to_numpy(dtype=float))
    except (TypeError, ValueError):
        import pandas as pd

        values = pd.to_numeric(frame[name], errors="coerce")
        row = int(np.flatnonzero(values.isna())[0])
        raise TruvarError(
            f"column {name!r} must hold numbers, but row {row} is {frame[name].iloc[row]!r}; mend it or leave it out"
        ) from None


def as_table(table: Any) -> pd.DataFrame:
    """A DataFrame as it is, the path of a CSV file read."""
    import pandas as pd

    if isinstance(table, pd.DataFrame):
        return table
    if not isinstance(table, (str, Path)):
        raise TruvarError(
            f"a table must be a DataFrame or the path of a CSV file, got {table!r}; "
            "wrap arrays as pd.DataFrame(array, columns=[...])"
        )
    return read_csv(table)


def read_csv(path: str | Path) -> pd.DataFrame:
    """A CSV file as a DataFrame, or a message that names the file."""
    import pandas as pd

    try:
        return pd.read_csv(path)
    except FileNotFoundError:
        raise TruvarError(f"there is no file {path}; check the path") from None
    except OSError as error:
        raise TruvarError(f"{path} cannot be read ({error.strerror}); give the path of a CSV file") from None
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as error:
        raise TruvarError(f"{path} is not a readable CSV file ({error}); check its contents") from None


def _check_columns(columns: tuple[str, ...]) -> None:
    if len(columns) == 0:
        raise TruvarError("a domain needs at least one column of coordinates, but there is none; name some")
    if len(set(columns)) != len(columns):
        twice = next(name for name in columns if columns.count(name) > 1)
        raise TruvarError(f"every column must have its own name, but {twice!r} stands twice; drop or rename one")


def _axis(name: str, axis: ArrayLike) -> Array:
    try:
        values = np.atleast_1d(np.asarray(axis, dtype=float))
    except (TypeError, ValueError):
        raise TruvarError(
            f"axis {name!r} must be a list of numbers, got {axis!r}; give one such as np.linspace(0, 1, 50)"
        ) from None
    if values.ndim != 1 or len(values) == 0:
        raise TruvarError(
            f"axis {name!r} must be a list of at least one number, got shape {values.shape}; "
            "give one such as np.linspace(0, 1, 50)"
        )
    if not np.isfinite(values).all():
        bad = values[~np.isfinite(values)][0]
        raise TruvarError(f"every value of axis {name!r} must be a finite number, but there is {bad}; leave it out")
    order = np.sort(values)
    size = np.maximum(np.abs(order[1:]), np.abs(order[:-1]))
    same = np.diff(order) <= SAME_POINT * np.minimum(
        order[-1] - order[0], size
    )  # by size too: 1e-12, 1e-11, ... differ
    if same.any():
        twice = order[1:][same][0]
        raise TruvarError(f"every value of axis {name!r} must be different, but {twice} stands twice; drop one")
    return values


def _interval(name: str, interval: tuple[float, float]) -> tuple[float, float]:
    try:
        low, high = interval
    except (TypeError, ValueError):
        raise TruvarError(
            f"interval {name!r} must be a pair (low, high), got {interval!r}; give one such as (0, 1)"
        ) from None
    low, high = check_finite(low, f"the low end of {name!r}"), check_finite(high, f"the high end of {name!r}")
    if not low < high:
        raise TruvarError(f"interval {name!r} must have low < high, got {low:g} and {high:g}; swap them")
    return low, high


def mesh(axes: Sequence[Array]) -> Array:
    return np.stack([m.ravel() for m in np.meshgrid(*axes, indexing="ij")], axis=1)


def _hull(axes: Sequence[Array]) -> Array:
    return np.array([(axis.min(), axis.max()) for axis in axes])


def _bounds(points: Array) -> Array:
    return np.stack([points.min(axis=0), points.max(axis=0)], axis=1)


def _first_duplicate(points: Array) -> tuple[int, int] | None:
    """The first row that repeats an earlier one, and that one before it."""
    order = np.lexsort(points.T)  # stable: equal rows stay in their order
    same = (points[order[1:]] == points[order[:-1]]).all(axis=1)
    if not same.any():
        return None
    later = np.flatnonzero(same)[np.argmin(order[1:][same])]
    return int(order[later]), int(order[later + 1])
