"""JSON of a study: for the page to draw, and for the client in Python to rebuild results from.

Arrays over the domain are lists of numbers; the class of every point is one letter: H (above), L
(below) or M (undecided). `classes` are those of `Result.classes`; `sets` are the paper's H, L and
M. Numbers that are not finite are null. The `view` is for drawing:
numbers have six digits, and a very large domain is represented by some of its points.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from math import inf, isfinite
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from truvar._typing import Array, Index
from truvar.domain.constraints import LinearConstraint, PolygonConstraint
from truvar.domain.dates import Date
from truvar.domain.exclusions import Place
from truvar.domain.extension import Extension
from truvar.domain.geographic import GeographicColumns, geographic_columns
from truvar.domain.goals import Map
from truvar.domain.labels import with_label
from truvar.domain.parameters import Boolean, Categorical, Integer, Log, Ordinal, Parameter
from truvar.exceptions import TruvarError
from truvar.inference.regime import REGIME_SUMMARIES
from truvar.messages import interface
from truvar.report import style
from truvar.report.formatting import class_note, column_label, format_question
from truvar.report.goal_views import view_of
from truvar.report.status import (
    BOUNDS_TITLE,
    describe_bounds,
    describe_vehicle,
    progress_texts,
    status_data,
)
from truvar.report.tables import replace_nonfinite
from truvar.service import _explanations as explanations
from truvar.service._answer import answer
from truvar.storage.serialization import serialize
from truvar.tabular.labels import label_key

if TYPE_CHECKING:
    from truvar.domain.domain import Domain
    from truvar.inference.statements import Classification, JointStatements
    from truvar.models.diagnostics import ModelCheck
    from truvar.study.result import Result
    from truvar.study.study import Study

MAX_DRAWN_POINTS = 20_000  # of a domain that are sent to a page
_DRAWING_DIGITS = 6  # significant digits, relative to the largest value
_MANY_DECADES = 1e3  # quotient of the ends of a column from which its values are rounded one by one
_STATEMENT_ARRAYS = ("probability", "decided_confidence", "lower", "upper")  # of `JointStatements`
_SLICE_SIDE = 48  # points along each axis of a slice

State = Literal["new", "running", "finished"]  # a study that cannot be opened is "broken"


def encode(data: Any) -> bytes:
    """Return compact JSON; numbers that are not finite become null."""
    return json.dumps(replace_nonfinite(data), allow_nan=False, separators=(",", ":")).encode()


def _study_state(study: Study) -> State:
    """Return whether the study has begun, and whether it is finished."""
    if study.finished is not None:
        return "finished"
    return "running" if study.steps or study.pending else "new"


def status(study: Study, result: Result | None = None) -> dict[str, Any]:
    """Return the counters, result, certificate and pending suggestions, without arrays.

    Args:
        study: The study.
        result: Its present result, if the caller has it.
    """
    with interface(
        "http"
    ):  # the answer is kept for all clients, so that its warnings suit every one
        data = status_data(study, result)
    return {**data, "state": _study_state(study), "words": format_question(study)}


def definition(study: Study) -> dict[str, Any]:
    """Return what does not change during a study, exactly, so that a client can rebuild it."""
    parts = {
        "domain": study.domain,
        "goal": study.goal,
        "policy": study.policy,
        "levels": study.levels,
        "tasks": study.tasks,
        "vehicles": study.vehicles,
        "repeats": study.repeats,
    }
    serialized = {name: serialize(part, name) for name, part in parts.items()}
    return {
        **serialized,
        "travels": study.travels,
        "learns_cost": study.learns_cost,
        "quantity": study.quantity.name,
        "unit": study.quantity.unit,
        "returns": study.must_return,
        "seed": study.seed,
    }


def events(study: Study, newest: int) -> list[dict[str, Any]]:
    """Return the last events, newest first, without the problem and the points of extensions."""
    rows = study.events.tail(newest).iloc[::-1].to_dict("records")
    return [
        {
            **{str(key): value for key, value in row.items()},
            "time": row["time"].isoformat(),
            "details": serialize(_event_details(row["kind"], row["details"])),
            "label": _event_label(study.domain, row["details"]),
        }
        for row in rows
    ]


def _event_details(kind: str, details: dict[str, Any]) -> dict[str, Any]:
    """Return the details of an event without whole domains."""
    if kind == "created":
        return {}
    if kind != "extended":
        return details
    others = {name: each for name, each in details.items() if name in ("reason", "models")}
    return {**others, "text": Extension.from_details(details).describe()}


def _event_label(domain: Domain, details: Mapping[str, Any]) -> str | None:
    """Return the name of the row that an event is about; None: it has none, or is about no point."""
    point = details.get("point")
    if not domain.has_row_names or not isinstance(point, Mapping):
        return None
    try:
        row, _ = domain.locate(point)
    except TruvarError:
        return None
    return None if row is None else str(label_key(domain.label(row)))


def measurements(study: Study) -> list[dict[str, Any]]:
    """Return the measurements, one object each, with the coordinates under `point`."""
    return [record.to_dict() for record in study.measurement_records()]


def history(study: Study) -> dict[str, list[Any]]:
    """Return the progress after each measurement, as columns."""
    return {str(name): replace_nonfinite(column.tolist()) for name, column in study.history.items()}


def posterior(study: Study) -> dict[str, Any]:
    """Return mean, sd, bounds and class of every point, the model check and the result, exactly."""
    result = study.result()
    arrays = {name: getattr(result, name).tolist() for name in ("mean", "sd", "lower", "upper")}
    statements = result.statements
    stated = {name: getattr(statements, name).tolist() for name in _STATEMENT_ARRAYS}
    errors = None if statements.errors is None else statements.errors.to_dict()
    return {
        "columns": list(study.domain.columns),
        "points": study.domain.values(study.domain.points).tolist(),
        **arrays,
        "bounds_certificate": result.bounds_certificate.to_dict(),
        "statements": {
            **statements.to_dict(),
            **stated,
            "reported": None if statements.reported is None else statements.reported.tolist(),
            "bands": _bands(statements),
            "errors": errors,
            **_feasible(statements),
        },
        "classes": _class_letters(statements.classes),
        "sets": _class_letters(result),
        "measured": list(result.measured),
        "excluded": _excluded_rows(result, np.arange(len(result.mean))),
        "feasibility": _feasibility(result),
        "model_check": model_check(result.model_check),
        "result": result.to_dict(),
        **_quantities(result),
    }


def _quantities(result: Result) -> dict[str, Any]:
    """Return the estimates of several quantities by name; nothing for one."""
    if not result.quantities:
        return {}
    return {
        "quantities": {name: each.to_dict() for name, each in result.quantities.items()},
    }


def _feasible(statements: JointStatements) -> dict[str, Any]:
    """Return the probability that each point satisfies constraints; nothing without them."""
    feasible = getattr(statements, "feasible", None)
    return {} if feasible is None else {"feasible": feasible.tolist()}


def _feasibility(result: Result) -> list[float] | None:
    """Return the probability of success at every point; None if it is 1 everywhere."""
    return (
        None
        if result.feasibility is None or result.infeasible_share == 0
        else result.feasibility.tolist()
    )


def failures(study: Study) -> list[dict[str, Any]]:
    """Return the measurements that failed, one object each."""
    return [record.to_dict() for record in study.failures]


def exclusions(study: Study) -> list[dict[str, Any]]:
    """Return the exclusions in force: text, reason, and the place as a request has it."""
    rows: list[dict[str, Any]] = []
    everything = study.exclusions
    for k, exclusion in enumerate(everything):
        place = exclusion.place
        if exclusion.allowed or any(
            later.place == place or later.place == Place() for later in everything[k + 1 :]
        ):
            continue
        body: dict[str, Any] = place.to_details()
        if isinstance(place.region, LinearConstraint):
            body = {"condition": place.region.text}
        elif isinstance(place.region, PolygonConstraint):
            body = {"polygon": asdict(place.region)}
        text = place.describe()
        if place.point is not None:
            text = with_label(study.domain, place.point, text)
        rows.append({"text": text, "reason": exclusion.reason, "place": body})
    return rows


def report(study: Study) -> str:
    """Return the report as one HTML page."""
    from truvar.report.html_report import render_html_report

    return render_html_report(study)


def view(study: Study) -> dict[str, Any]:
    """Return everything that the page shows of a study."""
    result = study.result()
    statements = result.statements
    certificate = result.certificate
    domain = study.domain
    shown = _drawn_points(domain)
    levels = None
    if study.levels is not None:
        # A variance that varies by place is not one number: null.
        pairs = zip(study.levels.variance, study.levels.cost, strict=True)
        levels = [
            {
                "variance": float(variance) if isinstance(variance, (int, float)) else None,
                "cost": float(cost),
            }
            for variance, cost in pairs
        ]
    task_names = None if study.tasks is None else list(study.tasks.names)
    geographic = geographic_columns(domain)
    depth_column = None if geographic is None else geographic.depth
    data = status(study, result)
    return {
        **data,
        "answer": answer(study, result).to_dict(),
        "pending": explanations.pending(study),
        "bands": explanations.bands(result, shown),
        "progress_texts": progress_texts(data),
        "confidence": statements.classes.confidence,
        "class_note": class_note(result),
        "caveats": certificate.statement_caveats,
        "paper": {
            "title": BOUNDS_TITLE,
            "regime": certificate.regime,
            "summary": REGIME_SUMMARIES[certificate.regime],
            "rows": [("reason", certificate.because), *describe_bounds(result)[1:]],
            "caveats": certificate.bounds_caveats,
        },
        "threshold": result.threshold,
        "thresholds": list(result.thresholds),
        "level_set": not study.goal.seeks_optimum,
        "map": isinstance(study.goal, Map),
        "sign": study.goal.sign,
        "quantities": list(study.goal.parts),
        "share_name": view_of(study.goal).share_name(result),
        "probability_name": view_of(study.goal).probability_name,
        "travels": study.travels,
        "learns_cost": study.learns_cost,
        "quantity_label": study.quantity.label,
        "unit": study.quantity.unit,
        "known": result.steps > 0 and statements.is_known,
        "columns": [column_data(domain, k) for k in range(len(domain.columns))],
        "is_geographic": geographic is not None,
        "geographic": _geographic(geographic),
        "depth_column": depth_column,
        "starts": _starts(study),
        "labels": _labels(domain, shown),
        "points": len(domain),
        "shown": len(shown),
        "indices": shown.tolist() if len(shown) < len(domain) else None,
        "kind": _domain_kind(domain),
        "coordinates": drawn_coordinates(domain, domain.points[shown]),
        "mean": rounded(result.mean[shown]),
        "sd": rounded(result.sd[shown]),
        **{
            name: rounded(getattr(statements, name)[shown])
            for name in ("lower", "upper", "probability")
        },
        "classes": "".join(np.array(list(_class_letters(statements.classes)))[shown]),
        "levels": levels,
        "tasks": task_names,
        "vehicle_names": list(study.vehicles),
        "vehicle_budgets": [
            {"name": status.name, "budget": status.budget, "left": status.left}
            for status in study.vehicle_statuses
            if status.budget is not None
        ],
        "vehicle_texts": [
            describe_vehicle(status, study.domain)
            for status in study.vehicle_statuses
            if status.name or study.must_return
        ],
        "measurements": measurements(study),
        "failures": failures(study),
        "excluded": _excluded_rows(result, shown),
        "exclusions": exclusions(study),
        "history": history(study),
    }


def _geographic(found: GeographicColumns | None) -> dict[str, Any] | None:
    """Return the columns of a map, and whether they are degrees; None: there are none."""
    if found is None:
        return None
    return {"x": found.longitude, "y": found.latitude, "degrees": found.crs is None}


def _starts(study: Study) -> list[dict[str, Any]]:
    """Return where the vehicles, or the single crew, start, as far as that has coordinates."""
    return [
        {"who": status.name, "point": dict(status.start)}
        for status in study.vehicle_statuses
        if isinstance(status.start, Mapping)
    ]


def _labels(domain: Domain, shown: Index) -> list[str] | None:
    """Return the names of the rows that are drawn; None: they have none."""
    if not domain.has_row_names:
        return None
    return [str(label_key(domain.label(int(row)))) for row in shown]


def _excluded_rows(result: Result, shown: Index) -> list[int]:
    """Return the positions of the excluded points among those that are drawn."""
    return [] if result.excluded is None else np.flatnonzero(result.excluded[shown]).tolist()


def posterior_slice(study: Study, across: tuple[int, int], at: Array) -> dict[str, Any]:
    """Return the posterior on a grid over two columns, with the others held constant.

    Args:
        study: The study.
        across: Indices of the two columns.
        at: A point of the plane, (d,).
    """
    domain = study.domain
    at = snapped(domain, at)
    axes = [slice_axis(domain, k) for k in across]
    points = np.repeat(at[None, :], len(axes[0]) * len(axes[1]), axis=0)
    for k, values in zip(across, np.meshgrid(*axes, indexing="ij"), strict=True):
        points[:, k] = values.ravel()
    mean, sd = study.predict(domain.values(points))
    positions = []
    for k, axis in zip(across, axes, strict=True):
        along = np.repeat(at[None, :], len(axis), axis=0)
        along[:, k] = axis
        positions.append(drawn_column(axis_positions(domain, along)[:, k]))
    return {
        "x": positions[0],
        "y": positions[1],
        "across": [study.domain.columns[k] for k in across],
        "at": study.domain.named(at),
        "mean": rounded(mean),
        "sd": rounded(sd),
    }


def model_check(check: ModelCheck) -> dict[str, Any]:
    """Return a model check with its arrays."""
    arrays = {name: getattr(check, name).tolist() for name in ("values", "means", "sds")}
    return {**check.to_dict(), "ids": list(check.ids), **arrays}


def _bands(statements: JointStatements) -> dict[str, Any] | None:
    """Return what is stated about bands with its arrays; None without several thresholds."""
    if statements.bands is None:
        return None
    bands = statements.bands
    return {
        **bands.to_dict(),
        "probability": bands.probability.tolist(),
        "reported": bands.reported.tolist(),
    }


def _domain_kind(domain: Domain) -> Literal["box", "grid", "table"]:
    if domain.continuous:
        return "box"
    return "table" if domain.axes is None else "grid"


def column_data(domain: Domain, k: int) -> dict[str, Any]:
    """Return the description of a column for an axis and an input field."""
    values = np.unique(axis_positions(domain, domain.points)[:, k])
    low, high = axis_positions(domain, domain.bounds.T)[:, k]
    parameter = domain.parameters[k]
    choices: list[Any] | None = None
    if isinstance(parameter, Boolean):
        choices = [False, True]
    elif isinstance(parameter, (Categorical, Ordinal)):
        choices = list(parameter.choices)
    date = None
    timezone = None
    if isinstance(parameter, Date):
        date = "day" if parameter.by_day else "time"
        timezone = parameter.timezone
        shown = parameter.decode_column(values)
        if timezone is not None or any("." in text for text in shown.tolist()):
            date = "text"  # a browser's own input has neither offsets nor microseconds
    is_number = choices is None and date is None
    return {
        "name": domain.columns[k],
        "label": column_label(domain.columns[k]),
        "low": float(low),
        "high": float(high),
        "log": is_number and (_is_log(parameter) or style.use_log_axis(values)),
        "choices": choices,
        "date": date,
        "timezone": timezone,
        "context": domain.columns[k] in domain.context,
        "decimals": domain.decimals[k],
        "step": None if domain.axes is None or len(values) < 2 else float(np.diff(values).min()),
    }


def _is_log(parameter: Parameter) -> bool:
    return isinstance(parameter, Log) or (isinstance(parameter, Integer) and parameter.log)


def axis_positions(domain: Domain, points: Array) -> Array:
    """Return points (q, d) as the page draws them: choices by position, dates in days."""
    positions = np.array(points, dtype=float)
    for k, parameter in enumerate(domain.parameters):
        if not isinstance(parameter, (Boolean, Categorical, Ordinal, Date)):
            positions[:, k] = parameter.decode_column(points[:, k])
    return positions


def snapped(domain: Domain, at: Array) -> Array:
    """Return the coordinates (d,) of a point of the page, with values of its parameters."""
    return at if domain.is_plain else domain.snap(_from_axis_positions(domain, at)[None, :])[0]


def _from_axis_positions(domain: Domain, positions: Array) -> Array:
    """Return the coordinates (d,) of a point that the page gives as `axis_positions` has them."""
    coordinates = np.array(positions, dtype=float)
    for k, parameter in enumerate(domain.parameters):
        if _is_log(parameter):
            coordinates[k] = parameter.encode(
                parameter.decode(np.log10(max(positions[k], 1e-300))), domain.columns[k]
            )
    return coordinates


def slice_axis(domain: Domain, k: int) -> Array:
    """Return the coordinates of a column along which a plane is drawn."""
    low, high = domain.bounds[k]
    spaced = (
        np.geomspace if domain.is_plain and style.use_log_axis(domain.points[:, k]) else np.linspace
    )
    axis = spaced(low, high, _SLICE_SIDE)
    if domain.parameters[k].n_levels is not None:
        axis = np.unique(domain.parameters[k].snap(axis))
    return np.asarray(axis)


def drawn_coordinates(domain: Domain, points: Array) -> list[list[float | None]]:
    """Return points (q, d) by column as the page draws them; dates with all digits."""
    positions = axis_positions(domain, points)
    columns = []
    for k, column in enumerate(positions.T):
        is_date = isinstance(domain.parameters[k], Date)
        columns.append(column.tolist() if is_date else drawn_column(column))
    return columns


def drawn_column(values: Array) -> list[float | None]:
    """Return a column rounded to six digits of its extent, or of each value over many decades."""
    positive = values[values > 0]
    if (
        len(positive) == len(values)
        and len(values)
        and positive.max() > _MANY_DECADES * positive.min()
    ):
        return [float(f"{value:.{_DRAWING_DIGITS}g}") for value in values.tolist()]
    extent = float(np.ptp(values)) if len(values) else 0.0
    if not 0 < extent < inf:
        return rounded(values)
    decimals = _DRAWING_DIGITS - 1 - int(np.floor(np.log10(extent)))
    return [float(value) for value in np.round(values, decimals)]


def _class_letters(classes: Classification | Result) -> str:
    """Return one letter per point: H (above), L (below) or M (undecided)."""
    return "".join(np.select([classes.above, classes.below], ["H", "L"], "M"))


def _drawn_points(domain: Domain) -> Index:
    """Return the points to draw: all, or evenly spaced ones, on a grid along each axis."""
    n = len(domain)
    if n <= MAX_DRAWN_POINTS:
        return np.arange(n)
    if domain.shape is not None:
        stride = int(np.ceil((n / MAX_DRAWN_POINTS) ** (1 / len(domain.shape))))
        picked = np.ix_(*(np.arange(0, length, stride) for length in domain.shape))
        return np.ravel_multi_index(np.broadcast_arrays(*picked), domain.shape).ravel()
    return np.arange(0, n, int(np.ceil(n / MAX_DRAWN_POINTS)))


def rounded(values: Array) -> list[float | None]:
    """Return values rounded to six digits of the largest; those that are not finite become None."""
    values = np.asarray(values, dtype=float)
    finite = np.isfinite(values)
    largest = float(np.abs(values[finite]).max(initial=0.0))
    if largest > 0:
        values = np.round(values, _DRAWING_DIGITS - 1 - int(np.floor(np.log10(largest))))
    return [value if isfinite(value) else None for value in values.tolist()]
