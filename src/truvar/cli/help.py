"""`truvar help`: the help of the program or of one command."""

from __future__ import annotations

import argparse

from truvar.cli._common import Command
from truvar.cli._parser import build_parser, command_help
from truvar.exceptions import InvalidArgumentError
from truvar.messages import unknown_name


def _help_arguments(sub: argparse.ArgumentParser) -> None:
    sub.add_argument(
        "topic",
        nargs="?",
        metavar="COMMAND",
        help="the command to explain (default: list all commands)",
    )


def _help(arguments: argparse.Namespace) -> int:
    """Print the help."""
    if arguments.topic is None:
        print(build_parser(arguments.commands).format_help(), end="")
        return 0
    commands = {command.name: command for command in arguments.commands}
    if arguments.topic not in commands:
        raise InvalidArgumentError(unknown_name("command", arguments.topic, list(commands)))
    print(command_help(commands[arguments.topic]), end="")
    return 0


HELP = Command(
    "help",
    "show the list of commands, or the help of one command",
    "truvar help\ntruvar help ask",
    _help_arguments,
    _help,
)
