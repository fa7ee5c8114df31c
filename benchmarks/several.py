"""Several quantities beside what others offer: constrained LogEI of BoTorch, straddle by quantity.

    python -m benchmarks.several --starts 3
    python -m benchmarks.several --starts 3 --methods botorch --json build/several.jsonl

Optima with constraints on four problems of the literature, on a grid of candidates, and the region
where the objective is in its better half and every constraint holds. All methods measure the same
first points, and all quantities at each. BoTorch is optional: install "truvar[peers]".
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import ndtr

import truvar as tv
from benchmarks.scratch.score import markdown

SIDE = 25  # points along each axis
FIRST = 5  # random measurements before a method chooses
CHECKPOINTS = (15, 25)  # measurements after which answers are compared
NOISE = 0.01  # standard deviation of the errors, as a share of that of the truth
MIN_FEASIBILITY = 0.975  # probability with which a recommended point satisfies the constraints
OPTIMUM_METHODS = ("truvar", "botorch", "random")
REGION_METHODS = ("truvar", "straddle", "random")

Array = np.ndarray


@dataclass(frozen=True)
class Problem:
    """A problem on a grid over the unit square.

    Attributes:
        name: Its name and source.
        objective: To be minimised; a function of the coordinates of the problem.
        constraints: Satisfied where they are at most 0.
        box: Lower and upper ends of both coordinates.
    """

    name: str
    objective: Callable[[Array, Array], Array]
    constraints: tuple[Callable[[Array, Array], Array], ...]
    box: tuple[tuple[float, float], tuple[float, float]]

    def truths(self, domain: tv.Domain) -> dict[str, Array]:
        """Return the values of all quantities on a domain of the unit square."""
        low = np.array([end[0] for end in self.box])
        high = np.array([end[1] for end in self.box])
        x, y = (low + domain.points * (high - low)).T
        names = [f"c{k}" for k in range(len(self.constraints))]
        found = {"f": self.objective(x, y)}
        return found | {name: c(x, y) for name, c in zip(names, self.constraints, strict=True)}


def _branin(x: Array, y: Array) -> Array:
    bend = y - 5.1 * x**2 / (4 * np.pi**2) + 5 * x / np.pi - 6
    return bend**2 + 10 * (1 - 1 / (8 * np.pi)) * np.cos(x) + 10


def _bird(x: Array, y: Array) -> Array:
    left = np.sin(y) * np.exp((1 - np.cos(x)) ** 2)
    return left + np.cos(x) * np.exp((1 - np.sin(y)) ** 2) + (x - y) ** 2


PROBLEMS = (
    Problem(
        "Gardner 2014",
        lambda x, y: np.sin(x) + y,
        (lambda x, y: np.sin(x) * np.sin(y) + 0.95,),
        ((0.0, 6.0), (0.0, 6.0)),
    ),
    Problem(
        "Gramacy 2016",
        lambda x, y: x + y,
        (
            lambda x, y: 1.5 - x - 2 * y - 0.5 * np.sin(2 * np.pi * (x**2 - 2 * y)),
            lambda x, y: x**2 + y**2 - 1.5,
        ),
        ((0.0, 1.0), (0.0, 1.0)),
    ),
    Problem(
        "Branin in a disc",
        _branin,
        (lambda x, y: (x - 2.5) ** 2 + (y - 7.5) ** 2 - 50,),
        ((-5.0, 10.0), (0.0, 15.0)),
    ),
    Problem(
        "Mishra's bird",
        _bird,
        (lambda x, y: (x + 5) ** 2 + (y + 5) ** 2 - 25,),
        ((-10.0, 0.0), (-6.5, 0.0)),
    ),
)


@dataclass(frozen=True)
class Start:
    """One start of a problem: the candidates, the truth, and measurements with errors."""

    domain: tv.Domain
    truths: dict[str, Array]
    seed: int

    def first(self) -> list[int]:
        """Return the rows that every method measures first."""
        rng = np.random.default_rng([self.seed, 1])
        return [int(row) for row in rng.choice(len(self.domain), FIRST, replace=False)]

    def measure(self, row: int, number: int) -> dict[str, float]:
        """Return the values of all quantities at a row."""
        rng = np.random.default_rng([self.seed, 2, number])
        return {
            name: float(truth[row] + NOISE * truth.std() * rng.standard_normal())
            for name, truth in self.truths.items()
        }

    @property
    def feasible(self) -> Array:
        """Mask of the points at which the constraints hold."""
        others = [truth <= 0 for name, truth in self.truths.items() if name != "f"]
        return np.logical_and.reduce(others)

    def regret(self, row: int) -> float:
        """Return the regret of a row as a share of the range; 1 where it is not feasible."""
        f = self.truths["f"]
        if not self.feasible[row]:
            return 1.0
        return float((f[row] - f[self.feasible].min()) / np.ptp(f))

    def measured_regret(self, rows: Sequence[int]) -> float:
        """Return the smallest regret of the rows that were measured."""
        return min(self.regret(row) for row in rows)


# -- optimum with constraints
# --------------------------------------------------------------------------------------------------


def constrained(start: Start, method: str) -> list[dict[str, Any]]:
    """Return the regrets of one run."""
    names = [name for name in start.truths if name != "f"]
    goal = tv.Minimize("f", subject_to=[f"{name} <= 0" for name in names])
    policy = "random" if method == "random" else None
    study = tv.Study(start.domain, goal, seed=start.seed, policy=policy)
    rows: list[int] = []
    values: list[dict[str, float]] = []
    found = []
    for number in range(1, CHECKPOINTS[-1] + 1):
        row = start.first()[number - 1] if number <= FIRST else None
        suggestion = None
        if row is None and method == "botorch":
            row = _botorch(start, rows, values)[0]
        elif row is None:
            try:
                suggestion = study.ask()
                row = int(suggestion.index or 0)
            except tv.Finished:
                row = _best(study)
        rows.append(row)
        values.append(start.measure(row, number))
        if method != "botorch":
            study.tell(suggestion or start.domain.point(row), values[-1])
        if number in CHECKPOINTS:
            best = _botorch(start, rows, values)[1] if method == "botorch" else _best(study)
            found.append(
                {
                    "t": number,
                    "regret": start.regret(best),
                    "measured": start.measured_regret(rows),
                    "feasible": float(start.feasible[best]),
                }
            )
    return found


def _best(study: tv.Study) -> int:
    """Return the row that a study recommends."""
    return int(study.result().best.index or 0)


def _botorch(start: Start, rows: list[int], values: list[dict[str, float]]) -> tuple[int, int]:
    """Return the row that constrained LogEI measures next, and the one to recommend."""
    import torch
    from botorch.acquisition import LogConstrainedExpectedImprovement
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import ModelListGP, SingleTaskGP
    from botorch.models.transforms import Standardize
    from gpytorch.mlls import SumMarginalLogLikelihood

    names = list(start.truths)
    x = torch.tensor(start.domain.points[rows], dtype=torch.double)
    parts = []
    for name in names:
        y = torch.tensor([[each[name]] for each in values], dtype=torch.double)
        parts.append(SingleTaskGP(x, y, outcome_transform=Standardize(1)))
    model = ModelListGP(*parts)
    fit_gpytorch_mll(SumMarginalLogLikelihood(model.likelihood, model))
    points = torch.tensor(start.domain.points, dtype=torch.double)
    with torch.no_grad():
        posterior = model.posterior(points)
        mean = posterior.mean.numpy()
        sd = posterior.variance.sqrt().numpy()
    feasible = np.prod(ndtr(-mean[:, 1:] / sd[:, 1:]), axis=1)
    allowed = feasible >= min(MIN_FEASIBILITY, feasible.max())
    recommended = int(np.argmin(np.where(allowed, mean[:, 0], np.inf)))
    met = [each["f"] for each in values if all(each[name] <= 0 for name in names[1:])]
    best = min(met) if met else max(each["f"] for each in values)
    score = LogConstrainedExpectedImprovement(
        model, best, 0, dict.fromkeys(range(1, len(names)), (None, 0.0)), maximize=False
    )
    with torch.no_grad():
        scores = score(points[:, None, :]).numpy()
    return int(np.argmax(scores)), recommended


# -- the region where all hold
# --------------------------------------------------------------------------------------------------


def region(start: Start, method: str) -> list[dict[str, Any]]:
    """Return the F1 scores of one run."""
    half = float(np.median(start.truths["f"]))
    limits = {name: half if name == "f" else 0.0 for name in start.truths}
    goals = [tv.LevelSet(below=limit, of=name) for name, limit in limits.items()]
    policy = None if method == "truvar" else "random"
    study = tv.Study(start.domain, tv.AllOf(*goals), seed=start.seed, policy=policy)
    single = {
        name: tv.Study(start.domain, tv.LevelSet(below=limit), policy="straddle", seed=start.seed)
        for name, limit in limits.items()
        if method == "straddle"
    }
    found = []
    for number in range(1, CHECKPOINTS[-1] + 1):
        row = start.first()[number - 1] if number <= FIRST else None
        if row is None:
            turn = list(limits)[number % len(limits)]  # a quantity after the other
            asking = single.get(turn, study)
            try:
                suggestion = asking.ask()
            except tv.Finished:
                suggestion = None
            row = 0 if suggestion is None else int(suggestion.index or 0)
            if suggestion is not None:
                asking.withdraw(suggestion, again=True)
        values = start.measure(row, number)
        study.tell(start.domain.point(row), values)
        for name, each in single.items():
            each.tell(start.domain.point(row), values[name])
        if number in CHECKPOINTS:
            found.append({"t": number, "f1": study.result().f1(start.truths)})
    return found


# -- tables
# --------------------------------------------------------------------------------------------------


def table(runs: Sequence[dict[str, Any]], kind: str) -> str:
    """Return a row for each problem and method, in Markdown."""
    own = [each for each in runs if each["kind"] == kind]
    scores = [name for name in own[0] if name in ("regret", "measured", "feasible", "f1")]
    rows = []
    problems = list(dict.fromkeys(each["problem"] for each in own))
    for name, members in [*((problem, [problem]) for problem in problems), ("... all", problems)]:
        for method in dict.fromkeys(each["method"] for each in own):
            cells = []
            for score in scores:
                means = []
                for t in CHECKPOINTS:
                    found = [
                        each[score]
                        for each in own
                        if each["problem"] in members
                        and each["method"] == method
                        and each["t"] == t
                    ]
                    means.append(f"{np.mean(found):.3f}" if found else "-")
                cells.append(" / ".join(means))
            rows.append((name, method, *cells))
    return markdown(("problem", "method", *scores), rows)


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the runs and print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.several")
    parser.add_argument("--starts", type=int, default=3, help="runs of every problem; default 3")
    parser.add_argument("--kinds", default="optimum,region", help="with commas between")
    parser.add_argument("--methods", help="with commas between; default: all")
    parser.add_argument("--json", type=Path, help="finished runs are kept there")
    given = parser.parse_args(arguments)
    axis = np.linspace(0.0, 1.0, SIDE)
    domain = tv.Domain.grid(x=axis, y=axis)
    made: list[dict[str, Any]] = []
    if given.json is not None and given.json.exists():
        made = [json.loads(line) for line in given.json.read_text().splitlines()]
    done = {(each["kind"], each["problem"], each["method"], each["start"]) for each in made}
    kinds = {"optimum": (constrained, OPTIMUM_METHODS), "region": (region, REGION_METHODS)}
    chosen = None if given.methods is None else given.methods.split(",")
    warnings.simplefilter("ignore")
    for number in range(given.starts):
        for kind in given.kinds.split(","):
            function, methods = kinds[kind]
            for problem in PROBLEMS:
                start = Start(domain, problem.truths(domain), number)
                for method in methods:
                    about = (kind, problem.name, method, number)
                    if about in done or (chosen is not None and method not in chosen):
                        continue
                    for each in function(start, method):
                        keys = ("kind", "problem", "method", "start")
                        made.append({**dict(zip(keys, about, strict=True)), **each})
                        if given.json is not None:
                            with given.json.open("a") as file:
                                file.write(json.dumps(made[-1]) + "\n")
                    print(".", end="", file=sys.stderr, flush=True)
    for kind in dict.fromkeys(each["kind"] for each in made):
        print(f"{kind}; after {' / '.join(map(str, CHECKPOINTS))} measurements\n")
        print(table(made, kind), end="\n\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
