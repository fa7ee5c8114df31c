"""What the commands share: their form, checks of arguments, and Ctrl-C."""

from __future__ import annotations

import argparse
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

INTERRUPTED = 128 + signal.SIGINT


@dataclass(frozen=True)
class Command:
    """One subcommand: its arguments, and a function from the parsed ones to the exit code."""

    name: str
    help: str
    example: str
    arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


def positive(kind: type[int] | type[float]) -> Callable[[str], float]:
    """Reads a positive number."""

    def read(text: str) -> float:
        value = kind(text)
        if not 0 < value < float("inf"):
            raise argparse.ArgumentTypeError(f"must be positive, but it was {text}")
        return value

    read.__name__ = "number" if kind is float else "whole number"  # argparse: "invalid number value: 'x'"
    return read


@contextmanager
def interruptible() -> Iterator[Callable[[], bool]]:
    """Within it Ctrl-C is noted, to be acted on between two measurements; a second one ends at once."""
    noted: list[int] = []

    def note(number: int, _: FrameType | None) -> None:
        if noted:
            raise KeyboardInterrupt
        noted.append(number)

    before = signal.signal(signal.SIGINT, note)
    try:
        yield lambda: bool(noted)
    finally:
        signal.signal(signal.SIGINT, before)
