"""Costs and noise of measurements: numbers, columns, functions, travel, noise levels and tasks."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import RBF
from tests.helpers.small import LEVELS, LINE, SQUARE, a_study, hill

import truvar as tv

# -- cost
# --------------------------------------------------------------------------------------------------

BOAT = tv.Cost(base=4, travel={"x": 0.25}, magnitude={"y": 4})


def test_the_cost_of_the_paper_is_travel_plus_depth() -> None:
    domain = tv.Domain.grid(x=[0.0, 100.0, 300.0], y=[-2.0, 0.0])
    study = a_study(domain, kernel=RBF([100, 1]), cost=BOAT)
    x, y = domain.points.T
    np.testing.assert_allclose(
        study.candidates().cost[:, 0], 4 * (np.abs(y) + 1)
    )  # the first measurement pays no travel
    study.tell({"x": 100.0, "y": 0.0}, 0.0)
    np.testing.assert_allclose(
        study.candidates().cost[:, 0], 0.25 * np.abs(x - 100) + 4 * (np.abs(y) + 1)
    )


def test_the_first_measurement_pays_no_travel_and_the_others_do() -> None:
    study = a_study(cost=tv.Cost(1, travel={"x": 10}))
    study.run(hill, steps=4)
    measurements = study.measurements
    distance = np.r_[0, np.abs(np.diff(measurements["x"].to_numpy(dtype=float)))]
    np.testing.assert_allclose(measurements["cost"], 1 + 10 * distance)
    np.testing.assert_allclose(measurements["spent"], np.cumsum(measurements["cost"]))
    assert study.spent == pytest.approx(measurements["cost"].sum())
    assert study.result().spent == study.spent


def test_travel_is_counted_from_the_last_suggestion() -> None:
    study = a_study(cost=tv.Cost(1, travel={"x": 10}))
    for before, after in pairwise(study.ask(4)):
        assert after.cost == pytest.approx(1 + 10 * abs(after.point["x"] - before.point["x"]))


def test_travel_is_counted_from_a_measurement_after_the_last_suggestion() -> None:
    study = a_study(cost=tv.Cost(1, travel={"x": 10}))
    study.ask()
    study.tell({"x": 1.0}, 0.0)
    np.testing.assert_allclose(study.candidates().cost[:, 0], 1 + 10 * (1 - LINE.column("x")))


def test_telling_an_earlier_suggestion_does_not_change_the_position() -> None:
    study = a_study(cost=tv.Cost(1, travel={"x": 10}))
    first, second = study.ask(2)
    study.tell(first, 0.1)
    np.testing.assert_allclose(
        study.candidates().cost[:, 0], 1 + 10 * np.abs(LINE.column("x") - second.point["x"])
    )


def test_withdrawing_restores_the_position() -> None:
    study = a_study(cost=tv.Cost(1, travel={"x": 10}))
    study.tell({"x": 0.2}, 0.0)
    before = study.candidates().cost
    suggestion = study.ask()
    assert not np.array_equal(study.candidates().cost, before)
    study.withdraw(suggestion)
    np.testing.assert_array_equal(study.candidates().cost, before)


def test_withdrawing_an_earlier_suggestion_does_not_change_the_position() -> None:
    study = a_study(cost=tv.Cost(1, travel={"x": 10}))
    first, _ = study.ask(2)
    before = study.candidates().cost
    study.withdraw(first)
    np.testing.assert_array_equal(study.candidates().cost, before)


def test_after_the_only_suggestion_is_withdrawn_the_next_pays_no_travel() -> None:
    study = a_study(cost=tv.Cost(1, travel={"x": 10}))
    study.withdraw(study.ask())
    assert study.ask().cost == 1.0


def test_the_cost_of_a_measurement_can_be_given_with_its_value() -> None:
    study = a_study()
    study.tell({"x": 0.5}, 0.0, cost=12.5)
    study.tell(study.ask(), 0.0, cost=0.0)
    assert study.spent == 12.5
    assert study.history["spent"].tolist() == [12.5, 12.5]


def test_only_measured_suggestions_count_as_spent() -> None:
    study = a_study(cost=3.0)
    first, _ = study.ask(2)
    assert study.spent == 0.0
    study.tell(first, 0.0)
    assert study.spent == 3.0


def test_an_expensive_point_is_not_suggested_first() -> None:
    plain = a_study().ask().index
    cost = np.ones(11)
    cost[plain] = 100.0
    assert a_study(cost=cost).ask().index != plain


@pytest.mark.parametrize("how", ["column", "array", "function", "Cost"])
def test_cost_may_be_a_column_an_array_a_function_or_a_cost(how: str) -> None:
    frame = pd.DataFrame({"x": [0.0, 1.0, 2.0], "price": [1.0, 5.0, 2.0]})
    cost = {
        "column": "price",
        "array": [1.0, 5.0, 2.0],
        "function": lambda points, last: 1 + 4 * (points[:, 0] == 1) + (points[:, 0] == 2),
        "Cost": tv.Cost("price"),
    }[how]
    study = a_study(tv.Domain.table(frame, ["x"]), cost=cost)
    assert study.candidates().cost[:, 0].tolist() == [1.0, 5.0, 2.0]


def test_a_cost_column_is_taken_from_the_nearest_point_between_the_points() -> None:
    study = a_study(
        cost=tv.Cost("x", magnitude={"x": 0.0}), domain=tv.Domain.grid(x=[1.0, 2.0, 3.0])
    )
    study.tell({"x": 2.2}, 0.0)
    assert study.spent == 2.0


# -- noise levels and tasks
# --------------------------------------------------------------------------------------------


def test_the_cost_of_a_noise_level_is_added_to_that_of_the_point() -> None:
    study = a_study(noise=LEVELS)
    assert study.candidates().cost[0].tolist() == [
        15,
        10,
        2,
    ]  # with noise levels the default cost of a point is 0
    with_travel = a_study(noise=LEVELS, cost=tv.Cost(1, travel={"x": 10}))
    with_travel.tell({"x": 0.5}, 0.0, level=2)
    assert with_travel.spent == 3.0
    assert with_travel.candidates().cost[0].tolist() == [21.0, 16.0, 8.0]


def test_a_suggestion_has_the_noise_and_cost_of_its_level() -> None:
    study = a_study(noise=LEVELS)
    for suggestion in study.ask(4):
        assert suggestion.noise == LEVELS.variance[suggestion.level]
        assert suggestion.cost == LEVELS.cost[suggestion.level]


def test_run_passes_the_level_to_the_measuring_function() -> None:
    levels: list[int] = []

    def measure(point: dict[str, float], level: int) -> float:
        levels.append(level)
        return hill(point)

    study = a_study(noise=LEVELS)
    study.run(measure, steps=12)
    assert study.measurements["level"].tolist() == levels
    assert levels[0] == 2  # the cheap level comes first
    assert set(levels) <= {0, 1, 2}


def test_more_precise_levels_are_used_later() -> None:
    study = a_study(SQUARE, tv.LevelSet(0.5), noise=LEVELS, kernel=RBF(0.4))
    study.run(lambda point, level: hill(point), budget=400)
    noise = study.measurements["noise"].to_numpy()
    assert noise[0] == 0.05
    assert noise[-len(noise) // 3 :].min() < 0.05


def test_a_cheap_correlated_task_is_measured_and_the_result_is_about_the_target() -> None:
    tasks = tv.Tasks([[1.0, 0.95], [0.95, 1.0]], ["truth", "proxy"], cost=[20.0, 1.0])
    study = a_study(tasks=tasks)
    study.run(lambda point, task: hill(point), steps=8)
    used = study.measurements["task"]
    assert (used == "proxy").sum() > (used == "truth").sum()
    result = study.result()
    assert len(result.potential) == len(result.mean) == len(LINE)
    assert study.spent == (used == "truth").sum() * 20.0 + (used == "proxy").sum() * 1.0


def test_measuring_a_proxy_reduces_the_variance_by_its_correlation() -> None:
    tasks = tv.Tasks([[1.0, 0.8], [0.8, 1.0]], ["truth", "proxy"])
    study = a_study(tv.Domain.grid(x=[0.0, 1.0]), kernel=RBF(0.1), noise=0.0, tasks=tasks)
    study.tell({"x": 0.0}, 1.0, task="proxy")
    result = study.result()
    assert result.mean[0] == pytest.approx(0.8)
    assert result.sd[0] == pytest.approx(0.6)


def test_a_task_may_have_its_own_mean_and_noise() -> None:
    tasks = tv.Tasks([[1, 0.5], [0.5, 1]], ["truth", "proxy"], noise=[0.0, 1.0], mean=[0.0, 10.0])
    study = a_study(tv.Domain.grid(x=[0.0, 1.0]), kernel=RBF(0.1), noise=0.1, tasks=tasks)
    study.tell({"x": 0.0}, 12.0, task="proxy")
    assert study.result().mean[0] == pytest.approx(0.5 * 2.0 / (1 + 1))
    study.tell({"x": 1.0}, 0.7)  # without a task it is a value of the target
    assert study.result().mean[1] == pytest.approx(0.7)
    assert study.measurements["task"].tolist() == ["proxy", "truth"]
