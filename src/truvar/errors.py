"""The two things a study can answer instead of a result: the user's mistake, and the end."""

from __future__ import annotations


class TruvarError(ValueError):
    """A mistake of the user: the message says in one line what was expected, what came and what to do. Nothing was
    changed."""

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))  # arrays and other people's messages come with line breaks


class Finished(Exception):
    """`ask` on a study that has nothing left to measure; `reason` says why."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"the study is finished: {reason}")
        self.reason = reason
