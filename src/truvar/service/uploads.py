"""Problems and studies sent by clients: no file is read, and the limits of the server hold."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from math import prod
from typing import Any

import pandas as pd

from truvar.domain.tables import parse_table
from truvar.exceptions import (
    DamagedStudyError,
    InvalidArgumentError,
    InvalidProblemError,
    SerializationError,
    TruvarError,
)
from truvar.problem import Problem, problem_from_dict
from truvar.problem.parameters import axis_length
from truvar.problem.schema import REPRESENTERS, ProblemSpec, parse_spec
from truvar.service.limits import ServiceLimits, check_at_most
from truvar.study.study import Study


def uploaded_problem(
    name: str, problem: str | ProblemSpec, tables: Mapping[str, str], limits: ServiceLimits, *, check: bool = True
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
    spec = parse_spec(ProblemSpec, _parse_toml(problem)) if isinstance(problem, str) else problem
    _check_problem_size(spec, limits)
    frames = {table: _read_table(table, text, limits) for table, text in tables.items()}
    content = {**spec.model_dump(mode="json", exclude_unset=True), "name": name}
    try:
        return problem_from_dict(content, name=name, tables=frames, check=check)
    except TruvarError:
        raise
    except (TypeError, ValueError, LookupError, ArithmeticError, AttributeError) as error:
        raise InvalidProblemError(f"the problem cannot be used ({type(error).__name__}: {error}); correct it") from None


def uploaded_study(exported: Mapping[str, Any], url: str, name: str, limits: ServiceLimits) -> Study:
    """Store an uploaded study.

    Args:
        exported: The study as `Study.to_json` wrote it.
        url: URL of the store.
        name: Name of the study in the store.
        limits: Limits of the server.

    Raises:
        SerializationError: If it is not an exported study.
        LimitExceededError: If it is larger than the server allows.
    """
    _check_study_size(exported, limits)
    try:
        return Study.from_json(json.dumps(exported), store=url, name=name)
    except DamagedStudyError as error:  # of the upload, not of a study of this server
        raise SerializationError(str(error)) from None
    except TruvarError:
        raise
    except Exception as error:  # content from elsewhere can be wrong in any way
        raise SerializationError(
            f"the study cannot be read ({type(error).__name__}: {error}); export it again"
        ) from None


def _parse_toml(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except ValueError as error:
        raise InvalidProblemError(f"the problem is not valid TOML: {error}; correct it there") from None
    except RecursionError:
        raise InvalidProblemError("the problem is nested too deeply; use fewer levels") from None


def _read_table(name: str, text: str, limits: ServiceLimits) -> pd.DataFrame:
    try:
        frame = parse_table(text)
    except (ValueError, InvalidArgumentError) as error:  # the errors of pandas derive from ValueError
        raise InvalidProblemError(f"table {name!r} is not readable CSV ({error}); check its contents") from None
    check_at_most(len(frame), limits.points, f"rows of table {name!r}")
    check_at_most(frame.shape[1], 4 * limits.columns, f"columns of table {name!r}")
    return frame


def _check_problem_size(spec: ProblemSpec, limits: ServiceLimits) -> None:
    """Check the sizes that a problem asks for before anything is built from it."""
    grid = spec.domain.grid or {}
    box = spec.domain.box or {}
    check_at_most(max(len(grid), len(box)), limits.columns, "columns of the domain")
    check_at_most(prod(axis_length(axis) for axis in grid.values()), limits.points, "points of the grid")
    if box:
        check_at_most(spec.domain.representers or REPRESENTERS, limits.points, "representers of the box")
    check_at_most(len(spec.noise.levels or ()), limits.levels, "noise levels")
    check_at_most(len(spec.tasks.names or ()), limits.levels, "tasks")
    _check_policy_size(spec.policy.model_dump(exclude_unset=True), limits)


def _check_study_size(exported: Mapping[str, Any], limits: ServiceLimits) -> None:
    """Check the sizes of an exported study before it is read. Parts of the wrong form are left to the reader."""
    events = exported.get("events")
    if not isinstance(events, list) or not events or not isinstance(events[0], Mapping):
        raise SerializationError("an exported study must have a list of events, got none; send the whole export")
    check_at_most(len(events), limits.events, "events of a study")
    config = _mapping(events[0], "details")
    domain = _mapping(config, "domain")
    axes = [len(axis) if isinstance(axis, list) else 0 for axis in _list(domain, "axes")]
    rows = [len(_list(column, "values")) for column in _list(domain, "table") if isinstance(column, Mapping)]
    points = [len(_list(domain, "points")), *rows]
    if axes:
        points.append(prod(axes))
    check_at_most(max(points), limits.points, "points")
    check_at_most(max(len(axes), len(_list(domain, "columns"))), limits.columns, "columns of the domain")
    check_at_most(len(_sequence(_mapping(config, "noise"), "variance")), limits.levels, "noise levels")
    check_at_most(len(_sequence(_mapping(config, "tasks"), "names")), limits.levels, "tasks")
    _check_policy_size(_mapping(config, "policy"), limits)


def _check_policy_size(options: Mapping[str, Any], limits: ServiceLimits) -> None:
    for option, value in _integers(options):
        check_at_most(abs(value), limits.draws, f"for [policy] {option}")


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
