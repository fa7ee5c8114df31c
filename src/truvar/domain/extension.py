"""Domains that grow during a study: further rows of a table, values of an axis, a wider box.

| word | meaning |
|---|---|
| rows | further rows of a table: those that were there keep their positions, the new ones follow |
| whole | a grid with further values of its axes, or a wider box: its points are in their own order |

A coordinate of the model never changes: further categories follow those that were there, and a
wider interval keeps its scale.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from truvar._typing import Array
from truvar.domain._constrained import constrain_box
from truvar.domain.action import Action
from truvar.domain.box import box_fields
from truvar.domain.constraints import describe_constraint
from truvar.domain.domain import Domain
from truvar.domain.exclusions import Place
from truvar.domain.geo import is_from_xarray
from truvar.domain.grid import SAME_POINT, mesh
from truvar.domain.parameters import (
    Boolean,
    Categorical,
    Integer,
    Ordinal,
    Parameter,
    is_plain_range,
    plain_value,
)
from truvar.domain.table import check_rows, number_column, read_more_rows
from truvar.exceptions import InvalidArgumentError, InvalidDomainError, TruvarError
from truvar.messages import format_point, unknown_name
from truvar.tabular.labels import RowLabels

if TYPE_CHECKING:
    import pandas as pd

_STEP_TOLERANCE = 1e-9  # of a value that is to lie on the steps of its parameter, in steps


@dataclass(frozen=True, eq=False)
class Extension:
    """A change of the domain of a study, as an event holds it. One attribute is given.

    Attributes:
        rows: Further rows of a table; their parameters are those of all rows.
        whole: The domain after the change.
    """

    rows: Domain | None = None
    whole: Domain | None = None

    def to_details(self) -> dict[str, Any]:
        """Return the attribute that is given, as an event holds it."""
        return {name: part for name, part in vars(self).items() if part is not None}

    @staticmethod
    def from_details(details: Mapping[str, Any]) -> Extension:
        """Return the extension that an event holds."""
        return Extension(details.get("rows"), details.get("whole"))

    def describe(self) -> str:
        """Return the extension in words."""
        if self.rows is not None:
            return f"{len(self.rows)} further {'row' if len(self.rows) == 1 else 'rows'}"
        if self.whole is None:
            return "nothing"
        texts = zip(self.whole.columns, self.whole.parameters, strict=True)
        return ", ".join(f"{name} {parameter.describe()}" for name, parameter in texts)

    def apply_to(self, domain: Domain) -> Domain:
        """Return the domain after the change."""
        if self.rows is None:
            if self.whole is None:
                raise AssertionError("an extension has rows or a whole domain")
            return self.whole
        rows = self.rows
        points = np.vstack([domain.points, rows.points])
        source = None if domain.source is None else partial(_joined_frame, domain, rows)
        parameters = () if domain.is_plain else rows.parameters
        low = np.minimum(domain.bounds[:, 0], rows.points.min(axis=0))
        high = np.maximum(domain.bounds[:, 1], rows.points.max(axis=0))
        return replace(
            domain,
            points=points,
            bounds=np.stack([low, high], axis=1),
            source=source,
            parameters=parameters,
            labels=_joined_labels(domain.labels, rows.labels),
        )


def _joined_frame(domain: Domain, rows: Domain) -> pd.DataFrame:
    """Return the table of a domain with further rows."""
    import pandas as pd

    if domain.frame is None or rows.frame is None:
        raise AssertionError("a domain with a table is extended by one")
    frame = pd.concat([domain.frame, rows.frame[list(domain.frame.columns)]], ignore_index=True)
    frame.attrs = dict(domain.frame.attrs)
    return frame


def _joined_labels(labels: RowLabels | None, more: RowLabels | None) -> RowLabels | None:
    """Return the labels of all rows; rows that are only numbered are numbered on."""
    if labels is None or more is None:
        return None
    if labels.are_positions and isinstance(more.values, range):
        return RowLabels(range(len(labels) + len(more)), labels.names)
    return RowLabels.of(labels.index.append(more.index).set_names(labels.names))


class Relocation:
    """Rows of the points of a domain in the domain that it was extended to.

    Args:
        old: The domain before.
        new: The domain after. A representer of a box may be none of it.
    """

    def __init__(self, old: Domain, new: Domain) -> None:
        self._n_columns = len(new.columns)
        self._n_points = len(new)
        self._row_of = _row_by_point(new)
        self._old_points = old.points

    def row(self, row: int) -> int | None:
        """Return the new row of an old one."""
        return self._row_of.get(_key(self._old_points[row]))

    def action(self, action: Action) -> Action:
        """Return a measurement with its new site. Every task has a site for each point."""
        row = self._row_of.get(_key(action.point[: self._n_columns]))
        site = None if row is None else action.task * self._n_points + row
        return action if site == action.site else replace(action, site=site)

    def place(self, place: Place) -> Place:
        """Return a place with its new rows; those of a finite domain are all in the new one."""
        if place.rows is None:
            return place
        rows = (self.row(row) for row in place.rows)
        return replace(place, rows=tuple(row for row in rows if row is not None))


def _key(point: Array) -> bytes:
    return (point + 0.0).tobytes()  # adding 0 makes -0.0 and 0.0 the same


def _row_by_point(domain: Domain) -> dict[bytes, int]:
    return {_key(point): row for row, point in enumerate(domain.points)}


# -- what callers give
# --------------------------------------------------------------------------------------------------


def as_values(given: Any) -> Any:
    """Return what `Study.extend` is given, with lists of values in place of parameters and arrays.

    Raises:
        InvalidArgumentError: If nothing is given.
    """
    if given is None or (isinstance(given, Mapping) and not given):
        raise InvalidArgumentError(
            "extend needs a table of further rows, or values by column, got nothing; give a table, "
            "or x=(0, 2)"
        )
    if not isinstance(given, Mapping):
        return given
    return {str(name): _listed(name, values) for name, values in given.items()}


def _listed(name: str, values: Any) -> list[Any]:
    if isinstance(values, Parameter):
        has_levels = values.n_levels is not None or getattr(values, "count", None) is not None
        levels = values.grid_levels(name) if has_levels else np.array(values.bounds)
        return [plain_value(value) for value in values.decode_column(levels).tolist()]
    if isinstance(values, str) or np.ndim(values) == 0:
        return [plain_value(values)]
    return [plain_value(value) for value in values]


def extension_of(domain: Domain, given: Any, others: Sequence[str] = ()) -> Extension:
    """Return the extension of a domain that a caller describes.

    Args:
        domain: The domain.
        given: For a table a table with its columns; for a grid further values of axes by name, for
            a box the ends or values of sides by name.
        others: Columns that the rows of a table must have besides its own.

    Raises:
        InvalidDomainError: If the domain cannot be extended by that.
    """
    if type(domain) is not Domain:
        raise InvalidDomainError(
            f"a domain of the class {type(domain).__name__} cannot be extended; create a new study"
        )
    if domain.axes is None and not domain.continuous:
        return Extension(rows=_more_rows(domain, given, others))
    kind = "box" if domain.continuous else "grid"
    if not isinstance(given, Mapping):
        example = "(0, 2)" if domain.continuous else "[1.1, 1.2]"
        raise InvalidDomainError(
            f"a {kind} is extended by values of its columns, got a table; give them by name, such "
            f"as {domain.columns[0]}={example}"
        )
    if others:
        raise InvalidDomainError(
            f"{others[0]} has a value for every point of the {kind}, which says nothing about "
            "further points; create a new study, with a number or a function for it"
        )
    for name in given:
        if name not in domain.columns:
            raise InvalidDomainError(
                f"the extension has an {unknown_name('column', name, domain.columns)}"
            )
    if domain.continuous:
        return Extension(whole=_wider_box(domain, given))
    return Extension(whole=_larger_grid(domain, given))


def setting_of_rows(rows: Domain, name: str) -> Array:
    """Return a setting of further rows, such as their noise, from their column of that name."""
    if rows.frame is None:
        raise AssertionError("rows with a setting have a table")
    return number_column(rows.frame, name)


# -- tables
# --------------------------------------------------------------------------------------------------


def _more_rows(domain: Domain, given: Any, others: Sequence[str]) -> Domain:
    """Return further rows of a table, with parameters for all rows."""
    if is_from_xarray(domain.frame):
        raise InvalidDomainError(
            "a domain that was made from an xarray grid cannot be extended; create a new study of "
            "the larger grid"
        )
    frame, labels = read_more_rows(given, domain, others)
    pairs = list(zip(domain.columns, domain.parameters, strict=True))
    parameters: tuple[Parameter, ...] = ()
    if domain.is_plain:
        points = np.column_stack([number_column(frame, name) for name in domain.columns])
    else:
        parameters = tuple(_widened(each, frame[name].tolist(), name) for name, each in pairs)
        types = zip(domain.columns, parameters, strict=True)
        points = np.column_stack([each.encode_column(frame[name], name) for name, each in types])
    source = frame if domain.source is not None or others else None
    rows = Domain(
        columns=domain.columns,
        points=points,
        bounds=np.stack([points.min(axis=0), points.max(axis=0)], axis=1),
        source=source,
        parameters=parameters,
        constraints=domain.constraints,
        labels=None if domain.labels is None else labels,
    )
    check_rows(rows)
    _check_constraints(rows)
    _check_new(domain, rows)
    return rows


def _check_constraints(rows: Domain) -> None:
    for constraint in rows.constraints:
        satisfied = rows.satisfies([constraint], rows.points)
        if not satisfied.all():
            row = int(np.argmin(satisfied))
            raise InvalidDomainError(
                f"row {row} of the extension, {format_point(rows.point(row))}, does not satisfy "
                f"the constraint {describe_constraint(constraint)}; leave it out"
            )


def _check_new(domain: Domain, rows: Domain) -> None:
    """Check that no row is a point of the domain already."""
    known = _row_by_point(domain)
    repeated = [
        (row, known[_key(point)]) for row, point in enumerate(rows.points) if _key(point) in known
    ]
    if repeated:
        row, index = repeated[0]
        more = len(repeated) - 1
        others = ""
        if more:
            others = f", and {more} more {'row is' if more == 1 else 'rows are'}"
        raise InvalidDomainError(
            f"row {row} of the extension, {format_point(rows.point(row))}, is in the domain "
            f"already (index {index}){others}; leave out the rows that it has"
        )


# -- grids and boxes
# --------------------------------------------------------------------------------------------------


def _larger_grid(domain: Domain, given: Mapping[str, Sequence[Any]]) -> Domain:
    """Return a grid with further values of its axes; values that it has are left out."""
    if domain.frame is not None:
        raise InvalidDomainError(
            "a grid with a table of values, as from xarray, cannot be extended; create a new study "
            "of the larger grid"
        )
    axes = list(domain.axes or ())
    parameters = list(domain.parameters)
    for name, values in given.items():
        k = domain.columns.index(name)
        if not values:
            raise InvalidDomainError(
                f"axis {name!r} needs further values, got none; give at least one"
            )
        parameters[k] = _widened(domain.parameters[k], values, name)
        axes[k] = _joined_axis(axes[k], parameters[k].encode_column(values, name))
    if all(len(axis) == len(old) for axis, old in zip(axes, domain.axes or (), strict=True)):
        raise InvalidDomainError(
            f"the grid has all these values of {', '.join(map(repr, given))} already; give further "
            "ones"
        )
    return replace(
        domain,
        points=mesh(axes),
        bounds=np.array([(axis.min(), axis.max()) for axis in axes]),
        axes=tuple(axes),
        parameters=() if domain.is_plain else tuple(parameters),
    )


def _joined_axis(axis: Array, more: Array) -> Array:
    """Return an axis with further values, in ascending or descending order if it was."""
    joined = axis.tolist()
    for value in more.tolist():
        low = min(*joined, value)
        # As for the axes of a new grid: the scale is the smaller of range and magnitude.
        span = max(*joined, value) - low
        gaps = [abs(value - other) for other in joined]
        scales = [min(span, max(abs(value), abs(other))) for other in joined]
        if not any(gap <= SAME_POINT * scale for gap, scale in zip(gaps, scales, strict=True)):
            joined.append(value)
    steps = np.diff(axis)
    values = np.array(joined)
    if (steps > 0).all():
        return np.sort(values)
    return np.sort(values)[::-1].copy() if (steps < 0).all() else values


def _wider_box(domain: Domain, given: Mapping[str, Sequence[Any]]) -> Domain:
    """Return a box with wider sides, and about as many representers."""
    sides: dict[str, Any] = {}
    for name, parameter in zip(domain.columns, domain.parameters, strict=True):
        wider = parameter
        if name in given:
            wider = _wider_side(parameter, given[name], name)
        sides[name] = wider.bounds if is_plain_range(wider) else wider
    widened = [
        sides[name] != (each.bounds if is_plain_range(each) else each)
        for name, each in zip(domain.columns, domain.parameters, strict=True)
    ]
    if not any(widened):
        raise InvalidDomainError(
            f"the box has these sides already: {', '.join(map(repr, given))}; give wider ones"
        )

    def build(count: int) -> Domain:
        return Domain(**box_fields(sides, count))

    wider_box = build(len(domain))
    if domain.constraints:
        wider_box = constrain_box(build, len(domain), list(domain.constraints))
    return replace(wider_box, context=domain.context)


def _wider_side(parameter: Parameter, values: Sequence[Any], name: str) -> Parameter:
    """Return the parameter of a side that a caller gives by its ends, or by its values."""
    if isinstance(parameter, (Categorical, Ordinal, Boolean)):
        if not values:
            raise InvalidDomainError(
                f"side {name!r} needs further values, got none; give at least one"
            )
        return _widened(parameter, values, name)
    is_pair = len(values) == 2
    lists_integers = isinstance(parameter, Integer) and len(values) > 2
    if not (is_pair or lists_integers):
        raise InvalidDomainError(
            f"interval {name!r} must be a pair (low, high), got {list(values)!r}; give one such as "
            "(0, 2)"
        )
    wider = _widened(parameter, values, name)
    start, end = (_encoded(parameter, value, name) for value in (values[0], values[-1]))
    if start > end:
        raise InvalidDomainError(
            f"interval {name!r} must have low < high, got {values[0]} and {values[-1]}; swap them"
        )
    low, high = parameter.bounds
    if start > low or end < high:
        raise InvalidDomainError(
            f"interval {name!r} must contain the present one, {parameter.describe()}, got "
            f"{values[0]} to {values[-1]}; give wider ends, and exclude what cannot be measured"
        )
    return wider


# -- parameters
# --------------------------------------------------------------------------------------------------


def _widened(parameter: Parameter, values: Sequence[Any], name: str) -> Parameter:
    """Return a parameter that has further values, on the same scale.

    Raises:
        TruvarError: If a value has another type, or does not lie on the steps.
    """
    values = [plain_value(value) for value in values]
    if isinstance(parameter, (Categorical, Ordinal)):
        return _with_choices(parameter, values, name)
    if isinstance(parameter, Boolean):
        for value in values:
            parameter.encode(value, name)
        return parameter
    coordinates = [_encoded(parameter, value, name) for value in values]
    low, high = parameter.bounds
    step = getattr(parameter, "step", None)
    if step is not None:
        _check_steps(values, float(parameter.decode(low)), step, name)
    changes: dict[str, Any] = {}
    if min(coordinates) < low:
        changes["low"] = values[int(np.argmin(coordinates))]
    if max(coordinates) > high:
        changes["high"] = values[int(np.argmax(coordinates))]
    if isinstance(getattr(parameter, "low", None), int):
        changes = {end: int(value) for end, value in changes.items()}
    return replace(parameter, **changes) if changes else parameter


def _encoded(parameter: Parameter, value: Any, name: str) -> float:
    if isinstance(value, (str, bool)) and parameter.numeric:
        raise InvalidDomainError(
            f"column {name!r} of the extension must contain numbers, got {value!r}; fix or drop it"
        )
    try:
        return parameter.encode(value, name)
    except TruvarError as error:
        message = str(error).replace("of the point", "of the extension")
        raise InvalidDomainError(message) from None


def _check_steps(values: Sequence[Any], low: float, step: float, name: str) -> None:
    """Check that values lie on the steps of a parameter, counted from its lower end."""
    for value in values:
        position = (float(value) - low) / step
        if abs(position - round(position)) > _STEP_TOLERANCE:
            raise InvalidDomainError(
                f"values of column {name!r} lie {step:g} apart, counted from {low:g}, got {value}; "
                f"give {low + round(position) * step:g}"
            )


def _with_choices(
    parameter: Categorical | Ordinal, values: Sequence[Any], name: str
) -> Categorical | Ordinal:
    """Return a list of values with further ones at its end, so that the others keep their places."""
    kinds = {type(choice) for choice in parameter.choices}
    more = [value for value in dict.fromkeys(values) if value not in parameter.choices]
    for value in more:
        if (str in kinds) != isinstance(value, str) and value is not None:
            expected = "text" if str in kinds else "numbers"
            raise InvalidDomainError(
                f"column {name!r} of the extension must contain {expected}, got {value!r}; fix or "
                "drop it"
            )
    return replace(parameter, choices=(*parameter.choices, *more)) if more else parameter
