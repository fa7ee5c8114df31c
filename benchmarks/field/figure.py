"""Pictures of the comparison: a line for each problem, sorted by the ratio to its best peer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.field.score import Comparison, Overall

AHEAD = "#1b6ca8"
BEHIND = "#c0392b"
MUTED = "#666666"
ROW_HEIGHT = 0.27  # inches
WIDTH = 8.0  # inches


def draw(comparisons: Sequence[Comparison], total: Overall, label: str, path: Path) -> None:
    """Draw the ratios with their intervals over starts, and save the picture.

    Args:
        comparisons: One per problem.
        total: The same in one line.
        label: Label of the axis.
        path: Name of the file.
    """
    from matplotlib.figure import Figure

    ordered = sorted(comparisons, key=lambda c: -c.ratio)
    figure = Figure(figsize=(WIDTH, 1.3 + ROW_HEIGHT * len(ordered)), layout="constrained")
    axes = figure.subplots()
    axes.axvspan(total.low, total.high, color=AHEAD, alpha=0.12, lw=0)
    axes.axvline(total.mean, color=AHEAD, lw=1)
    axes.axvline(1.0, color="black", lw=1)
    for height, c in enumerate(ordered):
        colour = AHEAD if c.is_level else BEHIND
        if c.starts > 1:
            axes.plot([c.low, c.high], [height, height], color=colour, lw=1.5, alpha=0.6)
        axes.plot(c.ratio, height, "o" if c.kind == "level set" else "D", color=colour, ms=5)
        axes.annotate(
            c.best, (1.01, height), xycoords=("axes fraction", "data"), va="center", fontsize=8
        )
    axes.set_yticks(range(len(ordered)), [c.problem for c in ordered], fontsize=8)
    axes.set_ylim(-0.7, len(ordered) - 0.3)
    axes.set_xscale("log")
    _set_ticks(axes, ordered)
    axes.set_xlabel(label, fontsize=9)
    heading = str(total).replace(", worst", "\nworst")
    axes.set_title(heading, fontsize=9, loc="left", pad=18)  # above the heading of the peers
    axes.annotate(
        "best peer", (1.01, 1.0), xycoords="axes fraction", va="bottom", fontsize=8, color=MUTED
    )
    axes.grid(axis="x", color="#dddddd", lw=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)


def _set_ticks(axes: object, comparisons: Sequence[Comparison]) -> None:
    """Label a logarithmic axis with plain numbers."""
    from matplotlib.axes import Axes
    from matplotlib.ticker import NullLocator

    assert isinstance(axes, Axes)
    low = min(min(c.low, c.ratio) for c in comparisons)
    high = max(max(c.high, c.ratio) for c in comparisons)
    known = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0)
    shown = [tick for tick in known if low / 1.3 <= tick <= high * 1.3] or [1.0]
    axes.set_xticks(shown, [f"{tick:g}" for tick in shown])
    axes.xaxis.set_minor_locator(NullLocator())
