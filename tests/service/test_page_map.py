"""The goal "map" on the page: the form, the tiles and the picture."""

import numpy as np
import pytest
from tests.helpers.page import DESKTOP, PHONE, tiles


@pytest.mark.parametrize("device", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_the_form_makes_a_map_and_the_page_shows_it(page_on, served, device) -> None:
    api, _ = served
    name = f"bay {device['viewport']['width']}"
    page = page_on(device)
    page.get_by_role("link", name="New study").first.click()
    page.get_by_role("textbox", name="Name").fill(name)
    page.get_by_text("Ranges", exact=True).click()
    page.get_by_label("Find", exact=True).select_option("map")
    assert page.get_by_label("Stop at").count() == 0
    page.get_by_role("button", name="Create the study").click()
    page.get_by_text("The accuracy is missing.").first.wait_for()
    page.get_by_label("Accuracy ±").fill("0,3")
    page.get_by_label("Quantity").fill("salinity")
    page.get_by_label("Unit").fill("psu")
    page.get_by_role("button", name="Create the study").click()
    page.get_by_role("heading", name=name, level=1).wait_for()
    for suggestion in api.post(f"/studies/{name}/ask", {"n": 8})["suggestions"]:
        point = suggestion["point"]
        value = float(np.sin(3 * point["x"]) + point["y"])
        api.post(f"/studies/{name}/tell", {"id": suggestion["id"], "y": value})
    page.reload()
    page.locator(".measurements tbody tr").nth(7).wait_for()
    assert "salinity everywhere, within ±0.3 psu?" in page.locator("main").inner_text()
    assert "salinity (psu)" in page.locator("main").inner_text()
    shown = tiles(page)
    assert any("±" in text for text in shown.values()), shown
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
