"""truvar and its peers side by side: error over cost, cost to an error, stops and time.

    python -m benchmarks.field --half tuning --starts 5 --json build/field.jsonl
    python -m benchmarks.field --problems lake-set-survey --peers truvar,gpcam,random --starts 2
    python -m benchmarks.field --json build/field.jsonl --peers trieste-efi,trieste-ivr
    python -m benchmarks.field --known --json build/field.jsonl
    python -m benchmarks.field --kept --json build/field.jsonl --figure docs/images/field.png

Nothing is known but the candidates, the goal and the costs; with --known also kernel, mean and
noise, on other problems.

All are told the same three random candidates first, and errors of measurements are the same
function of problem, start and number. Peers that are not installed are named and left out; the
runs of several environments add up in one file (`make field` makes three of them). Measured
tables are read from the folder that TRUVAR_DATA names.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

from benchmarks.field import figure, score
from benchmarks.field.peers import ENTRIES, OURS, is_installed, suits
from benchmarks.field.problems import cases
from benchmarks.field.runs import Key, Run, read, run, start_of, write

STARTS = 20


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.field",
        description="truvar and its peers side by side, at equal cost.",
    )
    parser.add_argument("--half", choices=["tuning", "reported", "all"], default="reported")
    parser.add_argument("--problems", help="these problems of any half, with commas between")
    parser.add_argument("--peers", help="these peers, with commas between; default: all")
    parser.add_argument("--starts", type=int, default=STARTS, help=f"default {STARTS}")
    parser.add_argument("--jobs", type=int, default=1, help="processes; default 1")
    parser.add_argument("--json", type=Path, help="finished runs are kept there, not made again")
    parser.add_argument("--again", help="make the kept runs of these peers again")
    parser.add_argument(
        "--race",
        action="store_true",
        help="peers that are far behind on a problem make no more starts of it",
    )
    parser.add_argument("--known", action="store_true", help="problems with a known kernel")
    parser.add_argument("--kept", action="store_true", help="make no runs, use those of --json")
    parser.add_argument("--figure", type=Path, help="draw the ratios to the best peer there")
    parser.add_argument(
        "--about", choices=["area", "cost"], default="area", help="what the figure shows"
    )
    parser.add_argument("--list", action="store_true", help="print problems and peers, and end")
    given = parser.parse_args(arguments)
    if given.starts < 1 or given.jobs < 1:
        parser.error(f"--starts and --jobs must be at least 1, got {given.starts} and {given.jobs}")
    known = cases()
    if given.list:
        print("\n".join(f"{name}: {case.half}" for name, case in known.items()), end="\n\n")
        print(score.peer_list(ENTRIES))
        return 0
    problems = _chosen(parser, given.problems, list(known)) or [
        name
        for name, case in known.items()
        if given.half in (case.half, "all") and given.known == (case.known is not None)
    ]
    peers = _chosen(parser, given.peers, list(ENTRIES)) or list(ENTRIES)
    again = _chosen(parser, given.again, list(ENTRIES))
    kept = {key: each for key, each in read(given.json).items() if key.peer not in again}
    missing = [name for name in peers if not is_installed(name) and not given.kept]
    for name in missing:
        print(f"{name} is left out: {ENTRIES[name].package} is not installed")
    if given.kept and given.json is None:
        parser.error("--kept needs --json, the file of the runs")
    installed = [name for name in peers if is_installed(name) and not given.kept]
    n_failed = 0
    for number in range(given.starts):
        # Start after start, so that an interrupted comparison is fair.
        todo = list(_pending(problems, installed, number, kept, given.race))
        for key, made in _outcomes(todo, given.jobs):
            if isinstance(made, Exception):
                n_failed += 1
                print(f"{key.problem} {key.peer} start {key.start} failed: {made!r}", flush=True)
                continue
            kept[key] = made
            if given.json is not None:
                write(given.json, made)
            text = f"{key.problem} {key.peer} start {key.start}: area {made.area:.4f}"
            print(text, file=sys.stderr, flush=True)
    counted = [r for r in kept.values() if _counts(r, problems, given.starts)]
    _print_tables(counted)
    if given.figure is not None:
        _draw(parser, counted, given.about, given.figure)
    return int(n_failed > 0)


def _pending(
    problems: Sequence[str], peers: Sequence[str], number: int, kept: dict[Key, Run], race: bool
) -> Iterator[Key]:
    """Yield the runs to make of one start."""
    for problem in problems:
        out = score.eliminated(list(kept.values()), problem) if race else set()
        for peer in peers:
            key = Key(problem, peer, number)
            if key not in kept and peer not in out and suits(peer, start_of(problem, number)):
                yield key


def _counts(run: Run, problems: Sequence[str], starts: int) -> bool:
    """Return whether a kept run is asked for, and of the present version of its problem."""
    key = run.key
    if key.problem not in problems or key.start >= starts or key.peer not in ENTRIES:
        return False
    return run.fingerprint == start_of(key.problem, key.start).instance.fingerprint


def _outcomes(todo: Sequence[Key], jobs: int) -> Iterator[tuple[Key, Run | Exception]]:
    """Yield every run, or the error that ended it: a failing library ends no comparison of hours."""
    if jobs == 1:
        for key in todo:
            try:
                yield key, run(key)
            except Exception as error:
                yield key, error
        return
    os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"))
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        futures = {pool.submit(run, key): key for key in todo}
        for future in as_completed(futures):
            error = future.exception()
            if error is not None and not isinstance(error, Exception):
                raise error
            yield futures[future], future.result() if error is None else error


def _print_tables(runs: Sequence[Run]) -> None:
    """Print the tables in Markdown."""
    if not runs:
        return
    for kind in dict.fromkeys(each.kind for each in runs):
        print(f"{kind}: area is the mean error over the cost\n")
        print(score.detail_table(runs, kind), end="\n\n")
    floor = f"{score.FLOOR:g} is added to both areas; 95 % intervals over starts"
    areas = score.compared(runs, OURS)
    print(f"{OURS} over the best peer of each problem ({floor})\n")
    print(score.comparison_table(areas, OURS), end="\n\n")
    if areas:
        print(f"Area: {score.overall(areas)}\n")
    print("Cost to a target error; a run that never gets there counts as its budget\n")
    print(score.spending_table(runs, OURS), end="\n\n")
    for target, words in enumerate(("F1 0.9 or regret 0.1", "F1 0.95 or regret 0.01")):
        costs = score.spending(runs, OURS, target)
        if costs:
            print(f"Cost to {words}: {score.overall(costs)}\n")
    print("Every method over the best other one of each problem\n")
    print(score.summary_table(runs), end="\n\n")
    print("Stops before the budget was spent; right with F1 of at least 0.9 or regret up to 0.01\n")
    print(score.stop_table(runs))


def _draw(parser: argparse.ArgumentParser, runs: Sequence[Run], about: str, path: Path) -> None:
    """Draw the ratios to the best peer."""
    of_cost = about == "cost"
    comparisons = score.spending(runs, OURS, 0) if of_cost else score.compared(runs, OURS)
    if not comparisons:
        parser.error(f"--figure needs runs of {OURS} and of a peer on one problem; there are none")
    what = "Cost to F1 0.9 or regret 0.1" if of_cost else "Mean error over the cost"
    label = f"{what}, {OURS} over the best peer; dots: level sets, diamonds: optima"
    figure.draw(comparisons, score.overall(comparisons), label, path)


def _chosen(parser: argparse.ArgumentParser, text: str | None, known: list[str]) -> list[str]:
    names = text.split(",") if text else []
    for name in names:
        if name not in known:
            parser.error(f"there is no {name!r}; there are {', '.join(known)}")
    return names


if __name__ == "__main__":
    sys.exit(main())
