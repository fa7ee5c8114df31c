"""Fields for the level-set figures: the simulated lake, real terrain, and measured transects from a file.

A `Field` is a field on a grid of 50 x 50 points with a threshold, a Gaussian process that fits it, and the paper's
kind of cost: to travel along the first coordinate, and to go down the second.

The measured transects stand in for the lake set of the paper and are treated as it treats it: the hyperparameters of a
Matern-5/2 kernel are those of the greatest likelihood on the second data set, and the truth is the posterior mean, on
the grid, of the first.
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
from truvar.domain.domain import Domain, read_csv
from truvar.exceptions import TruvarError, import_optional
from truvar.models.fit import Learned, fit
from truvar.models.kernels import named_kernel
from truvar.paper import lake
from truvar.problem import Problem

SIDE = 50
NOISELESS = 1e-4  # the variance that stands for no noise, as a share of the signal's
TERRAIN_STEP = 2  # every how many of the rows and columns of the elevation model are taken
KM_PER_DEGREE = 111.2
MOST = 400  # measurements that hyperparameters are learned from
TRANSECTS = {"chl_mg_m3": "distance_km", "total_chl_ugL": "distance_m"}  # the glider's and the reservoir's


@dataclass(frozen=True)
class Field:
    """A field on a grid, what is known of it, and what it costs to measure."""

    name: str
    domain: Domain
    truth: Array
    threshold: float
    lengthscales: tuple[float, ...]
    variance: float
    mean: float
    cost: Mapping[str, Any]

    def problem(self, cost: bool) -> Problem:
        """The level set to be found, at unit cost or at the cost of travel and depth."""
        spec = {
            "goal": {"level_set": self.threshold},
            "model": {
                "kernel": "matern52",
                "lengthscales": list(self.lengthscales),
                "variance": self.variance,
                "mean": self.mean,
            },
            "noise": {"variance": NOISELESS * self.variance},
            **({"cost": dict(self.cost)} if cost else {}),
        }
        return Problem(self.name, spec, Path(), self.domain)

    @property
    def facts(self) -> dict[str, Any]:
        """For the JSON file."""
        return {
            "field": self.name,
            "points": len(self.domain),
            "threshold": self.threshold,
            "share_above": float((self.truth >= self.threshold).mean()),
            "lengthscales": dict(zip(self.domain.columns, self.lengthscales, strict=True)),
            "cost": dict(self.cost),
        }


def load_field(path: Path | None) -> Field:
    """The lake, or the field of a file: which, is told by its columns."""
    if path is None:
        return simulated_lake()
    frame = read_csv(path)
    for value, along in TRANSECTS.items():
        if value in frame.columns:
            return transect(path.stem, *halves(path, frame), (along, "depth_m"), value)
    raise TruvarError(
        f"--data must be a transect with a column {' or '.join(TRANSECTS)}, but {path} has "
        f"{', '.join(map(str, frame.columns))}; rename the column of the measured quantity to one of them"
    )


def simulated_lake() -> Field:
    """The lake of `truvar.paper.lake`, with the hyperparameters of the paper's."""
    truth = lake.simulate(SIDE, SIDE)["chlorophyll"].to_numpy()
    domain = Domain.grid(
        distance_m=np.linspace(0.0, lake.LENGTH_M, SIDE), depth_m=np.linspace(-lake.DEPTH_M, 0.0, SIDE)
    )
    model = lake.LENGTHSCALES, lake.SIGNAL_SD**2, lake.MEAN
    return Field("simulated lake", domain, truth, lake.THRESHOLD, *model, _cost(domain, down="depth_m"))


def terrain() -> Field:
    """Where is the land around the Jacksboro fault high, above three quarters of it? The elevation model comes with
    matplotlib; there is no second data set, so the hyperparameters are learned from a tenth of the field itself."""
    heights = import_optional("matplotlib.cbook", "the terrain", "plot").get_sample_data("jacksboro_fault_dem.npz")
    rows = np.arange(0, TERRAIN_STEP * SIDE, TERRAIN_STEP)
    truth = np.asarray(heights["elevation"], dtype=float)[np.ix_(rows, rows)].T.ravel()
    degrees = TERRAIN_STEP * float(heights["dx"]) * np.arange(SIDE)
    latitude = np.radians((float(heights["ymin"]) + float(heights["ymax"])) / 2)
    domain = Domain.grid(east_km=KM_PER_DEGREE * np.cos(latitude) * degrees, south_km=KM_PER_DEGREE * degrees)
    model = _fitted(domain.points[5::10], truth[5::10], domain.extent)[:3]
    return Field("terrain", domain, truth, float(np.quantile(truth, 0.75)), *model, _cost(domain, travel=2))


def halves(path: Path, frame: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The data set that makes the truth, and the second one, for the hyperparameters: FILE_second.csv where there is
    one, else the later half of the dives."""
    beside = path.with_name(f"{path.stem}_second.csv")
    if beside.exists():
        return frame, read_csv(beside)
    if "dive" not in frame.columns:
        raise TruvarError(f"a second data set is needed for the hyperparameters, but there is no {beside}; give one")
    dives = np.unique(frame["dive"].to_numpy())
    early = frame["dive"] <= dives[(len(dives) - 1) // 2]
    return frame[early], frame[~early]


def transect(name: str, first: pd.DataFrame, second: pd.DataFrame, columns: tuple[str, str], value: str) -> Field:
    """A measured section as a field: the posterior mean on the grid, with the threshold at its upper tenth."""
    (points, values), (others, learned_from) = (
        (part[list(columns)].to_numpy(float), part[value].to_numpy(float))
        for part in (frame[[*columns, value]].dropna() for frame in (first, second))
    )
    low, high = points.min(axis=0), points.max(axis=0)
    every = max(1, len(others) // MOST)
    lengths, variance, mean, noise = _fitted(others[::every], learned_from[::every], high - low)
    along, down = (np.linspace(a, b, SIDE) for a, b in zip(low, high, strict=True))
    domain = Domain.grid(**{columns[0]: along, columns[1]: down})
    kernel = named_kernel("matern52", list(lengths), variance)
    factor = cho_factor(kernel(points) + noise * np.eye(len(points)), lower=True)
    truth = mean + kernel(domain.points, points) @ cho_solve(factor, values - mean)
    cost = _cost(domain, down=columns[1])
    return Field(name, domain, truth, float(np.quantile(truth, 0.9)), lengths, variance, mean, cost)


def _cost(domain: Domain, down: str | None = None, travel: int = 1) -> dict[str, Any]:
    """The paper's cost, 0.25 |x - x'| + 4 (|depth| + 1), stretched so that to cross this field is as dear as its lake:
    along the first columns, and down the last."""
    width = dict(zip(domain.columns, domain.extent.tolist(), strict=True))
    rates = {name: 0.25 * lake.LENGTH_M / width[name] for name in domain.columns[:travel]}
    deep = {} if down is None else {"magnitude": {down: 4.0 * lake.DEPTH_M / width[down]}}
    return {"base": 4.0, "travel": rates, **deep}


def _fitted(points: Array, values: Array, extent: Array) -> tuple[tuple[float, ...], float, float, float]:
    """Length-scales, signal variance, mean and noise variance of a Matern-5/2 kernel by their likelihood."""
    model = fit(Learned("matern52", noise=True, restarts=2), points, values, 0.0, extent, None, seed=0)
    lengths = tuple(np.atleast_1d(model.kernel.k2.length_scale).tolist())
    return lengths, float(model.kernel.k1.constant_value), model.mean, float(model.noise or 0.0)
