"""`truvar run`: run a study with a program that measures, or on a table of known values."""

from __future__ import annotations

import argparse
import sys
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from truvar.cli._common import (
    INTERRUPTED,
    LIMITS,
    Command,
    Interrupted,
    add_json,
    add_path,
    after_each_measurement,
    interruptible,
    positive,
    seconds,
)
from truvar.cli._store import study_arguments
from truvar.cli.run_command import run_command
from truvar.exceptions import InvalidArgumentError

if TYPE_CHECKING:
    from truvar._typing import Array
    from truvar.study.result import Result


def _run_arguments(sub: argparse.ArgumentParser) -> None:
    study_arguments(
        sub,
        help="the problem file, or with --command the store of a study",
        metavar="PROBLEM.toml|STUDY",
    )
    source = sub.add_mutually_exclusive_group(required=True)
    source.add_argument(
        "--truth", metavar="COLUMN", help="column of the problem's table that has the true values"
    )
    source.add_argument(
        "--command", metavar="'PROGRAM {x} ...'", help="program that measures and prints a number"
    )
    sub.add_argument(
        "--budget",
        type=positive(float),
        metavar="COST",
        help="stop before the total cost exceeds COST",
    )
    sub.add_argument("--steps", type=positive(int), metavar="N", help="stop after N measurements")
    sub.add_argument(
        "--epsilon",
        type=positive(float),
        help="stop when the result is at most this far from exact",
    )
    f1 = "level set: stop when the F1 score is at least F1 with 97.5 %% probability"
    sub.add_argument("--f1", type=positive(float), metavar="F1", help=f1)
    regret = "optimum: stop when the regret is at most REGRET with 97.5 %% probability"
    sub.add_argument("--regret", type=positive(float), metavar="REGRET", help=regret)
    rate = "optimum: stop when no measurement promises an improvement of RATE per unit cost"
    sub.add_argument("--improvement-per-cost", type=positive(float), metavar="RATE", help=rate)
    accuracy = "map: stop when it is within DISTANCE at 99 %% of the points with 95 %% probability"
    sub.add_argument("--accuracy", type=positive(float), metavar="DISTANCE", help=accuracy)
    add_json(sub, "the summary")
    sub.add_argument("--quiet", action="store_true", help="no progress display")
    report = (
        "the report: a file x.html, or a folder (default with --truth: the folder NAME-report; "
        "otherwise none)"
    )
    add_path(sub, "--report", metavar="FILE.html|FOLDER", type=Path, help=report)
    program = sub.add_argument_group("with --command")
    jobs = "measurements at the same time (default: 1)"
    program.add_argument("--jobs", type=positive(int), default=1, metavar="N", help=jobs)
    program.add_argument(
        "--timeout", type=seconds, metavar="TIME", help="kill the program after 90s, 15min, ..."
    )
    retries = "repetitions of a failed measurement (default: that of [run], or 2)"
    program.add_argument("--retries", type=int, metavar="N", help=retries)
    failures = (
        "stop when more than N measurements failed (default: that of [run], or after several in "
        "a row)"
    )
    program.add_argument("--max-failures", type=int, metavar="N", help=failures)
    lease = (
        "reserve each suggestion for this long (default: as long as time-out and retries allow, "
        "or 1d)"
    )
    program.add_argument("--lease", type=seconds, metavar="TIME", help=lease)
    program.add_argument("--shell", action="store_true", help="run the command in a shell")
    table = sub.add_argument_group("with --truth")
    table.add_argument(
        "--seed", type=int, help="seed of the noise and of the study's random choices"
    )
    table.add_argument("--policy", metavar="NAME", help="policy to use instead of the problem's")
    theorem = "add the paper's sets M, H and L and what its confidence bounds say"
    table.add_argument("--theorem", action="store_true", help=theorem)


def _run(arguments: argparse.Namespace) -> int:
    """Run with the program or on the table."""
    if arguments.command is not None:
        return run_command(arguments)
    if arguments.words is None:
        raise InvalidArgumentError(
            "run --truth needs a problem file, got none; give one: truvar run lake.toml --truth "
            "COLUMN"
        )
    return _simulate(arguments)


def _simulate(arguments: argparse.Namespace) -> int:
    """Run a problem whose table has the true values, and write a report."""
    from warnings import catch_warnings, simplefilter

    from truvar.backtest import Simulator, is_noisy, truth_column
    from truvar.exceptions import OutlierWarning
    from truvar.problem import load_problem
    from truvar.report import Progress, summary
    from truvar.report.html_report import write_report_at
    from truvar.report.style import import_matplotlib
    from truvar.report.tables import describe_report, is_html, make_folder, to_json
    from truvar.study.limits import RunLimits

    problem = load_problem(arguments.words, check=False)  # the study below is the check
    options = {
        name: getattr(arguments, name)
        for name in ("seed", "policy")
        if getattr(arguments, name) is not None
    }
    study = problem.study(**options)
    truth = truth_column(problem.domain, arguments.truth)
    simulator = Simulator(truth, is_noisy(problem), (study.seed,))
    simulator.check(study)
    limits: dict[str, Any] = {
        name: getattr(arguments, name) or problem.run.get(name) for name in LIMITS
    }
    target = arguments.report or Path(f"{problem.name}-report")
    import_matplotlib("figure")  # the report needs it: a missing library is reported before the run
    make_folder(target.parent if is_html(target) else target)

    def measure(point: dict[str, float], *_: Any) -> float:
        suggestion = next(pending for pending in study.pending if pending.point == point)
        return simulator.measure(suggestion, study.steps, study.outcome)

    display: Any = nullcontext()
    if not arguments.quiet:
        display = Progress(study, truth, limits=RunLimits(**limits).or_default({}, study.goal))
    with display as show, interruptible() as interrupted, catch_warnings(), suppress(Interrupted):
        simplefilter("ignore", OutlierWarning)  # a table of true values has no typing mistakes
        study.run(measure, **limits, progress=after_each_measurement(show, interrupted))
    paths = write_report_at(study, target, truth, theorem=arguments.theorem)
    if arguments.json:
        print(
            to_json(
                {
                    **summary(study, truth),
                    "report": {kind: str(path) for kind, path in paths.items()},
                }
            )
        )
    else:
        result = study.result()
        unit = study.quantity.after_number
        _print_result(result, problem.name, truth, arguments.truth, unit)
        if arguments.theorem:
            _print_bounds(result)
        print(f"report: {describe_report(paths)}")
    return INTERRUPTED if interrupted() else 0


def _print_result(result: Result, name: str, truth: Array, column: str, unit: str) -> None:
    from truvar.report.formatting import format_true_score
    from truvar.report.status import describe_best, describe_best_observed
    from truvar.report.terminal import TerminalStyle

    terminal = TerminalStyle.for_stream(sys.stdout)
    count = "1 measurement" if result.steps == 1 else f"{result.steps} measurements"
    print(
        terminal.plain(
            f"{name}: {count}; stopped: {result.reason or 'interrupted'}; cost {result.spent:.6g}"
        )
    )
    rows = [("certificate", str(result.certificate))]
    if not result.model_check.ok:
        rows.append(("model check", f"failed: {result.model_check.message}"))
    if result.outliers:
        rows.append(
            ("left out", f"as outliers: measurement {', '.join(map(str, result.outliers))}")
        )
    if not result.goal.seeks_optimum:
        score = result.goal.score
        text = format_true_score(score, result.score(truth))
        rows.append((f"{score.name} against {column}", text))
    else:
        if result.best_observed is not None:
            best = describe_best_observed(result.best_observed, result.domain, unit)
            rows.append(("best so far", best))
        rows.append(("recommended", describe_best(result, unit)))
        rows.append((f"regret against {column}", f"{result.regret(truth):.4g}{unit}"))
    print(terminal.rows(rows))


def _print_bounds(result: Result) -> None:
    """Print the sets of the paper and what its confidence bounds say."""
    from truvar.report.status import BOUNDS_TITLE, describe_bounds
    from truvar.report.terminal import TerminalStyle

    print(BOUNDS_TITLE)
    print(TerminalStyle.for_stream(sys.stdout).rows(describe_bounds(result)))


RUN = Command(
    "run",
    "run a study with a program that measures, or on a table of known values",
    "truvar run lake.db --command './measure {distance_m} {depth_m}' --jobs 2 --timeout 15min\n"
    "truvar run examples/lake.toml --truth chlorophyll",
    _run_arguments,
    _run,
)
