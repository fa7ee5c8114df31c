"""The HTML report: one file that loads nothing else, and in which all user input is escaped."""

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
from truvar.exceptions import OutputError
from truvar.report.html_report import render_html_report, write_html_report

MALICIOUS = "<script>alert('1')</script> & $\\foo$ \"quoted\""


def new_study(dimensions: int = 2, goal=None, name: str = "lake", steps: int = 4) -> tv.Study:
    rng = np.random.default_rng(1)
    columns = ["distance_m", "depth_m", "hour"][:dimensions]
    points = pd.DataFrame(rng.uniform(0, 1, (40, dimensions)), columns=columns)
    domain = tv.Domain.table(points)
    settings = {"kernel": RBF(0.4), "mean": 0.0, "noise": 0.01, "limits": {"budget": 90}}
    study = tv.Study(domain, goal or tv.LevelSet(0.3), name=name, **settings)
    for _ in range(steps):
        suggestion = study.ask()
        study.tell(suggestion, float(np.sin(3 * suggestion.point["distance_m"])))
    return study


class ParsedPage(HTMLParser):
    """Tags of a page with their attributes, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize(
    ("dimensions", "goal"),
    [(1, tv.LevelSet(0.3)), (2, tv.Maximize()), (3, tv.LevelSet(fraction_of_max=0.8))],
)
def test_the_report_is_complete_for_every_goal_and_dimension(dimensions: int, goal) -> None:
    study = new_study(dimensions, goal)
    study.ask(2)
    study.note("clouds")
    page = ParsedPage(render_html_report(study))
    for part in (
        study.result().certificate.statement,
        "Pending suggestions",
        "Measurements",
        "Settings",
        "clouds",
    ):
        assert part in page.text
    assert "engine" in ParsedPage(render_html_report(study, theorem=True)).text
    images = [attributes["src"] for tag, attributes in page.tags if tag == "img"]
    assert len(images) == (2 if dimensions == 1 else 3)
    for source in images:
        prefix, _, data = source.partition(",")
        assert prefix == "data:image/svg+xml;base64"
        assert b"<svg" in base64.b64decode(data)


def test_the_report_loads_nothing_and_has_no_script() -> None:
    text = render_html_report(new_study())
    page = ParsedPage(text)
    assert {tag for tag, _ in page.tags}.isdisjoint(
        {"script", "link", "iframe", "object", "embed", "form", "a"}
    )
    for _, attributes in page.tags:
        assert all(not name.startswith("on") for name in attributes)
        assert all(
            (attributes.get(name) or "data:").startswith("data:") for name in ("src", "href")
        )
    without_images = re.sub(r"data:image/svg\+xml;base64,[A-Za-z0-9+/=]+", "", text)
    assert "http://" not in without_images
    assert "https://" not in without_images
    assert "url(" not in without_images
    security_policy = [
        attributes["content"] for _, attributes in page.tags if "http-equiv" in attributes
    ]
    assert security_policy == ["default-src 'none'; img-src data:; style-src 'unsafe-inline'"]


def test_user_input_is_escaped() -> None:
    domain = tv.Domain.grid(**{MALICIOUS: np.linspace(0, 1, 8)})
    tasks = tv.Tasks(
        [[1.0, 0.5], [0.5, 1.0]],
        names=["<b>bold</b>", "<i>proxy</i>"],
        noise=[0.01, 0.02],
        cost=[2, 1],
    )
    study = tv.Study(
        domain,
        tv.Maximize(),
        kernel=RBF(0.3),
        mean=0.0,
        noise=0.01,
        tasks=tasks,
        name=MALICIOUS,
        author=MALICIOUS,
    )
    for _ in range(3):
        study.tell(study.ask(), 0.5)
    study.ask()
    study.note(MALICIOUS)
    text = render_html_report(study)
    page = ParsedPage(text)
    assert "<script" not in text
    assert "<b>bold" not in text
    assert "<i>proxy" not in text
    assert page.text.count(MALICIOUS) >= 4  # title, heading, history, settings


def test_equal_studies_give_equal_files_and_a_study_without_measurements_gives_one(
    tmp_path: Path,
) -> None:
    study = new_study()
    assert render_html_report(study) == render_html_report(study)
    empty = new_study(steps=0)
    assert "No measurements yet" in write_html_report(empty, tmp_path / "empty.html").read_text()
    with pytest.raises(OutputError, match="cannot write the report"):
        write_html_report(empty, tmp_path)


@pytest.mark.skipif(shutil.which("chromium") is None, reason="no chromium here")
def test_the_report_fits_the_width_of_a_phone(tmp_path: Path) -> None:
    playwright = pytest.importorskip("playwright.sync_api")
    path = write_html_report(new_study(3, name="a-very-long-name-" * 9), tmp_path / "page.html")
    with playwright.sync_playwright() as p:
        browser = p.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        for width in (360, 1280):
            page = browser.new_page(viewport={"width": width, "height": 800})
            messages: list[str] = []
            page.on("console", lambda message, messages=messages: messages.append(message.text))
            page.on("request", lambda request, messages=messages: messages.append(request.url[:50]))
            page.goto(path.as_uri())
            content_width = page.evaluate("document.documentElement.scrollWidth")
            loaded = page.evaluate(
                "[...document.images].every(image => image.complete && image.naturalWidth > 0)"
            )
            unexpected = [
                message for message in messages if not message.startswith(("file:", "data:"))
            ]
            assert (content_width, loaded, unexpected) == (width, True, [])
        browser.close()


def body_of(page: str) -> str:
    return page.partition("</style>")[2]


JARGON = r"\bregime\b|\bepsilon\b|ε|\bh = |posterior mean|\bengine\b|[Ll]emma|\bTheorem\b"


@pytest.mark.parametrize("goal", [tv.LevelSet(0.3), tv.Maximize(), tv.Map(accuracy=0.5)])
@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_the_report_speaks_without_terms_of_the_paper(dimensions: int, goal) -> None:
    study = new_study(dimensions, goal)
    page = ParsedPage(body_of(render_html_report(study)))
    assert re.search(JARGON, page.text) is None
    for tag, attributes in page.tags:
        if tag == "img":
            svg = base64.b64decode(attributes["src"].partition(",")[2]).decode()
            assert re.search(JARGON, re.sub(r"<[^>]*>", " ", svg)) is None
    assert re.search(JARGON, ParsedPage(body_of(render_html_report(study, theorem=True))).text)


def test_the_map_comes_first_and_the_measurements_last_and_folded() -> None:
    study = new_study(2, tv.LevelSet(0.3))
    study.ask()
    text = render_html_report(study)
    lead = text.index('<figure class="lead">')
    assert lead < text.index('<div class="tiles">') < text.index('<p class="statement">')
    table = text.index(f"<summary>Measurements ({study.steps})</summary>")
    for part in ("Pending suggestions", "<h2>Certificate</h2>", "<h2>Settings</h2>"):
        assert text.index(part) < table
    assert text[:table].rstrip().endswith("<details>")
    assert table < text.index("<footer>")


def test_measured_values_have_the_digits_that_their_noise_leaves() -> None:
    study = new_study(1, tv.Maximize(), steps=0)
    study.tell(study.domain.point(3), 0.123456789, noise=0.04)
    study.tell(study.domain.point(7), 0.123456789, noise=0.0)
    rows = re.findall(r"<td[^>]*>(0\.12\d*)</td>", render_html_report(study))
    assert rows == ["0.12", "0.123457"]
