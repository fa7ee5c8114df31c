"""The page without a server: it opens after a single visit, and keeps nothing of who logged out."""

from __future__ import annotations

import shutil
import threading
import time

import pytest
from tests.helpers.page import DESKTOP, PHONE, SMALL_PHONE, TIMEOUT, wait_until
from tests.helpers.server import GRID, Api, restartable_server, store_url

from truvar.service._page_files import STATIC, worker_script

DRAWN = "document.querySelector('.map canvas').toDataURL()"  # the pixels of the map
ANNA = "a" * 20
BERT = "b" * 20
BOX = """
[domain]
box.x = [0, 1]
box.y = [0, 1]
box.z = [0, 1]
representers = 60
[goal]
maximize = true
"""
CACHES = "caches.keys().then((names) => names.filter((name) => name.startsWith(PREFIX)))"
ANSWERS = CACHES.replace("PREFIX", "'truvar-answers'")
PAGES = CACHES.replace("PREFIX", "'truvar-page'")
# caches take two seconds to open, as on a busy phone
SLOW_CACHES = """() => {
    const open = caches.open.bind(caches);
    window.opening = 0;
    caches.open = async (name) => {
        window.opening += 1;
        await new Promise((resolve) => setTimeout(resolve, 2000));
        const cache = await open(name);
        window.opening -= 1;
        return cache;
    };
}"""
# every text that the browser keeps for this origin, but the theme and the files of the page
STORED = """async () => {
    const texts = [...Object.values(localStorage), ...Object.values(sessionStorage)];
    for (const name of await caches.keys()) {
        if (name.startsWith("truvar-page")) continue;
        const cache = await caches.open(name);
        for (const request of await cache.keys()) {
            texts.push(request.url, await (await cache.match(request)).text());
        }
    }
    return texts.join();
}"""


@pytest.fixture
def new_page(chromium):
    """Open a page of a context of its own, in which service workers run."""
    contexts = []

    def open_page(url, device=PHONE):
        context = chromium.new_context(**device)
        context.set_default_timeout(TIMEOUT)
        contexts.append(context)
        page = context.new_page()
        page.goto(url)
        return page

    yield open_page
    for context in contexts:
        context.close()


def wait_until_kept(page) -> None:
    """Wait until the files of the page are kept."""
    page.evaluate("navigator.serviceWorker.ready.then(() => null)")


def log_in(page, token: str) -> None:
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Log in").click()


def offline_reload(page, server) -> None:
    server.stop()
    page.reload()
    page.locator("#offline", has_text="No connection to the server").wait_for()


def test_after_a_single_visit_the_page_opens_though_the_server_is_gone(tmp_path, new_page):
    with restartable_server(store_url(tmp_path / "lake.db")) as server:
        api = Api(server.url)
        api.create("lake", GRID)
        api.post("/studies/lake/tell", {"point": {"x": 0.0, "y": 0.0}, "y": 0.25})
        api.post("/studies/lake/ask", {"n": 2})
        page = new_page(f"{server.url}/#/study/lake")
        page.locator('.suggestion[data-id="3"]').wait_for()
        before = page.evaluate(DRAWN)
        wait_until_kept(page)
        offline_reload(page, server)
        page.locator('.suggestion[data-id="3"]').wait_for()
        page.locator('.measurements tr[data-id="1"]').wait_for()
        assert "The page shows what was known on" in page.locator("#offline").inner_text()
        assert page.evaluate(DRAWN) == before
        page.locator(".brand").click()
        page.get_by_role("link", name="lake").wait_for()


def test_slices_of_many_columns_are_kept_too(tmp_path, new_page):
    with restartable_server(store_url(tmp_path / "box.db")) as server:
        Api(server.url).create("box", BOX)
        page = new_page(f"{server.url}/#/study/box")
        page.locator(".map .key canvas, .map .key li").first.wait_for()
        wait_until_kept(page)
        offline_reload(page, server)
        page.get_by_text("A slice through the domain").wait_for()


def test_errors_about_the_connection_go_when_the_server_is_back(tmp_path, new_page):
    with restartable_server(store_url(tmp_path / "lake.db")) as server:
        api = Api(server.url)
        api.create("lake", GRID)
        page = new_page(f"{server.url}/#/study/lake")
        page.get_by_role("button", name="Suggest next").wait_for()
        wait_until_kept(page)
        server.stop()
        page.get_by_role("button", name="Suggest next").click()
        page.locator(".alert", has_text="The server cannot be reached").wait_for()
        page.locator("#offline").wait_for()
        page.locator(".connection.lost").wait_for()
        server.start()
        page.locator("#offline").wait_for(state="hidden")
        page.locator(".connection.live").wait_for()
        assert page.locator(".alert:visible").count() == 0
        page.get_by_role("button", name="Suggest next").click()
        page.locator('.suggestion[data-id="1"]').wait_for()


def test_a_page_that_could_not_be_shown_is_shown_when_the_server_is_back(tmp_path, new_page):
    with restartable_server(store_url(tmp_path / "lake.db")) as server:
        page = new_page(f"{server.url}/#/")
        page.get_by_role("heading", name="No studies yet").wait_for()
        Api(server.url).create("never seen", GRID)
        wait_until_kept(page)
        server.stop()
        page.goto(f"{server.url}/#/study/never%20seen")
        page.get_by_role("heading", name="The page could not be shown").wait_for()
        server.start()
        page.get_by_role("heading", name="never seen", level=1).wait_for()


def test_logging_out_removes_everything_that_was_kept(tmp_path, new_page):
    store = store_url(tmp_path / "lake.db")
    with restartable_server(store, {"TRUVAR_TOKEN": ANNA}) as server:
        Api(server.url, ANNA).create("secret lake", GRID)
        page = new_page(f"{server.url}/#/study/secret%20lake")
        page.get_by_role("heading", name="Log in").wait_for()
        assert "Authorization" not in page.locator("body").inner_text()
        log_in(page, ANNA)
        page.get_by_role("heading", name="secret lake", level=1).wait_for()
        wait_until(page, f"{ANSWERS}.then((names) => names.length > 0)")
        assert "secret lake" in page.evaluate(STORED)
        page.reload()  # the session remembers the token
        page.get_by_role("heading", name="secret lake", level=1).wait_for()
        page.get_by_role("button", name="Log out").click()
        page.get_by_role("heading", name="Log in").wait_for()
        assert page.get_by_label("Token").input_value() == ""
        kept = page.evaluate(STORED)
        assert "secret lake" not in kept
        assert ANNA not in kept
        wait_until_kept(page)
        server.stop()
        page.reload()
        page.get_by_text("The server cannot be reached").wait_for()
        assert "secret lake" not in page.locator("main").inner_text()


def test_answers_that_come_while_logging_out_are_not_kept(tmp_path, new_page):
    store = store_url(tmp_path / "lake.db")
    with restartable_server(store, {"TRUVAR_TOKEN": ANNA}) as server:
        Api(server.url, ANNA).create("secret lake", GRID)
        page = new_page(f"{server.url}/#/study/secret%20lake&token={ANNA}")
        page.get_by_role("heading", name="secret lake", level=1).wait_for()
        page.evaluate(SLOW_CACHES)
        page.evaluate("location.hash = '#/'")
        wait_until(page, "window.opening > 0")
        page.get_by_role("button", name="Log out").click()
        page.get_by_role("heading", name="Log in").wait_for()
        wait_until(page, "window.opening === 0")
        wait_until(page, f"{ANSWERS}.then((names) => names.length === 0)")
        assert "secret lake" not in page.evaluate(STORED)


def test_logging_out_asks_about_values_that_were_not_sent(tmp_path, new_page):
    store = store_url(tmp_path / "lake.db")
    with restartable_server(store, {"TRUVAR_TOKEN": ANNA}) as server:
        api = Api(server.url, ANNA)
        api.create("lake", GRID)
        api.post("/studies/lake/ask", {})
        page = new_page(f"{server.url}/#/study/lake&token={ANNA}")
        card = page.locator('.suggestion[data-id="1"]')
        card.wait_for()
        server.stop()
        card.get_by_label("Measured value").fill("0.5")
        card.get_by_role("button", name="Save").click()
        page.get_by_text("1 value kept in this browser").wait_for()
        page.get_by_role("button", name="Log out").click()
        dialog = page.get_by_role("dialog")
        assert "1 entry not sent" in dialog.inner_text()
        dialog.get_by_role("button", name="Stay logged in").click()
        page.get_by_text("1 value kept in this browser").wait_for()
        page.get_by_role("button", name="Log out").click()
        page.get_by_role("dialog").get_by_role("button", name="Discard and log out").click()
        page.locator("#unsent").wait_for(state="hidden")
        assert "0.5" not in page.evaluate(STORED)


def test_another_token_finds_nothing_of_the_one_before(tmp_path, new_page):
    store = store_url(tmp_path / "lake.db")
    with restartable_server(store, {"TRUVAR_TOKEN": ANNA, "TRUVAR_READ_TOKEN": BERT}) as server:
        Api(server.url, ANNA).create("anna", GRID)
        page = new_page(f"{server.url}/#/study/anna&token={ANNA}", DESKTOP)
        page.get_by_role("heading", name="anna", level=1).wait_for()
        assert "token" not in page.url
        wait_until(page, f"{ANSWERS}.then((names) => names.length > 0)")
        page.goto(f"{server.url}/#/new&token={BERT}")  # the tab changes hands
        page.get_by_text("read only").wait_for()
        wait_until(
            page,
            "caches.open('truvar-answers:/:details').then((c) => c.keys())"
            ".then((keys) => keys.length === 0)",
        )
        assert '"name":"anna"' not in page.evaluate(STORED)
        assert ANNA not in page.evaluate(STORED)


def test_a_new_tab_without_a_network_opens_with_the_token_alone(tmp_path, new_page):
    store = store_url(tmp_path / "lake.db")
    with restartable_server(store, {"TRUVAR_TOKEN": ANNA}) as server:
        Api(server.url, ANNA).create("lake", GRID)
        page = new_page(f"{server.url}/#/study/lake&token={ANNA}", SMALL_PHONE)
        page.get_by_role("heading", name="lake", level=1).wait_for()
        wait_until_kept(page)
        server.stop()
        tab = page.context.new_page()  # the session storage is that of a tab
        page.close()
        tab.goto(f"{server.url}/#/study/lake")
        tab.get_by_text("With your token the page shows what it showed last").wait_for()
        log_in(tab, BERT)
        tab.get_by_text("The server cannot be reached").wait_for()
        assert tab.get_by_role("heading", name="lake", level=1).count() == 0
        tab.evaluate("sessionStorage.clear()")
        tab.reload()
        log_in(tab, ANNA)
        tab.get_by_role("heading", name="lake", level=1).wait_for()


def test_a_token_that_is_revoked_leads_back_to_the_form_and_loses_no_value(tmp_path, new_page):
    import subprocess
    import sys

    path = tmp_path / "lake.db"

    def token(*arguments: str) -> str:
        command = [sys.executable, "-m", "truvar", "token", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    first = token("add", str(path), "anna").split()[-1]
    with restartable_server(store_url(path)) as server:
        api = Api(server.url, first)
        api.create("lake", GRID)
        api.post("/studies/lake/ask", {})
        page = new_page(f"{server.url}/#/study/lake&token={first}")
        card = page.locator('.suggestion[data-id="1"]')
        card.wait_for()
        assert "anna" in page.locator("#account").inner_text()
        second = token("add", str(path), "anna-again").split()[-1]
        token("revoke", str(path), "anna")
        time.sleep(1.5)  # the server reads the tokens every second
        card.get_by_label("Measured value").fill("0.5")
        card.get_by_role("button", name="Save").click()
        page.get_by_role("heading", name="Log in").wait_for()
        assert "1 entry of this browser will be sent after you log in" in (
            page.locator("main").inner_text()
        )
        log_in(page, second)
        page.locator('.measurements tr[data-id="1"]').wait_for()
        rows = Api(server.url, second).get("/studies/lake/measurements")["measurements"]
        assert [row["value"] for row in rows] == [0.5]


class ReleaseServer:
    """The application of a folder of page files, in a thread, on one port."""

    def __init__(self, folder, store, port, monkeypatch) -> None:
        import uvicorn

        from truvar.service import _app

        monkeypatch.setattr(_app, "STATIC", folder)
        settings = uvicorn.Config(_app.create_app(store), port=port, log_level="error")
        self.server = uvicorn.Server(settings)
        self.thread = threading.Thread(target=self.server.run)
        self.thread.start()
        while not self.server.started:
            time.sleep(0.02)

    def stop(self) -> None:
        self.server.should_exit = True
        self.server.force_exit = True
        self.thread.join()


def test_a_new_release_replaces_the_files_that_were_kept(tmp_path, new_page, monkeypatch):
    folder = tmp_path / "static"
    shutil.copytree(STATIC, folder)
    store = store_url(tmp_path / "lake.db")
    with restartable_server(store) as free:  # its port, and the store
        Api(free.url).create("lake", GRID)
        free.stop()
    first = ReleaseServer(folder, store, free.port, monkeypatch)
    page = new_page(f"{free.url}/#/study/lake")
    page.get_by_role("heading", name="lake", level=1).wait_for()
    wait_until_kept(page)
    (before,) = page.evaluate(PAGES)
    page.evaluate("caches.open('truvar-answers')")  # as release 0.2.0 named it
    page.close()
    first.stop()
    text = (folder / "answer.js").read_text().replace('"answer card"', '"answer card next-release"')
    (folder / "answer.js").write_text(text)
    second = ReleaseServer(folder, store, free.port, monkeypatch)
    try:
        page = new_page_in(page.context, f"{free.url}/#/study/lake")
        page.locator(".next-release").wait_for()  # online, the page is the server's own
        wait_until(page, f"{PAGES}.then((names) => names.length === 1 && names[0] !== '{before}')")
        wait_until(page, "caches.has('truvar-answers').then((found) => !found)")
    finally:
        second.stop()
    page.reload()
    page.locator("#offline").wait_for()
    page.locator(".next-release").wait_for()


def new_page_in(context, url):
    page = context.new_page()
    page.goto(url)
    return page


def test_the_version_of_the_worker_changes_with_any_file(tmp_path):
    folder = tmp_path / "static"
    shutil.copytree(STATIC, folder)
    script = worker_script(folder)
    assert worker_script(folder) == script == worker_script()
    assert '"page/app.js"' in script.splitlines()[1]
    assert "worker.js" not in script.splitlines()[1]
    (folder / "style.css").write_text("/* another */")
    assert worker_script(folder).splitlines()[0] != script.splitlines()[0]
