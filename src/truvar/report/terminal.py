"""Terminal output: width, colours only where they are wanted, and ASCII where the encoding has nothing else."""

from __future__ import annotations

import os
import shutil
import textwrap
from dataclasses import dataclass
from typing import TextIO

RESET = "\x1b[0m"
COLOURS = {
    "above": "\x1b[38;5;208m",
    "undecided": "\x1b[38;5;250m",
    "below": "\x1b[38;5;32m",
    "pending": "\x1b[38;5;175m",
    "strong": "\x1b[1m",
    "faint": "\x1b[2m",
    "warning": "\x1b[38;5;178m",
}
_MAX_TEXT_WIDTH = 100  # columns; longer lines are tiring to read
_MIN_TEXT_WIDTH = 24  # columns of the text beside a name, however narrow the terminal
_DEFAULT_WIDTH = 80  # columns of a terminal that does not know its own
_ASCII = {ord("ε"): "epsilon", ord("±"): "+-", ord("…"): "...", ord("·"): "."}


@dataclass(frozen=True)
class TerminalStyle:
    """Width, colours and letters to write with.

    Attributes:
        width: Columns.
        colour: Whether to write colour codes.
        unicode: Whether to write letters beyond ASCII.
        is_terminal: Whether it is a terminal, in which a sentence is broken into lines.
    """

    width: int = _DEFAULT_WIDTH
    colour: bool = False
    unicode: bool = True
    is_terminal: bool = False

    @staticmethod
    def for_stream(stream: TextIO) -> TerminalStyle:
        """Return the style that suits a stream: colours only on a terminal where NO_COLOR is not set."""
        terminal = is_terminal(stream)
        colour = terminal and not os.environ.get("NO_COLOR")
        in_memory = getattr(stream, "encoding", None) is None
        unicode = in_memory or can_encode(stream, "█●ε")
        return TerminalStyle(min(width(stream), _MAX_TEXT_WIDTH), colour, unicode, terminal)

    def paint(self, text: str, kind: str) -> str:
        """Return the text in the colour of its kind (a key of `COLOURS`), if there are colours."""
        return f"{COLOURS[kind]}{text}{RESET}" if self.colour and text else text

    def plain(self, text: str) -> str:
        """Return the text in letters that the stream can write, with control characters replaced by spaces."""
        text = "".join(letter if letter.isprintable() else " " for letter in text)
        if self.unicode:
            return text
        return text.translate(_ASCII).encode("ascii", "replace").decode("ascii")

    def wrapped(self, text: str) -> str:
        """Return a text in lines that the terminal does not break; elsewhere it stays one line."""
        plain = self.plain(text)
        return (
            textwrap.fill(plain, self.width, break_on_hyphens=False) if self.is_terminal else plain
        )

    def letter(self, pair: str) -> str:
        """Return the first letter of a pair where Unicode can be written, else the second."""
        return pair[0] if self.unicode else pair[1]

    def rows(self, rows: list[tuple[str, str]]) -> str:
        """Return lines of a name and a text, which is wrapped in its own column."""
        indent = max(len(name) for name, _ in rows) + 4
        text_width = max(self.width - indent, _MIN_TEXT_WIDTH)
        lines = []
        for name, text in rows:
            wrapped = textwrap.wrap(self.plain(text), text_width, break_on_hyphens=False) or [""]
            lines.append(f"  {self.paint(name.ljust(indent - 2), 'faint')}{wrapped[0]}")
            lines += [" " * indent + line for line in wrapped[1:]]
        return "\n".join(lines)


def is_terminal(stream: TextIO) -> bool:
    """Return whether a stream is a terminal that can move its cursor."""
    try:
        return stream.isatty() and os.environ.get("TERM") != "dumb"
    except (AttributeError, ValueError):  # no such method, or closed
        return False


def width(stream: TextIO) -> int:
    """Return the columns of the terminal behind the stream, which need not be that of stdout."""
    try:
        return os.get_terminal_size(stream.fileno()).columns or _DEFAULT_WIDTH
    except (AttributeError, OSError, ValueError):
        return shutil.get_terminal_size().columns


def can_encode(stream: TextIO, text: str) -> bool:
    """Return whether the encoding of a stream has these letters."""
    try:
        text.encode(getattr(stream, "encoding", None) or "ascii")
    except (UnicodeError, LookupError):
        return False
    return True
