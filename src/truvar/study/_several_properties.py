"""The parts of a result that are about several quantities: their estimates, and true scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from truvar._typing import Array
from truvar.algorithm._several import SeveralLearner
from truvar.domain.goals import AllOf, ConstrainedOptimum
from truvar.exceptions import InvalidArgumentError
from truvar.inference._several import SeveralSource
from truvar.inference.inputs import reports_average
from truvar.inference.joint import StatementSource
from truvar.validation import check_truth


@dataclass(frozen=True, eq=False)
class QuantityEstimate:
    """The model of one quantity at every point of the domain.

    Attributes:
        mean: Posterior mean. (n,)
        sd: Posterior standard deviation. (n,)
        lower: Value that it exceeds with probability 95 %, at each point marginally. (n,)
        upper: Value that it does not exceed with probability 95 %. (n,)
        probability: Probability that the requirement on it holds; None for the one to optimise.
            (n,)
    """

    mean: Array
    sd: Array
    lower: Array
    upper: Array
    probability: Array | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the arrays as lists; numbers that are not finite are None."""
        lists: dict[str, Any] = {}
        for name, values in vars(self).items():
            lists[name] = None
            if values is not None:
                lists[name] = [float(v) if np.isfinite(v) else None for v in values]
        return lists

    @staticmethod
    def from_dict(form: Mapping[str, Any]) -> QuantityEstimate:
        """Return the estimate from `to_dict`."""
        missing = {"lower": -np.inf, "upper": np.inf}
        arrays = {}
        for name, values in form.items():
            if values is not None:
                other = missing.get(name, np.nan)
                arrays[name] = np.array([other if v is None else v for v in values])
        return QuantityEstimate(**arrays)


def quantity_estimates(learner: Any, source: StatementSource) -> dict[str, QuantityEstimate]:
    """Return what is known of each quantity; nothing for a study of one without a name."""
    if not isinstance(learner, SeveralLearner) or not isinstance(source, SeveralSource):
        return {}
    estimates = {}
    for name, part in learner.parts.items():
        inputs = source.parts[name]
        is_averaged = reports_average(part.surrogate)
        mean, sd = inputs.user_moments() if is_averaged else part.moments
        lower, upper = inputs.interval()
        probability = None
        if inputs.goal.has_thresholds:
            probability = source.requirement_probability(name)
        estimates[name] = QuantityEstimate(
            mean, sd, np.minimum(lower, mean), np.maximum(upper, mean), probability
        )
    return estimates


def check_truths(goal: Any, truth: Any, n: int) -> dict[str, Array]:
    """Return true values of every quantity.

    Raises:
        InvalidArgumentError: If a quantity is missing, or has not one finite value per point.
    """
    names = list(goal.parts)
    is_table = isinstance(truth, Mapping) or hasattr(truth, "columns")
    if not is_table or any(name not in truth for name in names):
        raise InvalidArgumentError(
            f"the true values must be those of {', '.join(names)} by name, got {type(truth).__name__}"
            f"; give such as {{{names[0]!r}: [...]}}"
        )
    return {name: check_truth(truth[name], n) for name in names}


def region_f1(goal: AllOf, reported: Any, truth: Any) -> float:
    """Return the F1 score of the points reported as inside, given the true values by quantity."""
    true = goal.is_inside(check_truths(goal, truth, len(reported)))
    n_both = int(reported.sum()) + int(true.sum())
    return 1.0 if n_both == 0 else 2 * int((true & reported).sum()) / n_both


def constrained_regret(goal: ConstrainedOptimum, index: int | None, truth: Any, n: int) -> float:
    """Return how far the recommended point is from the best one that satisfies everything.

    Returns:
        The distance; infinite if the recommended point does not satisfy the requirements, 0 if none
        does.
    """
    values = check_truths(goal, truth, n)
    inside = goal.is_inside(values)
    if not inside.any():
        return 0.0
    if index is None:
        raise InvalidArgumentError("regret with constraints needs a finite domain, got a box")
    signed = goal.sign * values[goal.of]
    return float(signed[inside].max() - signed[index]) if inside[index] else float("inf")
