"""The goal of knowing f everywhere: the paper's pure variance reduction, with M = D throughout."""

from __future__ import annotations

import reprlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from truvar._typing import Array, Mask
from truvar.domain.goals._base import Goal, Regions, Score
from truvar.exceptions import InvalidArgumentError
from truvar.messages import for_interface
from truvar.validation import check_positive

if TYPE_CHECKING:
    from truvar.domain.domain import Domain

_LARGE_WEIGHT = 1e150  # above it weights are divided by the largest, so that their sum is finite

WeightLike = str | tuple[float, ...] | Callable[[dict[str, Any]], float]


@dataclass(frozen=True)
class Map(Goal):
    """Know f everywhere: within an accuracy, at nearly all points.

    The map is the posterior mean. Measurements are chosen to remove most variance from all points,
    per unit cost; no point is ever ruled out.

    Args:
        weight: How much each point matters: the name of a column, a number >= 0 per point, or a
            function of a point. Points of weight 0 do not matter. None: all matter equally.

    Attributes:
        accuracy: Distance of the map from f that is small enough, in the units of the values.

    Raises:
        InvalidArgumentError: If the accuracy is not a number > 0, or a weight is negative.

    Example:
        >>> Map(accuracy=0.3)
        >>> Map(accuracy=0.3, weight="area_m2")
    """

    accuracy: float
    weight: WeightLike | None = None
    kind = "map"
    one = "a map"
    many = "maps"
    score = Score("rmse", "RMSE", is_share=False)
    limits = ("accuracy",)
    truncates = False
    monotone = True
    sign = 1

    def __post_init__(self) -> None:
        check_positive(self.accuracy, "the accuracy of a map", example="0.3")
        object.__setattr__(self, "accuracy", float(self.accuracy))
        if self.weight is None or isinstance(self.weight, str) or callable(self.weight):
            return
        object.__setattr__(self, "weight", tuple(_check_weights(self.weight).tolist()))

    def __repr__(self) -> str:
        if self.weight is None:
            return f"Map(accuracy={self.accuracy!r})"
        weight = repr(self.weight)
        if isinstance(self.weight, tuple):
            weight = f"<{len(self.weight)} numbers>"
        return f"Map(accuracy={self.accuracy!r}, weight={weight})"

    def __str__(self) -> str:
        return for_interface(repr(self), problem=f"a map within {self.accuracy:g}")

    @property
    def question(self) -> str:
        """The goal as a question."""
        return f"what is the value everywhere, within ±{self.accuracy:g}?"

    @property
    def summary(self) -> str:
        """The accuracy: "map within ±0.3"."""
        return f"map within ±{self.accuracy:g}"

    @property
    def default_limit(self) -> dict[str, float]:
        """The accuracy that is asked for."""
        return {"accuracy": self.accuracy}

    @property
    def learns_power(self) -> bool:
        """False: the accuracy is the same at low and at high values."""
        return False

    @property
    def cost_caveats(self) -> tuple[str, ...]:
        """The reason that the paper's theory leaves out pure variance reduction."""
        return ("no variance is truncated (eta = 0)",)

    def with_monotone(self, monotone: bool) -> Self:
        """Return the goal itself: M is always D."""
        return self

    def update(self, regions: Regions, lower: Array, upper: Array) -> Regions:
        """Return M = D."""
        return Regions.unknown(len(lower))

    def epsilon(self, regions: Regions, lower: Array, upper: Array) -> float:
        """Return the largest distance of f from the middle of its bounds."""
        return float((upper - lower).max()) / 2

    def within_gap(self, f: Array, gap: float) -> Mask:
        """Return all points."""
        return np.ones(len(f), bool)

    def with_weights(self, weights: Array) -> Self:
        """Return the map with a weight for every point."""
        return replace(self, weight=tuple(weights.tolist()))

    def weights_on(self, domain: Domain) -> Array:
        """Return the weight of every point of a domain, 1 on average. (n,).

        Raises:
            InvalidArgumentError: If there is not one number >= 0 for every point.
        """
        if self.weight is None:
            return np.ones(len(domain))
        if isinstance(self.weight, str):
            weights = _check_weights(domain.column(self.weight))
        elif callable(self.weight):
            weight_of = self.weight
            weights = _check_weights([weight_of(domain.point(k)) for k in range(len(domain))])
        else:
            weights = np.array(self.weight)
        if len(weights) != len(domain):
            raise InvalidArgumentError(
                f"the weight of a map must have one number for each of the {len(domain)} points, "
                f"got {len(weights)}; give as many, or the name of a column"
            )
        largest = weights.max()
        if largest > _LARGE_WEIGHT:
            weights = weights / largest
        return np.asarray(weights / weights.mean())


def _check_weights(given: Any) -> Array:
    """Return weights as an array of numbers >= 0, of which some are > 0.

    Raises:
        InvalidArgumentError: If they are anything else.
    """
    expected = "the weight of a map must be a number >= 0 for every point, and not always 0"
    remedy = "give the name of a column, such numbers or a function of a point"
    if np.ndim(given) != 1 or isinstance(given, str):
        raise InvalidArgumentError(f"{expected}, got {reprlib.repr(given)}; {remedy}")
    weights = np.array([_as_number(weight) for weight in given])
    usable = np.isfinite(weights) & (weights >= 0)
    if not usable.all():
        row = int(np.argmin(usable))
        wrong = given[row].item() if isinstance(given[row], np.generic) else given[row]
        raise InvalidArgumentError(f"{expected}, got {wrong!r} for point {row}; {remedy}")
    if not weights.any():
        raise InvalidArgumentError(f"{expected}, got nothing but 0; {remedy}")
    return weights


def _as_number(weight: Any) -> float:
    """Return a weight as a float; NaN for one that is no number."""
    try:
        return float(weight)
    except (TypeError, ValueError):
        return float("nan")
