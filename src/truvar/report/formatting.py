"""Numbers and units as people read them, in every report, figure and terminal output.

`truvar.messages` formats points.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from truvar.domain.parameters import Log, Range
from truvar.inference.certificate_text import format_share
from truvar.messages import format_coordinate, format_coordinates
from truvar.tabular.labels import label_text

if TYPE_CHECKING:
    from truvar.domain.domain import Domain
    from truvar.domain.goals import Score
    from truvar.inference.statements import Estimate
    from truvar.study.result import Result
    from truvar.study.study import Study
    from truvar.study.suggestion import Suggestion

_SAME_AS_SYMBOL = (
    "m", "km", "cm", "mm", "nm", "s", "ms", "min", "h", "days", "kg", "g", "mg", "K", "V", "mV", "A", "mA", "W", "kW",
    "Hz", "kHz", "MHz", "GHz", "Pa", "kPa", "MPa", "bar", "ppm", "psu", "eV",
)  # fmt: skip
_REWRITTEN = {
    "um": "µm", "us": "µs", "C": "°C", "degC": "°C", "deg": "°", "pct": "%", "percent": "%", "m_s": "m/s",
    "ugL": "µg/L", "mgL": "mg/L", "ug_m3": "µg/m³", "mg_m3": "mg/m³", "kg_m3": "kg/m³",
}  # fmt: skip
ALL_DIGITS = 15  # that a float has: coordinates are rounded before they are written
_TICKS = 5  # of an axis whose values are not plain numbers
UNITS = {
    unit: unit for unit in _SAME_AS_SYMBOL
} | _REWRITTEN  # suffix of a column name: symbol of the unit


def column_label(column: str) -> str:
    """Return a column name as an axis label: `depth_m` becomes "depth (m)"; a name of one part has no unit."""
    words = column.split("_")
    for length in (2, 1):  # mg_m3 before m3
        unit = UNITS.get("_".join(words[-length:]))
        if unit and len(words) > length:
            return f"{' '.join(words[:-length])} ({unit})"
    return " ".join(words)


def describe_columns(domain: Domain) -> str:
    """Return every column of a domain with its values: "x from 0 to 1", "solver: lbfgs, saga"."""
    if not domain.is_plain:
        pairs = zip(domain.columns, domain.parameters, strict=True)
        return ", ".join(f"{name}: {parameter.describe()}" for name, parameter in pairs)
    pairs_of_ends = zip(domain.columns, domain.bounds, strict=True)
    return ", ".join(
        f"{name} from {format_coordinate(float(low))} to {format_coordinate(float(high))}"
        for name, (low, high) in pairs_of_ends
    )


def column_ends(domain: Domain, k: int) -> tuple[str, str]:
    """Return the first and the last value of a column as text."""
    if domain.is_plain:
        low, high = (format_number(float(end)) for end in domain.bounds[k])
        return low, high
    first, last = (domain.parameters[k].decode(float(end)) for end in domain.bounds[k])
    return format_coordinate(first, 4), format_coordinate(last, 4)


def column_ticks(domain: Domain, k: int) -> list[tuple[float, str]] | None:
    """Return coordinates and texts for an axis of a column; None for plain numbers, whose axis needs none."""
    parameter = domain.parameters[k]
    if isinstance(parameter, Range):
        return None
    low, high = (float(end) for end in domain.bounds[k])
    if parameter.categorical:
        coordinates = parameter.levels
    else:
        coordinates = np.unique(parameter.snap(np.linspace(low, high, _TICKS)))
        if isinstance(parameter, Log) and high - low >= 2:  # whole decades
            step = int(np.ceil((high - low) / _TICKS))
            coordinates = np.arange(np.ceil(low - 1e-9), high + 1e-9, step)
    return [(float(x), format_coordinate(parameter.decode(float(x)), 3)) for x in coordinates]


def format_number(value: float) -> str:
    """Return a number with four digits; from ten thousand up to a million all digits before the point are kept."""
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e6 else f"{value:.4g}"


def describe_cost(suggestion: Suggestion) -> str:
    """Return the cost of a suggestion: "12", or where costs are learned "expected 12 (9 to 17)"."""
    cost = format_number(suggestion.cost)
    if suggestion.cost_interval is None:
        return cost
    low, high = suggestion.cost_interval
    return f"expected {suggestion.cost:.3g} ({low:.3g} to {high:.3g})"


def cost_phrase(suggestion: Suggestion) -> str:
    """Return the cost within a sentence: "cost 12", or "expected cost 12 (9 to 17)"."""
    text = describe_cost(suggestion)
    if suggestion.cost_interval is None:
        return f"cost {text}"
    return text.replace("expected", "expected cost", 1)


def count_noun(count: int, noun: str) -> str:
    """Return a count and its noun in the singular or plural: "1 point", "2 points"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def format_estimate(estimate: Estimate, text_of: Callable[[float], str] = "{:.3g}".format) -> str:
    """Return mean and 95 % interval: "0.94 (0.90 to 0.97)".

    Args:
        estimate: The estimate.
        text_of: Formats one number.
    """
    return f"{text_of(estimate.mean)} ({text_of(estimate.low)} to {text_of(estimate.high)})"


def format_score(score: Score, estimate: Estimate, unit: str = "") -> str:
    """Return mean and 95 % interval of a score.

    That of a point that may not satisfy the constraints of an optimum has no upper end.

    Args:
        score: The score.
        estimate: Its mean and interval.
        unit: The unit of the values as it follows a number; a share has none.
    """
    if not isfinite(estimate.mean):
        return "unknown (no point is likely to satisfy all constraints)"
    if not isfinite(estimate.high):
        return f"{estimate.mean:.3g} (if it satisfies all constraints)"
    if score.is_share:
        return format_estimate(estimate, format_share)
    return f"{format_estimate(estimate, '{:.3g}'.format)}{unit}"


def describe_score(result: Result, unit: str = "") -> list[str]:
    """Return the expected score with its interval as the only entry; nothing before there is a model.

    Args:
        result: The result.
        unit: The unit of the values as it follows a number.
    """
    estimate = result.statements.score
    if estimate is None or not result.statements.is_known:
        return []
    score = result.goal.score
    return [f"expected {score.name} {format_score(score, estimate, unit)}"]


def format_true_score(score: Score, value: float) -> str:
    """Return a score against true values with three digits."""
    return f"{value:.3f}" if score.is_share else f"{value:.3g}"


def class_note(result: Result) -> str:
    """Return with which probability the classes of a result hold, and what that is worth jointly, for legends."""
    classes = result.classes
    if classes.pointwise is None:
        return f"{100 * classes.confidence:g} % that it is one of these"
    n_wrong = classes.max_wrong
    note = f"each with at least {100 * classes.pointwise:g} %"
    if classes.n_shown == 0:
        return note
    return f"{note}; at most {n_wrong} wrong" if n_wrong else f"{note}; none wrong"


def format_shown(domain: Domain, point: Mapping[str, Any]) -> str:
    """Return a point as text, with as many digits as tell it from other points of the domain."""
    return format_coordinates(domain.shown(point), digits=ALL_DIGITS)


def format_place(place: Any, domain: Domain) -> str:
    """Return where a suggestion, measurement or best point is: its label, if the rows are named, and coordinates.

    Args:
        place: An object with `point`, `index` and `label`.
        domain: The domain, whose points say how many digits are needed.
    """
    coordinates = format_shown(domain, place.point)
    if place.label is None or place.label == place.index:
        return coordinates
    return f"{label_text(place.label)} ({coordinates})"


def format_question(study: Study) -> str:
    """Return the goal as a question, about what the measurements of the study tell."""
    question = study.quantity.in_question(study.goal)
    if study.outcome is None:
        return question
    return question.replace("the value", f"the {study.outcome.subject}")
