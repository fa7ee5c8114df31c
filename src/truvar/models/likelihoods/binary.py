"""`Binary`: a measurement gives yes (1) or no (0).

| symbol | here |
|---|---|
| gamma, lambda | `guess`, `lapse` |
| c = 1 - gamma - lambda | `_range` |
| p(f) = gamma + c Phi(f), the probability of a yes | `BinaryLink.inverse` |
| q = p for a yes, 1 - p for a no; both are a + c Phi(u) | `_log_probability` |
| u = f, a = gamma for a yes; u = -f, a = lambda for a no | |
| r = c phi(u) / q, so that d log q / du = r and -d^2 log q / du^2 = r (r + u) | `derivatives` |

With f ~ N(m, s^2) and k = (1 + s^2)^(1/2), E p = gamma + c Phi(m / k) and E p' = c phi(m / k) / k.
As a label has two values, E[f given label] is linear in it: the variance that it removes from f is
Cov(f, label)^2 / Var(label) = s^4 (E p')^2 / (E p (1 - E p)), as a normal value with the variance
E p (1 - E p) / (E p')^2 - s^2 would. That is exact for all points, as they depend on the label
through f alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri

from truvar._typing import Array
from truvar.exceptions import InvalidArgumentError, InvalidMeasurementError
from truvar.messages import for_interface
from truvar.models.likelihoods.outcome import MAX_LABEL_VARIANCE, ArrayT, Outcome
from truvar.models.transforms import OutputTransform
from truvar.validation import check_finite

_LOG_NORMAL = 0.5 * float(np.log(2.0 * np.pi))
_MIN_RANGE = 0.05  # of the probability: less says nothing of f
# of E p (1 - E p) and of (E p')^2: smaller ones would divide rounding errors
_TINY = 1e-300


@dataclass(frozen=True)
class BinaryLink(OutputTransform):
    """The probability of a yes and the latent function, p = guess + (1 - guess - lapse) Phi(f).

    Attributes:
        guess: Probability of a yes where f is very low.
        lapse: Probability of a no where f is very high.
    """

    guess: float = 0.0
    lapse: float = 0.0

    @property
    def _range(self) -> float:
        return 1.0 - self.guess - self.lapse

    @property
    def is_identity(self) -> bool:
        """Whether values stay as they are."""
        return False

    @property
    def has_light_tails(self) -> bool:
        """Whether the mean of the values does not depend on the tails of f."""
        return True

    def forward(self, y: Array | float) -> Array:
        """Return f for probabilities; infinite for those that f cannot give."""
        share = (np.asarray(y, dtype=float) - self.guess) / self._range
        return np.asarray(ndtri(np.clip(share, 0.0, 1.0)))

    def inverse(self, z: Array | float) -> Array:
        """Return the probabilities for f."""
        return np.asarray(self.guess + self._range * ndtr(np.asarray(z, dtype=float)))

    def inverse_moments(self, means: Array, variances: Array) -> tuple[Array, Array]:
        """Return mean and sd of the probability for an equal mixture of normals f: (q,) each."""
        member_means, member_sds = self.inverse_each(means, variances)
        variance = (member_sds**2).mean(axis=0) + member_means.var(axis=0)
        return member_means.mean(axis=0), np.sqrt(variance)

    def inverse_each(self, means: Array, variances: Array) -> tuple[Array, Array]:
        """Return mean and sd of the probability for each of many normal f."""
        found, sds = self._quadrature(means, np.sqrt(variances))
        # Closed form; quadrature is exact for narrow distributions only.
        exact = self.guess + self._range * ndtr(means / np.sqrt(1.0 + variances))
        return np.asarray(exact), np.sqrt(sds**2 + (found - exact) ** 2)


@dataclass(frozen=True)
class Binary(Outcome):
    """Measurements give yes or no, told as 1 or 0, and thresholds are probabilities of a yes.

    The probability is `guess + (1 - guess - lapse) Phi(f)`, where Phi is the normal distribution
    function and f a Gaussian process that is learned.

    Attributes:
        guess: Probability of a yes where nothing is detected, such as 0.5 with two alternatives.
        lapse: Probability of a no where everything is detected.

    Raises:
        InvalidArgumentError: If one of them is not in [0, 1), or they leave no range.

    Example:
        >>> Study(domain, LevelSet(0.75), outcome=Binary(guess=0.5, lapse=0.02))
    """

    name: ClassVar[str] = "binary"
    log_signal: ClassVar[tuple[float, float]] = (float(np.log(2.0)), 0.7)
    constant: ClassVar[float] = 1.0
    # Labels say little of the smoothness, so that the prior decides: a probability does not jump
    # from point to point, as a Matern 1/2 does.
    families: ClassVar[tuple[str, ...]] = ("matern32", "matern52", "rbf")

    guess: float = 0.0
    lapse: float = 0.0

    def __post_init__(self) -> None:
        for name in ("guess", "lapse"):
            share = check_finite(getattr(self, name), name)
            if not 0.0 <= share < 1.0:
                raise InvalidArgumentError(
                    f"{name} must be a probability in [0, 1), got {share:g}; give one such as 0.02"
                )
        if self.guess + self.lapse > 1.0 - _MIN_RANGE:
            raise InvalidArgumentError(
                f"guess + lapse must be at most {1.0 - _MIN_RANGE:g}, got {self.guess:g} + "
                f"{self.lapse:g}; give smaller ones, such as 0.5 and 0.02"
            )

    @property
    def subject(self) -> str:
        """The quantity that thresholds and statements are about, for sentences."""
        return "probability of yes"

    @property
    def description(self) -> str:
        """A sentence about measurements and function, for reports."""
        given = [("guess", self.guess), ("lapse", self.lapse)]
        options = ", ".join(f"{name} {share:g}" for name, share in given if share)
        more = f" ({options})" if options else ""
        return f"a measurement gives yes or no{more}; the function is the {self.subject}"

    @property
    def precision(self) -> str:
        """The kind of value, for cards and tables."""
        return "yes or no"

    @property
    def value_range(self) -> tuple[float, float]:
        """The probabilities that the function can have."""
        return self.guess, 1.0 - self.lapse

    def link(self, shift: float = 0.0) -> BinaryLink:
        """Return the transform between the probability of a yes and f."""
        return BinaryLink(shift, guess=self.guess, lapse=self.lapse)

    def prior_mean(self, values: Array, exposures: Array) -> float:
        """Return 0, which is halfway between never and always."""
        return 0.0

    def derivatives(self, f: Array, values: Array, exposures: Array) -> tuple[Array, Array, Array]:
        """Return log probability, gradient by f and minus the second derivative: (t,) each."""
        is_yes = values > 0.5
        sign = np.where(is_yes, 1.0, -1.0)
        u = sign * f
        log_range = float(np.log1p(-self.guess - self.lapse))
        with np.errstate(divide="ignore"):
            log_floor = np.log(np.where(is_yes, self.guess, self.lapse))
        log_density = np.logaddexp(log_floor, log_range + log_ndtr(u))
        ratio = np.exp(log_range - 0.5 * u**2 - _LOG_NORMAL - log_density)
        return log_density, sign * ratio, ratio * (ratio + u)

    def label_variance(self, mean: Array, variance: Array, exposure: float) -> Array:
        """Return the noise variance of a normal value that tells as much of f as one label."""
        scale = np.sqrt(1.0 + variance)
        u = mean / scale
        share = 1.0 - self.guess - self.lapse
        yes = self.guess + share * ndtr(u)
        no = self.lapse + share * ndtr(-u)
        slope = share * np.exp(-0.5 * u**2 - _LOG_NORMAL) / scale
        total = yes * no / np.maximum(slope**2, _TINY)
        return np.asarray(np.clip(total - variance, 0.0, MAX_LABEL_VARIANCE))

    def moments(self, mean: ArrayT, sd: ArrayT, exposure: ArrayT) -> tuple[ArrayT, ArrayT]:
        """Return mean and variance of a label, given mean and sd of its probability."""
        return mean, mean * (1.0 - mean)

    def squared_error_variance(self, means: Array, variances: Array) -> Array:
        """Return the variance of (y - mean)^2, given the probabilities of a yes."""
        return np.asarray(variances * (1.0 - 2.0 * means) ** 2)

    def sample(self, value: float, exposure: float, rng: np.random.Generator) -> float:
        """Return a random label, given its probability."""
        return float(rng.random() < value)

    def check(self, y: float) -> None:
        """Check that a value is 0 or 1.

        Raises:
            InvalidMeasurementError: If it is not.
        """
        if y not in (0.0, 1.0):
            words = for_interface("1 or 0", cli="yes or no, or 1 or 0", http="1 or 0")
            raise InvalidMeasurementError(
                f'with outcome "binary" a value is {words}, got {y:.10g}; give one of them, and '
                "each of several answers separately"
            )
