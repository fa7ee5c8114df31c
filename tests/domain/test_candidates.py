"""What a measurement costs and how noisy it is: numbers, columns, functions, travel, noise levels and tasks."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import RBF
from tests.helpers.small import LEVELS, LINE, SQUARE, a_study, hill

import truvar as tv

# -- cost --------------------------------------------------------------------------------------------------------------

BOAT = tv.Cost(base=4, travel={"x": 0.25}, magnitude={"y": 4})


def test_the_papers_cost_is_travel_and_depth() -> None:
    domain = tv.Domain.grid(x=[0.0, 100.0, 300.0], y=[-2.0, 0.0])
    study = a_study(domain, kernel=RBF([100, 1]), cost=BOAT)
    x, y = domain.points.T
    np.testing.assert_allclose(study.candidates().cost[:, 0], 4 * (np.abs(y) + 1))  # the first pays no travel
    study.tell({"x": 100.0, "y": 0.0}, 0.0)
    np.testing.assert_allclose(study.candidates().cost[:, 0], 0.25 * np.abs(x - 100) + 4 * (np.abs(y) + 1))


def test_the_first_measurement_pays_no_travel_and_the_others_do() -> None:
    study = a_study(cost=tv.Cost(1, travel={"x": 10}))
    study.run(hill, steps=4)
    told = study.measurements
    travelled = np.r_[0, np.abs(np.diff(told["x"].to_numpy(dtype=float)))]
    np.testing.assert_allclose(told["cost"], 1 + 10 * travelled)
    np.testing.assert_allclose(told["spent"], np.cumsum(told["cost"]))
    assert study.spent == pytest.approx(told["cost"].sum())
    assert study.result().spent == study.spent


def test_travel_is_counted_from_the_last_place_asked_for() -> None:
    study = a_study(cost=tv.Cost(1, travel={"x": 10}))
    for before, after in pairwise(study.ask(4)):
        assert after.cost == pytest.approx(1 + 10 * abs(after.point["x"] - before.point["x"]))


def test_travel_is_counted_from_a_place_told_later_than_the_last_ask() -> None:
    study = a_study(cost=tv.Cost(1, travel={"x": 10}))
    study.ask()
    study.tell({"x": 1.0}, 0.0)
    np.testing.assert_allclose(study.candidates().cost[:, 0], 1 + 10 * (1 - LINE.column("x")))


def test_telling_a_pending_suggestion_does_not_move_the_position_back_to_it() -> None:
    study = a_study(cost=tv.Cost(1, travel={"x": 10}))
    first, second = study.ask(2)
    study.tell(first, 0.1)
    np.testing.assert_allclose(study.candidates().cost[:, 0], 1 + 10 * np.abs(LINE.column("x") - second.point["x"]))


def test_withdrawing_restores_the_position() -> None:
    study = a_study(cost=tv.Cost(1, travel={"x": 10}))
    study.tell({"x": 0.2}, 0.0)
    before = study.candidates().cost
    suggestion = study.ask()
    assert not np.array_equal(study.candidates().cost, before)
    study.withdraw(suggestion)
    np.testing.assert_array_equal(study.candidates().cost, before)


def test_withdrawing_an_earlier_suggestion_leaves_the_position_where_it_is() -> None:
    study = a_study(cost=tv.Cost(1, travel={"x": 10}))
    first, _ = study.ask(2)
    before = study.candidates().cost
    study.withdraw(first)
    np.testing.assert_array_equal(study.candidates().cost, before)


def test_withdrawing_the_only_suggestion_makes_the_next_one_the_first_again() -> None:
    study = a_study(cost=tv.Cost(1, travel={"x": 10}))
    study.withdraw(study.ask())
    assert study.ask().cost == 1.0


def test_the_cost_of_a_measurement_can_be_told() -> None:
    study = a_study()
    study.tell({"x": 0.5}, 0.0, cost=12.5)
    study.tell(study.ask(), 0.0, cost=0.0)
    assert study.spent == 12.5
    assert study.history["spent"].tolist() == [12.5, 12.5]


def test_only_what_is_told_is_spent() -> None:
    study = a_study(cost=3.0)
    first, _ = study.ask(2)
    assert study.spent == 0.0
    study.tell(first, 0.0)
    assert study.spent == 3.0


def test_a_dear_point_is_measured_less_readily() -> None:
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
    study = a_study(cost=tv.Cost("x", magnitude={"x": 0.0}), domain=tv.Domain.grid(x=[1.0, 2.0, 3.0]))
    study.tell({"x": 2.2}, 0.0)
    assert study.spent == 2.0


# -- noise levels and tasks --------------------------------------------------------------------------------------------


def test_the_cost_of_a_level_is_added_to_that_of_the_place() -> None:
    study = a_study(noise=LEVELS)
    assert study.candidates().cost[0].tolist() == [15, 10, 2]  # the place costs nothing then unless it is said
    dear = a_study(noise=LEVELS, cost=tv.Cost(1, travel={"x": 10}))
    dear.tell({"x": 0.5}, 0.0, level=2)
    assert dear.spent == 3.0
    assert dear.candidates().cost[0].tolist() == [21.0, 16.0, 8.0]


def test_a_suggestion_names_its_level_with_its_noise_and_cost() -> None:
    study = a_study(noise=LEVELS)
    for suggestion in study.ask(4):
        assert suggestion.noise == LEVELS.variance[suggestion.level]
        assert suggestion.cost == LEVELS.cost[suggestion.level]


def test_a_run_measures_with_the_level_that_was_chosen() -> None:
    asked: list[int] = []

    def measure(point: dict[str, float], level: int) -> float:
        asked.append(level)
        return hill(point)

    study = a_study(noise=LEVELS)
    study.run(measure, steps=12)
    assert study.measurements["level"].tolist() == asked
    assert asked[0] == 2  # the coarse picture is had cheaply
    assert set(asked) <= {0, 1, 2}


def test_more_precise_levels_are_used_later() -> None:
    study = a_study(SQUARE, tv.LevelSet(0.5), noise=LEVELS, kernel=RBF(0.4))
    study.run(lambda point, level: hill(point), budget=400)
    noise = study.measurements["noise"].to_numpy()
    assert noise[0] == 0.05
    assert noise[-len(noise) // 3 :].min() < 0.05


def test_a_cheap_correlated_task_is_used_and_m_stays_on_the_target() -> None:
    tasks = tv.Tasks([[1.0, 0.95], [0.95, 1.0]], ["truth", "proxy"], cost=[20.0, 1.0])
    study = a_study(tasks=tasks)
    study.run(lambda point, task: hill(point), steps=8)
    used = study.measurements["task"]
    assert (used == "proxy").sum() > (used == "truth").sum()
    result = study.result()
    assert len(result.potential) == len(result.mean) == len(LINE)
    assert study.spent == (used == "truth").sum() * 20.0 + (used == "proxy").sum() * 1.0


def test_a_proxy_alone_cannot_tell_more_than_its_correlation() -> None:
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
    study.tell({"x": 1.0}, 0.7)  # without a name it is the target's
    assert study.result().mean[1] == pytest.approx(0.7)
    assert study.measurements["task"].tolist() == ["proxy", "truth"]
