"""The table of candidates, to which cost, noise, noise levels, travel and tasks are reduced.

| paper | here | shape |
|---|---|---|
| sigma^2(x) | `Candidates.noise` | (c, K) |
| c(x) | `Candidates.cost` | (c, K) |
| D = D0 x {1..K} | c rows with K noise levels each; flat index = row * K + level | |
| multi-task | the rows of the other tasks follow those of the target task | c = n x tasks |
| cost of a task at a noise level | that of the task instead of the base cost, plus that of the level | |

A *site* is a row of the grid that the model is evaluated on: a point of the domain, or with tasks a
point of one task, with the index of the task as the last coordinate. The first n sites are the
points of D, which M, H and L refer to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from truvar._typing import Array, Index, Mask
from truvar.domain.bins import Bins
from truvar.domain.costs import Cost, CostLike, NoiseLevels, NoiseLike, Tasks
from truvar.domain.domain import Domain
from truvar.domain.repeats import ClosedPlaces
from truvar.domain.travel import (
    BoundTravel,
    Location,
    Stops,
    bind_travel,
    changes,
    changing_column,
    column_index,
)
from truvar.domain.vehicles import Origin, as_departure
from truvar.exceptions import InvalidArgumentError
from truvar.messages import format_point, unknown_name
from truvar.validation import check_array, check_callable, check_cost, check_nonnegative_array

_BUDGET_TOLERANCE = 1e-12  # relative: a budget that is exceeded by no more than this is kept


@dataclass(frozen=True)
class Candidates:
    """Table of what can be measured next: c rows with K noise levels each.

    Attributes:
        points: Coordinates, shape (c, d'); with tasks the index of the task is the last coordinate.
        noise: Noise variances, shape (c, K).
        cost: Costs, shape (c, K); infinite where the budget that is left does not allow the
            measurement.
        sites: Row of the model grid for each row, shape (c,), or None if the points are not on the
            grid.
        feasibility: Probability that a measurement succeeds, 0 where it is not allowed, shape (c,);
            None: 1 everywhere.
    """

    points: Array
    noise: Array
    cost: Array
    sites: Index | None
    feasibility: Array | None = None

    def __len__(self) -> int:
        return self.noise.size

    @property
    def affordable(self) -> Mask:
        """Rows that can be measured at one noise level at least, shape (c,)."""
        return np.asarray(np.isfinite(self.cost).any(axis=1))

    @property
    def n_levels(self) -> int:
        """K, the number of noise levels."""
        return int(self.noise.shape[1])

    @property
    def effective_cost(self) -> Array:
        """Expected cost of a success, cost / P(success), shape (c, K); infinite if not allowed.

        A failed attempt costs as much as a successful one, so that gain / effective cost is the
        expected gain per cost.
        """
        if self.feasibility is None:
            return self.cost
        with np.errstate(divide="ignore"):
            return np.asarray(self.cost / self.feasibility[:, None])

    @property
    def max_feasibility(self) -> float:
        """Highest probability of a success among the rows that the budget allows."""
        feasibility = np.ones(len(self.points)) if self.feasibility is None else self.feasibility
        return float(feasibility[self.affordable].max(initial=0.0))

    def likely(self, min_feasibility: float) -> Candidates:
        """Return the table without measurements whose success is less probable than this."""
        if self.feasibility is None:
            return self
        feasibility = np.where(self.feasibility >= min_feasibility, self.feasibility, 0.0)
        return replace(self, feasibility=feasibility)

    def take(self, rows: Index) -> Candidates:
        """Return the table restricted to some rows."""
        sites = None if self.sites is None else self.sites[rows]
        feasibility = None if self.feasibility is None else self.feasibility[rows]
        return Candidates(self.points[rows], self.noise[rows], self.cost[rows], sites, feasibility)


@dataclass(frozen=True)
class CoordinateFunction:
    """A function of the model's coordinates, made from a function of the user's values.

    Attributes:
        function: Takes coordinates (q, d) and returns (q,).
        has_tasks: Whether the coordinates that it takes have the index of the task last.
    """

    function: Callable[[Array], Array]
    has_tasks: bool = False

    def __call__(self, points: Array) -> Array:
        """Return the values at points (q, d)."""
        return self.function(points)


def model_sites(points: Array, tasks: Tasks | None) -> Array:
    """Return the sites that belong to points (m, d) of the domain.

    Without tasks these are the points; with tasks every point appears once per task, the target
    first, with the task's index as a further coordinate: (m x tasks, d + 1).
    """
    if tasks is None:
        return points
    count = len(tasks.names)
    return np.column_stack([np.tile(points, (count, 1)), np.repeat(np.arange(count), len(points))])


class FeasibilityLike(Protocol):
    """Possible measurements by place; see `truvar.algorithm.availability.Availability`."""

    @property
    def feasibility(self) -> Array:
        """Probability that a measurement succeeds at each point of the domain, (n,)."""
        ...

    def feasibility_at(self, points: Array) -> Array:
        """Return the probability that a measurement succeeds at points (q, d): (q,)."""
        ...

    def allows(self, points: Array) -> Mask:
        """Return which points (q, d) are not excluded: (q,)."""
        ...


class ActionSpace:
    """Noise, cost and tasks on a domain; `candidates(last)` is the table for the next choice.

    Args:
        domain: The domain.
        noise: Noise variance, as `Study` takes it.
        cost: Cost, as `Study` takes it. Default: 1, or 0 with noise levels, whose costs are added
            to it.
        tasks: Tasks, or None.

    Attributes:
        noise_levels: The noise levels to choose from, or None.
        availability: Where measurements are possible; None: everywhere. Constraints of a box are
            always respected.
        closed: Places that were measured as often as they may be; None: there is no limit.
        bins: Bins of the points that legs pass, if values are sampled en route; None: they are
            not.

    Raises:
        InvalidArgumentError: If noise or cost is invalid somewhere on the domain, or a measurement
            would be free.
        InvalidModelError: If the noise of the tasks does not fit the noise levels.
    """

    def __init__(
        self, domain: Domain, noise: NoiseLike, cost: CostLike | None, tasks: Tasks | None
    ) -> None:
        if tasks is not None and not isinstance(tasks, Tasks):
            raise InvalidArgumentError(
                f"tasks must be an object Tasks(names=[...]), got {tasks!r}; give one"
            )
        self.domain = domain
        self.tasks = tasks
        self.noise_levels = noise if isinstance(noise, NoiseLevels) else None
        check_callable(noise, "noise", "points")
        check_callable(cost, "cost", "points", "last")
        if cost is None:
            cost = 1.0 if self.noise_levels is None else 0.0
        self._noise = noise
        self._cost: CostLike = cost
        self._travel: list[BoundTravel] = (
            bind_travel(cost.travel, domain) if isinstance(cost, Cost) else []
        )
        if isinstance(cost, Cost):
            for name in cost.setup:
                changing_column(domain, name)
            self.position(cost.start)
        self.bins = Bins(domain) if isinstance(cost, Cost) and cost.sampling == "along" else None
        self.availability: FeasibilityLike | None = None
        self.closed: ClosedPlaces | None = None
        self._table(
            domain.points, np.arange(len(domain)), last=None
        )  # raises now if noise or cost is invalid

    @property
    def n_levels(self) -> int:
        """K, the number of noise levels."""
        return 1 if self.noise_levels is None else len(self.noise_levels.variance)

    @property
    def travels(self) -> bool:
        """Whether the cost depends on the last position, which the paper's theorem excludes."""
        return callable(self._cost) or (
            isinstance(self._cost, Cost) and self._cost.depends_on_position
        )

    @property
    def learns_cost(self) -> bool:
        """Whether costs are expectations, learned from those of the measurements."""
        return isinstance(self._base, CoordinateFunction)

    @property
    def must_return(self) -> bool:
        """Whether a vehicle must be able to return to its start within the budget."""
        return isinstance(self._cost, Cost) and self._cost.must_return

    def position(self, location: Location | None) -> Array | str | None:
        """Return a position that a caller gives, by coordinates (d,) or the name of a place.

        Raises:
            InvalidArgumentError: If coordinates are missing, or there is no place of that name.
        """
        if location is None:
            return None
        if not isinstance(location, str):
            return self._coordinates(location)
        if not self._travel or not all(part.knows(location) for part in self._travel):
            raise InvalidArgumentError(
                f"the place {location!r} is not known: every part of the travel must be a Network "
                "or TravelMatrix that "
                "has it; correct the name, or give coordinates such as {'x': 0}"
            )
        if isinstance(self._cost, Cost) and self._cost.setup:
            raise InvalidArgumentError(
                f"set-up costs need coordinates, got the place {location!r} as start; give it by "
                "its coordinates"
            )
        return location

    def _coordinates(self, location: Mapping[str, Any]) -> Array:
        """Return the coordinates of a position, NaN where no cost depends on one and none is given."""
        used: set[int] = set()
        for part in self._travel:
            used |= set(range(len(self.domain.columns)) if part.columns is None else part.columns)
        if isinstance(self._cost, Cost):
            used |= {changing_column(self.domain, name) for name in self._cost.setup}
        columns = self.domain.columns
        absent = {k for k, name in enumerate(columns) if name not in location} - used
        stand_in = self.domain.named(self.domain.points[0])
        given = {columns[k]: stand_in[columns[k]] for k in sorted(absent)} if used else {}
        x = self.domain.array({**location, **given})
        if used:
            x[sorted(absent)] = np.nan
        return x

    def travel_between(self, origins: Stops, destinations: Stops, speed: float = 1.0) -> Array:
        """Return the travel cost from each origin to each destination: (a, b), without set-up."""
        count = 1 if origins.points is None else len(origins.points)
        total = np.zeros((count, 1 if destinations.points is None else len(destinations.points)))
        for part in self._travel:
            for leg in part.legs(origins, destinations):
                total += leg / speed
        return total

    def return_cost(self, origin: Origin, position: Array | str | None) -> float:
        """Return the cost of the leg from a position to the home of a departure; 0 without one."""
        departure = as_departure(origin)
        if departure.home is None or position is None:
            return 0.0
        return float(
            self.travel_between(Stops.at(position), Stops.at(departure.home), departure.speed)[0, 0]
        )

    def limited_to(
        self, availability: FeasibilityLike | None, closed: ClosedPlaces | None = None
    ) -> ActionSpace:
        """Return the same measurements, as far as they are possible and not made already."""
        other = copy(self)
        other.__dict__.pop("_constant_table", None)
        other.availability = availability
        other.closed = closed
        return other

    @cached_property
    def cost_range(self) -> tuple[float, float]:
        """c_min and c_max of the paper, without travel."""
        cost = self.candidates(None).cost
        return float(cost.min()), float(cost.max())

    def candidates(self, last: Origin) -> Candidates:
        """Return the table over all sites.

        Args:
            last: Last position, shape (d,), from which travel is counted; None: there is none yet.
                Or a `Departure`, which says more.
        """
        limited = np.isfinite(as_departure(last).left)
        if limited or self.travels or callable(self._noise):
            return self._domain_table(last)
        return self._constant_table

    @cached_property
    def _constant_table(self) -> Candidates:
        """The table, if it is the same for every choice."""
        return self._domain_table(None)

    def _domain_table(self, last: Origin) -> Candidates:
        table = self._table(self.domain.points, np.arange(len(self.domain)), last)
        feasibility = (
            None
            if self.availability is None
            else self._for_all_tasks(self.availability.feasibility)
        )
        if self.closed is not None:
            feasibility = _without(self.closed.on_grid(table.points), feasibility)
        return Candidates(
            table.points, table.noise, table.cost, np.arange(len(table.points)), feasibility
        )

    def _feasibility_at(self, points: Array) -> Array | None:
        """Return P(success) at points (m, d) of the domain or others; None: 1 everywhere."""
        if self.availability is None and not self.domain.constraints and self.closed is None:
            return None
        probability = (
            np.ones(len(points))
            if self.availability is None
            else self.availability.feasibility_at(points)
        )
        feasibility = self._for_all_tasks(np.where(self.domain.allows(points), probability, 0.0))
        if self.closed is None:
            return feasibility
        return _without(self.closed.at(model_sites(points, self.tasks)), feasibility)

    def allows(self, points: Array) -> Mask:
        """Return which points (q, d) satisfy the domain's constraints and are not excluded."""
        allowed = self.domain.allows(points)
        if self.availability is None:
            return allowed
        return allowed & self.availability.allows(points)

    def _for_all_tasks(self, values: Array) -> Array:
        """Return values of points for the rows of a table, which has every point once per task."""
        return values if self.tasks is None else np.tile(values, len(self.tasks.names))

    def pairwise_costs(self, sites: Index, speed: float = 1.0) -> Array:
        """Return the cost of each of some points after each of them.

        Args:
            sites: Rows of q points of the domain.
            speed: Speed of the vehicle.

        Returns:
            Costs of shape (q, q, K): the first axis is the position before, the second the point
            that is measured. Like `Candidates.effective_cost`, they are the expected costs of a
            success.
        """
        costs = self._travelled_costs(sites, speed)
        if self.availability is None:
            return costs
        with np.errstate(divide="ignore"):
            return np.asarray(costs / self.availability.feasibility[sites][None, :, None])

    def _travelled_costs(self, sites: Index, speed: float) -> Array:
        """Return the costs of `pairwise_costs`, whether a measurement succeeds or not."""
        points = self.domain.points[sites]
        if callable(self._cost):
            return np.stack([self._cost_at(points, sites, last) for last in points])
        costs = np.repeat(self._cost_at(points, sites, None)[None], len(sites), axis=0)
        stops = Stops(points, sites)
        for leg in self._legs(stops, stops, speed):
            costs += leg[:, :, None]
        return costs

    def _legs(self, origins: Stops, destinations: Stops, speed: float) -> Iterator[Array]:
        """Yield costs of shape (a, b) that depend on the position before: travel, then set-up."""
        for part in self._travel:
            for leg in part.legs(origins, destinations):
                yield leg / speed
        setup = self._cost.setup if isinstance(self._cost, Cost) else {}
        for name, price in setup.items():
            yield price * changes(self.domain, name, origins, destinations)

    def candidates_at(self, points: Array, last: Origin) -> Candidates:
        """Return the table over other points, inside a box or between the points of a grid.

        Args:
            points: Coordinates, shape (m, d).
            last: Last position, shape (d,), or None; or a `Departure`.
        """
        points = self.domain.canonical(points)
        base = self._base
        noise = [self._noise] if self.noise_levels is None else self.noise_levels.variance
        anywhere = all(
            isinstance(value, (float, int)) or callable(value) for value in (*noise, base)
        )
        # Columns and arrays have values only at the points of the domain: the nearest one counts.
        nearest = None if anywhere else np.array([self.domain.nearest(x) for x in points])
        table = self._table(points, nearest, last)
        feasibility = self._feasibility_at(points)
        return table if feasibility is None else replace(table, feasibility=feasibility)

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

    def _table(self, points: Array, index: Index | None, last: Origin) -> Candidates:
        """Return the table over points (m, d).

        Args:
            points: Coordinates.
            index: Row of the domain whose value each point takes from an array or column; None if
                there are none.
            last: Last position or departure, or None.
        """
        noise = self._noise_at(points, index)
        cost = self._cost_at(points, index, last)
        if self.tasks is None:
            return Candidates(points, noise, self._within_budget(points, index, last, cost), None)
        m = len(points)
        count = len(self.tasks.names)
        noises = np.tile(noise, (count, 1))
        costs = np.tile(cost, (count, 1))
        for task in range(count):
            rows = slice(task * m, (task + 1) * m)
            own_noise = self.tasks.noise_of(task, self.n_levels)
            if own_noise is not None:
                noises[rows] = own_noise
            own_cost = _cost_of_task(self.tasks, self._base, points, task)
            if own_cost is not None:  # it replaces the base cost; travel is still paid
                costs[rows] = costs[rows] - self._base_cost(points, index)[:, None] + own_cost
        if (costs <= 0).any():
            task = int(np.argmax((costs <= 0).any(axis=1))) // m
            raise InvalidArgumentError(
                f"every task must cost more than 0 everywhere, but {self.tasks.names[task]!r} "
                f"costs {costs.min():g} "
                "somewhere; give the tasks positive costs"
            )
        costs = self._within_budget(points, index, last, costs)
        return Candidates(model_sites(points, self.tasks), noises, costs, None)

    def _within_budget(
        self, points: Array, index: Index | None, last: Origin, costs: Array
    ) -> Array:
        """Return the costs, infinite where the budget does not cover them and the return leg."""
        departure = as_departure(last)
        if np.isinf(departure.left):
            return costs
        home = np.zeros(len(points))
        if departure.home is not None:
            home = self.travel_between(
                Stops(points, index), Stops.at(departure.home), departure.speed
            )[:, 0]
        needed = costs + np.tile(home, len(costs) // len(points))[:, None]
        return np.where(needed <= departure.left * (1 + _BUDGET_TOLERANCE), costs, np.inf)

    def _noise_at(self, points: Array, index: Index | None) -> Array:
        """Return the noise variances at points, shape (m, K)."""
        if self.noise_levels is not None:
            if not self.noise_levels.varies:
                return np.tile(
                    np.asarray(self.noise_levels.variance, dtype=float), (len(points), 1)
                )
            return np.column_stack(
                [self._level_noise(k, points, index) for k in range(self.n_levels)]
            )
        noise: Any
        if isinstance(self._noise, CoordinateFunction):
            noise = self._noise(points)
        elif callable(self._noise):
            noise = self._noise(self.domain.values(points))
        else:
            noise = self._on_domain(self._noise, "noise", index)
        return check_nonnegative_array(noise, "noise", count=len(points))[:, None]

    def _level_noise(self, level: int, points: Array, index: Index | None) -> Array:
        """Return the noise variances of a level at points, shape (m,)."""
        variance: Any = [] if self.noise_levels is None else self.noise_levels.variance[level]
        what = f"the variance of noise level {level}"
        noise = (
            variance(self.domain.values(points))
            if callable(variance)
            else self._on_domain(variance, what, index)
        )
        return check_nonnegative_array(noise, what, count=len(points))

    def _cost_at(self, points: Array, index: Index | None, last: Origin) -> Array:
        """Return the costs at points, shape (m, K), without those of tasks."""
        departure = as_departure(last)
        position = departure.position
        if isinstance(self._cost, Cost):
            cost = self._base_cost(points, index).copy()
            numbers = self.domain.numbers(points)
            for name, rate in self._cost.magnitude.items():
                cost += rate * np.abs(numbers[:, column_index(self.domain, name)])
            if position is not None:  # without a start, the first measurement pays no travel
                for leg in self._legs(Stops.at(position), Stops(points, index), departure.speed):
                    cost += leg[0]
        elif callable(self._cost):
            values = self.domain.values(points)
            before = _coordinates(position)
            before = None if before is None else self.domain.values(before[None, :])[0]
            cost = check_nonnegative_array(self._cost(values, before), "cost", count=len(points))
        else:
            cost = self._base_cost(points, index)
        costs = cost[:, None]
        if self.noise_levels is not None:
            costs = costs + np.asarray(self.noise_levels.cost, dtype=float)
        priced = costs[np.isfinite(costs)]  # what cannot be reached costs infinitely much
        check_cost(priced.max(initial=0.0), "the cost of a measurement")
        # Then `_table` checks the sums.
        replaced = self.tasks is not None and self.tasks.cost is not None
        if (
            not replaced and (costs <= 0).any()
        ):  # a second measurement at the last position must cost something, too
            free = points[int(np.argwhere(costs <= 0)[0][0])]
            condition = " (without travel)" if position is None else ""
            raise InvalidArgumentError(
                "every measurement must cost more than 0, but "
                f"{format_point(self.domain.named(free))} costs "
                f"{costs.min():g}{condition}; give cost a positive base"
            )
        return costs

    def _base_cost(self, points: Array, index: Index | None) -> Array:
        """Return the part of the cost that is a number, column or array, at points."""
        if callable(self._cost):
            return np.zeros(len(points))
        base = self._base
        if isinstance(base, CoordinateFunction):
            if base.has_tasks:
                points = np.column_stack([points, np.zeros(len(points))])  # of the target
            return check_nonnegative_array(base(points), "cost", count=len(points))
        return check_nonnegative_array(
            self._on_domain(base, "cost", index), "cost", count=len(points)
        )

    @property
    def _base(self) -> Any:
        """The part of the cost that is a number, column, array or `CoordinateFunction`."""
        return self._cost.base if isinstance(self._cost, Cost) else self._cost

    def _on_domain(self, value: Any, name: str, index: Index | None) -> Any:
        """Return a number as it is, and a column or array over the domain at the rows `index`."""
        if isinstance(value, str):
            value = self.domain.column(value)
        array = check_array(value, name)
        if array.ndim == 0:
            return array
        if array.shape != (len(self.domain),):
            raise InvalidArgumentError(
                f"{name} as an array must have one value per point of the domain, shape "
                f"({len(self.domain)},), "
                f"got shape {array.shape}; give as many values as there are points"
            )
        return array if index is None else array[index]


def _without(closed: Mask, feasibility: Array | None) -> Array | None:
    """Return probabilities of success, 0 at closed places; None if they are 1 everywhere."""
    if feasibility is None and not closed.any():
        return None
    return np.where(closed, 0.0, 1.0 if feasibility is None else feasibility)


def _coordinates(position: Array | str | None) -> Array | None:
    """Return a position as a cost function takes it; `ActionSpace.position` refuses names there."""
    if isinstance(position, str):
        raise InvalidArgumentError(
            f"a cost function needs coordinates, got the place {position!r}; give them"
        )
    return position


def _cost_of_task(tasks: Tasks, base: Any, points: Array, task: int) -> float | Array | None:
    """Return what a task costs instead of the base cost: a number or (m, 1); None: as much."""
    if tasks.cost is not None:
        return tasks.cost[task]
    if not (isinstance(base, CoordinateFunction) and base.has_tasks):
        return None
    return base(np.column_stack([points, np.full(len(points), task)]))[:, None]
