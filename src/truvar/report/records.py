"""Measurements of a study as records, whatever names its coordinates have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from truvar.study.study import Study


@dataclass(frozen=True)
class MeasurementRecord:
    """One measured value.

    Attributes:
        id: Id of its suggestion.
        index: Row of the point in the domain; None inside a box or between the points of a grid.
        point: Coordinates by column name.
        level: Noise level that was used; None without noise levels.
        task: Name of the task; None without tasks.
        noise: Variance of the noise.
        cost: Cost of this measurement.
        spent: Cost of all measurements up to this one.
        value: The measured value.
    """

    id: int
    index: int | None
    point: dict[str, float]
    level: int | None
    task: str | None
    noise: float
    cost: float
    spent: float
    value: float


def measurement_records(study: Study) -> list[MeasurementRecord]:
    """Return the measurements of a study in the order in which they were told.

    The columns of `study.measurements` are read by position: a coordinate may itself be called "value" or "noise".
    """
    frame = study.measurements
    columns = study.domain.columns
    first_after_point = 2 + len(columns)
    records = []
    for row in frame.astype(object).where(frame.notna(), None).itertuples(index=False, name=None):
        id_, index = row[:2]
        coordinates = row[2:first_after_point]
        level, task, noise, cost, spent, value = row[first_after_point:]
        records.append(
            MeasurementRecord(
                id=int(id_),
                index=_optional_int(index),
                point=dict(zip(columns, map(float, coordinates), strict=True)),
                level=_optional_int(level),
                task=task,
                noise=float(noise),
                cost=float(cost),
                spent=float(spent),
                value=float(value),
            )
        )
    return records


def _optional_int(value: Any) -> int | None:
    return None if value is None else int(value)
