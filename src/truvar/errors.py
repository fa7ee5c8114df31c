"""The two things a study can answer instead of a result: the user's mistake, and the end."""

from __future__ import annotations


class TruvarError(ValueError):
    """A mistake of the user: the message says what was expected, what came and what to do. Nothing was changed."""


class Finished(Exception):
    """`ask` on a study that has nothing left to measure; `reason` says why."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"the study is finished: {reason}")
        self.reason = reason
