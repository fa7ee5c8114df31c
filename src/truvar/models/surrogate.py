"""The surrogate model of a study: a Gaussian process with hyperparameters and data.

A `Surrogate` takes actions and observed values and answers with a posterior over the domain. It
knows nothing of goals, policies, epochs or costs. Callers change it through five methods
(`observe`, `set_pending`, `add_pending`, `adopt`, `rollback`) and read it through `posterior`,
`engine`, `predict` and `predict_measurement`.

| quantity | here |
|---|---|
| known kernel, noise and tasks, and the fit of the rest | `hyperparameters` |
| kernel, constant mean, noise variance in use | `kernel`, `mean`, `noise` |
| m(x), the prior mean that depends on the point; kernel and constant describe y - m(x) | `mean_function` |
| hyperparameters fitted after q observations | `fitted_models[q]` |
| values as the model sees them | `transform.forward(y)` |
| mu_t, sigma_t^2 with the most probable hyperparameters | `posterior` |
| mu_t, sigma_t^2 averaged over the plausible ones | `ensemble`; `moments` |
| sums over the targets for every candidate | `engine` |
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from truvar._typing import Array, Index
from truvar.domain.action import Action
from truvar.domain.costs import NoiseLike, Tasks
from truvar.domain.domain import Domain
from truvar.engines import Engine, EngineLike, check_engine, engine_for
from truvar.exceptions import TruvarError
from truvar.models._coregionalization import TaskModel
from truvar.models._labels import labels_of
from truvar.models._outcome_check import check_outcomes
from truvar.models.diagnostics import ModelCheck, check_model
from truvar.models.ensemble import Ensemble, EnsembleModel, SinglePosterior
from truvar.models.factor import LocalFactor
from truvar.models.fit import Model
from truvar.models.frozen import FrozenPosterior
from truvar.models.hyperparameters import (
    AnyModel,
    Fit,
    Hyperparameters,
    Setting,
    hyperparameters_for,
)
from truvar.models.likelihoods import Gaussian, Latent
from truvar.models.observations import Observation, Observations
from truvar.models.posterior import Posterior
from truvar.models.priors import Prior
from truvar.models.transforms import OutputTransform

if TYPE_CHECKING:
    import pandas as pd
    from sklearn.gaussian_process.kernels import Kernel

# predictive standard deviations from the mean beyond which a value triggers a refit immediately
_REFIT_Z_SCORE = 3.5


class SurrogateSnapshot(NamedTuple):
    """The part of a surrogate's state that `Surrogate.rollback` restores."""

    observations: Observations
    fit: Fit
    fitted_models: dict[int, AnyModel]


class Surrogate:
    """A Gaussian process over a domain, conditioned on observations and on pending measurements.

    Pending measurements reduce `posterior.pending_variance`, which choices are made with, but
    neither `posterior.mean` nor `posterior.variance`, which claims are made with.

    Args:
        domain: The points that the model predicts.
        prior: Kernel, mean, noise and tasks, known or to be learned.
        seed: Seed of the hyperparameter search.
        engine: Name or factory of the engine; None: chosen by the size of the domain.
        references: Values that matter, such as the thresholds of a level set, in ascending order:
            values measured far from all of them say little about the range of values elsewhere.
        learn_power: Whether the values may be modelled by a power of them.
        direction: 1 if the highest values are looked for, -1 if the lowest, 0 if neither.

    Attributes:
        hyperparameters: Known kernel, noise and tasks, and the rules for fitting the rest.
        kernel: The kernel in use, as given or as last fitted.
        mean: The constant prior mean, on top of the mean function; None: estimated by generalised
            least squares.
        mean_function: The part of the prior mean that depends on the point; None if it is constant.
        noise: The noise variance in use, as given or as last fitted.
        family: The kernel family whose hyperparameters are learned; None if the kernel is known.
        learns_tasks: Whether there are tasks, and their covariance or the kernel is learned.
        action_tasks: The tasks with the noise in use, as given or as last fitted; None without
            tasks.
        model: The hyperparameters in use, if they are learned and predictions are averaged over
            them.
        likelihood: The observation model in the units of the last fit.
        outcome: What measurements give; None: numbers with normal noise.
        transform: The transform of the values. `posterior` and `ensemble` are in its units, all
            else is in the user's.
        ensemble: The posterior averaged over `model`; None if there is nothing to average over.
        posterior: The posterior at the sites of the domain, with the most probable hyperparameters.
        engine: Computes the sums that scores are made of.
        observations: Actions with their observed values, in order.
        fitted_models: Fitted hyperparameters by number of observations, so that no fit is repeated.
        n_initial: Number of observations before the model is used for claims and choices.
        min_observations: Number of observations before which no study is called finished.
        is_refitted: Whether hyperparameters are fitted again from time to time, which changes the
            posterior everywhere.
        is_learned: Whether any part of the model is estimated from the observations that it judges.

    Raises:
        InvalidModelError: If kernel, mean, noise and tasks do not make a model.
    """

    hyperparameters: Hyperparameters
    kernel: Kernel
    noise: NoiseLike
    action_tasks: Tasks | None
    model: EnsembleModel | TaskModel | None
    likelihood: Gaussian
    transform: OutputTransform
    posterior: Posterior
    engine: Engine
    ensemble: Ensemble | None
    _fit: Fit
    _pseudo_noise: Array
    _predictive: Ensemble | SinglePosterior
    # the last average, and the observations and the fit that it belongs to
    _average: tuple[Observations, Fit | None, FrozenPosterior | None]

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
        setting = Setting.of(domain, prior, seed, references, learn_power, direction)
        self.domain = domain
        self.tasks = prior.tasks
        self.outcome = prior.outcome
        self.mean_function = setting.mean_function
        self.n_initial = setting.n_initial
        self.fitted_models: dict[int, AnyModel] = {}
        self._engine = None if engine is None else check_engine(engine)
        self.ensemble = None
        self._sites = setting.sites
        self.observations = Observations(self._sites.shape[1])
        self._average = (self.observations, None, None)
        self._use_setting(setting)

    def _use_setting(self, setting: Setting) -> None:
        self.mean = setting.mean
        self.family = setting.family
        self.learns_tasks = setting.has_learned_tasks
        self.hyperparameters = hyperparameters_for(setting)
        self.min_observations = self.hyperparameters.min_observations
        self.is_refitted = self.hyperparameters.is_refitted
        self.is_learned = self.is_refitted or setting.mean is None
        self._refit(())

    # -- updates
    # ----------------------------------------------------------------------------------------------

    def observe(self, action: Action, y: float, pending: Sequence[Action]) -> None:
        """Condition the model on a measured value, and refit the hyperparameters if they are due.

        Args:
            action: The measurement.
            y: Its value.
            pending: The actions pending before, with or without `action`, in the order they were
                suggested.

        Raises:
            TruvarError: If the value contradicts a noise-free observation. Nothing has changed
                then.
        """
        others = [other for other in pending if other.id != action.id]
        is_next = bool(pending) and pending[0] is action  # its row is the first pending one already
        before = self.snapshot()
        observations = self.observations.extend([(action, y)])
        surprising = False
        z = np.nan
        try:
            self.check_value(y)
            if self.outcome is None:
                surprising = self._is_surprising(observations)
                if not is_next:
                    self.set_pending([action])
                z = self.likelihood.modelled(action.task, y)
                self.posterior.observe(z)
        except TruvarError:
            self.set_pending(pending)
            raise
        try:
            self.observations = observations
            if not is_next:
                self.set_pending(others)
            if surprising or self.hyperparameters.is_fit_due(
                observations, self._fit, self.fitted_models
            ):
                self._refit(others)
            elif self.outcome is not None:
                self._condition(others)  # an outcome changes the pseudo-values of all others
            elif self.ensemble is not None:
                # Its sites are those of the target.
                site = action.site if action.task == 0 else None
                self.ensemble.append(
                    action.point, z, self.modelled_noise(action), not action.noise_given, site
                )
        except BaseException:
            self.rollback(before, pending)
            raise

    def observe_all(
        self, observations: Sequence[tuple[Action, float]], pending: Sequence[Action]
    ) -> None:
        """Condition the model on many values, and fit learned hyperparameters at most once.

        Between two fits that are due, values are taken one by one.

        Args:
            observations: The measurements with their values.
            pending: The actions pending before, with or without these, in the order they were
                suggested.

        Raises:
            TruvarError: If a value cannot be modelled. The caller rolls back.
        """
        n_before = len(self.observations)
        extended = self.observations.extend(observations)
        others = list(pending)
        if self.is_refitted and not self.hyperparameters.is_fit_due_since(
            n_before, extended, self._fit
        ):
            for action, y in observations:
                self.observe(action, y, others)
                others = [other for other in others if other.id != action.id]
            return
        for _, y in observations:
            self.check_value(y)
        told = {action.id for action, _ in observations}
        self.observations = extended
        self._refit([other for other in others if other.id not in told])

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
        self._use_setting(self.hyperparameters.setting.adopt(model))

    def snapshot(self) -> SurrogateSnapshot:
        """Return a snapshot for `rollback`."""
        return SurrogateSnapshot(self.observations, self._fit, dict(self.fitted_models))

    def rollback(self, snapshot: SurrogateSnapshot, pending: Iterable[Action]) -> None:
        """Restore a snapshot and condition on its observations and the given pending actions."""
        self.observations = snapshot.observations
        self.fitted_models = snapshot.fitted_models
        self._fit = snapshot.fit
        self._condition(pending)

    # -- queries
    # ----------------------------------------------------------------------------------------------

    @property
    def learned_tasks(self) -> Tasks | None:
        """The tasks with learned covariance, noise and mean; None without tasks."""
        return self._fit.learned_tasks

    @property
    def outliers(self) -> list[Observation]:
        """Observations that are left out as outliers."""
        return [self.observations[position] for position in self._fit.outliers]

    @property
    def fitted(self) -> bool:
        """Whether there is a model to make claims with; a learned one needs its first fit."""
        return self.hyperparameters.is_fitted(self.observations)

    @property
    def moments(self) -> tuple[Array, Array]:
        """Posterior mean and variance for claims, in units of `transform`: (n,) each."""
        return self._predictive.mean, self._predictive.variance

    @property
    def user_moments(self) -> tuple[Array, Array]:
        """Posterior mean and standard deviation on the domain, in the user's units: (n,) each."""
        return self.transform.inverse_moments(self._predictive.means, self._predictive.variances)

    @property
    def target_sites(self) -> Array:
        """The points of the domain as `freeze` takes them: with the target's index, if any."""
        return self._predictive.sites

    def freeze(self) -> FrozenPosterior:
        """Return the present posterior, in units of `transform`, unaffected by later data.

        Points are like the rows of `target_sites`.
        """
        return self._predictive.freeze()

    def freeze_average(self) -> FrozenPosterior:
        """Return `freeze` averaged over all that is unknown of the model, which claims are made with."""
        before, fit, average = self._average
        if average is None or before is not self.observations or fit is not self._fit:
            n = len(self.domain)
            average = self.hyperparameters.average(self.observations, self._fit, self.freeze(), n)
            self._average = (self.observations, self._fit, average)
        return average

    def predict(self, points: Array) -> tuple[Array, Array]:
        """Return mean and variance of the target at points (q, d), no pending ones: (q,) each."""
        means, variances = self._predictive.member_moments(self.target_points(points))
        mean, sd = self.transform.inverse_moments(means, variances)
        return mean, sd**2

    def predict_modelled(self, points: Array) -> tuple[Array, Array]:
        """Return mean and variance in the units of `transform`."""
        return self._predictive.predict(self.target_points(points))

    def target_points(self, points: Array) -> Array:
        """Return a copy of points (q, d) for the posterior, which caches its answer by array."""
        points = np.array(points, dtype=float)
        if self._sites.shape[1] > points.shape[1]:
            points = np.column_stack([points, np.zeros(len(points))])  # task 0 is the target
        return points

    def predict_measurement(
        self, action: Action, posterior: FrozenPosterior | None = None
    ) -> tuple[float, float]:
        """Return mean and variance of the value that a measurement would give, with noise.

        Args:
            action: The measurement.
            posterior: The posterior to predict an outcome with; None: that of choices.
        """
        if posterior is not None and isinstance(self.likelihood, Latent):
            moments = posterior.predict(action.point[None, :])
            return self.likelihood.predict(action, *moments, posterior.shares)
        means, variances = self._predictive.moments_of(action)
        return self.likelihood.predict(action, means, variances)

    def sample_measurement(self, action: Action, rng: np.random.Generator) -> float:
        """Draw a value that a measurement could give."""
        if isinstance(self.likelihood, Latent):
            means, variances = self._predictive.moments_of(action)
            return self.likelihood.sample(action, means, variances, rng)
        mean, variance = self.predict_measurement(action)
        return float(rng.normal(mean, np.sqrt(variance)))

    def check(self) -> ModelCheck:
        """Return whether the measurements agree with the model."""
        ids = [action.id for action in self.observations.actions]
        if isinstance(self.likelihood, Latent):
            labels = labels_of(self.observations, self.likelihood)
            return check_outcomes(
                self.posterior,
                self._pseudo_noise,
                labels,
                self.transform,
                ids,
                fitted=self.fitted,
            )
        is_learned = self.family is not None
        return check_model(self.posterior, ids, learned=is_learned, fitted=self.fitted)

    def fit_table(self, frame: pd.DataFrame, value: str | None) -> Model:
        """Fit kernel, mean and learned noise to another data set. The surrogate does not change.

        Args:
            frame: A table with the domain's columns and the column of values.
            value: Name of the column of values; None: the only other column.

        Returns:
            The fitted model, for `adopt`.
        """
        return self.hyperparameters.fit_table(frame, value)

    def check_value(self, y: float) -> None:
        """Check that a value can be modelled.

        Raises:
            InvalidMeasurementError: If it cannot.
        """
        self.likelihood.check(y, self.posterior.scale)

    def modelled_noise(self, action: Action) -> float:
        """Return the noise variance of a measurement in the units of the model."""
        if isinstance(self.likelihood, Latent):
            site = None if action.site is None else np.array([action.site])
            moments = _moments_at(self.posterior, action.point[None, :], site)
            exposure = self.likelihood.exposure(action)
            return float(self.likelihood.outcome.label_variance(*moments, exposure)[0])
        return self.likelihood.modelled_noise(action, self.posterior.scale)

    def modelled_variances(self, noise: Array, points: Array, sites: Index | None = None) -> Array:
        """Return the variances of candidates in the units of the model: (q, K).

        Args:
            noise: Their noise. (q, K)
            points: Their points. (q, d')
            sites: Their rows of the model's grid, if all have one. (q,)
        """
        if self.outcome is None:
            return self.likelihood.modelled_variances(noise, points)
        moments = _moments_at(self.posterior, points, sites)
        variances = self.outcome.label_variance(*moments, self.outcome.default_exposure)
        return variances[:, None] + np.zeros_like(noise)

    # -- private
    # ----------------------------------------------------------------------------------------------

    def _is_surprising(self, observations: Observations) -> bool:
        """Return whether the last value is so unexpected that the model is refitted immediately."""
        if self.ensemble is None:
            return False
        if self.hyperparameters.has_new_outliers(observations, self._fit):
            return True
        action, y = observations[-1]
        mean, variance = self.ensemble.predict(action.point[None, :])
        deviation = self.likelihood.modelled(action.task, y) - float(mean[0])
        noise = self.likelihood.relative_noise(action)
        return deviation**2 > _REFIT_Z_SCORE**2 * float(variance[0] + noise)

    def _refit(self, pending: Iterable[Action]) -> None:
        """Fit the hyperparameters, if they are learned, and condition on everything again."""
        self._fit = self.hyperparameters.fit(self.observations, self.fitted_models)
        if self._fit.noise_of is not None:
            self.observations = self.observations.with_noise(self._fit.noise_of)
        self._condition(pending)

    def _condition(self, pending: Iterable[Action]) -> None:
        """Make a new posterior and engine from the present hyperparameters and data."""
        fit = self._fit
        self.kernel = fit.kernel
        self.noise = fit.noise
        self.action_tasks = fit.tasks
        self.model = fit.averaged
        self.likelihood = fit.likelihood
        self.transform = fit.likelihood.transform
        n = len(self.domain)
        observations = fit.inflate_outlier_noise(self.observations)
        pseudo = fit.pseudo_values(observations)
        self._pseudo_noise = np.zeros(0) if pseudo is None else pseudo.noise
        mean = fit.mean if pseudo is None else pseudo.mean
        # An engine may keep the factor in other processes.
        factor = getattr(self._engine, "factor", LocalFactor)
        self.posterior = Posterior(fit.site_kernel, self._sites, mean, fit.offset, n, factor)
        self.engine = engine_for(self.posterior, self.domain, self._engine)
        if pseudo is None:
            z = [fit.likelihood.modelled(action.task, y) for action, y in observations]
            noise = np.array([self.modelled_noise(action) for action in observations.actions])
        else:
            z = pseudo.z.tolist()
            noise = pseudo.noise
        if not self.posterior.condition(observations.points, noise, np.array(z)):
            for action, each, own in zip(observations.actions, z, noise.tolist(), strict=True):
                self.posterior.add(action.point, own, action.site)
                self.posterior.observe(each)
        self.set_pending(pending)
        previous = self.ensemble
        self.ensemble = fit.new_ensemble(observations)
        if self.ensemble is None:
            self._predictive = SinglePosterior(self.posterior, n)
            return
        if previous is not None:
            self.ensemble.take_memory(previous)
        self.ensemble.condition(observations.points, np.array(z), noise, ~observations.noise_given)
        self._predictive = self.ensemble


def _moments_at(posterior: Posterior, points: Array, sites: Index | None) -> tuple[Array, Array]:
    """Return mean and variance of f where measurements are made, no pending ones: (q,) each."""
    if sites is None:
        return posterior.predict(np.array(points, dtype=float))
    return posterior.mean[sites], posterior.variance[sites]
