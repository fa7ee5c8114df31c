"""Policies that look one measurement ahead, at the maximiser, the maximum or the level set.

ES, PES, MRS and MES share one Monte-Carlo draw of f on representer points (quasi-random, the same
for all candidates). In a box, ES, PES and MRS continue as EI once all draws agree on one
representer.

| papers | here | shape |
|---|---|---|
| representer points | `PosteriorDraws.sites`, R of the sites | (R,) |
| draws of f there, whitened | `PosteriorDraws.normal` | (k, S) |
| x*, f(x*) of each draw | `PosteriorDraws.maximiser`, `PosteriorDraws.maximum` | (S,) |
| p_max, p(x* | data) | frequencies of the maximisers | |
| change of the mean per standard deviation of surprise, Cov / d^(1/2) | `step` | (R, m) |
| surprise of a measurement, (y - mu) / d^(1/2) | z, N(0, 1); given a draw, N(`weights` normal, `rest`^2) | (m, S) |

d is the variance of the measurement, sigma^2(x) + noise. Values are signed so that high is good.
Noise levels and tasks differ in Cov and d alone, so ES, PES, MRS and SUR choose among them; without
`per_cost` the most precise level wins. The options `level`, `per_cost` and `beta` are those of
`BasePolicy`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
import scipy  # scipy.special is imported on first use, as it imports slowly

from truvar._numba import ambiguity, entropy
from truvar._numba.threads import blas_in_one_thread, tiles
from truvar._typing import Array, Index, SingleArray
from truvar.acquisition._representers import pivoted_cholesky, representer_sites, sample_rows
from truvar.acquisition.base import LEVEL_SET, OPTIMUM, BasePolicy, PolicyContext
from truvar.acquisition.confidence import MIN_VARIANCE_SHARE, Schedule
from truvar.acquisition.utils import expected_improvement, incumbent, moments, thresholds
from truvar.domain.candidates import Candidates
from truvar.validation import check_at_least

__all__ = ["ES", "MES", "MRS", "PES", "SUR"]

TILE = 8192  # candidate rows scored at a time
INTERVALS = 8  # equally likely intervals of the surprise of a measurement
# Gauss-Legendre quadrature from 0 to 1.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(4)
QUADRATURE_NODES = (_NODES + 1) / 2
QUADRATURE_WEIGHTS = _WEIGHTS / 2


@cache
def _interval_edges() -> SingleArray:
    """Return the limits between equally likely intervals of the surprise of a measurement."""
    return np.asarray(scipy.special.ndtri(np.arange(1, INTERVALS) / INTERVALS).astype(np.float32))


# -- draws of the posterior
# --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PosteriorDraws:
    """S draws of f on the representer points, sorted by their maximisers.

    Attributes:
        sites: Sites of the representer points. Shape (R,).
        whitening: Maps covariances with the representers to covariances with `normal`. Shape (k,
            R).
        normal: Standard normal numbers of the draws. Shape (k, S).
        maximiser: Representer with the highest value of each draw, as a position in `sites`. Shape
            (S,).
        maximum: That value. Shape (S,).
        spare: Standard normal numbers for the part of a measurement that the representers leave
            open. Shape (S,).
    """

    sites: Index
    whitening: Array
    normal: SingleArray
    maximiser: Index
    maximum: Array
    spare: SingleArray

    @property
    def starts(self) -> Index:
        """First draw of each maximiser. Shape (G,)."""
        return np.flatnonzero(np.diff(self.maximiser, prepend=-1))

    @property
    def n_maximisers(self) -> int:
        """G, the number of different maximisers."""
        return len(self.starts)

    def weights(self, step: Array) -> tuple[SingleArray, SingleArray]:
        """Return how the surprise z follows from `normal`, (m, k), and the sd of the rest, (m,)."""
        weights = self.whitening @ step
        rest = np.sqrt(np.maximum(1.0 - (weights**2).sum(axis=0), 0.0))
        return np.ascontiguousarray(weights.T, dtype=np.float32), rest.astype(np.float32)


def posterior_draws(context: PolicyContext, representers: int, count: int) -> PosteriorDraws:
    """Return the draws for this choice, the same for every table of candidates.

    Args:
        context: The context of the choice.
        representers: Number of representer points, at most.
        count: Number of draws; rounded up to a power of two.
    """
    return context.cached(
        ("draws", representers, count), lambda: _draw(context, representers, count)
    )


def _draw(context: PolicyContext, representers: int, count: int) -> PosteriorDraws:
    from scipy.stats import qmc  # imports slowly

    sites = representer_sites(context, representers)
    root, pivots = pivoted_cholesky(context, sites)
    rank = root.shape[1]
    inverse = np.eye(rank)
    for i in range(rank):
        inverse[i] = (inverse[i] - root[i, :i] @ inverse[:i]) / root[i, i]
    whitening = np.zeros((rank, len(sites)))
    whitening[:, pivots[:rank]] = inverse
    # (S, k + 1)
    sobol = qmc.Sobol(rank + 1, scramble=False).random_base2(int(np.ceil(np.log2(count))))
    uniform = (sobol.T + context.rng.random((rank + 1, 1))) % 1.0  # random shift
    normal = scipy.special.ndtri(np.clip(uniform, 1e-9, 1 - 1e-9))
    f = np.empty((len(sites), normal.shape[1]))
    f[pivots] = root @ normal[:-1]
    # The covariances are those of one model, the moments those of the mixture.
    if context.ensemble is not None:
        own = np.sqrt(context.posterior.pending_variance[sites])
        mean, sd = context.moments
        f *= np.divide(sd[sites], own, out=np.ones_like(own), where=own > 0)[:, None]
        f += mean[sites, None]
    else:
        f += context.goal.sign * context.posterior.mean[sites, None]
    maximiser = f.argmax(axis=0)
    order = np.argsort(maximiser, kind="stable")
    single = np.ascontiguousarray(normal[:, order], dtype=np.float32)
    return PosteriorDraws(
        sites, whitening, single[:-1], maximiser[order], f.max(axis=0)[order], single[-1]
    )


def surprise_tiles(
    context: PolicyContext, sites: Index, candidates: Candidates
) -> Iterator[tuple[slice, int, Array, Array]]:
    """Yield by tile and noise level: the candidate rows, the level, `step` (R, m) and d (m,)."""
    for rows in tiles(len(candidates.points), TILE):
        tile = candidates.take(np.arange(rows.start, rows.stop))
        covariance = context.posterior.covariance(sites, tile)
        variance = context.posterior.candidate_variance(tile)
        for level in range(tile.n_levels):
            d = variance + tile.noise[:, level]
            with np.errstate(divide="ignore", invalid="ignore"):
                step = np.where(
                    d > MIN_VARIANCE_SHARE * context.posterior.scale**2,
                    covariance / np.sqrt(d),
                    0.0,
                )
            yield rows, level, step, d


def _improvement_once_agreed(
    context: PolicyContext, draws: PosteriorDraws, candidates: Candidates
) -> Array | None:
    """Return expected improvement in a box if one representer wins all draws, otherwise None."""
    if not context.domain.continuous or draws.n_maximisers > 1:
        return None
    return expected_improvement_table(context, candidates)


def expected_improvement_table(context: PolicyContext, candidates: Candidates) -> Array:
    """Return expected improvement, equal at all noise levels and 0 for other tasks: (c, K)."""
    expected = expected_improvement(*moments(context, candidates), incumbent(context))
    expected[~context.is_target(candidates.points)] = 0.0
    return np.repeat(expected[:, None], candidates.n_levels, axis=1)


def _check_sizes(representers: int, draws: int) -> None:
    check_at_least(representers, 2, "representers")
    check_at_least(draws, 2, "draws")


# -- the maximiser
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ES(BasePolicy):
    """Entropy search: expected reduction of the entropy of the maximiser (Hennig and Schuler 2012).

    p_max and its change are counted from joint draws of f and the measurement, as in Metzen's code,
    which the paper used. The measurement falls into eight equally likely intervals; the mean of
    p_max over them is p_max before.

    Attributes:
        representers: Points that can be the maximiser: all, or this many of high promise.
        draws: Draws of f on them; rounded up to a power of two.
        per_cost: See `BasePolicy`.
        beta: See `BasePolicy`.
    """

    representers: int = 50
    draws: int = 1024
    per_cost: bool = False
    beta: Schedule | None = None
    supported_goals = OPTIMUM
    chooses_noise_level = True

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_sizes(self.representers, self.draws)

    @blas_in_one_thread()
    def score(self, context: PolicyContext, candidates: Candidates) -> Array:
        """Return H[p_max] - E H[p_max | y]. Shape (c, K)."""
        draws = posterior_draws(context, self.representers, self.draws)
        if (improvement := _improvement_once_agreed(context, draws, candidates)) is not None:
            return improvement
        edges = _interval_edges()
        gains = np.empty_like(candidates.noise)
        for rows, level, step, _ in surprise_tiles(context, draws.sites, candidates):
            weights, rest = draws.weights(step)
            out = np.empty(len(rest))
            entropy.cell_information(
                weights, rest, draws.normal, draws.spare, draws.maximiser, edges, out
            )
            gains[rows, level] = out
        return gains


@dataclass(frozen=True)
class PES(BasePolicy):
    """Predictive entropy search: H[y] - E H[y | x*] (Hernandez-Lobato, Hoffman, Ghahramani 2014).

    It is the same information about the maximiser as that of ES. As in their paper, y given x* is
    taken as normal. That x* is the maximum (their conditions C1 and C2, imposed by expectation
    propagation) holds in the draws that x* wins, which give mean and variance. That it beats the
    candidate too (C3) is their truncation, of the part of f(x) that the representers leave open.

    Attributes:
        representers: Points that can be the maximiser: all, or this many of high promise.
        draws: Draws of f on them; rounded up to a power of two.
        per_cost: See `BasePolicy`.
        beta: See `BasePolicy`.
    """

    representers: int = 50
    draws: int = 1024
    per_cost: bool = False
    beta: Schedule | None = None
    supported_goals = OPTIMUM
    chooses_noise_level = True

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_sizes(self.representers, self.draws)

    @blas_in_one_thread()
    def score(self, context: PolicyContext, candidates: Candidates) -> Array:
        """Return H[y] - E H[y | x*]. Shape (c, K)."""
        draws = posterior_draws(context, self.representers, self.draws)
        if (improvement := _improvement_once_agreed(context, draws, candidates)) is not None:
            return improvement
        mean, sd = moments(context, candidates)
        competes = context.is_target(candidates.points)  # candidates that x* must beat
        gains = np.empty_like(candidates.noise)
        for rows, level, step, d in surprise_tiles(context, draws.sites, candidates):
            weights, rest_sd = draws.weights(step)
            scale = np.sqrt(np.where(d > 0, d, 1.0))
            rest = rest_sd.astype(float) ** 2
            unseen = (
                np.maximum(rest - candidates.noise[rows, level] / scale**2, 0.0) * competes[rows]
            )
            out = np.empty(len(rest))
            entropy.log_variance(
                weights,
                rest,
                unseen,
                mean[rows],
                scale,
                draws.normal,
                draws.maximum,
                draws.starts,
                out,
            )
            gains[rows, level] = -0.5 * out
        return np.where(sd[:, None] > 0, np.maximum(gains, 0.0), 0.0)


@dataclass(frozen=True)
class MRS(BasePolicy):
    """Minimum regret search: expected reduction of the regret of a draw from p_max (Metzen 2016).

    The regret is E max f - E mu(x), x ~ p_max, and E max f does not change on average. With z the
    surprise, mu moves by `step` z, so that the regret falls by E[z step(x*)]: a quadratic form in
    `step`, whose matrix, the Hessian of E max f in the means, is the same for all candidates.

    Attributes:
        representers: Points that can be the maximiser: all, or this many of high promise.
        draws: Draws of f on them; rounded up to a power of two.
        per_cost: See `BasePolicy`.
        beta: See `BasePolicy`.
    """

    representers: int = 50
    draws: int = 1024
    per_cost: bool = False
    beta: Schedule | None = None
    supported_goals = OPTIMUM
    chooses_noise_level = True

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_sizes(self.representers, self.draws)

    @blas_in_one_thread()
    def score(self, context: PolicyContext, candidates: Candidates) -> Array:
        """Return E[z step(x*)]. Shape (c, K)."""
        draws = posterior_draws(context, self.representers, self.draws)
        if (improvement := _improvement_once_agreed(context, draws, candidates)) is not None:
            return improvement
        key = ("hessian", self.representers, self.draws)
        maximisers, hessian = context.cached(key, lambda: _hessian_of_maximum(draws))
        gains = np.empty_like(candidates.noise)
        for rows, level, step, _ in surprise_tiles(context, draws.sites, candidates):
            gains[rows, level] = (step[maximisers] * (hessian @ step)).sum(axis=0)
        return np.maximum(gains, 0.0)


def _hessian_of_maximum(draws: PosteriorDraws) -> tuple[Index, Array]:
    """Return the representers that win, (G,), and their rows of the Hessian of E max f, (G, R)."""
    centred = draws.normal.astype(float) - draws.normal.mean(axis=1)[:, None]
    # (k, G): E normal 1{g wins}
    products = np.add.reduceat(centred, draws.starts, axis=1) / len(draws.maximiser)
    return draws.maximiser[draws.starts], products.T @ draws.whitening


@dataclass(frozen=True)
class MES(BasePolicy):
    """Max-value entropy search: information of f(x) about the maximum (Wang and Jegelka 2017).

    Noise is left out, as in their paper. As in their code, f* is at least five standard deviations
    of the noise above the best value observed: otherwise the last digits of a maximum already found
    would count as information.

    Attributes:
        maxima: Number of values of f* to average over.
        representers: Points that can be the maximiser: all, or this many of high promise.
        draws: Draws of f on them; rounded up to a power of two.
        level: See `BasePolicy`.
        per_cost: See `BasePolicy`.
        beta: See `BasePolicy`.
    """

    maxima: int = 32
    representers: int = 50
    draws: int = 1024
    level: int | None = None
    per_cost: bool = False
    beta: Schedule | None = None
    supported_goals = OPTIMUM

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_sizes(self.representers, self.draws)
        check_at_least(self.maxima, 1, "maxima")

    @blas_in_one_thread()
    def score(self, context: PolicyContext, candidates: Candidates) -> Array:
        """Return E g phi(g) / (2 Phi(g)) - log Phi(g) over f*, g = (f* - mu) / sigma: (c, K)."""
        shares = (np.arange(self.maxima) + 0.5) / self.maxima
        drawn = posterior_draws(context, self.representers, self.draws).maximum
        maxima = context.cached(("maxima", self.maxima), lambda: np.quantile(drawn, shares))
        noise = candidates.noise[:, self.level or 0]
        maxima = np.maximum(maxima[:, None], incumbent(context) + 5 * np.sqrt(noise))  # (maxima, c)
        mean, sd = moments(context, candidates)
        with np.errstate(divide="ignore", invalid="ignore"):
            g = (maxima - mean) / sd
            log_share = scipy.special.log_ndtr(g)
            gain = (
                0.5 * g * np.exp(-0.5 * g**2 - log_share) / np.sqrt(2 * np.pi) - log_share
            ).mean(axis=0)
        uncertain = sd**2 > MIN_VARIANCE_SHARE * context.posterior.scale**2
        return self.score_table(
            context, candidates, np.where(uncertain, np.maximum(gain, 0.0), 0.0)
        )


# -- the level set
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SUR(BasePolicy):
    """Stepwise uncertainty reduction: expected reduction of the sum of p (1 - p) over the domain.

    p is the probability of lying above the threshold; the sums of several thresholds add up (Bect,
    Ginsbourger, Li, Picheny, Vazquez 2012; in closed form, Chevalier, Bect, Ginsbourger, Vazquez,
    Picheny, Richet 2014). An implicit threshold is replaced by its fraction of the largest
    posterior mean.

    Attributes:
        representers: Points in the sum; on a larger domain it is estimated from a weighted sample
            of this size.
        per_cost: See `BasePolicy`.
        beta: See `BasePolicy`.
    """

    representers: int = 500
    per_cost: bool = False
    beta: Schedule | None = None
    supported_goals = LEVEL_SET
    chooses_noise_level = True
    supports_bands = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least(self.representers, 2, "representers")

    @blas_in_one_thread()
    def score(self, context: PolicyContext, candidates: Candidates) -> Array:
        """Return the expected reduction of the sum of p (1 - p). Shape (c, K)."""
        key = ("ambiguous rows", self.representers)
        sites, multiplicity, square, variance = context.cached(
            key, lambda: self._ambiguous_rows(context)
        )
        gains = np.empty_like(candidates.noise)
        for rows, level, step, _ in surprise_tiles(context, sites, candidates):
            out = np.empty(step.shape[1])
            ambiguity.ambiguity_reductions_by_quadrature(
                step, square, variance, multiplicity, QUADRATURE_NODES, QUADRATURE_WEIGHTS, out
            )
            gains[rows, level] = out
        return gains

    def _ambiguous_rows(self, context: PolicyContext) -> tuple[Index, Array, Array, Array]:
        """Return the points to sum over, their multiplicities, ((mu - h) / sigma)^2 and sigma^2.

        With several thresholds a point is a row for each.
        """
        mean, sd = context.moments
        levels = thresholds(context)
        parts = []
        for level in levels:
            with np.errstate(divide="ignore", invalid="ignore"):
                u = (mean - level) / sd
            ambiguous = np.where(sd > 0, scipy.special.ndtr(u) * scipy.special.ndtr(-u), 0.0)
            sites, multiplicity = sample_rows(ambiguous, max(2, self.representers // len(levels)))
            parts.append((sites, multiplicity, u[sites] ** 2, sd[sites] ** 2))
        if len(parts) == 1:
            return parts[0]
        sites, multiplicity, square, variance = (
            np.concatenate(column) for column in zip(*parts, strict=True)
        )
        return sites, multiplicity, square, variance
