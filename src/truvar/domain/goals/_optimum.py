"""The goals of finding the maximum or the minimum of f."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from truvar._typing import Array, Mask
from truvar.domain.goals._base import Goal, Regions, Score
from truvar.messages import for_interface


class Optimum(Goal):
    """Members that maximum and minimum share."""

    kind = "optimum"
    one = "an optimum"
    many = "optima"
    score = Score("regret", "regret", is_share=False)
    limits = ("regret", "improvement_per_cost")
    seeks_optimum = True
    log_beta_factor = 0.5

    @property
    def summary(self) -> str:
        """The optimum: "maximum" or "minimum"."""
        return "maximum" if self.sign > 0 else "minimum"

    @property
    def question(self) -> str:
        """The goal as a question."""
        return f"where is the value {'highest' if self.sign > 0 else 'lowest'}?"

    @property
    def default_limit(self) -> dict[str, float]:
        """Regret as a share of the range of the posterior mean."""
        return {"relative_regret": 0.01}

    @property
    def direction(self) -> int:
        """Direction of the optimum."""
        return self.sign

    def within_gap(self, f: Array, gap: float) -> Mask:
        """Return the points within the gap of the optimum."""
        values = self.sign * f
        return np.asarray(values >= values.max() - gap)

    def accuracy_of_undecided(self, regions: Regions, lower: Array, upper: Array) -> float:
        """Return a distance from the optimum that no undecided point can exceed.

        An undecided point x can be as low as l(x) while another is as high as its u; where x is the
        only one left, it is the optimum.
        """
        m = regions.potential
        low, high = (lower[m], upper[m]) if self.sign > 0 else (-upper[m], -lower[m])
        if len(high) < 2:
            return 0.0
        first = np.argmax(high)
        best_of_others = np.full(len(high), high[first])
        best_of_others[first] = np.partition(high, -2)[-2]
        return max(0.0, float((best_of_others - low).max()))


@dataclass(frozen=True)
class Maximize(Optimum):
    """Find the point where f is highest.

    Attributes:
        monotone: Whether a point that was ruled out stays so. None: as the policy has it, which is
            True for `TruVaR`, `GCHK`, and with a beta that is proven, and False for the others.
    """

    monotone: bool | None = None
    sign = 1

    def __str__(self) -> str:
        return for_interface("Maximize()", problem="the maximum")

    def update(self, regions: Regions, lower: Array, upper: Array) -> Regions:
        """Return the points that can be the maximiser, and those that cannot."""
        among = regions.potential if self.monotone else np.ones_like(regions.potential)
        potential = among & (upper >= lower[among].max())  # eq. (5)
        return Regions(potential, np.zeros_like(potential), ~potential)

    def epsilon(self, regions: Regions, lower: Array, upper: Array) -> float:
        """Return the largest possible gap between the maximum and the value of the reported point."""
        return max(0.0, float(upper[regions.potential].max() - lower[regions.potential].max()))


@dataclass(frozen=True)
class Minimize(Optimum):
    """Find the point where f is lowest: `Maximize` of -f.

    Attributes:
        monotone: Whether a point that was ruled out stays so. None: as the policy has it, which is
            True for `TruVaR`, `GCHK`, and with a beta that is proven, and False for the others.
    """

    monotone: bool | None = None
    sign = -1

    def __str__(self) -> str:
        return for_interface("Minimize()", problem="the minimum")

    def update(self, regions: Regions, lower: Array, upper: Array) -> Regions:
        """Return the points that can be the minimiser, and those that cannot."""
        mirrored = Maximize(self.monotone).update(regions, -upper, -lower)
        return Regions(mirrored.potential, mirrored.below, mirrored.above)

    def epsilon(self, regions: Regions, lower: Array, upper: Array) -> float:
        """Return the largest possible gap between the value of the reported point and the minimum."""
        return Maximize(self.monotone).epsilon(regions, -upper, -lower)
