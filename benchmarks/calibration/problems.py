"""Problems whose truth is known: families to tune on, and others that tables report.

A problem makes one instance per start from a fixed seed. Functions are the same for all starts but
for their threshold, which lies between two quantiles of the truth; fields are drawn again. Measured
tables are read from the folder that TRUVAR_DATA names, and left out without it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pandas as pd
from scipy.stats import qmc

import truvar as tv
from benchmarks.instances import Array, Instance, Noise
from truvar.models.kernels import named_kernel

SIDE = 24  # points along each axis of a square
LINE = 200  # points of a line
CLOUD = 600  # points of a table in three or more dimensions
TABLE = 900  # rows of a measured table, at most

MARGIN = 0.1  # of the points as good as the best, as a share of the range of the truth
MAP_ACCURACY = 0.02  # of a map, in standard deviations of the truth: no run ends before its steps

HALVES = ("tuning", "reported")
OWN_DRAWS = "own draws"
RIGHT = "right kernel given"
WRONG = "wrong kernel given"
YES_NO = "yes or no"
COUNTS = "counts"
DRAWN = (OWN_DRAWS, RIGHT, WRONG)  # families of draws from processes of variance 1

Function = Callable[[Array], Array]
"""A function of points in the unit cube, (n, d), that returns values (n,)."""

Make = Callable[[np.random.Generator], tuple[tv.Domain, Array]]
"""A function of a generator of random numbers that returns candidates and truth."""


@dataclass(frozen=True)
class Problem:
    """A problem of the suite.

    Attributes:
        name: Its name.
        half: "tuning" or "reported".
        family: What it is: a function by its dimension, a drawn field or a measured table.
        make: Function from a generator of random numbers to candidates and truth.
        noise: Standard deviation of the errors, as a share of that of the truth.
        freedom: Degrees of freedom of Student-t errors; None: normal errors.
        given: Kernel and length-scale that the study is given; None: it learns them.
        outcome: What a measurement gives of the truth; None: a number with an error.
    """

    name: str
    half: str
    family: str
    make: Callable[[np.random.Generator], tuple[tv.Domain, Array]]
    noise: float = 0.01
    freedom: float | None = None
    given: tuple[str, float] | None = None
    outcome: tv.Binary | tv.Count | None = None

    @property
    def model(self) -> dict[str, Any]:
        """The arguments of a study that describe the model."""
        if self.outcome is not None:
            return {"outcome": self.outcome}
        if self.given is None:
            return {}
        return {"kernel": named_kernel(*self.given), "noise": self.noise**2}

    def instance(self, goal: str, start: int) -> Instance:
        """Return the problem for a goal and the number of a start.

        Args:
            goal: "level set", "optimum", "map", or "within" for the points as good as the best.
            start: The number.
        """
        seed = (crc32(self.name.partition(", given")[0].encode()), start)
        rng = np.random.default_rng([*seed, 7])
        domain, truth = self.make(rng)
        unit = 1.0 if self.family in DRAWN else float(truth.std())
        noise = Noise(self.noise * unit, self.freedom)
        wanted: tv.Maximize | tv.LevelSet | tv.Map = tv.Maximize()
        if goal == "within":
            wanted = tv.LevelSet(within=MARGIN * float(np.ptp(truth)))
        if goal == "map":
            wanted = tv.Map(MAP_ACCURACY * float(truth.std()))
        if goal == "level set":
            wanted = tv.LevelSet(float(np.quantile(truth, rng.uniform(0.3, 0.9))))
        return Instance(domain, truth, wanted, noise, seed, self.outcome)


def _square() -> tv.Domain:
    axis = np.linspace(0.0, 1.0, SIDE)
    return tv.Domain.grid(x=axis, y=axis)


def _cloud(d: int) -> tv.Domain:
    points = qmc.Sobol(d, seed=d).random(1024)[:CLOUD]
    return tv.Domain.table(pd.DataFrame(points, columns=[f"x{k}" for k in range(d)]))


@lru_cache(maxsize=8)
def _domain(d: int) -> tv.Domain:
    if d == 1:
        return tv.Domain.grid(x=np.linspace(0.0, 1.0, LINE))
    return _square() if d == 2 else _cloud(d)


def _function(d: int, f: Function) -> Callable[[np.random.Generator], tuple[tv.Domain, Array]]:
    def make(_: np.random.Generator) -> tuple[tv.Domain, Array]:
        domain = _domain(d)
        return domain, f(domain.points)

    return make


def _process(
    name: str, lengthscale: float, warp: float = 1.0, d: int = 2
) -> Callable[[np.random.Generator], tuple[tv.Domain, Array]]:
    """Return a draw from a Gaussian process; a warp other than 1 makes it rougher towards 0."""

    def make(rng: np.random.Generator) -> tuple[tv.Domain, Array]:
        domain = _domain(d)
        covariance = named_kernel(name, lengthscale)(domain.points**warp)
        root = np.linalg.cholesky(covariance + 1e-8 * np.eye(len(covariance)))
        return domain, root @ rng.standard_normal(len(covariance))

    return make


def _skewed(name: str, lengthscale: float) -> Callable[..., tuple[tv.Domain, Array]]:
    """Return the exponential of a draw from a Gaussian process."""

    def make(rng: np.random.Generator) -> tuple[tv.Domain, Array]:
        domain, truth = _process(name, lengthscale)(rng)
        return domain, np.exp(1.5 * truth)

    return make


def _blobs(count: int, width: float, sharp: float = 2.0) -> Callable[..., tuple[tv.Domain, Array]]:
    """Return a sum of blobs at random places."""

    def make(rng: np.random.Generator) -> tuple[tv.Domain, Array]:
        domain = _domain(2)
        centres = rng.random((count, 2))
        widths = width * np.exp(0.4 * rng.standard_normal(count))
        heights = rng.uniform(0.5, 1.5, count)
        distance = np.linalg.norm(domain.points[:, None] - centres, axis=2) / widths
        return domain, (heights * np.exp(-0.5 * distance**sharp)).sum(axis=1)

    return make


def _front(steepness: float, waves: float) -> Callable[..., tuple[tv.Domain, Array]]:
    """Return a front: two plateaus with a bent boundary between them."""

    def make(rng: np.random.Generator) -> tuple[tv.Domain, Array]:
        domain = _domain(2)
        x, y = domain.points.T
        phase = rng.uniform(0, 6.3)
        tilt = rng.uniform(-0.5, 0.5)
        line = 0.5 + tilt * (x - 0.5) + 0.15 * np.sin(waves * x + phase)
        return domain, np.tanh(steepness * (y - line)) + 0.3 * x

    return make


@lru_cache(maxsize=8)
def _table(file: str, columns: tuple[str, ...], value: str, log: bool) -> tuple[tv.Domain, Array]:
    frame = pd.read_csv(Path(os.environ["TRUVAR_DATA"]) / file).dropna(subset=[*columns, value])
    frame = frame.groupby(list(columns), as_index=False)[value].mean()
    if len(frame) > TABLE:
        frame = frame.sample(TABLE, random_state=0).sort_index().reset_index(drop=True)
    truth = frame[value].to_numpy(float)
    domain = tv.Domain.table(frame[list(columns)])
    return domain, np.log(truth) if log else truth


def _measured(file: str, columns: tuple[str, ...], value: str, log: bool = False):
    def make(_: np.random.Generator) -> tuple[tv.Domain, Array]:
        return _table(file, columns, value, log)

    return make


def _answers(make: Make, steepness: float, outcome: tv.Binary) -> Make:
    """Return the probability of a yes, which rises with the values of another problem."""

    def answers(rng: np.random.Generator) -> tuple[tv.Domain, Array]:
        domain, truth = make(rng)
        return domain, outcome.link().inverse(steepness * (truth - truth.mean()) / truth.std())

    return answers


def _rates(make: Make, typical: float, spread: float) -> Make:
    """Return rates around a typical one, whose logarithm is that of another problem."""

    def rates(rng: np.random.Generator) -> tuple[tv.Domain, Array]:
        domain, truth = make(rng)
        return domain, typical * np.exp(spread * (truth - truth.mean()) / truth.std())

    return rates


def _branin(p: Array) -> Array:
    x = 15 * p[:, 0] - 5
    y = 15 * p[:, 1]
    bend = y - 5.1 * x**2 / (4 * np.pi**2) + 5 * x / np.pi - 6
    return -(bend**2 + 10 * (1 - 1 / (8 * np.pi)) * np.cos(x) + 10)


def _camel(p: Array) -> Array:
    x = 4 * p[:, 0] - 2
    y = 2 * p[:, 1] - 1
    return -((4 - 2.1 * x**2 + x**4 / 3) * x**2 + x * y + (-4 + 4 * y**2) * y**2)


def _goldstein(p: Array) -> Array:
    x = 4 * p[:, 0] - 2
    y = 4 * p[:, 1] - 2
    first = 1 + (x + y + 1) ** 2 * (19 - 14 * x + 3 * x**2 - 14 * y + 6 * x * y + 3 * y**2)
    second = 30 + (2 * x - 3 * y) ** 2 * (18 - 32 * x + 12 * x**2 + 48 * y - 36 * x * y + 27 * y**2)
    return -np.log(first * second)


def _ackley(reach: float) -> Function:
    def f(p: Array) -> Array:
        x = reach * (2 * p - 1) + 0.3
        d = p.shape[1]
        root = np.sqrt((x**2).sum(axis=1) / d)
        return 20 * np.exp(-0.2 * root) + np.exp(np.cos(2 * np.pi * x).sum(axis=1) / d)

    return f


HARTMANN_WEIGHTS = np.array([1.0, 1.2, 3.0, 3.2])
HARTMANN_3 = np.array([[3, 10, 30], [0.1, 10, 35], [3, 10, 30], [0.1, 10, 35]])
CENTRES_3 = 1e-4 * np.array(
    [[3689, 1170, 2673], [4699, 4387, 7470], [1091, 8732, 5547], [381, 5743, 8828]]
)
HARTMANN_6 = np.array(
    [
        [10, 3, 17, 3.5, 1.7, 8],
        [0.05, 10, 17, 0.1, 8, 14],
        [3, 3.5, 1.7, 10, 17, 8],
        [17, 8, 0.05, 10, 0.1, 14],
    ]
)
CENTRES_6 = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)


def _hartmann(scales: Array, centres: Array) -> Function:
    def f(p: Array) -> Array:
        distance = ((p[:, None] - centres) ** 2 * scales).sum(axis=2)
        return np.exp(-distance) @ HARTMANN_WEIGHTS

    return f


def _michalewicz(p: Array) -> Array:
    x = np.pi * p
    order = np.arange(1, p.shape[1] + 1)
    return (np.sin(x) * np.sin(order * x**2 / np.pi) ** 4).sum(axis=1)


def _ishigami(p: Array) -> Array:
    x, y, z = (2 * np.pi * p - np.pi).T
    return np.sin(x) + 7 * np.sin(y) ** 2 + 0.1 * z**4 * np.sin(x)


def _friedman(p: Array) -> Array:
    a, b, c, d, e = p.T
    return 10 * np.sin(np.pi * a * b) + 20 * (c - 0.5) ** 2 + 10 * d + 5 * e


def _gramacy(p: Array) -> Array:
    x = 0.5 + 2 * p[:, 0]
    return np.sin(10 * np.pi * x) / (2 * x) + (x - 1) ** 4


def _two_sines(p: Array) -> Array:
    x = p[:, 0]
    return np.sin(7 * x) + 0.5 * np.sin(19 * x + 1)


def _ridge(p: Array) -> Array:
    x, y = p.T
    return np.exp(-((x + 0.4 * y - 0.8) ** 2) / 0.005) + 0.5 * y


def _colville(p: Array) -> Array:
    a, b, c, d = (4 * p - 2).T
    value = 100 * (a**2 - b) ** 2 + (a - 1) ** 2 + (c - 1) ** 2 + 90 * (c**2 - d) ** 2
    return -np.log1p(value + 10.1 * ((b - 1) ** 2 + (d - 1) ** 2) + 19.8 * (b - 1) * (d - 1))


def _rosenbrock(p: Array) -> Array:
    x = 4 * p - 2
    terms = 100 * (x[:, 1:] - x[:, :-1] ** 2) ** 2 + (1 - x[:, :-1]) ** 2
    return -np.log1p(terms.sum(axis=1))


def _himmelblau(p: Array) -> Array:
    x, y = (10 * p - 5).T
    return -((x**2 + y - 11) ** 2) - (x + y**2 - 7) ** 2


def _three_hump(p: Array) -> Array:
    x, y = (4 * p - 2).T
    return -(2 * x**2 - 1.05 * x**4 + x**6 / 6 + x * y + y**2)


def _levy(p: Array) -> Array:
    w = 1 + (8 * p - 4 - 1) / 4
    inner = (w[:, :-1] - 1) ** 2 * (1 + 10 * np.sin(np.pi * w[:, :-1] + 1) ** 2)
    last = (w[:, -1] - 1) ** 2 * (1 + np.sin(2 * np.pi * w[:, -1]) ** 2)
    return -(np.sin(np.pi * w[:, 0]) ** 2 + inner.sum(axis=1) + last)


def _styblinski(p: Array) -> Array:
    x = 10 * p - 5
    return -0.5 * (x**4 - 16 * x**2 + 5 * x).sum(axis=1)


def _schwefel(p: Array) -> Array:
    x = 400 * p - 100
    return (x * np.sin(np.sqrt(np.abs(x)))).sum(axis=1)


def _griewank(p: Array) -> Array:
    x = 12 * p - 5
    order = np.sqrt(np.arange(1, p.shape[1] + 1))
    return -((x**2).sum(axis=1) / 400 - np.cos(x / order).prod(axis=1))


def _forrester(p: Array) -> Array:
    x = p[:, 0]
    return -((6 * x - 2) ** 2) * np.sin(12 * x - 4)


def _doppler(p: Array) -> Array:
    x = p[:, 0]
    return np.sqrt(x * (1 - x)) * np.sin(2.1 * np.pi / (x + 0.15))


def _step(p: Array) -> Array:
    x, y = p.T
    return np.where(x + 0.3 * np.sin(4 * y) > 0.55, 1.0, 0.0) + 0.2 * y


def _franke(p: Array) -> Array:
    x, y = 9 * p.T
    return (
        0.75 * np.exp(-((x - 2) ** 2 + (y - 2) ** 2) / 4)
        + 0.75 * np.exp(-((x + 1) ** 2) / 49 - (y + 1) / 10)
        + 0.5 * np.exp(-((x - 7) ** 2 + (y - 3) ** 2) / 4)
        - 0.2 * np.exp(-((x - 4) ** 2) - (y - 7) ** 2)
    )


def _otl(p: Array) -> Array:
    low = np.array([50, 25, 0.5, 1.2, 0.25, 50])
    high = np.array([150, 70, 3, 2.5, 1.2, 300])
    b1, b2, f, c1, c2, beta = (low + (high - low) * p).T
    middle = 12 * b2 / (b1 + b2)
    load = beta * (c2 + 9)
    return (
        (middle + 0.74) * load / (load + f)
        + 11.35 * f / (load + f)
        + 0.74 * f * load / ((load + f) * c1)
    )


def _robot(p: Array) -> Array:
    angles = np.cumsum(np.pi * p[:, :2], axis=1)
    lengths = 0.5 + p[:, 2:4]
    return np.hypot((lengths * np.cos(angles)).sum(axis=1), (lengths * np.sin(angles)).sum(axis=1))


def _exponential(p: Array) -> Array:
    x, y = (8 * p - 2).T
    return x * np.exp(-(x**2) - y**2)


def _quadratic(p: Array) -> Array:
    weights = np.arange(1, p.shape[1] + 1)
    return -(weights * (p - 0.4) ** 2).sum(axis=1)


def _corner(p: Array) -> Array:
    return np.exp(-20 * ((p - np.array([0.8, 0.75])) ** 2).sum(axis=1))


def _beale(p: Array) -> Array:
    x, y = (9 * p - 4.5).T
    value = (1.5 - x + x * y) ** 2 + (2.25 - x + x * y**2) ** 2 + (2.625 - x + x * y**3) ** 2
    return -np.log1p(value)


def _booth(p: Array) -> Array:
    x, y = (20 * p - 10).T
    return -np.log1p((x + 2 * y - 7) ** 2 + (2 * x + y - 5) ** 2)


def _mccormick(p: Array) -> Array:
    x = 5.5 * p[:, 0] - 1.5
    y = 7 * p[:, 1] - 3
    return -(np.sin(x + y) + (x - y) ** 2 - 1.5 * x + 2.5 * y + 1)


def _bukin(p: Array) -> Array:
    x = 10 * p[:, 0] - 15
    y = 6 * p[:, 1] - 3
    return -(100 * np.sqrt(np.abs(y - 0.01 * x**2)) + 0.01 * np.abs(x + 10))


def _drop_wave(p: Array) -> Array:
    square = ((4 * p - 2) ** 2).sum(axis=1)
    return (1 + np.cos(4 * np.sqrt(square))) / (0.5 * square + 2)


def _cliff(p: Array) -> Array:
    x, y = p.T
    return 1 / (1 + np.exp(-40 * (x - 0.3 - 0.4 * y) * (0.1 + y))) + 0.1 * np.sin(6 * x)


def _spiral(p: Array) -> Array:
    x, y = (2 * p - 1).T
    return np.cos(6 * np.hypot(x, y) - np.arctan2(y, x))


def _zakharov(p: Array) -> Array:
    x = 8 * p - 4
    lean = (0.5 * np.arange(1, p.shape[1] + 1) * x).sum(axis=1)
    return -np.log1p((x**2).sum(axis=1) + lean**2 + lean**4)


def _quiet_half(p: Array) -> Array:
    x = p[:, 0]
    return 0.2 * x + np.where(x > 0.6, np.sin(40 * (x - 0.6)) * (x - 0.6), 0.0)


def _spike(p: Array) -> Array:
    x = p[:, 0]
    return 0.3 * np.sin(3 * x) + np.exp(-(((x - 0.63) / 0.02) ** 2))


def _chirp(p: Array) -> Array:
    x = p[:, 0]
    return np.sin(3 + 40 * x**3)


def _jumps(p: Array) -> Array:
    x = p[:, 0]
    return np.where(x > 0.35, 1.0, 0.0) - np.where(x > 0.8, 0.7, 0.0) + 0.4 * np.sin(5 * x)


def _gorge(p: Array) -> Array:
    x, y = p.T
    return -np.exp(-(((y - 0.5 - 0.3 * np.sin(5 * x)) / 0.03) ** 2)) + 0.3 * x


def _steep_corner(p: Array) -> Array:
    return (p[:, 0] * p[:, 1]) ** 6


def _lone_bump(p: Array) -> Array:
    distance = ((p - np.array([0.28, 0.66])) ** 2).sum(axis=1)
    return np.exp(-distance / 0.01) + 0.05 * p[:, 0]


def _planes(p: Array) -> Array:
    x, y = p.T
    return np.minimum.reduce([x + 0.2 * y, 0.9 - y + 0.3 * x, 1.1 - 0.8 * x])


def _stairs(p: Array) -> Array:
    return np.floor(3 * p[:, 0] + 2 * p[:, 1] ** 2)


def _ripples(p: Array) -> Array:
    x, y = p.T
    return np.sin(16 * x**2) * y**2 + 0.3 * y


def _thin_shell(p: Array) -> Array:
    radius = np.sqrt(((p - 0.4) ** 2).sum(axis=1))
    return np.exp(-(((radius - 0.45) / 0.08) ** 2))


def _product_peak(p: Array) -> Array:
    return 1 / (1 + 8 * (p - 0.35) ** 2).prod(axis=1) ** 2


def _corner_peak(p: Array) -> Array:
    weights = np.linspace(0.4, 1.6, p.shape[1])
    return (1 + p @ weights) ** -(p.shape[1] + 1.0)


def _kinks(p: Array) -> Array:
    return -np.abs(p - np.linspace(0.3, 0.7, p.shape[1])).sum(axis=1) + np.abs(p[:, 0] - p[:, 1])


def _problems() -> list[Problem]:
    found: list[Problem] = []

    def add(half: str, family: str, name: str, make, **options) -> None:
        found.append(Problem(name, half, family, make, **options))

    tuning, reported = HALVES
    for half, dimension, name, f, noise in (
        (tuning, 1, "gramacy", _gramacy, 0.05),
        (tuning, 1, "two sines", _two_sines, 0.2),
        (tuning, 2, "branin", _branin, 0.01),
        (tuning, 2, "camel", _camel, 0.1),
        (tuning, 2, "goldstein-price", _goldstein, 0.05),
        (tuning, 2, "ackley", _ackley(4.0), 0.01),
        (tuning, 2, "michalewicz", _michalewicz, 0.1),
        (tuning, 2, "ridge", _ridge, 0.02),
        (tuning, 3, "hartmann-3", _hartmann(HARTMANN_3, CENTRES_3), 0.02),
        (tuning, 3, "ishigami", _ishigami, 0.1),
        (tuning, 4, "colville", _colville, 0.05),
        (tuning, 5, "friedman", _friedman, 0.1),
        (tuning, 6, "hartmann-6", _hartmann(HARTMANN_6, CENTRES_6), 0.01),
        (tuning, 1, "quiet half", _quiet_half, 0.03),
        (tuning, 2, "corner", _corner, 0.01),
        (tuning, 2, "beale", _beale, 0.02),
        (tuning, 2, "booth", _booth, 0.05),
        (tuning, 2, "mccormick", _mccormick, 0.1),
        (tuning, 2, "bukin", _bukin, 0.02),
        (tuning, 2, "drop-wave", _drop_wave, 0.05),
        (tuning, 2, "cliff", _cliff, 0.05),
        (tuning, 2, "spiral", _spiral, 0.2),
        (tuning, 3, "zakharov", _zakharov, 0.02),
        (tuning, 1, "spike", _spike, 0.02),
        (tuning, 1, "chirp", _chirp, 0.05),
        (tuning, 1, "jumps", _jumps, 0.05),
        (tuning, 2, "gorge", _gorge, 0.02),
        (tuning, 2, "steep corner", _steep_corner, 0.01),
        (tuning, 2, "lone bump", _lone_bump, 0.02),
        (tuning, 2, "planes", _planes, 0.05),
        (tuning, 2, "stairs", _stairs, 0.1),
        (tuning, 2, "ripples", _ripples, 0.3),
        (tuning, 3, "thin shell", _thin_shell, 0.05),
        (tuning, 4, "kinks", _kinks, 0.1),
        (tuning, 5, "product peak", _product_peak, 0.02),
        (tuning, 6, "corner peak", _corner_peak, 0.05),
        (reported, 1, "forrester", _forrester, 0.05),
        (reported, 1, "doppler", _doppler, 0.02),
        (reported, 2, "rosenbrock", _rosenbrock, 0.02),
        (reported, 2, "himmelblau", _himmelblau, 0.1),
        (reported, 2, "three-hump camel", _three_hump, 0.01),
        (reported, 2, "levy", _levy, 0.05),
        (reported, 2, "styblinski-tang", _styblinski, 0.2),
        (reported, 2, "schwefel", _schwefel, 0.05),
        (reported, 2, "griewank", _griewank, 0.1),
        (reported, 2, "franke", _franke, 0.3),
        (reported, 2, "step", _step, 0.05),
        (reported, 2, "exponential", _exponential, 0.01),
        (reported, 3, "levy-3", _levy, 0.05),
        (reported, 4, "robot arm", _robot, 0.02),
        (reported, 5, "quadratic-5", _quadratic, 0.1),
        (reported, 6, "otl circuit", _otl, 0.02),
    ):
        add(half, f"function, d = {dimension}", name, _function(dimension, f), noise=noise)
    for half, name, make, noise in (
        (tuning, "blobs", _blobs(7, 0.13), 0.05),
        (tuning, "front", _front(8.0, 5.0), 0.02),
        (tuning, "wide blobs, much noise", _blobs(5, 0.2), 0.4),
        (tuning, "warped field", _process("matern52", 0.35, 2.0), 0.05),
        (tuning, "skewed field", _skewed("matern52", 0.25), 0.02),
        (tuning, "rough field, much noise", _process("matern12", 0.5), 0.3),
        (reported, "plumes", _blobs(4, 0.09, 1.3), 0.05),
        (reported, "thermocline", _front(14.0, 9.0), 0.1),
        (reported, "islands, much noise", _blobs(9, 0.16), 0.4),
        (reported, "strongly warped field", _process("matern32", 0.5, 3.0), 0.02),
    ):
        add(half, "field", name, make, noise=noise)
    add(tuning, "heavy tails", "camel, heavy tails", _function(2, _camel), noise=0.05, freedom=3.0)
    add(reported, "heavy tails", "levy, heavy tails", _function(2, _levy), noise=0.05, freedom=3.0)
    for half, name, scale in (
        (tuning, "matern32", 0.35),
        (tuning, "matern52", 0.25),
        (tuning, "rbf", 0.2),
        (reported, "matern52", 0.2),
        (reported, "matern32", 0.5),
        (reported, "rbf", 0.3),
        (reported, "matern52", 0.4),
    ):
        text = f"{name} draws, {scale}"
        make = _process(name, scale)
        add(half, OWN_DRAWS, text, make, noise=0.1)
        add(half, RIGHT, f"{text}, given", make, noise=0.1, given=(name, scale))
        others = {"twice": (name, 2 * scale), "half": (name, scale / 2)}
        others["another family"] = ("matern32" if name == "rbf" else "rbf", scale)
        for wrong, given in others.items():
            add(half, WRONG, f"{text}, given {wrong}", make, noise=0.1, given=given)
    yes_no = tv.Binary()
    two_choices = tv.Binary(guess=0.5, lapse=0.02)
    for half, name, make, steepness, outcome in (
        (tuning, "two sines", _function(1, _two_sines), 1.5, yes_no),
        (tuning, "camel", _function(2, _camel), 2.0, yes_no),
        (tuning, "mccormick", _function(2, _mccormick), 1.5, two_choices),
        (tuning, "front", _front(8.0, 5.0), 3.0, yes_no),
        (tuning, "blobs", _blobs(7, 0.13), 1.5, yes_no),
        (tuning, "hartmann-3", _function(3, _hartmann(HARTMANN_3, CENTRES_3)), 2.0, yes_no),
        (tuning, "matern52 draws, 0.25", _process("matern52", 0.25), 1.5, yes_no),
        (tuning, "rbf draws, 0.4", _process("rbf", 0.4), 2.0, two_choices),
        (reported, "forrester", _function(1, _forrester), 2.0, yes_no),
        (reported, "himmelblau", _function(2, _himmelblau), 2.0, yes_no),
        (reported, "levy", _function(2, _levy), 1.5, yes_no),
        (reported, "styblinski-tang", _function(2, _styblinski), 2.0, two_choices),
        (reported, "thermocline", _front(14.0, 9.0), 3.0, yes_no),
        (reported, "plumes", _blobs(4, 0.09, 1.3), 1.5, yes_no),
        (reported, "robot arm", _function(4, _robot), 2.0, yes_no),
        (reported, "matern32 draws, 0.5", _process("matern32", 0.5), 2.0, yes_no),
        (reported, "rbf draws, 0.3", _process("rbf", 0.3), 1.5, two_choices),
    ):
        answers = _answers(make, steepness, outcome)
        add(half, YES_NO, f"{name}, {YES_NO}", answers, outcome=outcome)
    for half, name, make, typical, spread in (
        (tuning, "two sines", _function(1, _two_sines), 3.0, 0.7),
        (tuning, "camel", _function(2, _camel), 1.0, 0.8),
        (tuning, "front", _front(8.0, 5.0), 5.0, 0.7),
        (tuning, "blobs", _blobs(7, 0.13), 2.0, 1.0),
        (tuning, "hartmann-3", _function(3, _hartmann(HARTMANN_3, CENTRES_3)), 10.0, 0.5),
        (tuning, "matern52 draws, 0.25", _process("matern52", 0.25), 2.0, 0.7),
        (reported, "forrester", _function(1, _forrester), 4.0, 0.8),
        (reported, "himmelblau", _function(2, _himmelblau), 2.0, 0.7),
        (reported, "franke", _function(2, _franke), 20.0, 0.5),
        (reported, "thermocline", _front(14.0, 9.0), 3.0, 0.8),
        (reported, "plumes", _blobs(4, 0.09, 1.3), 1.0, 1.0),
        (reported, "robot arm", _function(4, _robot), 5.0, 0.6),
        (reported, "matern32 draws, 0.5", _process("matern32", 0.5), 2.0, 0.8),
    ):
        add(half, COUNTS, f"{name}, {COUNTS}", _rates(make, typical, spread), outcome=tv.Count())
    if "TRUVAR_DATA" in os.environ:
        gpu = ("block_size_x", "block_size_y", "tile_size_x", "tile_size_y", "read_only")
        for half, file, columns, value, log in (
            (tuning, "glider_transect", ("distance_km", "depth_m"), "chl_mg_m3", False),
            (tuning, "svm_on_grid", ("C", "alpha", "epsilon"), "validation_error", False),
            (reported, "reservoir_transect", ("distance_m", "depth_m"), "total_chl_ugL", False),
            (reported, "wafer_lifetime", ("x_mm", "y_mm"), "lifetime_us", False),
            (reported, "convolution_A4000", gpu, "time_ms_mean", True),
        ):
            add(half, "table", file, _measured(f"{file}.csv", columns, value, log))
    return found


PROBLEMS = {problem.name: problem for problem in _problems()}


@dataclass(frozen=True)
class Pair:
    """Two quantities on the same candidates: the truths of two problems of the suite.

    Attributes:
        first: Name of the problem whose truth is the first quantity.
        second: Name of the problem whose truth is the second.
    """

    first: str
    second: str

    def instances(self, start: int) -> dict[str, Instance]:
        """Return both quantities by name, with the number of a start."""
        return {
            "first": PROBLEMS[self.first].instance("level set", start),
            "second": PROBLEMS[self.second].instance("level set", start + 100),
        }


PAIRS: dict[str, list[Pair]] = {
    "tuning": [
        Pair("camel", "blobs"),
        Pair("branin", "front"),
        Pair("matern52 draws, 0.25", "rbf draws, 0.2"),
    ],
    "reported": [
        Pair("himmelblau", "franke"),
        Pair("levy", "plumes"),
        Pair("styblinski-tang", "thermocline"),
        Pair("griewank", "islands, much noise"),
        Pair("matern52 draws, 0.2", "matern32 draws, 0.5"),
        Pair("rbf draws, 0.3", "matern52 draws, 0.4"),
    ],
}
