"""The expected F1 or regret of a study as it was after earlier measurements, from a replay of its event log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from truvar.inference.statements import Estimate
from truvar.storage.memory import InMemoryEventLog
from truvar.study.study import Study

MAX_MOMENTS = 14  # moments at which the score is computed, unless the caller says otherwise


@dataclass(frozen=True)
class ScoreRecord:
    """The score of the answer at one moment.

    Attributes:
        steps: Number of measurements.
        spent: Total cost.
        score: Expected F1 of a level set, or expected regret of an optimum, given the model of that moment.
    """

    steps: int
    spent: float
    score: Estimate


def score_history(study: Any, moments: int = MAX_MOMENTS) -> list[ScoreRecord]:
    """Return the expected F1 or regret after earlier measurements, as it was known then.

    The study is replayed from its events, so that values which were corrected later count from then on. Joint
    statements take time, so that only some moments are looked at, the last one among them.

    Args:
        study: A study, here or on a server; it is not changed.
        moments: Largest number of moments.

    Returns:
        A record for each moment at which there was a model.
    """
    events = _events(study)
    told = [position for position, event in enumerate(events) if event.kind == "told"]
    if not told:
        return []
    picked = np.unique(np.linspace(0, len(told) - 1, min(moments, len(told))).round().astype(int))
    ends = [told[k] + 1 for k in picked]
    ends[-1] = len(events)
    copy = Study.from_event_log(InMemoryEventLog(events[: ends[0]]), study.name)
    records: list[ScoreRecord] = []
    done = ends[0]
    for end in ends:
        copy._state.replay(events[done:end])
        done = end
        statements = copy.result().statements
        score = statements.expected_regret if statements.expected_f1 is None else statements.expected_f1
        if statements.is_known and score is not None and np.isfinite(score.mean):
            records.append(ScoreRecord(copy.steps, copy.spent, score))
    return records


def _events(study: Any) -> list[Any]:
    """Return all events of a study; those of a study on a server are sent as text."""
    local = study if isinstance(study, Study) else Study.from_json(study.to_json())
    return list(local._event_log.since(0))
