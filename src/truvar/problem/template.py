"""A commented problem file from a few answers, as `truvar init` and forms need it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from truvar.exceptions import InvalidArgumentError

# Questions of the goals with a number: which points are looked for.
SIDES = {
    "level_set": "above",
    "level_set_below": "below",
    "within": "within this margin of the highest:",
    "within_of_min": "within this margin of the lowest:",
}
_GOALS = ("maximize", "minimize", *SIDES, "map")
MAX_COORDINATES = 20  # numeric columns that are taken for coordinates without being named


class VoyageLike(Protocol):
    """Travel over the Earth, as it is written into a problem file."""

    @property
    def longitude(self) -> str:
        """Column of the longitudes."""
        ...

    @property
    def latitude(self) -> str:
        """Column of the latitudes."""
        ...

    @property
    def rate(self) -> float:
        """Cost of a kilometre; 0: moving is free."""
        ...

    @property
    def comment(self) -> str:
        """Source of the rate."""
        ...

    @property
    def harbour(self) -> tuple[float, float] | None:
        """Longitude and latitude of the start; None: there is none."""
        ...

    @property
    def must_return(self) -> bool:
        """Whether the return leg must fit into the budget."""
        ...


@dataclass(frozen=True)
class ProblemAnswers:
    """The answers from which a problem file is written.

    Attributes:
        name: Name of the study.
        table: Path of the table of candidates, as it is written into the file; None for a box.
        columns: The coordinates; of a table, some of its columns.
        box: Smallest and largest value of each coordinate, without a table.
        goal: "maximize", "minimize", "map", or a key of `SIDES`.
        threshold: The threshold of a level set, or its margin.
        accuracy: The accuracy of a map.
        noise: Standard deviation of a measurement; None: learned.
        cost: Cost of a measurement; None: only known afterwards, and learned.
        travel: Cost per unit of distance along some coordinates.
        budget: Total cost to spend; None: no such limit.
        steps: Number of measurements; None: no such limit.
        repeats: Number of measurements of a place, at most; None: as many as pay.
        outcome: "binary" or "count", if a measurement gives that; None: a number.
        label: Column of the table with the names of the places; None: there is none.
        quantity: Name of what is measured; None: it has none.
        unit: Its unit; None: it has none.
        voyage: Travel over the Earth, if the columns are longitude and latitude.

    Raises:
        InvalidArgumentError: If a level set has no threshold, a map has no accuracy, or there are
            no coordinates.
    """

    name: str
    table: str | None
    columns: Sequence[str]
    box: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    goal: str = "maximize"
    threshold: float | None = None
    noise: float | None = None
    cost: float | None = 1.0
    travel: Mapping[str, float] = field(default_factory=dict)
    budget: float | None = None
    steps: int | None = None
    accuracy: float | None = None
    repeats: int | None = None
    outcome: str | None = None
    label: str | None = None
    quantity: str | None = None
    unit: str | None = None
    voyage: VoyageLike | None = None

    def __post_init__(self) -> None:
        if self.goal not in _GOALS:
            raise InvalidArgumentError(
                f"goal must be one of {', '.join(_GOALS)}, got {self.goal!r}; give one of them"
            )
        if self.goal in SIDES and self.threshold is None:
            raise InvalidArgumentError(
                "a level set needs a threshold or a margin, got none; give one such as 7.0"
            )
        if self.goal == "map" and self.accuracy is None:
            raise InvalidArgumentError("a map needs an accuracy, got none; give one such as 0.3")
        if self.outcome not in _OUTCOMES:
            raise InvalidArgumentError(
                f"outcome must be binary or count, got {self.outcome!r}; give one of them, or none"
            )
        if not self.columns:
            raise InvalidArgumentError(
                "a problem needs at least one coordinate, got none; name some columns"
            )


def problem_template(answers: ProblemAnswers) -> str:
    """Return a problem file with comments that say what else could be set.

    Args:
        answers: The answers.
    """
    sections = [
        _head(answers),
        _domain(answers),
        _goal(answers),
        *([_MODEL, _noise(answers)] if answers.outcome is None else []),
        _cost(answers),
        _run(answers),
    ]
    return "\n".join(sections)


_MODEL = """[model]
# Keys that are left out are learned from the measurements. Known values would be given as
# kernel = "matern52"            # or "matern32", "rbf"
# lengthscales = [100.0]         # one for each coordinate
# variance = 4.0                 # of the values around their mean
# mean = 2.5
"""


# by the outcome
_OUTCOMES = {
    None: "",
    "binary": 'outcome = "binary"  # a measurement gives yes (1) or no (0); thresholds are '
    "probabilities\n"
    '# outcome = {kind = "binary", guess = 0.5, lapse = 0.02}  # of two alternatives\n',
    "count": 'outcome = "count"  # a measurement gives a number of events; thresholds are rates\n'
    '# outcome = {kind = "count", exposure = 2.0}  # time, area or volume of a measurement\n',
}


def _head(answers: ProblemAnswers) -> str:
    return (
        "# A problem of truvar: what can be measured, what is sought, and what it costs.\n"
        "# Check it with `truvar new THIS_FILE --check`; all keys: "
        "docs/reference/problem-file.md.\n"
        f"name = {_text(answers.name)}\n"
        f"{_quantity(answers)}"
        f"{_repeats(answers.repeats)}"
        f"{_OUTCOMES[answers.outcome]}"
    )


def _quantity(answers: ProblemAnswers) -> str:
    if answers.quantity is None:
        return '# quantity = "oxygen"  # what is measured, and unit = "mg/l"\n'
    unit = "" if answers.unit is None else f"unit = {_text(answers.unit)}\n"
    return f"quantity = {_text(answers.quantity)}  # what is measured\n{unit}"


def _repeats(repeats: int | None) -> str:
    if repeats is None:
        return "# repeats = false  # measure every place once; or a maximum such as 3\n"
    if repeats == 1:
        return "repeats = false  # every place is measured once\n"
    return f"repeats = {repeats}  # measurements of a place, at most\n"


def _domain(answers: ProblemAnswers) -> str:
    if answers.table is not None:
        return (
            "[domain]\n"
            f"table = {_text(answers.table)}  # a row for each place that can be measured\n"
            f"columns = [{', '.join(map(_text, answers.columns))}]  # the coordinates\n"
            f"{_label(answers.label)}"
        )
    sides = ", ".join(
        f"{_key(name)} = [{low!r}, {high!r}]" for name, (low, high) in answers.box.items()
    )
    return f"[domain]\nbox = {{{sides}}}  # any point between these ends can be measured\n"


def _label(label: str | None) -> str:
    if label is None:
        return '# label = "station"  # the column with the names of the places\n'
    return f"label = {_text(label)}  # the names of the places\n"


def _goal(answers: ProblemAnswers) -> str:
    if answers.goal in SIDES:
        question = f"where is the {_subject(answers)} {SIDES[answers.goal]} this?"
        if answers.goal.startswith("within"):
            question = f"where is the {_subject(answers)} {SIDES[answers.goal].rstrip(':')} value?"
        return f"[goal]\n{answers.goal} = {answers.threshold!r}  # {question}\n"
    if answers.goal == "map":
        return f"[goal]\nmap = {answers.accuracy!r}  # know the value everywhere, within ± this\n"
    which = "largest" if answers.goal == "maximize" else "smallest"
    return (
        f"[goal]\n{answers.goal} = true  # where is the {_subject(answers)} {which}?\n"
        "# level_set = 7.0  # or: where is it above 7?\n"
        "# level_set_below = 4.0  # or: where is it below 4?\n"
        "# within = 0.02  # or: where is it within 0.02 of the highest value?\n"
        "# map = 0.3  # or: what is it everywhere, within ±0.3?\n"
    )


def _subject(answers: ProblemAnswers) -> str:
    """Return what the goal is about."""
    value = answers.quantity or "value"
    return {"binary": "probability of yes", "count": "rate"}.get(answers.outcome or "", value)


def _noise(answers: ProblemAnswers) -> str:
    lines = ["[noise]"]
    if answers.noise is None:
        lines.append("# sd = 0.1  # of a measurement, its standard deviation; left out: learned")
    else:
        lines.append(f"sd = {answers.noise!r}  # of a measurement: its standard deviation")
    return "\n".join(lines) + "\n"


def _cost(answers: ProblemAnswers) -> str:
    lines = ["[cost]"]
    if answers.cost is None:
        lines += [
            "learned = true  # told with each value",
            "# prior = 10.0  # what a measurement is expected to cost before any is known",
        ]
    else:
        lines.append(f"base = {answers.cost!r}  # of each measurement, in any unit")
    if answers.voyage is not None:
        lines += _voyage(answers.voyage)
    elif answers.travel:
        rates = ", ".join(f"{_key(name)} = {rate!r}" for name, rate in answers.travel.items())
        lines.append(f"travel = {{{rates}}}  # cost per unit of distance from the last place")
    else:
        lines.append(
            f"# travel = {{{_key(answers.columns[0])} = 0.25}}  # cost per unit of distance from the "
            "last place"
        )
    return "\n".join(lines) + "\n"


def _voyage(voyage: VoyageLike) -> list[str]:
    columns = f"longitude = {_text(voyage.longitude)}, latitude = {_text(voyage.latitude)}"
    start = f"{_key(voyage.longitude)} = 18.5, {_key(voyage.latitude)} = 54.4"
    if voyage.rate == 0:
        return [
            f"# great_circle = {{{columns}, rate = 0.1}}  # cost of a kilometre",
            f"# start = {{{start}}}  # the harbour",
        ]
    lines = [f"great_circle = {{{columns}, rate = {voyage.rate!r}}}  # {voyage.comment}"]
    if voyage.harbour is None:
        lines.append(f"# start = {{{start}}}  # the harbour; without it the first leg is free")
        return lines
    longitude, latitude = voyage.harbour
    lines.append(
        f"start = {{{_key(voyage.longitude)} = {longitude!r}, {_key(voyage.latitude)} = "
        f"{latitude!r}}}  # the harbour"
    )
    if voyage.must_return:
        lines.append("must_return = true  # the return leg must fit into the budget")
    else:
        lines.append("# must_return = true  # the return leg must fit into the budget")
    lines.append('# sampling = "along"  # if values are sampled en route too')
    return lines


def _run(answers: ProblemAnswers) -> str:
    lines = ["[run]"]
    budget = f"budget = {answers.budget!r}" if answers.budget is not None else "# budget = 500.0"
    lines.append(f"{budget}  # total cost to spend")
    steps = f"steps = {answers.steps}" if answers.steps is not None else "# steps = 60"
    lines.append(f"{steps}  # number of measurements")
    if answers.goal in SIDES:
        lines.append("# f1 = 0.95  # stop when the answer is this good with 97.5 % probability")
    elif answers.goal == "map":
        lines.append(
            f"accuracy = {answers.accuracy!r}  # stop when 99 % of the points are known within ± "
            "this, with 95 % probability"
        )
    else:
        lines.append(
            "# regret = 0.1  # stop when the answer is this close to the optimum with 97.5 % "
            "probability"
        )
    return "\n".join(lines) + "\n"


def _text(text: str) -> str:
    """Return a text as TOML, whose basic strings are those of JSON."""
    return json.dumps(text, ensure_ascii=False)


def _key(name: str) -> str:
    """Return a key of TOML, quoted where it must be."""
    is_bare = name.isascii() and name.replace("_", "").replace("-", "").isalnum()
    return name if is_bare else _text(name)
