"""Storage in a relational database, SQLite or PostgreSQL.

A write transaction on an event log is a transaction of the database. In SQLite it takes the write
lock when it begins (BEGIN IMMEDIATE), in PostgreSQL it locks the row of the study. A second writer
waits, and then sees the events of the first.
"""

from __future__ import annotations

import json
import sqlite3
import threading
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import (
    Connection,
    Engine,
    RowMapping,
    bindparam,
    func,
    insert,
    select,
    update,
)
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from truvar.exceptions import (
    DamagedStudyError,
    SerializationError,
    StorageError,
    StoreNotFoundError,
    StudyExistsError,
    StudyNotFoundError,
    TruvarError,
    UncertainChangeError,
)
from truvar.messages import for_interface, mask_passwords
from truvar.storage._checksums import ROW_COLUMNS, event_checksum, name_checksum, row_checksum
from truvar.storage._connections import check_url, error_text, open_engine
from truvar.storage._files import FileIdentity, FileState, OpenFiles, file_identity, file_state
from truvar.storage._migrations import prepare_tables, read_version
from truvar.storage._models import EVENTS, SCHEMA_VERSION, STUDIES
from truvar.storage._postgres import is_overdue, keep_alive
from truvar.storage._turns import turns_at
from truvar.storage.base import Event, StudySummary, Transaction, check_study_name
from truvar.storage.forks import connected_objects, database_use, members
from truvar.storage.serialization import deserialize, dump_json, serialize

if TYPE_CHECKING:
    import pandas as pd

# Seconds after a time-out during which no other answer is waited for.
_UNREACHABLE_SECONDS = 5.0
_DAMAGED_GOAL = "damaged"  # in the list, of a study whose row cannot be trusted
_LISTED_COLUMNS = ("name", "goal", "steps", "spent", "pending", "created", "changed")

# Statements of every transaction. SQLAlchemy keeps what it compiles of a statement with the object.
_ROW_NAMES = (*ROW_COLUMNS, "checksum")
_EVENT_NAMES = ("number", "time", "who", "kind", "details", "checksum")
_READ_ROW = select(*(STUDIES.c[name] for name in (*_ROW_NAMES, "name", "name_checksum"))).where(
    STUDIES.c.id == bindparam("study")
)
_READ_AND_LOCK_ROW = _READ_ROW.with_for_update()
_UPDATE_ROW = (
    update(STUDIES)
    .where(STUDIES.c.id == bindparam("study"))
    .values({name: bindparam(f"new_{name}") for name in _ROW_NAMES})
)
_READ_EVENTS = (
    select(*(EVENTS.c[name] for name in _EVENT_NAMES))
    .where(EVENTS.c.study_id == bindparam("study"), EVENTS.c.number > bindparam("after"))
    .order_by(EVENTS.c.number)
)
_READ_CHECKSUM = select(EVENTS.c.checksum).where(
    EVENTS.c.study_id == bindparam("study"), EVENTS.c.number == bindparam("number")
)
_INSERT_EVENTS = insert(EVENTS)

_storages: weakref.WeakSet[RDBStorage] = weakref.WeakSet()  # all of this process


class RDBStorage:
    """Store of studies in a database.

    The database is opened, and its tables are migrated, at the first use.

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
        self.url = check_url(url)
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        public_url = mask_passwords(self.url.render_as_string(hide_password=True))
        self.label = for_interface(
            public_url, cli=self.url.database if self.is_sqlite else public_url
        )
        self._version = 0  # of the tables; 0 until they have been looked at
        self._engine: Engine | None = None
        self._unreachable_until = 0.0  # on the monotonic clock; until then nobody tries to connect
        self._finalizer: weakref.finalize[Any, Any] | None = (
            None  # closes the connections of the engine
        )
        self._engine_lock = threading.Lock()
        self._file: FileIdentity | None = None  # of the SQLite file that the connections are to
        _storages.add(self)
        connected_objects.add(self)

    # -- studies
    # ----------------------------------------------------------------------------------------------

    def create_study(self, name: str | None) -> RDBEventLog:
        """Return the event log of a new study, which is created by its first transaction.

        Raises:
            InvalidArgumentError: If the name cannot be used.
        """
        return RDBEventLog(self, check_study_name(name), None)

    def get_event_log(self, name: str) -> RDBEventLog:
        """Return the event log of an existing study.

        Raises:
            StudyNotFoundError: If there is no such study; the message lists the names that there
                are.
            StoreNotFoundError: If there is no store at the URL.
        """
        event_log = self.find_event_log(name)
        if event_log is None:
            names = self.study_names()
            existing = f"it has {', '.join(names)}" if names else "it has no studies yet"
            raise StudyNotFoundError(
                f"there is no study {name!r} in the store {self.label}; {existing}"
            )
        return event_log

    def find_event_log(self, name: str) -> RDBEventLog | None:
        """Return the event log of a study, or None if there is no such study."""
        with self.read_transaction() as connection:
            study_id = connection.scalar(select(STUDIES.c.id).where(STUDIES.c.name == name))
        return None if study_id is None else RDBEventLog(self, name, study_id)

    def create_event_log(self, name: str) -> RDBEventLog:
        """Return the event log of a new study whose name was checked when it was first created."""
        return RDBEventLog(self, name, None)

    def find_damage(self) -> str | None:
        """Return the first damage that SQLite finds in its file; None without one or SQLite."""
        if not self.is_sqlite:
            return None
        with self.read_transaction() as connection:
            found = str(connection.exec_driver_sql("PRAGMA integrity_check(1)").scalar())
        return None if found == "ok" else " ".join(found.split())

    def study_names(self) -> list[str]:
        """Return the names of the studies, sorted."""
        with self.read_transaction() as connection:
            return sorted(connection.scalars(select(STUDIES.c.name)))

    def list_studies(self) -> pd.DataFrame:
        """Return a row per study, sorted by name, with the columns `_LISTED_COLUMNS`.

        The goal of a study whose row does not match its checksum is "damaged".
        """
        import pandas as pd

        rows = []
        with self.read_transaction() as connection:
            try:
                found = (
                    connection.execute(select(STUDIES).order_by(STUDIES.c.name)).mappings().all()
                )
            except (TypeError, ValueError) as error:
                reason = f"is damaged ({error}); use an undamaged copy of it"
                raise StorageError(
                    f"the list of studies of the store {self.label} {reason}"
                ) from None
        for row in map(_plain, found):
            if row["checksum"] != row_checksum(row) or not _is_name_intact(row):
                row["goal"] = _DAMAGED_GOAL
            rows.append([row[name] for name in _LISTED_COLUMNS])
        return pd.DataFrame(rows, columns=list(_LISTED_COLUMNS))

    # -- connections
    # ----------------------------------------------------------------------------------------------

    @contextmanager
    def read_transaction(self) -> Iterator[Connection]:
        """Open a transaction for reading.

        Raises:
            StoreNotFoundError: If there is no store at the URL.
            StorageError: If the database cannot be used.
        """
        with self._translate_errors():
            self._open()
            with self._connect() as connection, connection.begin():
                if not self.is_sqlite:  # all statements see the same state, as in SQLite
                    connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                yield connection
                self._check_file(connection)

    @contextmanager
    def write_transaction(self) -> Iterator[Connection]:
        """Open a transaction for writing.

        It creates the tables if there are none, and migrates older ones.

        Raises:
            StoreNotFoundError: If the folder for an SQLite file does not exist.
            StorageError: If the database cannot be used.
        """
        if self.path is not None and not self.path.parent.is_dir():
            raise StoreNotFoundError(
                f"there is no folder {self.path.parent} for the store {self.label}; create the "
                "folder first"
            )
        turn = nullcontext() if self.path is None else turns_at(self.path).turn()
        with turn, self._translate_errors(), self._connect() as connection:
            connection = connection.execution_options(writes=True)
            is_committing = False
            try:
                with connection.begin():
                    with keep_alive(connection):
                        if self._version < SCHEMA_VERSION:
                            prepare_tables(connection)
                        yield connection
                    is_committing = True
            except DBAPIError as error:
                if is_committing and error.connection_invalidated:
                    raise self._commit_unanswered(error) from None
                raise
            self._check_file(
                connection, committed=True
            )  # what was committed to a deleted file is lost
        self._version = SCHEMA_VERSION

    def _open(self) -> None:
        """Check that the store exists, and migrate its tables if they are older."""
        if self._version == SCHEMA_VERSION:
            return
        if self.path is not None and not self.path.exists():
            raise self._not_found()
        with self._connect() as connection, connection.begin():
            self._version = read_version(connection)
        if self._version == 0:
            raise self._not_found()
        if self._version < SCHEMA_VERSION:
            with self.write_transaction():
                pass

    @contextmanager
    def _connect(self) -> Iterator[Connection]:
        """Open a connection, to the file that is at the path now."""
        if self._file is not None and self.path is not None and file_identity(self.path) is None:
            raise self._file_changed()  # a new connection would create an empty file
        if time.monotonic() < self._unreachable_until:
            raise StorageError(
                f"the store {self.label} did not answer a moment ago; nothing was changed: try "
                "again later"
            )
        with database_use(), self._get_engine().connect() as connection:
            self._check_file(connection)
            yield connection

    def _check_file(self, connection: Connection, committed: bool = False) -> None:
        """Check that a connection's SQLite file and write-ahead log are still at their paths.

        SQLite keeps both files open and writes a transaction to the log. A log that was removed or
        overwritten takes a commit without an error, and nobody else can read it.

        Args:
            connection: The connection.
            committed: Whether it has just committed, so that its log must have a valid header.

        Raises:
            StorageError: If a file was deleted or replaced. Anything written to it would be lost.
        """
        if self.path is None:
            return
        files: OpenFiles = connection.info["files"]
        self._file = self._file or files.main
        if files.is_replaced() or (committed and not files.has_valid_log()):
            connection.invalidate()
            raise self._file_changed(committed)

    def _file_changed(self, committed: bool = False) -> StorageError:
        """Have the next connections opened to the file at the path, and return an exception.

        The connections of one process share the state of SQLite's log, so those of other objects
        are closed too.
        """
        for storage in members(_storages):
            if storage.path == self.path and storage._engine is not None:
                if self.path is not None and self.path.exists():
                    storage._file = None
                storage._version = 0
                storage._get_engine().dispose()
        outcome = "the last change may be lost" if committed else "nothing was stored"
        return StorageError(
            f"the store {self.label} was deleted or replaced by another file while it was open, or "
            "its file -wal was; "
            f"{outcome}: put the files back, or open the study again"
        )

    def _commit_unanswered(self, error: DBAPIError) -> UncertainChangeError:
        reason = " ".join(str(error.orig).split())
        return UncertainChangeError(
            f"the connection to the store {self.label} was lost while a change was stored "
            f"({reason}); it may have been "
            "stored: repeat the call, which counts once for the same suggestion or key and the "
            "same value"
        )

    def _not_found(self) -> StoreNotFoundError:
        address = for_interface("the URL", cli="its path" if self.is_sqlite else "the URL")
        create = for_interface(
            "tv.Study(..., store=...)", cli="truvar new PROBLEM.toml --store STORE"
        )
        return StoreNotFoundError(
            f"there is no store {self.label}; check {address}, or create a study there: {create}"
        )

    @property
    def path(self) -> Path | None:
        """Path of the SQLite file; None for PostgreSQL and for SQLite's own `file:` URIs."""
        name = self.url.database or ""
        return Path(name) if self.is_sqlite and not name.startswith("file:") else None

    def _get_engine(self) -> Engine:
        """Return the engine of this process."""
        with self._engine_lock:
            if self._engine is None:
                self._engine = open_engine(self.url, self.path)
                self._finalizer = weakref.finalize(self, self._engine.dispose)
            return self._engine

    def close_before_fork(self) -> None:
        """Close unused connections to an SQLite file.

        SQLite takes those of a parent process for its own.
        """
        if self.is_sqlite and self._engine is not None:
            self._engine.dispose()

    def forget_in_child(self) -> None:
        """Forget the engine after a fork.

        A process cannot share connections with its parent, nor end them.
        """
        self._engine_lock = threading.Lock()
        self._engine = None
        if self._finalizer is not None:
            self._finalizer.detach()

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        """Raise a `StorageError` for an error of the database."""
        try:
            yield
        except DBAPIError as error:
            if is_overdue(error.orig):  # those who come next need not wait as long
                self._unreachable_until = time.monotonic() + _UNREACHABLE_SECONDS
            raise StorageError(f"the store {self.label} {error_text(error)}") from None
        except (
            UnicodeDecodeError,
            sqlite3.Error,
            SQLAlchemyError,
        ) as error:  # SQLite's own records are wrong
            reason = " ".join(str(error).split())
            raise StorageError(
                f"the store {self.label} is damaged ({reason}); use an undamaged copy of it"
            ) from None


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
        self._known = (0, "")  # number and checksum of the last event that was read or written
        self._counters: tuple[int, int] | None = (
            None  # steps and pending of the row that was last read
        )
        self._verified: FileState | None = (
            None  # of the SQLite file when all events were last known to be undamaged
        )

    def __reduce__(self) -> Any:
        raise SerializationError(
            f"a stored study cannot be pickled or copied, got {self.name!r}; open it where it is "
            "needed, "
            f"truvar.load(store, {self.name!r}), or copy it to memory, "
            "Study.from_json(study.to_json())"
        )

    def since(self, number: int) -> Sequence[Event]:
        """Return the events after that number.

        Raises:
            DamagedStudyError: If an event is damaged or missing.
        """
        if self._study_id is None:
            return []
        with self.storage.read_transaction() as connection:
            row = self._read_row(connection)
            state = self._file_state()
            events = self._read_events(connection, number, row)
        self._known = (row["events"], row["head"])
        if number == 0:
            self._verified = state
        return events

    def check_summary(self, summary: StudySummary) -> None:
        """Check that the counters in the row of the study are those that its events lead to.

        Raises:
            DamagedStudyError: If they are not.
        """
        if self._counters is not None and self._counters != (summary.steps, summary.pending):
            steps, pending = self._counters
            raise self._damaged(
                f"the list of studies has {steps} measurements and {pending} pending suggestions, "
                "the events have "
                f"{summary.steps} and {summary.pending}"
            )

    @contextmanager
    def transaction(self, number: int) -> Iterator[Transaction]:
        """Open an exclusive write transaction.

        Raises:
            StudyExistsError: If it would create a study whose name is taken.
            DamagedStudyError: If an event is damaged or missing.
        """
        study_id = self._study_id
        transaction = Transaction([])
        row: dict[str, Any] = dict.fromkeys(ROW_COLUMNS) | {"events": 0, "head": ""}
        with self.storage.write_transaction() as connection:
            if study_id is None:
                study_id = self._insert_study(connection)
            else:
                row = self._read_row(connection, lock=True)
                self._verify_changed_file(connection, row)
                transaction.new_events = self._read_events(connection, number, row)
            yield transaction
            if transaction.appended:
                rows = _event_rows(study_id, transaction.appended, row["head"])
                row |= _study_values(transaction)
                row |= {"events": rows[-1]["number"], "head": rows[-1]["checksum"]}
                connection.execute(_INSERT_EVENTS, rows)
                values = {f"new_{name}": value for name, value in row.items()}
                connection.execute(
                    _UPDATE_ROW, {"study": study_id, **values, "new_checksum": row_checksum(row)}
                )
        self._study_id = study_id
        self._known = (row["events"], row["head"])
        self._verified = self._file_state()

    def _file_state(self) -> FileState | None:
        path = self.storage.path
        return None if path is None else file_state(path)

    def _verify_changed_file(self, connection: Connection, row: Mapping[str, Any]) -> None:
        """Verify all events if somebody else wrote to the SQLite file since this object did.

        Transactions go to the log, which SQLite moves into the file now and then. A copy that was
        written over the file changes it too, and the events that only the file has are then others,
        behind what the connection remembers.

        Raises:
            DamagedStudyError: If an event is damaged or missing.
        """
        if self._verified is None or self._file_state() == self._verified:
            return
        connection.exec_driver_sql("PRAGMA shrink_memory")  # forgets pages that were read before
        self._read_events(connection, 0, row)

    def _read_row(self, connection: Connection, lock: bool = False) -> dict[str, Any]:
        """Return the row of the study, and lock it in PostgreSQL if that is asked for."""
        query = _READ_AND_LOCK_ROW if lock and not self.storage.is_sqlite else _READ_ROW
        try:
            found = connection.execute(query, {"study": self._study_id}).mappings().one_or_none()
        except (TypeError, ValueError) as error:
            raise self._damaged(f"its row cannot be read: {error!r}") from None
        if found is None:
            raise StudyNotFoundError(
                f"the study {self.name!r} is no longer in the store {self.storage.label}; open "
                "another"
            )
        row = _plain(found)
        if row.pop("checksum") != row_checksum(row):
            raise self._damaged("its row in the list of studies does not match its checksum")
        if not _is_name_intact(row):
            raise self._damaged("its name in the list of studies does not match its checksum")
        del row["name"], row["name_checksum"]
        self._counters = (row["steps"], row["pending"])
        return row

    def _insert_study(self, connection: Connection) -> int:
        if connection.scalar(select(STUDIES.c.id).where(STUDIES.c.name == self.name)) is not None:
            resume = for_interface(
                f'continue it with tv.load(url, {self.name!r}) or if_exists="load"',
                cli="continue with it",
                http="continue with it",
            )
            rename = for_interface("give another name", cli="give another name with --name NAME")
            raise StudyExistsError(
                f"the store {self.storage.label} already has a study {self.name!r}; {resume}, or "
                f"{rename}"
            )
        values = {"name": self.name, "name_checksum": name_checksum(self.name)}
        key: Any = connection.execute(insert(STUDIES).values(values)).inserted_primary_key
        return int(key[0])

    def _read_events(
        self, connection: Connection, after: int, row: Mapping[str, Any]
    ) -> list[Event]:
        """Return the events after a number; their checksums must lead to that in the row."""
        if after > row["events"]:
            raise self._damaged(
                f"it has {row['events']} events, but {after} were read before: an older copy was "
                "put in its place"
            )
        head = self._checksum_of(connection, after)
        number = after
        events = []
        try:
            for found in connection.execute(
                _READ_EVENTS, {"study": self._study_id, "after": after}
            ).mappings():
                number += 1
                head = event_checksum(head, _plain(found))
                if found["number"] != number:
                    raise self._damaged(f"event {number} is missing")
                if found["checksum"] != head:
                    raise self._damaged(f"event {number} does not match its checksum")
                details = deserialize(json.loads(found["details"]), deferred=True)
                events.append(Event(number, found["time"], found["who"], found["kind"], details))
        except TruvarError:
            raise
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise self._damaged(f"event {number} cannot be read: {error!r}") from None
        if (number, head) != (row["events"], row["head"]):
            raise self._damaged(
                f"{row['events']} events are expected, got {number}, or the last one was changed"
            )
        return events

    def read_prefix(self) -> tuple[list[Event], str | None]:
        """Return the events up to the first that is damaged or missing, and what is wrong there.

        Every event is read separately, so that a damaged page of the file hides no event before it.
        """
        events: list[Event] = []
        head = ""
        row_problem = self._row_problem()
        while True:
            number = len(events) + 1
            of_event = (EVENTS.c.study_id == self._study_id, EVENTS.c.number == number)
            try:
                with self.storage.read_transaction() as connection:
                    found = (
                        connection.execute(select(EVENTS).where(*of_event)).mappings().one_or_none()
                    )
                if found is None:
                    break
                head = event_checksum(head, _plain(found))
                if found["checksum"] != head:
                    return events, f"event {number} does not match its checksum"
                details = deserialize(json.loads(found["details"]), deferred=True)
                events.append(Event(number, found["time"], found["who"], found["kind"], details))
            except (
                AttributeError,
                LookupError,
                TypeError,
                ValueError,
            ) as error:  # the last includes TruvarError
                return events, f"event {number} cannot be read: {error}"
        return events, row_problem or self._problem_of_end(len(events), head)

    def _row_problem(self) -> str | None:
        """Return what is wrong with the row of the study."""
        try:
            with self.storage.read_transaction() as connection:
                self._read_row(connection)
        except TruvarError as error:
            return str(error)
        return None

    def _problem_of_end(self, number: int, head: str) -> str | None:
        """Return what is wrong with the last event, by the number of events and its checksum."""
        with self.storage.read_transaction() as connection:
            row = self._read_row(connection)
            of_study = EVENTS.c.study_id == self._study_id
            stored = connection.scalar(select(func.count()).select_from(EVENTS).where(of_study))
        if (number, head) == (row["events"], row["head"]) and stored == number:
            return None
        return f"{row['events']} events are expected, got {number} in a row"

    def _checksum_of(self, connection: Connection, number: int) -> str:
        """Return the checksum of an event that was read before."""
        if number == 0 or self._known[0] == number:
            return self._known[1] if number else ""
        return str(connection.scalar(_READ_CHECKSUM, {"study": self._study_id, "number": number}))

    def _damaged(self, reason: str) -> DamagedStudyError:
        return DamagedStudyError(
            f"the events of the study {self.name!r} are damaged ({reason}); use an undamaged copy "
            "of the store, or see "
            "what is left of it: truvar check STORE"
        )


def _plain(row: RowMapping) -> dict[str, Any]:
    """Return a row of a table as a dictionary."""
    return {str(name): value for name, value in row.items()}


def _is_name_intact(row: Mapping[str, Any]) -> bool:
    """Return whether the name of a study matches its checksum, if it has one."""
    return row["name_checksum"] in ("", name_checksum(row["name"]))


def _event_rows(study_id: int, events: Sequence[Event], head: str) -> list[dict[str, Any]]:
    """Return the rows of events that follow on one with the checksum `head`."""
    rows = []
    for each in events:
        row = {
            "study_id": study_id,
            "number": each.number,
            "time": each.time,
            "who": each.who,
            "kind": each.kind,
            "details": dump_json(serialize(each.details, f"event {each.kind!r}")),
        }
        head = event_checksum(head, row)
        rows.append({**row, "checksum": head})
    return rows


def _study_values(transaction: Transaction) -> dict[str, Any]:
    """Return the columns of a study that a transaction changes."""
    first = transaction.appended[0]
    values: dict[str, Any] = {
        "steps": transaction.summary.steps,
        "spent": float(transaction.summary.spent),
        "pending": transaction.summary.pending,
        "changed": transaction.appended[-1].time,
    }
    if first.kind == "created":
        values |= {"goal": first.details["goal"].summary, "created": first.time}
    return values
