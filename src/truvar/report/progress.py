"""A live display of a study: measurements, cost, |M| |H| |L|, epsilon; F1 or regret where the truth is known.

On a terminal it is one line that is written over; elsewhere a plain line every ten measurements. It goes to
stderr, so that a program's output can be piped, and has colours only on a terminal where NO_COLOR is not set.
A display that cannot be written (a closed pipe) falls silent: it must never end a run.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, TextIO

import numpy as np

from truvar.report.terminal import COLOURS, RESET, can_encode, is_terminal, width

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from truvar.study.result import Result
    from truvar.study.study import Study

EVERY = 10  # measurements between two lines where there is no terminal
REFRESH = 0.05  # seconds between two states of the line on a terminal
SHORTEST_BAR, LONGEST_BAR = 6, 24  # characters
CLEAR = "\r\x1b[K"


class Progress:
    """Call it with the study after each measurement; as a context manager it also writes the last state.

    `truth` holds the true values on the domain where they are known; `budget` and `steps` are limits to show.
    """

    def __init__(
        self,
        study: Study,
        truth: ArrayLike | None = None,
        stream: TextIO | None = None,
        *,
        budget: float | None = None,
        steps: int | None = None,
    ) -> None:
        self._study = study
        self._truth = None if truth is None else np.asarray(truth, dtype=float)
        self._stream = sys.stderr if stream is None else stream
        self._budget = budget
        self._steps = steps
        self._live = is_terminal(self._stream)
        self._colour = self._live and not os.environ.get("NO_COLOR")
        self._unicode = can_encode(self._stream, "█ε")
        self._shown = -1  # measurements in the state last written
        self._written_at = 0.0
        self._open = True

    def __call__(self, study: Study) -> None:
        """Show the study if it is time to."""
        self._study = study
        due = time.monotonic() - self._written_at >= REFRESH if self._live else study.steps % EVERY == 0
        if due:
            self._show()

    def close(self) -> None:
        """Show the last state and leave the line."""
        if not self._open:
            return
        if self._shown != self._study.steps:
            self._show()
        if self._live:
            self._write("\n")
        self._open = False

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -- what is written ---------------------------------------------------------------------------------------

    def _show(self) -> None:
        if not self._open:
            return
        result = self._study.result()
        fields = self._fields(result)
        if self._live:
            self._write(CLEAR + self._line([" ".join(field.split()) for field in fields], result))
        else:
            self._write("  ".join(fields) + "\n")
        self._shown = self._study.steps
        self._written_at = time.monotonic()

    def _fields(self, result: Result) -> list[str]:
        """What is known, the most important first."""
        level_set = self._study.goal.level_set
        potential, above, below = (int(mask.sum()) for mask in (result.potential, result.above, result.below))
        fields = [
            f"measurement {_of(f'{result.steps:>4d}', self._steps)}",
            f"cost {_of(f'{result.spent:>7.1f}', self._budget)}",
            f"M {potential:>4d}  H {above:>4d}  L {below:>4d}" if level_set else f"M {potential:>4d}",
            f"{'ε' if self._unicode else 'epsilon'} {result.epsilon:>6.3g}",
        ]
        if self._truth is not None and level_set:
            fields.append(f"F1 {result.f1(self._truth):.3f}")
        elif self._truth is not None:
            fields.append(f"regret {result.regret(self._truth):.3g}")
        return fields

    def _line(self, fields: list[str], result: Result) -> str:
        """A line that the terminal does not wrap: as many fields as have room, and a bar if it has too."""
        room = width(self._stream) - 1
        while len(line := "  ".join(fields)) > room and len(fields) > 1:
            fields = fields[:-1]
        length = min(LONGEST_BAR, room - len(line) - 2)
        return f"{self._bar(result, length)}  {line}" if length >= SHORTEST_BAR else line[:room]

    def _bar(self, result: Result, length: int) -> str:
        """The shares of L, M and H."""
        below = round(length * float(result.below.mean()))
        above = min(round(length * float(result.above.mean())), length - below)
        widths = {"below": below, "open": length - below - above, "above": above}
        letters = dict(zip(widths, "▒░█" if self._unicode else "-.#", strict=True))
        parts = {name: letters[name] * width for name, width in widths.items() if width > 0}
        return "".join(f"{COLOURS[name]}{part}{RESET}" if self._colour else part for name, part in parts.items())

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):  # full, gone or closed
            self._open = False


def _of(value: str, limit: float | None) -> str:
    return value if limit is None else f"{value}/{limit:g}"


class Remaining:
    """How many of a known number of runs are done, and how long the rest will take. Call it with (done, all)."""

    def __init__(self, what: str, stream: TextIO | None = None) -> None:
        self._what, self._stream = what, sys.stderr if stream is None else stream
        self._live = is_terminal(self._stream)
        self._begun: tuple[float, int] | None = None  # when, and how many were done already

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        begun, before = self._begun = self._begun or (now, done)
        left = "" if done in (before, total) else f", {_span((now - begun) / (done - before) * (total - done))} left"
        line = f"{done} of {total} {self._what}{left}"
        with suppress(OSError, ValueError):  # a display that cannot be written must not end the work
            self._stream.write(f"{CLEAR}{line}" if self._live else f"{line}\n")
            if self._live and done == total:
                self._stream.write("\n")
            self._stream.flush()


def _span(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
