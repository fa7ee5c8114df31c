"""Learned durations: error over the cost with costs that are known, learned, or taken as equal.

    python -m benchmarks.durations --starts 5
    python -m benchmarks.durations --problems uneven,uneven-set --starts 8
    python -m benchmarks.durations --problems svm-paper-seconds --rate 2e-6

The problems are those of `benchmarks.field` with a duration for every candidate, and two fields of
bumps on a square along whose first axis durations grow from 1 to 30. All three studies
are told the same three random candidates first, and every measurement costs its true duration.

| study | what it knows of the durations |
|---|---|
| known | all of them, before any measurement |
| learned | those of its measurements, after each (`cost="learned"`) |
| equal | nothing: every measurement counts as 1 |

Coverage is the share of the measurements whose duration lay in the 95 % interval that the suggestion
was made with. With `--rate`, the run with learned durations also stops by itself at the first
measurement of which no unit of cost promises that improvement (`improvement_per_cost`), and what
was spent by then and its error are printed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import truvar as tv
from benchmarks.field.problems import Price, Priced, cases
from benchmarks.field.runs import FIRST, N_CHECKPOINTS, start_of
from benchmarks.instances import Instance, Noise
from benchmarks.measure import one_thread

STUDIES = ("known", "learned", "equal")
STARTS = 5


@dataclass(frozen=True)
class Outcome:
    """A finished run.

    Attributes:
        area: Mean error over the cost.
        final: Error at the end.
        steps: Number of measurements.
        covered: Whether each duration lay in its interval.
        stopped: Share of the budget spent when `improvement_per_cost` said stop; None: it did not.
        stopped_error: Error at that time.
    """

    area: float
    final: float
    steps: int
    covered: tuple[bool, ...]
    stopped: float | None
    stopped_error: float | None


UNEVEN = ("uneven", "uneven-set")
_LONGEST = 30.0  # duration at the far end of the first axis, where that at the near end is 1
_BUDGETS = {"uneven": 100.0, "uneven-set": 150.0}
_SIDE = 20  # points along each axis
_BUMPS = 4
_WIDTH = 0.18  # of a bump
_SHARE_BELOW = 0.7  # of the points of the level set
_NOISE = 0.01  # standard deviation of the errors, as a share of that of the truth


def _uneven(problem: str, start: int) -> Priced:
    """Return a start of a field whose durations grow from 1 to 30 and have nothing to do with it."""
    axis = np.linspace(0.0, 1.0, _SIDE)
    domain = tv.Domain.grid(x=axis, y=axis)
    rng = np.random.default_rng([77, start])
    centres = rng.random((_BUMPS, 2))
    heights = rng.uniform(0.5, 1.5, _BUMPS)
    squares = ((domain.points[:, None] - centres) ** 2).sum(axis=2)
    truth = np.exp(-squares / (2 * _WIDTH**2)) @ heights
    goal: tv.Maximize | tv.LevelSet = tv.Maximize()
    if problem == "uneven-set":
        goal = tv.LevelSet(float(np.quantile(truth, _SHARE_BELOW)))
    noise = Noise(_NOISE * float(truth.std()))
    durations = np.exp(np.log(_LONGEST) * domain.points[:, 0])
    instance = Instance(domain, truth, goal, noise, (77, start))
    return Priced(instance, Price(own=lambda: durations), _BUDGETS[problem])


def run(problem: str, start: int, kind: str, rate: float | None = None) -> Outcome:
    """Make a run, on one thread."""
    priced = _uneven(problem, start) if problem in UNEVEN else start_of(problem, start)
    with one_thread():
        return _run(priced, kind, rate)


def _run(priced: Priced, kind: str, rate: float | None) -> Outcome:
    instance = priced.instance
    durations = priced.costs(None)
    given: dict[str, Any] = {"known": durations, "learned": "learned", "equal": 1.0}
    study = tv.Study(instance.domain, instance.goal, cost=given[kind], seed=instance.seed[1])
    ahead = instance.first(FIRST)
    checkpoints = np.linspace(0, priced.budget, N_CHECKPOINTS + 1)[1:]
    errors: list[float] = []
    covered: list[bool] = []
    spent = 0.0
    stopped: float | None = None
    stopped_error: float | None = None
    while True:
        what: Any
        if ahead:
            row = ahead.pop(0)
            what = instance.domain.point(row)
        else:
            if rate is not None and stopped is None and study.improvement_per_cost() < rate:
                stopped = spent / priced.budget
                stopped_error = _error(priced, study)
            try:
                what = study.ask()
            except tv.Finished:
                break
            row = int(what.index)
            if what.cost_interval is not None:
                low, high = what.cost_interval
                covered.append(bool(low <= durations[row] <= high))
        spent += float(durations[row])
        while len(errors) < N_CHECKPOINTS and checkpoints[len(errors)] < spent:
            errors.append(_error(priced, study))
        if spent > priced.budget:
            break
        cost = None if kind == "equal" else float(durations[row])
        study.tell(what, instance.measure(row, study.steps + 1), cost=cost)
    final = _error(priced, study)
    errors += [final] * (N_CHECKPOINTS - len(errors))
    area = float(np.mean(errors))
    return Outcome(area, final, study.steps, tuple(covered), stopped, stopped_error)


def _error(priced: Priced, study: tv.Study) -> float:
    """Return 1 - F1, or the regret as a share of the range of the truth; 1 before any value."""
    if not study.steps:
        return 1.0
    result = study.result()
    instance = priced.instance
    if result.classification is not None:
        return 1.0 - instance.f1(result.classification)
    assert result.best.index is not None
    return instance.regret(result.best.index)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.durations", description="")
    known = [name for name, case in cases().items() if case.price.own is not None]
    known += UNEVEN
    parser.add_argument("--problems", help="these problems, with commas between; default: all")
    parser.add_argument("--starts", type=int, default=STARTS, help=f"default {STARTS}")
    parser.add_argument("--rate", type=float, help="also stop at this improvement per unit cost")
    given = parser.parse_args(arguments)
    problems = given.problems.split(",") if given.problems else known
    for name in problems:
        if name not in known:
            parser.error(f"there is no {name!r}; there are {', '.join(known)}")
    print("| problem | study | area | final error | measurements | coverage |")
    print("|---|---|---|---|---|---|")
    for problem in problems:
        for kind in STUDIES:
            rate = given.rate if kind == "learned" else None
            runs = [run(problem, start, kind, rate) for start in range(given.starts)]
            print(_row(problem, kind, runs), flush=True)
            if rate is not None:
                print(_stops(runs), flush=True)
    return 0


def _row(problem: str, kind: str, runs: Sequence[Outcome]) -> str:
    areas = [each.area for each in runs]
    spread = float(np.std(areas, ddof=1)) / np.sqrt(len(areas)) if len(areas) > 1 else 0.0
    inside = [hit for each in runs for hit in each.covered]
    coverage = f"{np.mean(inside):.2f}" if inside else "-"
    final = float(np.mean([each.final for each in runs]))
    steps = float(np.mean([each.steps for each in runs]))
    area = f"{np.mean(areas):.4f} ± {spread:.4f}"
    return f"| {problem} | {kind} | {area} | {final:.4f} | {steps:.0f} | {coverage} |"


def _stops(runs: Sequence[Outcome]) -> str:
    ended = [each for each in runs if each.stopped is not None and each.stopped_error is not None]
    if not ended:
        return "never stopped by itself"
    share = np.mean([each.stopped for each in ended])
    error = np.mean([each.stopped_error for each in ended])
    count = f"{len(ended)} of {len(runs)}"
    return f"stopped by itself: {count}, at {share:.0%} of the budget, with error {error:.4f}"


if __name__ == "__main__":
    sys.exit(main())
