"""Database tables of a store, as they are now. `truvar.storage.migrations` has those of earlier versions."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import DateTime, Dialect, ForeignKey, String, Text, TypeDecorator
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from truvar.storage.base import MAX_STORED_NAME_LENGTH

SCHEMA_VERSION = 2  # of the tables in this module


class UTCDateTime(TypeDecorator[datetime]):
    """Column type for times in UTC. SQLite stores no time zone, so every time is converted to UTC first."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> Any:
        """Convert a time to UTC before it is stored."""
        return None if value is None else value.astimezone(UTC)

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        """Add the time zone to a time that was read."""
        return None if value is None else value.replace(tzinfo=value.tzinfo or UTC).astimezone(UTC)


class Base(DeclarativeBase):
    """Base class of the tables."""


class SchemaRow(Base):
    """Table of one row, the version of the tables."""

    __tablename__ = "truvar_schema"
    version: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)


class StudyRow(Base):
    """Table of studies, with the counters and times after the last event of each."""

    __tablename__ = "truvar_studies"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(MAX_STORED_NAME_LENGTH), unique=True)
    goal: Mapped[str] = mapped_column(Text, server_default="")
    steps: Mapped[int] = mapped_column(server_default="0")
    spent: Mapped[float] = mapped_column(server_default="0")
    pending: Mapped[int] = mapped_column(server_default="0")
    created: Mapped[datetime | None] = mapped_column(UTCDateTime)
    changed: Mapped[datetime | None] = mapped_column(UTCDateTime)


class EventRow(Base):
    """Table of events. The details are JSON, in which numbers keep every bit."""

    __tablename__ = "truvar_events"
    study_id: Mapped[int] = mapped_column(ForeignKey(StudyRow.id), primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    time: Mapped[datetime] = mapped_column(UTCDateTime)
    who: Mapped[str] = mapped_column(String(200))
    kind: Mapped[str] = mapped_column(String(20))
    details: Mapped[str] = mapped_column(Text)
