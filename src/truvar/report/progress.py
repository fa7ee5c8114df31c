"""Displays of progress: of a study while it runs, and of a known number of runs.

Both write to stderr, so that a program's output can be piped, and never end a run because they
cannot be written.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from html import escape
from types import TracebackType
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np

from truvar.report.formatting import describe_score, format_true_score
from truvar.report.goal_views import view_of
from truvar.report.limit_progress import describe_goal_of_score, score_goal
from truvar.report.terminal import COLOURS, RESET, can_encode, is_terminal, width
from truvar.study.limits import RunLimits

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from truvar.study.base import BaseStudy
    from truvar.study.result import Result

_LINE_EVERY = 10  # measurements between two lines where there is no terminal
REFRESH = 0.05  # seconds between two updates of the line on a terminal, at least
MAX_SHARE = 0.1  # of the time that may be spent on the line on a terminal
_LOG_EVERY = 30.0  # seconds between two updates of a progress bar where there is no terminal
_MIN_BAR = 6  # characters
_MAX_BAR = 24  # characters
_BAR_COLOURS = {"below": "#5D9BC9", "undecided": "#B8BEC2", "above": "#E66100"}  # in a notebook
_CLEAR_LINE = "\r\x1b[K"


def _notebook_display() -> Callable[..., Any] | None:
    """Return the function with which IPython displays something in a notebook; None outside of one."""
    ipython = sys.modules.get("IPython")  # a notebook has imported it
    shell = None if ipython is None else ipython.get_ipython()
    if shell is None or not hasattr(shell, "kernel"):
        return None
    from IPython.display import display

    function: Callable[..., Any] = display
    return function


def is_interactive() -> bool:
    """Return whether somebody watches: stderr is a terminal, or this is a notebook."""
    return is_terminal(sys.stderr) or _notebook_display() is not None


class _HTMLText:
    """HTML that a notebook displays, with plain text for where it does not.

    Args:
        html: The HTML.
        text: The text.
    """

    def __init__(self, html: str, text: str) -> None:
        self._html = html
        self._text = text

    def _repr_html_(self) -> str:
        return self._html

    def __repr__(self) -> str:
        return self._text


class Progress:
    """Live display of a study: measurements, cost, the classes, expected F1 or regret; with the truth the true ones.

    The classes are `Result.classes`. They take time to compute, so that on a terminal the
    line is written at most as often as keeps its share of the time below `MAX_SHARE`.

    On a terminal it is one line that is written over, in a notebook a bar that is updated in place;
    elsewhere a plain line every ten measurements. Call it with the study after each measurement; as
    a context manager it also writes the last state.

    Written by hand: tqdm and rich show the share of a total, which a study has not, and raise when
    a pipe breaks.

    Args:
        study: The study to show.
        truth: True values on the domain, where they are known.
        stream: Where to write; stderr by default.
        budget: Limit of the cost, to show beside it.
        steps: Limit of the number of measurements, to show beside it.
        limits: All limits of the run, instead of `budget` and `steps`; the goal of F1 or regret is
            shown beside it.
    """

    def __init__(
        self,
        study: BaseStudy,
        truth: ArrayLike | None = None,
        stream: TextIO | None = None,
        *,
        budget: float | None = None,
        steps: int | None = None,
        limits: RunLimits | None = None,
    ) -> None:
        self._study = study
        self._truth = None if truth is None else np.asarray(truth, dtype=float)
        self._stream = sys.stderr if stream is None else stream
        self._limits = limits or RunLimits(budget, steps)
        self._display = _notebook_display() if stream is None else None
        self._handle: Any = None  # of the display in a notebook
        self._live = self._display is not None or is_terminal(self._stream)
        self._colour = self._live and not os.environ.get("NO_COLOR")
        self._unicode = can_encode(self._stream, "█▒░")
        self._shown_steps = -1  # measurements in the state last written
        self._next_at = 0.0  # time from which on the line is written again
        self._open = True

    def __call__(self, study: BaseStudy) -> None:
        """Show the study if the next update is due."""
        self._study = study
        refresh = self._live and time.monotonic() >= self._next_at
        next_line = not self._live and study.steps % _LINE_EVERY == 0
        if refresh or next_line:
            self._show()

    def close(self) -> None:
        """Show the last state and end the line."""
        if not self._open:
            return
        if self._shown_steps != self._study.steps:
            self._show()
        if self._live and self._display is None:
            self._write("\n")
        self._open = False

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _show(self) -> None:
        if not self._open:
            return
        started_at = time.monotonic()
        result = self._study.result()
        fields = self._fields(result)
        if self._display is not None:
            self._show_in_notebook(fields, result)
        elif self._live:
            self._write(
                _CLEAR_LINE + self._line([" ".join(field.split()) for field in fields], result)
            )
        else:
            self._write("  ".join(fields) + "\n")
        self._shown_steps = self._study.steps
        now = time.monotonic()
        self._next_at = now + max(REFRESH, (now - started_at) * (1 / MAX_SHARE - 1))

    def _show_in_notebook(self, fields: list[str], result: Result) -> None:
        """Display the bar and the fields, or update what is displayed."""
        if self._display is None:
            return
        classes = result.classes
        parts = []
        for name, key in reversed(view_of(result.goal).palette_keys.items()):
            share = 100 * float(getattr(classes, name).mean())
            parts.append(f"<i style='width:{share:.2f}%;background:{_BAR_COLOURS[key]}'></i>")
        bar = f"<div style='display:flex;height:.7em;width:22em'>{''.join(parts)}</div>"
        words = [" ".join(field.split()) for field in fields]
        text = "  ".join(words)
        shown = _HTMLText(
            f"<div class='truvar-progress'>{bar}<div>{escape(' · '.join(words))}</div></div>", text
        )
        if self._handle is None:
            self._handle = self._display(shown, display_id=True)
        else:
            self._handle.update(shown)

    def _fields(self, result: Result) -> list[str]:
        """Return the parts of the line, the most important first."""
        score = self._study.goal.score
        classes = result.classes
        fields = [
            f"measurement {_with_limit(f'{result.steps:>4d}', self._limits.steps)}",
            f"cost {_with_limit(f'{result.spent:>7.1f}', self._limits.budget)}",
            f"undecided {classes.undecided.sum():>4d}",
        ]
        view = view_of(result.goal)
        for name in view.counted[:-1]:
            fields[-1] += f"  {view.word(name)} {getattr(classes, name).sum():>4d}"
        if self._study.goal.seeks_optimum and result.best_observed is not None:
            fields.append(f"best so far {result.best_observed.shown.value:.4g}")
        goal = score_goal(result, self._limits)
        fields += [describe_goal_of_score(text, goal) for text in describe_score(result)]
        if self._truth is not None:
            fields.append(
                f"true {score.name} {format_true_score(score, result.score(self._truth))}"
            )
        return fields

    def _line(self, fields: list[str], result: Result) -> str:
        """Return a line that the terminal does not wrap: as many fields as fit, and a bar if it fits too."""
        columns = width(self._stream) - 1
        while len(line := "  ".join(fields)) > columns and len(fields) > 1:
            fields = fields[:-1]
        bar_length = min(_MAX_BAR, columns - len(line) - 2)
        return (
            f"{self._bar(result, bar_length)}  {line}" if bar_length >= _MIN_BAR else line[:columns]
        )

    def _bar(self, result: Result, length: int) -> str:
        """Return a bar of the shares of the classes, that of the points asked for at the right."""
        classes = result.classes
        asked, _, other = view_of(result.goal).palette_keys
        left = round(length * float(getattr(classes, other).mean()))
        right = min(round(length * float(getattr(classes, asked).mean())), length - left)
        lengths = {"below": left, "undecided": length - left - right, "above": right}
        letters = "▒░█" if self._unicode else "-.#"
        parts = []
        for letter, (name, count) in zip(letters, lengths.items(), strict=True):
            part = letter * count
            parts.append(f"{COLOURS[name]}{part}{RESET}" if self._colour and part else part)
        return "".join(parts)

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):  # the disk is full, or the other end of the pipe is closed
            self._open = False


def _with_limit(value: str, limit: float | None) -> str:
    return value if limit is None else f"{value}/{limit:g}"


def progress_bar(label: str, stream: TextIO | None = None) -> Callable[[int, int], None]:
    """Return a progress bar to call with (number done, number of all); it shows the time left too.

    Args:
        label: What is counted, such as "runs".
        stream: Where to write; stderr by default.
    """
    from tqdm.auto import tqdm

    bar: tqdm | None = None

    def show(done: int, total: int) -> None:
        nonlocal bar
        output = sys.stderr if stream is None else stream
        with suppress(
            OSError, ValueError
        ):  # a display that cannot be written must not end the work
            if bar is None:
                interval = REFRESH if is_terminal(output) else _LOG_EVERY
                bar = tqdm(desc=label, total=total, initial=done, file=stream, mininterval=interval)
            bar.update(done - bar.n)
            if done == total:
                bar.close()

    return show
