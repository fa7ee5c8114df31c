"""A backtest as a picture: the mean score of every policy against cost, with its 95 % interval."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from truvar.report.style import matplotlib

if TYPE_CHECKING:
    from truvar.backtest import Backtest

# Okabe and Ito's colours, which the colour-blind can tell apart; more policies than colours change the dashes.
COLOURS = ("#000000", "#E69F00", "#56B4E9", "#009E73", "#D55E00", "#0072B2", "#CC79A7")
DASHES = ("-", "--", ":", "-.")
POINTS = 200  # along the cost axis


def plot_backtest(result: Backtest, title: str = "") -> Any:
    """A matplotlib Figure of the mean score against the cost spent."""
    figure = matplotlib("figure").Figure(figsize=(7.5, 4.5), layout="constrained")
    matplotlib("backends.backend_agg").FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    costs = np.linspace(0, result.budget, POINTS + 1)[1:]
    tables = [result.at(float(cost)) for cost in costs]
    for number, policy in enumerate(dict.fromkeys(result.curves["policy"])):
        scores = [table[policy].dropna() for table in tables]
        mean = np.array([column.mean() if len(column) else np.nan for column in scores])
        half = np.array(
            [1.96 * column.std(ddof=1) / np.sqrt(len(column)) if len(column) > 1 else 0 for column in scores]
        )
        colour, dash = COLOURS[number % len(COLOURS)], DASHES[number // len(COLOURS) % len(DASHES)]
        axes.plot(costs, mean, dash, color=colour, label=policy)
        axes.fill_between(costs, mean - half, mean + half, color=colour, alpha=0.15, linewidth=0)
    axes.set_xlabel("cost spent")
    axes.set_ylabel(result.measure)
    axes.set_xlim(0, result.budget)
    if result.measure == "regret":
        axes.set_yscale("log")
    else:
        axes.set_ylim(0, 1.02)
    axes.legend(frameon=False)
    axes.set_title(title, loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    return figure
