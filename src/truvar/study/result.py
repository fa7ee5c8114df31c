"""What a study answers: a suggestion, the best point, and the result with its masks, bounds and certificate."""

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
from truvar.exceptions import TruvarError
from truvar.inference.certificate import Certificate
from truvar.validation import check_truth

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Best:
    """The point to report: the one with the best posterior mean."""

    index: int | None
    point: dict[str, float]
    mean: float
    sd: float


@dataclass(frozen=True)
class Result:
    """Where the study stands: what is proven, what is believed, and what it cost. Arrays run over the domain."""

    domain: Domain
    goal: Goal
    potential: Mask  # M: still open
    above: Mask  # H
    below: Mask  # L
    mean: Array  # of the posterior
    sd: Array  # its standard deviation
    lower: Array  # confidence bounds
    upper: Array
    best: Best  # the point to report: index, point, mean, sd
    epsilon: float  # how far from exact the answer can be, if the bounds hold
    certificate: Certificate  # what is proven, in words; str() of it is the statement
    spent: float  # the cost of what was told
    steps: int  # the number of values told
    reason: str | None  # why it stopped or is finished, if it did
    measured: tuple[int, ...]  # indices of the points where the target was measured, in order

    @property
    def threshold(self) -> float | None:
        """h of a level set; with an implicit threshold, its fraction of the largest posterior mean."""
        if not isinstance(self.goal, LevelSet):
            return None
        return self.goal.thresholds(self.mean, self.mean)[0]

    @property
    def classification(self) -> Mask | None:
        """The paper's report for a level set: posterior mean >= h. H and L were decided by the bounds of the step at
        which each point was classified and, with monotone M, stay, even where mean or bounds of now say otherwise."""
        return None if self.threshold is None else self.mean >= self.threshold

    def f1(self, truth: ArrayLike) -> float:
        """The F1 score of the classification against the true values on the domain."""
        if not isinstance(self.goal, LevelSet) or self.classification is None:
            raise TruvarError(f"F1 needs a level set, but the goal was {self.goal}; for an optimum use regret(truth)")
        values = check_truth(truth, len(self.mean))
        true = values >= self.goal.thresholds(values, values)[0]
        hits = int((true & self.classification).sum())
        found, wanted = int(self.classification.sum()), int(true.sum())
        return 1.0 if found + wanted == 0 else 2 * hits / (found + wanted)

    def regret(self, truth: ArrayLike | Callable[[Mapping[str, float]], float], optimum: float | None = None) -> float:
        """How far the value of the best point is from the true optimum: `truth` on the domain, or for a box a function
        together with its optimum."""
        if self.goal.level_set:
            raise TruvarError(f"regret needs an optimum, but the goal was {self.goal}; for a level set use f1(truth)")
        sign = self.goal.sign
        if callable(truth):
            if optimum is None:
                raise TruvarError("regret of a function needs its true optimum, but none came; give optimum=...")
            return sign * (optimum - float(truth(self.best.point)))
        if self.best.index is None:
            raise TruvarError("the best point is none of the domain's points; give regret a function and its optimum")
        values = check_truth(truth, len(self.mean))
        return float((sign * values).max() - sign * values[self.best.index])

    def simple_regret(self, truth: ArrayLike) -> float:
        """How far the best point measured so far is from the true optimum, by the true values on the domain."""
        if not self.measured:
            raise TruvarError("simple regret needs a measurement at a point of the domain, but there is none yet")
        values = self.goal.sign * check_truth(truth, len(self.mean))
        return float(values.max() - values[list(self.measured)].max())

    def to_frame(self) -> pd.DataFrame:
        """One row per point: coordinates, mean, sd, lower, upper, and class: above, below or undecided.

        A name that a coordinate has already gets an underscore behind it.
        """
        frame = self.domain.to_frame()
        kind = np.select([self.above, self.below], ["above", "below"], "undecided")
        columns = {"mean": self.mean, "sd": self.sd, "lower": self.lower, "upper": self.upper, "class": kind}
        for name, values in columns.items():
            frame[f"{name}_" if name in self.domain.columns else name] = values
        return frame

    def to_geopandas(self) -> Any:
        """`to_frame` as a GeoDataFrame, of a domain that was made of one: its points, in its coordinate system."""
        return to_geopandas(self.to_frame(), self.domain.frame)

    def to_xarray(self) -> Any:
        """`to_frame` as an xarray Dataset: over the axes of a grid, otherwise over the dimension "point". `class` is
        -1, 0 or 1 for below, undecided and above, as its flags say (CF conventions)."""
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
        """The summary, for JSON (the arrays are in `to_frame`), which knows no infinity: None there."""
        return {
            "steps": self.steps,
            "spent": self.spent,
            "potential": int(self.potential.sum()),
            "above": int(self.above.sum()),
            "below": int(self.below.sum()),
            "threshold": self.threshold,
            "best": asdict(self.best),
            "epsilon": None if self.epsilon == inf else self.epsilon,
            "certificate": self.certificate.to_dict(),
            "reason": self.reason,
        }
