"""`truvar tell`, `correct`, `withdraw` and `note`: change the event log of a study."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from truvar.cli._common import Command, add_json, add_options, add_path, given_options
from truvar.cli._measurements import add_table_options, read_measurements
from truvar.cli._store import open_study, own_words, study_arguments
from truvar.exceptions import InvalidArgumentError
from truvar.study.commands import Correct, Note, Receipt, Tell, TellRepeats, Withdraw

if TYPE_CHECKING:
    from truvar.study.result import Result
    from truvar.study.study import Study


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
    notice = ""
    options = given_options(arguments, Tell)
    if arguments.csv is None:
        study = open_study(arguments)
        measurements = parse_words(words, study.domain, **options)
    elif words or any(value is not None for value in options.values()):
        raise InvalidArgumentError(
            "expected values from a CSV file or from the command line, got both; leave out one of "
            "them"
        )
    else:
        study = open_study(arguments)
        table = read_measurements(arguments.csv, study, arguments)
        measurements = table.new
        notice = table.notice.removeprefix("; ")
    before = result_before(arguments, study)
    _print_receipt(arguments, study, before, "told", tell_all(study, measurements), notice)
    return 0


def _tell_repeats(arguments: argparse.Namespace, words: list[str]) -> int:
    """Tell several values of one suggestion or point and print how the classes changed."""
    from truvar.study.measurements_io import parse_words

    if arguments.csv is not None or arguments.noise is not None or arguments.cost is not None:
        raise InvalidArgumentError(
            "--repeats takes values of one id or point and no other option; leave out --csv, "
            "--noise and --cost"
        )
    study = open_study(arguments)
    is_point = bool(words) and words[0].partition("=")[0] in study.domain.columns
    count = len(study.domain.columns) if is_point else 1
    target = words[:count]
    values = words[count:]
    parsed = [parse_words([*target, value], study.domain)[0] for value in values or [""]]
    before = result_before(arguments, study)
    numbers = [measurement.value for measurement in parsed]
    command = TellRepeats(parsed[0].what, numbers, **given_options(arguments, TellRepeats))
    _print_receipt(arguments, study, before, "told", study.execute(command))
    return 0


def _correct_arguments(sub: argparse.ArgumentParser) -> None:
    study_arguments(sub, "ID VALUE", "id of the measurement, and its correct value")
    add_options(sub, Correct)
    add_json(sub, "the result")


def _correct(arguments: argparse.Namespace) -> int:
    """Correct a measured value and print how the classes changed."""
    from truvar.study.measurements_io import parse_words

    words = own_words(arguments)
    if len(words) != 2 or not words[0].isdecimal():
        given = " ".join(words) or "nothing"
        raise InvalidArgumentError(
            f"correct expects ID VALUE, got {given}; truvar status lists the ids"
        )
    study = open_study(arguments)
    before = result_before(arguments, study)
    (measurement,) = parse_words(words, study.domain, corrects=True)
    id_: Any = measurement.what
    receipt = study.execute(Correct(id_, measurement.value, **given_options(arguments, Correct)))
    _print_receipt(arguments, study, before, "corrected", receipt)
    return 0


def _withdraw_arguments(sub: argparse.ArgumentParser) -> None:
    study_arguments(
        sub,
        "ID",
        "ids of suggestions that will not be measured, or of measurements made by mistake",
    )
    add_options(sub, Withdraw)
    add_json(sub, "the result")


def _withdraw(arguments: argparse.Namespace) -> int:
    """Withdraw suggestions or measurements and print how the classes changed."""
    words = own_words(arguments)
    if not words:
        raise InvalidArgumentError(
            "withdraw expects at least one id, got none; truvar status lists the ids"
        )
    for word in words:
        if not word.isdecimal():
            raise InvalidArgumentError(
                f"withdraw expects ids, got {word!r}; truvar status lists the ids"
            )
    ids = [int(word) for word in words]
    study = open_study(arguments)
    before = result_before(arguments, study)
    pending = [suggestion.id for suggestion in study.pending if suggestion.id in ids]
    with study.transaction():
        for id_ in ids:
            study.execute(Withdraw(id_, **given_options(arguments, Withdraw)))
    print_change(study, before, "withdrawn", ids, {"withdrawn": ids})
    if pending and not arguments.again and not arguments.json:
        listed = ", ".join(map(str, pending))
        _print_text(f"not suggested again until allowed: {listed} (truvar allow {pending[0]})")
    return 0


def _note_arguments(sub: argparse.ArgumentParser) -> None:
    study_arguments(sub, "TEXT", "text of the note")
    add_json(sub, "the result")


def _note(arguments: argparse.Namespace) -> int:
    """Add a note to the event log."""
    text = " ".join(own_words(arguments)).strip()
    if not text:
        raise InvalidArgumentError(
            "a note needs a text, got none; give one: truvar note 'the probe was cleaned'"
        )
    study = open_study(arguments)
    study.execute(Note(text))
    if arguments.json:
        print_change(study, None, "noted", [], {"noted": text})
    else:
        _print_text("noted")
    return 0


def result_before(arguments: argparse.Namespace, study: Study) -> Result | None:
    """Return the result before a change, for the text to compare with; None with --json."""
    return None if arguments.json else study.result()


def print_change(
    study: Study, before: Result | None, verb: str, ids: Sequence[Any], data: dict[str, Any]
) -> Result:
    """Print what a command changed, and return the result after it, which is built once.

    Args:
        study: The study after the change.
        before: Result before the change; None: print JSON.
        verb: What was done with the ids, such as "told".
        ids: Ids of the measurements or suggestions that changed.
        data: What was done, for the JSON output.
    """
    from truvar.report.tables import to_json
    from truvar.report.tell_summary import tell_summary

    now = study.result()
    if before is None:
        print(to_json({**data, "result": now.to_dict()}))
    else:
        _print_text(tell_summary(ids, before, now, verb))
    return now


def _print_receipt(
    arguments: argparse.Namespace,
    study: Study,
    before: Result | None,
    verb: str,
    receipt: Receipt,
    notice: str = "",
) -> None:
    """Print what a command changed, and its warnings (with --json as part of the output)."""
    ids = list(receipt.ids)
    warnings = [*receipt.warnings.values(), *([notice] if notice else [])]
    changed = ids[0] if verb == "corrected" else ids
    print_change(study, before, verb, ids, {verb: changed, "warnings": warnings})
    if not arguments.json:
        from truvar.report.terminal import TerminalStyle

        terminal = TerminalStyle.for_stream(sys.stderr)
        for warning in warnings:
            print(terminal.wrapped(f"truvar: {warning}"), file=sys.stderr)


def _print_text(text: str) -> None:
    from truvar.report.terminal import TerminalStyle

    print(TerminalStyle.for_stream(sys.stdout).wrapped(text))


TELL = Command(
    "tell",
    "enter measured values, by id, coordinates or label",
    "truvar tell 3 7.2\ntruvar tell lake.db 3 7.2 4 6.8\ntruvar tell distance_m=300 depth_m=-8 "
    "7.2\n"
    "truvar tell 'North pier' 7.2\n"
    "truvar tell --csv today.csv",
    _tell_arguments,
    _tell,
)
CORRECT = Command(
    "correct", "correct a measured value", "truvar correct 3 2.7", _correct_arguments, _correct
)
WITHDRAW = Command(
    "withdraw",
    "withdraw suggestions that will not be measured, or measurements made by mistake",
    "truvar withdraw 5\ntruvar withdraw lake.db 5 6",
    _withdraw_arguments,
    _withdraw,
)
NOTE = Command(
    "note",
    "add a note to the event log",
    "truvar note 'the probe was cleaned'",
    _note_arguments,
    _note,
)
