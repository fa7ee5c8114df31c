"""A study in three or more dimensions: parallel coordinates."""

from __future__ import annotations

from typing import Any

import numpy as np

from truvar._typing import Array
from truvar.report import style
from truvar.report.formatting import column_label, format_number
from truvar.report.plot_data import PlotData, legend
from truvar.report.style import INK

MANY = 300  # lines drawn of one class


def draw_parallel(ax: Any, view: PlotData) -> None:
    """Each point is a line across the axes, the last one the posterior mean; its colour is its class."""
    columns = [*view.domain.columns, "posterior mean"]
    values = np.column_stack([view.domain.points, view.result.mean])
    scale = [_unit_scale(values[:, k]) for k in range(len(columns))]
    height = np.column_stack([to_unit(values[:, k]) for k, (to_unit, _) in enumerate(scale)])
    place = np.arange(len(columns))
    lines = style.import_matplotlib("collections").LineCollection
    settled_first = sorted(view.classes(), key=lambda c: ("below", "open", "above").index(c[0]))
    if not view.goal.level_set:
        settled_first = view.classes()[::-1]
    for rank, (name, mask, _) in enumerate(settled_first):
        rows = np.flatnonzero(mask)
        rows = rows[:: max(1, int(np.ceil(len(rows) / MANY)))]
        paths = [np.column_stack([place, height[row]]) for row in rows]
        alpha = 0.35 if rank == 0 else 0.6
        ax.add_collection(lines(paths, colors=view.colours[name], linewidths=0.9, alpha=alpha, zorder=2 + rank))
    handles = view.legend_handles()
    handles += _draw_settings(ax, view, scale)
    for k, (_, ticks) in enumerate(scale):
        ax.axvline(k, color=INK, lw=0.8, zorder=6)
        for level, text in ticks:
            ax.annotate(
                text, (k, level), (4, 0), textcoords="offset points", va="center", fontsize=7.5, zorder=8,
                bbox={"facecolor": "white", "alpha": 0.75, "edgecolor": "none", "pad": 0.8},
            )  # fmt: skip
    ax.set_xlim(-0.12, len(columns) - 0.55)
    ax.set_ylim(-0.05, 1.05)
    ax.set_xticks(place, [column_label(name) for name in columns])
    ax.set_yticks([])
    ax.tick_params(axis="x", length=0, pad=6)
    for side in ax.spines.values():
        side.set_visible(False)
    legend(ax, handles, columns=5)


def _draw_settings(ax: Any, view: PlotData, scale: list[Any]) -> list[Any]:
    """The measured, suggested and best points; returns what the legend says of them."""
    place = np.arange(len(view.domain.columns))
    line = style.import_matplotlib("lines").Line2D
    handles = []
    if len(view.places):
        for k in place:
            at = scale[k][0](view.places[:, k])
            ax.plot(np.full(len(at), k), at, ls="", marker="o", ms=4, mfc="white", mec=INK, mew=0.8, zorder=7)
        handles.append(line([], [], ls="", marker="o", ms=4, mfc="white", mec=INK, label="measured"))
    for number, point in enumerate(view.pending):
        at = [scale[k][0](np.array([point[name]]))[0] for k, name in enumerate(view.domain.columns)]
        ax.plot(place, at, color=style.PENDING, lw=1.8, marker="D", ms=5, zorder=7)
        if number == 0:
            handles.append(line([], [], color=style.PENDING, lw=1.8, marker="D", ms=5, label="suggested"))
    if not view.goal.level_set and len(view.places):
        best = view.result.best
        at = [scale[k][0](np.array([best.point[name]]))[0] for k, name in enumerate(view.domain.columns)]
        at.append(scale[-1][0](np.array([best.mean]))[0])
        ax.plot(np.arange(len(at)), at, color=INK, lw=2.4, zorder=7)
        handles.append(line([], [], color=INK, lw=2.4, label="best"))
    return handles


def _unit_scale(values: Array) -> tuple[Any, list[tuple[float, str]]]:
    """A map of an axis to [0, 1], logarithmic where that spreads it better, and its tick marks."""
    geometric = style.use_log_axis(values)
    low, high = float(values.min()), float(values.max())
    if high <= low:
        return (lambda v: np.full(np.shape(v), 0.5)), [(0.5, format_number(low))]
    if geometric:
        ticks = np.geomspace(low, high, 5)
        return (lambda v: np.log(v / low) / np.log(high / low)), _ticks(ticks)
    return (lambda v: (v - low) / (high - low)), _ticks(np.linspace(low, high, 5))


def _ticks(values: Array) -> list[tuple[float, str]]:
    return [(k / (len(values) - 1), format_number(value)) for k, value in enumerate(values)]
