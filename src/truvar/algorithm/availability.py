"""Which measurements are possible: excluded points, and the learned probability of success."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from truvar._typing import Array, Mask
from truvar.domain.action import Action
from truvar.domain.domain import Domain
from truvar.domain.exclusions import Exclusion, Place, excluded_points
from truvar.domain.goals import Goal, Optimum, Regions
from truvar.models.feasibility import FeasibilityModel


@dataclass(frozen=True)
class FailedAttempt:
    """A measurement that failed.

    Attributes:
        action: The measurement.
        reason: Why, in words; None if it was not said.
        n_before: Number of values that were told before it.
    """

    action: Action
    reason: str | None
    n_before: int


@dataclass(frozen=True, eq=False)
class Availability:
    """The possible measurements by place, given exclusions and failures so far.

    Attributes:
        domain: The domain.
        exclusions: Exclusions and permissions in order, those of failed measurements included.
        succeeded: Points of successful measurements. (s, d)
        failed: Points of failed ones that were not allowed again since. (f, d)
        min_success: Places where a success is less probable than this are not measured, as long as
            there are others.
    """

    domain: Domain
    exclusions: tuple[Exclusion, ...]
    succeeded: Array
    failed: Array
    min_success: float = 0.0

    @cached_property
    def excluded(self) -> Mask:
        """Points of the domain that are not to be measured, (n,)."""
        mask = excluded_points(self.exclusions, self.domain)
        mask.setflags(write=False)
        return mask

    @cached_property
    def feasibility(self) -> Array:
        """Probability of success at each point of the domain; 0 where it is excluded: (n,)."""
        probability = np.where(self.excluded, 0.0, self._success(self.domain.points))
        probability.setflags(write=False)
        return probability

    @property
    def regional(self) -> float:
        """Probability that failures depend on the place, rather than on chance."""
        return self._model.regional if len(self.failed) else 0.0

    @property
    def infeasible_share(self) -> float:
        """Expected share of the domain that cannot be measured."""
        return float(1.0 - self.feasibility.mean())

    def feasibility_at(self, points: Array) -> Array:
        """Return the probability that a measurement succeeds at points (q, d): (q,)."""
        return np.where(self.allows(points), self._success(points), 0.0)

    def allows(self, points: Array) -> Mask:
        """Return which points (q, d) are not excluded: (q,)."""
        return ~excluded_points(self.exclusions, self.domain, points)

    def _success(self, points: Array) -> Array:
        if len(self.failed) == 0:
            return np.ones(len(points))
        probability = self._model.probability(self._scaled(points))
        return np.where(probability >= self._min_success_in_use, probability, 0.0)

    @cached_property
    def _min_success_in_use(self) -> float:
        """`min_success`; 0 if no point of the domain is as likely to succeed."""
        if self.min_success == 0:
            return 0.0
        probability = self._model.probability(self._scaled(self.domain.points[~self.excluded]))
        return self.min_success if (probability >= self.min_success).any() else 0.0

    @cached_property
    def _model(self) -> FeasibilityModel:
        tried = np.vstack([self.succeeded, self.failed])
        columns: list[list[int]] = []
        for width in (block.shape[1] for block in self._scaled_columns(tried)):
            first = sum(map(len, columns))
            columns.append(list(range(first, first + width)))
        succeeded = np.arange(len(tried)) < len(self.succeeded)
        return FeasibilityModel.fit(self._scaled(tried), succeeded, columns)

    def _scaled(self, points: Array) -> Array:
        """Return points in extents of the domain; categories by indicators, two of them 1 apart."""
        return np.hstack(self._scaled_columns(points))

    def _scaled_columns(self, points: Array) -> list[Array]:
        low = self.domain.bounds[:, 0]
        scaled = (points - low) / self.domain.extent
        blocks: list[Array] = []
        for k in range(points.shape[1]):
            if k in self.domain.categorical:
                levels = np.arange(self.domain.parameters[k].n_levels or 1)
                blocks.append((points[:, k, None] == levels) / np.sqrt(2.0))
            else:
                blocks.append(scaled[:, k, None])
        return blocks


def failures_left(
    failures: Sequence[FailedAttempt],
    exclusions: Sequence[Exclusion],
    order: Sequence[int],
    domain: Domain,
) -> Array:
    """Return the points (f, d) of failed measurements that were not allowed again later.

    Args:
        failures: The failed measurements.
        exclusions: Exclusions and permissions in order.
        order: Position of the exclusion that belongs to each failure.
        domain: The domain.
    """
    d = len(domain.columns)
    left = []
    for failure, position in zip(failures, order, strict=True):
        point = failure.action.point[:d]
        later = [each.place for each in exclusions[position + 1 :] if each.allowed]
        if not any(place.contains(domain, point[None, :])[0] for place in later):
            left.append(point)
    return np.array(left).reshape(-1, d)


@dataclass(frozen=True)
class AmongAllowed(Optimum):
    """An optimum among the points that are not excluded.

    Attributes:
        goal: The goal, an optimum.
        excluded: Points that cannot be the answer. (n,)
    """

    goal: Goal
    excluded: Mask

    @property
    def monotone(self) -> bool | None:  # type: ignore[override]
        """Whether a point that was ruled out stays so."""
        return self.goal.monotone

    @property
    def sign(self) -> int:
        """Direction of good values."""
        return self.goal.sign

    def update(self, regions: Regions, lower: Array, upper: Array) -> Regions:
        """Return the regions with the excluded points ruled out."""
        worst = -self.sign * np.inf
        return self.goal.update(
            regions, np.where(self.excluded, worst, lower), np.where(self.excluded, worst, upper)
        )

    def targets(self, regions: Regions, lower: Array, upper: Array) -> Mask:
        """Return M_t."""
        return self.goal.targets(regions, lower, upper)

    def epsilon(self, regions: Regions, lower: Array, upper: Array) -> float:
        """Return the accuracy of the answer if the bounds hold."""
        return self.goal.epsilon(regions, lower, upper)


def place_of(action: Action, domain: Domain) -> Place:
    """Return the place of a measurement."""
    return Place(point=domain.named(action.point[: len(domain.columns)]))
