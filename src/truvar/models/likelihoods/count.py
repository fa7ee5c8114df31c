"""`Count`: a measurement gives a number of events during an exposure.

| symbol | here |
|---|---|
| e | exposure: time, area, volume or trials that were counted |
| exp(f), the rate per unit of exposure | `link` |
| y ~ Poisson(e exp(f)) | `derivatives` |

The information that a count gives of f is e exp(f), so that it tells as much as a normal value with
the variance exp(-f) / e.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import gammaln

from truvar._typing import Array
from truvar.exceptions import InvalidArgumentError, InvalidMeasurementError
from truvar.models.likelihoods.outcome import MAX_LABEL_VARIANCE, ArrayT, Outcome
from truvar.models.transforms import OutputTransform
from truvar.validation import check_finite

MAX_COUNT = 1e12  # above which counts are no longer whole numbers by their rounding
_MIN_EXPOSURE = 1e-12  # of a measurement: rates of counts are then at most 1e24
_MAX_EXPOSURE = 1e12
_MAX_LOG = 300.0  # of a rate: beyond it, exponentials overflow


@dataclass(frozen=True)
class Count(Outcome):
    """Measurements give counts of events, and thresholds are rates per unit of exposure.

    A count is Poisson distributed around rate times exposure; the logarithm of the rate is a
    Gaussian process that is learned.

    Attributes:
        exposure: Exposure of a measurement that is told without one: time, area or volume.

    Raises:
        InvalidArgumentError: If the exposure is not a number from 1e-12 to 1e12.

    Example:
        >>> study = Study(domain, LevelSet(3.0), outcome=Count())
        >>> study.tell(suggestion, 7, exposure=2.0)
    """

    name: ClassVar[str] = "count"
    takes_exposure: ClassVar[bool] = True
    log_signal: ClassVar[tuple[float, float]] = (0.0, 0.7)
    constant: ClassVar[float] = 1.0

    exposure: float = 1.0

    def __post_init__(self) -> None:
        self.check_exposure(self.exposure)

    @property
    def subject(self) -> str:
        """The quantity that thresholds and statements are about, for sentences."""
        return "rate per unit of exposure"

    @property
    def description(self) -> str:
        """A sentence about measurements and function, for reports."""
        unit = f"exposure {self.exposure:g} where none is told"
        return f"a measurement gives a count; the function is the {self.subject} ({unit})"

    @property
    def precision(self) -> str:
        """The kind of value, for cards and tables."""
        return "a count"

    @property
    def value_range(self) -> tuple[float, float]:
        """The rates that are possible."""
        return 0.0, float("inf")

    @property
    def default_exposure(self) -> float:
        """Exposure of a measurement that is told without one."""
        return self.exposure

    def link(self, shift: float = 0.0) -> OutputTransform:
        """Return the transform between the rate and its logarithm f."""
        return OutputTransform(shift, log=True)

    def prior_mean(self, values: Array, exposures: Array) -> float:
        """Return the logarithm of the rate of all measurements together."""
        total = float(np.sum(exposures)) if len(exposures) else self.exposure
        return float(np.log((np.sum(values) + 0.5) / total))

    def derivatives(self, f: Array, values: Array, exposures: Array) -> tuple[Array, Array, Array]:
        """Return log probability, gradient by f and minus the second derivative: (t,) each."""
        log_expected = np.minimum(f, _MAX_LOG) + np.log(exposures)
        expected = np.exp(log_expected)
        log_density = values * log_expected - expected - gammaln(values + 1.0)
        return log_density, values - expected, expected

    def label_variance(self, mean: Array, variance: Array, exposure: float) -> Array:
        """Return the noise variance of a normal value that tells as much of f as one count."""
        log_expected = np.clip(mean + np.log(exposure), -_MAX_LOG, _MAX_LOG)
        return np.asarray(np.minimum(np.exp(-log_expected), MAX_LABEL_VARIANCE))

    def moments(self, mean: ArrayT, sd: ArrayT, exposure: ArrayT) -> tuple[ArrayT, ArrayT]:
        """Return mean and variance of a count, given mean and sd of the rate."""
        return exposure * mean, exposure * mean + (exposure * sd) ** 2

    def squared_error_variance(self, means: Array, variances: Array) -> Array:
        """Return the variance of (y - mean)^2, that of a Poisson distribution if it is one."""
        return np.asarray(variances + 2.0 * variances**2)

    def sample(self, value: float, exposure: float, rng: np.random.Generator) -> float:
        """Return a random count, given the rate."""
        return float(rng.poisson(exposure * value))

    def check(self, y: float) -> None:
        """Check that a value is a whole number that is not negative.

        Raises:
            InvalidMeasurementError: If it is not.
        """
        if not (0.0 <= y <= MAX_COUNT and y == np.floor(y)):
            raise InvalidMeasurementError(
                f'with outcome "count" a value is a whole number from 0 to {MAX_COUNT:g}, got '
                f"{y:.10g}; give the number of events that were counted, and the exposure beside it"
            )

    @staticmethod
    def check_exposure(value: Any) -> float:
        """Return the exposure of a count as a float.

        Raises:
            InvalidArgumentError: If it is not a number from `_MIN_EXPOSURE` to `_MAX_EXPOSURE`.
        """
        result = check_finite(value, "exposure")
        if not result > 0:
            raise InvalidArgumentError(
                f"exposure must be > 0, got {result:g}; give the time, area or volume that was "
                "counted"
            )
        if not _MIN_EXPOSURE <= result <= _MAX_EXPOSURE:
            raise InvalidArgumentError(
                f"exposure must be from {_MIN_EXPOSURE:g} to {_MAX_EXPOSURE:g}, got {result:g}; "
                "use other units of time, area or volume"
            )
        return result
