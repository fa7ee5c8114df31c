"""Subcommands that change a study, such as `truvar correct`, as `INTERFACES` describes them.

The words of a subcommand name the targets of its command; `_KINDS` says how, for each kind of
target.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from truvar._representation import visible
from truvar.cli._common import Command, add_json, add_options, given_options
from truvar.cli._store import open_study, own_words, study_arguments
from truvar.exceptions import InvalidArgumentError
from truvar.messages import unknown_name
from truvar.study import commands
from truvar.study.commands import INTERFACES, Receipt, Target

if TYPE_CHECKING:
    from truvar.domain.domain import Domain
    from truvar.study.result import Result
    from truvar.study.study import Study

_COORDINATE = re.compile(r"[^<>=]+=[^<>=]+")


def subcommands() -> list[Command]:
    """Return the subcommands that `INTERFACES` describes."""
    return [
        Command(
            command.name,
            interface.help,
            interface.example,
            partial(_add_arguments, command),
            partial(_run, command),
        )
        for command, interface in INTERFACES.items()
    ]


def _add_arguments(command: type[commands.Command], sub: argparse.ArgumentParser) -> None:
    interface = INTERFACES[command]
    study_arguments(sub, _KINDS[interface.target].metavar, interface.words)
    add_options(sub, command)
    if interface.everywhere:
        sub.add_argument("--all", action="store_true", help=f"{command.name} every place")
    add_json(sub, "the result")


def _run(command: type[commands.Command], arguments: argparse.Namespace) -> int:
    """Execute a command for each of its targets and print what changed."""
    given = _Given(command, arguments)
    targets = given.kind.read(given)
    study = given.study
    pending = [suggestion.id for suggestion in study.pending]
    compares = not arguments.json and given.interface.target != "text"
    before = study.result() if compares else None
    options = given_options(arguments, command)
    with study.transaction() if len(targets) > 1 else nullcontext():
        receipt = Receipt.merged([study.execute(command(*each, **options)) for each in targets])
    _report(given, before, receipt)
    ended = [id_ for id_ in receipt.ids if id_ in pending]
    # without --again, a command that has the option excludes the places of pending suggestions
    if ended and not getattr(arguments, "again", True) and before is not None:
        listed = ", ".join(map(str, ended))
        _print_text(f"not suggested again until allowed: {listed} (truvar allow {ended[0]})")
    return 0


class _Given:
    """The words of a subcommand.

    Args:
        command: Class of the command to execute.
        arguments: The parsed arguments.
    """

    def __init__(self, command: type[commands.Command], arguments: argparse.Namespace) -> None:
        self.name = command.name
        self.interface = INTERFACES[command]
        self.kind = _KINDS[self.interface.target]
        self.arguments = arguments
        self.words = own_words(arguments)

    @cached_property
    def study(self) -> Study:
        """The study, which is opened once the words are found to be usable."""
        return open_study(self.arguments)

    @property
    def text(self) -> str:
        """The words as one text."""
        return " ".join(self.words).strip()

    def refusal(self, expected: str, hint: str = "truvar status lists the ids") -> Exception:
        """Return the error for words that are not what is expected."""
        return InvalidArgumentError(f"{self.name} expects {expected}; {hint}")


def _report(given: _Given, before: Result | None, receipt: Receipt) -> None:
    """Print what changed since a result; None: in JSON."""
    done = given.interface.done
    target = given.interface.target
    if target == "text" and not given.arguments.json:
        _print_text(done)
        return
    ids = list(receipt.ids)
    changed = given.kind.changed(given, ids)
    shown = ids or given.words or [changed]  # a place need not have an id
    warnings = list(receipt.warnings.values()) if target == "value" else None
    now = print_change(given.study, before, done, shown, changed, warnings)
    if target in ("point", "place") and before is not None:
        from truvar.report.status import describe_infeasible

        for term, text in describe_infeasible(given.study, now):
            print(visible(f"{term}: {text}"))


# -- words
# --------------------------------------------------------------------------------------------------

_Targets = list[tuple[Any, ...]]  # positional arguments of each command to execute


def _read_ids(given: _Given) -> _Targets:
    if not given.words:
        raise given.refusal("at least one id, got none")
    for word in given.words:
        if not word.isdecimal():
            raise given.refusal(f"ids, got {word!r}")
    return [(int(word),) for word in given.words]


def _read_value(given: _Given) -> _Targets:
    from truvar.study.measurements_io import parse_words

    quantities = tuple(given.study.goal.parts)
    is_complete = len(given.words) == 2 or (bool(quantities) and len(given.words) > 2)
    if not is_complete or not given.words[0].isdecimal():
        raise given.refusal(f"ID VALUE, got {given.text or 'nothing'}")
    (measurement,) = parse_words(
        given.words, given.study.domain, corrects=True, quantities=quantities
    )
    return [(measurement.what, measurement.value)]


def _read_point(given: _Given) -> _Targets:
    if not given.words:
        raise given.refusal("the id of a suggestion, got none")
    what = _parse_place(given)
    if isinstance(what, str):
        expected = "an id, a label or the coordinates of a point"
        raise given.refusal(f"{expected}, got {what!r}", "give one of them")
    return [(what,)]


def _read_place(given: _Given) -> _Targets:
    if given.interface.everywhere:
        if bool(given.words) == given.arguments.all:
            both = f"{given.text} and --all" if given.words else "neither"
            raise given.refusal(f"a place or --all, got {both}", "give one of the two")
    elif not given.words:
        raise given.refusal("a place, got none", f"give the {given.interface.words}")
    return [(_parse_place(given) if given.words else None,)]


def _read_extension(given: _Given) -> _Targets:
    """Return further points: the path of a table, or values by column such as x=0,2."""
    if not given.words:
        raise given.refusal("a table or values by column, got none", "give more.csv, or x=0,2")
    if not all(_COORDINATE.fullmatch(word) for word in given.words):
        if len(given.words) > 1:
            raise given.refusal(
                f"one table or values by column, got {given.text}", "give more.csv, or x=0,2"
            )
        return [(given.words[0],)]
    domain = given.study.domain
    values: dict[str, list[Any]] = {}
    for word in given.words:
        name, _, text = (part.strip() for part in word.partition("="))
        if name not in domain.columns:
            raise InvalidArgumentError(unknown_name("column", name, domain.columns))
        values[name] = [domain.parse(name, part.strip()) for part in text.split(",")]
    return [(values,)]


def _read_text(given: _Given) -> _Targets:
    if not given.text:
        example = given.interface.example
        raise InvalidArgumentError(f"a {given.name} needs a text, got none; give one: {example}")
    return [(given.text,)]


@dataclass(frozen=True)
class _Kind:
    """A kind of target, and the words that name it.

    Attributes:
        metavar: Placeholder of the words.
        read: Returns the targets.
        changed: Returns what the JSON output says of them, given their ids.
    """

    metavar: str
    read: Callable[[_Given], _Targets]
    changed: Callable[[_Given, list[int]], Any]


_KINDS: dict[Target, _Kind] = {
    "measurement": _Kind("ID", _read_ids, lambda given, ids: ids),
    "value": _Kind("ID VALUE", _read_value, lambda given, ids: ids[0]),
    "point": _Kind("ID", _read_point, lambda given, ids: str(ids[0])),
    "place": _Kind("PLACE", _read_place, lambda given, ids: given.text or "every place"),
    "domain": _Kind("TABLE", _read_extension, lambda given, ids: given.text),
    "text": _Kind("TEXT", _read_text, lambda given, ids: given.text),
}


def _parse_place(given: _Given) -> Any:
    """Return a place as `Study.exclude` takes it: an id, a point, or a condition."""
    words = given.words
    domain = given.study.domain
    if len(words) == 1 and words[0].isdecimal():
        return int(words[0])
    row = _labelled_row(words, domain)
    if row is not None:
        return domain.point(row)
    if not all(_COORDINATE.fullmatch(word) for word in words):
        return " ".join(words)
    point: dict[str, Any] = {}
    for word in words:
        name, _, text = (part.strip() for part in word.partition("="))
        if name not in domain.columns:
            raise InvalidArgumentError(unknown_name("column", name, domain.columns))
        point[name] = domain.parse(name, text)
    return point


def _labelled_row(words: list[str], domain: Domain) -> int | None:
    """Return the row of a table that a word labels; None if it labels none, or several."""
    from truvar.domain.labels import can_be_given, label_columns, rows_by_label

    if len(words) != 1 or not can_be_given(domain):
        return None
    name, equals_sign, text = words[0].partition("=")
    label = text if equals_sign and name in label_columns(domain) else words[0]
    return rows_by_label(domain).get(label)


# -- output, which `truvar tell` shares
# --------------------------------------------------------------------------------------------------


def print_change(
    study: Study,
    before: Result | None,
    verb: str,
    shown: Sequence[Any],
    changed: Any,
    warnings: Sequence[str] | None = None,
) -> Result:
    """Print what a command changed, and return the result after it, which is built once.

    Args:
        study: The study after the change.
        before: Result before the change; None: print JSON.
        verb: What was done, such as "told".
        shown: What it was done with, such as ids.
        changed: What it was done with, for the JSON output.
        warnings: Warnings about values; None: there are never any.
    """
    from truvar.report.tables import to_json
    from truvar.report.tell_summary import tell_summary
    from truvar.report.terminal import TerminalStyle

    now = study.result()
    if before is None:
        more = {} if warnings is None else {"warnings": warnings}
        print(to_json({verb: changed, **more, "result": now.to_dict()}))
        return now
    _print_text(tell_summary(shown, before, now, verb))
    terminal = TerminalStyle.for_stream(sys.stderr)
    for warning in warnings or ():
        print(terminal.wrapped(f"truvar: {warning}"), file=sys.stderr)
    return now


def _print_text(text: str) -> None:
    from truvar.report.terminal import TerminalStyle

    print(TerminalStyle.for_stream(sys.stdout).wrapped(text))
