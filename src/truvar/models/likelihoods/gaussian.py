"""`Gaussian`: a value is the function plus normal noise, in transformed units.

| quantity | here | units |
|---|---|---|
| variance of a value, from the noise that a user gives or `Action` has | `variance(noise)` | user's |
| its inverse, for variances that are learned | `noise(variance)` | user's |
| variances of candidates | `modelled_variances(noise, points)` | model's |
| z, what the posterior is conditioned on | `modelled(task, y)` | model's |
| its noise variance | `modelled_noise(action, prior_sd)` | model's |
| y from mean and variance of f | `predict(action, means, variances)` | user's |
| whether y can be modelled | `check(y, prior_sd)` | user's |

Fits, choices and statements read the noise of measurements through these methods alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from truvar._typing import Array
from truvar.domain.action import Action
from truvar.exceptions import InvalidMeasurementError
from truvar.models.transforms import OutputTransform

ArrayT = TypeVar("ArrayT", float, Array)

# size of a value in a learned model: scores contain fourth powers of it, which must be finite
LARGEST_LEARNED = 1e50
_LARGEST_DEVIATION = 1e100  # prior standard deviations of a value; the square of more overflows
_LARGEST_KNOWN = 1e150  # size of a value with a known model, whose square must be finite


@dataclass(frozen=True, eq=False)
class Gaussian:
    """Values with normal noise of known variance.

    Attributes:
        transform: From the user's values to those of the model.
        units: The divisor of the values of each task; None: all are 1. (T,)
        min_noise: Smallest noise variance in use.
        jitter: Addition to it, as a share of the prior variance.
        max_value: Largest size of a value.
    """

    transform: OutputTransform = field(default_factory=OutputTransform)
    units: Array | None = None
    min_noise: float = 0.0
    jitter: float = 0.0
    max_value: float = np.inf

    @property
    def is_latent(self) -> bool:
        """Whether the values are not normal, so that the model has pseudo-values instead."""
        return False

    def variance(self, noise: ArrayT) -> ArrayT:
        """Return the variance of values with the given noise, of any shape."""
        return noise

    def noise(self, variance: ArrayT) -> ArrayT:
        """Return the noise that gives such a variance, which was learned: the inverse."""
        return variance

    def modelled_variances(self, noise: Array, points: Array) -> Array:
        """Return the variances of candidates in the units of the model.

        Args:
            noise: Their noise. (q, K)
            points: Their points. (q, d')
        """
        variances = self.variance(noise)
        if self.units is None:
            return variances
        return np.asarray(variances / self.units[points[:, -1].astype(int), None] ** 2)

    def modelled(self, task: int, y: float) -> float:
        """Return a value in the units of the model."""
        return float(self.transform.forward(y)) / self._unit(task)

    def minimum_noise(self, prior_sd: float) -> float:
        """Return the smallest noise variance in use, given the prior standard deviation."""
        return self.min_noise + self.jitter * prior_sd**2

    def modelled_noise(self, action: Action, prior_sd: float) -> float:
        """Return the noise variance of a measurement in the units of the model."""
        return max(self.relative_noise(action), self.minimum_noise(prior_sd))

    def relative_noise(self, action: Action) -> float:
        """Return the noise variance of a measurement in the units of the model, however small."""
        return self.variance(action.noise) / self._unit(action.task) ** 2

    def predict(self, action: Action, means: Array, variances: Array) -> tuple[float, float]:
        """Return mean and variance of the value that a measurement gives, its noise included.

        Args:
            action: The measurement.
            means: Means of the function by member. (members, 1)
            variances: Its variances. (members, 1)
        """
        unit = self._unit(action.task)
        noise = self.variance(action.noise)
        mean, sd = self.transform.inverse_moments(unit * means, unit**2 * variances + noise)
        return float(mean[0]), float(sd[0] ** 2)

    def check(self, y: float, prior_sd: float) -> None:
        """Check that a value can be modelled.

        Raises:
            InvalidMeasurementError: If it is too large, or has no logarithm that is needed.
        """
        if abs(y) > self.max_value:
            raise InvalidMeasurementError(
                f"a learned model takes values up to {self.max_value:g} in size, got {y:.10g}; "
                "correct it, or use larger units"
            )
        largest = min(_LARGEST_DEVIATION * prior_sd, _LARGEST_KNOWN)
        if abs(y) > largest:
            raise InvalidMeasurementError(
                f"with a prior standard deviation of {prior_sd:.3g} values are at most {largest:g} "
                f"in size, got {y:.10g}; correct it, or use other units"
            )
        if self.transform.log and y <= 0:
            raise InvalidMeasurementError(
                f'values have logarithms with transform="log", got {y:.10g}; give a value > 0, or '
                "another transform"
            )

    def _unit(self, task: int) -> float:
        return 1.0 if self.units is None else float(self.units[task])
