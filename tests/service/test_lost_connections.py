"""Connections to PostgreSQL that are lost or do not answer: what is said about the change, and
who waits how long."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from tests.helpers.postgres import frozen
from tests.helpers.problems import KINDS
from tests.helpers.proxy import Cut, commit_proxy
from tests.helpers.server import CURVE

import truvar as tv
from truvar.exceptions import StorageError, UncertainChangeError
from truvar.storage import _postgres as postgres_storage
from truvar.storage import rdb

pytestmark = pytest.mark.parametrize("url", ["postgresql"], indirect=True)


def lake(url: str, name: str = "lake") -> tv.Study:
    return KINDS["level set with travel"].study(store=url, name=name)


# -- lost in COMMIT
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cut", ["before", "after"])
@pytest.mark.parametrize("target", ["suggestion", "key"])
def test_a_value_whose_commit_was_not_answered_is_stored_once(
    url: str, cut: Cut, target: str
) -> None:
    lake(url)
    with commit_proxy(url) as (proxy, through_proxy):
        study = tv.load(through_proxy, "lake")
        what = study.ask() if target == "suggestion" else study.domain.point(3)
        options = {} if target == "suggestion" else {"key": "sample-17-of-may"}
        proxy.cut = cut
        with pytest.raises(UncertainChangeError, match="may have been stored") as caught:
            study.tell(what, 0.3, **options)
        assert "nothing was changed" not in str(caught.value)
        assert tv.load(url, "lake").steps == (1 if cut == "after" else 0)
        id_ = study.tell(what, 0.3, **options)
        assert study.tell(what, 0.3, **options) == id_
        assert study.steps == 1
    assert tv.load(url, "lake").measurements["value"].tolist() == [0.3]


@pytest.mark.parametrize("cut", ["before", "after"])
def test_a_server_says_that_a_value_may_have_been_stored(
    url: str, cut: Cut, application: Any
) -> None:
    with commit_proxy(url) as (proxy, through_proxy):
        client = application(through_proxy)
        assert (
            client.post("/api/studies", json={"name": "curve", "problem": CURVE}).status_code == 201
        )
        body = {"point": {"x": 0.0}, "y": 1.0, "key": "sample-17-of-may"}
        proxy.cut = cut
        answer = client.post("/api/studies/curve/tell", json=body)
        assert answer.status_code == 503
        assert "may have been stored" in answer.json()["error"]
        assert answer.json()["exception"] == "UncertainChangeError"
        for _ in range(2):
            assert client.post("/api/studies/curve/tell", json=body).status_code == 200
    assert tv.load(url, "curve").steps == 1


def test_a_session_that_is_ended_before_its_commit_stores_nothing_and_can_be_repeated(
    url: str,
) -> None:
    study = lake(url)
    suggestion = study.ask()

    def tell() -> None:
        with study.transaction():
            study.tell(suggestion, 0.3)
            with psycopg.connect(url, autocommit=True) as other:
                query = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE state = 'idle in transaction'"
                other.execute(query)

    with pytest.raises(StorageError):
        tell()
    assert tv.load(url, "lake").steps == 0
    study.tell(suggestion, 0.3)
    assert tv.load(url, "lake").steps == 1


# -- a frozen server
# --------------------------------------------------------------------------------------------------


def test_requests_are_answered_while_the_database_server_is_frozen(
    url: str, application: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_storage, "ANSWER_TIMEOUT", 1)
    monkeypatch.setattr(rdb, "_UNREACHABLE_SECONDS", 0.5)
    client = application(f"{url}?connect_timeout=2")
    assert client.post("/api/studies", json={"name": "curve", "problem": CURVE}).status_code == 201
    assert client.get("/api/studies/curve/status").status_code == 200
    body = {"point": {"x": 0.0}, "y": 1.0, "key": "sample-17-of-may"}
    time.sleep(1.1)  # the tokens are read again
    with frozen(url):
        began = time.monotonic()
        assert client.get("/").status_code == 200
        assert client.get("/api").status_code == 200
        assert time.monotonic() - began < 1.5
        for answer in (
            client.get("/api/studies/curve/status"),
            client.post("/api/studies/curve/tell", json=body),
        ):
            assert answer.status_code == 503
            assert "not available" in answer.json()["error"]
        assert time.monotonic() - began < 12.0
    time.sleep(0.6)
    assert client.post("/api/studies/curve/tell", json=body).status_code == 200
    assert tv.load(url, "curve").steps == 1


# -- locks
# --------------------------------------------------------------------------------------------------


def test_a_locked_study_does_not_delay_another(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        postgres_storage, "ALIVE_SECONDS", 0.2
    )  # statements that show life are sent all the time
    monkeypatch.setattr(postgres_storage, "_thread", None)
    locked = lake(url, "locked")
    free = lake(url, "free")
    free.tell(free.domain.point(0), 0.3)  # compiles, learns and connects
    with psycopg.connect(url) as other:
        other.execute("SELECT id FROM truvar_studies WHERE name = 'locked' FOR UPDATE")
        waiting = in_thread(lambda: locked.tell(locked.domain.point(0), 0.3))
        time.sleep(1.0)
        began = time.monotonic()
        for index in range(1, 6):
            free.tell(free.domain.point(index), 0.3)
        elapsed = time.monotonic() - began
        assert waiting.is_alive()
    waiting.join(30)
    assert elapsed < 2.0
    assert (tv.load(url, "locked").steps, tv.load(url, "free").steps) == (1, 6)


def in_thread(work: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread
