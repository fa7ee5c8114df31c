"""Joint statements about f as they are reported: estimates, classes of points, and all that is stated.

| symbol | here | shape |
|---|---|---|
| p(x) = P(f(x) > h) | `JointStatements.probability`, level set | (n,) |
| P(x is the optimum) | `JointStatements.probability`, optimum | (n,) |
| F(x), the highest confidence at which x is decided | `JointStatements.decided_confidence` | (n,) |
| F1 of the points reported as above, max f - f(recommended point) | `expected_f1`, `expected_regret` | |
| marginal quantiles of f(x) | `JointStatements.lower`, `JointStatements.upper` | (n,) |

They are computed by `level_set`, `optimum` and `bands`.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np

from truvar._typing import Array, Index, Mask
from truvar.domain.goals import Bands, Goal, LevelSet
from truvar.validation import check_fraction

CONFIDENCE = 0.95  # of the statements that are made unless another one is asked for


@dataclass(frozen=True)
class Estimate:
    """The distribution of an unknown score, given the model.

    Attributes:
        mean: Its mean.
        low: Lower end of its central 95 % interval.
        high: Upper end of that interval.
    """

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:.3g} ({self.low:.3g} to {self.high:.3g})"

    def to_dict(self) -> dict[str, float | None]:
        """Return the numbers for JSON, with null for those that are not finite."""
        return {name: value if isfinite(value) else None for name, value in vars(self).items()}

    @staticmethod
    def of(draws: Array) -> Estimate:
        """Return mean and interval of draws."""
        low, high = np.quantile(draws, [0.025, 0.975])
        return Estimate(float(draws.mean()), float(low), float(high))


UNKNOWN_F1 = Estimate(float("nan"), 0.0, 1.0)
UNKNOWN_REGRET = Estimate(float("nan"), 0.0, float("inf"))


@dataclass(frozen=True, eq=False)
class Classification:
    """Points by what is decided about them jointly, with a given confidence.

    Attributes:
        confidence: Probability, given the model, that everything decided here is right.
        above: Level set: points above the threshold. Minimum: points ruled out.
        below: Level set: points that are not above the threshold. Maximum: points ruled out.
        undecided: All others. Optimum: they hold it.
        band: Several thresholds: index of the band of every point, from the lowest; -1 where it is
            undecided. (n,)
        band_names: Names of the bands, from the lowest.
    """

    confidence: float
    above: Mask
    below: Mask
    undecided: Mask
    band: Index | None = None
    band_names: tuple[str, ...] = ()

    def __repr__(self) -> str:
        counts = ", ".join(
            f"{int(getattr(self, name).sum())} {name}" for name in ("above", "below", "undecided")
        )
        return f"Classification({counts}, confidence={self.confidence:g})"

    @property
    def labels(self) -> np.ndarray[Any, Any]:
        """The class of every point as text: "above", "below", the name of a band, or "undecided", (n,)."""
        if self.band is not None:
            return np.array([*self.band_names, "undecided"])[self.band]
        return np.select([self.above, self.below], ["above", "below"], "undecided")


@dataclass(frozen=True, eq=False)
class BandStatements:
    """Statements about the bands of a goal with several thresholds.

    Attributes:
        probability: Probability of each band, from the lowest, at every point. (m + 1, n)
        reported: The band to report at every point. (n,)
        expected_f1: F1 score of the points above each threshold; between two, of the points inside.
    """

    probability: Array
    reported: Index
    expected_f1: tuple[Estimate, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the estimates for JSON, without the arrays."""
        return {"expected_f1": [estimate.to_dict() for estimate in self.expected_f1]}


@dataclass(frozen=True, eq=False)
class JointStatements:
    """Everything that is stated about all points jointly, given the model.

    Attributes:
        goal: The goal of the study.
        probability: Level set: probability of lying above the threshold. Optimum: of being the
            optimum. (n,)
        decided_confidence: Highest confidence at which a point is decided. (n,)
        reported: Level set: points to report on the side asked for, if every point must be on one.
            None for an optimum. (n,)
        lower: The value that f exceeds with probability `CONFIDENCE`, at each point marginally.
            (n,)
        upper: The value that f does not exceed with probability `CONFIDENCE`, at each point
            marginally. (n,)
        expected_f1: F1 score of `reported`; None for an optimum.
        expected_regret: Distance of the recommended point's value from the optimum; None for a
            level set.
        optimal_probability: Probability that no point is better than the recommended one; None for
            a level set.
        recommended_value: f at the recommended point; None for a level set or before there is a
            model.
        expected_misclassified: Expected number of points that `reported` has on the wrong side;
            None for an optimum.
        n_drawn: Points that were drawn jointly.
        n_relevant: Points that are not certain marginally; if more than `n_drawn`, those drawn
            stand for them.
        bands: What is stated about the bands between several thresholds; None without them.
    """

    goal: Goal
    probability: Array
    decided_confidence: Array
    reported: Mask | None
    lower: Array
    upper: Array
    expected_f1: Estimate | None
    expected_regret: Estimate | None
    optimal_probability: float | None
    expected_misclassified: float | None
    n_drawn: int
    n_relevant: int
    recommended_value: Estimate | None = None
    bands: BandStatements | None = None

    def __post_init__(self) -> None:
        for array in (self.probability, self.decided_confidence, self.lower, self.upper):
            array.setflags(write=False)

    @property
    def is_known(self) -> bool:
        """Whether there is a model to state anything with."""
        score = self.expected_f1 if self.expected_regret is None else self.expected_regret
        return score is not None and isfinite(score.mean)

    def classify(self, confidence: float = CONFIDENCE) -> Classification:
        """Return what is decided with that probability, for all points jointly.

        Args:
            confidence: The probability, between 0 and 1.

        Raises:
            InvalidArgumentError: If it is not between 0 and 1.
        """
        check_fraction(confidence, "confidence", example="0.95")
        decided = self.decided_confidence >= confidence
        nothing = np.zeros_like(decided)
        if isinstance(self.goal, Bands) and self.bands is not None:
            is_above = self.goal.is_above(self.bands.reported)
            band = np.where(decided, self.bands.reported, -1)
            return Classification(
                confidence, decided & is_above, decided & ~is_above, ~decided, band, self.goal.names
            )
        if isinstance(self.goal, LevelSet):
            is_above = self.probability >= 0.5
            return Classification(confidence, decided & is_above, decided & ~is_above, ~decided)
        if self.goal.sign > 0:
            return Classification(confidence, nothing, decided, ~decided)
        return Classification(confidence, decided, nothing, ~decided)

    def to_dict(self) -> dict[str, Any]:
        """Return the estimates for JSON, without the arrays."""
        estimates: dict[str, Any] = {}
        for name in ("expected_f1", "expected_regret", "recommended_value"):
            estimate = getattr(self, name)
            estimates[name] = None if estimate is None else estimate.to_dict()
        return {
            **estimates,
            "optimal_probability": self.optimal_probability,
            "expected_misclassified": self.expected_misclassified,
            "n_drawn": self.n_drawn,
            "n_relevant": self.n_relevant,
            "bands": None if self.bands is None else self.bands.to_dict(),
        }
