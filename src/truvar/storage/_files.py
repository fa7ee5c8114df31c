"""Identity of the files of an SQLite store, by which deleted and replaced ones are noticed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

FileIdentity = tuple[int, int]  # device and inode
FileState = tuple[int, int]  # time of the last change in nanoseconds, and size in bytes

LOG_HEADER = 32  # bytes of the header of a write-ahead log
# First four bytes of the log; the last bit is the byte order of the checksum.
LOG_MAGIC = (0x377F0682, 0x377F0683)
CHECKED_WORDS = 6  # words of four bytes in the header that its checksum covers
WORD_LIMIT = 1 << 32


class OpenFiles:
    """The files that a connection of SQLite was opened to: the database and its write-ahead log.

    An inode is not given to another file while a connection has it open, so equal identities mean
    the same file.

    Args:
        path: Path of the database.

    Attributes:
        main: Identity of the database; None if it could not be found.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._log_path = f"{path}-wal"
        self.main = file_identity(path)
        self._log: FileIdentity | None = None  # SQLite opens it at the first transaction

    def is_replaced(self) -> bool:
        """Return whether the path of the database or its log now has another file, or none."""
        if self.main is not None and file_identity(self._path) != self.main:
            return True
        log = file_identity(self._log_path)
        if self._log is None:
            self._log = log
        return log != self._log

    def has_valid_log(self) -> bool:
        """Return whether others can read the log at its path, as if it is empty or missing."""
        try:
            # The log itself is never locked. To open and close the database would release SQLite's
            # locks on it.
            with open(self._log_path, "rb", buffering=0) as file:
                header = file.read(LOG_HEADER)
        except OSError:
            return True
        return not header or _is_log_header(header)


def file_identity(path: Path | str) -> FileIdentity | None:
    """Return the device and inode of a file; None if it cannot be found."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def file_state(path: Path | str) -> FileState | None:
    """Return when a file was last changed, and its size; None if it cannot be found."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def _is_log_header(header: bytes) -> bool:
    """Return whether the header of a log has the checksum that SQLite's file format defines."""
    if len(header) < LOG_HEADER:
        return False
    words = [int.from_bytes(header[start : start + 4], "big") for start in range(0, LOG_HEADER, 4)]
    if words[0] not in LOG_MAGIC:
        return False
    order: Literal["big", "little"] = "big" if words[0] & 1 else "little"
    first = 0
    second = 0
    for index in range(0, CHECKED_WORDS, 2):
        here = header[4 * index : 4 * index + 4]
        following = header[4 * index + 4 : 4 * index + 8]
        first = (first + int.from_bytes(here, order) + second) % WORD_LIMIT
        second = (second + int.from_bytes(following, order) + first) % WORD_LIMIT
    return [first, second] == words[CHECKED_WORDS:]
