"""The web page in a headless Chromium, on a desktop and on a phone."""

import re

import pytest
from tests.helpers.page import DESKTOP, PHONE, TIMEOUT, tiles, wait_until
from tests.helpers.server import CURVE, GRID


def map_image(page) -> bytes:
    """Return a screenshot of the map."""
    return page.locator(".map .plot").first.screenshot()


@pytest.mark.parametrize(("device", "name"), [(DESKTOP, "on a desktop"), (PHONE, "on a phone")])
def test_a_study_is_created_and_measured_and_the_map_changes(page_on, served, device, name):
    api, _ = served
    page = page_on(device)
    page.get_by_role("link", name="New study").first.click()
    page.get_by_role("textbox", name="Name").fill(name)
    page.get_by_text("Advanced: TOML").click()
    page.get_by_label("Problem in TOML").fill(GRID)
    page.get_by_role("button", name="Create the study").click()
    page.get_by_role("heading", name=name, level=1).wait_for()
    assert page.locator(".head .badge").inner_text() == "new"

    before = map_image(page)
    for count, value in enumerate(["1,5", "−0.5", "0.25"], start=1):  # as phones write numbers
        page.get_by_role("button", name="Suggest next").click()
        suggestion = page.locator(f'.suggestion[data-id="{count}"]')
        suggestion.get_by_label("Measured value").fill(value)
        suggestion.get_by_role("button", name="Save").click()
        page.locator(f'.measurements tbody tr[data-id="{count}"]').wait_for()
        assert page.locator(".suggestion").count() == 0
    assert page.locator(".head .badge").inner_text() == "running"
    after = map_image(page)
    assert after != before
    rows = api.get(f"/studies/{name}/measurements")["measurements"]
    assert [row["value"] for row in rows] == [1.5, -0.5, 0.25]

    page.get_by_text("Classes", exact=True).click()
    assert map_image(page) != after
    assert page.evaluate(
        "document.documentElement.scrollWidth <= window.innerWidth"
    )  # no horizontal scrolling
    right = "node => node.getBoundingClientRect().right"
    value = page.locator(".measurements tbody tr b").first
    button = page.locator(".measurements tbody tr button").first
    edge = page.locator(".measurements .scroll").evaluate(right)
    assert (
        value.evaluate(right) < button.evaluate(right) <= edge
    )  # both are visible, neither covers the other


def test_a_value_is_corrected_and_withdrawn_and_changes_of_others_appear(page_on, served):
    api, _ = served
    api.create("corrected", CURVE)
    page = page_on(DESKTOP, "#/study/corrected")
    page.get_by_text("No measurements yet. Request").wait_for()
    for x, y in ((0.0, 1.0), (0.5, 2.0)):  # by somebody else, while the page is open
        api.post("/studies/corrected/tell", {"point": {"x": x}, "y": y})
    page.locator('tr[data-id="2"]').wait_for()
    page.get_by_role("button", name="Correct measurement 2").click()
    page.get_by_role("dialog").get_by_label(re.compile("^Value")).fill("2.5")
    page.get_by_role("dialog").get_by_role("button", name="Correct", exact=True).click()
    page.locator('tr[data-id="2"]', has_text="2.5").wait_for()
    page.get_by_role("button", name="Correct measurement 1").click()
    page.get_by_role("button", name="Withdraw").click()
    page.locator('tr[data-id="1"]').wait_for(state="detached")
    values = [row["value"] for row in api.get("/studies/corrected/measurements")["measurements"]]
    assert values == [2.5]


def test_changes_of_others_do_not_interrupt_typing_or_a_click(page_on, served):
    api, _ = served
    api.create("shared", CURVE)
    page = page_on(DESKTOP, "#/study/shared")
    page.get_by_role("button", name="Suggest next").click()
    page.locator('.suggestion[data-id="1"]').wait_for()
    value = page.locator(".suggestion").get_by_label("Measured value")
    value.focus()
    page.keyboard.type("0.")
    api.post("/studies/shared/tell", {"point": {"x": 0.0}, "y": 0.3})
    page.locator('tr[data-id="2"]').wait_for()
    page.keyboard.type("25")
    assert value.input_value() == "0.25"

    page.locator(".suggestion").get_by_role("button", name="Save").hover()
    page.mouse.down()
    api.post("/studies/shared/tell", {"point": {"x": 1.0}, "y": 0.4})
    page.locator('tr[data-id="3"]').wait_for()
    page.mouse.up()
    page.locator('tr[data-id="1"]').wait_for()
    rows = api.get("/studies/shared/measurements")["measurements"]
    assert {row["id"]: row["value"] for row in rows} == {1: 0.25, 2: 0.3, 3: 0.4}


def test_a_new_suggestion_gets_the_focus(page_on, served):
    api, _ = served
    api.create("focus", CURVE)
    page = page_on(DESKTOP, "#/study/focus")
    for count, value in enumerate(["0.5", "0.75"], start=1):
        page.get_by_role("button", name="Suggest next").click()
        page.locator(f'.suggestion[data-id="{count}"] input:focus').first.wait_for()
        page.keyboard.type(value)
        page.keyboard.press("Enter")
        page.locator(f'tr[data-id="{count}"]').wait_for()
    assert [row["value"] for row in api.get("/studies/focus/measurements")["measurements"]] == [
        0.5,
        0.75,
    ]


def test_a_late_answer_does_not_take_the_focus_from_somebody_who_types(page_on, served):
    api, _ = served
    api.create("page-late")
    page = page_on(DESKTOP, "#/study/page-late")
    held = []
    page.route("**/page-late/ask", lambda route: held.append((route, route.fetch())))
    page.get_by_role("button", name="Suggest next").click()
    card = page.locator('.suggestion[data-id="1"]')  # as other browsers see it
    card.locator("summary").click()
    card.get_by_label("Reason").focus()
    page.keyboard.type("under")
    ((route, answer),) = held
    route.fulfill(response=answer)
    wait_until(page, "!document.querySelector('.ask button.main').disabled")
    page.keyboard.type(" a jetty")
    assert card.get_by_label("Reason").input_value() == "under a jetty"


def test_markup_in_names_and_notes_is_shown_as_text(page_on, served):
    api, _ = served
    name = "<script>alert(1)</script><img src=x onerror=alert(2)>"
    api.create(name, CURVE)
    path = "/studies/" + name.replace("/", "%2F").replace(" ", "%20").replace("<", "%3C").replace(
        ">", "%3E"
    )
    api.post(f"{path}/note", {"text": "<b onclick=alert(3)>bold</b>"})
    page = page_on(DESKTOP)
    page.get_by_role("link", name=name).click()
    page.get_by_role("heading", name=name, level=1).wait_for()
    page.get_by_text("History and notes").click()
    page.get_by_text("<b onclick=alert(3)>bold</b>").wait_for()
    assert page.locator("main script, main img, main b[onclick]").count() == 0
    assert page.title().startswith(name)


def test_the_map_works_with_the_keyboard_and_has_a_description(page_on, served):
    api, _ = served
    api.create("keys", GRID)
    api.post("/studies/keys/tell", {"point": {"x": 0.5, "y": 0.5}, "y": 3.0})
    page = page_on(DESKTOP, "#/study/keys")
    chart = page.get_by_role("application")
    chart.wait_for()
    assert "120" in chart.get_attribute("aria-label")
    chart.focus()
    page.keyboard.press("ArrowRight")
    readout = page.locator(".map .readout")
    first = readout.inner_text()
    page.keyboard.press("ArrowUp")
    assert readout.inner_text() != first
    assert "±" in first
    page.keyboard.press("Enter")  # the point is put into the form, and the value has the focus
    page.keyboard.type("0.75")
    page.keyboard.press("Enter")
    page.locator('tr[data-id="2"]').wait_for()
    assert api.get("/studies/keys/measurements")["measurements"][1]["value"] == 0.75
    unnamed = page.evaluate(
        "[...document.querySelectorAll('button, input, select, textarea, a')].filter(n => "
        "!n.labels?.length &&"
        " !n.textContent.trim() && !n.getAttribute('aria-label')).map(n => n.outerHTML)"
    )
    assert unnamed == []


def test_the_page_requests_a_token_and_shows_no_forms_for_a_read_token(chromium, guarded):
    from tests.helpers.server import Api

    url, write, read = guarded
    Api(url, write).create("read only", CURVE)
    context = chromium.new_context(**DESKTOP)
    context.set_default_timeout(TIMEOUT)
    page = context.new_page()
    page.goto(url)
    page.get_by_label("Token").fill("not this one at all")
    page.get_by_role("button", name="Log in").click()
    page.get_by_text("This token is not accepted").wait_for()
    page.goto(f"{url}/#token={read}")
    page.get_by_role("link", name="read only").click()
    page.get_by_role("heading", name="read only", level=1).wait_for()
    assert "token" not in page.url
    assert page.get_by_role("button", name="Suggest next").count() == 0
    assert page.get_by_text("Enter the value of another point").count() == 0
    context.close()


def test_files_are_downloaded(page_on, served):
    api, _ = served
    api.create("down load", CURVE)
    page = page_on(DESKTOP, "#/study/down%20load")
    with page.expect_download() as download:
        page.get_by_role("button", name="Export").click()
    assert download.value.suggested_filename == "down_load.json"
    with page.expect_download() as download:
        page.get_by_role("button", name="Report").click()
    assert download.value.suggested_filename == "down_load.html"


def test_a_failed_model_check_is_shown_with_the_certificate(page_on, served):
    api, _ = served
    api.create("contradicted")
    for k in range(6):
        api.post(
            "/studies/contradicted/tell", {"point": {"x": 0.5, "y": 0.5}, "y": 50.0 * (-1) ** k}
        )
    check = api.get("/studies/contradicted/result")["model_check"]
    assert not check["ok"]
    page = page_on(DESKTOP, "#/study/contradicted")
    warning = page.locator(".certificate .failed-check")
    warning.wait_for()
    assert warning.inner_text() == f"Model check failed. {check['message']}"
    assert (
        "The measurements contradict the model: "
        in page.locator(".certificate blockquote").inner_text()
    )


def test_a_gross_error_and_the_best_measurement_are_shown_until_the_value_is_corrected(
    page_on, served
):
    api, _ = served
    api.create("typing error", "[domain]\ngrid = {x = [0, 1, 41]}\n[goal]\nmaximize = true\n")
    for k in range(8):
        api.post("/studies/typing error/tell", {"point": {"x": k / 8}, "y": k / 8})
    answer = api.post("/studies/typing error/tell", {"point": {"x": 0.3}, "y": 10_000})
    (warning,) = answer["warnings"]
    assert "if it is an error, correct or withdraw it; if not, measure there again" in warning
    page = page_on(DESKTOP, "#/study/typing%20error")
    shown = page.locator(".warnings .warning")
    shown.wait_for()
    assert shown.inner_text() == f"{warning[0].upper()}{warning[1:]}."
    assert "left out" in page.locator(".measurements tr[data-id='9']").inner_text()
    shown_tiles = tiles(page)
    assert shown_tiles["best observed"] == "0.875 at x 0.875 (measurement 8)"
    assert re.fullmatch(r"\S+ ± \S+ \(95 %: \S+ to \S+\) at x \S+", shown_tiles["recommended"])
    page.get_by_role("button", name="Correct measurement 9").click()
    page.get_by_role("dialog").get_by_label(re.compile("^Value")).fill("0.3")
    page.get_by_role("dialog").get_by_role("button", name="Correct", exact=True).click()
    shown.wait_for(state="detached")
    assert "left out" not in page.locator(".measurements tr[data-id='9']").inner_text()


def test_the_page_shows_one_set_of_classes_and_the_paper_s_sets_in_their_section_only(
    page_on, served
):
    api, _ = served
    api.create("classes")
    for x, y, value in ((0.2, 0.2, 2.0), (0.8, 0.8, -2.0), (0.5, 0.5, 1.0), (0.2, 0.8, 1.5)):
        api.post("/studies/classes/tell", {"point": {"x": x, "y": y}, "y": value})
    api.post("/studies/classes/withdraw", {"id": 1})  # the first number on the map is then 2
    status = api.get("/studies/classes/status")
    classified = status["result"]["classified"]
    page = page_on(DESKTOP, "#/study/classes")
    page.get_by_text("Classes", exact=True).click()
    legend = page.locator(".map .key").first.inner_text()
    for name in ("above", "undecided", "below"):
        assert f"{name}: {classified[name]}" in legend
    n_wrong = classified["max_wrong"]
    assert f"(each with at least 95 %; at most {n_wrong} wrong)" in legend
    shown_tiles = tiles(page)
    decided = 120 - classified["undecided"]
    assert shown_tiles["decided"].startswith(f"{100 * decided // 120} % {decided} of 120 points")
    assert f"at most {n_wrong} wrong" in shown_tiles["decided"]
    assert re.fullmatch(r"\S+ % of the points \(\S+ to \S+ %\)", shown_tiles["above 0.2"])
    certificate = page.locator(".certificate").inner_text()
    for sentence in status["result"]["certificate"]["further"]:
        assert sentence in certificate
    assert re.fullmatch(r"[01]\.\d+ \([01]\.\d+ to [01]\.\d+\)", shown_tiles["expected f1"])
    assert shown_tiles["budget left"] == "– no budget is set"
    assert set(page.locator(".map text.number").all_text_contents()) == {"2", "3", "4"}

    details = page.locator(".certificate details.paper")
    assert "ε" not in page.locator("main").inner_text()
    assert "epsilon" not in page.locator("main").inner_text()  # the section is closed
    details.locator("summary").click()
    text = details.inner_text()
    result = status["result"]
    assert (
        f"H (above) {result['above']}, L (below) {result['below']}, M (undecided) "
        f"{result['potential']}" in text
    )
    assert result["certificate"]["bounds_statement"] in text
    assert result["certificate"]["regime"] in text
    page.get_by_text("Probability", exact=True).click()
    assert "probability of being above" in page.locator(".map .key").first.inner_text()


def test_a_vehicle_is_chosen_and_its_route_is_drawn(page_on, served):
    api, _ = served
    boats = (
        "[cost]\nbase = 1.0\ntravel = {x = 1.0}\n[vehicles]\nboat-1 = {}\nboat-2 = {speed = 2.0}\n"
    )
    api.create("page-boats", GRID + boats)
    for k in range(4):
        who = f"boat-{k % 2 + 1}"
        api.post(
            "/studies/page-boats/tell", {"point": {"x": k / 11, "y": 0.0}, "y": 0.1 * k, "who": who}
        )
    page = page_on(DESKTOP, "#/study/page-boats")
    page.locator(".map .route").first.wait_for(state="attached")
    assert page.locator(".map .route").count() == 2
    assert "boat-2: at x 0.2727, y 0, 2 measurements" in page.locator(".summary-lines").inner_text()
    page.get_by_role("combobox", name="Vehicle").first.select_option("boat-2")
    page.get_by_role("button", name="Suggest next").click()
    card = page.locator(".suggestion").first
    card.wait_for()
    assert "for boat-2" in card.inner_text()
    assert api.get("/studies/page-boats/status")["pending"][0]["who"] == "boat-2"
    assert page.locator("table th", has_text="Measured by").count() == 1


MIXED = """
[domain]
box.lr = {log = [1e-6, 1e-1]}
box.depth = {integer = [1, 12]}
box.solver = ["lbfgs", "saga"]
box.day = {date = ["2026-05-01", "2026-05-09"]}
representers = 60
[goal]
maximize = true
"""


def test_values_of_every_type_are_shown_and_entered(page_on, served):
    api, _ = served
    api.create("mixed", MIXED)
    point = {"lr": 0.001, "depth": 3, "solver": "saga", "day": "2026-05-03"}
    api.post("/studies/mixed/tell", {"point": point, "y": 0.5})
    asked = api.post("/studies/mixed/ask", {"n": 1})["suggestions"][0]["point"]
    view = api.get("/studies/mixed/view")
    assert [column["choices"] for column in view["columns"]] == [
        None,
        None,
        ["lbfgs", "saga"],
        None,
    ]
    assert view["columns"][0]["log"]
    assert (view["columns"][0]["low"], view["columns"][0]["high"]) == (1e-6, 0.1)
    page = page_on(DESKTOP, "#/study/mixed")
    assert "saga" in page.locator(".measurements tr[data-id='1']").inner_text()
    assert asked["solver"] in page.locator(".suggestion .coordinates").inner_text()
    page.get_by_text("Enter the value of another point").click()
    form = page.locator(".other-point form")
    form.get_by_label(re.compile("^lr")).fill("0.01")
    form.get_by_label(re.compile("^depth")).fill("4")
    form.get_by_label(re.compile("^solver")).select_option(label="lbfgs")
    form.get_by_label(re.compile("^day")).fill("2026-05-04")
    form.get_by_label(re.compile("^Measured value")).fill("0.25")
    form.get_by_role("button", name="Save").click()
    page.locator(".measurements tr[data-id='3']").wait_for()
    told = api.get("/studies/mixed/view")["measurements"][-1]["point"]
    assert told == {"lr": 0.01, "depth": 4, "solver": "lbfgs", "day": "2026-05-04"}
    plane = api.get("/studies/mixed/slice?x=lr&y=solver&at=0.001&at=3&at=1&at=20576")
    assert plane["y"] == [0.0, 1.0]
    assert len(plane["mean"]) == 2 * len(plane["x"])


def test_a_place_is_excluded_or_failed_with_a_reason_and_allowed_again(page_on, served):
    api, _ = served
    api.create("page-places")
    page = page_on(DESKTOP, "#/study/page-places")
    for number, (button, verb) in enumerate(
        (
            ("Cannot be measured here", "Excluded: "),
            ("The measurement failed", "Recorded: the measurement at "),
        ),
        start=1,
    ):
        page.get_by_role("button", name="Suggest next").click()
        card = page.locator(f'.suggestion[data-id="{number}"]')
        card.locator("summary").click()
        card.get_by_label("Reason").fill("under a <b>jetty</b>")
        card.get_by_role("button", name=button).click()
        page.locator(".message", has_text=verb).wait_for()
        assert page.locator(".suggestion").count() == 0
    status = api.get("/studies/page-places/status")
    assert status["result"]["failed"] == 1
    assert status["result"]["excluded"] == 2
    assert status["result"]["spent"] == 1.0
    (failure,) = api.get("/studies/page-places/failures")["failures"]
    assert failure["reason"] == "under a <b>jetty</b>"
    assert tiles(page)["not suggested"] == "2 of 120 points, excluded or failed"

    listed = page.locator(".exclusions")
    page.get_by_text("Not suggested: 2 places").click()
    assert "under a <b>jetty</b>" in listed.inner_text()
    listed.get_by_role("button").first.click()
    page.locator(".message", has_text="Allowed again: ").wait_for()
    page.get_by_text("Not suggested: 1 place").wait_for()
    assert api.get("/studies/page-places/status")["result"]["excluded"] == 1


@pytest.mark.parametrize("by", ["suggestion", "point"])
def test_the_page_asks_again_before_it_saves_a_value_that_may_be_a_typing_mistake(
    page_on, served, by
):
    api, _ = served
    name = f"typing {by}"
    api.create(name)
    page = page_on(DESKTOP, f"#/study/typing%20{by}")
    if by == "suggestion":
        page.get_by_role("button", name="Suggest next").click()
        form = page.locator('.suggestion[data-id="1"]')
    else:
        page.get_by_text("Enter the value of another point").click()
        form = page.locator(".next > div > details").first
        form.get_by_label("x").fill("0.5")
        form.get_by_label("y", exact=True).fill("0.5")
    form.get_by_label("Measured value").fill("150")
    form.get_by_role("button", name="Save").click()
    question = form.locator(".warning")
    question.wait_for()
    assert "standard deviations from the expected" in question.inner_text()
    assert api.get(f"/studies/{name}/measurements")["measurements"] == []
    form.get_by_label("Measured value").fill("1.5")
    question.wait_for(state="hidden")
    form.get_by_label("Measured value").fill("151")
    form.get_by_role("button", name="Save").click()
    question.wait_for()
    form.get_by_role("button", name="Save").click()  # again: it is right
    page.locator('tr[data-id="1"]').wait_for()
    assert api.get(f"/studies/{name}/measurements")["measurements"][0]["value"] == 151


def test_coordinates_have_as_many_digits_as_tell_points_apart(page_on, served):
    api, _ = served
    problem = "[domain]\ngrid = {lon = [8.5, 9.5, 25], lat = [47.0001, 47.0002, 11]}\n[goal]\nmaximize = true\n"
    api.create("digits", problem)
    api.post("/studies/digits/tell", {"point": {"lon": 8.5 + 1 / 24, "lat": 47.00013}, "y": 1.0})
    page = page_on(DESKTOP, "#/study/digits")
    page.locator('.measurements tr[data-id="1"]').wait_for()
    assert "at lon 8.5417, lat 47.00013 (measurement 1)" in tiles(page)["best observed"]
    cells = page.locator('.measurements tr[data-id="1"] td').all_inner_texts()
    assert cells[:2] == ["8.5417", "47.00013"]


def test_the_page_reads_and_writes_times_as_the_server_does(page_on, served):
    page = page_on(DESKTOP)
    times = [
        [{"date": "day"}, "2026-05-01"],
        [{"date": "time"}, "2026-05-01T10:00:01"],
        [{"date": "text"}, "2026-05-01T10:00:01.300000"],
        [
            {"date": "text", "timezone": "Europe/Berlin"},
            "2026-10-25T02:30:00+02:00",
        ],  # the hour that occurs twice
        [{"date": "text", "timezone": "Europe/Berlin"}, "2026-10-25T02:30:00.123456+01:00"],
        [{"date": "text", "timezone": "-03:30"}, "2026-05-01T10:00:00-03:30"],
        [{"date": "text", "timezone": "UTC"}, "2026-05-01T10:00:00+00:00"],
    ]
    read_and_write = """async (times) => {
        const { position, valueAt } = await import("/page/format.js");
        return times.map(([column, text]) => valueAt(column, position(column, text)));
    }"""
    assert page.evaluate(read_and_write, times) == [text for _, text in times]
