"""`truvar init`: ask a few questions and write a commented problem file."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from truvar.cli._common import Command, add_path, positive
from truvar.cli._init_survey import add_survey_options, label_of_places, quantity, voyage
from truvar.exceptions import InvalidArgumentError, OutputError, TruvarError

T = TypeVar("T")
_MAX_TRIES = 5  # wrong answers to one question, after which the command ends
_GOAL_WORDS = {
    "max": "maximize",
    "min": "minimize",
    "above": "level_set",
    "below": "level_set_below",
    "level": "level_set",
    "within": "within",
    "within-min": "within_of_min",
    "map": "map",
    "maximum": "maximize",
    "minimum": "minimize",
}


def _init_arguments(sub: argparse.ArgumentParser) -> None:
    add_path(
        sub,
        "table",
        nargs="?",
        metavar="TABLE.csv",
        help="table with a row for each place that can be measured",
    )
    add_path(
        sub,
        "-o",
        "--out",
        metavar="PROBLEM.toml",
        type=Path,
        help="the problem file (default: TABLE.toml)",
    )
    sub.add_argument("--columns", metavar="A,B", help="the coordinates, separated by commas")
    sub.add_argument(
        "--goal",
        choices=("max", "min", "above", "below", "level", "within", "within-min", "map"),
        help="what to look for; above and below are those of a threshold, level is above, within "
        "is a margin of the highest value, within-min of the lowest, and map is the value "
        "everywhere",
    )
    sub.add_argument(
        "--threshold", type=float, help="threshold of above, below or level; margin of within"
    )
    sub.add_argument("--accuracy", type=float, help="accuracy of a map")
    sub.add_argument(
        "--repeats",
        type=positive(int),
        metavar="N",
        help="measurements of a place, at most; 1 if it cannot be measured again",
    )
    sub.add_argument(
        "--outcome",
        choices=("binary", "count"),
        help="what a measurement gives: yes or no, or a number of events (default: a number)",
    )
    add_survey_options(sub)
    sub.add_argument(
        "--defaults",
        action="store_true",
        help="ask nothing: take the default of all that is not given",
    )
    sub.add_argument("--force", action="store_true", help="replace an existing file")


def _init(arguments: argparse.Namespace) -> int:
    """Ask, write the file, check it and say what comes next."""
    from truvar.problem import load_problem
    from truvar.problem.template import problem_template

    ask = _Questions(arguments.defaults)
    answers = _answers(arguments, ask)
    path = arguments.out or Path(f"{answers.name}.toml")
    if path.exists() and not arguments.force:
        raise OutputError(
            f"{path} exists already; give another file with --out, or --force to replace it"
        )
    text = problem_template(_relative_table(answers, path))
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise OutputError(
            f"cannot write {path} ({error.strerror}); give another file with --out"
        ) from None
    print(f"wrote {path}")
    try:
        load_problem(path)
    except TruvarError as error:
        raise InvalidArgumentError(f"{path} was written, but must be corrected: {error}") from None
    print(f"next: truvar new {shlex.quote(str(path))}")
    return 0


def _answers(arguments: argparse.Namespace, ask: _Questions) -> Any:
    from truvar.problem.template import SIDES, ProblemAnswers

    table = arguments.table
    if table is None:
        table = ask(
            "Table of the places that can be measured (CSV or Excel file; empty: a box)",
            "",
            _existing_or_empty,
        )
    box: dict[str, tuple[float, float]] = {}
    label = None
    frame = None
    if table:
        from truvar.domain.domain import Domain
        from truvar.tabular.tables import is_netcdf, read_table

        if is_netcdf(table):  # its dimensions are the coordinates, and places have no names
            columns = list(Domain.from_xarray(table).columns)
        else:
            named = arguments.columns.split(",") if arguments.columns else None
            frame = read_table(table)
            columns = _columns_of_table(frame, named, ask)
            label = label_of_places(frame, columns, arguments.label, ask)
        name = Path(table).stem
    else:
        box = ask("Coordinates and their ranges, such as: x 0 1, depth_m -18 0", None, _sides)
        columns = list(box)
        name = ask("Name of the study", "study", str)
    measured, unit = quantity(arguments.quantity, ask)
    goal = _GOAL_WORDS.get(arguments.goal or "") or ask(
        "Look for the max, the min, the points above or below a threshold, or a map of the values "
        "everywhere (max/min/above/below/map)",
        "max",
        _goal,
    )
    outcome = arguments.outcome
    threshold = arguments.threshold
    if goal in SIDES and threshold is None:
        subject = {"binary": "probability of yes", "count": "rate"}.get(
            outcome or "", measured or "value"
        )
        in_units = f" ({unit})" if unit else ""
        threshold = ask(
            f"Threshold: where is the {subject} {SIDES[goal]} ...{in_units}", None, _number
        )
    accuracy = arguments.accuracy
    if goal == "map" and accuracy is None:
        accuracy = ask("Accuracy: know the value everywhere within ± ...", None, _number)
    noise = None
    if outcome is None:
        noise = ask("Standard deviation of a measurement (empty: learn it)", "", _precision)
    cost = ask("Cost of a measurement, in any unit, or learned", "1", _cost)
    travel: dict[str, float] = {}
    over_earth = voyage(columns, frame, arguments, ask)
    if over_earth is None:
        travel = ask(
            "Cost per unit of distance, such as distance_m=0.25 (empty: moving is free)",
            "",
            _rates(columns),
        )
    return ProblemAnswers(
        name=name,
        table=table or None,
        columns=columns,
        label=label,
        quantity=measured,
        unit=unit,
        box=box,
        goal=goal,
        threshold=threshold,
        noise=noise,
        outcome=outcome,
        cost=cost,
        travel=travel,
        voyage=over_earth,
        budget=ask("Total cost to spend (empty: no limit)", "", _optional_number),
        accuracy=accuracy,
        repeats=arguments.repeats,
    )


class _Questions:
    """Questions on the terminal, repeated until the answer can be used.

    Args:
        silent: Whether to take the defaults instead of asking.
    """

    def __init__(self, silent: bool) -> None:
        self._silent = silent

    def __call__(self, question: str, default: str | None, parse: Callable[[str], T]) -> T:
        """Ask one question.

        Args:
            question: The question.
            default: The answer that an empty line stands for; None: there must be one.
            parse: Turns the answer into a value, or raises `ValueError` with the reason.

        Raises:
            InvalidArgumentError: If there is no answer that can be used.
        """
        if self._silent:
            if default is None:
                raise InvalidArgumentError(
                    f"there is no default for: {question}; leave out --defaults, or give options"
                )
            return parse(default)
        shown = f" [{default}]" if default else ""
        for _ in range(_MAX_TRIES):
            print(f"{question}{shown}: ", end="", file=sys.stderr, flush=True)
            line = sys.stdin.readline()
            if not line:
                print(file=sys.stderr)
                raise InvalidArgumentError(
                    f"the input ended at the question: {question}; answer it, or give --defaults"
                )
            answer = line.strip() or default
            if answer is None:
                print("  an answer is needed", file=sys.stderr)
                continue
            try:
                return parse(answer)
            except ValueError as error:
                print(f"  {error}", file=sys.stderr)
        raise InvalidArgumentError(
            f"no answer could be used for: {question}; see truvar init --help"
        )


def _columns_of_table(frame: Any, named: Sequence[str] | None, ask: _Questions) -> list[str]:
    """Return the coordinates: as given, or asked for (default: complete columns of numbers)."""
    from truvar.messages import unknown_name
    from truvar.problem.template import MAX_COORDINATES

    every = [str(name) for name in frame.columns]
    complete = frame.dropna(
        axis="columns"
    )  # a column with gaps has the values so far rather than places
    numeric = [str(name) for name in complete.columns if frame[name].dtype.kind in "iuf"][
        :MAX_COORDINATES
    ]

    def parse(answer: str) -> list[str]:
        names = [name.strip() for name in answer.split(",") if name.strip()]
        for name in names:
            if name not in every:
                raise ValueError(unknown_name("column", name, every))
        if not names:
            raise ValueError("name at least one column")
        return names

    if named is not None:
        try:
            return parse(",".join(named))
        except ValueError as error:
            raise InvalidArgumentError(str(error)) from None
    default = ", ".join(numeric) or None
    return ask(f"Coordinates, of the columns {', '.join(every)}", default, parse)


def _relative_table(answers: Any, path: Path) -> Any:
    """Return the answers with the path of the table as seen from the problem file."""
    from dataclasses import replace

    if answers.table is None:
        return answers
    relative = os.path.relpath(answers.table, path.parent)
    return replace(answers, table=Path(relative).as_posix())


def _existing_or_empty(answer: str) -> str:
    if answer and not Path(answer).is_file():
        raise ValueError(f"there is no file {answer}")
    return answer


def _goal(answer: str) -> str:
    word = answer.lower()
    if word in _GOAL_WORDS.values():
        return word
    if word not in _GOAL_WORDS:
        raise ValueError("answer max, min, above, below or map")
    return _GOAL_WORDS[word]


def _number(answer: str) -> float:
    from truvar.tabular.numbers import parse_number

    try:
        return parse_number(answer, "the answer")
    except TruvarError as error:
        raise ValueError(str(error)) from None


def _cost(answer: str) -> float | None:
    """Return a cost; None: it is only known afterwards, and learned."""
    return None if answer.lower() == "learned" else _number(answer)


def _precision(answer: str) -> float | None:
    """Return a standard deviation, which may have the sign that it is shown with: ±0.2."""
    return _optional_number(re.sub(r"^(±|\+/?-)\s*", "", answer))


def _optional_number(answer: str) -> float | None:
    return _number(answer) if answer else None


def _rates(columns: Sequence[str]) -> Callable[[str], dict[str, float]]:
    def parse(answer: str) -> dict[str, float]:
        rates = {}
        for part in answer.split():
            name, equals_sign, text = part.strip(",").partition("=")
            if not equals_sign or name not in columns:
                raise ValueError(f"give COLUMN=RATE with one of {', '.join(columns)}")
            rates[name] = _number(text)
        return rates

    return parse


def _sides(answer: str) -> dict[str, tuple[float, float]]:
    sides = {}
    for part in answer.split(","):
        words = part.split()
        if len(words) != 3:
            raise ValueError(
                "give a name, the smallest and the largest value of each: x 0 1, depth_m -18 0"
            )
        low = _number(words[1])
        high = _number(words[2])
        if not low < high:
            raise ValueError(f"the range of {words[0]} must ascend, got {words[1]} to {words[2]}")
        sides[words[0]] = (low, high)
    return sides


INIT = Command(
    "init",
    "ask a few questions and write a commented problem file, from a table if there is one",
    "truvar init lake.csv\ntruvar init lake.csv --columns distance_m,depth_m --goal below "
    "--threshold 4 --defaults\ntruvar init stations.csv --goal below --threshold 4 --travel-km '8 "
    "kn' --harbour 18.5,54.4\ntruvar init tones.csv --outcome binary --goal above --threshold 0.75",
    _init_arguments,
    _init,
)
