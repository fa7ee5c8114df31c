"""The command `truvar`: parse, call, print.

A file here is a command or a few of one subject; `COMMANDS` lists them. Libraries are imported inside the functions
that run. Exit codes: 0 done; 1 the user's mistake, told in one line on stderr; 2 usage; 130 stopped by Ctrl-C.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence
from typing import Any

from truvar.cli._common import INTERRUPTED, Command
from truvar.cli.ask import ASK
from truvar.cli.backtest import BACKTEST
from truvar.cli.bounds import BOUNDS
from truvar.cli.completion import COMPLETION
from truvar.cli.export_import import EXPORT, IMPORT
from truvar.cli.new import NEW
from truvar.cli.reproduce import REPRODUCE
from truvar.cli.run import RUN
from truvar.cli.schema import SCHEMA
from truvar.cli.serve import SERVE
from truvar.cli.status import REPORT, STATUS
from truvar.cli.tell import CORRECT, NOTE, TELL, WITHDRAW
from truvar.exceptions import TruvarError
from truvar.messages import interface

NEGATIVE = re.compile(r"-\.?\d")

COMMANDS: tuple[Command, ...] = (
    *(NEW, ASK, TELL, STATUS, CORRECT, WITHDRAW, NOTE, REPORT, EXPORT, IMPORT),
    *(RUN, BACKTEST, REPRODUCE, BOUNDS, SERVE, SCHEMA, COMPLETION),
)


def main(argv: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    arguments = parser().parse_args(argv)
    try:
        with interface("cli"):
            code: int = arguments.run(arguments)
        sys.stdout.flush()
        return code
    except TruvarError as error:
        return _complain(str(error))
    except BrokenPipeError:  # the reader of our output has left, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        return _complain(str(error))
    except KeyboardInterrupt:
        return INTERRUPTED


def parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    top = argparse.ArgumentParser(
        prog="truvar",
        description="What to measure next to find a maximum or a level set, when every measurement costs something.",
    )
    top.add_argument("--version", action=_Version, help="show the version and exit")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in COMMANDS:
        lines = command.example.splitlines()
        sub = commands.add_parser(
            command.name,
            help=command.help,
            description=f"{command.help[0].upper()}{command.help[1:]}.",
            epilog="\n  ".join([f"example{'s' * (len(lines) > 1)}:", *lines]),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        sub._negative_number_matcher = NEGATIVE  # so that -1e-3 is a value and no option
        command.arguments(sub)
        sub.set_defaults(run=command.run)
    return top


class _Version(argparse.Action):
    """Prints the version, which is looked up only then."""

    def __init__(self, option_strings: Sequence[str], dest: str, **kwargs: Any) -> None:
        super().__init__(option_strings, dest=argparse.SUPPRESS, nargs=0, **kwargs)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from truvar import __version__

        print(f"truvar {__version__}")
        parser.exit()


def _complain(message: str) -> int:
    print(f"truvar: {' '.join(message.split())}", file=sys.stderr)
    return 1
