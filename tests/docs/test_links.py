"""Links of the documentation lead somewhere: in its pages, and in the site that is built of them."""

from __future__ import annotations

import re
import shutil
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from docs.check_links import dead_links, misfits_on_a_phone
from docs.command_help import COMMANDS_HERE, add_commands
from docs.pages import ROOT, pages

from truvar.cli import COMMANDS

LINK = re.compile(r"(?<!\!)\[[^\]]*\]\(([^)\s]+)\)")
GENERATED = {"python.md"}  # its headings are those of the docstrings


def without_code(text: str) -> str:
    return re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.S)


@cache
def anchors(page: Path) -> set[str]:
    markdown = pytest.importorskip("markdown", reason="needs Markdown: pip install truvar[test]")
    extensions = ["attr_list", "fenced_code", "md_in_html", "tables", "toc"]
    text = add_commands(page.read_text(encoding="utf-8"))
    html = markdown.Markdown(extensions=extensions).convert(text)
    return set(re.findall(r'\bid="([^"]+)"', html))


def dead_links_of(page: Path) -> list[str]:
    dead = []
    for link in LINK.findall(without_code(page.read_text(encoding="utf-8"))):
        parts = urlsplit(link)
        if parts.scheme:
            continue
        target = (page.parent / parts.path).resolve() if parts.path else page
        if not target.exists() or (
            parts.fragment
            and target.name not in GENERATED
            and parts.fragment not in anchors(target)
        ):
            dead.append(link)
    return dead


def test_every_link_of_every_page_leads_to_a_file_and_a_heading() -> None:
    dead = {str(page.relative_to(ROOT)): dead_links_of(page) for page in pages()}
    assert {page: links for page, links in dead.items() if links} == {}


def test_a_dead_link_of_a_page_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# One\n\n[a](#one) [b](#two) [c](gone.md) [d](https://example.org) `[e](x.md)`\n"
    )
    assert dead_links_of(page) == ["#two", "gone.md"]


def test_dead_links_of_a_built_site_are_found(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "index.html").write_text(
        '<h1 id="top">x</h1><a href="sub/page.html#there">1</a><a href="sub/page.html#gone">2</a>'
        '<a href="missing.html">3</a><a href="https://example.org/none">4</a><img src="no.png">'
        '<a href="#top">5</a>'
    )
    (tmp_path / "sub" / "page.html").write_text(
        '<p id="there"><a href="../index.html#top">x</a></p>'
    )
    assert dead_links(tmp_path) == [
        "index.html: sub/page.html#gone: no such anchor",
        "index.html: missing.html: no such file",
        "index.html: no.png: no such file",
    ]


def test_pages_that_do_not_fit_a_phone_are_found(tmp_path: Path) -> None:
    pytest.importorskip("playwright", reason="needs playwright: pip install truvar[docs]")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("needs Chromium: apt install chromium")
    scrolled = '<div style="overflow-x: auto"><div style="width: 700px">code</div></div>'
    (tmp_path / "fits.html").write_text(f'<main>{scrolled}<a href="fits.html">x</a></main>')
    (tmp_path / "wide.html").write_text('<div style="width: 700px">x</div><img src="no.png">')
    hidden = '<a href="fits.html" style="position: absolute; left: 500px">out</a>'
    (tmp_path / "link.html").write_text(
        f'<body style="overflow-x: hidden; margin: 0"><main>{hidden}</main></body>'
    )
    found = misfits_on_a_phone(tmp_path, chromium)
    assert [line.split(":")[0] for line in found] == ["link.html", "wide.html", "wide.html"]
    assert "700" in found[1] or "708" in found[1]


def test_the_markdown_extension_adds_the_help_of_every_command() -> None:
    markdown = pytest.importorskip("markdown", reason="needs Markdown: pip install truvar[test]")
    html = markdown.markdown(
        COMMANDS_HERE, extensions=["attr_list", "fenced_code", "docs.command_help"]
    )
    assert [command.name for command in COMMANDS if f'<h3 id="{command.name}">' not in html] == []
