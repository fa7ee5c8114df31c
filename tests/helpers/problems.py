"""One small problem of every kind that a study can have, with a function that answers."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, RationalQuadratic

import truvar as tv

GRID = tv.Domain.grid(x=np.linspace(0, 1, 9), y=np.linspace(0, 2, 7))
_RNG = np.random.default_rng(5)
TABLE = tv.Domain.table(
    pd.DataFrame(
        {
            **{name: _RNG.random(40) for name in ("x", "y")},
            "variance": _RNG.uniform(0.001, 0.05, 40),
            "hours": _RNG.uniform(1, 3, 40),
            "site": [f"buoy {k}" for k in range(40)],
        }
    ),
    ["x", "y"],
)
KNOWN: dict[str, Any] = {
    "kernel": ConstantKernel(2.0) * Matern([0.3, 0.5], nu=2.5),
    "mean": 0.1,
    "noise": 0.01,
}


@dataclass(frozen=True)
class Kind:
    """A problem: the domain and goal, and what else the study is given."""

    domain: tv.Domain
    goal: Any
    options: dict[str, Any] = field(default_factory=dict)

    def study(self, **more: Any) -> tv.Study:
        return tv.Study(self.domain, self.goal, **{**self.options, **more})


KINDS: dict[str, Kind] = {
    "level set with travel": Kind(
        GRID,
        tv.LevelSet(0.6),
        {
            **KNOWN,
            "cost": tv.Cost(base=1.0, travel={"x": 0.5}, magnitude={"y": 0.1}),
            "start": "random",
            "seed": 3,
        },
    ),
    "straight lines, directions and a start": Kind(
        GRID,
        tv.LevelSet(0.6),
        {
            **KNOWN,
            "cost": tv.Cost(
                base=1.0,
                travel=[
                    tv.Euclidean({"x": 0.5, "y": 0.2}),
                    {"y": {"increasing": 0.3, "decreasing": 0.1}},
                ],
                setup={"x": 0.2},
                start={"x": -0.5, "y": 0.0},
            ),
        },
    ),
    "great circle": Kind(
        GRID,
        tv.Maximize(),
        {**KNOWN, "cost": tv.Cost(base=1.0, travel=tv.GreatCircle("x", "y", rate=0.01))},
    ),
    "network with a compulsory return": Kind(
        TABLE,
        tv.LevelSet(0.4),
        {
            **KNOWN,
            "cost": tv.Cost(
                base=1.0,
                travel=tv.Network(
                    [
                        ("buoy 0", "harbour", 1.0),
                        *((f"buoy {k}", f"buoy {k + 1}", 0.1) for k in range(39)),
                    ],
                    "site",
                ),
                start="harbour",
                must_return=True,
            ),
            "limits": {"budget": 100.0},
        },
    ),
    "travel matrix": Kind(
        TABLE,
        tv.Minimize(),
        {
            **KNOWN,
            "cost": tv.Cost(base="hours", travel=tv.TravelMatrix(_RNG.uniform(0, 1, (40, 40)))),
        },
    ),
    "learned cost with travel": Kind(
        GRID,
        tv.Maximize(),
        {**KNOWN, "cost": tv.Cost(base=tv.LearnedCost(prior=3.0), travel={"x": 0.5})},
    ),
    "places with noise levels": Kind(
        TABLE,
        tv.Maximize(),
        {**KNOWN, "noise": tv.NoiseLevels([1e-4, "variance", np.full(40, 0.1)], [5.0, 2.0, 1.0])},
    ),
    "a vehicle": Kind(
        GRID,
        tv.LevelSet(0.6),
        {
            **KNOWN,
            "cost": tv.Cost(base=1.0, travel={"x": 0.5}),
            "vehicles": {"boat": tv.Vehicle(start={"x": 1.0, "y": 2.0}, speed=2.0, budget=500.0)},
        },
    ),
    "optimum with noise levels": Kind(
        GRID, tv.Maximize(), {**KNOWN, "noise": tv.NoiseLevels([1e-4, 1e-2, 0.1], [5.0, 2.0, 1.0])}
    ),
    "learned kernel and noise": Kind(
        GRID, tv.Maximize(), {"kernel": tv.Learned("matern52", restarts=2), "seed": 1}
    ),
    "learned kernel, known noise": Kind(
        GRID, tv.LevelSet(0.5), {"kernel": "rbf", "noise": 0.01, "policy": "straddle"}
    ),
    "tasks": Kind(
        GRID,
        tv.LevelSet(fraction_of_max=0.7),
        {
            **KNOWN,
            "tasks": tv.Tasks(
                [[1.0, 0.8], [0.8, 1.0]], ["chlorophyll", "fluorescence"], [0.01, 0.04], [4.0, 1.0]
            ),
        },
    ),
    "learned tasks": Kind(
        GRID,
        tv.LevelSet(0.6),
        {"tasks": tv.Tasks(names=["chlorophyll", "fluorescence"], cost=[4.0, 1.0]), "seed": 4},
    ),
    "known kernel, learned tasks with noise levels": Kind(
        GRID,
        tv.Maximize(),
        {
            **KNOWN,
            "tasks": tv.Tasks(names=["chlorophyll", "fluorescence"], cost=[4.0, 1.0]),
            "noise": tv.NoiseLevels([1e-3, 0.1], [2.0, 0.0]),
        },
    ),
    "box with a learned kernel and known tasks": Kind(
        tv.Domain.box(x=(0, 1), y=(0, 2), representers=64),
        tv.Minimize(),
        {
            "tasks": tv.Tasks(
                [[1.0, 0.8], [0.8, 1.0]], ["chlorophyll", "fluorescence"], cost=[4.0, 1.0]
            ),
            "seed": 9,
        },
    ),
    "box": Kind(
        tv.Domain.box(x=(0, 1), y=(0, 2), representers=64), tv.Minimize(), {**KNOWN, "mean": None}
    ),
    "box in three dimensions": Kind(
        tv.Domain.box(x=(0, 1), y=(0, 2), z=(-1, 1), representers=32),
        tv.Maximize(),
        {"kernel": RBF([0.3, 0.5, 0.4]), "mean": 0.0, "noise": 1e-3, "policy": tv.UCB()},
    ),
    "table with columns": Kind(
        TABLE, tv.Minimize(monotone=False), {**KNOWN, "noise": "variance", "cost": "hours"}
    ),
    "table with arrays": Kind(
        TABLE,
        tv.LevelSet(0.4),
        {
            "kernel": 0.5 * RationalQuadratic(0.4) + ConstantKernel(0.2, "fixed") * RBF([0.2, 0.6]),
            "noise": np.linspace(0.01, 0.02, 40),
            "cost": np.linspace(1, 2, 40),
            "policy": tv.TruVaR(
                beta=tv.ConstantBeta(4.0), among=tv.TopK(20, by="ucb"), anticipate="average"
            ),
        },
    ),
    "mean from a column": Kind(TABLE, tv.LevelSet(0.4), {**KNOWN, "mean": "variance"}),
    "learned kernel, mean from a column": Kind(
        TABLE, tv.LevelSet(0.4), {"mean": "variance", "seed": 6}
    ),
    "box with a coordinate as mean": Kind(
        tv.Domain.box(x=(0, 1), y=(0, 2), representers=64),
        tv.Maximize(),
        {**KNOWN, "mean": "y", "policy": "ei"},
    ),
    "known kernel, learned noise": Kind(
        GRID, tv.LevelSet(0.6), {**KNOWN, "mean": None, "noise": None}
    ),
    "box with learned noise": Kind(
        tv.Domain.box(x=(0, 1), y=(0, 2), representers=64),
        tv.Minimize(),
        {**KNOWN, "noise": None, "seed": 7},
    ),
    "look-ahead": Kind(
        GRID, tv.Maximize(), {**KNOWN, "policy": tv.ES(representers=20, draws=64), "seed": 8}
    ),
    "at random": Kind(GRID, tv.LevelSet(0.5), {**KNOWN, "policy": "random", "seed": 2}),
    "matrix-free": Kind(GRID, tv.LevelSet(0.6), {**KNOWN, "engine": "lazy"}),
    "single precision": Kind(
        tv.Domain.grid(x=np.linspace(0, 1, 19), y=np.linspace(0, 2, 17)),
        tv.LevelSet(0.6),
        {**KNOWN, "engine": "dense32"},
    ),
    "theorem": Kind(
        GRID,
        tv.LevelSet(0.6),
        {**KNOWN, "policy": tv.TruVaR(beta=tv.TheoremBeta(0.1), slack=0.1), "mean": 0.0},
    ),
}


def truth(point: dict[str, float]) -> float:
    return float(np.sin(5 * point["x"]) + point["y"] / 2 + 0.3 * point.get("z", 0.0))


def answer(suggestion: tv.Suggestion) -> float:
    """Return the measured value, which depends on the suggestion alone."""
    noise = np.random.default_rng(suggestion.id).normal(0, 0.05)
    return (
        truth(suggestion.point) + float(noise) - (0.2 if suggestion.task == "fluorescence" else 0.0)
    )


def assert_same(one: tv.Study, other: tv.Study) -> None:
    """Both studies stand where the other does, to the last bit."""
    assert one.pending == other.pending
    assert one.measurements.equals(other.measurements)
    assert one.history.equals(other.history)
    assert one.finished == other.finished
    a = one.result()
    b = other.result()
    for name in ("potential", "above", "below", "mean", "sd", "lower", "upper"):
        assert np.array_equal(getattr(a, name), getattr(b, name)), name
    assert (a.best, a.epsilon, a.spent, str(a.certificate)) == (
        b.best,
        b.epsilon,
        b.spent,
        str(b.certificate),
    )
