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

Points of a domain are coordinates, so that nothing numerical knows about types; everything that users write or read is
encoded and decoded here.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from functools import cached_property
from math import floor, log10
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar
from zoneinfo import ZoneInfo

import numpy as np

from truvar._typing import Array
from truvar.exceptions import InvalidDomainError, PointNotInDomainError
from truvar.messages import for_interface, unknown_name
from truvar.validation import check_finite, check_integer, check_positive

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

DIGITS = 13  # significant digits of a value on a logarithmic scale: its logarithm has few more
EPOCH = datetime(1970, 1, 1)
SECONDS_PER_DAY = 86_400
MICROSECONDS_PER_DAY = 86_400_000_000
MAX_MICROSECOND_DAY = 2**16  # days from 1970 (1790 to 2149) within which a float tells microseconds apart
MILLISECOND = 1000  # microseconds: the resolution of dates further away
OFFSET = re.compile(r"(?P<sign>[+-])(?P<hours>\d\d):(?P<minutes>\d\d)")
FINER_DIGITS = re.compile(r"([.,]\d{6})(\d+)")
DOTTED_DATE = re.compile(
    r"(?P<day>\d{1,2})\.(?P<month>\d{1,2})\.(?P<year>\d{4})(?P<time>[ T]\d{2}:\d{2}(:\d{2}(\.\d+)?)?)?"
)
SLASHED_DATE = re.compile(r"\d{1,2}/\d{1,2}/\d{4}")
MOST_LISTED = 8  # values of a parameter that a message or summary lists


@dataclass(frozen=True)
class Parameter(ABC):
    """A type of parameter; the classes below are the ones there are."""

    categorical: ClassVar[bool] = False  # whether two values are only equal or different
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
            PointNotInDomainError: If it is not one of the values that there are.
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
        """Return the value that a text of a file, a form or the command line means."""
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
        """Return coordinates for numbers from 0 to 1; levels have equal shares of them."""
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
            InvalidDomainError: If the parameter is continuous and does not say how many values it has.
        """
        if self.n_levels is not None:
            return self.levels
        count = getattr(self, "count", None)
        if count is None:
            example = for_interface(f"{type(self).__name__}(..., count=10)", problem="count = 10 beside its ends")
            raise InvalidDomainError(
                f"an axis of a grid needs finitely many values, got {self} for {name!r}; say how many: {example}"
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


def _check_count(count: int | None, kind: str) -> None:
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
        _check_count(self.count, "Range")
        if self.step is not None and check_positive(self.step, "the step of Range", example="0.1") > high - low:
            raise InvalidDomainError(
                f"the step of Range must fit between its ends, got {self.step!r} for {low:g} to {high:g}; make it less"
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
        return np.array([_tidy(self.low + i * (self.step or 0.0)) for i in index.tolist()], dtype=float)

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
    """Positive numbers from low to high on a logarithmic scale: 0.001 is as far from 0.01 as that from 0.1.

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
        _check_count(self.count, "Log")

    @property
    def bounds(self) -> tuple[float, float]:
        """Smallest and largest coordinate."""
        return log10(self.low), log10(self.high)

    def encode(self, value: Any, name: str) -> float:
        """Return the coordinate of a value."""
        return log10(check_positive(value, f"column {name!r} of the point", example=f"{self.low:g}"))

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
                    f"the {end} end of Integer must be a whole number, got {value!r}; give one, or use Range"
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
                f"column {name!r} of the point must be a whole number, got {value!r}; give {round(number)}"
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
        return np.array([self._coordinate(self.low + self.step * i) for i in index.tolist()], dtype=float)

    def level_of(self, x: Array) -> NDArray[np.intp]:
        """Return the positions of the nearest levels."""
        value = 10.0 ** np.minimum(x, 300.0) if self.log else np.asarray(x)
        return np.clip(np.rint((value - self.low) / self.step), 0, self.n_levels - 1).astype(np.intp)

    def from_unit(self, u: Array) -> Array:
        """Return coordinates for numbers from 0 to 1, on a log scale with equal shares for equal ratios."""
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
            raise InvalidDomainError(f"{kind} needs at least one value, got none; give one such as 'a'")
        for value in values:
            if not (value is None or isinstance(value, (str, bool, int, float))):
                raise InvalidDomainError(
                    f"the values of {kind} must be text, numbers, true or false, got {value!r}; give its name instead"
                )
            if values.count(value) > 1:
                raise InvalidDomainError(
                    f"the values of {kind} must differ, but {value!r} is duplicated; drop or rename one"
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
        position = self._position_of.get(value) if isinstance(value, (str, int, float, type(None))) else None
        if position is None:
            raise PointNotInDomainError(
                f"column {name!r} of the point: {unknown_name('value', value, map(str, self.choices))}"
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
        """Return the value that a text means."""
        for choice in self.choices:
            if text == str(choice) or (choice is None and text == ""):
                return choice
        for choice in self.choices:
            if isinstance(choice, Real) and _is_number(text) and float(text) == float(choice):
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
        listed = ", ".join(str(choice) for choice in self.choices[:MOST_LISTED])
        more = len(self.choices) - MOST_LISTED
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
                f"column {name!r} of the point must be True or False, got {value!r}; give one of them"
            )
        return float(value)

    def decode(self, x: float) -> bool:
        """Return the value at a coordinate."""
        return x > 0.5

    def decode_column(self, x: Array) -> NDArray[Any]:
        """Return the values at coordinates."""
        return np.asarray(x) > 0.5

    def parse(self, text: str, name: str) -> Any:
        """Return the value that a text means."""
        return {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}.get(text.lower(), text)

    def level_at(self, index: NDArray[np.intp]) -> Array:
        """Return the coordinates of levels."""
        return np.asarray(index, dtype=float)

    def level_of(self, x: Array) -> NDArray[np.intp]:
        """Return the positions of the nearest levels."""
        return (np.asarray(x) > 0.5).astype(np.intp)

    def describe(self) -> str:
        """Return the values in words."""
        return "true or false"


@dataclass(frozen=True)
class Date(Parameter):
    """Dates, or dates with a time of day, from low to high. Values are text such as "2026-05-01".

    Times are kept to the microsecond. In a column with a time zone every time has its offset from UTC, such as
    "2026-10-25T02:30:00+02:00", so that the hour that a change of the clocks repeats occurs twice.

    Attributes:
        low: First date: text, a `date` or a `datetime`; with an offset if the column has a time zone. Values are whole
            days if neither end has a time of day; "2026-05-01T00:00" has one, a `datetime` at midnight has none.
        high: Last date.
        count: Number of values if it is an axis of a grid of times.
        timezone: Time zone in which times are shown, such as "Europe/Berlin" or "+02:00". Default: that of the ends;
            None if they have none.

    Raises:
        InvalidDomainError: If the ends are in the wrong order, one of them has no offset though the other has one or a
            time zone is given, or the time zone is unknown.

    Example:
        >>> Domain.box(day=Date("2026-05-01", "2026-09-30"))
        >>> Domain.box(time=Date("2026-05-01T06:00+02:00", "2026-05-02T18:30+02:00", timezone="Europe/Berlin"))
    """

    low: Any
    high: Any
    count: int | None = None
    timezone: str | None = None

    numeric: ClassVar[bool] = False

    def __post_init__(self) -> None:
        ends = [_moment(getattr(self, end), f"the {end} end of Date") for end in ("low", "high")]
        if self.timezone is None:
            object.__setattr__(self, "timezone", _zone_name(ends))
        for end, moment in zip(("low", "high"), ends, strict=True):
            self._check_offset(moment, f"the {end} end of Date")
            text = self._text(moment)
            has_time = isinstance(getattr(self, end), str) and ":" in getattr(self, end)
            object.__setattr__(self, end, text if has_time else text.removesuffix("T00:00:00"))
        _check_count(self.count, "Date")
        low, high = self.bounds
        if not low <= high:
            raise InvalidDomainError(f"Date must have low < high, got {self.low} and {self.high}; swap them")

    @property
    def by_day(self) -> bool:
        """Whether values are whole days."""
        return len(self.low) == len(self.high) == len("2026-05-01")

    @property
    def bounds(self) -> tuple[float, float]:
        """Smallest and largest coordinate."""
        return _days(_moment(self.low, "")), _days(_moment(self.high, ""))

    @property
    def n_levels(self) -> int | None:
        """Number of days; None if values have a time of day."""
        if not self.by_day:
            return None
        low, high = self.bounds
        return round(high - low) + 1

    @cached_property
    def _zone(self) -> tzinfo | None:
        return None if self.timezone is None else _zone(self.timezone)

    def encode(self, value: Any, name: str) -> float:
        """Return the coordinate of a value."""
        moment = _moment(value, f"column {name!r} of the point")
        self._check_offset(moment, f"column {name!r} of the point")
        return _days(moment)

    def encode_column(self, values: Iterable[Any], name: str) -> Array:
        """Return the coordinates of the values of a column: (n,).

        Tables that release 0.2.0 stored may have offsets in a column whose times were taken as UTC without a time zone.
        """
        moments = [_moment(value, f"column {name!r}") for value in values]
        if self._zone is not None:
            for moment in moments:
                self._check_offset(moment, f"column {name!r}")
        return np.array([_days(moment) for moment in moments], dtype=float)

    def decode(self, x: float) -> str:
        """Return the value at a coordinate."""
        day = floor(x)
        microseconds = round((x - day) * MICROSECONDS_PER_DAY)  # the part of the day has all its digits
        if abs(x) >= MAX_MICROSECOND_DAY:
            microseconds = MILLISECOND * round(microseconds / MILLISECOND)
        moment = EPOCH + timedelta(days=day, microseconds=microseconds)
        if self.by_day:
            return moment.date().isoformat()
        return self._text(moment if self._zone is None else moment.replace(tzinfo=UTC))

    def grid_levels(self, name: str) -> Array:
        """Return the coordinates of an axis of a grid: whole seconds, unless they lie closer together."""
        levels = super().grid_levels(name)
        if self.n_levels is not None or len(levels) < 2:
            return levels
        unit = SECONDS_PER_DAY if levels[1] - levels[0] >= 2 / SECONDS_PER_DAY else MICROSECONDS_PER_DAY
        levels[1:-1] = np.rint(levels[1:-1] * unit) / unit
        return levels

    def _text(self, moment: datetime) -> str:
        """Return a time as its values are written."""
        return moment.isoformat() if self._zone is None else moment.astimezone(self._zone).isoformat()

    def _check_offset(self, moment: datetime, name: str) -> None:
        """Check that a time has an offset from UTC if, and only if, the column has a time zone.

        Raises:
            InvalidDomainError: If it does not: it may be that of another row.
        """
        given = moment.isoformat()
        if self._zone is not None and moment.tzinfo is None:
            example = moment.replace(tzinfo=self._zone).isoformat()
            raise PointNotInDomainError(
                f"{name} must have its offset from UTC, as its times are in the time zone {self.timezone}, got "
                f"{given!r}; give for example {example!r}"
            )
        if self._zone is None and moment.tzinfo is not None:
            example = moment.astimezone(UTC).replace(tzinfo=None).isoformat()
            raise PointNotInDomainError(
                f"{name} must have no offset from UTC, as its times have no time zone, got {given!r}; leave it out, or "
                f"give {example!r} if the times are in UTC"
            )

    def parse(self, text: str, name: str) -> Any:
        """Return the value that a text means."""
        return text

    def level_at(self, index: NDArray[np.intp]) -> Array:
        """Return the coordinates of levels."""
        return np.asarray(self.bounds[0] + index, dtype=float)

    def level_of(self, x: Array) -> NDArray[np.intp]:
        """Return the positions of the nearest levels."""
        return np.clip(np.rint(np.asarray(x) - self.bounds[0]), 0, (self.n_levels or 1) - 1).astype(np.intp)

    def describe(self) -> str:
        """Return the values in words."""
        zone = "" if self.timezone is None else f" in the time zone {self.timezone}"
        return f"{self.low} to {self.high}{zone}"


# -- recognition -------------------------------------------------------------------------------------------------------


def box_parameter(name: str, given: Any) -> Parameter | None:
    """Return the parameter that a side of a box describes; None for an interval (low, high), which the box checks."""
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
    """Return the parameter that an axis of a grid describes; None for a list of numbers, which the grid checks."""
    if isinstance(given, Parameter):
        return given
    return box_parameter(name, given.tolist() if isinstance(given, np.ndarray) and given.ndim == 1 else given)


def _check_boolean_list(name: str, values: Sequence[bool]) -> Boolean:
    if sorted(values) != [False, True]:
        raise InvalidDomainError(f"{name!r} must be [false, true] to be a choice, got {list(values)!r}; give both")
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
    if kind == "M" or all(isinstance(value, (date, datetime)) for value in values):
        return _date_column(values, name) if values else None
    if all(isinstance(value, bool) for value in values):
        return Boolean()
    if not values or all(isinstance(value, Real) for value in values):
        return None
    for row, value in enumerate(values):
        if not isinstance(value, (str, bool)):
            raise InvalidDomainError(
                f"column {name!r} must contain numbers or text, not both, got {value!r} in row {row}; fix that row, or "
                "write all values as text"
            )
    numbers = sum(_is_number(str(value)) for value in values)
    if 2 * numbers > len(values):  # a column of numbers with a typing error must not become a list of categories
        row = next(row for row, value in enumerate(values) if not _is_number(str(value)))
        raise InvalidDomainError(
            f"column {name!r} must contain numbers, got {values[row]!r} in row {row}; fix or drop that row"
        )
    if all(SLASHED_DATE.match(str(value)) for value in values):
        raise InvalidDomainError(
            f"column {name!r} holds dates such as {values[0]!r}, in which the day or the month may come first; write "
            "them as 2026-05-01, or convert the column: pd.to_datetime(frame[...], format='%m/%d/%Y')"
        )
    if all(_is_date(str(value)) for value in values):
        return _date_column(values, name)
    return Categorical(list(dict.fromkeys(values)))


def _date_column(values: Sequence[Any], name: str) -> Date:
    moments = [_moment(value, f"column {name!r}") for value in values]
    has_zone = [moment.tzinfo is not None for moment in moments]
    if any(has_zone) and not all(has_zone):
        row = has_zone.index(False)
        raise InvalidDomainError(
            f"all times of column {name!r} must have an offset from UTC, or none of them, got {values[row]!r} in row "
            f"{row}; add the offset there"
        )
    # By the instant: Python compares times of one zone by the clock, which repeats an hour in autumn.
    low = min(moments, key=_days)
    high = max(moments, key=_days)
    if all(moment.time() == time() for moment in moments):
        return Date(low, high, timezone=_zone_name(moments))
    # Midnight at both ends must not hide the times in between.
    return Date(low.isoformat(), high.isoformat(), timezone=_zone_name(moments))


def _log_column(column: pd.Series, name: str) -> Log:
    values = column.to_numpy(dtype=float)
    if not (values > 0).all():
        row = int(np.argmin(values > 0))
        raise InvalidDomainError(
            f"column {name!r} is to have a log scale, so its numbers must be > 0, got {values[row]} in row {row}; "
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
            f"column {name!r} must have a value in every row, got none in row {row}; fix or drop that row"
        )


def plain_value(value: Any) -> Any:
    """Return a value as Python's own type; a number of NumPy's as the number, a time of pandas as a `datetime`.

    Nanoseconds are rounded to microseconds.
    """
    if isinstance(value, np.datetime64):
        import pandas as pd

        with suppress(ValueError):  # a year that pandas has not
            value = pd.Timestamp(value)
    elif isinstance(value, np.generic):
        return value.item()
    if hasattr(value, "to_pydatetime") and value == value:  # not NaT
        return _rounded_time(value.to_pydatetime(warn=False), value.nanosecond >= 500)
    return value


def _rounded_time(moment: datetime, up: bool) -> datetime:
    """Return a time, or the microsecond after it; a sum alone would forget which of two equal hours it is in."""
    return (moment + timedelta(microseconds=1)).replace(fold=moment.fold) if up else moment


def _tidy(value: float) -> float:
    """Return a number with `DIGITS` digits: 0.30000000000000004 becomes 0.3."""
    return float(f"{value:.{DIGITS}g}")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _is_date(text: str) -> bool:
    try:
        _parse_time(text)
    except (ValueError, OverflowError):
        return False
    return len(_iso(text)) >= len("2026-05-01")


def _iso(text: str) -> str:
    """Return a date with dots, such as 1.5.2026, whose day comes first everywhere, in the form 2026-05-01."""
    found = DOTTED_DATE.fullmatch(text.strip())
    if found is None:
        return text
    return f"{found['year']}-{int(found['month']):02}-{int(found['day']):02}{found['time'] or ''}"


def _moment(value: Any, name: str) -> datetime:
    """Return a date or time as a `datetime`, with the time zone that it has."""
    value = plain_value(value)
    if isinstance(value, str):
        try:
            value = _parse_time(value)
        except (ValueError, OverflowError):  # the latter for what is rounded up to the year 10000
            value = None
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    if not isinstance(value, datetime) or value != value:  # pandas' NaT is a datetime
        raise PointNotInDomainError(f'{name} must be a date such as "2026-05-01", got {value!r}; give one')
    if value.tzinfo is not None and not date.min.year < value.year < date.max.year:
        # In another time zone its year may be one that Python does not have.
        raise PointNotInDomainError(
            f"{name} must be in the years {date.min.year + 1} to {date.max.year - 1}, as it has an offset from UTC, "
            f"got {value.isoformat()!r}; correct the year"
        )
    return value


def _parse_time(text: str) -> datetime:
    """Return the time that a text means, rounded to microseconds."""
    iso = _iso(text)
    moment = datetime.fromisoformat(FINER_DIGITS.sub(r"\1", iso, count=1))
    finer = FINER_DIGITS.search(iso)
    return _rounded_time(moment, finer is not None and finer[2][0] >= "5")


def _days(moment: datetime) -> float:
    """Return the days since 1970-01-01; those of a time with a time zone in UTC."""
    if moment.tzinfo is not None:
        moment = moment.astimezone(UTC).replace(tzinfo=None)
    microseconds = (moment - EPOCH) // timedelta(microseconds=1)
    if abs(microseconds) >= MAX_MICROSECOND_DAY * MICROSECONDS_PER_DAY:
        microseconds = MILLISECOND * round(microseconds / MILLISECOND)
    return microseconds / MICROSECONDS_PER_DAY  # of whole numbers: rounded once


def _zone_name(moments: Sequence[datetime]) -> str | None:
    """Return the name of the time zone of some times; None if they have none.

    Times of which only the offsets are known have a time zone of that offset, or UTC if their offsets differ.
    """
    zones = {moment.tzinfo for moment in moments if moment.tzinfo is not None}
    if not zones:
        return None
    names = {getattr(zone, "key", None) or getattr(zone, "zone", None) for zone in zones}  # of zoneinfo or pytz
    if len(names) == 1 and None not in names:
        return str(names.pop())
    offsets = {_offset_text(moment) for moment in moments if moment.tzinfo is not None}
    common = offsets.pop()
    return "UTC" if offsets or common == "+00:00" else common


def _offset_text(moment: datetime) -> str:
    """Return the offset of a time from UTC, such as "+02:00"; one that has seconds as "+00:00"."""
    text = moment.isoformat()[-len("+02:00") :]
    return text if OFFSET.fullmatch(text) else "+00:00"


def _zone(name: str) -> tzinfo:
    """Return the time zone of a name or offset.

    Raises:
        InvalidDomainError: If it is unknown.
    """
    found = OFFSET.fullmatch(str(name))
    if found is not None:
        offset = timedelta(hours=int(found["hours"]), minutes=int(found["minutes"]))
        if offset < timedelta(days=1):
            return timezone(-offset if found["sign"] == "-" else offset)
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (TypeError, ValueError, OSError, KeyError):  # ZoneInfoNotFoundError is a KeyError
        raise InvalidDomainError(
            f"unknown time zone {name!r}; give a name such as 'Europe/Berlin', for which the package tzdata may be "
            "needed, or an offset such as '+02:00'"
        ) from None
