"""The HTML report: one file that needs nothing else, in which nothing of the user's is more than text."""

from __future__ import annotations

import base64
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import RBF

import truvar as tv
from truvar.report.html_report import render_html_report, write_html_report

EVIL = "<script>alert('1')</script> & $\\foo$ \"quoted\""


def a_study(dimensions: int = 2, goal=None, name: str = "lake", steps: int = 4, **given) -> tv.Study:
    rng = np.random.default_rng(1)
    columns = ["distance_m", "depth_m", "hour"][:dimensions]
    points = pd.DataFrame(rng.uniform(0, 1, (40, dimensions)), columns=columns)
    domain = tv.Domain.table(points)
    settings = {"kernel": RBF(0.4), "mean": 0.0, "noise": 0.01, "limits": {"budget": 90}} | given
    study = tv.Study(domain, goal or tv.LevelSet(0.3), name=name, **settings)
    for _ in range(steps):
        suggestion = study.ask()
        study.tell(suggestion, float(np.sin(3 * suggestion.point["distance_m"])))
    return study


class Reader(HTMLParser):
    """The tags of a page with their attributes, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("dimensions", [1, 2, 3])
@pytest.mark.parametrize("goal", [tv.LevelSet(0.3), tv.Maximize(), tv.LevelSet(fraction_of_max=0.8)])
def test_it_is_whole_in_every_dimension(dimensions: int, goal) -> None:
    study = a_study(dimensions, goal)
    study.ask(2)
    study.note("clouds")
    seen = Reader(render_html_report(study))
    for part in (
        study.result().certificate.statement,
        "To be measured",
        "Measurements",
        "Settings",
        "clouds",
        "engine",
    ):
        assert part in seen.text
    pictures = [attributes["src"] for tag, attributes in seen.tags if tag == "img"]
    assert len(pictures) == (4 if dimensions == 2 else 3)
    for source in pictures:
        head, _, data = source.partition(",")
        assert head == "data:image/svg+xml;base64"
        assert b"<svg" in base64.b64decode(data)


def test_it_needs_nothing_from_elsewhere_and_runs_nothing() -> None:
    text = render_html_report(a_study())
    seen = Reader(text)
    assert {tag for tag, _ in seen.tags}.isdisjoint({"script", "link", "iframe", "object", "embed", "form", "a"})
    for _, attributes in seen.tags:
        assert all(not name.startswith("on") for name in attributes)
        assert all((attributes.get(name) or "data:").startswith("data:") for name in ("src", "href"))
    outside = re.sub(r"data:image/svg\+xml;base64,[A-Za-z0-9+/=]+", "", text)
    assert "http://" not in outside
    assert "https://" not in outside
    assert "url(" not in outside
    assert "default-src 'none'" in outside


def test_what_the_user_gave_is_text() -> None:
    domain = tv.Domain.grid(**{EVIL: np.linspace(0, 1, 8)})
    tasks = tv.Tasks([[1.0, 0.5], [0.5, 1.0]], names=["<b>bold</b>", "<i>proxy</i>"], noise=[0.01, 0.02], cost=[2, 1])
    study = tv.Study(domain, tv.Maximize(), kernel=RBF(0.3), mean=0.0, noise=0.01, tasks=tasks, name=EVIL, who=EVIL)
    for _ in range(3):
        study.tell(study.ask(), 0.5)
    study.ask()
    study.note(EVIL)
    text = render_html_report(study)
    seen = Reader(text)
    assert "<script" not in text
    assert "<b>bold" not in text
    assert "<i>proxy" not in text
    assert seen.text.count(EVIL) >= 4  # title, head, journal, settings


def test_the_same_study_gives_the_same_file_and_an_empty_one_gives_one_too(tmp_path: Path) -> None:
    study = a_study()
    assert render_html_report(study) == render_html_report(study)
    empty = a_study(steps=0)
    assert "None so far" in write_html_report(empty, tmp_path / "empty.html").read_text()
    with pytest.raises(tv.TruvarError, match="cannot be written"):
        write_html_report(empty, tmp_path)


@pytest.mark.skipif(shutil.which("chromium") is None, reason="no chromium here")
def test_nothing_sticks_out_on_a_phone(tmp_path: Path) -> None:
    playwright = pytest.importorskip("playwright.sync_api")
    path = write_html_report(a_study(3, name="a-very-long-name-" * 9), tmp_path / "page.html")
    with playwright.sync_playwright() as p:
        browser = p.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"])
        for width in (360, 1280):
            shown = browser.new_page(viewport={"width": width, "height": 800})
            problems: list[str] = []
            shown.on("console", lambda message, problems=problems: problems.append(message.text))
            shown.on("request", lambda asked, problems=problems: problems.append(asked.url[:50]))
            shown.goto(path.as_uri())
            wide = shown.evaluate("document.documentElement.scrollWidth")
            loaded = shown.evaluate("[...document.images].every(image => image.complete && image.naturalWidth > 0)")
            elsewhere = [one for one in problems if not one.startswith(("file:", "data:"))]
            assert (wide, loaded, elsewhere) == (width, True, [])
        browser.close()
