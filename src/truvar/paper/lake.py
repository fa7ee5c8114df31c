"""A simulated lake in place of the paper's Lake Zurich: a vertical section of 1478 m by 18 m.

The data set of the paper is not part of this package, so this lake is a formula: a layer of algae
that thickens into three patches, over a background that decreases with depth, times a small random
Matern-5/2 texture. It is a function of the coordinates and not a table, so every resolution shows
the same lake.

The constants below are not in the paper, which gives the number of measurements, the grid, the
kernel (Matern-5/2), the cost and a threshold of 1.5, but no hyperparameters, no size and no range
of the values.

- Mean, length-scales, signal and noise are those of a public program by the first author of GCHK,
  the earlier level-set paper (`util.py` in https://github.com/3lectrologos/LimnoPlanner): mean 2.4,
  and 5.5, 1, 0.75 and -1 as logarithms. Its kernel is squared exponential. By its name, the file
  that it reads is a log of 14 July 2011 with values of blue-green algae.
- Length, depth, the range of the values and the three patches follow a description of that log. We
  could not compare them with the log itself.
- The threshold 7 is ours: 7 % of the section lie above it, in three patches. With 1.5 it would be
  62 %.

    python -m truvar.paper.lake examples/lake.csv
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Array = NDArray[np.float64]

LENGTH_M: Final = 1478.0
"""Length of the transect; `distance_m` goes from 0 to this value."""
DEPTH_M: Final = 18.0
"""Depth of the section; `depth_m` goes from minus this value to 0 at the surface."""
THRESHOLD: Final = 7.0
"""Threshold h; a higher concentration is a bloom. The paper's is 1.5, for its own data."""

LENGTHSCALES: Final = (244.7, 2.72)
"""Length-scales of the Matern-5/2 kernel in metres, along the transect and in depth."""
MEAN: Final = 2.4
"""Constant prior mean of the concentration."""
SIGNAL_SD: Final = 2.117
"""Prior standard deviation of the concentration."""
NOISE_SD: Final = 0.37
"""Standard deviation of one measurement."""


@dataclass(frozen=True)
class _Patch:
    """A patch of algae with a Gaussian profile.

    Attributes:
        distance_m: Distance of the centre.
        depth_m: Depth of the centre.
        reach_m: Standard deviation of the profile along the transect.
        thickness_m: Standard deviation of the profile in depth.
        peak: Concentration that the patch adds at its centre.
    """

    distance_m: float
    depth_m: float
    reach_m: float
    thickness_m: float
    peak: float

    def __call__(self, distance: Array, depth: Array) -> Array:
        """Return the concentration that the patch adds at points in metres."""
        along = (distance - self.distance_m) / self.reach_m
        down = (depth - self.depth_m) / self.thickness_m
        return np.asarray(self.peak * np.exp(-0.5 * (along**2 + down**2)))


_PATCHES: Final = (
    _Patch(215.0, -8.2, 160.0, 1.75, 4.5),
    _Patch(700.0, -9.0, 115.0, 1.50, 4.9),
    _Patch(1205.0, -8.4, 175.0, 1.60, 4.7),
)


def simulate(n_distance: int = 50, n_depth: int = 50, seed: int = 118) -> pd.DataFrame:
    """Return the lake on a regular grid.

    Args:
        n_distance: Number of grid points along the transect.
        n_depth: Number of grid points in depth.
        seed: Seed of the texture. With the default the three patches are separate; with another
            they may touch.

    Returns:
        A table with the columns `distance_m`, `depth_m` and `chlorophyll`, the true concentration;
        depth varies fastest.
    """
    distance, depth = np.meshgrid(
        np.linspace(0.0, LENGTH_M, n_distance), np.linspace(-DEPTH_M, 0.0, n_depth), indexing="ij"
    )
    value = concentration(distance.ravel(), depth.ravel(), seed)
    return pd.DataFrame(
        {"distance_m": distance.ravel(), "depth_m": depth.ravel(), "chlorophyll": value}
    )


def concentration(distance: Array, depth: Array, seed: int = 118) -> Array:
    """Return the true concentration.

    Args:
        distance: Distances along the transect in metres.
        depth: Depths in metres, negative.
        seed: Seed of the texture.
    """
    background = 1.25 + 0.4 / (1.0 + np.exp(-(depth + 8.0) / 1.5))
    ridge = -8.6 + 0.6 * np.cos(2.0 * np.pi * (distance - 150.0) / 1000.0)
    layer = 2.2 * np.exp(-0.5 * ((depth - ridge) / 1.4) ** 2)
    patches = sum((patch(distance, depth) for patch in _PATCHES), np.zeros_like(distance))
    return np.asarray(
        (background + layer + patches) * np.exp(0.22 * _texture(distance, depth, seed))
    )


def _texture(distance: Array, depth: Array, seed: int, waves: int = 400) -> Array:
    """Return a draw of a Matern-5/2 field with unit variance and the lake's length-scales.

    The draw is a sum of random waves whose frequencies follow the spectral density of the kernel, a
    Student t distribution with 2 nu degrees of freedom.

    Args:
        distance: Distances along the transect in metres.
        depth: Depths in metres.
        seed: Seed of the waves.
        waves: Number of waves.
    """
    random = np.random.RandomState(seed)  # NumPy guarantees this stream, unlike that of default_rng
    nu = 2.5
    frequency = random.standard_normal((waves, 2)) / np.sqrt(
        random.chisquare(2 * nu, (waves, 1)) / (2 * nu)
    )
    phase = random.uniform(0.0, 2.0 * np.pi, waves)  # nosec B311
    points = np.column_stack([distance / LENGTHSCALES[0], depth / LENGTHSCALES[1]])
    field = np.cos(points @ frequency.T + phase).sum(axis=1)
    return np.asarray(np.sqrt(2.0 / waves) * field)


def _write_csv(path: str | Path) -> None:
    """Write the lake, rounded to four decimals, as a CSV file such as `examples/lake.csv`."""
    simulate().round(4).to_csv(path, index=False, lineterminator="\n")


if __name__ == "__main__":
    _write_csv(sys.argv[1])
