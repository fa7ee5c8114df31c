"""Products of the prior covariance with a vector, for matrices that do not fit into memory.

| symbol | here | shape |
|---|---|---|
| K(sites, targets) w | `PriorProduct.multiply`, with a bound on its error | (m,) |
| sum over targets j of w_j k(j, x)^2, w >= 0 | `PriorProduct.squared_sums`, an upper bound | (m,) |
| covariance of each task with the target task | `between` | (n_tasks,) |

There are three methods, from the most special to the most general: `GridProduct`, by FFT on a
regular grid; `InterpolatedProduct`, by FFT on a regular grid laid around scattered points;
`LowRankProduct`, by a pivoted Cholesky factor, for any kernel. Every error is bounded, rounding
included; `engines._rounding` derives the bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gamma as gamma_function
from math import inf, log2, pi, prod, sqrt
from typing import Protocol

import numpy as np
import scipy  # scipy.fft is imported on first use, as it imports slowly
from scipy.linalg import cholesky, solve_triangular

from truvar._numba import interpolation
from truvar._numba.threads import tiles
from truvar._typing import Array, Index
from truvar.domain.domain import Domain
from truvar.domain.layout import GridLayout
from truvar.engines._rounding import KERNEL_ROUNDING, SUM_ROUNDING, UNIT, block_error, gamma
from truvar.models.factor import BLOCK, blocked_product, quadratic_forms, weighted_gram
from truvar.models.kernels import Coregionalized, Stationary, stationary_form
from truvar.models.posterior import Posterior

FFT_ROUNDING = 16 * UNIT  # error of an FFT per binary digit of its length, for factors 2, 3 and 5
# share of its extent by which the values of an evenly spaced axis may be off
EVEN_SPACING_TOLERANCE = 1e-12
TAPS = 6  # nodes per axis that a point is interpolated from
LEBESGUE_CONSTANT = 356 / 256  # largest sum of the magnitudes of their weights
# interpolation error over the sixth derivative: max |(s+2)(s+1)s(s-1)(s-2)(s-3)| / 6!
REMAINDER_FACTOR = (15 / 8) ** 2 / 720
# share of the prior variance: with a larger error interpolation is not used
MAX_INTERPOLATION_ERROR = 1e-4
MIN_INTERPOLATION_ERROR = 1e-11  # share of the prior variance: a smaller error is not useful
PIVOT_BATCH = 32  # pivots of a low-rank factor found at a time
FACTOR_BYTES = 2 << 30  # largest size of a low-rank factor
FACTOR_RANK = 1024  # largest rank of a low-rank factor
# share of the prior variance at which a low-rank factor is as accurate as it can be
MIN_REMAINDER = 1e-13


class PriorProduct(Protocol):
    """Products with K(sites, targets).

    Attributes:
        cost: Floating-point operations of one product.
    """

    cost: float

    def multiply(self, weights: Array) -> tuple[Array, Array | float]:
        """Return K(sites, targets) w for w (n,): (m,); and a bound on its error: (m,) or float."""
        ...

    def squared_sums(self, weights: Array, cap: float = inf) -> Array:
        """Return upper bounds on sum_j w_j min(k(j, x)^2, cap) at every site x, w >= 0: (m,)."""
        ...


def prior_product(posterior: Posterior, domain: Domain) -> PriorProduct:
    """Return products with the prior covariance by the fastest method that is possible."""
    kernel = posterior.kernel
    between = np.ones(1)
    if isinstance(kernel, Coregionalized):
        between = np.asarray(kernel.covariance, dtype=float)[:, 0]
    form = within_task_form(posterior)
    if form is not None:
        layout = domain.layout
        if layout is not None and _evenly_spaced(layout.axes):
            return GridProduct(form, layout, between)
        points = domain.points / form.lengthscales
        spacing = _node_spacing(form.smoothness, np.ptp(points, axis=0), len(points))
        if spacing is not None:
            return InterpolatedProduct(form, points, spacing, between)
    return LowRankProduct(posterior)


def has_grid_product(posterior: Posterior, domain: Domain) -> bool:
    """Return whether products are convolutions on a regular grid, the fastest kind."""
    layout = domain.layout
    return (
        layout is not None
        and _evenly_spaced(layout.axes)
        and within_task_form(posterior) is not None
    )


def within_task_form(posterior: Posterior) -> Stationary | None:
    """Return the kernel within a task in compiled form; None if it is not stationary."""
    kernel = posterior.kernel
    form = stationary_form(kernel.kernel if isinstance(kernel, Coregionalized) else kernel)
    return None if form is None or form.categorical else form


# -- regular grids
# --------------------------------------------------------------------------------------------------


class Convolution:
    """The sum over y of k(x - y) w(y) on a regular grid by FFT, for k even in every axis.

    Args:
        table: k at the offsets 0, 1, ... along every axis.

    Attributes:
        shape: Shape of the grid.
        rounding: Error of a convolution, over the norm of w.
        cost: Floating-point operations of one convolution.
    """

    def __init__(self, table: Array) -> None:
        self.shape = table.shape
        self._padded = tuple(scipy.fft.next_fast_len(2 * n - 1, real=True) for n in table.shape)
        wrapped = table
        for axis, (n, size) in enumerate(zip(table.shape, self._padded, strict=True)):
            offset = np.minimum(np.arange(size), size - np.arange(size))
            wrapped = np.take(wrapped, np.minimum(offset, n - 1), axis=axis)
        # k is even, so that the imaginary part is rounding
        self._spectrum = scipy.fft.rfftn(wrapped).real
        size = prod(self._padded)
        digits = log2(max(size, 2))
        magnitude = 2 * float(np.abs(self._spectrum).max()) + sqrt(size) * float(
            np.linalg.norm(wrapped)
        )
        self.rounding = FFT_ROUNDING * digits * magnitude
        self.cost = 48 * size * digits

    def __call__(self, weights: Array) -> Array:
        """Return the convolution. Padding axis by axis leaves half of it untransformed."""
        last = len(self.shape) - 1
        waves = scipy.fft.rfft(weights, n=self._padded[last], axis=last)
        others = [axis for axis in range(last) if self._padded[axis] > 1]
        for axis in reversed(others):
            waves = scipy.fft.fft(waves, n=self._padded[axis], axis=axis, overwrite_x=True)
        waves *= self._spectrum
        for axis in others:
            waves = scipy.fft.ifft(waves, axis=axis, overwrite_x=True)
            waves = waves[(slice(None),) * axis + (slice(self.shape[axis]),)]
        out = scipy.fft.irfft(waves, n=self._padded[last], axis=last, overwrite_x=True)
        return np.ascontiguousarray(out[..., : self.shape[last]])

    def quadratic_form(self, weights: Array) -> float:
        """Return an upper bound on sum_xy w(x) k(x - y) w(y), by Parseval's theorem."""
        last = len(self.shape) - 1
        waves = scipy.fft.rfft(weights, n=self._padded[last], axis=last)
        for axis in range(last):
            waves = scipy.fft.fft(waves, n=self._padded[axis], axis=axis, overwrite_x=True)
        power = waves.real**2 + waves.imag**2
        power *= self._spectrum
        total = 2.0 * float(power.sum())  # the other half of the spectrum has the same values
        total -= float(power[..., 0].sum())
        if self._padded[last] % 2 == 0:
            total -= float(power[..., -1].sum())
        norm = float(np.linalg.norm(weights))
        return float(total / prod(self._padded) + 2 * self.rounding * norm**2)


class GridProduct:
    """Products with a stationary kernel on an evenly spaced grid.

    Args:
        form: The kernel within a task.
        layout: How the targets lie on the grid.
        between: Covariance of each task with the target task. (n_tasks,)
    """

    def __init__(self, form: Stationary, layout: GridLayout, between: Array) -> None:
        self._between = between
        self._layout = layout
        axes = layout.axes
        steps = [(axis[-1] - axis[0]) / max(len(axis) - 1, 1) for axis in axes]
        offsets = [step * np.arange(len(axis)) for step, axis in zip(steps, axes, strict=True)]
        points = np.stack([m.ravel() for m in np.meshgrid(*offsets, indexing="ij")], axis=1)
        self._table = form(np.zeros((1, len(axes))), points).reshape([len(axis) for axis in axes])
        self._convolution = Convolution(self._table)
        # None of these kernels changes by more than 1 per length-scale.
        drift = sum(
            float(np.abs(axis - axis[0] - offset).max() / scale)
            for axis, offset, scale in zip(
                axes, offsets, np.broadcast_to(form.lengthscales, len(axes)), strict=True
            )
        )
        self._kernel_error = form.variance * (KERNEL_ROUNDING + 4 * drift)
        self.cost = self._convolution.cost

    def multiply(self, weights: Array) -> tuple[Array, Array | float]:
        """Return K(sites, targets) w and a bound on its error, see `PriorProduct.multiply`."""
        value = self._convolve(self._convolution, weights)
        error = self._convolution.rounding * float(np.linalg.norm(weights))
        error += self._kernel_error * float(np.abs(weights).sum())
        return _for_tasks(self._between, value), error * float(np.abs(self._between).max())

    def squared_sums(self, weights: Array, cap: float = inf) -> Array:
        """Return upper bounds on sums of squares, see `PriorProduct.squared_sums`."""
        smallest = float((self._between**2).min())
        scaled_cap = cap / smallest if smallest > 0 else inf
        convolution = Convolution(np.minimum(self._table**2, scaled_cap))
        value = self._convolve(convolution, weights)
        variance = float(self._table.flat[0])
        total = float(weights.sum()) * (1 + SUM_ROUNDING)
        value += (
            convolution.rounding * float(np.linalg.norm(weights))
            + 2 * variance * self._kernel_error * total
        )
        return _for_tasks(self._between**2, value)

    def _convolve(self, convolution: Convolution, weights: Array) -> Array:
        """Return the convolution of the weights of the targets, at the targets: (n,)."""
        on_grid = self._layout.spread(weights).reshape(self._table.shape)
        return self._layout.gather(convolution(on_grid).ravel())


def _evenly_spaced(axes: Sequence[Array]) -> bool:
    """Return whether the grid is regular, and padding every axis does not make it unwieldy."""
    for axis in axes:
        line = np.linspace(axis[0], axis[-1], len(axis))
        if np.abs(axis - line).max() > EVEN_SPACING_TOLERANCE * np.abs(axis[-1] - axis[0]):
            return False
    return prod(2 * len(axis) - 1 for axis in axes) <= 16 * prod(len(axis) for axis in axes)


def _for_tasks(between: Array, value: Array) -> Array:
    """Return the values of the target task scaled for every task, one task after the other."""
    return value if len(between) == 1 and between[0] == 1 else np.outer(between, value).ravel()


# -- scattered points in few dimensions
# --------------------------------------------------------------------------------


class InterpolatedProduct:
    """Products with a stationary kernel on scattered points, by interpolation from a regular grid.

    k(x, y) is the sum of w_a(x) k(a - b) w_b(y) over the nodes a, b of the grid, with the weights
    of interpolation by polynomials of degree 5. The spectral density of the kernel bounds the
    error.

    Args:
        form: The kernel within a task.
        points: Coordinates in length-scales. (n, d), d <= 3
        spacing: Distance of the nodes, in length-scales.
        between: Covariance of each task with the target task. (n_tasks,)
    """

    def __init__(self, form: Stationary, points: Array, spacing: float, between: Array) -> None:
        self._between = between
        self._variance = form.variance
        self._smoothness = form.smoothness
        self._spacing = spacing
        self._dims = points.shape[1]
        position = (points - points.min(axis=0)) / spacing
        # Neighbours in memory are neighbours on the grid.
        self._order = np.lexsort(np.floor(position).T[::-1])
        position = position[self._order]
        corner = np.floor(position).astype(np.intp)
        missing = 3 - self._dims
        self._shape = (1,) * missing + tuple(corner.max(axis=0) + TAPS)
        taps = [lagrange_weights(position[:, k] - corner[:, k]) for k in range(self._dims)]
        self._slow, self._middle, self._fast = [np.ones((len(points), 1))] * missing + taps
        self._corner = np.column_stack([np.zeros((len(points), missing), np.intp), corner])
        offsets = [np.arange(n) * (spacing if n > 1 else 0.0) for n in self._shape]
        nodes = np.stack([m.ravel() for m in np.meshgrid(*offsets, indexing="ij")], axis=1)
        self._table = Stationary(form.smoothness, form.variance, np.ones(3))(
            np.zeros((1, 3)), nodes
        )
        self._table = self._table.reshape(self._shape)
        self._convolution = Convolution(self._table)
        crowd = np.bincount(np.ravel_multi_index(tuple(self._corner.T), self._shape)).max()
        n_taps = TAPS**self._dims
        extent = float(np.ptp(points, axis=0).sum())
        rounding = LEBESGUE_CONSTANT ** (2 * self._dims) * gamma(crowd * n_taps + n_taps + 64)
        self._kernel_error = rounding + KERNEL_ROUNDING + 16 * UNIT * extent
        self.cost = self._convolution.cost + 60.0 * len(points) * n_taps

    def multiply(self, weights: Array) -> tuple[Array, Array | float]:
        """Return K(sites, targets) w and a bound on its error, see `PriorProduct.multiply`."""
        value, norm = self._product(self._convolution, weights)
        relative = (
            interpolation_error(self._smoothness, self._spacing, self._dims) + self._kernel_error
        )
        error = self._convolution.rounding * norm * LEBESGUE_CONSTANT**self._dims
        error += self._variance * relative * float(np.abs(weights).sum())
        return _for_tasks(self._between, value), error * float(np.abs(self._between).max())

    def squared_sums(self, weights: Array, cap: float = inf) -> Array:
        """Return upper bounds on sums of squares, see `PriorProduct.squared_sums`.

        The square of a kernel has the sum of two frequencies drawn from its density, and |a + b|^6
        <= 2^5 (a^6 + b^6).
        """
        convolution = Convolution(self._table**2)
        value, norm = self._product(convolution, weights)
        relative = (
            2 * interpolation_error(self._smoothness, self._spacing, self._dims, 32.0)
            + 2 * self._kernel_error
        )
        value += convolution.rounding * norm * LEBESGUE_CONSTANT**self._dims
        value += self._variance**2 * relative * float(weights.sum()) * (1 + SUM_ROUNDING)
        return _for_tasks(self._between**2, value)

    def _product(self, convolution: Convolution, weights: Array) -> tuple[Array, float]:
        """Return W convolution(W^T weights), W interpolating, and the norm of W^T weights."""
        grid = np.zeros(self._shape)
        interpolation.spread(
            weights[self._order], self._corner, self._slow, self._middle, self._fast, grid
        )
        in_order = np.empty(len(weights))
        interpolation.gather(
            convolution(grid), self._corner, self._slow, self._middle, self._fast, in_order
        )
        out = np.empty(len(weights))
        out[self._order] = in_order
        return out, float(np.linalg.norm(grid))


def interpolation_error(smoothness: int, spacing: float, dims: int, factor: float = 1.0) -> float:
    """Return a bound on the error of an interpolated kernel of unit variance.

    A wave of frequency w is interpolated to within min(1 + Lebesgue, remainder (w spacing)^6); the
    error is the mean of that over the spectral density, which is normal for RBF and Student's t
    with 2 nu degrees of freedom for Matern, in every axis and for both arguments.

    Args:
        smoothness: Twice nu; 0 for RBF.
        spacing: Distance of the nodes, in length-scales.
        dims: Number of axes.
        factor: Factor of the remainder.
    """
    remainder = factor * REMAINDER_FACTOR * spacing**TAPS
    most = 1 + LEBESGUE_CONSTANT
    if smoothness == 0:
        mean = 15 * remainder  # the sixth moment of the normal density
    else:
        degrees = float(smoothness)
        tail = gamma_function((degrees + 1) / 2) / (
            sqrt(degrees * pi) * gamma_function(degrees / 2)
        )
        tail *= degrees ** ((degrees + 1) / 2)  # the density at w is below tail / w^(degrees + 1)
        edge = (most / remainder) ** (1 / TAPS)
        mean = 2 * tail * most * edge**-degrees * (1 / (TAPS - degrees) + 1 / degrees)
    return float(
        min(mean, most)
        * sum(LEBESGUE_CONSTANT**k for k in range(dims))
        * (1 + LEBESGUE_CONSTANT**dims)
    )


def _node_spacing(smoothness: int, extents: Array, count: int) -> float | None:
    """Return the node distance in length-scales, as small as is useful; None if too wide."""
    dims = len(extents)
    if dims > 3:
        return None
    max_nodes = min(max(4 * count, 1 << 16), 1 << 23)
    spacing = 0.5
    while (
        interpolation_error(smoothness, spacing, dims) > MIN_INTERPOLATION_ERROR
        and float(np.prod(2 * (1.25 * extents / spacing + TAPS))) <= max_nodes
    ):
        spacing /= 1.25
    return (
        spacing
        if interpolation_error(smoothness, spacing, dims) <= MAX_INTERPOLATION_ERROR
        else None
    )


def lagrange_weights(position: Array) -> Array:
    """Return the weights of the nodes -2..3 at positions in [0, 1], by Lagrange: (n, 6)."""
    nodes = range(-2, TAPS - 2)
    columns = []
    for node in nodes:
        factors = [(position - other) / (node - other) for other in nodes if other != node]
        columns.append(np.prod(factors, axis=0))
    return np.stack(columns, axis=1)


# -- any kernel and domain
# ---------------------------------------------------------------------------------------------


class LowRankProduct:
    """Products with K = Phi^T Phi + E by a pivoted Cholesky factor.

    E is what a posterior leaves of the prior covariance, so that |E_ij| <= (E_ii E_jj)^(1/2), up to
    rounding.
    """

    def __init__(self, posterior: Posterior) -> None:
        self._n_targets = posterior.n_targets
        diagonal = np.asarray(posterior.kernel.diag(posterior.sites), dtype=float)
        max_rank = min(
            len(diagonal), FACTOR_RANK, max(PIVOT_BATCH, FACTOR_BYTES // (8 * len(diagonal)))
        )
        self._factor, pivots, rest = _pivoted_factor(posterior, diagonal, max_rank)
        rank = len(pivots)
        max_variance = float(diagonal.max())
        # Phi solves L Phi = K(pivots, sites) up to `residual`, whose effect on E goes with the
        # weights L^-T Phi
        residual = (2 * gamma(rank + 8) + KERNEL_ROUNDING) * max_variance
        lower = np.ascontiguousarray(self._factor[:, pivots].T)
        stretch = np.ones(len(diagonal))
        for tile in tiles(len(diagonal), BLOCK):
            solved = solve_triangular(
                lower, self._factor[:, tile], lower=True, trans=1, check_finite=False
            )
            stretch[tile] += np.abs(solved).sum(axis=0)
        self._rest = np.sqrt(
            np.maximum(rest, 0.0) + gamma(rank + 4) * max_variance + 2 * residual * stretch**2
        )
        self._max_variance = max_variance
        self._root = np.sqrt(diagonal)
        self.cost = 48.0 * rank * len(diagonal)

    def multiply(self, weights: Array) -> tuple[Array, Array | float]:
        """Return K(sites, targets) w and a bound on its error, see `PriorProduct.multiply`."""
        inner = blocked_product(self._factor[:, : self._n_targets], weights)
        norm = float(np.linalg.norm(weights))
        rounding = gamma(len(inner) + 2) * float(np.linalg.norm(inner))
        rounding += block_error(self._n_targets) * norm * sqrt(self._n_targets * self._max_variance)
        error = (
            self._rest * float(self._rest[: self._n_targets] @ np.abs(weights))
            + self._root * rounding
        )
        return inner @ self._factor, error

    def squared_sums(self, weights: Array, cap: float = inf) -> Array:
        """Return upper bounds on sums of squares, see `PriorProduct.squared_sums`."""
        n_weighted = int(np.count_nonzero(weights))
        total = float(weights.sum()) * (1 + SUM_ROUNDING)
        value = quadratic_forms(self._factor, weighted_gram(self._factor, weights))
        value += (block_error(n_weighted) + gamma(2)) * self._max_variance * total * self._root**2
        rest = self._rest * sqrt(float(weights @ self._rest[: self._n_targets] ** 2))
        return np.asarray((np.sqrt(np.maximum(value, 0.0)) + rest) ** 2 * (1 + SUM_ROUNDING))


def _pivoted_factor(
    posterior: Posterior, diagonal: Array, max_rank: int
) -> tuple[Array, Index, Array]:
    """Return a pivoted Cholesky factor (r, m), its pivots (r,), and the diagonal left (m,).

    A block of pivots is found at a time: the largest remainders, without those that are nearly
    determined by others.
    """
    k = posterior.k
    sites = posterior.sites
    factor = np.empty((max_rank, len(diagonal)))
    rest = diagonal.copy()
    pivots = np.empty(0, np.intp)
    max_variance = float(diagonal.max())
    while len(pivots) < max_rank and rest.max() > MIN_REMAINDER * max_variance:
        rank = len(pivots)
        count = min(4 * PIVOT_BATCH, len(rest))
        pool = np.argpartition(-rest, count - 1)[:count]
        across = k(sites[pool], sites[pool]) - factor[:rank, pool].T @ factor[:rank, pool]
        new = pool[_independent(across, min(PIVOT_BATCH, max_rank - rank), 0.1 * float(rest.max()))]
        block = k(sites[new], sites) - factor[:rank, new].T @ factor[:rank]
        try:
            lower = cholesky(block[:, new], lower=True)
        except np.linalg.LinAlgError:  # the remainder is below rounding: nothing more to gain
            break
        factor[rank : rank + len(new)] = solve_triangular(
            lower, block, lower=True, check_finite=False
        )
        rest -= (factor[rank : rank + len(new)] ** 2).sum(axis=0)
        pivots = np.concatenate([pivots, new])
    return factor[: len(pivots)], pivots, rest


def _independent(covariance: Array, max_pivots: int, min_remainder: float) -> Index:
    """Return pivots of a small matrix, greedily while the remainder is at least `min_remainder`."""
    rest = np.diag(covariance).copy()
    rows = np.empty((max_pivots, len(covariance)))
    chosen: list[int] = []
    while len(chosen) < max_pivots:
        pivot = int(np.argmax(rest))
        if chosen and rest[pivot] < min_remainder:
            break
        row = (covariance[pivot] - rows[: len(chosen), pivot] @ rows[: len(chosen)]) / sqrt(
            max(rest[pivot], 1e-300)
        )
        rows[len(chosen)] = row
        rest -= row**2
        chosen.append(pivot)
    return np.array(chosen, dtype=np.intp)
