"""The convergence of a study for the page: best value so far, expected F1 or regret.

An estimate takes draws, but those of earlier measurements do not change when another one is told.
They are kept as long as the operations that they follow from are the same objects. One request
computes them for a few seconds; the next one continues.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from truvar.report.limit_progress import score_goal
from truvar.study._events import StudyConfig
from truvar.study._state import Snapshot
from truvar.study.convergence import ScoreAfter, best_values, checkpoints, past_scores, score_source
from truvar.study.limits import RunLimits
from truvar.study.operations import Operation, Told
from truvar.study.result import Result
from truvar.study.study import Study

SECONDS = 2.0  # of work on one request; the estimate that is under way is finished


@dataclass(frozen=True)
class ConvergenceSource:
    """Everything that the convergence of a study is computed from, as it was at one moment.

    Attributes:
        config: Settings of the study.
        snapshot: Its operations.
        present: The present score.
        best: Steps, cost and value of the best measurement so far, one row for each measurement of
            the target.
        goal: The score to reach; None: no goal is set.
        version: Version of the study.
    """

    config: StudyConfig
    snapshot: Snapshot
    present: ScoreAfter
    best: list[dict[str, Any]]
    goal: float | None
    version: int


class Convergence:
    """Computes the convergence of studies and keeps what does not change.

    Args:
        studies: Number of studies whose estimates are kept.
    """

    def __init__(self, studies: int) -> None:
        self._studies = studies
        self._known: OrderedDict[str, dict[int, tuple[list[Operation], ScoreAfter]]] = OrderedDict()

    def read(self, study: Study) -> ConvergenceSource:
        """Return what the convergence of a study is computed from; this is quick."""
        result = study.result()
        config, snapshot, present = score_source(study, result)
        limits = RunLimits.of(study.limits)
        goal = score_goal(result, limits)
        return ConvergenceSource(
            config, snapshot, present, _best_so_far(study, result), goal, study.version
        )

    def to_dict(self, name: str, source: ConvergenceSource) -> dict[str, Any]:
        """Return the convergence for JSON; `complete` is false if estimates are still missing.

        Args:
            name: Name of the study.
            source: What it is computed from.
        """
        operations = source.snapshot.operations
        steps = checkpoints(source.present.steps)
        known = self._known.pop(name, {})
        kept = {count: entry for count, entry in known.items() if _is_prefix(entry[0], operations)}
        missing = [count for count in steps if count not in kept and count < source.present.steps]
        deadline = time.monotonic() + SECONDS
        for found in past_scores(source.config, source.snapshot, missing):
            kept[found.steps] = (_up_to(operations, found.steps), found)
            if time.monotonic() > deadline:
                break
        if source.present.steps:
            kept[source.present.steps] = (_up_to(operations, source.present.steps), source.present)
        self._known[name] = kept
        while len(self._known) > self._studies:
            self._known.popitem(last=False)
        return {
            "version": source.version,
            "score": source.config.goal.score.key,
            "goal": source.goal,
            "complete": all(count in kept for count in steps),
            "scores": [kept[count][1].to_dict() for count in steps if count in kept],
            "best": source.best,
        }


def _best_so_far(study: Study, result: Result) -> list[dict[str, Any]]:
    target = None if study.tasks is None else study.tasks.names[0]
    left_out = set(result.outliers)
    records = study.measurement_records()
    counts = [record.task == target and record.id not in left_out for record in records]
    values = np.where(counts, [record.value for record in records], np.nan)
    rows: list[dict[str, Any]] = []
    for k, best in enumerate(best_values(values, study.goal.sign).tolist()):
        if counts[k]:
            record = records[k]
            value = record.value
            rows.append(
                {
                    "steps": k + 1,
                    "spent": record.spent,
                    "value": value,
                    "best": best,
                    "id": record.id,
                }
            )
    return rows


def _is_prefix(prefix: Sequence[Operation], operations: Sequence[Operation]) -> bool:
    if len(prefix) > len(operations):
        return False
    return all(own is other for own, other in zip(prefix, operations, strict=False))


def _up_to(operations: Sequence[Operation], steps: int) -> list[Operation]:
    """Return the operations up to a measurement, by its number."""
    told = 0
    for k, operation in enumerate(operations):
        told += isinstance(operation, Told)
        if told == steps:
            return list(operations[: k + 1])
    return list(operations)
