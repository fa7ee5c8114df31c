"""A learned model takes the values of a table together: one fit, and a replay does the same."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import RBF
from tests.helpers.problems import assert_same

import truvar as tv
from truvar.exceptions import InvalidMeasurementError, OutlierWarning
from truvar.models import _learned
from truvar.study.measurements_io import MeasurementInput, tell_all

DOMAIN = tv.Domain.grid(x=np.linspace(0, 1, 9), y=np.linspace(0, 2, 7))
GOAL = tv.LevelSet(0.3)
LEARNED: dict[str, dict[str, Any]] = {
    "average": {},
    "log": {"transform": "log"},
    "point estimate": {"kernel": tv.Learned(marginalise=False)},
    "noise": {"kernel": RBF([0.3, 0.5]), "mean": 0.0},
    "tasks": {"tasks": tv.Tasks(names=["yield", "colour"])},
}


def a_study(kind: str = "average", **options: Any) -> tv.Study:
    return tv.Study(DOMAIN, GOAL, seed=2, **{**LEARNED[kind], **options})


def values_at(rows: range) -> pd.DataFrame:
    frame = DOMAIN.to_frame().iloc[list(rows)][["x", "y"]]
    return frame.assign(value=0.6 + np.sin(5 * frame["x"]) * np.cos(2 * frame["y"]) / 2)


def reread(study: tv.Study) -> tv.Study:
    return tv.Study.from_json(study.to_json())


def told_events(study: tv.Study) -> list[dict[str, Any]]:
    events = json.loads(study.to_json())["events"]
    return [event["details"] for event in events if event["kind"] == "told"]


@pytest.mark.parametrize("kind", LEARNED)
def test_a_replay_leads_to_the_same_bits_and_choices(kind: str) -> None:
    study = a_study(kind)
    study.tell_frame(values_at(range(0, 40, 3)))
    assert_same(study, reread(study))
    study.tell_frame(values_at(range(1, 6, 3)))
    batch = study.ask(3)
    table = pd.DataFrame({"id": [batch[1].id, batch[0].id], "value": [0.4, 0.5]})
    study.tell_frame(table)
    assert [each.id for each in study.pending] == [batch[2].id]
    again = reread(study)
    assert_same(study, again)
    assert study.ask() == again.ask()


@pytest.mark.parametrize("kind", ["average", "noise"])
def test_corrections_and_removals_within_a_table_are_replayed(kind: str) -> None:
    study = a_study(kind)
    ids = study.tell_frame(values_at(range(0, 40, 3)))
    study.tell(DOMAIN.point(50), 0.5)
    study.correct(ids[3], 0.55)
    assert_same(study, reread(study))
    for removed in (ids[-1], ids[0]):
        study.withdraw(removed)
        assert_same(study, reread(study))
    assert study.steps == len(ids) - 1
    assert study.history["step"].tolist() == list(range(1, study.steps + 1))


def test_one_fit_is_made_and_stored_with_the_last_value(monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[int] = []
    original = _learned.fit_ensemble

    def counted(family: str, data: Any, *rest: Any) -> Any:
        counts.append(len(data.values))
        return original(family, data, *rest)

    monkeypatch.setattr("truvar.models.hyperparameters.averaged.fit_ensemble", counted)
    study = a_study()
    study.tell_frame(values_at(range(0, 60, 2)))
    assert counts == [30]
    events = told_events(study)
    assert [event.get("with_next", False) for event in events] == 29 * [True] + [False]
    assert ["models" in event for event in events] == 29 * [False] + [True]
    assert reread(study).steps == 30
    assert counts == [30]


def test_between_two_fits_values_are_taken_one_by_one() -> None:
    study = a_study(kernel=tv.Learned(refit_every=50))
    other = a_study(kernel=tv.Learned(refit_every=50))
    for each in (study, other):
        each.tell_frame(values_at(range(0, 60, 3)))
    more = values_at(range(1, 8, 3))
    study.tell_frame(more)
    for _, row in more.iterrows():
        other.tell({"x": row["x"], "y": row["y"]}, row["value"])
    assert study.result().mean.tolist() == other.result().mean.tolist()
    assert_same(study, reread(study))


def test_a_single_row_and_a_known_model_leave_no_trace_of_the_table() -> None:
    study = a_study()
    study.tell_frame(values_at(range(1)))
    known = tv.Study(DOMAIN, GOAL, kernel=RBF([0.3, 0.5]), mean=0.0, noise=0.01)
    known.tell_frame(values_at(range(8)))
    single = tv.Study(DOMAIN, GOAL, kernel=RBF([0.3, 0.5]), mean=0.0, noise=0.01)
    for _, row in values_at(range(8)).iterrows():
        single.tell({"x": row["x"], "y": row["y"]}, row["value"])
    assert not any("with_next" in event for event in told_events(study) + told_events(known))
    assert known.history.equals(single.history)


def test_rows_of_the_history_have_their_own_costs_and_the_state_after_the_table() -> None:
    study = a_study(cost=tv.Cost(base=1.0, travel={"x": 2.0}))
    study.tell_frame(values_at(range(0, 60, 5)))
    history = study.history
    assert history["spent"].tolist() == pytest.approx(study.measurements["cost"].cumsum())
    assert history["spent"].iloc[-1] == study.spent
    assert history["n_potential"].nunique() == 1
    assert len(study.result().to_dict()) > 0


def test_a_refused_row_leaves_nothing_even_within_a_transaction() -> None:
    study = a_study()
    study.tell(DOMAIN.point(3), 0.5)
    pending = study.ask()
    before = reread(study)
    frame = values_at(range(0, 30, 3)).assign(
        value=lambda rows: rows["value"].where(rows.index != 9, 1e60)
    )
    with pytest.raises(InvalidMeasurementError, match="row 3: a learned model takes values up to"):
        study.tell_frame(frame)
    assert_same(study, before)
    with study.transaction():
        study.tell(DOMAIN.point(5), 0.4)
        with pytest.raises(InvalidMeasurementError):
            study.tell_frame(frame)
        study.tell(pending, 0.45)
    assert study.steps == 3
    assert_same(study, reread(study))


def test_a_contradiction_that_only_the_model_sees_leaves_nothing() -> None:
    study = a_study("noise")
    frame = values_at(range(0, 30, 3)).assign(noise=0.0)
    twice = pd.concat([frame, frame.iloc[[2]].assign(value=5.0)], ignore_index=True)
    with pytest.raises(InvalidMeasurementError, match="already known"):
        study.tell_frame(twice)
    assert study.steps == 0
    study.tell_frame(frame)
    assert study.steps == 10


def test_rows_that_were_told_before_may_end_a_table() -> None:
    study = a_study()
    suggestions = study.ask(3)
    study.tell(suggestions[2], 0.5)
    values = zip(suggestions, [0.2, 0.3, 0.5], strict=True)
    receipt = tell_all(study, [MeasurementInput(each.id, value) for each, value in values])
    assert receipt.ids == tuple(each.id for each in suggestions)
    assert receipt.version == study.version
    assert study.steps == 3
    assert tell_all(study, []).ids == ()
    assert [event.get("with_next", False) for event in told_events(study)] == [False, True, False]
    assert_same(study, reread(study))


def test_typing_mistakes_in_a_table_are_named() -> None:
    study = a_study()
    frame = values_at(range(0, 60, 3)).reset_index(drop=True)
    frame.loc[7, "value"] = 4e4
    with pytest.warns(OutlierWarning, match="40000") as found:
        study.tell_frame(frame)
    assert len(found) == 1
    study = a_study()
    study.tell_frame(values_at(range(0, 60, 3)))
    more = values_at(range(1, 30, 3)).reset_index(drop=True)
    more.loc[4, "value"] = -3.0
    with pytest.warns(OutlierWarning, match="-3 ") as found:
        study.tell_frame(more)
    assert len(found) == 1


def test_a_table_of_tiny_values_is_named_once() -> None:
    study = a_study()
    frame = values_at(range(0, 60, 2)).assign(value=lambda rows: 1e-160 * rows["value"])
    with pytest.warns(OutlierWarning) as found:
        study.tell_frame(frame)
    assert sum("30 values are below" in str(each.message) for each in found) == 1


def test_a_cold_fit_to_many_values_is_that_of_the_values_one_by_one() -> None:
    rng = np.random.default_rng(0)
    points = rng.random((400, 2))
    values = np.sin(6 * points[:, 0]) * np.cos(4 * points[:, 1]) + 0.05 * rng.standard_normal(400)
    data = _learned.FitData(points, values, None, np.ones(2), np.full(2, 0.01))
    cold = _learned.fit_ensemble("matern52", data, None, 0)
    few = _learned.fit_ensemble("matern52", data.take(np.arange(100)), None, 0)
    warm = _learned.fit_ensemble("matern52", data, few, 0)
    assert cold.lengthscales[0] == pytest.approx(warm.lengthscales[0], rel=0.05)
    assert cold.noise is not None
    assert cold.noise[0] == pytest.approx(warm.noise[0], rel=0.05)
