"""Studies for the tests of sharded factors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import RBF, Matern, RationalQuadratic

import truvar as tv

GRID = tv.Domain.grid(x=np.linspace(0, 1, 23), y=np.linspace(2, 3, 19))
SCATTER = tv.Domain.table(
    pd.DataFrame(np.random.default_rng(3).uniform(size=(400, 2)), columns=["x", "y"])
)

# Settings whose search for the best candidate uses every operation of the shards.
SETTINGS: dict[str, tuple[tv.Domain, Any, dict[str, Any]]] = {
    "maximum": (
        SCATTER,
        tv.Maximize(),
        {"kernel": Matern(0.2, nu=2.5), "noise": 1e-4, "policy": "truvar"},
    ),
    "level set": (GRID, tv.LevelSet(0.5), {"kernel": RBF(0.2), "noise": 1e-3, "policy": "truvar"}),
    "travel": (
        GRID,
        tv.LevelSet(0.2),
        {
            "kernel": 2.0 * Matern([0.2, 0.4], nu=1.5),
            "noise": 1e-2,
            "cost": tv.Cost(1, {"x": 9.0}),
            "policy": "truvar",
        },
    ),
    "noise levels": (
        SCATTER,
        tv.LevelSet(0.2),
        {
            "kernel": RBF(0.2),
            "noise": tv.NoiseLevels([1e-6, 1e-3, 0.05], [15, 10, 2]),
            "policy": "truvar",
        },
    ),
}
MORE: dict[str, tuple[tv.Domain, Any, dict[str, Any]]] = {
    "tasks": (
        GRID,
        tv.Maximize(),
        {
            "kernel": RBF(0.2),
            "noise": 1e-3,
            "tasks": tv.Tasks(
                [[1, 0.8], [0.8, 1]], ["yield", "proxy"], noise=[1e-3, 1e-2], cost=[5, 1]
            ),
        },
    ),
    "no compiled form": (
        SCATTER,
        tv.Maximize(),
        {"kernel": RationalQuadratic(0.3, 1.0), "noise": 1e-3},
    ),
    "maximum with the default policy": (
        SCATTER,
        tv.Maximize(),
        {"kernel": Matern(0.2, nu=2.5), "noise": 1e-4},
    ),
    "level set with the default policy": (
        GRID,
        tv.LevelSet(0.5),
        {"kernel": RBF(0.2), "noise": 1e-3},
    ),
    "travel with the default policy": (
        GRID,
        tv.LevelSet(0.2),
        {"kernel": Matern([0.2, 0.4], nu=1.5), "noise": 1e-2, "cost": tv.Cost(1, {"x": 9.0})},
    ),
    "no noise": (GRID, tv.Maximize(), {"kernel": Matern(0.4, nu=2.5), "noise": 0.0}),
    "learned": (SCATTER, tv.Maximize(), {"kernel": "matern52", "noise": 1e-3}),
    "another policy": (
        GRID,
        tv.LevelSet(0.5),
        {"kernel": RBF(0.2), "noise": 1e-3, "policy": "straddle"},
    ),
    "theorem": (
        tv.Domain.grid(x=np.linspace(0, 1, 40)),
        tv.LevelSet(0.2),
        {
            "kernel": RBF(0.2),
            "noise": 1e-2,
            "policy": tv.TruVaR(beta=tv.TheoremBeta(0.1), slack=0.1),
        },
    ),
    "anticipating": (
        GRID,
        tv.LevelSet(0.2),
        {"kernel": RBF(0.3), "noise": 1e-3, "policy": tv.TruVaR(anticipate="mean")},
    ),
}


def measure(point: dict[str, float], *_: Any) -> float:
    return float(sum(np.sin(5 * x + k) for k, x in enumerate(point.values())))


def choices(name: str, engine: Any, steps: int, batch: int = 1) -> list[Any]:
    """Return the suggestions of a run, with approximate gains; the values of a batch are told in
    reverse order."""
    domain, goal, settings = (SETTINGS | MORE)[name]
    study = tv.Study(domain, goal, mean=0.0, engine=engine, **settings)
    found: list[Any] = []
    while study.steps < steps:
        try:
            suggestions = study.ask(batch)
        except tv.Finished:
            break
        found += [
            (s.index, s.level, s.task, pytest.approx(s.gain, rel=1e-6, abs=1e-9))
            for s in suggestions
        ]
        for suggestion in reversed(suggestions):
            study.tell(suggestion, measure(suggestion.point))
    return found


def plain(found: list[Any]) -> list[Any]:
    """Return suggestions with their gains as numbers, to compare with approximate ones."""
    return [(index, level, task, gain.expected) for index, level, task, gain in found]
