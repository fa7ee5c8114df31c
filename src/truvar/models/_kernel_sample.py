"""Plausible hyperparameters of a composed kernel, around the most likely ones.

| symbol | here |
|---|---|
| theta = (log hyperparameters of the kernel, log noise variance if it is learned) | `theta` (k,) |
| p(y given theta), with the constant mean of generalised least squares if it is estimated | `_Likelihood` |
| steps of the chain: normal, with the curvature at the most likely theta | `_proposal` |

The sample is a random-walk Metropolis chain that starts at the most likely theta. The prior is
uniform in theta within the bounds; that of a learned noise variance is the one it was fitted with.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import LinAlgError, solve_triangular

from truvar._numba.threads import blas_in_one_thread
from truvar._typing import Array
from truvar.models._conditions import Conditions
from truvar.models.frozen import FrozenMember, FrozenPosterior, robust_cholesky
from truvar.models.kernels import stationary_form

if TYPE_CHECKING:
    from sklearn.gaussian_process.kernels import Kernel

_THINNING = 30  # steps of the chain between two members
_N_STEPS = 15 * _THINNING  # of the chain
_STEP_FACTOR = 2.4  # of the steps, divided by sqrt(k): Gelman, Roberts and Gilks (1996)
_STEP = 0.05  # of theta, for the curvature
_MAX_SD = 1.0  # of the proposal, in units of theta: where the likelihood is flat
_MIN_NOISE_SHARE = 1e-10  # share of the prior variance: the smallest noise


@dataclass(frozen=True, eq=False)
class FittedHyperparameters:
    """The most likely hyperparameters of a composed kernel, and where they may lie.

    Attributes:
        kernel: The kernel with its most likely hyperparameters.
        bounds: Bounds of its theta. (k, 2)
        noise: The most likely noise variance; None: it is known.
        noise_prior: Mean and standard deviation of its logarithm.
    """

    kernel: Kernel
    bounds: Array
    noise: float | None
    noise_prior: tuple[float, float]


@blas_in_one_thread()
def sample_members(
    fitted: FittedHyperparameters, conditions: Conditions, seed: int
) -> FrozenPosterior:
    """Return the posterior averaged over plausible hyperparameters; the most likely come first.

    Args:
        fitted: The most likely hyperparameters.
        conditions: The observations.
        seed: Seed of the sample.
    """
    likelihood = _Likelihood(fitted, conditions)
    best = likelihood.best
    rng = np.random.default_rng(seed)
    root = _proposal(likelihood, best) * _STEP_FACTOR / np.sqrt(len(best))
    theta = best
    current = likelihood(theta)
    members = [likelihood.freeze(best)]
    for step in range(1, _N_STEPS + 1):
        proposed = theta + root @ rng.standard_normal(len(best))
        found = likelihood(proposed)
        if np.log(rng.random()) < found - current:
            theta = proposed
            current = found
        if step % _THINNING == 0:
            members.append(likelihood.freeze(theta))
    return FrozenPosterior(tuple(members))


class _Likelihood:
    """Log density of values and theta, up to a constant; minus infinity outside of the bounds."""

    def __init__(self, fitted: FittedHyperparameters, conditions: Conditions) -> None:
        self._fitted = fitted
        self._conditions = conditions
        self._residuals = conditions.z
        if conditions.offset is not None:
            self._residuals = conditions.z - conditions.offset(conditions.points)
        best = np.asarray(fitted.kernel.theta, dtype=float)
        bounds = np.asarray(fitted.bounds, dtype=float).reshape(-1, 2)
        if fitted.noise is not None:
            log_noise = float(np.log(max(fitted.noise, np.finfo(float).tiny)))
            best = np.append(best, log_noise)
            bounds = np.vstack([bounds, [-np.inf, np.inf]])
        self.best = best
        self.low = np.minimum(bounds[:, 0], best)
        self.high = np.maximum(bounds[:, 1], best)

    def __call__(self, theta: Array) -> float:
        if ((theta < self.low) | (theta > self.high)).any():
            return -np.inf
        try:
            member = self.freeze(theta)
        except (LinAlgError, ValueError, FloatingPointError):
            return -np.inf
        value = -0.5 * float(member.whitened @ member.whitened)
        value -= float(np.log(np.diag(member.lower)).sum())
        if self._fitted.noise is not None:
            centre, width = self._fitted.noise_prior
            value -= 0.5 * ((theta[-1] - centre) / width) ** 2
        return value

    def freeze(self, theta: Array) -> FrozenMember:
        """Return the posterior with these hyperparameters."""
        conditions = self._conditions
        points = conditions.points
        noise = conditions.noise
        n_kernel = len(self._fitted.kernel.theta)
        kernel = self._fitted.kernel.clone_with_theta(theta[:n_kernel])
        if self._fitted.noise is not None:
            noise = np.where(conditions.learned, float(np.exp(theta[-1])), noise)
        within = np.asarray(kernel(points), dtype=float)
        scale = float(np.max(np.diag(within)))
        within[np.diag_indices_from(within)] += np.maximum(noise, _MIN_NOISE_SHARE * scale)
        lower = robust_cholesky(within)
        whitened = solve_triangular(lower, self._residuals, lower=True, check_finite=False)
        ones = solve_triangular(lower, np.ones(len(points)), lower=True, check_finite=False)
        constant = conditions.mean
        if constant is None:
            constant = float(ones @ whitened / (ones @ ones))
        offset = conditions.offset
        form = stationary_form(kernel)
        scales = points.std(axis=0) if form is None else np.asarray(form.lengthscales)

        def prior_mean(at: Array) -> Array:
            return np.full(len(at), constant) if offset is None else constant + offset(at)

        return FrozenMember(
            covariance=lambda at, others: np.asarray(kernel(at, others), dtype=float),
            prior_variance=lambda at: np.asarray(kernel.diag(at), dtype=float),
            prior_mean=prior_mean,
            points=points,
            lower=lower,
            whitened=np.asarray(whitened - constant * ones),
            whitened_ones=ones if conditions.mean is None else None,
            scales=np.where(np.atleast_1d(scales) > 0, scales, 1.0),
        )


def _proposal(likelihood: _Likelihood, best: Array) -> Array:
    """Return a root of the covariance of the proposal: (k, k)."""
    k = len(best)
    step = _STEP * np.eye(k)
    curvature = np.zeros((k, k))
    # At a bound the curvature is that of the inside.
    inside = np.clip(best, likelihood.low + 2.1 * _STEP, likelihood.high - 2.1 * _STEP)
    centre = likelihood(inside)
    along = [(likelihood(inside + each), likelihood(inside - each)) for each in step]
    for i in range(k):
        curvature[i, i] = (along[i][0] - 2.0 * centre + along[i][1]) / _STEP**2
        for j in range(i):
            both = likelihood(inside + step[i] + step[j])
            neither = likelihood(inside - step[i] - step[j])
            sides = along[i][0] + along[i][1] + along[j][0] + along[j][1] - 2.0 * centre
            curvature[i, j] = (both + neither - sides) / (2.0 * _STEP**2)
            curvature[j, i] = curvature[i, j]
    if not np.isfinite(curvature).all():
        return _MAX_SD * np.eye(k)
    values, vectors = np.linalg.eigh(-curvature)
    variances = 1.0 / np.maximum(values, _MAX_SD**-2)
    return np.linalg.cholesky((vectors * variances) @ vectors.T)
