"""A message names what its reader can write: Python in a program, commands and keys at the command line, words over
HTTP."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from sklearn.gaussian_process.kernels import RBF

import truvar as tv
from truvar.cli import main
from truvar.messages import for_interface, format_point, interface

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
ONE, LEVELS = "variance = 0.0\n", "levels = [{variance = 0.1, cost = 1}, {variance = 0.0, cost = 3}]\n"
PYTHON = re.compile(r"\{'|\w\(|=\.\.\.|\btv\.|\bNone\b|\b\w+='|np\.")  # a dict, a call, an argument, a module


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TRUVAR_STORE", raising=False)
    Path("line.csv").write_text("x,depth m,y\n0,-1,0.2\n1,-2,0.4\n2,-4,0.7\n")
    return tmp_path


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """The complaint of a command."""
    capsys.readouterr()
    assert main(list(words)) == 1
    return capsys.readouterr().err


def began(noise: str = ONE, more: str = "") -> None:
    Path("line.toml").write_text(PROBLEM + noise + more)
    assert main(["new", "line.toml"]) == 0


def test_the_command_line_names_its_own_words(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    began()
    assert main(["tell", "x=0", "depth m=-1", "0.25"]) == 0
    assert main(["ask"]) == 0
    for words, expected in {
        ("tell", "1", "4.3"): "correct it: truvar correct 1 4.3; a second measurement",
        ("tell", "x=7", "depth m=-1", "1"): "x=7 'depth m=-1' is not in the domain; the nearest point of it is x=2",
        ("tell", "x=7", "1"): "must have the columns x, depth m, but 'depth m' is missing in x=7",
        ("tell", "x=0", "depth m=-1", "4"): "give the noise variance (--noise VARIANCE)",
        ("tell", "2", "1", "--level", "3"): "its own level and task, but a level came (3)",
        ("tell", "x=2", "depth m=-4", "1", "--level", "0"): "no noise levels, but level 0 was given",
        ("new", "line.toml"): "already has a study 'line'; continue with it, or give another name with --name NAME",
        ("backtest", "line.toml", "--truth", "y"): "needs a budget > 0 to compare at, got missing; give --budget COST",
    }.items():
        message = said(capsys, *words)
        assert expected in message
        assert not PYTHON.search(message)


def test_a_name_of_several_words_is_quoted(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    began()
    assert main(["new", "line.toml", "--name", "a line"]) == 0
    assert "say which: --name 'a line'" in said(capsys, "status", "line.db")


def test_so_do_noise_levels_and_problem_files(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    began(LEVELS)
    message = said(capsys, "tell", "x=0", "depth m=-1", "0.25")
    assert "which noise level was used, 0 to 1, but none came; give --level N" in message
    for part, expected in {
        ('[policy]\nname = "gchk"\n', LEVELS): "say which to use, from [policy] level = 0 to [policy] level = 1",
        ('[policy]\nname = "ei"\n', ONE): "EI is for an optimum, but the goal is a level set",
        ("[policy]\nbeta = {theorem = 0.1}\n", ONE): "give [policy] slack = 0.1",
        ("[policy]\namong = {top = 3, by = 'x'}\n", ONE): "got among = {top = 3, by = 'x'}",
    }.items():
        Path("other.toml").write_text(PROBLEM + part[1] + part[0])
        message = said(capsys, "new", "other.toml")
        assert expected in message
        assert not PYTHON.search(message)
    Path("empty.toml").write_text("[domain]\ngrid = {}\n[goal]\nmaximize = true\n")
    assert "give one: grid = {x = [0, 1, 50]}" in said(capsys, "new", "empty.toml")
    Path("study.json").write_text("{}")
    assert "what truvar export --json wrote" in said(capsys, "import", "study.json", "new.db")
    Path("line.csv").write_text("x,depth m,y\n0,-1,0.2\n1,-2,0.4\n0,-1,0.7\n")
    assert "rows 0 and 2 are both x=0 'depth m=-1'" in said(capsys, "new", "line.toml", "--name", "b")


def test_a_program_reads_python_after_the_command_line_as_before(folder: Path, capsys) -> None:
    began()
    study = tv.Study(tv.Domain.grid(x=[0.0, 1.0]), tv.Maximize(), kernel=RBF(1.0), mean=0.0, noise=0.1)
    study.tell({"x": 0.0}, 1.0)
    with pytest.raises(tv.TruvarError, match=re.escape("correct(1, 4.3)")):
        study.tell(1, 4.3)
    with pytest.raises(tv.TruvarError, match=re.escape("{'x': 3} is not in the domain")):
        study.tell({"x": 3}, 1.0)


def test_words_fall_back_to_the_problem_file_and_then_to_python() -> None:
    assert for_interface("noise=...") == "noise=..."
    with interface("http"):
        assert for_interface("noise=...", problem="[noise] variance", cli="--noise") == "[noise] variance"
        assert format_point({"x": 0.5, "y": "?"}) == "x = 0.5, y = ?"
    with interface("cli"):
        assert for_interface("noise=...") == "noise=..."
        assert for_interface("noise=...", problem="[noise] variance", cli="--noise") == "--noise"
        assert format_point({"x": 0.1 + 0.2}) == "x=0.3"
    assert format_point({"x": 0.5}) == "{'x': 0.5}"


def test_over_http_there_is_no_python_but_for_a_program_in_it(served) -> None:
    api, _ = served
    api.create("worded")
    api.post("/studies/worded/tell", {"point": {"x": 0.0, "y": 0.0}, "y": 1.0})
    again = api.post("/studies/worded/tell", {"id": 1, "y": 4.3}, 422)["error"]
    assert "correct it: id 1, y 4.3;" in again
    outside = api.post("/studies/worded/tell", {"point": {"x": 7.0, "y": 0.0}, "y": 1.0}, 422)["error"]
    assert "x = 7, y = 0 is not in the domain; the nearest point of it is x = 1, y = 0 " in outside
    assert not PYTHON.search(again + outside)
    with pytest.raises(tv.TruvarError, match=re.escape("correct(1, 4.3)")):
        tv.connect(api.url, name="worded").tell(1, 4.3)
