"""The name and unit of what is measured: stored, and in figures and sentences."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

import truvar as tv
from truvar.cli import main
from truvar.exceptions import InvalidArgumentError, InvalidMeasurementError
from truvar.report.html_report import render_html_report

GRID = tv.Domain.grid(x=np.linspace(0, 1, 9), y=np.linspace(0, 1, 6))
OXYGEN: dict[str, Any] = {"quantity": "oxygen", "unit": "mg/l"}
PROBLEM = """
name = "bay"
quantity = "oxygen"
unit = "mg/l"
[domain]
grid = {x = [0, 1, 9]}
[goal]
level_set_below = 4.0
"""


@pytest.mark.parametrize(
    ("goal", "question"),
    [
        (tv.LevelSet(below=4), "where is oxygen below 4 mg/l?"),
        (tv.LevelSet(between=(4, 6)), "where does oxygen lie between 4 and 6 mg/l?"),
        (tv.Maximize(), "where is oxygen highest?"),
        (tv.Map(0.3), "what is oxygen everywhere, within ±0.3 mg/l?"),
    ],
)
def test_the_question_is_about_the_quantity(goal: Any, question: str) -> None:
    study = tv.Study(GRID, goal, **OXYGEN)
    assert study.quantity.in_question(goal) == question
    assert question in str(study)


def test_without_a_name_nothing_changes() -> None:
    study = tv.Study(GRID, tv.Maximize())
    assert study.quantity.in_question(study.goal) == study.goal.question
    assert study.quantity.label is None
    unit = tv.Study(GRID, tv.LevelSet(4), unit="mg/l")
    assert unit.quantity.in_question(unit.goal) == "where is the value above 4 mg/l?"
    assert unit.quantity.label == "value (mg/l)"


def test_name_and_unit_are_stored(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/bay.db"
    study = tv.Study(GRID, tv.Maximize(), store=store, name="bay", **OXYGEN)
    assert tv.load(store, "bay").quantity == study.quantity
    assert tv.Study.from_json(study.to_json()).quantity == study.quantity


def test_colour_bars_and_reports_have_the_name() -> None:
    study = tv.Study(GRID, tv.LevelSet(below=0.2), kernel="rbf", noise=1e-4, **OXYGEN)
    for row in range(0, len(GRID), 7):
        point = GRID.point(row)
        study.tell(point, np.sin(3 * point["x"]) * point["y"])
    labels = [ax.get_ylabel() for ax in study.plot().axes]
    assert "oxygen (mg/l)" in labels
    assert "oxygen below 0.2 mg/l" in render_html_report(study)


def test_sentences_about_an_optimum_have_the_unit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = f"sqlite:///{tmp_path}/bay.db"
    study = tv.Study(
        GRID,
        tv.Maximize(),
        kernel=RBF(0.5),
        mean=4.0,
        noise_sd=0.1,
        store=store,
        name="bay",
        **OXYGEN,
    )
    study.tell(GRID.point(3), 5.25)
    assert "best so far  5.25 mg/l at " in str(study)
    assert " mg/l (95 %: " in study._repr_html_()
    assert study.plot()._suptitle.get_text().endswith(" mg/l")
    report = render_html_report(study)
    assert "<b>5.25 mg/l</b>" in report
    assert main(["status", store]) == 0
    lines = " ".join(capsys.readouterr().out.split())
    assert "best so far 5.25 mg/l at " in lines
    assert re.search(r"estimated value \S+ ± \S+ mg/l", lines)
    assert re.search(r"expected regret \S+ \(\S+ to \S+\) mg/l from the maximum", lines)
    assert main(["ask", store]) == 0
    lines = " ".join(capsys.readouterr().out.split())
    assert "precision ± 0.1 mg/l (one standard deviation)" in lines
    assert re.search(r"expected \S+ ± \S+ mg/l", lines)


def test_the_figures_of_a_map_are_in_plain_words_with_the_unit() -> None:
    study = tv.Study(GRID, tv.Map(0.3), kernel=RBF(0.5), mean=4.0, noise_sd=0.1, **OXYGEN)
    study.tell(GRID.point(3), 5.25)
    figure = study.plot()
    assert "standard deviation (mg/l)" in [ax.get_ylabel() for ax in figure.axes]
    title = figure._suptitle.get_text()
    assert re.search(r"expected RMSE \S+ \(\S+ to \S+\) mg/l$", title)
    report = render_html_report(study)
    assert "Standard deviation of the estimate, and the measurements" in report
    assert "osterior" not in report


def test_a_score_without_a_unit_gets_none() -> None:
    study = tv.Study(GRID, tv.LevelSet(below=4), kernel=RBF(0.5), mean=4.0, noise_sd=0.1, **OXYGEN)
    study.tell(GRID.point(3), 5.25)
    assert re.search(r"expected F1 \S+ \(\S+ to \S+\)$", study.plot()._suptitle.get_text())


@pytest.mark.parametrize("options", [{"quantity": ""}, {"unit": 3}, {"quantity": 61 * "a"}])
def test_a_name_is_a_short_text(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentError, match="must be a text of at most 60 characters"):
        tv.Study(GRID, tv.Maximize(), **options)


def test_the_value_of_another_quantity_is_refused() -> None:
    study = tv.Study(GRID, tv.Maximize(), **OXYGEN)
    with pytest.raises(InvalidMeasurementError, match="unknown quantity 'salinity'"):
        study.tell({"x": 0.0, "y": 0.0}, {"salinity": 31.0})
    assert study.steps == 0
    study.tell({"x": 0.0, "y": 0.0}, {"oxygen": 5.0})
    assert study.steps == 1


def test_problem_files_and_the_command_line_have_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bay.toml").write_text(PROBLEM)
    assert main(["new", "bay.toml"]) == 0
    assert "where is oxygen below 4 mg/l?" in capsys.readouterr().out
    assert main(["status"]) == 0
    shown = capsys.readouterr().out
    assert "where is oxygen below 4 mg/l?" in shown
    assert "WeightedTruVaR" not in shown
    Path("bay.toml").write_text(PROBLEM.replace('"mg/l"', "3"))
    with pytest.raises(tv.TruvarError, match="unit"):
        tv.load_problem("bay.toml")


def test_requests_have_it(served: Any) -> None:
    api, _ = served
    api.create("inlet", PROBLEM)
    assert api.get("/studies/inlet/status")["words"] == "where is oxygen below 4 mg/l?"
    assert tv.connect(api.url, name="inlet").quantity.label == "oxygen (mg/l)"


def test_the_quantity_of_a_goal_is_that_of_the_study() -> None:
    study = tv.Study(GRID, tv.LevelSet(4, of="oxygen"), unit="mg/l")
    assert study.quantity.in_question(study.goal) == "where is oxygen above 4 mg/l?"
    study.tell({"x": 0.0, "y": 0.0}, {"oxygen": 5.0})
    with pytest.raises(InvalidMeasurementError, match="unknown quantity 'salinity'"):
        study.tell({"x": 0.0, "y": 0.2}, {"salinity": 31.0})
    assert study.steps == 1
    with pytest.raises(
        InvalidArgumentError, match="about the quantity 'oxygen', but quantity='pH'"
    ):
        tv.Study(GRID, tv.LevelSet(4, of="oxygen"), quantity="pH")
