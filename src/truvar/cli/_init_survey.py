"""Questions of `truvar init` about a survey: names of places, the quantity, travel in kilometres."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from truvar.exceptions import InvalidArgumentError, TruvarError
from truvar.messages import unknown_name

_QUANTITY = re.compile(r"(?P<name>[^()\[\]]*?)\s*(?:[(\[](?P<unit>[^()\[\]]*)[)\]])?")
_SPEED = re.compile(
    r"(?P<number>.*?)\s*(?P<unit>km/h|kn|m/s|m/min|km/min|kmh|kph|knots?|kts?)", re.IGNORECASE
)
_OTHER_NAMES = {"kmh": "km/h", "kph": "km/h", "knot": "kn", "knots": "kn", "kt": "kn", "kts": "kn"}
# Kilometres in the unit of time of a speed, which is then the unit of costs.
_KILOMETRES = {"km/h": 1.0, "kn": 1.852, "m/s": 1e-3, "m/min": 1e-3, "km/min": 1.0}
_TIMES = {"km/h": "hours", "kn": "hours", "m/s": "seconds", "m/min": "minutes", "km/min": "minutes"}
_FAR_AWAY = 10.0  # degrees from the middle of the places; no harbour of a survey
_NEARBY = 5.0  # degrees from there
_YES = frozenset({"yes", "y", "true"})
_NO = frozenset({"no", "n", "false"})

T = TypeVar("T")


class Ask(Protocol):
    """A question on the terminal, repeated until the answer can be used."""

    def __call__(self, question: str, default: str | None, parse: Callable[[str], T]) -> T:
        """Return the answer."""
        ...


@dataclass(frozen=True)
class Voyage:
    """Travel over the Earth.

    Attributes:
        longitude: Column of the longitudes.
        latitude: Column of the latitudes.
        rate: Cost of a kilometre; 0: moving is free.
        comment: Where the rate comes from.
        harbour: Longitude and latitude of the start; None: there is none.
        must_return: Whether the return leg must fit into the budget.
    """

    longitude: str
    latitude: str
    rate: float
    comment: str
    harbour: tuple[float, float] | None
    must_return: bool


def add_survey_options(sub: argparse.ArgumentParser) -> None:
    """Add the options that answer the questions of this module."""
    sub.add_argument("--label", metavar="COLUMN", help="column with the names of the places")
    sub.add_argument(
        "--quantity",
        metavar="NAME",
        help="what is measured, with its unit, such as 'oxygen (mg/l)'",
    )
    sub.add_argument(
        "--travel-km",
        metavar="COST",
        help="with longitude and latitude: cost of a kilometre, or a speed such as '15 km/h' or "
        "'8 kn' if costs are hours, '250 m/min' if they are minutes",
    )
    sub.add_argument(
        "--harbour", metavar="LON,LAT", help="with longitude and latitude: where a boat starts"
    )
    sub.add_argument(
        "--must-return",
        action="store_true",
        help="the return leg to the harbour must fit into the budget",
    )


def label_of_places(frame: Any, columns: Sequence[str], given: str | None, ask: Ask) -> str | None:
    """Return the column with the names of the places; None: there is none.

    The question offers the first text column with a different name in every row; without one,
    nothing is asked.
    """
    every = [str(name) for name in frame.columns]

    def parse(answer: str) -> str | None:
        if not answer or answer.lower() == "none":
            return None
        if answer not in every:
            raise ValueError(unknown_name("column", answer, every))
        return answer

    if given is not None:
        return _parsed(parse, given)
    found = [name for name in every if name not in columns and is_label(frame[name])]
    if not found:
        return None
    return ask("Column with the names of the places, or none", found[0], parse)


def is_label(column: Any) -> bool:
    """Return whether a column of a table has a different text in every row."""
    is_text = column.dtype.kind in "OU" or str(column.dtype).startswith("str")
    return bool(is_text and len(column) > 1 and column.notna().all() and column.is_unique)


def quantity(given: str | None, ask: Ask) -> tuple[str | None, str | None]:
    """Return the name and the unit of what is measured; None: it has none."""
    if given is not None:
        return _parsed(_quantity, given)
    return ask("What is measured, such as oxygen (mg/l) (empty: no name)", "", _quantity)


def voyage(
    columns: Sequence[str], frame: Any, arguments: argparse.Namespace, ask: Ask
) -> Voyage | None:
    """Return the travel over the Earth; None: the columns are not longitude and latitude.

    Args:
        columns: The coordinates.
        frame: The table of the places; None: there is none, or it is a grid.
        arguments: The options of the command.
        ask: Asks a question.

    Raises:
        InvalidArgumentError: If there is an option about it, but no such columns.
    """
    from truvar.domain.geographic import recognise_degrees

    found = recognise_degrees(columns)
    if found is None:
        if arguments.travel_km or arguments.harbour or arguments.must_return:
            raise InvalidArgumentError(
                "--travel-km, --harbour and --must-return need columns of longitude and latitude, "
                f"got {', '.join(columns)}; name them with --columns, or rename them to lon and lat"
            )
        return None
    if arguments.travel_km is not None:
        rate, comment = _parsed(_rate, arguments.travel_km)
    else:
        rate, comment = ask(
            "Cost of a kilometre, or a speed such as 15 km/h or 8 kn if costs are hours (empty: "
            "moving is free)",
            "",
            _rate,
        )
    if rate == 0:
        return Voyage(*found, 0.0, "", None, False)
    is_known = frame is not None and all(frame[name].dtype.kind in "iuf" for name in found)
    place = _harbour(frame[list(found)] if is_known else None)
    if arguments.harbour is not None:
        harbour = _parsed(place, arguments.harbour)
    else:
        harbour = ask("Harbour, as longitude and latitude (empty: none)", "", place)
    must_return = arguments.must_return
    if harbour is not None and not must_return:
        must_return = ask("Must the return leg fit into the budget (yes/no)", "no", _is_yes)
    if must_return and harbour is None:
        raise InvalidArgumentError("--must-return needs a harbour; give --harbour LON,LAT")
    return Voyage(*found, rate, comment, harbour, must_return)


def _parsed(parse: Callable[[str], T], text: str) -> T:
    """Return the value of an option.

    Raises:
        InvalidArgumentError: If it cannot be used.
    """
    try:
        return parse(text)
    except ValueError as error:
        raise InvalidArgumentError(str(error)) from None


def _quantity(answer: str) -> tuple[str | None, str | None]:
    match = _QUANTITY.fullmatch(answer.strip())
    if match is None or (match["unit"] and not match["name"]):
        raise ValueError(f"give a name and a unit in parentheses, got {answer!r}")
    return match["name"] or None, match["unit"] or None


def _rate(answer: str) -> tuple[float, str]:
    """Return the cost of a kilometre, and where it comes from."""
    if not answer:
        return 0.0, ""
    match = _SPEED.fullmatch(answer.strip())
    if match is None:
        try:
            rate = _number(answer)
        except ValueError:
            raise ValueError(
                "give the cost of a kilometre such as 0.5, or a speed such as 15 km/h or 8 kn, got "
                f"{answer!r}"
            ) from None
        if rate < 0:
            raise ValueError(f"the cost of a kilometre must be >= 0, got {answer}")
        return rate, "cost of a kilometre"
    speed = _number(match["number"])
    if not speed > 0:
        raise ValueError(f"the speed must be above 0, got {answer}")
    own = match["unit"].lower()
    unit = _OTHER_NAMES.get(own, own)
    kilometres = speed * _KILOMETRES[unit]
    comment = f"{_TIMES[unit]} for a kilometre at {answer.strip()}"
    return float(f"{1 / kilometres:.6g}"), comment


def _place(answer: str) -> tuple[float, float] | None:
    if not answer:
        return None
    words = [word for word in re.split(r"[;\s]+|,\s*", answer.strip()) if word]
    if len(words) != 2:
        raise ValueError(f"give longitude and latitude such as 18.5 54.4, got {answer!r}")
    longitude = _number(words[0])
    latitude = _number(words[1])
    if not (-180 <= longitude <= 360 and -90 <= latitude <= 90):
        raise ValueError(f"longitude and latitude must be degrees, in this order, got {answer!r}")
    return longitude, latitude


def _harbour(places: Any) -> Callable[[str], tuple[float, float] | None]:
    """Return a parser of a harbour that refuses latitude and longitude in the wrong order.

    Args:
        places: Longitude and latitude of every place; None: they are not known.
    """

    def parse(answer: str) -> tuple[float, float] | None:
        harbour = _place(answer)
        if harbour is None or places is None:
            return harbour
        longitude, latitude = harbour
        middle = places.mean()
        distance = abs(middle.iloc[0] - longitude) + abs(middle.iloc[1] - latitude)
        swapped = abs(middle.iloc[0] - latitude) + abs(middle.iloc[1] - longitude)
        if distance > _FAR_AWAY and swapped < _NEARBY:
            raise ValueError(
                f"the harbour is far from all places, and near them as longitude {latitude:g} and "
                f"latitude {longitude:g}; give the longitude first"
            )
        return harbour

    return parse


def _is_yes(answer: str) -> bool:
    if answer.lower() in _YES:
        return True
    if answer.lower() in _NO:
        return False
    raise ValueError("answer yes or no")


def _number(text: str) -> float:
    from truvar.tabular.numbers import parse_number

    try:
        return parse_number(text, "the answer")
    except TruvarError as error:
        raise ValueError(str(error)) from None
