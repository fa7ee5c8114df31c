"""Choices that take long are made in processes, which answer as threads do, and have a time
limit."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.choices import BATCH, SLOW
from tests.helpers.server import CURVE

import truvar as tv
from truvar.exceptions import ChangeCancelledError, ChoiceFailedError
from truvar.study.commands import Ask

pytest.importorskip("fastapi", reason="needs truvar[service]")


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have every choice made in a process."""
    monkeypatch.setattr("truvar.service._choices.MAX_LIGHT_POINTS", 0)
    monkeypatch.setattr("truvar.service._choices.LIGHT_SECONDS", -1.0)


def answers(client: Any) -> list[tuple[int, Any]]:
    """Return the answers to requests for suggestions, and what is left of the study after them."""
    assert client.post("/api/studies", json={"name": "s", "problem": CURVE}).status_code == 201
    found = []
    for body in (
        {"n": 2, "lease": 60},
        {"n": 30},
        {"who": "nobody"},
        {"context": {"x": 1.0}},
        {"budget": 0.5},
        {},
    ):
        answer = client.post("/api/studies/s/ask", json=body, headers={"X-Truvar-Who": "ana"})
        found.append((answer.status_code, answer.json()))
    found.append((client.post("/api/studies/unknown/ask", json={}).status_code, None))
    events = client.get("/api/studies/s/events").json()["events"]
    found.append((0, [(event["who"], event["kind"]) for event in events]))
    return found


def test_a_process_answers_as_a_thread_does(
    tmp_path: Path, application: Any, request: pytest.FixtureRequest
) -> None:
    expected = answers(application(f"sqlite:///{tmp_path}/threads.db", waiting=20))
    request.getfixturevalue("processes")
    found = answers(application(f"sqlite:///{tmp_path}/processes.db", waiting=20))
    assert found == expected
    assert [status for status, _ in found] == [200, 429, 422, 422, 409, 200, 404, 0]
    assert ("ana", "asked") in found[-1][1]


@pytest.mark.usefixtures("processes")
def test_a_choice_has_a_time_limit(tmp_path: Path, application: Any) -> None:
    client = application(f"sqlite:///{tmp_path}/s.db", choice_seconds=4)
    assert client.post("/api/studies", json={"name": "s", "problem": SLOW}).status_code == 201
    began = time.monotonic()
    answer = client.post("/api/studies/s/ask", json={"n": BATCH})
    assert answer.status_code == 503
    assert "longer than the 4 s" in answer.json()["error"]
    assert time.monotonic() - began < 10
    assert client.get("/api/studies/s/status").json()["pending"] == []
    with pytest.raises(ChoiceFailedError, match="4 s"):
        raise _client_exception(answer)


def _client_exception(answer: Any) -> Exception:
    from truvar.remote.client import _exception

    return _exception(answer)


def test_a_choice_in_a_thread_is_given_up_between_two_suggestions() -> None:
    domain = tv.Domain.grid(x=[k / 29 for k in range(30)])
    study = tv.Study(domain, tv.Maximize(), kernel="rbf", noise=0.1, policy="variance")
    before = study.to_json()
    cancelled = threading.Event()
    cancelled.set()
    with pytest.raises(ChangeCancelledError):
        study.execute(Ask(3), cancelled)
    assert json.loads(study.to_json()) == json.loads(before)
    assert len(study.ask(3)) == 3


def test_the_events_of_a_study_are_replayed_once_for_reading_writing_and_choosing(
    tmp_path: Path, application: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from truvar.study._state import StudyState

    url = f"sqlite:///{tmp_path}/s.db"
    client = application(url)
    assert client.post("/api/studies", json={"name": "s", "problem": CURVE}).status_code == 201
    client.post("/api/studies/s/ask", json={})
    client.post("/api/studies/s/tell", json={"id": 1, "y": 0.5})
    replayed: list[int] = []
    original = StudyState.replay

    def replay(state: StudyState, events: Any) -> None:
        replayed.extend(event.number for event in events)
        original(state, events)

    client = application(url)
    monkeypatch.setattr(StudyState, "replay", replay)
    assert client.get("/api/studies/s/status").json()["version"] == 3
    assert client.post("/api/studies/s/ask", json={}).json()["suggestions"][0]["id"] == 2
    assert client.post("/api/studies/s/tell", json={"id": 2, "y": 0.6}).json()["steps"] == 2
    assert [replayed.count(number) for number in (1, 2, 3)] == [1, 1, 1]


def test_clients_that_wait_share_one_answer(
    tmp_path: Path, application: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from truvar.service import serializers

    client = application(f"sqlite:///{tmp_path}/s.db")
    assert client.post("/api/studies", json={"name": "s", "problem": CURVE}).status_code == 201
    made: list[int] = []
    original = serializers.status

    def slow(study: tv.Study, *rest: Any) -> Any:
        made.append(study.version)
        time.sleep(0.3)
        return original(study, *rest)

    monkeypatch.setattr(serializers, "status", slow)
    found: list[tuple[int, int]] = []

    def work(k: int) -> None:
        point = {"x": k / 29}
        version = client.post("/api/studies/s/tell", json={"point": point, "y": 0.1 * k}).json()[
            "version"
        ]
        found.append((version, client.get("/api/studies/s/status").json()["version"]))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(found) == 12
    assert all(seen >= told for told, seen in found)  # everybody sees the value that they told
    assert len(made) < 8


def upload_answers(client: Any) -> list[tuple[int, Any]]:
    """Return the answers to uploads, right and wrong ones, and the authors of the first events."""
    table = "x,f\n" + "\n".join(f"{k / 20},{k % 7}" for k in range(21))
    on_table = {"problem": '[domain]\ntable = "t.csv"\ncolumns = ["x"]\n[goal]\nmaximize = true\n'}
    fitted = (
        CURVE.split("[model]")[0] + '[model]\nkernel = "rbf"\ntraining = "t.csv"\nvalue = "f"\n'
    )
    tables = {"tables": {"t.csv": table}}
    study = json.loads(tv.Study(tv.Domain.grid(x=[0.0, 0.5, 1.0]), tv.Maximize()).to_json())
    found = []
    for path, body in (
        ("studies", {"name": "text", "problem": CURVE}),
        ("studies", {"name": "text", "problem": CURVE}),
        (
            "studies",
            {
                "name": "object",
                "problem": {"domain": {"grid": {"x": [0, 1, 5]}}, "goal": {"maximize": True}},
            },
        ),
        ("studies", {"name": "table", **on_table, **tables}),
        ("studies", {"name": "no table", **on_table}),
        ("studies", {"name": "wrong", "problem": CURVE + "["}),
        ("studies", {"name": "copy", "study": study}),
        ("studies", {"name": "damaged", "study": {"events": [{}]}}),
        ("problems/check", {"problem": CURVE}),
        ("problems/check", {"problem": fitted, **tables}),
        ("problems/columns", {"text": table}),
        ("problems/columns", {"text": "x,x\n1"}),
    ):
        answer = client.post(f"/api/{path}", json=body, headers={"X-Truvar-Who": "ana"})
        found.append((answer.status_code, answer.json()))
    assert (
        client.post("/api/studies/copy/tell", json={"point": {"x": 0.5}, "y": 1.0}).status_code
        == 200
    )
    events = client.get("/api/studies/table/events").json()["events"]
    return [*found, (0, [(event["who"], event["kind"]) for event in events])]


def test_an_upload_in_a_process_is_answered_as_in_a_thread(
    tmp_path: Path, application: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("truvar.service._uploads.Upload.takes_long", False)
    expected = upload_answers(application(f"sqlite:///{tmp_path}/threads.db"))
    monkeypatch.setattr("truvar.service._uploads.Upload.takes_long", True)
    found = upload_answers(application(f"sqlite:///{tmp_path}/processes.db"))
    assert found == expected
    assert [status for status, _ in found] == [
        201,
        409,
        201,
        201,
        422,
        422,
        201,
        422,
        200,
        200,
        200,
        422,
        0,
    ]
    assert found[-1][1] == [("ana", "created")]


def test_an_upload_has_a_time_limit(
    tmp_path: Path, application: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("truvar.service._uploads.Upload.takes_long", True)
    client = application(f"sqlite:///{tmp_path}/s.db", upload_seconds=0)
    answer = client.post("/api/studies", json={"name": "s", "problem": CURVE})
    assert (answer.status_code, answer.json()["exception"]) == (422, "LimitExceededError")
    assert "longer than the 0 s" in answer.json()["error"]
    assert client.get("/api/studies").json()["studies"] == []
