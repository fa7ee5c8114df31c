"""A program that measures: it is called with the place on its command line, and prints one number.

No shell is involved unless one is asked for: the command is taken apart first, and the values are filled in then, so
that nothing in them can be taken for anything but an argument.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
from collections.abc import Mapping, Sequence
from math import isfinite
from string import Formatter
from typing import Any

from truvar.exceptions import TruvarError

SHOWN = 200  # letters of what a program wrote that a message repeats


class CommandFailedError(Exception):
    """The program did not print a number; the message says what it did."""


class MeasurementCommand:
    """`MeasurementCommand("./measure {x} {y}", ["x", "y"])(point)` is the number that the program prints.

    columns  what may stand in braces: the columns of the domain
    choice   "level" or "task", where the study has a choice of them: it may stand in braces too
    timeout  seconds after which the program is ended
    shell    give the whole line to a shell, the values quoted
    """

    def __init__(
        self,
        command: str,
        columns: Sequence[str],
        *,
        choice: str | None = None,
        timeout: float | None = None,
        shell: bool = False,
    ) -> None:
        self.command, self.choice, self.timeout, self.shell = command, choice, timeout, shell
        self._running: set[subprocess.Popen[str]] = set()
        self._stopped = False
        try:
            self._parts = [command] if shell else shlex.split(command)
        except ValueError as error:
            raise TruvarError(f"the command {command!r} cannot be read ({error}); mend its quotes") from None
        if not any(part.strip() for part in self._parts):
            raise TruvarError("the command is empty; give one such as './measure {x} {y}'")
        known = [*columns, *([choice] if choice else [])]
        for part in self._parts:
            for name, form in _braces(part, command):
                if name in known:
                    _check_form(name, form, numeric=name != choice)
                else:
                    raise TruvarError(
                        f"the command has {{{name}}} in it, but what can be filled in is "
                        f"{', '.join(f'{{{column}}}' for column in known)}; correct it (braces of its own are doubled)"
                    )

    def __call__(self, point: Mapping[str, float], choice: Any = None) -> float:
        values: dict[str, Any] = dict(point)
        if self.choice is not None:
            values[self.choice] = choice
        if self.shell:
            return self._number(self._run(_filled(self.command, values, quote=True)))
        return self._number(self._run([_filled(part, values) for part in self._parts]))

    def stop(self) -> None:
        """Ends the programs that are running."""
        self._stopped = True
        for process in list(self._running):
            _end(process)

    def _run(self, arguments: str | list[str]) -> str:
        pipe = subprocess.PIPE
        if self._stopped:
            raise CommandFailedError(f"{self._name} was stopped")
        try:
            process = subprocess.Popen(
                arguments, shell=self.shell, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True,
                errors="replace", start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            raise CommandFailedError(f"{self._name} cannot be started ({error.strerror})") from None
        self._running.add(process)
        try:
            out, err = process.communicate(timeout=self.timeout)
        except subprocess.TimeoutExpired:
            raise CommandFailedError(f"{self._name} did not answer within {self.timeout:g} s and was ended") from None
        finally:
            _end(process)
            self._running.discard(process)
        if process.returncode != 0:
            code = process.returncode
            how = f"exit code {code}" if code > 0 else f"signal {-code}"
            said = f": {_last_line(err)}" if err.strip() else ""
            raise CommandFailedError(f"{self._name} ended with {how}{said}")
        return out

    def _number(self, out: str) -> float:
        try:
            value = float(out)
        except ValueError:
            shown = repr(_last_line(out)) if out.strip() else "nothing"
            raise CommandFailedError(f"{self._name} must print one number, but it printed {shown}") from None
        if not isfinite(value):
            raise CommandFailedError(f"{self._name} must print a finite number, but it printed {value}")
        return value

    @property
    def _name(self) -> str:
        return self.command if self.shell else self._parts[0]


def _check_form(name: str, form: str, numeric: bool) -> None:
    try:
        format(1.0 if numeric else "", form)
    except ValueError as error:
        raise TruvarError(f"{{{name}:{form}}} in the command says no way to write it ({error}); mend it") from None


def _braces(text: str, command: str) -> list[tuple[str, str]]:
    """The names in braces, and how they are to be written."""
    try:
        return [(name, form or "") for _, name, form, _ in Formatter().parse(text) if name is not None]
    except ValueError as error:
        raise TruvarError(
            f"the command {command!r} cannot be read ({error}); braces that are meant as such are doubled: {{{{ }}}}"
        ) from None


def _filled(text: str, values: Mapping[str, Any], quote: bool = False) -> str:
    """The text with the values in place of their names; a name is a name, whatever it looks like."""
    parts = []
    for literal, name, form, _ in Formatter().parse(text):
        parts.append(literal)
        if name is not None:
            value = format(values[name], form or "")
            parts.append(shlex.quote(value) if quote else value)
    return "".join(parts)


def _end(process: subprocess.Popen[str]) -> None:
    """Ends a program with all that it started."""
    if process.poll() is None:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except (AttributeError, ProcessLookupError, PermissionError):  # no such thing on this system, or gone
            process.kill()
        process.wait()


def _last_line(text: str) -> str:
    return text.strip().splitlines()[-1][:SHOWN]
