"""The status of a study, as text for a terminal and as data for JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from truvar._representation import format_uncertain
from truvar.acquisition.registry import DEFAULT_POLICY, POLICY_NAMES
from truvar.domain.labels import with_label
from truvar.domain.repeats import Repeats, max_measurements
from truvar.report._plot_data import PlotData
from truvar.report._text_map import text_map
from truvar.report.formatting import (
    cost_phrase,
    count_noun,
    format_number,
    format_place,
    format_question,
    format_score,
    format_shown,
)
from truvar.report.goal_views import view_of
from truvar.report.limit_progress import limit_progress
from truvar.report.suggestion_card import describe_action
from truvar.report.tables import summary
from truvar.report.terminal import TerminalStyle
from truvar.study.limits import LIMITS, RunLimits
from truvar.study.outliers import outlier_messages

if TYPE_CHECKING:
    from truvar.acquisition import Policy
    from truvar.domain.costs import Tasks
    from truvar.domain.domain import Domain
    from truvar.models.likelihoods import Outcome
    from truvar.models.transforms import OutputTransform
    from truvar.study.result import BestObserved, Result
    from truvar.study.study import Study
    from truvar.study.vehicles import VehicleStatus

# heading of everything that is about M, H, L and epsilon
BOUNDS_TITLE = "For those who want the theorem: the sets M, H and L of the paper"
_SCORE_LIMITS = LIMITS[3:]  # limits of a run whose progress is shown in words


def describe_policy(policy: Policy) -> str:
    """Return the name of a policy and those of its options that differ from the defaults.

    The default policy has the name that users give it.
    """
    name = type(policy).__name__
    if name == POLICY_NAMES[DEFAULT_POLICY]:
        name = DEFAULT_POLICY
    if not is_dataclass(policy):
        return name
    defaults = {field.name: field.default for field in fields(policy) if field.init}
    options = [
        f"{key}={getattr(policy, key)}"
        for key, value in defaults.items()
        if getattr(policy, key) != value
    ]
    return f"{name} ({', '.join(options)})" if options else name


def describe_repeats(repeats: Repeats) -> str:
    """Return how often a place may be measured, in words."""
    if repeats is None or repeats is True:
        return "wherever they pay" + ("" if repeats else "; batches prefer other places")
    limit = max_measurements(repeats)
    return f"every place is measured {'once' if limit == 1 else f'at most {limit} times'}"


def describe_budget(study: Study) -> str:
    """Return the cost spent and what is left of the budget, in words."""
    budget = study.limits.get("budget")
    spent = f"{format_number(study.spent)} spent"
    if budget is None:
        return f"{spent}, {_vehicle_budgets(study) or 'no budget given'}{_expected_costs(study)}"
    text = (
        f"{spent} of {format_number(budget)}, {format_number(max(budget - study.spent, 0.0))} left"
    )
    pending = sum(suggestion.cost for suggestion in study.pending)
    text = f"{text}, of which {format_number(pending)} is suggested" if pending else text
    return text + _expected_costs(study)


def _vehicle_budgets(study: Study) -> str:
    """Return what is left of the budget of each vehicle; nothing if none has one."""
    parts = [
        f"{status.name} {format_number(max(status.left, 0.0))} of {format_number(status.budget)}"
        for status in shown_vehicles(study)
        if status.budget is not None and status.left is not None
    ]
    return f"left: {', '.join(parts)}" if parts else ""


def _expected_costs(study: Study) -> str:
    """Return how many costs were not told where costs are learned; nothing if all were."""
    untold = sum(record.cost_told is False for record in study.measurement_records())
    if not untold:
        return ""
    return (
        f"; {count_noun(untold, 'measurement')} without a cost, for which the expected one counts"
    )


def describe_best(result: Result, unit: str = "") -> str:
    """Return the recommended point with its estimated value and the 95 % interval of that.

    Args:
        result: The result.
        unit: The unit of the value as it follows a number (`QuantityName.after_number`).
    """
    best = result.best
    estimate = format_uncertain(best.mean, best.sd)
    text = f"{format_place(best, result.domain)}, estimated value {estimate}{unit}"
    value = result.statements.recommended_value
    if value is None:
        return text
    low, high = (
        format_uncertain(end, best.sd).partition(" ±")[0] for end in (value.low, value.high)
    )
    return f"{text} (95 %: {low} to {high})"


def describe_best_observed(best: BestObserved, domain: Domain, unit: str = "") -> str:
    """Return the best measured value with its point in the domain and its id.

    Of a value far beyond all others that is said, and the best of the others comes first.

    Args:
        best: The best measured value.
        domain: The domain.
        unit: The unit of the value as it follows a number (`QuantityName.after_number`).
    """
    shown = best.shown
    text = f"{shown.value:.6g}{unit} at {format_place(shown, domain)} (measurement {shown.id})"
    return f"{text}{best.remark}"


def describe_optimum(study: Study, result: Result) -> list[tuple[str, str]]:
    """Return the best measurement and the recommended point, each with its name; nothing for a level set.

    Args:
        study: The study.
        result: Its present result.
    """
    rows: list[tuple[str, str]] = []
    if not study.goal.seeks_optimum or not result.steps:
        return rows
    unit = study.quantity.after_number
    if result.best_observed is not None:
        text = describe_best_observed(result.best_observed, result.domain, unit)
        rows.append(("best so far", text))
    if result.statements.is_known:
        text = describe_best(result, unit)
        best = result.best_observed
        if best is not None and best.plausible is not None and best.point == result.best.point:
            text += f"; it rests on measurement {best.id}"
        rows.append(("recommended", text))
    return rows


def describe_expected(result: Result, unit: str = "") -> list[tuple[str, str]]:
    """Return the expected score with its 95 % interval and its name, as the only entry.

    Args:
        result: The result.
        unit: The unit of the value as it follows a number, for a score that has it.
    """
    statements = result.statements
    name = f"expected {result.goal.score.name}"
    if statements.score is None or not statements.is_known:
        return [(name, "not known yet: no model")]
    text = format_score(result.goal.score, statements.score, unit)
    text += view_of(result.goal).truth_note()
    if statements.expected_misclassified is not None:
        # The points above a share of the maximum are reported by their means.
        side = "its more probable side" if result.goal.known_thresholds else "the side of its mean"
        text += (
            f"; with every point on {side}, about "
            f"{statements.expected_misclassified:.3g} of "
            f"{count_noun(len(result.mean), 'point')} are wrong"
        )
    return [(name, text)]


def describe_bounds(result: Result) -> list[tuple[str, str]]:
    """Return what the paper's confidence bounds say: regime, sets, epsilon and the statement that follows."""
    certificate = result.certificate
    sets = f"H (above) {result.above.sum()}, L (below) {result.below.sum()}, M (undecided) {result.potential.sum()}"
    epsilon = f"{result.epsilon:.4g}" if isfinite(result.epsilon) else "not known yet"
    return [
        ("regime", f"{certificate.regime}: {certificate.because}"),
        ("sets", f"{sets} {'point' if len(result.mean) == 1 else 'points'}"),
        ("epsilon", epsilon),
        ("statement", certificate.bounds_statement),
    ]


def describe_transform(transform: OutputTransform, outcome: Outcome | None = None) -> str | None:
    """Return how values are transformed before they are modelled; None if they are not.

    Args:
        transform: The transform.
        outcome: What measurements give; None: numbers with normal noise.
    """
    if transform.is_identity:
        return None
    if outcome is not None:
        return outcome.description
    if transform.log:
        return "values are modelled as their logarithms"
    power = round(transform.power, 2)
    if power == 0:
        return "values are modelled as their power 0, a logarithm"
    return f"values are modelled as their power {power:g}"


def task_correlations(tasks: Tasks) -> list[float] | None:
    """Return the correlation of each task with the target, that of the target first; None if they are not known."""
    if tasks.covariance is None:
        return None
    covariance = np.asarray(tasks.covariance, dtype=float)
    scale = np.sqrt(covariance[0, 0] * np.diag(covariance))
    return [
        float(value)
        for value in np.divide(covariance[0], scale, out=np.zeros(len(scale)), where=scale > 0)
    ]


def describe_tasks(study: Study) -> str | None:
    """Return how the tasks are related to the target, as learned from the measurements; None if that is not learned."""
    if study.tasks is None or not study.tasks.learned or study.learned_tasks is None:
        return None
    if not isfinite(study.epsilon):
        return "their correlation with the target is not learned yet"
    correlations = (task_correlations(study.learned_tasks) or [])[1:]
    parts = [
        f"{name} {value:.2f}"
        for name, value in zip(study.tasks.names[1:], correlations, strict=True)
    ]
    return f"correlation with {study.tasks.names[0]}, as learned: {', '.join(parts)}"


def describe_infeasible(study: Study, result: Result) -> list[tuple[str, str]]:
    """Return what cannot be measured: excluded points, failed measurements, and points likely to fail.

    Args:
        study: The study.
        result: Its present result.
    """
    rows: list[tuple[str, str]] = []
    n = len(result.mean)
    if result.n_excluded:
        rows.append(("excluded", f"{result.n_excluded} of {count_noun(n, 'point')}"))
    if result.n_failed:
        last = study.failures[-1]
        place = with_label(study.domain, last.point, format_shown(study.domain, last.point))
        text = f"{count_noun(result.n_failed, 'measurement')}, the last at {place}"
        rows.append(("failed", f"{text}: {last.reason}" if last.reason else text))
    if result.n_likely_to_fail:
        text = f"{result.n_likely_to_fail} of the other points, more likely than not"
        rows.append(("likely to fail", text))
    return rows


def study_warnings(study: Study, result: Result) -> list[str]:
    """Return a message for each measurement that the model leaves out as an outlier.

    Args:
        study: The study.
        result: Its present result.
    """
    if not result.outliers:
        return []
    return list(outlier_messages(study.measurement_records(), result.outliers).values())


def status_text(study: Study, terminal: TerminalStyle, theorem: bool = False) -> str:
    """Return the status of a study with a small map, as text.

    Args:
        study: The study, which is not changed.
        terminal: Width, colours and letters to use.
        theorem: Whether to add what the paper's confidence bounds say.
    """
    result = study.result()
    data = PlotData.from_study(study, result=result)
    max_steps = study.limits.get("steps")
    steps = (
        f"{result.steps} of {max_steps:g} times" if max_steps else count_noun(result.steps, "time")
    )
    rows = [
        ("measured", steps),
        ("cost", describe_budget(study)),
        *describe_optimum(study, result),
        *describe_expected(result, study.quantity.after_number),
        (
            "points",
            f"{'; '.join(label for _, _, label in data.classes())} ({data.confidence_note})",
        ),
        ("certificate", str(result.certificate)),
        *(("also", text) for text in result.certificate.further),
        ("policy", describe_policy(study.policy)),
    ]
    progress = limit_progress(study, result, RunLimits.of(study.limits))
    rows[2:2] = [("progress", text) for text in progress_texts({"progress": progress})]
    transform = describe_transform(study.transform, study.outcome)
    if transform is not None:
        rows.append(("model", transform))
    if study.repeats is not None:
        rows.append(("repeats", describe_repeats(study.repeats)))
    rows += describe_infeasible(study, result)
    tasks = describe_tasks(study)
    if tasks is not None:
        rows.append(("tasks", tasks))
    rows += [("warning", message) for message in study_warnings(study, result)]
    if not result.model_check.ok:
        rows.append(("model check", f"failed: {result.model_check.message}"))
    rows += [
        ("vehicle" if status.name else "return leg", describe_vehicle(status, study.domain))
        for status in shown_vehicles(study)
    ]
    for suggestion in study.pending:
        if study.author in study.vehicles and suggestion.vehicle != study.author:
            continue
        point = describe_action(study, suggestion)
        owner = "" if suggestion.vehicle is None else f" for {suggestion.vehicle}"
        rows.append(("pending", f"{suggestion.id}{owner}: {point}, {cost_phrase(suggestion)}"))
    if result.reason:
        rows.append(("finished" if study.finished else "stopped", result.reason))
    heading = terminal.paint(terminal.plain(study.name or "study"), "strong")
    picture = text_map(study, terminal, result)
    text = f"{heading}: {format_question(study)}\n{terminal.rows(rows)}\n\n{picture}"
    if theorem:
        text += f"\n\n{BOUNDS_TITLE}\n{terminal.rows(describe_bounds(result))}"
    return text


def shown_vehicles(study: Study) -> list[VehicleStatus]:
    """Return the vehicles to report on: the author's own if it is one, otherwise all.

    Args:
        study: The study.
    """
    if not study.vehicles and not study.must_return:
        return []
    return [
        status
        for status in study.vehicle_statuses
        if study.author not in study.vehicles or status.name == study.author
    ]


def describe_vehicle(status: VehicleStatus, domain: Domain) -> str:
    """Return position, costs, budget and return leg of a vehicle, in words."""
    parts = []
    if status.position is not None:
        place = status.position
        if not isinstance(place, str):
            place = with_label(domain, place, format_shown(domain, place))
        parts.append(f"at {place}{' after what is pending' if status.pending else ''}")
    if status.name is not None:
        parts.append(count_noun(status.steps, "measurement"))
        budget = "" if status.budget is None else f" of {format_number(status.budget)}"
        parts.append(f"{format_number(status.spent)}{budget} spent")
    if status.return_cost:
        parts.append(f"{format_number(status.return_cost)} for the return leg")
    if status.left is not None:
        parts.append(f"{format_number(max(status.left, 0.0))} left")
    text = ", ".join(parts) or "at the start"
    return text if status.name is None else f"{status.name}: {text}"


def progress_texts(status: Mapping[str, Any]) -> list[str]:
    """Return how far a study is from its limits on the answer, in words; nothing if it has none.

    Args:
        status: The status as `status_data` returns it.
    """
    progress = status.get("progress") or {}
    return [progress[name]["text"] for name in _SCORE_LIMITS if name in progress]


def status_data(study: Study, result: Result | None = None) -> dict[str, Any]:
    """Return the status of a study for JSON.

    Args:
        study: The study, which is not changed.
        result: Its present result, if the caller has it.
    """
    budget = study.limits.get("budget")
    if result is None:
        result = study.result()
    return {
        **summary(study, result=result),
        "engine": study.engine,
        "limits": study.limits,
        "progress": limit_progress(study, result, RunLimits.of(study.limits)),
        "left": None if budget is None else max(budget - study.spent, 0.0),
        "finished": study.finished,
        "exhausted": study.exhausted,
        "vehicles": [vehicle.to_dict() for vehicle in shown_vehicles(study)],
        "learned_tasks": _tasks_data(study.learned_tasks),
        "warnings": study_warnings(study, result),
    }


def _tasks_data(tasks: Tasks | None) -> list[dict[str, Any]] | None:
    """Return name, correlation with the target, noise and mean of each task, as given or as learned."""
    if tasks is None:
        return None
    columns = {"correlation": task_correlations(tasks), "noise": tasks.noise, "mean": tasks.mean}
    rows: list[dict[str, Any]] = [{"name": name} for name in tasks.names]
    for key, values in columns.items():
        for k, row in enumerate(rows):
            row[key] = None if values is None else values[k]
    return rows
