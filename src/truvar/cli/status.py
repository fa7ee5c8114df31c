"""`truvar status` and `truvar report`: the state of a study in the terminal and as an HTML file."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from truvar.cli._common import Command, add_json, add_path
from truvar.cli._store import open_study, study_arguments


def _status_arguments(sub: argparse.ArgumentParser) -> None:
    study_arguments(sub)
    theorem = "add the paper's sets M, H and L and what its confidence bounds say"
    sub.add_argument("--theorem", action="store_true", help=theorem)
    add_json(sub, "the status")


def _status(arguments: argparse.Namespace) -> int:
    """Print the status of a study."""
    from truvar.report.status import status_data, status_text
    from truvar.report.tables import to_json
    from truvar.report.terminal import TerminalStyle

    study = open_study(arguments)
    if arguments.json:
        print(to_json(status_data(study)))
    else:
        print(status_text(study, TerminalStyle.for_stream(sys.stdout), arguments.theorem))
    return 0


def _report_arguments(sub: argparse.ArgumentParser) -> None:
    study_arguments(sub)
    report = "the report: a file x.html, or a folder (default: the file NAME.html)"
    add_path(sub, "-o", "--out", "--report", metavar="FILE.html|FOLDER", type=Path, help=report)
    theorem = "add the paper's sets M, H and L and what its confidence bounds say"
    sub.add_argument("--theorem", action="store_true", help=theorem)
    add_json(sub, "the path of the report")


def _report(arguments: argparse.Namespace) -> int:
    """Write a report and print its path."""
    from truvar.report.html_report import write_report_at
    from truvar.report.tables import describe_report, to_json

    study = open_study(arguments)
    paths = write_report_at(
        study,
        arguments.out or Path(f"{_file_name(study.name or 'study')}.html"),
        theorem=arguments.theorem,
    )
    if arguments.json:
        print(to_json({kind: str(path) for kind, path in paths.items()}))
    else:
        print(f"report: {describe_report(paths)}")
    return 0


def _file_name(name: str) -> str:
    """Return a name with the characters replaced that some file systems do not allow."""
    allowed = [letter if letter.isalnum() or letter in "-_." else "-" for letter in name]
    return "".join(allowed).strip(".") or "study"


STATUS = Command(
    "status",
    "show the state of a study: certificate, cost, pending suggestions, and a map",
    "truvar status\ntruvar status lake.db --json",
    _status_arguments,
    _status,
)
REPORT = Command(
    "report",
    "write a report: one self-contained HTML file, or a folder with tables and figures too",
    "truvar report\ntruvar report lake.db --report lake-monday.html",
    _report_arguments,
    _report,
)
