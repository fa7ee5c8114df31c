"""Take pictures of the report and of the live map: `python docs/report_pictures.py` (needs Chromium
and playwright).

The study is one of the simulated lake of `examples/lake.toml`.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import sync_playwright

import truvar as tv
from truvar.notebook import _code, _view
from truvar.report.html_report import write_html_report

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
STEPS = 40
DESKTOP = {"width": 1100, "height": 1000}  # pixels
PHONE = {"width": 390, "height": 1500}  # pixels
CELL = {"width": 860, "height": 560}  # pixels


def lake_study() -> tv.Study:
    """Return a study of the lake after some measurements."""
    problem = tv.load_problem(ROOT / "examples" / "lake.toml")
    truth = problem.domain.column("chlorophyll")
    study = problem.study()
    rng = np.random.default_rng(0)
    for _ in range(STEPS):
        suggestion = study.ask()
        study.tell(
            suggestion, float(truth[suggestion.index] + rng.normal(0, np.sqrt(suggestion.noise)))
        )
    study.ask(2)
    return study


def cell_html(study: tv.Study) -> str:
    """Return a page that shows the live map as a notebook does."""
    return f"""<!doctype html><meta charset="utf-8"><body style="background:#111"><div id="cell"></div>
<script id="view" type="application/json">{_view(study).replace("<", "&lt;")}</script>
<script type="module">{_code().replace("export default", "const widget =")}
const model = {{
  get: (name) => (name === "theme" ? "dark" : document.getElementById("view").textContent),
  on: () => {{}}, off: () => {{}}, send: () => {{}},
}};
widget.render({{ model, el: document.getElementById("cell") }});
</script>"""


def take(browser: Any, path: Path, name: str, size: dict[str, int], scheme: str) -> None:
    """Take the picture of a page."""
    page = browser.new_page(viewport=size, color_scheme=scheme)
    page.goto(path.as_uri())
    page.wait_for_timeout(700)
    page.screenshot(path=IMAGES / name)
    page.close()


def main() -> None:
    study = lake_study()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as tool:
        report = write_html_report(study, Path(folder) / "lake.html")
        cell = Path(folder) / "cell.html"
        cell.write_text(cell_html(study), encoding="utf-8")
        chromium = shutil.which("chromium") or shutil.which("chromium-browser")
        browser = tool.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-gpu"]
        )
        take(browser, report, "report.png", DESKTOP, "light")
        take(browser, report, "report-phone.png", PHONE, "dark")
        take(browser, cell, "live-map.png", CELL, "dark")
        browser.close()


if __name__ == "__main__":
    main()
