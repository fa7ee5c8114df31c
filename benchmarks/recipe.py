"""The recipe of the paper's supplement B, "Efficiently computing the acquisition function", vectorised.

| paper | here | shape |
|---|---|---|
| k(x, x') over D, computed once | `prior` | (n, n) |
| L with L L^T = K_{t-1} + Sigma_{t-1} | again every step | (t, t) |
| k_{t-1}(x), (K_{t-1} + Sigma_{t-1})^-1 k_{t-1}(x) for every x | `across`, `solved` | (t, n) |
| sigma_{t-1}^2(x), Cov_{t-1}(M, x) | `variance`, `covariance` | (n,), (m, n) |
| Delta_{t-1|x}(M) | `delta`, per noise level | (m, n) |

The baseline of the speed rows. `Recipe` is the supplement line by line, every line over all candidates at once.
`Fixed` keeps the shapes fixed, as array code often does: Delta over all of D, and the sum over M. `Tuned` is `Recipe`
with what a performance-minded reader would change without leaving NumPy: one triangular solve instead of two, and the
large arrays worked on in place.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, cholesky, solve_triangular

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class MeasurementInput:
    """Measurements: the points' indices, noise variances, and values less the prior mean."""

    where: Index  # (t,)
    noise: Array  # (t,)
    values: Array  # (t,)


@dataclass(frozen=True)
class Wanted:
    """Inputs of the choice: M, the numbers of the epoch, and the possible measurements with their costs."""

    targets: Mask  # M_{t-1}, (n,)
    beta: float  # over the prior variance, since the paper has k(x, x) = 1
    eta: float
    noise: Array  # (n, K)
    cost: Array  # (n, K)


@dataclass(frozen=True)
class Recipe:
    """The supplement's recipe on a finite domain, with the prior covariance of all pairs kept."""

    prior: Array

    def choose(self, told: MeasurementInput, wanted: Wanted) -> int:
        """One step: mu and sigma^2 everywhere, and the flat row (place * K + level) of highest gain per cost."""
        _mean, gains = self.gains(told, wanted)
        return int(np.argmax(gains / wanted.cost))

    def gains(self, told: MeasurementInput, wanted: Wanted) -> tuple[Array, Array]:
        """mu_{t-1}(x), and the numerator of eq. (3) at every x and noise level. (n,), (n, K)"""
        factor = self._factor(told), True
        across = self.prior[told.where]
        solved = cho_solve(factor, across, check_finite=False)
        mean = told.values @ solved
        variance = self.prior.diagonal() - (across * solved).sum(axis=0)
        covariance = self.prior[wanted.targets] - across[:, wanted.targets].T @ solved
        own = variance[wanted.targets][:, None]
        floor = wanted.eta**2
        gains = np.empty_like(wanted.noise)
        for level, noise in enumerate(wanted.noise.T):
            delta = covariance**2 / (noise + variance)
            gained = np.maximum(wanted.beta * own, floor) - np.maximum(wanted.beta * (own - delta), floor)
            gains[:, level] = gained.sum(axis=0)
        return mean, gains

    def _factor(self, told: MeasurementInput) -> Array:
        gram = self.prior[np.ix_(told.where, told.where)]
        gram[np.diag_indices_from(gram)] += told.noise
        return np.asarray(cholesky(gram, lower=True, overwrite_a=True, check_finite=False))


class Fixed(Recipe):
    """Recipe over all of D; the rows outside M are left out of the sum."""

    def gains(self, told: MeasurementInput, wanted: Wanted) -> tuple[Array, Array]:
        across = self.prior[told.where]
        solved = cho_solve((self._factor(told), True), across, check_finite=False)
        mean = told.values @ solved
        covariance = self.prior - across.T @ solved
        variance = covariance.diagonal()
        own = variance[:, None]
        floor = wanted.eta**2
        gains = np.empty_like(wanted.noise)
        for level, noise in enumerate(wanted.noise.T):
            delta = covariance**2 / (noise + variance)
            gained = np.maximum(wanted.beta * own, floor) - np.maximum(wanted.beta * (own - delta), floor)
            gains[:, level] = wanted.targets @ gained
        return mean, gains


class Tuned(Recipe):
    """Recipe with one triangular solve and few temporaries."""

    def gains(self, told: MeasurementInput, wanted: Wanted) -> tuple[Array, Array]:
        factor = self._factor(told)
        v = solve_triangular(factor, self.prior[told.where], lower=True, overwrite_b=True, check_finite=False)
        mean = solve_triangular(factor, told.values, lower=True, check_finite=False) @ v
        variance = self.prior.diagonal() - np.einsum("ij,ij->j", v, v)
        rows = np.flatnonzero(wanted.targets)
        own = variance[rows]
        floor = wanted.eta**2
        square = self.prior[rows]
        square -= v[:, rows].T @ v
        np.square(square, out=square)
        before = np.maximum(wanted.beta * own, floor).sum()
        gains = np.empty_like(wanted.noise)
        for level, noise in enumerate(wanted.noise.T):
            is_last = level == wanted.noise.shape[1] - 1
            left = np.divide(square, (noise + variance) / -wanted.beta, out=square if is_last else None)
            left += wanted.beta * own[:, None]
            gains[:, level] = before - np.maximum(left, floor, out=left).sum(axis=0)
        return mean, gains
