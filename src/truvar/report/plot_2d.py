"""A study in the plane: one map of the posterior mean and the route, one of what is settled."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from truvar._typing import Array
from truvar.report import style
from truvar.report.formatting import column_label, format_number
from truvar.report.plot_data import PlotData, diamond, edges, legend, order_shade, star
from truvar.report.style import INK

NUMBERED = 30  # measurements up to which each has its number on the map
ROOM = np.array([0.03, 0.07])  # what a number takes of the width and height of the map


def draw_mean(ax: Any, view: PlotData) -> None:
    """The posterior mean with the boundary at h, the route and what is suggested."""
    image = _field(ax, view.domain.points, view.result.mean, cmap=style.VALUES)
    bar = ax.figure.colorbar(image, ax=ax, pad=0.015, fraction=0.05)
    bar.set_label("posterior mean")
    h = view.threshold
    if h is not None:
        if bar.vmin < h < bar.vmax:
            bar.ax.axhline(h, color=INK, lw=1.6)
        _contour(ax, view.domain.points, view.result.mean, h, colors=INK, linewidths=1.8)
    _frame(ax, view)
    _draw_route(ax, view)
    handles = _route_handles(view)
    if h is not None:
        line = style.import_matplotlib("lines").Line2D
        handles.insert(0, line([], [], color=INK, lw=1.8, label=f"h = {format_number(h)}"))
    legend(ax, handles, columns=5)


def draw_regions(ax: Any, view: PlotData) -> None:
    """What is settled: H, L and M, with the estimated and the true boundary."""
    colors = style.import_matplotlib("colors")
    code = np.zeros(len(view.domain))
    classes = view.classes()
    for k, (_, mask, _) in enumerate(classes):
        code[mask] = k
    palette = colors.ListedColormap([view.colours[name] for name, _, _ in classes])
    _field(ax, view.domain.points, code, cmap=palette, vmin=-0.5, vmax=len(classes) - 0.5)
    handles, line = view.legend_handles(), style.import_matplotlib("lines").Line2D
    if view.threshold is not None:
        _contour(ax, view.domain.points, view.result.mean, view.threshold, colors=INK, linewidths=1.3)
        handles.append(line([], [], color=INK, lw=1.3, label="estimated boundary"))
    if view.truth is not None and view.true_threshold is not None:
        dotted = {"colors": INK, "linestyles": ":", "linewidths": 1.6}
        _contour(ax, view.domain.points, view.truth, view.true_threshold, **dotted)
        handles.append(line([], [], color=INK, lw=1.6, ls=":", label="true boundary"))
    if view.true_best is not None:
        ax.plot(*view.domain.points[view.true_best], ls="", marker="*", ms=17, mfc="none", mec=INK, zorder=5)
        handles.append(line([], [], ls="", marker="*", ms=11, mfc="none", mec=INK, label="true optimum"))
    if not view.goal.level_set and len(view.places):
        ax.plot(*(view.result.best.point[name] for name in view.domain.columns), ls="", **star())
        handles.append(line([], [], ls="", **{**star(), "ms": 9}, label="best"))
    _frame(ax, view)
    legend(ax, handles, columns=5)


def _draw_route(ax: Any, view: PlotData) -> None:
    x, y = view.places.T
    if view.travels:
        ax.plot(x, y, color="white", lw=0.7, alpha=0.7 if len(x) <= 60 else 0.4, zorder=3)
    edge = INK if grid_of(view.domain.points) is None else "white"
    ax.scatter(
        x, y, c=order_shade(view.places), cmap=style.ORDER, vmin=-0.15, vmax=1, s=19, edgecolors=edge,
        linewidths=0.7, zorder=4, clip_on=False,
    )  # fmt: skip
    _number(ax, view.places)
    for point in view.pending:
        ax.plot(*(point[name] for name in view.domain.columns), ls="", clip_on=False, **diamond())
    if not view.goal.level_set and len(view.places):
        ax.plot(*(view.result.best.point[name] for name in view.domain.columns), ls="", **star())


def _number(ax: Any, places: Array) -> None:
    """Numbers beside the measurements: all where they are few, else first and last; none on top of another."""
    if len(places) == 0:
        return
    at = ax.transAxes.inverted().transform(ax.transData.transform(places))
    side = np.where(at[:, 1] > 0.9, -1, 1)  # above the point, but below it near the upper edge
    at[:, 1] += side * ROOM[1]
    ends_first = sorted(range(len(places)), key=lambda k: (0 < k < len(places) - 1, k))
    outline = [style.import_matplotlib("patheffects").withStroke(linewidth=2, foreground=INK)]
    taken: list[int] = []
    for k in ends_first if len(places) <= NUMBERED else ends_first[:2]:
        if all((np.abs(at[k] - at[other]) > ROOM).any() for other in taken):
            taken.append(k)
            ax.annotate(
                str(k + 1), places[k], (0, 4.5 * side[k]), textcoords="offset points", ha="center",
                va="bottom" if side[k] > 0 else "top", color="white", fontsize=8, path_effects=outline, zorder=6,
            )  # fmt: skip


def _route_handles(view: PlotData) -> list[Any]:
    line = style.import_matplotlib("lines").Line2D
    handles = []
    if len(view.places):
        text = "route, later points darker" if view.travels else "measured, later points darker"
        handles.append(line([], [], ls="", marker="o", ms=5, mfc="#888888", mec=INK, mew=0.6, label=text))
    if view.pending:
        handles.append(line([], [], ls="", **{**diamond(), "ms": 6}, label="suggested"))
    if not view.goal.level_set and len(view.places):
        handles.append(line([], [], ls="", **{**star(), "ms": 9}, label="best"))
    return handles


def _field(ax: Any, points: Array, values: Array, **how: Any) -> Any:
    """Values over the plane: cells where the points form a grid, dots where they do not."""
    grid = grid_of(points)
    if grid is None:
        size = float(np.clip(9000 / len(points), 4, 90))
        return ax.scatter(points[:, 0], points[:, 1], c=values, s=size, marker="s", lw=0, clip_on=False, **how)
    x, y, order = grid
    cells = values[order].reshape(len(x), len(y)).T
    borders = (edges(axis, style.use_log_axis(axis)) for axis in (x, y))
    return ax.pcolormesh(*borders, cells, rasterized=True, **how)


def _contour(ax: Any, points: Array, values: Array, h: float, **how: Any) -> None:
    """The line where the values cross h, if they do and the points span a plane."""
    if not values.min() < h < values.max():
        return
    grid = grid_of(points)
    if grid is not None:
        x, y, order = grid
        if min(len(x), len(y)) > 1:
            ax.contour(x, y, values[order].reshape(len(x), len(y)).T, [h], **how)
    elif len(points) > 3 and np.linalg.matrix_rank(points - points.mean(axis=0)) == 2:
        ax.tricontour(points[:, 0], points[:, 1], values, [h], **how)


def grid_of(points: Array) -> tuple[Array, Array, NDArray[np.intp]] | None:
    """The axes of points that fill a grid, and the order that sorts them into it; None if they do not."""
    x, y = np.unique(points[:, 0]), np.unique(points[:, 1])
    if len(x) * len(y) != len(points):
        return None
    return x, y, np.lexsort((points[:, 1], points[:, 0]))


def _frame(ax: Any, view: PlotData) -> None:
    """Scales, limits and labels: the domain and half a cell around it, or a little where there are no cells."""
    grid = grid_of(view.domain.points)
    for letter, k in (("x", 0), ("y", 1)):
        geometric = style.use_log_axis(view.domain.points[:, k])
        if grid is None:
            low, high = view.domain.bounds[k]
            axis = np.geomspace(low, high, 20) if geometric else np.linspace(low, high, 20)
        else:
            axis = (grid[0], grid[1])[k]
        around = edges(axis, geometric)
        if geometric:
            ax.set(**{f"{letter}scale": "log"})
        ax.set(**{f"{letter}lim": (around[0], around[-1]), f"{letter}label": column_label(view.domain.columns[k])})
