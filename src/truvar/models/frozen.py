"""The posterior at one moment: moments and joint draws at any points, unaffected by later data.

| symbol | here | shape |
|---|---|---|
| x_1..x_t | `FrozenMember.points` | (t, d') |
| L with L L^T = K_t + Sigma_t | `FrozenMember.lower` | (t, t) |
| w = L^-1 (y - prior mean) | `FrozenMember.whitened` | (t,) |
| v(x) = L^-1 k_t(x) | `FrozenMember.solve` | (t, q) |
| mu(x) = prior mean + w^T v(x) | `FrozenMember.predict` | (q,) |
| Cov(x, x') = k(x, x') - v(x)^T v(x') + u(x) u(x') | `FrozenMember.draw` | (q, q) |
| u(x) = (1 - 1^T Q k_t(x)) / (1^T Q 1)^(1/2), Q = (K_t + Sigma_t)^-1 | the uncertainty of an estimated mean | (q,) |

A known model has one member; a learned one has a member for each of the sampled hyperparameters,
with a weight each.

Draws at more than `MAX_PIVOTS` points are exact at that many of them, which are spread over the
others. At the others the part that the pivots explain is exact, and the rest is drawn independently
from point to point: every point has its exact mean and variance, and correlations are, if anything,
too low. A joint statement about all points that is drawn from is therefore cautious.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from truvar._numba.threads import blas_in_one_thread
from truvar._typing import Array, Index
from truvar.models._tiles import TILE, solve_lower
from truvar.models.kernels import Covariance

MAX_PIVOTS = 500  # points whose joint distribution is drawn from exactly
_PREDICTION_BLOCK = 65_536  # points that are predicted together, which bounds the memory
# share of the variances: added to those of the pivots, so that rounding leaves them positive
JITTER_SHARE = 1e-9
# share of its variance that a drawn value has of its own: neighbours are alike, and the last bits of
# their covariance, which differ between processors, are magnified by less
DRAWN_JITTER_SHARE = 1e-6
# share of its variance by which a value that is conditioned on stays uncertain: neighbours are
# alike
BLUR_SHARE = 1e-3


@dataclass(frozen=True, eq=False)
class FrozenMember:
    """A Gaussian-process posterior with fixed hyperparameters.

    Attributes:
        covariance: Prior covariance k(points, others), the variance of an unknown constant mean
            included.
        prior_variance: k(x, x) at points (q, d'), as a function that returns (q,).
        prior_mean: Prior mean at points (q, d'), as a function that returns (q,).
        points: Points of the observations. (t, d')
        lower: Cholesky factor of their covariance, noise included. (t, t)
        whitened: L^-1 (y - prior mean). (t,)
        whitened_ones: L^-1 1, if the constant mean is an estimate whose uncertainty counts; None
            otherwise. (t,)
        scales: Length-scales that distances are measured in when pivots are spread. (d',) or (1,)
        family: Kernel family, where members of several are averaged.
    """

    covariance: Covariance
    prior_variance: Callable[[Array], Array]
    prior_mean: Callable[[Array], Array]
    points: Array
    lower: Array
    whitened: Array
    whitened_ones: Array | None
    scales: Array
    family: str = ""

    def solve(self, points: Array) -> Array:
        """Return v(x) = L^-1 k_t(x) at points (q, d'): (t, q)."""
        if len(self.points) == 0:
            return np.zeros((0, len(points)))
        return solve_lower(self.lower, self.covariance(self.points, points))

    def predict(self, points: Array) -> tuple[Array, Array]:
        """Return mean and variance at points (q, d'): (q,) each."""
        prior = self.prior_variance(points)
        mean = np.array(self.prior_mean(points), dtype=float)
        variance = np.array(prior, dtype=float)
        for start in range(0, len(points), TILE):
            tile = slice(start, start + TILE)
            solved = self.solve(points[tile])
            mean[tile] += self.whitened @ solved
            variance[tile] -= np.einsum("tq,tq->q", solved, solved)
            variance[tile] += self._constant(solved) ** 2
        # A value that was measured exactly is known exactly, but for the jitter.
        return mean, np.where(variance > JITTER_SHARE * prior, variance, 0.0)

    def scale_sds(self, factor: float) -> FrozenMember:
        """Return the member with standard deviations larger by a factor, those of the noise too."""
        ones = self.whitened_ones

        def covariance(points: Array, others: Array) -> Array:
            return factor**2 * self.covariance(points, others)

        def prior_variance(points: Array) -> Array:
            return factor**2 * self.prior_variance(points)

        return replace(
            self,
            covariance=covariance,
            prior_variance=prior_variance,
            lower=factor * self.lower,
            whitened=self.whitened / factor,
            whitened_ones=None if ones is None else ones / factor,
        )

    def _constant(self, solved: Array) -> Array:
        """Return u at the points solved for, (q,): zero unless the constant mean is estimated."""
        ones = self.whitened_ones
        if ones is None or len(ones) == 0:
            return np.zeros(solved.shape[1])
        return np.asarray((1.0 - ones @ solved) / np.sqrt(ones @ ones))

    def posterior_covariance(self, points: Array, others: Array) -> Array:
        """Return the posterior covariance of f at points (q, d') and others (k, d'): (q, k)."""
        solved = self.solve(points)
        solved_others = self.solve(others)
        covariance = self.covariance(points, others) - solved.T @ solved_others
        covariance += np.outer(self._constant(solved), self._constant(solved_others))
        return np.asarray(covariance)

    def regression(self, points: Array, given: Array) -> tuple[Array, Array]:
        """Return how f follows from f(given): mu(x) + weights^T (f(given) - mu(given)) + rest.

        Args:
            points: The points. (q, d')
            given: Points where f is known up to `BLUR_SHARE` of its variance. (k, d')

        Returns:
            The weights, (k, q), and the variance of the rest, (q,).
        """
        solved = self.solve(points)
        solved_given = self.solve(given)
        constant = self._constant(solved)
        constant_given = self._constant(solved_given)
        across = (
            self.covariance(given, points)
            - solved_given.T @ solved
            + np.outer(constant_given, constant)
        )
        inner = self.covariance(given, given) - solved_given.T @ solved_given
        inner += np.outer(constant_given, constant_given)
        # In correlations; a value that is known already has none.
        variance_given = np.diag(inner)
        is_uncertain = variance_given > JITTER_SHARE * self.prior_variance(given)
        scale = np.sqrt(np.where(is_uncertain, variance_given, np.inf))
        across /= scale[:, None]
        inner /= np.outer(scale, scale)
        inner[np.diag_indices_from(inner)] = 1.0 + BLUR_SHARE
        lower = robust_cholesky(inner)
        root = solve_lower(lower, across)
        weights = solve_triangular(lower.T, root, check_finite=False) / scale[:, None]
        variance = self.prior_variance(points) - _column_squares(solved) + constant**2
        variance = np.maximum(variance, 0.0)
        return np.asarray(weights), np.maximum(variance - _column_squares(root), 0.0)

    def draw(self, points: Array, pivots: Index, count: int, rng: np.random.Generator) -> Array:
        """Return joint draws of f at points (q, d'): (q, count).

        Args:
            points: Where to draw.
            pivots: Positions of the points whose joint distribution is drawn from exactly.
            count: Number of draws.
            rng: Source of randomness.
        """
        if len(points) == 0:
            return np.zeros((0, count))
        solved = self.solve(points)
        constant = self._constant(solved)
        mean = self.prior_mean(points) + self.whitened @ solved
        variance = self.prior_variance(points) - _column_squares(solved) + constant**2
        variance = np.maximum(variance, 0.0)
        floor = JITTER_SHARE * float(self.prior_variance(points[:1])[0])
        uncertain = variance > floor
        sd = np.sqrt(np.where(uncertain, variance, 0.0))
        # Every point has its own random numbers, used or not: if rounding moves a point across
        # the floor on another processor, the draws at the others stay what they were.
        normal = rng.standard_normal((len(points), count))
        chosen = pivots[uncertain[pivots]]
        if len(chosen) == 0:
            return np.asarray(mean[:, None] + sd[:, None] * normal)
        among = self.covariance(points[chosen], points)
        among -= solved[:, chosen].T @ solved
        if self.whitened_ones is not None:
            among += np.outer(constant[chosen], constant)
        # Correlations; a certain point has none, in any unit.
        per_sd = np.divide(1.0, sd, out=np.zeros_like(sd), where=uncertain)
        among *= per_sd[chosen, None]
        among *= per_sd
        inner = among[:, chosen].copy()
        inner[np.diag_indices_from(inner)] = 1.0 + DRAWN_JITTER_SHARE
        root = solve_lower(robust_cholesky(inner), among)  # (pivots, q)
        explained = _column_squares(root)
        rest = np.sqrt(np.maximum(1.0 - explained, 0.0))
        rest[chosen] = 0.0
        draws = root.T @ normal[chosen]
        draws /= np.sqrt(np.maximum(explained, 1.0))[:, None]
        inexact = np.flatnonzero(rest > 0)
        draws[inexact] += rest[inexact, None] * normal[inexact]
        draws *= sd[:, None]
        draws += mean[:, None]
        return np.asarray(draws)


class _MirroredGenerator(np.random.Generator):
    """A source of random numbers whose normal ones have the opposite sign."""

    def standard_normal(self, *args: Any, **options: Any) -> Any:
        """Return minus the numbers of `numpy.random.Generator`."""
        return -super().standard_normal(*args, **options)


@dataclass(frozen=True, eq=False)
class FrozenPosterior:
    """A mixture of Gaussian-process posteriors.

    Attributes:
        members: The members.
        weights: Their probabilities, which add up to 1; empty: all are equally probable.
        mirrored: Whether draws deviate from the mean in the opposite direction. Those of f are then
            minus those of -f that are not mirrored, so that mirrored problems have mirrored
            statements.
    """

    members: tuple[FrozenMember, ...]
    weights: tuple[float, ...] = ()
    mirrored: bool = False

    @property
    def shares(self) -> Array:
        """The weights of all members, (members,)."""
        if self.weights:
            return np.array(self.weights)
        return np.full(len(self.members), 1.0 / len(self.members))

    @blas_in_one_thread()
    def predict(self, points: Array) -> tuple[Array, Array]:
        """Return means and variances of every member at points (q, d'): (members, q) each."""
        means = np.empty((len(self.members), len(points)))
        variances = np.empty_like(means)
        for j, member in enumerate(self.members):
            for begin in range(0, len(points), _PREDICTION_BLOCK):
                rows = slice(begin, begin + _PREDICTION_BLOCK)
                means[j, rows], variances[j, rows] = member.predict(points[rows])
        return means, variances

    @blas_in_one_thread()
    def draw(self, points: Array, count: int, seed: Sequence[int]) -> Array:
        """Return joint draws of f from the mixture at points (q, d'): (q, S), S at least `count`.

        The draws are ordered by member; each has as many as `draw_counts` says.
        """
        rng = np.random.default_rng(seed)
        if self.mirrored:
            rng = _MirroredGenerator(rng.bit_generator)
        pivots = self._pivots(points)
        counts = self.draw_counts(count)
        draws = np.empty((len(points), sum(counts)))
        begin = 0
        for member, each in zip(self.members, counts, strict=True):
            draws[:, begin : begin + each] = member.draw(points, pivots, each, rng)
            begin += each
        return draws

    def draw_counts(self, count: int) -> list[int]:
        """Return how many of at least `count` draws each member gets, in proportion to weights."""
        return [
            ceil(count * share - 1e-9) for share in self.shares.tolist()
        ]  # rounding must not add a draw

    def _pivots(self, points: Array) -> Index:
        """Return positions of spread points, in the length-scales of the roughest member.

        On a grid many points are equally far from the pivots, and the last bits say which of them
        is the next one. With length-scales of few digits these bits are the same on every
        processor.
        """
        if len(points) <= MAX_PIVOTS:
            return np.arange(len(points))
        roughest = min(
            self.members, key=lambda member: round(float(np.log(member.scales).sum()), 6)
        )
        scales = np.array([float(f"{scale:.3g}") for scale in roughest.scales])
        return spread_points(points / scales, MAX_PIVOTS)


def spread_points(points: Array, count: int) -> Index:
    """Return positions of points such that no other is far from the nearest (Gonzalez 1985).

    Args:
        points: The points, in units in which their distances are comparable. (q, d)
        count: Number of positions to return, at most q.
    """
    chosen = np.zeros(count, dtype=np.intp)
    centre = points.mean(axis=0)
    chosen[0] = int(np.argmin(((points - centre) ** 2).sum(axis=1)))
    distance = ((points - points[chosen[0]]) ** 2).sum(axis=1)
    for i in range(1, count):
        chosen[i] = int(np.argmax(distance))
        np.minimum(distance, ((points - points[chosen[i]]) ** 2).sum(axis=1), out=distance)
    return chosen


def _column_squares(matrix: Array) -> Array:
    """Return the sum of squares of every column: (q,)."""
    return np.asarray(np.einsum("tq,tq->q", matrix, matrix))


def robust_cholesky(matrix: Array) -> Array:
    """Return the lower Cholesky factor; rounding may call for more jitter on the diagonal."""
    jitter = JITTER_SHARE
    while True:
        try:
            return np.asarray(np.linalg.cholesky(matrix), dtype=float)
        except np.linalg.LinAlgError:
            jitter *= 10.0
            matrix = matrix + jitter * np.eye(len(matrix))
