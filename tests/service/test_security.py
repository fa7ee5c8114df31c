"""Access and hostile input: tokens, pages of other sites, files of the server, sizes, markup in
names."""

import re
import socket
import subprocess
import sys

import httpx
import pytest
from tests.helpers.server import CURVE, Api

import truvar as tv
from truvar.service import Tokens
from truvar.service._auth import check_address, host_name, is_loopback

# -- tokens
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("token", [None, "wrong" * 5, "w" * 19, "w" * 21, "é" * 20])
def test_a_missing_or_wrong_token_is_refused(guarded, token):
    url, _, _ = guarded
    headers = {} if token is None else {"Authorization": f"Bearer {token}".encode()}
    for method, path in (
        ("GET", "/api"),
        ("GET", "/api/studies"),
        ("POST", "/api/studies"),
        ("GET", "/api/openapi.json"),
    ):
        answer = httpx.request(
            method, url + path, headers=headers, json={} if method == "POST" else None
        )
        assert answer.status_code == 401, (method, path)
        assert answer.headers["www-authenticate"] == "Bearer"
        assert "token" in answer.json()["error"]


def test_a_token_in_another_header_or_scheme_is_ignored(guarded):
    url, write, _ = guarded
    for headers in (
        {"Authorization": write},
        {"Authorization": f"Basic {write}"},
        {"Cookie": f"token={write}"},
    ):
        assert httpx.get(f"{url}/api", headers=headers).status_code == 401
    assert httpx.get(f"{url}/api?token={write}").status_code == 401


def test_a_read_only_token_reads_and_changes_nothing(guarded):
    url, write, read = guarded
    owner = Api(url, write)
    guest = Api(url, read)
    owner.create("watched", CURVE)
    (s,) = owner.post("/studies/watched/ask", {})["suggestions"]
    assert guest.get("")["access"] == "read"
    assert owner.get("")["access"] == "write"
    before = guest.get("/studies/watched/view")
    for verb, body in (
        ("ask", {}),
        ("tell", {"id": s["id"], "y": 1.0}),
        ("correct", {"id": s["id"], "y": 1.0}),
        ("withdraw", {"id": s["id"]}),
        ("note", {"text": "I was here"}),
    ):
        assert "reading only" in guest.post(f"/studies/watched/{verb}", body, 403)["error"]
    guest.post("/studies", {"name": "mine", "problem": CURVE}, 403)
    assert guest.get("/studies/watched/view") == before
    with pytest.raises(tv.TruvarError, match="reading only"):
        tv.connect(url, read, "watched").ask()
    assert tv.connect(url, write, "watched").pending[0].id == s["id"]


def test_the_page_itself_has_no_data_and_needs_no_token(guarded):
    url, _, _ = guarded
    assert httpx.get(url).status_code == 200
    assert httpx.get(f"{url}/page/app.js").status_code == 200


def test_unsafe_tokens_are_refused():
    with pytest.raises(tv.TruvarError, match="at least 16"):
        Tokens(write=("short",))
    with pytest.raises(tv.TruvarError, match="must differ"):
        Tokens(write=("a" * 20,), read=("a" * 20,))
    tokens = Tokens(write=("a" * 20, "c" * 20), read=("b" * 20,))
    assert [tokens.access(letter * 20) for letter in "abcd"] == ["write", "read", "write", None]


# -- addresses
# --------------------------------------------------------------------------------------------------


def test_an_address_that_others_can_reach_needs_a_token(tmp_path):
    command = [
        sys.executable,
        "-m",
        "truvar",
        "serve",
        "--store",
        f"sqlite:///{tmp_path}/s.db",
        "--host",
        "0.0.0.0",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "needs a token" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    check_address("0.0.0.0", Tokens(write=("t" * 20,)))
    for host in ("127.0.0.1", "localhost", "::1"):
        check_address(host, Tokens())
    assert not is_loopback("10.0.0.1")
    assert not is_loopback("example.org")


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", "10.1.1.1"]
)
def test_without_tokens_only_host_names_of_this_machine_are_answered(served, host):
    """A site whose host name resolves to this machine (DNS rebinding) gets no answer, not even
    the page."""
    api, _ = served
    for path in ("/", "/api/studies", "/page/app.js"):
        assert httpx.get(api.url + path, headers={"Host": host}).status_code == 403, path
    assert httpx.get(f"{api.url}/api", headers={"Host": "LOCALHOST:1"}).status_code == 200
    assert host_name("[::1]:8765") == "::1"


def test_pages_of_other_sites_cannot_write(served):
    api, _ = served
    body = {"name": "forged", "problem": CURVE}
    assert (
        api.http.post("/studies", json=body, headers={"Origin": "https://evil.example"}).status_code
        == 403
    )
    assert api.http.post("/studies", json=body, headers={"Origin": "null"}).status_code == 403
    for kind in (
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "",
    ):
        answer = api.http.post("/studies", content=b"{}", headers={"Content-Type": kind})
        assert answer.status_code == 415, kind
    assert "forged" not in [row["name"] for row in api.get("/studies")["studies"]]
    assert (
        "access-control-allow-origin"
        not in api.http.get("/studies", headers={"Origin": "https://a.example"}).headers
    )


@pytest.mark.parametrize(
    "path", ["/", "/page/app.js", "/api", "/api/studies", "/api/nothing", "/nothing"]
)
def test_every_answer_has_security_headers(served, path):
    api, _ = served
    headers = httpx.get(api.url + path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "no-referrer"
    assert "server" not in headers


def test_the_page_has_no_inline_code_and_loads_nothing_from_other_sites(served):
    api, _ = served
    page = httpx.get(api.url).text
    assert "<script>" not in page
    assert "<style" not in page
    assert " style=" not in page
    assert "http" not in page.replace("http-equiv", "")


# -- files and sizes
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    ["/etc/passwd", "../conftest.py", "lake.csv", "file:///etc/passwd", "http://127.0.0.1:1/x"],
)
def test_a_problem_cannot_read_files_of_the_server(served, path):
    api, _ = served
    table = f'[domain]\ntable = "{path}"\n[goal]\nmaximize = true\n'
    training = f'[domain]\ngrid = {{x = [0, 1, 5]}}\n[goal]\nmaximize = true\n[model]\ntraining = "{path}"\n'
    for problem in (table, training):
        assert (
            "was not sent"
            in api.post("/studies", {"name": "thief", "problem": problem}, 422)["error"]
        )


@pytest.mark.parametrize(
    "path",
    [
        "/page/../app.py",
        "/page/%2e%2e/app.py",
        "/page/..%2fapp.py",
        "/page//etc/passwd",
        "/page/%2fetc%2fhosts",
    ],
)
def test_only_files_of_the_page_are_served(served, path):
    api, _ = served
    assert httpx.get(api.url + path).status_code == 404


def test_a_body_that_is_too_large_is_refused_with_and_without_its_length(served):
    api, _ = served
    limit = api.get("")["limits"]["body"]
    headers = {"Content-Type": "application/json"}

    def stream():
        for _ in range(limit // 1_000_000 + 2):
            yield b" " * 1_000_000

    assert api.http.post("/studies", content=b" " * (limit + 1), headers=headers).status_code == 413
    assert api.http.post("/studies", content=stream(), headers=headers).status_code == 413
    assert api.http.post("/studies", content=b"{nonsense", headers=headers).status_code == 400


@pytest.mark.parametrize(
    "problem",
    [
        "[domain]\ngrid = {x = [0, 1, 100000], y = [0, 1, 100000]}\n[goal]\nmaximize = true\n",
        "[domain]\nbox = {x = [0, 1]}\nrepresenters = 1000000000\n[goal]\nmaximize = true\n",
        "[domain]\ngrid = "
        f"{{{', '.join(f'x{k} = [0, 1, 1]' for k in range(60))}}}\n[goal]\nmaximize = true\n",
        '[domain]\ngrid = {x = [0, 1, 5]}\n[goal]\nmaximize = true\n[policy]\nname = "es"\ndraws = '
        "1000000000\n",
        "[domain]\ngrid = {x = [0, 1, 5]}\n[goal]\nmaximize = true\n[noise]\n"
        f"levels = [{', '.join(['{variance = 1.0, cost = 1.0}'] * 30)}]\n",
    ],
)
def test_a_problem_that_is_too_large_is_refused_before_it_is_made(served, problem):
    api, _ = served
    assert "at most" in api.post("/studies", {"name": "giant", "problem": problem}, 422)["error"]


def test_a_table_or_an_exported_study_that_is_too_large_is_refused(served):
    api, _ = served
    rows = "x\n" + "\n".join(map(str, range(10_001)))
    body = {
        "name": "long",
        "problem": '[domain]\ntable = "t"\n[goal]\nmaximize = true\n',
        "tables": {"t": rows},
    }
    assert "at most" in api.post("/studies", body, 422)["error"]
    api.create("template", CURVE)
    whole = api.get("/studies/template/export")
    whole["events"][0]["details"]["domain"]["axes"] = [list(range(5000)), list(range(5000))]
    assert "at most" in api.post("/studies", {"name": "wide", "study": whole}, 422)["error"]


@pytest.mark.parametrize(
    "damage",
    [
        lambda whole: whole["events"][0]["details"].update(
            policy={"kind": "os.system", "command": "id"}
        ),
        lambda whole: whole["events"][0]["details"].update(kernel={"kind": "Kernel"}),
        lambda whole: whole["events"][0]["details"].update(domain={"kind": "Domain"}),
        lambda whole: whole["events"].append({"number": 2}),
        lambda whole: whole.update(events=[]),
        lambda whole: whole.update(format="something else"),
    ],
)
def test_an_exported_study_that_was_tampered_with_is_refused(served, damage):
    api, _ = served
    if not any(row["name"] == "original" for row in api.get("/studies")["studies"]):
        api.create("original", CURVE)
    whole = api.get("/studies/original/export")
    damage(whole)
    assert api.post("/studies", {"name": "copy", "study": whole}, 422)["error"]
    assert "copy" not in [row["name"] for row in api.get("/studies")["studies"]]


@pytest.mark.parametrize("name", ["", ".", "..", " lake", "a\nb", "nul\x00", "x" * 101, "\ud800"])
def test_names_that_a_url_or_database_cannot_hold_are_refused(served, name):
    api, _ = served
    body = '{"name": ' + __import__("json").dumps(name) + ', "problem": "[domain]"}'
    answer = api.http.post(
        "/studies", content=body.encode(), headers={"Content-Type": "application/json"}
    )
    assert answer.status_code == 422, answer.text


def test_sql_in_names_and_notes_is_text(served):
    api, _ = served
    name = "x'; DROP TABLE truvar_events; --"
    api.create(name, CURVE)
    api.post(f"/studies/{name}/note", {"text": "'); DELETE FROM truvar_studies; --"})
    assert [row["name"] for row in api.get("/studies")["studies"]].count(name) == 1
    assert len(api.get(f"/studies/{name}/events")["events"]) == 2


def test_a_port_in_use_is_reported_in_one_line(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = subprocess.run(
            [sys.executable, "-m", "truvar", "serve", str(tmp_path / "a.db"), "--port", port],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    assert (done.returncode, done.stdout) == (1, "")
    assert re.fullmatch(
        rf"truvar: cannot serve at 127\.0\.0\.1 port {port} .* --port\n", done.stderr
    )
