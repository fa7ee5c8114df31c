"""Read measurements from words of the command line or a table, and tell all or none."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from math import isclose
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from truvar._typing import Array
from truvar.domain.domain import Domain
from truvar.domain.labels import can_be_given, label_columns, labelled_point, rows_by_label
from truvar.domain.rounding import shown_numbers
from truvar.exceptions import InvalidArgumentError, InvalidMeasurementError, TruvarError
from truvar.messages import format_point, unknown_name
from truvar.study._inputs import as_label, located, remedy_of_word
from truvar.study.commands import Receipt, Tell, TellAll
from truvar.tabular.csv_cells import unquote_cell
from truvar.tabular.delimited import (
    DelimitedText,
    NumberFormat,
    find_column,
    from_rows,
    is_missing,
    read_cells,
)
from truvar.tabular.labels import label_key
from truvar.tabular.numbers import as_integer, parse_integer, parse_number
from truvar.tabular.tables import excel_rows
from truvar.validation import check_finite

if TYPE_CHECKING:
    from truvar.study.base import BaseStudy
    from truvar.study.study import Study

# of measurements beside id, coordinates and value; who: a vehicle
_OPTION_COLUMNS = (
    "noise",
    "noise_sd",
    "cost",
    "exposure",
    "level",
    "task",
    "vehicle",
    "who",
    "reference",
)
_IGNORED_COLUMNS = (
    "index",
    "label",
    "spent",
    "repeats",
    "measure",
)  # columns of `Study.measurements` that a study computes itself
_OF_POINTS = frozenset({"level", "task", "vehicle"})  # options that suggestions decide themselves
_SHOWN_DIGITS = 6  # significant digits of coordinates on cards and maps
_TABLE_TOLERANCE = 1e-7  # relative; coordinates in a CSV file have eight digits


@dataclass(frozen=True)
class MeasurementInput:
    """One measurement to tell.

    Attributes:
        what: Id of the suggestion, or the point by column.
        value: The measured value; by quantity, if there are several.
        options: Further arguments of `Study.tell`.
        source: Where it was read, such as "line 3"; opens the message if it is refused.
        is_named: Whether the point was given by the label of its row.
    """

    what: int | Mapping[str, Any]
    value: Any
    options: Mapping[str, Any] = field(default_factory=dict)
    source: str = ""
    is_named: bool = False

    @property
    def command(self) -> Tell:
        """The command that records it."""
        return Tell(self.what, self.value, **self.options)


def tell_all(study: Study, measurements: Iterable[MeasurementInput]) -> Receipt:
    """Tell measurements in order, in one transaction. Warnings are those of the receipt.

    Raises:
        TruvarError: If one of them is refused. None has been told then.
    """
    told = list(measurements)
    return study.execute(TellAll([each.command for each in told], [each.source for each in told]))


def answer_pending(
    measurements: Iterable[MeasurementInput], study: BaseStudy
) -> list[MeasurementInput]:
    """Return the measurements, those of named rows as answers to the suggestions pending there.

    A further value of a row, and one with a level, task or vehicle of its own, is that of a point.
    """
    pending = list(study.pending)
    answers = []
    for each in measurements:
        found = None
        if each.is_named and not _OF_POINTS & each.options.keys():
            found = next((other for other in pending if dict(other.point) == each.what), None)
        if found is not None:
            pending.remove(found)
            each = replace(each, what=found.id)
        answers.append(each)
    return answers


def parse_words(
    words: Sequence[str],
    domain: Domain,
    *,
    corrects: bool = False,
    quantities: Sequence[str] = (),
    **options: Any,
) -> list[MeasurementInput]:
    """Parse measurements from words of the command line.

    Args:
        words: `3 7.2` is the value 7.2 of suggestion 3, `x=300 y=-8 7.2` that of a point, `Mole
            7.2` that of the row of a table with this label, which is `label=12 7.2` for a label
            that is a whole number. Several may follow each other.
        domain: The domain of the study.
        corrects: Whether the values take the place of others, so that none of them can fail.
        quantities: Quantities of the study, if there are several: `3 yield=82.1 impurity=0.4`.
        **options: Further arguments of `Study.tell` for all of them; None is left out.

    Raises:
        InvalidMeasurementError: If the words are not of that form.
    """
    given = {name: value for name, value in options.items() if value is not None}
    if quantities:
        return _parse_several(words, domain, quantities, given)
    measurements: list[MeasurementInput] = []
    point: dict[str, Any] = {}
    what: int | dict[str, Any] | None = None  # a suggestion or a row, which a value must follow
    what_word = ""
    for word in words:
        name, equals_sign, text = word.rpartition("=")
        if what is None and not point and not (equals_sign and name in domain.columns):
            what = _parse_target(word, domain)
            what_word = shlex.quote(word)
        elif equals_sign:
            if what is not None or name in point:
                raise InvalidMeasurementError(
                    f"expected a value before {word!r}; see truvar tell --help"
                )
            if name not in domain.columns:
                raise InvalidMeasurementError(unknown_name("coordinate", name, domain.columns))
            point[name] = _parse_value(domain, name, text)
        elif what is not None:
            value = _parse_measured(word, what_word, corrects=corrects)
            is_named = not isinstance(what, int)
            measurements.append(MeasurementInput(what, value, given, is_named=is_named))
            what = None
        else:
            shown = _point_as_shown(domain, point)
            target = format_point(shown, style="cli", digits=_SHOWN_DIGITS)
            measurements.append(
                MeasurementInput(shown, _parse_measured(word, target, corrects=corrects), given)
            )
            point = {}
    if what is not None:
        whose = f"suggestion {what}" if isinstance(what, int) else what_word
        raise InvalidMeasurementError(
            f"the value of {whose} is missing; give it after the id or label"
        )
    if point:
        raise InvalidMeasurementError(
            "the value of the last point is missing; give it after the coordinates"
        )
    if not measurements:
        example = " ".join(f"{name}=..." for name in domain.columns)
        raise InvalidMeasurementError(
            f"there is nothing to tell; give ID VALUE, or coordinates and a value: {example} VALUE"
        )
    return measurements


def _parse_several(
    words: Sequence[str],
    domain: Domain,
    quantities: Sequence[str],
    options: Mapping[str, Any],
) -> list[MeasurementInput]:
    """Parse measurements of several quantities: `3 yield=82.1 impurity=0.4`, `x=0.5 yield=80`.

    The next measurement begins with an id or a label, or with a coordinate after values.
    """
    measurements: list[MeasurementInput] = []
    what: Any = None
    point: dict[str, Any] = {}
    values: dict[str, Any] = {}
    example = " ".join(f"{name}=VALUE" for name in quantities)

    def end() -> None:
        nonlocal what, point, values
        if what is None and not point and not values:
            return
        if not values or (what is None and not point):
            missing = "values of a measurement are" if not values else "id or point of values is"
            raise InvalidMeasurementError(f"the {missing} missing; write ID {example}")
        target = _point_as_shown(domain, point) if what is None else what
        is_named = isinstance(what, dict)
        measurements.append(MeasurementInput(target, values, options, is_named=is_named))
        what = None
        point = {}
        values = {}

    for word in words:
        name, equals_sign, text = word.rpartition("=")
        if equals_sign and name in quantities:
            if name in values:
                raise InvalidMeasurementError(f"{name} is given twice; leave out {word!r}")
            values[name] = None if is_missing(text) else parse_number(text, f"the value of {name}")
            continue
        if values:
            end()
        if equals_sign and name in domain.columns:
            point[name] = _parse_value(domain, name, text)
        elif equals_sign and name not in label_columns(domain):
            names = [*quantities, *domain.columns]
            raise InvalidMeasurementError(unknown_name("quantity", name, names))
        else:
            if what is not None:
                raise InvalidMeasurementError(
                    f"the quantity of the value {word!r} is missing; write ID {example}"
                )
            what = _parse_target(word, domain)
    end()
    if not measurements:
        raise InvalidMeasurementError(f"there is nothing to tell; write ID {example}")
    return measurements


def _parse_target(word: str, domain: Domain) -> int | dict[str, Any]:
    """Return the id, or the point of the labelled row, that a word stands for."""
    if word.isdecimal():
        return int(word)
    name, equals_sign, text = word.partition("=")
    if equals_sign and name in label_columns(domain):
        return labelled_point(domain, text)
    if name in domain.columns:  # the last "=" of the word has another name
        raise InvalidMeasurementError(
            f"coordinates must be separate words, got {word!r}; write them with spaces between"
        )
    if equals_sign:
        raise InvalidMeasurementError(
            unknown_name("coordinate", name, [*domain.columns, *label_columns(domain)])
        )
    if domain.has_row_names and can_be_given(domain):
        return labelled_point(domain, word)
    return parse_integer(word)


def _parse_measured(word: str, target: str, *, corrects: bool) -> float:
    """Return a measured value; refuse a word for a missing one, with the command for it.

    Args:
        word: The value.
        target: The words that say what was measured.
        corrects: Whether it takes the place of another value.
    """
    label = as_label(word)
    if label is not None:
        return label
    if not is_missing(word):
        try:
            return parse_number(word, "the measured value")
        except InvalidMeasurementError as error:
            raise InvalidMeasurementError(f"{error}{remedy_of_word(word)}") from None
    remedy = f"or say that the measurement failed: truvar fail {target} --reason TEXT"
    if corrects:
        remedy = f"or withdraw the measurement: truvar withdraw {target}"
    raise InvalidMeasurementError(
        f"the measured value must be a finite number, got {word!r}; give one, {remedy}"
    )


def parse_csv(text: str, study: Study, value: str | None = None) -> list[MeasurementInput]:
    """Parse measurements from the text of a CSV file, whatever its delimiter and decimal sign.

    The columns are `id` or the coordinates, `value`, and optionally noise or noise_sd, cost, level,
    task and who; a name may have a unit behind it, such as "depth (m)". If a line has both an id
    and coordinates, the id counts if the study knows it at that very point, and the point otherwise: a
    file that truvar has written tells nothing twice to the study it came from, and everything to
    another one. Lines without a value are left out.

    Args:
        text: The text.
        study: The study.
        value: Name of the column of values; None: "value".

    Raises:
        InvalidMeasurementError: If the text cannot be read; the message names the line.
    """
    try:
        return _parse(read_cells(text), study, value)
    except InvalidMeasurementError:
        raise
    except InvalidArgumentError as error:
        raise InvalidMeasurementError(f"{error} (nothing of the file was told)") from None


def parse_workbook(
    path: str | Path, study: Study, value: str | None = None
) -> list[MeasurementInput]:
    """Parse measurements from the first sheet of an Excel workbook, as `parse_csv`.

    Raises:
        InvalidMeasurementError: If the workbook cannot be read; the message names the line.
        MissingDependencyError: If openpyxl is not installed.
    """
    try:
        header, *rows = excel_rows(path)
        return _parse(from_rows(header[1], rows), study, value)
    except InvalidMeasurementError:
        raise
    except (OSError, ValueError, InvalidArgumentError) as error:
        raise InvalidMeasurementError(f"{path} cannot be read ({error}); check the file") from None


def _parse(content: DelimitedText, study: Study, value: str | None) -> list[MeasurementInput]:
    reader = MeasurementReader(
        study.domain,
        known_points(study),
        content.header,
        value,
        content.numbers,
        has_vehicles=bool(study.vehicles),
        quantities=tuple(study.goal.parts),
    )
    measurements = []
    for line, row in content.rows:
        cells = [None if is_missing(cell) else cell for cell in row]
        measurement = reader.read(cells, f"line {line}")
        if measurement is not None:
            measurements.append(measurement)
    return measurements


def skip_repeated(
    study: BaseStudy, measurements: Sequence[MeasurementInput]
) -> tuple[list[MeasurementInput], list[MeasurementInput]]:
    """Split measurements into those to tell and those that were told before from a table.

    A row is told before if the study has a measurement with its key, which is made of everything in
    the row and of how many equal rows precede it in the table; or one with its id, value and cost.
    Its noise may differ, as an exported file has the noise that was learned by then.
    """
    records = study.measurement_records()
    told = {record.key for record in records if record.key is not None}
    by_id = {record.id: record for record in records}
    new: list[MeasurementInput] = []
    repeated: list[MeasurementInput] = []
    for measurement in measurements:
        record = by_id.get(measurement.what) if isinstance(measurement.what, int) else None
        is_told = measurement.options.get("key") in told
        if record is not None:
            known = record.value if record.values is None else dict(record.values)
            is_told = known == measurement.value and measurement.options.get("cost") in (
                None,
                record.cost,
            )
        (repeated if is_told else new).append(measurement)
    return new, repeated


def without_keys(measurements: Iterable[MeasurementInput]) -> list[MeasurementInput]:
    """Return measurements that are told whether they were told before or not."""
    kept = []
    for measurement in measurements:
        options = {name: option for name, option in measurement.options.items() if name != "key"}
        kept.append(replace(measurement, options=options))
    return kept


class MeasurementReader:
    """Reads the rows of a table of measurements.

    Args:
        domain: The domain of the study.
        points: Points of suggestions and measurements by id.
        header: Names of the columns.
        value: Name of the column of values; None: "value".
        numbers: Format of numbers that are text.
        has_vehicles: Whether the study has vehicles; otherwise they are those of another study.
        quantities: Quantities of the study, if there are several: each has a column.

    Raises:
        InvalidMeasurementError: If a column is unknown, duplicated or missing.
    """

    def __init__(
        self,
        domain: Domain,
        points: Mapping[int, Mapping[str, float]],
        header: Sequence[str],
        value: str | None = None,
        numbers: NumberFormat | None = None,
        *,
        has_vehicles: bool = False,
        quantities: Sequence[str] = (),
    ) -> None:
        self._quantities = {
            name: f"{name}_" if name in domain.columns else name for name in quantities
        }
        self._domain = domain
        self._points = points
        self._numbers = numbers or NumberFormat()
        self._has_vehicles = has_vehicles
        names = ("id", "value", *_OPTION_COLUMNS, *_IGNORED_COLUMNS)
        # A name that a coordinate has already gets an underscore, as in `Study.measurements`.
        self._columns = {name: f"{name}_" if name in domain.columns else name for name in names}
        if value is not None:
            self._columns["value"] = value
        # Of a study of several quantities, the columns with their names count.
        self._columns |= self._quantities
        self._header = self._named([unquote_cell(name) for name in header])
        self._label = self._label_column()
        self._check_header()
        self._rows = {} if self._label is None else rows_by_label(domain)
        self._seen: Counter[str] = Counter()

    @cached_property
    def _shown_numbers(self) -> Array:
        """The points of the domain as they are shown: the same for all rows."""
        return shown_numbers(self._domain)

    def _named(self, header: Sequence[str]) -> list[str]:
        """Return the header with the study's own names for columns that have a unit behind them."""
        own = [*self._domain.columns, *self._columns.values()]
        names = list(header)
        for name in own:
            found = find_column(header, name)
            if found is not None and name not in header:
                names[names.index(found)] = name
        return names

    def _label_column(self) -> str | None:
        """Return the column of labels of the places; None if there is none, or it is not needed."""
        labels = self._domain.labels
        is_said = self._columns["id"] in self._header or set(self._domain.columns) <= set(
            self._header
        )
        if is_said or labels is None or labels.levels:
            return None
        names = [self._columns["label"], *[name for name in labels.names if isinstance(name, str)]]
        return next((name for name in names if name in self._header), None)

    def _check_header(self) -> None:
        header = self._header
        coordinates = self._domain.columns
        known = [*coordinates, *self._columns.values()]
        if self._label is not None:
            known.append(self._label)
        others = (
            () if self._domain.frame is None else self._domain.frame.columns
        )  # of the user's table
        for name in header:
            if name not in known and name not in others:
                raise InvalidMeasurementError(f"line 1: {unknown_name('column', name, known)}")
            if header.count(name) > 1:
                raise InvalidMeasurementError(
                    f"line 1: column {name!r} is duplicated; remove one of the two"
                )
        if self._quantities:
            if not any(column in header for column in self._quantities.values()):
                raise InvalidMeasurementError(
                    f"line 1: a column of {' or '.join(self._quantities.values())} is missing, got "
                    f"{', '.join(header)}; add one"
                )
        elif self._columns["value"] not in header:
            raise InvalidMeasurementError(
                f"line 1: column {self._columns['value']!r} is missing, got {', '.join(header)}; "
                "add it"
            )
        missing = [name for name in coordinates if name not in header]
        if self._columns["id"] not in header and self._label is None and missing:
            raise InvalidMeasurementError(
                f"line 1: expected a column {self._columns['id']!r} or all coordinates, but "
                f"{', '.join(missing)} is "
                "missing; add it"
            )

    def read(self, row: Sequence[Any], source: str) -> MeasurementInput | None:
        """Return the measurement of a row; None if it has no value.

        Args:
            row: The cells: text or numbers, None where nothing is given.
            source: Where the row is, such as "line 3".

        Raises:
            TruvarError: If it cannot be read.
        """
        try:
            if len(row) != len(self._header):
                raise InvalidMeasurementError(
                    f"expected {len(self._header)} values, got {len(row)}; fix the line"
                )
            return self._read(dict(zip(self._header, row, strict=True)), source)
        except TruvarError as error:
            raise located(error, source) from None

    def _read(self, cells: Mapping[str, Any], source: str) -> MeasurementInput | None:
        value = self._value(cells)
        if value is None:
            return None
        options = self._options(cells)
        given = cells.get(self._columns["id"])
        id_ = None if given is None else as_integer(given)
        point = self._point(cells)
        if id_ is not None and (point is None or _is_same_point(self._points.get(id_), point)):
            options.pop("level", None)  # a suggestion has its own level and task
            options.pop("task", None)
            options.pop("vehicle", None)
            return MeasurementInput(id_, value, options, source)
        if point is None:
            raise InvalidMeasurementError(
                "neither an id nor all coordinates are given; give one of them"
            )
        shown = _point_as_shown(self._domain, point, lambda: self._shown_numbers)
        return MeasurementInput(
            shown, value, {**options, "key": self._key(shown, value, options)}, source
        )

    def _value(self, cells: Mapping[str, Any]) -> Any:
        """Return the value of a row, or those of several quantities; None if it has none."""
        if not self._quantities:
            cell = cells[self._columns["value"]]
            if cell is None:
                return None
            label = as_label(cell)
            return self._number(cell, "the value") if label is None else label
        values = {}
        for name, column in self._quantities.items():
            if cells.get(column) is not None:
                values[name] = self._number(cells[column], f"the value of {name}")
        return values or None

    def _key(self, point: Mapping[str, Any], value: Any, options: Mapping[str, Any]) -> str:
        """Return a key that recognises the same row of the same table; equal rows are numbered."""
        # Keys are stored: they have the name of an earlier release for a vehicle.
        named = {"who" if name == "vehicle" else name: each for name, each in options.items()}
        content = repr((sorted(point.items()), value, sorted(named.items())))
        self._seen[content] += 1
        return f"row-{sha256(f'{content} {self._seen[content]}'.encode()).hexdigest()[:32]}"

    def _options(self, cells: Mapping[str, Any]) -> dict[str, Any]:
        options: dict[str, Any] = {}
        for name in _OPTION_COLUMNS:
            if self._quantities and name in ("noise", "level"):
                continue  # those of the first quantity, which the study knows
            cell = cells.get(self._columns[name])
            if cell is None:
                continue
            if name in ("task", "reference"):
                options[name] = unquote_cell(str(cell))
            elif name in ("vehicle", "who"):
                if self._has_vehicles:
                    options["vehicle"] = unquote_cell(str(cell))
            elif name == "level":
                options[name] = as_integer(cell)
            else:
                options[name] = self._number(cell, name)
        return options

    def _point(self, cells: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the coordinates of a row, if need be by its label; None if they are unknown."""
        if self._label is not None:
            return self._labelled(cells[self._label])
        if any(cells.get(name) is None for name in self._domain.columns):
            return None
        return {name: self._coordinate(cells[name], name) for name in self._domain.columns}

    def _labelled(self, cell: Any) -> dict[str, Any] | None:
        if cell is None:
            return None
        label = label_key(unquote_cell(cell) if isinstance(cell, str) else cell)
        return labelled_point(self._domain, label, self._rows)

    def _coordinate(self, cell: Any, name: str) -> Any:
        """Return the value of a coordinate: a number, or text in the type of its column."""
        if self._domain.is_plain:
            return self._number(cell, name)
        if not isinstance(cell, str):
            return cell
        try:
            return self._numbers.parse(cell)
        except ValueError:
            return _parse_value(self._domain, name, unquote_cell(cell))

    def _number(self, cell: Any, name: str) -> float:
        try:
            return check_finite(self._numbers.parse(cell) if isinstance(cell, str) else cell, name)
        except (ValueError, InvalidArgumentError):
            remedy = remedy_of_word(cell) if isinstance(cell, str) and name == "the value" else ""
            raise InvalidMeasurementError(
                f"{name} must be a finite number, got {cell!r}; correct it{remedy}"
            ) from None


def known_points(study: BaseStudy) -> dict[int, dict[str, Any]]:
    """Return the points of all pending suggestions and measurements by id."""
    points = {suggestion.id: dict(suggestion.point) for suggestion in study.pending}
    for record in study.measurement_records():
        points[record.id] = dict(record.point)
    return points


def _point_as_shown(
    domain: Domain, point: dict[str, Any], numbers_as_shown: Callable[[], Array] | None = None
) -> dict[str, Any]:
    """Return the only point of the domain that is shown as the given one, or the given one itself.

    Args:
        domain: The domain.
        point: The point by column.
        numbers_as_shown: Returns `shown_numbers(domain)`, where many points are read; None:
            computed.
    """
    if domain.continuous or any(name not in point for name in domain.columns):
        return point
    try:
        x = domain.numbers(domain.array(point)[None, :])[0]
    except TruvarError:
        return point  # it is refused with a message where it is told
    exponent = np.floor(np.log10(np.abs(x), out=np.full(len(x), -np.inf), where=x != 0))
    half_unit = 0.5000001 * 10.0 ** (
        exponent - (_SHOWN_DIGITS - 1)
    )  # of the last digit, with room for rounding
    numbers = domain.numbers(domain.points)
    as_shown = shown_numbers(domain) if numbers_as_shown is None else numbers_as_shown()
    written = np.abs(as_shown - x) <= _TABLE_TOLERANCE * half_unit
    matches = (written | (np.abs(numbers - x) <= half_unit)).all(axis=1)
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
        return isclose(known, value, rel_tol=_TABLE_TOLERANCE)
    return bool(known == value)


def _parse_value(domain: Domain, name: str, text: str) -> Any:
    """Return the value of a coordinate that a text means."""
    if domain.is_plain:
        return parse_number(text, name)
    try:
        return domain.parse(name, text)
    except InvalidArgumentError:
        raise InvalidMeasurementError(
            f"{name} must be a finite number, got {text!r}; correct it"
        ) from None
