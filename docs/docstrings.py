"""Docstrings as the reference shows them.

A docstring of this project lists what there is to say of each name as `name   what it is`, aligned; Markdown would run
the lines together, so they become a table. So do the fields of a dataclass, with the comments behind them.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

ENTRY = re.compile(r"^(?P<names>[A-Za-z_][\w, /.*=|()\"]*?) {2,}(?P<said>\S.*)$")


class AlignedLists(griffe.Extension):
    """Turns the aligned lists of docstrings into tables, and the fields of dataclasses without such a list."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        if getattr(obj, "docstring", None) is None:
            return
        text = as_tables(obj.docstring.value)
        if text == obj.docstring.value and "dataclass" in obj.labels:
            text += fields(obj)
        obj.docstring.value = text


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


def fields(cls: Any) -> str:
    """The public fields of a dataclass as a Markdown table: name, type, and the comment on its line."""
    lines = cls.filepath.read_text(encoding="utf-8").splitlines()
    rows = []
    for name, field in cls.attributes.items():
        if "instance-attribute" not in field.labels or name.startswith("_"):
            continue
        said = lines[field.lineno - 1].partition("  # ")[2].replace("|", "\\|")
        rows.append(f"| `{name}` | `{field.annotation}` | {said} |")
    return "\n\n" + "\n".join(["| | | |", "|---|---|---|", *rows]) if rows else ""


def _code(names: str) -> str:
    return ", ".join(f"`{name.strip()}`" for name in names.split(","))
