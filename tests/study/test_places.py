"""Places that are excluded or fail: they are not suggested, and what is said of them is kept and
replayed."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF, Matern

import truvar as tv
from truvar.algorithm.selection import policy_context
from truvar.domain.constraints import PolygonConstraint
from truvar.exceptions import (
    InvalidArgumentError,
    InvalidDomainError,
    MeasurementFailedError,
    UnknownSuggestionError,
)

SIDE = np.linspace(0, 1, 12)
GRID = tv.Domain.grid(x=SIDE, y=SIDE)
LEVEL_SET_POLICIES = ["auto", "truvar", "straddle", "gchk", "variance", "random"]
OPTIMUM_POLICIES = ["auto", "truvar", "ei", "ucb", "pes", "mrs", "thompson", "random", "bamsoo"]


def wave(point: dict[str, float]) -> float:
    return float(np.sin(6 * point["x"]) * np.cos(5 * point["y"]))


def a_study(goal: object = None, domain: tv.Domain = GRID, **options: object) -> tv.Study:
    known = {"kernel": Matern(0.3), "mean": 0.0, "noise": 1e-4}
    return tv.Study(domain, goal or tv.LevelSet(0.3), **{**known, **options})


@pytest.mark.parametrize(
    ("goal", "policy"),
    [(tv.LevelSet(0.3), name) for name in LEVEL_SET_POLICIES]
    + [(tv.Maximize(), name) for name in OPTIMUM_POLICIES],
)
def test_no_policy_suggests_an_excluded_or_failed_place_and_resumed_equals_uninterrupted(
    goal, policy
):
    study = a_study(goal, policy=policy)
    study.exclude({"x": (0.4, 0.6)}, reason="strip")
    failed = set()
    for k in range(12):
        try:
            suggestion = study.ask()
        except tv.Finished:
            break
        assert not 0.4 <= suggestion.point["x"] <= 0.6
        assert suggestion.index not in failed
        if k % 4 == 1:
            study.fail(suggestion, "no signal")
            failed.add(suggestion.index)
        else:
            study.tell(suggestion, wave(suggestion.point))
    assert failed
    result = study.result()
    assert not result.excluded[result.best.index]
    resumed = tv.Study.from_json(study.to_json())
    np.testing.assert_array_equal(resumed.result().feasibility, result.feasibility)
    assert resumed.spent == study.spent
    try:
        expected = study.ask()
    except tv.Finished as end:
        with pytest.raises(tv.Finished, match=end.reason[:20]):
            resumed.ask()
    else:
        assert resumed.ask() == expected


@pytest.mark.parametrize(
    ("place", "inside"),
    [
        ({"x": SIDE[3], "y": SIDE[5]}, lambda x, y: (x == SIDE[3]) & (y == SIDE[5])),
        ({"x": (0.2, 0.5)}, lambda x, y: (x >= 0.2) & (x <= 0.5)),
        ({"x": SIDE[3]}, lambda x, y: x == SIDE[3]),
        ("x + y > 1.5", lambda x, y: x + y > 1.5),
        (PolygonConstraint([[(-1, -1), (0.5, -1), (0.5, 2), (-1, 2)]]), lambda x, y: x < 0.5),
        (GRID.points[:, 0] < 0.3, lambda x, y: x < 0.3),
        (lambda points: points[:, 0] < 0.3, lambda x, y: x < 0.3),
    ],
)
def test_a_place_is_given_as_point_region_condition_polygon_mask_or_function(place, inside):
    study = a_study()
    study.exclude(place, reason="here")
    expected = inside(*GRID.points.T)
    np.testing.assert_array_equal(study.result().excluded, expected)
    assert study.result().infeasible_share == pytest.approx(expected.mean())
    resumed = tv.Study.from_json(study.to_json())
    np.testing.assert_array_equal(resumed.result().excluded, expected)
    assert study.events.iloc[-1]["details"]["reason"] == "here"
    study.allow(place)
    assert study.result().n_excluded == 0


@pytest.mark.parametrize(
    ("place", "error", "words"),
    [
        (99, UnknownSuggestionError, "there is no suggestion or measurement 99"),
        ({"z": (0, 1)}, InvalidArgumentError, "unknown column 'z'"),
        ({"x": (1, 0)}, InvalidArgumentError, "low <= high"),
        ({"x": (0, 1, 2)}, InvalidArgumentError, "one value or an interval"),
        ({}, InvalidArgumentError, "at least one column"),
        ("x > 7", InvalidArgumentError, "holds no point of the domain"),
        ("x * y > 1", InvalidDomainError, "must be linear"),
        (np.ones(5, bool), InvalidArgumentError, r"a Boolean mask of shape \(144,\)"),
        (3.5, InvalidArgumentError, "a place must be a suggestion"),
        ({"x": 0.511, "y": 0.5}, InvalidDomainError, "the nearest is"),
    ],
)
def test_a_place_that_cannot_be_used_is_refused_and_nothing_changes(place, error, words):
    study = a_study()
    with pytest.raises(error, match=words):
        study.exclude(place)
    assert study.version == 1
    assert study.result().n_excluded == 0


def test_a_failure_or_exclusion_that_is_sent_twice_is_recorded_once():
    study = a_study()
    first, second = study.ask(2)
    assert study.fail(first, "storm", cost=3.0) == first.id
    study.exclude(second.id, "rocks")
    version = study.version
    assert study.fail(first.id, "storm") == first.id
    assert study.fail(first.id, "storm", cost=3.0) == first.id
    study.exclude(second.id, "rocks")
    assert study.version == version
    with pytest.raises(UnknownSuggestionError, match="is not pending"):
        study.fail(first.id, "another reason")
    study.exclude(second.id, "another reason")
    study.allow(second.id)
    study.exclude(second.id, "rocks")  # after it was allowed, it is a new one
    assert study.version == version + 3
    assert study.result().excluded[second.index]


def test_excluding_a_suggestion_withdraws_it_and_excluding_a_measured_place_keeps_its_value():
    study = a_study()
    first, second = study.ask(2)
    study.tell(first, 0.7)
    study.exclude(second, reason="under a jetty")
    study.exclude(first.id)
    assert study.pending == []
    assert study.steps == 1
    assert study.result().excluded[[first.index, second.index]].all()
    assert study.result().mean[first.index] == pytest.approx(0.7, abs=0.01)


def test_a_failed_measurement_costs_what_it_costs_and_the_boat_is_there():
    study = a_study(cost=tv.Cost(1, travel={"x": 10}))
    first = study.ask()
    study.fail(first, "no signal", cost=2.5)
    assert study.spent == 2.5
    x = GRID.points[:, 0]
    np.testing.assert_allclose(study.candidates().cost[:, 0], 1 + 10 * np.abs(x - first.point["x"]))
    second = study.ask()
    study.tell(second, 0.1)
    assert study.spent == 2.5 + second.cost
    assert list(study.history["spent"]) == [study.spent]
    assert [record.spent for record in study.measurement_records()] == [study.spent]
    study.fail({"x": 0.0, "y": 0.0})
    assert study.result().spent == study.spent
    assert (study.failures[0].reason, study.failures[0].cost) == ("no signal", 2.5)
    assert study.steps == 1
    assert study.result().n_failed == 2


def test_failures_of_a_region_are_learned_and_forgotten_when_it_is_allowed():
    study = a_study()
    for row in np.flatnonzero((GRID.points[:, 0] > 0.75) & (GRID.points[:, 1] < 0.5))[::3]:
        study.fail(GRID.point(row), "shallow")
    for row in np.flatnonzero(GRID.points[:, 0] < 0.7)[::7]:
        study.tell(GRID.point(row), wave(GRID.point(row)))
    result = study.result()
    free = ~result.excluded
    corner = (GRID.points[:, 0] > 0.75) & (GRID.points[:, 1] < 0.45)
    assert result.feasibility[free & corner].mean() < 0.5
    assert result.feasibility[GRID.points[:, 0] < 0.5].min() > 0.7
    assert 0.08 < result.infeasible_share < 0.4
    weighted = study.candidates()
    gains = study.gains()
    chosen = study.ask()
    scores = gains * weighted.feasibility / weighted.cost[:, 0]
    assert scores[chosen.index] == pytest.approx(scores.max(), rel=1e-6)
    study.withdraw(chosen, again=True)
    study.allow("x > 0.7")
    assert study.result().infeasible_share == 0.0
    assert len(study.failures) > 0


def test_an_optimum_is_looked_for_among_the_places_that_are_allowed():
    domain = tv.Domain.grid(x=np.linspace(0, 1, 21))
    study = tv.Study(
        domain, tv.Maximize(), kernel=Matern(0.3), mean=0.0, noise=1e-6, policy="truvar"
    )
    for x in (0.1, 0.5, 0.9):
        study.tell({"x": x}, x)  # the best is at the right
    study.exclude("x > 0.86", reason="breaks the sample")
    result = study.result()
    assert result.best.point["x"] <= 0.86
    assert not result.potential[result.excluded].any()
    assert result.probability[result.excluded].sum() == 0.0
    study.run(lambda point: point["x"], regret=0.02, steps=25)
    result = study.result()
    assert 0.75 <= result.best.point["x"] <= 0.86
    assert result.expected_regret.high < 0.1  # no point that cannot be measured counts as better
    study.allow()
    assert study.result().best.point["x"] > 0.86


def test_when_every_place_is_excluded_the_study_says_so():
    study = a_study()
    study.exclude({"x": (0, 1)})
    with pytest.raises(tv.Finished, match="every place is excluded or failed"):
        study.ask()
    assert study.finished is None
    study.allow("x > 0.5")
    assert study.ask().point["x"] > 0.5


def test_an_excluded_start_is_not_used():
    study = a_study(start=5)
    study.exclude(GRID.point(5))
    assert study.ask().index != 5


def test_a_point_of_a_box_takes_its_surroundings_with_it():
    study = a_study(domain=tv.Domain.box(x=(0, 2), y=(0, 1)))
    first = study.ask()
    study.fail(first, "rock")
    for _ in range(3):
        suggestion = study.ask()
        distance = max(
            abs(suggestion.point["x"] - first.point["x"]) / 2,
            abs(suggestion.point["y"] - first.point["y"]),
        )
        assert distance > 0.01
        study.tell(suggestion, wave(suggestion.point))
    with pytest.raises(InvalidArgumentError, match="expected a condition such as"):
        study.exclude(np.ones(len(study.domain), bool))


def test_with_tasks_and_levels_a_place_is_excluded_for_all_of_them():
    study = tv.Study(
        GRID,
        tv.LevelSet(0.3),
        kernel=Matern(0.3),
        mean=0.0,
        noise=tv.NoiseLevels(variance=[1e-4, 0.1], cost=[5, 1]),
    )
    study.exclude("x > 0.5")
    assert {s.point["x"] <= 0.5 for s in study.ask(4)} == {True}
    tasks = tv.Tasks(
        names=["target", "cheap"],
        covariance=[[1.0, 0.8], [0.8, 1.0]],
        cost=[4, 1],
        noise=[1e-4, 1e-4],
    )
    study = tv.Study(GRID, tv.LevelSet(0.3), kernel=Matern(0.3), mean=0.0, tasks=tasks)
    study.exclude("x > 0.5")
    assert {s.point["x"] <= 0.5 for s in study.ask(4)} == {True}


def test_others_see_exclusions_in_a_store(tmp_path):
    url = f"sqlite:///{tmp_path}/s.db"
    one = a_study(store=url, name="s")
    other = tv.load(url, "s")
    one.fail(one.ask(), "no signal")
    one.exclude("x > 0.5")
    assert other.ask().point["x"] <= 0.5
    assert other.failures[0].reason == "no signal"
    assert other.spent == one.spent == 1.0
    assert tv.studies(url)["spent"].tolist() == [1.0]


# -- runs
# --------------------------------------------------------------------------------------------------


def test_a_run_records_exceptions_and_missing_values_and_goes_on():
    answers = iter([RuntimeError("probe  lost"), float("nan"), None])

    def measure(point):
        if (answer := next(answers, 1.0)) == 1.0 or study.steps == 0:
            return wave(point)
        if isinstance(answer, Exception):
            raise answer
        return answer

    study = a_study()
    study.run(wave, steps=1)
    with pytest.warns(RuntimeWarning, match="the run continues elsewhere"):
        result = study.run(measure, steps=6)
    reasons = [failure.reason for failure in study.failures]
    assert reasons == [
        "RuntimeError: probe lost",
        "the function returned nan",
        "the function returned None",
    ]
    assert result.reason == "step limit (6) reached (3 measurements failed)"
    assert result.steps == 6
    assert result.spent == 9.0
    kinds = study.events["kind"].tolist()
    assert kinds.count("failed") == 3
    assert tv.Study.from_json(study.to_json()).failures == study.failures


def test_retries_and_max_failures_are_settable_and_said():
    calls = []

    def broken(point):
        calls.append(point)
        raise OSError("no power")

    study = a_study(limits={"max_failures": 1, "steps": 20})
    with pytest.warns(RuntimeWarning, match="failed 3 times"):
        result = study.run(broken, retries=2)
    assert len(calls) == 6
    assert result.reason.startswith(
        "2 measurements failed, more than max_failures (1) allows, the last: the measurement"
    )
    assert "OSError: no power" in result.reason
    study = a_study()
    with pytest.warns(RuntimeWarning, match="no power"):
        assert study.run(broken, max_failures=0, steps=5).steps == 0
    with pytest.raises(InvalidArgumentError, match="max_failures"):
        study.run(broken, max_failures=-1)
    with pytest.raises(InvalidArgumentError, match="retries"):
        a_study(limits={"retries": 1.5})


def test_a_function_that_never_works_ends_the_run_with_its_error():
    def broken(point):
        raise KeyError("depth")

    study = a_study()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(
            MeasurementFailedError, match="5 measurements in a row failed"
        ) as caught:
            study.run(broken, steps=20)
    assert isinstance(caught.value.__cause__, KeyError)
    assert study.pending == []


def test_one_in_five_that_fails_does_not_end_a_run():
    rng = np.random.default_rng(3)

    def measure(point):
        if rng.uniform() < 0.2:
            raise TimeoutError
        return wave(point)

    study = a_study()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = study.run(measure, steps=25)
    assert result.steps == 25
    assert result.n_failed >= 2


def test_what_a_run_does_not_measure_may_be_suggested_again():
    study = a_study(cost=3.0)
    result = study.run(wave, budget=7.0)
    assert result.steps == 2
    assert result.n_excluded == 0


# -- categories
# --------------------------------------------------------------------------------------------------

SOLVERS = tv.Domain.box(
    lr=tv.Log(1e-5, 1e-1), solver=["lbfgs", "saga", "sag"], shrink=tv.Boolean(), representers=200
)


@pytest.mark.parametrize(
    ("place", "inside"),
    [
        ({"solver": "saga"}, lambda p: p["solver"] == "saga"),
        ({"solver": ["saga", "sag"]}, lambda p: p["solver"] != "lbfgs"),
        (
            {"solver": "saga", "lr": (1e-3, 1e-1)},
            lambda p: p["solver"] == "saga" and p["lr"] >= 1e-3,
        ),
        ({"shrink": True}, lambda p: p["shrink"]),
        ("solver == 'saga' and lr > 1e-3", lambda p: p["solver"] == "saga" and p["lr"] > 1e-3),
    ],
)
def test_a_region_is_given_by_categories(place, inside):
    study = tv.Study(SOLVERS, tv.Maximize(), noise=1e-4)
    study.exclude(place, reason="does not converge")
    for _ in range(6):
        suggestion = study.ask()
        assert not inside(suggestion.point)
        study.tell(suggestion, -((np.log10(suggestion.point["lr"]) + 2.0) ** 2))
    expected = [bool(inside(SOLVERS.point(k))) for k in range(len(SOLVERS))]
    assert study.result().excluded.tolist() == expected
    resumed = tv.Study.from_json(study.to_json())
    assert resumed.result().excluded.tolist() == expected
    study.allow(place)
    assert not study.result().excluded.any()


def test_an_unknown_category_is_refused_with_the_nearest():
    study = tv.Study(SOLVERS, tv.Maximize(), noise=1e-4)
    with pytest.raises(InvalidDomainError, match="unknown value 'sagaa'; did you mean 'saga'"):
        study.exclude({"solver": "sagaa"})
    assert study.version == 1


def test_a_category_that_fails_is_learned():
    study = tv.Study(SOLVERS, tv.Maximize(), noise=1e-4)
    rng = np.random.default_rng(0)
    for k in range(15):
        point = SOLVERS.point(int(rng.integers(len(SOLVERS))))
        point["solver"] = ["lbfgs", "saga", "sag"][k % 3]
        if point["solver"] == "saga":
            study.fail(point, "does not converge")
        else:
            study.tell(point, rng.normal())
    feasibility = study.result().feasibility
    solver = SOLVERS.to_frame()["solver"]
    allowed = ~study.result().excluded
    assert feasibility[(solver == "saga") & allowed].max() < 0.5
    assert feasibility[(solver != "saga") & allowed].min() > 0.7


def test_a_strip_that_fails_is_learned_in_many_dimensions():
    box = tv.Domain.box(**dict.fromkeys("abcdef", (0, 1)), representers=200)
    study = tv.Study(box, tv.Maximize(), noise=1e-4)
    for x in box.points[:24]:
        if x[2] > 0.7:
            study.fail(box.named(x), "diverges")
        else:
            study.tell(box.named(x), float(x.sum()))
    feasibility = study.result().feasibility[24:]
    fails = box.points[24:, 2] > 0.8
    works = box.points[24:, 2] < 0.5
    assert feasibility[fails].mean() < 0.4
    assert feasibility[works].mean() > 0.85


@pytest.mark.parametrize("region", [{"lr": (1, 2)}, {"lr": 1e-7, "solver": "saga"}])
def test_a_region_outside_a_box_is_refused(region):
    study = tv.Study(SOLVERS, tv.Maximize(), noise=1e-4)
    with pytest.raises(
        InvalidArgumentError, match=r"holds no point of the domain, .* from 1e-05 to 0.1; check it"
    ):
        study.exclude(region)
    study.exclude({"lr": (1e-2, 1)})
    assert study.ask().point["lr"] < 1e-2


LINE = tv.Domain.grid(x=np.linspace(0, 1, 9))
BORDERED = {
    "grid": lambda: tv.Domain.grid(
        x=np.linspace(0, 1, 9), y=np.linspace(0, 1, 9), constraints="x + y <= 1"
    ),
    "box": lambda: tv.Domain.box(x=(0, 1), y=(0, 1), representers=64, constraints="x + y <= 1"),
}


@pytest.mark.parametrize("kind", BORDERED)
@pytest.mark.parametrize("change", ["exclude", "fail", "withdraw"])
def test_values_on_the_border_of_a_constraint_count_after_another_place_was_excluded(kind, change):
    study = tv.Study(BORDERED[kind](), tv.Maximize(), kernel=RBF(0.3), mean=0.0, noise=1e-4)
    study.tell({"x": 0.5, "y": 0.5}, 2.0)
    study.tell({"x": 0.25, "y": 0.75}, 1.0)
    before = study.improvement_per_cost()
    if change == "exclude":
        study.exclude({"x": 0.0, "y": 0.0})
    elif change == "fail":
        study.fail({"x": 0.0, "y": 0.0})
    else:
        suggestion = study.ask()
        study.exclude({"x": 0.0, "y": 0.0})
        study.withdraw(suggestion)
    assert policy_context(study._learner, 0).best_y == 2.0
    assert 0 < study.improvement_per_cost() < 1.1 * before


def test_the_improvement_is_finite_when_every_measured_place_or_every_place_is_excluded():
    study = a_study(tv.Maximize(), LINE)
    study.tell({"x": 0.5}, 2.0)
    study.exclude({"x": 0.5})
    assert 0 < study.improvement_per_cost() < np.inf
    study.exclude({"x": (0.0, 1.0)})
    assert study.improvement_per_cost() == 0.0


@settings(max_examples=40, deadline=None)
@given(
    coefficients=st.tuples(*[st.integers(-40, 40)] * 2).filter(any),
    limit=st.integers(-20, 20),
    counts=st.tuples(st.integers(2, 8), st.integers(2, 8)),
)
def test_every_point_of_a_constrained_grid_may_be_chosen(coefficients, limit, counts):
    a, b = (each / 10 for each in coefficients)
    axes = {"x": np.linspace(-1, 1, counts[0]), "y": np.linspace(0, 0.7, counts[1])}
    try:
        domain = tv.Domain.grid(**axes, constraints=f"{a} * x + {b} * y <= {limit / 10}")
    except tv.TruvarError:
        return  # no point satisfies it
    assert domain.allows(domain.points).all()


def test_the_best_point_of_the_history_is_not_an_excluded_one():
    study = a_study(tv.Maximize(), LINE)
    study.tell({"x": 0.5}, 2.0)
    study.exclude({"x": (0.4, 0.6)})
    study.tell({"x": 0.0}, -1.0)
    best = study.history["best_index"].iloc[-1]
    result = study.result()
    assert not result.excluded[best]
    assert (best, study.history["best_mean"].iloc[-1]) == (result.best.index, result.best.mean)
