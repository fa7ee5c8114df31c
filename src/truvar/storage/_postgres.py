"""Time-outs of PostgreSQL, for servers that freeze and workers that stop.

The server ends a session that is silent within a transaction, as that of a suspended process is. A
process that computes for long within a transaction is not silent: a thread of it sends a statement
now and then.

A server that is frozen ends nothing, and its machine still acknowledges what it is sent, so that
neither its own time-outs nor those of TCP help. The same thread shuts the sockets on which an
answer is overdue.
"""

from __future__ import annotations

import os
import socket
import threading
import time
import weakref
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any

from sqlalchemy import URL, Connection

LOCK_TIMEOUT = 60  # seconds to wait for a lock
# seconds of silence within a transaction after which the server ends it; less than LOCK_TIMEOUT
IDLE_TIMEOUT = 40
STATEMENT_TIMEOUT = 600  # seconds after which the server ends a statement
CONNECT_TIMEOUT = 5  # seconds to wait for a connection
ANSWER_TIMEOUT = 15  # seconds to wait for an answer that waits for no lock
# Seconds to wait for an answer within a change; the server reports a lock first.
CHANGE_TIMEOUT = LOCK_TIMEOUT + 5
ALIVE_SECONDS = 10.0  # between two statements that show that a transaction is alive
WATCH_SECONDS = 0.5  # between two looks at the connections
NO_ANSWER = "no answer within"
OVERDUE_TEXTS = (NO_ANSWER, "timeout expired")  # the latter is psycopg's, for a connection

# Time-outs of TCP, for a network that is cut; the URL may have others.
TCP_PARAMETERS = {
    "connect_timeout": CONNECT_TIMEOUT,
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 1000 * ANSWER_TIMEOUT,
}


class OpenTransaction:
    """A transaction that is kept alive.

    Args:
        driver: The driver's connection.

    Attributes:
        driver: The driver's connection.
        last: When a statement was last sent for it, on the monotonic clock.
        is_open: Whether it has not ended yet.
        lock: Held while a statement is sent for it, so that it does not end meanwhile.
    """

    def __init__(self, driver: Any) -> None:
        self.driver = driver
        self.last = time.monotonic()
        self.is_open = True
        self.lock = threading.Lock()

    def send_statement(self) -> None:
        """Show the server that the transaction is alive, unless it awaits an answer anyway."""
        with self.lock, suppress(Exception):  # the transaction itself finds out what is wrong
            if self.is_open and self.driver.deadline is None:
                self.driver.execute("SELECT 1")


_transactions: set[OpenTransaction] = set()
_connections: weakref.WeakSet[Any] = weakref.WeakSet()
_guard = threading.Lock()  # of the two sets and the thread; never held while waiting for a server
_thread: threading.Thread | None = None


def postgres_arguments(url: URL) -> dict[str, Any]:
    """Return the driver's arguments for the time-outs, after the options of the URL."""
    given = url.query.get("options", "")
    options = {
        "lock_timeout": LOCK_TIMEOUT,
        "idle_in_transaction_session_timeout": IDLE_TIMEOUT,
        "statement_timeout": STATEMENT_TIMEOUT,
    }
    ours = " ".join(f"-c {name}={seconds}s" for name, seconds in options.items())
    tcp = {name: value for name, value in TCP_PARAMETERS.items() if name not in url.query}
    return {"options": f"{ours} {given}".strip(), **tcp}


@cache
def connection_class() -> type[Any]:
    """Return psycopg's class of connections, with a time-out for every answer."""
    import psycopg

    class TimedConnection(psycopg.Connection[Any]):
        """Connection on which nobody waits for ever.

        Attributes:
            within_change: Whether a change is under way, so that an answer may wait for a lock.
            deadline: When an answer is overdue, on the monotonic clock; None: none is waited for.
            is_overdue: Whether an answer was overdue, so that the socket was shut.
        """

        within_change: bool = False
        deadline: float | None = None
        is_overdue: bool = False

        def wait(self, gen: Any, *args: Any, **options: Any) -> Any:
            patience = CHANGE_TIMEOUT if self.within_change else ANSWER_TIMEOUT
            _watch(self)
            try:
                return super().wait(_renewing(self, gen, patience), *args, **options)
            except psycopg.Error:
                if not self.is_overdue:
                    raise
                self.close()
                raise psycopg.OperationalError(f"{NO_ANSWER} {patience} s") from None
            finally:
                self.deadline = None

    return TimedConnection


def is_overdue(error: BaseException | None) -> bool:
    """Return whether an error of the driver says that the server did not answer in time."""
    return any(text in str(error) for text in OVERDUE_TEXTS)


def _renewing(
    connection: Any, gen: Generator[Any, Any, Any], patience: float
) -> Generator[Any, Any, Any]:
    """Run a generator of psycopg with a deadline that moves with each part of the answer."""
    connection.deadline = time.monotonic() + patience
    try:
        state = next(gen)
        while True:
            ready = yield state
            if ready:
                connection.deadline = time.monotonic() + patience
            state = gen.send(ready)
    except StopIteration as finished:
        return finished.value


@contextmanager
def keep_alive(connection: Connection) -> Iterator[None]:
    """Keep a PostgreSQL transaction from being ended for silence while this process lives."""
    if connection.dialect.name != "postgresql":
        yield
        return
    driver: Any = connection.connection.driver_connection
    transaction = OpenTransaction(driver)
    driver.within_change = True
    with _guard:
        _transactions.add(transaction)
    try:
        yield
    finally:
        with _guard:
            _transactions.discard(transaction)
        with transaction.lock:
            transaction.is_open = False
        driver.within_change = False


def _watch(connection: Any) -> None:
    """Have the thread look at a connection, and start it if there is none."""
    global _thread
    with _guard:
        _connections.add(connection)
        if _thread is None or not _thread.is_alive():  # a forked process has no threads but its own
            _thread = threading.Thread(
                target=_watch_connections, name="truvar-keep-alive", daemon=True
            )
            _thread.start()


def _watch_connections() -> None:
    while True:
        time.sleep(min(WATCH_SECONDS, ALIVE_SECONDS / 2))
        now = time.monotonic()
        with _guard:
            overdue = [
                each for each in _connections if each.deadline is not None and each.deadline < now
            ]
            silent = [each for each in _transactions if now - each.last >= ALIVE_SECONDS]
        for connection in overdue:
            _shut(connection)
        for transaction in silent:
            transaction.last = now
            # One connection may become busy just now, and the others must not wait for it.
            threading.Thread(target=transaction.send_statement, daemon=True).start()


def _shut(connection: Any) -> None:
    """Shut the socket of a connection, so that the thread that waits for it goes on."""
    connection.is_overdue = True
    with suppress(Exception), socket.socket(fileno=os.dup(connection.fileno())) as shared:
        shared.shutdown(socket.SHUT_RDWR)


def _forget_in_child() -> None:
    """Forget the connections and threads of the parent after a fork; they are not in the child."""
    global _guard, _thread
    _guard = threading.Lock()
    _thread = None
    _transactions.clear()
    _connections.clear()


os.register_at_fork(after_in_child=_forget_in_child)
