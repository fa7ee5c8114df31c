"""Studies of several quantities: the region where all requirements hold, and optima with constraints."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

import truvar as tv
from truvar.exceptions import (
    InvalidArgumentError,
    InvalidMeasurementError,
    TruvarError,
    UnsupportedGoalError,
)
from truvar.report.status import describe_expected
from truvar.report.suggestion_card import suggestion_card
from truvar.report.terminal import TerminalStyle

X = np.linspace(0, 1, 30)
KERNEL = ConstantKernel(1.0) * RBF(0.15)
YIELD = tv.LevelSet(0.0, of="yield")
IMPURITY = tv.LevelSet(below=0.2, of="impurity")
BOTH = tv.AllOf(YIELD, IMPURITY)
BEST = tv.Maximize("yield", subject_to="impurity <= 0.2")


def domain():
    return tv.Domain.grid(x=X)


def measure(point):
    return {"yield": np.sin(7 * point["x"]), "impurity": np.cos(5 * point["x"])}


def known(goal, **more):
    return tv.Study(domain(), goal, kernel=KERNEL, mean=0.0, noise=1e-4, **more)


def run(study, steps, of=measure):
    points = []
    for _ in range(steps):
        if study.finished:
            break
        suggestion = study.ask()
        points.append(suggestion.point["x"])
        study.tell(suggestion, of(suggestion.point))
    return points


# -- one quantity
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [{"kernel": KERNEL, "mean": 0.0, "noise": 1e-4}, {}])
def test_one_quantity_is_chosen_for_and_stated_as_a_level_set(model):
    plain = tv.Study(domain(), tv.LevelSet(0.3), **model)
    single = tv.Study(domain(), tv.AllOf(tv.LevelSet(0.3, of="y")), **model)
    points = run(plain, 8, lambda point: np.sin(7 * point["x"]))
    same = run(single, 8, lambda point: {"y": np.sin(7 * point["x"])})
    assert points == same
    ours = single.result()
    theirs = plain.result()
    assert np.array_equal(ours.probability, theirs.probability)
    assert ours.expected_f1 == theirs.expected_f1
    assert ours.share_above == theirs.share_above
    assert np.array_equal(ours.mean, theirs.mean)
    for name in ("above", "below", "undecided"):
        assert np.array_equal(getattr(ours.classes, name), getattr(theirs.classes, name))
        assert np.array_equal(getattr(ours.classify(), name), getattr(theirs.classify(), name))
        if name != "undecided":
            assert np.array_equal(getattr(ours, name), getattr(theirs, name))


# -- several
# --------------------------------------------------------------------------------------------------


def test_the_order_of_the_quantities_does_not_matter():
    studies = [known(BOTH), known(tv.AllOf(IMPURITY, YIELD))]
    first, second = (run(study, 9) for study in studies)
    assert first == second
    ours, theirs = (study.result() for study in studies)
    assert np.array_equal(ours.probability, theirs.probability)
    assert ours.expected_f1 == theirs.expected_f1
    assert np.array_equal(ours.classes.above, theirs.classes.above)


def test_the_units_of_a_quantity_do_not_matter():
    scaled = tv.AllOf(tv.LevelSet(40.0, of="yield"), tv.LevelSet(below=-3.8, of="impurity"))

    def in_units(point):
        values = measure(point)
        return {"yield": 40 + 1000 * values["yield"], "impurity": values["impurity"] - 4}

    studies = [
        known(BOTH),
        tv.Study(
            domain(),
            scaled,
            quantities={
                "yield": tv.Quantity(
                    kernel=ConstantKernel(1e6) * RBF(0.15), mean=40.0, noise=100.0
                ),
                "impurity": tv.Quantity(kernel=KERNEL, mean=-4.0, noise=1e-4),
            },
        ),
    ]
    assert run(studies[0], 8) == run(studies[1], 8, in_units)
    ours, theirs = (study.result() for study in studies)
    assert np.allclose(ours.probability, theirs.probability, atol=1e-6)
    assert np.array_equal(ours.classes.above, theirs.classes.above)


def test_the_order_of_the_rows_does_not_matter():
    frame = pd.DataFrame({"x": X**1.1})
    shuffled = frame.iloc[np.random.default_rng(3).permutation(len(X))]
    studies = [
        tv.Study(tv.Domain.table(rows), BOTH, kernel=KERNEL, mean=0.0, noise=1e-4, start=start)
        for rows, start in ((frame, 12), (shuffled, list(shuffled.index).index(12)))
    ]
    first, second = (run(study, 8) for study in studies)
    assert first == second
    ours, theirs = (study.result() for study in studies)
    back = np.argsort(shuffled.index)
    assert np.allclose(ours.probability, theirs.probability[back], atol=1e-6)
    assert ours.best.point == theirs.best.point


def posterior(points, values, at, sign=1.0):
    """Mean and covariance of the model of `known`, written out."""

    def covariance(a, b):
        return np.exp(-0.5 * ((a[:, None] - b[None, :]) / 0.15) ** 2)

    inner = covariance(points, points) + 1e-4 * np.eye(len(points))
    across = np.linalg.solve(inner, covariance(points, at))
    return across.T @ values, covariance(at, at) - covariance(at, points) @ across


def test_joint_statements_are_those_of_draws_of_both_quantities():
    study = known(BOTH, exact_model=True)
    points = np.array(run(study, 7))
    result = study.result()
    rng = np.random.default_rng(5)
    n_draws = 200_000
    inside = np.ones((n_draws, len(X)), bool)
    for name, side in (("yield", lambda f: f >= 0.0), ("impurity", lambda f: f <= 0.2)):
        values = np.array([measure({"x": x})[name] for x in points])
        mean, covariance = posterior(points, values, X)
        root = np.linalg.cholesky(covariance + 1e-10 * np.eye(len(X)))
        inside &= side(mean + rng.standard_normal((n_draws, len(X))) @ root.T)
    assert np.allclose(result.probability, inside.mean(axis=0), atol=0.006)
    share = inside.mean(axis=1)
    assert result.share_above.mean == pytest.approx(share.mean(), abs=0.006)
    reported = result.classification
    hits = (inside & reported).sum(axis=1)
    f1 = 2 * hits / np.maximum(inside.sum(axis=1) + reported.sum(), 1)
    assert result.expected_f1.mean == pytest.approx(f1.mean(), abs=0.01)
    strict = result.classify(0.9)
    right = np.ones(n_draws, bool)
    right &= inside[:, strict.above].all(axis=1) & ~inside[:, strict.below].any(axis=1)
    assert right.mean() >= 0.885
    assert 0 < strict.n_shown < len(X)


def test_a_missing_value_tells_nothing_about_its_quantity():
    study = known(BOTH)
    run(study, 4)
    before = study.result()
    study.tell({"x": float(X[12])}, {"yield": measure({"x": X[12]})["yield"]})
    after = study.result()
    assert np.array_equal(before.quantities["impurity"].mean, after.quantities["impurity"].mean)
    assert not np.array_equal(before.quantities["yield"].sd, after.quantities["yield"].sd)
    assert study.steps == 5
    frame = study.measurements
    assert np.isnan(frame["impurity"].iloc[-1])
    assert "value" not in frame


def test_a_suggestion_that_lacks_a_value_is_no_longer_pending():
    study = known(BOTH)
    first, second = study.ask(2)
    study.tell(second, {"impurity": 0.3, "yield": None})
    assert [each.id for each in study.pending] == [first.id]
    study.tell(first, measure(first.point))
    assert study.pending == []
    study.ask()


def half(point):
    """Return the values of an assay that gives no impurity in a part of the domain."""
    values = measure(point)
    return {"yield": values["yield"]} if point["x"] > 0.55 else values


@pytest.mark.parametrize("goal", [BOTH, BEST])
@pytest.mark.parametrize("quantities", [None, {"yield": tv.Quantity(cost=1.0)}])
def test_a_place_that_gives_no_value_is_not_measured_for_it_over_and_over(goal, quantities):
    study = tv.Study(domain(), goal, quantities=quantities, cost=1.0)
    lacking = []
    for _ in range(17):
        suggestion = study.ask()
        values = half(suggestion.point)
        told = {name: values[name] for name in suggestion.quantities if name in values}
        if told:
            study.tell(suggestion, told)
        else:
            study.fail(suggestion)
        if told.keys() < set(suggestion.quantities):
            lacking.append(suggestion.index)
    assert len(lacking) == len(set(lacking))
    assert study.measurements["impurity"].notna().sum() >= 5
    copy = tv.Study.from_json(study.to_json())
    expected = [each.point for each in study.ask(2)]
    assert [each.point for each in copy.ask(2)] == expected


def test_an_assay_that_never_gives_a_value_ends_no_study():
    study = tv.Study(tv.Domain.grid(x=X[:4]), BOTH)
    points = run(study, 6, lambda point: {"yield": point["x"]})
    assert len(points) == 6
    assert not study.result().statements.is_known


def test_values_of_one_quantity_that_nobody_asked_for_keep_no_place_from_the_other():
    study = known(BOTH)
    asked = known(BOTH)
    for x in X[::3]:
        study.tell({"x": float(x)}, {"yield": measure({"x": x})["yield"]})
    assert study._learner.successes("impurity") is None
    asked.tell(asked.ask(), {"yield": 0.3})
    successes = asked._learner.successes("impurity")
    assert successes is not None
    assert np.flatnonzero(successes.excluded).tolist() == [asked.measurements["index"][0]]
    assert asked._learner.successes("yield") is None
    table = asked.candidates()
    policy = asked._learner.scoring(asked.policy)
    row = int(asked.measurements["index"][0])
    alone = policy.score(asked.policy_context(), table.take(np.array([row])))
    assert alone[0] == pytest.approx(policy.score(asked.policy_context(), table)[row])
    asked.allow({"x": asked.measurements["x"][0]})
    assert not asked._learner.successes("impurity").excluded.any()
    asked.tell({"x": asked.measurements["x"][0]}, {"impurity": 0.1})
    assert asked._learner.successes("impurity") is None


def test_prices_of_quantities_decide_what_is_measured():
    prices = {"yield": tv.Quantity(cost=10.0), "impurity": tv.Quantity(cost=1.0)}
    study = known(BOTH, quantities=prices)
    asked = []
    for _ in range(10):
        suggestion = study.ask()
        asked.append(suggestion.quantities)
        costs = {"yield": 10.0, "impurity": 1.0}
        assert suggestion.cost == 1.0 + sum(costs[name] for name in suggestion.quantities)
        values = measure(suggestion.point)
        study.tell(suggestion, {name: values[name] for name in suggestion.quantities})
    assert ("impurity",) in asked
    assert study.spent < 120
    study.tell({"x": 0.5172413793103449}, {"yield": 0.1})
    assert study.measurements["cost"].iloc[-1] == 11.0


def test_an_initial_design_measures_every_quantity_that_has_no_model():
    prices = {"yield": tv.Quantity(cost=10.0), "impurity": tv.Quantity(cost=1.0)}
    study = tv.Study(domain(), BOTH, quantities=prices)
    asked = []
    for number in range(12):
        suggestion = study.ask()
        asked.append(suggestion.quantities)
        values = measure(suggestion.point)
        if number == 1:
            del values["yield"]  # a failed assay, which the design makes up for
        study.tell(suggestion, {name: values.get(name) for name in suggestion.quantities})
    n_initial = study._learner.surrogate.n_initial
    assert asked[:n_initial] == n_initial * [("yield", "impurity")]
    assert asked[n_initial] == ("yield",)
    assert any(each != ("yield", "impurity") for each in asked[n_initial:])
    assert study._learner.is_fitted


def test_a_quantity_that_is_seldom_measured_does_not_end_the_study():
    study = tv.Study(domain(), BOTH)
    for number in range(9):
        suggestion = study.ask()
        values = measure(suggestion.point)
        if number % 2:
            del values["impurity"]
        study.tell(suggestion, values)
    assert not study.finished
    assert study.result().statements.is_known


def test_all_is_measured_where_no_quantity_has_a_price():
    study = known(BOTH)
    assert study.ask().quantities == ("yield", "impurity")


@pytest.mark.parametrize("goal", [BOTH, BEST])
@pytest.mark.parametrize("same", [None, ["y"]])
def test_a_batch_where_travel_costs_and_one_with_a_shared_setting(goal, same):
    grid = tv.Domain.grid(x=np.linspace(0, 1, 10), y=np.linspace(0, 1, 4))
    kernel = ConstantKernel(1.0) * RBF([0.15, 0.5])
    study = tv.Study(
        grid, goal, kernel=kernel, mean=0.0, noise=0.1, cost=tv.Cost(base=0.1, travel={"x": 2.0})
    )
    for _ in range(2):
        batch = study.ask(4, same=same)
        assert len({each.index for each in batch}) > 1
        for suggestion in batch:
            assert same is None or suggestion.point["y"] == batch[0].point["y"]
            study.tell(suggestion, measure(suggestion.point))
    copy = tv.Study.from_json(study.to_json())
    expected = [each.index for each in study.ask(4, same=same)]
    assert [each.index for each in copy.ask(4, same=same)] == expected


@pytest.mark.parametrize("same", [None, ["y"]])
def test_batches_of_one_quantity_are_those_of_a_level_set(same):
    grid = tv.Domain.grid(x=np.linspace(0, 1, 10), y=np.linspace(0, 1, 4))
    settings = {
        "kernel": ConstantKernel(1.0) * RBF([0.15, 0.5]),
        "mean": 0.0,
        "noise": 0.1,
        "cost": tv.Cost(base=0.1, travel={"x": 2.0}),
    }
    one = tv.Study(grid, YIELD, **settings)
    several = tv.Study(grid, tv.AllOf(YIELD), **settings)
    for _ in range(3):
        batch = one.ask(5, same=same)
        others = several.ask(5, same=same)
        assert [each.index for each in others] == [each.index for each in batch]
        for suggestion, other in zip(batch, others, strict=True):
            value = measure(suggestion.point)["yield"]
            one.tell(suggestion, value)
            several.tell(other, {"yield": value})


@pytest.mark.parametrize("prices", [None, {"yield": 2.0, "impurity": 0.5}])
def test_the_suggestion_has_the_highest_gain_of_all_quantities_per_unit_cost(prices):
    quantities = prices and {name: tv.Quantity(cost=cost) for name, cost in prices.items()}
    study = known(BOTH, quantities=quantities)
    for index in (3, 17, 26):
        study.tell({"x": X[index]}, measure({"x": X[index]}))
    scores = (study.gains() / study.candidates().cost.ravel()).reshape(len(X), -1)
    suggestion = study.ask()
    assert scores[suggestion.index].max() == pytest.approx(scores.max())


# -- an optimum with constraints
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [{"kernel": KERNEL, "mean": 0.0, "noise": 1e-4}, {}])
def test_the_best_feasible_point_is_found(model):
    study = tv.Study(domain(), BEST, **model)
    run(study, 14)
    truth = {name: np.array([measure({"x": x})[name] for x in X]) for name in ("yield", "impurity")}
    result = study.result()
    feasible = truth["impurity"] <= 0.2
    best = int(np.argmax(np.where(feasible, truth["yield"], -np.inf)))
    assert result.best.index == best
    assert result.regret(truth) == 0.0
    assert result.statements.feasible_probability > 0.9
    assert result.best_observed.index == best
    assert "It satisfies all constraints with" in str(result.certificate)


def test_statements_about_a_constrained_optimum_are_those_of_draws():
    study = known(BEST, exact_model=True)
    points = np.array(run(study, 5))
    result = study.result()
    rng = np.random.default_rng(6)
    n_draws = 100_000
    draws = {}
    for name in ("yield", "impurity"):
        values = np.array([measure({"x": x})[name] for x in points])
        mean, covariance = posterior(points, values, X)
        root = np.linalg.cholesky(covariance + 1e-10 * np.eye(len(X)))
        draws[name] = mean + rng.standard_normal((n_draws, len(X))) @ root.T
    feasible = np.where(draws["impurity"] <= 0.2, draws["yield"], -np.inf)
    exists = np.isfinite(feasible.max(axis=1))
    wins = np.bincount(feasible[exists].argmax(axis=1), minlength=len(X)) / n_draws
    assert np.allclose(result.probability, wins, atol=0.04)
    index = result.best.index
    assert result.statements.feasible_probability == pytest.approx(
        np.isfinite(feasible[:, index]).mean(), abs=0.03
    )
    regret = np.maximum(feasible.max(axis=1) - draws["yield"][:, index], 0.0)
    is_met = np.isfinite(feasible[:, index])
    assert result.expected_regret.mean == pytest.approx(regret[is_met].mean(), abs=0.05)
    holds = result.classify(0.9).undecided
    assert wins[holds].sum() >= 0.87


def test_a_recommended_point_is_stated_to_be_as_feasible_as_promised():
    axis = np.linspace(0, 1, 15)
    square = tv.Domain.grid(x=axis, y=axis)
    study = tv.Study(square, tv.Minimize("f", subject_to=["c <= 0", "d <= 0"]), seed=1)
    for _ in range(9):
        suggestion = study.ask()
        x = suggestion.point["x"]
        y = suggestion.point["y"]
        wave = 0.5 * np.sin(2 * np.pi * (x**2 - 2 * y))
        values = {"f": x + y, "c": 1.5 - x - 2 * y - wave, "d": x**2 + y**2 - 1.5}
        study.tell(suggestion, values)
        if study.steps < 6:
            continue
        statements = study.result().statements
        promised = min(0.9, float(statements.feasible.max()))
        assert statements.feasible_probability >= promised - 0.03  # of 2048 draws


def test_the_expected_regret_of_a_point_that_may_fail_is_conditional():
    study = known(BEST, exact_model=True)
    run(study, 3)
    result = study.result()
    assert result.statements.feasible_probability < 0.975
    assert not np.isfinite(result.expected_regret.high)
    text = str(result.certificate)
    assert f"expected to be {result.expected_regret.mean:.3g} from it if it satisfies all" in text
    assert "inf" not in text


def test_something_is_stated_while_no_point_is_certain_to_be_feasible():
    study = known(BEST, exact_model=True)
    study.tell({"x": X[0]}, measure({"x": X[0]}))
    result = study.result()
    assert np.isinf(result.epsilon)
    assert "satisfies all constraints with" in str(result.certificate)
    assert "none of them is certain to" in result.certificate.bounds_statement
    assert "if it satisfies all constraints" in describe_expected(result)[0][1]


def test_constraints_that_no_point_can_satisfy_are_named():
    study = known(tv.Maximize("yield", subject_to="impurity <= -9"), exact_model=True)
    for x in X[::4]:
        study.tell({"x": x}, measure({"x": x}))
    result = study.result()
    impossible = "Some point satisfies all constraints with 0 % probability."
    assert "satisfies all constraints in none of" in str(result.certificate)
    assert "no point satisfies all constraints" in result.certificate.bounds_statement
    assert result.certificate.further == (impossible,)
    assert "inf" not in f"{describe_expected(result)}{result.to_dict()['certificate']}"


def test_where_an_optimum_is_supposes_that_constraints_can_be_satisfied():
    study = known(tv.Maximize("yield", subject_to="impurity <= -1.1"), exact_model=True)
    for x in X[::6]:
        study.tell({"x": x}, measure({"x": x}))
    result = study.result()
    assert 0.01 < result.statements.exists_probability < 0.95
    supposed = "given the model and that some point satisfies all constraints, the maximum is"
    assert supposed in str(result.certificate)
    easy = known(BEST, exact_model=True)
    for x in X[::6]:
        easy.tell({"x": x}, measure({"x": x}))
    assert "given the model, the maximum is" in str(easy.result().certificate)


def test_a_run_with_a_limit_of_regret_ends_at_a_feasible_point():
    study = known(BEST)
    study.run(measure, regret=0.02, steps=40)
    assert study.steps < 40
    assert measure(study.result().best.point)["impurity"] <= 0.2


# -- replay
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("goal", [BOTH, BEST])
@pytest.mark.parametrize("model", [{"kernel": KERNEL, "mean": 0.0, "noise": 1e-4}, {}])
def test_a_replayed_study_equals_the_live_one(goal, model, tmp_path):
    store = f"sqlite:///{tmp_path}/several.db"
    live = tv.Study(domain(), goal, store=store, name="tank", **model)
    run(live, 6)
    live.tell({"x": float(X[3])}, {"impurity": 0.9})
    _, second = live.ask(2)
    live.tell(second, measure(second.point))
    live.correct(2, {"yield": 0.1, "impurity": -0.4})
    live.withdraw(3)
    live.exclude({"x": float(X[0])})
    again = tv.load(store, "tank")
    ours = live.result()
    theirs = again.result()
    assert np.array_equal(ours.probability, theirs.probability)
    assert ours.best == theirs.best
    for name in ("yield", "impurity"):
        assert np.array_equal(ours.quantities[name].mean, theirs.quantities[name].mean)
    copied = tv.Study.from_json(live.to_json())
    assert np.array_equal(copied.result().probability, ours.probability)
    assert live.ask().point == copied.ask().point


def test_values_told_together_equal_those_told_one_by_one():
    frame = tv.Domain.grid(x=X).to_frame().iloc[::4].reset_index(drop=True)
    values = [measure({"x": x}) for x in frame["x"]]
    frame["yield"] = [value["yield"] for value in values]
    frame["impurity"] = [value["impurity"] for value in values]
    frame.loc[2, "impurity"] = np.nan
    together = known(BOTH)
    together.tell_frame(frame)
    single = known(BOTH)
    for x, value, other in frame.itertuples(index=False):
        single.tell({"x": x}, {"yield": value, "impurity": other})
    assert np.allclose(together.result().probability, single.result().probability, atol=1e-12)
    assert together.steps == len(frame)


# -- bad input
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (3.0, "has the quantities yield, impurity, got the single value 3.0"),
        ({}, "at least one of the quantities"),
        ({"yield": None, "impurity": float("nan")}, "at least one of the quantities"),
        ({"yeild": 3.0}, "did you mean 'yield'"),
        ({"yield": "high"}, "the value of yield must be"),
        ({"yield": float("inf")}, "the value of yield must be"),
    ],
)
def test_values_that_cannot_be_used_change_nothing(values, message):
    study = known(BOTH)
    suggestion = study.ask()
    version = study.version
    with pytest.raises(InvalidMeasurementError, match=message):
        study.tell(suggestion, values)
    assert study.version == version
    assert study.steps == 0
    study.tell(suggestion, {"yield": 1.0, "impurity": 0.1})


def test_a_value_that_one_model_refuses_is_told_to_none():
    study = tv.Study(
        domain(),
        tv.AllOf(YIELD, tv.LevelSet(below=2.0, of="zinc")),
        quantities={"zinc": tv.Quantity(transform="log")},
    )
    study.tell({"x": float(X[0])}, {"yield": 1.0, "zinc": 3.0})
    with pytest.raises(tv.TruvarError):
        study.tell({"x": float(X[9])}, {"yield": 1.0, "zinc": -3.0})
    assert study.steps == 1
    assert len(study._learner.parts["yield"].observations) == 1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: known(BOTH, policy="ei"), "is for"),
        (lambda: known(BOTH, policy="straddle"), "WeightedTruVaR|auto"),
        (lambda: known(BEST, policy="truvar"), "WeightedTruVaR|auto"),
        (lambda: known(BOTH, quantities={"zinc": tv.Quantity()}), "unknown quantity 'zinc'"),
        (lambda: known(BOTH, quantities={"yield": 3}), "must be an object Quantity"),
        (lambda: known(tv.Maximize(), quantities={"y": tv.Quantity()}), "are for goals of several"),
        (lambda: tv.Quantity(cost=-1), "cost of a quantity"),
        (lambda: known(BOTH, tasks=tv.Tasks(names=["a", "b"])), "one quantity"),
        (
            lambda: known(BEST, cost=tv.Cost(base=1, travel={"x": 1.0}, sampling="along")),
            'sampling="along" is for studies of one quantity',
        ),
        (lambda: tv.AllOf(), "at least one requirement"),
        (lambda: tv.AllOf(tv.LevelSet(3)), "needs the quantity of every requirement"),
        (lambda: tv.AllOf(tv.Maximize()), "takes level sets"),
        (lambda: tv.AllOf(YIELD, YIELD), "one requirement per quantity"),
        (lambda: tv.AllOf(tv.LevelSet(fraction_of_max=0.5, of="a")), "given threshold"),
        (lambda: tv.Maximize(subject_to="a <= 1"), "needs the quantity to optimise"),
        (lambda: tv.Maximize("y", subject_to="a"), "must compare quantities"),
        (lambda: tv.Maximize("y", subject_to="y <= 1"), "other quantities than 'y'"),
        (lambda: tv.Minimize("y", subject_to=3), "must compare quantities"),
        (lambda: known(tv.Maximize("y", subject_to="x <= 1")), "'x', which is a column of the dom"),
        (lambda: known(tv.Maximize("cost", subject_to="y <= 1")), "must not be called 'cost'"),
        (
            lambda: known(tv.AllOf(YIELD, tv.LevelSet(1, of="level"))),
            "must not be called 'level', as tables of measurements have a column",
        ),
    ],
)
def test_settings_that_cannot_be_used_have_one_message(make, message):
    with pytest.raises((InvalidArgumentError, UnsupportedGoalError), match=message):
        make()


@pytest.mark.parametrize(
    ("text", "goals"),
    [
        ("impurity <= 1", [tv.LevelSet(below=1, of="impurity")]),
        ("1 >= impurity", [tv.LevelSet(below=1, of="impurity")]),
        ("2 < zinc", [tv.LevelSet(2, of="zinc")]),
        ("5 <= pH <= 7", [tv.LevelSet(between=(5, 7), of="pH")]),
        ("7 >= pH >= 5", [tv.LevelSet(between=(5, 7), of="pH")]),
        ("a >= 1 and b <= 2", [tv.LevelSet(1, of="a"), tv.LevelSet(below=2, of="b")]),
    ],
)
def test_constraints_are_read_from_text(text, goals):
    assert list(tv.Maximize("yield", subject_to=text).subject_to) == goals


def test_noise_told_with_several_values_is_refused():
    study = known(BOTH)
    with pytest.raises(InvalidMeasurementError, match="one quantity"):
        study.tell({"x": float(X[3])}, {"yield": 1.0}, noise=0.1)


def test_a_track_of_several_quantities_is_refused():
    study = known(BOTH)
    track = pd.DataFrame({"x": X, "yield": np.sin(7 * X), "impurity": np.cos(5 * X)})
    with pytest.raises(InvalidArgumentError, match="a track is of one quantity"):
        study.tell_track(track)
    assert study.steps == 0


# -- other parts
# --------------------------------------------------------------------------------------------------


def test_a_requirement_between_two_thresholds_names_its_quantity():
    goal = tv.AllOf(YIELD, tv.LevelSet(between=(0.0, 0.2), of="impurity"))
    assert str(goal) == (
        "AllOf(LevelSet(0, of='yield'), LevelSet(between=(0, 0.2), of='impurity'))"
    )


def test_a_requirement_between_two_thresholds():
    goal = tv.AllOf(tv.LevelSet(between=(-0.5, 0.5), of="impurity"), YIELD)
    study = known(goal)
    run(study, 16)
    truth = {name: np.array([measure({"x": x})[name] for x in X]) for name in ("yield", "impurity")}
    assert study.result().f1(truth) > 0.95


def test_a_box_of_several_quantities():
    study = tv.Study(
        tv.Domain.box(x=(0, 1), representers=60), BEST, kernel=KERNEL, mean=0.0, noise=1e-4
    )
    run(study, 10)
    best = study.result().best
    assert measure(best.point)["impurity"] <= 0.25


def test_tables_and_frames_have_a_column_per_quantity():
    study = known(BOTH)
    run(study, 3)
    frame = study.result().to_frame()
    for name in ("mean_yield", "sd_impurity", "lower_yield", "upper_impurity", "class"):
        assert name in frame
    assert set(frame["class"]) <= {"inside", "outside", "undecided"}


def test_every_subset_of_three_quantities_can_be_measured():
    goal = tv.AllOf(*(tv.LevelSet(0.0, of=name) for name in "abc"))
    study = known(goal, quantities={"a": tv.Quantity(cost=1.0)}, cost=1.0)
    subsets = [each for size in (3, 2, 1) for each in combinations("abc", size)]
    assert list(study._learner.measures) == subsets
    for subset in subsets:
        study.tell({"x": 0.5}, dict.fromkeys(subset, 0.1))
        assert study.measurements["cost"].iloc[-1] == (2.0 if "a" in subset else 1.0)


# -- corrections and suggestions
# --------------------------------------------------------------------------------------------------


def test_a_correction_of_one_quantity_keeps_the_others():
    study = known(BOTH)
    study.tell({"x": float(X[3])}, {"yield": 0.5, "impurity": 0.1})
    study.correct(1, {"impurity": 0.3})
    (record,) = study.measurement_records()
    assert dict(record.values) == {"yield": 0.5, "impurity": 0.3}
    study.correct(1, {"impurity": None})
    (record,) = study.measurement_records()
    assert dict(record.values) == {"yield": 0.5}
    study.correct(1, {"impurity": 0.2})
    (record,) = study.measurement_records()
    assert dict(record.values) == {"yield": 0.5, "impurity": 0.2}
    with pytest.raises(InvalidMeasurementError, match="at least one of the quantities"):
        study.correct(1, {"yield": None, "impurity": None})
    assert is_equal(study, tv.Study.from_json(study.to_json()))


def is_equal(study, other):
    return np.array_equal(study.result().probability, other.result().probability)


def test_a_second_assay_that_is_told_later_is_added_as_the_message_says():
    study = known(BOTH)
    suggestion = study.ask()
    study.tell(suggestion, {"yield": 0.5})
    with pytest.raises(TruvarError) as refused:
        study.tell(suggestion, {"impurity": 0.1})
    assert "correct(1, {'impurity': 0.1})" in str(refused.value)
    study.correct(1, {"impurity": 0.1})
    (record,) = study.measurement_records()
    assert dict(record.values) == {"yield": 0.5, "impurity": 0.1}


def test_a_correction_from_a_former_value_of_several_quantities_is_refused_in_words():
    study = known(BOTH)
    study.tell({"x": float(X[3])}, {"yield": 0.5})
    with pytest.raises(TruvarError, match=r"from yield 0.1 to yield 0.3, but is yield 0.5"):
        study.correct(1, {"yield": 0.3}, was={"yield": 0.1})


def test_every_quantity_that_is_to_be_measured_is_predicted():
    study = known(
        BOTH, quantities={"yield": tv.Quantity(cost=9.0), "impurity": tv.Quantity(cost=1.0)}
    )
    run(study, 6)
    point = {"x": float(X[4])}
    for name in ("yield", "impurity"):
        mean, sd = study.predict_measurement(point, name)
        assert abs(mean - study.result().quantities[name].mean[4]) < 1e-6
        assert sd > 0
    assert study.predict_measurement(point) == study.predict_measurement(point, "yield")
    with pytest.raises(InvalidArgumentError, match="unknown quantity 'zinc'"):
        study.predict_measurement(point, "zinc")
    with pytest.raises(InvalidArgumentError, match="one quantity"):
        tv.Study(domain(), tv.LevelSet(0.0)).predict_measurement(point, "yield")
    while True:  # until only the cheap quantity is asked for
        suggestion = study.ask()
        if suggestion.quantities == ("impurity",):
            break
        study.tell(suggestion, measure(suggestion.point))
    explained = study.explain(suggestion)
    mean, sd = study.predict_measurement(suggestion, "impurity")
    assert (explained.mean, explained.sd) == (mean, sd)
    assert explained.expected.startswith("impurity ")
    assert "{'impurity': VALUE}" in repr(explained)
    assert explained.to_dict()["expected_values"].keys() == {"impurity"}
    card = suggestion_card(study, suggestion, TerminalStyle(100))
    assert "impurity at x" in card
    assert f"truvar tell {suggestion.id} impurity=VALUE" in card
    assert f"expected  impurity {mean:.4g}" in card
    assert "precision" not in card
