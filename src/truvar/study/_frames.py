"""DataFrames of suggestions and of measurements: `Study.ask_frame` and `Study.tell_frame`."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from truvar.domain.domain import Domain
from truvar.exceptions import RepeatedMeasurementWarning
from truvar.study.measurements_io import (
    MeasurementInput,
    MeasurementReader,
    known_points,
    skip_repeated,
)
from truvar.study.suggestion import Suggestion
from truvar.tabular.labels import RowLabels
from truvar.tabular.tables import as_table

if TYPE_CHECKING:
    import pandas as pd

    from truvar.study.base import BaseStudy


def suggestion_frame(suggestions: Sequence[Suggestion], domain: Domain) -> pd.DataFrame:
    """Return suggestions as a table: id, coordinates, level, task and who if there are some, cost.

    The index has the labels of the rows, if the user's own table has some. If a coordinate has
    one of the other names, the latter gets an underscore.
    """
    import pandas as pd

    names = {
        name: f"{name}_" if name in domain.columns else name
        for name in ("id", "measure", "level", "task", "who", "cost")
    }
    rows = []
    for suggestion in suggestions:
        row: dict[str, Any] = {names["id"]: suggestion.id, **suggestion.point}
        if suggestion.quantities is not None:
            row[names["measure"]] = ", ".join(suggestion.quantities)
        chosen = {"level": suggestion.level, "task": suggestion.task, "who": suggestion.vehicle}
        for name, value in chosen.items():
            if value is not None:
                row[names[name]] = value
        rows.append({**row, names["cost"]: suggestion.cost})
    frame = pd.DataFrame(rows)
    if domain.labels is not None:
        frame.index = RowLabels.of(
            domain.labels.index.take([each.index or 0 for each in suggestions])
        ).index
    return frame


def read_frame(table: Any, study: BaseStudy, value: str | None) -> list[MeasurementInput]:
    """Return the measurements of a table; rows without a value are left out.

    Args:
        table: A table of pandas or another library, or the path of a file.
        study: The study.
        value: Name of the column of values; None: "value".
    """
    frame = as_table(table)
    header = [str(name) for name in frame.columns]
    if _is_labelled(frame, header, study):
        frame = frame.assign(label=frame.index)
        header.append("label")
    reader = MeasurementReader(
        study.domain,
        known_points(study),
        header,
        value,
        has_vehicles=bool(study.vehicles),
        quantities=tuple(study.goal.parts),
    )
    measurements = []
    for position, row in enumerate(frame.itertuples(index=False, name=None)):
        measurement = reader.read([_cell(cell) for cell in row], f"row {position}")
        if measurement is not None:
            measurements.append(measurement)
    return measurements


def _is_labelled(frame: Any, header: list[str], study: BaseStudy) -> bool:
    """Return whether only the index of a table names the places; 0, 1, 2, ... are no labels."""
    domain = study.domain
    named = {
        "id",
        "label",
        *domain.columns,
        *(() if domain.labels is None else domain.labels.names),
    }
    return (
        domain.labels is not None
        and named.isdisjoint(header)
        and not RowLabels.of(frame.index).are_positions
    )


def new_measurements(
    study: BaseStudy, measurements: list[MeasurementInput], stacklevel: int = 3
) -> list[MeasurementInput]:
    """Return the measurements that were not told before, and warn of the others."""
    new, repeated = skip_repeated(study, measurements)
    if repeated:
        rows = ", ".join(each.source.removeprefix("row ") for each in repeated)
        warnings.warn(
            f"{len(repeated)} of {len(measurements)} rows were told before and are left out (rows "
            f"{rows}); if they are "
            "second measurements with the same values, give again=True",
            RepeatedMeasurementWarning,
            stacklevel=stacklevel,
        )
    return new


def _cell(cell: Any) -> Any:
    """Return a cell as the reader takes it: None if it is missing."""
    if cell is None or str(cell) == "<NA>" or cell != cell:  # pandas' NA refuses to be compared
        return None
    return cell.item() if hasattr(cell, "item") else cell
