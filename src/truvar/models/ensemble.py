"""The posterior averaged over the hyperparameters: a mixture of Gaussian processes.

| symbol | here | shape |
|---|---|---|
| theta_j, j = 1..M | `EnsembleModel.lengthscales[j]`, `.signal[j]`, `.noise[j]`; row 0 is the mode | |
| mu_j(x), sigma_j^2(x) | `Ensemble.means`, `Ensemble.variances` | (M, n) |
| mu(x) = mean_j mu_j(x) | `Ensemble.mean` | (n,) |
| sigma^2(x) = mean_j sigma_j^2(x) + var_j mu_j(x) | `Ensemble.variance` | (n,) |

The unknown constant mean has the prior N(shift, 9 s^2) and is integrated out in every member, so
that the variances contain its uncertainty too. A prior mean that depends on the point is subtracted
from the values and added to the means. All quantities are in the units of z (see `transforms`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dtrtrs

from truvar._numba import kernels
from truvar._numba.threads import blas_in_one_thread
from truvar._typing import Array, Index, Mask
from truvar.domain.action import Action
from truvar.models._tiles import FEW_SITES, solved_tiles
from truvar.models.frozen import FrozenMember, FrozenPosterior
from truvar.models.kernels import (
    SMOOTHNESS,
    Covariance,
    NamedKernel,
    Stationary,
    check_named_kernel,
    column_mask,
    twice_nu,
)
from truvar.models.transforms import OutputTransform

if TYPE_CHECKING:
    from truvar.models.posterior import Posterior

CONSTANT = 9.0  # variance of the constant mean, in units of the signal variance
_MOST_FACTOR = 12.0  # logarithm of the ratio of two noise variances, at most
MEMORY = 2e8  # bytes that the factors of all members may take
_BLOCK = 32  # rows by which the factors grow
_FEW_OBSERVATIONS = (
    300  # up to which one compiled call for all members is faster than a library call for each
)


@dataclass(frozen=True, eq=False)
class EnsembleModel:
    """Hyperparameters fitted to the observations: the most probable ones and a sample.

    Attributes:
        family: "rbf", "matern12", "matern32" or "matern52".
        lengthscales: In the user's units; row 0 is the mode, the others are the sample. (1 + M, d)
        signal: Signal variances. (1 + M,)
        noise: Noise variances; None: as the user gave them. (1 + M,)
        transform: From the user's values to those of the model.
        outliers: Positions of the observations that are left out as outliers.
        log_posterior: Log posterior density of the mode, up to a constant.
        separate: Positions of the observations that are far from all others by their values alone;
            None: `outliers`.
        noise_slopes: Slopes of the log noise variance per unit of each coordinate; None: it is
            equal everywhere. (d,)
        noise_centre: The point where the noise variances are those of `noise`; None without slopes.
            (d,)
        categorical: Positions of the columns of categories.
    """

    family: str
    lengthscales: Array
    signal: Array
    noise: Array | None
    transform: OutputTransform
    outliers: tuple[int, ...] = ()
    log_posterior: float = float("nan")
    separate: tuple[int, ...] | None = None
    noise_slopes: Array | None = None
    noise_centre: Array | None = None
    categorical: tuple[int, ...] = ()

    @property
    def kernel(self) -> NamedKernel:
        """The kernel of the mode."""
        return check_named_kernel(
            self.family, self.lengthscales[0], float(self.signal[0]), self.categorical
        )

    @property
    def separated(self) -> tuple[int, ...]:
        """Positions of the observations that are far from all others by their values alone."""
        return self.outliers if self.separate is None else self.separate

    @property
    def mode_noise(self) -> float | None:
        """The noise variance of the mode; None: as the user gave it."""
        return None if self.noise is None else float(self.noise[0])

    def noise_factor(self, points: Array) -> Array:
        """Return the noise variance at points (q, d) divided by that of `noise`: (q,)."""
        if self.noise_slopes is None or self.noise_centre is None:
            return np.ones(len(points))
        logarithm = (points - self.noise_centre) @ self.noise_slopes
        return np.asarray(np.exp(np.clip(logarithm, -_MOST_FACTOR, _MOST_FACTOR)))

    def mode_noise_at(self, points: Array) -> Array:
        """Return the noise variance of the mode at points (q, d): (q,)."""
        return (self.mode_noise or 0.0) * self.noise_factor(points)

    def members(self, most: int) -> Index:
        """Return the rows of at most that many members, spread over the sample; one: the mode."""
        return spread_members(len(self.signal) - 1, most)


def spread_members(count: int, most: int) -> Index:
    """Return the rows, from 1, of at most that many of `count` members; row 0 if that is one."""
    if most < 2 or count < 2:
        return np.array([0])
    used = min(most, count)
    return 1 + (np.arange(used) * count) // used


def affordable_members(n: int, t: int) -> int:
    """Return how many members' factors for n sites and t observations fit into `MEMORY`."""
    return int(MEMORY / (8 * n * max(t, 64)))


@dataclass(frozen=True, eq=False)
class _JointKernel:
    """The kernels of all members.

    Attributes:
        smoothness: Twice nu; 0 for RBF.
        lengthscales: (M, d)
        categorical: Which columns have categories. (d,)
    """

    smoothness: int
    lengthscales: Array
    categorical: Mask


class Ensemble:
    """The mixture posterior at fixed sites, given observations.

    Args:
        model: The hyperparameters.
        sites: Points to predict. (n, d)
        mean: Known constant mean; None: unknown, with a wide prior around the transform's shift.
        capacity: Number of observations that memory is planned for.
        offset: The part of the prior mean that depends on the point, a function of points (q, d)
            that returns (q,); None: there is none.
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
        self.kernels: list[Covariance] = [
            Stationary(smoothness, float(model.signal[j]), model.lengthscales[j], model.categorical)
            for j in rows
        ]
        self.signal = model.signal[rows]
        self.constant = np.zeros(len(rows)) if mean is not None else CONSTANT * self.signal
        self.noise = None if model.noise is None else model.noise[rows]
        self._noise_factor = model.noise_factor
        self.shift = model.transform.shift if mean is None else mean
        self._point_offset = offset
        scales = np.ascontiguousarray(
            np.broadcast_to(model.lengthscales[rows], (len(rows), sites.shape[1]))
        )
        mask = column_mask(model.categorical, sites.shape[1])
        self._joint: _JointKernel | None = _JointKernel(smoothness, scales, mask)
        self._start(len(rows))

    def _start(self, count: int) -> None:
        """Set the moments and factors of so many members to those before the first observation."""
        sites = self.sites
        self._buffer = np.empty(0)
        self._site_mean = self._prior_mean(sites)
        self.size = 0
        self.means = np.repeat(self._site_mean[None, :], count, axis=0)
        self.variances = np.stack([self._prior_variance(j, sites) for j in range(count)])
        self._points = np.empty((0, sites.shape[1]))
        self._lower = np.zeros((count, 0, 0))  # Cholesky factors
        self._solved = np.zeros((count, 0, len(sites)))  # L^-1 k(points, sites)
        self._whitened = np.zeros((count, 0))  # L^-1 (z - shift - offset)
        self._factors = self._lower  # contiguous copies of the part of the factors in use

    @property
    def mean(self) -> Array:
        """The mean of the mixture at every site, (n,)."""
        return np.asarray(self.means.mean(axis=0))

    @property
    def variance(self) -> Array:
        """The variance of the mixture at every site, (n,)."""
        return np.asarray(self.variances.mean(axis=0) + self.means.var(axis=0))

    def take_memory(self, other: Ensemble) -> None:
        """Use the memory of an ensemble that is not needed any more; before `condition`."""
        self._buffer = other._buffer

    def _memory(self, shape: tuple[int, int, int]) -> Array:
        """Return an array of shape (M, size, n), with many sites from memory that serves all fits.

        Memory is slow when it is first written to, and costs nothing before. The rows of all
        members for one observation lie side by side there, so that more room for observations
        leaves those before where they are.
        """
        if len(self.sites) <= FEW_SITES:
            return np.zeros(shape)
        count, size, n = shape
        needed = prod(shape)
        if len(self._buffer) < needed:
            self._buffer = np.empty(max(needed, int(2 * MEMORY / 8)))
        return self._buffer[:needed].reshape(size, count, n).transpose(1, 0, 2)

    @blas_in_one_thread()
    def condition(self, points: Array, z: Array, noise: Array, learned: Mask) -> None:
        """Condition on observations, instead of any before.

        Args:
            points: Where they were made. (t, d)
            z: Their values. (t,)
            noise: Their noise variances, where these are not learned. (t,)
            learned: Where they are. (t,)
        """
        t = len(points)
        self._allocate(points)
        residuals = self._residuals(z, points)
        for j in range(len(self.kernels)):
            covariance = self._covariance(j, points, points)
            covariance[np.diag_indices(t)] += self._noise_of(j, noise, learned, points)
            lower: Array = np.linalg.cholesky(covariance).astype(float, copy=False)
            whitened = solve_triangular(lower, residuals, lower=True, check_finite=False)
            self._lower[j, :t, :t] = lower
            self._whitened[j, :t] = whitened
            self._predict_sites(j, lower, whitened)

    def _allocate(self, points: Array) -> None:
        """Take memory for the factors of observations at points (t, d), and for a few further ones."""
        t = len(points)
        size = _BLOCK * (t // _BLOCK + 1)
        if len(self.sites) > FEW_SITES:
            size += _BLOCK  # room until the next fit: growing copies everything
        self.size = t
        self._points = np.zeros((size, points.shape[1]))
        self._points[:t] = points
        self._lower = np.zeros((len(self.kernels), size, size))
        self._solved = self._memory((len(self.kernels), size, len(self.sites)))
        self._whitened = np.zeros((len(self.kernels), size))
        self._factors = np.zeros((len(self.kernels), 0, 0))

    def _predict_sites(self, j: int, lower: Array, whitened: Array) -> None:
        """Compute a member's moments at the sites, and what it needs for further observations."""
        t = self.size
        points = self._points[:t]
        prior = self._prior_variance(j, self.sites)
        if len(self.sites) <= FEW_SITES:
            across = self._covariance(j, points, self.sites)
            solved = solve_triangular(lower, across, lower=True, check_finite=False)
            self._solved[j, :t] = solved
            self.means[j] = self._site_mean + whitened @ solved
            self.variances[j] = np.maximum(prior - (solved**2).sum(axis=0), 0.0)
            return

        def across_tile(tile: slice) -> Array:
            return self._covariance(j, points, self.sites[tile])

        for tile, solved in solved_tiles(lower, across_tile, len(self.sites)):
            self._solved[j, :t, tile] = solved
            self.means[j, tile] = self._site_mean[tile] + whitened @ solved
            explained = np.einsum("tq,tq->q", solved, solved)
            self.variances[j, tile] = np.maximum(prior[tile] - explained, 0.0)

    @blas_in_one_thread()
    def append(
        self, point: Array, z: float, noise: float, learned: bool, site: int | None = None
    ) -> None:
        """Condition on one more observation; `site` is its row among the sites, if it has one."""
        t = self.size
        if t == len(self._points):
            self._grow()
        point = point[None, :]
        residual = float(self._residuals(np.array([z]), point)[0])
        for j in range(len(self.kernels)):
            v = np.zeros(0)
            if site is not None:
                v = self._solved[j, :t, site].copy()
            elif t:
                across = self._covariance(j, self._points[:t], point)[:, 0]
                v = solve_triangular(self._lower[j, :t, :t], across, lower=True, check_finite=False)
            own = self._noise_of(j, np.array([noise]), np.array([learned]), point)[0]
            root = np.sqrt(max(self._prior_variance(j, point)[0] + own - v @ v, own))
            row = (self._covariance(j, point, self.sites)[0] - v @ self._solved[j, :t]) / root
            whitened = (residual - v @ self._whitened[j, :t]) / root
            self._lower[j, t, :t] = v
            self._lower[j, t, t] = root
            self._solved[j, t] = row
            self._whitened[j, t] = whitened
            self.means[j] += whitened * row
            self.variances[j] = np.maximum(self.variances[j] - row**2, 0.0)
        self._points[t] = point
        self.size += 1

    def member_moments(self, points: Array) -> tuple[Array, Array]:
        """Return means and variances of every member at any points: (M, q) each."""
        count = len(self.kernels)
        means = np.repeat(self._prior_mean(points)[None, :], count, axis=0)
        variances = self._prior_variances(points)
        if self.size == 0:
            return means, variances
        if self.size <= _FEW_OBSERVATIONS and self._joint is not None:
            self._subtract_jointly(self._joint, points, means, variances)
        else:
            self._subtract_in_turn(points, means, variances)
        return means, variances

    def _subtract_jointly(
        self, joint: _JointKernel, points: Array, means: Array, variances: Array
    ) -> None:
        """Change prior moments (M, q) to those given the observations, in one call."""
        t = self.size
        kernels.mixture_moments(
            self._points[:t],
            np.ascontiguousarray(points, dtype=float),
            joint.lengthscales,
            joint.categorical,
            joint.smoothness,
            self.signal,
            self.constant,
            self._contiguous_factors(),
            np.ascontiguousarray(self._whitened[:, :t]),
            means,
            variances,
        )

    @blas_in_one_thread()
    def _subtract_in_turn(self, points: Array, means: Array, variances: Array) -> None:
        """Change prior moments (M, q) to those given the observations, member by member."""
        t = self.size
        factors = self._contiguous_factors()
        for j in range(len(factors)):
            across = self._covariance(j, self._points[:t], points)
            # Called directly: the checks of `solve_triangular` take longer than a small system
            # does.
            solved, info = dtrtrs(factors[j].T, across, lower=0, trans=1)
            if info != 0:
                raise AssertionError(f"the factor of member {j} is singular")
            means[j] += self._whitened[j, :t] @ solved
            variances[j] = np.maximum(variances[j] - np.einsum("tq,tq->q", solved, solved), 0.0)

    def _contiguous_factors(self) -> Array:
        """Return the Cholesky factors (M, t, t) without the space for further observations."""
        if len(self._factors[0]) != self.size:
            self._factors = np.ascontiguousarray(self._lower[:, : self.size, : self.size])
        return self._factors

    def moments_of(self, action: Action) -> tuple[Array, Array]:
        """Return means and variances of every member where an action measures: (M, 1) each."""
        return self.member_moments(np.ascontiguousarray(action.point[None, :]))

    def predict(self, points: Array) -> tuple[Array, Array]:
        """Return mean and variance of the mixture at any points: (q,) each."""
        means, variances = self.member_moments(np.ascontiguousarray(points, dtype=float))
        return means.mean(axis=0), variances.mean(axis=0) + means.var(axis=0)

    def freeze(self) -> FrozenPosterior:
        """Return the mixture as it is now."""
        return FrozenPosterior(tuple(self._freeze_member(j) for j in range(len(self.kernels))))

    def _freeze_member(self, j: int) -> FrozenMember:
        t = self.size
        return FrozenMember(
            covariance=lambda points, others: self._covariance(j, points, others),
            prior_variance=lambda points: self._prior_variance(j, points),
            prior_mean=self._prior_mean,
            points=self._points[:t].copy(),
            lower=self._lower[j, :t, :t].copy(),
            whitened=self._whitened[j, :t].copy(),
            whitened_ones=None,
            scales=self._scales(j),
        )

    def _offset_at(self, points: Array) -> Array:
        """Return the part of the prior mean that depends on the point, at points (q, d)."""
        return np.zeros(len(points)) if self._point_offset is None else self._point_offset(points)

    def _covariance(self, j: int, points: Array, others: Array) -> Array:
        """Return a member's prior covariance, with constant, of points (p, d) and others (q, d)."""
        return np.asarray(self.kernels[j](points, others) + self.constant[j])

    def _prior_variance(self, j: int, points: Array) -> Array:
        """Return the prior variance of a member at points (q, d): (q,)."""
        return np.full(len(points), self.signal[j] + self.constant[j])

    def _prior_variances(self, points: Array) -> Array:
        """Return the prior variances of all members at points (q, d): (M, q)."""
        return np.repeat((self.signal + self.constant)[:, None], len(points), axis=1)

    def _scales(self, j: int) -> Array:
        """Return the length-scales of a member (d,); the spread of the sites where it has none."""
        kernel = self.kernels[j]
        if isinstance(kernel, Stationary):
            return np.full(self.sites.shape[1], kernel.lengthscales)
        return np.where(np.ptp(self.sites, axis=0) > 0, self.sites.std(axis=0), 1.0)

    def _prior_mean(self, points: Array) -> Array:
        """Return the prior mean of every member at points (q, d): (q,)."""
        return self.shift + self._offset_at(points)

    def _residuals(self, z: Array, points: Array) -> Array:
        """Return values at points (t, d) without the prior mean: (t,)."""
        return z - self.shift - self._offset_at(points)

    def _noise_of(self, j: int, noise: Array, learned: Mask, points: Array) -> Array:
        """Return the noise variances (t,) of a member's observations at points (t, d)."""
        own = noise
        if self.noise is not None:
            own = np.where(learned, self.noise[j] * self._noise_factor(points), noise)
        return np.asarray(np.maximum(own, 1e-8 * self.signal[j]))

    def _grow(self) -> None:
        size = len(self._points) + _BLOCK
        self._points = _padded(self._points, (size, self._points.shape[1]))
        self._lower = _padded(self._lower, (len(self.kernels), size, size))
        self._solved = _padded(self._solved, (len(self.kernels), size, len(self.sites)))
        self._whitened = _padded(self._whitened, (len(self.kernels), size))


class SinglePosterior:
    """A posterior with one set of hyperparameters, with the interface of an `Ensemble`.

    Args:
        posterior: The posterior.
        n: Number of its sites to predict, which are the first ones.
    """

    def __init__(self, posterior: Posterior, n: int) -> None:
        self._posterior = posterior
        self._n = n
        self.sites = posterior.sites[:n]
        self.predict = posterior.predict
        self.freeze = posterior.freeze

    @property
    def mean(self) -> Array:
        """The mean at every site, (n,)."""
        return self._posterior.mean[: self._n]

    @property
    def variance(self) -> Array:
        """The variance at every site, (n,)."""
        return self._posterior.variance[: self._n]

    @property
    def means(self) -> Array:
        """The mean of the only member at every site, (1, n)."""
        return self.mean[None, :]

    @property
    def variances(self) -> Array:
        """The variance of the only member at every site, (1, n)."""
        return self.variance[None, :]

    def member_moments(self, points: Array) -> tuple[Array, Array]:
        """Return mean and variance of the only member at any points: (1, q) each."""
        mean, variance = self._posterior.predict(points)
        return mean[None, :], variance[None, :]

    def moments_of(self, action: Action) -> tuple[Array, Array]:
        """Return mean and variance of the only member where an action measures: (1, 1) each."""
        if action.site is None:
            return self.member_moments(
                np.array(action.point[None, :])
            )  # a copy: the posterior remembers its answer
        here = slice(action.site, action.site + 1)
        return self._posterior.mean[None, here], self._posterior.variance[
            None, here
        ]  # kept for every site: no solve


def _padded(array: Array, shape: tuple[int, ...]) -> Array:
    grown = np.zeros(shape)
    grown[tuple(slice(n) for n in array.shape)] = array
    return grown
