"""Checks of numbers and arrays that callers give.

Each check returns the value in its checked type, or raises `InvalidArgumentError` with a message of
the form "name must be ..., got value; remedy".
"""

from __future__ import annotations

from collections.abc import Iterable
from inspect import signature
from typing import Any

import numpy as np

from truvar._representation import has_control_characters
from truvar._typing import Array
from truvar.exceptions import InvalidArgumentError

_MAX_COST = 1e300  # of one measurement, so that sums over millions of measurements are finite


def check_finite(value: Any, name: str) -> float:
    """Return `value` as a finite float. Strings and Booleans are not numbers.

    Raises:
        InvalidArgumentError: If it is not a finite number.
    """
    try:
        if isinstance(value, (str, bytes, bool, np.bool_)):
            raise TypeError
        result = float(value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidArgumentError(
            f"{name} must be a number, got {value!r}; give a finite number"
        ) from None
    if not np.isfinite(result):
        raise InvalidArgumentError(
            f"{name} must be a finite number, got {value!r}; give a finite number"
        )
    return result


def check_nonnegative(value: Any, name: str) -> float:
    """Return `value` as a finite float of at least 0.

    Raises:
        InvalidArgumentError: If it is not such a number.
    """
    result = check_finite(value, name)
    if result < 0:
        raise InvalidArgumentError(f"{name} must be >= 0, got {value!r}; give 0 or more")
    return result


def check_cost(value: Any, name: str) -> float:
    """Return `value` as a float from 0 to `_MAX_COST`.

    Raises:
        InvalidArgumentError: If it is not such a number.
    """
    result = check_nonnegative(value, name)
    if result > _MAX_COST:
        raise InvalidArgumentError(
            f"{name} must be at most {_MAX_COST:g}, got {result:g}; use larger units of cost"
        )
    return result


def check_positive(value: Any, name: str, example: str = "") -> float:
    """Return `value` as a finite float greater than 0.

    Args:
        value: The value to check.
        name: Name of the value in the message.
        example: A valid value, for the message.

    Raises:
        InvalidArgumentError: If it is not such a number.
    """
    result = check_finite(value, name)
    if not result > 0:
        remedy = (
            f"give a positive number such as {example}" if example else "give a positive number"
        )
        raise InvalidArgumentError(f"{name} must be > 0, got {value}; {remedy}")
    return result


def check_fraction(value: Any, name: str, example: str = "0.1") -> float:
    """Return `value` as a float greater than 0 and less than 1.

    Args:
        value: The value to check.
        name: Name of the value in the message.
        example: A valid value, for the message.

    Raises:
        InvalidArgumentError: If it is not such a number.
    """
    result = check_finite(value, name)
    if not 0 < result < 1:
        raise InvalidArgumentError(
            f"{name} must lie between 0 and 1, got {value}; give a number such as {example}"
        )
    return result


def check_integer(value: Any, name: str, minimum: int) -> int:
    """Return `value` as an int of at least `minimum`.

    Raises:
        InvalidArgumentError: If it is not such an integer.
    """
    if (
        isinstance(value, (bool, np.bool_))
        or not isinstance(value, (int, np.integer))
        or value < minimum
    ):
        raise InvalidArgumentError(
            f"{name} must be a whole number >= {minimum}, got {value!r}; give one such as {minimum}"
        )
    return int(value)


def check_names(names: Iterable[Any], kind: str) -> None:
    """Check that new names can be shown anywhere.

    Those of stored studies are not checked, but shown written out.

    Args:
        names: The names.
        kind: What they are names of, such as "column".

    Raises:
        InvalidArgumentError: If one of them has control characters, which a terminal obeys, or
            characters that change the direction of text.
    """
    for name in names:
        if has_control_characters(str(name)):
            raise InvalidArgumentError(
                f"the name of a {kind} must have no line breaks, other control characters or "
                "changes of the direction "
                f"of text, got {str(name)!a}; rename it"
            )


def check_boolean(value: Any, name: str) -> None:
    """Check that a value is True or False.

    Raises:
        InvalidArgumentError: If it is not.
    """
    if not isinstance(value, (bool, np.bool_)):
        raise InvalidArgumentError(f"{name} must be True or False, got {value!r}; give one of them")


def check_at_least(value: float, minimum: float, name: str) -> None:
    """Check an option against its smallest allowed value.

    Raises:
        InvalidArgumentError: If `value` is smaller, NaN, or not a number.
    """
    try:
        valid = bool(value >= minimum)
    except TypeError:
        valid = False
    if not valid:
        raise InvalidArgumentError(
            f"{name} must be >= {minimum:g}, got {value!r}; give {minimum:g} or more"
        )


def check_array(value: Any, name: str) -> Array:
    """Return `value` as an array of floats.

    Raises:
        InvalidArgumentError: If it cannot be converted.
    """
    try:
        return np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise InvalidArgumentError(
            f"{name} must be a number, a column name, an array of numbers or a function, got "
            f"{value!r}; give one of "
            "them"
        ) from None


def check_finite_array(value: Any, name: str, count: int) -> Array:
    """Return `value` as (count,) finite floats; a single number is repeated.

    Raises:
        InvalidArgumentError: If the shape is wrong or an entry is not finite; names the first such
            row.
    """
    array = _check_shape(value, name, count)
    bad = ~np.isfinite(array)
    if bad.any():
        row = int(np.flatnonzero(np.atleast_1d(bad))[0])
        first = np.atleast_1d(array)[row]
        location = f" (row {row})" if array.ndim else ""
        raise InvalidArgumentError(
            f"{name} must be finite, got {first}{location}; give a finite number there"
        )
    return np.broadcast_to(array, (count,)).astype(float)


def check_nonnegative_array(value: Any, name: str, count: int) -> Array:
    """Return `value` as (count,) finite floats of at least 0; a single number is repeated.

    Raises:
        InvalidArgumentError: If the shape is wrong or an entry is negative or not finite; names the
            first such row.
    """
    array = _check_shape(value, name, count)
    bad = ~(np.isfinite(array) & (array >= 0))
    if bad.any():
        row = int(np.flatnonzero(np.atleast_1d(bad))[0])
        first = np.atleast_1d(array)[row]
        location = f" (row {row})" if array.ndim else ""
        raise InvalidArgumentError(
            f"{name} must be finite and >= 0, got {first}{location}; give 0 or more there"
        )
    return np.broadcast_to(array, (count,)).astype(float)


def _check_shape(value: Any, name: str, count: int) -> Array:
    """Return `value` as an array of floats, a single number or one per point."""
    array = check_array(value, name)
    if array.ndim > 1 or (array.ndim == 1 and array.shape != (count,)):
        raise InvalidArgumentError(
            f"{name} must be one number per point, shape ({count},), got shape {array.shape}; "
            "return as many numbers as there are points"
        )
    return array


def check_truth(truth: Any, count: int) -> Array:
    """Return the true values on a domain as (count,) finite floats.

    Raises:
        InvalidArgumentError: If they are not numbers, or too few or many, or not finite; names the
            first such row.
    """
    try:
        values = np.asarray(truth, dtype=float)
    except (TypeError, ValueError):
        raise InvalidArgumentError(
            f"truth must be the true values on the domain, got {truth!r}; give an array of numbers"
        ) from None
    if values.shape != (count,):
        raise InvalidArgumentError(
            f"truth must have one value per point, shape ({count},), got shape {values.shape}; "
            "give the values in the order of the domain's points"
        )
    if not np.isfinite(values).all():
        row = int(np.argmin(np.isfinite(values)))
        raise InvalidArgumentError(
            f"truth must hold finite numbers, got {values[row]} at index {row}; fix that value"
        )
    return values


def check_callable(function: Any, name: str, *arguments: str) -> None:
    """Check that a function takes these positional arguments; ignore other objects.

    Raises:
        InvalidArgumentError: If the call would fail.
    """
    if not callable(function) or isinstance(function, type):
        return
    try:
        signature(function).bind(*arguments)
    except ValueError:  # some built-in functions have no signature
        return
    except TypeError as error:
        plural = "s" * (len(arguments) > 1)
        raise InvalidArgumentError(
            f"{name} as a function is called as {name}({', '.join(arguments)}), got one that "
            f"cannot be ({error}); "
            f"write it with {len(arguments)} argument{plural}"
        ) from None
