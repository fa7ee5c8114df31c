"""Check the built site: every link within it leads to a file and an anchor that exist.

    python docs/check_links.py [site]

Addresses of other sites are not followed.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ATTRIBUTES = ("href", "src")  # that lead somewhere
NOT_PAGES = {"404.html"}  # its addresses are those of a server's root


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


def main() -> int:
    """Print the dead links of the site; return 1 if there is one."""
    site = Path(sys.argv[1] if len(sys.argv) > 1 else "site").resolve()
    count = sum(1 for _ in site.rglob("*.html"))
    if count == 0:
        print(f"no pages in {site}; build them: make docs", file=sys.stderr)
        return 1
    dead = dead_links(site)
    for line in dead:
        print(line)
    print(f"{len(dead)} dead links on {count} pages")
    return 1 if dead else 0


if __name__ == "__main__":
    sys.exit(main())
