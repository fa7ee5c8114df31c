"""The command line: parse the arguments, call the library, print the answer.

A module of this package holds one command or a few related ones; `COMMANDS` lists them all.
Commands import the library inside the functions that run, so that help and usage errors appear at
once.

| exit code | meaning |
|---|---|
| 0 | done |
| 1 | the user's mistake: one line on stderr |
| 2 | wrong usage |
| 130 | stopped by Ctrl-C |
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence
from typing import Any

from truvar._representation import visible
from truvar.cli._common import INTERRUPTED, Command
from truvar.cli._parser import build_parser, command_help
from truvar.cli.ask import ASK
from truvar.cli.backtest import BACKTEST
from truvar.cli.bounds import BOUNDS
from truvar.cli.changes import subcommands
from truvar.cli.completion import COMPLETION
from truvar.cli.export_import import EXPORT, IMPORT
from truvar.cli.help import HELP
from truvar.cli.init import INIT
from truvar.cli.maintenance import BACKUP, CHECK
from truvar.cli.mcp import MCP
from truvar.cli.new import NEW
from truvar.cli.plot import PLOT
from truvar.cli.reproduce import REPRODUCE
from truvar.cli.run import RUN
from truvar.cli.schema import SCHEMA
from truvar.cli.serve import SERVE
from truvar.cli.serve_aepsych import SERVE_AEPSYCH
from truvar.cli.status import REPORT, STATUS
from truvar.cli.tell import TELL
from truvar.cli.token import TOKEN
from truvar.exceptions import TruvarError
from truvar.messages import interface

__all__ = ["COMMANDS", "INTERRUPTED", "command_help", "main", "parse_arguments", "parser"]

_NEGATIVE_NUMBER = re.compile(r"-\.?\d")

COMMANDS: tuple[Command, ...] = (
    INIT,
    NEW,
    ASK,
    TELL,
    STATUS,
    *subcommands(),
    REPORT,
    PLOT,
    EXPORT,
    IMPORT,
    RUN,
    BACKTEST,
    REPRODUCE,
    BOUNDS,
    SERVE,
    SERVE_AEPSYCH,
    MCP,
    TOKEN,
    CHECK,
    BACKUP,
    SCHEMA,
    COMPLETION,
    HELP,
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command.

    Args:
        argv: Arguments without the program's name; None: those of the process.

    Returns:
        The exit code.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    arguments = parse_arguments(words or ["help"])
    try:
        with interface("cli"):
            code: int = arguments.run(arguments)
        sys.stdout.flush()
        return code
    except TruvarError as error:
        return _report_mistake(str(error))
    except BrokenPipeError:  # the reader of the output has gone, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        return _report_mistake(str(error))
    except KeyboardInterrupt:
        return INTERRUPTED


def parse_arguments(argv: Sequence[str]) -> argparse.Namespace:
    """Parse arguments; `-1e-3` is a number and not an option.

    argparse takes every word that begins with "-" for an option, except numbers without an
    exponent. A word that begins with a space is a value, so negative numbers get one in front,
    which is removed again afterwards.
    """
    end = argv.index("--") if "--" in argv else len(argv)  # all words behind "--" are values
    protected = [f" {word}" if _NEGATIVE_NUMBER.match(word) else word for word in argv[:end]]
    selected = [command for command in COMMANDS if argv and command.name == argv[0]]
    arguments = parser(selected or COMMANDS).parse_args([*protected, *argv[end:]])
    for name, value in vars(arguments).items():
        setattr(arguments, name, _unprotected(value))
    arguments.commands = COMMANDS
    return arguments


def parser(selection: Sequence[Command] = COMMANDS) -> argparse.ArgumentParser:
    """Return the parser of all commands, or of some, which is built faster."""
    return build_parser(selection)


def _unprotected(value: Any) -> Any:
    """Remove the space that `parse_arguments` put in front of a negative number."""
    if isinstance(value, list):
        return [_unprotected(item) for item in value]
    if isinstance(value, str) and value.startswith(" ") and _NEGATIVE_NUMBER.match(value[1:]):
        return value[1:]
    return value


def _report_mistake(message: str) -> int:
    line = visible(f"truvar: {' '.join(message.split())}")
    if sys.stderr.isatty():
        from truvar.report.terminal import TerminalStyle

        line = TerminalStyle.for_stream(sys.stderr).wrapped(line)
    print(line, file=sys.stderr)
    return 1
