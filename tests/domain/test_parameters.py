"""Parameters: values and coordinates, and domains made of them."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import pytest

import truvar as tv
from truvar.domain.domain import Domain
from truvar.exceptions import InvalidArgumentError, InvalidDomainError, PointNotInDomainError

ALL = [
    tv.Range(-2.0, 3.5),
    tv.Range(0.0, 1.0, step=0.1),
    tv.Log(1e-6, 1e-1),
    tv.Log(3e-4, 7e5),
    tv.Integer(1, 12),
    tv.Integer(-7, 100, step=3),
    tv.Integer(1, 10_000, log=True),
    tv.Ordinal([16, 32, 64, 128]),
    tv.Ordinal(["low", "medium", "high"]),
    tv.Categorical(["lbfgs", "saga", "sag"]),
    tv.Categorical([2, 2.5, "auto", None]),
    tv.Boolean(),
    tv.Date("2026-05-01", "2026-09-30"),
    tv.Date("2026-05-01T06:00", "2026-05-02T18:30"),
]


def random_domain(rng: np.random.Generator, representers: int = 40) -> Domain:
    """Return a box of one to four random parameters."""
    chosen = rng.integers(len(ALL), size=rng.integers(1, 5))
    return tv.Domain.box(representers=representers, **{f"p{i}": ALL[k] for i, k in enumerate(chosen)})


@pytest.mark.parametrize("parameter", ALL, ids=repr)
def test_values_survive_the_round_trip_through_coordinates(parameter):
    u = np.random.default_rng(0).random(200)
    coordinates = parameter.from_unit(u)
    low, high = parameter.bounds
    assert ((coordinates >= low - 1e-12) & (coordinates <= high + 1e-12)).all()
    for x in coordinates:
        value = parameter.decode(float(x))
        again = parameter.decode(parameter.encode(value, "p"))
        assert again == value
        assert type(again) is type(value)
        assert parameter.encode(value, "p") == pytest.approx(x, abs=2e-5)  # a time of day has whole seconds
        assert parameter.encode(parameter.parse(str(value), "p"), "p") == parameter.encode(value, "p")
    column = parameter.decode_column(coordinates).tolist()
    assert column == [parameter.decode(float(x)) for x in coordinates]


@pytest.mark.parametrize("parameter", [each for each in ALL if each.n_levels is not None], ids=repr)
def test_levels_are_what_snapping_leads_to(parameter):
    levels = parameter.levels
    assert len(levels) == parameter.n_levels == len(np.unique(levels))
    assert (levels == np.sort(levels)).all()
    assert (parameter.snap(levels) == levels).all()
    assert (parameter.level_of(levels) == np.arange(len(levels))).all()
    low, high = parameter.bounds
    assert (levels[0], levels[-1]) == (low, high)
    x = np.linspace(low - 1.0, high + 1.0, 501)
    assert np.isin(parameter.snap(x), levels).all()


def test_a_log_scale_spreads_values_evenly_by_ratio():
    parameter = tv.Log(1e-6, 1e-1)
    assert parameter.bounds == (-6.0, -1.0)
    assert parameter.encode(1e-3, "lr") == -3.0
    assert parameter.decode(-3.0) == 1e-3
    assert np.allclose(
        tv.Domain.grid(lr=tv.Log(1e-6, 1e-1, count=6)).column("lr"), [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1]
    )


def test_plain_domains_have_no_parameters():
    assert tv.Domain.box(x=(0, 1), y=(2, 3)).parameters == ()
    assert tv.Domain.grid(x=[0, 1, 2]).parameters == ()
    assert tv.Domain.table(pd.DataFrame({"x": [0.5, 1.5], "n": [1, 2]})).parameters == ()
    assert tv.Domain.box(x=tv.Range(0.0, 1.0)).parameters == ()


def test_a_box_with_few_points_is_a_grid():
    domain = tv.Domain.box(depth=tv.Integer(1, 5), solver=["a", "b"], flag=tv.Boolean())
    assert not domain.continuous
    assert domain.shape == (5, 2, 2)
    assert domain.point(0) == {"depth": 1, "solver": "a", "flag": False}


def test_representers_of_a_mixed_box_are_points_of_it():
    domain = tv.Domain.box(x=(0, 1), depth=tv.Integer(1, 12), solver=["a", "b", "c"], representers=500)
    assert domain.continuous
    assert (domain.snap(domain.points) == domain.points).all()
    counts = np.unique(domain.points[:, 2], return_counts=True)[1]
    assert len(counts) == 3
    assert counts.min() > 140


def test_a_table_takes_text_booleans_integers_and_dates():
    frame = pd.DataFrame(
        {
            "solver": ["lbfgs", "saga", "saga"],
            "flag": [True, False, True],
            "n": [3, 4, 5],
            "day": pd.to_datetime(["2026-05-01", "2026-05-03", "2026-06-01"]),
            "C": [0.01, 1.0, 100.0],
        }
    )
    domain = tv.Domain.table(frame, log=["C"])
    assert domain.point(1) == {"solver": "saga", "flag": False, "n": 4, "day": "2026-05-03", "C": 1.0}
    assert domain.locate({"solver": "saga", "flag": True, "n": 5, "day": datetime.date(2026, 6, 1), "C": 100})[0] == 2
    assert list(domain.column("n")) == [3, 4, 5]
    assert list(domain.to_frame()["solver"]) == ["lbfgs", "saga", "saga"]
    assert tv.Domain.table(frame, columns=["C", "n"], log="auto").parameters[0] == tv.Log(0.01, 100.0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: tv.Log(0, 1), "the low end of a log scale must be > 0, got 0"),
        (lambda: tv.Log(1, 0.1), "Log must have low < high"),
        (lambda: tv.Integer(1.5, 3), "must be a whole number, got 1.5"),
        (lambda: tv.Categorical("abc"), "needs a list of values, got 'abc'"),
        (lambda: tv.Categorical([]), "at least one value"),
        (lambda: tv.Categorical(["a", "a"]), "'a' is duplicated"),
        (lambda: tv.Categorical([object()]), "must be text, numbers, true or false"),
        (lambda: tv.Range(0, 1, step=2), "must fit between its ends"),
        (lambda: tv.Date("may", "june"), "must be a date such as"),
        (lambda: tv.Domain.grid(lr=tv.Log(1e-6, 1e-1)), "say how many"),
        (lambda: tv.Domain.box(flag=[True, True]), r"must be \[false, true\]"),
        (lambda: tv.Domain.table(pd.DataFrame({"x": ["1", "2", "x"]})), "must contain numbers, got 'x' in row 2"),
        (lambda: tv.Domain.table(pd.DataFrame({"x": ["a", 1.0]})), "numbers or text, not both, got 1.0 in row 1"),
        (lambda: tv.Domain.table(pd.DataFrame({"x": ["a", None]})), "got none in row 1"),
        (lambda: tv.Domain.table(pd.DataFrame({"x": [-1.0, 1.0]}), log=["x"]), "must be > 0, got -1.0 in row 0"),
        (lambda: tv.Domain.table(pd.DataFrame({"x": [1.0, 2.0]}), log=["y"]), "unknown column 'y'"),
        (lambda: tv.Domain.table(pd.DataFrame({"x": [1.0, 2.0]}), log="x"), r"give \['x'\]"),
    ],
)
def test_a_mistake_is_named_with_its_remedy(make, message):
    with pytest.raises((InvalidDomainError, InvalidArgumentError), match=message):
        make()


@pytest.mark.parametrize(
    ("point", "message"),
    [
        ({"lr": 1e-3, "depth": 3.5, "solver": "saga"}, "'depth' of the point must be a whole number, got 3.5"),
        ({"lr": -1.0, "depth": 3, "solver": "saga"}, "'lr' of the point must be > 0, got -1"),
        ({"lr": 1e-3, "depth": 3, "solver": "sags"}, "unknown value 'sags'; did you mean 'saga'"),
        ({"lr": 1.0, "depth": 3, "solver": "saga"}, "is not in the domain"),
        ({"lr": 1e-3, "depth": 13, "solver": "saga"}, "is not in the domain"),
    ],
)
def test_a_value_that_a_parameter_does_not_have_is_refused(point, message):
    domain = tv.Domain.box(lr=tv.Log(1e-6, 1e-1), depth=tv.Integer(1, 12), solver=["lbfgs", "saga"])
    with pytest.raises((PointNotInDomainError, InvalidArgumentError), match=message):
        domain.locate(point)


def test_functions_of_the_points_see_the_values_of_the_user():
    domain = tv.Domain.box(lr=tv.Log(1e-6, 1e-1), solver=["lbfgs", "saga"], representers=16)
    seen = []

    def cost(points, last):
        seen.append((points, last))
        return np.array([1.0 if solver == "saga" else 2.0 for solver in points[:, 1]])

    study = tv.Study(domain, tv.Maximize(), cost=cost, noise=lambda points: np.asarray(points[:, 0], dtype=float))
    suggestion = study.ask()
    assert suggestion.cost == (1.0 if suggestion.point["solver"] == "saga" else 2.0)
    assert suggestion.noise == pytest.approx(suggestion.point["lr"])
    study.tell(suggestion, 0.0)
    study.ask()
    assert list(seen[-1][1]) == list(suggestion.point.values())
    rates = tv.Study(domain, tv.Maximize(), cost=tv.Cost(base=1, magnitude={"lr": 10.0}))
    assert rates.candidates().cost.max() == pytest.approx(1 + 10 * domain.column("lr").max())
    with pytest.raises(InvalidArgumentError, match="has no numbers"):
        tv.Study(domain, tv.Maximize(), cost=tv.Cost(base=1, travel={"solver": 1.0}))


def test_dates_with_dots_have_the_day_first_and_dates_with_slashes_are_refused():
    frame = pd.DataFrame({"day": ["1.5.2026", "02.05.2026", "15.05.2026"], "z": [1, 2, 3]})
    domain = tv.Domain.table(frame)
    assert domain.parameters[0] == tv.Date("2026-05-01", "2026-05-15")
    assert domain.locate({"day": "2.5.2026", "z": 2})[0] == 1
    assert domain.point(2) == {"day": "2026-05-15", "z": 3}
    times = tv.Domain.table(pd.DataFrame({"t": ["1.5.2026 08:30", "1.5.2026 17:00"]}))
    assert times.point(1) == {"t": "2026-05-01T17:00:00"}
    with pytest.raises(tv.TruvarError, match="the day or the month may come first; write them as 2026-05-01"):
        tv.Domain.table(pd.DataFrame({"day": ["05/01/2026", "05/02/2026"]}))
