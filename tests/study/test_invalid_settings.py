"""An invalid domain, noise, cost, model, goal or policy is refused with a one-line message that
says what to do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Exponentiation, WhiteKernel
from tests.helpers.invalid_input import GRID, INF, KERNEL, NAN, TABLE, a_study, refused, tasks

import truvar as tv
from truvar.exceptions import UnknownPolicyError

# -- the domain
# --------------------------------------------------------------------------------------------------

DOMAINS: dict[str, tuple[Callable[[], object], list[str]]] = {
    "duplicate rows": (
        lambda: tv.Domain.table(pd.DataFrame({"a": [0, 1, 0.0]})),
        ["rows 0 and 2", "{'a': 0.0}"],
    ),
    "no rows": (lambda: tv.Domain.table(pd.DataFrame({"a": []})), ["no rows", "at least one"]),
    "no columns": (lambda: tv.Domain.table(TABLE, []), ["at least one column", "name some"]),
    "unknown column": (
        lambda: tv.Domain.table(TABLE, ["a", "depth"]),
        ["'depth'", "a, b, price, kind"],
    ),
    "column of numbers and text": (
        lambda: tv.Domain.table(pd.DataFrame({"kind": ["p", 1.5]}), ["kind"]),
        ["'kind'", "row 1", "1.5", "not both"],
    ),
    "column twice": (lambda: tv.Domain.table(TABLE, ["a", "a"]), ["'a' is duplicated"]),
    "column twice in the table": (
        lambda: tv.Domain.table(pd.DataFrame([[0.0, 1]], columns=["a", "a"]), ["a"]),
        ["'a' is duplicated", "rename"],
    ),
    "columns as text": (lambda: tv.Domain.table(TABLE, "ab"), ["list of names", "'ab'"]),
    "NaN in a row": (
        lambda: tv.Domain.table(pd.DataFrame({"a": [0, NAN]})),
        ["row 1", "'a'", "nan"],
    ),
    "no table": (
        lambda: tv.Domain.table(np.zeros((2, 2))),
        ["DataFrame or the path", "pd.DataFrame"],
    ),
    "no file": (lambda: tv.Domain.table("nowhere.csv"), ["nowhere.csv", "check the path"]),
    "a folder": (lambda: tv.Domain.table(Path(__file__).parent), ["cannot be read", "CSV file"]),
    "no axis": (lambda: tv.Domain.grid(), ["at least one axis", "Domain.grid(x="]),
    "empty axis": (lambda: tv.Domain.grid(x=[]), ["axis 'x'", "(0,)"]),
    "duplicate on an axis": (
        lambda: tv.Domain.grid(x=[0, 1, 1]),
        ["axis 'x'", "1.0 is duplicated"],
    ),
    "axis of one value twice": (
        lambda: tv.Domain.grid(x=[3, 3]),
        ["axis 'x'", "3.0 is duplicated"],
    ),
    "axis of text": (lambda: tv.Domain.grid(x="wide"), ["axis 'x'", "'wide'", "np.linspace"]),
    "axis in two dimensions": (lambda: tv.Domain.grid(x=[[0, 1]]), ["axis 'x'", "(1, 2)"]),
    "NaN on an axis": (lambda: tv.Domain.grid(x=[0, NAN]), ["axis 'x'", "nan"]),
    "infinite axis": (lambda: tv.Domain.grid(x=[0, INF]), ["axis 'x'", "inf"]),
    "no interval": (lambda: tv.Domain.box(), ["at least one interval", "Domain.box(x=(0, 1))"]),
    "interval upside down": (
        lambda: tv.Domain.box(x=(1, 0)),
        ["low < high", "got 1 and 0", "swap"],
    ),
    "empty interval": (lambda: tv.Domain.box(x=(1, 1)), ["low < high", "got 1 and 1"]),
    "interval of three": (lambda: tv.Domain.box(x=(0, 1, 2)), ["pair (low, high)", "(0, 1, 2)"]),
    "interval of one": (lambda: tv.Domain.box(x=3), ["pair (low, high)", "3"]),
    "NaN interval": (lambda: tv.Domain.box(x=(0, NAN)), ["high end of 'x'", "nan"]),
    "one representer": (
        lambda: tv.Domain.box(x=(0, 1), representers=1),
        ["representers", ">= 2", "1"],
    ),
    "half a representer": (
        lambda: tv.Domain.box(x=(0, 1), representers=4.5),
        ["representers", "4.5"],
    ),
    "column of no table": (lambda: GRID.column("depth"), ["'depth'", "x, y"]),
    "column that is none": (
        lambda: tv.Domain.table(TABLE, ["a", "b"]).column("depth"),
        ["'depth'", "a, b, price"],
    ),
}


@pytest.mark.parametrize("name", DOMAINS)
def test_a_domain_that_cannot_be_is_refused(name: str) -> None:
    mistake, parts = DOMAINS[name]
    refused(mistake, *parts)


def test_an_axis_may_span_many_orders_of_magnitude() -> None:
    assert len(tv.Domain.grid(tolerance=np.logspace(-14, 2, 17))) == 17


@pytest.mark.parametrize(
    ("domain", "point", "nearest"),
    [
        (
            tv.Domain.table(TABLE, ["a", "b"]),
            {"a": 0.9, "b": 0.0},
            "{'a': 1.0, 'b': 0.0} (index 1)",
        ),
        (GRID, {"x": 1.3, "y": 0.4}, "{'x': 1.0, 'y': 0.3333333333333333} (index 17)"),
        (tv.Domain.box(x=(0, 1), representers=5), {"x": -0.1}, "{'x': 0.0} (index 0)"),
    ],
    ids=["table", "grid", "box"],
)
def test_a_point_outside_the_domain_is_offered_the_nearest(
    domain: tv.Domain, point: Any, nearest: str
) -> None:
    study = a_study(domain)
    refused(lambda: study.tell(point, 1.0), str(point), "not in the domain", nearest)
    assert study.steps == 0
    refused(lambda: a_study(domain, start=point), str(point), nearest)


# -- noise, cost, levels, tasks
# --------------------------------------------------------------------------------------

BOTH: dict[str, tuple[Any, list[str]]] = {
    "negative": (-1.0, [">= 0", "-1.0"]),
    "NaN": (NAN, ["finite", "nan"]),
    "infinite": (INF, ["finite", "inf"]),
    "unknown column": ("depth", ["unknown column 'depth'", "x, y"]),
    "too short": ([1.0, 2.0], ["shape (20,)", "(2,)"]),
    "too many dimensions": (np.ones((20, 1)), ["shape (20,)", "(20, 1)"]),
    "negative at one point": (np.r_[np.ones(19), -3], ["-3.0", "row 19"]),
    "NaN at one point": (np.r_[NAN, np.ones(19)], ["nan", "row 0"]),
    "list of text": (["high"] * 20, ["array of numbers"]),
    "dict": ({"base": 1}, ["{'base': 1}"]),
    "function of the wrong shape": (lambda *_: np.ones(3), ["shape (20,)", "(3,)"]),
    "function of two dimensions": (
        lambda points, *_: np.ones((len(points), 1)),
        ["shape (20,)", "(20, 1)"],
    ),
    "negative function": (lambda points, *_: -np.ones(len(points)), [">= 0", "-1.0"]),
    "NaN function": (lambda points, *_: np.full(len(points), NAN), ["finite", "nan"]),
    "function of text": (lambda *_: "high", ["'high'"]),
}


@pytest.mark.parametrize("name", BOTH)
@pytest.mark.parametrize("what", ["noise", "cost"])
def test_noise_and_cost_are_numbers_of_at_least_zero_for_every_point(what: str, name: str) -> None:
    value, parts = BOTH[name]
    refused(lambda: a_study(**{what: value}), *([] if name == "unknown column" else [what]), *parts)


COSTS: dict[str, tuple[Callable[[], object], list[str]]] = {
    "zero": (
        lambda: a_study(cost=0),
        ["more than 0", "{'x': 0.0, 'y': 0.0} costs 0", "positive base"],
    ),
    "zero at one point": (
        lambda: a_study(cost=np.r_[np.ones(19), 0]),
        ["{'x': 1.0, 'y': 1.0} costs 0"],
    ),
    "travel alone": (
        lambda: a_study(cost=tv.Cost(travel={"x": 1})),
        ["costs 0 (without travel)", "positive base"],
    ),
    "levels that cost nothing": (
        lambda: a_study(noise=tv.NoiseLevels([0.1], [0])),
        ["more than 0"],
    ),
    "negative base": (lambda: a_study(cost=tv.Cost(-1)), ["cost", "-1.0"]),
    "base that is no column": (lambda: a_study(cost=tv.Cost("depth")), ["'depth'", "x, y"]),
    "travel along no column": (
        lambda: a_study(cost=tv.Cost(1, {"z": 1})),
        ["unknown column 'z'", "x, y"],
    ),
    "magnitude of no column": (
        lambda: a_study(cost=tv.Cost(1, magnitude={"z": 1})),
        ["unknown column 'z'", "x, y"],
    ),
    "negative travel": (lambda: tv.Cost(1, {"x": -1}), ["travel rate of 'x'", "-1"]),
    "travel in words": (lambda: tv.Cost(1, {"x": "far"}), ["travel rate of 'x'", "'far'"]),
    "travel without a column": (lambda: tv.Cost(1, 0.25), ["travel", "0.25", "{'x': 0.25}"]),
    "negative magnitude": (
        lambda: tv.Cost(1, magnitude={"x": -1}),
        ["magnitude rate of 'x'", "-1"],
    ),
    "more variances than costs": (
        lambda: tv.NoiseLevels([0.1, 0.2], [1]),
        ["as many costs", "[0.1, 0.2]", "[1]"],
    ),
    "no levels": (lambda: tv.NoiseLevels([], []), ["at least one", "[]"]),
    "level that is no list": (lambda: tv.NoiseLevels(0.1, 1), ["two lists", "0.1"]),
    "negative variance of a level": (
        lambda: tv.NoiseLevels([0.1, -0.1], [1, 2]),
        ["noise level 1", "-0.1"],
    ),
    "negative cost of a level": (
        lambda: tv.NoiseLevels([0.1], [-1]),
        ["cost of noise level 0", "-1"],
    ),
    "level in words": (
        lambda: a_study(noise=tv.NoiseLevels(["low"], [1])),
        ["unknown column 'low'"],
    ),
    "level of other things": (lambda: tv.NoiseLevels([{}], [1]), ["noise level 0", "{}"]),
}


@pytest.mark.parametrize("name", COSTS)
def test_every_measurement_costs_something(name: str) -> None:
    mistake, parts = COSTS[name]
    refused(mistake, *parts)


def test_a_cost_function_that_becomes_free_on_the_way_is_refused() -> None:
    def cost(points: Any, last: Any) -> Any:
        return np.ones(len(points)) if last is None else np.abs(points[:, 0] - last[0])

    study = a_study(cost=cost, policy="truvar")
    first = study.ask()
    refused(study.ask, "more than 0", "costs 0", "positive base")
    assert study.pending == [first]
    refused(
        a_study(cost=cost).ask, "more than 0", "costs 0", "positive base"
    )  # auto plans ahead, and meets it now


TASKS: dict[str, tuple[Callable[[], object], list[str]]] = {
    "not symmetric": (
        lambda: tv.Tasks([[1, 0.5], [0.2, 1]], ["f", "g"]),
        ["symmetric", "[[1.0, 0.5], [0.2, 1.0]]"],
    ),
    "not semi-definite": (
        lambda: tv.Tasks([[1, 2], [2, 1]], ["f", "g"]),
        ["semi-definite", "eigenvalue is -1"],
    ),
    "too few rows": (lambda: tv.Tasks([[1, 2]], ["f", "g"]), ["2 x 2", "[[1, 2]]"]),
    "ragged": (lambda: tv.Tasks([[1, 2], [1]], ["f", "g"]), ["2 x 2", "[[1, 2], [1]]"]),
    "NaN": (lambda: tv.Tasks([[1, NAN], [NAN, 1]], ["f", "g"]), ["finite", "nan"]),
    "words": (lambda: tv.Tasks("none", ["f", "g"]), ["2 x 2", "'none'"]),
    "one task": (lambda: tv.Tasks([[1]], ["f"]), ["at least two", "['f']"]),
    "a name twice": (
        lambda: tv.Tasks([[1, 0], [0, 1]], ["f", "f"]),
        ["different names", "['f', 'f']"],
    ),
    "names as text": (lambda: tv.Tasks([[1, 0], [0, 1]], "fg"), ["list", "'fg'"]),
    "one cost too few": (lambda: tasks(cost=[1]), ["one cost per task", "[1]"]),
    "negative cost": (lambda: tasks(cost=[1, -1]), ["cost of task 'proxy'", "-1"]),
    "zero cost": (lambda: tasks(cost=[1, 0]), ["more than 0", "'proxy' costs 0"]),
    "NaN cost": (lambda: tasks(cost=[1, NAN]), ["cost of task 'proxy'", "nan"]),
    "cost in words": (lambda: tasks(cost=[1, "little"]), ["cost of task 'proxy'", "'little'"]),
    "negative noise": (lambda: tasks(noise=[-1, 1]), ["noise of task 'f'", "-1"]),
    "mean in words": (lambda: tasks(mean=[0, "low"]), ["mean of task 'proxy'", "'low'"]),
    "NaN mean": (lambda: tasks(mean=[0, NAN]), ["mean of task 'proxy'", "nan"]),
    "a matrix": (
        lambda: a_study(tasks=[[1, 0], [0, 1]]),
        ["Tasks(names=[...])", "[[1, 0], [0, 1]]"],
    ),
    "one noise for several levels": (
        lambda: a_study(
            tasks=tv.Tasks([[1, 0], [0, 1]], ["f", "g"], noise=[0.1, 0.2]),
            noise=tv.NoiseLevels([0.1, 0.2], [1, 2]),
        ),
        ["2 noise levels", "0.1 for 'f'", "one list of 2 numbers per task"],
    ),
    "noise by level without levels": (
        lambda: tasks(noise=[[0.1, 0.2], [0.1, 0.2]]),
        ["2 variances for 'f'", "no noise levels"],
    ),
    "ragged noise by level": (
        lambda: tasks(noise=[[0.1, 0.2], [0.1]]),
        ["same length", "[[0.1, 0.2], [0.1]]"],
    ),
    "negative noise of a level": (
        lambda: tasks(noise=[[0.1], [-0.1]]),
        ["noise of task 'proxy' at level 0", "-0.1"],
    ),
    "no names": (lambda: tv.Tasks(), ["at least two different names", "()"]),
    "learned kernel, target without variance": (
        lambda: a_study(kernel="rbf", tasks=tv.Tasks([[0, 0], [0, 1]], ["f", "g"])),
        ["variance > 0", "got 0"],
    ),
    "noise learned and given": (
        lambda: tv.Study(
            GRID,
            tv.Maximize(),
            kernel=tv.Learned(noise=True),
            tasks=tv.Tasks(names=["f", "g"], noise=[0.1, 0.2]),
        ),
        ["to be learned", "[0.1, 0.2]"],
    ),
    "mean of the tasks and a mean function": (
        lambda: a_study(
            mean=lambda x: x[:, 0], kernel=None, tasks=tv.Tasks(names=["f", "g"], mean=[0.0, 1.0])
        ),
        ["their own means", "depends on the point"],
    ),
}


@pytest.mark.parametrize("name", TASKS)
def test_tasks_that_cannot_be_are_refused(name: str) -> None:
    mistake, parts = TASKS[name]
    refused(mistake, *parts)


# -- the model, the goal, the policy
# ---------------------------------------------------------------------------------

MODELS: dict[str, tuple[Callable[[], object], list[str]]] = {
    "wrong dimension": (
        lambda: a_study(kernel=RBF([1, 2, 3])),
        ["2 columns (x, y)", "3!=2", "one length-scale or 2"],
    ),
    "white noise": (lambda: a_study(kernel=KERNEL + WhiteKernel()), ["WhiteKernel", "noise=..."]),
    "white noise inside": (
        lambda: a_study(kernel=Exponentiation(KERNEL + WhiteKernel(), 2)),
        ["WhiteKernel"],
    ),
    "unknown name": (lambda: a_study(kernel="quadratic"), ["'quadratic'", "rbf"]),
    "number": (lambda: a_study(kernel=3.0), ["scikit-learn kernel", "3.0"]),
    "class": (lambda: a_study(kernel=RBF), ["scikit-learn kernel", "RBF"]),
    "no variance": (
        lambda: a_study(kernel=ConstantKernel(0.0) * RBF()),
        ["no variance", "positive"],
    ),
    "zero length": (lambda: a_study(kernel=RBF(0.0)), ["length-scales must be positive", "0"]),
    "negative length": (
        lambda: a_study(kernel=KERNEL + RBF([1.0, -1.0])),
        ["length-scales must be positive", "-1.0"],
    ),
    "NaN length": (lambda: a_study(kernel=RBF(NAN)), ["length-scales must be positive", "nan"]),
    "mean in words": (
        lambda: a_study(mean="low"),
        ["mean must be a number or a column", "'low'", "x, y"],
    ),
    "short mean": (
        lambda: a_study(mean=[0.0, 1.0]),
        ["mean as an array", "got shape (2,)", "as many values"],
    ),
    "ragged mean": (lambda: a_study(mean=[[0.0], [1.0, 2.0]]), ["mean", "array of numbers"]),
    "infinite mean": (
        lambda: a_study(mean=lambda x: np.full(len(x), INF)),
        ["mean must be finite", "row 0"],
    ),
    "mean of another shape": (
        lambda: a_study(mean=lambda x: x),
        ["mean must be one number per point"],
    ),
    "mean of two arguments": (
        lambda: a_study(mean=lambda x, last: x),
        ["mean(points)", "1 argument"],
    ),
    "mean on the representers of a box": (
        lambda: tv.Study(
            tv.Domain.box(x=(0, 1), representers=3),
            tv.Maximize(),
            kernel=RBF(),
            mean=[0, 1, 2],
            noise=0,
        ),
        ["box", "function of the points"],
    ),
    "mean function and logarithms": (
        lambda: a_study(kernel=tv.Learned(transform="log"), noise=None, mean="x"),
        ['transform="log"', "depends on the point", "leave out"],
    ),
    "mean function and means of tasks": (
        lambda: a_study(mean="x", tasks=tv.Tasks([[1, 0], [0, 1]], ["f", "g"], mean=[0, 1])),
        ["tasks have their own means", "leave out one"],
    ),
    "NaN mean": (lambda: a_study(mean=NAN), ["mean must be a finite number", "nan"]),
    "unknown family": (lambda: tv.Learned("cubic"), ["'cubic'", "matern52"]),
    "never refit": (lambda: tv.Learned(refit_every=0), ["every", ">= 1", "0"]),
    "refit in words": (lambda: tv.Learned(refit_every="often"), ["every", "'often'"]),
    "half a refit": (lambda: tv.Learned(refit_every=2.5), ["every", "2.5"]),
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
    "equal thresholds": (lambda: tv.LevelSet([2, 2]), ["different and ascending", "[2, 2]"]),
    "no threshold": (lambda: tv.LevelSet(), ["LevelSet(7.0)", "fraction_of_max=0.8"]),
    "threshold and fraction": (
        lambda: tv.LevelSet(1, fraction_of_max=0.5),
        ["either", "fraction_of_max=0.5"],
    ),
    "fraction 0": (lambda: tv.LevelSet(fraction_of_max=0), ["between 0 and 1", "0.8"]),
    "fraction 1.5": (lambda: tv.LevelSet(fraction_of_max=1.5), ["between 0 and 1", "1.5"]),
    "goal in words": (
        lambda: a_study(goal="maximum"),
        ["Maximize(), Minimize() or LevelSet(h)", "'maximum'"],
    ),
    "goal as a class": (lambda: a_study(goal=tv.Maximize), ["Maximize()", "class"]),
    "goal as a number": (lambda: a_study(goal=7.0), ["LevelSet(h)", "7.0"]),
    "domain as an array": (
        lambda: tv.Study(np.zeros((3, 2)), tv.Maximize(), kernel=KERNEL, noise=0.1),
        ["domain must be a Domain", "Domain.grid"],
    ),
    "start behind the last": (lambda: a_study(start=20), ["an index below 20", "20"]),
    "negative start": (lambda: a_study(start=-1), ["an index below 20", "-1"]),
    "start in words": (lambda: a_study(start="first"), ["'random'", "'first'"]),
    "start without a column": (
        lambda: a_study(start={"x": 0.0}),
        ["columns x, y", "'y' is missing"],
    ),
    "seed in words": (lambda: a_study(seed="lucky"), ["seed", "'lucky'"]),
    "negative seed": (lambda: a_study(seed=-1), ["seed", "-1"]),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_study_that_cannot_be_is_refused(name: str) -> None:
    mistake, parts = MODELS[name]
    refused(mistake, *parts)


POLICY_OPTIONS: list[tuple[str, Any]] = [
    *(("eta", bad) for bad in (-1, NAN, INF, "small", None)),
    *(("r", bad) for bad in (0, 1, -0.1, 2, NAN, "small", None)),
    *(("slack", bad) for bad in (-1, NAN, INF, "small")),
    *(("among", bad) for bad in ("best", 3)),
    *(("anticipate", bad) for bad in ("median", True)),
    *(("nodes", bad) for bad in (0, 2.5, "many", True)),
    *(("refine", bad) for bad in (1, "yes", None)),
    *(("beta", bad) for bad in (3.0, "large")),
]


@pytest.mark.parametrize(("option", "bad"), POLICY_OPTIONS)
def test_a_policy_option_out_of_range_is_named_with_its_value(option: str, bad: Any) -> None:
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
def test_a_schedule_out_of_range_is_named_with_its_value(
    schedule: Any, options: tuple[Any, ...], named: str
) -> None:
    bad = next(
        option for option in options if option not in (0.1, 1.0) or schedule is not tv.RKHSBeta
    )
    refused(lambda: schedule(*options), named, str(bad))


def test_the_theorem_needs_slack_and_a_target() -> None:
    theorem = tv.TheoremBeta(0.1)
    refused(
        lambda: a_study(policy=tv.TruVaR(beta=theorem)), "slack > 0", "slack = 0 and", "slack=0.1"
    )
    refused(
        lambda: a_study(policy=tv.TruVaR(beta=theorem, slack=0.1, eta=0.0)), "eta > 0", "eta = 0;"
    )


def test_the_information_gain_needs_noise() -> None:
    refused(
        lambda: a_study(noise=0.0, policy=tv.TruVaR(beta=tv.RKHSBeta(1.0, 0.1))),
        "infinite without noise",
        "> 0",
    )


def test_a_schedule_of_the_users_own_must_return_a_positive_number() -> None:
    refused(
        lambda: a_study(policy=tv.TruVaR(beta=lambda start: -2.0)),
        "at t = 1 must be > 0",
        "-2.0",
        "positive",
    )


def test_an_unknown_policy_is_named() -> None:
    with pytest.raises(UnknownPolicyError, match=r"unknown policy 'trovar'; .*truvar"):
        a_study(policy="trovar")
    with pytest.raises(tv.TruvarError, match=r"TruVaR\(\).*3"):
        a_study(policy=3)
