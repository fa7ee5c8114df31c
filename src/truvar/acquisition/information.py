"""Policies that measure where a value tells most about chosen points, or about its own side of h.

| papers | here | shape |
|---|---|---|
| A, the targets: M, the points that are undecided | `sites`, a sample of them | (R,) |
| I(f(A); y(x)) | -log(1 - share of the variance of y(x) that f(A) explains) / 2 | (c, K) |
| I(sign(f(x) - h); y(x)) | entropy of the side of x, less the mean of what is left of it | (c, K) |
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy  # scipy.special is imported on first use, as it imports slowly
from scipy.linalg import solve_triangular

from truvar._numba.threads import blas_in_one_thread
from truvar._typing import Array, Index
from truvar.acquisition._representers import pivoted_cholesky, sample_rows
from truvar.acquisition.base import LEVEL_SET, BasePolicy, PolicyContext
from truvar.acquisition.confidence import Schedule
from truvar.acquisition.entropy import surprise_tiles
from truvar.acquisition.utils import moments, thresholds
from truvar.domain.candidates import Candidates
from truvar.validation import check_at_least

__all__ = ["BES", "ITL"]

_MAX_EXPLAINED = 1.0 - 1e-12  # share of a variance: beyond it a value without noise is certain
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(40)  # of the surprise of a measurement
_PROBABILITIES = _WEIGHTS / _WEIGHTS.sum()
_EVEN_NODES, _EVEN_WEIGHTS = np.polynomial.legendre.leggauss(40)
_EDGE = 7.0  # standard deviations beyond which a side is certain
_MAX_DISTANCE = 40.0  # standard deviations from the threshold that are told apart


@dataclass(frozen=True)
class ITL(BasePolicy):
    """Information about the targets: I(f(A); y) for the undecided points A (Huebotter et al. 2024).

    Directed exploration of transductive active learning. The targets are M, the points whose class
    is undecided or that may be the optimum, as in TruVaR.

    Attributes:
        representers: Targets, at most; of more, an even sample of this size.
        per_cost: See `BasePolicy`.
        beta: See `BasePolicy`.
    """

    representers: int = 500
    per_cost: bool = False
    beta: Schedule | None = None
    chooses_noise_level = True
    supports_bands = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least(self.representers, 2, "representers")

    @blas_in_one_thread()
    def score(self, context: PolicyContext, candidates: Candidates) -> Array:
        """Return I(f(A); y). Shape (c, K)."""
        sites, root, pivots = context.cached(
            ("targets", self.representers), lambda: self._targets(context)
        )
        gains = np.zeros_like(candidates.noise)
        if not len(sites):
            return gains
        rank = root.shape[1]
        for rows, level, step, _ in surprise_tiles(context, sites, candidates):
            whitened = solve_triangular(root[:rank], step[pivots[:rank]], lower=True)  # (k, m)
            explained = np.minimum((whitened**2).sum(axis=0), _MAX_EXPLAINED)
            gains[rows, level] = -0.5 * np.log1p(-explained)
        return gains

    def _targets(self, context: PolicyContext) -> tuple[Index, Array, Index]:
        """Return a sample of the targets, and the factor of their covariance with its pivots."""
        sites, _ = sample_rows(context.targets.astype(float), self.representers)
        if not len(sites):
            return sites, np.zeros((0, 0)), sites
        return sites, *pivoted_cholesky(context, sites)


@dataclass(frozen=True)
class BES(BasePolicy):
    """Sign entropy: how much a value tells about the side of the threshold that its place lies on.

    I(sign(f(x) - h); y), by quadrature over the value. Of several thresholds the sum counts. An
    implicit threshold is replaced by its fraction of the largest posterior mean.

    Attributes:
        per_cost: See `BasePolicy`.
        beta: See `BasePolicy`.
    """

    per_cost: bool = False
    beta: Schedule | None = None
    supported_goals = LEVEL_SET
    chooses_noise_level = True
    supports_bands = True

    def score(self, context: PolicyContext, candidates: Candidates) -> Array:
        """Return I(sign(f(x) - h); y). Shape (c, K)."""
        mean, sd = moments(context, candidates)
        # Share of the sd of y that is the function's; 0 where nothing is unknown.
        total = np.sqrt(sd[:, None] ** 2 + candidates.noise)
        share = np.divide(sd[:, None], total, out=np.zeros_like(total), where=total > 0)
        gains = np.zeros_like(candidates.noise)
        for level in thresholds(context):
            with np.errstate(divide="ignore", invalid="ignore"):
                u = np.where(sd > 0, (mean - level) / sd, np.inf)
            before = _side_entropy(u)[:, None]
            gains += np.maximum(before - _mean_entropy_after(u, share), 0.0)
        return gains


def _mean_entropy_after(u: Array, share: Array) -> Array:
    """Return the mean entropy of the side of points after a measurement there, (c, K).

    With v = (u + share z) / left for the surprise z of the value, it is the mean of H(v), the
    entropy of the side. The integral is over v if noise is small, where H(v) is a narrow bump in z,
    and over z otherwise.

    Args:
        u: Distance of the mean from the threshold in standard deviations. (c,)
        share: Correlation of the measurement with f. (c, K)
    """
    left = np.sqrt(np.maximum(1.0 - share**2, 0.0))
    u = np.broadcast_to(np.clip(u, -_MAX_DISTANCE, _MAX_DISTANCE)[:, None], share.shape)
    found = np.zeros_like(share)
    is_precise = left < share
    ratio = left[is_precise] / share[is_precise]
    for v, weight in zip(_EDGE * _EVEN_NODES, _EDGE * _EVEN_WEIGHTS, strict=True):
        density = np.exp(-0.5 * (ratio * v - u[is_precise] / share[is_precise]) ** 2)
        found[is_precise] += weight * _side_entropy(v) * ratio * density / np.sqrt(2 * np.pi)
    is_noisy = ~is_precise
    for z, probability in zip(_NODES, _PROBABILITIES, strict=True):
        v = (u[is_noisy] + share[is_noisy] * z) / left[is_noisy]
        found[is_noisy] += probability * _side_entropy(v)
    return found


def _side_entropy(u: Array | float) -> Array:
    """Return the entropy of whether a standard normal number lies below u."""
    special = scipy.special
    return np.asarray(special.entr(special.ndtr(u)) + special.entr(special.ndtr(-u)))
