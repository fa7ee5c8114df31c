"""`Action`: one measurement that was suggested or made."""

from __future__ import annotations

from dataclasses import dataclass

from truvar._typing import Array
from truvar.domain.learned_cost import ExpectedCost


@dataclass(frozen=True)
class Action:
    """A measurement, suggested or made: where, how precisely, at which cost.

    Attributes:
        id: Number of the suggestion or measurement, unique in its study.
        point: Coordinates, shape (d',): the task's index is the last one if there are tasks.
        site: Row of the model's grid; None if the point is not one of its rows.
        level: Index of the noise level; None without levels.
        task: Index of the task; 0 is the target.
        noise: Noise variance.
        cost: Cost, travel included.
        gain: The policy's score before division by the cost; NaN if the point was not suggested.
        noise_given: Whether the noise came with the value, so that refitting leaves it unchanged.
        vehicle: Name of the vehicle or crew that measures; None if the study has none.
        repeats: Id of the measurement that this one repeats at the same place; None if it is not
            told as a repeat.
        exposure: Exposure of a measurement that counts events, such as its duration; None: that of
            the study, or it counts none.
        expected_cost: What it was expected to cost, if costs are learned; None otherwise.
        cost_given: Whether the cost came with the value, so that costs are learned from it.
    """

    id: int
    point: Array
    site: int | None
    level: int | None
    task: int
    noise: float
    cost: float
    gain: float = float("nan")
    noise_given: bool = False
    vehicle: str | None = None
    repeats: int | None = None
    exposure: float | None = None
    expected_cost: ExpectedCost | None = None
    cost_given: bool = False

    @property
    def cost_told(self) -> bool | None:
        """Whether the cost was told rather than expected; None unless costs are learned."""
        return None if self.expected_cost is None else self.cost_given
