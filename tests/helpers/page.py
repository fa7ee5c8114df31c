"""Devices, and what the tests read from the page."""

DESKTOP = {"viewport": {"width": 1280, "height": 900}}
PHONE = {"viewport": {"width": 390, "height": 844}, "device_scale_factor": 2, "is_mobile": True, "has_touch": True}
TIMEOUT = 60_000  # milliseconds


def tiles(page) -> dict[str, str]:
    """Return the tiles at the top of a study, by their names in small letters."""
    rows = [row.split("\n", 1) for row in page.locator(".key-numbers > div").all_inner_texts()]
    return {name.lower(): " ".join(text.split()) for name, text in rows}
