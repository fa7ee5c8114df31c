"""Figure 2 (b): the lake with costs of travel and depth, F1 against cost; and the routes of Figures 2 (e) and (f).

Beside the paper's GCHK, which ignores costs, stand the rivals divided by cost, where that is sound.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from truvar.backtest import Backtest
from truvar.paper.experiment import Experiment, FigureResult, ReproductionConfig, curves, level_set_table
from truvar.paper.field_plots import draw_field, draw_route
from truvar.paper.fields import Field, load_field
from truvar.report.backtest_plot import draw_curves
from truvar.report.style import new_figure

TITLE = "Level set at the cost of travel and depth"
RUNS, BUDGET = 100, 8000.0
POLICIES = {
    name: name for name in ("truvar", "gchk", "gchk/cost", "straddle", "variance", "variance/cost", "sur", "sur/cost")
}
ROUTES = ("gchk", "truvar", "gchk/cost")
ROUTE_F1 = 0.9  # the maps show each route up to here


def travel_cost(field: Field, config: ReproductionConfig, most: float = BUDGET) -> FigureResult:
    """Every policy on the field, at the paper's cost, without noise."""
    budget = config.budget(most)
    experiment = Experiment(f"{field.name}, travel cost", field.problem(cost=True), field.truth, POLICIES, budget)
    result = experiment.run(config, config.count(RUNS, 10))
    frame = curves(result, np.arange(20.0, budget + 1, 20.0))
    figure = new_figure(8.5, 4.6)
    axes = figure.add_subplot()
    title = f"{field.name}, {'costs of travel and depth' if field.cost.get('magnitude') else 'cost of travel'}"
    draw_curves(axes, frame, "mean", title, xlabel="cost spent", ylabel="F1", log=False, band=True)
    axes.set_ylim(0, 1.02)
    axes.legend(frameon=False, ncols=2, loc="lower right", title="dashed: score divided by cost")
    routes = _routes(result, field)
    facts = {**field.facts, "runs": int(result.curves["replicate"].nunique()), "budget": budget}
    table = level_set_table(result, frame, "truvar")
    return FigureResult(TITLE, table, facts, {"curves": frame}, {"": figure, "routes": routes})


def _routes(result: Backtest, field: Field) -> object:
    """The field and one run's route of three policies."""
    figure = new_figure(11, 7)
    axes = figure.subplots(2, 2).ravel()
    draw_field(axes[0], field, f"the field; line: h = {field.threshold:.4g}")
    first = result.curves[result.curves["replicate"] == 0]
    for place, policy in zip(axes[1:], ROUTES, strict=True):
        route = first[first["policy"] == policy]
        draw_route(place, field, _until(route), policy)
    return figure


def _until(route: pd.DataFrame) -> pd.DataFrame:
    """The route up to the measurement that brought F1 to its mark, or all of it."""
    there = np.flatnonzero(route["score"].to_numpy() >= ROUTE_F1)
    return route if len(there) == 0 else route.iloc[: there[0] + 1]


def make(config: ReproductionConfig) -> FigureResult:
    return travel_cost(load_field(config.data), config)
