"""Points below a threshold: `LevelSet(below=h)` on f is `LevelSet(-h)` on -f, with above and below exchanged."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import ConstantKernel, Matern

import truvar as tv
from truvar.domain.goals import Regions
from truvar.storage.serialization import deserialize, serialize

GRID = tv.Domain.grid(x=np.linspace(0.0, 1.0, 9), y=np.linspace(0.0, 1.0, 8))
BOX = tv.Domain.box(x=(0.0, 1.0), y=(0.0, 1.0), representers=60, seed=2)
KERNEL = ConstantKernel(2.0) * Matern([0.3, 0.4], nu=2.5)
KNOWN: dict[str, Any] = {"kernel": KERNEL, "noise": 0.01, "mean": 4.0}
H = 3.6
KINDS: dict[str, tuple[tv.Domain, dict[str, Any]]] = {
    "auto": (GRID, {**KNOWN, "policy": "auto"}),
    "truvar": (GRID, {**KNOWN, "policy": "truvar"}),
    "anticipating": (GRID, {**KNOWN, "policy": tv.TruVaR(anticipate="average")}),
    "gchk": (GRID, {**KNOWN, "policy": "gchk"}),
    "straddle": (GRID, {**KNOWN, "policy": "straddle"}),
    "sur": (GRID, {**KNOWN, "policy": "sur"}),
    "plus": (GRID, {**KNOWN, "policy": "plus"}),
    "mean estimated": (GRID, {"kernel": KERNEL, "noise": 0.01, "policy": "straddle"}),
    "exact values": (GRID, {**KNOWN, "noise": 0.0, "policy": "straddle"}),
    "box": (BOX, {**KNOWN, "policy": "straddle"}),
}


def field(point: Mapping[str, float]) -> float:
    x = point["x"]
    y = point["y"]
    return float(4.0 + 1.5 * np.sin(5.0 * x) * np.cos(4.0 * y) + y)


def skewed(point: Mapping[str, float]) -> float:
    return float(np.exp(field(point) - 3.0))


def measured(
    domain: tv.Domain,
    options: Mapping[str, Any],
    sign: int,
    steps: int,
    f: Callable[[Mapping[str, float]], float] = field,
    **limits: float,
) -> tv.Study:
    """Return a study of the points below H, or with a sign of -1 the mirrored one, that was run."""
    goal = tv.LevelSet(below=H) if sign > 0 else tv.LevelSet(-H)
    given = dict(options)
    if given.get("mean") is not None:
        given["mean"] = sign * given["mean"]
    study = tv.Study(domain, goal, seed=3, **given)
    noise = iter(np.random.default_rng(5).normal(0.0, 0.1, 1000))
    exact = given.get("noise") == 0.0

    def measure(point: Mapping[str, float]) -> float:
        return sign * (round(f(point), 1) if exact else f(point) + next(noise))

    study.run(measure, steps=steps, progress=False, **limits)
    return study


def assert_mirrored(below: tv.Study, above: tv.Study) -> None:
    choices = [
        [tuple(record.point.values()) for record in study.measurement_records()]
        for study in (below, above)
    ]
    assert_allclose(choices[0], choices[1], atol=1e-6)
    one = below.result()
    other = above.result()
    assert_allclose(one.mean, -other.mean, atol=1e-9)
    pairs: list[tuple[Any, Any]] = [(one, other)]
    for options in ({}, {"pointwise": 0.9}, {"tolerance": 0.02}, {"margin": 0.2}):
        pairs.append((one.classify(**options), other.classify(**options)))
    for found, mirrored in pairs:
        np.testing.assert_array_equal(found.above, mirrored.below)
        np.testing.assert_array_equal(found.below, mirrored.above)
    np.testing.assert_array_equal(one.potential, other.potential)
    assert_allclose(one.probability, 1.0 - other.probability, atol=1e-9)
    assert_allclose(one.statements.lower, -other.statements.upper, atol=1e-6)
    for name in ("mean", "low", "high"):
        assert getattr(one.expected_f1, name) == pytest.approx(
            getattr(other.expected_f1, name), abs=1e-9
        )
    assert one.share_above.low == pytest.approx(1.0 - other.share_above.high, abs=1e-9)
    assert one.classes.wrong == other.classes.wrong
    assert one.expected_misclassified == pytest.approx(other.expected_misclassified, abs=1e-6)
    assert one.classification is not None
    np.testing.assert_array_equal(one.classification, other.classification)
    assert one.best.mean == pytest.approx(-other.best.mean, abs=1e-6)
    assert one.reason == other.reason
    truth = np.array([field(below.domain.point(i)) for i in range(len(below.domain))])
    assert one.f1(truth) == other.f1(-truth)


@pytest.mark.parametrize("kind", KINDS)
def test_below_is_the_mirrored_problem(kind: str) -> None:
    domain, options = KINDS[kind]
    below = measured(domain, options, 1, steps=14)
    above = measured(domain, options, -1, steps=14)
    assert_mirrored(below, above)


def test_below_stops_where_the_mirrored_problem_stops() -> None:
    below = measured(GRID, KINDS["truvar"][1], 1, steps=60, f1=0.7)
    above = measured(GRID, KINDS["truvar"][1], -1, steps=60, f1=0.7)
    assert "expected F1" in str(below.result().reason)
    assert_mirrored(below, above)


BATCHES: dict[str, dict[str, Any]] = {
    "travel": {**KNOWN, "cost": tv.Cost(base=1.0, travel={"x": 2.0})},
    "noise levels": {**KNOWN, "noise": tv.NoiseLevels(variance=[1e-4, 0.05], cost=[5, 1])},
    "pending": {**KNOWN, "policy": "truvar"},
}


@pytest.mark.parametrize("kind", BATCHES)
def test_batches_of_below_are_those_of_the_mirrored_problem(kind: str) -> None:
    studies = []
    for sign, goal in ((1, tv.LevelSet(below=H)), (-1, tv.LevelSet(-H))):
        options = {**BATCHES[kind], "mean": sign * KNOWN["mean"]}
        study = tv.Study(GRID, goal, seed=1, **options)
        for _ in range(3):
            for suggestion in study.ask(3):
                study.tell(suggestion, sign * field(suggestion.point))
        studies.append(study)
    assert_mirrored(*studies)


def test_below_is_finished_when_the_mirrored_problem_is() -> None:
    domain = tv.Domain.grid(x=np.linspace(0.0, 1.0, 5), y=np.linspace(0.0, 1.0, 4))
    options = {**KNOWN, "noise": 0.0}
    below = measured(domain, options, 1, steps=50)
    above = measured(domain, options, -1, steps=50)
    assert "every point is classified" in str(below.result().reason)
    assert_mirrored(below, above)


@pytest.mark.parametrize("f", [field, skewed])
def test_a_learned_model_mirrors_below(f: Callable[[Mapping[str, float]], float]) -> None:
    options = {"policy": "auto"}
    below = measured(GRID, options, 1, steps=16, f=f)
    above = measured(GRID, options, -1, steps=16, f=f)
    records = zip(below.measurement_records(), above.measurement_records(), strict=True)
    assert all(one.point == other.point for one, other in records)
    assert below.result().expected_f1.mean == pytest.approx(
        above.result().expected_f1.mean, abs=1e-6
    )


def test_f1_is_that_of_the_points_asked_for() -> None:
    """Few points are low here: those above are known long before those below are."""
    domain = tv.Domain.grid(x=np.linspace(0.0, 1.0, 60))
    truth = np.where(np.abs(domain.points[:, 0] - 0.7) < 0.05, 3.0, 6.0)
    results = {}
    for goal in (tv.LevelSet(4.0), tv.LevelSet(below=4.0)):
        study = tv.Study(domain, goal, kernel=Matern(0.05), mean=5.5, noise=1.0)
        study.tell({"x": 0.0}, 6.0)
        results[goal.side] = study.result()
    assert results["above"].expected_f1.mean > 0.9
    assert results["above"].f1(truth) > 0.9
    assert results["below"].expected_f1.low == 0.0
    assert results["below"].expected_f1.mean < 0.5
    assert results["below"].f1(truth) == 0.0
    assert results["below"].expected_misclassified == pytest.approx(
        results["above"].expected_misclassified
    )


def test_a_value_on_the_threshold_belongs_to_the_side_asked_for() -> None:
    for goal in (tv.LevelSet(4.0), tv.LevelSet(below=4.0)):
        on_it = np.array([4.0])
        assert goal.asked(goal.exceeds(on_it, 4.0)).all()
        result = tv.Study(GRID, goal, kernel=KERNEL, mean=4.0, noise=0.01).result()
        assert result.classification is not None
        assert result.classification.all()
        assert result.f1(np.full(len(GRID), 4.0)) == 1.0


def test_the_sets_of_the_paper_do_not_depend_on_the_side() -> None:
    lower = np.array([3.0, 4.1, 3.0, 2.0])
    upper = np.array([5.0, 6.0, 3.9, 4.0])
    one = tv.LevelSet(below=4.0).update(Regions.unknown(4), lower, upper)
    other = tv.LevelSet(4.0).update(Regions.unknown(4), lower, upper)
    for name in ("potential", "above", "below"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_below_is_shown_as_it_was_given() -> None:
    goal = tv.LevelSet(below=4)
    assert repr(goal) == "LevelSet(below=4.0)"
    assert str(goal) == "LevelSet(below=4)"
    assert repr(tv.LevelSet(4)) == "LevelSet(4.0)"
    assert (goal.threshold, goal.side, goal.sign) == (4.0, "below", -1)
    assert goal == tv.LevelSet(4, side="below") != tv.LevelSet(4)
    assert replace(goal, monotone=True) == tv.LevelSet(below=4, monotone=True)
    assert pickle.loads(pickle.dumps(goal)) == goal


def test_the_side_is_stored_only_for_below() -> None:
    assert "side" not in serialize(tv.LevelSet(4.0))
    stored = serialize(tv.LevelSet(below=4.0))
    assert stored["side"] == "below"
    assert deserialize(stored) == tv.LevelSet(below=4.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"threshold": 4, "below": 3}, "got threshold=4 and below=3; give one"),
        ({"below": 3, "fraction_of_max": 0.8}, "got fraction_of_max=0.8 and below=3; give one"),
        ({"below": 3, "between": (1, 2)}, "got several of them"),
        ({"threshold": [1, 2], "side": "below"}, r"side='below' needs one threshold, got \[1, 2\]"),
        ({"fraction_of_max": 0.8, "side": "below"}, "asked for with a threshold, got fraction"),
        ({"threshold": 1, "side": "under"}, "side must be 'above' or 'below', got 'under'"),
        ({"below": "low"}, "must be a number, got 'low'"),
        ({"below": [3, 4]}, r"must be a number, got \[3, 4\]"),
    ],
)
def test_below_with_another_goal_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(tv.exceptions.InvalidArgumentError, match=message):
        tv.LevelSet(**arguments)
