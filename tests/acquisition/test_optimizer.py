"""Boxes: representer points for the sums, DIRECT with a polish for the choice, and a best point
of its own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

import truvar as tv
from truvar.acquisition._representers import REFINED_TARGETS, improvement_in_box, refined_points
from truvar.acquisition.optimizer import best_in_box, direct, polish
from truvar.acquisition.utils import expected_improvement
from truvar.domain.candidates import Candidates
from truvar.models.posterior import Posterior

INTERVALS = {1: {"x": (-1.0, 3.0)}, 2: {"x": (-1.0, 3.0), "y": (0.0, 0.5)}}
INTERVALS[3] = {**INTERVALS[2], "z": (10.0, 20.0)}


def box(d: int, representers: int) -> tv.Domain:
    return tv.Domain.box(representers=representers, **INTERVALS[d])


def a_study(domain: tv.Domain, goal: Any = None, **settings: Any) -> tv.Study:
    lengths = 0.3 * (domain.bounds[:, 1] - domain.bounds[:, 0])
    known = {"kernel": RBF(lengths), "mean": 0.0, "noise": 1e-4, **settings}
    return tv.Study(domain, goal or tv.Maximize(), **known)


def bump(point: dict[str, float]) -> float:
    """Highest, 1, at 0.37 of the way along every axis of the boxes above."""
    place = {name: low + 0.37 * (high - low) for name, (low, high) in INTERVALS[3].items()}
    width = {name: high - low for name, (low, high) in INTERVALS[3].items()}
    return float(
        np.exp(-4 * sum(((x - place[name]) / width[name]) ** 2 for name, x in point.items()))
    )


def is_representer(domain: tv.Domain, point: dict[str, float]) -> bool:
    return bool(
        (np.abs(domain.points - domain.array(point)) < 1e-9 * domain.extent).all(axis=1).any()
    )


# -- representers
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("d", "representers", "count"), [(1, 7, 7), (1, 2, 2), (2, 100, 100), (2, 90, 81)]
)
def test_in_one_and_two_dimensions_the_representers_are_a_grid_over_the_whole_box(
    d: int, representers: int, count: int
) -> None:
    domain = box(d, representers)
    assert len(domain) == count
    assert domain.continuous
    assert domain.shape is not None
    assert np.prod(domain.shape) == count
    np.testing.assert_array_equal(domain.points.min(axis=0), domain.bounds[:, 0])
    np.testing.assert_array_equal(domain.points.max(axis=0), domain.bounds[:, 1])


def test_in_three_dimensions_the_representers_are_scrambled_sobol_points() -> None:
    domain = box(3, 100)
    assert len(domain) == 100
    assert domain.shape is None
    low = domain.bounds[:, 0]
    width = domain.extent
    unit = (domain.points - low) / width
    assert ((unit >= 0) & (unit <= 1)).all()
    for axis in unit.T:  # evener than chance: of the first 64, two in each 32nd of every axis
        assert np.histogram(axis[:64], bins=32, range=(0, 1))[0].tolist() == [2] * 32
    np.testing.assert_array_equal(domain.points, box(3, 100).points)
    assert not np.array_equal(
        domain.points, tv.Domain.box(representers=100, seed=1, **INTERVALS[3]).points
    )


# -- the choice
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("goal", [tv.Maximize(), tv.LevelSet(0.5)], ids=["optimum", "level set"])
def test_the_choice_is_at_least_as_good_as_the_best_representer_and_need_not_be_one(
    d: int, goal: Any
) -> None:
    domain = box(d, 30)
    study = a_study(domain, goal)
    between = 0
    for _ in range(3 if d < 3 else 2):
        candidates = study.candidates()
        best = (study.gains() / candidates.cost.ravel()).max()
        suggestion = study.ask()
        assert suggestion.score >= best * (1 - 1e-9)
        assert suggestion.index is None
        x = domain.array(suggestion.point)
        assert ((x >= domain.bounds[:, 0]) & (x <= domain.bounds[:, 1])).all()
        between += not is_representer(domain, suggestion.point)
        study.tell(suggestion, bump(suggestion.point))
    assert between > 0


@pytest.mark.parametrize("d", [1, 2, 3])
def test_direct_and_the_polish_find_a_peak_between_the_starts(d: int) -> None:
    bounds = np.array(list(INTERVALS[d].values()))
    names = list(INTERVALS[d])

    def score(points: np.ndarray) -> np.ndarray:
        return np.array([bump(dict(zip(names, x, strict=True))) for x in points])

    found = best_in_box(score, bounds, bounds[:, 0])
    peak = bounds[:, 0] + 0.37 * (bounds[:, 1] - bounds[:, 0])
    np.testing.assert_allclose((found - peak) / (bounds[:, 1] - bounds[:, 0]), 0, atol=1e-4)


def test_direct_finds_the_higher_of_two_peaks_far_from_the_start() -> None:
    def score(points: np.ndarray) -> np.ndarray:
        x = points[:, 0]
        return np.exp(-(((x - 0.1) / 0.05) ** 2)) + 1.5 * np.exp(-(((x - 0.83) / 0.04) ** 2))

    found = best_in_box(score, np.array([[0.0, 1.0]]), np.array([0.1]))
    assert found[0] == pytest.approx(0.83, abs=1e-3)


def test_direct_finds_the_maximum_among_many_peaks_and_takes_no_more_than_its_share_of_scores() -> (
    None
):
    asked = 0

    def rastrigin(points: np.ndarray) -> np.ndarray:
        nonlocal asked
        asked += len(points)
        z = 4 * (points - 0.6)
        return np.asarray(-(z**2 - np.cos(2 * np.pi * z)).sum(axis=1))

    np.testing.assert_allclose(direct(rastrigin, 2), 0.6, atol=0.01)
    assert 1000 <= asked < 1200


@pytest.mark.parametrize("d", [1, 2, 4])
def test_the_polish_pins_down_a_peak_that_lies_askew(d: int) -> None:
    tilt = np.eye(d) + 0.9 * np.eye(d, k=1)

    def ridge(points: np.ndarray) -> np.ndarray:
        return np.exp(-((((points - 0.413) @ tilt) ** 2) * 10.0 ** np.arange(d)[::-1]).sum(axis=1))

    found = polish(ridge, np.array([[0.0, 1.0]] * d), np.full(d, 0.42))
    np.testing.assert_allclose(found, 0.413, atol=1e-5)


def test_a_start_better_than_all_that_direct_finds_is_kept() -> None:
    def needle(points: np.ndarray) -> np.ndarray:
        return (np.abs(points[:, 0] - 0.123456) < 1e-9).astype(float)

    assert best_in_box(needle, np.array([[0.0, 1.0]]), np.array([0.123456])).tolist() == [0.123456]


@pytest.mark.parametrize("start", [0.0, 0.4, 1.0])
def test_the_polish_stays_inside_the_box_and_is_never_worse_than_its_start(start: float) -> None:
    def slope(points: np.ndarray) -> np.ndarray:
        return points[:, 0] ** 2

    found = polish(slope, np.array([[0.0, 1.0]]), np.array([start]))
    assert 0.0 <= found[0] <= 1.0
    assert found[0] >= start


def test_a_batch_in_a_box_spreads_out() -> None:
    batch = a_study(box(2, 64)).ask(4)
    places = np.array([[s.point["x"] / 4, s.point["y"] / 0.5] for s in batch])
    distances = np.linalg.norm(places[:, None] - places[None, :], axis=2) + np.eye(4)
    assert distances.min() > 0.05


def test_a_batch_that_looks_past_the_epoch_is_chosen_as_well_as_among_the_representers() -> None:
    domain = box(1, 40)
    policy = tv.TruVaR(beta=tv.ConstantBeta(4.0))
    free = a_study(domain, tv.LevelSet(0.5), policy=policy)
    bound = a_study(
        domain, tv.LevelSet(0.5), policy=tv.TruVaR(beta=tv.ConstantBeta(4.0), among=tv.TopK(40))
    )
    within = free.ask(4)
    assert free.gains().max() == 0.0  # what is pending leaves nothing to gain in this epoch
    bound.ask(4)
    beyond = free.ask(3)
    assert beyond[0].gain > 0.5 * bound.ask().gain
    assert len({round(s.point["x"], 2) for s in within + beyond}) == 7


def test_a_prefilter_chooses_among_representers() -> None:
    domain = box(2, 49)
    study = a_study(domain, policy=tv.TruVaR(among=tv.TopK(5, by="ucb")))
    study.tell({"x": 0.4, "y": 0.2}, 1.0)
    suggestion = study.ask()
    assert suggestion.index is not None
    assert is_representer(domain, suggestion.point)


def test_a_study_in_a_box_starts_at_the_representer_nearest_to_its_start() -> None:
    domain = box(1, 5)
    assert a_study(domain, start={"x": 0.9}).ask().point == {"x": 1.0}
    assert a_study(domain, start=3).ask().index == 3


# -- telling and reporting
# ---------------------------------------------------------------------------------------------


def test_any_point_inside_can_be_told() -> None:
    study = a_study(box(2, 64))
    study.tell({"x": 0.1234, "y": 0.4321}, 0.7)
    assert study.measurements[["x", "y"]].to_numpy().tolist() == [[0.1234, 0.4321]]
    study.tell({"x": -1.0, "y": 0.5}, 0.1)  # the corner is inside, and a representer
    assert study.measurements["index"].isna().tolist() == [True, False]


def test_the_best_point_is_polished_and_need_not_be_a_representer() -> None:
    domain = box(1, 9)
    study = a_study(domain)
    for x in np.linspace(-1, 3, 9):
        study.tell({"x": x}, bump({"x": x}))
    best = study.result().best
    assert best.index is None
    assert best.point["x"] == pytest.approx(-1 + 0.37 * 4, abs=0.05)
    assert not is_representer(domain, best.point)
    assert best.mean >= study.result().mean.max()


@pytest.mark.parametrize("sign", [1, -1])
def test_the_best_point_is_at_least_as_good_as_every_representer_and_every_measured_point(
    sign: int,
) -> None:
    study = a_study(box(2, 25), tv.Maximize() if sign > 0 else tv.Minimize())
    rng = np.random.default_rng(0)
    for _ in range(6):
        study.tell({"x": rng.uniform(-1, 3), "y": rng.uniform(0, 0.5)}, rng.normal())
    result = study.result()
    assert sign * result.best.mean >= (sign * result.mean).max() - 1e-12
    assert sign * result.best.mean >= (sign * study.measurements["value"]).max() - 0.05
    assert result.best.sd >= 0


def test_masks_and_bounds_run_over_the_representers() -> None:
    domain = box(3, 40)
    result = a_study(domain, tv.LevelSet(0.5)).run(bump, steps=1)
    assert len(result.potential) == len(result.mean) == len(result.to_frame()) == 40
    assert (result.potential.astype(int) + result.above + result.below == 1).all()


def test_one_representer_left_does_not_end_a_study_of_a_box() -> None:
    study = a_study(box(1, 3), kernel=RBF(0.3), noise=1e-6)
    for x, y in ((-1.0, -3.0), (1.0, 3.0), (3.0, -3.0)):
        study.tell({"x": x}, y)
    assert study.result().potential.sum() == 1
    assert study.finished is None  # the maximum may lie beside it


def test_a_noise_free_study_of_a_box_goes_on_though_the_representer_that_is_left_is_known_exactly() -> (
    None
):
    study = a_study(box(1, 3), kernel=Matern(0.6, nu=2.5), noise=0.0)
    for x, y in ((-1.0, -3.0), (1.0, 3.0), (3.0, -3.0)):
        study.tell({"x": x}, y)
    assert study.result().potential.sum() == 1
    assert study.result().sd[study.result().potential].max() < 1e-6
    assert study.finished is None
    assert abs(study.ask().point["x"] - 1.0) > 1e-6


# -- refined points
# --------------------------------------------------------------------------------------------------


def collapsed_study(refine: bool = True, **settings: Any) -> tv.Study:
    """A study of `bump` in which few representers can still be the best."""
    policy = tv.TruVaR(beta=tv.ConstantBeta(4.0), refine=refine)
    domain = settings.pop("domain", box(2, 49))
    goal = settings.pop("goal", None)
    study = a_study(domain, goal, policy=settings.pop("policy", policy), **settings)
    sign = -1 if isinstance(goal, tv.Minimize) else 1
    level = 0 if isinstance(settings.get("noise"), tv.NoiseLevels) else None
    for x in np.linspace(-1, 3, 5):
        for y in np.linspace(0, 0.5, 4):
            study.tell({"x": x, "y": y}, sign * bump({"x": x, "y": y}), level=level)
    return study


@pytest.mark.parametrize("representers", [16, 100])
def test_the_regret_falls_on_when_one_representer_is_left(representers: int) -> None:
    regrets = {}
    for refine in (False, True):
        study = collapsed_study(refine, domain=box(2, representers), noise=1e-10)
        result = study.run(bump, steps=32)
        assert result.potential.sum() <= 2
        regrets[refine] = result.regret(bump, optimum=1.0)
    assert regrets[True] < 1e-7
    assert regrets[True] < 0.1 * regrets[False]


@pytest.mark.parametrize("goal", [tv.Maximize(), tv.Minimize()], ids=["maximum", "minimum"])
def test_refined_points_are_undecided_points_around_the_leader(goal: Any) -> None:
    study = collapsed_study(goal=goal)
    context = study.policy_context()
    refined = refined_points(context)
    assert refined is not None
    undecided = context.regions.potential.sum()
    assert undecided < REFINED_TARGETS
    assert 1 < len(refined.points) <= REFINED_TARGETS - undecided
    best = study.result().best
    np.testing.assert_allclose(refined.points[0], study.domain.array(best.point), atol=1e-4)
    low, high = study.domain.bounds.T
    assert ((refined.points >= low) & (refined.points <= high)).all()
    mean, variance = context.posterior.predict(refined.points)
    half = 2.0 * np.sqrt(variance)
    lower = context.lower if goal.sign > 0 else -context.upper
    highest = max((goal.sign * mean - half).max(), lower.max())
    assert (goal.sign * mean + half >= highest - 1e-12).all()
    np.testing.assert_allclose(refined.mean, mean)
    np.testing.assert_allclose(refined.variance, variance, atol=1e-12)
    distances = np.abs(refined.points - refined.points[0]) / study.domain.extent
    assert distances.max() < 0.6
    assert np.median(distances.max(axis=1)) < 0.1


def test_there_are_no_refined_points_where_representers_suffice() -> None:
    assert refined_points(collapsed_study(goal=tv.LevelSet(0.5)).policy_context()) is None
    assert refined_points(a_study(box(2, 400)).policy_context()) is None  # all are undecided
    grid = tv.Domain.grid(x=np.linspace(-1, 3, 5), y=np.linspace(0, 0.5, 4))
    assert refined_points(collapsed_study(domain=grid).policy_context()) is None
    learned = tv.Study(box(2, 49), tv.Maximize(), policy="truvar")
    learned.tell({"x": 0.0, "y": 0.1}, 1.0)
    assert refined_points(learned.policy_context()) is None  # there is no model yet


def test_the_sum_over_refined_points_is_that_over_representers_at_the_same_points() -> None:
    """The compiled sums over points anywhere against eq. (3) on a domain that has these points."""
    study = collapsed_study()
    context = study.policy_context()
    refined = refined_points(context)
    assert refined is not None
    points = np.vstack([study.domain.points, refined.points])
    posterior = Posterior(study.policy_context().posterior.kernel, points, 0.0)
    for action in study.measurements[["x", "y", "value"]].to_numpy():
        posterior.add(action[:2], 1e-4)
        posterior.observe(action[2])
    n = len(study.domain)
    targets = np.append(context.targets, np.ones(len(refined.points), bool))
    tau = context.epoch.tau
    variance = posterior.variance
    every = Candidates(
        points, np.full((len(points), 1), 1e-4), np.ones((len(points), 1)), np.arange(len(points))
    )
    covariance = posterior.covariance(np.flatnonzero(targets), every)
    after = variance[targets, None] - covariance**2 / (variance + 1e-4)
    before = np.maximum(variance[targets], tau)[:, None]
    expected = context.epoch.beta * (before - np.maximum(after, tau)).sum(axis=0)
    np.testing.assert_allclose(study.gains(), expected[:n], rtol=1e-6, atol=1e-12)
    between = study.policy.score(
        context, Candidates(points[n:], every.noise[n:], every.cost[n:], None)
    )
    np.testing.assert_allclose(between[:, 0], expected[n:], rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("anticipate", [None, "mean", "average"])
def test_a_reopened_study_refines_as_one_that_was_never_closed(anticipate: Any) -> None:
    study = collapsed_study(policy=tv.TruVaR(beta=tv.ConstantBeta(4.0), anticipate=anticipate))
    assert refined_points(study.policy_context()) is not None
    for _ in range(3):
        again = tv.Study.from_json(study.to_json())
        mine = study.ask(2)
        theirs = again.ask(2)
        assert [s.point for s in mine] == [s.point for s in theirs]
        assert [s.gain for s in mine] == [s.gain for s in theirs]
        for suggestion in mine:
            study.tell(suggestion, bump(suggestion.point))


def test_refined_points_change_no_array_of_the_result() -> None:
    study = collapsed_study()
    study.run(bump, steps=3)
    result = study.result()
    lengths = {
        len(part) for part in (result.potential, result.mean, result.sd, result.lower, result.upper)
    }
    assert lengths == {len(study.domain)}


def test_refinement_works_with_tasks_noise_levels_and_pending_points() -> None:
    tasks = tv.Tasks([[1.0, 0.9], [0.9, 1.0]], ["truth", "proxy"], cost=[2.0, 1.0])
    study = collapsed_study(tasks=tasks)
    refined = refined_points(study.policy_context())
    assert refined is not None
    assert (refined.points[:, -1] == 0).all()
    assert len(study.ask(3)) == 3
    levels = collapsed_study(noise=tv.NoiseLevels([1e-6, 1e-2], [3.0, 1.0]))
    before = refined_points(levels.policy_context())
    levels.ask()
    after = refined_points(levels.policy_context())
    assert before is not None
    assert after is not None
    np.testing.assert_allclose(after.points[0], before.points[0])
    assert after.variance[0] < before.variance[0]  # the pending measurement is near


# -- the recommended policy
# --------------------------------------------------------------------------------------------


def test_the_recommended_policy_makes_every_second_measurement_where_it_promises_improvement() -> (
    None
):
    study = collapsed_study(policy=tv.Plus())
    without = collapsed_study(policy=tv.Plus(refine=False))
    context = study.policy_context()
    candidates = study.candidates()
    expected = expected_improvement(*context.moments, study.measurements["value"].max())
    parities = set()
    for n_asked in (20, 21):
        at = replace(context, seed=(0, n_asked), cache={})
        scores = study.policy.score(at, candidates)[:, 0]
        if n_asked % 2 == 0:
            np.testing.assert_allclose(scores, expected, rtol=1e-12)
        else:
            np.testing.assert_array_equal(
                scores, without.policy.score(replace(at, cache={}), candidates)[:, 0]
            )
        parities.add(bool(np.allclose(scores, expected)))
    assert parities == {True, False}


@pytest.mark.parametrize(
    "settings",
    [
        {"goal": tv.LevelSet(0.5)},
        {"noise": tv.NoiseLevels([1e-6, 1e-2], [3.0, 1.0])},
        {"tasks": tv.Tasks([[1.0, 0.9], [0.9, 1.0]], ["truth", "proxy"])},
        {"domain": tv.Domain.grid(x=np.linspace(-1, 3, 5), y=np.linspace(0, 0.5, 4))},
    ],
    ids=["level set", "noise levels", "tasks", "grid"],
)
def test_improvement_is_not_looked_at_where_measurements_differ_in_more_than_the_point(
    settings: Any,
) -> None:
    study = collapsed_study(policy=tv.Plus(), **settings)
    even = replace(study.policy_context(), seed=(0, 20), cache={})
    assert improvement_in_box(even, study.candidates()) is None
    assert study.ask().gain > 0


def branin(point: dict[str, float]) -> float:
    """The function of Branin on a box of sides -1..3 and 0..0.5, highest, 0, at three points."""
    x = 15 * (point["x"] + 1) / 4 - 5
    y = 30 * point["y"]
    hill = (y - 5.1 / (4 * np.pi**2) * x**2 + 5 / np.pi * x - 6) ** 2
    return float(0.397887357729739 - hill - 10 * (1 - 1 / (8 * np.pi)) * np.cos(x) - 10)


def branin_study(start: dict[str, float], refine: bool) -> tv.Study:
    """Return a study of a function with three equally good points, so that the maximiser is never
    settled.

    The noise, of standard deviation 1e-3, is small enough for the model to tell values apart by as
    much as is asserted.
    """
    kernel = ConstantKernel(100.0**2) * RBF([1.0, 0.3])
    study = a_study(
        box(2, 900), policy=tv.Plus(refine=refine), kernel=kernel, mean=-50.0, noise=1e-6
    )
    study.tell(start, branin(start))
    return study


def test_the_recommended_policy_measures_at_the_optimum_of_a_box() -> None:
    study = branin_study({"x": 0.0, "y": 0.1}, refine=True)
    study.run(branin, steps=40)
    assert -study.result().best_observed.value < 1e-3


@pytest.mark.slow
def test_the_recommended_policy_comes_closer_to_the_optimum_of_a_box_if_it_refines() -> None:
    """A single run depends on the last bit, so there are several."""
    after_20: dict[bool, list[float]] = {False: [], True: []}
    for start in ({"x": 0.0, "y": 0.1}, {"x": 1.0, "y": 0.2}, {"x": 2.0, "y": 0.4}):
        for refine in (False, True):
            study = branin_study(start, refine)
            study.run(branin, steps=20)
            after_20[refine].append(-study.result().best_observed.value)
        study.run(branin, steps=40)
        assert -study.result().best_observed.value < 1e-3
    assert sum(after_20[True]) < sum(after_20[False])


def test_a_reopened_study_of_the_recommended_policy_goes_as_one_that_was_never_closed() -> None:
    study = collapsed_study(policy=tv.Plus())
    for _ in range(4):
        again = tv.Study.from_json(study.to_json())
        mine = study.ask()
        theirs = again.ask()
        assert mine.point == theirs.point
        assert mine.gain == theirs.gain
        study.tell(mine, bump(mine.point))


# -- on known functions
# ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("d", "representers", "steps", "regret"),
    [(1, 30, 8, 1e-3), (2, 49, 10, 0.02), (3, 30, 9, 0.15)],
)
def test_a_run_on_a_known_function_reaches_a_small_regret(
    d: int, representers: int, steps: int, regret: float
) -> None:
    study = a_study(box(d, representers), tv.Maximize(monotone=False))
    result = study.run(bump, steps=steps)
    assert 0 <= result.regret(bump, optimum=1.0) < regret


def test_minimising_is_maximising_upside_down() -> None:
    up = a_study(box(1, 20))
    down = a_study(box(1, 20), tv.Minimize())
    for _ in range(5):
        above = up.ask()
        below = down.ask()
        assert above.point["x"] == pytest.approx(below.point["x"], abs=1e-6)
        up.tell(above, bump(above.point))
        down.tell(below, -bump(below.point))
    assert up.result().best.point["x"] == pytest.approx(down.result().best.point["x"], abs=1e-4)


def test_regret_against_a_table_of_values_needs_a_function_instead() -> None:
    result = a_study(box(1, 10)).result()
    with pytest.raises(tv.TruvarError, match="give the function and optimum="):
        result.regret(np.zeros(10))


# -- cost, noise, tasks
# ------------------------------------------------------------------------------------------------


def test_travel_in_a_box_is_counted_from_the_point_that_was_chosen() -> None:
    study = a_study(box(2, 49), cost=tv.Cost(1, travel={"x": 5}, magnitude={"y": 2}))
    first, second = study.ask(2)
    assert first.cost == pytest.approx(1 + 2 * first.point["y"])
    assert second.cost == pytest.approx(
        1 + 2 * second.point["y"] + 5 * abs(second.point["x"] - first.point["x"]), rel=1e-9
    )


def test_expensive_travel_keeps_the_study_near() -> None:
    def path(rate: float) -> float:
        study = a_study(box(1, 40), cost=tv.Cost(1, travel={"x": rate}), start={"x": -1.0})
        study.run(bump, steps=6)
        return float(np.abs(np.diff(study.measurements["x"].to_numpy(dtype=float))).sum())

    assert path(20.0) < path(0.0)


def test_noise_levels_in_a_box_are_chosen_with_the_point() -> None:
    levels = tv.NoiseLevels([1e-6, 0.05], [10.0, 1.0])
    study = a_study(box(1, 20), tv.LevelSet(0.5), noise=levels)
    study.run(lambda point, level: bump(point), steps=12)
    measurements = study.measurements
    assert measurements["level"].iloc[0] == 1
    assert measurements["level"].isin([0, 1]).all()
    np.testing.assert_array_equal(
        measurements["noise"], np.where(measurements["level"] == 0, 1e-6, 0.05)
    )
    np.testing.assert_array_equal(
        measurements["cost"], np.where(measurements["level"] == 0, 10.0, 1.0)
    )


def test_noise_and_cost_functions_are_evaluated_at_the_chosen_point() -> None:
    study = a_study(
        box(1, 20),
        noise=lambda points: 0.01 + 0.001 * points[:, 0] ** 2,
        cost=lambda points, last: 2 + points[:, 0],
    )
    for suggestion in study.ask(3):
        x = suggestion.point["x"]
        assert suggestion.noise == pytest.approx(0.01 + 0.001 * x**2)
        assert suggestion.cost == pytest.approx(2 + x)


def test_a_cheap_correlated_task_can_be_measured_anywhere_in_a_box() -> None:
    tasks = tv.Tasks([[1.0, 0.9], [0.9, 1.0]], ["truth", "proxy"], cost=[20.0, 1.0])
    study = a_study(box(1, 20), tasks=tasks)
    result = study.run(lambda point, task: bump(point), steps=5)
    measurements = study.measurements
    assert (measurements["task"] == "proxy").sum() >= 3
    assert measurements["index"].isna().all()
    assert len(result.potential) == 20
    assert result.best.point["x"] == pytest.approx(0.48, abs=0.4)


def test_the_unit_of_the_values_changes_no_choice_in_a_box() -> None:
    same = {
        "policy": tv.TruVaR(eta=0.0),
        "start": {"x": 0.0},
    }  # no truncation, nothing symmetric: no ties
    plain = a_study(box(1, 20), **same)
    large = a_study(box(1, 20), kernel=ConstantKernel(1e6) * RBF(1.2), noise=100.0, **same)
    for _ in range(3):
        mine = plain.ask()
        theirs = large.ask()
        assert mine.point["x"] == pytest.approx(theirs.point["x"], abs=1e-4)
        plain.tell(mine, bump(mine.point))
        large.tell(theirs, 1000 * bump(mine.point))


def test_a_learned_model_works_in_a_box() -> None:
    study = tv.Study(box(1, 30), tv.Maximize(), kernel=tv.Learned("rbf", restarts=1), noise=1e-4)
    result = study.run(bump, steps=9)
    assert result.regret(bump, optimum=1.0) < 0.01


def test_an_optimum_of_learned_tasks_in_a_box_is_refined() -> None:
    """The leader is that of the target task, whose index the model needs as a coordinate."""
    tasks = tv.Tasks(names=["truth", "proxy"], cost=[2.0, 1.0])
    study = tv.Study(
        box(1, 12), tv.Maximize(), tasks=tasks, policy=tv.TruVaR(beta=tv.ConstantBeta(1.0)), seed=1
    )
    study.run(lambda point, task: bump(point), steps=24)
    refined = refined_points(study.policy_context())
    assert refined is not None
    assert refined.points.shape[1] == 2
    assert refined.points[0, 0] == pytest.approx(-1 + 0.37 * 4, abs=0.1)
