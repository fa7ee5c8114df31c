"""The database behind a store: connections, turns and what its errors mean.

A turn is one transaction. In SQLite it begins with the lock to write (BEGIN IMMEDIATE), in PostgreSQL it locks the
study's row: whoever comes second waits, and then sees what the first has written.
"""

from __future__ import annotations

import json
import os
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
from sqlalchemy import URL, Connection, Engine, create_engine, event, insert, select, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError

from truvar.errors import TruvarError, optional
from truvar.journal import Event, Turn
from truvar.spelling import read, spell, to_text
from truvar.store.schema import EventRow, StudyRow, prepare, version_of

BUSY = 60  # seconds to wait for others
EXAMPLES = "sqlite:///lake.db or postgresql://user:password@host/database"
LOCK = 0x7472757661720001  # of PostgreSQL, while the tables are made


class Database:
    """A store, given by its URL."""

    def __init__(self, url: str) -> None:
        self.url = _checked(url)
        self.shown = self.url.render_as_string(hide_password=True)
        self.sqlite = self.url.get_backend_name() == "sqlite"
        self._engine: Engine | None = None
        self._process = 0

    # -- studies -------------------------------------------------------------------------------------------------------

    def create(self, name: str | None) -> StoredJournal:
        """The journal of a new study."""
        if not isinstance(name, str) or not 0 < len(name) <= 200 or name != name.strip():
            raise TruvarError(f"a stored study needs a name of at most 200 letters, but it was {name!r}; give name=...")
        return StoredJournal(self, name, None)

    def find(self, name: str) -> StoredJournal:
        """The journal of a study that is there."""
        with self.reading() as connection:
            names = {row.name: row.id for row in connection.execute(select(StudyRow.name, StudyRow.id))}
        if name not in names:
            there = f"it has {', '.join(sorted(names))}" if names else "it has none yet"
            raise TruvarError(f"there is no study {name!r} in the store {self.shown}; {there}")
        return StoredJournal(self, name, names[name])

    def overview(self) -> pd.DataFrame:
        """A row per study."""
        with self.reading() as connection:
            events = connection.execute(
                select(StudyRow.name, EventRow.time, EventRow.kind, EventRow.details)
                .join(EventRow, EventRow.study_id == StudyRow.id)
                .order_by(StudyRow.name, EventRow.number)
            ).all()
        rows: dict[str, dict[str, Any]] = {}
        costs: dict[str, dict[int, float]] = {}
        pending: dict[str, set[int]] = {}
        for name, time, kind, details in events:
            found = json.loads(details)
            if kind == "created":
                rows[name] = {"name": name, "goal": found["goal"]["kind"], "created": time}
                costs[name], pending[name] = {}, set()
            rows[name]["changed"] = time
            id_ = found.get("id", 0)
            if kind == "asked":
                pending[name].add(id_)
            elif kind in ("told", "corrected"):
                costs[name][id_] = found["cost"]
                pending[name].discard(id_)
            elif kind in ("withdrawn", "expired"):
                pending[name].discard(id_)
                costs[name].pop(id_, None)
        for name, row in rows.items():
            row |= {"steps": len(costs[name]), "spent": sum(costs[name].values()), "pending": len(pending[name])}
        columns = ["name", "goal", "steps", "spent", "pending", "created", "changed"]
        return pd.DataFrame(list(rows.values()), columns=columns)

    # -- connections ---------------------------------------------------------------------------------------------------

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection to read from; the store must be there."""
        missing = f"there is no store {self.shown}; check the URL, or begin a study there: tv.Study(..., store=...)"
        if self.sqlite and self._file is not None and not self._file.exists():
            raise TruvarError(missing)
        with self._explained(), self._connected().connect() as connection, connection.begin():
            if version_of(connection) == 0:
                raise TruvarError(missing)
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A connection to write with, in one transaction; in SQLite it has the lock from the beginning."""
        if self.sqlite and self._file is not None and not self._file.parent.is_dir():
            raise TruvarError(f"there is no folder {self._file.parent} for the store {self.shown}; make it first")
        with self._explained(), self._connected().connect() as connection:
            connection = connection.execution_options(writes=True)
            with connection.begin():
                yield connection

    @property
    def _file(self) -> Path | None:
        name = self.url.database or ""
        return None if name.startswith("file:") else Path(name)

    def _connected(self) -> Engine:
        """The engine, of this process: a connection cannot be shared with a process that was forked."""
        if self._engine is None or self._process != os.getpid():
            if self._engine is not None:
                self._engine.dispose(close=False)
            self._engine, self._process = _engine(self.url), os.getpid()
            weakref.finalize(self, self._engine.dispose)
        return self._engine

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except DBAPIError as error:
            raise TruvarError(f"the store {self.shown} {_meaning(error)}; nothing was changed") from None


class StoredJournal:
    """The journal of one study; `study_id` None: to be created by its first turn."""

    def __init__(self, database: Database, name: str, study_id: int | None) -> None:
        self.database, self.name, self._id = database, name, study_id

    def since(self, number: int) -> Sequence[Event]:
        if self._id is None:
            return []
        with self.database.reading() as connection:
            return self._events(connection, number)

    @contextmanager
    def turn(self, number: int) -> Iterator[Turn]:
        with self.database.writing() as connection:
            id_, turn = self._id, Turn([])
            if id_ is None:
                id_ = self._created(connection)
            else:
                if not self.database.sqlite:
                    connection.execute(select(StudyRow.id).where(StudyRow.id == id_).with_for_update())
                turn.news = self._events(connection, number)
            yield turn
            if turn.written:
                connection.execute(insert(EventRow), [_row(id_, event) for event in turn.written])
        self._id = id_

    def _created(self, connection: Connection) -> int:
        if not self.database.sqlite:
            connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": LOCK})
        prepare(connection)
        if connection.scalar(select(StudyRow.id).where(StudyRow.name == self.name)) is not None:
            raise TruvarError(
                f"the store {self.database.shown} has a study {self.name!r} already; go on with it by "
                f"tv.load(url, {self.name!r}), or give another name"
            )
        key: Any = connection.execute(insert(StudyRow).values(name=self.name)).inserted_primary_key
        return int(key[0])

    def _events(self, connection: Connection, after: int) -> list[Event]:
        columns = EventRow.number, EventRow.time, EventRow.who, EventRow.kind, EventRow.details
        query = select(*columns).where(EventRow.study_id == self._id, EventRow.number > after).order_by(EventRow.number)
        rows = connection.execute(query)
        return [Event(row.number, row.time, row.who, row.kind, read(json.loads(row.details))) for row in rows]


def _row(study_id: int, event: Event) -> dict[str, Any]:
    details = to_text(spell(event.details, f"event {event.kind!r}"))
    when = {"study_id": study_id, "number": event.number, "time": event.time}
    return {**when, "who": event.who, "kind": event.kind, "details": details}


def _checked(given: str) -> URL:
    try:
        url = make_url(given)
    except ArgumentError:
        raise TruvarError(f"a store must be a URL such as {EXAMPLES}, but it was {given!r}; give one") from None
    if url.drivername in ("postgres", "postgresql"):
        url = url.set(drivername="postgresql+psycopg")
    if url.drivername not in ("sqlite", "sqlite+pysqlite", "postgresql+psycopg"):
        raise TruvarError(
            f"a store must be in SQLite or PostgreSQL, such as {EXAMPLES}, but it was {given!r}; give one"
        )
    if url.get_backend_name() == "sqlite" and url.database in (None, "", ":memory:"):
        raise TruvarError(f"a store must be a file, such as {EXAMPLES}, but it was {given!r}; leave it out for memory")
    if url.get_backend_name() == "postgresql":
        optional("psycopg", "a store in PostgreSQL", "store")
    return url


def _engine(url: URL) -> Engine:
    if url.get_backend_name() != "sqlite":
        return create_engine(url, pool_pre_ping=True)
    engine = create_engine(url, connect_args={"timeout": BUSY})

    @event.listens_for(engine, "connect")
    def _connect(connection: Any, _: Any) -> None:
        connection.isolation_level = None  # transactions begin where we say
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA synchronous = FULL")  # what is committed outlives the machine, not just the process

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get("writes", False)
        if writes and connection.exec_driver_sql("PRAGMA journal_mode").scalar() != "wal":
            connection.exec_driver_sql("PRAGMA journal_mode = WAL")  # readers and the writer do not wait for each other
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _meaning(error: DBAPIError) -> str:
    """What a database's error amounts to, and what to do."""
    message = " ".join(str(error.orig).split())
    return f"cannot be used ({message})"
