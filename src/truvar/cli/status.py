"""`truvar status` and `truvar report`: where a study stands, here and on paper."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from truvar.cli._common import Command
from truvar.cli._store import open_study, study_arguments


def _status_arguments(sub: argparse.ArgumentParser) -> None:
    study_arguments(sub)
    sub.add_argument("--json", action="store_true", help="print it as JSON")


def _status(arguments: argparse.Namespace) -> int:
    """Say where a study stands."""
    from truvar.report.status import status_data, status_text
    from truvar.report.tables import to_json
    from truvar.report.terminal import TerminalStyle

    study = open_study(arguments)
    print(to_json(status_data(study)) if arguments.json else status_text(study, TerminalStyle.for_stream(sys.stdout)))
    return 0


def _report_arguments(sub: argparse.ArgumentParser) -> None:
    study_arguments(sub)
    sub.add_argument("-o", "--out", metavar="FILE", type=Path, help="the HTML file (default: NAME.html)")
    sub.add_argument("--json", action="store_true", help="print its path as JSON")


def _report(arguments: argparse.Namespace) -> int:
    """Write a report as one HTML file."""
    from truvar.report.html_report import write_html_report
    from truvar.report.tables import to_json

    study = open_study(arguments)
    path = write_html_report(study, arguments.out or Path(f"{_file_name(study.name or 'study')}.html"))
    print(to_json({"report": str(path)}) if arguments.json else f"report: {path}")
    return 0


def _file_name(name: str) -> str:
    """A name that any file system takes."""
    return "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in name).strip(".") or "study"


STATUS = Command(
    "status",
    "say where a study stands: certificate, cost, what is pending, a small map",
    "truvar status\ntruvar status lake.db --json",
    _status_arguments,
    _status,
)
REPORT = Command(
    "report",
    "write a report as one HTML file that needs nothing else",
    "truvar report\ntruvar report lake.db -o lake-monday.html",
    _report_arguments,
    _report,
)
