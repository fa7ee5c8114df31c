"""What can be done next, lowered to one table: cost, noise, levels, travel and tasks all become `Candidates`.

| paper | here | shape |
|---|---|---|
| sigma^2(x) | `Candidates.noise` | (c, K) |
| c(x) | `Candidates.cost` | (c, K) |
| D = D0 x {1..K} | c places with K noise levels each; flat row = place * K + level | |
| multi-task | places of other tasks follow those of the target task | c = n x tasks |

A *site* is a place the model keeps track of: a point of the domain, and with tasks a point of one task (the task's
index is then the last coordinate). The first n sites are the points of D themselves, which M, H and L speak of.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from inspect import signature
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truvar.domain.domain import Array, Domain, number
from truvar.exceptions import TruvarError
from truvar.messages import format_point

Index = NDArray[np.intp]
NoiseLike: TypeAlias = "float | str | ArrayLike | Callable[[Array], ArrayLike] | NoiseLevels"
CostLike: TypeAlias = "float | str | ArrayLike | Callable[[Array, Array | None], ArrayLike] | Cost"


# -- what the user says ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NoiseLevels:
    """Precisions to choose from at every point: their noise variances, and what each adds to the cost."""

    variance: Sequence[float]
    cost: Sequence[float]

    def __post_init__(self) -> None:
        if np.ndim(self.variance) != 1 or np.shape(self.variance) != np.shape(self.cost) or len(self.variance) == 0:
            raise TruvarError(
                "noise levels need as many costs as variances and at least one, but the variances were "
                f"{self.variance!r} and the costs {self.cost!r}; give two lists of the same length"
            )
        for k, (variance, cost) in enumerate(zip(self.variance, self.cost, strict=True)):
            not_negative(variance, f"the variance of noise level {k}")
            not_negative(cost, f"the cost of noise level {k}")


@dataclass(frozen=True)
class Cost:
    """base + sum of travel rate x |x - last x| + sum of magnitude rate x |x|, by column.

    The paper's 0.25 |x1 - x1'| + 4 (|x2| + 1) is `Cost(base=4, travel={"x1": 0.25}, magnitude={"x2": 4})`.
    """

    base: float | str = 0.0
    travel: Mapping[str, float] = field(default_factory=dict)
    magnitude: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for kind in ("travel", "magnitude"):
            rates = getattr(self, kind)
            if not isinstance(rates, Mapping):
                raise TruvarError(
                    f"{kind} must be the rates by column, but it was {rates!r}; give a dict such as {{'x': 0.25}}"
                )
            for name, rate in rates.items():
                not_negative(rate, f"the {kind} rate of {name!r}")


@dataclass(frozen=True)
class Tasks:
    """Correlated quantities that can be measured instead of the target, which is task 0.

    The covariance between quantity i at x and j at x' is `covariance[i][j]` k(x, x'). Each task may have its own noise,
    cost and prior mean; None takes over the study's.
    """

    covariance: Sequence[Sequence[float]]
    names: Sequence[str]
    noise: Sequence[float] | None = None
    cost: Sequence[float] | None = None
    mean: Sequence[float] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.names, str) or len(self.names) < 2 or len(set(self.names)) != len(self.names):
            raise TruvarError(
                f"tasks need a list of at least two different names, but it was {self.names!r}; "
                "give one such as ['target', 'proxy'], the target first"
            )
        count = len(self.names)
        try:
            matrix = np.asarray(self.covariance, dtype=float)
        except (TypeError, ValueError):
            matrix = np.empty(0)
        if matrix.shape != (count, count) or not np.isfinite(matrix).all():
            raise TruvarError(
                f"{count} tasks need a covariance of {count} x {count} finite numbers, but it was {self.covariance!r}; "
                "give one row per task"
            )
        least = np.linalg.eigvalsh(matrix)[0]
        if not np.allclose(matrix, matrix.T) or least < -1e-10 * np.trace(matrix):
            raise TruvarError(
                f"the covariance between tasks must be symmetric and positive semi-definite, but it was "
                f"{matrix.tolist()}, whose smallest eigenvalue is {least:.3g}; lower the covariances off its diagonal"
            )
        for kind in ("noise", "cost", "mean"):
            values = getattr(self, kind)
            if values is None:
                continue
            if np.shape(values) != (count,):
                raise TruvarError(f"tasks need one {kind} per task, {count} numbers, but it was {values!r}; mend it")
            for name, value in zip(self.names, values, strict=True):
                check = number if kind == "mean" else not_negative
                check(value, f"the {kind} of task {name!r}")


# -- the table -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Candidates:
    """What can be done next: c places, K noise levels each. A flat row is place * K + level."""

    points: Array  # (c, d'): where, with the task as last coordinate if there are tasks
    noise: Array  # (c, K)
    cost: Array  # (c, K)
    where: Index | None  # (c,): the sites, or None where the points are no sites

    def __len__(self) -> int:
        return self.noise.size

    @property
    def levels(self) -> int:
        """K, the number of noise levels."""
        return int(self.noise.shape[1])

    def take(self, places: Index) -> Candidates:
        """The table restricted to some places."""
        where = None if self.where is None else self.where[places]
        return Candidates(self.points[places], self.noise[places], self.cost[places], where)


class ActionSpace:
    """The user's noise, cost and tasks on a domain; `candidates(last)` is the table for the next choice."""

    def __init__(self, domain: Domain, noise: NoiseLike, cost: CostLike | None, tasks: Tasks | None) -> None:
        if tasks is not None and not isinstance(tasks, Tasks):
            raise TruvarError(f"tasks must be Tasks(covariance, names), but it was {tasks!r}; give that")
        self.domain = domain
        self.tasks = tasks
        self.levels = noise if isinstance(noise, NoiseLevels) else None
        if tasks is not None and self.levels is not None:
            raise TruvarError(
                "noise levels and tasks cannot be combined; give each level as a task with covariance 1 instead"
            )
        check_takes(noise, "noise", "points")
        check_takes(cost, "cost", "points", "last")
        self._noise = noise
        self._cost: CostLike = (0.0 if self.levels is not None else 1.0) if cost is None else cost
        self.sites = self._table(domain.points, np.arange(len(domain)), last=None).points

    @property
    def travels(self) -> bool:
        """Whether the cost depends on the last position, which puts it outside the paper's theorem."""
        return callable(self._cost) or (isinstance(self._cost, Cost) and any(self._cost.travel.values()))

    @cached_property
    def cheapest_and_dearest(self) -> tuple[float, float]:
        """c_min and c_max of the paper, without travel."""
        cost = self.candidates(None).cost
        return float(cost.min()), float(cost.max())

    def candidates(self, last: Array | None) -> Candidates:
        """The table over all sites, seen from the last position (d,)."""
        return self._seen_from(last) if self.travels or callable(self._noise) else self._at_rest

    @cached_property
    def _at_rest(self) -> Candidates:
        """The table where it is the same for every choice."""
        return self._seen_from(None)

    def _seen_from(self, last: Array | None) -> Candidates:
        table = self._table(self.domain.points, np.arange(len(self.domain)), last)
        return Candidates(table.points, table.noise, table.cost, np.arange(len(table.points)))

    def legs(self, sites: Index) -> Array:
        """The cost of each of some points of the domain (columns, K) coming from each of them (rows): (q, q, K)."""
        points = self.domain.points[sites]
        if callable(self._cost):
            return np.stack([self._cost_at(points, sites, last) for last in points])
        legs = np.repeat(self._cost_at(points, sites, None)[None], len(sites), axis=0)
        for name, rate in (self._cost.travel if isinstance(self._cost, Cost) else {}).items():
            x = points[:, self._coordinate(name)]
            legs += rate * np.abs(x[:, None] - x)[:, :, None]
        return legs

    def at(self, points: Array, last: Array | None) -> Candidates:
        """The table over other points (m, d), in a box or between the points of a grid."""
        base = self._cost.base if isinstance(self._cost, Cost) else self._cost
        anywhere = all(isinstance(value, (float, int, NoiseLevels)) or callable(value) for value in (self._noise, base))
        nearest = None if anywhere else np.array([self.domain.nearest(x) for x in points])
        return self._table(points, nearest, last)

    def task_index(self, name: str | None) -> int:
        """The task by name; the target if None."""
        if name is None or (self.tasks is not None and name == self.tasks.names[0]):
            return 0
        if self.tasks is None or name not in self.tasks.names:
            known = "none" if self.tasks is None else ", ".join(self.tasks.names)
            raise TruvarError(f"task must be one of this study's ({known}), but it was {name!r}; correct the name")
        return list(self.tasks.names).index(name)

    def _table(self, points: Array, index: Index | None, last: Array | None) -> Candidates:
        """The table over the points (m, d); `index` says which row of a given array or column each of them takes."""
        noise = self._noise_at(points, index)
        cost = self._cost_at(points, index, last)
        if self.tasks is None:
            return Candidates(points, noise, cost, None)
        count, m = len(self.tasks.names), len(points)
        sites = np.column_stack([np.tile(points, (count, 1)), np.repeat(np.arange(count), m)])
        noises, costs = np.tile(noise, (count, 1)), np.tile(cost, (count, 1))
        for task in range(count):
            rows = slice(task * m, (task + 1) * m)
            if self.tasks.noise is not None:
                noises[rows] = self.tasks.noise[task]
            if self.tasks.cost is not None:  # a task's own cost replaces the study's base, travel stays
                costs[rows] = costs[rows] - self._base(points, index)[:, None] + self.tasks.cost[task]
        if (costs <= 0).any():
            task = int(np.argmax((costs <= 0).any(axis=1))) // m
            raise TruvarError(
                f"every task must cost more than 0 everywhere, but {self.tasks.names[task]!r} costs {costs.min():g} "
                "somewhere; give the tasks positive costs"
            )
        return Candidates(sites, noises, costs, None)

    def _noise_at(self, points: Array, index: Index | None) -> Array:
        if self.levels is not None:
            return np.tile(np.asarray(self.levels.variance, dtype=float), (len(points), 1))
        noise: Any = self._noise(points) if callable(self._noise) else self._on_domain(self._noise, "noise", index)
        return _checked(noise, "noise", count=len(points))[:, None]

    def _cost_at(self, points: Array, index: Index | None, last: Array | None) -> Array:
        if isinstance(self._cost, Cost):
            cost = self._base(points, index).copy()
            for name, rate in self._cost.magnitude.items():
                cost += rate * np.abs(points[:, self._coordinate(name)])
            for name, rate in self._cost.travel.items():
                k = self._coordinate(name)
                if last is not None:  # the first measurement pays no travel
                    cost += rate * np.abs(points[:, k] - last[k])
        elif callable(self._cost):
            cost = _checked(self._cost(points, last), "cost", count=len(points))
        else:
            cost = self._base(points, index)
        costs = np.asarray(cost[:, None] + (0.0 if self.levels is None else np.asarray(self.levels.cost, dtype=float)))
        if (costs <= 0).any():  # measuring where one already is must cost something, too
            free = points[int(np.argwhere(costs <= 0)[0][0])]
            raise TruvarError(
                f"every measurement must cost more than 0, but {format_point(self.domain.named(free))} costs "
                f"{costs.min():g}{'' if last is not None else ' (without travel)'}; give cost a positive base"
            )
        return costs

    def _base(self, points: Array, index: Index | None) -> Array:
        """The part of the cost that is a number, column or array."""
        if callable(self._cost):
            return np.zeros(len(points))
        base = self._cost.base if isinstance(self._cost, Cost) else self._cost
        return _checked(self._on_domain(base, "cost", index), "cost", count=len(points))

    def _on_domain(self, value: Any, what: str, index: Index | None) -> Any:
        """A number as it is; a column or an array over the domain, at the given rows of it."""
        if isinstance(value, str):
            value = self.domain.column(value)
        array = _floats(value, what)
        if array.ndim == 0:
            return array
        if array.shape != (len(self.domain),):
            raise TruvarError(
                f"{what} as an array needs one value per point of the domain, shape ({len(self.domain)},), "
                f"but its shape was {array.shape}; give it that many values"
            )
        return array if index is None else array[index]

    def _coordinate(self, name: str) -> int:
        if name not in self.domain.columns:
            raise TruvarError(
                f"cost must name columns of the domain ({', '.join(self.domain.columns)}), but there was {name!r}; "
                "correct the name"
            )
        return self.domain.columns.index(name)


def check_takes(function: Any, what: str, *names: str) -> None:
    """Refuses a function that cannot be called with these arguments; what is no function is left alone."""
    if not callable(function) or isinstance(function, type):
        return
    try:
        signature(function).bind(*names)
    except ValueError:  # some built-in functions do not say what they take
        return
    except TypeError as error:
        raise TruvarError(
            f"{what} as a function is called as {what}({', '.join(names)}), but the one given cannot be ({error}); "
            f"write it with {len(names)} argument{'s' * (len(names) > 1)}"
        ) from None


def not_negative(value: Any, what: str) -> float:
    """`value` as a finite float of at least 0, or a message that names it."""
    result = number(value, what)
    if result < 0:
        raise TruvarError(f"{what} cannot be negative, but it was {value!r}; give 0 or more")
    return result


def _floats(value: Any, what: str) -> Array:
    try:
        return np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise TruvarError(
            f"{what} must be a number, a column name, an array of numbers or a function, but it was {value!r}; "
            "give one of them"
        ) from None


def _checked(value: Any, what: str, count: int) -> Array:
    """`value` as (count,) finite floats of at least 0, or a message that names the first that is not."""
    array = _floats(value, what)
    if array.ndim > 1 or (array.ndim == 1 and array.shape != (count,)):
        raise TruvarError(
            f"{what} must be one number per point, shape ({count},), but its shape was {array.shape}; "
            "return as many numbers as there are points"
        )
    bad = ~(np.isfinite(array) & (array >= 0))
    if bad.any():
        row = int(np.flatnonzero(np.atleast_1d(bad))[0])
        worst = np.atleast_1d(array)[row]
        where = f" (row {row})" if array.ndim else ""
        raise TruvarError(f"{what} must be finite and not negative, but it was {worst}{where}; give 0 or more there")
    return np.broadcast_to(array, (count,)).astype(float)
