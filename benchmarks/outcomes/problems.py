"""Test problems of psychophysics, from their published formulas. NumPy alone: every method's process imports it.

| name | formula | threshold |
|---|---|---|
| detection | Owen et al. (2021), arXiv 2104.09549: novel detection in two dimensions | 0.75 |
| discrimination | the same: novel discrimination, at least one half everywhere | 0.75 |
| hartmann-6 | Letham et al. (2022), arXiv 2203.09751: a modified Hartmann function in six dimensions | 0.5 |
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import erf

import numpy as np

Array = np.ndarray

SIDE = 30  # points along each axis of the grid that errors are counted on, in two dimensions
CLOUD = 1000  # points that they are counted on in six

_HARTMANN_WEIGHTS = np.array([0.2, 0.22, 0.28, 0.3])
_HARTMANN_SCALES = np.array(
    [
        [8, 3, 10, 3.5, 1.7, 6],
        [0.5, 8, 10, 1.0, 6, 9],
        [3, 3.5, 1.7, 8, 10, 6],
        [10, 6, 0.5, 8, 1.0, 9],
    ]
)
_HARTMANN_CENTRES = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)


def _context(frequency: Array) -> Array:
    return 2 * (0.05 + 0.4 * (-1 + 0.2 * frequency) ** 2 * frequency**2)


def _detection(x: Array) -> Array:
    return 4 * (x[:, 1] + 1) / _context(x[:, 0]) - 4


def _discrimination(x: Array) -> Array:
    return 2 * (x[:, 1] + 1) / _context(x[:, 0])


def _hartmann(x: Array) -> Array:
    distance = ((x[:, None] - _HARTMANN_CENTRES) ** 2 * _HARTMANN_SCALES).sum(axis=2)
    return 3 * (-10 * (np.exp(-distance) @ _HARTMANN_WEIGHTS - 0.1)) - 2


@dataclass(frozen=True)
class Problem:
    """A probability of a yes in a box.

    Attributes:
        latent: Function of points (n, d); the probability is its normal distribution function.
        low: Lower ends of the box. (d,)
        high: Upper ends. (d,)
        threshold: Threshold of the probability.
    """

    latent: Callable[[Array], Array]
    low: tuple[float, ...]
    high: tuple[float, ...]
    threshold: float

    def probability(self, x: Array) -> Array:
        """Return the probability of a yes at points (n, d): (n,)."""
        return np.array([0.5 * (1 + erf(f / 2**0.5)) for f in self.latent(np.atleast_2d(x))])

    @property
    def points(self) -> Array:
        """The points that errors are counted on, (n, d)."""
        low = np.array(self.low)
        high = np.array(self.high)
        if len(low) == 2:
            axis = (np.arange(SIDE) + 0.5) / SIDE
            unit = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
        else:
            unit = np.random.default_rng(0).random((CLOUD, len(low)))
        return low + (high - low) * unit

    def answer(self, x: Array, start: int, trial: int) -> int:
        """Return the answer of a trial at a point (d,)."""
        uniform = np.random.default_rng([start, trial]).random()
        return int(uniform < self.probability(x[None, :])[0])


PROBLEMS = {
    "detection": Problem(_detection, (-1.0, -1.0), (1.0, 1.0), 0.75),
    "discrimination": Problem(_discrimination, (-1.0, -1.0), (1.0, 1.0), 0.75),
    "hartmann-6": Problem(_hartmann, (0.0,) * 6, (1.0,) * 6, 0.5),
}
