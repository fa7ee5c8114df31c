"""A study here and a study on a server have the members of `BaseStudy` and answer alike."""

from __future__ import annotations

import ast
import inspect
import itertools
import json
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.helpers.server import GRID

import truvar as tv
from truvar._deprecation import deprecated_attribute
from truvar.exceptions import (
    ConflictingMeasurementError,
    InvalidArgumentError,
    InvalidMeasurementError,
    UnknownSuggestionError,
    UnsupportedGoalError,
)
from truvar.problem import problem_from_dict
from truvar.remote.study import RemoteStudy
from truvar.service import Server
from truvar.study._command_methods import CommandMethods
from truvar.study._view_methods import ViewMethods
from truvar.study.base import BaseStudy
from truvar.study.commands import INTERFACES

NUMBERS = itertools.count()


def measure(point: dict[str, float]) -> float:
    return float(np.sin(3 * point["x"]) * np.cos(2 * point["y"]))


def local_study(_: Any) -> BaseStudy:
    import tomllib

    return problem_from_dict(tomllib.loads(GRID)).study(name="local", author="Ada")


def remote_study(request: pytest.FixtureRequest) -> BaseStudy:
    api, _ = request.getfixturevalue("served")
    return Server(api.url, author="Ada").create(GRID, f"protocol {next(NUMBERS)}")


def script(study: BaseStudy) -> dict[str, Any]:
    """Use every member of the protocol; return all answers."""
    answers: dict[str, Any] = {
        "problem": (
            study.goal,
            study.policy,
            study.seed,
            study.limits,
            study.levels,
            study.travels,
            study.learns_cost,
            study.quantity,
        ),
        "tasks": (study.tasks, study.learned_tasks),
        "points": study.domain.points.tolist(),
        "author": study.author,
        "name is text": isinstance(study.name, str),
    }
    first = study.ask()
    answers["before the first value"] = (
        study.predict_measurement(first),
        study.lookahead(first),
        study.explain(first).why,
        study.finished,
        study.exhausted,
    )
    assert study.tell(first, measure(first.point)) == first.id
    assert study.tell(first, measure(first.point)) == first.id  # repeated: nothing changes
    batch = study.ask(3, lease=3600)
    study.tell(batch[2].id, 0.125, cost=2.0)
    study.withdraw(batch[0])
    id_ = study.tell({"x": 0.0, "y": 1.0}, 0.75, noise=0.02, key="boat-2026-05")
    study.correct(id_, 0.5)
    answers["repeats"] = study.tell_repeats({"x": 1.0, "y": 0.0}, [0.25, 0.5], key="boat-2026-06")
    answers["vehicles"] = (study.repeats, study.vehicles, study.must_return, study.vehicle_statuses)
    assert study.check_value({"x": 0.5, "y": 0.5}, 0.1) is None
    answers["typing mistake"] = study.check_value({"x": 0.5, "y": 0.5}, 5000.0)
    study.exclude({"x": (0.9, 1.0)}, reason="shipping lane")
    study.exclude("x + y > 1.9")
    study.allow({"x": (0.95, 1.0)})
    study.fail({"x": 0.0, "y": 0.0}, "no signal", cost=0.5)
    study.fail(study.ask(), "stuck")
    answers["failures"] = study.failures
    frame = study.ask_frame(2)
    answers["frame"] = (
        list(frame.columns),
        study.tell_frame(frame.assign(value=[0.5, None]).head(1)),
    )
    study.withdraw(int(frame["id"].iloc[1]))
    track = pd.DataFrame({"x": [0.5, 0.5, 0.5], "y": [0.25, 0.25, 0.5], "value": [0.3, 0.32, 0.4]})
    answers["track"] = study.tell_track(track, noise_sd=0.1)
    study.note("a remark")
    study.refresh()
    with pytest.raises(UnknownSuggestionError, match="99"):
        study.tell(99, 1.0)
    with pytest.raises(ConflictingMeasurementError, match="already has the value"):
        study.tell(first, 5.0)
    with pytest.raises(InvalidMeasurementError, match="noise must be >= 0"):
        study.tell(first, 1.0, noise=-1.0)
    with pytest.raises(InvalidMeasurementError, match="cost must be >= 0"):
        study.correct(first, 1.0, cost=-1.0)
    with pytest.raises(InvalidArgumentError, match="has no context"):
        study.best_for({"x": 0.5})
    answers["pending"] = study.pending
    calls: list[int] = []
    result = study.run(measure, steps=9, progress=lambda running: calls.append(running.steps))
    answers["progress"] = calls
    with ThreadPoolExecutor(1) as pool:
        result = study.run(measure, steps=11, executor=pool, resume=True)
    answers["reason"] = result.reason
    for name in (
        "mean",
        "sd",
        "lower",
        "upper",
        "potential",
        "above",
        "below",
        "excluded",
        "feasibility",
    ):
        answers[name] = getattr(result, name).tolist()
    answers["result"] = study.result().to_dict()
    assert answers["result"] == result.to_dict()
    answers["numbers"] = (study.version, study.steps, study.spent, study.epsilon)
    answers["predictions"] = [array.tolist() for array in study.predict([[0.33, 0.2], [0.5, 0.9]])]
    answers["measurements"] = (
        study.measurements.astype(object).where(study.measurements.notna(), None).to_dict("records")
    )
    answers["records"] = [asdict(record) for record in study.measurement_records()]
    answers["history"] = study.history.to_dict("records")
    events = study.events
    answers["events"] = list(zip(events["number"], events["who"], events["kind"], strict=True))
    answers["exported events"] = len(json.loads(study.to_json())["events"])
    with tempfile.TemporaryDirectory() as folder:
        answers["workbook"] = study.to_excel(Path(folder, "study.xlsx")).name
    answers["axes of the figure"] = len(study.plot().axes)
    answers["axes of the model check"] = len(study.plot_model_check().axes)
    answers["limit"] = (study.check_stop(f1=0.01), study.check_stop(f1=0.9999))
    with pytest.raises(UnsupportedGoalError, match="needs an optimum"):
        study.improvement_per_cost()
    check = result.model_check
    answers["model check"] = [
        check.ok,
        check.message,
        check.coverage,
        check.failure,
        check.misfit,
        check.degrees,
    ]
    answers["leave-one-out"] = [
        check.ids,
        check.z_scores.tolist(),
        check.means.tolist(),
        check.sds.tolist(),
    ]
    return answers


@pytest.mark.parametrize("make", [local_study, remote_study])
def test_a_script_gives_the_same_answers_with_a_study_here_and_on_a_server(
    make: Callable[[Any], BaseStudy], request: pytest.FixtureRequest
) -> None:
    pytest.importorskip("matplotlib")
    pytest.importorskip("openpyxl", reason="needs truvar[excel]")
    if make is remote_study:
        pytest.importorskip("fastapi", reason="needs truvar[service]")
    answers = script(make(request))
    expected = script(local_study(request))
    assert answers.keys() == expected.keys()
    for name, answer in answers.items():
        assert answer == expected[name], name


def members() -> set[str]:
    """Public members, but for deprecated ones, those that a server refuses, and `execute`, which
    the methods call."""
    declared = {
        name
        for cls in (CommandMethods, ViewMethods, BaseStudy)
        for name, member in {**cls.__annotations__, **vars(cls)}.items()
        if not isinstance(member, deprecated_attribute)
    }
    return {name for name in declared if not name.startswith("_")} - {
        "execute",
        "fit",
        "transaction",
        "who",
    }


def test_the_script_uses_every_member_of_the_protocol() -> None:
    """But for commands that arrive at a server as they were sent, by a test of `INTERFACES`."""
    tree = ast.parse(inspect.getsource(script))
    used = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "study"
    }
    plain = {command.name for command in INTERFACES}
    assert members() - plain <= used <= members()


@pytest.mark.parametrize("study_class", [tv.Study, RemoteStudy])
def test_the_parameters_of_every_method_are_those_of_the_protocol(study_class: type) -> None:
    for name in members():
        declared = getattr(BaseStudy, name, None)
        if not inspect.isfunction(declared):
            continue
        wanted = {
            each: parameter.default
            for each, parameter in inspect.signature(declared).parameters.items()
        }
        actual = {
            each: parameter.default
            for each, parameter in inspect.signature(getattr(study_class, name)).parameters.items()
        }
        assert actual == wanted, name


def test_a_lookahead_has_the_same_fields_here_and_on_a_server(
    request: pytest.FixtureRequest,
) -> None:
    pytest.importorskip("fastapi", reason="needs truvar[service]")
    here = local_study(request)
    there = remote_study(request)
    for study in (here, there):
        study.tell({"x": 0.0, "y": 0.0}, 0.3)
    suggestion = here.ask()
    assert there.ask() == suggestion
    ahead = here.lookahead(suggestion)
    assert ahead is not None
    assert there.lookahead(suggestion) == ahead
    assert set(asdict(ahead)) == {"undecided", "expected_decided", "variance_reduction"}
