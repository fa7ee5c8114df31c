"""`Latent`: the observation model of outcomes, whose function is modelled on a latent scale."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from truvar._typing import Array
from truvar.domain.action import Action
from truvar.models.likelihoods.gaussian import Gaussian
from truvar.models.likelihoods.outcome import Outcome


@dataclass(frozen=True, eq=False, kw_only=True)
class Latent(Gaussian):
    """Values are outcomes of a function on a latent scale.

    The model is conditioned on pseudo-values (see `_laplace`), and what a measurement to come tells
    depends on the function where it is made.

    Attributes:
        outcome: The kind of value.
    """

    outcome: Outcome

    @property
    def is_latent(self) -> bool:
        """Whether the values are not normal, so that the model has pseudo-values instead."""
        return True

    def exposure(self, action: Action) -> float:
        """Return the exposure of a measurement."""
        return self.outcome.default_exposure if action.exposure is None else action.exposure

    def predict(
        self, action: Action, means: Array, variances: Array, weights: Array | None = None
    ) -> tuple[float, float]:
        """Return mean and variance of the value that a measurement gives.

        Args:
            action: The measurement.
            means: Means of the function by member. (members, 1)
            variances: Its variances. (members, 1)
            weights: Weights of the members, which add up to 1; None: equal ones. (members,)
        """
        shares = np.full(len(means), 1.0 / len(means)) if weights is None else weights
        member_means, member_sds = self.transform.inverse_each(means[:, 0], variances[:, 0])
        mean = float(shares @ member_means)
        spread = float(shares @ (member_sds**2 + (member_means - mean) ** 2))
        return self.outcome.moments(mean, float(np.sqrt(spread)), self.exposure(action))

    def sample(
        self, action: Action, means: Array, variances: Array, rng: np.random.Generator
    ) -> float:
        """Draw a value that a measurement could give, given moments of f as for `predict`."""
        member = int(rng.integers(len(means)))
        f = rng.normal(means[member, 0], np.sqrt(variances[member, 0]))
        value = float(self.transform.inverse(f))
        return self.outcome.sample(value, self.exposure(action), rng)

    def check(self, y: float, prior_sd: float) -> None:
        """Check that a value is an outcome.

        Raises:
            InvalidMeasurementError: If it is not.
        """
        self.outcome.check(y)
