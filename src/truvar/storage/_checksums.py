"""Checksums of stored events, of the rows and names of studies, and of tokens.

The checksum of an event covers the checksum of the event before it, so that a changed, missing or
moved event shows. The row of a study holds the number of its events and the checksum of the last
one, so that missing last events show too, and its own checksum. `migrations.version_3` and
`version_4` compute the same checksums for older stores.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

# Columns that the checksum of a row covers.
ROW_COLUMNS = ("goal", "steps", "spent", "pending", "created", "changed", "events", "head")

# Columns that the checksum of a token covers.
TOKEN_COLUMNS = ("name", "digest", "access", "studies", "created", "expires", "revoked")


def event_checksum(previous: str, event: Mapping[str, Any]) -> str:
    """Return the checksum of an event.

    Args:
        previous: Checksum of the event before it; empty for the first.
        event: The columns number, time, who, kind and details, the last as JSON text.
    """
    values = [
        previous,
        event["number"],
        event["time"],
        event["who"],
        event["kind"],
        event["details"],
    ]
    return _digest(values)


def row_checksum(row: Mapping[str, Any]) -> str:
    """Return the checksum of the row of a study, given by its columns."""
    return _digest([row[name] for name in ROW_COLUMNS])


def name_checksum(name: str) -> str:
    """Return the checksum of the name of a study.

    A renamed study gets another, so that the row keeps its own.
    """
    return _digest([name])


def token_checksum(row: Mapping[str, Any]) -> str:
    """Return the checksum of a token, given by its columns."""
    return _digest([row[name] for name in TOKEN_COLUMNS])


def _digest(values: list[Any]) -> str:
    parts = [_utc(value) if isinstance(value, datetime) else value for value in values]
    text = json.dumps(parts, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _utc(time: datetime) -> str:
    moment = time.replace(tzinfo=time.tzinfo or UTC).astimezone(UTC)
    return moment.isoformat(timespec="microseconds")
