"""Figures of a study in three and more dimensions: slices along single columns, and a matrix of contours of pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from truvar._typing import Array
from truvar.domain.labels import place_in_words
from truvar.report import style
from truvar.report._plot_data import PlotData, cell_edges
from truvar.report._slices import LineSlice, PlaneSlice, PosteriorSlices, chosen_columns
from truvar.report.formatting import column_label, column_ticks
from truvar.report.style import INK

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_SLICES = 12  # panels of a figure of slices
MAX_PAIRED = 5  # columns of a matrix of contours: ten pairs
PANEL_WIDTH = 2.75  # inches
PANEL_HEIGHT = 2.25  # inches
CELL = 2.1  # inches, of one panel of a matrix
INTERVAL_SDS = 2.0  # half width of the band around a slice, in standard deviations
CONTOUR_LEVELS = 12  # filled contours of a panel
SPREAD = "Greys"  # colours of standard deviations
MAX_TICK_LETTERS = 20  # of all labels along a horizontal axis; more are written at an angle
MAX_TICK_LENGTH = 16  # letters of one label
TICK_ANGLE = 35  # degrees
BAND = "#44779A"  # the band around a slice
AT = "#D55E00"  # the point that the slices run through


def plot_slices(
    study: Any,
    columns: Sequence[str] | None = None,
    at: Mapping[str, Any] | None = None,
    dpi: float = 110,
) -> Figure:
    """Return a matplotlib Figure of the posterior along each column through one point.

    Args:
        study: The study, which is not changed.
        columns: Columns to show; default: all, or the twelve most important ones.
        at: The point by column; default: the recommended one.
        dpi: Dots per inch.

    Raises:
        InvalidArgumentError: If a column is unknown.
    """
    data = PlotData.from_study(study)
    slices = PosteriorSlices.through(study, at)
    chosen, note = chosen_columns(study, columns, MAX_SLICES)
    across = _panels_across(len(chosen))
    down = -(-len(chosen) // across)
    figure: Figure = style.new_figure(
        max(across * PANEL_WIDTH, 6.4), down * PANEL_HEIGHT + 1.1, dpi
    )
    panels = figure.subplots(down, across, squeeze=False, sharey=True)
    draw_slices(panels, data, slices, chosen)
    heading = _heading(data, slices, note, is_default=at is None)
    figure.suptitle(style.wrapped(heading, figure), x=0.01, ha="left", fontsize=10)
    return figure


def _panels_across(count: int) -> int:
    """Return the number of panels side by side that leaves few places empty."""
    if count == 4:
        return 2
    return min(count, 3 if count <= 6 or count == 9 else 4)


def draw_slices(
    panels: Any, data: PlotData, slices: PosteriorSlices, chosen: Sequence[int]
) -> None:
    """Draw the posterior along columns into an array of axes that share the vertical one; further axes stay empty.

    Args:
        panels: Axes, (rows, columns).
        data: Data of the study.
        slices: Slices through one point.
        chosen: Positions of the columns.
    """
    for number, ax in enumerate(panels.flat):
        if number >= len(chosen):
            ax.set_axis_off()
            continue
        _draw_slice(ax, data, slices, chosen[number])
        if number % panels.shape[1] == 0:
            ax.set_ylabel(data.study.quantity.label or "value")
    figure = panels.flat[0].figure
    style.legend_below(figure, _slice_handles(data, slices))


def plot_contours(
    study: Any,
    columns: Sequence[str] | None = None,
    at: Mapping[str, Any] | None = None,
    dpi: float = 110,
) -> Figure:
    """Return a matplotlib Figure of the estimate over each pair of columns through one point.

    Below the diagonal are the estimates of the pairs, above it their standard deviations, and on it
    the slices along single columns.

    Args:
        study: The study, which is not changed.
        columns: Columns to show; default: all, or the five most important ones.
        at: The point by column; default: the recommended one.
        dpi: Dots per inch.

    Raises:
        InvalidArgumentError: If a column is unknown.
    """
    data = PlotData.from_study(study)
    slices = PosteriorSlices.through(study, at)
    chosen, note = chosen_columns(study, columns, MAX_PAIRED)
    count = len(chosen)
    side = CELL if count > 3 else 1.35 * CELL
    figure: Figure = style.new_figure(max(count * side + 0.9, 6.4), count * side + 1.0, dpi)
    panels = figure.subplots(count, count, squeeze=False)
    heading = _heading(data, slices, note, is_default=at is None)
    figure.suptitle(style.wrapped(heading, figure), x=0.01, ha="left", fontsize=10)
    draw_contours(panels, data, slices, chosen)
    return figure


def draw_contours(
    panels: Any, data: PlotData, slices: PosteriorSlices, chosen: Sequence[int]
) -> None:
    """Draw the matrix of pairs into square array of axes.

    Args:
        panels: Axes, (count, count).
        data: Data of the study.
        slices: Slices through one point.
        chosen: Positions of the columns.
    """
    count = len(chosen)
    lines = [slices.line(k) for k in chosen]
    planes = {
        (row, column): slices.plane(chosen[column], chosen[row])
        for row in range(count)
        for column in range(row)
    }
    means = [plane.mean for plane in planes.values()]
    sds = [plane.sd for plane in planes.values()]
    images: dict[str, Any] = {}
    for row in range(count):
        for column in range(count):
            ax = panels[row, column]
            if column == row:
                _draw_slice(ax, data, slices, chosen[row], lines[row])
                ax.yaxis.set_major_locator(style.import_matplotlib("ticker").MaxNLocator(3))
                ax.yaxis.tick_right()
            elif column < row:
                plane = planes[row, column]
                levels = _levels(means)
                images["estimate"] = _draw_plane(
                    ax, data, slices, plane, plane.mean, levels, style.VALUES
                )
                _draw_thresholds(ax, data, plane)
            else:
                plane = planes[column, row].transposed
                images["standard deviation"] = _draw_plane(
                    ax, data, slices, plane, plane.sd, _levels(sds), SPREAD
                )
            _label_panel(ax, data, chosen, row, column)
    figure = panels.flat[0].figure
    middle = max(count // 2, 1)
    places = {"standard deviation": panels[:middle, -1], "estimate": panels[middle:, -1]}
    for what, image in images.items():
        bar = figure.colorbar(image, ax=places[what], location="right", fraction=0.5, pad=0.02)
        quantity = data.study.quantity.label
        label = what
        if quantity is not None:
            label = quantity if what == "estimate" else f"{what} of {quantity}"
        bar.set_label(label, fontsize=9)
        bar.ax.tick_params(labelsize=8)
    style.legend_below(figure, _slice_handles(data, slices))


def _levels(fields: Sequence[Array]) -> Array:
    """Return borders of contours that suit all fields."""
    low = min(float(field.min()) for field in fields)
    high = max(float(field.max()) for field in fields)
    locator = style.import_matplotlib("ticker").MaxNLocator(CONTOUR_LEVELS)
    return np.asarray(locator.tick_values(low, high if high > low else low + 1))


def _label_panel(ax: Any, data: PlotData, chosen: Sequence[int], row: int, column: int) -> None:
    """Keep the labels of a matrix at its sides: left for the lower half, right for the upper."""
    last = len(chosen) - 1
    up = column_label(data.domain.columns[chosen[row]])
    if column != row:
        if column == 0:
            ax.set_ylabel(up, fontsize=9)
        elif column == last:
            ax.yaxis.tick_right()
            ax.yaxis.set_label_position("right")
            ax.set_ylabel(up, fontsize=9)
        else:
            ax.set_yticklabels([])
    if row == last:
        ax.set_xlabel(column_label(data.domain.columns[chosen[column]]), fontsize=9)
    else:
        ax.set_xlabel("")
        ax.set_xticklabels([])


def _draw_slice(
    ax: Any, data: PlotData, slices: PosteriorSlices, column: int, line: LineSlice | None = None
) -> None:
    """Draw the posterior along one column, with the measurements."""
    shown = slices.line(column) if line is None else line
    is_categorical = column in data.domain.categorical
    if data.has_model:
        low = shown.mean - INTERVAL_SDS * shown.sd
        high = shown.mean + INTERVAL_SDS * shown.sd
        if is_categorical:
            ax.errorbar(
                shown.x, shown.mean, INTERVAL_SDS * shown.sd, fmt="o", color=style.LINE, ecolor=BAND, elinewidth=3,
                ms=5, zorder=5,
            )  # fmt: skip
        else:
            ax.fill_between(shown.x, low, high, color=BAND, alpha=0.25, lw=0)
            ax.plot(shown.x, shown.mean, color=style.LINE, lw=1.6)
    for threshold in data.thresholds:
        ax.axhline(threshold, color=style.THRESHOLD, lw=1, ls=":")
    known = np.isfinite(data.values)
    if known.any():
        opacity = slices.opacity(data.measured[known], [column])
        ax.scatter(
            data.measured[known, column],
            data.values[known],
            s=12,
            color=INK,
            alpha=opacity,
            lw=0,
            zorder=4,
        )
    for point in data.pending:
        ax.axvline(data.coordinates(point)[column], color=style.PENDING, lw=1, ls="-.")
    ax.axvline(slices.at[column], color=AT, lw=1)
    in_matrix = line is not None
    _set_column_axis(ax, data, column, "x", margin=not in_matrix, narrow=in_matrix)
    ax.set_xlabel(column_label(data.domain.columns[column]), fontsize=9)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def _is_cellwise(data: PlotData, plane: PlaneSlice) -> bool:
    """Return whether a plane is drawn cell by cell: contours need numbers on both sides."""
    return any(k in data.domain.categorical for k in plane.columns) or min(plane.mean.shape) < 3


def _draw_thresholds(ax: Any, data: PlotData, plane: PlaneSlice) -> None:
    """Draw the lines along which the estimate has the thresholds."""
    if _is_cellwise(data, plane):
        return
    for threshold in data.thresholds:
        if plane.mean.min() < threshold < plane.mean.max():
            for colour, width in (("white", 1.8), (style.THRESHOLD, 1.1)):
                ax.contour(
                    plane.x, plane.y, plane.mean, [threshold], colors=colour, linewidths=width
                )


def _draw_plane(
    ax: Any,
    data: PlotData,
    slices: PosteriorSlices,
    plane: PlaneSlice,
    field: Array,
    levels: Array,
    colours: str,
) -> Any:
    """Draw a field over two columns, with the measurements; return the coloured field."""
    if _is_cellwise(data, plane):
        borders = [cell_edges(axis, style.use_log_axis(axis)) for axis in (plane.x, plane.y)]
        image = ax.pcolormesh(
            *borders, field, cmap=colours, vmin=levels[0], vmax=levels[-1], rasterized=True
        )
    else:
        image = ax.contourf(plane.x, plane.y, field, levels, cmap=colours)
    across, up = plane.columns
    if len(data.measured):
        opacity = slices.opacity(data.measured, plane.columns)
        ax.scatter(
            data.measured[:, across], data.measured[:, up], s=11, color="white", alpha=opacity, zorder=4, lw=0.5,
            edgecolors=INK,
        )  # fmt: skip
    for point in data.pending:
        coordinates = data.coordinates(point)
        ax.plot(
            coordinates[across],
            coordinates[up],
            ls="",
            marker="D",
            ms=5,
            mfc=style.PENDING,
            mec="white",
            zorder=6,
        )
    ax.plot(
        slices.at[across],
        slices.at[up],
        ls="",
        marker="+",
        ms=10,
        mew=2,
        color=AT,
        zorder=7,
        clip_on=False,
    )
    _set_column_axis(ax, data, across, "x", margin=False, narrow=True)
    _set_column_axis(ax, data, up, "y", margin=False, narrow=True)
    return image


def _set_column_axis(
    ax: Any, data: PlotData, column: int, letter: str, margin: bool = True, narrow: bool = False
) -> None:
    """Set scale, ticks and limits of an axis that shows a column."""
    own = data.domain.points[:, column]
    low, high = (float(end) for end in data.domain.bounds[column])
    ticks = column_ticks(data.domain, column)
    ax.tick_params(labelsize=8)
    if ticks is not None:
        if narrow and column not in data.domain.categorical:
            ticks = ticks[:: max(len(ticks) // 2, 1)]
        texts = [_shorten(text) for _, text in ticks]
        getattr(ax, f"set_{letter}ticks")([at for at, _ in ticks], texts)
        if letter == "x" and sum(map(len, texts)) > MAX_TICK_LETTERS:
            ax.tick_params(axis="x", labelrotation=TICK_ANGLE)
            for label in ax.get_xticklabels():
                label.set(ha="right", rotation_mode="anchor")
    elif style.use_log_axis(own):
        ax.set(**{f"{letter}scale": "log"})
        return
    else:
        axis = ax.xaxis if letter == "x" else ax.yaxis
        axis.set_major_locator(
            style.import_matplotlib("ticker").MaxNLocator(4, steps=[1, 2, 2.5, 5, 10])
        )
    space = 0.04 * ((high - low) or 1.0) if margin else 0.0
    if column in data.domain.categorical:
        space = 0.5
    ax.set(**{f"{letter}lim": (low - space, high + space)})


def _shorten(text: str) -> str:
    return text if len(text) <= MAX_TICK_LENGTH else f"{text[: MAX_TICK_LENGTH - 1]}…"


def _slice_handles(data: PlotData, slices: PosteriorSlices) -> list[Any]:
    """Return the legend entries of slices and contours."""
    line = style.import_matplotlib("lines").Line2D
    patch = style.import_matplotlib("patches").Patch
    handles: list[Any] = []
    if data.has_model:
        handles.append(line([], [], color=style.LINE, lw=1.6, label="estimate"))
        handles.append(
            patch(facecolor=BAND, alpha=0.25, label=f"± {INTERVAL_SDS:g} standard deviations")
        )
    if len(data.measured):
        label = "measured; pale: far from the slice"
        handles.append(line([], [], ls="", marker="o", ms=4, mfc=INK, mec=INK, label=label))
    for threshold in data.thresholds:
        handles.append(
            line(
                [],
                [],
                color=style.THRESHOLD,
                lw=1,
                ls=":",
                label=data.threshold_text(threshold),
            )
        )
    if data.pending:
        handles.append(
            line([], [], color=style.PENDING, lw=1, ls="-.", marker="D", ms=4, label="suggested")
        )
    is_best = data.shows_best and np.array_equal(slices.at, data.best_point)
    label = "recommended" if is_best else "where the slices cross"
    handles.append(line([], [], color=AT, lw=1, marker="+", ms=8, mew=1.6, label=label))
    return handles


def _heading(data: PlotData, slices: PosteriorSlices, note: str, *, is_default: bool) -> str:
    where = data.best_name if is_default else "the point"
    place = place_in_words(data.domain, slices.point)
    text = f"{data.title}\nSlices through {where} {place}"
    return f"{text}; {note}" if note else text
