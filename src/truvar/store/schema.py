"""The tables of a store, and how those of earlier versions become the present ones."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, DateTime, Dialect, ForeignKey, String, Text, TypeDecorator, insert, inspect, select
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from truvar.errors import TruvarError

VERSION = 1


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
    version: Mapped[int] = mapped_column(primary_key=True)


class StudyRow(Base):
    """A study."""

    __tablename__ = "truvar_studies"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(200), unique=True)


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
            f"the store was written by a newer truvar (its version is {found}, this one knows {VERSION}); update truvar"
        )
    return int(found)


def prepare(connection: Connection) -> None:
    """Makes the tables, where there are none."""
    if version_of(connection) == 0:
        Base.metadata.create_all(connection)
        connection.execute(insert(SchemaRow).values(version=VERSION))
