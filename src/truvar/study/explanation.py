"""`Explanation`: why a measurement is suggested, and what is expected of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from math import isfinite, isnan
from typing import TYPE_CHECKING, Any

from scipy.special import ndtr

from truvar._representation import format_uncertain, html_card, text_card
from truvar.domain.goals import LevelSet
from truvar.messages import format_coordinates
from truvar.study.lookahead import Lookahead
from truvar.study.suggestion import Suggestion, describe_cost
from truvar.tabular.labels import label_text

if TYPE_CHECKING:
    from truvar.study.base import BaseStudy

_NO_MODEL = "no model yet: the first measurements are spread out to learn one from"
_MIN_COUNTED = 0.95  # expected number of points from which a number is said


@dataclass(frozen=True)
class Explanation:
    """Why a measurement is suggested: its expected value, what it settles, and its cost.

    Attributes:
        suggestion: The suggestion.
        place: Where it is, as text.
        mean: Expected value of the measurement; of its first quantity, where it has several.
        sd: Standard deviation of that value, noise included; infinite before there is a model.
        chance: Level set with one threshold: probability that f lies above it there. Optimum:
            probability that the value is better than the best so far, by its mean and standard
            deviation. None otherwise, before there is a model, and where there is no such value.
        reference: The threshold or value that `chance` is about; None without one.
        lookahead: Expected effect of this measurement alone; None before there is a model.
        seeks_lowest: Whether the lowest values are the best.
        unit: Unit of the value; None: not known.
        values: Expected value and standard deviation by quantity, where the study has several.

    Example:
        >>> study.explain(study.ask())
    """

    suggestion: Suggestion
    place: str
    mean: float
    sd: float
    chance: float | None = None
    reference: float | None = None
    lookahead: Lookahead | None = None
    seeks_lowest: bool = False
    unit: str | None = None
    values: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    @property
    def expected(self) -> str:
        """The expected value with its standard deviation and unit, as text."""
        if self.values:
            return ", ".join(
                f"{name} {_format_expected(*value)}" for name, value in self.values.items()
            )
        text = _format_expected(self.mean, self.sd)
        return text if self.unit is None or not isfinite(self.sd) else f"{text} {self.unit}"

    @property
    def why(self) -> str:
        """Reason for the measurement in words: chance of a good value, and effect."""
        effect = self.lookahead
        if effect is None:
            return _NO_MODEL
        texts = []
        if self.chance is not None:
            side = "below" if self.seeks_lowest else "above"
            texts.append(f"{_percent(self.chance)} chance to be {side} {self.reference:.4g}")
        return "; ".join([*texts, _describe_effect(effect)])

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation as a dictionary of JSON values."""
        expected: dict[str, float | None] = {"mean": None, "sd": None}
        if isfinite(self.sd):
            expected = {"mean": self.mean, "sd": self.sd}
        form: dict[str, Any] = {**self.suggestion.to_dict(), "place": self.place}
        form["expected"] = expected
        if self.values:
            form["expected_values"] = {
                name: {"mean": mean, "sd": sd} if isfinite(sd) else {"mean": None, "sd": None}
                for name, (mean, sd) in self.values.items()
            }
        return {
            **form,
            "chance": self.chance,
            "reference": self.reference,
            "lookahead": None if self.lookahead is None else asdict(self.lookahead),
            "why": self.why,
        }

    def __repr__(self) -> str:
        return text_card(f"Suggestion {self.suggestion.id}", "", self._rows)

    def _repr_html_(self) -> str:
        return html_card(f"Suggestion {self.suggestion.id}", "", self._rows)

    @property
    def _rows(self) -> list[tuple[str, str]]:
        suggestion = self.suggestion
        rows = [("measure", self.place), ("expected value", self.expected)]
        rows += [("why", self.why), ("cost", describe_cost(suggestion))]
        if not isnan(suggestion.gain):
            gain = f"{suggestion.gain:.4g} in the units of the policy"
            rows.append(("gain", f"{gain}, {suggestion.score:.3g} per unit of cost"))
        value = "VALUE"
        if suggestion.quantities is not None:
            value = f"{{{', '.join(f'{name!r}: VALUE' for name in suggestion.quantities)}}}"
        return [*rows, ("then", f"study.tell({suggestion.id}, {value})")]


def explain(study: BaseStudy, suggestion: Suggestion) -> Explanation:
    """Return why a pending suggestion was made.

    Args:
        study: The study, which is not changed.
        suggestion: One of its pending suggestions.
    """
    values = expected_values(study, suggestion)
    mean, sd = next(iter(values.values()))
    effect = study.lookahead(suggestion)
    chance = None
    reference = None
    if effect is not None and suggestion.task is None and suggestion.quantities is None:
        chance, reference = _chance(study, suggestion, mean, sd)
    return Explanation(
        suggestion=suggestion,
        place=_place_text(suggestion, study),
        mean=mean,
        sd=sd,
        chance=chance,
        reference=reference,
        lookahead=effect,
        seeks_lowest=study.goal.sign < 0,
        unit=study.quantity.unit,
        values={name: value for name, value in values.items() if name is not None},
    )


def expected_values(
    study: BaseStudy, suggestion: Suggestion
) -> dict[str | None, tuple[float, float]]:
    """Return mean and standard deviation of what is to be measured, by quantity; None: the only one."""
    names = suggestion.quantities or (None,)
    return {name: study.predict_measurement(suggestion, name) for name in names}


def _format_expected(mean: float, sd: float) -> str:
    """Return an expected value with its standard deviation, as text."""
    return format_uncertain(mean, sd) if isfinite(sd) else "not known yet"


def _chance(
    study: BaseStudy, suggestion: Suggestion, mean: float, sd: float
) -> tuple[float | None, float | None]:
    """Return the probability of the side or improvement asked for, and what it is compared with."""
    goal = study.goal
    if isinstance(goal, LevelSet) and goal.threshold is not None and suggestion.index is not None:
        above = float(study.result().probability[suggestion.index])
        return above if goal.sign > 0 else 1.0 - above, goal.threshold
    if not goal.seeks_optimum or sd <= 0 or suggestion.outcome is not None:
        return None, None
    best = study.result().best_observed
    if best is None:
        return None, None
    lead = goal.sign * (mean - best.shown.value) / sd
    return float(ndtr(lead)), best.shown.value


def _place_text(suggestion: Suggestion, study: BaseStudy) -> str:
    """Return where to measure, and what: label, coordinates, task and quantities."""
    text = format_coordinates(study.domain.shown(suggestion.point))
    if suggestion.label is not None and suggestion.label != suggestion.index:
        text = f"{label_text(suggestion.label)} ({text})"
    if suggestion.quantities is not None:
        text = f"{' and '.join(suggestion.quantities)} at {text}"
    return text if suggestion.task is None else f"{suggestion.task} at {text}"


def _describe_effect(effect: Lookahead) -> str:
    """Return how many points a measurement settles, or how much it tells of them.

    These are the points that the policy has not decided (M), more than `Result.classes` has.
    """
    points = "point" if effect.undecided == 1 else "points"
    of = f"{effect.undecided} {points} that the policy has not decided"
    if effect.expected_decided >= _MIN_COUNTED:
        return f"settles about {effect.expected_decided:.0f} of {of}"
    return f"removes {100 * effect.variance_reduction:.2g} % of the variance of {of}"


def _percent(share: float) -> str:
    """Return a probability in percent: "65 %", "< 1 %"."""
    if share < 0.005:
        return "< 1 %"
    return "> 99 %" if share > 0.995 else f"{100 * share:.0f} %"
