"""Prints the technical note as a PDF: `python docs/note.py [FILE]` (needs Markdown, playwright and
Chromium).

The page is `docs/note.md`, which the site shows too. A link to another page becomes the name of its
file, as a printed page has nothing to follow a link with.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import markdown
from playwright.sync_api import sync_playwright

DOCS = Path(__file__).resolve().parent
PAGE = DOCS / "note.md"
TARGET = DOCS.parent / "build" / "note.pdf"
EXTENSIONS = ["tables", "attr_list"]
LINK_TO_PAGE = re.compile(r'<a href="(?!https?:)([^"#]*\.md)[^"]*">(.*?)</a>', re.S)
STYLE = """
@page { size: A4; margin: 22mm 24mm 20mm; }
body { font: 9.7pt/1.38 "STIX Two Text", "Libertinus Serif", "Times New Roman", serif; margin: 0; color: #111; }
p { margin: 0 0 2.2mm; text-align: justify; hyphens: auto; }
h1 { font-size: 19pt; text-align: center; margin: 0 0 4mm; }
h1 + p { text-align: center; }
h2 { font-size: 12.5pt; margin: 6mm 0 2mm; break-after: avoid; }
h3 { font-size: 11pt; margin: 4mm 0 1.5mm; break-after: avoid; }
sub, sup { font-size: 0.72em; line-height: 0; }
code { font: 0.84em "DejaVu Sans Mono", "Liberation Mono", monospace; overflow-wrap: anywhere; }
p.eq { position: relative; margin: 3mm 12mm; text-align: center; break-inside: avoid; break-before: avoid; }
p.eq span { position: absolute; right: -12mm; }
img { display: block; max-width: 100%; max-height: 74mm; margin: 2mm auto 1mm; }
p:has(> img) { break-after: avoid; break-inside: avoid; margin: 0; }
p:has(> img) + p { text-align: center; }
table { border-collapse: collapse; margin: 2.5mm auto 3.5mm; font-size: 0.92em; break-inside: avoid; }
thead { border-top: 0.8pt solid; border-bottom: 0.5pt solid; }
tbody { border-bottom: 0.8pt solid; }
th, td { padding: 0.5mm 2.6mm; text-align: left; vertical-align: top; }
td:first-child { white-space: nowrap; }
li { margin-bottom: 1mm; }
"""
FOOTER = '<div style="width: 100%; text-align: center; font-size: 8pt"><span class="pageNumber"></span></div>'


def html() -> str:
    """Return the note as its own page."""
    body = markdown.markdown(PAGE.read_text(encoding="utf-8"), extensions=EXTENSIONS)
    body = LINK_TO_PAGE.sub(r"\2 in <code>docs/\1</code>", body)
    title = PAGE.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><base '
        f'href="{DOCS.as_uri()}/">'
        f"<title>{title}</title><style>{STYLE}</style></head><body>{body}</body></html>"
    )


def build(target: Path) -> None:
    """Write the note as a PDF.

    Raises:
        SystemExit: If Chromium is not installed.
    """
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        raise SystemExit(
            "the note is printed by Chromium, which was not found; install it: apt install chromium"
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    source = target.with_suffix(
        ".html"
    )  # a file, so that Chromium may read the pictures beside the page
    source.write_text(html(), encoding="utf-8")
    with sync_playwright() as tool:
        browser = tool.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page()
        page.goto(source.resolve().as_uri(), wait_until="load")
        page.pdf(
            path=target,
            prefer_css_page_size=True,
            display_header_footer=True,
            header_template="<span></span>",
            footer_template=FOOTER,
        )
        browser.close()


if __name__ == "__main__":
    build(Path(sys.argv[1]) if len(sys.argv) > 1 else TARGET)
    print(sys.argv[1] if len(sys.argv) > 1 else TARGET)
