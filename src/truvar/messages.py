"""Parts of error messages by the caller's interface (Python, CLI, HTTP); points as text.

The same check can be reached from a Python program, from the command line, and over HTTP, where a
web page shows the message. The message is written once. Those parts of it that the reader could
type are given for each interface, and the command line and the service set theirs with `interface`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from difflib import get_close_matches
from typing import Any, Literal
from urllib.parse import unquote

Interface = Literal["python", "cli", "http"]
_LARGEST_WRITTEN_OUT = 1e15  # coordinates from here on have more digits than a float knows
_MAX_NAMES = 40  # listed in a message
_SECRET_PARAMETERS = ("password", "sslpassword")  # of the URL of a store

# A password may contain anything but white space, even "/" and "@"; the last "@" of the address
# ends it. If there is none before a "?", the next "@" ends it, as SQLAlchemy takes the "?" for a
# part of the password.
_USER_AND_PASSWORD = re.compile(r"(://[^/?#@:\s]*:)(?:[^\s?]*@|[^\s@]*@)")
_PARAMETER = re.compile(r"([?&])([^=&\s]+)=[^&\s]*")

_interface: ContextVar[Interface] = ContextVar("interface", default="python")


def mask_passwords(text: str) -> str:
    """Return a URL, or a message with URLs, with stars in the place of every password.

    A password can stand before the host (`user:password@host`) or among the parameters
    (`?password=...`).
    """
    masked = _PARAMETER.sub(
        _mask_parameter, text
    )  # first, as a password among the parameters may contain "@"
    return _USER_AND_PASSWORD.sub(r"\1***@", masked)


def _mask_parameter(found: re.Match[str]) -> str:
    beginning, name = found.groups()
    is_secret = unquote(name).strip().lower() in _SECRET_PARAMETERS
    return f"{beginning}{name}=***" if is_secret else found.group()


@contextmanager
def interface(name: Interface) -> Iterator[None]:
    """Set the interface for which messages are written while the context lasts.

    Args:
        name: "python", "cli" or "http".
    """
    token = _interface.set(name)
    try:
        yield
    finally:
        _interface.reset(token)


def current_interface() -> Interface:
    """Return the interface for which messages are written now."""
    return _interface.get()


def for_interface(
    python: str, *, problem: str | None = None, cli: str | None = None, http: str | None = None
) -> str:
    """Return the part of a message that suits the interface of the caller.

    Args:
        python: What to write in a Python program; also the default for the others.
        problem: What to write in a problem file, for both the command line and HTTP.
        cli: What to write at the command line, if it is not `problem`.
        http: What to write over HTTP, if it is not `problem`.
    """
    own = {"python": python, "cli": cli, "http": http}[_interface.get()]
    return own or problem or python


def unknown_name(kind: str, name: Any, known: Iterable[Any]) -> str:
    """Return the message for a name that does not exist, with a similar one that does.

    Args:
        kind: What it is a name of, such as "column".
        name: The name that was given.
        known: The names that exist.

    Returns:
        For example "unknown column 'dept'; did you mean 'depth_m'?", or "unknown column 'q';
        expected one of x, y".
    """
    names = [str(each) for each in known]
    similar = get_close_matches(str(name), names, n=1)
    if similar:
        return f"unknown {kind} {name!r}; did you mean {similar[0]!r}?"
    listed = ", ".join(names[:_MAX_NAMES])
    if len(names) > _MAX_NAMES:
        listed += f", ... ({len(names)} in all)"
    return f"unknown {kind} {name!r}; expected one of {listed}"


def format_point(
    point: Mapping[str, Any], *, style: Interface | None = None, digits: int = 10
) -> str:
    """Return a point as text that the reader of a message can type back.

    Args:
        point: The coordinates by column.
        style: "python" gives `{'x': 0.5, 'y': 2.0}`, "cli" gives `x=0.5 y=2`, quoted for a shell,
            and "http" gives `x = 0.5, y = 2`. Default: the interface of the caller.
        digits: Significant digits of the coordinates; "python" always has all of them.
    """
    style = style or _interface.get()
    if style == "python":
        return repr(dict(point))
    texts = {name: format_coordinate(value, digits) for name, value in point.items()}
    if style == "cli":
        return " ".join(shlex.quote(f"{name}={text}") for name, text in texts.items())
    return ", ".join(f"{name} = {text}" for name, text in texts.items())


def format_coordinates(point: Mapping[str, float], *, digits: int = 6) -> str:
    """Return a point as text for sentences and tables: "distance_m 300, depth_m -8".

    Args:
        point: The coordinates by column.
        digits: Significant digits of the coordinates.
    """
    return ", ".join(f"{name} {format_coordinate(value, digits)}" for name, value in point.items())


def format_coordinate(value: Any, digits: int = 6) -> str:
    """Return one value of a point as text.

    All digits before the point are kept: an easting of 3500478 is found in the field, one of
    3.50048e+06 is not.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    text = f"{value:.{digits}g}"
    return f"{value:.0f}" if "e+" in text and abs(value) < _LARGEST_WRITTEN_OUT else text
