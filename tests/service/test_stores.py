"""The service on SQLite and PostgreSQL, and several servers on one store."""

import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from sklearn.gaussian_process.kernels import RBF
from sqlalchemy import text
from tests.helpers.server import CURVE

import truvar as tv
from truvar.storage.rdb import RDBStorage
from truvar.study import _handlers as handlers


def tell(client, name, body):
    answer = client.post(f"/api/studies/{name}/tell", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()["id"]


def test_two_servers_work_on_one_study(url, application):
    first = application(url)
    second = application(url)
    assert first.post("/api/studies", json={"name": "shared", "problem": CURVE}).status_code == 201
    points = [k / 29 for k in range(20)]
    with ThreadPoolExecutor(4) as pool:
        ids = list(
            pool.map(
                lambda k: tell(
                    (first, second)[k % 2], "shared", {"point": {"x": points[k]}, "y": float(k)}
                ),
                range(20),
            )
        )
    assert sorted(ids) == list(range(1, 21))
    values = [
        client.get("/api/studies/shared/measurements").json()["measurements"]
        for client in (first, second)
    ]
    assert values[0] == values[1]
    assert sorted(row["value"] for row in values[0]) == list(map(float, range(20)))
    assert tv.load(url, "shared").steps == 20
    (row,) = second.get("/api/studies").json()["studies"]
    assert (row["name"], row["steps"], row["goal"]) == ("shared", 20, "maximum")


def test_studies_beyond_the_open_ones_are_opened_again(url, application):
    client = application(url, studies=2)
    for k in range(5):
        assert (
            client.post("/api/studies", json={"name": f"s{k}", "problem": CURVE}).status_code == 201
        )
        tell(client, f"s{k}", {"point": {"x": 0.0}, "y": float(k)})
    for k in range(5):
        (row,) = client.get(f"/api/studies/s{k}/measurements").json()["measurements"]
        assert row["value"] == k


def test_too_many_pending_suggestions_are_refused(tmp_path, application):
    client = application(f"sqlite:///{tmp_path}/s.db", waiting=3)
    client.post("/api/studies", json={"name": "s", "problem": CURVE})
    assert client.post("/api/studies/s/ask", json={"n": 3}).status_code == 200
    answer = client.post("/api/studies/s/ask", json={})
    assert answer.status_code == 429
    assert "tell or withdraw" in answer.json()["error"]


def test_a_store_that_is_not_available_is_503(tmp_path, application):
    path = tmp_path / "s.db"
    client = application(f"sqlite:///{path}")
    client.post("/api/studies", json={"name": "s", "problem": CURVE})
    assert client.get("/api/studies/s/status").status_code == 200
    with sqlite3.connect(path) as database:
        database.execute("DROP TABLE truvar_events")
    answers = [client.get("/api/studies/s/status"), client.post("/api/studies/s/ask", json={})]
    assert [answer.status_code for answer in answers] == [503, 503], [
        answer.text for answer in answers
    ]
    for answer in answers:  # no path, host or user
        assert "s.db" not in answer.text
        assert str(tmp_path) not in answer.text
        assert "try again later" in answer.json()["error"]


def test_damage_of_an_open_study_is_reported(tmp_path, application):
    client = application(f"sqlite:///{tmp_path}/s.db")
    client.post("/api/studies", json={"name": "s", "problem": CURVE})
    tell(client, "s", {"point": {"x": 0.0}, "y": 1.0})
    with sqlite3.connect(tmp_path / "s.db") as database:
        database.execute(
            "INSERT INTO truvar_events VALUES (1, 3, '2026-01-01 00:00:00.000000', 'me', 'told', "
            "'{}', '')"
        )
    assert client.get("/api/studies/s/status").status_code == 409
    assert client.get("/api/studies/s/view").json()["state"] == "broken"
    assert client.get("/api/studies").json()["studies"][0]["state"] == "broken"


def test_a_store_that_cannot_be_opened_is_refused_at_start_up(tmp_path):
    from truvar.service._app import create_app

    with pytest.raises(tv.TruvarError, match="no folder"):
        create_app(f"sqlite:///{tmp_path}/nowhere/s.db")


def test_readers_do_not_wait_for_a_choice(url, application, monkeypatch):
    client = application(url)
    assert client.post("/api/studies", json={"name": "slow", "problem": CURVE}).status_code == 201
    tell(client, "slow", {"point": {"x": 0.0}, "y": 0.5})
    choose = handlers.choose
    begun = threading.Event()
    go = threading.Event()

    def choose_slowly(*arguments):
        begun.set()
        assert go.wait(120)
        return choose(*arguments)

    monkeypatch.setattr(handlers, "choose", choose_slowly)
    with ThreadPoolExecutor() as threads:
        asked = threads.submit(client.post, "/api/studies/slow/ask", json={})
        try:
            assert begun.wait(60)
            for what in (
                "status",
                "view",
                "posterior",
                "measurements",
                "events",
                "export",
                "certificate",
            ):
                read = threads.submit(client.get, f"/api/studies/slow/{what}").result(timeout=60)
                assert read.status_code == 200
            before = client.get("/api/studies/slow/status").json()
            assert not asked.done()
        finally:
            go.set()
        assert asked.result().status_code == 200
    after = client.get("/api/studies/slow/status").json()
    assert (before["pending"], before["version"]) == ([], 2)
    assert ([s["id"] for s in after["pending"]], after["version"]) == ([2], 3)


def test_the_list_shows_finished_and_damaged_studies_before_they_are_opened(url, application):
    known = {"kernel": RBF(0.5), "mean": 0.0, "noise": 1e-6, "store": url}
    domain = tv.Domain.grid(x=[0.0, 0.5, 1.0])
    for name in ("over", "damaged", "under way", "new"):
        study = tv.Study(domain, tv.LevelSet(0.3), **known, name=name)
        if name != "new":
            study.run(lambda point: point["x"], steps=20 if name == "over" else 1)
    with RDBStorage(url).write_transaction() as connection:
        of = "(SELECT id FROM truvar_studies WHERE name = 'damaged')"
        connection.execute(
            text(
                f"UPDATE truvar_events SET details = '{{}}' WHERE kind = 'told' AND study_id = {of}"
            )
        )
    client = application(url)

    def states():
        return {row["name"]: row["state"] for row in client.get("/api/studies").json()["studies"]}

    expected = {"over": "finished", "damaged": "broken", "under way": "running", "new": "new"}
    end = time.monotonic() + 60
    while states() != expected and time.monotonic() < end:
        time.sleep(0.2)
    assert states() == expected
    tell(client, "under way", {"point": {"x": 0.0}, "y": 0.0})
    assert states() == expected
