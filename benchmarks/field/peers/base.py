"""A base for the peers with a model."""

from __future__ import annotations

import numpy as np

from benchmarks.field.problems import Priced
from benchmarks.instances import Array
from benchmarks.scratch.methods import ModelPeer


class PricedPeer(ModelPeer):
    """Base of the peers with a model, which is fitted once per measurement.

    Subclasses have `fit`, which returns mean and standard deviation at all candidates, and
    `scores_at`, the higher the better. Rows are measured once, unless a subclass repeats them.
    """

    repeats = False

    def __init__(self, priced: Priced) -> None:
        super().__init__(priced.instance)
        self.price = priced.price

    def scores_at(self, costs: Array) -> Array:
        """Return the score of every row; without costs, that of the method itself."""
        return self.scores()

    def ask(self, costs: Array) -> int:
        _ = self.posterior  # fits the model
        scores = np.array(self.scores_at(costs), dtype=float)
        if not self.repeats:
            scores[self.rows] = -np.inf
        return int(np.argmax(scores))
