"""What a message tells its reader to write, in the language of the door that they came in by.

The same mistake reaches the same check from a Python program, from the command line, and over HTTP, where a page shows
it. Its message is written once; the pieces of it that the reader could type are worded for the door, which the command
line and the service say with `by`.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal

Interface = Literal["python", "cli", "http"]

_interface: ContextVar[Interface] = ContextVar("door", default="python")


@contextmanager
def interface(door: Interface) -> Iterator[None]:
    """Within it, messages are for those who came in by that door."""
    before = _interface.set(door)
    try:
        yield
    finally:
        _interface.reset(before)


def for_interface(python: str, *, problem: str | None = None, cli: str | None = None, http: str | None = None) -> str:
    """What to write: in a program; in a problem file, for the two other doors; at the command line; over HTTP."""
    own = {"python": python, "cli": cli, "http": http}[_interface.get()]
    return own or problem or python


def format_point(point: Mapping[str, Any]) -> str:
    """A point as it is told: {'x': 0.5, 'y': 2.0}; at the command line x=0.5 y=2; over HTTP x = 0.5, y = 2."""
    if _interface.get() == "python":
        return repr(dict(point))
    said = {name: f"{value:.10g}" if isinstance(value, (int, float)) else str(value) for name, value in point.items()}
    if _interface.get() == "cli":
        return " ".join(shlex.quote(f"{name}={value}") for name, value in said.items())
    return ", ".join(f"{name} = {value}" for name, value in said.items())
