"""`truvar ask`: suggest what to measure next."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from truvar.cli._common import (
    Command,
    add_json,
    add_options,
    add_path,
    assignment,
    given_options,
    option_help,
    positive,
    seconds,
)
from truvar.cli._store import open_study, study_arguments, study_options
from truvar.exceptions import OutputError
from truvar.study.commands import ARGUMENTS, Ask

if TYPE_CHECKING:
    from truvar.study.study import Study
    from truvar.study.suggestion import Suggestion


# Option: what the file is.
_FILES = {
    "gpx": "waypoints and route for a chart plotter",
    "kml": "places and route for Google Earth",
    "geojson": "points and route for QGIS or a web map",
    "plan": "mission for QGroundControl",
    "csv": "table",
}


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
    for name, what in _FILES.items():
        add_path(sub, f"--{name}", metavar="FILE", type=Path, help=f"write them as {what} too")
    add_json(sub, "the suggestions")


def _ask(arguments: argparse.Namespace) -> int:
    """Print suggestions, or why there are none."""
    from truvar.report.suggestion_card import suggestion_card, suggestion_data
    from truvar.report.tables import to_json
    from truvar.report.terminal import TerminalStyle
    from truvar.report.waypoints import check_waypoints
    from truvar.study.suggestion import repeated_places

    study = open_study(arguments)
    files = [(name, path) for name in _FILES if (path := getattr(arguments, name)) is not None]
    for name, _ in files:
        check_waypoints(study, name)
    finished = None
    context = _context(arguments, study)
    options = given_options(arguments, Ask)
    receipt = study.execute(
        Ask(arguments.n, arguments.lease, context=context, same=arguments.same, **options)
    )
    batch = receipt.suggestions
    if receipt.end is not None and not batch:
        finished = receipt.end.reason
    else:
        _write_files(study, batch, files)
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
    if files:
        print(f"\nwritten: {', '.join(str(path) for _, path in files)}")
    repeated = repeated_places(batch)
    if repeated is not None:
        print()
        print(terminal.wrapped(f"several measurements of one place: {terminal.plain(repeated)}"))
    return 0


def _write_files(
    study: Study, batch: Sequence[Suggestion], files: Sequence[tuple[str, Path]]
) -> None:
    """Write suggestions to files; if that fails, say that the suggestions are kept."""
    from truvar.report.waypoints import waypoint_text

    for name, path in files:
        try:
            path.write_text(waypoint_text(study, batch, name), encoding="utf-8")
        except OSError as error:
            raise OutputError(
                f"{path} cannot be written ({error.strerror}); the suggestions are kept: write "
                f"them with truvar export --waypoints -o FILE.{name}"
            ) from None


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
    "truvar ask\ntruvar ask lake.db -n 4 --lease 2h\ntruvar ask lake.db -n 5 --gpx next.gpx",
    _ask_arguments,
    _ask,
)
