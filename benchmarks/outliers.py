"""Rates at which a learned model leaves out right values and finds wrong ones.

    python -m benchmarks.outliers                         # 20 starts of everything
    python -m benchmarks.outliers --only false --starts 2 # a glance at the false alarms

*False alarms*: studies of 60 measurements without a wrong value, with the default policy and at
random candidates. A study counts if a right value is left out at any time; how often that was the
best one is counted too.

*Detection*: random candidates of simulated fields, 15, 30 or 60 of them, with noise of 5 % of the
standard deviation of f, and one value that is wrong by so many standard deviations of f (20 times
as many of the noise), in either direction.

*Studies*: the default policy on fields where the sixth value is wrong by 5 standard deviations of
f.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

import truvar as tv
from benchmarks.decision.fields import Array, draws
from benchmarks.instances import OUTLIER_NUMBER, Instance
from benchmarks.measure import one_thread
from benchmarks.scratch.problems import cases
from truvar.exceptions import OutlierWarning
from truvar.models._learned import FitData, fit_ensemble

STEPS = 60
STARTS = 20
FIRST = 3  # random candidates that a study is told first
SIZES = (15, 30, 60)
ERRORS = (0.25, 0.5, 1.0, 2.0, 5.0, 100.0)  # standard deviations of f
NOISE = 0.05  # the same unit
CLEAN = (
    "branin",
    "camel",
    "ackley2",
    "ackley5",
    "bumps",
    "bumps-set",
    "front",
    "front-set",
    "lake",
    "rough-set",
    "exp-set",
    "terrain-set",
    "svm",
    "lognormal",
)
PARTS = ("false", "detection", "studies")


@dataclass(frozen=True)
class Alarms:
    """The measurements that a study left out at any time.

    Attributes:
        ids: Their ids.
        best: Whether the best value so far was one of them.
        last: The ids of those left out at the end.
    """

    ids: frozenset[int]
    best: bool
    last: tuple[int, ...]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.outliers", description=__doc__.split("\n")[0]
    )
    parser.add_argument(
        "--starts", type=int, default=STARTS, help=f"runs of every kind; default {STARTS}"
    )
    parser.add_argument(
        "--steps", type=int, default=STEPS, help=f"measurements of a study; default {STEPS}"
    )
    parser.add_argument(
        "--only", choices=PARTS, action="append", help="this part only; may be repeated"
    )
    parser.add_argument("--problems", help="problems without a wrong value, with commas between")
    given = parser.parse_args(arguments)
    names = given.problems.split(",") if given.problems else CLEAN
    parts: dict[str, Callable[[], None]] = {
        "false": lambda: print_false_alarms(names, given.starts, given.steps),
        "detection": lambda: print_detection(given.starts),
        "studies": lambda: print_studies(given.starts, given.steps),
    }
    with one_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore", OutlierWarning)
        for name in given.only or PARTS:
            parts[name]()
    return 0


# -- false alarms
# --------------------------------------------------------------------------------------------------


def print_false_alarms(names: Sequence[str], starts: int, steps: int) -> None:
    """Print, for every problem, in how many studies a right value was left out."""
    print(
        f"\nFalse alarms: studies of {starts} that left out a right value (in how many of them the "
        "best one)\n"
    )
    print("| problem | default policy | random candidates |\n|---|---|---|")
    totals = {True: [0, 0], False: [0, 0]}
    for name in names:
        cells = []
        for chosen in (True, False):
            runs = [
                study_alarms(clean_instance(name, start), steps, chosen) for start in range(starts)
            ]
            wrong = sum(bool(run.ids) for run in runs)
            best = sum(run.best for run in runs)
            totals[chosen][0] += wrong
            totals[chosen][1] += best
            cells.append(f"{wrong} ({best})")
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
    of = starts * len(names)
    total = [f"{wrong} ({best}) of {of}" for wrong, best in totals.values()]
    print(f"| all | {' | '.join(total)} |", flush=True)


def clean_instance(name: str, start: int) -> Instance:
    """Return a start of a problem without a wrong value."""
    if name == "lognormal":
        return lognormal_table(start)
    return next(case for case in cases() if case.name == name).instance(start)


def lognormal_table(start: int) -> Instance:
    """Return a table whose values have nothing to do with the coordinates, and a heavy tail."""
    import pandas as pd

    from benchmarks.instances import Noise

    rng = np.random.default_rng([11, start])
    table = pd.DataFrame({"a": rng.lognormal(size=400), "b": rng.random(400)})
    return Instance(
        tv.Domain.table(table), rng.lognormal(size=400), tv.Maximize(), Noise(0.0), (11, start)
    )


def study_alarms(instance: Instance, steps: int, chosen: bool) -> Alarms:
    """Return what a study leaves out.

    Args:
        instance: The problem.
        steps: Number of measurements.
        chosen: Whether the default policy chooses the points; otherwise they are random.
    """
    study = tv.Study(instance.domain, instance.goal, seed=instance.seed[1])
    rows = instance.first(steps)
    values: dict[int, float] = {}
    best: set[int] = set()
    found: set[int | None] = set()
    with warnings.catch_warnings(record=True) as issued:
        warnings.simplefilter("always")
        for number in range(1, steps + 1):
            suggestion = None
            if chosen and number > FIRST:
                if study.finished is not None:
                    break
                suggestion = study.ask()
            row = rows[number - 1] if suggestion is None else int(suggestion.index)
            value = instance.measure(row, number)
            values[study.tell(suggestion or instance.domain.point(row), value)] = value
            leader = max(values, key=lambda id_: instance.goal.sign * values[id_])
            found = {each.message.id for each in issued if isinstance(each.message, OutlierWarning)}
            best |= {leader} & found
    return Alarms(frozenset(found), bool(best), study.result().outliers)


# -- detection
# --------------------------------------------------------------------------------------------------


def print_detection(starts: int) -> None:
    """Print the share of wrong values that are found at random candidates."""
    print(f"\nDetection: wrong values found (right values left out) in {4 * starts} fits\n")
    print("| error in sd of f (of the noise) | " + " | ".join(f"t = {t}" for t in SIZES) + " |")
    print("|---|" + "---|" * len(SIZES))
    for dimension in (1, 2):
        print(f"| {dimension}-d |" + " |" * len(SIZES))
        for error in ERRORS:
            cells = []
            for t in SIZES:
                hits = [is_found(dimension, error, t, start) for start in range(4 * starts)]
                share = np.mean([hit for hit, _ in hits])
                cells.append(f"{100 * share:.0f} % ({sum(others for _, others in hits)})")
            print(f"| {error:g} ({error / NOISE:g}) | {' | '.join(cells)} |", flush=True)


def field(dimension: int, start: int) -> tuple[tv.Domain, Array]:
    """Return a simulated field of unit variance: smooth or rough, with length-scales from 0.15
    to 0.3 extents."""
    kernel = ("rbf", "matern52")[start % 2]
    length = (0.15, 0.2, 0.3)[start % 3]
    if dimension == 2:
        axis = np.linspace(0.0, 1.0, 28)
        return tv.Domain.grid(x=axis, y=axis), draws(
            kernel, (length, length), 28, [3000 + start], square=True
        )[0]
    axis = np.linspace(0.0, 1.0, 401)
    distance = np.abs(axis[:, None] - axis) / length
    covariance = np.exp(-0.5 * distance**2)
    if kernel == "matern52":
        scaled = np.sqrt(5.0) * distance
        covariance = (1.0 + scaled + scaled**2 / 3.0) * np.exp(-scaled)
    factor = np.linalg.cholesky(covariance + 1e-8 * np.eye(len(axis)))
    return tv.Domain.grid(x=axis), factor @ np.random.default_rng([12, start]).standard_normal(
        len(axis)
    )


def is_found(dimension: int, error: float, t: int, start: int) -> tuple[bool, int]:
    """Return whether a wrong value is left out, and how many right ones are."""
    domain, truth = field(dimension, start)
    rng = np.random.default_rng([13, start, t])
    rows = rng.choice(len(domain), t, replace=False)
    values = truth[rows] + NOISE * truth.std() * rng.standard_normal(t)
    wrong = int(rng.integers(t))
    values[wrong] += (1, -1)[start // 2 % 2] * error * truth.std()
    data = FitData(domain.points[rows], values, None, domain.extent, domain.spacing)
    found = fit_ensemble("matern52", data, None, start).outliers
    return wrong in found, len(set(found) - {wrong})


# -- studies with a wrong value
# ----------------------------------------------------------------------------------------


def print_studies(starts: int, steps: int) -> None:
    """Print how the default policy fares when the sixth value is wrong."""
    print(
        f"\nStudies of {steps} measurements whose sixth value is wrong by 5 sd of f ({starts} of "
        "each)\n"
    )
    print(
        "| problem | wrong value left out at the end | studies that left out a right value "
        "|\n|---|---|---|"
    )
    for name in ("outlier", "outlier-set"):
        case = next(case for case in cases() if case.name == name)
        runs = [study_alarms(case.instance(start), steps, chosen=True) for start in range(starts)]
        hits = sum(OUTLIER_NUMBER in run.last for run in runs)
        others = sum(bool(run.ids - {OUTLIER_NUMBER}) for run in runs)
        print(f"| {name} | {hits} | {others} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
