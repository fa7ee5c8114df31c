"""The report as one HTML file that needs nothing else: figures inside, no script.

The page is the template `templates/report.html.j2`, filled with the dictionary of `_context`.
Jinja2 escapes all text.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Mapping, Sequence
from math import isfinite, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined

from truvar._representation import format_uncertain, visible
from truvar.domain.exclusions import Place
from truvar.domain.extension import Extension
from truvar.domain.labels import place_in_words, with_label
from truvar.exceptions import OutputError
from truvar.inference.regime import REGIME_SUMMARIES
from truvar.inference.statements import Estimate
from truvar.messages import format_coordinate
from truvar.models.diagnostics import MIN_MEASUREMENTS
from truvar.report import style
from truvar.report._plot_1d import draw_curve
from truvar.report._plot_2d import draw_mean, draw_regions
from truvar.report._plot_candidates import MapColumns, draw_candidates, map_columns, map_size
from truvar.report._plot_data import PlotData
from truvar.report._plot_diagnostics import draw_model_check
from truvar.report._plot_importance import BAR, MAX_BARS, draw_importance
from truvar.report._plot_slices import draw_slices
from truvar.report._plots import draw_undecided, draw_values
from truvar.report._slices import PosteriorSlices, chosen_columns, column_importance
from truvar.report.formatting import (
    ALL_DIGITS,
    column_label,
    count_noun,
    describe_columns,
    describe_cost,
    format_number,
    format_question,
    format_score,
)
from truvar.report.status import (
    BOUNDS_TITLE,
    describe_bounds,
    describe_budget,
    describe_expected,
    describe_infeasible,
    describe_optimum,
    describe_policy,
    describe_repeats,
    describe_tasks,
    describe_transform,
    describe_vehicle,
    progress_texts,
    shown_vehicles,
    status_data,
    study_warnings,
)
from truvar.report.suggestion_card import describe_action, describe_gain
from truvar.report.tables import is_html, write_report
from truvar.tabular.labels import label_text

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from truvar.domain.domain import Domain
    from truvar.domain.goals import Score
    from truvar.study.records import MeasurementRecord
    from truvar.study.study import Study
    from truvar.study.suggestion import Suggestion

_MAP_SIZE = (5.0, 3.1)  # inches; small enough that the letters can be read on a phone
_CANDIDATES_WIDTH = 9.0  # inches, of the map of a table
_MAP_ROWS = 2  # layers of that map if each has several facets
_CHART_SIZE = (5.0, 2.3)  # inches
_MAX_SLICES = 6  # columns whose slices are shown
_SLICES_ACROSS = 2  # panels side by side, so that they can be read on a phone
_SLICE_HEIGHT = 2.0  # inches
_SLICE_LEGEND = 0.8  # inches, of the legend and the margins
_DPI = 150  # dots per inch of the parts of a figure that are pixels
# Content-Security-Policy of the file: its own pictures and style, no script, nothing from
# elsewhere.
_SECURITY_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
_SHOWN_EVENTS = (
    "noted",
    "corrected",
    "withdrawn",
    "expired",
    "failed",
    "excluded",
    "allowed",
    "extended",
)  # kinds of events listed under "History"


class Figure(NamedTuple):
    """A figure of the page.

    Attributes:
        draw: Draws into axes; if it has several panels, into the empty figure.
        size: Width and height in inches.
        caption: The text below it.
        has_panels: Whether it has several panels.
        is_map: Whether it is the map of a table: as wide as the page, with titles of its panels.
    """

    draw: Callable[[Any, PlotData], None]
    size: tuple[float, float]
    caption: str
    has_panels: bool = False
    is_map: bool = False


def write_html_report(
    study: Study, path: str | Path, truth: ArrayLike | None = None, *, theorem: bool = False
) -> Path:
    """Write the report to a file.

    Args:
        study: The study, which is not changed.
        path: The file.
        truth: True values on the domain, if they are known.
        theorem: Whether to add what the paper's confidence bounds say.

    Returns:
        The path.

    Raises:
        OutputError: If the file cannot be written.
        MissingDependencyError: If matplotlib is not installed.
    """
    path = Path(path)
    try:
        path.write_text(render_html_report(study, truth, theorem=theorem), encoding="utf-8")
    except OSError as error:
        raise OutputError(
            f"cannot write the report {path} ({error.strerror}); give another path"
        ) from None
    return path


def write_report_at(
    study: Study, path: Path, truth: ArrayLike | None = None, *, theorem: bool = False
) -> dict[str, Path]:
    """Write a report: one HTML file if the path ends in .html, otherwise a folder, with that file as report.html.

    Args:
        study: The study, which is not changed.
        path: The file or folder.
        truth: True values on the domain, if they are known.
        theorem: Whether to add what the paper's confidence bounds say.

    Returns:
        The paths of what was written, by "report", and for a folder also those of `write_report`.

    Raises:
        OutputError: If a file cannot be written.
    """
    if is_html(path):
        return {"report": write_html_report(study, path, truth, theorem=theorem)}
    paths = write_report(study, path, truth)
    page = write_html_report(study, path / "report.html", truth, theorem=theorem)
    return {**paths, "report": page}


def render_html_report(
    study: Study, truth: ArrayLike | None = None, *, theorem: bool = False
) -> str:
    """Return the report as HTML.

    Args:
        study: The study, which is not changed.
        truth: True values on the domain, if they are known.
        theorem: Whether to add what the paper's confidence bounds say.

    Raises:
        MissingDependencyError: If matplotlib is not installed.
    """
    environment = Environment(
        loader=PackageLoader("truvar.report"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=lambda value: visible(value) if type(value) is str else value,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template("report.html.j2").render(
        _context(study, PlotData.from_study(study, truth), theorem)
    )


def _context(study: Study, data: PlotData, theorem: bool) -> dict[str, Any]:
    """Return what the template shows."""
    lead, *figures = _figures(data)
    return {
        "name": study.name or "study",
        "goal": format_question(study),
        "security_policy": _SECURITY_POLICY,
        "warnings": study_warnings(study, data.result),
        "tiles": _tiles(study, data),
        "progress": progress_texts(status_data(study, data.result)),
        "optimum": describe_optimum(study, data.result),
        "classes": _classes(data),
        "confidence_note": data.confidence_note,
        "expected": describe_expected(data.result, study.quantity.after_number),
        "certificate": data.result.certificate,
        "bounds": _bounds(data) if theorem else None,
        "model_check": data.result.model_check,
        "reason": data.result.reason,
        "finished": study.finished is not None,
        "lead": _drawn(lead, data),
        "figures": [_drawn(figure, data) for figure in figures],
        "pending": _pending(study),
        "vehicles": [describe_vehicle(status, study.domain) for status in shown_vehicles(study)],
        "measurements": _measurements(study, data.result.outliers),
        "events": _events(study),
        "settings": _settings(study, data, theorem),
    }


# -- results
# --------------------------------------------------------------------------------------------------


def _tiles(study: Study, data: PlotData) -> list[tuple[str, str]]:
    """Return the numbers at the top, each with what it counts."""
    result = data.result
    budget = study.limits.get("budget")
    statements = result.statements
    unit = study.quantity.after_number
    cost = "cost spent" if budget is None else f"cost spent of {format_number(budget)}"
    tiles = [
        (str(result.steps), "measurement" if result.steps == 1 else "measurements"),
        (format_number(result.spent), cost),
    ]
    if result.best_observed is not None and study.goal.seeks_optimum:
        best = result.best_observed.shown
        remark = result.best_observed.remark
        tiles.append((f"{best.value:.4g}{unit}", f"best so far (measurement {best.id}{remark})"))
    if statements.recommended_value is not None and result.steps:
        interval = (
            f"{statements.recommended_value.low:.4g} to {statements.recommended_value.high:.4g}"
        )
        tiles.append(
            (f"{result.best.mean:.4g}{unit}", f"estimated at the recommended point ({interval})")
        )
    tiles.append(_score_tile(study.goal.score, statements.score, unit))
    return [*tiles, *_share_tile(data), *data.view.class_tiles(result)]


def _share_tile(data: PlotData) -> list[tuple[str, str]]:
    """Return the share of the points on the side asked for, or between the two; nothing before there is a model."""
    share = data.result.statements.share_above
    if share is None or not isfinite(share.mean):
        return []
    where = data.view.share_name(data.result)
    if data.goal.sign < 0:
        share = Estimate(1.0 - share.mean, 1.0 - share.high, 1.0 - share.low)
        where = where.replace("above", data.goal.sides[0])
    unit = data.study.quantity.unit
    if unit and data.goal.known_thresholds:
        where = f"{where} {unit}"
    low = f"{100 * share.low:.3g}"
    high = f"{100 * share.high:.3g}"
    return [(f"{100 * share.mean:.3g} %", f"of the points {where} ({low} to {high} %)")]


def _score_tile(score: Score, estimate: Estimate | None, unit: str) -> tuple[str, str]:
    """Return an expected score with its interval, and the unit of the value unless it is a share."""
    if estimate is None or not isfinite(estimate.mean):
        return "–", f"expected {score.name}, not known yet"
    mean, _, interval = format_score(score, estimate).partition(" ")
    return mean if score.is_share else mean + unit, f"expected {score.name} {interval}"


def _bounds(data: PlotData) -> dict[str, Any]:
    """Return what the section on the paper's confidence bounds shows."""
    certificate = data.result.certificate
    figure = Figure(
        draw_undecided,
        _CHART_SIZE,
        "Share of the points undecided by these bounds against the cost spent",
    )
    return {
        "title": BOUNDS_TITLE,
        "regime": certificate.regime,
        "summary": REGIME_SUMMARIES[certificate.regime],
        "holds": certificate.delta is not None,
        "rows": [
            row for row in describe_bounds(data.result) if row[0] not in ("regime", "statement")
        ],
        "statement": certificate.bounds_statement,
        "because": certificate.because,
        "figure": _drawn(figure, data) if len(data.history) else None,
    }


def _classes(data: PlotData) -> list[dict[str, Any]]:
    """Return the share of the points in each class, with its label and CSS class."""
    css_classes = data.view.css_classes(data.classification)
    return [
        {
            "css_class": css_classes.get(name, "ruled-out"),
            "share": 100 * float(mask.mean()),
            "label": label,
        }
        for name, mask, label in data.classes()
    ]


# -- figures
# --------------------------------------------------------------------------------------------------


def _figures(data: PlotData) -> list[Figure]:
    classes = data.view.regions_caption(data.confidence_note)
    match len(data.domain.columns):
        case 1:
            figures = [
                Figure(
                    draw_curve,
                    _MAP_SIZE,
                    "Estimate, 90 % interval of each point, and measurements",
                )
            ]
        case 2:
            marks = "the route of the measurements" if data.travels else "the measurements"
            if data.travels and len(data.routes) > 1:
                marks = "the route of each vehicle"
            figures = [
                Figure(draw_regions, _MAP_SIZE, classes),
                Figure(draw_mean, _MAP_SIZE, f"Estimate and {marks}"),
            ]
            if data.result.goal.seeks_optimum:
                figures.reverse()
        case _:
            figures = _figures_of_many_columns(data)
    columns = map_columns(data.domain)
    if columns is not None:
        kept = figures if data.has_model else []  # without a model they are empty
        figures = [_map_of_candidates(data, columns), *kept]
    if np.isfinite(data.values).any():
        caption = data.view.values_caption(data.result)
        figures.append(Figure(_draw_values, _CHART_SIZE, caption))
    if data.result.steps >= MIN_MEASUREMENTS:
        caption = (
            "Model check: each measurement against what the others predict, with 95 % intervals"
        )
        figures.append(Figure(draw_model_check, _MAP_SIZE, caption))
    return figures


def _map_of_candidates(data: PlotData, columns: MapColumns) -> Figure:
    """Return the map of a table with longitude and latitude."""

    def draw_map(figure: Any, data: PlotData) -> None:
        figure.set_layout_engine("compressed")
        style.legend_below(figure, draw_candidates(figure, data, columns, max_rows=_MAP_ROWS))

    caption = "Map of the candidates: where can be measured"
    if data.has_model:
        caption = "Map of the candidates, by their estimates"
    if data.has_model and data.view.region_map != "sd":
        caption = "Map of the candidates, by probability and by class"
    if data.travels and data.result.steps:
        caption += ", and the route"
    size = map_size(data, columns, _CANDIDATES_WIDTH, _MAP_ROWS)
    return Figure(draw_map, size, caption, has_panels=True, is_map=True)


def _figures_of_many_columns(data: PlotData) -> list[Figure]:
    """Return slices through the best point and the importance of the columns."""
    chosen, note = chosen_columns(data.study, None, _MAX_SLICES)
    slices = PosteriorSlices.through(data.study, data.result.best.point)
    place = place_in_words(data.domain, slices.point)
    caption = f"Slices through {data.best_name} {place}"
    rows = -(-len(chosen) // _SLICES_ACROSS)

    def draw_all(figure: Any, data: PlotData) -> None:
        panels = figure.subplots(rows, _SLICES_ACROSS, squeeze=False, sharey=True)
        draw_slices(panels, data, slices, chosen)

    height = _SLICE_HEIGHT * rows + _SLICE_LEGEND
    caption = f"{caption}; {note}" if note else caption
    figures = [Figure(draw_all, (_MAP_SIZE[0], height), caption, has_panels=True)]
    if data.has_model:
        importance = column_importance(data.study)
        shown = min(len(importance.columns), MAX_BARS)
        size = (_MAP_SIZE[0], BAR * shown + _SLICE_LEGEND)
        caption = f"Importance of the parameters. {importance.explain()}"
        figures.append(Figure(lambda ax, _: draw_importance(ax, importance), size, caption))
    return figures


def _draw_values(ax: Any, data: PlotData) -> None:
    draw_values(ax, data)
    ax.set_xlabel("cost spent")
    ax.set_ylabel(data.study.quantity.label or "value")


def _drawn(figure: Figure, data: PlotData) -> dict[str, Any]:
    """Return the figure for a light and for a dark page, its caption, and whether it is wide."""
    return {
        "source": _svg(figure, data, "light"),
        "dark_source": _svg(figure, data, "dark"),
        "caption": figure.caption,
        "is_wide": figure.is_map,
    }


def _svg(figure: Figure, data: PlotData, theme: str) -> str:
    """Return a figure as a data URI."""
    with style.literal_text():
        drawing = style.new_figure(*figure.size, dpi=_DPI)
        figure.draw(drawing if figure.has_panels else drawing.subplots(), data)
        for ax in () if figure.is_map else drawing.axes:
            ax.set_title("", loc="left")  # the caption says it
        style.apply_theme(drawing, theme)
        file = io.BytesIO()
        # Maps of equal scale leave an empty edge of the figure, which is cut off.
        edge = {"bbox_inches": "tight", "pad_inches": 0.05} if figure.is_map else {}
        drawing.savefig(file, format="svg", metadata={"Date": None}, **edge)
    return "data:image/svg+xml;base64," + base64.b64encode(file.getvalue()).decode("ascii")


# -- tables
# --------------------------------------------------------------------------------------------------


def _precision(study: Study, noise: float) -> str:
    """Return the standard deviation of a measurement, or what it gives instead of a number."""
    return f"± {sqrt(noise):.2g}" if study.outcome is None else study.outcome.precision


def _precision_with_unit(study: Study, suggestion: Suggestion) -> str:
    """Return the precision of a suggestion; nothing where each quantity has its own."""
    if suggestion.quantities is not None:
        return ""
    unit = study.quantity.after_number if study.outcome is None else ""
    return f"{_precision(study, suggestion.noise)}{unit}"


def _pending(study: Study) -> list[dict[str, Any]]:
    return [
        {
            "id": suggestion.id,
            "action": _action(study, suggestion),
            "cost": describe_cost(suggestion),
            "precision": _precision_with_unit(study, suggestion),
            "gain": describe_gain(study, suggestion),
        }
        for suggestion in study.pending
    ]


def _action(study: Study, suggestion: Suggestion) -> str:
    text = describe_action(study, suggestion)
    return text if suggestion.vehicle is None else f"{suggestion.vehicle}: {text}"


def _measurements(study: Study, outliers: Sequence[int]) -> dict[str, list[Any]]:
    """Return headings and rows of the table of measurements; level and task only where there are any.

    Args:
        study: The study.
        outliers: Ids of the measurements that the model leaves out.
    """
    records = study.measurement_records()
    optional = [
        name
        for name in ("level", "task", "vehicle")
        if any(getattr(record, name) is not None for record in records)
    ]
    is_named = study.domain.has_row_names
    headings = [
        "id",
        *(["place"] if is_named else []),
        *map(column_label, study.domain.columns),
        *optional,
        study.quantity.label or "value",
        "±",
        "cost",
        "spent",
    ]
    rows = [
        [
            record.id,
            *_labels(record, study.domain),
            *(
                format_coordinate(value, ALL_DIGITS)
                for value in study.domain.shown(record.point).values()
            ),
            *(getattr(record, name) for name in optional),
            f"{_measured(study, record)}{' (left out)' if record.id in outliers else ''}",
            _precision(study, record.noise).removeprefix("± "),
            _told_cost(record),
            format_number(record.spent),
        ]
        for record in records
    ]
    return {"headings": headings, "rows": rows}


def _measured(study: Study, record: MeasurementRecord) -> str:
    """Return a measured value with as many digits as its noise leaves."""
    if study.outcome is not None or record.noise <= 0:
        return f"{record.value:.6g}"
    return format_uncertain(record.value, sqrt(record.noise)).partition(" ±")[0]


def _labels(record: MeasurementRecord, domain: Domain) -> list[str]:
    """Return the cell with the name of a measured place; none if rows have no names."""
    if not domain.has_row_names:
        return []
    return ["–" if record.label is None else label_text(record.label)]


def _told_cost(record: MeasurementRecord) -> str:
    cost = format_number(record.cost)
    return f"{cost} (expected)" if record.cost_told is False else cost


def _events(study: Study) -> list[tuple[str, str, str]]:
    """Return time, person and text of notes, corrections, withdrawals, exclusions and failures."""
    events = study.events
    rows = []
    for _, time, who, kind, details in events[events["kind"].isin(_SHOWN_EVENTS)].itertuples(
        index=False, name=None
    ):
        if kind == "noted":
            text = str(details["text"])
        elif kind == "corrected":
            value = details["y"]
            if isinstance(value, Mapping):
                value = ", ".join(f"{name} {each:.6g}" for name, each in value.items())
            else:
                value = f"{value:.6g}"
            text = f"{details['id']} corrected to {value}"
        elif kind in ("excluded", "allowed"):
            place = Place.from_details(details)
            text = f"{kind}: {place.describe()}"
            if place.point is not None:
                text = f"{kind}: {with_label(study.domain, place.point, place.describe())}"
        elif kind == "extended":
            text = f"extended: {Extension.from_details(details).describe()}"
        else:
            text = f"{details['id']} {kind}"
        if details.get("reason"):
            text += f" ({details['reason']})"
        rows.append((f"{time:%Y-%m-%d %H:%M} UTC", who, text))
    return rows


def _settings(study: Study, data: PlotData, theorem: bool) -> list[tuple[str, str]]:
    columns = describe_columns(study.domain)
    epoch = study.epoch
    is_known = data.has_model or study.fixed_kernel is not None
    kernel = (
        str(study.kernel) if is_known else "is learned from the values, of which there are too few"
    )
    model = describe_transform(study.transform, study.outcome)
    descriptions = {"model": model, "tasks": describe_tasks(study)}
    paper = [
        ("engine", study.engine),
        ("epoch", f"{epoch.index}, η = {epoch.eta:.3g}, β = {epoch.beta:.4g}"),
    ]
    return [
        ("domain", f"{count_noun(len(study.domain), 'point')}: {columns}"),
        ("kernel", kernel),
        *[(name, text) for name, text in descriptions.items() if text is not None],
        ("policy", describe_policy(study.policy)),
        ("repeats", describe_repeats(study.repeats)),
        *(paper if theorem else []),
        ("cost", describe_budget(study)),
        *describe_infeasible(study, study.result()),
        ("seed", str(study.seed)),
    ]
