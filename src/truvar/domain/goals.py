"""The sets M, H and L, and the goals that update them from the bounds (eqs. 5-7).

| paper | here |
|---|---|
| M_t | `Regions.potential`: potential maximisers, or points not yet classified |
| H_t, L_t | `Regions.above`, `Regions.below`: points proven above / below the threshold |
| h | `LevelSet.threshold`, or between `fraction_of_max` x the bounds of the maximum |

The three masks always partition D. For an optimum the points that are ruled out are those `below` the maximum
(`above` the minimum when minimising). `monotone=False` replaces M_{t-1} by D, so that points may come back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from truvar._typing import Array, Mask
from truvar.exceptions import TruvarError
from truvar.validation import check_finite


@dataclass(frozen=True)
class Regions:
    """M, H and L: Boolean masks over the domain that partition it."""

    potential: Mask  # M
    above: Mask  # H
    below: Mask  # L

    def __post_init__(self) -> None:
        for mask in (self.potential, self.above, self.below):
            mask.setflags(write=False)  # results share them

    @staticmethod
    def unknown(n: int) -> Regions:
        """Before anything is known: M = D."""
        return Regions(np.ones(n, bool), np.zeros(n, bool), np.zeros(n, bool))


class Goal(Protocol):
    """What is to be found out. `sign` is -1 when small values are good."""

    @property
    def monotone(self) -> bool: ...

    @property
    def sign(self) -> int: ...

    @property
    def level_set(self) -> bool: ...

    def update(self, regions: Regions, lower: Array, upper: Array) -> Regions:
        """M_t, H_t and L_t from M_{t-1}, H_{t-1}, L_{t-1} and the bounds l_t, u_t."""
        ...

    def targets(self, regions: Regions, lower: Array, upper: Array) -> Mask:
        """The points whose variance is to be reduced: M_t, and what else must be known."""
        ...

    def epsilon(self, regions: Regions, lower: Array, upper: Array) -> float:
        """How far from exact the answer can be if the bounds hold (Definition 3.1, a posteriori)."""
        ...


@dataclass(frozen=True)
class Maximize:
    """Find where f is highest."""

    monotone: bool = True
    sign = 1
    level_set = False

    def update(self, regions: Regions, lower: Array, upper: Array) -> Regions:
        among = regions.potential if self.monotone else np.ones_like(regions.potential)
        potential = among & (upper >= lower[among].max())  # eq. (5)
        return Regions(potential, np.zeros_like(potential), ~potential)

    def targets(self, regions: Regions, lower: Array, upper: Array) -> Mask:
        return regions.potential

    def epsilon(self, regions: Regions, lower: Array, upper: Array) -> float:
        return max(0.0, float(upper[regions.potential].max() - lower[regions.potential].max()))


@dataclass(frozen=True)
class Minimize:
    """Find where f is lowest: `Maximize` of -f."""

    monotone: bool = True
    sign = -1
    level_set = False

    def update(self, regions: Regions, lower: Array, upper: Array) -> Regions:
        mirrored = Maximize(self.monotone).update(regions, -upper, -lower)
        return Regions(mirrored.potential, mirrored.below, mirrored.above)

    def targets(self, regions: Regions, lower: Array, upper: Array) -> Mask:
        return regions.potential

    def epsilon(self, regions: Regions, lower: Array, upper: Array) -> float:
        return Maximize(self.monotone).epsilon(regions, -upper, -lower)


@dataclass(frozen=True)
class LevelSet:
    """Find where f is above `threshold`, or above `fraction_of_max` times its unknown maximum."""

    threshold: float | None = None
    fraction_of_max: float | None = None
    monotone: bool = True
    sign = 1
    level_set = True

    def __post_init__(self) -> None:
        if (self.threshold is None) == (self.fraction_of_max is None):
            raise TruvarError(
                "a level set needs either a threshold or a fraction_of_max: LevelSet(7.0) or "
                f"LevelSet(fraction_of_max=0.8), got {self}"
            )
        if self.threshold is not None:
            object.__setattr__(self, "threshold", check_finite(self.threshold, "the threshold of a level set"))
        elif not 0 < check_finite(self.fraction_of_max, "fraction_of_max") < 1:
            raise TruvarError(
                f"fraction_of_max must lie between 0 and 1, got {self.fraction_of_max}; give one such as 0.8"
            )

    def thresholds(self, lower: Array, upper: Array) -> tuple[float, float]:
        """The least and the greatest value that h can have: equal for an explicit threshold.

        Implicit: h_pes and h_opt of Gotovos et al. (2013), the fraction of the largest lower and upper bound.
        """
        if self.threshold is not None:
            return self.threshold, self.threshold
        fraction = float(self.fraction_of_max or 0.0)
        return fraction * float(lower.max()), fraction * float(upper.max())

    def update(self, regions: Regions, lower: Array, upper: Array) -> Regions:
        least, greatest = self.thresholds(lower, upper)
        if not self.monotone:
            regions = Regions.unknown(len(lower))
        above = regions.above | (regions.potential & (lower > greatest))  # eq. (7)
        below = regions.below | (regions.potential & (upper < least))
        return Regions(~above & ~below, above, below)  # eq. (6)

    def targets(self, regions: Regions, lower: Array, upper: Array) -> Mask:
        if self.threshold is not None:
            return regions.potential
        return np.asarray(regions.potential | (upper >= lower.max()))  # the maximum must be known too

    def epsilon(self, regions: Regions, lower: Array, upper: Array) -> float:
        if not regions.potential.any():
            return 0.0
        least, greatest = self.thresholds(lower, upper)
        m = regions.potential
        return 2.0 * max(0.0, float((upper[m] - least).max()), float((greatest - lower[m]).max()))
