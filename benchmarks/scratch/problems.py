"""Problems of which nothing is known but the candidates, split into a half for tuning and one held
out, fixed here.

A case makes one instance per start, from a fixed seed: simulated fields differ between starts,
functions and measured tables are the same for all of them. The truth is known to the benchmark and
to nobody else.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
from scipy.stats import qmc

import truvar as tv
from benchmarks.decision import fields
from benchmarks.decision.fields import Array
from benchmarks.instances import Instance, Noise
from truvar.paper import lake, svm
from truvar.paper.fields import SIDE as SIDE_OF_PAPER
from truvar.paper.fields import TERRAIN_STEP

Half = Literal["tuning", "held-out"]
Kind = Literal["optimum", "level set"]

SIDE = 28  # points along an axis of most grids: 784 candidates
ROWS = 1200  # rows of a measured table, at most
SECTION_SEED = 500  # first seed of the simulated fields of the tuning half
HELD_OUT_SEED = 900  # first seed of those of the held-out half


Made = tuple[tv.Domain, Array]
"""Candidates and their true values."""


@dataclass(frozen=True)
class Case:
    """A problem of the suite.

    Attributes:
        name: Its name.
        half: The half that it belongs to.
        goal: "maximize", "minimize", or "level set".
        make: Function from the number of the start to candidates and truth.
        quantile: Threshold of a level set, as a quantile of the truth.
        threshold: Threshold of a level set in units of the truth, instead of a quantile.
        noise: Function from candidates and truth to the errors; default: 1 % of the truth's
            standard deviation.
    """

    name: str
    half: Half
    goal: Literal["maximize", "minimize", "level set"]
    make: Callable[[int], Made]
    quantile: float | None = None
    threshold: float | None = None
    noise: Callable[[tv.Domain, Array], Noise] | None = None

    @property
    def kind(self) -> Kind:
        return "level set" if self.goal == "level set" else "optimum"

    def instance(self, start: int) -> Instance:
        """Return a start of the problem."""
        domain, truth = self.make(start)
        noise = (self.noise or _normal)(domain, truth)
        if self.goal == "level set":
            h = (
                self.threshold
                if self.quantile is None
                else float(np.quantile(truth, self.quantile))
            )
            goal = tv.LevelSet(h)
        else:
            goal = tv.Maximize() if self.goal == "maximize" else tv.Minimize()
        return Instance(domain, truth, goal, noise, (zlib.crc32(self.name.encode()), start))


def cases() -> list[Case]:
    """Return the whole suite; what needs TRUVAR_DATA is left out without it."""
    return [*_functions(), *_fields(), *_noisy(), *_tables(), *_measured()]


def _functions() -> list[Case]:
    return [
        Case("branin", "tuning", "minimize", lambda start: _branin()),
        Case("camel", "held-out", "minimize", lambda start: _camel()),
        Case("hartmann6", "tuning", "minimize", lambda start: _hartmann6()),
        Case("ackley2", "tuning", "minimize", lambda start: _ackley2()),
        Case("ackley5", "held-out", "minimize", lambda start: _ackley5()),
        Case("branin-set", "tuning", "level set", lambda start: _negative(_branin()), quantile=0.9),
        Case(
            "camel-set", "held-out", "level set", lambda start: _negative(_camel()), quantile=0.85
        ),
        Case("bumps", "tuning", "maximize", lambda start: _bumps(start, 0.06)),
        Case(
            "bumps-set",
            "tuning",
            "level set",
            lambda start: _bumps(100 + start, 0.07),
            threshold=0.3,
        ),
        Case("front", "held-out", "maximize", _cliff),
        Case("front-set", "held-out", "level set", _front, threshold=0.0),
    ]


def _fields() -> list[Case]:
    return [
        Case("lake", "tuning", "maximize", lambda start: _section("matern52", (300.0, 3.0), start)),
        Case("lake-set", "tuning", "level set", lambda start: _lake(start), quantile=0.8),
        Case("rough-set", "held-out", "level set", lambda start: _rough(start), quantile=0.85),
        Case(
            "zurich-set",
            "held-out",
            "level set",
            lambda start: _zurich(start),
            threshold=lake.THRESHOLD,
        ),
        Case("exp-set", "tuning", "level set", _skewed, quantile=0.85),
        Case("terrain-set", "tuning", "level set", lambda start: _window(0, 0), quantile=0.75),
        Case("terrain", "held-out", "maximize", lambda start: _terrain_east()),
        Case(
            "terrain-east-set",
            "held-out",
            "level set",
            lambda start: _window(200, 250),
            quantile=0.75,
        ),
    ]


def _noisy() -> list[Case]:
    def smooth(start: int) -> Made:
        return _square("rbf", 0.2, SECTION_SEED + start)

    def medium(start: int) -> Made:
        return _square("matern52", 0.2, HELD_OUT_SEED + start)

    return [
        Case("tails", "tuning", "maximize", smooth, noise=_heavy_tailed),
        Case("tails-set", "held-out", "level set", medium, quantile=0.8, noise=_heavy_tailed),
        Case("heteroscedastic", "held-out", "maximize", medium, noise=_heteroscedastic),
        Case(
            "heteroscedastic-set",
            "tuning",
            "level set",
            smooth,
            quantile=0.8,
            noise=_heteroscedastic,
        ),
        Case("outlier", "held-out", "maximize", medium, noise=_one_outlier),
        Case("outlier-set", "tuning", "level set", smooth, quantile=0.8, noise=_one_outlier),
    ]


def _tables() -> list[Case]:
    return [
        Case("svm", "tuning", "minimize", lambda start: _svm(), noise=_none),
        Case(
            "svm-set",
            "held-out",
            "level set",
            lambda start: _negative(_svm()),
            quantile=0.85,
            noise=_none,
        ),
    ]


def _measured() -> list[Case]:
    folder = fields.data_folder()
    if folder is None:
        return []
    depth = ["distance_km", "depth_m"]
    along = ["distance_m", "depth_m"]

    def glider(later: bool) -> Made:
        frame = pd.read_csv(folder / "glider_transect.csv")
        return _rows(frame[(frame["dive"] > 311) == later], depth, "chl_mg_m3")

    def reservoir(file: str) -> Made:
        return _rows(pd.read_csv(folder / file), along, "total_chl_ugL")

    return [
        Case(
            "glider-set",
            "tuning",
            "level set",
            lambda start: glider(False),
            quantile=0.85,
            noise=_none,
        ),
        Case("glider", "held-out", "maximize", lambda start: glider(True), noise=_none),
        Case(
            *(
                "reservoir-set",
                "held-out",
                "level set",
                lambda start: reservoir("reservoir_transect.csv"),
            ),
            quantile=0.85,
            noise=_none,
        ),
        Case(
            *(
                "reservoir",
                "tuning",
                "maximize",
                lambda start: reservoir("reservoir_transect_second.csv"),
            ),
            noise=_none,
        ),
        Case(
            "gpu-log", "tuning", "minimize", lambda start: _gpu(folder, first=True)[:2], noise=_none
        ),
        Case(
            *("gpu", "held-out", "minimize", lambda start: _gpu(folder, first=False)[:2]),
            noise=lambda domain, truth: Noise(_gpu(folder, first=False)[2]),
        ),
        Case("svm-paper", "held-out", "minimize", lambda start: _paper_svm(folder), noise=_none),
    ]


# -- noise
# --------------------------------------------------------------------------------------------------


def _none(domain: tv.Domain, truth: Array) -> Noise:
    return Noise(0.0)


def _normal(domain: tv.Domain, truth: Array) -> Noise:
    return Noise(0.01 * float(truth.std()))


def _heavy_tailed(domain: tv.Domain, truth: Array) -> Noise:
    return Noise(0.1 * float(truth.std()), freedom=2.0)


def _heteroscedastic(domain: tv.Domain, truth: Array) -> Noise:
    """Standard deviation from 2 % of the truth's on the left to 60 % on the right."""
    return Noise(float(truth.std()) * (0.02 + 0.58 * _unit(domain)[:, 0]))


def _one_outlier(domain: tv.Domain, truth: Array) -> Noise:
    return Noise(0.05 * float(truth.std()), outlier=True)


# -- functions
# --------------------------------------------------------------------------------------------------


def _unit(domain: tv.Domain) -> Array:
    low = domain.points.min(axis=0)
    return (domain.points - low) / np.ptp(domain.points, axis=0)


def _grid(low: tuple[float, ...], high: tuple[float, ...], side: int = SIDE) -> tv.Domain:
    names = [f"x{k + 1}" for k in range(len(low))]
    axes = [np.linspace(a, b, side) for a, b in zip(low, high, strict=True)]
    return tv.Domain.grid(**dict(zip(names, axes, strict=True)))


def _sobol(count: int, d: int, seed: int) -> tv.Domain:
    points = qmc.Sobol(d, seed=seed).random_base2(int(np.ceil(np.log2(count))))[:count]
    return tv.Domain.table(pd.DataFrame(points, columns=[f"x{k + 1}" for k in range(d)]))


def _negative(made: Made) -> Made:
    return made[0], -made[1]


def _branin() -> Made:
    domain = _grid((-5.0, 0.0), (10.0, 15.0))
    x, y = domain.points.T
    valley = y - 5.1 / (4 * np.pi**2) * x**2 + 5 / np.pi * x - 6
    return domain, valley**2 + 10 * (1 - 1 / (8 * np.pi)) * np.cos(x) + 10


def _camel() -> Made:
    domain = _grid((-2.0, -1.0), (2.0, 1.0))
    x, y = domain.points.T
    return domain, (4 - 2.1 * x**2 + x**4 / 3) * x**2 + x * y + 4 * (y**2 - 1) * y**2


def _hartmann6() -> Made:
    domain = _sobol(2000, 6, 6)
    alpha = np.array([1.0, 1.2, 3.0, 3.2])
    a = np.array(
        [
            [10, 3, 17, 3.5, 1.7, 8],
            [0.05, 10, 17, 0.1, 8, 14],
            [3, 3.5, 1.7, 10, 17, 8],
            [17, 8, 0.05, 10, 0.1, 14],
        ]
    )
    p = 1e-4 * np.array(
        [
            [1312, 1696, 5569, 124, 8283, 5886],
            [2329, 4135, 8307, 3736, 1004, 9991],
            [2348, 1451, 3522, 2883, 3047, 6650],
            [4047, 8828, 8732, 5743, 1091, 381],
        ]
    )
    distance = (a[None] * (domain.points[:, None] - p[None]) ** 2).sum(axis=2)
    return domain, -(np.exp(-distance) @ alpha)


def _ackley(x: Array) -> Array:
    ripple = np.exp(np.cos(2 * np.pi * x).mean(axis=1))
    return -20 * np.exp(-0.2 * np.sqrt((x**2).mean(axis=1))) - ripple + 20 + np.e


def _ackley2() -> Made:
    domain = _grid((-4.0, -3.0), (3.0, 5.0))
    return domain, _ackley(domain.points)


def _ackley5() -> Made:
    domain = _sobol(1600, 5, 5)
    return domain, _ackley(-3.0 + np.array([7.0, 8.0, 6.5, 7.5, 7.0]) * domain.points)


def _bumps(seed: int, width: float) -> Made:
    """Three narrow bumps at random places at least 0.3 apart, on a field that is 0 elsewhere."""
    domain = _grid((0.0, 0.0), (1.0, 1.0))
    rng = np.random.default_rng([7, seed])
    centres: list[Array] = []
    while len(centres) < 3:
        centre = rng.uniform(0.1, 0.9, 2)
        if all(np.hypot(*(centre - other)) >= 0.3 for other in centres):
            centres.append(centre)
    truth = np.zeros(len(domain))
    for height, centre in zip((1.0, 0.8, 0.6), centres, strict=True):
        truth += height * np.exp(-0.5 * ((domain.points - centre) ** 2).sum(axis=1) / width**2)
    return domain, truth


def _shore(start: int, y: Array) -> Array:
    """Return the place of a front along x, a wave in y."""
    rng = np.random.default_rng([8, start])
    place = rng.uniform(0.4, 0.7)
    return place + 0.12 * np.sin(2 * np.pi * (rng.uniform(0.7, 1.3) * y + rng.uniform()))


def _front(start: int) -> Made:
    """Two nearly flat plateaus with a sharp front between them; a third to two thirds of the
    domain is above."""
    domain = _grid((0.0, 0.0), (1.0, 1.0))
    x, y = domain.points.T
    return domain, np.tanh((x - _shore(start, y)) / 0.02) + 0.1 * np.sin(5 * y)


def _cliff(start: int) -> Made:
    """A hill whose top is close to a cliff, behind which values are low and flat."""
    domain = _grid((0.0, 0.0), (1.0, 1.0))
    x, y = domain.points.T
    top = np.random.default_rng([9, start]).uniform(0.2, 0.8)
    shore = _shore(start, y)
    hill = np.exp(-0.5 * (((x - shore + 0.05) / 0.3) ** 2 + ((y - top) / 0.25) ** 2))
    return domain, np.where(x <= shore, hill, -0.5)


# -- simulated fields and terrain
# --------------------------------------------------------------------------------------


def _square(kernel: str, length: float, seed: int) -> Made:
    values = fields.draws(kernel, (length, length), SIDE, range(seed, seed + 1), square=True)[0]
    return _grid((0.0, 0.0), (1.0, 1.0)), values


@lru_cache(maxsize=1)
def _section_grid() -> tv.Domain:
    return tv.Domain.grid(
        distance_m=np.linspace(0.0, lake.LENGTH_M, SIDE),
        depth_m=np.linspace(-lake.DEPTH_M, 0.0, SIDE),
    )


def _section(kernel: str, lengths: tuple[float, float], seed: int) -> Made:
    return _section_grid(), fields.draws(kernel, lengths, SIDE, range(seed, seed + 1))[0]


def _lake(start: int) -> Made:
    """Lakes of three kinds in turn, with offset and scale of a concentration."""
    lengths = ((400.0, 4.0), (600.0, 1.8), (200.0, 3.0))[start % 3]
    domain, values = _section("matern52", lengths, SECTION_SEED + start)
    return domain, 5.0 + 2.0 * values


def _rough(start: int) -> Made:
    kernel = ("matern32", "rbf")[start % 2]
    lengths = ((400.0, 4.0), (180.0, 3.0))[start % 2]
    domain, values = _section(kernel, lengths, HELD_OUT_SEED + start)
    return domain, 100.0 + 30.0 * values


def _zurich(start: int) -> Made:
    return _section_grid(), lake.simulate(SIDE, SIDE, 118 + start)["chlorophyll"].to_numpy()


def _skewed(start: int) -> Made:
    domain, values = _square("matern52", 0.25, SECTION_SEED + 100 + start)
    return domain, np.exp(1.2 * values)


def _terrain_east() -> Made:
    """The eastern half of the elevation model."""
    frame, heights = fields.terrain(SIDE, east=True)
    return tv.Domain.grid(**{name: np.unique(frame[name]) for name in frame.columns}), heights


def _window(south: int, east: int) -> Made:
    """A window of the elevation model, from a row and a column on, as large as the terrain of
    `truvar.paper`."""
    from matplotlib.cbook import get_sample_data

    heights = np.asarray(get_sample_data("jacksboro_fault_dem.npz")["elevation"], dtype=float)
    steps = np.arange(
        0, TERRAIN_STEP * SIDE_OF_PAPER, 2 * TERRAIN_STEP
    )  # every second point of the paper's grid
    return tv.Domain.grid(south=steps, east=steps), heights[
        np.ix_(south + steps, east + steps)
    ].ravel()


# -- tables
# --------------------------------------------------------------------------------------------------


def _svm() -> Made:
    """The support vector machines that come with truvar."""
    frame = svm.table()
    domain = tv.Domain.grid(**dict(zip(svm.COLUMNS, svm.GRID, strict=True)))
    if not np.allclose(domain.points, frame[list(svm.COLUMNS)], atol=1e-5):
        raise ValueError("the table of support vector machines is not in the order of its grid")
    return domain, frame[svm.VALUE].to_numpy(float)


def _paper_svm(folder: Path) -> Made:
    """The paper's table of support vector machines, with logarithms of the parameters."""
    columns = ["C", "alpha", "epsilon"]
    frame = pd.read_csv(folder / "svm_on_grid.csv").sort_values(columns)
    axes = {f"log_{column}": np.log10(np.unique(frame[column])) for column in columns}
    domain = tv.Domain.grid(**axes)
    if not np.allclose(domain.points, np.log10(frame[columns])):
        raise ValueError("svm_on_grid.csv is not a full grid")
    return domain, frame["validation_error"].to_numpy(float)


def _gpu(folder: Path, first: bool) -> tuple[tv.Domain, Array, Array]:
    """Configurations of a program on a graphics processor: candidates, (log) time and its standard
    deviation.

    The tuning half has other rows than the held-out one, and the logarithm of the time.
    """
    frame = pd.read_csv(folder / "convolution_A4000.csv").sample(2 * ROWS, random_state=0)
    frame = frame.iloc[:ROWS] if first else frame.iloc[ROWS:]
    columns = list(frame.columns[:7])
    frame[columns[:4]] = np.log2(frame[columns[:4]])
    domain = tv.Domain.table(frame[columns].reset_index(drop=True))
    time = frame["time_ms_mean"].to_numpy(float)
    return domain, np.log(time) if first else time, frame["time_ms_std"].to_numpy(float)


def _rows(frame: pd.DataFrame, columns: list[str], value: str) -> Made:
    """The rows of a table; of many, every second or third."""
    frame = frame.dropna(subset=[*columns, value]).drop_duplicates(columns)
    frame = frame.iloc[:: -(-len(frame) // ROWS)].reset_index(drop=True)
    return tv.Domain.table(frame[columns]), frame[value].to_numpy(float)
