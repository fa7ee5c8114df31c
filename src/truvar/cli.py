"""The command `truvar`: parse, call, print.

A command is one `Command` in `COMMANDS`: its name, help, arguments, and a function from the parsed arguments to
the exit code. Libraries are imported inside those functions. Exit codes: 0 done; 1 the user's mistake, told in
one line on stderr; 2 usage; 130 stopped by Ctrl-C.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from truvar.errors import TruvarError

if TYPE_CHECKING:
    from truvar.domain import Array
    from truvar.result import Result
    from truvar.study import Study

INTERRUPTED = 128 + signal.SIGINT


@dataclass(frozen=True)
class Command:
    """One subcommand."""

    name: str
    help: str
    example: str
    arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


def main(argv: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    arguments = parser().parse_args(argv)
    try:
        code: int = arguments.run(arguments)
        sys.stdout.flush()
        return code
    except TruvarError as error:
        return _complain(str(error))
    except BrokenPipeError:  # the reader of our output has left, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        return _complain(str(error))
    except KeyboardInterrupt:
        return INTERRUPTED


def parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    top = argparse.ArgumentParser(
        prog="truvar",
        description="What to measure next to find a maximum or a level set, when every measurement costs something.",
    )
    top.add_argument("--version", action=_Version, help="show the version and exit")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in COMMANDS:
        sub = commands.add_parser(
            command.name, help=command.help, description=command.help, epilog=f"example: {command.example}"
        )
        command.arguments(sub)
        sub.set_defaults(run=command.run)
    return top


class _Version(argparse.Action):
    """Prints the version, which is looked up only then."""

    def __init__(self, option_strings: Sequence[str], dest: str, **kwargs: Any) -> None:
        super().__init__(option_strings, dest=argparse.SUPPRESS, nargs=0, **kwargs)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from truvar import __version__

        print(f"truvar {__version__}")
        parser.exit()


def _complain(message: str) -> int:
    print(f"truvar: {' '.join(message.split())}", file=sys.stderr)
    return 1


# -- truvar run ------------------------------------------------------------------------------------------------


def _run_arguments(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("problem", metavar="PROBLEM.toml", help="the problem file")
    sub.add_argument("--truth", metavar="COLUMN", required=True, help="the column of its table that answers")
    sub.add_argument("--budget", type=_positive(float), metavar="COST", help="stop before more is spent")
    sub.add_argument("--steps", type=_positive(int), metavar="N", help="stop after N measurements")
    sub.add_argument("--epsilon", type=_positive(float), help="stop when the answer is this close to exact")
    sub.add_argument("--seed", type=int, help="of the noise and of the study's random choices")
    sub.add_argument("--policy", metavar="NAME", help="decide by another rule than the problem's")
    sub.add_argument("--report", metavar="DIR", type=Path, help="folder of the report (default: NAME-report)")
    sub.add_argument("--json", action="store_true", help="print the summary as JSON")
    sub.add_argument("--quiet", action="store_true", help="no progress display")


def _run(arguments: argparse.Namespace) -> int:
    """Replay a problem whose true values stand in its table, and report on it."""
    from truvar.backtest import Replay, is_noisy, truth_column
    from truvar.problem import load_problem
    from truvar.report import Progress, summary, write_report
    from truvar.report.style import matplotlib
    from truvar.report.tables import make_folder, to_json

    problem = load_problem(arguments.problem)
    given = {name: getattr(arguments, name) for name in ("seed", "policy") if getattr(arguments, name) is not None}
    study = problem.study(**given)
    truth = truth_column(problem.domain, arguments.truth)
    table = Replay(truth, is_noisy(problem), (study.seed,))
    limits = {name: getattr(arguments, name) or problem.run.get(name) for name in ("budget", "steps", "epsilon")}
    folder = arguments.report or Path(f"{problem.name}-report")
    matplotlib("figure")  # what the report will need is asked for now, not after the run
    make_folder(folder)

    budget, steps = limits["budget"], limits["steps"]
    shown = nullcontext() if arguments.quiet else Progress(study, truth, budget=budget, steps=steps)
    with shown as show, _interruptible() as interrupted:

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


@contextmanager
def _interruptible() -> Iterator[Callable[[], bool]]:
    """Within it Ctrl-C is noted, to be acted on between two measurements; a second one ends at once."""
    noted: list[int] = []

    def note(number: int, _: FrameType | None) -> None:
        if noted:
            raise KeyboardInterrupt
        noted.append(number)

    before = signal.signal(signal.SIGINT, note)
    try:
        yield lambda: bool(noted)
    finally:
        signal.signal(signal.SIGINT, before)


def _positive(kind: type[int] | type[float]) -> Callable[[str], float]:
    def positive(text: str) -> float:
        value = kind(text)
        if not 0 < value < float("inf"):
            raise argparse.ArgumentTypeError(f"must be positive, but it was {text}")
        return value

    positive.__name__ = "number" if kind is float else "whole number"  # argparse: "invalid number value: 'x'"
    return positive


# -- truvar backtest -------------------------------------------------------------------------------------------


def _backtest_arguments(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("problem", metavar="PROBLEM.toml", help="the problem file")
    sub.add_argument("--truth", metavar="COLUMN", required=True, help="the column of its table that answers")
    sub.add_argument(
        "--policies", metavar="A,B,...", default="truvar", help='rules by name; "/cost" divides by the cost'
    )
    sub.add_argument("--replicates", type=_positive(int), default=20, metavar="N", help="random starts (default: 20)")
    sub.add_argument("--budget", type=_positive(float), metavar="COST", help="what each run may spend")
    sub.add_argument("--seed", type=int, default=0, help="of the starts and of the noise")
    sub.add_argument("--jobs", type=_positive(int), default=1, metavar="N", help="processes that share the work")
    sub.add_argument("--out", metavar="DIR", type=Path, help="folder of the results (default: NAME-backtest)")
    sub.add_argument("--json", action="store_true", help="print the summary as JSON")
    sub.add_argument("--quiet", action="store_true", help="no progress display")


def _backtest(arguments: argparse.Namespace) -> int:
    """Compare policies on a problem whose true values stand in its table."""
    from truvar.backtest import backtest
    from truvar.problem import load_problem
    from truvar.report.curves import plot_backtest
    from truvar.report.progress import Remaining
    from truvar.report.tables import to_json

    problem = load_problem(arguments.problem)
    folder = arguments.out or Path(f"{problem.name}-backtest")
    result = backtest(
        problem,
        arguments.truth,
        [name.strip() for name in arguments.policies.split(",") if name.strip()],
        replicates=arguments.replicates,
        budget=arguments.budget,
        seed=arguments.seed,
        jobs=arguments.jobs,
        folder=folder,
        progress=None if arguments.quiet else Remaining("runs"),
    )
    summary = result.summary
    plot_backtest(result, problem.name).savefig(folder / "curves.png")
    result.curves.to_csv(folder / "curves.csv", index=False)
    summary.to_csv(folder / "summary.csv")
    said = {"measure": result.measure, "budget": result.budget, "policies": summary.reset_index().to_dict("records")}
    (folder / "summary.json").write_text(to_json(said) + "\n", encoding="utf-8")
    if arguments.json:
        print(to_json(said))
    else:
        print(summary.T.to_string(float_format=lambda value: f"{value:.4g}", na_rep="-"))
        print(f"results: {folder}/ (curves.png, curves.csv, summary.csv, summary.json)")
    return 0


# -- truvar bounds ---------------------------------------------------------------------------------------------


def _bounds_arguments(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("problem", metavar="PROBLEM.toml", help="the problem file")
    sub.add_argument("--epsilon", type=_positive(float), required=True, help="the accuracy asked for")
    sub.add_argument("--delta", type=_positive(float), default=0.1, help="the risk taken (default: 0.1)")
    sub.add_argument("--runs", type=int, default=20, metavar="N", help="draws of f to simulate; 0: none (default: 20)")
    sub.add_argument("--budget", type=_positive(float), metavar="COST", help="end a simulated run before more is spent")
    sub.add_argument("--steps", type=_positive(int), default=300, help="... or after this many measurements (300)")
    sub.add_argument("--theorem", action="store_true", help="simulate with the theorem's beta, not the problem's own")
    sub.add_argument("--plot", metavar="FILE", type=Path, help="draw expected epsilon against cost")
    sub.add_argument("--json", action="store_true", help="print all of it as JSON")


def _bounds(arguments: argparse.Namespace) -> int:
    """What an accuracy costs, by theory and by simulation of the prior."""
    from dataclasses import replace

    from truvar.confidence import TheoremBeta
    from truvar.policies import TruVaR
    from truvar.problem import load_problem
    from truvar.report.planner import SLACK, bounds_summary, bounds_text, plot_plan
    from truvar.report.tables import to_json
    from truvar.theory import simulate

    if arguments.plot and arguments.runs < 1:
        raise TruvarError(f"--plot draws the simulation, but --runs was {arguments.runs}; give at least 1")
    problem = load_problem(arguments.problem)
    study, given = problem.study(), {}
    study.setting()  # a model that is learned is refused now, not after the simulation
    if arguments.theorem:
        if not isinstance(study.policy, TruVaR):
            raise TruvarError(
                f"--theorem is about the policy truvar, but the problem's is {study.policy!r}; leave it out"
            )
        slack = study.policy.slack or SLACK
        given["policy"] = replace(study.policy, beta=TheoremBeta(arguments.delta), slack=slack)
        study = problem.study(**given)
    plan = None
    if arguments.runs > 0:
        budget = arguments.budget or float("inf")
        plan = simulate(
            lambda number: problem.study(seed=number, **given),
            arguments.epsilon, runs=arguments.runs, budget=budget, steps=arguments.steps,
        )  # fmt: skip
    said = bounds_summary(study, arguments.epsilon, arguments.delta, plan)
    if arguments.plot and plan is not None:
        plot_plan(plan, said["theorem"]["cost"]).savefig(arguments.plot)
    print(to_json(said) if arguments.json else bounds_text(said))
    if arguments.plot and not arguments.json:
        print(f"picture: {arguments.plot}")
    return 0


COMMANDS: tuple[Command, ...] = (
    Command(
        "run",
        "let a table of known values answer, and report what was found",
        "truvar run examples/lake.toml --truth chlorophyll",
        _run_arguments,
        _run,
    ),
    Command(
        "backtest",
        "compare policies on a table of known values, at equal cost",
        "truvar backtest examples/lake.toml --truth chlorophyll --policies truvar,gchk,straddle --budget 6000",
        _backtest_arguments,
        _backtest,
    ),
    Command(
        "bounds",
        "what an accuracy costs, by theory and by simulation of the prior",
        "truvar bounds examples/lake.toml --epsilon 2 --delta 0.1 --plot plan.png",
        _bounds_arguments,
        _bounds,
    ),
)


if __name__ == "__main__":
    sys.exit(main())
