"""Figure 1: TruVaR on a function of one variable, around the end of an epoch.

After six measurements TruVaR chooses three points. All three lie in M, the undecided points, and M
shrinks with each of them. The third brings the confidence on M to within the target eta, so the
next epoch starts, with a smaller target.

TruVaR chooses among all points, and often one next to M. The function is a draw for which this
figure is as in the paper: its seed is the first for which the first epoch ends with the ninth
measurement and the last three lie in M.
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

_TITLE = "How TruVaR proceeds"
_PANELS = 4  # number of pictures
_EARLIEST = 6  # number of measurements before the first picture, at least
_LENGTHSCALE = 0.07
_NOISE = 1e-4  # variance
_SEED = 265  # of the function; see above how it was found
# factor on eta per epoch; larger than the 0.1 of the experiments, so that both targets can be seen
# in a plot
_R = 0.4


@dataclass(frozen=True)
class Snapshot:
    """State of a study after a measurement.

    Attributes:
        result: The result.
        measured: The measurements so far.
        eta: The target confidence.
        beta: The confidence parameter.
        epoch: Number of the epoch.
    """

    result: Result
    measured: pd.DataFrame
    eta: float
    beta: float
    epoch: int

    @property
    def widest(self) -> float:
        """Largest confidence (u - l) / 2 on M."""
        return float(((self.result.upper - self.result.lower) / 2)[self.result.potential].max())


def make(config: ReproductionConfig) -> FigureResult:
    """Return the reproduced figure."""
    x, f = function()
    snapshots = end_of_epoch(x, f)
    before: list[Snapshot | None] = [None, *snapshots[:-1]]
    rows = [
        (
            len(s.measured),
            s.epoch,
            s.eta,
            s.widest,
            float(s.result.potential.mean()),
            _was_in_m(x, s, earlier),
        )
        for s, earlier in zip(snapshots, before, strict=True)
    ]
    names = [
        "t",
        "epoch",
        "target eta",
        "widest confidence in M",
        "share of the domain in M",
        "last point was in M",
    ]
    table = pd.DataFrame(rows, columns=names).set_index("t")
    figure = new_figure(12.5, 3.8)
    for axes, snapshot in zip(figure.subplots(1, _PANELS, sharey=True), snapshots, strict=True):
        _draw(axes, x, f, snapshot)
    figure.axes[0].set_ylabel("f(x)")
    figure.legend(
        *figure.axes[0].get_legend_handles_labels(),
        frameon=False,
        loc="outside lower center",
        ncols=6,
    )
    return FigureResult(
        _TITLE,
        table,
        {"seed": _SEED, "length_scale": _LENGTHSCALE, "noise": _NOISE},
        {},
        {"": figure},
    )


def _was_in_m(x: Array, snapshot: Snapshot, before: Snapshot | None) -> bool | None:
    """Return whether the last point lay in M when it was chosen; None without the state before."""
    if before is None:
        return None
    index = int(np.abs(x - snapshot.measured["x"].iloc[-1]).argmin())
    return bool(before.result.potential[index])


def function() -> tuple[Array, Array]:
    """Return points of the unit interval, and a smooth function on them."""
    x = np.linspace(0.0, 1.0, 300)
    knots = np.linspace(0.0, 1.0, 25)
    draws = np.random.RandomState(_SEED).standard_normal(len(knots))  # NumPy guarantees this stream
    kernel = RBF(_LENGTHSCALE)
    return x, np.asarray(kernel(x[:, None], knots[:, None]) @ draws / 1.5)


def end_of_epoch(x: Array, f: Array) -> list[Snapshot]:
    """Return an epoch's last states and the next one's first, for the first long epoch."""
    study = Study(
        Domain.grid(x=x),
        Maximize(),
        kernel=RBF(_LENGTHSCALE),
        mean=0.0,
        noise=_NOISE,
        policy=TruVaR(r=_R),
    )
    snapshots: list[Snapshot] = []
    while True:
        suggestion = study.ask()
        study.tell(suggestion, float(f[suggestion.index or 0]))
        epoch = study.epoch
        snapshots.append(
            Snapshot(study.result(), study.measurements, epoch.eta, epoch.beta, epoch.index)
        )
        shown = snapshots[-_PANELS:]
        epochs = [snapshot.epoch for snapshot in shown]
        if len(snapshots) >= _EARLIEST + _PANELS - 1 and epochs[0] == epochs[-2] < epochs[-1]:
            return shown


def _draw(ax: Any, x: Array, f: Array, snapshot: Snapshot) -> None:
    """Draw one panel.

    Args:
        ax: Axes to draw on.
        x: Points of the unit interval.
        f: The function on them.
        snapshot: State to show.
    """
    result = snapshot.result
    measured = snapshot.measured
    ax.fill_between(
        x, result.lower, result.upper, color=COLOURS[2], alpha=0.35, lw=0, label="confidence"
    )
    ax.plot(x, f, color=style.INK, lw=1.2, label="f")
    ax.plot(x, result.mean, color=COLOURS[5], lw=1.0, ls="--", label="posterior mean")
    inside = np.where(result.potential, 1.0, np.nan)
    ax.plot(
        x, (result.mean + snapshot.eta) * inside, color=COLOURS[1], lw=1.0, label="mean ± target"
    )
    ax.plot(x, (result.mean - snapshot.eta) * inside, color=COLOURS[1], lw=1.0)
    floor = float(f.min()) - 1.4
    ax.plot(x, floor * inside, color=COLOURS[4], lw=5, solid_capstyle="butt", label="M, undecided")
    ax.plot(measured["x"], measured["value"], ls="", marker="o", ms=4, color=style.INK)
    last = measured.iloc[-1:]
    ax.plot(
        last["x"],
        last["value"],
        ls="",
        marker="o",
        ms=7,
        mfc="none",
        mec=COLOURS[1],
        mew=1.6,
        label="chosen last",
    )
    ax.set_title(f"t = {len(measured)}, target {snapshot.eta:g}", loc="left", fontsize=10)
    ax.set_xlabel("x")
    ax.set_xlim(0, 1)
    ax.spines[["top", "right"]].set_visible(False)
