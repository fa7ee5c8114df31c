"""Learning several tasks: length-scales, covariance between the tasks, means and noise.

| symbol | here | shape |
|---|---|---|
| u | values, standardised by the median and the unit of their task | (t,) |
| theta | log length-scales, log standard deviations a of the tasks, partial correlations, log noise variances | (k,) |
| C | correlation of the tasks: `coregionalization.correlation_matrix(tanh(theta))`, or as the user gave it | (T, T) |
| B = a a^T o C | covariance between the tasks, in their units | (T, T) |
| R | correlation between the points, or the kernel that the user gave, relative to its variance | (t, t) |
| K | B[i, j] R + constants + noise: 9 a_i^2 for the unknown constant mean of task i | (t, t) |

Theta depends on the given parts:

| kernel | covariance | theta |
|---|---|---|
| learned | learned | length-scales, a of every task, correlations |
| learned | given | length-scales, one a for all tasks: the unit of the covariance |
| given | learned | a of every task but the target, whose variance is the kernel's, correlations |

The noise of every task is part of theta unless it is given. The prior of a partial correlation is
normal on the scale of its inverse hyperbolic tangent. That of a task with the target has the median
0.46, as one offers a proxy because one believes that it tells something; the others have the median
0, so that tasks are related through the target unless the data say otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import cho_solve, solve_triangular

from truvar._typing import Array, Index
from truvar.models._coregionalization import (
    TaskModel,
    correlation_factor,
    correlation_matrix,
    partial_correlations,
    power_of_two,
)
from truvar.models._learned import (
    MAX_FLAT_RANGE,
    MAX_REFERENCE_DISTANCE,
    WARM_START_OBSERVATIONS,
    is_one_sided,
    location_and_scale,
    nearest_reference,
    prior_members,
    sample_size,
)
from truvar.models._noise import LOG_NOISE_MEAN, LOG_NOISE_SD
from truvar.models._outliers import find_outliers
from truvar.models.ensemble import CONSTANT
from truvar.models.hyperposterior import (
    JITTER,
    REACH,
    HyperPrior,
    find_mode,
    lengthscale_slope,
    sample_posterior,
    squared_distances,
)
from truvar.models.kernels import SMOOTHNESS, Stationary, twice_nu
from truvar.models.transforms import OutputTransform

# mean of artanh of the correlation with the target: a correlation of 0.46
TARGET_CORRELATION_MEAN = 0.5
# of artanh of every partial correlation: 95 % of the correlations are above -0.90 and below 0.99
CORRELATION_SD = 1.0
SCALE_SD = 0.5  # of the log standard deviation of a task, in its unit
# artanh of the correlation from which a second search starts: the sign has two basins
OPPOSITE_CORRELATION = -0.75
# of the squared unit of a task: the smallest variance that a search starts from
MIN_VARIANCE_SHARE = 1e-24


@dataclass(frozen=True)
class TaskData:
    """Observations of several tasks to learn from.

    Attributes:
        points: Where they were made. (t, d)
        tasks: Index of the task of each. (t,)
        values: In the user's units, a mean function subtracted. (t,)
        noise: Noise variances; NaN where they are learned. (t,)
        learn_noise: Whether a noise variance is learned for every task.
        extent: Extent of the domain. (d,)
        spacing: Smallest distance between coordinates of the domain, in extents. (d,)
        means: Known constant mean of each task; None: learned. (T,)
        family: The kernel family to learn; None: the kernel is known.
        covariance: The known covariance between the tasks; None: learned. (T, T)
        kernel: Known kernel between the points; None: learned. (t, t)
        kernel_variance: Largest prior variance of the known kernel; 1 if it is learned.
        references: Values of the target that matter, such as the thresholds.
        thresholds: The nearest threshold minus the mean function at the target's points; None
            without one of them.
        log: Whether the logarithms of the values are modelled.
        categorical: Positions of the columns of categories.
    """

    points: Array
    tasks: Index
    values: Array
    noise: Array
    learn_noise: bool
    extent: Array
    spacing: Array
    means: tuple[float | None, ...]
    family: str | None
    covariance: Array | None = None
    kernel: Array | None = None
    kernel_variance: float = 1.0
    references: tuple[float, ...] = ()
    thresholds: Array | None = None
    log: bool = False
    categorical: tuple[int, ...] = ()

    @property
    def count(self) -> int:
        """T, the number of tasks."""
        return len(self.means)

    @cached_property
    def modelled_values(self) -> Array:
        """The values or their logarithms, (t,)."""
        return OutputTransform(log=self.log).forward(self.values)

    @property
    def modelled_references(self) -> tuple[float, ...]:
        """The references or their logarithms."""
        return tuple(OutputTransform(log=self.log).forward(np.array(self.references)).tolist())

    @property
    def modelled_reference(self) -> float | None:
        """The reference nearest to the typical value of the target; None without one."""
        target = self.modelled_values[self.tasks == 0]
        return nearest_reference(target, self.modelled_references, self.means[0])


@dataclass(frozen=True)
class _Layout:
    """The parts of theta."""

    dimension: int  # length-scales; 0 if the kernel is known
    count: int  # T
    n_scales: int  # T, 1 if it is common, T - 1 without that of the target
    n_partials: int
    learn_noise: bool
    common: bool = False  # whether there is one scale for all tasks

    @property
    def scales(self) -> slice:
        return slice(self.dimension, self.dimension + self.n_scales)

    @property
    def partials(self) -> slice:
        return slice(self.scales.stop, self.scales.stop + self.n_partials)

    @property
    def noise(self) -> slice:
        return slice(self.partials.stop, self.partials.stop + self.count * self.learn_noise)

    def deviations(self, theta: Array) -> Array:
        """Return a, the standard deviation of every task in its unit."""
        a = np.exp(theta[self.scales])
        if self.common:
            return np.full(self.count, a[0])
        return np.concatenate([np.ones(self.count - self.n_scales), a])

    def of_free_scales(self, of_deviations: Array) -> Array:
        """Return the gradient by the free scales, given that by every task's scale."""
        if self.common:
            return np.array([of_deviations.sum()])
        return of_deviations[self.count - self.n_scales :]


def _layout(data: TaskData) -> _Layout:
    count = data.count
    learns_kernel = data.family is not None
    d = data.points.shape[1] * learns_kernel
    if data.covariance is not None:
        return _Layout(d, count, 1, 0, data.learn_noise, common=True)
    return _Layout(
        d, count, count - (not learns_kernel), count * (count - 1) // 2, data.learn_noise
    )


def task_prior(data: TaskData) -> HyperPrior:
    """Return the prior of theta."""
    layout = _layout(data)
    parts: list[tuple[Array, Array, Array, Array]] = []
    if layout.dimension:
        own = HyperPrior.default(
            layout.dimension, False, False, 0.5 * data.spacing, categorical=data.categorical
        )
        d = layout.dimension
        parts.append((own.mean[:d], own.sd[:d], own.low[:d], own.high[:d]))
    parts.append(_normal(np.zeros(layout.n_scales), SCALE_SD))
    centres = [
        TARGET_CORRELATION_MEAN if j == 0 else 0.0 for i in range(data.count) for j in range(i)
    ]
    parts.append(_normal(np.array(centres[: layout.n_partials]), CORRELATION_SD))
    parts.append(_normal(np.full(data.count * layout.learn_noise, LOG_NOISE_MEAN), LOG_NOISE_SD))
    return HyperPrior(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _normal(mean: Array, sd: float) -> tuple[Array, Array, Array, Array]:
    return mean, np.full(len(mean), sd), mean - REACH * sd, mean + REACH * sd


class TaskLikelihood:
    """The log marginal likelihood of the standardised values of several tasks, given theta.

    Args:
        data: The observations.
        kept: Positions of those that are not left out. (q,)
        shifts: Subtrahends of the values of each task. (T,)
        scales: Divisors of the values of each task. (T,)
    """

    def __init__(self, data: TaskData, kept: Index, shifts: Array, scales: Array) -> None:
        self.layout = _layout(data)
        self.categorical = data.categorical
        self.tasks = data.tasks[kept]
        self.points = np.ascontiguousarray(data.points[kept] / data.extent)
        self.values = (data.modelled_values[kept] - shifts[self.tasks]) / scales[self.tasks]
        self.noise = data.noise[kept] / scales[self.tasks] ** 2
        self.smoothness = None if data.family is None else twice_nu(SMOOTHNESS[data.family])
        self.unknown_means = np.array([mean is None for mean in data.means])
        self._known = (
            None if data.kernel is None else data.kernel[np.ix_(kept, kept)] / data.kernel_variance
        )
        self._correlation = None
        if data.covariance is not None:
            self._correlation = (
                data.covariance
                * scales[0] ** 2
                / (data.covariance[0, 0] * np.outer(scales, scales))
            )
        self._indicator = (self.tasks[:, None] == np.arange(data.count)).astype(float)  # (q, T)
        self._same = self.tasks[:, None] == self.tasks

    def between(self, theta: Array) -> Array:
        """Return B (T, T)."""
        a = self.layout.deviations(theta)
        return np.asarray(np.outer(a, a) * self._task_correlation(theta))

    def noise_variances(self, theta: Array) -> Array:
        """Return the noise variance of every observation (q,)."""
        if not self.layout.learn_noise:
            return self.noise + JITTER
        learned = np.exp(theta[self.layout.noise])[self.tasks]
        return np.asarray(np.where(np.isnan(self.noise), learned, self.noise) + JITTER)

    def value(self, theta: Array) -> float:
        """Return log p(u given theta), minus infinity where K cannot be factorised."""
        lower = self._factor(self._covariance(theta)[0])
        if lower is None:
            return -np.inf
        whitened = solve_triangular(lower, self.values, lower=True, check_finite=False)
        return -0.5 * float(whitened @ whitened) - float(np.log(np.diag(lower)).sum())

    def value_and_gradient(self, theta: Array) -> tuple[float, Array]:
        """Return log p(u given theta) and its gradient (k,)."""
        covariance, between_points = self._covariance(theta)
        lower = self._factor(covariance)
        if lower is None:
            return -np.inf, np.zeros(len(theta))
        alpha = cho_solve((lower, True), self.values, check_finite=False)
        inverse = cho_solve((lower, True), np.eye(len(alpha)), check_finite=False)
        inner = np.outer(alpha, alpha) - inverse  # d log p / dK = inner / 2
        value = -0.5 * float(self.values @ alpha) - float(np.log(np.diag(lower)).sum())
        gradient = np.zeros(len(theta))
        if self.smoothness is not None:
            self._lengthscale_gradient(theta, inner, gradient)
        a = self.layout.deviations(theta)
        between = self.between(theta)
        by_task = self._indicator.T @ (inner * between_points) @ self._indicator  # (T, T)
        constants = np.where(self.unknown_means, CONSTANT * a**2, 0.0)
        within = np.einsum("pi,pq,qi->i", self._indicator, inner, self._indicator)
        of_scales = (between * by_task).sum(axis=1) + constants * within
        gradient[self.layout.scales] = self.layout.of_free_scales(of_scales)
        if self.layout.n_partials:
            gradient[self.layout.partials] = self._partial_gradient(theta, by_task * np.outer(a, a))
        if self.layout.learn_noise:
            own = np.diag(inner) * np.isnan(self.noise)
            gradient[self.layout.noise] = (
                0.5 * np.exp(theta[self.layout.noise]) * (self._indicator.T @ own)
            )
        return value, gradient

    def constant_means(self, theta: Array) -> Array:
        """Return the posterior mean of the constant of every task, in standardised units: (T,)."""
        if len(self.values) == 0:
            return np.zeros(self.layout.count)
        lower = self._factor(self._covariance(theta)[0])
        if lower is None:
            return np.zeros(self.layout.count)
        alpha = cho_solve((lower, True), self.values, check_finite=False)
        constants = np.where(self.unknown_means, CONSTANT * self.layout.deviations(theta) ** 2, 0.0)
        return np.asarray(constants * (self._indicator.T @ alpha))

    def _covariance(self, theta: Array) -> tuple[Array, Array]:
        """Return K and R (q, q)."""
        between_points = self._between_points(theta)
        constants = np.where(self.unknown_means, CONSTANT * self.layout.deviations(theta) ** 2, 0.0)
        covariance = self.between(theta)[np.ix_(self.tasks, self.tasks)] * between_points
        covariance += np.where(self._same, constants[self.tasks][:, None], 0.0)
        covariance[np.diag_indices_from(covariance)] += self.noise_variances(theta)
        return covariance, between_points

    def _between_points(self, theta: Array) -> Array:
        if self._known is not None:
            return self._known
        if self.smoothness is None:
            raise AssertionError("a kernel is known or learned")
        lengthscales = np.exp(theta[: self.layout.dimension])
        return Stationary(self.smoothness, 1.0, lengthscales, self.categorical)(
            self.points, self.points
        )

    def _task_correlation(self, theta: Array) -> Array:
        if self._correlation is not None:
            return np.asarray(self._correlation)
        return correlation_matrix(np.tanh(theta[self.layout.partials]), self.layout.count)

    def _lengthscale_gradient(self, theta: Array, inner: Array, out: Array) -> None:
        """Write d log p / d log l_k, one column of the points at a time."""
        lengthscales = np.exp(theta[: self.layout.dimension])
        squares = [
            squared_distances(self.points, lengthscales, k, self.categorical)
            for k in range(self.layout.dimension)
        ]
        total = np.zeros((len(self.points), len(self.points)))
        for square in squares:
            total += square
        between = self.between(theta)[np.ix_(self.tasks, self.tasks)]
        weights = inner * between * lengthscale_slope(total, self.smoothness or 0)
        for k, square in enumerate(squares):
            out[k] = 0.5 * float((weights * square).sum())

    def _partial_gradient(self, theta: Array, weights: Array) -> Array:
        """Return the gradient by the partial correlations, for d log p = sum(weights dC) / 2."""
        count = self.layout.count
        partials = np.tanh(theta[self.layout.partials])
        lower = correlation_factor(partials, count)
        gradient = np.empty(len(partials))
        position = 0
        for i in range(count):
            for k in range(i):
                p = partials[position]
                slope = np.zeros(count)  # of row i of the factor
                slope[k] = (1.0 - p * p) * float(np.prod(_roots(partials, i, k)))
                slope[k + 1 : i + 1] = -p * lower[i, k + 1 : i + 1]
                # Twice half of it: C is symmetric.
                gradient[position] = float(weights[i] @ (lower @ slope))
                position += 1
        return gradient

    @staticmethod
    def _factor(covariance: Array) -> Array | None:
        """Return the lower Cholesky factor; None if the matrix is not positive definite."""
        try:
            return np.asarray(np.linalg.cholesky(covariance), dtype=float)
        except np.linalg.LinAlgError:
            return None


def _roots(partials: Array, i: int, k: int) -> Array:
    """Return sqrt(1 - p^2) of the partial correlations of row i before column k."""
    start = i * (i - 1) // 2
    return np.asarray(np.sqrt(1.0 - partials[start : start + k] ** 2))


def fit_tasks(
    data: TaskData, previous: TaskModel | None, seed: int, marginalise: bool = True
) -> TaskModel:
    """Return the hyperparameters learned from the observations.

    Args:
        data: The observations; the target has at least two.
        previous: The model of fewer observations, which the search starts from.
        seed: Seed of the sample.
        marginalise: Whether to draw a sample; otherwise there is the mode alone.
    """
    outliers = task_outliers(data)
    kept = np.setdiff1d(np.arange(len(data.values)), outliers)
    shifts, scales = _standardisation(data, kept)
    likelihood = TaskLikelihood(data, kept, shifts, scales)
    prior = task_prior(data)
    mode = find_mode(likelihood, prior, _starts(data, prior, previous, scales, len(kept)))
    density = (
        likelihood.value(mode)
        + prior.log_density(mode)
        - float(np.log(scales[data.tasks[kept]]).sum())
    )
    members = np.empty((0, len(mode)))
    target = data.modelled_values[kept][data.tasks[kept] == 0]
    learns_kernel = likelihood.layout.dimension > 0
    is_flat = learns_kernel and np.ptp(target) <= MAX_FLAT_RANGE * scales[0]
    if marginalise:
        count, proposals, rounds = sample_size(len(kept))
        members = sample_posterior(likelihood, prior, mode, count, proposals, rounds, seed).thetas
    if is_flat:
        mode = prior.mean
    if learns_kernel and (is_flat or _is_one_sided(data, kept, target)):
        members[::2] = prior_members(prior, len(data.extent), mode, len(members[::2]), seed)
    return _model(
        data, likelihood, np.vstack([mode, members]), shifts, scales, outliers, float(density)
    )


def unfitted_tasks(data: TaskData) -> TaskModel:
    """Return the prior as a model, without a sample, for too few observations to learn from."""
    everything = np.arange(len(data.values))
    shifts, scales = _standardisation(data, everything)
    likelihood = TaskLikelihood(data, everything, shifts, scales)
    theta = task_prior(data).mean[None, :]
    return _model(data, likelihood, theta, shifts, scales, (), float("nan"))


def task_outliers(data: TaskData) -> tuple[int, ...]:
    """Return the positions of outliers among the values of each task."""
    found: list[int] = []
    for task in np.unique(data.tasks):
        own = np.flatnonzero(data.tasks == task)
        references = data.modelled_references if task == 0 else ()
        outliers = find_outliers(
            data.modelled_values[own], references, exact=data.noise[own] == 0.0
        )
        found += [int(own[position]) for position in outliers]
    return tuple(sorted(found))


def _model(
    data: TaskData,
    likelihood: TaskLikelihood,
    thetas: Array,
    shifts: Array,
    scales: Array,
    outliers: tuple[int, ...],
    density: float,
) -> TaskModel:
    layout = likelihood.layout
    units_of_values = np.outer(scales, scales) / data.kernel_variance
    constants = likelihood.constant_means(thetas[0])
    lengthscales = np.exp(thetas[:, : layout.dimension]) * data.extent if layout.dimension else None
    noise = np.exp(thetas[:, layout.noise]) * scales**2 if data.learn_noise else None
    return TaskModel(
        family=data.family,
        lengthscales=lengthscales,
        covariance=np.stack([likelihood.between(theta) for theta in thetas]) * units_of_values,
        noise=noise,
        shifts=shifts,
        known_means=np.array([mean is not None for mean in data.means]),
        means=shifts + scales * constants,
        units=power_of_two(scales / scales[0]),
        transform=OutputTransform(float(shifts[0]), float(scales[0]), 1.0, data.log),
        outliers=outliers,
        log_posterior=density,
        categorical=data.categorical,
    )


def _standardisation(data: TaskData, kept: Index) -> tuple[Array, Array]:
    """Return the typical value of every task, and the unit of its variation: (T,) each."""
    values = data.modelled_values[kept]
    tasks = data.tasks[kept]
    shifts = np.zeros(data.count)
    scales = np.ones(data.count)
    for task, mean in enumerate(data.means):
        own = values[tasks == task]
        reference = data.modelled_reference if task == 0 else None
        shifts[task], scales[task] = location_and_scale(own, reference, mean)
        if len(own) < 2 and task > 0:  # nothing is known of its unit
            scales[task] = scales[0]
    if data.family is None:
        scales[0] = np.sqrt(data.kernel_variance)
    if data.covariance is None:
        return shifts, scales
    variances = np.diag(data.covariance) / data.covariance[0, 0]
    ratios = np.sqrt(np.where(variances > 0, variances, 1.0))
    common = scales[0]
    deviations = (values - shifts[tasks]) / ratios[tasks]
    if len(values) > 1 and deviations.any():
        common = location_and_scale(deviations, None, 0.0)[1]
    if data.modelled_reference is not None:
        common = max(common, abs(data.modelled_reference - shifts[0]) / MAX_REFERENCE_DISTANCE)
    return shifts, common * ratios


def _is_one_sided(data: TaskData, kept: Index, target: Array) -> bool:
    """Return whether all values of the target lie on one side of the threshold."""
    if data.thresholds is not None:
        own = np.flatnonzero(data.tasks == 0)
        return is_one_sided(target, data.thresholds[np.isin(own, kept)])
    reference = data.modelled_reference
    return reference is not None and is_one_sided(target, reference)


def _starts(
    data: TaskData, prior: HyperPrior, previous: TaskModel | None, scales: Array, count: int
) -> Sequence[Array]:
    """Return starts of the search for the mode: the prior's mean, opposite signs, the last mode."""
    layout = _layout(data)
    starts = [prior.mean]
    if layout.n_partials:
        opposite = prior.mean.copy()
        opposite[layout.partials] = np.where(
            prior.mean[layout.partials] > 0, OPPOSITE_CORRELATION, 0.0
        )
        starts.append(opposite)
    if previous is None:
        return starts
    warm = prior.mean.copy()
    covariance = previous.covariance[0] * data.kernel_variance
    relative = np.sqrt(np.maximum(np.diag(covariance) / scales**2, MIN_VARIANCE_SHARE))
    deviations = relative * scales
    if layout.dimension and previous.lengthscales is not None:
        warm[: layout.dimension] = np.log(previous.lengthscales[0] / data.extent)
    warm[layout.scales] = np.log(
        relative[:1] if layout.common else relative[data.count - layout.n_scales :]
    )
    if layout.n_partials:
        partials = partial_correlations(covariance / np.outer(deviations, deviations))
        warm[layout.partials] = np.arctanh(np.clip(partials, -1.0 + 1e-6, 1.0 - 1e-6))
    if layout.learn_noise and previous.noise is not None:
        warm[layout.noise] = np.log(np.maximum(previous.noise[0] / scales**2, MIN_VARIANCE_SHARE))
    return [warm] if count > WARM_START_OBSERVATIONS else [*starts, warm]
