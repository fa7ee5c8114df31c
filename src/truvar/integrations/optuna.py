"""`TruVaRSampler`: truvar's default policy as a sampler for Optuna studies."""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from threading import RLock
from typing import Any

import numpy as np

from truvar._typing import Array
from truvar.acquisition import Policy, policy_named
from truvar.acquisition.registry import DEFAULT_POLICY
from truvar.algorithm.learner import ActiveLearner
from truvar.domain.action import Action
from truvar.domain.candidates import CoordinateFunction
from truvar.domain.costs import Cost
from truvar.domain.exclusions import Place
from truvar.domain.goals import Goal, Maximize, Minimize
from truvar.exceptions import InvalidArgumentError, import_optional
from truvar.integrations._optuna_space import SearchSpace
from truvar.models.cost_model import CostModel
from truvar.models.likelihoods.gaussian import LARGEST_LEARNED
from truvar.models.priors import Learned, Prior
from truvar.study.study import Study
from truvar.validation import check_integer, check_nonnegative

optuna = import_optional("optuna", "TruVaRSampler", "optuna")
_TrialState = optuna.trial.TrialState

# Smallest noise variance, as a share of the variance of the values: values reported as exact may
# contradict each other.
_MIN_NOISE = 1e-8
# New trials that a model takes one after the other, as it would have during a run; more of them
# are taken together.
_MAX_REPLAYED = 500
# Share of the trials so far after which the hyperparameters are fitted again, as a divisor.
_REFIT_DIVISOR = 4
# Trials that are less likely to succeed are not made, as long as others can be.
_MIN_SUCCESS_PROBABILITY = 0.7
# System attribute of a trial with the parameters that were chosen for it.
_CHOSEN_KEY = "truvar:params"
_MAX_ATTRIBUTE = 2000  # characters of a system attribute; some databases allow no more
# A trial that has no parameters after so long is not being chosen for any more.
_CHOOSING_SECONDS = 10.0


class TruVaRSampler(optuna.samplers.BaseSampler):  # type: ignore[misc, name-defined]  # Optuna may not be installed
    """A sampler that suggests what reduces the uncertainty about the optimum most, per cost.

    The search space is a box of truvar with continuous, integer, logarithmic and categorical
    parameters; kernel, mean, noise and a transform of the values are learned, and averaged over.
    Failed trials, those that violate a constraint, and pruned ones without a reported value teach
    it where trials fail. Pruned trials with a value count with that value, but as no better than
    the median of the trials completed by then. Parameters that only some trials have are searched
    together with the choices that decide about them.

    Running trials count as pending, so that parallel workers do not repeat each other, in one
    process or in several, even with the same seed. Everything the sampler knows is read from the
    study's storage.

    Args:
        seed: Seed of everything that is drawn.
        points: Number of points, at most, that sums over the search space run over.
        noise: User attribute of a trial with the variance of its value. If no trial has it, the
            noise is learned.
        cost: User attribute of a trial with its cost. If some trials have it, gains are divided by
            the predicted cost.
        policy: Policy or its name. Default: "auto".
        goal: What to look for, such as `LevelSet(0.5)`. Default: the optimum in the direction of
            the study.
        independent_sampler: Sampler for parameters that have no trial to learn from yet. Default:
            random.

    Raises:
        InvalidArgumentError: If `points` is not an integer of at least 2, the policy is neither a
            policy nor a name, or the goal is about several quantities.
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
        points: int = 1000,
        noise: str = "noise",
        cost: str = "cost",
        policy: Policy | str | None = None,
        goal: Goal | None = None,
        independent_sampler: Any = None,
    ) -> None:
        if goal is not None and goal.parts:
            raise InvalidArgumentError(
                f"the goal must be about the one value of a trial, got {goal!r}; give the limits of "
                "other outcomes as constraints of the trials"
            )
        self._seed = int(np.random.default_rng(seed).integers(2**31))
        self._independent = independent_sampler
        self._points = check_integer(points, "points", minimum=2)
        self._noise_attribute = noise
        self._cost_attribute = cost
        self._policy: Policy = policy_named(policy or DEFAULT_POLICY)
        self._goal = goal
        self._model: _TrialModel | None = None
        self._lock = RLock()

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled: the model is made again from the trials."""
        return {**self.__dict__, "_model": None, "_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore what was pickled."""
        self.__dict__.update(state)
        self._lock = RLock()

    def reseed_rng(self) -> None:
        """Leave the seed unchanged.

        Draws for a trial depend on its number, which no two workers share.
        """
        if self._independent is not None:
            self._independent.reseed_rng()

    def infer_relative_search_space(self, study: Any, trial: Any) -> dict[str, Any]:
        """Return the parameters with more than one value, with their latest distributions."""
        states = (_TrialState.COMPLETE, _TrialState.PRUNED, _TrialState.FAIL)
        found: dict[str, Any] = {}
        for each in study._get_trials(deepcopy=False, states=states, use_cache=True):
            found |= each.distributions
        return {name: found[name] for name in sorted(found) if not found[name].single()}

    def sample_independent(
        self, study: Any, trial: Any, param_name: str, param_distribution: Any
    ) -> Any:
        """Return a value for a parameter that there is nothing to learn about from yet."""
        self._raise_error_if_multi_objective(study)
        if self._independent is not None:
            return self._independent.sample_independent(
                study, trial, param_name, param_distribution
            )
        if param_distribution.single():
            return param_distribution.to_external_repr(getattr(param_distribution, "low", 0))
        space = SearchSpace({param_name: param_distribution})
        rng = np.random.default_rng([self._seed, trial.number, zlib.crc32(param_name.encode())])
        return space.decode(space.draw(rng))[param_name]

    def sample_relative(
        self, study: Any, trial: Any, search_space: dict[str, Any]
    ) -> dict[str, Any]:
        """Return values for the parameters that trials had.

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
        trials = study._get_trials(deepcopy=False, use_cache=False)
        with self._lock:
            model = self._updated_model(study, trials, search_space)
            running = [
                t for t in trials if t.state == _TrialState.RUNNING and t.number != trial.number
            ]
            model.set_running(
                [params for each in running if (params := _chosen_params(each, search_space))]
            )
            undecided = [t for t in running if t.number < trial.number and _is_being_chosen(t)]
            for other in undecided:  # its worker chooses the same now, so that this one must not
                model.add_running(model.choose(other.number))
            point = model.choose(trial.number)
        params = model.space.decode(point)
        _publish(study, trial, params, search_space)
        return params

    def study(self, study: Any) -> Study:
        """Return a truvar study of the trials so far, which has results, plots and reports.

        Args:
            study: The Optuna study.

        Raises:
            InvalidArgumentError: If no trial has a parameter that can take more than one value.
            ValueError: If the study has several objectives.
        """
        self._raise_error_if_multi_objective(study)
        space = SearchSpace(self.infer_relative_search_space(study, None))
        if not space.distributions:
            raise InvalidArgumentError(
                "a study needs parameters to search, got trials without any; run some first"
            )
        trials = study.get_trials(deepcopy=False)
        model = _TrialModel(self, space, self._resolved_goal(study), trials)
        domain = replace(model.domain, parameters=space.labelled_parameters())
        own = Study(domain, model.learner.goal, policy=self._policy, seed=self._seed)
        for action, value in model.learner.observations:
            noise = action.noise if action.noise_given else None
            own.tell(domain.named(action.point), value, noise=noise)
        for failure in model.learner.failures:
            own.fail(domain.named(failure.action.point))
        return own

    def _resolved_goal(self, study: Any) -> Goal:
        if self._goal is not None:
            return self._goal
        return (
            Maximize(False)
            if study.direction == optuna.study.StudyDirection.MAXIMIZE
            else Minimize(False)
        )

    def _updated_model(
        self, study: Any, trials: Sequence[Any], search_space: Mapping[str, Any]
    ) -> _TrialModel:
        """Return the model with all finished trials.

        It is the present one if they only add to what it has seen.
        """
        space = SearchSpace(search_space)
        finished = [
            t.params for t in trials if t.state in (_TrialState.COMPLETE, _TrialState.PRUNED)
        ]
        if any(search_space.keys() - params.keys() for params in finished):
            space.learn_conditions(finished)
        goal = self._resolved_goal(study)
        if self._model is None or not self._model.continues(study, space, goal):
            self._model = _TrialModel(self, space, goal, trials, study)
        else:
            model = self._model
            self._model = None  # if it cannot take the trials, it is made again from all of them
            model.take(trials)
            self._model = model
        return self._model


class _TrialModel:
    """The model of the trials of a study over one search space.

    Args:
        sampler: The sampler, whose settings count.
        space: The search space.
        goal: What to look for.
        trials: Trials of the study, finished or not.
        study: The study.
    """

    def __init__(
        self,
        sampler: TruVaRSampler,
        space: SearchSpace,
        goal: Goal,
        trials: Sequence[Any],
        study: Any = None,
    ) -> None:
        self.space = space
        self.goal = goal
        self.domain = space.domain(sampler._points)
        self._sampler = sampler
        self._storage = None if study is None else (study._storage, study._study_id)
        self._seen: set[int] = set()
        self._costs: list[tuple[Array, float]] = []
        self._n_costs_used = 0
        self._running: list[Action] = []
        self._allowed_again: set[int] = set()
        prior = Prior(_RarelyFitted(), None, None)
        self.learner = ActiveLearner(self.domain, goal, sampler._policy, prior, None, sampler._seed)
        self.learner.min_success = _MIN_SUCCESS_PROBABILITY
        self.take(trials)

    def continues(self, study: Any, space: SearchSpace, goal: Goal) -> bool:
        """Return whether study, space and goal are still the same."""
        same_space = space.distributions == self.space.distributions
        same_conditions = [str(each) for each in space.conditions] == [
            str(each) for each in self.space.conditions
        ]
        same_study = self._storage == (study._storage, study._study_id)
        return same_study and same_space and same_conditions and goal == self.goal

    def take(self, trials: Sequence[Any]) -> None:
        """Take the trials that finished since."""
        completed = [t for t in trials if t.state == _TrialState.COMPLETE and np.isfinite(t.value)]
        new = [t for t in trials if t.state.is_finished() and t.number not in self._seen]
        if not completed:  # what pruned trials are no better than is not known yet
            new = [t for t in new if not _is_pruned_with_value(t)]
        usable = [t for t in new if self._is_usable(t)]
        usable.sort(key=_order_of_completion)
        if len(usable) > _MAX_REPLAYED:
            self._take_together(usable, completed)
        else:
            # A model of stored trials becomes the one that saw them finish.
            for each in usable:
                self._take_one(each, completed)
        self._seen |= {t.number for t in new}

    def _take_one(self, trial: Any, completed: Sequence[Any]) -> None:
        """Take a finished trial, and fit the hyperparameters if they are due."""
        action, value, cost = self._outcome(trial, completed)
        self.learner.set_pending([])
        if value is None:
            self.learner.fail(action, _failure_reason(trial))
        else:
            self.learner.observe(action, value, [])
        if cost is not None:
            self._costs.append((action.point, cost))

    def _take_together(self, trials: Sequence[Any], completed: Sequence[Any]) -> None:
        """Take many finished trials, and fit the hyperparameters once."""
        observed: list[tuple[Action, float]] = []
        failed: list[tuple[Action, str]] = []
        for each in trials:
            action, value, cost = self._outcome(each, completed)
            if value is None:
                failed.append((action, _failure_reason(each)))
            else:
                observed.append((action, value))
            if cost is not None:
                self._costs.append((action.point, cost))
        if observed:
            self.learner.set_pending([])
            self.learner.observe_all(observed)
        for action, reason in failed:
            self.learner.fail(action, reason)

    def _outcome(
        self, trial: Any, completed: Sequence[Any]
    ) -> tuple[Action, float | None, float | None]:
        """Return what a finished trial did, its value, None if it failed, and its cost, if known."""
        value = None
        if not _is_infeasible(trial):
            value = _value(trial, completed, self.learner.goal.sign)
        cost = _attribute(trial, self._sampler._cost_attribute, "cost")
        return self._action(trial), value, cost

    def set_running(self, params: Sequence[Mapping[str, Any]]) -> None:
        """Replace the running trials, which count as pending."""
        self._running = []
        self.learner.set_pending([])
        for each in params:
            if self.space.contains(each):
                self.add_running(self.space.encode(each))

    def add_running(self, point: Array) -> None:
        """Add a running trial."""
        action = self._action_at(-1 - len(self._running), point)
        self._running.append(action)
        self.learner.add_pending(action)

    def choose(self, number: int) -> Array:
        """Return the point (d,) to try next.

        Args:
            number: Number of the trial, which decides about what is drawn.
        """
        if len(self._costs) > self._n_costs_used:
            self._use_costs()
        if not self.learner.observations and not self.learner.failures and not self._running:
            return self.space.draw(np.random.default_rng([self._sampler._seed, number]))
        table, choice = self.learner.choose(None, self._running, number)
        if (
            choice is not None
            and self._is_repeated(table.points[choice.row])
            and self._allow_one_again()
        ):
            table, choice = self.learner.choose(None, self._running, number)
        if choice is None:
            return self.space.draw(np.random.default_rng([self._sampler._seed, number]))
        return np.asarray(table.points[choice.row])

    def _is_repeated(self, point: Array) -> bool:
        """Return whether a point (d,) of a space of few points was measured before."""
        if self.domain.continuous or not self.learner.failures:
            return False
        return any(np.array_equal(action.point, point) for action, _ in self.learner.observations)

    def _allow_one_again(self) -> bool:
        """Allow the most promising failed place again, and return whether there is one.

        The cause may have passed.

        Only a space of few points needs it: in others the points around a failure can be tried.
        """
        failures = Counter(failure.action.site for failure in self.learner.failures)
        once = [site for site, count in failures.items() if count == 1 and site is not None]
        once = [site for site in once if site not in self._allowed_again]
        if not once:
            return False
        promise = self.learner.goal.sign * self.learner.posterior.mean
        best = max(once, key=lambda site: float(promise[site]))
        self._allowed_again.add(best)
        self.learner.allow(Place(point=self.domain.named(self.domain.points[best])))
        return True

    def _use_costs(self) -> None:
        """Predict costs from all that were reported."""
        points = np.array([point for point, _ in self._costs])
        costs = np.array([cost for _, cost in self._costs])
        model = CostModel(self.domain, points, costs, seed=len(costs))
        base: Any = CoordinateFunction(model.median)
        self.learner.use_cost(Cost(base=base))
        self._n_costs_used = len(self._costs)

    def _is_usable(self, trial: Any) -> bool:
        """Return whether it is known what a finished trial tried, and it lies in the space."""
        params = self._params(trial)
        if trial.state == _TrialState.FAIL and not (params and self.space.has_all_active(params)):
            return False
        return self.space.contains(params)

    def _params(self, trial: Any) -> dict[str, Any]:
        """Return the parameters of a finished trial.

        One that failed may not have asked for all that were chosen for it.
        """
        if trial.state == _TrialState.FAIL:
            return _chosen_params(trial, self.space.distributions)
        params: dict[str, Any] = trial.params
        return params

    def _action(self, trial: Any) -> Action:
        action = self._action_at(trial.number, self.space.encode(self._params(trial)))
        noise = _attribute(trial, self._sampler._noise_attribute, "noise")
        if noise is None:
            return action
        values = np.array([y for _, y in self.learner.observations])
        least = _MIN_NOISE * float(values.var()) if len(values) else 0.0
        return Action(
            action.id, action.point, action.site, None, 0, max(noise, least), 1.0, noise_given=True
        )

    def _action_at(self, number: int, point: Array) -> Action:
        site = None
        if not self.domain.continuous:
            site = self.domain.nearest(point)
            point = self.domain.points[site]
        noise: Any = self.learner.surrogate.noise
        variance = float(noise(point[None, :])[0]) if callable(noise) else float(np.asarray(noise))
        return Action(number, point, site, None, 0, variance, 1.0)


class _RarelyFitted(Learned):
    """A kernel family that is fitted again when there are a quarter more trials.

    A value that surprises the model has it fitted immediately, as in a study.
    """

    def is_refit_due(self, t: int) -> bool:
        """Return whether t is in 2, 3, ..., 8, 10, 12, 15, ..."""
        step = 2
        while step < t:
            step += max(1, step // _REFIT_DIVISOR)
        return step == t


def _order_of_completion(trial: Any) -> tuple[datetime, int]:
    """Return the key that sorts finished trials by the time at which they finished."""
    return (trial.datetime_complete or datetime.min, trial.number)


def _failure_reason(trial: Any) -> str:
    """Return why a trial counts as failed."""
    return "infeasible" if _is_infeasible(trial) else str(trial.state.name.lower())


def _is_pruned_with_value(trial: Any) -> bool:
    """Return whether a trial was pruned after it had reported a value."""
    return trial.state == _TrialState.PRUNED and bool(trial.intermediate_values)


def _is_infeasible(trial: Any) -> bool:
    """Return whether a trial violates one of its constraints, which are satisfied up to 0."""
    constraints = getattr(trial, "constraints", None)
    if constraints is None:  # before Optuna 5
        return any(each > 0 for each in trial.system_attrs.get("constraints") or ())
    return any(each > 0 for each in constraints.values())


def _value(trial: Any, completed: Sequence[Any], sign: int) -> float | None:
    """Return the value that a trial counts with; None if it failed.

    A pruned trial was judged not worth its time: its last value counts, but as no better than the
    median of the trials that were complete by then, or of the first one that completed later. Later
    ones do not change it any more.
    """
    value = trial.value
    if _is_pruned_with_value(trial):
        value = trial.intermediate_values[max(trial.intermediate_values)]
        before = [
            each.value for each in completed if each.datetime_complete <= trial.datetime_complete
        ]
        if not before and completed:
            before = [min(completed, key=lambda each: each.datetime_complete).value]
        if before and np.isfinite(value):
            median = float(np.median(before))
            value = min(value, median) if sign > 0 else max(value, median)
    if (
        trial.state == _TrialState.FAIL
        or value is None
        or not np.isfinite(value)
        or abs(value) > LARGEST_LEARNED
    ):
        return None
    return float(value)


def _chosen_params(trial: Any, distributions: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a running or failed trial, also those that it did not ask for.

    Args:
        trial: The trial.
        distributions: Distributions of the parameters.
    """
    parts: list[str] = []
    while (part := trial.system_attrs.get(f"{_CHOSEN_KEY}:{len(parts)}")) is not None:
        parts.append(part)
    try:
        internal: dict[str, float] = json.loads("".join(parts)) if parts else {}
    except json.JSONDecodeError:  # some parts are not written yet
        internal = {}
    chosen: dict[str, Any] = {
        name: distributions[name].to_external_repr(value)
        for name, value in internal.items()
        if name in distributions
    }
    chosen.update(trial.params)
    return chosen


def _publish(
    study: Any, trial: Any, params: Mapping[str, Any], distributions: Mapping[str, Any]
) -> None:
    """Write the chosen parameters to the storage.

    Other workers see them there before the objective asks for them.
    """
    text = json.dumps(
        {name: float(distributions[name].to_internal_repr(value)) for name, value in params.items()}
    )
    for part, start in enumerate(range(0, len(text), _MAX_ATTRIBUTE)):
        value = text[start : start + _MAX_ATTRIBUTE]
        study._storage.set_trial_system_attr(trial._trial_id, f"{_CHOSEN_KEY}:{part}", value)


def _is_being_chosen(trial: Any) -> bool:
    """Return whether another worker is choosing the parameters of a running trial."""
    if trial.params or f"{_CHOSEN_KEY}:0" in trial.system_attrs or trial.datetime_start is None:
        return False
    return bool(datetime.now() - trial.datetime_start < timedelta(seconds=_CHOOSING_SECONDS))


def _attribute(trial: Any, name: str, option: str) -> float | None:
    """Return a trial's user attribute as a number of at least 0; None without it.

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
        raise InvalidArgumentError(
            f"{error}, or name another attribute: TruVaRSampler({option}=...)"
        ) from None
