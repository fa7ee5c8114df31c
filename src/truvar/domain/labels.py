"""Rows of a domain by the labels that they have in the user's own table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from truvar.exceptions import InvalidMeasurementError, TruvarError
from truvar.messages import format_coordinates, unknown_name
from truvar.tabular.column_types import SAVED_INDEX
from truvar.tabular.labels import label_key, label_text

_SENTENCE_DIGITS = 4  # of coordinates within a sentence

if TYPE_CHECKING:
    import pandas as pd

    from truvar.domain.domain import Domain


def with_other_columns(frame: pd.DataFrame, domain: Domain) -> pd.DataFrame:
    """Return a table over a domain, followed by the other columns of the user's table.

    A column whose name is taken gets an underscore. The column that names the rows is left out,
    since it is the index.

    Args:
        frame: The table, with a row per point of the domain.
        domain: The domain.
    """
    source = domain.frame
    if source is None:
        return frame
    left_out = {"", SAVED_INDEX, *domain.columns}
    if domain.labels is not None:
        left_out |= set(domain.labels.names)
    result = frame.copy()
    for position, name in enumerate(source.columns):
        if name in left_out:
            continue
        own = str(name)
        while own in result.columns:
            own += "_"
        result[own] = source.iloc[:, position].set_axis(result.index)
    return result


def rows_by_label(domain: Domain) -> dict[str, Any]:
    """Return the position of each row by its label as text; None for a repeated label."""
    rows: dict[str, Any] = {}
    for row in range(len(domain)):
        label = label_key(domain.label(row))
        rows[label] = None if label in rows else row
    return rows


def can_be_given(domain: Domain) -> bool:
    """Return whether a label as text identifies a row: rows have labels of one level."""
    return domain.labels is not None and not domain.labels.levels


def label_columns(domain: Domain) -> tuple[str, ...]:
    """Return the names under which users give labels: "label" and that of the index.

    The latter is left out if it is a coordinate.
    """
    if domain.labels is None or not can_be_given(domain):
        return ()
    names = ["label", *[name for name in domain.labels.names if isinstance(name, str)]]
    return tuple(name for name in names if name not in domain.columns)


def labelled_point(
    domain: Domain, label: str, rows: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the point of the row with a label.

    Args:
        domain: The domain, a table.
        label: The label as text.
        rows: Result of `rows_by_label`, if it is at hand.

    Raises:
        InvalidMeasurementError: If no row has the label, or several have it.
    """
    rows = rows_by_label(domain) if rows is None else rows
    if label not in rows:
        raise InvalidMeasurementError(unknown_name("label", label, rows))
    if rows[label] is None:
        raise InvalidMeasurementError(
            f"several rows have the label {label!r}; give the id or all coordinates"
        )
    return domain.point(rows[label])


def with_label(domain: Domain, point: Mapping[str, Any], coordinates: str) -> str:
    """Return a point in words: the label of its row, if the rows are named, and the coordinates.

    Args:
        domain: The domain.
        point: The point by column, which need not be one of the domain.
        coordinates: Its coordinates in words.
    """
    if not domain.has_row_names:
        return coordinates
    try:
        row, _ = domain.locate(point)
    except TruvarError:  # such as a harbour
        return coordinates
    return coordinates if row is None else f"{label_text(domain.label(row))} ({coordinates})"


def place_in_words(domain: Domain, point: Mapping[str, Any]) -> str:
    """Return a point within a sentence: "KB0618 (lon 18.2, lat 54.9)", or "(x 3, y 4)"."""
    coordinates = format_coordinates(point, digits=_SENTENCE_DIGITS)
    text = with_label(domain, point, coordinates)
    return f"({coordinates})" if text == coordinates else text
