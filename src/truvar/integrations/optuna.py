"""`TruVaRSampler`: TruVaR as a sampler of Optuna studies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from truvar._typing import Array
from truvar.acquisition import Policy, policy_named
from truvar.algorithm.learner import ActiveLearner
from truvar.domain.action import Action
from truvar.domain.domain import Domain
from truvar.domain.goals import Maximize, Minimize
from truvar.exceptions import TruvarError, import_optional
from truvar.integrations.cost_model import predict_costs
from truvar.integrations.optuna_space import SearchSpace
from truvar.models.fit import Learned, Model, fit, unfitted
from truvar.models.surrogate import Prior
from truvar.validation import check_integer, check_nonnegative

optuna = import_optional("optuna", "TruVaRSampler", "optuna")

LEAST = 3  # finished trials before there is a model
LEAST_NOISE = 1e-8  # of the prior variance: values said to be exact may contradict a kernel that was learned


class TruVaRSampler(optuna.samplers.BaseSampler):  # type: ignore[misc, name-defined]  # its types are not ours
    """Suggests the parameters that reduce most what is not known of the optimum, per unit cost.

    Trials under way count as pending, so that parallel workers, in one process or many, do not repeat each other. All
    that it knows it reads from the study's storage.

    seed        of the points that are considered
    points      how many of them
    noise       the user attribute of a trial that holds the variance of its value; where no trial has it: learned
    cost        the user attribute that holds what a trial cost; where some have it, the gain is per predicted cost
    policy      the decision rule, or its name; default `TruVaR()`
    independent_sampler  for parameters that not all trials have; default: random
    """

    def __init__(
        self,
        *,
        seed: int | None = None,
        points: int = 512,
        noise: str = "noise",
        cost: str = "cost",
        policy: Policy | str | None = None,
        independent_sampler: Any = None,
    ) -> None:
        self._rng = np.random.default_rng(seed)
        self._independent = independent_sampler or optuna.samplers.RandomSampler(seed=seed)
        self._points = check_integer(points, "points", minimum=2)
        self._noise, self._cost = noise, cost
        self._policy: Policy = policy_named(policy or "truvar")
        self._common = optuna.search_space.IntersectionSearchSpace()

    def reseed_rng(self) -> None:
        self._rng = np.random.default_rng()
        self._independent.reseed_rng()

    def infer_relative_search_space(self, study: Any, trial: Any) -> dict[str, Any]:
        space = self._common.calculate(study)
        return {name: distribution for name, distribution in space.items() if not distribution.single()}

    def sample_independent(self, study: Any, trial: Any, param_name: str, param_distribution: Any) -> Any:
        self._raise_error_if_multi_objective(study)
        return self._independent.sample_independent(study, trial, param_name, param_distribution)

    def sample_relative(self, study: Any, trial: Any, search_space: dict[str, Any]) -> dict[str, Any]:
        self._raise_error_if_multi_objective(study)
        if not search_space:
            return {}
        done, running = self._trials(study, trial, search_space)
        space = SearchSpace(search_space)
        told = space.encode([t.params for t in done])
        goal = Maximize(False) if study.direction == optuna.study.StudyDirection.MAXIMIZE else Minimize(False)
        values = goal.sign * np.array([t.value for t in done], dtype=float)
        best = [done[i].params for i in np.argsort(-values)[:3]]
        candidates = space.candidates(self._points, [*best, *(t.params for t in done)], best, self._rng)
        index = self._choose(goal, told, goal.sign * values, space, candidates, done, running)
        return {name: candidates[index][name] for name in search_space}

    # -- inside --------------------------------------------------------------------------------------------------------

    def _trials(self, study: Any, trial: Any, space: Mapping[str, Any]) -> tuple[list[Any], list[Any]]:
        """Trials with a finite value and all the parameters, and those of others that are under way. What failed or
        was pruned has no value of the objective.
        """
        state = optuna.trial.TrialState
        trials = study._get_trials(deepcopy=False, states=(state.COMPLETE, state.RUNNING), use_cache=True)
        whole = [t for t in trials if t.number != trial.number and all(_has(t, name, space[name]) for name in space)]
        done = [t for t in whole if t.state == state.COMPLETE and np.isfinite(t.value)]
        return done, [t for t in whole if t.state == state.RUNNING]

    def _choose(
        self,
        goal: Any,
        told: Array,
        values: Array,
        space: SearchSpace,
        candidates: Sequence[Mapping[str, Any]],
        done: Sequence[Any],
        running: Sequence[Any],
    ) -> int:
        """The index of the best candidate."""
        points = space.encode(candidates)
        domain = Domain(space.columns, points, np.tile([0.0, 1.0], (points.shape[1], 1)))
        given = [self._attribute(t, self._noise) for t in done]
        known = np.array([np.nan if g is None else g for g in given], dtype=float)
        model = self._model(told, values, known)
        least = LEAST_NOISE * float(model.kernel.diag(points[:1])[0])
        noise = np.maximum(np.where(np.isnan(known), model.noise or 0.0, known), least)
        usual = float(np.median(noise)) if len(noise) else float(model.noise or 0.0)
        cost = self._prices(told, done, points)
        prior = Prior(model.kernel, model.mean, usual)
        learner = ActiveLearner(domain, goal, self._policy, prior, cost, int(self._rng.integers(2**31)))
        for number, (x, y, variance) in enumerate(zip(told, values, noise, strict=True)):
            learner.observe(Action(number, x, None, None, 0, float(variance), 1.0), float(y), [])
        pending = [
            Action(len(done) + number, x, None, None, 0, usual, 1.0)
            for number, x in enumerate(space.encode([t.params for t in running]))
        ]
        learner.set_pending(pending)
        _, choice = learner.choose(None, pending, len(done) + len(pending))
        return choice.row if choice is not None else int(np.argmax(learner.posterior.pending_variance))

    def _model(self, told: Array, values: Array, known: Array) -> Model:
        """Kernel, mean and noise: learned from the trials. Where some say how noisy they are, that is taken as given,
        and the median of it for the others.
        """
        extent, scatter = np.ones(told.shape[1]), bool(np.isnan(known).all())
        if len(values) < LEAST:
            return unfitted(Learned(noise=True), extent, values)
        noise = 0.0 if scatter else np.where(np.isnan(known), np.nanmedian(known), known)
        model = fit(Learned(noise=scatter, restarts=2), told, values, noise, extent, None, len(values))
        return model if scatter else Model(model.kernel, model.mean, float(np.nanmedian(known)), model.log_likelihood)

    def _prices(self, told: Array, done: Sequence[Any], points: Array) -> Array | None:
        """The predicted cost at the points, if any trial has one."""
        costs = [self._attribute(t, self._cost) for t in done]
        have = [i for i, cost in enumerate(costs) if cost is not None]
        if not have:
            return None
        return predict_costs(told[have], np.array([costs[i] for i in have], dtype=float), points, len(have))

    @staticmethod
    def _attribute(trial: Any, name: str) -> float | None:
        value = trial.user_attrs.get(name)
        if value is None:
            return None
        try:
            return check_nonnegative(value, f"user attribute {name!r} of trial {trial.number}")
        except TruvarError as error:
            raise TruvarError(f"{error}; or name another attribute: TruVaRSampler({name}=...)") from None


def _has(trial: Any, name: str, distribution: Any) -> bool:
    """Whether a trial has a value of the parameter that the distribution as it is now allows."""
    return name in trial.params and bool(distribution._contains(distribution.to_internal_repr(trial.params[name])))
