"""Hyperparameters by penalised marginal likelihood: kernel, constant mean and, if asked, noise.

Coordinates are divided by the extent of the domain and values are standardised before the fit, so
that one set of weak priors serves every problem: log length-scale ~ N(log 0.3, 1) in extents, log
signal variance ~ N(0, 1) and log noise ~ N(log 1e-3, 2), both relative to the variance of the
values. The priors prevent an absurd fit to five points, and with more data the likelihood dominates
them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any
from warnings import catch_warnings, simplefilter

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from truvar._numba.threads import blas_in_one_thread
from truvar._typing import Array
from truvar.domain.domain import Domain
from truvar.domain.table import number_column
from truvar.exceptions import InvalidMeasurementError, InvalidModelError
from truvar.messages import for_interface
from truvar.models._coregionalization import power_of_two
from truvar.models.kernels import indicator_columns, named_kernel, prior_scale, to_sklearn
from truvar.models.priors import Learned

if TYPE_CHECKING:
    import pandas as pd
    from sklearn.gaussian_process.kernels import Kernel

# share of the variance of the values: the smallest noise that a kernel is learned with
JITTER_SHARE = 1e-10
# mean and standard deviation of the log length-scale, in extents of the domain
_LENGTH_PRIOR = (np.log(0.3), 1.0)
_SIGNAL_PRIOR = (0.0, 1.0)  # of the log signal variance, relative to the variance of the values
# of the log noise variance, relative to the variance of the values
_NOISE_PRIOR = (np.log(1e-3), 2.0)
_LENGTH_BOUNDS = (np.log(0.01), np.log(10.0))
_SIGNAL_BOUNDS = (np.log(1e-2), np.log(1e2))
_NOISE_BOUNDS = (np.log(1e-6), np.log(1.0))
_DEFAULT_BOUNDS = (1e-5, 1e5)  # of a scikit-learn hyperparameter for which none are given
# of a fitted variance, relative to that of the values: below is noise, above is rounding
_SIGNAL_RANGE = (1e-6, 1e12)


@dataclass(frozen=True)
class Model:
    """A fitted prior, in the user's units.

    Attributes:
        kernel: Kernel with its hyperparameters.
        mean: Constant mean.
        noise: Noise variance; None: as the user gave it.
        log_likelihood: Penalised log marginal likelihood; NaN if nothing was fitted.
    """

    kernel: Kernel
    mean: float
    noise: float | None
    log_likelihood: float


def unfitted(family: Learned, extent: Array, values: Array) -> Model:
    """Return the prior to use before there are enough values to fit one.

    Args:
        family: Kernel family.
        extent: Extent of the domain. (d,)
        values: Values observed so far. (q,)

    Returns:
        A model with typical length-scales and with the mean and variance of the values.
    """
    variance = float(np.var(values)) if len(values) > 1 else 1.0
    variance = variance if variance > 0 else 1.0
    lengths = np.exp(_LENGTH_PRIOR[0]) * extent
    mean = float(np.mean(values)) if len(values) else 0.0
    noise = np.exp(_NOISE_PRIOR[0]) * variance if family.noise else None
    return Model(named_kernel(family.kernel, lengths, variance), mean, noise, float("nan"))


def fit(
    family: Learned,
    points: Array,
    values: Array,
    noise: Array | float,
    extent: Array,
    mean: float | None,
    seed: int,
    categorical: Sequence[int] = (),
) -> Model:
    """Return the hyperparameters that maximise the marginal likelihood times the priors.

    Args:
        family: Kernel family.
        points: Coordinates. (q, d)
        values: Observed values. (q,)
        noise: Known noise variance, ignored if the family learns it. (q,) or a number
        extent: Extent of the domain. (d,)
        mean: Constant mean; None: learned.
        seed: Seed of the random starting points.
        categorical: Positions of the columns of categories, whose length-scales in the kernel
            belong to the Hamming distance (see `kernels.with_categories`).
    """
    from scipy.optimize import minimize

    centre = float(np.mean(values)) if mean is None else mean
    spread = float(np.sqrt(np.mean((values - centre) ** 2)))
    spread = spread if spread > 0 else 1.0
    z = (values - centre) / spread
    known = np.broadcast_to(np.asarray(noise, dtype=float) / spread**2, values.shape)
    problem = _Likelihood(family, points / extent, z, known, mean is None, categorical)
    rng = np.random.default_rng(seed)
    starts = [problem.typical] + [problem.draw(rng) for _ in range(family.restarts - 1)]
    best: Any = None
    # Many small factorisations take five times as long if threads wait for each other.
    with blas_in_one_thread():
        for start in starts:
            found = minimize(
                problem.loss, start, jac=True, method="L-BFGS-B", bounds=problem.bounds
            )
            if best is None or found.fun < best.fun:
                best = found
    d = points.shape[1]
    variance = float(np.exp(best.x[0]))
    lengths = np.exp(best.x[1 : 1 + d])
    kernel = named_kernel(family.kernel, lengths * extent, variance * spread**2)
    learned_noise = float(np.exp(best.x[-1])) * spread**2 if family.noise else None
    return Model(
        kernel, centre + spread * problem.constant(best.x), learned_noise, -float(best.fun)
    )


class _Likelihood:
    """Penalised negative log marginal likelihood of standardised values, and its gradient.

    Its argument is theta = (log signal variance, log length-scales (d), log noise if learned).
    """

    def __init__(
        self,
        family: Learned,
        points: Array,
        z: Array,
        known: Array,
        learn_mean: bool,
        categorical: Sequence[int] = (),
    ) -> None:
        self.family = family
        self.points = points
        self._columns = np.arange(points.shape[1])  # that the columns of the points belong to
        if categorical:
            self.points, self._columns = indicator_columns(points, categorical)
        self.z = z
        self.known = known
        self.learn_mean = learn_mean
        self._dimension = points.shape[1]
        d = self._dimension
        priors = [_SIGNAL_PRIOR, *[_LENGTH_PRIOR] * d, *[_NOISE_PRIOR] * family.noise]
        self.bounds = [_SIGNAL_BOUNDS, *[_LENGTH_BOUNDS] * d, *[_NOISE_BOUNDS] * family.noise]
        self.centre, self.width = np.array(priors).T
        self.typical = self.centre.copy()

    def draw(self, rng: np.random.Generator) -> Array:
        """Return a random starting point drawn from the priors, inside the bounds."""
        low, high = np.array(self.bounds).T
        return np.asarray(np.clip(rng.normal(self.centre, self.width), low, high))

    def loss(self, theta: Array) -> tuple[float, Array]:
        """Return the penalised negative log likelihood and its gradient."""
        kernel = self._kernel(theta)
        covariance, slopes = kernel(self.points, eval_gradient=True)  # (q, q), (q, q, 1 + columns)
        # The indicators of a parameter share its length-scale.
        if len(self._columns) > self._dimension:
            of = np.append(0, 1 + self._columns)
            slopes = np.stack(
                [slopes[:, :, of == k].sum(axis=2) for k in range(1 + self._dimension)], axis=2
            )
        noise = self._noise(theta)
        factor = cho_factor(covariance + np.diag(noise + JITTER_SHARE), lower=True)
        residual = self.z - self._gls(factor)
        alpha = cho_solve(factor, residual)
        inverse = cho_solve(factor, np.eye(len(self.z)))
        q = len(self.z)
        value = (
            0.5 * residual @ alpha + np.log(np.diag(factor[0])).sum() + 0.5 * q * np.log(2 * np.pi)
        )
        inner = np.outer(alpha, alpha) - inverse
        gradient = -0.5 * np.einsum("ij,jik->k", inner, slopes)
        gradient = np.append(
            gradient, -0.5 * np.trace(inner) * np.exp(theta[1 + self._dimension :])
        )
        pull = (theta - self.centre) / self.width
        return float(value + 0.5 * pull @ pull), gradient + pull / self.width

    def constant(self, theta: Array) -> float:
        """Return the constant mean that belongs to theta, in standardised units."""
        covariance = self._kernel(theta)(self.points)
        return self._gls(
            cho_factor(covariance + np.diag(self._noise(theta) + JITTER_SHARE), lower=True)
        )

    def _gls(self, factor: tuple[Array, bool]) -> float:
        """Return the constant mean; it is optimal if it is learned, so its gradient is 0."""
        return _gls(factor, self.z) if self.learn_mean else 0.0

    def _kernel(self, theta: Array) -> Kernel:
        lengthscales = np.exp(theta[1 : 1 + self._dimension])[self._columns]
        return named_kernel(self.family.kernel, lengthscales, float(np.exp(theta[0])))

    def _noise(self, theta: Array) -> Array:
        log_noise = theta[1 + self._dimension :]
        return np.full(len(self.z), np.exp(log_noise[0])) if len(log_noise) else self.known


def _gls(factor: tuple[Array, bool], values: Array) -> float:
    """Return the generalised least-squares constant, given the factor of the covariance."""
    ones = cho_solve(factor, np.ones(len(values)))
    return float(ones @ values / ones.sum())


def fit_kernel(
    kernel: Kernel,
    points: Array,
    values: Array,
    noise: Array | float | None,
    mean: float | None,
    seed: int,
    restarts: int = 3,
    penalises_noise: bool = False,
) -> Model:
    """Return a custom kernel, fitted within its bounds by scikit-learn's maximum likelihood.

    The values are divided by a power of two near their spread. Bounds of a variance that are
    scikit-learn's default belong to no unit, and count relative to the square of that power.

    Args:
        kernel: Kernel with its starting values and bounds.
        points: Coordinates. (q, d)
        values: Observed values. (q,)
        noise: Known noise variance, (q,) or a number; None: learned along with the kernel.
        mean: Constant mean; None: learned.
        seed: Seed of the random starting points.
        restarts: Number of the random starting points.
        penalises_noise: Whether a learned noise variance has the prior of learned families, without
            which a flexible kernel passes through every value.

    Raises:
        InvalidModelError: If the kernel cannot have the variance of the values.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import ConstantKernel, WhiteKernel

    kernel = to_sklearn(kernel)
    centre = float(np.mean(values)) if mean is None else mean
    spread = float(np.sqrt(np.mean((values - centre) ** 2))) or prior_scale(kernel, points)
    unit = float(power_of_two(np.array(spread)))
    variance = (spread / unit) ** 2  # of the values that are fitted
    scaled = ConstantKernel(unit**-2, "fixed") * with_variances_in_units(kernel, unit**2)
    if noise is None:
        scaled = scaled + WhiteKernel(0.1 * variance, (1e-6 * variance, 10 * variance))
    known = 0.0 if noise is None else np.asarray(noise, dtype=float)
    alpha = np.broadcast_to(known / unit**2 + JITTER_SHARE * variance, values.shape)
    optimizer: Any = "fmin_l_bfgs_b"
    if penalises_noise and noise is None:
        optimizer = partial(_minimise_with_noise_prior, float(np.log(variance)))
    regressor = GaussianProcessRegressor(
        scaled, alpha=alpha, optimizer=optimizer, n_restarts_optimizer=restarts, random_state=seed
    )
    with blas_in_one_thread():
        try:
            with catch_warnings():
                if penalises_noise:  # a model that is fitted again and again would repeat itself
                    simplefilter("ignore", ConvergenceWarning)
                regressor.fit(points, (values - centre) / unit)
        except np.linalg.LinAlgError:
            raise _unsuitable(kernel, spread) from None
        found = regressor.kernel_ if noise is not None else regressor.kernel_.k1
        low, high = _SIGNAL_RANGE
        if not low <= float(found.diag(points).max()) / variance <= high:
            raise _unsuitable(kernel, spread)
        if mean is None:
            covariance = regressor.kernel_(points) + np.diag(alpha)
            centre = _gls(cho_factor(covariance, lower=True), values)
    learned_noise = None if noise is not None else float(regressor.kernel_.k2.noise_level) * unit**2
    likelihood = float(regressor.log_marginal_likelihood_value_) - len(values) * float(np.log(unit))
    return Model(kernel.clone_with_theta(found.k2.theta), centre, learned_noise, likelihood)


def _minimise_with_noise_prior(
    log_variance: float, loss: Any, start: Array, bounds: Array
) -> tuple[Array, float]:
    """Return the theta of smallest loss, with the prior of the log noise, and that loss.

    Args:
        log_variance: Logarithm of the variance of the values.
        loss: Negative log likelihood with its gradient, as scikit-learn gives it to an optimizer;
            the log noise is the last part of theta.
        start: Where the search begins.
        bounds: Bounds of theta.
    """
    from scipy.optimize import minimize

    centre = log_variance + _NOISE_PRIOR[0]

    def penalised(theta: Array) -> tuple[float, Array]:
        value, gradient = loss(theta)
        pull = (theta[-1] - centre) / _NOISE_PRIOR[1]
        gradient = np.array(gradient, dtype=float)
        gradient[-1] += pull / _NOISE_PRIOR[1]
        return float(value) + 0.5 * pull**2, gradient

    found = minimize(penalised, start, method="L-BFGS-B", jac=True, bounds=bounds)
    return found.x, float(found.fun)


def noise_prior(values: Array, mean: float | None) -> tuple[float, float]:
    """Return mean and standard deviation of the log noise variance of values, before they are seen.

    Args:
        values: Observed values. (q,)
        mean: Constant mean; None: learned.
    """
    centre = float(np.mean(values)) if mean is None else mean
    variance = float(np.mean((values - centre) ** 2)) or 1.0
    return float(np.log(variance)) + float(_NOISE_PRIOR[0]), _NOISE_PRIOR[1]


def with_variances_in_units(kernel: Kernel, unit: float) -> Kernel:
    """Return a kernel with the default bounds of its variances times the unit of a variance.

    A variance outside such bounds starts at the unit.
    """
    parameters = kernel.get_params(deep=True)
    changed: dict[str, Any] = {}
    for name, bounds in parameters.items():
        if not name.endswith(("constant_value_bounds", "noise_level_bounds")) or not isinstance(
            bounds, tuple
        ):
            continue
        if bounds == _DEFAULT_BOUNDS:
            low, high = (unit * bound for bound in bounds)
            value = name.removesuffix("_bounds")
            changed[name] = (low, high)
            changed[value] = parameters[value] if low <= parameters[value] <= high else unit
    return kernel.clone_with_theta(kernel.theta).set_params(**changed)


def _unsuitable(kernel: Kernel, spread: float) -> InvalidModelError:
    return InvalidModelError(
        f"the kernel {kernel} cannot be fitted within its bounds to values with a standard "
        f"deviation of {spread:.3g}; multiply it by ConstantKernel({spread**2:.3g}), correct the "
        "bounds, or leave out the kernel to learn one"
    )


def training_data(
    frame: pd.DataFrame, columns: Sequence[str], value: str | None, domain: Domain | None = None
) -> tuple[Array, Array]:
    """Return the points (q, d) and values (q,) of a table to learn from.

    Args:
        frame: The table.
        columns: Names of the coordinate columns.
        value: Name of the column of values; None: the only column besides the coordinates.
        domain: The domain whose parameters encode the columns; None: they are plain numbers.

    Raises:
        InvalidModelError: If the column of values is ambiguous or there are fewer than 2 rows.
        InvalidMeasurementError: If a number is not finite.
    """
    if value is None:
        others = [name for name in frame.columns if name not in columns]
        if len(others) != 1:
            raise InvalidModelError(
                "the column of values must be named unless it is the only one beside the "
                f"coordinates, but there are {', '.join(map(str, others)) or 'none'}; give "
                f"{for_interface('value=...', problem='[model] value')}"
            )
        value = str(others[0])
    if domain is not None and not domain.is_plain:
        encoders = zip(domain.parameters, columns, strict=True)
        points = np.column_stack([each.encode_column(frame[name], name) for each, name in encoders])
    else:
        points = np.column_stack([number_column(frame, name) for name in columns])
    values = number_column(frame, value)
    if len(values) < 2:
        raise InvalidModelError(
            f"a model is fitted to at least 2 rows, but the table has {len(values)}; give it more "
            "rows"
        )
    finite = np.isfinite(points).all(axis=1) & np.isfinite(values)
    if not finite.all():
        row = int(np.argmin(finite))
        raise InvalidMeasurementError(
            f"a model is fitted to finite numbers, got {points[row].tolist()} with the value "
            f"{values[row]} in row {row}; remove or correct that row"
        )
    return points, values
