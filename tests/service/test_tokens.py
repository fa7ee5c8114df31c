"""Tokens of a store: for certain studies, for a time, and until they are revoked; the event log
names their holders."""

from __future__ import annotations

from typing import Any

import pytest
from tests.helpers.server import CURVE

import truvar as tv
from truvar.cli import main
from truvar.exceptions import InvalidArgumentError
from truvar.service import _auth as auth
from truvar.service._middleware import SecurityMiddleware
from truvar.storage import tokens
from truvar.storage.administration import rename_study
from truvar.storage.base import now
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
    assert (
        client.post(
            "/api/studies", json={"name": "new", "problem": CURVE}, headers=headers
        ).status_code
        == 403
    )
    listed = client.get("/api/studies", headers=headers).json()["studies"]
    assert [row["name"] for row in listed] == ["sea/north"]


def test_the_event_log_names_the_holder_of_the_token(client: Any, store: str) -> None:
    token = tokens.add_token(RDBStorage(store), "anna")
    for headers in (bearer(token), bearer(token, **{"X-Truvar-Who": "root"})):
        assert (
            client.post(
                "/api/studies/lake/note", json={"text": "rain"}, headers=headers
            ).status_code
            == 200
        )
    assert tv.load(store, "lake").events["who"].tolist()[1:] == ["anna", "root (token anna)"]


@pytest.mark.parametrize("bit", range(8 * len("read")))
def test_no_flipped_bit_makes_a_token_for_reading_one_for_writing(bit: int) -> None:
    flipped = bytearray(b"read")
    flipped[bit // 8] ^= 1 << bit % 8
    access: Any = flipped.decode("latin-1")
    token = tokens.StoredToken(
        "anna", tokens._token_digest("t" * 20), access, None, now(), None, None
    )
    middleware = SecurityMiddleware(
        _no_application, auth.Tokens(), 1_000, auth.TokenStore(lambda: [token])
    )
    scope = {"method": "POST", "path": "/api/studies/lake/tell", "headers": []}
    refusal = middleware._check_access(scope, {"authorization": f"Bearer {'t' * 20}"})
    assert refusal is not None
    assert refusal.status == 403


async def _no_application(scope: Any, receive: Any, send: Any) -> None:
    raise AssertionError("the request should have been refused")


DAMAGES = {
    "access": "access = 'write'",
    "studies": "studies = NULL",
    "broken studies": "studies = '[\"sea'",
    "expiry": "expires = NULL",
    "digest": "digest = 'x'",
    "name": "name = 'anne'",
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_token_is_refused_and_reported(
    client: Any, store: str, damage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    token = tokens.add_token(RDBStorage(store), "anna", "read", ["sea/north"], 3600.0)
    path = "/api/studies/sea/north/status"
    assert client.get(path, headers=bearer(token)).status_code == 200
    assert main(["check", store]) == 0
    with RDBStorage(store).write_transaction() as connection:
        connection.exec_driver_sql(f"UPDATE truvar_tokens SET {DAMAGES[damage]}")
    assert client.get(path, headers=bearer(token)).status_code == 401
    capsys.readouterr()
    assert main(["check", store]) == 1
    name = "anne" if damage == "name" else "anna"
    assert f"the token '{name}' does not match its checksum" in capsys.readouterr().out
    assert main(["token", "list", store]) == 0
    assert f"{name}: read, , damaged" in capsys.readouterr().out.replace("all studies", "")
    assert main(["token", "revoke", store, name]) == 0
    assert main(["check", store]) == 0


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_a_token_whose_row_cannot_be_read_keeps_the_server_closed(client: Any, store: str) -> None:
    tokens.add_token(RDBStorage(store), "anna")
    with RDBStorage(store).write_transaction() as connection:
        connection.exec_driver_sql("UPDATE truvar_tokens SET created = 'yesterday'")
    (token,) = tokens.list_tokens(RDBStorage(store))
    assert token.is_damaged
    assert auth.TokenStore(lambda: tokens.list_tokens(RDBStorage(store)))
    tokens.revoke_token(RDBStorage(store), "anna")
    assert tokens.list_tokens(RDBStorage(store)) == []


def test_tokens_of_an_earlier_release_keep_working(client: Any, store: str) -> None:
    token = tokens.add_token(RDBStorage(store), "anna", studies=["lake"])
    with RDBStorage(store).write_transaction() as connection:
        connection.exec_driver_sql("ALTER TABLE truvar_tokens DROP COLUMN checksum")
        connection.exec_driver_sql("ALTER TABLE truvar_studies DROP COLUMN name_checksum")
        connection.exec_driver_sql("UPDATE truvar_schema SET version = 3")
    (migrated,) = tokens.list_tokens(RDBStorage(store))
    assert not migrated.is_damaged
    assert client.get("/api/studies/lake/status", headers=bearer(token)).status_code == 200
    assert main(["check", store]) == 0
    rename_study(RDBStorage(store), "lake", "pond")
    assert main(["check", store]) == 0
    assert client.get("/api/studies/pond/status", headers=bearer(token)).status_code == 200


def test_tokens_end_when_they_expire_or_are_revoked(
    client: Any, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_the_command_line_makes_lists_and_revokes_tokens(
    store: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with RDBStorage(store).write_transaction():
        pass
    assert (
        main(["token", "add", store, "anna", "--read", "--study", "lake", "--expires", "30d"]) == 0
    )
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
    from truvar.service._app import create_app

    app = create_app(store, Tokens(write=("t" * 20,)))
    with TestClient(app, root_path="/lab") as client:
        assert client.get("/lab/api/studies").status_code == 401
        assert client.get("/api/studies").status_code == 401
        assert client.get("/lab/api/studies", headers=bearer("t" * 20)).status_code == 200
        page = client.get("/lab/")
        assert page.status_code == 200
        assert '"/page' not in page.text  # addresses are relative to where the page is
