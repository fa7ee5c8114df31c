"""A study on one axis: mean, bounds and measurements as a curve."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from truvar._typing import Array
from truvar.report import style
from truvar.report.formatting import column_label, format_number
from truvar.report.plot_data import PlotData, edges, legend, order_shade, star
from truvar.report.style import INK


def draw_curve(ax: Any, view: PlotData) -> None:
    """Mean, bounds, threshold and measurements over the one axis, with the classes as a strip at the foot."""
    x = view.domain.points[:, 0]
    order = np.argsort(x)
    x, r = x[order], view.result
    ax.fill_between(x, r.lower[order], r.upper[order], color="#44779A", alpha=0.22, lw=0, label="bounds")
    ax.plot(x, r.mean[order], color="#1F4E79", lw=1.8, label="posterior mean")
    if view.truth is not None:
        ax.plot(x, view.truth[order], color=INK, lw=1, ls="--", label="truth")
    if view.threshold is not None:
        ax.axhline(view.threshold, color="#B2182B", lw=1, ls=":", label=f"h = {format_number(view.threshold)}")
    if len(view.places):
        at, y = view.places[:, 0], view.values
        ax.errorbar(at, y, yerr=np.sqrt(view.noise), fmt="none", ecolor="#777777", elinewidth=0.8)
        ax.scatter(
            at, y, c=order_shade(view.places), cmap=style.ORDER, vmin=-0.3, vmax=1, s=22, edgecolors=INK,
            linewidths=0.6, zorder=4, clip_on=False, label="measured, later points darker",
        )  # fmt: skip
    for number, point in enumerate(view.pending):
        text = "suggested" if number == 0 else None
        ax.axvline(point[view.domain.columns[0]], color=style.PENDING, lw=1.3, ls="-.", label=text)
    if not view.goal.level_set and len(view.places):
        best = view.result.best
        ax.plot(best.point[view.domain.columns[0]], best.mean, ls="", **star(), label="best")
    if style.use_log_axis(x):
        ax.set_xscale("log")
    ax.set_xlim(x[0], x[-1] if x[-1] > x[0] else x[0] + 1)
    low, high = ax.get_ylim()
    ax.set_ylim(low - 0.07 * (high - low), high)
    _strip(ax, x, view, order)
    ax.set_xlabel(column_label(view.domain.columns[0]))
    ax.set_ylabel("value")
    legend(ax, ax.get_legend_handles_labels()[0] + view.legend_handles(), columns=4)


def _strip(ax: Any, x: Array, view: PlotData, order: NDArray[np.intp]) -> None:
    """The classes as bars at the foot of the axes: one bar for each run of neighbours of one class."""
    border = edges(x, style.use_log_axis(x))
    for name, mask, _ in view.classes():
        turns = np.flatnonzero(np.diff(np.concatenate([[False], mask[order], [False]]).astype(int)))
        for first, end in turns.reshape(-1, 2):
            ax.axvspan(border[first], border[end], 0, 0.035, color=view.colours[name], lw=0)
