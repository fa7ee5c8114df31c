"""The cost of measurements as a learner has it: given, or learned from the costs that were told."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from truvar._typing import Array
from truvar.domain.action import Action
from truvar.domain.candidates import CoordinateFunction
from truvar.domain.costs import Cost, CostLike, Tasks
from truvar.domain.domain import Domain
from truvar.domain.learned_cost import ExpectedCost, LearnedCost
from truvar.exceptions import InvalidArgumentError
from truvar.models.cost_model import CostModel
from truvar.models.fit import Model
from truvar.models.observations import Observations

_ROUNDING = 1e-9  # share of a cost below which a known part is a rounding error


class CostLearner:
    """The cost of measurements, and the model of its pointwise part if that is learned.

    Args:
        domain: The domain.
        cost: The cost, as `Study` takes it.
        tasks: The tasks, or None. Each has its own costs if they are learned.
        seed: Seed of the fits.

    Attributes:
        cost: The cost as `ActionSpace` takes it, with the present expectations.

    Raises:
        InvalidArgumentError: If costs are to be learned and those of the tasks are given, or a
            planned cost is not positive.
    """

    def __init__(
        self, domain: Domain, cost: CostLike | None, tasks: Tasks | None, seed: int
    ) -> None:
        self._domain = domain
        self._seed = seed
        self._told: tuple[tuple[int, float], ...] = ()
        self._model: CostModel | None = None
        self._fits: dict[int, Model] = {}  # hyperparameters by number of costs, for the next model
        self.cost = cost
        base = cost.base if isinstance(cost, Cost) else cost
        if not isinstance(base, LearnedCost):
            return
        if tasks is not None and tasks.cost is not None:
            raise InvalidArgumentError(
                f"costs are to be learned, but those of the tasks are given ({tasks.cost!r}); leave "
                "out one of them"
            )
        self._n_tasks = 0 if tasks is None else len(tasks.names)
        self._spec = base
        self._known = cost if isinstance(cost, Cost) else Cost()
        self._learn([])

    def update(self, observations: Observations) -> bool:
        """Learn from the costs that were told; return whether they differ from those before."""
        if self._model is None:
            return False
        actions = [action for action, _ in observations if action.cost_given]
        told = tuple((action.id, action.cost) for action in actions)
        if told == self._told:
            return False
        if told[: len(self._told)] != self._told:  # a cost was corrected or withdrawn
            self._fits = {}
        self._told = told
        self._learn(actions)
        return True

    def _learn(self, actions: list[Action]) -> None:
        points: list[Array] = []
        costs: list[float] = []
        for action in actions:
            expected = action.expected_cost
            part = None if expected is None else expected.learned_part(action.cost)
            if part is not None:
                points.append(action.point)
                costs.append(part)
        d = len(self._domain.columns) + (self._n_tasks > 0)
        observed = np.array(points).reshape(-1, d)
        self._model = CostModel(
            self._domain,
            observed,
            np.array(costs),
            self._spec,
            seed=self._seed,
            n_tasks=self._n_tasks,
            fits=self._fits,
        )
        base: Any = CoordinateFunction(self._model.expected, self._n_tasks > 0)
        self.cost = replace(self._known, base=base)

    def expected(self, point: Array, cost: float) -> ExpectedCost | None:
        """Return the parts of a cost at a point (d',); None if no part of it is learned."""
        if self._model is None:
            return None
        pointwise = float(self._model.expected(point[None, :])[0])
        interval = self._model.interval(point[None, :])
        low, high = (None, None) if interval is None else (float(end[0]) for end in interval)
        known = cost - pointwise
        if known < _ROUNDING * cost:
            known = 0.0
        return ExpectedCost(known, pointwise, low, high)
