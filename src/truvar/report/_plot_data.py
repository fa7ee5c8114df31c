"""The data of a study that figures, maps and reports show, read once, and the marks that all figures share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from truvar._typing import Array
from truvar.domain.domain import Domain
from truvar.report import style
from truvar.report.formatting import (
    class_note,
    count_noun,
    describe_score,
    format_number,
    format_true_score,
)
from truvar.report.goal_views import GoalView, PointClass, view_of
from truvar.report.style import INK
from truvar.validation import check_truth

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike

    from truvar.inference.statements import Classification
    from truvar.study.records import MeasurementRecord
    from truvar.study.result import Result
    from truvar.study.study import Study

INTERVAL_LABEL = (
    "90 % interval of each point"  # between the 5 % and 95 % quantiles that `JointStatements` has
)
LETTER_WIDTH = 0.058  # inches, of one letter in a legend
LEGEND_MARK_WIDTH = 0.45  # inches, of the mark and the space beside it


@dataclass(frozen=True, eq=False)
class PlotData:
    """The data of a study that a figure shows. t: number of measurements, d: number of columns.

    Attributes:
        domain: Where can be measured.
        goal: Level set or optimum.
        result: Posterior and classes.
        ids: Ids of the measurements, in order. (t,)
        spent: Cost spent after each of them. (t,)
        measured: Measured points. (t, d)
        values: Measured values; NaN for tasks other than the target and for outliers that are
            left out. (t,)
        noise: Noise variances of the measurements. (t,)
        pending: Points of the pending suggestions.
        truth: True values on the domain, where they are known. (n,)
        travels: Whether the cost depends on the last position, so that the order of the
            measurements is a route.
        routes: Measured points in order, by vehicle; None is the single crew, or what none of the
            vehicles measured.
        title: Title of the figure.
        study: The study.
    """

    domain: Domain
    goal: Any
    result: Result
    ids: tuple[int, ...]
    spent: Array
    measured: Array
    values: Array
    noise: Array
    pending: tuple[dict[str, Any], ...]
    truth: Array | None
    travels: bool
    routes: dict[str | None, Array]
    title: str
    study: Study

    @staticmethod
    def from_study(
        study: Study, truth: ArrayLike | None = None, result: Result | None = None
    ) -> PlotData:
        """Read the present state of a study.

        Args:
            study: The study, which is not changed.
            truth: True values on the domain, if they are known.
            result: Its present result, if the caller has it: the joint statements are then computed
                once.

        Raises:
            InvalidArgumentError: If `truth` does not have one finite value per point.
        """
        columns = study.domain.columns
        target = None if study.tasks is None else study.tasks.names[0]
        records = study.measurement_records()
        points = [study.domain.array(record.point) for record in records]
        if result is None:
            result = study.result()
        left_out = set(result.outliers)
        true_values = None if truth is None else check_truth(truth, len(study.domain))
        return PlotData(
            domain=study.domain,
            goal=study.goal,
            result=result,
            ids=tuple(record.id for record in records),
            spent=np.array([record.spent for record in records], dtype=float),
            measured=np.array(points, dtype=float).reshape(-1, len(columns)),
            values=np.array(
                [r.value if r.task == target and r.id not in left_out else np.nan for r in records]
            ),
            noise=np.array([r.noise for r in records], dtype=float),
            pending=tuple(dict(suggestion.point) for suggestion in study.pending),
            truth=true_values,
            travels=study.travels,
            routes=_routes(records, points),
            title=_title(study, result, true_values),
            study=study,
        )

    @cached_property
    def history(self) -> pd.DataFrame:
        """`study.history`, read when it is first needed: a terminal map has no use for it."""
        return self.study.history

    @cached_property
    def classification(self) -> Classification:
        """The classes of the points, as `Result.classes` has them."""
        return self.result.classes

    @cached_property
    def view(self) -> GoalView:
        """The names, colours and captions that answers are shown with."""
        return view_of(self.goal)

    @property
    def has_model(self) -> bool:
        """Whether there is a model to state anything with."""
        return self.result.statements.is_known

    @property
    def confidence_note(self) -> str:
        """With which probability the classes hold, for legends."""
        return class_note(self.result)

    @property
    def threshold(self) -> float | None:
        """Threshold h, given or estimated; None when an optimum or several bands are sought."""
        return None if self.result.threshold is None else float(self.result.threshold)

    @property
    def thresholds(self) -> tuple[float, ...]:
        """All thresholds, given or estimated; empty when an optimum is sought."""
        return self.result.thresholds

    def threshold_text(self, *thresholds: float) -> str:
        """Return thresholds with their unit, for a legend: "threshold 4 mg/l"."""
        unit = self.study.quantity.unit
        texts = ", ".join(map(format_number, thresholds))
        return f"threshold {texts}{f' {unit}' if unit else ''}"

    @property
    def values_title(self) -> str:
        """Title of the measured values, with their name and unit."""
        label = self.study.quantity.label
        return f"{self.view.values_title}: {label}" if label else self.view.values_title

    @property
    def true_threshold(self) -> float | None:
        """Threshold h by the true values: the fraction of their maximum if the threshold is implicit."""
        if self.truth is None or self.threshold is None:
            return None
        return float(self.goal.thresholds(self.truth, self.truth)[0])

    @property
    def true_best(self) -> int | None:
        """Index of the true optimum; None for a level set or where the truth is not known."""
        if self.truth is None or not self.goal.seeks_optimum:
            return None
        return int(np.argmax(self.goal.sign * self.truth))

    @property
    def shows_best(self) -> bool:
        """Whether there is a best point to mark: an optimum is sought and something was measured."""
        return self.goal.seeks_optimum and len(self.measured) > 0

    @property
    def best_name(self) -> str:
        """The best point in words; it is recommended only where an optimum is sought."""
        return "the recommended point" if self.shows_best else "the point"

    @property
    def best_point(self) -> Array:
        """Coordinates (d,) of the point with the best posterior mean."""
        return self.coordinates(self.result.best.point)

    def coordinates(self, point: dict[str, Any]) -> Array:
        """Return the coordinates (d,) of a named point in the order of the columns."""
        return self.domain.array(point)

    @property
    def colours(self) -> dict[str, str]:
        """Colour of each class."""
        return self.view.colours(self.classification)

    def classes(self) -> list[PointClass]:
        """Return the classes that the goal has, with labels for legends."""
        return self.view.classes(self.result)

    def legend_handles(self) -> list[Any]:
        """Return a legend entry for each class, and one without a mark for their probability."""
        patch = style.import_matplotlib("patches").Patch
        handles = [
            patch(facecolor=self.colours[name], edgecolor="#888888", linewidth=0.5, label=label)
            for name, _, label in self.classes()
        ]
        return [
            *handles,
            patch(facecolor="none", edgecolor="none", label=f"({self.confidence_note})"),
        ]


def _title(study: Study, result: Result, truth: Array | None) -> str:
    parts = [count_noun(result.steps, "measurement"), f"cost {format_number(result.spent)}"]
    parts += describe_score(result, study.quantity.after_number)
    score = study.goal.score
    if truth is not None and (result.best.index is not None or not study.goal.seeks_optimum):
        parts.append(f"true {score.name} = {format_true_score(score, result.score(truth))}")
    return f"{study.name or 'study'}: {', '.join(parts)}"


def order_shades(measured: Array) -> Array:
    """Return a number from 0 (first) to 1 (last) for each of the (t,) measurements."""
    return np.linspace(0.0, 1.0, len(measured))


def star() -> dict[str, Any]:
    """Return the line properties that mark the best point."""
    return {"marker": "*", "ms": 14, "mfc": "#F0E442", "mec": INK, "mew": 0.9, "zorder": 7}


def diamond() -> dict[str, Any]:
    """Return the line properties that mark a pending suggestion."""
    return {"marker": "D", "ms": 7, "mfc": style.PENDING, "mec": "white", "mew": 1.1, "zorder": 6}


def add_legend(ax: Any, handles: Iterable[Any], max_columns: int) -> None:
    """Place a legend above the axes, where it covers nothing, in as many columns as fit."""
    entries = list(handles)
    available = (
        1.1 * ax.get_position().width * ax.figure.get_figwidth()
    )  # inches; the layout widens the axes a little
    widths = [LETTER_WIDTH * len(entry.get_label()) + LEGEND_MARK_WIDTH for entry in entries]
    columns = max_columns
    while columns > 1 and _legend_width(widths, columns) > available:
        columns -= 1
    ax.legend(
        handles=entries, loc="lower left", bbox_to_anchor=(0, 1.0), frameon=False, ncols=columns,
        fontsize=8, borderaxespad=0.3, handletextpad=0.5, columnspacing=1.3, handlelength=1.6,
    )  # fmt: skip


def _legend_width(widths: Sequence[float], columns: int) -> float:
    """Return the width of a legend whose entries fill the columns one after another, in inches."""
    parts = np.array_split(np.array(widths), columns)  # as matplotlib fills them
    return float(sum(part.max() for part in parts if len(part)))


def cell_edges(axis: Array, geometric: bool) -> Array:
    """Return the k + 1 borders between the k values of an axis and half a step beyond its ends."""
    if len(axis) == 1:
        return np.array([axis[0] - 0.5, axis[0] + 0.5])
    value = np.log(axis) if geometric else axis
    middle = (value[1:] + value[:-1]) / 2
    borders = np.concatenate([[2 * value[0] - middle[0]], middle, [2 * value[-1] - middle[-1]]])
    return np.exp(borders) if geometric else borders


def _routes(
    records: Sequence[MeasurementRecord], points: Sequence[Array]
) -> dict[str | None, Array]:
    """Return the measured points (t, d) of each vehicle, in the order of their ids, which is that of its route."""
    routes: dict[str | None, list[Array]] = {}
    order = list(range(len(records)))
    if any(record.vehicle is not None for record in records):
        order.sort(key=lambda k: records[k].id)
    for k in order:
        routes.setdefault(records[k].vehicle, []).append(points[k])
    return {vehicle: np.array(route, dtype=float) for vehicle, route in routes.items()}
