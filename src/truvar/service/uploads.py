"""A problem that came over the network: no file is read, and nothing is larger than allowed."""

from __future__ import annotations

import io
import json
import tomllib
from collections.abc import Mapping
from math import prod
from typing import Any

import pandas as pd

from truvar.exceptions import TruvarError
from truvar.problem import Problem, problem_from_dict
from truvar.service.limits import ServiceLimits
from truvar.study.study import Study

REPRESENTERS = 2500  # of a box that does not say


def posted_problem(
    name: str, problem: str | Mapping[str, Any], tables: Mapping[str, str], limits: ServiceLimits
) -> Problem:
    """The problem in TOML text or as an object, with the tables that it names as CSV text."""
    spec = _parsed(problem) if isinstance(problem, str) else dict(problem)
    _check_sizes(spec, limits)
    frames = {table: _frame(table, text, limits) for table, text in tables.items()}
    try:
        return problem_from_dict({**spec, "name": name}, name=name, tables=frames)
    except (TypeError, ValueError, LookupError, ArithmeticError, AttributeError) as error:
        raise TruvarError(f"the problem cannot be understood ({type(error).__name__}: {error}); mend it") from None


def _parsed(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise TruvarError(f"the problem is not valid TOML: {error}; mend that place") from None
    except RecursionError:
        raise TruvarError("the problem is nested too deeply; write it flatter") from None


def _frame(name: str, text: str, limits: ServiceLimits) -> pd.DataFrame:
    try:
        frame = pd.read_csv(io.StringIO(text))
    except (pd.errors.ParserError, pd.errors.EmptyDataError, ValueError) as error:
        raise TruvarError(f"table {name!r} is not readable CSV ({error}); check its contents") from None
    _at_most(len(frame), limits.points, f"rows of table {name!r}")
    _at_most(frame.shape[1], 4 * limits.columns, f"columns of table {name!r}")
    return frame


def _check_sizes(spec: Mapping[str, Any], limits: ServiceLimits) -> None:
    """Before anything is made of it. What has the wrong form is left to the problem's own checks."""
    domain, noise, policy = (_table(spec, section) for section in ("domain", "noise", "policy"))
    grid, box = _table(domain, "grid"), _table(domain, "box")
    _at_most(max(len(grid), len(box)), limits.columns, "columns of the domain")
    counts = [axis[2] for axis in grid.values() if isinstance(axis, list) and len(axis) == 3 and type(axis[2]) is int]
    _at_most(prod(counts), limits.points, "points of the grid")
    if box:
        asked = domain.get("representers", REPRESENTERS)
        _at_most(asked if type(asked) is int else 0, limits.points, "representers of the box")
    levels = noise.get("levels")
    _at_most(len(levels) if isinstance(levels, list) else 0, limits.levels, "noise levels")
    for option, value in _numbers(policy):
        _at_most(abs(value), limits.draws, f"[policy] {option}")


def _numbers(table: Mapping[str, Any]) -> list[tuple[str, int]]:
    found = [(name, value) for name, value in table.items() if type(value) is int]
    for value in table.values():
        if isinstance(value, Mapping):
            found += _numbers(value)
    return found


def _table(spec: Mapping[str, Any], section: str) -> Mapping[str, Any]:
    table = spec.get(section)
    return table if isinstance(table, Mapping) else {}


def _at_most(count: int, most: int, what: str) -> None:
    if count > most:
        raise TruvarError(f"this server takes at most {most:,} {what}, but there were {count:,}; give fewer")


def posted_study(whole: Mapping[str, Any], url: str, name: str, limits: ServiceLimits) -> Study:
    """A whole study as `Study.to_json` wrote it, put into the store under that name."""
    _check_study(whole, limits)
    try:
        return Study.from_json(json.dumps(whole), store=url, name=name)
    except TruvarError:
        raise
    except Exception as error:  # a record from elsewhere can be wrong in any way
        raise TruvarError(f"the study cannot be read ({type(error).__name__}: {error}); export it again") from None


def _check_study(whole: Mapping[str, Any], limits: ServiceLimits) -> None:
    events = whole.get("events")
    if not isinstance(events, list) or not events or not isinstance(events[0], Mapping):
        raise TruvarError("an exported study has a list of events, but there was none; send what the export gave")
    _at_most(len(events), limits.events, "events of a study")
    settings = _table(events[0], "details")
    domain, noise, policy = (_table(settings, part) for part in ("domain", "noise", "policy"))
    sizes = [len(axis) if isinstance(axis, list) else 0 for axis in _list(domain, "axes")]
    rows = [len(_list(column, "values")) for column in _list(domain, "table") if isinstance(column, Mapping)]
    _at_most(max([prod(sizes) if sizes else 0, len(_list(domain, "points")), *rows]), limits.points, "points")
    _at_most(max(len(sizes), len(_list(domain, "columns"))), limits.columns, "columns of the domain")
    _at_most(len(_list(_table(noise, "variance"), "values") or _list(noise, "variance")), limits.levels, "noise levels")
    for option, value in _numbers(policy):
        _at_most(abs(value), limits.draws, f"[policy] {option}")


def _list(table: Mapping[str, Any], key: str) -> list[Any]:
    found = table.get(key)
    return found if isinstance(found, list) else []
