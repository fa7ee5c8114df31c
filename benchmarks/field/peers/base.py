"""A base for the peers with a model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.field.cases import Priced
from benchmarks.instances import Array
from benchmarks.scratch.methods import ModelPeer


@dataclass(frozen=True)
class UnitModel:
    """A given model in the unit cube, of values to be maximised.

    Attributes:
        kernel: "rbf", "matern32" or "matern52".
        lengthscales: One per column, (d,).
        variance: Variance of the process.
        mean: Mean of the process.
        noise: Variance of the errors of measurements.
    """

    kernel: str
    lengthscales: Array
    variance: float
    mean: float
    noise: float


class PricedPeer(ModelPeer):
    """Base of the peers with a model, which is fitted once per measurement.

    Subclasses have `fit`, which returns mean and standard deviation at all candidates, and
    `scores_at`, the higher the better. Rows are measured once, unless a subclass repeats them.
    Attribute `given` is the model where it is known; `fit` then learns nothing. With measurements at
    fewer than `min_places` places the mean is predicted everywhere.
    """

    repeats = False
    min_places = 1

    def __init__(self, priced: Priced) -> None:
        super().__init__(priced.instance)
        self.price = priced.price
        self.given: UnitModel | None = None
        if priced.known is not None:
            known = priced.known
            widths = np.ptp(priced.instance.domain.points, axis=0)
            self.given = UnitModel(
                known.kernel,
                np.array(known.lengthscales) / widths,
                known.variance,
                self.sign * known.mean,
                known.noise,
            )

    @property
    def posterior(self) -> tuple[Array, Array]:
        if len(set(self.rows)) >= self.min_places:
            return super().posterior
        n_points = len(self.points)
        return np.full(n_points, np.mean(self.values)), np.ones(n_points)

    def is_sure(self) -> bool:
        """Return that nothing is stated of the answer."""
        return False

    def scores_at(self, costs: Array) -> Array:
        """Return the score of every row; without costs, that of the method itself."""
        return self.scores()

    def ask(self, costs: Array) -> int:
        _ = self.posterior  # fits the model
        scores = np.array(self.scores_at(costs), dtype=float)
        if not self.repeats:
            scores[self.rows] = -np.inf
        return int(np.argmax(scores))
