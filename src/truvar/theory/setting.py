"""What the theorems speak of: a prior on finitely many points, what can be measured at which cost, and the epochs.

| paper | here | shape |
|---|---|---|
| k(x, x'), normalised to k(x, x) = 1 | `TheorySetting.column(x')` | (m,) |
| sigma^2(x), c(x) | `TheorySetting.noise`, `TheorySetting.cost` | (m, K) |
| D, the points that M, H and L speak of | the first `points` of the m sites | |
| \\|D\\| of the theorem, D0 x K | `TheorySetting.actions` | |
| eta_(1), r, delta-bar | `TheorySetting.eta`, `r`, `slack` | |
| sigma^2_{0\\|S}(x) | `Conditioned.variance` | (m,) |

Variances are shares of the prior's; `scale` leads back to the user's units.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from truvar._typing import Array
from truvar.acquisition.confidence import Confidence
from truvar.domain.candidates import Candidates
from truvar.exceptions import TruvarError
from truvar.models.posterior import EXACT, Posterior

KEPT = 10_000_000  # numbers of the prior covariance that a setting keeps, to look at the same columns again


@dataclass(frozen=True)
class TheorySetting:
    """A prior, the actions with their noise and cost, and how the epochs go."""

    column: Callable[[int], Array]
    prior: Array
    noise: Array
    cost: Array
    points: int
    eta: float = 1.0
    r: float = 0.5
    slack: float = 0.1
    scale: float = 1.0

    @staticmethod
    def of(posterior: Posterior, candidates: Candidates, confidence: Confidence) -> TheorySetting:
        """The setting of a study: its prior, its table of candidates before the first choice, its epochs."""
        variance = posterior.scale**2

        @lru_cache(max(1, KEPT // len(posterior.sites)))
        def column(x: int) -> Array:
            found = posterior.prior_covariance(x) / variance
            found.setflags(write=False)
            return found

        return TheorySetting(
            column=column,
            prior=np.asarray(posterior.kernel.diag(posterior.sites), dtype=float) / variance,
            noise=candidates.noise / variance,
            cost=candidates.cost,
            points=posterior.n_targets,
            eta=confidence.eta,
            r=confidence.r,
            slack=confidence.slack,
            scale=posterior.scale,
        )

    @staticmethod
    def from_covariance(
        covariance: ArrayLike, noise: ArrayLike, cost: ArrayLike = 1.0, *, eta: float = 1.0, r: float = 0.5,
        slack: float = 0.1,
    ) -> TheorySetting:  # fmt: skip
        """The setting of a covariance matrix (m, m) whose largest variance is 1; noise and cost are numbers, (m,) or
        (m, K)."""
        matrix = np.asarray(covariance, dtype=float)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or abs(matrix.diagonal().max() - 1) > 1e-9:
            raise TruvarError(
                "the covariance must be a square matrix with a largest variance of 1, got shape "
                f"{matrix.shape} and its largest diagonal entry {matrix.diagonal().max():g}; divide it by that"
            )
        noises, costs = (_table(value, len(matrix)) for value in (noise, cost))
        noises, costs = np.broadcast_arrays(noises, costs)
        return TheorySetting(
            lambda x: matrix[x], matrix.diagonal().copy(), noises, costs, len(matrix), eta=eta, r=r, slack=slack
        )

    @property
    def actions(self) -> int:
        """|D| in Theorem 3.1: with noise levels, points x levels."""
        return int(self.noise.size)

    @property
    def min_cost(self) -> float:
        """c_min."""
        return float(self.cost.min())

    @property
    def max_cost(self) -> float:
        """c_max."""
        return float(self.cost.max())

    @property
    def levels(self) -> list[tuple[float, float]]:
        """Noise variance and cost of each level, if they are the same everywhere; otherwise none."""
        same = bool(np.ptp(self.noise, axis=0).max() == 0 and np.ptp(self.cost, axis=0).max() == 0)
        return list(zip(self.noise[0].tolist(), self.cost[0].tolist(), strict=True)) if same else []

    def matrix(self) -> Array:
        """The whole covariance (m, m)."""
        return np.stack([self.column(x) for x in range(len(self.prior))])


class Conditioned:
    """The prior's variances given measurements, whose values they do not depend on. Owns its arrays."""

    def __init__(self, setting: TheorySetting) -> None:
        self._column = setting.column
        self._rows = np.empty((16, len(setting.prior)))
        self._count = 0
        self.variance = setting.prior.copy()

    def covariance(self, x: int) -> Array:
        """Cov(., x) given what was measured. (m,)"""
        rows = self._rows[: self._count]
        return np.asarray(self._column(x) - rows[:, x] @ rows)

    def measure(self, x: int, noise: float) -> None:
        """One measurement more; at a point that is known exactly it changes nothing."""
        d = self.variance[x] + noise
        if d <= EXACT:
            return
        if self._count == len(self._rows):
            self._rows = np.concatenate([self._rows, np.empty_like(self._rows)])
        u = self.covariance(x) / np.sqrt(d)
        self._rows[self._count] = u
        self._count += 1
        self.variance = np.maximum(self.variance - u * u, 0.0)
        if noise == 0:
            self.variance[x] = 0.0


def _table(value: ArrayLike, m: int) -> Array:
    array = np.asarray(value, dtype=float)
    return np.broadcast_to(
        array if array.ndim == 2 else array.reshape(-1, 1), (m, array.shape[-1] if array.ndim == 2 else 1)
    )
