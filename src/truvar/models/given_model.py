"""Claims with a kernel that was given: the average of it and of a learned one, by evidence."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from truvar.models._learned import FitData, unfitted_ensemble
from truvar.models.ensemble import CONSTANT
from truvar.models.frozen import FrozenMember, FrozenPosterior
from truvar.models.hyperparameters.averaged import conditions_of
from truvar.models.hyperparameters.base import Fit, Setting
from truvar.models.model_average import affordable_members, average_over_families
from truvar.models.observations import Observations

_GIVEN_PROBABILITY = 0.75  # prior probability that the given model is right
MIN_WEIGHT = 0.005  # of the given or the learned models, below which they are left out


def average_with_learned(
    setting: Setting,
    observations: Observations,
    current: Fit,
    posterior: FrozenPosterior,
    n: int,
    penalty: float = 0.0,
) -> FrozenPosterior:
    """Return the posterior averaged over the given model and learned ones.

    Args:
        setting: The part of the model that observations do not change.
        observations: All of them.
        current: The given hyperparameters, with the noise in use.
        posterior: The posterior with the given kernel; its first member has the best
            hyperparameters.
        n: Number of points that are predicted.
        penalty: Subtracted from the log evidence of the given model, for what was fitted of it.
    """
    learned = replace(setting, mean=None)  # the mean was given with the kernel
    data = _fit_data(learned, observations)
    conditions = conditions_of(observations, current, learned)
    start = unfitted_ensemble("matern52", data)
    seed = setting.seed + len(observations)
    count = max(affordable_members(n, len(observations)) - 1, 1)
    average, log_evidence = average_over_families(data, start, conditions, count, seed)
    given = posterior.members[0]
    log_odds = _log_evidence(given) - penalty - log_evidence
    log_odds += float(np.log(_GIVEN_PROBABILITY / (1.0 - _GIVEN_PROBABILITY)))
    weight = 1.0 / (1.0 + np.exp(np.clip(log_odds, -50.0, 50.0)))  # of the learned models
    if weight < MIN_WEIGHT:
        return posterior
    if weight > 1.0 - MIN_WEIGHT:
        return average
    shares = [*((1.0 - weight) * posterior.shares), *(weight * average.shares)]
    return FrozenPosterior((*posterior.members, *average.members), tuple(map(float, shares)))


def _log_evidence(member: FrozenMember) -> float:
    """Return the log density of the observations, up to a constant that only depends on their number.

    An estimated constant has the prior of learned models: a variance of `CONSTANT` times that of f.
    """
    log_density = -0.5 * float(member.whitened @ member.whitened)
    log_density -= float(np.log(np.diag(member.lower)).sum())
    ones = member.whitened_ones
    if ones is None:
        return log_density
    variance = CONSTANT * float(member.prior_variance(member.points[:1])[0])
    return log_density - 0.5 * float(np.log1p(variance * (ones @ ones)))


def _fit_data(setting: Setting, observations: Observations) -> FitData:
    values = setting.residuals(observations)
    variances = setting.variances(observations.actions)
    is_given = observations.noise_given | (setting.noise is not None)
    return FitData(
        points=observations.points,
        values=values,
        noise=np.where(is_given, variances, np.nan),
        extent=setting.domain.extent,
        spacing=setting.domain.spacing,
        low=setting.domain.bounds[:, 0],
        references=setting.references_of_residuals(values),
        learn_power=False,
        thresholds=setting.thresholds_at(observations.points, values),
        direction=setting.direction,
        categorical=setting.domain.categorical,
    )
