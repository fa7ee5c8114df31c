"""A study through the API of a real server process, from its creation to its export."""

import json
import sqlite3
import threading
import time
from datetime import datetime

import numpy as np
import pytest
from tests.helpers.server import CURVE, GRID, Api, store_url

import truvar as tv
from truvar.storage._checksums import event_checksum, row_checksum


def measure(point):
    return float(np.sin(3 * point["x"]) * np.cos(2 * point.get("y", 0.0)))


def test_a_study_from_creation_to_export(served):
    api, store = served
    made = api.create("life")
    assert (made["name"], made["state"]) == ("life", "new")
    (row,) = [row for row in api.get("/studies")["studies"] if row["name"] == "life"]
    assert (row["steps"], row["pending"], row["goal"]) == (0, 0, "above 0.2")

    first, second, third = api.post("/studies/life/ask", {"n": 3})["suggestions"]
    answer = api.post("/studies/life/tell", {"id": first["id"], "y": measure(first["point"])})
    assert (answer["id"], answer["steps"], answer["spent"]) == (first["id"], 1, 1.0)
    api.post("/studies/life/tell", {"id": second["id"], "y": 5.0, "cost": 2.5, "noise": 0.01})
    api.post("/studies/life/withdraw", {"id": third["id"], "again": True})
    unasked = api.post("/studies/life/tell", {"point": {"x": 0.5, "y": 0.5}, "y": 0.4})["id"]
    api.post("/studies/life/correct", {"id": second["id"], "y": measure(second["point"])})
    api.post("/studies/life/withdraw", {"id": unasked})
    api.post("/studies/life/note", {"text": "calm sea"})

    status = api.get("/studies/life/status")
    assert (status["state"], status["result"]["steps"], status["result"]["spent"]) == (
        "running",
        2,
        3.5,
    )
    assert api.get("/studies/life/result")["steps"] == 2
    assert api.get("/studies/life/certificate")["regime"] == "heuristic"
    rows = api.get("/studies/life/measurements")["measurements"]
    assert [(row["id"], row["value"]) for row in rows] == [
        (first["id"], measure(first["point"])),
        (second["id"], measure(second["point"])),
    ]
    assert len(api.get("/studies/life/history")["epsilon"]) == 2
    kinds = [event["kind"] for event in api.get("/studies/life/events")["events"]]
    expected = [
        "created",
        "asked",
        "asked",
        "asked",
        "told",
        "told",
        "withdrawn",
        "told",
        "corrected",
        "withdrawn",
    ]
    assert kinds[::-1] == [*expected, "noted"]

    local = tv.load(store, "life").result()
    known = api.get("/studies/life/posterior")
    np.testing.assert_array_equal(known["mean"], local.mean)
    np.testing.assert_array_equal(known["upper"], local.upper)
    assert known["classes"] == "".join(np.select([local.above, local.below], ["H", "L"], "M"))

    exported = api.get("/studies/life/export")
    api.post("/studies", {"name": "life again", "study": exported}, 201)
    assert api.get("/studies/life again/posterior") == known
    table = api.http.get("/studies/life/export.csv").text.splitlines()
    assert table[0].startswith("id,index,x,y,")
    assert len(table) == 3


def test_the_report_is_one_html_file(served):
    api, _ = served
    api.create("reported <b>bold</b>")
    answer = api.http.get("/studies/reported%20%3Cb%3Ebold%3C%2Fb%3E/report")
    assert answer.status_code == 200, answer.text
    assert answer.text.lower().startswith("<!doctype html>")
    assert "<b>bold</b>" not in answer.text
    assert "&lt;b&gt;bold" in answer.text
    assert "sandbox" in answer.headers["content-security-policy"]
    assert answer.headers["content-disposition"].startswith("attachment")


def test_a_value_told_again_counts_once(served):
    api, _ = served
    api.create("again")
    (s,) = api.post("/studies/again/ask", {})["suggestions"]
    once = api.post("/studies/again/tell", {"id": s["id"], "y": 1.25})
    assert api.post("/studies/again/tell", {"id": s["id"], "y": 1.25}) == once
    refused = api.post("/studies/again/tell", {"id": s["id"], "y": 2.0}, 422)
    assert "already has the value" in refused["error"]
    body = {"point": {"x": 0.25, "y": 0.75}, "y": 0.5, "key": "boat-7_0001"}
    by_key = api.post("/studies/again/tell", body)
    assert api.post("/studies/again/tell", body)["id"] == by_key["id"]
    assert api.get("/studies/again/status")["result"]["steps"] == 2


def test_changes_made_through_the_store_are_seen_and_streamed(served):
    api, store = served
    api.create("streamed", CURVE)
    versions = []
    ready = threading.Event()

    listener = Api(api.url)

    def listen():
        with listener.http.stream("GET", "/studies/streamed/live", timeout=30) as stream:
            assert stream.headers["content-type"].startswith("text/event-stream")
            for line in stream.iter_lines():
                if line.startswith("data: "):
                    versions.append(json.loads(line[6:])["version"])
                    ready.set()
                if len(versions) == 3:
                    return

    thread = threading.Thread(target=listen, daemon=True)
    thread.start()
    assert ready.wait(30)
    other = tv.load(store, "streamed")
    suggestion = other.ask()  # not through the server
    deadline = time.monotonic() + 30
    while len(versions) < 2 and time.monotonic() < deadline:
        time.sleep(0.1)
    assert [s["id"] for s in api.get("/studies/streamed/status")["pending"]] == [suggestion.id]
    api.post("/studies/streamed/tell", {"id": suggestion.id, "y": 0.3})
    thread.join(30)
    assert versions == [1, 2, 3]
    other.refresh()
    assert other.steps == 1


def test_a_finished_study_answers_409_with_the_reason(served):
    api, _ = served
    api.create("over", CURVE.replace("[0, 1, 30]", "[0, 1, 2]"))
    for _ in range(50):
        answer = api.http.post("/studies/over/ask", json={})
        if answer.status_code != 200:
            break
        (s,) = answer.json()["suggestions"]
        api.post("/studies/over/tell", {"id": s["id"], "y": s["point"]["x"]})
    assert answer.status_code == 409
    assert answer.json()["finished"]
    assert api.get("/studies/over/view")["state"] == "finished"
    assert [row["state"] for row in api.get("/studies")["studies"] if row["name"] == "over"] == [
        "finished"
    ]


def test_a_damaged_study_is_shown_as_broken(served):
    api, store = served
    api.create("sound", CURVE)
    text = json.dumps(api.get("/studies/sound/export"))
    with sqlite3.connect(store.removeprefix("sqlite:///")) as database:
        database.execute("INSERT INTO truvar_studies (name) VALUES ('damaged')")
        (id_,) = database.execute("SELECT id FROM truvar_studies WHERE name = 'damaged'").fetchone()
        created = json.loads(text)["events"][0]
        created["details"]["goal"]["kind"] = "Sideways"
        event = {"number": 1, "time": datetime(2026, 1, 1), "who": "me", "kind": "created"}
        event["details"] = json.dumps(created["details"])
        head = event_checksum(
            "", event
        )  # what is stored is what was written, by another version of truvar
        row = (id_, 1, "2026-01-01 00:00:00.000000", "me", "created", event["details"], head)
        database.execute("INSERT INTO truvar_events VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        study = {
            "goal": "",
            "steps": 0,
            "spent": 0.0,
            "pending": 0,
            "created": None,
            "changed": None,
        }
        checksum = row_checksum({**study, "events": 1, "head": head})
        columns = "events = 1, head = ?, checksum = ?"
        database.execute(f"UPDATE truvar_studies SET {columns} WHERE id = ?", (head, checksum, id_))
    view = api.get("/studies/damaged/view")
    assert view["state"] == "broken"
    assert "Sideways" in view["problem"]
    assert "Sideways" in api.get("/studies/damaged/status", 409)["error"]
    assert [row["state"] for row in api.get("/studies")["studies"] if row["name"] == "damaged"] == [
        "broken"
    ]


def test_slices_through_three_dimensions(served):
    api, _ = served
    problem = "[domain]\nbox = {a = [0, 1], b = [-1, 1], c = [10, 20]}\nrepresenters = 64\n[goal]\nminimize = true\n"
    api.create("deep", problem)
    for k in range(4):
        api.post(
            "/studies/deep/tell", {"point": {"a": 0.2 * k, "b": 0.0, "c": 12.0 + k}, "y": float(k)}
        )
    plane = api.get("/studies/deep/slice?x=a&y=c&at=0.5&at=0&at=15")
    assert len(plane["mean"]) == len(plane["x"]) * len(plane["y"])
    assert (plane["x"][0], plane["x"][-1], plane["y"][0], plane["y"][-1]) == (0, 1, 10, 20)
    for wrong in (
        "x=a&y=a&at=0.5&at=0&at=15",
        "x=a&y=z&at=0.5&at=0&at=15",
        "x=a&y=b&at=0.5",
        "x=a&y=b&at=nan&at=0&at=1",
    ):
        assert "error" in api.get(f"/studies/deep/slice?{wrong}", 422)


@pytest.mark.parametrize(
    ("verb", "body", "message"),
    [
        ("tell", {"id": 7, "y": 1.0}, "pending"),
        ("tell", {"y": 1.0}, "either an id or a point"),
        ("tell", {"id": 1, "point": {"x": 0, "y": 0}, "y": 1.0}, "either an id or a point"),
        ("tell", {"point": {"x": 9, "y": 9}, "y": 1.0}, "not in the domain"),
        ("tell", {"point": {"x": 0.5}, "y": 1.0}, "missing"),
        ("tell", {"point": {"x": 0.5, "y": 0.5}, "y": "warm"}, "y must be a number, got 'warm'"),
        (
            "tell",
            {"point": {"x": 0.5, "y": 0.5}, "y": 1.0, "colour": "red"},
            "unknown key 'colour'",
        ),
        (
            "tell",
            {"point": [{}], "y": 1.0},
            "point must be a table of keys, got [{}]; give one such as {x = 1.0}",
        ),
        ("tell", [], "the body must be a table of keys, got []"),
        ("tell", {"id": "one", "y": 1.0}, "id must be a whole number, got 'one'"),
        ("tell", {"id": 0, "y": 1.0}, "id must be >= 1, got 0"),
        ("tell", {"id": 2**53 + 1, "y": 1.0}, "id must be <= 9007199254740992"),
        (
            "tell",
            {"point": {"x": 0.5, "y": 0.5}, "y": 1.0, "key": "short"},
            "key must be text that matches",
        ),
        ("tell", {"point": {"x": 0.5, "y": 0.5}}, "y is missing"),
        ("correct", {"id": 99, "y": 1.0}, "99"),
        ("withdraw", {"id": 99}, "99"),
        ("ask", {"n": 0}, "n must be >= 1, got 0"),
        ("ask", {"n": 100_000}, "n must be <= 100, got 100000"),
        ("note", {"text": ""}, "text must be text of at least 1 characters"),
        ("note", {"text": "\x00"}, "control character"),
    ],
)
def test_a_mistake_is_answered_with_a_message(served, verb, body, message):
    api, _ = served
    if not any(row["name"] == "mistakes" for row in api.get("/studies")["studies"]):
        api.create("mistakes")
    assert message in api.post(f"/studies/mistakes/{verb}", body, 422)["error"]


def test_unknown_studies_are_404_and_a_name_is_taken_once(served):
    api, _ = served
    assert "no study 'nowhere'" in api.get("/studies/nowhere/status", 404)["error"]
    assert api.get("/nothing", 404)
    api.create("once", CURVE)
    assert "already" in api.post("/studies", {"name": "once", "problem": CURVE}, 409)["error"]
    assert "error" in api.post("/studies", {"name": "neither"}, 422)


def test_measurements_are_kept_when_the_server_is_killed(tmp_path):
    from benchmarks.service import server

    store = store_url(tmp_path / "s.db")
    with server(store) as url:
        api = Api(url)
        api.create("kept", GRID)
        for k in range(5):
            api.post("/studies/kept/tell", {"point": {"x": 0.2 * k, "y": 0.5}, "y": float(k)})
    again = tv.load(store, "kept")
    assert again.measurements["value"].tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]


def test_places_are_excluded_failed_and_allowed(served):
    api, _ = served
    api.create("places")
    path = "/studies/places"
    first, second = api.post(f"{path}/ask", {"n": 2})["suggestions"]
    answer = api.post(f"{path}/exclude", {"id": first["id"], "reason": "jetty"})
    assert (answer["excluded"], answer["infeasible_share"]) == (1, pytest.approx(1 / 120))
    failed = api.post(f"{path}/fail", {"id": second["id"], "reason": "no signal", "cost": 0.5})
    assert (failed["id"], failed["spent"], failed["steps"]) == (second["id"], 0.5, 0)
    places = [
        {"point": {"x": 0.0, "y": 0.0}},
        {"region": {"x": [0.0, 0.2]}},
        {"condition": "x + y > 1.8"},
        {"polygon": {"rings": [[[0.9, -1], [2, -1], [2, 2], [0.9, 2]]]}},
        {"rows": [3, 4]},
    ]
    counts = [api.post(f"{path}/exclude", place)["excluded"] for place in places]
    assert counts == sorted(counts)
    view = api.get(f"{path}/view")
    assert len(view["exclusions"]) == 7
    assert len(view["excluded"]) == counts[-1]
    for shown in view["exclusions"]:  # each can be sent back as it is
        api.post(f"{path}/allow", shown["place"])
    assert api.get(f"{path}/status")["result"]["excluded"] == 0
    assert api.get(f"{path}/failures")["failures"][0]["reason"] == "no signal"
    api.post(f"{path}/exclude", {"condition": "x >= 0"})
    assert api.post(f"{path}/allow", {})["excluded"] == 0
    kinds = [event["kind"] for event in api.get(f"{path}/events")["events"]]
    assert {"excluded", "failed", "allowed", "withdrawn"} <= set(kinds)


@pytest.mark.parametrize(
    ("verb", "body", "words"),
    [
        ("exclude", {}, "a place is needed"),
        ("exclude", {"id": 1, "condition": "x > 1"}, "one place is expected"),
        ("exclude", {"condition": "__import__('os')"}, "a constraint must compare two sides"),
        ("exclude", {"rows": [100000]}, "rows must be those of a finite domain"),
        ("exclude", {"id": 77}, "there is no suggestion or measurement 77"),
        ("allow", {"condition": "z > 1"}, "unknown column 'z'"),
        ("fail", {}, "needs either an id or a point"),
        ("fail", {"id": 77}, "suggestion 77 is not pending"),
    ],
)
def test_a_place_that_cannot_be_used_is_refused(served, verb, body, words):
    api, _ = served
    if "refused places" not in [row["name"] for row in api.get("/studies")["studies"]]:
        api.create("refused places")
    answer = api.post(f"/studies/refused places/{verb}", body, 422)
    assert words in answer["error"]


def test_a_value_is_checked_before_it_is_told_and_named_when_it_is(served):
    api, _ = served
    api.create("checked")
    body = {"point": {"x": 0.5, "y": 0.5}, "y": 150.0}
    assert api.post("/studies/checked/check", {**body, "y": 0.3})["warnings"] == []
    (finding,) = api.post("/studies/checked/check", body)["warnings"]
    assert "standard deviations" in finding
    assert api.get("/studies/checked/status")["result"]["steps"] == 0
    (warning,) = api.post("/studies/checked/tell", body)["warnings"]
    assert warning.endswith("if it is a typing mistake, correct or withdraw measurement 1")


def test_conditions_and_polygons_that_are_too_large_are_answered_in_words(served):
    api, _ = served
    api.create("nested")
    nested = "-" * 990 + "x <= 1"
    words = "at most 1000 terms and 100 signs and brackets within each other"
    assert words in api.post("/studies/nested/exclude", {"condition": nested}, 422)["error"]
    problem = GRID.replace("[goal]", f'constraints = ["{nested}"]\n[goal]')
    assert words in api.post("/studies", {"name": "larger", "problem": problem}, 422)["error"]
    api.create("constrained", GRID.replace("[goal]", 'constraints = ["---x <= -0.2"]\n[goal]'))
    api.post("/studies/nested/exclude", {"condition": "---x >= -0.5"})
    for name in ("constrained", "nested"):
        exported = json.dumps(api.get(f"/studies/{name}/export")).replace("---x", "-" * 991 + "x")
        assert (
            words
            in api.post("/studies", {"name": "uploaded", "study": json.loads(exported)}, 422)[
                "error"
            ]
        )
    ring = [[k / 1e5, float(k % 2)] for k in range(20_001)]
    refused = api.post("/studies/nested/exclude", {"polygon": {"rings": [ring]}}, 422)
    assert "at most 20000 vertices, got 20001" in refused["error"]


def test_times_with_a_time_zone_keep_it_over_http(served):
    api, _ = served
    problem = (
        "[domain]\nbox = {t = {date = [2026-10-25T00:00:00+02:00, 2026-10-25T06:00:00+02:00]}}\n"
        '[goal]\nmaximize = true\n[model]\nkernel = "rbf"\nlengthscales = [0.1]\nvariance = '
        "1.0\nmean = 0.0\n"
        "[noise]\nvariance = 1e-3\n"
    )
    api.create("zones", problem)
    api.post("/studies/zones/tell", {"point": {"t": "2026-10-25T02:30:00.250000+02:00"}, "y": 1.0})
    api.post("/studies/zones/tell", {"point": {"t": "2026-10-25T02:30:00+01:00"}, "y": 0.5})
    naive = api.post("/studies/zones/tell", {"point": {"t": "2026-10-25T02:30:00"}, "y": 1.0}, 422)
    assert "must have its offset from UTC" in naive["error"]
    rows = api.get("/studies/zones/measurements")["measurements"]
    assert [row["point"]["t"] for row in rows] == [
        "2026-10-25T02:30:00.250000+02:00",
        "2026-10-25T03:30:00+02:00",
    ]
