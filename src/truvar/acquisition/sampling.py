"""Policies that choose by a random draw.

The options `level`, `per_cost` and `beta` are those of `BasePolicy`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from truvar._typing import Array, Index
from truvar.acquisition.base import BasePolicy, PolicyContext
from truvar.acquisition.confidence import Schedule
from truvar.domain.candidates import Candidates

__all__ = ["Random"]


@dataclass(frozen=True)
class Random(BasePolicy):
    """A point of the domain chosen uniformly at random; in a box, one of its representers.

    Attributes:
        level: See `BasePolicy`.
        per_cost: See `BasePolicy`.
        beta: See `BasePolicy`.
    """

    level: int | None = None
    per_cost: bool = False
    beta: Schedule | None = None

    def candidate_rows(self, context: PolicyContext, candidates: Candidates) -> Index | None:
        """Return all rows: a random score cannot be maximised between the points of a box."""
        return np.arange(len(candidates.points))

    def score(self, context: PolicyContext, candidates: Candidates) -> Array:
        """Return a uniform random number per point of the domain, and 0 elsewhere. Shape (c, K)."""
        uniform = context.cached("uniform scores", lambda: context.rng.random(len(context.domain)))
        if candidates.sites is None:
            scores = np.zeros(len(candidates.points))
        else:
            scores = uniform[candidates.sites % len(uniform)]
        return self.score_table(context, candidates, scores)
