"""Figures of a backtest: the score of each policy against the cost spent, with its 95 % interval."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from truvar.report.style import new_figure

if TYPE_CHECKING:
    import pandas as pd

    from truvar.backtest import Backtest

# The palette of Okabe and Ito, which stays distinct under colour blindness; beyond its length the
# dashes change.
COLOURS = ("#000000", "#D55E00", "#56B4E9", "#009E73", "#E69F00", "#0072B2", "#CC79A7")
_DASHES = ("-", "--", ":", "-.")
_POINTS = 200  # along the cost axis
_WIDTH = 7.5  # inches
_HEIGHT = 4.5  # inches
NORMAL_95 = 1.96  # half width of a 95 % interval, in standard errors
_PER_COST = "/cost"  # suffix of a policy whose score is divided by the cost


def _line_styles(policies: list[str]) -> dict[str, dict[str, Any]]:
    """Return colour and dashes by policy; a policy and its variant divided by cost share a colour."""
    names = list(dict.fromkeys(policy.removesuffix(_PER_COST) for policy in policies))
    styles = {}
    for policy in policies:
        number = names.index(policy.removesuffix(_PER_COST))
        dashes = _DASHES[number // len(COLOURS) % len(_DASHES)]
        if policy.endswith(_PER_COST):
            dashes = "--"
        styles[policy] = {"color": COLOURS[number % len(COLOURS)], "linestyle": dashes}
    return styles


def plot_backtest(result: Backtest, title: str = "") -> Any:
    """Return a matplotlib Figure of the mean score of each policy against the cost spent.

    Args:
        result: The backtest.
        title: Title of the figure.
    """
    figure = new_figure(_WIDTH, _HEIGHT)
    axes = figure.add_subplot()
    costs = np.linspace(0, result.budget, _POINTS + 1)[1:]
    styles = _line_styles(result.policies)
    for policy, values in result.scores(costs).items():
        count = (~np.isnan(values)).sum(axis=0)
        known = count > 0
        count = count[known]
        mean = np.nanmean(values[:, known], axis=0)
        deviation = np.nanstd(values[:, known], axis=0) * np.sqrt(count / np.maximum(count - 1, 1))
        half_width = NORMAL_95 * deviation / np.sqrt(count)
        axes.plot(costs[known], mean, label=policy, **styles[policy])
        colour = styles[policy]["color"]
        axes.fill_between(
            costs[known],
            mean - half_width,
            mean + half_width,
            color=colour,
            alpha=0.15,
            linewidth=0,
        )
    if result.measure == "F1":
        axes.set_ylim(0, 1.02)
    else:
        axes.set_yscale("log")
    axes.set_xlim(0, result.budget)
    finish_axes(axes, title, "cost spent", result.measure)
    return figure


def plot_curves(
    frame: pd.DataFrame,
    column: str,
    title: str,
    *,
    xlabel: str,
    ylabel: str,
    log: bool = False,
    band: bool = True,
) -> Any:
    """Return a matplotlib Figure with `draw_curves` on one pair of axes; the arguments are the same."""
    figure = new_figure(_WIDTH, _HEIGHT)
    draw_curves(
        figure.add_subplot(), frame, column, title, xlabel=xlabel, ylabel=ylabel, log=log, band=band
    )
    return figure


def draw_curves(
    axes: Any,
    frame: pd.DataFrame,
    column: str,
    title: str,
    *,
    xlabel: str,
    ylabel: str,
    log: bool,
    band: bool,
) -> None:
    """Draw a column of `truvar.paper._curves.curves` against the cost spent, a line for each policy.

    Args:
        axes: Where to draw.
        frame: Columns policy, spent, low, high and `column`.
        column: The column to draw.
        title: Title of the axes.
        xlabel: Label of the cost axis.
        ylabel: Label of the other axis.
        log: Whether that axis is logarithmic.
        band: Whether to draw the interval from low to high.
    """
    for policy, line_style in _line_styles(list(dict.fromkeys(frame["policy"]))).items():
        curve = frame[frame["policy"] == policy]
        axes.plot(curve["spent"], curve[column], label=policy, **line_style)
        if band:
            colour = line_style["color"]
            axes.fill_between(
                curve["spent"], curve["low"], curve["high"], color=colour, alpha=0.13, linewidth=0
            )
    if log:
        axes.set_yscale("log")
    axes.set_xlim(0, float(frame["spent"].max()))
    finish_axes(axes, title, xlabel, ylabel)


def finish_axes(axes: Any, title: str, xlabel: str, ylabel: str) -> None:
    """Add title, labels and legend, and remove the frame above and to the right."""
    axes.set_title(title, loc="left")
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
