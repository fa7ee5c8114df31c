"""Tokens of a store: for certain studies, for a time, and until they are revoked; the event log names their holders."""

from __future__ import annotations

from typing import Any

import pytest
from tests.helpers.server import CURVE

import truvar as tv
from truvar.cli import main
from truvar.exceptions import InvalidArgumentError
from truvar.service import auth
from truvar.storage import tokens
from truvar.storage.rdb import RDBStorage


@pytest.fixture
def store(url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(auth, "TOKEN_SECONDS", 0.0)
    return url


@pytest.fixture
def client(store: str, application: Any) -> Any:
    client = application(store)
    for name in ("lake", "sea/north"):
        assert client.post("/api/studies", json={"name": name, "problem": CURVE}).status_code == 201
    return client


def bearer(token: str, **more: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}", **more}


def test_a_token_for_one_study_opens_no_other(client: Any, store: str) -> None:
    token = tokens.add_token(RDBStorage(store), "anna", studies=["sea/north"])
    headers = bearer(token)
    body = {"point": {"x": 0.0}, "y": 1.0}
    assert client.post("/api/studies/sea/north/tell", json=body, headers=headers).status_code == 200
    assert client.get("/api/studies/sea/north/status", headers=headers).status_code == 200
    assert client.get("/api/studies/lake/status", headers=headers).status_code == 403
    assert client.post("/api/studies/lake/tell", json=body, headers=headers).status_code == 403
    assert client.get("/api/studies/lake/x/../status", headers=headers).status_code == 403
    assert client.post("/api/studies", json={"name": "new", "problem": CURVE}, headers=headers).status_code == 403
    listed = client.get("/api/studies", headers=headers).json()["studies"]
    assert [row["name"] for row in listed] == ["sea/north"]


def test_the_event_log_names_the_holder_of_the_token(client: Any, store: str) -> None:
    token = tokens.add_token(RDBStorage(store), "anna")
    for headers in (bearer(token), bearer(token, **{"X-Truvar-Who": "root"})):
        assert client.post("/api/studies/lake/note", json={"text": "rain"}, headers=headers).status_code == 200
    assert tv.load(store, "lake").events["who"].tolist()[1:] == ["anna", "root (token anna)"]


def test_tokens_end_when_they_expire_or_are_revoked(client: Any, store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = RDBStorage(store)
    kept = tokens.add_token(storage, "kept")
    read = tokens.add_token(storage, "reader", "read")
    short = tokens.add_token(storage, "short", seconds=1e-6)
    status = "/api/studies/lake/status"
    assert client.get(status, headers=bearer(short)).status_code == 401
    assert client.get(status, headers=bearer(kept)).status_code == 200
    assert client.get(status, headers=bearer(read)).status_code == 200
    assert client.post("/api/studies/lake/ask", json={}, headers=bearer(read)).status_code == 403
    tokens.revoke_token(storage, "kept")
    assert client.get(status, headers=bearer(kept)).status_code == 401
    assert client.get(status, headers=bearer("x" * 43)).status_code == 401
    with pytest.raises(InvalidArgumentError, match="no token 'kept' to revoke"):
        tokens.revoke_token(storage, "kept")
    with pytest.raises(InvalidArgumentError, match="already a token"):
        tokens.add_token(storage, "kept")


def test_the_command_line_makes_lists_and_revokes_tokens(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    with RDBStorage(store).write_transaction():
        pass
    assert main(["token", "add", store, "anna", "--read", "--study", "lake", "--expires", "30d"]) == 0
    token = capsys.readouterr().out.strip()
    assert len(token) >= 40
    assert main(["token", "list", store]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("anna: read, lake, valid until ")
    assert token not in shown
    assert main(["token", "revoke", store, "anna"]) == 0
    assert main(["token", "list", store, "--json"]) == 0
    assert "revoked" in capsys.readouterr().out
    assert main(["token", "add", store]) == 1
    assert "needs the name" in capsys.readouterr().err


def test_a_root_path_does_not_open_the_api(store: str) -> None:
    from starlette.testclient import TestClient

    from truvar.service import Tokens
    from truvar.service.app import create_app

    app = create_app(store, Tokens(write=("t" * 20,)))
    with TestClient(app, root_path="/lab") as client:
        assert client.get("/lab/api/studies").status_code == 401
        assert client.get("/api/studies").status_code == 401
        assert client.get("/lab/api/studies", headers=bearer("t" * 20)).status_code == 200
        page = client.get("/lab/")
        assert page.status_code == 200
        assert '"/page' not in page.text  # addresses are relative to where the page is
