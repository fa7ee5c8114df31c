"""A problem with the cost of every measurement: prices, noise levels, and the model if it is given."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

import truvar as tv
from benchmarks.instances import Array, Instance
from truvar.problem import Problem

Half = Literal["tuning", "reported"]

UNIT_BUDGET = 60.0  # measurements at a cost of 1 each


@dataclass(frozen=True)
class Price:
    """Cost of measurements: a base or a cost per candidate, travel, and magnitudes by column.

    Attributes:
        base: Cost of every measurement.
        travel: Cost per unit of distance from the last measurement, by column.
        magnitude: Cost per unit of the absolute coordinate, by column.
        own: Function that returns the cost of every candidate, instead of `base`.
    """

    base: float = 1.0
    travel: Mapping[str, float] = field(default_factory=dict)
    magnitude: Mapping[str, float] = field(default_factory=dict)
    own: Callable[[], Array] | None = None

    @property
    def varies(self) -> bool:
        """Whether measurements differ in cost."""
        return bool(self.travel or self.magnitude or self.own)

    def of_candidates(self, domain: tv.Domain) -> Array:
        """Return the cost of every candidate without travel, (n,)."""
        if self.own is not None:
            return self.own()
        rates = _by_column(domain, self.magnitude)
        return np.asarray(self.base + np.abs(domain.points) @ rates)

    def for_study(self) -> tv.Cost | Array | float:
        """Return the cost as a study is given it."""
        if self.own is not None:
            return self.own()
        return tv.Cost(self.base, self.travel, self.magnitude) if self.varies else self.base


@dataclass(frozen=True)
class Known:
    """A model that is given: nothing has to be learned.

    Attributes:
        kernel: "rbf", "matern32" or "matern52".
        lengthscales: One per column, in its unit.
        variance: Variance of the process.
        mean: Mean of the process.
        noise: Variance of the errors of measurements.
        problem: The problem as truvar is given it.
    """

    kernel: str
    lengthscales: tuple[float, ...]
    variance: float
    mean: float
    noise: float
    problem: Problem


@dataclass(frozen=True)
class Priced:
    """One start of a problem, with costs.

    An action is a row of the domain; where there are noise levels, it is a row plus the number of
    rows times the level.

    Attributes:
        instance: Candidates, truth, goal and noise; with levels, the noise of every action.
        price: What measurements cost.
        budget: What may be spent.
        levels: Precisions to choose from; None: there is one.
        known: The model, if it is given.
    """

    instance: Instance
    price: Price
    budget: float
    levels: tv.NoiseLevels | None = None
    known: Known | None = None

    def costs(self, last: int | None) -> Array:
        """Return the cost of every action after the action `last`, (n,)."""
        domain = self.instance.domain
        own = self.price.of_candidates(domain)
        if last is not None and self.price.travel:
            distance = np.abs(domain.points - domain.points[last % len(domain)])
            own = np.asarray(own + distance @ _by_column(domain, self.price.travel))
        if self.levels is None:
            return own
        return np.concatenate([own + extra for extra in self.levels.cost])

    def measure(self, action: int, number: int) -> float:
        """Return the value of measurement `number` (from 1)."""
        if self.levels is None:
            return self.instance.measure(action, number)
        error = self.instance.noise.draw(self.instance.seed, action, number)
        return float(self.instance.truth[action % len(self.instance.domain)]) + error

    @property
    def varies(self) -> bool:
        """Whether measurements differ in cost."""
        return self.price.varies or self.levels is not None


@dataclass(frozen=True)
class Case:
    """A problem of the suite.

    Attributes:
        name: Its name.
        half: "tuning" or "reported".
        make: Function from the number of the start to the instance.
        price: What measurements cost.
        budget: What may be spent.
        levels: Precisions to choose from.
        known: Function from the number of the start to the model that is given.
    """

    name: str
    half: Half
    make: Callable[[int], Instance]
    price: Price = field(default_factory=Price)
    budget: float = UNIT_BUDGET
    levels: tv.NoiseLevels | None = None
    known: Callable[[int], Known] | None = None

    def start(self, number: int) -> Priced:
        """Return a start of the problem."""
        known = None if self.known is None else self.known(number)
        return Priced(self.make(number), self.price, self.budget, self.levels, known)


def _by_column(domain: tv.Domain, rates: Mapping[str, float]) -> Array:
    """Return the rate of each column, (d,).

    Raises:
        ValueError: If a rate names no column, so that it would not be charged.
    """
    unknown = set(rates).difference(domain.columns)
    if unknown:
        known = ", ".join(domain.columns)
        raise ValueError(f"rates must name columns ({known}), got {sorted(unknown)}")
    return np.array([rates.get(name, 0.0) for name in domain.columns])
