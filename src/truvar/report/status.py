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
from truvar.study.outliers import outlier_messages

if TYPE_CHECKING:
    from truvar.acquisition import Policy
    from truvar.domain.goals import Goal
    from truvar.models.transforms import OutputTransform
    from truvar.study.result import Best, BestObserved, Result
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


def describe_best(best: Best) -> str:
    """Return the recommended point with its estimated value."""
    return f"{format_coordinates(best.point)}, estimated value {best.mean:.6g} ± {best.sd:.2g}"


def describe_best_observed(best: BestObserved) -> str:
    """Return the best measured value with its point and id."""
    return f"{best.value:.6g} at {format_coordinates(best.point)} (measurement {best.id})"


def describe_optimum(study: Study, result: Result) -> list[tuple[str, str]]:
    """Return the recommended point and the best measurement, each with its name; nothing for a level set.

    Args:
        study: The study.
        result: Its present result.
    """
    rows: list[tuple[str, str]] = []
    if study.goal.level_set or not result.steps:
        return rows
    if isfinite(result.epsilon):
        rows.append(("recommended", describe_best(result.best)))
    if result.best_observed is not None:
        rows.append(("best measured", describe_best_observed(result.best_observed)))
    return rows


def describe_transform(transform: OutputTransform) -> str | None:
    """Return how values are transformed before they are modelled; None if they are not."""
    if transform.is_identity:
        return None
    if transform.log:
        return "values are modelled as their logarithms"
    power = round(transform.power, 2)
    if power == 0:
        return "values are modelled as their power 0, a logarithm"
    return f"values are modelled as their power {power:g}"


def study_warnings(study: Study, result: Result) -> list[str]:
    """Return a message for each measurement that the model leaves out as a gross error.

    Args:
        study: The study.
        result: Its present result.
    """
    if not result.outliers:
        return []
    return list(outlier_messages(study.measurement_records(), result.outliers).values())


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
    rows[3:3] = describe_optimum(study, result)
    transform = describe_transform(study.transform)
    if transform is not None:
        rows.append(("model", transform))
    rows += [("warning", message) for message in study_warnings(study, result)]
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
    result = study.result()
    return {
        **summary(study),
        "engine": study.engine,
        "limits": study.limits,
        "left": None if budget is None else max(budget - study.spent, 0.0),
        "finished": study.finished,
        "warnings": study_warnings(study, result),
    }
