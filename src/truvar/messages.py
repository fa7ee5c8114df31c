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


def format_point(point: Mapping[str, Any], *, style: Interface | None = None, digits: int = 10) -> str:
    """Return a point as text.

    Args:
        point: The coordinates by column.
        style: "python" gives `{'x': 0.5, 'y': 2.0}`, "cli" gives `x=0.5 y=2`, quoted for a shell, and "http" gives
            `x = 0.5, y = 2`, which is also the form for reports. Default: the interface of the caller.
        digits: Significant digits of the coordinates; "python" always has all of them.
    """
    style = style or _interface.get()
    if style == "python":
        return repr(dict(point))
    texts = {name: _coordinate(value, digits) for name, value in point.items()}
    if style == "cli":
        return " ".join(shlex.quote(f"{name}={text}") for name, text in texts.items())
    return ", ".join(f"{name} = {text}" for name, text in texts.items())


def _coordinate(value: Any, digits: int) -> str:
    return f"{value:.{digits}g}" if isinstance(value, (int, float)) else str(value)
