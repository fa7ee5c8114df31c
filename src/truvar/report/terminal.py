"""What a terminal can show: its width, colours only where they are wanted, and plain letters where it must be."""

from __future__ import annotations

import os
import shutil
import textwrap
from dataclasses import dataclass
from typing import TextIO

RESET = "\x1b[0m"
COLOURS = {
    "above": "\x1b[38;5;208m",
    "open": "\x1b[38;5;250m",
    "below": "\x1b[38;5;32m",
    "pending": "\x1b[38;5;175m",
    "strong": "\x1b[1m",
    "faint": "\x1b[2m",
    "warning": "\x1b[38;5;178m",
}
WIDEST = 100  # columns of a text that is pleasant to read


@dataclass(frozen=True)
class TerminalStyle:
    """How to write on a stream."""

    width: int = 80
    colour: bool = False
    unicode: bool = True

    @staticmethod
    def for_stream(stream: TextIO) -> TerminalStyle:
        colour = is_terminal(stream) and not os.environ.get("NO_COLOR")
        anything = getattr(stream, "encoding", None) is None  # text that is not written to anywhere
        return TerminalStyle(min(width(stream), WIDEST), colour, anything or can_encode(stream, "█●ε"))

    def paint(self, text: str, kind: str) -> str:
        """The text in the colour of its kind, where there are colours."""
        return f"{COLOURS[kind]}{text}{RESET}" if self.colour and text else text

    def plain(self, text: str) -> str:
        """The text in letters that the stream can write; what would steer the terminal is taken out."""
        text = "".join(letter if letter.isprintable() else " " for letter in text)
        if self.unicode:
            return text
        known = text.translate({ord("ε"): "epsilon", ord("±"): "+-", ord("…"): "...", ord("·"): "."})
        return known.encode("ascii", "replace").decode("ascii")

    def rows(self, rows: list[tuple[str, str]]) -> str:
        """Lines of a name and a text, which is wrapped under itself."""
        head = max(len(name) for name, _ in rows) + 4
        lines = []
        for name, text in rows:
            wrapped = textwrap.wrap(self.plain(text), max(self.width - head, 24), break_on_hyphens=False) or [""]
            lines.append(f"  {self.paint(name.ljust(head - 2), 'faint')}{wrapped[0]}")
            lines += [" " * head + line for line in wrapped[1:]]
        return "\n".join(lines)


def is_terminal(stream: TextIO) -> bool:
    """Whether people look at it, in a terminal that moves its cursor."""
    try:
        return stream.isatty() and os.environ.get("TERM") != "dumb"
    except (AttributeError, ValueError):  # no such question, or closed
        return False


def width(stream: TextIO) -> int:
    """Columns of the terminal behind the stream, which need not be that of stdout."""
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except (AttributeError, OSError, ValueError):
        return shutil.get_terminal_size().columns


def can_encode(stream: TextIO, text: str) -> bool:
    """Whether the stream's encoding has these letters."""
    try:
        text.encode(getattr(stream, "encoding", None) or "ascii")
    except (UnicodeError, LookupError):
        return False
    return True
