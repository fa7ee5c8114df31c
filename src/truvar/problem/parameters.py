"""Parameters of a problem file, such as `lr = {log = [1e-6, 1e-1]}`."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from truvar.problem.messages import expects, rule_error

Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
WholeNumber = Annotated[int, Field(strict=True)]
Count = Annotated[int, Field(strict=True, ge=2)]
_Value = (
    Annotated[bool, Field(strict=True)] | WholeNumber | Number | Annotated[str, Field(strict=True)]
)
_Name = Annotated[bool, Field(strict=True)] | Annotated[str, Field(strict=True)]
Names = Annotated[
    list[_Name], Field(min_length=1), expects("a list of texts such as ['lbfgs', 'saga']")
]
Values = Annotated[
    list[_Value], Field(min_length=1), expects("a list of values such as ['low', 'high']")
]
_KINDS = ("range", "log", "integer", "ordinal", "categorical", "boolean", "date")


class ParameterSpec(BaseModel):
    """One column of a box or grid: one type such as range, log, integer or date."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    range: (
        Annotated[tuple[Number, Number], expects("[low, high] such as [0, 1]", "give two numbers")]
        | None
    ) = Field(default=None, description="Numbers from low to high.")
    log: (
        Annotated[
            tuple[Number, Number],
            expects("[low, high] such as [1e-6, 1e-1]", "give two numbers > 0"),
        ]
        | Annotated[Literal[True], expects("true")]
        | None
    ) = Field(
        default=None, description="Positive numbers on a logarithmic scale; true beside integer."
    )
    integer: (
        Annotated[
            tuple[WholeNumber, WholeNumber],
            expects("[low, high] such as [1, 12]", "give two whole numbers"),
        ]
        | None
    ) = Field(default=None, description="Whole numbers from low to high.")
    ordinal: Values | None = Field(default=None, description="Values in their order.")
    categorical: Values | None = Field(default=None, description="Values without an order.")
    boolean: Annotated[Literal[True], expects("true")] | None = Field(
        default=None, description="True or false."
    )
    date: (
        Annotated[tuple[Any, Any], expects("[first, last] such as [2026-05-01, 2026-09-30]")] | None
    ) = Field(default=None, description="Dates from first to last.")
    step: Number | None = Field(
        default=None, description="Distance of the values of a range or of whole numbers."
    )
    count: Count | None = Field(default=None, description="Number of values of an axis of a grid.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        kinds = [kind for kind in _KINDS if getattr(self, kind) is not None]
        if self.log is True and kinds == ["log", "integer"]:
            return self
        if len(kinds) != 1 or self.log is True:
            found = " and ".join(kinds) or "none of them"
            raise rule_error(f"needs exactly one of {', '.join(_KINDS)}, got {found}; give one")
        (kind,) = kinds
        if self.step is not None and kind not in ("range", "integer"):
            raise rule_error(f"step belongs to a range or integer, got {kind}; leave out step")
        if self.count is not None and kind not in ("range", "log", "date"):
            raise rule_error(f"count belongs to a range, log or date, got {kind}; leave out count")
        return self

    def build(self) -> Any:
        """Return the parameter."""
        from truvar.domain import parameters
        from truvar.domain.dates import Date

        if self.integer is not None:
            step = 1 if self.step is None else self.step
            whole = int(step) if float(step).is_integer() else step
            return parameters.Integer(*self.integer, step=whole, log=self.log is True)  # type: ignore[arg-type]
        if self.range is not None:
            return parameters.Range(*self.range, step=self.step, count=self.count)
        if isinstance(self.log, tuple):
            return parameters.Log(*self.log, count=self.count)
        if self.ordinal is not None:
            return parameters.Ordinal(self.ordinal)
        if self.categorical is not None:
            return parameters.Categorical(self.categorical)
        if self.date is not None:
            return Date(*self.date, count=self.count)
        return parameters.Boolean()


def build_parameter(given: Any) -> Any:
    """Return a side of a box as `Domain.box` takes it."""
    return given.build() if isinstance(given, ParameterSpec) else given


def _axis_length(axis: Any) -> int:
    """Return the number of values of an axis of a grid, without building it."""
    if isinstance(axis, tuple):
        return int(axis[2])
    if isinstance(axis, list):
        return len(axis)
    parameter = axis.build()
    return int(parameter.n_levels or parameter.count or 2)


def grid_size(grid: Mapping[str, Any]) -> int:
    """Return the number of points of a grid, without building it. Constraints may leave fewer."""
    return prod(max(1, abs(_axis_length(axis))) for axis in grid.values())
