"""`truvar run`: a program measures, or a table of known values answers."""

from __future__ import annotations

import argparse
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from truvar._typing import Array
from truvar.cli._common import INTERRUPTED, Command, interruptible, positive, seconds
from truvar.cli._store import study_arguments
from truvar.cli.run_command import measure
from truvar.exceptions import TruvarError

if TYPE_CHECKING:
    from truvar.study.result import Result
    from truvar.study.study import Study


def _run_arguments(sub: argparse.ArgumentParser) -> None:
    study_arguments(sub, help="the problem file, or with --command a study's store", metavar="PROBLEM.toml|STUDY")
    answer = sub.add_mutually_exclusive_group(required=True)
    answer.add_argument("--truth", metavar="COLUMN", help="the column of the problem's table that answers")
    answer.add_argument("--command", metavar="'PROGRAM {x} ...'", help="the program that measures and prints a number")
    sub.add_argument("--budget", type=positive(float), metavar="COST", help="stop before more is spent")
    sub.add_argument("--steps", type=positive(int), metavar="N", help="stop after N measurements")
    sub.add_argument("--epsilon", type=positive(float), help="stop when the answer is this close to exact")
    sub.add_argument("--json", action="store_true", help="print the summary as JSON")
    sub.add_argument("--quiet", action="store_true", help="no progress display")
    program = sub.add_argument_group("with --command")
    program.add_argument("--jobs", type=positive(int), default=1, metavar="N", help="measurements at once (default: 1)")
    program.add_argument("--timeout", type=seconds, metavar="TIME", help="end the program after 90s, 15min, ...")
    program.add_argument("--retries", type=int, default=2, metavar="N", help="tries again after a failure (default: 2)")
    program.add_argument(
        "--lease", type=seconds, metavar="TIME",
        help="others may have a place if it is not told by then (default: what the time-out and retries allow, or 1d)",
    )  # fmt: skip
    program.add_argument("--shell", action="store_true", help="let a shell read the command")
    table = sub.add_argument_group("with --truth")
    table.add_argument("--seed", type=int, help="of the noise and of the study's random choices")
    table.add_argument("--policy", metavar="NAME", help="decide by another rule than the problem's")
    table.add_argument("--report", metavar="DIR", type=Path, help="folder of the report (default: NAME-report)")


def _run(arguments: argparse.Namespace) -> int:
    if arguments.command is not None:
        return measure(arguments)
    if arguments.words is None:
        raise TruvarError("run --truth needs a problem file, but none came; give it: truvar run lake.toml --truth ...")
    return _replay(arguments)


def _replay(arguments: argparse.Namespace) -> int:
    """Simulate a problem whose true values stand in its table, and report on it."""
    from truvar.backtest import Simulator, is_noisy, truth_column
    from truvar.problem import load_problem
    from truvar.report import Progress, summary, write_report
    from truvar.report.style import import_matplotlib
    from truvar.report.tables import make_folder, to_json

    problem = load_problem(arguments.words, check=False)  # the study below is the check
    given = {name: getattr(arguments, name) for name in ("seed", "policy") if getattr(arguments, name) is not None}
    study = problem.study(**given)
    truth = truth_column(problem.domain, arguments.truth)
    table = Simulator(truth, is_noisy(problem), (study.seed,))
    limits: dict[str, Any] = {name: getattr(arguments, name) or problem.run.get(name) for name in LIMITS}
    folder = arguments.report or Path(f"{problem.name}-report")
    import_matplotlib("figure")  # what the report will need is asked for now, not after the run
    make_folder(folder)

    budget, steps = limits["budget"], limits["steps"]
    shown = nullcontext() if arguments.quiet else Progress(study, truth, budget=budget, steps=steps)
    with shown as show, interruptible() as interrupted:

        def after_each(study: Study) -> None:
            if show is not None:
                show(study)
            if interrupted():
                raise _Stop

        def answer(*_: Any) -> float:
            return table.measure(study.pending[-1], study.steps)

        with suppress(_Stop):
            study.run(answer, **limits, progress=after_each)
    paths = write_report(study, folder, truth)
    if arguments.json:
        print(to_json({**summary(study, truth), "report": {kind: str(path) for kind, path in paths.items()}}))
    else:
        _print_result(study.result(), problem.name, truth, arguments.truth)
        print(f"report: {paths['map']} (with {', '.join(path.name for path in list(paths.values())[1:])})")
    return INTERRUPTED if interrupted() else 0


class _Stop(Exception):
    """Ctrl-C, between two measurements."""


LIMITS = ("budget", "steps", "epsilon")


def _print_result(result: Result, name: str, truth: Array, column: str) -> None:
    print(f"{name}: {result.steps} measurements, cost {result.spent:.6g}; {result.reason or 'interrupted'}")
    print(f"  {result.certificate}")
    print(f"  {result.certificate.regime}: {result.certificate.because}")
    if result.goal.level_set:
        print(f"  F1 against {column}: {result.f1(truth):.3f}")
    else:
        best = ", ".join(f"{key} = {value:.6g}" for key, value in result.best.point.items())
        print(f"  best: {best}, value {result.best.mean:.6g} ± {result.best.sd:.2g}")
        print(f"  regret against {column}: {result.regret(truth):.4g}")


RUN = Command(
    "run",
    "let a program measure until the study is done, or let a table of known values answer",
    "truvar run lake.db --command './measure {distance_m} {depth_m}' --jobs 2 --timeout 15min\n"
    "truvar run examples/lake.toml --truth chlorophyll",
    _run_arguments,
    _run,
)
