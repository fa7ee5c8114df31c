"""A study as JSON: what the page draws, and what the client rebuilds a result from.

Arrays over the domain are columns of plain numbers; the class of every point is one letter, H, L or M. What is not
finite is null. The `view` is for drawing: six digits, and of a very large domain only some of its points.
"""

from __future__ import annotations

import json
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from truvar._typing import Array, Mask
from truvar.report import style
from truvar.report.formatting import column_label
from truvar.report.status import describe_goal, status_data
from truvar.report.tables import replace_nonfinite
from truvar.storage.serialization import serialize

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from truvar.domain.domain import Domain
    from truvar.study.study import Study

DRAWN = 20_000  # points of a domain that a page is sent at most
DIGITS = 6

State = str  # "new", "running" or "finished"; a study that cannot be opened is "broken"


def encode(data: Any) -> bytes:
    """JSON, compact; what is not finite is null."""
    return json.dumps(replace_nonfinite(data), allow_nan=False, separators=(",", ":")).encode()


def state_of(study: Study) -> State:
    """Whether the study has begun, and whether it is over."""
    if study.finished is not None:
        return "finished"
    return "running" if study.steps or study.pending else "new"


def status(study: Study) -> dict[str, Any]:
    """Where a study stands, without the arrays."""
    return {**status_data(study), "state": state_of(study), "words": describe_goal(study.goal)}


def problem(study: Study) -> dict[str, Any]:
    """What does not change, exactly: a client reads it back."""
    parts = {"domain": study.domain, "goal": study.goal, "policy": study.policy, "levels": study.levels}
    serialized = {name: serialize(part, name) for name, part in {**parts, "tasks": study.tasks}.items()}
    return {**serialized, "travels": study.travels, "seed": study.seed}


def events(study: Study, newest: int) -> list[dict[str, Any]]:
    """The journal, newest first. The problem itself, in the first event, is left to the export."""
    rows = study.events.tail(newest).iloc[::-1].to_dict("records")
    return [
        {
            **{str(key): value for key, value in row.items()},
            "time": row["time"].isoformat(),
            "details": {} if row["kind"] == "created" else serialize(row["details"]),
        }
        for row in rows
    ]


def measured(study: Study) -> list[dict[str, Any]]:
    """The measurements, one object each; the coordinates under `point`."""
    frame, d = study.measurements, len(study.domain.columns)
    rows = []
    for row in frame.astype(object).where(frame.notna(), None).itertuples(index=False, name=None):
        id_, index, coordinates, rest = row[0], row[1], row[2 : 2 + d], row[2 + d :]
        point = dict(zip(study.domain.columns, map(float, coordinates), strict=True))
        level, task, noise, cost, spent, value = rest
        rows.append(
            {
                "id": int(id_),
                "index": None if index is None else int(index),
                "point": point,
                "level": None if level is None else int(level),
                "task": task,
                "noise": float(noise),
                "cost": float(cost),
                "spent": float(spent),
                "value": float(value),
            }
        )
    return rows


def history(study: Study) -> dict[str, list[Any]]:
    """How it went, as columns."""
    return {str(name): replace_nonfinite(column.tolist()) for name, column in study.history.items()}


def posterior(study: Study) -> dict[str, Any]:
    """What is known of the domain, exactly: mean, sd, bounds and class of every point, and the result."""
    result = study.result()
    arrays = {name: getattr(result, name).tolist() for name in ("mean", "sd", "lower", "upper")}
    return {
        "columns": list(study.domain.columns),
        "points": study.domain.points.tolist(),
        **arrays,
        "classes": _letters(result.above, result.below),
        "measured": list(result.measured),
        "result": result.to_dict(),
    }


def report(study: Study) -> str:
    """The report in one HTML file."""
    from truvar.report.html_report import render_html_report

    return render_html_report(study)


def view(study: Study) -> dict[str, Any]:
    """All that the page shows of a study, for drawing."""
    result, domain = study.result(), study.domain
    shown = _shown(domain)
    levels = study.levels
    return {
        **status(study),
        "threshold": result.threshold,
        "level_set": study.goal.level_set,
        "sign": study.goal.sign,
        "travels": study.travels,
        "columns": [_column(domain, k) for k in range(len(domain.columns))],
        "points": len(domain),
        "shown": len(shown),
        "indices": None if len(shown) == len(domain) else shown.tolist(),
        "kind": "box" if domain.continuous else "table" if domain.axes is None else "grid",
        "places": [_rounded(domain.points[shown, k]) for k in range(len(domain.columns))],
        **{name: _rounded(getattr(result, name)[shown]) for name in ("mean", "sd", "lower", "upper")},
        "classes": _letters(result.above[shown], result.below[shown]),
        "levels": None
        if levels is None
        else [{"variance": float(v), "cost": float(c)} for v, c in zip(levels.variance, levels.cost, strict=True)],
        "tasks": None if study.tasks is None else list(study.tasks.names),
        "measurements": measured(study),
        "history": history(study),
    }


def slice_of(study: Study, across: tuple[int, int], at: Array, side: int = 48) -> dict[str, Any]:
    """The posterior on a plane through `at`: a grid over two columns, the others held."""
    axes = []
    for k in across:
        low, high = study.domain.bounds[k]
        spread = style.use_log_axis(study.domain.points[:, k])
        axes.append(np.geomspace(low, high, side) if spread else np.linspace(low, high, side))
    points = np.repeat(at[None, :], side * side, axis=0)
    first, second = np.meshgrid(*axes, indexing="ij")
    points[:, across[0]], points[:, across[1]] = first.ravel(), second.ravel()
    mean, sd = study.predict(points)
    return {
        "x": _rounded(axes[0]),
        "y": _rounded(axes[1]),
        "across": [study.domain.columns[k] for k in across],
        "at": study.domain.named(at),
        "mean": _rounded(mean),
        "sd": _rounded(sd),
    }


def _column(domain: Domain, k: int) -> dict[str, Any]:
    values = np.unique(domain.points[:, k])
    return {
        "name": domain.columns[k],
        "label": column_label(domain.columns[k]),
        "low": float(domain.bounds[k, 0]),
        "high": float(domain.bounds[k, 1]),
        "log": style.use_log_axis(values),
        "step": None if domain.axes is None or len(values) < 2 else float(np.diff(values).min()),
    }


def _letters(above: Mask, below: Mask) -> str:
    return "".join(np.select([above, below], ["H", "L"], "M"))


def _shown(domain: Domain) -> NDArray[np.intp]:
    """The points to draw: all, or evenly spread ones; of a grid every so many along each axis."""
    n = len(domain)
    if n <= DRAWN:
        return np.arange(n)
    if domain.shape is not None:
        stride = int(np.ceil((n / DRAWN) ** (1 / len(domain.shape))))
        picked = np.ix_(*(np.arange(0, length, stride) for length in domain.shape))
        return np.ravel_multi_index(np.broadcast_arrays(*picked), domain.shape).ravel()
    return np.arange(0, n, int(np.ceil(n / DRAWN)))


def _rounded(values: Array) -> list[float | None]:
    """To six digits of the largest."""
    values = np.asarray(values, dtype=float)
    whole = np.isfinite(values)
    largest = float(np.abs(values[whole]).max(initial=0.0))
    if largest > 0 and isfinite(largest):
        values = np.round(values, DIGITS - 1 - int(np.floor(np.log10(largest))))
    return values.tolist() if whole.all() else [v if isfinite(v) else None for v in values.tolist()]
