"""`TruVaRSampler`: TruVaR as a sampler for Optuna studies."""

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
from truvar.exceptions import InvalidArgumentError, import_optional
from truvar.integrations.cost_model import predict_costs
from truvar.integrations.optuna_space import SearchSpace
from truvar.models.fit import Learned, Model, fit, unfitted
from truvar.models.kernels import indicator_columns
from truvar.models.surrogate import Prior
from truvar.validation import check_integer, check_nonnegative

optuna = import_optional("optuna", "TruVaRSampler", "optuna")

MIN_TRIALS = 3  # finished trials before a model is fitted
N_BEST = 3  # best trials near which candidates are drawn
# Smallest noise variance, as a share of the prior variance: values reported as exact may not fit a learned kernel.
MIN_NOISE = 1e-8


class TruVaRSampler(optuna.samplers.BaseSampler):  # type: ignore[misc, name-defined]  # Optuna may not be installed
    """A sampler that suggests the parameters with the largest reduction of uncertainty about the optimum, per cost.

    Running trials count as pending, so that parallel workers do not repeat each other, in one process or in several.
    Everything the sampler knows is read from the study's storage.

    Args:
        seed: Seed of the candidates.
        points: Number of candidates that are spread over the search space.
        noise: User attribute of a trial with the variance of its value. If no trial has it, the noise is learned.
        cost: User attribute of a trial with its cost. If some trials have it, gains are divided by the predicted cost.
        policy: Policy or its name. Default: `TruVaR()`.
        independent_sampler: Sampler for parameters that not all trials have. Default: random.

    Raises:
        InvalidArgumentError: If `points` is not an integer of at least 2, or the policy is neither a policy nor a name.
        UnknownPolicyError: If there is no policy of that name.

    Example:
        ```python
        study = optuna.create_study(sampler=TruVaRSampler(seed=0))
        study.optimize(objective, n_trials=30)
        ```
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
        self._noise_attribute = noise
        self._cost_attribute = cost
        self._policy: Policy = policy_named(policy or "truvar")
        self._common_space = optuna.search_space.IntersectionSearchSpace()

    def reseed_rng(self) -> None:
        """Seed the random numbers again; Optuna calls this in each worker."""
        self._rng = np.random.default_rng()
        self._independent.reseed_rng()

    def infer_relative_search_space(self, study: Any, trial: Any) -> dict[str, Any]:
        """Return the parameters that all trials have and that can take more than one value."""
        space = self._common_space.calculate(study)
        return {name: distribution for name, distribution in space.items() if not distribution.single()}

    def sample_independent(self, study: Any, trial: Any, param_name: str, param_distribution: Any) -> Any:
        """Return a value for a parameter outside the common search space, from the independent sampler."""
        self._raise_error_if_multi_objective(study)
        return self._independent.sample_independent(study, trial, param_name, param_distribution)

    def sample_relative(self, study: Any, trial: Any, search_space: dict[str, Any]) -> dict[str, Any]:
        """Return values for the parameters of the common search space.

        Args:
            study: The Optuna study.
            trial: The trial to suggest for.
            search_space: Distributions by parameter.

        Raises:
            InvalidArgumentError: If a trial's noise or cost is not a number of at least 0.
        """
        self._raise_error_if_multi_objective(study)
        if not search_space:
            return {}
        finished, running = self._trials(study, trial, search_space)
        space = SearchSpace(search_space)
        goal = Maximize(False) if study.direction == optuna.study.StudyDirection.MAXIMIZE else Minimize(False)
        values = np.array([t.value for t in finished], dtype=float)
        best = [finished[i].params for i in np.argsort(-goal.sign * values)[:N_BEST]]
        candidates = space.candidates(self._points, [*best, *(t.params for t in finished)], best, self._rng)
        index = self._choose(goal, values, space, candidates, finished, running)
        return space.decode(candidates[index])

    def _trials(self, study: Any, trial: Any, space: Mapping[str, Any]) -> tuple[list[Any], list[Any]]:
        """Return the finished trials with a finite value, and the other running ones, that have all parameters.

        Failed and pruned trials are ignored, because they have no value of the objective.
        """
        state = optuna.trial.TrialState
        trials = study._get_trials(deepcopy=False, states=(state.COMPLETE, state.RUNNING), use_cache=True)
        usable = [
            t
            for t in trials
            if t.number != trial.number and all(_has_parameter(t, name, space[name]) for name in space)
        ]
        finished = [t for t in usable if t.state == state.COMPLETE and np.isfinite(t.value)]
        running = [t for t in usable if t.state == state.RUNNING]
        return finished, running

    def _choose(
        self,
        goal: Any,
        values: Array,
        space: SearchSpace,
        points: Array,
        finished: Sequence[Any],
        running: Sequence[Any],
    ) -> int:
        """Return the index of the best candidate, given the finished trials and their values."""
        observed = space.encode([t.params for t in finished])
        domain = space.domain(points)
        given_noise = self._noise_variances(finished)
        model = self._fit_model(domain, observed, values, given_noise)
        min_noise = MIN_NOISE * float(model.kernel.diag(points[:1])[0])
        noise = np.maximum(np.where(np.isnan(given_noise), model.noise or 0.0, given_noise), min_noise)
        usual_noise = float(np.median(noise)) if len(noise) else float(model.noise or 0.0)
        cost = self._predicted_costs(domain, observed, finished)
        prior = Prior(model.kernel, model.mean, usual_noise)
        learner = ActiveLearner(domain, goal, self._policy, prior, cost, int(self._rng.integers(2**31)))
        for number, (x, y, variance) in enumerate(zip(observed, values, noise, strict=True)):
            learner.observe(Action(number, x, None, None, 0, float(variance), 1.0), float(y), [])
        pending = [
            Action(len(finished) + number, x, None, None, 0, usual_noise, 1.0)
            for number, x in enumerate(space.encode([t.params for t in running]))
        ]
        learner.set_pending(pending)
        _, choice = learner.choose(None, pending, len(finished) + len(pending))
        return choice.row if choice is not None else int(np.argmax(learner.posterior.pending_variance))

    def _noise_variances(self, trials: Sequence[Any]) -> Array:
        """Return the noise variances that the trials report, NaN where they do not."""
        given = [_attribute(t, self._noise_attribute, "noise") for t in trials]
        return np.array([np.nan if variance is None else variance for variance in given], dtype=float)

    def _fit_model(self, domain: Domain, observed: Array, values: Array, given_noise: Array) -> Model:
        """Return kernel, mean and noise learned from the trials.

        If some trials report their noise, that is used, with the median of it for the others.
        """
        extent = domain.extent
        categorical = domain.categorical
        if len(values) < MIN_TRIALS:
            return unfitted(Learned(noise=True), extent, values)
        if np.isnan(given_noise).all():
            return fit(Learned(noise=True, restarts=2), observed, values, 0.0, extent, None, len(values), categorical)
        usual = float(np.nanmedian(given_noise))
        noise = np.where(np.isnan(given_noise), usual, given_noise)
        family = Learned(noise=False, restarts=2)
        model = fit(family, observed, values, noise, extent, None, len(values), categorical)
        return Model(model.kernel, model.mean, usual, model.log_likelihood)

    def _predicted_costs(self, domain: Domain, observed: Array, finished: Sequence[Any]) -> Array | None:
        """Return the predicted costs at the candidates, or None if no trial has a cost."""
        costs = [_attribute(t, self._cost_attribute, "cost") for t in finished]
        known = [i for i, cost in enumerate(costs) if cost is not None]
        if not known:
            return None
        given = np.array([costs[i] for i in known], dtype=float)
        both = np.concatenate([observed[known], domain.points])
        unit, _ = indicator_columns((both - domain.bounds[:, 0]) / domain.extent, domain.categorical)
        return predict_costs(unit[: len(known)], given, unit[len(known) :], len(known))


def _attribute(trial: Any, name: str, option: str) -> float | None:
    """Return a user attribute of a trial as a number of at least 0, or None if the trial does not have it.

    Args:
        trial: The trial.
        name: Name of the attribute.
        option: Option of `TruVaRSampler` that names the attribute, for the message.
    """
    value = trial.user_attrs.get(name)
    if value is None:
        return None
    try:
        return check_nonnegative(value, f"user attribute {name!r} of trial {trial.number}")
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"{error}, or name another attribute: TruVaRSampler({option}=...)") from None


def _has_parameter(trial: Any, name: str, distribution: Any) -> bool:
    """Return whether a trial has a value of the parameter within the present distribution."""
    return name in trial.params and bool(distribution._contains(distribution.to_internal_repr(trial.params[name])))
