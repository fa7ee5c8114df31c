"""Scores against cost as a picture: a line for every policy, with its 95 % interval."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from truvar.report.style import import_matplotlib

if TYPE_CHECKING:
    import pandas as pd

    from truvar.backtest import Backtest

# Okabe and Ito's colours, which the colour-blind can tell apart; more policies than colours change the dashes.
COLOURS = ("#000000", "#D55E00", "#56B4E9", "#009E73", "#E69F00", "#0072B2", "#CC79A7")
DASHES = ("-", "--", ":", "-.")
POINTS = 200  # along the cost axis


def new_figure(width: float = 7.5, height: float = 4.5) -> Any:
    """An empty Figure to draw on."""
    figure = import_matplotlib("figure").Figure(figsize=(width, height), layout="constrained")
    import_matplotlib("backends.backend_agg").FigureCanvasAgg(figure)
    return figure


def line_style(number: int, name: str = "") -> dict[str, Any]:
    """Colour and dashes of the policy with that number; one divided by cost is dashed."""
    dash = "--" if name.endswith("/cost") else DASHES[number // len(COLOURS) % len(DASHES)]
    return {"color": COLOURS[number % len(COLOURS)], "linestyle": dash}


def line_styles(policies: list[str]) -> dict[str, dict[str, Any]]:
    """By policy: a rule and the same rule divided by cost have one colour."""
    rules = list(dict.fromkeys(name.removesuffix("/cost") for name in policies))
    return {name: line_style(rules.index(name.removesuffix("/cost")), name) for name in policies}


def plot_backtest(result: Backtest, title: str = "") -> Any:
    """A matplotlib Figure of the mean score against the cost spent."""
    figure = new_figure()
    axes = figure.add_subplot()
    costs = np.linspace(0, result.budget, POINTS + 1)[1:]
    scores, styles = result.scores(costs), line_styles(result.policies)
    for policy, values in scores.items():
        count = (~np.isnan(values)).sum(axis=0)
        some = count > 0
        mean = np.nanmean(values[:, some], axis=0)
        spread = np.nanstd(values[:, some], axis=0) * np.sqrt(count[some] / np.maximum(count[some] - 1, 1))
        half = 1.96 * spread / np.sqrt(count[some])
        axes.plot(costs[some], mean, label=policy, **styles[policy])
        colour = styles[policy]["color"]
        axes.fill_between(costs[some], mean - half, mean + half, color=colour, alpha=0.15, linewidth=0)
    if result.measure == "regret":
        axes.set_yscale("log")
    else:
        axes.set_ylim(0, 1.02)
    axes.set_xlim(0, result.budget)
    finish_axes(axes, title, "cost spent", result.measure)
    return figure


def plot_curves(
    frame: pd.DataFrame, column: str, title: str, *, xlabel: str, ylabel: str, log: bool = False, band: bool = True
) -> Any:
    """A Figure of one column of `truvar.paper.experiment.curves` against what is spent."""
    figure = new_figure()
    draw_curves(figure.add_subplot(), frame, column, title, xlabel=xlabel, ylabel=ylabel, log=log, band=band)
    return figure


def draw_curves(
    axes: Any, frame: pd.DataFrame, column: str, title: str, *, xlabel: str, ylabel: str, log: bool, band: bool
) -> None:
    """The same, on axes that are there."""
    styles = line_styles(list(dict.fromkeys(frame["policy"])))
    for policy, style in styles.items():
        curve = frame[frame["policy"] == policy]
        axes.plot(curve["spent"], curve[column], label=policy, **style)
        if band:
            axes.fill_between(
                curve["spent"], curve["low"], curve["high"], color=style["color"], alpha=0.13, linewidth=0
            )
    if log:
        axes.set_yscale("log")
    axes.set_xlim(0, float(frame["spent"].max()))
    finish_axes(axes, title, xlabel, ylabel)


def finish_axes(axes: Any, title: str, xlabel: str, ylabel: str) -> None:
    """Title, labels, legend, and no frame above and to the right."""
    axes.set_title(title, loc="left")
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
