"""`PointEstimate`: the most probable kernel of a family is used as if it were known."""

from __future__ import annotations

from dataclasses import replace

from truvar.models.fit import JITTER_SHARE, Model, fit, unfitted
from truvar.models.frozen import FrozenPosterior
from truvar.models.hyperparameters.base import AnyModel, Fit, Hyperparameters, Setting, fit_once
from truvar.models.kernels import with_categories
from truvar.models.model_average import with_uncertain_scale
from truvar.models.observations import Observations
from truvar.models.priors import Learned


class LearnedFamily(Hyperparameters):
    """A kernel family whose hyperparameters are fitted on the schedule of a `Learned`.

    Args:
        setting: The part of the model that observations do not change.
        family: The family, which is also that of the setting.
    """

    def __init__(self, setting: Setting, family: Learned) -> None:
        super().__init__(setting)
        self.family = family
        self.hides_noise = family.noise
        self.min_observations = family.min_observations

    def is_fitted(self, observations: Observations) -> bool:
        """Return whether the initial design is complete."""
        return len(observations) >= self.setting.n_initial

    def _is_scheduled(self, observations: Observations, current: Fit) -> bool:
        count = len(observations)
        return count <= self.setting.n_initial or self.family.is_refit_due(count)


class PointEstimate(LearnedFamily):
    """The hyperparameters that maximise the penalised marginal likelihood."""

    def fit(self, observations: Observations, models: dict[int, AnyModel]) -> Fit:
        """Return the most probable kernel and, if it is learned, noise variance."""
        setting = self.setting
        model = self._model(observations, models)
        kernel = with_categories(model.kernel, setting.domain.categorical)
        return Fit(
            kernel=kernel,
            site_kernel=kernel,
            mean=setting.mean,
            offset=setting.mean_function,
            noise=setting.given_noise,
            likelihood=replace(setting.observation_model, jitter=JITTER_SHARE),
        ).with_noise(model.noise if self.hides_noise else None)

    def average(
        self, observations: Observations, current: Fit, posterior: FrozenPosterior, n: int
    ) -> FrozenPosterior:
        """Return the posterior averaged over the scale of f."""
        return with_uncertain_scale(posterior)

    def _model(self, observations: Observations, models: dict[int, AnyModel]) -> Model:
        setting = self.setting
        extent = setting.domain.extent
        values = setting.residuals(observations)
        if not self.is_fitted(observations):
            return unfitted(self.family, extent, values)
        count = len(observations)
        points = observations.points
        noise = setting.variances(observations.actions)
        seed = setting.seed + count
        categorical = setting.domain.categorical

        def fit_from(_: Model | None) -> Model:
            return fit(self.family, points, values, noise, extent, setting.mean, seed, categorical)

        return fit_once(models, count, Model, fit_from)
