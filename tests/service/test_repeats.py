"""`repeats` over HTTP, and pages that name a place that a batch repeats."""

import pytest
from tests.helpers.page import DESKTOP

PROBLEM = """
{repeats}
[domain]
grid = {{x = [0, 1, 3]}}
[goal]
maximize = true
[model]
kernel = "rbf"
lengthscales = 0.5
mean = 0.0
[noise]
variance = 9.0
"""


def test_every_place_once(served):
    api, _ = served
    api.create("repeats-once", PROBLEM.format(repeats="repeats = false"))
    suggestions = api.post("/studies/repeats-once/ask", {"n": 5})["suggestions"]
    assert sorted(each["index"] for each in suggestions) == [0, 1, 2]
    assert [each["times"] for each in suggestions] == [1, 1, 1]
    answer = api.post("/studies/repeats-once/ask", {"n": 1}, 409)
    assert "every place was measured or suggested once" in str(answer)


@pytest.mark.parametrize("value", ["0", "1.5", "'no'"])
def test_bad_values_are_refused(served, value):
    api, _ = served
    answer = api.post(
        "/studies", {"name": "bad", "problem": PROBLEM.format(repeats=f"repeats = {value}")}, 422
    )
    assert "repeats must be true, false or a number of measurements >= 1" in str(answer)


def test_the_page_names_a_place_that_a_batch_repeats(served, page_on):
    api, _ = served
    api.create("repeats-again", PROBLEM.format(repeats=""))
    suggestions = api.post("/studies/repeats-again/ask", {"n": 6})["suggestions"]
    most = max(each["times"] for each in suggestions)
    assert most > 1
    page = page_on(DESKTOP, "#/study/repeats-again")
    page.get_by_text(f"{most} x ").first.wait_for()


def test_the_form_writes_it(served, page_on):
    page = page_on(DESKTOP, "#/new")
    page.get_by_text("Ranges", exact=True).click()
    page.get_by_label("Of one place").fill("1")
    page.get_by_text("Advanced: TOML").click()
    text = page.locator("textarea").input_value()
    assert text.startswith("repeats = false")
