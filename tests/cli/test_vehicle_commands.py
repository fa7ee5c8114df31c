"""Vehicles, ways and repeats at the command line: from a problem file to a report."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from truvar.cli import main
from truvar.problem import load_problem
from truvar.study.stored import load

SURVEY = """
name = "survey"
[domain]
table = "sites.csv"
columns = ["x", "y"]
[goal]
level_set = 0.5
[model]
kernel = "rbf"
lengthscales = [2.0, 2.0]
mean = 0.0
[noise]
levels = [{variance = 1e-3, cost = 4}, {variance = "rough", cost = 1}]
[cost]
base = 1.0
euclidean = {x = 0.5, y = 0.5}
network = {table = "roads.csv", places = "village", rate = 2.0}
travel = {y = {increasing = 0.2, decreasing = 0.1}}
setup = {y = 0.5}
start = {x = 0, y = 0}
must_return = true
[vehicles]
jeep = {speed = 2.0}
mule = {start = {x = 2, y = 1}, budget = 30}
[run]
budget = 90
"""
SITES = """x,y,village,rough,height
0,0,a,0.1,0.1
1,0,b,0.2,0.9
2,1,c,0.3,0.7
3,1,d,0.4,0.2
"""
ROADS = "from,to,cost\na,b,1\nb,c,1\nc,d,1\n"


@pytest.fixture
def truvar(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., str]:
    """A command in a folder with the problem; what it printed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TRUVAR_STORE", raising=False)
    Path("survey.toml").write_text(SURVEY)
    Path("sites.csv").write_text(SITES)
    Path("roads.csv").write_text(ROADS)

    def run(*words: str, code: int = 0) -> str:
        capsys.readouterr()
        found = main(list(words))
        captured = capsys.readouterr()
        assert found == code, captured.err
        return captured.out if code == 0 else captured.err

    return run


def test_a_problem_file_has_ways_set_up_vehicles_and_levels_by_place(
    truvar: Callable[..., str],
) -> None:
    shown = " ".join(truvar("new", "survey.toml").split())
    for words in (
        "0.2 increasing and 0.1 decreasing per unit of y travelled",
        "0.5 per unit of x and 0.5 per unit of y travelled in a straight line",
        "2 times the shortest route in the network roads.csv",
        "0.5 whenever y changes",
        "from x 0, y 0, with the return leg within the budget",
        "jeep (speed 2), mule (from x 2, y 1, budget 30)",
        "variance from column rough at cost 1",
    ):
        assert words in shown
    study = load_problem("survey.toml").study()
    suggestion = study.ask(vehicle="jeep")
    x = suggestion.point["x"]
    y = suggestion.point["y"]
    way = (0.2 * y + 0.5 * (x**2 + y**2) ** 0.5 + 2.0 * x) / 2.0  # the villages lie in a row
    level = (4.0, 1.0)[suggestion.level or 0]
    assert suggestion.cost == pytest.approx(1.0 + way + 0.5 * (y != 0) + level)


def test_crews_ask_tell_and_see_their_own_suggestions(truvar: Callable[..., str]) -> None:
    truvar("new", "survey.toml")
    assert "say for which, such as --vehicle jeep" in truvar("ask", code=1)
    assert "suggestion 1 for jeep" in truvar("ask", "--vehicle", "jeep")
    asked = json.loads(truvar("ask", "--who", "mule", "--json"))["suggestions"][0]
    assert asked["who"] == "mule"
    truvar("tell", "2", "0.7", "--cost", "12.5", "--vehicle", "mule")
    truvar("tell", "x=1", "y=0", "0.9", "--level", "0", "--who", "jeep")
    study = load("sqlite:///survey.db")
    assert study.measurements["who"].tolist() == ["mule", "jeep"]
    assert study.measurements["cost"].iloc[0] == 12.5
    everything = truvar("status")
    assert "mule: at" in everything
    assert "12.5 of 30 spent" in everything
    assert "1 for jeep" in everything
    own = truvar("status", "--who", "mule")
    assert "jeep" not in own
    assert [each["name"] for each in json.loads(truvar("status", "--json"))["vehicles"]] == [
        "jeep",
        "mule",
    ]


def test_repeats_are_told_at_once(truvar: Callable[..., str]) -> None:
    truvar("new", "survey.toml")
    truvar("ask", "--vehicle", "jeep")
    told = json.loads(truvar("tell", "1", "0.7", "0.8", "0.75", "--repeats", "--json"))
    assert told["told"] == [1, 2, 3]
    told = json.loads(
        truvar(
            "tell",
            "x=3",
            "y=1",
            "0.2",
            "0.1",
            "--repeats",
            "--level",
            "1",
            "--who",
            "mule",
            "--json",
        )
    )
    assert told["told"] == [4, 5]
    records = load("sqlite:///survey.db").measurement_records()
    assert [(record.vehicle, record.repeats) for record in records] == [
        ("jeep", None), ("jeep", 1), ("jeep", 1), ("mule", None), ("mule", 4),
    ]  # fmt: skip
    assert "--repeats takes values" in truvar(
        "tell", "1", "0.7", "--repeats", "--cost", "2", code=1
    )


FLEET = """
name = "fleet"
[domain]
grid = {x = [0, 4, 5]}
[goal]
level_set = 0.5
[model]
kernel = "rbf"
lengthscales = [1.0]
mean = 0.0
[noise]
variance = 0.01
[cost]
base = 1.0
travel = {x = 1.0}
start = {x = -2}
[vehicles]
jeep = {speed = 2.0}
mule = {start = {x = 8}, budget = 7.5}
"""


def test_the_cost_of_the_first_measurement_is_said_for_each_vehicle(
    truvar: Callable[..., str],
) -> None:
    Path("fleet.toml").write_text(FLEET)
    said = " ".join(truvar("new", "fleet.toml").split())
    assert "the first measurement 2 to 4 for jeep, 5 to 7 for mule" in said  # 8 and 9 cost too much
    for vehicle, low, high in (("jeep", 2, 4), ("mule", 5, 7)):
        asked = json.loads(truvar("ask", "fleet.db", "--vehicle", vehicle, "--json"))
        assert low <= asked["suggestions"][0]["cost"] <= high
    Path("fleet.toml").write_text(FLEET.replace("budget = 7.5", "budget = 0.5"))
    said = " ".join(truvar("new", "fleet.toml", "--check").split())
    assert "more than the budget for mule" in said
    one = FLEET.partition("[vehicles]")[0] + "[vehicles]\njeep = {}\nmule = {}\n"
    Path("fleet.toml").write_text(one)
    said = " ".join(truvar("new", "fleet.toml", "--check").split())
    assert "the first measurement 3 to 7 vehicles" in said


def test_a_run_and_a_backtest_use_all_vehicles_and_the_report_has_their_routes(
    truvar: Callable[..., str],
) -> None:
    pytest.importorskip("matplotlib")
    summary = json.loads(truvar("run", "survey.toml", "--truth", "height", "--quiet", "--json"))
    assert summary["result"]["spent"] <= 90
    table = Path("survey-report/measurements.csv").read_text()
    assert "jeep" in table
    assert "mule" in table
    compared = json.loads(
        truvar("backtest", "survey.toml", "--truth", "height", "--policies", "truvar", "--replicates", "1", "--budget",
               "40", "--json")
    )  # fmt: skip
    assert compared
    truvar("new", "survey.toml")
    for who in ("jeep", "mule", "jeep", "mule"):
        suggestion = json.loads(truvar("ask", "--who", who, "--json"))["suggestions"][0]
        truvar("tell", str(suggestion["id"]), "0.4", "--who", who)
    truvar("report", "-o", "survey.html")
    page = Path("survey.html").read_text()
    assert "the route of each vehicle" in page
    assert "<b>Vehicle:</b> jeep: at" in page
    assert "<b>Vehicle:</b> mule: at" in page


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("rate = 2.0}", "rate = -2.0}", "[cost] network.rate must be >= 0, got -2"),
        ('places = "village"', 'places = "town"', "unknown column 'town'"),
        ("speed = 2.0", "speed = 0", "must be > 0, got 0"),
        ("euclidean = {x = 0.5", "euclidean = {z = 0.5", "unknown column 'z'"),
        ("decreasing = 0.1}", "falling = 0.1}", "unknown key 'falling'"),
        ("roads.csv", "paths.csv", "there is no file paths.csv"),
        ("start = {x = 0, y = 0}", 'start = "a"', "the place 'a' is not known"),
    ],
)
def test_mistakes_in_a_problem_file_are_named(
    truvar: Callable[..., str], old: str, new: str, message: str
) -> None:
    assert old in SURVEY
    Path("survey.toml").write_text(SURVEY.replace(old, new))
    assert message in truvar("new", "survey.toml", code=1)
