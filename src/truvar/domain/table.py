"""Tables whose rows are the points of a domain."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from truvar._typing import Array, Index, Mask
from truvar.domain._encoding import check_columns
from truvar.domain._recognition import table_parameter
from truvar.domain.geo import ORIGINS, from_geopandas, is_geographic_table
from truvar.domain.parameters import Integer, Parameter, complete_parameters
from truvar.domain.scales import is_geometric
from truvar.exceptions import InvalidDomainError
from truvar.messages import for_interface, format_point, unknown_name
from truvar.tabular.column_types import (
    default_coordinates,
    empty_column,
    file_label,
    is_saved_index,
    usable_columns,
    warn_of_shifted_columns,
    with_plain_codes,
    with_text_names,
)
from truvar.tabular.delimited import find_column
from truvar.tabular.labels import RowLabels
from truvar.tabular.tables import as_table, row_names
from truvar.validation import check_names

if TYPE_CHECKING:
    import pandas as pd

    from truvar.domain.domain import Domain

_LISTED_ROWS = 10  # rows that a message lists, at most
# quotient of the largest and the smallest number of a column from which a log scale is detected
LOG_RATIO = 100.0


@dataclass(frozen=True)
class TableRows:
    """Rows of a user's table that are points.

    Attributes:
        fields: Fields of the `Domain`.
        positions: Positions of these rows in the given table.
        n_given: Number of rows of the given table.
    """

    fields: dict[str, Any]
    positions: Index
    n_given: int


def read_rows(
    frame: Any,
    columns: Sequence[str] | None,
    log: Sequence[str] | str,
    *,
    label: str | None,
    missing: str,
    duplicates: str,
) -> TableRows:
    """Return the rows of a table; the arguments are those of `Domain.table`.

    Raises:
        InvalidDomainError: If a column is missing or mixes types, or a coordinate is missing.
    """
    geographic: tuple[str, ...] | None = None
    if is_geographic_table(frame):
        frame, geographic = from_geopandas(frame)
    given = frame
    frame = with_text_names(as_table(given))
    if isinstance(columns, str):
        raise InvalidDomainError(
            f"columns must be a list of names, got {columns!r}; give [{columns!r}]"
        )
    label = file_label(given, frame, columns) if label is None else label
    names = geographic or default_coordinates(frame, label)
    if columns is not None:
        names = tuple(str(name) for name in columns)
        frame = _without_units(frame, names)
    check_columns(names)
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
    types = [
        table_parameter(_checked_column(frame, name), name, name in logarithmic) for name in names
    ]
    frame = with_plain_codes(frame, names)
    points = np.empty((len(frame), len(names)))
    for k, name in enumerate(names):
        parameter = types[k]
        points[:, k] = (
            number_column(frame, name)
            if parameter is None
            else parameter.encode_column(frame[name], name)
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
        parameters = complete_parameters(types, bounds)
    fields = row_fields(names, points, frame.reset_index(drop=True), parameters, labels)
    return TableRows(fields, rows, n_given)


def read_more_rows(given: Any, domain: Domain, others: Sequence[str]) -> tuple[Any, RowLabels]:
    """Return further rows of the table of a domain, and their labels.

    Args:
        given: A table as `Domain.table` takes it, with the columns of the domain's.
        domain: A domain of rows.
        others: Further columns that the table must have.

    Raises:
        InvalidDomainError: If there are no rows, a column is missing or unknown, or a coordinate is
            missing.
    """
    table = domain.frame
    known = list(domain.columns) if table is None else [str(name) for name in table.columns]
    others = [name for name in others if name not in known]
    if is_geographic_table(given):
        given, _ = from_geopandas(given)
        given.attrs.update(_same_origin(given, table))
    frame = _without_units(with_text_names(as_table(given)), known)
    if len(frame) == 0:
        raise InvalidDomainError(
            "an extension needs rows to measure at, got no rows; give it at least one"
        )
    label = file_label(given, frame, domain.columns)
    named = None if domain.labels is None else domain.labels.names[0]
    if label is None and named in frame.columns:
        label = named
    saved = [name for name in known if is_saved_index(name)]
    for name in frame.columns:
        if name not in known and name not in others and not is_saved_index(name):
            raise InvalidDomainError(
                f"the extension has an {unknown_name('column', name, [*known, *others])}"
            )
    for name in [*known, *others]:
        if name not in frame.columns and name not in saved:
            raise InvalidDomainError(
                f"an extension needs the columns {', '.join([*known, *others])}, but {name!r} is "
                "missing; add it"
            )
    frame = with_plain_codes(usable_columns(frame, domain.columns), domain.columns)
    labels = RowLabels.of(row_names(frame, label))
    for name in (*domain.columns, *others):
        _checked_column(frame, name)
    _complete_rows(frame, domain.columns, "refuse")
    return frame.reindex(columns=[*known, *others]).reset_index(drop=True), labels


def _same_origin(frame: pd.DataFrame, table: pd.DataFrame | None) -> dict[str, Any]:
    """Return what a table of points was made of, which must be that of the domain's table."""
    known = {} if table is None else table.attrs
    for key in ORIGINS:
        if key in frame.attrs and frame.attrs[key] != known.get(key):
            raise InvalidDomainError(
                "the points of an extension must have the geometry and the coordinate reference "
                "system of the domain, got others; convert them with frame.to_crs(...)"
            )
    return {key: known[key] for key in ORIGINS if key in known}


def row_fields(
    columns: Sequence[str],
    points: Array,
    source: pd.DataFrame | Callable[[], pd.DataFrame],
    parameters: tuple[Parameter, ...] = (),
    labels: RowLabels | None = None,
) -> dict[str, Any]:
    """Return the fields of the `Domain` of a table whose coordinates have been read.

    Args:
        columns: Names of the coordinates.
        points: Coordinates of the rows. (n, d)
        source: The table, or a function that makes it when it is needed.
        parameters: Type of each column; empty if all are plain numbers.
        labels: Labels of the rows, if they have some.

    Raises:
        InvalidDomainError: If there are no rows.
    """
    if len(points) == 0:
        raise InvalidDomainError(
            "a table needs rows to measure at, got no rows; give it at least one"
        )
    return {
        "columns": tuple(columns),
        "points": points,
        "bounds": np.stack([points.min(axis=0), points.max(axis=0)], axis=1),
        "source": source,
        "parameters": parameters,
        "labels": labels,
    }


def check_rows(domain: Domain) -> Domain:
    """Return the domain of a table.

    Raises:
        InvalidDomainError: If two of its rows are the same point.
    """
    duplicate = _first_duplicate(domain.points)
    if duplicate is not None:
        first, second = duplicate
        more = int(_is_duplicate(domain.points).sum()) - 1
        others = ""
        if more:
            others = f", and {more} more {'row repeats' if more == 1 else 'rows repeat'} others"
        raise InvalidDomainError(
            f"every row must be a different point, but rows {first} and {second} are both "
            f"{format_point(domain.point(first))}{others}; drop one of them (a point can be "
            "measured repeatedly, "
            f"but it is listed once), or give {_option('duplicates')}"
        )
    return domain


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
            f"column {name!r} must contain numbers, got {frame[name].iloc[row]!r} in row {row}; "
            "fix or drop that row"
        ) from None


def _log_columns(frame: pd.DataFrame, names: Sequence[str], log: Sequence[str] | str) -> list[str]:
    """Return the columns that have a logarithmic scale.

    Raises:
        InvalidDomainError: If one of them is not a column of numbers.
    """
    if isinstance(log, str) and log != "auto":
        raise InvalidDomainError(
            f'log must be "auto" or a list of columns, got {log!r}; give [{log!r}]'
        )
    if log == "auto":
        numeric = [name for name in names if _checked_column(frame, name).dtype.kind in "iuf"]
        return [
            name for name in numeric if is_geometric(frame[name].to_numpy(dtype=float), LOG_RATIO)
        ]
    for name in log:
        if name not in names:
            raise InvalidDomainError(f"log has an {unknown_name('column', name, names)}")
        if _checked_column(frame, name).dtype.kind not in "iuf":
            raise InvalidDomainError(
                f"log must name columns of numbers, got {name!r}, which has others; leave it out"
            )
    return list(log)


def _without_units(frame: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """Return a table whose headers have the given names where they had a unit behind them."""
    found = {find_column(frame.columns, name): name for name in names if name not in frame.columns}
    found.pop(None, None)
    return frame.rename(columns=found) if found else frame


def _complete_rows(frame: pd.DataFrame, names: Sequence[str], missing: str) -> Mask:
    """Return which rows of a table have all coordinates.

    Raises:
        InvalidDomainError: If coordinates are missing and those rows are not to be dropped; names
            all such rows.
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
        listed = ", ".join(map(str, rows[:_LISTED_ROWS])) + ", ..." * (len(rows) > _LISTED_ROWS)
        if lacking.all(axis=0).any():
            raise empty_column(names[int(np.argmax(lacking.all(axis=0)))], frame)
        raise InvalidDomainError(
            f"every coordinate must be {expected} in row {rows[0]}, column {column!r} ({len(rows)} "
            f"incomplete row{'s' * (len(rows) > 1)}: {listed}); drop or fix that row, or give "
            f"{_option('missing')}"
        )
    return np.logical_not(empty)


def _drops(choice: str, name: str) -> bool:
    """Return whether rows are to be dropped."""
    if choice not in ("refuse", "drop"):
        raise InvalidDomainError(
            f"{name} must be 'refuse' or 'drop', got {choice!r}; give one of them"
        )
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
