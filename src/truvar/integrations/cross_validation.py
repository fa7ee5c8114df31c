"""Cross-validation as measurements: a configuration is a point, the number of folds its precision and its cost.

| cross-validation | here | shape |
|---|---|---|
| score of configuration i on fold j | `FoldSearch.scores`, NaN if not evaluated | (n, k) |
| score = f(i) + effect(j) + error | `estimate_fold_effects`: effects and error variance s² | (k,), scalar |
| m more folds of configuration i | a noise level: variance s² / m, cost m or the time of m fits | (n, k) |

Some folds are harder than others, for every configuration. Their effects are estimated within configurations and
subtracted, so that configurations can be compared even if they were evaluated on different folds.
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
from truvar.models.kernels import indicator_columns
from truvar.study.result import Result
from truvar.study.study import Study

PRIOR_ERROR_SHARE = 0.01  # prior guess of the error variance, as a share of the variance of the scores
PRIOR_WEIGHT = 2.0  # weight of that guess, in degrees of freedom
RESERVE = 0.2  # share of the budget that is kept to complete the configurations that can still be best
N_INITIAL = 3  # configurations that are evaluated on all folds before a model is fitted
REFIT_GROWTH = 1.1  # the model is fitted again when there are this many times as many configurations
CLIP_FACTOR = 2.0  # scores are raised to at least the median minus this many times the distance of the best from it

Pair = tuple[int, int]  # index of a configuration, index of a fold


def estimate_fold_effects(scores: Array) -> tuple[Array, float]:
    """Estimate the fold effects by least squares within configurations.

    Only configurations with scores on two or more folds count. The effects are shrunk towards 0 by the weight of one
    observation.

    Args:
        scores: Scores of configurations (rows) on folds (columns), NaN if not evaluated.

    Returns:
        The effect of each fold, and the variance of the error.
    """
    n_folds = scores.shape[1]
    seen = ~np.isnan(scores)
    has_one = seen.any(axis=1)
    has_several = seen.sum(axis=1) >= 2
    spread = float(np.var(np.nanmean(scores[has_one], axis=1))) if has_one.any() else 0.0
    prior = PRIOR_ERROR_SHARE * spread if spread > 0 else 1e-12
    if not has_several.any():
        return np.zeros(n_folds), prior
    weights = seen[has_several].astype(float)  # (r, k)
    count = weights.sum(axis=1, keepdims=True)
    y = np.where(seen[has_several], scores[has_several], 0.0)
    y = weights * (y - y.sum(axis=1, keepdims=True) / count)
    normal = np.diag(weights.sum(axis=0)) - (weights / count).T @ weights
    effects = np.linalg.solve(normal + np.eye(n_folds), y.sum(axis=0))
    fitted = weights * (effects - (weights @ effects)[:, None] / count)
    freedom = max(float((count - 1).sum()) - (n_folds - 1), 1.0)
    squared_error = float(((y - fitted) ** 2).sum())
    return effects, (PRIOR_WEIGHT * prior + squared_error) / (PRIOR_WEIGHT + freedom)


@dataclass(frozen=True)
class FoldPolicy:
    """A policy that chooses among the folds that are left: level m - 1 of a configuration is m more folds.

    Attributes:
        policy: The wrapped policy.
        fold_costs: Cost of m folds of each configuration, shape (n, k); infinite where fewer than m are left.
        per_cost: False, because the score is divided by the cost already.
    """

    policy: Policy
    fold_costs: Array
    per_cost = False

    @property
    def signed(self) -> bool:
        """Whether scores can be negative."""
        return self.policy.signed

    @property
    def confidence(self) -> Confidence:
        """Confidence parameters of the wrapped policy."""
        return self.policy.confidence

    def check_supported(self, goal: Goal, n_levels: int) -> None:
        """Check that the wrapped policy supports the goal and a level per number of folds."""
        self.policy.check_supported(goal, n_levels)

    def candidate_rows(self, context: PolicyContext, candidates: Candidates) -> Index | None:
        """Return the rows that the wrapped policy allows and that have folds left."""
        rows = self.policy.candidate_rows(context, candidates)
        return None if rows is None else rows[np.isfinite(self.fold_costs[rows]).any(axis=1)]

    def score(self, context: PolicyContext, candidates: Candidates) -> Array:
        """Return the score of every number of folds of every candidate; the lowest possible if there are too few."""
        fold_costs = self.fold_costs if candidates.sites is None else self.fold_costs[candidates.sites]
        possible = np.isfinite(fold_costs)
        cost = np.where(possible, fold_costs, fold_costs[possible].max(initial=1.0) * 1e9)
        gains = self.policy.score(context, replace(candidates, cost=cost))
        scores = gains / cost if self.policy.per_cost else gains
        return np.where(possible, scores, -np.inf if self.policy.signed else 0.0)


class FoldSearch:
    """A search that decides which folds of which configurations to evaluate next.

    Call `ask` for pairs of a configuration and a fold, and `tell` for their scores, until `ask` returns nothing. The
    last fifth of the budget completes the configurations that can still be best, so that they are evaluated on all
    folds.

    Args:
        points: Coordinates of the configurations, a row each; without columns if there is only one configuration.
        folds: Number of folds.
        budget: Largest number of fits.
        policy: The policy.
        timed: Whether a fit costs the seconds that it takes; otherwise it costs 1.
        seed: Seed of the order of the folds and of the fit of the model.

    Attributes:
        scores: Scores so far, NaN if not evaluated or failed, shape (n, k).
        seconds: Seconds that each fit took, shape (n, k).
        tried: Whether a fold was evaluated, shape (n, k).
        failed: Whether a configuration has a score that is not finite, shape (n,).
        reserve: Number of fits that are kept to complete configurations.
        reason: Reason for which the search ended.
        beta: Confidence parameter of the last result.
    """

    def __init__(
        self, points: pd.DataFrame, *, folds: int, budget: int, policy: Policy, timed: bool, seed: int
    ) -> None:
        self.domain = Domain.table(points) if points.shape[1] else None
        self.folds = folds
        self.budget = budget
        self.policy = policy
        self.timed = timed
        self.seed = seed
        self.scores: Array = np.full((len(points), folds), np.nan)
        self.seconds: Array = np.full((len(points), folds), np.nan)
        self.tried: Mask = np.zeros((len(points), folds), bool)
        self.failed: Mask = np.zeros(len(points), bool)
        self.reserve = max(folds, round(RESERVE * budget))
        self.reason = "the budget is spent"
        self.beta = 0.0
        self._rng = np.random.default_rng(seed)
        self._model: Model | None = None
        self._n_fitted = 0  # configurations that the model was fitted to

    def tell(self, row: int, fold: int, score: float, seconds: float) -> None:
        """Record the score of a configuration on a fold.

        Args:
            row: Index of the configuration.
            fold: Index of the fold.
            score: The score. One that is not finite excludes the configuration from the search.
            seconds: Seconds that the fit took.
        """
        self.tried[row, fold] = True
        self.seconds[row, fold] = seconds
        if np.isfinite(score) and not self.failed[row]:
            self.scores[row, fold] = score
        else:
            self.failed[row] = True
            self.scores[row] = np.nan

    def ask(self, workers: int) -> list[Pair]:
        """Return the pairs to evaluate next.

        Args:
            workers: Number of pairs that can be evaluated at the same time.

        Returns:
            At least as many pairs as workers if possible; none if the search is over.
        """
        if self.domain is None:
            return [(0, fold) for fold in range(self.folds) if not self.tried[0, fold]]
        pairs = self._explore(self.domain, workers)
        return pairs or self._complete(workers)

    def result(self) -> Result | None:
        """Return the posterior of the mean scores of all configurations, or None if there is only one."""
        if self.domain is None:
            return None
        study = self._study(self.domain, np.full(self.scores.shape, np.inf))
        self.beta = study.epoch.beta
        return study.result()

    @property
    def complete(self) -> Mask:
        """Whether each configuration was evaluated on all folds."""
        return np.asarray(~np.isnan(self.scores).any(axis=1))

    @property
    def left(self) -> int:
        """Number of fits that the budget still allows."""
        return self.budget - int(self.tried.sum())

    def _explore(self, domain: Domain, workers: int) -> list[Pair]:
        """Return the pairs that the policy chooses, without using the reserve."""
        pending = np.zeros_like(self.tried)
        n_started = int((~np.isnan(self.scores)).any(axis=1).sum())
        allowance = self.left - (self.reserve if n_started >= N_INITIAL else 0)
        fit_costs = self._fit_costs()
        fold_costs = np.full(self.scores.shape, np.inf)  # the policy of the study reads it; updated before each ask
        study = self._study(domain, fold_costs)
        pairs: list[Pair] = []
        while len(pairs) < workers:
            n_left = np.where(self.failed, 0, (~self.tried & ~pending).sum(axis=1))
            n_allowed = np.minimum(n_left, allowance - len(pairs))
            is_initial = n_started + len({row for row, _ in pairs}) < N_INITIAL
            count = np.arange(1, self.folds + 1)
            possible = (count <= n_allowed[:, None]) & ((count == self.folds) | (not is_initial))
            fold_costs[:] = np.where(possible, fit_costs[:, None] * count, np.inf)
            if not possible.any():
                break
            try:
                suggestion = study.ask()
            except Finished as end:
                if not pairs:
                    self.reason = end.reason
                break
            row = int(suggestion.index or 0)
            n_folds = int(suggestion.level or 0) + 1
            # Folds that were used less often come first, so that all are used about equally often.
            use = self.tried.sum(axis=0) + pending.sum(axis=0) + 0.5 * self._rng.random(self.folds)
            unused = np.flatnonzero(~self.tried[row] & ~pending[row])
            chosen = unused[np.argsort(use[unused], kind="stable")][:n_folds]
            pending[row, chosen] = True
            pairs += [(row, int(fold)) for fold in chosen]
        return pairs

    def _complete(self, workers: int) -> list[Pair]:
        """Return the missing folds of configurations that can still be best, as far as the budget allows.

        They are taken in the order of their posterior mean. Only configurations that were evaluated on all folds can be
        compared as in a grid search.
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

    def _fit_costs(self) -> Array:
        """Return the cost of one fit of each configuration."""
        if not self.timed or self.domain is None:
            return np.ones(len(self.scores))
        seen = self.tried.any(axis=1)
        seconds = np.nanmean(self.seconds[seen], axis=1) if seen.any() else np.empty(0)
        points, _ = indicator_columns(self.domain.points, self.domain.categorical)
        return predict_costs(points[seen], seconds, points, self.seed)

    def _study(self, domain: Domain, fold_costs: Array) -> Study:
        """Return a study with the scores so far as measurements.

        A score far below the median says that a configuration is bad, but not how good the best is. Such scores are
        therefore raised, see `CLIP_FACTOR`.
        """
        effects, variance = estimate_fold_effects(self.scores)
        rows = np.flatnonzero(~np.isnan(self.scores).all(axis=1))
        values = np.nanmean(self.scores[rows] - effects, axis=1)
        count = (~np.isnan(self.scores[rows])).sum(axis=1)
        if len(rows):
            median = float(np.median(values))
            best = float(values.max())
            if best > median:
                values = np.maximum(values, median - CLIP_FACTOR * (best - median))
        model = self._fit(domain, rows, values, variance / count)
        levels = NoiseLevels([variance / m for m in range(1, self.folds + 1)], np.arange(1.0, self.folds + 1).tolist())
        study = Study(
            domain,
            Maximize(monotone=False),
            kernel=model.kernel,
            mean=model.mean,
            noise=levels,
            policy=FoldPolicy(self.policy, fold_costs),
            seed=self.seed,
        )
        for row, value, folds in zip(rows, values, count, strict=True):
            study.tell(domain.point(int(row)), float(value), level=int(folds) - 1)
        return study

    def _fit(self, domain: Domain, rows: Index, values: Array, noise: Array) -> Model:
        """Return the model of the scores, fitted again if there are enough new configurations."""
        family = Learned()
        points = domain.points[rows]
        extent = np.ones(points.shape[1])
        if len(values) < N_INITIAL:
            return unfitted(family, extent, values)
        if self._model is None or len(values) >= REFIT_GROWTH * self._n_fitted:
            seed = self.seed % 2**31 + len(values)
            self._model = fit(family, points, values, noise, extent, None, seed, domain.categorical)
            self._n_fitted = len(values)
        return self._model
