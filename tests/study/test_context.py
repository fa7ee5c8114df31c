"""Columns that are given, not chosen: suggestions lie in the given context, which the event log
has."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import RBF

import truvar as tv
from truvar.cli import main
from truvar.domain.given_context import rows_in_context
from truvar.exceptions import InvalidArgumentError, InvalidDomainError
from truvar.problem import problem_from_dict
from truvar.service._limits import ServiceLimits
from truvar.service._uploads import uploaded_study

GRID = tv.Domain.grid(dose=np.linspace(0, 1, 9), temperature=[10.0, 15.0, 20.0]).with_context(
    ["temperature"]
)


def yield_of(point: dict[str, float]) -> float:
    """Best at a dose that depends on the temperature: 0.25 at 10 degrees, 0.75 at 20."""
    return 1.0 - 4 * (point["dose"] - point["temperature"] / 20 + 0.25) ** 2


def a_study(**settings: Any) -> tv.Study:
    known = {"kernel": RBF([0.3, 10.0]), "mean": 0.0, "noise": 1e-4, **settings}
    return tv.Study(GRID, tv.Maximize(), **known)


@pytest.mark.parametrize("given", [10.0, 11.9, 14.0, 17.6, 40.0, -3.0])
def test_rows_of_the_nearest_context_are_found(given: float) -> None:
    rows = rows_in_context(GRID, {"temperature": given})
    distances = np.abs(GRID.points[:, 1] - given)
    assert rows is not None
    assert set(rows.tolist()) == {k for k, d in enumerate(distances) if d == distances.min()}


@pytest.mark.parametrize(
    "settings",
    [{}, {"kernel": None, "mean": None, "noise": None}, {"policy": "ei"}, {"policy": "truvar"}],
)
def test_suggestions_lie_in_the_given_context(settings: dict[str, Any]) -> None:
    study = a_study(**settings)
    rng = np.random.default_rng(0)
    for temperature in rng.choice([10.0, 15.0, 20.0], 14):
        try:
            batch = study.ask(2, context={"temperature": temperature + rng.uniform(-2, 2)})
        except tv.Finished:
            continue
        for suggestion in batch:
            assert suggestion.point["temperature"] == temperature
            study.tell(suggestion, yield_of(suggestion.point))
    assert study.steps >= 10


def test_the_choice_is_the_best_row_of_the_context() -> None:
    study = tv.Study(GRID, tv.LevelSet(0.8), kernel=RBF([0.3, 10.0]), mean=0.0, noise=1e-4)
    study.tell({"dose": 0.5, "temperature": 15.0}, 1.0)
    gains = study.gains()
    rows = rows_in_context(GRID, {"temperature": 20.0})
    assert rows is not None
    assert gains[study.ask(context={"temperature": 20.0}).index] == pytest.approx(gains[rows].max())


@pytest.mark.parametrize("policy", ["auto", "truvar", "ei", "ucb"])
def test_an_optimum_is_looked_for_in_a_context_whose_values_are_low(policy: str) -> None:
    study = tv.Study(
        GRID, tv.Maximize(), kernel=9 * RBF([0.3, 4.0]), mean=0.0, noise=1e-4, policy=policy
    )

    def value(point: dict[str, float]) -> float:
        return yield_of(point) + (5.0 if point["temperature"] == 20.0 else 0.0)

    for dose in (0.0, 0.5, 0.75, 1.0):
        study.tell({"dose": dose, "temperature": 20.0}, value({"dose": dose, "temperature": 20.0}))
    for _ in range(7):
        suggestion = study.ask(context={"temperature": 10.0})
        study.tell(suggestion, value(suggestion.point))
    assert study.best_for({"temperature": 10.0}).point["dose"] == 0.25
    assert study.finished is None


def test_the_best_dose_is_learned_for_every_temperature() -> None:
    study = a_study()
    for k in range(15):
        suggestion = study.ask(context={"temperature": [10.0, 15.0, 20.0][k % 3]})
        study.tell(suggestion, yield_of(suggestion.point))
    result = study.result()
    assert [result.best_for({"temperature": t}).point["dose"] for t in (10, 15, 20)] == [
        0.25,
        0.5,
        0.75,
    ]
    study.exclude({"dose": (0.7, 0.8)})
    assert study.result().best_for({"temperature": 20}).point["dose"] in (0.625, 0.875)


def test_a_vehicle_is_suggested_what_it_can_pay_for_in_the_context() -> None:
    cost = tv.Cost(base=1.0, travel={"dose": 10.0})
    study = a_study(cost=cost, vehicles={"near": tv.Vehicle(budget=4.0), "far": tv.Vehicle()})
    study.tell({"dose": 0.0, "temperature": 10.0}, 0.1, vehicle="near")
    frame = study.ask_frame(vehicle="near", context={"temperature": 20.0})
    assert frame["who"].tolist() == ["near"]
    assert frame["temperature"].tolist() == [20.0]
    assert frame["cost"].tolist()[0] <= 3.0
    study.tell_frame(frame.assign(value=0.2))
    assert study.measurements["who"].tolist() == ["near", "near"]
    with pytest.raises(tv.Finished, match="left of the budget of near do not pay"):
        study.ask(vehicle="near", context={"temperature": 15.0}, budget=2.0)
    assert study.ask(vehicle="far", context={"temperature": 15.0}).point["temperature"] == 15.0


@pytest.mark.parametrize(
    "settings",
    [{}, {"kernel": None, "mean": None, "noise": None}, {"policy": "ei"}, {"policy": "truvar"}],
)
def test_excluded_and_failed_places_are_not_suggested_in_a_context(
    settings: dict[str, Any],
) -> None:
    study = a_study(**settings)
    study.exclude({"dose": (0.4, 0.8)}, reason="toxic")
    failed = study.ask(context={"temperature": 20.0})
    study.fail(failed, "spilt")
    for k in range(9):
        temperature = [10.0, 15.0, 20.0][k % 3]
        try:
            suggestion = study.ask(context={"temperature": temperature})
        except tv.Finished:
            continue
        assert suggestion.point["temperature"] == temperature
        assert not 0.4 <= suggestion.point["dose"] <= 0.8
        assert suggestion.point != failed.point
        study.tell(suggestion, yield_of(suggestion.point))
    assert study.steps >= 4


def test_a_context_whose_places_are_all_excluded_has_no_suggestion() -> None:
    study = a_study()
    study.exclude({"temperature": 20.0})
    with pytest.raises(tv.Finished, match="every place of this context is excluded"):
        study.ask(context={"temperature": 20.0})
    assert study.ask(context={"temperature": 10.0}).point["temperature"] == 10.0


def test_a_study_with_a_context_and_vehicles_can_be_uploaded(tmp_path: Path) -> None:
    study = a_study(vehicles=["a", "b"])
    study.tell({"dose": 0.0, "temperature": 10.0}, 0.1, vehicle="a")
    store = f"sqlite:///{tmp_path}/s.db"
    uploaded_study(json.loads(study.to_json()), store, "copy", ServiceLimits())
    copy = tv.load(store, "copy")
    assert copy.domain.context == ("temperature",)
    assert list(copy.vehicles) == ["a", "b"]


def test_a_resumed_study_continues_alike_and_the_log_has_the_context(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/c.db"
    study = a_study(store=store, name="c")
    study.tell(study.ask(context={"temperature": 11}), 0.3)
    details = [row["details"] for _, row in study.events.iterrows() if row["kind"] == "asked"]
    assert details[0]["context"] == {"temperature": 11}
    copy = tv.load(store, "c")
    assert copy.domain.context == ("temperature",)
    other = tv.Study.from_json(study.to_json())
    assert (
        copy.ask(context={"temperature": 20}).point == other.ask(context={"temperature": 20}).point
    )


@pytest.mark.parametrize(
    ("context", "message"),
    [
        (None, r"is given, not chosen, got none; give ask\(context={'temperature': ...}\)"),
        ({"temprature": 3}, "context: unknown column 'temprature'; did you mean 'temperature'"),
        ({}, "the context needs 'temperature'"),
        ({"temperature": "warm"}, "must be a number, got 'warm'"),
    ],
)
def test_a_wrong_context_is_refused_and_changes_nothing(context: Any, message: str) -> None:
    study = a_study()
    with pytest.raises(InvalidArgumentError, match=message):
        study.ask(context=context)
    assert study.version == 1


def test_a_study_without_context_refuses_one() -> None:
    study = tv.Study(tv.Domain.grid(x=[0, 1]), tv.Maximize(), noise=0.1)
    with pytest.raises(InvalidArgumentError, match="has no context"):
        study.ask(context={"x": 1.0})


def test_a_context_must_leave_something_to_choose() -> None:
    frame = pd.DataFrame({"x": [0.0, 1.0], "t": [1.0, 2.0]})
    with pytest.raises(InvalidDomainError, match="must leave a column to choose"):
        tv.Domain.table(frame, context=["x", "t"])
    with pytest.raises(InvalidDomainError, match="context: unknown column 'z'"):
        tv.Domain.table(frame, context=["z"])


def test_a_context_at_the_command_line(
    tmp_path: Path, monkeypatch: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TRUVAR_STORE", raising=False)
    Path("d.toml").write_text(
        '[domain]\ngrid = {dose = [0, 1, 5], t = [10, 20, 3]}\ncontext = ["t"]\n[goal]\nmaximize = '
        "true\n"
        "[noise]\nvariance = 0.01\n"
    )
    assert main(["new", "d.toml"]) == 0
    capsys.readouterr()
    assert main(["ask", "--context", "t=19", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["suggestions"][0]["point"]["t"] == 20.0
    assert main(["ask"]) == 1
    assert "--context t=VALUE" in capsys.readouterr().err


def test_a_mixture_has_no_context_in_a_problem_file() -> None:
    spec = {
        "domain": {"mixture": {"x": [0, 1], "y": [0, 1]}, "context": ["x"]},
        "goal": {"maximize": True},
    }
    with pytest.raises(tv.TruvarError, match="context belongs to a table, grid or box"):
        problem_from_dict(spec)


# -- boxes
# --------------------------------------------------------------------------------------------------

BOX = tv.Domain.box(
    dose=(0, 1), solvent=["water", "oil"], temperature=(5, 25), representers=300
).with_context(["temperature"])


def yield_in_box(point: dict[str, Any]) -> float:
    best = point["temperature"] / 40 + (0.2 if point["solvent"] == "water" else 0.3)
    return 1 - 4 * (point["dose"] - best) ** 2 - (0.5 if point["solvent"] == "oil" else 0.0)


@pytest.mark.parametrize("policy", ["auto", "truvar", "ei", "random", "bamsoo"])
@pytest.mark.parametrize("goal", [tv.Maximize(), tv.LevelSet(0.8)])
def test_suggestions_in_a_box_have_exactly_the_given_context(goal: Any, policy: str) -> None:
    if goal.has_thresholds and policy in ("ei", "bamsoo"):
        pytest.skip("a policy for optima")
    study = tv.Study(BOX, goal, noise=1e-4, policy=policy)
    rng = np.random.default_rng(0)
    for _ in range(8):
        temperature = rng.uniform(5, 25)
        for suggestion in study.ask(2, context={"temperature": temperature}):
            assert suggestion.point["temperature"] == temperature
            study.tell(suggestion, yield_in_box(suggestion.point))
    resumed = tv.Study.from_json(study.to_json())
    assert resumed.domain.context == ("temperature",)
    assert resumed.ask(context={"temperature": 7.5}) == study.ask(context={"temperature": 7.5})


def test_the_best_point_of_a_box_is_learned_for_every_context() -> None:
    study = tv.Study(BOX, tv.Maximize(), noise=1e-4)
    rng = np.random.default_rng(1)
    study.run(yield_in_box, steps=30, context=lambda: {"temperature": rng.uniform(5, 25)})
    for temperature in (6.0, 14.0, 24.0):
        best = study.best_for({"temperature": temperature})
        assert best.point["temperature"] == temperature
        assert yield_in_box(best.point) > 0.97
    with pytest.raises(InvalidArgumentError, match=r"study\.best_for"):
        study.result().best_for({"temperature": 6.0})


def test_excluded_places_of_a_box_are_not_suggested_in_a_context() -> None:
    study = tv.Study(BOX, tv.Maximize(), noise=1e-4)
    study.exclude({"solvent": "water"}, reason="none left")
    for k in range(6):
        suggestion = study.ask(context={"temperature": 5.0 + 3 * k})
        assert suggestion.point["solvent"] == "oil"
        study.tell(suggestion, yield_in_box(suggestion.point))
    assert study.best_for({"temperature": 20.0}).point["solvent"] == "oil"


def test_a_context_outside_a_box_is_refused() -> None:
    study = tv.Study(BOX, tv.Maximize(), noise=1e-4)
    with pytest.raises(
        InvalidDomainError, match=r"context 'temperature' must lie in the box, 5.0 to 25.0, got 40"
    ):
        study.ask(context={"temperature": 40})


def test_a_box_with_a_context_of_a_problem_file() -> None:
    spec = {
        "domain": {"box": {"x": [0, 1], "t": [0, 1]}, "context": ["t"]},
        "goal": {"maximize": True},
    }
    study = problem_from_dict(spec).study()
    assert study.ask(context={"t": 0.25}).point["t"] == 0.25


# -- runs and texts
# --------------------------------------------------------------------------------------------------


def test_a_run_takes_a_context_or_a_function_that_returns_it() -> None:
    study = a_study()
    study.run(yield_of, steps=3, context={"temperature": 10.0})
    assert {row.point["temperature"] for row in study.measurement_records()} == {10.0}
    days = iter([10.0, 15.0, 20.0] * 3)
    study.run(yield_of, steps=9, context=lambda: {"temperature": next(days)})
    assert [row.point["temperature"] for row in study.measurement_records()][3:] == [
        10.0,
        15.0,
        20.0,
        10.0,
        15.0,
        20.0,
    ]
    with pytest.raises(InvalidArgumentError, match=r"run\(f, context=...\)"):
        study.run(yield_of, steps=12)


def test_a_run_goes_on_in_other_contexts_when_one_is_done() -> None:
    study = a_study()
    study.exclude({"temperature": 10.0})
    days = iter([10.0, 20.0] * 50)
    study.run(yield_of, steps=4, context=lambda: {"temperature": next(days)})
    assert study.steps == 4
    result = study.run(yield_of, steps=9, context={"temperature": 10.0})
    assert study.steps == 4
    assert "every place of this context is excluded" in str(result.reason)


def a_table() -> tv.Domain:
    rows = [(dose, batch) for dose in (0.1, 0.5, 0.9) for batch in ("spring", "autumn", "winter")]
    return tv.Domain.table(pd.DataFrame(rows, columns=["dose", "batch"]), context=["batch"])


def test_a_context_of_text_is_matched_by_its_value() -> None:
    study = tv.Study(a_table(), tv.Maximize(), noise=0.01)
    assert study.ask(context={"batch": "autumn"}).point["batch"] == "autumn"
    with pytest.raises(InvalidDomainError, match="unknown value 'autum'; did you mean 'autumn'"):
        study.ask(context={"batch": "autum"})


def test_a_context_of_text_at_the_command_line(
    tmp_path: Path, monkeypatch: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TRUVAR_STORE", raising=False)
    a_table().to_frame().to_csv("t.csv", index=False)
    Path("d.toml").write_text(
        '[domain]\ntable = "t.csv"\ncolumns = ["dose", "batch"]\ncontext = '
        '["batch"]\n[goal]\nmaximize = true\n'
    )
    assert main(["new", "d.toml"]) == 0
    capsys.readouterr()
    assert main(["ask", "--context", "batch=winter", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["suggestions"][0]["point"]["batch"] == "winter"
    assert main(["ask", "--context", "bach=winter"]) == 1
    assert "unknown column 'bach'; did you mean 'batch'" in capsys.readouterr().err
