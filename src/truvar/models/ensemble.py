"""The posterior averaged over the hyperparameters: a mixture of Gaussian processes.

| symbol | here | shape |
|---|---|---|
| theta_j, j = 1..M | `EnsembleModel.lengthscales[j]`, `.signal[j]`, `.noise[j]`; row 0 is the mode | |
| mu_j(x), sigma_j^2(x) | `Ensemble.means`, `Ensemble.variances` | (M, n) |
| mu(x) = mean_j mu_j(x) | `Ensemble.mean` | (n,) |
| sigma^2(x) = mean_j sigma_j^2(x) + var_j mu_j(x) | `Ensemble.variance` | (n,) |

The unknown constant mean has the prior N(shift, 9 s^2) and is integrated out in every member, so that the variances
contain its uncertainty too. A prior mean that depends on the point is subtracted from the values and added to the
means. All quantities are in the units of z (see `transforms`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from truvar._numba.threads import blas_in_one_thread
from truvar._typing import Array, Index
from truvar.models.kernels import SMOOTHNESS, NamedKernel, Stationary, check_named_kernel, twice_nu
from truvar.models.transforms import OutputTransform

CONSTANT = 9.0  # variance of the constant mean, in units of the signal variance
MEMORY = 2e8  # bytes that the factors of all members may take
BLOCK = 32  # rows by which the factors grow


@dataclass(frozen=True, eq=False)
class EnsembleModel:
    """Hyperparameters fitted to the observations: the most probable ones and a sample of what else is plausible.

    Attributes:
        family: "rbf", "matern12", "matern32" or "matern52".
        lengthscales: In the user's units; row 0 is the mode, the others are the sample. (1 + M, d)
        signal: Signal variances. (1 + M,)
        noise: Noise variances; None: as the user gave them. (1 + M,)
        transform: From the user's values to those of the model.
        outliers: Positions of the observations that are left out as gross errors.
        log_posterior: Log posterior density of the mode, up to a constant.
    """

    family: str
    lengthscales: Array
    signal: Array
    noise: Array | None
    transform: OutputTransform
    outliers: tuple[int, ...] = ()
    log_posterior: float = float("nan")

    @property
    def kernel(self) -> NamedKernel:
        """The kernel of the mode."""
        return check_named_kernel(self.family, self.lengthscales[0], float(self.signal[0]))

    @property
    def mode_noise(self) -> float | None:
        """The noise variance of the mode; None: as the user gave it."""
        return None if self.noise is None else float(self.noise[0])

    def members(self, most: int) -> Index:
        """Return the rows of at most that many members, spread over the sample; the mode if that is one."""
        count = len(self.signal) - 1
        if most < 2 or count < 2:
            return np.array([0])
        used = min(most, count)
        return 1 + (np.arange(used) * count) // used


def affordable_members(n: int, t: int) -> int:
    """Return how many members' factors for n sites and t observations fit into `MEMORY`."""
    return int(MEMORY / (8 * n * max(t, 64)))


class Ensemble:
    """The mixture posterior at fixed sites, given observations.

    Args:
        model: The hyperparameters.
        sites: Points to predict. (n, d)
        mean: Known constant mean; None: unknown, with a wide prior around the transform's shift.
        capacity: Number of observations that memory is planned for.
        offset: The part of the prior mean that depends on the point, a function of points (q, d) that returns (q,);
            None: there is none.
    """

    def __init__(
        self,
        model: EnsembleModel,
        sites: Array,
        mean: float | None,
        capacity: int,
        offset: Callable[[Array], Array] | None = None,
    ) -> None:
        rows = model.members(affordable_members(len(sites), capacity))
        smoothness = twice_nu(SMOOTHNESS[model.family])
        self.sites = np.ascontiguousarray(sites, dtype=float)
        self.kernels = [Stationary(smoothness, float(model.signal[j]), model.lengthscales[j]) for j in rows]
        self.signal = model.signal[rows]
        self.constant = np.zeros(len(rows)) if mean is not None else CONSTANT * self.signal
        self.noise = None if model.noise is None else model.noise[rows]
        self.shift = model.transform.shift if mean is None else mean
        self._point_offset = offset
        self._site_offset = self._offset_at(sites)
        self.size = 0
        prior = self.signal + self.constant
        self.means = np.full((len(rows), len(sites)), self.shift) + self._site_offset
        self.variances = np.repeat(prior[:, None], len(sites), axis=1)
        self._points = np.empty((0, sites.shape[1]))
        self._lower = np.zeros((len(rows), 0, 0))  # Cholesky factors
        self._solved = np.zeros((len(rows), 0, len(sites)))  # L^-1 k(points, sites)
        self._whitened = np.zeros((len(rows), 0))  # L^-1 (z - shift - offset)

    @property
    def mean(self) -> Array:
        """The mean of the mixture at every site, (n,)."""
        return np.asarray(self.means.mean(axis=0))

    @property
    def variance(self) -> Array:
        """The variance of the mixture at every site, (n,)."""
        return np.asarray(self.variances.mean(axis=0) + self.means.var(axis=0))

    @blas_in_one_thread()
    def condition(self, points: Array, z: Array, noise: Array, learned: Array) -> None:
        """Condition on observations, instead of any before.

        Args:
            points: Where they were made. (t, d)
            z: Their values. (t,)
            noise: Their noise variances, where these are not learned. (t,)
            learned: Where they are. (t,)
        """
        t = len(points)
        size = BLOCK * (t // BLOCK + 1)
        self.size = t
        self._points = np.zeros((size, points.shape[1]))
        self._points[:t] = points
        self._lower = np.zeros((len(self.kernels), size, size))
        self._solved = np.zeros((len(self.kernels), size, len(self.sites)))
        self._whitened = np.zeros((len(self.kernels), size))
        residuals = z - self.shift - self._offset_at(points)
        for j, kernel in enumerate(self.kernels):
            covariance = kernel(points, points) + self.constant[j]
            covariance[np.diag_indices(t)] += self._noise_of(j, noise, learned)
            lower = np.linalg.cholesky(covariance)
            across = kernel(points, self.sites) + self.constant[j]
            solved = solve_triangular(lower, across, lower=True, check_finite=False)
            whitened = solve_triangular(lower, residuals, lower=True, check_finite=False)
            self._lower[j, :t, :t] = lower
            self._solved[j, :t] = solved
            self._whitened[j, :t] = whitened
            self.means[j] = self.shift + self._site_offset + whitened @ solved
            prior = self.signal[j] + self.constant[j]
            self.variances[j] = np.maximum(prior - (solved**2).sum(axis=0), 0.0)

    @blas_in_one_thread()
    def append(self, point: Array, z: float, noise: float, learned: bool, site: int | None = None) -> None:
        """Condition on one more observation; `site` is the row of the point among the sites, if it is one."""
        t = self.size
        if t == len(self._points):
            self._grow()
        point = point[None, :]
        residual = z - self.shift - float(self._offset_at(point)[0])
        for j, kernel in enumerate(self.kernels):
            v = np.zeros(0)
            if site is not None:
                v = self._solved[j, :t, site].copy()
            elif t:
                across = kernel(self._points[:t], point)[:, 0] + self.constant[j]
                v = solve_triangular(self._lower[j, :t, :t], across, lower=True, check_finite=False)
            own = self._noise_of(j, np.array([noise]), np.array([learned]))[0]
            root = np.sqrt(max(self.signal[j] + self.constant[j] + own - v @ v, own))
            row = (kernel(point, self.sites)[0] + self.constant[j] - v @ self._solved[j, :t]) / root
            whitened = (residual - v @ self._whitened[j, :t]) / root
            self._lower[j, t, :t] = v
            self._lower[j, t, t] = root
            self._solved[j, t] = row
            self._whitened[j, t] = whitened
            self.means[j] += whitened * row
            self.variances[j] = np.maximum(self.variances[j] - row**2, 0.0)
        self._points[t] = point
        self.size += 1

    @blas_in_one_thread()
    def member_moments(self, points: Array) -> tuple[Array, Array]:
        """Return means and variances of every member at any points: (M, q) each."""
        t = self.size
        means = np.full((len(self.kernels), len(points)), self.shift) + self._offset_at(points)
        variances = np.repeat((self.signal + self.constant)[:, None], len(points), axis=1)
        if t == 0:
            return means, variances
        for j, kernel in enumerate(self.kernels):
            across = kernel(self._points[:t], points) + self.constant[j]
            solved = solve_triangular(self._lower[j, :t, :t], across, lower=True, check_finite=False)
            means[j] += self._whitened[j, :t] @ solved
            variances[j] = np.maximum(variances[j] - (solved**2).sum(axis=0), 0.0)
        return means, variances

    def predict(self, points: Array) -> tuple[Array, Array]:
        """Return mean and variance of the mixture at any points: (q,) each."""
        means, variances = self.member_moments(np.ascontiguousarray(points, dtype=float))
        return means.mean(axis=0), variances.mean(axis=0) + means.var(axis=0)

    def _offset_at(self, points: Array) -> Array:
        """Return the part of the prior mean that depends on the point, at points (q, d)."""
        return np.zeros(len(points)) if self._point_offset is None else self._point_offset(points)

    def _noise_of(self, j: int, noise: Array, learned: Array) -> Array:
        own = noise if self.noise is None else np.where(learned, self.noise[j], noise)
        return np.asarray(np.maximum(own, 1e-8 * self.signal[j]))

    def _grow(self) -> None:
        size = len(self._points) + BLOCK
        self._points = _padded(self._points, (size, self._points.shape[1]))
        self._lower = _padded(self._lower, (len(self.kernels), size, size))
        self._solved = _padded(self._solved, (len(self.kernels), size, len(self.sites)))
        self._whitened = _padded(self._whitened, (len(self.kernels), size))


def _padded(array: Array, shape: tuple[int, ...]) -> Array:
    grown = np.zeros(shape)
    grown[tuple(slice(n) for n in array.shape)] = array
    return grown
