"""Problems with mixed parameters: numbers, an integer, an ordered choice, categories, a Boolean.

A made-up reaction: its yield depends on temperature, time and loading, on which of the solvents and
catalysts suit each other, and on whether it is stirred. Optima and scales differ between starts.
"""

from __future__ import annotations

import zlib

import numpy as np

import truvar as tv
from benchmarks.field.cases import Case, Price
from benchmarks.instances import Array, Instance, Noise

NOISE_SHARE = 0.02  # standard deviation of the errors, of that of the truth
HOURS_BUDGET = 120.0


def mixed_cases() -> list[Case]:
    """Return the problems, one in each half, the reported one also at the hours that it takes."""
    return [
        Case("mixed", "tuning", lambda start: _instance("mixed", start)),
        Case("mixed-set", "reported", lambda start: _instance("mixed-set", start)),
        Case(
            "mixed-hours",
            "reported",
            lambda start: _instance("mixed-hours", start),
            Price(own=_hours),
            HOURS_BUDGET,
        ),
    ]


def _domain() -> tv.Domain:
    return tv.Domain.grid(
        temperature=np.linspace(20.0, 120.0, 8),
        hours=tv.Ordinal([1, 2, 4, 8]),
        loading=tv.Log(0.1, 10.0, count=5),
        solvent=tv.Categorical(["water", "ethanol", "toluene"]),
        catalyst=tv.Categorical(["none", "Pd", "Ni"]),
        stirred=tv.Boolean(),
    )


def _hours() -> Array:
    domain = _domain()
    return np.array([float(domain.point(row)["hours"]) for row in range(len(domain))])


def _instance(name: str, start: int) -> Instance:
    domain = _domain()
    rng = np.random.default_rng([21, zlib.crc32(name.encode()), start])
    best_temperature = rng.uniform(40.0, 100.0)
    best_hours = rng.uniform(0.5, 2.5)
    best_loading = rng.uniform(-0.6, 0.6)
    fit = rng.normal(0.0, 0.6, (3, 3))
    shift = rng.normal(0.0, 12.0, 3)
    stirring = rng.uniform(0.2, 0.6)
    points = domain.points
    solvent = points[:, domain.columns.index("solvent")].astype(int)
    catalyst = points[:, domain.columns.index("catalyst")].astype(int)
    stirred = points[:, domain.columns.index("stirred")]
    frame = [domain.point(row) for row in range(len(domain))]
    temperature = np.array([float(point["temperature"]) for point in frame])
    hours = np.log2([float(point["hours"]) for point in frame])
    loading = np.log10([float(point["loading"]) for point in frame])
    truth = (
        fit[solvent, catalyst]
        - ((temperature - best_temperature - shift[catalyst]) / 30.0) ** 2
        - 0.4 * (hours - best_hours) ** 2
        - 0.8 * (loading - best_loading) ** 2
        + stirring * stirred
    )
    goal = tv.LevelSet(float(np.quantile(truth, 0.85))) if name.endswith("-set") else tv.Maximize()
    noise = Noise(NOISE_SHARE * float(truth.std()))
    return Instance(domain, truth, goal, noise, (zlib.crc32(name.encode()), start))
