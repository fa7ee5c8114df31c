"""What a server takes: sizes of bodies, domains and batches, and names that may stand in an address and a database."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

from truvar.exceptions import TruvarError


@dataclass(frozen=True)
class ServiceLimits:
    """The most that one request may ask for."""

    body: int = 8_000_000  # bytes
    points: int = 10_000  # of a domain, or rows of a table
    columns: int = 50  # of a domain; a table may have four times as many
    levels: int = 20  # of noise
    draws: int = 10_000  # and any other whole number among a policy's options
    batch: int = 100  # suggestions in one request
    waiting: int = 1_000  # suggestions of one study that nobody has told or withdrawn
    text: int = 5_000  # characters of a note
    events: int = 20_000  # of a study that is sent as a whole
    studies: int = 16  # that are kept in memory; the others are opened when they are asked for
    streams: int = 200  # of live changes, at once


def check_name(name: str) -> str:
    """The name of a study as given, if it can be one."""
    if not 0 < len(name) <= 100 or name != name.strip():
        raise TruvarError(f"a study's name has 1 to 100 characters and no space at its ends, got {name!r}")
    if name in (".", "..") or not is_text(name) or "\n" in name:
        raise TruvarError(f"a study's name is plain text and not a dot or two, got {name!r}; give another")
    return name


def is_text(text: str) -> bool:
    """Whether it is text that every database and page can hold: no control characters but line breaks and tabs."""
    return all(unicodedata.category(c) not in ("Cc", "Cs") or c in "\n\r\t" for c in text)
