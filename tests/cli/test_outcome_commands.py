"""Yes or no and counts on the command line: `init`, `new`, `tell`, `correct`, `status`, `report`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from truvar.cli import main
from truvar.study.stored import load

TONES = """
name = "tones"
outcome = "binary"
[domain]
grid = {x = [0, 1, 9]}
[goal]
level_set = 0.6
"""
PLANTS = TONES.replace("tones", "plants").replace('"binary"', '{kind = "count", exposure = 2.0}')


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TRUVAR_STORE", raising=False)
    Path("tones.toml").write_text(TONES)
    Path("plants.toml").write_text(PLANTS.replace("0.6", "3.0"))


def test_answers_are_told_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", "tones.toml"]) == 0
    summary = " ".join(capsys.readouterr().out.split())
    assert "a measurement gives yes or no" in summary
    assert "where is the probability of yes above 0.6?" in summary
    assert main(["ask"]) == 0
    assert "yes or no" in capsys.readouterr().out
    assert main(["tell", "1", "yes"]) == 0
    assert main(["tell", "x=0", "no", "x=0.25", "false", "x=1", "TRUE", "x=0.75", "1"]) == 0
    values = load("sqlite:///tones.db", "tones").measurements["value"].tolist()
    assert values == [1.0, 0.0, 0.0, 1.0, 1.0]
    assert main(["correct", "1", "no"]) == 0
    assert load("sqlite:///tones.db", "tones").measurements["value"].tolist()[0] == 0.0
    Path("today.csv").write_text("x,value\n0.5,yes\n0.125,no\n")
    assert main(["tell", "--csv", "today.csv"]) == 0
    capsys.readouterr()
    assert main(["status"]) == 0
    assert "the function is the probability of yes" in " ".join(capsys.readouterr().out.split())
    assert main(["status", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["settings"]["outcome"]["guess"] == 0.0
    assert main(["report", "--out", "report.html"]) == 0
    assert "probability of yes" in Path("report.html").read_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["tell", "1", "2"], "a value is yes or no, or 1 or 0, got 2"),
        (["tell", "1", "perhaps"], "must be a finite number, got 'perhaps'"),
        (["tell", "1", "yes", "--noise", "0.1"], "has no noise variance"),
        (["tell", "1", "yes", "--exposure", "2"], "have an exposure"),
        (["tell", "1", "yes", "x=0", "0.5"], "a value is yes or no, or 1 or 0, got 0.5"),
    ],
)
def test_what_is_no_answer_is_refused(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["new", "tones.toml"]) == 0
    assert main(["ask"]) == 0
    assert main(words) == 1
    assert message in capsys.readouterr().err
    assert load("sqlite:///tones.db", "tones").steps == 0


def test_counts_have_an_exposure(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", "plants.toml"]) == 0
    assert main(["tell", "x=0", "7", "--exposure", "0.5"]) == 0
    assert main(["tell", "x=1", "3"]) == 0
    study = load("sqlite:///plants.db", "plants")
    assert [each.exposure for each in study.measurement_records()] == [0.5, None]
    for words in (["x=0.5", "-1"], ["x=0.5", "1.5"], ["x=0.5", "yes"]):
        assert main(["tell", *words]) == 1
    assert main(["tell", "x=0.5", "1", "--exposure", "0"]) in (1, 2)
    assert load("sqlite:///plants.db", "plants").steps == 2
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize(("outcome", "threshold"), [("binary", "0.75"), ("count", "3")])
def test_init_writes_the_outcome(outcome: str, threshold: str) -> None:
    Path("places.csv").write_text("x,y\n" + "".join(f"{i},{i % 3}\n" for i in range(12)))
    words = ["init", "places.csv", "--goal", "above", "--threshold", threshold, "--defaults"]
    assert main([*words, "--outcome", outcome]) == 0
    text = Path("places.toml").read_text()
    assert f'outcome = "{outcome}"' in text
    assert "[noise]" not in text
    assert main(["new", "places.toml", "--check"]) == 0


def test_a_table_of_probabilities_is_backtested(capsys: pytest.CaptureFixture[str]) -> None:
    rows = "".join(f"{i / 19:.4f},{0.1 + 0.8 * i / 19:.4f}\n" for i in range(20))
    Path("answers.csv").write_text(f"x,p\n{rows}")
    table = 'table = "answers.csv"\ncolumns = ["x"]'
    Path("table.toml").write_text(TONES.replace("grid = {x = [0, 1, 9]}", table))
    words = ["backtest", "table.toml", "--truth", "p", "--policies", "auto", "--replicates", "1"]
    assert main([*words, "--budget", "8", "--json"]) == 0
    assert "auto" in capsys.readouterr().out
