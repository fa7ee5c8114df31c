"""The status of a study, as text for a terminal and as data for JSON."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any

from truvar.domain.goals import LevelSet
from truvar.messages import format_coordinates
from truvar.report.formatting import count_noun, format_number
from truvar.report.plot_data import PlotData
from truvar.report.tables import summary
from truvar.report.terminal import TerminalStyle
from truvar.report.text_map import text_map

if TYPE_CHECKING:
    from truvar.acquisition import Policy
    from truvar.domain.goals import Goal
    from truvar.study.study import Study


def describe_goal(goal: Goal) -> str:
    """Return the goal as a question: "where is the value above 7?"."""
    if isinstance(goal, LevelSet):
        if goal.threshold is not None:
            return f"where is the value above {goal.threshold:g}?"
        return f"where is the value above {100 * (goal.fraction_of_max or 0):g} % of its maximum?"
    return f"where is the value {'highest' if goal.sign > 0 else 'lowest'}?"


def describe_policy(policy: Policy) -> str:
    """Return the name of a policy and those of its options that differ from the defaults."""
    name = type(policy).__name__
    if not is_dataclass(policy):
        return name
    defaults = {field.name: field.default for field in fields(policy) if field.init}
    options = [f"{key}={getattr(policy, key)}" for key, value in defaults.items() if getattr(policy, key) != value]
    return f"{name} ({', '.join(options)})" if options else name


def describe_budget(study: Study) -> str:
    """Return the cost spent and what is left of the budget, in words."""
    budget = study.limits.get("budget")
    spent = f"{format_number(study.spent)} spent"
    if budget is None:
        return f"{spent}, no budget given"
    text = f"{spent} of {format_number(budget)}, {format_number(max(budget - study.spent, 0.0))} left"
    pending = sum(suggestion.cost for suggestion in study.pending)
    return f"{text}, of which {format_number(pending)} is suggested" if pending else text


def status_text(study: Study, terminal: TerminalStyle) -> str:
    """Return the status of a study with a small map, as text.

    Args:
        study: The study, which is not changed.
        terminal: Width, colours and letters to use.
    """
    result = study.result()
    certificate = result.certificate
    max_steps = study.limits.get("steps")
    steps = f"{result.steps} of {max_steps:g} times" if max_steps else count_noun(result.steps, "time")
    rows = [
        ("measured", steps),
        ("cost", describe_budget(study)),
        ("points", "; ".join(label for _, _, label in PlotData.from_study(study).classes())),
        ("accuracy", f"ε = {result.epsilon:.4g}" if isfinite(result.epsilon) else "not known yet"),
        ("certificate", str(certificate)),
        ("regime", f"{certificate.regime}: {certificate.because}"),
        ("policy", f"{describe_policy(study.policy)}; engine {study.engine}"),
    ]
    if not study.goal.level_set and result.steps and isfinite(result.epsilon):
        best = f"{format_coordinates(result.best.point)}: {result.best.mean:.6g} ± {result.best.sd:.2g}"
        rows.insert(3, ("best so far", best))
    if not result.model_check.ok:
        rows.append(("model check", f"failed: {result.model_check.message}"))
    for suggestion in study.pending:
        point = format_coordinates(suggestion.point)
        rows.append(("pending", f"{suggestion.id}: {point}, cost {format_number(suggestion.cost)}"))
    if result.reason:
        rows.append(("finished" if study.finished else "stopped", result.reason))
    heading = terminal.paint(terminal.plain(study.name or "study"), "strong")
    return f"{heading}: {describe_goal(study.goal)}\n{terminal.rows(rows)}\n\n{text_map(study, terminal)}"


def status_data(study: Study) -> dict[str, Any]:
    """Return the status of a study for JSON."""
    budget = study.limits.get("budget")
    return {
        **summary(study),
        "engine": study.engine,
        "limits": study.limits,
        "left": None if budget is None else max(budget - study.spent, 0.0),
        "finished": study.finished,
    }
