"""What MkDocs adds to the pages: the help of every command."""

from __future__ import annotations

import argparse
import os
from typing import Any

from truvar.cli import COMMANDS, parser

COMMANDS_HERE = "<!-- the help of every command -->"


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
