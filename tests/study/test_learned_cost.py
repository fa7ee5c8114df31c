"""Costs that are only known after a measurement: learned, expected, and counted."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import truvar as tv
from truvar.exceptions import InvalidArgumentError, InvalidMeasurementError, SerializationError
from truvar.models.cost_model import CostModel
from truvar.report.formatting import describe_cost
from truvar.report.html_report import render_html_report
from truvar.report.status import describe_budget

GRID = tv.Domain.grid(x=np.linspace(0, 1, 9), y=np.linspace(0, 1, 6))
MODEL: dict[str, Any] = {"kernel": "rbf", "noise": 1e-4}


def height(point: dict[str, Any]) -> float:
    return float(np.sin(4 * point["x"]) + point["y"])


def minutes(point: dict[str, Any]) -> float:
    return float(5 * np.exp(2 * point["x"]))


def measured(cost: Any, steps: int = 6, factor: float = 1.0, **options: Any) -> tv.Study:
    study = tv.Study(GRID, tv.Maximize(), cost=cost, **{**MODEL, **options})
    for _ in range(steps):
        suggestion = study.ask()
        point = suggestion.point
        study.tell(suggestion, height(point), cost=factor * minutes(point))
    return study


def test_expected_costs_approach_those_that_were_told() -> None:
    study = measured("learned", steps=12)
    suggestion = study.ask()
    assert suggestion.cost == pytest.approx(minutes(suggestion.point), rel=0.25)
    low, high = suggestion.cost_interval or (np.nan, np.nan)
    assert low < minutes(suggestion.point) < high
    assert study.spent == pytest.approx(sum(minutes(r.point) for r in study.measurement_records()))
    assert describe_cost(suggestion) == f"expected {suggestion.cost:.3g} ({low:.3g} to {high:.3g})"


def test_a_prior_is_expected_before_anything_is_told() -> None:
    first = tv.Study(GRID, tv.Maximize(), cost=tv.LearnedCost(prior=20), **MODEL).ask()
    assert first.cost == pytest.approx(20)
    assert first.cost_interval is not None
    unknown = tv.Study(GRID, tv.Maximize(), cost="learned", **MODEL).ask()
    assert unknown.cost == 1
    assert unknown.cost_interval is None
    assert describe_cost(unknown) == "1"


def test_planned_costs_come_from_a_column() -> None:
    frame = pd.DataFrame({"x": np.linspace(0, 1, 12), "plan": np.linspace(5, 60, 12)})
    domain = tv.Domain.table(frame, ["x"])
    study = tv.Study(domain, tv.Maximize(), cost=tv.LearnedCost(prior="plan"), **MODEL)
    assert study.candidates().cost[:, 0] == pytest.approx(frame["plan"].to_numpy())
    for row in (0, 6, 11):  # everything takes twice as long as planned
        study.tell(domain.point(row), 0.1 * row, cost=2 * frame["plan"][row])
    expected = study.candidates().cost[:, 0]
    assert expected == pytest.approx(2 * frame["plan"].to_numpy(), rel=0.2)


def test_cheap_places_are_preferred_once_costs_are_known() -> None:
    study = tv.Study(GRID, tv.Map(0.01), cost="learned", **MODEL)
    for _ in range(16):
        suggestion = study.ask()
        point = suggestion.point
        expensive = point["x"] > 0.5
        study.tell(suggestion, np.sin(9 * point["y"]), cost=80.0 if expensive else 2.0)
    later = study.measurement_records()[6:]
    assert sum(record.point["x"] > 0.5 for record in later) <= len(later) // 4


def test_a_measurement_without_a_cost_counts_with_the_expected_one() -> None:
    study = measured("learned", limits={"budget": 500})
    before = study.candidates().cost
    suggestion = study.ask()
    spent = study.spent
    study.tell(suggestion, height(suggestion.point))
    assert study.spent == pytest.approx(spent + suggestion.cost)
    assert study.candidates().cost == pytest.approx(before)
    assert [record.cost_told for record in study.measurement_records()][-2:] == [True, False]
    assert "1 measurement without a cost, for which the expected one counts" in describe_budget(
        study
    )
    assert "(expected)" in render_html_report(study)


def test_a_replay_equals_the_live_study() -> None:
    study = measured(tv.Cost(base=tv.LearnedCost(prior=10), travel={"x": 2.0}), steps=8)
    study.correct(3, 0.4, cost=33.0)
    study.withdraw(5)
    copy = tv.Study.from_json(study.to_json())
    assert copy.candidates().cost.tolist() == study.candidates().cost.tolist()
    assert copy.ask() == study.ask()
    assert copy.spent == study.spent


def test_a_stored_study_keeps_learning(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'lake.db'}"
    study = measured("learned", steps=4, store=store, name="lake")
    again = tv.load(store, "lake")
    assert again.learns_cost
    assert again.ask(2) == again.pending
    assert [each.cost_interval for each in study.ask(1)] != [None]
    with pytest.raises(SerializationError, match='cost="learned" and tell the cost'):
        tv.Study(GRID, tv.Maximize(), cost=lambda x, last: x[:, 0] + 1, store=store, name="two")


def test_travel_is_known_and_the_rest_is_learned() -> None:
    cost = tv.Cost(base=tv.LearnedCost(prior=10), travel={"x": 100.0}, start={"x": 0, "y": 0})
    study = tv.Study(GRID, tv.Maximize(), cost=cost, **MODEL)
    position = 0.0
    for x in (0.0, 0.5, 1.0, 0.25):
        study.tell({"x": x, "y": 0.4}, x, cost=7.0 + 100 * abs(x - position))
        position = x
    costs = study.candidates().cost[:, 0]
    here = np.isclose(GRID.points[:, 0], 0.25)
    assert costs[here] == pytest.approx(7.0, rel=0.05)
    far = np.isclose(GRID.points[:, 0], 0.75)
    assert costs[far] == pytest.approx(57.0, rel=0.05)
    # A total below the cost of the way says nothing about the rest, but it was spent.
    study.tell({"x": 1.0, "y": 0.4}, 0.0, cost=30.0)
    assert study.spent == pytest.approx(4 * 7 + 100 * 1.75 + 30)
    at_end = study.candidates().cost[:, 0][np.isclose(GRID.points[:, 0], 1.0)]
    assert at_end == pytest.approx(7.0, rel=0.05)


def test_tasks_have_costs_of_their_own() -> None:
    study = tv.Study(
        GRID,
        tv.Maximize(),
        cost="learned",
        tasks=tv.Tasks([[1.0, 0.8], [0.8, 1.0]], ["yield", "assay"]),
        **MODEL,
    )
    for row in (0, 20, 40):
        point = GRID.point(row)
        study.tell(point, height(point), cost=40.0)
        study.tell(point, height(point), task="assay", cost=4.0)
    costs = study.candidates().cost[:, 0].reshape(2, -1)
    assert costs[0].mean() > 5 * costs[1].mean()


def test_equal_costs_are_expected_to_stay_equal() -> None:
    study = tv.Study(GRID, tv.Maximize(), cost="learned", **MODEL)
    for row in (0, 20, 40, 50):
        study.tell(GRID.point(row), float(row), cost=12.0)
    assert study.candidates().cost == pytest.approx(12.0, rel=0.02)


def test_the_unit_of_the_cost_changes_no_choice() -> None:
    rows = [record.index for record in measured("learned", steps=7).measurement_records()]
    seconds = measured("learned", steps=7, factor=60.0)
    assert [record.index for record in seconds.measurement_records()] == rows


def test_the_order_of_the_rows_changes_no_choice() -> None:
    frame = pd.DataFrame(GRID.points**1.1, columns=["x", "y"])
    shuffled = frame.iloc[np.random.default_rng(4).permutation(len(frame))]
    chosen = []
    for rows in (frame, shuffled):
        start = list(rows.index).index(7)
        study = tv.Study(
            tv.Domain.table(rows), tv.LevelSet(0.8), cost="learned", start=start, **MODEL
        )
        for _ in range(6):
            suggestion = study.ask()
            study.tell(suggestion, height(suggestion.point), cost=minutes(suggestion.point))
        chosen.append([*study.measurements["x"], *study.measurements["y"], study.ask().point["x"]])
    assert chosen[0] == chosen[1]


def test_a_function_may_return_the_cost() -> None:
    study = tv.Study(GRID, tv.Maximize(), cost="learned", **MODEL)
    study.run(lambda point: (height(point), minutes(point)), steps=4)
    records = study.measurement_records()
    assert [record.cost for record in records] == [minutes(record.point) for record in records]
    assert all(record.cost_told for record in records)


def test_a_budget_counts_measured_costs() -> None:
    study = tv.Study(GRID, tv.Maximize(), cost=tv.LearnedCost(prior=10), **MODEL)
    result = study.run(lambda point: (height(point), minutes(point)), budget=100)
    assert 50 < result.spent < 150
    assert result.reason is not None
    assert "left of the budget" in result.reason


def test_bad_costs_change_nothing() -> None:
    study = measured("learned", steps=3)
    version = study.version
    suggestion = {"x": 0.5, "y": 0.4}
    for cost, message in ((0, "must be above 0, got 0"), (-1, ">= 0"), (float("nan"), "cost")):
        with pytest.raises(InvalidMeasurementError, match=message):
            study.tell(suggestion, 1.0, cost=cost)
    assert study.version == version


@pytest.mark.filterwarnings("error:overflow")
@pytest.mark.parametrize("cost", [1e-300, 1e50, 1e300])
def test_a_study_goes_on_after_a_cost_of_very_different_size(cost: float) -> None:
    study = measured("learned", steps=5)
    study.tell({"x": 0.5, "y": 0.4}, 1.0, cost=cost)
    suggestion = study.ask()
    assert 0 < suggestion.cost < np.inf
    assert suggestion.cost_interval is not None
    assert np.isfinite(suggestion.cost_interval).all()
    study.correct(6, 1.0, cost=20.0)
    assert study.ask().cost < 1e3


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"prior": 0}, "prior of a learned cost must be"),
        ({"prior": -3.0}, "prior of a learned cost must be"),
        ({"prior": 10, "factor": 1.0}, "factor of a learned cost must be above 1, got 1.0"),
        ({"prior": 10, "factor": "wide"}, "factor of a learned cost must be"),
    ],
)
def test_bad_settings_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        tv.LearnedCost(**settings)


def test_a_misspelt_learned_cost_is_not_looked_for_among_the_columns() -> None:
    with pytest.raises(InvalidArgumentError, match="unknown cost 'learnt'; did you mean 'learned'"):
        tv.Study(GRID, tv.Maximize(), cost="learnt")
    with pytest.raises(
        InvalidArgumentError, match=r"got the class LearnedCost; give LearnedCost\("
    ):
        tv.Study(GRID, tv.Maximize(), cost=tv.LearnedCost)


def test_costs_of_tasks_are_learned_or_given_but_not_both() -> None:
    tasks = tv.Tasks(names=["yield", "assay"], cost=[10, 1])
    with pytest.raises(InvalidArgumentError, match="costs are to be learned, but those of the"):
        tv.Study(GRID, tv.Maximize(), cost="learned", tasks=tasks)


def test_a_column_called_learned_stays_a_column() -> None:
    frame = pd.DataFrame({"x": [0.0, 1.0, 2.0], "learned": [3.0, 4.0, 5.0]})
    study = tv.Study(tv.Domain.table(frame, ["x"]), tv.Maximize(), cost="learned", **MODEL)
    assert not study.learns_cost
    assert study.candidates().cost[:, 0].tolist() == [3.0, 4.0, 5.0]


def test_planned_costs_must_be_positive() -> None:
    frame = pd.DataFrame({"x": [0.0, 1.0, 2.0], "plan": [3.0, 0.0, 5.0]})
    domain = tv.Domain.table(frame, ["x"])
    with pytest.raises(InvalidArgumentError, match="row 1 of column 'plan' has 0"):
        tv.Study(domain, tv.Maximize(), cost=tv.LearnedCost(prior="plan"))


def test_intervals_hold_as_often_as_they_say() -> None:
    """Of 600 costs drawn around smooth ones, at least 90 % lie in their 95 % intervals."""
    domain = tv.Domain.grid(x=np.linspace(0, 1, 60))
    hits = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        x = domain.points[:, 0]
        costs = np.exp(3 + np.sin(5 * x + seed) + rng.normal(0, 0.2, len(x)))
        rows = rng.permutation(len(x))
        seen = rows[:12]
        others = rows[12:42]
        model = CostModel(domain, domain.points[seen], costs[seen])
        low, high = model.interval(domain.points[others]) or (np.inf, -np.inf)
        hits.append((low <= costs[others]) & (costs[others] <= high))
    assert 0.9 < np.mean(hits) < 0.995
