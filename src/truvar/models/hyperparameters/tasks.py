"""`LearnedTasks`: several tasks, of which the covariance, the kernel or both are learned."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from truvar._typing import Array
from truvar.domain.action import Action
from truvar.domain.costs import Tasks
from truvar.models._coregionalization import TaskEnsemble, TaskModel
from truvar.models._learned_tasks import TaskData, fit_tasks, task_outliers, unfitted_tasks
from truvar.models.frozen import FrozenPosterior
from truvar.models.hyperparameters.averaged import SampledFit, learned_likelihood
from truvar.models.hyperparameters.base import (
    AnyModel,
    Fit,
    Hyperparameters,
    Offset,
    Setting,
    fit_once,
)
from truvar.models.kernels import Coregionalized, covariance_function, prior_scale
from truvar.models.mean import MeanFunction
from truvar.models.model_average import with_uncertain_scale
from truvar.models.observations import Observations


@dataclass(frozen=True, eq=False)
class _TaskMeanFunction:
    """The mean function as a function of points (q, d + 1); 0 for tasks that do not have it.

    Attributes:
        function: The mean function of points (q, d); None: there is none.
        target_only: Whether only the target has it.
    """

    function: MeanFunction | None
    target_only: bool

    def __call__(self, points: Array) -> Array:
        values = np.zeros(len(points))
        if self.function is None:
            return values
        rows = points[:, -1] == 0 if self.target_only else np.ones(len(points), bool)
        if rows.any():
            values[rows] = self.function(np.ascontiguousarray(points[rows, :-1]))
        return values

    def offset(self, constants: Array, units: Array) -> Offset:
        """Return the prior mean of every task as a function of points (q, d + 1), in model units.

        Args:
            constants: Constant mean of each task, in the user's units. (T,)
            units: Divisors of the values of each task. (T,)
        """

        def offset(points: Array) -> Array:
            tasks = points[:, -1].astype(int)
            return np.asarray((constants[tasks] + self(points)) / units[tasks])

        return offset


@dataclass(frozen=True, eq=False, kw_only=True)
class TaskFit(SampledFit):
    """A fit of several tasks.

    Attributes:
        model: The fit as it is stored.
        covariance: Between the tasks, which multiplies `kernel`, in the user's units. (T, T)
        tasks: The tasks with the noise in use.
        mean_function: The part of the prior mean that depends on the point.
    """

    model: TaskModel
    covariance: Array
    tasks: Tasks
    mean_function: _TaskMeanFunction

    @property
    def learned_tasks(self) -> Tasks:
        """The tasks with learned covariance, noise and mean."""
        return replace(
            self.tasks, covariance=self.covariance.tolist(), mean=self.model.means.tolist()
        )

    @property
    def is_estimated(self) -> bool:
        """Whether the hyperparameters were fitted to observations."""
        return self.model.fitted

    def _ensemble(self, observations: Observations) -> TaskEnsemble:
        units = self.model.units
        offset = self.mean_function.offset(np.zeros(len(units)), units)
        sites = self.setting.sites[: len(self.setting.domain)]
        return TaskEnsemble(self.model, sites, self.setting.kernel, len(observations), offset)

    def _deviation(self, action: Action, y: float) -> float:
        mean = float(self.mean_function(action.point[None, :])[0])
        residual = float(self.model.transform.forward(y)) - mean
        return residual - float(self.model.shifts[action.task])


class LearnedTasks(Hyperparameters):
    """The most probable hyperparameters of several tasks and, by default, a sample of others."""

    def __init__(self, setting: Setting, tasks: Tasks) -> None:
        super().__init__(setting)
        self.hides_noise = setting.noise is None
        self.min_observations = setting.schedule.min_observations
        self._tasks = tasks
        self._means = _known_means(tasks, setting.mean)
        given = tasks.covariance
        self._covariance = None if given is None else np.asarray(given, dtype=float)  # (T, T)
        # With a learned covariance every task has its own unit, and the function is in that of the
        # target.
        self._mean_function = _TaskMeanFunction(setting.mean_function, target_only=tasks.learned)

    def is_fitted(self, observations: Observations) -> bool:
        """Return whether the initial design of the target is complete."""
        return int((observations.tasks == 0).sum()) >= self.setting.n_initial

    def _is_scheduled(self, observations: Observations, current: Fit) -> bool:
        if not self.is_fitted(observations) or not current.is_estimated:
            return True
        latest = observations[-1].action.task
        n_latest = int((observations.tasks == latest).sum())
        return n_latest <= self.setting.n_initial or self.setting.schedule.is_refit_due(
            len(observations)
        )

    def average(
        self, observations: Observations, current: Fit, posterior: FrozenPosterior, n: int
    ) -> FrozenPosterior:
        """Return the posterior averaged over the scale of f."""
        return with_uncertain_scale(posterior) if self.is_fitted(observations) else posterior

    def fit(self, observations: Observations, models: dict[int, AnyModel]) -> TaskFit:
        """Return the hyperparameters of all tasks, with the noise of each if it is learned."""
        model = self._model(observations, models)
        covariance = self._covariance
        if covariance is None:
            covariance = np.asarray(model.covariance[0] / model.covariance[0, 0, 0])
        kernel = model.target_kernel(float(covariance[0, 0])) or self.setting.kernel
        found = TaskFit(
            kernel=kernel,
            site_kernel=Coregionalized(kernel, covariance / np.outer(model.units, model.units)),
            mean=0.0,  # the offset has the means of the tasks
            offset=self._mean_function.offset(model.means, model.units),
            noise=self.setting.given_noise,
            tasks=self._tasks,
            mean_function=self._mean_function,
            likelihood=learned_likelihood(
                self.setting, model.transform, None if (model.units == 1.0).all() else model.units
            ),
            setting=self.setting,
            model=model,
            covariance=covariance,
        )
        if model.noise is None:
            return found
        noise = found.likelihood.noise(np.asarray(model.noise[0], dtype=float)).tolist()
        return replace(
            found,
            tasks=replace(self._tasks, noise=noise),
            noise_of=lambda action: noise[action.task],
        )

    def has_new_outliers(self, observations: Observations, current: Fit) -> bool:
        """Return whether the outliers of the tasks differ from those of the current fit."""
        return task_outliers(self._data(observations)) != current.outliers

    def _model(self, observations: Observations, models: dict[int, AnyModel]) -> TaskModel:
        if not self.is_fitted(observations):
            return unfitted_tasks(self._data(observations))
        count = len(observations)
        seed = self.setting.seed + count
        marginalise = self.setting.schedule.marginalise

        def fit_from(previous: TaskModel | None) -> TaskModel:
            return fit_tasks(self._data(observations), previous, seed, marginalise)

        return fit_once(models, count, TaskModel, fit_from)

    def _data(self, observations: Observations) -> TaskData:
        """Return the data that the hyperparameters are fitted to."""
        setting = self.setting
        domain = setting.domain
        points = np.ascontiguousarray(observations.points[:, :-1])
        tasks = observations.tasks
        values = observations.values - self._mean_function(observations.points)
        family = setting.family
        kernel = None
        kernel_variance = 1.0
        if family is None:
            kernel_variance = prior_scale(setting.kernel, domain.points) ** 2
            kernel = (
                covariance_function(setting.kernel)(points, points)
                if len(points)
                else np.zeros((0, 0))
            )
        target = values[tasks == 0]
        thresholds = None
        if len(target):
            thresholds = setting.thresholds_at(points[tasks == 0], target)
        return TaskData(
            points=points,
            tasks=tasks,
            values=values,
            noise=self.given_noise(observations.actions),
            learn_noise=self.hides_noise,
            extent=domain.extent,
            spacing=domain.spacing,
            means=self._means,
            family=None if family is None else family.kernel,
            covariance=self._covariance,
            kernel=kernel,
            kernel_variance=kernel_variance,
            references=setting.references_of_residuals(target),
            thresholds=thresholds,
            log=setting.schedule.transform == "log",
            categorical=domain.categorical,
        )


def _known_means(tasks: Tasks, target: float | None) -> tuple[float | None, ...]:
    """Return the known constant mean of each task; None where it is learned."""
    if tasks.mean is not None:
        return tuple(float(mean) for mean in tasks.mean)
    others = None if tasks.learned else target
    return (target, *[others] * (len(tasks.names) - 1))
