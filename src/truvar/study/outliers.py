"""Measurements that the model leaves out as gross errors: which they are, and the warning that names them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from truvar.exceptions import OutlierWarning
from truvar.messages import for_interface, format_coordinates
from truvar.study.records import MeasurementRecord, measurement_records

if TYPE_CHECKING:
    from truvar.study._state import StudyState

_collected: ContextVar[dict[int, str] | None] = ContextVar("collected", default=None)


def outlier_ids(state: StudyState) -> tuple[int, ...]:
    """Return the ids of the measurements that the model leaves out, in order."""
    return tuple(action.id for action, _ in state.learner.surrogate.outliers)


def outlier_messages(records: Sequence[MeasurementRecord], ids: Sequence[int]) -> dict[int, str]:
    """Return a message by id for each measurement that is left out: what it is, and what to do about it.

    Args:
        records: All measurements.
        ids: Ids of those that are left out.
    """
    return {record.id: _message(record) for record in records if record.id in ids}


def warn_of_outliers(state: StudyState, ids: Sequence[int], stacklevel: int) -> None:
    """Issue an `OutlierWarning` for each of the measurements, or add its message to those of `collect_outliers`.

    Args:
        state: The state of the study.
        ids: Ids of the measurements.
        stacklevel: As for `warnings.warn`, counted from the caller.
    """
    messages = outlier_messages(measurement_records(state), ids)
    collected = _collected.get()
    if collected is not None:
        collected.update(messages)
        return
    for message in messages.values():
        warnings.warn(message, OutlierWarning, stacklevel=stacklevel + 1)


def warn_of_value(id_: int, message: str, stacklevel: int) -> None:
    """Issue an `OutlierWarning` about a value, or add its message to those of `collect_outliers`.

    Args:
        id_: Id of the measurement.
        message: The message.
        stacklevel: As for `warnings.warn`, counted from the caller.
    """
    collected = _collected.get()
    if collected is not None:
        collected[id_] = message
    else:
        warnings.warn(message, OutlierWarning, stacklevel=stacklevel + 1)


@contextmanager
def collect_outliers() -> Iterator[dict[int, str]]:
    """Collect the messages of outlier warnings by id instead of issuing them, for interfaces that show them."""
    messages: dict[int, str] = {}
    token = _collected.set(messages)
    try:
        yield messages
    finally:
        _collected.reset(token)


def _message(record: MeasurementRecord) -> str:
    id_ = record.id
    remedy = for_interface(
        f"correct it with correct({id_}, VALUE) or remove it with withdraw({id_})",
        cli=f"correct it with truvar correct {id_} VALUE or remove it with truvar withdraw {id_}",
        http="correct or withdraw it",
    )
    return (
        f"measurement {id_} (value {record.value:.6g} at {format_coordinates(record.point)}) is so far from what the "
        f"other values say that the model leaves it out as a gross error; if it is one, {remedy}; if not, measure "
        "there again: a second value like it is believed"
    )
