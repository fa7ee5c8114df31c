"""Figure 2 (a): the lake at unit cost, F1 against the number of measurements; and the field itself, Figure 2 (d)."""

from __future__ import annotations

import numpy as np

from truvar.paper.experiment import Experiment, FigureResult, ReproductionConfig, curves, level_set_table
from truvar.paper.field_plots import draw_field
from truvar.paper.fields import Field, load_field
from truvar.report.backtest_plot import draw_curves
from truvar.report.style import new_figure

TITLE = "Level set at unit cost"
RUNS, STEPS = 100, 120
POLICIES = {"truvar": "truvar", "gchk": "gchk", "straddle": "straddle", "variance": "variance", "sur": "sur"}


def unit_cost(field: Field, config: ReproductionConfig, most: float = STEPS) -> FigureResult:
    """Every policy on the field, each measurement at cost 1, without noise."""
    steps = config.budget(most)
    experiment = Experiment(f"{field.name}, unit cost", field.problem(cost=False), field.truth, POLICIES, steps)
    result = experiment.run(config, config.count(RUNS, 10))
    frame = curves(result, np.arange(1.0, steps + 1))
    figure = new_figure(11, 4.3)
    left, right = figure.subplots(1, 2, width_ratios=[1.25, 1])
    title = f"{field.name}, unit cost"
    draw_curves(left, frame, "mean", title, xlabel="measurements", ylabel="F1", log=False, band=True)
    left.set_ylim(0, 1.02)
    draw_field(right, field, f"the field; line: h = {field.threshold:.4g}")
    facts = {**field.facts, "runs": int(result.curves["replicate"].nunique()), "budget": steps}
    return FigureResult(TITLE, level_set_table(result, frame, "truvar"), facts, {"curves": frame}, {"": figure})


def make(config: ReproductionConfig) -> FigureResult:
    return unit_cost(load_field(config.data), config)
