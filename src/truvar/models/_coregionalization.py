"""The learned model of several tasks: intrinsic coregionalisation, averaged over a sample.

| symbol | here | shape |
|---|---|---|
| B_j, the covariance between the tasks | `TaskModel.covariance[j]`; row 0: the mode, the others: the sample | (T, T) |
| c(x, x') | the correlation function of the family, or the kernel that the user gave | |
| Cov(f_a(x), f_b(x')) = B_ab c(x, x') | `TaskEnsemble` | |
| v, the largest c(x, x) over the sites; 1 for a correlation function | `prior_scale` squared | |
| m_a, the constant mean of task a | N(shift_a, 9 v B_aa), integrated out; or known | (T,) |
| s_a^2, the noise variance of task a | `TaskModel.noise[j]`; or known | (T,) |
| r_a, the unit of task a | `TaskModel.units`; the model sees y_a / r_a; r_0 = 1 | (T,) |

Tasks can have very different units. The sites of all tasks share one factorisation and one idea of
what is negligible, so the values of a task are divided by a power of two that brings them to the
size of the target's, which loses no bit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from truvar._typing import Array, Index, Mask
from truvar.models.ensemble import CONSTANT, Ensemble, affordable_members, spread_members
from truvar.models.kernels import (
    SMOOTHNESS,
    Covariance,
    NamedKernel,
    Stationary,
    check_named_kernel,
    covariance_function,
    prior_scale,
    twice_nu,
)
from truvar.models.transforms import OutputTransform

if TYPE_CHECKING:
    from sklearn.gaussian_process.kernels import Kernel


@dataclass(frozen=True, eq=False)
class TaskModel:
    """Hyperparameters of several tasks: the most probable ones and a sample.

    All quantities are in the units of the tasks as the user has them. T: number of tasks.

    Attributes:
        family: "rbf", "matern12", "matern32" or "matern52"; None: the kernel is known.
        lengthscales: Row 0 is the mode, the others are the sample; None: the kernel is known. (1 +
            M, d)
        covariance: Between the tasks. It multiplies the correlation function, or the known kernel.
            (1 + M, T, T)
        noise: Noise variance of each task; None: as the user gave them. (1 + M, T)
        shifts: Known constant mean of each task, or the centre of its prior. (T,)
        known_means: Which constant means are known. (T,)
        means: Most probable constant mean of each task, for the mode. (T,)
        units: Divisors of the values of each task, powers of two. (T,)
        transform: From the user's values to those of the model; its power is 1.
        outliers: Positions of the observations that are left out as outliers.
        log_posterior: Log posterior density of the mode, up to a constant; NaN if nothing was
            fitted.
        categorical: Positions of the columns of categories, if the kernel is learned.
    """

    family: str | None
    lengthscales: Array | None
    covariance: Array
    noise: Array | None
    shifts: Array
    known_means: Array
    means: Array
    units: Array
    transform: OutputTransform
    outliers: tuple[int, ...] = ()
    log_posterior: float = float("nan")
    categorical: tuple[int, ...] = ()

    @property
    def signal(self) -> Array:
        """Variance of the target, relative to the correlation or the known kernel: (1 + M,)."""
        return np.asarray(self.covariance[:, 0, 0])

    @property
    def fitted(self) -> bool:
        """Whether this is the result of a fit."""
        return bool(np.isfinite(self.log_posterior))

    def target_kernel(self, target_variance: float) -> NamedKernel | None:
        """Return the learned kernel that `covariance[0]` multiplies; None if it is known."""
        if self.family is None or self.lengthscales is None:
            return None
        variance = float(self.signal[0]) / target_variance
        return check_named_kernel(self.family, self.lengthscales[0], variance, self.categorical)

    def members(self, most: int) -> Index:
        """Return the rows of at most that many members, spread over the sample; one: the mode."""
        return spread_members(len(self.covariance) - 1, most)


class TaskEnsemble(Ensemble):
    """The mixture posterior of the target at fixed points, given observations of any task.

    Points have the index of their task as the last coordinate. All quantities are in the units of
    the model.

    Args:
        model: The hyperparameters.
        sites: Points of the target to predict. (n, d + 1)
        kernel: The kernel, if it is known; None: it is learned.
        capacity: Number of observations that memory is planned for.
        offset: The part of the prior mean that depends on the point, a function of points (q, d +
            1) that returns (q,); None: there is none.
    """

    def __init__(
        self,
        model: TaskModel,
        sites: Array,
        kernel: Kernel | NamedKernel | None,
        capacity: int,
        offset: Callable[[Array], Array] | None = None,
    ) -> None:
        rows = model.members(affordable_members(len(sites), capacity))
        self.sites = np.ascontiguousarray(sites, dtype=float)
        self.kernels = [_correlation(model, j, kernel) for j in rows]
        self._known_kernel = kernel
        self.between = model.covariance[rows] / np.outer(model.units, model.units)  # (M, T, T)
        self.variance_of = np.diagonal(self.between, axis1=1, axis2=2)  # (M, T)
        kernel_variance = (
            1.0 if kernel is None else prior_scale(kernel, _coordinates(self.sites)) ** 2
        )
        self._signal = kernel_variance * self.variance_of  # variance of each task, (M, T)
        self.constants = np.where(model.known_means, 0.0, CONSTANT * self._signal)
        self.task_noise = None if model.noise is None else model.noise[rows] / model.units**2
        self.shifts = model.shifts / model.units
        self._point_offset = offset
        self._joint = None  # covariances differ between tasks
        self._start(len(rows))

    def _covariance(self, j: int, points: Array, others: Array) -> Array:
        tasks = _tasks_of(points)
        other_tasks = _tasks_of(others)
        within = self.kernels[j](_coordinates(points), _coordinates(others))
        constant = np.where(tasks[:, None] == other_tasks, self.constants[j][tasks][:, None], 0.0)
        return np.asarray(self.between[j][np.ix_(tasks, other_tasks)] * within + constant)

    def _prior_variance(self, j: int, points: Array) -> Array:
        tasks = _tasks_of(points)
        own = np.ones(len(points))
        if self._known_kernel is not None:
            own = np.asarray(self._known_kernel.diag(_coordinates(points)), dtype=float)
        return np.asarray(self.variance_of[j][tasks] * own + self.constants[j][tasks])

    def _prior_variances(self, points: Array) -> Array:
        return np.stack([self._prior_variance(j, points) for j in range(len(self.kernels))])

    def _scales(self, j: int) -> Array:
        kernel = self.kernels[j]
        scales = np.where(np.ptp(self.sites, axis=0) > 0, self.sites.std(axis=0), 1.0)
        if isinstance(kernel, Stationary):
            scales[:-1] = kernel.lengthscales
        return np.asarray(scales)

    def _prior_mean(self, points: Array) -> Array:
        return np.asarray(self.shifts[_tasks_of(points)] + self._offset_at(points))

    def _residuals(self, z: Array, points: Array) -> Array:
        return np.asarray(z - self._prior_mean(points))

    def _noise_of(self, j: int, noise: Array, learned: Mask, points: Array) -> Array:
        tasks = _tasks_of(points)
        own = (
            noise
            if self.task_noise is None
            else np.where(learned, self.task_noise[j][tasks], noise)
        )
        return np.asarray(np.maximum(own, 1e-8 * self._signal[j][tasks]))


def correlation_matrix(partials: Array, count: int) -> Array:
    """Return the correlation matrix with the given partial correlations.

    The entries are those of its Cholesky factor in polar form (Joe 2006): entry (i, j), i > j, is
    the correlation of tasks i and j given tasks 0 to j - 1. Every vector of numbers between -1 and
    1 gives a valid matrix.

    Args:
        partials: The partial correlations, row by row of the lower triangle. (count (count - 1) /
            2,)
        count: T.
    """
    lower = correlation_factor(partials, count)
    return np.asarray(lower @ lower.T)


def correlation_factor(partials: Array, count: int) -> Array:
    """Return the Cholesky factor of `correlation_matrix(partials, count)`."""
    lower = np.zeros((count, count))
    position = 0
    for i in range(count):
        left = 1.0
        for j in range(i):
            lower[i, j] = partials[position] * left
            left *= np.sqrt(1.0 - partials[position] ** 2)
            position += 1
        lower[i, i] = left
    return lower


def partial_correlations(correlation: Array) -> Array:
    """Return the partial correlations of a matrix, the inverse of `correlation_matrix`."""
    count = len(correlation)
    lower = np.linalg.cholesky(correlation + 1e-9 * np.eye(count))
    partials = []
    for i in range(count):
        left = 1.0
        for j in range(i):
            partials.append(float(np.clip(lower[i, j] / left, -1.0, 1.0)))
            left = np.sqrt(max(left**2 - lower[i, j] ** 2, 1e-12))
    return np.array(partials)


def power_of_two(ratio: Array) -> Array:
    """Return the powers of two nearest to positive numbers, on a logarithmic scale."""
    return np.asarray(2.0 ** np.round(np.log2(ratio)))


def _correlation(model: TaskModel, j: int, kernel: Kernel | NamedKernel | None) -> Covariance:
    """Return c(x, x') of a member."""
    if kernel is not None:
        return covariance_function(kernel)
    if model.family is None or model.lengthscales is None:
        raise AssertionError("a model without a family has a known kernel")
    return Stationary(
        twice_nu(SMOOTHNESS[model.family]), 1.0, model.lengthscales[j], model.categorical
    )


def _tasks_of(points: Array) -> Index:
    return np.asarray(points[:, -1].astype(int))


def _coordinates(points: Array) -> Array:
    return np.ascontiguousarray(points[:, :-1])
