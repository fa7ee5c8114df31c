"""The posterior averaged over all that is unknown of the model, which claims are made with.

| unknown | prior | how the data decide |
|---|---|---|
| smoothness of f | Matern 1/2, 3/2, 5/2 and RBF, equally probable | evidence to the power `_LEARNING_RATE` |
| whether f is rough here and smooth there | `_WARPED_PROBABILITY`, see `_warping` | evidence |
| length-scales, signal and noise variance | that of `hyperposterior` | their posterior, sampled |
| scale of f | factor on the sd: that of a Student-t, see `_scale` | one-step-ahead errors |
| whether the most improbable value is an outlier | see `_suspect` | evidence with and without it |

Choices are made with the most plausible smoothness alone. Claims need more: a family that is wrong
is sure of its errors. All families see the same values, transformed in the same way and without
the same outliers, so that their evidence can be compared. None of them is true, and measurements
crowd where a policy looks, so that evidence counts only in part (Gruenwald and van Ommen 2017).
That of warped coordinates counts in full, but is seldom expected: with few values they would only
add to what is unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from truvar._numba.threads import blas_in_one_thread
from truvar._typing import Array
from truvar.models._conditions import Conditions
from truvar.models._learned import FamilyPosterior, FitData, family_posterior
from truvar.models._scale import scale_factors
from truvar.models._suspect import MAX_PROBABILITY, find_suspect, leave_out
from truvar.models._warping import Warp, warped_columns
from truvar.models.ensemble import CONSTANT, EnsembleModel
from truvar.models.frozen import FrozenMember, FrozenPosterior, robust_cholesky
from truvar.models.kernels import SMOOTHNESS, Stationary, twice_nu

FAMILIES = ("matern12", "matern32", "matern52", "rbf")
N_MEMBERS = 32  # members of the average
MIN_MEMBERS = 4  # members of it on large domains
MAX_OPERATIONS = 4e10  # for predicting all points with all members, about
_LEARNING_RATE = 0.4  # power of the evidence
WARPED_FAMILY = "matern52"  # the family that is fitted to warped coordinates too
_WARPED_PROBABILITY = 0.1  # prior probability that coordinates are warped
MIN_FAMILY_WEIGHT = 0.01  # below which a family is left out
_MIN_NOISE_SHARE = 1e-10  # share of the signal variance: the smallest noise; draws take it for none


def affordable_members(n: int, t: int) -> int:
    """Return how many members predict n points from t observations in a reasonable time."""
    return int(np.clip(MAX_OPERATIONS / (n * max(t, 1) ** 2), MIN_MEMBERS, N_MEMBERS))


@blas_in_one_thread()
def average_over_families(
    data: FitData, current: EnsembleModel, conditions: Conditions, n_members: int, seed: int
) -> tuple[FrozenPosterior, float]:
    """Return the posterior averaged over smoothness, hyperparameters and scale, and its evidence.

    Args:
        data: The observations that the families are fitted to.
        current: The fit that gives transform, outliers and slopes of the noise.
        conditions: The observations that the members are conditioned on.
        n_members: Number of members, about.
        seed: Seed of the sample.

    Returns:
        The posterior, and the logarithm of the probability density of the values, up to a constant.
    """
    families = _fit_families(data, current, conditions, n_members, seed)
    log_evidence = _mean_evidence(families)
    # Warped coordinates can follow an outlier, so that they do not count in looking for one.
    plain = [each for each in families if not each.posterior.warps]
    best = max(plain, key=lambda each: each.posterior.log_evidence)
    suspect = find_suspect(best.freeze(0, 1.0), conditions, current.transform)
    if suspect is not None:
        without = replace(current, outliers=(*current.outliers, suspect.position))
        left_out = leave_out(conditions, suspect.position, current.transform.shift)
        others = _fit_families(data, without, left_out, n_members, seed)
        log_outlier = suspect.log_density - float(np.log(current.transform.scale))
        plain_others = [each for each in others if not each.posterior.warps]
        log_evidences = np.array(
            [_mean_evidence(plain), _mean_evidence(plain_others) + log_outlier]
        )
        probability = min(float(tempered(log_evidences)[1]), MAX_PROBABILITY)
        families = [
            *(each.reweight(1.0 - probability) for each in families),
            *(each.reweight(probability) for each in others),
        ]
    return _sampled(families, n_members), log_evidence


class _Family(NamedTuple):
    """A family of an average, fitted.

    Attributes:
        posterior: The most probable hyperparameters, and a sample.
        conditions: The observations that its members are conditioned on.
        prior: Its prior probability.
        weight: Its weight.
    """

    posterior: FamilyPosterior
    conditions: Conditions
    prior: float
    weight: float

    def freeze(self, row: int, factor: float) -> FrozenMember:
        """Return the posterior with one row of the model, its scale larger by a factor."""
        model = _scaled(self.posterior.model, row, factor)
        warps = self.posterior.warps
        return freeze_member(model, self.conditions, warps[row] if warps else None)

    def reweight(self, factor: float) -> _Family:
        """Return the family with its weight multiplied."""
        return self._replace(weight=factor * self.weight)


def _fit_families(
    data: FitData, current: EnsembleModel, conditions: Conditions, n_members: int, seed: int
) -> list[_Family]:
    """Return all families with their weights, which add up to 1."""
    fit = partial(family_posterior, data=data, current=current, n_members=n_members, seed=seed)
    found = [fit(family) for family in FAMILIES]
    priors = np.full(len(FAMILIES), 1.0 / len(FAMILIES))
    weights = tempered(np.array([each.log_evidence for each in found]))
    columns = warped_columns(data.spacing, data.categorical, len(data.values))
    if columns and data.low is not None:
        found.append(fit(WARPED_FAMILY, warped=columns))
        priors = np.append((1.0 - _WARPED_PROBABILITY) * priors, _WARPED_PROBABILITY)
        log_joint = np.log(priors) + [each.log_evidence for each in found]
        share = float(np.exp(log_joint[-1] - np.logaddexp.reduce(log_joint)))
        weights = np.append((1.0 - share) * weights, share)
    weights[weights < MIN_FAMILY_WEIGHT] = 0.0
    weights /= weights.sum()
    return [
        _Family(each, conditions, prior, weight)
        for each, prior, weight in zip(found, priors.tolist(), weights.tolist(), strict=True)
    ]


def _mean_evidence(families: Sequence[_Family]) -> float:
    """Return the log evidence of all families, each with its prior probability."""
    log_joint = [np.log(each.prior) + each.posterior.log_evidence for each in families]
    return float(np.logaddexp.reduce(log_joint))


def _sampled(families: Sequence[_Family], n_members: int) -> FrozenPosterior:
    """Return the mixture of about so many members, each family's by its weight."""
    members: list[FrozenMember] = []
    shares: list[float] = []
    for each in families:
        if each.weight == 0.0:
            continue
        model = each.posterior.model
        count = max(round(n_members * each.weight), 1)
        errors = each.freeze(0, 1.0).whitened
        factors = scale_factors(count, errors, len(members), is_noise_given=model.noise is None)
        rows = 1 + (np.arange(count) * (len(model.signal) - 1)) // count
        for row, factor in zip(rows.tolist(), factors.tolist(), strict=True):
            members.append(each.freeze(row, factor))
            shares.append(each.weight / count)
    return FrozenPosterior(tuple(members), tuple(shares))


def tempered(log_evidence: Array) -> Array:
    """Return the weights of models given their log evidence, which add up to 1."""
    weights = np.exp(_LEARNING_RATE * (log_evidence - log_evidence.max()))
    return np.asarray(weights / weights.sum())


def with_uncertain_scale(posterior: FrozenPosterior) -> FrozenPosterior:
    """Return a mixture whose members differ in the scale of f, where families are not averaged."""
    members = posterior.members
    copies = -(-N_MEMBERS // len(members))
    repeated = [member for member in members for _ in range(copies)]
    factors = scale_factors(len(repeated), members[0].whitened)
    scaled = [
        member.scale_sds(float(factor)) for member, factor in zip(repeated, factors, strict=True)
    ]
    weights = np.repeat(posterior.shares / copies, copies)
    return FrozenPosterior(tuple(scaled), tuple(weights.tolist()))


def freeze_member(
    model: EnsembleModel, conditions: Conditions, warp: Warp | None = None
) -> FrozenMember:
    """Return the posterior with the first hyperparameters of a model.

    Args:
        model: The model.
        conditions: The observations.
        warp: The warp of their coordinates; None: there is none.
    """
    signal = float(model.signal[0])
    kernel = Stationary(
        twice_nu(SMOOTHNESS[model.family]), signal, model.lengthscales[0], model.categorical
    )
    constant = 0.0 if conditions.mean is not None else CONSTANT * signal
    shift = model.transform.shift if conditions.mean is None else conditions.mean
    offset = conditions.offset

    def covariance(points: Array, others: Array) -> Array:
        if warp is not None:
            points = warp(points)
            others = warp(others)
        return np.asarray(kernel(points, others) + constant)

    def prior_mean(points: Array) -> Array:
        return np.full(len(points), shift) if offset is None else shift + offset(points)

    points = conditions.points
    noise = conditions.noise
    if model.noise is not None:
        learned = float(model.noise[0]) * model.noise_factor(points)
        noise = np.where(conditions.learned, learned, noise)
    within = covariance(points, points)
    within[np.diag_indices_from(within)] += np.maximum(noise, _MIN_NOISE_SHARE * signal)
    lower = robust_cholesky(within)
    # Members with hardly any noise magnify rounding errors, which a large offset must not add to.
    residuals = (conditions.z if offset is None else conditions.z - offset(points)) - shift
    return FrozenMember(
        covariance=covariance,
        prior_variance=lambda points: np.full(len(points), signal + constant),
        prior_mean=prior_mean,
        points=points,
        lower=lower,
        whitened=solve_triangular(lower, residuals, lower=True, check_finite=False),
        whitened_ones=None,
        scales=np.full(points.shape[1], model.lengthscales[0]),
        family=model.family,
    )


def _scaled(model: EnsembleModel, row: int, factor: float) -> EnsembleModel:
    """Return one row of a model with signal and learned noise larger by a factor on the sd."""
    only = slice(row, row + 1)
    return replace(
        model,
        lengthscales=model.lengthscales[only],
        signal=factor**2 * model.signal[only],
        noise=None if model.noise is None else factor**2 * model.noise[only],
    )
