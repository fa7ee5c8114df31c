"""Figure of a study in three or more dimensions: parallel coordinates."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from truvar._typing import Array
from truvar.report import style
from truvar.report.formatting import column_label, column_ticks, format_number
from truvar.report.plot_data import PlotData, add_legend
from truvar.report.style import INK

MAX_LINES = 300  # lines drawn of one class
TICKS = 5  # on each axis


class UnitScale(NamedTuple):
    """Map of the values of an axis to [0, 1], linear or logarithmic.

    Attributes:
        low: Value at 0.
        high: Value at 1.
        geometric: Whether the map is logarithmic.
    """

    low: float
    high: float
    geometric: bool

    @staticmethod
    def of(values: Array) -> UnitScale:
        """Return the scale that spreads these values well."""
        return UnitScale(float(values.min()), float(values.max()), style.use_log_axis(values))

    def heights(self, values: Array) -> Array:
        """Return values of the axis on [0, 1]; all at 0.5 on an axis with one value."""
        if self.high <= self.low:
            return np.full(np.shape(values), 0.5)
        if self.geometric:
            return np.asarray(np.log(values / self.low) / np.log(self.high / self.low))
        return np.asarray((values - self.low) / (self.high - self.low))

    def height(self, value: float) -> float:
        """Return one value of the axis on [0, 1]."""
        return float(self.heights(np.array([value]))[0])

    def ticks(self) -> list[tuple[float, str]]:
        """Return (height, label) of the tick marks."""
        if self.high <= self.low:
            return [(0.5, format_number(self.low))]
        space = np.geomspace if self.geometric else np.linspace
        values = space(self.low, self.high, TICKS)
        return [(k / (TICKS - 1), format_number(value)) for k, value in enumerate(values)]


def draw_parallel(ax: Any, data: PlotData) -> None:
    """Draw each point as a line across the axes, the last axis the posterior mean; the colour is the class."""
    columns = [*data.domain.columns, "posterior mean"]
    values = np.column_stack([data.domain.points, data.result.mean])
    scales = [UnitScale.of(column) for column in values.T]
    heights = np.column_stack([scale.heights(column) for scale, column in zip(scales, values.T, strict=True)])
    positions = np.arange(len(columns))
    line_collection = style.import_matplotlib("collections").LineCollection
    if data.goal.level_set and data.classification.band is None:
        least_important_first = sorted(data.classes(), key=lambda c: ("below", "undecided", "above").index(c.name))
    else:
        least_important_first = data.classes()[::-1]
    for rank, (name, mask, _) in enumerate(least_important_first):
        rows = np.flatnonzero(mask)
        rows = rows[:: max(1, int(np.ceil(len(rows) / MAX_LINES)))]
        paths = [np.column_stack([positions, heights[row]]) for row in rows]
        alpha = 0.35 if rank == 0 else 0.6
        lines = line_collection(paths, colors=data.colours[name], linewidths=0.9, alpha=alpha, zorder=2 + rank)
        ax.add_collection(lines)
    handles = data.legend_handles() + _draw_points(ax, data, scales)
    for k, scale in enumerate(scales):
        ax.axvline(k, color=INK, lw=0.8, zorder=6)
        ticks = column_ticks(data.domain, k) if k < len(columns) - 1 else None
        marks = scale.ticks() if ticks is None else [(scale.height(at), text) for at, text in ticks]
        for height, text in marks:
            ax.annotate(
                text, (k, height), (4, 0), textcoords="offset points", va="center", fontsize=7.5, zorder=8,
                bbox={"facecolor": "white", "alpha": 0.75, "edgecolor": "none", "pad": 0.8},
            )  # fmt: skip
    ax.set_xlim(-0.12, len(columns) - 0.55)
    ax.set_ylim(-0.05, 1.05)
    ax.set_xticks(positions, [column_label(name) for name in columns])
    ax.set_yticks([])
    ax.tick_params(axis="x", length=0, pad=6)
    for side in ax.spines.values():
        side.set_visible(False)
    add_legend(ax, handles, max_columns=5)


def _draw_points(ax: Any, data: PlotData, scales: list[UnitScale]) -> list[Any]:
    """Draw the measured, suggested and best points; return their legend entries."""
    line = style.import_matplotlib("lines").Line2D
    handles = []
    if len(data.measured):
        for k, column in enumerate(data.measured.T):
            heights = scales[k].heights(column)
            ax.plot(np.full(len(heights), k), heights, ls="", marker="o", ms=4, mfc="white", mec=INK, mew=0.8, zorder=7)
        handles.append(line([], [], ls="", marker="o", ms=4, mfc="white", mec=INK, label="measured"))
    for point in data.pending:
        suggested = [scales[k].height(float(x)) for k, x in enumerate(data.coordinates(point))]
        ax.plot(suggested, color=style.PENDING, lw=1.8, marker="D", ms=5, zorder=7)
    if data.pending:
        handles.append(line([], [], color=style.PENDING, lw=1.8, marker="D", ms=5, label="suggested"))
    if data.shows_best:
        best = data.result.best
        path = [scales[k].height(float(x)) for k, x in enumerate(data.best_point)]
        path.append(scales[-1].height(best.mean))
        ax.plot(path, color=INK, lw=2.4, zorder=7)
        handles.append(line([], [], color=INK, lw=2.4, label="recommended"))
    return handles
