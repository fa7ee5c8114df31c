"""Columns that are given, not chosen: suggestions lie in the given context, which the event log has."""

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
from truvar.service.limits import ServiceLimits
from truvar.service.uploads import uploaded_study

GRID = tv.Domain.grid(dose=np.linspace(0, 1, 9), temperature=[10.0, 15.0, 20.0]).with_context(["temperature"])


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
    "settings", [{}, {"kernel": None, "mean": None, "noise": None}, {"policy": "ei"}, {"policy": "truvar"}]
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
    study = a_study()
    study.tell({"dose": 0.5, "temperature": 15.0}, 1.0)
    gains = study.gains()
    rows = rows_in_context(GRID, {"temperature": 20.0})
    assert rows is not None
    assert gains[study.ask(context={"temperature": 20.0}).index] == pytest.approx(gains[rows].max())


def test_the_best_dose_is_learned_for_every_temperature() -> None:
    study = a_study()
    for k in range(15):
        suggestion = study.ask(context={"temperature": [10.0, 15.0, 20.0][k % 3]})
        study.tell(suggestion, yield_of(suggestion.point))
    result = study.result()
    assert [result.best_for({"temperature": t}).point["dose"] for t in (10, 15, 20)] == [0.25, 0.5, 0.75]
    study.exclude({"dose": (0.7, 0.8)})
    assert study.result().best_for({"temperature": 20}).point["dose"] in (0.625, 0.875)


def test_a_vehicle_is_suggested_what_it_can_pay_for_in_the_context() -> None:
    cost = tv.Cost(base=1.0, travel={"dose": 10.0})
    study = a_study(cost=cost, vehicles={"near": tv.Vehicle(budget=4.0), "far": tv.Vehicle()})
    study.tell({"dose": 0.0, "temperature": 10.0}, 0.1, who="near")
    frame = study.ask_frame(who="near", context={"temperature": 20.0})
    assert frame["who"].tolist() == ["near"]
    assert frame["temperature"].tolist() == [20.0]
    assert frame["cost"].tolist()[0] <= 3.0
    study.tell_frame(frame.assign(value=0.2))
    assert study.measurements["who"].tolist() == ["near", "near"]
    with pytest.raises(tv.Finished, match="left of the budget of near do not pay"):
        study.ask(who="near", context={"temperature": 15.0}, budget=2.0)
    assert study.ask(who="far", context={"temperature": 15.0}).point["temperature"] == 15.0


@pytest.mark.parametrize(
    "settings", [{}, {"kernel": None, "mean": None, "noise": None}, {"policy": "ei"}, {"policy": "truvar"}]
)
def test_excluded_and_failed_places_are_not_suggested_in_a_context(settings: dict[str, Any]) -> None:
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
    study.tell({"dose": 0.0, "temperature": 10.0}, 0.1, who="a")
    copy = uploaded_study(json.loads(study.to_json()), f"sqlite:///{tmp_path}/s.db", "copy", ServiceLimits())
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
    assert copy.ask(context={"temperature": 20}).point == other.ask(context={"temperature": 20}).point


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
    with pytest.raises(InvalidDomainError, match="needs a grid or a table"):
        tv.Domain.box(x=(0, 1), t=(0, 1)).with_context(["t"])


def test_a_context_at_the_command_line(tmp_path: Path, monkeypatch: Any, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TRUVAR_STORE", raising=False)
    Path("d.toml").write_text(
        '[domain]\ngrid = {dose = [0, 1, 5], t = [10, 20, 3]}\ncontext = ["t"]\n[goal]\nmaximize = true\n'
        "[noise]\nvariance = 0.01\n"
    )
    assert main(["new", "d.toml"]) == 0
    capsys.readouterr()
    assert main(["ask", "--context", "t=19", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["suggestions"][0]["point"]["t"] == 20.0
    assert main(["ask"]) == 1
    assert "--context t=VALUE" in capsys.readouterr().err


def test_a_box_has_no_context_in_a_problem_file() -> None:
    spec = {"domain": {"box": {"x": [0, 1]}, "context": ["x"]}, "goal": {"maximize": True}}
    with pytest.raises(tv.TruvarError, match="context belongs to a table or grid"):
        problem_from_dict(spec)
