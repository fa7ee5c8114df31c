"""Figure 4 (supplement): the function with three noise levels, TruVaR's cost on each."""

from __future__ import annotations

import numpy as np
import pandas as pd

from truvar.paper import fig2c
from truvar.paper.experiment import FigureResult, ReproductionConfig
from truvar.report import style
from truvar.report.backtest_plot import COLOURS, finish_axes
from truvar.report.style import new_figure

_TITLE = "Cost that TruVaR spends on each noise level"
_PARTS = 4  # equal parts of the budget for which the shares are shown


def make(config: ReproductionConfig) -> FigureResult:
    """Return the reproduced figure."""
    result = fig2c.run(config)
    steps = result.curves[result.curves["policy"] == "truvar"].copy()
    steps["cost"] = np.asarray(fig2c.COSTS)[steps["level"]]
    steps["part"] = np.minimum(
        (_PARTS * (steps["spent"] - steps["cost"]) / result.budget).astype(int), _PARTS - 1
    )
    spent = fig2c.level_costs(result, result.budget)
    parts = steps.pivot_table(
        index="level", columns="part", values="cost", aggfunc="sum", fill_value=0.0
    )
    parts = parts.reindex(range(len(fig2c.COSTS)), fill_value=0.0)
    table = pd.DataFrame({"mean cost": spent})
    for until in fig2c.shown_costs(result):
        table[f"share until {until:g}"] = _shares(fig2c.level_costs(result, until))
    for part in parts.columns:
        table[f"share in quarter {int(part) + 1}"] = _shares(parts[part])
    table.index = pd.Index([f"{variance:g}" for variance in fig2c.VARIANCES], name="noise variance")
    facts = {"runs": int(steps["replicate"].nunique()), "budget": result.budget, "seed": fig2c.SEED}
    return FigureResult(_TITLE, table, facts, {}, {"": _picture(table)})


def _shares(costs: pd.Series) -> pd.Series:
    return costs / costs.sum()


def _picture(table: pd.DataFrame) -> object:
    """Return a figure of the function, the cost per level, and each level's share over time."""
    figure = new_figure(11.5, 3.7)
    left, middle, right = figure.subplots(1, 3, width_ratios=[1.15, 1, 1.15])
    domain, truth = fig2c.draw()
    x, y = domain.axes or ()  # a grid
    values = truth.reshape(len(x), len(y)).T
    image = left.pcolormesh(x, y, values, cmap=style.VALUES, shading="nearest", rasterized=True)
    left.contour(x, y, values, levels=[fig2c.THRESHOLD], colors="white", linewidths=1.5)
    figure.colorbar(image, ax=left, pad=0.02)
    finish_axes(left, f"the function; line: h = {fig2c.THRESHOLD:g}", "x", "y")
    middle.bar(list(table.index), table["mean cost"], color=COLOURS[5], width=0.6)
    finish_axes(middle, "cost spent on each level", "noise variance", "mean cost")
    quarters = [name for name in table.columns if name.startswith("share in quarter")]
    bottom = np.zeros(len(quarters))
    for variance, colour in zip(table.index, (COLOURS[5], COLOURS[2], COLOURS[4]), strict=True):
        height = table.loc[variance, quarters].to_numpy(dtype=float)
        right.bar(
            np.arange(1, len(quarters) + 1),
            height,
            bottom=bottom,
            color=colour,
            label=variance,
            width=0.7,
        )
        bottom += np.nan_to_num(height)
    right.set_xticks(np.arange(1, len(quarters) + 1))
    right.set_ylim(0, 1)
    finish_axes(right, "share of the cost, as the run goes on", "quarter of the budget", "share")
    right.legend(title="noise", frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure
