"""Observations that close neighbours contradict: relevance pursuit (cf. Ament et al. 2024).

| symbol | here | shape |
|---|---|---|
| theta_i | most probable hyperparameters without observation i (`Fit.theta`) | (k,) |
| G_i | gain of the log posterior density of the model if i is left out (`Verdict.gain`) | |
| D_i = z_i - mu_i | deviation from what the others predict with theta_i, in units of z | |
| Z_i | D_i in predicted standard deviations (`Verdict.z_score`) | |
| c_i | D_i in standard deviations of a function that may have a sharp peak at x_i (`Verdict.contradiction`) | |

Observations are left out one after the other, each time the one whose absence makes the others most
probable, or two that hide each other; at most a tenth of them. The likelihood alone would call
every isolated peak an error, since a flat field without it is very probable. The two differ in
whether close neighbours have a say. An observation is left out only if all of this holds, with
the numbers of one of the `RULES`:

- the gain is large, and larger by `MIN_GAIN_OVER_OPPONENT` than that of leaving out the nearest
  opponent instead;
- |Z_i| is many times the largest leave-one-out z-score of the others, so that these agree with each
  other, and they explain at least `MIN_EXPLAINED_SHARE` of each other's variance;
- it is enclosed: it lies between opponents, observations with values that differ from its own by
  more than D_i / 2, which are close, and closer than any observation with a similar value. Beyond a
  sharp front or at the border of the domain there is a side without opponents; and a second
  measurement that confirms it is closer;
- it was not given as exact;
- c_i is large: c_i supposes a function that varies by D_i within a length-scale that is shorter by
  the factor max(2, sqrt(2 D_i / s)), s being the signal standard deviation without i, so that a
  sparse peak stays one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_solve, solve_triangular
from scipy.optimize import nnls

from truvar._numba.threads import blas_in_one_thread
from truvar._typing import Array, Index
from truvar.models.hyperposterior import HyperPrior, MarginalLikelihood, find_mode
from truvar.models.kernels import Stationary

MIN_OBSERVATIONS = 12  # number below which none is left out
# log posterior density, by which leaving out the opponent must be worse
MIN_GAIN_OVER_OPPONENT = 4.0
MIN_LARGEST_Z_SCORE = 2.0  # z-score that the largest one of the others counts with at least
MIN_EXPLAINED_SHARE = 0.5  # share of the variance of the others that they explain of each other
MAX_MASKING_OUTLIERS = 2  # outliers that may hide each other
# length-scales that a point may lie outside the convex hull of others and still count as inside
HULL_TOLERANCE = 1e-3
MIN_PEAK_SHARPNESS = 2.0  # factor by which a length-scale may be shorter at a peak, at least
# prior standard deviations of the log length-scale below its mean that a peak may be narrow
MAX_PEAK_NARROWNESS_SDS = 2.0
# smallest leave-one-out z-score of a suspect; a single outlier among t inflates the noise
SUSPECT_Z_SCORE = 4.0
SUSPECT_Z_SCORE_PER_ROOT_T = 0.5  # the same in units of sqrt(t)
# number up to which an outlier may distort the hyperparameters, so that others are tried too
MAX_DISTORTED_OBSERVATIONS = 60
# share of the variance that the others leave at a point above which the point is isolated
MAX_SHARE_LEFT = 0.25


@dataclass(frozen=True)
class Rule:
    """Smallest evidence for leaving out an observation.

    Attributes:
        gain: G_i, at least.
        dominance: |Z_i| divided by the largest z-score of the others, at least.
        reach: Length-scales within which opponents must enclose it.
        contradiction: c_i, at least.
    """

    gain: float
    dominance: float
    reach: float
    contradiction: float


# The further the neighbours, the more it takes. Calibrated by `python -m benchmarks.outliers`.
RULES = (Rule(15.0, 4.0, 0.5, 1.8), Rule(25.0, 6.0, 0.8, 1.2))


@dataclass(frozen=True)
class Fit:
    """A marginal likelihood with its most probable hyperparameters.

    Attributes:
        likelihood: Of all observations, those included that are left out.
        prior: The prior of theta.
        theta: The hyperparameters.
        log_scale: Logarithm of the unit of the values.
    """

    likelihood: MarginalLikelihood
    prior: HyperPrior
    theta: Array
    log_scale: float = 0.0

    def density(self, kept: Index) -> float:
        """Return the log posterior density given the kept observations, in the user's units."""
        within = self.likelihood.subset(kept)
        constant = len(kept) * (self.log_scale + 0.5 * np.log(2.0 * np.pi))
        return float(within.value(self.theta) + self.prior.log_density(self.theta) - constant)

    def refitted(self, kept: Index) -> Fit:
        """Return the fit to the kept observations alone."""
        theta = find_mode(self.likelihood.subset(kept), self.prior, [self.theta, self.prior.mean])
        return Fit(self.likelihood, self.prior, theta, self.log_scale)


@dataclass(frozen=True)
class Verdict:
    """Evidence for leaving out an observation.

    Attributes:
        position: Of the observation.
        fit: To the other observations.
        gain: G_i.
        z_score: Z_i.
        largest: Largest leave-one-out |z-score| of the others.
        predictable: Share of the variance of the others that they explain of each other.
        contradiction: c_i.
        enclosure: Length-scales within which opponents enclose it, one of those of the rules;
            infinite if none.
        opponent: Position of the nearest opponent.
    """

    position: int
    fit: Fit
    gain: float
    z_score: float
    largest: float
    predictable: float
    contradiction: float
    enclosure: float
    opponent: int

    @property
    def is_suspicious(self) -> bool:
        """Whether the observation may be wrong, though another one may partly hide that."""
        limit = min(rule.contradiction for rule in RULES)
        return bool(self.gain > 0 and np.isfinite(self.enclosure) and self.contradiction >= limit)

    @property
    def is_convincing(self) -> bool:
        """Whether a rule says that the observation is wrong, its opponent not considered."""
        dominance = abs(self.z_score) / max(self.largest, MIN_LARGEST_Z_SCORE)
        return self.predictable >= MIN_EXPLAINED_SHARE and any(
            self.gain >= rule.gain
            and dominance >= rule.dominance
            and self.enclosure <= rule.reach
            and self.contradiction >= rule.contradiction
            for rule in RULES
        )


def find_contradicted(fits: Sequence[Fit], others: Sequence[Array] = ()) -> tuple[int, ...]:
    """Return the positions of observations that their close neighbours contradict.

    Args:
        fits: The fit to all observations, then others that may suit better without the wrong ones,
            such as in units that these do not stretch; all with known powers.
        others: Further hyperparameters to look for suspects with, in the units of the first fit,
            such as those before the last observations.
    """
    best = fits[0]
    t = len(best.likelihood.values)
    max_left = max(1, t // 10)
    left: list[int] = []
    if t < MIN_OBSERVATIONS:
        return ()
    with blas_in_one_thread():
        thetas = (
            [best.theta, *others, best.prior.mean]
            if t <= MAX_DISTORTED_OBSERVATIONS
            else [best.theta]
        )
        while len(left) < max_left:
            kept = np.setdiff1d(np.arange(t), left)
            found = _next_errors(
                fits, kept, thetas, min(MAX_MASKING_OUTLIERS, max_left - len(left))
            )
            if not found:
                break
            left += found
    return tuple(sorted(left))


def _next_errors(
    fits: Sequence[Fit], kept: Index, thetas: Sequence[Array], count: int
) -> list[int]:
    """Return the position of the most convincing outlier, of two that hide each other, or none.

    Args:
        fits: As for `find_contradicted`.
        kept: Positions that are not left out yet.
        thetas: Hyperparameters to look for suspects with.
        count: Number of positions to return, at most.
    """
    density = _best_density(fits, kept)
    rest = kept
    tried: list[int] = []
    while len(tried) < count:
        suspects = _suspects(fits[0].likelihood, rest, thetas, fits[0].prior)
        verdicts = [
            verdict for i in suspects if (verdict := _judge(fits, rest, i, density)).is_suspicious
        ]
        if not verdicts:
            return []
        worst = max(verdicts, key=lambda each: each.gain)
        tried.append(worst.position)
        if not tried[:-1] and _is_wrong(fits, rest, worst, density):
            return tried
        rest = rest[rest != worst.position]
        density += worst.gain
        if len(tried) > 1 and all(_is_wrong_without(fits, rest, i) for i in tried):
            return tried
    return []


def _is_wrong(fits: Sequence[Fit], kept: Index, verdict: Verdict, density: float) -> bool:
    """Return whether an observation is wrong, and not its opponent."""
    if not verdict.is_convincing:
        return False
    return (
        verdict.gain - _judge(fits, kept, verdict.opponent, density).gain >= MIN_GAIN_OVER_OPPONENT
    )


def _is_wrong_without(fits: Sequence[Fit], rest: Index, i: int) -> bool:
    """Return whether an observation is wrong, if the others are those of `rest`."""
    kept = np.union1d(rest, [i])
    density = _best_density(fits, kept)
    return _is_wrong(fits, kept, _judge(fits, kept, i, density), density)


def _best_density(fits: Sequence[Fit], kept: Index) -> float:
    """Return the log posterior density of the best model of some of the observations."""
    if len(kept) == len(fits[0].likelihood.values):
        return fits[0].density(kept)
    return max(fit.refitted(kept).density(kept) for fit in fits)


def predictability(errors: Array, z: Array) -> float:
    """Return the share of the variance of observations that they explain of each other."""
    variance = float(np.var(z))
    return 1.0 - float(np.mean(errors**2)) / variance if variance > 0 else 0.0


def leave_one_out(likelihood: MarginalLikelihood, theta: Array) -> tuple[Array, Array]:
    """Return errors of the leave-one-out predictions and their standard deviations, (t,) each.

    Errors are infinite where the covariance cannot be factorised: nothing is predictable then.
    """
    found = likelihood.factor(theta)
    if found is None:
        infinite = np.full(len(likelihood.values), np.inf)
        return infinite, np.ones(len(infinite))
    lower, z = found
    inverse = cho_solve((lower, True), np.eye(len(z)), check_finite=False)
    variances = 1.0 / np.diag(inverse)
    return (inverse @ z) * variances, np.sqrt(variances)


def _suspects(
    likelihood: MarginalLikelihood, kept: Index, thetas: Sequence[Array], prior: HyperPrior
) -> list[int]:
    """Return the positions with the largest z-scores that are neither isolated nor exact."""
    within = likelihood.subset(kept)
    exact = ~within.learned & (within.noise == 0.0)
    if exact.all():
        return []
    limit = min(SUSPECT_Z_SCORE, SUSPECT_Z_SCORE_PER_ROOT_T * np.sqrt(len(kept)))
    found: set[int] = set()
    for theta in thetas:
        errors, sds = leave_one_out(within, theta)
        sizes = np.where(exact, 0.0, np.abs(errors) / sds)
        worst = int(np.argmax(sizes))
        if sizes[worst] >= limit and int(kept[worst]) not in found:
            longest = np.exp(prior.mean[: likelihood.dimension]) / MIN_PEAK_SHARPNESS
            if _share_left(likelihood, int(kept[worst]), longest, 0.0)[0] <= MAX_SHARE_LEFT:
                found.add(int(kept[worst]))
    return sorted(found)


def _share_left(
    likelihood: MarginalLikelihood, i: int, lengthscales: Array, noise: float
) -> tuple[float, Array]:
    """Return the share of Var f(x_i) that all other observations leave, and their weights (t,).

    Args:
        likelihood: All observations.
        i: Position of the observation.
        lengthscales: Of f, in extents. (d,)
        noise: Noise variance as a share of that of f.
    """
    kernel = Stationary(likelihood.smoothness, 1.0, lengthscales, likelihood.categorical)
    rest = np.delete(np.arange(len(likelihood.values)), i)
    covariance = kernel(likelihood.points[rest], likelihood.points[rest])
    covariance[np.diag_indices_from(covariance)] += noise + 1e-8
    across = kernel(likelihood.points[rest], likelihood.points[i : i + 1])[:, 0]
    weights = np.zeros(len(likelihood.values))
    weights[rest] = np.linalg.solve(covariance, across)
    return max(1.0 - float(weights[rest] @ across), 0.0), weights


def _judge(fits: Sequence[Fit], kept: Index, i: int, density: float) -> Verdict:
    """Return the evidence for leaving out observation i too.

    Args:
        fits: As for `find_contradicted`.
        kept: Positions that are not left out, i among them.
        i: The position.
        density: Log posterior density of the best model of the kept observations.
    """
    without = kept[kept != i]
    refitted = [fit.refitted(without) for fit in fits]
    densities = [fit.density(without) for fit in refitted]
    fit = refitted[int(np.argmax(densities))]
    likelihood = fit.likelihood
    within = likelihood.subset(without)
    means, variances = _predict(within, fit.theta, likelihood.points)
    z = likelihood.transformed(fit.theta)
    noise = float(likelihood.noise_variances(fit.theta)[i])
    deviations = z - means
    deviation = float(deviations[i])
    errors, sds = leave_one_out(within, fit.theta)
    signal = likelihood.signal_variance(fit.theta)
    typical = np.exp(fit.prior.mean[: likelihood.dimension])
    lengthscales = np.minimum(likelihood.lengthscales(fit.theta), typical)
    height = max(signal, deviation**2)
    share, weights = _share_left(
        likelihood, i, _peak_width(fit.prior, lengthscales, height / signal), noise / height
    )
    confirmed = float(weights @ np.where(np.arange(len(z)) == i, 0.0, deviations))
    enclosure, opponent = _neighbourhood(likelihood.points / lengthscales, z, i, abs(deviation))
    return Verdict(
        position=i,
        fit=fit,
        gain=max(densities) - density,
        z_score=deviation / float(np.sqrt(variances[i] + noise)),
        largest=float(np.max(np.abs(errors) / sds)),
        predictable=predictability(errors, z[without]),
        contradiction=np.sign(deviation)
        * (deviation - confirmed)
        / float(np.sqrt(height * share + noise)),
        enclosure=enclosure,
        opponent=opponent,
    )


def _peak_width(prior: HyperPrior, lengthscales: Array, height: float) -> Array:
    """Return the length-scales of a function that has a sharp peak, in extents.

    Args:
        prior: The prior of theta.
        lengthscales: Of the function without it. (d,)
        height: Squared height of the peak, as a multiple of the signal variance.
    """
    d = len(lengthscales)
    shortest = np.exp(prior.mean[:d] - MAX_PEAK_NARROWNESS_SDS * prior.sd[:d])
    sharper = max(MIN_PEAK_SHARPNESS, np.sqrt(2.0 * np.sqrt(height)))
    return np.asarray(
        np.minimum(lengthscales / MIN_PEAK_SHARPNESS, np.maximum(lengthscales / sharper, shortest))
    )


def _neighbourhood(points: Array, z: Array, i: int, deviation: float) -> tuple[float, int]:
    """Return the distance within which opponents enclose i, and the nearest opponent.

    Args:
        points: In length-scales. (t, d)
        z: Values. (t,)
        i: Position of the observation.
        deviation: |D_i|.
    """
    distances = np.sqrt(((points - points[i]) ** 2).sum(axis=1))
    distances[i] = np.inf
    similar = np.abs(z - z[i]) < deviation / 2
    nearest_similar = float(distances[similar].min(initial=np.inf))
    opponent = int(np.argmin(np.where(similar, np.inf, distances)))
    for reach in sorted(rule.reach for rule in RULES):
        around = points[~similar & (distances < min(reach, nearest_similar))] - points[i]
        if _is_inside(around):
            return reach, opponent
    return np.inf, opponent


def _is_inside(around: Array) -> bool:
    """Return whether the origin is a convex combination of some points (m, d)."""
    if len(around) == 0:
        return False
    equations = np.vstack([around.T, np.ones(len(around))])
    _, distance = nnls(equations, np.append(np.zeros(around.shape[1]), 1.0))
    return bool(distance <= HULL_TOLERANCE)


def _predict(likelihood: MarginalLikelihood, theta: Array, points: Array) -> tuple[Array, Array]:
    """Return posterior mean and variance at points in extents, in units of z: (q,) each."""
    found = likelihood.factor(theta)
    prior_variance = likelihood.signal_variance(theta) * (1.0 + likelihood.constant)
    if found is None:
        return np.zeros(len(points)), np.full(len(points), prior_variance)
    lower, z = found
    across = likelihood.signal_covariance(theta, likelihood.points, points)
    solved = solve_triangular(lower, across, lower=True, check_finite=False)
    whitened = solve_triangular(lower, z, lower=True, check_finite=False)
    return whitened @ solved, np.maximum(prior_variance - (solved**2).sum(axis=0), 0.0)
