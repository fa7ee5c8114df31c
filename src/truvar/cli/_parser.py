"""Parsers and help texts of commands."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from truvar import __version__
from truvar.cli._common import Command

DESCRIPTION = (
    "Choose what to measure next to find a maximum or a level set, when every measurement has a "
    "cost."
)


def build_parser(commands: Sequence[Command]) -> argparse.ArgumentParser:
    """Return the parser of some commands."""
    top = argparse.ArgumentParser(prog="truvar", description=DESCRIPTION)
    top.add_argument(
        "--version",
        action="version",
        version=f"truvar {__version__}",
        help="show the version and exit",
    )
    subparsers = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in commands:
        sub = subparsers.add_parser(command.name, help=command.help, **_parser_options(command))
        command.arguments(sub)
        sub.set_defaults(run=command.run)
    return top


def command_help(command: Command) -> str:
    """Return the help text of one command."""
    alone = argparse.ArgumentParser(prog=f"truvar {command.name}", **_parser_options(command))
    command.arguments(alone)
    return alone.format_help()


def _parser_options(command: Command) -> dict[str, Any]:
    examples = command.example.splitlines()
    heading = "example:" if len(examples) == 1 else "examples:"
    return {
        "description": f"{command.help[0].upper()}{command.help[1:]}.",
        "epilog": "\n  ".join([heading, *examples]),
        "formatter_class": argparse.RawDescriptionHelpFormatter,
    }
