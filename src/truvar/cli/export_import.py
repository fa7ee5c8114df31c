"""`truvar export` and `truvar import`: studies as files."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from truvar.cli._common import Command
from truvar.cli._store import open_study, shown, store_url, study_arguments
from truvar.cli.tell import read_text
from truvar.exceptions import TruvarError


def _export_arguments(sub: argparse.ArgumentParser) -> None:
    study_arguments(sub)
    sub.add_argument("-o", "--out", metavar="FILE", type=Path, help="a .json or .csv file (default: standard output)")
    kind = sub.add_mutually_exclusive_group()
    kind.add_argument("--csv", action="store_true", help="the measurements as CSV (default)")
    kind.add_argument("--json", action="store_true", help="the whole study as JSON, for truvar import")


def _export(arguments: argparse.Namespace) -> int:
    """Write a study or its measurements."""
    study = open_study(arguments)
    whole = arguments.json or (arguments.out is not None and arguments.out.suffix == ".json" and not arguments.csv)
    text = study.to_json() + "\n" if whole else study.measurements.to_csv(index=False)
    if arguments.out is None:
        sys.stdout.write(text)
        return 0
    try:
        arguments.out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise TruvarError(f"{arguments.out} cannot be written ({error.strerror}); give another path") from None
    what = (
        f"the study with its {len(study.events)} events"
        if whole
        else f"{study.steps} measurement{'s' * (study.steps != 1)}"
    )
    print(f"{what}: {arguments.out}")
    return 0


def _import_arguments(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("file", metavar="FILE", help="what truvar export wrote as .json, or measurements as .csv")
    study_arguments(sub)
    sub.add_argument("--json", action="store_true", help="print what was done as JSON")


def _import(arguments: argparse.Namespace) -> int:
    """Read a whole study into a store, or measurements into a study."""
    from truvar.report.tables import to_json
    from truvar.study.measurements_io import parse_csv, tell_all
    from truvar.study.study import Study

    text = read_text(arguments.file)
    if text.lstrip("\ufeff \n").startswith("{"):
        given = arguments.words or arguments.store
        url = store_url(given or str(Path(arguments.file).with_suffix(".db")))
        study = Study.from_json(text, store=url, name=arguments.name, who=arguments.who)
        said: dict[str, Any] = {
            "store": url,
            "name": study.name,
            "events": len(study.events),
            "measurements": study.steps,
        }
        line = f"{study.name!r} with its {len(study.events)} events is in {shown(url)}"
    else:
        study = open_study(arguments)
        before = study.steps
        ids = tell_all(study, parse_csv(text, study))
        said = {"told": ids, "new": study.steps - before, "measurements": study.steps}
        line = f"{len(ids)} measurements read, {study.steps - before} of them new"
    print(to_json(said) if arguments.json else line)
    return 0


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
