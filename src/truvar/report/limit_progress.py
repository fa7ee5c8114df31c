"""Progress of a study towards its limits, as data for JSON and in words."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from truvar.report.formatting import describe_score, format_number

if TYPE_CHECKING:
    from truvar.inference.statements import Estimate
    from truvar.study.base import BaseStudy
    from truvar.study.limits import RunLimits
    from truvar.study.result import Result


def limit_progress(
    study: BaseStudy, result: Result, limits: RunLimits
) -> dict[str, dict[str, Any]]:
    """Return how far a study is from each of its limits, by name of the limit.

    Args:
        study: The study, which is not changed.
        result: Its present result.
        limits: The limits.

    Returns:
        For each limit its `goal`, whether it is `reached`, a `text`, and the present state:
        `value`, or for F1 and regret `mean`, `low` and `high`. Numbers that are not known are None.
    """
    progress: dict[str, dict[str, Any]] = {}
    if limits.budget is not None:
        progress["budget"] = _of_number(
            "cost", result.spent, limits.budget, result.spent >= limits.budget
        )
    if limits.steps is not None:
        progress["steps"] = _of_number(
            "measurement", result.steps, limits.steps, result.steps >= limits.steps
        )
    if limits.epsilon is not None:
        reached = result.steps > 0 and result.epsilon <= limits.epsilon
        progress["epsilon"] = _of_number("epsilon", result.epsilon, limits.epsilon, reached)
    if limits.f1 is not None:
        reached = study.check_stop(f1=limits.f1).reason is not None
        progress["f1"] = _of_estimate(result, result.expected_f1, limits.f1, reached)
    goal = _regret_goal(result, limits)
    if goal is not None:
        reached = (
            study.check_stop(regret=limits.regret, relative_regret=limits.relative_regret).reason
            is not None
        )
        progress["regret"] = _of_estimate(result, result.expected_regret, goal, reached)
    if limits.improvement_per_cost is not None:
        rate = limits.improvement_per_cost
        reached = study.check_stop(improvement_per_cost=rate).reason is not None
        name = "expected improvement per unit cost"
        progress["improvement_per_cost"] = _of_number(
            name, study.improvement_per_cost(), rate, reached
        )
    for name in set(result.goal.limits) - progress.keys():
        limit = getattr(limits, name)
        if limit is not None:  # the statements have the present state under the same name
            reached = study.check_stop(**{name: limit}).reason is not None
            progress[name] = _of_number(name, getattr(result.statements, name), limit, reached)
    return progress


def _regret_goal(result: Result, limits: RunLimits) -> float | None:
    """Return the regret that a run ends at, in the user's units; None if regret is no limit."""
    if limits.relative_regret is None:
        return limits.regret
    return max(limits.regret or 0.0, limits.relative_regret * float(np.ptp(result.mean)))


def score_goal(result: Result, limits: RunLimits) -> float | None:
    """Return the score that a run ends at, in the user's units; None if the score is no limit."""
    if result.goal.seeks_optimum:
        return _regret_goal(result, limits)
    limit: float | None = getattr(limits, result.goal.score.key, None)
    return limit


def describe_goal_of_score(score: str, goal: float | None) -> str:
    """Return a score and the goal that it is to reach: "expected F1 0.87 (0.80 to 0.93), goal 0.95"."""
    return score if goal is None else f"{score}, goal {goal:.3g}"


def _of_estimate(result: Result, estimate: Estimate, goal: float, reached: bool) -> dict[str, Any]:
    unknown = f"expected {result.goal.score.name} not known yet"
    score = next(iter(describe_score(result)), unknown)
    return {
        **estimate.to_dict(),
        "goal": goal,
        "reached": reached,
        "text": describe_goal_of_score(score, goal),
    }


def _of_number(name: str, value: float, goal: float, reached: bool) -> dict[str, Any]:
    known = isfinite(value)
    state = format_number(value) if known else "not known yet"
    return {
        "value": value if known else None,
        "goal": goal,
        "reached": reached,
        "text": f"{name} {state}, goal {format_number(goal)}",
    }
