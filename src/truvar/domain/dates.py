"""Dates and times as parameters: text such as "2026-05-01", days since 1970 in the model.

Days have a resolution of a microsecond from 1790 to 2149, and of a millisecond before and after.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from functools import cached_property
from math import floor
from typing import TYPE_CHECKING, Any, ClassVar
from zoneinfo import ZoneInfo

import numpy as np

from truvar._typing import Array
from truvar.domain.parameters import Parameter, check_count, plain_value, rounded_time
from truvar.exceptions import InvalidDomainError, PointNotInDomainError

if TYPE_CHECKING:
    from numpy.typing import NDArray

_EPOCH = datetime(1970, 1, 1)
_SECONDS_PER_DAY = 86_400
_MICROSECONDS_PER_DAY = 86_400_000_000
# Days from 1970 (1790 to 2149) within which a float resolves microseconds.
_MAX_MICROSECOND_DAY = 2**16
_MILLISECOND = 1000  # in microseconds: the resolution of dates outside that range
_OFFSET = re.compile(r"(?P<sign>[+-])(?P<hours>\d\d):(?P<minutes>\d\d)")
_FINER_DIGITS = re.compile(r"([.,]\d{6})(\d+)")
_DOTTED_DATE = re.compile(
    r"(?P<day>\d{1,2})\.(?P<month>\d{1,2})\.(?P<year>\d{4})(?P<time>[ T]\d{2}:\d{2}(:\d{2}(\.\d+)?)?)?"
)


@dataclass(frozen=True)
class Date(Parameter):
    """Dates, or dates with a time of day, from low to high. Values are text such as "2026-05-01".

    Times are kept to the microsecond. In a column with a time zone every time has its offset from
    UTC, such as "2026-10-25T02:30:00+02:00", so that the hour that a change of the clocks repeats
    occurs twice.

    Attributes:
        low: First date: text, a `date` or a `datetime`; with an offset if the column has a time
            zone. Values are whole days if neither end has a time of day; "2026-05-01T00:00" has
            one, a `datetime` at midnight has none.
        high: Last date.
        count: Number of values if it is an axis of a grid of times.
        timezone: Time zone in which times are shown, such as "Europe/Berlin" or "+02:00". Default:
            that of the ends; None if they have none.

    Raises:
        InvalidDomainError: If the ends are in the wrong order, one of them has no offset though the
            other has one or a time zone is given, or the time zone is unknown.

    Example:
        >>> Domain.box(day=Date("2026-05-01", "2026-09-30"))
        >>> first, last = "2026-05-01T06:00+02:00", "2026-05-02T18:30+02:00"
        >>> Domain.box(time=Date(first, last, timezone="Europe/Berlin"))
    """

    low: Any
    high: Any
    count: int | None = None
    timezone: str | None = None

    numeric: ClassVar[bool] = False

    def __post_init__(self) -> None:
        ends = [as_moment(getattr(self, end), f"the {end} end of Date") for end in ("low", "high")]
        if self.timezone is None:
            object.__setattr__(self, "timezone", zone_name(ends))
        for end, moment in zip(("low", "high"), ends, strict=True):
            self._check_offset(moment, f"the {end} end of Date")
            text = self._text(moment)
            has_time = isinstance(getattr(self, end), str) and ":" in getattr(self, end)
            object.__setattr__(self, end, text if has_time else text.removesuffix("T00:00:00"))
        check_count(self.count, "Date")
        low, high = self.bounds
        if not low <= high:
            raise InvalidDomainError(
                f"Date must have low < high, got {self.low} and {self.high}; swap them"
            )

    @property
    def by_day(self) -> bool:
        """Whether values are whole days."""
        return len(self.low) == len(self.high) == len("2026-05-01")

    @property
    def bounds(self) -> tuple[float, float]:
        """Smallest and largest coordinate."""
        return days_since_epoch(as_moment(self.low, "")), days_since_epoch(as_moment(self.high, ""))

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
        moment = as_moment(value, f"column {name!r} of the point")
        self._check_offset(moment, f"column {name!r} of the point")
        return days_since_epoch(moment)

    def encode_column(self, values: Iterable[Any], name: str) -> Array:
        """Return the coordinates of the values of a column: (n,).

        Tables that release 0.2.0 stored may have offsets in a column whose times were taken as UTC
        without a time zone.
        """
        moments = [as_moment(value, f"column {name!r}") for value in values]
        if self._zone is not None:
            for moment in moments:
                self._check_offset(moment, f"column {name!r}")
        return np.array([days_since_epoch(moment) for moment in moments], dtype=float)

    def decode(self, x: float) -> str:
        """Return the value at a coordinate."""
        day = floor(x)
        microseconds = round(
            (x - day) * _MICROSECONDS_PER_DAY
        )  # the part of the day has all its digits
        if abs(x) >= _MAX_MICROSECOND_DAY:
            microseconds = _MILLISECOND * round(microseconds / _MILLISECOND)
        moment = _EPOCH + timedelta(days=day, microseconds=microseconds)
        if self.by_day:
            return moment.date().isoformat()
        return self._text(moment if self._zone is None else moment.replace(tzinfo=UTC))

    def grid_levels(self, name: str) -> Array:
        """Return the coordinates of a grid's axis: whole seconds, unless they are closer."""
        levels = super().grid_levels(name)
        if self.n_levels is not None or len(levels) < 2:
            return levels
        unit = (
            _SECONDS_PER_DAY
            if levels[1] - levels[0] >= 2 / _SECONDS_PER_DAY
            else _MICROSECONDS_PER_DAY
        )
        levels[1:-1] = np.rint(levels[1:-1] * unit) / unit
        return levels

    def _text(self, moment: datetime) -> str:
        """Return a time as text, in the time zone of the column."""
        return (
            moment.isoformat() if self._zone is None else moment.astimezone(self._zone).isoformat()
        )

    def _check_offset(self, moment: datetime, name: str) -> None:
        """Check that a time has an offset from UTC if, and only if, the column has a time zone.

        Raises:
            InvalidDomainError: If it does not: it may be that of another row.
        """
        given = moment.isoformat()
        if self._zone is not None and moment.tzinfo is None:
            example = moment.replace(tzinfo=self._zone).isoformat()
            raise PointNotInDomainError(
                f"{name} must have its offset from UTC, as its times are in the time zone "
                f"{self.timezone}, got "
                f"{given!r}; give for example {example!r}"
            )
        if self._zone is None and moment.tzinfo is not None:
            example = moment.astimezone(UTC).replace(tzinfo=None).isoformat()
            raise PointNotInDomainError(
                f"{name} must have no offset from UTC, as its times have no time zone, got "
                f"{given!r}; leave it out, or "
                f"give {example!r} if the times are in UTC"
            )

    def parse(self, text: str, name: str) -> Any:
        """Return the text, which is the value."""
        return text

    def level_at(self, index: NDArray[np.intp]) -> Array:
        """Return the coordinates of levels."""
        return np.asarray(self.bounds[0] + index, dtype=float)

    def level_of(self, x: Array) -> NDArray[np.intp]:
        """Return the positions of the nearest levels."""
        return np.clip(np.rint(np.asarray(x) - self.bounds[0]), 0, (self.n_levels or 1) - 1).astype(
            np.intp
        )

    def describe(self) -> str:
        """Return the values in words."""
        zone = "" if self.timezone is None else f" in the time zone {self.timezone}"
        return f"{self.low} to {self.high}{zone}"


def is_date(text: str) -> bool:
    """Return whether a text is a date, with or without a time."""
    try:
        _parse_time(text)
    except (ValueError, OverflowError):
        return False
    return len(_iso(text)) >= len("2026-05-01")


def _iso(text: str) -> str:
    """Return a date with dots, such as 1.5.2026 (day first), in the form 2026-05-01."""
    found = _DOTTED_DATE.fullmatch(text.strip())
    if found is None:
        return text
    return f"{found['year']}-{int(found['month']):02}-{int(found['day']):02}{found['time'] or ''}"


def as_moment(value: Any, name: str) -> datetime:
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
        raise PointNotInDomainError(
            f'{name} must be a date such as "2026-05-01", got {value!r}; give one'
        )
    if value.tzinfo is not None and not date.min.year < value.year < date.max.year:
        # In another time zone its year may be one that Python does not have.
        raise PointNotInDomainError(
            f"{name} must be in the years {date.min.year + 1} to {date.max.year - 1}, as it has an "
            "offset from UTC, "
            f"got {value.isoformat()!r}; correct the year"
        )
    return value


def _parse_time(text: str) -> datetime:
    """Parse a time and round it to microseconds."""
    iso = _iso(text)
    moment = datetime.fromisoformat(_FINER_DIGITS.sub(r"\1", iso, count=1))
    finer = _FINER_DIGITS.search(iso)
    return rounded_time(moment, finer is not None and finer[2][0] >= "5")


def days_since_epoch(moment: datetime) -> float:
    """Return the days since 1970-01-01; those of a time with a time zone in UTC."""
    if moment.tzinfo is not None:
        moment = moment.astimezone(UTC).replace(tzinfo=None)
    microseconds = (moment - _EPOCH) // timedelta(microseconds=1)
    if abs(microseconds) >= _MAX_MICROSECOND_DAY * _MICROSECONDS_PER_DAY:
        microseconds = _MILLISECOND * round(microseconds / _MILLISECOND)
    return microseconds / _MICROSECONDS_PER_DAY  # of whole numbers: rounded once


def zone_name(moments: Sequence[datetime]) -> str | None:
    """Return the name of the time zone of some times; None if they have none.

    Times of which only the offsets are known have a time zone of that offset, or UTC if their
    offsets differ.
    """
    zones = {moment.tzinfo for moment in moments if moment.tzinfo is not None}
    if not zones:
        return None
    names = {
        getattr(zone, "key", None) or getattr(zone, "zone", None) for zone in zones
    }  # of zoneinfo or pytz
    if len(names) == 1 and None not in names:
        return str(names.pop())
    offsets = {_offset_text(moment) for moment in moments if moment.tzinfo is not None}
    common = offsets.pop()
    return "UTC" if offsets or common == "+00:00" else common


def _offset_text(moment: datetime) -> str:
    """Return the offset of a time from UTC, such as "+02:00"; one that has seconds as "+00:00"."""
    text = moment.isoformat()[-len("+02:00") :]
    return text if _OFFSET.fullmatch(text) else "+00:00"


def _zone(name: str) -> tzinfo:
    """Return the time zone of a name or offset.

    Raises:
        InvalidDomainError: If it is unknown.
    """
    found = _OFFSET.fullmatch(str(name))
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
            f"unknown time zone {name!r}; give a name such as 'Europe/Berlin', for which the "
            "package tzdata may be "
            "needed, or an offset such as '+02:00'"
        ) from None
