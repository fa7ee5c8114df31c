"""`truvar run --command`: a program measures; it fails, hangs, and is killed at any moment."""

from __future__ import annotations

import json
import re
import sys
from datetime import datetime
from pathlib import Path

import pytest
from tests.helpers.terminal import in_terminal

from truvar.cli import main
from truvar.study.stored import load

SINE = """
name = "sine"
[domain]
grid = {x = [0, 6, 60]}
[goal]
level_set = 0.5
[model]
kernel = "matern52"
lengthscales = [1.0]
mean = 0.0
[noise]
variance = 0.01
[run]
steps = 40
"""
MEASURE = """#!/bin/sh
awk "BEGIN {print sin($1)}"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TRUVAR_STORE", raising=False)
    Path("sine.toml").write_text(SINE)
    Path("measure").write_text(MEASURE)
    Path("measure").chmod(0o755)
    return tmp_path


def test_a_problem_file_begins_its_store_and_a_second_run_goes_on(folder: Path, capsys) -> None:
    run = ["run", "sine.toml", "--command", "./measure {x}", "--quiet", "--json", "--steps"]
    assert main([*run, "3"]) == 0
    first = json.loads(capsys.readouterr().out)
    assert main([*run, "5", "--jobs", "2", "--timeout", "1min"]) == 0
    second = json.loads(capsys.readouterr().out)
    assert (first["measured"], second["measured"]) == (3, 2)
    assert Path("sine.db").exists()
    study = load("sqlite:///sine.db", "sine")
    assert study.steps == 5
    assert re.search(r" run \d+$", str(study.events["who"].iloc[-1]))


def test_a_program_measures_until_f1_is_reached(folder: Path, capsys) -> None:
    run = ["run", "sine.toml", "--command", "./measure {x}", "--quiet", "--json", "--f1", "0.8"]
    assert main(run) == 0
    assert json.loads(capsys.readouterr().out)["result"]["reason"].endswith("reached 0.8")
    Path("other.toml").write_text(SINE.replace("steps = 40", "f1 = 0.7"))
    assert main(["run", "other.toml", "--command", "./measure {x}", "--quiet"]) == 0
    output = capsys.readouterr().out
    assert "reached 0.7" in output
    assert re.search(r"progress +expected F1 0\.\d+ \(0\.\d+ to [01]\.\d+\), goal 0\.7", output)


def test_a_program_that_fails_is_tried_again(folder: Path, capsys) -> None:
    Path("measure").write_text(
        "#!/bin/sh\necho x >> tries\n[ $(wc -l < tries) -gt 2 ] || exit 4\necho 0.5\n"
    )
    assert main(["run", "sine.toml", "--command", "./measure", "--steps", "2", "--quiet"]) == 0
    assert Path("tries").read_text().count("x") == 4
    assert capsys.readouterr().err == ""


def test_one_that_keeps_failing_ends_the_run_with_its_own_words_and_leaves_nothing_pending(
    folder: Path, capsys
) -> None:
    Path("measure").write_text("#!/bin/sh\necho the winch is stuck >&2\nexit 4\n")
    assert (
        main(["run", "sine.toml", "--command", "./measure {x}", "--retries", "1", "--quiet"]) == 1
    )
    captured = capsys.readouterr()
    last = captured.err.splitlines()[-1]
    assert last.startswith("truvar: 5 measurements in a row failed")
    assert "./measure ended with exit code 4: the winch is stuck" in last
    study = load("sqlite:///sine.db", "sine")
    assert (study.steps, study.pending) == (0, [])


@pytest.mark.parametrize(
    ("options", "seconds"),
    [
        ([], 86_400),
        (["--timeout", "1min"], 3 * 60 + 60),
        (["--timeout", "1min", "--lease", "2h"], 7200),
    ],
)
def test_what_a_run_asks_for_is_reserved_for_as_long_as_it_can_take(
    folder: Path, options: list[str], seconds: int
) -> None:
    assert (
        main(
            ["run", "sine.toml", "--command", "./measure {x}", "--steps", "1", "--quiet", *options]
        )
        == 0
    )
    events = load("sqlite:///sine.db", "sine").events
    asked = events[events["kind"] == "asked"].iloc[0]
    reserved = (datetime.fromisoformat(asked["details"]["until"]) - asked["time"]).total_seconds()
    assert reserved == pytest.approx(seconds, abs=5)


def test_a_run_leaves_to_others_what_they_are_measuring(folder: Path) -> None:
    assert main(["new", "sine.toml"]) == 0
    mine = load("sqlite:///sine.db", "sine", author="anna").ask()
    assert main(["run", "sine.db", "--command", "./measure {x}", "--steps", "2", "--quiet"]) == 0
    study = load("sqlite:///sine.db", "sine")
    assert [suggestion.id for suggestion in study.pending] == [mine.id]


# -- in a terminal
# --------------------------------------------------------------------------------------------------


def shown(script: str, **environment: str) -> str:
    """Return the output of a shell script, in which `truvar` is the command, on a terminal of 90
    columns."""
    whole = f'set -e; truvar() {{ "$PY" -m truvar "$@"; }}\n{script}\necho "all done"'
    code, _, sent = in_terminal(["sh", "-c", whole], columns=90, PY=sys.executable, **environment)
    assert code == 0, sent
    return sent


def test_a_whole_campaign_in_a_terminal(folder: Path) -> None:
    sent = shown(
        """
        truvar new sine.toml
        truvar ask -n 2 --lease 2h
        truvar tell 1 0.14 x=1.5254237288135593 0.9
        truvar correct 1 0.13
        truvar withdraw 2
        truvar run --command './measure {x}' --steps 8
        truvar status
        truvar report
        """
    )
    plain = re.sub(r"\x1b\[[0-9;]*[mK]", "", sent)
    for part in (
        "where is the value above 0.5?", "created study 'sine'", "suggestion 1", "suggestion 2", "told 1, 3: above",
        "corrected 1: ", "withdrawn 2: ", "measurement 8/8", "█ above 0.5: ", "report: sine.html", "all done",
    ):  # fmt: skip
        assert part in plain
    assert "\x1b[38;5;208m" in sent
    assert max(map(len, re.split(r"[\r\n]+", plain))) <= 90
    assert Path("sine.html").stat().st_size > 20_000


def test_without_colour_and_in_plain_letters_where_asked(folder: Path) -> None:
    assert main(["new", "sine.toml"]) == 0
    sent = shown("truvar status", NO_COLOR="1", PYTHONIOENCODING="ascii")
    assert "\x1b" not in sent
    assert sent.isascii()
    assert "# above 0.5: 0" in sent
