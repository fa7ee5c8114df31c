"""Learning kernel, mean, noise and output transform: the mode and a sample.

Coordinates are divided by the extent of the domain, values are standardised, and `hyperposterior`
does the rest.

| question | answer |
|---|---|
| unit of the values | standard deviation, at least 0.4 of the distance from typical value to nearest threshold |
| power of the transform | 1, unless another makes the observations much more probable |
| outliers | left out (see `outliers` and `relevance_pursuit`) |
| noise | known where it is given with the value; else one variance, or its logarithm linear in the coordinates |
| least noise | e^-12 of the variance of the values; e^-18 if an optimum is sought: values near it hardly differ |
| size of the sample | 16 members up to 150 observations, 8 up to 500, then 4 |
| nothing measured beyond the threshold yet, or all values alike | every second member is from the prior |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import chdtri, ndtri

from truvar._numba.threads import blas_in_one_thread
from truvar._typing import Array, Index, Mask
from truvar.models._outliers import find_outliers, separation
from truvar.models._relevance_pursuit import (
    MIN_OBSERVATIONS,
    Fit,
    find_contradicted,
    leave_one_out,
    predictability,
)
from truvar.models._warping import Warp, WarpedLikelihood, with_warping
from truvar.models.ensemble import CONSTANT, EnsembleModel
from truvar.models.hyperposterior import (
    HyperPrior,
    LogLikelihood,
    MarginalLikelihood,
    find_mode,
    sample_posterior,
)
from truvar.models.kernels import SMOOTHNESS, twice_nu
from truvar.models.transforms import SMALLEST_UNIT, OutputTransform

MIN_OBSERVATIONS_FOR_POWER = 8  # number below which the power stays 1
# log posterior density by which a power must be better than none
MIN_LOG_DENSITY_GAIN_OF_POWER = 2.0
# number of observations beyond which a fit starts from the last one alone and keeps its transform
WARM_START_OBSERVATIONS = 120
# number of observations beyond which a fit without an earlier one starts from a fit to some of them
_MAX_COLD_START_OBSERVATIONS = 300
# number of observations, at most -> members, proposals per round, rounds: with many observations
# there is little to average over
SAMPLE_SIZES = {150: (16, 64, 2), 500: (8, 32, 2), np.inf: (4, 16, 1)}
MAX_FLAT_RANGE = 1e-6  # units of the values: observations within such a range count as equal
MIN_OBSERVATIONS_FOR_SLOPES = 20  # number below which the noise is equal everywhere
SLOPE_TEST_LEVEL = 0.005  # share of the models with equal noise for which slopes are tried
# log posterior density by which slopes must be better than none, and 1 more for each
MIN_LOG_DENSITY_GAIN_OF_SLOPES = 2.0
# ranges of the other values: a value further off is no peak, even in a flat field
MAX_PEAK_DISTANCE_RANGES = 1000.0
# share of the variance of the others that they explain of each other, unless the field is flat
MIN_EXPLAINED_SHARE = 0.3
# the same, for a value in the direction that the study looks in: a peak must not be missed
MIN_EXPLAINED_SHARE_AT_PEAK = 0.6
# ratio of the spread of the middle half to the standard deviation, if a few values dominate the
# latter
MAX_ROBUST_SD_RATIO = 0.5
# distance of the threshold from the typical value, at most, in units of the standardised values
MAX_REFERENCE_DISTANCE = 2.5


@dataclass(frozen=True)
class FitData:
    """Observations to learn from.

    Attributes:
        points: Where they were made. (t, d)
        values: In the user's units, a mean function subtracted. (t,)
        noise: Known noise variances, NaN where they are learned; None: learned everywhere. (t,)
        extent: Extent of the domain. (d,)
        spacing: Smallest distance between coordinates of the domain, in extents. (d,)
        mean: Known constant mean; None: learned.
        references: Values that matter, such as the thresholds. With a mean function, the nearest
            that each threshold minus that function comes to the typical value.
        log: Whether the logarithms of the values are modelled.
        learn_power: Whether a power of the values may be modelled.
        thresholds: The nearest threshold minus the mean function at the points; None without one of
            them. (t,)
        direction: 1 if the highest values are looked for, -1 if the lowest, 0 if neither.
        learn_noise: Whether a noise variance is learned even if all are known; None: only if some
            are not.
        categorical: Positions of the columns of categories.
        low: Lower ends of the domain, which its coordinates are warped from; None: they are not
            warped. (d,)
    """

    points: Array
    values: Array
    noise: Array | None
    extent: Array
    spacing: Array
    mean: float | None = None
    references: tuple[float, ...] = ()
    log: bool = False
    learn_power: bool = True
    thresholds: Array | None = None
    direction: int = 0
    learn_noise: bool | None = None
    categorical: tuple[int, ...] = ()
    low: Array | None = None

    @property
    def exact(self) -> Mask:
        """Which observations were given as exact, (t,)."""
        return np.zeros(len(self.values), bool) if self.noise is None else self.noise == 0.0

    @property
    def learns_noise(self) -> bool:
        """Whether a noise variance is learned, if only for measurements to come."""
        if self.learn_noise is not None:
            return self.learn_noise
        return self.noise is None or bool(np.isnan(self.noise).any())

    def take(self, rows: Index) -> FitData:
        """Return some of the observations."""
        noise = None if self.noise is None else self.noise[rows]
        thresholds = None if self.thresholds is None else self.thresholds[rows]
        return replace(
            self,
            points=self.points[rows],
            values=self.values[rows],
            noise=noise,
            thresholds=thresholds,
        )

    def learned_noise(self, thetas: Array, scale: float) -> Array | None:
        """Return the noise variances of hyperparameters (m, k) in the user's units: (m,).

        None if no noise is learned.
        """
        if not self.learns_noise:
            return None
        return np.asarray(np.exp(thetas[:, self.points.shape[1] + 1]) * scale**2)


@dataclass(frozen=True)
class _Standardisation:
    shift: float
    scale: float
    learn_power: bool


def fit_ensemble(
    family: str, data: FitData, previous: EnsembleModel | None, seed: int
) -> EnsembleModel:
    """Return the hyperparameters learned from the observations.

    Args:
        family: "rbf", "matern12", "matern32" or "matern52".
        data: The observations.
        previous: The model of fewer observations, which the search starts from.
        seed: Seed of the sample.
    """
    if previous is None and len(data.values) > _MAX_COLD_START_OBSERVATIONS:
        # Tables are often sorted, so that the first rows would be all of one place.
        spread = np.linspace(0, len(data.values) - 1, _MAX_COLD_START_OBSERVATIONS)
        previous = fit_ensemble(family, data.take(spread.astype(int)), None, seed)
    logarithm = OutputTransform(log=data.log)
    values = logarithm.forward(data.values)
    references = tuple(logarithm.forward(np.array(data.references)).tolist())
    reference = nearest_reference(values, references, data.mean)
    separate = find_outliers(values, references, data.points / data.extent, data.exact)
    outliers = np.array(separate, dtype=int)
    found = _search(family, data, values, reference, outliers, previous)
    if separate and not _is_credible(found.fit, values, separate, references, data.direction):
        outliers = np.array([], dtype=int)
        found = _search(family, data, values, reference, outliers, previous)
    contradicted = _contradicted(family, data, values, reference, found, previous)
    if len(contradicted):
        outliers = np.union1d(outliers, contradicted)
        found = _search(family, data, values, reference, outliers, previous)
    kept = found.kept
    option = found.option
    slopes = _noise_slopes(found, data)
    fit = found.fit
    if slopes is not None:
        option = slopes.option
        fit = slopes.fit
    mode = fit.theta
    likelihood = fit.likelihood
    prior = fit.prior
    count, proposals, rounds = sample_size(len(kept))
    sample = sample_posterior(likelihood, prior, mode, count, proposals, rounds, seed)
    members = sample.thetas
    thresholds = reference if data.thresholds is None else data.thresholds[kept]
    is_flat = np.ptp(values[kept]) <= MAX_FLAT_RANGE * option.scale
    if is_flat:
        mode = prior.mean
    if is_flat or (thresholds is not None and is_one_sided(values[kept], thresholds)):
        members[::2] = prior_members(prior, data.points.shape[1], mode, len(members[::2]), seed)
    thetas = np.vstack([mode, members])
    d = data.points.shape[1]
    model = EnsembleModel(
        family=family,
        lengthscales=np.exp(thetas[:, :d]) * data.extent,
        signal=np.exp(2 * thetas[:, d]) * option.scale**2,
        noise=data.learned_noise(thetas, option.scale),
        transform=OutputTransform(option.shift, option.scale, likelihood.known_power, data.log),
        outliers=tuple(int(i) for i in outliers),
        log_posterior=found.density,
        separate=separate,
        categorical=data.categorical,
    )
    if slopes is None:
        return model
    return replace(
        model,
        log_posterior=slopes.density,
        noise_slopes=slopes.slopes / data.extent,
        noise_centre=data.points[kept].mean(axis=0),
    )


@dataclass(frozen=True)
class _Found:
    """The best of the units and transforms that were tried.

    Attributes:
        kept: Positions of the observations that were fitted.
        option: Units and transform.
        fit: To the kept observations, the power known.
        density: Log posterior density, up to a constant.
        plain: The fit with the power 1, and its units, if another power is better.
    """

    kept: Index
    option: _Standardisation
    fit: Fit
    density: float
    plain: tuple[_Standardisation, Fit] | None = None


def _search(
    family: str,
    data: FitData,
    values: Array,
    reference: float | None,
    outliers: Index,
    previous: EnsembleModel | None,
) -> _Found:
    """Return the most probable hyperparameters in the best of several units and transforms."""
    kept = np.setdiff1d(np.arange(len(values)), outliers)
    found: list[tuple[float, _Standardisation, Array]] = []
    for option in _standardisations(values[kept], reference, data, previous):
        likelihood, prior = _problem(family, data, values, kept, option)
        mode = find_mode(likelihood, prior, _starts(prior, previous, data, option, len(kept)))
        density = (
            likelihood.value(mode) + prior.log_density(mode) - len(kept) * np.log(option.scale)
        )
        density -= MIN_LOG_DENSITY_GAIN_OF_POWER * option.learn_power
        found.append((density, option, mode))
    density, option, mode = max(found, key=lambda each: each[0])
    power = 1.0
    if option.learn_power:
        power = float(mode[-1])
        mode = mode[:-1]
    fit = Fit(
        *_problem(family, data, values, kept, option, power), mode, float(np.log(option.scale))
    )
    plain = None
    for _, other, theta in found:
        if option.learn_power and not other.learn_power:
            unchanged = Fit(
                *_problem(family, data, values, kept, other, 1.0), theta, float(np.log(other.scale))
            )
            plain = (other, unchanged)
    return _Found(kept, option, fit, float(density), plain)


@dataclass(frozen=True)
class _NoiseSlopes:
    """A noise variance whose logarithm is linear in the coordinates.

    Attributes:
        option: Units and transform.
        fit: With the relative noise variances known.
        density: Log posterior density, up to a constant.
        slopes: Of the logarithm, per extent. (d,)
    """

    option: _Standardisation
    fit: Fit
    density: float
    slopes: Array


def _noise_slopes(found: _Found, data: FitData) -> _NoiseSlopes | None:
    """Return how the noise varies with the point; None if the observations do not clearly say so.

    A power of the values makes the noise depend on the value, so that the values as they are get a
    chance, too.
    """
    if not data.learns_noise or found.fit.likelihood.learned.sum() < MIN_OBSERVATIONS_FOR_SLOPES:
        return None
    if data.categorical:  # a slope along a list of categories means nothing
        return None
    tried = [_fit_slopes(found.option, found.fit, data)]
    if found.plain is not None:
        tried.append(_fit_slopes(*found.plain, data))
    convincing = found.density + MIN_LOG_DENSITY_GAIN_OF_SLOPES + found.fit.likelihood.dimension
    best = max(
        (each for each in tried if each is not None), key=lambda each: each.density, default=None
    )
    return best if best is not None and best.density >= convincing else None


def _fit_slopes(option: _Standardisation, fit: Fit, data: FitData) -> _NoiseSlopes | None:
    """Return the most probable slopes of the log noise; None if a test accepts equal noise."""
    d = fit.likelihood.dimension
    with blas_in_one_thread():
        if fit.likelihood.slope_statistic(fit.theta) < chdtri(d, SLOPE_TEST_LEVEL):
            return None
    likelihood = fit.likelihood.with_slopes()
    spacing = 0.5 * data.spacing
    prior = HyperPrior.default(
        d, True, False, spacing, learn_slopes=True, may_be_exact=data.direction != 0
    )
    mode = find_mode(likelihood, prior, [np.append(fit.theta, np.zeros(d))])
    density = (
        likelihood.value(mode) + prior.log_density(mode) - len(likelihood.values) * fit.log_scale
    )
    if option.learn_power:
        density += _power_density(fit.likelihood.known_power) - MIN_LOG_DENSITY_GAIN_OF_POWER
    slopes = likelihood.slopes(mode)
    fixed = fit.likelihood.with_relative_noise(np.exp(likelihood.centred @ slopes))
    return _NoiseSlopes(
        option, replace(fit, likelihood=fixed, theta=mode[: d + 2]), float(density), slopes
    )


def _power_density(power: float) -> float:
    """Return the log prior density of a power, up to a constant."""
    prior = HyperPrior.default(1, False, True)
    return -0.5 * float((power - prior.mean[-1]) / prior.sd[-1]) ** 2


def _is_credible(
    fit: Fit, values: Array, separate: Sequence[int], references: Sequence[float], direction: int
) -> bool:
    """Return whether values far from all others are outliers, not a peak in a flat field.

    Args:
        fit: To the others.
        values: All values.
        separate: Positions of those far off.
        references: As for `find_outliers`.
        direction: As in `FitData`.
    """
    if separation(values, separate, references) > MAX_PEAK_DISTANCE_RANGES:
        return True
    errors, _ = leave_one_out(fit.likelihood, fit.theta)
    is_wanted = direction * (values[list(separate)].mean() - np.median(values)) > 0
    if is_wanted and len(values) < MIN_OBSERVATIONS:
        return False  # so few values explain each other by chance
    min_share = MIN_EXPLAINED_SHARE_AT_PEAK if is_wanted else MIN_EXPLAINED_SHARE
    return predictability(errors, fit.likelihood.transformed(fit.theta)) > min_share


def _contradicted(
    family: str,
    data: FitData,
    values: Array,
    reference: float | None,
    found: _Found,
    previous: EnsembleModel | None,
) -> Index:
    """Return the positions of observations that their close neighbours contradict."""
    fits = [found.fit]
    shift, scale = location_and_scale(values[found.kept], reference, data.mean)
    narrow = _robust_sd(values[found.kept])
    plain = _Standardisation(
        shift, narrow if 0 < narrow < MAX_ROBUST_SD_RATIO * scale else scale, learn_power=False
    )
    if found.option.learn_power or plain.scale != scale:
        likelihood, prior = _problem(family, data, values, found.kept, plain)
        fits.append(Fit(likelihood, prior, prior.mean, float(np.log(plain.scale))))
    others = []
    if previous is not None:
        fixed = replace(found.option, learn_power=False)
        others.append(_starts(found.fit.prior, previous, data, fixed, len(found.kept))[-1])
    return found.kept[list(find_contradicted(fits, others))]


@dataclass(frozen=True)
class FamilyPosterior:
    """The plausible hyperparameters of a kernel family.

    Attributes:
        model: The mode, and a sample.
        log_evidence: Log density of the values in the user's units, up to a constant that all
            families share.
        warps: Warps of the coordinates, that of the mode and those of the sample; empty: none.
    """

    model: EnsembleModel
    log_evidence: float
    warps: tuple[Warp, ...] = ()


def family_posterior(
    family: str,
    data: FitData,
    current: EnsembleModel,
    n_members: int,
    seed: int,
    warped: Sequence[int] = (),
) -> FamilyPosterior:
    """Return the hyperparameters of a family, with the transform and outliers of another fit.

    Args:
        family: "rbf", "matern12", "matern32" or "matern52".
        data: The observations.
        current: The other fit, which the search starts from.
        n_members: Size of the sample.
        seed: Seed of the sample.
        warped: Columns whose coordinates are warped; then `data.low` is known.
    """
    transform = current.transform
    values = OutputTransform(log=data.log).forward(data.values)
    kept = np.setdiff1d(np.arange(len(values)), np.array(current.outliers, dtype=int))
    option = _Standardisation(transform.shift, transform.scale, learn_power=False)
    plain, prior = _problem(family, data, values, kept, option, transform.power)
    if current.noise_slopes is not None:
        plain = plain.with_relative_noise(current.noise_factor(data.points[kept]))
    prior = prior.with_wide_noise(data.points.shape[1])
    starts = _starts(prior, current, data, option, len(kept))
    likelihood: LogLikelihood = plain
    if warped and data.low is not None:
        likelihood = WarpedLikelihood(plain, data.low / data.extent, warped)
        prior = with_warping(prior, len(warped))
        starts = [np.append(start, prior.mean[len(start) :]) for start in starts]
    mode = find_mode(likelihood, prior, starts)
    _, proposals, rounds = next(
        effort for most, effort in SAMPLE_SIZES.items() if len(kept) <= most
    )
    sample = sample_posterior(likelihood, prior, mode, n_members, proposals, rounds, seed)
    members = sample.thetas
    if _is_uninformative(data, values, kept, transform.scale):
        members[::2] = prior_members(prior, data.points.shape[1], mode, len(members[::2]), seed)
    thetas = np.vstack([mode, members])
    d = data.points.shape[1]
    model = replace(
        current,
        family=family,
        lengthscales=np.exp(thetas[:, :d]) * data.extent,
        signal=np.exp(2 * thetas[:, d]) * transform.scale**2,
        noise=data.learned_noise(thetas, transform.scale),
    )
    log_evidence = sample.log_evidence - len(kept) * float(np.log(transform.scale))
    if not isinstance(likelihood, WarpedLikelihood) or data.low is None:
        return FamilyPosterior(model, log_evidence)
    warps = tuple(
        Warp(data.low, data.extent, tuple(warped), likelihood.log_powers(theta)) for theta in thetas
    )
    return FamilyPosterior(model, log_evidence, warps)


def _is_uninformative(data: FitData, values: Array, kept: Index, scale: float) -> bool:
    """Return whether values are all alike, or all on the same side of their thresholds."""
    if np.ptp(values[kept]) <= MAX_FLAT_RANGE * scale:
        return True
    if data.thresholds is not None:
        return is_one_sided(values[kept], data.thresholds[kept])
    references = OutputTransform(log=data.log).forward(np.array(data.references)).tolist()
    threshold = nearest_reference(values, references, data.mean)
    return threshold is not None and is_one_sided(values[kept], threshold)


def unfitted_ensemble(family: str, data: FitData) -> EnsembleModel:
    """Return the prior as a model, without a sample, for too few observations to learn from."""
    values = OutputTransform(log=data.log).forward(data.values)
    references = OutputTransform(log=data.log).forward(np.array(data.references)).tolist()
    reference = nearest_reference(values, references, data.mean)
    shift, scale = location_and_scale(values, reference, data.mean)
    d = len(data.extent)
    prior = HyperPrior.default(d, data.learns_noise, False, categorical=data.categorical)
    return EnsembleModel(
        family=family,
        lengthscales=np.exp(prior.mean[None, :d]) * data.extent,
        signal=np.array([scale**2]),
        noise=data.learned_noise(prior.mean[None, :], scale),
        transform=OutputTransform(shift, scale, 1.0, data.log),
        categorical=data.categorical,
    )


def nearest_reference(
    values: Array, references: Sequence[float], mean: float | None
) -> float | None:
    """Return the value that matters which is nearest to the typical one; None without any.

    The others say nothing about the unit of the values: one that is far off would hide what matters
    at the nearest.

    Args:
        values: The values. (t,)
        references: Values that matter, such as thresholds, in ascending order.
        mean: Known constant mean; None: learned.
    """
    if len(references) == 0:
        return None
    if mean is None and len(values) == 0:
        return references[len(references) // 2]
    typical = float(np.median(values)) if mean is None else mean
    return min(references, key=lambda reference: abs(reference - typical))


def location_and_scale(
    values: Array, reference: float | None, mean: float | None
) -> tuple[float, float]:
    """Return the typical value, and the unit in which one expects the values to vary."""
    if mean is not None:
        shift = mean
    elif len(values):
        shift = float(np.median(values))
    else:
        shift = 0.0 if reference is None else reference
    scale = float(np.sqrt(np.mean((values - shift) ** 2))) if len(values) > 1 else 0.0
    if reference is not None:
        scale = max(scale, abs(reference - shift) / MAX_REFERENCE_DISTANCE)
    if scale > max(1e-12 * abs(shift), SMALLEST_UNIT):
        return shift, scale
    return shift, abs(shift) if abs(shift) > SMALLEST_UNIT else 1.0


def _standardisations(
    values: Array, reference: float | None, data: FitData, previous: EnsembleModel | None
) -> list[_Standardisation]:
    """Return the units and transforms to try."""
    shift, scale = location_and_scale(values, reference, data.mean)
    plain = _Standardisation(shift, scale, learn_power=False)
    if not data.learn_power or len(values) < MIN_OBSERVATIONS_FOR_POWER:
        return [plain]
    narrow = max(_robust_sd(values), 0.01 * scale)
    if reference is not None:
        narrow = max(narrow, abs(reference - shift) / MAX_REFERENCE_DISTANCE)
    powers = [_Standardisation(shift, scale, learn_power=True)]
    if narrow < 0.7 * scale:
        powers.append(_Standardisation(shift, narrow, learn_power=True))
    if len(values) < WARM_START_OBSERVATIONS or previous is None:
        return [plain, *powers]
    if previous.transform.power == 1.0:
        return [plain]
    return [min(powers, key=lambda option: abs(np.log(option.scale / previous.transform.scale)))]


def _robust_sd(values: Array) -> float:
    """Return the standard deviation of a normal distribution with the quartiles of the values."""
    lower, upper = np.quantile(values, [0.25, 0.75])
    return float(upper - lower) / 1.35


def sample_size(n_observations: int) -> tuple[int, int, int]:
    """Return the number of members, of proposals per round and of rounds."""
    return next(size for limit, size in SAMPLE_SIZES.items() if n_observations <= limit)


def is_one_sided(values: Array, thresholds: Array | float) -> bool:
    """Return whether all values lie on the same side of their thresholds."""
    return bool((values < thresholds).all() or (values > thresholds).all())


def prior_members(prior: HyperPrior, d: int, mode: Array, count: int, seed: int) -> Array:
    """Return hyperparameters (count, k) from the prior: short length-scales, a large signal."""
    from scipy.stats import qmc

    uniform = qmc.Sobol(d, rng=np.random.default_rng(seed)).random(count)
    members = np.repeat(mode[None, :], count, axis=0)
    members[:, :d] = prior.mean[:d] + prior.sd[:d] * ndtri(0.5 * np.clip(uniform, 1e-6, 1.0))
    members[:, d] = prior.mean[d] + np.log(2.0)
    return np.maximum(members, prior.low)


def _problem(
    family: str,
    data: FitData,
    values: Array,
    kept: Index,
    option: _Standardisation,
    power: float | None = None,
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
        learn_noise=data.learns_noise,
        categorical=data.categorical,
    )
    d = data.points.shape[1]
    shortest = 0.5 * data.spacing
    prior = HyperPrior.default(
        d,
        data.learns_noise,
        learn_power,
        shortest,
        categorical=data.categorical,
        may_be_exact=data.direction != 0,
    )
    return likelihood, prior


def _starts(
    prior: HyperPrior,
    previous: EnsembleModel | None,
    data: FitData,
    option: _Standardisation,
    count: int,
) -> Sequence[Array]:
    """Return where the search for the mode starts: at the prior's mean and at the previous mode."""
    if previous is None:
        return [prior.mean]
    parts = [
        np.log(previous.lengthscales[0] / data.extent),
        [0.5 * np.log(previous.signal[0] / option.scale**2)],
    ]
    if data.learns_noise:
        noise = (previous.mode_noise or 0.0) / option.scale**2
        parts.append([np.log(noise) if noise > 0 else prior.mean[len(data.extent) + 1]])
    if option.learn_power:
        parts.append([previous.transform.power])
    warm = np.concatenate([np.asarray(part, dtype=float) for part in parts])
    return [warm] if count > WARM_START_OBSERVATIONS else [prior.mean, warm]
