"""The domain D: named columns and finitely many points.

| paper | here | shape |
|---|---|---|
| D | `Domain.points` | (n, d), coordinates of the model: the user's values, unless `Domain.parameters` encode them |
| compact domain | `Domain.box`: `points` are its representers, any point inside may be chosen | (n, d) |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from truvar._representation import html_card
from truvar._typing import Array, Mask
from truvar.domain.constrained import constrain, constrain_box, masks_of_rows, simplex_lattice
from truvar.domain.constraints import (
    MARGIN,
    TOLERANCE,
    Constraint,
    LinearConstraint,
    ValueComparison,
    all_satisfied,
    describe_constraint,
    values_satisfied,
)
from truvar.domain.geo import from_geopandas, from_xarray, is_geographic_table
from truvar.domain.given_context import check_context_columns
from truvar.domain.parameters import Integer, Parameter, Range
from truvar.domain.recognition import box_parameter, grid_parameter, table_parameter
from truvar.domain.rounding import shown_decimals, shown_point
from truvar.domain.scales import is_geometric
from truvar.exceptions import InvalidArgumentError, InvalidDomainError, PointNotInDomainError
from truvar.messages import for_interface, format_point, unknown_name
from truvar.tabular.column_types import (
    default_coordinates,
    empty_column,
    file_label,
    usable_columns,
    warn_of_shifted_columns,
    with_text_names,
)
from truvar.tabular.delimited import find_column
from truvar.tabular.labels import RowLabels
from truvar.tabular.tables import as_table, row_names
from truvar.validation import check_finite, check_integer, check_names

if TYPE_CHECKING:
    import pandas as pd

LISTED_ROWS = 10  # rows that a message lists, at most
SAME_POINT = 1e-9  # two points are equal if no coordinate differs by more than this fraction of its extent
LOG_RATIO = 100.0  # quotient of the largest and the smallest number of a column from which a log scale is detected
CATEGORY_SPACING = 0.5  # of a column of categories: half of it is the shortest length-scale, where they are unrelated


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
        parameters: Type of each column, which encodes the user's values as coordinates; empty if all are plain numbers.
        constraints: Conditions that a point between those of a grid, or anywhere in a box, must satisfy.
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
    parameters: tuple[Parameter, ...] = ()
    constraints: tuple[Constraint, ...] = ()
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
    def grid(cls, /, *, constraints: Any = None, **axes: ArrayLike | Parameter) -> Domain:
        """Return the grid of all combinations of the values of its axes.

        Args:
            constraints: What a point must satisfy to be one of the domain: a text such as "x + y <= 1", a function of
                points (q, d), a polygon, a Boolean mask over the full grid, or a list of these.
            **axes: Values of each axis, by the name of its column: a list of numbers or of texts, or a parameter such
                as `Log(1e-6, 1e-1, count=6)`, `Integer(1, 12)`, `Categorical([...])`, `Ordinal([...])` or `Boolean()`.

        Raises:
            InvalidDomainError: If an axis is empty, or has values that are not finite or occur twice; if a constraint
                cannot be used, or no point satisfies it.

        Example:
            >>> Domain.grid(x=np.linspace(0, 1, 50), y=[1, 2, 3], solver=["lbfgs", "saga"])
            >>> Domain.grid(x=np.linspace(0, 1, 50), y=np.linspace(0, 1, 50), constraints="x + y <= 1")
        """
        if not axes:
            example = for_interface("Domain.grid(x=np.linspace(0, 1, 50))", problem="grid = {x = [0, 1, 50]}")
            raise InvalidDomainError(f"a grid needs at least one axis, got none; give one: {example}")
        check_names(axes, "column")
        given = {name: grid_parameter(name, axis) for name, axis in axes.items()}
        values = tuple(
            _check_axis(name, axis) if parameter is None else parameter.grid_levels(name)
            for (name, parameter), axis in zip(given.items(), axes.values(), strict=True)
        )
        bounds = np.array([(axis.min(), axis.max()) for axis in values])
        parameters = _complete(list(given.values()), bounds)
        return constrain(cls(tuple(axes), mesh(values), bounds, axes=values, parameters=parameters), constraints)

    @classmethod
    def table(
        cls,
        frame: Any,
        columns: Sequence[str] | None = None,
        log: Sequence[str] | str = (),
        *,
        constraints: Any = None,
        label: str | None = None,
        missing: Literal["refuse", "drop"] = "refuse",
        duplicates: Literal["refuse", "drop"] = "refuse",
        context: Sequence[str] = (),
    ) -> Domain:
        """Return the domain whose points are the rows of a table.

        Columns may hold numbers, text, Booleans or dates.

        Args:
            frame: A DataFrame of pandas, polars or another library, a pyarrow table, a dictionary of arrays, a
                GeoDataFrame of points, or the path of a CSV file or an Excel workbook.
            columns: Names of the columns that are coordinates. Default: all columns but `label`, and but the index
                that `to_csv` wrote as a first column without a name; for a GeoDataFrame the coordinates of its points,
                named x and y, or lon and lat if they are in degrees.
            log: Names of the columns of numbers that have a logarithmic scale; "auto" for those that are spaced by
                ratios rather than by differences, such as 0.01, 0.1, 1, 10.
            constraints: What a row must satisfy to be a point of the domain: the name of a column of truth values, a
                text such as "x + y <= 1", a function of points (q, d), a polygon, a Boolean mask over the rows of the
                table as it is given, those that are left out included, or a list of these.
            label: Name of the column whose values name the rows: `Suggestion.label`. Default: the index of the
                DataFrame; of a file its first column, if that has no name.
            missing: What to do with rows that lack a coordinate: refuse the table, or leave them out.
            duplicates: What to do with rows that are the same point as an earlier one: refuse the table, or leave them
                out.
            context: Columns that are given, not chosen, such as the temperature of the day: `ask(context={...})`.

        Raises:
            InvalidDomainError: If a column is missing or mixes types, a coordinate is missing, or two rows are the same
                point; if a constraint cannot be used, or no row satisfies it.

        Example:
            >>> Domain.table("lake.csv", columns=["distance_m", "depth_m"])
        """
        geographic: tuple[str, ...] | None = None
        if is_geographic_table(frame):
            frame, geographic = from_geopandas(frame)
        given = frame
        frame = with_text_names(as_table(given))
        if isinstance(columns, str):
            raise InvalidDomainError(f"columns must be a list of names, got {columns!r}; give [{columns!r}]")
        label = file_label(given, frame, columns) if label is None else label
        names = geographic or default_coordinates(frame, label)
        if columns is not None:
            names = tuple(str(name) for name in columns)
            frame = _without_units(frame, names)
        _check_columns(names)
        check_names(names, "column")
        frame = usable_columns(frame, names)
        warn_of_shifted_columns(frame, names)
        labels = RowLabels.of(row_names(frame, label))
        n_given = len(frame)
        complete = _complete_rows(frame, names, missing)
        rows = np.flatnonzero(complete)  # of the given table
        if not complete.all():
            frame = frame[complete]
            labels = labels.take(rows)
        logarithmic = _log_columns(frame, names, log)
        types = [table_parameter(_checked_column(frame, name), name, name in logarithmic) for name in names]
        points = np.empty((len(frame), len(names)))
        for k, name in enumerate(names):
            parameter = types[k]
            points[:, k] = (
                number_column(frame, name) if parameter is None else parameter.encode_column(frame[name], name)
            )
        if _drops(duplicates, "duplicates"):
            kept = ~_is_duplicate(points)
            frame = frame[kept]
            points = points[kept]
            rows = rows[kept]
            labels = labels.take(np.flatnonzero(kept))
        parameters: tuple[Parameter, ...] = ()
        if len(points) and any(parameter is not None for parameter in types):
            bounds = np.stack([points.min(axis=0), points.max(axis=0)], axis=1)
            for k, name in enumerate(names):
                if types[k] is None and frame[name].dtype.kind in "iu" and bounds[k, 0] < bounds[k, 1]:
                    types[k] = Integer(int(bounds[k, 0]), int(bounds[k, 1]))
            parameters = _complete(types, bounds)
        domain = cls.from_table_points(names, points, frame.reset_index(drop=True), parameters, labels)
        domain = constrain(domain, masks_of_rows(constraints, rows, n_given))
        return domain.with_context(context) if context else domain

    @classmethod
    def from_table_points(
        cls,
        columns: Sequence[str],
        points: Array,
        source: pd.DataFrame | Callable[[], pd.DataFrame],
        parameters: tuple[Parameter, ...] = (),
        labels: RowLabels | None = None,
    ) -> Domain:
        """Return the domain of a table whose coordinates have been read.

        Args:
            columns: Names of the coordinates.
            points: Coordinates of the rows. (n, d)
            source: The table, or a function that makes it when it is needed.
            parameters: Type of each column; empty if all are plain numbers.
            labels: Labels of the rows, if they have some.

        Raises:
            InvalidDomainError: If there are no rows, or two of them are the same point.
        """
        if len(points) == 0:
            raise InvalidDomainError("a table needs rows to measure at, got no rows; give it at least one")
        bounds = np.stack([points.min(axis=0), points.max(axis=0)], axis=1)
        domain = cls(tuple(columns), points, bounds, source=source, parameters=parameters, labels=labels)
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
        a map of the sea, are left out. Coordinates and attributes come back with `Result.to_xarray`.

        Args:
            data: A DataArray or Dataset with a numeric coordinate for every dimension.

        Raises:
            InvalidDomainError: If it is neither, or a coordinate is missing or not numeric.
        """
        axes, frame = from_xarray(data)
        complete = frame.notna().all(axis=1)
        if not complete.all():
            return replace(cls.table(frame[complete], columns=list(axes)), labels=None)
        return replace(cls.grid(**axes), source=frame)

    @classmethod
    def box(
        cls,
        /,
        *,
        representers: int = 2500,
        seed: int = 0,
        constraints: Any = None,
        **intervals: tuple[float, float] | Parameter | Sequence[Any],
    ) -> Domain:
        """Return a box. Sums over it run over representer points.

        A box without a continuous side that has no more points than `representers` is a grid.

        Args:
            representers: Number of representer points: about that many on a grid in one and two dimensions, exactly
                that many scrambled Sobol points in more. Where some sides have few values, equal points count once.
            seed: Seed of the Sobol points.
            constraints: What every point must satisfy: a text such as "x + y <= 1", a function of points (q, d), a
                polygon, or a list of these. A function cannot be stored.
            **intervals: Lower and upper end of each column; or a parameter such as `Log(1e-6, 1e-1)`,
                `Integer(1, 12)`, `Categorical([...])`, `Ordinal([...])` or `Boolean()`; or a list of texts, which are
                categories.

        Raises:
            InvalidDomainError: If an interval is not a pair (low, high) with low < high; if a constraint cannot be
                used, or hardly any point satisfies it.

        Example:
            >>> Domain.box(x=(0, 1), y=(0, 1))
            >>> Domain.box(lr=Log(1e-6, 1e-1), depth=Integer(1, 12), solver=["lbfgs", "saga"])
        """
        return cls._box(intervals, representers=representers, seed=seed, constraints=constraints)

    @classmethod
    def _box(
        cls, intervals: Mapping[str, Any], *, representers: int = 2500, seed: int = 0, constraints: Any = None
    ) -> Domain:
        """Return a box whose columns may have any names, also those of the options of `Domain.box`."""
        if not intervals:
            example = for_interface("Domain.box(x=(0, 1))", problem="box = {x = [0, 1]}")
            raise InvalidDomainError(f"a box needs at least one interval, got none; give one: {example}")
        check_names(intervals, "column")
        representers = check_integer(representers, "the number of representers of a box", minimum=2)
        if constraints is not None:
            return constrain_box(
                lambda count: cls._box(intervals, representers=count, seed=seed), representers, constraints
            )
        given = [box_parameter(name, interval) for name, interval in intervals.items()]
        bounds = np.array(
            [
                _check_interval(name, interval) if parameter is None else parameter.bounds
                for parameter, (name, interval) in zip(given, intervals.items(), strict=True)
            ]
        )
        parameters = _complete(given, bounds)
        if any(parameter.n_levels is not None for parameter in parameters):
            return _mixed_box(tuple(intervals), parameters, bounds, representers, seed)
        d = len(bounds)
        if d > 2:
            from scipy.stats import qmc

            sobol = qmc.Sobol(d, scramble=True, rng=np.random.default_rng(seed))
            unit = sobol.random_base2(int(np.ceil(np.log2(representers))))[:representers]
            points = bounds[:, 0] + unit * (bounds[:, 1] - bounds[:, 0])
            return cls(tuple(intervals), points, bounds, continuous=True, parameters=parameters)
        side = max(2, round(representers ** (1 / d)))
        axes = tuple(np.linspace(low, high, side) for low, high in bounds)
        return cls(tuple(intervals), mesh(axes), bounds, axes=axes, continuous=True, parameters=parameters)

    @classmethod
    def mixture(cls, /, *names: str, parts: int = 20, **intervals: tuple[float, float]) -> Domain:
        """Return mixtures: fractions that sum to one, in steps of 1/parts.

        A value may also be told for fractions between the steps.

        Args:
            *names: Components of any fraction, from 0 to 1.
            parts: Number of steps from 0 to 1.
            **intervals: Least and largest fraction of each other component.

        Raises:
            InvalidDomainError: If there are fewer than two components, a name is not a text or occurs twice, an
                interval is not within 0 to 1, or no mixture is possible.

        Example:
            >>> Domain.mixture("water", "ethanol", "acetone")
            >>> Domain.mixture(water=(0.2, 1), ethanol=(0, 1), acetone=(0, 0.3), parts=50)
        """
        intervals = {**dict.fromkeys(_check_components(names, intervals), (0.0, 1.0)), **intervals}
        check_names(intervals, "column")
        bounds = np.array([_check_interval(name, interval) for name, interval in intervals.items()]).reshape(-1, 2)
        points, equation = simplex_lattice(tuple(intervals), bounds, check_integer(parts, "parts", minimum=2))
        return cls(tuple(intervals), points, bounds, constraints=(equation,))

    def with_context(self, columns: Sequence[str]) -> Domain:
        """Return the domain with columns that are given, not chosen: `ask(context={...})`.

        Args:
            columns: Names of the columns.

        Raises:
            InvalidDomainError: If one is not a coordinate, or all of them are.

        Example:
            >>> Domain.grid(dose=[1, 2, 3], temperature=[10, 20]).with_context(["temperature"])
        """
        return replace(self, context=check_context_columns(columns, self.columns))

    # -- points and columns ----------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        kind = "box" if self.continuous else "table"
        if self.axes is not None:
            kind = "grid"
        columns = "; ".join(f"{name}: {text}" for name, text in self._column_texts())
        return f"<Domain: {kind} of {len(self)} points; {columns}>"

    def _repr_html_(self) -> str:
        kind = "representer points of a box" if self.continuous else "points"
        rows = self._column_texts()
        rows += [("constraint", describe_constraint(constraint)) for constraint in self.constraints]
        if self.context:
            rows.append(("context", ", ".join(self.context)))
        return html_card("Domain", f"{len(self)} {kind}", rows)

    def _column_texts(self) -> list[tuple[str, str]]:
        """Return the name and the range of every column."""
        if self.parameters:
            return [(name, each.describe()) for name, each in zip(self.columns, self.parameters, strict=True)]
        texts = []
        for k, name in enumerate(self.columns):
            low, high = self.bounds[k]
            count = "" if self.axes is None else f", {len(self.axes[k])} values"
            texts.append((name, f"{low:.6g} to {high:.6g}{count}"))
        return texts

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

    @property
    def axis_values(self) -> tuple[Any, ...] | None:
        """The user's values of each axis of a grid; None for other domains."""
        if self.axes is None or not self.parameters:
            return self.axes
        return tuple(each.decode_column(axis) for each, axis in zip(self.parameters, self.axes, strict=True))

    @cached_property
    def extent(self) -> Array:
        """Width of the domain along each column, shape (d,); 1 where all points have the same coordinate."""
        width = self.bounds[:, 1] - self.bounds[:, 0]
        extent = np.where(width > 0, width, 1.0)
        extent[list(self.categorical)] = 1.0  # two categories are equal or different
        return extent

    @cached_property
    def slack(self) -> Array:
        """Largest difference of equal coordinates of each column, shape (d,); less than any two of the points have."""
        slack = SAME_POINT * self.extent
        if not self.continuous:
            for k, column in enumerate(self.points.T):
                gaps = np.diff(np.unique(column))
                slack[k] = min(slack[k], gaps.min() / 4) if len(gaps) else slack[k]
        return slack

    @cached_property
    def spacing(self) -> Array:
        """Mean distance of neighbouring coordinates along each column, as a share of its extent, shape (d,)."""
        if self.continuous:
            spacing = np.zeros(len(self.columns))
            for k, parameter in enumerate(self.parameters):
                if parameter.n_levels is not None:
                    spacing[k] = 1.0 / max(parameter.n_levels - 1, 1)
        else:
            counts = np.array([len(np.unique(column)) for column in self.points.T])
            spacing = np.asarray(1.0 / np.maximum(counts - 1, 1))
        spacing[list(self.categorical)] = CATEGORY_SPACING
        return spacing

    def label(self, index: int | None) -> Any:
        """Return the label of the row with that index in the user's own table; None if there is none."""
        return None if index is None or self.labels is None else self.labels[index]

    @property
    def has_row_names(self) -> bool:
        """Whether the rows have labels that say more than their position."""
        return self.labels is not None and not self.labels.are_positions

    # -- as they are shown -----------------------------------------------------------------------------------------

    @cached_property
    def decimals(self) -> tuple[int | None, ...]:
        """Digits behind the decimal point with which each column is shown; None: those that its values have."""
        return shown_decimals(self)

    def shown(self, point: Mapping[str, Any]) -> dict[str, Any]:
        """Return a point with no more digits than tell it from its neighbours, for people to read."""
        return shown_point(self, point)

    # -- values and coordinates ------------------------------------------------------------------------------------

    @cached_property
    def categorical(self) -> tuple[int, ...]:
        """Positions of the columns whose values are only equal or different."""
        return tuple(k for k, parameter in enumerate(self.parameters) if parameter.categorical)

    @cached_property
    def discrete(self) -> tuple[int, ...]:
        """Positions of the columns of a box that have finitely many values."""
        return tuple(k for k, parameter in enumerate(self.parameters) if parameter.n_levels is not None)

    def snap(self, points: Array) -> Array:
        """Return the nearest points (q, d) of a box: inside its bounds, and with values that its parameters have."""
        if not self.parameters:
            return np.clip(points, self.bounds[:, 0], self.bounds[:, 1])
        return np.column_stack([parameter.snap(points[:, k]) for k, parameter in enumerate(self.parameters)])

    def canonical(self, points: Array) -> Array:
        """Return the points that stand for points (q, d) of a box: themselves.

        Where some columns say nothing about a point, as the parameters of an option that it does not have, a subclass
        returns one of all points that are the same.
        """
        return points

    def values(self, points: Array) -> Any:
        """Return points (q, d) as the user's values: floats, or objects if some of them are text or dates."""
        if not self.parameters:
            return points
        decoded = [parameter.decode_column(points[:, k]) for k, parameter in enumerate(self.parameters)]
        if all(parameter.numeric for parameter in self.parameters):
            return np.column_stack([np.asarray(column, dtype=float) for column in decoded])
        return np.column_stack([np.asarray(column, dtype=object) for column in decoded])

    def numbers(self, points: Array) -> Array:
        """Return points (q, d) as the user's numbers, with coordinates in place of text and dates."""
        if not self.parameters:
            return points
        numbers = np.array(points, dtype=float)
        for k, parameter in enumerate(self.parameters):
            if parameter.numeric:
                numbers[:, k] = parameter.decode_column(points[:, k])
        return numbers

    def point(self, index: int) -> dict[str, Any]:
        """Return the point with that index as {column: value}."""
        return self.named(self.points[index])

    def named(self, x: ArrayLike) -> dict[str, Any]:
        """Return coordinates of shape (d,) as {column: value}."""
        coordinates = np.asarray(x, dtype=float).tolist()
        if self.parameters:
            decoded = [each.decode(value) for each, value in zip(self.parameters, coordinates, strict=True)]
            return dict(zip(self.columns, decoded, strict=True))
        return dict(zip(self.columns, coordinates, strict=True))

    def encode(self, points: Any) -> Array:
        """Return points as coordinates (q, d).

        Args:
            points: An array of the user's values (q, d) or one point (d,), a list of points by column, or a DataFrame
                with the columns.

        Raises:
            InvalidArgumentError: If the shape is wrong or a value has the wrong type.
            PointNotInDomainError: If a value is not one that its parameter has.
        """
        d = len(self.columns)
        if hasattr(points, "to_dict") and hasattr(points, "columns"):
            points = points.to_dict("records")
        if isinstance(points, Mapping):
            points = [points]
        if isinstance(points, Sequence) and points and all(isinstance(point, Mapping) for point in points):
            return np.stack(
                [self.array({name: point[name] for name in self.columns if name in point}) for point in points]
            )
        array = np.atleast_2d(np.asarray(points, dtype=object if self.parameters else float))
        if array.ndim != 2 or array.shape[1] != d:
            raise InvalidArgumentError(f"points must have shape (q, {d}), got {array.shape}; give one row per point")
        if not self.parameters:
            return array
        return np.stack([self.array(dict(zip(self.columns, row, strict=True))) for row in array])

    def parse(self, name: str, text: str) -> Any:
        """Return the value of a column that a text of a file, a form or the command line means."""
        if not self.parameters:
            return Range(0.0, 1.0).parse(text, name)
        return self.parameters[self.columns.index(name)].parse(text, name)

    def array(self, point: Mapping[str, Any]) -> Array:
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
            if self.parameters:
                x[k] = self.parameters[k].encode(point[name], name)
            else:
                x[k] = check_finite(point[name], f"column {name!r} of the point")
        return x

    def allows(self, points: Array) -> Mask:
        """Return which points (q, d) may be chosen as far as the constraints go.

        In a box never a point that just misses one. The points of a finite domain were selected with a tolerance, so
        that those on the border of a constraint belong to it.
        """
        return self.satisfies(self.constraints, points, -MARGIN if self.continuous else TOLERANCE)

    def satisfies(self, constraints: Sequence[Constraint], points: Array, tolerance: float = TOLERANCE) -> Mask:
        """Return which points (q, d) satisfy all constraints, which are about the user's values."""
        result = all_satisfied(constraints, self.numbers(points), self.columns, tolerance)
        for constraint in constraints:
            if isinstance(constraint, LinearConstraint):
                for comparison in constraint.value_comparisons:
                    result &= self.satisfies_values(comparison, constraint.text, points)
        return result

    def satisfies_values(self, comparison: ValueComparison, text: str, points: Array) -> Mask:
        """Return which points (q, d) satisfy a comparison of a column with values of its own; `text` holds it."""
        name = comparison.column
        if name not in self.columns:
            raise InvalidDomainError(f"the constraint {text!r} has an {unknown_name('column', name, self.columns)}")
        k = self.columns.index(name)
        parameter = self.parameters[k] if self.parameters else None

        def encode(value: Any) -> float:
            if parameter is None:
                return check_finite(value, f"the value of {name!r} in the constraint {text!r}")
            return parameter.encode(value, name)

        ordered = parameter is None or not parameter.categorical
        return values_satisfied(comparison, text, encode, points[:, k], ordered)

    def nearest(self, x: Array) -> int:
        """Return the index of the point nearest to x, with each column divided by its extent."""
        difference = (self.points - x) / self.extent
        for k in self.categorical:
            difference[:, k] = difference[:, k] != 0
        return int(np.argmin((difference**2).sum(axis=1)))

    def locate(self, point: Mapping[str, Any]) -> tuple[int | None, Array]:
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
        slack = self.slack
        if (np.abs(self.points[index] - x) <= slack).all():
            return index, self.points[index]
        inside = bool(((x >= self.bounds[:, 0] - slack) & (x <= self.bounds[:, 1] + slack)).all())
        if inside and self.constraints:
            missed = [each for each in self.constraints if not self.satisfies([each], x[None, :])[0]]
            if not missed:
                return None, x
            raise PointNotInDomainError(
                f"{format_point(point)} is not in the domain, as it does not satisfy the constraint "
                f"{describe_constraint(missed[0])}; the nearest point of it is {format_point(self.point(index))} "
                f"(index {index})"
            )
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
            k = self.columns.index(name)
            if self.parameters and not self.parameters[k].numeric:
                raise InvalidDomainError(
                    f"column {name!r} must contain numbers, got {self.parameters[k].describe()}; name another column"
                )
            return self.numbers(self.points)[:, k]
        if self.frame is None:
            raise InvalidDomainError(unknown_name("column", name, self.columns))
        return number_column(self.frame, name)

    def to_frame(self) -> pd.DataFrame:
        """Return the coordinates as a DataFrame, with the index of the user's own table if there is one."""
        import pandas as pd

        index = None if self.labels is None else self.labels.index
        if not self.parameters:
            return pd.DataFrame(self.points, columns=list(self.columns), index=index)
        columns = [parameter.decode_column(self.points[:, k]) for k, parameter in enumerate(self.parameters)]
        frame = pd.DataFrame(dict(enumerate(columns))).set_axis(list(self.columns), axis=1)
        return frame if index is None else frame.set_axis(index, axis=0)


# -- tables ------------------------------------------------------------------------------------------------------------


def _checked_column(frame: pd.DataFrame, name: str) -> pd.Series:
    """Return a column of a table.

    Raises:
        InvalidDomainError: If it is missing or duplicated.
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
    return frame[name]


def number_column(frame: pd.DataFrame, name: str) -> Array:
    """Return a column of a table as floats.

    Raises:
        InvalidDomainError: If the column is missing or duplicated, or a row of it is not a number.
    """
    name = str(_checked_column(frame, name).name)
    try:
        return np.ascontiguousarray(frame[name].to_numpy(dtype=float))
    except (TypeError, ValueError):
        import pandas as pd

        values = pd.to_numeric(frame[name], errors="coerce")
        row = int(np.flatnonzero(values.isna())[0])
        raise InvalidDomainError(
            f"column {name!r} must contain numbers, got {frame[name].iloc[row]!r} in row {row}; fix or drop that row"
        ) from None


def _log_columns(frame: pd.DataFrame, names: Sequence[str], log: Sequence[str] | str) -> list[str]:
    """Return the columns that have a logarithmic scale.

    Raises:
        InvalidDomainError: If one of them is not a column of numbers.
    """
    if isinstance(log, str) and log != "auto":
        raise InvalidDomainError(f'log must be "auto" or a list of columns, got {log!r}; give [{log!r}]')
    if log == "auto":
        numeric = [name for name in names if _checked_column(frame, name).dtype.kind in "iuf"]
        return [name for name in numeric if is_geometric(frame[name].to_numpy(dtype=float), LOG_RATIO)]
    for name in log:
        if name not in names:
            raise InvalidDomainError(f"log has an {unknown_name('column', name, names)}")
        if _checked_column(frame, name).dtype.kind not in "iuf":
            raise InvalidDomainError(f"log must name columns of numbers, got {name!r}, which has others; leave it out")
    return list(log)


# -- checks ------------------------------------------------------------------------------------------------------------


def _check_columns(columns: tuple[str, ...]) -> None:
    if len(columns) == 0:
        raise InvalidDomainError("a domain needs at least one column of coordinates, got none; name some")
    for name in columns:
        if columns.count(name) > 1:
            raise InvalidDomainError(
                f"columns must have different names, but {name!r} is duplicated; drop or rename one"
            )


def _check_axis(name: str, axis: Any) -> Array:
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


def _check_components(names: Sequence[Any], intervals: Mapping[str, Any]) -> Sequence[str]:
    """Return the names of the components of a mixture that are given without an interval."""
    for position, name in enumerate(names):
        if not isinstance(name, str):
            raise InvalidDomainError(
                f"a component of a mixture must be a name, got {name!r}; give Domain.mixture('a', 'b'), or intervals: "
                "Domain.mixture(a=(0, 1), b=(0, 0.5))"
            )
        if name in intervals or name in names[:position]:
            raise InvalidDomainError(f"the component {name!r} of the mixture occurs twice; leave out one")
    return names


def _check_interval(name: str, interval: Any) -> tuple[float, float]:
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


def _complete(given: Sequence[Parameter | None], bounds: Array) -> tuple[Parameter, ...]:
    """Return the parameters with a `Range` in place of those that are plain numbers; empty if all are."""
    if all(parameter is None or parameter == _plain(*ends) for parameter, ends in zip(given, bounds, strict=True)):
        return ()
    return tuple(
        _plain(*ends) if parameter is None else parameter for parameter, ends in zip(given, bounds, strict=True)
    )


def _plain(low: float, high: float) -> Range:
    return Range(float(low), float(high) if high > low else float(low) + 1.0)


def _mixed_box(
    columns: tuple[str, ...], parameters: tuple[Parameter, ...], bounds: Array, representers: int, seed: int
) -> Domain:
    """Return a box some of whose sides have finitely many values."""
    from scipy.stats import qmc

    counts = [parameter.n_levels for parameter in parameters]
    if None not in counts and np.prod(np.array(counts, dtype=float)) <= representers:
        axes = tuple(parameter.levels for parameter in parameters)
        return Domain(columns, mesh(axes), bounds, axes=axes, parameters=parameters)
    sobol = qmc.Sobol(len(bounds), scramble=True, rng=np.random.default_rng(seed))
    unit = sobol.random_base2(int(np.ceil(np.log2(representers))))[:representers]
    points = np.column_stack([parameter.from_unit(unit[:, k]) for k, parameter in enumerate(parameters)])
    _, first = np.unique(points, axis=0, return_index=True)
    return Domain(columns, points[np.sort(first)], bounds, continuous=True, parameters=parameters)


def mesh(axes: Sequence[Array]) -> Array:
    """Return all combinations of the values of the axes, shape (n, d), the first axis slowest."""
    return np.stack([m.ravel() for m in np.meshgrid(*axes, indexing="ij")], axis=1)


def _without_units(frame: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """Return a table whose headers have the given names where they had a unit behind them."""
    found = {find_column(frame.columns, name): name for name in names if name not in frame.columns}
    found.pop(None, None)
    return frame.rename(columns=found) if found else frame


def _complete_rows(frame: pd.DataFrame, names: Sequence[str], missing: str) -> Mask:
    """Return which rows of a table have all coordinates.

    Raises:
        InvalidDomainError: If coordinates are missing and those rows are not to be dropped; names all such rows.
    """
    drop = _drops(missing, "missing")
    lacking = np.stack([_checked_column(frame, name).isna().to_numpy() for name in names], axis=1)
    empty = lacking.any(axis=1)
    if empty.any() and not drop:
        rows = np.flatnonzero(empty)
        column = names[int(np.argmax(lacking[rows[0]]))]
        expected = "given, got none"
        if _checked_column(frame, column).dtype.kind in "iuf":
            expected = "a finite number, got nan"
        listed = ", ".join(map(str, rows[:LISTED_ROWS])) + ", ..." * (len(rows) > LISTED_ROWS)
        if lacking.all(axis=0).any():
            raise empty_column(names[int(np.argmax(lacking.all(axis=0)))], frame)
        raise InvalidDomainError(
            f"every coordinate must be {expected} in row {rows[0]}, column {column!r} ({len(rows)} "
            f"incomplete row{'s' * (len(rows) > 1)}: {listed}); drop or fix that row, or give {_option('missing')}"
        )
    return np.logical_not(empty)


def _drops(choice: str, name: str) -> bool:
    """Return whether rows are to be dropped."""
    if choice not in ("refuse", "drop"):
        raise InvalidDomainError(f"{name} must be 'refuse' or 'drop', got {choice!r}; give one of them")
    return choice == "drop"


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
