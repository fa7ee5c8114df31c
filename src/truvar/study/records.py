"""Measurements of a study as records, which need no pandas and allow a coordinate of any name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import isnan
from typing import TYPE_CHECKING, Any

from truvar._deprecation import deprecated_attribute
from truvar.algorithm._several import SeveralLearner
from truvar.domain.domain import Domain
from truvar.tabular.labels import label_to_json

if TYPE_CHECKING:
    import pandas as pd

    from truvar.study._state import StudyState

_MEASUREMENT_COLUMNS = ("id", "index", "level", "task", "noise", "cost", "spent", "value")
_FURTHER_COLUMNS = ("label", "who", "repeats", "exposure", "reference")  # only where there are such
# of tables of measurements, in which a quantity has a column of its own name
RESERVED_COLUMNS = (*_MEASUREMENT_COLUMNS[:-1], *_FURTHER_COLUMNS, "noise_sd", "vehicle", "measure")


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
        spent: Cost of all measurements up to this one, those that failed included.
        value: The measured value; of several quantities that of the first, NaN if it is missing.
        vehicle: Vehicle or crew that measured; None if the study has none.
        repeats: Id of the measurement that this one repeats at the same place; None if it was not
            told as a repeat.
        label: Label of the row in the user's own table; None if there is no table.
        key: The key that it was told with; None without one.
        values: The measured values by quantity, if there are several.
        exposure: The exposure that it was told with; None without one.
        cost_told: Whether `cost` was told rather than expected; None unless costs are learned.
        reference: Where its raw data are; None without such.
    """

    id: int
    index: int | None
    point: dict[str, Any]
    level: int | None
    task: str | None
    noise: float
    cost: float
    spent: float
    value: float
    vehicle: str | None = None
    repeats: int | None = None
    label: Any = None
    key: str | None = None
    values: Mapping[str, float] | None = None
    exposure: float | None = None
    cost_told: bool | None = None
    reference: str | None = None

    who = deprecated_attribute("vehicle", removed_in="0.5.0")

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a dictionary of JSON values."""
        fields = {**_json_fields(self), "label": label_to_json(self.label)}
        if self.values is None:
            del fields["values"]
        elif isnan(self.value):
            fields["value"] = None
        return fields


@dataclass(frozen=True)
class FailureRecord:
    """One measurement that failed.

    Attributes:
        id: Id of its suggestion.
        index: Row of the point in the domain; None inside a box or between the points of a grid.
        point: Coordinates by column name.
        level: Noise level that was tried; None without noise levels.
        task: Name of the task; None without tasks.
        cost: Cost of the attempt.
        reason: Why it failed; None if it was not said.
        vehicle: Vehicle or crew that tried; None if the study has none.
        label: Label of the row in the user's own table; None if there is no table.
    """

    id: int
    index: int | None
    point: dict[str, Any]
    level: int | None
    task: str | None
    cost: float
    reason: str | None
    vehicle: str | None = None
    label: Any = None

    who = deprecated_attribute("vehicle", removed_in="0.5.0")

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a dictionary of JSON values."""
        return {**_json_fields(self), "label": label_to_json(self.label)}


def _json_fields(record: MeasurementRecord | FailureRecord) -> dict[str, Any]:
    data = asdict(record)
    data["who"] = data.pop("vehicle")  # as earlier releases call it
    for name in ("exposure", "reference"):
        if data.get(name, 0) is None:
            del data[name]
    return data


def failure_records(state: StudyState) -> list[FailureRecord]:
    """Return the measurements that failed, in order."""
    domain = state.config.domain
    tasks = state.config.prior.tasks
    records = []
    for failure in state.learner.failures:
        action = failure.action
        index = None if action.site is None else action.site % len(domain)
        records.append(
            FailureRecord(
                id=action.id,
                index=index,
                point=domain.named(action.point[: len(domain.columns)]),
                level=action.level,
                task=None if tasks is None else tasks.names[action.task],
                cost=action.cost,
                reason=failure.reason,
                vehicle=action.vehicle,
                label=domain.label(index),
            )
        )
    return records


def measurement_records(state: StudyState) -> list[MeasurementRecord]:
    """Return the measurements of a study in the order in which they were told."""
    domain = state.config.domain
    tasks = state.config.prior.tasks
    keys = state.told_texts("key")
    references = state.told_texts("reference")
    spent = 0.0
    records = []
    failed = state.learner.failures
    learner = state.learner
    several: Sequence[Mapping[str, float] | None] = [None] * len(learner.observations)
    if isinstance(learner, SeveralLearner):
        several = learner.values
    for position, (action, value) in enumerate(state.learner.observations):
        spent += action.cost + sum(each.action.cost for each in failed if each.n_before == position)
        index = None if action.site is None else action.site % len(domain)
        records.append(
            MeasurementRecord(
                id=action.id,
                index=index,
                point=domain.named(action.point[: len(domain.columns)]),
                level=action.level,
                task=None if tasks is None else tasks.names[action.task],
                noise=action.noise,
                cost=action.cost,
                spent=spent,
                value=value,
                vehicle=action.vehicle,
                repeats=action.repeats,
                label=domain.label(index),
                key=keys.get(action.id),
                values=several[position],
                exposure=action.exposure,
                cost_told=action.cost_told,
                reference=references.get(action.id),
            )
        )
    return records


def measurement_frame(records: Sequence[MeasurementRecord], domain: Domain) -> pd.DataFrame:
    """Return a table of measurements.

    Args:
        records: The measurements.
        domain: The domain. If one of its columns is also a name of the table, the latter gets an
            underscore. If its rows are named, the names are a column `label`.
    """
    import pandas as pd

    columns = domain.columns

    rows = []
    for record in records:
        rest = (record.level, record.task, record.noise, record.cost, record.spent, record.value)
        rows.append((record.id, record.index, *record.point.values(), *rest))
    names = [f"{name}_" if name in columns else name for name in _MEASUREMENT_COLUMNS]
    frame = pd.DataFrame(rows, columns=[*names[:2], *columns, *names[2:]])
    frame = frame.astype({names[1]: "Int64", names[2]: "Int64"})  # the integers that may be missing
    if domain.has_row_names:
        frame.insert(
            2, "label_" if "label" in columns else "label", [record.label for record in records]
        )
    _replace_by_quantities(frame, names[-1], records, domain)
    more: dict[str, list[Any]] = {
        "who": [record.vehicle for record in records],
        "repeats": [record.repeats for record in records],
        "exposure": [record.exposure for record in records],
        "reference": [record.reference for record in records],
    }
    types = {"repeats": "Int64", "exposure": "float64"}
    for name, own in more.items():
        if any(value is not None for value in own):  # only where there are such
            heading = f"{name}_" if name in columns else name
            frame[heading] = pd.Series(own, dtype=types.get(name, "object"))
    return frame


def _replace_by_quantities(
    frame: pd.DataFrame, value: str, records: Sequence[MeasurementRecord], domain: Domain
) -> None:
    """Replace the column of values by one for each quantity, where there are several."""
    values = [record.values for record in records if record.values is not None]
    if not values:
        return
    del frame[value]
    for name in dict.fromkeys(name for each in values for name in each):
        heading = f"{name}_" if name in domain.columns else name
        frame[heading] = [each.get(name, float("nan")) for each in values]
