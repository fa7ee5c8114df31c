"""Columns of a user's table before they become coordinates: names, and unusable types.

| column | what happens |
|---|---|
| whose name is a number | the name becomes text |
| "Unnamed: 0", which `to_csv` wrote as the index | it is no coordinate unless it is named as one |
| another one without a name | refused, or left out if it is empty |
| decimals, and numbers that were read as text | become floats |
| complex numbers, durations, periods, other objects | refused, with what to write instead |
| numbers of the pandas type "category" without an order | categories |
| numbers with a unit, "10 %" | categories, with a warning |
| numbers with a decimal comma, "0,5", that were read as text | categories, with a warning |
| an empty last one, where rows have labels without a name | a warning: pandas may have shifted the columns |
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from datetime import date, timedelta
from decimal import Decimal
from math import nan
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

from truvar.exceptions import InvalidDomainError

if TYPE_CHECKING:
    import pandas as pd

# what pandas calls a first column without a name, such as the index that `to_csv` wrote
SAVED_INDEX = "Unnamed: 0"
_SHIFTED_REMEDY = (
    "if the lines of the file end with a delimiter, pandas shifted the columns: read it with "
    "Domain.table(path) or "
    "pd.read_csv(path, index_col=False)"
)
_SHOWN_LABELS = 3  # labels that a message repeats
_UNNAMED = re.compile(r"Unnamed: (?P<position>\d+)")
_DECIMAL_COMMA = re.compile(r"[+-]?(?:\d+,?\d*|,\d+)(?:[eE][+-]?\d+)?")
_WITH_UNIT = re.compile(r"[+-]?(?:\d+[.,]?\d*|[.,]\d+)\s*(?P<unit>[^\d\s.,:;/+-]\S*)")


def with_text_names(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table whose columns are named by text; a name that is a number is written as text.

    Raises:
        InvalidDomainError: If the names have several levels.
    """
    if frame.columns.nlevels > 1:
        raise InvalidDomainError(
            f"a column must have one name, got {frame.columns[0]!r}; join the levels: "
            'frame.columns = ["_".join(map(str, name)) for name in frame.columns]'
        )
    if all(isinstance(name, str) for name in frame.columns):
        return frame
    return frame.set_axis([str(name) for name in frame.columns], axis=1)


def default_coordinates(frame: pd.DataFrame, label: str | None) -> tuple[str, ...]:
    """Return the default coordinates: all columns but labels and empty ones without a name.

    Args:
        frame: The table.
        label: Name of the column whose values name the rows.

    Raises:
        InvalidDomainError: If a column that is not empty has no name.
    """
    names = []
    for position, name in enumerate(frame.columns):
        if name == label or (position == 0 and is_saved_index(name)):
            continue
        if not _is_unnamed(name):
            names.append(name)
        elif not frame.iloc[:, position].isna().all():
            raise InvalidDomainError(
                f"every column must have a name, but column {position + 1} has none; name it in "
                "the header, or list "
                "the coordinates: columns=[...]"
            )
    return tuple(names)


def file_label(given: Any, frame: pd.DataFrame, columns: Sequence[str] | None) -> str | None:
    """Return the column of a file that names its rows: a first one without a name.

    The rows of a DataFrame are named by its index, so that `frame.loc[label]` is the row.

    Args:
        given: The table or path as the user gave it.
        frame: The table that was read.
        columns: Names of the coordinates, if they are given.
    """
    if not isinstance(given, (str, Path)) or not len(frame.columns):
        return None
    first = str(frame.columns[0])
    if not is_saved_index(first) or first in (columns or ()) or not frame[first].is_unique:
        return None
    return first


def empty_column(name: str, frame: pd.DataFrame) -> InvalidDomainError:
    """Return the exception for a coordinate that is missing in every row."""
    remedy = f"leave {name!r} out of the columns"
    if name == frame.columns[-1]:
        remedy += f"; or, {_SHIFTED_REMEDY}"
    return InvalidDomainError(
        f"every coordinate must be given, got none in any row of column {name!r}; {remedy}"
    )


def warn_of_shifted_columns(frame: pd.DataFrame, names: Sequence[str]) -> None:
    """Warn if pandas may have taken the first cell of every line for a label.

    It does so if all lines end with a delimiter.

    The last column is empty then, and the rows have labels without a name. A table with labels of
    its own and a last column that is yet to be filled in looks the same, so that this is no error.

    Args:
        frame: The table.
        names: Names of the coordinates; one that is empty is an error anyway.
    """
    import pandas as pd

    labels = frame.index
    if (
        frame.empty
        or labels.nlevels > 1
        or labels.name is not None
        or labels.equals(pd.RangeIndex(len(frame)))
    ):
        return
    last = frame.columns[-1]
    if last in names or not frame.iloc[:, -1].isna().all():
        return
    shown = ", ".join(str(label) for label in labels[:_SHOWN_LABELS])
    warnings.warn(
        f"column {last!r} is empty, and the rows have labels without a name ({shown}, ...); "
        f"{_SHIFTED_REMEDY}",
        stacklevel=4,
    )


def is_saved_index(name: str) -> bool:
    """Return whether the first column of a file with that name is the index that `to_csv` wrote."""
    return name in ("", SAVED_INDEX)


def _is_unnamed(name: str) -> bool:
    return name == "" or _UNNAMED.fullmatch(name) is not None


def usable_columns(frame: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """Return a table with types that `table_parameter` reads: numbers as objects become floats.

    Columns that are missing or duplicated are left to the checks that name them.

    Args:
        frame: The table.
        names: Names of the coordinates.

    Raises:
        InvalidDomainError: If a coordinate is complex, a duration, a period or another object.
    """
    import pandas as pd

    for name in names:
        if list(frame.columns).count(name) != 1:
            continue
        column = frame[name]
        kind = column.dtype.kind
        if kind in "biuf":
            continue
        if kind == "c":
            raise _not_a_coordinate(name, "complex numbers", column.iloc[0], _COMPLEX_REMEDY)
        if kind == "m":
            raise _not_a_coordinate(name, "durations", column.iloc[0], _duration_remedy(name))
        if str(column.dtype).startswith("period"):
            remedy = f"convert it with frame[{name!r}].dt.to_timestamp()"
            raise _not_a_coordinate(name, "periods", column.iloc[0], remedy)
        if kind == "M":
            continue
        values = list(column.dropna())
        _check_objects(name, values)
        if str(column.dtype) != "category":
            _warn_of_units(name, values)
            _warn_of_decimal_commas(name, values)
        if _has_codes(column):
            continue
        if values and all(_is_number(value) for value in values):
            frame = frame.assign(
                **{name: pd.Series(column.to_numpy(dtype=float, na_value=nan), index=column.index)}
            )
    return frame


def _has_codes(column: pd.Series) -> bool:
    """Return whether a pandas type says that numbers, or texts of digits, are categories."""
    if str(column.dtype) != "category" or column.cat.ordered:
        return False
    codes = list(column.cat.categories)
    is_plain = column.cat.categories.dtype.kind in "iuf"
    return is_plain or (bool(codes) and all(isinstance(c, str) and _is_real(c) for c in codes))


def with_plain_codes(frame: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """Return a table in which codes have their own type, as they are stored."""
    for name in names:
        if list(frame.columns).count(name) == 1 and _has_codes(frame[name]):
            frame = frame.assign(**{name: frame[name].astype(frame[name].cat.categories.dtype)})
    return frame


_COMPLEX_REMEDY = "give the real and the imaginary part as two columns"


def _check_objects(name: str, values: Sequence[Any]) -> None:
    """Refuse a column of objects other than numbers, dates or categories."""
    for value in values:
        if isinstance(value, complex):
            raise _not_a_coordinate(name, "complex numbers", value, _COMPLEX_REMEDY)
        if isinstance(value, timedelta):
            raise _not_a_coordinate(name, "durations", value, _duration_remedy(name))
        if not isinstance(value, (str, Real, Decimal, date)) and type(value).__name__ != "bool_":
            remedy = "write it as numbers, or as one text per row"
            raise _not_a_coordinate(name, f"{type(value).__name__} objects", value, remedy)
    texts = [value for value in values if isinstance(value, str)]
    if not texts or len(texts) < len(values):
        return
    if all(_is_complex(text) for text in texts) and not all(_is_real(text) for text in texts):
        found = next(text for text in texts if not _is_real(text))
        raise _not_a_coordinate(name, "complex numbers", found, _COMPLEX_REMEDY)


def _warn_of_units(name: str, values: Sequence[Any]) -> None:
    """Warn of a column of texts that are all numbers with the same unit behind them."""
    texts = {value.strip() for value in values if isinstance(value, str)}
    matches = [_WITH_UNIT.fullmatch(text) for text in texts]
    units = {match["unit"] for match in matches if match is not None}
    if len(texts) > 1 and None not in matches and len(units) == 1:
        warnings.warn(
            f"column {name!r} holds numbers with a unit, such as {values[0]!r}, and is taken for "
            "categories without an "
            "order; write the numbers alone if they are meant as numbers",
            stacklevel=5,
        )


def _warn_of_decimal_commas(name: str, values: Sequence[Any]) -> None:
    """Warn of a column of texts that are all numbers, some of them with a decimal comma."""
    texts = [value.strip() for value in values if isinstance(value, str)]
    if len(texts) < len(values) or not any("," in text for text in texts):
        return
    if len(set(texts)) > 1 and all(_DECIMAL_COMMA.fullmatch(text) for text in texts):
        found = next(text for text in texts if "," in text)
        warnings.warn(
            f"column {name!r} holds numbers with a decimal comma as text, such as {found!r}, and "
            "is taken for categories without an order; if they are meant as numbers, read the file "
            "with Domain.table(path) or pd.read_csv(path, sep=';', decimal=',')",
            stacklevel=5,
        )


def _not_a_coordinate(name: str, kind: str, value: Any, remedy: str) -> InvalidDomainError:
    return InvalidDomainError(
        f"column {name!r} must contain numbers, text, truth values or dates, got {kind} such as "
        f"{str(value)!r}; "
        f"{remedy}"
    )


def _duration_remedy(name: str) -> str:
    return f'divide it by a unit: frame[{name!r}] / pd.Timedelta(1, "h")'


def _is_number(value: Any) -> bool:
    """Return whether a value is a number, also one that was read as text."""
    if isinstance(value, str):
        return _is_real(value)
    is_truth = type(value).__name__ in ("bool", "bool_")  # Python's and NumPy's
    return isinstance(value, (Real, Decimal)) and not is_truth


def _is_real(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _is_complex(text: str) -> bool:
    """Return whether a text is a number with an imaginary part, or none: "1+2j", "3i", "4"."""
    plain = text.strip().replace(" ", "").strip("()")
    if plain.endswith("i") and not plain.endswith(("ni", "infi")):
        plain = f"{plain[:-1]}j"
    if not any(character.isdigit() for character in plain):
        return False
    try:
        complex(plain)
    except ValueError:
        return False
    return True
