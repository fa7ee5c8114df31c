"""`truvar exclude`, `fail` and `allow`, and values that may be typing mistakes, on a real SQLite
file."""

import argparse
import json
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from truvar.cli import main
from truvar.cli._common import add_options, given_options
from truvar.study import commands
from truvar.study.stored import load

LINE = """
name = "line"
[domain]
grid = {x = [0, 10, 41]}
constraints = ["x <= 8"]
[goal]
level_set = 0.5
[model]
kernel = "rbf"
lengthscales = [1.0]
mean = 0.0
[noise]
variance = 0.01
[run]
max_failures = 2
retries = 1
steps = 30
"""


@pytest.fixture
def truvar(tmp_path, monkeypatch, capsys):
    """A command and its exit code; what it printed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TRUVAR_STORE", raising=False)
    Path("line.toml").write_text(LINE)

    def run(*words: str, code: int = 0) -> tuple[str, str]:
        capsys.readouterr()
        assert main(list(words)) == code
        captured = capsys.readouterr()
        return captured.out, captured.err

    run("new", "line.toml")
    return run


def opened():
    return load("sqlite:///line.db", "line")


def test_places_are_excluded_failed_and_allowed_with_reasons(truvar):
    assert len(opened().domain) == 33  # the constraint of the problem file
    truvar("ask", "-n", "3")
    out, _ = truvar("exclude", "1", "--reason", "under a jetty")
    assert out.startswith("excluded 1: ")
    assert "excluded: 1 of 33 points" in out
    out, _ = truvar("fail", "2", "--reason", "probe stuck", "--cost", "0.5")
    assert "failed: 1 measurement, the last at x" in out
    assert "probe stuck" in out
    truvar("exclude", "x > 4")
    data = json.loads(truvar("exclude", "x=0", "--json")[0])
    assert data["excluded"] == "x=0"
    assert data["result"]["failed"] == 1
    study = opened()
    assert study.spent == 0.5
    assert study.result().excluded[study.domain.points[:, 0] > 4].all()
    assert re.search(r"excluded +\d+ of 33 points", truvar("status")[0])
    truvar("report", "-o", "line.html")
    page = Path("line.html").read_text()
    assert "under a jetty" in page
    assert "probe stuck" in page
    truvar("allow", "x > 4")
    truvar("allow", "--all")
    assert opened().result().n_excluded == 0


def test_a_withdrawn_place_is_named_with_the_way_to_allow_it(truvar):
    truvar("ask", "-n", "2")
    out, _ = truvar("withdraw", "1")
    assert "not suggested again until allowed: 1 (truvar allow 1)" in out
    out, _ = truvar("withdraw", "2", "--again")
    assert "until allowed" not in out
    assert opened().result().n_excluded == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["exclude"], "exclude expects a place"),
        (["exclude", "9"], "there is no suggestion or measurement 9"),
        (["exclude", "z > 1"], "unknown column 'z'"),
        (["exclude", "x=abc"], "column 'x' of the point must be"),
        (["fail", "x > 1"], "fail expects an id, a label or the coordinates"),
        (["fail", "7"], "suggestion 7 is not pending"),
        (["allow"], "allow expects a place or --all"),
        (["allow", "1", "--all"], "allow expects a place or --all"),
    ],
)
def test_a_mistake_is_one_line(truvar, words, message):
    _, err = truvar(*words, code=1)
    assert message in err
    assert len(err.strip().splitlines()) == 1


def test_a_run_takes_its_failures_from_the_problem_file_and_says_why_it_ended(truvar):
    _, err = truvar("run", "line.db", "--command", "false {x}", "--quiet")
    study = opened()
    assert len(study.failures) == 3  # one more than max_failures allows
    assert "failed 2 times" in err
    out, _ = truvar(
        "run",
        "line.db",
        "--command",
        "false {x}",
        "--quiet",
        "--max-failures",
        "0",
        "--retries",
        "0",
        "--json",
    )
    assert len(opened().failures) == 4
    assert json.loads(out)["result"]["failed"] == 4
    _, err = truvar("run", "line.db", "--command", "false {x}", "--max-failures", "-1", code=1)
    assert "--max-failures must be >= 0" in err


def test_a_typing_mistake_is_told_with_a_warning(truvar):
    truvar("ask")
    _, err = truvar("tell", "1", "73")
    assert "standard deviations from the expected" in err
    assert "correct it: truvar correct 1 VALUE" in err
    data = json.loads(truvar("tell", "x=0", "80", "--json")[0])
    assert "truvar correct 2 VALUE" in data["warnings"][0]


def test_an_absent_option_has_the_default_of_the_command() -> None:
    @dataclass(frozen=True)
    class Move(commands.Command):
        what: int
        cost: float = 2.5
        reason: str | None = None
        again: bool = False

    def given(*words: str) -> dict[str, object]:
        parser = argparse.ArgumentParser()
        add_options(parser, Move)
        return given_options(parser.parse_args(words), Move)

    assert given() == {"cost": 2.5, "reason": None, "again": False}
    assert given("--cost", "1", "--again") == {"cost": 1.0, "reason": None, "again": True}
