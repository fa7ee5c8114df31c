"""A base for the peers with a model."""

from __future__ import annotations

import numpy as np

import truvar as tv
from benchmarks.field.problems import Priced
from benchmarks.instances import Array


class ModelPeer:
    """Base of the peers with a model, which is fitted once per measurement.

    Subclasses have `fit`, which returns mean and standard deviation at all candidates, and
    `scores`, the higher the better. Rows are measured once, unless a subclass repeats them.
    """

    repeats = False

    def __init__(self, priced: Priced) -> None:
        instance = priced.instance
        points = instance.domain.points
        self.points = (points - points.min(axis=0)) / np.ptp(points, axis=0)
        self.raw = points
        self.price = priced.price
        self.sign = instance.goal.sign
        self.threshold = instance.goal.threshold if isinstance(instance.goal, tv.LevelSet) else None
        self.seed = int(np.random.default_rng([*instance.seed, 1]).integers(2**31))
        self.rows: list[int] = []
        self.values: list[float] = []
        self._posterior: tuple[Array, Array] | None = None

    def tell(self, row: int, value: float) -> None:
        self.rows.append(row)
        self.values.append(self.sign * value)
        self._posterior = None

    @property
    def posterior(self) -> tuple[Array, Array]:
        """Mean and standard deviation at all candidates: (n,) each."""
        if self._posterior is None:
            self._posterior = self.fit()
        return self._posterior

    def fit(self) -> tuple[Array, Array]:
        raise NotImplementedError

    def scores(self, costs: Array) -> Array:
        raise NotImplementedError

    def ask(self, costs: Array) -> int:
        _ = self.posterior  # fits the model
        scores = np.array(self.scores(costs), dtype=float)
        if not self.repeats:
            scores[self.rows] = -np.inf
        return int(np.argmax(scores))

    def report(self) -> int | np.ndarray:
        mean, _ = self.posterior
        return int(np.argmax(mean)) if self.threshold is None else mean >= self.threshold
