"""Whatever is asked and whatever is known, nothing that is stated contradicts something else.

Small random problems of every kind of goal, with every kind of noise; `tests/helpers/contradictions.py` has the checks.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import Matern
from tests.helpers.contradictions import contradictions

import truvar as tv
from truvar._typing import Array

NOISE_SHARE = 0.1  # noise sd in standard deviations of f
QUICK_EVERY = 6  # of the problems, one of so many is not slow

GOALS: dict[str, Callable[[Array], Any]] = {
    "above": lambda f: tv.LevelSet(float(np.quantile(f, 0.7))),
    "below": lambda f: tv.LevelSet(below=float(np.quantile(f, 0.4))),
    "share of the maximum": lambda f: tv.LevelSet(fraction_of_max=0.8),
    "multiple of the minimum": lambda f: tv.LevelSet(fraction_of_min=1.3),
    "bands": lambda f: tv.LevelSet(np.quantile(f, [0.4, 0.7]).tolist()),
    "between": lambda f: tv.LevelSet(between=np.quantile(f, [0.4, 0.7]).tolist()),
    "maximum": lambda f: tv.Maximize(),
    "minimum": lambda f: tv.Minimize(),
    "map": lambda f: tv.Map(accuracy=0.2 * float(f.std())),
}
MODELS: dict[str, Callable[[Array], dict[str, Any]]] = {
    "exact": lambda f: {"noise": 0.0},
    "noise given": lambda f: {"noise": float((NOISE_SHARE * f.std()) ** 2)},
    "learned": lambda f: {},
    "logarithms": lambda f: {"kernel": tv.Learned(transform="log")},
    "known": lambda f: {
        "kernel": float(f.var()) * Matern(3.0, nu=2.5),
        "mean": float(f.mean()),
        "noise": float((NOISE_SHARE * f.std()) ** 2),
        "exact_model": True,
    },
}


def field(rng: np.random.Generator, domain: tv.Domain) -> Array:
    """Return waves, bumps or peaks on a domain, well above zero: (n,)."""
    points = domain.points / 10.0
    d = points.shape[1]
    waves = np.cos(points @ rng.normal(0.0, 5.0, (d, 3)) + rng.uniform(0.0, 6.0, 3)).sum(axis=1)
    distances = ((points[:, None, :] - rng.uniform(size=(3, d))) ** 2).sum(axis=2)
    bumps = np.exp(-distances / 0.05) @ rng.normal(0.0, 2.0, 3)
    found = np.stack([waves, bumps, np.exp(waves)])[rng.integers(3)]
    return np.asarray(found - found.min() + np.ptp(found))


def problem(goal: str, model: str, seed: int) -> tv.Study:
    """Return a study with some measurements."""
    rng = np.random.default_rng(seed)
    columns = {
        "x": np.linspace(0.0, 10.0, 40 if seed % 2 else 8),
        "y": np.linspace(0.0, 10.0, 8),
    }
    domain = tv.Domain.grid(**{name: columns[name] for name in "xy"[: 1 + (seed + 1) % 2]})
    f = field(rng, domain)
    study = tv.Study(domain, GOALS[goal](f), seed=seed, **MODELS[model](f))
    noise = 0.0 if model == "exact" else NOISE_SHARE * f.std()
    for row in rng.permutation(len(domain))[: rng.choice([3, 8, 14, 22])]:
        study.tell(domain.point(int(row)), float(f[row] + noise * rng.standard_normal()))
    return study


def cases() -> list[Any]:
    found = []
    for seed, (model, goal) in enumerate(product(MODELS, GOALS)):
        if model == "logarithms" and goal in ("share of the maximum", "multiple of the minimum"):
            continue  # which is refused
        marks = [] if seed % QUICK_EVERY == 0 else [pytest.mark.slow]
        found.append(pytest.param(goal, model, seed, marks=marks, id=f"{goal}, {model}"))
    return found


@pytest.mark.filterwarnings("ignore::truvar.exceptions.OutlierWarning")
@pytest.mark.parametrize(("goal", "model", "seed"), cases())
def test_nothing_that_is_stated_contradicts_something_else(
    goal: str, model: str, seed: int
) -> None:
    assert contradictions(problem(goal, model, seed), is_exact=model == "exact") == []


def test_contradictions_are_found() -> None:
    """A result whose bounds are moved no longer agrees with itself."""
    study = problem("above", "learned", 1)
    result = study.result()
    statements = result.statements
    object.__setattr__(statements, "lower", statements.lower - 100.0 * result.sd)
    result.__dict__["statements"] = statements
    assert contradictions(study, is_exact=False, result=result) != []
