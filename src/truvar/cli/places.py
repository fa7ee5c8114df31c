"""`truvar exclude`, `fail` and `allow`: places that cannot be measured, and failures."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING, Any

from truvar._representation import visible
from truvar.cli._common import Command, add_json, add_options, given_options
from truvar.cli._store import open_study, own_words, study_arguments
from truvar.cli.tell import print_change, result_before
from truvar.exceptions import InvalidArgumentError
from truvar.messages import unknown_name
from truvar.study.commands import Allow, Exclude, Fail

if TYPE_CHECKING:
    from truvar.study.study import Study

PLACE = (
    "id of a suggestion or measurement, coordinates or label of a point, or a condition such as "
    "'x + y > 3'"
)
_COORDINATE = re.compile(r"[^<>=]+=[^<>=]+")


def _exclude_arguments(sub: argparse.ArgumentParser) -> None:
    study_arguments(sub, "PLACE", PLACE)
    add_options(sub, Exclude)
    add_json(sub, "the result")


def _exclude(arguments: argparse.Namespace) -> int:
    """Exclude a place and print what changed."""
    words = own_words(arguments)
    if not words:
        raise InvalidArgumentError(f"exclude expects a place, got none; give the {PLACE}")
    study = open_study(arguments)
    before = result_before(arguments, study)
    study.execute(Exclude(_place(words, study), **given_options(arguments, Exclude)))
    _print_places(study, before, "excluded", words)
    return 0


def _allow_arguments(sub: argparse.ArgumentParser) -> None:
    study_arguments(sub, "PLACE", PLACE)
    sub.add_argument("--all", action="store_true", help="allow every place")
    add_json(sub, "the result")


def _allow(arguments: argparse.Namespace) -> int:
    """Allow a place again and print what changed."""
    words = own_words(arguments)
    if bool(words) == arguments.all:
        given = f"{' '.join(words)} and --all" if words else "neither"
        raise InvalidArgumentError(
            f"allow expects a place or --all, got {given}; give one of the two"
        )
    study = open_study(arguments)
    before = result_before(arguments, study)
    study.execute(Allow(None if arguments.all else _place(words, study)))
    _print_places(study, before, "allowed", words or ["every place"])
    return 0


def _fail_arguments(sub: argparse.ArgumentParser) -> None:
    study_arguments(
        sub, "ID", "id of the suggestion whose measurement failed, or the coordinates of the point"
    )
    add_options(sub, Fail)
    add_json(sub, "the result")


def _fail(arguments: argparse.Namespace) -> int:
    """Record a failed measurement and print what changed."""
    words = own_words(arguments)
    if not words:
        raise InvalidArgumentError(
            "fail expects the id of a suggestion, got none; truvar status lists the ids"
        )
    study = open_study(arguments)
    before = result_before(arguments, study)
    what = _place(words, study)
    if isinstance(what, str):
        raise InvalidArgumentError(
            f"fail expects an id, a label or the coordinates of a point, got {what!r}; give one of "
            "them"
        )
    receipt = study.execute(Fail(what, **given_options(arguments, Fail)))
    _print_places(study, before, "failed", [str(receipt.ids[0])])
    return 0


def _place(words: list[str], study: Study) -> Any:
    """Return a place as `Study.exclude` takes it: an id, a point, or a condition."""
    if len(words) == 1 and words[0].isdecimal():
        return int(words[0])
    row = _labelled_row(words, study)
    if row is not None:
        return study.domain.point(row)
    if all(_COORDINATE.fullmatch(word) for word in words):
        point: dict[str, Any] = {}
        for word in words:
            name, _, text = (part.strip() for part in word.partition("="))
            if name not in study.domain.columns:
                raise InvalidArgumentError(unknown_name("column", name, study.domain.columns))
            point[name] = study.domain.parse(name, text)
        return point
    return " ".join(words)


def _labelled_row(words: list[str], study: Study) -> int | None:
    """Return the row of a table that a word labels; None if it labels none, or several."""
    from truvar.domain.labels import can_be_given, label_columns, rows_by_label

    if len(words) != 1 or not can_be_given(study.domain):
        return None
    name, equals_sign, text = words[0].partition("=")
    label = text if equals_sign and name in label_columns(study.domain) else words[0]
    return rows_by_label(study.domain).get(label)


def _print_places(study: Study, before: Any, verb: str, words: list[str]) -> None:
    from truvar.report.status import describe_infeasible

    now = print_change(study, before, verb, words, {verb: " ".join(words)})
    if before is not None:
        for term, text in describe_infeasible(study, now):
            print(visible(f"{term}: {text}"))


EXCLUDE = Command(
    "exclude",
    "exclude a place that cannot be measured: it is not suggested any more",
    "truvar exclude 5 --reason 'under a jetty'\ntruvar exclude lake.db 'distance_m > 1200 and "
    "depth_m < -15'",
    _exclude_arguments,
    _exclude,
)
FAIL = Command(
    "fail",
    "record that a measurement failed: the study learns where that is likely",
    "truvar fail 5 --reason 'probe stuck in weed'",
    _fail_arguments,
    _fail,
)
ALLOW = Command(
    "allow",
    "allow a place again that was excluded or withdrawn, or where a measurement failed",
    "truvar allow 5\ntruvar allow lake.db 'distance_m > 1200'\ntruvar allow --all",
    _allow_arguments,
    _allow,
)
