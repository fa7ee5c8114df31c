"""Convergence of a study: the best value so far, and the expected F1 or regret.

The page, the figures and the API show these curves, and all of them mean the same. The event log
does not hold the estimates, as they take draws; they are computed again by a replay, with the
values as they are known now. A value that was corrected counts as corrected from the beginning, and
one that was withdrawn never was. Otherwise the score after t measurements is the one that the study
had then.

| curve | from |
|---|---|
| best value so far | `best_values` |
| expected score after some measurements | `score_history`; in portions, `past_scores` |
| after which measurements | `checkpoints` |
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np

from truvar._typing import Array
from truvar.inference.statements import Estimate, JointStatements
from truvar.study._conclusions import statement_inputs
from truvar.study._events import StudyConfig
from truvar.study._state import Snapshot, StudyState
from truvar.study.result import Result
from truvar.study.study import Study
from truvar.validation import check_integer

CHECKPOINTS = 16  # estimates of one study, at most


@dataclass(frozen=True)
class ScoreAfter:
    """The expected score of the answer after some measurements.

    Attributes:
        steps: Number of measurements.
        spent: Cost of them, failed ones included.
        score: Expected score of the goal: F1 of a level set, regret of an optimum.
    """

    steps: int
    spent: float
    score: Estimate

    @property
    def is_known(self) -> bool:
        """Whether there was a model to estimate the score with."""
        return isfinite(self.score.mean)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields for JSON, without those of the estimate being nested."""
        return {"steps": self.steps, "spent": self.spent, **self.score.to_dict()}


def checkpoints(steps: int, count: int = CHECKPOINTS) -> list[int]:
    """Return after how many measurements the score is estimated, the present number last.

    They are multiples of a power of two, so that the next measurement leaves nearly all of them as
    they are.

    Args:
        steps: Number of measurements so far.
        count: Largest number of checkpoints.

    Raises:
        InvalidArgumentError: If `count` is not a number >= 1.

    Example:
        >>> checkpoints(21, 8)
        [4, 8, 12, 16, 20, 21]
    """
    count = check_integer(count, "the number of moments", minimum=1)
    stride = 1
    while -(-steps // stride) > count:  # rounded up, as the present number counts too
        stride *= 2
    found = list(range(stride, steps + 1, stride))
    return found if steps in found or not steps else [*found, steps]


def score_history(study: Any, moments: int = CHECKPOINTS) -> list[ScoreAfter]:
    """Return the expected F1 or regret after earlier measurements and now, with a model.

    Args:
        study: A study, here or on a server; it is not changed.
        moments: Largest number of moments, as for `checkpoints`.
    """
    local = study if isinstance(study, Study) else Study.from_json(study.to_json())
    config, snapshot, present = score_source(local, local.result())
    steps = checkpoints(present.steps, moments)
    if not steps:
        return []
    scores = [*past_scores(config, snapshot, steps[:-1]), present]
    return [score for score in scores if score.is_known]


def best_values(values: Array, sign: int) -> Array:
    """Return the best value up to each measurement, NaN before the first.

    Args:
        values: Measured values of the target; NaN for those of other tasks and for outliers.
            (t,)
        sign: 1 if the highest value is the best, -1 if the lowest.
    """
    known = np.where(np.isfinite(values), sign * values, -np.inf)
    best = np.maximum.accumulate(known) if len(known) else known
    return np.where(np.isfinite(best), sign * best, np.nan)


def past_scores(
    config: StudyConfig, snapshot: Snapshot, steps: Collection[int]
) -> Iterator[ScoreAfter]:
    """Yield the expected score after given numbers of measurements.

    Args:
        config: Settings that the study was created with.
        snapshot: Its present operations; the study itself is not touched.
        steps: Numbers of measurements.
    """
    wanted = set(steps)
    if not wanted:
        return
    for state in StudyState.past(config, snapshot):
        if len(state.history) in wanted:
            wanted.discard(len(state.history))
            yield ScoreAfter(len(state.history), state.spent, _score(statement_inputs(state).joint))
        if not wanted:
            return


def score_source(study: Study, result: Result) -> tuple[StudyConfig, Snapshot, ScoreAfter]:
    """Return what `past_scores` takes, read from a study at one moment, and the present score.

    Args:
        study: The study.
        result: Its present result.
    """
    present = ScoreAfter(result.steps, result.spent, _score(result.statements))
    return study._state.first_config, study._state.snapshot(), present


def _score(joint: JointStatements) -> Estimate:
    if joint.score is None:
        raise AssertionError("every goal has a score")
    return joint.score
