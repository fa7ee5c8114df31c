"""Read measurements from command-line words or a CSV file, and tell them to a study all together or not at all."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from io import StringIO
from math import isclose
from typing import Any

import numpy as np

from truvar.domain.domain import Domain
from truvar.exceptions import InvalidArgumentError, InvalidMeasurementError, TruvarError
from truvar.messages import unknown_name
from truvar.study.csv_cells import unquote_cell
from truvar.study.study import Study
from truvar.validation import check_finite

OPTION_COLUMNS = ("noise", "cost", "level", "task", "who")
IGNORED_COLUMNS = ("index", "spent", "repeats")  # columns of `Study.measurements` that a study computes itself
SHOWN_DIGITS = 6  # significant digits of coordinates on cards and maps
TABLE_TOLERANCE = 1e-7  # relative; coordinates in a CSV file have eight digits


@dataclass(frozen=True)
class MeasurementInput:
    """One measurement to tell.

    Attributes:
        what: Id of the suggestion, or the point by column.
        value: The measured value.
        options: Further arguments of `Study.tell`.
        source: Where it was read, such as "line 3"; opens the message if it is refused.
    """

    what: int | Mapping[str, Any]
    value: float
    options: Mapping[str, Any] = field(default_factory=dict)
    source: str = ""


def tell_all(study: Study, measurements: Iterable[MeasurementInput]) -> list[int]:
    """Tell measurements in order, in one transaction.

    Returns:
        Their ids.

    Raises:
        TruvarError: If one of them is refused. None has been told then.
    """
    ids = []
    with study.transaction():
        for measurement in measurements:
            try:
                ids.append(study.tell(measurement.what, measurement.value, **measurement.options))
            except TruvarError as error:
                raise _located(error, measurement.source) from None
    return ids


def parse_words(words: Sequence[str], domain: Domain, **options: Any) -> list[MeasurementInput]:
    """Parse measurements from words of the command line.

    Args:
        words: `3 7.2` is the value 7.2 of suggestion 3, `x=300 y=-8 7.2` that of a point. Several may follow each
            other.
        domain: The domain of the study.
        **options: Further arguments of `Study.tell` for all of them; None is left out.

    Raises:
        InvalidMeasurementError: If the words are not of that form.
    """
    given = {name: value for name, value in options.items() if value is not None}
    measurements: list[MeasurementInput] = []
    point: dict[str, Any] = {}
    id_: int | None = None
    for word in words:
        name, equals_sign, text = word.rpartition("=")
        if equals_sign:
            if id_ is not None or name in point:
                raise InvalidMeasurementError(f"expected a value before {word!r}; see truvar tell --help")
            if name not in domain.columns:
                raise InvalidMeasurementError(unknown_name("coordinate", name, domain.columns))
            point[name] = _parse_value(domain, name, text)
        elif id_ is not None:
            measurements.append(MeasurementInput(id_, _parse_number(word, "the measured value"), given))
            id_ = None
        elif point:
            shown = _point_as_shown(domain, point)
            measurements.append(MeasurementInput(shown, _parse_number(word, "the measured value"), given))
            point = {}
        else:
            id_ = _parse_integer(word)
    if id_ is not None:
        raise InvalidMeasurementError(f"the value of suggestion {id_} is missing; give it after the id")
    if point:
        raise InvalidMeasurementError("the value of the last point is missing; give it after the coordinates")
    if not measurements:
        example = " ".join(f"{name}=..." for name in domain.columns)
        raise InvalidMeasurementError(
            f"there is nothing to tell; give ID VALUE, or coordinates and a value: {example} VALUE"
        )
    return measurements


def parse_csv(text: str, study: Study) -> list[MeasurementInput]:
    """Parse measurements from the text of a CSV file.

    The columns are `id` or the coordinates, `value`, and optionally noise, cost, level, task and who. Where a line has
    both an id and coordinates, the id counts if the study knows it at that very point, and the point otherwise: a file
    that truvar has written tells nothing twice to the study it came from, and everything to another one.

    Raises:
        InvalidMeasurementError: If the text cannot be read; the message names the line.
    """
    lines = csv.reader(StringIO(text.lstrip("\ufeff")), strict=True)
    try:
        rows = [(lines.line_num, row) for row in lines if any(cell.strip() for cell in row)]
    except csv.Error as error:
        raise InvalidMeasurementError(f"line {lines.line_num}: not valid CSV ({error}); fix the line") from None
    if not rows:
        raise InvalidMeasurementError("the file is empty; its first line must name the columns, for example id,value")
    reader = _LineReader(study, [unquote_cell(name.strip()) for name in rows[0][1]])
    measurements = []
    for line, row in rows[1:]:
        source = f"line {line}"
        try:
            measurements.append(reader.read(row, source))
        except TruvarError as error:
            raise _located(error, source) from None
    return measurements


class _LineReader:
    """Reads the lines of a CSV file below its header."""

    def __init__(self, study: Study, header: list[str]) -> None:
        self._domain = study.domain
        self._header = header
        self._has_vehicles = bool(study.vehicles)
        self._points = _known_points(study)
        names = ("id", "value", *OPTION_COLUMNS, *IGNORED_COLUMNS)
        # A name that a coordinate has already gets an underscore, as in `Study.measurements`.
        self._columns = {name: f"{name}_" if name in self._domain.columns else name for name in names}
        self._check_header()

    def _check_header(self) -> None:
        header = self._header
        coordinates = self._domain.columns
        known = [*coordinates, *self._columns.values()]
        for name in header:
            if name not in known:
                raise InvalidMeasurementError(f"line 1: {unknown_name('column', name, known)}")
            if header.count(name) > 1:
                raise InvalidMeasurementError(f"line 1: column {name!r} is duplicated; remove one of the two")
        if self._columns["value"] not in header:
            raise InvalidMeasurementError(
                f"line 1: column {self._columns['value']!r} is missing, got {', '.join(header)}; add it"
            )
        missing = [name for name in coordinates if name not in header]
        if self._columns["id"] not in header and missing:
            raise InvalidMeasurementError(
                f"line 1: expected a column {self._columns['id']!r} or all coordinates, but {', '.join(missing)} is "
                "missing; add it"
            )

    def read(self, row: Sequence[str], source: str) -> MeasurementInput:
        """Return the measurement of a line."""
        if len(row) != len(self._header):
            raise InvalidMeasurementError(f"expected {len(self._header)} values, got {len(row)}; fix the line")
        cells = {name: cell.strip() for name, cell in zip(self._header, row, strict=True)}
        value = _parse_number(cells[self._columns["value"]], "the value")
        options = self._options(cells)
        id_text = cells.get(self._columns["id"], "")
        id_ = _parse_integer(id_text) if id_text else None
        point = self._point(cells)
        if id_ is not None and (point is None or _is_same_point(self._points.get(id_), point)):
            options.pop("level", None)  # a suggestion has its own level and task
            options.pop("task", None)
            options.pop("who", None)
            return MeasurementInput(id_, value, options, source)
        if point is None:
            raise InvalidMeasurementError("neither an id nor all coordinates are given; give one of them")
        return MeasurementInput(_point_as_shown(self._domain, point), value, options, source)

    def _options(self, cells: Mapping[str, str]) -> dict[str, Any]:
        options: dict[str, Any] = {}
        for name in OPTION_COLUMNS:
            cell = cells.get(self._columns[name], "")
            if not cell:
                continue
            if name == "task" or (name == "who" and self._has_vehicles):
                options[name] = unquote_cell(cell)
            elif name == "who":
                continue  # a file of another study
            elif name == "level":
                options[name] = _parse_integer(cell)
            else:
                options[name] = _parse_number(cell, name)
        return options

    def _point(self, cells: Mapping[str, str]) -> dict[str, Any] | None:
        """Return the coordinates of a line; None if one is missing."""
        if not all(cells.get(name) for name in self._domain.columns):
            return None
        return {name: _parse_value(self._domain, name, cells[name]) for name in self._domain.columns}


def _located(error: TruvarError, source: str) -> TruvarError:
    """Return the same error with the place where the measurement was read."""
    if not source:
        return error
    return type(error)(f"{source}: {error} (nothing of the file was told)")


def _known_points(study: Study) -> dict[int, dict[str, Any]]:
    """Return the points of all pending suggestions and measurements by id."""
    points = {suggestion.id: dict(suggestion.point) for suggestion in study.pending}
    for row in study.measurements.itertuples(index=False, name=None):
        points[int(row[0])] = dict(zip(study.domain.columns, row[2:], strict=False))
    return points


def _point_as_shown(domain: Domain, point: dict[str, Any]) -> dict[str, Any]:
    """Return the only point of the domain that is shown as the given one on cards and maps, or the given one itself."""
    if domain.continuous or any(name not in point for name in domain.columns):
        return point
    if domain.parameters:
        try:
            x = domain.numbers(domain.array(point)[None, :])[0]
        except TruvarError:
            return point  # it is refused with a message where it is told
    else:
        x = np.array([point[name] for name in domain.columns])
    exponent = np.floor(np.log10(np.abs(x), out=np.full(len(x), -np.inf), where=x != 0))
    half_unit = 0.5000001 * 10.0 ** (exponent - (SHOWN_DIGITS - 1))  # of the last digit, with room for rounding
    matches = (np.abs(domain.numbers(domain.points) - x) <= half_unit).all(axis=1)
    if matches.sum() != 1:
        return point
    return domain.point(int(np.argmax(matches)))


def _is_same_point(known: Mapping[str, Any] | None, point: Mapping[str, Any]) -> bool:
    """Return whether two points agree in the digits that a CSV file has."""
    if known is None:
        return False
    return all(_is_same_value(known[name], x) for name, x in point.items())


def _is_same_value(known: Any, value: Any) -> bool:
    if isinstance(known, (int, float)) and isinstance(value, (int, float)):
        return isclose(known, value, rel_tol=TABLE_TOLERANCE)
    return bool(known == value)


def _parse_value(domain: Domain, name: str, text: str) -> Any:
    """Return the value of a coordinate that a text means."""
    if not domain.parameters:
        return _parse_number(text, name)
    try:
        return domain.parse(name, text)
    except InvalidArgumentError:
        raise InvalidMeasurementError(f"{name} must be a finite number, got {text!r}; correct it") from None


def _parse_number(text: str, name: str) -> float:
    try:
        return check_finite(float(text), name)
    except (ValueError, InvalidArgumentError):
        raise InvalidMeasurementError(f"{name} must be a finite number, got {text!r}; correct it") from None


def _parse_integer(text: str) -> int:
    if not text.isdecimal():
        raise InvalidMeasurementError(f"an id or level must be a whole number, got {text!r}; correct it")
    return int(text)
