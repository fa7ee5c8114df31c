"""Types of parameters: what a column of a domain may hold, and where its values lie for the model.

| word | meaning |
|---|---|
| value | what the user writes and reads: 0.001, "saga", True, "2026-05-01" |
| coordinate | the number that the model has for it: -3.0, 1.0, 1.0, 20574.0 |
| level | one of the finitely many coordinates of a parameter that is not continuous |

| type | coordinate | distance in the kernel |
|---|---|---|
| `Range`, `Integer` | the value | difference |
| `Log`, `Integer(log=True)` | its decimal logarithm | difference, in decades |
| `Ordinal` | its position in the list | difference of positions |
| `Date` | days since 1970-01-01, in UTC if it has a time zone | difference, in days |
| `Categorical`, `Boolean` | its position in the list | 1 if the values differ, 0 if not (Hamming) |

Points of a domain are coordinates, so that nothing numerical knows about types; everything that
users write or read is encoded and decoded here, and dates in `truvar.domain.dates`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from math import floor, log10
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from truvar._typing import Array
from truvar.exceptions import InvalidDomainError, PointNotInDomainError
from truvar.messages import for_interface, unknown_name
from truvar.validation import check_finite, check_integer, check_positive

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SIGNIFICANT_DIGITS = 13  # of a value on a logarithmic scale; its logarithm is hardly more precise
_MAX_LISTED = 8  # values of a parameter that a message or summary lists, at most


@dataclass(frozen=True)
class Parameter(ABC):
    """A type of parameter: the classes below, and `Date`."""

    # Whether values have no order, so that two are equal or different.
    categorical: ClassVar[bool] = False
    numeric: ClassVar[bool] = True  # whether values are numbers

    @property
    @abstractmethod
    def bounds(self) -> tuple[float, float]:
        """Smallest and largest coordinate."""

    @property
    def n_levels(self) -> int | None:
        """Number of levels; None if the parameter is continuous."""
        return None

    @abstractmethod
    def encode(self, value: Any, name: str) -> float:
        """Return the coordinate of a value.

        Args:
            value: The value.
            name: Name of the column, for the message.

        Raises:
            InvalidArgumentError: If the value has the wrong type.
            PointNotInDomainError: If it is not a value of the parameter.
        """

    @abstractmethod
    def decode(self, x: float) -> Any:
        """Return the value at a coordinate."""

    def encode_column(self, values: Iterable[Any], name: str) -> Array:
        """Return the coordinates of the values of a column: (n,)."""
        return np.array([self.encode(plain_value(value), name) for value in values], dtype=float)

    def decode_column(self, x: Array) -> NDArray[Any]:
        """Return the values at coordinates (n,): (n,), of type float, int, bool or object."""
        return np.array([self.decode(each) for each in x.tolist()])

    def parse(self, text: str, name: str) -> Any:
        """Parse a text from a file, a form or the command line."""
        try:
            return float(text)
        except ValueError:
            return check_finite(text, f"column {name!r} of the point")  # raises

    def level_at(self, index: NDArray[np.intp]) -> Array:
        """Return the coordinates of levels, given by their positions."""
        raise NotImplementedError(f"{self} is continuous")

    def level_of(self, x: Array) -> NDArray[np.intp]:
        """Return the positions of the levels nearest to coordinates."""
        raise NotImplementedError(f"{self} is continuous")

    def snap(self, x: Array) -> Array:
        """Return the nearest coordinates that the parameter can have."""
        if self.n_levels is None:
            return np.clip(x, *self.bounds)
        return self.level_at(self.level_of(x))

    def from_unit(self, u: Array) -> Array:
        """Map numbers from 0 to 1 to coordinates; all levels are equally likely."""
        if self.n_levels is None:
            low, high = self.bounds
            return low + u * (high - low)
        return self.level_at(np.minimum((u * self.n_levels).astype(np.intp), self.n_levels - 1))

    @property
    def levels(self) -> Array:
        """All levels. Only for a parameter that is not continuous."""
        return self.level_at(np.arange(self.n_levels or 0))

    def grid_levels(self, name: str) -> Array:
        """Return the coordinates of an axis of a grid.

        Raises:
            InvalidDomainError: If the parameter is continuous and has no `count`.
        """
        if self.n_levels is not None:
            return self.levels
        count = getattr(self, "count", None)
        if count is None:
            example = for_interface(
                f"{type(self).__name__}(..., count=10)", problem="count = 10 beside its ends"
            )
            raise InvalidDomainError(
                f"an axis of a grid needs finitely many values, got {self} for {name!r}; say how "
                f"many: {example}"
            )
        return np.linspace(*self.bounds, count)

    @abstractmethod
    def describe(self) -> str:
        """Return the values in words: "1e-06 to 0.1 on a log scale"."""


def _check_ends(parameter: Any) -> tuple[float, float]:
    """Return the ends of an interval as floats."""
    kind = type(parameter).__name__
    low = check_finite(parameter.low, f"the low end of {kind}")
    high = check_finite(parameter.high, f"the high end of {kind}")
    if not low < high:
        raise InvalidDomainError(
            f"{kind} must have low < high, got {parameter.low!r} and {parameter.high!r}; swap them"
        )
    return low, high


def check_count(count: int | None, kind: str) -> None:
    """Check the number of values of an axis of a grid, if it is given."""
    if count is not None:
        check_integer(count, f"the count of {kind}", minimum=2)


@dataclass(frozen=True)
class Range(Parameter):
    """Numbers from low to high.

    Attributes:
        low: Lower end.
        high: Upper end.
        step: Distance of the values, counted from the lower end; None: any number in between.
        count: Number of values if it is an axis of a grid.

    Example:
        >>> Domain.box(x=Range(0, 1, step=0.05))
    """

    low: float
    high: float
    step: float | None = None
    count: int | None = None

    def __post_init__(self) -> None:
        low, high = _check_ends(self)
        check_count(self.count, "Range")
        if (
            self.step is not None
            and check_positive(self.step, "the step of Range", example="0.1") > high - low
        ):
            raise InvalidDomainError(
                f"the step of Range must fit between its ends, got {self.step!r} for {low:g} to "
                f"{high:g}; make it less"
            )

    @property
    def bounds(self) -> tuple[float, float]:
        """Smallest and largest coordinate."""
        if self.n_levels is None:
            return float(self.low), float(self.high)
        return float(self.low), float(self.level_at(np.array([self.n_levels - 1]))[0])

    @property
    def n_levels(self) -> int | None:
        """Number of levels; None without a step."""
        if self.step is None:
            return None
        return floor((self.high - self.low) / self.step * (1 + 1e-12)) + 1

    def encode(self, value: Any, name: str) -> float:
        """Return the coordinate of a value."""
        return check_finite(value, f"column {name!r} of the point")

    def decode(self, x: float) -> float:
        """Return the value at a coordinate."""
        return x

    def encode_column(self, values: Iterable[Any], name: str) -> Array:
        """Return the coordinates of the values of a column."""
        return np.array([check_finite(value, f"column {name!r}") for value in values], dtype=float)

    def decode_column(self, x: Array) -> Array:
        """Return the values at coordinates."""
        return np.asarray(x, dtype=float)

    def level_at(self, index: NDArray[np.intp]) -> Array:
        """Return the coordinates of levels."""
        return np.array(
            [_tidy(self.low + i * (self.step or 0.0)) for i in index.tolist()], dtype=float
        )

    def level_of(self, x: Array) -> NDArray[np.intp]:
        """Return the positions of the nearest levels."""
        position = np.rint((np.asarray(x) - self.low) / (self.step or 1.0))
        return np.clip(position, 0, (self.n_levels or 1) - 1).astype(np.intp)

    def describe(self) -> str:
        """Return the values in words."""
        steps = "" if self.step is None else f" in steps of {self.step:.6g}"
        return f"{self.low:.6g} to {self.high:.6g}{steps}"


@dataclass(frozen=True)
class Log(Parameter):
    """Positive numbers from low to high on a logarithmic scale.

    0.001 is as far from 0.01 as that is from 0.1.

    Attributes:
        low: Lower end, > 0.
        high: Upper end.
        count: Number of values if it is an axis of a grid, evenly spaced by ratio.

    Example:
        >>> Domain.box(learning_rate=Log(1e-6, 1e-1))
    """

    low: float
    high: float
    count: int | None = None

    def __post_init__(self) -> None:
        check_positive(self.low, "the low end of a log scale", example="1e-6")
        _check_ends(self)
        check_count(self.count, "Log")

    @property
    def bounds(self) -> tuple[float, float]:
        """Smallest and largest coordinate."""
        return log10(self.low), log10(self.high)

    def encode(self, value: Any, name: str) -> float:
        """Return the coordinate of a value."""
        return log10(
            check_positive(value, f"column {name!r} of the point", example=f"{self.low:g}")
        )

    def decode(self, x: float) -> float:
        """Return the value at a coordinate."""
        return min(max(_tidy(10.0**x), float(self.low)), float(self.high))

    def describe(self) -> str:
        """Return the values in words."""
        return f"{self.low:.6g} to {self.high:.6g} on a log scale"


@dataclass(frozen=True)
class Integer(Parameter):
    """Whole numbers from low to high, both included.

    Attributes:
        low: Smallest value.
        high: Largest value.
        step: Distance of the values, counted from the smallest.
        log: Whether they lie on a logarithmic scale, such as a number of trees from 10 to 10,000.

    Example:
        >>> Domain.box(depth=Integer(1, 12), trees=Integer(10, 10_000, log=True))
    """

    low: int
    high: int
    step: int = 1
    log: bool = False

    def __post_init__(self) -> None:
        for end in ("low", "high"):
            value = getattr(self, end)
            if isinstance(value, bool) or not isinstance(value, Integral):
                raise InvalidDomainError(
                    f"the {end} end of Integer must be a whole number, got {value!r}; give one, or "
                    "use Range"
                )
            object.__setattr__(self, end, int(value))
        _check_ends(self)
        check_integer(self.step, "the step of Integer", minimum=1)
        if self.log:
            check_positive(self.low, "the low end of Integer on a log scale", example="1")

    @property
    def bounds(self) -> tuple[float, float]:
        """Smallest and largest coordinate."""
        last = self.low + (self.n_levels - 1) * self.step
        return self._coordinate(self.low), self._coordinate(last)

    @property
    def n_levels(self) -> int:
        """Number of levels."""
        return (self.high - self.low) // self.step + 1

    def encode(self, value: Any, name: str) -> float:
        """Return the coordinate of a value."""
        number = check_finite(value, f"column {name!r} of the point")
        if number != round(number):
            raise PointNotInDomainError(
                f"column {name!r} of the point must be a whole number, got {value!r}; give "
                f"{round(number)}"
            )
        if self.log:
            check_positive(number, f"column {name!r} of the point", example=str(self.low))
        return self._coordinate(round(number))

    def decode(self, x: float) -> int:
        """Return the value at a coordinate."""
        return round(10.0**x) if self.log else round(x)

    def decode_column(self, x: Array) -> NDArray[Any]:
        """Return the values at coordinates."""
        return np.rint(10.0**x if self.log else x).astype(int)

    def level_at(self, index: NDArray[np.intp]) -> Array:
        """Return the coordinates of levels."""
        if not self.log:
            return np.asarray(self.low + self.step * index, dtype=float)
        return np.array(
            [self._coordinate(self.low + self.step * i) for i in index.tolist()], dtype=float
        )

    def level_of(self, x: Array) -> NDArray[np.intp]:
        """Return the positions of the nearest levels."""
        value = 10.0 ** np.minimum(x, 300.0) if self.log else np.asarray(x)
        return np.clip(np.rint((value - self.low) / self.step), 0, self.n_levels - 1).astype(
            np.intp
        )

    def from_unit(self, u: Array) -> Array:
        """Map numbers in [0, 1] to coordinates; on a log scale ratios are equally likely."""
        if not self.log:
            return super().from_unit(u)
        low = log10(self.low - 0.5)
        high = log10(self.high + 0.5)
        return self.snap(low + u * (high - low))

    def _coordinate(self, value: int) -> float:
        return log10(value) if self.log else float(value)

    def describe(self) -> str:
        """Return the values in words."""
        steps = f" in steps of {self.step}" * (self.step > 1)
        return f"whole numbers {self.low} to {self.high}{steps}{' on a log scale' * self.log}"


@dataclass(frozen=True)
class _Choices(Parameter):
    """A finite list of values."""

    choices: Sequence[Any]

    def __post_init__(self) -> None:
        kind = type(self).__name__
        if isinstance(self.choices, str) or not isinstance(self.choices, Iterable):
            raise InvalidDomainError(
                f"{kind} needs a list of values, got {self.choices!r}; give one such as ['a', 'b']"
            )
        values = tuple(plain_value(choice) for choice in self.choices)
        object.__setattr__(self, "choices", values)
        if not values:
            raise InvalidDomainError(
                f"{kind} needs at least one value, got none; give one such as 'a'"
            )
        for value in values:
            if not (value is None or isinstance(value, (str, bool, int, float))):
                raise InvalidDomainError(
                    f"the values of {kind} must be text, numbers, true or false, got {value!r}; "
                    "give its name instead"
                )
            if values.count(value) > 1:
                raise InvalidDomainError(
                    f"the values of {kind} must differ, but {value!r} is duplicated; drop or "
                    "rename one"
                )

    @cached_property
    def _position_of(self) -> dict[Any, int]:
        return {choice: position for position, choice in enumerate(self.choices)}

    @property
    def bounds(self) -> tuple[float, float]:
        """Smallest and largest coordinate."""
        return 0.0, float(len(self.choices) - 1)

    @property
    def n_levels(self) -> int:
        """Number of levels."""
        return len(self.choices)

    def encode(self, value: Any, name: str) -> float:
        """Return the coordinate of a value."""
        value = plain_value(value)
        position = (
            self._position_of.get(value)
            if isinstance(value, (str, int, float, type(None)))
            else None
        )
        if position is None:
            raise PointNotInDomainError(
                f"column {name!r} of the point: "
                f"{unknown_name('value', value, map(str, self.choices))}"
            )
        return float(position)

    def decode(self, x: float) -> Any:
        """Return the value at a coordinate."""
        return self.choices[round(x)]

    def decode_column(self, x: Array) -> NDArray[Any]:
        """Return the values at coordinates."""
        values = np.array([*self.choices, None], dtype=object)[:-1]
        decoded = values[np.rint(x).astype(np.intp)]
        kinds = {type(choice) for choice in self.choices}
        if kinds <= {int} or kinds <= {int, float} or kinds == {bool}:
            return np.array(decoded.tolist())
        return decoded

    def parse(self, text: str, name: str) -> Any:
        """Parse a text."""
        for choice in self.choices:
            if text == str(choice) or (choice is None and text == ""):
                return choice
        for choice in self.choices:
            if isinstance(choice, Real) and is_number(text) and float(text) == float(choice):
                return choice
        return text

    def level_at(self, index: NDArray[np.intp]) -> Array:
        """Return the coordinates of levels."""
        return np.asarray(index, dtype=float)

    def level_of(self, x: Array) -> NDArray[np.intp]:
        """Return the positions of the nearest levels."""
        return np.clip(np.rint(x), 0, self.n_levels - 1).astype(np.intp)

    def describe(self) -> str:
        """Return the values in words."""
        listed = ", ".join(str(choice) for choice in self.choices[:_MAX_LISTED])
        more = len(self.choices) - _MAX_LISTED
        return listed if more <= 0 else f"{listed} and {more} more"


@dataclass(frozen=True)
class Categorical(_Choices):
    """Values without an order: two of them are equal or different.

    Attributes:
        choices: The values: text, numbers, True or False, or None.

    Example:
        >>> Domain.box(solver=Categorical(["lbfgs", "saga"]))
    """

    choices: Sequence[Any]
    categorical: ClassVar[bool] = True

    @property
    def numeric(self) -> bool:  # type: ignore[override]  # depends on the values
        """Whether all values are numbers."""
        return all(isinstance(choice, Real) for choice in self.choices)


@dataclass(frozen=True)
class Ordinal(_Choices):
    """Values with an order, such as "low", "medium", "high", or 16, 32, 64: neighbours are alike.

    Attributes:
        choices: The values in their order.

    Example:
        >>> Domain.box(batch=Ordinal([16, 32, 64, 128]))
    """

    choices: Sequence[Any]

    @property
    def numeric(self) -> bool:  # type: ignore[override]  # depends on the values
        """Whether all values are numbers."""
        return all(isinstance(choice, Real) for choice in self.choices)

    def describe(self) -> str:
        """Return the values in words."""
        return f"{super().describe()} in this order"


@dataclass(frozen=True)
class Boolean(Parameter):
    """False or True.

    Example:
        >>> Domain.box(shrinking=Boolean())
    """

    categorical: ClassVar[bool] = True

    @property
    def bounds(self) -> tuple[float, float]:
        """Smallest and largest coordinate."""
        return 0.0, 1.0

    @property
    def n_levels(self) -> int:
        """Number of levels."""
        return 2

    def encode(self, value: Any, name: str) -> float:
        """Return the coordinate of a value."""
        value = plain_value(value)
        if not isinstance(value, (bool, int, float)) or value not in (0, 1):
            raise PointNotInDomainError(
                f"column {name!r} of the point must be True or False, got {value!r}; give one of "
                "them"
            )
        return float(value)

    def decode(self, x: float) -> bool:
        """Return the value at a coordinate."""
        return x > 0.5

    def decode_column(self, x: Array) -> NDArray[Any]:
        """Return the values at coordinates."""
        return np.asarray(x) > 0.5

    def parse(self, text: str, name: str) -> Any:
        """Parse a text."""
        return {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}.get(
            text.lower(), text
        )

    def level_at(self, index: NDArray[np.intp]) -> Array:
        """Return the coordinates of levels."""
        return np.asarray(index, dtype=float)

    def level_of(self, x: Array) -> NDArray[np.intp]:
        """Return the positions of the nearest levels."""
        return (np.asarray(x) > 0.5).astype(np.intp)

    def describe(self) -> str:
        """Return the values in words."""
        return "true or false"


def plain_value(value: Any) -> Any:
    """Return a value of NumPy or pandas as Python's own type.

    Nanoseconds are rounded to microseconds.
    """
    if isinstance(value, np.datetime64):
        import pandas as pd

        with suppress(ValueError):  # a year that pandas has not
            value = pd.Timestamp(value)
    elif isinstance(value, np.generic):
        return value.item()
    if hasattr(value, "to_pydatetime") and value == value:  # not NaT
        return rounded_time(value.to_pydatetime(warn=False), value.nanosecond >= 500)
    return value


def rounded_time(moment: datetime, up: bool) -> datetime:
    """Return a time, or the microsecond after it, in the same one of two repeated hours."""
    return (moment + timedelta(microseconds=1)).replace(fold=moment.fold) if up else moment


def _tidy(value: float) -> float:
    """Return a number with `_SIGNIFICANT_DIGITS` digits: 0.30000000000000004 becomes 0.3."""
    return float(f"{value:.{_SIGNIFICANT_DIGITS}g}")


def is_number(text: str) -> bool:
    """Return whether a text is a number as Python writes it."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def complete_parameters(given: Sequence[Parameter | None], bounds: Array) -> tuple[Parameter, ...]:
    """Return the parameters with a `Range` in place of those that are plain numbers.

    Args:
        given: Type of each column; None for plain numbers.
        bounds: Smallest and largest coordinate of each column. (d, 2)
    """
    pairs = zip(given, bounds, strict=True)
    return tuple(
        _plain_range(*ends) if parameter is None else parameter for parameter, ends in pairs
    )


def is_plain_range(parameter: Parameter) -> bool:
    """Return whether a parameter says no more than that its values are numbers."""
    return isinstance(parameter, Range) and parameter.step is None and parameter.count is None


def _plain_range(low: float, high: float) -> Range:
    if (
        not low < high
        # all points have one coordinate, which may be so large that adding 1 does not change it
    ):
        high = max(low + 1.0, np.nextafter(low, np.inf))
    return Range(float(low), float(high))
