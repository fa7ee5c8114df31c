"""`Labels`: measurements whose values are outcomes, as arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from truvar._typing import Array
from truvar.models.likelihoods.latent import Latent
from truvar.models.likelihoods.outcome import MIN_PRECISION, Outcome
from truvar.models.observations import Observations


class Derivatives(NamedTuple):
    """The log density of outcomes and its derivatives by the latent function, (t,) each.

    Attributes:
        log_density: log p(y given f).
        gradient: Its derivative.
        precision: Minus its second derivative.
    """

    log_density: Array
    gradient: Array
    precision: Array


@dataclass(frozen=True, eq=False)
class Labels:
    """Measurements whose values are outcomes. t: their number.

    Attributes:
        points: Where they were made. (t, d)
        values: Labels or counts. (t,)
        exposures: Exposure of each. (t,)
        outcome: The kind of value.
    """

    points: Array
    values: Array
    exposures: Array
    outcome: Outcome

    def __len__(self) -> int:
        return len(self.values)

    def curvature(self, f: Array) -> Array:
        """Return minus the second derivative of the log density by f, which may be negative: (t,)."""
        return self.outcome.derivatives(f, self.values, self.exposures)[2]

    def derivatives(self, f: Array) -> Derivatives:
        """Return the log density and its derivatives by f (t,), the precision bounded from below."""
        found = Derivatives(*self.outcome.derivatives(f, self.values, self.exposures))
        return found._replace(precision=np.maximum(found.precision, MIN_PRECISION))


def labels_of(observations: Observations, likelihood: Latent) -> Labels:
    """Return observations as outcomes with their exposures."""
    exposures = [likelihood.exposure(action) for action in observations.actions]
    return Labels(
        observations.points,
        observations.values,
        np.array(exposures, dtype=float),
        likelihood.outcome,
    )
