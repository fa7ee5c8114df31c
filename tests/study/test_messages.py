"""Messages name what the reader can type: Python code, commands and keys of the command line, or
fields of HTTP."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from sklearn.gaussian_process.kernels import RBF

import truvar as tv
from truvar.cli import main
from truvar.exceptions import InvalidArgumentError, InvalidDomainError
from truvar.messages import (
    Interface,
    for_interface,
    format_coordinates,
    format_point,
    interface,
    unknown_name,
)

PROBLEM = """
name = "line"
[domain]
table = "line.csv"
columns = ["x", "depth m"]
[goal]
level_set = 0.5
[model]
kernel = "rbf"
lengthscales = [1.0, 1.0]
mean = 0.0
[noise]
"""
EXACT = "variance = 0.0\n"
LEVELS = "levels = [{variance = 0.1, cost = 1}, {variance = 0.0, cost = 3}]\n"
PYTHON = re.compile(
    r"\{'|\w\(|=\.\.\.|\btv\.|\bNone\b|\b\w+='|np\."
)  # a dict, a call, an argument, a module


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TRUVAR_STORE", raising=False)
    Path("line.csv").write_text("x,depth m,y\n0,-1,0.2\n1,-2,0.4\n2,-4,0.7\n")
    return tmp_path


def error_of(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """Run a command that fails, and return its message."""
    capsys.readouterr()
    assert main(list(words)) == 1
    return capsys.readouterr().err


def create_study(noise: str = EXACT) -> None:
    Path("line.toml").write_text(PROBLEM + noise)
    assert main(["new", "line.toml"]) == 0


def test_messages_at_the_command_line_name_its_arguments(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    create_study()
    assert main(["tell", "x=0", "depth m=-1", "0.25"]) == 0
    assert main(["ask"]) == 0
    for words, expected in {
        ("tell", "1", "4.3"): "correct it: truvar correct 1 4.3; a second measurement",
        (
            "tell",
            "x=7",
            "depth m=-1",
            "1",
        ): "x=7 'depth m=-1' is not in the domain; the nearest point of it is x=2",
        ("tell", "x=7", "1"): "needs the columns x, depth m, but 'depth m' is missing in x=7",
        ("tell", "x=0", "depth m=-1", "4"): "give the noise variance (--noise VARIANCE)",
        ("tell", "2", "1", "--level", "3"): "its own level and task, got also level 3",
        ("tell", "x=2", "depth m=-4", "1", "--level", "0"): "no noise levels, got level 0",
        (
            "new",
            "line.toml",
        ): "already has a study 'line'; continue with it, or give another name with --name NAME",
        (
            "backtest",
            "line.toml",
            "--truth",
            "y",
        ): "needs a budget > 0, got none; give --budget COST",
    }.items():
        message = error_of(capsys, *words)
        assert expected in message
        assert not PYTHON.search(message)


def test_a_name_with_a_space_is_quoted(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    create_study()
    assert main(["new", "line.toml", "--name", "a line"]) == 0
    assert "give --name 'a line'" in error_of(capsys, "status", "line.db")


def test_messages_at_the_command_line_name_keys_of_the_problem_file(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    create_study(LEVELS)
    message = error_of(capsys, "tell", "x=0", "depth m=-1", "0.25")
    assert "the noise level that was used, 0 to 1, got none; give --level N" in message
    for part, expected in {
        (
            '[policy]\nname = "gchk"\n',
            LEVELS,
        ): "give one, from [policy] level = 0 to [policy] level = 1",
        (
            '[policy]\nname = "ei"\n',
            EXACT,
        ): "the policy 'ei' is for an optimum, but the goal is a level set",
        (
            '[policy]\nname = "truvar"\nbeta = {theorem = 0.1}\n',
            EXACT,
        ): 'give [policy] name = "truvar" and slack = 0.1',
        (
            "[policy]\nbeta = {theorem = 0.1}\n",
            EXACT,
        ): 'give [policy] name = "truvar" and slack = 0.1',
        (
            "[policy]\namong = {top = 3, by = 'x'}\n",
            EXACT,
        ): "[policy] among.by must be one of 'ucb' or 'ei', got 'x'",
    }.items():
        Path("other.toml").write_text(PROBLEM + part[1] + part[0])
        message = error_of(capsys, "new", "other.toml")
        assert expected in message
        assert not PYTHON.search(message)
    Path("empty.toml").write_text("[domain]\ngrid = {}\n[goal]\nmaximize = true\n")
    assert "give one: grid = {x = [0, 1, 50]}" in error_of(capsys, "new", "empty.toml")
    Path("study.json").write_text("{}")
    assert "what truvar export --json wrote" in error_of(capsys, "import", "study.json", "new.db")
    Path("line.csv").write_text("x,depth m,y\n0,-1,0.2\n1,-2,0.4\n0,-1,0.7\n")
    assert "rows 0 and 2 are both x=0 'depth m=-1'" in error_of(
        capsys, "new", "line.toml", "--name", "b"
    )


def test_messages_are_for_python_again_after_a_command(folder: Path, capsys) -> None:
    create_study()
    study = tv.Study(
        tv.Domain.grid(x=[0.0, 1.0]), tv.Maximize(), kernel=RBF(1.0), mean=0.0, noise=0.1
    )
    study.tell({"x": 0.0}, 1.0)
    with pytest.raises(tv.TruvarError, match=re.escape("correct(1, 4.3)")):
        study.tell(1, 4.3)
    with pytest.raises(tv.TruvarError, match=re.escape("{'x': 3} is not in the domain")):
        study.tell({"x": 3}, 1.0)


def test_the_text_for_an_interface_falls_back_to_the_problem_file_and_then_to_python() -> None:
    assert for_interface("noise=...") == "noise=..."
    with interface("http"):
        assert (
            for_interface("noise=...", problem="[noise] variance", cli="--noise")
            == "[noise] variance"
        )
        assert format_point({"x": 0.5, "y": "?"}) == "x = 0.5, y = ?"
    with interface("cli"):
        assert for_interface("noise=...") == "noise=..."
        assert for_interface("noise=...", problem="[noise] variance", cli="--noise") == "--noise"
        assert format_point({"x": 0.1 + 0.2}) == "x=0.3"
    assert format_point({"x": 0.5}) == "{'x': 0.5}"


@pytest.mark.parametrize(
    ("style", "digits", "expected"),
    [
        ("python", 10, "{'x': 0.30000000000000004, 'depth m': -2.0}"),
        ("cli", 10, "x=0.3 'depth m=-2'"),
        ("http", 10, "x = 0.3, depth m = -2"),
        ("http", 1, "x = 0.3, depth m = -2"),
    ],
)
def test_a_point_is_formatted_for_the_interface(
    style: Interface, digits: int, expected: str
) -> None:
    point = {"x": 0.1 + 0.2, "depth m": -2.0}
    assert format_point(point, style=style, digits=digits) == expected
    with interface(style):
        assert format_point(point, digits=digits) == expected


def test_a_point_has_as_many_digits_as_asked_for() -> None:
    assert format_point({"x": 1 / 3}, style="http", digits=4) == "x = 0.3333"


def test_the_message_for_an_unknown_name_proposes_a_similar_one() -> None:
    assert (
        unknown_name("column", "dept", ["distance_m", "depth_m"])
        == "unknown column 'dept'; did you mean 'depth_m'?"
    )
    assert unknown_name("column", "q", ["x", "y"]) == "unknown column 'q'; expected one of x, y"
    many = unknown_name("label", "q", [f"station {k}" for k in range(1000)])
    assert many.endswith("station 39, ... (1000 in all)")


def test_an_unknown_column_is_reported_with_a_similar_one() -> None:
    domain = tv.Domain.grid(distance_m=[0.0, 1.0], depth_m=[-2.0, -1.0])
    study = tv.Study(domain, tv.Maximize(), kernel=RBF(1.0), mean=0.0, noise=0.1)
    with pytest.raises(
        InvalidArgumentError, match=r"unknown column 'dept'; did you mean 'depth_m'\?"
    ):
        study.tell({"distance_m": 0.0, "dept": -1.0}, 1.0)
    with pytest.raises(
        InvalidDomainError, match=r"unknown column 'distance'; did you mean 'distance_m'\?"
    ):
        tv.Study(domain, tv.Maximize(), noise="distance")
    with pytest.raises(
        InvalidArgumentError, match=r"unknown column 'depth'; did you mean 'depth_m'\?"
    ):
        tv.Study(domain, tv.Maximize(), noise=0.1, cost=tv.Cost(1, travel={"depth": 1}))


def test_messages_over_http_have_no_python_except_for_the_python_client(served) -> None:
    api, _ = served
    api.create("worded")
    api.post("/studies/worded/tell", {"point": {"x": 0.0, "y": 0.0}, "y": 1.0})
    again = api.post("/studies/worded/tell", {"id": 1, "y": 4.3}, 422)["error"]
    assert "correct it: id 1, y 4.3;" in again
    outside = api.post("/studies/worded/tell", {"point": {"x": 7.0, "y": 0.0}, "y": 1.0}, 422)[
        "error"
    ]
    assert "x = 7, y = 0 is not in the domain; the nearest point of it is x = 1, y = 0 " in outside
    assert not PYTHON.search(again + outside)
    with pytest.raises(tv.TruvarError, match=re.escape("correct(1, 4.3)")):
        tv.connect(api.url, name="worded").tell(1, 4.3)


def test_large_coordinates_keep_all_digits_before_the_point() -> None:
    point = {
        "east_m": 3500478.12,
        "north_m": -5261034.9,
        "depth_m": 6.9,
        "count": 12345678,
        "rate": 0.000501277,
    }
    text = "east_m 3500478, north_m -5261035, depth_m 6.9, count 12345678, rate 0.000501277"
    assert format_coordinates(point) == text
    assert format_coordinates({"east_m": 456789.12}, digits=4) == "east_m 456789"
    assert format_coordinates({"far": 1e20}) == "far 1e+20"
