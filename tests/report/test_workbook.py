"""A study as an Excel workbook."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import RBF

import truvar as tv
from truvar.exceptions import InvalidArgumentError, OutputError
from truvar.report import _workbook

pytest.importorskip("openpyxl", reason="needs truvar[excel]")
LINE = tv.Domain.grid(x=np.linspace(0, 1, 11))
SHEETS = ["measurements", "suggestions", "points", "settings"]


def lab(domain=LINE, **options):
    study = tv.Study(
        domain,
        tv.LevelSet(0.5),
        kernel=RBF(0.2),
        mean=0.0,
        noise=0.01,
        quantity="yield",
        unit="%",
        **options,
    )
    for row in (0, 4, 8):
        study.tell(domain.point(row), float(np.sin(row)))
    return study


def test_sheets_have_measurements_suggestions_points_and_settings(tmp_path):
    study = lab()
    batch = study.ask(2)
    path = study.to_excel(tmp_path / "lab.xlsx")
    sheets = pd.read_excel(path, sheet_name=None)
    assert list(sheets) == SHEETS
    assert sheets["measurements"]["value"].tolist() == study.measurements["value"].tolist()
    suggestions = sheets["suggestions"]
    assert suggestions["id"].tolist() == [each.id for each in batch]
    assert suggestions["expected"].tolist() == pytest.approx(
        [study.predict_measurement(each)[0] for each in batch]
    )
    assert suggestions["why"].tolist() == [study.explain(each).why for each in batch]
    assert suggestions["value"].isna().all()
    frame = study.result().to_frame()
    np.testing.assert_allclose(sheets["points"]["mean"], frame["mean"])
    assert sheets["points"]["class"].tolist() == frame["class"].tolist()
    settings = dict(zip(sheets["settings"]["setting"], sheets["settings"]["value"], strict=True))
    assert settings["question"] == "where is yield above 0.5 %?"
    assert settings["answer"] == study.result().certificate.statement
    assert settings["model"] == "RBF(length_scale=0.2)"
    assert float(settings["measurements"]) == 3


def test_failures_have_a_sheet(tmp_path):
    study = lab()
    study.fail(study.ask(), "broken vial")
    sheets = pd.read_excel(study.to_excel(tmp_path / "lab.xlsx"), sheet_name=None)
    assert sheets["failures"]["reason"].tolist() == ["broken vial"]
    settings = dict(zip(sheets["settings"]["setting"], sheets["settings"]["value"], strict=True))
    assert float(settings["failed"]) == 1


def test_a_failure_has_its_name_and_a_column_for_each_coordinate(tmp_path):
    table = pd.DataFrame({"x": [0.0, 0.5, 1.0], "cost": [1, 1, 1], "vial": ["A", "B", "C"]})
    domain = tv.Domain.table(table, columns=["x", "cost"], label="vial")
    study = tv.Study(domain, tv.Maximize(), noise=0.01)
    study.fail(study.ask(), "broken vial")
    sheets = pd.read_excel(study.to_excel(tmp_path / "lab.xlsx"), sheet_name=None)
    failed = sheets["failures"]
    place = ["id", "index", "label", "x", "cost"]
    assert list(failed) == [*place, "level", "task", "cost_", "reason", "vehicle"]
    record = study.failures[0]
    assert failed["label"].tolist() == [record.label]
    assert failed["x"].tolist() == [record.point["x"]]


def test_values_typed_into_the_workbook_can_be_told(tmp_path):
    study = lab()
    study.ask(2)
    path = study.to_excel(tmp_path / "lab.xlsx")
    filled = pd.read_excel(path, sheet_name="suggestions").assign(value=[0.2, 0.3])
    study.tell_frame(filled[["id", "value"]])
    assert study.pending == []
    assert study.steps == 5


def test_a_new_study_labels_and_texts_are_written_safely(tmp_path):
    table = pd.DataFrame({"x": [0.0, 0.5, 1.0], "name": ["=1+1", "B", "C"]}).set_index("name")
    domain = tv.Domain.table(table, columns=["x"])
    study = tv.Study(domain, tv.Maximize(), name="=evil()")
    path = study.to_excel(tmp_path / "lab.xlsx")
    study.ask(3)
    again = pd.read_excel(study.to_excel(tmp_path / "lab.xlsx"), sheet_name=None)
    assert path.name == "lab.xlsx"
    assert "'=1+1" in again["suggestions"]["label"].tolist()
    assert again["settings"]["value"].iloc[0] == "'=evil()"
    assert len(again["measurements"]) == 0


def test_dates_with_a_zone_and_many_points(tmp_path, monkeypatch):
    monkeypatch.setattr(_workbook, "MAX_ROWS", 5)
    times = pd.date_range("2026-03-01", periods=8, tz="Europe/Zurich")
    study = tv.Study(tv.Domain.table(pd.DataFrame({"day": times})), tv.Maximize())
    sheets = pd.read_excel(study.to_excel(tmp_path / "lab.xlsx"), sheet_name=None)
    assert len(sheets["points"]) == 5
    assert sheets["points"]["day"].iloc[0].startswith("2026-03-01T00:00:00+01")
    assert "the first 5" in sheets["settings"]["value"].iloc[-1]


def test_other_files_are_refused_in_one_line(tmp_path):
    with pytest.raises(InvalidArgumentError, match=r"ends in \.xlsx or \.xlsm, got 'lab\.csv'"):
        lab().to_excel("lab.csv")
    with pytest.raises(OutputError, match="cannot be written"):
        lab().to_excel(tmp_path / "none" / "lab.xlsx")


def test_a_study_on_a_server_has_the_same_workbook(served, request, tmp_path):
    from truvar.service import Server

    api, _ = served
    local = lab()
    local.ask(2)
    remote = Server(api.url).create(local, request.node.name)
    ours = pd.read_excel(local.to_excel(tmp_path / "ours.xlsx"), sheet_name=None)
    theirs = pd.read_excel(remote.to_excel(tmp_path / "theirs.xlsx"), sheet_name=None)
    for name in SHEETS[:3]:
        pd.testing.assert_frame_equal(theirs[name], ours[name])


@pytest.mark.parametrize(
    "columns", [["value", "cost"], ["expected", "why"], ["id", "label"], ["expected_sd", "x"]]
)
def test_coordinates_with_the_names_of_other_columns_keep_their_values(columns, tmp_path):
    frame = pd.DataFrame([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]], columns=columns)
    domain = tv.Domain.table(frame.set_index(pd.Index(["A", "B", "C"])))
    study = tv.Study(domain, tv.LevelSet(0.5), kernel=RBF(0.2), mean=0.0, noise=0.01)
    empty = pd.read_excel(study.to_excel(tmp_path / "empty.xlsx"), sheet_name="suggestions")
    assert set(columns) < set(empty.columns)
    suggestion = study.ask()
    path = study.to_excel(tmp_path / "lab.xlsx")
    row = pd.read_excel(path, sheet_name="suggestions").iloc[0]
    assert {name: row[name] for name in columns} == suggestion.point
    assert row.isna().sum() == 1  # the value to fill in


def test_each_quantity_has_an_expected_value_and_an_empty_column(tmp_path):
    goal = tv.Maximize("yield", subject_to="impurity <= 1")
    study = tv.Study(LINE, goal, kernel=RBF(0.2), mean=0.0, noise=0.01)
    for row in (0, 4, 8):
        study.tell(LINE.point(row), {"yield": float(np.sin(row)), "impurity": 0.1 * row})
    suggestion = study.ask()
    path = study.to_excel(tmp_path / "lab.xlsx")
    sheet = pd.read_excel(path, sheet_name="suggestions")
    for name, (mean, sd) in study.explain(suggestion).values.items():
        assert sheet[f"expected_{name}"].tolist() == pytest.approx([mean])
        assert sheet[f"expected_sd_{name}"].tolist() == pytest.approx([sd])
    assert sheet[["yield", "impurity"]].isna().all(axis=None)
    assert not {"expected", "value"} & set(sheet)
    filled = sheet.assign(**{"yield": [0.4], "impurity": [0.2]})
    study.tell_frame(filled[["id", "yield", "impurity"]])
    assert study.pending == []
    assert study.steps == 4
