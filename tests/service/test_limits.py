"""A server enforces its own limits on every path, and its description shows them."""

import pytest
from tests.helpers.server import CURVE, store_url

from truvar.storage.base import MAX_NAME_LENGTH

BOX = "[domain]\nbox = {x = [0, 1]}\nrepresenters = 40\n[goal]\nmaximize = true\n"


@pytest.fixture
def client(tmp_path, application):
    """A client of a server with small limits, which has a study "s"."""
    limits = {
        "batch": 3,
        "text": 10,
        "points": 30,
        "columns": 2,
        "levels": 2,
        "draws": 50,
        "events": 4,
    }
    client = application(store_url(tmp_path / "s.db"), **limits)
    assert client.post("/api/studies", json={"name": "s", "problem": CURVE}).status_code == 201
    return client


def test_the_limits_that_are_announced_are_enforced(client):
    announced = client.get("/api").json()["limits"]
    assert (announced["batch"], announced["text"]) == (3, 10)
    assert client.post("/api/studies/s/ask", json={"n": 3}).status_code == 200
    answer = client.post("/api/studies/s/ask", json={"n": 8})
    assert (answer.status_code, answer.json()["error"]) == (
        422,
        "n must be <= 3, got 8; give 3 or less",
    )
    assert client.post("/api/studies/s/note", json={"text": "x" * 10}).status_code == 200
    answer = client.post("/api/studies/s/note", json={"text": "x" * 500})
    assert answer.status_code == 422
    assert "text must be text of at most 10 characters" in answer.json()["error"]


def test_larger_limits_are_enforced_too(tmp_path, application):
    client = application(store_url(tmp_path / "s.db"), batch=150, text=6000)
    assert client.post("/api/studies", json={"name": "s", "problem": CURVE}).status_code == 201
    assert client.post("/api/studies/s/note", json={"text": "x" * 6000}).status_code == 200
    answer = client.post("/api/studies/s/ask", json={"n": 151})
    assert (answer.status_code, answer.json()["error"]) == (
        422,
        "n must be <= 150, got 151; give 150 or less",
    )


def test_the_openapi_description_shows_the_limits(client):
    schemas = client.get("/api/openapi.json").json()["components"]["schemas"]
    assert schemas["Ask"]["properties"]["n"]["maximum"] == 3
    assert schemas["Note"]["properties"]["text"]["maxLength"] == 10
    assert schemas["Create"]["properties"]["name"]["maxLength"] == MAX_NAME_LENGTH
    assert "ProblemSpec" in schemas


@pytest.mark.parametrize("as_object", [False, True], ids=["text", "object"])
@pytest.mark.parametrize(
    ("problem", "message"),
    [
        (CURVE.replace("[0, 1, 30]", "[0, 1, 31]"), "at most 30 points of the grid"),
        (BOX, "at most 30 representers of the box"),
        (BOX.replace("representers = 40\n", ""), "at most 30 representers of the box"),
        (
            CURVE.replace("{x", "{a = [0, 1, 1], b = [0, 1, 1], x"),
            "at most 2 columns of the domain",
        ),
        (CURVE + '[policy]\nname = "es"\ndraws = 51\n', "at most 50 for [policy] draws"),
        (CURVE + "[policy]\namong = {top = 51}\n", "at most 50 for [policy] among.top"),
        (
            CURVE
            + "[tasks]\nnames = ['a', 'b', 'c']\ncovariance = [[1, 0, 0], [0, 1, 0], [0, 0, 1]]\n",
            "at most 2 tasks",
        ),
    ],
)
def test_a_problem_that_is_too_large_is_refused(client, problem, message, as_object):
    import tomllib

    sent = tomllib.loads(problem) if as_object else problem
    answer = client.post("/api/studies", json={"name": "large", "problem": sent})
    assert answer.status_code == 422
    assert message in answer.json()["error"]
    assert answer.json()["exception"] == "LimitExceededError"


def test_a_study_with_too_many_events_is_refused(client):
    for text in ("one", "two", "three", "four"):
        client.post("/api/studies/s/note", json={"text": text})
    exported = client.get("/api/studies/s/export").json()
    answer = client.post("/api/studies", json={"name": "copy", "study": exported})
    assert answer.status_code == 422
    assert "at most 4 events" in answer.json()["error"]


def test_one_limit_for_the_names_of_studies(client):
    longest = "x" * MAX_NAME_LENGTH
    assert client.post("/api/studies", json={"name": longest, "problem": CURVE}).status_code == 201
    assert client.get(f"/api/studies/{longest}/status").status_code == 200
    answer = client.post("/api/studies", json={"name": longest + "x", "problem": CURVE})
    assert answer.status_code == 422
    assert str(MAX_NAME_LENGTH) in answer.json()["error"]
