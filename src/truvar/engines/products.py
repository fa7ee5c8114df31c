"""Products of the prior covariance with a vector over the targets, where the matrix itself fits no memory.

| symbol | here | shape |
|---|---|---|
| K(sites, targets) w | `Product.times`, with a bound on its own error | (m,) |
| sum over chosen targets j of k(j, x)^2 | `Product.squares`, from above | (m,) |
| u, gamma_n = n u / (1 - n u) | `UNIT`, `gamma` | |

Three ways to it, from the most special to the most general: `Grid`, by FFT on a regular grid; `Interpolated`, by FFT on
a regular grid laid around scattered points; `LowRank`, by a pivoted Cholesky factor, for any kernel. Every error is
bounded, rounding included; the section "Rounding" of docs/performance.md derives the bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gamma as gamma_function
from math import inf, log2, pi, prod, sqrt
from typing import Protocol

import numpy as np
from scipy import fft
from scipy.linalg import cholesky, solve_triangular

from truvar._numba import interpolation
from truvar._typing import Array, Index, Mask
from truvar.domain.domain import Domain
from truvar.engines.rounding import KERNEL_ROUNDING, UNIT, block_error, gamma
from truvar.models.cholesky import BLOCK, blocked_product, quadratic_forms
from truvar.models.kernels import Coregionalized, Stationary, stationary_form
from truvar.models.posterior import Posterior

FFT_ROUNDING = 16 * UNIT  # per binary digit of the length, for factors 2, 3 and 5
EVEN = 1e-12  # an axis is evenly spaced if no value is off by more than this share of its extent
TAPS = 6  # nodes per axis that a point is interpolated from
LEBESGUE = 356 / 256  # the largest sum of their weights' magnitudes
REMAINDER = (15 / 8) ** 2 / 720  # of interpolation, times the sixth derivative: max |(s+2)(s+1)s(s-1)(s-2)(s-3)| / 6!
INTERPOLATED, FINE = 1e-4, 1e-11  # the worst error, as a share of the prior variance, that is used; and the best
PIVOTS = 32  # of a low-rank factor, found at a time
FACTOR_BYTES = 2 << 30
FACTOR_RANK = 1024
EXHAUSTED = 1e-13  # remainder at which a low-rank factor is as good as it gets


class Product(Protocol):
    """K(sites, targets), to be multiplied."""

    cost: float  # of one product, in floating-point operations

    def times(self, weights: Array) -> tuple[Array, Array | float]:
        """K(sites, targets) w for w (n,), and how far it can be off. (m,)"""
        ...

    def squares(self, chosen: Mask, cap: float = inf) -> Array:
        """At every site x, no less than the sum over the chosen targets j of min(k(j, x)^2, cap). (m,)"""
        ...


def product_for(posterior: Posterior, domain: Domain) -> Product:
    """The best way that the domain and the kernel allow."""
    kernel, between = posterior.kernel, np.ones(1)
    if isinstance(kernel, Coregionalized):
        between = np.asarray(kernel.covariance, dtype=float)[:, 0]  # of every task with the target
    form = _form(posterior)
    if form is not None:
        if domain.axes is not None and _evenly_spaced(domain.axes):
            return Grid(form, domain.axes, between)
        points = domain.points / form.lengthscales
        ratio = _spacing(form.smoothness, np.ptp(points, axis=0), len(points))
        if ratio is not None:
            return Interpolated(form, points, ratio, between)
    return LowRank(posterior)


def convolves(posterior: Posterior, domain: Domain) -> bool:
    """Whether products are convolutions on a grid, the fastest kind."""
    return domain.axes is not None and _evenly_spaced(domain.axes) and _form(posterior) is not None


def _form(posterior: Posterior) -> Stationary | None:
    """The kernel within a task, if it is stationary."""
    kernel = posterior.kernel
    return stationary_form(kernel.kernel if isinstance(kernel, Coregionalized) else kernel)


# -- regular grids -----------------------------------------------------------------------------------------------------


class Convolution:
    """sum over y of k(x - y) w(y) on a regular grid, for k even in every axis, by FFT of twice the size."""

    def __init__(self, table: Array) -> None:
        """`table`: k at the offsets 0, 1, ... along every axis."""
        self.shape = table.shape
        self._padded = tuple(fft.next_fast_len(2 * n - 1, real=True) for n in table.shape)
        wrapped = table
        for axis, (n, size) in enumerate(zip(table.shape, self._padded, strict=True)):
            offset = np.minimum(np.arange(size), size - np.arange(size))
            wrapped = np.take(wrapped, np.minimum(offset, n - 1), axis=axis)
        self._spectrum = fft.rfftn(wrapped).real  # k is even: the rest is rounding
        size = prod(self._padded)
        digits = log2(max(size, 2))
        magnitude = 2 * float(np.abs(self._spectrum).max()) + sqrt(size) * float(np.linalg.norm(wrapped))
        self.rounding = FFT_ROUNDING * digits * magnitude  # times |w|
        self.cost = 48 * size * digits

    def __call__(self, weights: Array) -> Array:
        """Padding is added, and cut away, axis by axis: half of it is never transformed."""
        last = len(self.shape) - 1
        waves = fft.rfft(weights, n=self._padded[last], axis=last)
        others = [axis for axis in range(last) if self._padded[axis] > 1]
        for axis in reversed(others):
            waves = fft.fft(waves, n=self._padded[axis], axis=axis, overwrite_x=True)
        waves *= self._spectrum
        for axis in others:
            waves = fft.ifft(waves, axis=axis, overwrite_x=True)
            waves = waves[(slice(None),) * axis + (slice(self.shape[axis]),)]
        out = fft.irfft(waves, n=self._padded[last], axis=last, overwrite_x=True)
        return np.ascontiguousarray(out[..., : self.shape[last]])


class Grid:
    """A stationary kernel on an evenly spaced grid."""

    def __init__(self, form: Stationary, axes: Sequence[Array], between: Array) -> None:
        self._between = between
        steps = [(axis[-1] - axis[0]) / max(len(axis) - 1, 1) for axis in axes]
        offsets = [step * np.arange(len(axis)) for step, axis in zip(steps, axes, strict=True)]
        points = np.stack([m.ravel() for m in np.meshgrid(*offsets, indexing="ij")], axis=1)
        self._table = form(np.zeros((1, len(axes))), points).reshape([len(axis) for axis in axes])
        self._convolution = Convolution(self._table)
        drift = sum(
            float(np.abs(axis - axis[0] - offset).max() / scale)
            for axis, offset, scale in zip(axes, offsets, np.broadcast_to(form.lengthscales, len(axes)), strict=True)
        )  # no kernel here is steeper than 1 per length-scale
        self._flat = form.variance * (KERNEL_ROUNDING + 4 * drift)
        self.cost = self._convolution.cost

    def times(self, weights: Array) -> tuple[Array, Array | float]:
        value = self._convolution(weights.reshape(self._table.shape)).ravel()
        error = self._convolution.rounding * float(np.linalg.norm(weights)) + self._flat * float(np.abs(weights).sum())
        return _tasks(self._between, value), error * float(np.abs(self._between).max())

    def squares(self, chosen: Mask, cap: float = inf) -> Array:
        least = float((self._between**2).min())
        convolution = Convolution(np.minimum(self._table**2, cap / least if least > 0 else inf))
        value = convolution(chosen.reshape(self._table.shape).astype(float)).ravel()
        variance = float(self._table.flat[0])
        value += convolution.rounding * sqrt(chosen.sum()) + 2 * variance * self._flat * float(chosen.sum())
        return _tasks(self._between**2, value)


def _evenly_spaced(axes: Sequence[Array]) -> bool:
    """Whether the grid is regular, and not so thin that padding every axis makes it unwieldy."""
    for axis in axes:
        line = np.linspace(axis[0], axis[-1], len(axis))
        if np.abs(axis - line).max() > EVEN * np.abs(axis[-1] - axis[0]):
            return False
    return prod(2 * len(axis) - 1 for axis in axes) <= 16 * prod(len(axis) for axis in axes)


def _tasks(between: Array, value: Array) -> Array:
    """The same for every task: the sites of one follow those of another."""
    return value if len(between) == 1 and between[0] == 1 else np.outer(between, value).ravel()


# -- scattered points in few dimensions --------------------------------------------------------------------------------


class Interpolated:
    """A stationary kernel on scattered points: k(x, y) = sum of w_a(x) k(a - b) w_b(y) over the nodes a, b of a regular
    grid, with the weights of interpolation by polynomials of degree 5; its spectral density bounds the error."""

    def __init__(self, form: Stationary, points: Array, ratio: float, between: Array) -> None:
        """`points` in length-scales; `ratio`: the distance of the nodes, in length-scales."""
        self._between, self._variance = between, form.variance
        self._smoothness, self._ratio, self._dims = form.smoothness, ratio, points.shape[1]
        position = (points - points.min(axis=0)) / ratio
        self._order = np.lexsort(np.floor(position).T[::-1])  # neighbours in memory are neighbours on the grid
        position = position[self._order]
        corner = np.floor(position).astype(np.intp)
        self._shape = (1,) * (3 - self._dims) + tuple(corner.max(axis=0) + TAPS)
        taps = [_weights(position[:, k] - corner[:, k]) for k in range(self._dims)]
        missing = 3 - self._dims
        self._slow, self._middle, self._fast = [np.ones((len(points), 1))] * missing + taps
        self._corner = np.column_stack([np.zeros((len(points), missing), np.intp), corner])
        offsets = [np.arange(n) * (ratio if n > 1 else 0.0) for n in self._shape]
        nodes = np.stack([m.ravel() for m in np.meshgrid(*offsets, indexing="ij")], axis=1)
        self._table = Stationary(form.smoothness, form.variance, np.ones(3))(np.zeros((1, 3)), nodes)
        self._table = self._table.reshape(self._shape)
        self._convolution = Convolution(self._table)
        crowd = np.bincount(np.ravel_multi_index(tuple(self._corner.T), self._shape)).max()
        taps_in_all = TAPS**self._dims
        extent = float(np.ptp(points, axis=0).sum())
        rounding = LEBESGUE ** (2 * self._dims) * gamma(crowd * taps_in_all + taps_in_all + 64)
        self._flat = rounding + KERNEL_ROUNDING + 16 * UNIT * extent
        self.cost = self._convolution.cost + 60.0 * len(points) * taps_in_all

    def times(self, weights: Array) -> tuple[Array, Array | float]:
        value, norm = self._product(self._convolution, weights)
        relative = interpolation_error(self._smoothness, self._ratio, self._dims) + self._flat
        error = self._convolution.rounding * norm * LEBESGUE**self._dims
        error += self._variance * relative * float(np.abs(weights).sum())
        return _tasks(self._between, value), error * float(np.abs(self._between).max())

    def squares(self, chosen: Mask, cap: float = inf) -> Array:
        """A kernel's square has the sum of two frequencies drawn from its density, and |a + b|^6 <= 2^5 (a^6 + b^6)."""
        convolution = Convolution(self._table**2)
        value, norm = self._product(convolution, chosen.astype(float))
        relative = 2 * interpolation_error(self._smoothness, self._ratio, self._dims, 32.0) + 2 * self._flat
        value += convolution.rounding * norm * LEBESGUE**self._dims
        value += self._variance**2 * relative * float(chosen.sum())
        return _tasks(self._between**2, value)

    def _product(self, convolution: Convolution, weights: Array) -> tuple[Array, float]:
        grid = np.zeros(self._shape)
        interpolation.spread(weights[self._order], self._corner, self._slow, self._middle, self._fast, grid)
        sorted_out, out = np.empty(len(weights)), np.empty(len(weights))
        interpolation.gather(convolution(grid), self._corner, self._slow, self._middle, self._fast, sorted_out)
        out[self._order] = sorted_out
        return out, float(np.linalg.norm(grid))


def interpolation_error(smoothness: int, ratio: float, dims: int, factor: float = 1.0) -> float:
    """How far an interpolated kernel of unit variance is from itself at most, with nodes `ratio` length-scales apart.

    A wave of frequency w is interpolated to within min(1 + Lebesgue, remainder (w ratio)^6); the error is the mean of
    that over the spectral density, which is normal for RBF and Student's t with 2 nu degrees of freedom for Matern, in
    every axis and for both arguments. `factor` multiplies the remainder.
    """
    remainder, most = factor * REMAINDER * ratio**TAPS, 1 + LEBESGUE
    if smoothness == 0:
        mean = 15 * remainder  # the sixth moment of the normal density
    else:
        degrees = float(smoothness)
        tail = gamma_function((degrees + 1) / 2) / (sqrt(degrees * pi) * gamma_function(degrees / 2))
        tail *= degrees ** ((degrees + 1) / 2)  # the density at w is below tail / w^(degrees + 1)
        edge = (most / remainder) ** (1 / TAPS)
        mean = 2 * tail * most * edge**-degrees * (1 / (TAPS - degrees) + 1 / degrees)
    return float(min(mean, most) * sum(LEBESGUE**k for k in range(dims)) * (1 + LEBESGUE**dims))


def _spacing(smoothness: int, extents: Array, count: int) -> float | None:
    """The distance of the nodes, in length-scales: as small as is useful and affordable; None if that is too wide."""
    dims = len(extents)
    if dims > 3:
        return None
    most = min(max(4 * count, 1 << 16), 1 << 23)
    ratio = 0.5
    while (
        interpolation_error(smoothness, ratio, dims) > FINE
        and float(np.prod(2 * (1.25 * extents / ratio + TAPS))) <= most
    ):
        ratio /= 1.25
    return ratio if interpolation_error(smoothness, ratio, dims) <= INTERPOLATED else None


def _weights(position: Array) -> Array:
    """Of the nodes -2..3, at positions in [0, 1]: the Lagrange polynomials. (n, 6)"""
    nodes = range(-2, TAPS - 2)
    return np.stack(
        [np.prod([(position - other) / (node - other) for other in nodes if other != node], axis=0) for node in nodes],
        axis=1,
    )


# -- any kernel, anywhere ----------------------------------------------------------------------------------------------


class LowRank:
    """K = Phi^T Phi + E by a pivoted Cholesky factor. E is what a posterior leaves of the prior covariance, so that
    |E_ij| <= sqrt(E_ii E_jj), to rounding."""

    def __init__(self, posterior: Posterior) -> None:
        self._targets = posterior.n_targets
        diagonal = np.asarray(posterior.kernel.diag(posterior.sites), dtype=float)
        most = min(len(diagonal), FACTOR_RANK, max(PIVOTS, FACTOR_BYTES // (8 * len(diagonal))))
        self._factor, pivots, rest = _pivoted_factor(posterior, diagonal, most)
        rank, top = len(pivots), float(diagonal.max())
        # Phi solves L Phi = K(pivots, sites) up to `residual`, whose effect on E goes with the weights L^-T Phi
        residual = (2 * gamma(rank + 8) + KERNEL_ROUNDING) * top
        lower = np.ascontiguousarray(self._factor[:, pivots].T)
        stretch = np.ones(len(diagonal))
        for start in range(0, len(diagonal), BLOCK):
            tile = slice(start, start + BLOCK)
            solved = solve_triangular(lower, self._factor[:, tile], lower=True, trans=1, check_finite=False)
            stretch[tile] += np.abs(solved).sum(axis=0)
        self._rest = np.sqrt(np.maximum(rest, 0.0) + gamma(rank + 4) * top + 2 * residual * stretch**2)
        self._top, self._root = top, np.sqrt(diagonal)
        self.cost = 48.0 * rank * len(diagonal)

    def times(self, weights: Array) -> tuple[Array, Array | float]:
        inner = blocked_product(self._factor[:, : self._targets], weights)
        norm = float(np.linalg.norm(weights))
        rounding = gamma(len(inner) + 2) * float(np.linalg.norm(inner))
        rounding += block_error(self._targets) * norm * sqrt(self._targets * self._top)
        error = self._rest * float(self._rest[: self._targets] @ np.abs(weights)) + self._root * rounding
        return inner @ self._factor, error

    def squares(self, chosen: Mask, cap: float = inf) -> Array:
        rows = np.flatnonzero(chosen)
        gram = np.zeros((len(self._factor),) * 2)
        for start in range(0, len(rows), BLOCK):
            part = self._factor[:, rows[start : start + BLOCK]]
            gram += part @ part.T
        value = quadratic_forms(self._factor, gram)
        value += block_error(len(rows)) * self._top * len(rows) * self._root**2
        rest = self._rest * float(np.linalg.norm(self._rest[: self._targets][chosen]))
        return np.asarray((np.sqrt(np.maximum(value, 0.0)) + rest) ** 2 * (1 + gamma(8)))


def _pivoted_factor(posterior: Posterior, diagonal: Array, most: int) -> tuple[Array, Index, Array]:
    """Phi (r, m), its pivots (r,), and what it leaves of the diagonal (m,). A block of pivots at a time: the largest
    remainders, those of them that tell little new left out."""
    k, sites = posterior.k, posterior.sites
    factor, rest, pivots = np.empty((most, len(diagonal))), diagonal.copy(), np.empty(0, np.intp)
    top = float(diagonal.max())
    while len(pivots) < most and rest.max() > EXHAUSTED * top:
        rank = len(pivots)
        count = min(4 * PIVOTS, len(rest))
        pool = np.argpartition(-rest, count - 1)[:count]
        across = k(sites[pool], sites[pool]) - factor[:rank, pool].T @ factor[:rank, pool]
        new = pool[_independent(across, min(PIVOTS, most - rank), 0.1 * float(rest.max()))]
        block = k(sites[new], sites) - factor[:rank, new].T @ factor[:rank]
        try:
            lower = cholesky(block[:, new], lower=True)
        except np.linalg.LinAlgError:  # below rounding: nothing more to gain
            break
        factor[rank : rank + len(new)] = solve_triangular(lower, block, lower=True, check_finite=False)
        rest -= (factor[rank : rank + len(new)] ** 2).sum(axis=0)
        pivots = np.concatenate([pivots, new])
    return factor[: len(pivots)], pivots, rest


def _independent(covariance: Array, most: int, least: float) -> Index:
    """Pivots of a small matrix, greedily, while their remainder is at least that much; always one."""
    rest, rows = np.diag(covariance).copy(), np.empty((most, len(covariance)))
    chosen: list[int] = []
    while len(chosen) < most:
        pivot = int(np.argmax(rest))
        if chosen and rest[pivot] < least:
            break
        row = (covariance[pivot] - rows[: len(chosen), pivot] @ rows[: len(chosen)]) / sqrt(max(rest[pivot], 1e-300))
        rows[len(chosen)] = row
        rest -= row**2
        chosen.append(pivot)
    return np.array(chosen, dtype=np.intp)
