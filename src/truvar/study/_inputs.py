"""Points and values of callers: dictionaries, Series, arrays, rows of a DataFrame."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from truvar.domain.domain import Domain
from truvar.domain.noise_sd import given_variance
from truvar.exceptions import InvalidArgumentError, InvalidMeasurementError, TruvarError
from truvar.messages import for_interface
from truvar.models.likelihoods import Binary, Count, Outcome
from truvar.validation import check_cost, check_finite, check_nonnegative

if TYPE_CHECKING:
    import pandas as pd

PointLike: TypeAlias = "Mapping[str, Any] | pd.Series | pd.DataFrame | ArrayLike"
ValueLike: TypeAlias = "float | ArrayLike | Mapping[str, float] | pd.Series"


def as_point(domain: Domain, what: Any) -> Any:
    """Return a point as {column: value}; an id or a suggestion is returned unchanged.

    Args:
        domain: The domain.
        what: A mapping, a pandas Series (a row of the domain's own table may have its other columns
            too), a DataFrame of one row, or an array with a coordinate per column, in their order.

    Raises:
        InvalidArgumentError: If an array has the wrong shape, or a DataFrame several rows.
    """
    if isinstance(what, Mapping):
        return what
    if hasattr(what, "iloc") and getattr(what, "ndim", 0) == 2:
        if len(what) != 1:
            raise InvalidArgumentError(
                f"a point as a DataFrame must have one row, got {len(what)}; tell several with "
                "tell_frame(frame)"
            )
        what = what.iloc[0]
    if hasattr(what, "iloc"):
        others = () if domain.frame is None else domain.frame.columns
        return {
            name: value
            for name, value in what.items()
            if name in domain.columns or name not in others
        }
    if isinstance(what, np.ndarray) and what.ndim == 1:
        coordinates = what.tolist()
        if len(coordinates) != len(domain.columns):
            raise InvalidArgumentError(
                f"a point as an array must have {len(domain.columns)} coordinates "
                f"({', '.join(domain.columns)}), got "
                f"{len(coordinates)}; give one number per column"
            )
        return dict(zip(domain.columns, coordinates, strict=True))
    return what


def as_value(y: Any) -> Any:
    """Return the only number of an array, list, Series or dictionary; others unchanged.

    Raises:
        InvalidMeasurementError: If there is not exactly one element.
    """
    if isinstance(y, float):
        return y
    values: Any = y
    if isinstance(y, Mapping):
        values = list(y.values())
    elif hasattr(y, "ravel") or hasattr(y, "iloc"):
        values = np.asarray(y).ravel().tolist() if getattr(y, "ndim", 0) else y
    if not isinstance(values, (list, tuple)):
        return values
    if len(values) != 1:
        raise InvalidMeasurementError(
            f"the measured value y must be a number, got {len(values)} of them in {y!r}; give the "
            "one that was measured"
        )
    return values[0]


def is_named(y: Any) -> bool:
    """Return whether values come with names, as those of several quantities do."""
    return isinstance(y, Mapping) or (hasattr(y, "iloc") and getattr(y, "ndim", 0) == 1)


class Label(float):
    """A yes or no as 1 or 0, which only a study with such an outcome takes."""


_LABELS = {"yes": 1.0, "no": 0.0, "true": 1.0, "false": 0.0}


def as_label(y: Any) -> Label | None:
    """Return a Boolean, or a word such as "yes", as a label; None for anything else."""
    if isinstance(y, bool | np.bool_ | Label):
        return Label(y)
    value = _LABELS.get(y.strip().lower()) if isinstance(y, str) else None
    return None if value is None else Label(value)


def remedy_of_word(word: str) -> str:
    """Return what else may be told where a word is no number; nothing for a mistyped number."""
    if not word.strip().isalpha():
        return ""
    words = for_interface('"yes" or "no"', cli="yes or no")
    return f", or {words} if the outcome is binary"


def check_label(value: Any, outcome: Outcome | None) -> float:
    """Return a checked value as a float.

    Raises:
        InvalidMeasurementError: If it is a yes or no, and the study takes numbers.
    """
    if isinstance(value, Label) and not isinstance(outcome, Binary):
        words = for_interface(str(bool(value)), cli="yes" if value else "no")
        raise InvalidMeasurementError(
            f"the measured value y must be a number, got {words}; give a finite number"
        )
    return float(value)


def check_reference(reference: Any) -> None:
    """Check that a reference to raw data is text.

    Raises:
        InvalidMeasurementError: If it is not, or empty.
    """
    if reference is not None and not (isinstance(reference, str) and reference.strip()):
        raise InvalidMeasurementError(
            f"reference must be text, such as the name of a file, got {reference!r}; give str(...), "
            "or leave it out"
        )


def check_exposure(exposure: Any) -> float | None:
    """Return the exposure of a measurement as a float.

    Raises:
        InvalidMeasurementError: If it is not a number that exposures can be.
    """
    if exposure is None:
        return None
    try:
        return Count.check_exposure(exposure)
    except InvalidArgumentError as error:
        raise InvalidMeasurementError(str(error)) from None


def check_measurement(
    y: Any, noise: Any, cost: Any, noise_sd: Any = None, *, corrects: bool = False
) -> tuple[Any, float | None, float | None]:
    """Return value, noise variance and cost of a measurement as floats.

    Args:
        y: The value; one with names is returned unchanged, see `check_only_value`.
        noise: Its noise variance, or None.
        cost: Its cost, or None.
        noise_sd: Its standard deviation, instead of the variance, or None.
        corrects: Whether the value takes the place of another one, so that nothing is pending that
            could fail.

    Raises:
        InvalidMeasurementError: If the value is not finite, or noise or cost are not numbers >= 0,
            the cost is above `MAX_COST`, or the noise is given twice.
    """
    try:
        value: Any = y
        if type(y) is float or not is_named(y):
            own = as_value(y)
            label = None if type(own) is float else as_label(own)
            value = check_finite(own, "the measured value y") if label is None else label
        if noise_sd is not None:
            noise = given_variance(noise, noise_sd)
        noise = None if noise is None else check_nonnegative(noise, "noise")
        cost = None if cost is None else check_cost(cost, "cost")
    except InvalidArgumentError as error:
        remedy = remedy_of_word(y) if isinstance(y, str) else ""
        if not corrects:
            remedy += _remedy_of_missing(y)
        raise InvalidMeasurementError(f"{error}{remedy}") from None
    return value, noise, cost


def check_only_value(y: Any) -> float:
    """Return the value of a measurement of one quantity, which may come with a name.

    Raises:
        InvalidMeasurementError: If there is not exactly one number.
    """
    value: float = check_measurement(as_value(y), None, None)[0]
    return value


def _remedy_of_missing(y: Any) -> str:
    """Return what to do with a measurement that has no value; nothing for one that has."""
    is_missing = y is None or (isinstance(y, float) and np.isnan(y))
    if not is_missing:
        return ""
    call = for_interface(
        "fail(suggestion, reason)", cli="truvar fail ID --reason TEXT", http="POST .../fail"
    )
    return f", or say that the measurement failed: {call}"


def located(error: TruvarError, source: str) -> TruvarError:
    """Return the same error with the place where the measurement was read, if it was."""
    if not source:
        return error
    return type(error)(f"{source}: {error} (nothing of the file was told)")
