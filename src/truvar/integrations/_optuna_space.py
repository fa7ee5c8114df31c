"""Search spaces of Optuna as domains of truvar, conditional ones included.

Parameters that a trial does not have, as those of another branch of the objective, are *inactive*
in it. Which ones are active is learned from the trials: the presence of a parameter is a function
of one or two others that have finitely many values. All points that differ in inactive parameters
only are the same point, and are given one coordinate there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truvar._typing import Array, Index, Mask
from truvar.domain.box import box_fields
from truvar.domain.domain import Domain
from truvar.domain.parameters import Categorical, Integer, Log, Parameter, Range

MAX_DECIDING_LEVELS = 64  # levels of a parameter that can decide which others are active
DECIDING_TOGETHER = (1, 2)  # parameters that decide together


@dataclass(frozen=True)
class Condition:
    """Combinations of levels of some parameters for which another parameter is active.

    Attributes:
        parameter: Position of the parameter that is active or not.
        deciding: Positions of the parameters that decide.
        active: Whether it is active, an axis per deciding parameter; true for combinations that
            were not seen.
    """

    parameter: int
    deciding: tuple[int, ...]
    active: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class ConditionalDomain(Domain):
    """A box with parameters that are not active everywhere.

    Attributes:
        conditions: When which parameter is active, the deciding ones first.
        inactive: Coordinate of each parameter where it is not active, (d,).
    """

    conditions: tuple[Condition, ...] = ()
    inactive: tuple[float, ...] = ()

    def canonical(self, points: Array) -> Array:
        """Return points (q, d) with the coordinates of inactive parameters replaced."""
        return without_inactive(points, self.parameters, self.conditions, self.inactive)


def without_inactive(
    points: Array,
    parameters: Sequence[Parameter],
    conditions: Sequence[Condition],
    inactive: Sequence[float],
) -> Array:
    """Return points (q, d) with the coordinates of inactive parameters replaced."""
    if not conditions:
        return points
    replaced = np.array(points, dtype=float)
    levels: dict[
        int, Index
    ] = {}  # of the deciding parameters, most of which decide about several others
    for condition in conditions:
        for k in condition.deciding:
            if k not in levels:
                levels[k] = parameters[k].level_of(replaced[:, k])
        active = condition.active[tuple(levels[k] for k in condition.deciding)]
        if not active.all():
            replaced[~active, condition.parameter] = inactive[condition.parameter]
            levels.pop(condition.parameter, None)
    return replaced


class SearchSpace:
    """Named distributions of Optuna as parameters of truvar.

    Args:
        distributions: Optuna's distributions by parameter.

    Attributes:
        distributions: Optuna's distributions by parameter.
        parameters: The parameter of each; that of choices, which may be of any type, has their
            positions as values.
        conditions: When which parameter is active.
    """

    def __init__(self, distributions: Mapping[str, Any]) -> None:
        self.distributions = dict(distributions)
        self.parameters = tuple(
            as_parameter(distribution) for distribution in self.distributions.values()
        )
        self.conditions: tuple[Condition, ...] = ()
        self._inactive = tuple(
            float(each.from_unit(np.array([0.5]))[0]) for each in self.parameters
        )

    def domain(self, representers: int) -> Domain:
        """Return the box of the parameters.

        Args:
            representers: Number of points that sums over the box run over, at most.
        """
        names = dict(zip(self.distributions, self.parameters, strict=True))
        box = Domain(**box_fields(names, representers))
        if not self.conditions:
            return box
        points = self._without_inactive(box.points)
        _, first = np.unique(points, axis=0, return_index=True)
        return ConditionalDomain(
            box.columns,
            points[np.sort(first)],
            box.bounds,
            continuous=box.continuous,
            parameters=box.parameters,
            conditions=self.conditions,
            inactive=self._inactive,
        )

    def labelled_parameters(self) -> tuple[Parameter, ...]:
        """Return the parameters with choices as values, or texts where these are ambiguous."""
        return tuple(
            Categorical(labels(distribution.choices))
            if isinstance(parameter, Categorical)
            else parameter
            for parameter, distribution in zip(
                self.parameters, self.distributions.values(), strict=True
            )
        )

    def learn_conditions(self, params: Iterable[Mapping[str, Any]]) -> None:
        """Learn from the parameters of trials when which parameter is active."""
        given = list(params)
        present = np.array(
            [[name in each for name in self.distributions] for each in given]
        ).reshape(len(given), -1)
        points = np.array([self._coordinates(each) for each in given]).reshape(present.shape)
        depths = dict.fromkeys(np.flatnonzero(present.all(axis=0)).tolist(), 0)
        found: list[Condition] = []
        for k in np.flatnonzero(~present.all(axis=0)).tolist():
            condition = self._condition(k, present[:, k], points)
            if condition is not None:
                found.append(condition)
                depths[k] = 1 + max(depths.get(j, 0) for j in condition.deciding)
        self.conditions = tuple(sorted(found, key=lambda each: depths[each.parameter]))

    def encode(self, params: Mapping[str, Any]) -> Array:
        """Return the coordinates of a set of parameters, (d,)."""
        return np.asarray(self._without_inactive(self._coordinates(params)[None, :])[0])

    def decode(self, point: Array) -> dict[str, Any]:
        """Return the set of parameters at a point (d,)."""
        params: dict[str, Any] = {}
        for k, (name, distribution) in enumerate(self.distributions.items()):
            value = self.parameters[k].decode(float(point[k]))
            params[name] = (
                distribution.choices[value]
                if isinstance(self.parameters[k], Categorical)
                else value
            )
        return params

    def draw(self, rng: np.random.Generator) -> Array:
        """Return a random point, (d,)."""
        unit = rng.random((1, len(self.parameters)))
        return np.array([each.from_unit(unit[:, k])[0] for k, each in enumerate(self.parameters)])

    def contains(self, params: Mapping[str, Any]) -> bool:
        """Return whether all parameters of a trial are within their distributions."""
        for name, distribution in self.distributions.items():
            if name in params and not distribution._contains(
                distribution.to_internal_repr(params[name])
            ):
                return False
        return True

    def has_all_active(self, params: Mapping[str, Any]) -> bool:
        """Return whether a trial has all parameters that are active in it."""
        point = self.encode(params)
        return all(
            name in params or not self._is_active(k, point)
            for k, name in enumerate(self.distributions)
        )

    def _is_active(self, k: int, point: Array) -> bool:
        for condition in self.conditions:
            if condition.parameter == k:
                levels = tuple(
                    int(self.parameters[j].level_of(point[j : j + 1])[0])
                    for j in condition.deciding
                )
                return bool(condition.active[levels])
        return True

    def _coordinates(self, params: Mapping[str, Any]) -> Array:
        """Return coordinates (d,); a missing value gives that of an inactive parameter."""
        point = np.array(self._inactive)
        for k, (name, distribution) in enumerate(self.distributions.items()):
            if name in params:
                value = params[name]
                if isinstance(self.parameters[k], Categorical):
                    value = int(distribution.to_internal_repr(value))
                point[k] = self.parameters[k].encode(value, name)
        return point

    def _without_inactive(self, points: Array) -> Array:
        return without_inactive(points, self.parameters, self.conditions, self._inactive)

    def _condition(self, k: int, present: Mask, points: Array) -> Condition | None:
        """Return the simplest rule for whether a parameter is active that all trials agree with."""
        counts = [parameter.n_levels for parameter in self.parameters]
        deciding = [j for j, count in enumerate(counts) if j != k and count is not None]
        deciding = [j for j in deciding if (counts[j] or 0) <= MAX_DECIDING_LEVELS]
        for together in DECIDING_TOGETHER:
            for chosen in combinations(deciding, together):
                levels = tuple(self.parameters[j].level_of(points[:, j]) for j in chosen)
                active = np.ones([self.parameters[j].n_levels or 1 for j in chosen], bool)
                active[levels] = present
                if (active[levels] == present).all():
                    return Condition(k, chosen, active)
        return None


def labels(choices: Sequence[Any]) -> list[Any]:
    """Return choices as distinct values: themselves, their texts, or texts with positions."""
    if all(_is_plain(each) for each in choices) and len(set(choices)) == len(choices):
        return list(choices)
    texts = [str(each) for each in choices]
    if len(set(texts)) == len(texts):
        return list(texts)
    return [f"{position}: {text}" for position, text in enumerate(texts)]


def _is_plain(choice: Any) -> bool:
    if isinstance(choice, float):
        return bool(np.isfinite(choice))
    return choice is None or isinstance(choice, (str, int))


def as_parameter(distribution: Any) -> Parameter:
    """Return a distribution of Optuna as a parameter."""
    if hasattr(distribution, "choices"):
        return Categorical(list(range(len(distribution.choices))))
    if isinstance(distribution.low, int):
        return Integer(
            distribution.low,
            distribution.high,
            step=distribution.step or 1,
            log=bool(distribution.log),
        )
    if distribution.log:
        return Log(distribution.low, distribution.high)
    return Range(distribution.low, distribution.high, step=distribution.step)
