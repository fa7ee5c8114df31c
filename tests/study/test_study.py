"""A study from its first suggestion to its end: what it asks, what it counts, how it ends, and
what it reports."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import RBF
from tests.helpers.small import LINE, SQUARE, a_study, hill

import truvar as tv
from truvar.exceptions import ConflictingMeasurementError

# -- the end
# --------------------------------------------------------------------------------------------------

BOTH_POLICIES = pytest.mark.parametrize("policy", ["auto", "truvar"])


def assert_finished(study: tv.Study, reason: str) -> None:
    """The study says why it is over, and neither a single ask nor a batch returns anything."""
    for ask in (study.ask, lambda: study.ask(3)):
        with pytest.raises(tv.Finished) as end:
            ask()
        assert reason in end.value.reason
        assert reason in str(end.value)
    assert study.finished == study.result().reason
    assert reason in str(study.finished)
    assert study.pending == []


def test_a_level_set_is_finished_when_every_point_is_classified() -> None:
    study = a_study(policy="auto")
    result = study.run(hill, steps=100)
    assert not result.classify(0.997).undecided.any()
    assert "every point is classified" in str(result.reason)
    assert_finished(study, "every point is classified")


@pytest.mark.parametrize(("goal", "index"), [(tv.Maximize(), 6), (tv.Minimize(), 0)])
def test_a_study_of_an_optimum_is_finished_when_no_other_point_can_be_better(
    goal: Any, index: int
) -> None:
    study = a_study(goal=goal, policy="auto")
    result = study.run(hill, steps=100)
    assert result.best.index == index
    assert_finished(
        study,
        "no point is better than the recommended one with 99.7 % probability, given the model",
    )


def test_a_cautious_model_can_be_finished_with() -> None:
    axis = np.linspace(0, 1, 5)
    domain = tv.Domain.grid(x=axis, y=axis)
    study = a_study(domain, tv.Maximize(), kernel=RBF(0.25), noise=1e-4, policy="auto")
    study.run(
        lambda at: float(np.sin(6 * at["x"]) * np.cos(4 * at["y"])), steps=60
    )  # smoother than expected
    assert study.result().model_check.failure == "cautious"
    assert_finished(study, "no point is better than the recommended one")


def test_the_sets_of_the_theorem_finish_a_study_with_their_own_probability() -> None:
    policy = tv.TruVaR(beta=tv.ConstantBeta(60.0))  # more than the lemma requires
    study = a_study(tv.Domain.grid(x=[0.0, 1.0]), kernel=RBF(0.01), noise=1e-6, policy=policy)
    study.tell({"x": 0.0}, 2.0)
    study.tell({"x": 1.0}, -2.0)
    assert not study.result().potential.any()
    assert_finished(study, "every point is classified, with probability at least 0.9")


@pytest.mark.parametrize("goal", [tv.Maximize(), tv.Minimize(), tv.LevelSet(0.2)])
def test_a_rule_of_thumb_does_not_finish_a_study(goal: Any) -> None:
    study = a_study(goal=goal, policy=tv.TruVaR(beta=tv.ConstantBeta(0.01)), noise=0.1)
    result = study.run(hill)
    assert study.finished is None
    assert "a rule of thumb" in str(study.exhausted)
    assert result.reason == study.exhausted
    assert result.classify(0.997).undecided.sum() > 1
    with pytest.raises(tv.Finished, match="rule of thumb"):
        study.ask()


def test_a_domain_of_one_point_has_its_maximiser_before_the_first_measurement() -> None:
    assert_finished(
        a_study(tv.Domain.grid(x=[0.5]), tv.Maximize()),
        "no point is better than the recommended one",
    )


@BOTH_POLICIES
def test_a_study_is_finished_when_all_that_is_open_is_known_exactly(policy: str) -> None:
    study = a_study(tv.Domain.grid(x=[0.0, 0.5, 1.0]), noise=0.0, kernel=RBF(0.01), policy=policy)
    result = study.run(lambda point: 0.2)  # on the threshold itself: neither above nor below
    assert result.potential.all()
    assert result.sd.max() < 1e-6
    assert_finished(study, "every point is classified with 99.7 % probability")


def test_two_points_known_to_share_the_maximum_both_stay_in_m() -> None:
    policy = tv.TruVaR(beta=tv.ConstantBeta(9.0))
    study = a_study(
        tv.Domain.grid(x=[0.0, 0.5, 1.0]), tv.Maximize(), noise=0.0, kernel=RBF(0.01), policy=policy
    )
    result = study.run(lambda point: 1.0 if point["x"] < 0.8 else 0.0)
    assert result.potential.tolist() == [True, True, False]
    assert result.epsilon == 0.0
    assert_finished(study, "no point is better than the recommended one with 99.7 % probability")


def all_gains_zero() -> tv.Study:
    """M is not empty, but measurements are so noisy and expensive that the gain per cost is zero
    to the arithmetic."""
    policy = tv.TruVaR(beta=tv.ConstantBeta(4.0))
    study = a_study(
        tv.Domain.grid(x=[0.0, 1.0, 2.0]), kernel=RBF(0.01), policy=policy, noise=1e30, cost=1e300
    )
    study.tell({"x": 1.0}, 5.0, noise=1e-4)
    return study


def test_a_study_is_exhausted_when_all_gains_are_zero_although_m_is_not_empty() -> None:
    study = all_gains_zero()
    assert study.exhausted is None  # known only when it is asked
    with pytest.raises(tv.Finished, match="the policy sees nothing more to gain"):
        study.ask()
    assert study.exhausted == "the policy sees nothing more to gain"
    assert study.finished is None
    assert study.result().potential.tolist() == [True, False, True]


def test_a_study_without_gain_goes_on_when_it_is_told_something_new() -> None:
    study = all_gains_zero()
    with pytest.raises(tv.Finished):
        study.ask()
    study.tell({"x": 0.0}, 5.0, noise=1e-4)
    assert study.finished is None  # until it is asked again
    assert study.result().potential.tolist() == [False, False, True]


@BOTH_POLICIES
def test_the_epoch_loop_ends_when_m_is_empty(policy: str) -> None:
    study = a_study(tv.Domain.grid(x=[0.0, 1.0]), kernel=RBF(0.1), noise=1e-6, policy=policy)
    study.tell({"x": 0.0}, 5.0)
    epoch = study.epoch
    study.tell({"x": 1.0}, -5.0)
    assert not study.result().potential.any()
    assert study.epoch.index == epoch.index  # with nothing left to know, no epoch ends


def test_the_epoch_loop_ends_when_sigma_is_zero_on_m() -> None:
    study = a_study(
        tv.Domain.grid(x=[0.0, 1.0]), kernel=RBF(0.1), noise=0.0, policy=tv.TruVaR(eta=10.0, r=0.9)
    )
    for x in (0.0, 1.0):
        study.tell({"x": x}, 0.2)
    assert study.result().potential.all()
    assert study.epoch.index < 1000


def test_eta_has_a_floor() -> None:
    """However small the variances, eta stops before its square drowns in rounding."""
    policy = tv.TruVaR(beta=tv.ConstantBeta(1.0), r=0.5)
    study = a_study(tv.Domain.grid(x=[0.0, 1.0]), kernel=RBF(0.01), noise=0.0, policy=policy)
    for noise in (1e-4, 1e-8, 1.1e-12, 1e-13):
        for x in (0.0, 1.0):
            study.tell({"x": x}, 0.2, noise=noise)
    assert 1e-13 < study.epoch.tau < 1e-11
    assert study.result().sd.max() > 0


def test_with_eta_zero_no_epoch_ever_ends() -> None:
    study = a_study(policy=tv.TruVaR(eta=0.0))
    study.run(hill, steps=5)
    assert (study.epoch.index, study.epoch.eta, study.epoch.start) == (1, 0.0, 1)


# -- limits
# --------------------------------------------------------------------------------------------------


def test_a_run_stops_at_its_number_of_steps_and_goes_on_from_there() -> None:
    study = a_study(SQUARE, tv.Maximize())
    result = study.run(hill, steps=3)
    assert (result.steps, result.reason) == (3, "step limit (3) reached")
    assert study.finished is None  # a limit of the run, not the end of the study
    assert study.run(hill, steps=5).steps == 5
    assert study.run(hill, steps=5).steps == 5  # counted from the beginning


def test_a_run_never_spends_more_than_its_budget() -> None:
    study = a_study(cost=np.linspace(1, 3, 11))
    result = study.run(hill, budget=4.5)
    assert 0 < result.spent <= 4.5
    assert "more than the" in str(result.reason)
    assert study.pending == []  # what was too expensive is withdrawn


def test_a_budget_that_is_spent_to_the_last_is_said_to_be_spent() -> None:
    result = a_study().run(hill, budget=2)
    assert (result.spent, result.reason) == (2.0, "budget (2) spent")


def test_a_run_stops_when_epsilon_is_reached() -> None:
    study = a_study(goal=tv.Maximize())
    wide = study.run(hill, steps=1).epsilon
    result = study.run(hill, epsilon=wide / 2)
    assert result.epsilon <= wide / 2
    assert (study.history["epsilon"][:-1] > wide / 2).all()
    assert result.reason == f"epsilon ({wide / 2:g}) reached"


def test_epsilon_does_not_stop_a_run_before_there_is_a_model() -> None:
    study = tv.Study(
        LINE, tv.Maximize(), noise=0.01
    )  # in thousands, while the prior knows no scale yet
    result = study.run(lambda point: 1000 * hill(point), epsilon=50.0)
    assert result.steps >= 3
    assert study.history["epsilon"][:2].tolist() == [np.inf, np.inf]


def test_the_first_limit_reached_stops_the_run() -> None:
    assert a_study().run(hill, budget=100, steps=2, epsilon=0.0).reason == "step limit (2) reached"
    assert a_study().run(hill, budget=1, steps=20).reason == "budget (1) spent"


def test_a_new_value_takes_the_reason_away() -> None:
    study = a_study()
    assert study.run(hill, steps=1).reason is not None
    study.tell({"x": 0.0}, hill({"x": 0.0}))
    assert study.result().reason is None


# -- the first suggestion
# ----------------------------------------------------------------------------------------------


@BOTH_POLICIES
def test_the_first_choice_on_a_symmetric_grid_is_a_tie_that_goes_to_the_lowest_row(
    policy: str,
) -> None:
    study = a_study(SQUARE, policy=policy)
    gains = study.gains()
    ties = np.flatnonzero(gains >= gains.max() * (1 - 1e-9))
    assert len(ties) == 4
    assert study.ask().index == ties[0]


@pytest.mark.parametrize(
    ("start", "index"), [(7, 7), (np.int64(3), 3), ({"x": 0.5}, 5), ({"x": 0.52}, 5)]
)
def test_a_study_starts_where_it_is_told_to(start: Any, index: int) -> None:
    study = a_study(start=start)
    first = study.ask()
    assert first.index == index
    assert first.gain == pytest.approx(a_study().gains()[index])
    study.tell(first, 0.0)
    assert study.ask().index != index


def test_a_random_start_is_drawn_by_the_seed() -> None:
    starts = [a_study(SQUARE, start="random", seed=seed).ask().index for seed in range(20)]
    assert len(set(starts)) > 5
    assert starts == [a_study(SQUARE, start="random", seed=seed).ask().index for seed in range(20)]


def test_a_batch_begins_at_the_start() -> None:
    batch = a_study(start=2).ask(3)
    assert batch[0].index == 2
    assert len({s.index for s in batch}) == 3


def test_what_is_told_before_the_first_ask_takes_the_place_of_the_start() -> None:
    study = a_study(start=2)
    study.tell({"x": 0.5}, 1.0)
    assert study.ask() == _after(a_study(), {"x": 0.5}).ask()


def _after(study: tv.Study, point: dict[str, float]) -> tv.Study:
    study.tell(point, 1.0)
    return study


def test_the_same_seed_gives_the_same_suggestions() -> None:
    def path(seed: int) -> list[int | None]:
        study = a_study(SQUARE, tv.Maximize(), start="random", seed=seed)
        study.run(hill, steps=6)
        return study.measurements["index"].tolist()

    assert path(4) == path(4)
    assert path(4) != path(5)


# -- telling
# --------------------------------------------------------------------------------------------------


def test_a_value_between_the_points_of_a_grid_is_taken_where_it_was_measured() -> None:
    study = a_study(kernel=RBF(0.05))
    study.tell({"x": 0.53}, 3.0)
    row = study.measurements.iloc[0]
    assert row["x"] == 0.53
    assert pd.isna(row["index"])
    mean = study.result().mean
    assert int(np.argmax(mean)) == 5  # 0.5 is nearer than 0.6
    assert mean[5] == pytest.approx(3.0 * np.exp(-0.5 * (0.03 / 0.05) ** 2) / (1 + 1e-4))


def test_a_value_told_at_a_point_of_the_grid_is_that_points_value_despite_rounding() -> None:
    study = a_study(tv.Domain.grid(x=np.arange(0, 1, 0.1)))
    study.tell({"x": 0.1 + 0.2}, 1.0)
    assert study.measurements["index"].tolist() == [3]


def test_the_noise_of_a_value_can_be_told() -> None:
    study = a_study()
    study.tell({"x": 0.5}, 1.0, noise=1.0)
    assert study.result().mean[5] == pytest.approx(0.5)  # k / (k + noise)
    assert study.measurements["noise"].tolist() == [1.0]


def test_values_not_asked_for_leave_the_pending_suggestions_pending() -> None:
    study = a_study()
    first = study.ask()
    study.tell({"x": 0.0}, 0.3)
    assert study.pending == [first]
    study.tell(first, 0.1)
    assert study.pending == []
    assert study.steps == 2


def test_a_pending_suggestion_can_be_told_by_its_id() -> None:
    by_id = a_study()
    by_itself = a_study()
    by_id.tell(by_id.ask().id, 0.4)
    by_itself.tell(by_itself.ask(), 0.4)
    np.testing.assert_array_equal(by_id.result().mean, by_itself.result().mean)


def test_telling_the_point_of_a_suggestion_is_another_measurement() -> None:
    study = a_study()
    first = study.ask()
    study.tell(first.point, 0.4)
    assert study.pending == [first]


# -- batches and pending measurements
# ----------------------------------------------------------------------------------


def test_a_batch_spreads_over_different_points() -> None:
    batch = a_study(SQUARE).ask(5)
    assert len({s.index for s in batch}) == 5
    assert [s.id for s in batch] == [1, 2, 3, 4, 5]


def test_asking_again_before_telling_takes_what_is_pending_into_account() -> None:
    study = a_study(SQUARE)
    batch = a_study(SQUARE).ask(3)
    assert [study.ask() for _ in range(3)] == batch
    assert study.pending == batch


def test_pending_suggestions_may_be_told_in_any_order() -> None:
    forth = a_study(SQUARE)
    back = a_study(SQUARE)
    batch = forth.ask(3)
    assert back.ask(3) == batch
    for suggestion in batch:
        forth.tell(suggestion, hill(suggestion.point))
    for suggestion in reversed(batch):
        back.tell(suggestion, hill(suggestion.point))
    np.testing.assert_allclose(forth.result().mean, back.result().mean, atol=1e-10)
    np.testing.assert_allclose(forth.result().sd, back.result().sd, atol=1e-7)
    assert back.measurements["id"].tolist() == [3, 2, 1]


@BOTH_POLICIES
def test_a_batch_ends_early_when_nothing_is_left_to_gain(policy: str) -> None:
    study = a_study(tv.Domain.grid(x=[0.0, 1.0]), kernel=RBF(0.1), noise=0.0, policy=policy)
    batch = study.ask(5)
    assert sorted(s.index for s in batch) == [0, 1]
    with pytest.raises(tv.Finished, match="before the pending measurements are told"):
        study.ask()
    assert study.finished is None  # they may still bring something
    assert study.pending == batch


def test_a_withdrawn_suggestion_is_not_made_again_until_its_place_is_allowed() -> None:
    study = a_study()
    first = study.ask()
    study.withdraw(first)
    assert study.pending == []
    second = study.ask()
    assert second.index != first.index
    study.withdraw(second)
    study.allow(first)
    assert study.ask().index == first.index


def test_a_suggestion_that_is_withdrawn_for_now_is_made_again() -> None:
    study = a_study()
    first = study.ask()
    study.withdraw(first, again=True)
    assert study.pending == []
    assert study.ask().index == first.index


# -- running
# --------------------------------------------------------------------------------------------------


def test_a_run_on_an_executor_keeps_its_workers_busy_with_different_points() -> None:
    together = threading.Barrier(3, timeout=20)

    def measure(point: dict[str, float]) -> float:
        together.wait()  # passes only if three are measured at once
        return hill(point)

    study = a_study(SQUARE)
    with ThreadPoolExecutor(3) as pool:
        result = study.run(measure, steps=3, executor=pool)
    assert result.steps == 3
    assert study.measurements["index"].nunique() == 3
    assert study.pending == []


def test_a_run_on_an_executor_keeps_to_steps_and_budget() -> None:
    with ThreadPoolExecutor(4) as pool:
        assert a_study(SQUARE).run(hill, steps=6, executor=pool).steps == 6
        spent = a_study(SQUARE, cost=2.0).run(hill, budget=9, executor=pool).spent
    assert spent == 8.0


def test_a_run_on_one_worker_is_a_run_without_an_executor() -> None:
    alone = a_study()
    pooled = a_study()
    alone.run(hill, steps=6)
    with ThreadPoolExecutor(1) as pool:
        pooled.run(hill, steps=6, executor=pool)
    pd.testing.assert_frame_equal(alone.measurements, pooled.measurements)


@pytest.mark.parametrize("workers", [None, 2])
@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt])
def test_a_function_that_goes_on_raising_ends_the_run_and_leaves_the_study_usable(
    workers: int | None, error: Any
) -> None:
    calls: list[dict[str, float]] = []

    def measure(point: dict[str, float]) -> float:
        calls.append(point)
        if len(calls) >= 3:
            raise error
        return hill(point)

    study = a_study(SQUARE)
    pool = None if workers is None else ThreadPoolExecutor(workers)
    if error is KeyboardInterrupt:
        with pytest.raises(error):
            study.run(measure, steps=9, executor=pool)
        assert study.failures == []
    else:
        gives_up = pytest.raises(
            tv.TruvarError, match=r"10 measurements in a row failed.*ZeroDivisionError"
        )
        with pytest.warns(RuntimeWarning, match="continues"), gives_up:
            study.run(measure, steps=9, executor=pool)
        assert len(study.failures) == 10
    if pool is not None:
        pool.shutdown()
    assert study.pending == []
    assert study.steps <= 2
    assert study.run(hill, steps=6).steps == 6


def test_a_value_that_is_no_number_is_recorded_as_failed_and_leaves_the_study_usable() -> None:
    study = a_study()
    with (
        pytest.warns(RuntimeWarning, match="nan"),
        pytest.raises(tv.TruvarError, match=r"5 measurements in a row.*nan"),
    ):
        study.run(lambda point: float("nan"), steps=3)
    assert (study.steps, study.pending) == (0, [])
    assert study.run(hill, steps=2).steps == 2


def test_progress_is_called_after_every_value_told() -> None:
    seen: list[int] = []
    a_study().run(hill, steps=4, progress=lambda study: seen.append(study.steps))
    assert seen == [1, 2, 3, 4]


# -- corrections that come late or twice
# -------------------------------------------------------------------------------


def test_a_correction_that_names_the_old_value_is_made_once_and_overwrites_no_other() -> None:
    study = a_study()
    suggestion = study.ask()
    study.tell(suggestion, 0.5)
    study.correct(suggestion.id, 0.75, was=0.5)
    version = study.version
    study.correct(suggestion.id, 0.75, was=0.5)  # the answer to the first was lost
    assert study.version == version
    study.correct(suggestion.id, 0.9)  # by somebody else
    with pytest.raises(
        ConflictingMeasurementError, match=r"from 0.5 to 0.75, but is 0.9 by now; look at it"
    ):
        study.correct(suggestion.id, 0.75, was=0.5)
    study.correct(suggestion.id, 0.9, cost=7.0, was=0.9)
    assert (study.measurements["value"].item(), study.measurements["cost"].item()) == (0.9, 7.0)
