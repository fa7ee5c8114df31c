"""Weights with which the variance of each point counts, for a goal that no point is ruled out of."""

from __future__ import annotations

import numpy as np

from truvar._typing import Array
from truvar.acquisition.base import PolicyContext
from truvar.acquisition.confidence import MIN_VARIANCE_SHARE
from truvar.acquisition.truncation import weighted_reduction
from truvar.domain.candidates import Candidates
from truvar.domain.goals import Map


def _map_weights(context: PolicyContext) -> Array:
    """Return how much each point of a map matters, 1 on average. (n,)."""
    goal = context.goal
    if not isinstance(goal, Map):
        raise AssertionError("a map has weights")
    return context.cached("weights of a map", lambda: goal.weights_on(context.domain))


def map_reduction(context: PolicyContext, candidates: Candidates) -> Array:
    """Return eq. (3) with eta = 0 and M = D: the weighted variance that candidates remove. (c, K)."""
    variance = context.posterior.pending_variance[: len(context.domain)]
    weights = _map_weights(context)
    is_counted = (weights > 0) & (variance > MIN_VARIANCE_SHARE * context.posterior.scale**2)
    rows = np.flatnonzero(is_counted)
    return weighted_reduction(context.engine, rows, weights[rows], candidates, context.only_best)


def map_ambiguity(context: PolicyContext, mean: Array, sd: Array) -> Array:
    """Return the weighted variance of each point, so that every weight of the sum is its own. (n,)."""
    return _map_weights(context) * context.posterior.pending_variance[: len(sd)]
