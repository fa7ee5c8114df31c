"""What the commands share: their form, checks of arguments, and Ctrl-C."""

from __future__ import annotations

import argparse
import re
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

INTERRUPTED = 128 + signal.SIGINT


@dataclass(frozen=True)
class Command:
    """One subcommand: its arguments, and a function from the parsed ones to the exit code."""

    name: str
    help: str
    example: str  # one to a line
    arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


def positive(kind: type[int] | type[float]) -> Callable[[str], float]:
    """Reads a positive number."""

    def read(text: str) -> float:
        value = kind(text)
        if not 0 < value < float("inf"):
            raise argparse.ArgumentTypeError(f"must be positive, got {text}")
        return value

    read.__name__ = "number" if kind is float else "whole number"  # argparse: "invalid number value: 'x'"
    return read


def seconds(text: str) -> float:
    """Reads a time: 90, 90s, 15min, 2h, 1d."""
    found = re.fullmatch(r"\s*([0-9.]+)\s*([a-z]*)\s*", text)
    units = {"": 1, "s": 1, "min": 60, "m": 60, "h": 3600, "d": 86400}
    if not found or found[2] not in units:
        raise argparse.ArgumentTypeError(f"must be a time such as 90s, 15min, 2h or 1d, got {text!r}")
    return positive(float)(found[1]) * units[found[2]]


@contextmanager
def cluster(address: str | None) -> Iterator[Any]:
    """A client of the Dask cluster at the address, closed in the end; None where there is no address."""
    if address is None:
        yield None
        return
    from truvar.integrations.dask import connect

    with connect(address) as client:
        yield client


@contextmanager
def interruptible(said: str = "") -> Iterator[Callable[[], bool]]:
    """Within it Ctrl-C is noted, to be acted on between two measurements; a second one ends at once."""
    noted: list[int] = []

    def note(number: int, _: FrameType | None) -> None:
        if noted:
            raise KeyboardInterrupt
        noted.append(number)
        if said:
            print(f"\n{said}", file=sys.stderr)

    before = signal.signal(signal.SIGINT, note)
    try:
        yield lambda: bool(noted)
    finally:
        signal.signal(signal.SIGINT, before)
