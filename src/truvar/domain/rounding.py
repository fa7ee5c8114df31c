"""Digits with which coordinates are shown: enough to distinguish the points of a domain.

A column whose values all have at most `_EXACT_DIGITS` significant digits is shown unchanged. Any
other column is rounded to a hundredth to a thousandth of the distance of its points: 8.541666667 is
shown as 8.5417 where the next point is 0.04 away, and 456789.1234 as 456789.123 where it is 0.5
away. Digits before the decimal point are never rounded.

| name | meaning |
|---|---|
| decimals | digits behind the decimal point that are shown; None: those that the values have |
| side | number of points along a column, by which its extent is divided |
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isclose
from typing import TYPE_CHECKING, Any

import numpy as np

from truvar._typing import Array
from truvar.domain.parameters import Integer, Log

if TYPE_CHECKING:
    from truvar.domain.domain import Domain

_EXACT_DIGITS = 6  # significant digits up to which all values of a column are shown as given
_LOG_DIGITS = 5  # significant digits of a value on a logarithmic scale that has more
_LAST_DIGIT_SHARE = 0.01  # of the distance between points: the largest unit of the last digit
_BOX_SIDE = 100  # points along a column of a box, whose points can be anywhere
_MIN_SIDE = 10  # points along a column of scattered points in many dimensions
_MAX_DECIMALS = 15
_RELATIVE_TOLERANCE = 1e-12  # relative: 0.30000000000000004 has one digit
# of a domain whose rounded points are compared; larger ones are shown with `_EXACT_DIGITS`
_MAX_POINTS = 100_000


def shown_decimals(domain: Domain) -> tuple[int | None, ...]:
    """Return the digits behind the decimal point with which each column is shown.

    Args:
        domain: The domain.

    Returns:
        A number for each column that is rounded; None for columns that are shown unchanged.
    """
    if len(domain) > _MAX_POINTS:
        return (None,) * len(domain.columns)
    decimals = [_column_decimals(domain, k) for k in range(len(domain.columns))]
    numbers = domain.numbers(domain.points)
    while not domain.continuous and any(digits is not None for digits in decimals):
        if _are_distinct(numbers, decimals):
            break
        finer = [None if digits is None else digits + 1 for digits in decimals]
        if max(digits or 0 for digits in finer) > _MAX_DECIMALS:
            return (None,) * len(decimals)
        decimals = finer
    return tuple(decimals)


def shown_point(domain: Domain, point: Mapping[str, Any]) -> dict[str, Any]:
    """Return a point with its coordinates rounded for display; print all of their digits.

    Args:
        domain: The domain.
        point: The point by column, of the domain or not.
    """
    shown = dict(point)
    for k, name in enumerate(domain.columns):
        value = shown.get(name)
        if isinstance(value, float):
            shown[name] = _shown_value(domain, k, value)
    return shown


def shown_numbers(domain: Domain) -> Array:
    """Return the points of a domain as the user's numbers (n, d), rounded for display."""
    numbers = np.array(domain.numbers(domain.points), dtype=float)
    for k in range(numbers.shape[1]):
        numbers[:, k] = [_shown_value(domain, k, value) for value in numbers[:, k].tolist()]
    return numbers


def _shown_value(domain: Domain, k: int, value: float) -> float:
    if _is_log(domain, k):
        return _rounded(value, _LOG_DIGITS)
    decimals = domain.decimals[k]
    return (
        _rounded(value, _EXACT_DIGITS) if decimals is None else round(value, decimals) + 0.0
    )  # never -0


def _rounded(value: float, digits: int) -> float:
    """Return a number rounded to significant digits, but at least to a whole number."""
    if abs(value) >= 10.0 ** (digits - 1):
        return float(round(value))
    return float(f"{value:.{digits}g}")


def _is_log(domain: Domain, k: int) -> bool:
    return isinstance(domain.parameters[k], Log)


def _column_decimals(domain: Domain, k: int) -> int | None:
    """Return a column's decimals by the distance of its points; None if shown unchanged."""
    parameter = domain.parameters[k]
    if not parameter.numeric or isinstance(parameter, (Log, Integer)):
        return None
    extent = float(domain.bounds[k, 1] - domain.bounds[k, 0])
    if extent <= 0:
        return None
    side = _BOX_SIDE
    if not domain.continuous:
        values = np.unique(domain.points[:, k])
        if all(
            isclose(_rounded(value, _EXACT_DIGITS), value, rel_tol=_RELATIVE_TOLERANCE)
            for value in values.tolist()
        ):
            return None
        per_column = round(len(domain) ** (1.0 / len(domain.columns)))
        side = max(min(len(values), per_column), _MIN_SIDE) if domain.axes is None else len(values)
    elif parameter.n_levels is not None:
        return None  # steps, which have few digits
    unit = extent / side * _LAST_DIGIT_SHARE
    return int(np.clip(-np.floor(np.log10(unit) + 1e-9), 0, _MAX_DECIMALS))


def _are_distinct(numbers: Array, decimals: list[int | None]) -> bool:
    """Return whether points (n, d) that are shown with these decimals differ from each other."""
    columns = []
    for k, digits in enumerate(decimals):
        columns.append(numbers[:, k] if digits is None else np.round(numbers[:, k], digits))
    return len(np.unique(np.column_stack(columns), axis=0)) == len(numbers)
