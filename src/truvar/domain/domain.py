"""The domain D: named columns and finitely many points.

| paper | here | shape |
|---|---|---|
| D | `Domain.points` | (n, d), coordinates of the model: the user's values, as `Domain.parameters` encode them |
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
from truvar._typing import Array, Index, Mask
from truvar.domain._constrained import constrain, constrain_box, masks_of_rows, satisfies_values
from truvar.domain._encoding import Encoding, check_columns
from truvar.domain.box import REPRESENTERS, box_fields, check_box, mixture_fields
from truvar.domain.constraints import (
    MARGIN,
    TOLERANCE,
    Constraint,
    LinearConstraint,
    all_satisfied,
    describe_constraint,
)
from truvar.domain.geo import from_xarray
from truvar.domain.given_context import check_context_columns
from truvar.domain.grid import SAME_POINT, grid_fields
from truvar.domain.layout import GridLayout, curve_rank, grid_layout
from truvar.domain.parameters import Parameter, complete_parameters
from truvar.domain.rounding import shown_decimals, shown_point
from truvar.domain.table import check_rows, number_column, read_rows
from truvar.exceptions import InvalidDomainError, PointNotInDomainError
from truvar.messages import format_point, unknown_name
from truvar.tabular.labels import RowLabels

if TYPE_CHECKING:
    import pandas as pd

# of a column of categories: half of it is the shortest length-scale, where they are unrelated
_CATEGORY_SPACING = 0.5


@dataclass(frozen=True, eq=False)
class Domain(Encoding):
    """A finite set of candidate points, or a box with representer points.

    Create it with `grid`, `table` or `box`.

    Attributes:
        columns: Names of the coordinates.
        points: Coordinates, shape (n, d).
        bounds: Smallest and largest coordinate of each column, shape (d, 2).
        axes: Values of each axis of a grid, the first axis slowest in `points`; None for other
            domains.
        source: Table with a row per point, including columns that are not coordinates, or a
            function that makes it; None if there is none. `frame` is the table.
        continuous: Whether any point inside the bounds may be chosen.
        parameters: Type of each column, which encodes the user's values as coordinates. Default:
            plain numbers, each a `Range` between its bounds.
        constraints: Conditions that a point between those of a grid, or anywhere in a box, must
            satisfy.
        labels: Labels of the rows of the user's own table; None if there are none.
        context: Columns that are given, not chosen, when a measurement is suggested.

    Raises:
        InvalidDomainError: If there are no columns or points, names are duplicated, or a coordinate
            is not finite.
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
        check_columns(self.columns)
        object.__setattr__(self, "context", check_context_columns(self.context, self.columns))
        if len(self.points) == 0:
            raise InvalidDomainError(
                "a domain needs at least one point, got none; give it some points"
            )
        bad = ~np.isfinite(self.points)
        if bad.any():
            row, column = np.argwhere(bad)[0]
            raise InvalidDomainError(
                f"every coordinate must be a finite number, got {self.points[row, column]} in row "
                f"{row}, column "
                f"{self.columns[column]!r}; drop or fix that row"
            )
        self.points.setflags(write=False)
        if self.is_plain:
            plain = [None] * len(self.columns)
            object.__setattr__(self, "parameters", complete_parameters(plain, self.bounds))

    # -- creation
    # ----------------------------------------------------------------------------------------------

    @classmethod
    def grid(cls, /, *, constraints: Any = None, **axes: ArrayLike | Parameter) -> Domain:
        """Return the grid of all combinations of the values of its axes.

        Args:
            constraints: What a point must satisfy to be one of the domain: a text such as "x + y <=
                1", a function of points (q, d), a polygon, a Boolean mask over the full grid, or a
                list of these.
            **axes: Values of each axis, by the name of its column: a list of numbers or of texts,
                or a parameter such as `Log(1e-6, 1e-1, count=6)`, `Integer(1, 12)`,
                `Categorical([...])`, `Ordinal([...])` or `Boolean()`.

        Raises:
            InvalidDomainError: If an axis is empty, or has values that are not finite or occur
                twice; if a constraint cannot be used, or no point satisfies it.

        Example:
            >>> Domain.grid(x=np.linspace(0, 1, 50), y=[1, 2, 3], solver=["lbfgs", "saga"])
            >>> axis = np.linspace(0, 1, 50)
            >>> Domain.grid(x=axis, y=axis, constraints="x + y <= 1")
        """
        return constrain(cls(**grid_fields(axes)), constraints)

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
            frame: A DataFrame of pandas, polars or another library, a pyarrow table, a dictionary
                of arrays, a GeoDataFrame of points, or the path of a CSV file or an Excel workbook.
            columns: Names of the columns that are coordinates. Default: all columns but `label`,
                and but the index that `to_csv` wrote as a first column without a name; for a
                GeoDataFrame the coordinates of its points, named x and y, or lon and lat if they
                are in degrees.
            log: Names of the columns of numbers that have a logarithmic scale; "auto" for those
                that are spaced by ratios rather than by differences, such as 0.01, 0.1, 1, 10.
            constraints: What a row must satisfy to be a point of the domain: the name of a column
                of truth values, a text such as "x + y <= 1", a function of points (q, d), a
                polygon, a Boolean mask over the rows of the given table, including rows that are
                left out, or a list of these.
            label: Name of the column whose values name the rows: `Suggestion.label`. Default: the
                index of the DataFrame; of a file its first column, if that has no name.
            missing: What to do with rows that lack a coordinate: refuse the table, or leave them
                out.
            duplicates: What to do with rows that are the same point as an earlier one: refuse the
                table, or leave them out.
            context: Columns that are given, not chosen, such as the temperature of the day:
                `ask(context={...})`.

        Raises:
            InvalidDomainError: If a column is missing or mixes types, a coordinate is missing, or
                two rows are the same point; if a constraint cannot be used, or no row satisfies it.

        Example:
            >>> Domain.table("lake.csv", columns=["distance_m", "depth_m"])
        """
        rows = read_rows(frame, columns, log, label=label, missing=missing, duplicates=duplicates)
        domain = check_rows(cls(**rows.fields))
        domain = constrain(domain, masks_of_rows(constraints, rows.positions, rows.n_given))
        return domain.with_context(context) if context else domain

    @classmethod
    def from_xarray(cls, data: Any, *, constraints: Any = None) -> Domain:
        """Return the grid of an xarray DataArray or Dataset, or of a NetCDF file.

        Its values become columns, from which noise, cost or truth can be taken. Points without a
        value, such as land in a map of the sea, are left out. Coordinates and attributes come back
        with `Result.to_xarray`.

        Args:
            data: A DataArray or Dataset with a numeric coordinate for every dimension, or the path
                of a NetCDF file that has one.
            constraints: What a point must satisfy to be one of the domain: a text such as "lon + lat
                <= 1", a function of points (q, d), a polygon, or a list of these.

        Raises:
            InvalidDomainError: If it is none of these, or a coordinate is missing or not numeric;
                if a constraint cannot be used, or no point satisfies it.
            MissingDependencyError: If it is a path and xarray is not installed.
        """
        axes, frame = from_xarray(data)
        complete = frame.notna().all(axis=1)
        if not complete.all():
            sea = cls.table(frame[complete], columns=list(axes), constraints=constraints)
            return replace(sea, labels=None)
        return constrain(replace(cls.grid(**axes), source=frame), constraints)

    @classmethod
    def box(
        cls,
        /,
        *,
        representers: int = REPRESENTERS,
        seed: int = 0,
        constraints: Any = None,
        **intervals: tuple[float, float] | Parameter | Sequence[Any],
    ) -> Domain:
        """Return a box. Sums over it run over representer points.

        A box without a continuous side that has no more points than `representers` is a grid.

        Args:
            representers: Number of representer points: about that many on a grid in one and two
                dimensions, exactly that many scrambled Sobol points in more. If some sides have
                few values, equal points count once.
            seed: Seed of the Sobol points.
            constraints: What every point must satisfy: a text such as "x + y <= 1", a function of
                points (q, d), a polygon, or a list of these. A function cannot be stored.
            **intervals: Lower and upper end of each column; or a parameter such as `Log(1e-6,
                1e-1)`, `Integer(1, 12)`, `Categorical([...])`, `Ordinal([...])` or `Boolean()`; or
                a list of texts, which are categories.

        Raises:
            InvalidDomainError: If an interval is not a pair (low, high) with low < high; if a
                constraint cannot be used, or hardly any point satisfies it.

        Example:
            >>> Domain.box(x=(0, 1), y=(0, 1))
            >>> Domain.box(lr=Log(1e-6, 1e-1), depth=Integer(1, 12), solver=["lbfgs", "saga"])
        """
        representers = check_box(intervals, representers)

        def build(count: int) -> Domain:
            return cls(**box_fields(intervals, count, seed))

        return (
            build(representers)
            if constraints is None
            else constrain_box(build, representers, constraints)
        )

    @classmethod
    def mixture(cls, /, *names: str, parts: int = 20, **intervals: tuple[float, float]) -> Domain:
        """Return mixtures: fractions that sum to one, in steps of 1/parts.

        A value may also be told for fractions between the steps.

        Args:
            *names: Components of any fraction, from 0 to 1.
            parts: Number of steps from 0 to 1.
            **intervals: Least and largest fraction of each other component.

        Raises:
            InvalidDomainError: If there are fewer than two components, a name is not a text or
                occurs twice, an interval is not within 0 to 1, or no mixture is possible.

        Example:
            >>> Domain.mixture("water", "ethanol", "acetone")
            >>> Domain.mixture(water=(0.2, 1), ethanol=(0, 1), acetone=(0, 0.3), parts=50)
        """
        return cls(**mixture_fields(names, intervals, parts))

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

    # -- points and columns
    # ----------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        kind = "box" if self.continuous else "table"
        if self.axes is not None:
            kind = "grid"
        columns = "; ".join(f"{name}: {text}" for name, text in _column_texts(self))
        return f"<Domain: {kind} of {len(self)} points; {columns}>"

    def _repr_html_(self) -> str:
        kind = "representer points of a box" if self.continuous else "points"
        rows = _column_texts(self)
        rows += [("constraint", describe_constraint(constraint)) for constraint in self.constraints]
        if self.context:
            rows.append(("context", ", ".join(self.context)))
        return html_card("Domain", f"{len(self)} {kind}", rows)

    def __len__(self) -> int:
        return len(self.points)

    @cached_property
    def frame(self) -> pd.DataFrame | None:
        """Table with a row per point, other columns included; None if there is none."""
        return self.source() if callable(self.source) else self.source

    @property
    def shape(self) -> tuple[int, ...] | None:
        """Lengths of the axes of a grid; None for other domains."""
        return None if self.axes is None else tuple(len(axis) for axis in self.axes)

    @cached_property
    def layout(self) -> GridLayout | None:
        """Layout of the points on a grid, given as one or found in a table; None if there is none."""
        if self.axes is not None:
            return GridLayout(self.axes)
        return None if self.continuous or self.categorical else grid_layout(self.points)

    @cached_property
    def curve_rank(self) -> Index:
        """Rank of each point along a curve through the domain that visits regions in turn, (n,)."""
        return curve_rank(self.points)

    @property
    def axis_values(self) -> tuple[Any, ...] | None:
        """The user's values of each axis of a grid; None for other domains."""
        if self.axes is None:
            return None
        return tuple(
            each.decode_column(axis) for each, axis in zip(self.parameters, self.axes, strict=True)
        )

    @cached_property
    def extent(self) -> Array:
        """Width of the domain along each column, shape (d,); 1 if all points are equal there."""
        width = self.bounds[:, 1] - self.bounds[:, 0]
        extent = np.where(width > 0, width, 1.0)
        extent[list(self.categorical)] = 1.0  # two categories are equal or different
        return extent

    @cached_property
    def slack(self) -> Array:
        """Largest difference between equal coordinates of each column, shape (d,).

        Distinct points differ by more.
        """
        slack = SAME_POINT * self.extent
        if not self.continuous:
            for k, column in enumerate(self.points.T):
                gaps = np.diff(np.unique(column))
                slack[k] = min(slack[k], gaps.min() / 4) if len(gaps) else slack[k]
        return slack

    @cached_property
    def spacing(self) -> Array:
        """Mean distance of neighbours along each column as a share of its extent, shape (d,)."""
        if self.continuous:
            spacing = np.zeros(len(self.columns))
            for k, parameter in enumerate(self.parameters):
                if parameter.n_levels is not None:
                    spacing[k] = 1.0 / max(parameter.n_levels - 1, 1)
        else:
            counts = np.array([len(np.unique(column)) for column in self.points.T])
            spacing = np.asarray(1.0 / np.maximum(counts - 1, 1))
        spacing[list(self.categorical)] = _CATEGORY_SPACING
        return spacing

    def label(self, index: int | None) -> Any:
        """Return the label of a row in the user's own table; None if there is none."""
        return None if index is None or self.labels is None else self.labels[index]

    @property
    def has_row_names(self) -> bool:
        """Whether the rows have labels that say more than their position."""
        return self.labels is not None and not self.labels.are_positions

    # -- display
    # ----------------------------------------------------------------------------------------------

    @cached_property
    def decimals(self) -> tuple[int | None, ...]:
        """Decimal places with which each column is shown; None: those of its values."""
        return shown_decimals(self)

    def shown(self, point: Mapping[str, Any]) -> dict[str, Any]:
        """Return a point rounded for display, still distinct from its neighbours."""
        return shown_point(self, point)

    def canonical(self, points: Array) -> Array:
        """Return the points that stand for points (q, d) of a box: themselves.

        If some columns say nothing about a point, as the parameters of an option that it does
        not have, a subclass returns one of all points that are the same.
        """
        return points

    def point(self, index: int) -> dict[str, Any]:
        """Return the point with that index as {column: value}."""
        return self.named(self.points[index])

    def allows(self, points: Array) -> Mask:
        """Return which points (q, d) the constraints allow to be chosen.

        A point of a box must satisfy them with a margin. Points of a finite domain were selected
        with a tolerance, so that those on the border of a constraint belong to it.
        """
        return self.satisfies(self.constraints, points, -MARGIN if self.continuous else TOLERANCE)

    def satisfies(
        self, constraints: Sequence[Constraint], points: Array, tolerance: float = TOLERANCE
    ) -> Mask:
        """Return which points (q, d) satisfy all constraints, which are about the user's values."""
        result = all_satisfied(constraints, self.numbers(points), self.columns, tolerance)
        for constraint in constraints:
            if isinstance(constraint, LinearConstraint):
                for comparison in constraint.value_comparisons:
                    result &= satisfies_values(self, comparison, constraint.text, points)
        return result

    def nearest(self, x: Array) -> int:
        """Return the index of the point nearest to x, with each column divided by its extent."""
        difference = (self.points - x) / self.extent
        for k in self.categorical:
            difference[:, k] = difference[:, k] != 0
        return int(np.argmin((difference**2).sum(axis=1)))

    def locate(self, point: Mapping[str, Any]) -> tuple[int | None, Array]:
        """Find a point in the domain.

        In a grid and a box any point inside the bounds is accepted, since the model can be
        conditioned on it. In a table only the rows are.

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
            missed = [
                each for each in self.constraints if not self.satisfies([each], x[None, :])[0]
            ]
            if not missed:
                return None, x
            raise PointNotInDomainError(
                f"{format_point(point)} is not in the domain, as it does not satisfy the "
                "constraint "
                f"{describe_constraint(missed[0])}; the nearest point of it is "
                f"{format_point(self.point(index))} "
                f"(index {index})"
            )
        if inside and (self.axes is not None or self.continuous):
            return None, x
        raise PointNotInDomainError(
            f"{format_point(point)} is not in the domain; the nearest point of it is "
            f"{format_point(self.point(index))} "
            f"(index {index}): give that one if it is the one you mean"
        )

    def column(self, name: str) -> Array:
        """Return a numeric column, shape (n,): a coordinate, or another column of the table.

        Raises:
            InvalidDomainError: If there is no such column, or it is not numeric.
        """
        if name in self.columns:
            k = self.columns.index(name)
            if not self.parameters[k].numeric:
                raise InvalidDomainError(
                    f"column {name!r} must contain numbers, got {self.parameters[k].describe()}; "
                    "name another column"
                )
            return self.numbers(self.points)[:, k]
        if self.frame is None:
            raise InvalidDomainError(unknown_name("column", name, self.columns))
        return number_column(self.frame, name)

    def to_frame(self) -> pd.DataFrame:
        """Return the coordinates as a DataFrame, with the index of the user's table if any."""
        import pandas as pd

        index = None if self.labels is None else self.labels.index
        columns = [
            parameter.decode_column(self.points[:, k])
            for k, parameter in enumerate(self.parameters)
        ]
        frame = pd.DataFrame(dict(enumerate(columns))).set_axis(list(self.columns), axis=1)
        return frame if index is None else frame.set_axis(index, axis=0)


def _column_texts(domain: Domain) -> list[tuple[str, str]]:
    """Return the name and the range of every column."""
    if not domain.is_plain:
        return [
            (name, each.describe())
            for name, each in zip(domain.columns, domain.parameters, strict=True)
        ]
    texts = []
    for k, name in enumerate(domain.columns):
        low, high = domain.bounds[k]
        count = "" if domain.axes is None else f", {len(domain.axes[k])} values"
        texts.append((name, f"{low:.6g} to {high:.6g}{count}"))
    return texts
