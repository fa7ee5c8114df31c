"""Joint statements about a map: how far the posterior mean is from f, at nearly all points and at all.

| symbol | here | shape |
|---|---|---|
| m(x), the map | `StatementInputs.reported_mean` | (n,) |
| w(x), how much x matters; they add up to 1 | `weights` | (n,) |
| p(x) = P(abs(f(x) - m(x)) <= accuracy) | `JointStatements.probability` | (n,) |
| e_s(x) = abs(f_s(x) - m(x)) in draw s | `errors` | (r, S) |
| q_s, the error that a share `SHARE` of w does not exceed in draw s | `quantiles` | (S,) |

With probability `CONFIDENCE` the map is within the `CONFIDENCE` quantile of q_s at a share `SHARE`
of the points, and within that of max e_s at all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil, inf, nan
from typing import Any

import numpy as np

from truvar._typing import Array
from truvar.algorithm.learner import ActiveLearner
from truvar.domain.domain import Domain
from truvar.domain.goals import Goal, Map
from truvar.inference._goals import GIVEN, MIN_PROBABILITY, SCREENING_MARGIN, GoalInference
from truvar.inference._level_set import decided_confidence, rows_to_draw
from truvar.inference._mixtures import probability_above
from truvar.inference._optimum import N_DRAWS
from truvar.inference.errors import ClassErrors
from truvar.inference.inputs import CertificateInputs, StatementInputs, member_moments
from truvar.inference.statements import (
    CONFIDENCE,
    UNKNOWN_REGRET,
    Classification,
    Estimate,
    JointStatements,
)
from truvar.models.transforms import OutputTransform

SHARE = 0.99  # of the points at which the map has the accuracy that is stated
_MAX_MEAN_OUTSIDE = 0.075  # expected share outside the accuracy, beyond which it is not reached


@dataclass(frozen=True, eq=False)
class MapStatements(JointStatements):
    """Everything that is stated about a map, given the model.

    Attributes:
        expected_rmse: Root of the mean squared distance of the map from f.
        accuracy: Distance that it exceeds at 1 % of the points at most, with probability 95 %.
        accuracy_everywhere: Distance that it exceeds nowhere, with that probability.
        share_within: Share of the points, at least, at which it is within the accuracy that is
            asked for, with that probability.
        everywhere_probability: Probability that it is within that accuracy at every point that
            matters.
    """

    expected_rmse: Estimate = UNKNOWN_REGRET
    accuracy: float = inf
    accuracy_everywhere: float = inf
    share_within: float = 0.0
    everywhere_probability: float = 0.0

    def classify(
        self,
        confidence: float = CONFIDENCE,
        *,
        pointwise: float | None = None,
        tolerance: float = 0.0,
    ) -> Classification:
        """Return the points at which the map is within the accuracy that is asked for."""
        shown = super().classify(confidence, pointwise=pointwise, tolerance=tolerance)
        nowhere = np.zeros_like(shown.undecided)
        return replace(
            shown,
            above=nowhere,
            below=nowhere,
            band=np.where(shown.undecided, -1, 0),
            band_names=(f"within ±{_map_goal(self.goal).accuracy:g}",),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the estimates for JSON, without the arrays."""
        own = {
            "expected_rmse": self.expected_rmse.to_dict(),
            "accuracy": _finite(self.accuracy),
            "accuracy_everywhere": _finite(self.accuracy_everywhere),
            "share_within": self.share_within,
            "everywhere_probability": self.everywhere_probability,
        }
        return {**super().to_dict(), **own}


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def _map_goal(goal: Goal) -> Map:
    if not isinstance(goal, Map):
        raise AssertionError("statements about a map are for the goal Map")
    return goal


def _own(statements: JointStatements) -> MapStatements:
    if not isinstance(statements, MapStatements):
        raise AssertionError("a map has its own statements")
    return statements


def probability_within(
    centre: Array,
    distance: float,
    transform: OutputTransform,
    means: Array,
    variances: Array,
    weights: Array,
) -> Array:
    """Return the probability that f is within a distance of a value, at each of q points: (q,).

    Args:
        centre: The values, in the user's units. (q,)
        distance: The distance, in the user's units.
        transform: From the user's values to those of the model.
        means: Means by member, in the units of the model. (members, q)
        variances: Variances by member. (members, q)
        weights: Weights of the members.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        low = transform.forward(centre - distance)
        high = transform.forward(centre + distance)
    low = np.where(np.isnan(low), -np.inf, low)  # a logarithm has no value below 0
    above_low = probability_above(means, variances, low, weights)
    above_high = probability_above(means, variances, high, weights)
    return np.clip(above_low - above_high, 0.0, 1.0)


def _certainty(inputs: StatementInputs, distance: float) -> Array:
    """Return the probability that the map is within a distance of f at each point, (n,)."""
    return probability_within(
        inputs.reported_mean,
        distance,
        inputs.transform,
        inputs.means,
        inputs.variances,
        inputs.posterior.shares,
    )


def map_statements(inputs: StatementInputs) -> MapStatements:
    """Return what can be stated about a map."""
    goal = _map_goal(inputs.goal)
    certainty = _certainty(inputs, goal.accuracy)
    infinite = np.full(inputs.n, np.inf)
    unknown = MapStatements(
        goal=goal,
        probability=certainty,
        decided_confidence=np.zeros(inputs.n),
        reported=None,
        lower=-infinite,
        upper=infinite,
        expected_f1=None,
        expected_regret=None,
        optimal_probability=None,
        expected_misclassified=None,
        n_drawn=0,
        n_relevant=inputs.n,
    )
    if not inputs.fitted:
        return unknown
    everything = np.arange(inputs.n)
    rows = rows_to_draw(everything, inputs.seed)
    draws = inputs.transform.inverse(
        inputs.posterior.draw(inputs.sites[rows], N_DRAWS, inputs.seed)
    )
    errors = np.abs(draws - inputs.reported_mean[rows, None])
    matters = inputs.weights[rows] > 0
    weights = inputs.weights[rows][matters]
    weights = weights / weights.sum()
    counted = errors[matters]
    within = weights @ (counted <= goal.accuracy)
    wrong = errors > goal.accuracy
    largest = counted.max(axis=0)
    n_exceeded = int((largest > goal.accuracy).sum())
    lower, upper = inputs.interval()
    return replace(
        unknown,
        decided_confidence=decided_confidence(certainty, 1 - certainty, everything, rows, wrong),
        lower=lower,
        upper=upper,
        n_drawn=len(rows),
        errors=ClassErrors.of(certainty, 1 - certainty, everything, rows, wrong),
        expected_rmse=Estimate.of(np.sqrt(weights @ counted**2)),
        accuracy=_bound(_quantiles(counted, weights)),
        accuracy_everywhere=_bound(largest),
        share_within=float(np.quantile(within, 1 - CONFIDENCE, method="lower")),
        # One more draw that exceeds it, as draws cannot show certainty.
        everywhere_probability=1.0 - (n_exceeded + 1) / (len(largest) + 1),
    )


def _quantiles(errors: Array, weights: Array) -> Array:
    """Return the error that a share `SHARE` of the weight does not exceed in every draw, (S,).

    Args:
        errors: Errors by draw. (r, S)
        weights: Weights of the points, which add up to 1. (r,)
    """
    if (weights == weights[0]).all():
        k = ceil(SHARE * len(errors) - 1e-9) - 1
        return np.asarray(np.partition(errors, k, axis=0)[k])
    order = np.argsort(errors, axis=0)
    enough = np.cumsum(weights[order], axis=0) >= SHARE - 1e-9
    return np.asarray(
        np.take_along_axis(errors, order, axis=0)[enough.argmax(axis=0), range(errors.shape[1])]
    )


def _bound(draws: Array) -> float:
    return float(np.quantile(draws, CONFIDENCE, method="higher"))


def may_reach_accuracy(inputs: StatementInputs, goal: float) -> bool:
    """Return whether single points do not rule out that the map has an accuracy.

    Where it has, the expected share of the points outside is at most 1 %, and elsewhere at most 1:
    together 6 %, and a little more as draws decide.
    """
    outside = 1.0 - _certainty(inputs, goal)
    return float(inputs.weights @ outside / inputs.weights.sum()) <= _MAX_MEAN_OUTSIDE


def accuracy_reached(statements: JointStatements, goal: float) -> str | None:
    """Return that a map has an accuracy, if it has."""
    accuracy = _own(statements).accuracy
    if accuracy > goal:
        return None
    return (
        f"the map is within ±{accuracy:.3g} at {100 * SHARE:g} % of the points with "
        f"{100 * CONFIDENCE:g} % probability, which reached {goal:g}"
    )


class _MapInference(GoalInference):
    def statements(self, inputs: StatementInputs) -> JointStatements:
        return map_statements(inputs)

    def sentence(
        self, statements: JointStatements, domain: Domain, best: Mapping[str, float]
    ) -> str:
        """Return the share of the points within the accuracy, and the accuracies that hold."""
        own = _own(statements)
        points = "representer points" if domain.continuous else "points"
        asked = _map_goal(statements.goal).accuracy
        share = 100 * own.share_within
        at_least = "all" if share >= 100 else f"{_percent(share)} % of the"
        rmse = own.expected_rmse
        return (
            f"With {100 * CONFIDENCE:g} % probability, given the model, the map is within "
            f"±{asked:g} at {at_least} {points}, within ±{own.accuracy:.3g} at "
            f"{100 * SHARE:g} % of them and within ±{own.accuracy_everywhere:.3g} at all. "
            f"Expected RMSE {rmse.mean:.3g} ({rmse.low:.3g} to {rmse.high:.3g})."
        )

    def claim(self, inputs: CertificateInputs, accurate_to: float) -> str:
        return f"f is within {inputs.epsilon:.4g} of the middle of its bounds at every point."

    def certainty(
        self, inputs: StatementInputs, means: Array, variances: Array, weights: Array
    ) -> Array:
        """Return the probability that f is within the accuracy of the mean of these members."""
        centre = inputs.transform.inverse(weights @ means)
        distance = _map_goal(inputs.goal).accuracy
        return probability_within(centre, distance, inputs.transform, means, variances, weights)

    def is_clearly_open(self, learner: ActiveLearner) -> bool:
        """Return whether the map is not within the accuracy where f is known least."""
        goal = _map_goal(learner.goal)
        matters = goal.weights_on(learner.domain) > 0
        mean, sd = learner.moments
        row = int(np.argmax(np.where(matters, sd, -1.0)))
        means, variances = (moment[:, [row]] for moment in member_moments(learner.surrogate))
        equal = np.full(len(means), 1.0 / len(means))
        transform = learner.surrogate.transform
        found = probability_within(mean[[row]], goal.accuracy, transform, means, variances, equal)
        return float(found[0]) < MIN_PROBABILITY - SCREENING_MARGIN

    def may_be_decided(self, inputs: StatementInputs) -> bool:
        certainty = _certainty(inputs, _map_goal(inputs.goal).accuracy)
        return bool(certainty[inputs.weights > 0].min() >= MIN_PROBABILITY)

    def decided(self, statements: JointStatements) -> str | None:
        if _own(statements).everywhere_probability < MIN_PROBABILITY:
            return None
        accuracy = _map_goal(statements.goal).accuracy
        return f"the map is within ±{accuracy:g} at every point {GIVEN}"

    def decode(self, statements: JointStatements, form: Mapping[str, Any]) -> JointStatements:
        """Return the statements with those about the map."""
        rmse = {key: _decoded(value, nan) for key, value in form["expected_rmse"].items()}
        errors = statements.errors
        if errors is not None:
            errors = replace(errors, certainty=statements.probability)
        return MapStatements(
            **{**vars(statements), "errors": errors},
            expected_rmse=Estimate(**rmse),
            accuracy=_decoded(form["accuracy"], inf),
            accuracy_everywhere=_decoded(form["accuracy_everywhere"], inf),
            share_within=form["share_within"],
            everywhere_probability=form["everywhere_probability"],
        )


def _decoded(value: float | None, missing: float) -> float:
    return missing if value is None else value


def _percent(share: float) -> str:
    """Return a percentage with three digits, rounded down."""
    return f"{np.floor(10 * share) / 10:g}"


INFERENCE = _MapInference()
