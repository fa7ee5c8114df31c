"""One-step lookahead: the expected effect of a measurement before it is made.

The value is unknown, but the variance that remains afterwards is not, as it does not depend on
values, and the model says how likely each value is. The expected number of points that the
measurement decides follows by the goal's own classification.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from truvar._deprecation import deprecated_attribute
from truvar.acquisition.confidence import bounds, intersection
from truvar.algorithm.learner import ActiveLearner
from truvar.domain.action import Action
from truvar.models.posterior import EXACT_VARIANCE_SHARE

# Quantiles of the standard normal distribution at 0.5/16, 1.5/16, ..., 15.5/16: equally likely
# values of the measurement, over which the outcome is averaged. They are literals because importing
# scipy.special takes longer than choosing a suggestion.
_UPPER_QUANTILES = (
    0.0784124127331122, 0.23720210932878769, 0.40225006532172536, 0.579132162255556,
    0.7764217611479277, 1.009990169249582, 1.318010897303537, 1.8627318674216515,
)  # fmt: skip
QUANTILES = (*(-z for z in reversed(_UPPER_QUANTILES)), *_UPPER_QUANTILES)


@dataclass(frozen=True)
class Lookahead:
    """The expected effect of one measurement, given the observations so far alone.

    Attributes:
        undecided: Number of undecided points now (M).
        expected_decided: Expected number of them that the measurement decides, with the present
            beta.
        variance_reduction: Share of their total variance that it removes, whatever its value.
    """

    undecided: int
    expected_decided: float
    variance_reduction: float

    open = deprecated_attribute("undecided", removed_in="0.4.0")
    settled = deprecated_attribute("expected_decided", removed_in="0.4.0")
    removed = deprecated_attribute("variance_reduction", removed_in="0.4.0")


def lookahead(learner: ActiveLearner, action: Action) -> Lookahead | None:
    """Return the expected effect of a measurement; None as long as there is no fitted model."""
    if not learner.surrogate.fitted:
        return None
    posterior = learner.posterior
    state = learner.state
    n = len(learner.domain)
    undecided = state.regions.potential
    n_undecided = int(undecided.sum())
    covariance, variance_there = posterior.observed_covariance(action.point)
    predictive_variance = variance_there + learner.surrogate.modelled_noise(action)
    if predictive_variance <= EXACT_VARIANCE_SHARE * posterior.scale**2 or n_undecided == 0:
        return Lookahead(n_undecided, 0.0, 0.0)
    mean, before = learner.surrogate.moments
    shift = covariance[:n] / np.sqrt(
        predictive_variance
    )  # of the mean, if the value is one standard deviation high
    after = np.maximum(before - shift**2, 0.0)
    left = 0
    for z in QUANTILES:
        lower, upper = bounds(mean + z * shift, after, state.epoch.beta)
        if learner.nested:
            lower, upper = intersection((state.lower, state.upper), (lower, upper))
        regions = learner.model_goal.update(state.regions, lower, upper)
        left += int((regions.potential & undecided).sum())
    total = float(before[undecided].sum())
    reduction = 0.0
    if total > 0:
        reduction = float((before - after)[undecided].sum()) / total
    return Lookahead(n_undecided, n_undecided - left / len(QUANTILES), reduction)
