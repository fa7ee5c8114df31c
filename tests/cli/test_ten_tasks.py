"""Ten tasks from the command line: create, ask, tell, correct, exclude, fail, stop, report,
export, resume."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from truvar.cli import main

PROBLEM = """
name = "pond"
[domain]
grid = {x = [0, 2, 9], y = [0, 1, 5]}
[goal]
level_set = 0.8
[model]
kernel = "rbf"
lengthscales = [0.6, 0.6]
mean = 0
[noise]
variance = 0.01
"""


@pytest.fixture
def truvar(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Any:
    monkeypatch.chdir(tmp_path)
    Path("pond.toml").write_text(PROBLEM)

    def call(*words: str) -> Any:
        assert main([*words]) == 0
        out = capsys.readouterr().out
        return json.loads(out) if "--json" in words else out

    return call


def test_ten_tasks(truvar: Any) -> None:
    assert "created study 'pond' in pond.db" in truvar("new", "pond.toml")  # create
    asked = truvar("ask", "--json")["suggestions"][0]  # ask
    assert asked["id"] == 1
    assert truvar("tell", "1", "7,5").startswith("told 1: ")  # tell, with a decimal comma
    assert truvar("correct", "1", "0.75").startswith("corrected 1: ")  # correct
    excluded = truvar("exclude", "x > 1.4", "--reason", "under a jetty", "--json")  # exclude
    assert excluded["result"]["excluded"] == 15
    second = truvar("ask", "--json")["suggestions"][0]
    assert second["point"]["x"] <= 1.4
    failed = truvar("fail", str(second["id"]), "--reason", "probe stuck", "--json")  # fail
    assert failed["result"]["failed"] == 1
    run = truvar(
        "run", "pond.db", "--command", "echo {x}", "--steps", "4", "--quiet", "--json"
    )  # stop
    assert run["result"]["reason"] == "step limit (4) reached"
    assert truvar("report", "--report", "monday.html") == "report: monday.html\n"  # report
    text = Path("monday.html").read_text()
    assert "under a jetty" in text
    assert "probe stuck" in text
    exported = truvar("export", "--json")  # export
    assert exported["name"] == "pond"
    Path("pond.json").write_text(json.dumps(exported))
    status = truvar(
        "status", "--json"
    )  # resume: every command opens the stored study where the last one left it
    assert status["result"]["steps"] == 4
    Path("pond.db").unlink()
    truvar("import", "pond.json", "--store", "pond.db")
    assert truvar("status", "--json")["result"]["steps"] == 4
    assert truvar("ask", "--json")["suggestions"][0]["id"] > 4
