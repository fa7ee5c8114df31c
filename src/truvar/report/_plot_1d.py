"""Figure of a study on one axis: posterior mean, intervals, measurements and classes."""

from __future__ import annotations

from typing import Any

import numpy as np

from truvar._typing import Array, Index
from truvar.report import style
from truvar.report._plot_data import (
    INTERVAL_LABEL,
    PlotData,
    add_legend,
    cell_edges,
    order_shades,
    star,
)
from truvar.report.formatting import column_label, column_ticks
from truvar.report.style import INK

STRIP_HEIGHT = 0.035  # of the classes at the bottom, as a share of the height of the axes


def draw_curve(ax: Any, data: PlotData) -> None:
    """Draw mean, intervals, threshold and measurements over the axis, with the classes as a strip at the bottom."""
    (column,) = data.domain.columns
    order = np.argsort(data.domain.points[:, 0])
    x = data.domain.points[order, 0]
    result = data.result
    lower = result.statements.lower[order]
    upper = result.statements.upper[order]
    ax.fill_between(x, lower, upper, color="#44779A", alpha=0.22, lw=0, label=INTERVAL_LABEL)
    ax.plot(x, result.mean[order], color="#1F4E79", lw=1.8, label="estimate")
    if data.truth is not None:
        ax.plot(x, data.truth[order], color=INK, lw=1, ls="--", label="truth")
    for threshold in data.thresholds:
        ax.axhline(threshold, color="#B2182B", lw=1, ls=":", label=data.threshold_text(threshold))
    if len(data.measured):
        measured = data.measured[:, 0]
        ax.errorbar(
            measured,
            data.values,
            yerr=np.sqrt(data.noise),
            fmt="none",
            ecolor="#777777",
            elinewidth=0.8,
        )
        ax.scatter(
            measured, data.values, c=order_shades(data.measured), cmap=style.ORDER, vmin=-0.3, vmax=1, s=22,
            edgecolors=INK, linewidths=0.6, zorder=4, clip_on=False, label="measured, later points "
                                                                           "darker",
        )  # fmt: skip
    for number, point in enumerate(data.pending):
        label = "suggested" if number == 0 else None
        ax.axvline(data.coordinates(point)[0], color=style.PENDING, lw=1.3, ls="-.", label=label)
    if data.shows_best:
        ax.plot(data.best_point[0], result.best.mean, ls="", **star(), label="recommended")
    if style.use_log_axis(x):
        ax.set_xscale("log")
    ticks = column_ticks(data.domain, 0)
    if ticks is not None:
        ax.set_xticks([at for at, _ in ticks], [text for _, text in ticks])
    ax.set_xlim(x[0], x[-1] if x[-1] > x[0] else x[0] + 1)
    low, high = ax.get_ylim()
    ax.set_ylim(low - 2 * STRIP_HEIGHT * (high - low), high)
    _draw_classes(ax, x, data, order)
    ax.set_xlabel(column_label(column))
    ax.set_ylabel(data.study.quantity.label or "value")
    add_legend(ax, ax.get_legend_handles_labels()[0] + data.legend_handles(), max_columns=4)


def _draw_classes(ax: Any, x: Array, data: PlotData, order: Index) -> None:
    """Draw one bar for each run of neighbouring points of one class."""
    borders = cell_edges(x, style.use_log_axis(x))
    for name, mask, _ in data.classes():
        inside = np.concatenate([[False], mask[order], [False]]).astype(int)
        changes = np.flatnonzero(np.diff(inside))
        for first, end in changes.reshape(-1, 2):
            ax.axvspan(
                borders[first], borders[end], 0, STRIP_HEIGHT, color=data.colours[name], lw=0
            )
