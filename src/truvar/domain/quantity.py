"""The name and the unit of what is measured, for axes, titles and sentences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from truvar._representation import visible
from truvar.exceptions import InvalidArgumentError

if TYPE_CHECKING:
    from truvar.domain.goals import Goal

_MAX_LENGTH = 60  # characters of a name or unit


@dataclass(frozen=True)
class QuantityName:
    """A measured quantity.

    Attributes:
        name: Its name, such as "oxygen"; None: it is called the value.
        unit: Its unit, such as "mg/l"; None: none is shown.

    Raises:
        InvalidArgumentError: If one of them is not a short text.
    """

    name: str | None = None
    unit: str | None = None

    def __post_init__(self) -> None:
        given: list[tuple[str, Any]] = [("quantity", self.name), ("unit", self.unit)]
        for what, text in given:
            if text is None:
                continue
            if not isinstance(text, str) or not text.strip() or len(text) > _MAX_LENGTH:
                raise InvalidArgumentError(
                    f"{what} must be a text of at most {_MAX_LENGTH} characters, got {text!r}; give "
                    "one such as 'oxygen' with the unit 'mg/l'"
                )
            object.__setattr__(self, "name" if what == "quantity" else "unit", visible(text))

    @property
    def label(self) -> str | None:
        """The name with its unit for an axis, such as "oxygen (mg/l)"; None: neither is known."""
        if self.unit is None:
            return self.name
        return f"{self.name or 'value'} ({self.unit})"

    @property
    def after_number(self) -> str:
        """The unit as it follows a number, such as " mg/l"; empty: it is not known."""
        return "" if self.unit is None else f" {self.unit}"

    def in_question(self, goal: Goal) -> str:
        """Return the question of a goal about this quantity: "where is oxygen above 4 mg/l?"."""
        text = goal.question
        if self.name is not None:
            text = text.replace("the value", self.name, 1)
        is_relative = not goal.known_thresholds and not hasattr(goal, "accuracy")
        if self.unit is None or is_relative:
            return text
        return f"{text.removesuffix('?')} {self.unit}?"
