"""A table with longitude, latitude and depth on the page: its map, and places by their names."""

from __future__ import annotations

import math
import re

import pytest
from tests.helpers.page import DESKTOP, SMALL_PHONE, tiles, wait_until

import truvar as tv

STATIONS = {"KB1": (18.0, 54.0), "KB2": (18.2, 54.1), "KB3": (18.4, 54.0)}
DEPTHS = (5.0, 40.0)
ROWS = [
    {"lon": lon, "lat": lat, "depth_m": depth} for lon, lat in STATIONS.values() for depth in DEPTHS
]
LABELS = [f"{name}-{depth:g}" for name in STATIONS for depth in DEPTHS]
TABLE = "cast,lon,lat,depth_m\n" + "".join(
    f"{label},{row['lon']},{row['lat']},{row['depth_m']}\n"
    for label, row in zip(LABELS, ROWS, strict=True)
)
PROBLEM = {
    "quantity": "oxygen",
    "unit": "mg/l",
    "domain": {"table": "t.csv", "columns": ["lon", "lat", "depth_m"], "label": "cast"},
    "goal": {"level_set_below": 4.0},
    "model": {
        "kernel": "rbf",
        "lengthscales": [0.01, 0.01, 1.0],
        "variance": 9.0,
        "mean": 5.0,
    },
    "noise": {"sd": 0.1},
    "cost": {
        "base": 1.0,
        "great_circle": {"longitude": "lon", "latitude": "lat", "rate": 0.1},
        "start": {"lon": 18.0, "lat": 54.0},
    },
}


@pytest.fixture
def survey(served):
    """Return a function that makes a study whose shallow candidates are low in oxygen."""
    api, _ = served

    def make(name: str, is_measured: bool = True) -> None:
        api.create(name, PROBLEM, tables={"t.csv": TABLE})
        for row in ROWS if is_measured else []:
            value = 1.0 if row["depth_m"] == DEPTHS[0] else 9.0
            api.post(f"/studies/{name}/tell", {"point": row, "y": value})

    return make


def box_of(locator) -> dict:
    box = locator.bounding_box()
    assert box is not None
    return {**box, "right": box["x"] + box["width"], "bottom": box["y"] + box["height"]}


def test_what_is_asked_for_is_not_hidden_below_other_depths(page_on, survey):
    survey("on top")
    page = page_on(DESKTOP, "#/study/on top")
    slider = page.locator("section.map").get_by_label("depth (m)").first
    slider.fill("0")  # all depths of a station share a place
    colours = """() => {
        const canvas = document.querySelector("section.map .plot canvas");
        const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
        let red = 0;
        let blue = 0;
        for (let k = 0; k < data.length; k += 4) {
            if (data[k + 3] !== 255) continue;
            if (data[k] > data[k + 2] + 60) red += 1;
            if (data[k + 2] > data[k] + 60) blue += 1;
        }
        return [red, blue];
    }"""
    for layer in ("Probability", "Classes"):
        page.locator("section.map figcaption label", has_text=layer).click()
        asked, other = page.evaluate(colours)
        assert asked > 0, layer
        assert other == 0, layer
    page.locator("section.map figcaption label", has_text="Probability").click()
    slider.fill("2")
    asked, other = page.evaluate(colours)
    assert asked == 0 < other


def test_depths_increase_downwards_and_the_scale_bar_covers_nothing(page_on, survey):
    survey("downwards")
    page = page_on(DESKTOP, "#/study/downwards")
    figure = page.locator("section.map")
    figure.locator("text.kilometres").wait_for(state="attached")
    start = box_of(figure.locator("rect.start").first)
    bar = box_of(figure.locator("text.kilometres"))
    assert bar["y"] >= start["bottom"] or bar["x"] >= start["right"]
    assert figure.locator(".key", has_text="start").count() == 1
    figure.get_by_label("Vertical axis").first.select_option("2")
    wait_until(page, "document.querySelectorAll('section.map .scalebar').length === 0")
    assert figure.locator(".key", has_text="start").count() == 0  # it has no depth
    heights = page.evaluate(
        "[...document.querySelectorAll('section.map .plot svg text')]"
        ".filter((node) => ['10', '40'].includes(node.textContent) && node.getAttribute('text-anchor') === 'end')"
        ".map((node) => [Number(node.textContent), Number(node.getAttribute('y'))])"
    )
    assert dict(heights)[10] < dict(heights)[40]


def test_the_map_says_what_it_shows_in_plain_words(page_on, survey):
    survey("plain words")
    page = page_on(DESKTOP, "#/study/plain words")
    figure = page.locator("section.map")
    figure.locator("summary", has_text="In words").first.click()
    figure.get_by_text("Estimates of oxygen (mg/l) range from").first.wait_for()
    page.locator(".slices > summary").click()
    figure.locator(".key", has_text="threshold 4 mg/l").wait_for()
    text = figure.inner_text()
    assert "posterior mean" not in text
    assert "h = 4" not in text


def test_a_region_is_excluded_on_the_map_of_the_candidates(page_on, survey, served):
    api, _ = served
    survey("fairway", is_measured=False)
    page = page_on(SMALL_PHONE, "#/study/fairway")
    page.locator(".region summary").click()
    assert page.get_by_text("Exclude a region").count() == 1
    page.locator(".map .plot.drawing").wait_for()
    for name, value in (("lon from", "17.9"), ("lon to", "18.1"), ("lat from", "53.9")):
        page.get_by_label(name).fill(value)
    page.get_by_label("lat to").fill("54.05")
    page.get_by_text("2 points of 6 inside.").wait_for()
    page.get_by_role("button", name="Exclude this region").click()
    page.locator(".map .message", has_text="Excluded: 2 points").wait_for()
    view = api.get("/studies/fairway/view")
    assert [view["labels"][k] for k in view["excluded"]] == LABELS[:2]
    page.locator(".slices > summary").click()
    page.locator(".slices figure").wait_for()
    assert page.get_by_text("Exclude a region").count() == 1  # not once more below the slices


def test_limits_are_not_taken_over_by_another_column(page_on, survey):
    survey("other axis", is_measured=False)
    page = page_on(DESKTOP, "#/study/other%20axis")
    page.locator(".region summary").click()
    page.locator(".map .plot.drawing").wait_for()
    for name, value in (("lon from", "17"), ("lon to", "19"), ("lat from", "1"), ("lat to", "60")):
        page.get_by_label(name).fill(value)
    page.get_by_text("6 points of 6 inside.").wait_for()
    page.locator("section.map").get_by_label("Vertical axis").first.select_option("2")
    depth = page.get_by_label("depth (m) to")  # 1 to 60 would have all points inside
    depth.wait_for()
    assert depth.input_value() == ""
    assert page.get_by_label("lon from").input_value() == ""
    assert page.get_by_role("button", name="Exclude this region").is_disabled()


def test_several_values_are_entered_by_the_names_of_their_places(page_on, survey, served):
    api, _ = served
    survey("names", is_measured=False)
    (asked,) = api.post("/studies/names/ask", {})["suggestions"]
    page = page_on(DESKTOP, "#/study/names")
    page.locator(".several-points > summary").click()
    form = page.locator(".several-points")
    form.locator("textarea").fill("station\toxygen\nKB1-5\t2.5\nKB9-5\t3\n")
    form.get_by_role("button", name="Save all").click()
    form.get_by_text("Line 3: no place is named “KB9-5”.").wait_for()
    assert api.get("/studies/names/view")["measurements"] == []
    assert asked["label"] in LABELS
    lines = [f"{label}\t{k},5" for k, label in enumerate(LABELS)]
    form.locator("textarea").fill("\n".join(["station\toxygen", *lines, "18.4 54 5 9.25"]))
    form.get_by_role("button", name="Save all").click()
    page.get_by_text("7 values saved.").wait_for()
    view = api.get("/studies/names/view")
    told = [(row["label"], row["value"]) for row in view["measurements"]]
    expected = [(label, k + 0.5) for k, label in enumerate(LABELS)] + [("KB3-5", 9.25)]
    assert sorted(told) == sorted(expected)
    assert view["pending"] == []  # its value came under its name


def test_values_are_not_saved_twice_after_one_is_refused(page_on, survey, served):
    api, _ = served
    survey("saved once", is_measured=False)
    (asked,) = api.post("/studies/saved once/ask", {})["suggestions"]
    page = page_on(DESKTOP, "#/study/saved once", tolerate="Failed to load resource")
    page.locator(".several-points > summary").click()
    form = page.locator(".several-points")
    other = next(label for label in LABELS if label != asked["label"])
    lines = [f"{asked['label']} 2.5", f"{other} 3.5", "10 10 10 4.5", f"{other} 5.5"]
    form.locator("textarea").fill("\n".join(lines))
    form.get_by_role("button", name="Save all").click()
    wait_until(page, "document.querySelector('.several-points .alert').textContent !== ''")
    assert form.locator("textarea").input_value().split("\n") == lines[2:]
    form.locator("textarea").fill(lines[3])
    form.get_by_role("button", name="Save all").click()
    page.get_by_text("1 value saved.").wait_for()
    told = [row["value"] for row in api.get("/studies/saved once/view")["measurements"]]
    assert told == [2.5, 3.5, 5.5]


def test_a_value_is_not_saved_under_a_name_that_is_not_known(page_on, survey, served):
    api, _ = served
    survey("unknown", is_measured=False)
    page = page_on(DESKTOP, "#/study/unknown")
    page.locator(".other-point > summary").click()
    form = page.locator(".other-point")
    place = form.get_by_label(re.compile("^Place"))
    place.fill("KB1-5")  # fills in the coordinates
    place.fill("KB1-50")  # which are those of KB1-5 still
    form.get_by_label("oxygen (mg/l)").fill("3")
    form.get_by_role("button", name="Save").click()
    assert "No place is named “KB1-50”" in place.evaluate("(node) => node.validationMessage")
    assert api.get("/studies/unknown/view")["measurements"] == []
    place.fill("KB1-40")
    form.get_by_role("button", name="Save").click()
    page.get_by_text("Saved: 3 at KB1-40.").wait_for()
    (row,) = api.get("/studies/unknown/view")["measurements"]
    assert row["label"] == "KB1-40"


def test_a_grid_over_degrees_has_their_aspect_and_shows_the_harbour(page_on, served):
    api, _ = served
    grid = {"grid": {"lon": [18.0, 19.0, 6], "lat": [54.0, 54.5, 6]}}
    start = {"start": {"lon": 17.8, "lat": 54.0}}
    api.create(
        "grid", {**PROBLEM, "domain": grid, "cost": {**PROBLEM["cost"], **start}, "model": {}}
    )
    page = page_on(DESKTOP, "#/study/grid")
    figure = page.locator("section.map")
    figure.locator("rect.start").first.wait_for(state="attached")
    frame = box_of(figure.locator("svg rect.axis").first)
    harbour = box_of(figure.locator("rect.start").first)
    assert frame["x"] <= harbour["x"] < harbour["right"] <= frame["right"]
    script = """() => {
        const texts = [...document.querySelectorAll("section.map .plot svg text")];
        const ticks = (anchor, name) => texts
            .filter((node) => node.getAttribute("text-anchor") === anchor && Number(node.textContent))
            .map((node) => [Number(node.textContent), Number(node.getAttribute(name))]);
        const step = (found) => Math.abs((found[1][1] - found[0][1]) / (found[1][0] - found[0][0]));
        return step(ticks("end", "y")) / step(ticks("middle", "x"));
    }"""
    assert page.evaluate(script) == pytest.approx(1 / math.cos(math.radians(54.25)), rel=0.05)


def test_a_place_that_failed_has_its_name_in_the_table_and_the_list(survey, page_on, served):
    api, _ = served
    survey("rope", is_measured=False)
    label = api.post("/studies/rope/ask", {})["suggestions"][0]["label"]
    api.post("/studies/rope/fail", {"id": 1, "reason": "rope broke"})
    assert api.get("/studies/rope/failures")["failures"][0]["label"] == label
    assert tv.connect(api.url, name="rope").failures[0].label == label
    page = page_on(DESKTOP, "#/study/rope")
    page.locator('tr[data-id="1"]', has_text=label).wait_for()
    page.locator("summary", has_text="Not suggested: 1 place").click()
    listed = page.get_by_role("list", name="Excluded places").inner_text()
    assert re.match(rf"{re.escape(label)} \(lon \S+, lat \S+, depth", listed)
    assert "(rope broke)" in listed


def test_tiles_have_the_unit_of_the_values(page_on, served):
    api, _ = served
    problem = {key: value for key, value in PROBLEM.items() if key != "cost"}
    api.create("unit", {**problem, "goal": {"maximize": True}}, tables={"t.csv": TABLE})
    api.post("/studies/unit/tell", {"point": ROWS[0], "y": 7.5})
    page = page_on(DESKTOP, "#/study/unit")
    page.locator('tr[data-id="1"]').wait_for()
    shown = tiles(page)
    assert shown["best observed"].startswith("7.5 mg/l at KB1-5 (")
    for name in ("recommended", "expected regret"):
        assert re.match(r"\S+ mg/l ", shown[name])
    panel = page.locator("#panel-convergence")
    panel.get_by_role("heading", name="Best oxygen (mg/l) so far").wait_for()
    panel.get_by_role("heading", name="Expected regret (mg/l), with its").wait_for()
    page.get_by_role("tab", name="Slices").click()
    text = page.locator("#panel-slices .note", has_text="Estimate of oxygen (mg/l) and 95 %")
    text.wait_for()
    assert re.search(r"through KB\d-\d+ \(lon \S+, lat \S+, depth", text.inner_text())
    assert "osterior mean" not in page.locator("main").inner_text()
