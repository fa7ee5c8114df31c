"""Regions where every measurement fails: attempts go elsewhere after a few, whatever the goal
and the domain."""

import numpy as np
import pytest

import truvar as tv
from truvar.models.feasibility import FeasibilityModel

LINE = tv.Domain.grid(x=np.linspace(0, 10, 101))
SQUARE = tv.Domain.grid(x=np.linspace(0, 1, 12), y=np.linspace(0, 1, 12))
N_ATTEMPTS = 25
MAX_FAILED = 6


def wave(point):
    return float(np.sin(point["x"]) + 0.3 * point["x"])


def hills(point):
    return float(np.sin(5 * point["x"]) * np.cos(4 * point["y"]) + point["x"])


def slope(point):
    return point["x"] + 0.6 * point["y"]


def beyond_half(point):
    return point["x"] > 5


def attempt(study, function, fails, n_attempts=N_ATTEMPTS, batch=1, **options):
    """Make attempts and return, for each, whether it failed."""
    failed = []
    while len(failed) < n_attempts:
        for suggestion in study.ask(batch, **options):
            failed.append(fails(suggestion.point))
            if failed[-1]:
                study.fail(suggestion, "no signal")
            else:
                study.tell(suggestion, function(suggestion.point))
    return failed


@pytest.mark.parametrize("seed", range(4))
def test_a_half_that_always_fails_is_left_alone(seed):
    study = tv.Study(LINE, tv.Maximize(), seed=seed)
    failed = attempt(study, wave, beyond_half)
    assert sum(failed[:10]) <= 5
    assert sum(failed) <= MAX_FAILED
    assert wave(study.result().best.point) == pytest.approx(wave({"x": 1.9}), abs=0.02)


@pytest.mark.parametrize(
    ("domain", "goal", "function", "fails"),
    [
        (LINE, tv.Maximize(), wave, lambda p: p["x"] < 5),
        (LINE, tv.Minimize(), wave, lambda p: p["x"] < 5),
        (LINE, tv.LevelSet(0.9), wave, beyond_half),
        (tv.Domain.box(x=(0, 10)), tv.Maximize(), wave, beyond_half),
        (SQUARE, tv.Maximize(), hills, lambda p: p["x"] > 0.5),
        (SQUARE, tv.LevelSet(0.5), hills, lambda p: p["x"] > 0.5 and p["y"] > 0.5),
    ],
    ids=["left", "minimum", "level-set", "box", "square-half", "square-corner"],
)
def test_other_goals_and_domains_leave_it_alone_too(domain, goal, function, fails):
    assert sum(attempt(tv.Study(domain, goal, seed=1), function, fails)) <= MAX_FAILED + 1


def test_batches_leave_it_alone_too():
    study = tv.Study(LINE, tv.Maximize(), seed=0)
    assert sum(attempt(study, wave, beyond_half, batch=4)) <= MAX_FAILED + 3


def test_a_run_does_not_give_up_for_one_failing_region():
    def measure(point):
        if beyond_half(point):
            raise RuntimeError("out of range")
        return wave(point)

    study = tv.Study(LINE, tv.LevelSet(0.9), seed=0)
    with pytest.warns(RuntimeWarning, match="out of range"):
        result = study.run(measure, steps=30)
    assert result.steps == 30
    assert result.n_failed <= 10


def test_a_small_region_that_succeeds_is_kept_to_and_its_border_is_found():
    def outside(point):
        return (point["x"] - 0.45) ** 2 + (point["y"] - 0.45) ** 2 > 0.25**2

    study = tv.Study(SQUARE, tv.Maximize(), seed=0)
    failed = attempt(study, slope, outside)
    assert sum(failed) <= 15  # 24 with the expected gain alone
    allowed = [k for k in range(len(SQUARE)) if not outside(SQUARE.point(k))]
    best = max(slope(SQUARE.point(k)) for k in allowed)
    assert slope(study.result().best.point) == pytest.approx(best, abs=0.12)


def test_a_place_that_is_too_risky_to_be_tried_is_not_recommended():
    study = tv.Study(tv.Domain.grid(x=np.linspace(-3, 4, 57)), tv.Maximize(), seed=0)
    attempt(study, lambda point: point["x"], lambda point: point["x"] > 2)
    assert study.result().best.point == {"x": 2.0}


def test_after_five_failures_at_a_place_the_next_attempts_lie_elsewhere():
    study = tv.Study(LINE, tv.Maximize(), seed=0)
    for x in (0.0, 1.5, 3.0, 4.5):
        study.tell({"x": x}, wave({"x": x}))
    for x in (8.0, 8.5, 7.5, 9.0, 8.2):
        study.fail({"x": x}, "no signal")
    for suggestion in study.ask(3):
        assert suggestion.point["x"] < 7


def test_a_resumed_study_chooses_the_same_after_failures():
    study = tv.Study(LINE, tv.Maximize(), seed=2)
    attempt(study, wave, beyond_half, n_attempts=9)
    resumed = tv.Study.from_json(study.to_json())
    assert resumed.ask() == study.ask()


def test_one_success_among_failures_is_a_region_and_not_a_chance():
    failed = [(0.2, 0.2), (0.8, 0.8), (0.2, 0.8), (0.6, 0.1), (0.9, 0.4), (0.4, 0.9), (0.1, 0.6)]
    model = FeasibilityModel.fit(np.array([(0.5, 0.5), *failed]), np.arange(8) == 0)
    near, far = model.probability(np.array([(0.48, 0.5), (0.05, 0.05)]))
    assert near > 1.5 * far
