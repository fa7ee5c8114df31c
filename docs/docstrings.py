"""Docstrings as the reference shows them.

A docstring of this project lists what there is to say of each name as `name   what it is`, aligned; Markdown would run
the lines together, so they become a table.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

ENTRY = re.compile(r"^(?P<names>[A-Za-z_][\w, /.*=|()\"]*?) {2,}(?P<said>\S.*)$")


class AlignedLists(griffe.Extension):
    """Turns the aligned lists of docstrings into tables."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        if getattr(obj, "docstring", None) is not None:
            obj.docstring.value = as_tables(obj.docstring.value)


def as_tables(text: str) -> str:
    """The docstring with each aligned list of two entries or more as a Markdown table."""
    done: list[str] = []
    for paragraph in re.split(r"\n\s*\n", text):
        rows: list[list[str]] = []
        for line in paragraph.splitlines():
            entry = ENTRY.match(line)
            if entry:
                rows.append([entry["names"], entry["said"]])
            elif rows and line.startswith("    "):
                rows[-1][1] += " " + line.strip()
            else:
                rows = []
                break
        if len(rows) > 1:
            cells = ((_code(names), said.replace("|", "\\|")) for names, said in rows)
            paragraph = "\n".join(["| | |", "|---|---|", *(f"| {names} | {said} |" for names, said in cells)])
        done.append(paragraph)
    return "\n\n".join(done)


def _code(names: str) -> str:
    return ", ".join(f"`{name.strip()}`" for name in names.split(","))
