"""An external program that measures: it gets the point as arguments and prints one number.

Of several quantities it prints `yield=82.1 impurity=0.4`, of a binary outcome 1, 0, yes or no. It
may print the cost of the measurement after the value.

Unless a shell is asked for, none is involved: the command is split into arguments before the values
are filled in, so that a value is never read as anything but (part of) an argument. A shell gets the
values in variables, whose contents it does not read as commands.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import takewhile
from math import isfinite
from pathlib import Path
from string import Formatter
from typing import Any

from truvar.exceptions import InvalidArgumentError

_MAX_OUTPUT = 200  # characters of a program's output that a message repeats
_ANSWERS = frozenset({"yes", "no", "true", "false"})  # words that a binary outcome takes

_Printed = float | str | dict[str, float]
"""A value, an answer, or the values of several quantities."""


class CommandFailedError(Exception):
    """The program did not print a number. The message says what it did."""


class MeasurementCommand:
    """A function that runs a program and returns the value that it prints, and the cost if any.

    Args:
        command: Command line with the names of columns in braces, such as "./measure {x} {y:.2f}".
            Braces that are meant literally are doubled.
        columns: Columns of the domain.
        choice: "level", "task" or both, in this order, if the study has noise levels or tasks;
            names that may be in braces, too.
        quantities: Names of the quantities if there are several.
        timeout: Seconds after which the program is ended.
        shell: Whether a shell reads the command line. The values are passed to it in variables.

    Raises:
        InvalidArgumentError: If the command cannot be read, or has an unknown name in braces.

    Example:
        ```python
        measure = MeasurementCommand("./measure {x} {y}", ["x", "y"], timeout=60)
        study.run(measure, steps=10)
        ```
    """

    def __init__(
        self,
        command: str,
        columns: Sequence[str],
        *,
        choice: str | Sequence[str] | None = None,
        quantities: Sequence[str] = (),
        timeout: float | None = None,
        shell: bool = False,
    ) -> None:
        self.command = command
        self.choices = [choice] if isinstance(choice, str) else list(choice or ())
        self.quantities = list(quantities)
        self.timeout = timeout
        self.shell = shell
        self._running: set[subprocess.Popen[str]] = set()
        self._stopped = False
        try:
            self._parts = [command] if shell else shlex.split(command)
        except ValueError as error:
            raise InvalidArgumentError(
                f"cannot split the command {command!r} ({error}); fix its quotes"
            ) from None
        if not any(part.strip() for part in self._parts):
            raise InvalidArgumentError("the command is empty; give one such as './measure {x} {y}'")
        known = [*columns, *self.choices]
        for part in self._parts:
            for name, form in _placeholders(part, command):
                if name not in known:
                    expected = ", ".join(f"{{{column}}}" for column in known)
                    raise InvalidArgumentError(
                        f"unknown name {{{name}}} in the command; expected one of {expected} "
                        "(double braces that are "
                        "meant literally)"
                    )
                _check_format(name, form, numeric=name not in self.choices)
        if shell:
            _check_unquoted(command)

    def __call__(
        self, point: Mapping[str, float], *choices: Any
    ) -> _Printed | tuple[_Printed, float]:
        """Run the program.

        Args:
            point: Coordinates by column.
            choices: The noise level and the task, if the study has a choice of them.

        Returns:
            The number that the program printed, the values by quantity, or an answer such as "yes";
            with its cost if a further number follows.

        Raises:
            CommandFailedError: If the program cannot be started, fails, takes too long, or prints
                no finite number.
        """
        values: dict[str, Any] = dict(point)
        values.update(zip(self.choices, choices, strict=False))
        if self.shell and os.name != "posix":  # variables are written differently there
            output = self._run(_fill_in(self.command, values, quote=True))
        elif self.shell:
            output = self._run(*_with_variables(self.command, values))
        else:
            output = self._run([_fill_in(part, values) for part in self._parts])
        return self._parse(output)

    def stop(self) -> None:
        """End the programs that are running; no further ones are started."""
        self._stopped = True
        for process in list(self._running):
            _end(process)

    def _run(self, arguments: str | list[str], variables: Mapping[str, str] | None = None) -> str:
        """Return the standard output of the program, run with further environment variables."""
        if self._stopped:
            raise CommandFailedError(f"{self._name} was stopped")
        try:
            # The user's own command; with shell=True they asked for a shell.
            process = subprocess.Popen(  # nosec B602
                arguments,
                shell=self.shell,
                env={**os.environ, **(variables or {})},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                # POSIX: a process group that can be ended as a whole; ignored on Windows
                start_new_session=True,
            )
        except OSError as error:
            raise CommandFailedError(f"{self._name} cannot be started ({error.strerror})") from None
        self._running.add(process)
        try:
            output, errors = process.communicate(timeout=self.timeout)
        except subprocess.TimeoutExpired:
            raise CommandFailedError(
                f"{self._name} did not answer within {self.timeout:g} s and was ended"
            ) from None
        finally:
            _end(process)
            self._running.discard(process)
        code = process.returncode
        if code != 0:
            reason = f"exit code {code}" if code > 0 else f"signal {-code}"
            detail = f": {_last_line(errors)}" if errors.strip() else ""
            raise CommandFailedError(f"{self._name} ended with {reason}{detail}")
        return output

    def _parse(self, output: str) -> _Printed | tuple[_Printed, float]:
        words = output.split()
        named = list(takewhile(lambda word: "=" in word, words))
        rest = words[max(len(named), 1) :]
        if not words or len(rest) > 1 or bool(named) != bool(self.quantities):
            raise self._unreadable(output)
        value: _Printed = words[0]
        if named:
            value = self._values(named, output)
        elif words[0].lower() not in _ANSWERS:
            value = self._number(words[0], output)
        return (value, self._number(rest[0], output)) if rest else value

    def _values(self, words: Sequence[str], output: str) -> dict[str, float]:
        """Return the values of words such as "yield=82.1" by name."""
        values = {}
        for word in words:
            name, _, text = word.partition("=")
            if name in values:
                raise self._unreadable(output)
            values[name] = self._number(text, output)
        return values

    def _number(self, word: str, output: str) -> float:
        try:
            number = float(word)
        except ValueError:
            raise self._unreadable(output) from None
        if not isfinite(number):
            raise CommandFailedError(f"{self._name} must print a finite number, got {number}")
        return number

    def _unreadable(self, output: str) -> CommandFailedError:
        printed = repr(_last_line(output)) if output.strip() else "nothing"
        expected = " ".join(f"{name}=VALUE" for name in self.quantities) or "one number"
        return CommandFailedError(f"{self._name} must print {expected}, got {printed}")

    @property
    def _name(self) -> str:
        return self.command if self.shell else self._parts[0]


_QUOTES = "'\"`"
_CLOSED_BY = {")": ("(", "(("), "}": ("{",)}  # what a closing bracket of a shell command closes


class _ShellReader:
    """Reads a shell command up to its placeholders, to find out what is around each of them.

    Attributes:
        around: The quotes and brackets that are open, the outermost first; "((" is an arithmetic
            expression.
    """

    def __init__(self) -> None:
        self.around: list[str] = []
        self._previous = "\n"
        self._is_escaped = False
        self._in_comment = False
        self._here_document = ""  # "begins" on the line of its <<, "runs" on those after it

    @property
    def obstacle(self) -> str | None:
        """Why the value of a placeholder would not be one word here; None if it would."""
        if self._in_comment:
            return "in a comment"
        if self._here_document == "runs":
            return "in or after a here-document"
        if "((" in self.around:
            return "in an arithmetic expression"
        if self._is_escaped or any(mark in self.around for mark in "'\"`"):
            return "within quotes or behind a backslash"
        return None

    def read(self, text: str) -> None:
        """Read text without placeholders."""
        for position, character in enumerate(text):
            self._read_character(character, text[position + 1 : position + 2])
            self._previous = character

    def skip_placeholder(self) -> None:
        """Read a placeholder, which is part of a word."""
        self._previous = "x"

    def _read_character(self, character: str, following: str) -> None:
        inside = self.around[-1] if self.around else ""
        if character == "\n":
            self._in_comment = False
            self._here_document = "runs" if self._here_document else ""
        if self._in_comment:
            return
        if self._is_escaped:
            self._is_escaped = False
        elif character == "\\" and inside != "'":
            self._is_escaped = True
        elif inside in ("'", "`"):
            if character == inside:
                self.around.pop()
        elif character in _QUOTES:
            self._read_quote(character, inside)
        elif character in "({":
            self._open_bracket(character, inside)
        elif character in _CLOSED_BY:
            if inside in _CLOSED_BY[character]:
                self.around.pop()
        elif inside not in ('"', "((", "{"):
            self._read_mark(character, following)

    def _read_quote(self, character: str, inside: str) -> None:
        if character == inside:
            self.around.pop()
        elif character != "'" or inside != '"':  # within double quotes an apostrophe quotes nothing
            self.around.append(character)

    def _open_bracket(self, character: str, inside: str) -> None:
        is_substitution = self._previous == "$"
        if character == "(" and self._previous == "(" and inside == "(":
            self.around.append("((")
        elif is_substitution or (character == "(" and inside != '"'):
            self.around.append(character)

    def _read_mark(self, character: str, following: str) -> None:
        """Read a character that may begin a comment or a here-document."""
        if character == "#" and self._previous in " \t\n;|&()<>":
            self._in_comment = True
        elif character == self._previous == "<" and following != "<":
            self._here_document = self._here_document or "begins"


def _check_unquoted(command: str) -> None:
    """Check that each placeholder of a shell command stands where its value is one word.

    Raises:
        InvalidArgumentError: If one is within quotes, a comment, a here-document or an arithmetic
            expression.
    """
    reader = _ShellReader()
    for literal, name, _, _ in Formatter().parse(command):
        reader.read(literal)
        if name is None:
            continue
        if reader.obstacle is not None:
            raise InvalidArgumentError(
                f"{{{name}}} must be a word of a shell command, without quotes, as its value is "
                "passed as one word; "
                f"got it {reader.obstacle}: write {{{name}}} as an argument, or in an assignment "
                f"such as v={{{name}}}"
            )
        reader.skip_placeholder()


def _with_variables(command: str, values: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
    """Return a shell command with variables in place of the names in braces, and their values.

    The text that a shell reads is the same for all values, so that none of them can be read as a command.
    """
    variables: dict[str, str] = {}
    parts = []
    for literal, name, form, _ in Formatter().parse(command):
        parts.append(literal)
        if name is not None:
            variable = f"TRUVAR_VALUE_{len(variables)}"
            variables[variable] = format(values[name], form or "")
            parts.append(f'"${{{variable}}}"')
    return "".join(parts), variables


def _check_format(name: str, form: str, numeric: bool) -> None:
    """Check the format after the colon of a placeholder such as {x:.2f}."""
    try:
        format(1.0 if numeric else "", form)
    except ValueError as error:
        raise InvalidArgumentError(
            f"invalid format {form!r} of {{{name}:{form}}} in the command ({error}); use one such "
            f"as {{{name}:.3f}}"
        ) from None


def _placeholders(text: str, command: str) -> list[tuple[str, str]]:
    """Return the names in braces, each with its format."""
    try:
        return [
            (name, form or "") for _, name, form, _ in Formatter().parse(text) if name is not None
        ]
    except ValueError as error:
        raise InvalidArgumentError(
            f"cannot read the braces of the command {command!r} ({error}); double braces that are "
            "meant literally"
        ) from None


def _fill_in(text: str, values: Mapping[str, Any], quote: bool = False) -> str:
    """Return the text with values in place of the names in braces.

    `str.format` is not used, because it reads a name such as "a.b" as an attribute.
    """
    parts = []
    for literal, name, form, _ in Formatter().parse(text):
        parts.append(literal)
        if name is not None:
            value = format(values[name], form or "")
            parts.append(shlex.quote(value) if quote else value)
    return "".join(parts)


def _end(process: subprocess.Popen[str]) -> None:
    """End a program, together with the processes that it started.

    Windows has no process groups of this kind; there only the program itself is ended.
    """
    for descendant in _descendants(process.pid):  # also those that left the group
        with suppress(ProcessLookupError, PermissionError):
            os.kill(descendant, signal.SIGKILL)
    if hasattr(os, "killpg"):
        # The group may outlive the program: what it started in the background is ended too.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    if process.poll() is None:
        process.kill()
    process.wait()
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()


def _descendants(pid: int) -> list[int]:
    """Return all descendants of a process; none where /proc is missing."""
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, ValueError, IndexError):
            fields = path.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            children.setdefault(int(fields[1]), []).append(int(path.parent.name))
    found = []
    pending = [pid]
    while pending:
        for child in children.get(pending.pop(), ()):
            found.append(child)
            pending.append(child)
    return found


def _last_line(text: str) -> str:
    return text.strip().splitlines()[-1][:_MAX_OUTPUT]
