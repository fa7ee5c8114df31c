"""Fields of the suite: simulated fields and functions, the terrain, and tables of real
measurements.

All of it is drawn from fixed seeds. `side` is the number of points along each axis of a grid.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from truvar.models.fit import Model, fit
from truvar.models.kernels import covariance_function, named_kernel
from truvar.models.posterior import Posterior
from truvar.models.priors import Learned
from truvar.paper import lake

Array = NDArray[np.float64]
TRUTH = "value"  # the column that answers


def data_folder() -> Path | None:
    """Return the folder of measured data sets that TRUVAR_DATA names."""
    folder = os.environ.get("TRUVAR_DATA")
    return Path(folder) if folder else None


def grid(
    names: tuple[str, str], low: tuple[float, float], high: tuple[float, float], side: int
) -> pd.DataFrame:
    """The coordinates of a square grid of points, the second one fastest."""
    axes = [np.linspace(low[i], high[i], side) for i in range(2)]
    mesh = np.meshgrid(*axes, indexing="ij")
    return pd.DataFrame({name: m.ravel() for name, m in zip(names, mesh, strict=True)})


def section(side: int) -> pd.DataFrame:
    """The vertical section of a lake, of the paper's size."""
    return grid(("distance_m", "depth_m"), (0.0, -lake.DEPTH_M), (lake.LENGTH_M, 0.0), side)


def unit_square(side: int) -> pd.DataFrame:
    return grid(("x", "y"), (0.0, 0.0), (1.0, 1.0), side)


@lru_cache(maxsize=4)
def _root(kernel: str, lengths: tuple[float, ...], square: bool, side: int) -> Array:
    frame = unit_square(side) if square else section(side)
    points = frame.to_numpy()
    gram = covariance_function(named_kernel(kernel, list(lengths)))(points, points)
    return np.linalg.cholesky(gram + 1e-8 * np.eye(len(gram)))


def draws(
    kernel: str, lengths: tuple[float, ...], side: int, seeds: range, square: bool = False
) -> list[Array]:
    """Draws of a GP of unit variance on the section of a lake, or on the unit square."""
    root = _root(kernel, lengths, square, side)
    return [root @ np.random.default_rng(seed).standard_normal(len(root)) for seed in seeds]


def synthetic_optimum(side: int, seed: int) -> Array:
    """The paper's test function: the mean of a GP through 200 random values, squared
    exponential, l = 0.1."""
    rng = np.random.default_rng(seed)
    k = covariance_function(named_kernel("rbf", [0.1, 0.1]))
    knots = rng.random((200, 2))
    gram = k(knots, knots) + 1e-8 * np.eye(len(knots))
    values = np.linalg.cholesky(gram) @ rng.standard_normal(len(knots))
    return np.asarray(k(unit_square(side).to_numpy(), knots) @ np.linalg.solve(gram, values))


def terrain(side: int, east: bool) -> tuple[pd.DataFrame, Array]:
    """Heights (m) of one half of the Jacksboro fault's digital elevation model, which comes with
    matplotlib."""
    from matplotlib.cbook import get_sample_data

    heights = get_sample_data("jacksboro_fault_dem.npz")["elevation"].astype(
        float
    )  # (344, 403), every 3 arc seconds
    half = heights[:, 203:] if east else heights[:, :200]
    rows, columns = (np.linspace(0, n - 1, side).round().astype(int) for n in half.shape)
    frame = grid(
        ("north", "east"), (0.0, 0.0), (float(half.shape[0] - 1), float(half.shape[1] - 1)), side
    )
    return frame, np.asarray(half[np.ix_(rows, columns)].ravel())


def smoothed(
    frame: pd.DataFrame, columns: list[str], value: str, side: int, model: Model
) -> pd.DataFrame:
    """Scattered measurements as a field on a grid, as the paper has its lake: the posterior
    mean."""
    points = frame[columns].to_numpy(float)
    values = frame[value].to_numpy(float)
    low = points.min(axis=0)
    high = points.max(axis=0)
    table = grid((columns[0], columns[1]), (low[0], low[1]), (high[0], high[1]), side)
    posterior = Posterior(model.kernel, table.to_numpy(), model.mean)
    for x, y in zip(points, values, strict=True):
        posterior.add(x, float(model.noise or 0.0))
        posterior.observe(float(y))
    return table.assign(**{TRUTH: posterior.mean})


def fitted(frame: pd.DataFrame, columns: list[str], value: str) -> Model:
    """Hyperparameters of maximal likelihood, from at most 400 of the measurements."""
    points = frame[columns].to_numpy(float)
    values = frame[value].to_numpy(float)
    some = np.random.default_rng(0).permutation(len(points))[:400]
    family = Learned("matern52", noise=True)
    return fit(family, points[some], values[some], 0.0, np.ptp(points, axis=0), None, 0)


def first(
    make: Callable[[int], Array], count: int, fits: Callable[[Array], bool], start: int
) -> list[Array]:
    """The first `count` fields from seed `start` on that fit."""
    found: list[Array] = []
    seed = start
    while len(found) < count:
        field = make(seed)
        if fits(field):
            found.append(field)
        seed += 1
    return found
