"""Limits of a run: costs, numbers of measurements, and statements about the answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from truvar.domain.goals import Goal, LevelSet, Map, Maximize
from truvar.exceptions import InvalidArgumentError, UnsupportedGoalError
from truvar.inference.limits import StatementLimits
from truvar.messages import unknown_name
from truvar.validation import check_integer, check_nonnegative, check_positive

LIMITS = ("budget", "steps", "epsilon", "f1", "regret", "improvement_per_cost", "accuracy")
_RUN_OPTIONS = (
    "retries",
    "max_failures",
)  # of a run; they alone end none, but a study keeps them too
# repetitions of a failed measurement on an executor or by a program; a function that is called
# directly is not called again
DEFAULT_RETRIES = 2
# Limits that are statements about the answer, with a goal that has it.
_ANSWER_LIMITS: dict[str, type[Goal]] = {
    name: goal for goal in (LevelSet, Maximize, Map) for name in goal.limits
}


@dataclass(frozen=True)
class RunLimits:
    """Limits of a run, which ends at the first one reached; None: no limit.

    Attributes:
        budget: Total cost, counted from the beginning of the study.
        steps: Number of measurements, counted from the beginning of the study.
        epsilon: Largest possible error of the answer.
        f1: Level set: F1 score that is exceeded with 97.5 % probability, given the model.
        regret: Optimum: regret that is not exceeded with 97.5 % probability, given the model.
        improvement_per_cost: Optimum: expected improvement per unit cost that a measurement must
            promise.
        relative_regret: Optimum: `regret` as a share of the range of the posterior mean.
        is_default: Whether these are the limits of a run that was given none.
        accuracy: Map: accuracy that it has at 99 % of the points with 95 % probability, given the
            model.

    Raises:
        InvalidArgumentError: If a limit is negative or not a number, or F1 is above 1.
    """

    budget: float | None = None
    steps: int | None = None
    epsilon: float | None = None
    f1: float | None = None
    regret: float | None = None
    improvement_per_cost: float | None = None
    relative_regret: float | None = None
    is_default: bool = False
    accuracy: float | None = None

    def __post_init__(self) -> None:
        for name in (
            "budget",
            "epsilon",
            "regret",
            "improvement_per_cost",
            "relative_regret",
            "accuracy",
        ):
            limit = getattr(self, name)
            if limit is not None:
                check_nonnegative(limit, name)
        if self.steps is not None:
            check_integer(self.steps, "steps", minimum=0)
        if self.f1 is not None:
            _check_f1(self.f1)

    @staticmethod
    def of(own: Mapping[str, float]) -> RunLimits:
        """Return the limits of a study, which are given by name."""
        limits: dict[str, Any] = {name: limit for name, limit in own.items() if name in LIMITS}
        if "steps" in limits:
            limits["steps"] = int(limits["steps"])
        return RunLimits(**limits)

    @property
    def given(self) -> bool:
        """Whether there is a limit."""
        return any(getattr(self, name) is not None for name in LIMITS)

    @property
    def statements(self) -> StatementLimits:
        """The limits that are statements about the answer."""
        names = [field.name for field in fields(StatementLimits)]
        return StatementLimits(**{name: getattr(self, name) for name in names})

    def or_default(self, own: Mapping[str, float], goal: Goal) -> RunLimits:
        """Return these limits, or those of the study, or else the default of its goal.

        Args:
            own: The limits of the study.
            goal: Its goal.

        Raises:
            UnsupportedGoalError: If a limit does not suit the goal.
        """
        limits = self
        if not limits.given and own:
            limits = RunLimits.of(own)
        if not limits.given:
            default: dict[str, Any] = goal.default_limit
            limits = RunLimits(**default, is_default=True)
        limits.check_goal(goal)
        return limits

    def check_goal(self, goal: Goal) -> None:
        """Check that the limits suit a goal.

        Raises:
            UnsupportedGoalError: If one of them is about answers to another kind of goal.
        """
        _check_suits(vars(self), goal)


def check_study_limits(limits: Mapping[str, float] | None, goal: Goal) -> dict[str, float]:
    """Return the limits of a study as a dictionary.

    Args:
        limits: Limits by name; None: none.
        goal: The goal of the study.

    Raises:
        InvalidArgumentError: If a name is unknown or a limit out of its range.
        UnsupportedGoalError: If a limit does not suit the goal.
    """
    checked = dict(limits or {})
    for name, limit in checked.items():
        if name not in LIMITS + _RUN_OPTIONS:
            raise InvalidArgumentError(unknown_name("limit", name, LIMITS + _RUN_OPTIONS))
        check_nonnegative(limit, name)
        if name in _RUN_OPTIONS:
            checked[name] = check_integer(limit, name, minimum=0)
    if "f1" in checked:
        _check_f1(checked["f1"])
    _check_suits(checked, goal)
    return checked


def _check_f1(f1: Any) -> None:
    """Check a limit of F1.

    Raises:
        InvalidArgumentError: If it is not a number greater than 0 and at most 1.
    """
    if not check_positive(f1, "f1", example="0.95") <= 1.0:
        raise InvalidArgumentError(f"f1 must be at most 1, got {f1!r}; give one such as 0.95")


def _check_suits(limits: Mapping[str, float | None], goal: Goal) -> None:
    """Check that limits which are statements about the answer suit the goal."""
    for name, owner in _ANSWER_LIMITS.items():
        if limits.get(name) is not None and name not in goal.limits:
            raise UnsupportedGoalError(
                f"the limit {name} needs {owner.one}, got the goal {goal}; give "
                f"{' or '.join(goal.limits)}"
            )
