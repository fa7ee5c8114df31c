"""Studies whose measurements give yes or no, or counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import RBF

import truvar as tv
from truvar.exceptions import (
    InvalidArgumentError,
    InvalidMeasurementError,
    InvalidModelError,
    TruvarError,
)
from truvar.problem import problem_from_dict

LINE = tv.Domain.grid(x=np.linspace(0, 1, 25))
SQUARE = tv.Domain.grid(x=np.linspace(0, 1, 7), y=np.linspace(0, 2, 6))
GOALS = {
    "binary": tv.LevelSet(0.6),
    "count": tv.LevelSet(3.0),
}


def truth(outcome: Any, x: float) -> float:
    """Return the probability of a yes, or the rate, which rise with x."""
    return 0.05 + 0.9 * x if getattr(outcome, "name", outcome) == "binary" else 0.5 + 8.0 * x


def told(outcome: Any, count: int, goal: Any = None, **options: Any) -> tv.Study:
    """Return a study with so many measurements of its own suggestions."""
    name = getattr(outcome, "name", outcome)
    study = tv.Study(LINE, goal or GOALS[name], outcome=outcome, **options)
    rng = np.random.default_rng(5)
    for _ in range(count):
        suggestion = study.ask()
        expected = truth(outcome, suggestion.point["x"])
        y = float(rng.random() < expected) if name == "binary" else float(rng.poisson(expected))
        study.tell(suggestion, y)
    return study


def same(first: tv.Study, second: tv.Study) -> None:
    """Compare everything that two studies say."""
    a = first.result()
    b = second.result()
    np.testing.assert_array_equal(a.mean, b.mean)
    np.testing.assert_array_equal(a.sd, b.sd)
    np.testing.assert_array_equal(a.lower, b.lower)
    np.testing.assert_array_equal(a.probability, b.probability)
    assert str(a.certificate) == str(b.certificate)
    assert first.ask().point == second.ask().point


@pytest.mark.parametrize(
    "outcome", ["binary", tv.Binary(0.2, 0.02), "count", tv.Count(2.0)], ids=str
)
def test_what_is_said_is_in_the_units_of_the_user(outcome: Any) -> None:
    study = told(outcome, 14)
    low, high = study.outcome.value_range
    result = study.result()
    for values in (result.mean, result.lower, result.upper):
        assert (values >= low).all()
        assert (values <= high).all()
    assert (result.sd > 0).all()
    assert result.mean[-1] > result.mean[0]
    assert ((result.probability >= 0) & (result.probability <= 1)).all()
    assert result.probability[-1] > result.probability[0]
    assert 0 <= result.expected_f1.low <= result.expected_f1.high <= 1
    mean, sd = study.predict([[0.5]])
    assert low < mean[0] < high
    assert sd[0] > 0


@pytest.mark.parametrize("outcome", ["binary", tv.Binary(0.2, 0.02), "count"], ids=str)
def test_a_stored_study_is_the_live_one(outcome: Any, tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'studies.db'}"
    study = told(outcome, 9, store=store, name="answers", seed=3)
    replayed = tv.Study.from_json(study.to_json())
    assert tv.load(store, "answers").outcome == study.outcome
    same(study, replayed)
    same(tv.load(store, "answers"), tv.Study.from_json(study.to_json()))


def test_a_correction_is_as_if_the_right_value_had_been_told() -> None:
    study = tv.Study(LINE, tv.LevelSet(3.0), outcome="count", seed=1)
    other = tv.Study(LINE, tv.LevelSet(3.0), outcome="count", seed=1)
    for x, y in ((0.0, 1), (0.25, 2), (0.5, 4), (0.75, 7), (1.0, 9)):
        study.tell({"x": x}, y, exposure=2.0)
        other.tell({"x": x}, y + (x == 0.5), exposure=1.0 if x == 0.5 else 2.0)
    study.correct(3, 5, exposure=1.0)
    np.testing.assert_array_equal(study.result().mean, other.result().mean)


def test_pending_measurements_and_batches_change_no_claim() -> None:
    study = told("binary", 8)
    before = study.result()
    batch = study.ask(3)
    assert len({each.index for each in batch}) >= 2
    np.testing.assert_array_equal(before.mean, study.result().mean)


@pytest.mark.parametrize("word", [True, "yes", "True", 1, np.bool_(True)])
def test_an_answer_may_be_a_word(word: Any) -> None:
    study = tv.Study(LINE, tv.LevelSet(0.6), outcome="binary")
    study.tell(study.ask(), word)
    assert study.measurements["value"].tolist() == [1.0]
    with pytest.raises(InvalidMeasurementError):
        tv.Study(LINE, tv.LevelSet(0.6)).tell({"x": 0.0}, "yes" if word == 1 else word)


@pytest.mark.parametrize(
    ("outcome", "y", "options", "message"),
    [
        ("binary", 2, {}, "a value is 1 or 0, got 2"),
        ("binary", 0.5, {}, "a value is 1 or 0, got 0.5"),
        ("binary", float("nan"), {}, "must be a finite number"),
        ("binary", "maybe", {}, 'must be a number, got .maybe.; .*"yes" or "no" if the outcome is'),
        ("binary", 1, {"noise": 0.1}, "has no noise variance"),
        ("binary", 1, {"exposure": 2.0}, 'outcome "count" have an exposure'),
        ("count", -1, {}, "a whole number from 0"),
        ("count", 1.5, {}, "a whole number from 0"),
        ("count", True, {}, "must be a number"),
        ("count", 1, {"exposure": 0}, "exposure must be > 0"),
        ("count", 1, {"exposure": -2.0}, "exposure must be > 0"),
        ("count", 1, {"exposure": float("inf")}, "exposure must be a finite number"),
        (None, 1.0, {"exposure": 1.0}, 'outcome "count" have an exposure'),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(
    outcome: Any, y: Any, options: Any, message: str
) -> None:
    study = tv.Study(LINE, tv.LevelSet(0.6), outcome=outcome)
    study.tell({"x": 0.5}, 1)
    suggestion = study.ask()
    before = study.version
    with pytest.raises(InvalidMeasurementError, match=message):
        study.tell(suggestion, y, **options)
    assert study.version == before
    assert study.steps == 1
    if outcome is not None:
        with pytest.raises(TruvarError, match="row 1"):
            study.tell_frame(pd.DataFrame({"x": [0.0, 1.0], "value": [1, -3.5]}))
        assert study.version == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"noise": 0.1}, "got a noise variance"),
        ({"noise": tv.NoiseLevels([0.1, 0.2], [2, 1])}, "got a noise variance"),
        ({"kernel": RBF(0.3)}, "got a kernel of your own"),
        ({"mean": 0.5}, "got a mean"),
        ({"transform": "log"}, "got a transform"),
        ({"kernel": tv.Learned(marginalise=False)}, "got marginalise=False"),
        ({"tasks": tv.Tasks(names=["a", "b"])}, "got tasks"),
        ({"goal": tv.LevelSet(1.2)}, "a probability of yes between 0 and 1, got 1.2"),
        ({"goal": tv.LevelSet(fraction_of_max=0.8)}, "give the threshold itself"),
        (
            {"outcome": tv.Binary(guess=0.5), "goal": tv.LevelSet(0.4)},
            "between 0.5 and 1, got 0.4",
        ),
        ({"outcome": "count", "goal": tv.LevelSet(0.0)}, "per unit of exposure above 0, got 0"),
        ({"outcome": "binari"}, "unknown outcome 'binari'; did you mean 'binary'"),
        ({"outcome": 3}, "outcome must be"),
    ],
)
def test_a_model_that_does_not_go_with_the_outcome_is_refused(options: Any, message: str) -> None:
    arguments: dict[str, Any] = {"outcome": "binary", "goal": tv.LevelSet(0.6), **options}
    with pytest.raises(InvalidModelError, match=message):
        tv.Study(LINE, arguments.pop("goal"), **arguments)


def test_a_model_is_not_fitted_to_a_table_of_numbers() -> None:
    study = tv.Study(LINE, tv.LevelSet(0.6), outcome="binary")
    frame = pd.DataFrame({"x": [0.0, 0.5, 1.0], "value": [0.0, 1.0, 1.0]})
    with pytest.raises(InvalidModelError, match="tell the earlier measurements"):
        study.fit(frame, "value")


@pytest.mark.parametrize("outcome", ["binary", "count"])
@pytest.mark.parametrize("goal", [tv.Maximize(), tv.Minimize(), tv.Map(0.2)], ids=str)
def test_other_goals_are_about_the_same_units(outcome: str, goal: Any) -> None:
    study = told(outcome, 9, goal)
    result = study.result()
    low, high = study.outcome.value_range
    assert low < result.best.mean < high
    if isinstance(goal, tv.Maximize):
        assert result.expected_regret.high <= (1.0 if outcome == "binary" else np.inf)
    assert str(result.certificate)


def test_bands_and_the_points_below_are_about_probabilities() -> None:
    study = told("binary", 12, tv.LevelSet([0.3, 0.7]))
    assert study.result().probability.shape == (25,)
    below = told("binary", 12, tv.LevelSet(below=0.4)).result()
    assert below.probability[0] < below.probability[-1]


def test_repeats_and_exposures_count() -> None:
    study = tv.Study(LINE, tv.LevelSet(0.6), outcome="binary")
    study.tell_repeats({"x": 0.5}, [True, False, True, True])
    assert study.measurements["value"].tolist() == [1.0, 0.0, 1.0, 1.0]
    counts = tv.Study(LINE, tv.LevelSet(3.0), outcome=tv.Count(exposure=2.0))
    counts.tell({"x": 0.5}, 7, exposure=0.5)
    counts.tell({"x": 0.0}, 1)
    assert counts.measurements["exposure"].tolist()[0] == 0.5
    assert [each.exposure for each in counts.measurement_records()] == [0.5, None]


def test_longer_exposure_says_more() -> None:
    def sd(exposure: float) -> float:
        study = tv.Study(LINE, tv.LevelSet(3.0), outcome="count")
        for x in np.linspace(0, 1, 6):
            study.tell({"x": float(np.round(x * 24) / 24)}, 3 * exposure, exposure=exposure)
        return float((study.result().sd / study.result().mean).mean())

    assert sd(8.0) < sd(1.0)


def test_a_table_of_measurements_goes_out_and_in() -> None:
    study = told("count", 6)
    study.tell({"x": 0.5}, 3, exposure=1.5)
    other = tv.Study(LINE, tv.LevelSet(3.0), outcome="count")
    other.tell_frame(study.measurements.drop(columns="id"))
    assert other.measurements["value"].tolist() == study.measurements["value"].tolist()
    assert other.measurements["exposure"].fillna(0).tolist()[-1] == 1.5
    words = pd.DataFrame({"x": [0.0, 1.0], "value": ["no", "yes"]})
    answers = tv.Study(LINE, tv.LevelSet(0.6), outcome="binary")
    answers.tell_frame(words)
    assert answers.measurements["value"].tolist() == [0.0, 1.0]


@pytest.mark.parametrize(
    "policy", ["truvar", "straddle", "variance", "ei", "plus", "mes", "random"]
)
def test_policies_act_on_the_latent_scale(policy: str) -> None:
    goal = tv.Maximize() if policy in ("ei", "mes") else tv.LevelSet(0.6)
    study = told("binary", 8, goal, policy=policy)
    assert study.steps == 8


def test_costs_travel_and_boxes_work() -> None:
    box = tv.Domain.box(x=(0, 1), y=(0, 1), representers=60)
    study = tv.Study(
        box, tv.LevelSet(0.6), outcome="binary", cost=tv.Cost(base=1.0, travel={"x": 2.0})
    )
    rng = np.random.default_rng(0)
    for _ in range(8):
        suggestion = study.ask()
        study.tell(suggestion, float(rng.random() < suggestion.point["x"]))
    assert study.result().mean.shape == (len(box),)
    assert study.predict_measurement(study.ask())[0] < 1


def test_rows_and_columns_may_be_permuted() -> None:
    points = SQUARE.points
    order = np.random.default_rng(1).permutation(len(points))
    frame = pd.DataFrame(points, columns=["x", "y"])

    def mean(table: pd.DataFrame, columns: list[str]) -> pd.Series:
        domain = tv.Domain.table(table, columns=columns)
        study = tv.Study(domain, tv.LevelSet(0.6), outcome="binary")
        for row in range(0, len(points), 4):
            x, y = points[row]
            study.tell({"x": float(x), "y": float(y)}, int(x + y > 1.2))
        return pd.Series(study.result().mean, index=table.index).sort_index()

    first = mean(frame, ["x", "y"])
    np.testing.assert_allclose(first, mean(frame.iloc[order], ["x", "y"]), atol=1e-6)


def test_the_unit_of_the_exposure_does_not_matter() -> None:
    """Ten counts in two hours are ten in 120 minutes."""
    chosen = []
    results = []
    for factor in (1.0, 60.0):
        outcome = tv.Count(exposure=2.0 * factor)
        study = tv.Study(LINE, tv.LevelSet(3.0 / factor), outcome=outcome)
        rng = np.random.default_rng(0)
        for _ in range(8):
            suggestion = study.ask()
            chosen.append(suggestion.point["x"])
            study.tell(suggestion, int(rng.poisson(2 + 8 * suggestion.point["x"])))
        results.append(study.result())
    assert chosen[:8] == chosen[8:]
    ours, theirs = results
    np.testing.assert_allclose(ours.mean, 60.0 * theirs.mean, rtol=1e-4)
    np.testing.assert_allclose(ours.probability, theirs.probability, atol=1e-4)


def test_a_problem_file_says_the_outcome() -> None:
    spec: dict[str, Any] = {"domain": {"grid": {"x": [0, 1, 10]}}, "goal": {"level_set": 0.75}}
    assert problem_from_dict(spec | {"outcome": "binary"}).study().outcome == tv.Binary()
    table = {"kind": "binary", "guess": 0.5, "lapse": 0.02}
    assert problem_from_dict(spec | {"outcome": table}).study().outcome == tv.Binary(0.5, 0.02)
    counts = {"kind": "count", "exposure": 2.0}
    assert problem_from_dict(spec | {"outcome": counts}).study().outcome == tv.Count(2.0)


@pytest.mark.parametrize(
    ("outcome", "message"),
    [
        ("yes", 'outcome must be "binary", "count" or a table'),
        ({"kind": "yes"}, "outcome.kind must be one of"),
        ({"kind": "count", "guess": 0.5}, "guess is not for kind = 'count'"),
        ({"kind": "binary", "guess": 1.5}, "outcome.guess must be < 1"),
        ({"kind": "binary", "guess": 0.6, "lapse": 0.4}, "guess . lapse must be at most"),
        ({"kind": "count", "exposure": 0}, "outcome.exposure must be > 0"),
        ({"kind": "count", "time": 1}, "unknown key 'time'"),
    ],
)
def test_mistakes_in_a_problem_file_are_named(outcome: Any, message: str) -> None:
    spec = {"domain": {"grid": {"x": [0, 1, 10]}}, "goal": {"level_set": 0.75}}
    with pytest.raises(TruvarError, match=message):
        problem_from_dict(spec | {"outcome": outcome})


def test_values_that_a_study_draws_itself_are_outcomes() -> None:
    rng = np.random.default_rng(0)
    for outcome in ("binary", "count"):
        study = told(outcome, 6)
        values = [study.sample_measurement(study.ask(), rng) for _ in range(5)]
        assert all(value == int(value) and value >= 0 for value in values)


def test_the_model_check_finds_answers_that_others_contradict() -> None:
    study = tv.Study(LINE, tv.LevelSet(0.6), outcome="binary")
    assert study.result().model_check.finding.startswith("The model is not learned")
    study = told("binary", 20)
    check = study.result().model_check
    assert check.ok
    assert check.values.tolist() == study.measurements["value"].tolist()
    assert "squared errors" in check.message


@pytest.mark.parametrize("exposure", [1e-300, 1e-13, 1e13, 1e300])
def test_an_exposure_beyond_what_rates_can_have_is_refused(exposure):
    study = tv.Study(tv.Domain.grid(x=np.linspace(0, 1, 9)), tv.LevelSet(3.0), outcome="count")
    with pytest.raises(InvalidMeasurementError, match="exposure must be from 1e-12 to 1e\\+12"):
        study.tell({"x": 0.5}, 3, exposure=exposure)
    assert study.steps == 0
    with pytest.raises(InvalidArgumentError, match="exposure must be from 1e-12 to 1e\\+12"):
        tv.Count(exposure=exposure)


@pytest.mark.parametrize("exposure", [1e-12, 1e12])
def test_the_largest_and_smallest_exposures_can_be_modelled(exposure):
    study = tv.Study(tv.Domain.grid(x=np.linspace(0, 1, 9)), tv.LevelSet(3.0), outcome="count")
    for x in (0.0, 0.25, 0.5, 0.75, 1.0):
        study.tell({"x": x}, 3, exposure=exposure)
    assert np.isfinite(study.result().mean).all()
    assert study.ask().index is not None


def test_a_word_in_a_table_that_is_no_answer_is_refused_with_those_that_are():
    study = tv.Study(tv.Domain.grid(x=np.linspace(0, 1, 9)), tv.LevelSet(0.5), outcome="binary")
    with pytest.raises(InvalidMeasurementError, match='"yes" or "no" if the outcome is binary'):
        study.tell_frame(pd.DataFrame({"x": [0.0, 0.5], "value": ["yes", "perhaps"]}))
    assert study.steps == 0
