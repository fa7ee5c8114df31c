"""Figures 2 (b) and 3 (a) with a noise that is small against the differences they show.

Figure 3 (a) has noise of variance 1e-6, as in the paper. Its standard deviation, 1e-3, is fifty
times the regrets at the end. Here the variance is 1e-12, in the values and in the model: a standard
deviation of a tenth of 1e-5, beside 1e-6 on the same functions.

The lake of Figure 2 is measured without noise, but its model needs some: there a variance of 1e-4
times that of the signal, here also 1e-8 times.
"""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from truvar.backtest import Backtest, backtest
from truvar.paper import fig3a
from truvar.paper.experiment import FigureResult, ReproductionConfig
from truvar.paper.fields import NOISELESS, simulated_lake

_TITLE = "Less noise"
_FUNCTIONS = 40
_NOISE = 1e-12  # variance, of the values and of the model
_COMPARED = ("truvar", "ucb", "es")  # policies that are also run with the noise of the paper
_LAKE_RUNS = 10
_LAKE_NOISE = (NOISELESS, 1e-8)  # noise variances of the model, as shares of the signal variance
_LAKE_POLICIES = ("truvar", "gchk", "gchk/cost")
_LAKE_BUDGET = 8000.0  # cost per run
_LAKE_F1 = 0.95  # F1 score at which a run ends


def make(config: ReproductionConfig) -> FigureResult:
    """Return the reproduced figure."""
    title = f"synthetic BO, noise variance {_NOISE:g}"
    figure = fig3a.regrets(config, "median", title, noise=_NOISE, functions=_FUNCTIONS)
    lake = pd.concat([_lake_costs(config, noise) for noise in _LAKE_NOISE])
    facts = {**figure.facts, "noise": _NOISE, "lake_runs": config.count(_LAKE_RUNS, 2)}
    parts = {
        "optimum": figure.table,
        "optimum, noise as in the paper": _noisy_regrets(config, figure.table),
        "lake": lake,
    }
    table = pd.concat(parts, names=["experiment", "policy"])
    return replace(figure, title=_TITLE, table=table, facts=facts)


def _noisy_regrets(config: ReproductionConfig, table: pd.DataFrame) -> pd.DataFrame:
    """Return the median regrets of some policies on the same functions with the paper's noise.

    Args:
        config: How much to run.
        table: Median regrets without noise, whose columns "t = ..." are wanted.
    """
    policies = {name: fig3a.POLICIES[name] for name in _COMPARED}
    result = fig3a.run(config, functions=_FUNCTIONS, policies=policies)
    steps = [name for name in table.columns if name.startswith("t = ")]
    return pd.DataFrame(
        {name: result.at(float(name.removeprefix("t = "))).median() for name in steps},
        index=list(_COMPARED),
    )


def _lake_costs(config: ReproductionConfig, noise: float) -> pd.DataFrame:
    """Return the median costs to F1 scores on the lake with travel and depth.

    Args:
        config: How much to run.
        noise: Noise variance of the model, as a share of the signal variance.
    """
    field = simulated_lake()
    result: Backtest = backtest(
        field.problem(cost=True, noise=noise),
        field.truth,
        _LAKE_POLICIES,
        replicates=config.count(_LAKE_RUNS, 2),
        budget=config.budget(_LAKE_BUDGET),
        noisy=False,
        until=_LAKE_F1,
        jobs=config.jobs,
        executor=config.executor,
        folder=config.folder,
        progress=None
        if config.progress is None
        else config.progress(f"lake, model noise {noise:g}"),
    )
    costs = {
        f"median cost to {target:g}": result.costs_to(target).median() for target in result.targets
    }
    names = [f"{policy}, model noise {noise:g}" for policy in result.policies]
    return pd.DataFrame(costs).set_axis(pd.Index(names, name="policy"))
