"""`truvar export` and `truvar import`: studies and measurements as files."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from truvar.cli._common import Command, add_json, add_path, read_text
from truvar.cli._measurements import add_table_options, read_measurements
from truvar.cli._store import open_study, store_label, store_url, study_arguments
from truvar.exceptions import OutputError
from truvar.messages import mask_passwords
from truvar.tabular.tables import is_excel

if TYPE_CHECKING:
    from truvar.study.study import Study


def _export_arguments(sub: argparse.ArgumentParser) -> None:
    study_arguments(sub)
    add_path(
        sub,
        "-o",
        "--out",
        metavar="FILE",
        type=Path,
        help="the file; its suffix says the format, .xlsx all of the study (default: CSV to standard "
        "output)",
    )
    kind = sub.add_mutually_exclusive_group()
    kind.add_argument("--csv", action="store_true", help="write the measurements as CSV (default)")
    kind.add_argument(
        "--json", action="store_true", help="write the whole study as JSON, for truvar import"
    )
    kind.add_argument(
        "--points",
        action="store_true",
        help="write every point with mean, sd, probability and class: .csv, .geojson, .gpkg or .nc",
    )
    kind.add_argument(
        "--waypoints",
        action="store_true",
        help="write the pending suggestions: .gpx, .kml, .geojson, .plan or .csv",
    )


def _export(arguments: argparse.Namespace) -> int:
    """Write a study, its measurements, its points or its pending suggestions."""
    if arguments.out is None and _is_output(arguments):
        arguments.out = Path(arguments.words)
        arguments.words = None
    study = open_study(arguments)
    if arguments.points or arguments.waypoints:
        return _export_places(study, arguments)
    json_file = arguments.out is not None and arguments.out.suffix == ".json"
    if (
        arguments.out is not None
        and is_excel(arguments.out)
        and not (arguments.json or arguments.csv)
    ):
        return _export_workbook(study, arguments.out)
    if arguments.json or (json_file and not arguments.csv):
        text = study.to_json() + "\n"
        content = f"the study with its {study.version} events"
    else:
        from truvar.tabular.csv_cells import measurements_csv

        text = measurements_csv(study.measurements)
        content = _count(study)
    if arguments.out is None:
        sys.stdout.write(text)
        return 0
    try:
        arguments.out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise OutputError(
            f"{arguments.out} cannot be written ({error.strerror}); give another path"
        ) from None
    print(f"{content}: {arguments.out}")
    return 0


def _is_output(arguments: argparse.Namespace) -> bool:
    """Return whether the word after `export` is the file to write rather than a store."""
    from truvar.report.point_files import POINT_SUFFIXES
    from truvar.report.waypoints import WRITERS

    if not arguments.words:
        return False
    suffix = Path(arguments.words).suffix.lower()
    if arguments.points:
        return suffix in POINT_SUFFIXES
    if arguments.waypoints:
        return suffix.removeprefix(".") in WRITERS
    return is_excel(arguments.words)


def _export_places(study: Study, arguments: argparse.Namespace) -> int:
    """Write all points, or the pending suggestions, in the format of the file."""
    if arguments.points:
        from truvar.report.point_files import points_csv, save_points

        result = study.result()
        if arguments.out is None:
            sys.stdout.write(points_csv(result))
            return 0
        print(f"{len(result.domain)} points: {save_points(result, arguments.out)}")
        return 0
    from truvar.report.formatting import count_noun
    from truvar.report.waypoints import save_waypoints, waypoint_text

    pending = study.pending
    if arguments.out is None:
        sys.stdout.write(waypoint_text(study, pending, "csv"))
        return 0
    path = save_waypoints(study, arguments.out, pending)
    print(f"{count_noun(len(pending), 'pending suggestion')}: {path}")
    return 0


def _export_workbook(study: Study, path: Path) -> int:
    """Write measurements, suggestions, points and settings to an Excel workbook."""
    print(f"{_count(study)}: {study.to_excel(path)}")
    return 0


def _count(study: Study) -> str:
    return "1 measurement" if study.steps == 1 else f"{study.steps} measurements"


def _import_arguments(sub: argparse.ArgumentParser) -> None:
    add_path(
        sub,
        "file",
        metavar="FILE",
        help="a study that truvar export wrote as .json, or measurements as .csv or .xlsx",
    )
    study_arguments(sub)
    add_table_options(sub)
    add_json(sub, "what was imported")


def _import(arguments: argparse.Namespace) -> int:
    """Read a whole study into a store, or measurements into a study."""
    from truvar.report.tables import to_json

    text = "" if is_excel(arguments.file) else read_text(arguments.file)
    is_study = text.lstrip("\ufeff \n").startswith("{")
    data, line = _import_study(arguments, text) if is_study else _import_measurements(arguments)
    print(to_json(data) if arguments.json else line)
    return 0


def _import_study(arguments: argparse.Namespace, text: str) -> tuple[dict[str, Any], str]:
    """Store a study and return what was done, as data and as a line of text."""
    from truvar.study.study import Study

    given = arguments.words or arguments.store
    url = store_url(given or str(Path(arguments.file).with_suffix(".db")))
    study = Study.from_json(text, store=url, name=arguments.name, author=arguments.author)
    data = {
        "store": mask_passwords(url),
        "name": study.name,
        "events": study.version,
        "measurements": study.steps,
    }
    return data, f"study {study.name!r} with {study.version} events stored in {store_label(url)}"


def _import_measurements(arguments: argparse.Namespace) -> tuple[dict[str, Any], str]:
    """Tell the measurements of a file and return what was done, as data and as a line of text."""
    from truvar.study.measurements_io import tell_all

    study = open_study(arguments)
    before = study.steps
    table = read_measurements(arguments.file, study, arguments)
    receipt = tell_all(study, table.new)
    receipt.warn(stacklevel=1)
    ids = list(receipt.ids)
    new = study.steps - before
    data = {"told": ids, "new": new, "left_out": table.repeated_lines, "measurements": study.steps}
    return data, f"{table.count} measurements read, {new} of them new{table.notice}"


EXPORT = Command(
    "export",
    "write the measurements, the points, the pending suggestions or the whole study to a file",
    "truvar export > measurements.csv\ntruvar export lake.xlsx\ntruvar export lake.db "
    "-o lake.json\ntruvar export lake.db --points -o lake.geojson",
    _export_arguments,
    _export,
)
IMPORT = Command(
    "import",
    "read a whole study from JSON into a store, or measurements from CSV or Excel into a study",
    "truvar import lake.json copy.db\ntruvar import measurements.csv lake.db",
    _import_arguments,
    _import,
)
