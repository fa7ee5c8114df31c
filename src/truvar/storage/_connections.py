"""Connections to a database: URLs of stores, engines for SQLite and PostgreSQL, errors."""

from __future__ import annotations

import gc
import random
import sqlite3
import time
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError

from truvar.exceptions import InvalidArgumentError, import_optional
from truvar.messages import mask_passwords
from truvar.storage._files import OpenFiles
from truvar.storage._postgres import connection_class, postgres_arguments

WRITE_TIMEOUT = 60  # seconds to wait for the write lock of SQLite
SQLITE_TIMEOUT = 5  # seconds to wait for any other lock of SQLite
# Seconds after which garbage is collected: an interrupt may leave a connection with the lock there.
COLLECT_AFTER = 0.5
MIN_RETRY_WAIT = 0.001  # seconds between two attempts to take the write lock, at least
MAX_RETRY_WAIT = 0.005  # seconds between two attempts to take the write lock, at most
URL_EXAMPLES = "sqlite:///lake.db or postgresql://user:password@host/database"
HOST_DELIMITERS = frozenset("@/?&=")  # characters that a host cannot contain

# Messages for errors of the database, by the first characters of SQLite's error name or
# PostgreSQL's error code.
DATABASE_ERRORS: dict[tuple[str, ...], str] = {
    ("SQLITE_FULL", "53"): "is full ({error}); nothing was changed: free some space and try again",
    ("SQLITE_READONLY", "25006"): (
        "cannot be written to ({error}); nothing was changed: change its permissions, or copy it "
        "to a folder that you "
        "can write to"
    ),
    ("SQLITE_CANTOPEN",): (
        "cannot be opened ({error}); SQLite writes files beside the database, even to read it: "
        "change the permissions "
        "of the folder, or copy the database to a folder that you can write to"
    ),
    ("SQLITE_NOTADB",): "is not an SQLite database ({error}); give another file",
    ("SQLITE_BUSY", "SQLITE_LOCKED", "55P03"): (
        f"has been locked by others for more than {WRITE_TIMEOUT} s ({{error}}); nothing was "
        "changed: try again later"
    ),
    (
        "SQLITE_IOERR",
    ): "cannot be read or written ({error}); nothing was changed: check the disk and try again",
    ("SQLITE_CORRUPT",): "is damaged ({error}); use an undamaged copy of it",
    ("28",): "refuses the connection ({error}); check user and password",
    (
        "42501",
    ): "does not allow this ({error}); nothing was changed: ask its owner for the permission",
    ("3D000",): "does not exist ({error}); create the database first",
}


def check_url(given: str) -> URL:
    """Return the URL of a store with its driver, or raise.

    A password among its parameters is moved to its place.
    """
    shown = mask_passwords(repr(given))
    try:
        if not isinstance(given, (str, URL)):  # SQLAlchemy 2.0.0 returns anything else unchanged
            raise ArgumentError
        url = make_url(given)
    except (ArgumentError, ValueError):  # the latter for a port that is no number
        raise InvalidArgumentError(
            f"a store must be a URL such as {URL_EXAMPLES}, got {shown}; correct the URL"
        ) from None
    if url.drivername in ("postgres", "postgresql"):
        url = url.set(drivername="postgresql+psycopg")
    if url.drivername not in ("sqlite", "sqlite+pysqlite", "postgresql+psycopg"):
        raise InvalidArgumentError(
            f"a store must be in SQLite or PostgreSQL, got {shown}; give a URL such as "
            f"{URL_EXAMPLES}"
        )
    if url.get_backend_name() == "sqlite" and url.database in (None, "", ":memory:"):
        raise InvalidArgumentError(
            f"a store must be a file, such as {URL_EXAMPLES}, got {shown}; for a study in memory "
            "leave it out"
        )
    if url.get_backend_name() == "postgresql":
        import_optional("psycopg", "a store in PostgreSQL", "store")
        if not HOST_DELIMITERS.isdisjoint(
            url.host or ""
        ):  # part of a password would be taken for the host
            raise InvalidArgumentError(
                "the password of a store must be percent-encoded (%40 for @, %2F for /), got "
                f"{shown}; encode it"
            )
        password = url.query.get("password")
        if isinstance(password, str):  # SQLAlchemy hides it there alone
            url = url.difference_update_query(["password"]).set(password=password)
    return url


def open_engine(url: URL, path: Path | None) -> Engine:
    """Return the engine of a store, which connects when it is first used.

    Args:
        url: Result of `check_url`.
        path: The file of an SQLite database; None for PostgreSQL.
    """
    if url.get_backend_name() != "sqlite":
        engine = create_engine(url, pool_pre_ping=True, connect_args=postgres_arguments(url))

        @event.listens_for(engine, "do_connect")
        def _connect(dialect: Any, record: Any, arguments: Any, parameters: Any) -> Any:
            return connection_class().connect(*arguments, **parameters)

        return engine
    engine = create_engine(url, connect_args={"timeout": SQLITE_TIMEOUT})

    @event.listens_for(engine, "connect")
    def _configure(connection: Any, record: Any) -> None:
        connection.isolation_level = None  # transactions begin in `_begin`, not in the driver
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA synchronous = FULL")  # a commit survives a crash of the machine
        if path is not None:
            record.info["files"] = OpenFiles(path)

    @event.listens_for(engine, "close")
    def _close(connection: Any, record: Any) -> None:
        files = record.info.get("files")
        configure = getattr(connection, "setconfig", None)  # of Python 3.12
        if configure is not None and files is not None and files.is_replaced():
            # SQLite would write the removed log into the file that was put in the place of its own.
            configure(sqlite3.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, True)  # type: ignore[attr-defined]

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get("writes", False)
        if writes and connection.exec_driver_sql("PRAGMA journal_mode").scalar() != "wal":
            connection.exec_driver_sql(
                "PRAGMA journal_mode = WAL"
            )  # readers and the writer do not block each other
        if writes and _take_write_lock(connection.connection.driver_connection):
            return
        # Without the lock, BEGIN IMMEDIATE fails again, and SQLAlchemy turns its error into a
        # DBAPIError.
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _take_write_lock(connection: Any) -> bool:
    """Begin an SQLite transaction with the write lock; return whether it was free in time.

    SQLite's own waiting tries less and less often, down to ten times a second. When many processes
    work on a study, the lock is hardly ever free at such a moment, and a late process could wait
    for ever. Short random waits give every process the same chance.
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
            time.sleep(random.uniform(MIN_RETRY_WAIT, MAX_RETRY_WAIT))  # nosec B311
        return False
    finally:
        connection.execute(f"PRAGMA busy_timeout = {1000 * SQLITE_TIMEOUT}")


def error_text(error: DBAPIError) -> str:
    """Return what an error of the database means for the user, and what to do about it."""
    message = " ".join(str(error.orig).split())
    code = str(
        getattr(error.orig, "sqlite_errorname", None) or getattr(error.orig, "sqlstate", None) or ""
    )
    for prefixes, meaning in DATABASE_ERRORS.items():
        if code.startswith(prefixes):
            return meaning.format(error=message)
    if isinstance(error.orig, sqlite3.Error) and not code:  # such as text that is not UTF-8
        return f"is damaged ({message}); use an undamaged copy of it"
    if error.connection_invalidated or not code:
        return f"cannot be reached ({message}); check the URL, and that the server is running"
    return f"failed ({message}); nothing was changed: correct the cause and try again"
