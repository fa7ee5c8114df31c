"""The goals of finding the maximum or the minimum of f."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from truvar._typing import Array, Mask
from truvar.domain.goals._base import Goal, Regions, Score, check_quantity
from truvar.domain.goals._several import (
    Requirement,
    check_requirements,
    constraint_text,
    holds,
    parse_constraints,
    satisfies,
)
from truvar.exceptions import InvalidArgumentError
from truvar.messages import for_interface


class Optimum(Goal):
    """Members that maximum and minimum share."""

    kind = "optimum"
    one = "an optimum"
    many = "optima"
    score = Score("regret", "regret", is_share=False)
    limits = ("regret", "improvement_per_cost")
    seeks_optimum = True
    log_beta_factor = 0.5

    @property
    def summary(self) -> str:
        """The optimum: "maximum" or "minimum"."""
        return "maximum" if self.sign > 0 else "minimum"

    @property
    def question(self) -> str:
        """The goal as a question."""
        return f"where is the value {'highest' if self.sign > 0 else 'lowest'}?"

    @property
    def default_limit(self) -> dict[str, float]:
        """Regret as a share of the range of the posterior mean."""
        return {"relative_regret": 0.01}

    @property
    def direction(self) -> int:
        """Direction of the optimum."""
        return self.sign

    def within_gap(self, f: Array, gap: float) -> Mask:
        """Return the points within the gap of the optimum."""
        values = self.sign * f
        return np.asarray(values >= values.max() - gap)

    def accuracy_of_undecided(self, regions: Regions, lower: Array, upper: Array) -> float:
        """Return a distance from the optimum that no undecided point can exceed.

        An undecided point x can be as low as l(x) while another is as high as its u; where x is the
        only one left, it is the optimum.
        """
        m = regions.potential
        low, high = (lower[m], upper[m]) if self.sign > 0 else (-upper[m], -lower[m])
        if len(high) < 2:
            return 0.0
        first = np.argmax(high)
        best_of_others = np.full(len(high), high[first])
        best_of_others[first] = np.partition(high, -2)[-2]
        return max(0.0, float((best_of_others - low).max()))


@dataclass(frozen=True, init=False)
class Maximize(Optimum):
    """Find the point where f is highest.

    Args:
        subject_to: Requirements on other quantities: "impurity <= 1", or a list of them. The goal
            is then a `ConstrainedOptimum`.

    Attributes:
        monotone: Whether a point that was ruled out stays so. None: as the policy has it, which is
            True for `TruVaR`, `GCHK`, and with a beta that is proven, and False for the others.
        of: The quantity that it is about, where a study has several.
    """

    monotone: bool | None = None
    of: str | None = None
    sign = 1

    def __new__(
        cls,
        of: str | bool | None = None,
        subject_to: Any = None,
        *,
        monotone: bool | None = None,
    ) -> Self:
        """Return the goal, or `ConstrainedOptimum` with requirements on other quantities."""
        if subject_to is None:
            return super().__new__(cls)
        found: Any = _constrained(of, subject_to, False, monotone)
        return found  # type: ignore[no-any-return]

    def __init__(
        self,
        of: str | bool | None = None,
        subject_to: Any = None,
        *,
        monotone: bool | None = None,
    ) -> None:
        is_monotone = isinstance(of, bool)  # its first argument in earlier releases
        object.__setattr__(self, "monotone", of if is_monotone else monotone)
        object.__setattr__(self, "of", None if is_monotone else of)
        check_quantity(self.of)

    def __repr__(self) -> str:
        return _representation(self)

    def __str__(self) -> str:
        return for_interface("Maximize()", problem="the maximum")

    def update(self, regions: Regions, lower: Array, upper: Array) -> Regions:
        """Return the points that can be the maximiser, and those that cannot."""
        among = regions.potential if self.monotone else np.ones_like(regions.potential)
        potential = among & (upper >= lower[among].max())  # eq. (5)
        return Regions(potential, np.zeros_like(potential), ~potential)

    def epsilon(self, regions: Regions, lower: Array, upper: Array) -> float:
        """Return the largest possible gap between the maximum and the value of the reported point."""
        return max(0.0, float(upper[regions.potential].max() - lower[regions.potential].max()))


@dataclass(frozen=True, init=False)
class Minimize(Optimum):
    """Find the point where f is lowest: `Maximize` of -f.

    Args:
        subject_to: Requirements on other quantities: "impurity <= 1", or a list of them. The goal
            is then a `ConstrainedOptimum`.

    Attributes:
        monotone: Whether a point that was ruled out stays so. None: as the policy has it, which is
            True for `TruVaR`, `GCHK`, and with a beta that is proven, and False for the others.
        of: The quantity that it is about, where a study has several.
    """

    monotone: bool | None = None
    of: str | None = None
    sign = -1

    def __new__(
        cls,
        of: str | bool | None = None,
        subject_to: Any = None,
        *,
        monotone: bool | None = None,
    ) -> Self:
        """Return the goal, or `ConstrainedOptimum` with requirements on other quantities."""
        if subject_to is None:
            return super().__new__(cls)
        found: Any = _constrained(of, subject_to, True, monotone)
        return found  # type: ignore[no-any-return]

    def __init__(
        self,
        of: str | bool | None = None,
        subject_to: Any = None,
        *,
        monotone: bool | None = None,
    ) -> None:
        is_monotone = isinstance(of, bool)  # its first argument in earlier releases
        object.__setattr__(self, "monotone", of if is_monotone else monotone)
        object.__setattr__(self, "of", None if is_monotone else of)
        check_quantity(self.of)

    def __repr__(self) -> str:
        return _representation(self)

    def __str__(self) -> str:
        return for_interface("Minimize()", problem="the minimum")

    def update(self, regions: Regions, lower: Array, upper: Array) -> Regions:
        """Return the points that can be the minimiser, and those that cannot."""
        mirrored = Maximize(monotone=self.monotone).update(regions, -upper, -lower)
        return Regions(mirrored.potential, mirrored.below, mirrored.above)

    def epsilon(self, regions: Regions, lower: Array, upper: Array) -> float:
        """Return the largest possible gap between the value of the reported point and the minimum."""
        return Maximize(monotone=self.monotone).epsilon(regions, -upper, -lower)


@dataclass(frozen=True)
class ConstrainedOptimum(Goal):
    """Find the best value of one quantity among the points where requirements on others hold.

    `Maximize("yield", subject_to="impurity <= 1")` creates it.

    Attributes:
        of: The quantity that is maximised or minimised.
        subject_to: The requirements on other quantities.
        minimizes: Whether small values are good.
        monotone: Whether a point that was ruled out stays so. None: as the policy has it.
    """

    of: str
    subject_to: tuple[Requirement, ...]
    minimizes: bool = False
    monotone: bool | None = None
    kind = "constrained optimum"
    one = "an optimum with constraints"
    many = "optima with constraints"
    score = Score("regret", "regret", is_share=False)
    limits = ("regret",)
    seeks_optimum = True
    log_beta_factor = 0.5

    def __post_init__(self) -> None:
        requirements = check_requirements(self.subject_to, "subject_to")
        object.__setattr__(self, "subject_to", requirements)
        if self.of in [goal.of for goal in requirements]:
            raise InvalidArgumentError(
                f"subject_to must be about other quantities than {self.of!r}, which is the one to "
                "optimise; leave it out"
            )

    def __repr__(self) -> str:
        return f"{self._verb}({self.of!r}, subject_to={self._constraints!r})"

    def __str__(self) -> str:
        return for_interface(repr(self), problem=f"the {self.summary}")

    @property
    def _verb(self) -> str:
        return "Minimize" if self.minimizes else "Maximize"

    @property
    def _constraints(self) -> str:
        return " and ".join(constraint_text(goal) for goal in self.subject_to)

    @property
    def parts(self) -> Mapping[str, Goal]:
        """The goal of each quantity: the optimum first, then the requirements."""
        optimum = Minimize if self.minimizes else Maximize
        requirements = {str(goal.of): goal for goal in self.subject_to}
        return {self.of: optimum(monotone=self.monotone), **requirements}

    @property
    def sign(self) -> int:
        """1 for a maximum, -1 for a minimum."""
        return -1 if self.minimizes else 1

    @property
    def direction(self) -> int:
        """Direction of the optimum."""
        return self.sign

    @property
    def summary(self) -> str:
        """The optimum and its constraints: "maximum of yield with impurity <= 1"."""
        optimum = "minimum" if self.minimizes else "maximum"
        return f"{optimum} of {self.of} with {self._constraints}"

    @property
    def question(self) -> str:
        """The goal as a question."""
        best = "lowest" if self.minimizes else "highest"
        return f"where is {self.of} {best} with {self._constraints}?"

    @property
    def default_limit(self) -> dict[str, float]:
        """Regret as a share of the range of the posterior mean."""
        return {"relative_regret": 0.01}

    @property
    def cost_caveats(self) -> tuple[str, ...]:
        """The reason that there are several quantities."""
        return ("there are several quantities",)

    def with_monotone(self, monotone: bool) -> Self:
        """Return the goal with `monotone` decided, for the requirements too."""
        parts = tuple(goal.with_monotone(monotone) for goal in self.subject_to)
        return replace(self, subject_to=parts, monotone=monotone)

    def certain(self, regions: Mapping[str, Regions]) -> tuple[Mask, Mask]:
        """Return where all requirements hold, and where one fails, by the sets of each quantity."""
        each = [holds(goal, regions[str(goal.of)]) for goal in self.subject_to]
        inside = np.logical_and.reduce([inside for inside, _ in each])
        return inside, np.logical_or.reduce([outside for _, outside in each])

    def is_inside(self, values: Mapping[str, Array]) -> Mask:
        """Return where all requirements hold, given the values of every quantity: (n,)."""
        each = [satisfies(goal, values[str(goal.of)]) for goal in self.subject_to]
        return np.asarray(np.logical_and.reduce(each))

    def update(self, regions: Regions, lower: Array, upper: Array) -> Regions:
        """Return the sets of the quantity to optimise, whose bounds these are."""
        return self.parts[self.of].update(regions, lower, upper)

    def epsilon(self, regions: Regions, lower: Array, upper: Array) -> float:
        """Return the largest possible gap among the points that can be the optimum."""
        if not regions.potential.any():
            return 0.0
        return self.parts[self.of].epsilon(regions, lower, upper)

    def accuracy_of_undecided(self, regions: Regions, lower: Array, upper: Array) -> float:
        """Return a distance from the optimum that no undecided point can exceed."""
        if not regions.potential.any():
            return 0.0
        return self.parts[self.of].accuracy_of_undecided(regions, lower, upper)

    def within_gap(self, f: Array, gap: float) -> Mask:
        """Return the points within the gap of the optimum without constraints."""
        return self.parts[self.of].within_gap(f, gap)


def _representation(goal: Maximize | Minimize) -> str:
    parts = [] if goal.of is None else [repr(goal.of)]
    return f"{type(goal).__name__}({', '.join([*parts, f'monotone={goal.monotone!r}'])})"


def _constrained(
    of: Any, subject_to: Any, minimizes: bool, monotone: bool | None
) -> ConstrainedOptimum:
    """Return the goal with requirements on other quantities."""
    verb = "Minimize" if minimizes else "Maximize"
    if not isinstance(of, str) or not of.strip():
        raise InvalidArgumentError(
            f"{verb} with subject_to needs the quantity to optimise, got {of!r}; name it: "
            f'{verb}("yield", subject_to="impurity <= 1")'
        )
    return ConstrainedOptimum(of, parse_constraints(subject_to), minimizes, monotone)
