"""Every mistake of a user is refused with one line, what came and what to do instead, and changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Exponentiation, WhiteKernel

import truvar as tv

GRID = tv.Domain.grid(x=np.linspace(0, 1, 5), y=np.linspace(0, 1, 4))
TABLE = pd.DataFrame({"a": [0.0, 1, 2], "b": [0.0, 0, 1], "price": [1.0, -2, 3], "kind": ["p", "q", "r"]})
KERNEL = ConstantKernel(1.0) * RBF(0.3)
NAN, INF = float("nan"), float("inf")
HERE = {"x": 0.0, "y": 0.0}


def a_study(domain: tv.Domain = GRID, goal: Any = None, **settings: Any) -> tv.Study:
    known = {"kernel": KERNEL, "mean": 0.0, "noise": 0.01, **settings}
    return tv.Study(domain, goal or tv.LevelSet(0.5), **known)


def levels(**settings: Any) -> tv.Study:
    return a_study(noise=tv.NoiseLevels([1e-3, 0.1], [3, 1]), **settings)


def tasks(**options: Any) -> tv.Study:
    return a_study(tasks=tv.Tasks([[1, 0.5], [0.5, 1]], ["f", "proxy"], **options))


def refused(mistake: Callable[[], object], *parts: str) -> None:
    """The mistake raises a TruvarError of one line that holds all the parts and says what to do instead."""
    with pytest.raises(tv.TruvarError) as caught:
        mistake()
    message = str(caught.value)
    assert "\n" not in message
    assert isinstance(caught.value, ValueError)
    for part in parts:
        assert part in message
    assert any(mark in message for mark in ("; ", ": ", "for example")), f"no remedy in {message!r}"


def assert_same(one: tv.Study, other: tv.Study) -> None:
    """Two studies stand at the same place, and go on alike."""
    a, b = one.result(), other.result()
    for name in ("potential", "above", "below", "mean", "sd", "lower", "upper"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)
    assert a.to_dict() == b.to_dict()
    assert one.pending == other.pending
    assert one.epoch == other.epoch
    assert one.finished == other.finished
    pd.testing.assert_frame_equal(one.measurements, other.measurements)
    pd.testing.assert_frame_equal(one.history, other.history)
    for y in (0.7, -0.4):
        mine, theirs = one.ask(), other.ask()
        assert mine == replace(theirs, gain=mine.gain)
        assert mine.gain == pytest.approx(theirs.gain, rel=1e-9)
        one.tell(mine, y)
        other.tell(theirs, y)
    np.testing.assert_array_equal(one.result().mean, other.result().mean)
    np.testing.assert_allclose(one.gains(), other.gains(), rtol=0, atol=1e-12)  # an engine may add in another order


# -- telling and asking: the study is as it was ----------------------------------------------------------------------


def under_way(**settings: Any) -> tv.Study:
    """A study with values told, asked for and not, two suggestions pending, and travel, so that the position counts."""
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
    "NaN": (lambda s: s.tell(3, NAN), ["finite number", "nan"]),
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
    "told before": (lambda s: s.tell(1, 1.0), ["suggestion 1", "told already", "told by its point"]),
    "no suggestion": (lambda s: s.tell("foo", 1.0), ["'foo'", "its id or a point such as {'x': 0.0, 'y': 0.0}"]),
    "list": (lambda s: s.tell([0, 1], 1.0), ["[0, 1]", "a point such as"]),
    "array": (lambda s: s.tell(np.zeros((2, 2)), 1.0), ["a point such as"]),
    "another study's": (Foreign(), ["suggestion 3", "another study"]),
    "unknown column": (lambda s: s.tell({"x": 0, "z": 1}, 1.0), ["columns x, y", "'z' is none of them"]),
    "missing column": (lambda s: s.tell({"x": 0}, 1.0), ["columns x, y", "'y' is missing"]),
    "NaN coordinate": (lambda s: s.tell({"x": 0, "y": NAN}, 1.0), ["column 'y'", "nan"]),
    "text coordinate": (lambda s: s.tell({"x": 0, "y": "top"}, 1.0), ["column 'y'", "'top'"]),
    "outside": (lambda s: s.tell({"x": 2, "y": 0}, 1.0), ["not in the domain", "nearest", "{'x': 1.0, 'y': 0.0}"]),
    "negative noise": (lambda s: s.tell(3, 1.0, noise=-1), ["noise cannot be negative", "-1"]),
    "NaN noise": (lambda s: s.tell(3, 1.0, noise=NAN), ["noise must be a finite number", "nan"]),
    "negative cost": (lambda s: s.tell(3, 1.0, cost=-2), ["cost cannot be negative", "-2"]),
    "text cost": (lambda s: s.tell(3, 1.0, cost="dear"), ["cost must be a number", "'dear'"]),
    "level without levels": (
        lambda s: s.tell(HERE, 1.0, level=0),
        ["no noise levels", "level 0 was given", "leave it out"],
    ),
    "task without tasks": (lambda s: s.tell(HERE, 1.0, task="g"), ["'g'", "none"]),
    "level of a suggestion": (lambda s: s.tell(3, 1.0, level=0), ["its own level", "a level came (0)"]),
    "task of a suggestion": (lambda s: s.tell(3, 1.0, task="f"), ["its own level and task", "a task came (f)"]),
    "withdrawn point": (lambda s: s.withdraw(HERE), ["a suggestion or its id", "a point came"]),
    "withdrawn unknown id": (lambda s: s.withdraw(99), ["99", "pending: 3, 4"]),
    "corrected before told": (lambda s: s.correct(3, 1.0), ["was told, but 3 was not", "told so far are 1, 2"]),
    "corrected unknown id": (lambda s: s.correct(99, 1.0), ["was told, but 99 was not"]),
    "corrected to NaN": (lambda s: s.correct(1, NAN), ["finite number", "nan"]),
    "lease of nothing": (lambda s: s.ask(lease=0), ["lease", "seconds", "0"]),
    "ask for none": (lambda s: s.ask(0), ["whole number of at least 1", "0"]),
    "ask for fewer than none": (lambda s: s.ask(-3), ["whole number of at least 1", "-3"]),
    "ask for half": (lambda s: s.ask(1.5), ["whole number", "1.5"]),
    "ask for text": (lambda s: s.ask("two"), ["whole number", "'two'"]),
    "fit when begun": (lambda s: s.fit(TABLE), ["before the first suggestion", "make a new one"]),
    "run nothing": (lambda s: s.run(7), ["f must be a function", "7"]),
    "negative budget": (lambda s: s.run(len, budget=-1), ["budget cannot be negative", "-1"]),
    "NaN budget": (lambda s: s.run(len, budget=NAN), ["budget", "nan"]),
    "text steps": (lambda s: s.run(len, steps="ten"), ["steps", "'ten'"]),
    "half steps": (lambda s: s.run(len, steps=2.5), ["steps", "2.5"]),
    "negative epsilon": (lambda s: s.run(len, epsilon=-0.1), ["epsilon cannot be negative", "-0.1"]),
    "executor that is none": (lambda s: s.run(len, steps=9, executor="threads"), ["executor", "'threads'"]),
}


@pytest.mark.parametrize("name", TELLS)
def test_a_refused_call_leaves_the_study_as_it_was(name: str) -> None:
    mistake, parts = TELLS[name]
    study, untouched = under_way(), under_way()
    refused(lambda: mistake(study), *parts)
    assert_same(study, untouched)


LEVELS = {"none came": None, **{f"it was {level!r}": level for level in (2, -1, 0.5, 1.0, "0", True, [0])}}


@pytest.mark.parametrize(("came", "level"), LEVELS.items(), ids=LEVELS)
def test_a_point_is_told_with_the_index_of_its_noise_level(came: str, level: Any) -> None:
    study, untouched = levels(), levels()
    refused(lambda: study.tell(HERE, 1.0, level=level), "0 to 1", f"but {came}")
    assert_same(study, untouched)


@pytest.mark.parametrize("task", ["g", 1, ""])
def test_a_point_is_told_with_the_name_of_its_task(task: Any) -> None:
    study, untouched = tasks(), tasks()
    refused(lambda: study.tell(HERE, 1.0, task=task), "f, proxy", repr(task))
    assert_same(study, untouched)


def test_a_value_that_contradicts_an_exact_one_is_refused() -> None:
    study, untouched = under_way(noise=0.0), under_way(noise=0.0)
    refused(lambda: study.tell({"x": 0.25, "y": 0.0}, 5.0), "known to be 0.1", "but 5 came", "noise=...")
    assert_same(study, untouched)


def test_a_contradiction_among_pending_suggestions_is_refused() -> None:
    def begun() -> tv.Study:
        study = a_study(tv.Domain.grid(x=[0.0, 1.0]), kernel=RBF(0.1), noise=0.0)
        study.ask(2)
        study.tell({"x": 0.0}, 0.4)
        study.tell({"x": 1.0}, 0.6)
        return study

    study = begun()
    for id_ in (1, 2):
        refused(lambda id_=id_: study.tell(id_, 3.0), "already known", "but 3 came")
    np.testing.assert_array_equal(study.result().mean, begun().result().mean)
    assert study.pending == begun().pending
    study.tell(2, study.result().mean[study.pending[1].index])  # the value that is known is welcome
    assert [s.id for s in study.pending] == [1]


def test_a_batch_that_fails_half_way_suggests_nothing() -> None:
    def cost(points: Any, last: Any) -> Any:
        return np.ones(len(points)) if last is None or last[0] < 0 else -np.ones(len(points))

    study = a_study(cost=cost)
    refused(lambda: study.ask(3), "cost must be finite and not negative", "-1.0")
    assert study.pending == []
    assert study.ask() == a_study(cost=cost).ask()


@pytest.mark.parametrize("bad", [-1.0, 0.0, NAN, "much"])
def test_a_schedule_that_goes_wrong_in_the_middle_of_a_tell_leaves_the_study_as_it_was(bad: Any) -> None:
    spoilt = {"on": False}

    def beta(start: Any) -> Any:
        return bad if spoilt["on"] else 4.0

    def begun() -> tv.Study:  # every value ends the epoch: eta is far above what is left
        study = a_study(policy=tv.TruVaR(beta=beta, eta=0.9, r=0.5), noise=1e-4, cost=tv.Cost(1, travel={"x": 2}))
        study.tell(study.ask(), 0.2)
        study.ask(2)
        return study

    study, untouched = begun(), begun()
    points = [GRID.point(i) for i in range(len(GRID))]
    while untouched.epoch == study.epoch:  # the tell that ends the epoch is the one that fails
        spoilt["on"] = False
        untouched.tell(points[untouched.steps], 0.5)
        if untouched.epoch == study.epoch:
            study.tell(points[study.steps], 0.5)
    spoilt["on"] = True
    refused(lambda: study.tell(points[study.steps], 0.5), "what the schedule", str(bad))
    spoilt["on"] = False
    study.tell(points[study.steps], 0.5)  # in order again, and told once more
    assert_same(study, untouched)


def test_an_error_of_the_users_own_in_a_schedule_comes_through_and_leaves_the_study_as_it_was() -> None:
    spoilt = {"on": False}

    def beta(start: Any) -> float:
        if spoilt["on"]:
            raise KeyError("the user's own")
        return 4.0

    def begun() -> tv.Study:
        study = a_study(tv.Domain.grid(x=[0.0, 0.5, 1.0]), kernel=RBF(5.0), policy=tv.TruVaR(beta=beta, r=0.5))
        study.ask()
        return study

    study, untouched = begun(), begun()
    spoilt["on"] = True
    with pytest.raises(KeyError):
        study.tell(1, 0.5)
    spoilt["on"] = False
    assert_same(study, untouched)


# -- the domain ------------------------------------------------------------------------------------------------------

DOMAINS: dict[str, tuple[Callable[[], object], list[str]]] = {
    "duplicate rows": (lambda: tv.Domain.table(pd.DataFrame({"a": [0, 1, 0.0]})), ["rows 0 and 2", "{'a': 0.0}"]),
    "no rows": (lambda: tv.Domain.table(pd.DataFrame({"a": []})), ["no rows", "at least one"]),
    "no columns": (lambda: tv.Domain.table(TABLE, []), ["at least one column", "name some"]),
    "unknown column": (lambda: tv.Domain.table(TABLE, ["a", "depth"]), ["'depth'", "a, b, price, kind"]),
    "column of text": (lambda: tv.Domain.table(TABLE, ["a", "kind"]), ["'kind'", "row 0", "'p'"]),
    "column twice": (lambda: tv.Domain.table(TABLE, ["a", "a"]), ["'a' stands twice"]),
    "column twice in the table": (
        lambda: tv.Domain.table(pd.DataFrame([[0.0, 1]], columns=["a", "a"]), ["a"]),
        ["'a' stands twice", "rename"],
    ),
    "columns as text": (lambda: tv.Domain.table(TABLE, "ab"), ["list of names", "'ab'"]),
    "NaN in a row": (lambda: tv.Domain.table(pd.DataFrame({"a": [0, NAN]})), ["row 1", "'a'", "nan"]),
    "no table": (lambda: tv.Domain.table(np.zeros((2, 2))), ["DataFrame or the path", "pd.DataFrame"]),
    "no file": (lambda: tv.Domain.table("nowhere.csv"), ["nowhere.csv", "check the path"]),
    "a folder": (lambda: tv.Domain.table(Path(__file__).parent), ["cannot be read", "CSV file"]),
    "no axis": (lambda: tv.Domain.grid(), ["at least one axis", "Domain.grid(x="]),
    "empty axis": (lambda: tv.Domain.grid(x=[]), ["axis 'x'", "(0,)"]),
    "duplicate on an axis": (lambda: tv.Domain.grid(x=[0, 1, 1]), ["axis 'x'", "1.0 stands twice"]),
    "axis of one value twice": (lambda: tv.Domain.grid(x=[3, 3]), ["axis 'x'", "3.0 stands twice"]),
    "axis of text": (lambda: tv.Domain.grid(x="wide"), ["axis 'x'", "'wide'", "np.linspace"]),
    "axis in two dimensions": (lambda: tv.Domain.grid(x=[[0, 1]]), ["axis 'x'", "(1, 2)"]),
    "NaN on an axis": (lambda: tv.Domain.grid(x=[0, NAN]), ["axis 'x'", "nan"]),
    "infinite axis": (lambda: tv.Domain.grid(x=[0, INF]), ["axis 'x'", "inf"]),
    "no interval": (lambda: tv.Domain.box(), ["at least one interval", "Domain.box(x=(0, 1))"]),
    "interval upside down": (lambda: tv.Domain.box(x=(1, 0)), ["low < high", "they were 1 and 0", "swap"]),
    "empty interval": (lambda: tv.Domain.box(x=(1, 1)), ["low < high", "they were 1 and 1"]),
    "interval of three": (lambda: tv.Domain.box(x=(0, 1, 2)), ["pair (low, high)", "(0, 1, 2)"]),
    "interval of one": (lambda: tv.Domain.box(x=3), ["pair (low, high)", "3"]),
    "NaN interval": (lambda: tv.Domain.box(x=(0, NAN)), ["high end of 'x'", "nan"]),
    "one representer": (lambda: tv.Domain.box(x=(0, 1), representers=1), ["representers", "at least 2", "1"]),
    "half a representer": (lambda: tv.Domain.box(x=(0, 1), representers=4.5), ["representers", "4.5"]),
    "column of no table": (lambda: GRID.column("depth"), ["'depth'", "x, y"]),
    "column that is none": (lambda: tv.Domain.table(TABLE, ["a", "b"]).column("depth"), ["'depth'", "a, b, price"]),
}


@pytest.mark.parametrize("name", DOMAINS)
def test_a_domain_that_cannot_be_is_refused(name: str) -> None:
    mistake, parts = DOMAINS[name]
    refused(mistake, *parts)


def test_an_axis_may_span_many_orders_of_magnitude() -> None:
    assert len(tv.Domain.grid(tolerance=np.logspace(-14, 2, 17))) == 17


@pytest.mark.parametrize(
    ("domain", "told", "nearest"),
    [
        (tv.Domain.table(TABLE, ["a", "b"]), {"a": 0.9, "b": 0.0}, "{'a': 1.0, 'b': 0.0} (index 1)"),
        (GRID, {"x": 1.3, "y": 0.4}, "{'x': 1.0, 'y': 0.3333333333333333} (index 17)"),
        (tv.Domain.box(x=(0, 1), representers=5), {"x": -0.1}, "{'x': 0.0} (index 0)"),
    ],
    ids=["table", "grid", "box"],
)
def test_a_point_outside_the_domain_is_offered_the_nearest(domain: tv.Domain, told: Any, nearest: str) -> None:
    study = a_study(domain)
    refused(lambda: study.tell(told, 1.0), str(told), "not in the domain", nearest)
    assert study.steps == 0
    refused(lambda: a_study(domain, start=told), str(told), nearest)


# -- noise, cost, levels, tasks --------------------------------------------------------------------------------------

BOTH: dict[str, tuple[Any, list[str]]] = {
    "negative": (-1.0, ["not negative", "-1.0"]),
    "NaN": (NAN, ["finite", "nan"]),
    "infinite": (INF, ["finite", "inf"]),
    "unknown column": ("depth", ["no column 'depth'", "x, y"]),
    "too short": ([1.0, 2.0], ["shape (20,)", "(2,)"]),
    "too many dimensions": (np.ones((20, 1)), ["shape (20,)", "(20, 1)"]),
    "negative at one point": (np.r_[np.ones(19), -3], ["-3.0", "row 19"]),
    "NaN at one point": (np.r_[NAN, np.ones(19)], ["nan", "row 0"]),
    "list of text": (["dear"] * 20, ["array of numbers"]),
    "dict": ({"base": 1}, ["{'base': 1}"]),
    "function of the wrong shape": (lambda *_: np.ones(3), ["shape (20,)", "(3,)"]),
    "function of two dimensions": (lambda points, *_: np.ones((len(points), 1)), ["shape (20,)", "(20, 1)"]),
    "negative function": (lambda points, *_: -np.ones(len(points)), ["not negative", "-1.0"]),
    "NaN function": (lambda points, *_: np.full(len(points), NAN), ["finite", "nan"]),
    "function of text": (lambda *_: "dear", ["'dear'"]),
}


@pytest.mark.parametrize("name", BOTH)
@pytest.mark.parametrize("what", ["noise", "cost"])
def test_noise_and_cost_are_numbers_of_at_least_zero_for_every_point(what: str, name: str) -> None:
    value, parts = BOTH[name]
    refused(lambda: a_study(**{what: value}), *([] if name == "unknown column" else [what]), *parts)


COSTS: dict[str, tuple[Callable[[], object], list[str]]] = {
    "zero": (lambda: a_study(cost=0), ["more than 0", "{'x': 0.0, 'y': 0.0} costs 0", "positive base"]),
    "zero at one point": (lambda: a_study(cost=np.r_[np.ones(19), 0]), ["{'x': 1.0, 'y': 1.0} costs 0"]),
    "travel alone": (lambda: a_study(cost=tv.Cost(travel={"x": 1})), ["costs 0 (without travel)", "positive base"]),
    "levels that cost nothing": (lambda: a_study(noise=tv.NoiseLevels([0.1], [0])), ["more than 0"]),
    "negative base": (lambda: a_study(cost=tv.Cost(-1)), ["cost", "-1.0"]),
    "base that is no column": (lambda: a_study(cost=tv.Cost("depth")), ["'depth'", "x, y"]),
    "travel along no column": (lambda: a_study(cost=tv.Cost(1, {"z": 1})), ["(x, y)", "'z'"]),
    "magnitude of no column": (lambda: a_study(cost=tv.Cost(1, magnitude={"z": 1})), ["(x, y)", "'z'"]),
    "negative travel": (lambda: tv.Cost(1, {"x": -1}), ["travel rate of 'x'", "-1"]),
    "travel in words": (lambda: tv.Cost(1, {"x": "far"}), ["travel rate of 'x'", "'far'"]),
    "travel without a column": (lambda: tv.Cost(1, 0.25), ["travel", "0.25", "{'x': 0.25}"]),
    "negative magnitude": (lambda: tv.Cost(1, magnitude={"x": -1}), ["magnitude rate of 'x'", "-1"]),
    "more variances than costs": (lambda: tv.NoiseLevels([0.1, 0.2], [1]), ["as many costs", "[0.1, 0.2]", "[1]"]),
    "no levels": (lambda: tv.NoiseLevels([], []), ["at least one", "[]"]),
    "level that is no list": (lambda: tv.NoiseLevels(0.1, 1), ["two lists", "0.1"]),
    "negative variance of a level": (lambda: tv.NoiseLevels([0.1, -0.1], [1, 2]), ["noise level 1", "-0.1"]),
    "negative cost of a level": (lambda: tv.NoiseLevels([0.1], [-1]), ["cost of noise level 0", "-1"]),
    "level in words": (lambda: tv.NoiseLevels(["low"], [1]), ["noise level 0", "'low'"]),
}


@pytest.mark.parametrize("name", COSTS)
def test_every_measurement_costs_something(name: str) -> None:
    mistake, parts = COSTS[name]
    refused(mistake, *parts)


def test_a_cost_function_that_becomes_free_on_the_way_is_refused() -> None:
    study = a_study(cost=lambda points, last: np.ones(len(points)) if last is None else np.abs(points[:, 0] - last[0]))
    first = study.ask()
    refused(study.ask, "more than 0", "costs 0", "positive base")
    assert study.pending == [first]


TASKS: dict[str, tuple[Callable[[], object], list[str]]] = {
    "not symmetric": (lambda: tv.Tasks([[1, 0.5], [0.2, 1]], ["f", "g"]), ["symmetric", "[[1.0, 0.5], [0.2, 1.0]]"]),
    "not semi-definite": (lambda: tv.Tasks([[1, 2], [2, 1]], ["f", "g"]), ["semi-definite", "eigenvalue is -1"]),
    "too few rows": (lambda: tv.Tasks([[1, 2]], ["f", "g"]), ["2 x 2", "[[1, 2]]"]),
    "ragged": (lambda: tv.Tasks([[1, 2], [1]], ["f", "g"]), ["2 x 2", "[[1, 2], [1]]"]),
    "NaN": (lambda: tv.Tasks([[1, NAN], [NAN, 1]], ["f", "g"]), ["finite", "nan"]),
    "words": (lambda: tv.Tasks("none", ["f", "g"]), ["2 x 2", "'none'"]),
    "one task": (lambda: tv.Tasks([[1]], ["f"]), ["at least two", "['f']"]),
    "a name twice": (lambda: tv.Tasks([[1, 0], [0, 1]], ["f", "f"]), ["different names", "['f', 'f']"]),
    "names as text": (lambda: tv.Tasks([[1, 0], [0, 1]], "fg"), ["list", "'fg'"]),
    "one cost too few": (lambda: tasks(cost=[1]), ["one cost per task", "[1]"]),
    "negative cost": (lambda: tasks(cost=[1, -1]), ["cost of task 'proxy'", "-1"]),
    "zero cost": (lambda: tasks(cost=[1, 0]), ["more than 0", "'proxy' costs 0"]),
    "NaN cost": (lambda: tasks(cost=[1, NAN]), ["cost of task 'proxy'", "nan"]),
    "cost in words": (lambda: tasks(cost=[1, "little"]), ["cost of task 'proxy'", "'little'"]),
    "negative noise": (lambda: tasks(noise=[-1, 1]), ["noise of task 'f'", "-1"]),
    "mean in words": (lambda: tasks(mean=[0, "low"]), ["mean of task 'proxy'", "'low'"]),
    "NaN mean": (lambda: tasks(mean=[0, NAN]), ["mean of task 'proxy'", "nan"]),
    "a matrix": (lambda: a_study(tasks=[[1, 0], [0, 1]]), ["Tasks(covariance, names)", "[[1, 0], [0, 1]]"]),
    "with levels": (
        lambda: a_study(tasks=tv.Tasks([[1, 0], [0, 1]], ["f", "g"]), noise=tv.NoiseLevels([0.1], [1])),
        ["levels and tasks", "as a task"],
    ),
    "with a learned kernel": (
        lambda: a_study(kernel="rbf", tasks=tv.Tasks([[1, 0], [0, 1]], ["f", "g"])),
        ["known kernel", "'rbf'"],
    ),
}


@pytest.mark.parametrize("name", TASKS)
def test_tasks_that_cannot_be_are_refused(name: str) -> None:
    mistake, parts = TASKS[name]
    refused(mistake, *parts)


# -- the model, the goal, the rule -----------------------------------------------------------------------------------

MODELS: dict[str, tuple[Callable[[], object], list[str]]] = {
    "wrong dimension": (lambda: a_study(kernel=RBF([1, 2, 3])), ["2 columns (x, y)", "3!=2", "one length-scale or 2"]),
    "white noise": (lambda: a_study(kernel=KERNEL + WhiteKernel()), ["WhiteKernel", "noise=..."]),
    "white noise inside": (lambda: a_study(kernel=Exponentiation(KERNEL + WhiteKernel(), 2)), ["WhiteKernel"]),
    "unknown name": (lambda: a_study(kernel="quadratic"), ["'quadratic'", "rbf"]),
    "number": (lambda: a_study(kernel=3.0), ["scikit-learn kernel", "3.0"]),
    "class": (lambda: a_study(kernel=RBF), ["scikit-learn kernel", "RBF"]),
    "no variance": (lambda: a_study(kernel=ConstantKernel(0.0) * RBF()), ["no variance", "positive"]),
    "zero length": (lambda: a_study(kernel=RBF(0.0)), ["length-scales must be positive", "0"]),
    "negative length": (lambda: a_study(kernel=KERNEL + RBF([1.0, -1.0])), ["length-scales must be positive", "-1.0"]),
    "NaN length": (lambda: a_study(kernel=RBF(NAN)), ["length-scales must be positive", "nan"]),
    "no noise": (lambda: a_study(noise=None), ["known noise", "noise=..."]),
    "mean in words": (lambda: a_study(mean="low"), ["mean must be a number", "'low'"]),
    "NaN mean": (lambda: a_study(mean=NAN), ["mean must be a finite number", "nan"]),
    "unknown family": (lambda: tv.Learned("cubic"), ["'cubic'", "matern52"]),
    "never refit": (lambda: tv.Learned(every=0), ["every", "at least 1", "0"]),
    "refit in words": (lambda: tv.Learned(every="often"), ["every", "'often'"]),
    "half a refit": (lambda: tv.Learned(every=2.5), ["every", "2.5"]),
    "no restarts": (lambda: tv.Learned(restarts=0), ["restarts", "0"]),
    "noise learned and known": (
        lambda: a_study(kernel=tv.Learned(noise=True), noise=0.1),
        ["noise is to be learned", "0.1", "leave out one"],
    ),
    "threshold in words": (lambda: tv.LevelSet("high"), ["threshold", "'high'", "number"]),
    "threshold as text": (lambda: tv.LevelSet("7"), ["threshold", "'7'", "number"]),
    "threshold as truth value": (lambda: tv.LevelSet(True), ["threshold", "True", "number"]),
    "NaN threshold": (lambda: tv.LevelSet(NAN), ["threshold", "nan"]),
    "infinite threshold": (lambda: tv.LevelSet(INF), ["threshold", "inf"]),
    "two thresholds": (lambda: tv.LevelSet([1, 2]), ["threshold", "[1, 2]"]),
    "no threshold": (lambda: tv.LevelSet(), ["LevelSet(7.0)", "fraction_of_max=0.8"]),
    "threshold and fraction": (lambda: tv.LevelSet(1, fraction_of_max=0.5), ["either", "fraction_of_max=0.5"]),
    "fraction 0": (lambda: tv.LevelSet(fraction_of_max=0), ["between 0 and 1", "0.8"]),
    "fraction 1.5": (lambda: tv.LevelSet(fraction_of_max=1.5), ["between 0 and 1", "1.5"]),
    "goal in words": (lambda: a_study(goal="maximum"), ["Maximize(), Minimize() or LevelSet(h)", "'maximum'"]),
    "goal as a class": (lambda: a_study(goal=tv.Maximize), ["Maximize()", "class"]),
    "goal as a number": (lambda: a_study(goal=7.0), ["LevelSet(h)", "7.0"]),
    "domain as an array": (
        lambda: tv.Study(np.zeros((3, 2)), tv.Maximize(), kernel=KERNEL, noise=0.1),
        ["domain must be a Domain", "Domain.grid"],
    ),
    "start behind the last": (lambda: a_study(start=20), ["an index below 20", "20"]),
    "negative start": (lambda: a_study(start=-1), ["an index below 20", "-1"]),
    "start in words": (lambda: a_study(start="first"), ["'random'", "'first'"]),
    "start without a column": (lambda: a_study(start={"x": 0.0}), ["columns x, y", "'y' is missing"]),
    "seed in words": (lambda: a_study(seed="lucky"), ["seed", "'lucky'"]),
    "negative seed": (lambda: a_study(seed=-1), ["seed", "-1"]),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_study_that_cannot_be_is_refused(name: str) -> None:
    mistake, parts = MODELS[name]
    refused(mistake, *parts)


RULES: list[tuple[str, Any]] = [
    *(("eta", bad) for bad in (-1, NAN, INF, "small", None)),
    *(("r", bad) for bad in (0, 1, -0.1, 2, NAN, "small", None)),
    *(("slack", bad) for bad in (-1, NAN, INF, "small")),
    *(("among", bad) for bad in ("best", 3)),
    *(("anticipate", bad) for bad in ("median", True)),
    *(("beta", bad) for bad in (3.0, "large")),
]


@pytest.mark.parametrize(("option", "bad"), RULES)
def test_an_option_of_the_rule_out_of_range_is_named_with_its_value(option: str, bad: Any) -> None:
    with pytest.raises(tv.TruvarError) as caught:
        tv.TruVaR(**{option: bad})
    assert str(caught.value).startswith(option)
    assert str(bad) in str(caught.value)


SCHEDULES = [
    *((tv.LogBeta, (bad,), "a of LogBeta") for bad in (0, -1, NAN, "big")),
    *((tv.ConstantBeta, (bad,), "b of ConstantBeta") for bad in (0, -1, INF, "big", None)),
    *((tv.TheoremBeta, (bad,), "delta of TheoremBeta") for bad in (0, 1, -1, NAN, "rare")),
    *((tv.RKHSBeta, (bad, 0.1), "norm of RKHSBeta") for bad in (0, -1, "big")),
    *((tv.RKHSBeta, (1.0, bad), "delta of RKHSBeta") for bad in (0, 2, "rare")),
]


@pytest.mark.parametrize(("schedule", "options", "named"), SCHEDULES)
def test_a_schedule_out_of_range_is_named_with_its_value(schedule: Any, options: tuple[Any, ...], named: str) -> None:
    bad = next(option for option in options if option not in (0.1, 1.0) or schedule is not tv.RKHSBeta)
    refused(lambda: schedule(*options), named, str(bad))


def test_the_theorem_needs_slack_and_a_target() -> None:
    theorem = tv.TheoremBeta(0.1)
    refused(lambda: a_study(policy=tv.TruVaR(beta=theorem)), "slack > 0", "slack was 0", "slack=0.1")
    refused(lambda: a_study(policy=tv.TruVaR(beta=theorem, slack=0.1, eta=0.0)), "eta > 0", "eta 0")


def test_the_information_gain_needs_noise() -> None:
    refused(lambda: a_study(noise=0.0, policy=tv.TruVaR(beta=tv.RKHSBeta(1.0, 0.1))), "infinite without noise", "> 0")


def test_a_schedule_of_the_users_own_must_return_a_positive_number() -> None:
    refused(lambda: a_study(policy=tv.TruVaR(beta=lambda start: -2.0)), "returns at t = 1", "-2.0", "positive")


def test_an_unknown_rule_is_named() -> None:
    with pytest.raises(tv.TruvarError, match=r"truvar.*'trovar'"):
        a_study(policy="trovar")
    with pytest.raises(tv.TruvarError, match=r"TruVaR\(\).*3"):
        a_study(policy=3)


# -- learning from another data set, and judging a result ------------------------------------------------------------

DATA = pd.DataFrame({"x": [0.1, 0.5, 0.9, 0.3], "y": [0.2, 0.4, 0.6, 0.9], "v": [1.0, 2, 3, 1], "w": [0.0, 1, 0, 1]})
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
    level_set, optimum = a_study().result(), a_study(goal=tv.Maximize()).result()
    refused(lambda: level_set.regret(np.zeros(20)), "LevelSet", "f1(truth)")
    refused(lambda: optimum.f1(np.zeros(20)), "Maximize", "regret(truth)")
    refused(lambda: level_set.f1([1, 2]), "(20,)", "(2,)")
    refused(lambda: level_set.f1(np.r_[np.zeros(19), NAN]), "index 19", "nan")
    refused(lambda: optimum.regret("much"), "'much'")
    refused(lambda: optimum.regret(lambda point: 0.0), "true optimum", "optimum=...")


# -- problem files ---------------------------------------------------------------------------------------------------

DOMAIN, GOAL, NOISE = "[domain]\ngrid = {x = [0, 1, 5]}\n", "[goal]\nmaximize = true\n", "[noise]\nvariance = 0.1\n"
GOOD = DOMAIN + GOAL + NOISE
FILES: dict[str, tuple[str, list[str]]] = {
    "malformed": ("[domain\n", ["not valid TOML", "line 1", "mend"]),
    "nothing": ("", ["[domain] needs exactly one of table, grid, box", "none of them"]),
    "no goal": (DOMAIN, ["[goal] needs exactly one of level_set", "none of them"]),
    "key": ("nmae = 'lake'\n" + GOOD, ["'nmae'", "did you mean 'name'?"]),
    "section": (GOOD + "[polcy]\nname = 'truvar'\n", ["'polcy'", "did you mean 'policy'?"]),
    "key of [domain]": ("[domain]\ngird = {x = [0, 1, 5]}\n" + GOAL, ["'gird'", "[domain]", "did you mean 'grid'?"]),
    "key of [goal]": (DOMAIN + "[goal]\nlevelset = 1\n", ["'levelset'", "did you mean 'level_set'?"]),
    "key of [model]": (GOOD + "[model]\nlengthscale = 1\n", ["'lengthscale'", "did you mean 'lengthscales'?"]),
    "key of [noise]": (DOMAIN + GOAL + "[noise]\nsd = 1\n", ["'sd'", "variance, column, levels"]),
    "key of [cost]": (GOOD + "[cost]\nbse = 1\n", ["'bse'", "did you mean 'base'?"]),
    "key of [policy]": (GOOD + "[policy]\netaa = 1\n", ["'etaa'", "did you mean 'eta'?"]),
    "key of [run]": (GOOD + "[run]\nbudgt = 1\n", ["'budgt'", "did you mean 'budget'?"]),
    "key of among": (GOOD + "[policy]\namong = {tip = 3}\n", ["'tip'", "did you mean 'top'?"]),
    "two domains": ("[domain]\ngrid = {x = [0, 1, 5]}\nbox = {x = [0, 1]}\n" + GOAL, ["grid and box", "leave out"]),
    "two goals": (DOMAIN + "[goal]\nmaximize = true\nlevel_set = 1\n", ["level_set and maximize", "leave out"]),
    "two noises": (DOMAIN + GOAL + "[noise]\nvariance = 1\ncolumn = 'x'\n", ["variance and column", "leave out"]),
    "two costs": (GOOD + "[cost]\nbase = 1\ncolumn = 'x'\n", ["either base or column", "leave out"]),
    "columns of a grid": (DOMAIN + "columns = ['x']\n" + GOAL, ["columns belongs to a table", "leave out"]),
    "representers of a grid": (DOMAIN + "representers = 9\n" + GOAL, ["representers belongs to a box", "leave out"]),
    "known and refitted": (GOOD + "[model]\nlengthscales = 1\nrefit_every = 2\n", ["refit_every", "leave out one"]),
    "known and learned noise": (GOOD + "[model]\nlengthscales = 1\nlearn_noise = true\n", ["learn_noise", "leave out"]),
    "noise given and learned": (GOOD + "[model]\nlearn_noise = true\n", ["to be learned", "0.1", "leave out one"]),
    "noise neither": (DOMAIN + GOAL + "[model]\nlearn_noise = false\n", ["learn_noise = false", "no [noise]"]),
    "noise of a known kernel": (DOMAIN + GOAL + "[model]\nlengthscales = 1\n", ["known noise", "[noise]"]),
    "variance alone": (GOOD + "[model]\nvariance = 2.0\n", ["needs lengthscales", "2.0"]),
    "value alone": (GOOD + "[model]\nvalue = 'v'\n", ["value = 'v'", "give training"]),
    "domain as a number": ("domain = 3\n" + GOAL, ["[domain] must be a table of keys", "3"]),
    "goal as text": ("goal = 'max'\n" + DOMAIN, ["[goal] must be a table of keys", "'max'"]),
    "axis of two": ("[domain]\ngrid = {x = [0, 1]}\n" + GOAL, ["[low, high, number of points]", "[0, 1]"]),
    "axis in words": ("[domain]\ngrid = {x = ['a', 1, 4]}\n" + GOAL, ["low end of 'x'", "'a'"]),
    "grid as text": ("[domain]\ngrid = 'fine'\n" + GOAL, ["[domain] grid", "{x = [0, 1, 50]}", "'fine'"]),
    "interval as a number": ("[domain]\nbox = {x = 1}\n" + GOAL, ["x must be [low, high]", "1"]),
    "representers in words": ("[domain]\nbox = {x = [0, 1]}\nrepresenters = 'many'\n" + GOAL, ["'many'"]),
    "missing table": ("[domain]\ntable = 'nowhere.csv'\n" + GOAL, ["nowhere.csv", "check the path"]),
    "broken table": ("[domain]\ntable = 'broken.csv'\n" + GOAL, ["broken.csv", "not a readable CSV", "line 3"]),
    "table as a number": ("[domain]\ntable = 3\n" + GOAL, ["[domain] table", "3"]),
    "unknown column": ("[domain]\ntable = 'data.csv'\ncolumns = ['depth']\n" + GOAL, ["'depth'", "x, v, w"]),
    "columns as text": ("[domain]\ntable = 'data.csv'\ncolumns = 'x'\n" + GOAL, ["list of names", "'x'"]),
    "threshold that is true": (DOMAIN + "[goal]\nlevel_set = true\n", ["threshold", "True"]),
    "threshold as text": (DOMAIN + "[goal]\nlevel_set = '7'\n", ["threshold", "'7'"]),
    "NaN threshold": (DOMAIN + "[goal]\nlevel_set = nan\n", ["threshold", "nan"]),
    "fraction above 1": (DOMAIN + "[goal]\nfraction_of_max = 2\n", ["fraction_of_max", "2"]),
    "maximum that is false": (DOMAIN + "[goal]\nmaximize = false\n", ["must be true", "false"]),
    "monotone in words": (DOMAIN + "[goal]\nmaximize = true\nmonotone = 'no'\n", ["true or false", "'no'"]),
    "unknown kernel": (GOOD + "[model]\nkernel = 'cubic'\n", ["'cubic'", "matern52"]),
    "kernel as a list": (GOOD + "[model]\nkernel = ['rbf']\n", ["name of a kernel", "['rbf']"]),
    "length-scales in words": (GOOD + "[model]\nlengthscales = ['long']\n", ["length-scale", "'long'"]),
    "too many length-scales": (GOOD + "[model]\nlengthscales = [1, 2]\n", ["1 number", "there are 2"]),
    "no length-scales": (GOOD + "[model]\nlengthscales = []\n", ["1 number", "there are 0"]),
    "negative length-scale": (GOOD + "[model]\nlengthscales = [-1]\n", ["positive", "-1.0"]),
    "variance in words": (GOOD + "[model]\nlengthscales = 1\nvariance = 'v'\n", ["[model] variance", "'v'"]),
    "negative variance": (GOOD + "[model]\nlengthscales = 1\nvariance = -1\n", ["variance", "-1"]),
    "mean in words": (GOOD + "[model]\nlengthscales = 1\nmean = 'low'\n", ["mean", "'low'"]),
    "refit never": (GOOD + "[model]\nrefit_every = 0\n", ["at least 1", "0"]),
    "learn noise in words": (DOMAIN + GOAL + "[model]\nlearn_noise = 'no'\n", ["true or false", "'no'"]),
    "missing training": (GOOD + "[model]\ntraining = 'nowhere.csv'\n", ["nowhere.csv", "check the path"]),
    "training as a number": (GOOD + "[model]\ntraining = 3\n", ["[model] training", "3"]),
    "training of two values": (GOOD + "[model]\ntraining = 'data.csv'\n", ["v, w", "value=..."]),
    "training of no such value": (GOOD + "[model]\ntraining = 'data.csv'\nvalue = 'u'\n", ["'u'", "x, v, w"]),
    "a mistake beside training": (
        GOOD + "[model]\ntraining = 'data.csv'\nvalue = 'v'\n[policy]\nr = 2\n",
        ["r must lie between 0 and 1", "2"],
    ),
    "noise in words": (DOMAIN + GOAL + "[noise]\nvariance = 'x'\n", ["[noise] variance", "'x'"]),
    "negative noise": (DOMAIN + GOAL + "[noise]\nvariance = -1\n", ["noise", "-1"]),
    "noise of no column": (DOMAIN + GOAL + "[noise]\ncolumn = 'depth'\n", ["'depth'", "it has x"]),
    "column as a number": (DOMAIN + GOAL + "[noise]\ncolumn = 0.5\n", ["[noise] column", "0.5"]),
    "levels as a number": (DOMAIN + GOAL + "[noise]\nlevels = 3\n", ["[noise] levels", "{variance = 1e-3, cost = 10}"]),
    "level without cost": (DOMAIN + GOAL + "[noise]\nlevels = [{variance = 1}]\n", ["its variance and cost"]),
    "level with more": (
        DOMAIN + GOAL + "[noise]\nlevels = [{variance = 1, cost = 2, sd = 1}]\n",
        ["its variance and cost", "sd = 1"],
    ),
    "no levels": (DOMAIN + GOAL + "[noise]\nlevels = []\n", ["must be a list such as", "[]"]),
    "zero cost": (GOOD + "[cost]\nbase = 0\n", ["more than 0", "positive base"]),
    "travel without base": (GOOD + "[cost]\ntravel = {x = 1}\n", ["more than 0", "positive base"]),
    "cost in words": (GOOD + "[cost]\nbase = 'x'\n", ["[cost] base", "'x'"]),
    "cost column as a number": (GOOD + "[cost]\ncolumn = 2\n", ["[cost] column", "2"]),
    "travel along no column": (GOOD + "[cost]\nbase = 1\ntravel = {z = 1}\n", ["'z'", "(x)"]),
    "travel as a number": (GOOD + "[cost]\nbase = 1\ntravel = 1\n", ["travel", "rates by column"]),
    "unknown rule": (GOOD + "[policy]\nname = 'truver'\n", ["'truver'", "did you mean 'truvar'?"]),
    "rule as a list": (GOOD + "[policy]\nname = ['truvar']\n", ["[policy] name", "['truvar']"]),
    "eta in words": (GOOD + "[policy]\neta = 'small'\n", ["eta", "'small'"]),
    "negative beta": (GOOD + "[policy]\nbeta = -1\n", ["ConstantBeta", "-1"]),
    "beta that is true": (GOOD + "[policy]\nbeta = true\n", ["[policy] beta", "True"]),
    "unknown beta": (GOOD + "[policy]\nbeta = {lag = 1}\n", ["{log = 1.0}", "{lag = 1}"]),
    "top of nothing": (GOOD + "[policy]\namong = {by = 'ei'}\n", ["among.top", "None"]),
    "top in words": (GOOD + "[policy]\namong = {top = 'few'}\n", ["among.top", "'few'"]),
    "start outside": ("start = {x = 9}\n" + GOOD, ["{'x': 9}", "nearest", "{'x': 1.0}"]),
    "start behind the last": ("start = 5\n" + GOOD, ["an index below 5", "5"]),
    "seed in words": ("seed = 'lucky'\n" + GOOD, ["seed", "'lucky'"]),
    "name as a number": ("name = 3\n" + GOOD, ["name must be a text", "3"]),
    "negative budget": (GOOD + "[run]\nbudget = -1\n", ["budget", "-1"]),
    "half steps": (GOOD + "[run]\nsteps = 2.5\n", ["steps", "2.5"]),
}


@pytest.mark.parametrize("name", FILES)
def test_a_problem_file_with_a_mistake_is_refused_when_it_is_loaded(name: str, tmp_path: Path) -> None:
    text, parts = FILES[name]
    DATA[["x", "v", "w"]].to_csv(tmp_path / "data.csv", index=False)
    (tmp_path / "broken.csv").write_text("a,b\n1,2\n3,4,5\n")
    (tmp_path / "problem.toml").write_text(text)
    refused(lambda: tv.load_problem(tmp_path / "problem.toml"), *parts)


def test_the_good_problem_file_of_these_tests_is_good(tmp_path: Path) -> None:
    (tmp_path / "problem.toml").write_text(GOOD)
    assert len(tv.load_problem(tmp_path / "problem.toml").domain) == 5


def test_a_problem_file_that_is_not_there_or_no_text_is_refused(tmp_path: Path) -> None:
    refused(lambda: tv.load_problem(tmp_path / "nowhere.toml"), "nowhere.toml", "check the path")
    refused(lambda: tv.load_problem(tmp_path), str(tmp_path), "is a folder")
    (tmp_path / "latin.toml").write_bytes(b"name = '\xff'")
    refused(lambda: tv.load_problem(tmp_path / "latin.toml"), "latin.toml", "not valid TOML")
