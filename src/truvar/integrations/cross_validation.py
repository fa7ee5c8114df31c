"""Cross-validation as measurements: a configuration is a point, the number of folds its precision and its price.

| cross-validation | here | shape |
|---|---|---|
| score of configuration i on fold j | `FoldSearch.scores`, NaN where not evaluated | (n, k) |
| scores = f(i) + effect(j) + error | `estimate_fold_effects`: the effects and the error's variance s² | (k,), |
| m more folds of configuration i | a noise level: variance s² / m, cost m or what m fits take | (n, k) |

Some folds are harder than others, for every configuration alike. Their effects are estimated within configurations and
taken off, so that configurations are compared fairly whichever folds they were evaluated on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from truvar._typing import Array, Index, Mask
from truvar.acquisition import Policy, PolicyContext
from truvar.acquisition.confidence import Confidence
from truvar.domain.candidates import Candidates
from truvar.domain.costs import NoiseLevels
from truvar.domain.domain import Domain
from truvar.domain.goals import Goal, Maximize
from truvar.exceptions import Finished
from truvar.integrations.cost_model import predict_costs
from truvar.models.fit import Learned, Model, fit, unfitted
from truvar.study.result import Result
from truvar.study.study import Study

PRIOR_SHARE, PRIOR_WEIGHT = 0.01, 2.0  # of the scores' variance: what the error's is taken to be, and how firmly
RESERVE = 0.2  # of the budget, kept to evaluate on all folds what can still be best
FIRST = 3  # configurations that are evaluated on all folds before there is a model

Pair = tuple[int, int]  # a configuration and a fold


def estimate_fold_effects(scores: Array) -> tuple[Array, float]:
    """By how much each fold is easier than the others, and the variance of what is left: least squares within the
    configurations that were evaluated on two folds or more, drawn towards 0 by one observation's weight.
    """
    folds, seen = scores.shape[1], ~np.isnan(scores)
    several, any_ = seen.sum(axis=1) >= 2, seen.any(axis=1)
    spread = float(np.var(np.nanmean(scores[any_], axis=1))) if any_.any() else 0.0
    prior = PRIOR_SHARE * spread if spread > 0 else 1e-12
    if not several.any():
        return np.zeros(folds), prior
    here = seen[several].astype(float)  # (r, k)
    count = here.sum(axis=1, keepdims=True)
    y = np.where(seen[several], scores[several], 0.0)
    y = here * (y - y.sum(axis=1, keepdims=True) / count)
    normal = np.diag(here.sum(axis=0)) - (here / count).T @ here
    effects = np.linalg.solve(normal + np.eye(folds), y.sum(axis=0))
    fitted = here * (effects - (here @ effects)[:, None] / count)
    freedom = max(float((count - 1).sum()) - (folds - 1), 1.0)
    error = float(((y - fitted) ** 2).sum())
    return effects, (PRIOR_WEIGHT * prior + error) / (PRIOR_WEIGHT + freedom)


@dataclass(frozen=True)
class FoldPolicy:
    """A decision rule whose candidates are the folds that are left: level m - 1 of a configuration is m more folds."""

    rule: Policy
    price: Array  # (n, k): what m folds of each configuration cost; infinite where fewer are left
    per_cost = False  # the score is per cost already

    @property
    def signed(self) -> bool:
        return self.rule.signed

    @property
    def confidence(self) -> Confidence:
        return self.rule.confidence

    def check_supported(self, goal: Goal, n_levels: int) -> None:
        """Check that the wrapped policy supports the goal and a level per number of folds."""
        self.rule.check_supported(goal, n_levels)

    def candidate_rows(self, context: PolicyContext, candidates: Candidates) -> Index | None:
        """Return the rows that the wrapped policy allows and that have folds left."""
        rows = self.rule.candidate_rows(context, candidates)
        return None if rows is None else rows[np.isfinite(self.price[rows]).any(axis=1)]

    def score(self, context: PolicyContext, candidates: Candidates) -> Array:
        price = self.price if candidates.sites is None else self.price[candidates.sites]
        possible = np.isfinite(price)
        cost = np.where(possible, price, price[possible].max(initial=1.0) * 1e9)
        gains = self.rule.score(context, replace(candidates, cost=cost))
        worth = gains / cost if self.rule.per_cost else gains
        return np.where(possible, worth, -np.inf if self.rule.signed else 0.0)


class FoldSearch:
    """Which folds of which configurations to evaluate next. `ask` for pairs of them, `tell` their scores.

    points   the coordinates of the configurations, one row each; none where there is but one configuration
    budget   fits at most; the last fifth of them goes to contenders, so that these end up evaluated on all folds
    rule     the decision rule
    timed    a fit costs the seconds that it takes, not 1
    """

    def __init__(self, points: pd.DataFrame, *, folds: int, budget: int, rule: Policy, timed: bool, seed: int) -> None:
        self.domain = Domain.table(points) if points.shape[1] else None
        self.folds, self.budget, self.timed, self.seed = folds, budget, timed, seed
        self.rule = rule
        self.scores: Array = np.full((len(points), folds), np.nan)
        self.seconds: Array = np.full((len(points), folds), np.nan)
        self.tried: Mask = np.zeros((len(points), folds), bool)
        self.failed: Mask = np.zeros(len(points), bool)
        self.reserve = max(folds, round(RESERVE * budget))
        self.reason = "the budget is spent"
        self.beta = 0.0  # of the bounds of the last result
        self._rng = np.random.default_rng(seed)
        self._model: Model | None = None
        self._learned_from = 0

    def tell(self, row: int, fold: int, score: float, seconds: float) -> None:
        """The score of a configuration on a fold; one that is no finite number takes the configuration out."""
        self.tried[row, fold], self.seconds[row, fold] = True, seconds
        if np.isfinite(score) and not self.failed[row]:
            self.scores[row, fold] = score
        else:
            self.failed[row], self.scores[row] = True, np.nan

    def ask(self, workers: int) -> list[Pair]:
        """The pairs to evaluate next, as many as there are workers if it can be; none: the search is over."""
        if self.domain is None:
            return [(0, fold) for fold in range(self.folds) if not self.tried[0, fold]]
        pairs = self._explore(self.domain, workers)
        return pairs or self._complete(workers)

    def result(self) -> Result | None:
        """What is known of every configuration; None where there is but one."""
        if self.domain is None:
            return None
        study = self._study(self.domain, np.full(self.scores.shape, np.inf))
        self.beta = study.epoch.beta
        return study.result()

    @property
    def complete(self) -> Mask:
        """Which configurations were evaluated on all folds."""
        return np.asarray(~np.isnan(self.scores).any(axis=1))

    @property
    def left(self) -> int:
        """Fits that the budget still allows."""
        return self.budget - int(self.tried.sum())

    # -- inside --------------------------------------------------------------------------------------------------------

    def _explore(self, domain: Domain, workers: int) -> list[Pair]:
        """What the decision rule wants, up to the fits that are kept for the contenders."""
        pending = np.zeros_like(self.tried)
        begun = int((~np.isnan(self.scores)).any(axis=1).sum())
        allowance = self.left - (self.reserve if begun >= FIRST else 0)
        price = self._prices()
        study = self._study(domain, price)
        pairs: list[Pair] = []
        while len(pairs) < workers:
            open_ = np.where(self.failed, 0, (~self.tried & ~pending).sum(axis=1))
            most = np.minimum(open_, allowance - len(pairs))
            few = begun + len({row for row, _ in pairs}) < FIRST
            count = np.arange(1, self.folds + 1)
            possible = (count <= most[:, None]) & ((count == self.folds) | ~few)
            price[:] = np.where(possible, self._price[:, None] * count, np.inf)
            if not possible.any():
                break
            try:
                suggestion = study.ask()
            except Finished as end:
                if not pairs:
                    self.reason = end.reason
                break
            row, folds = int(suggestion.index or 0), int(suggestion.level or 0) + 1
            use = self.tried.sum(axis=0) + pending.sum(axis=0) + 0.5 * self._rng.random(self.folds)
            todo = np.flatnonzero(~self.tried[row] & ~pending[row])
            chosen = todo[np.argsort(use[todo], kind="stable")][:folds]  # all folds are used equally often
            pending[row, chosen] = True
            pairs += [(row, int(fold)) for fold in chosen]
        return pairs

    def _complete(self, workers: int) -> list[Pair]:
        """The missing folds of those that can still be best, in the order of their posterior mean, as far as the budget
        goes: only what was evaluated on all folds can be compared as a grid search would.
        """
        result = self.result()
        if result is None:
            return []
        pairs: list[Pair] = []
        for row in np.argsort(-result.mean, kind="stable"):
            missing = np.flatnonzero(~self.tried[row])
            if len(pairs) >= workers or len(pairs) + len(missing) > self.left:
                break
            if result.potential[row] and not self.failed[row]:
                pairs += [(int(row), int(fold)) for fold in missing]
        return pairs

    def _prices(self) -> Array:
        """Sets what one fit of each configuration costs; a table to be filled in for the rule."""
        seen = self.tried.any(axis=1)
        self._price = np.ones(len(self.scores))
        if self.timed and self.domain is not None:
            taken = np.nanmean(self.seconds[seen], axis=1) if seen.any() else np.empty(0)
            self._price = predict_costs(self.domain.points[seen], taken, self.domain.points, self.seed)
        return np.full(self.scores.shape, np.inf)

    def _study(self, domain: Domain, price: Array) -> Study:
        """A study that was told the scores seen so far.

        Scores far below the median say that a configuration is bad, not how good the best is: they are drawn in, to
        twice as far below the median as the best is above it.
        """
        effects, variance = estimate_fold_effects(self.scores)
        rows = np.flatnonzero(~np.isnan(self.scores).all(axis=1))
        values = np.nanmean(self.scores[rows] - effects, axis=1)
        count = (~np.isnan(self.scores[rows])).sum(axis=1)
        if len(rows):
            middle, best = float(np.median(values)), float(values.max())
            if best > middle:
                values = np.maximum(values, middle - 2 * (best - middle))
        model = self._fit(domain.points[rows], values, variance / count)
        levels = NoiseLevels([variance / m for m in range(1, self.folds + 1)], np.arange(1.0, self.folds + 1).tolist())
        study = Study(
            domain,
            Maximize(monotone=False),
            kernel=model.kernel,
            mean=model.mean,
            noise=levels,
            policy=FoldPolicy(self.rule, price),
            seed=self.seed,
        )
        for row, value, folds in zip(rows, values, count, strict=True):
            study.tell(domain.point(int(row)), float(value), level=int(folds) - 1)
        return study

    def _fit(self, points: Array, values: Array, noise: Array) -> Model:
        """The model of the scores: learned anew when there is a tenth more to learn from."""
        family, extent = Learned(), np.ones(points.shape[1])
        if len(values) < FIRST:
            return unfitted(family, extent, values)
        if self._model is None or len(values) >= 1.1 * self._learned_from:
            self._model = fit(family, points, values, noise, extent, None, self.seed % 2**31 + len(values))
            self._learned_from = len(values)
        return self._model
