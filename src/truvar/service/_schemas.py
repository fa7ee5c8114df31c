"""Request bodies, as OpenAPI describes them.

Bodies whose sizes depend on the limits of a server are made for each application: `ask_body`,
`note_body`.
"""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import Discriminator, Field, Tag, create_model, model_validator

from truvar.problem.messages import TABLE, TEXT, rule_error
from truvar.problem.schema import (
    NonNegative,
    NonNegativeCount,
    Number,
    ProblemSpec,
    StrictModel,
    Text,
    text_or_table,
)
from truvar.service._limits import ServiceLimits
from truvar.storage.base import MAX_NAME_LENGTH
from truvar.study.commands import MAX_LEASE, MAX_REASON_LENGTH, MAX_REPEATS

MEASUREMENT_FIELDS = frozenset(
    {"y", "noise", "cost", "level"}
)  # of the bodies `Tell` and `Correct`

Id = Annotated[
    int, Field(strict=True, ge=1, le=2**53, description="Id of a suggestion or measurement.")
]
KEY_PATTERN = "^[A-Za-z0-9_-]{8,64}$"
Coordinate = Number | Text | bool | None
Point = Annotated[dict[str, Coordinate], Field(examples=[{"distance_m": 300.0, "depth_m": -8.0}])]
ProblemSource = Annotated[
    Annotated[Text, Tag(TEXT)] | Annotated[ProblemSpec, Tag(TABLE)],
    Discriminator(text_or_table),
]


class Create(StrictModel):
    """A new study: a problem, or a whole study as it was exported."""

    name: Annotated[str, Field(min_length=1, max_length=MAX_NAME_LENGTH)]
    problem: Annotated[
        ProblemSource | None, Field(description="Problem file as text, or an object of that form.")
    ] = None
    tables: dict[str, str] = Field(
        default={}, description="CSV text of the tables, by their name in the problem."
    )
    study: Annotated[
        dict[str, Any] | None, Field(description="An exported study, instead of a problem.")
    ] = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.problem is None) == (self.study is None):
            got = "neither" if self.problem is None else "both"
            raise rule_error(
                f"a new study needs either a problem or an exported study, got {got}; give one of "
                "them"
            )
        return self


class ProblemCheck(StrictModel):
    """A problem to validate, which is not stored."""

    problem: Annotated[
        ProblemSource, Field(description="Problem file as text, or an object of that form.")
    ]
    tables: dict[str, str] = Field(
        default={}, description="CSV text of the tables, by their name in the problem."
    )


class TableText(StrictModel):
    """A table whose columns are asked for."""

    text: Annotated[str, Field(description="CSV text, with a line of column names.")]


class Rename(StrictModel):
    """Another name for a study."""

    name: Annotated[
        str, Field(min_length=1, max_length=MAX_NAME_LENGTH, description="The new name.")
    ]
    confirm: Annotated[str, Field(description="The present name, again, as a confirmation.")]


class Delete(StrictModel):
    """A study to delete for good."""

    confirm: Annotated[str, Field(description="The name of the study, again, as a confirmation.")]


class Ask(StrictModel):
    """A request for suggestions."""

    n: Annotated[
        int, Field(strict=True, ge=1, description="Number of suggestions, chosen as a batch.")
    ] = 1
    lease: Annotated[
        float | None,
        Field(gt=0, le=MAX_LEASE, description="Seconds for which the suggestions are reserved."),
    ] = None
    who: Annotated[str | None, Field(description="Vehicle that the suggestions are for.")] = None
    budget: Annotated[
        NonNegative | None,
        Field(description="Total cost that the study must stay within, the return leg included."),
    ] = None
    context: Annotated[
        dict[str, Coordinate] | None,
        Field(description="Value of every context column, which is given, not chosen."),
    ] = None


class Tell(StrictModel):
    """A measured value of a suggestion, by its id, or of any point."""

    id: Id | None = None
    point: Point | None = None
    y: Annotated[Number, Field(description="The measured value.")]
    noise: Annotated[
        NonNegative | None, Field(description="Noise variance, if other than expected.")
    ] = None
    cost: Annotated[NonNegative | None, Field(description="Cost, if other than expected.")] = None
    level: Annotated[NonNegativeCount | None, Field(description="Noise level of a point.")] = None
    task: Annotated[str | None, Field(description="Task of a point.")] = None
    who: Annotated[str | None, Field(description="Vehicle that measured a point.")] = None
    key: Annotated[
        str | None,
        Field(
            pattern=KEY_PATTERN, description="Sent again with the same key, a point counts once."
        ),
    ] = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.id is None) == (self.point is None):
            got = "neither" if self.id is None else "both"
            raise rule_error(f"a value needs either an id or a point, got {got}; give one of them")
        if self.key is not None and self.point is None:
            raise rule_error("a key belongs to a point, got an id; leave out the key")
        return self


class TellRepeats(StrictModel):
    """Several measured values of the same place: of a suggestion, by its id, or of any point."""

    id: Id | None = None
    point: Point | None = None
    values: Annotated[
        list[Number],
        Field(min_length=1, max_length=MAX_REPEATS, description="The measured values."),
    ]
    level: Annotated[NonNegativeCount | None, Field(description="Noise level of a point.")] = None
    task: Annotated[str | None, Field(description="Task of a point.")] = None
    who: Annotated[str | None, Field(description="Vehicle that measured a point.")] = None
    key: Annotated[
        str | None,
        Field(
            pattern=KEY_PATTERN, description="Sent again with the same key, the values count once."
        ),
    ] = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.id is None) == (self.point is None):
            got = "neither" if self.id is None else "both"
            raise rule_error(f"values need either an id or a point, got {got}; give one of them")
        return self


class Correct(StrictModel):
    """The correct value of a measurement."""

    id: Id
    y: Annotated[Number, Field(description="The correct value.")]
    noise: Annotated[
        NonNegative | None, Field(description="Noise variance, if it changes too.")
    ] = None
    cost: Annotated[NonNegative | None, Field(description="Cost, if it changes too.")] = None
    was: Annotated[
        Number | None,
        Field(
            description="The value to replace; the correction is refused if the measurement has a "
            "third one by now."
        ),
    ] = None


Reason = Annotated[
    str | None,
    Field(max_length=MAX_REASON_LENGTH, description="Why, for the event log and the report."),
]


class Withdraw(StrictModel):
    """A suggestion that will not be measured, or a measurement to remove."""

    id: Id
    reason: Reason = None
    again: Annotated[
        bool, Field(description="Whether the place of a suggestion may be suggested again.")
    ] = False


class Polygon(StrictModel):
    """A polygon, with holes, or several that do not overlap."""

    rings: Annotated[
        list[list[tuple[Number, Number]]], Field(description="Vertices of every ring.")
    ]
    columns: Annotated[
        tuple[str, str] | None, Field(description="The two columns; default: the first two.")
    ] = None


class AllowedPlace(StrictModel):
    """A place: a suggestion or measurement, a point, a region, a condition, a polygon or rows; none: everywhere."""

    id: Id | None = None
    point: Point | None = None
    region: Annotated[
        dict[str, list[Coordinate]] | None,
        Field(
            description="For some columns one value or an interval; values of a column without an "
            "order."
        ),
    ] = None
    condition: Annotated[
        str | None,
        Field(
            max_length=MAX_REASON_LENGTH, examples=["x + y > 3"], description="A linear inequality."
        ),
    ] = None
    polygon: Polygon | None = None
    rows: Annotated[
        list[NonNegativeCount] | None, Field(description="Rows of a finite domain.")
    ] = None

    @property
    def places(self) -> dict[str, Any]:
        """The places that are given, by name."""
        names = ("id", "point", "region", "condition", "polygon", "rows")
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}

    @model_validator(mode="after")
    def _check(self) -> Self:
        if len(self.places) > 1:
            raise rule_error(
                f"one place is expected, got {', '.join(self.places)}; give one of them"
            )
        return self


class ExcludedPlace(AllowedPlace):
    """A place that cannot be measured: a suggestion, a point, a region, a condition, a polygon or rows."""

    reason: Reason = None

    @model_validator(mode="after")
    def _check_given(self) -> Self:
        if not self.places:
            raise rule_error(
                "a place is needed, got none; give an id, point, region, condition, polygon or rows"
            )
        return self


class Fail(StrictModel):
    """A measurement that failed: a suggestion, by its id, or any point."""

    id: Id | None = None
    point: Point | None = None
    reason: Reason = None
    cost: Annotated[
        NonNegative | None, Field(description="Cost of the attempt, if other than expected.")
    ] = None
    who: Annotated[str | None, Field(description="Vehicle that tried to measure a point.")] = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.id is None) == (self.point is None):
            got = "neither" if self.id is None else "both"
            raise rule_error(
                f"a failed measurement needs either an id or a point, got {got}; give one of them"
            )
        return self


class Note(StrictModel):
    """A remark for the event log."""

    text: Annotated[str, Field(min_length=1)]


def ask_body(limits: ServiceLimits) -> type[Ask]:
    """Return `Ask` with the batch size that a server allows."""
    size = Annotated[
        int,
        Field(strict=True, ge=1, le=limits.batch, description=Ask.model_fields["n"].description),
    ]
    model = create_model("Ask", __base__=Ask, n=(size, 1))
    model.__doc__ = Ask.__doc__
    return model


def note_body(limits: ServiceLimits) -> type[Note]:
    """Return `Note` with the text length that a server allows."""
    text = Annotated[str, Field(min_length=1, max_length=limits.text)]
    model = create_model("Note", __base__=Note, text=(text, ...))
    model.__doc__ = Note.__doc__
    return model
