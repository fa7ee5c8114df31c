"""BoTorch: its default model with several of its rules."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from botorch.acquisition import qNegIntegratedPosteriorVariance
from botorch.models import SingleTaskGP
from gpytorch.kernels import Kernel, MaternKernel, RBFKernel, ScaleKernel
from gpytorch.means import ConstantMean

from benchmarks.field.peers.base import PricedPeer, UnitModel
from benchmarks.instances import Array
from benchmarks.scratch.methods import Botorch, BotorchNoisy

INTEGRATION_POINTS = 256  # of the integrated variance


class Plain(PricedPeer, Botorch):
    """SingleTaskGP with its defaults, values standardised; LogEI, or straddle for a level set.

    Where the model is given, its hyperparameters are fixed.
    """

    def fitted(self) -> SingleTaskGP:
        if self.given is None:
            return super().fitted()
        x = torch.tensor(self.points[self.rows])
        y = torch.tensor(self.values, dtype=torch.double)[:, None]
        mean = ConstantMean()
        mean.constant = self.given.mean
        model = SingleTaskGP(
            x,
            y,
            train_Yvar=torch.full_like(y, self.given.noise),
            covar_module=_covariance(self.given),
            mean_module=mean,
            outcome_transform=None,
        )
        return model.double().eval()


def _covariance(given: UnitModel) -> Kernel:
    d = len(given.lengthscales)
    if given.kernel == "rbf":
        base: Kernel = RBFKernel(ard_num_dims=d)
    else:
        base = MaternKernel(nu={"matern32": 1.5, "matern52": 2.5}[given.kernel], ard_num_dims=d)
    kernel = ScaleKernel(base).double()
    base.lengthscale = torch.tensor(given.lengthscales)
    kernel.outputscale = given.variance
    return kernel


class PerCost(Plain):
    """LogEI per unit cost."""

    def scores_at(self, costs: Array) -> Array:
        return np.asarray(self.scores() - np.log(costs))


class Noisy(Plain, BotorchNoisy):
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
