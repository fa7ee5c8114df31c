"""Reports of a study of the points below a threshold: words, order, letters and colours are about these points."""

from __future__ import annotations

import io
import re

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

import truvar as tv
from truvar.inference.certificate_text import further_sentences
from truvar.report import style
from truvar.report._plot_data import PlotData
from truvar.report._text_map import text_map
from truvar.report.html_report import write_html_report
from truvar.report.progress import Progress
from truvar.report.status import status_text
from truvar.report.tell_summary import tell_summary
from truvar.report.terminal import TerminalStyle
from truvar.service import serializers

DOMAIN = tv.Domain.grid(x_m=np.linspace(0, 4, 9), y_m=np.linspace(-2, 0, 5))


@pytest.fixture
def study() -> tv.Study:
    found = tv.Study(DOMAIN, tv.LevelSet(below=0.0), kernel=RBF(0.5), mean=0.0, noise=1e-4)
    found.tell({"x_m": 0.0, "y_m": 0.0}, 3.0)
    found.tell({"x_m": 4.0, "y_m": -2.0}, -3.0)
    return found


def test_the_status_asks_for_the_points_below(study: tv.Study) -> None:
    text = " ".join(status_text(study, TerminalStyle(80)).split())
    assert text.startswith("study: where is the value below 0?")
    assert re.search(r"points below 0: \d+; undecided: \d+; above 0: \d+", text)
    assert tv.LevelSet(0.0).question == "where is the value above 0?"


def test_all_digits_of_a_threshold_before_the_point_are_shown() -> None:
    assert tv.LevelSet(1e9 + 1).question == "where is the value above 1000000001?"
    bands = tv.LevelSet([1000001, 1000002])
    assert bands.names == ("below 1000001", "1000001 to 1000002", "above 1000002")
    assert str(tv.LevelSet(1e9 + 1)) == "LevelSet(1000000001)"


def test_the_certificate_states_the_points_below_first(study: tv.Study) -> None:
    result = study.result()
    assert re.search(r": \d+ below 0 and \d+ above\.", result.certificate.statement)
    share = further_sentences(result.statements, study.goal, DOMAIN)[0]
    assert share.endswith("lie below 0.")
    assert f"between {100 * (1 - result.share_above.high):.3g} and" in share
    only_above = tv.Study(DOMAIN, tv.LevelSet(below=0.0), kernel=RBF(0.5), mean=0.0, noise=1e-4)
    only_above.tell({"x_m": 0.0, "y_m": 0.0}, 3.0)
    assert re.search(r": \d+ above 0\.", only_above.result().certificate.statement)


def test_the_report_states_the_share_of_the_points_below(study: tv.Study, tmp_path) -> None:
    named = tv.Study(
        DOMAIN, study.goal, kernel=RBF(0.5), mean=0.0, noise=1e-4, quantity="oxygen", unit="mg/l"
    )
    for row in study.measurement_records():
        named.tell(row.point, row.value)
    path = tmp_path / "report.html"
    write_html_report(named, path)
    share = named.result().share_above
    tile = re.search(
        r"<[^>]*>([\d.]+) %</[^>]*>\s*<[^>]*>of the points below 0 mg/l",
        path.read_text(encoding="utf-8"),
    )
    assert tile is not None
    assert tile[1] == f"{100 * (1 - share.mean):.3g}"


def test_the_points_below_are_dense_in_the_map_of_the_terminal(study: tv.Study) -> None:
    lines = text_map(study, TerminalStyle(80)).splitlines()
    rows = [line.split("│")[1] for line in lines if "│" in line]
    assert rows[0].startswith("░")
    assert rows[-1].endswith("█")
    assert "█ below 0" in "\n".join(lines)


def test_bars_of_three_columns_are_those_of_the_points_below() -> None:
    domain = tv.Domain.grid(a=np.linspace(0, 1, 3), b=np.linspace(0, 1, 3), c=np.linspace(0, 1, 3))
    study = tv.Study(domain, tv.LevelSet(below=0.0), kernel=RBF(1.0), mean=0.0, noise=1e-4)
    study.tell({"a": 0.0, "b": 0.0, "c": 0.0}, -3.0)
    heading = text_map(study, TerminalStyle(80)).splitlines()[0].split()
    assert heading == ["below", "undecided"]


def test_the_points_below_have_the_colour_that_stands_out(study: tv.Study) -> None:
    data = PlotData.from_study(study)
    assert [name for name, _, _ in data.classes()] == ["below", "undecided", "above"]
    assert data.colours["below"] == style.LEVEL_SET["above"]
    assert data.colours["above"] == style.LEVEL_SET["below"]


def test_the_progress_line_and_the_summary_name_below_first(study: tv.Study) -> None:
    before = study.result()
    classes = before.classify()
    stream = io.StringIO()
    with Progress(study, stream=stream):
        pass
    counts = f"below {classes.below.sum()} above {classes.above.sum()}"
    assert counts in " ".join(stream.getvalue().split())
    study.tell({"x_m": 2.0, "y_m": -1.0}, -3.0)
    told = tell_summary([3], before, study.result())
    assert re.match(r"told 3: below \d+ \(\+\d+\), above", told)
    assert re.search(r"answer +\d+ below, \d+ above, \d+ undecided", repr(study))


def test_the_report_shows_the_points_below_first(study: tv.Study, tmp_path) -> None:
    path = tmp_path / "report.html"
    write_html_report(study, path)
    text = path.read_text(encoding="utf-8")
    assert "Points below and above the threshold" in text
    assert text.index("below 0: ") < text.index("above 0: ")


def test_the_page_gets_the_side_and_the_list_names_it(study: tv.Study, tmp_path) -> None:
    view = serializers.view(study)
    assert view["level_set"]
    assert view["sign"] == -1
    url = f"sqlite:///{tmp_path / 'a.db'}"
    tv.Study(DOMAIN, tv.LevelSet(below=0.5), store=url, name="low")
    loaded = tv.load(url, "low")
    assert loaded.goal == tv.LevelSet(below=0.5, monotone=loaded.goal.monotone)
    assert list(tv.studies(url)["goal"]) == ["below 0.5"]
