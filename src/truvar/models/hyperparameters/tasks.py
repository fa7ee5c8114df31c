"""`LearnedTasks`: several tasks, of which the covariance, the kernel or both are learned."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from truvar._typing import Array
from truvar.domain.action import Action
from truvar.domain.costs import Tasks
from truvar.models.coregionalization import TaskEnsemble, TaskModel
from truvar.models.hyperparameters.averaged import SampledFit
from truvar.models.hyperparameters.base import AnyModel, Fit, Hyperparameters, Offset, Setting, latest_model
from truvar.models.kernels import Coregionalized, covariance_function, prior_scale
from truvar.models.learned_tasks import TaskData, fit_tasks, task_outliers, unfitted_tasks
from truvar.models.observations import Observations


@dataclass(frozen=True, eq=False, kw_only=True)
class TaskFit(SampledFit):
    """A fit of several tasks.

    Attributes:
        model: The fit as it is stored.
        covariance: Between the tasks, which multiplies `kernel`, in the user's units. (T, T)
        tasks: The tasks with the noise in use.
    """

    model: TaskModel
    covariance: Array
    tasks: Tasks

    @property
    def task_units(self) -> Array | None:
        """The divisor of the values of each task, (T,); None if all are 1."""
        return None if (self.model.units == 1.0).all() else self.model.units

    @property
    def learned_tasks(self) -> Tasks:
        """The tasks with what is learned of them: covariance, noise and mean."""
        return replace(self.tasks, covariance=self.covariance.tolist(), mean=self.model.means.tolist())

    def unit(self, task: int) -> float:
        """Return what the values of a task are divided by."""
        return float(self.model.units[task])

    def _ensemble(self, count: int) -> TaskEnsemble:
        units = self.model.units
        offset = _offset(self.setting, np.zeros(len(units)), units)
        sites = self.setting.sites[: len(self.setting.domain)]
        return TaskEnsemble(self.model, sites, self.setting.kernel, count, offset)

    def _deviation(self, action: Action, y: float) -> float:
        mean = float(_means_at(self.setting, action.point[None, :])[0])
        residual = float(self.transform.forward(y)) - mean
        return residual - float(self.model.shifts[action.task])


class LearnedTasks(Hyperparameters):
    """The most probable hyperparameters of several tasks and, unless a family says otherwise, a sample of others."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        if setting.tasks is None:
            raise AssertionError("there are tasks to learn")
        self.tasks = setting.tasks
        self.hides_noise = setting.learns_noise
        self.least = setting.schedule.least

    def is_fitted(self, observations: Observations) -> bool:
        """Return whether the initial design of the target is complete."""
        return int((observations.tasks == 0).sum()) >= self.setting.n_initial

    def _is_scheduled(self, observations: Observations, current: Fit) -> bool:
        if not self.is_fitted(observations) or not (isinstance(current, TaskFit) and current.model.fitted):
            return True
        latest = observations[-1].action.task
        n_latest = int((observations.tasks == latest).sum())
        return n_latest <= self.setting.n_initial or self.setting.schedule.is_refit_due(len(observations))

    def fit(self, observations: Observations, models: dict[int, AnyModel]) -> TaskFit:
        """Return the hyperparameters of all tasks, with the noise of each if it is learned."""
        model = self._model(observations, models)
        covariance = np.asarray(model.covariance[0] / model.covariance[0, 0, 0])
        target_variance = 1.0
        if self.tasks.covariance is not None:
            covariance = np.asarray(self.tasks.covariance, dtype=float)
            target_variance = float(self.tasks.covariance[0][0])
        kernel = model.target_kernel(target_variance) or self.setting.kernel
        found = TaskFit(
            kernel=kernel,
            site_kernel=Coregionalized(kernel, covariance / np.outer(model.units, model.units)),
            mean=0.0,  # the offset has the means of the tasks
            offset=_offset(self.setting, model.means, model.units),
            noise=self.setting.noise,
            tasks=self.tasks,
            setting=self.setting,
            model=model,
            covariance=covariance,
        )
        if model.noise is None:
            return found
        noise = [float(variance) for variance in model.noise[0]]
        return replace(found, tasks=replace(self.tasks, noise=noise), noise_of=lambda action: noise[action.task])

    def has_new_outliers(self, observations: Observations, current: Fit) -> bool:
        """Return whether the outliers among the values of each task are not those of the current fit."""
        return task_outliers(self._data(observations)) != current.outliers

    def _model(self, observations: Observations, models: dict[int, AnyModel]) -> TaskModel:
        count = len(observations)
        is_fitted = self.is_fitted(observations)
        known = models.get(count)
        if is_fitted and isinstance(known, TaskModel):
            return known
        data = self._data(observations)
        if not is_fitted:
            return unfitted_tasks(data)
        marginalise = self.setting.schedule.marginalise
        model = fit_tasks(data, latest_model(models, count, TaskModel), self.setting.seed + count, marginalise)
        models[count] = model
        return model

    def _means(self) -> tuple[float | None, ...]:
        """Return the known constant mean of each task; None where it is learned."""
        if self.tasks.mean is not None:
            return tuple(float(mean) for mean in self.tasks.mean)
        target = self.setting.mean
        others = None if self.tasks.learned else target
        return (target, *[others] * (len(self.tasks.names) - 1))

    def _data(self, observations: Observations) -> TaskData:
        """Return what the hyperparameters are fitted to."""
        setting = self.setting
        domain = setting.domain
        points = np.ascontiguousarray(observations.points[:, :-1])
        tasks = observations.tasks
        values = observations.values - _means_at(setting, observations.points)
        family = None
        kernel = None
        kernel_variance = 1.0
        if setting.family is not None:
            family = setting.family.kernel
        else:
            kernel_variance = prior_scale(setting.kernel, domain.points) ** 2
            kernel = covariance_function(setting.kernel)(points, points) if len(points) else np.zeros((0, 0))
        covariance = None
        if self.tasks.covariance is not None:
            covariance = np.asarray(self.tasks.covariance, dtype=float)
        target = values[tasks == 0]
        return TaskData(
            points=points,
            tasks=tasks,
            values=values,
            noise=self.given_noise(observations.actions),
            learn_noise=setting.learns_noise,
            extent=domain.extent,
            spacing=domain.spacing,
            means=self._means(),
            family=family,
            covariance=covariance,
            kernel=kernel,
            kernel_variance=kernel_variance,
            references=setting.references_of_residuals(target),
            thresholds=setting.thresholds_at(points[tasks == 0], target) if len(target) else None,
            log=setting.schedule.transform == "log",
            categorical=domain.categorical,
        )


def _means_at(setting: Setting, points: Array) -> Array:
    """Return the mean function at points (q, d + 1); 0 for tasks that do not have it: (q,)."""
    values = np.zeros(len(points))
    if setting.mean_function is None or setting.tasks is None:
        return values
    # With a learned covariance every task has its own unit, and the function is in that of the target.
    rows = points[:, -1] == 0 if setting.tasks.learned else np.ones(len(points), bool)
    if rows.any():
        values[rows] = setting.mean_function(np.ascontiguousarray(points[rows, :-1]))
    return values


def _offset(setting: Setting, constants: Array, units: Array) -> Offset:
    """Return the prior mean of every task as a function of points (q, d + 1), in the units of the model.

    Args:
        setting: Gives the mean function.
        constants: Constant mean of each task, in the user's units. (T,)
        units: What its values are divided by. (T,)
    """

    def offset(points: Array) -> Array:
        tasks = points[:, -1].astype(int)
        return np.asarray((constants[tasks] + _means_at(setting, points)) / units[tasks])

    return offset
