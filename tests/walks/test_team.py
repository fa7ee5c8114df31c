"""A team with a server: a person logs in on a phone, works without a network, and comes back.

The server has a token and runs in a process of its own; the browser is a real one, 390 pixels wide.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.helpers.page import SMALL_PHONE, TIMEOUT, tiles, wait_until
from tests.helpers.server import Api, browser, restartable_server, store_url

SURVEY = """
quantity = "oxygen"
unit = "mg/l"
[domain]
grid = {distance_m = [0, 1400, 15], depth_m = [-18, 0, 10]}
[goal]
level_set_below = 4.0
[model]
kernel = "matern52"
lengthscales = [400, 5]
variance = 4.0
mean = 6.0
[noise]
sd = 0.2
[cost]
base = 4.0
travel = {distance_m = 0.01}
[vehicles]
tender = {budget = 60}
"""


def new_token(store: Path, name: str) -> str:
    """Make a token as an administrator does."""
    command = [sys.executable, "-m", "truvar", "token", "add", str(store), name]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[-1]


def test_a_person_works_on_the_phone_with_and_without_a_network(tmp_path: Path) -> None:
    path = tmp_path / "team.db"
    token = new_token(path, "anna")
    with restartable_server(store_url(path)) as server, browser() as chromium:
        api = Api(server.url, token)
        api.create("bay", SURVEY)
        context = chromium.new_context(**SMALL_PHONE)
        context.set_default_timeout(TIMEOUT)
        errors: list[str] = []
        page = context.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))

        # logs in: no word about headers
        page.goto(f"{server.url}/#/study/bay")
        page.get_by_role("heading", name="Log in").wait_for()
        assert "Authorization" not in page.locator("body").inner_text()
        page.get_by_label("Token").fill(token)
        page.get_by_role("button", name="Log in").click()
        page.get_by_role("heading", name="bay", level=1).wait_for()
        assert "anna" in page.locator("#account").inner_text()

        # sees the question, the answer and the budget, and asks without scrolling
        assert "Where is oxygen below 4 mg/l?" in page.locator(".answer").inner_text()
        assert tiles(page)["budget left"] == "60 tender 60 of 60"
        ask = page.get_by_role("button", name="Suggest next")
        box = ask.bounding_box()
        assert box is not None
        assert box["y"] + box["height"] < 664
        ask.click()
        card = page.locator('.suggestion[data-id="1"]')
        card.wait_for()
        page.evaluate("navigator.serviceWorker.ready.then(() => null)")

        # goes offline, and enters a value
        context.set_offline(True)
        page.locator("#offline").wait_for()
        card.get_by_label(re.compile("^oxygen")).fill("3,1")
        card.get_by_role("button", name="Save").click()
        page.get_by_text("1 value kept in this browser").wait_for()
        page.get_by_role("button", name="Suggest next").click()
        page.locator(".alert", has_text="cannot be reached").wait_for()

        # reloads: page, queue, suggestion and map are there
        page.reload()
        page.get_by_role("heading", name="bay", level=1).wait_for()
        page.locator("#offline", has_text="The page shows what was known on").wait_for()
        page.get_by_text("1 value kept in this browser").wait_for()
        page.locator('.suggestion[data-id="1"]', has_text="Waits to be sent: 3.1").wait_for()
        assert page.locator(".map canvas").first.bounding_box() is not None
        assert page.locator(".map .pending").count() >= 1
        assert api.get("/studies/bay/measurements")["measurements"] == []

        # reconnects: the value arrives once, and the banner goes
        context.set_offline(False)
        page.locator('.measurements tr[data-id="1"]').wait_for()
        assert "oxygen (mg/l)" in page.locator(".measurements thead").all_text_contents()[0]
        page.locator("#offline").wait_for(state="hidden")
        page.locator("#unsent").wait_for(state="hidden")
        page.locator(".connection.live").wait_for()
        assert page.locator(".alert:visible").count() == 0
        rows = api.get("/studies/bay/measurements")["measurements"]
        assert [row["value"] for row in rows] == [3.1]
        told = [row for row in api.get("/studies/bay/events")["events"] if row["kind"] == "told"]
        assert [row["who"] for row in told] == ["anna"]
        assert re.match(r"\d+(\.\d+)? tender \S+ of 60$", tiles(page)["budget left"])

        # the server itself restarts, and the page follows
        server.stop()
        page.locator("#offline").wait_for()
        server.start()
        page.locator("#offline").wait_for(state="hidden")
        api.post("/studies/bay/tell", {"point": {"distance_m": 700, "depth_m": -18}, "y": 2.5})
        page.locator('.measurements tr[data-id="2"]').wait_for()

        # logs out: nothing of the study stays in the browser
        page.get_by_role("button", name="Log out").click()
        page.get_by_role("heading", name="Log in").wait_for()
        wait_until(
            page, "caches.keys().then((names) => names.every((n) => !n.includes('answers')))"
        )
        assert "bay" not in page.locator("main").inner_text()
        assert errors == []
        context.close()
