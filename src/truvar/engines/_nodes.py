"""Upper bounds on untruncated sums over smooth functions, from a few thousand Chebyshev nodes.

| symbol | here | shape |
|---|---|---|
| S_x = sum over targets j of w_j C_jx^2 | bounded by `NodeBounds.bounds` | (m,) |
| a, b, Chebyshev nodes; C_ab given the observations | `NodePosterior`, `_matrix` | (q,), (q, q) |
| omega_xb, weights of polynomial interpolation from the nodes | `_interpolation`, axis by axis | (m, q) |
| W_a = sum over j of w_j omega_ja | `node_weights` | (q,) |
| Z_b = sum over a of W_a C_ab^2 | `node_sums` | (q,) |
| delta, interpolation error of the squared kernel, over the prior variance squared | `error` | |
| Lambda, largest sum of the magnitudes of omega | `lebesgue` | |

A squared exponential kernel makes f so smooth that S is a polynomial of moderate degree for all
purposes: S_x is close to the sum over b of omega_xb Z_b. With R_x = f_x^2 - sum_b omega_xb f_b^2,
of which Cov(R_x, f_j^2) = 2 (C_jx^2 - sum_b omega_xb C_jb^2), the variance of R_x given the data is
at most its prior variance, 2 delta^2 k^2: the squares of the entries of a covariance matrix are
themselves one, and a posterior covariance is below the prior one, also squared entry by entry
(Schur's product theorem). The inequality of Cauchy and Schwarz gives

  |S_x - sum_b omega_xb Z_b| <= delta k (sum_j w_j) sigma_x^2 + delta k (sum_a W_a Z_a)^(1/2),

where k is the prior variance.

delta is that of an analytic function with values in a Hilbert space, on the Bernstein ellipse of
parameter rho (Trefethen, Approximation Theory and Approximation Practice, Theorem 8.2): 4 M rho^-n
/ (rho - 1) with n + 1 nodes, where M = exp(2 y^2) for the square of the kernel exp(-r^2 / 2) and y
is half the minor axis in length-scales.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log, pi, prod, sqrt

import numpy as np

from truvar._numba.threads import tiles
from truvar._typing import Array
from truvar.domain.domain import Domain
from truvar.engines._matrix import Matrix, common_prefix_length
from truvar.engines._products import within_task_form
from truvar.engines._rounding import UNIT, gamma
from truvar.models.factor import LocalFactor
from truvar.models.posterior import Posterior

MAX_NODES = 5000  # of all axes together: a matrix of 200 MB
FEW_NODES = 2500  # nodes that a smaller error may take
# of the squared kernel, along each axis; the last if the nodes are many
WANTED_ERRORS = (1e-11, 1e-10, 1e-9, 2e-8)
CHUNK = 1 << 16  # points interpolated at a time
ROUNDING = 1e-12  # relative error of interpolation weights and their sums: hundreds of roundings


def node_bounds(posterior: Posterior, domain: Domain) -> NodeBounds | None:
    """Return bounds by nodes; None if the kernel is too rough or the domain too large for them."""
    form = within_task_form(posterior)
    if form is None or form.smoothness != 0 or len(posterior.sites) != posterior.n_targets:
        return None
    if domain.layout is None and len(domain.columns) > 2:
        return None  # interpolating at scattered points takes a product with all nodes
    scales = np.broadcast_to(form.lengthscales, len(domain.columns))
    extents = np.ptp(domain.points, axis=0) / scales
    for wanted in WANTED_ERRORS:
        counts = [_node_count(float(extent), wanted) for extent in extents]
        if prod(counts) <= (FEW_NODES if wanted < WANTED_ERRORS[-1] else MAX_NODES):
            return NodeBounds(posterior, domain, scales, counts)
    return None


def _node_count(extent: float, wanted: float) -> int:
    """Return the number of nodes along an axis for an error of at most `wanted`.

    `extent` is the length of the axis in length-scales.
    """
    count = 1
    while axis_error(extent, count) > wanted and count <= MAX_NODES:
        count += 1
    return count


def axis_error(extent: float, count: int) -> float:
    """Return a bound on the error of interpolating the squared kernel exp(-r^2) along one axis.

    Args:
        extent: Length of the axis, in length-scales.
        count: Number of Chebyshev nodes.
    """
    if extent == 0:
        return 0.0
    rho = 1.0 + np.geomspace(1e-3, 1e3, 400)
    minor = extent * (rho - 1 / rho) / 4
    exponent = 2 * minor**2 - (count - 1) * np.log(rho) - np.log(rho - 1)
    return 4.0 * float(np.exp(min(float(exponent.min()), 300.0))) * (1 + 1e-9)


class NodeBounds:
    """Bounds on S at every site, given observations and pending actions; follows a posterior.

    Args:
        posterior: Posterior to follow; its kernel is squared exponential.
        domain: Domain of the study, whose points are the sites.
        scales: Length-scale of each axis. (d,)
        counts: Number of nodes along each axis.

    Attributes:
        count: Number of nodes.
    """

    def __init__(
        self, posterior: Posterior, domain: Domain, scales: Array, counts: Sequence[int]
    ) -> None:
        low = domain.points.min(axis=0)
        high = domain.points.max(axis=0)
        nodes = [_chebyshev(low[k], high[k], count) for k, count in enumerate(counts)]
        grid = np.stack([axis.ravel() for axis in np.meshgrid(*nodes, indexing="ij")], axis=1)
        self.count = len(grid)
        self._shape = tuple(counts)
        self._variance = float(posterior.kernel.diag(posterior.sites[:1])[0])
        self._layout = domain.layout
        coordinates = tuple(domain.points.T) if self._layout is None else self._layout.axes
        self._interpolation = [
            _weights(x, axis) for x, axis in zip(coordinates, nodes, strict=True)
        ]
        self._lebesgue = prod(_lebesgue(count) for count in counts)
        extents = (high - low) / scales
        self._error = 0.0
        growth = 1.0  # of the errors of one axis by interpolating along those before it
        for extent, count in zip(extents, counts, strict=True):
            self._error += growth * axis_error(float(extent), count)
            growth *= _lebesgue(count)
        self._error += ROUNDING * self._lebesgue**2
        self._nodes = NodePosterior(posterior, grid)
        self._matrix = Matrix(self._nodes, single=False)  # type: ignore[arg-type]  # it has what a matrix follows

    def bounds(self, w: Array, variance: Array) -> tuple[Array, Array]:
        """Return an estimate of S at every site and a bound on its error: (m,) and (m,).

        Args:
            w: Weight of every target, at least 0. (n,)
            variance: sigma^2 at every site. (m,)
        """
        self._nodes.follow()
        node_weights = self._spread(w)
        everyone = np.arange(self.count)
        unlimited = np.full(self.count, np.inf)
        sums = self._matrix.sums(everyone, unlimited, np.ones(self.count), node_weights)
        estimate = self._gather(sums)
        quadratic = max(float(node_weights @ sums), 0.0)
        sd = np.sqrt(self._nodes.variance)
        magnitude = np.abs(node_weights)
        # Rounding of the sums: of products and sums, and of the entries, each changed once per
        # step.
        steps = self._nodes.n_rows + 16
        entry = 4 * steps * UNIT * self._variance
        size = float(magnitude @ sd**2) * float(sd.max()) ** 2
        off = gamma(self.count + 64) * size
        off += float(magnitude @ (2 * sd * sd.max() + entry)) * entry
        noise = self._lebesgue * (off + ROUNDING * self._lebesgue * size)
        quadratic += self._lebesgue * float(magnitude.sum()) * off
        share = self._error * self._variance
        return estimate, share * (float(w.sum()) * variance + sqrt(quadratic)) * (1 + 1e-9) + noise

    def _spread(self, w: Array) -> Array:
        """Return sum_j w_j omega_ja at every node: (q,)."""
        if self._layout is not None:
            return spread_on_grid(self._layout.spread(w), self._interpolation)
        total = np.zeros(self._shape)
        for tile in tiles(len(w), CHUNK):
            parts = [matrix[tile] for matrix in self._interpolation]
            first = parts[0] * w[tile, None]
            total += first.sum(axis=0) if len(parts) == 1 else first.T @ parts[1]
        return total.ravel()

    def _gather(self, values: Array) -> Array:
        """Return sum_b omega_xb values_b at every site: (m,)."""
        if self._layout is not None:
            return self._layout.gather(gather_on_grid(values, self._interpolation))
        at_nodes = values.reshape(self._shape)
        out = np.empty(len(self._interpolation[0]))
        for tile in tiles(len(out), CHUNK):
            parts = [matrix[tile] for matrix in self._interpolation]
            first = parts[0] @ at_nodes
            out[tile] = first if len(parts) == 1 else (first * parts[1]).sum(axis=1)
        return out


def spread_on_grid(w: Array, matrices: Sequence[Array]) -> Array:
    """Return sum_j w_j omega_ja at every node a: (q,).

    Args:
        w: A number for every point of a grid. (n,)
        matrices: Weights of the nodes for every coordinate, along every axis. (n_k, q_k) each
    """
    values = w.reshape([len(matrix) for matrix in matrices])
    for matrix in matrices:
        values = np.tensordot(values, matrix, axes=(0, 0))  # the axes come round once
    return np.ascontiguousarray(values).ravel()


def gather_on_grid(values: Array, matrices: Sequence[Array]) -> Array:
    """Return sum_b omega_xb values_b at every point x of a grid: (m,).

    Args:
        values: A number for every node. (q,)
        matrices: Weights of the nodes for every coordinate, along every axis. (n_k, q_k) each
    """
    at_nodes = values.reshape([matrix.shape[1] for matrix in matrices])
    for matrix in matrices:
        at_nodes = np.tensordot(at_nodes, matrix, axes=(0, 1))
    return np.ascontiguousarray(at_nodes).ravel()


class NodePosterior:
    """The posterior at the nodes, as far as `Matrix` needs it; follows that of the study."""

    def __init__(self, posterior: Posterior, nodes: Array) -> None:
        self._posterior = posterior
        self.kernel = posterior.kernel
        self.k = posterior.k
        self.sites = nodes
        self.n_targets = len(nodes)
        self.factor = LocalFactor(posterior.kernel, nodes)
        self.row_ids: list[int] = []
        self._prior: Array = np.asarray(posterior.kernel.diag(nodes), dtype=float)
        self.variance = self._prior.copy()

    @property
    def n_rows(self) -> int:
        """Number of rows of the factor."""
        return len(self.row_ids)

    @property
    def n_observed(self) -> int:
        """Number of rows whose values are known."""
        return self._posterior.n_observed

    def follow(self) -> None:
        """Drop the rows that the posterior of the study has dropped, and append the new ones."""
        now = self._posterior.row_ids
        kept = common_prefix_length(self.row_ids, now)
        if kept < len(self.row_ids):
            self.factor.truncate(kept)
            self.variance = np.maximum(self._prior - (self.factor.v**2).sum(axis=0), 0.0)
        for point, column, root in self._posterior.rows_from(kept):
            row = self.factor.append(point, column, root)
            self.variance = np.maximum(self.variance - row**2, 0.0)
        self.row_ids = list(now)


def _lebesgue(count: int) -> float:
    """Return a bound on the sum of the magnitudes of the weights of `count` Chebyshev points."""
    return 1 + 2 / pi * log(count)


def _chebyshev(low: float, high: float, count: int) -> Array:
    """Return Chebyshev points of the second kind between two ends, ends included: (count,)."""
    if count == 1:
        return np.array([low])
    return np.asarray(low + (high - low) * (1 - np.cos(pi * np.arange(count) / (count - 1))) / 2)


def _weights(x: Array, nodes: Array) -> Array:
    """Return barycentric interpolation weights at x (m,) from Chebyshev points: (m, count)."""
    if len(nodes) == 1:
        return np.ones((len(x), 1))
    barycentric = (-1.0) ** np.arange(len(nodes))
    barycentric[[0, -1]] /= 2
    gaps = x[:, None] - nodes
    hit = gaps == 0
    gaps[hit] = 1.0
    terms = barycentric / gaps
    out = terms / terms.sum(axis=1)[:, None]
    at_node = hit.any(axis=1)
    out[at_node] = hit[at_node]
    return np.asarray(out)
