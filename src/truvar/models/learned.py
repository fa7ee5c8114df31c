"""Learning kernel, mean, noise and output transform from the observations: the mode and a sample of what is plausible.

Coordinates are divided by the extent of the domain, values are standardised, and `hyperposterior` does the rest.

| question | answer |
|---|---|
| unit of the values | standard deviation, at least 0.4 of the distance from the typical value to the threshold |
| power of the transform | 1, unless another makes the observations much more probable |
| gross errors | left out (see `outliers`) |
| size of the sample | 16 members up to 150 observations, 8 up to 500, then 4 |
| nothing measured beyond the threshold yet, or all values alike | every second member is from the prior |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from truvar._typing import Array
from truvar.models.ensemble import CONSTANT, EnsembleModel
from truvar.models.hyperposterior import HyperPrior, MarginalLikelihood, find_mode, sample_posterior
from truvar.models.kernels import SMOOTHNESS, twice_nu
from truvar.models.outliers import find_outliers
from truvar.models.transforms import OutputTransform

LEAST_FOR_POWER = 8  # observations below which the power stays 1
ADVANTAGE = 2.0  # log posterior density by which a power must be better than none
LARGE = 120  # observations from which the transform stays of the same kind
# Observations, at most -> members, proposals per round, rounds: many observations leave little to average over.
EFFORT = {150: (16, 64, 2), 500: (8, 32, 2), np.inf: (4, 16, 1)}
FLAT = 1e-6  # units of the values: observations that differ less count as all alike
SMALLEST = 1e-50  # unit of the values, below which they count as all alike: its fourth power must not vanish
REFERENCE = 2.5  # distance of the threshold from the typical value, at most, in units of the standardised values


@dataclass(frozen=True)
class FitData:
    """Observations to learn from.

    Attributes:
        points: Where they were made. (t, d)
        values: In the user's units, a mean function subtracted. (t,)
        noise: Known noise variances; None: learned. (t,)
        extent: Extent of the domain. (d,)
        spacing: Smallest distance between coordinates of the domain, in extents. (d,)
        mean: Known constant mean; None: learned.
        reference: A value that matters, such as the threshold; None without one. With a mean function, the nearest that
            the threshold minus that function comes to the typical value.
        log: Whether the logarithms of the values are modelled.
        learn_power: Whether a power of the values may be modelled.
        thresholds: The threshold minus the mean function at the points; None without one of them. (t,)
    """

    points: Array
    values: Array
    noise: Array | None
    extent: Array
    spacing: Array
    mean: float | None = None
    reference: float | None = None
    log: bool = False
    learn_power: bool = True
    thresholds: Array | None = None


@dataclass(frozen=True)
class _Standardisation:
    shift: float
    scale: float
    learn_power: bool


def fit_ensemble(family: str, data: FitData, previous: EnsembleModel | None, seed: int) -> EnsembleModel:
    """Return the hyperparameters learned from the observations.

    Args:
        family: "rbf", "matern12", "matern32" or "matern52".
        data: The observations.
        previous: The model of fewer observations, which the search starts from.
        seed: Seed of the sample.
    """
    logarithm = OutputTransform(log=data.log)
    values = logarithm.forward(data.values)
    reference = None if data.reference is None else float(logarithm.forward(data.reference))
    outliers = find_outliers(values, reference)
    kept = np.setdiff1d(np.arange(len(values)), outliers)
    found: list[tuple[float, _Standardisation, Array]] = []
    for option in _standardisations(values[kept], reference, data, previous):
        likelihood, prior = _problem(family, data, values, kept, option)
        mode = find_mode(likelihood, prior, _starts(prior, previous, data, option, len(kept)))
        density = likelihood.value(mode) + prior.log_density(mode) - len(kept) * np.log(option.scale)
        density -= ADVANTAGE * option.learn_power
        found.append((density, option, mode))
    density, option, mode = max(found, key=lambda each: each[0])
    power = 1.0
    if option.learn_power:
        power = float(mode[-1])
        mode = mode[:-1]
    likelihood, prior = _problem(family, data, values, kept, option, power)
    count, proposals, rounds = next(effort for most, effort in EFFORT.items() if len(kept) <= most)
    sample = sample_posterior(likelihood, prior, mode, count, proposals, rounds, seed)
    members = sample.thetas
    thresholds = reference if data.thresholds is None else data.thresholds[kept]
    is_flat = np.ptp(values[kept]) <= FLAT * option.scale
    if is_flat:
        mode = prior.mean
    if is_flat or (thresholds is not None and _is_one_sided(values[kept], thresholds)):
        members[::2] = _prior_members(prior, data.points.shape[1], mode, len(members[::2]), seed)
    thetas = np.vstack([mode, members])
    d = data.points.shape[1]
    return EnsembleModel(
        family=family,
        lengthscales=np.exp(thetas[:, :d]) * data.extent,
        signal=np.exp(2 * thetas[:, d]) * option.scale**2,
        noise=np.exp(thetas[:, d + 1]) * option.scale**2 if data.noise is None else None,
        transform=OutputTransform(option.shift, option.scale, power, data.log),
        outliers=outliers,
        log_posterior=float(density),
    )


def unfitted_ensemble(family: str, data: FitData) -> EnsembleModel:
    """Return the model to use before there are enough observations to learn from: the prior, without a sample."""
    values = OutputTransform(log=data.log).forward(data.values)
    reference = None if data.reference is None else float(OutputTransform(log=data.log).forward(data.reference))
    shift, scale = _location_and_scale(values, reference, data.mean)
    d = len(data.extent)
    prior = HyperPrior.default(d, data.noise is None, False)
    return EnsembleModel(
        family=family,
        lengthscales=np.exp(prior.mean[None, :d]) * data.extent,
        signal=np.array([scale**2]),
        noise=np.exp(prior.mean[d + 1 :]) * scale**2 if data.noise is None else None,
        transform=OutputTransform(shift, scale, 1.0, data.log),
    )


def _location_and_scale(values: Array, reference: float | None, mean: float | None) -> tuple[float, float]:
    """Return the typical value, and the unit in which one expects the values to vary."""
    if mean is not None:
        shift = mean
    elif len(values):
        shift = float(np.median(values))
    else:
        shift = 0.0 if reference is None else reference
    scale = float(np.sqrt(np.mean((values - shift) ** 2))) if len(values) > 1 else 0.0
    if reference is not None:
        scale = max(scale, abs(reference - shift) / REFERENCE)
    return shift, scale if scale > max(1e-12 * abs(shift), SMALLEST) else max(abs(shift), 1.0)


def _standardisations(
    values: Array, reference: float | None, data: FitData, previous: EnsembleModel | None
) -> list[_Standardisation]:
    """Return the units and transforms to try."""
    shift, scale = _location_and_scale(values, reference, data.mean)
    plain = _Standardisation(shift, scale, learn_power=False)
    if not data.learn_power or len(values) < LEAST_FOR_POWER:
        return [plain]
    quartiles = np.quantile(values, [0.25, 0.75])
    narrow = max(float(quartiles[1] - quartiles[0]) / 1.35, 0.01 * scale)
    if reference is not None:
        narrow = max(narrow, abs(reference - shift) / REFERENCE)
    powers = [_Standardisation(shift, scale, learn_power=True)]
    if narrow < 0.7 * scale:
        powers.append(_Standardisation(shift, narrow, learn_power=True))
    if len(values) < LARGE or previous is None:
        return [plain, *powers]
    if previous.transform.power == 1.0:
        return [plain]
    return [min(powers, key=lambda option: abs(np.log(option.scale / previous.transform.scale)))]


def _is_one_sided(values: Array, thresholds: Array | float) -> bool:
    return bool((values < thresholds).all() or (values > thresholds).all())


def _prior_members(prior: HyperPrior, d: int, mode: Array, count: int, seed: int) -> Array:
    """Return hyperparameters (count, k) from the prior: typical length-scales at most, a large signal."""
    from scipy.stats import qmc

    uniform = qmc.Sobol(d, rng=np.random.default_rng(seed)).random(count)
    members = np.repeat(mode[None, :], count, axis=0)
    members[:, :d] = prior.mean[:d] + prior.sd[:d] * ndtri(0.5 * np.clip(uniform, 1e-6, 1.0))
    members[:, d] = prior.mean[d] + np.log(2.0)
    return np.maximum(members, prior.low)


def _problem(
    family: str, data: FitData, values: Array, kept: Array, option: _Standardisation, power: float | None = None
) -> tuple[MarginalLikelihood, HyperPrior]:
    """Return likelihood and prior; `power` fixes the power that was found."""
    learn_power = option.learn_power and power is None
    noise = None if data.noise is None else data.noise[kept] / option.scale**2
    likelihood = MarginalLikelihood(
        data.points[kept] / data.extent,
        (values[kept] - option.shift) / option.scale,
        twice_nu(SMOOTHNESS[family]),
        noise,
        learn_power=learn_power,
        known_power=1.0 if power is None else power,
        constant=CONSTANT * (data.mean is None),
    )
    d = data.points.shape[1]
    return likelihood, HyperPrior.default(d, data.noise is None, learn_power, 0.5 * data.spacing)


def _starts(
    prior: HyperPrior, previous: EnsembleModel | None, data: FitData, option: _Standardisation, count: int
) -> Sequence[Array]:
    """Return where the search for the mode starts: at the prior's mean and at the previous mode."""
    if previous is None:
        return [prior.mean]
    parts = [
        np.log(previous.lengthscales[0] / data.extent),
        [0.5 * np.log(previous.signal[0] / option.scale**2)],
    ]
    if data.noise is None:
        parts.append([np.log((previous.mode_noise or 1e-12) / option.scale**2)])
    if option.learn_power:
        parts.append([previous.transform.power])
    warm = np.concatenate([np.asarray(part, dtype=float) for part in parts])
    return [warm] if count > LARGE else [prior.mean, warm]
