"""Commands: everything that can be asked of a study that changes it.

A command is a frozen dataclass with the arguments of the method of the same name, and `check()`
returns it with checked values. `Study` executes it by a function of `truvar.study._handlers`;
`RemoteStudy` sends it to a server, whose request bodies build the same command again. Every limit
of an argument is here, once.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from truvar.exceptions import (
    Finished,
    InvalidArgumentError,
    InvalidMeasurementError,
    OutlierWarning,
    UnknownSuggestionError,
)
from truvar.messages import for_interface, format_point
from truvar.study._inputs import PointLike, ValueLike, as_value
from truvar.study.suggestion import Suggestion
from truvar.tabular.tables import as_table
from truvar.validation import check_cost, check_finite, check_integer, check_nonnegative

if TYPE_CHECKING:
    from truvar.models.fit import Model

MAX_LEASE = 100 * 366 * 86_400  # seconds: a hundred years
MAX_REASON_LENGTH = 2000  # characters of a reason that comes over a network
MAX_REPEATS = 1000  # values of one `TellRepeats` that comes over a network


@dataclass(frozen=True)
class Receipt:
    """Effect of a command.

    Attributes:
        ids: Ids of the suggestions or measurements that it is about.
        version: Number of the last event of the study after it.
        warnings: Messages about values that may be mistakes, by the id of the measurement.
        suggestions: The suggestions of `Ask`.
        end: Why `Ask` made fewer suggestions than it was to make; None if it made all.
        model: The model of `Fit`.
    """

    ids: tuple[int, ...] = ()
    version: int = 0
    warnings: Mapping[int, str] = field(default_factory=dict)
    suggestions: tuple[Suggestion, ...] = ()
    end: Finished | None = None
    model: Model | None = None

    def warn(self, stacklevel: int) -> None:
        """Issue the warnings.

        Args:
            stacklevel: As for `warnings.warn`, counted from the caller.
        """
        for id_, message in self.warnings.items():
            warnings.warn(OutlierWarning(message, id_), stacklevel=stacklevel + 1)


@dataclass(frozen=True)
class Command:
    """Base class of the commands.

    Attributes:
        name: Name of the command, which is also that of its route below a study.
        rewrites: Whether the command concerns an earlier measurement, so that all later ones are
            taken in again.
        resumes: Whether the reason why a run ended no longer holds after it.
    """

    name: ClassVar[str]
    rewrites: ClassVar[bool] = False
    resumes: ClassVar[bool] = False

    def check(self) -> Self:
        """Return the command with checked values.

        Raises:
            TruvarError: If a value has the wrong type or range, whatever the study.
        """
        return self


@dataclass(frozen=True)
class Ask(Command):
    """Suggest where to measure next."""

    name: ClassVar[str] = "ask"

    n: int = 1
    lease: float | None = None
    who: str | None = None
    budget: float | None = None
    context: Mapping[str, Any] | None = None

    def check(self) -> Self:
        """Check the numbers.

        Raises:
            InvalidArgumentError: If one of them is out of its range.
        """
        check_integer(self.n, "the number of suggestions", minimum=1)
        if self.lease is not None and not 0 < check_finite(self.lease, "lease") <= MAX_LEASE:
            raise InvalidArgumentError(
                f"lease must be a number of seconds > 0 and <= {MAX_LEASE:g}, got {self.lease!r}; "
                "give one such as "
                "3600, or leave it out for no end"
            )
        if self.budget is not None:
            check_nonnegative(self.budget, "budget")
        return self


@dataclass(frozen=True)
class Tell(Command):
    """Record a measured value.

    `typed` says whether a person may have mistyped the value: then a warning names an implausible
    one. It is not sent to a server.
    """

    name: ClassVar[str] = "tell"
    resumes: ClassVar[bool] = True

    what: Suggestion | int | PointLike
    y: ValueLike
    noise: float | None = None
    level: int | None = None
    task: str | None = None
    cost: float | None = None
    key: str | None = None
    who: str | None = None
    typed: bool = True

    def check(self) -> Self:
        """Return the command with value, noise and cost as floats.

        Raises:
            InvalidMeasurementError: If one of them cannot be used.
        """
        value, noise, cost = check_measurement(self.y, self.noise, self.cost)
        return replace(self, y=value, noise=noise, cost=cost)


@dataclass(frozen=True)
class TellRepeats(Command):
    """Record several measurements of the same place."""

    name: ClassVar[str] = "tell-repeats"
    resumes: ClassVar[bool] = True

    what: Suggestion | int | PointLike
    values: Sequence[ValueLike]
    level: int | None = None
    task: str | None = None
    key: str | None = None
    who: str | None = None

    def check(self) -> Self:
        """Return the command with the values as floats.

        Raises:
            InvalidMeasurementError: If there is none, or one of them cannot be used.
        """
        values = tuple(check_measurement(value, None, None)[0] for value in self.values)
        if not values:
            raise InvalidMeasurementError(
                "tell_repeats needs at least one value, got none; give a list such as [0.9]"
            )
        return replace(self, values=values)

    @property
    def keys(self) -> list[str | None]:
        """The keys under which the measurements are stored: the caller's key, numbered from 1."""
        return [
            None if self.key is None else f"{self.key}.{position + 1}"
            for position in range(len(self.values))
        ]


@dataclass(frozen=True)
class Correct(Command):
    """Replace the value of a measurement."""

    name: ClassVar[str] = "correct"
    rewrites: ClassVar[bool] = True
    resumes: ClassVar[bool] = True

    what: Suggestion | int
    y: float
    noise: float | None = None
    cost: float | None = None
    was: float | None = None

    def check(self) -> Self:
        """Return the command with value, noise and cost as floats.

        Raises:
            InvalidMeasurementError: If one of them cannot be used.
        """
        value, noise, cost = check_measurement(self.y, self.noise, self.cost, corrects=True)
        return replace(self, y=value, noise=noise, cost=cost)


@dataclass(frozen=True)
class Withdraw(Command):
    """Withdraw a suggestion or remove a measurement."""

    name: ClassVar[str] = "withdraw"
    rewrites: ClassVar[bool] = True

    what: Suggestion | int
    reason: str | None = None
    again: bool = False

    def check(self) -> Self:
        """Check that no point is given.

        Raises:
            UnknownSuggestionError: If one is.
        """
        if isinstance(self.what, Mapping):
            raise UnknownSuggestionError(
                f"withdraw takes a suggestion or its id, got the point {format_point(self.what)}; "
                "give the id"
            )
        return self


@dataclass(frozen=True)
class Exclude(Command):
    """Exclude a place that cannot be measured."""

    name: ClassVar[str] = "exclude"
    resumes: ClassVar[bool] = True

    what: Any
    reason: str | None = None


@dataclass(frozen=True)
class Allow(Command):
    """Allow a place again; None: everywhere."""

    name: ClassVar[str] = "allow"
    resumes: ClassVar[bool] = True

    what: Any = None


@dataclass(frozen=True)
class Fail(Command):
    """Record that a measurement failed."""

    name: ClassVar[str] = "fail"
    resumes: ClassVar[bool] = True

    what: Suggestion | int | Mapping[str, Any]
    reason: str | None = None
    cost: float | None = None
    who: str | None = None

    def check(self) -> Self:
        """Return the command with the cost as a float.

        Raises:
            InvalidMeasurementError: If it is not a number >= 0.
        """
        _, _, cost = check_measurement(0.0, None, self.cost)
        return replace(self, cost=cost)


@dataclass(frozen=True)
class Note(Command):
    """Write a remark into the event log."""

    name: ClassVar[str] = "note"

    text: str

    def check(self) -> Self:
        """Return the command with the remark as text."""
        return replace(self, text=str(self.text))


@dataclass(frozen=True)
class Fit(Command):
    """Fit the model to another data set and take it as known from then on."""

    name: ClassVar[str] = "fit"

    frame: Any
    value: str | None = None

    def check(self) -> Self:
        """Return the command with the data set as a DataFrame."""
        return replace(self, frame=as_table(self.frame))


def check_measurement(
    y: Any, noise: Any, cost: Any, *, corrects: bool = False
) -> tuple[float, float | None, float | None]:
    """Return value, noise and cost of a measurement as floats.

    Args:
        y: The value.
        noise: Its noise variance, or None.
        cost: Its cost, or None.
        corrects: Whether the value takes the place of another one, so that nothing is pending that
            could fail.

    Raises:
        InvalidMeasurementError: If the value is not finite, or noise or cost are not numbers >= 0,
            or the cost is above `MAX_COST`.
    """
    try:
        value = check_finite(as_value(y), "the measured value y")
        noise = None if noise is None else check_nonnegative(noise, "noise")
        cost = None if cost is None else check_cost(cost, "cost")
    except InvalidArgumentError as error:
        remedy = "" if corrects else _remedy_of_missing(y)
        raise InvalidMeasurementError(f"{error}{remedy}") from None
    return value, noise, cost


def _remedy_of_missing(y: Any) -> str:
    """Return what to do with a measurement that has no value; nothing for one that has."""
    is_missing = y is None or (isinstance(y, float) and np.isnan(y))
    if not is_missing:
        return ""
    call = for_interface(
        "fail(suggestion, reason)", cli="truvar fail ID --reason TEXT", http="POST .../fail"
    )
    return f", or say that the measurement failed: {call}"
