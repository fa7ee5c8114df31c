"""Labels of the user's own rows, points and values in any container, and tables of suggestions
and measurements."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.helpers.small import a_study

import truvar as tv
from truvar.exceptions import (
    InvalidArgumentError,
    InvalidMeasurementError,
    RepeatedMeasurementWarning,
)
from truvar.study.measurements_io import parse_csv, parse_workbook, tell_all
from truvar.tabular.labels import RowLabels

TIMES = pd.DatetimeIndex(pd.date_range("2026-03-01", periods=4, tz="UTC").to_list(), name="day")
INDICES = {
    "range": pd.RangeIndex(4),
    "steps": pd.RangeIndex(10, 30, 5, name="row"),
    "integers": pd.Index([7, 3, 9, 1]),
    "text": pd.Index(["a", "b", "c", "d"], name="station"),
    "floats": pd.Index([0.5, np.inf, 2.5, 3.5]),
    "times": TIMES,
    "levels": pd.MultiIndex.from_arrays([["p", "p", "q", "q"], TIMES], names=["site", "day"]),
}


def table(index: pd.Index) -> pd.DataFrame:
    return pd.DataFrame({"x": [0.0, 1.0, 2.0, 3.0], "cost": [1.0, 2.0, 3.0, 4.0]}, index=index)


def labelled_study(index: pd.Index, **settings: Any) -> tv.Study:
    return tv.Study(
        tv.Domain.table(table(index), columns=["x"]), tv.LevelSet(0.5), noise=0.01, **settings
    )


@pytest.mark.parametrize("name", INDICES)
def test_a_label_finds_the_row_of_the_users_own_table(name: str) -> None:
    frame = table(INDICES[name])
    study = labelled_study(INDICES[name])
    for suggestion in study.ask(4):
        row = frame.loc[suggestion.label]
        assert row["x"] == suggestion.point["x"]
        assert suggestion.label == frame.index[suggestion.index]
        study.tell(suggestion, suggestion.point["x"])
    pd.testing.assert_index_equal(study.result().to_frame().index, frame.index)
    assert study.result().best.label == frame.index[study.result().best.index]
    assert study.result().best_observed.label == frame.index[3]


@pytest.mark.parametrize("name", INDICES)
def test_labels_survive_storage(name: str, tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/study.db"
    study = labelled_study(INDICES[name], store=store, name="labels")
    label = study.ask().label
    copy = tv.load(store, "labels")
    assert copy.pending[0].label == label
    pd.testing.assert_index_equal(copy.domain.to_frame().index, INDICES[name], check_exact=True)
    pd.testing.assert_index_equal(
        tv.Study.from_json(study.to_json()).domain.to_frame().index, INDICES[name]
    )


def test_a_filtered_frame_is_not_shifted() -> None:
    frame = pd.DataFrame({"x": np.arange(10.0)})
    study = tv.Study(tv.Domain.table(frame[frame["x"] > 4]), tv.Maximize(), noise=0.1)
    suggestion = study.ask()
    assert frame.loc[suggestion.label, "x"] == suggestion.point["x"] == suggestion.index + 5


def test_domains_without_a_table_have_no_labels() -> None:
    study = a_study()
    assert study.ask().label is None
    assert study.domain.labels is None
    stored = tv.Study.from_json(study.to_json())
    assert stored.pending[0].label is None


def test_labels_of_any_type_are_json_values() -> None:
    assert labelled_study(INDICES["levels"]).ask().to_dict()["label"] in [
        ["p", "2026-03-01T00:00:00+00:00"]
    ] + [[site, day.isoformat()] for site, day in INDICES["levels"]]
    assert RowLabels.of(pd.period_range("2026", periods=2, freq="Y")).to_dict()["values"] == [
        "2026",
        "2027",
    ]


def test_a_column_names_the_rows() -> None:
    frame = table(INDICES["range"]).assign(station=["a", "b", "c", "d"])
    domain = tv.Domain.table(frame, columns=["x"], label="station")
    assert domain.label(2) == "c"
    with pytest.raises(
        tv.TruvarError, match="label: unknown column 'statoin'; did you mean 'station'"
    ):
        tv.Domain.table(frame, columns=["x"], label="statoin")


def test_named_rows_are_shown_in_tables_and_on_cards() -> None:
    from truvar.report.suggestion_card import describe_action

    study = labelled_study(INDICES["text"])
    suggestion = study.ask()
    study.tell(suggestion, 1.0)
    assert study.measurements["label"].tolist() == [suggestion.label]
    assert describe_action(study, suggestion).startswith(f"{suggestion.label} (x ")
    numbered = labelled_study(INDICES["range"])
    assert "label" not in numbered.measurements
    assert describe_action(numbered, numbered.ask()).startswith("x ")


# -- tell
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        np.array([0.7]),
        np.array(0.7),
        np.array([[0.7]]),
        [0.7],
        pd.Series([0.7]),
        {"algae": 0.7},
        np.float64(0.7),
    ],
)
def test_a_value_may_come_in_any_container_of_one_number(value: Any) -> None:
    study = a_study()
    study.tell(study.ask(), value)
    assert study.measurements["value"].tolist() == [0.7]


@pytest.mark.parametrize(
    "value", [np.array([0.7, 0.8]), [], {"a": 1.0, "b": 2.0}, pd.Series([1.0, 2.0])]
)
def test_several_values_are_refused(value: Any) -> None:
    study = a_study()
    with pytest.raises(InvalidMeasurementError, match="must be a number, got"):
        study.tell(study.ask(), value)
    assert study.steps == 0


def test_a_point_may_be_a_series_a_row_of_the_table_or_an_array() -> None:
    frame = table(INDICES["text"])
    study = labelled_study(INDICES["text"])
    study.tell(frame.loc["b"], 1.0)  # with the column cost, which is not a coordinate
    study.tell(pd.Series({"x": 2.0}), 1.5)
    study.tell(np.array([3.0]), 2.0)
    study.tell(frame.loc[["a"]], 2.5)
    assert study.measurements["x"].tolist() == [1.0, 2.0, 3.0, 0.0]
    with pytest.raises(InvalidArgumentError, match="a point as an array must have 1 coordinates"):
        study.tell(np.array([3.0, 1.0]), 2.0)
    with pytest.raises(InvalidArgumentError, match="must have one row, got 4"):
        study.tell(frame, 2.0)
    with pytest.raises(InvalidArgumentError, match="unknown column 'depth'"):
        study.tell(pd.Series({"x": 2.0, "depth": 1.0}), 1.5)


# -- tables of measurements
# --------------------------------------------------------------------------------------------


def test_a_table_of_suggestions_comes_back_as_measurements() -> None:
    study = labelled_study(INDICES["text"])
    todo = study.ask_frame(3)
    assert list(todo.columns) == ["id", "x", "cost"]
    assert todo.index.isin(INDICES["text"]).all()
    ids = study.tell_frame(todo.assign(value=[1.0, None, 2.0]))
    assert ids == [todo["id"].iloc[0], todo["id"].iloc[2]]
    assert [pending.id for pending in study.pending] == [todo["id"].iloc[1]]
    assert study.measurements["value"].tolist() == [1.0, 2.0]
    # The noise was not given with the values, so that a fit may change it.
    assert "noise_told" in study.events["details"].iloc[-1]
    assert not study.events["details"].iloc[-1]["noise_told"]


def test_points_with_noise_task_and_a_value_column_of_any_name() -> None:
    study = a_study(noise=0.1)
    frame = pd.DataFrame({"x": [0.0, 0.5], "algae": [1.0, 2.0], "noise": [0.2, None]})
    study.tell_frame(frame, value="algae")
    assert study.measurements["noise"].tolist() == [0.2, 0.1]
    assert study.measurements["value"].tolist() == [1.0, 2.0]


def test_a_table_told_twice_is_noticed_and_not_doubled() -> None:
    study = a_study()
    frame = pd.DataFrame(
        {"x": [0.0, 0.5, 0.5], "value": [1.0, 2.0, 2.0]}
    )  # the second row is repeated on purpose
    assert len(study.tell_frame(frame)) == 3
    with pytest.warns(
        RepeatedMeasurementWarning, match=r"3 of 3 rows .* left out \(rows 0, 1, 2\)"
    ):
        assert study.tell_frame(frame) == []
    more = pd.concat([frame, pd.DataFrame({"x": [1.0], "value": [3.0]})])
    with pytest.warns(RepeatedMeasurementWarning):
        assert len(study.tell_frame(more)) == 1
    assert study.steps == 4
    study.tell_frame(frame, again=True)
    assert study.steps == 7


def test_a_refused_row_leaves_everything_as_it_was() -> None:
    study = a_study()
    frame = pd.DataFrame({"x": [0.0, 7.0], "value": [1.0, 2.0]})
    with pytest.raises(tv.TruvarError, match=r"row 1: .* is not in the domain"):
        study.tell_frame(frame)
    assert study.steps == 0
    with pytest.raises(
        InvalidMeasurementError, match="unknown column 'valeu'; did you mean 'value'"
    ):
        study.tell_frame(frame.rename(columns={"value": "valeu"}))


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_tables_of_other_libraries_are_told(library: str) -> None:
    module = pytest.importorskip(library)
    pytest.importorskip("narwhals", reason="needs truvar[frames]")
    make = module.DataFrame if library == "polars" else module.table
    study = a_study()
    study.tell_frame(make({"x": [0.0, 0.5, 1.0], "value": [1.0, None, 3.0]}))
    assert study.measurements["value"].tolist() == [1.0, 3.0]


def test_a_file_of_measurements_with_semicolons_units_and_gaps() -> None:
    study = a_study()
    text = "\ufeffx (km);Value [mg/l];noise;\n0;1,5;0,25;\n0,5;;;\n1;1.234,5;;\n"
    measurements = parse_csv(text, study)
    assert [(each.what, each.value, each.source) for each in measurements] == [
        ({"x": 0.0}, 1.5, "line 2"),
        ({"x": 1.0}, 1234.5, "line 4"),
    ]
    assert measurements[0].options["noise"] == 0.25
    assert tell_all(study, measurements).ids == (1, 2)


def test_a_workbook_of_measurements(tmp_path: Path) -> None:
    pytest.importorskip("openpyxl", reason="needs truvar[excel]")
    study = a_study()
    pd.DataFrame({"x": [0.0, 0.5], "value": [1.0, 2.5]}).to_excel(tmp_path / "m.xlsx", index=False)
    assert [each.value for each in parse_workbook(tmp_path / "m.xlsx", study)] == [1.0, 2.5]
    study.tell_frame(str(tmp_path / "m.xlsx"))
    assert study.steps == 2


def test_an_exported_file_that_is_told_again_is_noticed(tmp_path: Path) -> None:
    study = tv.Study(tv.Domain.grid(x=np.linspace(0, 1, 9)), tv.Maximize())  # its noise is learned
    for _ in range(5):
        suggestion = study.ask()
        study.tell(suggestion, suggestion.point["x"])
    path = tmp_path / "m.csv"
    study.measurements.to_csv(path, index=False)
    with pytest.warns(RepeatedMeasurementWarning):
        assert study.tell_frame(path) == []
    assert study.steps == 5
    changed = study.measurements.assign(cost=3.0)
    with pytest.raises(tv.TruvarError, match="already has the value"):
        study.tell_frame(changed)


def filtered_study() -> tuple[tv.Study, pd.DataFrame]:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        rng.uniform(size=(20, 2)), columns=["x", "y"], index=pd.Index(range(100, 120), name="site")
    )
    kept = frame[frame["x"] > 0.3]
    return tv.Study(tv.Domain.table(kept), tv.LevelSet(0.5), noise=1e-3), kept


@pytest.mark.parametrize("form", ["index", "label", "site", "decimal"])
def test_measurements_are_told_by_the_labels_of_the_rows(form: str) -> None:
    study, kept = filtered_study()
    sites = kept.index[[4, 1]]
    table = pd.DataFrame({"value": [0.4, 0.6]}, index=sites)
    if form != "index":
        name = "label" if form == "decimal" else form
        table = pd.DataFrame(
            {name: sites.astype(float if form == "decimal" else int), "value": [0.4, 0.6]}
        )
    study.tell_frame(table)
    told = study.measurements
    assert told["label"].tolist() == sites.tolist()
    assert told["x"].tolist() == kept.loc[sites, "x"].tolist()


def test_labels_in_a_file_and_labels_that_do_not_exist(tmp_path: Path) -> None:
    study, kept = filtered_study()
    path = tmp_path / "values.csv"
    path.write_text(f"site;value\n{kept.index[2]};0,5\n")
    study.tell_frame(path)
    assert study.measurements["label"].tolist() == [kept.index[2]]
    with pytest.raises(InvalidMeasurementError, match="row 0: unknown label '7'"):
        study.tell_frame(pd.DataFrame({"site": [7], "value": [0.5]}))
    with pytest.raises(InvalidMeasurementError, match="expected a column 'id' or all coordinates"):
        study.tell_frame(pd.DataFrame({"value": [0.5, 0.6]}))  # rows numbered from 0 say nothing
    assert study.steps == 1
