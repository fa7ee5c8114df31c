"""Constraints on grids, tables and boxes, and mixtures."""

import time

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF

import truvar as tv
from truvar.domain.constraints import (
    _MAX_VERTICES,
    LinearConstraint,
    PolygonConstraint,
    as_constraint,
)
from truvar.exceptions import (
    InvalidDomainError,
    PointNotInDomainError,
    SerializationError,
    TruvarError,
)
from truvar.storage.serialization import deserialize, serialize

SIDE = np.linspace(0, 1, 11)
TRIANGLE = [[(0.0, 0.0), (1.0, 0.0), (0.0, 1.0)]]


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("x + y <= 1", (0.3, 0.7), (0.31, 0.7)),
        ("1 >= x + y", (0.3, 0.7), (0.31, 0.7)),
        ("x + y < 1", (0.3, 0.69), (0.3, 0.7)),
        ("2 * x - y / 4 > 0.5", (0.5, 0.5), (0.25, 0.5)),
        ("0.2 <= x <= 0.4", (0.3, 9.0), (0.5, 0.0)),
        ("x >= 0.2 and -y >= -0.5", (0.2, 0.5), (0.2, 0.51)),
        ("(x + y) * 2 == 1", (0.2, 0.3), (0.2, 0.31)),
        ("x <= 1e-1 * 3", (0.3, 0.0), (0.301, 0.0)),
    ],
)
def test_a_linear_inequality_is_read_as_it_is_written(text, inside, outside):
    constraint = LinearConstraint(text)
    np.testing.assert_array_equal(
        constraint.satisfied(np.array([inside, outside]), ("x", "y")), [True, False]
    )


def test_a_column_with_any_name_is_written_between_backticks():
    constraint = LinearConstraint("`depth (m)` + `x` <= 1")
    assert constraint.satisfied(np.array([[0.5, 0.5]]), ("x", "depth (m)"))[0]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("__import__('os').system('true') <= 1", "must be a linear inequality of columns"),
        ("x.real <= 1", "must be a linear inequality of columns"),
        ("x * y <= 1", "must be linear"),
        ("1 / x <= 1", "must be linear"),
        ("x ** 2 <= 1", "must be a linear inequality of columns"),
        ("x + y", "must compare two sides"),
        ("x is 1", "must compare with <=, <, >=, > or =="),
        ("x <= 1 or y <= 1", "must compare two sides"),
        ("x <= ", "must be a linear inequality such as"),
        ("1 <= 2", "must depend on a column"),
        ("x / 0 <= 1", "must not divide by 0"),
        ("x <= True", "must be a linear inequality of columns"),
        ("x + y <= 'a'", "is compared with a column"),
        ("x <= 1e999", "finite"),
        ("(" * 500 + "x" + ")" * 500 + " <= 1", "must be a linear inequality such as"),
    ],
)
def test_anything_else_is_refused_and_never_run(text, words):
    with pytest.raises(TruvarError, match=words):
        LinearConstraint(text)


def test_an_unknown_column_is_named():
    with pytest.raises(InvalidDomainError, match=r"'z <= 1' has an unknown column 'z'"):
        tv.Domain.grid(x=SIDE, constraints="z <= 1")


def test_a_grid_keeps_the_points_that_satisfy_all_constraints():
    domain = tv.Domain.grid(x=SIDE, y=SIDE, constraints=["x + y <= 1", "x >= 0.2"])
    expected = [(x, y) for x in SIDE for y in SIDE if x + y <= 1 + 1e-9 and x >= 0.2 - 1e-9]
    np.testing.assert_array_equal(domain.points, expected)
    assert domain.locate({"x": 0.25, "y": 0.25})[0] is None  # between the points, but possible
    with pytest.raises(PointNotInDomainError, match=r"does not satisfy the constraint x \+ y <= 1"):
        domain.locate({"x": 0.75, "y": 0.75})


def test_a_mask_a_function_and_a_polygon_select_the_same_points():
    full = tv.Domain.grid(x=SIDE, y=SIDE)
    mask = full.points.sum(axis=1) < 0.95
    expected = full.points[mask]
    for constraint in (mask, list(mask), lambda points: points.sum(axis=1) < 0.95, "x + y < 0.95"):
        np.testing.assert_array_equal(
            tv.Domain.grid(x=SIDE, y=SIDE, constraints=constraint).points, expected
        )
    inner = PolygonConstraint([[(-0.01, -0.01), (0.97, -0.01), (-0.01, 0.97)]])
    np.testing.assert_array_equal(
        tv.Domain.grid(x=SIDE, y=SIDE, constraints=inner).points, expected
    )


def test_a_table_takes_a_column_of_truth_values_and_keeps_its_other_columns():
    frame = pd.DataFrame(
        {"x": [0.0, 1.0, 2.0], "reachable": [True, False, True], "cost": [1.0, 2.0, 3.0]}
    )
    domain = tv.Domain.table(frame, columns=["x"], constraints="reachable")
    np.testing.assert_array_equal(domain.points[:, 0], [0.0, 2.0])
    np.testing.assert_array_equal(domain.column("cost"), [1.0, 3.0])
    with pytest.raises(InvalidDomainError, match="must hold True and False, or 1 and 0"):
        tv.Domain.table(frame, columns=["x"], constraints="cost")


def test_a_polygon_agrees_with_shapely_with_holes_and_several_parts():
    shapely = pytest.importorskip("shapely")
    holed = shapely.Polygon(
        [(0, 0), (4, 0), (4, 3), (0, 3)], holes=[[(1, 1), (2, 1), (2, 2), (1, 2)]]
    )
    area = shapely.union_all([holed, shapely.Point(6.0, 1.5).buffer(0.8)])
    points = np.random.default_rng(0).uniform([-1, -1], [8, 4], (4000, 2))
    from truvar.domain.constraints import polygon_of

    inside = polygon_of(area).satisfied(points, ("x", "y"))
    np.testing.assert_array_equal(inside, [area.contains(shapely.Point(p)) for p in points])
    domain = tv.Domain.box(x=(-1, 8), y=(-1, 4), constraints=area)
    assert domain.allows(domain.points).all()
    with pytest.raises(InvalidDomainError, match="must be a polygon, got a LineString"):
        tv.Domain.grid(x=SIDE, y=SIDE, constraints=shapely.LineString([(0, 0), (1, 1)]))


def test_a_geodataframe_is_a_polygon():
    geopandas = pytest.importorskip("geopandas")
    shapely = pytest.importorskip("shapely")
    frame = geopandas.GeoDataFrame(
        geometry=[shapely.box(0, 0, 0.45, 1), shapely.box(0.65, 0, 1.01, 1)]
    )
    domain = tv.Domain.grid(x=SIDE, y=SIDE, constraints=frame)
    assert set(np.round(domain.points[:, 0], 9)) == {0.0, 0.1, 0.2, 0.3, 0.4, 0.7, 0.8, 0.9, 1.0}


@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_the_representers_of_a_box_satisfy_its_constraints_and_are_about_as_many_as_wanted(d):
    names = [f"x{k}" for k in range(d)]
    domain = tv.Domain.box(
        representers=500, constraints=" + ".join(names) + " <= 1", **dict.fromkeys(names, (0, 1))
    )
    assert domain.points.sum(axis=1).max() <= 1
    assert 450 <= len(domain) <= 650
    stored = deserialize(serialize(domain))
    assert stored.constraints == domain.constraints
    np.testing.assert_array_equal(stored.points, domain.points)


@pytest.mark.parametrize(
    ("constraints", "words"),
    [
        ("x + y == 1", r"an equation leaves no room in a box.*Domain\.mixture"),
        (np.ones(3, bool), "a mask belongs to a finite domain"),
        ("x + y <= -1", "hardly any point of the box satisfies"),
        (lambda points: points, "one True or False per point"),
        (3, "a constraint must be a text"),
    ],
)
def test_a_constraint_that_a_box_cannot_use_is_refused(constraints, words):
    with pytest.raises(InvalidDomainError, match=words):
        tv.Domain.box(x=(0, 1), y=(0, 1), constraints=constraints)


def test_a_constraint_that_leaves_nothing_is_refused():
    with pytest.raises(
        InvalidDomainError, match="no point of the domain satisfies the constraints"
    ):
        tv.Domain.grid(x=SIDE, constraints="x > 2")
    with pytest.raises(InvalidDomainError, match="a mask must hold one True or False per point"):
        tv.Domain.grid(x=SIDE, constraints=np.ones(3, bool))


def test_a_mixture_sums_to_one_within_its_intervals():
    domain = tv.Domain.mixture(a=(0, 1), b=(0.2, 1), c=(0, 0.5), parts=10)
    np.testing.assert_allclose(domain.points.sum(axis=1), 1.0, rtol=1e-12)
    expected = sum(1 for a in range(11) for b in range(2, 11) for c in range(6) if a + b + c == 10)
    assert len(domain) == expected
    assert domain.locate({"a": 1 / 3, "b": 1 / 3, "c": 1 / 3})[0] is None
    with pytest.raises(PointNotInDomainError, match="does not satisfy the constraint"):
        domain.locate({"a": 0.3, "b": 0.3, "c": 0.3})
    assert deserialize(serialize(domain)).constraints == domain.constraints


def test_components_of_a_mixture_may_be_given_by_name_alone():
    named = tv.Domain.mixture("a", "b", c=(0, 0.5), parts=10)
    given = tv.Domain.mixture(a=(0, 1), b=(0, 1), c=(0, 0.5), parts=10)
    assert named.columns == ("a", "b", "c")
    np.testing.assert_array_equal(named.points, given.points)


@pytest.mark.parametrize(
    ("names", "intervals", "words"),
    [
        ([["a", "b"]], {}, r"must be a name, got \['a', 'b'\]; give Domain.mixture\('a', 'b'\)"),
        (["a", "b", "a"], {}, "'a' of the mixture occurs twice"),
        (["a", "b"], {"a": (0, 0.5)}, "'a' of the mixture occurs twice"),
        (["a"], {}, "at least two components, got 1"),
    ],
)
def test_components_that_cannot_be_are_refused(names, intervals, words):
    with pytest.raises(InvalidDomainError, match=words):
        tv.Domain.mixture(*names, **intervals)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"a": (0, 1)}, "at least two components"),
        ({"a": (0, 2), "b": (0, 1)}, "lie between 0 and 1"),
        ({"a": (0, 0.1), "b": (0, 0.1)}, "no mixture in steps"),
        ({**{f"c{k}": (0, 1) for k in range(12)}, "parts": 20}, "at most 200000 points"),
    ],
)
def test_a_mixture_that_cannot_be_is_refused(options, words):
    with pytest.raises(InvalidDomainError, match=words):
        tv.Domain.mixture(**options)


@pytest.mark.parametrize("policy", ["auto", "truvar", "random", "ei", "thompson", "ucb"])
def test_no_suggestion_in_a_box_breaks_a_constraint(policy):
    domain = tv.Domain.box(
        x=(0, 1), y=(0, 1), constraints=["x + y <= 1", "y <= 0.6"], representers=300
    )
    study = tv.Study(domain, tv.Maximize(), noise=1e-4, policy=policy)
    for _ in range(10):
        suggestion = study.ask()
        x = suggestion.point["x"]
        y = suggestion.point["y"]
        assert x + y <= 1
        assert y <= 0.6
        study.tell(suggestion, x + 2 * y)  # best where both constraints bind
    best = study.result().best.point
    assert best["x"] + best["y"] <= 1
    assert best["y"] <= 0.6


def test_a_constrained_box_is_stored_and_resumed(tmp_path):
    domain = tv.Domain.box(
        x=(0, 1), y=(0, 1), constraints=["x + y <= 1", PolygonConstraint(TRIANGLE)]
    )
    study = tv.Study(
        domain, tv.LevelSet(0.3), noise=1e-4, store=f"sqlite:///{tmp_path}/s.db", name="s"
    )
    for _ in range(3):
        suggestion = study.ask()
        study.tell(suggestion, suggestion.point["x"])
    resumed = tv.load(f"sqlite:///{tmp_path}/s.db", "s")
    copied = tv.Study.from_json(study.to_json())
    assert resumed.ask().point == copied.ask().point
    with pytest.raises(SerializationError, match="constraint of the domain"):
        tv.Study(
            tv.Domain.box(x=(0, 1), constraints=lambda points: points[:, 0] < 0.5),
            tv.Maximize(),
            store=f"sqlite:///{tmp_path}/t.db",
            name="t",
        )


# -- values of a column
# ------------------------------------------------------------------------------------------------

MIXED = tv.Domain.grid(
    solver=["lbfgs", "saga", "sag"],
    shrink=tv.Boolean(),
    size=tv.Ordinal(["small", "medium", "large"]),
    day=tv.Date("2026-05-01", "2026-05-05"),
    x=[0.0, 1.0, 2.0],
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("solver == 'saga'", lambda p: p["solver"] == "saga"),
        ("'saga' == solver", lambda p: p["solver"] == "saga"),
        ("solver != 'saga' and x <= 1", lambda p: p["solver"] != "saga" and p["x"] <= 1),
        ("solver in ('lbfgs', 'sag')", lambda p: p["solver"] in ("lbfgs", "sag")),
        ("solver not in ['lbfgs', 'sag']", lambda p: p["solver"] == "saga"),
        ("shrink == True", lambda p: p["shrink"]),
        ("shrink != True", lambda p: not p["shrink"]),
        ("size >= 'medium'", lambda p: p["size"] != "small"),
        ("'small' < size < 'large'", lambda p: p["size"] == "medium"),
        ("day < '2026-05-03'", lambda p: p["day"] < "2026-05-03"),
        ("'2026-05-02' <= day <= '2026-05-04'", lambda p: "2026-05-02" <= p["day"] <= "2026-05-04"),
        ("x != 1", lambda p: p["x"] != 1),
        ("x in (0, 2)", lambda p: p["x"] != 1),
    ],
)
def test_columns_are_compared_with_their_own_values(text, expected):
    satisfied = MIXED.satisfies([LinearConstraint(text)], MIXED.points)
    assert satisfied.tolist() == [bool(expected(MIXED.point(k))) for k in range(len(MIXED))]
    assert len(tv.Domain.grid(**GRID_SIDES, constraints=text)) == satisfied.sum()


GRID_SIDES = {
    "solver": ["lbfgs", "saga", "sag"],
    "shrink": tv.Boolean(),
    "size": tv.Ordinal(["small", "medium", "large"]),
    "day": tv.Date("2026-05-01", "2026-05-05"),
    "x": [0.0, 1.0, 2.0],
}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("solver < 'saga'", "have no order"),
        ("solver == 'sagaa'", "unknown value 'sagaa'; did you mean 'saga'"),
        ("x == 'saga'", "must be a number, got 'saga'"),
        ("x <= 'a'", "must be a number, got 'a'"),
        ("solvr == 'saga'", "unknown column 'solvr'"),
        ("solver + 1 == 'saga'", "is compared with a column"),
        ("solver in 'saga'", "'in' takes a column and a list"),
        ("solver == __import__('os')", "linear inequality"),
    ],
)
def test_a_comparison_that_means_nothing_is_refused(text, message):
    with pytest.raises(tv.TruvarError, match=message):
        tv.Domain.grid(**GRID_SIDES, constraints=text)


def test_a_mixed_box_suggests_only_allowed_categories_and_is_stored():
    box = tv.Domain.box(
        solver=["lbfgs", "saga", "sag"], x=(0, 1), constraints="solver != 'saga'", representers=100
    )
    study = tv.Study(box, tv.Maximize(), noise=1e-4)
    for _ in range(8):
        suggestion = study.ask()
        assert suggestion.point["solver"] != "saga"
        study.tell(suggestion, suggestion.point["x"])
    assert tv.Study.from_json(study.to_json()).ask() == study.ask()


# -- masks and rows that are left out
# ----------------------------------------------------------------------------------


def test_a_mask_is_over_the_rows_of_the_table_as_it_is_given():
    frame = pd.DataFrame({"x": [0.0, None, 1.0, 1.0, 2.0, 3.0]}, index=list("abcdef"))
    mask = np.array([True, True, False, True, True, False])
    domain = tv.Domain.table(frame, missing="drop", duplicates="drop", constraints=mask)
    assert domain.points[:, 0].tolist() == [0.0, 2.0]  # row c is left out by the mask, d repeats it
    assert [domain.label(k) for k in range(2)] == ["a", "e"]
    for masks in (pd.Series(mask, index=frame.index), mask.tolist(), [mask, "x <= 1"]):
        assert (
            tv.Domain.table(frame, missing="drop", duplicates="drop", constraints=masks).points[
                0, 0
            ]
            == 0.0
        )
    with pytest.raises(
        tv.TruvarError, match=r"per row of the table, shape \(6,\), got shape \(4,\)"
    ):
        tv.Domain.table(frame, missing="drop", duplicates="drop", constraints=mask[:4])


@settings(max_examples=60, deadline=None)
@given(
    rings=st.lists(
        st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), min_size=3, max_size=12),
        min_size=1,
        max_size=3,
    )
)
def test_a_point_is_inside_a_polygon_if_an_odd_number_of_edges_lies_to_its_right(rings):
    points = np.array([(x / 2, y / 2) for x in range(17) for y in range(17)])
    expected = np.zeros(len(points), bool)
    for ring in rings:
        for (x0, y0), (x1, y1) in zip(ring, ring[1:] + ring[:1], strict=True):
            for k, (x, y) in enumerate(points):
                if (y0 > y) != (y1 > y):
                    expected[k] ^= x < x0 + (y - y0) * ((x1 - x0) / (y1 - y0))
    np.testing.assert_array_equal(PolygonConstraint(rings).satisfied(points, ("x", "y")), expected)


def test_a_polygon_with_many_vertices_is_quick_and_one_with_too_many_is_refused():
    angle = np.linspace(0, 2 * np.pi, _MAX_VERTICES, endpoint=False)
    ring = list(zip(np.cos(angle).tolist(), np.sin(angle).tolist(), strict=True))
    axis = np.linspace(-1, 1, 50)
    started = time.process_time()
    domain = tv.Domain.grid(x=axis, y=axis, constraints=PolygonConstraint([ring]))
    assert time.process_time() - started < 5  # 0.1 s; every edge against every point took 12 s
    assert len(domain) == pytest.approx(np.pi / 4 * 2500, rel=0.05)
    larger = PolygonConstraint([ring, ring[:3]])
    words = f"at most {_MAX_VERTICES} vertices, got {_MAX_VERTICES + 3}; simplify it"
    with pytest.raises(InvalidDomainError, match=words):
        tv.Domain.grid(x=axis, y=axis, constraints=larger)
    with pytest.raises(InvalidDomainError, match=words):
        tv.Study(domain, tv.Maximize(), kernel=RBF(), mean=0.0, noise=1.0).exclude(larger)


NESTED = {
    "signs": lambda depth: "-" * depth + "x <= 1",
    "values": lambda depth: "x != " + "-" * depth + "1",
    "products": lambda depth: "2 * (" * 50 + "-" * (depth - 50) + "x" + ")" * 50 + " <= 1",
}


@pytest.mark.parametrize("kind", NESTED)
def test_a_condition_nested_too_deeply_is_refused_in_words_and_a_stored_one_is_read(kind):
    axis = np.linspace(0, 1, 5)
    study = tv.Study(tv.Domain.grid(x=axis), tv.Maximize(), kernel=RBF(), mean=0.0, noise=1.0)
    as_constraint(NESTED[kind](90))
    for depth in (150, 990):
        text = NESTED[kind](depth)
        for give in (
            lambda text=text: tv.Domain.grid(x=axis, constraints=text),
            lambda text=text: study.exclude(text),
        ):
            with pytest.raises(
                InvalidDomainError,
                match="at most 1000 terms and 100 signs and brackets within each",
            ):
                give()
        stored = {"kind": "LinearConstraint", "text": text}
        assert _below(600, lambda stored=stored: deserialize(stored)) == LinearConstraint(text)


def _below(depth, function):
    """Call a function when the stack is already that deep."""
    return function() if depth == 0 else _below(depth - 1, function)


def test_a_long_sum_is_one_level_and_too_many_terms_are_refused():
    columns = tuple(f"x{k}" for k in range(900))
    text = " + ".join(columns) + " <= 899"
    point = np.ones((2, 900))
    point[0, 0] = 0.0
    np.testing.assert_array_equal(as_constraint(text).satisfied(point, columns), [True, False])
    with pytest.raises(InvalidDomainError, match="at most 1000 terms"):
        as_constraint(" + ".join(["x"] * 1001) + " <= 1")


EXPRESSIONS = st.recursive(
    st.sampled_from(["x", "y", "2", "0.5"]),
    lambda inner: st.one_of(
        st.builds("({} + {})".format, inner, inner),
        st.builds("({} - {})".format, inner, inner),
        st.builds("(-{})".format, inner),
        st.builds("(3 * {})".format, inner),
        st.builds("({} / 4)".format, inner),
    ),
    max_leaves=12,
)


@settings(max_examples=60, deadline=None)
@given(EXPRESSIONS)
def test_a_linear_expression_has_the_value_that_python_gives_it(text):
    values = {"x": 3.0, "y": 5.0}
    (comparison,) = LinearConstraint(f"{text} + 2000000 * y <= 0").comparisons
    found = comparison.constant + sum(
        factor * values[name] for name, factor in comparison.coefficients.items()
    )
    assert found == pytest.approx(eval(text, values.copy()) + 2_000_000 * values["y"], rel=1e-12)
