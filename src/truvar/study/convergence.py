"""Progress of the answer: the expected F1 or regret after earlier measurements.

The event log does not hold these estimates, as they take draws. They are computed again from the operations of a study,
with the values as they are known now: a corrected value counts from the beginning.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from truvar.inference.statements import Estimate, JointStatements
from truvar.study._events import StudyConfig
from truvar.study._state import Snapshot, StudyState
from truvar.study._views import statement_inputs

if TYPE_CHECKING:
    from truvar.study.result import Result
    from truvar.study.study import Study

CHECKPOINTS = 16  # estimates of one study, at most


@dataclass(frozen=True)
class ScoreAfter:
    """The expected score of the answer after some measurements.

    Attributes:
        steps: Number of measurements.
        spent: Cost of them, failed ones included.
        score: Expected F1 of a level set, expected regret of an optimum.
    """

    steps: int
    spent: float
    score: Estimate

    def to_dict(self) -> dict[str, Any]:
        """Return the fields for JSON, without those of the estimate being nested."""
        return {"steps": self.steps, "spent": self.spent, **self.score.to_dict()}


def checkpoints(steps: int, count: int = CHECKPOINTS) -> list[int]:
    """Return the numbers of measurements after which the score is estimated, the present number last.

    They are multiples of a power of two, so that the next measurement leaves nearly all of them as they are.

    Args:
        steps: Number of measurements so far.
        count: Largest number of checkpoints.

    Example:
        >>> checkpoints(21, 8)
        [4, 8, 12, 16, 20, 21]
    """
    stride = 1
    while steps // stride > count - 1:
        stride *= 2
    found = list(range(stride, steps + 1, stride))
    return found if steps in found or not steps else [*found, steps]


def past_scores(config: StudyConfig, snapshot: Snapshot, steps: Collection[int]) -> Iterator[ScoreAfter]:
    """Yield the expected score after given numbers of measurements.

    Args:
        config: Settings of the study.
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
    return study._state.config, study._state.snapshot(), present


def _score(joint: JointStatements) -> Estimate:
    score = joint.expected_f1 if joint.expected_regret is None else joint.expected_regret
    if score is None:
        raise AssertionError("every goal has a score")
    return score
