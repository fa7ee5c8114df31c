"""Boxes: representer points for the sums, DIRECT with a polish for the choice, and a best point of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

import truvar as tv
from truvar.acquisition.optimizer import best_in_box, direct, polish

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
    return float(np.exp(-4 * sum(((x - place[name]) / width[name]) ** 2 for name, x in point.items())))


def is_representer(domain: tv.Domain, point: dict[str, float]) -> bool:
    return bool((np.abs(domain.points - domain.array(point)) < 1e-9 * domain.extent).all(axis=1).any())


# -- representers ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("d", "representers", "count"), [(1, 7, 7), (1, 2, 2), (2, 100, 100), (2, 90, 81)])
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
    assert not np.array_equal(domain.points, tv.Domain.box(representers=100, seed=1, **INTERVALS[3]).points)


# -- the choice --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("goal", [tv.Maximize(), tv.LevelSet(0.5)], ids=["optimum", "level set"])
def test_the_choice_is_at_least_as_good_as_the_best_representer_and_need_not_be_one(d: int, goal: Any) -> None:
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


def test_direct_finds_the_maximum_among_many_peaks_and_takes_no_more_than_its_share_of_scores() -> None:
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
    bound = a_study(domain, tv.LevelSet(0.5), policy=tv.TruVaR(beta=tv.ConstantBeta(4.0), among=tv.TopK(40)))
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


# -- telling and reporting ---------------------------------------------------------------------------------------------


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
def test_the_best_point_is_at_least_as_good_as_every_representer_and_every_measured_point(sign: int) -> None:
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


# -- on known functions ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("d", "representers", "steps", "regret"), [(1, 30, 8, 1e-3), (2, 49, 10, 0.02), (3, 30, 9, 0.15)]
)
def test_a_run_on_a_known_function_reaches_a_small_regret(d: int, representers: int, steps: int, regret: float) -> None:
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


# -- cost, noise, tasks ------------------------------------------------------------------------------------------------


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
    np.testing.assert_array_equal(measurements["noise"], np.where(measurements["level"] == 0, 1e-6, 0.05))
    np.testing.assert_array_equal(measurements["cost"], np.where(measurements["level"] == 0, 10.0, 1.0))


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
    same = {"policy": tv.TruVaR(eta=0.0), "start": {"x": 0.0}}  # no truncation, nothing symmetric: no ties
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
