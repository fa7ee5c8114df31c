"""JSON that explains suggestions and classes on the page: expected effects, and bands."""

from __future__ import annotations

from dataclasses import asdict
from math import isfinite
from typing import TYPE_CHECKING, Any

from truvar._typing import Index
from truvar.models.diagnostics import NORMAL_95
from truvar.study.explanation import expected_values

if TYPE_CHECKING:
    from truvar.study.result import Result
    from truvar.study.study import Study
    from truvar.study.suggestion import Suggestion

MAX_EXPLAINED = 20  # pending suggestions whose expected effect is computed


def pending(study: Study) -> list[dict[str, Any]]:
    """Return the pending suggestions with the value and the effect that are expected of them.

    `expected` is null before there is a model; of many suggestions only the first are explained.
    """
    rows = []
    for k, suggestion in enumerate(study.pending):
        explained = (
            _expectation(study, suggestion)
            if k < MAX_EXPLAINED
            else {"expected": None, "lookahead": None}
        )
        rows.append({**suggestion.to_dict(), **explained})
    return rows


def _expectation(study: Study, suggestion: Suggestion) -> dict[str, Any]:
    values = {
        name: {"mean": mean, "low": mean - NORMAL_95 * sd, "high": mean + NORMAL_95 * sd}
        for name, (mean, sd) in expected_values(study, suggestion).items()
        if isfinite(sd)
    }
    effect = study.lookahead(suggestion)
    expected: dict[str, Any] | None = next(iter(values.values()), None)
    if expected is not None and suggestion.quantities is not None:
        expected = {**expected, "quantities": values}
    return {"expected": expected, "lookahead": None if effect is None else asdict(effect)}


def bands(result: Result, shown: Index) -> dict[str, Any] | None:
    """Return names of bands and the band of every drawn point (-1: undecided); None without."""
    classes = result.classes
    if classes.band is None:
        return None
    inside = bool(getattr(result.goal, "inside", False))
    return {"names": list(classes.band_names), "of": classes.band[shown].tolist(), "inside": inside}
