"""The answer to the question of a study as it stands, in plain words: a headline and details.

The words of a level set are about every point by its own class (`Result.classes`): how many points
are on the side asked for, how many are undecided, and how many may be wrong. Those of an optimum are
about the recommended point: its value, and how far it is from the optimum.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any

from truvar.report.formatting import format_number, format_place
from truvar.report.goal_views import optimum_name, view_of

if TYPE_CHECKING:
    from truvar.inference.statements import Classification
    from truvar.study.result import Result
    from truvar.study.study import Study

_CONTRADICTED = "The measurements contradict the model; the certificate says how."
_SIDES = 2  # classes of a goal that asks for one of them


@dataclass(frozen=True)
class Answer:
    """The answer to the question of a study.

    Attributes:
        headline: The answer in a few words.
        details: Sentences about how sure it is.
    """

    headline: str
    details: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the fields for JSON."""
        return {"headline": self.headline, "details": list(self.details)}


def answer(study: Study, result: Result) -> Answer:
    """Return the answer to the question of a study.

    Args:
        study: The study, which is not changed.
        result: Its present result.
    """
    if result.steps == 0:
        return Answer("Not known yet", ("Nothing was measured yet.",))
    if not result.statements.is_known:
        return Answer("Not known yet", ("There are too few measurements to learn from.",))
    if result.goal.seeks_optimum:
        found = _optimum(study, result)
    elif getattr(result.statements, "accuracy", None) is not None:
        found = _map(study, result)
    else:
        found = _classes(study, result)
    if not result.model_check.is_contradiction:
        return found
    return Answer(found.headline, (*found.details, _CONTRADICTED))


def _optimum(study: Study, result: Result) -> Answer:
    """Return the recommended point, its value and its distance from the optimum."""
    optimum = optimum_name(result.goal)
    side = "below" if result.goal.sign > 0 else "above"
    statements = result.statements
    unit = _unit(study)
    details = []
    value = statements.recommended_value
    if value is not None:
        low = format_number(value.low)
        high = format_number(value.high)
        name = study.quantity.name or "value"
        estimate = f"{format_number(result.best.mean)}{unit}"
        details.append(f"Its {name} is {estimate} (95 %: {low} to {high}).")
    regret = statements.expected_regret
    bound = statements.regret_bound
    if regret is not None and bound is not None and isfinite(regret.mean):
        expected = f"It is expected to be {regret.mean:.2g}{unit} {side} the {optimum}"
        if isfinite(bound):
            expected = f"{expected}, and at most {bound:.2g}{unit} with 95 % probability"
        else:
            expected = f"{expected} if it satisfies all constraints"
        details.append(f"{expected}.")
    feasible = getattr(statements, "feasible_probability", None)
    if feasible is not None:
        details.append(f"It satisfies all constraints with {100 * feasible:.3g} % probability.")
    return Answer(f"Best: {format_place(result.best, result.domain)}", tuple(details))


def _unit(study: Study) -> str:
    """Return the unit of the quantity with a leading space, or nothing."""
    return study.quantity.after_number


def _map(study: Study, result: Result) -> Answer:
    """Return how far the map is from the true values."""
    statements: Any = result.statements
    unit = _unit(study)
    everywhere = f"{statements.accuracy_everywhere:.3g}{unit}"
    details = (f"At all points ± {everywhere}. Both with 95 % probability.",)
    return Answer(f"Known to ± {statements.accuracy:.3g}{unit} at 99 % of the points", details)


def _classes(study: Study, result: Result) -> Answer:
    """Return how many points have each class, how many have none, and how many may be wrong."""
    classes = result.classes
    n = len(result.domain)
    points = "1 point" if n == 1 else f"{n:,} points"
    if classes.n_shown == 0:
        return Answer(f"Undecided at all {points}", ("No class is certain enough to be shown.",))
    counts = {
        label.rsplit(":", 1)[0]: int(mask.sum())
        for name, mask, label in view_of(result.goal).classes(result)
        if name != "undecided"
    }
    undecided = f"{int(classes.undecided.sum()):,} undecided"
    asked = next(iter(counts))
    is_between = bool(getattr(result.goal, "inside", False))
    if is_between:
        asked = list(counts)[1]  # the band between the two thresholds
    elif len(counts) > _SIDES:
        parts = [f"{name}: {count:,}" for name, count in counts.items()]
        listed = ", ".join(parts)
        return Answer(
            f"{listed[0].upper()}{listed[1:]}", (f"{undecided} of {points}.", _errors(classes))
        )
    n_asked = counts.pop(asked)
    verb = "is" if n_asked == 1 else "are"
    if is_between:
        asked = f"between {asked.replace(' to ', ' and ')}"
    if result.goal.known_thresholds and getattr(result.goal, "margin", None) is None:
        asked = f"{asked}{_unit(study)}"
    parts = [*(f"{count:,} {name}" for name, count in counts.items()), undecided]
    return Answer(
        f"{n_asked:,} of {points} {verb} {asked}", (f"{', '.join(parts)}.", _errors(classes))
    )


def _errors(classes: Classification) -> str:
    """Return with which probability the classes hold, and how many of them may be wrong."""
    wrong = "none is wrong"
    if classes.max_wrong:
        verb = "is" if classes.max_wrong == 1 else "are"
        wrong = f"at most {classes.max_wrong:,} of the {classes.n_shown:,} {verb} wrong"
    pointwise = 100 * (classes.pointwise or classes.confidence)
    confidence = 100 * classes.confidence
    return (
        f"Each class shown holds with at least {pointwise:g} %; with {confidence:g} % probability "
        f"{wrong}."
    )
