"""`Result`: what a study knows, with its regions, bounds, best point and certificate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from truvar._representation import html_card, text_card
from truvar._typing import Array, Index, Mask
from truvar.domain.domain import Domain
from truvar.domain.geo import CLASSES, to_geopandas, to_xarray
from truvar.domain.given_context import rows_in_context
from truvar.domain.goals import AllOf, Bands, ConstrainedOptimum, Goal, LevelSet
from truvar.domain.labels import with_label, with_other_columns
from truvar.exceptions import InvalidArgumentError, UnsupportedGoalError
from truvar.inference.bands import true_f1
from truvar.inference.certificate import Certificate, with_joint_statements
from truvar.inference.joint import StatementSource
from truvar.inference.margins import classify_with_margin
from truvar.inference.statements import (
    CONFIDENCE,
    TOLERANCE,
    Classification,
    Estimate,
    JointStatements,
    check_classify,
)
from truvar.inference.undecided_causes import main_cause
from truvar.messages import format_coordinates
from truvar.models.diagnostics import ModelCheck
from truvar.study._map_properties import MapProperties
from truvar.study._several_properties import (
    QuantityEstimate,
    constrained_regret,
    region_f1,
)
from truvar.tabular.labels import label_to_json
from truvar.validation import check_truth

if TYPE_CHECKING:
    import pandas as pd

_MISSING_CLASS = np.int8(-128)  # class of a grid point outside the domain, in a NetCDF file
_EVEN_ODDS = 0.5  # probability of a success below which a failure is likelier


@dataclass(frozen=True)
class Best:
    """The point to recommend: that of the best posterior mean, if it was measured or the model is sure enough of it.

    Attributes:
        index: Row of the point in the domain; None inside a box.
        point: Coordinates by column name.
        mean: Posterior mean there.
        sd: Posterior standard deviation there.
        label: Label of the row in the user's own table; None if there is no table.
    """

    index: int | None
    point: dict[str, Any]
    mean: float
    sd: float
    label: Any = None

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a dictionary of JSON values."""
        return {**asdict(self), "label": label_to_json(self.label)}


@dataclass(frozen=True)
class BestObserved:
    """The measurement with the best value.

    Attributes:
        id: Id of the measurement.
        index: Row of the point in the domain; None inside a box.
        point: Coordinates by column name.
        value: The measured value.
        label: Label of the row in the user's own table; None if there is no table.
        plausible: The best of the other measurements, if the value is so far beyond all of them
            that it may be a mistake; None otherwise.
    """

    id: int
    index: int | None
    point: dict[str, Any]
    value: float
    label: Any = None
    plausible: BestObserved | None = None

    @property
    def shown(self) -> BestObserved:
        """The measurement to show as the best so far: the plausible one, if they differ."""
        return self.plausible or self

    @property
    def remark(self) -> str:
        """Text about the value that is not shown; empty if it is shown."""
        if self.plausible is None:
            return ""
        return (
            f"; measurement {self.id} has {self.value:.6g}, far beyond all others: check it, or "
            "measure there again"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a dictionary of JSON values."""
        data = {**asdict(self), "label": label_to_json(self.label)}
        if self.plausible is None:
            del data["plausible"]
        else:
            data["plausible"] = self.plausible.to_dict()
        return data


@dataclass(frozen=True)
class Result(MapProperties):
    """The knowledge of a study at one moment. Arrays and masks have one entry per point of the domain.

    `classify`, `probability`, `expected_f1` and `expected_regret` are statements given the model,
    with their probabilities; `potential`, `above` and `below` are the paper's sets, which follow
    from `lower` and `upper`.

    Attributes:
        domain: The domain.
        goal: The goal.
        potential: Undecided points, the paper's M: not yet classified, or possibly the optimum.
        above: Points classified as above the threshold, the paper's H.
        below: Points classified as below the threshold, the paper's L; for an optimum those ruled
            out.
        mean: Posterior mean.
        sd: Posterior standard deviation.
        lower: Lower confidence bounds.
        upper: Upper confidence bounds.
        best: The point to report.
        best_observed: The best measurement, outliers and those at excluded places left out; None
            without one.
        epsilon: Largest error of the answer, if the bounds hold.
        bounds_certificate: What follows from the confidence bounds; `certificate` has it after the
            joint statements.
        model_check: Whether every measurement agrees with what the others predict; a failed check
            is repeated by the certificate.
        spent: Total cost of the measurements, those that failed included.
        steps: Number of measurements, those that failed not included.
        reason: Why the study stopped or is finished, such as "step limit (60) reached"; None if it
            did not.
        measured: Rows of the points where the target was measured, in order.
        outliers: Ids of the measurements that the model leaves out as outliers.
        excluded: Points that are not measured: excluded by the user, or where a measurement failed.
            A level set states their class like that of any other point; an optimum is sought
            among the others.
        feasibility: Probability that a measurement succeeds, 0 where it is excluded.
        n_failed: Number of measurements that failed.
        quantities: What is known of each quantity by its name, where there are several; `mean`,
            `sd`, `lower` and `upper` are those of the first.
        source: The joint statements, or the inputs to compute them from when they are first asked
            for.
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
    epsilon: float
    bounds_certificate: Certificate
    model_check: ModelCheck
    spent: float
    steps: int
    reason: str | None
    measured: tuple[int, ...]
    source: StatementSource | JointStatements = field(repr=False)
    outliers: tuple[int, ...] = ()
    excluded: Mask | None = None
    feasibility: Array | None = None
    n_failed: int = 0
    quantities: Mapping[str, QuantityEstimate] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        n = len(self.mean)
        if self.excluded is None:
            object.__setattr__(self, "excluded", np.zeros(n, bool))
        if self.feasibility is None:
            object.__setattr__(self, "feasibility", np.ones(n))

    def __repr__(self) -> str:
        rows = [("answer", text) for text in self.certificate.statement.splitlines()]
        return text_card("Result", self._subtitle, [*rows, *_not_counted(self)])

    def _repr_html_(self) -> str:
        rows = [("answer", self.certificate.statement)]
        if self.best_observed is not None and self.goal.seeks_optimum:
            best = self.best_observed.shown
            point = with_label(self.domain, best.point, format_coordinates(best.point))
            rows.append(("best so far", f"{best.value:.6g} at {point}{self.best_observed.remark}"))
        if not self.model_check.ok:
            rows.append(("model check", f"failed: {self.model_check.message}"))
        rows += _not_counted(self)
        if self.reason is not None:
            rows.append(("stopped", self.reason))
        return html_card("Result", self._subtitle, rows)

    @property
    def _subtitle(self) -> str:
        count = _count(self.steps, "measurement")
        return f"{count}, cost {self.spent:.6g}, {_count(len(self.mean), 'point')}"

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields for `pickle` and `copy`, with the joint statements in place of the model they come from."""
        computed = {
            "statements": self.statements,
            "probability": self.probability,
            "certificate": self.certificate,
        }
        return {**self.__dict__, **computed, "source": self.statements}

    @property
    def n_excluded(self) -> int:
        """Number of points that are excluded."""
        return 0 if self.excluded is None else int(self.excluded.sum())

    @property
    def infeasible_share(self) -> float:
        """Expected share of the domain that cannot be measured: excluded, or likely to fail."""
        return 0.0 if self.feasibility is None else float(1.0 - self.feasibility.mean())

    @property
    def n_likely_to_fail(self) -> int:
        """Number of points, excluded ones left out, where a failure is likelier than a success."""
        if self.feasibility is None or self.excluded is None:
            return 0
        return int((~self.excluded & (self.feasibility < _EVEN_ODDS)).sum())

    @cached_property
    def statements(self) -> JointStatements:
        """Everything that is stated about all points jointly; computed when it is first asked for.

        The interval of every point contains its mean, which a skewed distribution alone does not
        ensure.
        """
        joint = self.source if isinstance(self.source, JointStatements) else self.source.joint
        lower = np.minimum(joint.lower, self.mean)
        upper = np.maximum(joint.upper, self.mean)
        if (lower == joint.lower).all() and (upper == joint.upper).all():
            return joint
        return replace(joint, lower=lower, upper=upper)

    @cached_property
    def certificate(self) -> Certificate:
        """The statements with their probability and assumptions; its `str` is a sentence."""
        cause = None
        if isinstance(self.source, StatementSource):
            cause = main_cause(self.source, self.domain)
        return with_joint_statements(
            self.bounds_certificate, self.statements, self.domain, self.best.point, cause
        )

    @cached_property
    def probability(self) -> Array:
        """Level set: probability that f lies above the threshold. Optimum: probability of being the optimum."""
        if isinstance(self.source, StatementSource):
            marginal = self.source.marginal_probability()
            if marginal is not None:  # without joint draws
                return marginal
        return self.statements.probability

    @property
    def classes(self) -> Classification:
        """The classes that maps, reports, tables and the page show.

        Level set: every point whose own class has a probability of at least 95 %, as
        `classify(pointwise=0.95)` returns it. Optimum: as `classify()` returns it.
        """
        return self.statements.classes

    def classify(
        self,
        confidence: float = CONFIDENCE,
        *,
        pointwise: float | None = None,
        tolerance: float = 0.0,
        margin: float = 0.0,
    ) -> Classification:
        """Return the points that are decided, with a given probability.

        Without a further argument the statement is the strictest one: *everything* decided is
        right, jointly. One of the others can be given to show more points.

        Args:
            confidence: Probability, given the model, of the statement; with `pointwise`, that of
                each of the bounds of `Classification.wrong`.
            pointwise: Level set: show every point whose own class has at least this probability.
                `Classification.wrong` says how many of them are wrong, jointly.
            tolerance: Level set: share of the points shown that may be wrong.
            margin: Level set: distance from the threshold, in the units of the values, up to which
                a point may be on the other side.

        Returns:
            Level set: with that probability *all* points of `above` lie above the threshold and
            *all* points of `below` do not; all but a share `tolerance` of them; or all of them up
            to `margin`. Optimum: with that probability it is one of the points of `undecided`.

        Raises:
            InvalidArgumentError: If a number is out of range, or several of `pointwise`,
                `tolerance` and `margin` are given; or if the model that a margin needs was not kept
                with the result.
            UnsupportedGoalError: If one of these is given and the goal is an optimum.

        Example:
            >>> study.result().classify(0.9)
            Classification(64 above, 2281 below, 155 undecided, confidence=0.9)
            >>> study.result().classify(pointwise=0.95).max_wrong
            9
        """
        check_classify(self.goal, confidence, pointwise, tolerance, margin)
        if margin > 0:
            if isinstance(self.source, JointStatements):
                raise InvalidArgumentError(
                    f"margin={margin:g} needs the model, which a result that was pickled or comes "
                    "from a server is without; ask a study in memory: "
                    "study.result().classify(margin=...), on a server study.copy().result()"
                )
            return classify_with_margin(self.source, self.statements, confidence, margin)
        return self.statements.classify(confidence, pointwise=pointwise, tolerance=tolerance)

    @property
    def share_above(self) -> Estimate:
        """The share of the points of the domain above the threshold: mean and 95 % interval, given the model.

        With several thresholds it is the share of the points that `probability` is about: those
        above the lowest one, or those between the two.

        Raises:
            UnsupportedGoalError: If the goal is an optimum.
        """
        if self.statements.share_above is None:
            raise _other_goal("share_above needs a level set", self.goal, "expected_{}")
        return self.statements.share_above

    @property
    def expected_f1(self) -> Estimate:
        """The F1 score of `classification`, which is unknown: its mean and its 95 % interval, given the model.

        Raises:
            UnsupportedGoalError: If the goal is an optimum.
        """
        if self.statements.expected_f1 is None:
            raise _other_goal("F1 needs a level set", self.goal, "expected_{}")
        return self.statements.expected_f1

    @property
    def expected_misclassified(self) -> float:
        """Expected number of points that `classification` has on the wrong side.

        Raises:
            UnsupportedGoalError: If the goal is an optimum.
        """
        if self.statements.expected_misclassified is None:
            raise _other_goal("points are classified for a level set", self.goal, "expected_{}")
        return self.statements.expected_misclassified

    @property
    def expected_regret(self) -> Estimate:
        """The distance of the value at `best` from the optimum: mean and 95 % interval, given the model.

        Raises:
            UnsupportedGoalError: If the goal is a level set.
        """
        if self.statements.expected_regret is None:
            raise _other_goal("regret needs an optimum", self.goal, "expected_{}")
        return self.statements.expected_regret

    @property
    def threshold(self) -> float | None:
        """The threshold h of a level set; an implicit one follows from the best posterior mean.

        None for an optimum, and for several thresholds, which `thresholds` has.
        """
        if not isinstance(self.goal, LevelSet):
            return None
        return self.goal.thresholds(self.mean, self.mean)[0]

    @property
    def thresholds(self) -> tuple[float, ...]:
        """The thresholds of a level set, one or several; empty for an optimum."""
        if isinstance(self.goal, Bands):
            return self.goal.thresholds
        return () if self.threshold is None else (self.threshold,)

    @property
    def bands(self) -> Index | None:
        """The band to report at every point, from 0 for the lowest; None without several thresholds.

        A point is reported above a threshold if it lies above it with probability >= 1/2.
        """
        return None if self.statements.bands is None else self.statements.bands.reported

    @property
    def classification(self) -> Mask | None:
        """The points to report as the level set, if every point must be on one side; None for an optimum.

        These are the points that lie above the threshold, or below it if that is asked for, with
        probability >= 1/2. With a known model they are those whose posterior mean does, as the
        paper reports them.
        """
        return (
            self.source.reported
            if isinstance(self.source, JointStatements)
            else self.source.reported()
        )

    def f1(self, truth: ArrayLike) -> float:
        """Return the F1 score of the classification; with several thresholds the mean over them.

        Args:
            truth: True values on the domain, by quantity where there are several.

        Raises:
            UnsupportedGoalError: If the goal is an optimum.
            InvalidArgumentError: If there is not one finite value per point.
        """
        if isinstance(self.goal, AllOf) and self.classification is not None:
            return region_f1(self.goal, self.classification, truth)
        if isinstance(self.goal, Bands) and self.bands is not None:
            return true_f1(self.goal, self.bands, check_truth(truth, len(self.mean)))
        if not isinstance(self.goal, LevelSet) or self.classification is None:
            raise _other_goal("F1 needs a level set", self.goal, "{}(truth)")
        values = check_truth(truth, len(self.mean))
        true = self.goal.asked(self.goal.exceeds(values, self.goal.thresholds(values, values)[0]))
        n_hits = int((true & self.classification).sum())
        n_both = int(self.classification.sum()) + int(true.sum())
        return 1.0 if n_both == 0 else 2 * n_hits / n_both

    def score(self, truth: ArrayLike) -> float:
        """Return the score that answers to the goal are judged by: F1 of a level set, regret of an optimum.

        Args:
            truth: True values on the domain.

        Raises:
            InvalidArgumentError: If there is not one finite value per point.
        """
        computed: float = getattr(self, self.goal.score.key)(truth)
        return computed

    def regret(
        self,
        truth: ArrayLike | Callable[[Mapping[str, float]], float],
        optimum: float | None = None,
    ) -> float:
        """Return the distance of the best point's true value from the true optimum.

        Args:
            truth: True values on the domain, by quantity where there are several; or a function of
                a point, as a box needs it.
            optimum: The true optimum of a function.

        Raises:
            UnsupportedGoalError: If the goal is a level set.
            InvalidArgumentError: If there is not one finite value per point, or the optimum of a
                function is missing.
        """
        if not self.goal.seeks_optimum:
            raise _other_goal("regret needs an optimum", self.goal, "{}(truth)")
        if isinstance(self.goal, ConstrainedOptimum):
            return constrained_regret(self.goal, self.best.index, truth, len(self.mean))
        sign = self.goal.sign
        if callable(truth):
            if optimum is None:
                raise InvalidArgumentError(
                    "regret of a function needs its true optimum, got none; give optimum=..."
                )
            return sign * (optimum - float(truth(self.best.point)))
        if self.best.index is None:
            raise InvalidArgumentError(
                "regret in a box needs a function, got values on the domain; give the function and "
                "optimum=..."
            )
        values = check_truth(truth, len(self.mean))
        return float((sign * values).max() - sign * values[self.best.index])

    def simple_regret(self, truth: ArrayLike) -> float:
        """Return the distance of the best true value among the measured points from the true optimum.

        Args:
            truth: True values on the domain.

        Raises:
            InvalidArgumentError: If there is not one finite value per point, or no point of the
                domain was measured.
        """
        if not self.measured:
            raise InvalidArgumentError(
                "simple regret needs a measurement at a point of the domain, got none; run first"
            )
        values = self.goal.sign * check_truth(truth, len(self.mean))
        return float(values.max() - values[list(self.measured)].max())

    def best_for(self, context: Mapping[str, Any]) -> Best:
        """Return the point of best posterior mean in a given context, excluded ones left out if others remain.

        Args:
            context: Value of every context column of the domain; the nearest one of the domain
                counts.

        Raises:
            InvalidArgumentError: If the domain has no context, or other columns; or if it is a box,
                where `Study.best_for` answers.
        """
        rows = rows_in_context(self.domain, context)
        if rows is None:
            raise AssertionError("a context without columns is refused above")
        if self.domain.continuous:
            raise InvalidArgumentError(
                f"the points of a result have other contexts in a box, got {dict(context)}; ask "
                "the study: "
                "study.best_for(context)"
            )
        if self.excluded is not None and not self.excluded[rows].all():
            rows = rows[~self.excluded[rows]]
        index = int(rows[np.argmax(self.goal.sign * self.mean[rows])])
        mean = float(self.mean[index])
        return Best(
            index, self.domain.point(index), mean, float(self.sd[index]), self.domain.label(index)
        )

    def to_frame(self) -> pd.DataFrame:
        """Return one row per point: coordinates, mean, sd, lower, upper, probability, and class.

        All of it is given the model. f lies above `lower` with probability 95 %, and with the same
        probability below `upper`, at each point marginally. If a place was excluded or a measurement
        failed, `excluded` and `feasibility` are further columns. `class` is that of `classes`: above
        or below where that has a probability of at least 95 %, otherwise undecided; for an optimum,
        points that are ruled out are below (a maximum) or above (a minimum). With several
        quantities each has columns such as `mean_yield`, and points are inside or outside. If a
        coordinate has one of these names, the latter gets an underscore: `mean_`. The index is that
        of the user's own table, if there is one, and the other columns of that table come last,
        with an underscore where they have one of these names.
        """
        frame = self.domain.to_frame()
        statements = self.statements
        columns: dict[str, Any] = {
            "mean": self.mean,
            "sd": self.sd,
            "lower": statements.lower,
            "upper": statements.upper,
        }
        if self.quantities:
            columns = {
                f"{part}_{name}": getattr(estimate, part)
                for name, estimate in self.quantities.items()
                for part in ("mean", "sd", "lower", "upper")
            }
        columns["probability"] = statements.probability
        columns["class"] = statements.classes.labels
        if self.infeasible_share > 0:
            columns |= {"excluded": self.excluded, "feasibility": self.feasibility}
        for name, values in columns.items():
            frame[f"{name}_" if name in self.domain.columns else name] = values
        return with_other_columns(frame, self.domain)

    def to_geopandas(self) -> Any:
        """Return `to_frame` as a GeoDataFrame, with the points and the coordinate system of the user's own.

        Raises:
            InvalidDomainError: If the domain was not made from a GeoDataFrame.
            MissingDependencyError: If GeoPandas is not installed.
        """
        return to_geopandas(self.to_frame(), self.domain.frame)

    def to_xarray(self) -> Any:
        """Return `to_frame` as an xarray Dataset: over the axes of a grid, otherwise over the dimension "point".

        A domain made with `Domain.from_xarray` has its coordinates and attributes again.

        `class` is -1, 0 or 1 for below, undecided and above, with flags by the CF conventions.

        Raises:
            MissingDependencyError: If xarray is not installed.
        """
        frame = self.to_frame()
        if self.domain.frame is not None:
            frame.attrs = dict(self.domain.frame.attrs)
        name = "class_" if "class" in self.domain.columns else "class"
        classes = self.classes
        frame[name] = classes.above.astype("int8") - classes.below.astype("int8")
        attrs = {
            "spent": self.spent,
            "steps": self.steps,
            "certificate": str(self.certificate),
        }
        dataset = to_xarray(frame, self.domain.columns, self.domain.axis_values, attrs)
        flags = {
            "flag_values": np.array([-1, 0, 1], dtype="int8"),
            "flag_meanings": " ".join(CLASSES),
        }
        dataset[name].attrs.update(flags)
        # By the CF conventions the flags have the type of the variable, also where points are missing.
        dataset[name].encoding.update({"dtype": "int8", "_FillValue": _MISSING_CLASS})
        return dataset

    def to_dict(self) -> dict[str, Any]:
        """Return a summary of JSON values, without the arrays; an infinite epsilon is None.

        `classified` counts the points of `classes`, with the number of them that are wrong;
        `strict` and `tolerated` count those of the joint statements `classify()` and
        `classify(tolerance=0.01)`. `potential`, `above` and `below` count those of the paper's M, H
        and L.
        """
        best_observed = None if self.best_observed is None else self.best_observed.to_dict()
        tolerance = 0.0 if self.goal.seeks_optimum else TOLERANCE
        return {
            "steps": self.steps,
            "spent": self.spent,
            "classified": _counts(self.classes),
            "strict": _counts(self.classify()),
            "tolerated": _counts(self.classify(tolerance=tolerance)),
            **self.statements.to_dict(),
            "potential": int(self.potential.sum()),
            "above": int(self.above.sum()),
            "below": int(self.below.sum()),
            "threshold": self.threshold,
            "thresholds": list(self.thresholds),
            "best": self.best.to_dict(),
            "best_observed": best_observed,
            "outliers": list(self.outliers),
            "failed": self.n_failed,
            "excluded": self.n_excluded,
            "infeasible_share": self.infeasible_share,
            "likely_to_fail": self.n_likely_to_fail,
            "epsilon": None if self.epsilon == inf else self.epsilon,
            "certificate": self.certificate.to_dict(),
            "model_check": self.model_check.to_dict(),
            "reason": self.reason,
        }


def _counts(classes: Classification) -> dict[str, Any]:
    """Return a classification for JSON: its probabilities, and the number of points by class and band."""
    counts: dict[str, Any] = {
        "confidence": classes.confidence,
        "pointwise": classes.pointwise,
        "tolerance": classes.tolerance,
        "above": int(classes.above.sum()),
        "below": int(classes.below.sum()),
        "undecided": int(classes.undecided.sum()),
        "wrong": None if classes.wrong is None else classes.wrong.to_dict(),
        "max_wrong": classes.max_wrong,
    }
    if classes.band is not None:
        names = enumerate(classes.band_names)
        counts["bands"] = {name: int((classes.band == k).sum()) for k, name in names}
    return counts


def _count(number: int, noun: str) -> str:
    """Return a number of things, such as "1 point" or "3 points"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _not_counted(result: Result) -> list[tuple[str, str]]:
    """Return measurements and points that the answer is without, as rows of a card."""
    rows = []
    if result.n_failed:
        rows.append(("failed", _count(result.n_failed, "measurement")))
    if result.outliers:
        ids = ", ".join(map(str, result.outliers))
        rows.append(("left out", f"{_count(len(result.outliers), 'outlier')}: measurement {ids}"))
    if result.n_excluded:
        rows.append(("excluded", f"{result.n_excluded} of {_count(len(result.mean), 'point')}"))
    return rows


def _other_goal(needed: str, goal: Goal, form: str) -> UnsupportedGoalError:
    """Return the error of a score that belongs to other goals, with the one of this goal."""
    own = form.format(goal.score.key)
    return UnsupportedGoalError(f"{needed}, got the goal {goal}; for {goal.one} use {own}")
