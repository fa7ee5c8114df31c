"""Problems and studies sent by clients: no file is read, and the limits of the server hold."""

from __future__ import annotations

import csv
import io
import json
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from math import prod
from typing import Any, Literal

import pandas as pd

from truvar.domain.constraints import check_size as check_constraint_size
from truvar.exceptions import (
    DamagedStudyError,
    Finished,
    InvalidArgumentError,
    InvalidProblemError,
    SerializationError,
    TruvarError,
)
from truvar.messages import Interface
from truvar.problem import Problem, problem_from_dict
from truvar.problem.parameters import grid_size
from truvar.problem.schema import REPRESENTERS, ProblemSpec, parse_spec
from truvar.service import _page_data as page_data
from truvar.service import serializers
from truvar.service._limits import ServiceLimits, check_at_most
from truvar.storage import open_storage
from truvar.storage.base import MAX_NAME_LENGTH, StudySummary
from truvar.storage.serialization import check_storable, study_from_json
from truvar.study.study import Study
from truvar.tabular.csv_cells import measurements_csv
from truvar.tabular.tables import parse_table
from truvar.validation import check_cost

UploadKind = Literal["study", "problem", "check", "columns"]
MAX_DEPTH = 60  # levels of nested lists and objects in an upload
MAX_TRIED_POINTS = (
    1_000  # of a domain, for a trial choice with an uploaded study; it takes longer with more
)
MAX_LIGHT_EVENTS = 30  # of a study, up to which an upload is handled in a thread
MAX_LIGHT_STUDY = 100_000  # bytes of a study, up to which an upload is handled in a thread
MAX_LIGHT_PROBLEM = (
    20_000  # bytes of a problem with its tables, up to which it is handled in a thread
)


@dataclass(frozen=True)
class Upload:
    """A study, problem or table that a client sent, in JSON values.

    Attributes:
        kind: What to do: store a study, store a study of a problem, check a problem, or list the
            columns of a table.
        content: The exported study, the problem as text or as an object, or the text of the table.
        name: Name of the study.
        author: Author of its first event, where a problem is stored.
        interface: Interface that messages are written for.
        tables: CSV text of the tables of a problem, by their name in it.
        size: Bytes of the request.
    """

    kind: UploadKind
    content: Any
    name: str
    author: str
    interface: Interface
    tables: Mapping[str, str] = field(default_factory=dict)
    size: int = 0

    @property
    def takes_long(self) -> bool:
        """Whether it may take more than a second, so that it is handled in its own process."""
        if self.kind == "study":
            events = self.content.get("events")
            return self.size > MAX_LIGHT_STUDY or (
                isinstance(events, list) and len(events) > MAX_LIGHT_EVENTS
            )
        return self.size > MAX_LIGHT_PROBLEM or self.has_training

    @property
    def has_training(self) -> bool:
        """Whether the model of a problem is fitted to a table; text with that word counts too."""
        if isinstance(self.content, str):
            return self.kind != "columns" and "training" in self.content
        return "training" in _mapping(self.content, "model")


def check_size(upload: Upload, limits: ServiceLimits) -> None:
    """Check the sizes of an upload before a process is started for it.

    Args:
        upload: The upload.
        limits: Limits of the server.

    Raises:
        LimitExceededError: If it is larger than the server allows.
        TruvarError: If it is not readable.
    """
    if upload.kind == "study":
        check_upload(upload.content, limits)
        _check_study_size(upload.content, limits)
    tables = {"table": upload.content} if upload.kind == "columns" else upload.tables
    for name, text in tables.items():
        _check_table_size(name, text, limits)


def handle_upload(upload: Upload, url: str, limits: ServiceLimits) -> tuple[bytes, Study | None]:
    """Do what an upload asks for.

    Args:
        upload: The upload.
        url: URL of the store.
        limits: Limits of the server.

    Returns:
        The answer in JSON, and the study if one of a problem was stored.

    Raises:
        TruvarError: If it has a mistake, or is larger than the server allows.
    """
    if upload.kind == "columns":
        frame = uploaded_table(upload.content, limits)
        return serializers.encode(
            {"rows": len(frame), "columns": page_data.table_columns(frame)}
        ), None
    if upload.kind == "study":
        return serializers.encode(uploaded_study(upload.content, url, upload.name, limits)), None
    content = (
        upload.content
        if isinstance(upload.content, str)
        else parse_spec(ProblemSpec, upload.content)
    )
    problem = uploaded_problem(upload.name, content, upload.tables, limits, check=False)
    if upload.kind == "check":
        return serializers.encode(page_data.problem_check(problem, problem.study())), None
    study = problem.study(store=url, name=upload.name, author=upload.author)
    return serializers.encode(serializers.status(study)), study


def uploaded_problem(
    name: str,
    problem: str | ProblemSpec,
    tables: Mapping[str, str],
    limits: ServiceLimits,
    *,
    check: bool = True,
) -> Problem:
    """Make a problem from an upload.

    Args:
        name: Name of the study.
        problem: Text of a problem file, or its validated content.
        tables: CSV text of the tables, by their name in the problem.
        limits: Limits of the server.
        check: Also check what only shows when a study is built.

    Raises:
        InvalidProblemError: If the problem has a mistake.
        LimitExceededError: If it is larger than the server allows.
    """
    if isinstance(problem, str):
        check_storable(problem)
    spec = parse_spec(ProblemSpec, _parse_toml(problem)) if isinstance(problem, str) else problem
    _check_problem_size(spec, limits)
    content = {**spec.model_dump(mode="json", exclude_unset=True), "name": name}
    check_upload(content, limits)
    check_upload(list(tables), limits)
    frames = {table: _read_table(table, text, limits) for table, text in tables.items()}
    try:
        return problem_from_dict(content, name=name, tables=frames, check=check)
    except TruvarError:
        raise
    except (TypeError, ValueError, LookupError, ArithmeticError, AttributeError) as error:
        raise InvalidProblemError(
            f"the problem cannot be used ({type(error).__name__}: {error}); correct it"
        ) from None


def uploaded_table(text: str, limits: ServiceLimits) -> pd.DataFrame:
    """Return a table that a client sent as CSV text.

    Args:
        text: The text.
        limits: Limits of the server.

    Raises:
        InvalidProblemError: If it is not readable.
        LimitExceededError: If it is larger than the server allows.
    """
    return _read_table("table", text, limits)


def uploaded_study(
    exported: Mapping[str, Any], url: str, name: str, limits: ServiceLimits
) -> dict[str, Any]:
    """Store an uploaded study, and return its status.

    Its events are applied once, in memory, which takes long for many of them; then they are stored
    as they came.

    Args:
        exported: The study as `Study.to_json` wrote it.
        url: URL of the store.
        name: Name of the study in the store.
        limits: Limits of the server.

    Raises:
        SerializationError: If it is not an exported study.
        LimitExceededError: If it is larger than the server allows.
    """
    check_upload(exported, limits)
    _check_study_size(exported, limits)
    try:
        text = json.dumps(exported)
        study = Study.from_json(text, name=name)
        status = serializers.status(study)
        summary = StudySummary(study.steps, study.spent, len(study.pending))
        _check_usable(study)  # asks for a suggestion, which is not stored
        with open_storage(url).create_study(name).transaction(0) as transaction:
            transaction.appended = study_from_json(text)[1]
            transaction.summary = summary
        return status
    except DamagedStudyError as error:  # of the upload, not of a study of this server
        raise SerializationError(str(error)) from None
    except TruvarError:
        raise
    except Exception as error:  # content from elsewhere can be wrong in any way
        raise SerializationError(
            f"the study cannot be read ({type(error).__name__}: {error}); export it again"
        ) from None


def check_upload(value: Any, limits: ServiceLimits) -> None:
    """Check the sizes and texts of any JSON value that a client sent.

    Lists are limited wherever they are, whatever they are wrapped in, and a domain must be as an
    export has it.

    Args:
        value: The JSON value.
        limits: Limits of the server.

    Raises:
        LimitExceededError: If a part is too large.
        SerializationError: If a text has characters that cannot be stored, or a domain has another
            form.
    """
    most_text = max(
        limits.text, MAX_NAME_LENGTH
    )  # an export has keys and ids longer than a very low limit
    pending = [(value, 0)]
    while pending:
        part, depth = pending.pop()
        if depth > MAX_DEPTH:
            raise SerializationError(
                f"the study is nested more than {MAX_DEPTH} levels deep; export it again"
            )
        if isinstance(part, str):
            check_at_most(len(part), most_text, "characters of a text")
            check_storable(part)
        elif isinstance(part, list):
            check_at_most(len(part), max(limits.points, limits.events), "elements of a list")
            pending += [(item, depth + 1) for item in part]
        elif isinstance(part, Mapping):
            check_at_most(len(part), limits.points, "keys of an object")
            if part.get("kind") == "Domain":
                _check_domain(part, limits)
            pending += [(item, depth + 1) for item in (*part.keys(), *part.values())]


def _check_domain(domain: Mapping[str, Any], limits: ServiceLimits) -> None:
    columns = domain.get("columns")
    axes = domain.get("axes", [])
    points = domain.get("points", [])
    table = domain.get("table", [])
    plain = all(isinstance(part, list) for part in (columns, axes, points, table))
    if not plain or not all(isinstance(axis, list) for axis in axes):
        raise SerializationError(
            "a domain must have lists of columns and of axes, points or a table; export it again"
        )
    check_at_most(max(len(columns or ()), len(axes)), limits.columns, "columns of the domain")
    check_at_most(len(table), 4 * limits.columns, "columns of a table")
    rows = [
        len(column["values"])
        for column in table
        if isinstance(column, Mapping) and _has_values(column)
    ]
    check_at_most(max([len(points), *rows]), limits.points, "points")
    check_at_most(prod(max(1, len(axis)) for axis in axes), limits.points, "points of the grid")


def _has_values(column: Mapping[str, Any]) -> bool:
    return isinstance(column.get("values"), list)


def _check_usable(study: Study) -> None:
    """Use a study as a server does, so that one which fails is not stored; raise its exception."""
    costs = [record.cost for record in study.measurement_records()]
    costs += [record.cost for record in study.failures]
    costs += [suggestion.cost for suggestion in study.pending]
    for cost in costs:
        check_cost(cost, "the cost of a measurement")
    regions = [
        exclusion.place.region
        for exclusion in study.exclusions
        if exclusion.place.region is not None
    ]
    for constraint in [*study.domain.constraints, *regions]:
        check_constraint_size(constraint)
    study.to_json()
    for answer in (
        serializers.view,
        serializers.status,
        serializers.posterior,
        serializers.history,
    ):
        serializers.encode(answer(study))
    serializers.encode(serializers.measurements(study))
    serializers.encode([serializers.failures(study), serializers.exclusions(study)])
    measurements_csv(study.measurements)
    serializers.encode(serializers.definition(study))
    serializers.encode(serializers.events(study, len(study.domain)))
    serializers.encode(study.result().to_dict())
    if len(study.domain) <= MAX_TRIED_POINTS and len(study.pending) == 0:
        vehicle = next(iter(study.vehicles), None)
        first = study.domain.point(0)
        context = {name: first[name] for name in study.domain.context} or None
        with suppress(Finished):
            study.ask(vehicle=vehicle, context=context)


def _parse_toml(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except ValueError as error:
        raise InvalidProblemError(
            f"the problem is not valid TOML: {error}; correct it there"
        ) from None
    except RecursionError:
        raise InvalidProblemError("the problem is nested too deeply; use fewer levels") from None


def _read_table(name: str, text: str, limits: ServiceLimits) -> pd.DataFrame:
    _check_table_size(name, text, limits)
    check_storable(text)
    try:
        frame = parse_table(text)
    except (
        ValueError,
        InvalidArgumentError,
    ) as error:  # the errors of pandas derive from ValueError
        raise InvalidProblemError(
            f"table {name!r} is not readable CSV ({error}); check its contents"
        ) from None
    check_at_most(len(frame), limits.points, f"rows of table {name!r}")
    check_at_most(frame.shape[1], 4 * limits.columns, f"columns of table {name!r}")
    return frame


def _check_table_size(name: str, text: str, limits: ServiceLimits) -> None:
    """Count the rows and columns of CSV text, as pandas takes long for many columns."""
    check_at_most(text.count("\n"), limits.points + 1, f"lines of table {name!r}")
    try:
        for row in csv.reader(io.StringIO(text)):
            check_at_most(len(row), 4 * limits.columns, f"columns of table {name!r}")
    except csv.Error as error:
        raise InvalidProblemError(
            f"table {name!r} is not readable CSV ({error}); check its contents"
        ) from None


def _check_problem_size(spec: ProblemSpec, limits: ServiceLimits) -> None:
    """Check the sizes that a problem asks for before anything is built from it."""
    grid = spec.domain.grid or {}
    box = spec.domain.box or {}
    check_at_most(max(len(grid), len(box)), limits.columns, "columns of the domain")
    check_at_most(grid_size(grid), limits.points, "points of the grid")
    if box:
        check_at_most(
            spec.domain.representers or REPRESENTERS, limits.points, "representers of the box"
        )
    check_at_most(len(spec.noise.levels or ()), limits.levels, "noise levels")
    check_at_most(len(spec.tasks.names or ()), limits.levels, "tasks")
    _check_option_sizes(spec.policy.model_dump(exclude_unset=True), "[policy]", limits)
    _check_option_sizes(spec.model.model_dump(exclude_unset=True), "[model]", limits)


def _check_study_size(exported: Mapping[str, Any], limits: ServiceLimits) -> None:
    """Check the sizes of an exported study; the reader refuses parts of the wrong form."""
    events = exported.get("events")
    if not isinstance(events, list) or not events or not isinstance(events[0], Mapping):
        raise SerializationError(
            "an exported study must have a list of events, got none; send the whole export"
        )
    check_at_most(len(events), limits.events, "events of a study")
    config = _mapping(events[0], "details")
    domain = _mapping(config, "domain")
    axes = [len(axis) if isinstance(axis, list) else 0 for axis in _list(domain, "axes")]
    rows = [
        len(_list(column, "values"))
        for column in _list(domain, "table")
        if isinstance(column, Mapping)
    ]
    points = [len(_list(domain, "points")), *rows]
    if axes:
        points.append(prod(axes))
    check_at_most(max(points), limits.points, "points")
    check_at_most(
        max(len(axes), len(_list(domain, "columns"))), limits.columns, "columns of the domain"
    )
    check_at_most(
        len(_sequence(_mapping(config, "noise"), "variance")), limits.levels, "noise levels"
    )
    check_at_most(len(_sequence(_mapping(config, "tasks"), "names")), limits.levels, "tasks")
    _check_option_sizes(_mapping(config, "policy"), "[policy]", limits)
    kernel = _mapping(config, "kernel")
    if kernel.get("kind") == "Learned":
        _check_option_sizes(kernel, "[model]", limits)


def _check_option_sizes(options: Mapping[str, Any], section: str, limits: ServiceLimits) -> None:
    for option, value in _integers(options):
        check_at_most(abs(value), limits.draws, f"for {section} {option}")


def _integers(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, int]]:
    """Yield the whole numbers of nested tables with their dotted keys."""
    for key, value in table.items():
        if type(value) is int:
            yield f"{prefix}{key}", value
        elif isinstance(value, Mapping):
            yield from _integers(value, f"{prefix}{key}.")


def _mapping(table: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = table.get(key)
    return found if isinstance(found, Mapping) else {}


def _sequence(table: Mapping[str, Any], key: str) -> list[Any]:
    """Return a serialized list, tuple or array."""
    return _list(_mapping(table, key), "values") or _list(table, key)


def _list(table: Mapping[str, Any], key: str) -> list[Any]:
    found = table.get(key)
    return found if isinstance(found, list) else []
