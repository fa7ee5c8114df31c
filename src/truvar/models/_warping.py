"""Coordinates that are stretched here and compressed there: f that is rough here and smooth there.

| symbol | here | shape |
|---|---|---|
| x | a coordinate, from 0 at the lower end of the domain to 1 at the upper one | |
| w(x) = 1 - (1 - x^a)^b | the distribution function of Kumaraswamy (1980): `Warp` | |
| log a, log b | normal with mean 0 and standard deviation `_LOG_POWER_SD`, for every warped column | (2, c) |
| theta | hyperparameters of the likelihood without warping, then all log a, then all log b | (k + 2 c,) |

A stationary kernel of w(x) is not stationary in x (Snoek et al. 2014). a = b = 1 leaves coordinates
as they are. Both ends of the domain stay where they are, so that length-scales keep their prior.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_solve

from truvar._typing import Array
from truvar.models.hyperposterior import (
    REACH,
    HyperPrior,
    MarginalLikelihood,
    lengthscale_slope,
    squared_distances,
)

_LOG_POWER_SD = 0.5
_TINY = 1e-300  # stands for 0 in logarithms
# Share of its extent between neighbours along a column: with fewer levels nothing can be warped.
_MAX_SPACING = 0.5
MAX_COLUMNS = 3  # more powers than those of so many columns are too many to sample
MAX_OBSERVATIONS = 500  # more of them say without it where f is rough


@dataclass(frozen=True, eq=False)
class Warp:
    """A warp of coordinates.

    Attributes:
        low: Lower ends of the domain. (d,)
        extent: Its extent. (d,)
        columns: The columns that are warped.
        log_powers: log a and log b of each of them. (2, c)
    """

    low: Array
    extent: Array
    columns: tuple[int, ...]
    log_powers: Array

    def __call__(self, points: Array) -> Array:
        """Return points (q, d) with warped coordinates, in the same units."""
        columns = list(self.columns)
        low = self.low[columns]
        extent = self.extent[columns]
        warped = points.copy()
        unit = (points[:, columns] - low) / extent
        warped[:, columns] = low + extent * kumaraswamy(unit, self.log_powers)[0]
        return warped


def kumaraswamy(x: Array, log_powers: Array) -> tuple[Array, Array, Array]:
    """Return w(x) and its derivatives with respect to log a and log b, (q, c) each.

    Args:
        x: Coordinates; those outside 0 to 1 count as 0 or 1. (q, c)
        log_powers: log a and log b. (2, c)
    """
    a, b = np.exp(log_powers)
    log_x = np.log(np.clip(x, _TINY, 1.0))
    rest = -np.expm1(a * log_x)  # 1 - x^a
    log_rest = np.log(np.maximum(rest, _TINY))
    by_a = a * b * log_x * np.exp(a * log_x + (b - 1.0) * log_rest)
    by_b = -b * log_rest * np.exp(b * log_rest)
    return -np.expm1(b * log_rest), by_a, by_b


class WarpedLikelihood:
    """The log marginal likelihood as a function of theta and of the powers of a warp.

    Args:
        plain: The likelihood without warping.
        low: Lower ends of the domain, in extents. (d,)
        columns: The columns that are warped.
    """

    def __init__(self, plain: MarginalLikelihood, low: Array, columns: Sequence[int]) -> None:
        self.plain = plain
        self.low = low[list(columns)]
        self.columns = list(columns)
        self.unit = plain.points[:, self.columns] - self.low

    def log_powers(self, theta: Array) -> Array:
        """Return log a and log b, (2, c)."""
        return theta[-2 * len(self.columns) :].reshape(2, -1)

    def value(self, theta: Array) -> float:
        """Return log p(u given theta), minus infinity where K cannot be factorised."""
        warped, own = self._warped(theta)[:2]
        return warped.value(own)

    def value_and_gradient(self, theta: Array) -> tuple[float, Array]:
        """Return log p(u given theta) and its gradient."""
        warped, own, by_a, by_b = self._warped(theta)
        value, gradient = warped.value_and_gradient(own)
        found = warped.factor(own)
        if found is None:
            return -np.inf, np.zeros(len(theta))
        lower, z = found
        inverse = cho_solve((lower, True), np.eye(len(z)), check_finite=False)
        alpha = inverse @ z
        scales = warped.lengthscales(own)
        square = sum(
            squared_distances(warped.points, scales, k, warped.categorical)
            for k in range(warped.dimension)
        )
        # dR / d x_ik = -g (x_ik - x_jk) / l_k^2, and d log p / dK = (alpha alpha^T - K^-1) / 2
        pull = (np.outer(alpha, alpha) - inverse) * warped.signal_variance(own)
        pull *= lengthscale_slope(np.asarray(square), warped.smoothness)
        scaled = warped.points[:, self.columns] / scales[self.columns] ** 2
        by_point = pull @ scaled - pull.sum(axis=1)[:, None] * scaled
        powers = [(by_point * each).sum(axis=0) for each in (by_a, by_b)]
        return value, np.concatenate([gradient, *powers])

    def _warped(self, theta: Array) -> tuple[MarginalLikelihood, Array, Array, Array]:
        """Return the likelihood of warped points, its theta, and dw / d log a and log b."""
        w, by_a, by_b = kumaraswamy(self.unit, self.log_powers(theta))
        points = self.plain.points.copy()
        points[:, self.columns] = self.low + w
        own = theta[: -2 * len(self.columns)]
        return self.plain.with_points(points), own, by_a, by_b


def warped_columns(
    spacing: Array, categorical: Sequence[int], n_observations: int
) -> tuple[int, ...]:
    """Return the columns to warp; none if there are too many of them or of the observations.

    Args:
        spacing: Distance of neighbours along each column, in extents. (d,)
        categorical: Positions of the columns of categories, which have no order.
        n_observations: t.
    """
    columns = tuple(
        k for k, share in enumerate(spacing) if share <= _MAX_SPACING and k not in categorical
    )
    return columns if len(columns) <= MAX_COLUMNS and n_observations <= MAX_OBSERVATIONS else ()


def with_warping(prior: HyperPrior, n_columns: int) -> HyperPrior:
    """Return the prior of theta with the powers of so many warped columns."""
    added = np.zeros(2 * n_columns)
    reach = REACH * _LOG_POWER_SD
    return HyperPrior(
        np.append(prior.mean, added),
        np.append(prior.sd, added + _LOG_POWER_SD),
        np.append(prior.low, added - reach),
        np.append(prior.high, added + reach),
    )
