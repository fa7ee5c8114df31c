"""Monotone transforms of measured values, such as logarithms of latencies.

| symbol | here |
|---|---|
| y | a value in the user's units |
| v | y, or log y |
| u = (v - shift) / scale | the standardised value |
| z = shift + scale psi_lambda(u) | the value that the model sees; psi: Yeo-Johnson; lambda = 1: the identity |

psi has slope 1 at 0, so that z has the units of v and agrees with it near `shift`: variances of
noise carry over there without a factor. Every transform is strictly increasing, so a threshold, an
order or a quantile carries over exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from truvar._typing import Array

# of values; smaller ones count as all alike, as the fourth power must not vanish
SMALLEST_UNIT = 1e-50
# of a quadrature: they reach 10 standard deviations, as a square grows like exp(6 z) at a power of
# 0 and 3 sd
QUADRATURE_NODES = 32
_LOG_POWER_TOLERANCE = 1e-6  # |lambda| below which the power is replaced by the logarithm


@dataclass(frozen=True)
class OutputTransform:
    """A logarithm, if asked, then a Yeo-Johnson power (2000) of the standardised value.

    Attributes:
        shift: The value that is left unchanged.
        scale: The distance from it at which the power begins to matter.
        power: lambda, from 0 to 2; 1 is the identity, below 1 compresses large values, above 1
            small ones.
        log: Whether the logarithm is taken first.
    """

    shift: float = 0.0
    scale: float = 1.0
    power: float = 1.0
    log: bool = False

    @property
    def is_identity(self) -> bool:
        """Whether values stay as they are."""
        return self.power == 1.0 and not self.log

    @property
    def has_light_tails(self) -> bool:
        """Whether the mean of the values does not depend on the tails of z."""
        return self.is_identity

    def forward(self, y: Array | float) -> Array:
        """Return z for values in the user's units; minus infinity where there is no logarithm."""
        v = np.asarray(y, dtype=float)
        if self.log:
            v = np.log(v, out=np.full(v.shape, -np.inf), where=v > 0)
        if self.power == 1.0:
            return v
        return self.shift + self.scale * yeo_johnson((v - self.shift) / self.scale, self.power)

    def inverse(self, z: Array | float) -> Array:
        """Return the values in the user's units for z; infinite where no value has that z."""
        v = np.asarray(z, dtype=float)
        if self.power != 1.0:
            v = self.shift + self.scale * _inverse_yeo_johnson(
                (v - self.shift) / self.scale, self.power
            )
        return np.asarray(np.exp(v)) if self.log else v

    def inverse_moments(self, means: Array, variances: Array) -> tuple[Array, Array]:
        """Return mean and sd in the user's units of an equal mixture of normals z: (q,) each.

        A mixture of logarithms has those of the mixture of lognormal distributions. For a power, z
        counts as normal with the moments of the mixture, and they are computed by quadrature.

        Args:
            means: Means of the members. (members, q)
            variances: Variances of the members. (members, q)
        """
        if self.log and self.power == 1.0:
            with np.errstate(over="ignore"):
                means = np.exp(means + variances / 2)
                variances = means**2 * np.expm1(variances)
        mean = means.mean(axis=0)
        with np.errstate(invalid="ignore"):  # a mean of infinity has an infinite variance
            variance = np.nan_to_num(
                variances.mean(axis=0) + means.var(axis=0), nan=np.inf, posinf=np.inf
            )
        if self.power == 1.0:
            return mean, np.sqrt(variance)
        return self._quadrature(mean, np.sqrt(variance))

    def inverse_each(self, means: Array, variances: Array) -> tuple[Array, Array]:
        """Return mean and standard deviation in the user's units of each of many normal z.

        Args:
            means: Their means, of any shape.
            variances: Their variances, of the same shape.
        """
        if self.is_identity:
            return means, np.sqrt(variances)
        return self._quadrature(means, np.sqrt(variances))

    def _quadrature(self, mean: Array, sd: Array) -> tuple[Array, Array]:
        """Return mean and sd in the user's units of a normal z, by Gauss-Hermite quadrature."""
        nodes, weights = np.polynomial.hermite_e.hermegauss(QUADRATURE_NODES)
        weights = weights / weights.sum()
        values = self.inverse(mean[..., None] + sd[..., None] * nodes)
        means = values @ weights
        return means, np.sqrt(np.maximum((values - means[..., None]) ** 2 @ weights, 0.0))


def yeo_johnson(u: Array, power: float) -> Array:
    """Return psi_lambda(u), strictly increasing in u."""
    size = np.log1p(np.abs(u))
    positive = _power_of(size, power)
    negative = _power_of(size, 2.0 - power)
    return np.where(u >= 0, positive, -negative)


def _inverse_yeo_johnson(z: Array, power: float) -> Array:
    """Return u with psi_lambda(u) = z; infinite beyond the range of psi."""
    positive = _root_of(np.maximum(z, 0.0), power)
    negative = _root_of(np.maximum(-z, 0.0), 2.0 - power)
    return np.where(z >= 0, positive, -negative)


def log_derivative(u: Array, power: float) -> Array:
    """Return log d psi_lambda / d u."""
    return np.asarray((power - 1.0) * np.sign(u) * np.log1p(np.abs(u)))


def power_slope(u: Array, power: float) -> Array:
    """Return d psi_lambda(u) / d lambda."""
    size = np.log1p(np.abs(u))
    positive = _slope_of(size, power)
    negative = _slope_of(size, 2.0 - power)
    return np.where(u >= 0, positive, negative)  # the two signs of the negative branch cancel


def _power_of(size: Array, power: float) -> Array:
    """Return ((1 + |u|)^power - 1) / power for size = log(1 + |u|)."""
    if abs(power) < _LOG_POWER_TOLERANCE:
        return np.asarray(size)
    return np.asarray(np.expm1(power * size) / power)


def _root_of(value: Array, power: float) -> Array:
    """Return |u| with `_power_of(log(1 + |u|), power)` = value."""
    if abs(power) < _LOG_POWER_TOLERANCE:
        return np.asarray(np.expm1(value))
    with np.errstate(divide="ignore", invalid="ignore"):
        size = np.where(power * value > -1.0, np.log1p(power * value) / power, np.inf)
    return np.asarray(np.expm1(size))


def _slope_of(size: Array, power: float) -> Array:
    """Return d/d power of `_power_of`."""
    # The closed form cancels; a series to second order is exact to 1e-9 of it.
    if abs(power) < 1e-3:
        return np.asarray(size**2 / 2 + power * size**3 / 3 + power**2 * size**4 / 8)
    exponential = np.exp(power * size)
    return np.asarray((exponential * (power * size - 1.0) + 1.0) / power**2)
