"""Are statements with a probability true that often, and how much do they say?

    python -m benchmarks.calibration --starts 2 --jobs 2 --json build/calibration.jsonl
    python -m benchmarks.calibration --half tuning --goals "level set" --families "own draws"
    python -m benchmarks.calibration --models truvar,plain,scikit-learn,BoTorch --release ../0.2.0
    python -m benchmarks.calibration --goals map --models truvar,plain --until 60
    python -m benchmarks.calibration --goals within --models truvar --until 60
    python -m benchmarks.calibration --recheck build/calibration.jsonl --models truvar

Every problem is measured by the default policy. After 15, 30, 60 and 120 measurements each model
is asked what it states about the same measurements, and that is compared with the truth. With
`--recheck` the measurements are those of a file of runs, and only the statements are new. Constants
of the models were chosen on the half "tuning"; tables report the other half. Rows named "..." are
means over families, each problem counting once.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.calibration.problems import HALVES, OWN_DRAWS, PROBLEMS, RIGHT, WRONG
from benchmarks.calibration.runs import CHECKPOINTS, Key, Run, read, recheck, run, write
from benchmarks.calibration.score import LEVELS, TOLERANCES
from benchmarks.scratch.score import markdown

GOALS = ("level set", "optimum")
Checks = list[tuple[int, dict[str, Any]]]
"""Checks with the number of measurements that they were made after."""


def keys(half: str, goals: Iterable[str], families: Sequence[str] | None, starts: int) -> list[Key]:
    """Return the runs to make."""
    return [
        Key(name, goal, start)
        for start in range(starts)
        for goal in goals
        for name, problem in PROBLEMS.items()
        if problem.half == half and (families is None or problem.family in families)
        if goal != "within" or problem.outcome is None  # an outcome has a given threshold
    ]


def table(runs: Sequence[Run], goal: str) -> str:
    """Return a row for each family and model, in Markdown."""
    own = [each for each in runs if each.key.goal == goal]
    models = list(dict.fromkeys(model for each in own for model in each.checks))
    families = list(dict.fromkeys(PROBLEMS[each.key.problem].family for each in own))
    learned = [family for family in families if family not in (RIGHT, WRONG)]
    groups = [(family, (family,)) for family in families]
    unseen = tuple(family for family in learned if family != OWN_DRAWS)
    groups.append(("... functions, fields, tables", unseen))
    figures = FIGURES[goal]
    rows = []
    for name, members in groups:
        for model in models:
            found = _checks(own, model, members)
            if found:
                rows.append((name, model, str(len(found)), *figures(found).values()))
    heads = ("family", "model", "checks", *figures(_checks(own, models[0], families)))
    return markdown(heads, rows)


def level_table(runs: Sequence[Run]) -> str:
    """Return how often statements of every level are true, in Markdown."""
    rows = []
    for goal in dict.fromkeys(each.key.goal for each in runs):
        own = [each for each in runs if each.key.goal == goal]
        families = list(dict.fromkeys(PROBLEMS[r.key.problem].family for r in own))
        learned = tuple(f for f in families if f not in (RIGHT, WRONG, OWN_DRAWS))
        for name, members in (("functions, fields, tables", learned), (OWN_DRAWS, (OWN_DRAWS,))):
            for model in dict.fromkeys(model for each in own for model in each.checks):
                found = _checks(own, model, members)
                for tolerance in TOLERANCES if goal in ("level set", "within") else (0.0,):
                    if found:
                        shares = [_true(found, f"{tolerance:g} {level:g}") for level in LEVELS]
                        rows.append((goal, name, model, f"{tolerance:g}", *shares))
    return markdown(("goal", "family", "model", "tolerance", *map(str, LEVELS)), rows)


def case_table(runs: Sequence[Run]) -> str:
    """Return a row for each problem: how often the statements of truvar are true, in Markdown."""
    rows = []
    for goal, name in dict.fromkeys((each.key.goal, each.key.problem) for each in runs):
        own = [each for each in runs if (each.key.goal, each.key.problem) == (goal, name)]
        found = _checks(own, "truvar", (PROBLEMS[name].family,))
        if found:
            covered = _share(check["interval"][0] for _, check in found)
            undecided = _by_time(found, lambda check: check["0 0.95"][1])
            rows.append((goal, name, str(len(found)), _true(found, "0 0.95"), undecided, covered))
    heads = ("goal", "problem", "checks", "strict: true", "undecided", "interval covers")
    return markdown(heads, rows)


def _level_set_figures(checks: Checks) -> dict[str, str]:
    return {
        "strict: true": _true(checks, "0 0.95"),
        "undecided": _by_time(checks, lambda check: check["0 0.95"][1]),
        "tolerance 1 %: true": _true(checks, "0.01 0.95"),
        "undecided ": _by_time(checks, lambda check: check["0.01 0.95"][1]),
        "tolerance 2 %: true": _true(checks, "0.02 0.95"),
        "number wrong: true": _share(check["pointwise"][0] for _, check in checks),
        "open": _by_time(checks, lambda check: check["pointwise"][1]),
        "F1 covered": _share(check["interval"][0] for _, check in checks),
        "width": _by_time(checks, lambda check: check["interval"][1]),
        "interval score": f"{np.mean([check['interval'][2] for _, check in checks]):.3f}",
        "Brier score": f"{np.mean([check['brier'] for _, check in checks]):.4f}",
        "F1": _by_time(checks, lambda check: check["answer"]),
    }


def _optimum_figures(checks: Checks) -> dict[str, str]:
    return {
        "true": _true(checks, "0 0.95"),
        "undecided": _by_time(checks, lambda check: check["0 0.95"][1]),
        "regret covered": _share(check["interval"][0] for _, check in checks),
        "width": _by_time(checks, lambda check: check["interval"][1]),
        "interval score": f"{np.mean([check['interval'][2] for _, check in checks]):.3f}",
        "regret": _by_time(checks, lambda check: check["answer"], digits=4),
        "best measured": _by_time(checks, lambda check: check["measured"], digits=4),
    }


def _map_figures(checks: Checks) -> dict[str, str]:
    return {
        "99 % of the points: true": _true(checks, "0 0.95"),
        "stated / actual": _by_time(checks, lambda check: check["0 0.95"][1], average=np.median),
        "all points: true": _true(checks, "all 0.95"),
        "stated / actual ": _by_time(checks, lambda check: check["all 0.95"][1], average=np.median),
        "RMSE covered": _share(check["interval"][0] for _, check in checks),
        "width": _by_time(checks, lambda check: check["interval"][1]),
        "interval score": f"{np.mean([check['interval'][2] for _, check in checks]):.3f}",
        "RMSE": _by_time(checks, lambda check: check["answer"]),
    }


FIGURES = {
    "level set": _level_set_figures,
    "within": _level_set_figures,
    "optimum": _optimum_figures,
    "map": _map_figures,
}


def _checks(runs: Sequence[Run], model: str, families: Sequence[str]) -> Checks:
    return [
        (int(t), check)
        for each in runs
        if PROBLEMS[each.key.problem].family in families
        for t, check in each.checks.get(model, {}).items()
    ]


def _share(values: Iterable[bool]) -> str:
    return f"{np.mean(list(values)):.3f}"


def _true(checks: Checks, key: str) -> str:
    return _share(check[key][0] for _, check in checks)


def _by_time(
    checks: Checks,
    of: Callable[[dict[str, Any]], float],
    digits: int = 2,
    average: Callable[[list[float]], Any] = np.mean,
) -> str:
    found = []
    for t in CHECKPOINTS:
        own = [of(check) for at, check in checks if at == t]
        found.append(f"{average(own):.{digits}f}" if own else "-")
    return " / ".join(found)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.calibration",
        description="Are statements with a probability true that often, and how much do they say?",
    )
    parser.add_argument("--half", default="reported", choices=HALVES, help="default: reported")
    parser.add_argument("--goals", default=",".join(GOALS), help="level set, within, optimum, map")
    parser.add_argument(
        "--until", type=int, default=CHECKPOINTS[-1], help="measurements of a run; default 120"
    )
    parser.add_argument("--families", help="families, with semicolons between; default: all")
    parser.add_argument(
        "--models",
        default="truvar,plain,scikit-learn",
        help="models, with commas between: truvar, plain, scikit-learn, BoTorch",
    )
    parser.add_argument("--release", type=Path, help="a checkout of release 0.2.0 to compare with")
    parser.add_argument("--starts", type=int, default=2, help="runs of every problem; default 2")
    parser.add_argument("--jobs", type=int, default=1, help="processes; default 1")
    parser.add_argument(
        "--json", type=Path, help="finished runs are kept there, and not made again"
    )
    parser.add_argument(
        "--recheck", type=Path, help="a file of runs whose measurements are checked, none chosen"
    )
    given = parser.parse_args(arguments)
    families = given.families.split(";") if given.families else None
    todo = keys(given.half, given.goals.split(","), families, given.starts)
    made = {key: each for key, each in read(given.json).items() if key in set(todo)}
    models = given.models.split(",")
    missing: list[Key] | list[Run] = [key for key in todo if key not in made]
    if given.recheck is not None:
        stored = read(given.recheck)
        missing = [stored[key] for key in missing if key in stored]
    for each in _make(missing, models, given.release, given.jobs, given.until):
        made[each.key] = each
        if given.json is not None:
            write(given.json, each)
    runs = [made[key] for key in todo if key in made]
    for goal in dict.fromkeys(each.key.goal for each in runs):
        print(f"{goal}; checks after {', '.join(map(str, CHECKPOINTS))} measurements\n")
        print(table(runs, goal), end="\n\n")
    print(level_table(runs), end="\n\n")
    print(case_table(runs))
    return 0


def _make(
    todo: Sequence[Key] | Sequence[Run],
    models: Sequence[str],
    release: Path | None,
    jobs: int,
    until: int,
) -> Iterable[Run]:
    """Make runs of keys, and check the measurements of runs again."""
    if jobs == 1:
        for each in todo:
            yield _run_or_recheck(each, models, release, until)
            print(".", end="", file=sys.stderr, flush=True)
        return
    os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"))
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        waiting = [pool.submit(_run_or_recheck, each, models, release, until) for each in todo]
        for future in as_completed(waiting):
            yield future.result()
            print(".", end="", file=sys.stderr, flush=True)


def _run_or_recheck(
    each: Key | Run, models: Sequence[str], release: Path | None, until: int
) -> Run:
    if isinstance(each, Run):
        return recheck(each, models, release)
    return run(each, models, release, until)


if __name__ == "__main__":
    sys.exit(main())
