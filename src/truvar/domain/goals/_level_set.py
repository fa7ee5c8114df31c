"""The goals of finding on which side of one or several thresholds f lies at each point."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import InitVar, dataclass, replace
from itertools import pairwise
from typing import Any, Self

import numpy as np

from truvar._typing import Array, Index, Mask
from truvar.domain.goals._base import Goal, Regions, Score, Side, check_quantity
from truvar.exceptions import InvalidArgumentError, InvalidModelError
from truvar.messages import for_interface, format_coordinate
from truvar.validation import check_finite, check_fraction, check_positive


class _ThresholdGoal(Goal):
    """Members that goals of one and of several thresholds share."""

    kind = "level set"
    one = "a level set"
    many = "level sets"
    score = Score("f1", "F1", is_share=True)
    limits = ("f1",)
    has_thresholds = True

    @property
    def default_limit(self) -> dict[str, float]:
        """Expected F1."""
        return {"f1": 0.95}


@dataclass(frozen=True)
class LevelSet(_ThresholdGoal):
    """Find the points where f is above a threshold, or below it. Exactly one way to give it is used.

    `LevelSet([5, 7, 10])` and `LevelSet(between=(5, 7))` return `Bands`, the goal of several
    thresholds.

    Args:
        between: Two thresholds: find the points between them.
        below: A threshold: find the points where f is below it. F1, limits of a run, words and
            colours are then about these points.

    Attributes:
        threshold: The threshold h.
        fraction_of_max: The threshold as a fraction of the unknown maximum of f, between 0 and 1.
        monotone: Whether a point that was classified stays so. None: as the policy has it, as with
            `Maximize`.
        fraction_of_min: The threshold as a multiple of the unknown minimum of f: greater than 1
            where the minimum is positive, and between 0 and 1 where it is negative. Points near the
            minimum are those not above it.
        side: The side of the threshold that is asked for, "above" or "below". A value on the
            threshold belongs to it.
        within: Find the points that are as good as the best up to this margin, in the units of the
            values: the threshold is the unknown maximum minus the margin.
        within_of_min: The same for a minimum: find the points below the unknown minimum plus this
            margin.
        of: The quantity that it is about, where a study has several; see `AllOf`.

    Raises:
        InvalidArgumentError: If none or several are given, or a number is out of range.

    Example:
        >>> LevelSet(7.0)
        >>> LevelSet(below=4.0)
        >>> LevelSet(fraction_of_max=0.8)
        >>> LevelSet(within=0.02)
        >>> LevelSet([5, 7, 10])
    """

    threshold: float | None = None
    fraction_of_max: float | None = None
    monotone: bool | None = None
    fraction_of_min: float | None = None
    between: InitVar[Sequence[float] | None] = None
    side: Side = "above"
    below: InitVar[float | None] = None
    within: float | None = None
    within_of_min: float | None = None
    of: str | None = None

    def __new__(
        cls,
        threshold: float | Sequence[float] | None = None,
        fraction_of_max: float | None = None,
        monotone: bool | None = None,
        fraction_of_min: float | None = None,
        between: Sequence[float] | None = None,
        side: Side = "above",
        below: float | None = None,
        within: float | None = None,
        within_of_min: float | None = None,
        of: str | None = None,
    ) -> Self:
        """Return a level set, or `Bands` for several thresholds."""
        several: Any = threshold if between is None else between
        is_number = several is None or isinstance(several, (str, bytes)) or np.ndim(several) == 0
        if between is None and is_number:
            return super().__new__(cls)
        others = (
            fraction_of_max,
            fraction_of_min,
            None if between is None else threshold,
            below,
            within,
            within_of_min,
        )
        if any(given is not None for given in others):
            raise InvalidArgumentError(
                "a level set has thresholds, between=(low, high), below, a fraction or a margin "
                "within, got several of them; give one"
            )
        if side != "above":
            raise InvalidArgumentError(
                f"side={side!r} needs one threshold, got {several!r}; give one, such as "
                "LevelSet(below=4.0)"
            )
        bands: Any = Bands(
            _check_thresholds(several, between is not None), between is not None, monotone, of
        )
        return bands  # type: ignore[no-any-return]

    def __post_init__(self, between: Sequence[float] | None, below: float | None) -> None:
        check_quantity(self.of)
        given = [
            f"{name}={value!r}"
            for name, value in (
                ("threshold", self.threshold),
                ("fraction_of_max", self.fraction_of_max),
                ("fraction_of_min", self.fraction_of_min),
                ("below", below),
                ("within", self.within),
                ("within_of_min", self.within_of_min),
            )
            if value is not None
        ]
        if len(given) != 1:
            raise InvalidArgumentError(
                "a level set needs either a threshold, below, fraction_of_max or within: "
                "LevelSet(7.0), LevelSet(below=4.0), LevelSet(fraction_of_max=0.8) or "
                f"LevelSet(within=0.02), got {' and '.join(given) or 'none of them'}; give "
                "one"
            )
        if below is not None:
            object.__setattr__(self, "threshold", below)
            object.__setattr__(self, "side", "below")
        if self.side not in ("above", "below"):
            raise InvalidArgumentError(
                f"side must be 'above' or 'below', got {self.side!r}; give one of them"
            )
        if self.within_of_min is not None:
            object.__setattr__(self, "side", "below")
        elif self.side == "below" and self.threshold is None:
            raise InvalidArgumentError(
                f"the points below are asked for with a threshold, got {given[0]}; give the "
                "threshold itself, such as LevelSet(below=4.0)"
            )
        if self.threshold is not None:
            object.__setattr__(
                self, "threshold", check_finite(self.threshold, "the threshold of a level set")
            )
        elif self.within is not None:
            margin = check_positive(self.within, "within", example="0.02")
            object.__setattr__(self, "within", margin)
        elif self.within_of_min is not None:
            margin = check_positive(self.within_of_min, "within_of_min", example="0.02")
            object.__setattr__(self, "within_of_min", margin)
        elif self.fraction_of_max is not None:
            _check_fraction_of_max(self.fraction_of_max)
        else:
            _check_fraction_of_min(self.fraction_of_min)

    def __repr__(self) -> str:
        name = "below" if self.side == "below" else "threshold"
        given = {
            name: self.threshold,
            "fraction_of_max": self.fraction_of_max,
            "fraction_of_min": self.fraction_of_min,
            "within": self.within,
            "within_of_min": self.within_of_min,
            "monotone": self.monotone,
            "of": self.of,
        }
        parts = [f"{key}={value!r}" for key, value in given.items() if value is not None]
        return f"LevelSet({', '.join(parts)})".replace("threshold=", "")

    def __str__(self) -> str:
        if self.threshold is not None:
            given = "below=" if self.side == "below" else ""
            name = "" if self.of is None else f", of={self.of!r}"
            return for_interface(
                f"LevelSet({given}{format_coordinate(self.threshold)}{name})",
                problem=f"a level set {self.side} {format_coordinate(self.threshold)}",
            )
        names = ("fraction_of_max", "fraction_of_min", "within", "within_of_min")
        name = next(name for name in names if getattr(self, name) is not None)
        return for_interface(
            f"LevelSet({name}={getattr(self, name):g})", problem=f"a level set {self.summary}"
        )

    def thresholds(self, lower: Array, upper: Array) -> tuple[float, float]:
        """Return the smallest and largest value that h can have; equal if it is explicit.

        For a fraction of the maximum they are h_pes and h_opt of Gotovos et al. (2013), the
        fraction of the largest lower and of the largest upper bound. For a multiple of the minimum
        they are that of the smallest ones, and a margin is added to the bounds of the optimum.
        """
        if self.threshold is not None:
            return self.threshold, self.threshold
        least, greatest = (
            self.implicit_threshold(np.min(bound) if self.is_from_minimum else np.max(bound))
            for bound in (lower, upper)
        )
        return float(least), float(greatest)

    def implicit_threshold(self, optimum: Array | float) -> Array:
        """Return the threshold that belongs to each of some values of the optimum."""
        if self.within is not None:
            return np.asarray(optimum - self.within)
        if self.within_of_min is not None:
            return np.asarray(optimum + self.within_of_min)
        return np.asarray(self.threshold_share * optimum)

    @property
    def is_from_minimum(self) -> bool:
        """Whether the threshold is implicit and depends on the minimum."""
        return self.fraction_of_min is not None or self.within_of_min is not None

    @property
    def margin(self) -> float | None:
        """The margin within which points are as good as the best; None without one."""
        return self.within_of_min if self.within is None else self.within

    @property
    def sign(self) -> int:
        """1 if the points above the threshold are asked for, -1 if those below it."""
        return 1 if self.side == "above" else -1

    @property
    def sides(self) -> tuple[Side, Side]:
        """The side that is asked for, and the other one."""
        return ("above", "below") if self.side == "above" else ("below", "above")

    def exceeds(self, values: Array, threshold: Array | float) -> Mask:
        """Return which values count as above a threshold; one on it belongs to `side`."""
        return np.asarray(values >= threshold if self.side == "above" else values > threshold)

    def asked(self, above: Mask) -> Mask:
        """Return which points are on the side that is asked for, given those above the threshold."""
        return above if self.side == "above" else ~above

    @property
    def question(self) -> str:
        """The goal as a question."""
        if self.threshold is not None:
            return f"where is the value {self.side} {format_coordinate(self.threshold)}?"
        if self.margin is not None:
            return f"where is the value {self.summary} one?"
        return f"where is the value {self.summary.replace(' the ', ' its ')}?"

    @property
    def summary(self) -> str:
        """Side and threshold: "above 7", "above 80 % of the maximum"."""
        if self.threshold is not None:
            return f"{self.side} {format_coordinate(self.threshold)}"
        if self.margin is not None:
            return (
                f"within {self.margin:g} of the {'lowest' if self.is_from_minimum else 'highest'}"
            )
        return f"above {100 * self.threshold_share:g} % of the {self.optimum_name}"

    @property
    def known_thresholds(self) -> tuple[float, ...]:
        """The threshold, unless it is a share of the optimum."""
        return () if self.threshold is None else (self.threshold,)

    @property
    def threshold_share(self) -> float:
        """Share of the unknown optimum that the threshold is; 0 if it is given."""
        if self.margin is not None:
            return 1.0
        return self.fraction_of_max or self.fraction_of_min or 0.0

    @property
    def direction(self) -> int:
        """Direction of the optimum that the threshold is a share of; 0 if it is given."""
        if self.threshold is not None:
            return 0
        return -1 if self.is_from_minimum else 1

    @property
    def learns_power(self) -> bool:
        """Whether the threshold is given: powers have another share of their optimum."""
        return self.threshold is not None

    @property
    def cost_caveats(self) -> tuple[str, ...]:
        """The reason that the threshold is implicit, if it is."""
        return () if self.threshold is not None else ("the threshold is implicit",)

    def in_model_units(self, forward: Callable[[Array], Array]) -> Self:
        """Return the goal with the threshold in the units of the model."""
        if self.threshold is None:
            return self
        return replace(self, threshold=float(forward(np.asarray(self.threshold))))

    def check_logarithm(self, option: str) -> None:
        """Check that the threshold has a logarithm."""
        if self.threshold is None:
            reason = "share of their maximum" if self.margin is None else "margin in your units"
            raise InvalidModelError(
                f"logarithms have no {reason}, got {self} with {option}; give the "
                "threshold itself, or leave out the transform"
            )
        super().check_logarithm(option)

    def within_gap(self, f: Array, gap: float) -> Mask:
        """Return the points within half the gap of the threshold.

        With an implicit threshold w max f the width of the maximum's bounds adds a share w
        (docs/theory.md).
        """
        h = self.thresholds(f, f)[0]
        return np.asarray(np.abs(f - h) <= gap / 2 * (1 + self.threshold_share))

    @property
    def optimum_name(self) -> str:
        """The optimum that an implicit threshold is a share of: "maximum" or "minimum"."""
        return "minimum" if self.is_from_minimum else "maximum"

    def update(self, regions: Regions, lower: Array, upper: Array) -> Regions:
        """Return the points that are above the threshold, those below it, and the undecided ones."""
        smallest, largest = self.thresholds(lower, upper)
        if not self.monotone:
            regions = Regions.unknown(len(lower))
        above = regions.above | (regions.potential & (lower > largest))  # eq. (7)
        below = regions.below | (regions.potential & (upper < smallest))  # eq. (7)
        return Regions(~above & ~below, above, below)  # eq. (6)

    def targets(self, regions: Regions, lower: Array, upper: Array) -> Mask:
        """Return M_t, and for a fraction of the optimum the points that can be the optimum."""
        if self.threshold is not None:
            return regions.potential
        if self.is_from_minimum:
            return np.asarray(regions.potential | (lower <= upper.min()))
        return np.asarray(regions.potential | (upper >= lower.max()))

    def epsilon(self, regions: Regions, lower: Array, upper: Array) -> float:
        """Return twice the largest possible distance of f to the threshold at an undecided point."""
        if not regions.potential.any():
            return 0.0
        smallest, largest = self.thresholds(lower, upper)
        above = float((upper[regions.potential] - smallest).max())
        below = float((largest - lower[regions.potential]).max())
        return 2.0 * max(0.0, above, below)


@dataclass(frozen=True)
class Bands(_ThresholdGoal):
    """Find the band that f lies in at every point: below, between or above several thresholds.

    `LevelSet([5, 7, 10])` and `LevelSet(between=(5, 7))` create it. In `Regions`, a point is
    decided if no threshold lies between its bounds; `below` are then the points of the lowest band
    and `above` those of all others, and with `inside` the points between the two thresholds are
    `above` and all others `below`.

    Attributes:
        thresholds: The thresholds, ascending.
        inside: Whether the question is which points lie between two thresholds.
        monotone: Whether a point that was classified stays so. None: as the policy has it, as with
            `Maximize`.
        of: The quantity that it is about, where a study has several; see `AllOf`.
    """

    thresholds: tuple[float, ...]
    inside: bool = False
    monotone: bool | None = None
    of: str | None = None
    sign = 1
    fraction_of_max = None
    fraction_of_min = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "thresholds", _check_thresholds(self.thresholds, self.inside))
        check_quantity(self.of)

    def __str__(self) -> str:
        texts = [format_coordinate(h) for h in self.thresholds]
        if self.inside:
            low, high = texts
            name = "" if self.of is None else f", of={self.of!r}"
            return for_interface(
                f"LevelSet(between=({low}, {high}){name})",
                problem=f"the values between {low} and {high}",
            )
        listed = ", ".join(texts)
        return for_interface(f"LevelSet([{listed}])", problem=f"the bands between {listed}")

    @property
    def question(self) -> str:
        """The goal as a question."""
        if self.inside:
            low, high = map(format_coordinate, self.thresholds)
            return f"where does the value lie between {low} and {high}?"
        return f"in which band is the value: {self.summary}?"

    @property
    def summary(self) -> str:
        """Names of the bands."""
        return ", ".join(self.names)

    @property
    def known_thresholds(self) -> tuple[float, ...]:
        """All thresholds."""
        return self.thresholds

    @property
    def cost_caveats(self) -> tuple[str, ...]:
        """The reason that there are several thresholds."""
        return ("there are several thresholds",)

    def in_model_units(self, forward: Callable[[Array], Array]) -> Self:
        """Return the goal with the thresholds in the units of the model."""
        return replace(self, thresholds=tuple(forward(np.array(self.thresholds)).tolist()))

    def within_gap(self, f: Array, gap: float) -> Mask:
        """Return the points within half the gap of a threshold."""
        distance = np.abs(f[:, None] - np.array(self.thresholds)).min(axis=1)
        return np.asarray(distance <= gap / 2)

    @property
    def band_thresholds(self) -> tuple[float, ...]:
        """The thresholds; only this goal has them under this name."""
        return self.thresholds

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the bands, from the lowest: "below 5", "5 to 7", "above 7"."""
        texts = [format_coordinate(h) for h in self.thresholds]
        middle = [f"{low} to {high}" for low, high in pairwise(texts)]
        return (f"below {texts[0]}", *middle, f"above {texts[-1]}")

    def band_of(self, values: Array) -> Index:
        """Return each value's band, 0 for the lowest; a value on a threshold is above it."""
        return np.searchsorted(np.array(self.thresholds), values, side="right")

    def is_above(self, bands: Index) -> Mask:
        """Return which bands count as above in `Regions` and `Result.classification`."""
        return np.asarray(bands == 1 if self.inside else bands > 0)

    def update(self, regions: Regions, lower: Array, upper: Array) -> Regions:
        """Return the points whose band is decided, above and below, and the undecided ones."""
        if not self.monotone:
            regions = Regions.unknown(len(lower))
        levels = np.array(self.thresholds)
        n_passed = np.searchsorted(levels, lower, side="left")  # thresholds h with l > h, eq. (7)
        n_reached = np.searchsorted(
            levels, upper, side="right"
        )  # thresholds h that u < h does not hold for
        decided = regions.potential & (n_passed == n_reached)
        is_above = self.is_above(n_passed)
        above = regions.above | (decided & is_above)
        below = regions.below | (decided & ~is_above)
        return Regions(~above & ~below, above, below)

    def epsilon(self, regions: Regions, lower: Array, upper: Array) -> float:
        """Return twice the largest distance of f to the nearest threshold at undecided points."""
        largest = 0.0
        levels = np.array(self.thresholds)
        for low, high in zip(lower[regions.potential], upper[regions.potential], strict=True):
            within = levels[(levels >= low) & (levels <= high)]
            if len(within) == 0:  # a point that the bounds of an earlier step left undecided
                within = levels[[int(np.argmin(np.abs(levels - (low + high) / 2)))]]
            gaps = np.diff(within) / 2
            largest = max(largest, high - within[-1], within[0] - low, gaps.max(initial=0.0))
        return 2.0 * float(largest)


def _check_thresholds(given: Any, inside: bool) -> tuple[float, ...]:
    """Return several thresholds as ascending floats.

    Raises:
        InvalidArgumentError: If they are not different numbers in ascending order, or not two of
            them for `inside`.
    """
    listed = given if np.ndim(given) == 1 else ()  # a single number has the message of too few
    values = tuple(check_finite(value, "a threshold of a level set") for value in listed)
    if inside and (len(values) != 2 or not values[0] < values[1]):
        raise InvalidArgumentError(
            f"between must be two numbers (low, high) with low < high, got {given!r}; give them "
            "such as (5, 7)"
        )
    if len(values) == 0 or any(later <= earlier for earlier, later in pairwise(values)):
        raise InvalidArgumentError(
            f"several thresholds must be different and ascending, got {list(given)}; give them "
            "such as [5, 7, 10]"
        )
    return values


def _check_fraction_of_max(fraction: Any) -> None:
    """Check the fraction of the maximum; above 1 the message has the reason and the counterpart."""
    value = check_finite(fraction, "fraction_of_max")
    if value >= 1:
        raise InvalidArgumentError(
            f"fraction_of_max must lie between 0 and 1, got {value:g}: no point exceeds that "
            "multiple of the maximum; "
            f"for the points near the minimum give fraction_of_min={value if value > 1 else 1.2:g}"
        )
    check_fraction(value, "fraction_of_max", example="0.8")


def _check_fraction_of_min(fraction: Any) -> None:
    value = check_positive(fraction, "fraction_of_min", example="1.2")
    if value == 1:
        raise InvalidArgumentError(
            "fraction_of_min must differ from 1, which only the minimum itself fulfils; give a "
            "number such as 1.2 if "
            "the minimum is positive, or 0.8 if it is negative"
        )
