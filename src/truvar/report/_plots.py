"""The figure of a study: classes and posterior on the domain, and what was measured against the cost.

Figures are made without pyplot, so they need no display and leave no global state; a notebook shows
them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from truvar._typing import Array
from truvar.domain.labels import place_in_words
from truvar.exceptions import InvalidArgumentError
from truvar.report import style
from truvar.report._plot_1d import draw_curve
from truvar.report._plot_2d import draw_mean, draw_regions
from truvar.report._plot_candidates import MapColumns, draw_candidates, map_columns, map_size
from truvar.report._plot_data import PlotData
from truvar.report._plot_slices import draw_slices, plot_contours
from truvar.report._slices import PosteriorSlices, chosen_columns
from truvar.report.coastlines import read_coastlines
from truvar.report.style import INK

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike

    from truvar.study.result import Result
    from truvar.study.study import Study

WIDTH = 11.0  # inches
HEIGHT = 6.2  # inches
MAP_WIDTH = 8.2  # inches, of a map alone
MAP_HEIGHT = 4.6  # inches, of a curve alone
DPI = 110  # dots per inch
MAX_SLICES = 6  # columns that the figure of three and more of them shows


def plot_study(
    study: Study, truth: ArrayLike | None = None, result: Result | None = None
) -> Figure:
    """Return a matplotlib Figure of the present state of a study.

    Args:
        study: The study, which is not changed.
        truth: True values on the domain, if they are known: their boundary or optimum is drawn too.
        result: Its present result, if the caller has it.

    Raises:
        MissingDependencyError: If matplotlib is not installed.
        InvalidArgumentError: If `truth` does not have one finite value per point.
    """
    figure: Figure = style.new_figure(WIDTH, HEIGHT, DPI)
    data = PlotData.from_study(study, truth, result)
    dimensions = len(data.domain.columns)
    candidates = map_columns(data.domain)
    if candidates is not None:
        _plot_candidates(figure, data, candidates)
        return figure
    if dimensions > 2:
        _plot_many_columns(figure, data)
        return figure
    lower = "lower" if dimensions == 2 else "upper"
    axes = figure.subplot_mosaic([["upper", "values"], [lower, "classes"]], width_ratios=[3.1, 1])
    if dimensions == 1:
        draw_curve(axes["upper"], data)
    else:
        draw_mean(axes["upper"], data)
        axes["upper"].set_xlabel("")  # the axes below have the label
        draw_regions(axes["lower"], data)
    draw_values(axes["values"], data)
    draw_classes(axes["classes"], data)
    figure.suptitle(data.title, x=0.01, ha="left", fontsize=11)
    return figure


def plot_map(
    study: Study,
    truth: ArrayLike | None = None,
    columns: Sequence[str] | None = None,
    coastlines: str | Path | None = None,
) -> Figure:
    """Return a matplotlib Figure of the posterior and the classes over the domain, without anything beside it.

    Args:
        study: The study, which is not changed.
        truth: True values on the domain, if they are known.
        columns: Two columns over which the candidates are drawn; default: longitude and latitude of
            a table that has further columns.
        coastlines: GeoJSON file with lines or polygons, drawn where the columns are degrees.

    Raises:
        InvalidArgumentError: If the file cannot be read, or the map is not over degrees.
    """
    lines = [] if coastlines is None else read_coastlines(coastlines)
    data = PlotData.from_study(study, truth)
    dimensions = len(data.domain.columns)
    chosen = map_columns(data.domain, columns)
    if lines and (chosen is None or not chosen.is_degrees):
        raise InvalidArgumentError(
            "coastlines need a map over longitude and latitude in degrees; leave them out, or name "
            "these columns"
        )
    if chosen is None and dimensions > 2:
        return plot_contours(study)
    if chosen is not None:
        candidates: Figure = style.new_figure(*map_size(data, chosen, WIDTH), DPI)
        candidates.set_layout_engine("compressed")  # no gaps between maps of a given aspect
        style.legend_below(candidates, draw_candidates(candidates, data, chosen, lines))
        candidates.suptitle(style.wrapped(data.title, candidates), x=0.01, ha="left", fontsize=10)
        return candidates
    figure: Figure = style.new_figure(MAP_WIDTH, HEIGHT if dimensions == 2 else MAP_HEIGHT, DPI)
    if dimensions == 1:
        draw_curve(figure.subplots(), data)
    else:
        upper, lower = figure.subplots(2, 1)
        draw_mean(upper, data)
        upper.set_xlabel("")  # the axes below have the label
        draw_regions(lower, data)
    figure.suptitle(style.wrapped(data.title, figure), x=0.01, ha="left", fontsize=10)
    return figure


def _plot_candidates(figure: Any, data: PlotData, columns: MapColumns) -> None:
    """Draw maps of the candidates, and what was measured."""
    # "compressed" would place the titles of a subfigure over that of the figure.
    left, right = figure.subfigures(1, 2, width_ratios=[2.8, 1])
    handles = draw_candidates(left, data, columns, max_rows=2)
    upper, lower = right.subplots(2, 1)
    draw_values(upper, data)
    draw_classes(lower, data)
    style.legend_below(figure, handles)
    figure.suptitle(style.wrapped(data.title, figure), x=0.01, ha="left", fontsize=10)


def _plot_many_columns(figure: Any, data: PlotData) -> None:
    """Draw slices along the most important columns through the best point, and what was measured."""
    slices = PosteriorSlices.through(data.study, data.result.best.point)
    chosen, note = chosen_columns(data.study, None, MAX_SLICES)
    left, right = figure.subfigures(1, 2, width_ratios=[2.8, 1])
    across = 2 if len(chosen) in (2, 4) else 3
    panels = left.subplots(-(-len(chosen) // across), across, squeeze=False, sharey=True)
    draw_slices(panels, data, slices, chosen)
    upper, lower = right.subplots(2, 1)
    draw_values(upper, data)
    draw_classes(lower, data)
    subtitle = f"slices through {data.best_name} {place_in_words(data.domain, slices.point)}"
    text = style.wrapped(f"{data.title}\n{f'{subtitle}; {note}' if note else subtitle}", figure)
    figure.suptitle(text, x=0.01, ha="left", fontsize=10)


def draw_values(ax: Any, data: PlotData) -> None:
    """Draw the measured values against the cost spent, with the best so far or the threshold."""
    ax.set_title(data.values_title, loc="left", fontsize=9)
    known = np.isfinite(data.values)
    if not known.any():
        _write_no_measurements(ax)
        return
    spent = data.spent[known]
    values = data.values[known]
    ax.plot(spent, values, ls="", marker="o", ms=3, color="#777777", label="measured")
    for threshold in data.thresholds:
        ax.axhline(threshold, color="#B2182B", lw=1, ls=":", label=data.threshold_text(threshold))
    if data.goal.seeks_optimum:
        sign = data.goal.sign
        best = sign * np.maximum.accumulate(sign * values)
        ax.step(
            _with_margin(spent),
            np.append(best, best[-1]),
            where="post",
            color=INK,
            lw=1.4,
            label="best so far",
        )
    _set_cost_axis(ax, data)
    ax.set_xlabel("cost spent", fontsize=8)


def draw_classes(ax: Any, data: PlotData) -> None:
    """Draw the share of the points in each class as bars, in the colours of the map."""
    ax.set_title("share of the points", loc="left", fontsize=9)
    classes = data.classes()[::-1]  # the first at the top
    shares = [100 * float(mask.mean()) for _, mask, _ in classes]
    colours = [data.colours[name] for name, _, _ in classes]
    rows = range(len(classes))
    ax.barh(rows, shares, color=colours, edgecolor="#888888", linewidth=0.5, height=0.62)
    for row, (_, _, label) in zip(rows, classes, strict=True):
        ax.annotate(
            label.rpartition(":")[0], (0, row), (3, 0), fontsize=8, va="center",
            textcoords="offset points", color=INK,
        )  # fmt: skip
    ax.set_yticks([])
    ax.set_xlim(0, 100)
    ax.xaxis.set_major_formatter("{x:.0f} %")
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    ax.tick_params(labelsize=8)


def draw_undecided(ax: Any, data: PlotData) -> None:
    """Draw the share of the points that the paper's bounds leave undecided against the cost spent."""
    ax.set_title("undecided by the paper's bounds", loc="left", fontsize=9)
    history = data.history
    if len(history) == 0:
        _write_no_measurements(ax)
        return
    shares = 100 * history["n_potential"].to_numpy(dtype=float) / len(data.domain)
    shares = np.concatenate(
        [[100.0], shares, shares[-1:]]
    )  # before the first measurement, after each, at the margin
    spent = np.append(0.0, _with_margin(history["spent"].to_numpy(dtype=float)))
    ax.fill_between(spent, shares, step="post", color="#44779A", alpha=0.22, lw=0)
    ax.step(spent, shares, where="post", color="#1F4E79", lw=1.4)
    ax.set_ylim(0, 102)
    ax.yaxis.set_major_formatter("{x:.0f} %")
    _set_cost_axis(ax, data)
    ax.set_xlabel("cost spent")


def _set_cost_axis(ax: Any, data: PlotData) -> None:
    ax.set_xlim(0, _with_margin(data.spent)[-1])
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    ax.tick_params(labelsize=8)


def _with_margin(spent: Array) -> Array:
    """Return the cost spent at each step, and a little more, so that the last step can be seen."""
    total = float(spent[-1])
    return np.append(spent, 1.03 * total if total > 0 else 1.0)


def _write_no_measurements(ax: Any) -> None:
    ax.text(
        0.5,
        0.5,
        "no measurements yet",
        ha="center",
        va="center",
        color="#777777",
        transform=ax.transAxes,
    )
    ax.set_xticks([])
    ax.set_yticks([])
