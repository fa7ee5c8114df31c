"""The bodies of the requests, as OpenAPI describes them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from truvar.service.limits import ServiceLimits

MOST = ServiceLimits()
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(strict=True, allow_inf_nan=False, ge=0)]
Id = Annotated[int, Field(strict=True, ge=1, le=2**53, description="of a suggestion or a measurement")]
Point = Annotated[dict[str, Number], Field(examples=[{"distance_m": 300.0, "depth_m": -8.0}])]


class Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Create(Body):
    """A new study: a problem, in TOML or as an object of the same form, with the tables that it names as CSV text. Or
    a whole study as it was exported."""

    name: Annotated[str, Field(min_length=1, max_length=100)]
    problem: str | dict[str, Any] | None = None
    tables: Annotated[dict[str, str], Field(description="CSV text by the name that the problem has for it")] = {}
    study: Annotated[dict[str, Any] | None, Field(description="an exported study, instead of a problem")] = None


class Ask(Body):
    """How many suggestions, and for how long they are reserved."""

    n: Annotated[int, Field(strict=True, ge=1, le=MOST.batch)] = 1
    lease: Annotated[float | None, Field(gt=0, le=366 * 86_400, description="seconds")] = None


class Tell(Body):
    """The value of a suggestion, by its id, or of any point."""

    id: Id | None = None
    point: Point | None = None
    y: Number
    noise: Annotated[NotNegative | None, Field(description="variance, if other than expected")] = None
    cost: NotNegative | None = None
    level: Annotated[int | None, Field(strict=True, ge=0)] = None
    task: str | None = None
    key: Annotated[
        str | None, Field(pattern="^[A-Za-z0-9_-]{8,64}$", description="of a point: told again with it, it counts once")
    ] = None


class Correct(Body):
    """The right value of a measurement."""

    id: Id
    y: Number
    noise: NotNegative | None = None
    cost: NotNegative | None = None


class Withdraw(Body):
    """A suggestion that will not be measured, or a measurement that was a mistake."""

    id: Id


class Note(Body):
    """A remark for the journal."""

    text: Annotated[str, Field(min_length=1, max_length=MOST.text)]
