"""Fields for the level-set figures: the simulated lake, real terrain, measured transects.

A `Field` has values on a grid of 50 x 50 points, a threshold, a Gaussian process that fits it, and
a cost as in the paper: for travel along the first coordinate, and for depth along the second.

Measured transects take the place of the paper's lake data and are processed in the same way: a
Matern-5/2 kernel is fitted to a second data set by maximum likelihood, and the truth is the
posterior mean on the grid given the first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.linalg import cho_factor, cho_solve

from truvar._typing import Array
from truvar.domain.domain import Domain
from truvar.exceptions import InvalidDomainError, import_optional
from truvar.models.fit import fit
from truvar.models.kernels import named_kernel
from truvar.models.priors import Learned
from truvar.paper import lake
from truvar.problem import Problem
from truvar.tabular.tables import read_table

SIDE = 50  # points per axis
# Noise variance of the model that stands for no noise, as a share of the signal variance: a
# standard deviation of one per cent of the signal's. `truvar.paper.noiseless` has less.
NOISELESS = 1e-4
TERRAIN_STEP = 2  # the terrain has every second row and column of the elevation model
_KM_PER_DEGREE = 111.2  # of latitude
_MAX_FIT = 400  # measurements that hyperparameters are learned from, at most
# Column of the measured quantity -> column of the distance: of a glider, and of a boat on a
# reservoir.
_TRANSECTS = {"chl_mg_m3": "distance_km", "total_chl_ugL": "distance_m"}


@dataclass(frozen=True)
class Field:
    """A field on a grid, with its model and the cost of measuring it.

    Attributes:
        name: Name for titles.
        domain: The grid.
        truth: True values on the grid, without noise.
        threshold: Threshold of the level set.
        lengthscales: Length-scales of the Matern-5/2 kernel.
        variance: Signal variance.
        mean: Prior mean.
        cost: Cost, as in the table `[cost]` of a problem file.
    """

    name: str
    domain: Domain
    truth: Array
    threshold: float
    lengthscales: tuple[float, ...]
    variance: float
    mean: float
    cost: Mapping[str, Any]

    def problem(self, cost: bool, noise: float = NOISELESS) -> Problem:
        """Return the level-set problem.

        Args:
            cost: Whether to use the field's cost; otherwise every measurement costs 1.
            noise: Noise variance of the model, as a share of the signal variance.
        """
        spec: dict[str, Any] = {
            "goal": {"level_set": self.threshold, "monotone": True},
            "model": {
                "kernel": "matern52",
                "lengthscales": list(self.lengthscales),
                "variance": self.variance,
                "mean": self.mean,
                "exact": True,
            },
            "noise": {"variance": noise * self.variance},
        }
        if cost:
            spec["cost"] = dict(self.cost)
        return Problem(self.name, spec, Path(), self.domain)

    @property
    def facts(self) -> dict[str, Any]:
        """Settings, for the JSON file."""
        return {
            "field": self.name,
            "points": len(self.domain),
            "threshold": self.threshold,
            "share_above": float((self.truth >= self.threshold).mean()),
            "lengthscales": dict(zip(self.domain.columns, self.lengthscales, strict=True)),
            "cost": dict(self.cost),
        }


def load_field(path: Path | None) -> Field:
    """Return the field of a file, or the simulated lake.

    Args:
        path: Path of a CSV file with a transect. Its columns tell which of `_TRANSECTS` it is;
            None: the lake.

    Raises:
        InvalidDomainError: If the file has none of the columns.
    """
    if path is None:
        return simulated_lake()
    frame = read_table(path)
    for value, along in _TRANSECTS.items():
        if value in frame.columns:
            return _transect_field(
                path.stem, *_split_transect(path, frame), (along, "depth_m"), value
            )
    raise InvalidDomainError(
        f"--data must be a transect with a column {' or '.join(_TRANSECTS)}, got {path} with the "
        "columns "
        f"{', '.join(map(str, frame.columns))}; rename the column of the measured quantity to one "
        "of them"
    )


def simulated_lake() -> Field:
    """Return the lake of `truvar.paper.lake`, with its hyperparameters and the paper's cost."""
    truth = lake.simulate(SIDE, SIDE)["chlorophyll"].to_numpy()
    domain = Domain.grid(
        distance_m=np.linspace(0.0, lake.LENGTH_M, SIDE),
        depth_m=np.linspace(-lake.DEPTH_M, 0.0, SIDE),
    )
    return Field(
        "simulated lake",
        domain,
        truth,
        threshold=lake.THRESHOLD,
        lengthscales=lake.LENGTHSCALES,
        variance=lake.SIGNAL_SD**2,
        mean=lake.MEAN,
        cost=_cost(domain, depth_column="depth_m"),
    )


def terrain() -> Field:
    """Return the elevation around the Jacksboro fault; the highest quarter is above.

    The elevation model comes with matplotlib. There is no second data set, so the hyperparameters
    are learned from a tenth of the field itself.
    """
    heights = import_optional("matplotlib.cbook", "the terrain", "plot").get_sample_data(
        "jacksboro_fault_dem.npz"
    )
    rows = np.arange(0, TERRAIN_STEP * SIDE, TERRAIN_STEP)
    truth = np.asarray(heights["elevation"], dtype=float)[np.ix_(rows, rows)].T.ravel()
    degrees = TERRAIN_STEP * float(heights["dx"]) * np.arange(SIDE)
    latitude = np.radians((float(heights["ymin"]) + float(heights["ymax"])) / 2)
    domain = Domain.grid(
        east_km=_KM_PER_DEGREE * np.cos(latitude) * degrees, south_km=_KM_PER_DEGREE * degrees
    )
    lengthscales, variance, mean, _ = _fit_matern(domain.points[5::10], truth[5::10], domain.extent)
    return Field(
        "terrain",
        domain,
        truth,
        threshold=float(np.quantile(truth, 0.75)),
        lengthscales=lengthscales,
        variance=variance,
        mean=mean,
        cost=_cost(domain, travel_axes=2),
    )


def _split_transect(path: Path, frame: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the data for the truth, and the data for the hyperparameters.

    The second data set is the file NAME_second.csv if there is one, and otherwise the later half of
    the dives.

    Args:
        path: Path of the first data set.
        frame: Its content.

    Raises:
        InvalidDomainError: If there is neither a second file nor a column `dive`.
    """
    second = path.with_name(f"{path.stem}_second.csv")
    if second.exists():
        return frame, read_table(second)
    if "dive" not in frame.columns:
        raise InvalidDomainError(
            f"--data needs a second data set for the hyperparameters, got neither {second} nor a "
            "column dive; give one "
            "of them"
        )
    dives = np.unique(frame["dive"].to_numpy())
    early = frame["dive"] <= dives[(len(dives) - 1) // 2]
    return frame[early], frame[~early]


def _transect_field(
    name: str, first: pd.DataFrame, second: pd.DataFrame, columns: tuple[str, str], value: str
) -> Field:
    """Return a measured transect as a field; the highest tenth of it is above the threshold.

    Args:
        name: Name for titles.
        first: Data whose posterior mean on the grid is the truth.
        second: Data that the hyperparameters are learned from.
        columns: Columns of distance and depth.
        value: Column of the measured quantity.
    """
    points, values = _points_and_values(first, columns, value)
    fit_points, fit_values = _points_and_values(second, columns, value)
    low = points.min(axis=0)
    high = points.max(axis=0)
    every = max(1, len(fit_points) // _MAX_FIT)
    lengthscales, variance, mean, noise = _fit_matern(
        fit_points[::every], fit_values[::every], high - low
    )
    axes = {column: np.linspace(low[k], high[k], SIDE) for k, column in enumerate(columns)}
    domain = Domain.grid(**axes)
    kernel = named_kernel("matern52", list(lengthscales), variance)
    factor = cho_factor(kernel(points) + noise * np.eye(len(points)), lower=True)
    truth = mean + kernel(domain.points, points) @ cho_solve(factor, values - mean)
    return Field(
        name,
        domain,
        truth,
        threshold=float(np.quantile(truth, 0.9)),
        lengthscales=lengthscales,
        variance=variance,
        mean=mean,
        cost=_cost(domain, depth_column=columns[1]),
    )


def _points_and_values(
    frame: pd.DataFrame, columns: tuple[str, str], value: str
) -> tuple[Array, Array]:
    """Return coordinates and values of the complete rows."""
    complete = frame[[*columns, value]].dropna()
    return complete[list(columns)].to_numpy(float), complete[value].to_numpy(float)


def _cost(domain: Domain, depth_column: str | None = None, travel_axes: int = 1) -> dict[str, Any]:
    """Return the paper's cost, scaled so that crossing this field costs as much as its lake.

    The cost of the paper is 0.25 |x - x'| + 4 (|depth| + 1).

    Args:
        domain: The grid of the field.
        depth_column: Column of the depth. None: there is no cost of depth.
        travel_axes: Number of columns, from the first on, along which travel costs.
    """
    width = dict(zip(domain.columns, domain.extent.tolist(), strict=True))
    rates = {name: 0.25 * lake.LENGTH_M / width[name] for name in domain.columns[:travel_axes]}
    cost: dict[str, Any] = {"base": 4.0, "travel": rates}
    if depth_column is not None:
        cost["magnitude"] = {depth_column: 4.0 * lake.DEPTH_M / width[depth_column]}
    return cost


def _fit_matern(
    points: Array, values: Array, extent: Array
) -> tuple[tuple[float, ...], float, float, float]:
    """Fit a Matern-5/2 kernel: length-scales, signal variance, mean and noise variance."""
    model = fit(
        Learned("matern52", noise=True, restarts=2), points, values, 0.0, extent, None, seed=0
    )
    lengthscales = tuple(np.atleast_1d(model.kernel.k2.length_scale).tolist())
    return (
        lengthscales,
        float(model.kernel.k1.constant_value),
        model.mean,
        float(model.noise or 0.0),
    )
