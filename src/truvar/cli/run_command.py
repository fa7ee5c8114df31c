"""`truvar run --command`: a program measures what a stored study asks for.

A run that was killed leaves what it was measuring pending. The next run on the same machine finds out that it is dead,
and measures that first, so that it goes on as if nothing had happened. Elsewhere that cannot be found out: there its
suggestions are free again when their lease has ended.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from truvar.cli._common import INTERRUPTED, interruptible
from truvar.cli._store import open_study, store_url
from truvar.exceptions import TruvarError

if TYPE_CHECKING:
    from truvar.study.study import Study
    from truvar.study.suggestion import Suggestion


MINUTE, DAY = 60.0, 86_400.0  # seconds


def measure(arguments: argparse.Namespace) -> int:
    """Let a program measure."""
    from truvar.integrations.measurement_command import MeasurementCommand
    from truvar.report import Progress
    from truvar.report.status import status_data, status_text
    from truvar.report.tables import to_json
    from truvar.report.terminal import TerminalStyle
    from truvar.storage.base import whoami

    for name in ("seed", "policy", "report"):
        if getattr(arguments, name) is not None:
            raise TruvarError(f"--{name} belongs to --truth, but --command came with it; leave out one of the two")
    if arguments.retries < 0:
        raise TruvarError(f"--retries must be at least 0, got {arguments.retries}; give 0 for none")
    arguments.who = f"{arguments.who or whoami()} run {os.getpid()}"
    study = _opened(arguments)
    levels = study.candidates().n_levels > 1
    choice = "task" if study.tasks is not None else "level" if levels else None
    program = MeasurementCommand(
        arguments.command, study.domain.columns, choice=choice, timeout=arguments.timeout, shell=arguments.shell
    )
    limits: dict[str, Any] = {
        name: getattr(arguments, name) or study.limits.get(name) for name in ("budget", "steps", "epsilon")
    }
    before, orphans = study.steps, _orphans(study)
    shown = nullcontext() if arguments.quiet else Progress(study, budget=limits["budget"], steps=limits["steps"])
    pool = ThreadPoolExecutor(arguments.jobs) if arguments.jobs > 1 else None
    said = "stopping after the next measurement (Ctrl-C again: at once)"
    try:
        with shown as show, interruptible(said) as interrupted, _warnings_in_one_line(), suppress(_Stop):
            study.run(
                program, **limits, executor=pool, retries=arguments.retries, resume=orphans, lease=_lease(arguments),
                progress=_after_each(show, interrupted),
            )  # fmt: skip
    finally:
        program.stop()
        if pool is not None:
            pool.shutdown()
    if arguments.json:
        print(to_json({**status_data(study), "measured": study.steps - before, "taken_over": [s.id for s in orphans]}))
    else:
        print(status_text(study, TerminalStyle.for_stream(sys.stdout)))
    return INTERRUPTED if interrupted() else 0


def _lease(arguments: argparse.Namespace) -> float:
    """For how long a suggestion is ours: as long as its measurement can take."""
    if arguments.lease is not None or arguments.timeout is None:
        return float(arguments.lease or DAY)
    return float((arguments.retries + 1) * arguments.timeout + MINUTE)


class _Stop(Exception):
    """Ctrl-C, between two measurements."""


def _after_each(show: Any, interrupted: Callable[[], bool]) -> Callable[[Study], None]:
    def after_each(study: Study) -> None:
        if show is not None:
            show(study)
        if interrupted():
            raise _Stop

    return after_each


def _opened(arguments: argparse.Namespace) -> Study:
    """The study of a store; with a problem file, that of the store beside it, which is begun if need be."""
    if not (arguments.words or "").endswith(".toml"):
        return open_study(arguments)
    from truvar.problem import load_problem

    path = Path(arguments.words)
    problem = load_problem(path)
    store = arguments.store or str(path.with_suffix(".db"))
    name = arguments.name or problem.name
    arguments.words, arguments.store, arguments.name = None, store, name
    if "://" not in store and not Path(store).exists():
        return problem.study(store=store_url(store), name=name, who=arguments.who)
    return open_study(arguments)


def _orphans(study: Study) -> list[Suggestion]:
    """Pending suggestions of runs on this machine that are dead."""
    asked = study.events
    asked = asked[asked["kind"] == "asked"]
    by = {details["id"]: who for who, details in zip(asked["who"], asked["details"], strict=True)}
    mine = re.sub(r"\d+$", "", study.who)
    found = []
    for suggestion in study.pending:
        whose = by.get(suggestion.id, "")
        number = whose.removeprefix(mine)
        if whose.startswith(mine) and number.isdecimal() and not _alive(int(number)):
            found.append(suggestion)
    return found


def _alive(process: int) -> bool:
    """Return whether a process of this machine is running; always true where that cannot be found out."""
    if os.name != "posix":  # on Windows, os.kill would end the process
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


@contextmanager
def _warnings_in_one_line() -> Iterator[None]:
    from truvar.report.terminal import is_terminal

    with warnings.catch_warnings():
        warnings.simplefilter("always", RuntimeWarning)
        clear = "\r\x1b[K" if is_terminal(sys.stderr) else ""
        warnings.showwarning = lambda message, *_, **__: print(f"{clear}truvar: {message}", file=sys.stderr)
        yield
