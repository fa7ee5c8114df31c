"""`truvar new`: a problem is checked, explained and begun."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from truvar.cli._common import Command
from truvar.cli._store import shown, store_url
from truvar.exceptions import TruvarError


def _new_arguments(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("problem", metavar="PROBLEM.toml", help="the problem file")
    sub.add_argument("--store", metavar="STORE", help="where to keep the study (default: PROBLEM.db beside the file)")
    sub.add_argument("--name", metavar="NAME", help="its name there (default: the problem's)")
    sub.add_argument("--who", metavar="WHO", help="who begins it, for the journal (default: you on this machine)")
    sub.add_argument("--seed", type=int, help="of the study's random choices (default: the problem's)")
    sub.add_argument("--check", action="store_true", help="check and explain the problem, begin nothing")
    sub.add_argument("--json", action="store_true", help="print it as JSON")


def _new(arguments: argparse.Namespace) -> int:
    """Check a problem, say what was understood, and begin a study of it."""
    from truvar.problem import load_problem
    from truvar.report.problem_summary import problem_summary, problem_warnings
    from truvar.report.tables import summary, to_json
    from truvar.report.terminal import TerminalStyle

    if str(arguments.problem).endswith(".db"):
        raise TruvarError(f"a problem file was expected, but {arguments.problem} is a store; give a .toml file")
    problem = load_problem(arguments.problem, check=False)  # the study below is the check
    url = store_url(arguments.store or str(Path(arguments.problem).with_suffix(".db")))
    name = arguments.name or problem.name
    given = {} if arguments.seed is None else {"seed": arguments.seed}
    if arguments.check:
        study = problem.study(name=name, **given)
    else:
        study = problem.study(store=url, name=name, who=arguments.who, **given)
    warnings = problem_warnings(problem, study)
    if arguments.json:
        said = {
            "store": None if arguments.check else url,
            **summary(study),
            "limits": problem.run,
            "warnings": warnings,
        }
        print(to_json(said))
        return 0
    terminal = TerminalStyle.for_stream(sys.stdout)
    print(problem_summary(problem, study, terminal))
    for warning in warnings:
        print(f"\n{terminal.paint('warning:', 'warning')} {terminal.plain(warning)}")
    if not arguments.check:
        print(f"\nbegun as {terminal.plain(name)!r} in {shown(url)}; next: truvar ask {shown(url)}")
    return 0


NEW = Command(
    "new",
    "check a problem, say what was understood, and begin a study of it",
    "truvar new examples/lake.toml --store lake.db\ntruvar new lake.toml --check",
    _new_arguments,
    _new,
)
