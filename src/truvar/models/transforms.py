"""Monotone transforms of measured values: a Gaussian process fits log latencies better than latencies.

| symbol | here |
|---|---|
| y | a value in the user's units |
| u = (y - shift) / scale | the standardised value |
| z = psi_lambda(u) | the value that the model sees; psi is the Yeo-Johnson family, lambda = 1 the identity |

Every transform is strictly increasing, so a threshold, an order or a quantile carries over exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from truvar._typing import Array

FLAT = 1e-6  # |lambda| below which the power is replaced by the logarithm


@dataclass(frozen=True)
class OutputTransform:
    """Standardise, then apply a Yeo-Johnson power (Yeo and Johnson 2000).

    Attributes:
        shift: The value that becomes 0.
        scale: The width in the user's units that becomes 1.
        power: lambda; 1 leaves the standardised value as it is, below 1 compresses large values.
    """

    shift: float = 0.0
    scale: float = 1.0
    power: float = 1.0

    def forward(self, y: Array | float) -> Array:
        """Return z for values in the user's units."""
        return yeo_johnson((np.asarray(y, dtype=float) - self.shift) / self.scale, self.power)

    def inverse(self, z: Array | float) -> Array:
        """Return the values in the user's units for z; infinite where no value has that z."""
        return self.shift + self.scale * inverse_yeo_johnson(np.asarray(z, dtype=float), self.power)

    def derivative(self, y: Array | float) -> Array:
        """Return dz / dy at values in the user's units; its square turns a noise variance of y into one of z."""
        u = (np.asarray(y, dtype=float) - self.shift) / self.scale
        return np.exp(log_derivative(u, self.power)) / self.scale


def yeo_johnson(u: Array, power: float) -> Array:
    """Return psi_lambda(u), strictly increasing in u."""
    size = np.log1p(np.abs(u))
    positive = _power_of(size, power)
    negative = _power_of(size, 2.0 - power)
    return np.where(u >= 0, positive, -negative)


def inverse_yeo_johnson(z: Array, power: float) -> Array:
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
    if abs(power) < FLAT:
        return np.asarray(size)
    return np.asarray(np.expm1(power * size) / power)


def _root_of(value: Array, power: float) -> Array:
    """Return |u| with `_power_of(log(1 + |u|), power)` = value."""
    if abs(power) < FLAT:
        return np.asarray(np.expm1(value))
    with np.errstate(divide="ignore", invalid="ignore"):
        size = np.where(power * value > -1.0, np.log1p(power * value) / power, np.inf)
    return np.asarray(np.expm1(size))


def _slope_of(size: Array, power: float) -> Array:
    """Return d/d power of `_power_of`."""
    if abs(power) < 1e-3:  # the closed form cancels; a series to second order is exact to 1e-9 of it
        return np.asarray(size**2 / 2 + power * size**3 / 3 + power**2 * size**4 / 8)
    exponential = np.exp(power * size)
    return np.asarray((exponential * (power * size - 1.0) + 1.0) / power**2)
