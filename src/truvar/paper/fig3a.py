"""Figure 3 (a): Bayesian optimisation of 200 random functions on the unit square, median regret.

Each function is the posterior mean given 200 random points, whose values are a draw of a Gaussian
process with a squared exponential kernel of length-scale 0.1. The noise variance is 1e-6, as in the
paper; there is less of it in `truvar.paper.noiseless`. Suggestions are found by DIRECT, and sums
run over 50 x 50 points. Figure 3 (b) shows the same runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.linalg import cho_factor, cho_solve
from sklearn.gaussian_process.kernels import RBF

from truvar._typing import Array
from truvar.acquisition import Policy, TruVaR
from truvar.acquisition.confidence import LogBeta
from truvar.acquisition.optimizer import polish
from truvar.backtest import Backtest, Function
from truvar.paper._curves import curves
from truvar.paper.experiment import Experiment, FigureResult, ReproductionConfig
from truvar.problem import problem_from_dict

_TITLE = "BO of synthetic functions: median regret"
_FUNCTIONS = 200
_STEPS = 100  # measurements per run
_POINTS = 200  # random points that define a function
_LENGTHSCALE = 0.1
_NOISE = 1e-6  # variance
_LOST_REGRET = 0.1  # a run that ends with more regret than this has missed the maximum
POLICIES: dict[str, Policy | str] = {
    "truvar": TruVaR(),
    "ei": "ei",
    "ucb": "ucb",
    "es": "es",
    "mrs": "mrs",
    "mes": "mes",
    "truvar, a = 1": TruVaR(beta=LogBeta(1.0)),
}
_SPEC = {
    "domain": {"box": {"x": [0, 1], "y": [0, 1]}, "representers": 2500},
    "goal": {"maximize": True, "monotone": True},
    "model": {
        "kernel": "rbf",
        "lengthscales": [_LENGTHSCALE, _LENGTHSCALE],
        "variance": 1.0,
        "mean": 0.0,
        "exact": True,
    },
    "noise": {"variance": _NOISE},
}


@dataclass(frozen=True)
class RandomFunctions:
    """The test functions, by their number.

    Attributes:
        points: Number of random points that define a function.
        length: Length-scale of the kernel.
        seed: Seed of all functions.
    """

    points: int = _POINTS
    length: float = _LENGTHSCALE
    seed: int = 2016

    def __call__(self, number: int) -> Function:
        """Return the function with that number."""
        random = np.random.RandomState([self.seed, number])  # NumPy guarantees this stream
        kernel = RBF(self.length)
        points = random.uniform(size=(self.points, 2))  # nosec B311
        factor = cho_factor(kernel(points) + 1e-8 * np.eye(self.points), lower=True)
        weights = cho_solve(factor, np.tril(factor[0]) @ random.standard_normal(self.points))

        def f(x: Array) -> Array:
            return np.asarray(kernel(np.atleast_2d(x), points) @ weights)

        return Function(f, _maximum(f))


def _maximum(f: Any) -> float:
    """Return the maximum of f on the unit square, by local search from a fine grid's best."""
    side = np.linspace(0.0, 1.0, 101)
    grid = np.stack([axis.ravel() for axis in np.meshgrid(side, side)], axis=1)
    values = f(grid)
    box = np.array([[0.0, 1.0]] * 2)
    starts = grid[np.argsort(-values)[:40:4]]
    return float(max(f(polish(f, box, start)[None, :])[0] for start in starts))


def run(
    config: ReproductionConfig,
    noise: float = _NOISE,
    functions: int = _FUNCTIONS,
    policies: Mapping[str, Policy | str] = POLICIES,
) -> Backtest:
    """Return the runs of Figures 3 (a) and (b).

    Args:
        config: How much to run.
        noise: Noise variance, of the values and of the model.
        functions: Number of functions, unless `config` has a number of replicates.
        policies: Policies by the names to report them under.
    """
    experiment = Experiment(
        "synthetic BO",
        problem_from_dict({**_SPEC, "noise": {"variance": noise}}),
        RandomFunctions(),
        policies,
        config.budget(_STEPS, quick=40),
        noisy=True,
    )
    return experiment.run(config, config.count(functions, 3))


def regrets(
    config: ReproductionConfig,
    column: str,
    title: str,
    noise: float = _NOISE,
    functions: int = _FUNCTIONS,
) -> FigureResult:
    """Return Figure 3 (a) or (b).

    Args:
        config: How much to run.
        column: Statistic that is shown, "median" or "trimmed_mean".
        title: Title of the figure.
        noise: Noise variance, of the values and of the model.
        functions: Number of functions, unless `config` has a number of replicates.
    """
    from truvar.report.backtest_plot import plot_curves

    result = run(config, noise, functions)
    frame = curves(result, np.arange(1.0, result.budget + 1))
    shown_steps = [t for t in (10, 20, 40, 60, 80, 100) if t <= result.budget]
    wide = frame.pivot(index="policy", columns="spent", values=column)
    table = pd.DataFrame({f"t = {t}": wide[float(t)] for t in shown_steps}).reindex(result.policies)
    table["share lost"] = (result.at(result.budget) > _LOST_REGRET).mean()
    table["seconds"] = result.curves.groupby("policy")["seconds"].median()
    label = "median regret" if column == "median" else "mean regret without the best and worst 5 %"
    picture = plot_curves(
        frame, column, title, xlabel="measurements", ylabel=label, log=True, band=False
    )
    facts = {
        "functions": int(result.curves["replicate"].nunique()),
        "steps": int(result.budget),
        "shown": column,
    }
    return FigureResult(title, table, facts, {"curves": frame}, {"": picture})


def make(config: ReproductionConfig) -> FigureResult:
    """Return the reproduced figure."""
    return regrets(config, "median", _TITLE)
