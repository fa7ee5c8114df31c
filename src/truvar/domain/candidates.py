"""The table of candidates: cost, noise, noise levels, travel and tasks are all lowered to `Candidates`.

| paper | here | shape |
|---|---|---|
| sigma^2(x) | `Candidates.noise` | (c, K) |
| c(x) | `Candidates.cost` | (c, K) |
| D = D0 x {1..K} | c rows with K noise levels each; flat index = row * K + level | |
| multi-task | the rows of the other tasks follow those of the target task | c = n x tasks |
| cost of a task at a noise level | that of the task instead of the base cost, plus that of the level | |

A *site* is a row of the grid that the model is evaluated on: a point of the domain, or with tasks a point of one task,
with the index of the task as the last coordinate. The first n sites are the points of D, which M, H and L refer to.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from truvar._typing import Array, Index
from truvar.domain.costs import Cost, CostLike, NoiseLevels, NoiseLike, Tasks
from truvar.domain.domain import Domain
from truvar.exceptions import InvalidArgumentError
from truvar.messages import format_point, unknown_name
from truvar.validation import check_array, check_callable, check_nonnegative_array


@dataclass(frozen=True)
class Candidates:
    """Table of what can be measured next: c rows with K noise levels each.

    Attributes:
        points: Coordinates, shape (c, d'); with tasks the index of the task is the last coordinate.
        noise: Noise variances, shape (c, K).
        cost: Costs, shape (c, K).
        sites: Row of the model grid for each row, shape (c,), or None if the points are not on the grid.
    """

    points: Array
    noise: Array
    cost: Array
    sites: Index | None

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


@dataclass(frozen=True)
class CoordinateFunction:
    """A function of the model's coordinates; functions that users give take their own values instead.

    Attributes:
        function: Takes coordinates (q, d) and returns (q,).
    """

    function: Callable[[Array], Array]

    def __call__(self, points: Array) -> Array:
        """Return the values at points (q, d)."""
        return self.function(points)


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
    """Noise, cost and tasks on a domain; `candidates(last)` is the table for the next choice.

    Args:
        domain: The domain.
        noise: Noise variance, as `Study` takes it.
        cost: Cost, as `Study` takes it. Default: 1, or 0 with noise levels, whose costs are added to it.
        tasks: Tasks, or None.

    Attributes:
        noise_levels: The noise levels to choose from, or None.

    Raises:
        InvalidArgumentError: If noise or cost is invalid somewhere on the domain, or a measurement would be free.
        InvalidModelError: If the noise of the tasks does not fit the noise levels.
    """

    def __init__(self, domain: Domain, noise: NoiseLike, cost: CostLike | None, tasks: Tasks | None) -> None:
        if tasks is not None and not isinstance(tasks, Tasks):
            raise InvalidArgumentError(f"tasks must be an object Tasks(names=[...]), got {tasks!r}; give one")
        self.domain = domain
        self.tasks = tasks
        self.noise_levels = noise if isinstance(noise, NoiseLevels) else None
        check_callable(noise, "noise", "points")
        check_callable(cost, "cost", "points", "last")
        if cost is None:
            cost = 1.0 if self.noise_levels is None else 0.0
        self._noise = noise
        self._cost: CostLike = cost
        self._table(domain.points, np.arange(len(domain)), last=None)  # raises now if noise or cost is invalid

    @property
    def n_levels(self) -> int:
        """K, the number of noise levels."""
        return 1 if self.noise_levels is None else len(self.noise_levels.variance)

    @property
    def travels(self) -> bool:
        """Whether the cost depends on the last position, which the theorem of the paper does not cover."""
        return callable(self._cost) or (isinstance(self._cost, Cost) and any(self._cost.travel.values()))

    @cached_property
    def cost_range(self) -> tuple[float, float]:
        """c_min and c_max of the paper, without travel."""
        cost = self.candidates(None).cost
        return float(cost.min()), float(cost.max())

    def candidates(self, last: Array | None) -> Candidates:
        """Return the table over all sites.

        Args:
            last: Last position, shape (d,), from which travel is counted; None: there is none yet.
        """
        if self.travels or callable(self._noise):
            return self._domain_table(last)
        return self._constant_table

    @cached_property
    def _constant_table(self) -> Candidates:
        """The table, if it is the same for every choice."""
        return self._domain_table(None)

    def _domain_table(self, last: Array | None) -> Candidates:
        table = self._table(self.domain.points, np.arange(len(self.domain)), last)
        return Candidates(table.points, table.noise, table.cost, np.arange(len(table.points)))

    def pairwise_costs(self, sites: Index) -> Array:
        """Return the cost of each of some points after each of them.

        Args:
            sites: Rows of q points of the domain.

        Returns:
            Costs of shape (q, q, K): the first axis is the position before, the second the point that is measured.
        """
        points = self.domain.points[sites]
        if callable(self._cost):
            return np.stack([self._cost_at(points, sites, last) for last in points])
        numbers = self.domain.numbers(points)
        costs = np.repeat(self._cost_at(points, sites, None)[None], len(sites), axis=0)
        travel = self._cost.travel if isinstance(self._cost, Cost) else {}
        for name, rate in travel.items():
            x = numbers[:, self._column_index(name)]
            costs += rate * np.abs(x[:, None] - x)[:, :, None]
        return costs

    def candidates_at(self, points: Array, last: Array | None) -> Candidates:
        """Return the table over other points, inside a box or between the points of a grid.

        Args:
            points: Coordinates, shape (m, d).
            last: Last position, shape (d,), or None.
        """
        base = self._cost.base if isinstance(self._cost, Cost) else self._cost
        given = (self._noise, base)
        anywhere = all(isinstance(value, (float, int, NoiseLevels)) or callable(value) for value in given)
        # Columns and arrays have values only at the points of the domain: the nearest one counts.
        nearest = None if anywhere else np.array([self.domain.nearest(x) for x in points])
        return self._table(points, nearest, last)

    def task_index(self, name: str | None) -> int:
        """Return the index of a task; None is the target, task 0.

        Raises:
            InvalidArgumentError: If there is no such task.
        """
        if name is None or (self.tasks is not None and name == self.tasks.names[0]):
            return 0
        if self.tasks is None:
            raise InvalidArgumentError(f"unknown task {name!r}; this study has none, leave it out")
        if name not in self.tasks.names:
            raise InvalidArgumentError(unknown_name("task", name, self.tasks.names))
        return list(self.tasks.names).index(name)

    def _table(self, points: Array, index: Index | None, last: Array | None) -> Candidates:
        """Return the table over points (m, d).

        Args:
            points: Coordinates.
            index: Row of the domain whose value each point takes from an array or column; None if there are none.
            last: Last position, or None.
        """
        noise = self._noise_at(points, index)
        cost = self._cost_at(points, index, last)
        if self.tasks is None:
            return Candidates(points, noise, cost, None)
        m = len(points)
        count = len(self.tasks.names)
        noises = np.tile(noise, (count, 1))
        costs = np.tile(cost, (count, 1))
        for task in range(count):
            rows = slice(task * m, (task + 1) * m)
            own_noise = self.tasks.noise_of(task, self.n_levels)
            if own_noise is not None:
                noises[rows] = own_noise
            if self.tasks.cost is not None:  # the cost of a task replaces the base cost; travel is still paid
                costs[rows] = costs[rows] - self._base_cost(points, index)[:, None] + self.tasks.cost[task]
        if (costs <= 0).any():
            task = int(np.argmax((costs <= 0).any(axis=1))) // m
            raise InvalidArgumentError(
                f"every task must cost more than 0 everywhere, but {self.tasks.names[task]!r} costs {costs.min():g} "
                "somewhere; give the tasks positive costs"
            )
        return Candidates(model_sites(points, self.tasks), noises, costs, None)

    def _noise_at(self, points: Array, index: Index | None) -> Array:
        """Return the noise variances at points, shape (m, K)."""
        if self.noise_levels is not None:
            return np.tile(np.asarray(self.noise_levels.variance, dtype=float), (len(points), 1))
        noise: Any
        if isinstance(self._noise, CoordinateFunction):
            noise = self._noise(points)
        elif callable(self._noise):
            noise = self._noise(self.domain.values(points))
        else:
            noise = self._on_domain(self._noise, "noise", index)
        return check_nonnegative_array(noise, "noise", count=len(points))[:, None]

    def _cost_at(self, points: Array, index: Index | None, last: Array | None) -> Array:
        """Return the costs at points, shape (m, K), without those of tasks."""
        if isinstance(self._cost, Cost):
            cost = self._base_cost(points, index).copy()
            numbers = self.domain.numbers(points)
            before = None if last is None else self.domain.numbers(last[None, :])[0]
            for name, rate in self._cost.magnitude.items():
                cost += rate * np.abs(numbers[:, self._column_index(name)])
            for name, rate in self._cost.travel.items():
                k = self._column_index(name)
                if before is not None:  # the first measurement pays no travel
                    cost += rate * np.abs(numbers[:, k] - before[k])
        elif callable(self._cost):
            values = self.domain.values(points)
            before = None if last is None else self.domain.values(last[None, :])[0]
            cost = check_nonnegative_array(self._cost(values, before), "cost", count=len(points))
        else:
            cost = self._base_cost(points, index)
        costs = cost[:, None]
        if self.noise_levels is not None:
            costs = costs + np.asarray(self.noise_levels.cost, dtype=float)
        replaced = self.tasks is not None and self.tasks.cost is not None  # then `_table` checks the sums
        if not replaced and (costs <= 0).any():  # a second measurement at the last position must cost something, too
            free = points[int(np.argwhere(costs <= 0)[0][0])]
            condition = " (without travel)" if last is None else ""
            raise InvalidArgumentError(
                f"every measurement must cost more than 0, but {format_point(self.domain.named(free))} costs "
                f"{costs.min():g}{condition}; give cost a positive base"
            )
        return costs

    def _base_cost(self, points: Array, index: Index | None) -> Array:
        """Return the part of the cost that is a number, column or array, at points."""
        if callable(self._cost):
            return np.zeros(len(points))
        base = self._cost.base if isinstance(self._cost, Cost) else self._cost
        return check_nonnegative_array(self._on_domain(base, "cost", index), "cost", count=len(points))

    def _on_domain(self, value: Any, name: str, index: Index | None) -> Any:
        """Return a number as it is, and a column or array over the domain at the rows `index`."""
        if isinstance(value, str):
            value = self.domain.column(value)
        array = check_array(value, name)
        if array.ndim == 0:
            return array
        if array.shape != (len(self.domain),):
            raise InvalidArgumentError(
                f"{name} as an array must have one value per point of the domain, shape ({len(self.domain)},), "
                f"got shape {array.shape}; give as many values as there are points"
            )
        return array if index is None else array[index]

    def _column_index(self, name: str) -> int:
        """Return the position of a coordinate that a rate of the cost refers to."""
        if name not in self.domain.columns:
            raise InvalidArgumentError(f"cost has a rate for an {unknown_name('column', name, self.domain.columns)}")
        k = self.domain.columns.index(name)
        if k in self.domain.categorical:
            raise InvalidArgumentError(
                f"cost has a rate for the column {name!r}, which has no numbers; name another column, or give the cost "
                "as a function"
            )
        return k
