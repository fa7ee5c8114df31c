"""`LearnedLatent`: the plausible kernels of a latent function, learned from outcomes."""

from __future__ import annotations

from dataclasses import dataclass

from truvar.models._labels import labels_of
from truvar.models._latent import (
    LatentData,
    LatentEnsemble,
    fit_latent,
    latent_average,
    modal_values,
    unfitted_latent,
)
from truvar.models.ensemble import EnsembleModel
from truvar.models.frozen import FrozenPosterior
from truvar.models.hyperparameters.averaged import SampledFit
from truvar.models.hyperparameters.base import AnyModel, Fit, PseudoValues, Setting, fit_once
from truvar.models.hyperparameters.point_estimate import LearnedFamily
from truvar.models.likelihoods import Latent, Outcome
from truvar.models.model_average import affordable_members
from truvar.models.observations import Observations
from truvar.models.priors import Learned


@dataclass(frozen=True, eq=False, kw_only=True)
class LatentFit(SampledFit):
    """A fit of a latent function.

    Attributes:
        model: The fit as it is stored.
        likelihood: The observation model.
    """

    model: EnsembleModel
    likelihood: Latent

    def _ensemble(self, observations: Observations) -> LatentEnsemble:
        labels = labels_of(observations, self.likelihood)
        return LatentEnsemble(self.model, self.setting.domain.points, labels)

    def pseudo_values(self, observations: Observations) -> PseudoValues:
        """Return the normal values that stand for the outcomes with the most probable kernel."""
        return PseudoValues(*modal_values(self.model, labels_of(observations, self.likelihood)))


class LearnedLatent(LearnedFamily):
    """The most probable hyperparameters of a latent function, and a sample of others.

    Args:
        setting: The part of the model that observations do not change.
        family: The kernel family.
        outcome: The kind of values that are measured.
    """

    def __init__(self, setting: Setting, family: Learned, outcome: Outcome) -> None:
        super().__init__(setting, family)
        self.hides_noise = False
        self._outcome = outcome

    def fit(self, observations: Observations, models: dict[int, AnyModel]) -> LatentFit:
        """Return the most probable hyperparameters with a sample of plausible ones."""
        model = self._model(observations, models)
        return LatentFit(
            kernel=model.kernel,
            site_kernel=model.kernel,
            mean=None,
            offset=None,
            noise=0.0,
            likelihood=Latent(transform=model.transform, outcome=self._outcome),
            setting=self.setting,
            model=model,
        )

    def average(
        self, observations: Observations, current: Fit, posterior: FrozenPosterior, n: int
    ) -> FrozenPosterior:
        """Return the posterior averaged over smoothness and hyperparameters."""
        if not isinstance(current, LatentFit) or not self.is_fitted(observations):
            return posterior
        count = len(observations)
        seed = self.setting.seed + count
        members = affordable_members(n, count)
        return latent_average(self._data(observations), current.model, members, seed)

    def _model(self, observations: Observations, models: dict[int, AnyModel]) -> EnsembleModel:
        family = self.family.kernel
        data = self._data(observations)
        if not self.is_fitted(observations):
            return unfitted_latent(family, data)
        count = len(observations)
        seed = self.setting.seed + count

        def fit_from(previous: EnsembleModel | None) -> EnsembleModel:
            return fit_latent(family, data, previous, seed)

        return fit_once(models, count, EnsembleModel, fit_from)

    def _data(self, observations: Observations) -> LatentData:
        domain = self.setting.domain
        likelihood = Latent(outcome=self._outcome)
        return LatentData(
            labels=labels_of(observations, likelihood),
            extent=domain.extent,
            spacing=domain.spacing,
            categorical=domain.categorical,
        )
