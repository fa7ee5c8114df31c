"""Cost of a survey with a forbidden strip and failing measurements, relative to one without.

    python -m benchmarks --only failures
    python -m benchmarks.failures --starts 20

Fields drawn from a Gaussian process over a section of a lake, 20 x 20 points, with the model known
and the default policy. A survey ends when the F1 score of its classification, of all points, is
0.95 for the first time. Every attempt costs what a measurement costs, whether it fails or not.

| survey | what is in its way |
|---|---|
| strip | a strip of 5 % of the distance is excluded beforehand |
| failures | in addition every measurement fails with probability 20 %, wherever it is |

In addition studies of which a part of the domain always fails, with nothing known of the model: how
many of 25 attempts go there, on average.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import truvar as tv
from benchmarks.decision.fields import Array, draws
from benchmarks.measure import Row, at_most, one_thread

SIDE = 20
FIELDS = range(6)  # seeds
STARTS = 6
F1 = 0.95
LENGTHS = (0.3, 0.35)  # of the distance and the depth
ABOVE = 0.3  # share of the points that lie above the threshold
NOISE = 0.001
FAILING = 0.2  # share of the measurements
STRIP = (0.5, 0.55)  # of the distance: one of 20 columns
MAX_COST_SHARE = 1.3
MAX_ATTEMPTS = 200
COSTS = {
    "unit": tv.Cost(base=1.0),
    "travel": tv.Cost(base=1.0, travel={"distance": 10.0, "depth": 5.0}),
}
ATTEMPTS = 25  # of each study with a region that fails
MAX_FAILED = 6.0
AXIS = np.linspace(0, 1, 15)
LINE = tv.Domain.grid(x=np.linspace(0, 10, 101))
SQUARE = tv.Domain.grid(x=AXIS, y=AXIS)
BOX = tv.Domain.box(x=(0, 10))
Fails = Callable[[dict[str, float], np.random.Generator], bool]
SURVEYS: dict[str, tuple[bool, Fails]] = {
    "unhindered": (False, lambda point, rng: False),
    "strip": (True, lambda point, rng: False),
    "failures": (True, lambda point, rng: rng.uniform() < FAILING),
}


def wave(point: dict[str, float]) -> float:
    """Return the function on the line."""
    return float(np.sin(point["x"]) + 0.3 * point["x"])


def hills(point: dict[str, float]) -> float:
    """Return the function on the square."""
    return float(np.sin(5 * point["x"]) * np.cos(4 * point["y"]) + point["x"])


Region = tuple[
    tv.Domain, Any, Callable[[dict[str, float]], float], Callable[[dict[str, float]], bool]
]
REGIONS: dict[str, Region] = {
    "right half, maximum": (LINE, tv.Maximize(), wave, lambda p: p["x"] > 5),
    "left half, maximum": (LINE, tv.Maximize(), wave, lambda p: p["x"] < 5),
    "left half, minimum": (LINE, tv.Minimize(), wave, lambda p: p["x"] < 5),
    "right half, level set": (LINE, tv.LevelSet(0.9), wave, lambda p: p["x"] > 5),
    "half of a box, maximum": (BOX, tv.Maximize(), wave, lambda p: p["x"] > 5),
    "half of a square, maximum": (SQUARE, tv.Maximize(), hills, lambda p: p["x"] > 0.5),
    "corner of a square, level set": (
        SQUARE,
        tv.LevelSet(0.5),
        hills,
        lambda p: p["x"] > 0.5 and p["y"] > 0.5,
    ),
}


def rows(quick: bool = False) -> list[Row]:
    """Return a row for each survey and kind of cost: its cost relative to the unhindered one."""
    fields = range(1) if quick else FIELDS
    starts = 1 if quick else STARTS
    found = []
    for kind in COSTS:
        costs = {name: survey_costs(name, kind, fields, starts) for name in SURVEYS}
        base = costs.pop("unhindered")
        for name, cost in costs.items():
            share = float(cost.mean() / base.mean())
            target = at_most(MAX_COST_SHARE) if name == "failures" else None
            note = f"{base.mean():.4g} unhindered, {len(base)} surveys"
            found.append(
                Row(f"failures-{kind}-{name}", f"cost to F1 {F1:g}", share, "x", target, note)
            )
    for name, region in REGIONS.items():
        n_failed = float(
            np.mean([failed_attempts(region, start) for start in range(min(starts, 4))])
        )
        note = f"{name}, of {ATTEMPTS}"
        key = name.replace(",", "").replace(" ", "-")
        what = f"attempts that fail, {name}"
        found.append(Row(f"failures-region-{key}", what, n_failed, "", at_most(MAX_FAILED), note))
    return found


def failed_attempts(region: Region, start: int) -> int:
    """Return the number of attempts of one study in the region that always fails."""
    domain, goal, function, fails = region
    study = tv.Study(domain, goal, seed=start)
    for _ in range(ATTEMPTS):
        suggestion = study.ask()
        if fails(suggestion.point):
            study.fail(suggestion, "no signal")
        else:
            study.tell(suggestion, function(suggestion.point))
    return len(study.failures)


def survey_costs(name: str, kind: str, fields: Sequence[int], starts: int) -> Array:
    """Return the cost of each survey of one kind."""
    costs = []
    for field in fields:
        (truth,) = draws("matern52", LENGTHS, SIDE, range(field, field + 1), square=True)
        for start in range(starts):
            costs.append(survey(name, kind, truth, start))
    return np.array(costs)


def survey(name: str, kind: str, truth: Array, start: int) -> float:
    """Return the cost of one survey until its classification is good enough."""
    from sklearn.gaussian_process.kernels import Matern

    threshold = float(np.quantile(truth, 1 - ABOVE))
    axis = np.linspace(0, 1, SIDE)
    domain = tv.Domain.grid(distance=axis, depth=axis)
    study = tv.Study(
        domain,
        tv.LevelSet(threshold),
        kernel=Matern(LENGTHS, nu=2.5),
        mean=0.0,
        noise=NOISE,
        cost=COSTS[kind],
        start="random",
        seed=start,
    )
    has_strip, fails = SURVEYS[name]
    if has_strip:
        study.exclude({"distance": STRIP}, reason="shipping lane")
    fate = np.random.default_rng((start, 1))
    noise = np.random.default_rng((start, 2))
    for _ in range(MAX_ATTEMPTS):
        suggestion = study.ask()
        if fails(suggestion.point, fate):
            study.fail(suggestion, "no signal")
            continue
        study.tell(suggestion, truth[suggestion.index] + np.sqrt(NOISE) * noise.standard_normal())
        if f1(study.predict(domain.points)[0] >= threshold, truth >= threshold) >= F1:
            return study.spent
    return study.spent


def f1(reported: Array, true: Array) -> float:
    """Return the F1 score of a classification; as `Result.f1`, but without the rest of a result."""
    return float(2 * (reported & true).sum() / max(reported.sum() + true.sum(), 1))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the rows."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.failures", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument(
        "--starts", type=int, default=STARTS, help=f"surveys of every field; default {STARTS}"
    )
    given = parser.parse_args(arguments)
    with one_thread():
        for kind in COSTS:
            costs = {name: survey_costs(name, kind, FIELDS, given.starts) for name in SURVEYS}
            base = costs["unhindered"]
            for name, cost in costs.items():
                print(
                    f"{kind} {name}: {cost.mean():.4g}, {cost.mean() / base.mean():.3f} of the "
                    "unhindered one",
                    flush=True,
                )
        for name, region in REGIONS.items():
            counts = [failed_attempts(region, start) for start in range(given.starts)]
            print(
                f"{name} fails: {np.mean(counts):.1f} of {ATTEMPTS} attempts, at most {max(counts)}",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
