"""The generator of the gest-api standard: the standard's own tests with our class, and what they
leave open."""

from __future__ import annotations

import copy
import math
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import truvar as tv
from truvar.exceptions import InvalidArgumentError

pytest.importorskip("gest_api", reason="needs truvar[gest]")

from gest_api import generator as standard
from gest_api.tests import test_generator as suite
from gest_api.vocs import VOCS, ContinuousVariable

from truvar.integrations.gest import TruVaRGenerator

# The tests of the standard that are about any generator. The others are about its example, which
# draws at random:
# - test_gen_fails_with_discrete_variable: discrete variables are supported here
# - test_suggest_max_points: a constant of that name is the example's own rule
# - test_gen_with_constraints: has the example's random numbers
GENERIC = (
    "test_gen_fails_without_variable",
    "test_gen_fails_without_objective",
    "test_best_point_selection",
    "test_gen_has_constant_alpha",
    "test_suggest_default_single_point",
)


@pytest.mark.parametrize("name", GENERIC)
def test_the_suite_of_the_standard_passes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suite, "RandomGenerator", TruVaRGenerator)
    getattr(suite, name)()
    assert issubclass(TruVaRGenerator, standard.Generator)


def test_every_test_of_the_suite_is_run_or_left_out_with_a_reason() -> None:
    left_out = {
        "test_gen_fails_with_discrete_variable",
        "test_suggest_max_points",
        "test_gen_with_constraints",
    }
    assert {name for name in vars(suite) if name.startswith("test_")} == {*GENERIC, *left_out}


def a_generator(**options: object) -> TruVaRGenerator:
    vocs = VOCS(
        variables={
            "x": [0.0, 1.0],
            "kind": {"a", "b"},
            "n": ContinuousVariable(domain=[1, 4], dtype="int64"),
        },
        objectives={"f": "MINIMIZE"},
        constants={"alpha": 2.5},
        observables=["temp"],
    )
    return TruVaRGenerator(vocs, representers=60, noise=0.01, **options)  # type: ignore[arg-type]


def value(point: dict) -> float:
    return (point["x"] - 0.3) ** 2 + (point["kind"] == "b") + 0.1 * point["n"]


def test_suggestions_have_all_variables_constants_and_an_id() -> None:
    generator = a_generator(n_points=3)
    points = generator.suggest()
    assert len(points) == 3
    assert len(generator.suggest(2)) == 2
    for point in points:
        assert set(point) == {"x", "kind", "n", "alpha", "_id"}
        assert 0 <= point["x"] <= 1
        assert point["kind"] in "ab"
        assert isinstance(point["n"], int)
        assert point["alpha"] == 2.5
    assert len({point["_id"] for point in points}) == 3


def test_variables_may_have_the_names_of_options() -> None:
    names = ("seed", "constraints", "representers", "goal", "cls")
    vocs = VOCS(variables={name: [0, 1] for name in names}, objectives={"f": "MINIMIZE"})
    generator = TruVaRGenerator(vocs, representers=40, noise=0.01)
    (point,) = generator.suggest(1)
    assert set(point) == {*names, "_id"}
    generator.ingest([{**point, "f": 1.0}])
    assert generator.study.steps == 1
    assert len(generator.study.domain) == 40


def test_evaluations_come_in_any_order_and_the_minimum_is_found() -> None:
    generator = a_generator()
    for _ in range(6):
        points = generator.suggest(3)
        generator.ingest([{**point, "f": value(point), "temp": 1.0} for point in reversed(points)])
    assert generator.study.steps == 18
    assert not generator.study.pending
    best = generator.best_point
    assert best is not None
    assert (best["kind"], best["n"]) == ("a", 1)
    assert generator.study.result().best.point["kind"] == "a"


def test_what_was_not_suggested_is_learned_from_and_unknown_ids_are_refused() -> None:
    generator = a_generator()
    generator.ingest([{"x": 0.5, "kind": "a", "n": 2, "alpha": 2.5, "f": 1.0, "_id": math.nan}])
    assert generator.study.steps == 1
    generator.suggest(1)
    with pytest.raises(ValueError, match="99"):
        generator.ingest(
            [
                {"x": 0.5, "kind": "a", "n": 2, "f": 1.0},
                {"x": 0.1, "kind": "a", "n": 2, "f": 1, "_id": 99},
            ]
        )
    assert generator.study.steps == len(generator.data) == 1  # nothing of a refused call is kept
    with pytest.raises(ValueError, match="needs the key 'f'"):
        generator.ingest([{"x": 0.5, "kind": "a", "n": 2}])
    with pytest.raises(ValueError, match="must lie within the variables' domains"):
        generator.ingest([{"x": 7.0, "kind": "a", "n": 2, "f": 1.0}])


def test_ids_of_an_earlier_run_are_taken_until_a_point_was_suggested() -> None:
    first = a_generator()
    rows = [{**point, "f": value(point)} for point in first.suggest(3)]
    first.ingest(rows)
    second = a_generator()
    second.ingest(rows[::-1])  # their ids are 3, 2, 1: nothing is taken for a repetition
    assert second.study.steps == 3
    second.ingest(rows[::-1][1:2])  # the id, point and value of a recorded evaluation
    assert second.study.steps == 3
    assert second.best_point == first.best_point
    assert first.suggest(2)[0].keys() == second.suggest(2)[0].keys()


def test_data_that_are_assigned_withdraw_the_others() -> None:
    generator = a_generator()
    generator.ingest([{**point, "f": value(point)} for point in generator.suggest(3)])
    kept = generator.data[1]
    generator.data = pd.DataFrame([kept])
    assert generator.data == [kept]
    assert generator.study.measurements["value"].tolist() == [kept["f"]]
    generator.data = None
    assert generator.best_point is None
    assert generator.study.steps == 0


def test_a_set_of_one_truth_value_is_not_left() -> None:
    vocs = VOCS(
        variables={"x": [0.0, 1.0], "shutter": {True}, "lamp": {True, False}},
        objectives={"f": "MINIMIZE"},
    )
    points = TruVaRGenerator(vocs, representers=50).suggest(8)
    assert {point["shutter"] for point in points} == {True}
    assert {point["lamp"] for point in points} == {True, False}


def test_numbers_in_arrays_are_numbers_and_others_are_refused_by_name() -> None:
    generator = a_generator()
    point = {"x": 0.5, "kind": "a", "n": 2}
    generator.ingest([{**point, "f": np.array([1.5])}, {**point, "f": pd.NA}])
    assert generator.study.measurements["value"].tolist() == [1.5]
    assert [each.reason for each in generator.study.failures] == ["objective f: got <NA>"]
    assert generator.best_point is not None
    for wrong in ("hot", 1j, np.array([1.0, 2.0]), [], {}):
        with pytest.raises(InvalidArgumentError, match="'f' must be a number, got "):
            generator.ingest([{**point, "f": wrong}])
    limited = TruVaRGenerator(
        VOCS(
            variables={"x": [0, 1]},
            objectives={"f": "MINIMIZE"},
            constraints={"temp": ["LESS_THAN", 4.0]},
        )
    )
    with pytest.raises(InvalidArgumentError, match="'temp' must be a number, got 'hot'"):
        limited.ingest([{"x": 0.5, "f": 1.0, "temp": "hot"}])
    assert (generator.study.steps, limited.study.steps) == (1, 0)


def test_data_of_a_run_that_continues_a_stored_study(tmp_path: Path) -> None:
    """Xopt hands over its own rows alone: those of earlier runs and of other workers stay."""
    pytest.importorskip("sqlalchemy", reason="needs truvar[store]")
    place = {"store": f"sqlite:///{tmp_path / 'runs.db'}", "name": "run"}
    first = a_generator(**place)
    first.ingest([{**point, "f": value(point)} for point in first.suggest(3)])
    second = a_generator(**place)
    first.ingest([{**point, "f": value(point)} for point in first.suggest(1)])  # another worker
    rows = [{**point, "f": value(point)} for point in second.suggest(3)]
    second.ingest(rows)
    second.data = pd.DataFrame(rows).drop(index=1)
    assert second.study.measurements["id"].tolist() == [1, 2, 3, 4, 5, 7]
    second.data = pd.DataFrame(rows).drop(index=[0, 1, 2])
    assert second.study.measurements["id"].tolist() == [1, 2, 3, 4]
    second.data = second.data[:2]  # who gives some of the earlier rows leaves out the others
    assert second.study.measurements["id"].tolist() == [1, 2, 4]
    second.data = pd.DataFrame()
    assert second.study.measurements["id"].tolist() == [4]


def test_rows_that_were_refused_are_recognised_when_they_come_again(tmp_path: Path) -> None:
    pytest.importorskip("sqlalchemy", reason="needs truvar[store]")
    place = {"store": f"sqlite:///{tmp_path / 'runs.db'}", "name": "run"}
    first = a_generator(**place)
    rows = [{**point, "f": value(point)} for point in first.suggest(2)]
    first.ingest(rows)
    frame = pd.DataFrame(rows).drop(columns="_id")
    second = a_generator(**place)
    with pytest.raises(ValueError, match="must lie within"):
        second.add_data(pd.concat([frame, frame.assign(x=9.0)]))
    second.add_data(frame)
    assert second.study.steps == 2


def test_rows_that_were_rounded_in_a_dump_are_those_of_the_stored_study(tmp_path: Path) -> None:
    """Dumps of Xopt keep ten decimals."""
    pytest.importorskip("sqlalchemy", reason="needs truvar[store]")
    vocs = VOCS(variables={"x": [0.0, 0.02]}, objectives={"f": "MINIMIZE"})
    place = {"store": f"sqlite:///{tmp_path / 'runs.db'}", "name": "run", "representers": 50}
    first = TruVaRGenerator(vocs, **place)
    for _ in range(4):
        first.ingest([{**point, "f": point["x"] / 3} for point in first.suggest(1)])
    rounded = pd.DataFrame(first.data).round(10)
    assert (rounded["f"] != pd.DataFrame(first.data)["f"]).any()
    for columns in ([], ["_id"]):
        second = TruVaRGenerator(vocs, **place)
        second.add_data(rounded.drop(columns=columns))
        assert second.study.steps == 4


def test_a_table_of_evaluations_is_added_once_and_a_copy_is_independent() -> None:
    generator = a_generator()
    frame = pd.DataFrame([{**point, "f": value(point)} for point in generator.suggest(2)])
    generator.add_data(frame)
    generator.add_data(frame)
    assert generator.study.steps == 2
    other = copy.deepcopy(generator)
    other.ingest([{**point, "f": value(point)} for point in other.generate(1)])
    assert (generator.study.steps, other.study.steps) == (2, 3)


def test_a_suggestion_that_comes_back_without_its_id_is_recognised() -> None:
    generator = a_generator()
    point = generator.suggest(1)[0]
    del point["_id"]
    generator.ingest([{**point, "f": 1.0}])
    assert not generator.study.pending


def test_another_point_than_the_suggested_one_is_recorded_where_it_was_evaluated() -> None:
    generator = a_generator()
    point = generator.suggest(1)[0]
    moved = {**point, "x": 1.0 - point["x"] if abs(point["x"] - 0.5) > 0.01 else 0.9}
    generator.ingest([{**moved, "f": 1.0}])
    assert not generator.study.pending
    assert generator.study.measurements["x"].tolist() == [moved["x"]]


def test_violated_constraints_and_missing_values_are_failures() -> None:
    vocs = VOCS(
        variables={"x": [0, 1]}, objectives={"f": "MAXIMIZE"}, constraints={"c": ["LESS_THAN", 0.5]}
    )
    generator = TruVaRGenerator(vocs, representers=40, noise=0.01)
    first, second, third = generator.suggest(3)
    generator.ingest(
        [
            {**first, "f": 5.0, "c": 0.9},
            {**second, "f": 1.0, "c": 0.1},
            {**third, "f": math.nan, "c": 0},
        ]
    )
    assert [failure.reason for failure in generator.study.failures] == [
        "constraint c: got 0.9",
        "objective f: got nan",
    ]
    assert generator.best_point == {**second, "f": 1.0, "c": 0.1}
    assert generator.study.steps == 1


def test_an_objective_to_explore_needs_a_level_set() -> None:
    vocs = VOCS(variables={"x": [0, 1]}, objectives={"f": "EXPLORE"})
    with pytest.raises(ValueError, match=r"give goal=truvar\.LevelSet"):
        TruVaRGenerator(vocs)
    generator = TruVaRGenerator(vocs, goal=tv.LevelSet(0.5), representers=20, noise=0.01)
    generator.ingest([{**point, "f": point["x"]} for point in generator.suggest(2)])
    assert generator.study.result().classification is not None


def test_a_goal_of_several_quantities_is_refused_before_anything_is_evaluated() -> None:
    vocs = VOCS(variables={"x": [0, 1]}, objectives={"f": "MAXIMIZE"})
    several = tv.AllOf(tv.LevelSet(0.5, of="f"), tv.LevelSet(1, of="g"))
    for goal in (several, tv.Maximize("f", subject_to="g <= 1")):
        with pytest.raises(InvalidArgumentError, match="must be about the one objective 'f'"):
            TruVaRGenerator(vocs, goal=goal)


@pytest.mark.parametrize(
    ("problem", "message"),
    [
        (
            {"variables": {"x": [0, 1]}, "objectives": {"f": "MINIMIZE", "g": "MINIMIZE"}},
            "needs one objective, got f, g",
        ),
        (
            {"variables": {"x": "CONTEXTUAL"}, "objectives": {"f": "MINIMIZE"}},
            "must have a finite domain",
        ),
        (
            {"variables": {"x": {0.5, math.nan}}, "objectives": {"f": "MINIMIZE"}},
            "must differ from NaN",
        ),
    ],
)
def test_problems_that_cannot_be_searched_are_refused(problem: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TruVaRGenerator(VOCS(**problem))


def test_a_generator_can_be_sent_to_another_process_and_closed() -> None:
    generator = a_generator()
    generator.ingest([{**generator.suggest(1)[0], "f": 1.0}])
    other = pickle.loads(pickle.dumps(generator))
    assert other.suggest(2) == generator.suggest(2)
    generator.finalize()
    assert not generator.study.pending
    assert generator.study.steps == 1


def test_a_stored_generator_is_continued(tmp_path: Path) -> None:
    pytest.importorskip("sqlalchemy", reason="needs truvar[store]")
    place = {"store": f"sqlite:///{tmp_path / 'runs.db'}", "name": "a"}
    first = a_generator(**place)
    first.ingest([{**point, "f": value(point)} for point in first.suggest(3)])
    waiting = first.suggest(1)[0]
    second = a_generator(**place)
    assert second.data == first.data
    assert second.best_point == first.best_point
    second.ingest([{**waiting, "f": 1.0}])
    assert tv.load(place["store"], "a").steps == 4
    assert not second.study.pending
    assert {"x", "kind", "n", "alpha", "_id"} == set(second.suggest(1)[0])


@pytest.mark.parametrize(
    ("problem", "message"),
    [
        (
            {"variables": {"x": [0, 2]}, "objectives": {"f": "MINIMIZE"}},
            "'a' must have the variables of VOCS",
        ),
        (
            {"variables": {"x": [0, 1]}, "objectives": {"f": "MAXIMIZE"}},
            "'a' must have the goal Maximize",
        ),
    ],
)
def test_a_stored_study_of_something_else_is_not_continued(
    problem: dict, message: str, tmp_path: Path
) -> None:
    pytest.importorskip("sqlalchemy", reason="needs truvar[store]")
    options = {
        "representers": 20,
        "noise": 0.01,
        "store": f"sqlite:///{tmp_path / 'runs.db'}",
        "name": "a",
    }
    TruVaRGenerator(VOCS(variables={"x": [0, 1]}, objectives={"f": "MINIMIZE"}), **options)
    with pytest.raises(ValueError, match=message):
        TruVaRGenerator(VOCS(**problem), **options)
    assert tv.load(options["store"], "a").steps == 0
