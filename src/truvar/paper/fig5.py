"""Figure 5 (supplement): the excess variance, the part of the variance on M above eta^2 / beta."""

from __future__ import annotations

import numpy as np
import pandas as pd

from truvar.acquisition.truncation import excess
from truvar.paper import fig1
from truvar.paper.experiment import FigureResult, ReproductionConfig
from truvar.report import style
from truvar.report.backtest_plot import COLOURS, finish_axes
from truvar.report.style import new_figure

_TITLE = "Excess variance"


def make(config: ReproductionConfig) -> FigureResult:
    """Return the reproduced figure."""
    x, f = fig1.function()
    snapshot = fig1.end_of_epoch(x, f)[0]  # the target is not met yet
    variance = snapshot.result.sd**2
    m = snapshot.result.potential
    tau = snapshot.eta**2 / snapshot.beta
    above = np.where(m, excess(variance, tau), 0.0)
    table = pd.DataFrame(
        [(len(snapshot.measured), int(m.sum()), tau, float(variance[m].sum()), float(above.sum()))],
        columns=["t", "points in M", "eta^2 / beta", "variance on M", "excess variance"],
    ).set_index("t")
    figure = new_figure(7.5, 3.6)
    axes = figure.add_subplot()
    axes.plot(x, variance, color=style.INK, lw=1.2, label="posterior variance")
    axes.axhline(tau, color=COLOURS[1], lw=1.2, label="eta² / beta")
    axes.fill_between(
        x, tau, tau + above, color=COLOURS[2], alpha=0.6, lw=0, label="excess variance, on M"
    )
    floor = -0.04 * float(variance.max())
    axes.plot(
        x,
        np.where(m, floor, np.nan),
        color=COLOURS[4],
        lw=5,
        solid_capstyle="butt",
        label="M, undecided",
    )
    axes.set_xlim(0, 1)
    finish_axes(
        axes, f"excess variance after {len(snapshot.measured)} measurements", "x", "variance"
    )
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    tables = {"variance": pd.DataFrame({"x": x, "variance": variance, "in_m": m})}
    return FigureResult(_TITLE, table, {}, tables, {"": figure})
