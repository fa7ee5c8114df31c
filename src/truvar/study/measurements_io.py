"""Values as people bring them, words or the lines of a CSV file, told to a study all together or not at all."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from io import StringIO
from typing import Any

import numpy as np

from truvar.domain.domain import Domain
from truvar.exceptions import TruvarError
from truvar.study.study import Study
from truvar.validation import check_finite

OPTIONS = ("noise", "cost", "level", "task")
IGNORED = ("index", "spent")  # of a table that truvar itself has written


@dataclass(frozen=True)
class MeasurementInput:
    """One value: of a suggestion by its id or of a point, with what else was said of it."""

    what: int | Mapping[str, float]
    value: float
    options: Mapping[str, Any] = field(default_factory=dict)
    where: str = ""  # in a file


def tell_all(study: Study, told: Iterable[MeasurementInput]) -> list[int]:
    """Tells them in order, and gives their ids. If one is refused, none was told."""
    ids = []
    with study.together():
        for one in told:
            try:
                ids.append(study.tell(one.what, one.value, **one.options))
            except TruvarError as error:
                raise TruvarError(
                    f"{one.where}: {error} (nothing of the file was told)" if one.where else str(error)
                ) from None
    return ids


def parse_words(words: Sequence[str], domain: Domain, **options: Any) -> list[MeasurementInput]:
    """`3 7.2` is the value 7.2 of suggestion 3, `x=300 y=-8 7.2` that of a point; several may follow each other."""
    columns = domain.columns
    given = {name: value for name, value in options.items() if value is not None}
    told: list[MeasurementInput] = []
    point: dict[str, float] = {}
    id_: int | None = None
    for word in words:
        name, is_coordinate, text = word.rpartition("=")
        if is_coordinate:
            if id_ is not None or name in point:
                raise TruvarError(f"a value must come before {word!r}, but there is none; see truvar tell --help")
            if name not in columns:
                raise TruvarError(f"the coordinates are {', '.join(columns)}, but {name!r} came; correct the name")
            point[name] = _number(text, name)
        elif point or id_ is not None:
            what = _as_shown(domain, point) if id_ is None else id_
            told.append(MeasurementInput(what, _number(word, "the measured value"), given))
            point, id_ = {}, None
        else:
            id_ = _id(word)
    if not told and not point and id_ is None:
        raise TruvarError(
            "a value to tell is missing; give ID VALUE, or the coordinates and the value: "
            f"{' '.join(f'{name}=...' for name in columns)} VALUE"
        )
    if point or id_ is not None:
        raise TruvarError(f"the value of {'the last point' if point else f'suggestion {id_}'} is missing; give it")
    return told


def parse_csv(text: str, study: Study) -> list[MeasurementInput]:
    """The lines of a CSV file with a header: `id` or the coordinates, `value`, and noise, cost, level, task if need be.

    Where a line has both, the id counts if this study knows it at that very point, and the point otherwise: a file that
    truvar has written tells nothing twice to the study it came from, and all of it to another.
    """
    columns = study.domain.columns
    own = {name: f"{name}_" if name in columns else name for name in ("id", "value", *OPTIONS, *IGNORED)}
    lines = csv.reader(StringIO(text.lstrip("\ufeff")), strict=True)
    try:
        rows = [(lines.line_num, row) for row in lines if any(cell.strip() for cell in row)]
    except csv.Error as error:
        raise TruvarError(f"line {lines.line_num}: this is no CSV ({error}); mend the line") from None
    if not rows:
        raise TruvarError("the file is empty; its first line must name the columns, for example id,value")
    header = [name.strip() for name in rows[0][1]]
    _check_header(header, columns, own)
    places = _places(study)
    told = []
    for line, row in rows[1:]:
        if len(row) != len(header):
            raise TruvarError(
                f"line {line}: there must be {len(header)} values, but there are {len(row)}; mend the line"
            )
        cells = {name: cell.strip() for name, cell in zip(header, row, strict=True)}
        try:
            told.append(_read_line(cells, study.domain, own, places, f"line {line}"))
        except TruvarError as error:
            raise TruvarError(f"line {line}: {error} (nothing of the file was told)") from None
    return told


def _check_header(header: list[str], columns: Sequence[str], own: Mapping[str, str]) -> None:
    known = {*columns, *own.values()}
    for name in header:
        if name not in known or header.count(name) > 1:
            why = "is there twice" if name in known else "means nothing here"
            raise TruvarError(f"line 1: the column {name!r} {why}; there may be {', '.join([*columns, *own.values()])}")
    if own["value"] not in header:
        raise TruvarError(f"line 1: there must be a column {own['value']!r}, but there are {', '.join(header)}; add it")
    missing = [name for name in columns if name not in header]
    if own["id"] not in header and missing:
        raise TruvarError(
            f"line 1: there must be a column {own['id']!r} or all coordinates, but {', '.join(missing)} is missing; "
            "add it"
        )


def _read_line(
    cells: Mapping[str, str], domain: Domain, own: Mapping[str, str], places: Mapping[int, Any], where: str
) -> MeasurementInput:
    columns = domain.columns
    value = _number(cells[own["value"]], "the value")
    named = cells.get(own["id"], "")
    id_ = _id(named) if named else None
    options: dict[str, Any] = {}
    for name in OPTIONS:
        cell = cells.get(own[name], "")
        if cell:
            options[name] = cell if name == "task" else _id(cell) if name == "level" else _number(cell, name)
    point = None
    if all(cells.get(name) for name in columns):
        point = {name: _number(cells[name], name) for name in columns}
    if id_ is not None and (point is None or _same(places.get(id_), point)):
        for name in ("level", "task"):  # a suggestion has its own
            options.pop(name, None)
        return MeasurementInput(id_, value, options, where)
    if point is None:
        raise TruvarError("neither an id nor all coordinates are given; give one of them")
    return MeasurementInput(_as_shown(domain, point), value, options, where)


def _places(study: Study) -> dict[int, dict[str, float]]:
    """Where everything that has an id is or was to be measured."""
    places = {suggestion.id: dict(suggestion.point) for suggestion in study.pending}
    told = study.measurements
    for row in told.itertuples(index=False, name=None):
        places[int(row[0])] = dict(zip(study.domain.columns, row[2:], strict=False))
    return places


def _as_shown(domain: Domain, point: dict[str, float]) -> dict[str, float]:
    """The point of the domain that a point is as cards and maps show it, to six digits, if it can be one only."""
    if domain.continuous or any(name not in point for name in domain.columns):
        return point
    x = np.array([point[name] for name in domain.columns])
    size = np.floor(np.log10(np.abs(x), out=np.full(len(x), -np.inf), where=x != 0))
    near = (np.abs(domain.points - x) <= 0.5000001 * 10.0 ** (size - 5)).all(axis=1)
    return domain.point(int(np.argmax(near))) if near.sum() == 1 else point


def _same(known: Mapping[str, float] | None, point: Mapping[str, float]) -> bool:
    """Whether they are one point, up to the eight digits that a table has."""
    return known is not None and all(abs(known[k] - v) <= 1e-7 * max(abs(v), abs(known[k])) for k, v in point.items())


def _number(text: str, what: str) -> float:
    with suppress(ValueError):
        return check_finite(float(text), what)
    raise TruvarError(f"{what} must be a finite number, got {text!r}; correct it")


def _id(text: str) -> int:
    if not text.isdecimal():
        raise TruvarError(f"an id or level must be a whole number, got {text!r}; correct it")
    return int(text)
