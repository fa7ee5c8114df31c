"""Time-outs of PostgreSQL: a worker that stops within a transaction must not keep the others out.

The server ends a session that is silent within a transaction, as that of a suspended process is. A process that
computes for long within a transaction is not silent: a thread of it sends a statement now and then.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from sqlalchemy import URL, Connection

LOCK_TIMEOUT = 60  # seconds to wait for a lock
IDLE_TIMEOUT = 40  # seconds of silence within a transaction after which the server ends it; less than LOCK_TIMEOUT
ALIVE_SECONDS = 10.0  # between two statements that show that a transaction is alive

_open_transactions: dict[
    int, tuple[Any, float]
] = {}  # driver's connections by id, with the time of their last statement
_guard = threading.Lock()
_thread: threading.Thread | None = None


def postgres_arguments(url: URL) -> dict[str, Any]:
    """Return the arguments for the driver that set the time-outs, after the options that the URL has."""
    given = url.query.get("options", "")
    ours = f"-c lock_timeout={LOCK_TIMEOUT}s -c idle_in_transaction_session_timeout={IDLE_TIMEOUT}s"
    return {"options": f"{ours} {given}".strip()}


@contextmanager
def keep_alive(connection: Connection) -> Iterator[None]:
    """Keep a transaction of PostgreSQL from being ended for silence as long as this process is alive."""
    if connection.dialect.name != "postgresql":
        yield
        return
    driver = connection.connection.driver_connection
    with _guard:
        _open_transactions[id(driver)] = (driver, time.monotonic())
        _start_thread()
    try:
        yield
    finally:
        with _guard:
            _open_transactions.pop(id(driver), None)


def _start_thread() -> None:
    global _thread
    if _thread is None or not _thread.is_alive():  # a forked process has no threads but its own
        _thread = threading.Thread(target=_send_statements, name="truvar-keep-alive", daemon=True)
        _thread.start()


def _send_statements() -> None:
    while True:
        time.sleep(ALIVE_SECONDS / 2)
        with _guard:  # a transaction does not end between the look at it and the statement
            for key, (driver, last) in list(_open_transactions.items()):
                if time.monotonic() - last >= ALIVE_SECONDS:
                    with suppress(Exception):  # the transaction itself finds out what is wrong
                        driver.execute("SELECT 1")
                    _open_transactions[key] = (driver, time.monotonic())
