"""Several vehicles on one study: positions, speeds, budgets and events of each, and runs of all
of them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF
from tests.helpers.problems import assert_same

import truvar as tv
from truvar.study.measurements_io import parse_csv, tell_all
from truvar.study.vehicles import VehicleStatus

LAKE = tv.Domain.grid(x=np.linspace(0, 10, 11), y=np.linspace(0, 4, 5))
TRAVEL = tv.Cost(base=1.0, travel={"x": 1.0, "y": 1.0}, start={"x": 0.0, "y": 0.0})
BOATS = {"fast": tv.Vehicle(speed=4.0), "slow": tv.Vehicle(start={"x": 10.0, "y": 4.0})}


def a_study(**options: Any) -> tv.Study:
    given_options = {
        "kernel": RBF([2.0, 2.0]),
        "mean": 0.0,
        "noise": 0.01,
        "cost": TRAVEL,
        "vehicles": BOATS,
    }
    return tv.Study(LAKE, tv.LevelSet(0.5), **{**given_options, **options})


def field(point: dict[str, float]) -> float:
    return float(np.sin(point["x"]) + point["y"] / 4)


def status(study: tv.Study, name: str) -> VehicleStatus:
    return next(each for each in study.vehicle_statuses if each.name == name)


def distance(a: dict[str, float], b: dict[str, float]) -> float:
    return sum(abs(a[name] - b[name]) for name in a)


# -- asking
# --------------------------------------------------------------------------------------------------


def test_every_vehicle_travels_from_its_own_position_at_its_own_speed() -> None:
    study = a_study()
    before = {"fast": {"x": 0.0, "y": 0.0}, "slow": {"x": 10.0, "y": 4.0}}
    for who in ("fast", "slow", "slow", "fast", "slow"):
        suggestion = study.ask(vehicle=who)
        assert suggestion.vehicle == who
        assert suggestion.cost == pytest.approx(
            1 + distance(suggestion.point, before[who]) / BOATS[who].speed
        )
        before[who] = suggestion.point
    assert [status(study, name).position for name in BOATS] == [before["fast"], before["slow"]]


def test_what_is_pending_for_one_is_taken_into_account_for_the_other() -> None:
    study = a_study(cost=1.0, vehicles=["a", "b"])
    alone = a_study(cost=1.0, vehicles=None)
    pair = [study.ask(vehicle="a").point, study.ask(vehicle="b").point]
    assert pair == [suggestion.point for suggestion in alone.ask(2)]
    assert pair[0] != pair[1]


def test_a_batch_is_for_one_vehicle() -> None:
    study = a_study()
    batch = study.ask(3, vehicle="slow")
    assert [suggestion.vehicle for suggestion in batch] == ["slow"] * 3
    assert batch[2].cost == pytest.approx(1 + distance(batch[2].point, batch[1].point))


def test_the_author_of_a_study_object_is_its_vehicle(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/lake.db"
    a_study(store=url, name="lake")
    boat = tv.load(url, author="slow")
    assert boat.ask().vehicle == "slow"
    with pytest.raises(tv.TruvarError, match="has the vehicles fast, slow"):
        tv.load(url, author="anna").ask()
    assert a_study(vehicles=["one"]).ask().vehicle == "one"


def test_events_and_measurements_record_who(tmp_path: Path) -> None:
    study = a_study(store=f"sqlite:///{tmp_path}/lake.db", name="lake")
    study.tell(study.ask(vehicle="slow"), 0.3)
    study.tell({"x": 3.0, "y": 1.0}, 0.4, vehicle="fast")
    study.tell({"x": 4.0, "y": 1.0}, 0.4)
    details = study.events["details"]
    assert [each.get("who") for each in details[1:]] == ["slow", "slow", "fast", None]
    assert study.measurements["who"].tolist() == ["slow", "fast", None]
    assert [record.vehicle for record in study.measurement_records()] == ["slow", "fast", None]
    assert status(study, "fast").position == {"x": 3.0, "y": 1.0}
    assert study.measurements["cost"].iloc[2] == 1.0  # none of them: no way is paid
    assert [status(study, name).steps for name in BOATS] == [1, 1]


def test_studies_without_vehicles_are_stored_as_before() -> None:
    study = a_study(vehicles=None)
    study.tell(study.ask(), 0.3)
    assert not any(
        {"who", "repeats", "vehicles"} & set(details) for details in study.events["details"]
    )
    assert "who" not in study.measurements
    assert study.ask().vehicle is None


def test_withdrawing_returns_a_vehicle_to_where_it_was() -> None:
    study = a_study()
    first = study.ask(vehicle="slow")
    study.ask(vehicle="fast")
    second = study.ask(vehicle="slow")
    study.withdraw(second)
    assert status(study, "slow").position == first.point
    study.withdraw(first)
    assert status(study, "slow").position == {"x": 10.0, "y": 4.0}


# -- budgets
# --------------------------------------------------------------------------------------------------


def test_a_vehicle_is_suggested_only_what_its_budget_pays() -> None:
    study = a_study(vehicles={"a": tv.Vehicle(budget=8.0), "b": tv.Vehicle()})
    while status(study, "a").spent <= 7.0:
        suggestion = study.ask(vehicle="a")
        study.tell(suggestion, field(suggestion.point))
    with pytest.raises(tv.Finished, match="left of the budget of a do not pay"):
        study.ask(3, vehicle="a")
    assert status(study, "a").spent <= 8.0
    assert study.exhausted is None
    assert study.ask(vehicle="b").vehicle == "b"  # the study goes on


def test_actual_costs_count() -> None:
    study = a_study(vehicles={"a": tv.Vehicle(budget=20.0), "b": tv.Vehicle()})
    suggestion = study.ask(vehicle="a")
    study.tell(suggestion, 0.3, cost=18.5)
    (own, _) = study.vehicle_statuses
    assert (own.spent, own.left) == (18.5, 1.5)
    assert study.spent == 18.5
    assert study.ask(vehicle="a").cost <= 1.5
    study.correct(suggestion, 0.3, cost=19.5)
    assert status(study, "a").spent == 19.5


def test_the_ways_back_of_all_vehicles_are_kept_within_the_budget() -> None:
    cost = tv.Cost(
        base=1.0, travel={"x": 1.0, "y": 1.0}, start={"x": 0.0, "y": 0.0}, must_return=True
    )
    study = a_study(cost=cost)
    study.run(field, budget=60.0)
    assert study.steps > 5
    assert study.spent + sum(each.return_cost for each in study.vehicle_statuses) <= 60.0 + 1e-9


# -- running
# --------------------------------------------------------------------------------------------------


def test_a_run_simulates_vehicles_side_by_side() -> None:
    study = a_study()
    study.run(field, steps=24)
    records = study.measurement_records()
    spent = {"fast": 0.0, "slow": 0.0}
    finished = []
    for record in records:
        spent[str(record.vehicle)] += record.cost
        finished.append(spent[str(record.vehicle)])
    assert finished == sorted(finished)  # told in the order in which they are finished
    assert min(status(study, name).steps for name in BOATS) > 3
    assert not study.pending


def test_a_run_ends_when_no_vehicle_can_go_on() -> None:
    study = a_study(vehicles={"a": tv.Vehicle(budget=12.0), "b": tv.Vehicle(budget=7.0)})
    result = study.run(field, steps=500)
    assert "left of the budget of" in str(result.reason)
    assert all(each.spent <= (each.budget or 0) for each in study.vehicle_statuses)


def test_a_run_on_an_executor_keeps_every_vehicle_busy() -> None:
    study = a_study()
    with ThreadPoolExecutor(2) as pool:
        study.run(field, steps=12, executor=pool)
    assert study.steps == 12
    assert {record.vehicle for record in study.measurement_records()} == set(BOATS)


def test_with_fewer_workers_than_vehicles_none_of_them_is_forgotten() -> None:
    study = a_study(vehicles=["a", "b", "c"])
    with ThreadPoolExecutor(1) as pool:
        study.run(field, steps=12, executor=pool)
    spent = [each.spent for each in study.vehicle_statuses]
    longest = max(record.cost for record in study.measurement_records())
    assert max(spent) - min(spent) <= longest


def test_a_failed_measurement_of_a_vehicle_is_repeated_or_ends_the_run() -> None:
    calls: list[dict[str, float]] = []

    def sometimes(point: dict[str, float]) -> float:
        calls.append(point)
        if len(calls) == 3:
            raise OSError("wave")
        return field(point)

    study = a_study()
    study.run(sometimes, steps=6, retries=1)
    assert study.steps == 6
    assert len(calls) == 7
    assert not study.pending


def test_a_simulated_run_goes_on_as_if_it_had_not_stopped() -> None:
    whole = a_study()
    whole.run(field, steps=10)
    assert [record.vehicle for record in whole.measurement_records()].count("fast") > 0
    again = tv.Study.from_json(whole.to_json())
    assert_same(whole, again)
    assert again.vehicle_statuses == whole.vehicle_statuses
    for who in BOATS:
        assert whole.ask(vehicle=who) == again.ask(vehicle=who)


OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(
            ["ask", "ask", "tell", "tell", "point", "repeats", "withdraw", "remove", "correct"]
        ),
        st.integers(0, 50),
        st.floats(-2, 2),
        st.sampled_from(["fast", "slow"]),
        st.booleans(),
    ),
    max_size=12,
)


@given(OPERATIONS)
@settings(max_examples=25, deadline=None)
def test_whatever_the_vehicles_do_the_events_lead_to_where_the_study_stands(
    operations: Any,
) -> None:
    live = a_study()
    other = a_study()
    for what, choice, y, who, read_again in operations:
        if read_again:
            other = tv.Study.from_json(other.to_json())
        pending = [suggestion.id for suggestion in live.pending]
        measured = [record.id for record in live.measurement_records()]
        for study in (live, other):
            if what == "ask":
                study.ask(choice % 2 + 1, vehicle=who)
            elif what == "point":
                study.tell(LAKE.point(choice), y, vehicle=who)
            elif what == "repeats":
                study.tell_repeats(LAKE.point(choice), [y, y + 0.1], vehicle=who)
            elif what in ("tell", "withdraw") and pending:
                id_ = pending[choice % len(pending)]
                study.tell(id_, y) if what == "tell" else study.withdraw(id_)
            elif what in ("remove", "correct") and measured:
                id_ = measured[choice % len(measured)]
                study.correct(id_, y, cost=1.5) if what == "correct" else study.withdraw(id_)
    again = tv.Study.from_json(other.to_json())
    assert_same(live, again)
    assert live.vehicle_statuses == again.vehicle_statuses
    assert live.ask(vehicle="slow") == again.ask(vehicle="slow")


def test_two_boats_map_a_lake_in_less_time_than_one() -> None:
    def hours(vehicles: list[str]) -> float:
        study = a_study(vehicles=vehicles, seed=1)
        study.run(field, steps=30)
        return max(each.spent for each in study.vehicle_statuses)

    assert hours(["a", "b"]) < 0.7 * hours(["a"])


# -- repeats
# --------------------------------------------------------------------------------------------------


def test_repeats_pay_the_way_once_and_do_not_move_anybody() -> None:
    study = a_study(vehicles=None)
    first, second = study.ask(2)
    ids = study.tell_repeats(first, [0.1, 0.3, 0.2])
    assert ids == [first.id, 3, 4]
    assert study.measurements["cost"].tolist() == [first.cost, 1.0, 1.0]
    assert study.measurements["repeats"].fillna(0).tolist() == [0, first.id, first.id]
    assert study.vehicle_statuses[0].position == second.point
    assert study.steps == 3
    assert study.tell_repeats(first.id, [0.15]) == [5]
    one_by_one = a_study(vehicles=None)
    for y in (0.1, 0.3, 0.2, 0.15):
        one_by_one.tell(first.point, y)
    study.withdraw(second)
    np.testing.assert_allclose(study.result().mean, one_by_one.result().mean, atol=1e-9)


def test_repeats_have_the_level_and_task_of_the_first() -> None:
    levels = tv.NoiseLevels([1e-3, 0.1], [5.0, 1.0])
    tasks = tv.Tasks([[1.0, 0.5], [0.5, 1.0]], ["algae", "light"])
    study = a_study(vehicles=None, noise=levels, tasks=tasks, cost=None)
    study.tell_repeats({"x": 2.0, "y": 1.0}, [0.1, 0.2], level=1, task="light")
    study.tell_repeats(
        {"x": 2.25, "y": 1.0}, [0.1, 0.2], level=0, task="light"
    )  # between the points of the grid
    rows = study.measurements[["level", "task", "noise", "cost", "x"]].to_numpy().tolist()
    assert rows == [[1, "light", 0.1, 1.0, 2.0]] * 2 + [[0, "light", 1e-3, 5.0, 2.25]] * 2


def test_refused_repeats_record_nothing() -> None:
    study = a_study(vehicles=None)
    for values, message in (
        ([], "at least one value"),
        ([0.1, float("nan")], "must be a finite number"),
    ):
        with pytest.raises(tv.TruvarError, match=message):
            study.tell_repeats({"x": 2.0, "y": 1.0}, values)
    with pytest.raises(tv.TruvarError, match="99"):
        study.tell_repeats(99, [0.1])
    assert study.steps == 0


# -- files and refusals
# ------------------------------------------------------------------------------------------------


def test_measurements_of_vehicles_go_through_a_csv_file() -> None:
    study = a_study()
    study.run(field, steps=6)
    text = study.measurements.to_csv(index=False)
    copy = a_study()
    tell_all(copy, parse_csv(text, copy))
    assert copy.measurements["who"].tolist() == study.measurements["who"].tolist()
    alone = a_study(vehicles=None)
    tell_all(alone, parse_csv(text, alone))
    assert alone.steps == 6


MISTAKES: dict[str, tuple[Any, str]] = {
    "unknown vehicle": (lambda: a_study().ask(vehicle="slwo"), "did you mean 'slow'"),
    "no vehicles": (lambda: a_study(vehicles=None).ask(vehicle="slow"), "has no vehicles"),
    "which vehicle": (lambda: a_study().ask(), "say for which, such as vehicle='fast'"),
    "duplicated name": (lambda: a_study(vehicles=["a", "a"]), "must differ"),
    "no name": (lambda: a_study(vehicles={"": tv.Vehicle()}), "needs a name"),
    "no vehicle": (lambda: a_study(vehicles={"a": 3}), "must be a Vehicle"),
    "no dict": (lambda: a_study(vehicles=3), "must be a dict"),
    "speed": (lambda: tv.Vehicle(speed=0), "must be > 0"),
    "budget": (lambda: tv.Vehicle(budget=-1), "must be > 0"),
    "start": (lambda: tv.Vehicle(start=3), "must be a point"),
    "start without a column": (
        lambda: a_study(vehicles={"a": tv.Vehicle(start={"x": 0})}),
        "'y' is missing",
    ),
    "speed without travel": (
        lambda: a_study(vehicles={"a": tv.Vehicle(speed=2)}, cost=2.0),
        "needs a cost of travel",
    ),
    "another's suggestion": (
        lambda: (study := a_study()).tell(study.ask(vehicle="slow"), 0.1, vehicle="fast"),
        "is for slow",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_refused_in_one_line(name: str) -> None:
    mistake, message = MISTAKES[name]
    with pytest.raises(tv.TruvarError) as caught:
        mistake()
    assert message in str(caught.value)


def test_the_cost_of_a_failed_attempt_counts_for_its_vehicle() -> None:
    study = a_study(vehicles={"a": tv.Vehicle(budget=20.0), "b": tv.Vehicle()})
    study.fail(study.ask(vehicle="a"), "no signal", cost=12.0)
    study.fail({"x": 1.0, "y": 1.0}, "no signal", cost=3.0, vehicle="a")
    status = study.vehicle_statuses[0]
    assert (status.steps, status.spent) == (0, 15.0)
    assert status.left == pytest.approx(20.0 - 15.0 - status.return_cost)
    assert [failure.vehicle for failure in study.failures] == ["a", "a"]
    assert study.ask(vehicle="a").cost <= 5.0
    study.fail(study.pending[0], cost=4.9)
    with pytest.raises(tv.Finished, match="left of the budget of a do not pay"):
        study.ask(vehicle="a")
    suggestion = study.ask(vehicle="b")
    with pytest.raises(tv.TruvarError, match="is for b, got vehicle='a'"):
        study.fail(suggestion, vehicle="a")
    resumed = tv.Study.from_json(study.to_json())
    assert resumed.vehicle_statuses == study.vehicle_statuses


def test_a_failed_attempt_takes_the_time_of_its_vehicle_in_a_run() -> None:
    study = a_study(vehicles={"a": tv.Vehicle(budget=12.0), "b": tv.Vehicle(budget=12.0)})
    attempts: list[int] = []

    def flaky(point: dict[str, float]) -> float:
        attempts.append(1)
        if len(attempts) % 3 == 0:
            raise TimeoutError("no answer")
        return point["x"]

    with pytest.warns(RuntimeWarning, match="no answer"):
        study.run(flaky, steps=60)
    assert study.failures
    for status in study.vehicle_statuses:
        assert status.spent <= 12.0
    assert study.spent == pytest.approx(sum(status.spent for status in study.vehicle_statuses))


def test_repeats_with_a_key_count_once() -> None:
    study = a_study(vehicles=None)
    first = study.tell_repeats({"x": 1.0, "y": 1.0}, [0.1, 0.2], key="morning")
    assert study.tell_repeats({"x": 1.0, "y": 1.0}, [0.1, 0.2], key="morning") == first
    assert study.steps == 2
    resumed = tv.Study.from_json(study.to_json())
    assert resumed.tell_repeats({"x": 1.0, "y": 1.0}, [0.1, 0.2], key="morning") == first
    assert study.tell_repeats(first[0], [0.1, 0.2], key="noon") == [3, 4]


def test_a_vehicle_that_can_pay_for_no_place_of_the_initial_design_is_told_so() -> None:
    """The places that the design would go to are out of reach, and the one in reach failed."""
    frame = pd.DataFrame({"depth": [1.5, 2.5, 3.5], "site": list("ABC")})
    ways = pd.DataFrame(
        [[0, 3.5, 9], [3.5, 0, 4], [9, 4, 0]], index=list("ABC"), columns=list("ABC")
    )
    cost = tv.Cost(
        base=1.0, travel=tv.TravelMatrix(ways, places="site"), start="A", must_return=True
    )
    domain = tv.Domain.table(frame, columns=["depth"])
    study = tv.Study(
        domain,
        tv.LevelSet(4.0),
        cost=cost,
        vehicles={"b1": tv.Vehicle(), "b2": tv.Vehicle(budget=9)},
    )
    study.fail({"depth": 1.5}, "storm", cost=6.0, vehicle="b2")
    with pytest.raises(tv.Finished, match="left of the budget of b2 do not pay"):
        study.ask(vehicle="b2")
    assert study.ask(vehicle="b1").vehicle == "b1"
