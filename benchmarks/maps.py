"""Maps: RMSE over the cost of truvar's `Map` and of its peers, nothing known.

    python -m benchmarks.maps --starts 3
    python -m benchmarks.maps --problems lake-set,glider-set --methods truvar,random

The problems are those of `benchmarks.field` with a threshold, which is left out. All methods are
told the same three random candidates first. The RMSE is that of the posterior mean over all
candidates, in standard deviations of the truth, at twelve equal steps of the cost.

| method | |
|---|---|
| truvar | `Study(domain, Map(...))`, nothing else given |
| botorch-nipv | `SingleTaskGP` with `qNegIntegratedPosteriorVariance`, which heeds no costs |
| random | random candidates, with the model of truvar |
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

import truvar as tv
from benchmarks.field.peers import make
from benchmarks.field.problems import Priced, cases
from benchmarks.field.runs import FIRST, N_CHECKPOINTS, start_of
from benchmarks.instances import Array
from benchmarks.measure import clock, one_thread

PROBLEMS = (
    "lake-set",
    "terrain-set",
    "glider-set",
    "rough-set",
    "lake-set-survey",
    "glider-set-survey",
)
STARTS = 3
ACCURACY = 0.02  # standard deviations of the truth: no study ends before the budget


class Method(Protocol):
    """A method that chooses rows and predicts values."""

    def ask(self, costs: Array) -> int:
        """Return the row to measure next."""
        ...

    def tell(self, row: int, value: float) -> None:
        """Take the value of a row."""
        ...

    def mean(self) -> Array:
        """Return the prediction at all candidates, (n,)."""
        ...


class Ours:
    """A study of truvar with the goal `Map`."""

    def __init__(self, priced: Priced, policy: str | None = None) -> None:
        instance = priced.instance
        self._study = tv.Study(
            instance.domain,
            tv.Map(ACCURACY * float(instance.truth.std())),
            cost=priced.price.for_study(),
            policy=policy,
            seed=instance.seed[1],
        )
        self._suggestion: Any = None

    def ask(self, costs: Array) -> int:
        self._suggestion = self._study.ask()
        return int(self._suggestion.index)

    def tell(self, row: int, value: float) -> None:
        what = self._suggestion or self._study.domain.point(row)
        self._study.tell(what, value)
        self._suggestion = None

    def mean(self) -> Array:
        return self._study.result().mean


class Botorch:
    """The peer of `benchmarks.field`; its threshold plays no part in the integrated variance."""

    def __init__(self, priced: Priced) -> None:
        self._peer: Any = make("botorch-nipv", priced)

    def ask(self, costs: Array) -> int:
        return int(self._peer.ask(costs))

    def tell(self, row: int, value: float) -> None:
        self._peer.tell(row, value)

    def mean(self) -> Array:
        return np.asarray(self._peer.sign * self._peer.posterior[0])


METHODS: dict[str, Callable[[Priced], Method]] = {
    "truvar": Ours,
    "botorch-nipv": Botorch,
    "random": lambda priced: Ours(priced, "random"),
}


def run(problem: str, start: int, name: str) -> tuple[list[float], float]:
    """Return the RMSE at every checkpoint, and the processor seconds per suggestion."""
    priced = start_of(problem, start)
    with one_thread():
        return _run(priced, METHODS[name](priced))


def _run(priced: Priced, method: Method) -> tuple[list[float], float]:
    instance = priced.instance
    ahead = instance.first(FIRST)
    checkpoints = np.linspace(0, priced.budget, N_CHECKPOINTS + 1)[1:]
    found: list[float] = []
    rows: list[int] = []
    spent = seconds = 0.0
    while spent <= priced.budget:
        costs = priced.costs(rows[-1] if rows else None)
        begun = clock()
        row = ahead.pop(0) if ahead else method.ask(costs)
        seconds += clock() - begun
        spent += float(costs[row])
        while len(found) < N_CHECKPOINTS and checkpoints[len(found)] < spent:
            found.append(_rmse(method, instance.truth))
        rows.append(row)
        begun = clock()
        method.tell(row, instance.measure(row, len(rows)))
        seconds += clock() - begun
    return found, seconds / len(rows)


def _rmse(method: Method, truth: Array) -> float:
    return float(np.sqrt(np.mean((method.mean() - truth) ** 2)) / truth.std())


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.maps", description="")
    parser.add_argument("--problems", default=",".join(PROBLEMS), help="with commas between")
    parser.add_argument("--methods", default=",".join(METHODS), help="with commas between")
    parser.add_argument("--starts", type=int, default=STARTS, help=f"default {STARTS}")
    given = parser.parse_args(arguments)
    print("| problem | method | mean RMSE over cost | at a quarter, a half, the end | s each |")
    print("|---|---|---|---|---|")
    for problem in given.problems.split(","):
        if problem not in cases():
            print(f"{problem} is left out: there is no such problem, or TRUVAR_DATA is not set")
            continue
        for name in given.methods.split(","):
            runs = [run(problem, start, name) for start in range(given.starts)]
            curves = np.array([curve for curve, _ in runs])
            area = curves.mean(axis=1)
            spread = area.std(ddof=1) / np.sqrt(len(area)) if len(area) > 1 else 0.0
            parts = ", ".join(f"{curves[:, k].mean():.3f}" for k in (2, 5, N_CHECKPOINTS - 1))
            each = np.mean([seconds for _, seconds in runs])
            text = f"| {problem} | {name} | {area.mean():.3f} ± {spread:.3f} | {parts} |"
            print(f"{text} {each:.2f} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
