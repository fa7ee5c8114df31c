"""Cross-validation as measurements: configurations are points, folds precision and cost.

| cross-validation | here | shape |
|---|---|---|
| score of configuration i on fold j | `FoldSearch.scores`, NaN if not evaluated | (n, k) |
| score = f(i) + effect(j) + error | `estimate_fold_effects`: effects and error variance s² | (k,), scalar |
| m more folds of configuration i | a noise level: variance s² / m, cost m or the time of m fits | (n, k) |

Some folds are harder than others, for every configuration. Their effects are estimated within
configurations and subtracted, so that configurations can be compared even if they were evaluated on
different folds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from truvar._typing import Array, Index, Mask
from truvar.acquisition import Policy, PolicyContext
from truvar.acquisition.confidence import Confidence
from truvar.acquisition.weighted import WeightedTruVaR
from truvar.algorithm.learner import ActiveLearner
from truvar.domain.action import Action
from truvar.domain.candidates import Candidates
from truvar.domain.costs import NoiseLevels
from truvar.domain.goals import Goal, Maximize
from truvar.integrations._configurations import (
    Configuration,
    ConfigurationEncoder,
    ConfigurationSpace,
)
from truvar.integrations._fold_racing import (
    ScoreModel,
    choose_folds,
    fit_score_model,
    modelled_rows,
    n_first_folds,
    score_posterior,
)
from truvar.models.cost_model import CostModel
from truvar.models.fit import Model, fit, unfitted
from truvar.models.kernels import named_kernel
from truvar.models.priors import Learned, Prior

# Prior guess of the error variance, as a share of the variance of the scores.
PRIOR_ERROR_SHARE = 0.01
PRIOR_WEIGHT = 2.0  # weight of that guess, in degrees of freedom
# Share of the budget that is kept to complete the configurations that can still be best.
RESERVE = 0.2
N_INITIAL = 3  # configurations that are evaluated on all folds before a model is fitted
# The model is fitted again when there are this many times as many configurations.
REFIT_GROWTH = 1.1
LISTED = 1000  # configurations of a space that are all looked at; of more, a sample is drawn
SAMPLED = 500  # configurations that are drawn from a larger space
MAX_POOL = 2000  # configurations that are looked at in the end
CENTRES = 4  # best configurations whose neighbours are looked at too
NEIGHBOURS = 24  # of each of them, whenever the model is fitted
# Fits that are decided on at a time, however many run in parallel: the choices do not depend on it.
BATCH = 8
# The default policy decides for about 10 ms per fit. If one of the first fits takes less than five
# times as long, fits count as cheap, and quick races decide instead. Processor time counts, as it
# hardly depends on other work; but a fit may also wait for processes or its own devices, and
# then it is not cheap.
CHEAP_SECONDS = 0.05
CHEAP_WAIT = 1.0  # seconds by the clock
CHEAP_BATCH = 32  # cheap fits that other policies decide on at a time
# Batches that other policies divide the budget into at least, unless it is small.
MIN_DECISIONS = 12
RACE_INITIAL = 8  # configurations that are evaluated on some folds before a race begins
# The model of a race is fitted again when there are this many times as many configurations.
RACE_GROWTH = 1.3
# Share of the fits so far that are decided on at a time, if that is more than `BATCH`.
RACE_BATCH = 0.1
# scores are raised to at least the median minus this many times the distance of the best from it
CLIP_FACTOR = 2.0

Pair = tuple[int, int]  # index of a configuration, index of a fold


def estimate_fold_effects(scores: Array) -> tuple[Array, float]:
    """Estimate the fold effects by least squares within configurations.

    Only configurations with scores on two or more folds count. The effects are shrunk towards 0 by
    the weight of one observation.

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


def raise_low_scores(values: Array) -> Array:
    """Return values with those far below the median raised, see `CLIP_FACTOR`.

    They say nothing about the best.
    """
    if len(values) == 0:
        return values
    median = float(np.median(values))
    best = float(values.max())
    return (
        np.asarray(np.maximum(values, median - CLIP_FACTOR * (best - median)))
        if best > median
        else values
    )


@dataclass(frozen=True)
class FoldPolicy:
    """A policy for the folds that are left: level m - 1 of a configuration is m more folds.

    Attributes:
        policy: The wrapped policy.
        fold_costs: Cost of m folds of each configuration, shape (n, k); infinite where fewer than m
            are left.
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
        """Return the score of each number of folds of each candidate.

        It is the lowest possible where too few folds are left.
        """
        fold_costs = (
            self.fold_costs if candidates.sites is None else self.fold_costs[candidates.sites]
        )
        possible = np.isfinite(fold_costs)
        cost = np.where(possible, fold_costs, fold_costs[possible].max(initial=1.0) * 1e9)
        gains = self.policy.score(context, replace(candidates, cost=cost))
        scores = gains / cost if self.policy.per_cost else gains
        return np.where(possible, scores, -np.inf if self.policy.signed else 0.0)


@dataclass(frozen=True)
class PoolResult:
    """Posterior of the mean scores of all configurations of the pool.

    Attributes:
        mean: Posterior means, (n,).
        lower: Lower confidence bounds, (n,).
        upper: Upper confidence bounds, (n,).
        potential: Whether each can still be the best one, (n,).
        beta: Confidence parameter of the bounds.
    """

    mean: Array
    lower: Array
    upper: Array
    potential: Mask
    beta: float


class FoldSearch:
    """A search that decides which folds of which configurations to evaluate next.

    Call `ask` for pairs of a configuration and a fold, and `tell` for their scores, until `ask`
    returns nothing. The last fifth of the budget completes the configurations that can still be
    best, so that they are evaluated on all folds.

    A decision takes time too. If fits are cheap, the default policy is replaced by races (see
    `fold_racing`), and other policies decide on more fits at a time, with a simpler model. Races
    need no reserve, because they complete configurations all the time.

    Args:
        space: The configurations to search. A small space is listed; of a larger one a sample is
            drawn, to which neighbours of the best configurations are added.
        folds: Number of folds.
        budget: Largest number of fits.
        policy: The policy.
        timed: Whether a fit costs the seconds that it takes; otherwise it costs 1.
        seed: Seed of everything that is drawn.

    Attributes:
        configurations: Different configurations to choose from, the pool.
        scores: Scores so far, NaN if not evaluated or failed, shape (n, k).
        seconds: Seconds that each fit took, shape (n, k).
        tried: Whether a fold was evaluated, shape (n, k).
        failed: Whether a configuration has a score that is not finite, shape (n,).
        reserve: Number of fits that are kept to complete configurations.
        reason: Reason for which the search ended.
        beta: Confidence parameter of the last result.
    """

    def __init__(
        self,
        space: ConfigurationSpace,
        *,
        folds: int,
        budget: int,
        policy: Policy,
        timed: bool,
        seed: int,
    ) -> None:
        self._rng = np.random.default_rng(seed)
        self._space = space
        self._is_listed = space.size <= LISTED
        self.configurations: list[Configuration] = []
        self.folds = folds
        self.budget = budget
        self.policy = policy
        self.timed = timed
        self.seed = seed
        self._points: Array = np.empty((0, 0))
        self.scores: Array = np.empty((0, folds))
        self.seconds: Array = np.empty((0, folds))
        self.tried: Mask = np.zeros((0, folds), bool)
        self.failed: Mask = np.zeros(0, bool)
        drawn = space.listed() if self._is_listed else space.draw(SAMPLED, self._rng)
        self._encoder = ConfigurationEncoder(space, drawn)
        self._known: dict[bytes, int] = {}
        self._add(drawn)
        # Without columns there is one configuration.
        self._is_listed = self._is_listed or self._points.shape[1] == 0
        policy.check_supported(Maximize(monotone=False), folds)
        self.reserve = max(folds, round(RESERVE * budget))
        self.reason = "the budget is spent"
        self.beta = 0.0
        self._model: Model | None = None
        self._n_fitted = 0  # configurations that the model was fitted to
        self._n_asked = 0
        self._cheap: bool | None = None  # not known yet
        self._least_processor_seconds = float("inf")
        self._least_seconds = float("inf")
        self._may_race = policy == WeightedTruVaR()
        self._race_model: ScoreModel | None = None
        self._race_costs: Array = np.empty(0)

    def rows_of(self, configurations: Sequence[Configuration]) -> list[int]:
        """Return the rows of configurations of the pool, or of those that they equal."""
        return [self._known[point.tobytes()] for point in self._encoder.points(configurations)]

    @property
    def n_all(self) -> float:
        """Number of fits of all configurations on all folds; infinite with distributions."""
        return self.folds * (len(self.configurations) if self._is_listed else self._space.size)

    def tell(
        self,
        row: int,
        fold: int,
        score: float,
        seconds: float,
        processor_seconds: float | None = None,
    ) -> None:
        """Record the score of a configuration on a fold.

        Args:
            row: Index of the configuration.
            fold: Index of the fold.
            score: The score. One that is not finite excludes the configuration from the search.
            seconds: Seconds that the fit took.
            processor_seconds: Processor time that the fit took; None: `seconds`.
        """
        processor_seconds = seconds if processor_seconds is None else processor_seconds
        if np.isfinite(
            score
        ):  # a fit that fails may end immediately, and says nothing about the others
            self._least_processor_seconds = min(self._least_processor_seconds, processor_seconds)
            self._least_seconds = min(self._least_seconds, seconds)
        self.tried[row, fold] = True
        self.seconds[row, fold] = seconds
        if np.isfinite(score) and not self.failed[row]:
            self.scores[row, fold] = score
        else:
            self.failed[row] = True
            self.scores[row] = np.nan

    def ask(self) -> list[Pair]:
        """Return the pairs to evaluate next; none if the search is over.

        Their number does not depend on how many can be evaluated at the same time.
        """
        if self.budget >= self.n_all:  # there is nothing to decide
            self.reason = "all configurations were evaluated on all folds"
            return [(int(row), int(fold)) for row, fold in np.argwhere(~self.tried)]
        if self._may_race:
            if not self.tried.any():
                return [(self._central_row(), fold) for fold in range(self.folds)]
            if self._cheap is None and self._least_seconds < np.inf:
                self._cheap = self._are_fits_cheap()
            if (
                self._cheap is not False
            ):  # a race begins at random, until the first fit that does not fail
                return self._race()
        pairs = self._explore() or self._complete()
        if (
            not pairs and self.reserve > 0 and self.left >= self.folds
        ):  # nothing was left to complete
            self.reserve = 0
            pairs = self._explore() or self._complete()
        return pairs

    def result(self) -> PoolResult | None:
        """Return the posterior of all mean scores, or None if there is one configuration only."""
        if len(self.configurations) == 1:
            return None
        learner = self._learner(np.full(self.scores.shape, np.inf))
        state = learner.reported_state
        self.beta = state.epoch.beta
        return PoolResult(
            learner.moments[0], state.lower, state.upper, state.regions.potential, self.beta
        )

    @property
    def complete(self) -> Mask:
        """Whether each configuration was evaluated on all folds."""
        return np.asarray(~np.isnan(self.scores).any(axis=1))

    @property
    def left(self) -> int:
        """Number of fits that the budget still allows."""
        return self.budget - int(self.tried.sum())

    def _are_fits_cheap(self) -> bool:
        """Return whether decisions have to be quick.

        The shortest time counts, as other work on a machine only adds to it.
        """
        return self._least_processor_seconds < CHEAP_SECONDS and self._least_seconds < CHEAP_WAIT

    def _central_row(self) -> int:
        """Return the configuration whose numbers are nearest to the middle of their ranges."""
        numeric = np.setdiff1d(np.arange(self._points.shape[1]), self._encoder.categorical)
        return int(np.argmin(((self._points[:, numeric] - 0.5) ** 2).sum(axis=1)))

    def _race(self) -> list[Pair]:
        """Return the pairs of a race: few folds of many configurations, all of promising ones."""
        n_started = int(self.tried.any(axis=1).sum())
        rows = np.flatnonzero(~np.isnan(self.scores).all(axis=1))
        n_first = n_first_folds(self.folds)
        n_possible = (
            self.left - self.folds + n_first
        ) // n_first  # so that one of them can be completed
        n_random = min(RACE_INITIAL - min(n_started, len(rows)), n_possible)
        if n_random > 0:
            untried = np.flatnonzero(~self.tried.any(axis=1))
            chosen = self._rng.permutation(untried)[:n_random]
            if len(chosen):
                return self._least_used_folds([(int(row), n_first) for row in chosen])
        if len(rows) == 0:
            return []
        effects, error_variance = self._fold_effects()
        values = raise_low_scores(np.nanmean(self.scores[rows] - effects, axis=1))
        is_complete = self.complete
        if not is_complete.any():
            partial = rows[np.argsort(-values, kind="stable")]
            lacking = (~self.tried[partial]).sum(axis=1)
            possible = partial[lacking <= self.left]
            return self._least_used_folds([(int(row), self.folds) for row in possible[:1]])
        best = float(self.scores[is_complete].mean(axis=1).max())
        model = self._fit_race(rows, values, error_variance)  # may add to the pool
        n_tried = self.tried.sum(axis=1)
        noise = error_variance * (1 / n_tried[rows] - 1 / self.folds)
        kept = modelled_rows(rows, values)
        chosen_folds = choose_folds(
            score_posterior(
                model,
                self._points,
                rows[kept],
                values[kept],
                noise[kept],
                self._encoder.categorical,
            ),
            best,
            n_tried,
            self.failed,
            n_folds=self.folds,
            costs=self._race_costs,
            error_variance=error_variance,
            nugget=model.nugget,
            batch=max(BATCH, round(RACE_BATCH * int(n_tried.sum()))),
            left=self.left,
        )
        return self._least_used_folds(chosen_folds)

    def _fit_race(self, rows: Index, values: Array, error_variance: float) -> ScoreModel:
        """Return the model of a race, fitted again if there are enough new scores.

        It has neighbours in the pool.
        """
        model = self._race_model
        if model is not None and len(rows) < RACE_GROWTH * model.n_fitted:
            return model
        self._add_neighbours()
        noise = error_variance * (1 / self.tried[rows].sum(axis=1) - 1 / self.folds)
        kept = modelled_rows(rows, values)
        model = fit_score_model(
            self._points[rows[kept]],
            values[kept],
            noise[kept],
            self._encoder.categorical,
            self._race_model,
        )
        self._race_model = replace(model, n_fitted=len(rows))
        self._race_costs = self._fit_costs()
        return self._race_model

    def _least_used_folds(self, chosen: Sequence[tuple[int, int]]) -> list[Pair]:
        """Return pairs for rows and further folds that use all folds about equally often."""
        use = self.tried.sum(axis=0) + 0.5 * self._rng.random(self.folds)
        pairs: list[Pair] = []
        for row, count in chosen:
            unused = np.flatnonzero(~self.tried[row])
            folds = unused[np.argsort(use[unused], kind="stable")][:count]
            use[folds] += 1
            pairs += [(row, int(fold)) for fold in folds]
        return pairs

    def _fold_effects(self) -> tuple[Array, float]:
        """Return the effects of the folds and the variance of the error.

        The better half counts: the errors of bad configurations are larger, and nobody asks about
        them. One that diverges would otherwise hide all differences between the others.
        """
        rows = np.flatnonzero(~np.isnan(self.scores).all(axis=1))
        means = np.nanmean(self.scores[rows], axis=1)
        better = rows[means >= np.median(means)] if len(rows) else rows
        return estimate_fold_effects(self.scores[better])

    @property
    def _batch(self) -> int:
        """Number of fits to decide on at a time."""
        return min(CHEAP_BATCH, max(BATCH, self.budget // MIN_DECISIONS)) if self._cheap else BATCH

    def _add(self, configurations: Sequence[Configuration]) -> None:
        """Add configurations to the pool, each different one once."""
        points = self._encoder.points(configurations)
        new: list[int] = []
        for position, point in enumerate(points):
            if point.tobytes() not in self._known:
                self._known[point.tobytes()] = len(self.configurations) + len(new)
                new.append(position)
        self._points = (
            np.vstack([self._points, points[new]]) if self.configurations else points[new]
        )
        self.configurations += [configurations[position] for position in new]
        nothing = np.full((len(new), self.folds), np.nan)
        self.scores = np.vstack([self.scores, nothing])
        self.seconds = np.vstack([self.seconds, nothing])
        self.tried = np.vstack([self.tried, np.zeros((len(new), self.folds), bool)])
        self.failed = np.append(self.failed, np.zeros(len(new), bool))

    def _add_neighbours(self) -> None:
        """Add neighbours of the best configurations to the pool of a space that is not listed."""
        if self._is_listed or len(self.configurations) >= MAX_POOL:
            return
        seen = np.flatnonzero(~np.isnan(self.scores).all(axis=1))
        means = np.nanmean(self.scores[seen], axis=1)
        for row in seen[np.argsort(-means, kind="stable")][:CENTRES]:
            self._add(self._space.neighbours(self.configurations[row], NEIGHBOURS, self._rng))

    def _explore(self) -> list[Pair]:
        """Return the pairs that the policy chooses, without using the reserve."""
        n_started = int((~np.isnan(self.scores)).any(axis=1).sum())
        if n_started >= N_INITIAL and self._cheap is None:
            self._cheap = self._are_fits_cheap()
        if self._is_fit_due(n_started):
            self._add_neighbours()
        pending = np.zeros_like(self.tried)
        allowance = self.left - (self.reserve if n_started >= N_INITIAL else 0)
        fit_costs = self._fit_costs()
        fold_costs = np.full(
            self.scores.shape, np.inf
        )  # the policy reads it; updated before each choice
        learner = self._learner(fold_costs)
        actions: list[Action] = []
        pairs: list[Pair] = []
        while len(pairs) < self._batch:
            n_left = np.where(self.failed, 0, (~self.tried & ~pending).sum(axis=1))
            n_allowed = np.minimum(n_left, allowance - len(pairs))
            is_initial = n_started + len({row for row, _ in pairs}) < N_INITIAL
            count = np.arange(1, self.folds + 1)
            possible = (count <= n_allowed[:, None]) & ((count == self.folds) | (not is_initial))
            fold_costs[:] = np.where(possible, fit_costs[:, None] * count, np.inf)
            if not possible.any():
                break
            table, choice = learner.choose(None, actions, self._n_asked)
            if (
                choice is None
                or table.sites is None
                or not possible[int(table.sites[choice.row]), choice.level]
            ):
                if not pairs:
                    self.reason = "nothing is left to gain"
                break
            self._n_asked += 1
            row = int(table.sites[choice.row])
            n_folds = choice.level + 1
            noise = float(table.noise[choice.row, choice.level])
            action = Action(self._n_asked, self._points[row], row, choice.level, 0, noise, 1.0)
            actions.append(action)
            learner.add_pending(action)
            # Folds that were used less often come first, so that all are used about equally often.
            use = self.tried.sum(axis=0) + pending.sum(axis=0) + 0.5 * self._rng.random(self.folds)
            unused = np.flatnonzero(~self.tried[row] & ~pending[row])
            chosen = unused[np.argsort(use[unused], kind="stable")][:n_folds]
            pending[row, chosen] = True
            pairs += [(row, int(fold)) for fold in chosen]
        return pairs

    def _complete(self) -> list[Pair]:
        """Return the missing folds of possible best configurations, as the budget allows.

        They are taken in the order of their posterior mean. Only configurations that were evaluated
        on all folds can be compared as in a grid search.
        """
        result = self.result()
        if result is None:
            return []
        pairs: list[Pair] = []
        for row in np.argsort(-result.mean, kind="stable"):
            missing = np.flatnonzero(~self.tried[row])
            if len(pairs) >= self._batch or len(pairs) + len(missing) > self.left:
                break
            if result.potential[row] and not self.failed[row]:
                pairs += [(int(row), int(fold)) for fold in missing]
        return pairs

    def _fit_costs(self) -> Array:
        """Return the cost of one fit of each configuration."""
        if not self.timed:
            return np.ones(len(self.scores))
        seen = self.tried.any(axis=1)
        seconds = np.nanmean(self.seconds[seen], axis=1) if seen.any() else np.empty(0)
        domain = self._encoder.domain(self._points)
        return CostModel(domain, self._points[seen], seconds, seed=self.seed).median(self._points)

    def _learner(self, fold_costs: Array) -> ActiveLearner:
        """Return a learner with the scores so far as measurements.

        A score far below the median says that a configuration is bad, but not how good the best is.
        Such scores are therefore raised, see `CLIP_FACTOR`.
        """
        effects, variance = self._fold_effects()
        rows = np.flatnonzero(~np.isnan(self.scores).all(axis=1))
        values = raise_low_scores(np.nanmean(self.scores[rows] - effects, axis=1))
        count = (~np.isnan(self.scores[rows])).sum(axis=1)
        domain = self._encoder.domain(self._points)
        model = self._fit(domain.categorical, rows, values, variance / count)
        nugget = model.noise or 0.0
        costs = np.arange(1.0, self.folds + 1).tolist()
        levels = NoiseLevels([variance / m + nugget for m in range(1, self.folds + 1)], costs)
        prior = Prior(model.kernel, model.mean, levels)
        learner = ActiveLearner(
            domain,
            Maximize(monotone=False),
            FoldPolicy(self.policy, fold_costs),
            prior,
            None,
            self.seed,
        )
        observations = []
        for number, (row, value, folds) in enumerate(
            zip(rows.tolist(), values, count.tolist(), strict=True)
        ):
            action = Action(
                -1 - number, self._points[row], row, folds - 1, 0, variance / folds + nugget, 1.0
            )
            observations.append((action, float(value)))
        if observations:
            learner.observe_all(observations)
        return learner

    def _is_fit_due(self, n_started: int) -> bool:
        """Return whether the model of the scores is to be fitted again."""
        if n_started < N_INITIAL:
            return False
        return self._model is None or n_started >= REFIT_GROWTH * self._n_fitted

    def _fit(self, categorical: Sequence[int], rows: Index, values: Array, noise: Array) -> Model:
        """Return the model of the scores, fitted again if there are enough new configurations."""
        family = Learned(restarts=1) if self._cheap else Learned()
        points = self._points[rows]
        extent = np.ones(points.shape[1])
        if len(values) < N_INITIAL:
            return unfitted(family, extent, values)
        if self._race_model is not None:
            race = self._race_model
            kernel = named_kernel(family.kernel, race.lengthscales, race.variance)
            return Model(kernel, race.centre, race.nugget, float("nan"))
        if self._is_fit_due(len(values)) or self._model is None:
            seed = self.seed % 2**31 + len(values)
            self._model = fit(family, points, values, noise, extent, None, seed, categorical)
            self._n_fitted = len(values)
        return self._model
