"""The two things a study can answer instead of a result, the user's mistake and the end; and what to install."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class TruvarError(ValueError):
    """A mistake of the user: the message says in one line what was expected, what came and what to do. Nothing was
    changed."""

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))  # arrays and other people's messages come with line breaks


class StorageError(TruvarError):
    """A store that cannot be used, for now at least: no mistake in what was asked for."""


class Finished(Exception):
    """`ask` on a study that has nothing left to measure; `reason` says why."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"the study is finished: {reason}")
        self.reason = reason


def import_optional(module: str, purpose: str, extra: str) -> Any:
    """A module of an optional library, or a message with what to install: "drawing needs matplotlib, ..."."""
    try:
        return import_module(module)
    except ImportError as error:
        needed = f"{purpose} needs {module.partition('.')[0]}"
        raise TruvarError(f'{needed}, which is missing: pip install "truvar[{extra}]" ({error})') from None
