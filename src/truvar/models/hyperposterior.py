"""The posterior of the hyperparameters: its mode, and a sample by importance sampling.

| symbol | here | shape |
|---|---|---|
| X | points, each column divided by the extent of the domain | (t, d) |
| u | standardised values | (t,) |
| theta | log length-scales, log signal standard deviation, log noise variance, its slopes, Yeo-Johnson power | (k,) |
| z = psi(u) | `transforms.yeo_johnson`; the power is part of theta, or known | (t,) |
| K | s^2 (R(X, X) + C) + noise: R the correlation, C the variance of the constant mean in units of s^2 | (t, t) |
| p(theta given u) | N(z; 0, K) |dz/du| N(theta; prior) up to a constant | |

A model with the single best theta is overconfident: few data leave the length-scales wide open. So
predictions average over a sample of theta. The sample is drawn by importance sampling from
Student-t proposals that adapt to it (Cappe et al. 2004, population Monte Carlo; deterministic
mixture weights as of Owen and Zhou 2000), on Sobol points, and reduced to equally weighted members
by systematic resampling. Everything is a deterministic function of the data and the seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.linalg import cho_solve, solve_triangular
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs, dtrtrs
from scipy.optimize import minimize
from scipy.special import chdtri, gammaln, ndtri

from truvar._numba import kernels
from truvar._numba.threads import blas_in_one_thread
from truvar._typing import Array, Index
from truvar.models._noise import LOG_NOISE_MEAN, LOG_NOISE_SD
from truvar.models.ensemble import CONSTANT
from truvar.models.kernels import Stationary, column_mask
from truvar.models.transforms import log_derivative, power_slope, yeo_johnson

JITTER = 1e-8  # smallest noise variance, in units of the standardised values
REACH = 4.0  # prior standard deviations that the search for the mode may go
_EXACT_REACH = (
    8.0  # the same for the noise of values that may be exact, as those that a program computes
)
# Log noise variance in units of the signal's, for claims: from a hundredth to all of its sd.
_WIDE_LOG_NOISE_MEAN = -5.0
_WIDE_LOG_NOISE_SD = 2.5
_MIN_LOG_NOISE = -12.0
_MAX_LOG_NOISE = 1.0
FREEDOM = 5.0  # degrees of freedom of the proposals
# factor on the first proposal's covariance, for tails that the curvature at the mode does not show
_WIDER = 1.2
_MOST_ITERATIONS = 60  # of the search for the mode
# on the typical length-scale of categories: those that differ are an extent apart, not a fraction
_CATEGORY_FACTOR = 2.0
_SLOPE_SD = 3.0  # prior standard deviation of a slope of the log noise variance, per extent
_STEP = 1e-3  # of the differences that give the curvature at the mode


@dataclass(frozen=True)
class HyperPrior:
    """Independent normal priors on the components of theta, truncated to intervals.

    Attributes:
        mean: Their means.
        sd: Their standard deviations.
        low: Lower ends of the intervals.
        high: Upper ends of the intervals.
    """

    mean: Array  # (k,)
    sd: Array  # (k,)
    low: Array  # (k,)
    high: Array  # (k,)

    @staticmethod
    def default(
        dimension: int,
        learn_noise: bool,
        learn_power: bool,
        shortest: Array | float = 0.0,
        learn_slopes: bool = False,
        categorical: Sequence[int] = (),
        may_be_exact: bool = False,
    ) -> HyperPrior:
        """Return the priors for a domain of that dimension.

        The typical length-scale grows with the square root of the dimension (Hvarfner, Hellsten,
        Nardi 2024), from 0.3 extents in one dimension; the noise is small unless the data say
        otherwise, so that it does not swallow a sparse signal.

        Args:
            dimension: d.
            learn_noise: Whether theta has a component for the noise.
            learn_power: Whether theta has a component for the power.
            shortest: Shortest length-scale in extents, such as the spacing of the domain. (d,) or a
                number
            learn_slopes: Whether theta has components for the slopes of the log noise variance.
            categorical: Positions of the columns of categories.
            may_be_exact: Whether the noise may be as small as that of exact values.
        """
        mean = np.array([np.log(0.3 * np.sqrt(dimension))] * dimension + [0.0])
        mean[list(categorical)] += np.log(_CATEGORY_FACTOR)
        sd = np.array([1.0] * dimension + [0.5])
        low = mean - REACH * sd
        with np.errstate(divide="ignore"):
            low[:dimension] = np.clip(
                np.log(shortest), low[:dimension], mean[:dimension] - sd[:dimension]
            )
        high = mean + REACH * sd
        parts: list[tuple[Array, ...]] = [(mean, sd, low, high)]
        if learn_noise:
            lowest = LOG_NOISE_MEAN - (_EXACT_REACH if may_be_exact else REACH) * LOG_NOISE_SD
            highest = LOG_NOISE_MEAN + REACH * LOG_NOISE_SD
            parts.append(_interval(LOG_NOISE_MEAN, LOG_NOISE_SD, lowest, highest))
        for _ in range(dimension * learn_slopes):
            parts.append(_interval(0.0, _SLOPE_SD, -REACH * _SLOPE_SD, REACH * _SLOPE_SD))
        if learn_power:
            parts.append(
                _interval(1.0, 0.5, 0.0, 2.0)
            )  # beyond these psi has no inverse everywhere
        return HyperPrior(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def with_wide_noise(self, dimension: int) -> HyperPrior:
        """Return the prior with a noise that may be as large as the signal, for claims.

        Choices prefer little noise, so as not to miss a sparse signal. A claim that believes a
        noisy value is wrong at that very point.

        Args:
            dimension: d; the component of the noise is the one after length-scales and signal.
        """
        at = dimension + 1
        if len(self.mean) <= at:  # all noise is given
            return self
        changed = {
            "mean": _WIDE_LOG_NOISE_MEAN,
            "sd": _WIDE_LOG_NOISE_SD,
            "low": max(_WIDE_LOG_NOISE_MEAN - REACH * _WIDE_LOG_NOISE_SD, _MIN_LOG_NOISE),
            "high": _MAX_LOG_NOISE,
        }
        columns = {name: getattr(self, name).copy() for name in changed}
        for name, value in changed.items():
            columns[name][at] = value
        return HyperPrior(**columns)

    def log_density(self, theta: Array) -> float:
        """Return the log density up to a constant; minus infinity outside the intervals."""
        if (theta < self.low).any() or (theta > self.high).any():
            return -np.inf
        pull = (theta - self.mean) / self.sd
        return -0.5 * float(pull @ pull)


def _interval(*numbers: float) -> tuple[Array, ...]:
    return tuple(np.array([number]) for number in numbers)


class LogLikelihood(Protocol):
    """A log likelihood of theta, which the posterior is made of."""

    def value(self, theta: Array) -> float:
        """Return the log likelihood, minus infinity where it cannot be computed."""
        ...

    def value_and_gradient(self, theta: Array) -> tuple[float, Array]:
        """Return the log likelihood and its gradient (k,)."""
        ...


class MarginalLikelihood:
    """The log marginal likelihood of standardised values as a function of theta.

    Args:
        points: X.
        values: u.
        smoothness: Of the kernel: 0 for RBF, twice nu for Matern (1, 3 or 5).
        noise: Known noise variances of u, NaN where the noise is learned; None if it is learned
            everywhere.
        extra: Variances that single observations have on top, such as those of outliers.
        learn_power: Whether the Yeo-Johnson power is part of theta.
        known_power: The power, if it is not.
        constant: Variance of the constant mean in units of the signal variance; 0 if the mean is
            known.
        learn_noise: Whether theta has a component for the noise; None: if the noise of any
            observation is learned.
        learn_slopes: Whether the log of the learned noise variance has a slope in each coordinate;
            theta has the variance at the mean of the points, and the slopes.
        relative: Known factors of the learned noise variance. (t,)
        categorical: Positions of the columns of categories.
    """

    def __init__(
        self,
        points: Array,
        values: Array,
        smoothness: int,
        noise: Array | None = None,
        extra: Array | None = None,
        learn_power: bool = False,
        known_power: float = 1.0,
        constant: float = CONSTANT,
        learn_noise: bool | None = None,
        learn_slopes: bool = False,
        relative: Array | None = None,
        categorical: tuple[int, ...] = (),
    ) -> None:
        self.categorical = categorical
        self.points = np.ascontiguousarray(points, dtype=float)
        self._is_category = column_mask(categorical, points.shape[1])
        self.values = np.asarray(values, dtype=float)
        self.smoothness = smoothness
        self.learned = np.ones(len(values), bool) if noise is None else np.isnan(noise)
        self.noise = np.zeros(len(values)) if noise is None else np.where(self.learned, 0.0, noise)
        self.extra = np.zeros(len(values)) if extra is None else extra
        self.learn_power = learn_power
        self.known_power = known_power
        self.constant = constant
        self.dimension = points.shape[1]
        self.learn_noise = bool(self.learned.any()) if learn_noise is None else learn_noise
        self.learn_slopes = learn_slopes
        self.relative = np.ones(len(values)) if relative is None else relative
        self.centred = (
            self.points - self.points.mean(axis=0) if learn_slopes else np.zeros_like(self.points)
        )

    def subset(self, kept: Index) -> MarginalLikelihood:
        """Return the likelihood of some of the observations."""
        return MarginalLikelihood(
            self.points[kept],
            self.values[kept],
            self.smoothness,
            np.where(self.learned, np.nan, self.noise)[kept],
            self.extra[kept],
            self.learn_power,
            self.known_power,
            self.constant,
            self.learn_noise,
            self.learn_slopes,
            self.relative[kept],
            self.categorical,
        )

    def with_slopes(self) -> MarginalLikelihood:
        """Return the likelihood with slopes of the log noise variance in theta, the power known."""
        return self._copy(learn_slopes=True)

    def with_relative_noise(self, relative: Array) -> MarginalLikelihood:
        """Return the likelihood with known factors (t,) of the learned noise, the power known."""
        return self._copy(relative=relative)

    def with_points(self, points: Array) -> MarginalLikelihood:
        """Return the likelihood with other points X (t, d), the power known."""
        return self._copy(points=points, relative=self.relative)

    def _copy(self, **changed: Any) -> MarginalLikelihood:
        parts: dict[str, Any] = {
            "points": self.points,
            "values": self.values,
            "smoothness": self.smoothness,
            "noise": np.where(self.learned, np.nan, self.noise),
            "extra": self.extra,
            "known_power": self.known_power,
            "constant": self.constant,
            "learn_noise": self.learn_noise,
            "categorical": self.categorical,
        }
        return MarginalLikelihood(**(parts | changed))

    def lengthscales(self, theta: Array) -> Array:
        """Return the length-scales in extents (d,)."""
        return np.exp(theta[: self.dimension])

    def signal_variance(self, theta: Array) -> float:
        """Return s^2."""
        return float(np.exp(2.0 * theta[self.dimension]))

    def power(self, theta: Array) -> float:
        """Return the Yeo-Johnson power."""
        return float(theta[-1]) if self.learn_power else self.known_power

    def noise_variances(self, theta: Array) -> Array:
        """Return the noise variance of every observation, in units of z (t,)."""
        slope = np.exp(2.0 * log_derivative(self.values, self.power(theta)))
        known = (self.noise + self.extra) * slope
        if not self.learn_noise:
            return np.asarray(known + JITTER)
        return np.asarray(
            np.where(self.learned, self._learned_noise(theta) + self.extra, known) + JITTER
        )

    def slopes(self, theta: Array) -> Array:
        """Return the slopes of the log noise variance per extent (d,)."""
        return theta[self.dimension + 2 : 2 * self.dimension + 2]

    def _learned_noise(self, theta: Array) -> Array:
        """Return the noise variances as if all were learned (t,)."""
        variances = np.exp(theta[self.dimension + 1]) * self.relative
        if self.learn_slopes:
            variances = variances * np.exp(self.centred @ self.slopes(theta))
        return np.asarray(variances)

    def transformed(self, theta: Array) -> Array:
        """Return z (t,)."""
        return yeo_johnson(self.values, self.power(theta))

    def factor(self, theta: Array) -> tuple[Array, Array] | None:
        """Return the lower Cholesky factor of K and z; None if K is not positive definite."""
        t = len(self.values)
        variance = self.signal_variance(theta)
        lengthscales = self.lengthscales(theta)
        covariance = np.empty((t, t))
        form = (lengthscales, self._is_category, self.smoothness, variance)
        kernels.stationary(self.points, self.points, *form, covariance)
        covariance += variance * self.constant
        covariance.ravel()[:: t + 1] += self.noise_variances(theta)
        upper, info = dpotrf(
            covariance.T, clean=1, overwrite_a=1
        )  # called directly, as it is called very often
        if info != 0:
            return None
        lower = np.asarray(upper.T)
        return lower, self.transformed(theta)

    def signal_covariance(self, theta: Array, points: Array, others: Array) -> Array:
        """Return s^2 (R + C) between points, in extents."""
        variance = self.signal_variance(theta)
        kernel = Stationary(self.smoothness, variance, self.lengthscales(theta), self.categorical)
        return kernel(points, others) + variance * self.constant

    def value(self, theta: Array) -> float:
        """Return log p(u given theta), minus infinity where K cannot be factorised."""
        found = self.factor(theta)
        if found is None:
            return -np.inf
        lower, z = found
        whitened, _ = dtrtrs(lower.T, z, trans=1)
        jacobian = float(log_derivative(self.values, self.power(theta)).sum())
        return -0.5 * float(whitened @ whitened) - float(np.log(np.diag(lower)).sum()) + jacobian

    def value_and_gradient(self, theta: Array) -> tuple[float, Array]:
        """Return log p(u given theta) and its gradient (k,)."""
        found = self.factor(theta)
        if found is None:
            return -np.inf, np.zeros(len(theta))
        lower, z = found
        inverse, _ = dpotri(lower.T)  # the upper triangle of K^-1
        alpha, _ = dpotrs(lower.T, z)
        jacobian = float(log_derivative(self.values, self.power(theta)).sum())
        value = -0.5 * float(z @ alpha) - float(np.log(np.diag(lower)).sum()) + jacobian
        gradient = np.empty(len(theta))
        kernels.likelihood_gradient(
            self.points,
            self.lengthscales(theta),
            self._is_category,
            self.smoothness,
            self.signal_variance(theta),
            self.constant,
            alpha,
            inverse,
            gradient[: self.dimension + 1],
        )
        inner = alpha**2 - np.diag(inverse)  # d log p / dK has the diagonal inner / 2
        if self.learn_noise:
            pull = 0.5 * np.where(self.learned, self._learned_noise(theta) * inner, 0.0)
            gradient[self.dimension + 1] = float(pull.sum())
            if self.learn_slopes:
                gradient[self.dimension + 2 : 2 * self.dimension + 2] = pull @ self.centred
        if self.learn_power:
            gradient[-1] = self._power_gradient(theta, alpha, inner)
        return value, gradient

    def slope_statistic(self, theta: Array) -> float:
        """Return the score statistic of the hypothesis that the learned noise is equal everywhere.

        It is chi-squared distributed with d degrees of freedom if that is so, the level of the
        noise being estimated.
        """
        found = self.factor(theta)
        if found is None or not self.learned.any():
            return 0.0
        lower, z = found
        inverse = cho_solve((lower, True), np.eye(len(z)), check_finite=False)
        alpha = inverse @ z
        variances = np.where(self.learned, self._learned_noise(theta), 0.0)
        centred = self.points - self.points.mean(axis=0)
        directions = (
            np.column_stack([np.ones(len(z)), centred]) * variances[:, None]
        )  # of the level, and of each slope
        score = 0.5 * (alpha**2 - np.diag(inverse)) @ directions
        information = 0.5 * directions.T @ inverse**2 @ directions
        across = information[0, 1:] / information[0, 0]
        slopes_score = score[1:] - across * score[0]
        slopes_information = information[1:, 1:] - np.outer(information[0, 1:], across)
        solution, *_ = np.linalg.lstsq(slopes_information, slopes_score, rcond=1e-10)
        return float(slopes_score @ solution)

    def _power_gradient(self, theta: Array, alpha: Array, inner_diagonal: Array) -> float:
        slope = power_slope(self.values, self.power(theta))
        size = np.sign(self.values) * np.log1p(np.abs(self.values))  # d log psi' / d lambda
        gradient = -float(alpha @ slope) + float(size.sum())
        known = ~self.learned  # known noise is scaled by psi'^2
        gradient += float(
            (inner_diagonal * (self.noise_variances(theta) - JITTER) * size)[known].sum()
        )
        return gradient


def squared_distances(
    points: Array, lengthscales: Array, k: int, categorical: Sequence[int]
) -> Array:
    """Return the squared distances of points (t, d) along column k, in length-scales: (t, t)."""
    column = points[:, k]
    if k in categorical:
        return np.asarray((column[:, None] != column) / lengthscales[k] ** 2)
    scaled = column / lengthscales[k]
    return np.asarray((scaled[:, None] - scaled) ** 2)


def lengthscale_slope(square: Array, smoothness: int) -> Array:
    """Return g with dR / d log l_k = g (x_k - x'_k)^2 / l_k^2, for scaled squared distances."""
    if smoothness == 0:
        return np.asarray(np.exp(-0.5 * square))
    r = np.sqrt(smoothness * square)
    if smoothness == 5:
        return np.asarray((5.0 / 3.0) * (1.0 + r) * np.exp(-r))
    if smoothness == 3:
        return np.asarray(3.0 * np.exp(-r))
    distance = np.sqrt(square)
    return np.divide(np.exp(-r), distance, out=np.zeros_like(r), where=distance > 0)


@dataclass(frozen=True)
class HyperSample:
    """Equally weighted draws from the posterior of theta.

    Attributes:
        thetas: The draws.
        mode: The most probable theta.
        mean: Mean of the weighted sample that they were resampled from.
        covariance: Its covariance, which warm-starts the next sample.
        effective: Effective size of that sample.
        log_evidence: Logarithm of the integral of likelihood times prior, up to a constant that
            only depends on the number of observations.
    """

    thetas: Array  # (members, k)
    mode: Array  # (k,)
    mean: Array  # (k,)
    covariance: Array  # (k, k)
    effective: float
    log_evidence: float


def find_mode(likelihood: LogLikelihood, prior: HyperPrior, starts: Sequence[Array]) -> Array:
    """Return the theta of highest posterior density that a search from the starts finds."""

    def loss(theta: Array) -> tuple[float, Array]:
        value, gradient = likelihood.value_and_gradient(theta)
        if not np.isfinite(value):
            return 1e10, np.zeros(len(theta))
        return -(value + prior.log_density(theta)), -(gradient - (theta - prior.mean) / prior.sd**2)

    bounds = list(zip(prior.low, prior.high, strict=True))
    best_loss = np.inf
    best = prior.mean
    with blas_in_one_thread():
        for start in starts:
            options = {"maxiter": _MOST_ITERATIONS}
            inside = np.clip(start, prior.low, prior.high)
            found = minimize(
                loss, inside, jac=True, method="L-BFGS-B", bounds=bounds, options=options
            )
            if found.fun < best_loss:
                best_loss = found.fun
                best = np.asarray(found.x)
    return best


def sample_posterior(
    likelihood: LogLikelihood,
    prior: HyperPrior,
    mode: Array,
    members: int = 16,
    proposals: int = 64,
    rounds: int = 2,
    seed: int = 0,
) -> HyperSample:
    """Draw from the posterior of theta by adaptive importance sampling around its mode.

    Args:
        likelihood: The marginal likelihood.
        prior: The prior of theta.
        mode: The mode, where the first proposal is centred.
        members: Number of equally weighted draws to return.
        proposals: Number of points per round, a power of two.
        rounds: Number of proposals, each fitted to the sample so far.
        seed: Of the Sobol points.
    """
    with blas_in_one_thread():
        centre = mode
        covariance = _WIDER * _curvature(likelihood, prior, mode)
        used = [
            _Proposal(prior.mean, np.asarray(np.diag(prior.sd)), proposals // 2)
        ]  # finds modes that the search did not
        thetas = used[0].draw(seed)
        log_target = _log_posterior(likelihood, prior, thetas)
        for turn in range(rounds):
            used.append(
                _Proposal(
                    centre, np.asarray(np.linalg.cholesky(covariance), dtype=float), proposals
                )
            )
            fresh = used[-1].draw(seed + turn + 1)
            thetas = np.vstack([thetas, fresh])
            log_target = np.append(log_target, _log_posterior(likelihood, prior, fresh))
            weights, log_evidence = _weights(thetas, log_target, used)
            centre = weights @ thetas
            deviation = thetas - centre
            covariance = (deviation * weights[:, None]).T @ deviation + 1e-3 * np.diag(prior.sd**2)
        effective = 1.0 / float((weights**2).sum())
        chosen = _systematic(thetas, weights, members)
    log_evidence += _log_constants(prior)
    return HyperSample(thetas[chosen], mode, centre, covariance, effective, log_evidence)


def _log_constants(prior: HyperPrior) -> float:
    """Return the log of the constants that densities of prior and proposals leave out."""
    k = len(prior.mean)
    of_prior = -0.5 * k * np.log(2.0 * np.pi) - np.log(prior.sd).sum()
    of_proposal = (
        gammaln((FREEDOM + k) / 2) - gammaln(FREEDOM / 2) - k / 2 * np.log(FREEDOM * np.pi)
    )
    return float(of_prior - of_proposal)


def _curvature(likelihood: LogLikelihood, prior: HyperPrior, mode: Array) -> Array:
    """Return the inverse of the negative Hessian at the mode, nowhere wider than the prior."""
    k = len(mode)
    information = np.diag(1.0 / prior.sd**2)
    for i in range(k):
        step = np.zeros(k)
        step[i] = _STEP
        ahead = likelihood.value_and_gradient(mode + step)[1]
        behind = likelihood.value_and_gradient(mode - step)[1]
        information[i] -= (ahead - behind) / (2.0 * _STEP)
    symmetric = 0.5 * (information + information.T)
    scaled = prior.sd[:, None] * symmetric * prior.sd
    values, vectors = np.linalg.eigh(scaled)
    inverse = (
        vectors / np.maximum(values, 1.0)
    ) @ vectors.T  # in prior units, the prior itself has information 1
    return np.asarray(prior.sd[:, None] * inverse * prior.sd)


@dataclass(frozen=True)
class _Proposal:
    """A Student-t with `count` draws."""

    centre: Array  # (k,)
    lower: Array  # (k, k): Cholesky factor of its scale
    count: int

    def draw(self, seed: int) -> Array:
        """Return the draws (count, k), from scrambled Sobol points."""
        from scipy.stats import qmc

        k = len(self.centre)
        sobol = qmc.Sobol(k + 1, rng=np.random.default_rng(seed))
        unit = np.clip(sobol.random(self.count), 1e-9, 1.0 - 1e-9)
        normal = ndtri(unit[:, :k])
        chi_square = chdtri(FREEDOM, unit[:, k])
        return np.asarray(
            self.centre + (normal / np.sqrt(chi_square / FREEDOM)[:, None]) @ self.lower.T
        )

    def log_density(self, thetas: Array) -> Array:
        """Return the log density at the thetas, up to a constant that all proposals share."""
        k = len(self.centre)
        scaled = solve_triangular(self.lower, (thetas - self.centre).T, lower=True)
        distance = (scaled**2).sum(axis=0)
        volume = np.log(np.diag(self.lower)).sum()
        return np.asarray(-volume - (FREEDOM + k) / 2 * np.log1p(distance / FREEDOM))


def _log_posterior(likelihood: LogLikelihood, prior: HyperPrior, thetas: Array) -> Array:
    log_prior = np.array([prior.log_density(theta) for theta in thetas])
    inside = np.isfinite(log_prior)
    log_prior[inside] += [likelihood.value(theta) for theta in thetas[inside]]
    return log_prior


def _weights(thetas: Array, log_target: Array, used: Sequence[_Proposal]) -> tuple[Array, float]:
    """Return normalised weights against the mixture of the proposals, and the log of their sum.

    The largest are truncated (Ionides 2008).
    """
    mixture = [np.log(proposal.count) + proposal.log_density(thetas) for proposal in used]
    log_weights = log_target - np.logaddexp.reduce(mixture, axis=0)
    weights = np.exp(log_weights - log_weights.max())
    weights = np.minimum(weights, weights.mean() * np.sqrt(len(weights)))
    return np.asarray(weights / weights.sum()), float(log_weights.max() + np.log(weights.sum()))


def _systematic(thetas: Array, weights: Array, members: int) -> Array:
    """Return equally weighted draws, evenly spaced in the cumulative weight along axis 0."""
    order = np.argsort(thetas[:, 0], kind="stable")
    cumulative = np.cumsum(weights[order])
    places = np.searchsorted(cumulative, (np.arange(members) + 0.5) / members)
    return np.asarray(order[np.minimum(places, len(order) - 1)])
