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

Door = Literal["python", "shell", "http"]

_door: ContextVar[Door] = ContextVar("door", default="python")


@contextmanager
def by(door: Door) -> Iterator[None]:
    """Within it, messages are for those who came in by that door."""
    before = _door.set(door)
    try:
        yield
    finally:
        _door.reset(before)


def phrase(python: str, *, problem: str | None = None, shell: str | None = None, http: str | None = None) -> str:
    """What to write: in a program; in a problem file, for the two other doors; at the command line; over HTTP."""
    own = {"python": python, "shell": shell, "http": http}[_door.get()]
    return own or problem or python


def place(point: Mapping[str, Any]) -> str:
    """A point as it is told: {'x': 0.5, 'y': 2.0}; at the command line x=0.5 y=2; over HTTP x = 0.5, y = 2."""
    if _door.get() == "python":
        return repr(dict(point))
    said = {name: f"{value:.10g}" if isinstance(value, (int, float)) else str(value) for name, value in point.items()}
    if _door.get() == "shell":
        return " ".join(shlex.quote(f"{name}={value}") for name, value in said.items())
    return ", ".join(f"{name} = {value}" for name, value in said.items())
