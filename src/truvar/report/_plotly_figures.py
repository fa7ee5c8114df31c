"""Figures by name, drawn with Plotly (`pip install "truvar[plotly]"`); `matplotlib_figures` draws the same.

They show the same data as those of matplotlib, from the same functions, and the values under the
cursor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from truvar._typing import Array
from truvar.exceptions import import_optional
from truvar.messages import format_coordinates
from truvar.report import style
from truvar.report._plot_2d import grid_of
from truvar.report._plot_convergence import (
    AGAINST,
    best_so_far,
    positions,
    score_goal,
    score_name,
    shown_axes,
)
from truvar.report._plot_data import INTERVAL_LABEL, PlotData
from truvar.report._plot_diagnostics import calibration
from truvar.report._plot_slices import INTERVAL_SDS, MAX_PAIRED, MAX_SLICES
from truvar.report._slices import PosteriorSlices, chosen_columns, column_importance
from truvar.report.backtest_plot import NORMAL_95, POINTS, line_styles
from truvar.report.formatting import column_label, column_ticks, format_number
from truvar.study.convergence import CHECKPOINTS, score_history

BAND = "rgba(68,119,154,0.25)"
MEAN = "#2E75B6"
MARK = "#808080"
AT = "#D55E00"
COLOUR_MAP = "Viridis"
PANEL = 260  # pixels, the height of a panel
POINT_DIGITS = 3  # significant digits of the point that slices run through


def draw(kind: str, subject: Any, theme: str, options: dict[str, Any]) -> Any:
    """Return a figure of a study or backtest.

    Args:
        kind: Name of the figure.
        subject: The study, or the backtest.
        theme: "light" or "dark".
        options: Arguments of the function that draws.

    Raises:
        MissingDependencyError: If Plotly is not installed.
    """
    figure = FIGURES[kind](subject, **options)
    legend = {"orientation": "h", "y": -0.18}  # below, where no colour bar is
    template = "plotly_dark" if theme == "dark" else "plotly_white"
    figure.update_layout(template=template, title_font_size=14, legend=legend)
    return figure


def _graph() -> Any:
    return import_optional("plotly.graph_objects", "drawing with Plotly", "plotly")


def _subplots(rows: int, columns: int, **options: Any) -> Any:
    make = import_optional("plotly.subplots", "drawing with Plotly", "plotly").make_subplots
    return make(rows=rows, cols=columns, **options)


# -- the domain
# --------------------------------------------------------------------------------------------------


def plot_map(study: Any, truth: Any = None) -> Any:
    """Return a curve of one column, a map of two, or the contours of more."""
    data = PlotData.from_study(study, truth)
    dimensions = len(data.domain.columns)
    if dimensions > 2:
        return plot_contours(study)
    figure = _graph().Figure()
    if dimensions == 1:
        _add_curve(figure, data)
    else:
        _add_map(figure, data)
    figure.update_layout(title=data.title)
    return figure


def _add_curve(figure: Any, data: PlotData) -> None:
    go = _graph()
    order = np.argsort(data.domain.points[:, 0])
    x = data.domain.points[order, 0]
    statements = data.result.statements
    _add_band(figure, x, statements.lower[order], statements.upper[order], INTERVAL_LABEL)
    figure.add_trace(
        go.Scatter(x=x, y=data.result.mean[order], line_color=MEAN, name="posterior mean")
    )
    if data.truth is not None:
        figure.add_trace(
            go.Scatter(x=x, y=data.truth[order], line={"dash": "dash", "color": MARK}, name="truth")
        )
    _add_measured(figure, data, data.measured[:, 0], data.values)
    _add_thresholds(figure, data)
    for point in data.pending:
        figure.add_vline(
            data.coordinates(point)[0], line={"color": style.PENDING, "dash": "dashdot"}
        )
    _set_column(figure, data, 0, "x")
    figure.update_yaxes(title="value")


def _add_map(figure: Any, data: PlotData) -> None:
    go = _graph()
    points = data.domain.points
    mean = data.result.mean
    grid = grid_of(points)
    bar = {"title": "posterior mean"}
    if grid is None:
        marker = {
            "color": mean,
            "colorscale": COLOUR_MAP,
            "showscale": True,
            "colorbar": bar,
            "symbol": "square",
        }
        figure.add_trace(
            go.Scatter(x=points[:, 0], y=points[:, 1], mode="markers", marker=marker, name="points")
        )
    else:
        x, y, order = grid
        z = mean[order].reshape(len(x), len(y)).T
        figure.add_trace(
            go.Heatmap(x=x, y=y, z=z, colorscale=COLOUR_MAP, colorbar=bar, name="posterior mean")
        )
        for threshold in data.thresholds:
            figure.add_trace(_level(go, x, y, z, threshold))
    _add_measured(figure, data, data.measured[:, 0], data.measured[:, 1], lines=data.travels)
    _add_pending(figure, data, 0, 1)
    for k, letter in enumerate("xy"):
        _set_column(figure, data, k, letter)


def _level(go: Any, x: Array, y: Array, z: Array, threshold: float) -> Any:
    """Return the line where a field crosses a threshold."""
    contours = {"start": threshold, "end": threshold, "size": 1, "coloring": "none"}
    name = f"h = {format_number(threshold)}"
    return go.Contour(
        x=x,
        y=y,
        z=z,
        contours=contours,
        line={"color": "white", "width": 2},
        showscale=False,
        name=name,
    )


def plot_slices(
    study: Any, columns: Sequence[str] | None = None, at: Mapping[str, Any] | None = None
) -> Any:
    """Return the posterior along each column through one point."""
    go = _graph()
    data = PlotData.from_study(study)
    slices = PosteriorSlices.through(study, at)
    chosen, note = chosen_columns(study, columns, MAX_SLICES)
    across = min(len(chosen), 3)
    rows = -(-len(chosen) // across)
    figure = _subplots(rows, across, shared_yaxes=True)
    known = np.isfinite(data.values)
    for number, column in enumerate(chosen):
        where = {"row": number // across + 1, "col": number % across + 1}
        line = slices.line(column)
        if data.has_model:
            low = line.mean - INTERVAL_SDS * line.sd
            high = line.mean + INTERVAL_SDS * line.sd
            _add_band(figure, line.x, low, high, f"± {INTERVAL_SDS:g} standard deviations", **where)
            figure.add_trace(
                go.Scatter(x=line.x, y=line.mean, line_color=MEAN, showlegend=False), **where
            )
        opacity = slices.opacity(data.measured[known], [column])
        marker = {"color": MARK, "opacity": opacity, "size": 6}
        dots = go.Scatter(
            x=data.measured[known, column], y=data.values[known], mode="markers", marker=marker
        )
        figure.add_trace(
            dots.update(showlegend=False, text=_texts(data, known), name="measured"), **where
        )
        figure.add_vline(slices.at[column], line={"color": AT, "width": 1}, **where)
        _set_column(figure, data, column, "x", **where)
    _add_thresholds(figure, data)
    figure.update_layout(
        title=_heading(data, slices, note), height=PANEL * rows + 120, showlegend=False
    )
    return figure


def plot_contours(
    study: Any, columns: Sequence[str] | None = None, at: Mapping[str, Any] | None = None
) -> Any:
    """Return the posterior mean over each pair of columns through one point."""
    go = _graph()
    data = PlotData.from_study(study)
    slices = PosteriorSlices.through(study, at)
    chosen, note = chosen_columns(study, columns, MAX_PAIRED)
    if len(chosen) == 1:
        return plot_slices(study, columns, at)
    count = len(chosen) - 1
    figure = _subplots(count, count, horizontal_spacing=0.03, vertical_spacing=0.04)
    for row in range(count):
        for column in range(row + 1):
            where = {"row": row + 1, "col": column + 1}
            plane = slices.plane(chosen[column], chosen[row + 1])
            figure.add_trace(
                go.Contour(x=plane.x, y=plane.y, z=plane.mean, coloraxis="coloraxis", line_width=0),
                **where,
            )
            for threshold in data.thresholds:
                figure.add_trace(_level(go, plane.x, plane.y, plane.mean, threshold), **where)
            opacity = slices.opacity(data.measured, plane.columns)
            marker = {
                "color": "white",
                "opacity": opacity,
                "size": 5,
                "line": {"color": style.INK, "width": 0.5},
            }
            x = data.measured[:, plane.columns[0]]
            y = data.measured[:, plane.columns[1]]
            figure.add_trace(
                go.Scatter(x=x, y=y, mode="markers", marker=marker, text=_texts(data)), **where
            )
            figure.update_xaxes(showticklabels=row == count - 1, **where)
            figure.update_yaxes(showticklabels=column == 0, **where)
            if row == count - 1:
                _set_column(figure, data, plane.columns[0], "x", **where)
            if column == 0:
                _set_column(figure, data, plane.columns[1], "y", **where)
    bar = {"title": "posterior mean"}
    figure.update_layout(
        title=_heading(data, slices, note),
        height=max(PANEL * count * 0.85, 560),
        showlegend=False,
        coloraxis={"colorscale": COLOUR_MAP, "colorbar": bar},
    )
    return figure


# -- progress
# --------------------------------------------------------------------------------------------------


def plot_convergence(study: Any, against: str | None = None, moments: int | None = None) -> Any:
    """Return the measured values and the expected score against cost and steps."""
    go = _graph()
    data = PlotData.from_study(study)
    kinds = shown_axes(data, against)
    records = score_history(study, CHECKPOINTS if moments is None else moments)
    titles = ["measured values"] * len(kinds) + [
        f"expected {score_name(data)}, given the model"
    ] * len(kinds)
    figure = _subplots(
        2, len(kinds), shared_xaxes="columns", shared_yaxes="rows", subplot_titles=titles
    )
    for column, kind in enumerate(kinds, 1):
        at = positions(data, kind)
        _add_measured(figure, data, at, data.values, row=1, col=column)
        if not data.goal.level_set:
            best = go.Scatter(
                x=at, y=best_so_far(data), line={"shape": "hv", "color": MEAN}, name="best so far"
            )
            figure.add_trace(best, row=1, col=column)
        for threshold in data.thresholds:
            figure.add_hline(
                threshold, line={"color": style.THRESHOLD, "dash": "dot"}, row=1, col=column
            )
        x = np.array(
            [record.spent if kind == "cost" else record.steps for record in records], dtype=float
        )
        scores = [record.score for record in records]
        _add_band(
            figure,
            x,
            [s.low for s in scores],
            [s.high for s in scores],
            "95 % interval",
            row=2,
            col=column,
        )
        line = go.Scatter(
            x=x, y=[s.mean for s in scores], line_color=MEAN, name=f"expected {score_name(data)}"
        )
        figure.add_trace(line, row=2, col=column)
        goal = score_goal(data)
        if goal is not None:
            figure.add_hline(goal, line={"color": "#009E73", "dash": "dash"}, row=2, col=column)
        figure.update_xaxes(title=AGAINST[kind], row=2, col=column)
    figure.update_layout(title=data.title, height=2 * PANEL + 100, showlegend=False)
    return figure


def plot_importance(study: Any) -> Any:
    """Return the importance of each parameter."""
    go = _graph()
    importance = column_importance(study)
    order = importance.order[::-1]
    names = [column_label(importance.columns[k]) for k in order]
    total = 100 * importance.indices.total[order]
    first = np.minimum(100 * importance.indices.first[order], total)
    figure = go.Figure()
    figure.add_trace(
        go.Bar(y=names, x=first, orientation="h", marker_color="#1F5F8B", name="by itself")
    )
    figure.add_trace(
        go.Bar(
            y=names, x=total - first, orientation="h", marker_color="#A9C6DC", name="with others"
        )
    )
    figure.update_layout(
        barmode="stack", title=f"{study.name or 'study'}: importance of the parameters"
    )
    figure.update_xaxes(title=importance.explain().split(":")[0], ticksuffix=" %")
    return figure


def plot_model_check(study: Any) -> Any:
    """Return leave-one-out predictions and their calibration."""
    go = _graph()
    data = PlotData.from_study(study)
    check = data.result.model_check
    figure = _subplots(1, 2, column_widths=[0.6, 0.4])
    shown = np.isfinite(check.z_scores)
    values = check.values[shown]
    bars = {"type": "data", "array": NORMAL_95 * check.sds[shown]}
    ids = [str(id_) for id_, is_shown in zip(check.ids, shown, strict=True) if is_shown]
    dots = go.Scatter(
        x=values, y=check.means[shown], error_y=bars, mode="markers", text=ids, name="measured"
    )
    figure.add_trace(dots, row=1, col=1)
    if len(values):
        ends = [float(values.min()), float(values.max())]
        figure.add_trace(
            go.Scatter(x=ends, y=ends, line={"dash": "dot", "color": MARK}, name="exact"),
            row=1,
            col=1,
        )
    levels, observed, low, high = calibration(check.z_scores)
    _add_band(figure, 100 * levels, 100 * low, 100 * high, "95 % range", row=1, col=2)
    line = {"color": MEAN, "shape": "hv"}
    figure.add_trace(
        go.Scatter(x=100 * levels, y=100 * observed, line=line, name="these"), row=1, col=2
    )
    diagonal = go.Scatter(
        x=[0, 100], y=[0, 100], line={"dash": "dot", "color": MARK}, name="calibrated"
    )
    figure.add_trace(diagonal, row=1, col=2)
    figure.update_xaxes(title="measured value", row=1, col=1)
    figure.update_yaxes(title="predicted from the others", row=1, col=1)
    figure.update_xaxes(title="probability of the interval", ticksuffix=" %", row=1, col=2)
    figure.update_yaxes(title="measurements inside", ticksuffix=" %", row=1, col=2)
    verdict = "passed" if check.ok else "failed"
    figure.update_layout(title=f"{study.name or 'study'}: model check {verdict}", showlegend=False)
    return figure


def plot_route(study: Any, columns: Sequence[str] | None = None) -> Any:
    """Return the measurements in their order, one route for each vehicle."""
    go = _graph()
    data = PlotData.from_study(study)
    chosen, _ = chosen_columns(
        study, data.domain.columns[:2] if columns is None else columns[:2], 2
    )
    figure = go.Figure()
    for who, way in data.routes.items():
        x = way[:, chosen[0]] if len(chosen) == 2 else np.arange(1.0, len(way) + 1)
        name = "measurements in order" if who is None else who
        figure.add_trace(go.Scatter(x=x, y=way[:, chosen[-1]], mode="lines+markers", name=name))
    if len(chosen) == 2:
        _add_pending(figure, data, *chosen)
        _set_column(figure, data, chosen[0], "x")
    else:
        figure.update_xaxes(title="measurement")
    _set_column(figure, data, chosen[-1], "y")
    figure.update_layout(title=data.title)
    return figure


def plot_comparison(backtest: Any, title: str = "") -> Any:
    """Return the mean score of each policy of a backtest, with its 95 % interval."""
    go = _graph()
    figure = go.Figure()
    costs = np.linspace(0, backtest.budget, POINTS + 1)[1:]
    styles = line_styles(backtest.policies)
    for policy, values in backtest.scores(costs).items():
        known = (~np.isnan(values)).any(axis=0)
        mean = np.nanmean(values[:, known], axis=0)
        count = np.maximum((~np.isnan(values[:, known])).sum(axis=0), 1)
        half = (
            NORMAL_95
            * np.nanstd(values[:, known], axis=0, ddof=0)
            / np.sqrt(np.maximum(count - 1, 1))
        )
        _add_band(figure, costs[known], mean - half, mean + half, f"{policy}, 95 %")
        figure.add_trace(
            go.Scatter(x=costs[known], y=mean, line_color=styles[policy]["color"], name=policy)
        )
    if backtest.measure == "regret":
        figure.update_yaxes(type="log")
    figure.update_xaxes(title="cost spent")
    figure.update_yaxes(title=backtest.measure)
    figure.update_layout(title=title)
    return figure


# -- parts
# --------------------------------------------------------------------------------------------------


def _add_band(figure: Any, x: Any, low: Any, high: Any, name: str, **where: int) -> None:
    """Add the area between two lines."""
    go = _graph()
    outline = {"width": 0}
    upper = go.Scatter(x=x, y=high, line=outline, mode="lines", showlegend=False, hoverinfo="skip")
    lower = go.Scatter(
        x=x, y=low, line=outline, mode="lines", fill="tonexty", fillcolor=BAND, name=name
    )
    figure.add_trace(upper, **where)
    figure.add_trace(lower.update(hoverinfo="skip"), **where)


def _add_measured(
    figure: Any, data: PlotData, x: Array, y: Array, *, lines: bool = False, **where: int
) -> None:
    """Add the measurements, with their ids and values under the cursor."""
    marker = {"color": MARK, "size": 6, "line": {"color": "white", "width": 0.7}}
    mode = "lines+markers" if lines else "markers"
    dots = _graph().Scatter(x=x, y=y, mode=mode, marker=marker, text=_texts(data), name="measured")
    figure.add_trace(dots.update(line={"color": "white", "width": 1}), **where)


def _add_pending(figure: Any, data: PlotData, across: int, up: int) -> None:
    """Add the pending suggestions."""
    if data.pending:
        points = np.array([data.coordinates(point) for point in data.pending])
        marker = {
            "symbol": "diamond",
            "size": 10,
            "color": style.PENDING,
            "line": {"color": "white", "width": 1},
        }
        trace = _graph().Scatter(
            x=points[:, across], y=points[:, up], mode="markers", marker=marker, name="suggested"
        )
        figure.add_trace(trace)


def _add_thresholds(figure: Any, data: PlotData) -> None:
    for threshold in data.thresholds:
        figure.add_hline(threshold, line={"color": style.THRESHOLD, "dash": "dot"})


def _texts(data: PlotData, mask: Any = slice(None)) -> list[str]:
    """Return what is shown of each measurement under the cursor: its id and value."""
    ids = np.array(data.ids, dtype=object)[mask]
    return [f"{id_}: {value:.4g}" for id_, value in zip(ids, data.values[mask], strict=True)]


def _set_column(figure: Any, data: PlotData, column: int, letter: str, **where: int) -> None:
    """Set label, scale and ticks of an axis that shows a column."""
    settings: dict[str, Any] = {"title": column_label(data.domain.columns[column])}
    ticks = column_ticks(data.domain, column)
    if ticks is not None:
        settings |= {"tickvals": [at for at, _ in ticks], "ticktext": [text for _, text in ticks]}
    elif style.use_log_axis(data.domain.points[:, column]):
        settings["type"] = "log"
    getattr(figure, f"update_{letter}axes")(**settings, **where)


def _heading(data: PlotData, slices: PosteriorSlices, note: str) -> str:
    text = f"{data.title}<br><sub>slices through {format_coordinates(slices.point, digits=POINT_DIGITS)}"
    return f"{text}; {note}</sub>" if note else f"{text}</sub>"


FIGURES: dict[str, Any] = {
    "overview": plot_map,
    "map": plot_map,
    "slices": plot_slices,
    "contours": plot_contours,
    "convergence": plot_convergence,
    "importance": plot_importance,
    "model_check": plot_model_check,
    "route": plot_route,
    "comparison": plot_comparison,
}
