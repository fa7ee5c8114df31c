"""Optima and level sets of which nothing is known but the table: the default study against other
libraries.

    python -m benchmarks.scratch --half tuning --json build/scratch.jsonl
    python -m benchmarks.scratch --problems branin,bumps-set --methods truvar,sklearn,random
    --starts 2 python -m benchmarks.scratch --json build/scratch.jsonl --again truvar   # ours
    again, the peers' runs are kept

Every method is told the same three random candidates first, and errors are the same function of
problem, start and number of the measurement. Peers that are not installed are left out: pip install
"truvar[peers]". Measured tables are read from the folder that TRUVAR_DATA names.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path

from benchmarks.decision.fields import data_folder
from benchmarks.scratch import score
from benchmarks.scratch.methods import DESCRIPTIONS, NAMES, OURS, missing, suits
from benchmarks.scratch.problems import Case, cases
from benchmarks.scratch.runs import FIRST, Key, Run, RunFile, instance_of, run

STEPS = 60
STARTS = 20
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.scratch",
        description="The default study against other libraries, nothing known.",
    )
    parser.add_argument(
        "--half", choices=["tuning", "held-out", "all"], default="tuning", help="which problems"
    )
    parser.add_argument("--problems", help="these problems, of any half, with commas between")
    parser.add_argument(
        "--methods", help=f"these methods, with commas between; default: {','.join(NAMES)}"
    )
    parser.add_argument(
        "--starts", type=int, default=STARTS, help=f"runs of every method; default {STARTS}"
    )
    parser.add_argument(
        "--steps", type=int, default=STEPS, help=f"measurements of a run; default {STEPS}"
    )
    parser.add_argument(
        "--jobs", type=int, default=1, help="processes that share the runs; default 1"
    )
    parser.add_argument(
        "--json", type=Path, help="finished runs are kept there, one per line, and not made again"
    )
    parser.add_argument("--again", help="make the kept runs of these methods again")
    parser.add_argument(
        "--list", action="store_true", help="print the problems and the methods and end"
    )
    given = parser.parse_args(arguments)
    if given.steps <= FIRST:
        parser.error(f"--steps must be more than {FIRST}, got {given.steps}")
    if given.starts < 1 or given.jobs < 1:
        parser.error(f"--starts and --jobs must be at least 1, got {given.starts} and {given.jobs}")
    known = {case.name: case for case in cases()}
    if given.list:
        print_list(list(known.values()))
        return 0
    names = _chosen(parser, given.problems, known, "problem")
    chosen = (
        [known[name] for name in names]
        if names
        else [c for c in known.values() if given.half in (c.half, "all")]
    )
    methods = _chosen(parser, given.methods, NAMES, "method") or list(NAMES)
    again = _chosen(parser, given.again, NAMES, "method")
    if data_folder() is None:
        print("the problems on measured tables are left out: TRUVAR_DATA is not set")
    for name in methods:
        package = missing(name)
        if package is not None:
            print(f'{name} is left out: {package} is not installed: pip install "truvar[peers]"')
    # Kept runs of methods that are not asked for, or not installed here, are still part of the
    # tables.
    kept = RunFile(given.json, given.steps, again)
    todo = list(
        pending(chosen, [name for name in methods if missing(name) is None], given.starts, kept)
    )
    began = time.perf_counter()
    failed = make_runs(todo, given.steps, given.jobs, kept)
    print(
        f"{len(todo) - failed} runs made in {time.perf_counter() - began:.0f} s, {failed} failed\n"
    )
    order = {name: k for k, name in enumerate(NAMES)}
    print_tables(
        [
            kept.runs[key]
            for case in chosen
            for key in sorted(kept.runs, key=lambda key: (order[key[1]], key[2]))
            if key[0] == case.name and key[2] < given.starts and kept.has(key)
        ]
    )
    return int(failed > 0)


def pending(
    chosen: Sequence[Case], methods: Sequence[str], starts: int, kept: RunFile
) -> Iterator[Key]:
    """Yield the runs to make. Starts come one after the other, so that an interrupted comparison
    is a fair one."""
    for start in range(starts):
        for case in chosen:
            for method in methods:
                grid = instance_of(case.name, start).domain.shape is not None
                if suits(method, case.kind, grid) and not kept.has((case.name, method, start)):
                    yield case.name, method, start


def make_runs(todo: Sequence[Key], steps: int, jobs: int, kept: RunFile) -> int:
    """Make runs, keep each when it is done, and return how many failed."""
    failed = 0
    for key, found in _outcomes(todo, steps, jobs):
        label = f"{key[0]} {key[1]} start {key[2]}"
        if isinstance(found, Run):
            kept.add(found)
            print(
                f"{label}: area {found.area:.4f}, {found.seconds:.1f} s",
                file=sys.stderr,
                flush=True,
            )
        else:
            failed += 1
            print(f"{label} failed: {found!r}", flush=True)
    return failed


def _outcomes(todo: Sequence[Key], steps: int, jobs: int) -> Iterator[tuple[Key, Run | Exception]]:
    """Yield every run, or the error that ended it: one failure of a library must not end a
    comparison of hours."""
    if jobs == 1:
        for key in todo:
            try:
                yield key, run(*key, steps)
            except Exception as error:
                yield key, error
        return
    with (
        _one_thread_for_workers(),
        ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool,
    ):
        futures = {pool.submit(run, *key, steps): key for key in todo}
        for future in as_completed(futures):
            error = future.exception()
            if error is not None and not isinstance(error, Exception):
                raise error
            yield futures[future], future.result() if error is None else error


@contextmanager
def _one_thread_for_workers() -> Iterator[None]:
    """Set the variables that the libraries read when a worker loads them, and restore them
    afterwards."""
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def print_list(known: Sequence[Case]) -> None:
    """Print the problems and the methods."""
    rows = []
    for case in known:
        instance = instance_of(case.name, 0)
        layout = "table" if instance.domain.shape is None else "grid"
        rows.append((case.name, case.half, case.goal, str(len(instance.domain)), layout))
    print(score.markdown(("problem", "half", "goal", "candidates", "layout"), rows), end="\n\n")
    print(score.markdown(("method", "what"), list(DESCRIPTIONS.items())))


def print_tables(runs: Sequence[Run]) -> None:
    """Print the tables of the runs in Markdown."""
    if not runs:
        return
    optima = [found for found in runs if found.kind == "optimum"]
    level_sets = [found for found in runs if found.kind == "level set"]
    if optima:
        print(
            "Optima: mean regret after a number of measurements, as a share of the range of the "
            "truth\n"
        )
        print(score.optima_table(optima), end="\n\n")
    if level_sets:
        print(
            "Level sets: mean F1 after a number of measurements; disasters end below "
            f"{score.DISASTER}\n"
        )
        print(score.level_set_table(level_sets), end="\n\n")
    comparisons = score.compared(runs, OURS)
    floor = f"{score.FLOOR:g} is added to both areas of a ratio"
    if comparisons:
        print(f"{OURS} over the best other method of each problem ({floor})\n")
        print(score.comparison_table(comparisons, OURS), end="\n\n")
    print(f"Every method over the best other method of each problem ({floor})\n")
    print(score.summary_table(runs, dict.fromkeys(found.method for found in runs)))


def _chosen(
    parser: argparse.ArgumentParser, text: str | None, known: Sequence[str] | dict, what: str
) -> list[str]:
    """Return the names in a text with commas between them."""
    names = text.split(",") if text else []
    for name in names:
        if name not in known:
            parser.error(f"there is no {what} {name!r}; there are {', '.join(known)}")
    return names


if __name__ == "__main__":
    sys.exit(main())
