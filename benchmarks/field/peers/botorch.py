"""BoTorch: its default model with several of its rules."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch
from botorch.acquisition import LogExpectedImprovement, qNegIntegratedPosteriorVariance
from botorch.acquisition.logei import qLogNoisyExpectedImprovement
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.transforms.outcome import Standardize
from gpytorch.mlls import ExactMarginalLogLikelihood

from benchmarks.field.peers.base import ModelPeer
from benchmarks.instances import Array

STRADDLE = 1.96  # standard deviations in the straddle score
BATCH = 2048  # candidates that a rule scores at a time
INTEGRATION_POINTS = 256  # of the integrated variance


class Plain(ModelPeer):
    """SingleTaskGP with its defaults, values standardised; LogEI, or straddle for a level set."""

    def fit(self) -> tuple[Array, Array]:
        torch.set_num_threads(1)
        torch.manual_seed(self.seed + len(self.rows))
        x = torch.tensor(self.points[self.rows])
        y = torch.tensor(self.values, dtype=torch.double)[:, None]
        self.model = SingleTaskGP(x, y, outcome_transform=Standardize(m=1))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fit_gpytorch_mll(ExactMarginalLogLikelihood(self.model.likelihood, self.model))
            parts = []
            with torch.no_grad():
                for batch in torch.tensor(self.points).split(BATCH):
                    found = self.model.posterior(batch)
                    parts.append((found.mean[:, 0], found.variance[:, 0].clamp_min(0.0).sqrt()))
        mean, sd = (torch.cat(part).numpy() for part in zip(*parts, strict=True))
        return mean, sd

    def rule(self) -> Any:
        """Return the acquisition function."""
        return LogExpectedImprovement(self.model, best_f=max(self.values))

    def scores(self, costs: Array) -> Array:
        if self.threshold is not None:
            mean, sd = self.posterior
            return np.asarray(STRADDLE * sd - np.abs(mean - self.threshold))
        return self.scored()

    def scored(self) -> Array:
        """Return the rule's score of every candidate."""
        rule = self.rule()
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            batches = torch.tensor(self.points)[:, None, :].split(BATCH)
            return np.asarray(torch.cat([rule(batch) for batch in batches]).numpy())


class PerCost(Plain):
    """LogEI per unit cost."""

    def scores(self, costs: Array) -> Array:
        return np.asarray(self.scored() - np.log(costs))


class Noisy(Plain):
    """QLogNoisyExpectedImprovement."""

    def rule(self) -> Any:
        x = torch.tensor(self.points[self.rows])
        return qLogNoisyExpectedImprovement(self.model, x, prune_baseline=True)


class IntegratedVariance(Plain):
    """QNegIntegratedPosteriorVariance over a sample of the candidates."""

    def rule(self) -> Any:
        rng = np.random.default_rng([self.seed, len(self.rows)])
        count = min(INTEGRATION_POINTS, len(self.points))
        sample = rng.choice(len(self.points), count, replace=False)
        return qNegIntegratedPosteriorVariance(
            self.model, mc_points=torch.tensor(self.points[sample])
        )

    def scores(self, costs: Array) -> Array:
        return self.scored()
