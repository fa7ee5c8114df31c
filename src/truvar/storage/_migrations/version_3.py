"""Migration from version 2 to version 3: checksums, the number of events of a study, and tokens."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    Column,
    Connection,
    DateTime,
    Float,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    select,
    text,
    update,
)

# The definitions in this module are those of version 3 and must not be changed, nor imported from
# elsewhere.
METADATA = MetaData()
STUDIES = Table(
    "truvar_studies",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("goal", Text, nullable=False),
    Column("steps", Integer, nullable=False),
    Column("spent", Float, nullable=False),
    Column("pending", Integer, nullable=False),
    Column("created", DateTime(timezone=True)),
    Column("changed", DateTime(timezone=True)),
    Column("events", Integer, nullable=False),
    Column("head", String(64), nullable=False),
    Column("checksum", String(64), nullable=False),
)
EVENTS = Table(
    "truvar_events",
    METADATA,
    Column("study_id", Integer, primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("time", DateTime(timezone=True), nullable=False),
    Column("who", String(200), nullable=False),
    Column("kind", String(20), nullable=False),
    Column("details", Text, nullable=False),
    Column("checksum", String(64), nullable=False),
)
TOKENS = Table(
    "truvar_tokens",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("name", String(40), nullable=False, unique=True),
    Column("digest", String(64), nullable=False),
    Column("access", String(5), nullable=False),
    Column("studies", Text),
    Column("created", DateTime(timezone=True), nullable=False),
    Column("expires", DateTime(timezone=True)),
    Column("revoked", DateTime(timezone=True)),
)


def upgrade(connection: Connection) -> None:
    """Add the columns and the table of tokens, and compute the checksums of what is stored.

    A study whose rows cannot be read does not stop the migration. It keeps empty checksums, and
    opening it raises.
    """
    connection.execute(
        text("ALTER TABLE truvar_studies ADD COLUMN events INTEGER DEFAULT 0 NOT NULL")
    )
    connection.execute(
        text("ALTER TABLE truvar_studies ADD COLUMN head VARCHAR(64) DEFAULT '' NOT NULL")
    )
    connection.execute(
        text("ALTER TABLE truvar_studies ADD COLUMN checksum VARCHAR(64) DEFAULT '' NOT NULL")
    )
    connection.execute(
        text("ALTER TABLE truvar_events ADD COLUMN checksum VARCHAR(64) DEFAULT '' NOT NULL")
    )
    TOKENS.create(connection, checkfirst=True)
    for study_id in connection.scalars(select(STUDIES.c.id)).all():
        try:
            _add_checksums(connection, study_id)
        except (LookupError, TypeError, ValueError):
            continue


def _add_checksums(connection: Connection, study_id: int) -> None:
    head = ""
    count = 0
    columns = (EVENTS.c.number, EVENTS.c.time, EVENTS.c.who, EVENTS.c.kind, EVENTS.c.details)
    of_study = EVENTS.c.study_id == study_id
    for row in connection.execute(select(*columns).where(of_study).order_by(EVENTS.c.number)).all():
        head = _digest([head, row.number, row.time, row.who, row.kind, row.details])
        count += 1
        connection.execute(
            update(EVENTS).where(of_study, EVENTS.c.number == row.number).values(checksum=head)
        )
    study = connection.execute(select(STUDIES).where(STUDIES.c.id == study_id)).one()
    counters = [study.goal, study.steps, study.spent, study.pending, study.created, study.changed]
    values = {"events": count, "head": head, "checksum": _digest([*counters, count, head])}
    connection.execute(update(STUDIES).where(STUDIES.c.id == study_id).values(values))


def _digest(values: list[Any]) -> str:
    parts = [_utc(value) if isinstance(value, datetime) else value for value in values]
    joined = json.dumps(parts, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(joined.encode("utf-8", "surrogatepass")).hexdigest()


def _utc(time: datetime) -> str:
    moment = time.replace(tzinfo=time.tzinfo or UTC).astimezone(UTC)
    return moment.isoformat(timespec="microseconds")
