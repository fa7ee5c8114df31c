"""`repeats`: how often a place may be measured, and batches that prefer different places."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import RBF

import truvar as tv
from truvar.acquisition.registry import policy_classes
from truvar.exceptions import InvalidArgumentError, UnsupportedGoalError
from truvar.study.suggestion import repeated_places

KNOWN = {"kernel": RBF(2.0), "mean": 0.0, "noise": 1.0}


def table(n: int = 12, seed: int = 0) -> pd.DataFrame:
    """Return places with names, at random positions."""
    rng = np.random.default_rng(seed)
    places = rng.uniform(0, 10, (n, 2))
    return pd.DataFrame(places, columns=["lon", "lat"], index=[f"KB{k:04d}" for k in range(n)])


def value(suggestion: tv.Suggestion) -> float:
    """Return a value of a smooth function."""
    return float(np.sin(suggestion.point["lon"]) + 0.3 * suggestion.point["lat"])


def measure_all(study: tv.Study, n: int = 1, limit: int = 100, **options: object) -> list[object]:
    """Ask and tell until nothing is suggested; return the places in order."""
    places: list[object] = []
    while len(places) < limit:
        try:
            batch = study.ask(n, **options)  # type: ignore[call-overload]
        except tv.Finished:
            break
        for suggestion in batch if isinstance(batch, list) else [batch]:
            places.append(suggestion.label)
            study.tell(suggestion, value(suggestion))
    return places


@pytest.mark.parametrize("policy", sorted(policy_classes()))
def test_no_policy_measures_a_place_twice(policy: str) -> None:
    goal = tv.LevelSet(1.0)
    try:
        study = tv.Study(tv.Domain.table(table()), goal, policy=policy, repeats=False, **KNOWN)
    except UnsupportedGoalError:
        study = tv.Study(
            tv.Domain.table(table()), tv.Maximize(), policy=policy, repeats=False, **KNOWN
        )
    places = measure_all(study)
    assert len(set(places)) == len(places) <= 12
    if len(places) == 12 and study.finished is None:
        assert "every place was measured or suggested once" in str(study.exhausted)


@pytest.mark.parametrize("n", [1, 5])
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"noise": 1.0},
        {**KNOWN, "cost": tv.Cost(base=0.1, travel={"lon": 1.0})},
        {**KNOWN, "noise": tv.NoiseLevels([0.1, 1.0], [3.0, 1.0])},
    ],
)
def test_learned_models_travel_and_levels_respect_it(n: int, more: dict[str, object]) -> None:
    study = tv.Study(tv.Domain.table(table()), tv.LevelSet(1.0), repeats=False, **more)
    places = measure_all(study, n)
    assert len(set(places)) == len(places)


def test_a_maximum_allows_that_many() -> None:
    study = tv.Study(tv.Domain.table(table(4)), tv.Maximize(), repeats=3, policy="random", **KNOWN)
    places = measure_all(study, 3)
    assert set(Counter(places).values()) == {3}
    assert "3 times" in str(study.exhausted)
    with pytest.raises(tv.Finished, match="measured or suggested 3 times"):
        study.ask()


def test_pending_measurements_count() -> None:
    study = tv.Study(tv.Domain.table(table(3)), tv.Maximize(), repeats=False, **KNOWN)
    batch = study.ask(5)
    assert len({suggestion.label for suggestion in batch}) == len(batch) == 3
    with pytest.raises(tv.Finished, match="every place was measured or suggested once"):
        study.ask()
    study.withdraw(batch[0], again=True)
    assert study.ask().label == batch[0].label


def test_a_study_that_measured_all_says_so_and_makes_statements_about_all() -> None:
    study = tv.Study(tv.Domain.table(table(6)), tv.LevelSet(1.0), repeats=False, **KNOWN)
    study.run(lambda point: np.sin(point["lon"]), steps=50)
    result = study.result()
    assert study.steps <= 6
    assert "once" in str(result.reason) or study.finished
    assert not result.excluded.any()
    assert len(result.mean) == 6


def test_values_that_are_told_are_taken() -> None:
    study = tv.Study(tv.Domain.table(table(6)), tv.Maximize(), repeats=False, **KNOWN)
    suggestion = study.ask()
    study.tell_repeats(suggestion, [1.0, 1.2])
    study.tell(suggestion.point, 1.1)
    assert study.steps == 3


def test_a_context_respects_it() -> None:
    frame = pd.DataFrame({"x": [0.0, 1.0, 2.0, 0.0, 1.0, 2.0], "wind": [0, 0, 0, 1, 1, 1]})
    domain = tv.Domain.table(frame).with_context(["wind"])
    study = tv.Study(domain, tv.LevelSet(0.5), repeats=False, **KNOWN)
    seen = []
    for _ in range(3):
        suggestion = study.ask(context={"wind": 1})
        seen.append(suggestion.index)
        study.tell(suggestion, 0.4 + 0.1 * len(seen))
    with pytest.raises(tv.Finished, match="in this context every place was measured"):
        study.ask(context={"wind": 1})
    assert sorted(seen) == [3, 4, 5]
    assert study.ask(context={"wind": 0}).index in (0, 1, 2)


@pytest.mark.parametrize("policy", ["auto", "plus", "ei", "bamsoo", "thompson"])
def test_points_of_a_box_stay_apart(policy: str) -> None:
    domain = tv.Domain.box(x=(0, 1), y=(0, 10), representers=50)
    study = tv.Study(
        domain, tv.Maximize(), repeats=False, policy=policy, kernel=RBF([1.0, 10.0]), mean=0.0,
        noise=1.0,
    )  # fmt: skip
    points = []
    for _ in range(8):
        suggestion = study.ask()
        points.append([suggestion.point["x"], suggestion.point["y"] / 10])
        study.tell(suggestion, 1 - (suggestion.point["x"] - 0.5) ** 2)
    difference = np.abs(np.array(points)[:, None] - np.array(points)[None]).max(axis=2)
    assert difference[np.triu_indices(8, 1)].min() > 1e-3


def test_tasks_count_separately() -> None:
    tasks = tv.Tasks([[1.0, 0.8], [0.8, 1.0]], ["fine", "coarse"], cost=[5.0, 1.0])
    study = tv.Study(tv.Domain.table(table(4)), tv.Maximize(), repeats=False, tasks=tasks, **KNOWN)
    seen = []
    for _ in range(20):
        try:
            suggestion = study.ask()
        except tv.Finished:
            break
        seen.append((suggestion.label, suggestion.task))
        study.tell(suggestion, value(suggestion))
    assert len(set(seen)) == len(seen) <= 8


def test_vehicles_and_executors_respect_it() -> None:
    from concurrent.futures import ThreadPoolExecutor

    study = tv.Study(
        tv.Domain.table(table()), tv.LevelSet(1.0), repeats=False, vehicles=["a", "b"], **KNOWN
    )
    seen = [study.ask(vehicle=name).label for name in "abab"]
    assert len(set(seen)) == 4
    other = tv.Study(tv.Domain.table(table()), tv.LevelSet(1.0), repeats=False, **KNOWN)
    with ThreadPoolExecutor(3) as pool:
        other.run(lambda point: np.sin(point["lon"]), steps=30, executor=pool)
    assert other.measurements[["lon", "lat"]].duplicated().sum() == 0


@pytest.mark.parametrize("repeats", [False, 2, True, None])
def test_a_replay_continues_like_the_live_study(repeats: bool | int | None) -> None:
    study = tv.Study(tv.Domain.table(table()), tv.Maximize(), repeats=repeats, **KNOWN)
    for suggestion in study.ask(4):
        study.tell(suggestion, value(suggestion))
    copy = tv.Study.from_json(study.to_json())
    assert copy.repeats == study.repeats
    assert [s.label for s in copy.ask(6)] == [s.label for s in study.ask(6)]


def test_the_order_of_the_rows_does_not_matter() -> None:
    frame = table(10)
    order = np.random.default_rng(1).permutation(len(frame))
    cost = tv.Cost(base=0.5, travel={"lon": 1.0, "lat": 1.0})

    def places(rows: pd.DataFrame) -> list[object]:
        study = tv.Study(
            tv.Domain.table(rows), tv.LevelSet(1.0), repeats=2, cost=cost, start={
                "lon": frame["lon"].iloc[0], "lat": frame["lat"].iloc[0]
            }, **KNOWN,
        )  # fmt: skip
        return measure_all(study, 3, limit=12)

    assert places(frame) == places(frame.iloc[order])


@pytest.mark.parametrize("repeats", [0, -1, 1.5, "no", [1], float("nan")])
def test_bad_input_gets_one_clear_message(repeats: object) -> None:
    with pytest.raises(InvalidArgumentError, match="repeats must be True, False or a number"):
        tv.Study(tv.Domain.table(table()), tv.Maximize(), repeats=repeats)  # type: ignore[arg-type]


def test_one_measurement_of_a_place_is_no_repeat() -> None:
    study = tv.Study(tv.Domain.table(table()), tv.Maximize(), repeats=1, **KNOWN)
    assert study.repeats is False


# -- batches


def test_a_batch_with_travel_prefers_different_places() -> None:
    cost = tv.Cost(base=0.1, travel={"lon": 1.0, "lat": 1.0})
    distinct = {}
    for repeats in (None, True):
        study = tv.Study(
            tv.Domain.table(table(60)), tv.LevelSet(1.5), repeats=repeats, cost=cost,
            kernel=RBF(1.0), mean=1.5, noise=0.2,
        )  # fmt: skip
        measure_all(study, 5, limit=10)
        distinct[repeats] = len({suggestion.label for suggestion in study.ask(5)})
    assert distinct[None] >= 4
    assert distinct[True] <= 3


def test_a_repeat_that_gains_more_than_any_other_place_stays() -> None:
    # Far apart, so that the places say nothing of each other, and one alone is undecided.
    frame = pd.DataFrame({"x": [0.0, 100.0, 200.0]}, index=["KB0617", "KB0618", "KB0619"])
    study = tv.Study(
        tv.Domain.table(frame), tv.LevelSet(0.0), kernel=RBF(1.0), mean=0.0, noise=1.0,
        cost=tv.Cost(base=1.0, travel={"x": 0.001}),
    )  # fmt: skip
    for label, y in (("KB0617", 3.0), ("KB0619", -3.0)):
        for _ in range(8):
            study.tell({"x": frame.loc[label, "x"]}, y)
    batch = study.ask(3)
    assert [suggestion.label for suggestion in batch] == ["KB0618"] * 3
    assert repeated_places(batch) == "3 x KB0618"
    assert "times=3" in repr(batch[0])
    assert "3 x KB0618" in batch[0]._repr_html_()
    assert [suggestion.times for suggestion in study.pending] == [3, 3, 3]


def test_a_point_without_a_name_is_given_by_its_coordinates() -> None:
    domain = tv.Domain.grid(x=[0.0, 1.0])
    study = tv.Study(domain, tv.Maximize(), kernel=RBF(1.0), noise=5.0)
    batch = study.ask(6)
    assert "x (x " in str(repeated_places(batch))
    assert repeated_places(batch[:1]) is None or batch[0].times > 1
