"""Vehicles over HTTP and with the client in Python."""

import pytest
from tests.helpers.server import Api

import truvar as tv
from truvar.remote.client import Server

BOATS = {
    "domain": {"grid": {"x": [0, 10, 11], "y": [0, 4, 5]}},
    "goal": {"level_set": 0.5},
    "model": {"kernel": "rbf", "lengthscales": [2.0, 2.0], "mean": 0.0},
    "noise": {"variance": 0.01},
    "cost": {
        "base": 1.0,
        "euclidean": {"x": 1.0, "y": 1.0},
        "start": {"x": 0, "y": 0},
        "must_return": True,
    },
    "vehicles": {"boat-1": {}, "boat-2": {"speed": 2.0, "budget": 50}},
    "run": {"budget": 80},
}


def create(api: Api, name: str) -> None:
    api.post("/studies", {"name": name, "problem": BOATS}, 201)


def test_vehicles_over_http(served):
    api, _ = served
    create(api, "boats")
    refused = api.post("/studies/boats/ask", {}, 422)
    assert "say for which, such as vehicle boat-1" in refused["error"]
    (one,) = api.post("/studies/boats/ask", {"who": "boat-1"})["suggestions"]
    (two,) = api.post("/studies/boats/ask", {"vehicle": "boat-2"})["suggestions"]
    assert (one["who"], two["who"]) == ("boat-1", "boat-2")
    api.post("/studies/boats/tell", {"id": two["id"], "y": 0.4, "cost": 7.5})
    api.post("/studies/boats/tell", {"point": {"x": 3, "y": 1}, "y": 0.4, "vehicle": "boat-1"})
    told = api.post("/studies/boats/tell-repeats", {"id": one["id"], "values": [0.1, 0.2]})
    assert told["ids"] == [one["id"], 4]
    status = api.get("/studies/boats/status")
    assert [(each["name"], each["steps"]) for each in status["vehicles"]] == [
        ("boat-1", 3),
        ("boat-2", 1),
    ]
    assert status["vehicles"][1]["spent"] == 7.5
    rows = api.get("/studies/boats/measurements")["measurements"]
    assert [(row["who"], row["repeats"]) for row in rows] == [
        ("boat-2", None), ("boat-1", None), ("boat-1", None), ("boat-1", one["id"]),
    ]  # fmt: skip
    view = api.get("/studies/boats/view")
    assert view["vehicle_names"] == ["boat-1", "boat-2"]
    assert view["vehicle_texts"][1].startswith("boat-2: at x ")
    assert "boat-1" in api.http.get("/studies/boats/report").text
    refused = api.post("/studies/boats/ask", {"who": "boat-1", "budget": 8}, 409)
    assert "do not pay for another measurement and the return leg" in refused["finished"]


def test_repeats_and_failures_over_http_count_once_and_for_their_vehicle(served):
    api, _ = served
    create(api, "repeats")
    body = {
        "point": {"x": 3, "y": 1},
        "values": [0.1, 0.2, 0.3],
        "who": "boat-2",
        "key": "today-0001",
    }
    first = api.post("/studies/repeats/tell-repeats", body)
    assert api.post("/studies/repeats/tell-repeats", body)["ids"] == first["ids"]
    again = {"id": first["ids"][0], "values": [0.4, 0.5], "key": "today-0002"}
    more = api.post("/studies/repeats/tell-repeats", again)
    assert api.post("/studies/repeats/tell-repeats", again)["ids"] == more["ids"]
    assert len(api.get("/studies/repeats/measurements")["measurements"]) == 5
    assert "key must be text that matches" in str(
        api.post("/studies/repeats/tell-repeats", {**body, "key": "a.1"}, 422)
    )
    api.post("/studies/repeats/fail", {"point": {"x": 4, "y": 1}, "who": "boat-2", "cost": 7.0})
    status = api.get("/studies/repeats/status")["vehicles"][1]
    assert status["steps"] == 5
    records = api.get("/studies/repeats/measurements")["measurements"]
    assert status["spent"] == pytest.approx(7.0 + sum(row["cost"] for row in records))
    assert api.get("/studies/repeats/failures")["failures"][0]["who"] == "boat-2"
    study = Server(api.url).study("repeats")
    assert study.tell_repeats(1, [0.6], key="today-0003") == study.tell_repeats(
        1, [0.6], key="today-0003"
    )
    assert study.steps == 6


def test_a_context_of_text_and_a_region_by_category_over_http(served):
    api, _ = served
    domain = {"grid": {"dose": [0, 1, 5], "batch": ["spring", "autumn"]}, "context": ["batch"]}
    api.post(
        "/studies",
        {"name": "doses", "problem": {"domain": domain, "goal": {"maximize": True}}},
        201,
    )
    (suggestion,) = api.post("/studies/doses/ask", {"context": {"batch": "autumn"}})["suggestions"]
    assert suggestion["point"]["batch"] == "autumn"
    assert (
        api.post("/studies/doses/exclude", {"region": {"batch": ["spring"], "dose": [0.5, 1]}})[
            "excluded"
        ]
        == 3
    )
    study = Server(api.url).study("doses")
    assert study.ask(context={"batch": "spring"}).point["dose"] < 0.5
    assert study.best_for({"batch": "autumn"}).point["batch"] == "autumn"
    study.exclude({"batch": ["autumn"]})
    with pytest.raises(tv.Finished, match="every place of this context is excluded"):
        study.ask(context={"batch": "autumn"})


def test_a_client_is_a_vehicle_and_runs_all_of_them(served):
    api, store = served
    create(api, "fleet")
    boat = Server(api.url, author="boat-2").study("fleet")
    assert boat.vehicles == {"boat-1": tv.Vehicle(), "boat-2": tv.Vehicle(speed=2.0, budget=50)}
    assert boat.must_return
    suggestion = boat.ask()
    assert suggestion.vehicle == "boat-2"
    boat.tell(suggestion, 0.3)
    assert boat.tell_repeats({"x": 1.0, "y": 1.0}, [0.1, 0.2], vehicle="boat-1") == [2, 3]
    result = boat.run(lambda point: point["x"] / 10, steps=9)
    assert result.steps == 9
    local = tv.load(store, "fleet")
    assert boat.vehicle_statuses == local.vehicle_statuses
    assert {record.vehicle for record in boat.measurement_records()} == {"boat-1", "boat-2"}
    with pytest.raises(tv.Finished, match="do not pay"):
        boat.ask(budget=1.0)
