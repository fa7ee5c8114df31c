"""Records of deleted studies: name, author, time and number of events.

The table is not one of the schema. It is created by the first deletion, so that no store is
migrated for it and earlier releases, which do not know it, still open the store. If the database
does not allow that, the deletion is not noted.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import (
    Column,
    Connection,
    Integer,
    MetaData,
    String,
    Table,
    insert,
    inspect,
    select,
    text,
)
from sqlalchemy.exc import SQLAlchemyError

from truvar.storage._migrations import ADVISORY_LOCK
from truvar.storage._models import UTCDateTime
from truvar.storage.base import MAX_AUTHOR_LENGTH, MAX_STORED_NAME_LENGTH, now
from truvar.storage.rdb import RDBStorage

_DELETIONS = Table(
    "truvar_deletions",
    MetaData(),
    Column("id", Integer, primary_key=True),
    Column("name", String(MAX_STORED_NAME_LENGTH), nullable=False),
    Column("who", String(MAX_AUTHOR_LENGTH), nullable=False),
    Column("time", UTCDateTime, nullable=False),
    Column("events", Integer, nullable=False),
)


@dataclass(frozen=True)
class Deletion:
    """A study that was deleted.

    Attributes:
        name: Its name.
        who: Author of the deletion.
        time: When it was deleted.
        events: Number of events that it had.
    """

    name: str
    who: str
    time: datetime
    events: int

    def to_dict(self) -> dict[str, Any]:
        """Return the fields for JSON."""
        return {**asdict(self), "time": self.time.isoformat(timespec="seconds")}


def note_deletion(connection: Connection, name: str, who: str, events: int) -> None:
    """Note in the store that a study was deleted, within the transaction that deletes it.

    Args:
        connection: The transaction.
        name: Name of the study.
        who: Author of the deletion.
        events: Number of events that it had.
    """
    row = {"name": name, "who": who[:MAX_AUTHOR_LENGTH], "time": now(), "events": events}
    if connection.dialect.name != "postgresql":
        _DELETIONS.create(connection, checkfirst=True)
        connection.execute(insert(_DELETIONS).values(row))
        return
    connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": ADVISORY_LOCK})
    try:
        with (
            connection.begin_nested()
        ):  # the user of the server may not be allowed to create tables
            _DELETIONS.create(connection, checkfirst=True)
            connection.execute(insert(_DELETIONS).values(row))
    except SQLAlchemyError:
        return


def read_deletions(storage: RDBStorage) -> list[Deletion]:
    """Return the studies that were deleted from a store, in the order of their deletion."""
    with storage.read_transaction() as connection:
        return [Deletion(row.name, row.who, row.time, row.events) for row in _rows(connection)]


def copy_deletions(reader: Connection, writer: Connection) -> None:
    """Copy the deletions of a store to another."""
    rows = [
        {"name": row.name, "who": row.who, "time": row.time, "events": row.events}
        for row in _rows(reader)
    ]
    if rows:
        _DELETIONS.create(writer, checkfirst=True)
        writer.execute(insert(_DELETIONS), rows)


def _rows(connection: Connection) -> list[Any]:
    if not inspect(connection).has_table(_DELETIONS.name):
        return []
    return list(connection.execute(select(_DELETIONS).order_by(_DELETIONS.c.id)).all())
