"""A suggestion as a card: where, how precisely, at which cost, why, and the command that records its value."""

from __future__ import annotations

from dataclasses import asdict
from math import isfinite, isnan, sqrt
from typing import TYPE_CHECKING, Any

from truvar.domain.goals import Map
from truvar.report.formatting import describe_cost, format_place
from truvar.report.terminal import TerminalStyle

if TYPE_CHECKING:
    from truvar.study.study import Study
    from truvar.study.suggestion import Suggestion


def suggestion_card(
    study: Study, suggestion: Suggestion, terminal: TerminalStyle, command: str = "truvar tell"
) -> str:
    """Return the card of a pending suggestion as text.

    Args:
        study: Its study.
        suggestion: The suggestion.
        terminal: Width, colours and letters to use.
        command: The command that records its value.
    """
    owner = "" if suggestion.vehicle is None else f" for {terminal.plain(suggestion.vehicle)}"
    heading = terminal.paint(f"suggestion {suggestion.id}{owner}", "strong")
    rows = [
        ("measure", describe_action(study, suggestion)),
        ("precision", _precision(study, suggestion)),
        ("cost", describe_cost(suggestion)),
        ("expected", _expected_value(study, suggestion)),
        ("why", describe_gain(study, suggestion)),
        ("then", f"{command} {suggestion.id} VALUE"),
    ]
    return f"{heading}\n{terminal.rows(rows)}"


def suggestion_data(study: Study, suggestion: Suggestion) -> dict[str, Any]:
    """Return the content of a card for JSON."""
    lookahead = study.lookahead(suggestion)
    mean, sd = study.predict_measurement(suggestion)
    return {
        **suggestion.to_dict(),
        "expected": {"mean": mean, "sd": sd},
        "lookahead": None if lookahead is None else asdict(lookahead),
    }


def describe_action(study: Study, suggestion: Suggestion) -> str:
    """Return where to measure, and which task."""
    point = format_place(suggestion, study.domain)
    return point if suggestion.task is None else f"{suggestion.task} at {point}"


def describe_gain(study: Study, suggestion: Suggestion) -> str:
    """Return what the measurement is expected to decide, in words."""
    lookahead = study.lookahead(suggestion)
    if lookahead is None:
        return "there is no model yet: the first measurements are spread out to learn one from"
    text = f"by itself it removes {100 * lookahead.variance_reduction:.3g} % of the variance of "
    if isinstance(study.goal, Map):  # no point of a map is ever decided
        text += "all points together"
    else:
        expected = lookahead.expected_decided
        decided = f"{expected:.0f}" if expected >= 9.5 else f"{expected:.2g}"
        text += (
            "the points that the policy has not decided yet, and is expected to decide about "
            f"{decided} of them"
        )
    if isnan(suggestion.gain):
        return text
    return f"{text}; gain {suggestion.gain:.4g}, {suggestion.score:.3g} per unit of cost"


def _expected_value(study: Study, suggestion: Suggestion) -> str:
    mean, sd = study.predict_measurement(suggestion)
    return f"{mean:.4g} ± {sd:.2g}" if isfinite(sd) else "not known yet"


def _precision(study: Study, suggestion: Suggestion) -> str:
    if study.outcome is not None:
        return study.outcome.precision
    if suggestion.noise == 0:
        text = "exact"
    elif study.lookahead(suggestion) is None and study.learns_noise:
        text = f"± {sqrt(suggestion.noise):.3g} (assumed until the noise is learned)"
    else:
        text = f"± {sqrt(suggestion.noise):.3g} (one standard deviation)"
    return text if suggestion.level is None else f"level {suggestion.level}: {text}"
