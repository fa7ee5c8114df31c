"""`truvar ask`: what to measure next."""

from __future__ import annotations

import argparse
import sys

from truvar.cli._common import Command, positive, seconds
from truvar.cli._store import open_study, study_arguments, typed
from truvar.exceptions import Finished


def _ask_arguments(sub: argparse.ArgumentParser) -> None:
    study_arguments(sub)
    sub.add_argument("-n", type=positive(int), default=1, metavar="N", help="how many at once, chosen as a batch")
    sub.add_argument("--lease", type=seconds, metavar="TIME", help="given up if not told within 2h, 90min, 1d, ...")
    sub.add_argument("--json", action="store_true", help="print them as JSON")


def _ask(arguments: argparse.Namespace) -> int:
    """Suggest what to measure next."""
    from truvar.report.suggestion_card import suggestion_card, suggestion_data
    from truvar.report.tables import to_json
    from truvar.report.terminal import TerminalStyle

    study = open_study(arguments)
    end = None
    try:
        batch = study.ask(arguments.n, lease=arguments.lease)
    except Finished as finished:
        batch, end = [], finished.reason
    if arguments.json:
        print(to_json({"suggestions": [suggestion_data(study, suggestion) for suggestion in batch], "finished": end}))
        return 0
    terminal, command = TerminalStyle.for_stream(sys.stdout), f"truvar tell{typed(arguments)}"
    cards = "\n\n".join(suggestion_card(study, suggestion, terminal, command) for suggestion in batch)
    print(cards or f"nothing to measure: {end}")
    return 0


ASK = Command(
    "ask",
    "suggest what to measure next: where, how precisely, at which cost, and why",
    "truvar ask\ntruvar ask lake.db -n 4 --lease 2h",
    _ask_arguments,
    _ask,
)
