"""Regions that are excluded by drawing them on the map."""

from __future__ import annotations

import re

import pytest
from tests.helpers.page import DESKTOP, SMALL_PHONE
from tests.helpers.server import CURVE, GRID

REFUSED = "Failed to load resource"
BOX = """
[domain]
box.x = [0, 1]
box.y = [0, 1]
box.z = [0, 1]
representers = 60
[goal]
maximize = true
"""
MIXED = """
[domain]
grid = {x = [0, 1, 5], solver = ["lbfgs", "saga"]}
[goal]
maximize = true
"""


def open_tool(page):
    """Open the tool and return a function from shares of the map to pixels of the window."""
    page.locator(".region summary").click()
    page.locator(".map .plot.drawing").wait_for()
    box = page.locator(".map .plot").first.bounding_box()
    return lambda across, down: (box["x"] + across * box["width"], box["y"] + down * box["height"])


def drag(page, *places) -> None:
    page.mouse.move(*places[0])
    page.mouse.down()
    for place in places[1:]:
        page.mouse.move(*place, steps=8)
    page.mouse.up()


def touch(page, *places) -> None:
    """Draw with a finger."""
    session = page.context.new_cdp_session(page)
    for k, (x, y) in enumerate(places):
        kind = "touchMove" if k else "touchStart"
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": x, "y": y}]})
    session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})


def counted(page) -> int:
    """Return the number of points that the tool says are inside."""
    text = page.locator(".region [role=status]").inner_text()
    return int(re.fullmatch(r"(\d+) points? of \d+ inside\.", text)[1])


def test_a_rectangle_is_drawn_excluded_and_allowed_again(page_on, served):
    api, _ = served
    api.create("rectangle", GRID)
    page = page_on(DESKTOP, "#/study/rectangle")
    at = open_tool(page)
    assert page.get_by_role("button", name="Exclude this region").is_disabled()
    drag(page, at(0.3, 0.3), at(0.6, 0.7))
    inside = counted(page)
    assert inside > 5
    limits = {name: float(page.get_by_label(name).input_value()) for name in ("x from", "x to")}
    page.locator(".region").get_by_label(re.compile("^Reason")).fill("nature reserve")
    page.get_by_role("button", name="Exclude this region").click()
    page.locator(".map .message", has_text=f"Excluded: {inside} points").wait_for()
    view = api.get("/studies/rectangle/view")
    assert len(view["excluded"]) == inside
    xs = [view["coordinates"][0][k] for k in view["excluded"]]
    assert limits["x from"] <= min(xs) <= max(xs) <= limits["x to"]
    (exclusion,) = view["exclusions"]
    assert exclusion["reason"] == "nature reserve"
    assert page.locator(".map .key", has_text="not suggested").count() == 1
    # a click on the map chooses a point again
    page.mouse.click(*at(0.3, 0.3))
    page.locator(".other-point[open]").wait_for()
    page.get_by_text("Not suggested: 1 place").click()
    page.get_by_role("button", name=re.compile("^Allow .* again$")).click()
    page.locator(".message", has_text="Allowed again").wait_for()
    assert api.get("/studies/rectangle/view")["excluded"] == []


def test_a_lasso_is_drawn_with_a_finger(page_on, served):
    api, _ = served
    api.create("lasso", GRID)
    page = page_on(SMALL_PHONE, "#/study/lasso")
    open_tool(page)
    page.get_by_text("Lasso", exact=True).click()
    scrolled = page.evaluate("scrollY")
    box = page.locator(".map .plot").first.bounding_box()

    def at(across, down):
        return (box["x"] + across * box["width"], box["y"] + down * box["height"])

    touch(page, at(0.3, 0.3), at(0.6, 0.3), at(0.75, 0.5), at(0.5, 0.8), at(0.3, 0.6))
    assert page.evaluate("scrollY") == scrolled  # the finger draws and does not scroll
    inside = counted(page)
    page.get_by_role("button", name="Exclude this region").click()
    page.locator(".map .message", has_text="Excluded").wait_for()
    view = api.get("/studies/lasso/view")
    assert len(view["excluded"]) == inside > 5
    assert "polygon" in view["exclusions"][0]["place"]
    api.post("/studies/lasso/ask", {"n": 3})
    for suggestion in api.get("/studies/lasso/view")["pending"]:
        assert suggestion["index"] not in view["excluded"]


def test_limits_are_typed_and_a_click_draws_nothing(page_on, served):
    api, _ = served
    api.create("typed", GRID)
    page = page_on(DESKTOP, "#/study/typed")
    at = open_tool(page)
    drag(page, at(0.4, 0.4), at(0.401, 0.4))
    assert page.get_by_role("button", name="Exclude this region").is_disabled()
    for label, value in (("x from", "0,5"), ("x to", "1"), ("y from", "-1"), ("y to", "2")):
        page.get_by_label(label).fill(value)
    assert counted(page) == 60
    page.get_by_label("x from").fill("5")
    page.get_by_label("x to").fill("6")
    assert counted(page) == 0
    assert page.get_by_role("button", name="Exclude this region").is_disabled()
    page.get_by_role("button", name="Cancel").click()
    assert page.locator(".region[open]").count() == 0
    assert api.get("/studies/typed/view")["exclusions"] == []


def test_a_region_that_is_drawn_without_a_network_is_sent_once(page_on, served):
    api, _ = served
    api.create("storm region", GRID)
    page = page_on(DESKTOP, "#/study/storm%20region", tolerate=REFUSED)
    at = open_tool(page)
    drag(page, at(0.3, 0.3), at(0.6, 0.7))
    inside = counted(page)
    page.context.set_offline(True)
    page.get_by_role("button", name="Exclude this region").click()
    page.get_by_text("1 change kept in this browser").wait_for()
    unsent = page.evaluate("localStorage.getItem(`truvar-unsent:${location.pathname}`)")
    page.context.set_offline(False)
    page.locator("#unsent").wait_for(state="hidden")
    # The answer was lost on the way: sent again, it changes nothing.
    page.evaluate(
        "text => localStorage.setItem(`truvar-unsent:${location.pathname}`, text)", unsent
    )
    page.reload()
    page.locator("#unsent").wait_for(state="hidden")
    page.locator(".map .key", has_text="not suggested").wait_for()
    kinds = [event["kind"] for event in api.get("/studies/storm region/events")["events"]]
    assert kinds.count("excluded") == 1
    assert len(api.get("/studies/storm region/view")["excluded"]) == inside


def test_a_region_of_a_slice_holds_at_every_value_of_the_other_columns(page_on, served):
    api, _ = served
    api.create("slice region", BOX)
    page = page_on(DESKTOP, "#/study/slice%20region")
    page.get_by_text("A slice through the domain").wait_for()
    page.get_by_label("Horizontal axis").select_option("2")
    page.get_by_text("A slice through the domain").wait_for()
    open_tool(page)
    page.get_by_text("at every value of the other columns").wait_for()
    page.get_by_label("z from").fill("0.5")
    page.get_by_label("z to").fill("1")
    page.get_by_label("y from").fill("0")
    page.get_by_label("y to").fill("1")
    page.get_by_role("button", name="Exclude this region").click()
    page.locator(".map .message", has_text="Excluded").wait_for()
    view = api.get("/studies/slice region/view")
    assert {view["coordinates"][2][k] >= 0.5 for k in view["excluded"]} == {True}
    assert len(view["excluded"]) == sum(z >= 0.5 for z in view["coordinates"][2])


@pytest.mark.parametrize("problem", [CURVE, MIXED])
def test_a_curve_or_a_column_of_names_has_no_tool(page_on, served, problem):
    api, _ = served
    name = f"no tool {len(problem)}"
    api.create(name, problem)
    page = page_on(DESKTOP, f"#/study/{name.replace(' ', '%20')}")
    page.locator(".map .plot").first.wait_for()
    assert page.locator(".region").count() == 0
