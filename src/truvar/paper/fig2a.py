"""Figure 2 (a): the lake at unit cost, F1 against measurements. Figure 2 (d): the lake."""

from __future__ import annotations

import numpy as np

from truvar.paper._curves import curves, level_set_table
from truvar.paper._field_plots import draw_field
from truvar.paper.experiment import Experiment, FigureResult, ReproductionConfig
from truvar.paper.fields import Field, load_field
from truvar.report.backtest_plot import draw_curves
from truvar.report.style import new_figure

_TITLE = "Level set at unit cost"
_RUNS = 100
_STEPS = 120  # measurements per run
_POLICIES = {
    "truvar": "truvar",
    "gchk": "gchk",
    "straddle": "straddle",
    "variance": "variance",
    "sur": "sur",
}


def unit_cost(field: Field, config: ReproductionConfig, n_steps: float = _STEPS) -> FigureResult:
    """Compare the policies on a field without noise, with a cost of 1 per measurement.

    Args:
        field: The field.
        config: How much to run.
        n_steps: Number of measurements per run.
    """
    steps = config.budget(n_steps)
    experiment = Experiment(
        f"{field.name}, unit cost", field.problem(cost=False), field.truth, _POLICIES, steps
    )
    result = experiment.run(config, config.count(_RUNS, 10))
    frame = curves(result, np.arange(1.0, steps + 1))
    figure = new_figure(11, 4.3)
    left, right = figure.subplots(1, 2, width_ratios=[1.25, 1])
    title = f"{field.name}, unit cost"
    draw_curves(
        left, frame, "mean", title, xlabel="measurements", ylabel="F1", log=False, band=True
    )
    left.set_ylim(0, 1.02)
    draw_field(right, field, f"the field; line: h = {field.threshold:.4g}")
    facts = {**field.facts, "runs": int(result.curves["replicate"].nunique()), "budget": steps}
    return FigureResult(
        _TITLE, level_set_table(result, frame, "truvar"), facts, {"curves": frame}, {"": figure}
    )


def make(config: ReproductionConfig) -> FigureResult:
    """Return the reproduced figure."""
    return unit_cost(load_field(config.data), config)
