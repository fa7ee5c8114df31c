"""Coverage of the bounds, and cost of epochs against Theorem 3.1, for functions drawn from the
study's own prior.

    python -m benchmarks.coverage                 # 50 functions on 20 x 20 points, every setting:
    about ten minutes python -m benchmarks.coverage --functions 5   # a glance

For each kernel, noise and goal and each beta: a run goes on until the epoch with eta = 1/8 is over.
It is *accurate* if Definition 3.1 holds with epsilon = 4 (1 + slack) eta at the end of every epoch,
*true* if the certificate's statement was true after every measurement, *covered* if no bound at any
point and time was wrong, and *within* if no epoch cost more than C_(i) of eq. (13), with C* bounded
from the posterior and M at the epoch's start.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from itertools import product
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import RBF, Kernel, Matern
from threadpoolctl import threadpool_limits

import truvar as tv
from truvar.acquisition.confidence import EpochStart, Schedule, lemma_beta
from truvar.theory import TheorySetting, epoch_cost, theorem

DELTA = 0.1
SLACK = 0.1
R = 0.5
EPOCHS = 4  # eta = 1, 1/2, 1/4, 1/8
THRESHOLD = 0.5
KERNELS: dict[str, Kernel] = {"SE": RBF(0.2), "Matern-5/2": Matern(0.2, nu=2.5)}
NOISES = ("equal", "unequal, with costs")
GOALS: dict[str, tv.Maximize | tv.LevelSet] = {
    "maximum": tv.Maximize(),
    "level set": tv.LevelSet(THRESHOLD),
}
BETAS = ("theorem", "lemma at t_(i)", "a = 0.5 / 1")


@dataclass(frozen=True)
class Case:
    """One setting of the study."""

    kernel: str
    noise: str
    goal: str
    beta: str
    side: int = 20


@dataclass(frozen=True)
class Outcome:
    """One run."""

    accurate: bool
    true: bool
    covered: bool
    within: bool
    # the certificate's epsilon, which is about one point, was taken to be about all of M, and that
    # was true
    loose: bool
    cost: float
    steps: int
    epochs: int
    fullest: float  # the largest share of C_(i) that an epoch cost


def cases(side: int = 20, betas: tuple[str, ...] = BETAS) -> list[Case]:
    """Every setting."""
    return [
        Case(kernel, noise, goal, beta, side)
        for kernel, noise, goal, beta in product(KERNELS, NOISES, GOALS, betas)
    ]


# -- one run
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LemmaAtStart:
    """The lemma's beta at the first choice of an epoch: short of what it asks for later in it."""

    delta: float

    def __call__(self, start: EpochStart) -> float:
        return lemma_beta(start.n_points, start.t, self.delta)


@dataclass
class Recorded:
    """A schedule that notes when epochs start and what eq. (13) allows them to cost."""

    schedule: Schedule
    starts: list[tuple[float, float]] = field(default_factory=list)  # spent, C_(i)

    def __call__(self, start: EpochStart) -> float:
        beta = self.schedule(start)
        cover = start.cover_cost(start.eta / sqrt(beta))
        allowed = epoch_cost(cover, start.n_targets, beta, start.eta, start.slack, start.max_cost)
        self.starts.append((start.spent, allowed))
        return beta


def problem(case: Case) -> dict[str, Any]:
    """Domain, kernel, noise and cost of a case."""
    axis = np.linspace(0, 1, case.side)
    domain = tv.Domain.grid(x=axis, y=axis)
    x = domain.points[:, 0]
    known = {"domain": domain, "kernel": KERNELS[case.kernel], "mean": 0.0}
    if case.noise == "equal":
        return {**known, "noise": 1e-3, "cost": 1.0}
    # Noise from 0.0001 on the left to 0.003 on the right; precise measurements cost more.
    return {**known, "noise": 10 ** (-4 + 1.5 * x), "cost": 5 - 4 * x}


@lru_cache(maxsize=8)
def _root(kernel: str, side: int) -> np.ndarray:
    domain = problem(Case(kernel, "equal", "maximum", "theorem", side))["domain"]
    return np.linalg.cholesky(KERNELS[kernel](domain.points) + 1e-10 * np.eye(side**2))


def schedule(case: Case) -> Schedule:
    """beta of a case."""
    if case.beta == "theorem":
        return tv.TheoremBeta(DELTA)
    return LemmaAtStart(DELTA) if case.beta == "lemma at t_(i)" else tv.LogBeta()


def run(case: Case, number: int) -> Outcome:
    """One function drawn from the prior, studied until the last epoch is over, on one thread."""
    with threadpool_limits(1):
        return _run(case, number)


def _run(case: Case, number: int, most: int = 2000) -> Outcome:
    rng = np.random.default_rng(
        [number, *case.kernel.encode()]
    )  # the same functions for every beta
    given = problem(case)
    f = _root(case.kernel, case.side) @ rng.standard_normal(case.side**2)
    beta = Recorded(schedule(case))
    goal = GOALS[case.goal]
    policy = tv.TruVaR(beta=beta, slack=SLACK, r=R)
    study = tv.Study(given.pop("domain"), goal, policy=policy, exact_model=True, **given)
    accurate = True
    true = True
    covered = True
    loose = True
    index = study.epoch.index
    ended: list[float] = []  # what was spent when each epoch ended
    while study.steps < most and study.epoch.index <= EPOCHS:
        try:
            suggestion = study.ask()
        except tv.Finished:
            break
        assert suggestion.index is not None
        study.tell(
            suggestion, float(f[suggestion.index] + sqrt(suggestion.noise) * rng.standard_normal())
        )
        result = study.result()
        certificate = result.certificate
        covered &= bool(((result.lower <= f) & (f <= result.upper)).all())
        true &= is_accurate(result, f, certificate.accurate_to) and _safest_is_within(result, f)
        loose &= is_accurate(result, f, certificate.epsilon)
        while index < study.epoch.index:
            accurate &= is_accurate(result, f, 4 * (1 + SLACK) * R ** (index - 1))
            ended.append(study.spent)
            index += 1
    ended.append(study.spent)  # an epoch that is not over must be within its cost, too
    shares = [
        (end - spent) / allowed
        for end, (spent, allowed) in zip(ended, beta.starts, strict=False)
        if allowed > 0
    ]
    return Outcome(
        accurate,
        true,
        covered,
        max(shares) <= 1,
        loose,
        study.spent,
        study.steps,
        index - 1,
        max(shares),
    )


def is_accurate(result: tv.Result, f: np.ndarray, epsilon: float) -> bool:
    """Definition 3.1."""
    if result.goal.has_thresholds:
        m = result.potential
        right = bool((f[result.above] > THRESHOLD).all() and (f[result.below] < THRESHOLD).all())
        return right and bool((np.abs(f[m] - THRESHOLD) <= epsilon / 2 + 1e-9).all())
    return bool(
        result.potential[np.argmax(f)] and (f.max() - f[result.potential] <= epsilon + 1e-9).all()
    )


def _safest_is_within(result: tv.Result, f: np.ndarray) -> bool:
    """Check the claim of the certificate's epsilon about an optimum."""
    if result.goal.has_thresholds:
        return True
    safest = np.argmax(np.where(result.potential, result.lower, -np.inf))
    return bool(f.max() - f[safest] <= result.epsilon + 1e-9)


# -- all runs
# --------------------------------------------------------------------------------------------------


def bound(case: Case) -> float:
    """C_epsilon of Theorem 3.1 for the accuracy of the last epoch, nothing known of f."""
    given = problem(case)
    study = tv.Study(
        given.pop("domain"), GOALS[case.goal], policy=tv.TruVaR(slack=SLACK, r=R), **given
    )
    setting: TheorySetting = study.theory_setting()
    return theorem(setting, 4 * (1 + SLACK) * R ** (EPOCHS - 1), DELTA).cost


def study_of(case: Case, functions: int, pool: ProcessPoolExecutor | None = None) -> list[Outcome]:
    """The runs of a case."""
    over = pool.map if pool else map
    return list(over(run, [case] * functions, range(functions)))


def rows(chosen: list[Case], functions: int, jobs: int) -> Iterator[dict[str, Any]]:
    """Yield the results, case by case."""
    bounds = {(case.kernel, case.noise): 0.0 for case in chosen}
    for kernel, noise in bounds:
        bounds[kernel, noise] = bound(Case(kernel, noise, "maximum", "theorem", chosen[0].side))
    with ProcessPoolExecutor(jobs) as pool:
        for case in chosen:
            outcomes = study_of(case, functions, pool if jobs > 1 else None)
            cost = float(np.mean([outcome.cost for outcome in outcomes]))
            yield {
                **asdict(case),
                "functions": functions,
                **{
                    kind: sum(getattr(outcome, kind) for outcome in outcomes)
                    for kind in ("accurate", "true", "covered", "within", "loose")
                },
                "cost": cost,
                "bound_over_cost": bounds[case.kernel, case.noise] / cost,
                "fullest": max(outcome.fullest for outcome in outcomes),
                "epochs": float(np.mean([outcome.epochs for outcome in outcomes])),
            }


COLUMNS = (
    *(
        "kernel",
        "noise",
        "goal",
        "beta",
        "accurate at every epoch end",
        "statement true after every measurement",
    ),
    *(
        "every bound right at all times",
        "no epoch above C_(i)",
        "most expensive epoch over C_(i)",
        "mean cost",
    ),
    "C_epsilon over it",
)


def line(row: dict[str, Any]) -> str:
    """A row of the table."""
    n = row["functions"]
    counts = " | ".join(f"{row[kind]}/{n}" for kind in ("accurate", "true", "covered", "within"))
    return (
        f"| {row['kernel']} | {row['noise']} | {row['goal']} | {row['beta']} | {counts} | "
        f"{row['fullest']:.2f} | "
        f"{row['cost']:.0f} | {row['bound_over_cost']:.0f} |"
    )


def main(arguments: list[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.coverage", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--functions", type=int, default=50)
    parser.add_argument("--side", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--json", type=Path, help="write the rows there, too")
    given = parser.parse_args(arguments)
    print(f"| {' | '.join(COLUMNS)} |\n{'|---' * len(COLUMNS)}|")
    found = []
    for row in rows(cases(given.side), given.functions, given.jobs):
        print(line(row), flush=True)
        found.append(row)
    if given.json:
        given.json.write_text(json.dumps(found, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
