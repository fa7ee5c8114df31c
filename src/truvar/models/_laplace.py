"""Laplace's approximation of outcomes that are not normal, and its evidence.

| symbol | here | shape |
|---|---|---|
| m, K | prior mean and covariance of f at the measurements | scalar, (t, t) |
| f^ | mode of p(f given y), `Approximation.mode` | (t,) |
| g = d log p(y given f^) / df = K^-1 (f^ - m) | `Approximation.gradient` | (t,) |
| W = -d^2 log p(y given f^) / df^2, at least `MIN_PRECISION` | `Approximation.precision` | (t,) |
| B = I + W^1/2 K W^1/2 = L L^T | `Approximation.lower` has L | (t, t) |
| log Z = log p(y given f^) - (f^ - m)^T g / 2 - log det B / 2 | `Approximation.log_evidence` | |
| z = f^ + g / W with noise variance 1 / W: the *pseudo-values* | `Approximation.pseudo_values` | (t,) |

The posterior at the mode is that of a Gaussian process with the pseudo-values as measurements, so
that everything that is made for normal noise serves other outcomes. The mean is exact for any W, so
that bounding W from below does not move it. Rasmussen and Williams (2006), algorithms 3.1 and 5.1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs

from truvar._numba import kernels
from truvar._typing import Array
from truvar.models._labels import Derivatives, Labels
from truvar.models.kernels import column_mask

_MAX_NEWTON_STEPS = 60
_MAX_HALVINGS = 20  # of a Newton step that does not increase the posterior density
_TOLERANCE = 1e-9  # largest change of f^ in the last step
_STEP = 1e-4  # of the difference that gives dW / df


@dataclass(frozen=True, eq=False)
class Approximation:
    """The normal approximation of p(f given y) at its mode.

    Attributes:
        mode: f^. (t,)
        gradient: g. (t,)
        precision: W. (t,)
        lower: L. (t, t)
        log_evidence: log Z.
    """

    mode: Array
    gradient: Array
    precision: Array
    lower: Array
    log_evidence: float

    @property
    def pseudo_values(self) -> tuple[Array, Array]:
        """The pseudo-values z and their noise variances: (t,) each."""
        return self.mode + self.gradient / self.precision, 1.0 / self.precision


def approximate(
    labels: Labels, covariance: Array, mean: float, start: Array | None = None
) -> Approximation:
    """Return the normal approximation of the posterior of f at the measurements.

    Newton's method, whose steps are halved where they do not increase the density of f.

    Args:
        labels: The measurements.
        covariance: K. (t, t)
        mean: m.
        start: K^-1 (f - m) of the f to start from; None: f = m. (t,)
    """
    weights = np.zeros(len(labels))  # K^-1 (f - m)
    f = np.full(len(labels), mean)
    found = labels.derivatives(f)
    density = _log_density(found, weights, f - mean)
    if start is not None:
        f_start = mean + covariance @ start
        found_start = labels.derivatives(f_start)
        density_start = _log_density(found_start, start, f_start - mean)
        if density_start > density:  # False for NaN
            weights = start
            f = f_start
            found = found_start
            density = density_start
    for _ in range(_MAX_NEWTON_STEPS):
        lower = _factor(covariance, found.precision)
        target = _newton_weights(covariance, lower, found, f - mean)
        change = covariance @ (target - weights)
        size = float(np.abs(change).max(initial=0.0))
        if size <= _TOLERANCE:
            break
        share = 1.0
        for _ in range(_MAX_HALVINGS):
            new_weights = weights + share * (target - weights)
            new_f = f + share * change
            new_found = labels.derivatives(new_f)
            new_density = _log_density(new_found, new_weights, new_f - mean)
            if new_density >= density:  # False for NaN
                break
            share /= 2.0
        else:
            break  # rounding: no step increases the density any more
        is_still = share == 1.0 and size <= _TOLERANCE
        weights = new_weights
        f = new_f
        found = new_found
        density = new_density
        if is_still:
            break
    lower = _factor(covariance, found.precision)
    log_evidence = density - float(np.log(np.diag(lower)).sum())
    return Approximation(f, found.gradient, found.precision, lower, log_evidence)


def _log_density(found: Derivatives, weights: Array, deviation: Array) -> float:
    with np.errstate(invalid="ignore", over="ignore"):
        return float(found.log_density.sum() - 0.5 * weights @ deviation)


def _factor(covariance: Array, precision: Array) -> Array:
    """Return L with L L^T = I + W^1/2 K W^1/2, whose eigenvalues are at least 1."""
    root = np.sqrt(precision)
    inner = covariance * (root[:, None] * root)
    inner.ravel()[:: len(root) + 1] += 1.0
    upper, info = dpotrf(inner.T, clean=1, overwrite_a=1)
    if info != 0:
        raise AssertionError("I + W^1/2 K W^1/2 is positive definite")
    return np.asarray(upper.T)


def _newton_weights(covariance: Array, lower: Array, found: Derivatives, deviation: Array) -> Array:
    """Return K^-1 (f - m) after a Newton step: the f that fits the pseudo-values of this f best."""
    root = np.sqrt(found.precision)
    b = found.precision * deviation + found.gradient
    solved, _ = dpotrs(lower.T, root * (covariance @ b))
    return np.asarray(b - root * solved)


class LaplaceEvidence:
    """The log evidence of outcomes as a function of theta, with the interface of a log likelihood.

    theta has the log length-scales and the log signal standard deviation, as in `hyperposterior`.

    Args:
        labels: The measurements, with points in extents.
        mean: m.
        smoothness: Of the kernel: 0 for RBF, twice nu for Matern (1, 3 or 5).
        categorical: Positions of the columns of categories.
    """

    def __init__(
        self, labels: Labels, mean: float, smoothness: int, categorical: tuple[int, ...] = ()
    ) -> None:
        self.labels = labels
        self.mean = mean
        self.smoothness = smoothness
        self.dimension = labels.points.shape[1]
        self._points = np.ascontiguousarray(labels.points, dtype=float)
        self._is_category = column_mask(categorical, self.dimension)
        self._weights: Array | None = None  # of the last mode, where the next search starts

    def covariance(self, theta: Array) -> Array:
        """Return K, the uncertainty of the constant mean included: (t, t)."""
        t = len(self.labels)
        variance = float(np.exp(2.0 * theta[self.dimension]))
        lengthscales = np.exp(theta[: self.dimension])
        covariance = np.empty((t, t))
        kernels.stationary(
            self._points,
            self._points,
            lengthscales,
            self._is_category,
            self.smoothness,
            variance,
            covariance,
        )
        covariance += variance * self.labels.outcome.constant
        return covariance

    def value(self, theta: Array) -> float:
        """Return log Z."""
        return self._approximate(self.covariance(theta)).log_evidence

    def value_and_gradient(self, theta: Array) -> tuple[float, Array]:
        """Return log Z and its gradient (k,)."""
        covariance = self.covariance(theta)
        found = self._approximate(covariance)
        root = np.sqrt(found.precision)
        inverse, _ = dpotri(found.lower.T)  # the upper triangle of B^-1
        inverse = np.triu(inverse) + np.triu(inverse, 1).T
        inverse *= root[:, None] * root  # (K + 1 / W)^-1
        # diag (K^-1 + W)^-1, which the determinant changes by as f^ moves with theta
        spread = (1.0 - np.diag(inverse) / found.precision) / found.precision
        ahead = self.labels.derivatives(found.mode + _STEP).precision
        behind = self.labels.derivatives(found.mode - _STEP).precision
        by_mode = -0.5 * spread * (ahead - behind) / (2.0 * _STEP)  # d log Z / df^
        curvature = self.labels.curvature(found.mode)
        inner = covariance * curvature[:, None]
        inner.ravel()[:: len(curvature) + 1] += 1.0
        implicit = np.linalg.solve(inner, by_mode)  # (I + H K)^-1, H not bounded from below
        # (g g^T + g u^T + u g^T - (K + 1/W)^-1) . dK / 2, written as one outer product
        gradient = np.empty(len(theta))
        kernels.likelihood_gradient(
            self._points,
            np.exp(theta[: self.dimension]),
            self._is_category,
            self.smoothness,
            float(np.exp(2.0 * theta[self.dimension])),
            self.labels.outcome.constant,
            found.gradient + implicit,
            np.asfortranarray(inverse + np.outer(implicit, implicit)),
            gradient,
        )
        return found.log_evidence, gradient

    def _approximate(self, covariance: Array) -> Approximation:
        found = approximate(self.labels, covariance, self.mean, self._weights)
        self._weights = found.gradient
        return found
