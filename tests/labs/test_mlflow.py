"""Measurements logged to a local store of MLflow: `make test-labs`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import truvar as tv

pytest.importorskip("mlflow", reason="needs truvar[test-labs]")
pytest.importorskip("alembic", reason="needs truvar[test-labs]")

import mlflow

from truvar.integrations.mlflow import MLflowLogger


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"sqlite:///{tmp_path_factory.mktemp('mlflow') / 'mlflow.db'}"


@pytest.fixture
def experiment(request: pytest.FixtureRequest) -> str:
    return str(request.node.name)


def a_study(goal: Any = None, **options: Any) -> tv.Study:
    domain = tv.Domain.grid(x=np.linspace(0, 1, 21))
    return tv.Study(domain, goal or tv.Minimize(), **{"noise": 1e-4, **options})


def value(point: dict) -> float:
    return (point["x"] - 0.3) ** 2


def history(client: Any, run_id: str, metric: str) -> dict[int, float]:
    return {each.step: each.value for each in client.get_metric_history(run_id, metric)}


def nested(client: Any, run_id: str) -> list[Any]:
    runs = client.search_runs([client.get_run(run_id).info.experiment_id])
    found = [run for run in runs if run.data.tags.get("mlflow.parentRunId") == run_id]
    return sorted(found, key=lambda run: int(run.data.tags["truvar.id"]))


def test_a_run_is_logged_measurement_by_measurement(uri: str, experiment: str) -> None:
    study = a_study()
    logger = MLflowLogger(experiment, uri, name="first", tags={"line": "7"})
    study.run(
        lambda point: tv.Reading(value(point), reference="scan 1"), steps=6, callbacks=[logger]
    )
    logger.finish(study)
    client = mlflow.MlflowClient(uri)
    run = client.get_run(logger.run_id)
    assert run.info.status == "FINISHED"
    assert run.data.tags["mlflow.runName"] == "first"
    assert run.data.tags["line"] == "7"
    assert run.data.params["goal"].startswith("Minimize(")
    records = study.measurement_records()
    assert history(client, logger.run_id, "value") == {each.id: each.value for each in records}
    assert history(client, logger.run_id, "spent") == {each.id: each.spent for each in records}
    best = history(client, logger.run_id, "best")
    assert list(best.values()) == np.minimum.accumulate([each.value for each in records]).tolist()
    runs = nested(client, logger.run_id)
    assert [float(each.data.params["x"]) for each in runs] == [each.point["x"] for each in records]
    assert [each.data.metrics["value"] for each in runs] == [each.value for each in records]
    assert {each.data.tags["truvar.reference"] for each in runs} == {"scan 1"}
    assert {each.info.status for each in runs} == {"FINISHED"}


def test_a_stored_study_continues_in_the_same_run(
    uri: str, experiment: str, tmp_path: Path
) -> None:
    pytest.importorskip("sqlalchemy", reason="needs truvar[store]")
    place = {"store": f"sqlite:///{tmp_path / 'a.db'}", "name": "it's a study"}
    study = a_study(**place)
    first = MLflowLogger(experiment, uri)
    study.tell({"x": 0.5}, 1.0)
    first(study)
    study.tell({"x": 0.25}, 0.5)
    again = tv.load(place["store"], place["name"])
    second = MLflowLogger(experiment, uri)
    second(again)
    second(again)
    assert second.run_id == first.run_id
    client = mlflow.MlflowClient(uri)
    assert history(client, first.run_id, "value") == {1: 1.0, 2: 0.5}
    assert len(nested(client, first.run_id)) == 2


def test_failures_and_several_quantities_are_logged(uri: str, experiment: str) -> None:
    goal = tv.AllOf(tv.LevelSet(0.5, of="a"), tv.LevelSet(below=1, of="b"))
    study = a_study(goal, noise=None)
    logger = MLflowLogger(experiment, uri)
    study.tell({"x": 0.5}, {"a": 0.1, "b": 0.2})
    study.tell({"x": 0.6}, {"a": 0.3})
    study.fail({"x": 1.0}, "jammed")
    logger(study)
    client = mlflow.MlflowClient(uri)
    assert history(client, logger.run_id, "a") == {1: 0.1, 2: 0.3}
    assert history(client, logger.run_id, "b") == {1: 0.2}
    assert client.get_metric_history(logger.run_id, "best") == []
    *_, failed = nested(client, logger.run_id)
    assert failed.info.status == "FAILED"
    assert failed.data.tags["truvar.reason"] == "jammed"


def test_names_that_mlflow_does_not_take_are_replaced(uri: str, experiment: str) -> None:
    columns = {"depth (m)": [0.0, 1.0], "depth [m]": [0.0, 1.0], "../x": [2.0], "Tiefe/µm": [3.0]}
    goal = tv.AllOf(tv.LevelSet(0.5, of="best"), tv.LevelSet(below=1, of="O2 (%)"))
    study = tv.Study(tv.Domain.grid(**columns), goal)
    point = {"depth (m)": 0.0, "depth [m]": 1.0, "../x": 2.0, "Tiefe/µm": 3.0}
    study.tell(point, {"best": 0.25, "O2 (%)": 0.5}, cost=7.0)
    logger = MLflowLogger(experiment, uri)
    logger(study)
    client = mlflow.MlflowClient(uri)
    metrics = client.get_run(logger.run_id).data.metrics
    assert metrics == {"cost": 7.0, "spent": 7.0, "best_2": 0.25, "O2 ___": 0.5}
    (run,) = nested(client, logger.run_id)
    names = {"depth _m_": "0.0", "depth _m__2": "1.0", "___x": "2.0", "Tiefe/µm": "3.0"}
    assert run.data.params == names


def test_a_server_that_is_long_in_giving_up_does_not_stall_the_study(
    uri: str, experiment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MLflow repeats a request that fails for minutes."""
    study = a_study()
    logger = MLflowLogger(experiment, uri)
    now = [100.0]
    calls = []

    def slow(*_: Any, **__: Any) -> None:
        calls.append(now[0])
        now[0] += 120.0
        raise OSError("connection refused")

    with monkeypatch.context() as patch:
        patch.setattr("truvar.integrations.mlflow.monotonic", lambda: now[0])
        patch.setattr(logger._client, "log_metric", slow)
        with pytest.warns(RuntimeWarning, match="connection refused"):
            study.run(value, steps=3, callbacks=[logger])
        assert len(calls) == 1
        with pytest.warns(RuntimeWarning, match="connection refused"):
            logger.finish(study)  # the last call: it is made in any case, and raises nothing
        assert len(calls) == 2
    logger._next_time = 0.0
    logger(study)
    assert len(history(mlflow.MlflowClient(uri), logger.run_id, "cost")) == 3


def test_without_nested_runs(uri: str, experiment: str) -> None:
    study = a_study()
    logger = MLflowLogger(experiment, uri, nested=False)
    study.run(value, steps=3, callbacks=[logger])
    client = mlflow.MlflowClient(uri)
    assert len(history(client, logger.run_id, "value")) == 3
    assert nested(client, logger.run_id) == []


def test_a_store_that_cannot_be_written_does_not_end_the_run(
    uri: str, experiment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = a_study()
    logger = MLflowLogger(experiment, uri)
    logger(study)

    def broken(*_: Any, **__: Any) -> None:
        raise OSError("no space left")

    with monkeypatch.context() as patch:
        patch.setattr(logger._client, "log_metric", broken)
        with pytest.warns(RuntimeWarning, match="no space left"):
            study.run(value, steps=2, callbacks=[logger])
    assert study.steps == 2
    logger(study)
    client = mlflow.MlflowClient(uri)
    assert len(history(client, logger.run_id, "cost")) == 2
