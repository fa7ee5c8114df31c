"""The figure of a study: where it stands on the domain, and how epsilon and the classes went with the cost.

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

WIDTH, HEIGHT = 11.0, 6.2  # inches
DPI = 110


def plot_study(study: Study, truth: ArrayLike | None = None) -> Figure:
    """A matplotlib Figure of where the study stands; `truth`: the true values on the domain, if known."""
    figure: Figure = style.import_matplotlib("figure").Figure(figsize=(WIDTH, HEIGHT), dpi=DPI, layout="constrained")
    style.import_matplotlib("backends.backend_agg").FigureCanvasAgg(figure)
    view = PlotData.from_study(study, truth)
    axes = figure.subplot_mosaic(
        [["upper", "epsilon"], ["lower" if len(view.domain.columns) == 2 else "upper", "classes"]],
        width_ratios=[3.1, 1],
    )
    match len(view.domain.columns):
        case 1:
            draw_curve(axes["upper"], view)
        case 2:
            draw_mean(axes["upper"], view)
            axes["upper"].set_xlabel("")  # the one below has it
            draw_regions(axes["lower"], view)
        case _:
            draw_parallel(axes["upper"], view)
    draw_epsilon(axes["epsilon"], view)
    draw_classes(axes["classes"], view)
    figure.suptitle(view.title, x=0.01, ha="left", fontsize=11)
    return figure


def draw_epsilon(ax: Any, view: PlotData) -> None:
    """How far from exact the answer can be, against what was spent."""
    history = view.history[np.isfinite(view.history["epsilon"].to_numpy(dtype=float))]
    ax.set_title("accuracy ε", loc="left", fontsize=9)
    if len(history) == 0:
        _nothing_yet(ax)
        return
    epsilon = history["epsilon"].to_numpy(dtype=float)
    ax.step(_to_the_edge(history["spent"]), np.append(epsilon, epsilon[-1]), where="post", color=INK, lw=1.4)
    positive = epsilon[epsilon > 0]
    if len(positive) and positive.max() / positive.min() > 10:
        ticker = style.import_matplotlib("ticker")
        ax.set_yscale("log")
        ax.yaxis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0)))
        ax.yaxis.set_major_formatter("{x:g}")
        ax.yaxis.set_minor_formatter(ticker.NullFormatter())
    else:
        ax.set_ylim(bottom=0)
    _cost_axis(ax, view)


def draw_classes(ax: Any, view: PlotData) -> None:
    """The share of the domain in each class, against what was spent, in the colours of the map."""
    ax.set_title("share of the points", loc="left", fontsize=9)
    history, n = view.history, len(view.domain)
    if len(history) == 0:
        _nothing_yet(ax)
        return
    column = {"above": "n_above", "open": "n_potential", "below": "n_below"}
    names = [name for name, _, _ in view.classes()]
    shares = np.zeros((len(names), len(history) + 2))  # before the first, after each, to the edge
    for k, name in enumerate(names):
        shares[k, 1:-1] = 100 * history[column[name]] / n
        shares[k, 0], shares[k, -1] = 100.0 * (name == "open"), shares[k, -2]
    spent = np.append(0.0, _to_the_edge(history["spent"]))
    ax.stackplot(spent, shares, colors=[view.colours[name] for name in names], step="post", lw=0)
    ax.set_ylim(0, 100)
    ax.yaxis.set_major_formatter("{x:.0f} %")
    _cost_axis(ax, view)
    ax.set_xlabel("cost spent")


def _cost_axis(ax: Any, view: PlotData) -> None:
    ax.set_xlim(0, _to_the_edge(view.history["spent"])[-1])
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    ax.tick_params(labelsize=8)


def _to_the_edge(spent: Any) -> Any:
    """What was spent at each step, and a little more, so that the last step can be seen."""
    total = float(spent.iloc[-1])
    return np.append(spent.to_numpy(dtype=float), 1.03 * total if total > 0 else 1.0)


def _nothing_yet(ax: Any) -> None:
    ax.text(0.5, 0.5, "nothing measured yet", ha="center", va="center", color="#777777", transform=ax.transAxes)
    ax.set_xticks([])
    ax.set_yticks([])
