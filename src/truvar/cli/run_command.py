"""`truvar run --command`: run a stored study with a program that measures.

A run that was killed leaves its suggestions pending. The next run on the same machine finds out
that the process has ended, and measures them first, so that the study continues as if it had not
been interrupted. A run on another machine cannot find that out; there the suggestions become free
when their lease ends.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from truvar._representation import visible
from truvar.cli._common import (
    INTERRUPTED,
    LIMITS,
    Interrupted,
    after_each_measurement,
    interruptible,
)
from truvar.cli._store import open_study, store_url
from truvar.exceptions import InvalidArgumentError, OutlierWarning

if TYPE_CHECKING:
    from truvar.study.study import Study
    from truvar.study.suggestion import Suggestion

_DEFAULT_LEASE = 86_400.0  # seconds that a suggestion is reserved without a time-out
_LEASE_MARGIN = 60.0  # seconds added to the longest possible duration of a measurement


def run_command(arguments: argparse.Namespace) -> int:
    """Run a study with the program of `--command`, print its status and return the exit code."""
    from truvar.integrations.measurement_command import MeasurementCommand
    from truvar.report import Progress
    from truvar.storage.base import whoami
    from truvar.study.limits import DEFAULT_RETRIES, RunLimits

    _check_options(arguments)
    arguments.author = f"{arguments.author or whoami()} run {os.getpid()}"
    study = _open_or_create(arguments)
    if arguments.retries is None:
        arguments.retries = int(study.limits.get("retries", DEFAULT_RETRIES))
    chosen = {"level": study.levels, "task": study.tasks}
    choice = [name for name, values in chosen.items() if values is not None]
    # The user's own command, interpreted by a shell only if they say so.
    program = MeasurementCommand(  # nosec B604
        arguments.command,
        study.domain.columns,
        choice=choice,
        quantities=list(study.goal.parts),
        timeout=arguments.timeout,
        shell=arguments.shell,
    )
    limits: dict[str, Any] = {
        name: getattr(arguments, name) or study.limits.get(name) for name in LIMITS
    }
    steps_before = study.steps
    orphans = _orphaned_suggestions(study)
    display: Any = nullcontext()
    if not arguments.quiet:
        display = Progress(study, limits=RunLimits(**limits).or_default({}, study.goal))
    pool = ThreadPoolExecutor(arguments.jobs) if arguments.jobs > 1 else None
    notice = "stopping after the next measurement (Ctrl-C again: immediately)"
    try:
        with (
            display as show,
            interruptible(notice) as interrupted,
            _one_line_warnings(),
            suppress(Interrupted),
        ):
            study.run(
                program,
                **limits,
                executor=pool,
                retries=arguments.retries,
                max_failures=arguments.max_failures,
                resume=orphans,
                lease=_lease(arguments),
                progress=after_each_measurement(show, interrupted),
            )
    finally:
        program.stop()
        if pool is not None:
            pool.shutdown()
    _print_status(study, arguments, measured=study.steps - steps_before, taken_over=orphans)
    return INTERRUPTED if interrupted() else 0


def _check_options(arguments: argparse.Namespace) -> None:
    """Check the options that belong to `--truth`, and those that are counts."""
    for name in ("seed", "policy"):
        if getattr(arguments, name) is not None:
            raise InvalidArgumentError(
                f"--{name} belongs to --truth, got it with --command; leave out one of the two"
            )
    for name in ("retries", "max_failures"):
        value = getattr(arguments, name)
        if value is not None and value < 0:
            raise InvalidArgumentError(
                f"--{name.replace('_', '-')} must be >= 0, got {value}; give 0 for none"
            )


def _print_status(
    study: Study, arguments: argparse.Namespace, measured: int, taken_over: list[Suggestion]
) -> None:
    """Write the report, if one is asked for, and print the status as text or JSON."""
    from truvar.report.html_report import write_report_at
    from truvar.report.status import status_data, status_text
    from truvar.report.tables import describe_report, to_json
    from truvar.report.terminal import TerminalStyle

    paths = {} if arguments.report is None else write_report_at(study, arguments.report)
    if arguments.json:
        data = {"measured": measured, "taken_over": [suggestion.id for suggestion in taken_over]}
        report = {"report": {kind: str(path) for kind, path in paths.items()}} if paths else {}
        print(to_json({**status_data(study), **data, **report}))
        return
    print(status_text(study, TerminalStyle.for_stream(sys.stdout)))
    if paths:
        print(f"report: {describe_report(paths)}")


def _lease(arguments: argparse.Namespace) -> float:
    """Return for how many seconds a suggestion is reserved: as long as its measurement can take."""
    if arguments.lease is not None:
        return float(arguments.lease)
    if arguments.timeout is None:
        return _DEFAULT_LEASE
    return float((arguments.retries + 1) * arguments.timeout + _LEASE_MARGIN)


def _open_or_create(arguments: argparse.Namespace) -> Study:
    """Open the study of a store, or of a problem file, whose store beside it may be created."""
    if not (arguments.words or "").endswith(".toml"):
        return open_study(arguments)
    from truvar.problem import load_problem

    path = Path(arguments.words)
    problem = load_problem(path, check=False)  # the study is the check
    arguments.words = None
    arguments.store = arguments.store or str(path.with_suffix(".db"))
    arguments.name = arguments.name or problem.name
    if "://" not in arguments.store and not Path(arguments.store).exists():
        return problem.study(
            store=store_url(arguments.store), name=arguments.name, author=arguments.author
        )
    return open_study(arguments)


def _orphaned_suggestions(study: Study) -> list[Suggestion]:
    """Return the pending suggestions of runs on this machine whose process has ended."""
    if not study.pending:
        return []
    events = study.events
    asked = events[events["kind"] == "asked"]
    authors = {
        details["id"]: author
        for author, details in zip(asked["who"], asked["details"], strict=True)
    }
    own_prefix = re.sub(r"\d+$", "", study.author)
    orphans = []
    for suggestion in study.pending:
        author = authors.get(suggestion.id, "")
        number = author.removeprefix(own_prefix)
        if author.startswith(own_prefix) and number.isdecimal() and not _alive(int(number)):
            orphans.append(suggestion)
    return orphans


def _alive(process: int) -> bool:
    """Return whether a process of this machine is running; true where that is unknown."""
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
def _one_line_warnings() -> Iterator[None]:
    """Print warnings to stderr as one line each."""
    from truvar.report.terminal import is_terminal

    with warnings.catch_warnings():
        warnings.simplefilter("always", RuntimeWarning)
        warnings.simplefilter("always", OutlierWarning)
        clear = "\r\x1b[K" if is_terminal(sys.stderr) else ""
        warnings.showwarning = lambda message, *_, **__: print(
            f"{clear}truvar: {visible(str(message))}", file=sys.stderr
        )
        yield
