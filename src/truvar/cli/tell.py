"""`truvar tell`: enter measured values."""

from __future__ import annotations

import argparse
import sys

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
    add_path(
        sub,
        "--track",
        metavar="FILE",
        help="read values sampled en route: the mean of each candidate that was passed, with its "
        "noise, all or none; --noise-sd is that of one value, --cost that of the whole track",
    )
    sub.add_argument(
        "--within",
        metavar="COLUMN=DISTANCE",
        action="append",
        help="largest distance of a value of the track from its candidate (default: half the "
        "distance of neighbouring candidates); may be repeated",
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
    from truvar.study.measurements_io import answer_pending, parse_words, tell_all

    words = own_words(arguments)
    if arguments.track is not None:
        return _tell_track(arguments, words)
    if arguments.within is not None:
        raise InvalidArgumentError("--within is for --track; add --track FILE, or leave it out")
    if arguments.repeats:
        return _tell_repeats(arguments, words)
    notices: list[str] = []
    options = given_options(arguments, Tell)
    if arguments.csv is None:
        study = open_study(arguments)
        parsed = parse_words(words, study.domain, quantities=tuple(study.goal.parts), **options)
        measurements = answer_pending(parsed, study)
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


def _tell_track(arguments: argparse.Namespace, words: list[str]) -> int:
    """Tell the values of a track and print what became of them."""
    from truvar.report.terminal import TerminalStyle
    from truvar.study.measurements_io import skip_repeated, tell_all, without_keys
    from truvar.study.tracks import bin_track, track_measurements, value_column
    from truvar.tabular.tables import as_table

    options = given_options(arguments, Tell)
    allowed = ("noise_sd", "cost", "vehicle")
    others = [name for name, value in options.items() if value is not None and name not in allowed]
    if words or arguments.csv is not None or arguments.repeats or others:
        raise InvalidArgumentError(
            "--track takes a file, and no values, --csv, --repeats, --noise, --level, --task or "
            "--exposure; leave them out"
        )
    study = open_study(arguments)
    frame = as_table(arguments.track)
    track = bin_track(
        study.domain,
        frame,
        arguments.value or value_column(study, frame),
        within=_distances(arguments.within or []),
        noise_sd=options.get("noise_sd"),
    )
    measurements = track_measurements(study, track, options.get("cost"), options.get("vehicle"))
    new, repeated = skip_repeated(study, measurements)
    if arguments.again:
        new = without_keys(measurements)
        repeated = []
    notices = []
    if repeated:
        notices.append(
            f"{len(repeated)} of {len(measurements)} means of the track were told before and left "
            "out (--again tells them as second measurements)"
        )
    before = None if arguments.json else study.result()
    if before is not None:
        print(TerminalStyle.for_stream(sys.stdout).wrapped(str(track)))
    receipt = tell_all(study, new)
    warnings = [*receipt.warnings.values(), *notices]
    print_change(study, before, "told", receipt.ids, receipt.ids, warnings)
    return 0


def _distances(words: list[str]) -> dict[str, float]:
    """Return the distances of --within by column."""
    from truvar.tabular.numbers import parse_number

    distances = {}
    for word in words:
        name, equals_sign, text = word.rpartition("=")
        if not equals_sign:
            raise InvalidArgumentError(
                f"--within expects COLUMN=DISTANCE, got {word!r}; give one such as depth_m=2.5"
            )
        distances[name] = parse_number(text, f"the distance of {name}")
    return distances


TELL = Command(
    "tell",
    "enter measured values, by id, coordinates or label",
    "truvar tell 3 7.2\ntruvar tell lake.db 3 7.2 4 6.8\ntruvar tell distance_m=300 depth_m=-8 "
    "7.2\n"
    "truvar tell 'North pier' 7.2\n"
    "truvar tell 3 yield=82.1 impurity=0.4\n"
    "truvar tell --csv today.csv\n"
    "truvar tell --track glider.csv --value oxygen",
    _tell_arguments,
    _tell,
)
