"""Figures 2 (c) and 4 on further functions: does what holds for one drawn function hold for others?

The functions are the one of Figure 2 (c), which was picked for its many regions above the
threshold, and the first five others of the seeds 0, 1, 2, ... with at least one per cent of their
points above it. On fewer points F1 is too coarse to compare policies.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from truvar.backtest import Backtest
from truvar.paper import fig2c
from truvar.paper._curves import leaders
from truvar.paper.experiment import FigureResult, ReproductionConfig
from truvar.report.backtest_plot import draw_curves
from truvar.report.style import new_figure

_TITLE = "Three noise levels, on further functions"
_RUNS = 10  # per function and policy
_FUNCTIONS = 5  # in addition to that of Figure 2 (c)
_LEAST_SHARE = 0.01  # share of the points that must be above the threshold
# Costs up to which the shares of the noise levels are shown.
_SHARES_UNTIL = (700.0, 1500.0, 2500.0)
_PRECISE = "gchk, noise 1e-06"
_COLUMNS = 3  # pictures beside each other


def _seeds() -> list[int]:
    """Return the seeds of the functions, that of Figure 2 (c) first."""
    found = [fig2c.SEED]
    seed = 0
    while len(found) <= _FUNCTIONS:
        if seed != fig2c.SEED and _share_above(seed) >= _LEAST_SHARE:
            found.append(seed)
        seed += 1
    return found


def _share_above(seed: int) -> float:
    """Return the share of points at which the function of that seed exceeds the threshold."""
    return float((fig2c.draw(seed)[1] >= fig2c.THRESHOLD).mean())


def make(config: ReproductionConfig) -> FigureResult:
    """Return the reproduced figure."""
    results = {seed: fig2c.run(config, seed, _RUNS, quick=1) for seed in _seeds()}
    frames = {seed: fig2c.cost_curves(result) for seed, result in results.items()}
    columns = {f"seed {seed}": _summary(results[seed], frames[seed], seed) for seed in results}
    table = pd.DataFrame(columns).T.rename_axis("function")
    table.loc["mean"] = table.mean(skipna=False)
    first = next(iter(results.values()))
    facts = {
        "runs_per_function": int(first.curves["replicate"].nunique()),
        "budget": first.budget,
        "seeds": list(results),
        "picked": fig2c.SEED,
    }
    curves = pd.concat(frames, names=["seed", None]).reset_index(level="seed")
    return FigureResult(_TITLE, table, facts, {"curves": curves}, {"": _picture(frames)})


def _summary(result: Backtest, frame: pd.DataFrame, seed: int) -> pd.Series:
    """Return F1 of the policies, what leads, and the shares of the noise levels, for one function.

    Args:
        result: The runs on the function.
        frame: Their curves.
        seed: Seed of the function.
    """
    row: dict[str, float] = {"share above": _share_above(seed)}
    for cost in fig2c.shown_costs(result):
        means = result.at(cost).mean()
        for policy in result.policies:
            row[f"F1 at {cost:g}, {policy}"] = float(means[policy])
    runs = result.curves[result.curves["policy"] == "truvar"].groupby("replicate")
    row["mean cost of truvar's runs"] = float(
        runs["spent"].max().mean()
    )  # they end when M is empty
    wide = frame.pivot(index="spent", columns="policy", values="mean").dropna()
    ahead = wide["truvar"] >= wide.drop(columns="truvar").max(axis=1)
    row["share of the costs at which no gchk is ahead of truvar"] = float(ahead.mean())
    row[f"{_PRECISE}, best of gchk from"] = _best_from(frame[frame["policy"] != "truvar"])
    for until in _SHARES_UNTIL:
        costs = fig2c.level_costs(result, min(until, result.budget))
        for level, variance in enumerate(fig2c.VARIANCES):
            row[f"share until {until:g}, noise {variance:g}"] = float(costs[level] / costs.sum())
    return pd.Series(row)


def _best_from(frame: pd.DataFrame) -> float:
    """Return the cost from which GCHK at the lowest noise stays the best; NaN if it ends behind."""
    last = leaders(frame).iloc[-1]
    return float(last["from"]) if last["policy"] == _PRECISE else np.nan


def _picture(frames: Mapping[int, pd.DataFrame]) -> Any:
    """Return a figure with F1 against cost for each function."""
    figure = new_figure(12, 7)
    panels = figure.subplots(-(-len(frames) // _COLUMNS), _COLUMNS, sharex=True, sharey=True)
    for number, (axes, (seed, frame)) in enumerate(zip(panels.flat, frames.items(), strict=True)):
        picked = ", that of figure 2 (c)" if seed == fig2c.SEED else ""
        title = f"seed {seed}{picked}: {100 * _share_above(seed):.1f} % above"
        draw_curves(
            axes, frame, "mean", title, xlabel="cost spent", ylabel="F1", log=False, band=True
        )
        axes.set_ylim(0, 1.02)
        axes.title.set_fontsize(10)
        axes.label_outer()
        if number > 0:
            axes.get_legend().remove()
    return figure
