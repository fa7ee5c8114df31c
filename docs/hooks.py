"""MkDocs hooks: add the commands and their help to the pages."""

from __future__ import annotations

import os
from typing import Any

from truvar.cli import COMMANDS, command_help
from truvar.cli._common import Command

COMMANDS_HERE = "<!-- the help of every command -->"
OTHERS_HERE = "<!-- a row for every other command -->"


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Puts the help of every command, and rows for those not named, where a page asks for it."""
    if COMMANDS_HERE not in markdown:
        return markdown
    others = [command for command in COMMANDS if f"`{command.name}`" not in markdown]
    rows = [f"| `{command.name}` | {command.help} |" for command in others]
    helps = [_help_of(command) for command in COMMANDS]
    return markdown.replace(OTHERS_HERE, "\n".join(rows)).replace(COMMANDS_HERE, "\n\n".join(helps))


def _help_of(command: Command) -> str:
    os.environ["COLUMNS"] = "96"  # the width that argparse writes for
    text = command_help(command)
    return f"### `truvar {command.name}` {{ #{command.name} }}\n\n```text\n{text.rstrip()}\n```"
