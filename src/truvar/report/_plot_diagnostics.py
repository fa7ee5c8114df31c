"""Figure of the model check: every measured value against what the other measurements predict, and the calibration."""

from __future__ import annotations

from collections.abc import Callable
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from truvar._typing import Array, Mask
from truvar.models.diagnostics import NORMAL_95
from truvar.report import style
from truvar.report._plot_data import PlotData, add_legend
from truvar.report.style import INK

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from truvar.study.study import Study

WIDTH = 9.6  # inches
HEIGHT = 4.4  # inches
LEVELS = np.linspace(0.05, 0.99, 48)  # nominal coverages at which the calibration is computed
DPI = 110  # dots per inch
INSIDE = "#44779A"  # measurements inside their 95 % interval
OUTSIDE = "#E69F00"  # measurements outside of it, of which one in twenty is expected
CONTRADICTS = "#B2182B"  # measurements that contradict the model individually
MAX_LABELS = 12  # measurements whose ids are written beside them
MARGIN = 0.06  # of the axes, as a share of the range of the values

Inverse = Callable[[Array], Array]


def plot_model_check(study: Study, inverse: Inverse | None = None) -> Figure:
    """Return a matplotlib Figure of the measured values against their leave-one-out predictions, and the calibration.

    Args:
        study: The study, which is not changed.
        inverse: Function from the model's units to those of the measurements, where the model
            transforms them; default: the axes have the model's units.

    Raises:
        MissingDependencyError: If matplotlib is not installed.
    """
    figure: Figure = style.new_figure(WIDTH, HEIGHT, DPI)
    data = PlotData.from_study(study)
    left, right = figure.subplots(1, 2, width_ratios=[1.45, 1])
    draw_model_check(left, data, inverse)
    draw_calibration(right, data)
    verdict = "passed" if data.result.model_check.ok else "failed"
    figure.suptitle(
        f"{study.name or 'study'}: model check {verdict}", x=0.01, ha="left", fontsize=11
    )
    return figure


def draw_model_check(ax: Any, data: PlotData, inverse: Inverse | None = None) -> None:
    """Draw leave-one-out predictions with 95 % intervals over the measured values.

    Args:
        ax: Axes to draw into.
        data: Data of the study.
        inverse: As for `plot_model_check`.
    """
    check = data.result.model_check
    z = np.abs(check.z_scores)
    shown = np.isfinite(z)
    to_units = inverse or _unchanged
    values = to_units(check.values)
    if not shown.any():
        _write_too_few(ax)
        return
    middle = to_units(check.means)
    low = to_units(check.means - NORMAL_95 * check.sds)
    high = to_units(check.means + NORMAL_95 * check.sds)
    outlying = check.outlying
    outside = (z > NORMAL_95) & ~outlying
    groups: list[tuple[str, str, Mask]] = [
        ("inside 95 %", INSIDE, shown & ~outside & ~outlying),
        ("outside", OUTSIDE, outside),
        ("contradicts the model", CONTRADICTS, outlying),
    ]
    handles = [
        ax.axline(
            (float(values[0]), float(values[0])), slope=1, color=INK, lw=1, ls=":", label="exact"
        )
    ]
    for label, colour, mask in groups:
        if mask.any():
            bars = np.stack([middle[mask] - low[mask], high[mask] - middle[mask]])
            drawn = ax.errorbar(
                values[mask], middle[mask], yerr=bars, fmt="o", ms=4, color=colour, ecolor=colour, elinewidth=1.1,
                alpha=0.9, label=f"{label}: {mask.sum()}",
            )  # fmt: skip
            handles.append(drawn)
    _write_ids(ax, values, middle, [(i, check.ids[i]) for i in np.argsort(-z) if outlying[i]])
    _set_limits(ax, values[shown], low[shown], high[shown])
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    units = "" if inverse is not None or not _is_transformed(data) else " (in the model's units)"
    unit = data.study.quantity.unit
    units = units or (f" ({unit})" if unit else "")
    ax.set_xlabel(f"measured {data.study.quantity.name or 'value'}{units}")
    ax.set_ylabel("predicted from the others")
    add_legend(ax, handles, max_columns=4)


def calibration(z_scores: Array) -> tuple[Array, Array, Array, Array]:
    """Return how many measurements lie inside their leave-one-out intervals, for intervals of any probability.

    Args:
        z_scores: Errors of the predictions in standard deviations, NaN where nothing is predicted.
            (t,)

    Returns:
        Probabilities of the intervals, shares of the measurements inside them, and the 95 % range
        of that share if the model is right and the errors are independent: its lower and upper end.
        (m,) each
    """
    z = np.abs(z_scores[np.isfinite(z_scores)])
    quantile = NormalDist().inv_cdf
    half_widths = np.array([quantile(0.5 + level / 2) for level in LEVELS])
    if len(z) == 0:
        unknown = np.full(len(LEVELS), np.nan)
        return LEVELS, unknown, unknown, unknown
    observed = (z[None, :] <= half_widths[:, None]).mean(axis=1)
    low, high = _binomial_range(len(z))
    return LEVELS, observed, low, high


def _binomial_range(count: int) -> tuple[Array, Array]:
    """Return the central 95 % range of the share of successes among `count`, for each of `LEVELS`."""
    from scipy.stats import binom

    return binom.ppf(0.025, count, LEVELS) / count, binom.ppf(0.975, count, LEVELS) / count


def draw_calibration(ax: Any, data: PlotData) -> None:
    """Draw the share of the measurements inside their intervals against the probability of the intervals."""
    levels, observed, low, high = calibration(data.result.model_check.z_scores)
    if not np.isfinite(observed).any():
        _write_too_few(ax)
        return
    band = ax.fill_between(
        100 * levels, 100 * low, 100 * high, color=INSIDE, alpha=0.2, lw=0, label="95 % range"
    )
    exact = ax.plot([0, 100], [0, 100], color=INK, lw=1, ls=":", label="calibrated")[0]
    line = ax.step(
        100 * levels, 100 * observed, where="post", color=style.LINE, lw=1.6, label="these"
    )[0]
    ax.set_xlim(0, 100)
    ax.set_ylim(0, 101)
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter("{x:.0f} %")
    ax.set_xlabel("probability of the interval")
    ax.set_ylabel("measurements inside")
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    add_legend(ax, [exact, line, band], max_columns=3)


def _write_too_few(ax: Any) -> None:
    ax.text(
        0.5,
        0.5,
        "too few measurements",
        ha="center",
        va="center",
        color=style.SOFT,
        transform=ax.transAxes,
    )
    ax.set_xticks([])
    ax.set_yticks([])


def _unchanged(values: Array) -> Array:
    return values


def _is_transformed(data: PlotData) -> bool:
    """Return whether the model sees other values than those that were measured."""
    check = data.result.model_check
    modelled = dict(zip(check.ids, check.values.tolist(), strict=True))
    measured = dict(zip(data.ids, data.values.tolist(), strict=True))
    return any(
        modelled[id_] != value
        for id_, value in measured.items()
        if id_ in modelled and np.isfinite(value)
    )


def _write_ids(ax: Any, values: Array, middle: Array, named: list[tuple[Any, int]]) -> None:
    """Write ids beside the points, from left to right above and below in turn, so that neighbours stay readable."""
    from_left = sorted(named[:MAX_LABELS], key=lambda entry: float(values[entry[0]]))
    for number, (i, id_) in enumerate(from_left):
        offset = (4, 4) if number % 2 == 0 else (4, -11)
        ax.annotate(
            str(id_), (values[i], middle[i]), xytext=offset, textcoords="offset points", fontsize=8, color=CONTRADICTS,
        )  # fmt: skip


def _set_limits(ax: Any, values: Array, low: Array, high: Array) -> None:
    """Show every value and its interval; very wide intervals, as of values without weight, run out of the axes."""
    least = float(values.min())
    greatest = float(values.max())
    spread = (greatest - least) or 1.0
    ax.set_xlim(least - MARGIN * spread, greatest + MARGIN * spread)
    bottom = max(min(least, float(low.min())), least - spread)
    top = min(max(greatest, float(high.max())), greatest + spread)
    ax.set_ylim(bottom - MARGIN * spread, top + MARGIN * spread)
