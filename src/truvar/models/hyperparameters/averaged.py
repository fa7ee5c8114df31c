"""`Averaged`: predictions are averaged over the plausible kernels of a family."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace

import numpy as np

from truvar._typing import Array
from truvar.domain.action import Action
from truvar.domain.candidates import CoordinateFunction
from truvar.models._conditions import Conditions
from truvar.models._coregionalization import TaskModel
from truvar.models._learned import FitData, fit_ensemble, unfitted_ensemble
from truvar.models._outliers import find_outliers
from truvar.models.ensemble import Ensemble, EnsembleModel
from truvar.models.ensemble import affordable_members as affordable_factors
from truvar.models.frozen import FrozenPosterior
from truvar.models.hyperparameters.base import AnyModel, Fit, Setting, fit_once
from truvar.models.hyperparameters.point_estimate import LearnedFamily
from truvar.models.likelihoods.gaussian import LARGEST_LEARNED, Gaussian
from truvar.models.model_average import affordable_members, average_over_families
from truvar.models.observations import Observations
from truvar.models.transforms import OutputTransform

# share of the squared scale of the values: the smallest noise that an ensemble is learned with
_ENSEMBLE_JITTER = 1e-8


def learned_likelihood(
    setting: Setting, transform: OutputTransform, units: Array | None = None
) -> Gaussian:
    """Return the observation model of learned hyperparameters."""
    return replace(
        setting.observation_model,
        transform=transform,
        units=units,
        min_noise=_ENSEMBLE_JITTER * transform.scale**2,
        max_value=LARGEST_LEARNED,
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class SampledFit(Fit):
    """The most probable hyperparameters with a sample of plausible ones.

    Attributes:
        setting: The part of the model that observations do not change.
        model: The fit as it is stored.
    """

    setting: Setting
    model: EnsembleModel | TaskModel

    @property
    def averaged(self) -> EnsembleModel | TaskModel:
        """The hyperparameters that predictions are averaged over."""
        return self.model

    @property
    def outliers(self) -> tuple[int, ...]:
        """Positions of the observations that are left out."""
        return self.model.outliers

    def new_ensemble(self, observations: Observations) -> Ensemble | None:
        """Return the prior averaged over the hyperparameters, for these observations."""
        n_members = len(self.averaged.signal) - 1
        count = len(observations)
        if n_members == 0 or affordable_factors(len(self.setting.domain), count) < 2:
            return None
        return self._ensemble(observations)

    @abstractmethod
    def _ensemble(self, observations: Observations) -> Ensemble: ...


@dataclass(frozen=True, eq=False, kw_only=True)
class _AveragedFit(SampledFit):
    """A fit of the kernels of a family."""

    model: EnsembleModel

    def _ensemble(self, observations: Observations) -> Ensemble:
        setting = self.setting
        return Ensemble(
            self.model,
            setting.domain.points,
            setting.mean,
            len(observations),
            setting.mean_function,
        )

    def _deviation(self, action: Action, y: float) -> float:
        residual = float(self.model.transform.forward(y))
        if self.setting.mean_function is not None:
            residual -= float(self.setting.mean_function(action.point[None, :])[0])
        return residual - self.model.transform.shift


def conditions_of(observations: Observations, current: Fit, setting: Setting) -> Conditions:
    """Return observations as the members of an average are conditioned on them."""
    observations = current.inflate_outlier_noise(observations)
    likelihood = current.likelihood
    return Conditions(
        points=observations.points,
        z=np.array([likelihood.modelled(action.task, y) for action, y in observations]),
        noise=np.array([likelihood.relative_noise(action) for action in observations.actions]),
        learned=np.array([not action.noise_given for action in observations.actions], dtype=bool),
        mean=setting.mean,
        offset=setting.mean_function,
    )


class Averaged(LearnedFamily):
    """The most probable hyperparameters, a sample of others, transform and outliers."""

    def fit(self, observations: Observations, models: dict[int, AnyModel]) -> Fit:
        """Return the most probable hyperparameters with a sample of plausible ones."""
        setting = self.setting
        model = self._model(observations, models)
        found = _AveragedFit(
            kernel=model.kernel,
            site_kernel=model.kernel,
            mean=setting.mean,
            offset=setting.mean_function,
            noise=setting.given_noise,
            likelihood=learned_likelihood(setting, model.transform),
            setting=setting,
            model=model,
        )
        if model.noise_slopes is not None:
            of_variance = found.likelihood.noise
            noise_at = CoordinateFunction(lambda points: of_variance(model.mode_noise_at(points)))
            return replace(
                found,
                noise=noise_at,
                noise_of=lambda action: float(noise_at(action.point[None, :])[0]),
            )
        return found.with_noise(model.mode_noise if self.hides_noise else None)

    def average(
        self, observations: Observations, current: Fit, posterior: FrozenPosterior, n: int
    ) -> FrozenPosterior:
        """Return the posterior averaged over smoothness, hyperparameters and scale."""
        if not isinstance(current, _AveragedFit) or not self.is_fitted(observations):
            return posterior
        seed = self.setting.seed + len(observations)
        count = affordable_members(n, len(observations))
        conditions = conditions_of(observations, current, self.setting)
        data = self.fit_data(observations)
        return average_over_families(data, current.model, conditions, count, seed)[0]

    def has_new_outliers(self, observations: Observations, current: Fit) -> bool:
        """Return whether the values far from all others differ from those of the current fit."""
        if not isinstance(current, _AveragedFit):
            return False
        setting = self.setting
        residuals = setting.residuals(observations)
        logarithm = OutputTransform(log=current.model.transform.log)
        references = logarithm.forward(
            np.array(setting.references_of_residuals(residuals))
        ).tolist()
        points = observations.points / setting.domain.extent
        exact = self.given_noise(observations.actions) == 0.0
        return (
            find_outliers(logarithm.forward(residuals), references, points, exact)
            != current.model.separated
        )

    def _model(self, observations: Observations, models: dict[int, AnyModel]) -> EnsembleModel:
        family = self.family.kernel
        data = self.fit_data(observations)
        if not self.is_fitted(observations):
            return unfitted_ensemble(family, data)
        count = len(observations)
        seed = self.setting.seed + count
        return fit_once(
            models,
            count,
            EnsembleModel,
            lambda previous: fit_ensemble(family, data, previous, seed),
        )

    def fit_data(self, observations: Observations) -> FitData:
        """Return the data that the hyperparameters are fitted to."""
        setting = self.setting
        noise = self.given_noise(observations.actions)
        is_exact = not np.nan_to_num(noise).any()
        values = setting.residuals(observations)
        has_mean = setting.mean is not None or setting.mean_function is not None
        return FitData(
            points=observations.points,
            values=values,
            noise=noise,
            learn_noise=self.family.noise,
            extent=setting.domain.extent,
            spacing=setting.domain.spacing,
            low=setting.domain.bounds[:, 0],
            mean=setting.mean,
            references=setting.references_of_residuals(values),
            log=self.family.transform == "log",
            learn_power=setting.learn_power
            and self.family.transform == "auto"
            and not has_mean
            and is_exact,
            thresholds=setting.thresholds_at(observations.points, values),
            direction=setting.direction,
            categorical=setting.domain.categorical,
        )
