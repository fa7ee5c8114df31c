"""Figure 2 (b): the lake with costs of travel and depth. Figures 2 (e) and (f): routes.

The paper compares with GCHK, which ignores costs. Here the baselines are also run with their scores
divided by cost, except those whose scores can be negative.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from truvar.backtest import Backtest
from truvar.paper._curves import curves, level_set_table
from truvar.paper._field_plots import draw_field, draw_route
from truvar.paper.experiment import Experiment, FigureResult, ReproductionConfig
from truvar.paper.fields import Field, load_field
from truvar.report.backtest_plot import draw_curves
from truvar.report.style import new_figure

_TITLE = "Level set at the cost of travel and depth"
_RUNS = 100
_BUDGET = 8000.0  # cost per run
_POLICIES = {
    name: name
    for name in (
        "truvar",
        "gchk",
        "gchk/cost",
        "straddle",
        "variance",
        "variance/cost",
        "sur",
        "sur/cost",
    )
}
_ROUTE_POLICIES = ("gchk", "truvar", "gchk/cost")  # policies whose routes are shown
_ROUTE_F1 = 0.9  # F1 score at which the maps end a route


def travel_cost(
    field: Field, config: ReproductionConfig, full_budget: float = _BUDGET
) -> FigureResult:
    """Compare the policies on a field without noise, with the cost of the paper.

    Args:
        field: The field.
        config: How much to run.
        full_budget: Cost per run.
    """
    budget = config.budget(full_budget)
    experiment = Experiment(
        f"{field.name}, travel cost", field.problem(cost=True), field.truth, _POLICIES, budget
    )
    result = experiment.run(config, config.count(_RUNS, 10))
    frame = curves(result, np.arange(20.0, budget + 1, 20.0))
    cost = "costs of travel and depth" if field.cost.get("magnitude") else "cost of travel"
    figure = _picture(frame, f"{field.name}, {cost}")
    routes = _routes(result, field)
    facts = {**field.facts, "runs": int(result.curves["replicate"].nunique()), "budget": budget}
    table = level_set_table(result, frame, "truvar")
    return FigureResult(_TITLE, table, facts, {"curves": frame}, {"": figure, "routes": routes})


def _picture(frame: pd.DataFrame, title: str) -> object:
    """Return a figure of F1 against cost.

    Args:
        frame: Curves, from `truvar.paper._curves.curves`.
        title: Title of the figure.
    """
    figure = new_figure(10.5, 4.6)
    axes = figure.add_subplot()
    draw_curves(axes, frame, "mean", title, xlabel="cost spent", ylabel="F1", log=False, band=True)
    axes.set_ylim(0, 1.02)
    # Beside the curves: within the axes it would hide one of them.
    axes.legend(
        frameon=False,
        loc="upper left",
        bbox_to_anchor=(1.0, 1.0),
        title="dashed: score divided by cost",
    )
    return figure


def _routes(result: Backtest, field: Field) -> object:
    """Return a figure of the field and the routes of three policies in the first replicate."""
    figure = new_figure(11, 7)
    axes = figure.subplots(2, 2).ravel()
    draw_field(axes[0], field, f"the field; line: h = {field.threshold:.4g}")
    first = result.curves[result.curves["replicate"] == 0]
    for panel, policy in zip(axes[1:], _ROUTE_POLICIES, strict=True):
        route = first[first["policy"] == policy]
        draw_route(panel, field, _up_to_target(route), policy)
    return figure


def _up_to_target(route: pd.DataFrame) -> pd.DataFrame:
    """Return the route until F1 first reaches `_ROUTE_F1`, or all of it."""
    reached = np.flatnonzero(route["score"].to_numpy() >= _ROUTE_F1)
    return route if len(reached) == 0 else route.iloc[: reached[0] + 1]


def make(config: ReproductionConfig) -> FigureResult:
    """Return the reproduced figure."""
    return travel_cost(load_field(config.data), config)
