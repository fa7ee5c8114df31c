"""Limits of a server on the size of requests."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

from truvar.exceptions import LimitExceededError
from truvar.study.commands import MAX_BATCH


@dataclass(frozen=True)
class ServiceLimits:
    """The largest request that a server accepts.

    Attributes:
        body: Bytes of a request body.
        points: Points of a domain, or rows of a table.
        columns: Columns of a domain; a table may have four times as many.
        levels: Noise levels, and tasks.
        draws: Any whole number among the options of a policy.
        batch: Suggestions in one request.
        waiting: Pending suggestions of one study.
        text: Characters of a note, a name or any other text of a problem or study.
        events: Events of an uploaded study.
        studies: Studies kept in memory; others are opened again when they are requested.
        streams: Streams of live changes that are open simultaneously.
        connections: Connections of one address.
        choice_seconds: Seconds of a choice that takes long.
        choice_processes: Processes for choices that take long.
        upload_seconds: Seconds of an upload, or the check of a problem, that takes long.
        upload_processes: Processes for them.
    """

    body: int = 8_000_000
    points: int = 10_000
    columns: int = 50
    levels: int = 20
    draws: int = 10_000
    batch: int = MAX_BATCH
    waiting: int = 1_000
    text: int = 5_000
    events: int = 20_000
    studies: int = 16
    streams: int = 200
    connections: int = 500
    choice_seconds: int = 600
    choice_processes: int = 2
    upload_seconds: int = 120
    upload_processes: int = 2


def check_at_most(count: int, limit: int, name: str) -> None:
    """Check a size against a limit of the server.

    Args:
        count: The size requested.
        limit: The largest size allowed.
        name: What is counted, as in "accepts at most 100 ...".

    Raises:
        LimitExceededError: If it is larger.
    """
    if count > limit:
        raise LimitExceededError(
            f"this server accepts at most {limit:,} {name}, got {count:,}; send less"
        )


def is_plain_text(text: str) -> bool:
    """Return whether a text has no control characters but line breaks and tabs."""
    return all(unicodedata.category(c) not in ("Cc", "Cs") or c in "\n\r\t" for c in text)
