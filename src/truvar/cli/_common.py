"""Parts that the commands share: their description, argument types, and the handling of Ctrl-C."""

from __future__ import annotations

import argparse
import re
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from truvar.study import commands

if TYPE_CHECKING:
    from truvar.study.study import Study

INTERRUPTED = 128 + signal.SIGINT  # exit code of a process that Ctrl-C stopped
# Options that end a run; a problem file and a study have them too.
LIMITS = ("budget", "steps", "epsilon", "f1", "regret", "improvement_per_cost", "accuracy")
SECONDS_PER_UNIT = {"": 1, "s": 1, "min": 60, "m": 60, "h": 3600, "d": 86400}


@dataclass(frozen=True)
class Command:
    """A subcommand.

    Attributes:
        name: The word that selects it.
        help: What it does, as an imperative without a capital and a period.
        example: Command lines, one per line.
        arguments: Adds its arguments to a parser.
        run: Runs it with the parsed arguments and returns the exit code.
    """

    name: str
    help: str
    example: str
    arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


def add_path(group: Any, *flags: str, **options: Any) -> None:
    """Add an argument that is the path of a file, which the shell completes.

    Args:
        group: Parser or group of arguments.
        flags: Name or flags, as for `add_argument`.
        options: Further arguments of `add_argument`.
    """
    action = group.add_argument(*flags, **options)
    shtab = sys.modules.get("shtab")  # only `truvar completion` imports it
    if shtab is not None:
        action.complete = shtab.FILE


def add_json(sub: argparse.ArgumentParser, what: str) -> None:
    """Add the option --json, which prints `what` as JSON."""
    sub.add_argument("--json", action="store_true", help=f"print {what} as JSON")


def add_options(sub: argparse.ArgumentParser, command: type[commands.Command]) -> None:
    """Add an option for every argument of a command that the command line has one for."""
    defaults = {each.name: each.default for each in fields(command)}
    for name, argument in _options(command):
        kind: dict[str, Any] = {"type": argument.kind}
        if argument.kind is bool:
            kind = {"action": "store_true"}
        option = f"--{name.replace('_', '-')}"
        sub.add_argument(option, help=option_help(argument), default=defaults[name], **kind)


def option_help(argument: commands.Argument) -> str:
    """Return the description of an argument as the help of an option."""
    return f"{argument.help[0].lower()}{argument.help[1:].removesuffix('.')}"


def given_options(arguments: argparse.Namespace, command: type[commands.Command]) -> dict[str, Any]:
    """Return the arguments of a command that `add_options` added options for."""
    return {name: getattr(arguments, name) for name, _ in _options(command)}


def _options(command: type[commands.Command]) -> list[tuple[str, commands.Argument]]:
    found = [(each.name, commands.ARGUMENTS.get(each.name)) for each in fields(command)]
    return [(name, argument) for name, argument in found if argument and argument.is_option]


def positive(kind: type[int] | type[float]) -> Callable[[str], float]:
    """Return an argument type that accepts positive numbers."""

    def parse(text: str) -> float:
        value = kind(text)
        if not 0 < value < float("inf"):
            raise argparse.ArgumentTypeError(f"must be positive, got {text.strip()}")
        return value

    parse.__name__ = (
        "number" if kind is float else "whole number"
    )  # argparse: "invalid number value: 'x'"
    return parse


def seconds(text: str) -> float:
    """Parse a duration such as 90, 90s, 15min, 2h or 1d."""
    found = re.fullmatch(r"\s*([0-9.]+)\s*([a-z]*)\s*", text)
    if not found or found[2] not in SECONDS_PER_UNIT:
        raise argparse.ArgumentTypeError(
            f"must be a duration such as 90s, 15min, 2h or 1d, got {text.strip()!r}"
        )
    return positive(float)(found[1]) * SECONDS_PER_UNIT[found[2]]


def assignment(text: str) -> tuple[str, str]:
    """Parse a column and its value, such as temperature=21.5 or batch=spring."""
    name, _, value = (part.strip() for part in text.partition("="))
    if not name or not value:
        raise argparse.ArgumentTypeError(
            f"must be a column and its value such as x=1.5, got {text!r}"
        )
    return name, value


def read_text(path: str) -> str:
    """Return the contents of a text file, or of standard input if the path is "-".

    Raises:
        InvalidArgumentError: If the file cannot be read or is not UTF-8.
    """
    from truvar.exceptions import InvalidArgumentError
    from truvar.tabular.tables import decode

    try:
        return sys.stdin.read() if path == "-" else decode(Path(path).read_bytes())
    except UnicodeDecodeError as error:
        raise InvalidArgumentError(
            f"{path} must be text in UTF-8 ({error.reason}); save it as UTF-8"
        ) from None
    except OSError as error:
        raise InvalidArgumentError(
            f"{path} cannot be read ({error.strerror}); check the path"
        ) from None


@contextmanager
def cluster(address: str | None) -> Iterator[Any]:
    """Connect to a Dask cluster for the duration of the block.

    Args:
        address: Address of the scheduler; None: no cluster.

    Yields:
        The client, or None without an address.
    """
    if address is None:
        yield None
        return
    from truvar.integrations.dask import connect

    with connect(address) as client:
        yield client


# -- Ctrl-C
# --------------------------------------------------------------------------------------------------


class Interrupted(Exception):
    """Ctrl-C was pressed; raised between two measurements."""


@contextmanager
def interruptible(notice: str = "") -> Iterator[Callable[[], bool]]:
    """Note the first Ctrl-C within the block; a second one raises `KeyboardInterrupt`.

    Args:
        notice: Printed to stderr at the first Ctrl-C.

    Yields:
        A function that returns whether Ctrl-C was pressed.
    """
    noted: list[int] = []

    def note(number: int, _: FrameType | None) -> None:
        if noted:
            raise KeyboardInterrupt
        noted.append(number)
        if notice:
            print(f"\n{notice}", file=sys.stderr)

    before = signal.signal(signal.SIGINT, note)
    try:
        yield lambda: bool(noted)
    finally:
        signal.signal(signal.SIGINT, before)


def after_each_measurement(
    show: Callable[[Study], object] | None, interrupted: Callable[[], bool]
) -> Any:
    """Return the function that `Study.run` calls after every measurement.

    It updates the display and raises `Interrupted` once Ctrl-C was pressed.

    Args:
        show: The progress display; None: no display.
        interrupted: The function that `interruptible` yields.
    """

    def after_each(study: Study) -> None:
        if show is not None:
            show(study)
        if interrupted():
            raise Interrupted

    return after_each
