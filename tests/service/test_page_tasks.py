"""Tasks that people do on the page, from creating a study to resuming it; also without a
network."""

import re

import pytest
from tests.helpers.page import DESKTOP, PHONE, tiles, wait_until
from tests.helpers.server import CURVE, GRID

# how browsers log a request that was refused or did not reach the server
REFUSED = "Failed to load resource"
NOTHING_UNSENT = "localStorage.getItem(`truvar-unsent:${location.pathname}`) === '[]'"
TABLE = "site;x;y;duration;value\n" + "\n".join(
    f"s{k};{(k % 6) / 5:.1f};{(k // 6) / 5:.1f};{1 + k % 3};".replace(".", ",") for k in range(36)
)
CONTEXT = """
[domain]
grid = {dose = [0, 1, 6], warmth = [10, 20, 3]}
context = ["warmth"]
[goal]
maximize = true
"""


def upload(page, text: str, name: str = "sites.csv") -> None:
    """Choose a file for the table of a new study."""
    page.locator(".drop input").set_input_files(
        {"name": name, "mimeType": "text/csv", "buffer": text.encode()}
    )


def save_value(page, id_: int, value: str) -> None:
    """Enter the value of a suggestion and wait until it is in the table."""
    card = page.locator(f'.suggestion[data-id="{id_}"]')
    card.get_by_label("Measured value").fill(value)
    card.get_by_role("button", name="Save").click()
    page.locator(f'.measurements tbody tr[data-id="{id_}"]').wait_for()


@pytest.mark.parametrize(("device", "name"), [(DESKTOP, "ten tasks"), (PHONE, "ten tasks, phone")])
def test_the_ten_tasks_of_a_study(page_on, served, device, name):
    api, _ = served
    page = page_on(device, "#/new")
    # 1 create, from a table as people have it
    upload(page, TABLE)
    page.get_by_label(re.compile("^duration")).wait_for()
    assert page.get_by_label(re.compile("^duration")).input_value() == "cost"
    assert page.get_by_label(re.compile("^site")).input_value() == "label"
    assert page.get_by_label(re.compile("^value")).input_value() == "unused"
    page.get_by_label("Find").select_option("level_set")
    page.get_by_label("Threshold", exact=True).fill("0,4")
    page.get_by_label(re.compile("^Most measurements")).fill("4")
    page.get_by_label(re.compile("^Noise of a measurement")).fill("0.05")
    page.get_by_text("36 points.").wait_for()
    assert "from column duration" in page.locator(".preview .facts").inner_text()
    page.get_by_role("textbox", name="Name").fill(name)
    page.get_by_role("button", name="Create the study").click()
    page.get_by_role("heading", name=name, level=1).wait_for()
    # 2 ask
    page.get_by_role("button", name="Suggest next").click()
    card = page.locator('.suggestion[data-id="1"]')
    card.wait_for()
    assert "there is no model yet" in card.inner_text()
    assert re.match(r"s\d+\n", card.inner_text())  # the name of the row leads
    # 3 tell
    save_value(page, 1, "0,9")
    # 4 correct
    page.get_by_role("button", name="Correct measurement 1").click()
    page.get_by_role("dialog").get_by_label(re.compile("^Value")).fill("0.8")
    page.get_by_role("dialog").get_by_role("button", name="Correct", exact=True).click()
    page.locator('tr[data-id="1"]', has_text="0.8").wait_for()
    # 5 exclude, 6 fail
    for id_, button in ((2, "Cannot be measured here"), (3, "The measurement failed")):
        page.get_by_role("button", name="Suggest next").click()
        card = page.locator(f'.suggestion[data-id="{id_}"]')
        card.locator("summary").click()
        card.get_by_role("button", name=button).click()
        card.wait_for(state="detached")
    page.locator('.measurements tr[data-id="3"]', has_text="failed").wait_for()
    assert page.locator(".map .failed").count() >= 1
    # 7 stop: the limit is reached
    for id_, value in ((4, "0.2"), (5, "0.5"), (6, "0.3")):
        page.get_by_role("button", name="Suggest next").click()
        save_value(page, id_, value)
    assert (
        "The study can stop: measurement 4, goal 4." in page.locator(".summary-lines").inner_text()
    )
    assert tiles(page)["measured"].startswith("4 of 4 cost")
    # 8 report, 9 export
    with page.expect_download() as download:
        page.get_by_role("button", name="Report").click()
    assert download.value.suggested_filename.endswith(".html")
    with page.expect_download() as download:
        page.get_by_role("button", name="Export").click()
    assert download.value.suggested_filename.endswith(".json")
    # 10 resume, in another browser
    again = page_on(device, f"#/study/{name.replace(' ', '%20')}")
    again.locator('.measurements tr[data-id="6"]').wait_for()
    again.get_by_role("button", name="Suggest next").click()
    save_value(again, 7, "0.6")
    rows = api.get(f"/studies/{name}/measurements")["measurements"]
    assert [row["value"] for row in rows] == [0.8, 0.2, 0.5, 0.3, 0.6]
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_values_that_are_entered_without_a_network_are_sent_once_and_in_order(page_on, served):
    api, _ = served
    api.create("boat", GRID)
    page = page_on(PHONE, "#/study/boat", tolerate=REFUSED)
    page.get_by_label("Suggestions", exact=True).fill("3")
    page.get_by_role("button", name="Suggest next").click()
    page.locator('.suggestion[data-id="3"]').wait_for()
    page.context.set_offline(True)
    for id_, value in ((2, "0.5"), (1, "-0.25")):
        card = page.locator(f'.suggestion[data-id="{id_}"]')
        card.get_by_label("Measured value").fill(value)
        card.get_by_role("button", name="Save").click()
        card.get_by_text("Waits to be sent").wait_for()
    page.get_by_text("Enter the value of another point").click()
    form = page.locator(".other-point form")
    form.get_by_label("x", exact=True).fill("0")
    form.get_by_label("y", exact=True).fill("1")
    form.get_by_label("Measured value").fill("0.75")
    form.get_by_label(re.compile("^Further values")).fill("0.7 0,8")
    form.get_by_role("button", name="Save").click()
    page.get_by_text("3 values kept in this browser until the server can be reached").wait_for()
    assert api.get("/studies/boat/measurements")["measurements"] == []
    unsent = page.evaluate("Object.values(localStorage).filter(text => text.includes('boat'))")
    page.context.set_offline(False)
    page.locator("#unsent").wait_for(state="hidden")
    page.locator('.measurements tr[data-id="6"]').wait_for()
    rows = api.get("/studies/boat/measurements")["measurements"]
    assert [(row["id"], row["value"]) for row in rows] == [
        (2, 0.5),
        (1, -0.25),
        (4, 0.75),
        (5, 0.7),
        (6, 0.8),
    ]
    assert page.locator(".suggestion").count() == 1  # the third one still waits for its value
    # The answers were lost on the way: the same values are sent again, by a page that is opened
    # later.
    page.evaluate(
        "text => localStorage.setItem(`truvar-unsent:${location.pathname}`, text)", unsent[0]
    )
    page.reload()
    page.locator('.measurements tr[data-id="6"]').wait_for()
    wait_until(page, NOTHING_UNSENT)
    assert api.get("/studies/boat/measurements")["measurements"] == rows


def test_failures_exclusions_and_corrections_without_a_network_are_sent_once_and_in_order(
    page_on, served
):
    api, _ = served
    api.create("storm", GRID)
    for x, y in ((0.0, 0.5), (1.0, 0.25)):
        api.post("/studies/storm/tell", {"point": {"x": x, "y": 0.0}, "y": y})
    page = page_on(PHONE, "#/study/storm", tolerate=REFUSED)
    page.get_by_label("Suggestions", exact=True).fill("2")
    page.get_by_role("button", name="Suggest next").click()
    page.locator('.suggestion[data-id="4"]').wait_for()

    def correct(id_, value):
        page.get_by_role("button", name=f"Correct measurement {id_}").click()
        page.get_by_role("dialog").get_by_label(re.compile("^Value")).fill(value)
        page.get_by_role("dialog").get_by_role("button", name="Correct", exact=True).click()
        page.get_by_role("dialog").wait_for(state="detached")

    page.context.set_offline(True)
    for id_, button in ((3, "The measurement failed"), (4, "Cannot be measured here")):
        card = page.locator(f'.suggestion[data-id="{id_}"]')
        card.locator("summary").click()
        card.get_by_label(re.compile("^Reason")).fill("storm")
        card.get_by_role("button", name=button).click()
        card.get_by_text("Waits to be sent").wait_for()
    correct(1, "0.75")
    correct(1, "0.8")  # a second thought
    correct(2, "0.3")
    page.locator('tr[data-id="1"]', has_text="0.8 waits to be sent").wait_for()
    page.get_by_text("5 changes kept in this browser until the server can be reached").wait_for()
    assert api.get("/studies/storm/failures")["failures"] == []
    unsent = page.evaluate("localStorage.getItem(`truvar-unsent:${location.pathname}`)")
    api.post(
        "/studies/storm/correct", {"id": 2, "y": 0.9}
    )  # by somebody ashore: the page did not know of it
    page.context.set_offline(False)
    bar = page.locator("#unsent")
    bar.get_by_text("1 change refused by the server").click()
    assert "corrected from 0.25 to 0.3, but is 0.9 by now" in bar.inner_text()
    bar.get_by_role("button", name=re.compile("^Discard")).click()
    bar.wait_for(state="hidden")
    page.locator('.measurements tr[data-id="3"]', has_text="failed").wait_for()
    values = [row["value"] for row in api.get("/studies/storm/measurements")["measurements"]]
    assert values == [0.8, 0.9]
    failures = api.get("/studies/storm/failures")["failures"]
    assert [(row["id"], row["reason"]) for row in failures] == [(3, "storm")]
    events = [event["kind"] for event in api.get("/studies/storm/events")["events"]]
    assert (events.count("corrected"), events.count("failed"), events.count("excluded")) == (
        3,
        1,
        1,
    )
    # The answers were lost on the way: what was done already is not done again.
    page.evaluate(
        "text => localStorage.setItem(`truvar-unsent:${location.pathname}`, text)", unsent
    )
    page.reload()
    page.locator("#unsent").get_by_text("refused by the server").wait_for()
    again = [event["kind"] for event in api.get("/studies/storm/events")["events"]]
    assert (again.count("failed"), again.count("excluded")) == (1, 1)
    assert [
        row["value"] for row in api.get("/studies/storm/measurements")["measurements"]
    ] == values


def test_the_page_is_opened_again_without_a_network_and_keeps_what_is_entered(page_on, served):
    api, _ = served
    api.create("reloaded", GRID)
    api.post("/studies/reloaded/tell", {"point": {"x": 0.0, "y": 0.0}, "y": 0.25})
    page = page_on(PHONE, "#/study/reloaded", tolerate=REFUSED, service_workers="allow")
    page.evaluate("navigator.serviceWorker.ready.then(() => null)")
    wait_until(page, "navigator.serviceWorker.controller !== null")
    page.reload()  # now its files and answers pass the service worker
    page.locator('.measurements tr[data-id="1"]').wait_for()
    page.context.set_offline(True)
    page.reload()
    page.locator('.measurements tr[data-id="1"]').wait_for()
    page.get_by_text("Enter the value of another point").click()
    form = page.locator(".other-point form")
    form.get_by_label("x", exact=True).fill("1")
    form.get_by_label("y", exact=True).fill("1")
    form.get_by_label("Measured value").fill("0.5")
    form.get_by_role("button", name="Save").click()
    page.get_by_text("1 value kept in this browser").wait_for()
    assert len(api.get("/studies/reloaded/measurements")["measurements"]) == 1
    page.context.set_offline(False)
    page.locator('.measurements tr[data-id="2"]').wait_for()
    assert [row["value"] for row in api.get("/studies/reloaded/measurements")["measurements"]] == [
        0.25,
        0.5,
    ]


def test_a_lost_answer_does_not_count_a_value_twice(page_on, served):
    api, _ = served
    api.create("lost answer", CURVE)
    page = page_on(DESKTOP, "#/study/lost%20answer", tolerate=REFUSED)
    attempts = []

    def lose_first_answer(route):
        attempts.append(route.request.post_data_json["key"])
        if len(attempts) == 1:
            route.fetch()  # the server gets the value, the browser no answer
            route.abort()
        else:
            route.continue_()

    page.route("**/tell", lose_first_answer)
    page.get_by_text("Enter the value of another point").click()
    form = page.locator(".other-point form")
    form.get_by_label("x", exact=True).fill("0.5")
    form.get_by_label("Measured value").fill("1.25")
    form.get_by_role("button", name="Save").click()
    page.locator('.measurements tr[data-id="1"]').wait_for()
    wait_until(page, NOTHING_UNSENT)
    assert len(attempts) >= 2
    assert len(set(attempts)) == 1
    assert [
        row["value"] for row in api.get("/studies/lost answer/measurements")["measurements"]
    ] == [1.25]


def test_a_value_that_the_server_refuses_later_is_shown_and_can_be_discarded(page_on, served):
    api, _ = served
    api.create("refused", CURVE)
    api.post("/studies/refused/ask", {})
    page = page_on(DESKTOP, "#/study/refused", tolerate=REFUSED)
    card = page.locator('.suggestion[data-id="1"]')
    card.wait_for()
    page.context.set_offline(True)
    card.get_by_label("Measured value").fill("1.5")
    card.get_by_role("button", name="Save").click()
    card.get_by_text("Waits to be sent").wait_for()
    api.post("/studies/refused/withdraw", {"id": 1})  # by somebody ashore
    page.context.set_offline(False)
    bar = page.locator("#unsent")
    bar.get_by_text("1 value refused by the server").click()
    assert "suggestion 1 is not pending" in bar.inner_text()
    bar.get_by_role("button", name=re.compile("^Discard")).click()
    bar.wait_for(state="hidden")
    assert api.get("/studies/refused/measurements")["measurements"] == []


def test_several_values_repeats_and_pasted_points_are_saved(page_on, served):
    api, _ = served
    api.create("several", GRID)
    page = page_on(DESKTOP, "#/study/several")
    page.get_by_label("Suggestions", exact=True).fill("2")
    page.get_by_label("Reserved for").select_option("3600")
    page.get_by_role("button", name="Suggest next").click()
    page.locator('.suggestion[data-id="2"]').wait_for()
    assert api.get("/studies/several/events")["events"][0]["details"]["until"] is not None
    first = page.locator('.suggestion[data-id="1"]')
    first.get_by_label("Measured value").fill("0.5")
    first.locator("summary").click()
    first.get_by_label(re.compile("^Further values")).fill("0.4 0,6")
    page.locator('.suggestion[data-id="2"]').get_by_label("Measured value").fill("0.1")
    page.get_by_role("button", name="Save all entered values").click()
    page.get_by_text("2 values saved.").wait_for()
    page.get_by_text("Enter several points").click()
    form = page.locator(".several-points form")
    form.get_by_label(re.compile("^Points and values")).fill("x\ty\tvalue\n0\t0\t0,25\n1\t1\toops")
    form.get_by_role("button", name="Save all").click()
    form.get_by_text("Line 3: the value must be a number, got “oops”.").wait_for()
    form.get_by_label(re.compile("^Points and values")).fill("0 0 0.25\n1 1 0.5")
    form.get_by_role("button", name="Save all").click()
    page.locator('.measurements tr[data-id="6"]').wait_for()
    rows = api.get("/studies/several/measurements")["measurements"]
    assert [(row["id"], row["value"]) for row in rows] == [
        (1, 0.5),
        (3, 0.4),
        (4, 0.6),
        (2, 0.1),
        (5, 0.25),
        (6, 0.5),
    ]
    assert [row["repeats"] for row in rows[:3]] == [None, 1, 1]
    page.get_by_role("button", name="Correct measurement 5").click()
    page.get_by_role("dialog").get_by_label(re.compile("^Measured again")).fill("0.3")
    page.get_by_role("dialog").get_by_role("button", name="Add repeats").click()
    page.locator('.measurements tr[data-id="7"]').wait_for()
    assert api.get("/studies/several/measurements")["measurements"][-1]["repeats"] == 5


def test_the_context_of_the_day_is_given_in_the_ask_form(page_on, served):
    api, _ = served
    api.create("context", CONTEXT)
    page = page_on(DESKTOP, "#/study/context")
    page.get_by_label(re.compile("^warmth today")).fill("14")
    page.get_by_role("button", name="Suggest next").click()
    page.locator('.suggestion[data-id="1"]').wait_for()
    (pending,) = api.get("/studies/context/status")["pending"]
    assert pending["point"]["warmth"] == 15


def test_the_form_and_the_page_ask_for_the_points_below_a_threshold(page_on, served):
    api, _ = served
    page = page_on(DESKTOP, "#/new", tolerate=REFUSED)
    page.get_by_text("Ranges", exact=True).click()
    for k, name in enumerate("xy"):
        column = page.locator(".range").nth(k)
        column.get_by_role("textbox", name="Column").fill(name)
        column.get_by_label("From").fill("0")
        column.get_by_label("To").fill("1")
    page.get_by_label("Find").select_option("level_set_below")
    page.get_by_label("Threshold").fill("4")
    page.get_by_role("textbox", name="Name").fill("low oxygen")
    page.get_by_role("button", name="Create the study").click()
    page.get_by_role("heading", name="low oxygen", level=1).wait_for()
    for x in (0.0, 0.25, 0.5, 0.75, 1.0):
        for y in (0.0, 1.0):
            api.post("/studies/low oxygen/tell", {"point": {"x": x, "y": y}, "y": 2.0 + 4.0 * x})
    page.locator('tr[data-id="10"]').wait_for()
    page.get_by_text("Where is the value below 4?").wait_for()
    page.get_by_text("Probability", exact=True).click()
    page.get_by_text("probability of being below").first.wait_for()
    page.get_by_text("Classes", exact=True).click()
    rows = page.locator(".map .key li").all_inner_texts()
    assert [row.split(":")[0].strip() for row in rows[:3]] == ["below", "undecided", "above"]
    first = page.locator(".map .key li rect").first
    assert first.get_attribute("class") == "area-H"  # the colour that stands out


def test_a_study_is_created_from_ranges_and_the_form_becomes_toml(page_on, served):
    api, _ = served
    page = page_on(DESKTOP, "#/new", tolerate=REFUSED)
    page.get_by_text("Ranges", exact=True).click()
    columns = page.locator(".range")
    columns.nth(0).get_by_role("textbox", name="Column").fill("lr")
    columns.nth(0).get_by_label("Values").select_option("log")
    columns.nth(0).get_by_label("From").fill("1e-5")
    columns.nth(0).get_by_label("To").fill("0.1")
    columns.nth(1).get_by_role("textbox", name="Column").fill("solver name")
    columns.nth(1).get_by_label("Values").select_option("choices")
    page.get_by_text("needs at least two names").wait_for()
    columns.nth(1).get_by_label("Names").fill("lbfgs, saga")
    page.get_by_label(re.compile("^Budget")).fill("50")
    page.get_by_text("Where is the value highest? 40 points.").wait_for()
    page.get_by_text("Cost of travel").click()
    page.get_by_label("lr", exact=True).fill("-1")
    page.locator(".preview .alert").wait_for()
    page.get_by_label("lr", exact=True).fill("")
    page.get_by_text("Advanced: TOML").click()
    text = page.get_by_label("Problem in TOML").input_value()
    assert (
        '[domain]\ngrid = {lr = {log = [0.00001, 0.1], count = 20}, "solver name" = ["lbfgs", '
        '"saga"]}' in text
    )
    assert "[run]\nbudget = 50" in text
    page.get_by_role("button", name="Create the study").click()
    page.get_by_text("Give the study a name.").wait_for()
    page.get_by_role("textbox", name="Name").fill("from ranges")
    page.get_by_role("button", name="Create the study").click()
    page.get_by_role("heading", name="from ranges", level=1).wait_for()
    assert api.get("/studies/from ranges/status")["limits"] == {"budget": 50.0}


def test_a_table_is_dropped_on_the_form(page_on):
    page = page_on(DESKTOP, "#/new")
    page.locator(".drop").wait_for()
    page.evaluate(
        """text => {
            const transfer = new DataTransfer();
            transfer.items.add(new File([text], "dropped.csv", {type: "text/csv"}));
            const event = new DragEvent("drop", {dataTransfer: transfer, cancelable: true});
            document.querySelector(".drop").dispatchEvent(event);
        }""",
        "x,y\n1,2\n3,4\n",
    )
    page.get_by_text("dropped.csv: 2 rows. What is each column?").wait_for()
    page.get_by_text("2 points.").wait_for()
    assert page.get_by_role("textbox", name="Name").input_value() == "dropped"


def test_a_study_is_renamed_and_deleted_after_its_name_was_typed(page_on, served):
    api, _ = served
    api.create("old name", CURVE)
    page = page_on(DESKTOP, "#/study/old%20name", tolerate=REFUSED)
    page.get_by_role("button", name="Rename or delete").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label(re.compile("^New name")).fill("new name")
    dialog.get_by_role("button", name="Rename").click()
    page.get_by_role("heading", name="new name", level=1).wait_for()
    page.get_by_text("History and notes").click()
    page.get_by_text("renamed from 'old name' to 'new name'").wait_for()
    page.get_by_role("button", name="Rename or delete").click()
    dialog = page.get_by_role("dialog")
    delete = dialog.get_by_role("button", name="Delete for good")
    assert delete.is_disabled()
    dialog.get_by_label(re.compile("^Type the name")).fill("new nam")
    assert delete.is_disabled()
    dialog.get_by_label(re.compile("^Type the name")).fill("new name")
    delete.click()
    page.get_by_role("heading", name="Studies", exact=True).wait_for()
    assert "new name" not in [row["name"] for row in api.get("/studies")["studies"]]
