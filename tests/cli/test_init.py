"""`truvar init`, the names of reports, decimal commas, and what `serve` says about a store that
it begins."""

from __future__ import annotations

import io
import json
import re
import sys
import tomllib
import urllib.request
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.helpers.choices import running_server
from tests.helpers.terminal import in_terminal

import truvar as tv
from truvar.cli import main
from truvar.cli.serve import _new_store_notice
from truvar.exceptions import InvalidArgumentError, InvalidMeasurementError
from truvar.problem.template import ProblemAnswers, problem_template
from truvar.tabular.numbers import parse_number


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    x, y = np.meshgrid(np.linspace(0, 100, 6), np.linspace(-10, 0, 5))
    table = {"distance_m": x.ravel(), "depth_m": y.ravel(), "colour": "green"}
    pd.DataFrame(table).to_csv("pond.csv", index=False)
    return tmp_path


def answer(monkeypatch: pytest.MonkeyPatch, *lines: str) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in lines)))


@pytest.mark.parametrize("typed", ["0.2", "±0.2", "+-0.2", "+/- 0,2"])
def test_a_standard_deviation_may_be_typed_as_it_is_shown(
    folder: Path, monkeypatch: pytest.MonkeyPatch, typed: str
) -> None:
    answer(monkeypatch, "", "", "oxygen (mg/l)", "below", "4", typed, "1", "", "")
    assert main(["init", "pond.csv"]) == 0
    assert tv.load_problem("pond.toml").spec["noise"] == {"sd": 0.2}


def test_init_asks_and_writes_a_commented_problem_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answer(
        monkeypatch, "", "", "up", "level", "7,5", "0.3", "4", "distance_m=0.25 depth_m=1", "500"
    )
    assert main(["init", "pond.csv"]) == 0
    captured = capsys.readouterr()
    assert captured.out == "wrote pond.toml\nnext: truvar new pond.toml\n"
    assert (
        "Coordinates, of the columns distance_m, depth_m, colour [distance_m, depth_m]"
        in captured.err
    )
    assert "answer max, min, above, below or map" in captured.err
    text = Path("pond.toml").read_text()
    assert text.count("#") > 10
    problem = tv.load_problem("pond.toml")
    assert problem.domain.columns == ("distance_m", "depth_m")
    assert problem.spec["goal"] == {"level_set": 7.5}
    assert problem.run == {"budget": 500.0}
    assert problem.study().ask().cost == 4.0
    assert main(["new", "pond.toml"]) == 0
    assert Path("pond.db").exists()


def test_init_makes_a_map_with_a_learned_cost(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answer(monkeypatch, "", "", "map", "0,3", "", "learned", "", "500")
    assert main(["init", "pond.csv"]) == 0
    problem = tv.load_problem("pond.toml")
    assert problem.spec["goal"] == {"map": 0.3}
    assert problem.run == {"budget": 500.0, "accuracy": 0.3}
    assert problem.study().learns_cost
    given = ["init", "pond.csv", "--goal", "map", "--accuracy", "0.2", "--defaults", "--force"]
    assert main(given) == 0
    assert tv.load_problem("pond.toml").spec["goal"] == {"map": 0.2}
    capsys.readouterr()
    assert main(["init", "pond.csv", "--goal", "map", "--defaults", "--force"]) != 0
    assert "Accuracy" in capsys.readouterr().err


def test_init_without_a_table_makes_a_box(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answer(monkeypatch, "", "x 1 0", "x 0 1, depth_m -18 0", "oven", "", "min", "", "", "", "")
    assert main(["init"]) == 0
    assert "the range of x must ascend" in capsys.readouterr().err
    problem = tv.load_problem("oven.toml")
    assert problem.domain.continuous
    assert problem.domain.bounds.tolist() == [[0, 1], [-18, 0]]
    assert problem.spec["goal"] == {"minimize": True}


def test_init_asks_nothing_where_all_is_given(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("there").mkdir()
    options = [
        "--columns",
        "distance_m,depth_m",
        "--goal",
        "max",
        "--defaults",
        "-o",
        "there/p.toml",
    ]
    assert main(["init", "pond.csv", *options]) == 0
    assert tv.load_problem("there/p.toml").spec["goal"] == {"maximize": True}
    assert 'table = "../pond.csv"' in Path("there/p.toml").read_text()
    assert main(["init", "pond.csv", *options]) == 1
    assert "exists already" in capsys.readouterr().err


def test_init_asks_for_the_points_below_a_threshold(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answer(monkeypatch, "", "", "below", "4", "", "", "", "")
    assert main(["init", "pond.csv"]) == 0
    assert "Threshold: where is the value below ..." in capsys.readouterr().err
    assert (
        "level_set_below = 4.0  # where is the value below this?" in Path("pond.toml").read_text()
    )
    assert tv.load_problem("pond.toml").study().goal.side == "below"
    given = ["--goal", "below", "--threshold", "4", "--defaults", "-o", "given.toml"]
    assert main(["init", "pond.csv", *given]) == 0
    assert tv.load_problem("given.toml").spec["goal"] == {"level_set_below": 4.0}
    assert main(["new", "given.toml", "--check"]) == 0
    assert "where is the value below 4?" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "lines", "message"),
    [
        (["nothing.csv"], [], "nothing.csv"),
        (["pond.csv", "--columns", "dept_m"], [], "did you mean 'depth_m'"),
        (["pond.csv", "--goal", "level", "--defaults"], [], "no default for: Threshold"),
        (["pond.csv"], ["", ""], "the input ended at the question: Look for"),
        (["pond.csv"], ["", "", *["what"] * 9], "no answer could be used for: Look for"),
    ],
)
def test_a_mistake_in_init_is_one_clear_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    arguments: list[str], lines: list[str], message: str,
) -> None:  # fmt: skip
    answer(monkeypatch, *lines)
    assert main(["init", *arguments]) == 1
    assert message in capsys.readouterr().err.splitlines()[-1]
    assert not Path("pond.toml").exists()


def test_the_template_quotes_what_toml_needs_quoted() -> None:
    answers = ProblemAnswers(
        'a "b"', None, ["größe (m)"], box={"größe (m)": (0.0, 1.0)}, travel={"größe (m)": 2.0}
    )
    text = problem_template(answers)
    assert 'name = "a \\"b\\""' in text
    assert 'box = {"größe (m)" = [0.0, 1.0]}' in text
    with pytest.raises(InvalidArgumentError, match="needs a threshold"):
        ProblemAnswers("x", None, ["x"], goal="level_set")


@pytest.fixture
def stations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pd.DataFrame:
    monkeypatch.chdir(tmp_path)
    table = pd.DataFrame(
        {
            "station": ["north", "middle", "south"],
            "lon": [18.1, 18.3, 18.5],
            "lat": [54.2, 54.4, 54.1],
            "remark": [None, "wreck", None],
        }
    )
    table.to_csv("bay.csv", index=False)
    return table


def test_init_asks_a_crew_in_its_own_words(
    stations: pd.DataFrame, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # The first answer to each cannot be used, so that it is asked again.
    speed = ("fast", "8 kn")
    harbour = ("18.6", "54.5 18.6", "18.6 54.5")
    back = ("perhaps", "yes")
    lines = ["", "", "oxygen (mg/l)", "below", "4", "", "0.5", *speed, *harbour, *back, "40"]
    answer(monkeypatch, *lines)
    assert main(["init", "bay.csv"]) == 0
    asked = capsys.readouterr().err
    assert "names of the places, or none [station]" in asked
    assert "where is the oxygen below ... (mg/l)" in asked
    assert asked.count("Harbour") == 3
    assert "near them as longitude 18.6 and latitude 54.5; give the longitude first" in asked
    problem = tv.load_problem("bay.toml")
    study = problem.study()
    assert problem.domain.columns == ("lon", "lat")
    assert problem.domain.label(0) == "north"
    assert (study.quantity.name, study.quantity.unit) == ("oxygen", "mg/l")
    assert study.must_return
    distance = (study.ask().cost - 0.5) * 8 * 1.852  # the first measurement pays its leg
    assert 10 < distance < 60


def test_init_takes_the_answers_of_a_crew_as_options(
    stations: pd.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--label", "station", "--quantity", "oxygen", "--travel-km", "2", "--defaults"]
    assert main(["init", "bay.csv", *options, "--harbour", "18.6,54.5", "--must-return"]) == 0
    assert main(["new", "bay.toml", "--check"]) == 0
    assert "2 per kilometre" in " ".join(capsys.readouterr().out.split())
    for more, message in (
        (["--harbour", "54.5"], "give longitude and latitude"),
        (["--harbour", "18,154"], "must be degrees"),
        (["--harbour", "54.5,18.6"], "give the longitude first"),
        (["--must-return"], "--must-return needs a harbour"),
        (["--label", "statoin"], "did you mean 'station'"),
        (["--travel-km", "-1"], "must be >= 0"),
        (["--travel-km", "0 kn"], "the speed must be above 0"),
        (["--travel-km", "fast"], "or a speed such as 15 km/h or 8 kn, got 'fast'"),
    ):
        words = ["init", "bay.csv", "--travel-km", "2", "--defaults", "--force", *more]
        assert main(words) == 1
        assert message in capsys.readouterr().err
    stations.rename(columns={"lon": "x", "lat": "y"}).to_csv("plane.csv", index=False)
    assert main(["init", "plane.csv", "--travel-km", "2", "--defaults"]) == 1
    assert "need columns of longitude and latitude" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("speed", "rate"),
    [("8 kn", 1 / 14.816), ("8 knots", 1 / 14.816), ("8kts", 1 / 14.816), ("16 KPH", 1 / 16)],
)
def test_a_speed_is_understood_in_the_units_of_crews(
    stations: pd.DataFrame, speed: str, rate: float
) -> None:
    assert main(["init", "bay.csv", "--travel-km", speed, "--defaults"]) == 0
    with open("bay.toml", "rb") as file:
        cost = tomllib.load(file)["cost"]
    assert cost["great_circle"]["rate"] == pytest.approx(rate, rel=1e-5)


# -- reports
# --------------------------------------------------------------------------------------------------


def test_run_and_report_name_their_outputs_alike(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("pond.toml").write_text(
        'name = "pond"\n[domain]\ngrid = {x = [0, 1, 12]}\n[goal]\nmaximize = '
        'true\n[model]\nkernel = "rbf"\n'
        "lengthscales = [0.3]\nmean = 0\n[noise]\nvariance = 0.01\n[run]\nsteps = 3\n"
    )
    assert main(["run", "pond.toml", "--command", "echo {x}", "--quiet", "--report", "a.html"]) == 0
    assert capsys.readouterr().out.endswith("report: a.html\n")
    assert main(["report", "pond.db", "--report", "b.html"]) == 0
    assert capsys.readouterr().out == "report: b.html\n"
    assert main(["report", "pond.db", "-o", "all"]) == 0
    assert re.fullmatch(
        r"report: all/ \(folder with map\.png, .*, report\.html\)\n", capsys.readouterr().out
    )
    assert main(["report", "pond.db", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"report": "pond.html"}
    for path in ("a.html", "b.html", "all/report.html", "all/points.csv", "pond.html"):
        assert Path(path).stat().st_size > 100


# -- words and widths
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7,5", 7.5),
        ("-0,25", -0.25),
        ("0,125", 0.125),
        ("1234,5", 1234.5),
        ("7.5", 7.5),
        ("2,5e-3", 0.0025),
    ],
)
def test_a_decimal_comma_is_understood_where_it_cannot_separate_thousands(
    text: str, value: float
) -> None:
    assert parse_number(text, "the value") == value


@pytest.mark.parametrize("text", ["1,234", "-12,500", "1,2,3", "1.234,5", "abc", ",", "1,e5x"])
def test_an_ambiguous_number_is_refused(text: str) -> None:
    with pytest.raises(InvalidMeasurementError, match=r"ambiguous|finite number"):
        parse_number(text, "the value")


def test_messages_wrap_at_the_width_of_the_terminal(folder: Path) -> None:
    command = [sys.executable, "-m", "truvar", "status", "--store", "nothing-of-that-name.db"]
    code, _, sent = in_terminal(command, columns=50)
    assert code == 1
    assert max(map(len, re.split(r"[\r\n]+", sent))) <= 50
    assert "truvar new PROBLEM.toml" in " ".join(sent.split())


def test_serve_says_that_it_begins_an_empty_store(folder: Path) -> None:
    with running_server("nope.db") as (address, process):
        assert process.stdout is not None
        notice = process.stdout.readline()
        assert Path("nope.db").exists()
        with urllib.request.urlopen(address) as answer:
            assert json.load(answer)["studies"] == []
    assert "nope.db is a new, empty store" in notice
    assert "truvar new PROBLEM.toml --store nope.db" in notice
    assert "does not exist" not in notice


def test_serve_has_nothing_to_say_about_a_store_that_exists(folder: Path) -> None:
    Path("here.db").touch()
    assert _new_store_notice("sqlite:///here.db") == ""
    assert _new_store_notice("postgresql://host/lake") == ""


def test_init_proposes_no_column_with_gaps_as_a_coordinate(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = ["\ufeffEast (m);Depth [m];Nitrate (mg/l)", "3.500.134,36;1,5;47,3", "3.500.255,07;2,0;"]
    Path("lake.csv").write_text("\n".join(rows), encoding="utf-8")
    assert main(["init", "lake.csv", "--defaults"]) == 0
    assert "next: truvar new lake.toml" in capsys.readouterr().out
    assert tv.load_problem("lake.toml").domain.columns == ("East (m)", "Depth [m]")
