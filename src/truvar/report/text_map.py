"""A small picture of a study in letters: a map in the plane, a curve on one axis, a line per column beyond."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from truvar._typing import Array
from truvar.report import style
from truvar.report.formatting import column_label, format_number
from truvar.report.plot_2d import grid_of
from truvar.report.plot_data import PlotData
from truvar.report.terminal import TerminalStyle

if TYPE_CHECKING:
    from truvar.study.study import Study

ACROSS, DOWN = 64, 16  # letters of a map, at most
STRIP = 24  # bins of a column where there are more than two
Index = NDArray[np.intp]

# (Unicode, ASCII). What is settled is dense or shaded, what is open stays a dot; for an optimum M is what matters.
LEVEL_SET = {"above": "█#", "open": "·.", "below": "░-"}
OPTIMUM = {"above": "·.", "open": "▒#", "below": "·."}
MARKS = {"measured": "●o", "pending": "◆?", "best": "★*"}
HEIGHTS = "▁▂▃▄▅▆▇█", ".:-=+*#@"


def text_map(study: Study, terminal: TerminalStyle) -> str:
    """The picture and its legend."""
    view = PlotData.from_study(study)
    draw = {1: _curve, 2: _plane}.get(len(view.domain.columns), _columns)
    return draw(view, terminal)


# -- the plane -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Axis:
    """How the coordinates of a column become letters: `cells` places, each repeated a few times."""

    cells: int
    repeat: int
    cell: Callable[[Array], Index]

    @property
    def size(self) -> int:
        return self.cells * self.repeat

    def at(self, x: float) -> int:
        """The letter on which to mark a coordinate."""
        return int(self.cell(np.array([x]))[0]) * self.repeat + self.repeat // 2

    @staticmethod
    def ranks(axis: Array, room: int, most: int) -> Axis:
        """By the rank among the values of the axis, whatever their spacing."""
        values = int(np.ceil(len(axis) / room))  # to a cell
        cells = int(np.ceil(len(axis) / values))

        def cell(x: Array) -> Index:
            return np.rint(np.interp(x, axis, np.arange(len(axis)))).astype(np.intp) // values

        return Axis(cells, max(1, min(room // cells, most)), cell)

    @staticmethod
    def bins(points: Array, size: int) -> Axis:
        """By equal bins; where the points spread over decades, of the logarithm."""
        geometric = style.use_log_axis(points)
        low, high = (float(np.log(v)) if geometric else float(v) for v in (points.min(), points.max()))

        def cell(x: Array) -> Index:
            value = np.log(np.maximum(x, np.exp(low))) if geometric else x
            share = (value - low) / (high - low) if high > low else np.zeros(len(x))
            return np.clip(share * size, 0, size - 1).astype(np.intp)

        return Axis(size, 1, cell)


def _plane(view: PlotData, terminal: TerminalStyle) -> str:
    names = [terminal.plain(column_label(column)) for column in view.domain.columns]
    ends = [[format_number(float(v)) for v in view.domain.bounds[k]] for k in (0, 1)]
    margin = max(len(end) for end in ends[1])
    room, points = min(ACROSS, terminal.width - margin - 5), view.domain.points
    grid = grid_of(points)
    if grid is None:
        down = int(np.clip(np.sqrt(len(points) / 4), 4, DOWN))
        x, y = Axis.bins(points[:, 0], min(room, 4 * down)), Axis.bins(points[:, 1], down)
    else:
        x, y = Axis.ranks(grid[0], room, 4), Axis.ranks(grid[1], DOWN, 2)
    letters = _letters(view, terminal)
    kinds = _majority(view, y.cell(points[:, 1]) * x.cells + x.cell(points[:, 0]), x.cells * y.cells)
    table = np.array([letters[kind] for kind in kinds], dtype=object).reshape(y.cells, x.cells)
    table = table.repeat(y.repeat, axis=0).repeat(x.repeat, axis=1)
    for kind, place in _marks(view):
        mark = terminal.paint(MARKS[kind][not terminal.unicode], "pending" if kind == "pending" else "strong")
        table[y.at(place[1]), x.at(place[0])] = mark
    side, corner, line = ("│", "└", "─") if terminal.unicode else ("|", "+", "-")
    rows = [f"  {names[1]}"]
    for k in range(y.size - 1, -1, -1):  # high values at the top
        label = ends[1][1] if k == y.size - 1 else ends[1][0] if k == 0 else ""
        rows.append(f"  {label:>{margin}} {side}{''.join(table[k])}")
    rows.append(f"  {'':>{margin}} {corner}{line * x.size}")
    rows.append(f"  {'':>{margin}}  {_ends(ends[0], x.size)}  {names[0]}")
    return "\n".join([*rows, _legend(view, terminal)])


def _majority(view: PlotData, cells: Index, count: int) -> list[str | None]:
    """The class of most points in each cell; among equals the first of open, above, below."""
    masks = {name: mask for name, mask, _ in view.classes()}
    names = [name for name in ("open", "above", "below") if name in masks]
    counts = np.stack([np.bincount(cells[masks[name]], minlength=count) for name in names])
    return [names[k] if there else None for k, there in zip(counts.argmax(axis=0), counts.sum(axis=0) > 0, strict=True)]


def _marks(view: PlotData) -> list[tuple[str, Array]]:
    columns = view.domain.columns
    marks = [("measured", at) for at in view.places]
    marks += [("pending", np.array([point[name] for name in columns])) for point in view.pending]
    if not view.goal.level_set and len(view.places):
        marks.append(("best", np.array([view.result.best.point[name] for name in columns])))
    return marks


def _ends(ends: list[str], size: int) -> str:
    """The two ends of an axis, as far apart."""
    return f"{ends[0]}{ends[1]:>{max(size - len(ends[0]), len(ends[1]) + 1)}}"


# -- one axis ------------------------------------------------------------------------------------------------------


def _curve(view: PlotData, terminal: TerminalStyle) -> str:
    points, r, pick = view.domain.points[:, 0], view.result, 0 if terminal.unicode else 1
    shown = [r.lower, r.upper, view.values[np.isfinite(view.values)]]
    if view.threshold is not None:
        shown.append(np.array([view.threshold]))
    low, high = float(min(v.min() for v in shown if len(v))), float(max(v.max() for v in shown if len(v)))
    margin = max(len(format_number(v)) for v in (low, high, view.threshold or low))
    x = Axis.ranks(np.unique(points), min(ACROSS, terminal.width - margin - 5), 4)
    cells = x.cell(points)

    def row(y: float) -> int:
        return int(np.clip((y - low) / (high - low) * DOWN if high > low else 0, 0, DOWN - 1))

    band, mid, dash = "░:"[pick], "━="[pick], "╌-"[pick]
    table = np.full((DOWN, x.cells), " ", dtype=object)
    for k in range(x.cells):
        here = cells == k
        bottom, top = row(float(r.lower[here].min())), row(float(r.upper[here].max()))
        table[bottom : top + 1, k] = terminal.paint(band, "faint")
    if view.threshold is not None:
        table[row(view.threshold)] = terminal.paint(dash, "above")
    for k in range(x.cells):
        table[row(float(r.mean[cells == k].mean())), k] = terminal.paint(mid, "below")
    table = table.repeat(x.repeat, axis=1)
    letters = _letters(view, terminal)
    foot = [letters[kind] for kind in _majority(view, cells, x.cells) for _ in range(x.repeat)]
    for at, y in zip(view.places[:, 0], view.values, strict=True):
        if np.isfinite(y):
            table[row(float(y)), x.at(at)] = terminal.paint(MARKS["measured"][pick], "strong")
    for point in view.pending:
        foot[x.at(point[view.domain.columns[0]])] = terminal.paint(MARKS["pending"][pick], "pending")
    labels = {DOWN - 1: format_number(high), 0: format_number(low)}
    if view.threshold is not None:
        labels[row(view.threshold)] = format_number(view.threshold)
    lines = [f"  {labels.get(k, ''):>{margin}} {'│|'[pick]}{''.join(table[k])}" for k in range(DOWN - 1, -1, -1)]
    lines.append(f"  {'':>{margin}}  {''.join(foot)}")
    ends = [format_number(float(v)) for v in (points.min(), points.max())]
    lines.append(f"  {'':>{margin}}  {_ends(ends, x.size)}  {terminal.plain(column_label(view.domain.columns[0]))}")
    lines.append(f"  {mid} mean   {band} bounds" + (f"   {dash} threshold" if view.threshold is not None else ""))
    return "\n".join([*lines, _legend(view, terminal)])


# -- more columns --------------------------------------------------------------------------------------------------


def _columns(view: PlotData, terminal: TerminalStyle) -> str:
    """For each column, along its range, the share of the points of each class that matters."""
    wanted = [(name, mask) for name, mask, _ in view.classes() if view.goal.level_set or name == "open"]
    wanted = [(name, mask) for name, mask in wanted if name != "below" or not view.goal.level_set]
    labels = [terminal.plain(column_label(column)) for column in view.domain.columns]
    heads = {"above": "above", "open": "open (M)"}
    size = max(8, min(STRIP, (terminal.width - max(map(len, labels)) - 26) // len(wanted) - 2))
    ends = [[format_number(float(v)) for v in bounds] for bounds in view.domain.bounds]
    left, right = (max(len(end[k]) for end in ends) for k in (0, 1))
    wide = max(map(len, labels))
    lines = [f"  {'':{wide}}  {'':{left + right + 4}}  " + "  ".join(f"{heads[name]:{size}}" for name, _ in wanted)]
    for k, label in enumerate(labels):
        x = view.domain.points[:, k]
        cell = Axis.bins(x, size).cell(x)
        every = np.maximum(np.bincount(cell, minlength=size), 1)
        strips = []
        for name, mask in wanted:
            share = np.bincount(cell[mask], minlength=size) / every
            strips.append(terminal.paint(_heights(share, np.bincount(cell, minlength=size) > 0, terminal), name))
        low, high = ends[k]
        to = "…" if terminal.unicode else "to"
        lines.append(f"  {label:{wide}}  {low:>{left}} {to:^2} {high:<{right}}  " + "  ".join(strips))
    lines.append(f"  the higher the bar, the larger the share of the points; {len(view.places)} measured")
    if not view.goal.level_set and len(view.places):
        best = view.result.best
        place = ", ".join(f"{name} {value:.4g}" for name, value in best.point.items())
        lines.append(terminal.plain(f"  best so far: {place}, value {best.mean:.4g} ± {best.sd:.2g}"))
    return "\n".join(lines)


def _heights(share: Array, there: NDArray[np.bool_], terminal: TerminalStyle) -> str:
    steps = HEIGHTS[not terminal.unicode]
    level = np.ceil(share * len(steps)).astype(int)
    return "".join(" " if n == 0 or not seen else steps[n - 1] for n, seen in zip(level, there, strict=True))


# -- both ----------------------------------------------------------------------------------------------------------


def _letters(view: PlotData, terminal: TerminalStyle) -> dict[str | None, str]:
    palette = LEVEL_SET if view.goal.level_set else OPTIMUM
    painted: dict[str | None, str] = {None: " "}
    for name, letters in palette.items():
        kind = "above" if not view.goal.level_set and name == "open" else name
        kind = "open" if not view.goal.level_set and name != "open" else kind
        painted[name] = terminal.paint(letters[not terminal.unicode], kind)
    return painted


def _legend(view: PlotData, terminal: TerminalStyle) -> str:
    letters = _letters(view, terminal)
    parts = [f"{letters[name]} {text}" for name, _, text in view.classes()]
    pick = 0 if terminal.unicode else 1
    if len(view.places):
        parts.append(f"{MARKS['measured'][pick]} measured")
    if view.pending:
        parts.append(f"{terminal.paint(MARKS['pending'][pick], 'pending')} suggested")
    if not view.goal.level_set and len(view.places) and len(view.domain.columns) == 2:
        parts.append(f"{MARKS['best'][pick]} best")
    return "  " + "   ".join(parts)
