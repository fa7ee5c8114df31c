"""The problems that are timed: the paper's experiments on finite domains, and larger grids of
the same kind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import ConstantKernel, Kernel, Matern

import truvar as tv
from benchmarks.recipe import ChoiceInputs, Measurements, Recipe
from truvar.acquisition import Policy
from truvar.models.kernels import covariance_function, named_kernel
from truvar.paper import lake

Array = NDArray[np.float64]

LENGTHSCALE = 0.1  # of the paper's synthetic functions, unit variance
LEVELS = tv.NoiseLevels(variance=[1e-6, 1e-3, 0.05], cost=[15, 10, 2])


@dataclass(frozen=True)
class Case:
    """A domain whose true values are known, and the study of it."""

    name: str
    domain: tv.Domain
    truth: Array  # (n,)
    goal: Any
    kernel: Kernel
    noise: Any
    mean: float | None = 0.0  # None: estimated from the values
    steps: int = 100
    seed: int = 0
    engine: str | None = None

    def study(self, policy: Policy | str = "truvar") -> tv.Study:
        model = {"kernel": self.kernel, "mean": self.mean, "noise": self.noise}
        return tv.Study(
            self.domain, self.goal, **model, policy=policy, seed=self.seed, engine=self.engine
        )

    def measurer(self) -> Callable[[tv.Suggestion], float]:
        """Return a function that measures: the truth plus seeded noise."""
        rng = np.random.default_rng(self.seed)
        return lambda s: float(self.truth[s.index] + np.sqrt(s.noise) * rng.standard_normal())

    def recipe(self) -> Recipe:
        """The supplement's recipe on this domain: the prior covariance is computed here, once."""
        return Recipe(covariance_function(self.kernel)(self.domain.points, self.domain.points))


def state_of(study: tv.Study, mean: float) -> tuple[Measurements, ChoiceInputs]:
    """Return the state of a study as the recipe needs it."""
    learner = study._learner
    actions = [action for action, _ in learner.observations]
    measured = Measurements(
        sites=np.array([action.site for action in actions], dtype=np.intp),
        noise=np.array([action.noise for action in actions]),
        values=np.array([y for _, y in learner.observations]) - mean,
    )
    table = study.candidates()
    epoch = learner.state.epoch
    share = epoch.beta / learner.posterior.scale**2
    return measured, ChoiceInputs(learner.state.targets, share, epoch.eta, table.noise, table.cost)


def optimum(side: int, steps: int = 100, noise: float = 1e-6, seed: int = 0) -> Case:
    """The paper's synthetic optimum on side x side points: the mean of a GP through 200 random
    values."""
    rng = np.random.default_rng(seed)
    kernel = named_kernel("rbf", [LENGTHSCALE, LENGTHSCALE])
    k = covariance_function(kernel)
    domain = _square(side)
    knots = rng.random((200, 2))
    gram = k(knots, knots) + 1e-8 * np.eye(len(knots))
    values = np.linalg.cholesky(gram) @ rng.standard_normal(len(knots))
    truth = k(domain.points, knots) @ np.linalg.solve(gram, values)
    return Case("optimum", domain, truth, tv.Maximize(), kernel, noise, steps=steps, seed=seed)


def level_set(side: int, steps: int = 150) -> Case:
    """The paper's lake on side x side points (simulated), every measurement at the same price."""
    frame = lake.simulate(side, side)
    domain = tv.Domain.grid(
        distance_m=np.linspace(0, lake.LENGTH_M, side), depth_m=np.linspace(-lake.DEPTH_M, 0, side)
    )
    kernel = ConstantKernel(lake.SIGNAL_SD**2) * Matern(lake.LENGTHSCALES, nu=2.5)
    truth = frame["chlorophyll"].to_numpy()
    goal = tv.LevelSet(lake.THRESHOLD)
    return Case("level set", domain, truth, goal, kernel, lake.NOISE_SD**2, lake.MEAN, steps)


def noise_levels(side: int, steps: int = 100, seed: int = 3) -> Case:
    """The paper's level set with three precisions to choose from: a GP sample on the grid, h =
    2.25."""
    truth = gp_on_grid(side, LENGTHSCALE, seed)
    kernel = named_kernel("rbf", [LENGTHSCALE, LENGTHSCALE])
    domain = _square(side)
    goal = tv.LevelSet(2.25)
    return Case("three noise levels", domain, truth, goal, kernel, LEVELS, steps=steps, seed=seed)


def gp_on_grid(side: int, lengthscale: float, seed: int) -> Array:
    """A draw of the squared exponential GP on a square grid: its covariance is a Kronecker
    product."""
    axis = np.linspace(0, 1, side)
    gram = np.exp(-0.5 * ((axis[:, None] - axis) / lengthscale) ** 2)
    values, vectors = np.linalg.eigh(gram)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    return np.asarray(
        root @ np.random.default_rng(seed).standard_normal((side, side)) @ root.T
    ).ravel()


def _square(side: int) -> tv.Domain:
    return tv.Domain.grid(x=np.linspace(0, 1, side), y=np.linspace(0, 1, side))
