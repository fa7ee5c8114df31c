"""`repeats` in a problem file, at the command line and over HTTP."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

import truvar as tv
from truvar.cli import main
from truvar.exceptions import InvalidProblemError

PROBLEM = """
{repeats}
[domain]
table = "bay.csv"
columns = ["x"]
label = "station"
[goal]
level_set = 0.0
[model]
kernel = "rbf"
lengthscales = 0.1
mean = 0.0
[noise]
variance = 4.0
[cost]
base = 1.0
travel = {{x = 0.001}}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    pd.DataFrame({"x": [0.0, 1.0], "station": ["KB0617", "KB0618"]}).to_csv("bay.csv", index=False)
    return tmp_path


def write(repeats: str) -> None:
    Path("bay.toml").write_text(PROBLEM.format(repeats=repeats))


@pytest.mark.parametrize(
    ("line", "expected"),
    [("", None), ("repeats = true", True), ("repeats = false", False), ("repeats = 3", 3)],
)
def test_a_problem_file_says_it(folder: Path, line: str, expected: bool | int | None) -> None:
    write(line)
    assert tv.load_problem("bay.toml").study().repeats == expected


@pytest.mark.parametrize("value", ["0", "-2", "1.5", '"no"', "[1]"])
def test_other_values_are_refused(folder: Path, value: str) -> None:
    write(f"repeats = {value}")
    with pytest.raises(InvalidProblemError, match="repeats must be true, false or a number"):
        tv.load_problem("bay.toml")


def test_a_key_below_a_section_is_told_apart(folder: Path) -> None:
    write("")
    with open("bay.toml", "a") as file:
        file.write("repeats = false\n")
    with pytest.raises(
        InvalidProblemError, match=r"\[cost\] has no key 'repeats'.*above the first"
    ):
        tv.load_problem("bay.toml")


def test_the_command_line_ends_with_the_reason(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write("repeats = false")
    assert main(["new", "bay.toml"]) == 0
    assert "every place is measured once" in capsys.readouterr().out
    for id_, y in ((1, 0.1), (2, -0.1)):
        assert main(["ask"]) == 0
        assert main(["tell", str(id_), str(y)]) == 0
    capsys.readouterr()
    assert main(["ask"]) == 0
    assert "every place was measured or suggested once" in capsys.readouterr().out
    assert main(["status"]) == 0
    assert "every place is measured once" in capsys.readouterr().out


def test_a_batch_that_repeats_a_place_says_so(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write("")
    assert main(["new", "bay.toml"]) == 0
    capsys.readouterr()
    assert main(["ask", "-n", "5"]) == 0
    printed = capsys.readouterr().out
    assert "several measurements of one place: " in printed
    assert " x KB0617" in printed or " x KB0618" in printed
    assert main(["ask", "-n", "1", "--json"]) == 0
    (suggestion,) = json.loads(capsys.readouterr().out)["suggestions"]
    assert suggestion["times"] > 1


def test_init_writes_it(folder: Path) -> None:
    options = ["--goal", "max", "--columns", "x", "--defaults"]
    assert main(["init", "bay.csv", *options, "--repeats", "1"]) == 0
    assert tv.load_problem("bay.toml").study().repeats is False
    assert main(["init", "bay.csv", *options, "--repeats", "4", "--force"]) == 0
    assert tv.load_problem("bay.toml").study().repeats == 4
    assert main(["init", "bay.csv", *options, "--force"]) == 0
    assert tv.load_problem("bay.toml").study().repeats is None
    with pytest.raises(SystemExit):
        main(["init", "bay.csv", *options, "--repeats", "0"])
