"""Hyperparameter models: some hyperparameters are known, the others are fitted.

A `Surrogate` holds one `Hyperparameters` object and asks it for a `Fit`. A new one is a module here
and a line in `hyperparameters_for`.
"""

from __future__ import annotations

from truvar.models.hyperparameters.base import AnyModel, Fit, Hyperparameters, Setting
from truvar.models.hyperparameters.known import Known
from truvar.models.hyperparameters.noise import LearnedNoise
from truvar.models.likelihoods import Outcome

__all__ = [
    "AnyModel",
    "Fit",
    "Hyperparameters",
    "Known",
    "LearnedNoise",
    "Setting",
    "hyperparameters_for",
]


def hyperparameters_for(setting: Setting) -> Hyperparameters:
    """Return the model of the hyperparameters that a setting leaves unknown."""
    # Some of the modules import slowly, and few studies need more than one.
    family = setting.family
    tasks = setting.tasks
    if tasks is not None and setting.has_learned_tasks:
        from truvar.models.hyperparameters.tasks import LearnedTasks

        return LearnedTasks(setting, tasks)
    if family is not None and isinstance(setting.likelihood, Outcome):
        from truvar.models.hyperparameters._latent import LearnedLatent

        return LearnedLatent(setting, family, setting.likelihood)
    if family is None:
        return LearnedNoise(setting) if setting.noise is None else Known(setting)
    if family.is_composed:
        from truvar.models.hyperparameters._fitted_kernel import FittedKernel

        return FittedKernel(setting, family)
    if family.marginalise:
        from truvar.models.hyperparameters.averaged import Averaged

        return Averaged(setting, family)
    from truvar.models.hyperparameters.point_estimate import PointEstimate

    return PointEstimate(setting, family)
