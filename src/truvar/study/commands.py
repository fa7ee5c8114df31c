"""Commands: everything that can be asked of a study that changes it.

A command is a frozen dataclass with the arguments of the method of the same name, and `check()`
returns it with checked values. `Study` executes it by a function of `truvar.study._handlers`;
`RemoteStudy` sends it to a server. `ARGUMENTS` has the descriptions and limits, from which the
bodies of requests and the options of the command line are made, and `INTERFACES` what the routes
and subcommands themselves are made from. The command line reads them before it loads numerical
libraries, so only the checks import these.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from truvar.exceptions import (
    Finished,
    InvalidArgumentError,
    InvalidMeasurementError,
    OutlierWarning,
    UnknownSuggestionError,
)

if TYPE_CHECKING:
    from truvar.models.fit import Model
    from truvar.study._inputs import PointLike, ValueLike
    from truvar.study.suggestion import Suggestion

MAX_LEASE = 100 * 366 * 86_400  # seconds: a hundred years
MAX_REASON_LENGTH = 2000  # characters of a reason that comes over a network
MAX_REPEATS = 1000  # values of one `TellRepeats` that comes over a network
MAX_BATCH = 100  # suggestions of one `Ask` that comes over a network
_KEY_PATTERN = "^[A-Za-z0-9_-]{8,64}$"  # of keys that come over a network


@dataclass(frozen=True)
class Argument:
    """An argument of commands, as requests and the command line describe it.

    Attributes:
        kind: Type of its value; `object` is a number, or a number by name.
        help: Description, as a sentence.
        limits: Limits of a value that comes over a network, by the keywords of `pydantic.Field`.
        is_option: Whether the command line has an option of that name.
        is_measured: Whether it belongs to a measurement, which a mistake in it makes invalid.
    """

    kind: type
    help: str
    limits: Mapping[str, Any] = field(default_factory=dict)
    is_option: bool = False
    is_measured: bool = False


ARGUMENTS: dict[str, Argument] = {
    "n": Argument(int, "Number of suggestions, chosen as a batch.", {"ge": 1}),
    "lease": Argument(
        float, "Seconds for which the suggestions are reserved.", {"gt": 0, "le": MAX_LEASE}
    ),
    "vehicle": Argument(
        str, "Vehicle that the suggestions are for, or that measured a point.", is_option=True
    ),
    "budget": Argument(
        float, "Total cost that the study must stay within, the return leg included.", {"ge": 0}
    ),
    "context": Argument(dict, "Value of every context column, which is given, not chosen."),
    "same": Argument(tuple, "Columns whose values all suggestions share, chosen for the batch."),
    "y": Argument(
        object, "The measured value; of several quantities, those by name.", is_measured=True
    ),
    "values": Argument(list, "The measured values.", {"min_length": 1, "max_length": MAX_REPEATS}),
    "noise": Argument(
        float,
        "Actual noise variance of the measurement.",
        {"ge": 0},
        is_option=True,
        is_measured=True,
    ),
    "noise_sd": Argument(
        float,
        "Actual standard deviation of the measurement, its ±, instead of the variance.",
        {"ge": 0},
        is_option=True,
        is_measured=True,
    ),
    "cost": Argument(
        float, "Actual cost of the measurement.", {"ge": 0}, is_option=True, is_measured=True
    ),
    "exposure": Argument(
        float,
        "Exposure of a measurement that counts events, such as its duration.",
        {"gt": 0},
        is_option=True,
        is_measured=True,
    ),
    "reference": Argument(
        str,
        "Where the raw data of the measurement are, such as a file or the id of a run.",
        {"min_length": 1, "max_length": MAX_REASON_LENGTH},
        is_option=True,
        is_measured=True,
    ),
    "level": Argument(
        int,
        "Noise level that was used, if a point is given.",
        {"ge": 0},
        is_option=True,
        is_measured=True,
    ),
    "task": Argument(str, "Task that was measured, if a point is given.", is_option=True),
    "key": Argument(
        str, "Sent again with the same key, a measurement counts once.", {"pattern": _KEY_PATTERN}
    ),
    "passing": Argument(
        bool, "The point was passed on a track, so that the vehicle is not there any more."
    ),
    "was": Argument(
        float,
        "The value to replace; the correction is refused if the measurement has a third one by "
        "now.",
    ),
    "reason": Argument(
        str,
        "Why, for the event log and the report.",
        {"max_length": MAX_REASON_LENGTH},
        is_option=True,
    ),
    "again": Argument(bool, "The place of a suggestion may be suggested again.", is_option=True),
    "text": Argument(str, "The remark.", {"min_length": 1}),
}


Target = Literal["measurement", "value", "point", "place", "domain", "text"]


@dataclass(frozen=True)
class Interface:
    """The route and the subcommand of a command.

    Attributes:
        target: What the command is about, which decides how it is named and answered: a suggestion
            or "measurement" by its id, the "value" of one (the fields `what` and `y`), a "point" by
            its coordinates or the id of its suggestion, a "place" as `exclude` takes it, the
            "domain" with further points as `extend` takes them, or nothing but a "text" (the field
            of that name).
        done: Participle with which the command line reports it.
        summary: Summary of the route, an imperative without a period.
        help: Help of the subcommand, an imperative without a capital and a period.
        words: Help of the words that name the target.
        example: Command lines, one per line.
        everywhere: Whether a place may be left out, which means everywhere.
    """

    target: Target
    done: str
    summary: str
    help: str
    words: str
    example: str
    everywhere: bool = False


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

    @staticmethod
    def merged(receipts: Sequence[Receipt]) -> Receipt:
        """Return the effect of several commands; a later warning replaces one of the same id."""
        ids: list[int] = []
        warnings: dict[int, str] = {}
        for receipt in receipts:
            ids += receipt.ids
            warnings |= receipt.warnings
        return Receipt(tuple(ids), receipts[-1].version if receipts else 0, warnings)

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
        rewrites: Whether the command concerns earlier measurements, so that all later ones are
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
    vehicle: str | None = None
    budget: float | None = None
    context: Mapping[str, Any] | None = None
    same: Sequence[str] | None = None

    def check(self) -> Self:
        """Check the numbers.

        Raises:
            InvalidArgumentError: If one of them is out of its range.
        """
        from truvar.validation import check_finite, check_integer, check_nonnegative

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
    vehicle: str | None = None
    exposure: float | None = None
    typed: bool = True
    noise_sd: float | None = None
    reference: str | None = None
    passing: bool = False

    def check(self) -> Self:
        """Return the command with value, noise variance, cost and exposure as floats.

        Raises:
            InvalidMeasurementError: If one of them cannot be used.
        """
        from truvar.study._inputs import check_exposure, check_measurement, check_reference

        if self.reference is not None:
            check_reference(self.reference)
        value, noise, cost = check_measurement(self.y, self.noise, self.cost, self.noise_sd)
        exposure = None if self.exposure is None else check_exposure(self.exposure)
        is_checked = (noise, cost, exposure) == (self.noise, self.cost, self.exposure)
        if value is self.y and is_checked and self.noise_sd is None:
            return self
        return replace(self, y=value, noise=noise, cost=cost, exposure=exposure, noise_sd=None)


@dataclass(frozen=True)
class TellAll(Command):
    """Record several measurements, all of them or none; a learned model takes them together.

    It is not sent to a server, where every measurement is a request.

    Attributes:
        tells: The measurements.
        sources: Where each was read, such as "line 3"; opens the message if it is refused.
    """

    name: ClassVar[str] = "tell-all"
    resumes: ClassVar[bool] = True

    tells: Sequence[Tell]
    sources: Sequence[str]


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
    vehicle: str | None = None

    def check(self) -> Self:
        """Return the command with the values as floats.

        Raises:
            InvalidMeasurementError: If there is none, or one of them cannot be used.
        """
        from truvar.study._inputs import check_measurement

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
    exposure: float | None = None
    noise_sd: float | None = None

    def check(self) -> Self:
        """Return the command with value, noise variance, cost and exposure as floats.

        Raises:
            InvalidMeasurementError: If one of them cannot be used.
        """
        from truvar.study._inputs import check_exposure, check_measurement

        value, noise, cost = check_measurement(
            self.y, self.noise, self.cost, self.noise_sd, corrects=True
        )
        exposure = check_exposure(self.exposure)
        return replace(self, y=value, noise=noise, cost=cost, exposure=exposure, noise_sd=None)


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
            from truvar.messages import format_point

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
class Extend(Command):
    """Add further points to the domain, or widen it."""

    name: ClassVar[str] = "extend"
    rewrites: ClassVar[bool] = True
    resumes: ClassVar[bool] = True

    what: Any
    reason: str | None = None

    def check(self) -> Self:
        """Return the command with lists of values by column, or a table.

        Raises:
            TruvarError: If it is neither.
        """
        from truvar.domain.extension import as_values

        return replace(self, what=as_values(self.what))


@dataclass(frozen=True)
class Fail(Command):
    """Record that a measurement failed."""

    name: ClassVar[str] = "fail"
    resumes: ClassVar[bool] = True

    what: Suggestion | int | Mapping[str, Any]
    reason: str | None = None
    cost: float | None = None
    vehicle: str | None = None

    def check(self) -> Self:
        """Return the command with the cost as a float.

        Raises:
            InvalidMeasurementError: If it is not a number >= 0.
        """
        from truvar.study._inputs import check_measurement

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
        from truvar.tabular.tables import as_table

        return replace(self, frame=as_table(self.frame))


_PLACE = (
    "id of a suggestion or measurement, coordinates or label of a point, or a condition such as "
    "'x + y > 3'"
)

# in the order of the help; the other commands have routes and subcommands of their own
INTERFACES: dict[type[Command], Interface] = {
    Correct: Interface(
        target="value",
        done="corrected",
        summary="Correct the value of a measurement",
        help="correct a measured value",
        words="id of the measurement, and its correct value",
        example="truvar correct 3 2.7",
    ),
    Withdraw: Interface(
        target="measurement",
        done="withdrawn",
        summary="Withdraw a suggestion, or remove a measurement",
        help="withdraw suggestions that will not be measured, or measurements made by mistake",
        words="ids of suggestions that will not be measured, or of measurements made by mistake",
        example="truvar withdraw 5\ntruvar withdraw lake.db 5 6",
    ),
    Exclude: Interface(
        target="place",
        done="excluded",
        summary="Exclude a place that cannot be measured",
        help="exclude a place that cannot be measured: it is not suggested any more",
        words=_PLACE,
        example="truvar exclude 5 --reason 'under a jetty'\n"
        "truvar exclude lake.db 'distance_m > 1200 and depth_m < -15'",
    ),
    Fail: Interface(
        target="point",
        done="failed",
        summary="Record that a measurement failed",
        help="record that a measurement failed: the study learns where that is likely",
        words="id of the suggestion whose measurement failed, or the coordinates of the point",
        example="truvar fail 5 --reason 'probe stuck in weed'",
    ),
    Allow: Interface(
        target="place",
        done="allowed",
        summary="Allow a place again; without one, everywhere",
        help="allow a place again that was excluded or withdrawn, or where a measurement failed",
        words=_PLACE,
        example="truvar allow 5\ntruvar allow lake.db 'distance_m > 1200'\ntruvar allow --all",
        everywhere=True,
    ),
    Extend: Interface(
        target="domain",
        done="extended",
        summary="Add further points to the domain, or widen it",
        help="add rows to a table, values to the axes of a grid, or widen a box",
        words="table with further rows, such as more.csv; or values by column: further ones of an "
        "axis, the ends of a side of a box",
        example="truvar extend more.csv\n"
        "truvar extend lake.db x=0,2 --reason 'the boat can go further'",
    ),
    Note: Interface(
        target="text",
        done="noted",
        summary="Add a remark to the event log",
        help="add a note to the event log",
        words="text of the note",
        example="truvar note 'the probe was cleaned'",
    ),
}
