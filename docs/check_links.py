"""Check the built site: every link within it leads somewhere, and every page fits a phone.

    python docs/check_links.py [site]

Addresses of other sites are not followed. On a phone, 390 pixels wide, no page may be wider than the
screen, no link may lie outside of it unless its table or code scrolls, and all pictures must load.
This needs playwright and Chromium, and is left out without them.
"""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ATTRIBUTES = ("href", "src")  # that lead somewhere
NOT_PAGES = {"404.html"}  # its addresses are those of a server's root
PHONE = {"width": 390, "height": 844}  # pixels
# Width of the page, links outside of the screen that no scrolling brings in, pictures that are missing.
MEASURE = """() => {
  const scrolls = (e) => e && (["auto", "scroll"].includes(getComputedStyle(e).overflowX) || scrolls(e.parentElement));
  const outside = [...document.querySelectorAll("article a[href], main a[href]")].filter(
    (a) => a.getBoundingClientRect().right > innerWidth + 1 && !scrolls(a.parentElement));
  const missing = [...document.images].filter((i) => i.complete && i.naturalWidth === 0);
  return [document.documentElement.scrollWidth, outside.map((a) => a.textContent), missing.map((i) => i.src)];
}"""


@dataclass
class _Page(HTMLParser):
    """Links and anchors of a page."""

    links: list[str] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ATTRIBUTES and value:
                self.links.append(value)
            elif name in ("id", "name") and value:
                self.anchors.add(value)


@cache
def _read(path: Path) -> _Page:
    page = _Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def dead_links(site: Path) -> list[str]:
    """Return one line for each dead link of a built site: the page, the link and the reason."""
    dead = []
    for path in sorted(site.rglob("*.html")):
        if path.name in NOT_PAGES:
            continue
        for link in dict.fromkeys(_read(path).links):
            reason = _reason(path, link)
            if reason is not None:
                dead.append(f"{path.relative_to(site)}: {link}: {reason}")
    return dead


def _reason(page: Path, link: str) -> str | None:
    """Return the reason for which a link of a page is dead; None if it is not."""
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return None
    target = page
    if parts.path:
        target = (page.parent / unquote(parts.path)).resolve()
    if target.is_dir():
        target = target / "index.html"
    if not target.is_file():
        return "no such file"
    if not parts.fragment or target.suffix != ".html":
        return None
    anchor = unquote(parts.fragment)
    known = anchor in _read(target).anchors or anchor.startswith("__")
    return None if known else "no such anchor"


def misfits_on_a_phone(site: Path, chromium: str) -> list[str]:
    """Return one line for each page that does not fit a phone.

    Args:
        site: Folder of the built site.
        chromium: Path of Chromium.
    """
    from playwright.sync_api import sync_playwright

    found = []
    with sync_playwright() as tool:
        browser = tool.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(viewport=PHONE)
        for path in sorted(site.rglob("*.html")):
            if path.name in NOT_PAGES:
                continue
            page.goto(path.as_uri())
            width, outside, missing = page.evaluate(MEASURE)
            name = path.relative_to(site)
            if width > PHONE["width"]:
                found.append(f"{name}: {width} pixels wide on a phone of {PHONE['width']}")
            found += [f"{name}: link outside of a phone's screen: {text}" for text in outside]
            found += [f"{name}: picture does not load: {source}" for source in missing]
        browser.close()
    return found


def _chromium() -> str | None:
    """Return the path of Chromium; None where it cannot be driven."""
    try:
        import playwright  # noqa: F401
    except ImportError:
        return None
    return shutil.which("chromium") or shutil.which("chromium-browser")


def main() -> int:
    """Print the dead links of the site and the pages too wide for a phone; return 1 if there are any."""
    site = Path(sys.argv[1] if len(sys.argv) > 1 else "site").resolve()
    count = sum(1 for _ in site.rglob("*.html"))
    if count == 0:
        print(f"no pages in {site}; build them: make docs", file=sys.stderr)
        return 1
    dead = dead_links(site)
    for line in dead:
        print(line)
    print(f"{len(dead)} dead links on {count} pages")
    chromium = _chromium()
    if chromium is None:
        print("not tried on a phone: it needs playwright and Chromium")
        return 1 if dead else 0
    misfits = misfits_on_a_phone(site, chromium)
    for line in misfits:
        print(line)
    print(f"{len(misfits)} misfits on a phone, {PHONE['width']} pixels wide")
    return 1 if dead or misfits else 0


if __name__ == "__main__":
    sys.exit(main())
