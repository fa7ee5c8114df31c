"""`Suggestion`: one measurement that a study proposes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from truvar._deprecation import deprecated_attribute
from truvar._representation import html_card
from truvar.algorithm._several import SeveralLearner
from truvar.domain.action import Action
from truvar.messages import format_coordinates
from truvar.tabular.labels import label_text, label_to_json

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
        cost: Cost of the measurement, travel included; the expected one if costs are learned.
        gain: The policy's score before division by the cost; for TruVaR the numerator of eq. (3).
        vehicle: Vehicle or crew that it is for; None if the study has none.
        label: Label of the row in the user's own table, so that `frame.loc[suggestion.label]` is
            that row; None if there is no table.
        quantities: What to measure there, where the study has several quantities; else None.
        times: Number of pending measurements at its place, this one included: more than 1 where a
            batch repeats a place.
        outcome: What the measurement gives, "binary" or "count"; None: a number.
        cost_interval: Interval that has the cost with 95 % probability, where costs are learned;
            None otherwise, and before anything is known about them.
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
    times: int = 1
    outcome: str | None = None
    cost_interval: tuple[float, float] | None = None

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
        if self.times > 1:
            named.append(f"times={self.times}")
        numbers = [
            f"{name}={float(f'{getattr(self, name):.6g}')!r}" for name in ("noise", "cost", "gain")
        ]
        return f"Suggestion({', '.join(named + numbers)})"

    def _repr_html_(self) -> str:
        precision = "exact" if self.noise == 0 else f"± {sqrt(self.noise):.3g}"
        rows = [
            ("measure", self._place),
            ("quantities", ", ".join(self.quantities or ("None",))),
            *[(name, str(getattr(self, name))) for name in ("level", "task", "vehicle")],
            ("batch", str(repeated_places([self]))),
            ("precision", precision if self.outcome is None else "None"),
            ("cost", describe_cost(self)),
            ("why", f"study.explain({self.id})"),
            ("then", f"study.tell({self.id}, VALUE)"),
        ]
        return html_card(f"Suggestion {self.id}", "", [row for row in rows if row[1] != "None"])

    @property
    def _place(self) -> str:
        """The label, if the row has one that says more than its position, and the coordinates."""
        coordinates = format_coordinates(self.point)
        if self.label is None or self.label == self.index:
            return coordinates
        return f"{label_text(self.label)} ({coordinates})"

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a dictionary of JSON values."""
        data = asdict(self)
        data["who"] = data.pop("vehicle")  # as earlier releases call it
        if self.quantities is None:
            del data["quantities"]
        if self.outcome is None:
            del data["outcome"]
        return {**data, "label": label_to_json(self.label)}


def repeated_places(batch: Sequence[Suggestion]) -> str | None:
    """Return places with several pending measurements, as "3 x KB0618"; None without any."""
    texts = []
    for suggestion in batch:
        if suggestion.times > 1:
            is_named = suggestion.label is not None and suggestion.label != suggestion.index
            place = f"({format_coordinates(suggestion.point)})"
            if is_named:
                place = label_text(suggestion.label)
            text = f"{suggestion.times} x {place}"
            texts.append(text if suggestion.task is None else f"{text} ({suggestion.task})")
    return ", ".join(dict.fromkeys(texts)) or None


def describe_cost(suggestion: Suggestion) -> str:
    """Return the cost of a suggestion in words, such as "12", or "expected 12 (9 to 17)"."""
    if suggestion.cost_interval is None:
        return f"{suggestion.cost:.6g}"
    low, high = suggestion.cost_interval
    return f"expected {suggestion.cost:.3g} ({low:.3g} to {high:.3g})"


def suggestion_of(state: StudyState, action: Action) -> Suggestion:
    """Return an action as callers see it."""
    domain = state.config.domain
    tasks = state.config.prior.tasks
    outcome = state.config.prior.outcome
    index = None
    if action.site is not None:
        index = action.site % len(domain)  # every task has the sites of the domain
    learner = state.learner
    quantities = None
    level = action.level
    if isinstance(learner, SeveralLearner):
        quantities = learner.measured(action)
        level = None  # the set of quantities
    task = None if tasks is None else tasks.names[action.task]
    times = 1
    if len(state.pending) > 1:
        times = max(1, sum(_is_same_place(action, other) for other in state.pending.values()))
    expected = action.expected_cost
    interval = None if expected is None else expected.interval
    return Suggestion(
        id=action.id,
        index=index,
        point=domain.named(action.point[: len(domain.columns)]),
        level=level,
        task=task,
        noise=action.noise,
        cost=action.cost,
        gain=action.gain,
        vehicle=action.vehicle,
        label=domain.label(index),
        quantities=quantities,
        times=times,
        outcome=None if outcome is None else outcome.name,
        cost_interval=interval,
    )


def _is_same_place(action: Action, other: Action) -> bool:
    if action.site is not None:
        return action.site == other.site
    return bool(np.array_equal(action.point, other.point))
