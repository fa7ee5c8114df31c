"""Limits of a server on the size of requests."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

from truvar.exceptions import LimitExceededError, SerializationError
from truvar.storage.serialization import check_storable

MAX_DEPTH = 60  # levels of nested lists and objects in an upload


@dataclass(frozen=True)
class ServiceLimits:
    """The largest request that a server accepts.

    Attributes:
        body: Bytes of a request body.
        points: Points of a domain, or rows of a table.
        columns: Columns of a domain; a table may have four times as many.
        levels: Noise levels, and tasks.
        draws: Any whole number among the options of a policy.
        batch: Suggestions in one request.
        waiting: Pending suggestions of one study.
        text: Characters of a note.
        events: Events of an uploaded study.
        studies: Studies kept in memory; others are opened again when they are requested.
        streams: Streams of live changes that are open at once.
        connections: Connections of one address.
    """

    body: int = 8_000_000
    points: int = 10_000
    columns: int = 50
    levels: int = 20
    draws: int = 10_000
    batch: int = 100
    waiting: int = 1_000
    text: int = 5_000
    events: int = 20_000
    studies: int = 16
    streams: int = 200
    connections: int = 500


def check_at_most(count: int, limit: int, name: str) -> None:
    """Check a size against a limit of the server.

    Args:
        count: The size requested.
        limit: The largest size allowed.
        name: What is counted, as in "accepts at most 100 ...".

    Raises:
        LimitExceededError: If it is larger.
    """
    if count > limit:
        raise LimitExceededError(f"this server accepts at most {limit:,} {name}, got {count:,}; send less")


def check_upload(value: Any, limits: ServiceLimits) -> None:
    """Check the sizes and texts of any JSON value that a client sent, before anything is made of it.

    Lists are limited wherever they are, whatever they are wrapped in, and a domain must be as an export has it.

    Args:
        value: The JSON value.
        limits: Limits of the server.

    Raises:
        LimitExceededError: If a part is too large.
        SerializationError: If a text has characters that cannot be stored, or a domain has another form.
    """
    pending = [(value, 0)]
    while pending:
        part, depth = pending.pop()
        if depth > MAX_DEPTH:
            raise SerializationError(f"the study is nested more than {MAX_DEPTH} levels deep; export it again")
        if isinstance(part, str):
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
        raise SerializationError("a domain must have lists of columns and of axes, points or a table; export it again")
    check_at_most(max(len(columns or ()), len(axes)), limits.columns, "columns of the domain")
    check_at_most(len(table), 4 * limits.columns, "columns of a table")
    rows = [len(column["values"]) for column in table if isinstance(column, Mapping) and _has_values(column)]
    check_at_most(max([len(points), *rows]), limits.points, "points")
    check_at_most(prod(max(1, len(axis)) for axis in axes), limits.points, "points of the grid")


def _has_values(column: Mapping[str, Any]) -> bool:
    return isinstance(column.get("values"), list)


def is_plain_text(text: str) -> bool:
    """Return whether every database and page can hold the text: no control characters but line breaks and tabs."""
    return all(unicodedata.category(c) not in ("Cc", "Cs") or c in "\n\r\t" for c in text)
