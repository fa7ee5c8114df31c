"""What MkDocs does to the pages: the help of every command, and docstrings that hold aligned lists.

A docstring of this project lists what there is to say of each name as `name   what it is`, aligned; Markdown would run
the lines together, so they become a table.
"""

from __future__ import annotations

import argparse
import os
import re
from typing import Any

import griffe

from truvar.cli import COMMANDS, parser

COMMANDS_HERE = "<!-- the help of every command -->"
ENTRY = re.compile(r"^(?P<names>[A-Za-z_][\w, /.*=|()\"]*?) {2,}(?P<said>\S.*)$")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Puts the help of every command where a page asks for it."""
    if COMMANDS_HERE not in markdown:
        return markdown
    return markdown.replace(COMMANDS_HERE, "\n\n".join(_help_of(command.name) for command in COMMANDS))


def _help_of(name: str) -> str:
    os.environ["COLUMNS"] = "96"  # the width that argparse writes for
    (subparsers,) = (action for action in parser()._actions if isinstance(action, argparse._SubParsersAction))
    text = subparsers.choices[name].format_help()
    return f"### `truvar {name}` {{ #{name} }}\n\n```text\n{text.rstrip()}\n```"


def on_config(config: Any) -> Any:
    """Adds the extension that reads docstrings."""
    options = config.plugins["mkdocstrings"].config.handlers["python"]["options"]
    options["extensions"] = [AlignedLists()]
    return config


class AlignedLists(griffe.Extension):
    """Turns the aligned lists of docstrings into tables."""

    def on_instance(self, *, obj: Any, **_: Any) -> None:
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
