"""Probability that a measurement succeeds, learned from successes and failures.

A Gaussian process classifier with the probit likelihood and Laplace's approximation (Rasmussen and
Williams 2006, algorithms 3.1 and 3.2), averaged over a few settings of its kernel by their
approximate evidence.

| book | here | shape |
|---|---|---|
| y | `labels`, 1 (succeeded) or -1 (failed) | (t,) |
| K | `covariance`: a constant plus a Matern-5/2 kernel of the scaled coordinates | (t, t) |
| f-hat | `mode` in `_Laplace.fit`, as deviation from the prior mean | (t,) |
| grad log p(y given f) | `_Laplace.gradient` | (t,) |
| W | `curvature` | (t,) |
| B = I + W^(1/2) K W^(1/2) = L L^T | `_Laplace.factor` is L | (t, t) |
| log q(y given X, theta) | `_Laplace.evidence` | |

A setting is a length-scale, a deviation, a prior probability of success and the coordinates that
count: all of them, or those of one column, since what fails is often a strip (a learning rate that
is too high, a depth that is too shallow) or a category. With regions, either most of the domain
succeeds or, less often, most of it fails. A setting of little variance makes the probability the
same everywhere: failures that have nothing to do with the place then lower it everywhere alike,
which changes no choice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from truvar._numba.threads import tiles
from truvar._typing import Array, Mask
from truvar.models.kernels import Stationary

PRIOR_SUCCESS = 0.95  # probability of a success before anything is known
CONSTANT_VARIANCE = 1.0  # of the latent function's level, which all places share
LENGTHSCALES = (0.08, 0.2, 0.5)  # in extents of the domain
# standard deviation of the latent function from place to place if failures are by chance
CHANCE_DEVIATION = 0.3
REGION_DEVIATION = 2.5  # the same if there are regions that fail
# probability of a success before anything is known, if the regions that succeed are few
MOSTLY_FAILING_SUCCESS = 0.4
MOSTLY_FAILING_ODDS = 0.02  # prior odds of that, for each setting
STRIP_LENGTHSCALE = 0.2  # of a single column
MIN_EVIDENCE_SHARE = 0.01  # settings with a smaller share of the evidence are left out
MAX_LABELS = 600  # labels in use; of more, evenly spaced ones
_MAX_NEWTON_STEPS = 100
_NEWTON_TOLERANCE = 1e-10  # change of the objective that ends Newton's method
CHUNK = 8192  # points that are predicted at a time


@dataclass(frozen=True, eq=False)
class FeasibilityModel:
    """P(a measurement succeeds), given where some succeeded and failed.

    Attributes:
        members: The classifier for each setting of the kernel.
        weights: Their shares of the evidence. (members,)
        regional: Probability that failures depend on the place, rather than on chance: the share of
            all settings with regions in the evidence.
    """

    members: tuple[_Laplace, ...]
    weights: Array
    regional: float

    @staticmethod
    def fit(
        points: Array, succeeded: Mask, columns: Sequence[Sequence[int]] = ()
    ) -> FeasibilityModel:
        """Fit the classifier.

        Args:
            points: Where measurements were tried, in extents of the domain. (t, d)
            succeeded: Whether each of them succeeded. (t,)
            columns: Coordinates of each column of the domain; a category has several. Default: one
                for each column.
        """
        everything = list(range(points.shape[1]))
        strips = [list(own) for own in columns or [[k] for k in everything]]
        labels = np.where(succeeded, 1.0, -1.0)
        if len(labels) > MAX_LABELS:
            rows = np.linspace(0, len(labels) - 1, MAX_LABELS).round().astype(int)
            points = points[rows]
            labels = labels[rows]
        settings = [
            (everything, lengthscale, CHANCE_DEVIATION, PRIOR_SUCCESS)
            for lengthscale in LENGTHSCALES
        ]
        shapes = [(everything, lengthscale) for lengthscale in LENGTHSCALES]
        if len(strips) > 1:
            shapes += [(strip, STRIP_LENGTHSCALE) for strip in strips]
        settings += [
            (*shape, REGION_DEVIATION, success)
            for shape, success in product(shapes, (PRIOR_SUCCESS, MOSTLY_FAILING_SUCCESS))
        ]
        members = [_Laplace.fit(points, labels, *setting) for setting in settings]
        odds = [
            MOSTLY_FAILING_ODDS if success == MOSTLY_FAILING_SUCCESS else 1.0
            for *_, success in settings
        ]
        evidence = np.array([member.evidence for member in members]) + np.log(odds)
        weights = np.exp(evidence - evidence.max())
        weights /= weights.sum()
        has_regions = np.array([deviation == REGION_DEVIATION for _, _, deviation, _ in settings])
        regional = weights[has_regions].sum()
        kept = np.flatnonzero(weights >= MIN_EVIDENCE_SHARE)
        own = weights[kept] / weights[kept].sum()
        return FeasibilityModel(tuple(members[k] for k in kept), own, float(regional))

    def probability(self, points: Array) -> Array:
        """Return P(success) at points (q, d), in extents of the domain: (q,)."""
        total = np.zeros(len(points))
        for part in tiles(len(points), CHUNK):
            for weight, member in zip(self.weights, self.members, strict=True):
                total[part] += weight * member.probability(points[part])
        return total


@dataclass(frozen=True, eq=False)
class _Laplace:
    """Laplace's approximation for one setting of the kernel.

    Attributes:
        points: Points of the labels. (t, d)
        covariance: Prior covariance of the latent function: maps (q, d) and (t, d) to (q, t).
        mean: Prior mean of the latent function.
        variance: Prior variance of the latent function.
        gradient: Gradient of the log likelihood at the mode. (t,)
        root: W^(1/2) at the mode. (t,)
        factor: L. (t, t)
        evidence: Approximate log evidence.
    """

    points: Array
    covariance: Callable[[Array, Array], Array]
    mean: float
    variance: float
    gradient: Array
    root: Array
    factor: Array
    evidence: float

    @staticmethod
    def fit(
        points: Array,
        labels: Array,
        own: list[int],
        lengthscale: float,
        deviation: float,
        success: float,
    ) -> _Laplace:
        """Find the mode by Newton's method (algorithm 3.1); `own` are the columns that count."""
        from scipy.linalg import cho_solve
        from scipy.special import ndtri

        def covariance(first: Array, second: Array) -> Array:
            return CONSTANT_VARIANCE + deviation**2 * _matern52(
                first[:, own], second[:, own], lengthscale
            )

        prior = covariance(points, points)
        variance = CONSTANT_VARIANCE + deviation**2
        mean = float(ndtri(success) * np.sqrt(1.0 + variance))
        identity = np.eye(len(labels))
        dual = np.zeros(len(labels))  # a = K^-1 (f - m)
        mode = np.zeros(len(labels))
        objective = -np.inf
        for _ in range(_MAX_NEWTON_STEPS):
            likelihood, gradient, curvature = _probit(mode + mean, labels)
            value = float(likelihood.sum() - 0.5 * dual @ mode)
            root = np.sqrt(curvature)
            factor: Array = np.asarray(
                np.linalg.cholesky(identity + root[:, None] * prior * root), dtype=float
            )
            if value - objective < _NEWTON_TOLERANCE:
                break
            objective = value
            target = curvature * mode + gradient
            step = target - root * cho_solve((factor, True), root * (prior @ target)) - dual
            size = 1.0
            while size > 1e-6 and _objective(prior, labels, dual + size * step, mean) < value:
                size /= 2  # a full step of Newton's method can overshoot
            dual = dual + size * step
            mode = prior @ dual
        evidence = value - float(np.log(np.diag(factor)).sum())
        return _Laplace(points, covariance, mean, variance, gradient, root, factor, evidence)

    def probability(self, points: Array) -> Array:
        """Return P(success) at points (q, d) (algorithm 3.2, probit integral in closed form)."""
        from scipy.linalg.lapack import dtrtrs
        from scipy.special import ndtr

        across = self.covariance(points, self.points)
        mean = self.mean + across @ self.gradient
        explained, _ = dtrtrs(self.factor.T, (across * self.root).T, trans=1)
        variance = np.maximum(self.variance - np.einsum("tq,tq->q", explained, explained), 0.0)
        return np.asarray(ndtr(mean / np.sqrt(1.0 + variance)))


def _objective(prior: Array, labels: Array, dual: Array, mean: float) -> float:
    """Return the log posterior of the latent function K a, up to a constant."""
    mode = prior @ dual
    return float(_probit(mode + mean, labels)[0].sum() - 0.5 * dual @ mode)


def _probit(latent: Array, labels: Array) -> tuple[Array, Array, Array]:
    """Return log likelihood, gradient and negative curvature, (t,) each (table 3.1 of the book)."""
    from scipy.special import log_ndtr

    signed = labels * latent
    likelihood = log_ndtr(signed)
    # Density over distribution function.
    ratio = np.exp(-0.5 * signed**2 - likelihood) / np.sqrt(2 * np.pi)
    return likelihood, labels * ratio, np.maximum(ratio * (ratio + signed), 0.0)


def _matern52(first: Array, second: Array, lengthscale: float) -> Array:
    return Stationary(5, 1.0, np.array(lengthscale))(first, second)
