"""Figure of the importance of the parameters: Sobol indices of the estimate, and length-scales."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from truvar.report import style
from truvar.report._slices import Importance, column_importance
from truvar.report.formatting import column_label

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from truvar.study.base import BaseStudy

WIDTH = 6.8  # inches
BAR = 0.34  # inches, of one parameter
MARGIN = 2.0  # inches, above and below the bars
MAX_BARS = 25  # parameters that are shown
TOTAL = "#A9C6DC"  # share of a parameter together with others
FIRST = "#1F5F8B"  # share of a parameter alone


def plot_importance(study: BaseStudy, dpi: float = 110) -> Figure:
    """Return a matplotlib Figure of the importance of each parameter, the most important first.

    Args:
        study: The study, which is not changed.
        dpi: Dots per inch.
    """
    importance = column_importance(study)
    count = min(len(importance.columns), MAX_BARS)
    figure: Figure = style.new_figure(WIDTH, BAR * count + MARGIN, dpi)
    draw_importance(figure.subplots(), importance)
    figure.suptitle(
        f"{study.name or 'study'}: importance of the parameters", x=0.01, ha="left", fontsize=11
    )
    note = style.wrapped(importance.explain(), figure, share=1.15)
    figure.supxlabel(note, x=0.01, ha="left", fontsize=8)
    return figure


def draw_importance(ax: Any, importance: Importance) -> None:
    """Draw a bar for each parameter, with its length-scale beside it.

    Args:
        ax: Axes to draw into.
        importance: The importance of the columns.
    """
    order = importance.order[:MAX_BARS]
    rows = np.arange(len(order))
    total = 100 * importance.indices.total[order]
    first = np.minimum(100 * importance.indices.first[order], total)
    ax.barh(rows, total, color=TOTAL, height=0.62, label="together with others")
    ax.barh(rows, first, color=FIRST, height=0.62, label="alone")
    for row, column in enumerate(order):
        text = f"{total[row]:.0f} %"
        if importance.lengthscales is not None:
            text += f"   (length-scale {_share(float(importance.lengthscales[column]))})"
        ax.annotate(
            text, (total[row], row), (5, 0), textcoords="offset points", va="center", fontsize=8
        )
    ax.set_yticks(rows, [column_label(importance.columns[column]) for column in order])
    ax.invert_yaxis()
    right = max(1.0, float(total.max(initial=0.0))) * 1.75
    ax.set_xlim(0, right)
    ticks = [
        tick for tick in ax.get_xticks() if 0 <= tick <= min(right, 100)
    ]  # the space beyond is for the texts
    ax.set_xticks(ticks)
    ax.xaxis.set_major_formatter("{x:.0f} %")
    ax.tick_params(labelsize=9)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    if len(order) > 1:  # above the bars, where no text is
        ax.legend(
            frameon=False,
            fontsize=8,
            loc="lower left",
            bbox_to_anchor=(0.0, 1.0),
            ncols=2,
            borderaxespad=0.2,
        )


def _share(lengthscale: float) -> str:
    """Return a length-scale that is given as a share of the range of its column."""
    if lengthscale > 10:
        return "over ten times the range"
    return f"{lengthscale:.2g} of the range"
