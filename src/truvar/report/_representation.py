"""A study as consoles and notebooks show it: what it looks for, what it has spent, its answer, what is next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from truvar._representation import html_card, text_card
from truvar.inference.statements import POINTWISE, JointStatements
from truvar.report.formatting import cost_phrase, count_noun, format_number
from truvar.report.goal_views import view_of
from truvar.report.status import (
    describe_best_observed,
    describe_expected,
    describe_optimum,
)
from truvar.report.suggestion_card import describe_action

if TYPE_CHECKING:
    from truvar.study.base import BaseStudy
    from truvar.study.result import Result


def study_text(study: BaseStudy) -> str:
    """Return a study as a few lines of text, without anything that takes time to compute."""
    result = study.result()
    return text_card(
        _title(study),
        study.quantity.in_question(study.goal),
        [*_spent(study), *_fixed_kernel(study), *_quick_answer(study, result), *_next(study)],
    )


def study_html(study: BaseStudy) -> str:
    """Return a study as a card for notebooks, with the expected F1 or regret of its answer."""
    result = study.result()
    answer = describe_optimum(study, result)  # type: ignore[arg-type]
    answer += describe_expected(result, study.quantity.after_number)
    if result.goal.has_thresholds and result.statements.is_known:
        answer = _quick_answer(study, result) + answer
    return html_card(
        _title(study),
        study.quantity.in_question(study.goal),
        [*_spent(study), *_fixed_kernel(study), *answer, *_next(study)],
    )


def _title(study: BaseStudy) -> str:
    return "Study" if study.name is None else f"Study {study.name!r}"


def _spent(study: BaseStudy) -> list[tuple[str, str]]:
    steps = study.limits.get("steps")
    budget = study.limits.get("budget")
    measured = f"{study.steps} of {steps:g} times" if steps else count_noun(study.steps, "time")
    failed = len(study.failures)
    if failed:
        measured += f"; {failed} failed"
    spent = format_number(study.spent)
    if budget:
        spent = f"{spent} of {format_number(budget)}"
    return [("measured", measured), ("spent", spent)]


def _fixed_kernel(study: BaseStudy) -> list[tuple[str, str]]:
    """Return that a given kernel is not learned; nothing for a learned one, or one on a server."""
    is_local = hasattr(type(study), "fixed_kernel")
    kernel = study.fixed_kernel if is_local else None  # type: ignore[attr-defined]
    if kernel is None:
        return []
    text = f"{kernel}, fixed as given"
    if study.steps == 0:
        text += "; kernel=tv.Learned(kernel=...) learns its hyperparameters from the values"
    return [("kernel", text)]


def _quick_answer(study: BaseStudy, result: Result) -> list[tuple[str, str]]:
    """Return the answer so far, from single points."""
    if result.steps == 0:
        return [("answer", "nothing is measured yet")]
    if not result.goal.has_thresholds:
        best = result.best_observed if result.goal.seeks_optimum else None
        if best is None:
            return []
        unit = study.quantity.after_number
        return [("best so far", describe_best_observed(best, result.domain, unit))]
    n_above, n_below = _quick_counts(result)
    n = len(result.mean)
    sides = {"above": n_above, "below": n_below, "undecided": n - n_above - n_below}
    view = view_of(result.goal)
    counts = ", ".join(f"{sides[name]} {view.word(name)}" for name in view.counted)
    return [("answer", f"{counts} of {count_noun(n, 'point')}")]


def _quick_counts(result: Result) -> tuple[int, int]:
    """Return the number of points above and below as `Result.classes` has it, without joint draws if possible."""
    source = result.source
    is_known_threshold = getattr(result.goal, "threshold", None) is not None
    if isinstance(source, JointStatements) or not is_known_threshold or not source.fitted:
        return int(result.classes.above.sum()), int(result.classes.below.sum())
    probability = result.probability
    n_above = int((probability >= POINTWISE).sum())
    return n_above, int((1.0 - probability >= POINTWISE).sum())


def _next(study: BaseStudy) -> list[tuple[str, str]]:
    """Return the pending suggestions, or how to get one."""
    pending = study.pending
    if not pending:
        reason = study.finished
        return (
            [("finished", reason)]
            if reason
            else [("next", "nothing is pending: ask() suggests a measurement")]
        )
    first = pending[0]
    text = f"{first.id}: {describe_action(study, first)}, {cost_phrase(first)}"
    return [("next", text if len(pending) == 1 else f"{text}; {len(pending) - 1} more pending")]
