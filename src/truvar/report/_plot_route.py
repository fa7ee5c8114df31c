"""Figure of the route: where was measured in which order, by whom, and at which cost."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from truvar._typing import Array
from truvar.report import style
from truvar.report._plot_2d import draw_field, set_axes
from truvar.report._plot_candidates import (
    START_MARK,
    MapColumns,
    map_columns,
    set_map_axes,
    start_of,
)
from truvar.report._plot_data import PlotData, diamond
from truvar.report._slices import chosen_columns
from truvar.report.backtest_plot import COLOURS
from truvar.report.formatting import column_label, column_ticks
from truvar.report.style import INK

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from truvar.study.base import BaseStudy

WIDTH = 8.5  # inches
HEIGHT = 5.4  # inches
MANY = 40  # measurements from which on the lines are paler
NUMBER_SIZE = np.array([0.03, 0.035])  # width and height of an id, as shares of the axes
ARROW = 0.9  # width of an arrow in points
FADED = 0.45  # opacity of the posterior mean behind the route
SINGLE = "#B2182B"  # the route of a single crew


def plot_route(study: BaseStudy, columns: Sequence[str] | None = None, dpi: float = 110) -> Figure:
    """Return a matplotlib Figure of the measurements in their order, joined by arrows, one route for each vehicle.

    Args:
        study: The study, which is not changed.
        columns: One column, which is drawn against the order, or the two of the map; default: the
            first two.
        dpi: Dots per inch.

    Raises:
        InvalidArgumentError: If a column is unknown.
    """
    data = PlotData.from_study(study)  # type: ignore[arg-type]
    names = data.domain.columns[:2] if columns is None else columns[:2]
    chosen, _ = chosen_columns(study, names, 2)
    figure: Figure = style.new_figure(WIDTH, HEIGHT, dpi)
    draw_route(figure.subplots(), data, chosen)
    figure.suptitle(style.wrapped(data.title, figure), x=0.01, ha="left", fontsize=10)
    return figure


def draw_route(ax: Any, data: PlotData, chosen: Sequence[int]) -> None:
    """Draw the routes over one or two columns.

    Args:
        ax: Axes to draw into.
        data: Data of the study.
        chosen: Position of the one or two columns.
    """
    if len(chosen) == 2 and len(data.domain.columns) == 2:
        image = draw_field(ax, data.domain.points, data.result.mean, cmap=style.VALUES, alpha=FADED)
        bar = ax.figure.colorbar(image, ax=ax, pad=0.015, fraction=0.05)
        bar.set_label(data.study.quantity.label or "estimate")
    routes = [vehicle for vehicle, points in data.routes.items() if len(points)]
    line = style.import_matplotlib("lines").Line2D
    columns = _map_columns(data, chosen)
    starts: dict[str | None, Array | None] = {}
    if columns is not None and data.travels:
        starts = {vehicle: start_of(data, vehicle, columns) for vehicle in routes}
    handles = []
    for number, vehicle in enumerate(routes):
        colour = SINGLE if vehicle is None else COLOURS[(number + 1) % len(COLOURS)]
        points = data.routes[vehicle]
        _draw_one_route(ax, _projected(points, chosen, data), starts.get(vehicle), colour)
        label = (
            "measurements in order" if vehicle is None else f"{vehicle}: {len(points)} measurements"
        )
        handles.append(line([], [], color=colour, lw=1.2, marker="o", ms=4, label=label))
    _draw_pending(ax, data, chosen)
    if any(start is not None for start in starts.values()):
        handles.append(line([], [], ls="", **START_MARK, label="start"))
    if data.pending:
        handles.append(line([], [], ls="", **{**diamond(), "ms": 6}, label="suggested"))
    _set_route_axes(ax, data, chosen)
    if columns is not None and columns.is_degrees:
        set_map_axes(ax, data, columns)
    _write_ids(ax, _projected(data.measured, chosen, data), data.ids)
    if handles:
        style.legend_below(ax.figure, handles)


def _draw_one_route(ax: Any, points: Array, start: Array | None, colour: str) -> None:
    """Draw the points (t, 2) of a route in their order, from its start (2,) if there is one."""
    if start is None:
        _draw_arrows(ax, points, colour)
    else:
        _draw_arrows(ax, np.vstack([start, points]), colour)
        ax.plot(*start, ls="", clip_on=False, zorder=5, **{**START_MARK, "mec": colour})
    ax.scatter(
        *points.T, s=16, color=colour, edgecolors="white", linewidths=0.6, zorder=4, clip_on=False
    )


def _draw_pending(ax: Any, data: PlotData, chosen: Sequence[int]) -> None:
    """Draw a diamond for every suggestion."""
    for point in data.pending:
        place = data.coordinates(point)[list(chosen)]
        if len(chosen) == 1:
            place = np.array([len(data.measured) + 1, place[0]])
        ax.plot(*place, ls="", clip_on=False, **diamond())


def _map_columns(data: PlotData, chosen: Sequence[int]) -> MapColumns | None:
    """Return the two columns as those of a map; None if there is one."""
    if len(chosen) != 2:
        return None
    return map_columns(data.domain, [data.domain.columns[k] for k in chosen])


def _projected(points: Array, chosen: Sequence[int], data: PlotData) -> Array:
    """Return points (t, 2) of the figure: two columns, or the number of the measurement and one column."""
    if len(chosen) == 2:
        return points[:, list(chosen)]
    if len(points) == len(data.measured):
        order = np.arange(1.0, len(points) + 1)
    else:  # the route of one of several vehicles
        order = np.array(
            [1.0 + np.flatnonzero((data.measured == point).all(axis=1))[0] for point in points]
        )
    return np.column_stack([order, points[:, chosen[0]]])


def _draw_arrows(ax: Any, points: Array, colour: str) -> None:
    """Join points by arrows; many of them by a thin line with arrows at the end of each leg."""
    opacity = 0.85 if len(points) <= MANY else 0.5
    ax.plot(*points.T, color=colour, lw=ARROW, alpha=opacity, zorder=3)
    for start, end in pairwise(points):
        if np.array_equal(start, end):
            continue
        middle = start + 0.6 * (end - start)
        ax.annotate(
            "", middle, start + 0.5 * (end - start), zorder=3,
            arrowprops={"arrowstyle": "-|>", "color": colour, "lw": ARROW, "alpha": opacity, "mutation_scale": 8},
        )  # fmt: skip


def _write_ids(ax: Any, points: Array, ids: Sequence[int]) -> None:
    """Write the ids beside the points, the first and the last before the others; none over another."""
    outline = [style.import_matplotlib("patheffects").withStroke(linewidth=2, foreground="white")]
    last = len(points) - 1
    position = (
        ax.transAxes.inverted().transform(ax.transData.transform(points)) if len(points) else points
    )
    placed: list[int] = []
    for k in sorted(range(len(points)), key=lambda k: (0 < k < last, k)):
        if any((np.abs(position[k] - position[other]) <= NUMBER_SIZE).all() for other in placed):
            continue
        placed.append(k)
        ax.annotate(
            str(ids[k]), points[k], (3, 3), textcoords="offset points", fontsize=7, color=INK, path_effects=outline,
            zorder=6,
        )  # fmt: skip


def _set_route_axes(ax: Any, data: PlotData, chosen: Sequence[int]) -> None:
    columns = data.domain.columns
    if len(chosen) == 2 and len(columns) == 2:
        set_axes(ax, data)
        return
    letters = "xy" if len(chosen) == 2 else "y"
    for letter, column in zip(letters, chosen, strict=True):
        ticks = column_ticks(data.domain, column)
        if ticks is not None:
            getattr(ax, f"set_{letter}ticks")([at for at, _ in ticks], [text for _, text in ticks])
        elif style.use_log_axis(data.domain.points[:, column]):
            ax.set(**{f"{letter}scale": "log"})
        ax.set(**{f"{letter}label": column_label(columns[column])})
    if len(chosen) == 1:
        ax.set_xlabel("measurement")
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
