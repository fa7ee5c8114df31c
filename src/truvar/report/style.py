"""Colours and axis scales of all figures, and the import of matplotlib."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from truvar._typing import Array
from truvar.domain.scales import is_geometric
from truvar.exceptions import import_optional

MIN_LOG_RATIO = 50.0  # quotient of largest and smallest value from which an axis may be logarithmic

VALUES = "viridis"  # colour map of the posterior mean; perceptually uniform
ORDER = "Greys"  # colour map of the measurements; the first is light, the last dark
INK = "#222222"  # lines and outlines
PENDING = "#CC79A7"  # suggestions that wait for a value
# Orange and blue differ under every common colour blindness; undecided points are pale grey.
LEVEL_SET = {"above": "#E66100", "undecided": "#DEDEDE", "below": "#5D9BC9"}
# Where an optimum is sought, the points that can still be it have a colour and the others are grey.
OPTIMUM = {"above": "#D9D9D9", "undecided": "#E69F00", "below": "#D9D9D9"}
PROBABILITY = ("#FBE6B8", "#E69F00", "#8A3B00")  # colours of the probability of being the optimum, from low to high


def band_colours(names: Sequence[str]) -> dict[str, str]:
    """Return the colour of each band, from blue for the lowest over pale yellow to orange, and of undecided points."""
    ends = [(93, 155, 201), (255, 240, 190), (230, 97, 0)]  # red, green and blue
    colours = {"undecided": LEVEL_SET["undecided"]}
    for k, name in enumerate(names):
        position = 2.0 * k / max(len(names) - 1, 1)
        first = min(int(position), 1)
        share = position - first
        mixed = [round((1 - share) * a + share * b) for a, b in zip(ends[first], ends[first + 1], strict=True)]
        colours[name] = "#" + "".join(f"{part:02X}" for part in mixed)
    return colours


def use_log_axis(values: Array) -> bool:
    """Return whether values spread over decades, so that a logarithmic axis shows them better."""
    return is_geometric(values, min_ratio=MIN_LOG_RATIO)


@contextmanager
def literal_text() -> Iterator[None]:
    """Draw text literally, dollar signs included, and make equal figures give equal SVG files, inside the context."""
    settings = {"text.parse_math": False, "svg.hashsalt": "truvar"}
    with import_optional("matplotlib", "drawing", "plot").rc_context(settings):
        yield


def import_matplotlib(module: str) -> Any:
    """Import a module of matplotlib.

    Args:
        module: Its name below `matplotlib`, such as "figure".

    Raises:
        MissingDependencyError: If matplotlib is not installed.
    """
    return import_optional(f"matplotlib.{module}", "drawing", "plot")


def new_figure(width: float, height: float, dpi: float | None = None) -> Any:
    """Return an empty Figure of so many inches that is independent of pyplot: no display, no global state."""
    figure = import_matplotlib("figure").Figure(figsize=(width, height), dpi=dpi, layout="constrained")
    import_matplotlib("backends.backend_agg").FigureCanvasAgg(figure)
    return figure
