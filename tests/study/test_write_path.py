"""Creating, opening and changing a study builds its model once and opens its database once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

import truvar as tv
from truvar.cli import main
from truvar.domain.action import Action
from truvar.exceptions import InvalidModelError, SerializationError, StudyNotFoundError
from truvar.models.surrogate import Surrogate
from truvar.storage import _connections as connections
from truvar.study import _state

DOMAIN = tv.Domain.grid(x=np.linspace(0, 1, 12))
PROBLEM = """
name = "line"
[domain]
grid = {x = [0, 1, 12]}
[goal]
level_set = 0.5
[model]
kernel = "rbf"
lengthscales = [0.3]
mean = 0.0
[noise]
variance = 0.01
"""


def a_study(**options: Any) -> tv.Study:
    known = {"kernel": RBF(0.3), "mean": 0.0, "noise": 0.01, **options}
    return tv.Study(DOMAIN, tv.LevelSet(0.5), **known)


def count_calls(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> list[int]:
    """Count the calls of a function from now on: the length of the list that is returned."""
    original: Callable[..., Any] = getattr(owner, name)
    calls: list[int] = []

    def counted(*arguments: Any, **options: Any) -> Any:
        calls.append(1)
        return original(*arguments, **options)

    monkeypatch.setattr(owner, name, counted)
    return calls


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    return count_calls(monkeypatch, Surrogate, "__init__")


@pytest.fixture
def engines(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    return count_calls(monkeypatch, connections, "create_engine")


@pytest.fixture
def file(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'line.db'}"


# -- models
# --------------------------------------------------------------------------------------------------


def test_a_study_in_memory_builds_its_model_once(models: list[int]) -> None:
    study = a_study()
    study.tell(study.ask(), 0.3)
    assert len(models) == 1


def test_a_new_stored_study_builds_its_model_once(
    file: str, models: list[int], engines: list[int]
) -> None:
    study = a_study(store=file, name="line")
    study.tell(study.ask(), 0.3)
    assert (len(models), len(engines)) == (1, 1)


def test_opening_a_study_and_telling_builds_its_model_once(
    file: str, models: list[int], engines: list[int]
) -> None:
    a_study(store=file, name="line").run(lambda point: point["x"], steps=4)
    models.clear()
    engines.clear()
    study = tv.load(file, "line")
    study.tell(study.ask(), 0.3)
    assert (len(models), len(engines)) == (1, 1)


def test_opening_a_study_with_corrections_builds_its_model_once(
    file: str, models: list[int]
) -> None:
    study = a_study(store=file, name="line")
    study.run(lambda point: point["x"], steps=4)
    study.correct(2, 0.9)
    study.withdraw(3)
    models.clear()
    opened = tv.load(file, "line")
    assert len(models) == 1
    np.testing.assert_array_equal(opened.result().mean, study.result().mean)


def test_a_correction_rebuilds_the_model_once(models: list[int]) -> None:
    study = a_study()
    study.run(lambda point: point["x"], steps=4)
    models.clear()
    study.correct(2, 0.9)
    assert len(models) == 1


# -- the command line
# --------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TRUVAR_STORE", raising=False)
    Path("line.toml").write_text(PROBLEM)
    return tmp_path


def test_the_command_new_builds_the_model_once(folder: Path, models: list[int]) -> None:
    assert main(["new", "line.toml"]) == 0
    assert len(models) == 1


def test_the_command_tell_opens_the_database_once_and_builds_the_model_once(
    folder: Path, models: list[int], engines: list[int]
) -> None:
    assert main(["new", "line.toml"]) == 0
    assert main(["ask"]) == 0
    models.clear()
    engines.clear()
    assert main(["tell", "1", "0.3"]) == 0
    assert (len(models), len(engines)) == (1, 1)


def test_the_only_study_of_a_store_is_opened_without_its_name(
    file: str, engines: list[int]
) -> None:
    a_study(store=file, name="line")
    engines.clear()
    assert tv.load(file).name == "line"
    assert len(engines) == 1
    a_study(store=file, name="a line")
    with pytest.raises(
        StudyNotFoundError, match="exactly one study, got 'a line', 'line'; give name='a line'"
    ):
        tv.load(file)


# -- events
# --------------------------------------------------------------------------------------------------


def test_a_change_does_not_parse_the_action_it_has_written(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed = count_calls(monkeypatch, _state, "action_from_details")
    study = a_study()
    suggestion = study.ask()
    study.tell(suggestion, 0.3)
    study.tell({"x": 0.0}, 0.1)
    study.correct(1, 0.4)
    assert parsed == []
    again = tv.Study.from_json(study.to_json())
    assert len(parsed) == 4  # asked, told twice, corrected
    assert again.measurements.equals(study.measurements)


def test_a_replayed_action_is_the_one_that_was_written(monkeypatch: pytest.MonkeyPatch) -> None:
    study = a_study(cost=tv.Cost(1, travel={"x": 2}))
    study.run(lambda point: point["x"], steps=3)
    study.tell({"x": 0.37}, 0.1, noise=0.2, cost=3.0)
    study.ask(2)

    def fields(action: Action) -> list[Any]:
        return [
            value.tolist() if name == "point" else value for name, value in vars(action).items()
        ]

    written = [fields(action) for action, _ in study._learner.observations]
    replayed = [
        fields(action) for action, _ in tv.Study.from_json(study.to_json())._learner.observations
    ]
    np.testing.assert_equal(replayed, written)


# -- refused settings
# --------------------------------------------------------------------------------------------------


def test_a_setting_that_cannot_be_stored_is_refused(file: str) -> None:
    with pytest.raises(SerializationError, match="cost"):
        a_study(cost=lambda points, last: np.ones(len(points)), store=file, name="line")
    a_study(store=file, name="other")
    assert tv.studies(file)["name"].tolist() == ["other"]


def test_an_invalid_setting_is_reported_for_what_it_is_even_if_it_cannot_be_stored(
    file: str,
) -> None:
    with pytest.raises(InvalidModelError, match="kernel"):
        a_study(kernel=lambda x: x, store=file, name="line")
    with pytest.raises(tv.TruvarError, match="noise"):
        a_study(noise=lambda points: "high", store=file, name="line")


def test_predictions_do_not_remember_an_array_that_changes() -> None:
    study = a_study()
    study.tell({"x": 0.0}, 1.0)
    points = np.array([[0.0]])
    near, _ = study.predict(points)
    points[0, 0] = 1.0
    far, _ = study.predict(points)
    assert near[0] == pytest.approx(1 / 1.01)
    assert far[0] < 0.1
