"""BoTorch: its default model with several of its rules."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from botorch.acquisition import qNegIntegratedPosteriorVariance

from benchmarks.field.peers.base import PricedPeer
from benchmarks.instances import Array
from benchmarks.scratch.methods import Botorch, BotorchNoisy

INTEGRATION_POINTS = 256  # of the integrated variance


class Plain(PricedPeer, Botorch):
    """SingleTaskGP with its defaults, values standardised; LogEI, or straddle for a level set."""


class PerCost(Plain):
    """LogEI per unit cost."""

    def scores_at(self, costs: Array) -> Array:
        return np.asarray(self.scores() - np.log(costs))


class Noisy(PricedPeer, BotorchNoisy):
    """QLogNoisyExpectedImprovement."""


class IntegratedVariance(Plain):
    """QNegIntegratedPosteriorVariance over a sample of the candidates."""

    def acquisition(self) -> Any:
        rng = np.random.default_rng([self.seed, len(self.rows)])
        count = min(INTEGRATION_POINTS, len(self.points))
        sample = rng.choice(len(self.points), count, replace=False)
        return qNegIntegratedPosteriorVariance(
            self.model, mc_points=torch.tensor(self.points[sample])
        )

    def scores(self) -> Array:
        return self.acquisition_scores()
