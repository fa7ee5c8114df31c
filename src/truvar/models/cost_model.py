"""Costs predicted from those that were observed: a Gaussian process over the logarithm of the cost.

| symbol | here | shape |
|---|---|---|
| z_t = log c_t - log prior(x_t) | `CostModel._values` | (t,) |
| k + v | kernel, and the variance of the level that all costs share | |
| noise | the variance between repeated measurements, a share of that of z | |
| m(x), s^2(x) | `CostModel.moments`: mean and variance of log c(x), noise included | (q,) |
| E c(x) = exp(m + s^2 / 2) | `CostModel.expected` | (q,) |
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.spatial import cKDTree
from scipy.special import stdtrit

from truvar._typing import Array
from truvar.domain.domain import Domain
from truvar.domain.learned_cost import LearnedCost
from truvar.exceptions import InvalidArgumentError
from truvar.models.fit import Model, fit
from truvar.models.kernels import indicator_columns, named_kernel
from truvar.models.priors import Learned, is_refit_step
from truvar.validation import check_nonnegative_array

_MIN_OBSERVED = 3  # costs before hyperparameters are fitted
_MAX_FACTOR = 10.0  # a prediction exceeds the observed range by at most this factor
# share of the variance of the logarithms that is taken to be noise: a learned noise gave intervals
# that had 80 to 90 % of the durations of the measured tables, this share 92 to 98 %
_NOISE_SHARE = 0.1
# standard deviation of the logarithms that is taken to be noise at least, about 5 % of the cost
_MIN_NOISE_SD = 0.05
_MIN_COST = 1e-9  # costs below it count as this much: their logarithm must be finite
_MAX_LOG_COST = 690.0  # of a predicted cost, about 1e300, so that it is finite
_NORMAL_QUANTILE = 1.959963984540054  # of a 95 % interval
_UNKNOWN_LEVEL_SD = 10.0  # of the level where no prior is given: the costs decide alone
_TYPICAL_LENGTHSCALE = 0.3  # in extents of the domain, before there are enough costs for a fit


class CostModel:
    """Predictions of costs at points of a domain, given those observed.

    The hyperparameters are those fitted at the last number of costs that `is_refit_step` names. The
    model depends on the observed costs alone, so that a replay of a study leads to the same one.

    Args:
        domain: The domain.
        points: Points with an observed cost, shape (t, d), or (t, d + 1) with the task last.
        costs: Their costs, shape (t,).
        spec: What is expected before costs are observed.
        seed: Seed of the restarts of the fit.
        n_tasks: Number of tasks; 0: there are none.
        fits: Fits to the first of these costs, by their number, which are not made again; those
            made are added.

    Raises:
        InvalidArgumentError: If a planned cost is not positive.
    """

    def __init__(
        self,
        domain: Domain,
        points: Array,
        costs: Array,
        spec: LearnedCost | None = None,
        *,
        seed: int = 0,
        n_tasks: int = 0,
        fits: dict[int, Model] | None = None,
    ) -> None:
        self._domain = domain
        self._spec = LearnedCost() if spec is None else spec
        self._seed = seed
        self._fits = {} if fits is None else fits
        self._n_tasks = n_tasks
        self._planned: Array | None = None
        if isinstance(self._spec.prior, str):
            self._planned = _planned_costs(domain, self._spec.prior)
        self._seen = self._unit(points)
        self._values = np.log(np.maximum(costs, _MIN_COST)) - self._log_prior(points)

    def expected(self, points: Array) -> Array:
        """Return the expected costs at points (q, d'): (q,)."""
        mean, sd = self.moments(points)
        return np.exp(np.minimum(mean + sd**2 / 2, _MAX_LOG_COST))

    def median(self, points: Array) -> Array:
        """Return the medians of the costs at points (q, d'): (q,)."""
        return np.exp(np.minimum(self.moments(points)[0], _MAX_LOG_COST))

    def interval(self, points: Array) -> tuple[Array, Array] | None:
        """Return the ends of 95 % intervals of the costs at points (q, d'), (q,) each.

        Few costs say little about their own spread, hence the quantile of Student's t distribution.
        None before anything is known.
        """
        t = len(self._values)
        if t == 0 and self._spec.prior is None:
            return None
        mean, sd = self.moments(points)
        quantile = _NORMAL_QUANTILE if t < _MIN_OBSERVED else float(stdtrit(t - 1, 0.975))
        low = np.minimum(mean - quantile * sd, _MAX_LOG_COST)
        high = np.minimum(mean + quantile * sd, _MAX_LOG_COST)
        return np.exp(low), np.exp(high)

    def moments(self, points: Array) -> tuple[Array, Array]:
        """Return mean and standard deviation of the logarithms of costs at points (q, d').

        Without any cost or prior both are 0: a cost of 1.
        """
        offset = self._log_prior(points)
        if len(self._values) == 0:
            sd = 0.0 if self._spec.prior is None else self._prior_sd
            return offset, np.full(len(points), sd)
        there = self._unit(points)
        cross = self._fitted.kernel(there, self._seen) + self._level_variance  # (q, t)
        mean = self._level + cross @ self._weights
        margin = np.log(_MAX_FACTOR)
        mean = np.clip(mean, self._values.min() - margin, self._values.max() + margin)
        explained = solve_triangular(self._factor[0], cross.T, lower=True)
        variance = self._fitted.kernel.diag(there) + self._level_variance
        variance = np.maximum(variance - (explained**2).sum(axis=0), 0.0)
        return offset + mean, np.sqrt(variance + self._noise)

    # -- the model
    # ----------------------------------------------------------------------------------------------

    @property
    def _prior_sd(self) -> float:
        return float(np.log(self._spec.factor) / _NORMAL_QUANTILE)

    @property
    def _level(self) -> float:
        """Mean of the level that all costs share, relative to the prior."""
        return 0.0 if self._spec.prior is not None else float(np.mean(self._values))

    @property
    def _level_variance(self) -> float:
        if self._spec.prior is None:
            return _UNKNOWN_LEVEL_SD**2
        return self._prior_sd**2 / 2  # the other half is the variance between places

    @cached_property
    def _fitted(self) -> Model:
        """Kernel: fitted to the costs up to the last refit, a typical one before the first."""
        count = len(self._values)
        while count > _MIN_OBSERVED and not is_refit_step(count):
            count -= 1
        values = self._values[:count]
        d = self._seen.shape[1]
        if count in self._fits:
            return self._fits[count]
        if count >= _MIN_OBSERVED and np.ptp(values) > 0:
            noise = _noise_variance(values)
            family = Learned(restarts=2)
            fitted = fit(family, self._seen[:count], values, noise, np.ones(d), None, self._seed)
            self._fits[count] = fitted
            return fitted
        variance = self._prior_sd**2 / 2 if count < _MIN_OBSERVED else _MIN_NOISE_SD**2
        kernel = named_kernel("matern52", np.full(d, _TYPICAL_LENGTHSCALE), variance)
        return Model(kernel, 0.0, None, float("nan"))

    @property
    def _noise(self) -> float:
        return _noise_variance(self._values)

    @cached_property
    def _factor(self) -> tuple[Array, bool]:
        """Cholesky factor of the covariance of the observed logarithms."""
        covariance = self._fitted.kernel(self._seen) + self._level_variance
        factor, is_lower = cho_factor(
            covariance + self._noise * np.eye(len(covariance)), lower=True
        )
        return factor, bool(is_lower)

    @cached_property
    def _weights(self) -> Array:
        return np.asarray(cho_solve(self._factor, self._values - self._level))

    def _log_prior(self, points: Array) -> Array:
        """Return the mean of the logarithms before any cost is known, (q,).

        The expectation of the cost, exp(m + s^2 / 2), is then the prior.
        """
        prior = self._spec.prior
        if prior is None:
            return np.zeros(len(points))
        if self._planned is None:
            return np.full(len(points), np.log(float(prior)) - self._prior_sd**2 / 2)
        d = len(self._domain.columns)
        rows = self._places.query(self._unit(points[:, :d]))[1]
        return np.asarray(np.log(self._planned[rows]) - self._prior_sd**2 / 2)

    @cached_property
    def _places(self) -> cKDTree:
        """The points of the domain, to find the nearest one."""
        return cKDTree(self._unit(self._domain.points))

    def _unit(self, points: Array) -> Array:
        """Return points with every extent 1, categories and tasks, if any, as indicators."""
        domain = self._domain
        d = len(domain.columns)
        shifted = (points[:, :d] - domain.bounds[:, 0]) / domain.extent
        levels = {k: int(np.ptp(domain.bounds[k])) + 1 for k in domain.categorical}
        if points.shape[1] > d:
            shifted = np.column_stack([shifted, points[:, d]])
            levels[d] = self._n_tasks
        # Every category has a column, seen or not.
        extremes = np.zeros((max(levels.values(), default=1), shifted.shape[1]))
        for k, count in levels.items():
            extremes[:, k] = np.minimum(np.arange(len(extremes)), count - 1)
        both = np.vstack([shifted, extremes])
        return indicator_columns(both, tuple(levels))[0][: len(points)]


def _noise_variance(values: Array) -> float:
    """Return the variance of the logarithms (t,) of repeated measurements."""
    return max(_NOISE_SHARE * float(np.var(values)), _MIN_NOISE_SD**2)


def _planned_costs(domain: Domain, name: str) -> Array:
    """Return the planned costs of a column, (n,).

    Raises:
        InvalidArgumentError: If there is no such column, or a planned cost is not positive.
    """
    planned = check_nonnegative_array(
        domain.column(name), f"the planned cost {name!r}", count=len(domain)
    )
    if (planned <= 0).any():
        row = int(np.argmax(planned <= 0))
        raise InvalidArgumentError(
            f"a planned cost must be above 0, but row {row} of column {name!r} has "
            f"{planned[row]:g}; correct it, or name another column"
        )
    return planned
