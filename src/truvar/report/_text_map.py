"""A small picture of a study in letters: a map in the plane, a curve on one axis, one line per column beyond.

Written by hand: plotting libraries for terminals draw no map with classes, marks and legend in
plain ASCII too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from truvar._typing import Array, Index, Mask
from truvar.report import style
from truvar.report._plot_2d import grid_of
from truvar.report._plot_data import INTERVAL_LABEL, PlotData
from truvar.report.formatting import column_ends, column_label, format_number, format_place
from truvar.report.terminal import TerminalStyle

if TYPE_CHECKING:
    from truvar.study.result import Result
    from truvar.study.study import Study

MAX_WIDTH = 64  # letters of a map
MAX_HEIGHT = 16  # lines of a map
MIN_BINS = 9  # letters of a column where there are more than two columns
MAX_BINS = 24

# Letters as (Unicode, ASCII). The side of a threshold that is asked for is dense, the other one
# shaded, undecided a dot; where an optimum is sought, points that can be it are dense and points
# ruled out are dots.
BAND_LETTERS = "123456789abcdefghijklmnopqrstuvwxyz"  # from the lowest band
LEVEL_SET = {"above": "█#", "undecided": "·.", "below": "░-"}
OPTIMUM = {"above": "·.", "undecided": "▒#", "below": "·."}
MARKS = {"measured": "●o", "pending": "◆?", "best": "★*"}
BARS = ("▁▂▃▄▅▆▇█", ".:-=+*#@")  # from low to high


def text_map(study: Study, terminal: TerminalStyle, result: Result | None = None) -> str:
    """Return the picture of a study and its legend.

    Args:
        study: The study, which is not changed.
        terminal: Width, colours and letters to use.
        result: Its present result, if the caller has it.
    """
    data = PlotData.from_study(study, result=result)
    match len(data.domain.columns):
        case 1:
            return _curve(data, terminal)
        case 2:
            return _plane(data, terminal)
        case _:
            return _columns(data, terminal)


# -- two columns: a map
# ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Axis:
    """Map of the coordinates of a column to letters.

    Attributes:
        cells: Number of cells along the axis.
        repeat: Letters per cell.
        cell_of: Function from coordinates to cells.
    """

    cells: int
    repeat: int
    cell_of: Callable[[Array], Index]

    @property
    def size(self) -> int:
        """Letters along the axis."""
        return self.cells * self.repeat

    def letter_of(self, coordinate: float) -> int:
        """Return the letter in the middle of the cell of a coordinate."""
        return int(self.cell_of(np.array([coordinate]))[0]) * self.repeat + self.repeat // 2

    @staticmethod
    def by_rank(axis: Array, max_letters: int, max_repeat: int) -> Axis:
        """Return cells of equally many values of the axis, whatever their spacing."""
        values_per_cell = int(np.ceil(len(axis) / max_letters))
        cells = int(np.ceil(len(axis) / values_per_cell))

        def cell_of(x: Array) -> Index:
            rank = np.rint(np.interp(x, axis, np.arange(len(axis)))).astype(np.intp)
            return rank // values_per_cell

        return Axis(cells, max(1, min(max_letters // cells, max_repeat)), cell_of)

    @staticmethod
    def by_bins(values: Array, size: int) -> Axis:
        """Return bins of equal width; on a logarithmic scale if the values spread over decades."""
        geometric = style.use_log_axis(values)
        smallest = float(values.min())

        def transform(x: Array) -> Array:
            return np.log(np.maximum(x, smallest)) if geometric else x

        low, high = transform(np.array([smallest, float(values.max())]))

        def cell_of(x: Array) -> Index:
            if high <= low:
                return np.zeros(len(x), dtype=np.intp)
            share = (transform(x) - low) / (high - low)
            return np.asarray(np.clip(share * size, 0, size - 1), dtype=np.intp)

        return Axis(size, 1, cell_of)


def _plane(data: PlotData, terminal: TerminalStyle) -> str:
    x_name, y_name = (terminal.plain(column_label(column)) for column in data.domain.columns)
    (x_low, x_high), (y_low, y_high) = (_plain_ends(data, k, terminal) for k in range(2))
    margin = max(len(y_low), len(y_high))
    points = data.domain.points
    x, y = _plane_axes(points, min(MAX_WIDTH, terminal.width - margin - 5))
    letters = _class_letters(data, terminal)
    classes = _majority(
        data, y.cell_of(points[:, 1]) * x.cells + x.cell_of(points[:, 0]), x.cells * y.cells
    )
    table = np.array([letters[name] for name in classes], dtype=object).reshape(y.cells, x.cells)
    table = table.repeat(y.repeat, axis=0).repeat(x.repeat, axis=1)
    for kind, point in _marked_points(data):
        table[y.letter_of(point[1]), x.letter_of(point[0])] = _mark(kind, terminal)
    side, corner, line = "│└─" if terminal.unicode else "|+-"
    labels = {0: y_low, y.size - 1: y_high}
    rows = [f"  {y_name}"]
    for k in range(y.size - 1, -1, -1):  # high values at the top
        rows.append(f"  {labels.get(k, ''):>{margin}} {side}{''.join(table[k])}")
    rows.append(f"  {'':>{margin}} {corner}{line * x.size}")
    rows.append(f"  {'':>{margin}}  {_axis_ends(x_low, x_high, x.size)}  {x_name}")
    return "\n".join([*rows, _legend(data, terminal)])


def _plane_axes(points: Array, width: int) -> tuple[Axis, Axis]:
    """Return the axes of a map: a cell for each point of a grid if they fit, else bins."""
    grid = grid_of(points)
    if grid is not None:
        return Axis.by_rank(grid[0], width, 4), Axis.by_rank(grid[1], MAX_HEIGHT, 2)
    height = int(np.clip(np.sqrt(len(points) / 4), 4, MAX_HEIGHT))
    return Axis.by_bins(points[:, 0], min(width, 4 * height)), Axis.by_bins(points[:, 1], height)


def _majority(data: PlotData, cells: Index, count: int) -> list[str | None]:
    """Return the class of most points in each cell, None for an empty one; ties go to undecided, then the first."""
    masks = {name: mask for name, mask, _ in data.classes()}
    names: list[str] = sorted(masks, key=lambda name: name != "undecided")
    counts = np.stack([np.bincount(cells[masks[name]], minlength=count) for name in names])
    occupied = counts.sum(axis=0) > 0
    return [
        names[k] if filled else None
        for k, filled in zip(counts.argmax(axis=0), occupied, strict=True)
    ]


def _marked_points(data: PlotData) -> list[tuple[str, Array]]:
    marks = [("measured", point) for point in data.measured]
    marks += [("pending", data.coordinates(point)) for point in data.pending]
    if data.shows_best:
        marks.append(("best", data.best_point))
    return marks


def _plain_ends(data: PlotData, k: int, terminal: TerminalStyle) -> tuple[str, str]:
    """Return the values at the ends of a column, as the terminal can show them."""
    low, high = column_ends(data.domain, k)
    return terminal.plain(low), terminal.plain(high)


def _axis_ends(low: str, high: str, size: int) -> str:
    """Return the labels of the two ends of an axis, `size` letters apart if they fit."""
    return f"{low}{high:>{max(size - len(low), len(high) + 1)}}"


# -- one column: a curve
# -----------------------------------------------------------------------------------------------


def _curve(data: PlotData, terminal: TerminalStyle) -> str:
    (column,) = data.domain.columns
    points = data.domain.points[:, 0]
    result = data.result
    lower = result.statements.lower
    upper = result.statements.upper
    shown = np.concatenate([lower, upper, result.mean, data.values])
    shown = np.append(shown, data.thresholds)
    shown = shown[np.isfinite(shown)]
    low = float(shown.min())
    high = float(shown.max())

    def row_of(value: float) -> int:
        share = (np.clip(value, low, high) - low) / (high - low) if high > low else 0.0
        return min(int(share * MAX_HEIGHT), MAX_HEIGHT - 1)

    labels = {MAX_HEIGHT - 1: format_number(high), 0: format_number(low)}
    for threshold in data.thresholds:
        labels[row_of(threshold)] = format_number(threshold)
    margin = max(
        len(label) for label in (format_number(low), format_number(high), *labels.values())
    )
    x = Axis.by_rank(np.unique(points), min(MAX_WIDTH, terminal.width - margin - 5), 4)
    cells = x.cell_of(points)
    side, band, mean, dash = "│░━╌" if terminal.unicode else "|:=-"

    table = np.full((MAX_HEIGHT, x.cells), " ", dtype=object)
    for k in range(x.cells):
        inside = cells == k
        bottom = row_of(float(lower[inside].min()))
        top = row_of(float(upper[inside].max()))
        table[bottom : top + 1, k] = terminal.paint(band, "faint")
    for threshold in data.thresholds:
        table[row_of(threshold)] = terminal.paint(dash, "above")
    for k in range(x.cells):
        table[row_of(float(result.mean[cells == k].mean())), k] = terminal.paint(mean, "below")
    table = table.repeat(x.repeat, axis=1)
    for point, value in zip(data.measured[:, 0], data.values, strict=True):
        if np.isfinite(value):
            table[row_of(float(value)), x.letter_of(point)] = _mark("measured", terminal)

    letters = _class_letters(data, terminal)
    strip = [letters[name] for name in _majority(data, cells, x.cells) for _ in range(x.repeat)]
    for point in data.pending:
        strip[x.letter_of(float(data.coordinates(point)[0]))] = _mark("pending", terminal)

    lines = [
        f"  {labels.get(k, ''):>{margin}} {side}{''.join(table[k])}"
        for k in range(MAX_HEIGHT - 1, -1, -1)
    ]
    lines.append(f"  {'':>{margin}}  {''.join(strip)}")
    ends = _axis_ends(*_plain_ends(data, 0, terminal), x.size)
    lines.append(f"  {'':>{margin}}  {ends}  {terminal.plain(column_label(column))}")
    key = f"  {mean} mean   {band} {INTERVAL_LABEL}"
    lines.append(f"{key}   {dash} threshold" if data.thresholds else key)
    return "\n".join([*lines, _legend(data, terminal)])


# -- three or more columns: a bar chart of each
# ------------------------------------------------------------------------


def _columns(data: PlotData, terminal: TerminalStyle) -> str:
    """Draw, along the range of each column, the share of the points asked for and undecided."""
    keys = data.view.palette_keys
    headings = data.view.headings
    headings |= {name: name for name in data.classification.band_names[1:]}
    masks = [(name, mask) for name, mask, _ in data.classes() if name in headings]
    labels = [terminal.plain(column_label(column)) for column in data.domain.columns]
    label_width = max(map(len, labels))
    size = max(MIN_BINS, min(MAX_BINS, (terminal.width - label_width - 26) // len(masks) - 2))
    ends = [_plain_ends(data, k, terminal) for k in range(len(labels))]
    left = max(len(low) for low, _ in ends)
    right = max(len(high) for _, high in ends)
    lines = [
        f"  {'':{label_width}}  {'':{left + right + 4}}  "
        + "  ".join(f"{headings[name]:{size}}" for name, _ in masks)
    ]
    dots = "…" if terminal.unicode else "to"
    for k, label in enumerate(labels):
        values = data.domain.points[:, k]
        cells = Axis.by_bins(values, size).cell_of(values)
        total = np.bincount(cells, minlength=size)
        strips = []
        for name, mask in masks:
            share = np.bincount(cells[mask], minlength=size) / np.maximum(total, 1)
            colour = keys.get(name, name)
            strips.append(terminal.paint(_bars(share, total > 0, terminal), colour))
        low, high = ends[k]
        lines.append(
            f"  {label:{label_width}}  {low:>{left}} {dots:^2} {high:<{right}}  "
            + "  ".join(strips)
        )
    lines.append(
        f"  bar height: share of the points in that part of the range ({data.confidence_note})"
    )
    lines.append(f"  {len(data.measured)} measured")
    if data.shows_best:
        best = data.result.best
        text = (
            f"recommended: {format_place(best, data.domain)}, value {best.mean:.4g} ± {best.sd:.2g}"
        )
        lines.append(f"  {terminal.plain(text)}")
    return "\n".join(lines)


def _bars(share: Array, occupied: Mask, terminal: TerminalStyle) -> str:
    steps = BARS[0] if terminal.unicode else BARS[1]
    heights = np.ceil(share * len(steps)).astype(int)
    return "".join(
        steps[n - 1] if n > 0 and filled else " "
        for n, filled in zip(heights, occupied, strict=True)
    )


# -- letters and legend
# ------------------------------------------------------------------------------------------------


def _class_letters(data: PlotData, terminal: TerminalStyle) -> dict[str | None, str]:
    """Return the letter of each class in its colour; an empty cell is a space."""
    letters: dict[str | None, str] = {None: " "}
    for k, band in enumerate(data.classification.band_names):
        letters[band] = terminal.paint(BAND_LETTERS[k % len(BAND_LETTERS)], "above")
    for name, (pair, colour) in data.view.letters(LEVEL_SET, OPTIMUM).items():
        letters[name] = terminal.paint(terminal.letter(pair), colour)
    return letters


def _mark(kind: str, terminal: TerminalStyle) -> str:
    return terminal.paint(
        terminal.letter(MARKS[kind]), "pending" if kind == "pending" else "strong"
    )


def _legend(data: PlotData, terminal: TerminalStyle) -> str:
    letters = _class_letters(data, terminal)
    classes = [f"{letters[name]} {label}" for name, _, label in data.classes()]
    note = [f"({data.confidence_note})"]
    columns = sum(len(f"   x {label}") for _, _, label in data.classes()) + len(note[0]) + 2
    if not terminal.is_terminal or columns <= terminal.width:  # else on its own line
        classes += note
        note = []
    marks = []
    if len(data.measured):
        marks.append(f"{terminal.letter(MARKS['measured'])} measured")
    if data.pending:
        marks.append(f"{_mark('pending', terminal)} suggested")
    if data.shows_best and len(data.domain.columns) == 2:
        marks.append(f"{terminal.letter(MARKS['best'])} recommended")
    return "\n".join("  " + "   ".join(parts) for parts in (classes, note, marks) if parts)
