"""A domain that grows: over HTTP, on a server, on the page, in the report and on the command line."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from tests.helpers.page import DESKTOP, PHONE, wait_until
from tests.helpers.problems import assert_same
from tests.helpers.server import CURVE, GRID, store_url

import truvar as tv
from truvar.cli import main
from truvar.exceptions import InvalidDomainError
from truvar.report.html_report import render_html_report
from truvar.service import Server

ROWS = pd.DataFrame(
    {"x": [0.0, 0.3, 0.6, 0.9], "hours": [1.0, 2.0, 1.0, 2.0]}, index=["a", "b", "c", "d"]
)
MORE = pd.DataFrame({"x": [1.2, 1.5], "hours": [3.0, 1.0]}, index=["e", "f"])
TABLE = '[domain]\ntable = "first.csv"\ncolumns = ["x"]\n[goal]\nmaximize = true\n'
KNOWN = {"kernel": "rbf", "noise": 0.01, "cost": "hours"}


def table_study(**more) -> tv.Study:
    return tv.Study(tv.Domain.table(ROWS, ["x"]), tv.Maximize(), **KNOWN, **more)


# -- over HTTP
# --------------------------------------------------------------------------------------------------


def test_a_request_extends_a_grid_and_all_answers_are_about_it(tmp_path, application):
    url = store_url(tmp_path / "s.db")
    client = application(url, points=60)
    client.post("/api/studies", json={"name": "s", "problem": CURVE})
    client.post("/api/studies/s/tell", json={"point": {"x": 0.0}, "y": 0.5})
    body = {"columns": {"x": [1.1, 1.2]}, "reason": "room"}
    answer = client.post("/api/studies/s/extend", json=body)
    assert (answer.status_code, answer.json()["points"], answer.json()["version"]) == (200, 32, 3)
    assert len(client.get("/api/studies/s/posterior").json()["mean"]) == 32
    newest = client.get("/api/studies/s/events?newest=1").json()["events"][0]
    assert newest["kind"] == "extended"
    assert newest["details"]["text"] == "x 0 to 1.2"
    assert newest["details"]["reason"] == "room"
    for wrong, status in (
        ({"columns": {"x": [1.1]}}, 422),
        ({"columns": {"z": [1.1]}}, 422),
        ({}, 422),
        ({"rows": [{"x": 1.0}], "columns": {"x": [3.0]}}, 422),
        ({"rows": [{"x": 5.0}]}, 422),
        ({"columns": {"x": np.linspace(2, 3, 40).tolist()}}, 422),
    ):
        refused = client.post("/api/studies/s/extend", json=wrong)
        assert refused.status_code == status, (wrong, refused.text)
    assert_same(tv.load(url, "s"), tv.Study.from_json(tv.load(url, "s").to_json()))
    assert tv.load(url, "s").version == 3


def test_a_study_on_a_server_grows_as_one_here(served):
    api, _ = served
    server = Server(api.url, token=None)
    local = table_study(name="table")
    local.tell({"x": 0.3}, 1.0)
    remote = server.create(local)
    other = server.study("table")
    waiting = remote.ask()
    assert local.ask().point == waiting.point
    for study in (local, remote):
        study.extend(MORE, reason="two more")
    assert len(remote.domain) == 6
    assert remote.domain.label(5) == "f"
    assert np.array_equal(remote.result().mean, local.result().mean)
    # another object finds the further rows in the answers that it gets
    assert np.array_equal(other.result().mean, local.result().mean)
    third = server.study("table")
    local.tell({"x": 1.5}, 2.0)
    remote.tell({"x": 1.5}, 2.0)
    other._read_definition()
    assert third.result().best_observed.label == "f"
    with pytest.raises(InvalidDomainError, match="is in the domain already"):
        remote.extend(MORE)
    with pytest.raises(InvalidDomainError, match="'hours' is missing"):
        remote.extend({"x": [3.0]})
    assert_same(local, remote.copy())


def test_a_stale_client_reads_the_labels_of_further_rows(served):
    api, _ = served
    server = Server(api.url, token=None)
    server.create(table_study(name="stale"))
    one = server.study("stale")
    other = server.study("stale")
    other.extend(MORE)
    other.tell({"x": 1.2}, 2.0)
    assert one.measurement_records()[0].label == "e"
    assert len(one.domain) == 6
    other.extend({"x": [4.0], "hours": [1.0]})
    one.refresh()
    assert len(one.domain) == 7


def test_a_server_refuses_more_points_than_it_accepts(application, tmp_path):
    client = application(store_url(tmp_path / "t.db"), points=5)
    body = {"name": "t", "problem": TABLE, "tables": {"first.csv": ROWS.to_csv(index=False)}}
    created = client.post("/api/studies", json=body)
    assert created.status_code == 201, created.text
    rows = MORE.to_dict("records")
    refused = client.post("/api/studies/t/extend", json={"rows": rows})
    assert refused.status_code == 422
    assert "at most 5 points, got 6" in refused.text
    labelled = {"rows": rows[:1], "labels": ["e", "f"]}
    assert client.post("/api/studies/t/extend", json=labelled).status_code == 422


# -- page and report
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("device", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_the_page_shows_the_new_domain_without_a_reload(page_on, served, device) -> None:
    api, _ = served
    name = f"growing {device['viewport']['width']}"
    api.create(name, GRID)
    for k in range(4):
        api.post(f"/studies/{name}/tell", {"point": {"x": k / 11, "y": 0.0}, "y": 0.2 * k})
    page = page_on(device, f"#/study/{name.replace(' ', '%20')}")
    page.locator(".measurements tbody tr").nth(3).wait_for()
    page.get_by_text("History and notes").click()
    assert "120" in page.locator("main").inner_text()
    api.post(f"/studies/{name}/extend", {"columns": {"x": [1.5, 2.0]}, "reason": "a longer pier"})
    page.get_by_text("The domain was extended: x 0 to 2, y 0 to 1 (a longer pier).").wait_for()
    wait_until(page, "document.querySelector('main').innerText.includes('140')")
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_report_and_figures_are_about_the_new_domain() -> None:
    study = table_study()
    study.tell({"x": 0.3}, 1.0)
    study.extend(MORE, reason="two more")
    html = render_html_report(study)
    assert "extended: 2 further rows (two more)" in html
    assert "6 points" in html
    assert study.plot() is not None


# -- the command line
# --------------------------------------------------------------------------------------------------


def test_the_command_line_adds_a_table_and_values(tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    table_study(store="sqlite:///s.db", name="s").tell({"x": 0.3}, 1.0)
    MORE.to_csv("more.csv")
    MORE.drop(columns="hours").to_csv("lacking.csv")
    assert main(["extend", "s.db", "lacking.csv"]) == 1
    assert "but 'hours' is missing; add it" in capsys.readouterr().err
    assert main(["extend", "more.csv", "--reason", "two more", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["extended"] == "more.csv"
    study = tv.load("sqlite:///s.db", "s")
    assert study.domain.label(5) == "f"
    assert study.events["details"].iloc[-1]["reason"] == "two more"
    assert main(["extend", "more.csv"]) == 1
    assert "is in the domain already" in capsys.readouterr().err
    box = tv.Domain.box(x=(0, 1), y=(0, 1), representers=25)
    tv.Study(box, tv.Maximize(), store="sqlite:///box.db", name="box")
    assert main(["extend", "box.db", "x=0,2", "y=-1,1"]) == 0
    assert capsys.readouterr().out.startswith("extended x=0,2, y=-1,1: ")
    assert tv.load("sqlite:///box.db", "box").domain.bounds.tolist() == [[0, 2], [-1, 1]]
    for words, message in (
        ([], "extend expects a table or values by column, got none"),
        (["one.csv", "two.csv"], "extend expects one table or values by column"),
        (["z=1,2"], "unknown column 'z'"),
        (["x=0.5,2"], "interval 'x' must contain the present one"),
    ):
        assert main(["extend", "box.db", *words]) == 1
        assert message in capsys.readouterr().err
