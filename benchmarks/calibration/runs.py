"""Runs of the default policy, and the checks of every model's statements on the way."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import truvar as tv
from benchmarks.calibration.models import MODELS, TAKE_A_KERNEL, TAKE_OUTCOMES
from benchmarks.calibration.problems import PROBLEMS, Problem
from benchmarks.calibration.score import level_set_check, map_check, optimum_check, within_check
from benchmarks.instances import Instance

CHECKPOINTS = (15, 30, 60, 120)
FIRST = 3  # random measurements before the policy chooses


class Key(NamedTuple):
    """A run: name of the problem, "level set", "within", "optimum" or "map", and the start."""

    problem: str
    goal: str
    start: int


@dataclass(frozen=True)
class Run:
    """The checks of one run.

    Attributes:
        key: The run.
        rows: Rows of the domain that were measured.
        values: Their values.
        finished: Whether the study called itself finished before the last checkpoint.
        checks: Checks by model and number of measurements.
    """

    key: Key
    rows: list[int]
    values: list[float]
    finished: bool
    checks: dict[str, dict[str, Any]]


def models_of(problem: Problem, models: Sequence[str]) -> list[str]:
    """Return the models that take a problem: some take no kernel, others no outcomes."""
    if problem.outcome is not None:
        return [model for model in models if model in TAKE_OUTCOMES]
    return [model for model in models if problem.given is None or model in TAKE_A_KERNEL]


def run(key: Key, models: Sequence[str], release: Path | None, until: int = CHECKPOINTS[-1]) -> Run:
    """Make one run of so many measurements."""
    problem = PROBLEMS[key.problem]
    instance = problem.instance(key.goal, key.start)
    rows: list[int] = []
    values: list[float] = []
    own = models_of(problem, models)
    checks: dict[str, dict[str, Any]] = {model: {} for model in own}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        study = tv.Study(instance.domain, instance.goal, seed=key.start, **problem.model)
        first = list(instance.first(FIRST))
        while len(rows) < until:
            if first:
                row = first.pop(0)
                what: Any = instance.domain.point(row)
            else:
                try:
                    what = study.ask()
                except tv.Finished:
                    break
                row = what.index
            rows.append(row)
            values.append(instance.measure(row, len(rows)))
            study.tell(what, values[-1])
            if len(rows) in CHECKPOINTS:
                for model in own:
                    drawn = MODELS[model](study, instance, rows, values)
                    checks[model][str(len(rows))] = check(instance, drawn, rows, values)
    if release is not None and not problem.model:
        checks["release"] = _of_release(key, rows, values, release)
    return Run(key, rows, values, len(rows) < until, checks)


def check(instance: Instance, drawn: Any, rows: list[int], values: list[float]) -> dict[str, Any]:
    """Return the check of what is stated about a problem."""
    if isinstance(instance.goal, tv.Map):
        return map_check(drawn, instance.truth)
    if instance.goal.has_thresholds:
        if instance.goal.threshold is None:
            return within_check(drawn, instance.truth, instance.goal.margin)
        return level_set_check(drawn, instance.truth, instance.goal.threshold)
    return optimum_check(drawn, instance.truth, instance.goal.sign, rows, values)


def recheck(made: Run, models: Sequence[str], release: Path | None) -> Run:
    """Return the checks of a run's own measurements by the present code, which chooses nothing."""
    problem = PROBLEMS[made.key.problem]
    own = models_of(problem, models)
    checks = _replay(made.key, made.rows, made.values, own)
    if release is not None and not problem.model:
        checks["release"] = _of_release(made.key, made.rows, made.values, release)
    return replace(made, checks=checks)


def _of_release(
    key: Key, rows: list[int], values: list[float], release: Path
) -> dict[str, dict[str, Any]]:
    """Return the checks of another release, told the same measurements in a process of its own."""
    root = Path(__file__).parents[2]
    paths = os.pathsep.join([str(release / "src"), str(root)])
    answer = subprocess.run(
        [sys.executable, "-m", "benchmarks.calibration.runs"],
        input=json.dumps([key, rows, values]),
        env=os.environ | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, dict[str, Any]] = json.loads(answer.stdout)
    return found


def _replay(
    key: Key, rows: list[int], values: list[float], models: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """Return the checks of models, told these measurements."""
    problem = PROBLEMS[key.problem]
    instance = problem.instance(key.goal, key.start)
    checks: dict[str, dict[str, Any]] = {model: {} for model in models}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        study = tv.Study(instance.domain, instance.goal, seed=key.start, **problem.model)
        for t, (row, value) in enumerate(zip(rows, values, strict=True), start=1):
            study.tell(instance.domain.point(row), value)
            if t in CHECKPOINTS:
                for model in models:
                    drawn = MODELS[model](study, instance, rows[:t], values[:t])
                    checks[model][str(t)] = check(instance, drawn, rows[:t], values[:t])
    return checks


def read(path: Path | None) -> dict[Key, Run]:
    """Return the runs that a file keeps, one per line."""
    if path is None or not path.exists():
        return {}
    runs = [json.loads(line) for line in path.read_text().splitlines()]
    made = [Run(**each | {"key": Key(*each["key"])}) for each in runs]
    return {each.key: each for each in made}


def write(path: Path, made: Run) -> None:
    """Append a run to a file."""
    with path.open("a") as file:
        file.write(json.dumps(asdict(made) | {"key": list(made.key)}) + "\n")


if __name__ == "__main__":
    told = json.loads(sys.stdin.read())
    print(json.dumps(_replay(Key(*told[0]), told[1], told[2], ["release"])["release"]))
