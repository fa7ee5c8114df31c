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
from truvar._typing import Array, Index, Mask
from truvar.models.kernels import Covariance

MAX_PIVOTS = 500  # points whose joint distribution is drawn from exactly
MAX_DEVIATION_SDS = (
    3.0  # observations that are further from what the others predict are contradicted by them
)
MAX_CONTRADICTED_SHARE = 0.1  # share of the observations that may be contradicted
MEMBERS_PER_CAUTIOUS = 4  # members of which one is made cautious
MIN_LOG_DENSITY_GAIN = (
    2.0  # log density by which repeated measurements must prefer noise to a fine structure of f
)
PREDICTION_BLOCK = 65_536  # points that are predicted together, which bounds the memory
# share of the variances: added to those of the pivots, so that rounding leaves them positive
JITTER_SHARE = 1e-9
# share of its variance by which a value that is conditioned on stays uncertain: neighbours are
# alike
BLUR_SHARE = 1e-3


@dataclass(frozen=True, eq=False)
class Inflation:
    """Differences of a cautious member from the one that it is made of.

    Attributes:
        sd_factor: Factor on its standard deviations, >= 1.
        lengthscale_factor: Factor on its length-scales, <= 1.
        n_columns: Number of coordinates; columns behind them are indices of tasks, which have no
            length-scale.
        learned_noise: Observations whose noise is learned, (t,); None: no noise is. Adds a
            white-noise component to f, with the variance of the learned noise, unless replicates
            rule it out.
        exact: Observations whose noise was given, which no others contradict, (t,); None: there are
            none.
    """

    sd_factor: float = 1.0
    lengthscale_factor: float = 1.0
    n_columns: int = 1
    learned_noise: Mask | None = None
    exact: Mask | None = None


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
        own_variance: Variance of a part of f that is independent from point to point, and of which
            observations tell nothing.
    """

    covariance: Covariance
    prior_variance: Callable[[Array], Array]
    prior_mean: Callable[[Array], Array]
    points: Array
    lower: Array
    whitened: Array
    whitened_ones: Array | None
    scales: Array
    own_variance: float = 0.0

    def solve(self, points: Array) -> Array:
        """Return v(x) = L^-1 k_t(x) at points (q, d'): (t, q)."""
        if len(self.points) == 0:
            return np.zeros((0, len(points)))
        across = self.covariance(self.points, points)
        return np.asarray(solve_triangular(self.lower, across, lower=True, check_finite=False))

    def predict(self, points: Array) -> tuple[Array, Array]:
        """Return mean and variance at points (q, d'): (q,) each."""
        solved = self.solve(points)
        mean = self.prior_mean(points) + self.whitened @ solved
        variance = (
            self.prior_variance(points) - (solved**2).sum(axis=0) + self._constant(solved) ** 2
        )
        return mean, np.maximum(variance, 0.0) + self.own_variance

    def cautious(self, inflation: Inflation) -> FrozenMember:
        """Return the posterior of the observations that are not contradicted, less certain."""
        own = (
            0.0
            if inflation.learned_noise is None
            else self._fine_structure_variance(inflation.learned_noise)
        )
        factor = inflation.lengthscale_factor
        rougher = self if factor == 1 else self._scale_lengthscales(factor, inflation.n_columns)
        kept = rougher._without_contradicted(inflation.exact)
        return replace(
            kept._scale_sds(inflation.sd_factor), own_variance=inflation.sd_factor**2 * own
        )

    def _scale_lengthscales(self, factor: float, n_columns: int) -> FrozenMember:
        stretch = np.ones(self.points.shape[1])
        stretch[:n_columns] = (
            1.0 / factor
        )  # the length-scales of k(a x, a x') are 1/a times those of k

        def covariance(points: Array, others: Array) -> Array:
            return self.covariance(points * stretch, others * stretch)

        def prior_variance(points: Array) -> Array:
            return self.prior_variance(points * stretch)

        within = covariance(self.points, self.points)
        within[np.diag_indices_from(within)] += self._noise()
        scales = self.scales / stretch
        member = replace(self, covariance=covariance, prior_variance=prior_variance, scales=scales)
        return member._of_observations(self.points, within, self._data())

    def _scale_sds(self, factor: float) -> FrozenMember:
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

    def _fine_structure_variance(self, learned: Mask) -> float:
        """Return the learned noise variance if it may be fine structure of f, else 0.

        Args:
            learned: Observations whose noise is learned. (t,)
        """
        noise = self._noise()
        own = float(np.median(noise[learned])) if learned.any() else 0.0
        repeated = _same_point(self.points, self.points) * np.outer(learned, learned)
        repeated[np.diag_indices_from(repeated)] = 0.0
        if own == 0.0 or not repeated.any():
            return own
        shared = repeated * np.minimum(own, np.sqrt(np.outer(noise, noise)))
        structured = self._of_observations(
            self.points, self.lower @ self.lower.T + shared, self._data()
        )
        return (
            own if structured.log_likelihood >= self.log_likelihood - MIN_LOG_DENSITY_GAIN else 0.0
        )

    def _without_contradicted(self, exact: Mask | None) -> FrozenMember:
        """Return the posterior without observations that the others contradict, the worst first.

        Observation i is (Q r)_i / Q_ii^(1/2) standard deviations from what the others predict, with
        Q the inverse of the observations' covariance and r their residuals. Without observation j,
        Q is smaller by q_j q_j^T / Q_jj.

        Args:
            exact: Observations that stay in any case, (t,); None: there are none.
        """
        t = len(self.points)
        if t == 0:
            return self
        inverse = solve_triangular(self.lower, np.eye(t), lower=True, check_finite=False)
        precision = inverse.T @ inverse
        weighted = inverse.T @ self.whitened
        kept = np.ones(t, dtype=bool)
        doubtful = kept if exact is None else ~exact
        for _ in range(int(MAX_CONTRADICTED_SHARE * t)):
            positive = np.maximum(np.diag(precision), np.finfo(float).tiny)  # but for rounding
            deviation = np.where(kept & doubtful, np.abs(weighted) / np.sqrt(positive), 0.0)
            worst = int(np.argmax(deviation))
            if deviation[worst] <= MAX_DEVIATION_SDS:
                break
            kept[worst] = False
            column = precision[:, worst] / precision[worst, worst]
            weighted = weighted - column * weighted[worst]
            precision = precision - np.outer(column, precision[worst])
        if kept.all():
            return self
        covariance = (self.lower @ self.lower.T)[np.ix_(kept, kept)]
        return self._of_observations(self.points[kept], covariance, self._data()[kept])

    def _noise(self) -> Array:
        """Return the noise variances of the observations, (t,)."""
        return np.asarray(
            np.maximum((self.lower**2).sum(axis=1) - self.prior_variance(self.points), 0.0)
        )

    def _data(self) -> Array:
        """Return the residuals and, where the mean is estimated, ones: (t, 1 or 2)."""
        whitened = (
            [self.whitened] if self.whitened_ones is None else [self.whitened, self.whitened_ones]
        )
        return np.asarray(self.lower @ np.array(whitened).T)

    def _of_observations(self, points: Array, covariance: Array, data: Array) -> FrozenMember:
        """Return the member for other observations: points, covariance with noise, and `_data`."""
        lower = _cholesky(covariance)
        whitened = solve_triangular(lower, data, lower=True, check_finite=False)
        member = replace(self, points=points, lower=lower, whitened=whitened[:, 0])
        if self.whitened_ones is None:
            return member
        residuals, ones = whitened.T
        shift = float(ones @ residuals) / float(ones @ ones)  # of the estimated constant
        return replace(
            member,
            prior_mean=lambda points: self.prior_mean(points) + shift,
            whitened=residuals - shift * ones,
            whitened_ones=ones,
        )

    @property
    def log_likelihood(self) -> float:
        """Log density of the observations, up to a constant."""
        return float(-0.5 * self.whitened @ self.whitened - np.log(np.diag(self.lower)).sum())

    def _constant(self, solved: Array) -> Array:
        """Return u at the points solved for, (q,): zero unless the constant mean is estimated."""
        ones = self.whitened_ones
        if ones is None or len(ones) == 0:
            return np.zeros(solved.shape[1])
        return np.asarray((1.0 - ones @ solved) / np.sqrt(ones @ ones))

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
        if self.own_variance > 0:
            across += self.own_variance * _same_point(given, points)
            inner += self.own_variance * _same_point(given, given)
        # In correlations; a value that is known already has none.
        variance_given = np.diag(inner)
        is_uncertain = variance_given > JITTER_SHARE * self.prior_variance(given)
        scale = np.sqrt(np.where(is_uncertain, variance_given, np.inf))
        across /= scale[:, None]
        inner /= np.outer(scale, scale)
        inner[np.diag_indices_from(inner)] = 1.0 + BLUR_SHARE
        lower = _cholesky(inner)
        root = solve_triangular(lower, across, lower=True, check_finite=False)
        weights = solve_triangular(lower.T, root, check_finite=False) / scale[:, None]
        variance = self.prior_variance(points) - (solved**2).sum(axis=0) + constant**2
        variance = np.maximum(variance, 0.0) + self.own_variance
        return np.asarray(weights), np.maximum(variance - (root**2).sum(axis=0), 0.0)

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
        draws = self._draw_smooth(points, pivots, count, rng)
        if self.own_variance > 0:
            distinct, positions = np.unique(points, axis=0, return_inverse=True)
            own = np.sqrt(self.own_variance) * rng.standard_normal((len(distinct), count))
            draws += own[positions.ravel()]
        return draws

    def _draw_smooth(
        self, points: Array, pivots: Index, count: int, rng: np.random.Generator
    ) -> Array:
        """Return `draw` without the part that is independent from point to point."""
        solved = self.solve(points)
        constant = self._constant(solved)
        mean = self.prior_mean(points) + self.whitened @ solved
        variance = np.maximum(
            self.prior_variance(points) - (solved**2).sum(axis=0) + constant**2, 0.0
        )
        floor = JITTER_SHARE * float(self.prior_variance(points[:1])[0])
        sd = np.sqrt(variance)
        # Every point has random numbers of its own, used or not: if rounding moves a point across
        # the floor on another processor, the draws at the others stay what they were.
        normal = rng.standard_normal((len(points), count))
        uncertain = variance > floor
        chosen = pivots[uncertain[pivots]]
        if len(chosen) == 0:
            return np.asarray(mean[:, None] + sd[:, None] * normal)
        among = self.covariance(points[chosen], points)
        among -= solved[:, chosen].T @ solved
        among += np.outer(constant[chosen], constant)
        scale = np.where(uncertain, sd, 1.0)
        among /= scale[chosen, None] * scale  # correlations
        inner = among[:, chosen].copy()
        inner[np.diag_indices_from(inner)] = 1.0 + JITTER_SHARE
        root = solve_triangular(
            _cholesky(inner), among, lower=True, check_finite=False
        )  # (pivots, q)
        explained = (root**2).sum(axis=0)
        root /= np.sqrt(np.maximum(explained, 1.0))
        rest = np.sqrt(np.maximum(1.0 - explained, 0.0))
        rest[chosen] = 0.0
        draws = root.T @ normal[chosen]
        inexact = np.flatnonzero(rest > 0)
        draws[inexact] += rest[inexact, None] * normal[inexact]
        draws *= sd[:, None]
        draws += mean[:, None]
        return np.asarray(draws)


class MirroredGenerator(np.random.Generator):
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
    def with_cautious(self, share: float, inflation: Inflation) -> FrozenPosterior:
        """Return the mixture with cautious members appended, one for every four members.

        Args:
            share: Total weight of the cautious members.
            inflation: Their differences from the members that they are made of.
        """
        n = len(self.members)
        count = -(-n // MEMBERS_PER_CAUTIOUS)
        chosen = np.linspace(0, n - 1, count).round().astype(int)
        cautious = tuple(self.members[j].cautious(inflation) for j in chosen)
        weights = ((1.0 - share) / n,) * n + (share / count,) * count
        return FrozenPosterior(self.members + cautious, weights)

    @blas_in_one_thread()
    def predict(self, points: Array) -> tuple[Array, Array]:
        """Return means and variances of every member at points (q, d'): (members, q) each."""
        means = np.empty((len(self.members), len(points)))
        variances = np.empty_like(means)
        for j, member in enumerate(self.members):
            for begin in range(0, len(points), PREDICTION_BLOCK):
                rows = slice(begin, begin + PREDICTION_BLOCK)
                means[j, rows], variances[j, rows] = member.predict(points[rows])
        return means, variances

    @blas_in_one_thread()
    def draw(self, points: Array, count: int, seed: Sequence[int]) -> Array:
        """Return joint draws of f from the mixture at points (q, d'): (q, S), S at least `count`.

        The draws are ordered by member; each has as many as `draw_counts` says.
        """
        rng = np.random.default_rng(seed)
        if self.mirrored:
            rng = MirroredGenerator(rng.bit_generator)
        pivots = self._pivots(points)
        counts = self.draw_counts(count)
        parts = [
            member.draw(points, pivots, each, rng)
            for member, each in zip(self.members, counts, strict=True)
        ]
        return np.hstack(parts)

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


def _same_point(points: Array, others: Array) -> Array:
    """Return 1 where a point is also one of the others and 0 elsewhere, (q, r)."""
    same = np.ones((len(points), len(others)), dtype=bool)
    for column in range(points.shape[1]):
        same &= points[:, column, None] == others[None, :, column]
    return same.astype(float)


def _cholesky(matrix: Array) -> Array:
    """Return the lower Cholesky factor; rounding may call for more jitter on the diagonal."""
    jitter = JITTER_SHARE
    while True:
        try:
            return np.asarray(np.linalg.cholesky(matrix), dtype=float)
        except np.linalg.LinAlgError:
            jitter *= 10.0
            matrix = matrix + jitter * np.eye(len(matrix))
