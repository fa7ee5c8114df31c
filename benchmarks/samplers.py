"""Samplers of Optuna on the same problems: `TruVaRSampler` beside `GPSampler`, `TPESampler` and
random search.

    python -m benchmarks --only optuna
    python -m benchmarks.samplers --problems branin,ackley --seeds 3

The regret is that of the best trial; of a run it is taken after all trials, and the median over the
seeds counts. The overhead is the processor time of a trial apart from the objective.

| problem | parameters | trials |
|---|---|---|
| branin | two numbers | 60 |
| hartmann6 | six numbers | 60 |
| mixed | two numbers, one of them log, an integer, three categories | 60 |
| ackley | four numbers; the optimum is not in the middle | 60 |
| conditional | three kinds, of which each has parameters of its own | 60 |
| failing | Branin, every trial of one half of the space fails; counted are the failures | 40 |
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np

from benchmarks.measure import Row, Stopwatch, at_most, one_thread

N_SEEDS = 10
HARTMANN_WIDTHS = np.array(
    [
        [10, 3, 17, 3.5, 1.7, 8],
        [0.05, 10, 17, 0.1, 8, 14],
        [3, 3.5, 1.7, 10, 17, 8],
        [17, 8, 0.05, 10, 0.1, 14],
    ]
)
HARTMANN_CENTRES = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)


# -- problems, to minimise; the lowest value is 0
# ----------------------------------------------------------------------


def branin_of(x: float, y: float) -> float:
    """Return Branin's function on [-5, 10] x [0, 15]."""
    hill = (y - 5.1 / (4 * np.pi**2) * x**2 + 5 / np.pi * x - 6) ** 2
    return float(hill + 10 * (1 - 1 / (8 * np.pi)) * np.cos(x) + 10 - 0.39788735772973816)


def branin(trial: Any) -> float:
    """Return Branin's function."""
    return branin_of(trial.suggest_float("x", -5, 10), trial.suggest_float("y", 0, 15))


def hartmann6(trial: Any) -> float:
    """Return Hartmann's function of six variables."""
    u = np.array([trial.suggest_float(f"x{k}", 0, 1) for k in range(6)])
    peaks = np.exp(-(HARTMANN_WIDTHS * (u - HARTMANN_CENTRES) ** 2).sum(axis=1))
    return float(3.322368011391339 - np.array([1.0, 1.2, 3.0, 3.2]) @ peaks)


def mixed(trial: Any) -> float:
    """Return a function of two numbers, an integer and a category."""
    kind = trial.suggest_categorical("kind", ["a", "b", "c"])
    offset = {"a": 0.7, "b": 0.0, "c": 0.4}[kind]
    rate = np.log10(trial.suggest_float("rate", 1e-6, 1.0, log=True)) + 3.3 - offset
    share = trial.suggest_float("share", 0, 1) - 0.37 + 0.3 * offset
    depth = trial.suggest_int("depth", 1, 12) - 5
    return float(
        offset + rate**2 / 2 + 6 * share**2 + depth**2 / 15 + 0.3 * (1 - np.cos(5 * share))
    )


def ackley(trial: Any) -> float:
    """Return Ackley's function of four variables, with its optimum at 3."""
    z = np.array([trial.suggest_float(f"x{k}", -10, 10) for k in range(4)]) - 3.0
    ridge = -20 * np.exp(-0.2 * np.sqrt((z**2).mean()))
    return float(ridge - np.exp(np.cos(2 * np.pi * z).mean()) + 20 + np.e)


def conditional(trial: Any) -> float:
    """Return the function of the kind that is chosen, each with two parameters of its own and a
    shared one."""
    kind = trial.suggest_categorical("kind", ["line", "bowl", "valley"])
    shared = (trial.suggest_float("shared", 0, 1) - 0.6) ** 2
    if kind == "line":
        return float(
            0.4
            + shared
            + trial.suggest_float("slope", 0, 1)
            + abs(trial.suggest_float("shift", -1, 1))
        )
    if kind == "bowl":
        x = trial.suggest_float("bowl_x", -3, 3)
        y = trial.suggest_float("bowl_y", -3, 3)
        return float(shared + (x - 1.2) ** 2 + (y + 0.7) ** 2)
    rate = np.log10(trial.suggest_float("valley_rate", 1e-5, 1.0, log=True))
    depth = trial.suggest_int("valley_depth", 1, 9)
    return float(0.2 + shared + (rate + 2) ** 2 / 2 + (depth - 4) ** 2 / 6)


def failing(trial: Any) -> float:
    """Return Branin's function, which fails in the left half."""
    x = trial.suggest_float("x", -5, 10)
    y = trial.suggest_float("y", 0, 15)
    if x < 2.5:
        raise ArithmeticError("this half of the space cannot be evaluated")
    return branin_of(x, y)


@dataclass(frozen=True)
class Problem:
    """An objective.

    Attributes:
        name: Its name.
        objective: Function of a trial.
        trials: Number of trials.
        baseline: Name of the method that is to be reached.
        counts_failures: Whether failed trials are counted instead of the regret.
    """

    name: str
    objective: Callable[[Any], float]
    trials: int
    baseline: str
    counts_failures: bool = False


PROBLEMS = (
    Problem("branin", branin, 60, "GP"),
    Problem("hartmann6", hartmann6, 60, "GP"),
    Problem("mixed", mixed, 60, "GP"),
    Problem("ackley", ackley, 60, "GP"),
    Problem("conditional", conditional, 60, "TPE"),
    Problem("failing", failing, 40, "TPE", counts_failures=True),
)


# -- methods
# --------------------------------------------------------------------------------------------------


def _truvar(seed: int) -> Any:
    from truvar.integrations.optuna import TruVaRSampler

    return TruVaRSampler(seed=seed)


def _optunas(name: str) -> Callable[[int], Any]:
    def sampler(seed: int) -> Any:
        import optuna

        return getattr(optuna.samplers, name)(seed=seed)

    return sampler


METHODS: dict[str, tuple[str | None, Callable[[int], Any]]] = {
    "truvar": (None, _truvar),
    "GP": ("torch", _optunas("GPSampler")),
    "TPE": (None, _optunas("TPESampler")),
    "random": (None, _optunas("RandomSampler")),
}


@dataclass(frozen=True)
class Run:
    """Outcome of a run.

    Attributes:
        regret: Lowest value of a trial.
        failures: Number of failed trials.
        overhead: Seconds of processor time per trial.
    """

    regret: float
    failures: int
    overhead: float


def run(problem: Problem, method: str, seed: int, trials: int | None = None) -> Run:
    """Return the outcome of a method on a problem."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.CRITICAL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        study = optuna.create_study(sampler=METHODS[method][1](seed))
        count = trials or problem.trials
        with Stopwatch() as watch:
            study.optimize(problem.objective, n_trials=count, catch=(ArithmeticError,))
        values = [trial.value for trial in study.trials if trial.value is not None]
    return Run(min(values, default=float("inf")), count - len(values), watch.seconds / count)


def rows(quick: bool) -> list[Row]:
    """Return rows for every problem and method."""
    if find_spec("optuna") is None:
        return [Row("optuna", "samplers of Optuna", None, note="Optuna is not installed")]
    seeds = 1 if quick else N_SEEDS
    found: list[Row] = []
    for problem in PROBLEMS[:1] if quick else PROBLEMS:
        found += _rows(problem, seeds, 6 if quick else None)
    return found


def _is_installed(method: str) -> bool:
    library = METHODS[method][0]
    return library is None or find_spec(library) is not None


def _rows(problem: Problem, seeds: int, trials: int | None) -> list[Row]:
    what = "failed trials" if problem.counts_failures else "regret"
    medians: dict[str, float] = {}
    overheads: dict[str, float] = {}
    notes: dict[str, str] = {}
    for method in METHODS:
        if not _is_installed(method):
            notes[method] = f"{METHODS[method][0]} is not installed"
            continue
        runs = [run(problem, method, seed, trials) for seed in range(seeds)]
        values = [each.failures if problem.counts_failures else each.regret for each in runs]
        medians[method] = float(np.median(values))
        overheads[method] = float(np.median([each.overhead for each in runs]))
        spread = f"{min(values):.2g} to {max(values):.2g}"
        notes[method] = f"{spread} over {seeds} seeds, {1e3 * overheads[method]:.0f} ms a trial"
    found = []
    for method in METHODS:
        target = None
        if method == "truvar" and problem.baseline in medians:
            target = at_most(float(f"{medians[problem.baseline]:.3g}"))
        label = f"{problem.name}: {method}, median {what} after {trials or problem.trials}"
        found.append(
            Row(
                f"optuna-{problem.name}-{method}",
                label,
                medians.get(method),
                target=target,
                note=notes[method],
            )
        )
    target = at_most(float(f"{1e3 * overheads['GP']:.3g}")) if "GP" in overheads else None
    name = f"optuna-{problem.name}-overhead"
    found.append(
        Row(
            name,
            f"{problem.name}: overhead",
            1e3 * overheads["truvar"],
            "ms",
            target,
            "a trial, truvar",
        )
    )
    return found


def main() -> None:
    """Run some of the problems and print every run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", default=",".join(problem.name for problem in PROBLEMS))
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--seeds", type=int, default=N_SEEDS)
    options = parser.parse_args()
    with one_thread():
        for problem in PROBLEMS:
            if problem.name not in options.problems.split(","):
                continue
            for method in options.methods.split(","):
                if not _is_installed(method):
                    print(f"{method} is left out: {METHODS[method][0]} is not installed")
                    continue
                runs = [run(problem, method, seed) for seed in range(options.seeds)]
                row = {
                    "problem": problem.name,
                    "method": method,
                    "regret": float(np.median([each.regret for each in runs])),
                    "failures": float(np.median([each.failures for each in runs])),
                    "overhead_ms": round(
                        1e3 * float(np.median([each.overhead for each in runs])), 1
                    ),
                    "regrets": [float(f"{each.regret:.2g}") for each in runs],
                }
                print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
