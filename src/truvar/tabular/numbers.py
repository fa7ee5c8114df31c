"""Numbers as people type them, in words of the command line and in cells of tables."""

from __future__ import annotations

import re
from typing import Any

from truvar.exceptions import InvalidArgumentError, InvalidMeasurementError
from truvar.validation import check_finite

_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d*(?:[eE][+-]?\d+)?")
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")


def parse_number(text: str, name: str) -> float:
    """Return the number that a word means.

    It has a decimal point, or a decimal comma where a comma cannot separate thousands.

    Raises:
        InvalidMeasurementError: If it is ambiguous, no number or not finite.
    """
    plain = text.strip()
    if _THOUSANDS.fullmatch(plain):
        point = plain.replace(",", ".")
        raise InvalidMeasurementError(
            f"{name} is ambiguous, got {text!r}: the comma may separate thousands; "
            f"write {point} or {plain.replace(',', '')}"
        )
    if _DECIMAL_COMMA.fullmatch(plain):
        text = plain.replace(",", ".")
    try:
        return check_finite(float(text), name)
    except (ValueError, InvalidArgumentError):
        raise InvalidMeasurementError(
            f"{name} must be a finite number, got {text!r}; correct it"
        ) from None


def as_integer(cell: Any) -> int:
    """Return an id or level: text, or a number as DataFrames with missing entries have it."""
    if isinstance(cell, float) and cell.is_integer():
        return int(cell)
    return parse_integer(str(cell).removesuffix(".0"))


def parse_integer(text: str) -> int:
    """Return the id or level that a word means.

    Raises:
        InvalidMeasurementError: If it is not a whole number.
    """
    if not text.isdecimal():
        raise InvalidMeasurementError(
            f"an id or level must be a whole number, got {text!r}; correct it"
        )
    return int(text)
