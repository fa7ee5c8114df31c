"""JSON for the page beside the view of a study: model, checked problems, columns of tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from truvar._typing import Array
from truvar.acquisition.registry import DEFAULT_POLICY
from truvar.exceptions import InvalidArgumentError, PointNotInDomainError
from truvar.inference.sensitivity import sobol_indices
from truvar.models.diagnostics import NORMAL_95
from truvar.report.formatting import format_question
from truvar.report.problem_summary import problem_rows, problem_warnings
from truvar.service import serializers

if TYPE_CHECKING:
    import pandas as pd

    from truvar.problem import Problem
    from truvar.study.study import Study

MAX_PREVIEWED = 10_000  # points of a problem that are drawn before the study is created
PREVIEWED_COLUMNS = 2  # columns of a problem whose coordinates are drawn
MAX_EXAMPLES = 5  # values of a column of a table that are shown
# standard deviation of the mean over the domain, as a share of its size, below which it is constant
NEGLIGIBLE = 1e-9
NOT_ON_THE_DOMAIN = (
    "the prior mean has values at the points of the domain only, "
    "so that the model cannot be drawn between them"
)


def model(study: Study, at: Array | None = None) -> dict[str, Any]:
    """Return the model check, the importance of the columns, and curves through a point.

    Args:
        study: The study.
        at: A point that the curves go through, as the page has coordinates, (d,); None: the
            recommended one.

    Raises:
        InvalidArgumentError: If the point does not have a finite number per column.
    """
    result = study.result()
    domain = study.domain
    if at is None:
        centre = domain.array(result.best.point)
    else:
        if len(at) != len(domain.columns) or not np.isfinite(at).all():
            raise InvalidArgumentError(
                f"at must be {len(domain.columns)} finite numbers, got {list(at)}; give one number "
                "per column"
            )
        centre = serializers.snapped(domain, at)
    check = serializers.model_check(result.model_check)
    data: dict[str, Any] = {
        "check": {**check, "z_scores": result.model_check.z_scores.tolist()},
        "known": result.statements.is_known,
        "importance": None,
        "profiles": None,
        "at": domain.named(centre),
        "problem": None,
    }
    if not result.statements.is_known:
        return data
    try:
        indices = sobol_indices(
            lambda points: study.predict(domain.values(points))[0], domain.points, study.seed
        )
        data["profiles"] = [_profile(study, centre, k) for k in range(len(domain.columns))]
    except PointNotInDomainError:
        data["problem"] = NOT_ON_THE_DOMAIN
        return data
    if indices.sd > NEGLIGIBLE * float(np.abs(result.mean).max()):
        shares = zip(domain.columns, indices.first.tolist(), indices.total.tolist(), strict=True)
        data["importance"] = [
            {"column": name, "first": first, "total": total} for name, first, total in shares
        ]
    return data


def _profile(study: Study, centre: Array, k: int) -> dict[str, Any]:
    """Return mean and 95 % interval along a column, the others held constant."""
    domain = study.domain
    axis = serializers.slice_axis(domain, k)
    points = np.repeat(centre[None, :], len(axis), axis=0)
    points[:, k] = axis
    mean, sd = study.predict(domain.values(points))
    return {
        "column": domain.columns[k],
        "x": serializers.drawn_column(serializers.axis_positions(domain, points)[:, k]),
        "at": float(serializers.axis_positions(domain, centre[None, :])[0, k]),
        "mean": serializers.rounded(mean),
        "low": serializers.rounded(mean - NORMAL_95 * sd),
        "high": serializers.rounded(mean + NORMAL_95 * sd),
    }


def problem_check(problem: Problem, study: Study) -> dict[str, Any]:
    """Return a problem in words, its warnings as `truvar new` prints them, and its points to draw.

    Args:
        problem: The problem.
        study: A study of it, which is not stored.
    """
    domain = study.domain
    shown = np.arange(len(domain))
    if len(shown) > MAX_PREVIEWED:
        shown = np.unique(np.linspace(0, len(domain) - 1, MAX_PREVIEWED).astype(int))
    positions = serializers.axis_positions(domain, domain.points[shown])
    rows = [{"name": name, "text": text} for name, text in problem_rows(problem, study)]
    for row in rows:
        if row["name"] == "policy":  # by the name that a problem file has for it
            row["text"] = problem.spec.get("policy", {}).get("name", DEFAULT_POLICY)
    return {
        "goal": format_question(study),
        "rows": rows,
        "warnings": problem_warnings(problem, study),
        "points": len(domain),
        "columns": [serializers.column_data(domain, k) for k in range(len(domain.columns))],
        "coordinates": [
            serializers.drawn_column(column) for column in positions.T[:PREVIEWED_COLUMNS]
        ],
    }


def table_columns(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return name, kind, range and some values of each column of a table, for a form."""
    import pandas as pd

    rows = []
    for name in frame.columns:
        values = frame[name]
        known = values.dropna()
        numeric = pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values)
        distinct = known.unique()
        row: dict[str, Any] = {
            "name": str(name),
            "kind": "text",
            "distinct": len(distinct),
            "missing": int(values.isna().sum()),
            "low": None,
            "high": None,
            "examples": [str(value) for value in distinct[:MAX_EXAMPLES]],
        }
        if numeric and len(known):
            row |= {"kind": "number", "low": float(known.min()), "high": float(known.max())}
        rows.append(row)
    return rows
