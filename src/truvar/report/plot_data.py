"""What a drawing needs of a study, read once, and the marks that all drawings share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from truvar._typing import Array
from truvar.domain.domain import Domain
from truvar.report import style
from truvar.report.formatting import format_number
from truvar.report.style import INK
from truvar.validation import check_truth

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from truvar.study.result import Result
    from truvar.study.study import Study


@dataclass(frozen=True, eq=False)
class PlotData:
    """What a drawing needs of a study, read once."""

    domain: Domain
    goal: Any
    result: Any
    places: Array  # (t, d): where was measured, in order
    values: Array  # (t,): what was told; NaN for other tasks than the target
    noise: Array  # (t,): variances
    pending: tuple[dict[str, float], ...]
    history: pd.DataFrame
    truth: Array | None
    travels: bool  # cost depends on the last place, so the order is a route
    title: str

    @staticmethod
    def from_study(study: Study, truth: ArrayLike | None = None) -> PlotData:
        """The study as it stands; `truth`: the true values on the domain, if known."""
        true = None if truth is None else check_truth(truth, len(study.domain))
        result, told, d = study.result(), study.measurements, len(study.domain.columns)
        told.columns = list(range(told.shape[1]))  # by place: a coordinate may itself be called "y" or "noise"
        level, noise, y = 2 + d, 4 + d, 7 + d
        tasks = study.tasks
        aside = np.zeros(len(told), bool) if tasks is None else (told[level + 1] != tasks.names[0]).to_numpy()
        return PlotData(
            study.domain,
            study.goal,
            result,
            told[list(range(2, level))].to_numpy(dtype=float),
            np.where(aside, np.nan, told[y].to_numpy(dtype=float)),
            told[noise].to_numpy(dtype=float),
            tuple(dict(suggestion.point) for suggestion in study.pending),
            study.history,
            true,
            study.travels,
            _title(study, result, true),
        )

    @property
    def threshold(self) -> float | None:
        """h, known or estimated; None when an optimum is sought."""
        return None if self.result.threshold is None else float(self.result.threshold)

    @property
    def true_threshold(self) -> float | None:
        """h of the truth: the fraction of its maximum if the threshold is implicit."""
        if self.truth is None or self.threshold is None:
            return None
        fraction = self.goal.fraction_of_max
        return self.threshold if fraction is None else float(fraction * self.truth.max())

    @property
    def true_best(self) -> int | None:
        """The index of the true optimum."""
        if self.truth is None or self.goal.level_set:
            return None
        return int(np.argmax(self.goal.sign * self.truth))

    @property
    def colours(self) -> dict[str, str]:
        return style.LEVEL_SET if self.goal.level_set else style.OPTIMUM

    def classes(self) -> list[tuple[str, NDArray[np.bool_], str]]:
        """(class, mask, label), those that mean something for the goal."""
        r = self.result
        if self.goal.level_set:
            h = "threshold" if self.threshold is None else format_number(self.threshold)
            about = "" if self.goal.fraction_of_max is None else "about "
            return [
                ("above", r.above, f"above {about}{h} (H): {r.above.sum()}"),
                ("open", r.potential, f"open (M): {r.potential.sum()}"),
                ("below", r.below, f"below {about}{h} (L): {r.below.sum()}"),
            ]
        end = "maximum" if self.goal.sign > 0 else "minimum"
        out = "below" if self.goal.sign > 0 else "above"
        mask = r.below if self.goal.sign > 0 else r.above
        return [
            ("open", r.potential, f"possible {end} (M): {r.potential.sum()}"),
            (out, mask, f"ruled out: {mask.sum()}"),
        ]

    def legend_handles(self) -> list[Any]:
        patch = style.import_matplotlib("patches").Patch
        return [
            patch(facecolor=self.colours[name], edgecolor="#888888", linewidth=0.5, label=text)
            for name, _, text in self.classes()
        ]


def _title(study: Study, result: Result, truth: Array | None) -> str:
    parts = [f"{result.steps} measurement{'s' * (result.steps != 1)}", f"cost {format_number(result.spent)}"]
    if isfinite(result.epsilon):
        parts.append(f"ε = {result.epsilon:.3g}")
    if truth is not None and study.goal.level_set:
        parts.append(f"F1 = {result.f1(truth):.3f}")
    elif truth is not None and result.best.index is not None:
        parts.append(f"regret = {result.regret(truth):.3g}")
    return f"{study.name or 'study'}: {', '.join(parts)}"


def order_shade(places: Array) -> Array:
    """A number from 0 to 1 for each measurement, first to last."""
    return np.linspace(0.0, 1.0, len(places))


def star() -> dict[str, Any]:
    return {"marker": "*", "ms": 14, "mfc": "#F0E442", "mec": INK, "mew": 0.9, "zorder": 7}


def diamond() -> dict[str, Any]:
    return {"marker": "D", "ms": 7, "mfc": style.PENDING, "mec": "white", "mew": 1.1, "zorder": 6}


def legend(ax: Any, handles: Iterable[Any], columns: int) -> None:
    """A legend above the axes, where it covers nothing, in as many columns as have room."""
    entries = list(handles)
    room = 1.1 * ax.get_position().width * ax.figure.get_figwidth()  # inches; the layout will widen the axes a little
    lengths = [0.058 * len(entry.get_label()) + 0.45 for entry in entries]

    def wide(count: int) -> float:
        rows = max(1, -(-len(lengths) // count))
        return sum(max(lengths[k : k + rows]) for k in range(0, len(lengths), rows))

    ax.legend(
        handles=entries, loc="lower left", bbox_to_anchor=(0, 1.0), frameon=False,
        ncols=next((count for count in range(columns, 1, -1) if wide(count) <= room), 1),
        fontsize=8, borderaxespad=0.3, handletextpad=0.5, columnspacing=1.3, handlelength=1.6,
    )  # fmt: skip


def edges(axis: Array, geometric: bool) -> Array:
    """The borders between neighbouring values of an axis, half a step beyond its ends."""
    if len(axis) == 1:
        return np.array([axis[0] - 0.5, axis[0] + 0.5])
    value = np.log(axis) if geometric else axis
    middle = (value[1:] + value[:-1]) / 2
    borders = np.concatenate([[2 * value[0] - middle[0]], middle, [2 * value[-1] - middle[-1]]])
    return np.exp(borders) if geometric else borders
