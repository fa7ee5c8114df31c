"""Upper bounds that hold for every site: column norms of the covariance, and cells of targets.

| symbol | here | shape |
|---|---|---|
| b_j, weight of target j; 1 on a set of targets and 0 elsewhere where targets count alike | `ColumnNorms.base` | (n,) |
| q_x = sum over j of b_j C_jx^2 | `ColumnNorms.upper`, an upper bound | (m,) |
| C_jx = k(j, x) - v_j . v_x | never formed | |
| u, the row that a measurement adds to the factor | `factor.row(i)` | (m,) |

A measurement turns C into C - u u^T, and q_x into q_x - 2 u_x p_x + u_x^2 sum_j b_j u_j^2 with p_x
the sum of b_j u_j C_jx, which is (K b u)_x - v_x . (V b u): one product with the prior covariance
and two passes over the factor. Bounds on their errors are added, so that `upper` never falls below
q.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from truvar._typing import Array, Index, Mask
from truvar.engines._matrix import common_prefix_length
from truvar.engines._products import PriorProduct
from truvar.engines._rounding import SUM_ROUNDING, block_error, gamma
from truvar.models.posterior import Posterior

CELL_SIZE = 128  # targets per cell
LENGTH_ERROR = 1e-6  # relative: by how much rounding may make |v_x|^2 exceed k(x, x)


class ColumnNorms:
    """q over weighted targets, given the observations and the pending actions; follows a posterior.

    Args:
        posterior: Posterior to follow.
        product: Products with its prior covariance.
        base: b, at least 0; a mask counts as 1 and 0. (n,)

    Attributes:
        count: Number of targets with b > 0.
        upper: Upper bound on q at every site. (m,)
    """

    def __init__(self, posterior: Posterior, product: PriorProduct, base: Array | Mask) -> None:
        self.posterior = posterior
        self.product = product
        self.base = np.asarray(base, dtype=float)
        self.count = int(np.count_nonzero(self.base))
        self._total = float(self.base.sum()) * (1 + SUM_ROUNDING)
        self._row_ids = posterior.row_ids[: posterior.n_observed]  # of the steps that are included
        self._before: dict[int, Array] = {}  # `upper` before each step that was pending, to undo it
        self._max_variance = (1 + LENGTH_ERROR) * float(
            np.asarray(posterior.kernel.diag(posterior.sites)).max()
        )
        self.upper = self._build()

    @property
    def n_missing(self) -> int:
        """Number of steps that `update` would make."""
        return len(self.posterior.row_ids) - self._n_common

    def update(self) -> None:
        """Undo the steps that the posterior has dropped, and make the new ones."""
        posterior = self.posterior
        now = posterior.row_ids
        kept = self._n_common
        if kept < len(self._row_ids):
            self.upper = self._before[self._row_ids[kept]]
        self._row_ids = now[:kept]
        for i in range(kept, len(now)):
            if i >= posterior.n_observed:
                self._before[now[i]] = self.upper
            self.upper = self._after_step(i)
            self._row_ids.append(now[i])
        pending = set(now[posterior.n_observed :])
        self._before = {
            row_id: upper for row_id, upper in self._before.items() if row_id in pending
        }

    @property
    def _n_common(self) -> int:
        """Number of steps that are included and that the posterior still has."""
        return common_prefix_length(self._row_ids, self.posterior.row_ids)

    def _after_step(self, i: int) -> Array:
        """Return `upper` after step i."""
        factor = self.posterior.factor
        n = len(self.base)
        u = factor.row(i)
        weights = self.base * u[:n]
        weighted_square = float(weights @ u[:n])  # sum of b u^2
        if weighted_square == 0:
            return self.upper
        p, error = self.product.multiply(weights)
        inner = factor.inner(i, self.base)
        p -= factor.combine(inner)
        # |v_x| <= k(x, x)^(1/2), so that the norms of V and v_x need not be computed.
        rounding = gamma(i + 2) * float(np.linalg.norm(inner))
        rounding += (
            block_error(n)
            * float(np.abs(weights).sum())
            * (1 + SUM_ROUNDING)
            * sqrt(self._max_variance)
        )
        error = error + sqrt(self._max_variance) * rounding
        cross = 2 * u * p
        square = u * u * weighted_square
        slack = (
            2 * np.abs(u) * error
            + gamma(12) * (self.upper + np.abs(cross) + square)
            + gamma(n + 2) * square
        )
        return np.asarray(np.maximum(self.upper - cross + square + slack, 0.0))

    def _build(self) -> Array:
        """Return sum b_j k_jx^2 - 2 v_x . (V b K_x) + v_x^T (V b V^T) v_x, observed rows: (m,)."""
        factor = self.posterior.factor
        t = self.posterior.n_observed
        n = len(self.base)
        q = self.product.squared_sums(self.base)
        if t == 0:
            return q
        magnitude = q.copy()
        slack = np.zeros_like(q)
        for i in range(t):
            row = factor.row(i)
            across, error = self.product.multiply(self.base * row[:n])
            across *= 2 * row
            q -= across
            magnitude += np.abs(across, out=across)
            slack += np.abs(row) * (2 * error)
        square = factor.quadratic_forms(factor.gram(t, self.base))
        slack += gamma(3 * t + 10) * (magnitude + np.abs(square))
        slack += (block_error(self.count) + gamma(2 * t + 2)) * self._total * self._max_variance**2
        return np.maximum(q + square + slack, 0.0)

    @property
    def build_cost(self) -> float:
        """Floating-point operations that it takes to compute new norms from the observations."""
        t = self.posterior.n_observed
        return (t + 1) * self.product.cost + 2.0 * t * t * len(self.upper)


class Cells:
    """The targets divided into boxes of about equal number, to find nearby ones quickly.

    Args:
        points: Coordinates of the targets, in length-scales. (n, d)

    Attributes:
        of: Cell of each target. (n,)
        order: Targets, cell by cell. (n,)
        rank: Position of each target in that order. (n,)
    """

    def __init__(self, points: Array) -> None:
        axes = np.argsort(-np.ptp(points, axis=0), kind="stable")[:3]
        self._members = _split(points, np.arange(len(points)), axes)
        self._centres = np.stack([points[cell].mean(axis=0) for cell in self._members])
        self.of = np.empty(len(points), np.intp)
        for cell, members in enumerate(self._members):
            self.of[members] = cell
        self.order = np.concatenate(self._members)
        self.rank = np.argsort(self.order)

    def near(self, cell: int, count: int, wanted: Mask, sizes: Index) -> Index:
        """Return the wanted targets in the cells nearest to a cell.

        Args:
            cell: The cell.
            count: About how many targets to return.
            wanted: Which targets count. (n,)
            sizes: How many of the wanted targets each cell has.
        """
        distance = ((self._centres - self._centres[cell]) ** 2).sum(axis=1)
        few = min(4 * count // CELL_SIZE + 1, len(distance) - 1)
        order = np.argpartition(distance, few)[: few + 1]
        order = order[np.argsort(distance[order])]
        enough = int(np.searchsorted(np.cumsum(sizes[order]), count)) + 1
        near = np.concatenate([self._members[i] for i in order[:enough]])
        return np.asarray(near[wanted[near]])

    def sizes(self, wanted: Mask) -> Index:
        """Return how many of the wanted targets each cell has."""
        return np.bincount(self.of[wanted], minlength=len(self._members))


def _split(points: Array, members: Index, axes: Index) -> list[Index]:
    """Return the members in equal slices along the first axis, each split along the next ones."""
    parts = round((len(members) / CELL_SIZE) ** (1 / len(axes))) if len(axes) else 1
    if parts <= 1 and len(axes) <= 1:
        return [members]
    order = members[np.argsort(points[members, axes[0]], kind="stable")]
    slices = np.array_split(order, max(parts, 1))
    if len(axes) == 1:
        return slices
    return [cell for part in slices for cell in _split(points, part, axes[1:])]
