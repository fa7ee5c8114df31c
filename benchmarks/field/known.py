"""Problems whose kernel, mean and noise are given: those of `benchmarks.decision` with their costs.

One of them is also posed with noise levels and nothing known.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

import truvar as tv
from benchmarks.decision import problems as decision
from benchmarks.decision.fields import TRUTH
from benchmarks.field.cases import UNIT_BUDGET, Case, Half, Known, Price
from benchmarks.instances import Instance, Noise
from truvar.problem import Problem

PREFIX = "known-"
SIDE = 25  # points along an axis
SURVEY_BUDGET = 3000.0
LEVELS_BUDGET = 300.0
OPTIMUM_BUDGET = 40.0

_PROBLEMS: tuple[tuple[str, Half, float], ...] = (
    ("lake-zurich", "tuning", UNIT_BUDGET),
    ("lake-zurich-survey", "tuning", SURVEY_BUDGET),
    ("lake-long-survey", "tuning", SURVEY_BUDGET),
    ("lake-rough-survey", "tuning", SURVEY_BUDGET),
    ("levels", "tuning", LEVELS_BUDGET),
    ("bo", "tuning", OPTIMUM_BUDGET),
    ("lake-zurich-low", "reported", UNIT_BUDGET),
    ("lake-smooth", "reported", UNIT_BUDGET),
    ("lake-zurich-low-survey", "reported", SURVEY_BUDGET),
    ("lake-patchy-survey", "reported", SURVEY_BUDGET),
    ("lake-columns-survey", "reported", SURVEY_BUDGET),
    ("lake-smooth-survey", "reported", SURVEY_BUDGET),
    ("reservoir-survey", "reported", SURVEY_BUDGET),
    ("levels-rare", "reported", LEVELS_BUDGET),
    ("bo-other", "reported", OPTIMUM_BUDGET),
)


def known_cases() -> list[Case]:
    """Return the problems with a known kernel; what needs TRUVAR_DATA is left out without it."""
    found = []
    available = {case.name: case for case in decision.cases()}
    for name, half, budget in _PROBLEMS:
        if name not in available:
            continue
        problems = _problems(available[name])
        price = _price(name)
        levels = _levels() if available[name].levels else None
        make = _instances(PREFIX + name, problems, levels)
        known = _models(problems)
        found.append(Case(PREFIX + name, half, make, price, budget, levels, known))
    return found


def levels_case(name: str, half: Half) -> Case:
    """Return three noise levels to choose from, nothing else known."""
    source = {case.name: case for case in decision.cases()}[name.removesuffix("-set")]
    make = _instances(name, _problems(source), _levels())
    return Case(name, half, make, Price(0.0), LEVELS_BUDGET, _levels())


def _problems(case: decision.Case) -> Callable[[], Sequence[Problem]]:
    """Return a function that makes the fields of a problem when they are first needed."""
    return lru_cache(maxsize=1)(lambda: case.make(SIDE))


def _price(name: str) -> Price:
    if name.startswith("levels"):
        return Price(0.0)
    if name.endswith("-survey"):
        survey: dict[str, Any] = decision.SURVEY
        return Price(survey["base"], survey["travel"], survey["magnitude"])
    return Price()


def _levels() -> tv.NoiseLevels:
    return tv.NoiseLevels(
        [level["variance"] for level in decision.LEVELS],
        [level["cost"] for level in decision.LEVELS],
    )


def _instances(
    name: str, problems: Callable[[], Sequence[Problem]], levels: tv.NoiseLevels | None
) -> Callable[[int], Instance]:
    """Return a function from the number of a start to its instance; fields take turns."""

    def make(start: int) -> Instance:
        problem = problems()[start % len(problems())]
        truth = problem.domain.column(TRUTH)
        if levels is None:
            noise = Noise(float(np.sqrt(problem.spec["noise"]["variance"])))
        else:
            sds = [float(np.sqrt(variance)) for variance in levels.variance]
            noise = Noise(np.repeat(sds, len(truth)))
        goal = problem.spec["goal"]
        sought = tv.LevelSet(goal["level_set"]) if "level_set" in goal else tv.Maximize()
        seed = (zlib.crc32(name.encode()), start)
        return Instance(problem.domain, truth, sought, noise, seed)

    return make


def _models(problems: Callable[[], Sequence[Problem]]) -> Callable[[int], Known]:
    def known(start: int) -> Known:
        problem = problems()[start % len(problems())]
        model = problem.spec["model"]
        return Known(
            kernel=model["kernel"],
            lengthscales=tuple(model["lengthscales"]),
            variance=float(model["variance"]),
            mean=float(model["mean"]),
            noise=float(problem.spec["noise"].get("variance", 0.0)),
            problem=problem,
        )

    return known
