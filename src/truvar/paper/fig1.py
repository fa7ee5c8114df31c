"""Figure 1: TruVaR on one function of one variable, around the end of an epoch.

Three measurements within M bring the confidence to within the target and M shrinks; then the target shrinks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.gaussian_process.kernels import RBF

from truvar._typing import Array
from truvar.acquisition import TruVaR
from truvar.domain.domain import Domain
from truvar.domain.goals import Maximize
from truvar.paper.experiment import FigureResult, ReproductionConfig
from truvar.report import style
from truvar.report.backtest_plot import COLOURS
from truvar.report.style import new_figure
from truvar.study.result import Result
from truvar.study.study import Study

TITLE = "How TruVaR proceeds"
PANELS, EARLIEST = 4, 6  # pictures, and the measurement of the first of them at the earliest
LENGTH, NOISE, SEED = 0.07, 1e-4, 7
SHRINKS = 0.4  # r: gentler than the 0.1 of the experiments, so that the target can be seen to shrink


@dataclass(frozen=True)
class Moment:
    """Where the study stood after a measurement."""

    result: Result
    measured: pd.DataFrame
    eta: float
    beta: float
    epoch: int

    @property
    def widest(self) -> float:
        """The largest confidence, half of u - l, in M."""
        return float(((self.result.upper - self.result.lower) / 2)[self.result.potential].max())


def make(config: ReproductionConfig) -> FigureResult:
    x, f = function()
    moments = around_the_end_of_an_epoch(x, f)
    rows = [(len(m.measured), m.epoch, m.eta, m.widest, float(m.result.potential.mean())) for m in moments]
    names = ["t", "epoch", "target eta", "widest confidence in M", "share of the domain in M"]
    table = pd.DataFrame(rows, columns=names).set_index("t")
    figure = new_figure(12.5, 3.8)
    for axes, moment in zip(figure.subplots(1, PANELS, sharey=True), moments, strict=True):
        draw(axes, x, f, moment)
    figure.axes[0].set_ylabel("f(x)")
    figure.legend(*figure.axes[0].get_legend_handles_labels(), frameon=False, loc="outside lower center", ncols=5)
    return FigureResult(TITLE, table, {"seed": SEED, "length_scale": LENGTH, "noise": NOISE}, {}, {"": figure})


def function() -> tuple[Array, Array]:
    """Points of the unit interval, and a smooth function on them."""
    x = np.linspace(0.0, 1.0, 300)
    knots = np.linspace(0.0, 1.0, 25)
    draws = np.random.RandomState(SEED).standard_normal(len(knots))  # a stream NumPy promises never to change
    kernel = RBF(LENGTH)
    return x, np.asarray(kernel(x[:, None], knots[:, None]) @ draws / 1.5)


def around_the_end_of_an_epoch(x: Array, f: Array) -> list[Moment]:
    """The moments of one epoch up to its end, the first that is long enough."""
    study = Study(Domain.grid(x=x), Maximize(), kernel=RBF(LENGTH), mean=0.0, noise=NOISE, policy=TruVaR(r=SHRINKS))
    moments: list[Moment] = []
    while True:
        suggestion = study.ask()
        study.tell(suggestion, float(f[suggestion.index or 0]))
        epoch = study.epoch
        moments.append(Moment(study.result(), study.measurements, epoch.eta, epoch.beta, epoch.index))
        shown = moments[-PANELS:]
        epochs = [moment.epoch for moment in shown]
        if len(moments) >= EARLIEST + PANELS - 1 and epochs[0] == epochs[-2] < epochs[-1]:
            return shown


def draw(ax: Any, x: Array, f: Array, moment: Moment) -> None:
    result, told = moment.result, moment.measured
    ax.fill_between(x, result.lower, result.upper, color=COLOURS[2], alpha=0.35, lw=0, label="confidence")
    ax.plot(x, f, color=style.INK, lw=1.2, label="f")
    ax.plot(x, result.mean, color=COLOURS[5], lw=1.0, ls="--", label="posterior mean")
    middle = result.mean
    inside = np.where(result.potential, 1.0, np.nan)
    ax.plot(x, (middle + moment.eta) * inside, color=COLOURS[1], lw=1.0, label="mean ± target")
    ax.plot(x, (middle - moment.eta) * inside, color=COLOURS[1], lw=1.0)
    floor = float(f.min()) - 1.4
    ax.plot(x, floor * inside, color=COLOURS[4], lw=5, solid_capstyle="butt", label="M")
    ax.plot(told["x"], told["value"], ls="", marker="o", ms=4, color=style.INK)
    ax.plot(told["x"].iloc[-1:], told["value"].iloc[-1:], ls="", marker="o", ms=7, mfc="none", mec=COLOURS[1], mew=1.6)
    ax.set_title(f"t = {len(told)}, target {moment.eta:g}", loc="left", fontsize=10)
    ax.set_xlabel("x")
    ax.set_xlim(0, 1)
    ax.spines[["top", "right"]].set_visible(False)
