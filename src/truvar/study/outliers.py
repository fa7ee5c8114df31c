"""Measurements that the model leaves out as outliers, and the messages that name them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from truvar.messages import for_interface, format_coordinates
from truvar.study.records import MeasurementRecord
from truvar.tabular.labels import label_text

if TYPE_CHECKING:
    from truvar.study._state import StudyState


def outlier_ids(state: StudyState) -> tuple[int, ...]:
    """Return the ids of the measurements that the model leaves out, in order."""
    return tuple(action.id for action, _ in state.learner.surrogate.outliers)


def outlier_messages(records: Sequence[MeasurementRecord], ids: Sequence[int]) -> dict[int, str]:
    """Return a message with a remedy, by id, for each measurement that is left out.

    Args:
        records: All measurements.
        ids: Ids of those that are left out.
    """
    return {record.id: _message(record) for record in records if record.id in ids}


def _message(record: MeasurementRecord) -> str:
    id_ = record.id
    remedy = for_interface(
        f"correct it with correct({id_}, VALUE) or remove it with withdraw({id_})",
        cli=f"correct it with truvar correct {id_} VALUE or remove it with truvar withdraw {id_}",
        http="correct or withdraw it",
    )
    place = format_coordinates(record.point)
    if record.label is not None and record.label != record.index:
        place = f"{label_text(record.label)}, {place}"
    return (
        f"measurement {id_} (value {record.value:.6g} at {place}) is so "
        "far from what the "
        f"other values say that the model leaves it out as an outlier; if it is an error, {remedy}; "
        "if not, measure "
        "there again: a second value like it is believed"
    )
