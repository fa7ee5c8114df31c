"""Rules that look ahead: what a measurement would tell of the maximiser, of the maximum, of the level set.

ES, PES, MRS and MES share one Monte-Carlo draw of f on representer points (quasi-random, the same for every candidate).
In a box, ES, PES and MRS go on as EI once the draws agree on one of them.

| papers | here | shape |
|---|---|---|
| representer points | `Draw.where`, R of the sites | (R,) |
| draws of f there, whitened | `Draw.normal` | (k, S) |
| x*, f(x*) of each draw | `Draw.winner`, `Draw.best` | (S,) |
| p_max, p(x* | data) | shares of the winners | |
| change of the mean per standard deviation of surprise, Cov / d^(1/2) | `step` | (R, m) |
| surprise of a measurement, (y - mu) / d^(1/2) | z, N(0, 1); given a draw, N(`weights` normal, `rest`^2) | (m, S) |

d is the variance of the measurement, sigma^2(x) + noise. High is good: signs are the goal's. Noise levels and tasks
differ in Cov and d alone, so ES, PES, MRS and SUR choose among them by themselves; without `per_cost` the most precise
level always wins.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dpstrf
from scipy.special import log_ndtr, ndtr, ndtri
from scipy.stats import qmc

from truvar._numba import ambiguity, entropy
from truvar._numba.threads import blas_in_one_thread
from truvar._typing import Array, Index, SingleArray
from truvar.acquisition.base import PolicyContext, expected_improvement
from truvar.acquisition.confidence import RESOLUTION, Confidence, Schedule
from truvar.acquisition.utils import at_level, bookkeeping, moments, of_target, refuse, threshold, to_beat
from truvar.domain.candidates import Candidates
from truvar.validation import check_at_least

__all__ = ["ES", "MES", "MRS", "PES", "SUR"]

TILE = 8192  # candidates at a time
EDGES = ndtri(np.arange(1, 8) / 8).astype(np.float32)  # between equally likely values of the surprise
NODES, WEIGHTS = np.polynomial.legendre.leggauss(4)
NODES, WEIGHTS = (NODES + 1) / 2, WEIGHTS / 2  # of an integral from 0 to 1


# -- the draw they share -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Draw:
    """S draws of f on the representer points, in the order of their winners."""

    where: Index  # (R,)
    whitening: Array  # (k, R): covariances with the representers -> covariances with `normal`
    normal: SingleArray  # (k, S)
    winner: Index  # (S,): the representer with the highest value, as a position in `where`
    best: Array  # (S,): that value
    spare: SingleArray  # (S,): standard normal too, for what the representers leave open

    @property
    def starts(self) -> Index:
        """Where the draws of the next winner start (G,)."""
        return np.flatnonzero(np.diff(self.winner, prepend=-1))

    def weights(self, step: Array) -> tuple[SingleArray, SingleArray]:
        """How the surprise z follows from `normal` (m, k), and the standard deviation (m,) of what does not."""
        weights = self.whitening @ step
        rest = np.sqrt(np.maximum(1.0 - (weights**2).sum(axis=0), 0.0))
        return np.ascontiguousarray(weights.T, dtype=np.float32), rest.astype(np.float32)


def draw(context: PolicyContext, representers: int, draws: int) -> Draw:
    """The draw for this choice: the same for every table of candidates."""
    return context.cached(("draw", representers, draws), lambda: _draw(context, representers, draws))


def _draw(context: PolicyContext, representers: int, draws: int) -> Draw:
    posterior, rng = context.posterior, context.rng
    where = _representers(context, representers)
    here = Candidates(posterior.sites[where], np.zeros((len(where), 1)), np.ones((len(where), 1)), where)
    covariance = posterior.covariance(where, here)
    least = max(1e-10 * float(np.diag(covariance).max()), RESOLUTION * posterior.scale**2)
    root, first, rank, _ = dpstrf(covariance, tol=least, lower=1)  # pivoted: what varies most comes first
    root, first = np.tril(root)[:, :rank], first - 1
    inverse = np.eye(rank)
    for i in range(rank):
        inverse[i] = (inverse[i] - root[i, :i] @ inverse[:i]) / root[i, i]
    whitening = np.zeros((rank, len(where)))
    whitening[:, first[:rank]] = inverse
    sobol = qmc.Sobol(rank + 1, scramble=False).random_base2(int(np.ceil(np.log2(draws))))  # (S, k + 1)
    uniform = (sobol.T + rng.random((rank + 1, 1))) % 1.0  # shifted at random
    normal = ndtri(np.clip(uniform, 1e-9, 1 - 1e-9))
    f = np.empty((len(where), normal.shape[1]))
    f[first] = root @ normal[:-1]
    f += context.goal.sign * posterior.mean[where, None]
    winner = f.argmax(axis=0)
    order = np.argsort(winner, kind="stable")
    single = np.ascontiguousarray(normal[:, order], dtype=np.float32)
    return Draw(where, whitening, single[:-1], winner[order], f.max(axis=0)[order], single[-1])


def _representers(context: PolicyContext, count: int) -> Index:
    """All points of a small domain; of a larger one, the best mean and others in proportion to the root of expected
    improvement: a systematic sample, which spreads, and as many as are missing without replacement."""
    mean, sd = context.moments
    if len(mean) <= count:
        return np.arange(len(mean))
    weight = np.sqrt(expected_improvement(mean, sd, to_beat(context))) + np.finfo(float).tiny
    merit = np.log(weight) + context.rng.gumbel(size=len(mean))
    merit[systematic(weight, count - 1, context.rng.random())] = np.inf
    merit[np.argmax(mean)] = np.inf
    return np.sort(np.argpartition(-merit, count)[:count])


def systematic(weight: Array, count: int, offset: float) -> Index:
    """`count` rows in proportion to their weights, evenly along the rows; heavy ones several times."""
    share = np.cumsum(weight) / weight.sum()
    return np.minimum(np.searchsorted(share, (np.arange(count) + offset) / count), len(weight) - 1)


def _tiles(context: PolicyContext, where: Index, candidates: Candidates) -> Iterator[tuple[slice, int, Array, Array]]:
    """By tile and noise level: the rows, the level, `step` (R, m) and d (m,)."""
    for start in range(0, len(candidates.points), TILE):
        tile = candidates.take(np.arange(start, min(start + TILE, len(candidates.points))))
        covariance = context.posterior.covariance(where, tile)
        own = context.posterior.candidate_variance(tile)
        for level in range(tile.n_levels):
            d = own + tile.noise[:, level]
            with np.errstate(divide="ignore", invalid="ignore"):
                step = np.where(d > RESOLUTION * context.posterior.scale**2, covariance / np.sqrt(d), 0.0)
            yield slice(start, start + TILE), level, step, d


def _settled(context: PolicyContext, drawn: Draw, candidates: Candidates) -> Array | None:
    """In a box: expected improvement, once all draws are won by one representer and leave nothing to tell apart."""
    if not context.domain.continuous or len(drawn.starts) > 1:
        return None
    return improvement(context, candidates)


def improvement(context: PolicyContext, candidates: Candidates) -> Array:
    """Expected improvement at every level, of the target alone. (c, K)"""
    expected = expected_improvement(*moments(context, candidates), to_beat(context))
    expected[~of_target(context, candidates.points)] = 0.0
    return np.repeat(expected[:, None], candidates.n_levels, axis=1)


def _check(representers: int, draws: int) -> None:
    check_at_least(representers, 2, "representers")
    check_at_least(draws, 2, "draws")


# -- the maximiser -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ES:
    """Entropy search: by how much a measurement is expected to lower the entropy of p_max, the distribution of the
    maximiser over representer points, averaged over what is measured (Hennig and Schuler 2012).

    representers  points that can be the maximiser: all, or so many of promise
    draws         of f on them; rounded up to a power of two

    p_max and its change are counted from joint draws of f and the measurement, as in Metzen's code, which the paper
    used. The measurement falls into eight equally likely cells; on average over them p_max is what it was before.
    """

    representers: int = 50
    draws: int = 1024
    per_cost: bool = False
    beta: Schedule | None = None
    signed = False

    def __post_init__(self) -> None:
        _check(self.representers, self.draws)

    @property
    def confidence(self) -> Confidence:
        return bookkeeping(self.beta)

    def places(self, context: PolicyContext, candidates: Candidates) -> Index | None:
        return refuse(self, context, candidates, "an optimum")

    @blas_in_one_thread()
    def score(self, context: PolicyContext, candidates: Candidates) -> Array:
        drawn = draw(context, self.representers, self.draws)
        if (settled := _settled(context, drawn, candidates)) is not None:
            return settled
        gains = np.empty_like(candidates.noise)
        for rows, level, step, _ in _tiles(context, drawn.where, candidates):
            weights, rest = drawn.weights(step)
            out = np.empty(len(rest))
            entropy.cell_information(weights, rest, drawn.normal, drawn.spare, drawn.winner, EDGES, out)
            gains[rows, level] = out
        return gains


@dataclass(frozen=True)
class PES:
    """Predictive entropy search: H[y] - E H[y | x*], the same information about the maximiser as that of ES, seen from
    the measurement (Hernandez-Lobato, Hoffman, Ghahramani 2014).

    As there, y given x* is taken as normal. That x* is the maximum (their conditions C1 and C2, imposed by expectation
    propagation) holds in the draws that x* wins, which tell mean and variance; that it beats the candidate too (C3) is
    their truncation, of the part of f(x) that the representers leave open.
    """

    representers: int = 50
    draws: int = 1024
    per_cost: bool = False
    beta: Schedule | None = None
    signed = False

    def __post_init__(self) -> None:
        _check(self.representers, self.draws)

    @property
    def confidence(self) -> Confidence:
        return bookkeeping(self.beta)

    def places(self, context: PolicyContext, candidates: Candidates) -> Index | None:
        return refuse(self, context, candidates, "an optimum")

    @blas_in_one_thread()
    def score(self, context: PolicyContext, candidates: Candidates) -> Array:
        drawn = draw(context, self.representers, self.draws)
        if (settled := _settled(context, drawn, candidates)) is not None:
            return settled
        mean, sd = moments(context, candidates)
        rival = of_target(context, candidates.points)  # what x* must beat
        gains = np.empty_like(candidates.noise)
        for rows, level, step, d in _tiles(context, drawn.where, candidates):
            weights, rest = drawn.weights(step)
            scale, rest = np.sqrt(np.where(d > 0, d, 1.0)), rest.astype(float) ** 2
            unseen = np.maximum(rest - candidates.noise[rows, level] / scale**2, 0.0) * rival[rows]
            out = np.empty(len(rest))
            entropy.log_variance(weights, rest, unseen, mean[rows], scale, drawn.normal, drawn.best, drawn.starts, out)
            gains[rows, level] = -0.5 * out
        return np.where(sd[:, None] > 0, np.maximum(gains, 0.0), 0.0)


@dataclass(frozen=True)
class MRS:
    """Minimum regret search: by how much a measurement is expected to lower the expected regret of a point drawn from
    p_max (Metzen 2016).

    The regret is E max f - E mu(x), x ~ p_max, and E max f stays the same on average. With z the surprise, mu moves by
    `step` z, so that the regret falls by E[z step(x*)]: a quadratic form in `step`, whose matrix, the Hessian of
    E max f in the means, is the same for all candidates.
    """

    representers: int = 50
    draws: int = 1024
    per_cost: bool = False
    beta: Schedule | None = None
    signed = False

    def __post_init__(self) -> None:
        _check(self.representers, self.draws)

    @property
    def confidence(self) -> Confidence:
        return bookkeeping(self.beta)

    def places(self, context: PolicyContext, candidates: Candidates) -> Index | None:
        return refuse(self, context, candidates, "an optimum")

    @blas_in_one_thread()
    def score(self, context: PolicyContext, candidates: Candidates) -> Array:
        drawn = draw(context, self.representers, self.draws)
        if (settled := _settled(context, drawn, candidates)) is not None:
            return settled
        winners, form = context.cached(("form", self.representers, self.draws), lambda: _form(drawn))
        gains = np.empty_like(candidates.noise)
        for rows, level, step, _ in _tiles(context, drawn.where, candidates):
            gains[rows, level] = (step[winners] * (form @ step)).sum(axis=0)
        return np.maximum(gains, 0.0)


def _form(drawn: Draw) -> tuple[Index, Array]:
    """The representers that win (G,), and the rows of the Hessian of E max f that belong to them (G, R)."""
    centred = drawn.normal.astype(float) - drawn.normal.mean(axis=1)[:, None]
    won = np.add.reduceat(centred, drawn.starts, axis=1) / len(drawn.winner)  # (k, G): E normal 1{g wins}
    return drawn.winner[drawn.starts], won.T @ drawn.whitening


@dataclass(frozen=True)
class MES:
    """Max-value entropy search: what f(x) would tell of the maximum f*, from draws of it (Wang and Jegelka 2017).

    The mean over f* of g phi(g) / (2 Phi(g)) - log Phi(g), g = (f* - mu(x)) / sigma(x); noise is left out, as there. As
    in their code, f* is at least five standard deviations of the noise above the best value observed: otherwise the
    last digits of a maximum already found would pass for news.

    maxima  the number of values of f* to average over
    """

    maxima: int = 32
    representers: int = 50
    draws: int = 1024
    level: int | None = None
    per_cost: bool = False
    beta: Schedule | None = None
    signed = False

    def __post_init__(self) -> None:
        _check(self.representers, self.draws)
        check_at_least(self.maxima, 1, "maxima")

    @property
    def confidence(self) -> Confidence:
        return bookkeeping(self.beta)

    def places(self, context: PolicyContext, candidates: Candidates) -> Index | None:
        return refuse(self, context, candidates, "an optimum", self.level)

    @blas_in_one_thread()
    def score(self, context: PolicyContext, candidates: Candidates) -> Array:
        shares = (np.arange(self.maxima) + 0.5) / self.maxima
        drawn = draw(context, self.representers, self.draws).best
        maxima = context.cached(("maxima", self.maxima), lambda: np.quantile(drawn, shares))
        noise = candidates.noise[:, self.level or 0]
        maxima = np.maximum(maxima[:, None], to_beat(context) + 5 * np.sqrt(noise))  # (maxima, c)
        mean, sd = moments(context, candidates)
        with np.errstate(divide="ignore", invalid="ignore"):
            g = (maxima - mean) / sd
            log_share = log_ndtr(g)
            gain = (0.5 * g * np.exp(-0.5 * g**2 - log_share) / np.sqrt(2 * np.pi) - log_share).mean(axis=0)
        some = sd**2 > RESOLUTION * context.posterior.scale**2
        return at_level(context, candidates, self.level, np.where(some, np.maximum(gain, 0.0), 0.0))


# -- the level set -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SUR:
    """Stepwise uncertainty reduction: by how much a measurement is expected to lower the sum over the domain of
    p (1 - p), p the probability of lying above the threshold (Bect, Ginsbourger, Li, Picheny, Vazquez 2012; in closed
    form, Chevalier, Bect, Ginsbourger, Vazquez, Picheny, Richet 2014).

    representers  the sum over a larger domain is estimated from this many of its points, most of them doubtful ones

    An implicit threshold is taken to be its fraction of the largest posterior mean.
    """

    representers: int = 500
    per_cost: bool = False
    beta: Schedule | None = None
    signed = False

    def __post_init__(self) -> None:
        check_at_least(self.representers, 2, "representers")

    @property
    def confidence(self) -> Confidence:
        return bookkeeping(self.beta)

    def places(self, context: PolicyContext, candidates: Candidates) -> Index | None:
        return refuse(self, context, candidates, "a level set")

    @blas_in_one_thread()
    def score(self, context: PolicyContext, candidates: Candidates) -> Array:
        where, worth, square, variance = context.cached(("doubt", self.representers), lambda: self._doubt(context))
        gains = np.empty_like(candidates.noise)
        for rows, level, step, _ in _tiles(context, where, candidates):
            out = np.empty(step.shape[1])
            ambiguity.ambiguity_reductions_by_quadrature(step, square, variance, worth, NODES, WEIGHTS, out)
            gains[rows, level] = out
        return gains

    def _doubt(self, context: PolicyContext) -> tuple[Index, Array, Array, Array]:
        """The points to sum over, what each stands for, ((mu - h) / sigma)^2 and sigma^2 there."""
        mean, sd = context.moments
        with np.errstate(divide="ignore", invalid="ignore"):
            u = (mean - threshold(context)) / sd
        where, worth = sampled(np.where(sd > 0, ndtr(u) * ndtr(-u), 0.0), self.representers)
        return where, worth, u[where] ** 2, sd[where] ** 2


def sampled(weight: Array, count: int) -> tuple[Index, Array]:
    """At most `count` rows, and what each of them stands for in a sum over all: every row with some weight or, of more,
    a systematic sample in proportion to the weights."""
    some = np.flatnonzero(weight > 0)
    if len(some) <= count:
        return some, np.ones(len(some))
    rows, times = np.unique(systematic(weight, count, 0.5), return_counts=True)
    return rows, times * weight.sum() / (count * weight[rows])
