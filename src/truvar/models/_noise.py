"""The noise variance of measurements, learned under a known kernel.

| symbol | here | shape |
|---|---|---|
| s^2 | the noise variance; theta = log(s^2 / v), v the prior variance of the kernel | |
| p(theta) | N(-6, 1.5^2), as for learned kernels (`hyperposterior`) | |
| r | values minus the known part of the mean | (t,) |
| S | covariance of the values with unknown noise, given those whose noise is known | (u, u) |
| S = U diag(lambda) U^T | computed once; then log p(r given theta) costs O(u) for every theta | |

The mode of p(theta given r) is found by a search on ever finer grids. An unknown constant mean is
replaced by its generalised least-squares estimate, which depends on theta.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from truvar._numba.threads import blas_in_one_thread
from truvar._typing import Array

LOG_NOISE_MEAN = -6.0  # of the log noise variance, relative to the prior variance of the values
LOG_NOISE_SD = 1.5  # its standard deviation
LOG_NOISE_BOUNDS = (-12.0, 6.0)  # of the same logarithm: 4 standard deviations down, 8 up
GRID_STEP = 0.25  # of the first grid
GRID_ZOOM = 10  # points on either side of the best one in each finer grid
GRID_ROUNDS = 7  # finer grids, each with a step GRID_ZOOM times smaller
JITTER_SHARE = 1e-10  # share of the prior variance: the smallest noise that a known one counts with


@dataclass(frozen=True)
class NoiseModel:
    """A learned noise variance.

    Attributes:
        variance: The noise variance.
        log_posterior: Its log posterior density up to a constant; NaN if nothing was fitted.
    """

    variance: float
    log_posterior: float = float("nan")


def unfitted_noise(prior_variance: float) -> NoiseModel:
    """Return the median of the prior, to use before there are enough values.

    Args:
        prior_variance: v.
    """
    return NoiseModel(float(np.exp(LOG_NOISE_MEAN)) * prior_variance)


def fit_noise(
    covariance: Array, residuals: Array, known: Array, *, prior_variance: float, estimate_mean: bool
) -> NoiseModel:
    """Return the most probable noise variance.

    Args:
        covariance: Prior covariance of the measured function values. (t, t)
        residuals: r.
        known: Noise variance of each value; NaN where it is the one to be learned. (t,)
        prior_variance: v.
        estimate_mean: Whether a constant mean is estimated too.
    """
    if not np.isnan(known).any():
        return unfitted_noise(prior_variance)
    with blas_in_one_thread():
        likelihood = NoiseLikelihood(covariance, residuals, known, prior_variance, estimate_mean)
    grid = np.arange(LOG_NOISE_BOUNDS[0], LOG_NOISE_BOUNDS[1] + GRID_STEP / 2, GRID_STEP)
    step = GRID_STEP
    best, density = _best_of(likelihood, grid)
    for _ in range(GRID_ROUNDS):
        grid = np.clip(
            best + step * np.arange(-GRID_ZOOM, GRID_ZOOM + 1) / GRID_ZOOM, *LOG_NOISE_BOUNDS
        )
        step /= GRID_ZOOM
        best, density = _best_of(likelihood, grid)
    return NoiseModel(float(np.exp(best)) * prior_variance, density)


class NoiseLikelihood:
    """log p(r given theta), for many theta jointly.

    Args:
        covariance: Prior covariance of the measured function values. (t, t)
        residuals: r.
        known: Noise variance of each value; NaN where it is unknown. (t,)
        prior_variance: v.
        estimate_mean: Whether a constant mean is estimated too.
    """

    def __init__(
        self,
        covariance: Array,
        residuals: Array,
        known: Array,
        prior_variance: float,
        estimate_mean: bool,
    ) -> None:
        self._prior_variance = prior_variance
        self._estimate_mean = estimate_mean
        unknown = np.isnan(known)
        # r and 1, which the constant multiplies
        columns = np.column_stack([residuals, np.ones(len(residuals))])
        rest = columns[unknown]
        within = covariance[np.ix_(unknown, unknown)]
        # r^T Q r, r^T Q 1, 1^T Q 1 of the values whose noise is known
        self._products = np.zeros((2, 2))
        if not unknown.all():
            across = covariance[np.ix_(~unknown, unknown)]
            given = covariance[np.ix_(~unknown, ~unknown)] + np.diag(
                known[~unknown] + JITTER_SHARE * prior_variance
            )
            factor = cho_factor(given, lower=True)
            weighted = cho_solve(factor, columns[~unknown])
            self._products = columns[~unknown].T @ weighted
            rest = rest - across.T @ weighted
            within = within - across.T @ cho_solve(factor, across)
        eigenvalues, vectors = np.linalg.eigh(within)
        self._eigenvalues = np.maximum(eigenvalues, 0.0)
        self._rotated = vectors.T @ rest  # (u, 2)

    def __call__(self, theta: Array) -> Array:
        """Return log p(r given theta) up to a constant, at theta (g,): (g,)."""
        variances = self._eigenvalues + np.exp(theta)[:, None] * self._prior_variance  # (g, u)
        r, ones = self._rotated.T
        misfit = self._products[0, 0] + (r**2 / variances).sum(axis=1)
        if self._estimate_mean:
            cross = self._products[0, 1] + (r * ones / variances).sum(axis=1)
            misfit = misfit - cross**2 / (self._products[1, 1] + (ones**2 / variances).sum(axis=1))
        return np.asarray(-0.5 * misfit - 0.5 * np.log(variances).sum(axis=1))


def _best_of(likelihood: NoiseLikelihood, grid: Array) -> tuple[float, float]:
    """Return the most probable theta of a grid, and its log density."""
    density = likelihood(grid) - 0.5 * ((grid - LOG_NOISE_MEAN) / LOG_NOISE_SD) ** 2
    best = int(np.argmax(density))
    return float(grid[best]), float(density[best])
