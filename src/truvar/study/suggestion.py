"""`Suggestion`: one measurement that a study proposes."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import sqrt
from typing import TYPE_CHECKING, Any

from truvar._deprecation import deprecated_attribute
from truvar._representation import html_card
from truvar.algorithm._several import SeveralLearner
from truvar.domain.action import Action
from truvar.messages import format_coordinates
from truvar.tabular.labels import label_to_json

if TYPE_CHECKING:
    from truvar.study._state import StudyState


@dataclass(frozen=True)
class Suggestion:
    """A proposed measurement: where, how precisely, at which cost, and its expected gain.

    Attributes:
        id: Number by which its value is told.
        index: Position of the point in the domain; None inside a box or between the points of a
            grid.
        point: Coordinates by column name.
        level: Index of the noise level; None if the study has no levels.
        task: Name of the task; None if the study has no tasks.
        noise: Noise variance of the measurement.
        cost: Cost of the measurement, travel included.
        gain: The policy's score before division by the cost; for TruVaR the numerator of eq. (3).
        vehicle: Vehicle or crew that it is for; None if the study has none.
        label: Label of the row in the user's own table, so that `frame.loc[suggestion.label]` is
            that row; None if there is no table.
        quantities: What to measure there, where the study has several quantities; else None.
    """

    id: int
    index: int | None
    point: dict[str, Any]
    level: int | None
    task: str | None
    noise: float
    cost: float
    gain: float
    vehicle: str | None = None
    label: Any = None
    quantities: tuple[str, ...] | None = None

    who = deprecated_attribute("vehicle", removed_in="0.5.0")

    @property
    def score(self) -> float:
        """Gain per unit cost."""
        return self.gain / self.cost

    def __repr__(self) -> str:
        own = [
            (name, getattr(self, name))
            for name in ("id", "point", "level", "task", "vehicle", "label", "quantities")
        ]
        named = [f"{name}={value!r}" for name, value in own if value is not None]
        numbers = [f"{name}={getattr(self, name)!r}" for name in ("noise", "cost", "gain")]
        return f"Suggestion({', '.join(named + numbers)})"

    def _repr_html_(self) -> str:
        rows = [
            ("measure", format_coordinates(self.point)),
            ("quantities", ", ".join(self.quantities or ("None",))),
            *[(name, str(getattr(self, name))) for name in ("label", "level", "task", "vehicle")],
            ("precision", "exact" if self.noise == 0 else f"± {sqrt(self.noise):.3g}"),
            ("cost", f"{self.cost:.6g}"),
            ("then", f"study.tell({self.id}, VALUE)"),
        ]
        return html_card(f"Suggestion {self.id}", "", [row for row in rows if row[1] != "None"])

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a dictionary of JSON values."""
        data = asdict(self)
        data["who"] = data.pop("vehicle")  # as earlier releases call it
        if self.quantities is None:
            del data["quantities"]
        return {**data, "label": label_to_json(self.label)}


def suggestion_of(state: StudyState, action: Action) -> Suggestion:
    """Return an action as callers see it."""
    domain = state.config.domain
    tasks = state.config.prior.tasks
    index = None
    if action.site is not None:
        index = action.site % len(domain)  # every task has the sites of the domain
    learner = state.learner
    quantities = None
    level = action.level
    if isinstance(learner, SeveralLearner):
        quantities = learner.measured(action)
        level = None  # the set of quantities
    return Suggestion(
        id=action.id,
        index=index,
        point=domain.named(action.point[: len(domain.columns)]),
        level=level,
        task=None if tasks is None else tasks.names[action.task],
        noise=action.noise,
        cost=action.cost,
        gain=action.gain,
        vehicle=action.vehicle,
        label=domain.label(index),
        quantities=quantities,
    )
