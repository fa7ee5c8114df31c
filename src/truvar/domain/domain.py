"""The domain D: named columns and finitely many points.

| paper | here | shape |
|---|---|---|
| D | `Domain.points` | (n, d), in the user's units |
| compact domain | `Domain.box`: `points` are its representers, any point inside may be chosen | (n, d) |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from truvar._typing import Array, Mask
from truvar.domain.delimited import find_column
from truvar.domain.geo import from_geopandas, from_xarray, is_geographic_table
from truvar.domain.given_context import check_context_columns
from truvar.domain.labels import RowLabels
from truvar.domain.tables import as_table, row_names
from truvar.exceptions import InvalidArgumentError, InvalidDomainError, PointNotInDomainError
from truvar.messages import for_interface, format_point, unknown_name
from truvar.validation import check_finite, check_integer

if TYPE_CHECKING:
    import pandas as pd

LISTED_ROWS = 10  # rows that a message lists, at most
SAME_POINT = 1e-9  # two points are equal if no coordinate differs by more than this fraction of its extent


@dataclass(frozen=True, eq=False)
class Domain:
    """A finite set of candidate points, or a box with representer points. Create it with `grid`, `table` or `box`.

    Attributes:
        columns: Names of the coordinates.
        points: Coordinates, shape (n, d).
        bounds: Smallest and largest coordinate of each column, shape (d, 2).
        axes: Values of each axis of a grid, the first axis slowest in `points`; None for other domains.
        source: Table with a row per point, including columns that are not coordinates, or a function that makes it;
            None if there is none. `frame` is the table.
        continuous: Whether any point inside the bounds may be chosen.
        labels: Labels of the rows of the user's own table; None if there are none.
        context: Columns that are given, not chosen, when a measurement is suggested.

    Raises:
        InvalidDomainError: If there are no columns or points, names are duplicated, or a coordinate is not finite.
    """

    columns: tuple[str, ...]
    points: Array
    bounds: Array
    axes: tuple[Array, ...] | None = None
    source: pd.DataFrame | Callable[[], pd.DataFrame] | None = None
    continuous: bool = False
    labels: RowLabels | None = None
    context: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _check_columns(self.columns)
        object.__setattr__(self, "context", check_context_columns(self.context, self.columns))
        if len(self.points) == 0:
            raise InvalidDomainError("a domain needs at least one point, got none; give it some points")
        bad = ~np.isfinite(self.points)
        if bad.any():
            row, column = np.argwhere(bad)[0]
            raise InvalidDomainError(
                f"every coordinate must be a finite number, got {self.points[row, column]} in row {row}, column "
                f"{self.columns[column]!r}; drop or fix that row"
            )
        self.points.setflags(write=False)

    # -- creation --------------------------------------------------------------------------------------------------

    @classmethod
    def grid(cls, /, **axes: ArrayLike) -> Domain:
        """Return the grid of all combinations of the values of its axes.

        Args:
            **axes: Values of each axis, by the name of its column.

        Raises:
            InvalidDomainError: If an axis is empty, or has values that are not finite or occur twice.

        Example:
            >>> Domain.grid(x=np.linspace(0, 1, 50), y=[1, 2, 3])
        """
        if not axes:
            example = for_interface("Domain.grid(x=np.linspace(0, 1, 50))", problem="grid = {x = [0, 1, 50]}")
            raise InvalidDomainError(f"a grid needs at least one axis, got none; give one: {example}")
        values = tuple(_check_axis(name, axis) for name, axis in axes.items())
        bounds = np.array([(axis.min(), axis.max()) for axis in values])
        return cls(tuple(axes), mesh(values), bounds, axes=values)

    @classmethod
    def table(
        cls,
        frame: Any,
        columns: Sequence[str] | None = None,
        *,
        label: str | None = None,
        missing: Literal["refuse", "drop"] = "refuse",
        duplicates: Literal["refuse", "drop"] = "refuse",
        context: Sequence[str] = (),
    ) -> Domain:
        """Return the domain whose points are the rows of a table.

        Args:
            frame: A DataFrame of pandas, polars or another library, a pyarrow table, a GeoDataFrame of points, or the
                path of a CSV file or an Excel workbook.
            columns: Names of the columns that are coordinates. Default: all columns but `label`; for a GeoDataFrame
                the coordinates of its points, named x and y, or lon and lat if they are in degrees.
            label: Name of the column whose values name the rows: `Suggestion.label`. Default: the index of the
                DataFrame.
            missing: What to do with rows that lack a coordinate: refuse the table, or leave them out.
            duplicates: What to do with rows that are the same point as an earlier one: refuse the table, or leave them
                out.
            context: Columns that are given, not chosen, such as the temperature of the day: `ask(context={...})`.

        Raises:
            InvalidDomainError: If a column is missing or not numeric, a coordinate is missing, or two rows are the same
                point.

        Example:
            >>> Domain.table("lake.csv", columns=["distance_m", "depth_m"])
        """
        geographic: tuple[str, ...] | None = None
        if is_geographic_table(frame):
            frame, geographic = from_geopandas(frame)
        frame = as_table(frame)
        if isinstance(columns, str):
            raise InvalidDomainError(f"columns must be a list of names, got {columns!r}; give [{columns!r}]")
        labels = RowLabels.of(row_names(frame, label))
        names = geographic or tuple(name for name in frame.columns if name != label)
        if columns is not None:
            names = tuple(columns)
        points = np.empty((len(frame), len(names)))
        for k, name in enumerate(names):
            points[:, k] = number_column(frame, name)
        kept = _rows_to_keep(points, names, missing, duplicates)
        if not kept.all():
            frame = frame[kept]
            points = points[kept]
            labels = labels.take(np.flatnonzero(kept))
        domain = cls.from_table_points(names, points, frame.reset_index(drop=True), labels)
        return domain.with_context(context) if context else domain

    @classmethod
    def from_table_points(
        cls,
        columns: Sequence[str],
        points: Array,
        source: pd.DataFrame | Callable[[], pd.DataFrame],
        labels: RowLabels | None = None,
    ) -> Domain:
        """Return the domain of a table whose coordinates have been read.

        Args:
            columns: Names of the coordinates.
            points: Coordinates of the rows. (n, d)
            source: The table, or a function that makes it when it is needed.
            labels: Labels of the rows, if they have some.

        Raises:
            InvalidDomainError: If there are no rows, or two of them are the same point.
        """
        if len(points) == 0:
            raise InvalidDomainError("a table needs rows to measure at, got no rows; give it at least one")
        bounds = np.stack([points.min(axis=0), points.max(axis=0)], axis=1)
        domain = cls(tuple(columns), points, bounds, source=source, labels=labels)
        duplicate = _first_duplicate(points)
        if duplicate is not None:
            first, second = duplicate
            more = int(_is_duplicate(points).sum()) - 1
            others = ""
            if more:
                others = f", and {more} more {'row repeats' if more == 1 else 'rows repeat'} others"
            raise InvalidDomainError(
                f"every row must be a different point, but rows {first} and {second} are both "
                f"{format_point(domain.point(first))}{others}; drop one of them (a point can be measured repeatedly, "
                f"but it is listed once), or give {_option('duplicates')}"
            )
        return domain

    @classmethod
    def from_xarray(cls, data: Any) -> Domain:
        """Return the grid of an xarray DataArray or Dataset.

        Its values become columns, from which noise, cost or truth can be taken. Points without a value, such as land in
        a map of the sea, are left out.

        Args:
            data: A DataArray or Dataset with a numeric coordinate for every dimension.

        Raises:
            InvalidDomainError: If it is neither, or a coordinate is missing or not numeric.
        """
        axes, frame = from_xarray(data)
        complete = frame.notna().all(axis=1)
        if not complete.all():
            return replace(cls.table(frame[complete], columns=list(axes)), labels=None)
        domain = cls.grid(**axes)
        return domain if frame.empty else replace(domain, source=frame)

    @classmethod
    def box(cls, /, *, representers: int = 2500, seed: int = 0, **intervals: tuple[float, float]) -> Domain:
        """Return a continuous box. Sums over it run over representer points.

        Args:
            representers: Number of representer points: about that many on a grid in one and two dimensions, exactly
                that many scrambled Sobol points in more.
            seed: Seed of the Sobol points.
            **intervals: Lower and upper end of each column.

        Raises:
            InvalidDomainError: If an interval is not a pair (low, high) with low < high.

        Example:
            >>> Domain.box(x=(0, 1), y=(0, 1))
        """
        if not intervals:
            example = for_interface("Domain.box(x=(0, 1))", problem="box = {x = [0, 1]}")
            raise InvalidDomainError(f"a box needs at least one interval, got none; give one: {example}")
        representers = check_integer(representers, "the number of representers of a box", minimum=2)
        bounds = np.array([_check_interval(name, interval) for name, interval in intervals.items()])
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

    def with_context(self, columns: Sequence[str]) -> Domain:
        """Return the domain with columns that are given, not chosen: `ask(context={...})`.

        Args:
            columns: Names of the columns.

        Raises:
            InvalidDomainError: If one is not a coordinate, all of them are, or the domain is a box.

        Example:
            >>> Domain.grid(dose=[1, 2, 3], temperature=[10, 20]).with_context(["temperature"])
        """
        if self.continuous:
            raise InvalidDomainError(
                "a context needs a grid or a table, got a box; give a grid with the values that the context can have"
            )
        return replace(self, context=check_context_columns(columns, self.columns))

    # -- points and columns ----------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.points)

    @cached_property
    def frame(self) -> pd.DataFrame | None:
        """Table with a row per point, including columns that are not coordinates; None if there is none."""
        return self.source() if callable(self.source) else self.source

    @property
    def shape(self) -> tuple[int, ...] | None:
        """Lengths of the axes of a grid; None for other domains."""
        return None if self.axes is None else tuple(len(axis) for axis in self.axes)

    @cached_property
    def extent(self) -> Array:
        """Width of the domain along each column, shape (d,); 1 where all points have the same coordinate."""
        width = self.bounds[:, 1] - self.bounds[:, 0]
        return np.where(width > 0, width, 1.0)

    @cached_property
    def spacing(self) -> Array:
        """Mean distance of neighbouring coordinates along each column, as a share of its extent, shape (d,)."""
        if self.continuous:
            return np.zeros(len(self.columns))
        counts = np.array([len(np.unique(column)) for column in self.points.T])
        return np.asarray(1.0 / np.maximum(counts - 1, 1))

    def label(self, index: int | None) -> Any:
        """Return the label of the row with that index in the user's own table; None if there is none."""
        return None if index is None or self.labels is None else self.labels[index]

    @property
    def has_row_names(self) -> bool:
        """Whether the rows have labels that say more than their position."""
        return self.labels is not None and not self.labels.are_positions

    def point(self, index: int) -> dict[str, float]:
        """Return the point with that index as {column: value}."""
        return self.named(self.points[index])

    def named(self, x: ArrayLike) -> dict[str, float]:
        """Return coordinates of shape (d,) as {column: value}."""
        return dict(zip(self.columns, np.asarray(x, dtype=float).tolist(), strict=True))

    def array(self, point: Mapping[str, float]) -> Array:
        """Return a point, given as {column: value}, as coordinates of shape (d,).

        Raises:
            InvalidArgumentError: If a column is unknown or missing, or a coordinate is not a finite number.
        """
        for name in point:
            if name not in self.columns:
                raise InvalidArgumentError(
                    f"the point {format_point(point)} has an {unknown_name('column', name, self.columns)}"
                )
        x = np.empty(len(self.columns))
        for k, name in enumerate(self.columns):
            if name not in point:
                raise InvalidArgumentError(
                    f"a point needs the columns {', '.join(self.columns)}, but {name!r} is missing in "
                    f"{format_point(point)}; give it"
                )
            x[k] = check_finite(point[name], f"column {name!r} of the point")
        return x

    def nearest(self, x: Array) -> int:
        """Return the index of the point nearest to x, with each column divided by its extent."""
        return int(np.argmin((((self.points - x) / self.extent) ** 2).sum(axis=1)))

    def locate(self, point: Mapping[str, float]) -> tuple[int | None, Array]:
        """Find a point in the domain.

        In a grid and a box any point inside the bounds is accepted, since the model can be conditioned on it. In a
        table only the rows are.

        Returns:
            Its index, None between the points of a grid or box, and its coordinates, shape (d,).

        Raises:
            PointNotInDomainError: If it is not in the domain; the message has the nearest point.
        """
        x = self.array(point)
        index = self.nearest(x)
        slack = SAME_POINT * self.extent
        if (np.abs(self.points[index] - x) <= slack).all():
            return index, self.points[index]
        inside = bool(((x >= self.bounds[:, 0] - slack) & (x <= self.bounds[:, 1] + slack)).all())
        if inside and (self.axes is not None or self.continuous):
            return None, x
        raise PointNotInDomainError(
            f"{format_point(point)} is not in the domain; the nearest point of it is {format_point(self.point(index))} "
            f"(index {index}): give that one if it is the one you mean"
        )

    def column(self, name: str) -> Array:
        """Return a numeric column, shape (n,): a coordinate, or another column of the table.

        Raises:
            InvalidDomainError: If there is no such column, or it is not numeric.
        """
        if name in self.columns:
            return self.points[:, self.columns.index(name)]
        if self.frame is None:
            raise InvalidDomainError(unknown_name("column", name, self.columns))
        return number_column(self.frame, name)

    def to_frame(self) -> pd.DataFrame:
        """Return the coordinates as a DataFrame, with the index of the user's own table if there is one."""
        import pandas as pd

        index = None if self.labels is None else self.labels.index
        return pd.DataFrame(self.points, columns=list(self.columns), index=index)


# -- tables ------------------------------------------------------------------------------------------------------------


def number_column(frame: pd.DataFrame, name: str) -> Array:
    """Return a column of a table as floats.

    Raises:
        InvalidDomainError: If the column is missing or duplicated, or a row of it is not a number.
    """
    if name not in frame.columns:
        with_unit = find_column(frame.columns, name)
        if with_unit is None:
            raise InvalidDomainError(unknown_name("column", name, frame.columns))
        name = with_unit
    if list(frame.columns).count(name) > 1:
        raise InvalidDomainError(
            f"columns of a table must have different names, but {name!r} is duplicated; rename one"
        )
    try:
        return np.ascontiguousarray(frame[name].to_numpy(dtype=float))
    except (TypeError, ValueError):
        import pandas as pd

        values = pd.to_numeric(frame[name], errors="coerce")
        row = int(np.flatnonzero(values.isna())[0])
        raise InvalidDomainError(
            f"column {name!r} must contain numbers, got {frame[name].iloc[row]!r} in row {row}; fix or drop that row"
        ) from None


# -- checks ------------------------------------------------------------------------------------------------------------


def _check_columns(columns: tuple[str, ...]) -> None:
    if len(columns) == 0:
        raise InvalidDomainError("a domain needs at least one column of coordinates, got none; name some")
    for name in columns:
        if columns.count(name) > 1:
            raise InvalidDomainError(
                f"columns must have different names, but {name!r} is duplicated; drop or rename one"
            )


def _check_axis(name: str, axis: ArrayLike) -> Array:
    """Return the values of an axis of a grid, or raise."""
    try:
        values = np.atleast_1d(np.asarray(axis, dtype=float))
    except (TypeError, ValueError):
        raise InvalidDomainError(
            f"axis {name!r} must be a list of numbers, got {axis!r}; give one such as np.linspace(0, 1, 50)"
        ) from None
    if values.ndim != 1 or len(values) == 0:
        raise InvalidDomainError(
            f"axis {name!r} must be a list of at least one number, got shape {values.shape}; "
            "give one such as np.linspace(0, 1, 50)"
        )
    if not np.isfinite(values).all():
        bad = values[~np.isfinite(values)][0]
        raise InvalidDomainError(f"the values of axis {name!r} must be finite numbers, got {bad}; leave it out")
    ordered = np.sort(values)
    # The scale is the smaller of range and magnitude: on an axis such as 1e-12, 1e-11, ..., 1 all values differ.
    magnitude = np.maximum(np.abs(ordered[1:]), np.abs(ordered[:-1]))
    scale = np.minimum(ordered[-1] - ordered[0], magnitude)
    same = np.diff(ordered) <= SAME_POINT * scale
    if same.any():
        duplicate = ordered[1:][same][0]
        raise InvalidDomainError(f"the values of axis {name!r} must differ, but {duplicate} is duplicated; drop one")
    return values


def _check_interval(name: str, interval: tuple[float, float]) -> tuple[float, float]:
    """Return the ends of an interval of a box as floats, or raise."""
    try:
        low, high = interval
    except (TypeError, ValueError):
        raise InvalidDomainError(
            f"interval {name!r} must be a pair (low, high), got {interval!r}; give one such as (0, 1)"
        ) from None
    low = check_finite(low, f"the low end of {name!r}")
    high = check_finite(high, f"the high end of {name!r}")
    if not low < high:
        raise InvalidDomainError(f"interval {name!r} must have low < high, got {low:g} and {high:g}; swap them")
    return low, high


# -- points ------------------------------------------------------------------------------------------------------------


def mesh(axes: Sequence[Array]) -> Array:
    """Return all combinations of the values of the axes, shape (n, d), the first axis slowest."""
    return np.stack([m.ravel() for m in np.meshgrid(*axes, indexing="ij")], axis=1)


def _rows_to_keep(points: Array, names: Sequence[str], missing: str, duplicates: str) -> Mask:
    """Return which rows of a table stay in the domain.

    Raises:
        InvalidDomainError: If coordinates are missing and those rows are not to be dropped; names all such rows.
    """
    for name, choice in (("missing", missing), ("duplicates", duplicates)):
        if choice not in ("refuse", "drop"):
            raise InvalidDomainError(f"{name} must be 'refuse' or 'drop', got {choice!r}; give one of them")
    lacking = np.isnan(points)
    empty = lacking.any(axis=1)
    if empty.any() and missing == "refuse":
        rows = np.flatnonzero(empty)
        column = names[int(np.argmax(lacking[rows[0]]))]
        listed = ", ".join(map(str, rows[:LISTED_ROWS])) + ", ..." * (len(rows) > LISTED_ROWS)
        raise InvalidDomainError(
            f"every coordinate must be a finite number, got nan in row {rows[0]}, column {column!r} ({len(rows)} "
            f"incomplete row{'s' * (len(rows) > 1)}: {listed}); drop or fix that row, or give {_option('missing')}"
        )
    kept = np.logical_not(empty)
    if duplicates == "drop":
        complete = np.flatnonzero(kept)
        kept[complete[_is_duplicate(points[complete])]] = False
    return np.asarray(kept)


def _option(name: str) -> str:
    return for_interface(f'{name}="drop"', problem=f'{name} = "drop"')


def _is_duplicate(points: Array) -> Mask:
    """Return which rows repeat an earlier one."""
    _, first = np.unique(points, axis=0, return_index=True)
    repeated = np.ones(len(points), bool)
    repeated[first] = False
    return repeated


def _first_duplicate(points: Array) -> tuple[int, int] | None:
    """Return the earlier and the later row of the first row that repeats another, or None."""
    order = np.lexsort(points.T)  # stable: equal rows stay in their order
    same = (points[order[1:]] == points[order[:-1]]).all(axis=1)
    if not same.any():
        return None
    later = np.flatnonzero(same)[np.argmin(order[1:][same])]
    return int(order[later]), int(order[later + 1])
