"""Figure of convergence: best value so far, and expected F1 or regret with its interval, against cost and steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from truvar._typing import Array
from truvar.exceptions import InvalidArgumentError
from truvar.messages import unknown_name
from truvar.report import limit_progress, style
from truvar.report._plot_data import PlotData
from truvar.report.formatting import format_number
from truvar.report.style import INK
from truvar.study.convergence import CHECKPOINTS, ScoreAfter, best_values, score_history
from truvar.study.limits import RunLimits

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from truvar.study.base import BaseStudy

Against = Literal["cost", "steps"]
AGAINST: dict[str, str] = {
    "cost": "cost spent",
    "steps": "measurements",
}  # labels of the horizontal axis
WIDTH = 4.6  # inches, of one column of panels
HEIGHT = 5.2  # inches
MIN_RATIO = 1e-3  # smallest regret on a logarithmic axis, as a share of the largest
GOAL = "#009E73"  # the line of the goal


def plot_convergence(
    study: BaseStudy, against: Against | None = None, moments: int | None = None, dpi: float = 110
) -> Figure:
    """Return a matplotlib Figure of the measured values and the expected score against cost and steps.

    Args:
        study: The study, which is not changed.
        against: "cost" or "steps"; default: both, if the measurements differ in cost.
        moments: Largest number of moments at which the score is computed; default: 16.
        dpi: Dots per inch.

    Raises:
        InvalidArgumentError: If `against` is neither.
    """
    data = PlotData.from_study(study)  # type: ignore[arg-type]
    kinds = shown_axes(data, against)
    records = score_history(study, CHECKPOINTS if moments is None else moments)
    figure: Figure = style.new_figure(max(WIDTH * len(kinds), 6.4), HEIGHT, dpi)
    panels = figure.subplots(2, len(kinds), squeeze=False, sharey="row", sharex="col")
    for column, kind in enumerate(kinds):
        draw_best(panels[0, column], data, kind)
        draw_score(panels[1, column], data, records, kind)
        panels[1, column].set_xlabel(AGAINST[kind])
    figure.suptitle(style.wrapped(data.title, figure), x=0.01, ha="left", fontsize=10)
    return figure


def shown_axes(data: PlotData, against: str | None) -> list[Against]:
    """Return what the horizontal axes show.

    Args:
        data: Data of the study.
        against: "cost" or "steps"; None: both, if the measurements differ in cost.

    Raises:
        InvalidArgumentError: If it is neither.
    """
    if against is not None and against not in AGAINST:
        raise InvalidArgumentError(unknown_name("axis", against, AGAINST))
    if against is not None:
        return ["cost" if against == "cost" else "steps"]
    costs = np.diff(data.spent, prepend=0.0)
    differ = len(costs) > 1 and float(np.ptp(costs)) > 1e-9 * float(costs.max())
    return ["cost", "steps"] if differ else ["steps"]


def positions(data: PlotData, kind: Against) -> Array:
    """Return where on the horizontal axis each measurement is: (t,)."""
    return data.spent if kind == "cost" else np.arange(1.0, len(data.spent) + 1)


def best_so_far(data: PlotData) -> Array:
    """Return the best value up to each measurement, NaN before the first of the target: (t,)."""
    return best_values(data.values, data.goal.sign)


def score_goal(data: PlotData) -> float | None:
    """Return the score that the study is meant to end at; None if it has no such limit."""
    return limit_progress.score_goal(data.result, RunLimits.of(data.study.limits))


def score_name(data: PlotData) -> str:
    """Return the name of the score: "F1" or "regret"."""
    return str(data.goal.score.name)


def draw_best(ax: Any, data: PlotData, kind: Against) -> None:
    """Draw the measured values, with the best so far or the thresholds."""
    _finish(ax, data.values_title)
    known = np.isfinite(data.values)
    if not known.any():
        _write(ax, "no measurements yet")
        return
    at = positions(data, kind)
    ax.plot(
        at[known], data.values[known], ls="", marker="o", ms=3, color=style.SOFT, label="measured"
    )
    for threshold in data.thresholds:
        ax.axhline(
            threshold,
            color=style.THRESHOLD,
            lw=1,
            ls=":",
            label=data.threshold_text(threshold),
        )
    if data.goal.seeks_optimum:
        ax.step(at, best_so_far(data), where="post", color=INK, lw=1.5, label="best so far")
    if data.truth is not None and data.true_best is not None:
        ax.axhline(data.truth[data.true_best], color=GOAL, lw=1, ls="--", label="true optimum")
    ax.set_xlim(0, 1.03 * at[-1])
    ax.legend(frameon=False, fontsize=8, loc="best")


def draw_score(ax: Any, data: PlotData, records: Sequence[ScoreAfter], kind: Against) -> None:
    """Draw expected F1 or regret with its 95 % interval, and the goal.

    Args:
        ax: Axes to draw into.
        data: Data of the study.
        records: The scores, as `score_history` returns them.
        kind: The horizontal axis.
    """
    name = score_name(data)
    _finish(ax, f"expected {name}, given the model")
    if not records:
        _write(ax, "no model yet")
        return
    at = np.array(
        [record.spent if kind == "cost" else record.steps for record in records], dtype=float
    )
    mean = np.array([record.score.mean for record in records])
    low = np.array([record.score.low for record in records])
    high = np.array([record.score.high for record in records])
    if not data.goal.score.is_share:
        least = max(MIN_RATIO * float(high.max()), 1e-300)
        mean = np.maximum(mean, least)
        low = np.maximum(low, least)
        ax.set_yscale("log")
    else:
        ax.set_ylim(0, 1.02)
    ax.fill_between(at, low, high, color="#44779A", alpha=0.25, lw=0, label="95 % interval")
    ax.plot(at, mean, color=style.LINE, lw=1.6, marker="o", ms=3, label=f"expected {name}")
    goal = score_goal(data)
    if goal is not None and goal > 0:
        ax.axhline(goal, color=GOAL, lw=1.2, ls="--", label=f"goal {format_number(goal)}")
    total = positions(data, kind)[-1] if len(data.spent) else at[-1]
    ax.set_xlim(0, 1.03 * max(float(total), float(at[-1])))
    ax.legend(frameon=False, fontsize=8, loc="best")


def _finish(ax: Any, title: str) -> None:
    ax.set_title(title, loc="left", fontsize=9)
    ax.tick_params(labelsize=8)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def _write(ax: Any, text: str) -> None:
    ax.text(0.5, 0.5, text, ha="center", va="center", color=style.SOFT, transform=ax.transAxes)
    ax.set_xticks([])
    ax.set_yticks([])
