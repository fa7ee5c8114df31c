"""The database behind a store: connections, turns and what its errors mean.

A turn is one transaction. In SQLite it begins with the lock to write (BEGIN IMMEDIATE), in PostgreSQL it locks the
study's row: whoever comes second waits, and then sees what the first has written.
"""

from __future__ import annotations

import json
import os
import random
import sqlite3
import time
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
from sqlalchemy import URL, Connection, Engine, create_engine, event, insert, select, update
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError

from truvar.exceptions import StorageError, TruvarError, import_optional
from truvar.messages import for_interface
from truvar.storage.base import Event, Transaction, check_study_name
from truvar.storage.models import VERSION, EventRow, StudyRow, goal_in_words, prepare, version_of
from truvar.storage.serialization import deserialize, serialize, to_text

BUSY = 60  # seconds to wait for one's turn
SOON = 5  # ... and for whatever else somebody may be doing to a file of SQLite
EXAMPLES = "sqlite:///lake.db or postgresql://user:password@host/database"
MEANINGS = {  # by the beginning of SQLite's name of an error, or of PostgreSQL's code
    ("SQLITE_FULL", "53"): "is full ({message}); make room and do it again: nothing was changed",
    ("SQLITE_READONLY", "25006"): (
        "cannot be written to ({message}); change its permissions, or copy it to where you may: nothing was changed"
    ),
    ("SQLITE_CANTOPEN",): (
        "cannot be opened ({message}); SQLite has to write beside the file, even to read it: get the right to, or copy "
        "it to where you may"
    ),
    ("SQLITE_NOTADB",): "is no SQLite database ({message}); give another file",
    ("SQLITE_BUSY", "SQLITE_LOCKED", "55P03"): (
        f"is in use by others for more than {BUSY} s ({{message}}); do it again later: nothing was changed"
    ),
    ("SQLITE_IOERR",): "cannot be read or written ({message}); see to the disk and do it again: nothing was changed",
    ("SQLITE_CORRUPT",): "is damaged ({message}); take a copy of it that is not",
    ("28",): "does not let you in ({message}); check user and password",
    ("42501",): "does not let you do this ({message}); ask its owner for the right: nothing was changed",
    ("3D000",): "does not exist ({message}); create the database first",
}
OVERVIEW = ("name", "goal", "steps", "spent", "pending", "created", "changed")


class RDBStorage:
    """A store, given by its URL."""

    def __init__(self, url: str) -> None:
        self.url = _checked(url)
        self.sqlite = self.url.get_backend_name() == "sqlite"
        url = self.url.render_as_string(hide_password=True)
        self.shown = for_interface(url, cli=self.url.database if self.sqlite else url)
        self._version = 0  # of the tables, as far as is known
        self._engine: Engine | None = None
        self._process = 0

    # -- studies -------------------------------------------------------------------------------------------------------

    def create(self, name: str | None) -> RDBEventLog:
        """The journal of a new study."""
        return RDBEventLog(self, check_study_name(name), None)

    def find(self, name: str) -> RDBEventLog:
        """The journal of a study that is there."""
        found = self.event_log(name)
        if found is None:
            with self.reading() as connection:
                names = sorted(connection.scalars(select(StudyRow.name)))
            there = f"it has {', '.join(names)}" if names else "it has none yet"
            raise TruvarError(f"there is no study {name!r} in the store {self.shown}; {there}")
        return found

    def event_log(self, name: str) -> RDBEventLog | None:
        """The same, or None."""
        with self.reading() as connection:
            id_ = connection.scalar(select(StudyRow.id).where(StudyRow.name == name))
        return None if id_ is None else RDBEventLog(self, name, id_)

    def overview(self) -> pd.DataFrame:
        """A row per study."""
        with self.reading() as connection:
            rows = connection.execute(select(*[getattr(StudyRow, name) for name in OVERVIEW]).order_by(StudyRow.name))
            return pd.DataFrame([tuple(row) for row in rows], columns=list(OVERVIEW))

    # -- connections ---------------------------------------------------------------------------------------------------

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection to read from; the store must be there."""
        with self._explained():
            self._open()
            with self._connected().connect() as connection, connection.begin():
                yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A connection to write with, in one transaction; in SQLite it has the lock from the beginning."""
        if self._file is not None and not self._file.parent.is_dir():
            raise TruvarError(f"there is no folder {self._file.parent} for the store {self.shown}; make it first")
        with self._explained(), self._connected().connect() as connection:
            connection = connection.execution_options(writes=True)
            with connection.begin():
                if self._version < VERSION:
                    prepare(connection)
                yield connection
        self._version = VERSION

    def _open(self) -> None:
        """Makes sure that the tables are there and those of this version."""
        if self._version == VERSION:
            return
        where = for_interface("the URL", cli="its path" if self.sqlite else "the URL")
        begin = for_interface("tv.Study(..., store=...)", cli="truvar new PROBLEM.toml --store STORE")
        missing = f"there is no store {self.shown}; check {where}, or begin a study there: {begin}"
        if self._file is not None and not self._file.exists():
            raise TruvarError(missing)
        with self._connected().connect() as connection, connection.begin():
            self._version = version_of(connection)
        if self._version == 0:
            raise TruvarError(missing)
        if self._version < VERSION:
            with self.writing():
                pass

    @property
    def _file(self) -> Path | None:
        """Of SQLite, given by its path."""
        name = self.url.database or ""
        return Path(name) if self.sqlite and not name.startswith("file:") else None

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
            raise StorageError(f"the store {self.shown} {_meaning(error)}") from None


class RDBEventLog:
    """The journal of one study; `study_id` None: to be created by its first turn."""

    def __init__(self, database: RDBStorage, name: str, study_id: int | None) -> None:
        self.database, self.name, self._id = database, name, study_id

    def since(self, number: int) -> Sequence[Event]:
        if self._id is None:
            return []
        with self.database.reading() as connection:
            return self._events(connection, number)

    @contextmanager
    def transaction(self, number: int) -> Iterator[Transaction]:
        with self.database.writing() as connection:
            id_, transaction = self._id, Transaction([])
            if id_ is None:
                id_ = self._created(connection)
            else:
                if not self.database.sqlite:
                    connection.execute(select(StudyRow.id).where(StudyRow.id == id_).with_for_update())
                transaction.new_events = self._events(connection, number)
            yield transaction
            if transaction.written:
                connection.execute(insert(EventRow), [_row(id_, event) for event in transaction.written])
                connection.execute(update(StudyRow).where(StudyRow.id == id_).values(_summary(transaction)))
        self._id = id_

    def _created(self, connection: Connection) -> int:
        if connection.scalar(select(StudyRow.id).where(StudyRow.name == self.name)) is not None:
            on = for_interface(
                f"go on with it by tv.load(url, {self.name!r})", cli="go on with it", http="go on with it"
            )
            another = for_interface("another name", cli="another with --name NAME")
            raise TruvarError(
                f"the store {self.database.shown} has a study {self.name!r} already; {on}, or give {another}"
            )
        key: Any = connection.execute(insert(StudyRow).values(name=self.name)).inserted_primary_key
        return int(key[0])

    def _events(self, connection: Connection, after: int) -> list[Event]:
        columns = EventRow.number, EventRow.time, EventRow.who, EventRow.kind, EventRow.details
        query = select(*columns).where(EventRow.study_id == self._id, EventRow.number > after).order_by(EventRow.number)
        rows = connection.execute(query)
        return [Event(row.number, row.time, row.who, row.kind, deserialize(json.loads(row.details))) for row in rows]


def _row(study_id: int, event: Event) -> dict[str, Any]:
    details = to_text(serialize(event.details, f"event {event.kind!r}"))
    when = {"study_id": study_id, "number": event.number, "time": event.time}
    return {**when, "who": event.who, "kind": event.kind, "details": details}


def _summary(transaction: Transaction) -> dict[str, Any]:
    """What the row of a study says once the turn has ended."""
    first, last, summary = transaction.written[0], transaction.written[-1], transaction.summary
    begun = {"goal": goal_in_words(first.details["goal"]), "created": first.time} if first.kind == "created" else {}
    now = {"steps": summary.steps, "spent": summary.spent, "pending": summary.pending, "changed": last.time}
    return begun | now


def _checked(given: str) -> URL:
    try:
        url = make_url(given)
    except ArgumentError:
        raise TruvarError(f"a store must be a URL such as {EXAMPLES}, got {given!r}; give one") from None
    if url.drivername in ("postgres", "postgresql"):
        url = url.set(drivername="postgresql+psycopg")
    if url.drivername not in ("sqlite", "sqlite+pysqlite", "postgresql+psycopg"):
        raise TruvarError(f"a store must be in SQLite or PostgreSQL, such as {EXAMPLES}, got {given!r}; give one")
    if url.get_backend_name() == "sqlite" and url.database in (None, "", ":memory:"):
        raise TruvarError(f"a store must be a file, such as {EXAMPLES}, got {given!r}; leave it out for memory")
    if url.get_backend_name() == "postgresql":
        import_optional("psycopg", "a store in PostgreSQL", "store")
    return url


def _engine(url: URL) -> Engine:
    if url.get_backend_name() != "sqlite":
        return create_engine(url, pool_pre_ping=True)
    engine = create_engine(url, connect_args={"timeout": SOON})

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
        if not (writes and _locked(connection.connection.driver_connection)):
            connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _locked(connection: Any) -> bool:
    """Begins a transaction of SQLite with the lock to write, as soon as it is free; False: it cannot be had.

    SQLite's own waiting looks ever more rarely, down to ten times a second: a study on which many work is hardly ever
    free at that moment, and whoever came late would wait for ever. Looking often, everyone has the same chance.
    """
    connection.execute("PRAGMA busy_timeout = 0")
    end = time.monotonic() + BUSY
    try:
        while time.monotonic() < end:
            try:
                connection.execute("BEGIN IMMEDIATE")
                return True
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                    return False
            time.sleep(random.uniform(0.001, 0.005))
        return False
    finally:
        connection.execute(f"PRAGMA busy_timeout = {1000 * SOON}")


def _meaning(error: DBAPIError) -> str:
    """What an error of the database amounts to, and what to do."""
    message = " ".join(str(error.orig).split())
    code = str(getattr(error.orig, "sqlite_errorname", None) or getattr(error.orig, "sqlstate", None) or "")
    for codes, meaning in MEANINGS.items():
        if code.startswith(codes):
            return meaning.format(message=message)
    if error.connection_invalidated or not code:
        return f"cannot be reached ({message}); check the URL, and that the server runs"
    return f"has failed ({message}); see to it and do it again: nothing was changed"
