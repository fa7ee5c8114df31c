"""Goals about several quantities: the region where all requirements hold, and an optimum within one.

Each quantity has its own model. `Goal.parts` has the goal of each quantity by its name; the
first one leads: reports that show one quantity show that one. The sets M, H and L of the whole
follow from those of the parts: a point is in H if every requirement holds there, and in L if one of
them fails.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from truvar._typing import Array, Mask
from truvar.domain.goals._base import Goal, Regions, Score
from truvar.domain.goals._level_set import Bands, LevelSet
from truvar.exceptions import InvalidArgumentError
from truvar.messages import for_interface
from truvar.validation import check_finite

Requirement = LevelSet | Bands
INSIDE = "inside"  # class of the points where all requirements hold
OUTSIDE = "outside"  # class of the others
_EXAMPLE = 'LevelSet(80, of="yield")'
_COMPARISON = re.compile(r"(<=|>=|<|>)")


def holds(goal: Requirement, regions: Regions) -> tuple[Mask, Mask]:
    """Return where a requirement holds, and where it fails, by the sets of its quantity: (n,) each."""
    if goal.sides[0] == "above":
        return regions.above, regions.below
    return regions.below, regions.above


def satisfies(goal: Requirement, values: Array) -> Mask:
    """Return which values of its quantity satisfy a requirement; those on a threshold do."""
    if isinstance(goal, Bands):
        low, high = goal.thresholds
        return np.asarray((values >= low) & (values <= high))
    if goal.threshold is None:
        raise AssertionError("a requirement has a given threshold")
    return np.asarray(goal.sign * values >= goal.sign * goal.threshold)


def requirement_text(goal: Requirement) -> str:
    """Return a requirement in a few words: "yield above 80", "pH between 5 and 7"."""
    if isinstance(goal, Bands):
        low, high = goal.thresholds
        return f"{goal.of} between {low:g} and {high:g}"
    return f"{goal.of} {goal.summary}"


def constraint_text(goal: Requirement) -> str:
    """Return a requirement as a constraint: "impurity <= 1", "5 <= pH <= 7"."""
    if isinstance(goal, Bands):
        low, high = goal.thresholds
        return f"{low:.15g} <= {goal.of} <= {high:.15g}"
    return f"{goal.of} {'>=' if goal.sign > 0 else '<='} {goal.threshold:.15g}"


def probability_of(
    requirement: Goal, mean: Array, sd: Array, distribution: Callable[[Array], Array]
) -> Array:
    """Return the probability that normal variables satisfy a requirement.

    Args:
        requirement: A level set with given thresholds, in the units of the variables.
        mean: Means. (n,)
        sd: Standard deviations. (n,)
        distribution: The standard normal distribution function.
    """
    spread = np.maximum(sd, np.finfo(float).tiny)
    if isinstance(requirement, Bands):
        low, high = requirement.thresholds
        inside = distribution((high - mean) / spread) - distribution((low - mean) / spread)
        return np.asarray(np.maximum(inside, 0.0))
    if not isinstance(requirement, LevelSet) or requirement.threshold is None:
        raise AssertionError("a requirement has given thresholds")
    return np.asarray(distribution(requirement.sign * (mean - requirement.threshold) / spread))


@dataclass(frozen=True, init=False)
class AllOf(Goal):
    """Find the points where several requirements hold, each about its own quantity.

    Args:
        goals: The requirements: `LevelSet(80, of="yield")`, `LevelSet(below=1, of="impurity")` or
            `LevelSet(between=(5, 7), of="pH")`.

    Attributes:
        goals: The requirements, in the order in which they were given.
        monotone: Whether a point that was classified stays so. None: as the policy has it.

    Raises:
        InvalidArgumentError: If a requirement is of another kind or without a quantity, or two are
            about the same.

    Example:
        >>> AllOf(LevelSet(80, of="yield"), LevelSet(below=1, of="impurity"))
    """

    goals: tuple[Requirement, ...]
    monotone: bool | None = None
    kind = "region"
    one = "a region of several quantities"
    many = "regions of several quantities"
    score = Score("f1", "F1", is_share=True)
    limits = ("f1",)
    has_thresholds = True
    sign = 1
    class_names = (OUTSIDE, INSIDE)

    def __init__(
        self, *given: Requirement, goals: Sequence[Requirement] = (), monotone: bool | None = None
    ) -> None:
        object.__setattr__(self, "goals", check_requirements((*given, *goals), "AllOf"))
        object.__setattr__(self, "monotone", monotone)

    def __repr__(self) -> str:
        parts = [repr(goal) for goal in self.goals]
        if self.monotone is not None:
            parts.append(f"monotone={self.monotone!r}")
        return f"AllOf({', '.join(parts)})"

    def __str__(self) -> str:
        texts = ", ".join(str(goal) for goal in self.goals)
        return for_interface(f"AllOf({texts})", problem=f"the region with {self.summary}")

    @property
    def parts(self) -> Mapping[str, Goal]:
        """The requirement of each quantity."""
        return {str(goal.of): goal for goal in self.goals}

    @property
    def question(self) -> str:
        """The goal as a question."""
        return f"where is {self.summary}?"

    @property
    def summary(self) -> str:
        """The requirements: "yield above 80 and impurity below 1"."""
        return " and ".join(requirement_text(goal) for goal in self.goals)

    @property
    def default_limit(self) -> dict[str, float]:
        """Expected F1."""
        return {"f1": 0.95}

    @property
    def cost_caveats(self) -> tuple[str, ...]:
        """The reason that there are several quantities."""
        return () if len(self.goals) == 1 else ("there are several quantities",)

    def with_monotone(self, monotone: bool) -> Self:
        """Return the goal with `monotone` decided, for the requirements too."""
        parts = [goal.with_monotone(monotone) for goal in self.goals]
        return type(self)(goals=parts, monotone=monotone)

    def combined(self, regions: Mapping[str, Regions]) -> Regions:
        """Return the sets of the whole, given those of each quantity."""
        each = [
            holds(goal, regions[name]) for name, goal in zip(self.parts, self.goals, strict=True)
        ]
        above = np.logical_and.reduce([inside for inside, _ in each])
        below = np.logical_or.reduce([outside for _, outside in each])
        return Regions(~above & ~below, above, below)

    def is_inside(self, values: Mapping[str, Array]) -> Mask:
        """Return where all requirements hold, given the values of every quantity: (n,)."""
        names = self.parts
        each = [satisfies(goal, values[name]) for name, goal in zip(names, self.goals, strict=True)]
        return np.asarray(np.logical_and.reduce(each))

    def update(self, regions: Regions, lower: Array, upper: Array) -> Regions:
        """Return the sets of the first quantity, whose bounds these are; see `combined`."""
        return self.goals[0].update(regions, lower, upper)

    def epsilon(self, regions: Regions, lower: Array, upper: Array) -> float:
        """Return the accuracy of the first quantity, whose bounds these are."""
        return self.goals[0].epsilon(regions, lower, upper)

    def within_gap(self, f: Array, gap: float) -> Mask:
        """Return the points near the thresholds of the first quantity."""
        return self.goals[0].within_gap(f, gap)


def parse_constraints(given: Any) -> tuple[Requirement, ...]:
    """Return requirements from text such as "impurity <= 1 and 5 <= pH <= 7".

    Args:
        given: The text, a requirement such as `LevelSet(below=1, of="impurity")`, or a list of
            them.

    Raises:
        InvalidArgumentError: If a text does not compare a quantity with one or two numbers.
    """
    if isinstance(given, LevelSet | Bands):
        return (given,)
    if isinstance(given, str):
        return tuple(_parse_constraint(text) for text in re.split(r"\band\b|,", given))
    if isinstance(given, Sequence) and given:
        return tuple(each for one in given for each in parse_constraints(one))
    raise InvalidArgumentError(_not_a_constraint(given))


def _not_a_constraint(given: Any) -> str:
    return (
        f"a requirement must compare quantities with numbers, got {given!r}; write it as "
        '"impurity <= 1" or "impurity <= 1 and 5 <= pH <= 7"'
    )


def _parse_constraint(text: str) -> Requirement:
    """Return "impurity <= 1", "1 >= impurity" or "5 <= pH <= 7" as a requirement."""
    words = [word.strip() for word in _COMPARISON.split(text)]
    numbers = [_number(word) for word in words[::2]]
    names = [word for word, number in zip(words[::2], numbers, strict=True) if number is None]
    if len(words) not in (3, 5) or len(names) != 1 or not names[0]:
        raise InvalidArgumentError(_not_a_constraint(text))
    name = names[0]
    if len(words) == 5:
        low, middle, high = numbers
        directions = {word[0] for word in words[1::2]}
        if middle is not None or low is None or high is None or len(directions) != 1:
            raise InvalidArgumentError(_not_a_constraint(text))
        ends = (low, high) if directions == {"<"} else (high, low)
        return LevelSet(between=ends, of=name)
    first, second = numbers
    is_upper = (words[1][0] == "<") == (first is None)
    limit = second if first is None else first
    return LevelSet(below=limit, of=name) if is_upper else LevelSet(limit, of=name)


def _number(word: str) -> float | None:
    try:
        return check_finite(float(word), "a limit of subject_to")
    except ValueError:
        return None


def check_requirements(given: Sequence[Any], where: str) -> tuple[Requirement, ...]:
    """Return requirements that are about different quantities.

    Raises:
        InvalidArgumentError: If one of them is something else.
    """
    if not given:
        raise InvalidArgumentError(
            f"{where} needs at least one requirement, got none; give such as {_EXAMPLE}"
        )
    names: list[str] = []
    for goal in given:
        if not isinstance(goal, LevelSet | Bands):
            raise InvalidArgumentError(
                f"{where} takes level sets with a quantity each, got {goal!r}; give such as "
                f"{_EXAMPLE}"
            )
        is_given = goal.inside if isinstance(goal, Bands) else goal.threshold is not None
        if not is_given:
            raise InvalidArgumentError(
                f"{where} takes level sets with a given threshold, below or between, got {goal}; "
                f"give such as {_EXAMPLE}"
            )
        if goal.of is None:
            raise InvalidArgumentError(
                f"{where} needs the quantity of every requirement, got {goal}; name it: {_EXAMPLE}"
            )
        if goal.of in names:
            between = for_interface(
                f'give LevelSet(between=(low, high), of="{goal.of}")',
                problem=f'write both as one, such as "5 <= {goal.of} <= 7"',
            )
            raise InvalidArgumentError(
                f"{where} takes one requirement per quantity, got two of {goal.of!r}; {between}"
            )
        names.append(goal.of)
    return tuple(given)
