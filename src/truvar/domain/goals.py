"""Goals, and the sets of points above, below and undecided that they update from the bounds (eqs. 5-7).

| paper | here |
|---|---|
| M_t | `Regions.potential`: undecided points, that is potential maximisers, or points not yet classified |
| H_t | `Regions.above`: points above the threshold, if the bounds hold |
| L_t | `Regions.below`: points below the threshold, if the bounds hold |
| h | `LevelSet.threshold`, or between `fraction_of_max` times the bounds of the maximum |

The three masks always partition D. For an optimum the points that are ruled out are `below` (the maximum), or `above`
(the minimum) when minimising. `monotone=False` replaces M_{t-1} by D, so that points may become undecided again;
`monotone=None` leaves the choice to the policy (`Confidence.resolve_goal`), and means False where there is none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from truvar._typing import Array, Mask
from truvar.exceptions import InvalidArgumentError
from truvar.validation import check_finite, check_fraction


@dataclass(frozen=True)
class Regions:
    """Boolean masks over the domain that partition it.

    Attributes:
        potential: M, the undecided points.
        above: H, the points above the threshold.
        below: L, the points below the threshold.
    """

    potential: Mask
    above: Mask
    below: Mask

    def __post_init__(self) -> None:
        for mask in (self.potential, self.above, self.below):
            mask.setflags(write=False)  # results share the masks

    @staticmethod
    def unknown(n: int) -> Regions:
        """Return the regions of n points before anything is known: M = D."""
        return Regions(np.ones(n, bool), np.zeros(n, bool), np.zeros(n, bool))


class Goal(Protocol):
    """The goal of a study: `Maximize`, `Minimize` or `LevelSet`."""

    @property
    def monotone(self) -> bool | None:
        """Whether a point that was classified or ruled out stays so; None: as the policy has it."""
        ...

    @property
    def sign(self) -> int:
        """Direction of good values: 1, or -1 when small values are good."""
        ...

    @property
    def level_set(self) -> bool:
        """Whether the goal is a level set."""
        ...

    def update(self, regions: Regions, lower: Array, upper: Array) -> Regions:
        """Return M_t, H_t and L_t.

        Args:
            regions: M_{t-1}, H_{t-1} and L_{t-1}.
            lower: Lower confidence bounds l_t, shape (n,).
            upper: Upper confidence bounds u_t, shape (n,).
        """
        ...

    def targets(self, regions: Regions, lower: Array, upper: Array) -> Mask:
        """Return the points whose variance is to be reduced: M_t, and others that must be known for it."""
        ...

    def epsilon(self, regions: Regions, lower: Array, upper: Array) -> float:
        """Return the accuracy of the answer if the bounds hold (Definition 3.1, a posteriori)."""
        ...


@dataclass(frozen=True)
class Maximize:
    """Find the point where f is highest.

    Attributes:
        monotone: Whether a point that was ruled out stays so. None: as the policy has it, which is True for `TruVaR`,
            `GCHK`, and with a beta that is proven, and False for the others.
    """

    monotone: bool | None = None
    sign = 1
    level_set = False

    def update(self, regions: Regions, lower: Array, upper: Array) -> Regions:
        """Return the points that can be the maximiser, and those that cannot."""
        among = regions.potential if self.monotone else np.ones_like(regions.potential)
        potential = among & (upper >= lower[among].max())  # eq. (5)
        return Regions(potential, np.zeros_like(potential), ~potential)

    def targets(self, regions: Regions, lower: Array, upper: Array) -> Mask:
        """Return M_t."""
        return regions.potential

    def epsilon(self, regions: Regions, lower: Array, upper: Array) -> float:
        """Return the largest possible gap between the maximum and the value of the reported point."""
        return max(0.0, float(upper[regions.potential].max() - lower[regions.potential].max()))


@dataclass(frozen=True)
class Minimize:
    """Find the point where f is lowest: `Maximize` of -f.

    Attributes:
        monotone: Whether a point that was ruled out stays so. None: as the policy has it, which is True for `TruVaR`,
            `GCHK`, and with a beta that is proven, and False for the others.
    """

    monotone: bool | None = None
    sign = -1
    level_set = False

    def update(self, regions: Regions, lower: Array, upper: Array) -> Regions:
        """Return the points that can be the minimiser, and those that cannot."""
        mirrored = Maximize(self.monotone).update(regions, -upper, -lower)
        return Regions(mirrored.potential, mirrored.below, mirrored.above)

    def targets(self, regions: Regions, lower: Array, upper: Array) -> Mask:
        """Return M_t."""
        return regions.potential

    def epsilon(self, regions: Regions, lower: Array, upper: Array) -> float:
        """Return the largest possible gap between the value of the reported point and the minimum."""
        return Maximize(self.monotone).epsilon(regions, -upper, -lower)


@dataclass(frozen=True)
class LevelSet:
    """Find the points where f is above a threshold. Exactly one of `threshold` and `fraction_of_max` is given.

    Attributes:
        threshold: The threshold h.
        fraction_of_max: The threshold as a fraction of the unknown maximum of f, between 0 and 1.
        monotone: Whether a point that was classified stays so. None: as the policy has it, as with `Maximize`.

    Raises:
        InvalidArgumentError: If none or both are given, or a number is out of range.

    Example:
        >>> LevelSet(7.0)
        >>> LevelSet(fraction_of_max=0.8)
    """

    threshold: float | None = None
    fraction_of_max: float | None = None
    monotone: bool | None = None
    sign = 1
    level_set = True

    def __post_init__(self) -> None:
        if (self.threshold is None) == (self.fraction_of_max is None):
            raise InvalidArgumentError(
                "a level set needs either a threshold or a fraction_of_max: LevelSet(7.0) or "
                f"LevelSet(fraction_of_max=0.8), got {self}"
            )
        if self.threshold is not None:
            object.__setattr__(self, "threshold", check_finite(self.threshold, "the threshold of a level set"))
        else:
            check_fraction(self.fraction_of_max, "fraction_of_max", example="0.8")

    def thresholds(self, lower: Array, upper: Array) -> tuple[float, float]:
        """Return the smallest and the largest value that h can have; both are h for an explicit threshold.

        For a fraction of the maximum they are h_pes and h_opt of Gotovos et al. (2013), the fraction of the largest
        lower and of the largest upper bound.
        """
        if self.threshold is not None:
            return self.threshold, self.threshold
        fraction = float(self.fraction_of_max or 0.0)
        return fraction * float(lower.max()), fraction * float(upper.max())

    def update(self, regions: Regions, lower: Array, upper: Array) -> Regions:
        """Return the points that are above the threshold, those below it, and the undecided ones."""
        smallest, largest = self.thresholds(lower, upper)
        if not self.monotone:
            regions = Regions.unknown(len(lower))
        above = regions.above | (regions.potential & (lower > largest))  # eq. (7)
        below = regions.below | (regions.potential & (upper < smallest))  # eq. (7)
        return Regions(~above & ~below, above, below)  # eq. (6)

    def targets(self, regions: Regions, lower: Array, upper: Array) -> Mask:
        """Return M_t, and for a fraction of the maximum the points that can be the maximiser."""
        if self.threshold is not None:
            return regions.potential
        return np.asarray(regions.potential | (upper >= lower.max()))

    def epsilon(self, regions: Regions, lower: Array, upper: Array) -> float:
        """Return twice the largest possible distance of f to the threshold at an undecided point."""
        if not regions.potential.any():
            return 0.0
        smallest, largest = self.thresholds(lower, upper)
        above = float((upper[regions.potential] - smallest).max())
        below = float((largest - lower[regions.potential]).max())
        return 2.0 * max(0.0, above, below)
