"""Figure 2 (c): TruVaR with three noise levels to choose from, against GCHK at each of them; F1 against cost.

The function is a draw of a Gaussian process with a squared exponential kernel of length-scale 0.1 on 50 x 50 points.
The threshold is h = 2.25. In addition to the baselines of the paper there is SUR per unit cost, which also chooses
among the levels.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from sklearn.gaussian_process.kernels import RBF

from truvar._typing import Array
from truvar.acquisition import GCHK, SUR, Policy, TruVaR
from truvar.backtest import Backtest
from truvar.domain.domain import Domain
from truvar.paper.curves import curves, level_set_table
from truvar.paper.experiment import Experiment, FigureResult, ReproductionConfig
from truvar.problem import Problem
from truvar.report.backtest_plot import plot_curves

TITLE = "Level set with three noise levels"
RUNS = 100
BUDGET = 700.0  # cost per run
SIDE = 50  # points per axis
LENGTHSCALE = 0.1
THRESHOLD = 2.25
SEED = 8  # of the draws with seeds 0 to 9, the one with the most regions above the threshold
VARIANCES = (1e-6, 1e-3, 0.05)  # of the noise levels
COSTS = (15.0, 10.0, 2.0)  # of the noise levels
POLICIES: dict[str, Policy | str] = {
    "truvar": TruVaR(),
    **{f"gchk, noise {variance:g}": GCHK(level=level) for level, variance in enumerate(VARIANCES)},
    "sur/cost": SUR(per_cost=True),
}


def draw(seed: int = SEED) -> tuple[Domain, Array]:
    """Return the grid, and the function on it."""
    side = np.linspace(0.0, 1.0, SIDE)
    # The kernel is a product over the axes, so the factor of one axis is enough.
    root = np.linalg.cholesky(RBF(LENGTHSCALE)(side[:, None]) + 1e-9 * np.eye(SIDE))
    normal = np.random.RandomState(seed).standard_normal((SIDE, SIDE))  # NumPy guarantees this stream
    return Domain.grid(x=side, y=side), np.asarray((root @ normal @ root.T).ravel())


def problem() -> Problem:
    """Return the level-set problem with the noise levels of the paper."""
    spec = {
        "goal": {"level_set": THRESHOLD, "monotone": True},
        "model": {"kernel": "rbf", "lengthscales": [LENGTHSCALE, LENGTHSCALE], "variance": 1.0, "mean": 0.0},
        "noise": {"levels": [{"variance": v, "cost": c} for v, c in zip(VARIANCES, COSTS, strict=True)]},
    }
    return Problem("three noise levels", spec, Path(), draw()[0])


def run(config: ReproductionConfig) -> Backtest:
    """Return the runs of Figures 2 (c) and 4."""
    experiment = Experiment("three noise levels", problem(), draw()[1], POLICIES, config.budget(BUDGET), noisy=True)
    return experiment.run(config, config.count(RUNS, 5))


def make(config: ReproductionConfig) -> FigureResult:
    """Return the reproduced figure."""
    result = run(config)
    frame = curves(result, np.arange(15.0, result.budget + 1, 5.0))
    picture = plot_curves(frame, "mean", "three noise levels to choose from", xlabel="cost spent", ylabel="F1")
    facts = {
        "runs": int(result.curves["replicate"].nunique()),
        "budget": result.budget,
        "threshold": THRESHOLD,
        "share_above": float((draw()[1] >= THRESHOLD).mean()),
        "variances": VARIANCES,
        "costs": COSTS,
    }
    return FigureResult(TITLE, level_set_table(result, frame, "truvar"), facts, {"curves": frame}, {"": picture})
