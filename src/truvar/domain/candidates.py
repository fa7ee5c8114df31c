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

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from truvar._typing import Array, Index
from truvar.domain.costs import Cost, CostLike, NoiseLevels, NoiseLike, Tasks
from truvar.domain.domain import Domain
from truvar.exceptions import TruvarError
from truvar.messages import format_point
from truvar.validation import check_array, check_callable, check_nonnegative_array

# -- the table -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Candidates:
    """What can be done next: c places, K noise levels each. A flat row is place * K + level."""

    points: Array  # (c, d'): where, with the task as last coordinate if there are tasks
    noise: Array  # (c, K)
    cost: Array  # (c, K)
    sites: Index | None  # (c,): rows of the model grid, or None if the points are not on it

    def __len__(self) -> int:
        return self.noise.size

    @property
    def n_levels(self) -> int:
        """K, the number of noise levels."""
        return int(self.noise.shape[1])

    def take(self, rows: Index) -> Candidates:
        """Return the table restricted to some rows."""
        sites = None if self.sites is None else self.sites[rows]
        return Candidates(self.points[rows], self.noise[rows], self.cost[rows], sites)


def model_sites(points: Array, tasks: Tasks | None) -> Array:
    """Return the sites that belong to points (m, d) of the domain.

    Without tasks these are the points; with tasks every point appears once per task, the target first, with the task's
    index as a further coordinate: (m x tasks, d + 1).
    """
    if tasks is None:
        return points
    count = len(tasks.names)
    return np.column_stack([np.tile(points, (count, 1)), np.repeat(np.arange(count), len(points))])


class ActionSpace:
    """The user's noise, cost and tasks on a domain; `candidates(last)` is the table for the next choice."""

    def __init__(self, domain: Domain, noise: NoiseLike, cost: CostLike | None, tasks: Tasks | None) -> None:
        if tasks is not None and not isinstance(tasks, Tasks):
            raise TruvarError(f"tasks must be Tasks(covariance, names), got {tasks!r}; give that")
        self.domain = domain
        self.tasks = tasks
        self.noise_levels = noise if isinstance(noise, NoiseLevels) else None
        if tasks is not None and self.noise_levels is not None:
            raise TruvarError(
                "noise levels and tasks cannot be combined; give each level as a task with covariance 1 instead"
            )
        check_callable(noise, "noise", "points")
        check_callable(cost, "cost", "points", "last")
        self._noise = noise
        self._cost: CostLike = (0.0 if self.noise_levels is not None else 1.0) if cost is None else cost
        self.sites = self._table(domain.points, np.arange(len(domain)), last=None).points

    @property
    def travels(self) -> bool:
        """Whether the cost depends on the last position, which puts it outside the paper's theorem."""
        return callable(self._cost) or (isinstance(self._cost, Cost) and any(self._cost.travel.values()))

    @cached_property
    def cost_range(self) -> tuple[float, float]:
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

    def pairwise_costs(self, sites: Index) -> Array:
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
            raise TruvarError(f"task must be one of this study's ({known}), got {name!r}; correct the name")
        return list(self.tasks.names).index(name)

    def _table(self, points: Array, index: Index | None, last: Array | None) -> Candidates:
        """The table over the points (m, d); `index` says which row of a given array or column each of them takes."""
        noise = self._noise_at(points, index)
        cost = self._cost_at(points, index, last)
        if self.tasks is None:
            return Candidates(points, noise, cost, None)
        count, m = len(self.tasks.names), len(points)
        sites = model_sites(points, self.tasks)
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
        if self.noise_levels is not None:
            return np.tile(np.asarray(self.noise_levels.variance, dtype=float), (len(points), 1))
        noise: Any = self._noise(points) if callable(self._noise) else self._on_domain(self._noise, "noise", index)
        return check_nonnegative_array(noise, "noise", count=len(points))[:, None]

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
            cost = check_nonnegative_array(self._cost(points, last), "cost", count=len(points))
        else:
            cost = self._base(points, index)
        costs = np.asarray(
            cost[:, None] + (0.0 if self.noise_levels is None else np.asarray(self.noise_levels.cost, dtype=float))
        )
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
        return check_nonnegative_array(self._on_domain(base, "cost", index), "cost", count=len(points))

    def _on_domain(self, value: Any, what: str, index: Index | None) -> Any:
        """A number as it is; a column or an array over the domain, at the given rows of it."""
        if isinstance(value, str):
            value = self.domain.column(value)
        array = check_array(value, what)
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
