"""A suggestion as a card: where, how precisely, at which cost, why, and what to type when it is measured."""

from __future__ import annotations

from dataclasses import asdict
from math import isfinite, isnan, sqrt
from typing import TYPE_CHECKING, Any

from truvar.report.formatting import format_coordinates, format_number
from truvar.report.terminal import TerminalStyle

if TYPE_CHECKING:
    from truvar.study.study import Study
    from truvar.study.suggestion import Suggestion


def suggestion_card(study: Study, suggestion: Suggestion, terminal: TerminalStyle, command: str = "truvar tell") -> str:
    """The card of a pending suggestion; `command` is what tells its value."""
    head = terminal.paint(f"suggestion {suggestion.id}", "strong")
    rows = [
        ("measure", what(suggestion)),
        ("precision", _precision(study, suggestion)),
        ("cost", format_number(suggestion.cost)),
        ("expect", _expected(study, suggestion)),
        ("why", why(study, suggestion)),
        ("then", f"{command} {suggestion.id} VALUE"),
    ]
    return f"{head}\n{terminal.rows(rows)}"


def suggestion_data(study: Study, suggestion: Suggestion) -> dict[str, Any]:
    """The same for JSON."""
    ahead = study.lookahead(suggestion)
    mean, sd = study.predict_measurement(suggestion)
    return {
        **suggestion.to_dict(),
        "expected": {"mean": mean, "sd": sd},
        "outlook": None if ahead is None else asdict(ahead),
    }


def what(suggestion: Suggestion) -> str:
    """What is to be measured, and where."""
    task = "" if suggestion.task is None else f"{suggestion.task} at "
    return f"{task}{format_coordinates(suggestion.point)}"


def _expected(study: Study, suggestion: Suggestion) -> str:
    mean, sd = study.predict_measurement(suggestion)
    return f"{mean:.4g} ± {sd:.2g}" if isfinite(sd) else "nothing yet"


def _precision(study: Study, suggestion: Suggestion) -> str:
    known = "one standard deviation" if study.lookahead(suggestion) else "as long as nothing is learned"
    text = "exact" if suggestion.noise == 0 else f"± {sqrt(suggestion.noise):.3g} ({known})"
    return text if suggestion.level is None else f"level {suggestion.level}: {text}"


def why(study: Study, suggestion: Suggestion) -> str:
    """What the measurement would settle, in words."""
    ahead = study.lookahead(suggestion)
    if ahead is None:
        return "there is no model yet: the first measurements are spread out to learn one from"
    settled = f"{ahead.settled:.0f}" if ahead.settled >= 9.5 else f"{ahead.settled:.2g}"
    said = (
        f"by itself it takes away {100 * ahead.removed:.3g} % of the variance of the {_points(ahead.open)} still open, "
        f"and is expected to settle about {settled} of them"
    )
    if isnan(suggestion.gain):
        return said
    return f"{said}; gain {suggestion.gain:.4g}, {suggestion.score:.3g} per unit of cost"


def _points(count: int) -> str:
    return f"{count} point{'s' * (count != 1)}"
