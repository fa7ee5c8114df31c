"""Requests for suggestions, and how long a choice is expected to take."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from truvar.exceptions import LimitExceededError
from truvar.messages import Interface
from truvar.study.commands import Ask
from truvar.study.study import Study

MAX_LIGHT_POINTS = (
    2_000  # of a domain, up to which a choice that was never measured is made in a thread
)
MAX_LIGHT_BATCH = (
    10  # suggestions, up to which a choice that was never measured is made in a thread
)
QUICK_SECONDS = (
    0.05  # of processor time, up to which a choice waits for other changes, and they for it
)
LIGHT_SECONDS = 0.5  # of processor time, up to which a choice is made in a thread


class PendingLimitError(LimitExceededError):
    """A study has too many pending suggestions."""


@dataclass(frozen=True)
class ChoiceRequest:
    """A request for suggestions.

    Attributes:
        author: Author of the events.
        interface: Interface that messages are written for.
        command: The command.
        max_pending: Pending suggestions that a study may have.
    """

    author: str
    interface: Interface
    command: Ask
    max_pending: int

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> ChoiceRequest:
        """Return the request that `dataclasses.asdict` made a dictionary of."""
        return ChoiceRequest(**{**data, "command": Ask(**data["command"])})


def suggest(
    study: Study, request: ChoiceRequest, cancelled: threading.Event | None = None
) -> dict[str, Any]:
    """Return the answer to a request for suggestions.

    Args:
        study: The study, which knows of the latest events.
        request: The request.
        cancelled: Set once nobody waits for the answer any longer.

    Raises:
        PendingLimitError: If too many suggestions would be pending.
        Finished: If there is nothing to suggest.
        TruvarError: If the request has a mistake.
    """
    study.author = request.author
    pending = len(study.pending)
    n = request.command.n
    if pending + n > request.max_pending:
        raise PendingLimitError(
            f"a study may have at most {request.max_pending} pending suggestions, got {pending} "
            f"and {n} more; "
            "tell or withdraw some first"
        )
    receipt = study.execute(request.command, cancelled)
    if receipt.end is not None and not receipt.suggestions:
        raise receipt.end
    return {"suggestions": [suggestion.to_dict() for suggestion in receipt.suggestions]}


def is_quick(seconds: float | None, n: int) -> bool:
    """Return whether a choice is expected to take no longer than other changes.

    Args:
        seconds: Processor time of the study's last choice, for each suggestion; None: none was
            measured.
        n: Number of suggestions.
    """
    return seconds is not None and n * seconds <= QUICK_SECONDS


def takes_long(study: Study | None, seconds: float | None, n: int) -> bool:
    """Return whether a choice is expected to take long.

    Args:
        study: The study; None: it is not open.
        seconds: Processor time of its last choice, for each suggestion; None: none was measured.
        n: Number of suggestions.
    """
    if seconds is not None:
        return n * seconds > LIGHT_SECONDS
    return study is not None and (n > MAX_LIGHT_BATCH or len(study.domain) > MAX_LIGHT_POINTS)
