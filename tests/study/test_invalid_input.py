"""Invalid input is refused with a one-line message that says what was given and what to do, and
changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF
from tests.helpers.invalid_input import (
    DATA,
    GRID,
    HERE,
    INF,
    NAN,
    TABLE,
    a_study,
    assert_same,
    levels,
    refused,
    tasks,
)

import truvar as tv
from truvar.exceptions import (
    ConflictingMeasurementError,
    InvalidArgumentError,
    InvalidMeasurementError,
    StudyStartedError,
    UnknownSuggestionError,
)

# -- telling and asking: the study is as it was
# ----------------------------------------------------------------------


def under_way(**settings: Any) -> tv.Study:
    """A study with values told, asked for and not, two suggestions pending, and travel, so that
    the position counts."""
    study = a_study(cost=tv.Cost(1, travel={"x": 2}), **settings)
    study.tell(study.ask(), 0.2)
    study.tell({"x": 0.25, "y": 0.0}, 0.1)
    study.ask(2)
    return study


class Foreign:
    """A suggestion of another study with the id of one that is pending here."""

    def __call__(self, study: tv.Study) -> None:
        other = a_study(start={"x": 1.0, "y": 1.0})
        other.tell(HERE, 0.0)
        other.tell(HERE, 0.0)
        study.tell(other.ask(), 1.0)


TELLS: dict[str, tuple[Callable[[tv.Study], object], list[str]]] = {
    "NaN": (lambda s: s.tell(3, NAN), ["finite number", "nan", "fail(suggestion, reason)"]),
    "infinite": (lambda s: s.tell(3, INF), ["finite number", "inf"]),
    "NaN at a point": (lambda s: s.tell(HERE, NAN), ["finite number", "nan"]),
    "text": (lambda s: s.tell(3, "high"), ["must be a number", "'high'"]),
    "text that looks like a number": (lambda s: s.tell(3, "1.5"), ["must be a number", "'1.5'"]),
    "None": (lambda s: s.tell(3, None), ["must be a number", "None"]),
    "several values": (lambda s: s.tell(3, [1, 2]), ["must be a number", "[1, 2]"]),
    "truth value": (lambda s: s.tell(3, True), ["must be a number", "True"]),
    "complex": (lambda s: s.tell(3, 1j), ["must be a number", "1j"]),
    "too large": (lambda s: s.tell(3, 10**400), ["must be a number"]),
    "unknown id": (lambda s: s.tell(99, 1.0), ["99", "pending: 3, 4", "the point"]),
    "told before": (
        lambda s: s.tell(1, 1.0),
        ["suggestion 1", "already has the value 0.2", "told by its coordinates"],
    ),
    "no suggestion": (
        lambda s: s.tell("foo", 1.0),
        ["'foo'", "its id or a point such as {'x': 0.0, 'y': 0.0}"],
    ),
    "list": (lambda s: s.tell([0, 1], 1.0), ["[0, 1]", "a point such as"]),
    "array": (lambda s: s.tell(np.zeros((2, 2)), 1.0), ["a point such as"]),
    "another study's": (Foreign(), ["suggestion 3", "another study"]),
    "unknown column": (lambda s: s.tell({"x": 0, "z": 1}, 1.0), ["unknown column 'z'", "x, y"]),
    "missing column": (lambda s: s.tell({"x": 0}, 1.0), ["columns x, y", "'y' is missing"]),
    "NaN coordinate": (lambda s: s.tell({"x": 0, "y": NAN}, 1.0), ["column 'y'", "nan"]),
    "text coordinate": (lambda s: s.tell({"x": 0, "y": "top"}, 1.0), ["column 'y'", "'top'"]),
    "outside": (
        lambda s: s.tell({"x": 2, "y": 0}, 1.0),
        ["not in the domain", "nearest", "{'x': 1.0, 'y': 0.0}"],
    ),
    "negative noise": (lambda s: s.tell(3, 1.0, noise=-1), ["noise must be >= 0", "-1"]),
    "NaN noise": (lambda s: s.tell(3, 1.0, noise=NAN), ["noise must be a finite number", "nan"]),
    "negative cost": (lambda s: s.tell(3, 1.0, cost=-2), ["cost must be >= 0", "-2"]),
    "text cost": (lambda s: s.tell(3, 1.0, cost="high"), ["cost must be a number", "'high'"]),
    "level without levels": (
        lambda s: s.tell(HERE, 1.0, level=0),
        ["no noise levels", "got level 0", "leave it out"],
    ),
    "task without tasks": (lambda s: s.tell(HERE, 1.0, task="g"), ["'g'", "none"]),
    "level of a suggestion": (
        lambda s: s.tell(3, 1.0, level=0),
        ["its own level", "got also level 0"],
    ),
    "task of a suggestion": (
        lambda s: s.tell(3, 1.0, task="f"),
        ["its own level and task", "got also task 'f'"],
    ),
    "withdrawn point": (
        lambda s: s.withdraw(HERE),
        ["a suggestion or its id", "got the point {'x': 0.0"],
    ),
    "withdrawn unknown id": (lambda s: s.withdraw(99), ["99", "pending: 3, 4"]),
    "corrected before told": (
        lambda s: s.correct(3, 1.0),
        ["3 is not one", "measured so far: 1, 2"],
    ),
    "corrected unknown id": (lambda s: s.correct(99, 1.0), ["99 is not one"]),
    "corrected to NaN": (lambda s: s.correct(1, NAN), ["finite number", "nan"]),
    "lease of nothing": (lambda s: s.ask(lease=0), ["lease", "seconds", "0"]),
    "ask for none": (lambda s: s.ask(0), ["whole number >= 1", "0"]),
    "ask for fewer than none": (lambda s: s.ask(-3), ["whole number >= 1", "-3"]),
    "ask for half": (lambda s: s.ask(1.5), ["whole number", "1.5"]),
    "ask for text": (lambda s: s.ask("two"), ["whole number", "'two'"]),
    "fit when begun": (
        lambda s: s.fit(TABLE),
        ["before the first suggestion", "create a new study"],
    ),
    "run nothing": (lambda s: s.run(7), ["f must be a function", "7"]),
    "negative budget": (lambda s: s.run(len, budget=-1), ["budget must be >= 0", "-1"]),
    "NaN budget": (lambda s: s.run(len, budget=NAN), ["budget", "nan"]),
    "text steps": (lambda s: s.run(len, steps="ten"), ["steps", "'ten'"]),
    "half steps": (lambda s: s.run(len, steps=2.5), ["steps", "2.5"]),
    "negative epsilon": (lambda s: s.run(len, epsilon=-0.1), ["epsilon must be >= 0", "-0.1"]),
    "executor that is none": (
        lambda s: s.run(len, steps=9, executor="threads"),
        ["executor", "'threads'"],
    ),
}


@pytest.mark.parametrize("name", TELLS)
def test_a_refused_call_leaves_the_study_as_it_was(name: str) -> None:
    mistake, parts = TELLS[name]
    study = under_way()
    untouched = under_way()
    refused(lambda: mistake(study), *parts)
    assert_same(study, untouched)


EXCEPTIONS: dict[str, type[tv.TruvarError]] = {
    "NaN": InvalidMeasurementError,
    "text": InvalidMeasurementError,
    "negative noise": InvalidMeasurementError,
    "text cost": InvalidMeasurementError,
    "level without levels": InvalidMeasurementError,
    "level of a suggestion": InvalidMeasurementError,
    "corrected to NaN": InvalidMeasurementError,
    "unknown id": UnknownSuggestionError,
    "no suggestion": UnknownSuggestionError,
    "another study's": UnknownSuggestionError,
    "withdrawn point": UnknownSuggestionError,
    "withdrawn unknown id": UnknownSuggestionError,
    "corrected before told": UnknownSuggestionError,
    "told before": ConflictingMeasurementError,
    "fit when begun": StudyStartedError,
    "lease of nothing": InvalidArgumentError,
    "ask for none": InvalidArgumentError,
    "run nothing": InvalidArgumentError,
    "negative budget": InvalidArgumentError,
    "executor that is none": InvalidArgumentError,
}


@pytest.mark.parametrize("name", EXCEPTIONS)
def test_a_refused_call_raises_the_class_that_says_what_went_wrong(name: str) -> None:
    mistake, _ = TELLS[name]
    study = under_way()
    with pytest.raises(EXCEPTIONS[name]) as caught:
        mistake(study)
    assert type(caught.value) is EXCEPTIONS[name]


LEVELS = {"none": None, **{repr(level): level for level in (2, -1, 0.5, 1.0, "0", True, [0])}}


@pytest.mark.parametrize(("given", "level"), LEVELS.items(), ids=LEVELS)
def test_a_point_is_told_with_the_index_of_its_noise_level(given: str, level: Any) -> None:
    study = levels()
    untouched = levels()
    refused(lambda: study.tell(HERE, 1.0, level=level), "0 to 1", f"got {given};")
    assert_same(study, untouched)


@pytest.mark.parametrize("task", ["g", 1, ""])
def test_a_point_is_told_with_the_name_of_its_task(task: Any) -> None:
    study = tasks()
    untouched = tasks()
    refused(lambda: study.tell(HERE, 1.0, task=task), "f, proxy", repr(task))
    assert_same(study, untouched)


@pytest.mark.parametrize(
    ("policy", "rounding"), [("truvar", 1e-12), (None, 1e-7)]
)  # auto takes square roots
def test_a_value_that_contradicts_an_exact_one_is_refused(
    policy: str | None, rounding: float
) -> None:
    study = under_way(noise=0.0, policy=policy)
    untouched = under_way(noise=0.0, policy=policy)
    refused(lambda: study.tell({"x": 0.25, "y": 0.0}, 5.0), "known to be 0.1", "got 5", "noise=...")
    assert_same(study, untouched, rounding=rounding)


def test_a_contradiction_among_pending_suggestions_is_refused() -> None:
    def begun() -> tv.Study:
        study = a_study(tv.Domain.grid(x=[0.0, 1.0]), kernel=RBF(0.1), noise=0.0)
        study.ask(2)
        study.tell({"x": 0.0}, 0.4)
        study.tell({"x": 1.0}, 0.6)
        return study

    study = begun()
    for id_ in (1, 2):
        refused(lambda id_=id_: study.tell(id_, 3.0), "already known", "got 3")
    np.testing.assert_array_equal(study.result().mean, begun().result().mean)
    assert study.pending == begun().pending
    study.tell(2, study.result().mean[study.pending[1].index])  # the value that is known is welcome
    assert [s.id for s in study.pending] == [1]


def test_a_batch_that_fails_half_way_suggests_nothing() -> None:
    def cost(points: Any, last: Any) -> Any:
        return np.ones(len(points)) if last is None or last[0] < 0 else -np.ones(len(points))

    study = a_study(cost=cost, policy="truvar")
    refused(lambda: study.ask(3), "cost must be finite and >= 0", "-1.0")
    assert study.pending == []
    assert study.ask() == a_study(cost=cost, policy="truvar").ask()


def test_the_default_policy_meets_a_wrong_cost_of_a_later_stop_at_the_first_choice() -> None:
    study = a_study(cost=lambda points, last: np.full(len(points), 1.0 if last is None else -1.0))
    refused(study.ask, "cost must be finite and >= 0", "-1.0")
    assert study.pending == []


@pytest.mark.parametrize("bad", [-1.0, 0.0, NAN, "much"])
def test_a_schedule_that_goes_wrong_in_the_middle_of_a_tell_leaves_the_study_as_it_was(
    bad: Any,
) -> None:
    spoilt = {"on": False}

    def beta(start: Any) -> Any:
        return bad if spoilt["on"] else 4.0

    def begun() -> tv.Study:  # every value ends the epoch: eta is far above what is left
        study = a_study(
            policy=tv.TruVaR(beta=beta, eta=0.9, r=0.5),
            noise=1e-4,
            cost=tv.Cost(1, travel={"x": 2}),
        )
        study.tell(study.ask(), 0.2)
        study.ask(2)
        return study

    study = begun()
    untouched = begun()
    points = [GRID.point(i) for i in range(len(GRID))]
    while untouched.epoch == study.epoch:  # the tell that ends the epoch is the one that fails
        spoilt["on"] = False
        untouched.tell(points[untouched.steps], 0.5)
        if untouched.epoch == study.epoch:
            study.tell(points[study.steps], 0.5)
    spoilt["on"] = True
    refused(lambda: study.tell(points[study.steps], 0.5), "the value of the schedule", str(bad))
    spoilt["on"] = False
    study.tell(points[study.steps], 0.5)  # in order again, and told once more
    assert_same(study, untouched)


def test_an_error_of_the_users_own_in_a_schedule_comes_through_and_leaves_the_study_as_it_was() -> (
    None
):
    spoilt = {"on": False}

    def beta(start: Any) -> float:
        if spoilt["on"]:
            raise KeyError("the user's own")
        return 4.0

    def begun() -> tv.Study:
        study = a_study(
            tv.Domain.grid(x=[0.0, 0.5, 1.0]), kernel=RBF(5.0), policy=tv.TruVaR(beta=beta, r=0.5)
        )
        study.ask()
        return study

    study = begun()
    untouched = begun()
    spoilt["on"] = True
    with pytest.raises(KeyError):
        study.tell(1, 0.5)
    spoilt["on"] = False
    assert_same(study, untouched)


# -- learning from another data set, and judging a result
# ------------------------------------------------------------

FITS: dict[str, tuple[Any, str | None, list[str]]] = {
    "two columns of values": (DATA, None, ["v, w", "value=..."]),
    "no column of values": (DATA[["x", "y"]], None, ["are none", "value=..."]),
    "unknown value": (DATA, "depth", ["'depth'", "x, y, v, w"]),
    "missing coordinate": (DATA[["x", "v"]], None, ["'y'", "x, v"]),
    "one row": (DATA[["x", "y", "v"]][:1], None, ["at least 2 rows", "has 1"]),
    "NaN value": (DATA.assign(v=[1, NAN, 2, 3]), "v", ["row 1", "nan"]),
    "infinite coordinate": (DATA.assign(x=[1, 1, 2, INF]), "v", ["row 3", "inf"]),
    "values in words": (DATA.assign(v="high"), "v", ["'v'", "row 0", "'high'"]),
    "no file": ("nowhere.csv", None, ["nowhere.csv"]),
    "an array": (np.zeros((3, 3)), None, ["DataFrame or the path"]),
}


@pytest.mark.parametrize("name", FITS)
def test_a_data_set_that_cannot_be_learned_from_is_refused(name: str) -> None:
    data, value, parts = FITS[name]
    study = a_study()
    refused(lambda: study.fit(data, value), *parts)
    assert_same(study, a_study())


def test_a_result_is_judged_by_its_own_measure_and_by_as_many_values_as_points() -> None:
    level_set = a_study().result()
    optimum = a_study(goal=tv.Maximize()).result()
    refused(lambda: level_set.regret(np.zeros(20)), "LevelSet", "f1(truth)")
    refused(lambda: optimum.f1(np.zeros(20)), "Maximize", "regret(truth)")
    refused(lambda: level_set.f1([1, 2]), "(20,)", "(2,)")
    refused(lambda: level_set.f1(np.r_[np.zeros(19), NAN]), "index 19", "nan")
    refused(lambda: optimum.regret("much"), "'much'")
    refused(lambda: optimum.regret(lambda point: 0.0), "true optimum", "optimum=...")
