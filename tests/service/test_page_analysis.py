"""Contents of the page: tiles, expectations, tabs, bands, marks and pages of measurements; and
who can use it."""

import re

import pytest
from tests.helpers.page import DESKTOP, PHONE, tiles
from tests.helpers.server import CURVE, GRID

BANDS = GRID.replace("level_set = 0.2", "level_set = [0.0, 0.5]")
TARGET = 44  # pixels that a finger needs
VISIBLE_TARGETS = """
() => [...document.querySelectorAll("button, input, select, textarea, summary, a, [role=tab], .choice label")]
  .filter(node => node.checkVisibility() && node.type !== "radio" && !node.closest(".skip"))
  .map(node => [node.outerHTML.slice(0, 120), node.getBoundingClientRect()])
  .filter(([, box]) => box.width > 0 && (box.height < TARGET || box.width < TARGET))
  .map(([html, box]) => `${Math.round(box.width)} x ${Math.round(box.height)}: ${html}`)
""".replace("TARGET", str(TARGET))


@pytest.fixture(scope="module")
def measured(served):
    """A study with everything that the page can draw, by name."""
    api, _ = served
    api.create("analysed", BANDS + "[run]\nf1 = 0.95\nbudget = 40\n")
    for k in range(9):
        x = (k % 3) * 5 / 11
        y = (k // 3) / 3
        api.post("/studies/analysed/tell", {"point": {"x": x, "y": y}, "y": x - y})
    api.post("/studies/analysed/fail", {"point": {"x": 1.0, "y": 1.0}, "reason": "no signal"})
    api.post(
        "/studies/analysed/exclude",
        {"region": {"x": [0.6, 1.0], "y": [0.0, 0.2]}, "reason": "jetty"},
    )
    api.post("/studies/analysed/ask", {})
    return "analysed"


def test_tiles_have_goal_and_budget_and_a_suggestion_says_what_it_should_show_and_why(
    page_on, served, measured
):
    api, _ = served
    page = page_on(DESKTOP, f"#/study/{measured}")
    page.locator(".suggestion").wait_for()
    shown = tiles(page)
    status = api.get(f"/studies/{measured}/status")
    assert re.fullmatch(
        r"0\.\d\d \(0\.\d\d to (\d\.\d\d|0\.99\d)\), goal 0\.95", shown["expected f1"]
    )
    assert page.locator(".key-numbers .bar .goal").count() == 1
    left = 40 - status["result"]["spent"]
    assert shown["budget left"] == f"{left:g} of 40, 1 of it suggested"
    assert "epsilon" not in page.locator("main").inner_text()
    (pending,) = api.get(f"/studies/{measured}/view")["pending"]
    card = page.locator(".suggestion").inner_text()
    numbers = re.search(
        r"Expected: (\S+) \(95 %: (\S+) to (\S+)\)\.", card.replace("−", "-")
    ).groups()
    spread = pending["expected"]["high"] - pending["expected"]["low"]
    for text, name in zip(numbers, ("mean", "low", "high"), strict=True):
        assert float(text) == pytest.approx(pending["expected"][name], abs=0.06 * spread)
    assert re.search(r"Why here: it removes \S+ % of the uncertainty", card)


def test_bands_ids_excluded_and_failed_points_are_on_the_map(page_on, served, measured):
    api, _ = served
    page = page_on(DESKTOP, f"#/study/{measured}")
    page.get_by_text("Classes", exact=True).click()
    legend = page.locator(".map .key").first.inner_text()
    for name, count in api.get(f"/studies/{measured}/status")["result"]["classified"][
        "bands"
    ].items():
        assert f"{name}: {count}" in legend
    for entry in ("thresholds 0, 0.5", "failed", "not suggested", "suggested"):
        assert entry in legend
    ids = page.locator(".map text.number").all_text_contents()
    assert set(ids) == {str(k) for k in range(1, 12)}  # nine values, a failure and a suggestion
    assert page.locator(".map .plot .failed").count() == 2  # on the map and in the legend
    assert page.locator(".map .contour:not(.under)").count() == 3  # two thresholds, and the legend
    struck = "() => { const c = document.querySelector('.map canvas'); const d = c.getContext('2d')"
    struck += ".getImageData(0, 0, c.width, c.height).data; let n = 0; for (let k = 0; k < d.length; k += 4)"
    struck += " n += d[k] < 60 && d[k + 1] < 60 && d[k + 2] < 60 && d[k + 3] > 200; return n; }"
    assert page.evaluate(struck) > 100
    page.get_by_text("In words").click()
    assert (
        "undecided, of 120 points" in page.locator(".map details", has_text="In words").inner_text()
    )


def test_tabs_show_convergence_slices_importance_and_model_check(page_on, served, measured):
    api, _ = served
    page = page_on(DESKTOP, f"#/study/{measured}")
    panel = page.locator(".progress")
    panel.locator(".charts .curve").first.wait_for(state="attached")
    page.locator(".progress [aria-busy]").wait_for(state="detached")
    answer = api.get(f"/studies/{measured}/convergence")
    assert panel.locator("#panel-convergence .dot").count() == len(answer["scores"])
    assert (
        panel.locator("#panel-convergence .level").count() == 3
    )  # the goal, and the two thresholds
    panel.get_by_text("Measurements", exact=True).click()
    assert "measurements" in panel.locator("#panel-convergence svg").first.text_content()
    page.get_by_role("tab", name="Convergence").focus()
    page.keyboard.press("ArrowRight")
    panel.locator("#panel-slices .curve").first.wait_for()
    assert panel.locator("#panel-slices .curve").count() == 2
    page.get_by_role("tab", name="Importance").click()
    panel.locator(".bar-row").first.wait_for()
    rows = panel.locator(".bar-row").all_inner_texts()
    importance = {
        row["column"]: row["total"] for row in api.get(f"/studies/{measured}/model")["importance"]
    }
    assert len(rows) == 2
    assert f"{round(100 * importance['x'])} %, alone" in " ".join(rows)
    page.get_by_role("tab", name="Model check").click()
    panel.locator("#panel-check circle").first.wait_for()
    assert (
        api.get(f"/studies/{measured}/model")["check"]["message"]
        in panel.locator("#panel-check").inner_text()
    )
    assert panel.locator("#panel-check circle").count() == 9


def test_every_measurement_is_reached_by_pages_and_found_by_the_filter(page_on, served):
    api, _ = served
    api.create("many", CURVE)
    values = [k / 100 for k in range(95)]
    api.post("/studies/many/tell-repeats", {"point": {"x": 0.0}, "values": values})
    page = page_on(DESKTOP, "#/study/many")
    rows = page.locator(".measurements tbody tr")
    rows.first.wait_for()
    seen = []
    while True:
        seen += [int(row) for row in page.locator(".measurements tbody th").all_inner_texts()]
        if page.get_by_role("button", name="Older").is_disabled():
            break
        page.get_by_role("button", name="Older").click()
    assert seen == list(range(95, 0, -1))
    page.get_by_label(re.compile("^Filter")).fill("#17")
    assert rows.count() == 1
    assert rows.first.get_attribute("data-id") == "17"
    assert "1 to 1 of 1 row that match, of 95" in page.locator(".measurements").inner_text()
    page.get_by_label(re.compile("^Filter")).fill("0.3")
    assert rows.count() == 10  # 0.3 and 0.31 to 0.39
    page.get_by_label(re.compile("^Filter")).fill("nothing")
    page.get_by_text("No row matches.").wait_for()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("device", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_axe_finds_no_serious_barrier(page_on, measured, device, scheme):
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="needs axe-playwright-python"
    ).Axe()
    page = page_on(device, "#/", color_scheme=scheme)

    def check(where):
        found = axe.run(page).response["violations"]
        serious = [
            (
                rule["id"],
                [node["html"][:150] + " " + node["failureSummary"][:200] for node in rule["nodes"]],
            )
            for rule in found
            if rule["impact"] in ("serious", "critical")
        ]
        assert serious == [], where

    page.get_by_role("link", name=measured).wait_for()
    check("list")
    page.goto(page.url.split("#")[0] + f"#/study/{measured}")
    page.locator(".suggestion summary").wait_for()
    for summary in page.locator(
        ".suggestion summary, .other-point summary, .several-points summary"
    ).all():
        summary.click()
    page.locator("#panel-convergence .curve").first.wait_for(state="attached")
    check("study")
    for tab in ("Slices", "Importance", "Model check"):
        page.get_by_role("tab", name=tab).click()
        page.locator(".progress [aria-busy]").wait_for(state="detached")
        check(tab)
    page.get_by_role("button", name="Correct measurement 9").click()
    check("dialog")
    page.keyboard.press("Escape")
    page.goto(page.url.split("#")[0] + "#/new")
    page.get_by_role("heading", name="New study").wait_for()
    for source in ("Ranges", "Advanced: TOML"):
        page.get_by_text(source, exact=True).click()
        check(source)


def test_everything_that_is_tapped_is_large_enough_for_a_finger(page_on, measured):
    page = page_on(PHONE)
    page.get_by_role("link", name=measured).wait_for()
    assert page.evaluate(VISIBLE_TARGETS) == []
    page.goto(page.url.split("#")[0] + f"#/study/{measured}")
    page.locator(".suggestion summary").wait_for()
    for summary in page.locator("summary").all():
        if summary.is_visible():
            summary.click()
    assert page.evaluate(VISIBLE_TARGETS) == []
    page.get_by_role("button", name="Correct measurement 9").click()
    assert page.evaluate(VISIBLE_TARGETS) == []
    page.keyboard.press("Escape")
    page.goto(page.url.split("#")[0] + "#/new")
    for source in ("A table", "Ranges", "Advanced: TOML"):
        page.get_by_text(source, exact=True).click()
        assert page.evaluate(VISIBLE_TARGETS) == []


MISTAKES = [
    ("/problems/check", {"problem": CURVE + "[run]\nf1 = 0.9\n"}),
    ("/problems/check", {"problem": GRID + "[run]\nregret = 0.9\n"}),
    ("/problems/check", {"problem": BANDS + '[policy]\nname = "ei"\n'}),
    ("/problems/check", {"problem": CURVE + '[policy]\nname = "gchk"\n'}),
    (
        "/problems/check",
        {"problem": "[domain]\nbox = {x = {log = [0, 1]}}\n[goal]\nmaximize = true\n"},
    ),
    ("/problems/check", {"problem": "[domain]\nbox = {x = [1, 0]}\n[goal]\nmaximize = true\n"}),
    ("/problems/columns", {"text": "a,b\n1,2,3\n"}),
    ("/studies/analysed/tell", {"point": {"x": 5, "y": 0}, "y": 1}),
    ("/studies/analysed/tell", {"id": 99, "y": 1}),
    ("/studies/analysed/ask", {"context": {"x": 1}}),
    ("/studies/analysed/ask", {"who": "boat"}),
    ("/studies/analysed/exclude", {"condition": "z > 1"}),
    ("/studies/analysed/correct", {"id": 1, "y": 1e300}),
]


def test_messages_have_no_class_names(served, measured):
    api, _ = served
    for path, body in MISTAKES:
        message = api.post(path, body, 422)["error"]
        assert not re.search(
            r"\b[A-Z]\w*[a-z][A-Z]\w*|\b[A-Z]\w+\(|Error\b|\bEI\b|\bGCHK\b", message
        ), message
