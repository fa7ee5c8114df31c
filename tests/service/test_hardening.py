"""Uploads, texts and connections that are meant to break a server."""

from __future__ import annotations

import json
import random
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import suppress
from typing import Any

import httpx
import pandas as pd
import pytest
from tests.helpers.server import CURVE, GRID
from tests.helpers.uploads import HALF, exported_studies, mutated, use_upload

import truvar as tv
from truvar.tabular.csv_cells import _quote_cell, unquote_cell


@pytest.fixture
def client(tmp_path: Any, application: Any) -> Any:
    return application(f"sqlite:///{tmp_path}/s.db")


@pytest.fixture
def exported(client: Any) -> dict[str, Any]:
    assert client.post("/api/studies", json={"name": "s", "problem": CURVE}).status_code == 201
    for k in range(3):
        assert (
            client.post(
                "/api/studies/s/tell", json={"point": {"x": k / 29}, "y": float(k)}
            ).status_code
            == 200
        )
    assert client.post("/api/studies/s/ask", json={}).status_code == 200
    study: dict[str, Any] = client.get("/api/studies/s/export").json()
    return study


def upload(client: Any, study: Any, name: str = "copy") -> Any:
    content = json.dumps({"name": name, "study": study})
    return client.post(
        "/api/studies", content=content, headers={"content-type": "application/json"}
    )


def wrapped_details(study: dict[str, Any]) -> None:
    first = study["events"][0]
    first["details"]["domain"]["axes"] = [[k / 9e6 for k in range(3000)]] * 2
    first["details"]["domain"]["columns"] = ["x", "y"]
    first["details"] = {
        "kind": "dict",
        "items": [[key, item] for key, item in first["details"].items()],
    }


def wrapped_axes(study: dict[str, Any]) -> None:
    domain = study["events"][0]["details"]["domain"]
    domain["axes"] = [{"kind": "tuple", "values": [k / 9e6 for k in range(3000)]}] * 2
    domain["columns"] = ["x", "y"]


def wrapped_domain(study: dict[str, Any]) -> None:
    details = study["events"][0]["details"]
    domain = details["domain"]
    domain["axes"] = [[k / 9e6 for k in range(3000)]] * 2
    details["domain"] = {"kind": "tuple", "values": [domain]}


@pytest.mark.parametrize("wrap", [wrapped_details, wrapped_axes, wrapped_domain])
def test_a_large_domain_cannot_be_hidden_in_containers(
    client: Any, exported: dict[str, Any], wrap: Any
) -> None:
    wrap(exported)
    began = time.monotonic()
    answer = upload(client, exported)
    assert answer.status_code == 422, answer.text
    assert len(answer.text) < 5_000
    assert time.monotonic() - began < 10
    assert [row["name"] for row in client.get("/api/studies").json()["studies"]] == ["s"]


def table_study() -> dict[str, Any]:
    """Return an exported study of a table whose rows have names."""
    frame = pd.DataFrame({"x": [0.0, 0.5, 1.0], "site": ["a", "b", "c"]}).set_index(
        pd.Index(["p", "q", "r"])
    )
    study = tv.Study(tv.Domain.table(frame, ["x"]), tv.Maximize())
    exported: dict[str, Any] = json.loads(study.to_json())
    return exported


@pytest.mark.parametrize(
    "column_type", ["S300000000", "<U100000000", "uint8,S300000000", "(9999999,)f8", 5]
)
def test_a_column_type_that_is_never_written_is_refused(client: Any, column_type: Any) -> None:
    exported = table_study()
    domain = exported["events"][0]["details"]["domain"]
    assert upload(client, exported, "plain").status_code == 201
    for column in domain["table"]:
        as_written = column["type"]
        column["type"] = column_type
        answer = upload(client, exported)
        assert answer.status_code == 422, answer.text
        assert "type of the column" in answer.json()["error"]
        column["type"] = as_written


def test_labels_take_no_more_memory_than_the_rows(client: Any) -> None:
    exported = table_study()
    labels = exported["events"][0]["details"]["domain"]["labels"]
    labels["dtype"] = "uint8,S300000000"
    assert upload(client, exported, "typed").status_code == 201  # the type is left out
    ranged = {"names": [None], "range": [0, 10**12, 1]}
    for large in (ranged, {"names": ["a", "b"], "levels": [ranged, ranged]}):
        exported["events"][0]["details"]["domain"]["labels"] = large
        answer = upload(client, exported)
        assert answer.status_code == 422, answer.text
        assert "labels" in answer.json()["error"]


def test_many_restarts_of_a_fit_are_refused(client: Any) -> None:
    exported = table_study()
    kernel = {"kind": "Learned", "marginalise": False, "transform": "none", "restarts": 10**9}
    exported["events"][0]["details"]["kernel"] = kernel
    answer = upload(client, exported)
    assert answer.status_code == 422
    assert "at most 10,000 for [model] restarts" in answer.json()["error"]


def test_costs_whose_sums_overflow_are_422(client: Any, exported: dict[str, Any]) -> None:
    body = {"point": {"x": 0.0}, "y": 1.0, "cost": 1.7e308}
    answer = client.post("/api/studies/s/tell", json=body)
    assert (answer.status_code, answer.json()["exception"]) == (422, "InvalidMeasurementError")
    assert "cost must be at most 1e+300" in answer.json()["error"]
    problem = CURVE + "[cost]\nbase = 1.7e308\n"
    assert (
        client.post("/api/studies", json={"name": "expensive", "problem": problem}).status_code
        == 422
    )
    exported["events"][2]["details"]["cost"] = 1.7e308
    answer = upload(client, exported)
    assert answer.status_code == 422
    assert "at most 1e+300" in answer.json()["error"]
    assert client.post("/api/studies/s/tell", json={**body, "cost": 1e300}).status_code == 200
    for what in ("status", "view", "export", "report"):
        assert client.get(f"/api/studies/s/{what}").status_code == 200


@pytest.mark.parametrize(
    "grid", ["{x = [0, 1, 200000000], y = [0, 1, 0]}", "{x = [0, 1, 200000000], y = [0, 1, -1]}"]
)
def test_a_grid_whose_product_is_not_positive_is_refused(client: Any, grid: str) -> None:
    problem = f"[domain]\ngrid = {grid}\n[goal]\nmaximize = true\n"
    assert client.post("/api/studies", json={"name": "g", "problem": problem}).status_code == 422


def test_a_table_with_many_columns_is_refused_before_it_is_read(client: Any) -> None:
    table = (
        ",".join(f"c{k}" for k in range(200_000))
        + "\n"
        + ",".join("1" for _ in range(200_000))
        + "\n"
    )
    problem = '[domain]\ntable = "t.csv"\ncolumns = ["c0"]\n[goal]\nmaximize = true\n'
    began = time.monotonic()
    answer = client.post(
        "/api/studies", json={"name": "t", "problem": problem, "tables": {"t.csv": table}}
    )
    assert answer.status_code == 422
    assert "columns" in answer.json()["error"]
    assert time.monotonic() - began < 5


def test_mutated_studies_are_refused_or_can_be_used(client: Any) -> None:
    exports = exported_studies()
    rng = random.Random(3)
    accepted = [use_upload(client, f"m{k}", mutated(exports, rng)) for k in range(60)]
    assert any(accepted)
    assert not all(accepted)


@pytest.mark.parametrize("name", ["id", "site", "level", "repeats"])
def test_an_event_with_a_list_for_a_number_is_refused(
    client: Any, exported: dict[str, Any], name: str
) -> None:
    exported["events"][1]["details"][name] = {"kind": "tuple", "values": [None]}
    answer = upload(client, exported)
    assert answer.status_code == 422
    assert "whole number" in answer.json()["error"]


@pytest.mark.parametrize("name", ["start", "seed"])
def test_a_study_with_a_fraction_for_a_number_is_refused(
    client: Any, exported: dict[str, Any], name: str
) -> None:
    exported["events"][0]["details"][name] = 1e308
    assert upload(client, exported).status_code == 422


@pytest.mark.parametrize("text", ["a\0b", HALF])
def test_text_that_cannot_be_stored_is_422(
    client: Any, exported: dict[str, Any], text: str
) -> None:
    for path, body in {
        "/api/studies/s/note": {"text": text},
        "/api/studies": {"name": text, "problem": CURVE},
        "/api/studies/s/tell": {"point": {text: 1.0}, "y": 1.0},
    }.items():
        answer = client.post(
            path, content=json.dumps(body), headers={"content-type": "application/json"}
        )
        assert answer.status_code == 422, (path, answer.text)
    tables = {"t.csv": f"a,n\n0,{text}\n1,z\n"}
    problem = '[domain]\ntable = "t.csv"\ncolumns = ["a"]\n[goal]\nmaximize = true\n'
    column = CURVE.replace("x =", f"{json.dumps(text)} =") if text != HALF else CURVE + f"# {HALF}"
    for body in ({"problem": problem, "tables": tables}, {"problem": column}):
        content = json.dumps({"name": "other", **body})
        answer = client.post(
            "/api/studies", content=content, headers={"content-type": "application/json"}
        )
        assert answer.status_code == 422, answer.text[:500]
    exported["events"][1]["who"] = text
    assert upload(client, exported).status_code == 422


def test_a_name_of_megabytes_is_refused(client: Any) -> None:
    problem = CURVE.replace("x =", f'"{"y" * 100_000}" =')
    answer = client.post("/api/studies", json={"name": "long", "problem": problem})
    assert answer.status_code == 422
    assert len(answer.text) < 5_000


def test_a_wrong_method_is_answered_with_the_right_ones(client: Any) -> None:
    for path, allowed in {
        "/api/studies": "GET, POST",
        "/api/studies/s/ask": "POST",
        "/api/studies/s/view": "GET",
    }.items():
        answer = client.request("PUT", path, json={})
        assert answer.status_code == 405
        assert answer.headers["allow"] == allowed


def test_unknown_names_do_not_close_open_studies(
    tmp_path: Any, application: Any, monkeypatch: Any
) -> None:
    client = application(f"sqlite:///{tmp_path}/s.db", studies=2)
    for name in ("a", "b"):
        assert client.post("/api/studies", json={"name": name, "problem": CURVE}).status_code == 201
        assert client.get(f"/api/studies/{name}/status").status_code == 200
    opened = []
    original = tv.Study.from_event_log.__func__  # type: ignore[attr-defined]
    monkeypatch.setattr(
        tv.Study,
        "from_event_log",
        classmethod(lambda cls, *a, **k: (opened.append(1), original(cls, *a, **k))[1]),
    )
    for k in range(10):
        assert client.get(f"/api/studies/unknown{k}/status").status_code == 404
    for name in ("a", "b"):
        assert client.get(f"/api/studies/{name}/status").status_code == 200
    assert opened == []


def test_a_client_cannot_fill_the_log(
    tmp_path: Any, application: Any, caplog: pytest.LogCaptureFixture
) -> None:
    from truvar.service._log_limits import MAX_RECORDS

    client = application(f"sqlite:///{tmp_path}/s.db")
    assert client.post("/api/studies", json={"name": "s", "problem": CURVE}).status_code == 201
    with sqlite3.connect(tmp_path / "s.db") as database:
        database.execute("DROP TABLE truvar_events")
    for _ in range(3 * MAX_RECORDS):
        assert client.get("/api/studies/s/status").status_code == 503
    records = [record for record in caplog.records if record.name == "truvar.service"]
    assert 0 < len(records) <= MAX_RECORDS
    assert "left out" in caplog.text


def test_no_cell_of_an_export_is_a_formula(client: Any) -> None:
    problem = '[domain]\ngrid = {"=1+1" = [0, 1, 5]}\n[goal]\nmaximize = true\n'
    assert client.post("/api/studies", json={"name": "f", "problem": problem}).status_code == 201
    assert (
        client.post("/api/studies/f/tell", json={"point": {"=1+1": 0.5}, "y": -1.5}).status_code
        == 200
    )
    text = client.get("/api/studies/f/export.csv").text
    cells = [cell for line in text.splitlines() for cell in line.split(",")]
    assert not any(cell.startswith(("=", "+", "@")) for cell in cells)
    assert "-1.5" in cells  # a number stays one
    for cell in ("=1+1", "'=1+1", "plain", "-x"):
        assert unquote_cell(_quote_cell(cell)) in (cell, cell.removeprefix("'"))


def test_a_server_ends_within_ten_seconds_and_loses_nothing(tmp_path: Any) -> None:
    """The choice under way when SIGTERM comes takes longer than a minute."""
    store = f"sqlite:///{tmp_path}/s.db"
    script = (
        "import sys, time\n"
        "from truvar.cli import main\n"
        "from truvar.study import _handlers\n"
        "choose = _handlers.choose\n"
        "def choose_slowly(state, *a):\n"
        # the server begins with a study of its own, of x alone
        "    if 'y' in state.config.domain.columns:\n"
        "        print('choosing', flush=True)\n"
        "        time.sleep(90)\n"
        "    return choose(state, *a)\n"
        "_handlers.choose = choose_slowly\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-c", script, "serve", "--store", store, "--port", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        assert "http" in process.stdout.readline()
        url = f"http://127.0.0.1:{port}/api/studies"
        httpx.post(url, json={"name": "s", "problem": GRID}, timeout=60).raise_for_status()
        asking = threading.Thread(
            target=lambda: _ignore(lambda: httpx.post(f"{url}/s/ask", json={}, timeout=100))
        )
        asking.start()
        assert any(
            line.strip() == "choosing" for line in process.stdout
        )  # after a notice that the store is new
        told = httpx.post(
            f"{url}/s/tell", json={"point": {"x": 0.0, "y": 0.0}, "y": 0.5}, timeout=20
        )
        assert told.status_code == 200  # a slow choice keeps nobody from telling
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=30)
        assert time.monotonic() - began < 10
        asking.join(30)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    study = tv.load(store, "s")
    assert study.measurements["value"].tolist() == [0.5]
    assert study.pending == []


def _ignore(work: Any) -> None:
    with suppress(httpx.HTTPError):
        work()
