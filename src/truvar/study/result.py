"""`Result`: what a study knows, with its regions, bounds, best point and certificate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from truvar._typing import Array, Mask
from truvar.domain.domain import Domain
from truvar.domain.geo import CLASSES, to_geopandas, to_xarray
from truvar.domain.goals import Goal, LevelSet
from truvar.exceptions import InvalidArgumentError, UnsupportedGoalError
from truvar.inference.certificate import Certificate
from truvar.models.diagnostics import ModelCheck
from truvar.validation import check_truth

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Best:
    """The point to recommend: that of the best posterior mean, if it was measured or the model is sure enough of it.

    Attributes:
        index: Row of the point in the domain; None inside a box.
        point: Coordinates by column name.
        mean: Posterior mean there.
        sd: Posterior standard deviation there.
    """

    index: int | None
    point: dict[str, float]
    mean: float
    sd: float


@dataclass(frozen=True)
class BestObserved:
    """The measurement with the best value.

    Attributes:
        id: Id of the measurement.
        index: Row of the point in the domain; None inside a box.
        point: Coordinates by column name.
        value: The measured value.
    """

    id: int
    index: int | None
    point: dict[str, float]
    value: float


@dataclass(frozen=True)
class Result:
    """The knowledge of a study at one moment. Arrays and masks have one entry per point of the domain.

    Attributes:
        domain: The domain.
        goal: The goal.
        potential: Undecided points, the paper's M: not yet classified, or possibly the optimum.
        above: Points classified as above the threshold, the paper's H.
        below: Points classified as below the threshold, the paper's L; for an optimum those ruled out.
        mean: Posterior mean.
        sd: Posterior standard deviation.
        lower: Lower confidence bounds.
        upper: Upper confidence bounds.
        best: The point to report.
        best_observed: The best measurement; None before the first.
        probability: Level set: probability that f lies above the threshold. None for an optimum.
        epsilon: Largest error of the answer, if the bounds hold.
        certificate: What is proven and under which assumptions; `str(certificate)` is a sentence.
        model_check: Whether every measurement agrees with what the others predict; a failed check is repeated by the
            certificate.
        spent: Total cost of the measurements.
        steps: Number of measurements.
        reason: Why the study stopped or is finished, such as "step limit (60) reached"; None if it did not.
        measured: Rows of the points where the target was measured, in order.
        outliers: Ids of the measurements that the model leaves out as gross errors.
    """

    domain: Domain
    goal: Goal
    potential: Mask
    above: Mask
    below: Mask
    mean: Array
    sd: Array
    lower: Array
    upper: Array
    best: Best
    best_observed: BestObserved | None
    probability: Array | None
    epsilon: float
    certificate: Certificate
    model_check: ModelCheck
    spent: float
    steps: int
    reason: str | None
    measured: tuple[int, ...]
    outliers: tuple[int, ...] = ()

    @property
    def threshold(self) -> float | None:
        """The threshold h of a level set; for `fraction_of_max` that share of the largest posterior mean."""
        if not isinstance(self.goal, LevelSet):
            return None
        return self.goal.thresholds(self.mean, self.mean)[0]

    @property
    def classification(self) -> Mask | None:
        """Points that lie above the threshold with probability >= 1/2; None for an optimum.

        Unless the values are transformed, these are the points whose posterior mean is >= h, as the paper reports them.

        `above` and `below` may differ from it: a point was classified by the bounds of its own step and, unless the
        goal has `monotone=False`, stays so whatever mean and bounds say later.
        """
        return None if self.probability is None else self.probability >= 0.5

    def f1(self, truth: ArrayLike) -> float:
        """Return the F1 score of the classification.

        Args:
            truth: True values on the domain.

        Raises:
            UnsupportedGoalError: If the goal is an optimum.
            InvalidArgumentError: If there is not one finite value per point.
        """
        if not isinstance(self.goal, LevelSet) or self.classification is None:
            raise UnsupportedGoalError(
                f"F1 needs a level set, got the goal {self.goal}; for an optimum use regret(truth)"
            )
        values = check_truth(truth, len(self.mean))
        true = values >= self.goal.thresholds(values, values)[0]
        n_hits = int((true & self.classification).sum())
        n_both = int(self.classification.sum()) + int(true.sum())
        return 1.0 if n_both == 0 else 2 * n_hits / n_both

    def regret(self, truth: ArrayLike | Callable[[Mapping[str, float]], float], optimum: float | None = None) -> float:
        """Return the distance of the best point's true value from the true optimum.

        Args:
            truth: True values on the domain; or a function of a point, as a box needs it.
            optimum: The true optimum of a function.

        Raises:
            UnsupportedGoalError: If the goal is a level set.
            InvalidArgumentError: If there is not one finite value per point, or the optimum of a function is missing.
        """
        if self.goal.level_set:
            raise UnsupportedGoalError(
                f"regret needs an optimum, got the goal {self.goal}; for a level set use f1(truth)"
            )
        sign = self.goal.sign
        if callable(truth):
            if optimum is None:
                raise InvalidArgumentError("regret of a function needs its true optimum, got none; give optimum=...")
            return sign * (optimum - float(truth(self.best.point)))
        if self.best.index is None:
            raise InvalidArgumentError(
                "regret in a box needs a function, got values on the domain; give the function and optimum=..."
            )
        values = check_truth(truth, len(self.mean))
        return float((sign * values).max() - sign * values[self.best.index])

    def simple_regret(self, truth: ArrayLike) -> float:
        """Return the distance of the best true value among the measured points from the true optimum.

        Args:
            truth: True values on the domain.

        Raises:
            InvalidArgumentError: If there is not one finite value per point, or no point of the domain was measured.
        """
        if not self.measured:
            raise InvalidArgumentError(
                "simple regret needs a measurement at a point of the domain, got none; run first"
            )
        values = self.goal.sign * check_truth(truth, len(self.mean))
        return float(values.max() - values[list(self.measured)].max())

    def to_frame(self) -> pd.DataFrame:
        """Return one row per point: coordinates, mean, sd, lower, upper, and class: above, below or undecided.

        Where a coordinate has one of these names, the latter gets an underscore: `mean_`.
        """
        frame = self.domain.to_frame()
        kind = np.select([self.above, self.below], ["above", "below"], "undecided")
        columns = {"mean": self.mean, "sd": self.sd, "lower": self.lower, "upper": self.upper, "class": kind}
        for name, values in columns.items():
            frame[f"{name}_" if name in self.domain.columns else name] = values
        return frame

    def to_geopandas(self) -> Any:
        """Return `to_frame` as a GeoDataFrame, with the points and the coordinate system of the domain's own.

        Raises:
            InvalidDomainError: If the domain was not made from a GeoDataFrame.
            MissingDependencyError: If GeoPandas is not installed.
        """
        return to_geopandas(self.to_frame(), self.domain.frame)

    def to_xarray(self) -> Any:
        """Return `to_frame` as an xarray Dataset: over the axes of a grid, otherwise over the dimension "point".

        `class` is -1, 0 or 1 for below, undecided and above, with flags by the CF conventions.

        Raises:
            MissingDependencyError: If xarray is not installed.
        """
        frame = self.to_frame()
        if self.domain.frame is not None:
            frame.attrs = dict(self.domain.frame.attrs)
        name = "class_" if "class" in self.domain.columns else "class"
        frame[name] = frame[name].map({kind: code - 1 for code, kind in enumerate(CLASSES)}).astype("int8")
        attrs = {
            "epsilon": self.epsilon,
            "spent": self.spent,
            "steps": self.steps,
            "certificate": str(self.certificate),
        }
        dataset = to_xarray(frame, self.domain.columns, self.domain.axes, attrs)
        flags = {"flag_values": np.array([-1, 0, 1], dtype="int8"), "flag_meanings": " ".join(CLASSES)}
        dataset[name].attrs.update(flags)
        return dataset

    def to_dict(self) -> dict[str, Any]:
        """Return a summary of JSON values, without the arrays; an infinite epsilon is None."""
        best_observed = None if self.best_observed is None else asdict(self.best_observed)
        return {
            "steps": self.steps,
            "spent": self.spent,
            "potential": int(self.potential.sum()),
            "above": int(self.above.sum()),
            "below": int(self.below.sum()),
            "threshold": self.threshold,
            "best": asdict(self.best),
            "best_observed": best_observed,
            "outliers": list(self.outliers),
            "epsilon": None if self.epsilon == inf else self.epsilon,
            "certificate": self.certificate.to_dict(),
            "model_check": self.model_check.to_dict(),
            "reason": self.reason,
        }
