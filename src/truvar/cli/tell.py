"""`truvar tell`: enter measured values."""

from __future__ import annotations

import argparse

from truvar.cli._common import Command, add_json, add_options, add_path, given_options
from truvar.cli._measurements import add_table_options, read_measurements
from truvar.cli._store import open_study, own_words, study_arguments
from truvar.cli.changes import print_change
from truvar.exceptions import InvalidArgumentError
from truvar.study.commands import Tell, TellRepeats


def _tell_arguments(sub: argparse.ArgumentParser) -> None:
    study_arguments(
        sub,
        "ID VALUE",
        "id, coordinates or label of a row, and the value; repeated for further measurements",
    )
    add_path(
        sub,
        "--csv",
        metavar="FILE",
        help="read measurements from a CSV file or Excel workbook, all or none; -: standard input",
    )
    add_table_options(sub)
    add_options(sub, Tell)
    sub.add_argument(
        "--repeats",
        action="store_true",
        help="all values are of the one id or point that comes first",
    )
    add_json(sub, "the result")


def _tell(arguments: argparse.Namespace) -> int:
    """Tell measured values and print how the classes changed."""
    from truvar.study.measurements_io import parse_words, tell_all

    words = own_words(arguments)
    if arguments.repeats:
        return _tell_repeats(arguments, words)
    notices: list[str] = []
    options = given_options(arguments, Tell)
    if arguments.csv is None:
        study = open_study(arguments)
        measurements = parse_words(
            words, study.domain, quantities=tuple(study.goal.parts), **options
        )
    elif words or any(value is not None for value in options.values()):
        raise InvalidArgumentError(
            "expected values from a CSV file or from the command line, got both; leave out one of "
            "them"
        )
    else:
        study = open_study(arguments)
        table = read_measurements(arguments.csv, study, arguments)
        measurements = table.new
        notices = [table.notice.removeprefix("; ")] if table.repeated else []
    before = None if arguments.json else study.result()
    receipt = tell_all(study, measurements)
    warnings = [*receipt.warnings.values(), *notices]
    print_change(study, before, "told", receipt.ids, receipt.ids, warnings)
    return 0


def _tell_repeats(arguments: argparse.Namespace, words: list[str]) -> int:
    """Tell several values of one suggestion or point and print how the classes changed."""
    from truvar.study.measurements_io import parse_words

    others = (arguments.csv, arguments.noise, arguments.noise_sd, arguments.cost)
    if any(other is not None for other in others):
        raise InvalidArgumentError(
            "--repeats takes values of one id or point and no other option; leave out --csv, "
            "--noise, --noise-sd and --cost"
        )
    study = open_study(arguments)
    if study.goal.parts:
        raise InvalidArgumentError(
            "--repeats is for studies of one quantity; tell each measurement by its coordinates"
        )
    is_point = bool(words) and words[0].partition("=")[0] in study.domain.columns
    count = len(study.domain.columns) if is_point else 1
    target = words[:count]
    values = words[count:]
    parsed = [parse_words([*target, value], study.domain)[0] for value in values or [""]]
    before = None if arguments.json else study.result()
    numbers = [measurement.value for measurement in parsed]
    command = TellRepeats(parsed[0].what, numbers, **given_options(arguments, TellRepeats))
    receipt = study.execute(command)
    warnings = list(receipt.warnings.values())
    print_change(study, before, "told", receipt.ids, receipt.ids, warnings)
    return 0


TELL = Command(
    "tell",
    "enter measured values, by id, coordinates or label",
    "truvar tell 3 7.2\ntruvar tell lake.db 3 7.2 4 6.8\ntruvar tell distance_m=300 depth_m=-8 "
    "7.2\n"
    "truvar tell 'North pier' 7.2\n"
    "truvar tell 3 yield=82.1 impurity=0.4\n"
    "truvar tell --csv today.csv",
    _tell_arguments,
    _tell,
)
