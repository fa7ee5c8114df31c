"""Markdown extension of the site: the commands, their help and the version, where a page asks for them.

`mkdocs.yml` names it in `markdown_extensions`. A comment in the page marks each place.
"""

from __future__ import annotations

import os
from typing import Any

from markdown import Extension, Markdown
from markdown.preprocessors import Preprocessor

from truvar import __version__
from truvar.cli import COMMANDS, command_help
from truvar.cli._common import Command

COMMANDS_HERE = "<!-- the help of every command -->"
VERSION_HERE = "<!-- the version -->"
OTHERS_HERE = "<!-- a row for every other command -->"
BEFORE_ALL_OTHERS = 1000  # priority: fenced blocks, which the help consists of, are read later


def add_commands(markdown: str) -> str:
    """Return a page with the help of every command, and rows for those that it does not name."""
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


class _CommandsPreprocessor(Preprocessor):
    """Preprocessor that adds the commands and the version to the lines of a page."""

    def run(self, lines: list[str]) -> list[str]:
        page = "\n".join(lines).replace(VERSION_HERE, __version__)
        return add_commands(page).split("\n")


class CommandHelpExtension(Extension):
    """Python-Markdown extension with the preprocessor above."""

    def extendMarkdown(self, md: Markdown) -> None:
        md.preprocessors.register(_CommandsPreprocessor(md), "truvar-commands", BEFORE_ALL_OTHERS)


def makeExtension(**options: Any) -> CommandHelpExtension:
    """Return the extension; Markdown calls it by this name."""
    return CommandHelpExtension(**options)
