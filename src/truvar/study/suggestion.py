"""`Suggestion`: one measurement that a study proposes."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from truvar.domain.labels import label_to_json


@dataclass(frozen=True)
class Suggestion:
    """A proposed measurement: where, how precisely, at which cost, and its expected gain.

    Attributes:
        id: Number by which its value is told.
        index: Position of the point in the domain; None inside a box or between the points of a grid.
        point: Coordinates by column name.
        level: Index of the noise level; None if the study has no levels.
        task: Name of the task; None if the study has no tasks.
        noise: Noise variance of the measurement.
        cost: Cost of the measurement, travel included.
        gain: The policy's score before division by the cost; for TruVaR the numerator of eq. (3).
        who: Vehicle or crew that it is for; None if the study has none.
        label: Label of the row in the user's own table, so that `frame.loc[suggestion.label]` is that row; None if
            there is no table.
    """

    id: int
    index: int | None
    point: dict[str, Any]
    level: int | None
    task: str | None
    noise: float
    cost: float
    gain: float
    who: str | None = None
    label: Any = None

    @property
    def score(self) -> float:
        """Gain per unit cost."""
        return self.gain / self.cost

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a dictionary of JSON values."""
        return {**asdict(self), "label": label_to_json(self.label)}
