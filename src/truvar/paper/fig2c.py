"""Figure 2 (c): three noise levels to choose from, against GCHK at each of them; F1 against cost.

The function is a draw of a Gaussian process with a squared exponential kernel of length-scale 0.1 on 50 x 50 points, to
be told apart at h = 2.25. Beside the paper's rivals stands SUR per unit cost, which chooses among the levels too.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from sklearn.gaussian_process.kernels import RBF

from truvar._typing import Array
from truvar.acquisition import GCHK, SUR, Policy, TruVaR
from truvar.backtest import Backtest
from truvar.domain.domain import Domain
from truvar.paper.experiment import Experiment, FigureResult, ReproductionConfig, curves, level_set_table
from truvar.problem import Problem
from truvar.report.backtest_plot import plot_curves

TITLE = "Level set with three noise levels"
RUNS, BUDGET = 100, 700.0
SIDE, LENGTH, THRESHOLD, SEED = 50, 0.1, 2.25, 8  # of the draws with seeds 0 to 9, the one with most islands above h
VARIANCES, COSTS = (1e-6, 1e-3, 0.05), (15.0, 10.0, 2.0)
POLICIES: dict[str, Policy | str] = {
    "truvar": TruVaR(),
    **{f"gchk, noise {variance:g}": GCHK(level=level) for level, variance in enumerate(VARIANCES)},
    "sur/cost": SUR(per_cost=True),
}


def draw(seed: int = SEED) -> tuple[Domain, Array]:
    """The function on its grid."""
    side = np.linspace(0.0, 1.0, SIDE)
    root = np.linalg.cholesky(RBF(LENGTH)(side[:, None]) + 1e-9 * np.eye(SIDE))  # the kernel is a product over the axes
    normal = np.random.RandomState(seed).standard_normal((SIDE, SIDE))  # a stream NumPy promises never to change
    return Domain.grid(x=side, y=side), np.asarray((root @ normal @ root.T).ravel())


def problem() -> Problem:
    """The level set, with the levels of the paper."""
    spec = {
        "goal": {"level_set": THRESHOLD},
        "model": {"kernel": "rbf", "lengthscales": [LENGTH, LENGTH], "variance": 1.0, "mean": 0.0},
        "noise": {"levels": [{"variance": v, "cost": c} for v, c in zip(VARIANCES, COSTS, strict=True)]},
    }
    return Problem("three noise levels", spec, Path(), draw()[0])


def run(config: ReproductionConfig) -> Backtest:
    """The runs of Figures 2 (c) and 4."""
    experiment = Experiment("three noise levels", problem(), draw()[1], POLICIES, config.budget(BUDGET), noisy=True)
    return experiment.run(config, config.count(RUNS, 5))


def make(config: ReproductionConfig) -> FigureResult:
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
