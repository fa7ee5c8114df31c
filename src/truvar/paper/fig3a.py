"""Figure 3 (a): Bayesian optimisation of 200 random functions on the unit square, median regret.

Each function is the posterior mean of 200 points drawn at random, whose values are a draw of a Gaussian process with a
squared exponential kernel of length-scale 0.1; noise variance 1e-6. The selection is by DIRECT and the sums run over
50 x 50 points. Figure 3 (b) shows the same runs.
"""

from __future__ import annotations

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
from truvar.paper.experiment import Experiment, FigureResult, ReproductionConfig, curves
from truvar.problem import problem_from_dict

TITLE = "BO of synthetic functions: median regret"
FUNCTIONS, STEPS = 200, 100
POINTS, LENGTH, NOISE = 200, 0.1, 1e-6
LOST = 0.1  # a run that ends with more regret than this has lost the maximum
POLICIES: dict[str, Policy | str] = {
    "truvar": TruVaR(),
    "ei": "ei",
    "ucb": "ucb",
    "es": "es",
    "mrs": "mrs",
    "mes": "mes",
    "truvar, a = 1": TruVaR(beta=LogBeta(1.0)),
}
SPEC = {
    "domain": {"box": {"x": [0, 1], "y": [0, 1]}, "representers": 2500},
    "goal": {"maximize": True},
    "model": {"kernel": "rbf", "lengthscales": [LENGTH, LENGTH], "variance": 1.0, "mean": 0.0},
    "noise": {"variance": NOISE},
}


@dataclass(frozen=True)
class RandomFunctions:
    """The test functions, by their number."""

    points: int = POINTS
    length: float = LENGTH
    seed: int = 2016

    def __call__(self, number: int) -> Function:
        random = np.random.RandomState([self.seed, number])  # NumPy promises never to change its stream
        places, kernel = random.uniform(size=(self.points, 2)), RBF(self.length)
        factor = cho_factor(kernel(places) + 1e-8 * np.eye(self.points), lower=True)
        weights = cho_solve(factor, np.tril(factor[0]) @ random.standard_normal(self.points))

        def f(x: Array) -> Array:
            return np.asarray(kernel(np.atleast_2d(x), places) @ weights)

        return Function(f, maximum(f))


def maximum(f: Any) -> float:
    """The highest value of f on the unit square: the best peaks of a fine grid, polished."""
    side = np.linspace(0.0, 1.0, 101)
    grid = np.stack([axis.ravel() for axis in np.meshgrid(side, side)], axis=1)
    values = f(grid)
    leaders = grid[np.argsort(-values)[:40:4]]
    return float(max(f(polish(f, np.array([[0.0, 1.0]] * 2), leader)[None, :])[0] for leader in leaders))


def run(config: ReproductionConfig) -> Backtest:
    """The runs of Figures 3 (a) and (b)."""
    experiment = Experiment(
        "synthetic BO",
        problem_from_dict(SPEC),
        RandomFunctions(),
        POLICIES,
        config.budget(STEPS, quick=40),
        noisy=True,
    )
    return experiment.run(config, config.count(FUNCTIONS, 3))


def regrets(config: ReproductionConfig, column: str, title: str) -> FigureResult:
    """Figure 3 (a) or (b): the column of the curves that is shown."""
    from truvar.report.backtest_plot import plot_curves

    result = run(config)
    frame = curves(result, np.arange(1.0, result.budget + 1))
    at = [t for t in (10, 20, 40, 60, 80, 100) if t <= result.budget]
    wide = frame.pivot(index="policy", columns="spent", values=column)
    table = pd.DataFrame({f"t = {t}": wide[float(t)] for t in at}).reindex(result.policies)
    table["share lost"] = (result.at(result.budget) > LOST).mean()
    table["seconds"] = result.curves.groupby("policy")["seconds"].median()
    label = "median regret" if column == "median" else "mean regret without the best and worst 5 %"
    picture = plot_curves(frame, column, title, xlabel="measurements", ylabel=label, log=True, band=False)
    facts = {"functions": int(result.curves["replicate"].nunique()), "steps": int(result.budget), "shown": column}
    return FigureResult(title, table, facts, {"curves": frame}, {"": picture})


def make(config: ReproductionConfig) -> FigureResult:
    return regrets(config, "median", TITLE)
