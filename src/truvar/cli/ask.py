"""`truvar ask`: suggest what to measure next."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from truvar.cli._common import (
    Command,
    add_json,
    add_options,
    assignment,
    given_options,
    option_help,
    positive,
    seconds,
)
from truvar.cli._store import open_study, study_arguments, study_options
from truvar.study.commands import ARGUMENTS, Ask

if TYPE_CHECKING:
    from truvar.study.study import Study


def _ask_arguments(sub: argparse.ArgumentParser) -> None:
    study_arguments(sub)
    sub.add_argument(
        "-n",
        type=positive(int),
        default=1,
        metavar="N",
        help=option_help(ARGUMENTS["n"]),
    )
    sub.add_argument(
        "--lease",
        type=seconds,
        metavar="TIME",
        help="reserve the suggestions for 2h, 90min, 1d, ...; then they expire",
    )
    sub.add_argument(
        "--context",
        action="append",
        type=assignment,
        metavar="COLUMN=VALUE",
        help="value of a context column, which is given, not chosen; once per column",
    )
    sub.add_argument(
        "--same",
        action="append",
        metavar="COLUMN",
        help="column whose value all suggestions share, chosen for the batch; once per column",
    )
    add_options(sub, Ask)
    add_json(sub, "the suggestions")


def _ask(arguments: argparse.Namespace) -> int:
    """Print suggestions, or why there are none."""
    from truvar.report.suggestion_card import suggestion_card, suggestion_data
    from truvar.report.tables import to_json
    from truvar.report.terminal import TerminalStyle
    from truvar.study.suggestion import repeated_places

    study = open_study(arguments)
    finished = None
    context = _context(arguments, study)
    options = given_options(arguments, Ask)
    receipt = study.execute(
        Ask(arguments.n, arguments.lease, context=context, same=arguments.same, **options)
    )
    batch = receipt.suggestions
    if receipt.end is not None and not batch:
        finished = receipt.end.reason
    if arguments.json:
        suggestions = [suggestion_data(study, suggestion) for suggestion in batch]
        print(to_json({"suggestions": suggestions, "finished": finished}))
        return 0
    if finished is not None:
        print(TerminalStyle.for_stream(sys.stdout).wrapped(f"nothing to measure: {finished}"))
        return 0
    terminal = TerminalStyle.for_stream(sys.stdout)
    command = f"truvar tell{study_options(arguments)}"
    print(
        "\n\n".join(suggestion_card(study, suggestion, terminal, command) for suggestion in batch)
    )
    repeated = repeated_places(batch)
    if repeated is not None:
        print()
        print(terminal.wrapped(f"several measurements of one place: {terminal.plain(repeated)}"))
    return 0


def _context(arguments: argparse.Namespace, study: Study) -> dict[str, Any] | None:
    """Return the given context in the types of its columns; the study refuses unknown ones."""
    if arguments.context is None:
        return None
    columns = study.domain.columns
    return {
        name: study.domain.parse(name, text) if name in columns else text
        for name, text in arguments.context
    }


ASK = Command(
    "ask",
    "suggest what to measure next: where, how precisely, at which cost, and why",
    "truvar ask\ntruvar ask lake.db -n 4 --lease 2h",
    _ask_arguments,
    _ask,
)
