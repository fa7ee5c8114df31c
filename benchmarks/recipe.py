"""The recipe of the paper's supplement B, "Efficiently computing the acquisition function",
vectorised.

| paper | here | shape |
|---|---|---|
| k(x, x') over D, computed once | `prior` | (n, n) |
| L with L L^T = K_{t-1} + Sigma_{t-1} | again every step | (t, t) |
| k_{t-1}(x), (K_{t-1} + Sigma_{t-1})^-1 k_{t-1}(x) for every x | `across`, `solved` | (t, n) |
| sigma_{t-1}^2(x), Cov_{t-1}(M, x) | `variance`, `covariance` | (n,), (m, n) |
| Delta_{t-1|x}(M) | `delta`, per noise level | (m, n) |

The baseline of the speed rows. `Recipe` is the supplement line by line, every line over all
candidates at once. `Fixed` keeps the shapes fixed, as array code often does: Delta over all of D,
and the sum over M. `Tuned` is `Recipe` with what a performance-minded reader would change without
leaving NumPy: one triangular solve instead of two, and the large arrays worked on in place.
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
class Measurements:
    """Indices of the measured points, noise variances, and values minus the prior mean."""

    sites: Index  # (t,)
    noise: Array  # (t,)
    values: Array  # (t,)


@dataclass(frozen=True)
class ChoiceInputs:
    """Inputs of the choice: M, the numbers of the epoch, and the possible measurements with
    their costs."""

    targets: Mask  # M_{t-1}, (n,)
    beta: float  # over the prior variance, since the paper has k(x, x) = 1
    eta: float
    noise: Array  # (n, K)
    cost: Array  # (n, K)


@dataclass(frozen=True)
class Recipe:
    """The supplement's recipe on a finite domain, with the prior covariance of all pairs kept."""

    prior: Array

    def choose(self, measured: Measurements, inputs: ChoiceInputs) -> int:
        """Return the flat index (point * K + level) of the highest gain per cost, after one full
        step."""
        _mean, gains = self.gains(measured, inputs)
        return int(np.argmax(gains / inputs.cost))

    def gains(self, measured: Measurements, inputs: ChoiceInputs) -> tuple[Array, Array]:
        """Return mu_{t-1}(x) (n,) and the numerator of eq. (3) at every x and noise level (n,
        K)."""
        factor = self._factor(measured), True
        across = self.prior[measured.sites]
        solved = cho_solve(factor, across, check_finite=False)
        mean = measured.values @ solved
        variance = self.prior.diagonal() - (across * solved).sum(axis=0)
        covariance = self.prior[inputs.targets] - across[:, inputs.targets].T @ solved
        own = variance[inputs.targets][:, None]
        floor = inputs.eta**2
        gains = np.empty_like(inputs.noise)
        for level, noise in enumerate(inputs.noise.T):
            delta = covariance**2 / (noise + variance)
            gained = np.maximum(inputs.beta * own, floor) - np.maximum(
                inputs.beta * (own - delta), floor
            )
            gains[:, level] = gained.sum(axis=0)
        return mean, gains

    def _factor(self, measured: Measurements) -> Array:
        gram = self.prior[np.ix_(measured.sites, measured.sites)]
        gram[np.diag_indices_from(gram)] += measured.noise
        return np.asarray(cholesky(gram, lower=True, overwrite_a=True, check_finite=False))


class Fixed(Recipe):
    """Recipe over all of D; the rows outside M are left out of the sum."""

    def gains(self, measured: Measurements, inputs: ChoiceInputs) -> tuple[Array, Array]:
        across = self.prior[measured.sites]
        solved = cho_solve((self._factor(measured), True), across, check_finite=False)
        mean = measured.values @ solved
        covariance = self.prior - across.T @ solved
        variance = covariance.diagonal()
        own = variance[:, None]
        floor = inputs.eta**2
        gains = np.empty_like(inputs.noise)
        for level, noise in enumerate(inputs.noise.T):
            delta = covariance**2 / (noise + variance)
            gained = np.maximum(inputs.beta * own, floor) - np.maximum(
                inputs.beta * (own - delta), floor
            )
            gains[:, level] = inputs.targets @ gained
        return mean, gains


class Tuned(Recipe):
    """Recipe with one triangular solve and few temporaries."""

    def gains(self, measured: Measurements, inputs: ChoiceInputs) -> tuple[Array, Array]:
        factor = self._factor(measured)
        v = solve_triangular(
            factor, self.prior[measured.sites], lower=True, overwrite_b=True, check_finite=False
        )
        mean = solve_triangular(factor, measured.values, lower=True, check_finite=False) @ v
        variance = self.prior.diagonal() - np.einsum("ij,ij->j", v, v)
        rows = np.flatnonzero(inputs.targets)
        own = variance[rows]
        floor = inputs.eta**2
        square = self.prior[rows]
        square -= v[:, rows].T @ v
        np.square(square, out=square)
        before = np.maximum(inputs.beta * own, floor).sum()
        gains = np.empty_like(inputs.noise)
        for level, noise in enumerate(inputs.noise.T):
            is_last = level == inputs.noise.shape[1] - 1
            left = np.divide(
                square, (noise + variance) / -inputs.beta, out=square if is_last else None
            )
            left += inputs.beta * own[:, None]
            gains[:, level] = before - np.maximum(left, floor, out=left).sum(axis=0)
        return mean, gains
