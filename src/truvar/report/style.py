"""How things look: colours that the colour-blind can tell apart, labels with units, scales, and the one place
that asks for matplotlib."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truvar.exceptions import import_optional

Array = NDArray[np.float64]

VALUES = "viridis"  # perceptually uniform
ORDER = "Greys"  # first measurement light, last dark
INK = "#222222"
PENDING = "#CC79A7"
# Orange against blue stays apart under every common colour blindness, and pale grey stands for "not known".
LEVEL_SET = {"above": "#E66100", "open": "#DEDEDE", "below": "#5D9BC9"}
OPTIMUM = {"above": "#D9D9D9", "open": "#E69F00", "below": "#D9D9D9"}

AS_WRITTEN = (
    "m", "km", "cm", "mm", "nm", "s", "ms", "min", "h", "days", "kg", "g", "mg", "K", "V", "mV", "A", "mA", "W", "kW",
    "Hz", "kHz", "MHz", "GHz", "Pa", "kPa", "MPa", "bar", "ppm", "psu", "eV",
)  # fmt: skip
REWRITTEN = {
    "um": "µm", "us": "µs", "C": "°C", "degC": "°C", "deg": "°", "pct": "%", "percent": "%", "m_s": "m/s",
    "ugL": "µg/L", "mgL": "mg/L", "ug_m3": "µg/m³", "mg_m3": "mg/m³", "kg_m3": "kg/m³",
}  # fmt: skip
UNITS = {unit: unit for unit in AS_WRITTEN} | REWRITTEN


def label(column: str) -> str:
    """A column's name as an axis label: `depth_m` is "depth (m)"; a name of one part is no unit."""
    words = column.split("_")
    for length in (2, 1):  # mg_m3 before m3
        unit = UNITS.get("_".join(words[-length:]))
        if unit and len(words) > length:
            return f"{' '.join(words[:-length])} ({unit})"
    return " ".join(words)


def is_geometric(values: Array) -> bool:
    """Whether values spread over decades, so that a logarithmic axis shows them better."""
    distinct = np.unique(values)
    if len(distinct) < 3 or distinct[0] <= 0 or distinct[-1] / distinct[0] < 50:
        return False
    steps, ratios = np.diff(distinct), np.diff(np.log(distinct))
    return bool(np.std(ratios) / np.mean(ratios) < np.std(steps) / np.mean(steps))


def number(value: float) -> str:
    """A number for a label: four digits, but a whole number whole up to a million."""
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e6 else f"{value:.4g}"


@contextmanager
def plain_text() -> Iterator[None]:
    """Within it words are drawn as they are, dollar signs and all, and the same figure gives the same file."""
    with import_optional("matplotlib", "drawing", "plot").rc_context(
        {"text.parse_math": False, "svg.hashsalt": "truvar"}
    ):
        yield


def matplotlib(module: str) -> Any:
    """A module of matplotlib, or what to install."""
    return import_optional(f"matplotlib.{module}", "drawing", "plot")
