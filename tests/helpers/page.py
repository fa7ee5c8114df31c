"""Devices, and what the tests read from the page."""

import time

DESKTOP = {"viewport": {"width": 1280, "height": 900}}
PHONE = {
    "viewport": {"width": 390, "height": 844},
    "device_scale_factor": 2,
    "is_mobile": True,
    "has_touch": True,
}
SMALL_PHONE = {**PHONE, "viewport": {"width": 390, "height": 664}}  # what a browser's bars leave
TIMEOUT = 60_000  # milliseconds


def wait_until(page, expression: str) -> None:
    """Wait until a JavaScript expression is true.

    Playwright's `wait_for_function` asks again from within the page, where the content security
    policy forbids it.
    """
    deadline = time.monotonic() + TIMEOUT / 1000
    while not page.evaluate(expression):
        assert time.monotonic() < deadline, f"not true within {TIMEOUT / 1000:.0f} s: {expression}"
        page.wait_for_timeout(50)


def tiles(page) -> dict[str, str]:
    """Return the tiles at the top of a study, by their names in small letters."""
    # One call, since the page may redraw between two; the text of a removed tile has no lines.
    script = (
        "() => [...document.querySelectorAll('.key-numbers > div')].map((tile) => tile.innerText)"
    )
    rows = [row.split("\n", 1) for row in page.evaluate(script)]
    return {name.lower(): " ".join(text.split()) for name, text in rows}
