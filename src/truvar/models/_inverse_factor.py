"""The inverse L^-1 of a Cholesky factor that grows by rows, as leave-one-out predictions need it.

| symbol | here | shape |
|---|---|---|
| L^-1 | `InverseFactor` | (t, t) |
| Q = (L L^T)^-1 = L^-T L^-1, its diagonal | `precisions` | (t,) |
| L^-T b for right-hand sides b | `substituted` | (n_sides, t) |

A row that is appended to L leaves the rows of L^-1 above it as they are, and adds one term to every
entry of the other two. So one more row costs O(t^2). Rows are computed in blocks of `BLOCK`, the
last and incomplete one every time again: the result depends on L alone, to the last bit, and not on
how often it was asked for while L grew.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dtrtri

from truvar._typing import Array

BLOCK = 32  # rows


class InverseFactor:
    """L^-1 by rows, in complete blocks, with the sums over its rows.

    Args:
        n_sides: Number of right-hand sides.

    Attributes:
        n_rows: Number of rows that are kept.
    """

    def __init__(self, n_sides: int) -> None:
        self.n_rows = 0
        self._rows = np.zeros((0, 0))
        self._precisions = np.zeros(0)
        self._substituted = np.zeros((n_sides, 0))

    def update(self, lower: Array, sides: Array) -> tuple[Array, Array]:
        """Return the diagonal of Q (t,) and L^-T b for each right-hand side b (n_sides, t).

        Args:
            lower: The rows of L behind the `n_rows` that are kept. (q, t)
            sides: Their entries of each right-hand side. (n_sides, q)
        """
        total = lower.shape[1]
        if total > len(self._rows):
            self._grow(max(2 * len(self._rows), total))
        first = self.n_rows
        while total - self.n_rows >= BLOCK:
            kept = self.n_rows
            end = kept + BLOCK
            new = slice(kept - first, end - first)
            rows = self._new_rows(lower[new, :end])
            self._rows[kept:end, :end] = rows
            self._precisions[:end] += (rows * rows).sum(axis=0)
            self._substituted[:, :end] += sides[:, new] @ rows
            self.n_rows = end
        precisions = self._precisions[:total].copy()
        substituted = self._substituted[:, :total].copy()
        if self.n_rows < total:
            rows = self._new_rows(lower[self.n_rows - first :])
            precisions += (rows * rows).sum(axis=0)
            substituted += sides[:, self.n_rows - first :] @ rows
        return precisions, substituted

    def _new_rows(self, lower: Array) -> Array:
        """Return the rows of L^-1 for the rows of L behind those that are kept: (q, n_rows + q)."""
        done = self.n_rows
        corner = np.tril(dtrtri(lower[:, done:], lower=1)[0])
        return np.hstack([-corner @ (lower[:, :done] @ self._rows[:done, :done]), corner])

    def _grow(self, size: int) -> None:
        t = self.n_rows
        rows = np.zeros((size, size))
        rows[:t, :t] = self._rows[:t, :t]
        precisions = np.zeros(size)
        precisions[:t] = self._precisions[:t]
        substituted = np.zeros((len(self._substituted), size))
        substituted[:, :t] = self._substituted[:, :t]
        self._rows = rows
        self._precisions = precisions
        self._substituted = substituted
