"""A domain that grows during a study: replay, statements, and everything that is kept."""

import json
import subprocess
import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from tests.helpers.problems import GRID, KINDS, KNOWN, TABLE, answer, assert_same, truth

import truvar as tv
from truvar.exceptions import InvalidArgumentError, InvalidDomainError, TruvarError
from truvar.storage.memory import InMemoryEventLog

# These have a number for every point, or a place for every row, which further rows lack.
REFUSED = {
    "travel matrix": "TravelMatrix has no place",
    "places with noise levels": "the variance of noise level 2",
    "table with arrays": "'noise' is missing",
}
GROWING = [kind for kind in KINDS if kind not in REFUSED and kind != "box in three dimensions"]


def reread(study: tv.Study) -> tv.Study:
    return tv.Study.from_json(study.to_json())


def more_rows(count: int = 5, seed: int = 1) -> pd.DataFrame:
    """Further rows of TABLE."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "x": rng.random(count) + 1,
            "y": rng.random(count),
            "variance": rng.uniform(0.001, 0.05, count),
            "hours": rng.uniform(1, 3, count),
            "site": "buoy 0",
        }
    )


def further(domain: tv.Domain) -> Any:
    """Return further points of a domain."""
    if domain.continuous:
        return {"x": (-0.5, 1.5)}
    return {"x": [-0.25, 1.1, 1.2]} if domain.axes is not None else more_rows()


def measured(study: tv.Study, count: int) -> tv.Study:
    for _ in range(count):
        suggestion = study.ask()
        study.tell(suggestion, answer(suggestion))
    return study


def told_frame(study: tv.Study) -> pd.DataFrame:
    """Return the measurements as a table that `tell_frame` takes."""
    return study.measurements[[*study.domain.columns, "value"]]


# -- replay
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", GROWING)
def test_a_study_reopened_after_every_step_equals_one_that_was_never_closed(kind: str) -> None:
    whole = KINDS[kind].study()
    measured(whole, 3)
    pending = whole.ask(2)
    whole.extend(further(whole.domain), reason="the boat can go further")
    assert len(whole.domain) > len(KINDS[kind].domain) or whole.domain.continuous
    broken = reread(whole)
    assert_same(whole, broken)
    for change in (
        lambda study: study.tell(pending[1].id, answer(pending[1])),
        lambda study: study.correct(1, 0.4),  # before the extension
        lambda study: study.tell(pending[0].id, answer(pending[0])),
        lambda study: study.withdraw(2),  # before the extension
        lambda study: study.withdraw(pending[1].id),  # after it
    ):
        change(whole)
        broken = reread(broken)
        change(broken)
        assert_same(whole, broken)
    assert whole.ask() == broken.ask()
    assert_same(whole, reread(broken))


@pytest.mark.parametrize("kind", ["learned kernel and noise", "table with columns", "box"])
def test_a_stored_study_is_extended_in_one_process_and_goes_on_in_another(kind, tmp_path) -> None:
    url = f"sqlite:///{tmp_path / 's.db'}"
    here = measured(KINDS[kind].study(store=url, name="s"), 6)
    memory = measured(KINDS[kind].study(), 6)
    for study in (here, memory):
        study.extend(further(study.domain))
    program = (
        "import sys, json, truvar as tv; study = tv.load(sys.argv[1], 's');"
        "print(json.dumps([study.result().mean.tolist(), study.ask().point, len(study.domain)]))"
    )
    output = subprocess.run(
        [sys.executable, "-c", program, url], capture_output=True, text=True, check=True
    )
    mean, point, count = json.loads(output.stdout)
    assert mean == here.result().mean.tolist() == memory.result().mean.tolist()
    assert point == memory.ask().point
    assert count == len(memory.domain)


def test_two_workers_on_one_store_see_the_extension_of_the_other(tmp_path) -> None:
    url = f"sqlite:///{tmp_path / 's.db'}"
    one = measured(tv.Study(TABLE, tv.Maximize(), **KNOWN, store=url, name="s"), 2)
    other = tv.load(url, "s")
    waiting = other.ask()
    one.extend(more_rows())
    other.tell(waiting, answer(waiting))
    assert len(other.domain) == 45
    one.refresh()
    assert_same(one, other)
    with pytest.raises(InvalidDomainError, match=r"is in the domain already \(index 40\)"):
        other.extend(more_rows())
    other.extend(more_rows(3, seed=2))
    assert_same(other, tv.load(url, "s"))
    assert one.ask().id == waiting.id + 1
    assert len(one.domain) == 48


def test_a_copy_of_an_extended_study_shares_nothing_that_changes() -> None:
    study = measured(tv.Study(GRID, tv.LevelSet(0.6), **KNOWN), 3)
    study.extend(x=[1.5])
    event_log = InMemoryEventLog(study._session.event_log.since(0))
    other = tv.Study.from_event_log(event_log, None, source=study)
    assert_same(study, other)
    other.extend(x=[1.75])
    measured(other, 1)
    assert (len(study.domain), len(other.domain)) == (70, 77)
    assert_same(study, reread(study))
    assert_same(other, reread(other))


def test_an_extension_within_a_failed_transaction_leaves_no_trace() -> None:
    study = measured(tv.Study(TABLE, tv.LevelSet(0.6), kernel="rbf", seed=3), 6)
    before = reread(study)

    def extend_in_vain() -> None:
        with study.transaction():
            study.extend(more_rows())
            measured(study, 1)
            raise KeyError("interrupted")

    with pytest.raises(KeyError, match="interrupted"):
        extend_in_vain()
    assert len(study.domain) == 40
    assert_same(study, before)
    assert study.ask() == before.ask()


# -- statements
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["level set with travel", "box", "mean from a column", "theorem"])
def test_statements_are_those_of_a_study_that_had_the_domain_from_the_beginning(kind) -> None:
    study = measured(KINDS[kind].study(), 5)
    study.extend(further(study.domain))
    fresh = tv.Study(study.domain, KINDS[kind].goal, **KINDS[kind].options)
    fresh.tell_frame(told_frame(study))
    grown = study.result()
    new = fresh.result()
    for name in ("potential", "above", "below", "mean", "sd", "lower", "upper", "probability"):
        assert np.allclose(getattr(grown, name), getattr(new, name), rtol=1e-9, atol=1e-12), name
    assert str(grown.certificate) == str(new.certificate)
    assert study.epoch == fresh.epoch


def test_a_learned_model_is_fitted_to_the_larger_domain() -> None:
    study = measured(tv.Study(GRID, tv.LevelSet(0.6), seed=1), 12)
    narrow = study.kernel
    study.extend(x=np.linspace(1, 6, 41).tolist())
    fresh = tv.Study(study.domain, tv.LevelSet(0.6), seed=1)
    fresh.tell_frame(told_frame(study))
    assert study.kernel == fresh.kernel != narrow
    assert np.allclose(study.result().mean, fresh.result().mean, rtol=1e-9)
    stored = [event for event in study._session.event_log.since(0) if event.kind == "extended"]
    assert list(stored[0].details["models"]) == ["extension 1: 12"]


def test_points_that_are_far_away_are_undecided_and_get_suggested() -> None:
    study = tv.Study(
        tv.Domain.grid(x=np.linspace(0, 1, 11)),
        tv.LevelSet(0.45),
        kernel=ConstantKernel(1.0) * RBF(0.3),
        mean=0.0,
        noise=1e-4,
    )
    study.run(lambda point: point["x"], steps=12)
    assert study.result().classify().undecided.sum() <= 1
    study.extend(x=np.linspace(1.1, 3, 20))
    classes = study.result().classify()
    assert len(classes.undecided) == 31
    assert classes.undecided[-5:].all()
    assert study.finished is None
    assert study.ask().point["x"] > 1
    assert "31 points" in str(study.result().certificate)


@pytest.mark.parametrize("shuffle", range(3))
def test_the_order_of_further_rows_changes_nothing_but_their_order(shuffle) -> None:
    order = np.random.default_rng(shuffle).permutation(5)
    goal = tv.LevelSet(0.6)
    plain = measured(tv.Study(TABLE, goal, **KNOWN), 6)
    mixed = measured(tv.Study(TABLE, goal, **KNOWN), 6)
    plain.extend(more_rows())
    mixed.extend(more_rows().iloc[order].reset_index(drop=True))
    rows = np.concatenate([np.arange(40), 40 + order])
    one = plain.result()
    other = mixed.result()
    for name in ("mean", "sd", "lower", "upper", "probability", "potential", "above", "below"):
        assert np.allclose(getattr(one, name)[rows], getattr(other, name), rtol=1e-9), name
    assert plain.ask().point == mixed.ask().point


@pytest.mark.parametrize("factor", [2.0**-20, 2.0**10])
def test_units_of_values_and_coordinates_do_not_matter(factor) -> None:
    def study(scale: float, unit: float) -> tv.Study:
        found = tv.Study(
            tv.Domain.grid(x=unit * np.linspace(0, 1, 9)),
            tv.LevelSet(0.6 * scale),
            kernel=ConstantKernel(scale**2) * RBF(0.3 * unit),
            mean=0.0,
            noise=0.01 * scale**2,
        )
        for x in (0.0, 0.5, 1.0):
            found.tell({"x": unit * x}, scale * x)
        found.extend(x=[unit * 1.125, unit * 1.25])
        found.tell({"x": unit * 1.25}, scale * 0.2)
        return found

    here = study(1.0, 1.0).result()
    there = study(factor, factor).result()
    assert np.allclose(there.mean, factor * here.mean, rtol=1e-9)
    assert np.allclose(there.sd, factor * here.sd, rtol=1e-9)
    assert np.allclose(there.probability, here.probability, rtol=1e-9)
    assert np.array_equal(there.potential, here.potential)


# -- what is kept
# --------------------------------------------------------------------------------------------------


def test_rows_of_a_table_keep_their_indices_and_labels() -> None:
    frame = pd.DataFrame({"x": [0.1, 0.2, 0.3]}, index=["a", "b", "c"])
    study = tv.Study(tv.Domain.table(frame), tv.Maximize(), **{**KNOWN, "kernel": RBF(0.2)})
    study.tell({"x": 0.2}, 1.0)
    pending = study.ask()
    study.extend(pd.DataFrame({"x": [0.9, 0.8]}, index=["d", "e"]))
    assert [study.domain.label(row) for row in range(5)] == ["a", "b", "c", "d", "e"]
    assert study.measurements["index"].tolist() == [1]
    assert study.pending == [pending]
    assert study.domain.to_frame().loc["e", "x"] == 0.8
    assert study.result().to_frame().index.tolist() == ["a", "b", "c", "d", "e"]
    study.tell({"x": 0.9}, 2.0)
    assert study.result().best_observed.label == "d"
    assert_same(study, reread(study))
    assert reread(study).domain.label(4) == "e"


def test_rows_that_are_only_numbered_are_numbered_on() -> None:
    study = tv.Study(TABLE, tv.Maximize(), **KNOWN)
    study.extend(more_rows())
    assert study.domain.label(44) == 44
    assert not study.domain.has_row_names


def test_points_of_a_grid_keep_their_measurements_exclusions_and_failures() -> None:
    study = tv.Study(GRID, tv.LevelSet(0.6), **KNOWN)
    study.tell({"x": 0.5, "y": 1.0}, 0.9)
    failed = study.fail({"x": 1.0, "y": 2.0}, reason="weed")
    mask = GRID.points[:, 1] == 0
    study.exclude(mask, reason="shallow")
    pending = study.ask()
    study.extend(y=[-1.0, 2.5], x=[-0.5])
    domain = study.domain
    assert domain.shape == (10, 9)
    assert domain.axes[1].tolist()[0] == -1.0
    excluded = study.result().excluded
    failure = (domain.points == [1.0, 2.0]).all(axis=1)
    assert np.array_equal(
        excluded, failure | ((domain.points[:, 1] == 0) & (domain.points[:, 0] >= 0))
    )
    for record in (study.measurement_records()[0], study.failures[0], study.pending[0]):
        assert domain.point(record.index) == record.point
    assert study.pending[0].point == pending.point
    study.tell_repeats(1, [0.91, 0.92])
    assert study.measurements["index"].nunique() == 1
    study.allow(failed)
    assert not study.result().excluded[failure].any()
    assert_same(study, reread(study))


def test_a_value_between_the_points_of_a_grid_becomes_one_of_its_points() -> None:
    study = tv.Study(GRID, tv.LevelSet(0.6), **KNOWN, repeats=False)
    study.tell({"x": 0.3, "y": 1.0}, 0.9)
    assert study.measurement_records()[0].index is None
    study.extend(x=[0.3])
    index = study.measurement_records()[0].index
    assert study.domain.point(index) == {"x": 0.3, "y": 1.0}
    closed = study.candidates().feasibility
    assert closed[index] == 0


def test_an_expired_suggestion_can_be_told_after_an_extension(monkeypatch) -> None:
    from datetime import timedelta

    from truvar.storage.base import now
    from truvar.study import _handlers

    study = tv.Study(GRID, tv.LevelSet(0.6), **KNOWN)
    late = study.ask(1, lease=60)[0]
    study.extend(x=[-0.5])
    monkeypatch.setattr(_handlers, "now", lambda: now() + timedelta(minutes=5))
    study.ask()
    study.tell(late.id, 0.5)
    record = study.measurement_records()[0]
    assert study.domain.point(record.index) == record.point == late.point
    assert_same(study, reread(study))


def test_arrays_go_on_with_columns_of_their_names() -> None:
    study = measured(KINDS["table with arrays"].study(), 3)
    rows = more_rows().assign(noise=0.5, cost=[3.0, 4.0, 5.0, 6.0, 7.0])
    study.extend(rows)
    table = study.candidates()
    assert table.noise[40:, 0].tolist() == [0.5] * 5
    assert table.cost[:, 0].tolist() == [*np.linspace(1, 2, 40).tolist(), 3.0, 4.0, 5.0, 6.0, 7.0]
    assert "cost" not in study.domain.frame.columns
    assert_same(study, reread(study))


def test_a_map_takes_the_weights_of_further_rows() -> None:
    goal = tv.Map(accuracy=0.3, weight=np.ones(40))
    study = measured(tv.Study(TABLE, goal, **KNOWN), 3)
    with pytest.raises(InvalidDomainError, match="'weight' is missing"):
        study.extend(more_rows())
    study.extend(more_rows().assign(weight=[0.0, 0.0, 0.0, 0.0, 5.0]))
    assert study.goal.weight == (*[1.0] * 40, 0.0, 0.0, 0.0, 0.0, 5.0)
    assert_same(study, reread(study))


def test_several_quantities_outcomes_contexts_and_learned_costs_grow() -> None:
    parts = tv.AllOf(tv.LevelSet(0.6, of="a"), tv.LevelSet(below=1.0, of="b"))
    several = tv.Study(GRID, parts, noise=0.01, seed=2)
    yes_no = tv.Study(GRID, tv.LevelSet(0.5), outcome="binary", seed=2)
    learned = tv.Study(GRID, tv.Maximize(), cost="learned", seed=2)
    for k in range(8):
        point = GRID.point(8 * k)
        values = {"a": truth(point), "b": point["y"] + point["x"]}
        several.tell(point, values if k != 3 else {"a": truth(point)})
        asked = yes_no.ask()
        yes_no.tell(asked, float(truth(asked.point) > 0.8))
        asked = learned.ask()
        learned.tell(asked, truth(asked.point), cost=1 + asked.point["x"])
    waiting = several.ask()
    for study in (several, yes_no, learned):
        study.extend(x=[1.1, 1.2])
        assert len(study.result().mean) == 77
        assert_same(study, reread(study))
    several.tell(waiting, {"a": 0.5, "b": 0.2})
    several.withdraw(2)
    assert_same(several, reread(several))
    given = GRID.with_context(["y"])
    study = tv.Study(given, tv.Maximize(), **KNOWN)
    study.tell(study.ask(context={"y": 1.0}), 0.4)
    study.extend(y=[2.5])
    assert study.domain.context == ("y",)
    assert study.ask(context={"y": 2.5}).point["y"] == 2.5
    assert_same(study, reread(study))


def test_a_model_fitted_to_another_data_set_stays() -> None:
    study = tv.Study(TABLE, tv.LevelSet(0.6))
    frame = TABLE.frame.assign(value=[truth(TABLE.point(k)) for k in range(40)])
    model = study.fit(frame[["x", "y", "value"]], "value")
    measured(study, 2)
    study.extend(more_rows())
    assert str(study.kernel) == str(model.kernel)
    assert_same(study, reread(study))


def test_conclusions_and_past_scores_follow_the_domain_of_their_time() -> None:
    from truvar.study.convergence import past_scores, score_source

    study = measured(tv.Study(GRID, tv.LevelSet(0.6), **KNOWN), 6)
    config, snapshot, _ = score_source(study, study.result())
    before = list(past_scores(config, snapshot, [6]))
    study.extend(x=[3.0, 4.0, 5.0])
    measured(study, 1)
    config, snapshot, present = score_source(study, study.result())
    past = list(past_scores(config, snapshot, [6, 7]))
    assert past[0] == before[0]
    assert past[1].score.mean == present.score.mean == study.result().expected_f1.mean
    assert study.history["n_potential"].tolist()[-1] > 63 - 40
    assert study.plot() is not None


# -- parameters
# --------------------------------------------------------------------------------------------------


def mixed() -> tv.Domain:
    return tv.Domain.table(
        pd.DataFrame(
            {
                "rate": [0.001, 0.01, 0.1, 1.0],
                "depth": [1, 2, 3, 4],
                "solver": ["lbfgs", "saga", "lbfgs", "saga"],
                "day": pd.to_datetime(["2026-05-01", "2026-05-02", "2026-05-03", "2026-05-04"]),
                "shrink": [True, False, True, False],
            }
        ),
        log=["rate"],
    )


def test_columns_of_every_type_take_further_values(tmp_path) -> None:
    more = pd.DataFrame(
        {
            "rate": [10.0, 1e-4],
            "depth": [9, 0],
            "solver": ["newton", "saga"],
            "day": pd.to_datetime(["2026-06-01", "2026-04-01"]),
            "shrink": [True, True],
        }
    )
    study = tv.Study(mixed(), tv.Maximize(), store=f"sqlite:///{tmp_path / 's.db'}", name="s")
    for k in range(4):
        study.tell(mixed().point(k), 0.1 * k)
    points = [study.domain.point(k) for k in range(4)]
    study.extend(more)
    assert [study.domain.point(k) for k in range(4)] == points
    assert study.domain.point(4) == {
        "rate": 10.0,
        "depth": 9,
        "solver": "newton",
        "day": "2026-06-01",
        "shrink": True,
    }
    again = tv.load(f"sqlite:///{tmp_path / 's.db'}", "s")
    assert_same(study, again)
    assert np.array_equal(study.domain.points, again.domain.points)
    assert study.domain.parameters == again.domain.parameters
    study.tell(study.domain.point(4), 2.0)
    assert study.result().best_observed.index == 4


def test_sides_of_a_box_keep_their_scales() -> None:
    domain = tv.Domain.box(
        lr=tv.Log(1e-3, 1e-1), depth=tv.Integer(1, 8), solver=["a", "b"], representers=64
    )
    study = tv.Study(domain, tv.Minimize(), seed=1)
    for _ in range(3):
        asked = study.ask()
        study.tell(asked, asked.point["lr"])
    study.extend(lr=(1e-4, 1e-1), depth=tv.Integer(1, 12), solver=["c"])
    assert [each.describe() for each in study.domain.parameters] == [
        "0.0001 to 0.1 on a log scale",
        "whole numbers 1 to 12",
        "a, b, c",
    ]
    assert {study.domain.point(k)["solver"] for k in range(len(study.domain))} == {"a", "b", "c"}
    study.tell({"lr": 2e-4, "depth": 12, "solver": "c"}, 2e-4)
    assert_same(study, reread(study))


def test_a_wider_box_has_the_representers_of_a_new_one_and_its_constraints() -> None:
    study = tv.Study(tv.Domain.box(x=(0, 1), y=(0, 2), representers=64), tv.Minimize(), **KNOWN)
    study.extend({"x": (0, 2)})
    new = tv.Domain.box(x=(0, 2), y=(0, 2), representers=64)
    assert np.array_equal(study.domain.points, new.points)
    bounded = tv.Domain.box(x=(0, 1), y=(0, 2), representers=64, constraints="x + y <= 2")
    study = tv.Study(bounded, tv.Minimize(), **KNOWN)
    study.extend(x=(0, 4))
    assert study.domain.points[:, 0].max() > 1.5
    assert (study.domain.points.sum(axis=1) <= 2).all()


def test_axes_in_descending_order_stay_so_and_known_values_are_left_out() -> None:
    study = tv.Study(tv.Domain.grid(x=[3.0, 2.0, 1.0]), tv.Maximize())
    study.extend(x=[3.0, 2.5, 1.0, 0.5])
    assert study.domain.axes[0].tolist() == [3.0, 2.5, 2.0, 1.0, 0.5]


# -- bad input
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "message"), REFUSED.items())
def test_what_further_rows_lack_is_named(kind: str, message: str) -> None:
    study = measured(KINDS[kind].study(), 2)
    before = reread(study)
    with pytest.raises(TruvarError, match=message):
        study.extend(more_rows())
    assert_same(study, before)
    assert study.version == before.version


BAD_ROWS = {
    "an extension needs the columns .*, but 'hours' is missing; add it": lambda rows: rows.drop(
        columns="hours"
    ),
    "the extension has an unknown column 'depth'": lambda rows: rows.assign(depth=1.0),
    "row 4 of the extension, .* is in the domain already .index 7": lambda rows: pd.concat(
        [rows.iloc[:4], TABLE.frame.iloc[[7]]]
    ),
    "rows 0 and 5 are both": lambda rows: pd.concat([rows, rows.iloc[[0]]], ignore_index=True),
    "got no rows": lambda rows: rows.iloc[:0],
    "every coordinate must be a finite number, got nan in row 1": lambda rows: rows.assign(
        x=[1.0, np.nan, 1.2, 1.3, 1.4]
    ),
    "column 'x' must contain numbers": lambda rows: rows.assign(x=list("abcde")),
    "extend needs a table of further rows": lambda rows: None,
    "there is no file": lambda rows: "nowhere.csv",
}


@pytest.mark.parametrize("message", BAD_ROWS)
def test_rows_that_cannot_be_added_get_one_message_and_change_nothing(message: str) -> None:
    study = measured(tv.Study(TABLE, tv.LevelSet(0.6), **KNOWN), 2)
    before = reread(study)
    with pytest.raises(TruvarError, match=message) as raised:
        study.extend(BAD_ROWS[message](more_rows()))
    assert "\n" not in str(raised.value)
    assert study.version == before.version
    assert_same(study, before)


@pytest.mark.parametrize(
    ("domain", "values", "message"),
    [
        (GRID, {"x": [0.0, 1.0]}, "the grid has all these values of 'x' already"),
        (GRID, {"z": [0.0]}, "unknown column 'z'"),
        (GRID, {"x": []}, "axis 'x' needs further values, got none"),
        (GRID, {"x": ["far"]}, "column 'x' of the extension must contain numbers, got 'far'"),
        (GRID, {"x": [np.inf]}, "must be a finite number"),
        (GRID, more_rows(), "a grid is extended by values of its columns, got a table"),
        (
            tv.Domain.box(x=(0, 1), representers=16),
            {"x": (0.2, 2)},
            "interval 'x' must contain the present one, 0 to 1, got 0.2 to 2",
        ),
        (tv.Domain.box(x=(0, 1), representers=16), {"x": (0, 1)}, "has these sides already"),
        (tv.Domain.box(x=(0, 1), representers=16), {"x": 2}, "must be a pair"),
        (tv.Domain.box(x=(0, 1), representers=16), {"x": (0, 1, 2)}, "must be a pair"),
        (tv.Domain.box(x=(0, 1), representers=16), {"x": (2, 0)}, "low < high, got 2 and 0; swap"),
        (tv.Domain.box(x=(0, 1), representers=16), more_rows(), "a box is extended by values"),
        (
            tv.Domain.box(x=tv.Range(0, 1, step=0.1), y=(0, 1), representers=16),
            {"x": (0, 1.25)},
            "lie 0.1 apart, counted from 0, got 1.25; give 1.2",
        ),
        (
            tv.Domain.grid(x=[1.0, 2.0], solver=["a", "b"]),
            {"solver": [3.0]},
            "column 'solver' of the extension must contain text, got 3.0",
        ),
    ],
)
def test_values_that_cannot_be_added_get_one_message_and_change_nothing(
    domain, values, message
) -> None:
    study = tv.Study(domain, tv.Maximize())
    with pytest.raises(TruvarError, match=message) as raised:
        study.extend(values)
    assert "\n" not in str(raised.value)
    assert study.version == 1
    assert study.domain is domain


def test_a_table_and_values_by_column_are_not_taken_together() -> None:
    study = tv.Study(TABLE, tv.Maximize())
    with pytest.raises(InvalidArgumentError, match="got both"):
        study.extend(more_rows(), x=[1.0])


def test_arrays_over_a_grid_and_other_kinds_of_domains_are_refused() -> None:
    study = tv.Study(GRID, tv.Maximize(), **{**KNOWN, "noise": np.full(63, 0.1)})
    with pytest.raises(InvalidDomainError, match="noise has a value for every point of the grid"):
        study.extend(x=[2.0])
    xarray = pytest.importorskip("xarray")
    data = xarray.DataArray(np.ones((2, 3)), coords={"x": [0.0, 1.0], "y": [0.0, 1.0, 2.0]})
    study = tv.Study(tv.Domain.from_xarray(data.rename("depth")), tv.Maximize())
    with pytest.raises(InvalidDomainError, match="as from xarray, cannot be extended"):
        study.extend(x=[2.0])


def test_rows_of_a_constrained_grid_must_satisfy_its_constraint() -> None:
    axis = np.linspace(0, 1, 5)
    domain = tv.Domain.grid(x=axis, y=axis, constraints="x + y <= 1")
    study = tv.Study(domain, tv.Maximize())
    with pytest.raises(InvalidDomainError, match=r"row 1 of the extension, .*0.9.*, does not"):
        study.extend({"x": [0.1, 0.9], "y": [0.1, 0.9]})
    study.extend({"x": [0.1], "y": [0.1]})
    assert study.domain.point(len(domain)) == {"x": 0.1, "y": 0.1}
    assert_same(study, reread(study))


def test_an_earlier_event_log_without_extensions_has_the_keys_of_its_fits_unchanged() -> None:
    study = measured(tv.Study(GRID, tv.LevelSet(0.6), seed=1), 7)
    keys = [
        key
        for event in study._session.event_log.since(0)
        for key in event.details.get("models", {})
    ]
    assert keys
    assert all(key.isdecimal() for key in keys)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"n": (1, 9.5)}, "column 'n' of the extension must be a whole number, got 9.5"),
        ({"x": (0, float("inf"))}, "column 'x' of the extension must be a finite number"),
        ({"kind": []}, "side 'kind' needs further values, got none"),
    ],
)
def test_a_side_that_cannot_be_used_is_that_of_the_extension(values: Any, message: str) -> None:
    box = tv.Domain.box(
        x=(0, 1), n=tv.Integer(1, 5), kind=tv.Categorical(["a", "b"]), representers=50
    )
    study = tv.Study(box, tv.Maximize())
    with pytest.raises(InvalidDomainError, match=message):
        study.extend(**values)
    assert len(study.domain) == len(box)
