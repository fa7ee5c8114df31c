"""Yes or no and counts over HTTP, and on a server from Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import truvar as tv

ANSWERS = {
    "outcome": "binary",
    "domain": {"grid": {"x": [0, 1, 9]}},
    "goal": {"level_set": 0.6},
}
COUNTS = ANSWERS | {"outcome": {"kind": "count", "exposure": 2.0}, "goal": {"level_set": 3.0}}


@pytest.fixture
def client(application: Any, tmp_path: Path) -> Any:
    return application(f"sqlite:///{tmp_path / 'studies.db'}")


def test_answers_are_told_over_http(client: Any, tmp_path: Path) -> None:
    created = client.post("/api/studies", json={"name": "tones", "problem": ANSWERS})
    assert created.status_code == 201, created.text
    (suggestion,) = client.post("/api/studies/tones/ask", json={}).json()["suggestions"]
    assert suggestion["outcome"] == "binary"
    assert client.post("/api/studies/tones/tell", json={"id": 1, "y": 1}).status_code == 200
    for x, y in ((0.0, 0), (0.25, 0), (0.5, 1), (1.0, 1)):
        body = {"point": {"x": x}, "y": y}
        assert client.post("/api/studies/tones/tell", json=body).status_code == 200
    known = client.get("/api/studies/tones/posterior").json()
    local = tv.load(f"sqlite:///{tmp_path / 'studies.db'}", "tones").result()
    np.testing.assert_array_equal(known["mean"], local.mean)
    assert "probability of yes" in client.get("/api/studies/tones/report").text


@pytest.mark.parametrize(
    ("problem", "body", "message"),
    [
        (ANSWERS, {"y": 2}, "a value is 1 or 0, got 2"),
        (ANSWERS, {"y": 1, "exposure": 2.0}, "have an exposure"),
        (ANSWERS, {"y": 1, "noise": 0.1}, "has no noise variance"),
        (COUNTS, {"y": -1}, "a whole number from 0"),
        (COUNTS, {"y": 0.5}, "a whole number from 0"),
        (COUNTS, {"y": 1, "exposure": 0}, "exposure must be > 0"),
        (COUNTS, {"y": 1, "exposure": "long"}, "exposure must be a number"),
    ],
)
def test_what_cannot_be_is_refused(client: Any, problem: Any, body: Any, message: str) -> None:
    client.post("/api/studies", json={"name": "study", "problem": problem})
    before = client.get("/api/studies/study/status").json()
    answer = client.post("/api/studies/study/tell", json={"point": {"x": 0.5}, **body})
    assert answer.status_code == 422
    assert message in answer.json()["error"]
    assert client.get("/api/studies/study/status").json() == before


def test_an_unknown_outcome_is_refused(client: Any) -> None:
    body = {"name": "study", "problem": ANSWERS | {"outcome": "maybe"}}
    answer = client.post("/api/studies", json=body)
    assert answer.status_code == 422
    assert 'outcome must be "binary", "count"' in answer.json()["error"]


def test_a_count_with_its_exposure_is_listed(client: Any) -> None:
    client.post("/api/studies", json={"name": "plants", "problem": COUNTS})
    body = {"point": {"x": 0.5}, "y": 7, "exposure": 0.5}
    assert client.post("/api/studies/plants/tell", json=body).status_code == 200
    table = client.get("/api/studies/plants/export.csv").text.splitlines()
    assert table[0].endswith("exposure")
    assert table[1].endswith("0.5")


def test_a_reference_to_raw_data_is_told_over_http(client: Any) -> None:
    problem = {"domain": {"grid": {"x": [0, 1, 9]}}, "goal": {"maximize": True}}
    client.post("/api/studies", json={"name": "scans", "problem": problem})
    body = {"point": {"x": 0.5}, "y": 1.0, "reference": "scan/2417.h5"}
    assert client.post("/api/studies/scans/tell", json=body).status_code == 200
    (row,) = client.get("/api/studies/scans/measurements").json()["measurements"]
    assert row["reference"] == "scan/2417.h5"
    for wrong in (7, ""):
        answer = client.post("/api/studies/scans/tell", json={**body, "reference": wrong})
        assert answer.status_code == 422, answer.text
