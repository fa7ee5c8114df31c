"""The expected score after earlier measurements."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

import truvar as tv
from truvar.exceptions import InvalidArgumentError
from truvar.study.convergence import (
    best_values,
    checkpoints,
    past_scores,
    score_history,
    score_source,
)


def test_checkpoints_stay_where_they_are_when_a_measurement_is_added():
    assert checkpoints(0) == []
    assert checkpoints(3) == [1, 2, 3]
    assert checkpoints(6, 6) == [1, 2, 3, 4, 5, 6]
    assert checkpoints(21, 8) == [4, 8, 12, 16, 20, 21]
    assert all(len(checkpoints(steps, 16)) <= 16 for steps in range(400))
    assert set(checkpoints(61)[:-1]) <= set(checkpoints(62))


@pytest.mark.parametrize("goal", [tv.LevelSet(0.3), tv.Maximize()])
@pytest.mark.parametrize("learned", [False, True])
def test_past_scores_are_those_that_the_study_had_then(goal, learned):
    options = {} if learned else {"kernel": RBF(0.3), "mean": 0.0, "noise": 1e-4}
    study = tv.Study(tv.Domain.grid(x=np.linspace(0, 1, 25)), goal, **options)
    seen = {}
    for x in np.linspace(0, 1, 12 if learned else 7):
        study.tell({"x": x}, float(np.sin(5 * x)))
        result = study.result()
        seen[result.steps] = result.expected_f1 if goal.has_thresholds else result.expected_regret
    config, snapshot, present = score_source(study, study.result())
    scores = list(past_scores(config, snapshot, checkpoints(study.steps, 6)))
    assert scores[-1] == present
    assert score_history(study, 6) == [score for score in scores if score.is_known]
    assert len(scores) >= 3
    assert scores[-1].steps == study.steps
    for found in scores:
        expected = seen[found.steps]
        assert (found.score.mean, found.score.low) == pytest.approx(
            (expected.mean, expected.low), nan_ok=True
        )
    assert [found.spent for found in scores] == [float(found.steps) for found in scores]


def test_a_corrected_value_counts_from_the_beginning():
    study = tv.Study(
        tv.Domain.grid(x=np.linspace(0, 1, 9)),
        tv.LevelSet(0.3),
        kernel=RBF(0.3),
        mean=0.0,
        noise=1e-4,
    )
    right = tv.Study(
        tv.Domain.grid(x=np.linspace(0, 1, 9)),
        tv.LevelSet(0.3),
        kernel=RBF(0.3),
        mean=0.0,
        noise=1e-4,
    )
    for k, (x, y) in enumerate(((0.0, 1.5), (0.5, 0.2), (1.0, 0.6)), start=1):
        study.tell({"x": x}, y)
        right.tell({"x": x}, 0.5 if k == 1 else y)
    study.correct(1, 0.5)
    assert score_history(study) == score_history(right)
    assert len(score_history(study)) == 3


def test_a_study_without_measurements_has_no_history_and_none_takes_no_moments():
    study = tv.Study(
        tv.Domain.grid(x=np.linspace(0, 1, 9)), tv.Maximize(), kernel=RBF(0.3), mean=0.0, noise=1e-4
    )
    assert score_history(study) == []
    with pytest.raises(InvalidArgumentError, match="moments must be"):
        score_history(study, moments=0)


def test_the_best_value_so_far_leaves_out_other_tasks_and_gross_errors():
    np.testing.assert_array_equal(
        best_values(np.array([np.nan, 2.0, np.nan, 1.0, 3.0]), 1), [np.nan, 2, 2, 2, 3]
    )
    np.testing.assert_array_equal(best_values(np.array([2.0, 1.0, 3.0]), -1), [2, 1, 1])
    assert best_values(np.array([]), 1).tolist() == []
