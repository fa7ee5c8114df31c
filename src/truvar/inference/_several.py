"""Inputs of statements about several quantities, whose models are independent.

| symbol | here | shape |
|---|---|---|
| p_q(x) = P(the requirement on q holds at x) | `SeveralSource.requirement_probability` | (n,) |
| p(x), the product of p_q(x) | `SeveralSource.together` | (n,) |
| whether all requirements hold at some rows in draw s | `SeveralSource.held` | (r, S) |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from truvar._typing import Array, Mask
from truvar.algorithm._several import SeveralLearner
from truvar.algorithm.learner import ActiveLearner
from truvar.domain.goals import Bands, LevelSet
from truvar.inference.inputs import StatementInputs, excluded_rows
from truvar.inference.joint import StatementSource

_STREAM = 100  # further seed of the draws of each quantity but the first


def statement_source(learner: ActiveLearner, best: Array) -> StatementSource:
    """Return what the joint statements of a learner depend on; `best` is the recommended point."""
    if isinstance(learner, SeveralLearner):
        return SeveralSource.of_parts(learner, best)
    return StatementSource.of(learner, best)


@dataclass(frozen=True, eq=False)
class SeveralSource(StatementSource):
    """Inputs of statements about several quantities; all else is that of the leading one.

    Attributes:
        parts: The inputs of each quantity.
    """

    parts: Mapping[str, StatementInputs] = field(default_factory=dict)

    @staticmethod
    def of_parts(learner: SeveralLearner, best: Array) -> SeveralSource:
        """Return the inputs of a learner's present state; `best` is the recommended point (d,)."""
        parts = {name: StatementInputs.of(part, best) for name, part in learner.parts.items()}
        lead = parts[learner.lead]
        own: dict[str, Any] = {
            each.name: getattr(lead, each.name) for each in fields(StatementInputs)
        }
        own |= {
            "goal": learner.goal,
            "seed": (learner.seed, len(learner.observations)),
            "fitted": all(part.fitted for part in parts.values()),
            "excluded": excluded_rows(learner),
            "parts": parts,
        }
        return SeveralSource(**own)

    def requirement_probability(self, name: str) -> Array:
        """Return the probability that the requirement on a quantity holds, (n,)."""
        part = self.parts[name]
        probability = part.marginal_probability()
        if probability is None:
            raise AssertionError("a requirement has given thresholds")
        held = probability if part.goal.sides[0] == "above" else 1.0 - probability
        return np.clip(held, 0.0, 1.0)

    @property
    def requirements(self) -> list[str]:
        """Quantities with a requirement, by their names."""
        return sorted(name for name, part in self.parts.items() if part.goal.has_thresholds)

    def together(self) -> Array:
        """Return the probability that all requirements hold, at each point: (n,)."""
        probability = np.ones(self.n)
        for name in self.requirements:
            probability = probability * self.requirement_probability(name)
        return probability

    def draw(self, name: str, points: Array, count: int) -> Array:
        """Return joint draws of one quantity, independent of those of the others: (q, S)."""
        names = sorted(self.parts)
        rank = names.index(name)
        posterior = self.parts[name].posterior
        if rank == 0:
            return posterior.draw(points, count, self.seed)
        draws = posterior.draw(points, count, (*self.seed, _STREAM + rank))
        # Members of a mixture are drawn in blocks, which would go with those of the others, and
        # each has a whole number of draws.
        n_draws = int(np.sum(self.parts[names[0]].posterior.draw_counts(count)))
        rng = np.random.default_rng((*self.seed, _STREAM + rank, 1))
        n_own = draws.shape[1]
        order = rng.permutation(n_own)
        if n_own < n_draws:
            order = np.append(order, rng.integers(0, n_own, n_draws - n_own))
        return np.asarray(draws[:, order[:n_draws]])

    def held(self, points: Array, count: int) -> Mask:
        """Return whether all requirements hold at points, by draw: (q, S)."""
        held: Any = True
        for name in self.requirements:
            part = self.parts[name]
            draws = self.draw(name, points, count)
            if isinstance(part.goal, Bands):
                low, high = part.thresholds
                held &= (draws >= low) & (draws < high)
            elif isinstance(part.goal, LevelSet):
                held &= part.goal.asked(draws >= float(part.threshold or 0.0))
        return np.asarray(held)

    def marginal_probability(self) -> Array | None:
        """Return the probability of lying inside, for a region; None for an optimum."""
        return None if self.goal.seeks_optimum else self.together()

    def reported(self) -> Mask | None:
        """Return the points to report as inside; None for an optimum."""
        return None if self.goal.seeks_optimum else np.asarray(self.together() >= 0.5)

    def as_single(self) -> StatementInputs:
        """Return the inputs of the leading quantity."""
        return replace(next(iter(self.parts.values())), seed=self.seed)
