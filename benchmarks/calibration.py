"""Are statements with a probability true as often as they say? Joint classes, intervals of F1 and
regret, "finished".

    python -m benchmarks.calibration --starts 200 --jobs 2 --json build/calibration.jsonl
    python -m benchmarks.calibration --families right --policies auto --starts 20

| family | truth | model |
|---|---|---|
| right | draws from a Gaussian process | the same process, given; in half of the runs without its mean |
| wrong | draws from a Gaussian process | another kernel family, or length-scales wrong by a factor of two |
| learned | functions and tables that are no such draws | nothing given: kernel, mean, noise and transform are learned |

A run has three random first measurements; then the policy chooses. After 15, 25, 40 and 60
measurements (and at the end of a run that ends earlier) the study is asked what it states with 95 %
probability, and that is compared with the truth. The runs of a family are shared out among its
cases. Measured tables are read from the folder that TRUVAR_DATA names.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

import truvar as tv
from benchmarks.scratch.problems import Instance, Noise, cases
from benchmarks.scratch.score import markdown
from truvar.acquisition.confidence import lemma_beta
from truvar.inference import inputs
from truvar.models.kernels import named_kernel

CHECKPOINTS = (15, 25, 40, 60)
FIRST = 3  # random measurements before the policy chooses
SIDE = 20  # points along an axis of the square that processes are drawn on
NOISE_SD = 0.1  # of measurements of drawn functions, whose standard deviation is 1
THRESHOLD = 0.8  # of the level sets of drawn functions
DELTA = 0.05  # with which the paper's bounds are compared with a confidence of 95 %
POLICIES = {"level set": ("auto", "truvar", "straddle"), "optimum": ("auto", "truvar", "ei")}
GOALS = ("level set", "optimum")

# Kernel and length-scale of the truth, then of the model.
RIGHT = {
    "matern52": (("matern52", 0.2), ("matern52", 0.2)),
    "rbf": (("rbf", 0.25), ("rbf", 0.25)),
    "matern32": (("matern32", 0.3), ("matern32", 0.3)),
}
WRONG = {
    "too smooth": (("matern52", 0.2), ("matern52", 0.4)),
    "too rough": (("matern52", 0.2), ("matern52", 0.1)),
    "rbf for matern32": (("matern32", 0.25), ("rbf", 0.25)),
    "matern32 for rbf": (("rbf", 0.25), ("matern32", 0.25)),
}
LEARNED = {
    "level set": (
        "branin-set",
        "camel-set",
        "bumps-set",
        "front-set",
        "terrain-set",
        "glider-set",
        "svm-set",
        "exp-set",
        "lake-set",
        "rough-set",
        "zurich-set",
        "terrain-east-set",
        "tails-set",
        "heteroscedastic-set",
        "outlier-set",
        "reservoir-set",
    ),
    "optimum": (
        "branin",
        "camel",
        "bumps",
        "front",
        "terrain",
        "glider",
        "svm",
        "lake",
        "ackley2",
        "hartmann6",
        "svm-paper",
        "gpu-log",
        "tails",
        "heteroscedastic",
        "outlier",
        "reservoir",
    ),
}
FAMILIES = ("right", "wrong", "learned")


@dataclass(frozen=True)
class Check:
    """Statements of a study at one moment, compared with the truth.

    Attributes:
        t: Number of measurements.
        true: Whether everything that was decided with 95 % probability is right.
        covered: Whether the interval of F1 or regret holds the true one.
        overstated: Whether the answer is worse than the interval says: F1 below, or regret above
            it.
        undecided: Share of the points that are undecided.
        undecided_by_bounds: Share of the points that the paper's bounds leave undecided, with the
            lemma's beta.
        model_ok: Whether the model check passed.
        n_wrong: Number of points that are decided wrongly.
    """

    t: int
    true: bool
    covered: bool
    overstated: bool
    undecided: float
    undecided_by_bounds: float
    model_ok: bool
    n_wrong: int


@dataclass(frozen=True)
class Run:
    """The checks of one run.

    Attributes:
        family: The family of problems.
        case: The problem.
        goal: "level set" or "optimum".
        policy: The policy.
        start: Number of the run.
        checks: Its checks.
        finished: Whether the study called itself finished.
        finished_wrongly: Whether it did with an F1 below 0.9, or a regret above 1 % of the range.
    """

    family: str
    case: str
    goal: str
    policy: str
    start: int
    checks: list[Check]
    finished: bool
    finished_wrongly: bool

    @property
    def key(self) -> tuple[str, str, str, str, int]:
        return self.family, self.case, self.goal, self.policy, self.start


Key = tuple[str, str, str, str, int]


@lru_cache(maxsize=4)
def _square() -> tv.Domain:
    axis = np.linspace(0.0, 1.0, SIDE)
    return tv.Domain.grid(x=axis, y=axis)


@lru_cache(maxsize=16)
def _root(name: str, lengthscale: float) -> np.ndarray:
    points = _square().points
    return np.linalg.cholesky(named_kernel(name, lengthscale)(points) + 1e-8 * np.eye(len(points)))


@lru_cache(maxsize=1)
def _known_cases() -> dict[str, Any]:
    return {case.name: case for case in cases()}


def problem(key: Key) -> tuple[Instance, dict[str, Any]]:
    """Return the problem of a run, and the model that the study is given."""
    family, case, goal, _, start = key
    if family == "learned":
        return _known_cases()[case].instance(start), {}
    (name, lengthscale), (model, model_lengthscale) = {**RIGHT, **WRONG}[case]
    rng = np.random.default_rng([FAMILIES.index(family), len(case), start])
    truth = _root(name, lengthscale) @ rng.standard_normal(SIDE**2)
    wanted = tv.LevelSet(THRESHOLD) if goal == "level set" else tv.Maximize()
    given: dict[str, Any] = {"kernel": named_kernel(model, model_lengthscale), "noise": NOISE_SD**2}
    if start % 2:
        given["mean"] = 0.0
    return Instance(
        _square(), truth, wanted, Noise(NOISE_SD), (FAMILIES.index(family), start)
    ), given


def check(study: tv.Study, instance: Instance) -> Check:
    """Compare what a study states with the truth."""
    result = study.result()
    classes = result.classify()
    truth = instance.truth
    if instance.goal.level_set:
        above = truth >= instance.goal.threshold
        n_wrong = int((classes.above & ~above).sum() + (classes.below & above).sum())
        score = result.expected_f1
        actual = result.f1(truth)
    else:
        signed = instance.goal.sign * truth
        n_wrong = int(
            (~classes.undecided & (signed == signed.max())).all(where=signed == signed.max())
        )
        score = result.expected_regret
        actual = result.regret(truth)
    slack = 1e-9 * float(np.ptp(truth))
    is_low = actual < score.low - slack
    is_high = actual > score.high + slack
    return Check(
        t=study.steps,
        true=n_wrong == 0,
        covered=not (is_low or is_high),
        overstated=bool(is_low if instance.goal.level_set else is_high),
        undecided=float(classes.undecided.mean()),
        undecided_by_bounds=_undecided_by_bounds(study, result),
        model_ok=result.model_check.ok,
        n_wrong=n_wrong,
    )


def _undecided_by_bounds(study: tv.Study, result: tv.Result) -> float:
    """Return the share of points that the bounds with the lemma's beta leave undecided."""
    learner = study._learner
    mean, variance = learner.surrogate.moments
    width = np.sqrt(lemma_beta(len(mean), study.steps, DELTA) * variance)
    goal = learner.model_goal
    if isinstance(goal, tv.LevelSet):
        return float((np.abs(mean - goal.threshold) <= width).mean())
    signed = goal.sign * mean
    return float((signed + width >= (signed - width).max()).mean())


def run(key: Key, checkpoints: Sequence[int]) -> Run:
    """Make one run."""
    instance, given = problem(key)
    family, case, goal, policy, start = key
    study = tv.Study(instance.domain, instance.goal, policy=policy, seed=start, **given)
    checks: list[Check] = []
    for row in instance.first(FIRST):
        study.tell(instance.domain.point(row), instance.measure(row, study.steps + 1))
    while study.steps < checkpoints[-1]:
        try:
            suggestion = study.ask()
        except tv.Finished:
            break
        study.tell(suggestion, instance.measure(suggestion.index, study.steps + 1))
        if study.steps in checkpoints:
            checks.append(check(study, instance))
    if not checks or checks[-1].t != study.steps:
        checks.append(check(study, instance))
    result = study.result()
    wrong = False
    if study.finished is not None:
        signed = instance.goal.sign * instance.truth
        wrong = (
            result.f1(instance.truth) < 0.9
            if instance.goal.level_set
            else signed.max() - signed[result.best.index] > 0.01 * np.ptp(signed)
        )
    return Run(family, case, goal, policy, start, checks, study.finished is not None, bool(wrong))


def keys(
    families: Iterable[str], goals: Iterable[str], policies: Sequence[str] | None, starts: int
) -> list[Key]:
    """Return the runs to make: every family, goal and policy has `starts` runs, shared out among
    its cases."""
    found: list[Key] = []
    for start in range(starts):
        for family in families:
            for goal in goals:
                names = {"right": list(RIGHT), "wrong": list(WRONG)}.get(family)
                if names is None:
                    names = [name for name in LEARNED[goal] if name in _known_cases()]
                case = names[start % len(names)]
                for policy in POLICIES[goal]:
                    if policies is None or policy in policies:
                        found.append(
                            (
                                family,
                                case,
                                goal,
                                policy,
                                start // len(names) if family == "learned" else start,
                            )
                        )
    return found


def table(runs: Sequence[Run]) -> str:
    """Return a row for each family, goal and policy, in Markdown."""
    rows = []
    groups = dict.fromkeys((each.family, each.goal, each.policy) for each in runs)
    for group in groups:
        own = [each for each in runs if (each.family, each.goal, each.policy) == group]
        rows.append((*group, *_figures(own)))
    for family, goal in dict.fromkeys((each.family, each.goal) for each in runs):
        own = [each for each in runs if (each.family, each.goal) == (family, goal)]
        rows.append((family, goal, "all", *_figures(own)))
    heads = (
        "family",
        "goal",
        "policy",
        "runs",
        "checks",
        "true",
        "true or model check failed",
        "interval covers",
        "covers or check failed",
        "not overstated or check failed",
        "undecided, last check",
        "undecided by the lemma's bounds",
        "finished",
        "finished wrongly",
    )
    return markdown(heads, rows)


def case_table(runs: Sequence[Run]) -> str:
    """Return a row for each case of the families, in Markdown."""
    rows = []
    for family, case, goal in dict.fromkeys((each.family, each.case, each.goal) for each in runs):
        own = [each for each in runs if (each.family, each.case, each.goal) == (family, case, goal)]
        checks = [each for one in own for each in one.checks]
        worst = max(each.n_wrong for each in checks)
        figures = _figures(own)
        rows.append((family, goal, case, *figures[:7], str(worst)))
    heads = (
        "family",
        "goal",
        "case",
        "runs",
        "checks",
        "true",
        "true or model check failed",
        "interval covers",
    )
    last = ("covers or check failed", "not overstated or check failed", "most points wrong")
    return markdown((*heads, *last), rows)


def _figures(runs: Sequence[Run]) -> tuple[str, ...]:
    checks = [each for one in runs for each in one.checks]
    last = [one.checks[-1] for one in runs]

    def share(values: Iterable[bool]) -> str:
        found = list(values)
        return f"{100 * sum(found) / len(found):.1f} %"

    return (
        str(len(runs)),
        str(len(checks)),
        share(each.true for each in checks),
        share(each.true or not each.model_ok for each in checks),
        share(each.covered for each in checks),
        share(each.covered or not each.model_ok for each in checks),
        share(not each.overstated or not each.model_ok for each in checks),
        f"{100 * np.mean([each.undecided for each in last]):.0f} %",
        f"{100 * np.mean([each.undecided_by_bounds for each in last]):.0f} %",
        str(sum(one.finished for one in runs)),
        str(sum(one.finished_wrongly for one in runs)),
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.calibration",
        description="Are statements with a probability true that often?",
    )
    parser.add_argument(
        "--families", default=",".join(FAMILIES), help="families, with commas between"
    )
    parser.add_argument(
        "--goals", default=",".join(GOALS), help='"level set", "optimum" or both, with a comma'
    )
    parser.add_argument(
        "--policies", help="policies, with commas between; default: auto, truvar and straddle or ei"
    )
    parser.add_argument(
        "--starts", type=int, default=200, help="runs of every family, goal and policy; default 200"
    )
    parser.add_argument(
        "--steps", type=int, default=CHECKPOINTS[-1], help="measurements of a run; default 60"
    )
    parser.add_argument(
        "--wider",
        type=float,
        default=inputs.CAUTIOUS_SD_FACTOR,
        help="how much larger the cautious draws' deviations are",
    )
    parser.add_argument(
        "--jobs", type=int, default=1, help="processes that share the runs; default 1"
    )
    parser.add_argument(
        "--json", type=Path, help="finished runs are kept there, one per line, and not made again"
    )
    given = parser.parse_args(arguments)
    if given.json is not None and given.wider != inputs.CAUTIOUS_SD_FACTOR:
        parser.error("runs with another --wider are not kept: leave out --json")
    policies = given.policies.split(",") if given.policies else None
    todo = keys(given.families.split(","), given.goals.split(","), policies, given.starts)
    checkpoints = [t for t in CHECKPOINTS if t <= given.steps] or [given.steps]
    kept = _read(given.json)
    made = {key: kept[key] for key in todo if key in kept}
    inputs.CAUTIOUS_SD_FACTOR = given.wider
    for each in _make([key for key in todo if key not in made], checkpoints, given.jobs):
        made[each.key] = each
        if given.json is not None:
            with given.json.open("a") as file:
                file.write(json.dumps(asdict(each)) + "\n")
    runs = [made[key] for key in todo if key in made]
    print(table(runs), end="\n\n")
    print(case_table(runs))
    return 0


def _make(todo: Sequence[Key], checkpoints: Sequence[int], jobs: int) -> Iterable[Run]:
    if jobs == 1:
        for key in todo:
            yield run(key, checkpoints)
            print(".", end="", file=sys.stderr, flush=True)
        return
    os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"))
    workers = ProcessPoolExecutor(
        jobs,
        mp_context=get_context("spawn"),
        initializer=_set_wider,
        initargs=(inputs.CAUTIOUS_SD_FACTOR,),
    )
    with workers as pool:
        for future in as_completed([pool.submit(run, key, checkpoints) for key in todo]):
            yield future.result()
            print(".", end="", file=sys.stderr, flush=True)


def _set_wider(factor: float) -> None:
    inputs.CAUTIOUS_SD_FACTOR = factor


def _read(path: Path | None) -> dict[Key, Run]:
    if path is None or not path.exists():
        return {}
    found = {}
    for line in path.read_text().splitlines():
        form = json.loads(line)
        form["checks"] = [Check(**each) for each in form["checks"]]
        one = Run(**form)
        found[one.key] = one
    return found


if __name__ == "__main__":
    sys.exit(main())
