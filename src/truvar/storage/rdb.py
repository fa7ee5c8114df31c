"""Storage in a relational database, SQLite or PostgreSQL.

A write transaction on an event log is a transaction of the database. In SQLite it takes the write lock when it begins
(BEGIN IMMEDIATE), in PostgreSQL it locks the row of the study. A second writer waits, and then sees the events of the
first.
"""

from __future__ import annotations

import gc
import json
import os
import random
import sqlite3
import time
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, insert, select, update
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError

from truvar.domain.goals import LevelSet
from truvar.exceptions import (
    DamagedStudyError,
    InvalidArgumentError,
    StorageError,
    StoreNotFoundError,
    StudyExistsError,
    StudyNotFoundError,
    TruvarError,
    import_optional,
)
from truvar.messages import for_interface
from truvar.storage.base import Event, Transaction, check_study_name
from truvar.storage.migrations import prepare_tables, read_version
from truvar.storage.models import EVENTS, SCHEMA_VERSION, STUDIES
from truvar.storage.serialization import deserialize, dump_json, serialize

if TYPE_CHECKING:
    import pandas as pd

WRITE_TIMEOUT = 60  # seconds to wait for the write lock of SQLite
SQLITE_TIMEOUT = 5  # seconds to wait for any other lock of SQLite
COLLECT_AFTER = 0.5  # seconds; an interrupt may leave a connection with the lock to the garbage collector
MIN_RETRY_WAIT = 0.001  # seconds between two attempts to take the write lock, at least
MAX_RETRY_WAIT = 0.005  # seconds between two attempts to take the write lock, at most
URL_EXAMPLES = "sqlite:///lake.db or postgresql://user:password@host/database"
LISTED_COLUMNS = ("name", "goal", "steps", "spent", "pending", "created", "changed")

# Messages for errors of the database, by the first characters of SQLite's error name or PostgreSQL's error code.
DATABASE_ERRORS: dict[tuple[str, ...], str] = {
    ("SQLITE_FULL", "53"): "is full ({error}); nothing was changed: free some space and try again",
    ("SQLITE_READONLY", "25006"): (
        "cannot be written to ({error}); nothing was changed: change its permissions, or copy it to a folder that you "
        "can write to"
    ),
    ("SQLITE_CANTOPEN",): (
        "cannot be opened ({error}); SQLite writes files beside the database, even to read it: change the permissions "
        "of the folder, or copy the database to a folder that you can write to"
    ),
    ("SQLITE_NOTADB",): "is not an SQLite database ({error}); give another file",
    ("SQLITE_BUSY", "SQLITE_LOCKED", "55P03"): (
        f"has been locked by others for more than {WRITE_TIMEOUT} s ({{error}}); nothing was changed: try again later"
    ),
    ("SQLITE_IOERR",): "cannot be read or written ({error}); nothing was changed: check the disk and try again",
    ("SQLITE_CORRUPT",): "is damaged ({error}); use an undamaged copy of it",
    ("28",): "refuses the connection ({error}); check user and password",
    ("42501",): "does not allow this ({error}); nothing was changed: ask its owner for the permission",
    ("3D000",): "does not exist ({error}); create the database first",
}


class RDBStorage:
    """Store of studies in a database. The database is opened, and its tables are migrated, at the first use.

    Args:
        url: URL of an SQLite file or a PostgreSQL database.

    Attributes:
        url: The URL, with the driver.
        is_sqlite: Whether it is an SQLite file.
        label: The store in messages: its path or URL without the password.

    Raises:
        InvalidArgumentError: If `url` is not such a URL.
        MissingDependencyError: If the driver of PostgreSQL is not installed.
    """

    def __init__(self, url: str) -> None:
        self.url = _check_url(url)
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        public_url = self.url.render_as_string(hide_password=True)
        self.label = for_interface(public_url, cli=self.url.database if self.is_sqlite else public_url)
        self._version = 0  # of the tables; 0 until they have been looked at
        self._engine: Engine | None = None
        self._process_id = 0  # of the process that created the engine

    # -- studies -------------------------------------------------------------------------------------------------------

    def create_study(self, name: str | None) -> RDBEventLog:
        """Return the event log of a new study, which is created by its first transaction.

        Raises:
            InvalidArgumentError: If the name cannot be used.
        """
        return RDBEventLog(self, check_study_name(name), None)

    def get_event_log(self, name: str) -> RDBEventLog:
        """Return the event log of an existing study.

        Raises:
            StudyNotFoundError: If there is no such study; the message lists the names that there are.
            StoreNotFoundError: If there is no store at the URL.
        """
        event_log = self.find_event_log(name)
        if event_log is None:
            names = self.study_names()
            existing = f"it has {', '.join(names)}" if names else "it has no studies yet"
            raise StudyNotFoundError(f"there is no study {name!r} in the store {self.label}; {existing}")
        return event_log

    def find_event_log(self, name: str) -> RDBEventLog | None:
        """Return the event log of a study, or None if there is no such study."""
        with self.read_transaction() as connection:
            study_id = connection.scalar(select(STUDIES.c.id).where(STUDIES.c.name == name))
        return None if study_id is None else RDBEventLog(self, name, study_id)

    def study_names(self) -> list[str]:
        """Return the names of the studies, sorted."""
        with self.read_transaction() as connection:
            return sorted(connection.scalars(select(STUDIES.c.name)))

    def list_studies(self) -> pd.DataFrame:
        """Return a row per study, sorted by name, with the columns `LISTED_COLUMNS`."""
        import pandas as pd

        columns = [STUDIES.c[name] for name in LISTED_COLUMNS]
        with self.read_transaction() as connection:
            rows = [tuple(row) for row in connection.execute(select(*columns).order_by(STUDIES.c.name))]
        return pd.DataFrame(rows, columns=list(LISTED_COLUMNS))

    # -- connections ---------------------------------------------------------------------------------------------------

    @contextmanager
    def read_transaction(self) -> Iterator[Connection]:
        """Open a transaction for reading.

        Raises:
            StoreNotFoundError: If there is no store at the URL.
            StorageError: If the database cannot be used.
        """
        with self._translate_errors():
            self._open()
            with self._get_engine().connect() as connection, connection.begin():
                yield connection

    @contextmanager
    def write_transaction(self) -> Iterator[Connection]:
        """Open a transaction for writing. It creates the tables if there are none, and migrates older ones.

        Raises:
            StoreNotFoundError: If the folder for an SQLite file does not exist.
            StorageError: If the database cannot be used.
        """
        if self._path is not None and not self._path.parent.is_dir():
            raise StoreNotFoundError(
                f"there is no folder {self._path.parent} for the store {self.label}; create the folder first"
            )
        with self._translate_errors(), self._get_engine().connect() as connection:
            connection = connection.execution_options(writes=True)
            with connection.begin():
                if self._version < SCHEMA_VERSION:
                    prepare_tables(connection)
                yield connection
        self._version = SCHEMA_VERSION

    def _open(self) -> None:
        """Check that the store exists, and migrate its tables if they are older."""
        if self._version == SCHEMA_VERSION:
            return
        if self._path is not None and not self._path.exists():
            raise self._not_found()
        with self._get_engine().connect() as connection, connection.begin():
            self._version = read_version(connection)
        if self._version == 0:
            raise self._not_found()
        if self._version < SCHEMA_VERSION:
            with self.write_transaction():
                pass

    def _not_found(self) -> StoreNotFoundError:
        address = for_interface("the URL", cli="its path" if self.is_sqlite else "the URL")
        create = for_interface("tv.Study(..., store=...)", cli="truvar new PROBLEM.toml --store STORE")
        return StoreNotFoundError(f"there is no store {self.label}; check {address}, or create a study there: {create}")

    @property
    def _path(self) -> Path | None:
        """Path of the SQLite file; None for PostgreSQL and for SQLite's own `file:` URIs."""
        name = self.url.database or ""
        return Path(name) if self.is_sqlite and not name.startswith("file:") else None

    def _get_engine(self) -> Engine:
        """Return the engine of this process: a forked process cannot share connections with its parent."""
        if self._engine is None or self._process_id != os.getpid():
            if self._engine is not None:
                self._engine.dispose(close=False)
            self._engine = _create_engine(self.url)
            self._process_id = os.getpid()
            weakref.finalize(self, self._engine.dispose)
        return self._engine

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        """Raise a `StorageError` for an error of the database."""
        try:
            yield
        except DBAPIError as error:
            raise StorageError(f"the store {self.label} {_error_text(error)}") from None


class RDBEventLog:
    """Event log of one study in a database.

    Args:
        storage: The store.
        name: Name of the study.
        study_id: Its key in the table of studies; None: the first transaction creates the study.
    """

    def __init__(self, storage: RDBStorage, name: str, study_id: int | None) -> None:
        self.storage = storage
        self.name = name
        self._study_id = study_id

    def since(self, number: int) -> Sequence[Event]:
        """Return the events after that number.

        Raises:
            DamagedStudyError: If an event is damaged.
        """
        if self._study_id is None:
            return []
        with self.storage.read_transaction() as connection:
            return self._read_events(connection, number)

    @contextmanager
    def transaction(self, number: int) -> Iterator[Transaction]:
        """Open an exclusive write transaction.

        Raises:
            StudyExistsError: If it would create a study whose name is taken.
            DamagedStudyError: If an event is damaged.
        """
        study_id = self._study_id
        transaction = Transaction([])
        with self.storage.write_transaction() as connection:
            if study_id is None:
                study_id = self._insert_study(connection)
            else:
                if not self.storage.is_sqlite:
                    connection.execute(select(STUDIES.c.id).where(STUDIES.c.id == study_id).with_for_update())
                transaction.new_events = self._read_events(connection, number)
            yield transaction
            if transaction.appended:
                connection.execute(insert(EVENTS), [_event_values(study_id, each) for each in transaction.appended])
                connection.execute(update(STUDIES).where(STUDIES.c.id == study_id).values(_study_values(transaction)))
        self._study_id = study_id

    def _insert_study(self, connection: Connection) -> int:
        if connection.scalar(select(STUDIES.c.id).where(STUDIES.c.name == self.name)) is not None:
            resume = for_interface(
                f"continue it with tv.load(url, {self.name!r})", cli="continue with it", http="continue with it"
            )
            rename = for_interface("give another name", cli="give another name with --name NAME")
            raise StudyExistsError(
                f"the store {self.storage.label} already has a study {self.name!r}; {resume}, or {rename}"
            )
        key: Any = connection.execute(insert(STUDIES).values(name=self.name)).inserted_primary_key
        return int(key[0])

    def _read_events(self, connection: Connection, after: int) -> list[Event]:
        columns = (EVENTS.c.number, EVENTS.c.time, EVENTS.c.who, EVENTS.c.kind, EVENTS.c.details)
        newer = (EVENTS.c.study_id == self._study_id, EVENTS.c.number > after)
        events = []
        for row in connection.execute(select(*columns).where(*newer).order_by(EVENTS.c.number)):
            try:
                details = deserialize(json.loads(row.details), deferred=True)
            except TruvarError:
                raise
            except (AttributeError, LookupError, TypeError, ValueError) as error:
                raise DamagedStudyError(
                    f"event {row.number} of the study {self.name!r} in the store {self.storage.label} is damaged "
                    f"({error!r}); use an undamaged copy of the store"
                ) from None
            events.append(Event(row.number, row.time, row.who, row.kind, details))
        return events


def _event_values(study_id: int, event: Event) -> dict[str, Any]:
    """Return the row of an event."""
    return {
        "study_id": study_id,
        "number": event.number,
        "time": event.time,
        "who": event.who,
        "kind": event.kind,
        "details": dump_json(serialize(event.details, f"event {event.kind!r}")),
    }


def _study_values(transaction: Transaction) -> dict[str, Any]:
    """Return the columns of a study that a transaction changes."""
    first = transaction.appended[0]
    values = {
        "steps": transaction.summary.steps,
        "spent": transaction.summary.spent,
        "pending": transaction.summary.pending,
        "changed": transaction.appended[-1].time,
    }
    if first.kind == "created":
        values |= {"goal": _goal_text(first.details["goal"]), "created": first.time}
    return values


def _goal_text(goal: Any) -> str:
    """Return a goal in words, for the list of studies."""
    if not isinstance(goal, LevelSet):
        return "maximum" if goal.sign > 0 else "minimum"
    if goal.threshold is not None:
        return f"above {goal.threshold:g}"
    return f"above {100 * (goal.fraction_of_max or 0.0):g} % of the maximum"


def _check_url(given: str) -> URL:
    """Return the URL of a store with its driver, or raise."""
    try:
        url = make_url(given)
    except ArgumentError:
        raise InvalidArgumentError(
            f"a store must be a URL such as {URL_EXAMPLES}, got {given!r}; correct the URL"
        ) from None
    if url.drivername in ("postgres", "postgresql"):
        url = url.set(drivername="postgresql+psycopg")
    if url.drivername not in ("sqlite", "sqlite+pysqlite", "postgresql+psycopg"):
        raise InvalidArgumentError(
            f"a store must be in SQLite or PostgreSQL, got {given!r}; give a URL such as {URL_EXAMPLES}"
        )
    if url.get_backend_name() == "sqlite" and url.database in (None, "", ":memory:"):
        raise InvalidArgumentError(
            f"a store must be a file, such as {URL_EXAMPLES}, got {given!r}; for a study in memory leave it out"
        )
    if url.get_backend_name() == "postgresql":
        import_optional("psycopg", "a store in PostgreSQL", "store")
    return url


def _create_engine(url: URL) -> Engine:
    if url.get_backend_name() != "sqlite":
        return create_engine(url, pool_pre_ping=True)
    engine = create_engine(url, connect_args={"timeout": SQLITE_TIMEOUT})

    @event.listens_for(engine, "connect")
    def _configure(connection: Any, _: Any) -> None:
        connection.isolation_level = None  # transactions begin in `_begin`, not in the driver
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA synchronous = FULL")  # a commit survives a crash of the machine

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get("writes", False)
        if writes and connection.exec_driver_sql("PRAGMA journal_mode").scalar() != "wal":
            connection.exec_driver_sql("PRAGMA journal_mode = WAL")  # readers and the writer do not block each other
        if writes and _take_write_lock(connection.connection.driver_connection):
            return
        # Without the lock, BEGIN IMMEDIATE fails again, and SQLAlchemy turns its error into a DBAPIError.
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _take_write_lock(connection: Any) -> bool:
    """Begin a transaction of SQLite that has the write lock; return whether that succeeded in `WRITE_TIMEOUT`.

    SQLite's own waiting tries less and less often, down to ten times a second. When many processes work on a study,
    the lock is hardly ever free at such a moment, and a late process could wait for ever. Short random waits give every
    process the same chance.
    """
    connection.execute("PRAGMA busy_timeout = 0")
    began = time.monotonic()
    collected = False
    try:
        while time.monotonic() < began + WRITE_TIMEOUT:
            try:
                connection.execute("BEGIN IMMEDIATE")
                return True
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                    return False
            if not collected and time.monotonic() > began + COLLECT_AFTER:
                collected = True
                gc.collect()
            time.sleep(random.uniform(MIN_RETRY_WAIT, MAX_RETRY_WAIT))
        return False
    finally:
        connection.execute(f"PRAGMA busy_timeout = {1000 * SQLITE_TIMEOUT}")


def _error_text(error: DBAPIError) -> str:
    """Return what an error of the database means for the user, and what to do about it."""
    message = " ".join(str(error.orig).split())
    code = str(getattr(error.orig, "sqlite_errorname", None) or getattr(error.orig, "sqlstate", None) or "")
    for prefixes, meaning in DATABASE_ERRORS.items():
        if code.startswith(prefixes):
            return meaning.format(error=message)
    if error.connection_invalidated or not code:
        return f"cannot be reached ({message}); check the URL, and that the server is running"
    return f"failed ({message}); nothing was changed: correct the cause and try again"
