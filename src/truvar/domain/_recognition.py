"""Recognition of the types of columns that users give without naming a type."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, datetime, time
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from truvar.domain.dates import Date, as_moment, days_since_epoch, is_date, zone_name
from truvar.domain.parameters import Boolean, Categorical, Log, Parameter, is_number, plain_value
from truvar.exceptions import InvalidDomainError

if TYPE_CHECKING:
    import pandas as pd

SLASHED_DATE = re.compile(r"\d{1,2}/\d{1,2}/\d{4}")


def box_parameter(name: str, given: Any) -> Parameter | None:
    """Return the parameter that a side of a box describes; None for an interval (low, high)."""
    if isinstance(given, Parameter):
        return given
    if isinstance(given, (list, tuple)):
        values = [plain_value(value) for value in given]
        if values and all(isinstance(value, bool) for value in values):
            return _check_boolean_list(name, values)
        if any(isinstance(value, (str, bool)) or value is None for value in values):
            return Categorical(values)
    return None


def grid_parameter(name: str, given: Any) -> Parameter | None:
    """Return the parameter that an axis of a grid describes; None for a list of numbers."""
    if isinstance(given, Parameter):
        return given
    return box_parameter(
        name, given.tolist() if isinstance(given, np.ndarray) and given.ndim == 1 else given
    )


def _check_boolean_list(name: str, values: Sequence[bool]) -> Boolean:
    if sorted(values) != [False, True]:
        raise InvalidDomainError(
            f"{name!r} must be [false, true] to be a choice, got {list(values)!r}; give both"
        )
    return Boolean()


def table_parameter(column: pd.Series, name: str, log: bool) -> Parameter | None:
    """Return the parameter that a column of a table holds; None for a column of plain numbers.

    Args:
        column: The column.
        name: Its name, for the message.
        log: Whether its numbers lie on a logarithmic scale.

    Raises:
        InvalidDomainError: If the column mixes types, or misses a value.
    """
    kind = column.dtype.kind
    if kind in "iuf":
        return _log_column(column, name) if log else None
    if kind == "b":
        return Boolean()
    _check_complete(column, name)
    values = [plain_value(value) for value in column]
    if str(column.dtype) == "category" and values and all(is_number(str(v)) for v in values):
        return Categorical(sorted(set(values), key=float))  # codes, see `usable_columns`
    if kind == "M" or all(isinstance(value, (date, datetime)) for value in values):
        return _date_column(values, name) if values else None
    if all(isinstance(value, bool) for value in values):
        return Boolean()
    if not values or all(isinstance(value, Real) for value in values):
        return None
    return _text_parameter(values, name)


def _text_parameter(values: Sequence[Any], name: str) -> Parameter:
    """Return the parameter of a column with texts: dates if all of them are dates, else categories.

    Raises:
        InvalidDomainError: If other values than texts are among them, most of them are numbers, or
            the order of day and month is not known.
    """
    for row, value in enumerate(values):
        if not isinstance(value, (str, bool)):
            raise InvalidDomainError(
                f"column {name!r} must contain numbers or text, not both, got {value!r} in row "
                f"{row}; fix that row, or "
                "write all values as text"
            )
    others = [row for row, value in enumerate(values) if not is_number(str(value))]
    if 2 * len(others) < len(
        values
    ):  # a column of numbers with a typing error must not become a list of categories
        raise InvalidDomainError(
            f"column {name!r} must contain numbers, got {values[others[0]]!r} in row {others[0]}; "
            "fix or drop that row"
        )
    if all(SLASHED_DATE.match(str(value)) for value in values):
        raise InvalidDomainError(
            f"column {name!r} holds dates such as {values[0]!r}, in which the day or the month may "
            "come first; write "
            "them as 2026-05-01, or convert the column: pd.to_datetime(frame[...], "
            "format='%m/%d/%Y')"
        )
    if all(is_date(str(value)) for value in values):
        return _date_column(values, name)
    return Categorical(list(dict.fromkeys(values)))


def _date_column(values: Sequence[Any], name: str) -> Date:
    moments = [as_moment(value, f"column {name!r}") for value in values]
    has_zone = [moment.tzinfo is not None for moment in moments]
    if any(has_zone) and not all(has_zone):
        row = has_zone.index(False)
        raise InvalidDomainError(
            f"all times of column {name!r} must have an offset from UTC, or none of them, got "
            f"{values[row]!r} in row "
            f"{row}; add the offset there"
        )
    # By the instant: Python compares times of one zone by the clock, which repeats an hour in
    # autumn.
    low = min(moments, key=days_since_epoch)
    high = max(moments, key=days_since_epoch)
    if all(moment.time() == time() for moment in moments):
        return Date(low, high, timezone=zone_name(moments))
    # Midnight at both ends must not hide the times in between.
    return Date(low.isoformat(), high.isoformat(), timezone=zone_name(moments))


def _log_column(column: pd.Series, name: str) -> Log:
    values = column.to_numpy(dtype=float)
    if not (values > 0).all():
        row = int(np.argmin(values > 0))
        raise InvalidDomainError(
            f"column {name!r} is to have a log scale, so its numbers must be > 0, got "
            f"{values[row]} in row {row}; "
            "leave it out of log"
        )
    low = float(values.min())
    high = float(values.max())
    return Log(low, high) if low < high else Log(low, 10 * low)


def _check_complete(column: pd.Series, name: str) -> None:
    missing = column.isna().to_numpy()
    if missing.any():
        row = int(np.argmax(missing))
        raise InvalidDomainError(
            f"column {name!r} must have a value in every row, got none in row {row}; fix or drop "
            "that row"
        )
