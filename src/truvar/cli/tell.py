"""`truvar tell`, `correct`, `withdraw` and `note`: what the crew brings back."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from truvar.cli._common import Command
from truvar.cli._store import open_study, study_arguments, words_of
from truvar.exceptions import TruvarError

if TYPE_CHECKING:
    from truvar.study.study import Study


def _tell_arguments(sub: argparse.ArgumentParser) -> None:
    study_arguments(sub, "ID VALUE", "an id and its value, or coordinates and a value, one after the other")
    sub.add_argument("--csv", metavar="FILE", help="tell the lines of a CSV file, all or none; - is standard input")
    _options(sub)
    sub.add_argument("--level", type=int, help="which noise level was used, where a point is told")
    sub.add_argument("--task", help="what was measured, where a point is told")
    sub.add_argument("--json", action="store_true", help="print where the study stands then as JSON")


def _options(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--noise", type=float, metavar="VARIANCE", help="the variance it really had")
    sub.add_argument("--cost", type=float, help="what it really cost")


def _tell(arguments: argparse.Namespace) -> int:
    """Tell measured values."""
    from truvar.report.tell_summary import tell_summary, unexpected_values
    from truvar.study.measurements_io import parse_csv, parse_words, tell_all

    words = words_of(arguments)
    options = {name: getattr(arguments, name) for name in ("noise", "cost", "level", "task")}
    if arguments.csv is None:
        study = open_study(arguments)
        told = parse_words(words, study.domain, **options)
    elif words or any(value is not None for value in options.values()):
        raise TruvarError("values come from a CSV file or from the command line, but both were given; leave out one")
    else:
        text = read_text(arguments.csv)
        study = open_study(arguments)
        told = parse_csv(text, study)
    before, doubts = study.result(), unexpected_values(study, told)
    ids = tell_all(study, told)
    _say(arguments, study, tell_summary(ids, before, study), {"told": ids, "doubts": doubts})
    for doubt in doubts if not arguments.json else []:
        print(f"truvar: {doubt}", file=sys.stderr)
    return 0


def _correct_arguments(sub: argparse.ArgumentParser) -> None:
    study_arguments(sub, "ID VALUE", "the id of the measurement, and its right value")
    _options(sub)
    sub.add_argument("--json", action="store_true", help="print where the study stands then as JSON")


def _correct(arguments: argparse.Namespace) -> int:
    """Replace a value that was told wrong."""
    from truvar.report.tell_summary import tell_summary
    from truvar.study.measurements_io import parse_words

    study = open_study(arguments)
    before = study.result()
    words = words_of(arguments)
    if len(words) != 2 or "=" in words[0]:
        raise TruvarError(f"correct takes ID VALUE, but {' '.join(words) or 'nothing'} came; see truvar status for ids")
    (told,) = parse_words(words, study.domain)
    study.correct(told.what, told.value, noise=arguments.noise, cost=arguments.cost)  # type: ignore[arg-type]
    _say(arguments, study, tell_summary([told.what], before, study, "corrected"), {"corrected": told.what})
    return 0


def _withdraw_arguments(sub: argparse.ArgumentParser) -> None:
    study_arguments(sub, "ID", "suggestions that will not be measured, or measurements that were a mistake")
    sub.add_argument("--json", action="store_true", help="print where the study stands then as JSON")


def _withdraw(arguments: argparse.Namespace) -> int:
    """Take back suggestions or measurements."""
    from truvar.report.tell_summary import tell_summary

    ids = words_of(arguments)
    for word in ids:
        if not word.isdecimal():
            raise TruvarError(f"withdraw takes ids, but {word!r} came; truvar status shows them")
    if not ids:
        raise TruvarError("withdraw takes the ids of what is taken back, but none came; truvar status shows them")
    study = open_study(arguments)
    before = study.result()
    with study.together():
        for word in ids:
            study.withdraw(int(word))
    _say(arguments, study, tell_summary(ids, before, study, "withdrawn"), {"withdrawn": [int(word) for word in ids]})
    return 0


def _note_arguments(sub: argparse.ArgumentParser) -> None:
    study_arguments(sub, "TEXT", "the remark")
    sub.add_argument("--json", action="store_true", help="print where the study stands then as JSON")


def _note(arguments: argparse.Namespace) -> int:
    """Write a remark into the journal."""
    text = " ".join(words_of(arguments)).strip()
    if not text:
        raise TruvarError("a note needs a text, but none came; give it: truvar note 'the probe was cleaned'")
    study = open_study(arguments)
    study.note(text)
    _say(arguments, study, "noted", {"noted": text})
    return 0


def read_text(path: str) -> str:
    """A file, or standard input."""
    try:
        return sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise TruvarError(f"{path} must be text in UTF-8, but it is not ({error.reason}); save it as such") from None
    except OSError as error:
        raise TruvarError(f"{path} cannot be read ({error.strerror}); check the path") from None


def _say(arguments: argparse.Namespace, study: Study, text: str, data: dict[str, Any]) -> None:
    from truvar.report.tables import to_json
    from truvar.report.terminal import TerminalStyle

    print(
        to_json({**data, "result": study.result().to_dict()})
        if arguments.json
        else TerminalStyle.for_stream(sys.stdout).plain(text)
    )


TELL = Command(
    "tell",
    "tell measured values, by id or by coordinates",
    "truvar tell 3 7.2\ntruvar tell lake.db 3 7.2 4 6.8\ntruvar tell distance_m=300 depth_m=-8 7.2\n"
    "truvar tell --csv today.csv",
    _tell_arguments,
    _tell,
)
CORRECT = Command(
    "correct", "replace a value that was told wrong", "truvar correct 3 2.7", _correct_arguments, _correct
)
WITHDRAW = Command(
    "withdraw",
    "take back suggestions that will not be measured, or measurements that were a mistake",
    "truvar withdraw 5\ntruvar withdraw lake.db 5 6",
    _withdraw_arguments,
    _withdraw,
)
NOTE = Command("note", "write a remark into the journal", "truvar note 'the probe was cleaned'", _note_arguments, _note)
