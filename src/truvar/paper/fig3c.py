"""Figure 3 (c): hyperparameters of a support vector machine on a grid of 25 x 14 x 4.

A Matern-5/2 kernel with a length-scale per hyperparameter is learned again after every third value,
M is recomputed from the whole grid, there is no noise, and the score is the error of the best
setting measured so far.

The table is our own, and the paper's in addition where the environment variable TRUVAR_DATA names a
folder that has it. `--data` takes one table in place of both.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from truvar.acquisition import Policy, TopK, TruVaR
from truvar.domain.domain import Domain
from truvar.exceptions import InvalidDomainError
from truvar.paper import svm
from truvar.paper._curves import curves
from truvar.paper.experiment import Experiment, FigureResult, ReproductionConfig
from truvar.problem import Problem
from truvar.report.backtest_plot import plot_curves
from truvar.tabular.tables import read_table

_TITLE = "Tuning an SVM on a grid"
_RUNS = 100
_STEPS = 70  # measurements per run
# Noise variance of the model that stands for no noise. Its standard deviation, 1e-5, is a tenth of
# the smallest difference between two mean errors that matters here, 1e-4.
_NOISELESS = 1e-10
_POLICIES: dict[str, Policy | str] = {
    "truvar": TruVaR(),
    "ei": "ei",
    "ucb": "ucb",
    "mes": "mes",
    "truvar, top 20 by ei": TruVaR(among=TopK(20, "ei")),
    "random": "random",
}


def _read_errors(path: Path | None) -> tuple[str, Domain, np.ndarray]:
    """Return the table of settings and errors.

    The coordinates are ranks on each axis, because the grid of the paper has values over seven
    decades.

    Args:
        path: Path of a table whose first three columns are the hyperparameters. None: the built-in
            table.

    Returns:
        Its name, the settings, and their validation errors.

    Raises:
        InvalidDomainError: If the table has no column of validation errors.
    """
    frame = svm.table() if path is None else read_table(path)
    columns = list(svm.COLUMNS) if path is None else [str(name) for name in frame.columns[:3]]
    if svm.VALUE not in frame.columns:
        raise InvalidDomainError(
            f"--data must be a table of settings with a column {svm.VALUE}, got {path} with the "
            "columns "
            f"{', '.join(map(str, frame.columns))}; rename the column of the error"
        )
    ranks = pd.DataFrame(
        {name: np.unique(frame[name], return_inverse=True)[1].astype(float) for name in columns}
    )
    name = "our SVM grid" if path is None else path.stem
    return name, Domain.table(ranks), frame[svm.VALUE].to_numpy(dtype=float)


def make(config: ReproductionConfig) -> FigureResult:
    """Return the reproduced figure: our table and the paper's, or the user's table."""
    if config.data is not None:
        return _tune(config, config.data)
    ours = _tune(config, None)
    path = svm.papers_table()
    if path is None:
        return ours
    papers = _tune(config, path)
    name = path.stem
    table = pd.concat(
        {str(ours.facts["table"]): ours.table, name: papers.table}, names=["table", "policy"]
    )
    facts = {**ours.facts, name: dict(papers.facts)}
    tables = {**ours.tables, f"{name}-curves": papers.tables["curves"]}
    return FigureResult(_TITLE, table, facts, tables, {**ours.pictures, name: papers.pictures[""]})


def _tune(config: ReproductionConfig, path: Path | None) -> FigureResult:
    """Compare the policies on one table.

    Args:
        config: How much to run.
        path: Path of the table. None: the built-in one.
    """
    name, domain, errors = _read_errors(path)
    steps = int(config.budget(_STEPS, quick=40))
    spec = {
        "goal": {"minimize": True, "monotone": False},
        "model": {"kernel": "matern52", "refit_every": 3, "marginalise": False},
        "noise": {"variance": _NOISELESS},
    }
    problem = Problem(name, spec, Path(), domain)
    experiment = Experiment(name, problem, errors, _POLICIES, float(steps), judged="measured")
    result = experiment.run(config, config.count(_RUNS, 3))
    best = float(errors.min())
    frame = curves(result, np.arange(1.0, steps + 1))
    for column in ("mean", "low", "high", "median", "trimmed_mean"):
        frame[column] += best
    shown_steps = [t for t in (10, 20, 30, 40, 50, 60, 70) if t <= steps] or [steps]
    summary = pd.DataFrame(index=pd.Index(result.policies, name="policy"))
    for column, label in (("mean", "error"), ("sd", "sd")):
        wide = frame.pivot(index="policy", columns="spent", values=column)
        for t in shown_steps:
            summary[f"{label} at {t}"] = wide[float(t)]
    summary["share that found the best"] = (result.at(float(steps)) <= 0).mean()
    summary["seconds"] = result.curves.groupby("policy")["seconds"].median()
    picture = plot_curves(frame, "mean", name, xlabel="measurements", ylabel="validation error")
    top = float(frame.loc[frame["spent"] == shown_steps[0], "high"].max())
    picture.axes[0].set_ylim(best - 0.05 * (top - best), top)
    facts = {
        "table": name,
        "runs": int(result.curves["replicate"].nunique()),
        "steps": steps,
        "best_error": best,
    }
    return FigureResult(_TITLE, summary, facts, {"curves": frame}, {"": picture})
