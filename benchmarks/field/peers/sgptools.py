"""SGP-Tools: a route that surveys as much as a sparse Gaussian process can, planned beforehand."""

from __future__ import annotations

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import gpflow
import numpy as np
from sgptools.methods import ContinuousSGP
from sgptools.utils.tsp import run_tsp

from benchmarks.field.cases import Priced
from benchmarks.field.peers.base import UnitModel
from benchmarks.field.peers.others import Sklearn
from benchmarks.instances import Array

FEWEST = 8  # stops of the shortest route
STEP = 4  # stops by which routes are lengthened until they exceed the budget
MIN_NOISE = 1e-6


class Survey(Sklearn):
    """The longest route of `ContinuousSGP` whose cost is within the budget, in the order of its
    solver for the travelling salesman; answers are those of the given model."""

    def __init__(self, priced: Priced) -> None:
        super().__init__(priced)
        self.priced = priced
        self.route: list[int] | None = None

    def ask(self, costs: Array) -> int:
        if self.route is None:
            self.route = self._longest()
        if not self.route:  # the rest of the budget goes to where the model knows least
            sd = self.posterior[1].copy()
            sd[self.rows] = -np.inf
            return int(np.argmax(sd))
        return self.route.pop(0)

    def _longest(self) -> list[int]:
        left = self.priced.budget - self._cost(self.rows, None)
        longest: list[int] = []
        count = FEWEST
        while True:
            route = self._planned(count)
            if self._cost(route, self.rows[-1]) > left:
                return longest
            longest = route
            count += STEP

    def _planned(self, count: int) -> list[int]:
        """Return the rows of a route with that many stops, from the last measurement on."""
        assert self.given is not None
        rng = np.random.default_rng([self.seed, count])
        begin = self.points[rng.choice(len(self.points), count, replace=False)]
        plan = ContinuousSGP(
            num_sensing=count,
            X_objective=self.points,
            kernel=_kernel(self.given),
            noise_variance=max(self.given.noise, MIN_NOISE),
            X_candidates=self.points,
            X_init=begin,
        )
        stops = plan.optimize().reshape(-1, self.points.shape[1])
        here = self.points[self.rows[-1]][None, :]
        routes, _ = run_tsp(stops, start_nodes=here, solution_limit=100)
        rows = [int(np.abs(self.points - stop).sum(axis=1).argmin()) for stop in routes[0]]
        return [row for row in dict.fromkeys(rows) if row not in self.rows]

    def _cost(self, rows: list[int], last: int | None) -> float:
        total = 0.0
        for row in rows:
            total += float(self.priced.costs(last)[row])
            last = row
        return total


def _kernel(given: UnitModel) -> gpflow.kernels.Kernel:
    kinds = {
        "rbf": gpflow.kernels.SquaredExponential,
        "matern32": gpflow.kernels.Matern32,
        "matern52": gpflow.kernels.Matern52,
    }
    return kinds[given.kernel](variance=given.variance, lengthscales=given.lengthscales)
