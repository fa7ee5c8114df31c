"""Takes the pictures of the page for README and docs: `python docs/screenshot.py` (needs Chromium
and playwright).

A server of its own is started, studies are run on it, and the page is photographed: on a desktop
(1280 pixels wide) and a phone (390), light and dark. `--only NAME` takes the pictures whose names
contain NAME, `--folder DIR` puts them elsewhere.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
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
    "viewport": {"width": 390, "height": 844},
    "device_scale_factor": 2,
    "is_mobile": True,
    "has_touch": True,
}
TIMEOUT = 120_000  # milliseconds

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
    """

    study: str | None
    take: Callable[[Any, str], None]
    device: Mapping[str, Any] = field(default_factory=lambda: DESKTOP)
    dark: bool = False
    part: str | None = None
    whole: bool = False

    def save(self, browser: Any, url: str, path: Path) -> None:
        context = browser.new_context(**self.device, color_scheme="dark" if self.dark else "light")
        context.set_default_timeout(TIMEOUT)
        page = context.new_page()
        self.take(page, url)
        page.wait_for_timeout(400)
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
    arguments = parser.parse_args()
    pictures = {name: picture for name, picture in PICTURES.items() if arguments.only in name}
    arguments.folder.mkdir(parents=True, exist_ok=True)
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    with tempfile.TemporaryDirectory() as folder, server(f"sqlite:///{folder}/lake.db") as url:
        _make_studies(url, {picture.study for picture in pictures.values()})
        with sync_playwright() as tool:
            browser = tool.chromium.launch(
                executable_path=chromium, args=["--no-sandbox", "--disable-gpu"]
            )
            for name, picture in pictures.items():
                path = arguments.folder / f"{name}.png"
                picture.save(browser, url, path)
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


def _new_study(page: Any, url: str) -> None:
    page.goto(f"{url}/#/new")
    page.locator(".drop input").set_input_files(ROOT / "examples" / "lake.csv")
    page.get_by_label("chlorophyll").select_option("unused")
    page.get_by_label("Find").select_option("level_set")
    page.get_by_label("Threshold").fill("7")
    page.get_by_label("Budget").fill("12000")
    page.locator(".preview .facts dt").first.wait_for()
    page.wait_for_timeout(1_500)


ANALYSIS = ".progress"  # selector of the card with the tabs
PICTURES = {
    "page": Picture("lake", _study("lake")),
    "page-dark": Picture("lake", _study("lake"), dark=True),
    "page-phone": Picture("lake", _study("lake"), PHONE),
    "page-phone-dark": Picture("lake", _study("lake"), PHONE, dark=True),
    "page-bands": Picture("bands", _classes("bands")),
    "page-convergence": Picture("oven", _study("oven"), part=ANALYSIS),
    "page-slices": Picture("oven", _study("oven", "Slices"), part=ANALYSIS),
    "page-importance": Picture("oven", _study("oven", "Importance"), part=ANALYSIS),
    "page-model-check": Picture("lake", _study("lake", "Model check"), part=ANALYSIS),
    "page-new": Picture(None, _new_study, whole=True),
}


if __name__ == "__main__":
    main()
