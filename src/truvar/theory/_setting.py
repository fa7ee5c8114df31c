r"""The setting of the theorems: a prior on finitely many points, measurements, epochs.

| paper | here | shape |
|---|---|---|
| k(x, x'), normalised to k(x, x) = 1 | `TheorySetting.column(x')` | (m,) |
| sigma^2(x), c(x) | `TheorySetting.noise`, `TheorySetting.cost` | (m, K) |
| D, the points that are classified as M, H or L | the first `points` of the m sites | |
| \|D\| of the theorem, D0 x K | `TheorySetting.actions` | |
| eta_(1), r, delta-bar | `TheorySetting.eta`, `r`, `slack` | |
| sigma^2_{0\|S}(x) | `Conditioned.variance` | (m,) |

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
from truvar.exceptions import InvalidArgumentError
from truvar.models.posterior import EXACT_VARIANCE_SHARE, Posterior

_CACHED_ENTRIES = 10_000_000  # entries of the prior covariance that a setting caches, by columns


@dataclass(frozen=True)
class TheorySetting:
    """A prior, the possible measurements with noise and cost, and the schedule of the epochs.

    Attributes:
        column: Function from a site to its column of the prior covariance, shape (m,).
        prior: Prior variances, shape (m,).
        noise: Noise variances, shape (m, K).
        cost: Costs, shape (m, K).
        points: Number of points of D, the first of the m sites.
        eta: eta_(1), in prior standard deviations.
        r: Factor by which eta shrinks from epoch to epoch.
        slack: delta-bar.
        scale: Prior standard deviation in the user's units.
    """

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
        """Return the setting of a study: its prior, first candidates and epochs."""
        variance = posterior.scale**2

        @lru_cache(max(1, _CACHED_ENTRIES // len(posterior.sites)))
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
        """Return the setting of a covariance matrix.

        Args:
            covariance: Matrix (m, m) whose largest variance is 1.
            noise: Noise variance: a number, (m,) or (m, K).
            cost: Cost: a number, (m,) or (m, K).
            eta: eta_(1), in prior standard deviations.
            r: Factor by which eta shrinks from epoch to epoch.
            slack: delta-bar.

        Raises:
            InvalidArgumentError: If the matrix is not square or its largest variance is not 1.
        """
        matrix = np.asarray(covariance, dtype=float)
        if (
            matrix.ndim != 2
            or matrix.shape[0] != matrix.shape[1]
            or abs(matrix.diagonal().max() - 1) > 1e-9
        ):
            raise InvalidArgumentError(
                "the covariance must be a square matrix with a largest variance of 1, got shape "
                f"{matrix.shape} and its largest diagonal entry {matrix.diagonal().max():g}; "
                "divide it by that"
            )
        noises, costs = np.broadcast_arrays(_table(noise, len(matrix)), _table(cost, len(matrix)))
        return TheorySetting(
            lambda x: matrix[x],
            matrix.diagonal().copy(),
            noises,
            costs,
            len(matrix),
            eta=eta,
            r=r,
            slack=slack,
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
        """Noise variance and cost of each level if they are constant; otherwise empty."""
        same = bool(np.ptp(self.noise, axis=0).max() == 0 and np.ptp(self.cost, axis=0).max() == 0)
        return list(zip(self.noise[0].tolist(), self.cost[0].tolist(), strict=True)) if same else []

    def matrix(self) -> Array:
        """Return the whole covariance (m, m)."""
        return np.stack([self.column(x) for x in range(len(self.prior))])


class Conditioned:
    """Prior variances conditioned on measurements, whatever their values. Owns its arrays."""

    def __init__(self, setting: TheorySetting) -> None:
        self._column = setting.column
        self._rows = np.empty((16, len(setting.prior)))
        self._count = 0
        self.variance = setting.prior.copy()

    def covariance(self, x: int) -> Array:
        """Return Cov(., x) given the measurements so far, shape (m,)."""
        rows = self._rows[: self._count]
        return np.asarray(self._column(x) - rows[:, x] @ rows)

    def measure(self, x: int, noise: float) -> None:
        """Condition on one more measurement; at an exactly known point nothing changes."""
        d = self.variance[x] + noise
        if d <= EXACT_VARIANCE_SHARE:
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
    if array.ndim < 2:
        array = array.reshape(-1, 1)
    return np.broadcast_to(array, (m, array.shape[1]))
