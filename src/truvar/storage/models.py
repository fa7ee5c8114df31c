"""The tables of a store, and how those of earlier versions become the present ones.

| version | what was new |
|---|---|
| 1 | studies by name; their events |
| 2 | where each study stands, in its row: a list of studies need not read their events |
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    Connection,
    DateTime,
    Dialect,
    ForeignKey,
    String,
    Text,
    TypeDecorator,
    insert,
    inspect,
    select,
    text,
    update,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from truvar.domain.goals import LevelSet
from truvar.exceptions import TruvarError
from truvar.storage.base import StudySummary
from truvar.storage.serialization import deserialize

VERSION = 2
DAMAGED = "damaged"  # the goal of a study whose events could not be read when they were migrated
LOCK = 0x7472757661720001  # of PostgreSQL, while tables are made


class UTCTime(TypeDecorator[datetime]):
    """A moment. SQLite keeps no time zone: it is UTC there."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> Any:
        return None if value is None else value.astimezone(UTC)

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        return None if value is None else value.replace(tzinfo=value.tzinfo or UTC).astimezone(UTC)


class Base(DeclarativeBase):
    """The tables."""


class SchemaRow(Base):
    """One row: the version of the tables."""

    __tablename__ = "truvar_schema"
    version: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)


class StudyRow(Base):
    """A study, and where it stands after its last event."""

    __tablename__ = "truvar_studies"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(200), unique=True)
    goal: Mapped[str] = mapped_column(Text, server_default="")
    steps: Mapped[int] = mapped_column(server_default="0")
    spent: Mapped[float] = mapped_column(server_default="0")
    pending: Mapped[int] = mapped_column(server_default="0")
    created: Mapped[datetime | None] = mapped_column(UTCTime)
    changed: Mapped[datetime | None] = mapped_column(UTCTime)


class EventRow(Base):
    """An event of a study; its details are JSON, in which numbers keep every bit."""

    __tablename__ = "truvar_events"
    study_id: Mapped[int] = mapped_column(ForeignKey(StudyRow.id), primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    time: Mapped[datetime] = mapped_column(UTCTime)
    who: Mapped[str] = mapped_column(String(200))
    kind: Mapped[str] = mapped_column(String(20))
    details: Mapped[str] = mapped_column(Text)


def version_of(connection: Connection) -> int:
    """The version of the tables; 0: there are none."""
    if not inspect(connection).has_table(SchemaRow.__tablename__):
        return 0
    found = connection.scalar(select(SchemaRow.version))
    if found is None or found > VERSION:
        raise TruvarError(
            f"the store was written by a newer truvar (its tables are of version {found}, this one knows {VERSION}); "
            "update truvar"
        )
    return int(found)


def prepare(connection: Connection) -> None:
    """Makes the tables where there are none, and brings those of earlier versions up to date."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": LOCK})
    version = version_of(connection)
    if version == 0:
        Base.metadata.create_all(connection)
        connection.execute(insert(SchemaRow).values(version=VERSION))
        return
    for migrate in MIGRATIONS[version - 1 :]:
        migrate(connection)
    if version < VERSION:
        connection.execute(update(SchemaRow).values(version=VERSION))


def goal_in_words(goal: Any) -> str:
    """For a list of studies."""
    if not isinstance(goal, LevelSet):
        return "maximum" if goal.sign > 0 else "minimum"
    if goal.threshold is not None:
        return f"above {goal.threshold:g}"
    return f"above {100 * (goal.fraction_of_max or 0.0):g} % of the maximum"


def _standing(events: Iterable[tuple[str, dict[str, Any]]]) -> StudySummary:
    """Where the events (kind, details) leave a study, without computing what it believes."""
    costs: dict[int, float] = {}
    pending: set[int] = set()
    for kind, details in events:
        id_ = details.get("id", 0)
        if kind == "asked":
            pending.add(id_)
        elif kind in ("told", "corrected"):
            costs[id_] = details["cost"]
            pending.discard(id_)
        elif kind in ("withdrawn", "expired"):
            pending.discard(id_)
            costs.pop(id_, None)
    return StudySummary(len(costs), sum(costs.values()), len(pending))


# -- from version to version: each step knows the tables of its time ---------------------------------------------------


def _to_2(connection: Connection) -> None:
    """Where each study stands becomes part of its row."""
    moment = "TIMESTAMP WITH TIME ZONE" if connection.dialect.name == "postgresql" else "DATETIME"
    count = "INTEGER DEFAULT 0 NOT NULL"
    added = {"goal": "TEXT DEFAULT '' NOT NULL", "steps": count, "spent": "FLOAT DEFAULT 0 NOT NULL", "pending": count}
    for name, kind in {**added, "created": moment, "changed": moment}.items():
        connection.execute(text(f"ALTER TABLE truvar_studies ADD COLUMN {name} {kind}"))
    for id_ in connection.scalars(select(StudyRow.id)).all():
        columns = EventRow.time, EventRow.kind, EventRow.details
        query = select(*columns).where(EventRow.study_id == id_).order_by(EventRow.number)
        rows = [(row.time, row.kind, row.details) for row in connection.execute(query)]
        try:
            values = _row_of(rows)
        except (AttributeError, LookupError, TypeError, ValueError):  # one that says so itself when it is opened
            values = {
                "goal": DAMAGED,
                "created": rows[0][0] if rows else None,
                "changed": rows[-1][0] if rows else None,
            }
        connection.execute(update(StudyRow).where(StudyRow.id == id_).values(values))


def _row_of(rows: Sequence[tuple[datetime, str, str]]) -> dict[str, Any]:
    """Where a study stands after events (time, kind, details)."""
    events = [(kind, json.loads(details)) for _, kind, details in rows]
    stands = _standing(events)
    return {
        "goal": goal_in_words(deserialize(events[0][1]["goal"])),
        "steps": stands.steps,
        "spent": stands.spent,
        "pending": stands.pending,
        "created": rows[0][0],
        "changed": rows[-1][0],
    }


MIGRATIONS: tuple[Callable[[Connection], None], ...] = (_to_2,)  # from version 1, from 2, ...
