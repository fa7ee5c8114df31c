"""Takes the pictures of the page for README and docs: `python docs/screenshot.py` (needs Chromium
and playwright).

Servers are started, studies are run on them, and the page is photographed: on a desktop
(1280 pixels wide) and the first screen of a phone (390 x 664), light and dark. `--everything` takes
each picture on both devices in both themes, to look at. `--only NAME` takes the pictures whose names
contain NAME, `--folder DIR` puts them elsewhere.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.service import server  # noqa: E402

from truvar.service import Server  # noqa: E402

LAKE_STEPS = 60
OVEN_STEPS = 24
DESKTOP = {"viewport": {"width": 1280, "height": 900}}
PHONE = {
    "viewport": {"width": 390, "height": 664},  # what the bars of a browser leave
    "device_scale_factor": 2,
    "is_mobile": True,
    "has_touch": True,
}
TIMEOUT = 600_000  # milliseconds

OVEN = """
[domain]
box.temperature_C = [150, 260]
box.minutes = {integer = [5, 60]}
box.load_kg = [0.5, 4]
box.mode = ["fan", "static", "steam"]
[goal]
maximize = true
[run]
regret = 0.3
budget = 60
"""
BANDS = """
[domain]
grid = {east_m = [0, 100, 41], north_m = [0, 60, 25]}
[goal]
level_set = [2, 4, 6]
[model]
kernel = "matern52"
lengthscales = [25, 18]
variance = 4.0
mean = 4.0
[noise]
variance = 0.01
[run]
f1 = 0.95
"""


@dataclass(frozen=True)
class Picture:
    """One picture of the page.

    Attributes:
        study: Study that it needs; None: none.
        take: Brings a page to what is shown, given the address of the server.
        device: Options of the browser.
        dark: Whether the theme is dark.
        part: Selector of the part that is shown; None: the window.
        whole: Whether the whole page is shown, not only what fits into the window.
        guarded: Whether the server needs a token.
    """

    study: str | None
    take: Callable[[Any, str], None]
    device: Mapping[str, Any] = field(default_factory=lambda: DESKTOP)
    dark: bool = False
    part: str | None = None
    whole: bool = False
    guarded: bool = False

    def variants(self, name: str) -> dict[str, Picture]:
        """Return the picture on both devices in both themes, by name."""
        devices = {"wide": DESKTOP, "phone": PHONE}
        themes = {"light": False, "dark": True}
        return {
            f"{name}-{device}-{theme}": replace(self, device=options, dark=dark)
            for device, options in devices.items()
            for theme, dark in themes.items()
        }

    def save(self, browser: Any, url: str, path: Path) -> None:
        context = browser.new_context(**self.device, color_scheme="dark" if self.dark else "light")
        context.set_default_timeout(TIMEOUT)
        page = context.new_page()
        self.take(page, url)
        page.wait_for_timeout(400)
        # The header would cover a part that is taller than the window.
        page.evaluate("document.querySelector('.top').style.position = 'static'")
        page.evaluate("scrollTo(0, 0)")
        if self.part is not None:
            page.locator(self.part).screenshot(path=path)
        else:
            page.screenshot(path=path, full_page=self.whole)
        context.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="take the pictures whose names contain this")
    parser.add_argument(
        "--folder", type=Path, default=ROOT / "docs" / "images", help="where to put them"
    )
    parser.add_argument(
        "--everything", action="store_true", help="take all on both devices in both themes"
    )
    arguments = parser.parse_args()
    pictures = {name: picture for name, picture in PICTURES.items() if arguments.only in name}
    if arguments.everything:
        distinct = {
            (picture.study, picture.take, picture.part): (name, picture)
            for name, picture in reversed(pictures.items())
        }
        pictures = {}
        for name, picture in distinct.values():
            pictures |= picture.variants(name)
    arguments.folder.mkdir(parents=True, exist_ok=True)
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    with (
        tempfile.TemporaryDirectory() as folder,
        server(f"sqlite:///{folder}/lake.db") as url,
        server(
            f"sqlite:///{folder}/guarded.db", environment={"TRUVAR_TOKEN": "t" * 20}
        ) as guarded_url,
    ):
        _make_studies(url, {picture.study for picture in pictures.values()})
        with sync_playwright() as tool:
            browser = tool.chromium.launch(
                executable_path=chromium, args=["--no-sandbox", "--disable-gpu"]
            )
            for name, picture in pictures.items():
                path = arguments.folder / f"{name}.png"
                picture.save(browser, guarded_url if picture.guarded else url, path)
                print(path)
            browser.close()


def _make_studies(url: str, wanted: set[str | None]) -> None:
    rng = np.random.default_rng(0)
    service = Server(url)
    if "lake" in wanted:
        study = service.create(ROOT / "examples" / "lake.toml")
        truth = study.domain.column("chlorophyll")
        for _ in range(LAKE_STEPS):
            suggestion = study.ask()
            study.tell(
                suggestion,
                float(truth[suggestion.index] + rng.normal(0, np.sqrt(suggestion.noise))),
            )
        study.ask(2)
    if "oven" in wanted:
        study = service.create(OVEN, name="oven")
        for _ in range(OVEN_STEPS):
            suggestion = study.ask()
            study.tell(suggestion, _oven(suggestion.point) + rng.normal(0, 0.1))
        study.ask()
    if "bands" in wanted:
        study = service.create(BANDS, name="bands")
        for k in range(22):
            suggestion = study.ask()
            if k in (6, 13):
                study.fail(suggestion, "no signal")
                continue
            x = suggestion.point["east_m"] / 30
            y = suggestion.point["north_m"] / 22
            study.tell(suggestion, float(4 + 2.6 * np.sin(x) * np.cos(y)))
        study.exclude({"east_m": (70, 100), "north_m": (0, 12)}, "under the jetty")
        study.ask()


def _oven(point: dict[str, Any]) -> float:
    """Return the quality of a bake, at best 10."""
    mode = {"fan": 0.0, "static": -0.8, "steam": -0.3}[point["mode"]]
    warmth = -(((point["temperature_C"] - 205) / 30) ** 2)
    time = -(((point["minutes"] - 22 - 4 * point["load_kg"]) / 14) ** 2)
    return float(10 + mode + warmth + time)


def _study(name: str, tab: str | None = None) -> Callable[[Any, str], None]:
    def take(page: Any, url: str) -> None:
        page.goto(f"{url}/#/study/{name}")
        page.locator(".measurements tbody tr").first.wait_for()
        if tab is not None:
            page.get_by_role("tab", name=tab).click()
        page.locator(
            ".panel:not([hidden]) .plot svg > *, .panel:not([hidden]) .bar"
        ).first.wait_for(state="attached")
        page.locator(".progress [aria-busy]").wait_for(state="detached")
        page.wait_for_timeout(500)

    return take


def _classes(name: str) -> Callable[[Any, str], None]:
    def take(page: Any, url: str) -> None:
        _study(name)(page, url)
        page.get_by_text("Classes", exact=True).click()

    return take


def _log_in(page: Any, url: str) -> None:
    page.goto(url)
    page.get_by_label("Token").wait_for()


def _offline(page: Any, url: str) -> None:
    """Enter a value without a network, and open the page again."""
    _STUDY_BANDS(page, url)
    page.evaluate("navigator.serviceWorker.ready.then(() => null)")
    # The value must not arrive: the next picture needs its suggestion.
    page.context.route("**/tell", lambda route: route.abort())
    page.context.set_offline(True)
    page.locator("#offline").wait_for()
    card = page.locator(".suggestion").first
    card.get_by_label("Measured value").fill("4.2")
    card.get_by_role("button", name="Save").click()
    page.get_by_text("1 value kept in this browser").wait_for()
    page.reload()
    page.locator(".suggestion", has_text="Waits to be sent").wait_for()


def _region(page: Any, url: str) -> None:
    """Draw a region on the map."""
    _STUDY_BANDS(page, url)
    page.locator(".region summary").click()
    page.get_by_text("Lasso", exact=True).click()
    plot = page.locator(".map .plot").first
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    corners = [(0.3, 0.3), (0.5, 0.22), (0.62, 0.4), (0.55, 0.62), (0.4, 0.58), (0.3, 0.45)]
    for k, (across, down) in enumerate(corners):
        page.mouse.move(box["x"] + across * box["width"], box["y"] + down * box["height"], steps=6)
        if k == 0:
            page.mouse.down()
    page.mouse.up()


def _not_measured(page: Any, url: str) -> None:
    _STUDY_BANDS(page, url)
    page.locator(".suggestion summary").first.click()


def _new_study(page: Any, url: str) -> None:
    page.goto(f"{url}/#/new")
    page.locator(".drop input").set_input_files(ROOT / "examples" / "lake.csv")
    page.get_by_label("chlorophyll").select_option("unused")
    page.get_by_label("Find").select_option("level_set")
    page.get_by_label("Threshold").fill("7")
    page.get_by_label("Budget").fill("12000")
    page.locator(".preview .facts dt").first.wait_for()
    page.wait_for_timeout(1_500)


_STUDY_BANDS = _study("bands")
_STUDY_LAKE = _study("lake")
ANALYSIS = ".progress"  # selector of the card with the tabs
PICTURES = {
    "page": Picture("lake", _STUDY_LAKE),
    "page-dark": Picture("lake", _STUDY_LAKE, dark=True),
    "page-phone": Picture("lake", _STUDY_LAKE, PHONE),
    "page-phone-dark": Picture("lake", _STUDY_LAKE, PHONE, dark=True),
    "page-login-phone": Picture(None, _log_in, PHONE, guarded=True),
    "page-offline-phone": Picture("bands", _offline, PHONE),
    "page-region-phone": Picture("bands", _region, PHONE, part=".map"),
    "page-not-measured-phone": Picture("bands", _not_measured, PHONE, part=".suggestion"),
    "page-bands": Picture("bands", _classes("bands")),
    "page-convergence": Picture("oven", _study("oven"), part=ANALYSIS),
    "page-slices": Picture("oven", _study("oven", "Slices"), part=ANALYSIS),
    "page-importance": Picture("oven", _study("oven", "Importance"), part=ANALYSIS),
    "page-model-check": Picture("lake", _study("lake", "Model check"), part=ANALYSIS),
    "page-new": Picture(None, _new_study, whole=True),
}


if __name__ == "__main__":
    main()
