"""Costs of the way: by column and direction, straight lines, great circles, networks, matrices,
set-up and return."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF

import truvar as tv
from truvar.domain.candidates import ActionSpace
from truvar.domain.travel import _EARTH_RADIUS_KM, Stops
from truvar.domain.vehicles import Departure
from truvar.study.vehicles import departure

PLANE = tv.Domain.grid(x=[0.0, 3.0, 6.0], y=[0.0, 4.0, 8.0])
VILLAGES = tv.Domain.table(
    pd.DataFrame(
        {"x": [0.0, 1.0, 2.0, 3.0], "y": [0.0, 1.0, 0.0, 1.0], "village": ["a", "b", "c", "d"]}
    ),
    ["x", "y"],
)
ROADS = [("a", "b", 3.0), ("b", "c", 4.0), ("a", "c", 9.0), ("c", "d", 0.0), ("d", "harbour", 2.0)]
METRICS: dict[str, tuple[tv.Domain, Any]] = {
    "by column": (PLANE, {"x": 0.5, "y": 2.0}),
    "by direction": (PLANE, {"x": {"increasing": 3.0, "decreasing": 1.0}, "y": 2.0}),
    "straight line": (PLANE, tv.Euclidean({"x": 1.0, "y": 1.0})),
    "straight line by direction": (
        PLANE,
        tv.Euclidean({"x": 1.0, "y": {"increasing": 5.0, "decreasing": 0.5}}),
    ),
    "great circle": (PLANE, tv.GreatCircle("x", "y", rate=0.1)),
    "network": (VILLAGES, tv.Network(ROADS, places="village")),
    "one-way network": (
        VILLAGES,
        tv.Network([*ROADS, ("c", "a", 1.0), ("d", "b", 7.0)], "village", directed=True),
    ),
    "several parts": (PLANE, [tv.Euclidean({"x": 1.0}), {"y": 0.25}]),
}


def costs(domain: tv.Domain, travel: Any, origin: Any, **cost: Any) -> list[float]:
    """The cost of every point of the domain, coming from a position."""
    space = ActionSpace(domain, 0.1, tv.Cost(base=1.0, travel=travel, **cost), None)
    table = space.candidates(
        origin if isinstance(origin, Departure) else Departure(space.position(origin))
    )
    found: list[float] = table.cost[:, 0].tolist()
    return found


# -- by hand
# --------------------------------------------------------------------------------------------------


def test_a_straight_line_is_the_hypotenuse() -> None:
    line = costs(PLANE, tv.Euclidean({"x": 1.0, "y": 1.0}), {"x": 0.0, "y": 0.0})
    assert line == pytest.approx([1 + d for d in (0, 4, 8, 3, 5, 73**0.5, 6, 52**0.5, 10)])


def test_a_rate_may_differ_by_direction() -> None:
    up_and_down = {"x": {"increasing": 3.0, "decreasing": 1.0}}
    assert costs(PLANE, up_and_down, {"x": 3.0, "y": 0.0})[::3] == [1 + 3.0, 1.0, 1 + 9.0]


def test_a_great_circle_has_its_length_in_kilometres() -> None:
    ports = tv.Domain.table(
        pd.DataFrame({"lon": [0.0, 90.0, 180.0, 0.0], "lat": [0.0, 0.0, 0.0, 90.0]}), ["lon", "lat"]
    )
    quarter = np.pi / 2 * _EARTH_RADIUS_KM
    travel = tv.GreatCircle("lon", "lat", rate=2.0)
    found = costs(ports, travel, {"lon": 0.0, "lat": 0.0})
    assert found == pytest.approx([1.0, 1 + 2 * quarter, 1 + 4 * quarter, 1 + 2 * quarter])
    # Zurich to Geneva, 224 km by tables of distances.
    towns = tv.Domain.table(
        pd.DataFrame({"lon": [6.1432, 8.5417], "lat": [46.2044, 47.3769]}), ["lon", "lat"]
    )
    assert costs(towns, tv.GreatCircle("lon", "lat"), {"lon": 8.5417, "lat": 47.3769})[
        0
    ] == pytest.approx(225, abs=2)


def test_the_date_line_is_no_border() -> None:
    islands = tv.Domain.table(
        pd.DataFrame({"lon": [-179.0, 179.0], "lat": [0.0, 0.0]}), ["lon", "lat"]
    )
    degree = np.pi / 180 * _EARTH_RADIUS_KM
    assert costs(
        islands, tv.GreatCircle("lon", "lat"), {"lon": 179.0, "lat": 0.0}
    ) == pytest.approx([1 + 2 * degree, 1])


def test_the_way_in_a_network_is_the_shortest() -> None:
    assert costs(VILLAGES, tv.Network(ROADS, places="village"), "a") == [1.0, 4.0, 8.0, 8.0]
    assert costs(VILLAGES, tv.Network(ROADS, places="village", rate=2.0), "harbour") == [
        19.0,
        13.0,
        5.0,
        5.0,
    ]


def test_a_network_and_a_matrix_are_read_from_tables_and_files(tmp_path: Any) -> None:
    roads = pd.DataFrame(ROADS, columns=["from", "to", "cost"])
    roads.to_csv(tmp_path / "roads.csv", index=False)
    network = tv.Network(ROADS, places="village")
    assert tv.Network(roads, places="village") == network
    assert tv.Network(str(tmp_path / "roads.csv"), places="village") == network
    names = ["a", "b", "c", "d"]
    minutes = pd.DataFrame(np.arange(16.0).reshape(4, 4), index=names, columns=names)
    minutes.to_csv(tmp_path / "minutes.csv")
    matrix = tv.TravelMatrix(minutes, places="village")
    assert matrix == tv.TravelMatrix(str(tmp_path / "minutes.csv"), places="village")
    assert costs(VILLAGES, matrix, "b") == [5.0, 6.0, 7.0, 8.0]
    assert costs(
        VILLAGES, tv.TravelMatrix(np.arange(16.0).reshape(4, 4)), {"x": 1.0, "y": 1.0}
    ) == [5.0, 6.0, 7.0, 8.0]


def test_set_up_is_paid_where_a_column_changes() -> None:
    assert costs(PLANE, {"x": 1.0}, {"x": 3.0, "y": 4.0}, setup={"y": 10.0})[3:6] == [
        11.0,
        1.0,
        11.0,
    ]


def test_the_first_measurement_pays_from_the_start_if_there_is_one() -> None:
    def study(**cost: Any) -> tv.Study:
        made = tv.Cost(base=1.0, travel={"x": 1.0}, **cost)
        return tv.Study(PLANE, tv.Maximize(), kernel=RBF(3.0), mean=0.0, noise=0.1, cost=made)

    assert study().candidates().cost[:, 0].tolist() == [1.0] * 9
    from_afar = study(start={"x": -2.0, "y": 0.0})
    assert from_afar.candidates().cost[::3, 0].tolist() == [3.0, 6.0, 9.0]
    suggestion = from_afar.ask()
    assert suggestion.cost == 3.0 + suggestion.point["x"]


def test_ways_are_in_the_users_numbers_and_any_column_may_need_set_up() -> None:
    tuning = tv.Domain.grid(
        lr=tv.Log(1e-4, 1e-1, count=4),
        depth=tv.Integer(1, 3),
        solver=tv.Categorical(["saga", "lbfgs"]),
    )
    start = {"lr": 1e-3, "depth": 3, "solver": "saga"}
    found = costs(tuning, {"lr": 100.0, "depth": 2.0}, start, setup={"solver": 7.0})
    for row, cost in enumerate(found):
        point = tuning.point(row)
        way = 100.0 * abs(point["lr"] - 1e-3) + 2.0 * abs(point["depth"] - 3)
        assert cost == pytest.approx(1 + way + 7.0 * (point["solver"] != "saga"))
    with pytest.raises(tv.TruvarError, match="which has no numbers"):
        costs(tuning, tv.Euclidean({"solver": 1.0}), None)


# -- properties
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", METRICS)
def test_no_way_is_free_to_leave_or_longer_than_a_detour(name: str) -> None:
    domain, travel = METRICS[name]
    space = ActionSpace(domain, 0.1, tv.Cost(base=1.0, travel=travel), None)
    stops = Stops(domain.points, np.arange(len(domain)))
    way = space.travel_between(stops, stops)
    assert (way >= 0).all()
    assert np.diag(way) == pytest.approx(0.0)
    for a, b, c in permutations(range(len(domain)), 3):
        assert way[a, c] <= way[a, b] + way[b, c] + 1e-9
    assert np.allclose(way, way.T) is ("direction" not in name and "one-way" not in name)


@pytest.mark.parametrize("name", METRICS)
def test_pairwise_costs_are_the_costs_from_each_point(name: str) -> None:
    domain, travel = METRICS[name]
    space = ActionSpace(
        domain, 0.1, tv.Cost(base=1.0, travel=travel, magnitude={"x": 0.5}, setup={"y": 2.0}), None
    )
    sites = np.array([0, 3, 1])
    for speed in (1.0, 4.0):
        wanted = [
            space.candidates(Departure(domain.points[site], speed)).cost[sites] for site in sites
        ]
        np.testing.assert_allclose(space.pairwise_costs(sites, speed), wanted)


@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.integers(0, 5), st.floats(0.1, 9)), min_size=1, max_size=12
    )
)
def test_shortest_paths_are_those_of_trying_all(edges: list[tuple[int, int, float]]) -> None:
    ring = [(k, (k + 1) % 6, 5.0) for k in range(6)]  # so that every place can be reached
    domain = tv.Domain.grid(x=np.arange(6.0))
    space = ActionSpace(domain, 0.1, tv.Cost(base=1.0, travel=tv.Network([*edges, *ring])), None)
    stops = Stops(domain.points, np.arange(6))
    best = np.where(np.eye(6) > 0, 0.0, np.inf)
    for a, b, cost in [*edges, *ring]:
        best[a, b] = min(best[a, b], cost)
        best[b, a] = best[a, b]
    for middle in range(6):  # Floyd and Warshall
        best = np.minimum(best, best[:, [middle]] + best[[middle], :])
    np.testing.assert_allclose(space.travel_between(stops, stops), best)


# -- the return leg
# --------------------------------------------------------------------------------------------------


def test_only_what_allows_the_return_is_suggested() -> None:
    line = tv.Domain.grid(x=np.arange(11.0))
    space = ActionSpace(
        line, 0.1, tv.Cost(base=1.0, travel={"x": 1.0}, start={"x": 0.0}, must_return=True), None
    )
    home = np.array([0.0])
    here = np.array([2.0])
    table = space.candidates(Departure(here, home=home, left=9.0))
    needed = 1 + np.abs(np.arange(11.0) - 2) + np.arange(11.0)
    assert (table.affordable == (needed <= 9.0)).all()
    assert space.return_cost(Departure(home=home, speed=2.0), here) == 1.0


@pytest.mark.parametrize("policy", ["auto", "truvar", "straddle", "random", "variance"])
def test_a_run_with_return_ends_at_home_within_the_budget(policy: str) -> None:
    cost = tv.Cost(
        base=1.0,
        travel=tv.Euclidean({"x": 1.0, "y": 1.0}),
        start={"x": 0.0, "y": 0.0},
        must_return=True,
    )
    options: dict[str, Any] = {
        "kernel": RBF(3.0),
        "mean": 0.0,
        "noise": 0.01,
        "cost": cost,
        "policy": policy,
    }
    study = tv.Study(PLANE, tv.LevelSet(0.3), **options)
    result = study.run(lambda point: np.sin(point["x"] / 2) * np.cos(point["y"] / 3), budget=30.0)
    (crew,) = study.vehicle_statuses
    assert study.spent + crew.return_cost <= 30.0 + 1e-9
    assert study.steps > 2
    ends = ("the return leg", "budget (30) spent")
    assert any(end in str(result.reason) for end in ends) or study.finished or study.exhausted


def test_the_limits_of_the_study_bind_ask_where_the_return_is_compulsory() -> None:
    cost = tv.Cost(base=1.0, travel={"x": 1.0}, start={"x": 0.0}, must_return=True)
    line = tv.Domain.grid(x=np.arange(11.0))
    study = tv.Study(
        line, tv.Maximize(), kernel=RBF(2.0), mean=0.0, noise=0.1, cost=cost, limits={"budget": 9.0}
    )
    while study.spent + study.vehicle_statuses[0].return_cost <= 8.0:
        study.tell(study.ask(), 1.0)
    with pytest.raises(tv.Finished, match="do not pay for another measurement and the return leg"):
        study.ask(3)
    assert study.spent + study.vehicle_statuses[0].return_cost <= 9.0
    assert study.ask(budget=40.0).cost > 0  # the budget of a single request may be another one


def test_a_policy_that_is_stopped_by_the_budget_alone_is_not_exhausted() -> None:
    cost = tv.Cost(base=1.0, travel={"x": 1.0}, start={"x": 0.0}, must_return=True)
    line = tv.Domain.grid(x=np.arange(11.0))
    tasks = tv.Tasks([[1.0, 0.5], [0.5, 1.0]], ["target", "proxy"], cost=[9.0, 1.0])
    options: dict[str, Any] = {
        "kernel": RBF(2.0),
        "mean": 0.0,
        "noise": 0.1,
        "cost": cost,
        "tasks": tasks,
    }
    study = tv.Study(line, tv.Maximize(), policy="ei", **options)
    with pytest.raises(
        tv.Finished, match="do not pay for another useful measurement and the return leg"
    ):
        study.ask(budget=5.0)  # it measures the target only
    assert study.exhausted is None
    assert study.ask(budget=30.0).task == "target"


@pytest.mark.parametrize("policy", ["auto", "bamsoo", "ucb"])
def test_in_a_box_the_return_is_kept_too(policy: str) -> None:
    cost = tv.Cost(
        base=0.1,
        travel=tv.Euclidean({"x": 1.0, "y": 1.0}),
        start={"x": 0.0, "y": 0.0},
        must_return=True,
    )
    box = tv.Domain.box(x=(0, 1), y=(0, 1), representers=64)
    study = tv.Study(
        box, tv.Maximize(), kernel=RBF(0.4), mean=0.0, noise=0.01, cost=cost, policy=policy
    )
    study.run(lambda point: point["x"] - point["y"] ** 2, budget=2.0)
    assert study.spent + study.vehicle_statuses[0].return_cost <= 2.0 + 1e-9


# -- refusals
# --------------------------------------------------------------------------------------------------

MISTAKES: dict[str, tuple[Any, str]] = {
    "no travel": (lambda: tv.Cost(travel="far"), "travel must be a dict of rates"),
    "one direction": (
        lambda: tv.Cost(travel={"x": {"increasing": 1.0}}),
        "increasing and decreasing",
    ),
    "negative direction": (
        lambda: tv.Euclidean({"x": {"increasing": 1.0, "decreasing": -1.0}}),
        "must be >= 0",
    ),
    "no column of a straight line": (lambda: tv.Euclidean({}), "at least one column"),
    "unknown column": (lambda: costs(PLANE, tv.Euclidean({"z": 1.0}), None), "unknown column 'z'"),
    "longitude and latitude swapped": (
        lambda: costs(
            tv.Domain.grid(lat=[0.0, 80.0], lon=[0.0, 170.0]), tv.GreatCircle("lat", "lon"), None
        ),
        "between -90 and 90",
    ),
    "negative edge": (lambda: tv.Network([("a", "b", -1.0)]), "must be >= 0"),
    "edge of two": (lambda: tv.Network([("a", "b")]), "must be (from, to, cost)"),
    "no edges": (lambda: tv.Network([]), "at least one edge"),
    "edges without costs": (
        lambda: tv.Network(pd.DataFrame({"from": ["a"], "to": ["b"]})),
        "from, to, cost",
    ),
    "place off the network": (
        lambda: costs(VILLAGES, tv.Network(ROADS[:2], places="village"), None),
        "has no place 'd'",
    ),
    "no way": (
        lambda: costs(
            VILLAGES,
            tv.Network([("a", "b", 1.0), ("c", "d", 1.0)], places="village"),
            {"x": 0.0, "y": 0.0},
        ),
        "there is no route from 'a' to 'c'",
    ),
    "matrix that is not square": (lambda: tv.TravelMatrix([[0.0, 1.0]]), "square matrix"),
    "matrix with a gap": (lambda: tv.TravelMatrix([[0.0, np.nan], [1.0, 0.0]]), "row 0, column 1"),
    "network in a box": (
        lambda: costs(tv.Domain.box(x=(0, 1)), tv.Network(ROADS), None),
        "finitely many points",
    ),
    "place without a network": (
        lambda: costs(PLANE, {"x": 1.0}, None, start="harbour"),
        "'harbour' is not known",
    ),
    "start without a column": (
        lambda: costs(PLANE, {"x": 1.0}, None, start={"y": 1.0}),
        "'x' is missing",
    ),
    "return without travel": (lambda: tv.Cost(base=1, must_return=True), "needs a cost of travel"),
    "negative set-up": (lambda: tv.Cost(setup={"x": -1}), "setup rate of 'x' must be >= 0"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_refused_in_one_line(name: str) -> None:
    mistake, message = MISTAKES[name]
    with pytest.raises(tv.TruvarError) as caught:
        mistake()
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_return_needs_a_start() -> None:
    cost = tv.Cost(base=1, travel={"x": 1.0}, must_return=True)
    with pytest.raises(tv.TruvarError, match="must_return needs a start"):
        tv.Study(PLANE, tv.Maximize(), cost=cost)


def test_a_cost_function_works_in_memory_and_says_what_a_store_needs(tmp_path: Any) -> None:
    def cost(points: Any, last: Any) -> Any:
        return (
            1.0
            + (0.0 if last is None else np.abs(points - last).max(axis=1))
            + np.zeros(len(points))
        )

    options: dict[str, Any] = {"kernel": RBF(3.0), "mean": 0.0, "noise": 0.1, "cost": cost}
    assert tv.Study(PLANE, tv.Maximize(), **options).ask().cost == 1.0
    with pytest.raises(tv.TruvarError, match=r"Euclidean, GreatCircle, Network or TravelMatrix"):
        tv.Study(PLANE, tv.Maximize(), store=f"sqlite:///{tmp_path}/a.db", name="a", **options)


# -- noise levels
# --------------------------------------------------------------------------------------------------


def test_the_variance_of_a_level_may_vary_by_place(tmp_path: Any) -> None:
    table = pd.DataFrame({"x": [0.0, 1.0, 2.0], "rough": [0.1, 0.2, 0.4]})
    domain = tv.Domain.table(table, ["x"])
    levels = tv.NoiseLevels(
        [1e-3, "rough", np.array([1.0, 2.0, 3.0]), lambda points: 0.5 + points[:, 0]], [9, 3, 2, 1]
    )
    options: dict[str, Any] = {"kernel": RBF(1.0), "mean": 0.0, "noise": levels}
    study = tv.Study(domain, tv.Maximize(), **options, store=f"sqlite:///{tmp_path}/n.db", name="n")
    wanted = [[1e-3, 0.1, 1.0, 0.5], [1e-3, 0.2, 2.0, 1.5], [1e-3, 0.4, 3.0, 2.5]]
    assert study.candidates().noise.tolist() == wanted
    assert study.candidates().cost.tolist() == [[9.0, 3.0, 2.0, 1.0]] * 3
    assert tv.load(f"sqlite:///{tmp_path}/n.db").candidates().noise.tolist() == wanted
    suggestion = study.ask()
    assert suggestion.noise == wanted[suggestion.index or 0][suggestion.level or 0]
    id_ = study.tell({"x": 1.0}, 0.3, level=1)
    assert study.measurements.set_index("id")["noise"][id_] == 0.2
    with pytest.raises(tv.TruvarError, match="variance of noise level 0"):
        tv.Study(
            domain, tv.Maximize(), noise=tv.NoiseLevels([lambda points: -points[:, 0] - 1], [1])
        )


# -- tours
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", [None, 30.0])
def test_tours_follow_the_ways_also_where_the_budget_limits_them(budget: float | None) -> None:
    plane = tv.Domain.grid(x=np.linspace(0, 10, 21), y=np.linspace(0, 2, 5))
    cost = tv.Cost(
        base=0.2,
        travel=tv.Euclidean({"x": 3.0, "y": 3.0}),
        start={"x": 0.0, "y": 0.0},
        must_return=True,
    )
    differ = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        values = [(plane.point(int(rng.integers(60))), rng.normal()) for _ in range(4)]
        firsts = []
        for stops in (1, 8):
            policy = tv.Plus(stops=stops)
            study = tv.Study(
                plane,
                tv.LevelSet(0.3),
                kernel=RBF(0.8),
                mean=0.2,
                noise=0.01,
                cost=cost,
                policy=policy,
            )
            for point, y in values:
                study.tell(point, y, cost=1.0)
            limited = not study._learner.actions.candidates(
                departure(study._state, None, budget)
            ).affordable.all()
            assert limited == (budget is not None)
            firsts.append(study.ask(budget=budget).index)
        differ += firsts[0] != firsts[1]
    assert differ > 0
