"""The surrogate model of a study: a Gaussian process with its hyperparameters, observations and pending measurements.

A `Surrogate` takes actions and observed values and answers with a posterior over the domain. It knows nothing of
goals, policies, epochs or costs. Callers change it through five methods (`observe`, `set_pending`, `add_pending`,
`adopt`, `rollback`) and read it through `posterior`, `engine`, `predict` and `predict_measurement`.

| quantity | here |
|---|---|
| kernel, constant mean, noise variance in use | `kernel`, `mean`, `noise` |
| m(x), the prior mean that depends on the point; kernel and constant describe y - m(x) | `mean_function` |
| hyperparameters fitted after q observations | `fitted_models[q]` |
| values as the model sees them | `transform.forward(y)` |
| mu_t, sigma_t^2 with the most probable hyperparameters | `posterior` |
| mu_t, sigma_t^2 averaged over the plausible ones | `ensemble`; `moments` |
| sums over the targets for every candidate | `engine` |
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from truvar._typing import Array
from truvar.domain.action import Action
from truvar.domain.candidates import CoordinateFunction, model_sites
from truvar.domain.costs import NoiseLike, Tasks
from truvar.domain.domain import Domain
from truvar.engines import Engine, EngineLike, check_engine, engine_for
from truvar.exceptions import InvalidMeasurementError, InvalidModelError, TruvarError
from truvar.models.cholesky import local_factor
from truvar.models.coregionalization import TaskEnsemble, TaskModel
from truvar.models.ensemble import Ensemble, EnsembleModel, affordable_members
from truvar.models.fit import JITTER, Model, fit, fit_kernel, training_data, unfitted
from truvar.models.frozen import FrozenPosterior
from truvar.models.kernels import Coregionalized, check_kernel, covariance_function, prior_scale, with_categories
from truvar.models.mean import MeanFunction, is_mean_function
from truvar.models.noise import NoiseModel, fit_noise, unfitted_noise
from truvar.models.outliers import find_outliers
from truvar.models.posterior import Posterior
from truvar.models.priors import Learned, Prior, constant_mean, family_to_learn, is_refit_step
from truvar.models.transforms import OutputTransform

if TYPE_CHECKING:
    import pandas as pd
    from sklearn.gaussian_process.kernels import Kernel

    from truvar.models.learned import FitData
    from truvar.models.learned_tasks import TaskData

AnyModel = Model | EnsembleModel | NoiseModel | TaskModel
"""A fit to observations: the most probable hyperparameters, these with a sample of plausible ones, or the noise."""

ENSEMBLE_JITTER = 1e-8  # share of the squared scale of the values: the smallest noise that an ensemble is learned with
SURPRISE = 3.5  # predictive standard deviations: a value further off than this has the model learned again at once
LARGEST = 1e50  # scores contain fourth powers of the values, which must be finite
LARGEST_DEVIATION = 1e100  # prior standard deviations of a value; the square of more overflows
LARGEST_KNOWN = 1e150  # size of a value with a known model, whose square must be finite
IGNORED = 1e6  # factor on the squared deviation of a gross error, which is the noise variance that it is given


class SurrogateSnapshot(NamedTuple):
    """The part of a surrogate's state that `Surrogate.rollback` restores."""

    observations: list[tuple[Action, float]]
    kernel: Kernel
    noise: NoiseLike
    fitted_models: dict[int, AnyModel]
    model: EnsembleModel | TaskModel | None
    action_tasks: Tasks | None


class Surrogate:
    """A Gaussian process over a domain, conditioned on observations and on pending measurements.

    Pending measurements reduce `posterior.pending_variance`, which choices are made with, but neither
    `posterior.mean` nor `posterior.variance`, which claims are made with.

    Args:
        domain: The points that the model predicts.
        prior: Kernel, mean, noise and tasks, known or to be learned.
        seed: Seed of the hyperparameter search.
        engine: Name or factory of the engine; None: chosen by the size of the domain.
        references: Values that matter, such as the thresholds of a level set, in ascending order: what was measured
            far from all of them says little about how far the values elsewhere may be.
        learn_power: Whether the values may be modelled by a power of them.
        direction: 1 if the highest values are looked for, -1 if the lowest, 0 if neither.

    Attributes:
        kernel: The kernel in use, as given or as last fitted.
        mean: The constant prior mean, on top of the mean function; None: estimated by generalised least squares.
        mean_function: The part of the prior mean that depends on the point; None if it is constant.
        noise: The noise variance in use, as given or as last fitted.
        family: The kernel family whose hyperparameters are learned; None if the kernel is known.
        learns_noise: Whether the kernel is known, but the noise is learned.
        learns_tasks: Whether there are tasks, and their covariance or the kernel is learned.
        action_tasks: The tasks with the noise in use, as given or as last fitted; None without tasks.
        model: The hyperparameters in use, if they are learned and predictions are averaged over them.
        ensemble: The posterior averaged over them; None if there is nothing to average over.
        posterior: The posterior at the sites of the domain, with the most probable hyperparameters.
        engine: Computes the sums that scores are made of.
        observations: Actions with their observed values, in order.
        fitted_models: Fitted hyperparameters by number of observations, so that no fit is repeated.
        n_initial: Number of observations before the model is used for claims and choices.

    Raises:
        InvalidModelError: If kernel, mean, noise and tasks do not make a model.
    """

    posterior: Posterior
    engine: Engine
    kernel: Kernel

    def __init__(
        self,
        domain: Domain,
        prior: Prior,
        seed: int = 0,
        engine: EngineLike = None,
        references: tuple[float, ...] = (),
        learn_power: bool = True,
        direction: int = 0,
    ) -> None:
        self.domain = domain
        self.references = references
        self.tasks = prior.tasks
        self.seed = seed
        self.family = family_to_learn(prior)
        self.mean_function = _mean_function(domain, prior, self.family)
        self.mean = constant_mean(prior, self.family)
        self.noise: NoiseLike = 0.0 if prior.noise is None else prior.noise
        unknown_noise = prior.noise is None and not _have_own_noise(prior.tasks)
        self.learns_tasks = prior.tasks is not None and (prior.tasks.learned or self.family is not None)
        self.learns_noise = self.family is None and unknown_noise and not self.learns_tasks
        self._learns_task_noise = self.learns_tasks and unknown_noise
        self.action_tasks = prior.tasks
        self.observations: list[tuple[Action, float]] = []
        self.fitted_models: dict[int, AnyModel] = {}
        self.model: EnsembleModel | TaskModel | None = None
        self.ensemble: Ensemble | None = None
        self.n_initial = 0
        if self.family is not None or self.learns_tasks:
            self.n_initial = self._schedule.n_initial(len(domain.columns), len(domain))
        self._learn_power = learn_power
        self._direction = direction
        self._engine = None if engine is None else check_engine(engine)
        self._sites = model_sites(domain.points, prior.tasks)
        if self.family is None:
            kernel = check_kernel(prior.kernel, domain.points, domain.columns)
            self.kernel = with_categories(kernel, domain.categorical)
        self._refit(())

    # -- updates -----------------------------------------------------------------------------------------------------

    def observe(self, action: Action, y: float, pending: Sequence[Action]) -> None:
        """Condition the model on a measured value, and refit the hyperparameters if they are due.

        Args:
            action: The measurement.
            y: Its value.
            pending: The actions pending before, with or without `action`, in the order they were suggested.

        Raises:
            TruvarError: If the value contradicts a noise-free observation. Nothing has changed then.
        """
        others = [other for other in pending if other.id != action.id]
        is_next = bool(pending) and pending[0] is action  # its row is the first pending one already
        before = self.snapshot()
        try:
            self._check_can_be_modelled(y)
            surprising = self._is_surprising(action, y)
            if not is_next:
                self.set_pending([action])
            self.posterior.observe(self._modelled(action, y))
        except TruvarError:
            self.set_pending(pending)
            raise
        try:
            self.observations = [*self.observations, (action, y)]
            if not is_next:
                self.set_pending(others)
            if surprising or self._is_refit_due:
                self._refit(others)
            elif self.ensemble is not None:
                site = action.site if action.task == 0 else None  # its sites are those of the target
                noise = self.modelled_noise(action)
                self.ensemble.append(action.point, self._modelled(action, y), noise, not action.noise_given, site)
        except BaseException:
            self.rollback(before, pending)
            raise

    def observe_all(self, observations: Sequence[tuple[Action, float]], pending: Sequence[Action]) -> None:
        """Condition the model on many measured values, and fit the hyperparameters once, if they are learned.

        Args:
            observations: The measurements with their values.
            pending: The pending actions.

        Raises:
            TruvarError: If a value cannot be modelled. The caller rolls back.
        """
        for _, y in observations:
            self._check_can_be_modelled(y)
        self.observations = [*self.observations, *observations]
        self._refit(pending)

    def set_pending(self, actions: Iterable[Action]) -> None:
        """Replace the pending actions. They reduce `pending_variance`, not `variance`."""
        self.posterior.drop_pending()
        for action in actions:
            self.add_pending(action)

    def add_pending(self, action: Action) -> None:
        """Append one pending action."""
        self.posterior.add(action.point, self.modelled_noise(action), action.site)

    def adopt(self, model: Model) -> None:
        """Take a fitted model as known from now on. Only before the first observation."""
        self.learns_tasks = self.tasks is not None and self.tasks.learned  # the noise of each task is learned on
        if not self.learns_tasks and (self.learns_noise or (self.family is not None and self.family.noise)):
            self.noise = float(model.noise or 0.0)
            self.learns_noise = False
        if not self.learns_tasks:
            self.action_tasks = self.tasks
        self.kernel = with_categories(model.kernel, self.domain.categorical)
        self.mean = model.mean
        self.family = None
        self.model = None
        self._refit(())

    def snapshot(self) -> SurrogateSnapshot:
        """Return a snapshot for `rollback`."""
        return SurrogateSnapshot(
            self.observations, self.kernel, self.noise, dict(self.fitted_models), self.model, self.action_tasks
        )

    def rollback(self, snapshot: SurrogateSnapshot, pending: Iterable[Action]) -> None:
        """Restore a snapshot and condition on its observations and the given pending actions again."""
        self.observations = snapshot.observations
        self.kernel = snapshot.kernel
        self.noise = snapshot.noise
        self.fitted_models = snapshot.fitted_models
        self.model = snapshot.model
        self.action_tasks = snapshot.action_tasks
        self._condition(pending)

    # -- queries -----------------------------------------------------------------------------------------------------

    @property
    def transform(self) -> OutputTransform:
        """The transform of the values. `posterior` and `ensemble` are in its units, all else is in the user's."""
        return OutputTransform() if self.model is None else self.model.transform

    @property
    def moments(self) -> tuple[Array, Array]:
        """Posterior mean and variance on the domain for claims, in the units of `transform`: (n,) each."""
        if self.ensemble is not None:
            return self.ensemble.mean, self.ensemble.variance
        n = len(self.domain)
        return self.posterior.mean[:n], self.posterior.variance[:n]

    @property
    def user_moments(self) -> tuple[Array, Array]:
        """Posterior mean and standard deviation on the domain, in the user's units: (n,) each."""
        n = len(self.domain)
        if self.ensemble is not None:
            return self.transform.inverse_moments(self.ensemble.means[:, :n], self.ensemble.variances[:, :n])
        return self.transform.inverse_moments(self.posterior.mean[None, :n], self.posterior.variance[None, :n])

    def freeze(self) -> FrozenPosterior:
        """Return the posterior as it is now, in the units of `transform`; it can be asked after further observations.

        Points are like the rows of `target_sites`.
        """
        return self.posterior.freeze() if self.ensemble is None else self.ensemble.freeze()

    @property
    def target_sites(self) -> Array:
        """The points of the domain as `freeze` takes them: with the index of the target task, if there are tasks."""
        sites = self._sites if self.ensemble is None else self.ensemble.sites
        return sites[: len(self.domain)]

    @property
    def outliers(self) -> list[tuple[Action, float]]:
        """Observations that are left out as gross errors."""
        positions = () if self.model is None else self.model.outliers
        return [self.observations[position] for position in positions]

    def predict(self, points: Array) -> tuple[Array, Array]:
        """Return mean (q,) and variance (q,) of the target at points (q, d), from observations alone."""
        mean, sd = self.transform.inverse_moments(*self._predict_members(self._target_points(points)))
        return mean, sd**2

    def predict_measurement(self, action: Action) -> tuple[float, float]:
        """Return mean and variance of the value that a measurement would give, its noise included."""
        means, variances = self._latent_moments(action)
        unit = self._unit(action.task)
        mean, sd = self.transform.inverse_moments(unit * means, unit**2 * variances + action.noise)
        return float(mean[0]), float(sd[0] ** 2)

    def _latent_moments(self, action: Action) -> tuple[Array, Array]:
        """Return means and variances of f by member where an action measures, as `transform` has it: (members, 1)."""
        if self.ensemble is None and action.site is not None:
            here = slice(action.site, action.site + 1)
            return self.posterior.mean[None, here], self.posterior.variance[None, here]  # kept for every site: no solve
        return self._predict_members(np.array(action.point[None, :]))  # a copy: the posterior remembers its answer

    def predict_modelled(self, points: Array) -> tuple[Array, Array]:
        """Return mean and variance in the units of `transform`."""
        points = self._target_points(points)
        if self.ensemble is not None:
            return self.ensemble.predict(points)
        return self.posterior.predict(points)

    def _target_points(self, points: Array) -> Array:
        """Return a copy of points (q, d) as the posterior takes them, as it remembers its last answer by the array."""
        points = np.array(points, dtype=float)
        if self.tasks is not None:
            points = np.column_stack([points, np.zeros(len(points))])  # task 0 is the target
        return points

    def _predict_members(self, points: Array) -> tuple[Array, Array]:
        """Return means and variances by member, in the units of `transform`: (members, q) each."""
        if self.ensemble is not None:
            return self.ensemble.member_moments(np.ascontiguousarray(points))
        mean, variance = self.posterior.predict(points)
        return mean[None, :], variance[None, :]

    def fit_table(self, frame: pd.DataFrame, value: str | None) -> Model:
        """Fit kernel and mean (and noise, if it is learned) to another data set. The surrogate does not change.

        Args:
            frame: A table with the domain's columns and the column of values.
            value: Name of the column of values; None: the only other column.

        Returns:
            The fitted model, for `adopt`.
        """
        if self.family is not None and self.family.transform == "log":
            raise InvalidModelError(
                'a model is fitted to a table as its values are, got transform="log"; leave out the transform and give '
                "logarithms as values"
            )
        points, values = training_data(frame, self.domain.columns, value, self.domain)
        if self.mean_function is not None:
            values = values - self.mean_function(points)
        noise: float | None = None  # a column or function of noise says nothing about other data
        given: Any = self.noise
        if self.tasks is not None and self.tasks.noise is not None:
            given = self.tasks.noise[0]  # the table has values of the target
        if isinstance(given, Real) and not (self.learns_noise or self._learns_task_noise):
            noise = float(given)
        if self.family is None and self.domain.categorical:
            raise InvalidModelError(
                "a kernel of your own is fitted to numbers only, and this domain has categories; leave out the kernel"
            )
        if self.family is None:
            model = fit_kernel(self.kernel, points, values, noise, self.mean, self.seed)
            return model if self.learns_noise else replace(model, noise=None)
        family = replace(self.family, noise=self.family.noise or noise is None)
        extent = self.domain.extent
        return fit(family, points, values, noise or 0.0, extent, self.mean, self.seed, self.domain.categorical)

    @property
    def fitted(self) -> bool:
        """Whether there is a model to make claims with: a learned kernel has one only after its first fit."""
        if self.learns_tasks:
            return sum(action.task == 0 for action, _ in self.observations) >= self.n_initial
        return self.family is None or len(self.observations) >= self.n_initial

    @property
    def least(self) -> int:
        """Number of observations before which no study is called finished."""
        return self._schedule.least if self.family is not None or self.learns_tasks else 0

    @property
    def task_units(self) -> Array | None:
        """The divisor of the values of each task before they are modelled, (T,); None if all are 1."""
        if not isinstance(self.model, TaskModel) or (self.model.units == 1.0).all():
            return None
        return self.model.units

    @property
    def learned_tasks(self) -> Tasks | None:
        """The tasks with what is learned of them: covariance, noise and mean; None without tasks."""
        tasks = self.action_tasks
        if tasks is None or not isinstance(self.model, TaskModel):
            return tasks
        return replace(tasks, covariance=self._task_covariance(self.model).tolist(), mean=self.model.means.tolist())

    @property
    def is_learned(self) -> bool:
        """Whether any part of the model is estimated from the observations that it judges."""
        return self.is_refitted or self.mean is None

    @property
    def is_refitted(self) -> bool:
        """Whether hyperparameters are fitted again from time to time, which changes the posterior everywhere."""
        return self.family is not None or self.learns_noise or self.learns_tasks

    @property
    def minimum_noise(self) -> float:
        """Smallest noise variance in use. A learned kernel was fitted with a little noise and is used with it."""
        if self.family is None and not self.learns_tasks:
            return 0.0
        if self.model is not None:
            return ENSEMBLE_JITTER * self.model.transform.scale**2
        return JITTER * self.posterior.scale**2

    def modelled_noise(self, action: Action) -> float:
        """Return the noise variance of a measurement in the units of the model."""
        return max(action.noise / self._unit(action.task) ** 2, self.minimum_noise)

    def given_noise(self, actions: Sequence[Action]) -> Array:
        """Return the noise variances of measurements, NaN where they are learned, (t,)."""
        learned = self._learns_task_noise if self.learns_tasks else self.family is not None and self.family.noise
        given = [action.noise if action.noise_given or not learned else np.nan for action in actions]
        return np.array(given, dtype=float)

    # -- private -----------------------------------------------------------------------------------------------------

    @property
    def _schedule(self) -> Learned:
        """When hyperparameters are fitted."""
        return Learned() if self.family is None else self.family

    @property
    def _is_refit_due(self) -> bool:
        count = len(self.observations)
        if count in self.fitted_models:
            return self.is_refitted
        if self.learns_tasks:
            return self._is_task_fit_due or self._schedule.is_refit_due(count)
        if self.family is None:
            return self.learns_noise and is_refit_step(count)
        return count <= self.n_initial or self.family.is_refit_due(count)

    def _is_surprising(self, action: Action, y: float) -> bool:
        """Return whether a new value is so far from its prediction that the model must be learned again at once."""
        if self.model is None or self.ensemble is None:
            return False
        if isinstance(self.model, TaskModel):
            return self._is_task_outlier_new(action, y) or self._is_far_off(action, y)
        observations = [*self.observations, (action, y)]
        residuals = self._residuals(observations)
        logarithm = OutputTransform(log=self.transform.log)
        references = logarithm.forward(np.array(self._references_of_residuals(residuals))).tolist()
        points = np.stack([each.point for each, _ in observations]) / self.domain.extent
        exact = self.given_noise([each for each, _ in observations]) == 0.0
        known = self.model.outliers if self.model.separate is None else self.model.separate
        if find_outliers(logarithm.forward(residuals), references, points, exact) != known:
            return True
        return self._is_far_off(action, y)

    def _is_far_off(self, action: Action, y: float) -> bool:
        """Return whether a value is further from its prediction than chance allows."""
        if self.ensemble is None:
            return False
        mean, variance = self.ensemble.predict(action.point[None, :])
        deviation = self._modelled(action, y) - float(mean[0])
        noise = action.noise / self._unit(action.task) ** 2
        return deviation**2 > SURPRISE**2 * float(variance[0] + noise)

    def _refit(self, pending: Iterable[Action]) -> None:
        """Fit the hyperparameters, if they are learned, and condition on everything again."""
        if self.learns_tasks:
            self._use_task_model(self._fit_tasks())
        elif self.family is not None:
            noise: float | None
            if self.family.marginalise:
                self.model = self._fit_ensemble(self.family)
                self.kernel = self.model.kernel
                noise = self.model.mode_noise
                if self.model.noise_slopes is not None:
                    self._use_noise(CoordinateFunction(self.model.mode_noise_at))
                    noise = None
            else:
                model = self._fit_family(self.family)
                self.kernel = with_categories(model.kernel, self.domain.categorical)
                noise = model.noise
            if self.family.noise and noise is not None:
                self._use_noise(noise)
        elif self.learns_noise:
            self._use_noise(self._fit_noise().variance)
        self._condition(pending)

    def _use_noise(self, noise: float | Callable[[Array], Array]) -> None:
        """Use a learned noise variance for all measurements but those that were told with their own.

        Args:
            noise: The variance, or a function of points (q, d) that returns (q,).
        """
        self.noise = noise

        def noise_of(action: Action) -> float:
            if action.noise_given:
                return action.noise
            return float(noise(action.point[None, :])[0]) if callable(noise) else noise

        self.observations = [(replace(action, noise=noise_of(action)), y) for action, y in self.observations]

    def _fit_noise(self) -> NoiseModel:
        kernel = self._site_kernel()
        prior_variance = prior_scale(kernel, self._sites[: len(self.domain)]) ** 2
        count = len(self.observations)
        known = self.fitted_models.get(count)
        if isinstance(known, NoiseModel):
            return known
        if count < 2:
            return unfitted_noise(prior_variance)
        points = np.stack([action.point for action, _ in self.observations])
        residuals = np.array([y for _, y in self.observations]) - (self.mean or 0.0)
        offset = self._offset()
        if offset is not None:
            residuals = residuals - offset(points)
        model = fit_noise(
            covariance_function(kernel)(points, points),
            residuals,
            np.array([action.noise if action.noise_given else np.nan for action, _ in self.observations]),
            prior_variance=prior_variance,
            estimate_mean=self.mean is None,
        )
        self.fitted_models[count] = model
        return model

    def _fit_family(self, family: Learned) -> Model:
        values = self._residuals(self.observations)
        if not self.fitted:
            return unfitted(family, self.domain.extent, values)
        count = len(self.observations)
        known = self.fitted_models.get(count)
        if isinstance(known, Model):
            return known
        points = np.stack([action.point for action, _ in self.observations])
        noise = np.array([action.noise for action, _ in self.observations])
        extent = self.domain.extent
        model = fit(family, points, values, noise, extent, self.mean, self.seed + count, self.domain.categorical)
        self.fitted_models[count] = model
        return model

    def _fit_ensemble(self, family: Learned) -> EnsembleModel:
        from truvar.models.learned import fit_ensemble, unfitted_ensemble  # imports slowly, and is not always needed

        count = len(self.observations)
        data = self._fit_data(family)
        if not self.fitted:
            return unfitted_ensemble(family.kernel, data)
        known = self.fitted_models.get(count)
        if isinstance(known, EnsembleModel):
            return known
        earlier = [number for number, each in self.fitted_models.items() if number < count]
        previous = self.fitted_models[max(earlier)] if earlier else None
        warm = previous if isinstance(previous, EnsembleModel) else None
        model = fit_ensemble(family.kernel, data, warm, self.seed + count)
        self.fitted_models[count] = model
        return model

    def _fit_data(self, family: Learned) -> FitData:
        from truvar.models.learned import FitData

        d = len(self.domain.columns)
        actions = [action for action, _ in self.observations]
        noise = self.given_noise(actions)
        exact = not np.nan_to_num(noise).any()
        points = np.array([action.point for action in actions]).reshape(len(actions), d)
        values = self._residuals(self.observations)
        plain = self.mean is None and self.mean_function is None
        thresholds = None
        if self.mean_function is not None and self.references:
            thresholds = self._nearest_threshold(values) - self.mean_function(points)
        return FitData(
            points=points,
            values=values,
            noise=noise,
            learn_noise=family.noise,
            extent=self.domain.extent,
            spacing=self.domain.spacing,
            mean=self.mean,
            references=self._references_of_residuals(values),
            log=family.transform == "log",
            learn_power=self._learn_power and family.transform == "auto" and plain and exact,
            thresholds=thresholds,
            direction=self._direction,
            categorical=self.domain.categorical,
        )

    def _residuals(self, observations: Sequence[tuple[Action, float]]) -> Array:
        """Return the observed values minus the mean function, (t,)."""
        values = np.array([y for _, y in observations])
        if self.mean_function is None or not observations:
            return values
        d = len(self.domain.columns)
        return values - self.mean_function(np.stack([action.point[:d] for action, _ in observations]))

    def _references_of_residuals(self, residuals: Array) -> tuple[float, ...]:
        """Return the values that matter for the residuals: how near to the typical one each threshold comes."""
        if self.mean_function is None:
            return self.references
        typical = float(np.median(residuals)) if len(residuals) else 0.0
        differences = np.array(self.references)[:, None] - self.mean_function.values
        nearest = np.abs(differences - typical).argmin(axis=1)
        return tuple(differences[np.arange(len(differences)), nearest].tolist())

    def _nearest_threshold(self, residuals: Array) -> float:
        """Return the threshold that, minus the mean function, comes nearest to the typical residual."""
        typical = float(np.median(residuals)) if len(residuals) else 0.0
        distances = np.abs(np.array(self._references_of_residuals(residuals)) - typical)
        return self.references[int(np.argmin(distances))]

    def _check_can_be_modelled(self, y: float) -> None:
        if self.model is not None and abs(y) > LARGEST:
            raise InvalidMeasurementError(
                f"a learned model takes values up to {LARGEST:g} in size, got {y:.10g}; correct it, or use larger units"
            )
        largest = min(LARGEST_DEVIATION * self.posterior.scale, LARGEST_KNOWN)
        if abs(y) > largest:
            raise InvalidMeasurementError(
                f"with a prior standard deviation of {self.posterior.scale:.3g} values are at most {largest:g} in "
                f"size, got {y:.10g}; correct it, or use other units"
            )
        if self.transform.log and y <= 0:
            raise InvalidMeasurementError(
                f'values have logarithms with transform="log", got {y:.10g}; give a value > 0, or another transform'
            )

    def _modelled(self, action: Action, y: float) -> float:
        """Return a value in the units of the model."""
        return float(self.transform.forward(y)) / self._unit(action.task)

    def _unit(self, task: int) -> float:
        """Return what the values of a task are divided by."""
        return float(self.model.units[task]) if isinstance(self.model, TaskModel) else 1.0

    def _condition(self, pending: Iterable[Action]) -> None:
        """Make a new posterior and engine from the present hyperparameters, observations and pending actions."""
        kernel = self._site_kernel()
        factor = getattr(self._engine, "factor", local_factor)  # an engine may keep the factor in other processes
        mean = 0.0 if self.learns_tasks else self.mean  # with learned tasks, the offset has their means
        self.posterior = Posterior(kernel, self._sites, mean, self._offset(), len(self.domain), factor)
        self.engine = engine_for(self.posterior, self.domain, self._engine)
        for position, (action, y) in enumerate(self.observations):
            self.add_pending(self._without_weight(action, y, position))
            self.posterior.observe(self._modelled(action, y))
        self.set_pending(pending)
        self.ensemble = None
        if self.model is not None and len(self.model.signal) > 1:
            self._condition_ensemble(self.model)

    def _site_kernel(self) -> Kernel:
        """Return the kernel of the sites, with tasks if there are some."""
        if self.tasks is None:
            return self.kernel
        if isinstance(self.model, TaskModel):
            units = np.outer(self.model.units, self.model.units)
            return Coregionalized(self.kernel, self._task_covariance(self.model) / units)
        if self.tasks.covariance is None:
            raise AssertionError("a covariance that is learned has a model")
        return Coregionalized(self.kernel, self.tasks.covariance)

    def _offset(self) -> Callable[[Array], Array] | None:
        """Return the part of the prior mean that depends on point and task, as a function of points (q, d')."""
        if self.tasks is None:
            return self.mean_function
        if isinstance(self.model, TaskModel):
            return self._task_offset(self.model.means, self.model.units)
        if self.tasks.mean is not None:
            task_means = np.asarray(self.tasks.mean, dtype=float) - (self.mean or 0.0)
            return lambda points: np.asarray(task_means[points[:, -1].astype(int)])
        mean_function = self.mean_function
        if mean_function is None:
            return None
        return lambda points: mean_function(points[:, :-1])

    def _condition_ensemble(self, model: EnsembleModel | TaskModel) -> None:
        count = len(self.observations)
        n = len(self.domain)
        if affordable_members(n, count) < 2:  # nothing to average over, and the factor is large
            return
        ensemble: Ensemble
        if isinstance(model, TaskModel):
            kernel = self.kernel if self.family is None else None
            offset = self._task_offset(np.zeros(len(model.units)), model.units)
            ensemble = TaskEnsemble(model, self._sites[:n], kernel, count, offset)
        else:
            ensemble = Ensemble(model, self.domain.points, self.mean, count, self.mean_function)
        actions = [self._without_weight(action, y, position) for position, (action, y) in enumerate(self.observations)]
        noise = np.array([self.modelled_noise(action) for action in actions])
        learned = np.array([not action.noise_given for action in actions])
        z = np.array([self._modelled(action, y) for action, y in self.observations])
        ensemble.condition(np.stack([action.point for action in actions]), z, noise, learned)
        self.ensemble = ensemble

    def _without_weight(self, action: Action, y: float, position: int) -> Action:
        """Return the action as it is; that of a gross error with so much noise that it says nothing."""
        if self.model is None or position not in self.model.outliers:
            return action
        if isinstance(self.model, TaskModel):
            residual = float(self.transform.forward(y)) - float(self._task_means_at(action.point[None, :])[0])
            deviation = residual - float(self.model.shifts[action.task])
            return replace(action, noise=action.noise + IGNORED * deviation**2, noise_given=True)
        residual = self._modelled(action, y)
        if self.mean_function is not None:
            residual -= float(self.mean_function(action.point[None, :])[0])
        deviation = residual - self.model.transform.shift
        return replace(action, noise=action.noise + IGNORED * deviation**2, noise_given=True)

    # -- learned tasks -----------------------------------------------------------------------------------------------

    @property
    def _is_task_fit_due(self) -> bool:
        """Whether the tasks must be fitted again whatever the schedule: as long as one of them is new."""
        if not self.fitted or not isinstance(self.model, TaskModel) or not self.model.fitted:
            return True
        latest = self.observations[-1][0].task
        return sum(action.task == latest for action, _ in self.observations) <= self.n_initial

    def _is_task_outlier_new(self, action: Action, y: float) -> bool:
        """Return whether the gross errors among the values of each task change with a new value."""
        from truvar.models.learned_tasks import task_outliers

        if self.model is None:
            return False
        observations = [*self.observations, (action, y)]
        return task_outliers(self._task_data(observations)) != self.model.outliers

    def _fit_tasks(self) -> TaskModel:
        from truvar.models.learned_tasks import fit_tasks, unfitted_tasks  # imports slowly, and is not always needed

        count = len(self.observations)
        known = self.fitted_models.get(count)
        if self.fitted and isinstance(known, TaskModel):
            return known
        data = self._task_data(self.observations)
        if not self.fitted:
            return unfitted_tasks(data)
        earlier = [number for number, each in self.fitted_models.items() if number < count]
        previous = self.fitted_models[max(earlier)] if earlier else None
        warm = previous if isinstance(previous, TaskModel) else None
        model = fit_tasks(data, warm, self.seed + count, self._schedule.marginalise)
        self.fitted_models[count] = model
        return model

    def _use_task_model(self, model: TaskModel) -> None:
        """Use a model of the tasks: its kernel, if that is learned, and the noise of each task, if that is."""
        self.model = model
        if self.tasks is None:
            return
        target_variance = 1.0 if self.tasks.covariance is None else float(self.tasks.covariance[0][0])
        self.kernel = model.target_kernel(target_variance) or self.kernel
        if model.noise is None:
            return
        noise = [float(variance) for variance in model.noise[0]]
        self.action_tasks = replace(self.tasks, noise=noise)
        self.observations = [
            (action if action.noise_given else replace(action, noise=noise[action.task]), y)
            for action, y in self.observations
        ]

    def _task_covariance(self, model: TaskModel) -> Array:
        """Return the covariance between the tasks that multiplies `kernel`, in the user's units: (T, T)."""
        if self.tasks is not None and self.tasks.covariance is not None:
            return np.asarray(self.tasks.covariance, dtype=float)
        return np.asarray(model.covariance[0] / model.covariance[0, 0, 0])

    def _task_means(self) -> tuple[float | None, ...]:
        """Return the known constant mean of each task; None where it is learned."""
        if self.tasks is None:
            return (self.mean,)
        if self.tasks.mean is not None:
            return tuple(float(mean) for mean in self.tasks.mean)
        others = None if self.tasks.learned else self.mean
        return (self.mean, *[others] * (len(self.tasks.names) - 1))

    def _task_means_at(self, points: Array) -> Array:
        """Return the mean function at points (q, d + 1); 0 for tasks that do not have it: (q,)."""
        values = np.zeros(len(points))
        if self.mean_function is None or self.tasks is None:
            return values
        # With a learned covariance every task has its own unit, and the function is in that of the target.
        rows = points[:, -1] == 0 if self.tasks.learned else np.ones(len(points), bool)
        if rows.any():
            values[rows] = self.mean_function(np.ascontiguousarray(points[rows, :-1]))
        return values

    def _task_offset(self, constants: Array, units: Array) -> Callable[[Array], Array]:
        """Return the prior mean of every task as a function of points (q, d + 1), in the units of the model.

        Args:
            constants: Constant mean of each task, in the user's units. (T,)
            units: What its values are divided by. (T,)
        """

        def offset(points: Array) -> Array:
            tasks = points[:, -1].astype(int)
            return np.asarray((constants[tasks] + self._task_means_at(points)) / units[tasks])

        return offset

    def _task_data(self, observations: Sequence[tuple[Action, float]]) -> TaskData:
        from truvar.models.learned_tasks import TaskData

        d = len(self.domain.columns)
        actions = [action for action, _ in observations]
        sites = np.array([action.point for action in actions]).reshape(len(actions), d + 1)
        points = np.ascontiguousarray(sites[:, :d])
        tasks = sites[:, -1].astype(int)
        values = np.array([y for _, y in observations]) - self._task_means_at(sites)
        kernel = None
        kernel_variance = 1.0
        family = None if self.family is None else self.family.kernel
        if family is None:
            kernel_variance = prior_scale(self.kernel, self.domain.points) ** 2
            kernel = covariance_function(self.kernel)(points, points) if len(points) else np.zeros((0, 0))
        covariance = None
        if self.tasks is not None and self.tasks.covariance is not None:
            covariance = np.asarray(self.tasks.covariance, dtype=float)
        target = points[tasks == 0]
        thresholds = None
        if self.mean_function is not None and self.references and len(target):
            thresholds = self._nearest_threshold(values[tasks == 0]) - self.mean_function(target)
        return TaskData(
            points=points,
            tasks=tasks,
            values=values,
            noise=self.given_noise(actions),
            learn_noise=self._learns_task_noise,
            extent=self.domain.extent,
            spacing=self.domain.spacing,
            means=self._task_means(),
            family=family,
            covariance=covariance,
            kernel=kernel,
            kernel_variance=kernel_variance,
            references=self._references_of_residuals(values[tasks == 0]),
            thresholds=thresholds,
            log=self.family is not None and self.family.transform == "log",
            categorical=self.domain.categorical,
        )


def _have_own_noise(tasks: Tasks | None) -> bool:
    return tasks is not None and tasks.noise is not None


def _mean_function(domain: Domain, prior: Prior, family: Learned | None) -> MeanFunction | None:
    """Return the part of the prior mean that depends on the point, or None if it is constant.

    Raises:
        InvalidModelError: If it does not go with the tasks or the transform.
    """
    if prior.mean is None or not is_mean_function(prior.mean):
        return None
    if prior.tasks is not None and prior.tasks.mean is not None:
        raise InvalidModelError(
            "the tasks have their own means, got a mean that depends on the point too; leave out one of them"
        )
    if family is not None and family.transform == "log":
        raise InvalidModelError(
            'transform="log" models the logarithms of the values, got a mean that depends on the point, which is in '
            "the units of the values; leave out the transform, or give logarithms as values and mean"
        )
    return MeanFunction(domain, prior.mean)
