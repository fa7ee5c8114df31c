"""Database tables of a store in their present version.

`truvar.storage._migrations` has those of earlier versions.

They are defined without SQLAlchemy's object-relational mapper, which takes a tenth of a second to
import.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    Column,
    DateTime,
    Dialect,
    Double,
    ForeignKey,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
)

from truvar.storage.base import MAX_AUTHOR_LENGTH, MAX_STORED_NAME_LENGTH

SCHEMA_VERSION = 4  # of the tables in this module
METADATA = MetaData()


class UTCDateTime(TypeDecorator[datetime]):
    """Column type for times in UTC.

    SQLite stores no time zone, so every time is converted to UTC first.
    """

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> Any:
        """Convert a time to UTC before it is stored."""
        return None if value is None else value.astimezone(UTC)

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        """Add the time zone to a time that was read."""
        return None if value is None else value.replace(tzinfo=value.tzinfo or UTC).astimezone(UTC)


# One row, the version of the tables.
SCHEMA = Table(
    "truvar_schema",
    METADATA,
    Column("version", Integer, primary_key=True, autoincrement=False),
)

# One row per study, with the counters and times after its last event.
STUDIES = Table(
    "truvar_studies",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("name", String(MAX_STORED_NAME_LENGTH), nullable=False, unique=True),
    Column("goal", Text, nullable=False, server_default=""),
    Column("steps", Integer, nullable=False, server_default="0"),
    Column("spent", Double, nullable=False, server_default="0"),
    Column("pending", Integer, nullable=False, server_default="0"),
    Column("created", UTCDateTime),
    Column("changed", UTCDateTime),
    Column("events", Integer, nullable=False, server_default="0"),  # number of events
    Column("head", String(64), nullable=False, server_default=""),  # checksum of the last event
    Column(
        "checksum", String(64), nullable=False, server_default=""
    ),  # of this row, see `checksums`
    Column(
        "name_checksum", String(64), nullable=False, server_default=""
    ),  # empty: written by an earlier release
)

# One row per event. The details are JSON, in which numbers keep every bit.
EVENTS = Table(
    "truvar_events",
    METADATA,
    Column("study_id", Integer, ForeignKey(STUDIES.c.id), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("time", UTCDateTime, nullable=False),
    Column("who", String(MAX_AUTHOR_LENGTH), nullable=False),
    Column("kind", String(20), nullable=False),
    Column("details", Text, nullable=False),
    Column(
        "checksum", String(64), nullable=False, server_default=""
    ),  # of this event and those before it
)

# One row per token for servers of this store, valid or not. The token itself is not stored.
TOKENS = Table(
    "truvar_tokens",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("name", String(40), nullable=False, unique=True),
    Column("digest", String(64), nullable=False),
    Column("access", String(5), nullable=False),
    Column("studies", Text),  # names as JSON; NULL: all
    Column("created", UTCDateTime, nullable=False),
    Column("expires", UTCDateTime),
    Column("revoked", UTCDateTime),
    Column(
        "checksum", String(64), nullable=False, server_default=""
    ),  # of this row; a token without it is refused
)
