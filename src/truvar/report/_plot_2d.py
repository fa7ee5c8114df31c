"""Figures of a study in the plane: a map of the posterior mean and the route, and a map of the classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from truvar._typing import Array, Index
from truvar.report import style
from truvar.report._plot_data import (
    PlotData,
    add_legend,
    cell_edges,
    diamond,
    order_shades,
    star,
)
from truvar.report._plot_infeasible import draw_infeasible
from truvar.report.formatting import column_label, column_ticks
from truvar.report.goal_views import optimum_name
from truvar.report.style import INK

ROUTE_STYLES = ("-", "--", ":", "-.")  # of the routes of several vehicles
MAX_NUMBERED = 30  # measurements up to which each has its id on the map
NUMBER_SIZE = np.array([0.03, 0.07])  # width and height of a number, as shares of the axes


def draw_mean(ax: Any, data: PlotData) -> None:
    """Draw the posterior mean with the boundary at h, the route and the pending suggestions."""
    image = draw_field(ax, data.domain.points, data.result.mean, cmap=style.VALUES)
    bar = ax.figure.colorbar(image, ax=ax, pad=0.015, fraction=0.05)
    bar.set_label(data.study.quantity.label or "estimate")
    for threshold in data.thresholds:
        if bar.vmin < threshold < bar.vmax:
            bar.ax.axhline(threshold, color=INK, lw=1.6)
        _draw_contour(
            ax, data.domain.points, data.result.mean, threshold, colors=INK, linewidths=1.8
        )
    set_axes(ax, data)
    _draw_route(ax, data)
    handles = [*_route_handles(data), *draw_infeasible(ax, data)]
    if data.thresholds:
        line = style.import_matplotlib("lines").Line2D
        label = data.threshold_text(*data.thresholds)
        handles.insert(0, line([], [], color=INK, lw=1.8, label=label))
    add_legend(ax, handles, max_columns=5)


def draw_regions(ax: Any, data: PlotData) -> None:
    """Draw what is known of every point: its class, or for a map its standard deviation."""
    _REGION_MAPS[data.view.region_map](ax, data)


def _draw_sd(ax: Any, data: PlotData) -> None:
    """Draw the posterior standard deviation, and the places of the measurements."""
    image = draw_field(ax, data.domain.points, data.result.sd, cmap=style.VALUES)
    bar = ax.figure.colorbar(image, ax=ax, pad=0.015, fraction=0.05)
    unit = data.study.quantity.unit
    bar.set_label("standard deviation" if unit is None else f"standard deviation ({unit})")
    set_axes(ax, data)
    _draw_route(ax, data)
    add_legend(ax, [*_route_handles(data), *draw_infeasible(ax, data)], max_columns=5)


def _draw_class_regions(ax: Any, data: PlotData) -> None:
    """Draw the class of every point, with the estimated and the true boundary.

    If an optimum is sought, the points that can be it are coloured by their probability of being
    it.
    """
    line = style.import_matplotlib("lines").Line2D
    _draw_classes(ax, data)
    handles = data.legend_handles()
    for threshold in data.thresholds:
        _draw_contour(
            ax, data.domain.points, data.result.mean, threshold, colors=INK, linewidths=1.3
        )
    if data.thresholds:
        handles.append(line([], [], color=INK, lw=1.3, label="estimated boundary"))
    if data.truth is not None and data.true_threshold is not None:
        dotted = {"colors": INK, "linestyles": ":", "linewidths": 1.6}
        _draw_contour(ax, data.domain.points, data.truth, data.true_threshold, **dotted)
        handles.append(line([], [], color=INK, lw=1.6, ls=":", label="true boundary"))
    if data.true_best is not None:
        ax.plot(
            *data.domain.points[data.true_best],
            ls="",
            marker="*",
            ms=17,
            mfc="none",
            mec=INK,
            zorder=5,
        )
        handles.append(
            line([], [], ls="", marker="*", ms=11, mfc="none", mec=INK, label="true optimum")
        )
    if data.shows_best:
        ax.plot(*data.best_point, ls="", **star())
        handles.append(_best_handle())
    handles += draw_infeasible(ax, data)
    set_axes(ax, data)
    add_legend(ax, handles, max_columns=5)


# By `GoalView.region_map`.
_REGION_MAPS = {"classes": _draw_class_regions, "sd": _draw_sd}


def _draw_classes(ax: Any, data: PlotData) -> None:
    colors = style.import_matplotlib("colors")
    points = data.domain.points
    code = np.zeros(len(points))
    classes = data.classes()
    for number, (_, mask, _) in enumerate(classes):
        code[mask] = number
    palette = colors.ListedColormap([data.colours[name] for name, _, _ in classes])
    draw_field(ax, points, code, cmap=palette, vmin=-0.5, vmax=len(classes) - 0.5)
    if not (data.goal.seeks_optimum and data.has_model):
        return
    possible = np.where(data.classification.undecided, data.result.probability, np.nan)
    shades = colors.LinearSegmentedColormap.from_list("probability", style.PROBABILITY)
    image = draw_field(ax, points, possible, cmap=shades, vmin=0.0, vmax=float(np.nanmax(possible)))
    bar = ax.figure.colorbar(image, ax=ax, pad=0.015, fraction=0.05)
    bar.set_label(f"probability: {optimum_name(data.goal)}")


def _draw_route(ax: Any, data: PlotData) -> None:
    x, y = data.measured.T
    if data.travels:
        opacity = 0.7 if len(x) <= 60 else 0.4
        for number, (vehicle, route) in enumerate(data.routes.items()):
            if vehicle is None and len(data.routes) > 1:
                continue  # what none of the vehicles measured is no route
            line_style = ROUTE_STYLES[number % len(ROUTE_STYLES)]
            ax.plot(
                *route.T,
                color="white",
                lw=0.7 if vehicle is None else 1.1,
                ls=line_style,
                alpha=opacity,
                zorder=3,
            )
    edge = INK if grid_of(data.domain.points) is None else "white"
    ax.scatter(
        x, y, c=order_shades(data.measured), cmap=style.ORDER, vmin=-0.15, vmax=1, s=19, edgecolors=edge,
        linewidths=0.7, zorder=4, clip_on=False,
    )  # fmt: skip
    _number_measurements(ax, data.measured, data.ids)
    for point in data.pending:
        ax.plot(*data.coordinates(point), ls="", clip_on=False, **diamond())
    if data.shows_best:
        ax.plot(*data.best_point, ls="", **star())


def _number_measurements(ax: Any, measured: Array, ids: Sequence[int]) -> None:
    """Write the ids beside the measurements: all if there are few, else first and last; none over another."""
    if len(measured) == 0:
        return
    position = ax.transAxes.inverted().transform(ax.transData.transform(measured))
    side = np.where(
        position[:, 1] > 0.9, -1, 1
    )  # above the point, but below it near the upper edge
    position[:, 1] += side * NUMBER_SIZE[1]
    last = len(measured) - 1
    ends_first = sorted(range(len(measured)), key=lambda k: (0 < k < last, k))
    if len(measured) > MAX_NUMBERED:
        ends_first = ends_first[:2]
    outline = [style.import_matplotlib("patheffects").withStroke(linewidth=2, foreground=INK)]
    placed: list[int] = []
    for k in ends_first:
        if any((np.abs(position[k] - position[other]) <= NUMBER_SIZE).all() for other in placed):
            continue
        placed.append(k)
        ax.annotate(
            str(ids[k]), measured[k], (0, 4.5 * side[k]), textcoords="offset points", ha="center",
            va="bottom" if side[k] > 0 else "top", color="white", fontsize=8, path_effects=outline, zorder=6,
        )  # fmt: skip


def _route_handles(data: PlotData) -> list[Any]:
    line = style.import_matplotlib("lines").Line2D
    handles = []
    if len(data.measured):
        label = "route, later points darker" if data.travels else "measured, later points darker"
        handles.append(
            line([], [], ls="", marker="o", ms=5, mfc="#888888", mec=INK, mew=0.6, label=label)
        )
    if data.travels:
        for number, vehicle in enumerate(data.routes):
            if vehicle is not None:
                style_of = ROUTE_STYLES[number % len(ROUTE_STYLES)]
                handles.append(
                    line([], [], color="#888888", lw=1.1, ls=style_of, label=f"route of {vehicle}")
                )
    if data.pending:
        handles.append(line([], [], ls="", **{**diamond(), "ms": 6}, label="suggested"))
    if data.shows_best:
        handles.append(_best_handle())
    return handles


def _best_handle() -> Any:
    return style.import_matplotlib("lines").Line2D(
        [], [], ls="", **{**star(), "ms": 9}, label="recommended"
    )


def draw_field(ax: Any, points: Array, values: Array, **options: Any) -> Any:
    """Draw values over the plane: cells if the points form a grid, squares if they do not."""
    grid = grid_of(points)
    if grid is None:
        size = float(np.clip(9000 / len(points), 4, 90))
        return ax.scatter(
            points[:, 0], points[:, 1], c=values, s=size, marker="s", lw=0, clip_on=False, **options
        )
    x, y, order = grid
    cells = values[order].reshape(len(x), len(y)).T
    borders = (cell_edges(axis, style.use_log_axis(axis)) for axis in (x, y))
    return ax.pcolormesh(*borders, cells, rasterized=True, **options)


def _draw_contour(ax: Any, points: Array, values: Array, level: float, **options: Any) -> None:
    """Draw the line where the values cross a level, if they do and the points span a plane."""
    if not values.min() < level < values.max():
        return
    grid = grid_of(points)
    if grid is not None:
        x, y, order = grid
        if min(len(x), len(y)) > 1:
            ax.contour(x, y, values[order].reshape(len(x), len(y)).T, [level], **options)
    elif len(points) > 3 and np.linalg.matrix_rank(points - points.mean(axis=0)) == 2:
        ax.tricontour(points[:, 0], points[:, 1], values, [level], **options)


def grid_of(points: Array) -> tuple[Array, Array, Index] | None:
    """Return the two axes of points that fill a grid and the order that sorts them into it, or None."""
    x = np.unique(points[:, 0])
    y = np.unique(points[:, 1])
    if len(x) * len(y) != len(points):
        return None
    return x, y, np.lexsort((points[:, 1], points[:, 0]))


def set_axes(ax: Any, data: PlotData) -> None:
    """Set scales, labels and limits: the domain and half a cell around it, or a small margin without cells."""
    grid = grid_of(data.domain.points)
    for k, letter in enumerate("xy"):
        geometric = style.use_log_axis(data.domain.points[:, k])
        low, high = data.domain.bounds[k]
        if grid is not None:
            axis = grid[0] if k == 0 else grid[1]
        elif geometric:
            axis = np.geomspace(low, high, 20)
        else:
            axis = np.linspace(low, high, 20)
        borders = cell_edges(axis, geometric)
        if geometric:
            ax.set(**{f"{letter}scale": "log"})
        ticks = column_ticks(data.domain, k)
        if ticks is not None:
            getattr(ax, f"set_{letter}ticks")([at for at, _ in ticks], [text for _, text in ticks])
        limits = (borders[0], borders[-1])
        ax.set(**{f"{letter}lim": limits, f"{letter}label": column_label(data.domain.columns[k])})
