"""`truvar new`: validate a problem file and create a study."""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path

from truvar.cli._common import Command, add_json, add_path
from truvar.cli._store import is_store, store_label, store_url
from truvar.exceptions import InvalidArgumentError
from truvar.messages import mask_passwords


def _new_arguments(sub: argparse.ArgumentParser) -> None:
    add_path(sub, "problem", metavar="PROBLEM.toml", help="the problem file")
    add_path(
        sub,
        "--store",
        metavar="STORE",
        help="store of the new study (default: PROBLEM.db beside the file)",
    )
    sub.add_argument("--name", metavar="NAME", help="name of the study (default: the problem's)")
    sub.add_argument(
        "--author",
        "--who",
        metavar="NAME",
        help="author of the events in the log (default: user@machine)",
    )
    sub.add_argument(
        "--seed", type=int, help="seed of the study's random choices (default: the problem's)"
    )
    sub.add_argument(
        "--check", action="store_true", help="validate and explain the problem, create no study"
    )
    add_json(sub, "the summary")


def _new(arguments: argparse.Namespace) -> int:
    """Print a summary of the problem and create the study."""
    from truvar.problem import load_problem
    from truvar.report.problem_summary import problem_summary, problem_warnings
    from truvar.report.tables import summary, to_json
    from truvar.report.terminal import TerminalStyle

    if is_store(arguments.problem):
        raise InvalidArgumentError(
            f"expected a problem file, got the store {arguments.problem}; give a .toml file"
        )
    with warnings.catch_warnings(record=True) as of_the_table:
        warnings.simplefilter("always", UserWarning)
        problem = load_problem(arguments.problem, check=False)  # the study below is the check
    url = store_url(arguments.store or str(Path(arguments.problem).with_suffix(".db")))
    name = arguments.name or problem.name
    options = {} if arguments.seed is None else {"seed": arguments.seed}
    if not arguments.check:
        options |= {"store": url, "author": arguments.author}
    study = problem.study(name=name, **options)
    found = [str(warning.message) for warning in of_the_table if warning.category is UserWarning]
    found += problem_warnings(problem, study)
    if arguments.json:
        store = None if arguments.check else mask_passwords(url)
        print(to_json({"store": store, **summary(study), "limits": problem.run, "warnings": found}))
        return 0
    terminal = TerminalStyle.for_stream(sys.stdout)
    print(problem_summary(problem, study, terminal))
    for warning in found:
        text = terminal.wrapped(f"warning: {warning}").removeprefix("warning:")
        print(f"\n{terminal.paint('warning:', 'warning')}{text}")
    if not arguments.check:
        label = store_label(url)
        print(f"\ncreated study {terminal.plain(name)!r} in {label}; next: truvar ask {label}")
    return 0


NEW = Command(
    "new",
    "validate a problem file and create a study",
    "truvar new examples/lake.toml --store lake.db\ntruvar new lake.toml --check",
    _new_arguments,
    _new,
)
