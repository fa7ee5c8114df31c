"""Values told by the names of places, and what waits there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from truvar.cli import main
from truvar.study.stored import load

PROBLEM = """
name = "bay"
[domain]
table = "stations.csv"
columns = ["lon", "lat"]
label = "station"
[goal]
level_set_below = 4.0
[model]
kernel = "rbf"
lengthscales = [0.2, 0.2]
mean = 5.0
[noise]
sd = 0.2
[cost]
base = 1
great_circle = {longitude = "lon", latitude = "lat", rate = 0.1}
start = {lon = 18.0, lat = 54.0}
must_return = true
"""


@pytest.fixture
def truvar(tmp_path, monkeypatch, capsys):
    """A command that must succeed; what it printed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TRUVAR_STORE", raising=False)
    rows = [f"KB{k},{18 + 0.1 * (k % 4):.1f},{54 + 0.1 * (k // 4):.1f}\n" for k in range(12)]
    Path("stations.csv").write_text("station,lon,lat\n" + "".join(rows))
    Path("bay.toml").write_text(PROBLEM)

    def run(*words: str) -> str:
        capsys.readouterr()
        assert main(list(words)) == 0
        return capsys.readouterr().out

    run("new", "bay.toml")
    return run


def opened():
    return load("sqlite:///bay.db", "bay")


def test_a_value_told_by_name_answers_the_suggestion_that_waits_there(truvar):
    asked = json.loads(truvar("ask", "-n", "2", "--json"))["suggestions"]
    first, second = asked
    truvar("tell", second["label"], "4.4", first["label"], "3.5")
    study = opened()
    assert study.pending == []
    assert {record.id: record.value for record in study.measurement_records()} == {
        first["id"]: 3.5,
        second["id"]: 4.4,
    }
    assert study.spent == pytest.approx(first["cost"] + second["cost"])


def test_a_further_value_of_the_same_place_is_a_second_measurement(truvar):
    (asked,) = json.loads(truvar("ask", "--json"))["suggestions"]
    truvar("tell", asked["label"], "3.5", asked["label"], "3.7")
    truvar("tell", asked["label"], "3.6")
    study = opened()
    assert study.pending == []
    assert [record.value for record in study.measurement_records()] == [3.5, 3.7, 3.6]


def test_coordinates_are_a_measurement_of_their_own(truvar):
    (asked,) = json.loads(truvar("ask", "--json"))["suggestions"]
    truvar("tell", *(f"{name}={value}" for name, value in asked["point"].items()), "3.5")
    assert [suggestion.id for suggestion in opened().pending] == [asked["id"]]
