"""Joint statements about f as they are reported: estimates, classes of points, and all that is stated.

| symbol | here | shape |
|---|---|---|
| p(x) = P(f(x) > h) | `JointStatements.probability`, level set | (n,) |
| P(x is the optimum) | `JointStatements.probability`, optimum | (n,) |
| F(x), the highest confidence at which x is decided | `JointStatements.decided_confidence` | (n,) |
| F1 of the points reported as above, max f - f(recommended point) | `expected_f1`, `expected_regret` | |
| share of the points above h | `JointStatements.share_above` | |
| marginal quantiles of f(x) | `JointStatements.lower`, `JointStatements.upper` | (n,) |

They are computed by `level_set`, `optimum` and `bands`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import floor, isfinite
from typing import Any

import numpy as np

from truvar._typing import Array, Index, Mask
from truvar.domain.goals import Bands, Goal
from truvar.exceptions import InvalidArgumentError, UnsupportedGoalError
from truvar.inference.errors import ClassErrors
from truvar.validation import check_finite, check_fraction

CONFIDENCE = 0.95  # of the statements that are made unless another one is asked for
POINTWISE = 0.95  # probability of the class of every point that is shown
TOLERANCE = 0.01  # share of the points shown that one of the further statements allows to be wrong


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
        """Return mean and interval of draws. The interval contains the mean, however skewed they are."""
        low, high = np.quantile(draws, [0.025, 0.975])
        mean = float(draws.mean())
        return Estimate(mean, min(float(low), mean), max(float(high), mean))


UNKNOWN_SHARE = Estimate(float("nan"), 0.0, 1.0)
UNKNOWN_REGRET = Estimate(float("nan"), 0.0, float("inf"))


@dataclass(frozen=True, eq=False)
class Classification:
    """Points by their class, with the probability of that.

    Without `pointwise`, everything decided here is right *jointly* with probability `confidence`,
    given the model: all of it, or all but a share `tolerance` of the points shown, or all of it up
    to `margin`. With `pointwise`, every point shown has its class with at least that probability.

    Attributes:
        confidence: Probability of the joint statement; with `pointwise`, of the bounds of `wrong`.
        above: Level set: points above the threshold. Minimum: points ruled out.
        below: Level set: points that are not above the threshold. Maximum: points ruled out.
        undecided: All others. Optimum: they hold it.
        band: Several thresholds: index of the band of every point, from the lowest; -1 where it is
            undecided. (n,)
        band_names: Names of the bands, from the lowest.
        pointwise: Probability that the class of each single point shown has at least; None for a
            joint statement.
        tolerance: Share of the points shown that may be wrong.
        margin: Distance from the threshold up to which a point on the other side counts as right.
        wrong: Number of points shown that are wrong: its mean, and the bounds `low` and `high`,
            each of which holds with probability `confidence`; see `max_wrong`. None for an optimum
            or a margin.
    """

    confidence: float
    above: Mask
    below: Mask
    undecided: Mask
    band: Index | None = None
    band_names: tuple[str, ...] = ()
    pointwise: float | None = None
    tolerance: float = 0.0
    margin: float = 0.0
    wrong: Estimate | None = None

    def __repr__(self) -> str:
        parts = [
            f"{int(getattr(self, name).sum())} {name}" for name in ("above", "below", "undecided")
        ]
        if self.pointwise is None:
            parts.append(f"confidence={self.confidence:g}")
        else:
            parts.append(f"pointwise={self.pointwise:g}")
            if self.wrong is not None:
                parts.append(f"wrong={self.wrong}")
        parts += [
            f"{name}={getattr(self, name):g}"
            for name in ("tolerance", "margin")
            if getattr(self, name) > 0
        ]
        return f"Classification({', '.join(parts)})"

    @property
    def n_shown(self) -> int:
        """Number of points that have a class."""
        return len(self.undecided) - int(self.undecided.sum())

    @property
    def max_wrong(self) -> int:
        """Number of points shown that are wrong at most, with probability `confidence`."""
        return 0 if self.wrong is None else floor(self.wrong.high)

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
        share_above: Share of the points above the threshold, or, with several, of those that
            `probability` is about; None for an optimum.
        regret_bound: Distance from the optimum that the recommended point does not exceed with
            probability `CONFIDENCE`; None for a level set or before there is a model.
        errors: Errors of the classes in joint draws; None for an optimum or before there is a
            model.
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
    share_above: Estimate | None = None
    regret_bound: float | None = None
    errors: ClassErrors | None = None

    def __post_init__(self) -> None:
        for array in (self.probability, self.decided_confidence, self.lower, self.upper):
            array.setflags(write=False)

    @property
    def is_known(self) -> bool:
        """Whether there is a model to state anything with."""
        return self.score is not None and isfinite(self.score.mean)

    @property
    def score(self) -> Estimate | None:
        """Estimate of the score that answers to the goal are judged by, see `Goal.score`."""
        estimate: Estimate | None = getattr(self, f"expected_{self.goal.score.key}")
        return estimate

    @cached_property
    def classes(self) -> Classification:
        """The classes that every output shows: a level set's pointwise, an optimum's joint ones."""
        if self.goal.seeks_optimum:
            return self.classify()
        return self.classify(pointwise=POINTWISE)

    def classify(
        self,
        confidence: float = CONFIDENCE,
        *,
        pointwise: float | None = None,
        tolerance: float = 0.0,
    ) -> Classification:
        """Return the classes that can be stated with given probabilities; see `Result.classify`.

        Args:
            confidence: Probability of the joint statement.
            pointwise: Probability of the class of every single point; None: a joint statement.
            tolerance: Share of the points shown that may be wrong.
        """
        check_classify(self.goal, confidence, pointwise, tolerance)
        if pointwise is not None:
            shown = np.zeros(len(self.probability), bool)
            if self.errors is not None:
                shown = self.errors.certainty >= pointwise
        else:
            shown = self.decided_confidence >= confidence
            if tolerance > 0 and self.errors is not None:
                shown |= self.errors.shown_with_tolerance(confidence, tolerance)
        wrong = None if self.goal.seeks_optimum else self._wrong(shown, confidence)
        classes = classes_of(self, shown, confidence)
        return replace(classes, pointwise=pointwise, tolerance=tolerance, wrong=wrong)

    def _wrong(self, shown: Mask, confidence: float) -> Estimate:
        """Return how many of the points shown are wrong, with bounds that hold with a probability."""
        if self.errors is None or not shown.any():
            return Estimate(0.0, 0.0, 0.0)
        least_certain = float(self.errors.certainty[shown].min())
        return Estimate(*self.errors.bounds(least_certain, confidence))

    def to_dict(self) -> dict[str, Any]:
        """Return the estimates for JSON, without the arrays."""
        estimates: dict[str, Any] = {}
        for name in ("expected_f1", "expected_regret", "recommended_value", "share_above"):
            estimate = getattr(self, name)
            estimates[name] = None if estimate is None else estimate.to_dict()
        return {
            **estimates,
            "optimal_probability": self.optimal_probability,
            "expected_misclassified": self.expected_misclassified,
            "n_drawn": self.n_drawn,
            "n_relevant": self.n_relevant,
            "bands": None if self.bands is None else self.bands.to_dict(),
            "regret_bound": self.regret_bound,
        }


def classes_of(statements: JointStatements, shown: Mask, confidence: float) -> Classification:
    """Return the classes of the points that are shown; the others are undecided.

    Args:
        statements: The statements, which have the more probable class of every point.
        shown: Points that have a class. (n,)
        confidence: Probability of the statement.
    """
    goal = statements.goal
    nothing = np.zeros_like(shown)
    if isinstance(goal, Bands) and statements.bands is not None:
        is_above = goal.is_above(statements.bands.reported)
        band = np.where(shown, statements.bands.reported, -1)
        return Classification(
            confidence, shown & is_above, shown & ~is_above, ~shown, band, goal.names
        )
    if goal.has_thresholds:
        is_above = statements.probability >= 0.5
        classes = Classification(confidence, shown & is_above, shown & ~is_above, ~shown)
        if goal.class_names is None:
            return classes
        band = np.where(shown, is_above.astype(int), -1)
        return replace(classes, band=band, band_names=goal.class_names)
    if goal.sign > 0:
        return Classification(confidence, nothing, shown, ~shown)
    return Classification(confidence, shown, nothing, ~shown)


def check_classify(
    goal: Goal,
    confidence: float,
    pointwise: float | None = None,
    tolerance: float = 0.0,
    margin: float = 0.0,
) -> None:
    """Check the arguments of `Result.classify`.

    Raises:
        InvalidArgumentError: If a number is out of range, or several kinds of statements are asked
            for in one.
        UnsupportedGoalError: If one of these statements needs a level set and the goal is none.
    """
    check_fraction(confidence, "confidence", example="0.95")
    if pointwise is not None:
        check_fraction(pointwise, "pointwise", example="0.95")
    share = check_finite(tolerance, "tolerance")
    if not 0 <= share < 1:
        raise InvalidArgumentError(
            f"tolerance must be at least 0 and less than 1, got {tolerance}; give a share of the "
            "points shown, such as 0.01"
        )
    if check_finite(margin, "margin") < 0:
        raise InvalidArgumentError(
            f"margin must be >= 0, got {margin}; give a distance from the threshold, such as 0.3"
        )
    if margin > 0 and goal.parts:
        raise UnsupportedGoalError(
            f"classify(margin=...) needs one quantity, got the goal {goal}; use tolerance=0.01 or "
            "pointwise=0.95"
        )
    given = {"pointwise": pointwise is not None, "tolerance": share > 0, "margin": margin > 0}
    names = [name for name, is_given in given.items() if is_given]
    if len(names) > 1:
        raise InvalidArgumentError(
            f"classify takes one of pointwise, tolerance and margin, got {' and '.join(names)}; "
            "make a call for each"
        )
    if names and goal.seeks_optimum:
        raise UnsupportedGoalError(
            f"classify({names[0]}=...) needs a level set, got the goal {goal}; for an optimum "
            "classify(confidence=0.95) returns the points that hold it, and expected_regret the "
            "distance of the recommended one"
        )
