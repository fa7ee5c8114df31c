"""The inverse L^-1 of a Cholesky factor that grows by rows, as leave-one-out predictions need it.

| symbol | here | shape |
|---|---|---|
| L^-1 | `InverseFactor` | (t, t) |
| Q = (L L^T)^-1 = L^-T L^-1, its diagonal | `precisions` | (t,) |
| L^-T b for right-hand sides b | `back_substituted` | (t,) |

A row that is appended to L leaves the rows of L^-1 above it as they are, and adds one term to every entry of the other
two. So one more row costs O(t^2), the product of that row with L^-1.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dtrtri

from truvar._typing import Array


class InverseFactor:
    """L^-1 by rows, with the sums over its rows.

    Args:
        n_sides: Number of right-hand sides.
    """

    def __init__(self, n_sides: int) -> None:
        self._n_rows = 0
        self._rows = np.zeros((0, 0))
        self._precisions = np.zeros(0)
        self._substituted = np.zeros((n_sides, 0))

    def __len__(self) -> int:
        return self._n_rows

    @property
    def precisions(self) -> Array:
        """Diagonal of Q: (t,)."""
        return self._precisions[: self._n_rows]

    def back_substituted(self, side: int) -> Array:
        """Return L^-T b for a right-hand side b: (t,)."""
        return self._substituted[side, : self._n_rows]

    def extend(self, lower: Array, sides: Array) -> None:
        """Append rows.

        Args:
            lower: The new rows of L, up to the diagonal of the last one. (q, t + q)
            sides: Their entries of each right-hand side. (n_sides, q)
        """
        done = self._n_rows
        count = len(lower)
        total = done + count
        if total > len(self._rows):
            self._grow(max(2 * len(self._rows), total))
        new = dtrtri(lower[:, done:], lower=1)[0]
        rows = self._rows[done:total]
        rows[:, done:total] = np.tril(new)
        if done > 0:
            rows[:, :done] = -new @ (lower[:, :done] @ self._rows[:done, :done])
        added = rows[:, :total]
        self._precisions[:total] += (added * added).sum(axis=0)
        self._substituted[:, :total] += sides @ added
        self._n_rows = total

    def _grow(self, size: int) -> None:
        t = self._n_rows
        rows = np.zeros((size, size))
        rows[:t, :t] = self._rows[:t, :t]
        precisions = np.zeros(size)
        precisions[:t] = self._precisions[:t]
        substituted = np.zeros((len(self._substituted), size))
        substituted[:, :t] = self._substituted[:, :t]
        self._rows = rows
        self._precisions = precisions
        self._substituted = substituted
