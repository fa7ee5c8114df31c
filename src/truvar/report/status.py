"""Where a study stands, in words for a terminal and as data: settled, spent and left, pending, the certificate."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any

from truvar.domain.goals import LevelSet
from truvar.report.formatting import format_coordinates, format_number
from truvar.report.plot_data import PlotData
from truvar.report.tables import summary
from truvar.report.terminal import TerminalStyle
from truvar.report.text_map import text_map

if TYPE_CHECKING:
    from truvar.acquisition import Policy
    from truvar.domain.goals import Goal
    from truvar.study.study import Study


def describe_goal(goal: Goal) -> str:
    """What is asked, in words."""
    if isinstance(goal, LevelSet):
        if goal.threshold is not None:
            return f"where is the value above {goal.threshold:g}?"
        return f"where is the value above {100 * (goal.fraction_of_max or 0):g} % of its maximum?"
    return f"where is the value {'highest' if goal.sign > 0 else 'lowest'}?"


def describe_policy(policy: Policy) -> str:
    """A decision rule by its name, with the options that are not its usual ones."""
    name = type(policy).__name__
    if not is_dataclass(policy):
        return name
    usual = {field.name: field.default for field in fields(policy) if field.init}
    options = [f"{key}={getattr(policy, key)}" for key, value in usual.items() if getattr(policy, key) != value]
    return f"{name} ({', '.join(options)})" if options else name


def describe_budget(study: Study) -> str:
    """What was spent, and what is left of the budget."""
    budget = study.limits.get("budget")
    spent = f"{format_number(study.spent)} spent"
    if budget is None:
        return f"{spent}, no budget given"
    pending = sum(suggestion.cost for suggestion in study.pending)
    left = f"{spent} of {format_number(budget)}, {format_number(max(budget - study.spent, 0.0))} left"
    return f"{left}, of which {format_number(pending)} is suggested" if pending else left


def status_text(study: Study, terminal: TerminalStyle) -> str:
    """The whole status."""
    result, most = study.result(), study.limits.get("steps")
    certificate = result.certificate
    classes = "; ".join(text for _, _, text in PlotData.from_study(study).classes())
    rows = [
        ("measured", f"{result.steps}{f' of {most:g}' if most else ''} time{'s' * (result.steps != 1)}"),
        ("cost", describe_budget(study)),
        ("settled", classes),
        ("accuracy", f"ε = {result.epsilon:.4g}" if isfinite(result.epsilon) else "not known yet"),
        ("certificate", str(certificate)),
        ("regime", f"{certificate.regime}: {certificate.because}"),
        ("rule", f"{describe_policy(study.policy)}; engine {study.engine}"),
    ]
    if not study.goal.level_set and result.steps and isfinite(result.epsilon):
        best = f"{format_coordinates(result.best.point)}: {result.best.mean:.6g} ± {result.best.sd:.2g}"
        rows.insert(3, ("best so far", best))
    rows += [("pending", f"{s.id}: {format_coordinates(s.point)}, cost {format_number(s.cost)}") for s in study.pending]
    if result.reason:
        rows.append(("finished" if study.finished else "stopped", result.reason))
    head = terminal.paint(terminal.plain(study.name or "study"), "strong")
    return f"{head}: {describe_goal(study.goal)}\n{terminal.rows(rows)}\n\n{text_map(study, terminal)}"


def status_data(study: Study) -> dict[str, Any]:
    """The same for JSON."""
    budget = study.limits.get("budget")
    left = None if budget is None else max(budget - study.spent, 0.0)
    return {
        **summary(study),
        "engine": study.engine,
        "limits": study.limits,
        "left": left,
        "finished": study.finished,
    }
