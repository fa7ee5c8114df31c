"""A limit on the log of a server, so that errors of clients cannot fill a disk."""

from __future__ import annotations

import logging
import time

LOGGERS = ("truvar.service", "uvicorn.error", "asyncio")
MAX_RECORDS = 20  # of one message, in every period
PERIOD = 60.0  # seconds
MAX_MESSAGES = 1_000  # different messages that are remembered


class RateLimit(logging.Filter):
    """Filter that passes some records of every message per minute, and counts the others.

    Records are the same message if they come from the same line of the program, whatever values
    they have.
    """

    def __init__(self) -> None:
        super().__init__()
        self._counts: dict[tuple[str, int], int] = {}
        self._began = time.monotonic()

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a record is passed on."""
        now = time.monotonic()
        if now >= self._began + PERIOD or len(self._counts) > MAX_MESSAGES:
            self._counts.clear()
            self._began = now
        key = (record.pathname, record.lineno)
        count = self._counts.get(key, 0) + 1
        self._counts[key] = count
        if count == MAX_RECORDS:
            notice = f"further messages of this kind are left out for {PERIOD:g} s"
            record.msg = f"{record.getMessage()} ({notice})"
            record.args = None
        return count <= MAX_RECORDS


def limit_logs() -> None:
    """Limit the logs of this process, once."""
    for name in LOGGERS:
        logger = logging.getLogger(name)
        if not any(isinstance(each, RateLimit) for each in logger.filters):
            logger.addFilter(RateLimit())
