"""`truvar export` and `truvar import`: studies and measurements as files."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from truvar.cli._common import Command, add_json, add_path, read_text
from truvar.cli._store import open_study, store_label, store_url, study_arguments
from truvar.exceptions import OutputError


def _export_arguments(sub: argparse.ArgumentParser) -> None:
    study_arguments(sub)
    add_path(sub, "-o", "--out", metavar="FILE", type=Path, help="a .json or .csv file (default: standard output)")
    kind = sub.add_mutually_exclusive_group()
    kind.add_argument("--csv", action="store_true", help="write the measurements as CSV (default)")
    kind.add_argument("--json", action="store_true", help="write the whole study as JSON, for truvar import")


def _export(arguments: argparse.Namespace) -> int:
    """Write a study or its measurements."""
    study = open_study(arguments)
    json_file = arguments.out is not None and arguments.out.suffix == ".json"
    if arguments.json or (json_file and not arguments.csv):
        text = study.to_json() + "\n"
        content = f"the study with its {study.version} events"
    else:
        from truvar.study.csv_cells import measurements_csv

        text = measurements_csv(study.measurements)
        content = "1 measurement" if study.steps == 1 else f"{study.steps} measurements"
    if arguments.out is None:
        sys.stdout.write(text)
        return 0
    try:
        arguments.out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise OutputError(f"{arguments.out} cannot be written ({error.strerror}); give another path") from None
    print(f"{content}: {arguments.out}")
    return 0


def _import_arguments(sub: argparse.ArgumentParser) -> None:
    add_path(sub, "file", metavar="FILE", help="a study that truvar export wrote as .json, or measurements as .csv")
    study_arguments(sub)
    add_json(sub, "what was imported")


def _import(arguments: argparse.Namespace) -> int:
    """Read a whole study into a store, or measurements into a study."""
    from truvar.report.tables import to_json

    text = read_text(arguments.file)
    is_study = text.lstrip("\ufeff \n").startswith("{")
    data, line = _import_study(arguments, text) if is_study else _import_measurements(arguments, text)
    print(to_json(data) if arguments.json else line)
    return 0


def _import_study(arguments: argparse.Namespace, text: str) -> tuple[dict[str, Any], str]:
    """Store a study and return what was done, as data and as a line of text."""
    from truvar.study.study import Study

    given = arguments.words or arguments.store
    url = store_url(given or str(Path(arguments.file).with_suffix(".db")))
    study = Study.from_json(text, store=url, name=arguments.name, who=arguments.who)
    data = {"store": url, "name": study.name, "events": study.version, "measurements": study.steps}
    return data, f"study {study.name!r} with {study.version} events stored in {store_label(url)}"


def _import_measurements(arguments: argparse.Namespace, text: str) -> tuple[dict[str, Any], str]:
    """Tell the measurements of a CSV file and return what was done, as data and as a line of text."""
    from truvar.study.measurements_io import parse_csv, tell_all

    study = open_study(arguments)
    before = study.steps
    ids = tell_all(study, parse_csv(text, study))
    new = study.steps - before
    data = {"told": ids, "new": new, "measurements": study.steps}
    return data, f"{len(ids)} measurements read, {new} of them new"


EXPORT = Command(
    "export",
    "write the measurements as CSV, or the whole study as JSON",
    "truvar export > measurements.csv\ntruvar export lake.db -o lake.json",
    _export_arguments,
    _export,
)
IMPORT = Command(
    "import",
    "read a whole study from JSON into a store, or measurements from CSV into a study",
    "truvar import lake.json copy.db\ntruvar import measurements.csv lake.db",
    _import_arguments,
    _import,
)
