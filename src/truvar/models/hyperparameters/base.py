"""The interface of a hyperparameter model, and the result of a fit."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar

import numpy as np

from truvar._typing import Array
from truvar.domain.action import Action
from truvar.domain.candidates import model_sites
from truvar.domain.costs import NoiseLike, Tasks
from truvar.domain.domain import Domain
from truvar.exceptions import InvalidModelError
from truvar.messages import unknown_name
from truvar.models._coregionalization import TaskModel
from truvar.models._noise import NoiseModel
from truvar.models.ensemble import Ensemble, EnsembleModel
from truvar.models.fit import Model, fit, fit_kernel, training_data
from truvar.models.frozen import FrozenPosterior
from truvar.models.kernels import Coregionalized, check_kernel, with_categories
from truvar.models.likelihoods import LIKELIHOODS, Gaussian, Latent, Outcome
from truvar.models.mean import MeanFunction, is_mean_function
from truvar.models.observations import Observations
from truvar.models.priors import Learned, Prior, constant_mean, family_to_learn

if TYPE_CHECKING:
    import pandas as pd
    from sklearn.gaussian_process.kernels import Kernel

AnyModel = Model | EnsembleModel | NoiseModel | TaskModel
"""A fit as it is stored: the mode, the mode with a sample, or the noise."""

ModelT = TypeVar("ModelT", Model, EnsembleModel, NoiseModel, TaskModel)

Offset = Callable[[Array], Array]
"""The part of the prior mean that depends on the point: from points (q, d') to (q,)."""

_OUTLIER_NOISE = 1e6  # noise variance of an outlier, in squares of its deviation


@dataclass(frozen=True, eq=False)
class Setting:
    """The part of a model that observations do not change.

    Attributes:
        domain: The points that are predicted.
        kernel: The known kernel; None: it is learned.
        family: The kernel family whose hyperparameters are learned; None: the kernel is known.
        mean: The constant prior mean, on top of the mean function; None: estimated.
        mean_function: The part of the prior mean that depends on the point; None if it is constant.
        noise: The noise variance; None: learned.
        tasks: Correlated quantities that may be measured instead of the target.
        seed: Seed of the hyperparameter search.
        references: Values that matter, such as the thresholds of a level set, in ascending order:
            values measured far from all of them say little about the range of values elsewhere.
        learn_power: Whether the values may be modelled by a power of them.
        direction: 1 if the highest values are looked for, -1 if the lowest, 0 if neither.
        n_initial: Number of observations before a learned kernel or learned tasks are used.
        exact_model: Whether claims take a given kernel as the truth.
        likelihood: Name of the observation model, or the kind of values that are not normal.
    """

    domain: Domain
    kernel: Kernel | None
    family: Learned | None
    mean: float | None
    mean_function: MeanFunction | None
    noise: NoiseLike | None
    tasks: Tasks | None
    seed: int
    references: tuple[float, ...]
    learn_power: bool
    direction: int
    n_initial: int = 0
    exact_model: bool = False
    likelihood: str | Outcome = "gaussian"

    @classmethod
    def of(
        cls,
        domain: Domain,
        prior: Prior,
        seed: int,
        references: tuple[float, ...],
        learn_power: bool,
        direction: int,
    ) -> Setting:
        """Return the setting that a user describes by `prior`.

        Raises:
            InvalidModelError: If kernel, mean, noise and tasks do not make a model.
        """
        family = family_to_learn(prior)
        if prior.outcome is not None:
            _check_outcome(prior, prior.outcome, family)
        kernel = None
        mean_function = _mean_function(domain, prior, family)
        mean = constant_mean(prior, family)
        if family is None:
            given = check_kernel(prior.kernel, domain.points, domain.columns)
            kernel = with_categories(given, domain.categorical)
        tasks = prior.tasks
        noise = prior.noise
        if noise is None and tasks is not None and tasks.noise is not None:
            noise = 0.0  # every task has its own
        setting = cls(
            domain=domain,
            kernel=kernel,
            family=family,
            mean=mean,
            mean_function=mean_function,
            noise=noise,
            tasks=tasks,
            seed=seed,
            references=references,
            learn_power=learn_power,
            direction=direction,
            exact_model=prior.exact_model,
            likelihood=prior.likelihood,
        )
        if family is None and not setting.has_learned_tasks:
            return setting
        return replace(
            setting, n_initial=setting.schedule.initial_size(len(domain.columns), len(domain))
        )

    @property
    def has_learned_tasks(self) -> bool:
        """Whether there are tasks, and their covariance or the kernel is learned."""
        return self.tasks is not None and (self.tasks.learned or self.family is not None)

    @property
    def is_compared(self) -> bool:
        """Whether claims compare a given kernel with learned ones, which there are of one task."""
        return not self.exact_model and self.tasks is None

    @property
    def schedule(self) -> Learned:
        """When hyperparameters are fitted."""
        return self.family or Learned()

    @property
    def given_noise(self) -> NoiseLike:
        """The noise variance; 0 before it is learned."""
        return 0.0 if self.noise is None else self.noise

    @cached_property
    def observation_model(self) -> Gaussian:
        """The observation model in the user's units, of which fits make theirs."""
        if isinstance(self.likelihood, Outcome):
            return Latent(transform=self.likelihood.link(), outcome=self.likelihood)
        if self.likelihood not in LIKELIHOODS:
            raise InvalidModelError(unknown_name("likelihood", self.likelihood, LIKELIHOODS))
        return LIKELIHOODS[self.likelihood]()

    def variances(self, actions: Sequence[Action]) -> Array:
        """Return the variances of the values of measurements: (t,)."""
        noise = np.array([action.noise for action in actions], dtype=float)
        return self.observation_model.variance(noise)

    @cached_property
    def sites(self) -> Array:
        """The points that the posterior is kept at; with tasks, their index comes last."""
        return model_sites(self.domain.points, self.tasks)

    def adopt(self, model: Model) -> Setting:
        """Return the setting with a fitted model as known.

        Learned tasks are still learned, and so is their noise.
        """
        adopted = replace(
            self,
            kernel=with_categories(model.kernel, self.domain.categorical),
            mean=model.mean,
            family=None,
        )
        if adopted.has_learned_tasks or self.noise is not None:
            return adopted
        return replace(adopted, noise=self.observation_model.noise(float(model.noise or 0.0)))

    def residuals(self, observations: Observations) -> Array:
        """Return the observed values minus the mean function, (t,)."""
        if self.mean_function is None or not observations:
            return observations.values
        return observations.values - self.mean_function(observations.points)

    def references_of_residuals(self, residuals: Array) -> tuple[float, ...]:
        """Return references of the residuals: the nearest that each comes to the typical one."""
        if self.mean_function is None:
            return self.references
        differences = np.array(self.references)[:, None] - self.mean_function.values
        nearest = np.abs(differences - _typical(residuals)).argmin(axis=1)
        return tuple(differences[np.arange(len(differences)), nearest].tolist())

    def thresholds_at(self, points: Array, residuals: Array) -> Array | None:
        """Return the nearest threshold minus the mean function at points (q, d): (q,).

        None without one of them.

        The nearest is the one that, minus the mean function, comes nearest to the typical residual.
        """
        if self.mean_function is None or not self.references:
            return None
        distances = np.abs(np.array(self.references_of_residuals(residuals)) - _typical(residuals))
        return self.references[int(np.argmin(distances))] - self.mean_function(points)


def _typical(residuals: Array) -> float:
    return float(np.median(residuals)) if len(residuals) else 0.0


@dataclass(frozen=True, eq=False, kw_only=True)
class Fit:
    """The hyperparameters in use, and the observation model.

    Attributes:
        kernel: The most probable kernel of the target.
        site_kernel: The same for all sites, with tasks if there are some.
        mean: The constant prior mean; None: estimated by generalised least squares.
        offset: The part of the prior mean that depends on the point; None: there is none.
        noise: The noise in use, as given or as fitted.
        noise_of: Returns the fitted noise of a measurement that was told without one;
            None: none was fitted.
        tasks: The tasks with the noise in use; None without tasks.
        likelihood: The observation model in the units of the fit.
    """

    kernel: Kernel
    site_kernel: Kernel
    mean: float | None
    offset: Offset | None
    noise: NoiseLike
    likelihood: Gaussian
    noise_of: Callable[[Action], float] | None = None
    tasks: Tasks | None = None

    @property
    def averaged(self) -> EnsembleModel | TaskModel | None:
        """The hyperparameters that predictions are averaged over; None with one kernel."""
        return None

    @property
    def outliers(self) -> tuple[int, ...]:
        """Positions of the observations that are left out."""
        return ()

    @property
    def is_estimated(self) -> bool:
        """Whether the hyperparameters were fitted to observations."""
        return True

    @property
    def learned_tasks(self) -> Tasks | None:
        """The tasks with learned covariance, noise and mean; None without tasks."""
        return self.tasks

    def with_noise(self, variance: float | None) -> Self:
        """Return the fit with a fitted noise variance; None: unchanged."""
        if variance is None:
            return self
        noise = self.likelihood.noise(variance)
        return replace(self, noise=noise, noise_of=lambda action: noise)

    def inflate_outlier_noise(self, observations: Observations) -> Observations:
        """Return the observations with so much noise for the outliers that they say nothing."""
        if not self.outliers:
            return observations
        actions = {}
        for position in self.outliers:
            action, y = observations[position]
            noise = action.noise + _OUTLIER_NOISE * self._deviation(action, y) ** 2
            actions[position] = replace(action, noise=noise, noise_given=True)
        return observations.with_actions(actions)

    def _deviation(self, action: Action, y: float) -> float:
        """Return how far a value is from the prior mean."""
        raise AssertionError("there are no outliers without a transform")

    def new_ensemble(self, observations: Observations) -> Ensemble | None:
        """Return the prior averaged over the hyperparameters; None: nothing to average.

        Args:
            observations: Those that it will be conditioned on.
        """
        return None

    def pseudo_values(self, observations: Observations) -> PseudoValues | None:
        """Return the normal values that stand for outcomes; None: the values are normal."""
        return None


class PseudoValues(NamedTuple):
    """Normal values that tell as much of a latent function as the outcomes do.

    Attributes:
        z: The values. (t,)
        noise: Their noise variances. (t,)
        mean: The constant mean of the function that belongs to them.
    """

    z: Array
    noise: Array
    mean: float


class Hyperparameters(ABC):
    """A model of the hyperparameters: some are known, the others are fitted.

    Args:
        setting: The part of the model that observations do not change.

    Attributes:
        is_refitted: Whether hyperparameters are fitted again from time to time, which changes the
            posterior everywhere.
        hides_noise: Whether noise variances that did not come with a value are fitted along with
            the kernel.
        min_observations: Number of observations before which no study is called finished.
    """

    is_refitted = True
    hides_noise = False
    min_observations = 0

    def __init__(self, setting: Setting) -> None:
        self.setting = setting

    def is_fit_due(
        self, observations: Observations, current: Fit, models: Mapping[int, AnyModel]
    ) -> bool:
        """Return whether the hyperparameters are to be fitted after the last observation.

        Args:
            observations: All of them.
            current: The last fit.
            models: Earlier fits by number of observations: where there was one, there is one again.
        """
        if len(observations) in models:
            return self.is_refitted
        return self._is_scheduled(observations, current)

    def is_fit_due_since(self, n_before: int, observations: Observations, current: Fit) -> bool:
        """Return whether the schedule has a fit after one of the observations behind the first.

        Args:
            n_before: Number of observations before.
            observations: All of them.
            current: The last fit.
        """
        counts = range(n_before + 1, len(observations) + 1)
        return any(self._is_scheduled(observations[:count], current) for count in counts)

    @abstractmethod
    def _is_scheduled(self, observations: Observations, current: Fit) -> bool:
        """Return whether a fit is due that was not made before."""

    @abstractmethod
    def fit(self, observations: Observations, models: dict[int, AnyModel]) -> Fit:
        """Return the hyperparameters to use.

        Args:
            observations: All of them.
            models: Earlier fits by number of observations, which are not repeated. A new one is
                added.
        """

    def is_fitted(self, observations: Observations) -> bool:
        """Return whether there are observations enough to make claims with."""
        return True

    def has_new_outliers(self, observations: Observations, current: Fit) -> bool:
        """Return whether the outliers differ from those of the current fit."""
        return False

    def average(
        self, observations: Observations, current: Fit, posterior: FrozenPosterior, n: int
    ) -> FrozenPosterior:
        """Return the posterior averaged over what is unknown of the model, for claims.

        Args:
            observations: All of them.
            current: The last fit.
            posterior: The posterior that choices are made with.
            n: Number of points that are predicted.
        """
        return posterior

    def given_noise(self, actions: Sequence[Action]) -> Array:
        """Return noise variances, NaN where they are fitted along with the kernel: (t,)."""
        is_given = np.array([action.noise_given for action in actions], dtype=bool)
        return np.where(is_given | (not self.hides_noise), self.setting.variances(actions), np.nan)

    def fit_table(self, frame: pd.DataFrame, value: str | None) -> Model:
        """Fit kernel and mean (and noise, if it is learned) to another data set.

        Args:
            frame: A table with the domain's columns and the column of values.
            value: Name of the column of values; None: the only other column.
        """
        setting = self.setting
        domain = setting.domain
        family = setting.family
        if isinstance(setting.likelihood, Outcome):
            raise InvalidModelError(
                f"a model is fitted to a table of numbers, and outcome {setting.likelihood.name!r} "
                "has none; tell the earlier measurements as measurements of this study"
            )
        if family is not None and family.transform == "log":
            raise InvalidModelError(
                'a model is fitted to a table as its values are, got transform="log"; leave out '
                "the transform and give logarithms as values"
            )
        points, values = training_data(frame, domain.columns, value, domain)
        if setting.mean_function is not None:
            values = values - setting.mean_function(points)
        given = self._table_noise()
        noise = None if given is None else setting.observation_model.variance(given)
        if family is not None:
            family = replace(family, noise=family.noise or noise is None)
            return fit(
                family,
                points,
                values,
                0.0 if noise is None else noise,
                domain.extent,
                setting.mean,
                setting.seed,
                domain.categorical,
            )
        if domain.categorical:
            raise InvalidModelError(
                "a kernel of your own is fitted to numbers only, and this domain has categories; "
                "leave out the kernel"
            )
        model = fit_kernel(setting.kernel, points, values, noise, setting.mean, setting.seed)
        is_noise_wanted = setting.noise is None and not setting.has_learned_tasks
        return model if is_noise_wanted else replace(model, noise=None)

    def _table_noise(self) -> float | None:
        """Return the noise variance of values in a table; None: it is learned with the rest."""
        setting = self.setting
        tasks = setting.tasks
        given: Any = setting.noise
        if tasks is not None and tasks.noise is not None:
            given = tasks.noise[0]  # the table has values of the target
        # A column or function of noise says nothing about other data.
        return float(given) if isinstance(given, Real) else None


def fit_once(
    models: dict[int, AnyModel],
    count: int,
    kind: type[ModelT],
    fit_from: Callable[[ModelT | None], ModelT],
) -> ModelT:
    """Return the fit to so many observations, which is made if there is none yet.

    Args:
        models: Fits by number of observations.
        count: Number of observations.
        kind: Class of the fit.
        fit_from: Returns the fit, given the last one to fewer observations, if that is of the same
            class.
    """
    known = models.get(count)
    if isinstance(known, kind):
        return known
    earlier = [number for number in models if number < count]
    previous = models[max(earlier)] if earlier else None
    found = fit_from(previous if isinstance(previous, kind) else None)
    models[count] = found
    return found


def known_site_kernel(kernel: Kernel, tasks: Tasks | None) -> Kernel:
    """Return the kernel of the sites, given the covariance between the tasks."""
    if tasks is None:
        return kernel
    if tasks.covariance is None:
        raise AssertionError("a covariance that is learned has a model")
    return Coregionalized(kernel, tasks.covariance)


def known_offset(setting: Setting) -> Offset | None:
    """Return the part of the prior mean that depends on point and task, if no task is learned."""
    tasks = setting.tasks
    mean_function = setting.mean_function
    if tasks is None:
        return mean_function
    if tasks.mean is not None:
        task_means = np.asarray(tasks.mean, dtype=float) - (setting.mean or 0.0)
        return lambda points: np.asarray(task_means[points[:, -1].astype(int)])
    if mean_function is None:
        return None
    return lambda points: mean_function(points[:, :-1])


def _check_outcome(prior: Prior, outcome: Outcome, family: Learned | None) -> None:
    """Check that a model goes with values that are not normal.

    Raises:
        InvalidModelError: If it does not.
    """
    refused = {
        "a kernel of your own": family is None,
        "marginalise=False": family is not None and not family.marginalise,
        "a transform": family is not None and family.transform != "auto",
        "a mean": prior.mean is not None,
        "a noise variance": prior.noise is not None,
        "tasks": prior.tasks is not None,
        "exact_model": prior.exact_model,
    }
    given = [what for what, is_given in refused.items() if is_given]
    if given:
        raise InvalidModelError(
            f"with outcome {outcome.name!r} the model is learned on its own scale, got "
            f"{' and '.join(given)}; leave it out, or leave out the outcome"
        )


def _mean_function(domain: Domain, prior: Prior, family: Learned | None) -> MeanFunction | None:
    """Return the part of the prior mean that depends on the point, or None if it is constant.

    Raises:
        InvalidModelError: If it does not go with the tasks or the transform.
    """
    if prior.mean is None or not is_mean_function(prior.mean):
        return None
    tasks = prior.tasks
    if tasks is not None and tasks.mean is not None:
        raise InvalidModelError(
            "the tasks have their own means, got a mean that depends on the point too; leave out "
            "one of them"
        )
    if family is not None and family.transform == "log":
        raise InvalidModelError(
            'transform="log" models the logarithms of the values, got a mean that depends on the '
            "point, which is in the units of the values; leave out the transform, or give "
            "logarithms as values and mean"
        )
    return MeanFunction(domain, prior.mean)
