"""The field crew's command line: a campaign from `new` to `report` on a real SQLite file, and
its mistakes."""

from __future__ import annotations

import io
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from truvar.cli import COMMANDS, main
from truvar.cli._store import store_label
from truvar.cli.completion import SHELLS, completion_script
from truvar.models.priors import Learned
from truvar.storage.rdb import RDBStorage
from truvar.study.stored import load, studies

SINE = """
name = "sine"
[domain]
grid = {x_m = [0, 6, 25]}
[goal]
level_set = 0.5
[model]
kernel = "rbf"
lengthscales = [1.0]
mean = 0.0
[noise]
variance = 0.01
[cost]
base = 2.0
travel = {x_m = 1.0}
[run]
budget = 60
"""

Truvar = Callable[..., str]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TRUVAR_STORE", raising=False)
    Path("sine.toml").write_text(SINE)
    return tmp_path


@pytest.fixture
def truvar(folder: Path, capsys: pytest.CaptureFixture[str]) -> Truvar:
    """A command that must succeed; what it printed."""

    def run(*words: str) -> str:
        capsys.readouterr()
        code = main(list(words))
        captured = capsys.readouterr()
        assert code == 0, captured.err
        return captured.out

    return run


@pytest.fixture
def refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> Truvar:
    """A command that must be refused, in one line; the line."""

    def run(*words: str) -> str:
        capsys.readouterr()
        assert main(list(words)) == 1
        captured = capsys.readouterr()
        assert captured.out == ""
        (line,) = captured.err.splitlines()
        assert line.startswith("truvar: ")
        return line

    return run


@pytest.fixture
def begun(truvar: Truvar) -> Truvar:
    truvar("new", "sine.toml")
    return truvar


def as_json(text: str) -> Any:
    return json.loads(text)


# -- the whole way
# --------------------------------------------------------------------------------------------------


def test_a_campaign_from_new_to_report_in_words(truvar: Truvar) -> None:
    said = truvar("new", "sine.toml")
    assert "where is the value above 0.5?" in said
    assert "25 points of a grid: x_m from 0 to 6" in said
    assert "2 each, plus 1 per unit of x_m travelled" in said
    assert "created study 'sine' in sine.db; next: truvar ask sine.db" in said
    assert Path("sine.db").exists()
    card = truvar("ask")
    assert card.startswith("suggestion 1\n")
    for part in (
        "x_m 3",
        "± 0.1",
        "not decided yet",
        "expected to decide about",
        "truvar tell 1 VALUE",
    ):
        assert part in " ".join(card.split())
    assert truvar("tell", "1", "0.1").startswith("told 1: above 0, below ")
    assert truvar("tell", "x_m=1.5", "-0.9").startswith("told 2: ")
    assert truvar("correct", "2", "0.99").startswith("corrected 2: ")
    truvar("ask", "-n", "2")
    assert truvar("withdraw", "3").startswith("withdrawn 3: ")
    assert truvar("note", "the", "probe was cleaned") == "noted\n"
    status = truvar("status")
    for part in (
        "measured     2 times",
        "spent of 60",
        "left",
        "pending      4:",
    ):
        assert part in status
    assert "· undecided: " in status
    assert "(each with at least 95 %" in status
    assert "H (above)" not in status
    jargon = r"\bregime\b|\bepsilon\b|\bh\b|posterior mean|\bengine\b|[Ll]emma|Theorem"
    for text in (said, card, status):
        assert re.search(jargon, text) is None
    assert "regime     heuristic" in truvar("status", "--theorem")
    assert truvar("report", "--theorem") == "report: sine.html\n"
    assert "regime" in Path("sine.html").read_text()
    assert truvar("report") == "report: sine.html\n"
    page = Path("sine.html").read_text()
    assert (
        re.search(
            jargon,
            re.sub(r"<style>.*?</style>|base64,[A-Za-z0-9+/=]+|<[^>]*>", " ", page, flags=re.S),
        )
        is None
    )
    assert "the probe was cleaned" in page
    assert "2 corrected to 0.99" in page


def test_every_answer_comes_as_json_too(truvar: Truvar, capsys: pytest.CaptureFixture[str]) -> None:
    new = as_json(truvar("new", "sine.toml", "--json"))
    assert new["store"] == "sqlite:///sine.db"
    assert (new["limits"], new["warnings"]) == ({"budget": 60}, [])
    (asked,) = as_json(truvar("ask", "--json"))["suggestions"]
    assert asked["id"] == 1
    assert 0 < asked["lookahead"]["variance_reduction"] < 1
    assert asked["lookahead"]["expected_decided"] > 0
    assert asked["expected"]["mean"] == 0.0
    answer = as_json(truvar("tell", "1", "0.2", "--json"))
    assert answer["told"] == [1]
    assert answer["result"]["steps"] == 1
    assert as_json(truvar("correct", "1", "0.3", "--json"))["corrected"] == 1
    assert as_json(truvar("note", "x", "--json"))["noted"] == "x"
    truvar("ask")
    assert as_json(truvar("withdraw", "2", "--json"))["withdrawn"] == [2]
    status = as_json(truvar("status", "--json"))
    assert status["engine"] == "dense"
    assert status["limits"] == {"budget": 60}
    assert status["left"] == 60 - status["result"]["spent"]
    assert status["result"]["certificate"]["regime"] == "heuristic"
    assert as_json(truvar("report", "--json")) == {"report": "sine.html"}
    whole = truvar("export", "--json")
    assert [event["kind"] for event in as_json(whole)["events"]][:2] == ["created", "asked"]
    Path("copy.json").write_text(whole)
    assert as_json(truvar("import", "copy.json", "--json"))["measurements"] == 1
    run = as_json(
        truvar("run", "sine.db", "--command", "echo 0.1", "--steps", "3", "--quiet", "--json")
    )
    assert (run["measured"], run["result"]["steps"]) == (2, 3)


def test_a_study_that_is_finished_says_so_and_that_is_no_mistake(truvar: Truvar) -> None:
    Path("sine.toml").write_text(SINE.replace("level_set = 0.5", "level_set = 40.0"))
    assert "40.0 standard deviations above the mean 0" in truvar("new", "sine.toml")
    truvar("tell", "x_m=3", "0.0")
    assert "nothing to measure: every point is classified" in truvar("ask")
    reason = "every point is classified with 99.7 % probability, given the model"
    assert as_json(truvar("ask", "--json")) == {"suggestions": [], "finished": reason}


def test_each_command_explains_itself_with_examples(capsys: pytest.CaptureFixture[str]) -> None:
    for command in COMMANDS:
        with pytest.raises(SystemExit) as end:
            main([command.name, "--help"])
        said = capsys.readouterr().out
        assert end.value.code == 0
        for line in command.example.splitlines():
            assert line in said


def test_new_describes_the_tasks_of_a_problem(truvar: Truvar) -> None:
    tasks = "[tasks]\nnames = ['algae', 'colour']\ncovariance = [[1.0, 1.6], [1.6, 4.0]]\ncost = [5, 1]\n"
    Path("tasks.toml").write_text(SINE + tasks)
    said = " ".join(truvar("new", "tasks.toml", "--check").split())
    assert (
        "tasks algae (the target, cost 5); can be measured instead: colour (correlation 0.8, cost "
        "1)" in said
    )
    assert "noise standard deviation ± 0.1" in said
    assert (
        "cost that of the task, plus 1 per unit of x_m travelled; the first measurement 1 to 5"
        in said
    )
    Path("tasks.toml").write_text(SINE + tasks + "noise = [0.01, 0.25]\n")
    said = " ".join(truvar("new", "tasks.toml", "--check").split())
    assert (
        "algae (the target, ± 0.1, cost 5); can be measured instead: colour (correlation 0.8, ± "
        "0.5, cost 1)" in said
    )
    assert "noise that of the task" in said


def test_new_describes_tasks_that_are_learned(truvar: Truvar) -> None:
    learned = SINE.replace(
        "lengthscales = [1.0]\nmean = 0.0\n[noise]\nvariance = 0.01", 'transform = "auto"'
    )
    Path("tasks.toml").write_text(learned + "[tasks]\nnames = ['algae', 'colour']\n")
    said = " ".join(truvar("new", "tasks.toml", "--check").split())
    assert "algae (the target); can be measured instead: colour (correlation learned)" in said
    assert "learned from the values as they come" in said
    assert "power" not in said


def test_tasks_with_noise_levels_are_run_and_reported(truvar: Truvar) -> None:
    levels = SINE.replace(
        "variance = 0.01", "levels = [{variance = 1e-4, cost = 3}, {variance = 0.05, cost = 0}]"
    )
    levels += (
        "[tasks]\nnames = ['algae', 'colour']\ncost = [5, 1]\nnoise = [[1e-4, 0.05], [0.01, 4]]\n"
    )
    Path("tasks.toml").write_text(levels)
    said = " ".join(truvar("new", "tasks.toml", "--store", "tasks.db").split())
    assert "algae (the target, ± 0.01 or ± 0.224, cost 5)" in said
    assert "colour (correlation learned, ± 0.1 or ± 2, cost 1)" in said
    assert "noise that of the task, at levels to choose from for an additional cost of 3, 0" in said
    shell = "test {task} = algae && echo 1.{level} || echo 20{level}"
    truvar("run", "tasks.db", "--command", shell, "--shell", "--steps", "8", "--quiet")
    measured = truvar("status", "tasks.db")
    assert "correlation with algae, as learned: colour" in " ".join(measured.split())
    learned = as_json(truvar("status", "tasks.db", "--json"))["learned_tasks"]
    assert [row["name"] for row in learned] == ["algae", "colour"]
    assert learned[1]["noise"] == [0.01, 4]
    truvar("tell", "x_m=1.5", "0.7", "--level", "1", "--task", "colour", "--store", "tasks.db")


@pytest.mark.parametrize("policy", ["auto", "truvar"])
def test_a_stored_study_with_a_named_kernel_needs_few_libraries(
    truvar: Truvar, policy: str
) -> None:
    Path("sine.toml").write_text(f'{SINE}[policy]\nname = "{policy}"\n')
    truvar("new", "sine.toml")
    truvar("ask")
    slow = ("sklearn", "pandas", "scipy.stats", "scipy.optimize", "scipy.fft", "sqlalchemy.orm")
    code = (
        "import sys, truvar.cli\n"
        "for words in (['status'], ['tell', '1', '0.5'], ['ask']):\n"
        "    truvar.cli.main(words)\n"
        f"    print('needed:', *[name for name in {slow} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    needed = [line.split()[1:] for line in done.stdout.splitlines() if line.startswith("needed:")]
    assert needed == [[], [], []]


@pytest.mark.parametrize(
    ("options", "versions"), [(["--json"], [3]), ([], [2, 3])], ids=["json", "text"]
)
def test_a_command_builds_the_result_of_a_state_once(
    begun: Truvar, monkeypatch: pytest.MonkeyPatch, options: list[str], versions: list[int]
) -> None:
    from truvar.study.study import Study

    built: list[int] = []
    original = Study.result

    def result(study: Study) -> Any:
        built.append(study.version)
        return original(study)

    begun("ask")
    monkeypatch.setattr(Study, "result", result)
    begun("tell", "1", "0.5", *options)
    assert built == versions  # the text compares the result with that before the value


def test_a_command_opens_the_store_once_and_builds_one_model(
    begun: Truvar, monkeypatch: pytest.MonkeyPatch
) -> None:
    from truvar.models.surrogate import Surrogate
    from truvar.storage.rdb import RDBStorage

    begun("ask")
    made: list[str] = []
    for cls in (RDBStorage, Surrogate):
        before = cls.__init__

        def counted(
            self: Any, *given: Any, _before: Any = before, _name: str = cls.__name__, **options: Any
        ) -> None:
            made.append(_name)
            _before(self, *given, **options)

        monkeypatch.setattr(cls, "__init__", counted)
    for words in (
        ["tell", "1", "0.5"],
        ["status"],
        ["ask"],
        ["new", "sine.toml", "--store", "other.db"],
    ):
        made.clear()
        begun(*words, *([] if words[0] == "new" else ["--store", "sine.db"]))
        assert sorted(made) == ["RDBStorage", "Surrogate"], words


# -- export and import
# -------------------------------------------------------------------------------------------------


def test_a_study_that_went_through_a_file_goes_on_as_it_would_have(begun: Truvar) -> None:
    begun("tell", "x_m=1.5", "0.9", "x_m=4.5", "-0.9")
    begun("ask", "-n", "2")
    begun("tell", "3", "0.2")
    begun("note", "half time")
    assert begun("export", "-o", "there.json") == "the study with its 7 events: there.json\n"
    said = begun("import", "there.json", "back.db", "--name", "again")
    assert said == "study 'again' with 7 events stored in back.db\n"
    before = load("sqlite:///sine.db", "sine")
    after = load("sqlite:///back.db", "again")
    assert as_json(before.to_json())["events"] == as_json(after.to_json())["events"]
    assert before.measurements.equals(after.measurements)
    assert begun("ask", "sine.db", "--json") == begun("ask", "back.db", "--json")


def test_measurements_go_through_csv_once(begun: Truvar) -> None:
    begun("ask")
    begun("tell", "1", "0.123456789012345678", "--cost", "3.3", "--noise", "0.02")
    begun("tell", "x_m=1.5", "0.9")
    Path("told.csv").write_text(begun("export"))
    again = begun("import", "told.csv")
    assert again.startswith(
        "2 measurements read, 0 of them new; lines 2, 3 were told before and left out"
    )
    begun("new", "sine.toml", "--store", "other.db", "--name", "other")
    assert begun("import", "told.csv", "other.db") == "2 measurements read, 2 of them new\n"
    mine = load("sqlite:///sine.db", "sine").measurements
    other = load("sqlite:///other.db", "other").measurements
    assert mine.equals(other)


# -- telling
# --------------------------------------------------------------------------------------------------


def test_values_are_told_in_any_number_and_way_at_once(begun: Truvar) -> None:
    begun("ask", "-n", "3")
    begun("tell", "2", "-1e-3", "x_m=0.5", "0.4", "1", "-.5")
    measurements = load("sqlite:///sine.db", "sine").measurements
    assert list(measurements["id"]) == [2, 4, 1]
    assert list(measurements["value"]) == [-1e-3, 0.4, -0.5]


def test_to_tell_the_same_again_changes_nothing(begun: Truvar, refused: Truvar) -> None:
    begun("ask")
    begun("tell", "1", "0.25")
    begun("tell", "1", "0.25")
    assert len(load("sqlite:///sine.db", "sine").measurements) == 1
    assert "suggestion 1 already has the value 0.25, got 0.5" in refused("tell", "1", "0.5")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["tell"], "give ID VALUE, or coordinates and a value: x_m=... VALUE"),
        (["tell", "1"], "the value of suggestion 1 is missing"),
        (["tell", "7", "0.5"], "7 is not pending (pending: 1, 2)"),
        (["tell", "one", "0.5"], "must be a whole number, got 'one'"),
        (["tell", "1", "high"], "must be a finite number, got 'high'"),
        (["tell", "1", "nan"], "must be a finite number, got 'nan'"),
        (["tell", "1", "0.5", "9", "0.5"], "9 is not pending (pending"),
        (["tell", "depth=3", "0.5"], "unknown coordinate 'depth'; expected one of x_m"),
        (["tell", "x_m=3,y_m=4", "0.5"], "separate words, got 'x_m=3,y_m=4'"),
        (["tell", "x_m=3", "x_m=4", "0.5"], "expected a value before 'x_m=4'"),
        (["tell", "x_m=33", "0.5"], "33"),
        (["tell", "x_m=3"], "the value of the last point is missing"),
        (["tell", "1", "0.5", "--csv", "no.csv"], "got both; leave out one of them"),
        (["tell", "1", "0.5", "--level", "1"], "has its own level and task"),
        (["tell", "--csv", "no.csv"], "no.csv cannot be read (No such file or directory)"),
        (["correct", "1"], "correct expects ID VALUE, got 1"),
        (["correct", "1", "0.3"], "1 is not one"),
        (["withdraw"], "expects at least one id, got none"),
        (["withdraw", "first"], "expects ids, got 'first'"),
        (["withdraw", "1", "9"], "9 is not pending (pending"),
        (["note"], "a note needs a text"),
        (["ask", "--name", "lake"], "there is no study 'lake' in the store"),
        (["ask", "no.db"], "there is no store"),
        (["ask", "sine"], "expected a store such as lake.db or a URL, got sine"),
        (["ask", "sine.toml"], "sine.toml is a problem file; create a study with truvar new"),
        (["status", "sine.db", "--store", "sine.db"], "the store is given twice"),
        (["new", "sine.toml"], "already has a study 'sine'"),
        (["new", "sine.db"], "got the store sine.db; give a .toml file"),
        (["import", "sine.toml"], "line 1: unknown column"),
        (["run", "--truth", "x"], "needs a problem file"),
        (["run", "sine.db", "--command", "echo {depth}"], "unknown name {depth} in the command; expected one of {x_m}"),
        (["run", "sine.db", "--command", "echo 1", "--seed", "1"], "--seed belongs to --truth"),
        (["export", "-o", "nowhere/x.csv"], "cannot be written"),
        (["report", "-o", "nowhere/x.html"], "cannot write the report"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line_and_changes_nothing(
    begun: Truvar, refused: Truvar, words: list[str], message: str
) -> None:
    begun("ask", "-n", "2")
    before = begun("export", "--json")
    assert message in refused(*words)
    assert begun("export", "--json") == before


def test_a_value_far_from_what_was_expected_is_asked_about(
    begun: Truvar, capsys: pytest.CaptureFixture[str]
) -> None:
    begun("tell", "x_m=3", "0.1")
    begun("ask")
    assert main(["tell", "2", "72"]) == 0
    captured = capsys.readouterr()
    assert "told 2" in captured.out
    assert re.search(r"72 is \d+\.\d standard deviations from the expected", captured.err)
    assert "truvar correct 2 VALUE" in captured.err
    begun("correct", "2", "0.72")
    (asked,) = as_json(begun("ask", "--json"))["suggestions"]
    as_expected = as_json(begun("tell", str(asked["id"]), str(asked["expected"]["mean"]), "--json"))
    assert as_expected["warnings"] == []
    assert capsys.readouterr().err == ""
    begun("ask")
    (warning,) = as_json(begun("tell", "4", "72", "--json"))["warnings"]
    assert "truvar correct 4 VALUE" in warning


# -- from a CSV
# --------------------------------------------------------------------------------------------------


def test_a_point_can_be_told_with_the_digits_of_its_card(truvar: Truvar, refused: Truvar) -> None:
    Path("thirds.csv").write_text(
        "x,y\n0.123456789,-1\n333.3333333,0\n333.3333334,0\n123456.789,0.5\n"
    )
    Path("thirds.toml").write_text(
        "[domain]\ntable = 'thirds.csv'\n[goal]\nmaximize = true\n[model]\nlengthscales = [9.0, "
        "9.0]\nmean = 0.0\n"
        "[noise]\nvariance = 0.1\n"
    )
    truvar("new", "thirds.toml")
    truvar("tell", "x=0.123457", "y=-1", "0.5")
    Path("day.csv").write_text("x,y,value\n123457,0.5,0.7\n")
    truvar("tell", "--csv", "day.csv")
    assert load("sqlite:///thirds.db", "thirds").measurements["index"].tolist() == [0, 3]
    for x in (
        "0.12346",
        "0.123458",
        "333.333",
    ):  # fewer digits, other ones, and two points that it could be
        assert f"x={x} y=" in refused("tell", f"x={x}", "y=0", "0.5")


def test_a_csv_tells_by_id_or_by_coordinates(
    begun: Truvar, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun("ask", "-n", "2")
    Path("ids.csv").write_text("\ufeffid,value,cost\n2,0.5,\n1,-0.25,9\n\n")
    begun("tell", "--csv", "ids.csv")
    monkeypatch.setattr(sys, "stdin", io.StringIO("x_m,value,noise\n1.5,0.9,0.04\n4.5,-0.9,\n"))
    assert begun("tell", "--csv", "-").startswith("told 3, 4: ")
    measurements = load("sqlite:///sine.db", "sine").measurements
    assert list(measurements["id"]) == [2, 1, 3, 4]
    assert list(measurements["value"]) == [0.5, -0.25, 0.9, -0.9]
    assert measurements["cost"][1] == 9
    assert list(measurements["noise"][2:]) == [0.04, 0.01]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ("id\n1\n", "line 1: column 'value' is missing"),
        ("value\n1\n", "line 1: expected a column 'id' or all coordinates, but x_m is missing"),
        ("id,value,wind\n1,2,3\n", "line 1: unknown column 'wind'"),
        ("id,value,value\n1,2,3\n", "line 1: column 'value' is duplicated"),
        ("id,value\n1,0.5\n2\n", "line 3: expected 2 values, got 1"),
        ("id,value\n1,0.5\n2,high\n", "line 3: the value must be a finite number, got 'high'"),
        ("id,value\n1,0.5\n\n9,0.5\n", "line 4: suggestion 9 is not pending"),
        ("id,value\n1,0.5\n1,0.7\n", "line 3: suggestion 1 already has the value"),
        ("x_m,value\n1.5,0.5\n77,0.5\n", "line 3: "),
        ("x_m,value\n1.5,0.5\n,0.5\n", "line 3: neither an id nor all coordinates"),
        ('id,value\n1,"0.5\n', "line 2: not valid CSV"),
    ],
)
def test_a_csv_with_a_mistake_tells_nothing_and_names_the_line(
    begun: Truvar, refused: Truvar, text: str, message: str
) -> None:
    begun("ask", "-n", "2")
    before = begun("export", "--json")
    Path("today.csv").write_text(text)
    assert message in refused("tell", "--csv", "today.csv")
    assert begun("export", "--json") == before


# -- which study
# --------------------------------------------------------------------------------------------------


def test_the_study_is_found_by_word_option_environment_or_being_the_only_one(
    begun: Truvar, refused: Truvar, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert begun("ask", "--json") != ""
    begun("new", "sine.toml", "--store", "two.db", "--name", "first")
    assert "this folder has 2 stores, sine.db, two.db" in refused("status")
    ways = [
        ("two.db",),
        ("sqlite:///two.db",),
        ("--store", "two.db"),
        ("--store", "sqlite:///two.db"),
    ]
    monkeypatch.setenv("TRUVAR_STORE", "two.db")
    for way in [(), *ways]:
        assert as_json(begun("status", *way, "--json"))["name"] == "first"
        begun("note", *way, "here")
    assert list(studies("sqlite:///two.db")["name"]) == ["first"]
    begun("new", "sine.toml", "--store", "two.db", "--name", "second")
    assert "must have exactly one study, got 'first', 'second'; give --name first" in refused("ask")
    assert "truvar tell two.db --name second 1 VALUE" in begun("ask", "two.db", "--name", "second")


def test_without_any_store_the_way_to_begin_is_shown(refused: Truvar) -> None:
    assert "create a study with truvar new PROBLEM.toml" in refused("status")


def test_the_event_log_has_the_author_of_every_change(begun: Truvar) -> None:
    begun("ask", "--who", "anna", "--lease", "2h")
    begun("tell", "1", "0.5", "--author", "ben")
    events = load("sqlite:///sine.db", "sine").events
    assert list(events["who"][1:]) == ["anna", "ben"]
    assert events["details"][1]["until"] is not None


SECRETS = [
    "postgresql://anna:geheim@127.0.0.1:1/lake",
    "postgresql://anna:ge/he@geheim@127.0.0.1:1/lake",
    "postgresql://anna@127.0.0.1:1/lake?password=geheim",
    "postgresql://127.0.0.1:1/lake?user=anna&password=ge@geheim&sslmode=disable",
    "postgresql://127.0.0.1:1/lake?pass%77ord=geheim",
    "postgresql://anna@127.0.0.1:1/lake?sslpassword=geheim",
    "postgresql://anna:?geheim@127.0.0.1:1/lake",
    "mysql://anna:geheim@127.0.0.1/lake?password=geheim",
    "postgresql://anna:geheim@127.0.0.1:port/lake",
]


@pytest.mark.parametrize("url", SECRETS)
@pytest.mark.parametrize(
    "command",
    [
        ["status", "URL"],
        ["check", "URL"],
        ["token", "list", "URL"],
        ["backup", "URL", "copy.db"],
        ["ask", "URL", "--store", "URL"],
        ["status", "URL", "--json"],
    ],
)
def test_no_command_shows_the_password_of_a_store(
    url: str, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([word.replace("URL", url) for word in command]) != 0
    captured = capsys.readouterr()
    assert "geheim" not in captured.out + captured.err


def test_a_store_with_its_password_among_the_parameters_has_it_hidden() -> None:
    storage = RDBStorage("postgresql://host/lake?user=anna&password=geheim")
    assert (
        "geheim" not in f"{storage.label} {storage.url!r} {storage.url} {store_label(SECRETS[3])}"
    )
    assert storage.url.password == "geheim"


def test_a_password_in_a_url_is_not_shown() -> None:
    assert store_label("postgresql://anna:secret@host/lake") == "postgresql://host/lake"


# -- new
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "warning"),
    [
        ("lengthscales = [1.0]", "lengthscales = [0.01]", "are unrelated"),
        (
            "lengthscales = [1.0]",
            "lengthscales = [500.0]",
            "nothing changes over the whole range of 6",
        ),
        (
            "variance = 0.01",
            "variance = 2.0",
            "the smallest noise (variance 2) is larger than the signal",
        ),
        ("level_set = 0.5", "level_set = -6.0", "6.0 standard deviations below the mean"),
        (
            "budget = 60",
            "budget = 1",
            "does not pay for a single measurement, the cheapest costs 2",
        ),
    ],
)
def test_new_warns_of_what_is_likely_a_mistake(
    truvar: Truvar, old: str, new: str, warning: str
) -> None:
    Path("odd.toml").write_text(SINE.replace(old, new))
    assert f"warning: {warning[:20]}" in truvar("new", "odd.toml", "--check") or warning in truvar(
        "new", "odd.toml", "--check"
    )
    (said,) = as_json(truvar("new", "odd.toml", "--check", "--json"))["warnings"]
    assert warning in said
    assert not Path("odd.db").exists()


def test_new_says_what_is_odd_about_the_table(truvar: Truvar) -> None:
    Path("moist.csv").write_text("x,moisture\n1,10%\n2,20%\n")
    Path("moist.toml").write_text('[domain]\ntable = "moist.csv"\n[goal]\nmaximize = true\n')
    assert "warning: column 'moisture' holds numbers with a unit" in truvar(
        "new", "moist.toml", "--check"
    )
    (said,) = as_json(truvar("new", "moist.toml", "--check", "--json"))["warnings"]
    assert "such as '10%'" in said


@pytest.mark.parametrize(
    ("part", "words"),
    [
        (
            "[noise]\nlevels = [{variance = 0.01, cost = 5}, {variance = 0.04, cost = 1}]",
            "± 0.1 at cost 5, ± 0.2 at cost 1",
        ),
        ("[model]\nkernel = 'matern32'\nrefit_every = 4", "matern32, learned from the values as they come, again"),
        (
            "[model]",
            "matern52, learned from the values as they come; averaged over the plausible "
            "hyperparameters; the first "
            f"{Learned().initial_size(1, 25)} measurements are spread over the domain; values are "
            "modelled as a power of "
            "them if they call for one",
        ),
        ("[model]\ntransform = 'log'\ninitial = 8", "the first 8 measurements are spread over the domain; values are"),
        ("[model]\nmarginalise = false", "as they come, again after every 3; the most probable hyperparameters count"),
        ("[model]\nkernel = 'rbf'\nmean = 'x_m'", "rbf for the deviations from column x_m, learned from the values"),
        ("[model]\nlengthscales = 1\nmean = 'x_m'", "values lie within about ± 2 around column x_m"),
        ("[model]\nlengthscales = 1", "noise learned from the values as they come"),
        ("[policy]\nname = 'gchk/cost'", "GCHK (per_cost=True)"),
        ("[goal]\nfraction_of_max = 0.8", "where is the value above 80 % of its maximum?"),
        ("[goal]\nminimize = true", "where is the value lowest?"),
    ],
)  # fmt: skip
def test_new_says_what_it_understood(truvar: Truvar, part: str, words: str) -> None:
    section = part.splitlines()[0]
    kept = [piece for piece in SINE.split("\n[") if f"[{piece}".split("\n")[0] != section]
    if section == "[model]":
        kept = [piece for piece in kept if not piece.startswith("noise")]
    Path("other.toml").write_text("\n[".join(kept) + f"\n{part}\n")
    assert words in " ".join(truvar("new", "other.toml", "--check").split())


# -- completion
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes_commands_and_options(shell: str, tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    source = tmp_path / "complete"
    source.write_text(completion_script(shell, COMMANDS))
    ask = {
        "bash": f"source {source}; COMP_WORDS=(truvar ask --le); COMP_CWORD=2; _shtab_truvar; echo ${{COMPREPLY[@]}}",
        "zsh": f"zsh -n {source} && grep -o -- --lease {source} | head -1",
        "fish": f"source {source}; complete -C 'truvar ask --le'",
    }[shell]
    done = subprocess.run([shell, "-c", ask], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("--lease")
    assert done.stderr == ""


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
def test_bash_completes_file_names(folder: Path) -> None:
    Path("complete").write_text(completion_script("bash", COMMANDS))
    for words in ("truvar new sin", "truvar ask --store sin", "truvar tell --csv sin"):
        count = len(words.split()) - 1
        ask = f"source complete; COMP_WORDS=({words}); COMP_CWORD={count}; _shtab_truvar; echo ${{COMPREPLY[@]}}"
        done = subprocess.run(["bash", "-c", ask], capture_output=True, text=True, check=True)
        assert done.stdout.split() == ["sine.toml"], words


@pytest.mark.parametrize("shell", SHELLS)
def test_completion_knows_every_command_and_option(truvar: Truvar, shell: str) -> None:
    script = truvar("completion", shell)
    for word in (*(command.name for command in COMMANDS), "lease", "retries", "epsilon"):
        assert word in script


def test_importing_a_file_twice_is_noticed_and_doubles_nothing(truvar: Truvar) -> None:
    truvar("new", "sine.toml")
    Path("day.csv").write_text("x (m);value;\n0;0,5;\n1,5;0,25;\n")
    assert "2 measurements read, 2 of them new" in truvar("import", "day.csv")
    again = truvar("import", "day.csv")
    assert (
        "2 measurements read, 0 of them new; lines 2, 3 were told before and left out (--again"
        in again
    )
    assert json.loads(truvar("import", "day.csv", "--json"))["left_out"] == [2, 3]
    Path("day.csv").write_text("x (m);value;\n0;0,5;\n1,5;0,25;\n3;0,75;\n")
    assert "3 measurements read, 1 of them new" in truvar("import", "day.csv")
    assert "3 measurements read, 3 of them new" in truvar("import", "day.csv", "--again")
    assert load("sqlite:///sine.db").steps == 6


def test_telling_a_file_twice_warns(truvar: Truvar, capsys: pytest.CaptureFixture[str]) -> None:
    truvar("new", "sine.toml")
    Path("day.csv").write_text("x_m,algae\n0,0.5\n")
    truvar("tell", "--csv", "day.csv", "--value", "algae")
    assert main(["tell", "--csv", "day.csv", "--value", "algae"]) == 0
    assert "line 2 was told before and left out" in capsys.readouterr().err
    assert load("sqlite:///sine.db").steps == 1


def test_measurements_go_to_a_workbook_and_back(truvar: Truvar) -> None:
    pytest.importorskip("openpyxl", reason="needs truvar[excel]")
    truvar("new", "sine.toml")
    truvar("tell", "x_m=0", "0.5")
    assert truvar("export", "-o", "m.xlsx").strip() == "1 measurement: m.xlsx"
    assert "1 measurements read, 0 of them new" in truvar("import", "m.xlsx")
    assert truvar("export", "all.xlsx").strip() == "1 measurement: all.xlsx"
    sheets = pd.read_excel("all.xlsx", sheet_name=None)
    assert list(sheets) == ["measurements", "suggestions", "points", "settings"]


def test_a_workbook_without_openpyxl_names_the_extra(
    truvar: Truvar, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    truvar("new", "sine.toml")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    assert main(["export", "-o", "m.xlsx"]) == 1
    assert 'pip install "truvar[excel]"' in capsys.readouterr().err
    assert not Path("m.xlsx").exists()


@pytest.fixture
def named_stations(truvar: Truvar) -> None:
    Path("stations.csv").write_text(
        "station;east (km)\nNorth pier;0,5\nMole;1,5\n107;2,5\nBay;3,5\nBay;4,5\n"
    )
    Path("named.toml").write_text(
        '[domain]\ntable = "stations.csv"\ncolumns = ["east_km"]\nlabel = "station"\n'
        "[goal]\nmaximize = true\n[noise]\nvariance = 0.1\n"
    )
    truvar("new", "named.toml", "--store", "named.db")


@pytest.mark.usefixtures("named_stations")
def test_values_are_told_by_the_labels_of_a_table(truvar: Truvar) -> None:
    truvar(
        "tell",
        "named.db",
        "North pier",
        "2.5",
        "Mole",
        "3,5",
        "label=107",
        "4",
        "station=Mole",
        "5",
    )
    truvar("tell", "named.db", "Mole", "6", "7", "--repeats")
    told = load("sqlite:///named.db").measurements
    assert told["label"].tolist() == ["North pier", "Mole", "107", "Mole", "Mole", "Mole"]
    assert told["value"].tolist() == [2.5, 3.5, 4, 5, 6, 7]
    truvar("fail", "named.db", "North pier", "--reason", "storm")
    truvar("exclude", "named.db", "label=107")
    study = load("sqlite:///named.db")
    assert [record.point for record in study.failures] == [{"east_km": 0.5}]
    assert [each.reason for each in study.exclusions] == ["storm", None]


@pytest.mark.usefixtures("named_stations")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["North", "2.5"], "unknown label 'North'; did you mean 'North pier'?"),
        (["label=108", "2.5"], "unknown label '108'; did you mean '107'?"),
        (["Bay", "2.5"], "several rows have the label 'Bay'; give the id or all coordinates"),
        (["statoin=Mole", "2.5"], "unknown coordinate 'statoin'; did you mean 'station'?"),
        (["North pier"], "the value of 'North pier' is missing"),
        (["North pier", "nan"], "truvar fail 'North pier' --reason TEXT"),
        (["3", "nan"], "must be a finite number, got 'nan'; give one, or say that the measurement failed: "
         "truvar fail 3 --reason TEXT"),
        (["east_km=0.5", "NA"], "truvar fail east_km=0.5 --reason TEXT"),
    ],
)  # fmt: skip
def test_labels_and_values_that_cannot_be_told_are_refused(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["tell", "named.db", *words]) == 1
    assert message in capsys.readouterr().err


def test_a_correction_to_nothing_names_withdraw(
    truvar: Truvar, capsys: pytest.CaptureFixture[str]
) -> None:
    truvar("new", "sine.toml")
    truvar("tell", "x_m=1", "0.5")
    assert main(["correct", "1", "nan"]) == 1
    assert "or withdraw the measurement: truvar withdraw 1" in capsys.readouterr().err


@pytest.mark.usefixtures("named_stations")
def test_named_stations_are_shown_by_their_names(truvar: Truvar) -> None:
    shown = truvar("ask", "named.db")
    assert re.search(r"(North pier|Mole|107|Bay) \(east_km \d\.5\)", shown)
    data = json.loads(truvar("ask", "named.db", "--json"))["suggestions"][0]
    assert data["label"] in ("North pier", "Mole", "107", "Bay")
    truvar("tell", "named.db", "1", "2.5")
    assert "label" in truvar("export", "named.db").splitlines()[0]


def test_a_reference_to_raw_data_is_told_exported_and_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TRUVAR_STORE", raising=False)
    problem = 'name = "{}"\n[domain]\ngrid = {{x = [0, 1, 11]}}\n[goal]\nmaximize = true\n'
    Path("a.toml").write_text(problem.format("a"))
    Path("b.toml").write_text(problem.format("b"))
    assert main(["new", "a.toml"]) == 0
    assert main(["tell", "a.db", "x=0.5", "7.2", "--reference", "=scan/2417.h5"]) == 0
    assert main(["export", "a.db", "-o", "a.csv"]) == 0
    assert main(["new", "b.toml"]) == 0
    assert main(["tell", "b.db", "--csv", "a.csv"]) == 0
    assert load("sqlite:///b.db", "b").measurements["reference"].tolist() == ["=scan/2417.h5"]
    assert "'=scan/2417.h5" in Path("a.csv").read_text()  # no formula for a spreadsheet
    capsys.readouterr()
    assert main(["tell", "a.db", "x=0.7", "7.2", "--reference", " "]) == 1
    assert "reference must be text" in capsys.readouterr().err
