"""Upper bounds on untruncated sums on a regular grid, for kernels that are less smooth.

| symbol | here | shape |
|---|---|---|
| S_x = sum over targets j of w_j C_jx^2 | bounded by `LatticeBounds.bounds` and `refine` | (m,) |
| a, b, every s-th point of the grid along each axis, and some beyond its ends | `Lattice`, a level | (q,) |
| omega_xb, weights of interpolation by polynomials of degree 5 | `Lattice.weights`, axis by axis | (n_k, 6) |
| W_a = sum over j of w_j omega_ja | `_weights` of the nodes | (q,) |
| Z_b = sum over a of W_a C_ab^2 | `sums` | (q,) |

The squares of the entries of a covariance matrix are themselves one, so that C_jx^2 is an inner
product of two vectors, phi_j and phi_x. S_x differs from the interpolated sum of omega_xb Z_b by

  <sum_j w_j phi_j - sum_a W_a phi_a, phi_x>  +  <sum_a W_a phi_a, phi_x - sum_b omega_xb phi_b>,

each of which the inequality of Cauchy and Schwarz bounds. The norms of the two differences are at
most what they are under the prior covariance, whose squared entries exceed those of the posterior
one as a matrix does (Schur's product theorem). Under the prior they are known exactly: the first by
one FFT, the second from the offset of x between its nodes, so that no bound on derivatives is
needed. The first is small, as errors at different targets hardly add up. The second is made smaller
where it matters: the candidates that may still be best are interpolated from nodes at half the
distance, and so on, while W stays. Weights can be so much higher at a few targets than around them,
next to a measurement for instance, that no interpolation is good there: what these exceed the
others by is summed directly.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import ceil, prod, sqrt

import numpy as np

from truvar._numba.threads import tiles
from truvar._typing import Array, Index, Mask
from truvar.domain.domain import Domain
from truvar.domain.layout import GridLayout
from truvar.engines._matrix import Matrix
from truvar.engines._nodes import NodePosterior, gather_on_grid, spread_on_grid
from truvar.engines._products import (
    LEBESGUE_CONSTANT,
    TAPS,
    Convolution,
    has_grid_product,
    lagrange_weights,
    within_task_form,
)
from truvar.engines._rounding import KERNEL_ROUNDING, UNIT, gamma
from truvar.models.kernels import Stationary
from truvar.models.posterior import Posterior

# RBF and Matern 5/2: with rougher kernels the error falls too slowly with the node spacing
SMOOTH_FORMS = (0, 5)
MAX_NODES = 6000  # a matrix of 288 MB
NODES_BEFORE = TAPS // 2 - 1  # nodes used before the one at or below a point
CHUNK = 512  # nodes whose covariances are formed at a time
MAX_ENTRIES = 1 << 26  # covariances that one refinement may form
MAX_HEAVY = 2048  # targets with high weights that are summed directly
MIN_PEAK_SHARE = 0.01  # share of the sum of squared weights that their peaks must have for that
ROUNDING = 1e-12  # relative error of interpolation weights and their sums: hundreds of roundings


def lattice_bounds(posterior: Posterior, domain: Domain) -> LatticeBounds | None:
    """Return bounds by nodes on a lattice; None without a regular grid and a stationary kernel."""
    form = within_task_form(posterior)
    if (
        form is None
        or form.smoothness not in SMOOTH_FORMS
        or len(posterior.sites) != posterior.n_targets
    ):
        return None
    layout = domain.layout
    if layout is None or not has_grid_product(posterior, domain):
        return None
    steps = lattice_steps(layout.axes, np.broadcast_to(form.lengthscales, len(layout.axes)))
    return None if steps is None else LatticeBounds(posterior, layout, form, steps)


class Lattice:
    """Nodes at every s-th point of a regular grid, with interpolation from them.

    Args:
        axes: Coordinates along every axis of the grid, evenly spaced.
        steps: s along every axis.

    Attributes:
        shape: Number of nodes along every axis.
        corner: First of the nodes that a coordinate is interpolated from, along every axis.
        weights: Their weights, along every axis. (n_k, 6), or (n_k, 1) where every coordinate is a
            node
    """

    def __init__(self, axes: Sequence[Array], steps: Sequence[int]) -> None:
        self.steps = tuple(steps)
        self.spacing = [(axis[-1] - axis[0]) / max(len(axis) - 1, 1) for axis in axes]
        self._first = [axis[0] for axis in axes]
        self.corner: list[Index] = []
        self.weights: list[Array] = []
        for axis, step in zip(axes, steps, strict=True):
            index = np.arange(len(axis))
            # Of the nodes, of which NODES_BEFORE lie below the first coordinate.
            self.corner.append(index // step)
            inside = (index % step) / step
            self.weights.append(np.ones((len(axis), 1)) if step == 1 else lagrange_weights(inside))
        self.shape = tuple(
            int(corner[-1]) + weights.shape[1]
            for corner, weights in zip(self.corner, self.weights, strict=True)
        )

    @property
    def taps(self) -> list[int]:
        """Number of nodes that a coordinate is interpolated from, along every axis."""
        return [weights.shape[1] for weights in self.weights]

    def positions(self) -> list[Index]:
        """Return where the nodes lie along every axis, in grid steps from its first point.

        Some positions are negative.
        """
        before = [NODES_BEFORE if taps > 1 else 0 for taps in self.taps]
        return [
            step * (np.arange(n) - b)
            for n, step, b in zip(self.shape, self.steps, before, strict=True)
        ]

    def points(self, nodes: Index) -> Array:
        """Return the coordinates of some nodes: (q, d)."""
        at = np.unravel_index(nodes, self.shape)
        columns = [
            first + spacing * where[index]
            for first, spacing, where, index in zip(
                self._first, self.spacing, self.positions(), at, strict=True
            )
        ]
        return np.stack(columns, axis=1)

    def matrices(self) -> list[Array]:
        """Return the weights of all nodes along every axis: (n_k, q_k) each."""
        found = []
        for corner, weights, count in zip(self.corner, self.weights, self.shape, strict=True):
            matrix = np.zeros((len(corner), count))
            for tap in range(weights.shape[1]):
                matrix[np.arange(len(corner)), corner + tap] = weights[:, tap]
            found.append(matrix)
        return found

    def used_by(self, at: Sequence[Index]) -> Mask:
        """Return the nodes that points of the grid, an index per axis, are interpolated from."""
        used = np.zeros(self.shape, bool)
        for taps in product(*(range(count) for count in self.taps)):
            used[
                tuple(corner[i] + tap for corner, i, tap in zip(self.corner, at, taps, strict=True))
            ] = True
        return used.ravel()

    def gather(self, values: Array, at: Sequence[Index]) -> Array:
        """Return values (q,) interpolated at points of the grid, given as an index per axis."""
        grid = values.reshape(self.shape)
        out = np.zeros(len(at[0]))
        for taps in product(*(range(count) for count in self.taps)):
            weight = np.prod(
                [weights[i, tap] for weights, i, tap in zip(self.weights, at, taps, strict=True)],
                axis=0,
            )
            out += (
                weight
                * grid[
                    tuple(
                        corner[i] + tap
                        for corner, i, tap in zip(self.corner, at, taps, strict=True)
                    )
                ]
            )
        return out

    def errors(self, form: Stationary, slack: float) -> Array:
        """Return |phi_x - sum_b omega_xb phi_b| over the prior variance, by the offset of x.

        Args:
            form: The kernel.
            slack: Error of a squared kernel value, over the prior variance squared.

        Returns:
            Errors, one for every offset between nodes along every axis: shape `steps`.
        """
        offsets = [np.arange(taps) - (NODES_BEFORE if taps > 1 else 0) for taps in self.taps]
        nodes = (
            np.stack([m.ravel() for m in np.meshgrid(*offsets, indexing="ij")], axis=1)
            * self.steps
            * self.spacing
        )
        inside = np.stack(
            [m.ravel() for m in np.meshgrid(*map(np.arange, self.steps), indexing="ij")], axis=1
        )
        omega = np.ones((len(inside), 1))
        for k, (step, taps) in enumerate(zip(self.steps, self.taps, strict=True)):
            along = (
                np.ones((len(inside), 1)) if taps == 1 else lagrange_weights(inside[:, k] / step)
            )
            omega = (omega[:, :, None] * along[:, None, :]).reshape(len(inside), -1)
        unit = Stationary(form.smoothness, 1.0, form.lengthscales)
        among = unit(nodes, nodes) ** 2
        across = unit(inside * self.spacing, nodes) ** 2
        squared = 1 - 2 * (omega * across).sum(axis=1) + ((omega @ among) * omega).sum(axis=1)
        magnitude = (1 + LEBESGUE_CONSTANT ** len(self.steps)) ** 2
        return np.asarray(np.sqrt(np.maximum(squared, 0.0) + magnitude * slack)).reshape(self.steps)


class LatticeBounds:
    """Bounds on S at every site, given observations and pending actions; follows a posterior.

    Args:
        posterior: Posterior to follow; its kernel is stationary.
        layout: How the sites lie on a regular grid.
        form: The kernel.
        steps: Steps of the grid between two nodes, along every axis.

    Attributes:
        count: Number of nodes that stand for the targets.
    """

    def __init__(
        self, posterior: Posterior, layout: GridLayout, form: Stationary, steps: Sequence[int]
    ) -> None:
        axes = layout.axes
        self._layout = layout
        self._form = form
        self._posterior = posterior
        lattice = Lattice(axes, steps)
        self.count = prod(lattice.shape)
        self._levels = [lattice]
        self._matrices = lattice.matrices()
        self._nodes = NodePosterior(posterior, lattice.points(np.arange(self.count)))
        self._matrix = Matrix(self._nodes, single=False)  # type: ignore[arg-type]  # it has what a matrix follows
        self._shape = layout.shape
        # of coordinates from an evenly spaced axis, in length-scales: no kernel has a larger slope
        # than 1
        drift = 0.0
        scales = np.broadcast_to(form.lengthscales, len(axes))
        for axis, spacing, scale in zip(axes, lattice.spacing, scales, strict=True):
            drift += float(np.abs(axis - axis[0] - spacing * np.arange(len(axis))).max()) / float(
                scale
            )
        self._slack = 2 * (KERNEL_ROUNDING + 4 * drift)
        self._errors = [lattice.errors(form, self._slack)]
        positions = lattice.positions()
        # Of the grid within the one that has all nodes.
        self._offset = [-int(where[0]) for where in positions]
        extended = [
            max(int(where[-1]) + 1, n) + before
            for where, n, before in zip(positions, self._shape, self._offset, strict=True)
        ]
        self._at_nodes = np.ix_(
            *(where + before for where, before in zip(positions, self._offset, strict=True))
        )
        steps_apart = [
            np.arange(n) * spacing for n, spacing in zip(extended, lattice.spacing, strict=True)
        ]
        points = np.stack([m.ravel() for m in np.meshgrid(*steps_apart, indexing="ij")], axis=1)
        self._squared_kernel = Convolution(
            form(np.zeros((1, len(extended))), points).reshape(extended) ** 2
        )
        # The nodes stand for the targets, then the targets with the highest weights, if these stand
        # out.
        self._weights = np.zeros(0)
        self._heavy = np.zeros(0, np.intp)
        self._norm = 0.0
        self._share = 0.0
        self._noise = 0.0

    def bounds(self, w: Array, variance: Array) -> tuple[Array, Array]:
        """Return an estimate of S at every site and a bound on its error: (m,) and (m,).

        Args:
            w: Weight of every target, at least 0. (n,)
            variance: sigma^2 at every site. (m,)
        """
        self._nodes.follow()
        self._heavy, smooth = _without_peaks(w)
        on_nodes = spread_on_grid(self._layout.spread(smooth), self._matrices)
        self._weights = np.concatenate([on_nodes, (w - smooth)[self._heavy]])
        everyone = np.arange(self.count)
        sums = self._matrix.sums(
            everyone, np.full(self.count, np.inf), np.ones(self.count), on_nodes
        )
        at_heavy = np.zeros(0)
        if len(self._heavy):
            squares = self._covariance(self._heavy_points, self._heavy_columns) ** 2
            sums += self._weights[self.count :] @ squares[:, : self.count]
            at_heavy = squares @ self._weights
        self._set_norms(smooth, np.concatenate([sums, at_heavy]))
        estimate = self._layout.gather(gather_on_grid(sums, self._matrices))
        error = self._share * variance + self._norm * self._expand(self._errors[0]) + self._noise
        return estimate, error

    def refine(self, sites: Index, level: int, variance: Array) -> tuple[Array, Array] | None:
        """Return an estimate of S at some sites and a bound on its error, from a finer lattice.

        The weights of the targets are those of the last call of `bounds`.

        Args:
            sites: The sites. (c,)
            level: How often the distance of the nodes is halved.
            variance: sigma^2 at every site. (m,)

        Returns:
            Estimates (c,) and errors (c,); None if the nodes are too many or do not get closer any
            more.
        """
        while len(self._levels) <= level:
            steps = self._levels[-1].steps
            if max(steps) == 1:
                return None
            self._levels.append(Lattice(self._layout.axes, [ceil(step / 2) for step in steps]))
            self._errors.append(self._levels[-1].errors(self._form, self._slack))
        lattice = self._levels[level]
        at = self._layout.indices(sites)
        used = np.flatnonzero(lattice.used_by(at))
        if len(used) * len(self._weights) > MAX_ENTRIES:
            return None
        sums = np.zeros(prod(lattice.shape))
        sums[used] = self._sums_at(lattice.points(used))
        offsets = tuple(index % step for index, step in zip(at, lattice.steps, strict=True))
        error = (
            self._share * variance[sites] + self._norm * self._errors[level][offsets] + self._noise
        )
        return lattice.gather(sums, at), error

    def _sums_at(self, points: Array) -> Array:
        """Return the weighted sum of C_ax^2 over stand-ins a of targets, at points x: (c,)."""
        around = NodePosterior(self._posterior, points)
        around.follow()
        out = np.empty(len(points))
        for part in tiles(len(points), CHUNK):
            block = self._covariance(points[part], around.factor.v[:, part])
            out[part] = np.square(block, out=block) @ self._weights
        return out

    def _covariance(self, points: Array, columns: Array) -> Array:
        """Return C_xa of points x, given their columns, and all a that stand for targets."""
        sites = np.concatenate([self._nodes.sites, self._heavy_points])
        return np.asarray(
            self._form(points, sites)
            - columns.T @ np.hstack([self._nodes.factor.v, self._heavy_columns])
        )

    @property
    def _heavy_points(self) -> Array:
        return self._posterior.sites[self._heavy]

    @property
    def _heavy_columns(self) -> Array:
        return self._posterior.factor.at(self._heavy)

    def _set_norms(self, smooth: Array, sums: Array) -> None:
        """Compute the norms that bound the errors, and what rounding can do.

        Args:
            smooth: Weights of the targets without peaks. (n,)
            sums: Weighted sums of C_ab^2 over all a that stand for the targets, for each of these
                as b.
        """
        difference = np.zeros(self._squared_kernel.shape)
        inner = tuple(
            slice(before, before + n) for before, n in zip(self._offset, self._shape, strict=True)
        )
        difference[inner] = self._layout.spread(smooth).reshape(self._shape)
        difference[self._at_nodes] -= self._weights[: self.count].reshape(self._levels[0].shape)
        total = float(np.abs(difference).sum())
        squared = (
            self._squared_kernel.quadratic_form(difference)
            + self._slack * (self._form.variance * total) ** 2
        )
        self._share = sqrt(max(squared, 0.0)) * (1 + 1e-9)
        variance = np.concatenate(
            [self._nodes.variance, self._posterior.pending_variance[self._heavy]]
        )
        sd = np.sqrt(variance)
        magnitude = np.abs(self._weights)
        entry = 4 * (self._nodes.n_rows + 16) * UNIT * self._form.variance
        size = float(magnitude @ variance) * float(variance.max())
        off = gamma(len(sums) + 64) * size + float(magnitude @ (2 * sd * sd.max() + entry)) * entry
        lebesgue = LEBESGUE_CONSTANT ** len(self._shape)
        self._noise = lebesgue * (off + ROUNDING * lebesgue * size)
        quadratic = max(float(self._weights @ sums), 0.0) + float(magnitude.sum()) * off
        self._norm = self._form.variance * sqrt(quadratic) * (1 + 1e-9)

    def _expand(self, by_offset: Array) -> Array:
        """Return values by offset between the nodes at every site: (m,)."""
        steps = self._levels[0].steps
        at_cells = by_offset[
            np.ix_(*(np.arange(n) % step for n, step in zip(self._shape, steps, strict=True)))
        ]
        return self._layout.gather(np.ascontiguousarray(at_cells).ravel())


def _without_peaks(w: Array) -> tuple[Index, Array]:
    """Return the targets whose weights stand out, and the weights without their peaks: (n,)."""
    if len(w) > MAX_HEAVY:
        heavy = np.argpartition(w, len(w) - MAX_HEAVY)[len(w) - MAX_HEAVY :]
        top = float(w[heavy].min())
        if float(((w[heavy] - top) ** 2).sum()) > MIN_PEAK_SHARE * float(w @ w):
            smooth = w.copy()
            smooth[heavy] = top
            return heavy, smooth
    return np.zeros(0, np.intp), w


def lattice_steps(axes: Sequence[Array], lengthscales: Array) -> list[int] | None:
    """Return steps between nodes, about equal in length-scales; None if nodes would be too many."""
    steps_between = [abs(axis[-1] - axis[0]) / max(len(axis) - 1, 1) for axis in axes]
    spacing = [each / scale for each, scale in zip(steps_between, lengthscales, strict=True)]
    smallest = min((each for each in spacing if each > 0), default=0.0)
    if smallest == 0 or len(axes) > 3:
        return None
    distance = smallest
    while True:
        steps = [max(1, int(distance / each)) if each > 0 else 1 for each in spacing]
        counts = [_node_count(len(axis), step) for axis, step in zip(axes, steps, strict=True)]
        if prod(counts) <= MAX_NODES:
            return steps
        distance *= 1.1
        if distance > 1:  # length-scale: interpolation says nothing
            return None


def _node_count(n: int, step: int) -> int:
    """Return the number of nodes along an axis of n coordinates."""
    return n if step == 1 else (n - 1) // step + TAPS
