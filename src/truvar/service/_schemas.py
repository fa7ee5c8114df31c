"""Request bodies, as OpenAPI describes them; those of commands are made by `body_of`."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from pydantic import Discriminator, Field, Tag, create_model, model_validator

from truvar.domain.constraints import PolygonConstraint
from truvar.exceptions import InvalidArgumentError
from truvar.problem.messages import TABLE, TEXT, rule_error
from truvar.problem.schema import (
    NonNegativeCount,
    Number,
    ProblemSpec,
    StrictModel,
    Text,
    text_or_table,
)
from truvar.service._limits import ServiceLimits, check_at_most, is_plain_text
from truvar.storage.base import MAX_NAME_LENGTH
from truvar.study.commands import ARGUMENTS, INTERFACES, MAX_REASON_LENGTH, Command
from truvar.study.study import Study

Id = Annotated[
    int, Field(strict=True, ge=1, le=2**53, description="Id of a suggestion or measurement.")
]
Coordinate = Number | Text | bool | None
Point = Annotated[dict[str, Coordinate], Field(examples=[{"distance_m": 300.0, "depth_m": -8.0}])]
ProblemSource = Annotated[
    Annotated[Text, Tag(TEXT)] | Annotated[ProblemSpec, Tag(TABLE)],
    Discriminator(text_or_table),
]


# types of JSON values by those of arguments of commands
JSON_TYPES: dict[type, Any] = {
    bool: bool,
    dict: dict[str, Coordinate],
    float: Number,
    int: Annotated[int, Field(strict=True)],
    list: list[Number],
    tuple: list[str],
    object: Number | dict[str, Number | None],
    str: str,
}


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
    """A study to delete permanently."""

    confirm: Annotated[str, Field(description="The name of the study, again, as a confirmation.")]


class CommandBody(StrictModel):
    """The body of a request that executes a command."""

    command_class: ClassVar[type[Command]]
    max_points: ClassVar[int] = ServiceLimits.points  # of a domain

    @model_validator(mode="before")
    @classmethod
    def _rename(cls, data: Any) -> Any:
        """Accept `who`, as earlier releases call a vehicle."""
        if isinstance(data, dict) and "who" in data and "vehicle" not in data:
            return {"vehicle" if name == "who" else name: value for name, value in data.items()}
        return data

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of the command, without its target."""
        names = ARGUMENTS.keys() & type(self).model_fields.keys()
        return {name: getattr(self, name) for name in names}

    def command(self, study: Study) -> Command:
        """Return the command for a study."""
        return self.command_class(**self.target(study), **self.arguments)

    def target(self, study: Study) -> dict[str, Any]:
        """Return the argument `what` of the command, if it has one."""
        return {}


class MeasurementBody(CommandBody):
    """A command about a suggestion or measurement, by its id."""

    id: Id

    def target(self, study: Study) -> dict[str, Any]:
        return {"what": self.id}


class PointBody(CommandBody):
    """A command about a suggestion, by its id, or any point."""

    id: Id | None = None
    point: Point | None = None

    def target(self, study: Study) -> dict[str, Any]:
        return {"what": self.id or self.point or {}}

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.id is None) == (self.point is None):
            got = "neither" if self.id is None else "both"
            raise rule_error(
                f"a measurement needs either an id or a point, got {got}; give one of them"
            )
        return self


class TellBody(PointBody):
    """A measured value of a suggestion, by its id, or of any point."""

    @model_validator(mode="after")
    def _check_key(self) -> Self:
        if getattr(self, "key", None) is not None and self.point is None:
            raise rule_error("a key belongs to a point, got an id; leave out the key")
        return self


class Polygon(StrictModel):
    """A polygon, with holes, or several that do not overlap."""

    rings: Annotated[
        list[list[tuple[Number, Number]]], Field(description="Vertices of every ring.")
    ]
    columns: Annotated[
        tuple[str, str] | None, Field(description="The two columns; default: the first two.")
    ] = None


class PlaceBody(CommandBody):
    """A command about a place: an id, a point, a region, a condition, a polygon or rows."""

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
        if not self.places and not INTERFACES[self.command_class].everywhere:
            raise rule_error(
                "a place is needed, got none; give an id, point, region, condition, polygon or rows"
            )
        return self

    def target(self, study: Study) -> dict[str, Any]:
        if self.polygon is not None:
            return {"what": PolygonConstraint(self.polygon.rings, self.polygon.columns)}
        if self.rows is None:
            return {"what": next(iter(self.places.values()), None)}
        n = len(study.domain)
        if study.domain.continuous or max(self.rows, default=0) >= n:
            raise InvalidArgumentError(
                f"rows must be those of a finite domain of {n} points; correct them"
            )
        mask = np.zeros(n, bool)
        mask[self.rows] = True
        return {"what": mask}


class DomainBody(CommandBody):
    """Further points of the domain: rows of a table, or values by column of a grid or box."""

    rows: Annotated[
        list[dict[str, Coordinate]] | None,
        Field(description="Further rows of a table, each a value by column."),
    ] = None
    labels: Annotated[
        list[Number | Text] | None, Field(description="Labels of the rows; default: numbers.")
    ] = None
    columns: Annotated[
        dict[str, list[Coordinate]] | None,
        Field(
            description="By column, further values of an axis of a grid, or the ends of a side of a "
            "box."
        ),
    ] = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.rows is None) == (self.columns is None):
            got = "neither" if self.rows is None else "both"
            raise rule_error(
                f"an extension needs either rows or columns, got {got}; give one of them"
            )
        if self.labels is not None and len(self.labels) != len(self.rows or ()):
            raise rule_error(
                f"every row needs a label, got {len(self.labels)} labels for "
                f"{len(self.rows or ())} rows; give one for each, or leave them out"
            )
        return self

    def target(self, study: Study) -> dict[str, Any]:
        axes = study.domain.axis_values
        count = len(study.domain) + len(self.rows or ())
        if self.columns is not None and axes is not None and not study.domain.continuous:
            for name, axis in zip(study.domain.columns, axes, strict=True):
                more = set(self.columns.get(name, ())) - set(axis.tolist())
                count = count // len(axis) * (len(axis) + len(more))
        check_at_most(count, self.max_points, "points")
        if self.rows is None:
            return {"what": self.columns}
        import pandas as pd

        return {"what": pd.DataFrame(self.rows, index=self.labels)}


class TextBody(CommandBody):
    """A command that is a text, without control characters."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not is_plain_text(self.arguments["text"]):
            raise rule_error(
                f"a {self.command_class.name} must be plain text, got a control character; leave "
                "it out"
            )
        return self


def body_of(
    command: type[Command], base: type[CommandBody] = CommandBody, **limits: dict[str, Any]
) -> type[CommandBody]:
    """Return the class of the bodies of requests that execute a command.

    Args:
        command: The command, whose fields are described by `ARGUMENTS`.
        base: The class that names the target of the command.
        **limits: Further limits of fields, which the server sets.
    """
    declared: dict[str, Any] = {}
    for field in fields(command):
        if field.name in ARGUMENTS:
            argument = ARGUMENTS[field.name]
            kind: Any = JSON_TYPES[argument.kind]
            if field.default is None:
                kind = kind | None
            constraints = {**argument.limits, **limits.get(field.name, {})}
            described: Any = Annotated[kind, Field(description=argument.help, **constraints)]
            declared[field.name] = (described, ... if field.default is MISSING else field.default)
    body = create_model(command.__name__, __base__=base, **declared)
    body.__doc__ = (command.__doc__ or "").partition("\n")[0]
    body.command_class = command
    return body
