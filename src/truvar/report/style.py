"""How things look: colours that the colour-blind can tell apart, labels with units, scales, and the one place
that asks for matplotlib."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from truvar._typing import Array
from truvar.domain import scales
from truvar.exceptions import import_optional

MIN_LOG_RATIO = 50.0  # largest value over smallest value of a column from which its axis may be logarithmic

VALUES = "viridis"  # perceptually uniform
ORDER = "Greys"  # first measurement light, last dark
INK = "#222222"
PENDING = "#CC79A7"
# Orange against blue stays apart under every common colour blindness, and pale grey stands for "not known".
LEVEL_SET = {"above": "#E66100", "open": "#DEDEDE", "below": "#5D9BC9"}
OPTIMUM = {"above": "#D9D9D9", "open": "#E69F00", "below": "#D9D9D9"}


def use_log_axis(values: Array) -> bool:
    """Return whether values spread over decades, so that a logarithmic axis shows them better."""
    return scales.is_geometric(values, min_ratio=MIN_LOG_RATIO)


@contextmanager
def plain_text() -> Iterator[None]:
    """Within it words are drawn as they are, dollar signs and all, and the same figure gives the same file."""
    with import_optional("matplotlib", "drawing", "plot").rc_context(
        {"text.parse_math": False, "svg.hashsalt": "truvar"}
    ):
        yield


def import_matplotlib(module: str) -> Any:
    """A module of matplotlib, or what to install."""
    return import_optional(f"matplotlib.{module}", "drawing", "plot")
