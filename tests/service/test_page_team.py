"""The first screen, the answer in words, budgets of vehicles, and what ends a suggestion."""

from __future__ import annotations

import re

import pytest
from tests.helpers.page import DESKTOP, SMALL_PHONE, tiles
from tests.helpers.server import CURVE, GRID

BOATS = """
[cost]
base = 1.0
travel = {x = 1.0}
[vehicles]
boat-1 = {budget = 20}
boat-2 = {speed = 2.0, budget = 30}
"""
OFFERED = ("Cannot be measured here", "The measurement failed", "Withdraw this suggestion")
LOG = """
[domain]
grid = {rate = {log = [1e-5, 0.1], count = 9}, width = [0, 1, 5]}
[goal]
maximize = true
"""


def bottom_of(page, name: str) -> float:
    box = page.get_by_role("button", name=name).bounding_box()
    return float(box["y"] + box["height"])


@pytest.mark.parametrize(
    ("name", "problem"),
    [("first-boats", GRID + BOATS), ("first-curve", CURVE), ("first-log", LOG)],
)
def test_the_answer_and_the_button_that_asks_are_in_the_first_screen_of_a_phone(
    page_on, served, name, problem
):
    api, _ = served
    api.create(name, problem)
    page = page_on(SMALL_PHONE, f"#/study/{name}", tolerate="Failed to load resource")
    page.get_by_role("button", name="Suggest next").wait_for()
    assert page.evaluate("scrollY") == 0
    assert bottom_of(page, "Suggest next") < 664
    order = page.evaluate(
        "[...document.querySelectorAll('.answer, .next, .map, .key-numbers, .files')]"
        ".sort((a, b) => a.getBoundingClientRect().top - b.getBoundingClientRect().top)"
        ".map((node) => node.classList.contains('card') ? node.getAttribute('aria-label')"
        " : node.className)"
    )
    assert order == ["Answer", "Next measurement", "Map", "key-numbers", "row files"]
    page.context.set_offline(True)
    page.locator("#offline").wait_for()
    assert bottom_of(page, "Suggest next") < 664


def test_the_first_tile_is_the_answer_to_a_level_set(page_on, served):
    api, _ = served
    api.create("answered", GRID)
    for x, value in ((0, 2.0), (3, 1.5), (6, -1.0), (9, -2.0)):
        for y in (0, 4, 9):
            api.post("/studies/answered/tell", {"point": {"x": x / 11, "y": y / 9}, "y": value})
    page = page_on(DESKTOP, "#/study/answered")
    found = page.locator(".answer")
    found.wait_for()
    counts = api.get("/studies/answered/status")["result"]["classified"]
    text = found.inner_text()
    assert "Where is the value above 0.2?" in text
    assert f"{counts['above']} of 120 points are above 0.2" in text
    assert f"{counts['below']} below 0.2, {counts['undecided']} undecided." in text
    assert "with at least 95 %; with 95 % probability" in text
    top = "node => node.getBoundingClientRect().top"
    assert found.evaluate(top) < page.locator(".key-numbers").evaluate(top)


def test_the_first_tile_is_the_answer_to_an_optimum(page_on, served):
    api, _ = served
    api.create("best", CURVE)
    page = page_on(DESKTOP, "#/study/best")
    page.locator(".answer", has_text="Not known yet").wait_for()
    for k in range(0, 30, 4):
        api.post("/studies/best/tell", {"point": {"x": k / 29}, "y": 1.0 - (k / 29 - 0.5) ** 2})
    page.locator(".answer", has_text="Best: x ").wait_for()
    text = page.locator(".answer").inner_text()
    assert re.search(r"Its value is \S+ \(95 %: \S+ to \S+\)\.", text)
    assert "below the maximum, and at most" in text
    assert "regret" not in text


def test_a_single_failure_counts_as_one_place(page_on, served):
    api, _ = served
    api.create("one failure", GRID)
    for x in (0, 4, 8):
        api.post("/studies/one failure/tell", {"point": {"x": x / 11, "y": 0.0}, "y": 0.3})
    api.post("/studies/one failure/ask", {})
    api.post("/studies/one failure/fail", {"id": 4})
    page = page_on(DESKTOP, "#/study/one%20failure")
    page.locator(".key-numbers dt", has_text="Not suggested").wait_for()
    assert tiles(page)["not suggested"] == "1 of 120 points, excluded or failed"
    assert "%" not in tiles(page)["not suggested"]


def test_budgets_of_vehicles_are_budgets(page_on, served):
    api, _ = served
    api.create("fleet with budgets", GRID + BOATS)
    page = page_on(DESKTOP, "#/study/fleet%20with%20budgets")
    page.locator(".key-numbers dt", has_text="Budget left").wait_for()
    assert tiles(page)["budget left"] == "50 boat-1 20 of 20, boat-2 30 of 30"
    point = {"x": 0.0, "y": 0.0}
    value = {"point": point, "y": 0.1, "who": "boat-1", "cost": 4.5}
    api.post("/studies/fleet%20with%20budgets/tell", value)
    page.locator('tr[data-id="1"]').wait_for()
    assert tiles(page)["budget left"] == "45.5 boat-1 15.5 of 20, boat-2 30 of 30"


def test_each_way_to_end_a_suggestion_says_what_it_does(page_on, served):
    api, _ = served
    api.create("explained", GRID)
    page = page_on(SMALL_PHONE, "#/study/explained")
    page.get_by_role("button", name="Suggest next").click()
    card = page.locator('.suggestion[data-id="1"]')
    card.locator("summary").click()
    rows = card.locator(".not-measured li")
    assert rows.count() == len(OFFERED)
    red = page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--bad')")
    for row, name in zip(rows.all(), OFFERED, strict=True):
        button = row.get_by_role("button", name=name)
        assert len(row.locator(".note").inner_text()) > 40
        colour = button.evaluate("node => getComputedStyle(node).color")
        assert colour != page.evaluate(
            "colour => { const node = document.createElement('i'); node.style.color = colour;"
            " document.body.append(node); return getComputedStyle(node).color; }",
            red,
        )
    card.get_by_role("button", name="Withdraw this suggestion").click()
    card.wait_for(state="detached")
    assert api.get("/studies/explained/view")["exclusions"] == []
