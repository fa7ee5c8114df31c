"""MkDocs hooks: add the help of every command to the pages."""

from __future__ import annotations

import os
from typing import Any

from truvar.cli import COMMANDS, command_help
from truvar.cli._common import Command

COMMANDS_HERE = "<!-- the help of every command -->"


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Puts the help of every command where a page asks for it."""
    if COMMANDS_HERE not in markdown:
        return markdown
    return markdown.replace(COMMANDS_HERE, "\n\n".join(_help_of(command) for command in COMMANDS))


def _help_of(command: Command) -> str:
    os.environ["COLUMNS"] = "96"  # the width that argparse writes for
    text = command_help(command)
    return f"### `truvar {command.name}` {{ #{command.name} }}\n\n```text\n{text.rstrip()}\n```"
