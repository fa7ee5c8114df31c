"""The figure of a study: classes and posterior on the domain, and epsilon and the classes against the cost.

Figures are made without pyplot, so they need no display and leave no global state; a notebook shows them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from truvar.report import style
from truvar.report.plot_1d import draw_curve
from truvar.report.plot_2d import draw_mean, draw_regions
from truvar.report.plot_data import PlotData
from truvar.report.plot_parallel import draw_parallel
from truvar.report.style import INK

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike

    from truvar.study.study import Study

WIDTH = 11.0  # inches
HEIGHT = 6.2  # inches
DPI = 110  # dots per inch
HISTORY_COLUMNS = {"above": "n_above", "undecided": "n_potential", "below": "n_below"}


def plot_study(study: Study, truth: ArrayLike | None = None) -> Figure:
    """Return a matplotlib Figure of the present state of a study.

    Args:
        study: The study, which is not changed.
        truth: True values on the domain, if they are known: their boundary or optimum is drawn too.

    Raises:
        MissingDependencyError: If matplotlib is not installed.
        InvalidArgumentError: If `truth` does not have one finite value per point.
    """
    figure: Figure = style.new_figure(WIDTH, HEIGHT, DPI)
    data = PlotData.from_study(study, truth)
    dimensions = len(data.domain.columns)
    lower = "lower" if dimensions == 2 else "upper"
    axes = figure.subplot_mosaic([["upper", "epsilon"], [lower, "classes"]], width_ratios=[3.1, 1])
    match dimensions:
        case 1:
            draw_curve(axes["upper"], data)
        case 2:
            draw_mean(axes["upper"], data)
            axes["upper"].set_xlabel("")  # the axes below have the label
            draw_regions(axes["lower"], data)
        case _:
            draw_parallel(axes["upper"], data)
    draw_epsilon(axes["epsilon"], data)
    draw_classes(axes["classes"], data)
    figure.suptitle(data.title, x=0.01, ha="left", fontsize=11)
    return figure


def draw_epsilon(ax: Any, data: PlotData) -> None:
    """Draw the accuracy epsilon against the cost spent."""
    history = data.history[np.isfinite(data.history["epsilon"].to_numpy(dtype=float))]
    ax.set_title("accuracy ε", loc="left", fontsize=9)
    if len(history) == 0:
        _write_no_measurements(ax)
        return
    epsilon = history["epsilon"].to_numpy(dtype=float)
    ax.step(_with_margin(history["spent"]), np.append(epsilon, epsilon[-1]), where="post", color=INK, lw=1.4)
    positive = epsilon[epsilon > 0]
    if len(positive) and positive.max() / positive.min() > 10:
        ticker = style.import_matplotlib("ticker")
        ax.set_yscale("log")
        ax.yaxis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0)))
        ax.yaxis.set_major_formatter("{x:g}")
        ax.yaxis.set_minor_formatter(ticker.NullFormatter())
    else:
        ax.set_ylim(bottom=0)
    _set_cost_axis(ax, data)


def draw_classes(ax: Any, data: PlotData) -> None:
    """Draw the share of the points in each class against the cost spent, in the colours of the map."""
    ax.set_title("share of the points", loc="left", fontsize=9)
    history = data.history
    if len(history) == 0:
        _write_no_measurements(ax)
        return
    names = [name for name, _, _ in data.classes()]
    shares = np.zeros((len(names), len(history) + 2))  # before the first measurement, after each, at the right margin
    for k, name in enumerate(names):
        shares[k, 0] = 100.0 if name == "undecided" else 0.0
        shares[k, 1:-1] = 100 * history[HISTORY_COLUMNS[name]] / len(data.domain)
        shares[k, -1] = shares[k, -2]
    spent = np.append(0.0, _with_margin(history["spent"]))
    ax.stackplot(spent, shares, colors=[data.colours[name] for name in names], step="post", lw=0)
    ax.set_ylim(0, 100)
    ax.yaxis.set_major_formatter("{x:.0f} %")
    _set_cost_axis(ax, data)
    ax.set_xlabel("cost spent")


def _set_cost_axis(ax: Any, data: PlotData) -> None:
    ax.set_xlim(0, _with_margin(data.history["spent"])[-1])
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    ax.tick_params(labelsize=8)


def _with_margin(spent: Any) -> Any:
    """Return the cost spent at each step, and a little more, so that the last step can be seen."""
    total = float(spent.iloc[-1])
    return np.append(spent.to_numpy(dtype=float), 1.03 * total if total > 0 else 1.0)


def _write_no_measurements(ax: Any) -> None:
    ax.text(0.5, 0.5, "no measurements yet", ha="center", va="center", color="#777777", transform=ax.transAxes)
    ax.set_xticks([])
    ax.set_yticks([])
