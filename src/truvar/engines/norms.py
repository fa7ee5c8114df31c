"""Upper bounds that hold for every site at once: column norms of the posterior covariance, and who is near whom.

| symbol | here | shape |
|---|---|---|
| B, a set of targets | `Norms.chosen` | (n,) |
| q_x = sum over B of C_jx^2 | `Norms.upper`, from above | (m,) |
| C_jx = k(j, x) - v_j . v_x | never formed | |
| u, the factor's new row | `factor.row(i)` | (m,) |

A measurement turns C into C - u u^T, and q_x into q_x - 2 u_x p_x + u_x^2 |u_B|^2 with p_x = sum over B of C_jx u_j =
(K u_B)_x - v_x . (V_B u_B): one product with the prior covariance and two passes over the factor. What those can be off
by is added, so that `upper` never falls below q.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from truvar._typing import Array, Index, Mask
from truvar.engines.products import Product
from truvar.engines.rounding import block_error, gamma
from truvar.models.posterior import Posterior

CELL = 128  # targets per cell
LONGER = 1e-6  # by how much rounding may make |v_x|^2 exceed k(x, x)


class Norms:
    """q over the chosen targets, given what was told and is pending. Follows the posterior it is made for."""

    def __init__(self, posterior: Posterior, product: Product, chosen: Mask) -> None:
        self.posterior, self.product = posterior, product
        self.chosen, self.count = chosen, int(chosen.sum())
        self._serials = posterior.row_ids[: posterior.n_observed]  # of the steps that are in
        self._before: dict[int, Array] = {}  # `upper` before each step that was pending then, to take it back
        self._top = (1 + LONGER) * float(np.asarray(posterior.kernel.diag(posterior.sites)).max())
        self.upper = self._built()

    @property
    def behind(self) -> int:
        """How many steps are still to make."""
        return len(self.posterior.row_ids) - self._kept

    def follow(self) -> None:
        """Takes back the steps that the posterior has dropped, and makes the new ones."""
        posterior, now, kept = self.posterior, self.posterior.row_ids, self._kept
        if kept < len(self._serials):
            self.upper = self._before[self._serials[kept]]
        self._serials = now[:kept]
        for i in range(kept, len(now)):
            if i >= posterior.n_observed:
                self._before[now[i]] = self.upper
            self.upper = self._after(i)
            self._serials.append(now[i])
        pending = set(now[posterior.n_observed :])
        self._before = {serial: upper for serial, upper in self._before.items() if serial in pending}

    @property
    def _kept(self) -> int:
        return common_start(self._serials, self.posterior.row_ids)

    def _after(self, i: int) -> Array:
        """`upper` after step i."""
        factor, n = self.posterior.factor, len(self.chosen)
        u = factor.row(i)
        weights = np.where(self.chosen, u[:n], 0.0)
        norm = float(np.linalg.norm(weights))
        if norm == 0:
            return self.upper
        p, error = self.product.times(weights)
        inner = factor.inner(i, self.chosen)
        p -= factor.combine(inner)
        # |v_x| <= sqrt(k(x, x)), so that the norms of V_B and v_x are known without a look at them
        rounding = gamma(i + 2) * float(np.linalg.norm(inner)) + block_error(n) * norm * sqrt(self._top * self.count)
        error = error + sqrt(self._top) * rounding
        cross, square = 2 * u * p, u * u * (norm * norm)
        slack = 2 * np.abs(u) * error + gamma(12) * (self.upper + np.abs(cross) + square) + gamma(n) * square
        return np.asarray(np.maximum(self.upper - cross + square + slack, 0.0))

    def _built(self) -> Array:
        """From nothing: sum of k^2 - 2 v_x . (V_B K_Bx) + v_x^T (V_B V_B^T) v_x over what was told."""
        t, n, factor = self.posterior.n_observed, len(self.chosen), self.posterior.factor
        q = self.product.squares(self.chosen)
        if t == 0:
            return q
        magnitude, slack = q.copy(), np.zeros_like(q)
        for i in range(t):
            row = factor.row(i)
            across, error = self.product.times(np.where(self.chosen, row[:n], 0.0))
            across *= 2 * row
            q -= across
            magnitude += np.abs(across, out=across)
            slack += np.abs(row) * (2 * error)
        square = factor.quadratic_forms(factor.gram(t, self.chosen))
        slack += gamma(3 * t + 8) * (magnitude + np.abs(square))
        slack += (block_error(self.count) + gamma(2 * t)) * self.count * self._top**2
        return np.maximum(q + square + slack, 0.0)

    @property
    def rebuilding(self) -> float:
        """What building from nothing takes, in floating-point operations."""
        t = self.posterior.n_observed
        return (t + 1) * self.product.cost + 2.0 * t * t * len(self.upper)


def common_start(some: list[int], others: list[int]) -> int:
    """How many elements two lists have in common at their start."""
    return next(
        (i for i, pair in enumerate(zip(some, others, strict=False)) if pair[0] != pair[1]), min(len(some), len(others))
    )


class Cells:
    """The targets in boxes of about the same number each, so that those near a place are found quickly."""

    def __init__(self, points: Array) -> None:
        """`points` (n, d), in length-scales."""
        axes = np.argsort(-np.ptp(points, axis=0), kind="stable")[:3]
        self._members = _tiled(points, np.arange(len(points)), axes)
        self._centres = np.stack([points[cell].mean(axis=0) for cell in self._members])
        self.of = np.empty(len(points), np.intp)  # the cell of every target
        for cell, members in enumerate(self._members):
            self.of[members] = cell
        self.order = np.concatenate(self._members)  # the targets, cell by cell
        self.rank = np.argsort(self.order)  # where each stands in that order

    def near(self, cell: int, count: int, wanted: Mask, sizes: Index) -> Index:
        """The wanted targets in the cells nearest to a cell, about `count` of them; `sizes` says how many each has."""
        distance = ((self._centres - self._centres[cell]) ** 2).sum(axis=1)
        few = min(4 * count // CELL + 1, len(distance) - 1)
        order = np.argpartition(distance, few)[: few + 1]
        order = order[np.argsort(distance[order])]
        enough = int(np.searchsorted(np.cumsum(sizes[order]), count)) + 1
        near = np.concatenate([self._members[i] for i in order[:enough]])
        return np.asarray(near[wanted[near]])

    def sizes(self, wanted: Mask) -> Index:
        """How many of the wanted targets each cell has."""
        return np.bincount(self.of[wanted], minlength=len(self._members))


def _tiled(points: Array, members: Index, axes: Index) -> list[Index]:
    """Slices of equal number along the first axis, each sliced along the next."""
    parts = round((len(members) / CELL) ** (1 / len(axes))) if len(axes) else 1
    if parts <= 1 and len(axes) <= 1:
        return [members]
    order = members[np.argsort(points[members, axes[0]], kind="stable")]
    slices = np.array_split(order, max(parts, 1))
    return slices if len(axes) == 1 else [cell for part in slices for cell in _tiled(points, part, axes[1:])]
