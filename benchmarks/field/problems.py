"""Problems with the cost of every measurement, in a half for tuning and one that is reported.

They are those of `benchmarks.scratch` at a cost of 1 each, and again with the costs that
measurements of their kind have: travel along a section or over terrain, seconds of computation;
and functions in one and eight dimensions, with mixed parameters, and with noise levels to choose
from. Those with a known kernel are in `known.py`.
"""

from __future__ import annotations

import zlib
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd

import truvar as tv
from benchmarks.decision.fields import data_folder
from benchmarks.field.cases import Case, Half, Price, Priced
from benchmarks.field.known import known_cases, levels_case
from benchmarks.field.mixed import mixed_cases
from benchmarks.instances import Array, Instance, Noise
from benchmarks.scratch import problems as scratch
from truvar.paper import svm

__all__ = ["Case", "Price", "Priced", "cases"]

WAFER_THRESHOLD = 230.0  # microseconds, that of the publication of the table

SURVEY = Price(4.0, {"distance_m": 0.25}, {"depth_m": 4.0})  # the paper's, of its lake
GLIDER = Price(5.0, {"distance_km": 8.0}, {"depth_m": 0.5})
WALK = Price(10.0, {"north": 0.5, "east": 0.5})
WINDOW_WALK = Price(10.0, {"south": 0.5, "east": 0.5})  # columns of a part of the terrain


@lru_cache(maxsize=1)
def cases() -> dict[str, Case]:
    """Return the suite by name; what needs TRUVAR_DATA is left out without it."""
    known = {case.name: case for case in scratch.cases()}
    found = [Case(name, _half(case), case.instance) for name, case in known.items()]
    found += [*_functions(), *_wafer(), *mixed_cases()]
    found += [levels_case("levels-set", "tuning"), levels_case("levels-rare-set", "reported")]
    for name, of, price, budget in _priced(data_folder()):
        if of in known:
            found.append(Case(name, _half(known[of]), known[of].instance, price, budget))
    found += known_cases()
    return {case.name: case for case in found}


def _priced(folder: Path | None) -> list[tuple[str, str, Price, float]]:
    """Return name, problem of `benchmarks.scratch`, price and budget."""
    found = [
        ("lake-set-survey", "lake-set", SURVEY, 3000.0),
        ("zurich-set-survey", "zurich-set", SURVEY, 3000.0),
        ("rough-set-survey", "rough-set", SURVEY, 3000.0),
        ("lake-survey", "lake", SURVEY, 2000.0),
        ("terrain-set-walk", "terrain-set", WINDOW_WALK, 3000.0),
        ("terrain-east-set-walk", "terrain-east-set", WINDOW_WALK, 3000.0),
        ("terrain-walk", "terrain", WALK, 2000.0),
        ("svm-seconds", "svm", Price(own=_svm_seconds), 1.2),
        ("svm-set-seconds", "svm-set", Price(own=_svm_seconds), 1.2),
    ]
    if folder is not None:
        found += [
            ("glider-set-survey", "glider-set", GLIDER, 3000.0),
            ("reservoir-set-survey", "reservoir-set", SURVEY, 3000.0),
            ("gpu-log-seconds", "gpu-log", Price(own=lambda: _gpu_seconds(folder, True)), 100.0),
            ("gpu-seconds", "gpu", Price(own=lambda: _gpu_seconds(folder, False)), 100.0),
            ("svm-paper-seconds", "svm-paper", Price(own=lambda: _svm_paper(folder)), 30000.0),
        ]
    return found


def _functions() -> list[Case]:
    """Return functions in one and in eight dimensions."""

    def wave(start: int) -> Instance:
        domain = tv.Domain.grid(x=np.linspace(0.0, 1.0, 300))
        x = domain.points[:, 0]
        truth = np.sin(12.0 * x + start) * (0.3 + x) + 0.3 * np.cos(31.0 * x)
        threshold = float(np.quantile(truth, 0.75))
        return _instance("wave", start, domain, truth, tv.LevelSet(threshold))

    def bowl(start: int) -> Instance:
        rng = np.random.default_rng([11, start])
        columns = [f"x{k + 1}" for k in range(8)]
        domain = tv.Domain.table(pd.DataFrame(rng.random((2000, 8)), columns=columns))
        weights = np.array([4.0, 2.0, 1.0, 1.0, 0.5, 0.5, 0.1, 0.1])
        truth = -np.sqrt(((domain.points - rng.uniform(0.2, 0.8, 8)) ** 2) @ weights)
        return _instance("bowl8", start, domain, truth, tv.Maximize())

    return [Case("wave-set", "tuning", wave), Case("bowl8", "reported", bowl)]


def _wafer() -> list[Case]:
    folder = data_folder()
    if folder is None:
        return []

    def make(start: int) -> Instance:
        frame = pd.read_csv(folder / "wafer_lifetime.csv")
        domain = tv.Domain.table(frame[["x_mm", "y_mm"]])
        truth = frame["lifetime_us"].to_numpy(float)
        return _instance("wafer-set", start, domain, truth, tv.LevelSet(WAFER_THRESHOLD), 0.0)

    return [Case("wafer-set", "reported", make)]


def _instance(
    name: str, start: int, domain: tv.Domain, truth: Array, goal: tv.Goal, noise: float = 0.01
) -> Instance:
    sd = noise * float(truth.std())
    return Instance(domain, truth, goal, Noise(sd), (zlib.crc32(name.encode()), start))


def _half(case: scratch.Case) -> Half:
    return "tuning" if case.half == "tuning" else "reported"


def _svm_seconds() -> Array:
    return svm.table()[svm.COST].to_numpy(float)


def _svm_paper(folder: Path) -> Array:
    frame = pd.read_csv(folder / "svm_on_grid.csv").sort_values(["C", "alpha", "epsilon"])
    return frame["duration_s"].to_numpy(float)


def _gpu_seconds(folder: Path, first: bool) -> Array:
    frame = pd.read_csv(folder / "convolution_A4000.csv")
    frame = frame.sample(2 * scratch.ROWS, random_state=0)
    return (frame.iloc[: scratch.ROWS] if first else frame.iloc[scratch.ROWS :])["cost_s"].to_numpy(
        float
    )
