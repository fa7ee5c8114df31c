"""`LearnedNoise`: the kernel is given, and one noise variance is learned."""

from __future__ import annotations

import numpy as np

from truvar.models._noise import NoiseModel, fit_noise, unfitted_noise
from truvar.models.hyperparameters.base import AnyModel, Fit, Setting, fit_once
from truvar.models.hyperparameters.known import Known
from truvar.models.kernels import covariance_function, prior_scale
from truvar.models.observations import Observations
from truvar.models.priors import is_refit_step


class LearnedNoise(Known):
    """A known kernel with the most probable noise variance."""

    is_refitted = True

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        sites = setting.sites[: len(setting.domain)]
        self._prior_variance = prior_scale(self._given.site_kernel, sites) ** 2

    def _is_scheduled(self, observations: Observations, current: Fit) -> bool:
        return is_refit_step(len(observations))

    def fit(self, observations: Observations, models: dict[int, AnyModel]) -> Fit:
        """Return the given kernel with the most probable noise variance."""
        count = len(observations)
        if count < 2:
            model = unfitted_noise(self._prior_variance)
        else:
            model = fit_once(models, count, NoiseModel, lambda _: self._fit_noise(observations))
        return self._given.with_noise(model.variance)

    def _fit_noise(self, observations: Observations) -> NoiseModel:
        mean = self.setting.mean
        points = observations.points
        residuals = observations.values - (mean or 0.0)
        offset = self._given.offset
        if offset is not None:
            residuals = residuals - offset(points)
        return fit_noise(
            covariance_function(self._given.site_kernel)(points, points),
            residuals,
            np.where(
                observations.noise_given, self.setting.variances(observations.actions), np.nan
            ),
            prior_variance=self._prior_variance,
            estimate_mean=mean is None,
        )
