"""What a measurement would settle, before it is made.

Its value is unknown, but how much it narrows every other point is not (the variance does not depend on values), and the
model says how likely each value is. So the expected number of points that it decides follows, by the goal's own rule.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import norm

from truvar.acquisition.confidence import bounds, intersection
from truvar.algorithm.learner import ActiveLearner
from truvar.domain.action import Action
from truvar.models.posterior import EXACT

VALUES = 16  # equally likely values of the measurement over which the outcome is averaged


@dataclass(frozen=True)
class Lookahead:
    """What one measurement would do by itself, from what was told so far (other pending ones left aside)."""

    open: int  # points of M now
    settled: float  # how many of them it is expected to decide, with the present beta
    removed: float  # the share of the open points' variance that it takes away, whatever its value


def lookahead(learner: ActiveLearner, action: Action) -> Lookahead | None:
    """What the measurement would do; None as long as there is no model to judge by."""
    if not learner.surrogate.fitted:
        return None
    posterior, state = learner.posterior, learner.state
    n, potential = len(learner.domain), learner.state.regions.potential
    nothing = Lookahead(int(potential.sum()), 0.0, 0.0)
    across, own = posterior.observed_covariance(action.point)
    d = own + max(action.noise, learner.surrogate.minimum_noise)
    before = posterior.variance[:n]
    if d <= EXACT * posterior.scale**2 or not potential.any():
        return nothing
    pull = across[:n] / np.sqrt(d)  # by how much the mean moves when the value is one standard deviation high
    after = np.maximum(before - pull**2, 0.0)
    left = 0
    for surprise in norm.ppf((np.arange(VALUES) + 0.5) / VALUES):
        lower, upper = bounds(posterior.mean[:n] + surprise * pull, after, state.epoch.beta)
        if learner.nested:
            lower, upper = intersection((state.lower, state.upper), (lower, upper))
        left += int((learner.goal.update(state.regions, lower, upper).potential & potential).sum())
    total = float(before[potential].sum())
    removed = float((before - after)[potential].sum()) / total if total > 0 else 0.0
    return Lookahead(nothing.open, nothing.open - left / VALUES, removed)
