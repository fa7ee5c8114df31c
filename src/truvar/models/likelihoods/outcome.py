"""`Outcome`: what a measurement gives where that is no number with normal noise.

| symbol | here |
|---|---|
| f | the latent function, a Gaussian process |
| log p(y given f) with its derivatives | `Outcome.derivatives` |
| g(f), what thresholds and statements are about, such as the probability of a yes | `Outcome.link` |
| variance of a normal value that tells as much of f as a measurement to come | `Outcome.label_variance` |

A new outcome is a module here with a subclass, a line of `OUTCOMES`, and one of `truvar._names`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, TypeVar

import numpy as np

from truvar._typing import Array
from truvar.domain.goals import Goal
from truvar.exceptions import InvalidModelError
from truvar.models.transforms import OutputTransform

ArrayT = TypeVar("ArrayT", float, Array)

MIN_PRECISION = 1e-8  # of a pseudo-value: less says nothing, and its variance must be finite
MAX_LABEL_VARIANCE = 1e10  # of a measurement to come, which says nothing then


class Outcome(ABC):
    """The kind of value that a measurement gives.

    Attributes:
        name: Name of the outcome in problem files and on the command line.
        takes_exposure: Whether a measurement has an exposure, such as the time that was counted.
        log_signal: Mean and standard deviation of the logarithm of the sd of f, a priori.
        constant: Variance of the constant mean of f in units of the variance of f.
    """

    name: ClassVar[str]
    takes_exposure: ClassVar[bool] = False
    log_signal: ClassVar[tuple[float, float]]
    constant: ClassVar[float]

    @property
    @abstractmethod
    def subject(self) -> str:
        """The quantity that thresholds and statements are about, for sentences."""

    @property
    @abstractmethod
    def description(self) -> str:
        """A sentence about measurements and function, for reports."""

    @property
    @abstractmethod
    def precision(self) -> str:
        """The kind of value, for cards and tables."""

    @property
    @abstractmethod
    def value_range(self) -> tuple[float, float]:
        """The open interval of what statements are about."""

    @property
    def default_exposure(self) -> float:
        """Exposure of a measurement that is told without one."""
        return 1.0

    @abstractmethod
    def link(self, shift: float = 0.0) -> OutputTransform:
        """Return the transform between what statements are about and f; `shift` is the mean of f."""

    @abstractmethod
    def prior_mean(self, values: Array, exposures: Array) -> float:
        """Return the mean of f a priori, given all values (t,) and exposures (t,)."""

    @abstractmethod
    def derivatives(self, f: Array, values: Array, exposures: Array) -> tuple[Array, Array, Array]:
        """Return log density, gradient by f and minus the second derivative by f: (t,) each.

        Args:
            f: The latent function. (t,)
            values: The outcomes. (t,)
            exposures: Their exposures. (t,)
        """

    @abstractmethod
    def label_variance(self, mean: Array, variance: Array, exposure: float) -> Array:
        """Return the noise variance of a normal value that tells as much of f as one outcome.

        Args:
            mean: Means of f. (q,)
            variance: Variances of f. (q,)
            exposure: Exposure of the measurements.
        """

    @abstractmethod
    def moments(self, mean: ArrayT, sd: ArrayT, exposure: ArrayT) -> tuple[ArrayT, ArrayT]:
        """Return mean and variance of a value, given mean and sd of what statements are about."""

    @abstractmethod
    def squared_error_variance(self, means: Array, variances: Array) -> Array:
        """Return the variance of (y - mean)^2, given means and variances of y (t,): (t,)."""

    @abstractmethod
    def sample(self, value: float, exposure: float, rng: np.random.Generator) -> float:
        """Return a random value, given what statements are about."""

    @abstractmethod
    def check(self, y: float) -> None:
        """Check that a value is one.

        Raises:
            InvalidMeasurementError: If it is not.
        """

    def check_goal(self, goal: Goal) -> None:
        """Check that a goal is about something that the outcome can have.

        Raises:
            InvalidModelError: If it is not.
        """
        if goal.has_thresholds and not goal.known_thresholds:
            raise InvalidModelError(
                f"with outcome {self.name!r} a level set has a threshold of the {self.subject}, "
                f"got {goal}; give the threshold itself"
            )
        low, high = self.value_range
        for threshold in goal.known_thresholds:
            if not low < threshold < high:
                limit = f"between {low:g} and {high:g}" if high < float("inf") else f"above {low:g}"
                raise InvalidModelError(
                    f"with outcome {self.name!r} the threshold is a {self.subject} {limit}, got "
                    f"{threshold:g}; give such a threshold"
                )
