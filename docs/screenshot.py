"""Takes the picture of the page for the README: `python docs/screenshot.py` (needs Chromium and playwright).

A server of its own is started, a study of the simulated lake is run on it, and the page is photographed.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.service import server  # noqa: E402

from truvar.service import Server  # noqa: E402

STEPS = 70
SIZE = {"width": 1240, "height": 900}


def main() -> None:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder, server(f"sqlite:///{folder}/lake.db") as url:
        study = Server(url).create(ROOT / "examples" / "lake.toml")
        truth = study.domain.column("chlorophyll")
        for _ in range(STEPS):
            suggestion = study.ask()
            study.tell(suggestion, float(truth[suggestion.index] + rng.normal(0, np.sqrt(suggestion.noise))))
        study.ask(2)
        with sync_playwright() as tool:
            browser = tool.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
            page = browser.new_page(viewport=SIZE)
            page.goto(f"{url}/#/study/lake")
            page.locator(".measurements tbody tr").first.wait_for(timeout=60_000)
            page.wait_for_timeout(500)
            page.screenshot(path=ROOT / "docs" / "images" / "page.png")
            browser.close()


if __name__ == "__main__":
    main()
