"""A suggestion as a card: where, how precisely, at which cost, why, and the command that records its value."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from math import isfinite, isnan, sqrt
from typing import TYPE_CHECKING, Any

from truvar.domain.goals import Map
from truvar.report.formatting import describe_cost, format_place
from truvar.report.terminal import TerminalStyle
from truvar.study.explanation import expected_values

if TYPE_CHECKING:
    from truvar.study.base import BaseStudy
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
        ("then", f"{command} {suggestion.id} {_values_to_tell(suggestion)}"),
    ]
    if suggestion.quantities is not None:  # each has a noise of its own
        rows = [row for row in rows if row[0] != "precision"]
    return f"{heading}\n{terminal.rows(rows)}"


def suggestion_data(study: Study, suggestion: Suggestion) -> dict[str, Any]:
    """Return the content of a card for JSON."""
    lookahead = study.lookahead(suggestion)
    values = expected_values(study, suggestion)
    mean, sd = next(iter(values.values()))
    expected: dict[str, Any] = {"expected": {"mean": mean, "sd": sd}}
    if suggestion.quantities is not None:
        expected["expected_values"] = {
            name: {"mean": mean, "sd": sd} for name, (mean, sd) in values.items()
        }
    return {
        **suggestion.to_dict(),
        **expected,
        "lookahead": None if lookahead is None else asdict(lookahead),
    }


def describe_action(study: BaseStudy, suggestion: Suggestion) -> str:
    """Return where to measure, and which task or quantities."""
    point = format_place(suggestion, study.domain)
    if suggestion.quantities is not None:
        point = f"{' and '.join(suggestion.quantities)} at {point}"
    return point if suggestion.task is None else f"{suggestion.task} at {point}"


def describe_gain(study: Study, suggestion: Suggestion) -> str:
    """Return what the measurement is expected to decide, in words."""
    lookahead = study.lookahead(suggestion)
    if lookahead is None:
        return "there is no model yet: the first measurements are spread out to learn one from"
    text = f"alone it removes {100 * lookahead.variance_reduction:.3g} % of the variance of "
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
    texts = []
    for name, (mean, sd) in expected_values(study, suggestion).items():
        text = "not known yet"
        if isfinite(sd):
            text = f"{mean:.4g} ± {sd:.2g}{study.quantity.after_number}"
        texts.append(text if name is None else f"{name} {text}")
    return ", ".join(texts)


def _values_to_tell(suggestion: Suggestion) -> str:
    """Return what the command that records the value has after the id."""
    if suggestion.quantities is None:
        return "VALUE"
    return " ".join(shlex.quote(f"{name}=VALUE") for name in suggestion.quantities)


def _precision(study: Study, suggestion: Suggestion) -> str:
    if study.outcome is not None:
        return study.outcome.precision
    spread = f"± {sqrt(suggestion.noise):.3g}{study.quantity.after_number}"
    if suggestion.noise == 0:
        text = "exact"
    elif study.lookahead(suggestion) is None and study.learns_noise:
        text = f"{spread} (assumed until the noise is learned)"
    else:
        text = f"{spread} (one standard deviation)"
    return text if suggestion.level is None else f"level {suggestion.level}: {text}"
